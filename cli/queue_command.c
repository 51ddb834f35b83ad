/* queue: what is in queues and in quarantine, limits. */
#include "cells.h"
#include "client_internal.h"
#include "forms.h"
#include "listing.h"
#include "queue_wish.h"
#include "table.h"
#include "text.h"
#include "values.h"
#include "verb_options.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 1024, WORKERS_BYTES_MAX = 32 * 1024, DECISIONS_BYTES_MAX = 256 * 1024 * 1024 };

const struct option_row queue_rows[QUEUE_ROWS] = {
    {.flag = "queue", .kind = OPTION_NAME, .unit = "NAME", FIELD(queue), .help = "only this queue's"},
    TEXT_ROW("instance", "ID", instance, "only this instance's"),
    {.flag = "all", .kind = OPTION_SWITCH, FIELD(all), .help = "retry, fail: all that poisoned lists"},
    {.flag = "force",
     .kind = OPTION_SWITCH,
     FIELD(force),
     .help = "lease: also while workers serve the queue"},
    LIMIT_ROW("100", 100000, "poisoned: rows at most, newest first"),
    NEXT_ROW,
};

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

static const struct table_column poisoned_columns[] = {
    {"INSTANCE", 36, 12, 0, false},    {"EXECUTION", 9, 9, 7, true},
    {"ACTIVITY_ID", 11, 11, 0, true},  {"NAME", 20, 8, 0, false},
    {"QUEUE", 12, 8, 2, false},        {"CLAIMS", 6, 6, 3, true},
    {"LAST WORKER", 32, 11, 4, false}, {"SINCE", 24, 24, 5, false},
    {"FAILS", 24, 24, 6, false},       {"REASON", TABLE_WHOLE, 12, 1, false},
};

static void queue_command_table_row(const thole_poisoned_info *info, bool first)
{
    char since[TIME_TEXT_BYTES], until[TIME_TEXT_BYTES] = "never";
    struct table table;
    table_begin(&table, poisoned_columns, sizeof poisoned_columns / sizeof *poisoned_columns, first);
    text_time(info->since_ms, since);
    if (info->until_ms != 0)
        text_time(info->until_ms, until);
    table_cell(&table, TONE_PLAIN, info->instance);
    table_number(&table, info->execution);
    table_number(&table, info->activity_id);
    table_cell(&table, TONE_PLAIN, info->activity);
    table_cell(&table, TONE_PLAIN, info->queue);
    table_number(&table, info->claims);
    table_cell(&table, TONE_PLAIN, info->worker);
    table_text(&table, since);
    table_text(&table, until);
    table_cell(&table, TONE_PLAIN, info->reason);
    table_release(&table);
}

static thole_status queue_command_print_row(void *arg, const thole_poisoned_info *info)
{
    struct listing *listing = arg;
    uint64_t const place[] = {info->since_ms, info->execution, info->activity_id};
    if (info->foreign)
        return listing_skip(listing, "quarantine", info->instance);
    switch (listing_row(listing, "thole.poisoned.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: queue_command_table_row(info, listing->rows == 0); break;
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

/* Nothing of the queue that --queue names is in quarantine: THOLE_NOT_FOUND if there is no such queue. */
static thole_status queue_command_check_queue(const struct cli *cli, thole_client *client,
                                              thole_error *reterr)
{
    struct roster roster;
    thole_error ignored;
    if (cli->options.queue == NULL)
        return THOLE_OK;
    (void)roster_read(&roster, client, &ignored);
    thole_status const status =
        roster_queue_known(&roster, client, thole_slice_from(cli->options.queue), reterr);
    roster_release(&roster);
    return status;
}

static int queue_command_poisoned(const struct cli *cli, thole_client *client)
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
        thole_status status =
            thole_client_poisoned(client, &filter, queue_command_print_row, &listing, &error);
        if (status == THOLE_OK && listing.rows == 0)
            status = queue_command_check_queue(cli, client, &error);
        code = listing_end(&listing, status, &error, "nothing is in quarantine");
    }
    buf_release(&behind);
    return code;
}

/* ---- retry, fail ---- */

static thole_status queue_command_note_row(void *arg, const thole_poisoned_info *info)
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

static int queue_command_decide(const struct cli *cli, thole_client *client, bool fails)
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
    error.status = thole_client_poisoned(client, &filter, queue_command_note_row, &decisions, &error);
    int code = EXIT_DONE;
    if (error.status == THOLE_OK && decisions.items.len == 0 && !cli->options.all)
        error.status =
            thole_fail(&error, THOLE_NOT_FOUND, "activity %s of it is not in quarantine", cli->words[2]);
    if (error.status == THOLE_OK && decisions.items.len == 0)
        error.status = queue_command_check_queue(cli, client, &error);
    if (error.status != THOLE_OK)
        code = cli_complain(cli, cli->options.all ? "" : cli->words[1], &error);
    else if (decisions.items.len == 0)
        cli_note(cli, "nothing is in quarantine: nothing was changed");
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
static const struct table_column queue_columns[] = {
    {"QUEUE", 20, 10, 0, false}, {"WAITING", 9, 7, 0, true},   {"OLDEST", 9, 6, 2, true},
    {"RUNNING", 9, 7, 0, true},  {"OUTSIDE", 9, 7, 6, true},   {"POISONED", 9, 8, 1, true},
    {"LIMIT", 9, 5, 5, true},    {"SERVED BY", 9, 9, 3, true}, {"WORKERS", TABLE_WHOLE, 12, 4, false},
};

/* "w-1  has 3; w-2  has 1, silent for 40 s" */
static void queue_workers_cell(struct table *table, const thole_queue_info *info)
{
    struct buf text;
    buf_init(&text, WORKERS_BYTES_MAX);
    for (size_t i = 0; i < info->workers_len; i++) {
        const thole_queue_worker *const worker = &info->workers[i];
        buf_printf(&text, "%s%.*s  has %" PRIu64, i > 0 ? "; " : "", THOLE_FMT(worker->worker),
                   worker->activities);
        if (info->lease_ms != 0 && worker->silent_ms >= info->lease_ms)
            buf_printf(&text, ", silent for %" PRIu64 " s", worker->silent_ms / 1000);
    }
    table_cell(table, TONE_PLAIN, text.len > 0 ? buf_bytes(&text) : THOLE_STR("-"));
    buf_release(&text);
}

static void queue_line(const struct roster *roster, const thole_queue_info *info, bool first)
{
    char serving[24] = "?", limit[24] = "-", oldest[AGE_TEXT_BYTES] = "-";
    struct table table;
    if (info->limit != 0)
        (void)snprintf(limit, sizeof limit, "%" PRIu64, info->limit);
    if (roster->asked)
        (void)snprintf(serving, sizeof serving, "%zu", roster_workers(roster, info->queue));
    if (info->oldest_ms != 0)
        age_text(info->oldest_ms, oldest);
    table_begin(&table, queue_columns, sizeof queue_columns / sizeof *queue_columns, first);
    table_cell(&table, TONE_PLAIN, info->queue);
    table_number(&table, info->waiting);
    table_text(&table, oldest);
    table_number(&table, info->running);
    table_number(&table, info->outside);
    table_number(&table, info->poisoned);
    table_text(&table, limit);
    table_text(&table, serving);
    queue_workers_cell(&table, info);
    table_release(&table);
}

static void queue_command_queue_row(const struct cli *cli, const struct roster *roster,
                                    const thole_queue_info *info, bool first)
{
    char complaint[2 * THOLE_NAME_BYTES_MAX + 128];
    queue_line(roster, info, first);
    for (size_t i = 0; i < info->activities_len; i++)
        if (roster_complaint(roster, info->queue, info->activities[i].activity, complaint, sizeof complaint))
            cli_note(cli, "%s: %" PRIu64 " of activity %.*s", complaint, info->activities[i].count,
                     THOLE_FMT(info->activities[i].activity));
}

/* A queue that is not shown is counted, and its name noted. */
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
    case LISTING_TABLE:
        queue_command_queue_row(listing->cli, &queues->roster, info, listing->rows == 0);
        break;
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
    thole_status status =
        thole_client_queues(client, thole_slice_from(cli->options.queue), print_queue, &queues, &error);
    if (status == THOLE_OK && queues.listing.rows == 0 && cli->options.queue != NULL)
        status = roster_queue_known(&queues.roster, client, thole_slice_from(cli->options.queue), &error);
    code = listing_end(&queues.listing, status, &error, "nothing is in a queue");
    roster_release(&queues.roster);
    thole_client_close(client);
    return code;
}

/* ---- limit, lease ---- */

/* False after a complaint: no worker has ever made its consumer, so the name may be mistyped. */
static bool queue_is_there(const struct cli *cli, thole_client *client, uint64_t *ret_lease_ms, int *ret_code)
{
    uint64_t ignored = 0;
    thole_error error = {.status = THOLE_OK};
    *ret_lease_ms = 0;
    error.status = topology_queue_lease(client->connection, client->ns, thole_slice_from(cli->words[1]),
                                        ret_lease_ms, &ignored, &error);
    if (error.status == THOLE_OK && *ret_lease_ms == 0)
        error.status =
            thole_fail(&error, THOLE_NOT_FOUND, "no worker has served a queue %.64s", cli->words[1]);
    if (error.status == THOLE_NOT_FOUND)
        *ret_code = cli_complain_with(cli, cli->words[1], &error, EXIT_NOT_FOUND,
                                      "thole nodes, which shows who serves what");
    else if (error.status != THOLE_OK)
        *ret_code = cli_complain(cli, cli->words[1], &error);
    return error.status == THOLE_OK;
}

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
    uint64_t lease_ms;
    if (!cli->options.force && !queue_is_there(cli, client, &lease_ms, &code)) {
        thole_client_close(client);
        return code;
    }
    uint64_t limit = wanted == NULL || none ? 0 : strtoull(wanted, NULL, 10);
    struct queue_wish const wish = {QUEUE_WISH_LIMIT, queue, limit};
    error.status = wanted == NULL
                       ? topology_queue_limit(client->connection, client->ns, queue, &limit, &error)
                       : queue_wish_setting(client->connection, client->ns, &wish, &error);
    code = error.status == THOLE_OK ? print_limit(cli, limit) : cli_complain(cli, cli->words[1], &error);
    thole_client_close(client);
    return code;
}

static int print_lease(const struct cli *cli, uint64_t lease_ms)
{
    struct json json;
    char text[DURATION_TEXT_BYTES];
    duration_format(lease_ms, text);
    if (!cli_is_json(cli)) {
        (void)printf("%s: %s\n", cli->words[1], text);
        return EXIT_DONE;
    }
    json_document(&json, stdout, "thole.queue_lease.v1");
    json_member_text(&json, "queue", cli->words[1]);
    json_member_number(&json, "lease_ms", lease_ms);
    json_end(&json);
    return EXIT_DONE;
}

/* A worker that runs renews by the lease that it began with. */
static thole_status lease_is_free(const struct cli *cli, thole_client *client, thole_error *reterr)
{
    struct roster roster;
    thole_status status = cli->options.force ? THOLE_OK : roster_read(&roster, client, reterr);
    if (cli->options.force)
        return THOLE_OK;
    size_t const n = roster_workers(&roster, thole_slice_from(cli->words[1]));
    if (status == THOLE_OK && n > 0)
        status =
            thole_fail(reterr, THOLE_CONFLICT,
                       "%zu workers serve it, and keep the lease that they have until they start again", n);
    roster_release(&roster);
    return status;
}

static int command_lease(struct cli *cli)
{
    thole_error error = {.status = THOLE_OK};
    uint64_t lease_ms = 0, wanted_ms = 0;
    int code = EXIT_DONE;
    if (cli->words_len < 2)
        return cli_misused(cli, "lease of which queue?");
    if (cli->words_len == 3 && duration_parse(cli->words[2], &wanted_ms, &error) != THOLE_OK)
        return cli_misused(cli, "%s", error.text);
    if (cli->words_len == 3 && wanted_ms < 1000)
        return cli_misused(cli, "a lease of %.40s is too short, at least 1s is needed", cli->words[2]);
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    if (queue_is_there(cli, client, &lease_ms, &code)) {
        if (wanted_ms != 0 && wanted_ms != lease_ms) {
            error.status = lease_is_free(cli, client, &error);
            struct queue_wish const wish = {QUEUE_WISH_LEASE, thole_slice_from(cli->words[1]), wanted_ms};
            if (error.status == THOLE_OK)
                error.status = queue_wish_setting(client->connection, client->ns, &wish, &error);
            lease_ms = wanted_ms;
        }
        code =
            error.status == THOLE_OK ? print_lease(cli, lease_ms) : cli_complain(cli, cli->words[1], &error);
    }
    thole_client_close(client);
    return code;
}

int command_queue(struct cli *cli)
{
    if (strcmp(cli->words[0], "limit") == 0)
        return command_limit(cli);
    if (strcmp(cli->words[0], "lease") == 0)
        return command_lease(cli);
    if (strcmp(cli->words[0], "list") == 0)
        return command_queues(cli);
    bool const lists = strcmp(cli->words[0], "poisoned") == 0, fails = strcmp(cli->words[0], "fail") == 0;
    int code = EXIT_DONE;
    if (!lists && !fails && strcmp(cli->words[0], "retry") != 0)
        return cli_misused(cli, "\"%.40s\" is none of list, poisoned, retry, fail, limit, lease",
                           cli->words[0]);
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
    code = lists ? queue_command_poisoned(cli, client) : queue_command_decide(cli, client, fails);
    thole_client_close(client);
    return code;
}
