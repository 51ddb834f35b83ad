/*
 * Compares the rows of one instance with its history, while both change. Pure.
 *
 * The watermark of the partition is read first, then the rows, which contain all records up to the watermark,
 * then the history. So each row is in the state after some record from the watermark on, not necessarily the
 * same record for all rows; and a row that was not found did not exist after some record. A row is wrong only
 * if it fits none of these states.
 */
#ifndef THOLE_ROW_CHECK_H
#define THOLE_ROW_CHECK_H
#include "expected_rows.h"

struct row_check_options {
    thole_slice instance; /* borrowed, as is all else */
    uint32_t partition;
    const struct nonce_key *key; /* NULL: digests are not compared */
    uint64_t rows_age_ms;
    uint64_t watermark; /* UINT64_MAX: the whole history counts, and nothing else */
    struct stored_row *rows;
    size_t rows_len; /* sorted by stored_row_compare() */
};
struct row_check;
struct row_check *row_check_create(const struct row_check_options *options);
void row_check_destroy(struct row_check *check); /* NULL-safe */
/* The history's records, in order. Statuses: expected_rows_take(). */
THOLE_NODISCARD thole_status row_check_take(struct row_check *check, uint64_t sequence, thole_slice bytes,
                                            thole_error *reterr);
/* The result of this activity's try waits in the inbox: its row is gone rightly. */
void row_check_result(struct row_check *check, uint64_t execution, uint64_t activity_id, uint32_t try_number);

/* A row that is wrong. */
struct row_difference {
    const struct stored_row *stored;     /* NULL: it is missing */
    const struct expected_row *expected; /* NULL: there must be none */
};
/* After the last record. The array is the check's. */
void row_check_end(struct row_check *check, const struct row_difference **ret, size_t *ret_len);
/* The rows had everything: what was compared is the present. */
bool row_check_settled(const struct row_check *check);
const struct expected_rows *row_check_expected(const struct row_check *check);

/* Whether number i, text i of a row that is wrong differ. */
bool row_number_differs(const struct row_check *check, const struct row_difference *difference, size_t i);
bool row_text_differs(const struct row_check *check, const struct row_difference *difference, size_t i);
#endif
