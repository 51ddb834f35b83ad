/* A stream's subjects, page by page, while subjects come and go; the server's answers are the test's. */
#include "api.h"
#include "subject_list.h"
#include "thole_cunit.h"
#include <stdlib.h>

enum { SUBJECTS = 10000, PAGE = 3000, SINCE = 7 };

static struct {
    bool there[SUBJECTS], heard[SUBJECTS];
    size_t goes_from, goes_to; /* these go after the first page; none where they are equal */
    uint64_t last_sequence;
    size_t calls, page;
    const char *answer; /* instead */
} server;

/* ---- the server ---- */

static void remove_some(void)
{
    for (size_t i = server.goes_from; i < server.goes_to; i++)
        server.there[i] = false;
}

static void list_page(uint64_t offset, struct buf *to)
{
    size_t total = 0, n = 0;
    buf_printf(to, "{\"type\":\"t\",\"state\":{\"last_seq\":%llu,\"subjects\":{",
               (unsigned long long)server.last_sequence);
    for (size_t i = 0; i < SUBJECTS; i++) {
        if (!server.there[i])
            continue;
        if (total >= offset && n < server.page)
            buf_printf(to, "%s\"thole.x.hist.0.%05zu.1\":1", n++ == 0 ? "" : ",", i);
        total++;
    }
    buf_printf(to, "}},\"total\":%zu,\"offset\":%llu,\"limit\":%zu}", total, (unsigned long long)offset,
               server.page);
}

static uint64_t offset_of(thole_slice body)
{
    static const char key[] = "\"offset\":";
    char text[API_BODY_BYTES + 1] = {0};
    memcpy(text, body.ptr, body.len);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"subjects_filter\":\">\""));
    const char *const at = strstr(text, key);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    return strtoull(at + sizeof key - 1, NULL, 10);
}

thole_status __wrap_api_call(struct connection *connection, const char *verb, const char *target,
                             thole_slice body, struct buf *answer, uint32_t *ret_error, thole_error *reterr);
thole_status __wrap_api_call(struct connection *connection, const char *verb, const char *target,
                             thole_slice body, struct buf *answer, uint32_t *ret_error, thole_error *reterr)
{
    (void)connection, (void)ret_error, (void)reterr;
    CHECK_STR("verb", verb, "STREAM.INFO");
    CHECK_STR("stream", target, "S");
    buf_clear(answer);
    if (server.answer != NULL)
        buf_text(answer, server.answer);
    else
        list_page(offset_of(body), answer);
    if (server.calls++ == 0)
        remove_some();
    return THOLE_OK;
}

/* ---- the caller ---- */

static void hear(void *arg, thole_slice subject)
{
    char text[64] = {0};
    unsigned i = SUBJECTS;
    CU_ASSERT_PTR_EQUAL(arg, &server);
    CU_ASSERT_FATAL(subject.len < sizeof text);
    memcpy(text, subject.ptr, subject.len);
    CU_ASSERT_FATAL(sscanf(text, "thole.x.hist.0.%u.1", &i) == 1 && i < SUBJECTS);
    server.heard[i] = true;
}

static thole_status list(size_t most, thole_error *reterr)
{
    return stream_subjects(NULL, "S", SINCE, most, hear, &server, reterr);
}

static void begin(size_t page)
{
    memset(&server, 0, sizeof server);
    server.last_sequence = SINCE;
    server.page = page;
    memset(server.there, true, sizeof server.there);
}

/* All that are there now were there all the time. */
static size_t missing(void)
{
    size_t n = 0;
    for (size_t i = 0; i < SUBJECTS; i++)
        n += server.there[i] && !server.heard[i];
    return n;
}

static void fail(const char *what, const char *text)
{
    (void)fprintf(stderr, "%s: %s, %zu calls\n", what, text, server.calls);
    CU_FAIL("not what was to come");
}

/* ---- tests ---- */

static void test_pages(void)
{
    static const struct {
        const char *what;
        size_t page, from, to, calls;
        thole_status want;
    } rows[] = {{"one page", SUBJECTS, 0, 0, 1, THOLE_OK},
                {"pages overlap", PAGE, 0, 0, 5, THOLE_OK},
                {"some of the first page go", PAGE, 10, 11, 5, THOLE_OK},
                {"as many as the pages overlap by", PAGE, 10, 1009, 5, THOLE_OK},
                {"its end goes", PAGE, 2500, 3000, 5, THOLE_OK},
                {"more than that: what moved up may be left out", PAGE, 10, 1011, 2, THOLE_UNAVAILABLE},
                {"some that come later go", PAGE, 4000, 6000, 4, THOLE_OK}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_error err = {0};
        begin(rows[i].page);
        server.goes_from = rows[i].from;
        server.goes_to = rows[i].to;
        if (list(SUBJECTS, &err) != rows[i].want || server.calls != rows[i].calls)
            fail(rows[i].what, err.text);
        CU_ASSERT(rows[i].want != THOLE_OK || missing() == 0);
    }
}

static void test_too_many(void)
{
    thole_error err = {0};
    begin(PAGE);
    CU_ASSERT_EQUAL(list(SUBJECTS, &err), THOLE_OK);
    begin(PAGE);
    CU_ASSERT_EQUAL(list(SUBJECTS - 1, &err), THOLE_LIMIT);
    CU_ASSERT_EQUAL(server.calls, 1);
}

static void test_a_leader_of_yesterday(void)
{
    thole_error err = {0};
    begin(SUBJECTS);
    server.last_sequence = SINCE - 1;
    CU_ASSERT_EQUAL(list(SUBJECTS, &err), THOLE_UNAVAILABLE);
    CU_ASSERT_EQUAL(missing(), SUBJECTS);
}

/* None of them may be taken for "there is none". */
static void test_answers_that_say_nothing(void)
{
    static const char *const answers[] = {
        "{\"type\":\"t\",\"state\":{\"last_seq\":9,\"messages\":3}}",
        "{\"type\":\"t\",\"state\":{\"last_seq\":9},\"total\":0}",
        "{\"type\":\"t\",\"state\":{\"last_seq\":9},\"total\":2}",
        "{\"type\":\"t\",\"state\":{\"last_seq\":9,\"subjects\":{\"thole.x.hist.0.1.1\":1}},\"total\":2}",
        "{\"type\":\"t\",\"state\":{\"last_seq\":9,\"subjects\":{\"a\\u0062\":1}},\"total\":1}",
        "{\"type\":\"t\",\"state\":{\"subjects\":{\"thole.x.hist.0.1.1\":1}},\"total\":1}",
        "{\"type\":\"t\",\"state\":{\"last_seq\":9,\"subjects\":{\"thole.x.hist.0.1.1\":1,7}},\"total\":2}",
    };
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        thole_error err = {0};
        begin(PAGE);
        server.answer = answers[i];
        if (list(SUBJECTS, &err) != THOLE_CORRUPT || err.text[0] == '\0')
            fail(answers[i], err.text);
    }
}

static const struct thole_test tests[] = {
    {"pages", test_pages},
    {"too many", test_too_many},
    {"a leader of yesterday", test_a_leader_of_yesterday},
    {"answers that say nothing", test_answers_that_say_nothing},
};
THOLE_TEST_MAIN("subject list", tests)
