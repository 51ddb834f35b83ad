/* Turns what was taken into turns, and turns into records: one at a time, in p->run. */
#include "instances_state.h"
#include "lanes.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { INTAKE_BYTES_MAX = (TURN_RECEIVED_MAX + EVENTS_KEPT_MAX + 4) * sizeof(struct event) + 4096 };

/* --- failed turns -------------------------------------------------------------------------------- */

/*
 * The turn failed: nothing of it is recorded. The instance is loaded from its history without its code and
 * takes the turn's messages; if that fails too, they are recorded unchecked. If memory was short, other
 * instances are released and the code is tried once more.
 */
static void turns_fail(struct instances *p, struct entry *entry, thole_status status, const char *text,
                       const void *site)
{
    bool const bare = entry->state == ENTRY_BLOCKED;
    if (bare && status == THOLE_NOMEM) {
        env_no_memory(p->env);
        return;
    }
    if (status == THOLE_APP)
        crash_candidates_tell(p, entry);
    intake_give_back(p, entry, &p->run.in);
    entry_become(&p->entries, entry, ENTRY_TO_LOAD);
    if (status == THOLE_NOMEM && !entry->memory_retried) {
        entry->memory_retried = true;
        entries_evict_half(&p->entries);
    } else if (status == THOLE_APP) { /* also without new events: recorded ones may not be delivered yet */
        entry->loading.retry = true;
    } else if (bare) {
        entry_block(entry, ENTRY_KEEPS, turns_blocked_by(status), thole_slice_from(text));
    } else {
        turns_code_failed(p, entry, status, text, site);
    }
    intake_reload(p, entry);
}

/* --- turns --------------------------------------------------------------------------------------- */

static uint64_t turns_latest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whether the turn sends to workers or starts instances: those messages say to which trace they belong. */
static bool starts_others(const struct turn_out *out)
{
    for (size_t i = 0; i < out->events_len; i++) {
        enum event_kind const kind = out->events[i].kind;
        if (kind == EVENT_ACTIVITY_SCHEDULED || kind == EVENT_ACTIVITY_TRY_STARTED ||
            kind == EVENT_CHILD_SCHEDULED || kind == EVENT_DETACHED_STARTED)
            return true;
    }
    return false;
}

/* The sender of the turn's CloudEvents may not know the instance, so the turn has all facts for them. */
static void name_emitter(const struct instances *p, const struct entry *entry, struct turn *turn)
{
    enum events_out const events = p->env->options.events;
    bool emits = false;
    for (size_t i = 0; i < turn->events_len && !emits; i++)
        emits = emission_of(events, turn, &turn->events[i], NULL);
    if (!emits)
        return;
    turn->orchestration = entry->orchestration.len > 0 ? entry->orchestration : THOLE_STR("-");
    turn->trace = entry->trace;
}

static void run_code(struct instances *p, struct entry *entry)
{
    struct run *run = &p->run;
    struct turn_in const turn_in = {.time_ms = turns_latest(p->env->now_ms, entry->time_ms),
                                    .received = run->in.events,
                                    .received_len = run->in.len,
                                    .run = entry->state == ENTRY_LIVE};
    struct turn_out out;
    thole_error err = {0};
    thole_status const status = watched_turn(p, entry, &turn_in, &out, &err);
    if (status != THOLE_OK) {
        turns_fail(p, entry, status, err.text, instance_call_site(entry->running.instance));
        return;
    }
    for (size_t i = 0; i < out.events_len; i++)
        entry_note(entry, &out.events[i]);
    entry->turns = out.number;
    entry->time_ms = out.time_ms;
    intake_done(p, &run->in);
    bool const paused = !out.ran && instance_paused(entry->running.instance);
    run->kind = RUN_TURN;
    run->lines = out.logs;
    run->lines_len = out.logs_len;
    run->ends = out.ended;
    run->turn = (struct turn){.instance = entry->id,
                              .execution = entry->execution,
                              .number = out.number,
                              .time_ms = out.time_ms,
                              .ran = out.ran,
                              .events = out.events,
                              .events_len = out.events_len};
    if (entry->trace.parent.len > 0 && starts_others(&out))
        run->turn.trace = entry->trace;
    name_emitter(p, entry, &run->turn);
    if (paused) {
        run->turn.blocked = BLOCKED_PAUSED;
        run->turn.blocked_text = text_cut(instance_pause_reason(entry->running.instance), DETAIL_BYTES_MAX);
    } else if (!out.ran) {
        assert(entry->state == ENTRY_BLOCKED);
        run->turn.blocked = entry->reason->kind;
        run->turn.blocked_text = entry_blocked_text(entry);
    }
}

/* Records what is received for an instance whose history cannot be read here, for an engine that can read it.
 * The instance can be terminated. */
static void record_unchecked(struct instances *p, struct entry *entry)
{
    struct intake *in = &p->run.in;
    bool ends = false;
    size_t n = 0;
    while (n < in->len && !ends)
        ends = in->events[n++].kind == EVENT_TERMINATE_REQUESTED;
    if (ends) {
        in->events[n] = (struct event){.kind = EVENT_TERMINATED, .data = in->events[n - 1].data};
        n++;
    }
    for (size_t i = 0; i < n; i++)
        in->events[i].id = ++entry->events;
    entry->time_ms = turns_latest(p->env->now_ms, entry->time_ms);
    p->run.kind = RUN_UNCHECKED;
    p->run.ends = ends;
    p->run.turn = (struct turn){.instance = entry->id,
                                .execution = entry->execution,
                                .number = ++entry->turns,
                                .time_ms = entry->time_ms,
                                .ran = ends,
                                .blocked = ends ? BLOCKED_NOT : entry->reason->kind,
                                .blocked_text = ends ? (thole_slice){0} : entry_blocked_text(entry),
                                .events = in->events,
                                .events_len = n};
    name_emitter(p, entry, &p->run.turn);
    intake_done(p, in);
}

/* The first turn of an execution: creates its instance, with or without code. */
static void turns_begin(struct instances *p, struct entry *entry, uint64_t execution)
{
    const struct event *started = &p->run.in.events[0];
    assert(p->run.in.len > 0 && started->kind == EVENT_STARTED);
    p->run.begins = true;
    entry->execution = execution;
    entry->turns = entry->events = 0; /* time_ms continues */
    entry_note(entry, started);
    if (entry->limit == ENTRY_KEEPS) { /* this turn failed even without code */
        entry_become(&p->entries, entry, ENTRY_UNREADABLE);
        record_unchecked(p, entry);
        return;
    }
    bool const runs = entry->limit == ENTRY_RUNS && !crash_candidates_stuck(p, entry);
    const thole_orchestration_entry *code = runs ? turns_code(p, started->name, started->version) : NULL;
    struct instance *instance = turns_instance(p, entry, code);
    entry_become(&p->entries, entry, code != NULL ? ENTRY_LIVE : ENTRY_BLOCKED);
    entry->running.instance = instance;
    if (runs && code == NULL)
        turns_no_code(p, entry);
    run_code(p, entry);
}

/* Takes waiting messages for the next execution, after the events that it takes over: code that never waits
 * has no other turn. */
static thole_status take_for_next(struct instances *p, struct entry *entry, const struct event *carried,
                                  size_t len)
{
    struct run *const run = &p->run;
    run->in = intake_take(p, entry, &run->arena);
    if (p->env->nomem)
        return THOLE_NOMEM;
    struct event *const events = arena_array(&run->arena, len + run->in.len + 1, sizeof *events);
    if (events == NULL)
        return arena_status(&run->arena);
    memcpy(events, carried, len * sizeof *events);
    if (run->in.len > 0)
        memcpy(events + len, run->in.events, run->in.len * sizeof *events);
    run->in.events = events;
    run->in.len += len;
    return THOLE_OK;
}

/* Begins the next execution right after one that has ended with continue-as-new. */
static void continue_as_new(struct instances *p, struct entry *entry)
{
    struct run *run = &p->run;
    struct event *carried;
    size_t len;
    arena_init(&run->arena, SIZE_MAX / 2);
    thole_status status = instance_carry(entry->running.instance, &run->arena, &carried, &len);
    if (status == THOLE_OK)
        status = take_for_next(p, entry, carried, len);
    if (status != THOLE_OK) {
        env_no_memory(p->env);
        return;
    }
    run->continued = entry->running.instance; /* the turn's events borrow from it */
    entry->running.instance = NULL;
    turns_begin(p, entry, entry->execution + 1);
}

/* A user asks for a retry, whatever stopped the instance here. */
static void turns_try_again(struct instances *p, struct entry *entry)
{
    intake_done(p, &p->run.in);
    crash_candidates_retry(p, entry);
    if (entry->state != ENTRY_BLOCKED && entry->state != ENTRY_UNREADABLE)
        return;
    entry_unblock(entry);
    entry_become(&p->entries, entry, ENTRY_TO_LOAD);
    entry->loading.retry = true;
    intake_reload(p, entry);
}

static void record_deletion(struct instances *p, struct entry *entry)
{
    struct run *run = &p->run;
    const struct message *m = &run->in.taken->message;
    run->kind = RUN_DELETION;
    run->deletion =
        (struct deletion){.instance = entry->id,
                          .execution = entry->state == ENTRY_EARLY ? entry->tombstone : entry->execution,
                          .time_ms = turns_latest(p->env->now_ms, entry->time_ms),
                          .orchestration = entry->orchestration,
                          .reason = m->data,
                          .request_id = m->request_id,
                          .started_by = entry->request_id,
                          .parent = entry->parent,
                          .actor = m->source.actor};
    intake_done(p, &run->in);
    entry_become(&p->entries, entry, ENTRY_ABSENT);
    run->life = entry_renew(entry); /* the record borrows from it */
    deletion_note(entry, &run->deletion);
    entries_touch(&p->entries, entry);
}

/* --- the loop ------------------------------------------------------------------------------------ */

static void take_turn_absent(struct instances *p, struct entry *entry)
{
    struct intake *in = &p->run.in;
    if (in->expired) {
        early_expire(p, entry);
    } else if (in->len > 0 && in->events[0].kind == EVENT_STARTED) {
        if (entry->state == ENTRY_EARLY) {
            p->run.early = entry->early; /* the turn's events borrow from it */
            entry->early = NULL;
        }
        turns_begin(p, entry, entry->tombstone + 1);
    } else if (in->len > 0) {
        intake_done(p, in);
        early_record(p, entry, in->events, in->len);
    }
}

static void turns_take_turn(struct instances *p, struct entry *entry)
{
    const struct intake *in = &p->run.in;
    bool const retry = entry->state == ENTRY_LIVE && entry->running.retry;
    if (retry)
        entry->running.retry = false;
    if (in->deletes) {
        record_deletion(p, entry);
        return;
    }
    if (in->retries) {
        turns_try_again(p, entry);
        return;
    }
    switch (entry->state) {
    case ENTRY_ABSENT:
    case ENTRY_EARLY: take_turn_absent(p, entry); break;
    case ENTRY_LIVE:
        if (in->len > 0 || (retry && !instance_paused(entry->running.instance)))
            run_code(p, entry);
        break;
    case ENTRY_BLOCKED:
        if (in->len > 0)
            run_code(p, entry);
        break;
    case ENTRY_UNREADABLE:
        if (in->len > 0)
            record_unchecked(p, entry);
        break;
    case ENTRY_LOADING:
    case ENTRY_TO_LOAD:
    case ENTRY_RECALLED:
    case ENTRY_CONTINUED:
    case ENTRY_ENDED: break;
    }
}

static void say_rest(struct instances *p)
{
    const struct entry *const entry = lanes_say_rest(&p->entries.lanes, p->env->now_ms);
    if (entry == NULL)
        return;
    struct out_limited *const out = &env_emit(p->env, PARTITION_OUT_LIMITED)->limited;
    *out = (struct out_limited){.limit = LIMIT_TURNS,
                                .instance = env_copy(p->env, entry->id),
                                .orchestration = env_copy(p->env, lane_name(entry)),
                                .execution = entry->execution,
                                .max = p->env->options.burst_max};
}

bool instances_run(struct instances *p, uint64_t done_n, struct instances_record *ret)
{
    struct lane_view const view = {p->env->now_ms, done_n, p->env->options.burst_max,
                                   p->env->options.resting_max};
    struct entry *entry = entries_take_ready(&p->entries, &view);
    struct run *run = &p->run;
    assert(run->entry == NULL && !p->env->nomem);
    *ret = (struct instances_record){0};
    say_rest(p);
    if (entry == NULL)
        return false;
    *run = (struct run){.entry = entry};
    if (entry->state == ENTRY_CONTINUED) {
        if (!executions_delay(p, entry))
            continue_as_new(p, entry);
    } else {
        arena_init(&run->arena, INTAKE_BYTES_MAX);
        run->in = intake_take(p, entry, &run->arena);
        if (!p->env->nomem)
            turns_take_turn(p, entry);
    }
    ret->wake = run->wake;
    if (run->kind == RUN_NOTHING || p->env->nomem)
        return true;
    ret->entry = entry;
    ret->newest = &entry->newest;
    ret->turn = run->kind == RUN_DELETION ? NULL : &run->turn;
    ret->deletion = run->kind == RUN_DELETION ? &run->deletion : NULL;
    ret->lines = run->lines;
    ret->lines_len = run->lines_len;
    return true;
}

static void after_end(struct instances *p, struct entry *entry, uint64_t n)
{
    if (entry->state == ENTRY_LIVE && instance_continued(entry->running.instance)) {
        entry_become(&p->entries, entry, ENTRY_CONTINUED);
        return;
    }
    entry_become(&p->entries, entry, ENTRY_ENDED);
    crash_candidates_over(p, entry, entry->execution, n);
}

static void after_record(struct instances *p, struct entry *entry, uint64_t n)
{
    switch (p->run.kind) {
    case RUN_TURN: instance_trim(entry->running.instance); break;
    case RUN_DELETION: crash_candidates_over(p, entry, entry->tombstone, n); break;
    case RUN_NOTHING:
    case RUN_UNCHECKED:
    case RUN_EARLY: break;
    }
    if (p->run.ends)
        after_end(p, entry, n);
}

static void run_release(struct run *run)
{
    intake_release(&run->in);
    early_destroy(run->early);
    instance_destroy(run->continued);
    entry_texts_release(&run->life);
    arena_release(&run->arena);
    *run = (struct run){0};
}

void instances_ran(struct instances *p, size_t records, uint64_t n)
{
    struct entry *entry = p->run.entry;
    assert(entry != NULL && (records == 0 || p->run.kind != RUN_NOTHING));
    if (records > 0) {
        entry->in_flight += records;
        lanes_ran(&p->entries.lanes, p->run.in.len, n, p->env->now_ms);
        known_ids_add(p, entry->id);
        answers_note(p, entry);
        p->progress.dirty = false;
        after_record(p, entry, n);
    }
    if (p->run.begins)
        entries_touch(&p->entries, entry);
    run_release(&p->run);
    entries_weigh(entry);
    if (p->env->nomem)
        return;
    if (entry->questions != NULL && !entry_waits_for_history(entry->state) && entry->state != ENTRY_CONTINUED)
        queries_answer(p, entry);
    if (entry->state == ENTRY_CONTINUED || intake_waits(entry))
        entries_ready(&p->entries, entry);
}

void instances_evict(struct instances *p)
{
    const struct partition_options *const options = &p->env->options;
    entries_evict(&p->entries, &(struct entries_kept){.keep = options->parked_max,
                                                      .bytes = options->parked_memory_max,
                                                      .early_bytes = options->early_memory_max});
}
