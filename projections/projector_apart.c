/*
 * A batch with rows that Postgres refuses for their contents. Its rows are written in ever smaller groups,
 * each after a savepoint, until the refused ones are known: they are listed in set_aside, in the transaction
 * that writes the others and moves the watermark.
 *
 * The row is at fault only if the table takes another row, with a key that no row has: else the database is
 * broken, and the partition waits until a user has repaired it.
 */
#include "memory.h"
#include "projector_parts.h"
#include "projector_units.h"
#include "thole/client.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- a group of units ---- */

struct refused { /* a unit, and why */
    const struct unit *unit;
    struct call_refusal why;
};

struct apart {
    struct postgres *pg;
    struct batch *batch;
    struct units units;
    uint32_t *partitions; /* the batch's, as often as a kind may have rows */
    /* Of the group at hand. */
    struct gathered part;
    struct batch_deletion *deletes[DELETES];
    size_t deletes_len[DELETES];
    struct batch_instance *executions;
    size_t executions_len;
    size_t *removed; /* which ones part.rows.activities_removed are in the batch */
    /* The refused rows. */
    struct refused *refused;
    size_t refused_len;
    bool sound[UNIT_TABLES]; /* the table takes other rows */
};

static void apart_init(struct apart *a)
{
    const struct batch *const batch = a->batch;
    struct batch *const rows = &a->part.rows;
    a->units.items = memory_array(units_most(batch), sizeof *a->units.items);
    units_of_batch(&a->units, batch);
    qsort(a->units.items, a->units.len, sizeof *a->units.items, units_compare);
    a->refused = memory_array(SET_ASIDE_MAX, sizeof *a->refused);
    a->partitions = memory_array(a->units.len, sizeof *a->partitions);
    for (size_t i = 0; i < a->units.len; i++)
        a->partitions[i] = batch->partition;
#define MAKE(kind) rows->kind = memory_array(batch->kind##_len, sizeof *rows->kind);
    EACH_KIND(MAKE)
#undef MAKE
#define SHARE(kind) a->part.kind##_p = a->partitions;
    EACH_ADDED(SHARE)
#undef SHARE
    for (size_t i = 0; i < DELETES; i++)
        a->deletes[i] = memory_array(batch->deletions_len, sizeof *a->deletes[i]);
    a->executions = memory_array(batch->instances_len, sizeof *a->executions);
    a->removed = memory_array(batch->activities_removed_len, sizeof *a->removed);
}

static void apart_release(struct apart *a)
{
#define FREE(kind) free(a->part.rows.kind);
    EACH_KIND(FREE)
#undef FREE
    for (size_t i = 0; i < DELETES; i++)
        free(a->deletes[i]);
    free(a->removed);
    free(a->executions);
    free(a->partitions);
    free(a->refused);
    free(a->units.items);
}

static void apart_take_unit(struct apart *a, const struct unit *unit)
{
    const struct batch *const from = a->batch;
    struct batch *const to = &a->part.rows;
    size_t const i = unit->index;
#define TAKE(kind) to->kind[to->kind##_len++] = from->kind[i]
    switch (unit->kind) {
    case UNIT_ADD_FIRST:
    case UNIT_ADD_LATER: TAKE(activities_added); break;
    case UNIT_REMOVE_ACTIVITY:
        a->removed[to->activities_removed_len] = i;
        TAKE(activities_removed);
        break;
    case UNIT_REMOVE_TIMER: TAKE(timers_removed); break;
    case UNIT_ADD_TIMER: TAKE(timers_added); break;
    case UNIT_REMOVE_QUARANTINE: TAKE(quarantine_removed); break;
    case UNIT_ADD_QUARANTINE: TAKE(quarantine_added); break;
    case UNIT_INSTANCE: TAKE(instances); break;
    case UNIT_EXECUTION: a->executions[a->executions_len++] = from->instances[i]; break;
    default: {
        size_t const deletes = unit->kind - UNIT_DELETES;
        assert(deletes < DELETES);
        a->deletes[deletes][a->deletes_len[deletes]++] = from->deletions[i];
        break;
    }
    }
#undef TAKE
}

static void apart_take_group(struct apart *a, size_t first, size_t len)
{
#define EMPTY(kind) a->part.rows.kind##_len = 0;
    EACH_KIND(EMPTY)
#undef EMPTY
    memset(a->deletes_len, 0, sizeof a->deletes_len);
    a->executions_len = 0;
    for (size_t i = 0; i < len; i++)
        apart_take_unit(a, &a->units.items[first + i]);
}

static void apart_note_held(const struct apart *a, size_t place)
{
    for (size_t row = 0; row < call_rows(a->pg, place); row++) {
        uint64_t const at = call_cell_int8(a->pg, place, row, 0); /* from 1; 0: no worker had it */
        if (at > 0 && at <= a->part.rows.activities_removed_len)
            a->batch->activities_removed[a->removed[at - 1]].held = true;
    }
}

/* Nothing is changed unless it is THOLE_OK, and apart_undo_group() was called. */
static thole_status apart_try_group(struct apart *a, size_t first, size_t len, thole_error *reterr)
{
    struct postgres *const pg = a->pg;
    apart_take_group(a, first, len);
    call_begin(pg, "projecting a part of a batch");
    call_send(pg, STATEMENT_SAVEPOINT);
    for (enum deletes deletes = 0; deletes < DELETES; deletes++)
        projector_send_deletes(pg, deletes, a->deletes[deletes], a->deletes_len[deletes]);
    size_t const removals = projector_send_activities(pg, &a->part);
    projector_send_timers(pg, &a->part);
    projector_send_quarantine(pg, &a->part);
    projector_send_instances(pg, a->part.rows.instances, a->partitions, a->part.rows.instances_len, true,
                             false);
    projector_send_instances(pg, a->executions, a->partitions, a->executions_len, false, true);
    call_send(pg, STATEMENT_SAVEPOINT_RELEASE);
    THOLE_TRY(call_run(pg, reterr));
    if (a->part.rows.activities_removed_len > 0)
        apart_note_held(a, removals);
    return THOLE_OK;
}

/* After a call that failed. */
static thole_status apart_undo_group(struct apart *a, thole_error *reterr)
{
    if (a->pg->failed != THOLE_OK) /* nothing of it was sent */
        return THOLE_OK;
    call_begin(a->pg, "projecting a part of a batch");
    call_send(a->pg, STATEMENT_SAVEPOINT_UNDO);
    call_send(a->pg, STATEMENT_SAVEPOINT_RELEASE);
    return call_run(a->pg, reterr);
}

/* ---- one that is refused ---- */

/* A row of nobody is written, removed, and undone. */
static void apart_send_probe(struct postgres *pg, uint32_t partition, enum unit_table table)
{
    static const enum deletes removals[UNIT_TABLES] = {DELETES_ACTIVITIES, DELETES_TIMERS, DELETES_QUARANTINE,
                                                       DELETES_INSTANCES, DELETES_EXECUTIONS};
    uint32_t partitions[] = {partition};
    thole_slice const none = THOLE_STR(""), name = THOLE_STR("probe"), instance = THOLE_STR("thole probe");
    struct batch_activity activity = {.instance = instance,
                                      .execution = 1,
                                      .activity_id = 1,
                                      .queue = name,
                                      .activity = name,
                                      .try_number = 1,
                                      .details = none,
                                      .digest = none};
    struct batch_timer timer = {.instance = instance, .execution = 1, .timer_id = 1, .due_ms = 1};
    struct batch_quarantine quarantine = {.instance = instance,
                                          .execution = 1,
                                          .activity_id = 1,
                                          .queue = name,
                                          .activity = name,
                                          .try_number = 1,
                                          .lost = 1,
                                          .worker = name,
                                          .reason = none,
                                          .since_ms = 1,
                                          .until_ms = 1};
    struct batch_instance const row = {.instance = instance,
                                       .orchestration = name,
                                       .version = 1,
                                       .execution = 1,
                                       .status = THOLE_INSTANCE_CONTINUED_AS_NEW,
                                       .created_ms = 1,
                                       .updated_ms = 1,
                                       .detail = none,
                                       .turns = 1,
                                       .history_seq = 1,
                                       .custom_status = none,
                                       .parent = none};
    struct batch_deletion const gone = {.instance = instance, .execution = 1, .history_seq = 1};
    struct gathered const activities = {.rows = {.activities_added = &activity, .activities_added_len = 1},
                                        .activities_added_p = partitions};
    struct gathered const timers = {.rows = {.timers_added = &timer, .timers_added_len = 1},
                                    .timers_added_p = partitions};
    struct gathered const poisoned = {.rows = {.quarantine_added = &quarantine, .quarantine_added_len = 1},
                                      .quarantine_added_p = partitions};
    switch (table) {
    case OF_ACTIVITIES: (void)projector_send_activities(pg, &activities); break;
    case OF_TIMERS: projector_send_timers(pg, &timers); break;
    case OF_QUARANTINE: projector_send_quarantine(pg, &poisoned); break;
    case OF_INSTANCES:
    case OF_EXECUTIONS:
    default:
        projector_send_instances(pg, &row, partitions, 1, table == OF_INSTANCES, table == OF_EXECUTIONS);
        break;
    }
    projector_send_deletes(pg, removals[table], &gone, 1);
}

thole_status projector_check_sound(struct postgres *pg, uint32_t partition, enum unit_table table,
                                   thole_error *reterr)
{
    thole_error err = {.status = THOLE_OK};
    call_begin(pg, "writing a row to see whether its table takes any");
    call_send(pg, STATEMENT_SAVEPOINT);
    apart_send_probe(pg, partition, table);
    call_send(pg, STATEMENT_SAVEPOINT_UNDO);
    call_send(pg, STATEMENT_SAVEPOINT_RELEASE);
    thole_status const status = call_run(pg, &err);
    if (status == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, status, "table %s takes no row: somebody has changed it; %s",
                      unit_table_names[table], err.text);
}

/* The try before it has ended. */
static thole_status apart_remove_tries(struct apart *a, const struct unit *unit, thole_error *reterr)
{
    struct batch_activity row = a->batch->activities_added[unit->index];
    struct gathered const before = {.rows = {.activities_removed = &row, .activities_removed_len = 1}};
    row.try_number--;
    call_begin(a->pg, "removing the row of a try before");
    call_send(a->pg, STATEMENT_SAVEPOINT);
    (void)projector_send_activities(a->pg, &before);
    call_send(a->pg, STATEMENT_SAVEPOINT_RELEASE);
    thole_status const status = call_run(a->pg, reterr);
    return aside_is_of_data(status) ? apart_undo_group(a, reterr) : status;
}

static thole_status apart_refuse_unit(struct apart *a, const struct unit *unit, const thole_error *said,
                                      thole_error *reterr)
{
    enum unit_table const table = unit_rules[unit->kind].table;
    struct call_refusal why = a->pg->refusal;
    if (said->status == THOLE_LIMIT)
        (void)snprintf(why.reason, sizeof why.reason, "%.*s", (int)sizeof why.reason - 1, said->text);
    if (projector_store_set_aside(a->pg, a->batch->partition) + a->refused_len >= SET_ASIDE_MAX)
        return thole_fail(
            reterr, THOLE_INVALID,
            "%d rows of partition %u are set aside already, and no more are: see `thole doctor`; %s",
            (int)SET_ASIDE_MAX, a->batch->partition, said->text);
    if (!a->sound[table])
        THOLE_TRY(projector_check_sound(a->pg, a->batch->partition, table, reterr));
    a->sound[table] = true;
    THOLE_TRY(aside_find_columns(a->pg, table, &why, reterr));
    if (unit->kind == UNIT_ADD_LATER)
        THOLE_TRY(apart_remove_tries(a, unit, reterr));
    a->refused[a->refused_len++] = (struct refused){unit, why};
    return THOLE_OK;
}

/* Halves, down to one. */
static thole_status apart_write_units(struct apart *a, size_t first, size_t len, thole_error *reterr)
{
    thole_error err = {.status = THOLE_OK};
    thole_status const status = len == 0 ? THOLE_OK : apart_try_group(a, first, len, &err);
    if (!aside_is_of_data(status)) {
        if (status != THOLE_OK && reterr != NULL)
            *reterr = err;
        return status;
    }
    THOLE_TRY(apart_undo_group(a, reterr));
    if (len == 1)
        return apart_refuse_unit(a, &a->units.items[first], &err, reterr);
    THOLE_TRY(apart_write_units(a, first, len / 2, reterr));
    return apart_write_units(a, first + len / 2, len - len / 2, reterr);
}

/* ---- the transaction ---- */

static void apart_send_refused(struct apart *a)
{
    struct aside_row *const rows = memory_array(a->refused_len, sizeof *rows);
    for (size_t i = 0; i < a->refused_len; i++) {
        const struct unit *const unit = a->refused[i].unit;
        rows[i] = aside_row_of(unit->instance, unit_rules[unit->kind].table, &a->refused[i].why);
        rows[i].execution = unit->execution;
        rows[i].id = unit->id;
        rows[i].removal = unit->removal;
    }
    aside_send_add(a->pg, a->batch->partition, a->batch->projected.seq, rows, a->refused_len);
    free(rows);
}

static bool apart_was_refused(const struct apart *a, const struct unit *unit)
{
    bool found = false;
    for (size_t i = 0; i < a->refused_len && !found; i++)
        found = a->refused[i].unit == unit;
    return found;
}

static void apart_send_written(struct apart *a)
{
    struct cleared *const keys = memory_array(a->units.len, sizeof *keys);
    size_t n = 0;
    for (size_t i = 0; i < a->units.len; i++)
        if (!apart_was_refused(a, &a->units.items[i]))
            keys[n++] = aside_cleared_by(&a->units.items[i]);
    if (n > 0)
        aside_send_cleared(a->pg, keys, n);
    free(keys);
}

static thole_status apart_begin(struct apart *a, thole_error *reterr)
{
    struct postgres *const pg = a->pg;
    call_begin(pg, "projecting a batch in parts");
    THOLE_TRY(projector_check_partitions(pg, &a->batch, 1, reterr));
    call_send(pg, STATEMENT_BEGIN);
    if (a->batch->durable)
        projector_set(pg, "synchronous_commit", "on");
    projector_send_fence(pg, &a->batch, 1);
    thole_status const status = call_run(pg, reterr);
    pg->in_transaction = true;
    return status;
}

/* Those that were set aside before are there no more, if they are written now. */
static thole_status apart_end(struct apart *a, thole_error *reterr)
{
    struct postgres *const pg = a->pg;
    call_begin(pg, "setting rows aside");
    if (projector_store_set_aside(pg, a->batch->partition) > 0)
        apart_send_written(a);
    if (a->refused_len > 0)
        apart_send_refused(a);
    size_t const counted = call_sent(pg);
    aside_send_counts(pg, &a->batch->partition, 1);
    THOLE_TRY(call_run(pg, reterr));
    uint64_t const rows = call_rows(pg, counted) == 0 ? 0 : call_cell_int8(pg, counted, 0, 1);
    THOLE_TRY(call_commit(pg, "projecting a batch in parts", reterr));
    aside_keep_count(pg, a->batch->partition, rows);
    return THOLE_OK;
}

static void apart_tell(const struct apart *a, struct projector_refused *ret)
{
    *ret = (struct projector_refused){.rows = a->refused_len};
    if (a->refused_len == 0)
        return;
    const struct refused *const first = a->refused;
    (void)snprintf(ret->first, sizeof ret->first, "%s of %.*s, column %s: %s",
                   unit_table_names[unit_rules[first->unit->kind].table], THOLE_FMT(first->unit->instance),
                   first->why.column[0] != '\0' ? first->why.column : "not known", first->why.reason);
}

thole_status projector_store_apply_apart(struct postgres *pg, struct batch *batch,
                                         struct projector_refused *ret, thole_error *reterr)
{
    struct apart a = {.pg = pg, .batch = batch};
    assert(!pg->in_transaction);
    apart_init(&a);
    thole_status const begun = apart_begin(&a, reterr);
    thole_status status = begun;
    if (status == THOLE_OK)
        status = apart_write_units(&a, 0, a.units.len, reterr);
    if (status == THOLE_OK)
        status = apart_end(&a, reterr);
    call_rollback(pg, "projecting a batch in parts");
    if (status == THOLE_OK)
        apart_tell(&a, ret);
    apart_release(&a);
    if (begun == THOLE_FENCED)
        return projector_fence_failed(pg, &batch, 1, reterr);
    return status == THOLE_FENCED ? projector_fenced(batch->partition, batch->epoch, reterr) : status;
}
