#include "row_check.h"
#include "memory.h"
#include "tables.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct row_check {
    struct row_check_options options;
    struct expected_rows *expected;
    bool *fits;                 /* of each row */
    struct stored_row *missing; /* keys of rows that were expected after each record so far */
    size_t missing_len, missing_cap;
    bool compared; /* once at least */
    struct row_difference *differences;
    size_t differences_len, differences_cap;
};

struct row_check *row_check_create(const struct row_check_options *options)
{
    struct row_check *const check = memory_new(sizeof *check);
    check->options = *options;
    check->expected =
        expected_rows_create(options->instance, options->partition, options->key, options->rows_age_ms);
    check->fits = memory_array(options->rows_len + 1, sizeof *check->fits);
    return check;
}

void row_check_destroy(struct row_check *check)
{
    if (check == NULL)
        return;
    expected_rows_destroy(check->expected);
    free(check->fits);
    free(check->missing);
    free(check->differences);
    free(check);
}

/* ---- one row ---- */

static bool row_check_in_range(uint64_t value, uint64_t first, uint64_t last)
{
    return value >= first && value <= last;
}

/* Which turn of a running instance its row is from is one question for three columns. */
static bool instance_lags(const struct row_check *check, const struct stored_row *row)
{
    return expected_rows_may_lag(check->expected, row->numbers[INSTANCE_SEQ],
                                 row->numbers[INSTANCE_UPDATED_MS], row->numbers[INSTANCE_TURNS]);
}

static bool execution_number_fits(const struct stored_row *row, const struct expected_row *expected, size_t i)
{
    uint64_t const value = row->numbers[i];
    bool const ended = expected->row.numbers[EXECUTION_ENDED_MS] != 0;
    if (i == EXECUTION_TURNS && !ended)
        return row_check_in_range(value, expected->range.first_turn, expected->range.last_turn);
    if (i == EXECUTION_SEQ && !ended)
        return row_check_in_range(value, expected->range.first_seq, expected->range.last_seq);
    if (i == EXECUTION_STATUS && !ended) /* of one of its turns */
        return value >= 1 && value <= 9 && !row_check_in_range(value, 4, 7) && value != 9;
    return value == expected->row.numbers[i];
}

/* An engine of an earlier version leaves the reason as it was. */
static bool reason_fits(uint64_t value, uint64_t expected)
{
    return value == expected || value == BLOCKED_NOT || (expected == BLOCKED_NOT && value < BLOCKED_KINDS);
}

static bool number_fits(const struct row_check *check, const struct stored_row *row,
                        const struct expected_row *expected, size_t i)
{
    if (row->table == ROWS_EXECUTIONS)
        return execution_number_fits(row, expected, i);
    if (row->table == ROWS_TIMERS && i == TIMER_DUE_MS && row->execution == 0)
        return row->numbers[i] >= expected->row.numbers[i];
    if (row->table == ROWS_INSTANCES &&
        (i == INSTANCE_SEQ || i == INSTANCE_UPDATED_MS || i == INSTANCE_TURNS) && instance_lags(check, row))
        return true;
    if (row->table == ROWS_INSTANCES && i == INSTANCE_BLOCKED)
        return reason_fits(row->numbers[i], expected->row.numbers[i]);
    return row->numbers[i] == expected->row.numbers[i];
}

static bool text_fits(const struct row_check *check, const struct stored_row *row,
                      const struct expected_row *expected, size_t i)
{
    bool const written = row->table == ROWS_ACTIVITIES && i == ACTIVITY_DETAILS && row->touched;
    bool const unknown =
        row->table == ROWS_ACTIVITIES && i == ACTIVITY_DIGEST && !expected_rows_know_digests(check->expected);
    return written || unknown || thole_slice_equal(row->texts[i], expected->row.texts[i]);
}

static bool row_check_fits(const struct row_check *check, const struct stored_row *row,
                           const struct expected_row *expected)
{
    const struct row_shape *const shape = &row_shapes[row->table];
    for (size_t i = 0; shape->numbers[i] != NULL; i++)
        if (!number_fits(check, row, expected, i))
            return false;
    for (size_t i = 0; shape->texts[i] != NULL; i++)
        if (!text_fits(check, row, expected, i))
            return false;
    return true;
}

bool row_number_differs(const struct row_check *check, const struct row_difference *difference, size_t i)
{
    return difference->stored == NULL || difference->expected == NULL ||
           !number_fits(check, difference->stored, difference->expected, i);
}

bool row_text_differs(const struct row_check *check, const struct row_difference *difference, size_t i)
{
    return difference->stored == NULL || difference->expected == NULL ||
           !text_fits(check, difference->stored, difference->expected, i);
}

/* ---- all rows, after one record ---- */

static int row_check_compare(const void *a, const void *b)
{
    return stored_row_compare(a, b);
}

static bool is_stored(const struct row_check *check, const struct stored_row *key)
{
    return check->options.rows_len > 0 && bsearch(key, check->options.rows, check->options.rows_len,
                                                  sizeof *check->options.rows, row_check_compare) != NULL;
}

static void begin_missing(struct row_check *check)
{
    for (size_t i = 0; i < expected_rows_len(check->expected); i++) {
        const struct expected_row *const row = expected_rows_at(check->expected, i);
        if (row->gone || is_stored(check, &row->row))
            continue;
        struct stored_row *const added = row_add((void **)&check->missing, &check->missing_len,
                                                 &check->missing_cap, sizeof *check->missing);
        *added =
            (struct stored_row){.table = row->row.table, .execution = row->row.execution, .id = row->row.id};
    }
}

static void keep_missing(struct row_check *check)
{
    size_t kept = 0;
    for (size_t i = 0; i < check->missing_len; i++)
        if (expected_rows_find(check->expected, &check->missing[i]) != NULL)
            check->missing[kept++] = check->missing[i];
    check->missing_len = kept;
}

static void compare_all(struct row_check *check)
{
    for (size_t i = 0; i < check->options.rows_len; i++) {
        const struct stored_row *const row = &check->options.rows[i];
        const struct expected_row *const expected = expected_rows_find(check->expected, row);
        check->fits[i] |= expected != NULL && row_check_fits(check, row, expected);
    }
    if (!check->compared)
        begin_missing(check);
    else
        keep_missing(check);
    check->compared = true;
}

thole_status row_check_take(struct row_check *check, uint64_t sequence, thole_slice bytes,
                            thole_error *reterr)
{
    bool const later = sequence > check->options.watermark;
    if (later && !check->compared)
        compare_all(check);
    THOLE_TRY(expected_rows_take(check->expected, sequence, bytes, reterr));
    if (later)
        compare_all(check);
    return THOLE_OK;
}

void row_check_result(struct row_check *check, uint64_t execution, uint64_t activity_id, uint32_t try_number)
{
    struct stored_row const key = {.table = ROWS_ACTIVITIES, .execution = execution, .id = activity_id};
    if (!check->compared)
        compare_all(check);
    const struct expected_row *const expected = expected_rows_find(check->expected, &key);
    if (expected == NULL || expected->row.numbers[ACTIVITY_TRY] != try_number)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < check->missing_len; i++)
        if (stored_row_compare(&check->missing[i], &key) != 0)
            check->missing[kept++] = check->missing[i];
    check->missing_len = kept;
}

/* ---- the result ---- */

static void row_check_differs(struct row_check *check, const struct stored_row *stored,
                              const struct expected_row *expected)
{
    struct row_difference *const added = row_add((void **)&check->differences, &check->differences_len,
                                                 &check->differences_cap, sizeof *check->differences);
    *added = (struct row_difference){stored, expected};
}

void row_check_end(struct row_check *check, const struct row_difference **ret, size_t *ret_len)
{
    assert(check->differences_len == 0);
    if (!check->compared)
        compare_all(check);
    for (size_t i = 0; i < check->options.rows_len; i++) {
        const struct stored_row *const row = &check->options.rows[i];
        const struct expected_row *const expected = expected_rows_find(check->expected, row);
        if (!check->fits[i])
            row_check_differs(check, row, expected);
    }
    for (size_t i = 0; i < check->missing_len; i++)
        row_check_differs(check, NULL, expected_rows_find(check->expected, &check->missing[i]));
    *ret = check->differences;
    *ret_len = check->differences_len;
}

bool row_check_settled(const struct row_check *check)
{
    return expected_rows_last(check->expected) <= check->options.watermark;
}

const struct expected_rows *row_check_expected(const struct row_check *check)
{
    return check->expected;
}
