/* list. */
#include "read_commands.h"
#include "cells.h"
#include "clock.h"
#include "listing.h"
#include "text.h"
#include <inttypes.h>

enum { ID_COLUMNS = 36, DETAIL_COLUMNS = 60 };

/* ---- list ---- */

void info_members(struct json *json, const thole_instance_info *info)
{
    json_member(json, "instance", info->instance);
    json_member(json, "orchestration", info->orchestration);
    if (info->version != 0)
        json_member_number(json, "version", info->version);
    json_member_text(json, "status", thole_instance_status_name(info->status));
    json_member_number(json, "execution", info->execution);
    json_member_time(json, "created", info->created_ms);
    json_member_time(json, "updated", info->updated_ms);
    json_member_data(json, "detail", info->detail);
    if (info->custom_status.len > 0)
        json_member_data(json, "custom_status", info->custom_status);
    if (info->parent.len > 0)
        json_member(json, "parent", info->parent);
    json_member_number(json, "turns", info->turns);
    json_member_number(json, "partition", info->partition);
    json_member_number(json, "open_activities", info->open_activities);
    json_member_number(json, "open_timers", info->open_timers);
}

static void list_table_row(const thole_instance_info *info, bool first)
{
    char created[TIME_TEXT_BYTES], updated[TIME_TEXT_BYTES], name[THOLE_NAME_BYTES_MAX + 16];
    if (first)
        (void)printf("%-36s  %-10s  %-20s  %-24s  %-24s  %s\n", "ID", "STATUS", "ORCHESTRATION", "CREATED",
                     "UPDATED", "DETAIL");
    text_time(info->created_ms, created);
    text_time(info->updated_ms, updated);
    print_cell(info->instance, ID_COLUMNS, THOLE_ID_BYTES_MAX);
    (void)printf("%-10s  ", thole_instance_status_name(info->status));
    int const n = snprintf(name, sizeof name, "%.*s", THOLE_FMT(info->orchestration));
    if (n >= 0 && (size_t)n < sizeof name && info->version > 1)
        (void)snprintf(name + n, sizeof name - (size_t)n, "@%" PRIu32, info->version);
    print_cell(thole_slice_from(name), 20, sizeof name);
    (void)printf("%-24s  %-24s  ", created, updated);
    print_last_cell(info->detail.len > 0 ? info->detail : info->custom_status, DETAIL_COLUMNS);
}

static thole_status list_row(void *arg, const thole_instance_info *info)
{
    struct listing *listing = arg;
    if (info->foreign)
        return listing_skip(listing, "instances", info->instance);
    switch (listing_row(listing, "thole.instance.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: list_table_row(info, listing->rows == 0); break;
    case LISTING_JSON: info_members(&listing->json, info); break;
    }
    listing_place(listing, &info->created_ms, 1, info->instance);
    return listing_row_end(listing);
}

/* Empty leaves *ret 0. False after a complaint. */
static bool read_time(const struct cli *cli, const char *flag, const char *text, uint64_t *ret)
{
    if (text == NULL || text_time_parse(text, clock_wall_ms(), ret))
        return true;
    (void)cli_misused(cli,
                      "--%s: %.60s is no time; expected 2026-11-21T09:30:00Z, 2026-11-21, or a duration such "
                      "as 2h, which is that long ago",
                      flag, text);
    return false;
}

bool list_filter_make(const struct cli *cli, thole_list_filter *ret)
{
    *ret = (thole_list_filter){
        .size = sizeof *ret,
        .status = (thole_instance_status)cli->options.status,
        .orchestration = thole_slice_from(cli->options.orchestration),
        .id_prefix = thole_slice_from(cli->options.prefix),
        .parent = thole_slice_from(cli->options.parent),
    };
    return read_time(cli, "after", cli->options.after, &ret->created_after_ms) &&
           read_time(cli, "before", cli->options.before, &ret->created_before_ms);
}

int command_list(struct cli *cli)
{
    struct listing listing;
    thole_error error = {.status = THOLE_OK};
    thole_list_filter filter;
    struct buf behind;
    uint64_t behind_ms;
    int code = EXIT_USAGE;
    bool const good = listing_place_read(cli, &behind_ms, 1, &behind) && list_filter_make(cli, &filter);
    thole_client *client = good ? cli_connect(cli, &code) : NULL;
    if (client == NULL) {
        buf_release(&behind);
        return code;
    }
    filter.behind_instance = buf_bytes(&behind);
    filter.behind_created_ms = behind_ms;
    listing_begin(&listing, cli, "thole.list.v1", "instances", cli->options.limit);
    filter.limit = listing_wish(&listing);
    thole_status const status = thole_client_list(client, &filter, list_row, &listing, &error);
    code = listing_end(&listing, status, &error, "no instances");
    buf_release(&behind);
    thole_client_close(client);
    return code;
}
