/* hold: instances that must not be deleted, pruned or archived. */
#include "client_internal.h"
#include "clock.h"
#include "holds.h"
#include "listing.h"
#include "table.h"
#include "text.h"
#include <string.h>

enum { COLUMNS_MAX = 200 };

/* ---- rows ---- */

static const struct table_column hold_columns[] = {
    {"INSTANCE", 36, 12, 0, false},        {"STATE", 8, 8, 0, false},
    {"SINCE", 24, 24, 2, false},           {"BY", 24, 10, 1, false},
    {"REASON", COLUMNS_MAX, 12, 0, false},
};

static void hold_command_table_row(const struct hold *hold, bool first)
{
    char time[TIME_TEXT_BYTES];
    struct table table;
    table_begin(&table, hold_columns, sizeof hold_columns / sizeof *hold_columns, first);
    text_time(hold->time_ms, time);
    table_cell(&table, TONE_PLAIN, hold->instance);
    table_text(&table, hold->held ? "held" : "released");
    table_text(&table, time);
    table_cell(&table, TONE_PLAIN, hold->by);
    table_cell(&table, TONE_PLAIN, hold->reason);
    table_release(&table);
}

static thole_status print_hold(void *arg, const struct hold *hold)
{
    struct listing *listing = arg;
    struct json *json = &listing->json;
    switch (listing_row(listing, "thole.hold.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: hold_command_table_row(hold, listing->rows == 0); break;
    case LISTING_NAME: listing_name(hold->instance); break;
    case LISTING_JSON:
        json_member(json, "instance", hold->instance);
        json_member_bool(json, "held", hold->held);
        json_member_time(json, "time", hold->time_ms);
        json_member(json, "by", hold->by);
        json_member(json, "reason", hold->reason);
        json_member_number(json, "revision", hold->revision);
        break;
    }
    return listing_row_end(listing);
}

/* ---- the verbs ---- */

static thole_status change_one(thole_client *client, struct hold *hold, struct listing *listing,
                               thole_error *reterr)
{
    THOLE_TRY(holds_put(client->connection, client->topology.ns, hold, &hold->revision, reterr));
    return print_hold(listing, hold);
}

static int hold_command_change(struct cli *cli, thole_client *client, bool held)
{
    thole_error error = {.status = THOLE_OK};
    struct listing listing;
    thole_status status = held ? holds_require(client->connection, client->topology.ns, &error) : THOLE_OK;
    listing_begin(&listing, cli, "thole.holds.v1", "holds", 0);
    for (int i = 1; i < cli->words_len && status == THOLE_OK; i++) {
        struct hold hold = {.instance = thole_slice_from(cli->words[i]),
                            .held = held,
                            .by = thole_slice_from(client->actor),
                            .reason = thole_slice_from(cli->options.reason),
                            .time_ms = clock_wall_ms()};
        status = change_one(client, &hold, &listing, &error);
    }
    return listing_end(&listing, status, &error, "");
}

static int hold_command_list(struct cli *cli, thole_client *client)
{
    thole_error error = {.status = THOLE_OK};
    thole_status status = THOLE_OK;
    struct listing listing;
    listing_begin(&listing, cli, "thole.holds.v1", "holds", 0);
    if (cli->words_len == 1)
        status = holds_list(client->connection, client->topology.ns, print_hold, &listing, &error);
    for (int i = 1; i < cli->words_len && status == THOLE_OK; i++) {
        thole_slice const id = thole_slice_from(cli->words[i]);
        status = client_check_id(id, &error);
        if (status == THOLE_OK)
            status = holds_history(client->connection, client->topology.ns, id, print_hold, &listing, &error);
    }
    return listing_end(&listing, status, &error,
                       cli->words_len == 1 ? "no instance is under legal hold" : "there was no hold");
}

static bool has_words(const struct cli *cli, int *ret_code)
{
    const char *const reason = cli->options.reason;
    if (cli->words_len < 2)
        *ret_code = cli_misused(cli, "which instances? thole hold %s ID...", cli->words[0]);
    else if (reason == NULL || reason[0] == '\0')
        *ret_code = cli_misused(cli, "--reason is missing: it is kept with the hold");
    else if (!cli_reason_is_good(cli))
        *ret_code = EXIT_USAGE;
    else
        return true;
    return false;
}

int command_hold(struct cli *cli)
{
    bool const set = strcmp(cli->words[0], "set") == 0, lists = strcmp(cli->words[0], "list") == 0;
    int code = EXIT_USAGE;
    if (!set && !lists && strcmp(cli->words[0], "release") != 0)
        return cli_misused(cli, "unknown word: %.60s; expected set, release or list", cli->words[0]);
    if (!lists && !has_words(cli, &code))
        return code;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    code = lists ? hold_command_list(cli, client) : hold_command_change(cli, client, set);
    thole_client_close(client);
    return code;
}
