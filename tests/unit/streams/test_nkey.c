/* The public key to the seed in a file, and files that hold none. */
#include "nkey.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEED "SUAPUTCCHXSTHNBASBA6HBNFFJ2DFDQEUFEDQPBG2H2ZTVPCVZ6CPXIFOM"
#define PUBLIC "UANNP4UVODEYGGMJR44NTZGGOHPGGHZMVCQJWQVGFC4EQUIJ4KRPLUOH"
#define NO_SEED                                                                                              \
    "the file of NATS credentials holds one line, which is not the NKey seed of a user (SU and 56 more "     \
    "letters and digits)"

static void test_files(void)
{
    static const struct {
        const char *text;
        thole_status want;
        const char *says;
    } rows[] = {
        {SEED, THOLE_OK, PUBLIC},
        {"\n  " SEED "\r\n\n", THOLE_OK, PUBLIC},
        {SEED "A", THOLE_INVALID, NO_SEED},
        {"SUA", THOLE_INVALID, NO_SEED},
        {"SAAHG2YHFNFJQ2RRFZFAYLGNRAE7BEYUUXNLMUXHMPBVZ4M7WKQDP6RYVQ", THOLE_INVALID,
         NO_SEED}, /* an account */
        {"s" SEED, THOLE_NOT_FOUND, ""},
        {"", THOLE_NOT_FOUND, ""},
        {"-----BEGIN NATS USER JWT-----\neyJ0eXAi\n------END NATS USER JWT------\n" SEED "\n",
         THOLE_NOT_FOUND, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[] = "/tmp/thole-nkey.XXXXXX", public[NKEY_PUBLIC_BYTES] = "";
        thole_error err = {0};
        int const fd = mkstemp(path);
        CU_ASSERT_FATAL(fd >= 0 && write(fd, rows[i].text, strlen(rows[i].text)) >= 0);
        close(fd);
        CU_ASSERT_EQUAL(nkey_public(path, public, &err), rows[i].want);
        unlink(path);
        if (rows[i].want != THOLE_NOT_FOUND)
            CHECK_STR("says", rows[i].want == THOLE_OK ? public : err.text, rows[i].says);
        CU_ASSERT_PTR_NULL(strstr(err.text, "SU"
                                            "A"));
    }
    char public[NKEY_PUBLIC_BYTES];
    CU_ASSERT_EQUAL(nkey_public("/nowhere/at/all", public, NULL), THOLE_NOT_FOUND);
}

/* One letter that is wrong is noticed by the checksum. */
static void test_each_letter(void)
{
    for (size_t i = 0; i < sizeof SEED - 1; i++) {
        char path[] = "/tmp/thole-nkey.XXXXXX", seed[] = SEED, public[NKEY_PUBLIC_BYTES];
        int const fd = mkstemp(path);
        seed[i] = seed[i] == 'Q' ? 'R' : 'Q';
        CU_ASSERT_FATAL(fd >= 0 && write(fd, seed, sizeof seed - 1) > 0);
        close(fd);
        CU_ASSERT_NOT_EQUAL(nkey_public(path, public, NULL), THOLE_OK);
        unlink(path);
    }
}

static const struct thole_test tests[] = {
    {"files", test_files},
    {"each letter", test_each_letter},
};

THOLE_TEST_MAIN("nkey", tests)
