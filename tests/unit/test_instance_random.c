/*
 * Random orchestrations fed with random events. The input is a program of which each byte is an operation, so
 * the code is deterministic and does everything in every order. After each run the recorded history must
 *   - be well formed: nothing resolved twice, all resolved at the end, the end last;
 *   - replay at every prefix, and go on from there with the same bytes;
 *   - without code, give the same answers about which messages would change something.
 */
#include "play.h"
#include "thole/orchestration.h"
#include <stdlib.h>

enum { SEEDS = 400, PROGRAM_MAX = 24, TASKS_MAX = 64, TURNS_MAX = 40, EVENTS_MAX = 1000, BATCH_MAX = 6 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- the orchestration ---- */

struct machine {
    thole_task tasks[TASKS_MAX];
    size_t len;
};

static thole_status await_some(thole_ctx *ctx, struct machine *m, uint8_t op)
{
    thole_task some[4];
    size_t winner = 0, n = (size_t)(op >> 5) % 4 + 1;
    for (size_t i = 0; i < n; i++)
        some[i] = m->len == 0 ? (thole_task){0} : m->tasks[(op + i * 3) % m->len];
    switch (op % 3) {
    case 0: return thole_await_any(ctx, some, n, &winner);
    case 1: return thole_await_first(ctx, some, n, &winner);
    default: return thole_await_all(ctx, some, n, NULL);
    }
}

static thole_status step(thole_ctx *ctx, struct machine *m, uint8_t op)
{
    thole_task const one = m->len == 0 ? (thole_task){0} : m->tasks[op % m->len];
    thole_task made = {0};
    switch (op % 7) {
    case 0:
    case 1:
        made = thole_call(ctx, op % 2 == 0 ? THOLE_STR("even") : THOLE_STR("odd"), (thole_slice){&op, 1});
        break;
    case 2: made = thole_timer(ctx, op); break;
    case 3: return thole_await(ctx, one, NULL);
    case 4: thole_cancel(ctx, one, thole_task_error(ctx, m->tasks[0])); return THOLE_OK;
    default: return await_some(ctx, m, op);
    }
    if (m->len < TASKS_MAX)
        m->tasks[m->len++] = made;
    return THOLE_OK;
}

static thole_status interpret(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    struct machine m = {.len = 0};
    thole_slice said = {NULL, 0};
    for (size_t i = 0; i < input.len; i++) {
        thole_status const status = step(ctx, &m, input.ptr[i]);
        said = thole_format(ctx, "%.*s%d", THOLE_FMT(said), (int)status);
        if (status == THOLE_LIMIT || (status != THOLE_OK && input.ptr[i] % 5 == 0))
            return status == THOLE_APP ? thole_throw(ctx, "%.*s", THOLE_FMT(said)) : status;
    }
    *ret_output = said;
    return THOLE_OK;
}

/* ---- a run and what is known of it from outside ---- */

struct run {
    uint64_t random;
    struct arena arena; /* of all below */
    struct turn_in fed[TURNS_MAX];
    struct buf records[TURNS_MAX];
    size_t turns;
    enum event_kind kind_of[EVENTS_MAX]; /* by event id */
    bool resolved[EVENTS_MAX];
    uint64_t events;
    bool ended, cancel_asked;
};

/* A resolution of something scheduled, now and then of anything at all. */
static struct event any_resolution(struct run *run)
{
    uint64_t const r = next_random(&run->random);
    uint64_t ref = run->events == 0 ? 1 : r % (run->events + 1);
    for (uint64_t i = 0; i < run->events && r % 10 != 0; i++) {
        ref = (r + i) % run->events + 1;
        bool const task =
            run->kind_of[ref] == EVENT_ACTIVITY_SCHEDULED || run->kind_of[ref] == EVENT_TIMER_CREATED;
        if (task && (!run->resolved[ref] || r % 9 == 0))
            break;
    }
    if (run->kind_of[ref] == EVENT_TIMER_CREATED)
        return (struct event){.kind = EVENT_TIMER_FIRED, .ref = ref};
    if (r % 4 == 0)
        return (struct event){
            .kind = EVENT_ACTIVITY_FAILED, .ref = ref, .code = THOLE_APP, .data = THOLE_STR("no")};
    return (struct event){.kind = EVENT_ACTIVITY_COMPLETED, .ref = ref, .data = THOLE_STR("ok")};
}

static struct turn_in next_turn(struct run *run)
{
    struct event *events = arena_array(&run->arena, BATCH_MAX, sizeof *events);
    size_t n = 0;
    if (run->turns == 0) {
        uint8_t program[PROGRAM_MAX];
        for (size_t i = 0; i < sizeof program; i++)
            program[i] = (uint8_t)next_random(&run->random);
        events[0] = (struct event){.kind = EVENT_STARTED, .name = THOLE_STR("t")};
        if (arena_dup(&run->arena, (thole_slice){program, sizeof program}, &events[0].data) != THOLE_OK)
            abort();
        n = 1;
    }
    size_t const more = next_random(&run->random) % 4;
    for (size_t i = 0; i < more; i++)
        events[n++] = any_resolution(run);
    if (next_random(&run->random) % 24 == 0 && n < BATCH_MAX)
        events[n++] = (struct event){.kind = EVENT_CANCEL_REQUESTED, .data = THOLE_STR("why")};
    return (struct turn_in){.time_ms = next_random(&run->random) % 100000,
                            .received = events,
                            .received_len = n,
                            .run = next_random(&run->random) % 6 != 0};
}

/* What a recorded event may be, given those before it. */
static void check_event(struct run *run, const struct event *e)
{
    CU_ASSERT_FALSE(run->ended);
    CU_ASSERT_EQUAL(e->id, ++run->events);
    if (e->id >= EVENTS_MAX)
        abort();
    run->kind_of[e->id] = e->kind;
    if (e->ref != 0) {
        bool const by_timer = e->kind == EVENT_TIMER_FIRED || e->kind == EVENT_TIMER_CANCELLED;
        CU_ASSERT_EQUAL(run->kind_of[e->ref], by_timer ? EVENT_TIMER_CREATED : EVENT_ACTIVITY_SCHEDULED);
        CU_ASSERT_FALSE(run->resolved[e->ref]);
        run->resolved[e->ref] = true;
    }
    if (e->kind == EVENT_CANCEL_REQUESTED) {
        CU_ASSERT_FALSE(run->cancel_asked);
        run->cancel_asked = true;
    }
    run->ended = event_is_terminal(e->kind);
    for (uint64_t id = 1; id <= run->events && run->ended; id++) {
        if (run->kind_of[id] == EVENT_ACTIVITY_SCHEDULED || run->kind_of[id] == EVENT_TIMER_CREATED)
            CU_ASSERT(run->resolved[id]);
    }
}

static thole_status turn_recorded(struct instance *instance, const struct turn_in *in, struct buf *to,
                                  struct turn_out *out, thole_error *err)
{
    THOLE_TRY(instance_turn(instance, in, out, err));
    struct record const r = {.kind = RECORD_TURN,
                             .epoch = 1,
                             .n = out->number,
                             .turn = {.instance = THOLE_STR("order-1"),
                                      .execution = 1,
                                      .number = out->number,
                                      .time_ms = out->time_ms,
                                      .ran = in->run,
                                      .events = out->events,
                                      .events_len = out->events_len}};
    buf_init(to, RECORD_BYTES_MAX);
    return record_encode(&r, to);
}

static void live(const struct play *play, struct run *run)
{
    struct instance *instance = play_instance(play);
    while (run->turns < TURNS_MAX && !run->ended) {
        struct turn_out out = {0};
        thole_error err = {.text = ""};
        run->fed[run->turns] = next_turn(run);
        thole_status const status =
            turn_recorded(instance, &run->fed[run->turns], &run->records[run->turns], &out, &err);
        CHECK_STR("live", err.text, "");
        if (status != THOLE_OK)
            break;
        run->turns++;
        for (size_t i = 0; i < out.events_len; i++)
            check_event(run, &out.events[i]);
        CU_ASSERT_EQUAL(out.ended, run->ended);
    }
    instance_destroy(instance);
}

static void replay_prefix(struct instance *instance, const struct run *run, size_t prefix)
{
    for (size_t i = 0; i < prefix; i++) {
        struct arena arena;
        struct record r;
        thole_error err = {.text = ""};
        arena_init(&arena, 1 << 20);
        if (record_decode(buf_bytes(&run->records[i]), &arena, &r, &err) == THOLE_OK)
            play_ignore(instance_replay(instance, &r.turn, &err));
        CHECK_STR("replayed", err.text, "");
        arena_release(&arena);
    }
}

static void check_prefix(const struct play *play, const struct run *run, size_t prefix)
{
    struct play without_code = *play;
    without_code.code = NULL;
    struct instance *instance = play_instance(play), *facts = play_instance(&without_code);
    replay_prefix(instance, run, prefix);
    replay_prefix(facts, run, prefix);
    for (uint64_t ref = 0; ref <= run->events + 1; ref++) {
        for (int kind = EVENT_STARTED; kind <= EVENT_CANCELLED; kind++) {
            struct event const e = {.kind = (enum event_kind)kind, .ref = ref};
            CU_ASSERT_EQUAL(instance_accepts(instance, &e), instance_accepts(facts, &e));
        }
    }
    CU_ASSERT_EQUAL(instance_ended(instance), instance_ended(facts));
    CU_ASSERT_EQUAL(instance_has_undelivered(instance), instance_has_undelivered(facts));
    CU_ASSERT_EQUAL(instance_time_ms(instance), instance_time_ms(facts));
    instance_destroy(facts);
    for (size_t i = prefix; i < run->turns; i++) {
        struct buf record;
        struct turn_out out;
        CU_ASSERT_EQUAL(turn_recorded(instance, &run->fed[i], &record, &out, NULL), THOLE_OK);
        CU_ASSERT(thole_slice_equal(buf_bytes(&record), buf_bytes(&run->records[i])));
        buf_release(&record);
    }
    instance_destroy(instance);
}

static void random_programs(void)
{
    size_t ended = 0, cancelled = 0, turns = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        unsigned const failures = CU_get_number_of_failures();
        struct play play = play_of(interpret);
        struct run *run = calloc(1, sizeof *run);
        run->random = seed * 0x9e3779b97f4a7c15;
        arena_init(&run->arena, 1 << 20);
        live(&play, run);
        for (size_t prefix = 0; prefix <= run->turns; prefix += prefix / 4 + 1)
            check_prefix(&play, run, prefix);
        ended += run->ended;
        cancelled += run->cancel_asked;
        turns += run->turns;
        for (size_t i = 0; i < run->turns; i++)
            buf_release(&run->records[i]);
        arena_release(&run->arena);
        free(run);
        play_release(&play);
        if (CU_get_number_of_failures() != failures) {
            fprintf(stderr, "\n  seed %llu\n", (unsigned long long)seed);
            break;
        }
    }
    printf("(%zu turns, %zu of %d ended, %zu cancelled) ", turns, ended, SEEDS, cancelled);
    CU_ASSERT(ended > SEEDS / 2 && cancelled > SEEDS / 10);
}

static const struct thole_test tests[] = {
    {"random programs", random_programs},
};
THOLE_TEST_MAIN("instance_random", tests)
