/* doctor: instances that do not go on, activities that nobody runs, engines with different code. */
#include "client_internal.h"
#include "clock.h"
#include "doctor_checks.h"
#include "memory.h"
#include "name_difference.h"
#include "remedy.h"
#include "roster.h"
#include "standstill.h"
#include "text.h"
#include <inttypes.h>
#include <stdlib.h>

enum {
    LIST_BYTES_MAX = 600,
    ENGINES_MAX = 1024,
    SHOWN_MAX = 20, /* lines of each check */
    DETAIL_BYTES = 300
};

/* ---- engines ---- */

struct engine_names {
    thole_slice node;
    struct name_list list;
};
struct engines_seen {
    struct arena arena;
    struct engine_names *engines;
    size_t len;
};

static thole_status doctor_standing_on_engine(void *arg, const thole_engine_info *info)
{
    struct engines_seen *const seen = arg;
    thole_slice *const names = arena_array(&seen->arena, info->orchestrations_len + 1, sizeof *names);
    if (names == NULL || seen->len == ENGINES_MAX)
        return THOLE_LIMIT;
    struct engine_names *const engine = &seen->engines[seen->len++];
    *engine = (struct engine_names){.list = {names, info->orchestrations_len}};
    for (size_t i = 0; i < info->orchestrations_len; i++)
        THOLE_TRY(arena_dup(&seen->arena, info->orchestrations[i], &names[i]));
    return arena_dup(&seen->arena, info->node, &engine->node);
}

/* How many engines have other orchestrations than the first one; the first of them in words. */
static size_t count_others(const struct engines_seen *seen, struct buf *to)
{
    struct buf lacking;
    size_t n = 0;
    buf_init(&lacking, LIST_BYTES_MAX);
    for (size_t i = 1; i < seen->len; i++) {
        const struct engine_names *const a = &seen->engines[0], *const b = &seen->engines[i];
        buf_clear(&lacking);
        size_t const of_a = name_list_lacking(&a->list, &b->list, &lacking);
        if (of_a > 0 && n == 0)
            buf_printf(to, "engine %.*s has %s and engine %.*s has not", THOLE_FMT(a->node),
                       buf_cstr(&lacking), THOLE_FMT(b->node));
        buf_clear(&lacking);
        size_t const of_b = name_list_lacking(&b->list, &a->list, &lacking);
        if (of_b > 0 && n == 0)
            buf_printf(to, "%sengine %.*s has %s and engine %.*s has not", of_a > 0 ? "; " : "",
                       THOLE_FMT(b->node), buf_cstr(&lacking), THOLE_FMT(a->node));
        n += of_a + of_b > 0;
    }
    buf_release(&lacking);
    return n;
}

static void check_code(struct doctor_report *report, thole_client *client)
{
    struct engines_seen seen = {.engines = memory_array(ENGINES_MAX, sizeof *seen.engines)};
    thole_error error = {.status = THOLE_OK};
    struct buf text;
    arena_init(&seen.arena, CLIENT_ARENA_MAX);
    buf_init(&text, 2 * LIST_BYTES_MAX);
    error.status = thole_client_engines(client, doctor_standing_on_engine, &seen, &error);
    size_t const n = error.status == THOLE_OK ? count_others(&seen, &text) : 0;
    if (error.status != THOLE_OK)
        report_add(report, "code", FINDING_SKIP, NULL, "what the engines' programs have is not known: %s",
                   error.text);
    else if (n > 0)
        report_add(
            report, "code", FINDING_WARN,
            "finish the upgrade; or run the same program in all engines of the namespace; or give each "
            "program a namespace of its own",
            "engines have different orchestrations: %s. Instances of those that the owner of their "
            "partition lacks wait for code",
            buf_cstr(&text));
    else if (seen.len > 1)
        report_add(report, "code", FINDING_OK, NULL, "all %zu engines have the same orchestrations",
                   seen.len);
    buf_release(&text);
    arena_release(&seen.arena);
    free(seen.engines);
}

/* ---- instances ---- */

struct standing_seen {
    struct doctor_report *report;
    size_t lines;
    uint64_t more; /* instances of those without a line */
};

static thole_status on_standing(void *arg, const thole_standing_info *info)
{
    struct standing_seen *const seen = arg;
    char time[TIME_TEXT_BYTES];
    if (seen->lines++ >= SHOWN_MAX) {
        seen->more += info->count;
        return THOLE_OK;
    }
    enum blocked_kind const kind = blocked_kind_of(info->reason);
    struct standstill const stop = standstill_of(kind);
    size_t const len = info->detail.len < DETAIL_BYTES ? info->detail.len : DETAIL_BYTES;
    char raw[SEEN_BYTES_MAX], todo[SEEN_BYTES_MAX];
    text_time(info->updated_ms, time);
    (void)snprintf(raw, sizeof raw, "thole show ID; %s",
                   stop.remedy == NULL ? "its detail says why" : stop.remedy);
    remedy_fill(raw, info->example, todo, sizeof todo);
    report_add(seen->report, "instances", FINDING_WARN, todo,
               "%" PRIu64 " of orchestration %.*s: %s%s%s, such as %.*s since %s%s%.*s", info->count,
               THOLE_FMT(info->orchestration), thole_instance_status_name(info->status),
               info->reason == NULL ? "" : ", ", info->reason == NULL ? "" : info->reason,
               THOLE_FMT(info->example), time, len == 0 ? "" : ": ", (int)len,
               (const char *)info->detail.ptr);
    return THOLE_OK;
}

static void check_instances(struct doctor_report *report, thole_client *client)
{
    struct standing_seen seen = {.report = report};
    thole_error error = {.status = THOLE_OK};
    error.status = thole_client_standing(client, on_standing, &seen, &error);
    if (error.status != THOLE_OK)
        report_add(report, "instances", FINDING_SKIP, "this user must be allowed to read the table instances",
                   "those that do not go on were not counted: %s", error.text);
    else if (seen.lines == 0)
        report_add(report, "instances", FINDING_OK, NULL, "none waits for code, is Stuck or is paused");
    else if (seen.more > 0)
        report_add(report, "instances", FINDING_WARN, "thole list --status waiting,stuck,paused",
                   "%" PRIu64 " more, of other orchestrations or for other reasons", seen.more);
}

/* ---- queues ---- */

struct queues_seen {
    struct doctor_report *report;
    struct roster roster;
    size_t queues, lines, more;
};

static void report_activity(struct queues_seen *seen, const thole_queue_info *info,
                            const thole_queue_activity *activity)
{
    char complaint[2 * THOLE_NAME_BYTES_MAX + 128];
    if (!roster_complaint(&seen->roster, info->queue, activity->activity, complaint, sizeof complaint))
        return;
    if (seen->lines++ >= SHOWN_MAX) {
        seen->more++;
        return;
    }
    report_add(seen->report, "queues", FINDING_WARN,
               roster_workers(&seen->roster, info->queue) == 0
                   ? "start a worker for that queue: PROGRAM worker --queue QUEUE, or PROGRAM run"
                   : "start a worker that registers it, or correct the name in the code; thole queue list",
               "%" PRIu64 " of activity %.*s wait: %s", activity->count, THOLE_FMT(activity->activity),
               complaint);
}

static thole_status on_queue(void *arg, const thole_queue_info *info)
{
    struct queues_seen *const seen = arg;
    seen->queues++;
    for (size_t i = 0; i < info->activities_len && !info->foreign; i++)
        report_activity(seen, info, &info->activities[i]);
    return THOLE_OK;
}

static void check_queues(struct doctor_report *report, thole_client *client)
{
    struct queues_seen seen = {.report = report};
    thole_error error = {.status = THOLE_OK};
    error.status = roster_read(&seen.roster, client, &error);
    if (error.status == THOLE_OK)
        error.status = thole_client_queues(client, (thole_slice){NULL, 0}, on_queue, &seen, &error);
    if (error.status != THOLE_OK)
        report_add(report, "queues", FINDING_SKIP, "what the role client may do is enough",
                   "whether workers run what is in the queues is not known: %s", error.text);
    else if (seen.lines == 0)
        report_add(report, "queues", FINDING_OK, NULL, "workers know all activities that are in %zu queues",
                   seen.queues);
    else if (seen.more > 0)
        report_add(report, "queues", FINDING_WARN, "thole queue list", "%zu more activities that nobody runs",
                   seen.more);
    roster_release(&seen.roster);
}

void doctor_standing(struct doctor_report *report)
{
    thole_client_options options;
    thole_client *client = NULL;
    const char *const postgres = report->cli->options.postgres;
    cli_client_options(report->cli, &options);
    if (thole_client_open(&options, &client, NULL) != THOLE_OK)
        return; /* the checks before it have said so */
    check_code(report, client);
    if (postgres != NULL && postgres[0] != '\0') {
        check_instances(report, client);
        check_queues(report, client);
    }
    thole_client_close(client);
}
