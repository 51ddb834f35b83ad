/*
 * The choice of the node that should own a partition: rendezvous hashing over the live nodes that know every
 * orchestration which the partition's live instances need; when none does, over all live nodes. Every node
 * that sees the same nodes computes the same owner. This is only an optimisation: the log rule ensures safety
 * (docs/architecture.md). Pure.
 */
#ifndef THOLE_OWNERSHIP_H
#define THOLE_OWNERSHIP_H
#include "thole/types.h"

struct node_view {
    thole_slice node;
    const thole_slice *orchestrations;
    size_t orchestrations_len;
};
bool node_knows(const struct node_view *node, const thole_slice *needs, size_t needs_len);
/* Index of the owner in @p nodes; SIZE_MAX when there is none. */
size_t ownership_of(uint32_t partition, const struct node_view *nodes, size_t nodes_len,
                    const thole_slice *needs, size_t needs_len);
#endif
