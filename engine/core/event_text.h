/* Text of events for the errors of a replay. */
#ifndef THOLE_EVENT_TEXT_H
#define THOLE_EVENT_TEXT_H
#include "event.h"

enum { EVENT_TEXT_BYTES = 200 };

/* "ActivityScheduled 'charge'", "TimerCreated due 5000", "ActivityCancelled of event 3 (select_loser)". */
void event_describe(const struct event *event, char to[EVENT_TEXT_BYTES]);
/* Names the difference between two events of one kind for which event_describe() gives the same text. */
const char *event_difference(const struct event *a, const struct event *b);
#endif
