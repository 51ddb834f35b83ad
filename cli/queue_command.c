/* queue: what is in queues and in quarantine, limits. */
#include "cells.h"
#include "client_internal.h"
#include "forms.h"
#include "listing.h"
#include "text.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 1024, ID_COLUMNS = 36, REASON_COLUMNS = 80, DECISIONS_BYTES_MAX = 256 * 1024 * 1024 };

struct decision { /* a copy of what is listed, as the reading of the list must end first */
    char instance[THOLE_ID_BYTES_MAX + 1];
    uint64_t execution, activity_id;
    uint32_t try_number;
};

struct decisions {
    uint64_t wanted_id; /* of the activity; 0 = any */
    struct buf items;   /* struct decision */
};

/* ---- poisoned ---- */

static void cell(thole_slice text, int columns)
{
    struct buf safe;
    buf_init(&safe, CELL_BYTES);
    text_safe(&safe, text, THOLE_ID_BYTES_MAX);
    (void)printf("%-*s  ", columns, buf_cstr(&safe));
    buf_release(&safe);
}

static void table_row(const thole_poisoned_info *info, bool first)
{
    char since[TIME_TEXT_BYTES], until[TIME_TEXT_BYTES] = "never";
    if (first)
        (void)printf("%-36s  %9s  %11s  %-20s  %-12s  %6s  %-32s  %-24s  %-24s  %s\n", "INSTANCE",
                     "EXECUTION", "ACTIVITY_ID", "NAME", "QUEUE", "CLAIMS", "LAST WORKER", "SINCE", "FAILS",
                     "REASON");
    text_time(info->since_ms, since);
    if (info->until_ms != 0)
        text_time(info->until_ms, until);
    cell(info->instance, ID_COLUMNS);
    (void)printf("%9" PRIu64 "  %11" PRIu64 "  ", info->execution, info->activity_id);
    cell(info->activity, 20);
    cell(info->queue, 12);
    (void)printf("%6" PRIu32 "  ", info->claims);
    cell(info->worker, 32);
    (void)printf("%-24s  %-24s  ", since, until);
    cell(info->reason, 0);
    (void)printf("\n");
}

static thole_status print_row(void *arg, const thole_poisoned_info *info)
{
    struct listing *listing = arg;
    uint64_t const place[] = {info->since_ms, info->execution, info->activity_id};
    if (info->foreign)
        return listing_skip(listing, "quarantine", info->instance);
    switch (listing_row(listing, "thole.poisoned.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: table_row(info, listing->rows == 0); break;
    case LISTING_JSON: form_poisoned(&listing->json, info); break;
    case LISTING_NAME: listing_name(info->instance); break;
    }
    listing_place(listing, place, sizeof place / sizeof place[0], info->instance);
    return listing_row_end(listing);
}

static thole_poisoned_filter filter_of(const struct cli *cli)
{
    return (thole_poisoned_filter){.size = sizeof(thole_poisoned_filter),
                                   .queue = thole_slice_from(cli->options.queue),
                                   .instance = thole_slice_from(cli->options.instance),
                                   .limit = cli->options.limit};
}

static int poisoned(const struct cli *cli, thole_client *client)
{
    struct listing listing;
    thole_poisoned_filter filter = filter_of(cli);
    thole_error error = {.status = THOLE_OK};
    uint64_t place[3];
    struct buf behind;
    int code = EXIT_USAGE;
    if (listing_place_read(cli, place, sizeof place / sizeof place[0], &behind)) {
        listing_begin(&listing, cli, "thole.poisoned_list.v1", "poisoned", cli->options.limit);
        filter.limit = listing_wish(&listing);
        filter.behind_instance = buf_bytes(&behind);
        filter.behind_since_ms = place[0];
        filter.behind_execution = place[1];
        filter.behind_activity_id = place[2];
        thole_status const status = thole_client_poisoned(client, &filter, print_row, &listing, &error);
        code = listing_end(&listing, status, &error, "nothing is in quarantine");
    }
    buf_release(&behind);
    return code;
}

/* ---- retry, fail ---- */

static thole_status note_row(void *arg, const thole_poisoned_info *info)
{
    struct decisions *decisions = arg;
    if (info->foreign)
        return THOLE_OK;
    if (decisions->wanted_id != 0 && info->activity_id != decisions->wanted_id)
        return THOLE_OK;
    struct decision decision = {
        .execution = info->execution, .activity_id = info->activity_id, .try_number = info->try_number};
    (void)snprintf(decision.instance, sizeof decision.instance, "%.*s", THOLE_FMT(info->instance));
    buf_append(&decisions->items, &decision, sizeof decision);
    return buf_status(&decisions->items);
}

static void say_decided(const struct cli *cli, const struct decision *d)
{
    struct json json;
    struct buf instance;
    if (!cli_is_json(cli)) {
        buf_init(&instance, 4 * sizeof d->instance);
        text_lines(&instance, thole_slice_from(d->instance));
        (void)printf("%s of %s activity %" PRIu64 " accepted\n", cli->words[0], buf_cstr(&instance),
                     d->activity_id);
        buf_release(&instance);
        return;
    }
    json_document(&json, stdout, "thole.queue_decision.v1");
    json_member_text(&json, "instance", d->instance);
    json_member_number(&json, "execution", d->execution);
    json_member_number(&json, "activity_id", d->activity_id);
    json_member_text(&json, "decision", cli->words[0]);
    json_end(&json);
}

static int decide_all(const struct cli *cli, thole_client *client, const struct decisions *decisions,
                      bool fails)
{
    const struct decision *const items = (const void *)decisions->items.ptr;
    thole_error error = {.status = THOLE_OK};
    for (size_t i = 0; i < decisions->items.len / sizeof *items; i++) {
        const struct decision *d = &items[i];
        thole_slice const id = thole_slice_from(d->instance);
        error.status = fails ? thole_client_poisoned_fail(client, id, d->execution, d->activity_id,
                                                          d->try_number, &error)
                             : thole_client_poisoned_retry(client, id, d->execution, d->activity_id,
                                                           d->try_number, &error);
        if (error.status != THOLE_OK)
            return cli_complain(cli, d->instance, &error);
        say_decided(cli, d);
    }
    return EXIT_DONE;
}

static int decide(const struct cli *cli, thole_client *client, bool fails)
{
    struct decisions decisions = {.wanted_id = 0};
    thole_poisoned_filter filter = filter_of(cli);
    thole_error error = {.status = THOLE_OK};
    if (!cli->options.all) {
        filter.instance = thole_slice_from(cli->words[1]);
        decisions.wanted_id = strtoull(cli->words[2], NULL, 10);
    }
    filter.limit = UINT32_MAX;
    buf_init(&decisions.items, DECISIONS_BYTES_MAX);
    error.status = thole_client_poisoned(client, &filter, note_row, &decisions, &error);
    int code = EXIT_DONE;
    if (error.status == THOLE_OK && decisions.items.len == 0 && !cli->options.all)
        error.status =
            thole_fail(&error, THOLE_NOT_FOUND, "activity %s of it is not in quarantine", cli->words[2]);
    if (error.status != THOLE_OK)
        code = cli_complain(cli, cli->options.all ? "" : cli->words[1], &error);
    else
        code = decide_all(cli, client, &decisions, fails);
    buf_release(&decisions.items);
    return code;
}

/* ---- list ---- */

struct queues {
    struct listing listing;
    struct roster roster;
};
static void queue_row(const struct cli *cli, const struct roster *roster, const thole_queue_info *info,
                      bool first)
{
    char complaint[2 * THOLE_NAME_BYTES_MAX + 128], serving[24] = "?";
    char limit[24] = "-", oldest[AGE_TEXT_BYTES] = "-";
    if (first)
        (void)printf("%-20s  %9s  %9s  %9s  %9s  %9s  %9s  %9s  %s\n", "QUEUE", "WAITING", "OLDEST",
                     "RUNNING", "OUTSIDE", "POISONED", "LIMIT", "SERVED BY", "WORKERS");
    if (info->limit != 0)
        (void)snprintf(limit, sizeof limit, "%" PRIu64, info->limit);
    if (roster->asked)
        (void)snprintf(serving, sizeof serving, "%zu", roster_workers(roster, info->queue));
    if (info->oldest_ms != 0)
        age_text(info->oldest_ms, oldest);
    cell(info->queue, 20);
    (void)printf("%9" PRIu64 "  %9s  %9" PRIu64 "  %9" PRIu64 "  %9" PRIu64 "  %9s  %9s  ", info->waiting,
                 oldest, info->running, info->outside, info->poisoned, limit, serving);
    for (size_t i = 0; i < info->workers_len; i++) {
        const thole_queue_worker *const worker = &info->workers[i];
        cell(worker->worker, 0);
        (void)printf("has %" PRIu64, worker->activities);
        if (info->lease_ms != 0 && worker->silent_ms >= info->lease_ms)
            (void)printf(", silent for %" PRIu64 " s", worker->silent_ms / 1000);
        (void)printf("%s", i + 1 < info->workers_len ? "; " : "");
    }
    (void)printf("%s\n", info->workers_len == 0 ? "-" : "");
    for (size_t i = 0; i < info->activities_len; i++)
        if (roster_complaint(roster, info->queue, info->activities[i].activity, complaint, sizeof complaint))
            cli_note(cli, "%s: %" PRIu64 " of activity %.*s", complaint, info->activities[i].count,
                     THOLE_FMT(info->activities[i].activity));
}

/* What is not shown: counted, and by its name. */
static void skip_queue(const struct cli *cli, const thole_queue_info *info)
{
    struct buf name;
    buf_init(&name, CELL_BYTES);
    text_safe(&name, info->queue, THOLE_NAME_BYTES_MAX);
    cli_note(cli,
             "%" PRIu64 " rows of the table worker_queue are skipped: no queue can be called \"%s\"; thole "
             "has not written them",
             info->waiting + info->running + info->outside, buf_cstr(&name));
    buf_release(&name);
}

static thole_status print_queue(void *arg, const thole_queue_info *info)
{
    struct queues *queues = arg;
    struct listing *listing = &queues->listing;
    if (info->foreign) {
        skip_queue(listing->cli, info);
        return THOLE_OK;
    }
    switch (listing_row(listing, "thole.queue.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: queue_row(listing->cli, &queues->roster, info, listing->rows == 0); break;
    case LISTING_JSON: form_queue(&listing->json, &queues->roster, info); break;
    case LISTING_NAME: listing_name(info->queue); break;
    }
    return listing_row_end(listing);
}

static int command_queues(struct cli *cli)
{
    struct queues queues;
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_DONE;
    if (cli->words_len != 1)
        return cli_misused(cli, "list takes no more words; see --queue");
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    if (roster_read(&queues.roster, client, &error) != THOLE_OK)
        cli_note(cli, "which workers serve what is not known: %s", error.text);
    listing_begin(&queues.listing, cli, "thole.queue_list.v1", "queues", 0);
    thole_status const status =
        thole_client_queues(client, thole_slice_from(cli->options.queue), print_queue, &queues, &error);
    code = listing_end(&queues.listing, status, &error, "nothing is in a queue");
    roster_release(&queues.roster);
    thole_client_close(client);
    return code;
}

/* ---- limit ---- */

static int print_limit(const struct cli *cli, uint64_t limit)
{
    struct json json;
    if (!cli_is_json(cli)) {
        if (limit == 0)
            (void)printf("%s: no limit\n", cli->words[1]);
        else
            (void)printf("%s: at most %" PRIu64 " at once\n", cli->words[1], limit);
        return EXIT_DONE;
    }
    json_document(&json, stdout, "thole.queue_limit.v1");
    json_member_text(&json, "queue", cli->words[1]);
    json_key(&json, "limit");
    if (limit == 0)
        json_null(&json);
    else
        json_number(&json, limit);
    json_end(&json);
    return EXIT_DONE;
}

static int command_limit(struct cli *cli)
{
    thole_error error = {.status = THOLE_OK};
    const char *wanted = cli->words_len == 3 ? cli->words[2] : NULL;
    int code = EXIT_DONE;
    if (cli->words_len < 2)
        return cli_misused(cli, "limit of which queue?");
    bool const none = wanted != NULL && strcmp(wanted, "none") == 0;
    if (wanted != NULL && !none &&
        (strspn(wanted, "0123456789") != strlen(wanted) || strtoull(wanted, NULL, 10) == 0))
        return cli_misused(cli, "\"%.40s\" is no limit: give a number from 1, or none", wanted);
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    thole_slice const queue = thole_slice_from(cli->words[1]);
    uint64_t limit = wanted == NULL || none ? 0 : strtoull(wanted, NULL, 10);
    error.status = wanted == NULL
                       ? topology_queue_limit(client->connection, client->ns, queue, &limit, &error)
                       : topology_limit_queue(client->connection, client->ns, queue, limit, &error);
    code = error.status == THOLE_OK ? print_limit(cli, limit) : cli_complain(cli, cli->words[1], &error);
    thole_client_close(client);
    return code;
}

int command_queue(struct cli *cli)
{
    if (strcmp(cli->words[0], "limit") == 0)
        return command_limit(cli);
    if (strcmp(cli->words[0], "list") == 0)
        return command_queues(cli);
    bool const lists = strcmp(cli->words[0], "poisoned") == 0, fails = strcmp(cli->words[0], "fail") == 0;
    int code = EXIT_DONE;
    if (!lists && !fails && strcmp(cli->words[0], "retry") != 0)
        return cli_misused(cli, "\"%.40s\" is none of list, poisoned, retry, fail, limit", cli->words[0]);
    if (cli->words_len != (lists || cli->options.all ? 1 : 3))
        return cli_misused(cli, lists ? "poisoned takes no more words; see --instance and --queue"
                                      : "which one? an instance id and an activity id, or --all");
    if (cli->words_len == 3 &&
        (cli->words[2][0] == 0 || strspn(cli->words[2], "0123456789") != strlen(cli->words[2])))
        return cli_misused(cli, "\"%.40s\" is no activity id; thole queue poisoned shows them",
                           cli->words[2]);
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    code = lists ? poisoned(cli, client) : decide(cli, client, fails);
    thole_client_close(client);
    return code;
}
