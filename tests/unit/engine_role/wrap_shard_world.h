/* A shard with one partition, on this thread: the clock and the partition's generation are the test's. */
#ifndef THOLE_WRAP_SHARD_WORLD_H
#define THOLE_WRAP_SHARD_WORLD_H
#include "shard_parts.h"

enum { WORLD_NOW_MS = 1000, WORLD_GENERATION = 7 };

struct shard_world {
    struct engine_host engine;
    struct shard shard;
    struct owned owned;
    uint64_t now_ms, generation;
};
extern struct shard_world world;

void shard_world_begin(const struct request_rule *rules);
#endif
