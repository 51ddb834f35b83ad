#include "emission.h"
#include "message.h"
#include <string.h>

#define LIFE "thole.instance."

/* The type of the CloudEvent. */
static const char *life_type(const struct turn *turn, const struct event *event)
{
    switch (event->kind) {
    case EVENT_STARTED: /* others continue the instance */
        return turn->execution == event->before + 1 ? LIFE "started" : NULL;
    case EVENT_COMPLETED: return LIFE "completed";
    case EVENT_FAILED: return LIFE "failed";
    case EVENT_CANCELLED: return LIFE "cancelled";
    case EVENT_TERMINATED: return LIFE "terminated";
    case EVENT_CONTINUED_AS_NEW: return LIFE "continued_as_new";
    case EVENT_PAUSED: return LIFE "paused";
    case EVENT_RESUMED: return LIFE "resumed";
    default: break;
    }
    return NULL;
}

const char *life_kind(const struct turn *turn, const struct event *event)
{
    const char *const type = life_type(turn, event);
    return type == NULL ? NULL : type + strlen(LIFE);
}

/* Without the input of a start, as live events. */
static void say_life(const struct event *event, struct emission *ret)
{
    if (event->kind == EVENT_STARTED || event->kind == EVENT_CONTINUED_AS_NEW)
        return;
    ret->data = event->data;
    ret->is_text = event->kind != EVENT_COMPLETED;
    if (event->kind == EVENT_FAILED)
        ret->error_type = event->error_type;
}

bool emission_of(enum events_out events, const struct turn *turn, const struct event *event,
                 struct emission *ret)
{
    bool const emitted = event->kind == EVENT_EVENT_EMITTED;
    const char *const life = events == EVENTS_OUT_ALL ? life_type(turn, event) : NULL;
    if (events == EVENTS_OUT_NONE || (!emitted && life == NULL))
        return false;
    if (ret == NULL)
        return true;
    *ret = (struct emission){.instance = turn->instance,
                             .orchestration = turn->orchestration,
                             .type = emitted ? event->name : thole_slice_from(life),
                             .execution = turn->execution,
                             .event = event->id,
                             .time_ms = turn->time_ms,
                             .trace = turn->trace};
    if (emitted)
        ret->data = event->data;
    else
        say_life(event, ret);
    return true;
}

bool emission_of_deletion(enum events_out events, const struct deletion *deletion, struct emission *ret)
{
    if (events != EVENTS_OUT_ALL || name_check(deletion->orchestration, "orchestration", NULL) != THOLE_OK)
        return false; /* there is none where events waited for an instance that never was */
    *ret = (struct emission){.instance = deletion->instance,
                             .orchestration = deletion->orchestration,
                             .type = THOLE_STR(LIFE "deleted"),
                             .data = deletion->reason,
                             .is_text = true,
                             .execution = deletion->execution,
                             .time_ms = deletion->time_ms};
    return true;
}
