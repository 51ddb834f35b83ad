#include "merkle.h"
#include "sha256.h"
#include <assert.h>
#include <string.h>

/* ---- hashes ---- */

static struct merkle_hash hash_behind(uint8_t prefix, thole_slice first, thole_slice second)
{
    struct merkle_hash hash;
    sha256_of((const thole_slice[]){{&prefix, 1}, first, second}, 3, hash.bytes);
    return hash;
}

static thole_slice merkle_bytes_of(const struct merkle_hash *hash)
{
    return (thole_slice){hash->bytes, sizeof hash->bytes};
}

struct merkle_hash merkle_leaf(thole_slice entry)
{
    return hash_behind(0, entry, (thole_slice){0});
}

struct merkle_hash merkle_node(const struct merkle_hash *left, const struct merkle_hash *right)
{
    return hash_behind(1, merkle_bytes_of(left), merkle_bytes_of(right));
}

bool merkle_equal(const struct merkle_hash *a, const struct merkle_hash *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* ---- a tree that grows ---- */

void merkle_add(struct merkle_tree *tree, const struct merkle_hash *leaf)
{
    struct merkle_hash hash = *leaf;
    unsigned i = 0;
    for (; (tree->size >> i & 1) != 0; i++)
        hash = merkle_node(&tree->peaks[i], &hash);
    tree->peaks[i] = hash;
    tree->size++;
}

struct merkle_hash merkle_root(const struct merkle_tree *tree)
{
    struct merkle_hash root;
    bool has = false;
    for (unsigned i = 0; i < MERKLE_PEAKS_MAX; i++)
        if ((tree->size >> i & 1) != 0) {
            root = has ? merkle_node(&tree->peaks[i], &root) : tree->peaks[i];
            has = true;
        }
    if (has)
        return root;
    sha256_of(NULL, 0, root.bytes);
    return root;
}

/* ---- proofs: RFC 9162, 2.1.3.2 and 2.1.4.2, which say how those of RFC 6962 are verified ---- */

bool merkle_includes(const struct merkle_hash *leaf, uint64_t index, uint64_t size,
                     const struct merkle_hash *proof, size_t proof_len, const struct merkle_hash *root)
{
    uint64_t at = index, last = size - 1;
    struct merkle_hash hash = *leaf;
    if (index >= size)
        return false;
    for (size_t i = 0; i < proof_len; i++) {
        if (last == 0)
            return false;
        if ((at & 1) == 0 && at != last) {
            hash = merkle_node(&hash, &proof[i]);
        } else {
            hash = merkle_node(&proof[i], &hash);
            while ((at & 1) == 0 && at != 0) {
                at >>= 1;
                last >>= 1;
            }
        }
        at >>= 1;
        last >>= 1;
    }
    return last == 0 && merkle_equal(&hash, root);
}

bool merkle_continues(uint64_t before, const struct merkle_hash *before_root, uint64_t size,
                      const struct merkle_hash *root, const struct merkle_hash *proof, size_t proof_len)
{
    if (before == 0 || before > size)
        return false;
    if (before == size)
        return proof_len == 0 && merkle_equal(before_root, root);
    bool const whole = (before & (before - 1)) == 0; /* a perfect tree: its root is no part of the proof */
    uint64_t at = before - 1, last = size - 1;
    size_t i = whole ? 0 : 1;
    if (proof_len < i)
        return false;
    struct merkle_hash old = whole ? *before_root : proof[0], new = old;
    for (; (at & 1) != 0; at >>= 1)
        last >>= 1;
    for (; i < proof_len; i++) {
        if (last == 0)
            return false;
        if ((at & 1) != 0 || at == last) {
            old = merkle_node(&proof[i], &old);
            new = merkle_node(&proof[i], &new);
            while ((at & 1) == 0 && at != 0) {
                at >>= 1;
                last >>= 1;
            }
        } else {
            new = merkle_node(&new, &proof[i]);
        }
        at >>= 1;
        last >>= 1;
    }
    return last == 0 && merkle_equal(&old, before_root) && merkle_equal(&new, root);
}

/* ---- making them ---- */

static uint64_t left_part(uint64_t size) /* the largest power of two below it */
{
    uint64_t part = 1;
    while (part * 2 < size)
        part *= 2;
    return part;
}

static struct merkle_hash root_of(const struct merkle_hash *leaves, uint64_t size)
{
    struct merkle_tree tree = {.size = 0};
    for (uint64_t i = 0; i < size; i++)
        merkle_add(&tree, &leaves[i]);
    return merkle_root(&tree);
}

/* Both are collected from the root down; the proofs go the other way. */
static size_t turn_round(struct merkle_hash *proof, size_t len)
{
    for (size_t i = 0; i < len / 2; i++) {
        struct merkle_hash const hash = proof[i];
        proof[i] = proof[len - 1 - i];
        proof[len - 1 - i] = hash;
    }
    return len;
}

size_t merkle_prove_inclusion(const struct merkle_hash *leaves, uint64_t size, uint64_t index,
                              struct merkle_hash ret[MERKLE_PROOF_MAX])
{
    size_t n = 0;
    assert(index < size);
    while (size > 1) {
        uint64_t const part = left_part(size);
        if (index < part) {
            ret[n++] = root_of(leaves + part, size - part);
            size = part;
        } else {
            ret[n++] = root_of(leaves, part);
            leaves += part;
            index -= part;
            size -= part;
        }
    }
    return turn_round(ret, n);
}

size_t merkle_prove_consistency(const struct merkle_hash *leaves, uint64_t size, uint64_t before,
                                struct merkle_hash ret[MERKLE_PROOF_MAX])
{
    size_t n = 0;
    bool whole = true; /* the rest of the old tree is the whole old tree */
    assert(before > 0 && before <= size);
    while (before < size) {
        uint64_t const part = left_part(size);
        if (before <= part) {
            ret[n++] = root_of(leaves + part, size - part);
            size = part;
        } else {
            ret[n++] = root_of(leaves, part);
            leaves += part;
            before -= part;
            size -= part;
            whole = false;
        }
    }
    if (!whole)
        ret[n++] = root_of(leaves, size);
    return turn_round(ret, n);
}
