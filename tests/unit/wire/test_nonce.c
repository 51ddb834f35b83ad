/* Nonces: what they are made of never changes, and which results are refused. */
#include "nonce.h"
#include "nonces.h"
#include "thole_cunit.h"

/* Made with another implementation (Python's hmac): a queue outlives the version that filled it. */
static void test_what_it_is(void)
{
    char longest[THOLE_ID_BYTES_MAX + 1];
    memset(longest, 'x', THOLE_ID_BYTES_MAX);
    longest[THOLE_ID_BYTES_MAX] = '\0';
    const struct {
        const char *instance;
        uint64_t execution, activity_id;
        const char *want;
    } rows[] = {{"order-17", 1, 2, "9c7e8e5835b336f5bb80a05df9099e1a"},
                {"i", 1, 256, "9c793a1436a7b53c30bbaf94b4dffb02"},
                {"i", 256, 1, "183f71cb3ff89276dd04d46dff87446a"},
                {longest, INT64_MAX, INT64_MAX, "fe17362c406a98a3b166bbe7e015f2a6"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct nonce const nonce = nonce_make(test_nonce_key(), thole_slice_from(rows[i].instance),
                                              rows[i].execution, rows[i].activity_id);
        CHECK_STR(rows[i].want, nonce.text, rows[i].want);
        CU_ASSERT_TRUE(nonce_is_text(thole_slice_from(nonce.text)));
    }
    struct nonce_key other = *test_nonce_key();
    other.bytes[NONCE_KEY_BYTES - 1] = 1;
    struct nonce const another = nonce_make(&other, THOLE_STR("order-17"), 1, 2);
    CU_ASSERT_NOT_EQUAL(strcmp(another.text, rows[0].want), 0);
}

static void test_what_may_be_one(void)
{
    static const char *const bad[] = {"",
                                      "9c7e8e5835b336f5bb80a05df9099e1",
                                      "9c7e8e5835b336f5bb80a05df9099e1a0",
                                      "9C7e8e5835b336f5bb80a05df9099e1a",
                                      "9c7e8e5835b336f5bb80a05df9099e1g",
                                      "/c7e8e5835b336f5bb80a05df9099e1a",
                                      ":c7e8e5835b336f5bb80a05df9099e1a",
                                      "`c7e8e5835b336f5bb80a05df9099e1a"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_FALSE(nonce_is_text(thole_slice_from(bad[i])));
    CU_ASSERT_TRUE(nonce_is_text(THOLE_STR("0123456789abcdef0123456789abcdef")));
}

static void test_which_results_are_refused(void)
{
    struct message const result = {
        .kind = MESSAGE_ACTIVITY_RESULT, .instance = THOLE_STR("i"), .execution = 3, .task = 4};
    struct nonce room;
    struct message good = test_with_nonce(&result, &room);
    CU_ASSERT_EQUAL(nonce_check(test_nonce_key(), &good, SENDER_CLIENT, NULL), THOLE_OK);
    thole_error err = {0};
    CU_ASSERT_EQUAL(nonce_check(test_nonce_key(), &result, SENDER_CLIENT, &err), THOLE_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "it has no nonce"));
    for (size_t i = 0; i < NONCE_TEXT_LEN; i++) { /* each digit counts */
        struct nonce wrong = room;
        struct message forged = good;
        wrong.text[i] = wrong.text[i] == '0' ? '1' : '0';
        forged.nonce = thole_slice_from(wrong.text);
        CU_ASSERT_EQUAL(nonce_check(test_nonce_key(), &forged, SENDER_CLIENT, &err), THOLE_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another one"));
        forged.nonce = (thole_slice){(const uint8_t *)room.text, i};
        CU_ASSERT_EQUAL(nonce_check(test_nonce_key(), &forged, SENDER_CLIENT, NULL), THOLE_INVALID);
    }
    struct message moved = good;
    moved.execution++;
    CU_ASSERT_EQUAL(nonce_check(test_nonce_key(), &moved, SENDER_CLIENT, NULL), THOLE_INVALID);
    moved = good;
    moved.task++;
    CU_ASSERT_EQUAL(nonce_check(test_nonce_key(), &moved, SENDER_CLIENT, NULL), THOLE_INVALID);
    moved = good;
    moved.instance = THOLE_STR("j");
    CU_ASSERT_EQUAL(nonce_check(test_nonce_key(), &moved, SENDER_CLIENT, NULL), THOLE_INVALID);
    moved = good;
    moved.try_number = 7; /* all tries have the same */
    CU_ASSERT_EQUAL(nonce_check(test_nonce_key(), &moved, SENDER_CLIENT, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(nonce_check(test_nonce_key(), &good, SENDER_WORKER, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(nonce_check(test_nonce_key(), &result, SENDER_WORKER, NULL), THOLE_INVALID);
    CU_ASSERT_EQUAL(nonce_check(test_nonce_key(), &result, SENDER_ENGINE, NULL), THOLE_OK); /* a timeout */
    struct message const event = {.kind = MESSAGE_EVENT, .instance = THOLE_STR("i")};
    CU_ASSERT_EQUAL(nonce_check(test_nonce_key(), &event, SENDER_CLIENT, NULL), THOLE_OK);
}

static void test_the_key_as_text(void)
{
    static const char *const bad[] = {"",
                                      "00",
                                      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1",
                                      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f0",
                                      "000102030405060708090A0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
                                      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1g",
                                      "g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"};
    struct nonce_key key, back;
    for (size_t i = 0; i < NONCE_KEY_BYTES; i++)
        key.bytes[i] = (uint8_t)(i * 8 + 7);
    struct nonce_key_text const text = nonce_key_write(&key);
    CHECK_STR("key", text.text, "070f171f272f373f474f575f676f777f878f979fa7afb7bfc7cfd7dfe7eff7ff");
    CU_ASSERT_TRUE(nonce_key_read(thole_slice_from(text.text), &back));
    CU_ASSERT_EQUAL(memcmp(&key, &back, sizeof key), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_FALSE(nonce_key_read(thole_slice_from(bad[i]), &back));
}

static void test_marks_of_keys(void)
{
    struct nonce_key a = {.bytes = {1}}, b = {.bytes = {2}};
    CU_ASSERT_EQUAL(nonce_key_mark(&a), nonce_key_mark(&a));
    CU_ASSERT_NOT_EQUAL(nonce_key_mark(&a), nonce_key_mark(&b));
    CU_ASSERT(nonce_key_mark(&a) > 0 && nonce_key_mark(&a) <= INT64_MAX);
}

static const struct thole_test tests[] = {
    {"what_it_is", test_what_it_is},
    {"what_may_be_one", test_what_may_be_one},
    {"which_results_are_refused", test_which_results_are_refused},
    {"the_key_as_text", test_the_key_as_text},
    {"marks_of_keys", test_marks_of_keys},
};
THOLE_TEST_MAIN("nonce", tests)
