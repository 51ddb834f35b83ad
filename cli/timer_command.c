/* timer: timers of instances that wait, and tries of activities that wait for their time, from their
 * histories; and those that a wrong clock has set fire now. */
#include "clock.h"
#include "id_set.h"
#include "listing.h"
#include "table.h"
#include "text.h"
#include "values.h"
#include <inttypes.h>
#include <string.h>

enum { ALL_INSTANCES = INT32_MAX };

struct timers {
    struct listing listing;
    struct id_set ids; /* of those that have timers */
    thole_client *client;
    thole_slice instance;
    uint64_t due_after_ms, only; /* only: the id of one timer; 0: all */
    uint64_t held;               /* activities in quarantine until then: a user decides on them */
    bool fires;
    thole_error error; /* of a timer that did not fire */
};

/* ---- arguments ---- */

/* A duration is counted from now on, since timers are due later. */
static bool parse_due(const struct cli *cli, uint64_t *ret_ms, int *ret_code)
{
    const char *const text = cli->options.due_after;
    uint64_t const now_ms = clock_wall_ms();
    uint64_t at_ms = 0, later_ms = 0;
    *ret_ms = 0;
    if (text == NULL)
        return true;
    if (text_time_parse(text, now_ms, &at_ms) && text_time_parse(text, now_ms + 1, &later_ms)) {
        *ret_ms = at_ms == later_ms ? at_ms : now_ms + (now_ms - at_ms);
        return true;
    }
    *ret_code =
        cli_misused(cli,
                    "--due-after: %.60s is no time; expected 2026-11-21T09:30:00Z, 2026-11-21, or a duration "
                    "such as 30d, which is that long from now on",
                    text);
    return false;
}

static bool timers_wish(const struct cli *cli, struct timers *ret, int *ret_code)
{
    const struct cli_options *const o = &cli->options;
    bool const filtered = o->prefix != NULL || o->orchestration != NULL || o->all;
    ret->fires = strcmp(cli->words[0], "fire") == 0;
    if (!ret->fires && strcmp(cli->words[0], "list") != 0)
        *ret_code = cli_misused(cli, "\"%.40s\" is none of list, fire", cli->words[0]);
    else if (cli->words_len > 1 && filtered)
        *ret_code = cli_misused(cli, "an ID, or --prefix, --orchestration or --all");
    else if (ret->fires && cli->words_len == 1 && !filtered)
        *ret_code = cli_misused(cli, "which timers? an ID, --prefix or --orchestration, or --all");
    else if (ret->fires && cli->words_len < 3 && o->due_after == NULL)
        *ret_code = cli_misused(cli, "which timers? the id of one, or --due-after TIME");
    else if (cli->words_len == 3 &&
             (number_parse(cli->words[2], &ret->only, NULL) != THOLE_OK || ret->only == 0))
        *ret_code =
            cli_misused(cli, "\"%.40s\" is no id of a timer; thole timer list ID shows them", cli->words[2]);
    else
        return parse_due(cli, &ret->due_after_ms, ret_code);
    return false;
}

/* ---- one timer ---- */

static const struct table_column timer_columns[] = {
    {"EXECUTION", 9, 9, 1, true}, {"TIMER", 9, 5, 0, true},  {"WHAT", 8, 8, 0, false},
    {"SET", 24, 24, 2, false},    {"DUE", 24, 24, 0, false}, {"INSTANCE", TABLE_WHOLE, 12, 0, false},
};

static void timer_table(const struct timers *timers, const thole_inspection *inspection,
                        const thole_pending *timer)
{
    char set[TIME_TEXT_BYTES], due[TIME_TEXT_BYTES], what[24] = "timer";
    struct table table;
    table_begin(&table, timer_columns, sizeof timer_columns / sizeof *timer_columns,
                timers->listing.rows == 0);
    if (timer->kind == THOLE_PENDING_ACTIVITY)
        (void)snprintf(what, sizeof what, "try %" PRIu32, timer->try_number + 1);
    text_time(timer->asked_for_ms, set);
    text_time(timer->due_ms, due);
    table_number(&table, inspection->execution);
    table_number(&table, timer->id);
    table_text(&table, what);
    table_text(&table, set);
    table_text(&table, due);
    table_cell(&table, TONE_PLAIN, timers->instance);
    table_release(&table);
}

static void timer_members(struct timers *timers, const thole_inspection *inspection,
                          const thole_pending *timer)
{
    struct json *const json = &timers->listing.json;
    json_member(json, "instance", timers->instance);
    json_member_number(json, "execution", inspection->execution);
    json_member_number(json, "timer", timer->id);
    if (timer->kind == THOLE_PENDING_ACTIVITY)
        json_member_number(json, "try", timer->try_number + 1);
    json_member_time(json, "set", timer->asked_for_ms);
    json_member_time(json, "due", timer->due_ms);
}

static thole_status timer_command_timer_row(struct timers *timers, const thole_inspection *inspection,
                                            const thole_pending *timer)
{
    if (timers->fires && !timers->listing.cli->options.dry_run)
        THOLE_TRY(thole_client_fire_timer(timers->client, timers->instance, inspection->execution, timer->id,
                                          &timers->error));
    switch (listing_row(&timers->listing, "thole.timer.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: timer_table(timers, inspection, timer); break;
    case LISTING_JSON: timer_members(timers, inspection, timer); break;
    case LISTING_NAME: listing_name(timers->instance); break;
    }
    return listing_row_end(&timers->listing);
}

static thole_status take_timers(void *arg, const thole_inspection *inspection)
{
    struct timers *const timers = arg;
    for (size_t i = 0; i < inspection->pending_len; i++) {
        const thole_pending *const pending = &inspection->pending[i];
        bool const meant =
            timers->only == 0 ? pending->due_ms > timers->due_after_ms : pending->id == timers->only;
        bool const activity = pending->kind == THOLE_PENDING_ACTIVITY && pending->due_ms > 0;
        if (meant && (pending->kind == THOLE_PENDING_TIMER || (activity && !pending->quarantined)))
            THOLE_TRY(timer_command_timer_row(timers, inspection, pending));
        else if (meant && activity)
            timers->held++;
    }
    return THOLE_OK;
}

/* ---- many ---- */

static thole_status timers_of(struct timers *timers, thole_slice instance, thole_error *reterr)
{
    timers->instance = instance;
    thole_status const status = thole_client_inspect(timers->client, instance, take_timers, timers, reterr);
    if (timers->error.status != THOLE_OK)
        *reterr = timers->error;
    return status;
}

static thole_status note_timers(void *arg, const thole_instance_info *info)
{
    struct timers *const timers = arg;
    return info->open_timers > 0 ? id_set_add(&timers->ids, info->instance) : THOLE_OK;
}

static thole_status timers_listed(struct timers *timers, thole_error *reterr)
{
    const struct cli_options *const o = &timers->listing.cli->options;
    thole_list_filter const filter = {.size = sizeof filter,
                                      .orchestration = thole_slice_from(o->orchestration),
                                      .id_prefix = thole_slice_from(o->prefix),
                                      .limit = ALL_INSTANCES};
    thole_status status = thole_client_list(timers->client, &filter, note_timers, timers, reterr);
    if (timers->ids.full)
        return thole_fail(reterr, THOLE_LIMIT, "too many instances at once: narrow it, by --prefix");
    for (size_t i = 0; i < timers->ids.len && status == THOLE_OK; i++) {
        status = timers_of(timers, timers->ids.ids[i], reterr);
        if (status == THOLE_NOT_FOUND || status == THOLE_CONFLICT) { /* has ended meanwhile */
            timers->error = (thole_error){.status = THOLE_OK};
            status = THOLE_OK;
        }
    }
    return status;
}

/* ---- the command ---- */

static void say_timers(const struct timers *timers)
{
    const struct cli *const cli = timers->listing.cli;
    if (timers->held > 0)
        cli_note(cli,
                 "%" PRIu64
                 " activities are in quarantine until then: those stay; thole queue poisoned lists them",
                 timers->held);
    if (timers->fires && timers->listing.rows > 0)
        cli_note(cli,
                 cli->options.dry_run ? "%" PRIu64 " timers would fire, nothing was changed"
                                      : "%" PRIu64 " timers fire now",
                 timers->listing.rows);
}

int command_timer(struct cli *cli)
{
    struct timers timers = {.only = 0};
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_DONE;
    if (!timers_wish(cli, &timers, &code))
        return code;
    timers.client = cli_connect(cli, &code);
    if (timers.client == NULL)
        return code;
    id_set_init(&timers.ids);
    listing_begin(&timers.listing, cli, "thole.timer_list.v1", "timers", 0);
    error.status = cli->words_len > 1 ? timers_of(&timers, thole_slice_from(cli->words[1]), &error)
                                      : timers_listed(&timers, &error);
    if (error.status == THOLE_OK && timers.only != 0 && timers.listing.rows == 0)
        error.status = thole_fail(&error, THOLE_NOT_FOUND, "it waits for no timer %" PRIu64, timers.only);
    code = listing_end(&timers.listing, error.status, &error, "no timer is due then");
    if (code == EXIT_DONE)
        say_timers(&timers);
    id_set_release(&timers.ids);
    thole_client_close(timers.client);
    return code;
}
