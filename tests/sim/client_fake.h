/* Clients: they start instances, repeat themselves, cancel, and send nonsense. */
#ifndef THOLE_CLIENT_FAKE_H
#define THOLE_CLIENT_FAKE_H
#include "world.h"
struct client_fake *client_fake_create(struct world *w);
/* A program outside completes an activity, as its token says: execution, task, try_number. */
void client_completes(struct world *w, uint64_t delay_ms, size_t instance, const struct message *result);
#endif
