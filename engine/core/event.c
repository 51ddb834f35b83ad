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
    {"Started", EVENT_STARTED, true, false}, /* name, version, data = input, code, request_id, parent */
    {"ActivityScheduled", EVENT_ACTIVITY_SCHEDULED, false, false},   /* name, data = input, queue, retry */
    {"ActivityCompleted", EVENT_ACTIVITY_COMPLETED, true, false},    /* ref, try, timed, data = output */
    {"ActivityFailed", EVENT_ACTIVITY_FAILED, true, false},          /* ref, try, timed, code, error_type,
                                                                        data = text */
    {"ActivityCancelled", EVENT_ACTIVITY_CANCELLED, false, false},   /* ref, timed, code, data = reason */
    {"TimerCreated", EVENT_TIMER_CREATED, false, false},             /* due_ms */
    {"TimerFired", EVENT_TIMER_FIRED, true, false},                  /* ref */
    {"TimerCancelled", EVENT_TIMER_CANCELLED, false, false},         /* ref, code, data = reason */
    {"CancelRequested", EVENT_CANCEL_REQUESTED, true, false},        /* data = reason, request_id */
    {"Completed", EVENT_COMPLETED, false, true},                     /* data = output */
    {"Failed", EVENT_FAILED, false, true},                           /* code, error_type, data = text */
    {"Cancelled", EVENT_CANCELLED, false, true},                     /* data = reason */
    {"ActivityTryFailed", EVENT_ACTIVITY_TRY_FAILED, true, false},   /* ref, try, code, error_type, data =
                                                                        text, due_ms, details */
    {"ActivityTryStarted", EVENT_ACTIVITY_TRY_STARTED, true, false}, /* ref, try, name, queue, data = input,
                                                                        retry->try_timeout_ms, due_ms,
                                                                        details */
    {"EventReceived", EVENT_EVENT_RECEIVED, true, false},            /* name, data, request_id */
    {"EventAwaited", EVENT_EVENT_AWAITED, false, false},             /* name */
    {"EventAwaitCancelled", EVENT_EVENT_AWAIT_CANCELLED, false, false}, /* ref, code, data = reason */
    {"ChildScheduled", EVENT_CHILD_SCHEDULED, false, false},   /* name, version, data = input, target,
                                                                  code */
    {"ChildCompleted", EVENT_CHILD_COMPLETED, true, false},    /* ref, data = output */
    {"ChildFailed", EVENT_CHILD_FAILED, true, false},          /* ref, code, error_type, data = text */
    {"ChildCancelled", EVENT_CHILD_CANCELLED, false, false},   /* ref, code, data = reason, target,
                                                                  flag = terminate */
    {"DetachedStarted", EVENT_DETACHED_STARTED, false, false}, /* name, version, data = input, target */
    {"EventSent", EVENT_EVENT_SENT, false, false},             /* name, data, target */
    {"SideEffectRecorded", EVENT_SIDE_EFFECT_RECORDED, false, false}, /* data */
    {"CustomStatusSet", EVENT_CUSTOM_STATUS_SET, false, false},       /* data */
    {"StateSet", EVENT_STATE_SET, false, false},                      /* name = key, data = value, flag =
                                                                         removed */
    {"Patched", EVENT_PATCHED, false, false},                         /* name */
    {"ContinuedAsNew", EVENT_CONTINUED_AS_NEW, false, true},          /* version, data = input */
    {"TerminateRequested", EVENT_TERMINATE_REQUESTED, true, false},   /* data = reason, request_id */
    {"Terminated", EVENT_TERMINATED, false, true},                    /* data = reason */
    {"Paused", EVENT_PAUSED, true, false},                            /* data = reason, request_id */
    {"Resumed", EVENT_RESUMED, true, false},                          /* data = reason, request_id */
    {"StateCarried", EVENT_STATE_CARRIED, true, false},               /* name = key, data = value */
    {"OriginsCarried", EVENT_ORIGINS_CARRIED, true, false},           /* data = 8-byte hashes */
    {"VersionChosen", EVENT_VERSION_CHOSEN, true, false},             /* version */
    {"Discarded", EVENT_DISCARDED, true, false},                      /* data = reason */
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
    case CANCEL_TIMEOUT: return "timeout";
    case CANCEL_TERMINATED: return "terminated";
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
    case EVENT_CANCELLED:
    default: buf_text(to, " "); break;
    }
    render_data(to, event->data);
}
