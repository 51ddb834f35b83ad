#include "example_kit.h"
#define main example_main
#include "invoice.c"
#undef main

#define ID THOLE_STR("invoice-1")

static void play(thole_test_env *env)
{
    CU_ASSERT_EQUAL(
        thole_test_start(env, ID, THOLE_STR("invoice"),
                         THOLE_STR("{\"customer\":\"c \\u00e4\",\"items\":[{\"name\":\"book\",\"cents\":1250,"
                                   "\"pieces\":2},{\"cents\":1,\"pieces\":3}]} ")),
        THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    example_slice("output", thole_test_output(env, ID),
                  "{\"customer\":\"c ä\",\"cents\":2503,\"state\":\"paid\"}");
    example_slice("status", thole_test_custom_status(env, ID),
                  "{\"customer\":\"c ä\",\"cents\":2503,\"state\":\"charging\"}");
}

static void test_paid(void)
{
    thole_test_env *const env = thole_test_create(&program);
    play(env);
    thole_test_destroy(env);
}

/* Each is refused by a failure of the instance: no crash, and no leak, which the sanitizers would find. */
static void test_bad_input(void)
{
    static const char *const inputs[] = {
        "",
        "{",
        "17",
        "{}",
        "{\"customer\":7,\"items\":[]}",
        "{\"customer\":\"c\"}",
        "{\"customer\":\"c\",\"items\":{}}",
        "{\"customer\":\"c\",\"items\":[{}]}",
        "{\"customer\":\"c\",\"items\":[{\"cents\":1.5,\"pieces\":1}]}",
        "{\"customer\":\"c\",\"items\":[{\"cents\":-1,\"pieces\":1}]}",
        "{\"customer\":\"c\",\"items\":[{\"cents\":1e300,\"pieces\":1}]}",
        "{\"customer\":\"c\",\"items\":[{\"cents\":9e15,\"pieces\":9e15}]}",
        "{\"customer\":\"c\",\"items\":[]}{}",
        "{\"customer\":\"c\",\"items\":[]} x",
        "{\"customer\":\"c\",\"items\":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}"};
    for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
        thole_test_env *const env = thole_test_create(&program);
        CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("invoice"), thole_slice_from(inputs[i])),
                        THOLE_OK);
        if (thole_test_run(env, ID) != THOLE_INSTANCE_FAILED)
            CU_FAIL(inputs[i]);
        example_slice(inputs[i], thole_test_error_type(env, ID), "bad_input");
        CU_ASSERT_EQUAL(thole_test_calls(env, "charge"), 0);
        thole_test_destroy(env);
    }
}

/* A nesting that would overflow a stack of 64 KiB if it were parsed. */
static void test_deep_input(void)
{
    static char deep[100001];
    thole_test_env *const env = thole_test_create(&program);
    memset(deep, '[', sizeof deep - 1);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("invoice"), thole_slice_from(deep)), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    example_slice("type", thole_test_error_type(env, ID), "bad_input");
    thole_test_destroy(env);
}

static void test_crashes(void)
{
    example_crashes(&program, play, ID);
}

int main(void)
{
    static const struct thole_test tests[] = {{"paid", test_paid},
                                              {"bad input", test_bad_input},
                                              {"deep input", test_deep_input},
                                              {"crashes", test_crashes}};
    return thole_run_suite("invoice", tests, ARRAY_LEN(tests));
}
