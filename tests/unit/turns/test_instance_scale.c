/* Costs must grow with what happens, not with its square: many tasks, many turns, many events in one turn. */
#include "scale_tape.h"
#include "thole/orchestration.h"
#include <stdlib.h>

enum { FAN = 5000, FAN_MAX = 100000, BURST = 1000 };

static thole_task *fan_out(thole_ctx *ctx, thole_slice input)
{
    size_t const n = scale_number(input);
    thole_task *tasks = thole_alloc(ctx, n * sizeof *tasks);
    for (size_t i = 0; tasks != NULL && i < n; i++)
        tasks[i] = thole_call(ctx, THOLE_STR("part"), input);
    return tasks;
}

static thole_status total(thole_ctx *ctx, const thole_slice *results, size_t n, thole_slice *ret_output)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += results[i].len;
    *ret_output = thole_format(ctx, "%zu", bytes);
    return THOLE_OK;
}

static thole_status fan_in_all(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t const n = scale_number(input);
    thole_task *tasks = fan_out(ctx, input);
    thole_slice *results = thole_alloc(ctx, n * sizeof *results);
    THOLE_TRY(thole_await_all(ctx, tasks, n, results));
    return total(ctx, results, n, ret_output);
}

static thole_status fan_in_one_by_one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t const n = scale_number(input);
    thole_task *tasks = fan_out(ctx, input);
    thole_slice *results = thole_alloc(ctx, n * sizeof *results);
    for (size_t i = 0; i < n; i++)
        THOLE_TRY(thole_await(ctx, tasks[i], &results[i]));
    return total(ctx, results, n, ret_output);
}

static thole_status fan_in_first(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task *tasks = fan_out(ctx, input);
    size_t winner = 0;
    THOLE_TRY(thole_await_any(ctx, tasks, scale_number(input), &winner));
    *ret_output = thole_format(ctx, "%zu", winner);
    return THOLE_OK;
}

/* In the order in which they come: each await is given those that are left. */
static thole_status fan_in_as_they_come(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t n = scale_number(input), first = 0;
    thole_task *tasks = fan_out(ctx, input);
    for (; n > 0; tasks[first] = tasks[--n])
        THOLE_TRY(thole_await_first(ctx, tasks, n, &first));
    *ret_output = THOLE_STR("all");
    return THOLE_OK;
}

static thole_status loop(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (size_t i = 0; i < FAN; i++)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("step"), input), &input));
    *ret_output = input;
    return THOLE_OK;
}

static thole_status event_order(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[BURST];
    for (size_t i = 0; i < BURST; i++)
        tasks[i] = thole_timer(ctx, i);
    size_t first = 0;
    THOLE_TRY(thole_await_first(ctx, tasks, BURST, &first));
    THOLE_TRY(thole_await_all(ctx, tasks, BURST, NULL));
    (void)input;
    *ret_output = thole_format(ctx, "%zu", first);
    return THOLE_OK;
}

static struct event completed(uint64_t ref)
{
    return (struct event){.kind = EVENT_ACTIVITY_COMPLETED, .ref = ref, .data = THOLE_STR("result")};
}

struct fan_row {
    const char *name;
    thole_orchestration_fn *code;
    size_t n,
        stride;   /* completions come in the order of i * stride modulo n: forwards, or all over the place */
    size_t batch; /* so many in one turn */
};

static void fan(const struct fan_row *row)
{
    struct play play = scale_play(row->code);
    struct tape tape;
    struct instance *instance = play_instance(&play);
    struct event *events = calloc(row->batch, sizeof *events);
    struct event const start = scale_start(row->n);
    tape_init(&tape);
    bool goes_on = tape_feed(&tape, instance, &start, 1);
    for (size_t i = 0; i < row->n && goes_on; i += row->batch) {
        for (size_t j = 0; j < row->batch; j++)
            events[j] = completed(2 + (i + j) * row->stride % row->n);
        goes_on = tape_feed(&tape, instance, events, row->batch);
    }
    CU_ASSERT(instance_ended(instance));
    instance_destroy(instance);
    free(events);
    tape_finish(row->name, &play, &tape);
    play_release(&play);
}

static void fan_out_and_in(void)
{
    static const struct fan_row rows[] = {
        {"all, one turn each", fan_in_all, FAN, 1, 1},
        {"all, shuffled", fan_in_all, FAN, 2477, 1},
        {"all, one turn", fan_in_all, FAN, 2477, FAN},
        {"one by one, in order", fan_in_one_by_one, FAN, 1, 1},
        {"one by one, shuffled", fan_in_one_by_one, FAN, 2477, 1},
        {"one by one, the last one first", fan_in_one_by_one, FAN, FAN - 1, 1},
        {"the first of all", fan_in_first, FAN, 1, 1},
        {"as they come", fan_in_as_they_come, FAN, 2477, 1},
        {"100,000", fan_in_all, FAN_MAX, 24781, 100},
        {"100,000, one by one", fan_in_one_by_one, FAN_MAX, 24781, 100},
        {"100,000, one turn", fan_in_all, FAN_MAX, 24781, FAN_MAX},
        {"100,000, the first of all", fan_in_first, FAN_MAX, 24781, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        fan(&rows[i]);
}

static void long_loop(void)
{
    struct play play = scale_play(loop);
    struct tape tape;
    struct instance *instance = play_instance(&play);
    struct event const start = scale_start(1);
    tape_init(&tape);
    bool goes_on = tape_feed(&tape, instance, &start, 1);
    for (uint64_t id = 2; goes_on; id += 2) {
        struct event const event = completed(id);
        goes_on = tape_feed(&tape, instance, &event, 1);
    }
    CU_ASSERT_EQUAL(instance_turns(instance), FAN + 1);
    instance_destroy(instance);
    tape_finish("loop", &play, &tape);
    play_release(&play);
}

static void many_timers_in_one_turn(void)
{
    struct play play = scale_play(event_order);
    struct tape tape;
    struct instance *instance = play_instance(&play);
    struct event const start = scale_start(1);
    struct event events[BURST];
    tape_init(&tape);
    CU_ASSERT(tape_feed(&tape, instance, &start, 1));
    for (size_t i = 0; i < BURST; i++)
        events[i] = (struct event){.kind = EVENT_TIMER_FIRED, .ref = 2 + (i + 700) % BURST};
    CU_ASSERT_FALSE(tape_feed(&tape, instance, events, BURST));
    instance_destroy(instance);
    tape_finish("timers in one turn", &play, &tape);
    play_release(&play);
}

/* ---- tries ---- */

static thole_status tries(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t const n = scale_number(input);
    thole_call_options const options = {.size = sizeof options, .retry = {.tries_max = 3}};
    thole_task *tasks = thole_alloc(ctx, n * sizeof *tasks);
    for (size_t i = 0; tasks != NULL && i < n; i++)
        tasks[i] = thole_call_with(ctx, THOLE_STR("part"), input, &options);
    (void)ret_output;
    return thole_await_all(ctx, tasks, n, NULL);
}

/* Every one fails twice, then succeeds. */
static void many_tries(void)
{
    struct play play = scale_play(tries);
    struct tape tape;
    struct instance *instance = play_instance(&play);
    struct event *events = calloc(FAN, sizeof *events);
    struct event const start = scale_start(FAN);
    tape_init(&tape);
    CU_ASSERT(tape_feed(&tape, instance, &start, 1));
    for (uint32_t turn = 0; turn < 5; turn++) {
        for (size_t i = 0; i < FAN; i++) {
            events[i] = (struct event){.kind = EVENT_ACTIVITY_FAILED, .ref = 2 + i, .code = THOLE_APP};
            events[i].try_number = turn / 2 + 1;
            if (turn % 2 == 1)
                events[i].kind = EVENT_TIMER_FIRED;
            else if (turn == 4)
                events[i].kind = EVENT_ACTIVITY_COMPLETED;
        }
        CU_ASSERT_EQUAL(tape_feed(&tape, instance, events, FAN), turn < 4);
    }
    instance_destroy(instance);
    free(events);
    tape_finish("three tries of 5,000", &play, &tape);
    play_release(&play);
}

/* ---- state ---- */

/* Sets so many keys all over the place, walks them twice, removes them. */
static thole_status keys(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t const n = scale_number(input);
    thole_slice key = {NULL, 0}, value;
    char text[24];
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(text, sizeof text, "%zx", i * 2654435761u % n);
        thole_state_set(ctx, thole_slice_from(text), THOLE_STR("v"));
    }
    while (thole_state_next(ctx, key, &key, &value) == THOLE_OK)
        found++;
    key = (thole_slice){NULL, 0};
    while (thole_state_next(ctx, key, &key, &value) == THOLE_OK)
        thole_state_remove(ctx, key);
    *ret_output = thole_format(ctx, "%zu", found);
    return found == n ? THOLE_OK : THOLE_APP;
}

static void many_keys(void)
{
    struct play play = scale_play(keys);
    struct tape tape;
    play.payload_max = 1 << 20;
    struct instance *instance = play_instance(&play);
    struct event const start = scale_start(65536);
    tape_init(&tape);
    CU_ASSERT_FALSE(tape_feed(&tape, instance, &start, 1));
    CU_ASSERT(tape.completed);
    instance_destroy(instance);
    tape_finish("65,536 keys", &play, &tape);
    play_release(&play);
}

/* Many parked instances on one pool, and stacks that are dropped and used again. */
static void many_parked_instances(void)
{
    enum { PARKED = 1500 };
    struct play play = scale_play(loop);
    stack_pool_destroy(play.stacks);
    play.stacks = stack_pool_create(64, PARKED);
    struct instance **instances = calloc(PARKED, sizeof(struct instance *));
    struct event const start = scale_start(1);
    struct turn_in const in = {.time_ms = 1000, .received = &start, .received_len = 1, .run = true};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < PARKED; i++) {
            struct turn_out out;
            instances[i] = play_instance(&play);
            CU_ASSERT_EQUAL(instance_turn(instances[i], &in, &out, NULL), THOLE_OK);
        }
        CU_ASSERT_EQUAL(stack_pool_in_use(play.stacks), PARKED);
        for (size_t i = 0; i < PARKED; i++)
            instance_destroy(instances[i]);
        CU_ASSERT_EQUAL(stack_pool_in_use(play.stacks), 0);
    }
    free(instances);
    play_release(&play);
}

static const struct thole_test tests[] = {
    {"fan out and in", fan_out_and_in},
    {"long loop", long_loop},
    {"many timers in one turn", many_timers_in_one_turn},
    {"many tries", many_tries},
    {"many keys", many_keys},
    {"many parked instances", many_parked_instances},
};
THOLE_TEST_MAIN("instance_scale", tests)
