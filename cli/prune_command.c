/* prune: histories of old executions, of one instance or of all that are selected. */
#include "client_holds.h"
#include "clock.h"
#include "id_set.h"
#include "listing.h"
#include "old_executions.h"
#include "table.h"
#include "text.h"
#include "values.h"
#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { LIST_ALL = INT32_MAX, ROWS_BYTES_MAX = 256 * 1024 * 1024 };

struct prune {
    struct listing listing;
    struct old_executions old;
    struct id_set ids;        /* of --all, --prefix and --orchestration */
    struct buf rows;          /* thole_execution_info of what goes of one instance */
    uint64_t instances, kept; /* of which some go; that are held, or have ended meanwhile */
};

/* ---- arguments ---- */

static bool parse_before(const struct cli *cli, struct old_executions *ret, int *ret_code)
{
    const char *const text = cli->options.executions_before;
    bool const is_number = text != NULL && number_parse(text, &ret->before, NULL) == THOLE_OK;
    if (text == NULL)
        *ret_code = cli_misused(cli, "--executions-before is missing: the number of an execution, or a time");
    else if (is_number && ret->before > 0)
        return true;
    else if (!is_number && text_time_parse(text, clock_wall_ms(), &ret->ended_before))
        return true;
    else
        *ret_code =
            cli_misused(cli,
                        "--executions-before: %.60s is neither the number of an execution nor a time; "
                        "expected 120, 2026-11-21T09:30:00Z, 2026-11-21, or a duration such as 30d, "
                        "which is that long ago",
                        text);
    return false;
}

static bool prune_command_wish_is_good(const struct cli *cli, struct old_executions *ret, int *ret_code)
{
    const struct cli_options *o = &cli->options;
    bool const filtered = o->prefix != NULL || o->orchestration != NULL;
    if ((cli->words_len == 1) + o->all + filtered == 1)
        return parse_before(cli, ret, ret_code);
    *ret_code = cli_misused(cli, "which instances? an ID, --prefix or --orchestration, or --all");
    return false;
}

/* ---- the result ---- */

static const struct table_column execution_columns[] = {
    {"EXECUTION", 9, 9, 0, true}, {"STARTED", 24, 24, 2, false},           {"ENDED", 24, 24, 1, false},
    {"TURNS", 7, 5, 0, true},     {"INSTANCE", TABLE_WHOLE, 20, 0, false},
};

static void prune_command_table_row(const thole_execution_info *info, thole_slice instance, bool first)
{
    char started[TIME_TEXT_BYTES], ended[TIME_TEXT_BYTES];
    struct table table;
    table_begin(&table, execution_columns, sizeof execution_columns / sizeof *execution_columns, first);
    text_time(info->started_ms, started);
    text_time(info->ended_ms, ended);
    table_number(&table, info->execution);
    table_text(&table, started);
    table_text(&table, ended);
    table_number(&table, info->turns);
    table_cell(&table, TONE_PLAIN, instance);
    table_release(&table);
}

static void row_members(struct json *json, const thole_execution_info *info, thole_slice instance)
{
    json_member(json, "instance", instance);
    json_member_number(json, "execution", info->execution);
    json_member_time(json, "started", info->started_ms);
    json_member_time(json, "ended", info->ended_ms);
    json_member_number(json, "turns", info->turns);
}

static thole_status prune_take(void *arg, const thole_execution_info *info)
{
    struct prune *prune = arg;
    if (!old_executions_take(&prune->old, info))
        return THOLE_OK;
    buf_append(&prune->rows, info, sizeof *info);
    return buf_status(&prune->rows);
}

/* Prints the executions that go, or would go. An instance of which none does has no line. */
static thole_status prune_print(struct prune *prune, thole_slice instance)
{
    thole_status status = THOLE_OK;
    for (size_t at = 0; at < prune->rows.len && status == THOLE_OK; at += sizeof(thole_execution_info)) {
        thole_execution_info info;
        memcpy(&info, prune->rows.ptr + at, sizeof info);
        if (listing_row(&prune->listing, "thole.execution.v1") == LISTING_JSON)
            row_members(&prune->listing.json, &info, instance);
        else
            prune_command_table_row(&info, instance, prune->listing.rows == 0);
        status = listing_row_end(&prune->listing);
    }
    return status;
}

/* ---- one instance ---- */

/* The rows say which; the engine is told up to where, since it never takes more than has ended. */
static thole_status prune_command_prune_one(struct prune *prune, thole_client *client, thole_slice instance,
                                            thole_error *reterr)
{
    const struct cli_options *o = &prune->listing.cli->options;
    old_executions_begin(&prune->old);
    buf_clear(&prune->rows);
    THOLE_TRY(thole_client_executions(client, instance, prune_take, prune, reterr));
    prune->instances += prune->old.upto > 0;
    if (prune->old.first > 0 && prune->old.upto == 0)
        return THOLE_OK;
    /* Without a row it may wait for its first turn. */
    uint64_t const before = prune->old.first == 0 ? 1 : prune->old.upto + 1;
    thole_slice const reason = thole_slice_from(o->reason);
    THOLE_TRY(o->dry_run ? client_prune_check(client, instance, reason, reterr) /* refuses as the run does */
                         : thole_client_prune(client, instance, before, reason, reterr));
    return prune_print(prune, instance);
}

/* ---- many ---- */

static thole_status prune_command_note_row(void *arg, const thole_instance_info *info)
{
    struct prune *prune = arg;
    return old_executions_possible(info) ? id_set_add(&prune->ids, info->instance) : THOLE_OK;
}

static thole_status prune_listed(struct prune *prune, thole_client *client, thole_error *reterr)
{
    const struct cli *cli = prune->listing.cli;
    thole_list_filter const filter = {.size = sizeof filter,
                                      .orchestration = thole_slice_from(cli->options.orchestration),
                                      .id_prefix = thole_slice_from(cli->options.prefix),
                                      .limit = LIST_ALL};
    thole_status status = thole_client_list(client, &filter, prune_command_note_row, prune, reterr);
    if (prune->ids.full)
        return thole_fail(reterr, THOLE_LIMIT, "too many instances at once: narrow it, by --prefix");
    for (size_t i = 0; i < prune->ids.len && status == THOLE_OK; i++) {
        thole_error error = {.status = THOLE_OK};
        status = prune_command_prune_one(prune, client, prune->ids.ids[i], &error);
        bool const stays = status == THOLE_CONFLICT, gone = status == THOLE_NOT_FOUND;
        if (stays)
            cli_note(cli, "%s", error.text);
        prune->kept += stays;
        if (stays || gone)
            status = THOLE_OK;
        else if (status != THOLE_OK)
            *reterr = error;
    }
    return status;
}

/* ---- the command ---- */

static void say_what(const struct prune *prune)
{
    const struct cli *cli = prune->listing.cli;
    if (cli->options.dry_run && prune->kept > 0)
        cli_note(cli,
                 "%" PRIu64 " histories would be removed, of %" PRIu64
                 " instances they stay; nothing was changed",
                 prune->listing.rows, prune->kept);
    else if (cli->options.dry_run)
        cli_note(cli, "%" PRIu64 " histories would be removed, nothing was changed", prune->listing.rows);
    else if (cli->words_len == 1)
        cli_note(cli, "%" PRIu64 " histories are removed", prune->listing.rows);
    else
        cli_note(cli, "histories of %" PRIu64 " instances are removed, of %" PRIu64 " they stay",
                 prune->instances - prune->kept, prune->kept);
}

int command_prune(struct cli *cli)
{
    struct prune prune = {.instances = 0};
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_DONE;
    if (!prune_command_wish_is_good(cli, &prune.old, &code))
        return code;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    id_set_init(&prune.ids);
    buf_init(&prune.rows, ROWS_BYTES_MAX);
    listing_begin(&prune.listing, cli, "thole.prune.v1", "executions", 0);
    thole_status const status =
        cli->words_len == 1 ? prune_command_prune_one(&prune, client, thole_slice_from(cli->words[0]), &error)
                            : prune_listed(&prune, client, &error);
    code =
        listing_end(&prune.listing, status, &error,
                    prune.kept > 0 ? "nothing is pruned: what could go is held, or has ended"
                                   : "nothing to prune: the first execution and the one that goes on stay");
    if (code == EXIT_DONE && prune.instances > 0)
        say_what(&prune);
    id_set_release(&prune.ids);
    buf_release(&prune.rows);
    thole_client_close(client);
    return code;
}
