/* The turns of an execution; whether a replay of them does the same, and gives back what it takes. */
#include "call_site.h"
#include "instances.h"
#include "kit.h"
#include "turn_list.h"
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

enum { HISTORY_ARENA_MAX = 1024 * 1024 * 1024, WHY_BYTES_MAX = 2048 };

/* ---- reading ---- */

void kit_turns_read(const thole_test_env *env, const struct kit_instance *instance, struct kit_turns *turns)
{
    struct record record;
    turns->len = 0;
    arena_init(&turns->arena, HISTORY_ARENA_MAX);
    struct turn_list list = {.records = arena_array(&turns->arena, instance->records_len + 1, sizeof record)};
    turns->items = arena_array(&turns->arena, instance->records_len + 1, sizeof *turns->items);
    kit_must(list.records != NULL && turns->items != NULL);
    for (size_t i = instance->from_before; i < instance->records_len; i++) {
        const struct kit_record *const stored = &env->records[instance->records[i]];
        if (stored->deleted)
            continue;
        kit_must(record_decode(stored->bytes, &turns->arena, &record, NULL) == THOLE_OK);
        if (record.kind == RECORD_TURN)
            turn_list_take(&list, &record);
    }
    for (size_t first = 0, parts; first < list.len; first += parts) {
        parts = turn_list_join(&list, first, &turns->arena, &turns->items[turns->len]);
        kit_must(parts > 0);
        turns->len += !turns->items[turns->len].more;
    }
}

const struct event *kit_turns_end(const struct kit_turns *turns)
{
    const struct turn *const last = turns->len == 0 ? NULL : &turns->items[turns->len - 1];
    const struct event *const event =
        last == NULL || last->events_len == 0 ? NULL : &last->events[last->events_len - 1];
    return event != NULL && event_is_terminal(event->kind) ? event : NULL;
}

/* ---- replay of what is recorded ---- */

static const thole_orchestration_entry *kit_replay_code_of(const thole_test_env *env,
                                                           const struct kit_turns *turns)
{
    const struct event *const started = &turns->items[0].events[0];
    uint32_t version = started->version;
    for (size_t t = 0; t < turns->len; t++)
        for (size_t i = 0; i < turns->items[t].events_len; i++)
            if (turns->items[t].events[i].kind == EVENT_VERSION_CHOSEN)
                version = turns->items[t].events[i].version;
    for (size_t i = 0; i < env->options.orchestrations_len; i++) {
        const thole_orchestration_entry *const entry = &env->options.orchestrations[i];
        if (thole_slice_equal(thole_slice_from(entry->name), started->name) &&
            entry_version(entry) == (version == 0 ? 1 : version))
            return entry;
    }
    return NULL;
}

struct kit_replay {
    struct instance_options options;
    const struct kit_turns *turns;
    thole_status status;
    thole_error err;
    const void *site; /* where the code waits */
};

/* A crash there is told like one of a turn. */
static void check_drops(void *arg, const struct instance *instance, bool begins)
{
    const struct code_watch *const watch = arg;
    struct code_run const run = watched_drop_run(instance, 0);
    if (begins)
        watch->begins(watch->arg, &run);
    else
        watch->ended(watch->arg);
}

/* On a thread of its own. What it takes from the heap it gives back, but for a stack that the pool keeps. */
static void *replay_and_drop(void *arg)
{
    struct kit_replay *const replay = arg;
    struct instance *const run = instance_create(&replay->options);
    replay->status = THOLE_OK;
    for (size_t i = 0; i < replay->turns->len && replay->status == THOLE_OK; i++)
        replay->status = instance_replay(run, &replay->turns->items[i], &replay->err);
    replay->site = instance_call_site(run);
    instance_destroy(run);
    return NULL;
}

/* 0: malloc() is not glibc's, but a sanitizer's or another, and nothing can be said of it. */
static size_t heap_used(void)
{
    struct mallinfo2 const heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

/* Bytes of the heap that are lost. What a thread frees counts as used while malloc() keeps it for that
 * thread, and is free when the thread has ended. */
static size_t replay_apart(struct kit_replay *replay)
{
    pthread_t thread;
    size_t const before = heap_used();
    if (before == 0 || pthread_create(&thread, NULL, replay_and_drop, replay) != 0) {
        (void)replay_and_drop(replay);
        return 0;
    }
    (void)pthread_join(thread, NULL);
    size_t const after = heap_used();
    return after > before ? after - before : 0;
}

/* The first threads leave something in the heap, and other threads of the test may: what is lost each time is
 * the code's. */
static size_t replay_loses(struct kit_replay *replay)
{
    enum { TIMES = 8 };
    size_t least = replay_apart(replay);
    for (int i = 1; i < TIMES && least > 0 && replay->status == THOLE_OK; i++) {
        size_t const lost = replay_apart(replay);
        least = lost < least ? lost : least;
    }
    return least;
}

static void loses_text(const struct kit_replay *replay, size_t bytes, struct buf *to)
{
    const struct turn *const last = &replay->turns->items[replay->turns->len - 1];
    uint64_t const event = last->events_len > 0 ? last->events[last->events_len - 1].id : 0;
    buf_printf(to,
               "%zu bytes of malloc() are lost when it is dropped from memory after event %llu: let "
               "thole_on_drop() release what it holds across an await, or use thole_alloc()",
               bytes, (unsigned long long)event);
    if (replay->site != NULL && kit_turns_end(replay->turns) == NULL) {
        buf_text(to, "; it waits at ");
        call_site_text(replay->site, to);
    }
}

static void replay_check(thole_test_env *env, struct kit_instance *instance, const struct kit_turns *turns)
{
    struct kit_replay replay = {.turns = turns,
                                .options = {.id = instance->id,
                                            .execution = turns->items[0].execution,
                                            .memory_max = env->options.instance_memory_max,
                                            .payload_max = env->options.payload_max,
                                            .stacks = env->stacks,
                                            .drops = check_drops,
                                            .drops_arg = &env->crash.watch}};
    const thole_orchestration_entry *const code = kit_replay_code_of(env, turns);
    struct buf why;
    if (code == NULL)
        return;
    instance_options_code(&replay.options, code);
    buf_init(&why, WHY_BYTES_MAX);
    size_t const lost = replay_loses(&replay);
    kit_must(replay.status != THOLE_NOMEM);
    if (replay.status != THOLE_OK && kit_turns_end(turns) != NULL) /* else the machine will see it itself */
        buf_text(&why, replay.err.text);
    else if (replay.status == THOLE_OK && lost > 0)
        loses_text(&replay, lost, &why);
    if (why.len > 0)
        instance->diverged = (const char *)kit_dup(env, thole_slice_from(buf_cstr(&why))).ptr;
    buf_release(&why);
}

/* A replay takes as long as all turns before it took: after each of the first turns, and then whenever there
 * are twice as many, all of them together take no longer than a few times the turns. */
static bool kit_replay_is_due(const struct kit_instance *instance)
{
    enum { EACH_TURNS = 64 };
    size_t const turns = instance->records_len - instance->from_before;
    return turns <= EACH_TURNS || (turns & (turns - 1)) == 0 || getenv("THOLE_TEST_REPLAY") != NULL;
}

static bool kit_replay_has_ended(const thole_test_env *env, const struct kit_instance *instance)
{
    const struct kit_record *const stored = &env->records[instance->records[instance->records_len - 1]];
    struct record record;
    struct arena arena;
    arena_init(&arena, HISTORY_ARENA_MAX);
    kit_must(record_decode(stored->bytes, &arena, &record, NULL) == THOLE_OK);
    size_t const len = record.kind == RECORD_TURN ? record.turn.events_len : 0;
    bool const is = len > 0 && event_is_terminal(record.turn.events[len - 1].kind);
    arena_release(&arena);
    return is;
}

void kit_replay_drop(thole_test_env *env)
{
    struct kit_instance *next, *stay = NULL;
    for (struct kit_instance *instance = env->due; instance != NULL; instance = next) {
        next = instance->due_next;
        instance->due = !partition_drop(env->machine, instance->id);
        if (instance->due) {
            instance->due_next = stay;
            stay = instance;
        }
    }
    env->due = stay;
}

void kit_history_check(thole_test_env *env, struct kit_instance *instance)
{
    struct kit_turns turns;
    if (env->keeps_parked || instance->diverged != NULL ||
        (!kit_replay_is_due(instance) && !kit_replay_has_ended(env, instance)))
        return;
    if (!instance->due) {
        instance->due = true;
        instance->due_next = env->due;
        env->due = instance;
    }
    kit_turns_read(env, instance, &turns);
    const struct event *const end = kit_turns_end(&turns);
    bool const ended = end != NULL && end->kind != EVENT_TERMINATED;
    bool const waits = end == NULL && heap_used() > 0; /* the code's effects are seen when the instance is
                                                          loaded */
    const struct turn *const last = turns.len == 0 ? NULL : &turns.items[turns.len - 1];
    if (last != NULL && last->ran && last->execution > 0 && (ended || waits))
        replay_check(env, instance, &turns);
    arena_release(&turns.arena);
}
