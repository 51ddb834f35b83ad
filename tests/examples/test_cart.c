#include "example_kit.h"
#define main example_main
#include "cart.c"
#undef main

#define ID THOLE_STR("cart-3")

static void check_items(thole_test_env *env, const char *want)
{
    thole_slice answer = {0};
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("items"), THOLE_STR(""), &answer), THOLE_OK);
    example_slice("items", answer, want);
}

/* The first event starts it, and so would any later one. */
static void add(thole_test_env *env, const char *item)
{
    thole_start_options const options = {
        .size = sizeof options, .event = THOLE_STR("add"), .event_data = thole_slice_from(item)};
    CU_ASSERT_EQUAL(thole_test_start_with(env, ID, THOLE_STR("cart"), THOLE_STR(""), &options), THOLE_OK);
}

static void test_sold(void)
{
    thole_test_env *const env = thole_test_create(&program);
    add(env, "lamp");
    add(env, "book");
    thole_test_advance(env, IDLE_MS - 1);
    thole_test_signal(env, ID, THOLE_STR("add"), THOLE_STR("book"));
    thole_test_signal(env, ID, THOLE_STR("add"), THOLE_STR("chair"));
    check_items(env, "2 book, 1 chair, 1 lamp");
    thole_test_signal(env, ID, THOLE_STR("remove"), THOLE_STR("chair"));
    example_slice("custom status", thole_test_custom_status(env, ID), "2 book, 1 lamp");
    thole_test_advance(env, IDLE_MS - 1);
    thole_test_signal(env, ID, THOLE_STR("pay"), THOLE_STR("visa"));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    example_slice("output", thole_test_output(env, ID), "sold: 2 book, 1 lamp by visa");
    example_history(env, ID, "cart_sold");
    thole_test_destroy(env);
}

static void test_given_up(void)
{
    thole_test_env *const env = thole_test_create(&program);
    add(env, "lamp");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    example_slice("type", thole_test_error_type(env, ID), "given_up");
    CU_ASSERT_EQUAL(thole_test_now_ms(env), 1000000000000 + IDLE_MS);
    thole_test_destroy(env);
}

/* Beyond 10,000 events it continues as new; the cart and the waits go on. */
static void test_busy_customer(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_keep_parked(env);
    for (int i = 0; i < 3000; i++)
        add(env, "lamp");
    check_items(env, "3000 lamp");
    CU_ASSERT(strlen(thole_test_history(env, ID)) < 500 * 1000); /* of its latest execution */
    thole_test_signal(env, ID, THOLE_STR("pay"), THOLE_STR("visa"));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    example_slice("output", thole_test_output(env, ID), "sold: 3000 lamp by visa");
    thole_test_destroy(env);
}

static void play(thole_test_env *env)
{
    add(env, "lamp");
    thole_test_advance(env, 1000);
    thole_test_signal(env, ID, THOLE_STR("add"), THOLE_STR("book"));
    thole_test_signal(env, ID, THOLE_STR("pay"), THOLE_STR("visa"));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
}

static void test_crashes(void)
{
    example_crashes(&program, play, ID);
}

int main(void)
{
    static const struct thole_test tests[] = {{"sold", test_sold},
                                              {"given up", test_given_up},
                                              {"a busy customer", test_busy_customer},
                                              {"crashes", test_crashes}};
    return thole_run_suite("cart", tests, ARRAY_LEN(tests));
}
