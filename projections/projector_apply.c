/*
 * Applies batches: those of several partitions in one transaction, each statement once for the rows of all.
 */
#include "instance_rows.h"
#include "memory.h"
#include "projector_parts.h"
#include "row_order.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A longer timeout must fit into Postgres's dates: a hundred years. */
#define TRY_TIMEOUT_MS_MAX UINT64_C(3155760000000)

/* ---- the rows of all batches ---- */

static void projector_apply_count(struct gathered *all, struct batch *const *batches, size_t n)
{
    *all = (struct gathered){.rows = {.partition = 0}};
    for (size_t i = 0; i < n; i++) {
#define COUNT(kind) all->rows.kind##_len += batches[i]->kind##_len;
        EACH_KIND(COUNT)
#undef COUNT
    }
}

static void projector_apply_gather(struct gathered *all, struct batch *const *batches, size_t n)
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

/* ---- the statements ---- */

static void send_partitions(struct postgres *pg, const uint32_t *partitions, size_t n)
{
    call_int4_array(pg, partitions, sizeof *partitions, n);
}

/* Keys and all that follows are sent in the order of the keys. The first of each column. */
static void send_ids(struct postgres *pg, const thole_slice *instance, const uint64_t *execution,
                     const uint64_t *id, size_t stride, size_t n)
{
    call_order(pg, row_order(instance, execution, id, stride, n));
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
    call_bytes_array(pg, &added->digest, sizeof *added, n);
    send_partitions(pg, all->activities_added_p, n);
    call_int4(pg, later_tries);
    call_send(pg, STATEMENT_ACTIVITIES_ADD);
}

static size_t count_later_tries(const struct gathered *all)
{
    size_t n = 0;
    for (size_t i = 0; i < all->rows.activities_added_len; i++)
        n += all->rows.activities_added[i].try_number > 1;
    return n;
}

/* A row to remove: of the tries up to the last one. place: that of the removal in the batches, from 1; 0: a
 * later try takes its place. */
struct removal {
    thole_slice instance;
    uint64_t execution, activity_id;
    uint32_t last_try, place;
};

static struct removal removal_of(const struct batch_activity *row, uint32_t last_try, size_t place)
{
    return (struct removal){row->instance, row->execution, row->activity_id, last_try, (uint32_t)place};
}

/* One statement, so that all rows are locked in the order of their keys. */
static void send_activities_removed(struct postgres *pg, const struct gathered *all, size_t later_tries)
{
    const struct batch *const rows = &all->rows;
    struct removal *const removals =
        memory_array(rows->activities_removed_len + later_tries, sizeof *removals);
    size_t n = 0;
    for (size_t i = 0; i < rows->activities_removed_len; i++) {
        const struct batch_activity *const row = &rows->activities_removed[i];
        removals[n++] = removal_of(row, row->try_number == 0 ? INT32_MAX : row->try_number, i + 1);
    }
    for (size_t i = 0; later_tries > 0 && i < rows->activities_added_len; i++)
        if (rows->activities_added[i].try_number > 1)
            removals[n++] =
                removal_of(&rows->activities_added[i], rows->activities_added[i].try_number - 1, 0);
    send_ids(pg, &removals->instance, &removals->execution, &removals->activity_id, sizeof *removals, n);
    call_int4_array(pg, &removals->last_try, sizeof *removals, n);
    call_int4_array(pg, &removals->place, sizeof *removals, n);
    call_send(pg, STATEMENT_ACTIVITIES_REMOVE);
    free(removals);
}

size_t projector_send_activities(struct postgres *pg, const struct gathered *all)
{
    size_t removals = 0;
    size_t const later_tries = count_later_tries(all);
    if (all->rows.activities_added_len > later_tries)
        send_activities_added(pg, all, false);
    if (all->rows.activities_removed_len > 0 || later_tries > 0) {
        removals = call_sent(pg);
        send_activities_removed(pg, all, later_tries);
    }
    if (later_tries > 0)
        send_activities_added(pg, all, true);
    return removals;
}

/* Sets `held` of the removed rows that a worker had, by their places over all batches. */
static void read_held(const struct postgres *pg, size_t removals, struct batch *const *batches, size_t n)
{
    size_t const rows = call_rows(pg, removals);
    for (size_t row = 0; row < rows; row++) {
        uint64_t place = call_cell_int8(pg, removals, row, 0);
        size_t i = 0;
        while (i < n && place > batches[i]->activities_removed_len)
            place -= batches[i++]->activities_removed_len;
        if (i < n && place > 0)
            batches[i]->activities_removed[place - 1].held = true;
    }
}

/* Removals first: a timer that was replaced may have been removed before. */
void projector_send_timers(struct postgres *pg, const struct gathered *all)
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
void projector_send_quarantine(struct postgres *pg, const struct gathered *all)
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

static void send_instance_rows(struct postgres *pg, const struct instance_row *rows, size_t n)
{
    const struct batch_instance *const first = &rows->row;
    call_int4_array(pg, &rows->partition, sizeof *rows, n);
    call_text_array(pg, &first->instance, sizeof *rows, n);
    call_text_array(pg, &first->orchestration, sizeof *rows, n);
    call_int8_array(pg, &first->execution, sizeof *rows, n);
    call_int4_array(pg, &first->status, sizeof *rows, n);
    call_int8_array(pg, &first->created_ms, sizeof *rows, n);
    call_int8_array(pg, &first->updated_ms, sizeof *rows, n);
    call_readable_array(pg, &first->detail, sizeof *rows, n);
    call_int8_array(pg, &first->turns, sizeof *rows, n);
    call_int8_array(pg, &first->history_seq, sizeof *rows, n);
    call_int4_array(pg, &first->version, sizeof *rows, n);
    call_bool_array(pg, &first->custom_status_set, sizeof *rows, n);
    call_bytes_array(pg, &first->custom_status, sizeof *rows, n);
    call_text_array(pg, &first->parent, sizeof *rows, n);
    call_int4_array(pg, &first->blocked, sizeof *rows, n);
    call_send(pg, STATEMENT_INSTANCES);
}

static void send_execution_rows(struct postgres *pg, const struct execution_row *rows, size_t n)
{
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

/* Rows of instances, in order, and a number for each: rows with greater numbers stay. */
static void send_deleted(struct postgres *pg, enum statement statement, const thole_slice *instance,
                         const uint64_t *numbers, size_t stride, size_t n)
{
    call_text_array(pg, instance, stride, n);
    call_int8_array(pg, numbers, stride, n);
    call_send(pg, statement);
}

/* Removes what is not newer than the removal. */
static void send_instances_removed(struct postgres *pg, const struct batch_instance *rows,
                                   const uint32_t *order, size_t n, bool instances, bool executions)
{
    struct batch_instance *const removed = memory_array(n, sizeof *removed);
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[order[i]].removed)
            removed[len++] = rows[order[i]];
    if (len > 0 && instances)
        send_deleted(pg, STATEMENT_INSTANCES_DELETED, &removed->instance, &removed->history_seq,
                     sizeof *removed, len);
    if (len > 0 && executions)
        send_deleted(pg, STATEMENT_EXECUTIONS_DELETED, &removed->instance, &removed->history_seq,
                     sizeof *removed, len);
    free(removed);
}

void projector_send_instances(struct postgres *pg, const struct batch_instance *rows,
                              const uint32_t *partitions, size_t n, bool instances, bool executions)
{
    if (n == 0)
        return;
    uint32_t *const order = row_order(&rows->instance, &rows->execution, &rows->history_seq, sizeof *rows, n);
    struct instance_row *const merged = memory_array(n, sizeof *merged);
    struct execution_row *const merged_executions = memory_array(n, sizeof *merged_executions);
    size_t const instances_len = instances ? instance_rows_merge(rows, partitions, order, n, merged) : 0;
    size_t const executions_len =
        executions ? execution_rows_merge(rows, partitions, order, n, merged_executions) : 0;
    call_order(pg, NULL);
    send_instances_removed(pg, rows, order, n, instances, executions);
    if (instances_len > 0)
        send_instance_rows(pg, merged, instances_len);
    if (executions_len > 0)
        send_execution_rows(pg, merged_executions, executions_len);
    free(merged_executions);
    free(merged);
    free(order);
}

static void send_pruned(struct postgres *pg, const struct batch_deletion *rows, size_t n)
{
    size_t const stride = sizeof *rows;
    call_text_array(pg, &rows->instance, stride, n);
    call_int8_array(pg, &rows->pruned.above, stride, n);
    call_int8_array(pg, &rows->pruned.upto, stride, n);
    call_send(pg, STATEMENT_EXECUTIONS_PRUNED);
}

static void projector_apply_send_deletes(struct postgres *pg, enum deletes deletes,
                                         const struct batch_deletion *rows, size_t n)
{
    static const enum statement statements[DELETES_PRUNED] = {
        [DELETES_ACTIVITIES] = STATEMENT_ACTIVITIES_DELETED,
        [DELETES_TIMERS] = STATEMENT_TIMERS_DELETED,
        [DELETES_QUARANTINE] = STATEMENT_QUARANTINE_DELETED,
        [DELETES_INSTANCES] = STATEMENT_INSTANCES_DELETED,
        [DELETES_EXECUTIONS] = STATEMENT_EXECUTIONS_DELETED};
    bool const by_record = deletes == DELETES_INSTANCES || deletes == DELETES_EXECUTIONS;
    if (deletes == DELETES_PRUNED)
        send_pruned(pg, rows, n);
    else
        send_deleted(pg, statements[deletes], &rows->instance,
                     by_record ? &rows->history_seq : &rows->execution, sizeof *rows, n);
}

/* The order holds for the statements that follow. */
static void order_deletions(struct postgres *pg, const struct batch_deletion *rows, size_t n)
{
    call_order(pg, row_order(&rows->instance, &rows->execution, &rows->history_seq, sizeof *rows, n));
}

void projector_send_deletes(struct postgres *pg, enum deletes deletes, const struct batch_deletion *rows,
                            size_t n)
{
    if (n == 0)
        return;
    order_deletions(pg, rows, n);
    projector_apply_send_deletes(pg, deletes, rows, n);
}

static void send_deletions(struct postgres *pg, const struct gathered *all)
{
    if (all->rows.deletions_len == 0)
        return;
    order_deletions(pg, all->rows.deletions, all->rows.deletions_len);
    for (enum deletes deletes = 0; deletes < DELETES; deletes++)
        projector_apply_send_deletes(pg, deletes, all->rows.deletions, all->rows.deletions_len);
}

struct fence {
    uint32_t partition;
    uint64_t epoch;
    struct rows_state follows;
    struct projected to;
};

static int compare_fences(const void *left, const void *right)
{
    const struct fence *const a = left, *const b = right;
    return (a->partition > b->partition) - (a->partition < b->partition);
}

void projector_send_fence(struct postgres *pg, struct batch *const *batches, size_t n)
{
    struct fence *const fences = memory_array(n, sizeof *fences);
    for (size_t i = 0; i < n; i++)
        fences[i] = (struct fence){batches[i]->partition, batches[i]->epoch, batches[i]->follows,
                                   batches[i]->projected};
    qsort(fences, n, sizeof *fences, compare_fences);
    projector_send_rows(pg, &fences->partition, &fences->epoch, &fences->follows, sizeof *fences, n);
    call_int8_array(pg, &fences->to.seq, sizeof *fences, n);
    call_int8_array(pg, &fences->to.mark, sizeof *fences, n);
    call_send(pg, STATEMENT_PARTITIONS_MOVE);
    free(fences);
}

thole_status projector_fence_failed(struct postgres *pg, struct batch *const *batches, size_t n,
                                    thole_error *reterr)
{
    const struct batch *const first = batches[0];
    struct rows_look look = {.partition = first->partition, .epoch = first->epoch, .rows = first->follows};
    if (n == 1) {
        THOLE_TRY(projector_store_look(pg, &look, 1, reterr));
        THOLE_TRY(projector_store_found(&look, reterr));
    }
    return projector_fenced(first->partition, first->epoch, reterr);
}

/* ---- a transaction ---- */

static thole_status projector_apply_check_rows(const struct gathered *all, uint32_t first_partition,
                                               thole_error *reterr)
{
#define FITS(kind) &&all->rows.kind##_len <= BATCH_ROWS_MAX
    if (true EACH_KIND(FITS))
        return THOLE_OK;
#undef FITS
    return thole_fail(reterr, THOLE_INVALID, "partition %u: a batch of more than %d rows of a kind",
                      first_partition, BATCH_ROWS_MAX);
}

thole_status projector_check_partitions(const struct postgres *pg, struct batch *const *batches, size_t n,
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

static thole_status projector_apply_apply(struct postgres *pg, const struct gathered *all,
                                          struct batch *const *batches, size_t n, thole_error *reterr)
{
    bool durable = false;
    for (size_t i = 0; i < n; i++)
        durable |= batches[i]->durable;
    if (durable)
        projector_set(pg, "synchronous_commit", "on");
    projector_send_fence(pg, batches, n); /* first: if it fails, no later statement is executed */
    send_deletions(pg, all);
    size_t const removals = projector_send_activities(pg, all);
    projector_send_timers(pg, all);
    projector_send_quarantine(pg, all);
    projector_send_instances(pg, all->rows.instances, all->instances_p, all->rows.instances_len, true, true);
    size_t const counts = aside_send_clear(pg, batches, n);
    THOLE_TRY(call_run(pg, reterr));
    if (counts > 0)
        aside_keep_counts_of(pg, batches, n, counts);
    if (all->rows.activities_removed_len > 0)
        read_held(pg, removals, batches, n);
    return THOLE_OK;
}

thole_status projector_store_apply(struct postgres *pg, struct batch *const *batches, size_t n,
                                   thole_error *reterr)
{
    struct gathered all;
    assert(n > 0 && !pg->in_transaction); /* must not join an open transaction */
    call_begin(pg, "projecting a batch");
    THOLE_TRY(projector_check_partitions(pg, batches, n, reterr));
    projector_apply_count(&all, batches, n);
    THOLE_TRY(projector_apply_check_rows(&all, batches[0]->partition, reterr));
    projector_apply_gather(&all, batches, n);
    thole_status const status = projector_apply_apply(pg, &all, batches, n, reterr);
    gathered_release(&all);
    return status == THOLE_FENCED ? projector_fence_failed(pg, batches, n, reterr) : status;
}
