/*
 * Applies batches: those of several partitions in one transaction, each statement once for the rows of all.
 */
#include "memory.h"
#include "projector_parts.h"
#include "thole/client.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A longer timeout must fit into Postgres's dates: a hundred years. */
#define TRY_TIMEOUT_MS_MAX UINT64_C(3155760000000)

/* ---- the rows of all batches ---- */

#define EACH_ADDED(X) X(activities_added) X(timers_added) X(quarantine_added) X(instances)
#define EACH_KIND(X) EACH_ADDED(X) X(activities_removed) X(timers_removed) X(quarantine_removed) X(deletions)

struct gathered {
    struct batch rows;                       /* owns only the arrays; their contents belong to the batches */
#define PARTITIONS(kind) uint32_t *kind##_p; /* of each row */
    EACH_ADDED(PARTITIONS)
#undef PARTITIONS
};

static void count(struct gathered *all, struct batch *const *batches, size_t n)
{
    *all = (struct gathered){.rows = {.partition = 0}};
    for (size_t i = 0; i < n; i++) {
#define COUNT(kind) all->rows.kind##_len += batches[i]->kind##_len;
        EACH_KIND(COUNT)
#undef COUNT
    }
}

static void gather(struct gathered *all, struct batch *const *batches, size_t n)
{
#define MAKE(kind)                                                                                           \
    all->rows.kind = memory_array(all->rows.kind##_len, sizeof *all->rows.kind);                             \
    for (size_t i = 0, at = 0; i < n; i++)                                                                   \
        for (size_t row = 0; row < batches[i]->kind##_len; row++, at++)                                      \
            all->rows.kind[at] = batches[i]->kind[row];
    EACH_KIND(MAKE)
#undef MAKE
#define MAKE_PARTITIONS(kind)                                                                                \
    all->kind##_p = memory_array(all->rows.kind##_len, sizeof *all->kind##_p);                               \
    for (size_t i = 0, at = 0; i < n; i++)                                                                   \
        for (size_t row = 0; row < batches[i]->kind##_len; row++, at++)                                      \
            all->kind##_p[at] = batches[i]->partition;
    EACH_ADDED(MAKE_PARTITIONS)
#undef MAKE_PARTITIONS
}

static void gathered_release(struct gathered *all)
{
#define FREE(kind) free(all->rows.kind);
    EACH_KIND(FREE)
#undef FREE
#define FREE_PARTITIONS(kind) free(all->kind##_p);
    EACH_ADDED(FREE_PARTITIONS)
#undef FREE_PARTITIONS
}

size_t projector_store_rows(const struct batch *batch)
{
#define ADD(kind) +batch->kind##_len
    return 0 EACH_KIND(ADD);
#undef ADD
}

/* ---- the statements ---- */

static void send_partitions(struct postgres *pg, const uint32_t *partitions, size_t n)
{
    call_int4_array(pg, partitions, sizeof *partitions, n);
}

/* The first of each column. */
static void send_ids(struct postgres *pg, const thole_slice *instance, const uint64_t *execution,
                     const uint64_t *id, size_t stride, size_t n)
{
    call_text_array(pg, instance, stride, n);
    call_int8_array(pg, execution, stride, n);
    call_int8_array(pg, id, stride, n);
}

static void send_activities_added(struct postgres *pg, const struct gathered *all, bool later_tries)
{
    const struct batch_activity *added = all->rows.activities_added;
    size_t n = all->rows.activities_added_len;
    send_ids(pg, &added->instance, &added->execution, &added->activity_id, sizeof *added, n);
    call_text_array(pg, &added->queue, sizeof *added, n);
    call_text_array(pg, &added->activity, sizeof *added, n);
    call_int4_array(pg, &added->try_number, sizeof *added, n);
    call_int8_array_most(pg, &added->try_timeout_ms, sizeof *added, n, TRY_TIMEOUT_MS_MAX);
    call_bytes_array(pg, &added->details, sizeof *added, n);
    send_partitions(pg, all->activities_added_p, n);
    call_int4(pg, later_tries);
    call_send(pg, STATEMENT_ACTIVITIES_ADD);
}

static void send_keys_and_tries(struct postgres *pg, const struct batch_activity *rows, size_t n)
{
    send_ids(pg, &rows->instance, &rows->execution, &rows->activity_id, sizeof *rows, n);
    call_int4_array(pg, &rows->try_number, sizeof *rows, n);
}

static size_t count_later_tries(const struct gathered *all)
{
    size_t n = 0;
    for (size_t i = 0; i < all->rows.activities_added_len; i++)
        n += all->rows.activities_added[i].try_number > 1;
    return n;
}

/* First tries, removals, later tries: see STATEMENT_ACTIVITIES_ADD. Returns the place of the removals. */
static size_t send_activities(struct postgres *pg, const struct gathered *all)
{
    size_t removals = 0;
    size_t const later_tries = count_later_tries(all);
    if (all->rows.activities_added_len > later_tries)
        send_activities_added(pg, all, false);
    if (all->rows.activities_removed_len > 0 || later_tries > 0) {
        send_keys_and_tries(pg, all->rows.activities_removed, all->rows.activities_removed_len);
        send_keys_and_tries(pg, all->rows.activities_added,
                            later_tries > 0 ? all->rows.activities_added_len : 0);
        removals = call_sent(pg);
        call_send(pg, STATEMENT_ACTIVITIES_REMOVE);
    }
    if (later_tries > 0)
        send_activities_added(pg, all, true);
    return removals;
}

/* Sets `held` of the removed rows that a worker had, by their index over all batches. */
static void read_held(const struct postgres *pg, size_t removals, struct batch *const *batches, size_t n)
{
    size_t const rows = call_rows(pg, removals);
    for (size_t row = 0; row < rows; row++) {
        uint64_t place = call_cell_int8(pg, removals, row, 0); /* from 1 */
        size_t i = 0;
        while (i < n && place > batches[i]->activities_removed_len)
            place -= batches[i++]->activities_removed_len;
        if (i < n && place > 0)
            batches[i]->activities_removed[place - 1].held = true;
    }
}

/* Removals first: a timer that was replaced may have been removed before. */
static void send_timers(struct postgres *pg, const struct gathered *all)
{
    const struct batch_timer *added = all->rows.timers_added, *removed = all->rows.timers_removed;
    size_t n = all->rows.timers_removed_len;
    if (n > 0) {
        send_ids(pg, &removed->instance, &removed->execution, &removed->timer_id, sizeof *removed, n);
        call_send(pg, STATEMENT_TIMERS_REMOVE);
    }
    n = all->rows.timers_added_len;
    if (n > 0) {
        send_ids(pg, &added->instance, &added->execution, &added->timer_id, sizeof *added, n);
        call_int8_array_most(pg, &added->due_ms, sizeof *added, n, INT64_MAX);
        send_partitions(pg, all->timers_added_p, n);
        call_send(pg, STATEMENT_TIMERS_ADD);
    }
}

/* Removals first, as with timers. */
static void send_quarantine(struct postgres *pg, const struct gathered *all)
{
    const struct batch_quarantine *added = all->rows.quarantine_added,
                                  *removed = all->rows.quarantine_removed;
    size_t n = all->rows.quarantine_removed_len;
    if (n > 0) {
        send_ids(pg, &removed->instance, &removed->execution, &removed->activity_id, sizeof *removed, n);
        call_send(pg, STATEMENT_QUARANTINE_REMOVE);
    }
    n = all->rows.quarantine_added_len;
    if (n > 0) {
        send_ids(pg, &added->instance, &added->execution, &added->activity_id, sizeof *added, n);
        call_text_array(pg, &added->queue, sizeof *added, n);
        call_text_array(pg, &added->activity, sizeof *added, n);
        call_int4_array(pg, &added->try_number, sizeof *added, n);
        call_int4_array(pg, &added->lost, sizeof *added, n);
        call_readable_array(pg, &added->worker, sizeof *added, n);
        call_readable_array(pg, &added->reason, sizeof *added, n);
        call_int8_array(pg, &added->since_ms, sizeof *added, n);
        call_int8_array_most(pg, &added->until_ms, sizeof *added, n, INT64_MAX);
        send_partitions(pg, all->quarantine_added_p, n);
        call_send(pg, STATEMENT_QUARANTINE_ADD);
    }
}

static void send_instances_removed(struct postgres *pg, const struct gathered *all, enum statement statement)
{
    const struct batch_instance *rows = all->rows.instances;
    call_text_array(pg, &rows->instance, sizeof *rows, all->rows.instances_len);
    call_int8_array(pg, &rows->history_seq, sizeof *rows, all->rows.instances_len);
    call_bool_array(pg, &rows->removed, sizeof *rows, all->rows.instances_len);
    call_send(pg, statement);
}

static void send_instance_rows(struct postgres *pg, const struct gathered *all)
{
    const struct batch_instance *rows = all->rows.instances;
    size_t n = all->rows.instances_len;
    send_partitions(pg, all->instances_p, n);
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

struct execution_row {
    uint32_t partition, status;
    thole_slice instance;
    uint64_t execution, started_ms, ended_ms, turns, history_seq; /* ended_ms 0: it goes on */
};

static bool is_end(uint32_t status)
{
    return status == THOLE_INSTANCE_COMPLETED || status == THOLE_INSTANCE_FAILED ||
           status == THOLE_INSTANCE_CANCELLED || status == THOLE_INSTANCE_TERMINATED ||
           status == THOLE_INSTANCE_CONTINUED_AS_NEW;
}

/* Rows of executions that begin or end; between the two the state is in the row of the instance. */
static size_t find_executions(const struct gathered *all, struct execution_row *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < all->rows.instances_len; i++) {
        const struct batch_instance *const from = &all->rows.instances[i];
        bool const ends = is_end(from->status), begins = from->orchestration.len > 0;
        if (from->execution > 0 && !from->removed && (begins || ends))
            ret[n++] = (struct execution_row){.partition = all->instances_p[i],
                                              .status = from->status,
                                              .instance = from->instance,
                                              .execution = from->execution,
                                              .started_ms =
                                                  from->created_ms == 0 ? from->updated_ms : from->created_ms,
                                              .ended_ms = ends ? from->updated_ms : 0,
                                              .turns = from->turns,
                                              .history_seq = from->history_seq};
    }
    return n;
}

static void send_execution_rows(struct postgres *pg, const struct gathered *all)
{
    struct execution_row *const rows = memory_array(all->rows.instances_len, sizeof *rows);
    size_t const n = find_executions(all, rows);
    if (n > 0) {
        call_int4_array(pg, &rows->partition, sizeof *rows, n);
        call_text_array(pg, &rows->instance, sizeof *rows, n);
        call_int8_array(pg, &rows->execution, sizeof *rows, n);
        call_int4_array(pg, &rows->status, sizeof *rows, n);
        call_int8_array(pg, &rows->started_ms, sizeof *rows, n);
        call_int8_array(pg, &rows->ended_ms, sizeof *rows, n);
        call_int8_array(pg, &rows->turns, sizeof *rows, n);
        call_int8_array(pg, &rows->history_seq, sizeof *rows, n);
        call_send(pg, STATEMENT_EXECUTIONS);
    }
    free(rows);
}

static void send_instances(struct postgres *pg, const struct gathered *all)
{
    size_t removed = 0;
    for (size_t i = 0; i < all->rows.instances_len; i++)
        removed += all->rows.instances[i].removed;
    if (removed > 0) {
        send_instances_removed(pg, all, STATEMENT_INSTANCES_REMOVE);
        send_instances_removed(pg, all, STATEMENT_EXECUTIONS_REMOVE);
    }
    if (all->rows.instances_len > removed) {
        send_instance_rows(pg, all);
        send_execution_rows(pg, all);
    }
}

static void send_deleted(struct postgres *pg, const struct gathered *all, enum statement statement,
                         const uint64_t *numbers)
{
    call_text_array(pg, &all->rows.deletions->instance, sizeof *all->rows.deletions, all->rows.deletions_len);
    call_int8_array(pg, numbers, sizeof *all->rows.deletions, all->rows.deletions_len);
    call_send(pg, statement);
}

static void send_deletions(struct postgres *pg, const struct gathered *all)
{
    const struct batch_deletion *rows = all->rows.deletions;
    if (all->rows.deletions_len == 0)
        return;
    send_deleted(pg, all, STATEMENT_ACTIVITIES_DELETED, &rows->execution);
    send_deleted(pg, all, STATEMENT_TIMERS_DELETED, &rows->execution);
    send_deleted(pg, all, STATEMENT_QUARANTINE_DELETED, &rows->execution);
    send_deleted(pg, all, STATEMENT_INSTANCES_DELETED, &rows->history_seq);
    send_deleted(pg, all, STATEMENT_EXECUTIONS_DELETED, &rows->history_seq);
    call_text_array(pg, &rows->instance, sizeof *rows, all->rows.deletions_len);
    call_int8_array(pg, &rows->pruned.above, sizeof *rows, all->rows.deletions_len);
    call_int8_array(pg, &rows->pruned.upto, sizeof *rows, all->rows.deletions_len);
    call_send(pg, STATEMENT_EXECUTIONS_PRUNED);
}

/* Locks the partitions' rows in order; fails the pipeline when an epoch is not the batch's. */
static void send_fence(struct postgres *pg, struct batch *const *batches, size_t n)
{
    struct fence {
        uint32_t partition;
        uint64_t epoch, seq, mark;
    } *const fences = memory_array(n, sizeof *fences);
    for (size_t i = 0; i < n; i++)
        fences[i] = (struct fence){batches[i]->partition, batches[i]->epoch, batches[i]->projected.seq,
                                   batches[i]->projected.mark};
    call_int4_array(pg, &fences->partition, sizeof *fences, n);
    call_int8_array(pg, &fences->epoch, sizeof *fences, n);
    call_int8_array(pg, &fences->seq, sizeof *fences, n);
    call_int8_array(pg, &fences->mark, sizeof *fences, n);
    call_send(pg, STATEMENT_PARTITIONS_MOVE);
    free(fences);
}

/* ---- a transaction ---- */

static thole_status check_rows(const struct gathered *all, uint32_t first_partition, thole_error *reterr)
{
#define FITS(kind) &&all->rows.kind##_len <= BATCH_ROWS_MAX
    if (true EACH_KIND(FITS))
        return THOLE_OK;
#undef FITS
    return thole_fail(reterr, THOLE_INVALID, "partition %u: a batch of more than %d rows of a kind",
                      first_partition, BATCH_ROWS_MAX);
}

static thole_status check_partitions(const struct postgres *pg, struct batch *const *batches, size_t n,
                                     thole_error *reterr)
{
    for (size_t i = 0; i < n; i++) {
        THOLE_TRY(projector_check(batches[i]->partition, reterr));
        for (size_t other = 0; other < i; other++)
            /* the order of two batches of one partition would be unknown */
            assert(batches[other]->partition != batches[i]->partition);
        if (pg->failed == THOLE_OK && !projector_is_opened(pg, batches[i]->partition))
            return projector_not_open(pg, batches[i]->partition, reterr);
    }
    return THOLE_OK;
}

static thole_status apply(struct postgres *pg, const struct gathered *all, struct batch *const *batches,
                          size_t n, thole_error *reterr)
{
    bool durable = false;
    for (size_t i = 0; i < n; i++)
        durable |= batches[i]->durable;
    if (durable)
        projector_set(pg, "synchronous_commit", "on");
    send_fence(pg, batches, n); /* first: if it fails, nothing behind it is executed */
    send_deletions(pg, all);
    size_t const removals = send_activities(pg, all);
    send_timers(pg, all);
    send_quarantine(pg, all);
    send_instances(pg, all);
    THOLE_TRY(call_run(pg, reterr));
    if (all->rows.activities_removed_len > 0)
        read_held(pg, removals, batches, n);
    return THOLE_OK;
}

thole_status projector_store_apply(struct postgres *pg, struct batch *const *batches, size_t n,
                                   thole_error *reterr)
{
    struct gathered all;
    assert(n > 0 && !pg->in_transaction); /* it must not join an open transaction */
    call_begin(pg, "projecting a batch");
    THOLE_TRY(check_partitions(pg, batches, n, reterr));
    count(&all, batches, n);
    THOLE_TRY(check_rows(&all, batches[0]->partition, reterr));
    gather(&all, batches, n);
    thole_status const status = apply(pg, &all, batches, n, reterr);
    gathered_release(&all);
    return status == THOLE_FENCED ? projector_fenced(batches[0]->partition, batches[0]->epoch, reterr)
                                  : status;
}
