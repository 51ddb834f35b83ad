/* The engine's reading of the message on the subject of its own. */
#include "thole_cunit.h"
#include "work.h"
#include <string.h>

enum { ANSWER_BYTES = 4096 };

static const char own[] =
    "NATS/1.0\r\nThole-Activity: charge\r\nThole-Nonce: 0123456789abcdef0123456789abcdef\r\n\r\n";

/* Bytes in base64, for the answer. */
static const char *base64(const char *bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static char text[2][ANSWER_BYTES];
    static int which;
    char *const to = text[which++ % 2];
    size_t const len = strlen(bytes);
    size_t n = 0;
    for (size_t i = 0; i < len; i += 3) {
        uint32_t const a = (uint8_t)bytes[i], b = i + 1 < len ? (uint8_t)bytes[i + 1] : 0,
                       c = i + 2 < len ? (uint8_t)bytes[i + 2] : 0;
        to[n++] = digits[a >> 2];
        to[n++] = digits[(a & 3) << 4 | b >> 4];
        to[n++] = i + 1 < len ? digits[(b & 15) << 2 | c >> 6] : '=';
        to[n++] = i + 2 < len ? digits[c & 63] : '=';
    }
    to[n] = '\0';
    return to;
}

static struct {
    thole_status status;
    uint64_t sequence;
    bool read;
    struct work_digest digest;
} got;

static void look(const char *answer)
{
    memset(&got, 0, sizeof got);
    got.status = work_look_answer(thole_slice_from(answer), THOLE_STR("mail"), &got.sequence, &got.read,
                                  &got.digest, NULL);
}

static void look_at(const char *headers, const char *input)
{
    char answer[3 * ANSWER_BYTES];
    (void)snprintf(
        answer, sizeof answer,
        "{\"type\":\"t\",\"message\":{\"subject\":\"thole.n.work.mail.i.1.2.1\",\"seq\":17,\"hdrs\":\"%s\","
        "\"data\":\"%s\"}}",
        base64(headers), base64(input));
    look(answer);
}

static bool is_own(void)
{
    struct work_digest const want =
        work_digest_make(THOLE_STR("mail"), THOLE_STR("charge"),
                         THOLE_STR("0123456789abcdef0123456789abcdef"), THOLE_STR("12 EUR"));
    CU_ASSERT_EQUAL(got.status, THOLE_OK);
    CU_ASSERT_EQUAL(got.sequence, 17);
    return got.read && work_digest_equal(&got.digest, &want);
}

static void test_its_own(void)
{
    look_at(own, "12 EUR");
    CU_ASSERT_TRUE(is_own());
    look_at("NATS/1.0\r\nX: Thole-Activity: ship\r\nThole-Nonce:0123456789abcdef0123456789abcdef\r\nA:\r\n"
            "Thole-Activity: charge\r\nThole-Activity: ship\r\n\r\n",
            "12 EUR"); /* as a worker reads it: the first of a name */
    CU_ASSERT_TRUE(is_own());
}

static void test_another(void)
{
    look_at(own, "12 EURO");
    CU_ASSERT_TRUE(got.read && !is_own());
    look_at("NATS/1.0\r\nThole-Activity: ship\r\nThole-Nonce: 0123456789abcdef0123456789abcdef\r\n\r\n",
            "12 EUR");
    CU_ASSERT_TRUE(got.read && !is_own());
    look_at("NATS/1.0\r\nThole-Activity: charge\r\nThole-Nonce: 0123456789abcdef0123456789abcdee\r\n\r\n",
            "12 EUR");
    CU_ASSERT_TRUE(got.read && !is_own());
}

/* No worker could either. */
static void test_unreadable(void)
{
    static const char *const rows[] = {
        "",
        "NATS/1.0\r\n\r\n",
        "NATS/1.0\r\nThole-Activity: charge\r\n\r\n",
        "NATS/1.0\r\nThole-Nonce: 0123456789abcdef0123456789abcdef\r\n\r\n",
        "NATS/1.0\r\nThole-Activity: a b\r\nThole-Nonce: 0123456789abcdef0123456789abcdef\r\n\r\n",
        "NATS/1.0\r\nThole-Activity: charge\r\nThole-Nonce: 0123\r\n\r\n",
        "NATS/1.0\r\nThole-Activity",
        "NATS/1.0\r\nThole-Activity:"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        look_at(rows[i], "12 EUR");
        CU_ASSERT_FALSE(is_own());
        CU_ASSERT_FALSE(got.read);
    }
    look("{\"type\":\"t\",\"message\":{\"subject\":\"s\",\"seq\":17}}");
    CU_ASSERT_EQUAL(got.status, THOLE_OK);
    CU_ASSERT_TRUE(!got.read && got.sequence == 17);
}

static void test_no_answer(void)
{
    look("{\"type\":\"t\",\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"no message found\"}}");
    CU_ASSERT_EQUAL(got.status, THOLE_OK);
    CU_ASSERT_TRUE(got.sequence == 0 && !got.read);
    look("{\"type\":\"t\",\"error\":{\"code\":503,\"err_code\":10008,\"description\":\"away\"}}");
    CU_ASSERT_NOT_EQUAL(got.status, THOLE_OK);
    look("{\"type\":\"t\",\"message\":{\"subject\":\"s\",\"seq\":17,\"hdrs\":\"?\"}}");
    CU_ASSERT_EQUAL(got.status, THOLE_CORRUPT);
    CU_ASSERT_FALSE(got.read);
}

static const struct thole_test tests[] = {
    {"its own", test_its_own},
    {"another", test_another},
    {"unreadable", test_unreadable},
    {"no answer", test_no_answer},
};
THOLE_TEST_MAIN("work answer", tests)
