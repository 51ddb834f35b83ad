#include "merkle_many.h"
#include <assert.h>

struct part { /* of the tree */
    uint64_t first, size;
};

static struct part left_of(struct part part)
{
    uint64_t k = 1;
    while (k < part.size - k)
        k *= 2;
    return (struct part){part.first, k};
}

static struct part right_of(struct part part)
{
    uint64_t const k = left_of(part).size;
    return (struct part){part.first + k, part.size - k};
}

/* ---- proving ---- */

struct proving {
    const uint64_t *indices;
    size_t n, at; /* the next one that has not been passed */
    merkle_leaf_fn *leaf;
    const void *leaf_arg;
    merkle_hash_fn *each;
    void *arg;
};

static void prove_absent(const struct proving *proving, struct part part)
{
    struct merkle_tree tree = {.size = 0};
    for (uint64_t i = 0; i < part.size; i++) {
        struct merkle_hash const leaf = proving->leaf(proving->leaf_arg, part.first + i);
        merkle_add(&tree, &leaf);
    }
    struct merkle_hash const root = merkle_root(&tree);
    proving->each(proving->arg, &root);
}

/* As deep as the tree. */
static void merkle_many_prove(struct proving *proving, struct part part) /* NOLINT(misc-no-recursion) */
{
    if (proving->at == proving->n || proving->indices[proving->at] - part.first >= part.size) {
        prove_absent(proving, part);
    } else if (part.size == 1) {
        proving->at++;
    } else {
        merkle_many_prove(proving, left_of(part));
        merkle_many_prove(proving, right_of(part));
    }
}

void merkle_prove_many(uint64_t size, const uint64_t *indices, size_t n, merkle_leaf_fn *leaf,
                       const void *leaf_arg, merkle_hash_fn *each, void *arg)
{
    struct proving proving = {indices, n, 0, leaf, leaf_arg, each, arg};
    assert(n > 0 && indices[n - 1] < size);
    merkle_many_prove(&proving, (struct part){0, size});
    assert(proving.at == n);
}

/* ---- checking ---- */

struct checking {
    const struct merkle_indexed *leaves;
    size_t n, at;
    const struct merkle_hash *proof;
    size_t proof_len, used;
};

/* False: the proof is too short. */
static bool merkle_many_compute(struct checking *checking, struct part part,
                                struct merkle_hash *ret) /* NOLINT(misc-no-recursion) */
{
    struct merkle_hash left, right;
    if (checking->at == checking->n || checking->leaves[checking->at].index - part.first >= part.size) {
        if (checking->used == checking->proof_len)
            return false;
        *ret = checking->proof[checking->used++];
        return true;
    }
    if (part.size == 1) {
        *ret = checking->leaves[checking->at++].leaf;
        return true;
    }
    if (!merkle_many_compute(checking, left_of(part), &left) ||
        !merkle_many_compute(checking, right_of(part), &right))
        return false;
    *ret = merkle_node(&left, &right);
    return true;
}

bool merkle_root_of_many(uint64_t size, const struct merkle_indexed *leaves, size_t n,
                         const struct merkle_hash *proof, size_t proof_len, struct merkle_hash *ret)
{
    struct checking checking = {leaves, n, 0, proof, proof_len, 0};
    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (leaves[i].index >= size || (i > 0 && leaves[i].index <= leaves[i - 1].index))
            return false;
    return merkle_many_compute(&checking, (struct part){0, size}, ret) && checking.used == proof_len;
}
