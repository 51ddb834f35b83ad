#include "example_kit.h"
#define main example_main
#include "checkout.c"
#undef main

#define ID THOLE_STR("order-17")

static thole_test_env *sells(const char *order)
{
    thole_test_env *const env = thole_test_create(&program);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("checkout"), thole_slice_from(order)), THOLE_OK);
    return env;
}

static void test_sold(void)
{
    thole_test_env *const env = sells("order=17");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    example_slice("output", thole_test_output(env, ID), "order 17 shipped: parcel with goods-17");
    CU_ASSERT_EQUAL(thole_test_calls(env, "release"), 0);
    example_history(env, ID, "checkout_sold");
    thole_test_destroy(env);
}

static void test_too_slow(void)
{
    thole_test_env *const env = sells("order=17;pay_ms=60000;limit_ms=1000");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    example_slice("type", thole_test_error_type(env, ID), "too_slow");
    CU_ASSERT_EQUAL(thole_test_cancels(env, "charge"), 1);
    CU_ASSERT_EQUAL(thole_test_calls(env, "refund"), 1);
    CU_ASSERT_EQUAL(thole_test_calls(env, "release"), 1);
    example_history(env, ID, "checkout_too_slow");
    thole_test_destroy(env);
}

static void test_declined(void)
{
    thole_test_env *const env = sells("order=17;declined=1");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    CU_ASSERT_EQUAL(thole_test_calls(env, "charge"), 1); /* final: nobody asks the bank again */
    CU_ASSERT_EQUAL(thole_test_calls(env, "release"), 1);
    thole_test_destroy(env);
}

static void test_busy_bank(void)
{
    thole_test_env *env = sells("order=17;busy=3");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_calls(env, "charge"), 4);
    thole_test_destroy(env);
    env = sells("order=17;busy=9");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    CU_ASSERT_EQUAL(thole_test_calls(env, "charge"), 5);
    CU_ASSERT_EQUAL(thole_test_calls(env, "refund"), 1);
    thole_test_destroy(env);
}

static void test_cancelled(void)
{
    thole_test_env *const env = sells("order=17;pay_ms=60000;limit_ms=90000");
    thole_test_advance(env, 5000);
    thole_test_cancel(env, ID, THOLE_STR("changed their mind"));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_CANCELLED);
    example_slice("reason", thole_test_output(env, ID), "changed their mind");
    CU_ASSERT_EQUAL(thole_test_calls(env, "refund"), 1);
    CU_ASSERT_EQUAL(thole_test_calls(env, "release"), 1);
    thole_test_destroy(env);
}

static void test_cannot_be_undone(void)
{
    thole_test_env *const env = sells("order=17;declined=1");
    thole_test_fails(env, "release", THOLE_STR(""), THOLE_STR("the shelf is gone"), 0);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    example_slice("type", thole_test_error_type(env, ID), "stuck");
    thole_test_destroy(env);
}

static void play_sold(thole_test_env *env)
{
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("checkout"), THOLE_STR("order=17;busy=1")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
}

static void play_too_slow(thole_test_env *env)
{
    thole_test_takes(env, "charge", 60000);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("checkout"), THOLE_STR("order=17")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
}

static void test_crashes(void)
{
    example_crashes(&program, play_sold, ID);
    example_crashes(&program, play_too_slow, ID);
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"sold", test_sold},           {"too slow", test_too_slow},
        {"declined", test_declined},   {"the bank is busy", test_busy_bank},
        {"cancelled", test_cancelled}, {"cannot be undone", test_cannot_be_undone},
        {"crashes", test_crashes},
    };
    return thole_run_suite("checkout", tests, ARRAY_LEN(tests));
}
