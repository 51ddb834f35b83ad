/* Signed notes: the values of Go's sumdb/note, several signatures, and what is no signature. */
#include "note.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <string.h>

#define PRIVATE_KEY "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
#define PUBLIC_KEY "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
#define TEXT                                                                                                 \
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
#define SIGNATURE                                                                                            \
    "\xe2\x80\x94 PeterNeumann "                                                                             \
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"

static struct note_key key_of(const char *text)
{
    struct note_key key = {.id = 0};
    CU_ASSERT_EQUAL(note_key_parse(thole_slice_from(text), &key, NULL), THOLE_OK);
    return key;
}

static void test_keys(void)
{
    struct buf text;
    struct note_key const secret = key_of(PRIVATE_KEY), public = key_of(PUBLIC_KEY "\n");
    CU_ASSERT_TRUE(secret.signs && !public.signs && secret.id == public.id);
    CU_ASSERT_EQUAL(memcmp(secret.public_bytes, public.public_bytes, NOTE_KEY_BYTES), 0);
    buf_init(&text, 1024);
    note_key_text(&secret, false, &text);
    CU_ASSERT_STRING_EQUAL(buf_cstr(&text), PUBLIC_KEY);
    buf_clear(&text);
    note_key_text(&secret, true, &text);
    CU_ASSERT_STRING_EQUAL(buf_cstr(&text), PRIVATE_KEY);
    buf_release(&text);
}

static void test_no_keys(void)
{
    static const char *const rows[] = {
        "",
        "+",
        "PeterNeumann",
        "PeterNeumann+c74f20a3",
        "PeterNeumann+c74f20a3+",
        "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumanm+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+AhpC2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10T",
        "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PRIVATE+KEY+",
        "PRIVATE+KEY+PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct note_key key;
        thole_error err = {.status = THOLE_OK};
        if (note_key_parse(thole_slice_from(rows[i]), &key, &err) != THOLE_INVALID)
            (void)printf("\n  %s is a key\n", rows[i]);
        CU_ASSERT_EQUAL(err.status, THOLE_INVALID);
        CU_ASSERT(strstr(err.text, "ARpc") == NULL);
    }
}

static void test_signatures(void)
{
    struct note_key const secret = key_of(PRIVATE_KEY), public = key_of(PUBLIC_KEY);
    struct note_key witness;
    uint8_t const seed[NOTE_KEY_BYTES] = {1, 2, 3};
    struct buf note;
    thole_slice text;
    CU_ASSERT_EQUAL(note_key_make(THOLE_STR("witness.example"), seed, &witness, NULL), THOLE_OK);
    buf_init(&note, 4096);
    buf_text(&note, TEXT);
    CU_ASSERT_EQUAL(note_sign(&note, &secret, NULL), THOLE_OK);
    CU_ASSERT_STRING_EQUAL(buf_cstr(&note), TEXT "\n" SIGNATURE);
    CU_ASSERT_EQUAL(note_verify(buf_bytes(&note), &witness, &text, NULL), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(note_sign(&note, &witness, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(note_sign(&note, &public, NULL), THOLE_INVALID);
    CU_ASSERT_EQUAL(note_verify(buf_bytes(&note), &public, &text, NULL), THOLE_OK);
    CU_ASSERT_TRUE(thole_slice_equal(text, THOLE_STR(TEXT)));
    CU_ASSERT_EQUAL(note_verify(buf_bytes(&note), &witness, &text, NULL), THOLE_OK);
    for (size_t bit = 0; bit < 8 * note.len;
         bit++) { /* whichever bit is flipped, one of them does not hold */
        note.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CU_ASSERT(note_verify(buf_bytes(&note), &public, &text, NULL) != THOLE_OK ||
                  note_verify(buf_bytes(&note), &witness, &text, NULL) != THOLE_OK);
        note.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t len = 0; len < note.len; len++)
        CU_ASSERT_NOT_EQUAL(note_verify((thole_slice){note.ptr, len}, &witness, &text, NULL), THOLE_OK);
    buf_release(&note);
}

static void test_checkpoints(void)
{
    static const char *const bad[] = {"",
                                      "o\n",
                                      "o\n1\n",
                                      "o\n01\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
                                      "\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
                                      "o\n-1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
                                      "o\n1\nAAAA\n",
                                      "o\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="};
    struct checkpoint again,
        checkpoint = {.origin = THOLE_STR("thole/default/3"), .size = 1234, .extension = THOLE_STR("more\n")};
    struct buf text;
    buf_init(&text, 4096);
    checkpoint_text(&checkpoint, &text);
    CU_ASSERT_STRING_EQUAL(buf_cstr(&text),
                           "thole/default/3\n1234\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\nmore\n");
    CU_ASSERT_EQUAL(checkpoint_parse(buf_bytes(&text), &again, NULL), THOLE_OK);
    CU_ASSERT_TRUE(thole_slice_equal(again.origin, checkpoint.origin) && again.size == 1234 &&
                   thole_slice_equal(again.extension, checkpoint.extension));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(checkpoint_parse(thole_slice_from(bad[i]), &again, NULL), THOLE_CORRUPT);
    buf_release(&text);
}

static const struct thole_test tests[] = {
    {"keys", test_keys},
    {"what is no key", test_no_keys},
    {"signatures", test_signatures},
    {"checkpoints", test_checkpoints},
};
THOLE_TEST_MAIN("note", tests)
