/* Seed 002: InProcessRunner is the test kit: orchestrations and activities in this process, without any
 * server. */
#include "thole/testing.h"
#include "thole_cunit.h"
#include <stdlib.h>

static unsigned charged;

static thole_status charge(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    charged++;
    if (thole_activity_try(act) == 1)
        return thole_activity_fail(act, "the bank is away");
    *ret_output = thole_activity_format(act, "charged %.*s", THOLE_FMT(input));
    return THOLE_OK;
}

static thole_status pack(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "packed %.*s", THOLE_FMT(input));
    return THOLE_OK;
}

/* Two branches at once, one of them with a second try; a night in between; one more step. */
static thole_status order(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice results[2], shipped;
    thole_call_options const options = {.size = sizeof options,
                                        .retry = {.tries_max = 2, .first_delay_ms = 1000}};
    thole_task const branches[] = {thole_call_with(ctx, THOLE_STR("charge"), input, &options),
                                   thole_call(ctx, THOLE_STR("pack"), input)};
    THOLE_TRY(thole_await_all(ctx, branches, 2, results));
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 8 * 3600 * 1000), NULL));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("pack"), THOLE_STR("van")), &shipped));
    *ret_output = thole_format(ctx, "%.*s, %.*s, %.*s", THOLE_FMT(results[0]), THOLE_FMT(results[1]),
                               THOLE_FMT(shipped));
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {{"order", order, 0}};
static const thole_activity_entry activities[] = {{"charge", charge}, {"pack", pack}};
static const thole_program program = {.size = sizeof program,
                                      .name = "in-process",
                                      .orchestrations = orchestrations,
                                      .orchestrations_len = ARRAY_LEN(orchestrations),
                                      .activities = activities,
                                      .activities_len = ARRAY_LEN(activities)};

static void check_run(thole_test_env *env)
{
    thole_slice const id = THOLE_STR("order-1");
    char output[128];
    CU_ASSERT_EQUAL(thole_test_start(env, id, THOLE_STR("order"), THOLE_STR("book")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, id), THOLE_INSTANCE_COMPLETED);
    snprintf(output, sizeof output, "%.*s", THOLE_FMT(thole_test_output(env, id)));
    CHECK_STR("output", output, "charged book, packed book, packed van");
}

static void test_without_any_server(void)
{
    setenv("THOLE_NATS_URL", "nats://127.0.0.1:1", 1); /* no server listens there, and none is asked */
    setenv("THOLE_POSTGRES", "host=127.0.0.1 port=1", 1);
    thole_test_env *const env = thole_test_create(&program);
    charged = 0;
    check_run(env);
    CU_ASSERT_EQUAL(charged, 2);
    thole_test_destroy(env);
}

/* With a crash at each point the instance resumes from its records. */
static void test_resumes_after_each_crash(void)
{
    size_t crashes = 1, n = 0;
    for (; crashes > 0; n++) {
        thole_test_env *const env = thole_test_create(&program);
        thole_test_crash_after(env, n);
        check_run(env);
        crashes = thole_test_crashes(env);
        thole_test_destroy(env);
    }
    CU_ASSERT_TRUE(n > 10);
}

static const struct thole_test tests[] = {
    {"in_process_run_without_any_server", test_without_any_server},
    {"in process, with a crash at each point", test_resumes_after_each_crash},
};
THOLE_TEST_MAIN("seed_in_process", tests)
