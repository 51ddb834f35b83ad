/*
 * Which partitions are ours: rendezvous hashing (ownership.h) over the engines that live (live_nodes.h), and
 * which partition another was to open and has not. When a partition that somebody has opened is to be opened
 * by another engine, that one has the TTL for it, and all see when it does; else it is left out for this
 * partition, which goes to the next. It opens it none the less if it can: its own choice has not changed, and
 * what is opened counts.
 *
 * Pure, like live_nodes.h.
 */
#ifndef THOLE_SHARES_H
#define THOLE_SHARES_H
#include "live_nodes.h"

struct shares_calls {
    /* @p wait: another engine may still have it, and gets time to hand it over. */
    void (*own)(void *arg, uint32_t p, bool own, bool wait);
    void (*not_opened)(void *arg, uint32_t p, const char *node);
    void *arg;
};
struct shares;
struct shares *shares_create(thole_slice self, uint32_t partitions, uint64_t ttl_ms,
                             const struct shares_calls *calls);
void shares_destroy(struct shares *shares); /* NULL-safe */
/* Owns all that is there, whatever others do. */
void shares_own_all(struct shares *shares);
/* Computes anew. @p valid false: we own nothing, and know nothing of the others. */
void shares_step(struct shares *shares, struct live_nodes *live, bool valid, uint64_t now_ms);
/* Somebody has opened the partition. */
void shares_opened(struct shares *shares, struct live_nodes *live, uint32_t p, thole_slice node);
uint64_t shares_deadline(const struct shares *shares); /* when to step again; UINT64_MAX: never */
#endif
