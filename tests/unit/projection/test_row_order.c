/* The order of rows in a statement, and what is made of several rows of one instance. */
#include "instance_rows.h"
#include "row_order.h"
#include "thole/client.h"
#include "thole_cunit.h"
#include <stdlib.h>

struct row {
    uint64_t execution;
    thole_slice instance;
    uint64_t number;
};

static void test_order(void)
{
    static const struct row rows[] = {
        {2, {(const uint8_t *)"a", 1}, 1}, {1, {(const uint8_t *)"ab", 2}, 9},
        {1, {(const uint8_t *)"a", 1}, 7}, {1, {(const uint8_t *)"\xc3", 1}, 1},
        {1, {(const uint8_t *)"a", 1}, 2}, {1, {(const uint8_t *)"B", 1}, 3},
        {1, {(const uint8_t *)"a", 1}, 7}, {1, {NULL, 0}, 1},
    };
    static const uint32_t want[] = {7, 5, 4, 2, 6, 0, 1, 3};
    uint32_t *const order =
        row_order(&rows->instance, &rows->execution, &rows->number, sizeof *rows, ARRAY_LEN(rows));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CU_ASSERT_EQUAL(order[i], want[i]);
    free(order);
    CU_ASSERT_PTR_NULL(row_order(&rows->instance, &rows->execution, &rows->number, sizeof *rows, 0));
}

static const thole_slice one = {(const uint8_t *)"one", 3};
enum {
    RUNS = THOLE_INSTANCE_RUNNING,
    AGAIN = THOLE_INSTANCE_CONTINUED_AS_NEW,
    PAUSED = THOLE_INSTANCE_PAUSED
};

static struct batch_instance row_of(uint64_t execution, uint32_t status, uint64_t created_ms, uint64_t seq)
{
    return (struct batch_instance){.instance = one,
                                   .orchestration = {(const uint8_t *)"o", 1},
                                   .execution = execution,
                                   .status = status,
                                   .created_ms = created_ms,
                                   .updated_ms = 1000 + seq,
                                   .history_seq = seq};
}

static size_t merge(const struct batch_instance *rows, size_t n, struct instance_row *instances,
                    struct execution_row *executions, size_t *ret_executions)
{
    static const uint32_t partitions[] = {5, 6, 7, 8};
    uint32_t *const order = row_order(&rows->instance, &rows->execution, &rows->history_seq, sizeof *rows, n);
    size_t const len = instance_rows_merge(rows, partitions, order, n, instances);
    *ret_executions = execution_rows_merge(rows, partitions, order, n, executions);
    free(order);
    return len;
}

/* The earliest creation; but what waited for it (execution 0) was before it was created. */
static void test_creation(void)
{
    static const struct {
        uint64_t execution[2], created_ms[2], want;
    } cases[] = {
        {{1, 2}, {300, 0}, 300},  {{1, 2}, {300, 200}, 200}, {{1, 2}, {200, 300}, 200},
        {{1, 2}, {0, 0}, 1002},   {{0, 1}, {100, 300}, 300}, {{0, 1}, {100, 0}, 1002},
        {{0, 0}, {100, 0}, 1002}, {{1, 1}, {300, 0}, 300},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct batch_instance const rows[] = {
            row_of(cases[i].execution[1], RUNS, cases[i].created_ms[1], 2),
            row_of(cases[i].execution[0], AGAIN, cases[i].created_ms[0], 1)};
        struct instance_row merged[2];
        struct execution_row executions[2];
        size_t n;
        CU_ASSERT_EQUAL_FATAL(merge(rows, 2, merged, executions, &n), 1);
        CU_ASSERT_EQUAL(merged[0].row.created_ms, cases[i].want);
        CU_ASSERT_EQUAL(merged[0].row.history_seq, 2);
        CU_ASSERT_EQUAL(merged[0].partition, 5);
    }
}

static void test_custom_status(void)
{
    struct batch_instance rows[] = {row_of(1, AGAIN, 1, 1), row_of(2, AGAIN, 0, 2), row_of(3, RUNS, 0, 3)};
    struct instance_row merged[3];
    struct execution_row executions[3];
    size_t n;
    (void)merge(rows, 3, merged, executions, &n);
    CU_ASSERT_FALSE(merged[0].row.custom_status_set);
    rows[0].custom_status_set = rows[1].custom_status_set = true;
    rows[0].custom_status = one;
    (void)merge(rows, 3, merged, executions, &n);
    CU_ASSERT_TRUE(merged[0].row.custom_status_set);
    CU_ASSERT_EQUAL(merged[0].row.custom_status.len, 0); /* the last that says one takes it back */
}

static void test_removed(void)
{
    struct batch_instance rows[] = {row_of(0, RUNS, 1, 1), row_of(1, RUNS, 1, 2)};
    struct instance_row merged[2];
    struct execution_row executions[2];
    size_t n;
    rows[0].removed = true;
    CU_ASSERT_EQUAL(merge(rows, 2, merged, executions, &n), 1);
    rows[1].removed = true;
    CU_ASSERT_EQUAL(merge(rows, 2, merged, executions, &n), 0);
    CU_ASSERT_EQUAL(n, 0);
}

/* Which rows an execution has of its own, and since when it runs. */
static void test_executions(void)
{
    static const struct {
        uint64_t execution, created_ms;
        uint32_t status;
        bool begins;
        size_t rows;
        uint64_t started_ms;
    } cases[] = {
        {0, 7, THOLE_INSTANCE_WAITING, false, 0, 0},
        {1, 7, RUNS, true, 0, 0},
        {1, 0, THOLE_INSTANCE_COMPLETED, false, 0, 0},
        {1, 7, THOLE_INSTANCE_FAILED, true, 0, 0},
        {1, 7, AGAIN, true, 1, 7},
        {1, 0, AGAIN, false, 1, 0},
        {2, 0, RUNS, true, 1, 1005},
        {2, 0, THOLE_INSTANCE_CANCELLED, true, 1, 1005},
        {2, 0, PAUSED, false, 0, 0},
        {2, 0, AGAIN, false, 1, 1009},
        {2, 0, THOLE_INSTANCE_CANCELLED, false, 1, 1009},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct batch_instance row = row_of(cases[i].execution, cases[i].status, cases[i].created_ms, 9);
        struct instance_row merged[1];
        struct execution_row execution[1];
        size_t n;
        if (!cases[i].begins)
            row.orchestration.len = 0;
        else if (cases[i].execution > 1)
            row.began_ms = 1005;
        CU_ASSERT_EQUAL(merge(&row, 1, merged, execution, &n), 1);
        CU_ASSERT_EQUAL(n, cases[i].rows);
        if (n == 1) {
            CU_ASSERT_EQUAL(execution[0].started_ms, cases[i].started_ms);
            CU_ASSERT_EQUAL(execution[0].ended_ms, row.status == RUNS ? 0 : 1009);
        }
    }
}

/* An activity begins in one batch and ends in another. */
static void test_begun_before(void)
{
    struct batch_instance rows[] = {row_of(2, AGAIN, 0, 9), row_of(2, RUNS, 0, 3)};
    struct instance_row merged[2];
    struct execution_row executions[2];
    size_t n;
    rows[1].began_ms = 1001;
    rows[0].orchestration.len = 0;
    CU_ASSERT_EQUAL(merge(rows, 2, merged, executions, &n), 1);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT(executions[0].started_ms == 1001 && executions[0].ended_ms == 1009);
    CU_ASSERT(executions[0].status == AGAIN && executions[0].history_seq == 9);
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"order", test_order},     {"creation", test_creation},     {"custom status", test_custom_status},
        {"removed", test_removed}, {"executions", test_executions}, {"begun before", test_begun_before}};
    return thole_run_suite("row_order", tests, ARRAY_LEN(tests));
}
