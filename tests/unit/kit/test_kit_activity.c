/* One activity alone: what it is told, what it does when its token fires, what came of it. */
#include "dropped.h"
#include "thole/testing.h"
#include "thole_cunit.h"
#include <stdlib.h>

static void check_slice(const char *what, thole_slice got, const char *want)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(got));
    CHECK_STR(what, text, want);
}

/* ---- a program ---- */

/* Ten pages, one second each; goes on where the last heartbeat was. */
static thole_status prints(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    uint64_t page = 0;
    if (thole_activity_details(act).len > 0)
        THOLE_TRY(thole_slice_u64(thole_activity_details(act), &page));
    for (; page < 10; page++) {
        thole_slice const done = thole_activity_format(act, "%llu", (unsigned long long)page);
        thole_status const beat = thole_activity_heartbeat(act, done);
        if (beat != THOLE_OK || thole_activity_wait(act, 1000) == THOLE_CANCELLED) {
            drop_status(thole_activity_wait(act, 300)); /* returns at once, as its token has fired */
            return THOLE_CANCELLED;
        }
    }
    *ret_output = thole_activity_format(act, "%.*s: try %u, attempt %u", THOLE_FMT(input),
                                        thole_activity_try(act), thole_activity_attempt(act));
    return THOLE_OK;
}

static thole_status tells(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output =
        thole_activity_format(act, "%.*s on %.*s for %.*s, %s, %llu ms left",
                              THOLE_FMT(thole_activity_name(act)), THOLE_FMT(thole_activity_queue(act)),
                              THOLE_FMT(thole_activity_instance(act)), (const char *)thole_activity_arg(act),
                              (unsigned long long)(thole_activity_time_left_ms(act) == UINT64_MAX
                                                       ? 0
                                                       : thole_activity_time_left_ms(act)));
    return THOLE_OK;
}

static thole_status fails(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    if (thole_slice_equal(input, THOLE_STR("final")))
        return thole_activity_fail_final(act, THOLE_STR("never"), "not %s", "this");
    return thole_activity_fail_as(act, THOLE_STR("later"), "not now");
}

/* Does its work in spite of its token. */
static thole_status stubborn(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    drop_status(thole_activity_wait(act, 1000));
    *ret_output = thole_activity_format(act, "%.*s, %s: %.*s", THOLE_FMT(input),
                                        thole_cancel_kind_name(thole_activity_cancel_kind(act)),
                                        THOLE_FMT(thole_activity_cancel_reason(act)));
    return THOLE_OK;
}

static thole_status for_ever(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    return thole_activity_wait(act, UINT64_MAX);
}

static thole_status deaf(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    for (uint64_t waits = 1; waits > 0; waits++)
        drop_status(thole_activity_wait(act, 1000));
    return THOLE_OK;
}

static thole_status hands_out(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    thole_slice token;
    (void)input, (void)ret_output;
    return thole_activity_later(act, &token);
}

static thole_status returns_much(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = (thole_slice){thole_activity_alloc(act, 300 * 1024), 300 * 1024};
    return THOLE_OK;
}

static thole_test_env *asked_env;
static thole_status asks_the_kit(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    thole_test_activity_result result;
    (void)act, (void)ret_output;
    return thole_test_activity(asked_env, "tells", input, NULL, &result);
}

static thole_status sleeps(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_sleep(ctx, 4000));
    return thole_await_call(ctx, THOLE_STR("prints"), input, NULL, ret_output);
}

static char printer[] = "printer";
static const thole_program program = {
    .size = sizeof program,
    .name = "alone",
    THOLE_ORCHESTRATIONS({.name = "sleeps", .run = sleeps}),
    THOLE_ACTIVITIES({.name = "prints", .run = prints}, {.name = "tells", .run = tells, .arg = printer},
                     {.name = "fails", .run = fails}, {.name = "stubborn", .run = stubborn},
                     {.name = "for_ever", .run = for_ever}, {.name = "deaf", .run = deaf},
                     {.name = "hands_out", .run = hands_out}, {.name = "returns_much", .run = returns_much},
                     {.name = "asks_the_kit", .run = asks_the_kit})};

static thole_test_activity_result result_of(thole_test_env *env, const char *name, const char *input,
                                            const thole_test_activity_options *options)
{
    thole_test_activity_result result = {.status = THOLE_NOMEM};
    CU_ASSERT_EQUAL(thole_test_activity(env, name, thole_slice_from(input), options, &result), THOLE_OK);
    return result;
}

/* ---- tests ---- */

static void succeeds(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_activity_result result = result_of(env, "prints", "book", NULL);
    CU_ASSERT(result.status == THOLE_OK && result.returned == THOLE_OK && !result.final);
    check_slice("output", result.output, "book: try 1, attempt 1");
    check_slice("details", result.details, "9");
    CU_ASSERT(result.heartbeats == 10 && result.took_ms == 10000 && result.noticed_ms == 0);
    thole_test_activity_options const options = {
        .size = sizeof options, .try_number = 3, .attempt = 2, .details = THOLE_STR("7")};
    result = result_of(env, "prints", "book", &options);
    check_slice("goes on", result.output, "book: try 3, attempt 2");
    CU_ASSERT(result.heartbeats == 3 && result.took_ms == 3000);
    CU_ASSERT_EQUAL(thole_test_calls(env, "prints"), 2);
    thole_test_destroy(env);
}

static void is_told_what_it_asks(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_activity_options const options = {.size = sizeof options,
                                                 .instance = THOLE_STR("order-1"),
                                                 .queue = THOLE_STR("slow"),
                                                 .try_timeout_ms = 700};
    check_slice("zeroes", result_of(env, "tells", "", NULL).output,
                "tells on default for test, printer, 0 ms left");
    check_slice("options", result_of(env, "tells", "", &options).output,
                "tells on slow for order-1, printer, 700 ms left");
    thole_test_returns(env, "tells", THOLE_STR("scripted"), 0);
    check_slice("not scripted", result_of(env, "tells", "", NULL).output,
                "tells on default for test, printer, 0 ms left");
    thole_test_destroy(env);
}

static void fails_as_it_says(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_activity_result result = result_of(env, "fails", "", NULL);
    CU_ASSERT(result.status == THOLE_APP && result.returned == THOLE_APP && !result.final);
    check_slice("type", result.error_type, "later");
    check_slice("message", result.message, "not now");
    result = result_of(env, "fails", "final", NULL);
    CU_ASSERT(result.status == THOLE_APP && result.final);
    check_slice("type", result.error_type, "never");
    check_slice("message", result.message, "not this");
    result = result_of(env, "returns_much", "", NULL);
    CU_ASSERT(result.status == THOLE_LIMIT && result.returned == THOLE_OK);
    check_slice("too much", result.message, "the output has 307200 bytes; at most 262144 are allowed");
    thole_test_destroy(env);
}

static void runs_out_of_time(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_activity_options const options = {.size = sizeof options, .try_timeout_ms = 2500};
    thole_test_activity_result result = result_of(env, "prints", "book", &options);
    CU_ASSERT(result.status == THOLE_TIMEOUT && result.returned == THOLE_CANCELLED);
    check_slice("type", result.error_type, "timeout");
    check_slice("details", result.details, "2");
    CU_ASSERT(result.took_ms == 2500 && result.noticed_ms == 0); /* noticed at once */
    result = result_of(env, "stubborn", "done",
                       &(thole_test_activity_options){.size = sizeof options, .try_timeout_ms = 300});
    CU_ASSERT(result.status == THOLE_TIMEOUT && result.returned == THOLE_OK && result.output.len == 0);
    thole_test_destroy(env);
}

static void is_cancelled(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_activity_options options = {.size = sizeof options,
                                           .cancel_ms = 3200,
                                           .cancel_kind = THOLE_CANCEL_REQUESTED,
                                           .cancel_reason = THOLE_STR("not wanted")};
    thole_test_activity_result result = result_of(env, "prints", "book", &options);
    CU_ASSERT(result.status == THOLE_CANCELLED && result.returned == THOLE_CANCELLED);
    CU_ASSERT(result.took_ms == 3200 && result.heartbeats == 4);
    CU_ASSERT_EQUAL(thole_test_cancels(env, "prints"), 1);
    options.cancel_ms = 0; /* before it begins */
    result = result_of(env, "prints", "book", &options);
    CU_ASSERT(result.status == THOLE_CANCELLED && result.took_ms == 0 && result.heartbeats == 1);
    options.cancel_ms = 60000; /* long after its end */
    CU_ASSERT_EQUAL(result_of(env, "prints", "book", &options).status, THOLE_OK);
    /* a success counts of a worker that stops, and of no other */
    options.cancel_ms = 500;
    result = result_of(env, "stubborn", "done", &options);
    CU_ASSERT(result.status == THOLE_CANCELLED && result.returned == THOLE_OK && result.output.len == 0);
    options.cancel_kind = THOLE_CANCEL_SHUTDOWN;
    options.cancel_reason = (thole_slice){NULL, 0};
    result = result_of(env, "stubborn", "done", &options);
    CU_ASSERT_EQUAL(result.status, THOLE_OK);
    check_slice("stopped", result.output, "done, shutdown: shutdown");
    CU_ASSERT_EQUAL(result_of(env, "prints", "book", &options).status, THOLE_CANCELLED);
    thole_test_destroy(env);
}

static void does_not_return(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_activity_result result = {.status = THOLE_OK};
    thole_test_activity_options options = {.size = sizeof options, .try_timeout_ms = 100};
    CU_ASSERT_EQUAL(thole_test_activity(env, "for_ever", THOLE_STR(""), NULL, &result), THOLE_LIMIT);
    CU_ASSERT_EQUAL(result_of(env, "for_ever", "", &options).status, THOLE_TIMEOUT);
    result = result_of(env, "deaf", "", &options);
    CU_ASSERT(result.status == THOLE_TIMEOUT && result.returned == THOLE_UNAVAILABLE);
    result = result_of(env, "hands_out", "", NULL);
    CU_ASSERT(result.status == THOLE_LATER && result.returned == THOLE_LATER && result.output.len > 0);
    thole_test_destroy(env);
}

static void is_refused(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_activity_result result;
    thole_test_activity_options const no_size = {.attempt = 1};
    thole_test_activity_options const no_kind = {.size = sizeof no_kind, .cancel_kind = 20};
    uint8_t *const large = calloc(1, 300 * 1024);
    thole_test_activity_options const details = {.size = sizeof details, .details = {large, 16 * 1024 + 1}};
    CU_ASSERT_EQUAL(thole_test_activity(env, "nobody", THOLE_STR(""), NULL, &result), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(thole_test_activity(env, "tells", THOLE_STR(""), &no_size, &result), THOLE_INVALID);
    CU_ASSERT_EQUAL(thole_test_activity(env, "tells", THOLE_STR(""), &no_kind, &result), THOLE_INVALID);
    CU_ASSERT_EQUAL(thole_test_activity(env, "tells", THOLE_STR(""), &details, &result), THOLE_INVALID);
    CU_ASSERT_EQUAL(thole_test_activity(env, "tells", thole_slice_of(large, 256 * 1024 + 1), NULL, &result),
                    THOLE_LIMIT);
    asked_env = env;
    CU_ASSERT_EQUAL(result_of(env, "asks_the_kit", "", NULL).returned, THOLE_INVALID);
    free(large);
    thole_test_destroy(env);
}

/* Time goes by for everything; and a worker that dies is another claim. */
static void beside_others(void)
{
    thole_test_env *const env = thole_test_create(&program);
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR("test"), THOLE_STR("sleeps"), THOLE_STR("x")), THOLE_OK);
    for (int i = 0; i < 4; i++) /* one of them has the id that the instance's activity will have */
        CU_ASSERT_EQUAL(result_of(env, i < 2 ? "tells" : "prints", "book", NULL).status, THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("test")), THOLE_INSTANCE_COMPLETED);
    check_slice("its own", thole_test_output(env, THOLE_STR("test")), "x: try 1, attempt 1");
    CU_ASSERT_EQUAL(thole_test_calls(env, "prints"), 3);
    thole_test_destroy(env);
    size_t crashes = 1;
    for (size_t n = 0; crashes > 0; n++) {
        thole_test_env *const dying = thole_test_create(&program);
        thole_test_crash_after(dying, n);
        thole_test_activity_result const result = result_of(dying, "prints", "book", NULL);
        crashes = thole_test_crashes(dying);
        CU_ASSERT_EQUAL(result.status, THOLE_OK);
        check_slice("claims", result.output,
                    thole_test_calls(dying, "prints") == 2 ? "book: try 1, attempt 2"
                                                           : "book: try 1, attempt 1");
        thole_test_destroy(dying);
    }
}

/* The cancellation comes at its time, also to the claim that follows. */
static void is_cancelled_after_a_crash(void)
{
    thole_test_activity_options const options = {
        .size = sizeof options, .cancel_ms = 3200, .cancel_kind = THOLE_CANCEL_REQUESTED};
    size_t crashes = 1;
    for (size_t n = 0; crashes > 0; n++) {
        thole_test_env *const env = thole_test_create(&program);
        thole_test_crash_after(env, n);
        CU_ASSERT_EQUAL(result_of(env, "prints", "book", &options).status, THOLE_CANCELLED);
        CU_ASSERT_EQUAL(thole_test_now_ms(env), 1000000003200u);
        crashes = thole_test_crashes(env);
        thole_test_destroy(env);
    }
}

static const struct thole_test tests[] = {
    {"succeeds", succeeds},
    {"is told what it asks", is_told_what_it_asks},
    {"fails as it says", fails_as_it_says},
    {"runs out of time", runs_out_of_time},
    {"is cancelled", is_cancelled},
    {"does not return", does_not_return},
    {"is refused", is_refused},
    {"is cancelled after a crash", is_cancelled_after_a_crash},
    {"beside others", beside_others},
};
THOLE_TEST_MAIN("kit_activity", tests)
