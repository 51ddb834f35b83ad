/*
 * The tail of the log: which of its last records count. Void records are removed before the next EpochOpened
 * is written, so everything before the last EpochOpened counts, and only the records after it need the rule.
 * Each record says which records its writer knew to be committed, so reading twice as many records as can be
 * in flight is enough.
 */
#include "log_state.h"
#include <assert.h>
#include <string.h>

enum { TAIL_COUNT = 2 * PARTITION_WINDOW_MAX };

struct tail {
    const struct in_tail *in;
    struct record *records; /* decoded; kind RECORD_UNKNOWN where that failed */
    uint64_t *voids;
    size_t voids_len;
    struct log_rule rule;
    uint64_t published;
    const struct position *position;
    thole_slice newest; /* the last record that counts; empty: none does */
};

static void read_tail(struct partition_log *log, uint64_t count)
{
    log_become(log, LOG_READING);
    log->read_all = count == 0;
    env_emit(log->env, PARTITION_OUT_READ_TAIL)->read_tail.count = count;
}

void log_open(struct partition_log *log)
{
    assert(log->state == LOG_CLOSED && log->facts.next_n == 0);
    read_tail(log, TAIL_COUNT);
}

static bool decode_tail(struct partition_log *log, struct arena *arena, struct tail *tail)
{
    const struct in_tail *in = tail->in;
    tail->records = arena_array(arena, in->records_len, sizeof *tail->records);
    tail->voids = arena_array(arena, in->records_len, sizeof *tail->voids);
    if (tail->records == NULL || tail->voids == NULL) {
        env_no_memory(log->env);
        return false;
    }
    for (size_t i = 0; i < in->records_len; i++) {
        thole_status const status = record_decode(in->records[i].bytes, arena, &tail->records[i], NULL);
        /* An owner writes one format: after an EpochOpened in a known format, a record in a newer one belongs
         * to no owner. */
        if (status == THOLE_UNSUPPORTED && in->records[i].sequence == in->epoch_sequence) {
            log_lose(log, "the history was written by a newer version of thole");
            return false;
        }
        if (status == THOLE_NOMEM) { /* not decoded: it must not be taken for a void record */
            env_no_memory(log->env);
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
    TAIL_NO_EPOCH,     /* the record in the EpochOpened's place is none, and nobody followed: remove it, read
                          again */
    TAIL_INCONSISTENT, /* the log says that more records were stored than exist */
    TAIL_OVERTAKEN, /* records of a newer epoch follow: this is not the last EpochOpened; never remove them */
};

static const struct record *tail_decoded(const struct tail *tail, size_t i)
{
    return tail->records[i].kind == RECORD_UNKNOWN ? NULL : &tail->records[i];
}

/* False: a rival has opened the partition since then. */
static bool tail_take_record(struct tail *tail, size_t i, bool *found_position)
{
    const struct record *r = tail_decoded(tail, i);
    uint64_t const sequence = tail->in->records[i].sequence;
    enum log_verdict const verdict = log_rule_feed(&tail->rule, r, sequence);
    if (verdict == LOG_VOID || verdict == LOG_UNPROVEN)
        tail->voids[tail->voids_len++] = sequence;
    if (verdict == LOG_COUNTS || verdict == LOG_DAMAGED)
        tail->newest = tail->in->records[i].bytes;
    if (verdict != LOG_COUNTS)
        return verdict != LOG_RIVAL;
    tail->published = r->published; /* never decreases */
    if (r->kind == RECORD_TURN && r->turn.more)
        return true; /* parts of a turn before its last one carry no position */
    tail->position = &r->position;
    *found_position = true;
    return true;
}

/* Finds the epoch that was opened there. If that record does not name it any more, the records that its owner
 * wrote after it do; the position is then that of the last of them. */
static bool find_epoch(struct tail *tail)
{
    static const struct position nothing = {0};
    const struct record *const opened = &tail->records[0];
    uint64_t const sequence = tail->in->epoch_sequence;
    tail->position = &nothing;
    if (opened->kind == RECORD_EPOCH_OPENED) {
        tail->rule = (struct log_rule){.epoch = opened->epoch, .opened = sequence};
        tail->position = &opened->position;
        tail->published = opened->published;
        return true;
    }
    for (size_t i = 1; i < tail->in->records_len; i++) {
        const struct record *const r = tail_decoded(tail, i);
        if (r != NULL && r->epoch > 0 && r->n > 0 && tail->in->records[i].sequence == sequence + r->n) {
            tail->rule = (struct log_rule){.epoch = r->epoch, .opened = sequence};
            return true;
        }
    }
    return false;
}

/* Applies the log rule to the records that were read; the first is the EpochOpened. @p cut: the records right
 * after it were not asked for. (A gap alone does not show that: an earlier owner may have removed void
 * records there.) */
static enum tail_verdict walk_tail(bool cut, struct tail *tail)
{
    const struct in_tail *in = tail->in;
    if (in->records_len == 0 || in->records[0].sequence != in->epoch_sequence)
        return TAIL_INCONSISTENT;
    if (!find_epoch(tail))
        return TAIL_NO_EPOCH;
    tail->newest = in->records[0].bytes;
    for (size_t i = 0; i < in->records_len; i++)
        if (tail_decoded(tail, i) != NULL)
            log_rule_learn(&tail->rule, &tail->records[i]);
    bool found_position = !cut;
    for (size_t i = 1; i < in->records_len; i++)
        if (!tail_take_record(tail, i, &found_position))
            return TAIL_OVERTAKEN;
    bool const reaches_known = tail->rule.n >= tail->rule.known;
    if (!reaches_known && !cut)
        return TAIL_INCONSISTENT;
    return found_position && reaches_known ? TAIL_FOUND : TAIL_READ_ALL;
}

/* Without an EpochOpened nothing counts. */
static enum tail_verdict walk_without_epoch(struct tail *tail)
{
    static const struct position nothing = {0};
    bool found_position = false;
    tail->position = &nothing;
    for (size_t i = 0; i < tail->in->records_len; i++)
        if (!tail_take_record(tail, i, &found_position))
            return TAIL_OVERTAKEN;
    return TAIL_FOUND;
}

/*
 * Whether a record is void follows from the other records that were read, and reading takes time: an owner
 * that is still alive may have removed records meanwhile (projection/removals.c). Such a removal looks like a
 * gap if the record that confirms the deletion was stored after the tail that was read. So nothing is deleted
 * if the log has grown since.
 */
static void tail_delete_records(struct partition_log *log, const uint64_t *sequences, size_t n, uint64_t last)
{
    struct out_delete_records *out = &env_emit(log->env, PARTITION_OUT_DELETE_RECORDS)->delete_records;
    out->expected_last = last;
    uint64_t *copy = env_numbers(log->env, n);
    assert(n > 0);
    log_become(log, LOG_REMOVING);
    if (copy == NULL)
        return;
    memcpy(copy, sequences, n * sizeof *copy);
    out->sequences = copy;
    out->sequences_len = n;
}

/* How many records count up to the last one: all that is removed is counted too. */
static uint64_t count_of(const struct tail *tail)
{
    const struct record *const opened = tail->in->epoch_sequence == 0 ? NULL : &tail->records[0];
    if (opened == NULL || opened->kind != RECORD_EPOCH_OPENED)
        return 0;
    uint64_t const before = opened->counted > 0 ? opened->counted : tail->in->counted;
    bool const known = before > 0 || opened->previous_epoch == 0;
    return known && before < UINT64_MAX - tail->rule.n ? before + tail->rule.n + 1 : 0;
}

/* Takes the removed deletions from the last list. A list that does not decode has listed none from there
 * on. */
static void take_folded(struct partition_log *log, const struct in_tail *in)
{
    struct record record;
    struct arena arena;
    if (in->folded.sequence == 0)
        return;
    arena_init(&arena, RECORD_BYTES_MAX * 2);
    thole_status const status = record_decode(in->folded.bytes, &arena, &record, NULL);
    if (status == THOLE_NOMEM)
        env_no_memory(log->env);
    if (status == THOLE_OK && record.kind == RECORD_POSITION && record.folded.deleted < in->folded.sequence &&
        record.folded.looked < in->folded.sequence) {
        log->found.deleted = record.folded.deleted;
        log->found.looked = record.folded.looked;
    } else {
        log->found.deleted = in->folded.sequence;
    }
    arena_release(&arena);
}

static void tail_found(struct partition_log *log, const struct tail *tail)
{
    log->found = (struct log_tail){tail->in->last_sequence, *tail->position, tail->published, 0, 0};
    log->found_epoch = tail->rule.epoch;
    log->found_n = tail->rule.n;
    log->found_counted = count_of(tail);
    take_folded(log, tail->in);
    if (tail->newest.len > 0)
        log->newest = record_hash_make(log->env->options.ns, log->env->options.partition, tail->newest);
    if (tail->voids_len > 0)
        tail_delete_records(log, tail->voids, tail->voids_len, tail->in->last_sequence);
    else
        log_become(log, LOG_FOUND);
}

static void tail_settle(struct partition_log *log, struct tail *tail)
{
    const struct in_tail *in = tail->in;
    bool const cut = !log->read_all && in->last_sequence >= in->epoch_sequence + 1 + TAIL_COUNT;
    switch (in->epoch_sequence == 0 ? walk_without_epoch(tail) : walk_tail(cut, tail)) {
    case TAIL_FOUND: tail_found(log, tail); break;
    case TAIL_READ_ALL: read_tail(log, 0); break;
    case TAIL_NO_EPOCH:
        log->read_again = true;
        tail_delete_records(log, &in->epoch_sequence, 1, in->last_sequence);
        break;
    case TAIL_OVERTAKEN: log_lose(log, "a rival opened the partition while its tail was read"); break;
    case TAIL_INCONSISTENT:
        log_lose(log,
                 "the history stream lacks records that were acknowledged: look at its limits, and for a "
                 "restored backup");
        break;
    }
}

void log_tail(struct partition_log *log, const struct in_tail *in)
{
    if (log->state != LOG_READING)
        return;
    struct tail tail = {.in = in};
    arena_release(&log->found_arena);
    arena_init(&log->found_arena, SIZE_MAX / 2);
    if (decode_tail(log, &log->found_arena, &tail))
        tail_settle(log, &tail);
}

void log_deleted(struct partition_log *log)
{
    if (log->state != LOG_REMOVING)
        return;
    if (!log->read_again) {
        log_become(log, LOG_FOUND);
        return;
    }
    log->read_again = false;
    read_tail(log, TAIL_COUNT);
}

const struct log_tail *log_found(const struct partition_log *log)
{
    assert(log->state == LOG_FOUND || log->state == LOG_OPENING || log->state == LOG_OPEN);
    return &log->found;
}
