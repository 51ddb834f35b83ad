/* The independent reader: the log rule of design section 4, written from the text. */
#include "checks.h"
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
        for (size_t k = 0; k < model->instances[i].executions_len; k++)
            instance_destroy(model->instances[i].executions[k].replay);
}

struct model_instance *model_of(const struct world *w, size_t instance)
{
    return &w->model->instances[instance];
}

struct model_execution *model_current(struct model_instance *m)
{
    return m->executions_len == m->gone ? NULL : &m->executions[m->executions_len - 1];
}

struct model_execution *model_execution(struct model_instance *m, uint64_t execution)
{
    if (execution == 0)
        return &m->early;
    return execution <= m->executions_len ? &m->executions[execution - 1] : NULL;
}

const struct model_event *model_find(const struct world *w, size_t instance, uint64_t execution, uint64_t id)
{
    if (instance >= w->instances_len)
        return NULL;
    const struct model_execution *x = model_execution(model_of(w, instance), execution);
    return x != NULL && id >= 1 && id <= x->events_len ? &x->events[id - 1] : NULL;
}

bool model_damaged(const struct world *w, thole_slice instance)
{
    size_t const i = instance_index(w, instance);
    return i != SIZE_MAX && model_of(w, i)->damaged;
}

bool model_may_be_damaged(const struct world *w, const struct log_stream *log, const struct log_entry *entry)
{
    const struct model_partition *part = &w->model->partitions[log->partition];
    if (!entry->whole || entry->deleted || entry->instance >= w->client_instances_len)
        return false;
    struct model_instance *m = model_of(w, entry->instance);
    const struct model_execution *x = model_current(m);
    return (entry->epoch < part->epoch || entry->n <= part->known) && !m->damaged && x != NULL && !x->ended &&
           m->parent.instance.len == 0 && entry->sequence > m->deleted_seq;
}

/* ---- the inbox position ---- */

bool model_incorporated(const struct position *position, uint64_t sequence)
{
    if (sequence <= position->floor)
        return true;
    for (size_t i = 0; i < position->ranges_len; i++)
        if (position->ranges[i].first <= sequence && sequence <= position->ranges[i].last)
            return true;
    return false;
}

uint64_t model_last_needed(const struct world *w, const struct inbox_stream *inbox)
{
    const struct model_partition *part = &w->model->partitions[inbox->partition];
    uint64_t last = inbox->len;
    while (!part->stale && last >= inbox->first && model_incorporated(&part->position, last))
        last--;
    return last;
}

/* The message that the position names as seen was stored there, and nothing above it is incorporated. */
static void check_seen(struct world *w, uint32_t p, const struct position *position)
{
    const struct inbox_stream *inbox = w->inboxes[p];
    uint64_t const top =
        position->ranges_len > 0 ? position->ranges[position->ranges_len - 1].last : position->floor;
    if (position->seen < top)
        broken(w, "partition %u: position %" PRIu64 ", but only %" PRIu64 " was seen", p, top,
               position->seen);
    if (!w->model->partitions[p].stale && position->seen > 0 &&
        (position->seen > inbox->len || inbox->entries[position->seen - 1].stored_ns != position->seen_ns))
        broken(w, "partition %u: inbox message %" PRIu64 " was not stored at %" PRIu64, p, position->seen,
               position->seen_ns);
}

static void take_position(struct world *w, struct model_partition *part, const struct position *position,
                          uint64_t sequence)
{
    part->position = *position;
    part->positions =
        grown(w, part->positions, part->positions_len, &part->positions_cap, sizeof *part->positions);
    part->positions[part->positions_len++] = (struct model_position){.sequence = sequence, .says = *position};
}

void model_position_lost(struct model_partition *part, uint64_t sequence)
{
    for (size_t i = 0; i < part->positions_len; i++)
        part->positions[i].lost |= part->positions[i].sequence == sequence;
}

/* Of the last record of the epoch that decodes; NULL: the last one does. */
static const struct position *position_before_lost(const struct model_partition *part)
{
    size_t at = part->positions_len;
    while (at > 0 && part->positions[at - 1].lost)
        at--;
    return at == part->positions_len ? NULL : at > 0 ? &part->positions[at - 1].says : NULL;
}

static bool same_position(const struct position *a, const struct position *b)
{
    return a->floor == b->floor && a->ranges_len == b->ranges_len && a->seen == b->seen &&
           a->seen_ns == b->seen_ns;
}

static void check_position(struct world *w, uint32_t p, const struct position *before,
                           const struct position *position)
{
    check_seen(w, p, position);
    if (position->floor < before->floor)
        broken(w, "partition %u: the inbox floor went back from %" PRIu64 " to %" PRIu64, p, before->floor,
               position->floor);
    for (size_t i = 0; i < before->ranges_len; i++)
        for (uint64_t s = before->ranges[i].first; s <= before->ranges[i].last; s++)
            if (!model_incorporated(position, s))
                broken(w, "partition %u: inbox message %" PRIu64 " is no longer incorporated", p, s);
    uint64_t last = position->floor;
    for (size_t i = 0; i < position->ranges_len; last = position->ranges[i++].last)
        if (position->ranges[i].first <= last + 1 || position->ranges[i].last < position->ranges[i].first)
            broken(w, "partition %u: the position is malformed", p);
}

/* ---- turns ---- */

static void drop_parts(struct world *w, struct log_stream *log)
{
    struct model_partition *part = &w->model->partitions[log->partition];
    if (part->part_of == SIZE_MAX)
        return;
    for (size_t i = part->part_from; i < log->len; i++)
        if (log->entries[i].counts && log->entries[i].kind == RECORD_TURN)
            log->entries[i].part_dropped = true;
    w->stats.parts_dropped++;
    model_of(w, part->part_of)->part_events_len = 0;
    part->part_of = SIZE_MAX;
}

/* Joins the parts of a turn; true when it is whole. */
static bool join(struct world *w, struct log_stream *log, size_t instance, struct turn *turn)
{
    struct model_partition *part = &w->model->partitions[log->partition];
    struct model_instance *m = model_of(w, instance);
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
    if (w->verbose && !turn->ran)
        printf("             %.*s/%" PRIu64 " did not run: %d %.*s\n", THOLE_FMT(turn->instance),
               turn->execution, (int)turn->blocked, THOLE_FMT(turn->blocked_text));
    for (size_t i = 0; i < turn->events_len && w->verbose; i++) {
        buf_clear(&text);
        event_render(&turn->events[i], &text);
        printf("             %.*s/%" PRIu64 " %.160s\n", THOLE_FMT(turn->instance), turn->execution,
               buf_cstr(&text));
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
    bool const first = part->part_of == SIZE_MAX;
    if (!join(w, log, entry->instance, &record->turn))
        return;
    log->entries[log->len - 1].whole = first;
    check_position(w, log->partition, &part->position, &record->position);
    model_turn(w, log->partition, entry->instance, &record->turn, &record->position, entry->sequence);
    model_expect_events(w, entry->instance, &record->turn, entry->sequence);
    take_position(w, part, &record->position, entry->sequence);
}

static void on_deleted(struct world *w, struct log_stream *log, const struct log_entry *entry,
                       const struct record *record)
{
    struct model_partition *part = &w->model->partitions[log->partition];
    if (entry->instance == SIZE_MAX ||
        !thole_slice_equal(record->deletion.instance, w->instances[entry->instance])) {
        broken(w, "partition %u: record %" PRIu64 " and its subject disagree", log->partition,
               entry->sequence);
        return;
    }
    check_position(w, log->partition, &part->position, &record->position);
    model_deletion(w, log->partition, entry->instance, &record->deletion, &record->position, entry->sequence);
    model_expect_deleted(w, entry->instance, &record->deletion, entry->sequence);
    take_position(w, part, &record->position, entry->sequence);
}

/* ---- records ---- */

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
    if (record->counted != part->records)
        broken(w,
               "partition %u: epoch %" PRIu64 " says that %" PRIu64 " records count before it, not %" PRIu64,
               log->partition, record->epoch, record->counted, part->records);
    const struct position *position = &record->position;
    if (part->stale && position->floor == 0 && position->ranges_len == 0 && position->seen == 0) {
        part->stale = false;
        part->position = *position;
        w->stats.begun_again++;
    }
    const struct position *const before = position_before_lost(part);
    if (before != NULL && same_position(position, before))
        part->position = *position; /* the records that had another one do not decode any more */
    if (!same_position(position, &part->position))
        broken(w, "partition %u: epoch %" PRIu64 " starts at another inbox position", log->partition,
               record->epoch);
    part->epoch = record->epoch;
    part->positions_len = 0;
    take_position(w, part, position, 0);
    part->n = part->known = 0;
    while (part->epochs_len <= part->epoch && !is_broken(w)) {
        part->epochs = grown(w, part->epochs, part->epochs_len, &part->epochs_cap, sizeof *part->epochs);
        part->epochs[part->epochs_len++] = (struct model_epoch){.published = record->published};
    }
    model_published(w, log->partition, record->published);
}

/* A record that counts; what it says is taken for true. */
static void on_counted(struct world *w, struct log_stream *log, const struct log_entry *entry,
                       struct record *record)
{
    static const struct turn no_turn;
    struct model_partition *part = &w->model->partitions[log->partition];
    part->n = record->n;
    part->known = record->committed;
    part->epochs[part->epoch].counted = record->n;
    model_published(w, log->partition, record->published);
    if (record->committed >= record->n)
        broken(w, "partition %u: record %" PRIu64 " claims to be committed", log->partition, record->n);
    if (record->kind == RECORD_TURN) {
        on_turn(w, log, entry, record);
    } else if (record->kind == RECORD_DELETED && part->part_of == SIZE_MAX) {
        on_deleted(w, log, entry, record);
    } else if (part->part_of != SIZE_MAX) {
        broken(w, "partition %u: a turn in parts was interrupted by a position", log->partition);
    } else {
        check_position(w, log->partition, &part->position, &record->position);
        (void)model_messages(w, log->partition, SIZE_MAX, &no_turn, &record->position);
        take_position(w, part, &record->position, entry->sequence);
    }
}

/* ---- the links of records ---- */

/* A record that was damaged since is named by what it was, or by what it is for who has read it since. */
static void check_link(struct world *w, const struct log_stream *log, const struct model_link *link,
                       const struct record_hash *said, const char *of)
{
    static const struct record_hash none;
    if (!link->there) {
        if (memcmp(said, &none, sizeof none) != 0)
            broken(w, "partition %u: the first record of %s has one before it", log->partition, of);
        return;
    }
    struct record_hash const now =
        record_hash_make(THOLE_STR("sim"), log->partition, log->entries[link->sequence - 1].bytes);
    if (memcmp(said, &link->hash, sizeof *said) != 0 && memcmp(said, &now, sizeof now) != 0)
        broken(w, "partition %u: a record does not name #%" PRIu64 ", the last one of %s", log->partition,
               link->sequence, of);
}

/* Then its writer has given it salts. */
static bool has_payload(const struct turn *turn)
{
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *e = &turn->events[i];
        size_t const bytes =
            e->data.len + e->details.len + (e->kind == EVENT_ACTIVITY_QUARANTINED ? e->input.len : 0);
        bool const none = e->kind == EVENT_ORIGINS_CARRIED || e->kind == EVENT_UNKNOWN;
        if (bytes > 0 && !none)
            return true;
    }
    return false;
}

static void check_links(struct world *w, const struct log_stream *log, const struct log_entry *entry,
                        const struct record *record)
{
    struct model_partition *part = &w->model->partitions[log->partition];
    bool const salted = record->kind == RECORD_TURN && has_payload(&record->turn);
    struct model_link const link = {true, entry->sequence,
                                    model_hash_of(log->partition, entry->bytes, salted)};
    check_link(w, log, &part->newest, &record->previous, "the partition");
    part->newest = link;
    if (entry->instance == SIZE_MAX)
        return;
    struct model_instance *m = model_of(w, entry->instance);
    check_link(w, log, &m->newest, &record->previous_of_instance.hash, "the instance");
    if (record->previous_of_instance.sequence != (m->newest.there ? m->newest.sequence : 0))
        broken(w, "partition %u: a record says that the one of its instance before it is #%" PRIu64,
               log->partition, record->previous_of_instance.sequence);
    m->newest = link;
}

void checks_on_append(struct world *w, struct log_stream *log, struct log_entry *entry)
{
    struct model_partition *part = &w->model->partitions[log->partition];
    struct record record;
    thole_error err = {0};
    if (record_decode(entry->bytes, &w->memory, &record, &err) != THOLE_OK || record.kind != entry->kind) {
        broken(w, "partition %u: record %" PRIu64 " is malformed: %s", log->partition, entry->sequence,
               err.text);
        return;
    }
    entry->epoch = record.epoch;
    entry->n = record.n;
    entry->committed = record.committed;
    if (record.kind == RECORD_DELETED)
        entry->execution = record.deletion.execution;
    part->sequence = entry->sequence;
    trace(w,
          "hist.%u #%" PRIu64 ": kind %d %" PRIu64 "/%" PRIu64 " inbox %" PRIu64 "+%zu %.*s/%" PRIu64
          " turn %" PRIu64,
          log->partition, entry->sequence, (int)record.kind, record.epoch, record.n, record.position.floor,
          record.position.ranges_len, THOLE_FMT(record.turn.instance), record.turn.execution,
          record.turn.number);
    if (record.kind == RECORD_EPOCH_OPENED) {
        entry->counts = true;
        on_epoch_opened(w, log, &record);
    } else if (record.epoch == part->epoch && record.n == part->n + 1) {
        entry->counts = true;
        on_counted(w, log, entry, &record);
    } else {
        w->stats.void_records++;
    }
    if (entry->counts) {
        part->records++;
        check_links(w, log, entry, &record);
        part->last_counted_seq = entry->sequence;
    }
}
