#include "expected_rows.h"
#include "arena.h"
#include "batch.h"
#include "event.h"
#include "memory.h"
#include "message.h"
#include "partition_env.h"
#include "range.h"
#include "tables.h"
#include "thole/client.h"
#include "utf8.h"
#include "work_digest.h"
#include <assert.h>
#include <stdlib.h>

enum {
    TEXT_BYTES_MAX = 1024, /* of details, as the projection cuts them */
    MEMORY_MAX = 512 * 1024 * 1024,
    CELLS_MIN = 61,
};

struct mark { /* a turn that the row of a running instance may be from */
    uint64_t sequence, time_ms, turn;
};

struct expected_rows {
    thole_slice instance;
    uint32_t partition;
    const struct nonce_key *key;
    uint64_t rows_age_ms;
    struct arena arena, scratch; /* texts of rows; the parts of a turn, and the record at hand */
    struct expected_row *rows;
    size_t rows_len, rows_cap;
    uint32_t *cells; /* open addressing over rows: index + 1, 0 = free */
    size_t cells_cap;
    struct mark *marks;
    size_t marks_len, marks_cap;
    struct record *parts; /* of a turn whose last part is still to come */
    size_t parts_len, parts_cap;
    uint64_t last;
    uint64_t execution, turn; /* of the last whole turn; 0: none */
    thole_status failed;      /* sticky */
};

struct expected_rows *expected_rows_create(thole_slice instance, uint32_t partition,
                                           const struct nonce_key *key, uint64_t rows_age_ms)
{
    struct expected_rows *const e = memory_new(sizeof *e);
    *e = (struct expected_rows){
        .instance = instance, .partition = partition, .key = key, .rows_age_ms = rows_age_ms};
    arena_init(&e->arena, MEMORY_MAX);
    arena_init(&e->scratch, MEMORY_MAX);
    return e;
}

void expected_rows_destroy(struct expected_rows *e)
{
    if (e == NULL)
        return;
    arena_release(&e->arena);
    arena_release(&e->scratch);
    free(e->rows);
    free(e->cells);
    free(e->marks);
    free(e->parts);
    free(e);
}

/* ---- the table of rows ---- */

static uint64_t expected_rows_hash_of(const struct stored_row *key)
{
    return key_hash((thole_slice){NULL, 0}, key->execution * ROW_TABLES + key->table, key->id);
}

/* The cell of the key, or the free cell for it. */
static uint32_t *cell_of(const struct expected_rows *e, const struct stored_row *key)
{
    assert(e->rows_len < e->cells_cap); /* there is a free cell */
    size_t at = expected_rows_hash_of(key) % e->cells_cap;
    while (e->cells[at] != 0 && stored_row_compare(&e->rows[e->cells[at] - 1].row, key) != 0)
        at = (at + 1) % e->cells_cap;
    return &e->cells[at];
}

static void expected_rows_grow(struct expected_rows *e)
{
    if (e->cells_cap > 2 * (e->rows_len + 1))
        return;
    free(e->cells);
    e->cells_cap = e->cells_cap == 0 ? CELLS_MIN : e->cells_cap * 2 + 1;
    e->cells = memory_array(e->cells_cap, sizeof *e->cells);
    for (size_t i = 0; i < e->rows_len; i++)
        *cell_of(e, &e->rows[i].row) = (uint32_t)i + 1;
}

static struct expected_row *expected_rows_find_row(const struct expected_rows *e,
                                                   const struct stored_row *key)
{
    uint32_t const found = e->rows_len == 0 ? 0 : *cell_of(e, key);
    return found == 0 || e->rows[found - 1].gone ? NULL : &e->rows[found - 1];
}

/* The row with the key, which is made if it does not exist; then *ret_new is true. */
static struct expected_row *expected_rows_row_of(struct expected_rows *e, enum row_table table,
                                                 uint64_t execution, uint64_t id, bool *ret_new)
{
    struct stored_row const key = {.table = table, .execution = execution, .id = id};
    expected_rows_grow(e);
    uint32_t *const cell = cell_of(e, &key);
    bool fresh = *cell == 0;
    if (fresh) {
        (void)row_add((void **)&e->rows, &e->rows_len, &e->rows_cap, sizeof *e->rows);
        *cell = (uint32_t)e->rows_len;
    }
    struct expected_row *const row = &e->rows[*cell - 1];
    fresh |= row->gone;
    if (fresh)
        *row = (struct expected_row){.row = key};
    row->row.numbers[NUMBER_P] = e->partition;
    if (ret_new != NULL)
        *ret_new = fresh;
    return row;
}

static void expected_rows_remove(struct expected_rows *e, enum row_table table, uint64_t execution,
                                 uint64_t id)
{
    struct stored_row const key = {.table = table, .execution = execution, .id = id};
    struct expected_row *const row = expected_rows_find_row(e, &key);
    if (row != NULL)
        row->gone = true;
}

/* The rows of that table and executions above < execution <= upto. */
static void all_gone(struct expected_rows *e, enum row_table table, uint64_t above, uint64_t upto)
{
    for (size_t i = 0; i < e->rows_len; i++) {
        struct expected_row *const row = &e->rows[i];
        if (row->row.table == table && row->row.execution > above && row->row.execution <= upto)
            row->gone = true;
    }
}

/* Execution 0 is among them. */
static void outstanding_gone(struct expected_rows *e, uint64_t upto)
{
    for (size_t i = 0; i < e->rows_len; i++)
        if (e->rows[i].row.table <= ROWS_QUARANTINE && e->rows[i].row.execution <= upto)
            e->rows[i].gone = true;
}

static void set_text(struct expected_rows *e, struct expected_row *row, size_t i, thole_slice text)
{
    thole_slice *const to = &row->row.texts[i];
    if (thole_slice_equal(*to, text))
        return;
    if (arena_dup(&e->arena, text, to) != THOLE_OK)
        e->failed = arena_status(&e->arena);
}

/* As it is stored: a byte that Postgres does not take for text is a question mark. */
static void set_readable(struct expected_rows *e, struct expected_row *row, size_t i, thole_slice text)
{
    struct buf readable;
    buf_init(&readable, TEXT_BYTES_MAX * 4);
    for (size_t at = 0, n; at < text.len; at += n == 0 ? 1 : n) {
        n = utf8_character((thole_slice){text.ptr + at, text.len - at});
        n = text.ptr[at] == 0 ? 0 : n;
        buf_append(&readable, n > 0 ? text.ptr + at : (const uint8_t *)"?", n > 0 ? n : 1);
    }
    set_text(e, row, i, buf_bytes(&readable));
    buf_release(&readable);
}

/* ---- activities, timers, quarantine ---- */

static uint64_t stored_ms(uint64_t ms)
{
    return ms < INT64_MAX ? ms : INT64_MAX;
}

static void expected_rows_timer(struct expected_rows *e, uint64_t execution, uint64_t id, uint64_t due_ms)
{
    expected_rows_row_of(e, ROWS_TIMERS, execution, id, NULL)->row.numbers[TIMER_DUE_MS] =
        due_ms == 0 ? 1 : stored_ms(due_ms);
}

static void expected_rows_queued(struct expected_rows *e, const struct turn *turn, const struct event *event,
                                 uint64_t id)
{
    struct expected_row *const row = expected_rows_row_of(e, ROWS_ACTIVITIES, turn->execution, id, NULL);
    row->row.numbers[ACTIVITY_TRY] = range_nearest(RANGE_TRY, event->try_number == 0 ? 1 : event->try_number);
    row->row.numbers[ACTIVITY_TIMEOUT_MS] = event->retry == NULL ? 0 : event->retry->try_timeout_ms;
    row->range.first_ms = turn->time_ms;
    set_text(e, row, ACTIVITY_QUEUE, event->queue);
    set_text(e, row, ACTIVITY_NAME, event->name);
    set_text(e, row, ACTIVITY_DETAILS, event->details);
    if (e->key == NULL)
        return;
    struct nonce const nonce = nonce_make(e->key, e->instance, turn->execution, id);
    struct work_digest const digest =
        work_digest_make(event->queue, event->name, thole_slice_from(nonce.text), event->data);
    set_text(e, row, ACTIVITY_DIGEST, work_digest_slice(&digest));
}

static void expected_rows_quarantined(struct expected_rows *e, const struct turn *turn,
                                      const struct event *event)
{
    struct expected_row *const row =
        expected_rows_row_of(e, ROWS_QUARANTINE, turn->execution, event->ref, NULL);
    row->row.numbers[QUARANTINE_TRY] = range_nearest(RANGE_TRY, event->try_number);
    row->row.numbers[QUARANTINE_LOST] = range_nearest(RANGE_LOST, event->lost);
    row->row.numbers[QUARANTINE_SINCE_MS] = turn->time_ms;
    row->row.numbers[QUARANTINE_UNTIL_MS] = stored_ms(event->due_ms);
    set_text(e, row, QUARANTINE_QUEUE, event->queue);
    set_text(e, row, QUARANTINE_NAME, event->name);
    set_readable(e, row, QUARANTINE_WORKER, event->worker);
    set_readable(e, row, QUARANTINE_REASON, text_cut(event->data, TEXT_BYTES_MAX));
    expected_rows_remove(e, ROWS_ACTIVITIES, turn->execution, event->ref);
    if (event->due_ms != 0)
        expected_rows_timer(e, turn->execution, event->ref, event->due_ms);
}

static void expected_rows_try_started(struct expected_rows *e, const struct turn *turn,
                                      const struct event *event)
{
    expected_rows_queued(e, turn, event, event->ref);
    if (event->quarantined)
        expected_rows_remove(e, ROWS_QUARANTINE, turn->execution, event->ref);
    if (event->due_ms != 0)
        expected_rows_timer(e, turn->execution, event->ref, event->due_ms);
    else
        expected_rows_remove(e, ROWS_TIMERS, turn->execution, event->ref);
}

static void expected_rows_activity_ended(struct expected_rows *e, const struct turn *turn,
                                         const struct event *event)
{
    expected_rows_remove(e, ROWS_ACTIVITIES, turn->execution, event->ref);
    if (event->quarantined)
        expected_rows_remove(e, ROWS_QUARANTINE, turn->execution, event->ref);
    if (event->timed)
        expected_rows_remove(e, ROWS_TIMERS, turn->execution, event->ref);
}

/* A removed execution has ended: nothing of it is outstanding. */
static void expected_rows_pruned(struct expected_rows *e, const struct event *event)
{
    struct executions const executions = executions_pruned(event);
    for (enum row_table table = ROWS_ACTIVITIES; table <= ROWS_EXECUTIONS && executions.upto > 0; table++)
        all_gone(e, table, executions.above, executions.upto);
}

static void expected_rows_outstanding(struct expected_rows *e, const struct turn *turn,
                                      const struct event *event)
{
    switch (event->kind) {
    case EVENT_ACTIVITY_SCHEDULED:
        expected_rows_queued(e, turn, event, event->id);
        if (event->retry != NULL && event->retry->total_timeout_ms > 0)
            expected_rows_timer(e, turn->execution, event->id,
                                range_sum(turn->time_ms, event->retry->total_timeout_ms));
        break;
    case EVENT_ACTIVITY_TRY_FAILED:
        expected_rows_remove(e, ROWS_ACTIVITIES, turn->execution, event->ref);
        expected_rows_timer(e, turn->execution, event->ref, event->due_ms);
        break;
    case EVENT_ACTIVITY_QUARANTINED: expected_rows_quarantined(e, turn, event); break;
    case EVENT_ACTIVITY_TRY_STARTED: expected_rows_try_started(e, turn, event); break;
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_ACTIVITY_FAILED:
    case EVENT_ACTIVITY_CANCELLED: expected_rows_activity_ended(e, turn, event); break;
    case EVENT_TIMER_CREATED: expected_rows_timer(e, turn->execution, event->id, event->due_ms); break;
    case EVENT_TIMER_FIRED:
    case EVENT_TIMER_CANCELLED: expected_rows_remove(e, ROWS_TIMERS, turn->execution, event->ref); break;
    case EVENT_EVENT_RECEIVED: /* those that came before the instance are part of its first turn */
        if (turn->number == 1)
            expected_rows_remove(e, ROWS_TIMERS, 0, EARLY_TIMER);
        break;
    case EVENT_HISTORY_PRUNED: expected_rows_pruned(e, event); break;
    default: break;
    }
}

/* Execution 0. When its events expire depends on an option: the row is due after the turn. */
static void expected_rows_add_early(struct expected_rows *e, const struct turn *turn,
                                    const struct event *event)
{
    if (event->kind == EVENT_EVENT_RECEIVED)
        expected_rows_timer(e, 0, EARLY_TIMER, turn->time_ms);
    else if (event->kind == EVENT_DISCARDED)
        expected_rows_remove(e, ROWS_TIMERS, 0, EARLY_TIMER);
}

/* ---- the instance and its executions ---- */

static uint64_t expected_rows_status_of(const struct turn *turn, const struct event *end)
{
    switch (end == NULL ? EVENT_UNKNOWN : end->kind) {
    case EVENT_COMPLETED: return THOLE_INSTANCE_COMPLETED;
    case EVENT_FAILED: return THOLE_INSTANCE_FAILED;
    case EVENT_CANCELLED: return THOLE_INSTANCE_CANCELLED;
    case EVENT_TERMINATED: return THOLE_INSTANCE_TERMINATED;
    case EVENT_CONTINUED_AS_NEW: return THOLE_INSTANCE_CONTINUED_AS_NEW;
    default: break;
    }
    if (turn->ran)
        return THOLE_INSTANCE_RUNNING;
    if (turn->blocked == BLOCKED_PAUSED)
        return THOLE_INSTANCE_PAUSED;
    bool const waits = turn->blocked == BLOCKED_NO_CODE || turn->blocked == BLOCKED_NOT_STARTED;
    return waits ? THOLE_INSTANCE_WAITING : THOLE_INSTANCE_STUCK;
}

static uint64_t blocked_of(const struct turn *turn, const struct event *end)
{
    return end != NULL || turn->ran ? BLOCKED_NOT : turn->blocked;
}

static thole_slice detail_of(const struct turn *turn, const struct event *end)
{
    bool const says_why = end != NULL && (end->kind == EVENT_FAILED || end->kind == EVENT_CANCELLED ||
                                          end->kind == EVENT_TERMINATED);
    if (says_why)
        return text_cut(end->data, TEXT_BYTES_MAX);
    return end != NULL || turn->ran ? (thole_slice){NULL, 0} : text_cut(turn->blocked_text, TEXT_BYTES_MAX);
}

static bool sets_custom_status(const struct event *event)
{
    return event->kind == EVENT_CUSTOM_STATUS_SET ||
           (event->kind == EVENT_STATE_CARRIED && event->name.len == 0);
}

/* False: nothing but the time and the number of the last turn. */
static bool says_more(const struct turn *turn)
{
    for (size_t i = 0; i < turn->events_len; i++) {
        enum event_kind const kind = turn->events[i].kind;
        if (kind == EVENT_STARTED || kind == EVENT_VERSION_CHOSEN || kind == EVENT_CUSTOM_STATUS_SET ||
            kind == EVENT_STATE_CARRIED || kind == EVENT_DISCARDED || event_is_terminal(kind))
            return true;
    }
    return !turn->ran;
}

/* Of which turns the instance's row may be. */
static void expected_rows_mark(struct expected_rows *e, const struct turn *turn, uint64_t sequence)
{
    if (says_more(turn))
        e->marks_len = 0;
    if (e->marks_len > 0 && e->marks[e->marks_len - 1].sequence == sequence) {
        e->marks[e->marks_len - 1] = (struct mark){sequence, turn->time_ms, turn->number};
        return; /* another part of the turn */
    }
    struct mark *const added = row_add((void **)&e->marks, &e->marks_len, &e->marks_cap, sizeof *e->marks);
    *added = (struct mark){sequence, turn->time_ms, turn->number};
}

bool expected_rows_may_lag(const struct expected_rows *e, uint64_t sequence, uint64_t time_ms, uint64_t turn)
{
    if (e->marks_len == 0)
        return false;
    uint64_t const newest_ms = e->marks[e->marks_len - 1].time_ms;
    for (size_t i = e->marks_len; i > 0; i--) {
        const struct mark *const at = &e->marks[i - 1];
        if (at->sequence == sequence)
            return at->time_ms == time_ms && at->turn == turn && newest_ms - time_ms < e->rows_age_ms;
    }
    return false;
}

static void expected_rows_add_event(struct expected_rows *e, struct expected_row *row,
                                    const struct event *event)
{
    if (event->kind == EVENT_STARTED) {
        if (event->name.len > 0)
            set_text(e, row, INSTANCE_ORCHESTRATION, event->name);
        if (event->parent.instance.len > 0)
            set_text(e, row, INSTANCE_PARENT, event->parent.instance);
    }
    if ((event->kind == EVENT_STARTED || event->kind == EVENT_VERSION_CHOSEN) && event->version != 0)
        row->row.numbers[INSTANCE_VERSION] = range_nearest(RANGE_VERSION, event->version);
    if (sets_custom_status(event))
        set_text(e, row, INSTANCE_CUSTOM_STATUS, text_cut(event->data, TEXT_BYTES_MAX));
}

static const struct event *find_event(const struct turn *turn, bool wanted(enum event_kind kind))
{
    const struct event *found = NULL;
    for (size_t i = 0; i < turn->events_len; i++)
        if (wanted(turn->events[i].kind))
            found = &turn->events[i];
    return found;
}

static bool is_discarded(enum event_kind kind)
{
    return kind == EVENT_DISCARDED;
}

static bool is_started(enum event_kind kind)
{
    return kind == EVENT_STARTED;
}

static void expected_rows_instance_row(struct expected_rows *e, const struct turn *turn, uint64_t sequence)
{
    bool fresh = false;
    const struct event *const end = find_event(turn, event_is_terminal);
    struct expected_row *const row = expected_rows_row_of(e, ROWS_INSTANCES, 0, 0, &fresh);
    uint64_t *const numbers = row->row.numbers;
    bool const begins = fresh || (numbers[INSTANCE_EXECUTION] == 0 && turn->execution > 0);
    if (begins || turn->time_ms < numbers[INSTANCE_CREATED_MS])
        numbers[INSTANCE_CREATED_MS] = turn->time_ms;
    numbers[INSTANCE_EXECUTION] = turn->execution;
    numbers[INSTANCE_STATUS] = expected_rows_status_of(turn, end);
    numbers[INSTANCE_BLOCKED] = blocked_of(turn, end);
    numbers[INSTANCE_UPDATED_MS] = turn->time_ms;
    numbers[INSTANCE_TURNS] = turn->number;
    numbers[INSTANCE_SEQ] = sequence;
    set_readable(e, row, INSTANCE_DETAIL, detail_of(turn, end));
    for (size_t i = 0; i < turn->events_len; i++)
        expected_rows_add_event(e, row, &turn->events[i]);
}

/* Of a first execution the instance's row says all until it continues as new. */
static void execution_row(struct expected_rows *e, const struct turn *turn, uint64_t sequence)
{
    struct stored_row const key = {.table = ROWS_EXECUTIONS, .execution = turn->execution};
    struct stored_row const instance = {.table = ROWS_INSTANCES};
    const struct event *const end = find_event(turn, event_is_terminal);
    bool const begins = turn->execution > 1 && find_event(turn, is_started) != NULL;
    bool const ends = end != NULL && (turn->execution > 1 || end->kind == EVENT_CONTINUED_AS_NEW);
    if (!begins && !ends && expected_rows_find_row(e, &key) == NULL)
        return;
    bool fresh = false;
    struct expected_row *const row = expected_rows_row_of(e, ROWS_EXECUTIONS, turn->execution, 0, &fresh);
    uint64_t *const numbers = row->row.numbers;
    if (fresh) {
        uint64_t const created_ms = expected_rows_find_row(e, &instance)->row.numbers[INSTANCE_CREATED_MS];
        numbers[EXECUTION_STARTED_MS] = turn->execution == 1 ? created_ms : turn->time_ms;
        row->range.first_ms = numbers[EXECUTION_STARTED_MS];
        row->range.first_turn = turn->number;
        row->range.first_seq = sequence;
    }
    row->range.last_ms = turn->time_ms;
    row->range.last_turn = turn->number;
    row->range.last_seq = sequence;
    numbers[EXECUTION_STATUS] = expected_rows_status_of(turn, end);
    numbers[EXECUTION_ENDED_MS] = ends ? turn->time_ms : 0;
    numbers[EXECUTION_TURNS] = turn->number;
    numbers[EXECUTION_SEQ] = sequence;
}

/* ---- records ---- */

static void expected_rows_take_turn(struct expected_rows *e, const struct turn *turn, uint64_t sequence)
{
    expected_rows_mark(e, turn, sequence);
    expected_rows_instance_row(e, turn, sequence);
    if (turn->execution > 0)
        execution_row(e, turn, sequence);
    for (size_t i = 0; i < turn->events_len; i++)
        if (turn->execution == 0)
            expected_rows_add_early(e, turn, &turn->events[i]);
        else
            expected_rows_outstanding(e, turn, &turn->events[i]);
    if (find_event(turn, is_discarded) != NULL) {
        expected_rows_remove(e, ROWS_INSTANCES, 0, 0);
        all_gone(e, ROWS_EXECUTIONS, 0, UINT64_MAX);
    }
}

/* Terminated while its history could not be read: its end closes nothing that is outstanding. */
static bool expected_rows_ends_unread(const struct turn *turn)
{
    size_t const n = turn->events_len;
    return !turn->more && n >= 2 && turn->events[n - 1].kind == EVENT_TERMINATED &&
           turn->events[n - 2].kind == EVENT_TERMINATE_REQUESTED;
}

static bool expected_rows_continues(const struct expected_rows *e, const struct record *record)
{
    const struct record *const last = e->parts_len == 0 ? NULL : &e->parts[e->parts_len - 1];
    return last != NULL && record->epoch == last->epoch && record->n == last->n + 1 &&
           record->turn.number == last->turn.number && record->turn.execution == last->turn.execution;
}

/* Turns are numbered within their execution: without one of them the rows are not known. A newer epoch may
 * have written some again. */
static bool expected_rows_follows(const struct expected_rows *e, const struct turn *turn)
{
    return turn->number <= (turn->execution == e->execution ? e->turn + 1 : 1);
}

/* A turn whose last part was never written does not count. False: a turn before it is not there. */
static bool expected_rows_take_part(struct expected_rows *e, const struct record *record, uint64_t sequence)
{
    if (!expected_rows_continues(e, record)) {
        e->parts_len = 0;
        if (!expected_rows_follows(e, &record->turn))
            return false;
    }
    if (record->turn.more) {
        struct record *const part =
            row_add((void **)&e->parts, &e->parts_len, &e->parts_cap, sizeof *e->parts);
        *part = *record;
        return true;
    }
    if (e->parts_len == 0 && expected_rows_ends_unread(&record->turn))
        outstanding_gone(e, record->turn.execution);
    for (size_t i = 0; i < e->parts_len; i++)
        expected_rows_take_turn(e, &e->parts[i].turn, sequence);
    expected_rows_take_turn(e, &record->turn, sequence);
    e->parts_len = 0;
    e->execution = record->turn.execution;
    e->turn = record->turn.number;
    return true;
}

static void expected_rows_take_deletion(struct expected_rows *e, const struct deletion *deletion)
{
    e->parts_len = 0;
    e->marks_len = 0;
    e->execution = e->turn = 0;
    outstanding_gone(e, deletion->execution);
    all_gone(e, ROWS_EXECUTIONS, 0, UINT64_MAX);
    expected_rows_remove(e, ROWS_INSTANCES, 0, 0);
}

thole_status expected_rows_take(struct expected_rows *e, uint64_t sequence, thole_slice bytes,
                                thole_error *reterr)
{
    struct record record;
    if (e->parts_len == 0) /* nothing of it is needed any more */
        arena_release(&e->scratch);
    THOLE_TRY(record_decode(bytes, &e->scratch, &record, reterr));
    if (!record_has_rows(&record))
        return thole_fail(reterr, THOLE_CORRUPT, "the record at %llu has numbers that no row can have",
                          (unsigned long long)sequence);
    e->last = sequence;
    if (record.kind == RECORD_DELETED)
        expected_rows_take_deletion(e, &record.deletion);
    else if (record.kind == RECORD_TURN && !expected_rows_take_part(e, &record, sequence))
        return thole_fail(reterr, THOLE_CORRUPT,
                          "turn %llu of execution %llu follows turn %llu of execution %llu",
                          (unsigned long long)record.turn.number, (unsigned long long)record.turn.execution,
                          (unsigned long long)e->turn, (unsigned long long)e->execution);
    if (e->failed != THOLE_OK)
        return thole_fail(reterr, e->failed, "no memory for the rows of one instance");
    return THOLE_OK;
}

/* ---- reading the rows ---- */

const struct expected_row *expected_rows_find(const struct expected_rows *e, const struct stored_row *key)
{
    return expected_rows_find_row(e, key);
}

size_t expected_rows_len(const struct expected_rows *e)
{
    return e->rows_len;
}

const struct expected_row *expected_rows_at(const struct expected_rows *e, size_t i)
{
    assert(i < e->rows_len);
    return &e->rows[i];
}

uint64_t expected_rows_last(const struct expected_rows *e)
{
    return e->last;
}

bool expected_rows_know_digests(const struct expected_rows *e)
{
    return e->key != NULL;
}

uint64_t expected_rows_scheduled_ms(const struct expected_row *row)
{
    return row->range.first_ms;
}
