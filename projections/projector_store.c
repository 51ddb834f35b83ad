/* Reads and writes of a partition's projector. */
#include "projector_parts.h"
#include <assert.h>
#include <string.h>

enum {
    RESET_TIMEOUT_MS = 600000, /* a whole partition */
    OPENED = 2,                /* place of the answer in projector_store_open()'s call */
    SKIPPED_MAX = 100,         /* rows that cannot be changed, and are in the way of others */
    COUNTED = 3,               /* likewise, of the rows that are set aside */
};

thole_status projector_check(uint32_t partition, thole_error *reterr)
{
    if (partition < PARTITIONS_MAX)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "partition %u: at most %d", partition, PARTITIONS_MAX - 1);
}

/* Through a pooler, the last statement of a call that opens a partition. */
static void send_incarnation(struct postgres *pg)
{
    if (pg->pooled)
        call_send(pg, STATEMENT_INCARNATION_ID);
}

static void set_opened(struct postgres *pg, uint32_t partition)
{
    size_t const last = call_sent(pg) - 1;
    if (pg->pooled && call_rows(pg, last) == 1)
        (void)snprintf(pg->incarnation, sizeof pg->incarnation, "%.*s",
                       THOLE_FMT(call_cell_text(pg, last, 0, 0)));
    pg->opened[partition / 64] |= UINT64_C(1) << partition % 64;
}

bool projector_is_opened(const struct postgres *pg, uint32_t partition)
{
    return (pg->opened[partition / 64] >> partition % 64 & 1) != 0;
}

void projector_set(struct postgres *pg, const char *name, const char *value)
{
    call_text(pg, thole_slice_from(name));
    call_text(pg, thole_slice_from(value));
    call_send(pg, STATEMENT_SET);
}

thole_status projector_fenced(uint32_t partition, uint64_t epoch, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_FENCED, "partition %u: epoch %llu is not its owner's (any more)",
                      partition, (unsigned long long)epoch);
}

thole_status projector_not_open(const struct postgres *pg, uint32_t partition, thole_error *reterr)
{
    return thole_fail(
        reterr, THOLE_FENCED,
        "partition %u is not open on this connection to Postgres %s: a server that was lost may "
        "have lost its last commits; open it again and project from where it stands",
        partition, pg->where);
}

thole_status projector_store_open(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                  struct rows_state *ret_rows, uint64_t *ret_epoch, thole_error *reterr)
{
    THOLE_TRY(projector_check(partition, reterr));
    call_begin(pg, "opening a partition");
    projector_set(pg, "synchronous_commit", "on"); /* a registered epoch must be durable */
    call_send(pg, STATEMENT_INCARNATION);
    call_int4(pg, partition);
    call_int8(pg, epoch);
    call_send(pg, STATEMENT_PARTITION_OPEN);
    aside_send_counts(pg, &partition, 1);
    send_incarnation(pg);
    THOLE_TRY(call_run(pg, reterr));
    uint64_t const registered = call_cell_int8(pg, OPENED, 0, 2);
    if (ret_epoch != NULL)
        *ret_epoch = registered;
    if (registered != epoch)
        return projector_fenced(partition, epoch, reterr);
    *ret_rows = (struct rows_state){{call_cell_int8(pg, OPENED, 0, 0), call_cell_int8(pg, OPENED, 0, 1)},
                                    call_cell_int8(pg, OPENED, 0, 3)};
    aside_keep_counts(pg, &partition, 1, COUNTED);
    set_opened(pg, partition);
    return THOLE_OK;
}

static void send_epoch(struct postgres *pg, uint32_t partition, uint64_t epoch)
{
    call_int4(pg, partition);
    call_int8(pg, epoch);
}

thole_status projector_store_sign(struct postgres *pg, uint32_t partition, uint64_t epoch, uint64_t mark,
                                  uint64_t *ret_mark, thole_error *reterr)
{
    assert(mark != 0);
    THOLE_TRY(projector_check(partition, reterr));
    call_begin(pg, "asking which key a partition's rows are signed with");
    if (pg->failed == THOLE_OK && !projector_is_opened(pg, partition))
        return projector_not_open(pg, partition, reterr);
    send_epoch(pg, partition, epoch);
    call_int8(pg, mark);
    call_send(pg, STATEMENT_PARTITION_SIGN);
    THOLE_TRY(call_run(pg, reterr));
    if (call_rows(pg, 0) != 1)
        return projector_fenced(partition, epoch, reterr);
    *ret_mark = call_cell_int8(pg, 0, 0, 0);
    return THOLE_OK;
}

/* A server that was lost since has another incarnation, and is not asked on this connection. */
thole_status projector_store_complete(struct postgres *pg, const struct rows_owner *owner,
                                      thole_error *reterr)
{
    THOLE_TRY(projector_check(owner->partition, reterr));
    call_begin(pg, "noting that a partition's rows are complete");
    if (pg->failed == THOLE_OK && !projector_is_opened(pg, owner->partition))
        return projector_not_open(pg, owner->partition, reterr);
    send_epoch(pg, owner->partition, owner->epoch);
    call_int8(pg, owner->batches);
    call_send(pg, STATEMENT_PARTITION_COMPLETE);
    return call_run(pg, reterr);
}

thole_status projector_store_reset(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                   struct rows_state *ret_rows, thole_error *reterr)
{
    static const enum statement deletes[] = {STATEMENT_ACTIVITIES_RESET, STATEMENT_TIMERS_RESET,
                                             STATEMENT_QUARANTINE_RESET, STATEMENT_INSTANCES_RESET,
                                             STATEMENT_EXECUTIONS_RESET, STATEMENT_ASIDE_RESET};
    char timeout[16];
    THOLE_TRY(projector_check(partition, reterr));
    call_begin(pg, "emptying a partition");
    call_timeout(pg, RESET_TIMEOUT_MS);
    (void)snprintf(timeout, sizeof timeout, "%d", (int)RESET_TIMEOUT_MS);
    projector_set(pg, "statement_timeout", timeout);
    projector_set(pg, "synchronous_commit", "on");
    if (pg->pooled)
        call_send(pg, STATEMENT_INCARNATION);
    send_epoch(pg, partition, epoch);
    size_t const place = call_sent(pg);
    call_send(pg, STATEMENT_PARTITION_RESET);
    for (size_t i = 0; i < sizeof deletes / sizeof deletes[0]; i++) {
        call_int4(pg, partition);
        call_send(pg, deletes[i]);
    }
    size_t const counted = call_sent(pg);
    aside_send_counts(pg, &partition, 1);
    send_incarnation(pg);
    thole_status status = call_run(pg, reterr);
    if (status == THOLE_OK) {
        *ret_rows = (struct rows_state){.batches = call_cell_int8(pg, place, 0, 1)};
        aside_keep_counts(pg, &partition, 1, counted);
        set_opened(pg, partition);
    }
    return status == THOLE_FENCED ? projector_fenced(partition, epoch, reterr) : status;
}

/* -- reads -- */

static thole_status projector_store_full(thole_error *reterr)
{
    return thole_fail(reterr, THOLE_LIMIT, "no room for what Postgres answered");
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The last two parameters of statements with NOT_OLDER. */
static void send_not_older(struct postgres *pg, const struct rows_owner *owner)
{
    call_int8(pg, owner->epoch);
    call_int8(pg, owner->batches);
}

thole_status projector_store_timers(struct postgres *pg, uint32_t partition, uint64_t before_ms, size_t limit,
                                    struct arena *arena, struct batch_timer **ret_timers, size_t *ret_len,
                                    uint64_t *ret_next_due_ms, thole_error *reterr)
{
    uint64_t bound_ms = min_u64(before_ms, INT64_MAX), next_due_ms = 0;
    size_t len = 0;
    call_begin(pg, "reading timers");
    call_int4(pg, partition);
    call_int8(pg, bound_ms);
    call_int8(pg, min_u64(limit, INT32_MAX) + 1); /* one more, to know the next due time */
    call_send(pg, STATEMENT_TIMERS_DUE);
    THOLE_TRY(call_run(pg, reterr));
    size_t rows = call_rows(pg, 0);
    struct batch_timer *timers = arena_array(arena, rows, sizeof *timers);
    if (timers == NULL)
        return projector_store_full(reterr);
    for (size_t row = 0; row < rows && next_due_ms == 0; row++) {
        struct batch_timer *timer = &timers[len];
        timer->due_ms = call_cell_int8(pg, 0, row, 3);
        if (len == limit || timer->due_ms >= bound_ms) {
            next_due_ms = timer->due_ms;
            break;
        }
        if (arena_dup(arena, call_cell_text(pg, 0, row, 0), &timer->instance) != THOLE_OK)
            return projector_store_full(reterr);
        timer->execution = call_cell_int8(pg, 0, row, 1);
        timer->timer_id = call_cell_int8(pg, 0, row, 2);
        len++;
    }
    *ret_timers = timers;
    *ret_len = len;
    *ret_next_due_ms = next_due_ms;
    return THOLE_OK;
}

static thole_status read_blocked(const struct postgres *pg, size_t i, struct arena *arena,
                                 struct live_summary *ret)
{
    size_t rows = call_rows(pg, i);
    ret->blocked = arena_array(arena, rows, sizeof *ret->blocked);
    if (ret->blocked == NULL)
        return THOLE_LIMIT;
    for (size_t row = 0; row < rows; row++) {
        struct batch_instance *to = &ret->blocked[row];
        THOLE_TRY(arena_dup(arena, call_cell_text(pg, i, row, 0), &to->instance));
        THOLE_TRY(arena_dup(arena, call_cell_text(pg, i, row, 1), &to->orchestration));
        to->execution = call_cell_int8(pg, i, row, 2);
        to->status = (uint32_t)call_cell_int8(pg, i, row, 3);
        to->created_ms = call_cell_int8(pg, i, row, 4);
        to->updated_ms = call_cell_int8(pg, i, row, 5);
        THOLE_TRY(arena_dup(arena, call_cell_text(pg, i, row, 6), &to->detail));
        to->turns = call_cell_int8(pg, i, row, 7);
        to->history_seq = call_cell_int8(pg, i, row, 8);
        to->version = (uint32_t)call_cell_int8(pg, i, row, 9);
    }
    ret->blocked_len = rows;
    return THOLE_OK;
}

static thole_status projector_store_read_orchestrations(const struct postgres *pg, size_t i,
                                                        struct arena *arena, struct live_summary *ret)
{
    size_t rows = call_rows(pg, i);
    ret->orchestrations = arena_array(arena, rows, sizeof *ret->orchestrations);
    ret->orchestration_counts = arena_array(arena, rows, sizeof *ret->orchestration_counts);
    if (ret->orchestrations == NULL || ret->orchestration_counts == NULL)
        return THOLE_LIMIT;
    for (size_t row = 0; row < rows; row++) {
        THOLE_TRY(arena_dup(arena, call_cell_text(pg, i, row, 0), &ret->orchestrations[row]));
        ret->orchestration_counts[row] = call_cell_int8(pg, i, row, 1);
    }
    ret->orchestrations_len = rows;
    return THOLE_OK;
}

thole_status projector_store_live(struct postgres *pg, uint32_t partition, struct arena *arena,
                                  struct live_summary *ret, thole_error *reterr)
{
    static const enum statement reads[] = {STATEMENT_LIVE_BLOCKED, STATEMENT_LIVE_ORCHESTRATIONS,
                                           STATEMENT_LIVE_ACTIVITIES, STATEMENT_NEXT_DEADLINE};
    struct live_summary summary = {0};
    call_begin(pg, "reading what is live");
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        call_int4(pg, partition);
        call_send(pg, reads[i]);
    }
    THOLE_TRY(call_run(pg, reterr));
    if (read_blocked(pg, 0, arena, &summary) != THOLE_OK ||
        projector_store_read_orchestrations(pg, 1, arena, &summary) != THOLE_OK)
        return projector_store_full(reterr);
    if (call_rows(pg, 2) == 1)
        summary.open_activities = call_cell_int8(pg, 2, 0, 0);
    summary.deadline_in_ms = call_rows(pg, 3) == 1 ? call_cell_int8(pg, 3, 0, 0) : UINT64_MAX;
    *ret = summary;
    return THOLE_OK;
}

struct taking { /* rows that are changed as they are found */
    struct postgres *pg;
    const struct rows_owner *owner;
    uint64_t age_ms;
    struct arena *arena;
};

static thole_status send_orphans(const struct taking *of, uint64_t limit, uint64_t skip, thole_error *reterr)
{
    call_begin(of->pg, "looking for orphans");
    call_int4(of->pg, of->owner->partition);
    call_int8(of->pg, of->age_ms);
    call_int8(of->pg, limit);
    send_not_older(of->pg, of->owner);
    call_int8(of->pg, skip);
    call_send(of->pg, STATEMENT_ORPHANS);
    call_int4(of->pg, of->owner->partition);
    call_int8(of->pg, of->age_ms);
    call_send(of->pg, STATEMENT_NEXT_ORPHAN);
    return call_run(of->pg, reterr);
}

thole_status projector_read_activities(const struct postgres *pg, struct arena *arena,
                                       struct batch_activity *ret, thole_error *reterr)
{
    for (size_t row = 0; row < call_rows(pg, 0); row++) {
        struct batch_activity *to = &ret[row];
        if (arena_dup(arena, call_cell_text(pg, 0, row, 0), &to->instance) != THOLE_OK ||
            arena_dup(arena, call_cell_text(pg, 0, row, 3), &to->queue) != THOLE_OK ||
            arena_dup(arena, call_cell_text(pg, 0, row, 4), &to->activity) != THOLE_OK ||
            arena_dup(arena, call_cell_text(pg, 0, row, 7), &to->digest) != THOLE_OK)
            return projector_store_full(reterr);
        to->execution = call_cell_int8(pg, 0, row, 1);
        to->activity_id = call_cell_int8(pg, 0, row, 2);
        to->try_number = (uint32_t)call_cell_int8(pg, 0, row, 5);
        to->try_timeout_ms = call_cell_int8(pg, 0, row, 6);
    }
    return THOLE_OK;
}

/* One of them cannot be marked: one by one, past those. */
static thole_status orphans_apart(const struct taking *of, size_t limit, struct batch_activity *orphans,
                                  size_t *ret_len, thole_error *reterr)
{
    thole_status refused = THOLE_INVALID;
    size_t len = 0;
    for (uint64_t skip = 0; len < limit && skip <= SKIPPED_MAX;) {
        thole_status const status = send_orphans(of, 1, skip, reterr);
        skip += aside_is_of_data(status);
        if (aside_is_of_data(status))
            continue;
        THOLE_TRY(status);
        if (call_rows(of->pg, 0) == 0)
            break;
        THOLE_TRY(projector_read_activities(of->pg, of->arena, &orphans[len++], reterr));
        refused = THOLE_OK; /* not all of them */
    }
    *ret_len = len;
    return refused;
}

thole_status projector_store_orphans(struct postgres *pg, const struct rows_owner *owner,
                                     uint64_t older_than_ms, size_t limit, struct arena *arena,
                                     struct batch_activity **ret, size_t *ret_len, uint64_t *ret_next_in_ms,
                                     thole_error *reterr)
{
    /* a larger value would exceed the range of dates */
    struct taking const of = {pg, owner, min_u64(older_than_ms, INT32_MAX), arena};
    size_t const most = (size_t)min_u64(limit, BATCH_ROWS_MAX);
    size_t len = 0;
    thole_status status = send_orphans(&of, most, 0, reterr);
    bool const apart = status == THOLE_INVALID;
    if (status != THOLE_OK && !apart)
        return status;
    struct batch_activity *const orphans =
        arena_array(arena, apart ? most : call_rows(pg, 0), sizeof *orphans);
    if (orphans == NULL)
        return projector_store_full(reterr);
    if (!apart)
        len = call_rows(pg, 0);
    status = apart ? orphans_apart(&of, most, orphans, &len, reterr)
                   : projector_read_activities(pg, arena, orphans, reterr);
    THOLE_TRY(status);
    *ret = orphans;
    *ret_len = len;
    *ret_next_in_ms =
        pg->results_len == 2 && call_rows(pg, 1) == 1 ? call_cell_int8(pg, 1, 0, 0) : UINT64_MAX;
    return THOLE_OK;
}

thole_status projector_store_waiting(struct postgres *pg, uint32_t partition, uint64_t *ret_ms,
                                     thole_error *reterr)
{
    call_begin(pg, "looking for what waits");
    call_int4(pg, partition);
    call_send(pg, STATEMENT_OLDEST_WAITING);
    THOLE_TRY(call_run(pg, reterr));
    *ret_ms = call_rows(pg, 0) == 1 ? call_cell_int8(pg, 0, 0, 0) : 0;
    return THOLE_OK;
}

/* -- deadlines -- */

thole_status projector_store_next_deadline(struct postgres *pg, uint32_t partition, uint64_t *ret_in_ms,
                                           thole_error *reterr)
{
    call_begin(pg, "looking for deadlines");
    call_int4(pg, partition);
    call_send(pg, STATEMENT_NEXT_DEADLINE);
    THOLE_TRY(call_run(pg, reterr));
    *ret_in_ms = call_rows(pg, 0) == 1 ? call_cell_int8(pg, 0, 0, 0) : UINT64_MAX;
    return THOLE_OK;
}

static thole_status read_expired(const struct taking *of, size_t i, struct expired_try *expired,
                                 thole_error *reterr)
{
    const struct postgres *const pg = of->pg;
    for (size_t row = 0; row < call_rows(pg, i); row++) {
        struct expired_try *to = &expired[row];
        if (arena_dup(of->arena, call_cell_text(pg, i, row, 0), &to->row.instance) != THOLE_OK ||
            arena_dup(of->arena, call_cell_text(pg, i, row, 6), &to->row.details) != THOLE_OK)
            return projector_store_full(reterr);
        to->row.execution = call_cell_int8(pg, i, row, 1);
        to->row.activity_id = call_cell_int8(pg, i, row, 2);
        to->row.try_number = (uint32_t)call_cell_int8(pg, i, row, 3);
        to->row.try_timeout_ms = call_cell_int8(pg, i, row, 4);
        to->attempt = call_cell_int8(pg, i, row, 5);
    }
    return THOLE_OK;
}

static void send_expire(const struct taking *of, uint64_t limit, uint64_t skip)
{
    call_int4(of->pg, of->owner->partition);
    call_int8(of->pg, of->age_ms);
    call_int8(of->pg, limit);
    send_not_older(of->pg, of->owner);
    call_int8(of->pg, skip);
    call_send(of->pg, STATEMENT_EXPIRE);
}

/* The next one, after a savepoint. Adds to *skip one that cannot be deleted. */
static thole_status expire_alone(const struct taking *of, uint64_t *skip, struct expired_try *to,
                                 size_t *ret_n, thole_error *reterr)
{
    call_begin(of->pg, "ending what is past its deadline");
    if (!of->pg->in_transaction)
        call_send(of->pg, STATEMENT_BEGIN);
    call_send(of->pg, STATEMENT_SAVEPOINT);
    size_t const at = call_sent(of->pg);
    send_expire(of, 1, *skip);
    call_send(of->pg, STATEMENT_SAVEPOINT_RELEASE);
    thole_status const status = call_run(of->pg, reterr);
    of->pg->in_transaction = true;
    if (status == THOLE_OK) {
        *ret_n = call_rows(of->pg, at);
        return read_expired(of, at, to, reterr);
    }
    if (!aside_is_of_data(status))
        return status;
    ++*skip;
    *ret_n = 0;
    call_begin(of->pg, "ending what is past its deadline");
    call_send(of->pg, STATEMENT_SAVEPOINT_UNDO);
    call_send(of->pg, STATEMENT_SAVEPOINT_RELEASE);
    return call_run(of->pg, reterr);
}

static thole_status expire_apart(const struct taking *of, size_t limit, struct expired_try **ret,
                                 size_t *ret_len, thole_error *reterr)
{
    struct expired_try *const expired = arena_array(of->arena, limit, sizeof *expired);
    uint64_t skip = 0;
    size_t len = 0;
    if (expired == NULL)
        return projector_store_full(reterr);
    projector_store_expire_rollback(of->pg);
    while (len < limit && skip <= SKIPPED_MAX) {
        uint64_t const skipped = skip;
        size_t n = 0;
        THOLE_TRY(expire_alone(of, &skip, &expired[len], &n, reterr));
        if (n == 0 && skip == skipped)
            break;
        len += n;
    }
    *ret = expired;
    *ret_len = len;
    return len > 0 ? THOLE_OK : THOLE_INVALID; /* all of them: it is not a row */
}

static thole_status expire_together(const struct taking *of, size_t limit, struct expired_try **ret,
                                    size_t *ret_len, thole_error *reterr)
{
    call_begin(of->pg, "ending what is past its deadline");
    call_send(of->pg, STATEMENT_BEGIN);
    send_expire(of, limit, 0);
    thole_status const status = call_run(of->pg, reterr);
    of->pg->in_transaction = true;
    THOLE_TRY(status);
    size_t const len = call_rows(of->pg, 1);
    struct expired_try *const expired = arena_array(of->arena, len, sizeof *expired);
    if (expired == NULL)
        return projector_store_full(reterr);
    THOLE_TRY(read_expired(of, 1, expired, reterr));
    *ret = expired;
    *ret_len = len;
    return THOLE_OK;
}

thole_status projector_store_expire_begin(struct postgres *pg, const struct rows_owner *owner,
                                          uint64_t since_ms, size_t limit, struct arena *arena,
                                          struct expired_try **ret, size_t *ret_len, thole_error *reterr)
{
    struct taking const of = {pg, owner, min_u64(since_ms, INT32_MAX), arena};
    size_t const most = (size_t)min_u64(limit, BATCH_ROWS_MAX);
    assert(!pg->in_transaction);
    thole_status status = expire_together(&of, most, ret, ret_len, reterr);
    if (status == THOLE_INVALID)
        status = expire_apart(&of, most, ret, ret_len, reterr);
    if (status != THOLE_OK)
        projector_store_expire_rollback(pg);
    return status;
}

thole_status projector_store_expire_commit(struct postgres *pg, thole_error *reterr)
{
    return call_commit(pg, "committing ends by deadline", reterr);
}

void projector_store_expire_rollback(struct postgres *pg)
{
    call_rollback(pg, "rolling back ends by deadline");
}
