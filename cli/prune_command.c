/* prune: histories of old executions. */
#include "clock.h"
#include "listing.h"
#include "text.h"
#include "values.h"
#include <inttypes.h>
#include <string.h>
#include <time.h>

struct prune {
    struct listing listing;
    uint64_t before;       /* number of an execution; 0: by time */
    uint64_t ended_before; /* milliseconds since 1970 */
    uint64_t first;        /* stays whatever it is; 0: none seen yet */
    uint64_t found;        /* the last one that goes; 0: none */
};

/* ---- what is meant ---- */

static bool parse_before(const struct cli *cli, struct prune *ret, int *ret_code)
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

static bool goes(const struct prune *prune, const thole_execution_info *info)
{
    if (info->execution == prune->first || info->status != THOLE_INSTANCE_CONTINUED_AS_NEW)
        return false;
    return prune->before > 0 ? info->execution < prune->before : info->ended_ms < prune->ended_before;
}

/* ---- what it comes to ---- */

static void table_row(const thole_execution_info *info, bool first)
{
    char started[TIME_TEXT_BYTES], ended[TIME_TEXT_BYTES];
    if (first)
        (void)printf("%9s  %-24s  %-24s  %s\n", "EXECUTION", "STARTED", "ENDED", "TURNS");
    text_time(info->started_ms, started);
    text_time(info->ended_ms, ended);
    (void)printf("%9" PRIu64 "  %-24s  %-24s  %" PRIu64 "\n", info->execution, started, ended, info->turns);
}

static void row_members(struct json *json, const thole_execution_info *info)
{
    json_member_number(json, "execution", info->execution);
    json_member_time(json, "started", info->started_ms);
    json_member_time(json, "ended", info->ended_ms);
    json_member_number(json, "turns", info->turns);
}

static thole_status prune_row(void *arg, const thole_execution_info *info)
{
    struct prune *prune = arg;
    if (prune->first == 0)
        prune->first = info->execution;
    if (!goes(prune, info))
        return THOLE_OK;
    prune->found = info->execution;
    if (listing_row(&prune->listing, "thole.execution.v1") == LISTING_JSON)
        row_members(&prune->listing.json, info);
    else
        table_row(info, prune->listing.rows == 0);
    return listing_row_end(&prune->listing);
}

/* ---- the command ---- */

static void say_what(const struct cli *cli, const struct prune *prune)
{
    if (cli->options.dry_run)
        cli_note(cli, "%" PRIu64 " histories would be removed, nothing was changed", prune->listing.rows);
    else
        cli_note(cli, "%" PRIu64 " histories are removed", prune->listing.rows);
}

/* The rows say which; the engine is told up to where, since it never takes more than has ended. */
int command_prune(struct cli *cli)
{
    struct prune prune = {.first = 0};
    thole_error error = {.status = THOLE_OK};
    thole_slice const instance = thole_slice_from(cli->words[0]);
    int code = EXIT_DONE;
    if (!parse_before(cli, &prune, &code))
        return code;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    listing_begin(&prune.listing, cli, "thole.prune.v1", "executions", 0);
    thole_status status = thole_client_executions(client, instance, prune_row, &prune, &error);
    if (status == THOLE_OK && prune.first == 0)
        status = thole_fail(&error, THOLE_NOT_FOUND, "there is no instance \"%s\" in namespace %s",
                            cli->words[0], cli->options.ns);
    if (status == THOLE_OK && prune.found > 0 && !cli->options.dry_run)
        status = thole_client_prune(client, instance, prune.found + 1, thole_slice_from(cli->options.reason),
                                    &error);
    code = listing_end(&prune.listing, status, &error,
                       "nothing to prune: the first execution and the one that goes on stay");
    if (code == EXIT_DONE && prune.found > 0)
        say_what(cli, &prune);
    thole_client_close(client);
    return code;
}
