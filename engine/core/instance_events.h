/* Received external events, and the waits for them: per name a queue of one of the two. */
#ifndef THOLE_INSTANCE_EVENTS_H
#define THOLE_INSTANCE_EVENTS_H
#include "instance_state.h"

/* Takes a received event: the first wait gets it, else it is kept. @p data must live as long as the
 * execution. */
thole_status event_arrived(struct instance *in, thole_slice name, uint64_t id, thole_slice data);
/* Gives the oldest kept event to a wait that was just scheduled. */
void event_await(struct instance *in, struct task *wait);
/* Takes the event back from a cancelled wait: the next wait gets it. */
thole_status event_give_back(struct instance *in, struct task *wait);
/* Calls @p visit for each kept event, in no order. */
size_t events_kept(const struct instance *in,
                   void (*visit)(void *arg, const struct name *name, uint64_t id, thole_slice data),
                   void *arg);
#endif
