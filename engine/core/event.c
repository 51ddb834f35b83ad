/* Names, comparison and rendering of history events. The codec is in record.c. */
#include "event.h"
#include <assert.h>

enum { RENDER_DATA_MAX = 64 };

/* Which fields of struct event each kind uses, beside id. */
static const struct {
    const char *name;
    enum event_kind kind;
    bool received, terminal;
} kinds[] = {
    {"Started", EVENT_STARTED, true, false},                       /* name, data = input, code, request_id */
    {"ActivityScheduled", EVENT_ACTIVITY_SCHEDULED, false, false}, /* name, data = input, queue */
    {"ActivityCompleted", EVENT_ACTIVITY_COMPLETED, true, false},  /* ref, data = output */
    {"ActivityFailed", EVENT_ACTIVITY_FAILED, true, false},        /* ref, code, data = text */
    {"ActivityCancelled", EVENT_ACTIVITY_CANCELLED, false, false}, /* ref, code, data = reason */
    {"TimerCreated", EVENT_TIMER_CREATED, false, false},           /* due_ms */
    {"TimerFired", EVENT_TIMER_FIRED, true, false},                /* ref */
    {"TimerCancelled", EVENT_TIMER_CANCELLED, false, false},       /* ref, code, data = reason */
    {"CancelRequested", EVENT_CANCEL_REQUESTED, true, false},      /* data = reason, request_id */
    {"Completed", EVENT_COMPLETED, false, true},                   /* data = output */
    {"Failed", EVENT_FAILED, false, true},                         /* code, data = text */
    {"Cancelled", EVENT_CANCELLED, false, true},                   /* data = reason */
};
enum { KINDS_LEN = sizeof kinds / sizeof kinds[0] };

static int kind_find(enum event_kind kind)
{
    int const i = (int)kind - (int)EVENT_STARTED; /* the table has no gaps */
    if (i < 0 || i >= KINDS_LEN)
        return -1;
    assert(kinds[i].kind == kind);
    return i;
}

const char *event_kind_name(enum event_kind kind)
{
    int const i = kind_find(kind);
    return i < 0 ? "Unknown" : kinds[i].name;
}

bool event_is_received(enum event_kind kind)
{
    int const i = kind_find(kind);
    return i >= 0 && kinds[i].received;
}

bool event_is_terminal(enum event_kind kind)
{
    int const i = kind_find(kind);
    return i >= 0 && kinds[i].terminal;
}

const char *cancel_kind_name(uint32_t kind)
{
    switch (kind) {
    case CANCEL_REQUESTED: return "requested";
    case CANCEL_SELECT_LOSER: return "select_loser";
    case CANCEL_EXPLICIT: return "explicit";
    case CANCEL_ENDED: return "ended";
    }
    return "unknown";
}

bool event_equal(const struct event *a, const struct event *b)
{
    return a->kind == b->kind && a->ref == b->ref && a->due_ms == b->due_ms && a->code == b->code &&
           thole_slice_equal(a->name, b->name) && thole_slice_equal(a->queue, b->queue) &&
           thole_slice_equal(a->data, b->data);
}

/* Printable ASCII as it is, anything else as '.'. */
static void render_bytes(struct buf *to, thole_slice bytes)
{
    size_t const len = bytes.len < RENDER_DATA_MAX ? bytes.len : RENDER_DATA_MAX;
    for (size_t i = 0; i < len; i++) {
        uint8_t const c = bytes.ptr[i];
        buf_append(to, c >= 0x20 && c < 0x7f ? &bytes.ptr[i] : (const uint8_t *)".", 1);
    }
    if (len < bytes.len)
        buf_text(to, "...");
}

static void render_data(struct buf *to, thole_slice data)
{
    buf_text(to, "(");
    render_bytes(to, data);
    buf_text(to, ")");
}

void event_render(const struct event *event, struct buf *to)
{
    buf_printf(to, "#%llu %s", (unsigned long long)event->id, event_kind_name(event->kind));
    if (event->ref != 0)
        buf_printf(to, " #%llu", (unsigned long long)event->ref);
    switch (event->kind) {
    case EVENT_UNKNOWN:
    case EVENT_TIMER_FIRED: return;
    case EVENT_TIMER_CREATED: buf_printf(to, " due %llu", (unsigned long long)event->due_ms); return;
    case EVENT_STARTED:
    case EVENT_ACTIVITY_SCHEDULED:
        buf_text(to, " ");
        render_bytes(to, event->name);
        break;
    case EVENT_ACTIVITY_FAILED:
    case EVENT_FAILED: buf_printf(to, " %s ", thole_status_name((thole_status)event->code)); break;
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_TIMER_CANCELLED: buf_printf(to, " %s ", cancel_kind_name(event->code)); break;
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_CANCEL_REQUESTED:
    case EVENT_COMPLETED:
    case EVENT_CANCELLED: buf_text(to, " "); break;
    }
    render_data(to, event->data);
}
