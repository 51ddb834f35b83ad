/* What a partition's projector writes and reads. */
#include "projector_store.h"
#include "postgres_call.h"
#include <assert.h>
#include <string.h>

enum {
    RESET_TIMEOUT_MS = 600000, /* a whole partition */
    OPENED = 2,                /* place of the answer in projector_store_open()'s call */
};

/* What is meant as "no limit" must fit into Postgres's dates: a hundred years. */
#define TRY_TIMEOUT_MS_MAX UINT64_C(3155760000000)

static thole_status check_partition(uint32_t partition, thole_error *reterr)
{
    if (partition < PARTITIONS_MAX)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "partition %u: at most %d", partition, PARTITIONS_MAX - 1);
}

static void set_opened(struct postgres *pg, uint32_t partition)
{
    pg->opened[partition / 64] |= UINT64_C(1) << partition % 64;
}

static bool is_opened(const struct postgres *pg, uint32_t partition)
{
    return (pg->opened[partition / 64] >> partition % 64 & 1) != 0;
}

static void send_set(struct postgres *pg, const char *name, const char *value)
{
    call_text(pg, thole_slice_from(name));
    call_text(pg, thole_slice_from(value));
    call_send(pg, STATEMENT_SET);
}

static thole_status fenced(uint32_t partition, uint64_t epoch, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_FENCED, "partition %u: epoch %llu is not its owner's (any more)",
                      partition, (unsigned long long)epoch);
}

static thole_status not_open(const struct postgres *pg, uint32_t partition, thole_error *reterr)
{
    return thole_fail(
        reterr, THOLE_FENCED,
        "partition %u is not open on this connection to Postgres %s: a server that was lost may "
        "have lost its last commits; open it again and project from where it stands",
        partition, pg->where);
}

thole_status projector_store_open(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                  struct projected *ret_projected, uint64_t *ret_epoch, thole_error *reterr)
{
    THOLE_TRY(check_partition(partition, reterr));
    call_begin(pg, "opening a partition");
    send_set(pg, "synchronous_commit", "on"); /* an epoch that was seen must not be forgotten */
    call_send(pg, STATEMENT_INCARNATION);
    call_int4(pg, partition);
    call_int8(pg, epoch);
    call_send(pg, STATEMENT_PARTITION_OPEN);
    THOLE_TRY(call_run(pg, reterr));
    uint64_t const registered = call_cell_int8(pg, OPENED, 0, 2);
    if (ret_epoch != NULL)
        *ret_epoch = registered;
    if (registered != epoch)
        return fenced(partition, epoch, reterr);
    *ret_projected = (struct projected){call_cell_int8(pg, OPENED, 0, 0), call_cell_int8(pg, OPENED, 0, 1)};
    set_opened(pg, partition);
    return THOLE_OK;
}

/* A server that was lost since has another incarnation, and is not asked on this connection. */
thole_status projector_store_complete(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                      thole_error *reterr)
{
    THOLE_TRY(check_partition(partition, reterr));
    call_begin(pg, "noting that a partition's rows are complete");
    if (pg->failed == THOLE_OK && !is_opened(pg, partition))
        return not_open(pg, partition, reterr);
    call_int4(pg, partition);
    call_int8(pg, epoch);
    call_send(pg, STATEMENT_PARTITION_COMPLETE);
    return call_run(pg, reterr);
}

static void send_activities_added(struct postgres *pg, const struct batch *batch, bool later_tries)
{
    const struct batch_activity *added = batch->activities_added;
    size_t n = batch->activities_added_len;
    call_text_array(pg, &added->instance, sizeof *added, n);
    call_int8_array(pg, &added->execution, sizeof *added, n);
    call_int8_array(pg, &added->activity_id, sizeof *added, n);
    call_text_array(pg, &added->queue, sizeof *added, n);
    call_text_array(pg, &added->activity, sizeof *added, n);
    call_int4_array(pg, &added->try_number, sizeof *added, n);
    call_int8_array_most(pg, &added->try_timeout_ms, sizeof *added, n, TRY_TIMEOUT_MS_MAX);
    call_bytes_array(pg, &added->details, sizeof *added, n);
    call_int4(pg, batch->partition);
    call_int4(pg, later_tries);
    call_send(pg, STATEMENT_ACTIVITIES_ADD);
}

static void send_keys_and_tries(struct postgres *pg, const struct batch_activity *rows, size_t n)
{
    static const struct batch_activity nobody;
    if (n == 0)
        rows = &nobody; /* there may be no array */
    call_text_array(pg, &rows->instance, sizeof *rows, n);
    call_int8_array(pg, &rows->execution, sizeof *rows, n);
    call_int8_array(pg, &rows->activity_id, sizeof *rows, n);
    call_int4_array(pg, &rows->try_number, sizeof *rows, n);
}

static size_t count_later_tries(const struct batch *batch)
{
    size_t n = 0;
    for (size_t i = 0; i < batch->activities_added_len; i++)
        n += batch->activities_added[i].try_number > 1;
    return n;
}

/* First tries, removals, later tries: see STATEMENT_ACTIVITIES_ADD. Returns the place of the removals. */
static size_t send_activities(struct postgres *pg, const struct batch *batch)
{
    size_t removals = 0;
    size_t const later_tries = count_later_tries(batch);
    if (batch->activities_added_len > later_tries)
        send_activities_added(pg, batch, false);
    if (batch->activities_removed_len > 0 || later_tries > 0) {
        send_keys_and_tries(pg, batch->activities_removed, batch->activities_removed_len);
        send_keys_and_tries(pg, batch->activities_added, later_tries > 0 ? batch->activities_added_len : 0);
        removals = call_sent(pg);
        call_send(pg, STATEMENT_ACTIVITIES_REMOVE);
    }
    if (later_tries > 0)
        send_activities_added(pg, batch, true);
    return removals;
}

static void read_held(const struct postgres *pg, size_t removals, const struct batch *batch)
{
    size_t const rows = batch->activities_removed_len > 0 ? call_rows(pg, removals) : 0;
    for (size_t row = 0; row < rows; row++) {
        uint64_t const place = call_cell_int8(pg, removals, row, 0);
        if (place > 0 && place <= batch->activities_removed_len)
            batch->activities_removed[place - 1].held = true;
    }
}

/* Removals first: a timer that was replaced may have been removed before. */
static void send_timers(struct postgres *pg, const struct batch *batch)
{
    const struct batch_timer *added = batch->timers_added, *removed = batch->timers_removed;
    size_t n = batch->timers_removed_len;
    if (n > 0) {
        call_text_array(pg, &removed->instance, sizeof *removed, n);
        call_int8_array(pg, &removed->execution, sizeof *removed, n);
        call_int8_array(pg, &removed->timer_id, sizeof *removed, n);
        call_send(pg, STATEMENT_TIMERS_REMOVE);
    }
    n = batch->timers_added_len;
    if (n > 0) {
        call_text_array(pg, &added->instance, sizeof *added, n);
        call_int8_array(pg, &added->execution, sizeof *added, n);
        call_int8_array(pg, &added->timer_id, sizeof *added, n);
        call_int8_array_most(pg, &added->due_ms, sizeof *added, n, INT64_MAX);
        call_int4(pg, batch->partition);
        call_send(pg, STATEMENT_TIMERS_ADD);
    }
}

/* Removals first, as with timers. */
static void send_quarantine(struct postgres *pg, const struct batch *batch)
{
    const struct batch_quarantine *added = batch->quarantine_added, *removed = batch->quarantine_removed;
    size_t n = batch->quarantine_removed_len;
    if (n > 0) {
        call_text_array(pg, &removed->instance, sizeof *removed, n);
        call_int8_array(pg, &removed->execution, sizeof *removed, n);
        call_int8_array(pg, &removed->activity_id, sizeof *removed, n);
        call_send(pg, STATEMENT_QUARANTINE_REMOVE);
    }
    n = batch->quarantine_added_len;
    if (n > 0) {
        call_text_array(pg, &added->instance, sizeof *added, n);
        call_int8_array(pg, &added->execution, sizeof *added, n);
        call_int8_array(pg, &added->activity_id, sizeof *added, n);
        call_text_array(pg, &added->queue, sizeof *added, n);
        call_text_array(pg, &added->activity, sizeof *added, n);
        call_int4_array(pg, &added->try_number, sizeof *added, n);
        call_int4_array(pg, &added->lost, sizeof *added, n);
        call_readable_array(pg, &added->worker, sizeof *added, n);
        call_readable_array(pg, &added->reason, sizeof *added, n);
        call_int8_array(pg, &added->since_ms, sizeof *added, n);
        call_int8_array_most(pg, &added->until_ms, sizeof *added, n, INT64_MAX);
        call_int4(pg, batch->partition);
        call_send(pg, STATEMENT_QUARANTINE_ADD);
    }
}

static void send_instances_removed(struct postgres *pg, const struct batch *batch, enum statement statement)
{
    const struct batch_instance *rows = batch->instances;
    call_text_array(pg, &rows->instance, sizeof *rows, batch->instances_len);
    call_int8_array(pg, &rows->history_seq, sizeof *rows, batch->instances_len);
    call_bool_array(pg, &rows->removed, sizeof *rows, batch->instances_len);
    call_send(pg, statement);
}

static void send_instance_rows(struct postgres *pg, const struct batch *batch)
{
    const struct batch_instance *rows = batch->instances;
    size_t n = batch->instances_len;
    call_int4(pg, batch->partition);
    call_text_array(pg, &rows->instance, sizeof *rows, n);
    call_text_array(pg, &rows->orchestration, sizeof *rows, n);
    call_int8_array(pg, &rows->execution, sizeof *rows, n);
    call_int4_array(pg, &rows->status, sizeof *rows, n);
    call_int8_array(pg, &rows->created_ms, sizeof *rows, n);
    call_int8_array(pg, &rows->updated_ms, sizeof *rows, n);
    call_readable_array(pg, &rows->detail, sizeof *rows, n);
    call_int8_array(pg, &rows->turns, sizeof *rows, n);
    call_int8_array(pg, &rows->history_seq, sizeof *rows, n);
    call_int4_array(pg, &rows->version, sizeof *rows, n);
    call_bool_array(pg, &rows->custom_status_set, sizeof *rows, n);
    call_bytes_array(pg, &rows->custom_status, sizeof *rows, n);
    call_text_array(pg, &rows->parent, sizeof *rows, n);
    call_bool_array(pg, &rows->removed, sizeof *rows, n);
    call_send(pg, STATEMENT_INSTANCES);
}

static void send_execution_rows(struct postgres *pg, const struct batch *batch)
{
    const struct batch_instance *rows = batch->instances;
    size_t n = batch->instances_len;
    call_int4(pg, batch->partition);
    call_text_array(pg, &rows->instance, sizeof *rows, n);
    call_int8_array(pg, &rows->execution, sizeof *rows, n);
    call_int4_array(pg, &rows->status, sizeof *rows, n);
    call_int8_array(pg, &rows->created_ms, sizeof *rows, n);
    call_int8_array(pg, &rows->updated_ms, sizeof *rows, n);
    call_int8_array(pg, &rows->turns, sizeof *rows, n);
    call_int8_array(pg, &rows->history_seq, sizeof *rows, n);
    call_bool_array(pg, &rows->removed, sizeof *rows, n);
    call_send(pg, STATEMENT_EXECUTIONS);
}

static void send_instances(struct postgres *pg, const struct batch *batch)
{
    size_t removed = 0;
    for (size_t i = 0; i < batch->instances_len; i++)
        removed += batch->instances[i].removed;
    if (removed > 0) {
        send_instances_removed(pg, batch, STATEMENT_INSTANCES_REMOVE);
        send_instances_removed(pg, batch, STATEMENT_EXECUTIONS_REMOVE);
    }
    if (batch->instances_len > removed) {
        send_instance_rows(pg, batch);
        send_execution_rows(pg, batch);
    }
}

static void send_deleted(struct postgres *pg, const struct batch *batch, enum statement statement,
                         const uint64_t *numbers)
{
    call_text_array(pg, &batch->deletions->instance, sizeof *batch->deletions, batch->deletions_len);
    call_int8_array(pg, numbers, sizeof *batch->deletions, batch->deletions_len);
    call_send(pg, statement);
}

static void send_deletions(struct postgres *pg, const struct batch *batch)
{
    const struct batch_deletion *rows = batch->deletions;
    if (batch->deletions_len == 0)
        return;
    send_deleted(pg, batch, STATEMENT_ACTIVITIES_DELETED, &rows->execution);
    send_deleted(pg, batch, STATEMENT_TIMERS_DELETED, &rows->execution);
    send_deleted(pg, batch, STATEMENT_QUARANTINE_DELETED, &rows->execution);
    send_deleted(pg, batch, STATEMENT_INSTANCES_DELETED, &rows->history_seq);
    send_deleted(pg, batch, STATEMENT_EXECUTIONS_DELETED, &rows->history_seq);
    call_text_array(pg, &rows->instance, sizeof *rows, batch->deletions_len);
    call_int8_array(pg, &rows->pruned.above, sizeof *rows, batch->deletions_len);
    call_int8_array(pg, &rows->pruned.upto, sizeof *rows, batch->deletions_len);
    call_send(pg, STATEMENT_EXECUTIONS_PRUNED);
}

static void send_epoch(struct postgres *pg, uint32_t partition, uint64_t epoch)
{
    call_int4(pg, partition);
    call_int8(pg, epoch);
}

static thole_status too_many(const struct batch *batch, thole_error *reterr)
{
    if (batch->activities_added_len <= BATCH_ROWS_MAX && batch->activities_removed_len <= BATCH_ROWS_MAX &&
        batch->timers_added_len <= BATCH_ROWS_MAX && batch->timers_removed_len <= BATCH_ROWS_MAX &&
        batch->quarantine_added_len <= BATCH_ROWS_MAX && batch->quarantine_removed_len <= BATCH_ROWS_MAX &&
        batch->instances_len <= BATCH_ROWS_MAX && batch->deletions_len <= BATCH_ROWS_MAX)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "partition %u: a batch of more than %d rows of a kind",
                      batch->partition, BATCH_ROWS_MAX);
}

/*
 * The fence is the first statement: it locks the partition's row and fails the pipeline when the epoch is
 * another's, so that nothing behind it happens.
 */
thole_status projector_store_apply(struct postgres *pg, const struct batch *batch, thole_error *reterr)
{
    assert(!pg->in_transaction); /* it would be in one with what is not committed yet */
    THOLE_TRY(check_partition(batch->partition, reterr));
    THOLE_TRY(too_many(batch, reterr));
    call_begin(pg, "projecting a batch");
    if (pg->failed == THOLE_OK && !is_opened(pg, batch->partition))
        return not_open(pg, batch->partition, reterr);
    if (batch->durable)
        send_set(pg, "synchronous_commit", "on");
    send_epoch(pg, batch->partition, batch->epoch);
    call_int8(pg, batch->projected.seq);
    call_int8(pg, batch->projected.mark);
    call_send(pg, STATEMENT_PARTITION_MOVE);
    send_deletions(pg, batch);
    size_t const removals = send_activities(pg, batch);
    send_timers(pg, batch);
    send_quarantine(pg, batch);
    send_instances(pg, batch);
    thole_status status = call_run(pg, reterr);
    if (status == THOLE_OK)
        read_held(pg, removals, batch);
    return status == THOLE_FENCED ? fenced(batch->partition, batch->epoch, reterr) : status;
}

thole_status projector_store_reset(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                   thole_error *reterr)
{
    static const enum statement deletes[] = {STATEMENT_ACTIVITIES_RESET, STATEMENT_TIMERS_RESET,
                                             STATEMENT_QUARANTINE_RESET, STATEMENT_INSTANCES_RESET,
                                             STATEMENT_EXECUTIONS_RESET};
    char timeout[16];
    THOLE_TRY(check_partition(partition, reterr));
    call_begin(pg, "emptying a partition");
    call_timeout(pg, RESET_TIMEOUT_MS);
    (void)snprintf(timeout, sizeof timeout, "%d", (int)RESET_TIMEOUT_MS);
    send_set(pg, "statement_timeout", timeout);
    send_set(pg, "synchronous_commit", "on");
    send_epoch(pg, partition, epoch);
    call_send(pg, STATEMENT_PARTITION_RESET);
    for (size_t i = 0; i < sizeof deletes / sizeof deletes[0]; i++) {
        call_int4(pg, partition);
        call_send(pg, deletes[i]);
    }
    thole_status status = call_run(pg, reterr);
    if (status == THOLE_OK)
        set_opened(pg, partition);
    return status == THOLE_FENCED ? fenced(partition, epoch, reterr) : status;
}

/* -- reads -- */

static thole_status full(thole_error *reterr)
{
    return thole_fail(reterr, THOLE_LIMIT, "no room for what Postgres answered");
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
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
    call_int8(pg, min_u64(limit, INT32_MAX) + 1); /* one more, which may be the next */
    call_send(pg, STATEMENT_TIMERS_DUE);
    THOLE_TRY(call_run(pg, reterr));
    size_t rows = call_rows(pg, 0);
    struct batch_timer *timers = arena_array(arena, rows, sizeof *timers);
    if (timers == NULL)
        return full(reterr);
    for (size_t row = 0; row < rows && next_due_ms == 0; row++) {
        struct batch_timer *timer = &timers[len];
        timer->due_ms = call_cell_int8(pg, 0, row, 3);
        if (len == limit || timer->due_ms >= bound_ms) {
            next_due_ms = timer->due_ms;
            break;
        }
        if (arena_dup(arena, call_cell_text(pg, 0, row, 0), &timer->instance) != THOLE_OK)
            return full(reterr);
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

static thole_status read_orchestrations(const struct postgres *pg, size_t i, struct arena *arena,
                                        struct live_summary *ret)
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
        read_orchestrations(pg, 1, arena, &summary) != THOLE_OK)
        return full(reterr);
    if (call_rows(pg, 2) == 1)
        summary.open_activities = call_cell_int8(pg, 2, 0, 0);
    summary.deadline_in_ms = call_rows(pg, 3) == 1 ? call_cell_int8(pg, 3, 0, 0) : UINT64_MAX;
    *ret = summary;
    return THOLE_OK;
}

thole_status projector_store_orphans(struct postgres *pg, uint32_t partition, uint64_t older_than_ms,
                                     size_t limit, struct arena *arena, struct batch_activity **ret,
                                     size_t *ret_len, uint64_t *ret_next_in_ms, thole_error *reterr)
{
    uint64_t const age_ms = min_u64(older_than_ms, INT32_MAX); /* far more would leave the range of dates */
    call_begin(pg, "looking for orphans");
    call_int4(pg, partition);
    call_int8(pg, age_ms);
    call_int8(pg, min_u64(limit, BATCH_ROWS_MAX));
    call_send(pg, STATEMENT_ORPHANS);
    call_int4(pg, partition);
    call_int8(pg, age_ms);
    call_send(pg, STATEMENT_NEXT_ORPHAN);
    THOLE_TRY(call_run(pg, reterr));
    size_t rows = call_rows(pg, 0);
    struct batch_activity *orphans = arena_array(arena, rows, sizeof *orphans);
    if (orphans == NULL)
        return full(reterr);
    for (size_t row = 0; row < rows; row++) {
        struct batch_activity *to = &orphans[row];
        if (arena_dup(arena, call_cell_text(pg, 0, row, 0), &to->instance) != THOLE_OK ||
            arena_dup(arena, call_cell_text(pg, 0, row, 3), &to->queue) != THOLE_OK ||
            arena_dup(arena, call_cell_text(pg, 0, row, 4), &to->activity) != THOLE_OK)
            return full(reterr);
        to->execution = call_cell_int8(pg, 0, row, 1);
        to->activity_id = call_cell_int8(pg, 0, row, 2);
        to->try_number = (uint32_t)call_cell_int8(pg, 0, row, 5);
        to->try_timeout_ms = call_cell_int8(pg, 0, row, 6);
    }
    *ret = orphans;
    *ret_len = rows;
    *ret_next_in_ms = call_rows(pg, 1) == 1 ? call_cell_int8(pg, 1, 0, 0) : UINT64_MAX;
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

static thole_status read_expired(const struct postgres *pg, size_t i, struct arena *arena,
                                 struct expired_try **ret, size_t *ret_len)
{
    size_t const rows = call_rows(pg, i);
    struct expired_try *expired = arena_array(arena, rows, sizeof *expired);
    if (expired == NULL)
        return THOLE_LIMIT;
    for (size_t row = 0; row < rows; row++) {
        struct expired_try *to = &expired[row];
        THOLE_TRY(arena_dup(arena, call_cell_text(pg, i, row, 0), &to->row.instance));
        to->row.execution = call_cell_int8(pg, i, row, 1);
        to->row.activity_id = call_cell_int8(pg, i, row, 2);
        to->row.try_number = (uint32_t)call_cell_int8(pg, i, row, 3);
        to->row.try_timeout_ms = call_cell_int8(pg, i, row, 4);
        to->attempt = call_cell_int8(pg, i, row, 5);
        THOLE_TRY(arena_dup(arena, call_cell_text(pg, i, row, 6), &to->row.details));
    }
    *ret = expired;
    *ret_len = rows;
    return THOLE_OK;
}

thole_status projector_store_expire_begin(struct postgres *pg, uint32_t partition, uint64_t since_ms,
                                          size_t limit, struct arena *arena, struct expired_try **ret,
                                          size_t *ret_len, thole_error *reterr)
{
    assert(!pg->in_transaction);
    call_begin(pg, "ending what is past its deadline");
    call_send(pg, STATEMENT_BEGIN);
    call_int4(pg, partition);
    call_int8(pg, min_u64(since_ms, INT32_MAX));
    call_int8(pg, min_u64(limit, BATCH_ROWS_MAX));
    call_send(pg, STATEMENT_EXPIRE);
    thole_status status = call_run(pg, reterr);
    pg->in_transaction = true;
    if (status == THOLE_OK && read_expired(pg, 1, arena, ret, ret_len) != THOLE_OK)
        status = full(reterr);
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
