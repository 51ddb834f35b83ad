/* Clients: they start instances, repeat themselves, cancel, and send nonsense. */
#ifndef THOLE_CLIENT_FAKE_H
#define THOLE_CLIENT_FAKE_H
#include "world.h"
struct client_fake *client_fake_create(struct world *w);
#endif
