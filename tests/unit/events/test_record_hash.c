/* The hash of a record: the values that docs/audit.md gives. They are stored, so they are for ever. */
#include "record_hash.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <string.h>

static const struct row {
    const char *ns;
    uint32_t partition;
    const char *record, *hash; /* hexadecimal digits */
} rows[] = {
    {"default", 0, "", "e3ccec42c5fe8ac1d5017b3a780a8d4c06eca34f5130fb73ded2043da892d039"},
    {"default", 0, "0801100132020a00", "0770a56b56a885037250902f08ebb3868a93b0f7f7bc4a4bccec6123b81a9e58"},
    {"default", 1, "0801100132020a00", "1c6c491f209a80c7fe05c617b8baf7edebff57d566abcca16b380f177845cc8a"},
    {"default2", 0, "0801100132020a00", "c1eeacd805829efcf4f15899b680ad654b2d04dac497306817781b266aec870a"},
    {"a", 4095, "08011001180142007800", "8763f59b63921d0542c53b2f637d0a4c6d3e3819dd9a00168e168c72f8f2a8ce"},
};

static size_t from_hex(const char *hex, uint8_t *to)
{
    size_t n = 0;
    for (unsigned byte; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
        to[n] = (uint8_t)byte;
    return n;
}

static void test_vectors(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t record[64], want[64];
        thole_slice const bytes = {record, from_hex(rows[i].record, record)};
        struct record_hash const hash =
            record_hash_make(thole_slice_from(rows[i].ns), rows[i].partition, bytes);
        CU_ASSERT_EQUAL(from_hex(rows[i].hash, want), sizeof hash.bytes);
        CU_ASSERT(memcmp(hash.bytes, want, sizeof hash.bytes) == 0);
    }
}

static void test_none(void)
{
    struct record_hash const none = record_hash_said((thole_slice){0});
    struct record_hash const some = record_hash_make(THOLE_STR("a"), 0, THOLE_STR("b"));
    CU_ASSERT_FALSE(record_hash_known(&none));
    CU_ASSERT_EQUAL(record_hash_slice(&none).len, 0);
    CU_ASSERT_TRUE(record_hash_known(&some));
    CU_ASSERT_FALSE(record_hash_equal(&some, &none));
    struct record_hash const again = record_hash_said(record_hash_slice(&some));
    CU_ASSERT_TRUE(record_hash_equal(&some, &again));
}

static const struct thole_test tests[] = {
    {"the values that are documented", test_vectors},
    {"none is no hash", test_none},
};
THOLE_TEST_MAIN("record_hash", tests)
