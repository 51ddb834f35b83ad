/*
 * The Merkle tree of RFC 6962 over the records of a log: SHA-256, leaves prefixed with a byte 0, nodes with a
 * byte 1. Of a tree that grows only the roots of its perfect parts are kept. Pure.
 */
#ifndef THOLE_MERKLE_H
#define THOLE_MERKLE_H
#include "thole/types.h"

enum { MERKLE_HASH_BYTES = 32, MERKLE_PEAKS_MAX = 64 };
struct merkle_hash {
    uint8_t bytes[MERKLE_HASH_BYTES];
};
struct merkle_hash merkle_leaf(thole_slice entry);
struct merkle_hash merkle_node(const struct merkle_hash *left, const struct merkle_hash *right);
bool merkle_equal(const struct merkle_hash *a, const struct merkle_hash *b);

struct merkle_tree {
    uint64_t size; /* leaves */
    struct merkle_hash
        peaks[MERKLE_PEAKS_MAX]; /* i: of the part with 2^i leaves, where bit i of size is set */
};
void merkle_add(struct merkle_tree *tree, const struct merkle_hash *leaf);
struct merkle_hash merkle_root(const struct merkle_tree *tree);

/* Whether the leaf is the @p index-th of the tree of @p size leaves with that root. The proof is that of RFC
 * 6962, 2.1.1, from the leaf up. False also for a proof of another length. */
bool merkle_includes(const struct merkle_hash *leaf, uint64_t index, uint64_t size,
                     const struct merkle_hash *proof, size_t proof_len, const struct merkle_hash *root);
/* Whether the tree of @p size leaves begins with the one of @p before leaves, which is not empty (RFC
 * 6962, 2.1.2). */
bool merkle_continues(uint64_t before, const struct merkle_hash *before_root, uint64_t size,
                      const struct merkle_hash *root, const struct merkle_hash *proof, size_t proof_len);
/* These proofs, from all leaves of the tree; at most MERKLE_PROOF_MAX hashes. Returns their number. */
enum { MERKLE_PROOF_MAX = 2 * MERKLE_PEAKS_MAX };
size_t merkle_prove_inclusion(const struct merkle_hash *leaves, uint64_t size, uint64_t index,
                              struct merkle_hash ret[MERKLE_PROOF_MAX]);
size_t merkle_prove_consistency(const struct merkle_hash *leaves, uint64_t size, uint64_t before,
                                struct merkle_hash ret[MERKLE_PROOF_MAX]);
#endif
