/* Executions that are replayed, and the passes over them. */
#include "replayer.h"
#include "coro.h"
#include "instance.h"
#include "memory.h"
#include "message.h"
#include "turn_list.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS_FIRST = 1024,
    PASSES_MAX = 64, /* by the last six bits of the hash */
    REPORTED_MAX = 10000,
    STACKS_KEPT = 1024,
};

/* A record that is not replayed yet: a part of a turn, or of a turn before the code is known. */
struct kept {
    struct kept *next;
    struct arena arena;
    struct record record;
};

enum unit_state { UNIT_LIVE, UNIT_SKIPPED, UNIT_FAILED, UNIT_GONE };

/* One execution of one instance. */
struct unit {
    struct unit *next; /* of its bucket */
    uint64_t hash;
    uint64_t execution, turns, events;
    bool first; /* of its instance */
    enum unit_state state;
    struct kept *parts, **parts_last;     /* parts of an incomplete turn */
    struct kept *waiting, **waiting_last; /* turns before the first one in which code ran */
    struct instance *instance;
    thole_slice orchestration;
    uint32_t version;
    size_t memory; /* as counted in the replayer */
    size_t id_len;
    uint8_t id[]; /* the instance's, then room for the orchestration's name */
};

struct pass { /* the instances whose hash ends in these bits */
    uint64_t bits, mask;
};

struct leaf { /* counts of instances whose hash ends in the same six bits */
    uint64_t instances, executions, turns, events, without_code, running_without_code;
};

struct replayer {
    struct replay_options options;
    struct stack_pool *stacks;
    struct unit **buckets;
    size_t buckets_len, units;
    size_t memory; /* of all units */
    struct pass now, later[PASSES_MAX];
    size_t later_len;
    /* hashes of failed units, so that another pass does not report them again */
    uint64_t reported[REPORTED_MAX];
    size_t reported_len;
    bool stopped;
    struct leaf leaves[PASSES_MAX];
    struct replay_counts counts;  /* of reports, until the end */
    const struct unit *replaying; /* whose turn it is */
};

/* ---- the table ---- */

static uint64_t replayer_hash_of(thole_slice id)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < id.len; i++)
        hash = (hash ^ id.ptr[i]) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32; /* the low bits choose passes and buckets */
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static thole_slice unit_id(const struct unit *unit)
{
    return (thole_slice){unit->id, unit->id_len};
}

static struct unit **replayer_find(const struct replayer *r, uint64_t hash, thole_slice id)
{
    struct unit **at = &r->buckets[hash & (r->buckets_len - 1)];
    while (*at != NULL && ((*at)->hash != hash || !thole_slice_equal(unit_id(*at), id)))
        at = &(*at)->next;
    return at;
}

static void replayer_grow(struct replayer *r)
{
    size_t const len = r->buckets_len * 2;
    struct unit **buckets = memory_array(len, sizeof *buckets);
    for (size_t i = 0; i < r->buckets_len; i++)
        for (struct unit *unit = r->buckets[i], *next; unit != NULL; unit = next) {
            next = unit->next;
            unit->next = buckets[unit->hash & (len - 1)];
            buckets[unit->hash & (len - 1)] = unit;
        }
    free(r->buckets);
    r->buckets = buckets;
    r->buckets_len = len;
}

/* ---- units ---- */

static void kept_free(struct kept *first)
{
    for (struct kept *next; first != NULL; first = next) {
        next = first->next;
        arena_release(&first->arena);
        free(first);
    }
}

static size_t kept_memory(const struct kept *first)
{
    size_t bytes = 0;
    for (; first != NULL; first = first->next)
        bytes += sizeof *first + first->arena.held;
    return bytes;
}

static void unit_weigh(struct replayer *r, struct unit *unit)
{
    size_t const memory = sizeof *unit + unit->id_len + THOLE_NAME_BYTES_MAX + kept_memory(unit->parts) +
                          kept_memory(unit->waiting) +
                          (unit->instance == NULL ? 0 : instance_memory(unit->instance));
    assert(r->memory >= unit->memory);
    r->memory = r->memory - unit->memory + memory;
    unit->memory = memory;
}

static void unit_empty(struct unit *unit)
{
    kept_free(unit->parts);
    kept_free(unit->waiting);
    unit->parts = unit->waiting = NULL;
    unit->parts_last = &unit->parts;
    unit->waiting_last = &unit->waiting;
    instance_destroy(unit->instance);
    unit->instance = NULL;
}

static struct unit *unit_add(struct replayer *r, const struct turn *turn, uint64_t hash)
{
    struct unit *unit = memory_new(sizeof *unit + turn->instance.len + THOLE_NAME_BYTES_MAX);
    unit->hash = hash;
    unit->execution = turn->execution;
    unit->first = turn->execution == 1;
    unit->id_len = turn->instance.len;
    memcpy(unit->id, turn->instance.ptr, turn->instance.len);
    unit_empty(unit);
    if (r->units >= r->buckets_len)
        replayer_grow(r);
    struct unit **at = replayer_find(r, hash, turn->instance);
    assert(*at == NULL);
    *at = unit;
    r->units++;
    unit_weigh(r, unit);
    return unit;
}

static void note_unknown(struct replay_counts *counts, thole_slice name)
{
    size_t const len = strlen(counts->unknown);
    char text[THOLE_NAME_BYTES_MAX + 4];
    (void)snprintf(text, sizeof text, " %.*s,", THOLE_FMT(name));
    if (strstr(counts->unknown, text) == NULL && len + strlen(text) < sizeof counts->unknown)
        memcpy(counts->unknown + len, text, strlen(text) + 1);
}

static void unit_count(struct replayer *r, const struct unit *unit)
{
    struct leaf *leaf = &r->leaves[unit->hash % PASSES_MAX];
    if (unit->execution == 0 || unit->state == UNIT_GONE || (unit->turns == 0 && unit->state == UNIT_LIVE))
        return;
    if (unit->state == UNIT_SKIPPED) {
        leaf->without_code++;
        note_unknown(&r->counts, unit->orchestration);
        return;
    }
    leaf->executions++;
    leaf->instances += unit->first;
    leaf->turns += unit->turns;
    leaf->events += unit->events;
}

static void unit_remove(struct replayer *r, struct unit **at)
{
    struct unit *unit = *at;
    assert(r->units > 0 && r->memory >= unit->memory);
    *at = unit->next;
    r->units--;
    r->memory -= unit->memory;
    unit_empty(unit);
    free(unit);
}

static void unit_finish(struct replayer *r, struct unit *unit)
{
    unit_count(r, unit);
    unit_remove(r, replayer_find(r, unit->hash, unit_id(unit)));
}

/* ---- reports ---- */

static bool was_reported(const struct replayer *r, uint64_t key)
{
    for (size_t i = 0; i < r->reported_len; i++)
        if (r->reported[i] == key)
            return true;
    return false;
}

static void unit_fail(struct replayer *r, struct unit *unit, thole_status status, const char *text)
{
    if (r->options.gone != NULL && r->options.gone(r->options.arg, unit_id(unit))) {
        unit->state = UNIT_GONE;
        unit_empty(unit);
        return;
    }
    uint64_t const key = unit->hash ^ unit->execution * UINT64_C(0x9e3779b97f4a7c15);
    struct replay_report const report = {
        .instance = unit_id(unit),
        .execution = unit->execution,
        .turn = unit->turns + 1,
        .status = status,
        .text = text,
        .call_site = unit->instance == NULL ? NULL : instance_call_site(unit->instance)};
    assert(unit->state == UNIT_LIVE);
    if (!was_reported(r, key)) {
        assert(r->reported_len < REPORTED_MAX); /* the replay stops at the last one */
        r->counts.diverged += status == THOLE_NONDETERMINISM;
        r->counts.unreadable += status != THOLE_NONDETERMINISM;
        r->reported[r->reported_len++] = key;
        if (!r->options.report(r->options.arg, &report) || r->reported_len == REPORTED_MAX)
            r->stopped = true;
    }
    unit->state = UNIT_FAILED;
    unit_empty(unit);
}

/* ---- turns ---- */

/* Like the engine: the recorded version, else the newest. */
static const thole_orchestration_entry *replayer_code_of(const struct replayer *r, const struct unit *unit)
{
    const thole_orchestration_entry *newest = NULL;
    for (size_t i = 0; i < r->options.program->orchestrations_len; i++) {
        const thole_orchestration_entry *entry = &r->options.program->orchestrations[i];
        if (!thole_slice_equal(thole_slice_from(entry->name), unit->orchestration))
            continue;
        if (unit->version == entry_version(entry))
            return entry;
        if (newest == NULL || entry_version(entry) > entry_version(newest))
            newest = entry;
    }
    return unit->version == 0 ? newest : NULL;
}

static void unit_note(struct unit *unit, const struct turn *turn)
{
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *event = &turn->events[i];
        if (event->kind == EVENT_STARTED)
            unit->first = unit->execution == event->before + 1;
        if (event->kind == EVENT_STARTED && event->name.len <= THOLE_NAME_BYTES_MAX) {
            memcpy(unit->id + unit->id_len, event->name.ptr, event->name.len);
            unit->orchestration = (thole_slice){unit->id + unit->id_len, event->name.len};
        }
        if ((event->kind == EVENT_STARTED || event->kind == EVENT_VERSION_CHOSEN) && event->version != 0)
            unit->version = event->version;
    }
}

/* The debugger's, or who else asked for it: the turn at hand is not done. */
static void replayer_on_stop(void *arg, const struct instance *instance)
{
    const struct replayer *r = arg;
    const struct unit *unit = r->replaying;
    struct replay_report const report = {.instance = unit_id(unit),
                                         .execution = unit->execution,
                                         .turn = unit->turns + 1,
                                         .text = "",
                                         .call_site = instance_call_site(instance)};
    r->options.reached(r->options.arg, &report);
}

static thole_status unit_create(struct replayer *r, struct unit *unit)
{
    assert(unit->instance == NULL && unit->state == UNIT_LIVE);
    const thole_orchestration_entry *code = replayer_code_of(r, unit);
    if (code == NULL) {
        unit->state = UNIT_SKIPPED;
        unit_empty(unit);
        return THOLE_OK;
    }
    struct instance_options options = {.id = unit_id(unit),
                                       .execution = unit->execution,
                                       .memory_max = r->options.instance_memory_max,
                                       .payload_max = r->options.payload_max,
                                       .stacks = r->stacks,
                                       .stop = replayer_on_stop,
                                       .stop_arg = r};
    instance_options_code(&options, code);
    if (r->options.until_execution == 0 || r->options.until_execution == unit->execution)
        options.stop_event = r->options.until_event;
    unit->instance = instance_create(&options);
    return THOLE_OK;
}

/* The instance exists. */
static thole_status unit_replay(struct replayer *r, struct unit *unit, const struct turn *turn)
{
    thole_error err = {.status = THOLE_OK};
    assert(unit->instance != NULL && unit->state == UNIT_LIVE);
    r->replaying = unit;
    thole_status const status = instance_replay(unit->instance, turn, &err);
    if (status == THOLE_NOMEM)
        return status;
    if (status != THOLE_OK) {
        unit_fail(r, unit, status, err.text);
        return THOLE_OK;
    }
    unit->turns = turn->number;
    unit->events += turn->events_len;
    return THOLE_OK;
}

static thole_status replay_waiting(struct replayer *r, struct unit *unit)
{
    thole_status status = THOLE_OK;
    struct kept *const waiting = unit->waiting;
    unit->waiting = NULL;
    unit->waiting_last = &unit->waiting;
    for (struct kept *kept = waiting; kept != NULL && status == THOLE_OK && unit->state == UNIT_LIVE;
         kept = kept->next)
        status = unit_replay(r, unit, &kept->record.turn);
    kept_free(waiting);
    return status;
}

/* A copy of the turn in its own memory: encoded, and decoded again. */
static struct kept *replayer_keep(const struct record *record)
{
    struct kept *kept = memory_new(sizeof *kept);
    struct buf bytes;
    buf_init(&bytes, RECORD_BYTES_MAX);
    arena_init(&kept->arena, (size_t)RECORD_BYTES_MAX * 8);
    if (record_encode(record, &bytes) != THOLE_OK ||
        record_decode(buf_bytes(&bytes), &kept->arena, &kept->record, NULL) != THOLE_OK) {
        kept_free(kept);
        kept = NULL;
    }
    buf_release(&bytes);
    return kept;
}

/* Turns in which the code did not run may come before it is known which code it is. */
static thole_status wait_for_code(struct unit *unit, const struct turn *turn)
{
    struct record const record = {.kind = RECORD_TURN, .epoch = 1, .n = 1, .turn = *turn};
    struct kept *kept = replayer_keep(&record);
    if (kept == NULL)
        return THOLE_NOMEM;
    *unit->waiting_last = kept;
    unit->waiting_last = &kept->next;
    return THOLE_OK;
}

static thole_status replayer_take_turn(struct replayer *r, struct unit *unit, const struct turn *turn)
{
    if (unit->state != UNIT_LIVE || unit->execution == 0)
        return THOLE_OK;
    unit_note(unit, turn);
    if (unit->instance == NULL && !turn->ran)
        return wait_for_code(unit, turn);
    if (unit->instance == NULL) {
        THOLE_TRY(unit_create(r, unit));
        if (unit->state == UNIT_LIVE)
            THOLE_TRY(replay_waiting(r, unit));
    }
    return unit->state == UNIT_LIVE ? unit_replay(r, unit, turn) : THOLE_OK;
}

/* ---- parts ---- */

static thole_status join_parts(struct replayer *r, struct unit *unit)
{
    struct arena arena;
    struct turn_list list = {.len = 0};
    struct turn turn;
    size_t n = 0, parts = 1;
    thole_status status = THOLE_OK;
    for (const struct kept *kept = unit->parts; kept != NULL; kept = kept->next)
        n++;
    arena_init(&arena, SIZE_MAX / 2);
    list.records = arena_array(&arena, n, sizeof *list.records);
    for (const struct kept *kept = unit->parts; kept != NULL && list.records != NULL; kept = kept->next)
        turn_list_take(&list, &kept->record);
    for (size_t first = 0; first < list.len && status == THOLE_OK; first += parts) {
        parts = turn_list_join(&list, first, &arena, &turn);
        if (parts == 0)
            status = THOLE_NOMEM;
        else if (!turn.more)
            status = replayer_take_turn(r, unit, &turn);
    }
    arena_release(&arena);
    return list.records == NULL ? THOLE_NOMEM : status;
}

static void replayer_drop_parts(struct unit *unit)
{
    kept_free(unit->parts);
    unit->parts = NULL;
    unit->parts_last = &unit->parts;
}

static thole_status replayer_take_part(struct replayer *r, struct unit *unit, const struct record *record)
{
    if (unit->parts == NULL && !record->turn.more)
        return replayer_take_turn(r, unit, &record->turn); /* almost always */
    struct kept *kept = unit->state == UNIT_LIVE ? replayer_keep(record) : NULL;
    if (kept == NULL)
        return unit->state == UNIT_LIVE ? THOLE_NOMEM : THOLE_OK;
    *unit->parts_last = kept;
    unit->parts_last = &kept->next;
    if (record->turn.more)
        return THOLE_OK;
    thole_status const status = join_parts(r, unit);
    replayer_drop_parts(unit);
    return status;
}

/* ---- passes ---- */

static bool in_pass(const struct pass *pass, uint64_t hash)
{
    return (hash & pass->mask) == pass->bits;
}

/* Half of the instances wait for another pass: also ended ones, since a pass begins again from the first
 * record. */
static void replayer_split(struct replayer *r)
{
    uint64_t const bit = r->now.mask + 1;
    assert((bit & r->now.mask) == 0 && (r->now.bits & ~r->now.mask) == 0);
    struct pass const other = {.bits = r->now.bits | bit, .mask = r->now.mask | bit};
    assert(r->later_len < PASSES_MAX);
    r->later[r->later_len++] = other;
    r->now.mask |= bit;
    for (size_t i = 0; i < PASSES_MAX; i++)
        if (in_pass(&other, i))
            r->leaves[i] = (struct leaf){.events = 0};
    for (size_t i = 0; i < r->buckets_len; i++)
        for (struct unit **at = &r->buckets[i]; *at != NULL;) {
            if (in_pass(&r->now, (*at)->hash))
                at = &(*at)->next;
            else
                unit_remove(r, at);
        }
}

/* A single execution may exceed the memory: it has its own limit. */
static bool is_crowded(const struct replayer *r)
{
    bool const room = r->memory <= r->options.memory_max && r->units < r->options.stacks_max;
    return !room && r->units > 1 && r->now.mask + 1 < PASSES_MAX;
}

/* NULL: the execution has ended, or its replay was stopped. */
static struct unit *unit_for(struct replayer *r, const struct turn *turn, uint64_t hash)
{
    struct unit *unit = *replayer_find(r, hash, turn->instance);
    if (unit != NULL && unit->execution < turn->execution) {
        unit_finish(r, unit);
        unit = NULL;
    }
    if (unit != NULL || turn->number > 1)
        return unit != NULL && unit->execution == turn->execution ? unit : NULL;
    return unit_add(r, turn, hash);
}

static bool replayer_ends(const struct turn *turn)
{
    return !turn->more && turn->events_len > 0 && event_is_terminal(turn->events[turn->events_len - 1].kind);
}

thole_status replayer_take(struct replayer *r, const struct record *record)
{
    const struct turn *turn = &record->turn;
    uint64_t const hash = replayer_hash_of(turn->instance);
    assert(record->kind == RECORD_TURN);
    if (r->stopped)
        return THOLE_CANCELLED;
    if (!in_pass(&r->now, hash))
        return THOLE_OK;
    struct unit *unit = unit_for(r, turn, hash);
    if (unit == NULL)
        return THOLE_OK;
    thole_status const status = replayer_take_part(r, unit, record);
    unit_weigh(r, unit);
    if (unit->instance != NULL ? instance_ended(unit->instance)
                               : unit->state != UNIT_LIVE && replayer_ends(turn))
        unit_finish(r, unit);
    while (is_crowded(r))
        replayer_split(r);
    return r->stopped ? THOLE_CANCELLED : status;
}

thole_status replayer_take_damage(struct replayer *r, thole_slice instance, uint64_t execution,
                                  thole_status why, const char *text)
{
    struct turn const turn = {.instance = instance, .execution = execution, .number = 1};
    uint64_t const hash = replayer_hash_of(instance);
    if (r->stopped)
        return THOLE_CANCELLED;
    if (!in_pass(&r->now, hash))
        return THOLE_OK;
    struct unit *unit = unit_for(r, &turn, hash);
    if (unit != NULL && unit->state == UNIT_LIVE)
        unit_fail(r, unit, why, text);
    return r->stopped ? THOLE_CANCELLED : THOLE_OK;
}

void replayer_take_deletion(struct replayer *r, thole_slice instance)
{
    struct unit **at = replayer_find(r, replayer_hash_of(instance), instance);
    if (*at != NULL)
        unit_remove(r, at);
}

/* One that was never run has had no code anywhere, and would have none here. */
static bool lacks_code(const struct replayer *r, const struct unit *unit)
{
    if (unit->execution == 0 || unit->orchestration.len == 0)
        return false;
    return unit->state == UNIT_SKIPPED ||
           (unit->state == UNIT_LIVE && unit->instance == NULL && replayer_code_of(r, unit) == NULL);
}

/* An execution that has not ended: without its code it would wait. */
static void unit_lacks(struct replayer *r, struct unit *unit)
{
    char text[2 * THOLE_NAME_BYTES_MAX + 160];
    if (r->options.gone != NULL && r->options.gone(r->options.arg, unit_id(unit))) {
        unit->state = UNIT_GONE;
        return;
    }
    (void)snprintf(text, sizeof text, "it runs, and %s has no version %" PRIu32 " of orchestration %.*s",
                   r->options.program->name, unit->version == 0 ? 1 : unit->version,
                   THOLE_FMT(unit->orchestration));
    struct replay_report const report = {.instance = unit_id(unit),
                                         .execution = unit->execution,
                                         .turn = unit->turns + 1,
                                         .status = THOLE_NOT_FOUND,
                                         .text = text};
    unit->state = UNIT_SKIPPED;
    r->leaves[unit->hash % PASSES_MAX].running_without_code++;
    if (!r->options.report(r->options.arg, &report))
        r->stopped = true;
}

static void count_rest(struct replayer *r)
{
    for (size_t i = 0; i < r->buckets_len; i++)
        while (r->buckets[i] != NULL) {
            unit_count(r, r->buckets[i]);
            unit_remove(r, &r->buckets[i]);
        }
    assert(r->units == 0 && r->memory == 0);
}

void replayer_cut(struct replayer *r)
{
    count_rest(r);
}

bool replayer_pass(struct replayer *r)
{
    for (size_t i = 0; i < r->buckets_len; i++)
        for (struct unit *unit = r->buckets[i]; unit != NULL; unit = unit->next)
            if (!r->stopped && lacks_code(r, unit))
                unit_lacks(r, unit);
    count_rest(r);
    if (r->stopped || r->later_len == 0)
        return false;
    r->now = r->later[--r->later_len];
    return true;
}

/* ---- the whole ---- */

struct replayer *replayer_create(const struct replay_options *options)
{
    struct replayer *r = memory_new(sizeof *r);
    r->options = *options;
    r->buckets_len = BUCKETS_FIRST;
    r->buckets = memory_array(r->buckets_len, sizeof(struct unit *));
    r->stacks = stack_pool_create(STACKS_KEPT, options->stacks_max + 1);
    return r;
}

void replayer_destroy(struct replayer *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->buckets_len; i++)
        while (r->buckets[i] != NULL)
            unit_remove(r, &r->buckets[i]);
    free(r->buckets);
    stack_pool_destroy(r->stacks);
    free(r);
}

struct replay_counts replayer_counts(const struct replayer *r)
{
    struct replay_counts counts = r->counts;
    for (size_t i = 0; i < PASSES_MAX; i++) {
        counts.instances += r->leaves[i].instances;
        counts.executions += r->leaves[i].executions;
        counts.turns += r->leaves[i].turns;
        counts.events += r->leaves[i].events;
        counts.without_code += r->leaves[i].without_code;
        counts.running_without_code += r->leaves[i].running_without_code;
    }
    return counts;
}

void replay_counts_add(struct replay_counts *to, const struct replay_counts *more)
{
    to->instances += more->instances;
    to->executions += more->executions;
    to->turns += more->turns;
    to->events += more->events;
    to->diverged += more->diverged;
    to->unreadable += more->unreadable;
    to->without_code += more->without_code;
    to->running_without_code += more->running_without_code;
    for (const char *at = more->unknown; *at == ' ';) { /* " name, name," */
        size_t const len = strcspn(at + 1, ",");
        note_unknown(to, (thole_slice){(const uint8_t *)at + 1, len});
        at += len + 2;
    }
}
