/* Where messages are queued: found again, taken once, bounded. */
#include "projection_state.h"
#include "thole_cunit.h"

static void test_put_and_take(void)
{
    struct work_refs refs = {0};
    CU_ASSERT_EQUAL(work_refs_take(&refs, 7), 0);
    work_refs_put(&refs, 7, 0); /* nobody knows where */
    CU_ASSERT_EQUAL(refs.len, 0);
    work_refs_put(&refs, 7, 70);
    work_refs_put(&refs, 7, 71); /* the next try's */
    CU_ASSERT_EQUAL(refs.len, 1);
    CU_ASSERT_EQUAL(work_refs_take(&refs, 8), 0);
    CU_ASSERT_EQUAL(work_refs_take(&refs, 7), 71);
    CU_ASSERT_EQUAL(work_refs_take(&refs, 7), 0);
    CU_ASSERT_EQUAL(refs.len, 0);
    work_refs_release(&refs);
}

/* Keys that want the same cells, and the last one of the table: a taken one leaves no gap before another. */
static void test_neighbours(void)
{
    for (uint64_t taken = 0; taken < 64; taken++) {
        struct work_refs refs = {0};
        for (uint64_t i = 0; i < 64; i++) /* homes 250..257, each eight times */
            work_refs_put(&refs, 250 + i % 8 + i / 8 * 4096, i + 1);
        CU_ASSERT_EQUAL(work_refs_take(&refs, 250 + taken % 8 + taken / 8 * 4096), taken + 1);
        for (uint64_t i = 0; i < 64; i++)
            CU_ASSERT_EQUAL(work_refs_take(&refs, 250 + i % 8 + i / 8 * 4096), i == taken ? 0 : i + 1);
        CU_ASSERT_EQUAL(refs.len, 0);
        work_refs_release(&refs);
    }
}

static void test_all_of_many(void)
{
    struct work_refs refs = {0};
    for (uint64_t i = 1; i <= 10000; i++)
        work_refs_put(&refs, key_hash(THOLE_STR("i"), 1, i), i);
    CU_ASSERT_EQUAL(refs.len, 10000);
    for (uint64_t i = 1; i <= 10000; i++)
        CU_ASSERT_EQUAL(work_refs_take(&refs, key_hash(THOLE_STR("i"), 1, i)), i);
    work_refs_release(&refs);
}

/* More than there is room for: what is old is forgotten, what is new is known. */
static void test_bounded(void)
{
    struct work_refs refs = {0};
    uint64_t const n = 3 * WORK_REFS_MAX;
    for (uint64_t i = 1; i <= n; i++) {
        work_refs_put(&refs, i, i);
        CU_ASSERT_TRUE_FATAL(refs.len <= WORK_REFS_MAX && refs.cap <= 2 * WORK_REFS_MAX);
    }
    CU_ASSERT_EQUAL(work_refs_take(&refs, n), n);
    CU_ASSERT_EQUAL(work_refs_take(&refs, 1), 0);
    work_refs_release(&refs);
    work_refs_release(&refs);
}

int main(void)
{
    static const struct thole_test tests[] = {{"put and take", test_put_and_take},
                                              {"neighbours", test_neighbours},
                                              {"all of many", test_all_of_many},
                                              {"bounded", test_bounded}};
    return thole_run_suite("work_refs", tests, ARRAY_LEN(tests));
}
