#include "random_program.h"
#include "thole/orchestration.h"
#include <stdlib.h>

enum { PROGRAM_MAX = 30, TASKS_MAX = 64, BATCH_MAX = 8, OPS = 24 };

uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- the orchestration ---- */

struct machine {
    thole_ctx *ctx;
    thole_task tasks[TASKS_MAX];
    size_t len;
    thole_saga saga;
    thole_slice said;
};

/* Of the code that ran last; a run begins with a clean sheet. */
static uint64_t told_to[RANDOM_SERIALS_MAX];
static bool damaged;    /* histories may hold anything, the same event twice too */
static size_t turn_now; /* value of a side effect: nothing that a replay could guess */

void random_damaged(bool histories_are)
{
    damaged = histories_are;
}

uint64_t random_told_to(size_t serial)
{
    return told_to[serial];
}

static void before_turn(size_t i)
{
    turn_now = i;
}

static void before_replay(void)
{
    turn_now = 99999;
}

static void say(struct machine *m, const char *what, uint64_t number)
{
    m->said = thole_format(m->ctx, "%.*s%s%llx", THOLE_FMT(m->said), what, (unsigned long long)number);
}

/* An event's data is "e" and its number; nobody else's is. Two tasks must not be told of one event. */
static void note_told(thole_task task, thole_slice data)
{
    if (data.len < 2 || data.ptr[0] != 'e')
        return;
    size_t const serial = (size_t)strtoul((const char *)data.ptr + 1, NULL, 10);
    CU_ASSERT(damaged || told_to[serial] == 0 || told_to[serial] == task.id);
    told_to[serial] = task.id;
}

static thole_status await_told(struct machine *m, thole_task task)
{
    thole_slice data = {0};
    thole_status const status = thole_await(m->ctx, task, &data);
    if (status == THOLE_OK)
        note_told(task, data);
    return status;
}

static thole_status await_some(struct machine *m, uint8_t op)
{
    thole_task some[4];
    thole_slice results[4] = {{0}};
    size_t winner = 0, n = (size_t)(op >> 5) % 4 + 1;
    for (size_t i = 0; i < n; i++)
        some[i] = m->len == 0 ? (thole_task){0} : m->tasks[(op + i * 3) % m->len];
    thole_status status = op % 3 == 0   ? thole_await_any(m->ctx, some, n, &winner)
                          : op % 3 == 1 ? thole_await_first(m->ctx, some, n, &winner)
                                        : thole_await_all(m->ctx, some, n, results);
    for (size_t i = 0; i < n; i++)
        note_told(some[i], results[i]);
    if (op % 3 == 2 || status != THOLE_OK)
        return status;
    say(m, "w", winner);
    return await_told(m, some[winner]);
}

static thole_task call_with(struct machine *m, uint8_t op)
{
    static const thole_slice finals[] = {{(const uint8_t *)"declined", 8}};
    thole_call_options const options = {.size = sizeof options,
                                        .total_timeout_ms = op % 3 == 0 ? 5000 : 0,
                                        .try_timeout_ms = op % 2 == 0 ? 500 : 0,
                                        .queue = op % 5 == 0 ? THOLE_STR("other") : THOLE_STR(""),
                                        .retry = {.tries_max = op % 5,
                                                  .first_delay_ms = op,
                                                  .factor = op % 4,
                                                  .jitter = op % 2 * 0.5,
                                                  .final_types = finals,
                                                  .final_types_len = op % 2}};
    return thole_call_with(m->ctx, THOLE_STR("tried"), (thole_slice){&op, 1}, &options);
}

static thole_status effect(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    uint8_t const *op = arg;
    *ret_value = thole_format(ctx, "t%zu", turn_now);
    return *op % 4 == 0 ? THOLE_NOT_FOUND : THOLE_OK;
}

static thole_status answer(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    const struct machine *m = arg;
    (void)input;
    *ret_output = thole_format(ctx, "%.*s", THOLE_FMT(m->said));
    return THOLE_OK;
}

static thole_slice name_of(uint8_t op)
{
    static const char *const names[] = {"a", "b", "c"};
    return thole_slice_from(names[op % 3]);
}

/* Operations that make a task. */
static bool schedule(struct machine *m, uint8_t op, uint8_t arg)
{
    thole_child_options const options = {.size = sizeof options, .close = (thole_close)(arg % 3)};
    thole_task made;
    switch (op) {
    case 0:
    case 1:
        made = thole_call(m->ctx, op == 0 ? THOLE_STR("even") : THOLE_STR("odd"), (thole_slice){&arg, 1});
        break;
    case 2: made = thole_timer(m->ctx, arg); break;
    case 3:
    case 4: made = call_with(m, arg); break;
    case 5:
    case 6:
    case 7: made = thole_event(m->ctx, name_of(arg)); break;
    case 8: made = thole_child(m->ctx, THOLE_STR("kid"), (thole_slice){&arg, 1}, &options); break;
    default: return false;
    }
    if (m->len < TASKS_MAX)
        m->tasks[m->len++] = made;
    return true;
}

/* Other operations, or none. */
static void leave(struct machine *m, uint8_t op, uint8_t arg)
{
    thole_ctx *ctx = m->ctx;
    thole_slice value = {0}, key = {0};
    thole_task const one = m->len == 0 ? (thole_task){0} : m->tasks[arg % m->len];
    switch (op) {
    case 9: thole_cancel(ctx, one, thole_task_error(ctx, m->tasks[0])); break;
    case 10: thole_raise(ctx, THOLE_STR("x"), arg % 9 == 0 ? THOLE_STR("") : name_of(arg), m->said); break;
    case 11: thole_start(ctx, THOLE_STR("alone"), (thole_slice){&arg, 1}, NULL); break;
    case 12: thole_state_set(ctx, name_of(arg), m->said); break;
    case 13: thole_state_remove(ctx, name_of(arg)); break;
    case 14: thole_set_status(ctx, m->said); break;
    case 15: say(m, "f", thole_side_effect(ctx, effect, &arg, &value)), say(m, "v", value.len); break;
    case 16: say(m, "r", thole_random(ctx) % 8); break;
    case 17: say(m, "p", thole_patch(ctx, name_of(arg))); break;
    case 18: thole_log(ctx, THOLE_LOG_INFO, "%d", arg); break;
    case 19: thole_on_query(ctx, name_of(arg), answer, m); break;
    case 20:
        say(m, "y", thole_ready(ctx, one));
        say(m, "s", thole_task_failure(ctx, one).status);
        while (thole_state_next(ctx, key, &key, &value) == THOLE_OK)
            say(m, "k", value.len);
        break;
    default: thole_saga_add(ctx, &m->saga, THOLE_STR("undo"), (thole_slice){&arg, 1}, NULL); break;
    }
}

static thole_status step(struct machine *m, uint8_t byte, uint8_t arg)
{
    uint8_t const op = byte % OPS;
    if (schedule(m, op, arg))
        return THOLE_OK;
    if (op < 22) {
        leave(m, op, arg);
        return THOLE_OK;
    }
    thole_task const one = m->len == 0 ? (thole_task){0} : m->tasks[arg % m->len];
    return op == 22 ? await_told(m, one) : await_some(m, arg);
}

/* An operation is followed by a wait as often as not, so that turns are short. */
thole_status random_program(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    struct machine m = {.ctx = ctx};
    memset(told_to, 0, sizeof told_to);
    for (size_t i = 0; i + 1 < input.len; i++) {
        uint8_t const byte = input.ptr[i], arg = input.ptr[i + 1];
        thole_status status = step(&m, byte, arg);
        if (status == THOLE_OK && (byte & 0x80) != 0)
            status = await_some(&m, arg);
        say(&m, "", (uint64_t)status);
        if (status == THOLE_LIMIT || (status != THOLE_OK && byte % 13 == 0)) {
            say(&m, "u", thole_saga_compensate(ctx, &m.saga));
            return status == THOLE_APP ? thole_throw_as(ctx, THOLE_STR("t"), "%.*s", THOLE_FMT(m.said))
                                       : status;
        }
    }
    *ret_output = m.said;
    return input.len % 2 == 0 ? THOLE_OK : thole_continue_as_new(ctx, input, 0);
}

/* ---- random events ---- */

static bool is_task(enum event_kind kind)
{
    return kind == EVENT_ACTIVITY_SCHEDULED || kind == EVENT_TIMER_CREATED || kind == EVENT_CHILD_SCHEDULED;
}

static thole_slice format(struct random_run *run, const char *what, uint64_t number)
{
    char *text = arena_alloc(&run->arena, 24);
    (void)snprintf(text, 24, "%s%llu", what, (unsigned long long)number);
    return thole_slice_from(text);
}

/* A failure, or a success; mostly of the try that runs. */
static struct event activity_result(struct random_run *run, uint64_t ref, uint64_t r)
{
    uint32_t const now = run->outside.try_of[ref];
    struct event e = {
        .kind = EVENT_ACTIVITY_COMPLETED, .ref = ref, .data = THOLE_STR("ok"), .try_number = now};
    if (r % 7 == 0)
        e.try_number = (uint32_t)(r >> 8) % 4;
    if (r % 3 == 0)
        return e;
    e.kind = EVENT_ACTIVITY_FAILED;
    e.code = r % 4 == 0 ? THOLE_TIMEOUT : THOLE_APP;
    e.error_type = r % 5 == 0 ? THOLE_STR("declined") : THOLE_STR("");
    e.details = r % 5 == 1 ? THOLE_STR("half") : THOLE_STR("");
    e.final = r % 11 == 0;
    return e;
}

/* A resolution of something scheduled, now and then of anything at all. */
static struct event any_resolution(struct random_run *run)
{
    const struct outside *o = &run->outside;
    uint64_t const r = random_next(&run->random);
    uint64_t ref = o->events == 0 ? 1 : r % (o->events + 1);
    for (uint64_t i = 0; i < o->events && r % 10 != 0; i++) {
        ref = (r + i) % o->events + 1;
        if (is_task(o->kind_of[ref]) && (!o->resolved[ref] || r % 9 == 0))
            break;
    }
    bool const wake = o->kind_of[ref] == EVENT_ACTIVITY_SCHEDULED && (o->waiting[ref] || r % 13 == 0);
    if (o->kind_of[ref] == EVENT_TIMER_CREATED || wake)
        return (struct event){.kind = EVENT_TIMER_FIRED, .ref = ref};
    if (o->kind_of[ref] != EVENT_CHILD_SCHEDULED)
        return activity_result(run, ref, r >> 4);
    return r % 3 == 0 ? (struct event){.kind = EVENT_CHILD_COMPLETED, .ref = ref, .data = THOLE_STR("ok")}
                      : (struct event){.kind = EVENT_CHILD_FAILED,
                                       .ref = ref,
                                       .code = r % 2 == 0 ? THOLE_APP : THOLE_CANCELLED,
                                       .error_type = THOLE_STR("broken")};
}

static struct event any_event(struct random_run *run)
{
    uint64_t const r = random_next(&run->random);
    thole_slice const request = r % 2 == 0 ? (thole_slice){NULL, 0} : format(run, "r", (r >> 20) % 40);
    switch (r % 40) {
    case 0: return (struct event){.kind = EVENT_CANCEL_REQUESTED, .data = THOLE_STR("why")};
    case 1:
    case 2: return (struct event){.kind = EVENT_PAUSED, .request_id = request};
    case 3:
    case 4:
    case 5:
    case 6: return (struct event){.kind = EVENT_RESUMED, .request_id = request};
    case 7:
        if (r >> 32 & 1)
            return (struct event){.kind = EVENT_TERMINATE_REQUESTED, .data = THOLE_STR("stop")};
        return (struct event){
            .kind = (enum event_kind)((r >> 40) % 40), .ref = r >> 50, .code = 7}; /* nonsense */
    default: break;
    }
    if (r % 40 < 20)
        return (struct event){.kind = EVENT_EVENT_RECEIVED,
                              .name = name_of((uint8_t)(r >> 8)),
                              .data = format(run, "e", ++run->outside.serials),
                              .request_id = request};
    return any_resolution(run);
}

static struct event any_start(struct random_run *run)
{
    uint8_t program[PROGRAM_MAX];
    struct event e = {.kind = EVENT_STARTED, .name = THOLE_STR("t")};
    size_t const len = sizeof program - random_next(&run->random) % 6;
    for (size_t i = 0; i < len; i++)
        program[i] = (uint8_t)random_next(&run->random);
    if (arena_dup(&run->arena, (thole_slice){program, len}, &e.data) != THOLE_OK)
        abort();
    return e;
}

static struct turn_in next_turn(struct random_run *run, const struct event *first, size_t first_len)
{
    bool const begins = run->played.len == 0;
    struct event *events = arena_array(&run->arena, BATCH_MAX + first_len, sizeof *events);
    size_t n = 0;
    for (size_t i = 0; begins && i < first_len; i++)
        events[n++] = first[i];
    if (begins && first_len == 0)
        events[n++] = any_start(run);
    size_t const more = random_next(&run->random) % 5;
    for (size_t i = 0; i < more; i++)
        events[n++] = any_event(run);
    return (struct turn_in){.time_ms = random_next(&run->random) % 500 + run->played.len * 300,
                            .received = events,
                            .received_len = n,
                            .run = random_next(&run->random) % 6 != 0};
}

/* ---- checks of recorded events ---- */

static void check_ref(struct outside *o, const struct event *e)
{
    enum event_kind const of = o->kind_of[e->ref];
    switch (e->kind) {
    case EVENT_TIMER_FIRED:
    case EVENT_TIMER_CANCELLED: CU_ASSERT_EQUAL(of, EVENT_TIMER_CREATED); break;
    case EVENT_EVENT_AWAIT_CANCELLED: CU_ASSERT_EQUAL(of, EVENT_EVENT_AWAITED); break;
    case EVENT_CHILD_COMPLETED:
    case EVENT_CHILD_FAILED:
    case EVENT_CHILD_CANCELLED: CU_ASSERT_EQUAL(of, EVENT_CHILD_SCHEDULED); break;
    default: CU_ASSERT_EQUAL(of, EVENT_ACTIVITY_SCHEDULED); break;
    }
    bool const too =
        e->kind == EVENT_CHILD_CANCELLED && e->flag; /* a cancelled child may be terminated, too */
    CU_ASSERT_TRUE(too || !o->resolved[e->ref]);
    if (e->kind == EVENT_ACTIVITY_TRY_FAILED || e->kind == EVENT_ACTIVITY_TRY_STARTED) {
        bool const starts = e->kind == EVENT_ACTIVITY_TRY_STARTED;
        CU_ASSERT_EQUAL(o->waiting[e->ref], starts);
        CU_ASSERT_EQUAL(e->try_number, o->try_of[e->ref] + (starts ? 1 : 0));
        o->try_of[e->ref] = e->try_number;
        o->waiting[e->ref] = !starts;
        return;
    }
    bool const over = e->kind == EVENT_ACTIVITY_FAILED && e->code == THOLE_TIMEOUT;
    if (e->kind == EVENT_ACTIVITY_COMPLETED || e->kind == EVENT_ACTIVITY_FAILED) {
        CU_ASSERT_EQUAL(e->try_number, o->try_of[e->ref] == 0 ? 1 : o->try_of[e->ref]);
        CU_ASSERT(over || !o->waiting[e->ref]);
    }
    o->resolved[e->ref] = true;
}

static void check_end(const struct outside *o)
{
    for (uint64_t id = 1; id <= o->events; id++) {
        if (is_task(o->kind_of[id]) && !o->abandoned[id])
            CU_ASSERT(o->resolved[id]);
    }
}

/* Whether a recorded event is possible after those before it. */
static void check_event(struct outside *o, const struct event *e)
{
    CU_ASSERT_FALSE(o->ended);
    CU_ASSERT_EQUAL(e->id, ++o->events);
    if (e->id >= RANDOM_EVENTS_MAX)
        abort();
    o->kind_of[e->id] = e->kind;
    if (e->kind == EVENT_ACTIVITY_SCHEDULED)
        o->try_of[e->id] = e->retry == NULL ? 0 : 1;
    o->abandoned[e->id] = e->kind == EVENT_CHILD_SCHEDULED && e->code == CLOSE_ABANDON;
    if (e->ref != 0)
        check_ref(o, e);
    CU_ASSERT_FALSE(e->kind == EVENT_CANCEL_REQUESTED && o->cancelled);
    CU_ASSERT_FALSE(e->kind == EVENT_PAUSED && o->paused);
    CU_ASSERT_FALSE(e->kind == EVENT_RESUMED && !o->paused);
    CU_ASSERT_EQUAL(e->kind == EVENT_TERMINATED, event_is_terminal(e->kind) && o->terminated);
    o->cancelled |= e->kind == EVENT_CANCEL_REQUESTED;
    o->terminated |= e->kind == EVENT_TERMINATE_REQUESTED;
    o->paused |= e->kind == EVENT_PAUSED;
    if (e->kind == EVENT_RESUMED || e->kind == EVENT_CANCEL_REQUESTED || e->kind == EVENT_TERMINATE_REQUESTED)
        o->paused = false;
    o->continued = e->kind == EVENT_CONTINUED_AS_NEW;
    o->ended = event_is_terminal(e->kind);
    if (o->ended)
        check_end(o);
}

void random_run_init(struct random_run *run, const struct play *play, uint64_t seed)
{
    memset(run, 0, sizeof *run);
    run->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    run->played.play = play;
    run->played.before_turn = before_turn;
    run->played.before_replay = before_replay;
    arena_init(&run->arena, 4 << 20);
}

void random_run_release(struct random_run *run)
{
    played_release(&run->played);
    arena_release(&run->arena);
}

struct instance *random_run_live(struct random_run *run, const struct event *first, size_t first_len)
{
    struct instance *instance = play_instance(run->played.play);
    while (run->played.len < PLAY_TURNS_MAX && !run->outside.ended) {
        struct turn_out out = {0};
        thole_error err = {.text = ""};
        struct turn_in const in = next_turn(run, first, first_len);
        thole_status const status = play_feed(&run->played, instance, in, &out, &err);
        CHECK_STR("live", err.text, "");
        if (status != THOLE_OK)
            break;
        for (size_t i = 0; i < out.events_len; i++)
            check_event(&run->outside, &out.events[i]);
        CU_ASSERT_EQUAL(out.ended, run->outside.ended);
        CU_ASSERT_EQUAL(out.ran, run->outside.terminated || (in.run && !run->outside.paused));
        CU_ASSERT_EQUAL(instance_paused(instance), run->outside.paused);
    }
    return instance;
}
