/*
 * A hostile client that may publish to the queues: forges messages of activities, before the engine's own and
 * after it, with another activity, input or queue, and with the engine's but without its nonce. Draws from
 * numbers of its own, so that the seeds without it do not change.
 */
#ifndef THOLE_HOSTILE_FAKE_H
#define THOLE_HOSTILE_FAKE_H
#include "store_fake.h"

enum { HOSTILE_OF = 8, HOSTILE_SEED = 7 }; /* in one of so many seeds */

void hostile_begin(struct world *w);
/* The row is written, its message is not sent yet. */
void hostile_sees_row(struct world *w, const struct row *row);
#endif
