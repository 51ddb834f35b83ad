/* list: rows of the projection. */
#include "clock.h"
#include "forms.h"
#include "hash.h"
#include "listing.h"
#include "live.h"
#include "read_commands.h"
#include "table.h"
#include "text.h"
#include <inttypes.h>
#include <stdlib.h>

enum {
    PARENT_COLUMNS = 24,
    DETAIL_COLUMNS = 60,
    DETAIL_BYTES = 1024,
    WATCH_MS = 2000,
    SEEN_BYTES_MAX = 64 * 1024 * 1024
};

static const struct table_column list_columns[] = {
    {"ID", 36, 36, 0, false},      {"STATUS", 10, 10, 0, false},  {"ORCHESTRATION", 20, 8, 0, false},
    {"CREATED", 24, 24, 3, false}, {"UPDATED", 24, 24, 2, false}, {"DETAIL", DETAIL_COLUMNS, 10, 1, false},
};
static const struct table_column list_wide_columns[] = {
    {"ID", 36, 36, 0, false},
    {"STATUS", 10, 10, 0, false},
    {"ORCHESTRATION", 20, 8, 0, false},
    {"CREATED", 24, 24, 5, false},
    {"UPDATED", 24, 24, 4, false},
    {"EXEC", 4, 4, 6, true},
    {"PARTITION", 9, 9, 9, true},
    {"TURNS", 6, 6, 7, true},
    {"ACTIVITIES", 10, 10, 2, true},
    {"TIMERS", 6, 6, 3, true},
    {"PARENT", PARENT_COLUMNS, PARENT_COLUMNS, 8, false},
    {"DETAIL", DETAIL_BYTES, 10, 1, false},
};

static void list_table_init(struct table *table, const struct cli *cli)
{
    if (cli->wide)
        table_init(table, list_wide_columns, sizeof list_wide_columns / sizeof *list_wide_columns,
                   terminal_columns());
    else
        table_init(table, list_columns, sizeof list_columns / sizeof *list_columns, terminal_columns());
}

static void list_table_row(struct table *table, const thole_instance_info *info, bool first, bool wide)
{
    char created[TIME_TEXT_BYTES], updated[TIME_TEXT_BYTES], name[THOLE_NAME_BYTES_MAX + 16];
    if (first)
        table_head(table);
    text_time(info->created_ms, created);
    text_time(info->updated_ms, updated);
    int const n = snprintf(name, sizeof name, "%.*s", THOLE_FMT(info->orchestration));
    if (n >= 0 && (size_t)n < sizeof name && info->version > 1)
        (void)snprintf(name + n, sizeof name - (size_t)n, "@%" PRIu32, info->version);
    table_cell(table, TONE_PLAIN, info->instance);
    table_cell(table, tone_of_status(info->status),
               thole_slice_from(thole_instance_status_name(info->status)));
    table_text(table, name);
    table_text(table, created);
    table_text(table, updated);
    if (wide) {
        table_number(table, info->execution);
        table_number(table, info->partition);
        table_number(table, info->turns);
        table_number(table, info->open_activities);
        table_number(table, info->open_timers);
        table_cell(table, TONE_PLAIN, info->parent.len > 0 ? info->parent : THOLE_STR("-"));
    }
    table_cell(table, TONE_PLAIN, info->detail.len > 0 ? info->detail : info->custom_status);
}

struct list_reading {
    struct listing listing;
    struct table table;
};

static thole_status list_command_list_row(void *arg, const thole_instance_info *info)
{
    struct list_reading *reading = arg;
    struct listing *const listing = &reading->listing;
    if (info->foreign)
        return listing_skip(listing, "instances", info->instance);
    switch (listing_row(listing, "thole.instance.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: list_table_row(&reading->table, info, listing->rows == 0, listing->cli->wide); break;
    case LISTING_JSON: form_instance(&listing->json, info); break;
    case LISTING_NAME: listing_name(info->instance); break;
    }
    listing_place(listing, &info->created_ms, 1, info->instance);
    return listing_row_end(listing);
}

/* Empty leaves *ret 0. False after a complaint. */
static bool list_command_read_time(const struct cli *cli, const char *flag, const char *text, uint64_t *ret)
{
    if (text == NULL || text_time_parse(text, clock_wall_ms(), ret))
        return true;
    (void)cli_misused(cli,
                      "--%s: %.60s is no time; expected 2026-11-21T09:30:00Z, 2026-11-21, or a duration such "
                      "as 2h, which is that long ago",
                      flag, text);
    return false;
}

/* cli_statuses are in the order of their values; the first is any, the last all that have not ended. */
uint32_t cli_wanted_statuses(const struct cli *cli)
{
    enum { ANY = 1, OPEN = 1 << THOLE_INSTANCE_PENDING };
    uint32_t const given = cli->options.statuses;
    if ((given & ANY) != 0)
        return 0;
    return (given & ~(uint32_t)OPEN) | ((given & OPEN) != 0 ? (uint32_t)THOLE_STATUSES_OPEN : 0);
}

/* One is a text, as it was before there could be several. */
void list_statuses_json(const struct cli *cli, struct json *json)
{
    uint32_t const statuses = cli_wanted_statuses(cli);
    bool const one = statuses != 0 && (statuses & (statuses - 1)) == 0;
    if (statuses == 0)
        return;
    json_key(json, "status");
    if (!one)
        json_array(json);
    for (uint32_t status = 0; status < 32; status++)
        if ((statuses >> status & 1) != 0)
            json_string(json, thole_slice_from(thole_instance_status_name((thole_instance_status)status)));
    if (!one)
        json_end(json);
}

bool list_filter_make(const struct cli *cli, thole_list_filter *ret)
{
    *ret = (thole_list_filter){
        .size = sizeof *ret,
        .statuses = cli_wanted_statuses(cli),
        .orchestration = thole_slice_from(cli->options.orchestration),
        .id_prefix = thole_slice_from(cli->options.prefix),
        .parent = thole_slice_from(cli->options.parent),
        .custom_status = thole_slice_from(cli->options.custom_status),
    };
    return list_command_read_time(cli, "after", cli->options.after, &ret->created_after_ms) &&
           list_command_read_time(cli, "before", cli->options.before, &ret->created_before_ms);
}

/* ---- watch ---- */

struct seen {         /* a row that was printed */
    uint64_t id, row; /* hashes */
};

struct watching {
    const struct cli *cli;
    thole_client *client;
    thole_list_filter filter;
    struct buf before, now; /* struct seen, of the last drawing by id, and of this one */
    struct table table;     /* of this drawing: the window may have another size each time */
    bool headed;
};

static int compare_seen(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool row_changed(const struct watching *watching, const struct seen *row)
{
    const struct seen *old = watching->before.len == 0
                                 ? NULL
                                 : bsearch(row, watching->before.ptr, watching->before.len / sizeof *row,
                                           sizeof *row, compare_seen);
    return old == NULL || old->row != row->row;
}

static uint64_t row_hash(const thole_instance_info *info)
{
    uint64_t const numbers[] = {info->execution, info->status, info->updated_ms, info->open_activities,
                                info->open_timers};
    uint64_t hash = hash_bytes(hash_bytes(1, info->detail), info->custom_status);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        hash = hash_number(hash, numbers[i]);
    return hash;
}

/* On a terminal each row is drawn each time; elsewhere those that changed. */
static thole_status watch_row(void *arg, const thole_instance_info *info)
{
    struct watching *watching = arg;
    struct seen const seen = {hash_bytes(0, info->instance), row_hash(info)};
    struct json json;
    if (info->foreign)
        return THOLE_OK;
    buf_append(&watching->now, &seen, sizeof seen);
    if (!terminal_there() && !row_changed(watching, &seen))
        return THOLE_OK;
    if (cli_is_json(watching->cli)) {
        json_document(&json, stdout, "thole.instance.v1");
        form_instance(&json, info);
        json_end(&json);
    } else {
        list_table_row(&watching->table, info, !watching->headed, watching->cli->wide);
        watching->headed = true;
    }
    return ferror(stdout) ? THOLE_CANCELLED : THOLE_OK;
}

static thole_status watch_draw(void *arg, thole_error *reterr)
{
    struct watching *watching = arg;
    watching->headed = watching->headed && !terminal_there();
    watching->now.len = 0;
    list_table_init(&watching->table, watching->cli);
    thole_status const status =
        thole_client_list(watching->client, &watching->filter, watch_row, watching, reterr);
    table_release(&watching->table);
    if (status != THOLE_OK)
        return status;
    if (buf_status(&watching->now) != THOLE_OK)
        return thole_fail(reterr, THOLE_LIMIT, "more rows than can be compared; use a smaller --limit");
    if (watching->now.len > 0)
        qsort(watching->now.ptr, watching->now.len / sizeof(struct seen), sizeof(struct seen), compare_seen);
    else if (terminal_there())
        (void)printf("no instances\n");
    struct buf const before = watching->before;
    watching->before = watching->now;
    watching->now = before;
    return THOLE_OK;
}

static int list_watch(const struct cli *cli)
{
    struct watching watching = {.cli = cli};
    int code = EXIT_USAGE;
    if (cli->options.output == OUTPUT_JSON || cli->options.output == OUTPUT_NAME || cli->options.next != NULL)
        return cli_misused(
            cli, "--watch prints a table, or with -o jsonl a line for each change, from the newest on");
    if (!list_filter_make(cli, &watching.filter))
        return code;
    watching.filter.limit = cli->options.limit;
    if (terminal_there() && watching.filter.limit > terminal_lines() - 2)
        watching.filter.limit = terminal_lines() - 2;
    watching.client = cli_connect(cli, &code);
    if (watching.client == NULL)
        return code;
    buf_init(&watching.before, SEEN_BYTES_MAX);
    buf_init(&watching.now, SEEN_BYTES_MAX);
    code = live_run(cli, watching.client, WATCH_MS, watch_draw, &watching);
    buf_release(&watching.before);
    buf_release(&watching.now);
    thole_client_close(watching.client);
    return code;
}

/* ---- the verb ---- */

static int list_once(const struct cli *cli)
{
    struct list_reading reading;
    struct listing *const listing = &reading.listing;
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
    list_table_init(&reading.table, cli);
    listing_begin(listing, cli, "thole.list.v1", "instances", cli->options.limit);
    filter.limit = listing_wish(listing);
    thole_status const status = thole_client_list(client, &filter, list_command_list_row, &reading, &error);
    code = listing_end(listing, status, &error, "no instances");
    table_release(&reading.table);
    buf_release(&behind);
    thole_client_close(client);
    return code;
}

int command_list(struct cli *cli)
{
    return cli->options.watch ? list_watch(cli) : list_once(cli);
}

int command_watch(struct cli *cli)
{
    return list_watch(cli);
}
