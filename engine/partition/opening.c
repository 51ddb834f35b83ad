/*
 * Opening a partition: find the tail that counts, remove what does not, fence older owners with EpochOpened,
 * bring the projection up to it, and serve. Starting and recovering are the same path.
 */
#include "log_rule.h"
#include "machine.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    TAIL_COUNT = 2 * PARTITION_WINDOW_MAX,
    RESULTS_LOOK = 20000 /* messages of the inbox: a fraction of a second, however many wait */
};

struct tail {
    struct record *records; /* decoded; kind RECORD_UNKNOWN where that failed */
    uint64_t *voids;
    size_t voids_len;
    struct log_rule rule;
    uint64_t published;
    const struct position *position;
};

static void read_tail(struct partition *p, uint64_t count)
{
    p->phase = PHASE_TAIL;
    p->tail_all = count == 0;
    partition_emit(p, PARTITION_OUT_READ_TAIL)->count = count;
}

void opening_start(struct partition *p)
{
    read_tail(p, TAIL_COUNT);
}

static bool decode_tail(struct partition *p, const struct partition_in *in, struct arena *arena,
                        struct tail *tail)
{
    tail->records = arena_array(arena, in->records_len, sizeof *tail->records);
    tail->voids = arena_array(arena, in->records_len, sizeof *tail->voids);
    if (tail->records == NULL || tail->voids == NULL) {
        partition_no_memory(p);
        return false;
    }
    for (size_t i = 0; i < in->records_len; i++) {
        thole_status const status = record_decode(in->records[i].bytes, arena, &tail->records[i], NULL);
        /* An owner writes one format: behind an EpochOpened that is understood, a newer one is nobody's. */
        if (status == THOLE_UNSUPPORTED && in->records[i].sequence == in->epoch_sequence) {
            partition_drop(p, "the history was written by a newer version of thole", true);
            return false;
        }
        if (status != THOLE_OK)
            tail->records[i] = (struct record){.kind = RECORD_UNKNOWN};
    }
    return true;
}

enum tail_verdict {
    TAIL_FOUND,
    TAIL_READ_ALL,
    TAIL_NO_EPOCH,     /* what stands in the place of the EpochOpened is none: remove it, look again */
    TAIL_INCONSISTENT, /* the log says that more was stored than is there */
    TAIL_OVERTAKEN, /* records of a newer epoch behind it: it is not the last EpochOpened; never remove those
                     */
};

static const struct record *decoded(const struct tail *tail, size_t i)
{
    return tail->records[i].kind == RECORD_UNKNOWN ? NULL : &tail->records[i];
}

/* False: a rival has opened the partition since. */
static bool take_record(struct tail *tail, size_t i, uint64_t sequence, bool *found_position)
{
    const struct record *r = decoded(tail, i);
    enum log_verdict const verdict = log_rule_feed(&tail->rule, r, sequence);
    if (verdict == LOG_VOID || verdict == LOG_UNPROVEN)
        tail->voids[tail->voids_len++] = sequence;
    if (verdict != LOG_COUNTS)
        return verdict != LOG_RIVAL;
    tail->published = r->published; /* it only grows */
    if (r->kind == RECORD_TURN && r->turn.more)
        return true; /* a turn that has no end (yet) moves nothing */
    tail->position = &r->position;
    *found_position = true;
    return true;
}

/* The log rule over the records that were read; the first is the EpochOpened. @p cut: those that follow it
 * were not asked for. (A gap alone does not say so: an earlier owner may have removed void records there.) */
static enum tail_verdict walk_tail(const struct partition_in *in, bool cut, struct tail *tail)
{
    const struct record *opened = &tail->records[0];
    if (in->records_len == 0 || in->records[0].sequence != in->epoch_sequence)
        return TAIL_INCONSISTENT;
    if (opened->kind != RECORD_EPOCH_OPENED)
        return TAIL_NO_EPOCH;
    tail->rule = (struct log_rule){.epoch = opened->epoch, .opened = in->epoch_sequence};
    tail->position = &opened->position;
    tail->published = opened->published;
    for (size_t i = 0; i < in->records_len; i++)
        if (decoded(tail, i) != NULL)
            log_rule_learn(&tail->rule, &tail->records[i]);
    bool found_position = !cut;
    for (size_t i = 1; i < in->records_len; i++)
        if (!take_record(tail, i, in->records[i].sequence, &found_position))
            return TAIL_OVERTAKEN;
    bool const reaches_known = tail->rule.n >= tail->rule.known;
    if (!reaches_known && !cut)
        return TAIL_INCONSISTENT;
    return found_position && reaches_known ? TAIL_FOUND : TAIL_READ_ALL;
}

/* There is no EpochOpened: nothing counts. */
static enum tail_verdict walk_without_epoch(const struct partition_in *in, struct tail *tail)
{
    static const struct position nothing = {0};
    bool found_position = false;
    tail->position = &nothing;
    for (size_t i = 0; i < in->records_len; i++)
        if (!take_record(tail, i, in->records[i].sequence, &found_position))
            return TAIL_OVERTAKEN;
    return TAIL_FOUND;
}

/* The database may know epochs that the log has lost: those must not come again. */
static void open_epoch(struct partition *p)
{
    p->phase = PHASE_EPOCH;
    p->chain.epoch = (p->tail_epoch > p->epoch_registered ? p->tail_epoch : p->epoch_registered) + 1;
    chain_append(p, RECORD_EPOCH_OPENED, NULL, NULL);
}

/*
 * A record is void by what else was read, and reading takes time: an owner that is still alive may have
 * removed records meanwhile (deletion.c). That looks like a gap when the record that attests the deletion was
 * stored behind @p last. So nothing is deleted once the log has gone on.
 */
static void delete_records(struct partition *p, const uint64_t *sequences, size_t n, uint64_t last)
{
    struct partition_out *out = partition_emit(p, PARTITION_OUT_DELETE_RECORDS);
    out->expected_last = last;
    uint64_t *copy = partition_out_numbers(p, n);
    if (copy == NULL)
        return;
    memcpy(copy, sequences, n * sizeof *copy);
    out->sequences = copy;
    out->sequences_len = n;
    p->phase = PHASE_DELETE;
}

/*
 * The inbox went back: it lost its tail, or was made anew. What the position says of its sequences means
 * nothing any more: those that stand there now are new messages, or old ones from before the loss, and nobody
 * can tell. All are read (again); by what they say (request ids, event ids) it is known whether they were
 * incorporated. Unless somebody else has opened the partition since and found another position.
 */
static void forget_position(struct partition *p)
{
    struct seen const seen = progress_seen(&p->progress), gone = p->gone;
    p->gone = (struct seen){0};
    if (gone.sequence > 0 && seen.sequence == gone.sequence && seen.stored_ns == gone.stored_ns)
        progress_release(&p->progress); /* the EpochOpened says so before the first message is read */
}

static void settle_tail(struct partition *p, const struct partition_in *in, struct tail *tail)
{
    bool const cut = !p->tail_all && in->last_sequence >= in->epoch_sequence + 1 + TAIL_COUNT;
    switch (in->epoch_sequence == 0 ? walk_without_epoch(in, tail) : walk_tail(in, cut, tail)) {
    case TAIL_FOUND: break;
    case TAIL_READ_ALL: read_tail(p, 0); return;
    case TAIL_NO_EPOCH:
        p->tail_again = true;
        delete_records(p, &in->epoch_sequence, 1, in->last_sequence);
        return;
    case TAIL_OVERTAKEN:
        partition_drop(p, "a rival opened the partition while its tail was read", true);
        return;
    case TAIL_INCONSISTENT:
        partition_drop(p,
                       "the history stream lacks records that were acknowledged: look at its limits, and for "
                       "a restored backup",
                       true);
        return;
    }
    p->tail_last = in->last_sequence;
    p->tail_epoch = tail->rule.epoch;
    p->tail_n = tail->rule.n;
    p->projector.published = tail->published;
    if (progress_set(&p->progress, tail->position) != THOLE_OK) {
        partition_no_memory(p);
        return;
    }
    forget_position(p);
    if (tail->voids_len > 0)
        delete_records(p, tail->voids, tail->voids_len, in->last_sequence);
    else
        open_epoch(p);
}

void opening_tail(struct partition *p, const struct partition_in *in)
{
    if (p->phase != PHASE_TAIL)
        return;
    struct arena arena;
    struct tail tail = {0};
    arena_init(&arena, SIZE_MAX / 2);
    if (decode_tail(p, in, &arena, &tail))
        settle_tail(p, in, &tail);
    arena_release(&arena);
}

void opening_deleted(struct partition *p)
{
    if (p->phase != PHASE_DELETE)
        return;
    if (p->tail_again) {
        p->tail_again = false;
        read_tail(p, TAIL_COUNT);
    } else {
        open_epoch(p);
    }
}

void opening_epoch_stored(struct partition *p)
{
    if (p->phase != PHASE_EPOCH || p->chain.committed_n != 0 || p->chain.len > 0)
        return;
    p->chain.committed_floor = p->progress.floor;
    p->phase = PHASE_STORE;
    partition_emit(p, PARTITION_OUT_STORE_OPEN)->epoch = p->chain.epoch;
}

/* --- the projection up to here ------------------------------------------------------------------- */

/* The log lost its tail, or one of the two came from a backup: rows from nowhere. */
static void reset(struct partition *p)
{
    p->phase = PHASE_RESET;
    partition_emit(p, PARTITION_OUT_STORE_RESET);
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
    if (in->epoch > p->chain.epoch) {
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
    struct partition_out *out = partition_emit(p, PARTITION_OUT_READ_RESULTS);
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
    if (p->redo_next < p->chain.base) {
        p->redo_reading = true;
        uint64_t const last = p->redo_next + p->options.log_chunk - 1;
        struct partition_out *out = partition_emit(p, PARTITION_OUT_READ_LOG);
        out->from = p->redo_next;
        out->to = last < p->chain.base ? last : p->chain.base - 1;
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
    partition_emit(p, PARTITION_OUT_READ_CRASHES);
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
        partition_no_memory(p);
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
    p->busy_ms = p->now_ms;
    partition_emit(p, PARTITION_OUT_OPENED)->epoch = p->chain.epoch;
    struct seen const seen = progress_seen(&p->progress);
    struct partition_out *out = partition_emit(p, PARTITION_OUT_READ_INBOX);
    out->from = p->progress.floor + 1;
    out->sequence = seen.sequence;
    out->stored_ns = seen.stored_ns;
}
