/* Costs of external events must grow with their number: kept ones, waits, names, races that are lost,
 * requests. */
#include "scale_tape.h"
#include "thole/orchestration.h"
#include <stdlib.h>

enum { SOME = 1000, MANY = 100000 };

/* Takes them one by one. */
static thole_status takes(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t const n = scale_number(input);
    for (size_t i = 0; i < n; i++)
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output));
    return THOLE_OK;
}

static thole_task *waits(thole_ctx *ctx, size_t n, bool same_name)
{
    thole_task *tasks = thole_alloc(ctx, n * sizeof *tasks);
    char name[24] = "go";
    for (size_t i = 0; tasks != NULL && i < n; i++) {
        if (!same_name)
            (void)snprintf(name, sizeof name, "go-%zu", i);
        tasks[i] = thole_event(ctx, thole_slice_from(name));
    }
    return tasks;
}

static thole_status waits_for_all(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    return thole_await_all(ctx, waits(ctx, scale_number(input), true), scale_number(input), NULL);
}

static thole_status many_names(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    return thole_await_all(ctx, waits(ctx, scale_number(input), false), scale_number(input), NULL);
}

/* Takes the next one: it must be the one with that number. */
static thole_status takes_number(thole_ctx *ctx, size_t expected)
{
    thole_slice data = {0};
    char text[24];
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), &data));
    (void)snprintf(text, sizeof text, "go-%zu", expected);
    return thole_slice_equal(data, thole_slice_from(text)) ? THOLE_OK : thole_throw(ctx, "not in order");
}

/* All but one give theirs back; then it takes them one by one. */
static thole_status races(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t const n = scale_number(input);
    size_t winner = 0;
    THOLE_TRY(thole_await_any(ctx, waits(ctx, n, true), n, &winner));
    (void)ret_output;
    for (size_t i = 1; i < n; i++)
        THOLE_TRY(takes_number(ctx, i));
    return THOLE_OK;
}

/* Gives them back from the last one to the first, and in leaps. */
static thole_status gives_back(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t const n = scale_number(input);
    thole_task *tasks = waits(ctx, n, true);
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("now")), NULL));
    for (size_t i = n; tasks != NULL && i-- > 0;)
        thole_cancel(ctx, tasks[i], THOLE_STR("")), thole_cancel(ctx, tasks[i * 7919 % n], THOLE_STR(""));
    (void)ret_output;
    for (size_t i = 0; i < n; i++)
        THOLE_TRY(takes_number(ctx, i));
    return THOLE_OK;
}

/* A wait is abandoned at every step, until events come. */
static thole_status impatient(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t const n = scale_number(input);
    for (size_t i = 0; i < n; i++) {
        thole_task const tasks[] = {thole_call(ctx, THOLE_STR("a b"), input),
                                    thole_event(ctx, THOLE_STR("go"))};
        size_t winner;
        THOLE_TRY(thole_await_any(ctx, tasks, 2, &winner));
    }
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

struct row {
    const char *name;
    thole_orchestration_fn *code;
    size_t n, batch; /* so many events, in turns of so many */
    bool first, names,
        ids; /* events come before the start's turn runs; each has a name, a request of its own */
};

/* The events of a turn, with their texts. */
static void fill(const struct row *row, size_t from, struct event *events, char (*texts)[24])
{
    for (size_t i = 0; i < row->batch; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "go-%zu", from + i);
        thole_slice const own = thole_slice_from(texts[i]);
        events[i] = (struct event){.kind = EVENT_EVENT_RECEIVED, .data = own};
        events[i].name = row->names ? own : THOLE_STR("go");
        events[i].request_id = row->ids ? own : (thole_slice){NULL, 0};
    }
}

static void run(const struct row *row)
{
    struct play play = scale_play(row->code);
    struct tape tape;
    struct instance *instance = play_instance(&play);
    struct event *events = calloc(row->batch, sizeof *events);
    char(*texts)[24] = calloc(row->batch, sizeof *texts);
    struct event const start[] = {scale_start(row->n), {.kind = EVENT_PAUSED}};
    struct event const now[] = {{.kind = EVENT_RESUMED},
                                {.kind = EVENT_EVENT_RECEIVED, .name = THOLE_STR("now")}};
    tape_init(&tape);
    bool goes_on = tape_feed(&tape, instance, start, row->first ? 2 : 1);
    for (size_t from = 0; from < row->n && goes_on; from += row->batch) {
        fill(row, from, events, texts);
        goes_on = tape_feed(&tape, instance, events, row->batch);
    }
    if (goes_on)
        goes_on = tape_feed(&tape, instance, now, 2);
    CU_ASSERT(!goes_on && instance_ended(instance));
    CU_ASSERT(tape.completed);
    instance_destroy(instance);
    free(events);
    free(texts);
    tape_finish(row->name, &play, &tape);
    play_release(&play);
}

static void events(void)
{
    static const struct row rows[] = {
        {"1,000 kept, taken one by one", takes, SOME, 1, true, false, false},
        {"100,000 kept, taken one by one", takes, MANY, 1000, true, false, false},
        {"100,000 kept, with requests", takes, MANY, 1000, true, false, true},
        {"100,000 taken as they come", takes, MANY, 10, false, false, false},
        {"1,000 waits", waits_for_all, SOME, 1, false, false, false},
        {"100,000 waits", waits_for_all, MANY, 1000, false, false, false},
        {"100,000 waits, one turn", waits_for_all, MANY, MANY, false, false, false},
        {"100,000 names", many_names, MANY, 1000, false, true, false},
        {"100,000 names, kept", many_names, MANY, 1000, true, true, false},
        {"1,000 lose a race", races, SOME, SOME, false, false, false},
        {"50,000 lose a race", races, MANY / 2, MANY / 2, false, false, false},
        {"50,000 lose a race, events kept", races, MANY / 2, 1000, true, false, false},
        {"50,000 given back in leaps", gives_back, MANY / 2, MANY / 2, false, false, false},
        {"50,000 waits left behind", impatient, MANY / 2, MANY / 2, false, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        run(&rows[i]);
}

/* ---- into the next execution ---- */

static thole_status goes_on(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    return thole_continue_as_new(ctx, input, 0);
}

static void carried(void)
{
    struct play play = scale_play(goes_on);
    struct instance *instance = play_instance(&play), *next = play_instance(&play);
    struct event *received = calloc(MANY + 1, sizeof *received), *begin = NULL;
    struct row const row = {.n = MANY, .batch = MANY, .names = true, .ids = true};
    char(*texts)[24] = calloc(MANY, sizeof *texts);
    struct turn_out out;
    struct arena arena;
    size_t n = 0;
    arena_init(&arena, 128 << 20);
    received[0] = scale_start(1);
    fill(&row, 0, received + 1, texts);
    struct turn_in in = {.received = received, .received_len = MANY + 1, .run = true};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT(instance_continued(instance));
    CU_ASSERT_EQUAL(instance_carry(instance, &arena, &begin, &n), THOLE_OK);
    CU_ASSERT_EQUAL(n, MANY + 2);
    in = (struct turn_in){.received = begin, .received_len = n, .run = true};
    CU_ASSERT_EQUAL(instance_turn(next, &in, &out, NULL), THOLE_OK);
    CU_ASSERT(instance_continued(next));
    CU_ASSERT_EQUAL(out.events_len, n + 1);
    instance_destroy(instance);
    instance_destroy(next);
    arena_release(&arena);
    free(received);
    free(texts);
    play_release(&play);
}

static const struct thole_test tests[] = {
    {"events", events},
    {"carried", carried},
};
THOLE_TEST_MAIN("instance_scale_events", tests)
