/* Claims, renewals and completions of a worker. */
#include "worker_store.h"
#include "postgres_call.h"
#include "row_order.h"
#include <assert.h>

/* They and all that follows are sent in the order of the keys. */
static void send_keys(struct postgres *pg, const struct claim *claims, size_t n)
{
    call_order(pg, row_order(&claims->key.instance, &claims->key.execution, &claims->key.activity_id,
                             sizeof *claims, n));
    call_text_array(pg, &claims->key.instance, sizeof *claims, n);
    call_int8_array(pg, &claims->key.execution, sizeof *claims, n);
    call_int8_array(pg, &claims->key.activity_id, sizeof *claims, n);
    call_int4_array(pg, &claims->key.try_number, sizeof *claims, n);
}

static void send_held(struct postgres *pg, enum statement statement, thole_slice worker,
                      const struct claim *claims, size_t n)
{
    send_keys(pg, claims, n);
    call_int8_array(pg, &claims->attempt, sizeof *claims, n);
    if (statement == STATEMENT_RENEW || statement == STATEMENT_RELEASE || statement == STATEMENT_LEAVE) {
        call_bool_array(pg, &claims->noted, sizeof *claims, n);
        call_bytes_array(pg, &claims->details, sizeof *claims, n);
        call_bool_array(pg, &claims->settled, sizeof *claims, n);
    }
    call_text(pg, worker);
    if (statement == STATEMENT_RENEW)
        call_int8_array(pg, &claims->lease_ms, sizeof *claims, n);
    if (statement == STATEMENT_RENEW || statement == STATEMENT_NOT_LOST)
        call_int8_array(pg, &claims->claimed_us, sizeof *claims, n);
    if (statement == STATEMENT_RENEW)
        call_bool_array(pg, &claims->unheard, sizeof *claims, n);
    if (statement == STATEMENT_COMPLETE_QUICK) {
        call_bool_array(pg, &claims->quick, sizeof *claims, n);
        call_bytes_array(pg, &claims->digest, sizeof *claims, n);
    }
    call_send(pg, statement);
}

/* The claim that row @p row of result @p i is about: its place among the keys that were sent, from 1. */
static thole_status find_claim(const struct postgres *pg, size_t i, size_t row, struct claim *claims,
                               size_t n, struct claim **ret, thole_error *reterr)
{
    uint64_t const place = call_cell_int8(pg, i, row, 0);
    if (place < 1 || place > n)
        return thole_fail(reterr, THOLE_CORRUPT, "Postgres named row %llu of %zu", (unsigned long long)place,
                          n);
    *ret = &claims[pg->order[place - 1]];
    return THOLE_OK;
}

/* Rows of result @p i are (place, attempt). Marks these claims as ROW_MINE. */
static thole_status take_mine(struct postgres *pg, size_t i, struct claim *claims, size_t n,
                              thole_error *reterr)
{
    for (size_t row = 0; row < call_rows(pg, i); row++) {
        struct claim *claim;
        THOLE_TRY(find_claim(pg, i, row, claims, n, &claim, reterr));
        claim->state = ROW_MINE;
        claim->attempt = call_cell_int8(pg, i, row, 1);
    }
    return THOLE_OK;
}

/* When the claims were made that the only result is about, in its rows' given column. */
static thole_status take_claimed(struct postgres *pg, size_t column, struct claim *claims, size_t n,
                                 thole_error *reterr)
{
    for (size_t row = 0; row < call_rows(pg, 0); row++) {
        struct claim *claim;
        THOLE_TRY(find_claim(pg, 0, row, claims, n, &claim, reterr));
        claim->claimed_us = call_cell_int8(pg, 0, row, column);
    }
    return THOLE_OK;
}

/* Rows of the only result are (place, state, milliseconds left). */
static thole_status take_looks(struct postgres *pg, struct claim *claims, size_t n, thole_error *reterr)
{
    for (size_t row = 0; row < call_rows(pg, 0); row++) {
        uint64_t const state = call_cell_int8(pg, 0, row, 1);
        struct claim *claim;
        THOLE_TRY(find_claim(pg, 0, row, claims, n, &claim, reterr));
        if (claim->state == ROW_MINE)
            continue;
        if (state > ROW_FORGED || state == ROW_MINE)
            return thole_fail(reterr, THOLE_CORRUPT, "Postgres says state %llu of a row",
                              (unsigned long long)state);
        claim->state = state == ROW_CANDIDATE && claim->isolated ? ROW_STOLEN : (enum row_state)state;
        claim->left_ms = state == ROW_HELD ? call_cell_int8(pg, 0, row, 2) : 0;
    }
    return THOLE_OK;
}

static size_t count_missing(const struct claim *claims, size_t n)
{
    size_t missing = 0;
    for (size_t i = 0; i < n; i++)
        missing += claims[i].state == ROW_MISSING;
    return missing;
}

static void set_missing(struct claim *claims, size_t n)
{
    for (size_t i = 0; i < n; i++)
        claims[i].state = ROW_MISSING;
}

/* A claim that returned no row: the row may be missing, or another worker has it. Looks in a statement of its
 * own, with a new snapshot, and only in that case. */
static thole_status look_again(struct postgres *pg, struct claim *claims, size_t n, thole_error *reterr)
{
    if (count_missing(claims, n) == 0)
        return THOLE_OK;
    call_begin(pg, "looking for activities");
    send_keys(pg, claims, n);
    call_int4_array(pg, &claims->partition, sizeof *claims, n);
    call_send(pg, STATEMENT_LOOK);
    THOLE_TRY(call_run(pg, reterr));
    return take_looks(pg, claims, n, reterr);
}

/* Renewals and the like: changes of rows that this worker must hold. */
static thole_status change_rows(struct postgres *pg, const char *what, enum statement statement,
                                thole_slice worker, struct claim *claims, size_t n, thole_error *reterr)
{
    assert(!pg->in_transaction);
    set_missing(claims, n);
    if (n == 0)
        return THOLE_OK;
    call_begin(pg, what);
    send_held(pg, statement, worker, claims, n);
    THOLE_TRY(call_run(pg, reterr));
    THOLE_TRY(take_mine(pg, 0, claims, n, reterr));
    if (statement == STATEMENT_RENEW)
        THOLE_TRY(take_claimed(pg, 2, claims, n, reterr));
    return look_again(pg, claims, n, reterr);
}

static uint32_t capped(uint32_t count)
{
    return count < INT32_MAX ? count : INT32_MAX;
}

/* Results of a claim beyond its attempt; rows are (place, attempt, milliseconds left or -1, details, lost,
 * strikes, last worker, its crash report, orchestration, version, when it was made, 1 if compared). */
static thole_status take_tries(struct postgres *pg, const struct claim_policy *policy, struct claim *claims,
                               size_t n, struct arena *arena, thole_error *reterr)
{
    for (size_t row = 0; row < call_rows(pg, 0); row++) {
        struct claim *claim;
        THOLE_TRY(find_claim(pg, 0, row, claims, n, &claim, reterr));
        assert(claim->state == ROW_MINE);
        uint64_t const left_ms = call_cell_int8(pg, 0, row, 2);
        claim->expired = left_ms == 0;
        claim->left_ms = left_ms > INT64_MAX ? 0 : left_ms;
        claim->lost = (uint32_t)call_cell_int8(pg, 0, row, 4);
        claim->poisoned = call_cell_int8(pg, 0, row, 5) >= policy->strikes_max &&
                          claim->lost >= (uint64_t)policy->candidate_after + policy->strikes_max;
        claim->version = (uint32_t)call_cell_int8(pg, 0, row, 9);
        claim->compared = call_cell_int8(pg, 0, row, 11) != 0;
        if (arena == NULL)
            continue;
        thole_status status = arena_dup(arena, call_cell_text(pg, 0, row, 3), &claim->details);
        if (status == THOLE_OK)
            status = arena_dup(arena, call_cell_text(pg, 0, row, 6), &claim->lost_worker);
        if (status == THOLE_OK)
            status = arena_dup(arena, call_cell_text(pg, 0, row, 7), &claim->lost_report);
        if (status == THOLE_OK)
            status = arena_dup(arena, call_cell_text(pg, 0, row, 8), &claim->orchestration);
        if (status != THOLE_OK)
            return thole_fail(reterr, status, "no room for what heartbeats have said");
    }
    return THOLE_OK;
}

/* A claim without a row may be missing, held by another worker, a poison candidate, or appeared just now. */
static thole_status look_at_claims(struct postgres *pg, thole_slice worker, const struct claim_policy *policy,
                                   struct claim *claims, size_t n, thole_error *reterr)
{
    if (count_missing(claims, n) == 0)
        return THOLE_OK;
    call_begin(pg, "looking for activities");
    send_keys(pg, claims, n);
    call_text(pg, worker);
    call_int4_array(pg, &claims->partition, sizeof *claims, n);
    call_int4(pg, capped(policy->candidate_after));
    call_bytes_array(pg, &claims->digest, sizeof *claims, n);
    call_send(pg, STATEMENT_LOOK_CLAIM);
    THOLE_TRY(call_run(pg, reterr));
    return take_looks(pg, claims, n, reterr);
}

thole_status worker_store_claim(struct postgres *pg, thole_slice worker, const struct claim_policy *policy,
                                struct claim *claims, size_t n, struct arena *arena, thole_error *reterr)
{
    static const struct claim_policy never = {.candidate_after = UINT32_MAX, .strikes_max = UINT32_MAX};
    assert(!pg->in_transaction);
    set_missing(claims, n);
    if (n == 0)
        return THOLE_OK;
    if (policy == NULL)
        policy = &never;
    call_begin(pg, "claiming activities");
    send_keys(pg, claims, n);
    call_text(pg, worker);
    call_bool_array(pg, &claims->isolated, sizeof *claims, n);
    call_int4(pg, capped(policy->candidate_after));
    call_int4(pg, capped(policy->strikes_max));
    call_int8_array(pg, &claims->lease_ms, sizeof *claims, n);
    call_bytes_array(pg, &claims->digest, sizeof *claims, n);
    call_send(pg, STATEMENT_CLAIM);
    THOLE_TRY(call_run(pg, reterr));
    THOLE_TRY(take_mine(pg, 0, claims, n, reterr));
    THOLE_TRY(take_claimed(pg, 10, claims, n, reterr));
    THOLE_TRY(take_tries(pg, policy, claims, n, arena, reterr));
    return look_at_claims(pg, worker, policy, claims, n, reterr);
}

thole_status worker_store_renew(struct postgres *pg, thole_slice worker, struct claim *claims, size_t n,
                                thole_error *reterr)
{
    return change_rows(pg, "renewing activities", STATEMENT_RENEW, worker, claims, n, reterr);
}

/* Results of a claim that is resumed; rows are (place, attempt, milliseconds left or -1, details, when it was
 * made, activity). */
static thole_status take_resumed(struct postgres *pg, struct claim *claims, size_t n, struct arena *arena,
                                 thole_error *reterr)
{
    for (size_t row = 0; row < call_rows(pg, 0); row++) {
        struct claim *claim;
        THOLE_TRY(find_claim(pg, 0, row, claims, n, &claim, reterr));
        uint64_t const left_ms = call_cell_int8(pg, 0, row, 2);
        claim->expired = left_ms == 0;
        claim->left_ms = left_ms > INT64_MAX ? 0 : left_ms;
        if (arena_dup(arena, call_cell_text(pg, 0, row, 3), &claim->details) != THOLE_OK ||
            arena_dup(arena, call_cell_text(pg, 0, row, 5), &claim->activity) != THOLE_OK)
            return thole_fail(reterr, THOLE_NOMEM, "no room for what heartbeats have said");
    }
    return THOLE_OK;
}

thole_status worker_store_resume(struct postgres *pg, const struct resumption *resumption,
                                 struct claim *claims, size_t n, struct arena *arena, thole_error *reterr)
{
    assert(!pg->in_transaction);
    set_missing(claims, n);
    if (n == 0)
        return THOLE_OK;
    call_begin(pg, "resuming activities");
    send_keys(pg, claims, n);
    call_int8_array(pg, &claims->attempt, sizeof *claims, n);
    call_int8_array(pg, &claims->claimed_us, sizeof *claims, n);
    call_bytes_array(pg, &claims->digest, sizeof *claims, n);
    call_int8_array(pg, &claims->lease_ms, sizeof *claims, n);
    call_text(pg, resumption->worker);
    call_text(pg, resumption->from);
    call_text(pg, resumption->queue);
    call_send(pg, STATEMENT_RESUME);
    THOLE_TRY(call_run(pg, reterr));
    THOLE_TRY(take_mine(pg, 0, claims, n, reterr));
    THOLE_TRY(take_resumed(pg, claims, n, arena, reterr));
    return look_again(pg, claims, n, reterr);
}

thole_status worker_store_release(struct postgres *pg, thole_slice worker, struct claim *claims, size_t n,
                                  thole_error *reterr)
{
    return change_rows(pg, "giving activities back", STATEMENT_RELEASE, worker, claims, n, reterr);
}

thole_status worker_store_not_lost(struct postgres *pg, thole_slice worker, struct claim *claims, size_t n,
                                   thole_error *reterr)
{
    assert(!pg->in_transaction);
    set_missing(claims, n);
    if (n == 0)
        return THOLE_OK;
    call_begin(pg, "reporting activities as not lost");
    send_held(pg, STATEMENT_NOT_LOST, worker, claims, n);
    THOLE_TRY(call_run(pg, reterr));
    return take_mine(pg, 0, claims, n, reterr);
}

thole_status worker_store_died(struct postgres *pg, const struct worker_death *death, size_t *ret_rows,
                               thole_error *reterr)
{
    assert(!pg->in_transaction);
    call_begin(pg, "noting a worker's death");
    call_text(pg, death->worker);
    call_text(pg, death->report);
    call_text(pg, death->blamed.instance);
    call_int8(pg, death->blamed.execution);
    call_int8(pg, death->blamed.activity_id);
    call_int4(pg, death->blamed.try_number);
    call_int8(pg, death->attempt);
    call_int4(pg, capped(death->candidate_after));
    call_send(pg, STATEMENT_DIED);
    THOLE_TRY(call_run(pg, reterr));
    *ret_rows = call_rows(pg, 0);
    return THOLE_OK;
}

thole_status worker_store_leave(struct postgres *pg, thole_slice worker, struct claim *claims, size_t n,
                                thole_error *reterr)
{
    return change_rows(pg, "leaving activities to others", STATEMENT_LEAVE, worker, claims, n, reterr);
}

/* Rows of the deletion are (place, attempt, milliseconds of a try or 0, details, orchestration, version, 1 if
 * compared). */
static thole_status take_quick(struct postgres *pg, struct claim *claims, size_t n, struct arena *arena,
                               thole_error *reterr)
{
    for (size_t row = 0; row < call_rows(pg, 1); row++) {
        struct claim *claim;
        THOLE_TRY(find_claim(pg, 1, row, claims, n, &claim, reterr));
        if (!claim->quick)
            continue;
        claim->left_ms = call_cell_int8(pg, 1, row, 2);
        claim->version = (uint32_t)call_cell_int8(pg, 1, row, 5);
        claim->compared = call_cell_int8(pg, 1, row, 6) != 0;
        if (arena_dup(arena, call_cell_text(pg, 1, row, 3), &claim->details) != THOLE_OK ||
            arena_dup(arena, call_cell_text(pg, 1, row, 4), &claim->orchestration) != THOLE_OK)
            return thole_fail(reterr, THOLE_NOMEM, "no room for what heartbeats have said");
    }
    for (size_t i = 0; i < n; i++)
        if (claims[i].quick && claims[i].state == ROW_MISSING)
            claims[i].state = ROW_STOLEN;
    return THOLE_OK;
}

static thole_status begin_completion(struct postgres *pg, enum statement statement, thole_slice worker,
                                     struct claim *claims, size_t n, struct arena *arena, thole_error *reterr)
{
    assert(!pg->in_transaction);
    set_missing(claims, n);
    call_begin(pg, "completing activities");
    call_send(pg, STATEMENT_BEGIN);
    send_held(pg, statement, worker, claims, n);
    thole_status status = call_run(pg, reterr);
    pg->in_transaction = true;
    if (status == THOLE_OK)
        status = take_mine(pg, 1, claims, n, reterr);
    if (status == THOLE_OK && statement == STATEMENT_COMPLETE_QUICK)
        status = take_quick(pg, claims, n, arena, reterr);
    if (status == THOLE_OK)
        status = look_again(pg, claims, n, reterr);
    if (status != THOLE_OK)
        worker_store_complete_rollback(pg);
    assert(pg->in_transaction == (status == THOLE_OK)); /* the caller ends it */
    return status;
}

thole_status worker_store_complete_begin(struct postgres *pg, thole_slice worker, struct claim *claims,
                                         size_t n, thole_error *reterr)
{
    return begin_completion(pg, STATEMENT_COMPLETE, worker, claims, n, NULL, reterr);
}

thole_status worker_store_complete_quick(struct postgres *pg, thole_slice worker, struct claim *claims,
                                         size_t n, struct arena *arena, thole_error *reterr)
{
    return begin_completion(pg, STATEMENT_COMPLETE_QUICK, worker, claims, n, arena, reterr);
}

thole_status worker_store_complete_commit(struct postgres *pg, thole_error *reterr)
{
    return call_commit(pg, "committing completions", reterr);
}

void worker_store_complete_rollback(struct postgres *pg)
{
    call_rollback(pg, "rolling back completions");
}
