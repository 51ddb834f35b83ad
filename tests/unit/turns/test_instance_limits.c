/* Memory ceilings: every smaller one ends the turn with THOLE_LIMIT and nothing else; the smallest that is
 * enough gives the same bytes as a large one. */
#include "dropped.h"
#include "play.h"
#include "thole/orchestration.h"

enum { SWEEP_STEP = 16, SWEEP_MAX = 64 * 1024 };

/* Something of everything that takes memory. */
static thole_status greedy(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[20];
    for (size_t i = 0; i < 18; i++)
        tasks[i] = thole_call(ctx, i % 2 == 0 ? THOLE_STR("even") : THOLE_STR("odd"),
                              thole_format(ctx, "%zu of %.*s", i, THOLE_FMT(input)));
    tasks[18] = thole_timer(ctx, 5);
    tasks[19] = thole_call(ctx, THOLE_STR("last"), input);
    thole_cancel(ctx, tasks[3], THOLE_STR("not this one"));
    THOLE_TRY(thole_await(ctx, tasks[0], &input));
    size_t winner;
    THOLE_TRY(thole_await_any(ctx, &tasks[16], 4, &winner));
    thole_slice *results = thole_alloc(ctx, 3 * sizeof *results);
    if (results == NULL)
        return THOLE_APP;
    THOLE_TRY(thole_await_all(ctx, (thole_task[]){tasks[0], tasks[4], tasks[16 + winner]}, 3, results));
    *ret_output = thole_format(ctx, "%.*s|%.*s", THOLE_FMT(input), THOLE_FMT(results[1]));
    return THOLE_OK;
}

static const char greedy_script[] =
    "Started t(an input that is copied) / ActivityCompleted #2 (the first result) / "
    "ActivityCompleted #6 (the second) | ActivityCompleted #18 (third) / TimerFired #20";

/* Likewise for tasks other than activities and timers. */
static thole_status make(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    *ret_value = thole_format(ctx, "made of %s", (const char *)arg);
    return ret_value->len > 0 ? THOLE_OK : THOLE_LIMIT;
}

static thole_status answer(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)arg;
    *ret_output = input;
    return THOLE_OK;
}

static void schedule_some(thole_ctx *ctx, thole_slice input, thole_saga *saga)
{
    thole_slice const final = THOLE_STR("declined");
    thole_call_options const options = {
        .size = sizeof options,
        .queue = THOLE_STR("cards"),
        .retry = {.tries_max = 3, .first_delay_ms = 5, .final_types = &final, .final_types_len = 1}};
    char name[32];
    drop_task(thole_call_with(ctx, THOLE_STR("charge"), input, &options));
    drop_task(thole_child(ctx, THOLE_STR("kid"), input, NULL));
    thole_start(ctx, THOLE_STR("mail"), input, NULL);
    thole_raise(ctx, THOLE_STR("other"), THOLE_STR("news"), input);
    thole_saga_add(ctx, saga, THOLE_STR("undo"), input, &options);
    thole_on_query(ctx, THOLE_STR("how"), answer, NULL);
    for (int i = 0; i < 12; i++) {
        (void)snprintf(name, sizeof name, "event-%d", i);
        drop_task(thole_event(ctx, thole_slice_from(name)));
        thole_state_set(ctx, thole_slice_from(name), input);
    }
    thole_state_remove(ctx, THOLE_STR("event-3"));
    thole_set_status(ctx, input);
}

static thole_status hungry(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_saga saga = {0};
    thole_slice value = {0};
    bool const patched = thole_patch(ctx, THOLE_STR("change"));
    schedule_some(ctx, input, &saga);
    thole_status const made = thole_side_effect(ctx, make, "straw", &value);
    if (made != THOLE_OK)
        return made;
    thole_task tasks[] = {thole_event(ctx, THOLE_STR("go")), thole_event(ctx, THOLE_STR("go")),
                          thole_timer(ctx, 9)};
    size_t winner;
    THOLE_TRY(thole_await_any(ctx, tasks, 3, &winner));
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), &input));
    thole_slice const uuid = thole_uuid(ctx);
    if (uuid.len == 0)
        return THOLE_LIMIT;
    (void)ret_output;
    return thole_continue_as_new(
        ctx, thole_format(ctx, "%d%.*s%.*s", patched, THOLE_FMT(value), THOLE_FMT(input)), 0);
}

static const char hungry_script[] =
    "Started t(bread) of p:1#2 [id=r0] | EventReceived kept(1) [id=r1] | EventReceived kept(2) [id=r2] / "
    "ActivityFailed #5 APP busy (no) [details=half] | EventReceived event-5(x) [id=r3] / TimerFired #5 / "
    "ChildFailed #6 APP broken (no) / TimerFired #38 | EventReceived go(1) | EventReceived go(2)";

/* The array of events grows once more for those that close its timers, after the end of its code. */
static thole_status leaves_timers(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    for (int i = 0; i < 17; i++)
        drop_task(thole_timer(ctx, 9));
    return thole_continue_as_new(ctx, input, 0);
}

#define TASKS(n) " (" n " tasks scheduled, 0 events waiting)"
#define ADVICE ": schedule less at a time, continue as new, or raise --instance-memory-max"

struct sweep_row {
    const char *name;
    thole_orchestration_fn *code;
    const char *script, *end; /* end: events of the last turn */
};
static const struct sweep_row sweeps[] = {
    {"tasks", greedy, greedy_script, "Completed (the first result|the second)"},
    {"the rest", hungry, hungry_script, "ContinuedAsNew (1made of straw1)"},
    {"what closes timers", leaves_timers, "Started t(again)", "ContinuedAsNew (again)"},
};

/* Plays it with so much memory; true when it went through, else the last thing shown is the limit. What went
 * through live goes through again when replayed, with the same ceiling: play_live() checks it. */
static bool plays_within(const struct sweep_row *row, size_t memory_max, struct buf *to)
{
    struct play play = play_of(row->code);
    play.memory_max = memory_max;
    play.bare = true;
    play_live(&play, row->script, to);
    CU_ASSERT_EQUAL(stack_pool_in_use(play.stacks), 0);
    play_release(&play);
    return strstr(buf_cstr(to), "LIMIT: ") == NULL;
}

static void sweep(const struct sweep_row *row)
{
    struct buf enough, got;
    char expected[200];
    size_t memory_max = 0, failures = 0;
    buf_init(&enough, PLAY_TEXT_MAX);
    buf_init(&got, PLAY_TEXT_MAX);
    CU_ASSERT(plays_within(row, 1 << 20, &enough));
    if (strstr(buf_cstr(&enough), row->end) == NULL)
        CHECK_STR(row->name, buf_cstr(&enough), row->end);
    while (memory_max < SWEEP_MAX && !plays_within(row, memory_max, &got)) {
        (void)snprintf(expected, sizeof expected,
                       "LIMIT: the instance's memory limit of %zu bytes is reached (", memory_max);
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&got), expected));
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&got), " events waiting)" ADVICE));
        memory_max += SWEEP_STEP;
        failures++;
        buf_clear(&got);
    }
    CU_ASSERT(failures > 100);
    CHECK_STR(row->name, buf_cstr(&got), buf_cstr(&enough));
    buf_release(&got);
    buf_release(&enough);
}

static void every_smaller_ceiling_is_a_limit(void)
{
    for (size_t i = 0; i < ARRAY_LEN(sweeps); i++)
        sweep(&sweeps[i]);
}

/* ---- one ceiling for a turn: its events, and what is copied for them ---- */

enum {
    STATUSES = 1100,
    STATUS_BYTES = 250,
    EVENTS_CAP = 2048
}; /* so many events take the next power of two */

static thole_status says_much(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    char text[STATUS_BYTES];
    (void)input, (void)ret_output;
    memset(text, 's', sizeof text);
    for (int i = 0; i < STATUSES; i++)
        thole_set_status(ctx, (thole_slice){(const uint8_t *)text, sizeof text});
    return THOLE_OK;
}

static void events_and_copies_share_the_ceiling(void)
{
    struct sweep_row const row = {"statuses", says_much, "Started t(x)", "Completed"};
    size_t const events = EVENTS_CAP * sizeof(struct event), copies = STATUSES * (STATUS_BYTES + 16);
    struct buf text;
    buf_init(&text, 16 * PLAY_TEXT_MAX);
    CU_ASSERT_TRUE(plays_within(&row, events + 2 * copies, &text));
    buf_clear(&text);
    CU_ASSERT_FALSE(plays_within(&row, events + copies / 2, &text));
    buf_release(&text);
}

/* ---- the code's view ---- */

static thole_status never_stops_asking(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    while (thole_alloc(ctx, 1000) != NULL)
        ;
    CU_ASSERT_PTR_NULL(thole_alloc(ctx, SIZE_MAX));
    CU_ASSERT_EQUAL(thole_format(ctx, "%01000d", 0).len, 0);
    CU_ASSERT_EQUAL(thole_await(ctx, thole_call(ctx, THOLE_STR("a"), input), NULL), THOLE_LIMIT);
    CU_ASSERT_EQUAL(thole_await_all(ctx, NULL, 0, NULL), THOLE_LIMIT);
    while (thole_await(ctx, thole_timer(ctx, 1), NULL) != THOLE_OK)
        ; /* parked after a while, and dropped with the instance */
    return THOLE_OK;
}

static thole_status schedules_for_ever(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    thole_task task;
    do
        task = thole_call(ctx, THOLE_STR("a"), input);
    while (task.id < 1000000);
    return thole_await(ctx, task, NULL);
}

static thole_status schedules_blindly(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    for (;;)
        if (thole_call(ctx, THOLE_STR("a"), input).id == 0)
            return THOLE_OK; /* never */
}

/* Events alone, which hold no memory of the execution. */
static thole_status says_nothing_for_ever(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    for (int i = 0; i < 1000000; i++)
        thole_set_status(ctx, THOLE_STR(""));
    return THOLE_OK;
}

static void code_is_told_and_then_parked(void)
{
    struct play_row const rows[] = {
        {"allocates for ever", never_stops_asking, "Started t(x)",
         "LIMIT: the instance's memory limit of 1048576 bytes is reached" TASKS("0") ADVICE},
        {"schedules for ever", schedules_for_ever, "Started t(x)",
         "LIMIT: the instance's memory limit of 1048576 bytes is reached" TASKS("4096") ADVICE},
        {"schedules for ever, and does not look", schedules_blindly, "Started t(x)",
         "LIMIT: the instance's memory limit of 1048576 bytes is reached" TASKS("4096") ADVICE},
        {"says nothing for ever", says_nothing_for_ever, "Started t(x)",
         "LIMIT: the instance's memory limit of 1048576 bytes is reached" TASKS("0") ADVICE},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

static thole_status one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("a"), input), ret_output);
}

static void a_failed_instance_stays_failed(void)
{
    struct play play = play_of(one);
    play.memory_max = 64;
    struct instance *instance = play_instance(&play);
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t"), .data = THOLE_STR("x")};
    struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out;
    thole_error err = {0};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, &err), THOLE_LIMIT);
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, &err), THOLE_LIMIT);
    CHECK_STR("again", err.text, "an earlier turn of this instance failed");
    instance_destroy(instance);
    play_release(&play);
}

static void no_stack_is_no_memory(void)
{
    struct play play = play_of(one);
    stack_pool_destroy(play.stacks);
    play.stacks = stack_pool_create(0, 1);
    struct instance *first = play_instance(&play), *second = play_instance(&play);
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t"), .data = THOLE_STR("x")};
    struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out;
    thole_error err = {0};
    CU_ASSERT_EQUAL(instance_turn(first, &in, &out, &err), THOLE_OK);
    CU_ASSERT_EQUAL(instance_turn(second, &in, &out, &err), THOLE_NOMEM);
    CHECK_STR("text", err.text, "no stack for an orchestration (1 are in use)");
    instance_destroy(first);
    instance_destroy(second);
    play_release(&play);
}

static const struct thole_test tests[] = {
    {"every smaller ceiling is a limit", every_smaller_ceiling_is_a_limit},
    {"events and copies share the ceiling", events_and_copies_share_the_ceiling},
    {"code is told and then parked", code_is_told_and_then_parked},
    {"a failed instance stays failed", a_failed_instance_stays_failed},
    {"no stack is no memory", no_stack_is_no_memory},
};
THOLE_TEST_MAIN("instance_limits", tests)
