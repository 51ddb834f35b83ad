#include "wrap_shard_world.h"
#include "clock.h"
#include "engine.h"
#include "partition.h"
#include "read_places.h"
#include <string.h>

struct shard_world world;

uint64_t __wrap_clock_monotonic_ms(void)
{
    return world.now_ms;
}

uint64_t __wrap_partition_generation(const struct partition *p)
{
    (void)p;
    return world.generation;
}

static struct read_places *places;
static struct log_limits *lines; /* of the last world */

void shard_world_begin(const struct request_rule *rules)
{
    log_limits_destroy(lines);
    read_places_destroy(places);
    places = read_places_create();
    lines = log_limits_create(engine_lines, ENGINE_LINES, 8);
    memset(&world, 0, sizeof world);
    world.now_ms = WORLD_NOW_MS;
    world.generation = WORLD_GENERATION;
    world.engine.lines = lines;
    world.engine.shards = &world.shard;
    world.engine.shards_len = 1;
    world.shard.engine = &world.engine;
    world.shard.rules = rules;
    world.shard.read_places = places;
    world.shard.owned = &world.owned;
    world.shard.owned_len = 1;
}
