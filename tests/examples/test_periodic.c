#include "example_kit.h"
#define main example_main
#include "periodic.c"
#undef main

#define ID THOLE_STR("rates")
#define HOUR_MS (3600ull * 1000)

static thole_test_env *begun(void)
{
    thole_test_env *const env = thole_test_create(&program);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("rates"), THOLE_STR("3600000")), THOLE_OK);
    return env;
}

static void test_rounds(void)
{
    thole_test_env *const env = begun();
    thole_test_takes(env, "fetch", 90 * 1000); /* and still each round begins at the full hour */
    thole_test_advance(env, 1000 * HOUR_MS);
    CU_ASSERT_EQUAL(thole_test_calls(env, "fetch"), 1000);
    example_slice("custom status", thole_test_custom_status(env, ID), "EUR/USD 1.00");
    example_history(env, ID, "periodic_round");
    thole_test_signal(env, ID, THOLE_STR("stop"), THOLE_STR(""));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    example_slice("output", thole_test_output(env, ID), "1000 rounds");
    thole_test_destroy(env);
}

/* The event comes while nobody waits for it, and is taken by the next execution. */
static void test_stop_in_between(void)
{
    thole_test_env *const env = begun();
    thole_test_takes(env, "fetch", 90 * 1000);
    thole_test_advance(env, HOUR_MS);
    CU_ASSERT_EQUAL(thole_test_calls(env, "fetch"), 1);
    thole_test_signal(env, ID, THOLE_STR("stop"), THOLE_STR(""));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    example_slice("output", thole_test_output(env, ID), "1 rounds");
    thole_test_destroy(env);
}

static void test_failures_in_a_row(void)
{
    thole_test_env *const env = begun();
    thole_test_fails(env, "fetch", THOLE_STR(""), THOLE_STR("away"), 2 * 4); /* two rounds of four tries */
    thole_test_returns(env, "fetch", THOLE_STR("good"), 1);
    thole_test_fails(env, "fetch", THOLE_STR(""), THOLE_STR("away"), 0);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    example_slice("output", thole_test_output(env, ID), "4 rounds in a row have failed");
    CU_ASSERT_EQUAL(thole_test_calls(env, "fetch"), (2 + 4) * 4 + 1);
    thole_test_destroy(env);
}

static void play(thole_test_env *env)
{
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("rates"), THOLE_STR("3600000")), THOLE_OK);
    thole_test_advance(env, 3 * HOUR_MS);
    thole_test_signal(env, ID, THOLE_STR("stop"), THOLE_STR(""));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    example_slice("output", thole_test_output(env, ID), "3 rounds");
}

static void test_crashes(void)
{
    example_crashes(&program, play, ID);
}

int main(void)
{
    static const struct thole_test tests[] = {{"a thousand rounds", test_rounds},
                                              {"stopped in between", test_stop_in_between},
                                              {"failures in a row", test_failures_in_a_row},
                                              {"crashes", test_crashes}};
    return thole_run_suite("periodic", tests, ARRAY_LEN(tests));
}
