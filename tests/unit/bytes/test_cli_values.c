/* Durations, sizes, misspelt words. */
#include "text.h"
#include "thole_cunit.h"
#include "values.h"
#include <inttypes.h>

static void test_durations(void)
{
    static const struct {
        const char *text;
        uint64_t ms; /* UINT64_MAX: refused */
    } cases[] = {
        {"0", 0},
        {"0s", 0},
        {"1ms", 1},
        {"500ms", 500},
        {"10s", 10000},
        {"1.5s", 1500},
        {"0.25s", 250},
        {"2m", 120000},
        {"1.5m", 90000},
        {"1h", 3600000},
        {"7d", 604800000},
        {"0.001s", 1},
        {"", UINT64_MAX},
        {"10", UINT64_MAX},
        {"s", UINT64_MAX},
        {"-1s", UINT64_MAX},
        {"1 s", UINT64_MAX},
        {"1.5ms", UINT64_MAX},
        {"1.s", UINT64_MAX},
        {".5s", UINT64_MAX},
        {"1sec", UINT64_MAX},
        {"1S", UINT64_MAX},
        {"1.2345s", UINT64_MAX},
        {"1s ", UINT64_MAX},
        {"99999999999999999999s", UINT64_MAX},
        {"999999999999999999d", UINT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char got[64], want[64];
        uint64_t ms = 0;
        thole_error error = {.status = THOLE_OK};
        bool const ok = duration_parse(cases[i].text, &ms, &error) == THOLE_OK;
        (void)snprintf(got, sizeof got, "%s %" PRIu64, ok ? "ok" : "refused", ok ? ms : 0);
        bool const refused = cases[i].ms == UINT64_MAX;
        (void)snprintf(want, sizeof want, "%s %" PRIu64, refused ? "refused" : "ok",
                       refused ? 0 : cases[i].ms);
        CHECK_STR(cases[i].text, got, want);
        CU_ASSERT(ok || strstr(error.text, "duration") != NULL);
    }
}

static void test_duration_texts(void)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {{0, "0"},       {1, "1ms"},     {1500, "1500ms"}, {1000, "1s"},
                 {90000, "90s"}, {120000, "2m"}, {3600000, "1h"},  {86400000, "1d"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[DURATION_TEXT_BYTES];
        uint64_t back = UINT64_MAX;
        duration_format(cases[i].ms, text);
        CHECK_STR(cases[i].text, text, cases[i].text);
        CU_ASSERT_EQUAL(duration_parse(text, &back, NULL), THOLE_OK);
        CU_ASSERT_EQUAL(back, cases[i].ms);
    }
}

static void test_sizes(void)
{
    uint64_t bytes = 0;
    CU_ASSERT_EQUAL(size_parse("262144", &bytes, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(bytes, 262144);
    CU_ASSERT_EQUAL(size_parse("256KiB", &bytes, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(bytes, 262144);
    CU_ASSERT_EQUAL(size_parse("2GiB", &bytes, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(bytes, UINT64_C(2) << 30);
    CU_ASSERT_EQUAL(size_parse("1MB", &bytes, NULL), THOLE_INVALID);
    CU_ASSERT_EQUAL(size_parse("", &bytes, NULL), THOLE_INVALID);
    CU_ASSERT_EQUAL(size_parse("999999999999999999GiB", &bytes, NULL), THOLE_INVALID);
    CU_ASSERT_EQUAL(number_parse("12x", &bytes, NULL), THOLE_INVALID);
    CU_ASSERT_EQUAL(number_parse("-1", &bytes, NULL), THOLE_INVALID);
}

static void test_distances(void)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } cases[] = {
        {"", "", 0},           {"abc", "abc", 0},    {"", "abc", 3},         {"abc", "", 3},
        {"start", "strat", 1}, {"start", "stat", 1}, {"start", "starts", 1}, {"kitten", "sitting", 3},
        {"ab", "ba", 1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CU_ASSERT_EQUAL(word_distance(cases[i].a, cases[i].b), cases[i].distance);
}

static void test_suggestions(void)
{
    static const char *const verbs[] = {"start", "run", "wait", "show", "history", "list", "cancel"};
    static const struct {
        const char *word, *meant;
    } cases[] = {{"strat", "start"},    {"histroy", "history"}, {"lst", "list"},
                 {"cancle", "cancel"},  {"shwo", "show"},       {"zzz", "none"},
                 {"terminate", "none"}, {"x", "none"},          {"rum", "run"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *got = word_suggest(cases[i].word, verbs, ARRAY_LEN(verbs));
        CHECK_STR(cases[i].word, got == NULL ? "none" : got, cases[i].meant);
    }
}

/* For a terminal: lines and columns stay, nothing else moves the cursor. */
static void test_lines(void)
{
    struct buf shown;
    buf_init(&shown, 256);
    text_lines(&shown, THOLE_STR("a\tb\nc\x1b[2J\r\xff\xc3\xa9"));
    CHECK_STR("lines", buf_cstr(&shown), "a\tb\nc\\x1b[2J\\x0d\\xff\xc3\xa9");
    buf_release(&shown);
}

static const struct thole_test tests[] = {
    {"durations", test_durations}, {"duration_texts", test_duration_texts}, {"sizes", test_sizes},
    {"distances", test_distances}, {"suggestions", test_suggestions},       {"lines", test_lines},
};
THOLE_TEST_MAIN("cli_values", tests)
