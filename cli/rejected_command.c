/* rejected: messages that no engine could take. */
#include "clock.h"
#include "forms.h"
#include "listing.h"
#include "text.h"
#include <inttypes.h>
#include <time.h>

enum { CELL_BYTES_MAX = 4096, SUBJECT_COLUMNS = 300, REASON_COLUMNS = 200 };

static void print_safe(thole_slice text, size_t columns, int width)
{
    struct buf cell;
    buf_init(&cell, CELL_BYTES_MAX);
    text_safe(&cell, text, columns);
    (void)printf("%-*s", width, buf_cstr(&cell));
    buf_release(&cell);
}

/* "12s", "5m", "3h", "6d": how long ago. */
static void age_text(uint64_t then_ms, char *to, size_t cap)
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

static void table_row(const thole_rejected_info *info, bool first)
{
    char time[TIME_TEXT_BYTES], age[32];
    if (first)
        (void)printf("%8s  %-24s  %5s  %-11s  %7s  %-44s  %s\n", "NUMBER", "TIME", "AGE", "CODE", "BYTES",
                     "SUBJECT", "REASON");
    text_time(info->stored_ms, time);
    age_text(info->stored_ms, age, sizeof age);
    (void)printf("%8" PRIu64 "  %-24s  %5s  ", info->number, time, age);
    print_safe(info->code, THOLE_NAME_BYTES_MAX, 11);
    (void)printf("  %7" PRIu64 "  ", info->bytes);
    print_safe(info->subject, SUBJECT_COLUMNS, 44);
    (void)printf("  ");
    print_safe(info->reason, REASON_COLUMNS, 0);
    (void)printf("\n");
}

static const char whose[] = "rejected"; /* in a token: it is of this list */

static thole_status row(void *arg, const thole_rejected_info *info)
{
    struct listing *listing = arg;
    switch (listing_row(listing, "thole.rejected.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: table_row(info, listing->rows == 0); break;
    case LISTING_JSON: form_rejected(&listing->json, info); break;
    case LISTING_NAME: break; /* they have none */
    }
    listing_place(listing, &info->number, 1, thole_slice_from(whose));
    return listing_row_end(listing);
}

static int list(const struct cli *cli, thole_client *client, uint64_t behind)
{
    struct listing listing;
    thole_error error = {.status = THOLE_OK};
    listing_begin(&listing, cli, "thole.rejected_list.v1", "rejected", cli->options.limit);
    thole_status const status =
        thole_client_rejected(client, behind, listing_wish(&listing), row, &listing, &error);
    return listing_end(&listing, status, &error, "nothing was rejected");
}

/* The page to begin with. False after a complaint. */
static bool read_place(const struct cli *cli, uint64_t *ret_behind)
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
    if (!read_place(cli, &behind))
        return code;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    code = list(cli, client, behind);
    thole_client_close(client);
    return code;
}
