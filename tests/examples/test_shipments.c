#include "example_kit.h"
#define main example_main
#include "shipments.c"
#undef main

#define ID THOLE_STR("order-5")

static thole_test_env *orders(const char *items)
{
    thole_test_env *const env = thole_test_create(&program);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("order"), thole_slice_from(items)), THOLE_OK);
    return env;
}

static void test_all_shipped(void)
{
    thole_test_env *const env = orders("book,lamp,chair");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    example_slice("output", thole_test_output(env, ID),
                  "parcel with book, parcel with lamp, parcel with chair");
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("order-5/3")), THOLE_INSTANCE_COMPLETED);
    example_history(env, ID, "shipments_order");
    example_history(env, THOLE_STR("order-5/1"), "shipments_shipment");
    thole_test_destroy(env);
}

static void test_out_of_stock(void)
{
    thole_test_env *const env = orders("book,lamp,unicorn");
    thole_test_takes(env, "collect", 1000);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    example_slice("type", thole_test_error_type(env, ID), "out_of_stock");
    example_slice("output", thole_test_output(env, ID),
                  "a shipment failed: activity 'pick' failed: there is no unicorn");
    thole_test_settle(env);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("order-5/1")), THOLE_INSTANCE_CANCELLED);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("order-5/2")), THOLE_INSTANCE_CANCELLED);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("order-5/3")), THOLE_INSTANCE_FAILED);
    CU_ASSERT_EQUAL(thole_test_calls(env, "put_back"), 3);
    CU_ASSERT_EQUAL(thole_test_calls(env, "call_back"), 0);
    thole_test_destroy(env);
}

static void test_those_through_are_called_back(void)
{
    thole_test_env *const env = orders("book,unicorn");
    thole_test_returns(env, "pick", THOLE_STR(""), 1);
    thole_test_hangs(env, "pick", 1);
    thole_test_settle(env); /* the book is on its way, the unicorn is looked for */
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("order-5/1")), THOLE_INSTANCE_COMPLETED);
    thole_test_terminate(env, THOLE_STR("order-5/2"), THOLE_STR("enough"));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    example_slice("output", thole_test_output(env, ID), "a shipment failed: enough");
    CU_ASSERT_EQUAL(thole_test_calls(env, "call_back"), 1);
    thole_test_destroy(env);
}

static void test_cancelled(void)
{
    thole_test_env *const env = orders("book,lamp");
    thole_test_hangs(env, "collect", 0);
    thole_test_settle(env);
    thole_test_cancel(env, ID, THOLE_STR("changed their mind"));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_CANCELLED);
    thole_test_settle(env);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("order-5/2")), THOLE_INSTANCE_CANCELLED);
    CU_ASSERT_EQUAL(thole_test_calls(env, "put_back"), 2);
    CU_ASSERT_EQUAL(thole_test_cancels(env, "collect"), 2);
    thole_test_destroy(env);
}

static void play(thole_test_env *env)
{
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("order"), THOLE_STR("book,lamp")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("order-5/1")), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("order-5/2")), THOLE_INSTANCE_COMPLETED);
}

static void play_unicorn(thole_test_env *env)
{
    thole_test_takes(env, "collect", 1000);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("order"), THOLE_STR("book,unicorn")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    thole_test_settle(env);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("order-5/1")), THOLE_INSTANCE_CANCELLED);
}

static void test_crashes(void)
{
    example_crashes(&program, play, ID);
    example_crashes(&program, play_unicorn, ID);
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"all are shipped", test_all_shipped},
        {"one is out of stock", test_out_of_stock},
        {"those that are through are called back", test_those_through_are_called_back},
        {"cancelled", test_cancelled},
        {"crashes", test_crashes}};
    return thole_run_suite("shipments", tests, ARRAY_LEN(tests));
}
