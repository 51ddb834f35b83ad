#include "ownership.h"
#include "tables.h"

static bool names_have(const struct node_view *node, thole_slice name)
{
    for (size_t i = 0; i < node->orchestrations_len; i++)
        if (thole_slice_equal(node->orchestrations[i], name))
            return true;
    return false;
}

bool node_knows(const struct node_view *node, const thole_slice *needs, size_t needs_len)
{
    for (size_t i = 0; i < needs_len; i++)
        if (!names_have(node, needs[i]))
            return false;
    return true;
}

size_t ownership_of(uint32_t partition, const struct node_view *nodes, size_t nodes_len,
                    const thole_slice *needs, size_t needs_len)
{
    size_t best = SIZE_MAX;
    uint64_t best_score = 0;
    bool best_knows = false;
    for (size_t i = 0; i < nodes_len; i++) {
        bool const knows = node_knows(&nodes[i], needs, needs_len);
        uint64_t const score = key_hash(nodes[i].node, partition, 1);
        if (best == SIZE_MAX || (knows && !best_knows) || (knows == best_knows && score > best_score)) {
            best = i;
            best_score = score;
            best_knows = knows;
        }
    }
    return best;
}
