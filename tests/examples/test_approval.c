#include "example_kit.h"
#define main example_main
#include "approval.c"
#undef main

#define ID THOLE_STR("expense-7")

static thole_test_env *asks(void)
{
    thole_test_env *const env = thole_test_create(&program);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("expense"), THOLE_STR("taxi")), THOLE_OK);
    return env;
}

static void check_state(thole_test_env *env, const char *want)
{
    thole_slice answer = {0};
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("state"), THOLE_STR(""), &answer), THOLE_OK);
    example_slice("state", answer, want);
}

static void test_approved(void)
{
    thole_test_env *const env = asks();
    check_state(env, "waits for a decision, 0 reminders");
    example_slice("custom status", thole_test_custom_status(env, ID), "waits for a decision");
    thole_test_advance(env, 2 * DAY_MS + 1000);
    check_state(env, "waits for a decision, 2 reminders");
    thole_test_signal(env, ID, THOLE_STR("decision"), THOLE_STR("approved"));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    example_slice("output", thole_test_output(env, ID), "paid: taxi");
    example_slice("custom status", thole_test_custom_status(env, ID), "approved");
    CU_ASSERT_EQUAL(thole_test_calls(env, "mail"), 3);
    check_state(env, "decided");
    example_history(env, ID, "approval_approved");
    thole_test_destroy(env);
}

static void test_refused(void)
{
    thole_test_env *const env = asks();
    thole_test_signal(env, ID, THOLE_STR("decision"), THOLE_STR("too expensive"));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    example_slice("output", thole_test_output(env, ID), "not paid: too expensive");
    CU_ASSERT_EQUAL(thole_test_calls(env, "pay"), 0);
    thole_test_destroy(env);
}

static void test_nobody_answers(void)
{
    thole_test_env *const env = asks();
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    example_slice("type", thole_test_error_type(env, ID), "no_answer");
    CU_ASSERT_EQUAL(thole_test_now_ms(env), 1000000000000 + 4 * DAY_MS);
    CU_ASSERT_EQUAL(thole_test_calls(env, "mail"), 4);
    thole_test_destroy(env);
}

static void test_early_decision(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_signal(env, ID, THOLE_STR("decision"), THOLE_STR("approved"));
    CU_ASSERT_EQUAL(thole_test_status(env, ID), THOLE_INSTANCE_WAITING);
    thole_test_advance(env, 6 * DAY_MS);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("expense"), THOLE_STR("taxi")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    example_slice("output", thole_test_output(env, ID), "paid: taxi");
    thole_test_destroy(env);
}

static void play(thole_test_env *env)
{
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("expense"), THOLE_STR("taxi")), THOLE_OK);
    thole_test_advance(env, DAY_MS + 1);
    thole_test_signal(env, ID, THOLE_STR("decision"), THOLE_STR("approved"));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
}

static void test_crashes(void)
{
    example_crashes(&program, play, ID);
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"approved", test_approved},
        {"refused", test_refused},
        {"nobody answers", test_nobody_answers},
        {"a decision before the start", test_early_decision},
        {"crashes", test_crashes},
    };
    return thole_run_suite("approval", tests, ARRAY_LEN(tests));
}
