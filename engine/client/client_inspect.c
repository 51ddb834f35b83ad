/* The unresolved tasks of an instance: replays the history of its latest execution without code. */
#include "client_internal.h"
#include "instance.h"
#include "turn_list.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HISTORY_BYTES_MAX = 256 * 1024 * 1024 };

struct fact { /* what asked for something, by id */
    uint64_t id, time_ms;
    const struct event *event;
};

struct inspecting {
    thole_slice instance;
    struct arena arena;
    struct buf records;    /* struct record */
    struct turn_list list; /* of these */
    struct instance *machine;
    struct buf facts; /* struct fact, ascending */
    const struct event *started, *end;
    bool paused;
    thole_error *reterr;
};

static size_t facts_len(const struct inspecting *in)
{
    return in->facts.len / sizeof(struct fact);
}

static thole_status no_memory(thole_error *reterr)
{
    return thole_fail(reterr, THOLE_NOMEM, "out of memory for a history");
}

/* ---- reading ---- */

static thole_status take_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct inspecting *in = arg;
    struct record record;
    (void)sequence;
    THOLE_TRY(history_decode(bytes, in->instance, &in->arena, &record, in->reterr));
    if (record.kind != RECORD_TURN || record.turn.execution == 0)
        return THOLE_OK;
    if (buf_extend(&in->records, sizeof record) == NULL)
        return no_memory(in->reterr);
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

/* The latest execution. Its first turn may not be whole: then the one before it is what counts. */
static thole_status read_latest(struct thole_client *client, struct inspecting *in, thole_error *reterr)
{
    uint64_t execution = 0;
    THOLE_TRY(history_latest(client, in->instance, &execution, reterr));
    for (; execution > 0 && in->list.len == 0; execution--) {
        thole_status const status =
            client_execution_records(client, in->instance, execution, take_record, in, reterr);
        if (status != THOLE_OK && status != THOLE_NOT_FOUND)
            return status;
        in->list.held = 0;
        if (!first_turn_is_whole(&in->list))
            in->list.len = 0;
    }
    if (in->list.len > 0)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_NOT_FOUND, "there is no instance \"%.*s\" in namespace %s",
                      THOLE_FMT(in->instance), client->topology.ns);
}

/* ---- replaying ---- */

static bool asks(const struct event *event)
{
    return event->kind == EVENT_ACTIVITY_SCHEDULED || event->kind == EVENT_TIMER_CREATED ||
           event->kind == EVENT_EVENT_AWAITED || event->kind == EVENT_CHILD_SCHEDULED;
}

static thole_status note_fact(struct inspecting *in, const struct turn *turn, const struct event *event)
{
    struct fact const fact = {event->id, turn->time_ms, event};
    buf_append(&in->facts, &fact, sizeof fact);
    return buf_status(&in->facts) == THOLE_OK ? THOLE_OK : no_memory(in->reterr);
}

static thole_status take_turn(struct inspecting *in, const struct turn *turn)
{
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *event = &turn->events[i];
        if (asks(event))
            THOLE_TRY(note_fact(in, turn, event));
        else if (event->kind == EVENT_STARTED)
            in->started = event;
        else if (event_is_terminal(event->kind))
            in->end = event;
    }
    return instance_replay(in->machine, turn, in->reterr);
}

static thole_status replay(struct thole_client *client, struct inspecting *in)
{
    struct instance_options const options = {.id = in->instance,
                                             .execution = in->list.records[0].turn.execution,
                                             .memory_max = HISTORY_BYTES_MAX,
                                             .payload_max = client->topology.payload_max,
                                             .quarantine_ms = UINT64_MAX};
    assert(in->list.len > 0 && in->machine == NULL);
    in->machine = instance_create(&options);
    for (size_t first = 0; first < in->list.len;) {
        struct turn *turn = arena_alloc(&in->arena, sizeof *turn);
        size_t const parts = turn == NULL ? 0 : turn_list_join(&in->list, first, &in->arena, turn);
        if (parts == 0)
            return no_memory(in->reterr);
        if (turn->more) /* its last part was never written: it does not count */
            break;
        THOLE_TRY(take_turn(in, turn));
        first += parts;
    }
    return THOLE_OK;
}

/* ---- saying it ---- */

static const struct fact *fact_of(const struct inspecting *in, uint64_t id)
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

static thole_instance_status status_of(const struct inspecting *in)
{
    if (in->end != NULL)
        return in->end->kind == EVENT_CONTINUED_AS_NEW ? THOLE_INSTANCE_CONTINUED_AS_NEW
                                                       : end_status(in->end->kind);
    return instance_paused(in->machine) ? THOLE_INSTANCE_PAUSED : THOLE_INSTANCE_RUNNING;
}

static thole_status say(struct inspecting *in, thole_inspection_fn *each, void *arg)
{
    struct outstanding state;
    size_t cursor = 0, n = 0;
    thole_pending *pending = arena_array(&in->arena, facts_len(in) + 1, sizeof *pending);
    if (pending == NULL)
        return no_memory(in->reterr);
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
        .status = status_of(in),
        .input = in->started == NULL ? (thole_slice){NULL, 0} : in->started->data,
        .output = in->end == NULL ? (thole_slice){NULL, 0} : in->end->data,
        .error_type = in->end == NULL ? (thole_slice){NULL, 0} : in->end->error_type,
        .pending = pending,
        .pending_len = n};
    return each(arg, &inspection);
}

thole_status thole_client_inspect(thole_client *client, thole_slice instance, thole_inspection_fn *each,
                                  void *arg, thole_error *reterr)
{
    struct inspecting in = {.instance = instance, .reterr = reterr};
    THOLE_TRY(id_check(instance, reterr));
    arena_init(&in.arena, HISTORY_BYTES_MAX);
    buf_init(&in.records, HISTORY_BYTES_MAX);
    buf_init(&in.facts, HISTORY_BYTES_MAX);
    thole_status status = read_latest(client, &in, reterr);
    if (status == THOLE_OK)
        status = replay(client, &in);
    if (status == THOLE_OK)
        status = say(&in, each, arg);
    instance_destroy(in.machine);
    buf_release(&in.records);
    buf_release(&in.facts);
    arena_release(&in.arena);
    return status;
}
