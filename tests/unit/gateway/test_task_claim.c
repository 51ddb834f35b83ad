/* Claims as texts: what is written is read again, and nothing else is. */
#include "task_claim.h"
#include "thole_cunit.h"
#include "work.h"

static const char nonce[] = "00ff7651916cd43dd0af7651916cd43d";

struct made {
    struct thole_activity act;
    struct work_message message;
};

static struct thole_activity *make(struct made *made, thole_slice instance, uint64_t number)
{
    *made = (struct made){.message = {.item = {.instance = instance,
                                               .nonce = thole_slice_from(nonce),
                                               .execution = number,
                                               .activity_id = number,
                                               .try_number = number < INT32_MAX ? number : INT32_MAX},
                                      .digest = {.bytes = "0123456789abcde"}},
                          .act = {.attempt = number, .claimed_us = number}};
    made->act.message = &made->message;
    return &made->act;
}

static void check_same(thole_slice instance, uint64_t number)
{
    struct made made;
    struct task_claim_bytes bytes;
    struct resumed_claim claim;
    char text[TASK_CLAIM_BYTES];
    task_claim_write(make(&made, instance, number), text);
    CU_ASSERT_TRUE_FATAL(task_claim_read(text, &bytes, &claim));
    for (const char *c = text; *c != '\0'; c++)
        CU_ASSERT_TRUE(*c > ' ' && *c < 127 && *c != '"' && *c != '\\');
    CU_ASSERT_TRUE(thole_slice_equal(claim.item.instance, instance));
    CHECK_STR("nonce", (const char *)claim.item.nonce.ptr, nonce);
    CU_ASSERT_EQUAL(claim.item.execution, number);
    CU_ASSERT_EQUAL(claim.item.activity_id, number);
    CU_ASSERT_EQUAL(claim.item.try_number, made.message.item.try_number);
    CU_ASSERT_EQUAL(claim.attempt, number);
    CU_ASSERT_EQUAL(claim.claimed_us, number);
    CU_ASSERT_TRUE(work_digest_equal(&claim.digest, &made.message.digest));
    CU_ASSERT_FALSE(claim.gone);
}

static void test_written_and_read(void)
{
    static const uint64_t numbers[] = {1, 127, 128, 300, UINT32_MAX, 1764110000123456, INT64_MAX};
    char longest[THOLE_ID_BYTES_MAX];
    memset(longest, 'i', sizeof longest);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        check_same(THOLE_STR("i"), numbers[i]);
        check_same(THOLE_STR("order 17/\xc3\xa4"), numbers[i]);
        for (size_t len = sizeof longest - 3; len <= sizeof longest; len++)
            check_same((thole_slice){(const uint8_t *)longest, len}, numbers[i]);
    }
}

static bool reads(const char *text)
{
    struct task_claim_bytes bytes;
    struct resumed_claim claim;
    bool const read = task_claim_read(text, &bytes, &claim);
    CU_ASSERT_EQUAL(claim.gone, !read);
    return read;
}

static void test_damaged(void)
{
    struct made made;
    char text[TASK_CLAIM_BYTES], damaged[2 * TASK_CLAIM_BYTES];
    task_claim_write(make(&made, THOLE_STR("order-17"), 300), text);
    size_t const len = strlen(text);
    CU_ASSERT_TRUE(reads(text));
    for (size_t i = 0; i < len; i++) {
        for (int bit = 0; bit < 7; bit++) {
            snprintf(damaged, sizeof damaged, "%s", text);
            damaged[i] ^= (char)(1 << bit);
            CU_ASSERT_FALSE(reads(damaged));
        }
        snprintf(damaged, sizeof damaged, "%.*s", (int)i, text);
        CU_ASSERT_FALSE(reads(damaged));
    }
    snprintf(damaged, sizeof damaged, "%sA", text);
    CU_ASSERT_FALSE(reads(damaged));
    snprintf(damaged, sizeof damaged, "%s%s", text, text);
    CU_ASSERT_FALSE(reads(damaged));
    memset(damaged, 'A', sizeof damaged - 1);
    damaged[sizeof damaged - 1] = '\0';
    CU_ASSERT_FALSE(reads(damaged));
    CU_ASSERT_FALSE(reads("7"));
    CU_ASSERT_FALSE(reads(" "));
}

/* The number of a claim is from 1, as is that of a try. */
static void test_no_numbers(void)
{
    struct made made;
    char text[TASK_CLAIM_BYTES];
    task_claim_write(make(&made, THOLE_STR("i"), 0), text);
    CU_ASSERT_FALSE(reads(text));
}

static const struct thole_test tests[] = {
    {"written and read", test_written_and_read}, {"damaged", test_damaged}, {"no numbers", test_no_numbers}};
THOLE_TEST_MAIN("task_claim", tests)
