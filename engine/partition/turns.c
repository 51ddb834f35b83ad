/* Messages and timers become turns, turns become records. */
#include "machine.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

const thole_orchestration_entry *turns_code(const struct partition *p, thole_slice orchestration)
{
    for (size_t i = 0; i < p->options.orchestrations_len; i++)
        if (thole_slice_equal(thole_slice_from(p->options.orchestrations[i].name), orchestration))
            return &p->options.orchestrations[i];
    return NULL;
}

struct slot *turns_slot(struct partition *p, thole_slice instance)
{
    struct slot *slot = slots_find(&p->slots, instance);
    if (slot != NULL) {
        slots_touch(&p->slots, slot);
        return slot;
    }
    slot = slots_add(&p->slots, instance);
    if (slot == NULL) {
        partition_no_memory(p);
        return NULL;
    }
    struct partition_out *out = partition_emit(p, PARTITION_OUT_LOAD);
    out->token = slot->token;
    out->instance = partition_out_copy(p, instance);
    return slot;
}

static void incorporate(struct partition *p, uint64_t sequence)
{
    if (sequence != 0 && progress_add(&p->progress, sequence) != THOLE_OK)
        partition_no_memory(p);
}

static void arrived(struct partition *p, struct slot *slot, struct pending *pending)
{
    slot_push(&p->slots, slot, pending);
    if (slot->state != SLOT_LOADING)
        slots_ready(&p->slots, slot);
}

static void reject(struct partition *p, uint64_t sequence, const char *text)
{
    struct partition_out *out = partition_emit(p, PARTITION_OUT_REJECTED);
    out->sequence = sequence;
    thole_slice const copy = partition_out_copy(p, thole_slice_from(text));
    out->text = copy.ptr == NULL ? "malformed" : (const char *)copy.ptr;
    incorporate(p, sequence);
}

/* The reader is gap-free: sequences that it skips do not exist (any more). */
static void skip_gap(struct partition *p, uint64_t next)
{
    struct progress *progress = &p->progress;
    if (progress->floor >= progress->received && progress->above_len == 0 && next > progress->floor + 1) {
        progress->floor = next - 1;
        progress->dirty = true;
    }
    for (uint64_t s = progress->received + 1; s < next; s++)
        incorporate(p, s);
}

void turns_message(struct partition *p, const struct partition_in *in)
{
    if (p->phase != PHASE_SERVING || in->sequence <= p->progress.received)
        return;
    skip_gap(p, in->sequence);
    p->progress.received = in->sequence;
    p->busy_ms = p->now_ms;
    if (progress_has(&p->progress, in->sequence))
        return;
    struct pending *pending = pending_create();
    if (pending == NULL) {
        partition_no_memory(p);
        return;
    }
    thole_error err = {0};
    thole_status status = message_decode(in->bytes, &pending->arena, &pending->message, &err);
    if (status == THOLE_OK && !thole_slice_equal(pending->message.instance, in->instance))
        status = thole_fail(&err, THOLE_CORRUPT, "the subject and the message name different instances");
    if (status != THOLE_OK) {
        pending_destroy(pending);
        if (status == THOLE_NOMEM)
            partition_no_memory(p);
        else
            reject(p, in->sequence, err.text);
        return;
    }
    pending->inbox_sequence = in->sequence;
    struct slot *slot = turns_slot(p, in->instance);
    if (slot == NULL)
        pending_destroy(pending);
    else
        arrived(p, slot, pending);
}

void turns_timer(struct partition *p, const struct timer_entry *timer)
{
    struct pending *pending = pending_create();
    struct slot *slot = pending == NULL ? NULL : turns_slot(p, timer->instance);
    if (slot == NULL) {
        pending_destroy(pending);
        partition_no_memory(p);
        return;
    }
    pending->execution = timer->execution;
    pending->timer_id = timer->timer_id;
    arrived(p, slot, pending);
}

/* --- what a pending thing means to an instance ------------------------------------------------------------
 */

static struct event event_of(const struct pending *pending)
{
    const struct message *m = &pending->message;
    if (pending->inbox_sequence == 0)
        return (struct event){.kind = EVENT_TIMER_FIRED, .ref = pending->timer_id};
    switch (m->kind) {
    case MESSAGE_START:
        return (struct event){.kind = EVENT_STARTED,
                              .name = m->orchestration,
                              .data = m->data,
                              .code = SEMANTICS_VERSION,
                              .request_id = m->request_id};
    case MESSAGE_ACTIVITY_RESULT:
        return (struct event){.kind =
                                  m->status == THOLE_OK ? EVENT_ACTIVITY_COMPLETED : EVENT_ACTIVITY_FAILED,
                              .ref = m->task,
                              .code = m->status,
                              .data = m->data};
    case MESSAGE_CANCEL:
        return (struct event){.kind = EVENT_CANCEL_REQUESTED, .data = m->data, .request_id = m->request_id};
    default: break;
    }
    return (struct event){0};
}

/* A start under an id in use: the same request again is told what it was told, another one is refused. */
static void answer_start(struct partition *p, const struct slot *slot, const struct message *m)
{
    bool const again = m->request_id.len > 0 && thole_slice_equal(m->request_id, slot->request_id);
    struct partition_out *out = partition_emit(p, PARTITION_OUT_EVENT);
    out->event_kind = again ? "started" : "rejected";
    out->orchestration = partition_out_copy(p, again ? slot->orchestration : m->orchestration);
    out->instance = partition_out_copy(p, slot->id);
    out->execution = slot->execution;
    out->request_id = partition_out_copy(p, m->request_id);
}

static bool wanted(struct partition *p, struct slot *slot, const struct pending *pending,
                   const struct event *event)
{
    if (slot->state == SLOT_ABSENT)
        return event->kind == EVENT_STARTED;
    if (event->kind == EVENT_STARTED) {
        answer_start(p, slot, &pending->message);
        return false;
    }
    uint64_t const execution = pending->inbox_sequence == 0 ? pending->execution : pending->message.execution;
    if (event->kind != EVENT_CANCEL_REQUESTED && execution != slot->execution)
        return false;
    if (slot->state == SLOT_ENDED)
        return false;
    if (event->kind == EVENT_CANCEL_REQUESTED && slot->cancel_requested)
        return false;
    return slot->state == SLOT_BLOCKED || instance_accepts(slot->instance, event);
}

enum {
    TAKEN_CELLS = 2 * TURN_RECEIVED_MAX + 47,
    INTAKE_BYTES_MAX = TURN_RECEIVED_MAX * sizeof(struct event) + TAKEN_CELLS * sizeof(uint64_t) + 4096
};

/* Two resolutions of one thing in one turn: the first counts. A cancel request has ref 0. */
static bool taken_before(uint64_t *cells, uint64_t ref)
{
    for (size_t at = ref % TAKEN_CELLS;; at = (at + 1) % TAKEN_CELLS) {
        if (cells[at] == ref + 1)
            return true;
        if (cells[at] == 0) {
            cells[at] = ref + 1;
            return false;
        }
    }
}

struct intake { /* what a turn takes in */
    struct event *events;
    size_t len;
    struct pending *taken; /* kept until the turn is recorded: events borrow from them */
};

/* A start under an id in use is answered when what it collides with is committed: nobody hears of what is
 * not. */
static bool must_wait(const struct slot *slot)
{
    return slot->first != NULL && slot->in_flight > 0 && slot->first->inbox_sequence != 0 &&
           slot->first->message.kind == MESSAGE_START;
}

static struct intake take(struct partition *p, struct slot *slot, struct arena *arena)
{
    struct intake intake = {.events = arena_array(arena, TURN_RECEIVED_MAX, sizeof *intake.events)};
    uint64_t *cells = arena_array(arena, TAKEN_CELLS, sizeof *cells);
    if (intake.events == NULL || cells == NULL) {
        partition_no_memory(p);
        return intake;
    }
    size_t bytes = 0;
    struct pending *pending;
    while (intake.len < TURN_RECEIVED_MAX && bytes < TURN_RECEIVED_BYTES_MAX && !must_wait(slot) &&
           (pending = slot_take(&p->slots, slot)) != NULL) {
        struct event const event = event_of(pending);
        incorporate(p, pending->inbox_sequence);
        if (!wanted(p, slot, pending, &event) || taken_before(cells, event.ref)) {
            pending_destroy(pending);
            continue;
        }
        bytes += event.data.len;
        intake.events[intake.len++] = event;
        pending->next = intake.taken;
        intake.taken = pending;
        if (event.kind == EVENT_STARTED)
            break; /* the instance exists from the next turn on */
    }
    return intake;
}

static void release(struct intake *intake)
{
    for (struct pending *next; intake->taken != NULL; intake->taken = next) {
        next = intake->taken->next;
        pending_destroy(intake->taken);
    }
}

/* --- turns -------------------------------------------------------------------------------------------------
 */

static void block(struct slot *slot, enum blocked_kind kind, thole_slice text)
{
    instance_destroy(slot->instance);
    slot->instance = NULL;
    slot->state = SLOT_BLOCKED;
    slot->blocked = kind;
    slot_remember(slot, (thole_slice){text.ptr, text.len < DETAIL_BYTES_MAX ? text.len : DETAIL_BYTES_MAX},
                  &slot->blocked_text);
}

static void remember(struct slot *slot, const struct event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (events[i].kind == EVENT_STARTED) {
            slot_remember(slot, events[i].name, &slot->orchestration);
            slot_remember(slot, events[i].request_id, &slot->request_id);
        }
        slot->cancel_requested |= events[i].kind == EVENT_CANCEL_REQUESTED;
    }
}

/* What the instance would refuse is left out here too: its history must replay when its code can run again.
 */
static void keep_awaited(struct partition *p, struct slot *slot, struct intake *in)
{
    size_t n = 0;
    for (size_t i = 0; i < in->len; i++) {
        struct event *event = &in->events[i];
        bool const resolves = event->kind != EVENT_STARTED && event->kind != EVENT_CANCEL_REQUESTED;
        if (resolves && !slot_awaits(slot, event))
            continue;
        event->id = ++slot->events;
        remember(slot, event, 1);
        if (slot_mark(slot, event) != THOLE_OK)
            partition_no_memory(p);
        in->events[n++] = *event;
    }
    in->len = n;
}

/* Records what came for an instance whose code cannot run; it is delivered when it can. */
static void record_only(struct partition *p, struct slot *slot, struct intake *in)
{
    uint64_t const time = p->now_ms > slot->time_ms ? p->now_ms : slot->time_ms;
    bool const came = in->len > 0;
    keep_awaited(p, slot, in);
    if (came && in->len == 0)
        return; /* none of it changes anything */
    slot->time_ms = time;
    struct turn const turn = {.instance = slot->id,
                              .execution = slot->execution,
                              .number = ++slot->turns,
                              .time_ms = time,
                              .blocked = slot->blocked,
                              .blocked_text = slot->blocked_text,
                              .events = in->events,
                              .events_len = in->len};
    chain_append(p, RECORD_TURN, slot, &turn);
}

static void run(struct partition *p, struct slot *slot, struct intake *in)
{
    struct turn_in const turn_in = {
        .time_ms = p->now_ms, .received = in->events, .received_len = in->len, .run = true};
    struct turn_out out;
    thole_error err = {0};
    thole_status const status = instance_turn(slot->instance, &turn_in, &out, &err);
    if (status == THOLE_NOMEM) {
        partition_no_memory(p);
        return;
    }
    if (status != THOLE_OK) {
        block(slot, BLOCKED_LIMIT, thole_slice_from(err.text));
        record_only(p, slot, in);
        return;
    }
    remember(slot, in->events, in->len);
    slot->cancel_delivered |= slot->cancel_requested;
    slot->turns = out.number;
    slot->time_ms = out.time_ms;
    for (size_t i = 0; i < out.events_len; i++) {
        slot->events = out.events[i].id;
        if (slot_mark(slot, &out.events[i]) != THOLE_OK)
            partition_no_memory(p);
    }
    struct turn const turn = {.instance = slot->id,
                              .execution = slot->execution,
                              .number = out.number,
                              .time_ms = out.time_ms,
                              .ran = true,
                              .events = out.events,
                              .events_len = out.events_len};
    chain_append(p, RECORD_TURN, slot, &turn);
    instance_trim(slot->instance);
    if (out.ended) {
        instance_destroy(slot->instance);
        slot->instance = NULL;
        slot->state = SLOT_ENDED;
        slots_touch(&p->slots, slot);
    }
}

/* The first turn: the instance comes into being, parked or waiting for code. */
static void begin(struct partition *p, struct slot *slot, struct intake *in)
{
    const thole_orchestration_entry *code = turns_code(p, in->events[0].name);
    slot->execution = 1;
    slot->turns = slot->events = slot->time_ms = 0;
    slot->cancel_requested = slot->cancel_delivered = false;
    if (code == NULL) {
        thole_error err;
        (void)thole_fail(&err, THOLE_NOT_FOUND, "no live engine knows orchestration '%.*s'",
                         THOLE_FMT(in->events[0].name));
        block(slot, BLOCKED_NO_CODE, thole_slice_from(err.text));
        slots_touch(&p->slots, slot);
        record_only(p, slot, in);
        return;
    }
    struct instance_options const options = {.code = code->run,
                                             .id = slot->id,
                                             .execution = 1,
                                             .memory_max = p->options.instance_memory_max,
                                             .payload_max = p->options.payload_max,
                                             .stacks = p->options.stacks};
    if (instance_create(&options, &slot->instance) != THOLE_OK) {
        partition_no_memory(p);
        return;
    }
    slot->state = SLOT_LIVE;
    slots_touch(&p->slots, slot);
    run(p, slot, in);
}

static void run_slot(struct partition *p, struct slot *slot)
{
    struct arena arena;
    arena_init(&arena, INTAKE_BYTES_MAX);
    struct intake in = take(p, slot, &arena);
    bool const retry = slot->retry;
    slot->retry = false;
    if (!p->nomem) {
        if (slot->state == SLOT_ABSENT && in.len > 0)
            begin(p, slot, &in);
        else if (slot->state == SLOT_BLOCKED && in.len > 0)
            record_only(p, slot, &in);
        else if (slot->state == SLOT_LIVE && (in.len > 0 || retry))
            run(p, slot, &in);
    }
    release(&in);
    arena_release(&arena);
    if (slot->first != NULL && !must_wait(slot))
        slots_ready(&p->slots, slot);
}

static bool may_run(const struct partition *p)
{
    return p->phase == PHASE_SERVING && !p->nomem && !p->chain.failed && !p->ending &&
           p->chain.len < p->options.window_max && p->progress.above_len < ABOVE_MAX &&
           p->projector.unprojected < UNPROJECTED_MAX;
}

void turns_run_ready(struct partition *p)
{
    struct slot *slot;
    while (may_run(p) && (slot = slots_take_ready(&p->slots)) != NULL)
        run_slot(p, slot);
    slots_evict(&p->slots, p->options.parked_max);
}
