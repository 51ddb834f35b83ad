/* What was taken in becomes turns, turns become records. */
#include "machine.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    INTAKE_BYTES_MAX = (TURN_RECEIVED_MAX + EARLY_EVENTS_MAX + 4) * sizeof(struct event) + 4096,
    BARE_MEMORY_MAX = 1024 * 1024 * 1024, /* of an instance without code: its history is all it has */
};

/* --- code ---------------------------------------------------------------------------------------- */

static uint32_t entry_version(const thole_orchestration_entry *entry)
{
    return entry->version == 0 ? 1 : entry->version;
}

const thole_orchestration_entry *turns_code(const struct partition *p, thole_slice orchestration,
                                            uint32_t version)
{
    const thole_orchestration_entry *newest = NULL;
    for (size_t i = 0; i < p->env.options.orchestrations_len; i++) {
        const thole_orchestration_entry *entry = &p->env.options.orchestrations[i];
        if (!thole_slice_equal(thole_slice_from(entry->name), orchestration))
            continue;
        if (entry_version(entry) == version)
            return entry;
        if (newest == NULL || entry_version(entry) > entry_version(newest))
            newest = entry;
    }
    return version == 0 ? newest : NULL;
}

thole_status turns_instance(const struct partition *p, const struct slot *slot,
                            const thole_orchestration_entry *code, struct instance **ret)
{
    struct instance_options const options = {.code = code == NULL ? NULL : code->run,
                                             .id = slot->id,
                                             .execution = slot->execution,
                                             .version = code == NULL ? 0 : entry_version(code),
                                             .memory_max = code == NULL ? BARE_MEMORY_MAX
                                                                        : p->env.options.instance_memory_max,
                                             .payload_max = p->env.options.payload_max,
                                             .quarantine_ms = p->env.options.quarantine_ms,
                                             .stacks = p->env.options.stacks};
    *ret = instance_create(&options);
    return THOLE_OK;
}

void turns_no_code(const struct partition *p, struct slot *slot)
{
    thole_error err = {0};
    if (slot->version > 1 || turns_code(p, slot->orchestration, 0) != NULL)
        (void)thole_fail(&err, THOLE_NOT_FOUND, "no live engine knows version %u of orchestration '%.*s'",
                         slot->version, THOLE_FMT(slot->orchestration));
    else
        (void)thole_fail(&err, THOLE_NOT_FOUND, "no live engine knows orchestration '%.*s'",
                         THOLE_FMT(slot->orchestration));
    slot_block(slot, BLOCKED_NO_CODE, thole_slice_from(err.text));
}

enum blocked_kind turns_blocked_by(thole_status status)
{
    switch (status) {
    case THOLE_NONDETERMINISM: return BLOCKED_NONDETERMINISM;
    case THOLE_UNSUPPORTED: return BLOCKED_TOO_NEW;
    case THOLE_LIMIT:
    case THOLE_NOMEM: return BLOCKED_LIMIT;
    case THOLE_APP: return BLOCKED_CRASHED;
    default: break;
    }
    return BLOCKED_DAMAGED;
}

/* --- failed turns -------------------------------------------------------------------------------- */

/*
 * A turn that cannot be made: nothing of it is recorded. The instance comes back from its history without its
 * code, and takes what was meant for the turn; raw, when even that does not go. Where memory was short,
 * others go first, and the code gets a second chance.
 */
static void fail(struct partition *p, struct slot *slot, struct intake *in, thole_status status,
                 thole_slice text)
{
    bool const bare = slot->state == SLOT_BLOCKED;
    if (bare && status == THOLE_NOMEM) {
        env_no_memory(&p->env);
        return;
    }
    if (status == THOLE_APP)
        suspects_tell(p, slot);
    intake_give_back(p, slot, in);
    slot_block(slot, turns_blocked_by(status), text);
    instance_destroy(slot->instance);
    slot->instance = NULL;
    slot->state = SLOT_LOADING;
    slot->reload = true;
    if (status == THOLE_NOMEM && !slot->squeezed) {
        slot->squeezed = true;
        slots_evict(&p->slots, p->slots.len / 2);
    } else if (status == THOLE_APP && !suspects_stuck(p, slot)) {
        slot->retry = true; /* also when nothing new is there: what was recorded and not delivered is */
    } else {
        slot->failed = slot->blocked;
        slot->raw |= bare;
    }
    if (slot->in_flight == 0)
        intake_load(p, slot);
}

/* --- turns --------------------------------------------------------------------------------------- */

static void after_end(struct partition *p, struct slot *slot)
{
    if (instance_continued(slot->instance)) {
        slot->state = SLOT_CONTINUED;
        return;
    }
    instance_destroy(slot->instance);
    slot->instance = NULL;
    slot->state = SLOT_ENDED;
    slots_touch(&p->slots, slot);
    suspects_over(p, slot);
}

static void run(struct partition *p, struct slot *slot, struct intake *in)
{
    struct turn_in const turn_in = {.time_ms = p->env.now_ms > slot->time_ms ? p->env.now_ms : slot->time_ms,
                                    .received = in->events,
                                    .received_len = in->len,
                                    .run = slot->state == SLOT_LIVE};
    struct turn_out out;
    thole_error err = {0};
    thole_status const status = watched_turn(p, slot, &turn_in, &out, &err);
    if (status != THOLE_OK) {
        fail(p, slot, in, status, thole_slice_from(err.text));
        return;
    }
    for (size_t i = 0; i < out.events_len; i++)
        slot_note(slot, &out.events[i]);
    slot->turns = out.number;
    slot->time_ms = out.time_ms;
    intake_done(p, in);
    bool const paused = !out.ran && instance_paused(slot->instance);
    struct turn turn = {.instance = slot->id,
                        .execution = slot->execution,
                        .number = out.number,
                        .time_ms = out.time_ms,
                        .ran = out.ran,
                        .events = out.events,
                        .events_len = out.events_len};
    if (paused) {
        turn.blocked = BLOCKED_PAUSED;
    } else if (!out.ran) {
        turn.blocked = slot->blocked;
        turn.blocked_text = slot->blocked_text;
    }
    partition_append_turn(p, slot, &turn, out.logs, out.logs_len);
    instance_trim(slot->instance);
    if (out.ended)
        after_end(p, slot);
}

/* What comes for an instance whose history makes no sense here. It is kept for whoever can read it; but it
 * can be terminated. */
static void record_raw(struct partition *p, struct slot *slot, struct intake *in)
{
    bool ends = false;
    size_t n = 0;
    while (n < in->len && !ends)
        ends = in->events[n++].kind == EVENT_TERMINATE_REQUESTED;
    if (ends) {
        in->events[n] = (struct event){.kind = EVENT_TERMINATED, .data = in->events[n - 1].data};
        n++;
    }
    for (size_t i = 0; i < n; i++)
        in->events[i].id = ++slot->events;
    slot->time_ms = p->env.now_ms > slot->time_ms ? p->env.now_ms : slot->time_ms;
    struct turn const turn = {.instance = slot->id,
                              .execution = slot->execution,
                              .number = ++slot->turns,
                              .time_ms = slot->time_ms,
                              .ran = ends,
                              .blocked = ends ? BLOCKED_NOT : slot->blocked,
                              .blocked_text = ends ? (thole_slice){0} : slot->blocked_text,
                              .events = in->events,
                              .events_len = n};
    intake_done(p, in);
    partition_append_turn(p, slot, &turn, NULL, 0);
    if (!ends)
        return;
    slot->state = SLOT_ENDED;
    slots_touch(&p->slots, slot);
    suspects_over(p, slot);
}

/* The first turn of an execution: its instance comes into being, with its code or without. */
static void begin(struct partition *p, struct slot *slot, uint64_t execution, struct intake *in)
{
    const struct event *started = &in->events[0];
    slot->execution = execution;
    slot->turns = slot->events = 0; /* time goes on */
    slot->blocked = BLOCKED_NOT;
    if (slot->failed == BLOCKED_NOT)
        (void)suspects_stuck(p, slot);
    const thole_orchestration_entry *code =
        slot->failed == BLOCKED_NOT ? turns_code(p, started->name, started->version) : NULL;
    if (turns_instance(p, slot, code, &slot->instance) != THOLE_OK) {
        env_no_memory(&p->env);
        return;
    }
    slot_note(slot, started);
    slot->state = code != NULL ? SLOT_LIVE : SLOT_BLOCKED;
    if (slot->failed != BLOCKED_NOT)
        slot->blocked = slot->failed; /* its text is still there */
    else if (code == NULL)
        turns_no_code(p, slot);
    run(p, slot, in);
    slots_touch(&p->slots, slot);
}

static void start(struct partition *p, struct slot *slot, struct intake *in)
{
    struct early *early = slot->early; /* the turn's events borrow from it */
    slot->early = NULL;
    begin(p, slot, slot->gone + 1, in);
    early_destroy(early);
}

/* The execution has ended so that another may begin, right behind it. */
static void continue_as_new(struct partition *p, struct slot *slot)
{
    struct arena arena;
    struct intake in = {0};
    struct instance *ended = slot->instance;
    arena_init(&arena, SIZE_MAX / 2);
    if (instance_carry(ended, &arena, &in.events, &in.len) != THOLE_OK) {
        env_no_memory(&p->env);
    } else {
        slot->instance = NULL;
        begin(p, slot, slot->execution + 1, &in);
        instance_destroy(ended);
    }
    arena_release(&arena);
}

/* Somebody wants it to be tried again, whatever it was that stopped it here. */
static void try_again(struct partition *p, struct slot *slot, const struct intake *in)
{
    intake_done(p, in);
    suspects_retry(p, slot);
    if (slot->state != SLOT_BLOCKED)
        return;
    instance_destroy(slot->instance);
    slot->instance = NULL;
    slot->failed = BLOCKED_NOT;
    slot->raw = slot->squeezed = false;
    slot->state = SLOT_LOADING;
    slot->reload = slot->retry = true;
    if (slot->in_flight == 0)
        intake_load(p, slot);
}

/* --- the loop ------------------------------------------------------------------------------------ */

static void take_turn(struct partition *p, struct slot *slot, struct intake *in)
{
    bool const retry = slot->retry;
    slot->retry = false;
    if (in->deletes) {
        deletion_record(p, slot, in);
        return;
    }
    if (in->retries) {
        try_again(p, slot, in);
        return;
    }
    switch (slot->state) {
    case SLOT_ABSENT:
    case SLOT_EARLY:
        if (in->expired) {
            early_expire(p, slot);
        } else if (in->len > 0 && in->events[0].kind == EVENT_STARTED) {
            start(p, slot, in);
        } else if (in->len > 0) {
            intake_done(p, in);
            early_record(p, slot, in->events, in->len);
        }
        break;
    case SLOT_LIVE:
        if (in->len > 0 || (retry && !instance_paused(slot->instance)))
            run(p, slot, in);
        break;
    case SLOT_BLOCKED:
        if (in->len > 0 && slot->instance != NULL)
            run(p, slot, in);
        else if (in->len > 0)
            record_raw(p, slot, in);
        break;
    case SLOT_LOADING:
    case SLOT_CONTINUED:
    case SLOT_ENDED: break;
    }
}

static void run_slot(struct partition *p, struct slot *slot)
{
    if (slot->state == SLOT_CONTINUED) {
        continue_as_new(p, slot);
    } else {
        struct arena arena;
        arena_init(&arena, INTAKE_BYTES_MAX);
        struct intake in = intake_take(p, slot, &arena);
        if (!p->env.nomem)
            take_turn(p, slot, &in);
        intake_release(&in);
        arena_release(&arena);
    }
    if (p->env.nomem)
        return;
    if (slot->questions != NULL && slot->state != SLOT_LOADING && slot->state != SLOT_CONTINUED)
        queries_answer(p, slot);
    if (slot->state == SLOT_CONTINUED || intake_waits(slot))
        slots_ready(&p->slots, slot);
}

static bool may_run(const struct partition *p)
{
    return p->phase == PHASE_SERVING && !p->env.nomem && log_is_open(p->log) && !p->ending &&
           log_facts(p->log)->in_flight < p->env.options.window_max && projection_has_room(p->projection);
}

void turns_run_ready(struct partition *p)
{
    struct slot *slot;
    while (may_run(p) && (slot = slots_take_ready(&p->slots)) != NULL)
        run_slot(p, slot);
    slots_evict(&p->slots, p->env.options.parked_max);
}
