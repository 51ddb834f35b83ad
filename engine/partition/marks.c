/*
 * Which events of an execution are outstanding: what must be known to take in a resolution when the code
 * cannot run. One byte for each event id.
 */
#include "machine.h"
#include <stdlib.h>
#include <string.h>

enum { MARKS_MAX = 16 * 1024 * 1024 };
enum mark { MARK_NONE, MARK_ACTIVITY, MARK_TIMER, MARK_RESOLVED };

static thole_status set(struct slot *slot, uint64_t id, enum mark mark)
{
    if (id > MARKS_MAX)
        return THOLE_OK; /* a damaged history may claim any number: it must not cost the memory for it */
    if (id >= slot->marks_cap) {
        size_t const cap = id < 32 ? 64 : (size_t)id * 2;
        uint8_t *marks = realloc(slot->marks, cap);
        if (marks == NULL)
            return THOLE_NOMEM;
        memset(marks + slot->marks_cap, MARK_NONE, cap - slot->marks_cap);
        slot->marks = marks;
        slot->marks_cap = cap;
    }
    slot->marks[id] = (uint8_t)mark;
    return THOLE_OK;
}

thole_status slot_mark(struct slot *slot, const struct event *event)
{
    switch (event->kind) {
    case EVENT_ACTIVITY_SCHEDULED: return set(slot, event->id, MARK_ACTIVITY);
    case EVENT_TIMER_CREATED: return set(slot, event->id, MARK_TIMER);
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_ACTIVITY_FAILED:
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_TIMER_FIRED:
    case EVENT_TIMER_CANCELLED:
        return event->ref > slot->events ? THOLE_OK : set(slot, event->ref, MARK_RESOLVED);
    case EVENT_UNKNOWN:
    case EVENT_STARTED:
    case EVENT_CANCEL_REQUESTED:
    case EVENT_COMPLETED:
    case EVENT_FAILED:
    case EVENT_CANCELLED:
    default: break;
    }
    return THOLE_OK;
}

bool slot_awaits(const struct slot *slot, const struct event *resolution)
{
    enum mark const wanted = resolution->kind == EVENT_TIMER_FIRED ? MARK_TIMER : MARK_ACTIVITY;
    enum mark const mark =
        resolution->ref < slot->marks_cap ? (enum mark)slot->marks[resolution->ref] : MARK_NONE;
    if (slot->cancel_requested && !slot->cancel_delivered)
        return false; /* as good as cancelled, as the instance itself would say */
    if (slot->blocked == BLOCKED_DAMAGED || slot->blocked == BLOCKED_TOO_NEW)
        return mark == wanted || mark == MARK_NONE; /* not all of its history is known: rather keep it */
    return mark == wanted;
}
