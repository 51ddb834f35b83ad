#include "event_text.h"
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 64 };

static const char *status_text(uint32_t code)
{
    return thole_status_name((thole_status)code);
}

/* An instance id or a key may be long and hold any characters. */
static void event_text_shown(thole_slice text, char to[SHOWN_MAX + 4])
{
    size_t const len = text.len < SHOWN_MAX ? text.len : SHOWN_MAX;
    for (size_t i = 0; i < len; i++)
        to[i] = (char)(text.ptr[i] >= 0x20 && text.ptr[i] < 0x7f ? text.ptr[i] : '.');
    (void)snprintf(to + len, 4, "%s", len < text.len ? "..." : "");
}

void event_describe(const struct event *e, char to[EVENT_TEXT_BYTES])
{
    const char *kind = event_kind_name(e->kind);
    char text[SHOWN_MAX + 4], target[SHOWN_MAX + 4];
    event_text_shown(e->name, text);
    event_text_shown(e->target, target);
    switch (e->kind) {
    case EVENT_ACTIVITY_SCHEDULED:
    case EVENT_EVENT_AWAITED:
    case EVENT_EVENT_EMITTED:
    case EVENT_STATE_SET:
    case EVENT_PATCHED:
        (void)snprintf(to, EVENT_TEXT_BYTES, "%s '%s'%s", kind, text, e->flag ? ", removed" : "");
        break;
    case EVENT_CHILD_SCHEDULED:
    case EVENT_DETACHED_STARTED:
        (void)snprintf(to, EVENT_TEXT_BYTES, "%s '%s' as '%s'", kind, text, target);
        break;
    case EVENT_EVENT_SENT: (void)snprintf(to, EVENT_TEXT_BYTES, "%s '%s' to '%s'", kind, text, target); break;
    case EVENT_TIMER_CREATED:
        (void)snprintf(to, EVENT_TEXT_BYTES, "%s due %llu", kind, (unsigned long long)e->due_ms);
        break;
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_TIMER_CANCELLED:
    case EVENT_EVENT_AWAIT_CANCELLED:
    case EVENT_CHILD_CANCELLED:
        (void)snprintf(to, EVENT_TEXT_BYTES, "%s of event %llu (%s)", kind, (unsigned long long)e->ref,
                       thole_cancel_kind_name((thole_cancel_kind)e->code));
        break;
    case EVENT_FAILED: (void)snprintf(to, EVENT_TEXT_BYTES, "%s %s", kind, status_text(e->code)); break;
    default: (void)snprintf(to, EVENT_TEXT_BYTES, "%s", kind); break;
    }
}

/* The word for the data of an event that differs from the recorded one only in its data. */
static const char *data_name(enum event_kind kind)
{
    switch (kind) {
    case EVENT_ACTIVITY_SCHEDULED:
    case EVENT_CHILD_SCHEDULED:
    case EVENT_DETACHED_STARTED:
    case EVENT_CONTINUED_AS_NEW: return "input";
    case EVENT_COMPLETED: return "output";
    case EVENT_FAILED: return "failure text";
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_TIMER_CANCELLED:
    case EVENT_EVENT_AWAIT_CANCELLED:
    case EVENT_CHILD_CANCELLED:
    case EVENT_TERMINATED:
    case EVENT_CANCELLED: return "reason";
    case EVENT_STATE_SET: return "value";
    case EVENT_CUSTOM_STATUS_SET: return "status";
    default: break;
    }
    return "content";
}

const char *event_difference(const struct event *a, const struct event *b)
{
    if (!thole_slice_equal(a->data, b->data))
        return data_name(a->kind);
    if (!thole_slice_equal(a->queue, b->queue))
        return "queue";
    if (!thole_slice_equal(a->error_type, b->error_type))
        return "error type";
    if (a->version != b->version)
        return "version";
    if (a->code != b->code && a->kind == EVENT_CHILD_SCHEDULED)
        return "close policy";
    return "content";
}
