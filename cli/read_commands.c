/* history, list. */
#include "read_commands.h"
#include "client_internal.h"
#include "clock.h"
#include "history_file.h"
#include "listing.h"
#include "text.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { CELL_BYTES_MAX = 4096, DATA_COLUMNS = 60, NAME_COLUMNS = 24, ID_COLUMNS = 36, DETAIL_COLUMNS = 60 };

/* Pads with spaces; what is longer pushes the rest of its line to the right and is not cut. */
static void print_cell(thole_slice text, size_t columns, size_t columns_max)
{
    struct buf cell;
    buf_init(&cell, CELL_BYTES_MAX);
    text_safe(&cell, text, columns_max);
    size_t width = 0;
    for (size_t i = 0; i < cell.len; i++)
        width += (cell.ptr[i] & 0xc0) != 0x80 ? 1 : 0;
    (void)printf("%s%*s", buf_cstr(&cell), (int)(width < columns ? columns - width + 2 : 2), "");
    buf_release(&cell);
}

static void print_last_cell(thole_slice text, size_t columns_max)
{
    struct buf cell;
    buf_init(&cell, CELL_BYTES_MAX);
    text_safe(&cell, text, columns_max);
    (void)printf("%s\n", buf_cstr(&cell));
    buf_release(&cell);
}

/* A reader that went away ends the reading. */
static thole_status output_status(void)
{
    return ferror(stdout) ? THOLE_CANCELLED : THOLE_OK;
}

static int verdict(const struct cli *cli, const char *object, thole_error *error, thole_status status)
{
    error->status = status;
    if (status == THOLE_OK || (status == THOLE_CANCELLED && ferror(stdout)))
        return EXIT_DONE; /* cli_finish() reports an error of stdout */
    return cli_complain(cli, object, error);
}

/* ---- history ---- */

struct timeline {
    const struct cli *cli;
    struct json json;
    uint64_t events;
};

static void history_details(struct json *json, const thole_history_event *event)
{
    if (event->try_number != 0)
        json_member_number(json, "try", event->try_number);
    if (event->version != 0)
        json_member_number(json, "version", event->version);
    if (event->status != THOLE_OK)
        json_member_text(json, "status", thole_status_name(event->status));
    if (event->error_type.len > 0)
        json_member(json, "error_type", event->error_type);
    if (event->cause != NULL)
        json_member_text(json, "cause", event->cause);
    if (event->queue.len > 0)
        json_member(json, "queue", event->queue);
    if (event->pruned_before != 0)
        json_member_number(json, "pruned_before", event->pruned_before);
    if (event->instance.len > 0)
        json_member(json, "other", event->instance);
    if (event->request_id.len > 0)
        json_member(json, "request_id", event->request_id);
}

static void history_members(struct json *json, const thole_history_event *event)
{
    json_member_number(json, "execution", event->execution);
    json_member_number(json, "id", event->id);
    json_member_text(json, "kind", event->kind);
    if (event->ref != 0)
        json_member_number(json, "ref", event->ref);
    if (event->name.len > 0)
        json_member(json, "name", event->name);
    json_member_data(json, "data", event->data);
    history_details(json, event);
    if (event->due_ms != 0)
        json_member_time(json, "due", event->due_ms);
    json_member_time(json, "time", event->time_ms);
    json_member_number(json, "turn", event->turn);
    json_member_number(json, "sequence", event->sequence);
}

/* "of 5", "of 5 try 2", "checkout", "checkout@2". */
static void history_name(const thole_history_event *event, char *to, size_t cap)
{
    int n = event->ref != 0 ? snprintf(to, cap, "of %" PRIu64, event->ref)
                            : snprintf(to, cap, "%.*s", THOLE_FMT(event->name));
    if (n >= 0 && (size_t)n < cap && event->try_number > 1)
        (void)snprintf(to + n, cap - (size_t)n, " try %" PRIu32, event->try_number);
    else if (n >= 0 && (size_t)n < cap && event->version > 1)
        (void)snprintf(to + n, cap - (size_t)n, "@%" PRIu32, event->version);
}

/* What there is to say beside the payload comes before it. */
static void history_data(const thole_history_event *event)
{
    struct buf text;
    buf_init(&text, CELL_BYTES_MAX);
    if (event->due_ms != 0)
        buf_printf(&text, "in %" PRIu64 " ms ",
                   event->due_ms > event->time_ms ? event->due_ms - event->time_ms : 0);
    if (event->pruned_before != 0)
        buf_printf(&text, "executions before %" PRIu64 ", but the first ", event->pruned_before);
    if (event->cause != NULL && !thole_slice_equal(event->data, thole_slice_from(event->cause)))
        buf_printf(&text, "%s ", event->cause);
    if (event->error_type.len > 0)
        buf_printf(&text, "(%.*s) ", THOLE_FMT(event->error_type));
    if (event->instance.len > 0)
        buf_printf(&text, "[%.*s] ", THOLE_FMT(event->instance));
    buf_append(&text, event->data.ptr,
               event->data.len < DATA_COLUMNS * 4 ? event->data.len : DATA_COLUMNS * 4);
    while (text.len > 0 && text.ptr[text.len - 1] == ' ' && event->data.len == 0)
        text.len--;
    print_last_cell(buf_bytes(&text), DATA_COLUMNS);
    buf_release(&text);
}

static void history_row(struct timeline *timeline, const thole_history_event *event)
{
    char time[TIME_TEXT_BYTES], name[THOLE_NAME_BYTES_MAX + 48];
    if (timeline->events == 0)
        (void)printf("%-24s  %4s  %4s  %-20s  %-24s  %s\n", "TIME", "EXEC", "ID", "EVENT", "NAME", "DATA");
    text_time(event->time_ms, time);
    history_name(event, name, sizeof name);
    (void)printf("%-24s  %4" PRIu64 "  %4" PRIu64 "  %-20s  ", time, event->execution, event->id,
                 event->kind);
    print_cell(thole_slice_from(name), NAME_COLUMNS, THOLE_NAME_BYTES_MAX + 16);
    history_data(event);
}

static void history_begin(struct timeline *timeline)
{
    json_document(&timeline->json, stdout, "thole.history.v1");
    json_member_text(&timeline->json, "instance", timeline->cli->words[0]);
}

static thole_status print_event(void *arg, const thole_history_event *event)
{
    struct timeline *timeline = arg;
    struct json *json = &timeline->json;
    switch ((enum output)timeline->cli->options.output) {
    case OUTPUT_TABLE: history_row(timeline, event); break;
    case OUTPUT_JSON:
        if (timeline->events == 0) {
            history_begin(timeline);
            json_key(json, "events");
            json_array(json);
        }
        json_object(json);
        history_members(json, event);
        json_end(json);
        break;
    case OUTPUT_JSONL:
        history_begin(timeline);
        history_members(json, event);
        json_end(json);
        break;
    }
    timeline->events++;
    return output_status();
}

/* ---- history, as it is stored ---- */

struct raw {
    FILE *to;
    uint64_t records;
};

static thole_status write_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct raw *raw = arg;
    history_file_record(raw->to, sequence, bytes);
    raw->records++;
    return ferror(raw->to) ? THOLE_CANCELLED : THOLE_OK;
}

static int write_raw(const struct cli *cli, thole_client *client, FILE *to)
{
    struct raw raw = {.to = to};
    thole_error error = {.status = THOLE_OK};
    thole_slice const id = thole_slice_from(cli->words[0]);
    uint32_t const p = subject_partition(id, client->topology.partitions);
    history_file_begin(to, client->topology.ns, p, id);
    error.status = client_history_records(client, id, write_record, &raw, &error);
    if (error.status == THOLE_OK)
        history_file_end(to, raw.records);
    if (error.status != THOLE_OK && error.status != THOLE_CANCELLED)
        return cli_complain(cli, cli->words[0], &error);
    return EXIT_DONE;
}

/* Not a device or a link, which may be given too: /dev/stdout. */
static void remove_file(const char *path)
{
    struct stat about;
    if (lstat(path, &about) == 0 && S_ISREG(about.st_mode))
        (void)remove(path);
}

static int history_raw(const struct cli *cli, thole_client *client)
{
    const char *path = cli->options.raw;
    if (strcmp(path, "-") == 0)
        return write_raw(cli, client, stdout); /* cli_finish() reports an error of stdout */
    FILE *to = fopen(path, "we");
    if (to == NULL)
        return cli_misused(cli, "cannot write %s: %s", path, strerror(errno));
    int code = write_raw(cli, client, to);
    bool const failed = ferror(to) != 0;
    if ((fclose(to) != 0 || failed) && code == EXIT_DONE)
        code = cli_misused(cli, "cannot write %s: %s", path, strerror(errno));
    if (code != EXIT_DONE)
        remove_file(path);
    return code;
}

int command_history(struct cli *cli)
{
    struct timeline timeline = {.cli = cli};
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_DONE;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    if (cli->options.raw != NULL) {
        code = history_raw(cli, client);
        thole_client_close(client);
        return code;
    }
    thole_status const status =
        thole_client_history(client, thole_slice_from(cli->words[0]), print_event, &timeline, &error);
    if (cli->options.output == OUTPUT_JSON && timeline.events > 0) {
        json_end(&timeline.json);
        json_member_bool(&timeline.json, "complete",
                         status == THOLE_OK); /* false: the reading broke off, see stderr */
        json_end(&timeline.json);
    }
    code = verdict(cli, cli->words[0], &error, status);
    thole_client_close(client);
    return code;
}

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

static bool make_filter(const struct cli *cli, thole_list_filter *ret)
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
    bool const good = listing_place_read(cli, &behind_ms, 1, &behind) && make_filter(cli, &filter);
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
