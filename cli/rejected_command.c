/* rejected: messages that no engine could take. */
#include "clock.h"
#include "forms.h"
#include "listing.h"
#include "table.h"
#include "text.h"
#include <inttypes.h>
#include <time.h>

enum { REASON_COLUMNS = 200 };

static const struct table_column rejected_columns[] = {
    {"NUMBER", 8, 8, 0, true},
    {"TIME", 24, 24, 3, false},
    {"AGE", 5, 5, 0, true},
    {"CODE", 11, 11, 0, false},
    {"BYTES", 7, 7, 2, true},
    {"SUBJECT", 44, 12, 1, false},
    {"REASON", REASON_COLUMNS, 16, 0, false},
};

/* "12s", "5m", "3h", "6d": how long ago. */
static void rejected_command_age_text(uint64_t then_ms, char *to, size_t cap)
{
    uint64_t const now_ms = clock_wall_ms();
    uint64_t const s = now_ms > then_ms ? (now_ms - then_ms) / 1000 : 0;
    if (s < 120)
        (void)snprintf(to, cap, "%" PRIu64 "s", s);
    else if (s < 120 * 60)
        (void)snprintf(to, cap, "%" PRIu64 "m", s / 60);
    else
        (void)snprintf(to, cap, "%" PRIu64 "%s", s < 48 * 3600 ? s / 3600 : s / 86400,
                       s < 48 * 3600 ? "h" : "d");
}

static void rejected_command_table_row(const thole_rejected_info *info, bool first)
{
    char time[TIME_TEXT_BYTES], age[32];
    struct table table;
    table_begin(&table, rejected_columns, sizeof rejected_columns / sizeof *rejected_columns, first);
    text_time(info->stored_ms, time);
    rejected_command_age_text(info->stored_ms, age, sizeof age);
    table_number(&table, info->number);
    table_text(&table, time);
    table_text(&table, age);
    table_cell(&table, TONE_PLAIN, info->code);
    table_number(&table, info->bytes);
    table_cell(&table, TONE_PLAIN, info->subject);
    table_cell(&table, TONE_PLAIN, info->reason);
    table_release(&table);
}

static const char whose[] = "rejected"; /* in a token: it is of this list */

static thole_status rejected_command_row(void *arg, const thole_rejected_info *info)
{
    struct listing *listing = arg;
    switch (listing_row(listing, "thole.rejected.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: rejected_command_table_row(info, listing->rows == 0); break;
    case LISTING_JSON: form_rejected(&listing->json, info); break;
    case LISTING_NAME: break; /* they have none */
    }
    listing_place(listing, &info->number, 1, thole_slice_from(whose));
    return listing_row_end(listing);
}

static int rejected_command_list(const struct cli *cli, thole_client *client, uint64_t behind)
{
    struct listing listing;
    thole_error error = {.status = THOLE_OK};
    listing_begin(&listing, cli, "thole.rejected_list.v1", "rejected", cli->options.limit);
    thole_status const status =
        thole_client_rejected(client, behind, listing_wish(&listing), rejected_command_row, &listing, &error);
    return listing_end(&listing, status, &error, "nothing was rejected");
}

/* The page to begin with. False after a complaint. */
static bool rejected_command_read_place(const struct cli *cli, uint64_t *ret_behind)
{
    struct buf of;
    bool good = listing_place_read(cli, ret_behind, 1, &of);
    if (good && cli->options.next != NULL && !thole_slice_equal(buf_bytes(&of), thole_slice_from(whose))) {
        (void)cli_misused(cli, "--next: %.60s is a token of another list", cli->options.next);
        good = false;
    }
    buf_release(&of);
    return good;
}

int command_rejected(struct cli *cli)
{
    uint64_t behind = 0;
    int code = EXIT_USAGE;
    if (!rejected_command_read_place(cli, &behind))
        return code;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    code = rejected_command_list(cli, client, behind);
    thole_client_close(client);
    return code;
}
