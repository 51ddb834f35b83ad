/* A history on stdout. */
#include "timeline.h"
#include "cells.h"
#include "forms.h"
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

/* What there is to say beside the payload comes before it. */
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

static void print_who(const thole_history_event *event)
{
    struct buf who;
    buf_init(&who, CELL_BYTES_MAX);
    history_who(event, &who);
    print_cell(buf_bytes(&who), WHO_COLUMNS, CELL_BYTES_MAX);
    buf_release(&who);
}

static void history_row(struct timeline *timeline, const thole_history_event *event)
{
    bool const wide = timeline->cli->wide;
    char time[TIME_TEXT_BYTES], name[THOLE_NAME_BYTES_MAX + 48];
    struct buf data;
    if (timeline->events == 0)
        (void)printf("%-24s  %4s  %4s  %-20s  %-24s  %*s%s%s\n", "TIME", "EXEC", "ID", "EVENT", "NAME",
                     wide ? -WHO_COLUMNS : 0, wide ? "WHO" : "", wide ? "  " : "", "DATA");
    text_time(event->time_ms, time);
    history_name(event, name, sizeof name);
    (void)printf("%-24s  %4" PRIu64 "  %4" PRIu64 "  ", time, event->execution, event->id);
    print_toned(tone_of_event(event->kind), event->kind, 20);
    print_cell(thole_slice_from(name), NAME_COLUMNS, THOLE_NAME_BYTES_MAX + 16);
    if (wide)
        print_who(event);
    buf_init(&data, CELL_BYTES_MAX);
    history_data(event, &data);
    print_last_cell(buf_bytes(&data), DATA_COLUMNS);
    buf_release(&data);
}

static void begin_document(struct timeline *timeline)
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
            begin_document(timeline);
            json_key(json, "events");
            json_array(json);
        }
        json_object(json);
        form_event(json, event, SIZE_MAX);
        json_end(json);
        break;
    case OUTPUT_JSONL:
        begin_document(timeline);
        form_event(json, event, SIZE_MAX);
        json_end(json);
        break;
    }
    timeline->events++;
    if (timeline->cli->options.follow)
        (void)fflush(stdout);
    return ferror(stdout) ? THOLE_CANCELLED : THOLE_OK;
}

void timeline_end(struct timeline *timeline, bool complete)
{
    if (timeline->cli->options.output != OUTPUT_JSON || timeline->events == 0)
        return;
    json_end(&timeline->json);
    json_member_bool(&timeline->json, "complete", complete);
    json_end(&timeline->json);
}
