/*
 * The rows that an instance must have, from its history alone. Pure.
 *
 * This file shares the decoding of records with the projection that writes rows
 * (engine/partition/projection), and nothing else: no batches, no merging, no SQL. The projection computes
 * changes; this file computes the state. So a mistake of either shows as a difference, and a test compares
 * them over random histories.
 */
#ifndef THOLE_EXPECTED_ROWS_H
#define THOLE_EXPECTED_ROWS_H
#include "nonce.h"
#include "stored_row.h"

struct expected_row {
    struct stored_row row;
    bool gone;
    /* The row of an execution that goes on is from one of its turns; that of any but the first execution may
     * take its beginning from a later turn, too: */
    struct {
        uint64_t first_ms, last_ms, first_turn, last_turn, first_seq, last_seq;
    } range;
};

struct expected_rows;
/* @p instance is borrowed. @p key NULL: digests are not known. @p rows_age_ms: how old the row of a running
 * instance may be. */
struct expected_rows *expected_rows_create(thole_slice instance, uint32_t partition,
                                           const struct nonce_key *key, uint64_t rows_age_ms);
void expected_rows_destroy(struct expected_rows *rows); /* NULL-safe */
/*
 * Takes the next record of the instance. THOLE_CORRUPT: one that does not decode, or before which one is
 * missing, so that the rows are not known; THOLE_UNSUPPORTED: of a newer version; THOLE_LIMIT, THOLE_NOMEM.
 */
THOLE_NODISCARD thole_status expected_rows_take(struct expected_rows *rows, uint64_t sequence,
                                                thole_slice bytes, thole_error *reterr);
/* NULL: there must be no such row. */
const struct expected_row *expected_rows_find(const struct expected_rows *rows, const struct stored_row *key);
/* All of them, with those that are gone. */
size_t expected_rows_len(const struct expected_rows *rows);
const struct expected_row *expected_rows_at(const struct expected_rows *rows, size_t i);
/* Whether a row of the running instance may stand for its turn at @p sequence: nothing that the row says has
 * changed since, and the turn is not too old. */
bool expected_rows_may_lag(const struct expected_rows *rows, uint64_t sequence, uint64_t time_ms,
                           uint64_t turn);
uint64_t expected_rows_last(const struct expected_rows *rows); /* sequence of the last record; 0: none */
/* Whether the digests of the activities' messages are known. */
bool expected_rows_know_digests(const struct expected_rows *rows);
/* When the activity was scheduled, or its try was. */
uint64_t expected_rows_scheduled_ms(const struct expected_row *row);
#endif
