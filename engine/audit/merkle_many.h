/*
 * A proof of many leaves of a Merkle tree (merkle.h) at once: the hashes of the largest parts of the tree
 * that contain none of these leaves, from left to right. The leaves and the proof give the root. Pure.
 *
 *   many(first, size):  no leaf in it: the next hash of the proof
 *                       size 1:        the leaf
 *                       else:          node(many(first, k), many(first + k, size - k)), where k is the
 *                                      largest power of two below size
 */
#ifndef THOLE_MERKLE_MANY_H
#define THOLE_MERKLE_MANY_H
#include "merkle.h"

struct merkle_indexed {
    uint64_t index;
    struct merkle_hash leaf;
};

typedef struct merkle_hash merkle_leaf_fn(const void *arg, uint64_t index);
typedef void merkle_hash_fn(void *arg, const struct merkle_hash *hash);
/* @p indices: ascending, each once, below @p size, at least one. Calls @p each for the hashes of the proof.
 */
void merkle_prove_many(uint64_t size, const uint64_t *indices, size_t n, merkle_leaf_fn *leaf,
                       const void *leaf_arg, merkle_hash_fn *each, void *arg);
/* False: the leaves are not ascending or not below @p size, there are none, or the proof has more or fewer
 * hashes. */
bool merkle_root_of_many(uint64_t size, const struct merkle_indexed *leaves, size_t n,
                         const struct merkle_hash *proof, size_t proof_len, struct merkle_hash *ret);
#endif
