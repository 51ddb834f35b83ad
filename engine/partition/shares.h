/*
 * Which partitions this engine owns: rendezvous hashing (ownership.h) over the live engines (live_nodes.h);
 * and which partition another engine was to open and has not. When the owner of an open partition changes,
 * the new owner has the TTL to open it, and all engines see when it does. Else it is left out for this
 * partition, which goes to the next engine. It opens the partition none the less if it can: its own choice
 * has not changed, and the opening counts.
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
/* Owns all partitions, whatever others do. */
void shares_own_all(struct shares *shares);
/* Computes the shares again. @p valid false: this engine owns nothing, and knows nothing of the others. */
void shares_step(struct shares *shares, struct live_nodes *live, bool valid, uint64_t now_ms);
/* Notes that an engine has opened the partition. */
void shares_opened(struct shares *shares, struct live_nodes *live, uint32_t p, thole_slice node);
uint64_t shares_deadline(const struct shares *shares); /* when to step again; UINT64_MAX: never */
#endif
