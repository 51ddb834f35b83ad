/* The proofs in cancel pushes: another client makes the same ones, and each part counts. */
#include "cancel_proof.h"
#include "nonce.h"
#include "thole_cunit.h"

#define NONCE "00112233445566778899aabbccddeeff"

static uint64_t prove(const char *nonce, uint32_t try_number, const char *kind, const char *reason)
{
    struct tagged_hash const about =
        cancel_about(try_number, thole_slice_from(kind), thole_slice_from(reason));
    return cancel_proof(thole_slice_from(nonce), &about);
}

/* docs/wire.md has this one. */
static void test_the_example(void)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%016llx",
                   (unsigned long long)prove(NONCE, 0, "requested", "too late"));
    CHECK_STR("proof", text, "da6d0f22bc3774aa");
}

static void test_each_part_counts(void)
{
    uint64_t const proof = prove(NONCE, 0, "requested", "too late");
    CU_ASSERT_EQUAL(prove(NONCE, 0, "requested", "too late"), proof);
    CU_ASSERT_NOT_EQUAL(prove("10112233445566778899aabbccddeeff", 0, "requested", "too late"), proof);
    CU_ASSERT_NOT_EQUAL(prove("", 0, "requested", "too late"), proof);
    CU_ASSERT_NOT_EQUAL(prove(NONCE, 1, "requested", "too late"), proof);
    CU_ASSERT_NOT_EQUAL(prove(NONCE, 0, "explicit", "too late"), proof);
    CU_ASSERT_NOT_EQUAL(prove(NONCE, 0, "requested", ""), proof);
}

static const struct thole_test tests[] = {{"the example", test_the_example},
                                          {"each part counts", test_each_part_counts}};
THOLE_TEST_MAIN("cancel_proof", tests)
