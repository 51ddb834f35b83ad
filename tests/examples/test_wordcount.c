#include "example_kit.h"
#define main example_main
#include "wordcount.c"
#undef main

#define ID THOLE_STR("text-1")

static thole_test_env *counts(const char *text)
{
    thole_test_env *const env = thole_test_create(&program);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("wordcount"), thole_slice_from(text)), THOLE_OK);
    return env;
}

static void test_counts(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {{"", "0 words in 0 lines"},
                {"one", "1 words in 1 lines"},
                {"one two\n\n three\tfour \nfive", "5 words in 3 lines"},
                {"\n\n", "0 words in 0 lines"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_test_env *const env = counts(rows[i].text);
        CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
        example_slice(rows[i].text, thole_test_output(env, ID), rows[i].want);
        thole_test_destroy(env);
    }
}

static void test_many_lines(void)
{
    static char text[8 * (LINES_MAX + 10) + 1];
    for (size_t i = 0; i < LINES_MAX + 10; i++)
        memcpy(text + 8 * i, "a b c d\n", 8);
    thole_test_env *const env = counts(text);
    thole_test_keep_parked(env); /* a thousand turns: replayed each time they would be half a million */
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    example_slice("many", thole_test_output(env, ID), "4000 words in 1000 lines");
    CU_ASSERT_EQUAL(thole_test_calls(env, "count"), LINES_MAX);
    thole_test_destroy(env);
}

static void test_one_fails(void)
{
    thole_test_env *const env = counts("a\nb\nc");
    thole_test_fails(env, "count", THOLE_STR("smudged"), THOLE_STR("cannot read it"), 2);
    thole_test_returns(env, "count", THOLE_STR("7"), 0);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED); /* each has three tries */
    example_slice("output", thole_test_output(env, ID), "21 words in 3 lines");
    thole_test_destroy(env);
}

static void test_one_hangs(void)
{
    thole_test_env *const env = counts("a\nb");
    thole_test_hangs(env, "count", 1);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_calls(env, "count"), 3);
    CU_ASSERT_EQUAL(thole_test_cancels(env, "count"), 1); /* told that its time is over */
    CU_ASSERT_EQUAL(thole_test_now_ms(env), 1000000000000 + 61000);
    thole_test_destroy(env);
}

static void play(thole_test_env *env)
{
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("wordcount"), THOLE_STR("a\nb b\nc")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
}

static void test_crashes(void)
{
    example_crashes(&program, play, ID);
}

int main(void)
{
    static const struct thole_test tests[] = {{"counts", test_counts},
                                              {"many lines", test_many_lines},
                                              {"one fails twice", test_one_fails},
                                              {"one hangs", test_one_hangs},
                                              {"crashes", test_crashes}};
    return thole_run_suite("wordcount", tests, ARRAY_LEN(tests));
}
