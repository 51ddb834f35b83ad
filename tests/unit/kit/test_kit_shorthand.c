/* Frequent combinations, in one call: awaits with a limit, pauses, calls with their await, options for all
 * calls of an orchestration, thrown failures, names and args, texts and numbers. */
#include "dropped.h"
#include "thole/testing.h"
#include "thole_cunit.h"
#include <stdlib.h>

#define ID THOLE_STR("i-1")

static void check_slice(const char *what, thole_slice got, const char *want)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(got));
    CHECK_STR(what, text, want);
}

/* ---- a program ---- */

static const char greeting[] = "hello";

static thole_status limited(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint64_t limit_ms = 0;
    THOLE_TRY(thole_slice_u64(input, &limit_ms));
    thole_task const task = thole_call(ctx, THOLE_STR("work"), input);
    THOLE_TRY(thole_await_for(ctx, task, limit_ms, ret_output));
    /* resolved already: no timer */
    return thole_await_for(ctx, task, limit_ms, ret_output);
}

static thole_status sleeps(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint64_t const before = thole_now_ms(ctx);
    THOLE_TRY(thole_sleep(ctx, 5000));
    THOLE_TRY(thole_await_call(ctx, THOLE_STR("work"), input, NULL, ret_output));
    *ret_output = thole_format(ctx, "%.*s after %llu ms as %.*s: %s %s", THOLE_FMT(*ret_output),
                               (unsigned long long)(thole_now_ms(ctx) - before),
                               THOLE_FMT(thole_orchestration_name(ctx)),
                               (const char *)thole_orchestration_arg(ctx), thole_cstr(ctx, input));
    return THOLE_OK;
}

/* Says after its compensations what it has thrown before. */
static thole_status sells(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_saga undo = {.last = NULL};
    thole_failure failure = thole_thrown(ctx);
    CU_ASSERT_EQUAL(failure.status, THOLE_OK);
    thole_saga_add(ctx, &undo, THOLE_STR("undo"), input, NULL);
    thole_status const status = thole_throw_as(ctx, THOLE_STR("too_slow"), "no %.*s", THOLE_FMT(input));
    thole_status const undone = thole_saga_compensate(ctx, &undo);
    failure = thole_thrown(ctx);
    thole_set_status(ctx, thole_format(ctx, "%s %.*s: %.*s, undo %s", thole_status_name(failure.status),
                                       THOLE_FMT(failure.type), THOLE_FMT(failure.message),
                                       thole_status_name(undone)));
    (void)ret_output;
    return status;
}

static thole_status patient(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const once = {.size = sizeof once};
    if (input.len > 0)
        return thole_await_call(ctx, THOLE_STR("work"), input, &once, ret_output);
    return thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output);
}

static thole_status work(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    *ret_output =
        thole_activity_format(act, "%s %.*s", (const char *)thole_activity_arg(act), THOLE_FMT(input));
    return THOLE_OK;
}

static const thole_call_options three_tries = {
    .size = sizeof three_tries, .retry = {.tries_max = 3, .first_delay_ms = 1000, .factor = 2}};
static const thole_program program = {
    .size = sizeof program,
    .name = "shorthand",
    THOLE_ORCHESTRATIONS({.name = "limited", .run = limited},
                         {.name = "sleeps", .run = sleeps, .arg = (void *)(uintptr_t)greeting},
                         {.name = "sells", .run = sells},
                         {.name = "patient", .run = patient, .call_options = &three_tries}),
    THOLE_ACTIVITIES({.name = "work", .run = work, .arg = (void *)(uintptr_t)greeting},
                     {.name = "undo", .run = work, .arg = (void *)(uintptr_t)greeting})};

static thole_test_env *started(const char *orchestration, const char *input)
{
    thole_test_env *const env = thole_test_create(&program);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, thole_slice_from(orchestration), thole_slice_from(input)),
                    THOLE_OK);
    return env;
}

/* ---- tests ---- */

static void test_limit(void)
{
    thole_test_env *env = started("limited", "1000");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    check_slice("in time", thole_test_output(env, ID), "hello 1000");
    CHECK_STR("in time", thole_test_history(env, ID),
              "#1 Started limited@1(1000)\n#2 ActivityScheduled work(1000)\n#3 TimerCreated due "
              "1000000001000\n#4 ActivityCompleted #2 (hello 1000)\n#5 TimerCancelled #3 select_loser "
              "(activity 2 'work' won)\n#6 Completed (hello 1000)\n");
    thole_test_destroy(env);
    env = started("limited", "1000");
    thole_test_takes(env, "work", 2000);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    check_slice("too late", thole_test_output(env, ID),
                "activity 'work' did not end within the 1000 ms that it was awaited for");
    CU_ASSERT_EQUAL(thole_test_cancels(env, "work"), 1);
    thole_test_destroy(env);
}

static void test_pause_name_arg(void)
{
    thole_test_env *const env = started("sleeps", "x");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    check_slice("output", thole_test_output(env, ID), "hello x after 5000 ms as sleeps: hello x");
    thole_test_destroy(env);
}

static void test_thrown(void)
{
    for (int fails = 0; fails < 2; fails++) {
        thole_test_env *const env = started("sells", "card");
        if (fails)
            thole_test_fails(env, "undo", THOLE_STR("gone"), THOLE_STR("not there"), 0);
        CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
        check_slice("text", thole_test_output(env, ID), "no card");
        check_slice("type", thole_test_error_type(env, ID), "too_slow");
        check_slice("read", thole_test_custom_status(env, ID),
                    fails ? "APP too_slow: no card, undo APP" : "APP too_slow: no card, undo OK");
        thole_test_destroy(env);
    }
}

/* Of calls without options; a call with options has its own. */
static void test_options_of_all_calls(void)
{
    thole_test_env *env = started("patient", "");
    thole_test_fails(env, "work", THOLE_STR(""), THOLE_STR("no"), 2);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_calls(env, "work"), 3);
    thole_test_destroy(env);
    env = started("patient", "once");
    thole_test_fails(env, "work", THOLE_STR(""), THOLE_STR("no"), 2);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    CU_ASSERT_EQUAL(thole_test_calls(env, "work"), 1);
    thole_test_destroy(env);
}

static void test_crashes(void)
{
    static const char *const rows[][2] = {
        {"limited", "1000"}, {"sleeps", "x"}, {"sells", "card"}, {"patient", ""}};
    char want[4096];
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        size_t crashes = 1;
        for (size_t n = 0; crashes > 0; n++) {
            thole_test_env *const env = started(rows[row][0], rows[row][1]);
            if (n > 0)
                thole_test_crash_after(env, n - 1);
            (void)thole_test_run(env, ID);
            if (n == 0)
                (void)snprintf(want, sizeof want, "%s", thole_test_history(env, ID));
            CHECK_STR(rows[row][0], thole_test_history(env, ID), want);
            crashes = n == 0 ? 1 : thole_test_crashes(env);
            thole_test_destroy(env);
        }
    }
}

static void test_numbers(void)
{
    static const struct {
        const char *text;
        thole_status as_unsigned, as_signed;
        uint64_t u;
        int64_t i;
    } rows[] = {{"0", THOLE_OK, THOLE_OK, 0, 0},
                {"007", THOLE_OK, THOLE_OK, 7, 7},
                {"18446744073709551615", THOLE_OK, THOLE_INVALID, UINT64_MAX, 0},
                {"18446744073709551616", THOLE_INVALID, THOLE_INVALID, 0, 0},
                {"9223372036854775807", THOLE_OK, THOLE_OK, INT64_MAX, INT64_MAX},
                {"-9223372036854775808", THOLE_INVALID, THOLE_OK, 0, INT64_MIN},
                {"-9223372036854775809", THOLE_INVALID, THOLE_INVALID, 0, 0},
                {"-0", THOLE_INVALID, THOLE_OK, 0, 0},
                {"+5", THOLE_INVALID, THOLE_OK, 0, 5},
                {"", THOLE_INVALID, THOLE_INVALID, 0, 0},
                {"-", THOLE_INVALID, THOLE_INVALID, 0, 0},
                {"--1", THOLE_INVALID, THOLE_INVALID, 0, 0},
                {" 1", THOLE_INVALID, THOLE_INVALID, 0, 0},
                {"1x", THOLE_INVALID, THOLE_INVALID, 0, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t u = 0;
        int64_t n = 0;
        thole_slice const text = thole_slice_of(rows[i].text, strlen(rows[i].text));
        CU_ASSERT_EQUAL(thole_slice_u64(text, &u), rows[i].as_unsigned);
        CU_ASSERT_EQUAL(thole_slice_i64(text, &n), rows[i].as_signed);
        CU_ASSERT(u == rows[i].u && n == rows[i].i);
    }
    CU_ASSERT_EQUAL(thole_slice_of(NULL, 0).len, 0);
}

static const struct thole_test tests[] = {
    {"limit", test_limit},     {"pause, name, arg", test_pause_name_arg},
    {"thrown", test_thrown},   {"options of all calls", test_options_of_all_calls},
    {"crashes", test_crashes}, {"numbers", test_numbers},
};
THOLE_TEST_MAIN("kit_shorthand", tests)
