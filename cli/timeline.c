/* A history on stdout. */
#include "timeline.h"
#include "forms.h"
#include "table.h"
#include "text.h"
#include <inttypes.h>

enum { CELL_BYTES_MAX = 4096, DATA_COLUMNS = 60, NAME_COLUMNS = 24, WHO_COLUMNS = 32 };

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

/* The facts beside the payload come before it. */
static void history_data(const thole_history_event *event, struct buf *to)
{
    if (event->due_ms != 0)
        buf_printf(to, "in %" PRIu64 " ms ",
                   event->due_ms > event->time_ms ? event->due_ms - event->time_ms : 0);
    if (event->pruned_before != 0)
        buf_printf(to, "executions before %" PRIu64 ", but the first ", event->pruned_before);
    if (event->cause != NULL && !thole_slice_equal(event->data, thole_slice_from(event->cause)))
        buf_printf(to, "%s ", event->cause);
    if (event->error_type.len > 0)
        buf_printf(to, "(%.*s) ", THOLE_FMT(event->error_type));
    if (event->instance.len > 0)
        buf_printf(to, "[%.*s] ", THOLE_FMT(event->instance));
    if (event->redacted)
        buf_text(to, event->data.len > 0 ? "(in part redacted) " : "(redacted)");
    buf_append(to, event->data.ptr, event->data.len < DATA_COLUMNS * 4 ? event->data.len : DATA_COLUMNS * 4);
    while (to->len > 0 && to->ptr[to->len - 1] == ' ' && event->data.len == 0)
        to->len--;
}

void timeline_text(const thole_history_event *event, struct buf *to)
{
    char name[THOLE_NAME_BYTES_MAX + 48];
    history_name(event, name, sizeof name);
    buf_printf(to, "%s%s%s ", event->kind, name[0] == '\0' ? "" : " ", name);
    history_data(event, to);
    while (to->len > 0 && to->ptr[to->len - 1] == ' ')
        to->len--;
}

/* "nats:alice", "stated:alice", "worker-7 on host-3 in 20 ms". The word stands first, where no name, however
 * long, takes its place. */
static void history_who(const thole_history_event *event, struct buf *to)
{
    if (event->actor.len > 0)
        buf_printf(to, "%s:%.*s", event->actor_authenticated ? "nats" : "stated", THOLE_FMT(event->actor));
    if (event->worker.len > 0)
        buf_printf(to, "%s%.*s", to->len > 0 ? " " : "", THOLE_FMT(event->worker));
    if (event->host.len > 0)
        buf_printf(to, " on %.*s", THOLE_FMT(event->host));
    if (event->run_ended_ms != 0)
        buf_printf(to, " in %" PRIu64 " ms",
                   event->run_ended_ms > event->run_started_ms ? event->run_ended_ms - event->run_started_ms
                                                               : 0);
}

static const struct table_column history_columns[] = {
    {"TIME", 24, 20, 0, false},
    {"EXEC", 4, 4, 1, true},
    {"ID", 4, 4, 0, true},
    {"EVENT", 20, 12, 0, false},
    {"NAME", NAME_COLUMNS, 8, 0, false},
    {"DATA", DATA_COLUMNS, 8, 0, false},
};
static const struct table_column history_wide_columns[] = {
    {"TIME", 24, 20, 0, false},
    {"EXEC", 4, 4, 2, true},
    {"ID", 4, 4, 0, true},
    {"EVENT", 20, 12, 0, false},
    {"NAME", NAME_COLUMNS, 8, 0, false},
    {"WHO", WHO_COLUMNS, 12, 1, false},
    {"DATA", DATA_COLUMNS, 8, 0, false},
};

static void history_who_cell(struct table *table, const thole_history_event *event)
{
    struct buf who;
    buf_init(&who, CELL_BYTES_MAX);
    history_who(event, &who);
    table_cell(table, TONE_PLAIN, buf_bytes(&who));
    buf_release(&who);
}

static void history_row(struct timeline *timeline, const thole_history_event *event)
{
    bool const wide = timeline->cli->wide, first = timeline->events == 0;
    char time[TIME_TEXT_BYTES], name[THOLE_NAME_BYTES_MAX + 48];
    struct table table;
    struct buf data;
    if (wide)
        table_begin(&table, history_wide_columns, sizeof history_wide_columns / sizeof *history_wide_columns,
                    first);
    else
        table_begin(&table, history_columns, sizeof history_columns / sizeof *history_columns, first);
    text_time(event->time_ms, time);
    history_name(event, name, sizeof name);
    table_text(&table, time);
    table_number(&table, event->execution);
    table_number(&table, event->id);
    table_cell(&table, tone_of_event(event->kind), thole_slice_from(event->kind));
    table_text(&table, name);
    if (wide)
        history_who_cell(&table, event);
    buf_init(&data, CELL_BYTES_MAX);
    history_data(event, &data);
    table_cell(&table, TONE_PLAIN, buf_bytes(&data));
    buf_release(&data);
    table_release(&table);
}

static void timeline_begin_document(struct timeline *timeline)
{
    json_document(&timeline->json, stdout, "thole.history.v1");
    json_member(&timeline->json, "instance", timeline->instance);
}

thole_status timeline_event(void *arg, const thole_history_event *event)
{
    struct timeline *timeline = arg;
    struct json *json = &timeline->json;
    if (event == NULL) /* of --follow: nothing new */
        return ferror(stdout) ? THOLE_CANCELLED : THOLE_OK;
    switch ((enum output)timeline->cli->options.output) {
    case OUTPUT_NAME:
    case OUTPUT_WIDE:
    case OUTPUT_YAML:
    case OUTPUT_TABLE: history_row(timeline, event); break;
    case OUTPUT_JSON:
        if (timeline->events == 0) {
            timeline_begin_document(timeline);
            json_key(json, "events");
            json_array(json);
        }
        json_object(json);
        form_event(json, event, SIZE_MAX);
        json_end(json);
        break;
    case OUTPUT_JSONL:
        timeline_begin_document(timeline);
        form_event(json, event, SIZE_MAX);
        json_end(json);
        break;
    }
    timeline->events++;
    if (timeline->cli->options.follow)
        (void)fflush(stdout);
    return ferror(stdout) ? THOLE_CANCELLED : THOLE_OK;
}

void timeline_none(struct timeline *timeline)
{
    const struct cli *const cli = timeline->cli;
    if (cli->options.output == OUTPUT_JSON) {
        timeline_begin_document(timeline);
        json_key(&timeline->json, "events");
        json_array(&timeline->json);
        timeline->begun = true;
    }
    cli_note(
        cli,
        "its history is empty: the start is stored, and no engine has taken it yet; thole show says why");
}

void timeline_end(struct timeline *timeline, bool complete)
{
    if (timeline->cli->options.output != OUTPUT_JSON || (timeline->events == 0 && !timeline->begun))
        return;
    json_end(&timeline->json);
    json_member_bool(&timeline->json, "complete", complete);
    json_end(&timeline->json);
}
