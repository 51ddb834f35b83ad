/* What comes from outside: whether it is accepted (instance.h), what is recorded for it, and what it changes.
 */
#ifndef THOLE_INSTANCE_RECEIVE_H
#define THOLE_INSTANCE_RECEIVE_H
#include "instance_state.h"

/* Delivers one received event: assigns its id, copies it, changes what it changes. The code sees it when it
 * next runs. Resolutions of what is resolved are ignored; of what was never scheduled: THOLE_CORRUPT. */
thole_status instance_receive(struct instance *in, const struct event *event);
/* What came for a live turn: what is accepted, each as it is recorded. */
thole_status instance_receive_live(struct instance *in, const struct event *received, size_t len);
/* The first events of a recorded turn, which were received. */
thole_status instance_receive_recorded(struct instance *in, const struct turn *turn, size_t len);
/* The turn runs: what was received is delivered to the code. */
void instance_deliver(struct instance *in);
#endif
