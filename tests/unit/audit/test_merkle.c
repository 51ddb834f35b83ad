/* The Merkle tree, with the values that Certificate Transparency's implementations share, and all proofs of
 * small trees. */
#include "merkle.h"
#include "merkle_many.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <string.h>

enum { LEAVES = 8, TREES = 40 };

/* Eight leaves: the inputs of certificate-transparency's merkle_tree_test. */
static const char *const inputs[LEAVES] = {
    "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"};
static const char *const roots[LEAVES + 1] = {
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
};

static size_t from_hex(const char *hex, uint8_t *to)
{
    size_t n = 0;
    for (unsigned byte; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
        to[n] = (uint8_t)byte;
    return n;
}

static void test_roots(void)
{
    struct merkle_tree tree = {.size = 0};
    for (size_t i = 0; i <= LEAVES; i++) {
        uint8_t want[64], input[64];
        struct merkle_hash const root = merkle_root(&tree);
        CU_ASSERT_EQUAL(from_hex(roots[i], want), MERKLE_HASH_BYTES);
        CU_ASSERT_EQUAL(memcmp(root.bytes, want, MERKLE_HASH_BYTES), 0);
        if (i == LEAVES)
            break;
        struct merkle_hash const leaf = merkle_leaf((thole_slice){input, from_hex(inputs[i], input)});
        merkle_add(&tree, &leaf);
    }
}

static struct merkle_hash leaves[TREES];

static struct merkle_hash root_of(size_t size)
{
    struct merkle_tree tree = {.size = 0};
    for (size_t i = 0; i < size; i++)
        merkle_add(&tree, &leaves[i]);
    return merkle_root(&tree);
}

static void make_leaves(void)
{
    for (size_t i = 0; i < TREES; i++)
        leaves[i] = merkle_leaf((thole_slice){(const uint8_t *)&i, 1});
}

/* Each holds; with any hash of it, the root or the index changed, or one hash fewer, it does not. */
static void test_inclusion(void)
{
    make_leaves();
    for (size_t size = 1; size <= TREES; size++)
        for (size_t index = 0; index < size; index++) {
            struct merkle_hash proof[MERKLE_PROOF_MAX], root = root_of(size);
            size_t const n = merkle_prove_inclusion(leaves, size, index, proof);
            CU_ASSERT_TRUE(merkle_includes(&leaves[index], index, size, proof, n, &root));
            CU_ASSERT_FALSE(merkle_includes(&leaves[(index + 1) % TREES], index, size, proof, n, &root));
            CU_ASSERT_FALSE(merkle_includes(&leaves[index], size, size, proof, n, &root));
            CU_ASSERT_FALSE(n > 0 && merkle_includes(&leaves[index], index, size, proof, n - 1, &root));
            for (size_t i = 0; i < n; i++) {
                proof[i].bytes[i % MERKLE_HASH_BYTES] ^= 1;
                CU_ASSERT_FALSE(merkle_includes(&leaves[index], index, size, proof, n, &root));
                proof[i].bytes[i % MERKLE_HASH_BYTES] ^= 1;
            }
            root.bytes[0] ^= 1;
            CU_ASSERT_FALSE(merkle_includes(&leaves[index], index, size, proof, n, &root));
        }
}

static void test_consistency(void)
{
    make_leaves();
    for (size_t size = 1; size <= TREES; size++)
        for (size_t before = 1; before <= size; before++) {
            struct merkle_hash proof[MERKLE_PROOF_MAX], root = root_of(size), old = root_of(before);
            size_t const n = merkle_prove_consistency(leaves, size, before, proof);
            CU_ASSERT_TRUE(merkle_continues(before, &old, size, &root, proof, n));
            CU_ASSERT_FALSE(n > 0 && merkle_continues(before, &old, size, &root, proof, n - 1));
            CU_ASSERT_FALSE(merkle_continues(size + 1, &old, size, &root, proof, n));
            CU_ASSERT_FALSE(merkle_continues(0, &old, size, &root, proof, n));
            for (size_t i = 0; i < n; i++) {
                proof[i].bytes[i % MERKLE_HASH_BYTES] ^= 1;
                CU_ASSERT_FALSE(merkle_continues(before, &old, size, &root, proof, n));
                proof[i].bytes[i % MERKLE_HASH_BYTES] ^= 1;
            }
            old.bytes[0] ^= 1;
            CU_ASSERT_FALSE(merkle_continues(before, &old, size, &root, proof, n));
        }
}

struct many_proof {
    struct merkle_hash hashes[TREES];
    size_t len;
};

static struct merkle_hash leaf_at(const void *arg, uint64_t index)
{
    return ((const struct merkle_hash *)arg)[index];
}

static void add_hash(void *arg, const struct merkle_hash *hash)
{
    struct many_proof *proof = arg;
    CU_ASSERT_FATAL(proof->len < TREES);
    proof->hashes[proof->len++] = *hash;
}

/* Whether what is proven is the tree's root; with a leaf, an index or a hash of the proof changed. */
static void check_many(size_t size, uint64_t set)
{
    uint64_t indices[TREES];
    struct merkle_indexed those[TREES];
    struct many_proof proof = {.len = 0};
    struct merkle_hash const want = root_of(size);
    struct merkle_hash got;
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        if ((set >> i & 1) != 0) {
            those[n] = (struct merkle_indexed){i, leaves[i]};
            indices[n++] = i;
        }
    merkle_prove_many(size, indices, n, leaf_at, leaves, add_hash, &proof);
    CU_ASSERT_TRUE(merkle_root_of_many(size, those, n, proof.hashes, proof.len, &got));
    CU_ASSERT_TRUE(merkle_equal(&got, &want));
    CU_ASSERT_FALSE(merkle_root_of_many(size, those, n, proof.hashes, proof.len + 1, &got));
    if (proof.len > 0) {
        CU_ASSERT_FALSE(merkle_root_of_many(size, those, n, proof.hashes, proof.len - 1, &got));
        proof.hashes[proof.len - 1].bytes[0] ^= 1;
        CU_ASSERT_TRUE(merkle_root_of_many(size, those, n, proof.hashes, proof.len, &got));
        CU_ASSERT_FALSE(merkle_equal(&got, &want));
        proof.hashes[proof.len - 1].bytes[0] ^= 1;
    }
    those[0].leaf.bytes[0] ^= 1;
    CU_ASSERT_TRUE(merkle_root_of_many(size, those, n, proof.hashes, proof.len, &got));
    CU_ASSERT_FALSE(merkle_equal(&got, &want));
    those[0].leaf.bytes[0] ^= 1;
    those[n - 1].index = size;
    CU_ASSERT_FALSE(merkle_root_of_many(size, those, n, proof.hashes, proof.len, &got));
}

/* All sets of leaves of small trees. */
static void test_many(void)
{
    struct merkle_indexed const twice[] = {{0, leaves[0]}, {0, leaves[0]}};
    struct merkle_hash got;
    make_leaves();
    for (size_t size = 1; size <= 10; size++)
        for (uint64_t set = 1; set < UINT64_C(1) << size; set++)
            check_many(size, set);
    CU_ASSERT_FALSE(merkle_root_of_many(2, twice, 2, NULL, 0, &got));
    CU_ASSERT_FALSE(merkle_root_of_many(2, twice, 0, leaves, 1, &got));
}

static const struct thole_test tests[] = {
    {"roots of eight leaves", test_roots},
    {"inclusion", test_inclusion},
    {"consistency", test_consistency},
    {"many leaves at once", test_many},
};
THOLE_TEST_MAIN("merkle", tests)
