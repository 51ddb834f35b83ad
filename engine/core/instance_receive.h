/* Received events: whether they are accepted (instance.h), what is recorded for them, and what they change.
 */
#ifndef THOLE_INSTANCE_RECEIVE_H
#define THOLE_INSTANCE_RECEIVE_H
#include "instance_state.h"

/* Takes one received event: assigns its id, copies it, applies it. The code sees it when it next runs. A
 * resolution of a resolved task is ignored; of one that was never scheduled: THOLE_CORRUPT. */
thole_status instance_receive(struct instance *in, const struct event *event);
/* Takes the accepted ones of the events of a live turn, each as it is recorded. */
thole_status instance_receive_live(struct instance *in, const struct event *received, size_t len);
/* Takes the first @p len events of a recorded turn, which were received. */
thole_status instance_receive_recorded(struct instance *in, const struct turn *turn, size_t len);
/* The turn runs: marks received events as delivered. */
void instance_deliver(struct instance *in);
#endif
