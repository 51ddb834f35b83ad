/* New, the same, older, another one, lost: the table of who asks. */
#include "namespace_verdict.h"
#include "thole_cunit.h"
#include <string.h>

static void test_identities(void)
{
    static const uint8_t zeros[16],
        ones[16] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    static const char *const bad[] = {"",
                                      "00000000-0000-4000-8000-00000000000",
                                      "00000000-0000-4000-8000-0000000000000",
                                      "00000000-0000-4000-8000-00000000000G",
                                      "00000000-0000-4000-8000-00000000000A",
                                      "000000000000-4000-8000-0000000000000"};
    struct namespace_id const id = namespace_id_make(zeros);
    struct namespace_id again;
    CHECK_STR("zeros", id.text, "00000000-0000-4000-8000-000000000000");
    CHECK_STR("ones", namespace_id_make(ones).text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    CU_ASSERT_TRUE(namespace_id_read(thole_slice_from(id.text), &again) && namespace_id_is(&id, &again));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_FALSE(namespace_id_read(thole_slice_from(bad[i]), &again));
}

static void test_parts(void)
{
    static const enum namespace_part gone[] = {PART_CONFIG, PART_SECRET, PART_INBOX, PART_HISTORY},
                                     again[] = {PART_NODES, PART_CRASHES, PART_WORK, PART_REJECTED};
    for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
        CU_ASSERT_EQUAL(part_judge(gone[i], true, true), PART_THERE);
        CU_ASSERT_EQUAL(part_judge(gone[i], false, false), PART_NEW);
        CU_ASSERT_EQUAL(part_judge(gone[i], false, true), PART_LOST);
        CU_ASSERT_EQUAL(part_judge(again[i], true, true), PART_THERE);
        CU_ASSERT_EQUAL(part_judge(again[i], false, false), PART_NEW);
        CU_ASSERT_EQUAL(part_judge(again[i], false, true), PART_NEW);
        CU_ASSERT_TRUE(strlen(part_loss(gone[i])) > 0 && strlen(part_loss(again[i])) > 0);
    }
}

static void test_stores(void)
{
    static const struct {
        const char *name;
        struct store_mark mark;
        bool there;
        uint64_t last;
        enum store_verdict verdict;
        bool lost;
    } rows[] = {
        {"there never was one", {false, 0}, false, 0, STORE_NEVER, false},
        {"an earlier version made it", {false, 0}, true, 5, STORE_UNMARKED, false},
        {"an earlier version made it, and it is empty", {false, 0}, true, 0, STORE_UNMARKED, false},
        {"made, and never used", {true, 0}, true, 0, STORE_FITS, false},
        {"as it was", {true, 5}, true, 5, STORE_FITS, false},
        {"it has more", {true, 5}, true, 6, STORE_FITS, false},
        {"older", {true, 5}, true, 4, STORE_OLDER, true},
        {"made again by other means", {true, 5}, true, 0, STORE_OLDER, true},
        {"gone", {true, 5}, false, 0, STORE_GONE, true},
        {"gone, and never used", {true, 0}, false, 0, STORE_GONE, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum store_verdict const verdict = store_judge(&rows[i].mark, rows[i].there, rows[i].last);
        CHECK_STR(rows[i].name, verdict == rows[i].verdict ? "" : "another verdict", "");
        CHECK_STR(rows[i].name, store_is_lost(verdict) == rows[i].lost ? "" : "otherwise lost", "");
    }
    for (int i = 0; i < NAMESPACE_STORES; i++)
        CU_ASSERT_TRUE(strlen(store_name(i)) > 0 && strlen(store_loss(i)) > 0);
}

static void test_logs(void)
{
    static const struct {
        const char *name;
        struct log_known known;
        struct log_there there;
        enum log_fit fit;
        uint64_t lacks; /* of a CUT one */
    } rows[] = {
        {"no stream", {.projected = 0}, {.there = false}, LOG_FIT_GONE, 0},
        {"no stream, and it had records", {90, 1, 80, 2, 0}, {.there = false}, LOG_FIT_GONE, 0},
        {"nothing is known", {.projected = 0}, {true, 0, 0, 0}, LOG_FIT_SAME, 0},
        {"the rows are gone", {.projected = 0}, {true, 100, 0, 0}, LOG_FIT_SAME, 0},
        {"as it was", {90, 1, 80, 2, 0}, {true, 90, 1, 2}, LOG_FIT_SAME, 0},
        {"it has more", {90, 1, 80, 2, 0}, {true, 100, 1, 2}, LOG_FIT_SAME, 0},
        {"the kept one is removed", {90, 1, 80, 2, 0}, {true, 100, 1, 0}, LOG_FIT_SAME, 0},
        {"only its reach was looked at", {90, 1, 80, 2, 0}, {true, 90, 0, 0}, LOG_FIT_SAME, 0},
        {"rows of a version without marks", {90, 0, 0, 0, 0}, {true, 90, 7, 0}, LOG_FIT_SAME, 0},
        {"what an older version has left behind", {60, 3, 80, 2, 0}, {true, 60, 3, 0}, LOG_FIT_SAME, 0},
        {"an older dump of the rows, removed since", {40, 4, 30, 5, 0}, {true, 90, 0, 0}, LOG_FIT_SAME, 0},
        {"the tail is lost", {90, 1, 80, 2, 0}, {true, 85, 0, 2}, LOG_FIT_CUT, 5},
        {"all but what is kept", {90, 1, 80, 2, 0}, {true, 80, 0, 2}, LOG_FIT_CUT, 10},
        {"lost, and overtaken", {90, 1, 80, 2, 0}, {true, 120, 9, 2}, LOG_FIT_CUT, 1},
        {"all of a young one", {90, 1, 0, 0, 0}, {true, 0, 0, 0}, LOG_FIT_CUT, 90},
        {"older", {90, 1, 80, 2, 0}, {true, 79, 0, 0}, LOG_FIT_OLDER, 0},
        {"empty", {90, 1, 80, 2, 0}, {true, 0, 0, 0}, LOG_FIT_OLDER, 0},
        {"older, without rows", {0, 0, 80, 2, 0}, {true, 79, 0, 0}, LOG_FIT_OLDER, 0},
        {"another one that reaches as far", {90, 1, 80, 2, 0}, {true, 120, 9, 8}, LOG_FIT_OLDER, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum log_fit const fit = log_fit_judge(&rows[i].known, &rows[i].there);
        if (fit != rows[i].fit)
            fprintf(stderr, "  %s: %d\n", rows[i].name, (int)fit);
        CU_ASSERT_EQUAL(fit, rows[i].fit);
        if (fit == LOG_FIT_CUT)
            CU_ASSERT_EQUAL(log_fit_lacks(&rows[i].known, &rows[i].there), rows[i].lacks);
    }
}

#define A                                                                                                    \
    {                                                                                                        \
        .text = "a"                                                                                          \
    }
#define B                                                                                                    \
    {                                                                                                        \
        .text = "b"                                                                                          \
    }
#define NONE                                                                                                 \
    {                                                                                                        \
        .text = ""                                                                                           \
    }

static void test_namespaces(void)
{
    static const struct {
        struct namespace_sides sides;
        const char *name;
        bool serves;
    } rows[] = {
        /* made, orphans, NATS, Postgres, owned, lost, older */
        {{false, false, NONE, NONE, 0, 0, 0}, "new", true},
        {{false, false, A, NONE, 0, 0, 0}, "new", true}, /* the set-up was interrupted */
        {{false, true, NONE, NONE, 0, 0, 0}, "lost", false},
        {{false, false, NONE, A, 0, 0, 0}, "lost", false},
        {{false, false, NONE, NONE, 8, 0, 0}, "lost", false}, /* of an earlier version */
        {{false, false, A, B, 8, 0, 0}, "other", false},
        {{true, false, A, A, 8, 0, 0}, "same", true},
        {{true, false, NONE, NONE, 8, 0, 0}, "same", true},
        {{true, false, A, NONE, 8, 0, 0}, "same", true},
        {{true, false, NONE, A, 8, 0, 0}, "same", true},
        {{true, false, A, NONE, 0, 0, 0}, "emptied", true},
        {{true, false, NONE, NONE, 0, 0, 0}, "emptied", true},
        {{true, false, A, B, 8, 0, 0}, "other", false},
        {{true, false, A, B, 8, 1, 1}, "other", false},
        {{true, false, A, A, 8, 1, 0}, "lost", false},
        {{true, false, A, NONE, 0, 1, 0}, "lost", false},
        {{true, false, A, A, 8, 1, 1}, "lost", false},
        {{true, false, A, A, 8, 0, 1}, "older", false},
        {{true, false, NONE, A, 8, 0, 1}, "older", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum namespace_verdict const verdict = namespace_judge(&rows[i].sides);
        CHECK_STR(rows[i].name, namespace_verdict_name(verdict), rows[i].name);
        CU_ASSERT_EQUAL(namespace_verdict_serves(verdict), rows[i].serves);
    }
}

static const struct thole_test tests[] = {
    {"identities", test_identities}, {"parts", test_parts}, {"stores", test_stores}, {"logs", test_logs},
    {"namespaces", test_namespaces},
};

int main(void)
{
    return thole_run_suite("namespace_verdict", tests, ARRAY_LEN(tests));
}
