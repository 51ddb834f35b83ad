/* SHA-256 and HMAC-SHA256 beside libcrypto's own, and the published values. */
#include "sha256.h"
#include "thole_cunit.h"
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

enum { LONGEST = 300 };

static void check_hex(const char *what, const uint8_t bytes[SHA256_BYTES], const char *want)
{
    char text[2 * SHA256_BYTES + 1];
    for (size_t i = 0; i < SHA256_BYTES; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    CHECK_STR(what, text, want);
}

static void test_published(void)
{
    uint8_t got[SHA256_BYTES];
    sha256_of(NULL, 0, got);
    check_hex("nothing", got, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256_of((const thole_slice[]){THOLE_STR("a"), {NULL, 0}, THOLE_STR("bc")}, 3, got);
    check_hex("abc", got, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256_hmac(THOLE_STR("Jefe"), THOLE_STR("what do ya want for nothing?"), got);
    check_hex("RFC 4231, 4.3", got, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

/* All lengths about the blocks of 64 bytes. */
static void test_each_length(void)
{
    uint8_t bytes[LONGEST], got[SHA256_BYTES], want[EVP_MAX_MD_SIZE];
    for (size_t i = 0; i < LONGEST; i++)
        bytes[i] = (uint8_t)(i * 7 + 1);
    for (size_t len = 0; len <= LONGEST; len++) {
        size_t const split = len / 3, key = len % (SHA256_KEY_BYTES_MAX + 1);
        unsigned want_len = 0;
        sha256_of((const thole_slice[]){{bytes, split}, {bytes + split, len - split}}, 2, got);
        CU_ASSERT_EQUAL(EVP_Digest(bytes, len, want, NULL, EVP_sha256(), NULL), 1);
        CU_ASSERT_EQUAL(memcmp(got, want, sizeof got), 0);
        sha256_hmac((thole_slice){bytes, key}, (thole_slice){bytes, len}, got);
        CU_ASSERT_PTR_NOT_NULL(HMAC(EVP_sha256(), bytes, (int)key, bytes, len, want, &want_len));
        CU_ASSERT_EQUAL(want_len, sizeof got);
        CU_ASSERT_EQUAL(memcmp(got, want, sizeof got), 0);
    }
}

static const struct thole_test tests[] = {
    {"published values", test_published},
    {"each length", test_each_length},
};
THOLE_TEST_MAIN("sha256", tests)
