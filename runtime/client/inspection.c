/* The open tasks of an instance: replays records of one execution without code, as far as a point. */
#include "inspection.h"
#include "client_internal.h"
#include "instance.h"
#include "memory.h"
#include "turn_list.h"
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HISTORY_BYTES_MAX = 256 * 1024 * 1024 };

struct fact { /* a requesting event, by id */
    uint64_t id, time_ms;
    const struct event *event;
};

struct inspection {
    thole_inspect_point point;
    struct buf id;
    struct arena arena;
    struct buf records;    /* struct record */
    struct turn_list list; /* of these */
    struct instance *machine;
    struct buf facts; /* struct fact, ascending */
    const struct event *started, *end;
    uint64_t last_event, time_ms; /* of what was replayed */
    uint64_t latest;              /* execution of which there is a record, wanted or not */
};

static size_t facts_len(const struct inspection *in)
{
    return in->facts.len / sizeof(struct fact);
}

static thole_status no_memory(thole_error *reterr)
{
    return thole_fail(reterr, THOLE_NOMEM, "out of memory for a history");
}

struct inspection *inspection_create(thole_slice instance, const thole_inspect_point *point)
{
    struct inspection *in = memory_new(sizeof *in);
    if (point != NULL)
        in->point = *point;
    buf_init(&in->id, THOLE_ID_BYTES_MAX);
    buf_slice(&in->id, instance);
    arena_init(&in->arena, HISTORY_BYTES_MAX);
    buf_init(&in->records, HISTORY_BYTES_MAX);
    buf_init(&in->facts, HISTORY_BYTES_MAX);
    return in;
}

void inspection_destroy(struct inspection *in)
{
    if (in == NULL)
        return;
    instance_destroy(in->machine);
    buf_release(&in->id);
    buf_release(&in->records);
    buf_release(&in->facts);
    arena_release(&in->arena);
    free(in);
}

/* ---- records ---- */

/* Whether it is of the execution and the time that are asked for. */
static bool inspection_is_wanted(const struct inspection *in, const struct turn *turn)
{
    const thole_inspect_point *point = &in->point;
    if (turn->execution == 0 || (point->execution != 0 && turn->execution != point->execution))
        return false;
    return point->time_ms == 0 || turn->time_ms <= point->time_ms;
}

thole_status inspection_take(struct inspection *in, thole_slice bytes, thole_error *reterr)
{
    struct record record;
    THOLE_TRY(history_decode(bytes, buf_bytes(&in->id), &in->arena, &record, reterr));
    if (record.kind == RECORD_TURN && record.turn.execution > in->latest)
        in->latest = record.turn.execution;
    if (record.kind != RECORD_TURN || !inspection_is_wanted(in, &record.turn))
        return THOLE_OK;
    if (buf_extend(&in->records, sizeof record) == NULL)
        return no_memory(reterr);
    in->list.records = (void *)in->records.ptr;
    turn_list_take(&in->list, &record);
    assert(in->list.len + in->list.held <= in->records.len / sizeof record);
    return THOLE_OK;
}

static bool first_turn_is_whole(const struct turn_list *list)
{
    for (size_t i = 0; i < list->len && list->records[i].turn.number == list->records[0].turn.number; i++)
        if (!list->records[i].turn.more)
            return true;
    return false;
}

bool inspection_has_turn(struct inspection *in)
{
    in->list.held = 0;
    if (!first_turn_is_whole(&in->list))
        in->list.len = 0;
    return in->list.len > 0;
}

/* ---- replaying ---- */

static bool inspection_asks(const struct event *event)
{
    return event->kind == EVENT_ACTIVITY_SCHEDULED || event->kind == EVENT_TIMER_CREATED ||
           event->kind == EVENT_EVENT_AWAITED || event->kind == EVENT_CHILD_SCHEDULED;
}

static thole_status note_fact(struct inspection *in, const struct turn *turn, const struct event *event,
                              thole_error *reterr)
{
    struct fact const fact = {event->id, turn->time_ms, event};
    buf_append(&in->facts, &fact, sizeof fact);
    return buf_status(&in->facts) == THOLE_OK ? THOLE_OK : no_memory(reterr);
}

static thole_status inspection_take_turn(struct inspection *in, const struct turn *turn, thole_error *reterr)
{
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *event = &turn->events[i];
        if (inspection_asks(event))
            THOLE_TRY(note_fact(in, turn, event, reterr));
        else if (event->kind == EVENT_STARTED)
            in->started = event;
        else if (event_is_terminal(event->kind))
            in->end = event;
        in->last_event = event->id;
    }
    in->time_ms = turn->time_ms;
    return instance_replay(in->machine, turn, reterr);
}

/* Cuts events after the point off the turn. False: all of the turn is. */
static bool cut_turn(const struct inspection *in, struct turn *turn)
{
    uint64_t const last = in->point.event;
    if (last == 0)
        return true;
    while (turn->events_len > 0 && turn->events[turn->events_len - 1].id > last)
        turn->events_len--;
    return turn->events_len > 0;
}

static thole_status inspection_replay(struct inspection *in, size_t payload_max, thole_error *reterr)
{
    struct instance_options const options = {.id = buf_bytes(&in->id),
                                             .execution = in->list.records[0].turn.execution,
                                             .memory_max = HISTORY_BYTES_MAX,
                                             .payload_max = payload_max,
                                             .quarantine_ms = UINT64_MAX};
    assert(in->list.len > 0 && in->machine == NULL);
    in->machine = instance_create(&options);
    for (size_t first = 0; first < in->list.len;) {
        struct turn *turn = arena_alloc(&in->arena, sizeof *turn);
        size_t const parts = turn == NULL ? 0 : turn_list_join(&in->list, first, &in->arena, turn);
        if (parts == 0)
            return no_memory(reterr);
        if (turn->more) /* the last part was never written: it does not count */
            break;
        if (turn->events_len > 0 && !cut_turn(in, turn))
            break;
        THOLE_TRY(inspection_take_turn(in, turn, reterr));
        first += parts;
    }
    if (in->last_event < in->point.event)
        return thole_fail(reterr, THOLE_NOT_FOUND,
                          "execution %" PRIu64 " of \"%.*s\" has no event %" PRIu64
                          ": its last one is %" PRIu64,
                          options.execution, THOLE_FMT(options.id), in->point.event, in->last_event);
    return THOLE_OK;
}

/* ---- saying it ---- */

static const struct fact *fact_of(const struct inspection *in, uint64_t id)
{
    const struct fact *const facts = (const void *)in->facts.ptr;
    size_t const len = facts_len(in);
    size_t low = 0, high = len;
    while (low < high) {
        size_t const middle = low + (high - low) / 2;
        if (facts[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < len && facts[low].id == id ? &facts[low] : NULL;
}

static thole_pending_kind kind_of(const struct event *event)
{
    switch (event->kind) {
    case EVENT_ACTIVITY_SCHEDULED: return THOLE_PENDING_ACTIVITY;
    case EVENT_TIMER_CREATED: return THOLE_PENDING_TIMER;
    case EVENT_CHILD_SCHEDULED: return THOLE_PENDING_CHILD;
    default: return THOLE_PENDING_EVENT;
    }
}

static thole_pending pending_of(const struct fact *fact, const struct outstanding *state)
{
    const struct event *event = fact->event;
    thole_pending_kind const kind = kind_of(event);
    return (thole_pending){.kind = kind,
                           .id = fact->id,
                           .name = event->name,
                           .queue = event->queue,
                           .instance = event->target,
                           .try_number = state->try_number,
                           .waiting = state->waiting,
                           .quarantined = state->quarantined,
                           .asked_for_ms = fact->time_ms,
                           .due_ms = kind == THOLE_PENDING_TIMER ? event->due_ms : state->due_ms};
}

static thole_instance_status inspection_status_of(const struct inspection *in)
{
    if (in->end != NULL)
        return in->end->kind == EVENT_CONTINUED_AS_NEW ? THOLE_INSTANCE_CONTINUED_AS_NEW
                                                       : end_status(in->end->kind);
    return instance_paused(in->machine) ? THOLE_INSTANCE_PAUSED : THOLE_INSTANCE_RUNNING;
}

static int by_first(const void *a, const void *b)
{
    const struct kept_name *const x = a, *const y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Of the arena. NULL: no memory. */
static const thole_kept_event *kept_events(struct inspection *in, size_t *ret_len)
{
    size_t const n = in->end != NULL ? 0 : instance_kept_names(in->machine, NULL, 0);
    struct kept_name *const names = arena_array(&in->arena, n + 1, sizeof *names);
    thole_kept_event *const events = arena_array(&in->arena, n + 1, sizeof *events);
    *ret_len = n;
    if (names == NULL || events == NULL)
        return NULL;
    (void)instance_kept_names(in->machine, names, n);
    qsort(names, n, sizeof *names, by_first);
    for (size_t i = 0; i < n; i++)
        events[i] = (thole_kept_event){names[i].name, names[i].count};
    return events;
}

static thole_status inspection_report(struct inspection *in, thole_inspection_fn *each, void *arg,
                                      thole_error *reterr)
{
    struct outstanding state;
    size_t cursor = 0, n = 0, kept_len = 0;
    thole_pending *pending = arena_array(&in->arena, facts_len(in) + 1, sizeof *pending);
    const thole_kept_event *const kept = kept_events(in, &kept_len);
    if (pending == NULL || kept == NULL)
        return no_memory(reterr);
    while (in->end == NULL && instance_outstanding(in->machine, &cursor, &state)) {
        const struct fact *fact = fact_of(in, state.id);
        if (fact == NULL)
            continue;
        assert(n < facts_len(in)); /* each is told of once */
        pending[n++] = pending_of(fact, &state);
    }
    thole_inspection const inspection = {
        .orchestration = instance_orchestration(in->machine),
        .execution = in->list.records[0].turn.execution,
        .version = instance_version(in->machine),
        .status = inspection_status_of(in),
        .input = in->started == NULL ? (thole_slice){NULL, 0} : in->started->data,
        .output = in->end == NULL ? (thole_slice){NULL, 0} : in->end->data,
        .error_type = in->end == NULL ? (thole_slice){NULL, 0} : in->end->error_type,
        .pending = pending,
        .pending_len = n,
        .kept = kept,
        .kept_len = kept_len,
        .custom_status = instance_custom_status(in->machine),
        .turns = instance_turns(in->machine),
        .event = in->last_event,
        .time_ms = in->time_ms,
        .input_redacted = in->started != NULL && in->started->data_erased,
        .output_redacted = in->end != NULL && in->end->data_erased};
    return each(arg, &inspection);
}

static thole_status not_begun(const struct inspection *in, thole_error *reterr)
{
    uint64_t const execution = in->point.execution;
    if (execution != 0 && in->latest > 0 && execution != in->latest)
        return thole_fail(reterr, THOLE_NOT_FOUND,
                          "\"%.*s\" has no execution %" PRIu64 ", or it was pruned: its latest is %" PRIu64,
                          THOLE_FMT(buf_bytes(&in->id)), execution, in->latest);
    return thole_fail(reterr, THOLE_NOT_FOUND, "\"%.*s\" had not begun%s", THOLE_FMT(buf_bytes(&in->id)),
                      in->point.time_ms != 0 ? " then" : ": its first turn is not there");
}

thole_status inspection_end(struct inspection *in, size_t payload_max, thole_inspection_fn *each, void *arg,
                            thole_error *reterr)
{
    if (!inspection_has_turn(in))
        return not_begun(in, reterr);
    THOLE_TRY(inspection_replay(in, payload_max, reterr));
    return inspection_report(in, each, arg, reterr);
}
