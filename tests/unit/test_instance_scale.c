/* Costs must grow with what happens, not with its square: many tasks, many turns, many events in one turn.
 * The bound on time is some fifty times what is measured without sanitizers; a square of the largest number
 * here takes longer. */
#include "play.h"
#include "thole/orchestration.h"
#include <stdlib.h>
#include <time.h>

enum { FAN = 5000, FAN_MAX = 50000, BURST = 1000, TIME_MAX_MS = 5000 };

static uint64_t cpu_ms(void)
{
    return (uint64_t)clock() * 1000 / CLOCKS_PER_SEC;
}

/* The input says how many. */
static size_t fan_width(thole_slice input)
{
    size_t n = 0;
    for (size_t i = 0; i < input.len; i++)
        n = n * 10 + (size_t)(input.ptr[i] - '0');
    return n;
}

static thole_task *fan_out(thole_ctx *ctx, thole_slice input)
{
    size_t const n = fan_width(input);
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
    size_t const n = fan_width(input);
    thole_task *tasks = fan_out(ctx, input);
    thole_slice *results = thole_alloc(ctx, n * sizeof *results);
    THOLE_TRY(thole_await_all(ctx, tasks, n, results));
    return total(ctx, results, n, ret_output);
}

static thole_status fan_in_one_by_one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t const n = fan_width(input);
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
    THOLE_TRY(thole_await_any(ctx, tasks, fan_width(input), &winner));
    *ret_output = thole_format(ctx, "%zu", winner);
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

/* ---- a history that is recorded while it is made ---- */

struct tape {
    struct buf *records;
    size_t len;
};

static struct play scale_play(thole_orchestration_fn *code)
{
    struct play play = play_of(code);
    play.memory_max = 64 << 20;
    return play;
}

static void record(struct tape *tape, const struct turn_out *out)
{
    struct record const r = {.kind = RECORD_TURN,
                             .epoch = 1,
                             .n = out->number,
                             .turn = {.instance = THOLE_STR("order-1"),
                                      .execution = 1,
                                      .number = out->number,
                                      .time_ms = out->time_ms,
                                      .ran = true,
                                      .events = out->events,
                                      .events_len = out->events_len}};
    struct buf *to = &tape->records[tape->len++];
    buf_init(to, RECORD_BYTES_MAX);
    CU_ASSERT_EQUAL(record_encode(&r, to), THOLE_OK);
}

static bool feed(struct instance *instance, const struct event *events, size_t n, struct tape *tape)
{
    struct turn_in const in = {.time_ms = 1000, .received = events, .received_len = n, .run = true};
    struct turn_out out = {0};
    thole_error err = {0};
    thole_status const status = instance_turn(instance, &in, &out, &err);
    CU_ASSERT_EQUAL(status, THOLE_OK);
    if (status != THOLE_OK)
        fprintf(stderr, "\n  %s\n", err.text);
    else
        record(tape, &out);
    return status == THOLE_OK && !out.ended;
}

static void replay_tape(const struct play *play, struct tape *tape)
{
    struct instance *instance = play_instance(play);
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < tape->len; i++) {
        struct arena arena;
        struct record r;
        arena_init(&arena, 64 << 20);
        if (status == THOLE_OK)
            status = record_decode(buf_bytes(&tape->records[i]), &arena, &r, NULL);
        if (status == THOLE_OK)
            status = instance_replay(instance, &r.turn, NULL);
        arena_release(&arena);
        buf_release(&tape->records[i]);
    }
    CU_ASSERT_EQUAL(status, THOLE_OK);
    CU_ASSERT(instance_ended(instance));
    instance_destroy(instance);
    tape->len = 0;
}

static const struct event started = {.kind = EVENT_STARTED, .name = {(const uint8_t *)"t", 1}};

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

static void fan_live(const struct fan_row *row, struct instance *instance, struct tape *tape)
{
    char n_text[24];
    struct event start = started;
    (void)snprintf(n_text, sizeof n_text, "%zu", row->n);
    start.data = thole_slice_from(n_text);
    struct event *events = calloc(row->batch, sizeof *events);
    bool goes_on = feed(instance, &start, 1, tape);
    for (size_t i = 0; i < row->n && goes_on; i += row->batch) {
        for (size_t j = 0; j < row->batch; j++)
            events[j] = completed(2 + (i + j) * row->stride % row->n);
        goes_on = feed(instance, events, row->batch, tape);
    }
    CU_ASSERT(instance_ended(instance));
    free(events);
}

static void fan(const struct fan_row *row)
{
    struct play play = scale_play(row->code);
    struct tape tape = {calloc(row->n + 2, sizeof *tape.records), 0};
    struct instance *instance = play_instance(&play);
    uint64_t const begin = cpu_ms();
    fan_live(row, instance, &tape);
    instance_destroy(instance);
    uint64_t const live = cpu_ms();
    replay_tape(&play, &tape);
    uint64_t const end = cpu_ms();
    CU_ASSERT(end - begin < TIME_MAX_MS);
    printf("\n    %-32s live %4llu ms, replayed %4llu ms ", row->name, (unsigned long long)(live - begin),
           (unsigned long long)(end - live));
    free(tape.records);
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
        {"ten times as many", fan_in_all, FAN_MAX, 24781, 100},
        {"ten times as many, one by one", fan_in_one_by_one, FAN_MAX, 24781, 100},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        fan(&rows[i]);
}

static void long_loop(void)
{
    struct play play = scale_play(loop);
    struct tape tape = {calloc(FAN + 2, sizeof *tape.records), 0};
    struct instance *instance = play_instance(&play);
    uint64_t const begin = cpu_ms();
    bool goes_on = feed(instance, &started, 1, &tape);
    for (uint64_t id = 2; goes_on; id += 2) {
        struct event const event = completed(id);
        goes_on = feed(instance, &event, 1, &tape);
    }
    uint64_t const live = cpu_ms();
    CU_ASSERT_EQUAL(instance_turns(instance), FAN + 1);
    instance_destroy(instance);
    replay_tape(&play, &tape);
    uint64_t const end = cpu_ms();
    CU_ASSERT(end - begin < TIME_MAX_MS);
    printf("\n    %-32s live %4llu ms, replayed %4llu ms ", "loop", (unsigned long long)(live - begin),
           (unsigned long long)(end - live));
    free(tape.records);
    play_release(&play);
}

static void many_received_events_in_one_turn(void)
{
    struct play play = scale_play(event_order);
    struct tape tape = {calloc(4, sizeof *tape.records), 0};
    struct instance *instance = play_instance(&play);
    struct event events[BURST];
    CU_ASSERT(feed(instance, &started, 1, &tape));
    for (size_t i = 0; i < BURST; i++)
        events[i] = (struct event){.kind = EVENT_TIMER_FIRED, .ref = 2 + (i + 700) % BURST};
    CU_ASSERT_FALSE(feed(instance, events, BURST, &tape));
    instance_destroy(instance);
    replay_tape(&play, &tape);
    free(tape.records);
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
    struct buf record_of[1];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < PARKED; i++) {
            struct tape tape = {record_of, 0};
            instances[i] = play_instance(&play);
            CU_ASSERT(feed(instances[i], &started, 1, &tape));
            buf_release(record_of);
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
    {"many received events in one turn", many_received_events_in_one_turn},
    {"many parked instances", many_parked_instances},
};
THOLE_TEST_MAIN("instance_scale", tests)
