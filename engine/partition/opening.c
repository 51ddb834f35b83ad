/* Opening a partition, behind the EpochOpened: bring the projection up to it, and serve. */
#include "machine.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RESULTS_LOOK = 20000 /* messages of the inbox: a fraction of a second, however many wait */ };

/* --- the projection up to here ------------------------------------------------------------------- */

/* The log lost its tail, or one of the two came from a backup: rows from nowhere. */
static void reset(struct partition *p)
{
    p->phase = PHASE_RESET;
    env_emit(&p->env, PARTITION_OUT_STORE_RESET);
}

/* From behind what the rows have, or from an earlier deletion whose records may still be there. */
static void redo(struct partition *p, struct projected projected)
{
    uint64_t const owed = p->projector.published + 1;
    p->projector.watermark = projected;
    p->projector.watermark_sent = p->projector.durable = projected.seq;
    p->redo_unproven = projected.seq > 0;
    p->redo_next = projected.seq > 0 ? projected.seq : 1;
    if (owed < p->redo_next)
        p->redo_next = owed;
    p->phase = PHASE_REDO;
    opening_redo_more(p);
}

void opening_store(struct partition *p, const struct partition_in *in)
{
    if (p->phase != PHASE_STORE)
        return;
    if (in->epoch > log_facts(p->log)->epoch) {
        p->epoch_registered = in->epoch;
        partition_drop(p, "the database has a newer epoch of the partition", true);
    } else if (in->projected.seq > p->tail_last) {
        reset(p);
    } else {
        redo(p, in->projected);
    }
}

void opening_reset(struct partition *p)
{
    if (p->phase != PHASE_RESET)
        return;
    redo(p, (struct projected){0});
}

/*
 * Whoever has done an activity has deleted its row, and perhaps nobody has read the result yet: then the row
 * would come back, and somebody do it again. What is stored after this look is done again all the same.
 */
static void ask_for_results(struct partition *p)
{
    p->redo_reading = true;
    struct partition_out *out = env_emit(&p->env, PARTITION_OUT_READ_RESULTS);
    struct seen const seen = progress_seen(&p->progress);
    out->from = p->progress.floor + 1;
    out->sequence = seen.sequence;
    out->stored_ns = seen.stored_ns;
    out->count = RESULTS_LOOK;
}

void opening_results(struct partition *p, const struct partition_in *in)
{
    if (p->phase != PHASE_REDO || !p->redo_reading || p->redo.settled)
        return;
    p->redo_reading = false;
    p->redo.settled = true;
    redo_ended(p, in->results, in->results_len);
}

void opening_redo_more(struct partition *p)
{
    bool const in_parts = p->projector.parts_len > 0;
    if (p->phase != PHASE_REDO || p->redo_reading || !(project_idle(p) || in_parts))
        return;
    if (p->redo_next < log_facts(p->log)->base) {
        p->redo_reading = true;
        uint64_t const last = p->redo_next + p->env.options.log_chunk - 1;
        struct partition_out *out = env_emit(&p->env, PARTITION_OUT_READ_LOG);
        out->from = p->redo_next;
        out->to = last < log_facts(p->log)->base ? last : log_facts(p->log)->base - 1;
        p->redo_next = out->to + 1;
        return;
    }
    if (p->redo_unproven && p->projector.watermark.mark != 0) { /* nor is there one behind it */
        reset(p);
        return;
    }
    if (in_parts) {
        p->projector.parts_len = 0; /* its end was never written: it never happened */
        project_pump(p);
        return;
    }
    if (p->redo.open_len > 0 && !p->redo.settled) {
        ask_for_results(p);
        return;
    }
    if (redo_finish(p)) {
        project_pump(p);
        return;
    }
    if (p->redo.done.seq > p->projector.watermark.seq)
        p->projector.watermark = p->redo.done;
    redo_release(&p->redo);
    p->phase = PHASE_CRASHES; /* before any code runs */
    env_emit(&p->env, PARTITION_OUT_READ_CRASHES);
}

/*
 * Are the rows those of this log? They are if the record that they end with is there. A log that lost its
 * tail may have overtaken them, with records of its own, while the database was away.
 */
static bool prove(struct partition *p, const struct log_record *record)
{
    struct projected *known = &p->projector.watermark;
    uint64_t const mark = record->sequence == known->seq ? projected_mark(record->bytes) : 0;
    bool const same = known->mark == 0 || known->mark == mark;
    known->mark = mark;
    p->redo_unproven = false;
    return same;
}

/* A turn whose end was never written has asked for this all the same, and will again. */
static void owed_by(struct partition *p, const struct record *record, uint64_t sequence)
{
    const struct turn *turn = &record->turn;
    struct executions pruned = {0, 0};
    if (record->kind == RECORD_DELETED)
        deletion_owed(p, record->deletion.instance, pruned, sequence);
    for (size_t i = 0; record->kind == RECORD_TURN && i < turn->events_len; i++) {
        struct executions const more = deletion_pruned(&turn->events[i]);
        if (more.upto > pruned.upto)
            pruned = more;
    }
    if (pruned.upto > 0)
        deletion_owed(p, turn->instance, pruned, sequence);
}

/* Rows are there already: of what stands up to them only deletions matter. */
static void find_owed(struct partition *p, const struct log_record *stored)
{
    struct arena arena;
    struct record record;
    arena_init(&arena, RECORD_BYTES_MAX);
    thole_status const status = record_decode(stored->bytes, &arena, &record, NULL);
    if (status == THOLE_NOMEM)
        env_no_memory(&p->env);
    else if (status == THOLE_OK && stored->sequence > p->projector.published)
        owed_by(p, &record, stored->sequence);
    arena_release(&arena);
}

/* False: the rows are of another log, and made anew. */
static bool redo_one(struct partition *p, const struct log_record *record)
{
    uint64_t const projected = p->projector.watermark.seq;
    if (p->redo_unproven && record->sequence >= projected && !prove(p, record)) {
        deletion_release(p);
        reset(p);
        return false;
    }
    if (record->sequence > projected)
        fold_record(p, record->bytes, record->sequence, NULL, false);
    else
        find_owed(p, record);
    return true;
}

/* Everything before the EpochOpened counts: what did not has been removed. */
void opening_log(struct partition *p, const struct partition_in *in)
{
    if (p->phase != PHASE_REDO || !p->redo_reading)
        return;
    p->redo_reading = false;
    for (size_t i = 0; i < in->records_len && p->phase == PHASE_REDO; i++)
        if (!redo_one(p, &in->records[i]))
            return;
}

/* --- who lives here ------------------------------------------------------------------------------ */

void opening_live(struct partition *p, const struct partition_in *in)
{
    if (p->phase != PHASE_LIVE) {
        fold_recounted(p, in);
        return;
    }
    for (size_t i = 0; i < in->live_names_len; i++)
        names_add(p, in->live_names[i], in->live_counts[i]);
    p->open_activities = in->live_activities;
    p->phase = PHASE_TIMERS;
    timer_book_reset(&p->timers);
    /* Perhaps this node can run what its predecessor could not; what has continued as new goes on. */
    for (size_t i = 0; i < in->blocked_len; i++) {
        struct slot *slot = intake_slot(p, in->blocked[i].instance);
        if (slot != NULL)
            slot->retry = true;
    }
    timer_book_read(p);
}

void opening_timers(struct partition *p)
{
    if (p->phase != PHASE_TIMERS)
        return;
    p->phase = PHASE_SERVING;
    p->busy_ms = p->env.now_ms;
    env_emit(&p->env, PARTITION_OUT_OPENED)->epoch = log_facts(p->log)->epoch;
    struct seen const seen = progress_seen(&p->progress);
    struct partition_out *out = env_emit(&p->env, PARTITION_OUT_READ_INBOX);
    out->from = p->progress.floor + 1;
    out->sequence = seen.sequence;
    out->stored_ns = seen.stored_ns;
}
