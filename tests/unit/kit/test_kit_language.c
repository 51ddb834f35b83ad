/* The whole language in the test kit: what a user can rely on when a test is green. */
#include "dropped.h"
#include "thole/testing.h"
#include "thole_cunit.h"
#include <stdlib.h>

#define ID THOLE_STR("i-1")
#define BEGINNING_MS 1000000000000ull
#define DAY_MS (24ull * 3600 * 1000)

static void check_slice(const char *what, thole_slice got, const char *want)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(got));
    CHECK_STR(what, text, want);
}

/* ---- orchestrations ---- */

/* "status type tries: message" or the output. */
static thole_status told(thole_ctx *ctx, thole_task task, thole_slice *ret_output)
{
    thole_slice result;
    thole_status const status = thole_await(ctx, task, &result);
    thole_failure const failure = thole_task_failure(ctx, task);
    *ret_output = status == THOLE_OK
                      ? thole_format(ctx, "%.*s", THOLE_FMT(result))
                      : thole_format(ctx, "%s %.*s %u: %.*s", thole_status_name(status),
                                     THOLE_FMT(failure.type), failure.tries, THOLE_FMT(failure.message));
    return status == THOLE_CANCELLED ? status : THOLE_OK;
}

static thole_status tries(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    static const thole_slice final_types[] = {{(const uint8_t *)"fatal", 5}};
    thole_call_options const options = {.size = sizeof options,
                                        .queue = THOLE_STR("slow"),
                                        .try_timeout_ms = 10000,
                                        .total_timeout_ms = 60000,
                                        .retry = {.tries_max = 4,
                                                  .first_delay_ms = 1000,
                                                  .factor = 2,
                                                  .final_types = final_types,
                                                  .final_types_len = 1}};
    return told(ctx, thole_call_with(ctx, THOLE_STR("work"), input, &options), ret_output);
}

/* As many events of two names as the input has letters. */
static thole_status listens(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (size_t i = 0; i < input.len; i++) {
        thole_slice data;
        thole_slice const name = {&input.ptr[i], 1};
        THOLE_TRY(thole_await(ctx, thole_event(ctx, name), &data));
        *ret_output = thole_format(ctx, "%.*s%.*s", THOLE_FMT(*ret_output), THOLE_FMT(data));
        thole_set_status(ctx, *ret_output);
    }
    return THOLE_OK;
}

static thole_status raises(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    thole_raise(ctx, input, THOLE_STR("a"), THOLE_STR("x"));
    thole_raise(ctx, input, THOLE_STR("a"), THOLE_STR("y"));
    return THOLE_OK;
}

/* An event in each of two turns and of two executions. */
static thole_status emits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (int i = 0; i < 2; i++) {
        thole_emit(ctx, THOLE_STR("com.example.step"),
                   thole_format(ctx, "%llu.%d", (unsigned long long)thole_execution_id(ctx), i));
        THOLE_TRY(thole_await(ctx, thole_timer(ctx, 1000), NULL));
    }
    thole_emit(ctx, THOLE_STR("leg"), input);
    if (thole_execution_id(ctx) == 1)
        return thole_continue_as_new(ctx, THOLE_STR("last"), 0);
    *ret_output = THOLE_STR("there");
    return THOLE_OK;
}

static thole_status family(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {.size = sizeof options, .instance = THOLE_STR("kid")};
    return told(ctx, thole_child(ctx, input, THOLE_STR("in"), &options), ret_output);
}

/* The code that is asked for, not the newest: of a child, and of what is only started. */
static thole_status wants_the_old(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options options = {.size = sizeof options, .instance = THOLE_STR("free"), .version = 1};
    thole_start(ctx, THOLE_STR("versions"), input, &options);
    options.instance = THOLE_STR("kid");
    return told(ctx, thole_child(ctx, THOLE_STR("versions"), input, &options), ret_output);
}

static thole_status lets_go(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    for (int close = THOLE_CLOSE_CANCEL; close <= THOLE_CLOSE_TERMINATE; close++) {
        thole_child_options const options = {.size = sizeof options,
                                             .instance = thole_format(ctx, "kid-%d", close),
                                             .close = (thole_close)close};
        drop_task(thole_child(ctx, THOLE_STR("listens"), THOLE_STR("a"), &options));
    }
    thole_child_options const options = {.size = sizeof options, .instance = THOLE_STR("other")};
    thole_start(ctx, THOLE_STR("listens"), THOLE_STR("a"), &options);
    return thole_await(ctx, thole_timer(ctx, 1000 + input.len), NULL);
}

static thole_status fails(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    return thole_throw_as(ctx, THOLE_STR("broken"), "as asked");
}

/* Counts to the input, an execution for each; takes an event in between. */
static thole_status counts(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice before = THOLE_STR(""), event = THOLE_STR("");
    thole_status const status = thole_state_get(ctx, THOLE_STR("n"), &before);
    thole_slice const now =
        thole_format(ctx, "%.*s%llu", THOLE_FMT(before), (unsigned long long)thole_execution_id(ctx));
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 1000), NULL));
    if (thole_execution_id(ctx) < input.len) {
        CU_ASSERT_EQUAL(status, thole_execution_id(ctx) == 1 ? THOLE_NOT_FOUND : THOLE_OK);
        thole_state_set(ctx, THOLE_STR("n"), now);
        return thole_continue_as_new(ctx, input, 0);
    }
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("a")), &event));
    *ret_output = thole_format(ctx, "%.*s %.*s", THOLE_FMT(now), THOLE_FMT(event));
    return THOLE_OK;
}

static unsigned whim;

static thole_status fickle(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    if (thole_execution_id(ctx) > 1)
        return thole_await(ctx, thole_timer(ctx, DAY_MS), ret_output);
    return thole_continue_as_new(ctx, thole_format(ctx, "%.*s%u", THOLE_FMT(input), ++whim), 0);
}

static thole_status wavers(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, ++whim), ret_output));
    return thole_await(ctx, thole_timer(ctx, DAY_MS), ret_output);
}

/* The second execution begins with a turn that does not fit into one record. */
static thole_status bulk(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    enum { CALLS = 6, BYTES = 200 * 1000 };
    thole_task tasks[CALLS];
    (void)ret_output;
    if (thole_execution_id(ctx) == 1)
        return thole_continue_as_new(ctx, input, 0);
    for (size_t i = 0; i < CALLS; i++)
        tasks[i] = thole_call(ctx, THOLE_STR("swallows"), (thole_slice){thole_alloc(ctx, BYTES), BYTES});
    return thole_await_all(ctx, tasks, CALLS, NULL);
}

static thole_status answer(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    *ret_output = thole_format(ctx, "%.*s %d", THOLE_FMT(input), *(const int *)arg);
    return THOLE_OK;
}

static thole_status bad_answer(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg, (void)ret_output;
    drop_task(thole_call(ctx, THOLE_STR("work"), input));
    return THOLE_OK;
}

static thole_status asked(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    int rounds = 0, *kept = thole_alloc(ctx, sizeof *kept);
    if (kept == NULL)
        return THOLE_LIMIT;
    thole_on_query(ctx, THOLE_STR("rounds"), answer, &rounds);
    thole_on_query(ctx, THOLE_STR("kept"), answer, kept);
    thole_on_query(ctx, THOLE_STR("bad"), bad_answer, NULL);
    for (; rounds < 3; *kept = ++rounds)
        THOLE_TRY(thole_await(ctx, thole_timer(ctx, 1000), NULL));
    return THOLE_OK;
}

static thole_status first_version(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 1000), NULL));
    *ret_output = thole_format(ctx, "version %u", thole_version_id(ctx));
    return THOLE_OK;
}

static thole_status second_version(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = thole_format(ctx, "version %u at once", thole_version_id(ctx));
    return THOLE_OK;
}

static thole_status unpatched(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = THOLE_STR("old");
    return thole_await(ctx, thole_timer(ctx, 1000), NULL);
}

static thole_status patched(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    bool const changed = thole_patch(ctx, THOLE_STR("longer"));
    *ret_output = changed ? THOLE_STR("new") : THOLE_STR("old");
    return thole_await(ctx, thole_timer(ctx, changed ? 2000 : 1000), NULL);
}

static thole_status make(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    *ret_value = thole_format(ctx, "%u", ++*(unsigned *)arg);
    return THOLE_OK;
}

static thole_status from_outside(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    thole_slice a, b;
    THOLE_TRY(thole_side_effect(ctx, make, &whim, &a));
    thole_slice const id = thole_uuid(ctx);
    uint64_t const number = thole_random(ctx);
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 1000), NULL));
    THOLE_TRY(thole_side_effect(ctx, make, &whim, &b));
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 1 + number % 1000), NULL));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), id), NULL));
    *ret_output = thole_format(ctx, "%.*s %.*s", THOLE_FMT(a), THOLE_FMT(b));
    return THOLE_OK;
}

/* ---- activities ---- */

static thole_status work(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    check_slice("queue", thole_activity_queue(act), "slow");
    check_slice("orchestration", thole_activity_orchestration(act), "tries");
    CU_ASSERT_EQUAL(thole_activity_version(act), 1);
    check_slice("worker", thole_activity_worker(act), "test");
    if (thole_slice_equal(input, THOLE_STR("busy")) && thole_activity_try(act) < 3)
        return thole_activity_fail_as(act, THOLE_STR("busy"), "try %u", thole_activity_try(act));
    if (thole_slice_equal(input, THOLE_STR("final")))
        return thole_activity_fail_final(act, THOLE_STR("odd"), "no more");
    if (thole_slice_equal(input, THOLE_STR("left"))) {
        thole_status const status = thole_activity_wait(act, 3000);
        *ret_output =
            thole_activity_format(act, "%llu ms left", (unsigned long long)thole_activity_time_left_ms(act));
        return status;
    }
    *ret_output = thole_activity_format(act, "try %u", thole_activity_try(act));
    return THOLE_OK;
}

/* Goes on where the one before it stopped: a step in each second. */
static thole_status resumes(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    size_t done = thole_activity_details(act).len;
    (void)input;
    for (size_t from = done; done < 5; done++) {
        if (done == 3 && from == 0)
            return thole_activity_fail(act, "stumbled");
        THOLE_TRY(thole_activity_wait(act, 1000));
        THOLE_TRY(thole_activity_heartbeat(act, (thole_slice){(const uint8_t *)"xxxxx", done + 1}));
    }
    *ret_output = thole_activity_format(act, "%zu details, attempt %u", thole_activity_details(act).len,
                                        thole_activity_attempt(act));
    return THOLE_OK;
}

static thole_status later(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    thole_slice token;
    (void)input, (void)ret_output;
    thole_status const status = thole_activity_later(act, &token);
    CU_ASSERT(token.len > 0);
    return status;
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    *ret_output = input;
    return THOLE_OK;
}

static thole_status swallows(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_OK;
}

static thole_status calls(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {
        .size = sizeof options, .total_timeout_ms = DAY_MS, .retry = {.tries_max = 2, .first_delay_ms = 100}};
    return told(ctx, thole_call_with(ctx, input, THOLE_STR("in"), &options), ret_output);
}

/* ---- the program ---- */

static const thole_orchestration_entry ORCHESTRATIONS[] = {
    {.name = "tries", .run = tries},
    {.name = "listens", .run = listens},
    {.name = "raises", .run = raises},
    {.name = "emits", .run = emits},
    {.name = "family", .run = family},
    {.name = "lets_go", .run = lets_go},
    {.name = "fails", .run = fails},
    {.name = "counts", .run = counts},
    {.name = "fickle", .run = fickle},
    {.name = "wavers", .run = wavers},
    {.name = "bulk", .run = bulk},
    {.name = "asked", .run = asked},
    {.name = "wants_the_old", .run = wants_the_old},
    {.name = "versions", .run = first_version},
    {.name = "versions", .run = second_version, .version = 2},
    {.name = "patch", .run = unpatched},
    {.name = "from_outside", .run = from_outside},
    {.name = "calls", .run = calls},
};
static const thole_activity_entry ACTIVITIES[] = {
    {"work", work}, {"resumes", resumes}, {"later", later}, {"echo", echo}, {"swallows", swallows}};
static const thole_program PROGRAM = {.size = sizeof PROGRAM,
                                      .name = "kit",
                                      .orchestrations = ORCHESTRATIONS,
                                      .orchestrations_len = ARRAY_LEN(ORCHESTRATIONS),
                                      .activities = ACTIVITIES,
                                      .activities_len = ARRAY_LEN(ACTIVITIES)};

static thole_test_env *begun(const char *orchestration, const char *input)
{
    thole_test_env *const env = thole_test_create(&PROGRAM);
    CU_ASSERT_PTR_NOT_NULL_FATAL(env);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, thole_slice_from(orchestration), thole_slice_from(input)),
                    THOLE_OK);
    return env;
}

static void check_end(thole_test_env *env, thole_slice id, thole_instance_status status, const char *output)
{
    CU_ASSERT_EQUAL(thole_test_run(env, id), status);
    check_slice("output", thole_test_output(env, id), output);
}

static void ends(thole_test_env *env, thole_instance_status status, const char *output)
{
    check_end(env, ID, status, output);
    thole_test_destroy(env);
}

/* ---- retries and timeouts ---- */

static void test_tries(void)
{
    thole_test_env *env = begun("tries", "busy");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_now_ms(env), BEGINNING_MS + 1000 + 2000);
    CU_ASSERT_EQUAL(thole_test_calls(env, "work"), 3);
    ends(env, THOLE_INSTANCE_COMPLETED, "try 3");
    ends(begun("tries", "final"), THOLE_INSTANCE_COMPLETED, "APP odd 1: no more");
    env = begun("tries", "");
    thole_test_fails(env, "work", THOLE_STR("fatal"), THOLE_STR("of the policy"), 1);
    ends(env, THOLE_INSTANCE_COMPLETED, "APP fatal 1: of the policy");
    env = begun("tries", "");
    thole_test_fails(env, "work", THOLE_STR("other"), THOLE_STR("no"), 0);
    ends(env, THOLE_INSTANCE_COMPLETED, "APP other 4: no");
}

static void test_timeouts(void)
{
    thole_test_env *env = begun("tries", "");
    thole_test_hangs(env, "work", 1);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_cancels(env, "work"), 1);
    CU_ASSERT_EQUAL(thole_test_now_ms(env), BEGINNING_MS + 10000 + 1000);
    ends(env, THOLE_INSTANCE_COMPLETED, "try 2");
    env = begun("tries", "");
    thole_test_takes(env, "work", 10001);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_calls(env, "work"), 4);
    CU_ASSERT_EQUAL(thole_test_now_ms(env), BEGINNING_MS + 47000);
    thole_test_destroy(env);
    ends(begun("tries", "left"), THOLE_INSTANCE_COMPLETED, "7000 ms left");
}

/* The deadline of a try is the first claim's, also for the worker that takes it after a crash. */
static void test_timeout_over_a_crash(void)
{
    thole_test_env *const env = begun("tries", "");
    thole_test_hangs(env, "work", 2);
    thole_test_advance(env, 6000);
    thole_test_crash(env);
    thole_test_advance(env, 3999);
    CU_ASSERT_EQUAL(thole_test_cancels(env, "work"), 0);
    thole_test_advance(env, 1);
    CU_ASSERT_EQUAL(thole_test_cancels(env, "work"), 1);
    ends(env, THOLE_INSTANCE_COMPLETED, "try 2");
}

static void test_heartbeats(void)
{
    ends(begun("calls", "resumes"), THOLE_INSTANCE_COMPLETED, "3 details, attempt 1");
    thole_test_env *const env = begun("calls", "resumes");
    thole_test_advance(env, 2500);
    thole_test_crash(env);
    ends(env, THOLE_INSTANCE_COMPLETED, "2 details, attempt 2");
}

static void test_later(void)
{
    thole_test_env *env = begun("calls", "later");
    thole_test_advance(env, 3600 * 1000);
    thole_test_crash(env); /* nobody has it, so nobody begins it again */
    thole_test_settle(env);
    CU_ASSERT_EQUAL(thole_test_calls(env, "later"), 1);
    CU_ASSERT_EQUAL(thole_test_complete(env, "later", THOLE_STR("at last")), THOLE_OK);
    ends(env, THOLE_INSTANCE_COMPLETED, "at last");
    env = begun("calls", "later");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_now_ms(env), BEGINNING_MS + DAY_MS);
    thole_test_destroy(env);
}

/* ---- events ---- */

static void test_events(void)
{
    thole_test_env *const env = begun("listens", "aba");
    thole_test_signal(env, ID, THOLE_STR("a"), THOLE_STR("1"));
    thole_test_signal(env, ID, THOLE_STR("a"), THOLE_STR("2"));
    check_slice("custom status", thole_test_custom_status(env, ID), "1");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_RUNNING);
    thole_test_signal(env, ID, THOLE_STR("b"), THOLE_STR("3"));
    ends(env, THOLE_INSTANCE_COMPLETED, "132");
}

static void test_events_before_the_start(void)
{
    thole_test_env *const env = thole_test_create(&PROGRAM);
    thole_test_signal(env, ID, THOLE_STR("a"), THOLE_STR("early"));
    thole_test_signal(env, THOLE_STR("i-2"), THOLE_STR("a"), THOLE_STR("early"));
    CU_ASSERT_EQUAL(thole_test_status(env, ID), THOLE_INSTANCE_WAITING);
    thole_test_advance(env, 6 * DAY_MS);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("listens"), THOLE_STR("a")), THOLE_OK);
    check_end(env, ID, THOLE_INSTANCE_COMPLETED, "early");
    thole_test_advance(env, 2 * DAY_MS); /* nobody keeps them for ever */
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR("i-2"), THOLE_STR("listens"), THOLE_STR("a")), THOLE_OK);
    check_end(env, THOLE_STR("i-2"), THOLE_INSTANCE_RUNNING, "");
    thole_test_destroy(env);
}

static void test_start_with_an_event(void)
{
    thole_test_env *const env = thole_test_create(&PROGRAM);
    thole_start_options const options = {
        .size = sizeof options, .event = THOLE_STR("a"), .event_data = THOLE_STR("x")};
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(thole_test_start_with(env, ID, THOLE_STR("listens"), THOLE_STR("aaa"), &options),
                        THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR("r"), THOLE_STR("raises"), ID), THOLE_OK);
    ends(env, THOLE_INSTANCE_COMPLETED, "xxx");
}

/* ---- children ---- */

static void test_children(void)
{
    ends(begun("family", "fails"), THOLE_INSTANCE_COMPLETED, "APP broken 0: as asked");
    thole_test_env *env = begun("family", "versions");
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("kid")), THOLE_INSTANCE_COMPLETED);
    ends(env, THOLE_INSTANCE_COMPLETED, "version 2 at once");
    env = begun("wants_the_old", "");
    CU_ASSERT_EQUAL(thole_test_run(env, THOLE_STR("free")), THOLE_INSTANCE_COMPLETED);
    check_end(env, THOLE_STR("free"), THOLE_INSTANCE_COMPLETED, "version 1");
    ends(env, THOLE_INSTANCE_COMPLETED, "version 1");
    env = thole_test_create(&PROGRAM);
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR("kid"), THOLE_STR("listens"), THOLE_STR("a")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("family"), THOLE_STR("fails")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_NOT_EQUAL(memcmp(thole_test_output(env, ID).ptr, "APP conflict", 12), 1);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("kid")), THOLE_INSTANCE_RUNNING);
    thole_test_destroy(env);
    env = begun("family", "listens"); /* waits for an "i" */
    thole_test_cancel(env, ID, THOLE_STR("enough"));
    check_end(env, ID, THOLE_INSTANCE_CANCELLED, "enough");
    check_end(env, THOLE_STR("kid"), THOLE_INSTANCE_CANCELLED, "enough");
    thole_test_destroy(env);
}

static void test_close_policies(void)
{
    thole_test_env *const env = begun("lets_go", "");
    check_end(env, ID, THOLE_INSTANCE_COMPLETED, "");
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("kid-0")), THOLE_INSTANCE_CANCELLED);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("kid-1")), THOLE_INSTANCE_RUNNING);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("kid-2")), THOLE_INSTANCE_TERMINATED);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("other")), THOLE_INSTANCE_RUNNING);
    thole_test_destroy(env);
}

/* ---- long lives ---- */

static void test_continue_as_new(void)
{
    thole_test_env *const env = begun("counts", "xxxx");
    thole_test_signal(env, ID, THOLE_STR("a"), THOLE_STR("kept"));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_now_ms(env), BEGINNING_MS + 4000);
    ends(env, THOLE_INSTANCE_COMPLETED, "1234 kept");
}

static void test_divergence_before_the_new_execution(void)
{
    whim = 0;
    thole_test_env *const env = begun("fickle", "");
    CU_ASSERT_EQUAL(thole_test_status(env, ID), THOLE_INSTANCE_STUCK);
    CU_ASSERT(thole_test_output(env, ID).len > 0);
    thole_test_destroy(env);
}

static void test_pause(void)
{
    thole_test_env *const env = begun("listens", "aa");
    thole_test_pause(env, ID);
    CU_ASSERT_EQUAL(thole_test_status(env, ID), THOLE_INSTANCE_PAUSED);
    thole_test_signal(env, ID, THOLE_STR("a"), THOLE_STR("1"));
    thole_test_signal(env, ID, THOLE_STR("a"), THOLE_STR("2"));
    check_end(env, ID, THOLE_INSTANCE_PAUSED, "");
    check_slice("custom status", thole_test_custom_status(env, ID), "");
    thole_test_crash(env);
    CU_ASSERT_EQUAL(thole_test_status(env, ID), THOLE_INSTANCE_PAUSED);
    thole_test_resume(env, ID);
    ends(env, THOLE_INSTANCE_COMPLETED, "12");
}

static void test_terminate(void)
{
    thole_test_env *env = begun("calls", "nobody");
    thole_test_terminate(env, ID, THOLE_STR("at once"));
    ends(env, THOLE_INSTANCE_TERMINATED, "at once");
    env = begun("tries", "");
    thole_test_hangs(env, "work", 0);
    thole_test_settle(env);
    thole_test_terminate(env, ID, THOLE_STR("at once"));
    CU_ASSERT_EQUAL(thole_test_cancels(env, "work"), 1);
    ends(env, THOLE_INSTANCE_TERMINATED, "at once");
    env = begun("unknown", ""); /* needs no code */
    thole_test_terminate(env, ID, THOLE_STR("at once"));
    ends(env, THOLE_INSTANCE_TERMINATED, "at once");
}

/* A Stuck instance can be ended, independent of what its code would do. */
static void test_terminate_what_is_stuck(void)
{
    whim = 0;
    thole_test_env *const env = begun("wavers", "");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_STUCK);
    thole_test_terminate(env, ID, THOLE_STR("at once"));
    ends(env, THOLE_INSTANCE_TERMINATED, "at once");
}

/* ---- queries ---- */

static void test_query(void)
{
    thole_test_env *const env = begun("asked", "");
    thole_slice output = THOLE_STR("untouched");
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("none"), ID, &output), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(thole_test_query(env, THOLE_STR("i-2"), THOLE_STR("rounds"), ID, &output),
                    THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("bad"), ID, &output), THOLE_INVALID);
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("no name"), ID, &output), THOLE_INVALID);
    check_slice("output", output, "untouched");
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("__source"), ID, &output), THOLE_OK);
    CU_ASSERT_PTR_NOT_NULL(
        memmem(output.ptr, output.len, "kit_language", 12)); /* file, or at least program */
    thole_test_advance(env, 2000);
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("rounds"), THOLE_STR("n ="), &output), THOLE_OK);
    check_slice("output", output, "n = 2");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("rounds"), ID, &output), THOLE_INVALID);
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("kept"), THOLE_STR("in all"), &output), THOLE_OK);
    check_slice("output", output, "in all 3");
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("__source"), ID, &output), THOLE_INVALID);
    CU_ASSERT_EQUAL(thole_test_delete(env, ID, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("kept"), ID, &output), THOLE_NOT_FOUND);
    thole_test_destroy(env);
}

/* ---- code that changes ---- */

static void test_versions(void)
{
    thole_start_options const old = {.size = sizeof old, .version = 1};
    thole_start_options const none = {.size = sizeof none, .version = 3};
    ends(begun("versions", ""), THOLE_INSTANCE_COMPLETED, "version 2 at once");
    thole_test_env *const env = thole_test_create(&PROGRAM);
    CU_ASSERT_EQUAL(thole_test_start_with(env, ID, THOLE_STR("versions"), ID, &old), THOLE_OK);
    check_end(env, ID, THOLE_INSTANCE_COMPLETED, "version 1");
    CU_ASSERT_EQUAL(thole_test_start_with(env, THOLE_STR("i-3"), THOLE_STR("versions"), ID, &none), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, THOLE_STR("i-3")), THOLE_INSTANCE_WAITING);
    thole_test_destroy(env);
}

static void test_patch(void)
{
    static const thole_orchestration_entry orchestrations[] = {{.name = "patch", .run = patched}};
    static const thole_program changed = {
        .size = sizeof changed, .orchestrations = orchestrations, .orchestrations_len = 1};
    thole_test_env *const env = begun("patch", "");
    thole_test_deploy(env, &changed);
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR("i-2"), THOLE_STR("patch"), ID), THOLE_OK);
    check_end(env, ID, THOLE_INSTANCE_COMPLETED, "old");
    CU_ASSERT_EQUAL(thole_test_now_ms(env), BEGINNING_MS + 1000);
    check_end(env, THOLE_STR("i-2"), THOLE_INSTANCE_COMPLETED, "new");
    CU_ASSERT_EQUAL(thole_test_now_ms(env), BEGINNING_MS + 2000);
    thole_test_destroy(env);
}

static void test_values_from_outside(void)
{
    whim = 0;
    ends(begun("from_outside", ""), THOLE_INSTANCE_COMPLETED, "1 2");
    CU_ASSERT_EQUAL(whim, 2); /* replays did not make others */
}

/* ---- a crash at each point of all of it ---- */

static const struct {
    const char *orchestration, *input;
    bool differs; /* repeated or restarted steps leave their traces in the history */
} CRASH_ROWS[] = {
    {"tries", "busy", false},      {"listens", "aba", false},  {"family", "fails", false},
    {"family", "versions", false}, {"lets_go", "", false},     {"counts", "xxx", false},
    {"from_outside", "", true},    {"calls", "resumes", true}, {"bulk", "", false},
};

static size_t play(size_t row, size_t crash_after, char *history, size_t room)
{
    thole_test_env *const env = thole_test_create(&PROGRAM);
    thole_test_crash_after(env, crash_after);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, thole_slice_from(CRASH_ROWS[row].orchestration),
                                     thole_slice_from(CRASH_ROWS[row].input)),
                    THOLE_OK);
    thole_test_signal(env, ID, THOLE_STR("a"), THOLE_STR("1"));
    thole_test_signal(env, ID, THOLE_STR("a"), THOLE_STR("2"));
    thole_test_signal(env, ID, THOLE_STR("b"), THOLE_STR("3"));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    (void)snprintf(history, room, "%s", thole_test_history(env, ID));
    size_t const crashes = thole_test_crashes(env);
    thole_test_destroy(env);
    return crashes;
}

/* Each recorded event appears, once and in order, wherever the engine died. */
static void test_emitted_events(void)
{
    static const char want[] = "com.example.step(1.0)\ncom.example.step(1.1)\nleg(first)\n"
                               "com.example.step(2.0)\ncom.example.step(2.1)\nleg(last)\n";
    size_t crashes = 1;
    for (size_t n = 0; crashes > 0; n++) {
        thole_test_env *const env = thole_test_create(&PROGRAM);
        CHECK_STR("before it is there", thole_test_events(env, ID), "");
        thole_test_crash_after(env, n);
        CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("emits"), THOLE_STR("first")), THOLE_OK);
        CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
        CHECK_STR("all of them", thole_test_events(env, ID), want);
        CHECK_STR("nobody else", thole_test_events(env, THOLE_STR("other")), "");
        crashes = thole_test_crashes(env);
        thole_test_destroy(env);
    }
}

static void test_crashes(void)
{
    static char want[16384], got[16384];
    for (size_t row = 0; row < ARRAY_LEN(CRASH_ROWS); row++) {
        whim = 0;
        CU_ASSERT_EQUAL(play(row, SIZE_MAX, want, sizeof want), 0);
        size_t n = 0;
        for (size_t crashes = 1; crashes > 0; n++) {
            whim = 0;
            crashes = play(row, n, got, sizeof got);
            if (!CRASH_ROWS[row].differs)
                CHECK_STR(CRASH_ROWS[row].orchestration, got, want);
        }
        CU_ASSERT(n > 10);
    }
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"tries", test_tries},
        {"timeouts", test_timeouts},
        {"a timeout over a crash", test_timeout_over_a_crash},
        {"heartbeats", test_heartbeats},
        {"completed later", test_later},
        {"events", test_events},
        {"events before the start", test_events_before_the_start},
        {"a start with an event", test_start_with_an_event},
        {"children", test_children},
        {"close policies", test_close_policies},
        {"continue as new", test_continue_as_new},
        {"a divergence before the new execution", test_divergence_before_the_new_execution},
        {"pause", test_pause},
        {"terminate", test_terminate},
        {"terminate what is stuck", test_terminate_what_is_stuck},
        {"query", test_query},
        {"versions", test_versions},
        {"patch", test_patch},
        {"values from outside", test_values_from_outside},
        {"emitted events", test_emitted_events},
        {"crashes", test_crashes},
    };
    return thole_run_suite("kit_language", tests, ARRAY_LEN(tests));
}
