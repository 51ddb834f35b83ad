/* The input of a work message's digest, which is stored: the vectors must never change. */
#include "memory.h"
#include "thole_cunit.h"
#include "work_digest.h"
#include <stdlib.h>
#include <string.h>

enum { PARTS = 4, LARGE = 300000 };

static const char nonce[] = "0123456789abcdef0123456789abcdef";

static struct work_digest of(const char *queue, const char *activity, const char *with, const char *input)
{
    return work_digest_make(thole_slice_from(queue), thole_slice_from(activity), thole_slice_from(with),
                            thole_slice_from(input));
}

static const char *hex(struct work_digest digest)
{
    static char text[2 * WORK_DIGEST_BYTES + 1];
    for (size_t i = 0; i < WORK_DIGEST_BYTES; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", digest.bytes[i]);
    return text;
}

/* Each is the first half of sha256(len8(queue) queue len8(activity) activity len8(nonce) nonce len8(input)
 * input), lengths in 8 bytes, the lowest first; made with Python's hashlib. */
static void test_vectors(void)
{
    char *const large = memory_array(LARGE, 1);
    memset(large, 'x', LARGE);
    CHECK_STR("an order", hex(of("default", "charge", nonce, "order=17")),
              "75487df3689d95a27753d6d5f0070aa7");
    CHECK_STR("no input", hex(of("default", "charge", nonce, "")), "69dcb37e72b65b0b0c096e0384a632c0");
    CHECK_STR("large",
              hex(work_digest_make(THOLE_STR("q"), THOLE_STR("a"), thole_slice_from(nonce),
                                   (thole_slice){(const uint8_t *)large, LARGE})),
              "9dc2e2c326998fe9dc261b2c7dec0984");
    free(large);
}

/* Each part, and bytes that move from one part into the next. */
static void test_each_part_counts(void)
{
    static const char *const rows[][PARTS] = {
        {"queue", "name", "0123456789abcdef0123456789abcdef", "input"},
        {"queuf", "name", "0123456789abcdef0123456789abcdef", "input"},
        {"queue", "namf", "0123456789abcdef0123456789abcdef", "input"},
        {"queue", "name", "0123456789abcdef0123456789abcdee", "input"},
        {"queue", "name", "0123456789abcdef0123456789abcdef", "inpuu"},
        {"queue", "name", "0123456789abcdef0123456789abcdef", "input "},
        {"queue", "name", "0123456789abcdef0123456789abcdef", ""},
        {"queu", "ename", "0123456789abcdef0123456789abcdef", "input"},
        {"queuen", "ame", "0123456789abcdef0123456789abcdef", "input"},
        {"queue", "name0", "123456789abcdef0123456789abcdef", "input"},
        {"queue", "name", "0123456789abcdef0123456789abcde", "finput"},
        {"name", "queue", "0123456789abcdef0123456789abcdef", "input"},
    };
    struct work_digest digests[ARRAY_LEN(rows)];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        digests[i] = of(rows[i][0], rows[i][1], rows[i][2], rows[i][3]);
        struct work_digest const again = of(rows[i][0], rows[i][1], rows[i][2], rows[i][3]);
        CU_ASSERT_TRUE(work_digest_equal(&digests[i], &again));
        for (size_t other = 0; other < i; other++)
            CU_ASSERT_FALSE(work_digest_equal(&digests[i], &digests[other]));
    }
}

/* The bytes of an equal one are all that counts, each of them. */
static void test_equal(void)
{
    struct work_digest const digest = of("q", "a", nonce, "");
    CU_ASSERT_TRUE(
        thole_slice_equal(work_digest_slice(&digest), (thole_slice){digest.bytes, WORK_DIGEST_BYTES}));
    for (size_t i = 0; i < WORK_DIGEST_BYTES; i++) {
        struct work_digest other = digest;
        other.bytes[i] ^= 1;
        CU_ASSERT_FALSE(work_digest_equal(&digest, &other));
    }
}

static const struct thole_test tests[] = {
    {"vectors", test_vectors}, {"each part counts", test_each_part_counts}, {"equal", test_equal}};
THOLE_TEST_MAIN("work digest", tests)
