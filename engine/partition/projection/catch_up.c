/*
 * After the EpochOpened is stored, the rows are brought up to it. All records before it count: void ones have
 * been removed.
 */
#include "projection_state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RESULTS_LOOK = 20000 /* messages of the inbox: bounds the time to a fraction of a second */ };

/* --- the projection up to here ------------------------------------------------------------------- */

/* The rows are not from this log: the log lost its tail, or one of the two was restored from a backup. Or they
 * are signed with another key than the namespace has: a worker that had one may have deleted it, and its result is refused.
 * All that is owed is found again when the log is read from the beginning. */
static void catch_up_reset(struct projection *p, enum rows_fault fault)
{
    removals_release(&p->removals);
    emissions_release(&p->emissions); /* none was sent: emissions_begin() */
    projection_become(p, PROJECTION_RESETTING);
    env_emit(p->env, PARTITION_OUT_STORE_RESET)->store_reset.fault = fault;
}

/* Reads from after the watermark, or from an earlier record: that of a deletion whose records may still
 * exist, or whose events may not be stored. */
static bool catch_up_more(struct projection *p);

static void catch_up_redo(struct projection *p, const struct rows_state *rows)
{
    uint64_t const owed = p->projector.published + 1;
    struct projected const projected = rows->projected;
    p->projector.rows = *rows;
    p->projector.watermark = projected;
    p->projector.watermark_sent = p->projector.durable = projected.seq;
    p->redo_unproven = projected.seq > 0;
    p->redo_next = projected.seq > 0 ? projected.seq : 1;
    if (owed < p->redo_next)
        p->redo_next = owed;
    projection_become(p, PROJECTION_CATCHING_UP);
    (void)catch_up_more(p);
}

void projection_open(struct projection *p, const struct projection_start *start)
{
    assert(start->epoch > 0 && start->base > start->tail_last && p->projector.first == NULL);
    p->start = *start;
    p->projector.published = start->published;
    projection_become(p, PROJECTION_REGISTERING);
    env_emit(p->env, PARTITION_OUT_STORE_OPEN)->store_open.epoch = start->epoch;
}

/* Whether deletions after the watermark are missing from the log, since the watermark was put back further
 * than deletions are kept: nothing would remove their rows. Such rows may exist while it is 0, as it moves
 * with a later batch than the rows. */
static bool lacks_deletions(const struct projection *p, const struct rows_state *rows)
{
    return rows->projected.seq < p->start.deleted;
}

void projection_store_opened(struct projection *p, const struct in_store_opened *in)
{
    if (p->state != PROJECTION_REGISTERING)
        return;
    if (in->epoch > p->start.epoch) {
        p->epoch_known = in->epoch;
        projection_fail(p, "the database has a newer epoch of the partition");
    } else if (in->rows.projected.seq > p->start.tail_last || lacks_deletions(p, &in->rows)) {
        catch_up_reset(p, ROWS_FAULT_OTHER_LOG);
    } else if (in->other_key) {
        catch_up_reset(p, ROWS_FAULT_OTHER_KEY);
    } else {
        catch_up_redo(p, &in->rows);
    }
}

void projection_store_reset(struct projection *p, const struct in_store_reset *in)
{
    if (p->state == PROJECTION_RESETTING)
        catch_up_redo(p, &in->rows);
}

/*
 * A worker that has completed an activity has deleted its row, but its result may still wait in the inbox:
 * then redo would insert the row again, and the activity would run again. A result that is stored after this
 * look does not prevent that.
 */
static void ask_for_results(struct projection *p)
{
    p->redo_reading = true;
    env_emit(p->env, PARTITION_OUT_READ_RESULTS)->read_results =
        (struct out_read_results){p->start.inbox_from, RESULTS_LOOK, p->start.inbox_seen};
}

void projection_results(struct projection *p, const struct in_results *in, const struct progress *inbox)
{
    if (p->state != PROJECTION_CATCHING_UP || !p->redo_reading || p->redo.settled)
        return;
    p->redo_reading = false;
    p->redo.settled = true;
    redo_ended(p, in->results, in->results_len, inbox);
}

/* True: it is to be called again. What it has sent may be done already, and then no answer follows. */
static bool catch_up_more(struct projection *p)
{
    bool const in_parts = p->projector.parts_len > 0;
    if (p->redo_reading || !(projection_idle(p) || in_parts))
        return false;
    if (p->redo_next < p->start.base) {
        p->redo_reading = true;
        uint64_t const last = p->redo_next + p->env->options.log_chunk - 1;
        struct out_read_log *out = &env_emit(p->env, PARTITION_OUT_READ_LOG)->read_log;
        out->from = p->redo_next;
        out->to = last < p->start.base ? last : p->start.base - 1;
        p->redo_next = out->to + 1;
        return false;
    }
    if (p->redo_unproven && p->projector.watermark.mark != 0) { /* nor does a record follow */
        catch_up_reset(p, ROWS_FAULT_OTHER_LOG);
        return false;
    }
    if (in_parts) {
        p->projector.parts_len = 0; /* the turn's last part was never written: the turn does not count */
        (void)project_next(p, true);
        return true;
    }
    if (p->redo.open_len > 0 && !p->redo.settled) {
        ask_for_results(p);
        return false;
    }
    if (p->redo.open_len > 0) {
        redo_finish(p, project_filling(p));
        (void)project_next(p, true);
        return true;
    }
    if (p->redo.done.seq > p->projector.watermark.seq)
        p->projector.watermark = p->redo.done;
    redo_release(&p->redo);
    projection_become(p, PROJECTION_CURRENT);
    emissions_begin(p);
    return false;
}

/*
 * Whether the rows belong to this log: they do if the log has the record of the watermark. A log that lost
 * its tail may have grown beyond the watermark, with other records, while the database was away.
 */
static bool catch_up_prove(struct projection *p, const struct log_record *record)
{
    struct projected *known = &p->projector.watermark;
    uint64_t const mark = record->sequence == known->seq ? projected_mark(record->bytes) : 0;
    bool const same = known->mark == 0 || known->mark == mark;
    known->mark = mark;
    p->redo_unproven = false;
    return same;
}

/* Also for a turn whose last part was never written: the removal will be asked for again. */
static void owed_by(struct projection *p, const struct record *record, uint64_t sequence)
{
    const struct turn *turn = &record->turn;
    struct executions pruned = {0, 0};
    if (record->kind == RECORD_DELETED)
        removals_owe(p, record->deletion.instance, pruned, sequence);
    if (record->kind == RECORD_POSITION && record->folded.len > 0)
        removals_owe_listed(p, &record->folded, sequence);
    for (size_t i = 0; record->kind == RECORD_TURN && i < turn->events_len; i++) {
        struct executions const more = executions_pruned(&turn->events[i]);
        if (more.upto > pruned.upto)
            pruned = more;
    }
    if (pruned.upto > 0)
        removals_owe(p, turn->instance, pruned, sequence);
}

/* A record up to the watermark: its rows are there already, only deletions and CloudEvents matter. */
static void find_owed(struct projection *p, const struct log_record *stored)
{
    struct arena arena;
    struct record record;
    arena_init(&arena, RECORD_BYTES_MAX);
    thole_status const status = record_decode(stored->bytes, &arena, &record, NULL);
    if (status == THOLE_NOMEM) {
        env_no_memory(p->env);
    } else if (status == THOLE_OK && stored->sequence > p->projector.published) {
        owed_by(p, &record, stored->sequence);
        emissions_find(p, &record, stored->sequence);
    }
    arena_release(&arena);
}

/* False: the rows are of another log and are made again. */
static bool redo_one(struct projection *p, const struct log_record *record)
{
    uint64_t const projected = p->projector.watermark.seq;
    struct projection_turns nothing; /* not used: nothing is counted yet */
    if (p->redo_unproven && record->sequence >= projected && !catch_up_prove(p, record)) {
        catch_up_reset(p, ROWS_FAULT_OTHER_LOG);
        return false;
    }
    if (record->sequence > projected)
        projection_add_record(p, record->bytes, record->sequence, NULL, false, &nothing);
    else
        find_owed(p, record);
    return true;
}

/* All records before the EpochOpened count: void ones have been removed. */
void projection_log(struct projection *p, const struct in_log *in)
{
    if (p->state != PROJECTION_CATCHING_UP || !p->redo_reading)
        return;
    p->redo_reading = false;
    for (size_t i = 0; i < in->records_len && p->state == PROJECTION_CATCHING_UP; i++)
        if (!redo_one(p, &in->records[i]))
            return;
}

bool projection_pump(struct projection *p, bool rows)
{
    if (p->state < PROJECTION_CATCHING_UP || p->state == PROJECTION_FAILED)
        return false;
    bool const rows_wait = project_next(p, rows);
    while (p->state == PROJECTION_CATCHING_UP && !p->env->nomem && catch_up_more(p))
        ;
    /* Nothing but an answer asks who opens to go on. */
    assert(p->state != PROJECTION_CATCHING_UP || p->redo_reading || !projection_idle(p) || p->env->nomem);
    return rows_wait;
}
