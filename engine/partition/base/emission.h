/* Which events of a history are sent as CloudEvents, and what they say. */
#ifndef THOLE_EMISSION_H
#define THOLE_EMISSION_H
#include "event.h"
#include "notices.h"

enum events_out {
    EVENTS_OUT_NONE,    /* none */
    EVENTS_OUT_EMITTED, /* events that code emits */
    EVENTS_OUT_ALL,     /* also the lifecycle of instances */
};

/* "started", "completed", …: the step of the instance's lifecycle that the event is; NULL: it is none. */
const char *life_kind(const struct turn *turn, const struct event *event);
/* Whether the event is sent. It borrows from turn and event. ret NULL: not needed. */
bool emission_of(enum events_out events, const struct turn *turn, const struct event *event,
                 struct emission *ret);
bool emission_of_deletion(enum events_out events, const struct deletion *deletion, struct emission *ret);
#endif
