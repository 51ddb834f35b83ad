/* What was taken in becomes turns, turns become records: one at a time, in p->run. */
#include "instances_state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { INTAKE_BYTES_MAX = (TURN_RECEIVED_MAX + EARLY_EVENTS_MAX + 4) * sizeof(struct event) + 4096 };

/* --- failed turns -------------------------------------------------------------------------------- */

/*
 * A turn that cannot be made: nothing of it is recorded. The instance comes back from its history without its
 * code, and takes what was meant for the turn; raw, when even that does not go. Where memory was short,
 * others go first, and the code gets a second chance.
 */
static void fail(struct instances *p, struct entry *entry, thole_status status, thole_slice text)
{
    bool const bare = entry->state == ENTRY_BLOCKED;
    if (bare && status == THOLE_NOMEM) {
        env_no_memory(p->env);
        return;
    }
    if (status == THOLE_APP)
        crash_candidates_tell(p, entry);
    intake_give_back(p, entry, &p->run.in);
    entry_block(entry, turns_blocked_by(status), text);
    instance_destroy(entry->instance);
    entry->instance = NULL;
    entry_become(entry, ENTRY_LOADING);
    entry->reload = true;
    if (status == THOLE_NOMEM && !entry->memory_retried) {
        entry->memory_retried = true;
        entries_evict(&p->entries, p->entries.len / 2);
    } else if (status == THOLE_APP && !crash_candidates_stuck(p, entry)) {
        entry->retry = true; /* also when nothing new is there: what was recorded and not delivered is */
    } else {
        entry->failed = entry->blocked;
        entry->raw |= bare;
    }
    if (entry->in_flight == 0)
        intake_load(p, entry);
}

/* --- turns --------------------------------------------------------------------------------------- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void run_code(struct instances *p, struct entry *entry)
{
    struct run *run = &p->run;
    struct turn_in const turn_in = {.time_ms = later(p->env->now_ms, entry->time_ms),
                                    .received = run->in.events,
                                    .received_len = run->in.len,
                                    .run = entry->state == ENTRY_LIVE};
    struct turn_out out;
    thole_error err = {0};
    thole_status const status = watched_turn(p, entry, &turn_in, &out, &err);
    if (status != THOLE_OK) {
        fail(p, entry, status, thole_slice_from(err.text));
        return;
    }
    for (size_t i = 0; i < out.events_len; i++)
        entry_note(entry, &out.events[i]);
    entry->turns = out.number;
    entry->time_ms = out.time_ms;
    intake_done(p, &run->in);
    bool const paused = !out.ran && instance_paused(entry->instance);
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
    if (paused) {
        run->turn.blocked = BLOCKED_PAUSED;
    } else if (!out.ran) {
        run->turn.blocked = entry->blocked;
        run->turn.blocked_text = entry->blocked_text;
    }
}

/* What comes for an instance whose history makes no sense here. It is kept for whoever can read it; but it
 * can be terminated. */
static void record_raw(struct instances *p, struct entry *entry)
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
    entry->time_ms = later(p->env->now_ms, entry->time_ms);
    p->run.kind = RUN_RAW;
    p->run.ends = ends;
    p->run.turn = (struct turn){.instance = entry->id,
                                .execution = entry->execution,
                                .number = ++entry->turns,
                                .time_ms = entry->time_ms,
                                .ran = ends,
                                .blocked = ends ? BLOCKED_NOT : entry->blocked,
                                .blocked_text = ends ? (thole_slice){0} : entry->blocked_text,
                                .events = in->events,
                                .events_len = n};
    intake_done(p, in);
}

/* The first turn of an execution: its instance comes into being, with its code or without. */
static void begin(struct instances *p, struct entry *entry, uint64_t execution)
{
    const struct event *started = &p->run.in.events[0];
    assert(p->run.in.len > 0 && started->kind == EVENT_STARTED);
    entry->execution = execution;
    entry->turns = entry->events = 0; /* time goes on */
    entry->blocked = BLOCKED_NOT;
    if (entry->failed == BLOCKED_NOT)
        (void)crash_candidates_stuck(p, entry);
    const thole_orchestration_entry *code =
        entry->failed == BLOCKED_NOT ? turns_code(p, started->name, started->version) : NULL;
    entry->instance = turns_instance(p, entry, code);
    entry_note(entry, started);
    entry_become(entry, code != NULL ? ENTRY_LIVE : ENTRY_BLOCKED);
    if (entry->failed != BLOCKED_NOT)
        entry->blocked = entry->failed; /* its text is still there */
    else if (code == NULL)
        turns_no_code(p, entry);
    p->run.begins = true;
    run_code(p, entry);
}

/* The execution has ended so that another may begin, right behind it. */
static void continue_as_new(struct instances *p, struct entry *entry)
{
    struct run *run = &p->run;
    arena_init(&run->arena, SIZE_MAX / 2);
    if (instance_carry(entry->instance, &run->arena, &run->in.events, &run->in.len) != THOLE_OK) {
        env_no_memory(p->env);
        return;
    }
    run->continued = entry->instance; /* the turn's events borrow from it */
    entry->instance = NULL;
    begin(p, entry, entry->execution + 1);
}

/* Somebody wants it to be tried again, whatever it was that stopped it here. */
static void try_again(struct instances *p, struct entry *entry)
{
    intake_done(p, &p->run.in);
    crash_candidates_retry(p, entry);
    if (entry->state != ENTRY_BLOCKED)
        return;
    instance_destroy(entry->instance);
    entry->instance = NULL;
    entry->failed = BLOCKED_NOT;
    entry->raw = entry->memory_retried = false;
    entry_become(entry, ENTRY_LOADING);
    entry->reload = entry->retry = true;
    if (entry->in_flight == 0)
        intake_load(p, entry);
}

static void record_deletion(struct instances *p, struct entry *entry)
{
    struct run *run = &p->run;
    const struct message *m = &run->in.taken->message;
    run->kind = RUN_DELETION;
    run->deletion =
        (struct deletion){.instance = entry->id,
                          .execution = entry->state == ENTRY_EARLY ? entry->tombstone : entry->execution,
                          .time_ms = later(p->env->now_ms, entry->time_ms),
                          .orchestration = entry->orchestration,
                          .reason = m->data,
                          .request_id = m->request_id,
                          .started_by = entry->request_id,
                          .parent = entry->parent};
    run->life = entry->arena; /* the record borrows from it */
    intake_done(p, &run->in);
    early_destroy(entry->early);
    instance_destroy(entry->instance);
    entry_renew(entry);
    entry_become(entry, ENTRY_ABSENT);
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
        p->run.early = entry->early; /* the turn's events borrow from it */
        entry->early = NULL;
        begin(p, entry, entry->tombstone + 1);
    } else if (in->len > 0) {
        intake_done(p, in);
        early_record(p, entry, in->events, in->len);
    }
}

static void take_turn(struct instances *p, struct entry *entry)
{
    const struct intake *in = &p->run.in;
    bool const retry = entry->retry;
    entry->retry = false;
    if (in->deletes) {
        record_deletion(p, entry);
        return;
    }
    if (in->retries) {
        try_again(p, entry);
        return;
    }
    switch (entry->state) {
    case ENTRY_ABSENT:
    case ENTRY_EARLY: take_turn_absent(p, entry); break;
    case ENTRY_LIVE:
        if (in->len > 0 || (retry && !instance_paused(entry->instance)))
            run_code(p, entry);
        break;
    case ENTRY_BLOCKED:
        if (in->len > 0 && entry->instance != NULL)
            run_code(p, entry);
        else if (in->len > 0)
            record_raw(p, entry);
        break;
    case ENTRY_LOADING:
    case ENTRY_CONTINUED:
    case ENTRY_ENDED: break;
    }
}

bool instances_run(struct instances *p, struct instances_record *ret)
{
    struct entry *entry = entries_take_ready(&p->entries);
    struct run *run = &p->run;
    assert(run->entry == NULL && !p->env->nomem);
    *ret = (struct instances_record){0};
    if (entry == NULL)
        return false;
    *run = (struct run){.entry = entry};
    if (entry->state == ENTRY_CONTINUED) {
        continue_as_new(p, entry);
    } else {
        arena_init(&run->arena, INTAKE_BYTES_MAX);
        run->in = intake_take(p, entry, &run->arena);
        if (!p->env->nomem)
            take_turn(p, entry);
    }
    ret->wake = run->wake;
    if (run->kind == RUN_NOTHING || p->env->nomem)
        return true;
    ret->entry = entry;
    ret->turn = run->kind == RUN_DELETION ? NULL : &run->turn;
    ret->deletion = run->kind == RUN_DELETION ? &run->deletion : NULL;
    ret->lines = run->lines;
    ret->lines_len = run->lines_len;
    return true;
}

static void after_end(struct instances *p, struct entry *entry, uint64_t n)
{
    if (entry->instance != NULL && instance_continued(entry->instance)) {
        entry_become(entry, ENTRY_CONTINUED);
        return;
    }
    instance_destroy(entry->instance);
    entry->instance = NULL;
    entry_become(entry, ENTRY_ENDED);
    entries_touch(&p->entries, entry);
    crash_candidates_over(p, entry, entry->execution, n);
}

static void after_record(struct instances *p, struct entry *entry, uint64_t n)
{
    switch (p->run.kind) {
    case RUN_TURN: instance_trim(entry->instance); break;
    case RUN_DELETION: crash_candidates_over(p, entry, entry->tombstone, n); break;
    case RUN_NOTHING:
    case RUN_RAW:
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
    arena_release(&run->life);
    arena_release(&run->arena);
    *run = (struct run){0};
}

void instances_ran(struct instances *p, size_t records, uint64_t n)
{
    struct entry *entry = p->run.entry;
    assert(entry != NULL && (records == 0 || p->run.kind != RUN_NOTHING));
    if (records > 0) {
        entry->in_flight += records;
        p->progress.dirty = false;
        after_record(p, entry, n);
    }
    if (p->run.begins)
        entries_touch(&p->entries, entry);
    run_release(&p->run);
    if (p->env->nomem)
        return;
    if (entry->questions != NULL && entry->state != ENTRY_LOADING && entry->state != ENTRY_CONTINUED)
        queries_answer(p, entry);
    if (entry->state == ENTRY_CONTINUED || intake_waits(entry))
        entries_ready(&p->entries, entry);
}

void instances_evict(struct instances *p)
{
    entries_evict(&p->entries, p->env->options.parked_max);
}
