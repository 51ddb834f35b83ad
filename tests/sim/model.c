/* The independent reader: the log rule of design section 4 and the meaning of a turn, written from the text.
 */
#include "checks.h"
#include "orchestrations.h"
#include <stdio.h>
#include <string.h>

struct model *model_create(struct world *w)
{
    struct model *model = keep(w, sizeof *model);
    for (uint32_t p = 0; p < WORLD_PARTITIONS_MAX; p++)
        model->partitions[p].part_of = SIZE_MAX;
    return model;
}

void model_destroy(struct model *model)
{
    for (size_t i = 0; i < WORLD_INSTANCES_MAX; i++)
        instance_destroy(model->instances[i].replay);
}

static struct model_event *find_event(struct model_instance *m, uint64_t id)
{
    return id >= 1 && id <= m->events_len ? &m->events[id - 1] : NULL;
}

const struct model_event *model_find(const struct world *w, size_t instance, uint64_t id)
{
    return instance < w->instances_len ? find_event(&w->model->instances[instance], id) : NULL;
}

/* ---- the inbox -------------------------------------------------------------------------------------------
 */

static bool incorporated(const struct position *position, uint64_t sequence)
{
    if (sequence <= position->floor)
        return true;
    for (size_t i = 0; i < position->above_len; i++)
        if (position->above[i] == sequence)
            return true;
    return false;
}

static void check_position(struct world *w, uint32_t p, const struct position *before,
                           const struct position *position)
{
    if (position->floor < before->floor)
        broken(w, "partition %u: the inbox floor went back from %" PRIu64 " to %" PRIu64, p, before->floor,
               position->floor);
    for (size_t i = 0; i < before->above_len; i++)
        if (!incorporated(position, before->above[i]))
            broken(w, "partition %u: inbox message %" PRIu64 " is no longer incorporated", p,
                   before->above[i]);
    for (size_t i = 0; i < position->above_len; i++)
        if (position->above[i] <= position->floor + (i == 0) ||
            (i > 0 && position->above[i] <= position->above[i - 1]))
            broken(w, "partition %u: the position is malformed", p);
}

/* Would this message change anything, in the state that the counted history says? */
static bool accepted(struct world *w, size_t instance, const struct message *message)
{
    struct model_instance *m = &w->model->instances[instance];
    const struct model_event *scheduled;
    switch (message->kind) {
    case MESSAGE_START: return !m->started;
    case MESSAGE_CANCEL: return m->started && !m->ended && !m->cancel_requested;
    case MESSAGE_ACTIVITY_RESULT:
        scheduled = find_event(m, message->task);
        /* Between a cancel request and its delivery, what is outstanding is as good as cancelled. */
        return m->started && !m->ended && m->cancel_requested == m->cancel_delivered &&
               message->execution == 1 && scheduled != NULL && scheduled->kind == EVENT_ACTIVITY_SCHEDULED &&
               scheduled->resolved_by == EVENT_UNKNOWN;
    default: break;
    }
    return false;
}

static bool is_effect_of(const struct event *event, const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_START:
        return event->kind == EVENT_STARTED && thole_slice_equal(event->request_id, message->request_id) &&
               thole_slice_equal(event->name, message->orchestration) &&
               thole_slice_equal(event->data, message->data);
    case MESSAGE_CANCEL:
        return event->kind == EVENT_CANCEL_REQUESTED &&
               thole_slice_equal(event->request_id, message->request_id) &&
               thole_slice_equal(event->data, message->data);
    case MESSAGE_ACTIVITY_RESULT:
        if (event->ref != message->task || !thole_slice_equal(event->data, message->data))
            return false;
        return message->status == THOLE_OK
                   ? event->kind == EVENT_ACTIVITY_COMPLETED
                   : event->kind == EVENT_ACTIVITY_FAILED && event->code == message->status;
    default: break;
    }
    return false;
}

/* ---- events ----------------------------------------------------------------------------------------------
 */

static void resolve(struct world *w, size_t instance, const struct event *e, enum event_kind what,
                    uint64_t time_ms)
{
    struct model_event *target = find_event(&w->model->instances[instance], e->ref);
    if (target == NULL || target->kind != what) {
        broken(w, "%.*s#%" PRIu64 " %s: there is no %s with id %" PRIu64, THOLE_FMT(w->instances[instance]),
               e->id, event_kind_name(e->kind), event_kind_name(what), e->ref);
        return;
    }
    if (target->resolved_by != EVENT_UNKNOWN)
        broken(w, "%.*s#%" PRIu64 " %s: #%" PRIu64 " was resolved by %s already",
               THOLE_FMT(w->instances[instance]), e->id, event_kind_name(e->kind), e->ref,
               event_kind_name(target->resolved_by));
    if (e->kind == EVENT_TIMER_FIRED && time_ms < target->due_ms)
        broken(w, "%.*s#%" PRIu64 ": fired %" PRIu64 " ms early", THOLE_FMT(w->instances[instance]), e->id,
               target->due_ms - time_ms);
    target->resolved_by = e->kind;
    target->resolved_sequence = w->model->partitions[instance_partition(w, instance)].sequence;
}

static void check_end(struct world *w, size_t instance)
{
    const struct model_instance *m = &w->model->instances[instance];
    for (size_t i = 0; i < m->events_len; i++) {
        enum event_kind const kind = m->events[i].kind;
        if ((kind == EVENT_ACTIVITY_SCHEDULED || kind == EVENT_TIMER_CREATED) &&
            m->events[i].resolved_by == EVENT_UNKNOWN)
            broken(w, "%.*s ended with #%zu outstanding", THOLE_FMT(w->instances[instance]), i + 1);
    }
}

static void apply_event(struct world *w, size_t instance, const struct event *e, uint64_t time_ms)
{
    struct model_instance *m = &w->model->instances[instance];
    if (e->id != m->events_len + 1 || m->ended || m->started != (e->id > 1) ||
        (e->kind == EVENT_STARTED) != (e->id == 1)) {
        broken(w, "%.*s: event #%" PRIu64 " %s after %zu events", THOLE_FMT(w->instances[instance]), e->id,
               event_kind_name(e->kind), m->events_len);
        return;
    }
    m->events = grown(w, m->events, m->events_len, &m->events_cap, sizeof *m->events);
    m->events[m->events_len++] =
        (struct model_event){.kind = e->kind,
                             .ref = e->ref,
                             .due_ms = e->due_ms,
                             .sequence = w->model->partitions[instance_partition(w, instance)].sequence,
                             .name = keep_slice(w, e->name),
                             .queue = keep_slice(w, e->queue),
                             .data = keep_slice(w, e->data)};
    switch (e->kind) {
    case EVENT_UNKNOWN: broken(w, "an unknown event kind was written"); break;
    case EVENT_STARTED:
        m->started = true;
        m->orchestration = keep_slice(w, e->name);
        m->request_id = keep_slice(w, e->request_id);
        break;
    case EVENT_ACTIVITY_SCHEDULED:
    case EVENT_TIMER_CREATED: break;
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_ACTIVITY_FAILED:
    case EVENT_ACTIVITY_CANCELLED: resolve(w, instance, e, EVENT_ACTIVITY_SCHEDULED, time_ms); break;
    case EVENT_TIMER_FIRED:
    case EVENT_TIMER_CANCELLED: resolve(w, instance, e, EVENT_TIMER_CREATED, time_ms); break;
    case EVENT_CANCEL_REQUESTED:
        if (m->cancel_requested)
            broken(w, "%.*s: cancelled twice", THOLE_FMT(w->instances[instance]));
        m->cancel_requested = true;
        break;
    case EVENT_COMPLETED:
    case EVENT_FAILED:
    case EVENT_CANCELLED:
        m->ended = true;
        m->terminal = e->kind;
        check_end(w, instance);
        break;
    default: break;
    }
}

/* ---- turns -----------------------------------------------------------------------------------------------
 */

/* Timers that come first among the received events; they have no message. */
static size_t apply_timers(struct world *w, size_t instance, const struct turn *turn, size_t from)
{
    while (from < turn->events_len &&
           (turn->events[from].kind == EVENT_TIMER_FIRED || turn->events[from].kind == EVENT_VERSION_CHOSEN))
        apply_event(w, instance, &turn->events[from++], turn->time_ms);
    return from;
}

/* Every message that this record's position newly takes in has exactly the effect that it must have. */
static size_t apply_messages(struct world *w, uint32_t p, size_t instance, const struct turn *turn,
                             const struct position *position)
{
    const struct position *before = &w->model->partitions[p].position;
    const struct inbox_stream *inbox = w->inboxes[p];
    uint64_t const last =
        position->above_len > 0 ? position->above[position->above_len - 1] : position->floor;
    size_t next = 0;
    if (last > inbox->len)
        broken(w, "partition %u: position %" PRIu64 ", the inbox ends at %zu", p, last, inbox->len);
    for (uint64_t s = before->floor + 1; s <= last && s <= inbox->len && !is_broken(w); s++) {
        const struct inbox_entry *entry = &inbox->entries[s - 1];
        if (!incorporated(position, s) || incorporated(before, s) || !entry->valid)
            continue;
        if (entry->instance == instance)
            next = apply_timers(w, instance, turn, next);
        if (!accepted(w, entry->instance, &entry->message))
            continue;
        if (entry->instance != instance || next == turn->events_len ||
            !is_effect_of(&turn->events[next], &entry->message)) {
            broken(w,
                   "inbox message %u/%" PRIu64 " (kind %d #%" PRIu64
                   ") for %.*s was taken in without its effect by turn %" PRIu64
                   " of %.*s, whose next event is %s",
                   p, s, (int)entry->message.kind, entry->message.task,
                   THOLE_FMT(w->instances[entry->instance]), turn->number, THOLE_FMT(turn->instance),
                   next < turn->events_len ? event_kind_name(turn->events[next].kind) : "none");
            return next;
        }
        apply_event(w, instance, &turn->events[next++], turn->time_ms);
    }
    return next;
}

static void replay(struct world *w, size_t instance, const struct turn *turn)
{
    struct model_instance *m = &w->model->instances[instance];
    thole_error err = {0};
    if (m->replay == NULL) {
        struct instance_options const options = {.code = orchestration_code(m->orchestration),
                                                 .id = w->instances[instance],
                                                 .execution = 1,
                                                 .memory_max = (size_t)16 << 20,
                                                 .payload_max = THOLE_PAYLOAD_BYTES_DEFAULT,
                                                 .stacks = w->stacks};
        if (instance_create(&options, &m->replay) != THOLE_OK) {
            broken(w, "out of memory");
            return;
        }
    }
    thole_status const status = instance_replay(m->replay, turn, &err);
    if (status != THOLE_OK)
        broken(w, "%.*s turn %" PRIu64 ": the counted history does not replay: %s: %s",
               THOLE_FMT(w->instances[instance]), turn->number, thole_status_name(status), err.text);
    else if (m->ended != instance_ended(m->replay))
        broken(w, "%.*s: replay and history differ on whether it has ended",
               THOLE_FMT(w->instances[instance]));
    if (m->ended) { /* its stack is not needed any more */
        instance_destroy(m->replay);
        m->replay = NULL;
    }
}

static void apply_turn(struct world *w, uint32_t p, size_t instance, const struct turn *turn,
                       const struct position *position, uint64_t sequence)
{
    struct model_instance *m = &w->model->instances[instance];
    if (turn->number != m->turns + 1 || turn->execution != 1 || turn->time_ms < m->time_ms || m->ended) {
        broken(w, "%.*s: turn %" PRIu64 " after turn %" PRIu64 "%s", THOLE_FMT(w->instances[instance]),
               turn->number, m->turns, m->ended ? ", which ended it" : "");
        return;
    }
    size_t next = apply_messages(w, p, instance, turn, position);
    next = apply_timers(w, instance, turn, next);
    for (; next < turn->events_len && !is_broken(w); next++) {
        if (event_is_received(turn->events[next].kind)) {
            broken(w, "%.*s#%" PRIu64 " %s: no message says so", THOLE_FMT(w->instances[instance]),
                   turn->events[next].id, event_kind_name(turn->events[next].kind));
            return;
        }
        if (!turn->ran)
            broken(w, "%.*s#%" PRIu64 ": the code did not run, who asked for it?",
                   THOLE_FMT(w->instances[instance]), turn->events[next].id);
        apply_event(w, instance, &turn->events[next], turn->time_ms);
    }
    if (is_broken(w))
        return;
    m->cancel_delivered = m->cancel_delivered || (turn->ran && m->cancel_requested);
    m->turns = turn->number;
    m->time_ms = turn->time_ms;
    m->created_ms = turn->number == 1 ? turn->time_ms : m->created_ms;
    m->history_seq = sequence;
    m->turn_seqs = grown(w, m->turn_seqs, m->turn_seqs_len, &m->turn_seqs_cap, sizeof *m->turn_seqs);
    m->turn_seqs[m->turn_seqs_len++] = sequence;
    m->blocked = turn->blocked;
    w->stats.turns++;
    w->stats.blocked += turn->blocked != BLOCKED_NOT;
    replay(w, instance, turn);
}

static void drop_parts(struct world *w, struct log_stream *log)
{
    struct model_partition *part = &w->model->partitions[log->partition];
    if (part->part_of == SIZE_MAX)
        return;
    for (size_t i = part->part_from; i < log->len; i++)
        if (log->entries[i].counts && log->entries[i].kind == RECORD_TURN)
            log->entries[i].part_dropped = true;
    w->stats.parts_dropped++;
    w->model->instances[part->part_of].part_events_len = 0;
    part->part_of = SIZE_MAX;
}

/* Joins the parts of a turn; true when it is whole. */
static bool join(struct world *w, struct log_stream *log, size_t instance, struct turn *turn)
{
    struct model_partition *part = &w->model->partitions[log->partition];
    struct model_instance *m = &w->model->instances[instance];
    if (part->part_of != SIZE_MAX && (part->part_of != instance || part->part_number != turn->number)) {
        broken(w, "partition %u: a turn in parts was interrupted", log->partition);
        return false;
    }
    if (part->part_of == SIZE_MAX && !turn->more)
        return true;
    if (part->part_of == SIZE_MAX)
        part->part_from = log->len - 1;
    part->part_of = instance;
    part->part_number = turn->number;
    for (size_t i = 0; i < turn->events_len; i++) {
        m->part_events =
            grown(w, m->part_events, m->part_events_len, &m->part_events_cap, sizeof *m->part_events);
        m->part_events[m->part_events_len++] = turn->events[i];
    }
    if (turn->more)
        return false;
    w->stats.parts++;
    turn->events = m->part_events;
    turn->events_len = m->part_events_len;
    m->part_events = NULL;
    m->part_events_len = m->part_events_cap = 0;
    part->part_of = SIZE_MAX;
    return true;
}

static void show(struct world *w, const struct turn *turn)
{
    struct buf text;
    buf_init(&text, 4096);
    for (size_t i = 0; i < turn->events_len && w->verbose; i++) {
        buf_clear(&text);
        event_render(&turn->events[i], &text);
        printf("             %.*s %s\n", THOLE_FMT(turn->instance), buf_cstr(&text));
    }
    buf_release(&text);
}

static void on_turn(struct world *w, struct log_stream *log, const struct log_entry *entry,
                    struct record *record)
{
    struct model_partition *part = &w->model->partitions[log->partition];
    if (entry->instance == SIZE_MAX ||
        !thole_slice_equal(record->turn.instance, w->instances[entry->instance]) ||
        record->turn.execution != entry->execution) {
        broken(w, "partition %u: record %" PRIu64 " and its subject disagree", log->partition,
               entry->sequence);
        return;
    }
    show(w, &record->turn);
    if (!join(w, log, entry->instance, &record->turn))
        return;
    check_position(w, log->partition, &part->position, &record->position);
    apply_turn(w, log->partition, entry->instance, &record->turn, &record->position, entry->sequence);
    part->position = record->position;
}

static void on_epoch_opened(struct world *w, struct log_stream *log, const struct record *record)
{
    struct model_partition *part = &w->model->partitions[log->partition];
    drop_parts(w, log);
    if (record->n != 0 || record->epoch <= part->epoch)
        broken(w, "partition %u: epoch %" PRIu64 " opened after epoch %" PRIu64, log->partition,
               record->epoch, part->epoch);
    if (record->previous_epoch != part->epoch || record->previous_n != part->n)
        broken(w,
               "partition %u: epoch %" PRIu64 " says that %" PRIu64 "/%" PRIu64
               " is the last that counts, it is %" PRIu64 "/%" PRIu64,
               log->partition, record->epoch, record->previous_epoch, record->previous_n, part->epoch,
               part->n);
    if (record->position.floor != part->position.floor ||
        record->position.above_len != part->position.above_len)
        broken(w, "partition %u: epoch %" PRIu64 " starts at another inbox position", log->partition,
               record->epoch);
    part->epoch = record->epoch;
    part->n = 0;
    while (part->counted_len <= part->epoch && !is_broken(w)) {
        part->counted = grown(w, part->counted, part->counted_len, &part->counted_cap, sizeof *part->counted);
        part->counted[part->counted_len++] = 0;
    }
}

void checks_on_append(struct world *w, struct log_stream *log, struct log_entry *entry)
{
    struct model_partition *part = &w->model->partitions[log->partition];
    struct record record;
    thole_error err = {0};
    static const struct turn no_turn;
    if (record_decode(entry->bytes, &w->memory, &record, &err) != THOLE_OK || record.kind != entry->kind) {
        broken(w, "partition %u: record %" PRIu64 " is malformed: %s", log->partition, entry->sequence,
               err.text);
        return;
    }
    entry->epoch = record.epoch;
    entry->n = record.n;
    part->sequence = entry->sequence;
    trace(w, "hist.%u #%" PRIu64 ": kind %d %" PRIu64 "/%" PRIu64 " inbox %" PRIu64 "+%zu %.*s turn %" PRIu64,
          log->partition, entry->sequence, (int)record.kind, record.epoch, record.n, record.position.floor,
          record.position.above_len, THOLE_FMT(record.turn.instance), record.turn.number);
    if (record.kind == RECORD_EPOCH_OPENED) {
        entry->counts = true;
        on_epoch_opened(w, log, &record);
    } else if (record.epoch == part->epoch && record.n == part->n + 1) {
        entry->counts = true;
        part->n = record.n;
        part->counted[part->epoch] = record.n;
        if (record.committed >= record.n)
            broken(w, "partition %u: record %" PRIu64 " claims to be committed", log->partition, record.n);
        if (record.kind == RECORD_TURN) {
            on_turn(w, log, entry, &record);
        } else if (part->part_of != SIZE_MAX) {
            broken(w, "partition %u: a turn in parts was interrupted by a position", log->partition);
        } else {
            check_position(w, log->partition, &part->position, &record.position);
            apply_messages(w, log->partition, SIZE_MAX, &no_turn, &record.position);
            part->position = record.position;
        }
    } else {
        w->stats.void_records++;
    }
    if (entry->counts)
        part->last_counted_seq = entry->sequence;
}
