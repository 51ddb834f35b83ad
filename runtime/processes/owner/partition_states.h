/*
 * How the engine's partitions are, for those who ask: an owner is not enough, as a partition that closes and
 * opens again and again has one, too. Written by the shards, read by any thread.
 */
#ifndef THOLE_PARTITION_STATES_H
#define THOLE_PARTITION_STATES_H
#include "json.h"
#include "metric_table.h"
#include "partition.h"

struct partition_states;
struct partition_states *partition_states_create(uint32_t partitions);
void partition_states_destroy(struct partition_states *states); /* NULL-safe, as are the next two */

struct partition_now {
    enum partition_state state;
    bool wanted, busy; /* busy: it has open activities */
    uint64_t epoch;
};
/* By the thread of its shard; cheap while nothing has changed. */
void partition_states_set(struct partition_states *states, uint32_t p, const struct partition_now *now);
/* To be called when the partition was closed without being handed over. */
void partition_states_closed(struct partition_states *states, uint32_t p, enum closed_cause cause,
                             const char *text);
enum { LIMITED_TEXT_BYTES = 400 };
struct limited_words {
    char text[LIMITED_TEXT_BYTES]; /* the effect of the limit, the orchestration concerned, and the option */
    const char *remedy;            /* static */
};
struct limited_words limited_words_of(const struct out_limited *out);
/* An instance has met a limit. Of each orchestration and limit the last one is told, for five minutes. */
void partition_states_limited(struct partition_states *states, uint32_t p, const struct out_limited *out,
                              const struct limited_words *words);
bool partition_states_wanted(struct partition_states *states, uint32_t p);
bool partition_states_busy(struct partition_states *states); /* any of them */
/* An array of those that are wanted or not closed. */
void partition_states_json(struct partition_states *states, struct json *json);
#endif
