/* Events that came, and the waits for them: per name one of the two waits for the other. */
#ifndef THOLE_INSTANCE_EVENTS_H
#define THOLE_INSTANCE_EVENTS_H
#include "instance_state.h"

/* A received event: the first wait takes it, else it is kept. data lives as long as the execution. */
thole_status event_arrived(struct instance *in, thole_slice name, uint64_t id, thole_slice data);
/* A wait that was just scheduled takes the oldest event that was kept. */
void event_await(struct instance *in, struct task *wait);
/* A wait that has taken an event is cancelled: the next wait gets it. */
thole_status event_give_back(struct instance *in, struct task *wait);
/* Calls @p visit for each event that nobody has taken, in no order. */
size_t events_kept(const struct instance *in,
                   void (*visit)(void *arg, const struct name *name, uint64_t id, thole_slice data),
                   void *arg);
#endif
