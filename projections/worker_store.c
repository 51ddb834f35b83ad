/* Claims, renewals and completions of a worker. */
#include "worker_store.h"
#include "postgres_call.h"
#include "projector_units.h"
#include "row_order.h"
#include <assert.h>

/* They and all that follows are sent in the order of the keys. */
static void worker_store_send_keys(struct postgres *pg, const struct claim *claims, size_t n)
{
    call_order(pg, row_order(&claims->key.instance, &claims->key.execution, &claims->key.activity_id,
                             sizeof *claims, n));
    call_text_array(pg, &claims->key.instance, sizeof *claims, n);
    call_int8_array(pg, &claims->key.execution, sizeof *claims, n);
    call_int8_array(pg, &claims->key.activity_id, sizeof *claims, n);
    call_int4_array(pg, &claims->key.try_number, sizeof *claims, n);
}

static void worker_store_send_held(struct postgres *pg, enum statement statement, thole_slice worker,
                                   const struct claim *claims, size_t n)
{
    worker_store_send_keys(pg, claims, n);
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
    if (statement == STATEMENT_COMPLETE_QUICK)
        call_bool_array(pg, &claims->quick, sizeof *claims, n);
    if (statement != STATEMENT_RELEASE && statement != STATEMENT_NOT_LOST)
        call_bytes_array(pg, &claims->digest, sizeof *claims, n);
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

static size_t worker_store_count_missing(const struct claim *claims, size_t n)
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
static thole_status worker_store_look_again(struct postgres *pg, struct claim *claims, size_t n,
                                            thole_error *reterr)
{
    if (worker_store_count_missing(claims, n) == 0)
        return THOLE_OK;
    call_begin(pg, "looking for activities");
    worker_store_send_keys(pg, claims, n);
    call_int4_array(pg, &claims->partition, sizeof *claims, n);
    call_int8_array(pg, &claims->claimed_us, sizeof *claims, n);
    call_send(pg, STATEMENT_LOOK);
    THOLE_TRY(call_run(pg, reterr));
    return take_looks(pg, claims, n, reterr);
}

/* ---- a row that is refused does not stop those beside it ---- */

typedef thole_status claims_fn(struct postgres *pg, const void *arg, struct claim *claims, size_t n,
                               thole_error *reterr);

/* All in one statement; if one of their rows is refused for what is in it, each in its own, and of that one
 * nothing is known. */
static thole_status claims_apart(struct postgres *pg, claims_fn *call, const void *arg, struct claim *claims,
                                 size_t n, thole_error *reterr)
{
    thole_status const together = call(pg, arg, claims, n, reterr);
    if (!aside_is_of_data(together) || n == 1)
        return together;
    size_t refused = 0;
    for (size_t i = 0; i < n; i++) {
        thole_status const status = call(pg, arg, &claims[i], 1, reterr);
        if (aside_is_of_data(status))
            claims[i].state = ROW_UNKNOWN;
        else if (status != THOLE_OK)
            return status;
        refused += status != THOLE_OK;
    }
    return refused < n ? THOLE_OK : together; /* all: it is not a row */
}

struct row_change {
    const char *what;
    enum statement statement;
    thole_slice worker;
};

static thole_status change_together(struct postgres *pg, const void *arg, struct claim *claims, size_t n,
                                    thole_error *reterr)
{
    const struct row_change *const change = arg;
    set_missing(claims, n);
    call_begin(pg, change->what);
    worker_store_send_held(pg, change->statement, change->worker, claims, n);
    THOLE_TRY(call_run(pg, reterr));
    THOLE_TRY(take_mine(pg, 0, claims, n, reterr));
    if (change->statement == STATEMENT_RENEW)
        THOLE_TRY(take_claimed(pg, 2, claims, n, reterr));
    return change->statement == STATEMENT_NOT_LOST ? THOLE_OK
                                                   : worker_store_look_again(pg, claims, n, reterr);
}

/* Renewals and the like: changes of rows that this worker must hold. */
static thole_status change_rows(struct postgres *pg, const char *what, enum statement statement,
                                thole_slice worker, struct claim *claims, size_t n, thole_error *reterr)
{
    struct row_change const change = {what, statement, worker};
    assert(!pg->in_transaction);
    return n == 0 ? THOLE_OK : claims_apart(pg, change_together, &change, claims, n, reterr);
}

static uint32_t worker_store_capped(uint32_t count)
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
    if (worker_store_count_missing(claims, n) == 0)
        return THOLE_OK;
    call_begin(pg, "looking for activities");
    worker_store_send_keys(pg, claims, n);
    call_text(pg, worker);
    call_int4_array(pg, &claims->partition, sizeof *claims, n);
    call_int4(pg, worker_store_capped(policy->candidate_after));
    call_bytes_array(pg, &claims->digest, sizeof *claims, n);
    call_send(pg, STATEMENT_LOOK_CLAIM);
    THOLE_TRY(call_run(pg, reterr));
    return take_looks(pg, claims, n, reterr);
}

struct claiming {
    thole_slice worker;
    const struct claim_policy *policy;
    struct arena *arena;
};

static thole_status claim_together(struct postgres *pg, const void *arg, struct claim *claims, size_t n,
                                   thole_error *reterr)
{
    const struct claiming *const of = arg;
    const struct claim_policy *const policy = of->policy;
    thole_slice const worker = of->worker;
    set_missing(claims, n);
    call_begin(pg, "claiming activities");
    worker_store_send_keys(pg, claims, n);
    call_text(pg, worker);
    call_bool_array(pg, &claims->isolated, sizeof *claims, n);
    call_int4(pg, worker_store_capped(policy->candidate_after));
    call_int4(pg, worker_store_capped(policy->strikes_max));
    call_int8_array(pg, &claims->lease_ms, sizeof *claims, n);
    call_bytes_array(pg, &claims->digest, sizeof *claims, n);
    call_send(pg, STATEMENT_CLAIM);
    THOLE_TRY(call_run(pg, reterr));
    THOLE_TRY(take_mine(pg, 0, claims, n, reterr));
    THOLE_TRY(take_claimed(pg, 10, claims, n, reterr));
    THOLE_TRY(take_tries(pg, policy, claims, n, of->arena, reterr));
    return look_at_claims(pg, worker, policy, claims, n, reterr);
}

thole_status worker_store_claim(struct postgres *pg, thole_slice worker, const struct claim_policy *policy,
                                struct claim *claims, size_t n, struct arena *arena, thole_error *reterr)
{
    static const struct claim_policy never = {.candidate_after = UINT32_MAX, .strikes_max = UINT32_MAX};
    struct claiming const of = {worker, policy == NULL ? &never : policy, arena};
    assert(!pg->in_transaction);
    return n == 0 ? THOLE_OK : claims_apart(pg, claim_together, &of, claims, n, reterr);
}

static thole_status shelve_together(struct postgres *pg, const void *arg, struct claim *claims, size_t n,
                                    thole_error *reterr)
{
    static const struct claim_policy never = {.candidate_after = UINT32_MAX, .strikes_max = UINT32_MAX};
    const thole_slice *const worker = arg;
    set_missing(claims, n);
    call_begin(pg, "shelving activities");
    worker_store_send_keys(pg, claims, n);
    call_bytes_array(pg, &claims->digest, sizeof *claims, n);
    call_send(pg, STATEMENT_SHELVE);
    THOLE_TRY(call_run(pg, reterr));
    THOLE_TRY(take_mine(pg, 0, claims, n, reterr));
    return look_at_claims(pg, *worker, &never, claims, n, reterr);
}

thole_status worker_store_shelve(struct postgres *pg, thole_slice worker, struct claim *claims, size_t n,
                                 thole_error *reterr)
{
    assert(!pg->in_transaction);
    return n == 0 ? THOLE_OK : claims_apart(pg, shelve_together, &worker, claims, n, reterr);
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

struct resuming {
    const struct resumption *resumption;
    struct arena *arena;
};

static thole_status resume_together(struct postgres *pg, const void *arg, struct claim *claims, size_t n,
                                    thole_error *reterr)
{
    const struct resuming *const of = arg;
    const struct resumption *const resumption = of->resumption;
    set_missing(claims, n);
    call_begin(pg, "resuming activities");
    worker_store_send_keys(pg, claims, n);
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
    THOLE_TRY(take_resumed(pg, claims, n, of->arena, reterr));
    return worker_store_look_again(pg, claims, n, reterr);
}

thole_status worker_store_resume(struct postgres *pg, const struct resumption *resumption,
                                 struct claim *claims, size_t n, struct arena *arena, thole_error *reterr)
{
    struct resuming const of = {resumption, arena};
    assert(!pg->in_transaction);
    return n == 0 ? THOLE_OK : claims_apart(pg, resume_together, &of, claims, n, reterr);
}

thole_status worker_store_release(struct postgres *pg, thole_slice worker, struct claim *claims, size_t n,
                                  thole_error *reterr)
{
    return change_rows(pg, "giving activities back", STATEMENT_RELEASE, worker, claims, n, reterr);
}

thole_status worker_store_not_lost(struct postgres *pg, thole_slice worker, struct claim *claims, size_t n,
                                   thole_error *reterr)
{
    return change_rows(pg, "reporting activities as not lost", STATEMENT_NOT_LOST, worker, claims, n, reterr);
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
    call_int4(pg, worker_store_capped(death->candidate_after));
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
 * compared, when it is claimed by that). */
static thole_status take_quick(struct postgres *pg, size_t at, struct claim *claims, size_t n,
                               struct arena *arena, thole_error *reterr)
{
    for (size_t row = 0; row < call_rows(pg, at); row++) {
        struct claim *claim;
        THOLE_TRY(find_claim(pg, at, row, claims, n, &claim, reterr));
        if (!claim->quick)
            continue;
        claim->left_ms = call_cell_int8(pg, at, row, 2);
        claim->version = (uint32_t)call_cell_int8(pg, at, row, 5);
        claim->compared = call_cell_int8(pg, at, row, 6) != 0;
        claim->claimed_us = call_cell_int8(pg, at, row, 7);
        if (arena_dup(arena, call_cell_text(pg, at, row, 3), &claim->details) != THOLE_OK ||
            arena_dup(arena, call_cell_text(pg, at, row, 4), &claim->orchestration) != THOLE_OK)
            return thole_fail(reterr, THOLE_NOMEM, "no room for what heartbeats have said");
    }
    for (size_t i = 0; i < n; i++)
        if (claims[i].quick && claims[i].state == ROW_MISSING)
            claims[i].state = ROW_STOLEN;
    return THOLE_OK;
}

struct completion {
    struct postgres *pg;
    enum statement statement;
    thole_slice worker;
    struct arena *arena;
};

/* Takes the results of the deletion, statement @p at of the call. */
static thole_status take_completed(const struct completion *of, size_t at, struct claim *claims, size_t n,
                                   thole_error *reterr)
{
    THOLE_TRY(take_mine(of->pg, at, claims, n, reterr));
    return of->statement == STATEMENT_COMPLETE_QUICK ? take_quick(of->pg, at, claims, n, of->arena, reterr)
                                                     : THOLE_OK;
}

static thole_status complete_together(const struct completion *of, struct claim *claims, size_t n,
                                      thole_error *reterr)
{
    call_begin(of->pg, "completing activities");
    call_send(of->pg, STATEMENT_BEGIN);
    worker_store_send_held(of->pg, of->statement, of->worker, claims, n);
    thole_status const status = call_run(of->pg, reterr);
    of->pg->in_transaction = true;
    return status == THOLE_OK ? take_completed(of, 1, claims, n, reterr) : status;
}

/* Completes one claim after a savepoint. */
static thole_status complete_alone(const struct completion *of, struct claim *claim, thole_error *reterr)
{
    call_begin(of->pg, "completing an activity");
    if (!of->pg->in_transaction)
        call_send(of->pg, STATEMENT_BEGIN);
    call_send(of->pg, STATEMENT_SAVEPOINT);
    size_t const at = call_sent(of->pg);
    worker_store_send_held(of->pg, of->statement, of->worker, claim, 1);
    call_send(of->pg, STATEMENT_SAVEPOINT_RELEASE);
    thole_status const status = call_run(of->pg, reterr);
    of->pg->in_transaction |= of->pg->failed == THOLE_OK; /* BEGIN was sent */
    if (status == THOLE_OK)
        return take_completed(of, at, claim, 1, reterr);
    if (!aside_is_of_data(status))
        return status;
    claim->state = ROW_UNKNOWN;
    if (of->pg->failed != THOLE_OK)
        return THOLE_OK;
    call_begin(of->pg, "completing an activity");
    call_send(of->pg, STATEMENT_SAVEPOINT_UNDO);
    call_send(of->pg, STATEMENT_SAVEPOINT_RELEASE);
    return call_run(of->pg, reterr);
}

/* One of the rows is refused for what is in it: each alone, in one transaction. */
static thole_status complete_apart(const struct completion *of, struct claim *claims, size_t n,
                                   thole_error *reterr)
{
    worker_store_complete_rollback(of->pg);
    set_missing(claims, n);
    size_t refused = 0;
    for (size_t i = 0; i < n; i++) {
        THOLE_TRY(complete_alone(of, &claims[i], reterr));
        refused += claims[i].state == ROW_UNKNOWN;
    }
    return refused < n ? THOLE_OK : THOLE_INVALID; /* all, as the last one says: it is not a row */
}

static thole_status begin_completion(struct postgres *pg, enum statement statement, thole_slice worker,
                                     struct claim *claims, size_t n, struct arena *arena, thole_error *reterr)
{
    struct completion const of = {pg, statement, worker, arena};
    assert(!pg->in_transaction);
    set_missing(claims, n);
    thole_status status = complete_together(&of, claims, n, reterr);
    if (aside_is_of_data(status) && n > 1)
        status = complete_apart(&of, claims, n, reterr);
    if (status == THOLE_OK)
        status = worker_store_look_again(pg, claims, n, reterr);
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
