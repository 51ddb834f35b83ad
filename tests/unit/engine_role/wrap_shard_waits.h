/* The waits of a shard's thread beside its connection: its mailbox, and a store that is played. */
#ifndef THOLE_WRAP_SHARD_WAITS_H
#define THOLE_WRAP_SHARD_WAITS_H
#include "shard.h"
#include <poll.h>

extern uint64_t wrap_store_ms; /* when the store is to be continued; UINT64_MAX at first */
/* In the wait: checks that it waits for both, and what the store is told of it. */
void wrap_shard_waits(const struct shard *shard, struct pollfd *also, size_t n);
#endif
