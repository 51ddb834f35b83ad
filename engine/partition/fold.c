/* Counted records become projection changes, collected in a build until it is applied. */
#include "machine.h"
#include "thole/client.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void build_destroy(struct build *build)
{
    if (build == NULL)
        return;
    arena_release(&build->arena);
    free(build->added);
    free(build->removed);
    free(build->timers_added);
    free(build->timers_removed);
    free(build->instances);
    free(build->pushes);
    free(build->added_index.cells);
    free(build->timers_index.cells);
    free(build->instances_index.cells);
    free(build);
}

/* Room for one more row; NULL: out of memory. */
static void *row_add(void **rows, size_t *len, size_t *cap, size_t size)
{
    if (*len == *cap) {
        size_t const more = *cap == 0 ? 16 : *cap * 2;
        void *grown = realloc(*rows, more * size);
        if (grown == NULL)
            return NULL;
        *rows = grown;
        *cap = more;
    }
    void *row = (uint8_t *)*rows + (*len)++ * size;
    memset(row, 0, size);
    return row;
}
#define ROW_ADD(p, build, name)                                                                              \
    row_add((void **)&(build)->name, &(build)->name##_len, &(build)->name##_cap, sizeof *(build)->name)

/* --- finding a row of this build by its key ------------------------------------------------------------- */

struct row_key {
    thole_slice instance;
    uint64_t execution, id;
};
typedef struct row_key key_fn(const struct build *build, size_t i);

static struct row_key added_key(const struct build *build, size_t i)
{
    const struct batch_activity *row = &build->added[i].row;
    return (struct row_key){row->instance, row->execution, row->activity_id};
}

static struct row_key timer_key(const struct build *build, size_t i)
{
    const struct batch_timer *row = &build->timers_added[i];
    return (struct row_key){row->instance, row->execution, row->timer_id};
}

static struct row_key instance_key(const struct build *build, size_t i)
{
    return (struct row_key){build->instances[i].instance, 0, 0};
}

static uint32_t *cell(const struct key_index *index, const struct build *build, key_fn *key_of,
                      struct row_key key)
{
    size_t at = key_hash(key.instance, key.execution, key.id) % index->cap;
    for (; index->cells[at] != 0; at = (at + 1) % index->cap) {
        struct row_key const has = key_of(build, index->cells[at] - 1);
        if (has.id == key.id && has.execution == key.execution &&
            thole_slice_equal(has.instance, key.instance))
            break;
    }
    return &index->cells[at];
}

/* Row number of the key; SIZE_MAX when it is not there. */
static size_t index_find(const struct key_index *index, const struct build *build, key_fn *key_of,
                         struct row_key key)
{
    if (index->len == 0)
        return SIZE_MAX;
    uint32_t const found = *cell(index, build, key_of, key);
    return found == 0 ? SIZE_MAX : found - 1;
}

static bool index_put(struct key_index *index, const struct build *build, key_fn *key_of, size_t row)
{
    if (index->cap < 2 * (index->len + 1)) {
        struct key_index grown = {.cap = index->cap == 0 ? 61 : index->cap * 2 + 1};
        grown.cells = calloc(grown.cap, sizeof *grown.cells);
        if (grown.cells == NULL)
            return false;
        for (size_t i = 0; i < index->cap; i++)
            if (index->cells[i] != 0)
                *cell(&grown, build, key_of, key_of(build, index->cells[i] - 1)) = index->cells[i];
        grown.len = index->len;
        free(index->cells);
        *index = grown;
    }
    uint32_t *at = cell(index, build, key_of, key_of(build, row));
    index->len += *at == 0;
    *at = (uint32_t)row + 1;
    return true;
}

/* --- events to rows ---------------------------------------------------------------------------------------
 */

static void activity_scheduled(struct partition *p, struct build *b, const struct turn *turn,
                               const struct event *event)
{
    struct fold_activity *row = ROW_ADD(p, b, added);
    if (row == NULL) {
        partition_no_memory(p);
        return;
    }
    row->row = (struct batch_activity){.instance = turn->instance,
                                       .execution = turn->execution,
                                       .activity_id = event->id,
                                       .queue = event->queue,
                                       .activity = event->name};
    row->input = event->data;
    if (!index_put(&b->added_index, b, added_key, b->added_len - 1))
        partition_no_memory(p);
}

/*
 * True when the row may exist, so that it must be deleted (and its worker told): it was added before this
 * build, or this is a redo, where a former owner may have added it already.
 */
static bool activity_resolved(struct partition *p, struct build *b, const struct turn *turn, uint64_t id,
                              bool live)
{
    struct row_key const key = {turn->instance, turn->execution, id};
    size_t const added = index_find(&b->added_index, b, added_key, key);
    if (added != SIZE_MAX) {
        b->added[added].gone = true;
        if (live)
            return false;
    }
    struct batch_activity *row = ROW_ADD(p, b, removed);
    if (row == NULL)
        partition_no_memory(p);
    else
        *row = (struct batch_activity){
            .instance = turn->instance, .execution = turn->execution, .activity_id = id};
    return true;
}

static void activity_cancelled(struct partition *p, struct build *b, const struct turn *turn,
                               const struct event *event, bool live)
{
    if (!activity_resolved(p, b, turn, event->ref, live))
        return;
    struct fold_push *push = ROW_ADD(p, b, pushes);
    if (push == NULL)
        partition_no_memory(p);
    else
        *push = (struct fold_push){.instance = turn->instance,
                                   .execution = turn->execution,
                                   .activity_id = event->ref,
                                   .kind = event->code,
                                   .reason = event->data};
}

static void timer_created(struct partition *p, struct build *b, const struct turn *turn,
                          const struct event *event, bool live)
{
    struct batch_timer *row = ROW_ADD(p, b, timers_added);
    if (row == NULL) {
        partition_no_memory(p);
        return;
    }
    *row = (struct batch_timer){.instance = turn->instance,
                                .execution = turn->execution,
                                .timer_id = event->id,
                                .due_ms = event->due_ms == 0 ? 1 : event->due_ms};
    if (!index_put(&b->timers_index, b, timer_key, b->timers_added_len - 1))
        partition_no_memory(p);
    if (live)
        timer_book_created(p, row);
}

static void timer_resolved(struct partition *p, struct build *b, const struct turn *turn, uint64_t id,
                           bool live)
{
    struct row_key const key = {turn->instance, turn->execution, id};
    size_t const added = index_find(&b->timers_index, b, timer_key, key);
    if (added != SIZE_MAX) {
        b->timers_added[added].due_ms = 0; /* never reaches the database */
        if (live)
            return;
    }
    struct batch_timer *row = ROW_ADD(p, b, timers_removed);
    if (row == NULL)
        partition_no_memory(p);
    else
        *row = (struct batch_timer){.instance = turn->instance, .execution = turn->execution, .timer_id = id};
}

static struct batch_instance *instance_row(struct partition *p, struct build *b, const struct turn *turn)
{
    struct row_key const key = {turn->instance, 0, 0};
    size_t const found = index_find(&b->instances_index, b, instance_key, key);
    if (found != SIZE_MAX)
        return &b->instances[found];
    struct batch_instance *row = ROW_ADD(p, b, instances);
    if (row == NULL) {
        partition_no_memory(p);
        return NULL;
    }
    row->instance = turn->instance;
    if (!index_put(&b->instances_index, b, instance_key, b->instances_len - 1))
        partition_no_memory(p);
    return row;
}

static uint32_t status_of_turn(const struct turn *turn)
{
    if (turn->ran)
        return THOLE_INSTANCE_RUNNING;
    return turn->blocked == BLOCKED_NO_CODE ? THOLE_INSTANCE_WAITING : THOLE_INSTANCE_STUCK;
}

static thole_slice head_of(thole_slice text)
{
    if (text.len <= DETAIL_BYTES_MAX)
        return text;
    text.len = DETAIL_BYTES_MAX;
    while (text.len > 0 && (text.ptr[text.len] & 0xC0) == 0x80)
        text.len--; /* not in the middle of a character */
    return text;
}

static void fold_instance(struct partition *p, struct build *b, const struct turn *turn, uint64_t sequence)
{
    struct batch_instance *row = instance_row(p, b, turn);
    if (row == NULL)
        return;
    row->execution = turn->execution;
    row->updated_ms = turn->time_ms;
    row->turns = turn->number;
    row->history_seq = sequence;
    row->status = status_of_turn(turn);
    row->detail = turn->ran ? (thole_slice){0} : head_of(turn->blocked_text);
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *event = &turn->events[i];
        if (event->kind == EVENT_STARTED) {
            row->orchestration = event->name;
            if (turn->execution == 1)
                row->created_ms = turn->time_ms;
        } else if (event_is_terminal(event->kind)) {
            row->status = event->kind == EVENT_COMPLETED ? THOLE_INSTANCE_COMPLETED
                          : event->kind == EVENT_FAILED  ? THOLE_INSTANCE_FAILED
                                                         : THOLE_INSTANCE_CANCELLED;
            row->detail = event->kind == EVENT_COMPLETED ? (thole_slice){0} : head_of(event->data);
        }
    }
}

static void notice(struct partition *p, const struct turn *turn, const struct event *event,
                   const struct slot *slot)
{
    struct partition_out *out = partition_emit(p, PARTITION_OUT_EVENT);
    bool const started = event->kind == EVENT_STARTED;
    out->event_kind = started                          ? "started"
                      : event->kind == EVENT_COMPLETED ? "completed"
                      : event->kind == EVENT_FAILED    ? "failed"
                                                       : "cancelled";
    out->instance = partition_out_copy(p, turn->instance);
    out->execution = turn->execution;
    out->orchestration = partition_out_copy(p, started ? event->name : slot->orchestration);
    out->request_id = partition_out_copy(p, started ? event->request_id : (thole_slice){0});
    out->data = started ? (thole_slice){0} : partition_out_copy(p, event->data);
    if (started)
        names_add(p, event->name, 1);
    else
        names_remove(p, slot->orchestration);
}

static bool is_activity_end(enum event_kind kind)
{
    return kind == EVENT_ACTIVITY_COMPLETED || kind == EVENT_ACTIVITY_FAILED ||
           kind == EVENT_ACTIVITY_CANCELLED;
}

static void fold_events(struct partition *p, struct build *b, const struct turn *turn, struct slot *slot,
                        bool live)
{
    for (size_t i = 0; i < turn->events_len && !p->nomem; i++) {
        const struct event *event = &turn->events[i];
        if (live && event->kind == EVENT_ACTIVITY_SCHEDULED)
            p->open_activities++;
        else if (live && is_activity_end(event->kind) && p->open_activities > 0)
            p->open_activities--;
        switch (event->kind) {
        case EVENT_ACTIVITY_SCHEDULED: activity_scheduled(p, b, turn, event); break;
        case EVENT_ACTIVITY_COMPLETED:
        case EVENT_ACTIVITY_FAILED: (void)activity_resolved(p, b, turn, event->ref, live); break;
        case EVENT_ACTIVITY_CANCELLED: activity_cancelled(p, b, turn, event, live); break;
        case EVENT_TIMER_CREATED: timer_created(p, b, turn, event, live); break;
        case EVENT_TIMER_FIRED:
        case EVENT_TIMER_CANCELLED: timer_resolved(p, b, turn, event->ref, live); break;
        case EVENT_STARTED:
        case EVENT_COMPLETED:
        case EVENT_FAILED:
        case EVENT_CANCELLED:
            if (live && slot != NULL)
                notice(p, turn, event, slot);
            break;
        case EVENT_CANCEL_REQUESTED:
        case EVENT_UNKNOWN: break;
        default: break;
        }
    }
}

/* --- records
 * ------------------------------------------------------------------------------------------------ */

static bool continues(const struct projector *projector, const struct record *record)
{
    if (projector->parts_len == 0)
        return false;
    const struct record *last = &projector->parts[projector->parts_len - 1];
    return record->kind == RECORD_TURN && record->epoch == last->epoch && record->n == last->n + 1 &&
           record->turn.number == last->turn.number && record->turn.execution == last->turn.execution &&
           thole_slice_equal(record->turn.instance, last->turn.instance);
}

static void keep_part(struct partition *p, const struct record *record)
{
    struct projector *projector = &p->projector;
    struct record *part = row_add((void **)&projector->parts, &projector->parts_len, &projector->parts_cap,
                                  sizeof *projector->parts);
    if (part == NULL)
        partition_no_memory(p);
    else
        *part = *record;
}

void fold_record(struct partition *p, thole_slice bytes, uint64_t sequence, struct slot *slot, bool live)
{
    struct build *b = project_filling(p);
    if (b == NULL)
        return;
    struct record record;
    thole_status const status = record_decode(bytes, &b->arena, &record, NULL);
    if (status == THOLE_UNSUPPORTED) {
        partition_drop(p, "the history was written by a newer version of thole", true);
        return;
    }
    b->last_sequence = sequence;
    b->records++;
    p->projector.unprojected++;
    if (status != THOLE_OK) {
        assert(!live); /* we encoded it ourselves */
        return;        /* damaged and not ours: it counts for nobody */
    }
    if (!continues(&p->projector, &record))
        p->projector.parts_len = 0; /* a turn whose rest was never written never happened */
    if (record.kind != RECORD_TURN)
        return;
    if (record.turn.more) {
        keep_part(p, &record);
        return;
    }
    for (size_t i = 0; i < p->projector.parts_len; i++) {
        fold_instance(p, b, &p->projector.parts[i].turn, sequence);
        fold_events(p, b, &p->projector.parts[i].turn, slot, live);
    }
    p->projector.parts_len = 0;
    fold_instance(p, b, &record.turn, sequence);
    fold_events(p, b, &record.turn, slot, live);
}
