/* Recorded histories in the test kit: what had ended, what had not, other code, and what is refused. */
#include "history_file.h"
#include "kit.h"
#include "thole/testing.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <unistd.h>

static bool changed; /* the code, since the history was recorded */

static thole_status order(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice paid;
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("reserve"), input), NULL));
    thole_task const charge = thole_call(ctx, changed ? THOLE_STR("bill") : THOLE_STR("charge"), input);
    thole_task const limit = thole_timer(ctx, 60000);
    size_t winner;
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){charge, limit}, 2, &winner));
    if (winner == 1)
        return thole_throw(ctx, "too slow");
    THOLE_TRY(thole_await(ctx, charge, &paid));
    *ret_output = thole_format(ctx, "%.*s in time", THOLE_FMT(paid));
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {{.name = "order", .run = order}};
static const thole_program program = {.size = sizeof program,
                                      .name = "test",
                                      .orchestrations = orchestrations,
                                      .orchestrations_len = ARRAY_LEN(orchestrations)};
static char path[] = "/tmp/thole-kit-load-XXXXXX";

/* The output of thole export for such instances; "open" waits for its charge, "done" has ended. */
static void test_recorded(void)
{
    static const char *const ids[] = {"open", "done"};
    thole_test_env *const env = thole_test_create(&program);
    struct history_writer writer;
    thole_test_returns(env, "reserve", THOLE_STR("goods"), 0);
    thole_test_hangs(env, "charge", 1);
    thole_test_returns(env, "charge", THOLE_STR("charged"), 1);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        CU_ASSERT_EQUAL(thole_test_start(env, thole_slice_from(ids[i]), THOLE_STR("order"), THOLE_STR("17")),
                        THOLE_OK);
        thole_test_settle(env);
    }
    FILE *to = fdopen(mkstemp(path), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    history_writer_init(&writer, to, HISTORY_BINARY, "shop");
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const struct kit_instance *instance = kit_instance_find(env, thole_slice_from(ids[i]));
        history_writer_begin(&writer, 0, instance->id);
        for (size_t k = 0; k < instance->records_len; k++)
            history_writer_record(&writer, instance->records[k] + 1,
                                  env->records[instance->records[k]].bytes);
        history_writer_end(&writer);
    }
    history_writer_release(&writer);
    (void)fclose(to);
    thole_test_destroy(env);
}

static thole_test_env *loaded(const char *id, uint64_t until, thole_status expected)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_error error = {.text = ""};
    thole_test_returns(env, "charge", THOLE_STR("charged again"), 0);
    thole_test_returns(env, "reserve", THOLE_STR("goods again"), 0);
    thole_test_takes(env, "charge", 1000);
    CU_ASSERT_EQUAL(thole_test_load_history(env, path, thole_slice_from(id), until, &error), expected);
    CU_ASSERT_EQUAL(error.text[0] != '\0', expected != THOLE_OK);
    return env;
}

/* The open activity runs here, once; what had ended does not. */
static void test_goes_on(void)
{
    thole_test_env *const env = loaded("open", 0, THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, THOLE_STR("open")), THOLE_INSTANCE_COMPLETED);
    CHECK_STR("history", thole_test_history(env, THOLE_STR("open")),
              "#1 Started order@1(17)\n#2 ActivityScheduled reserve(17)\n#3 ActivityCompleted #2 (goods)\n"
              "#4 ActivityScheduled charge(17)\n#5 TimerCreated due 1000000060000\n"
              "#6 ActivityCompleted #4 (charged again)\n"
              "#7 TimerCancelled #5 select_loser (activity 4 'charge' won)\n"
              "#8 Completed (charged again in time)\n");
    CU_ASSERT_EQUAL(thole_test_calls(env, "charge"), 1);
    CU_ASSERT_EQUAL(thole_test_calls(env, "reserve"), 0);
    thole_test_destroy(env);
}

/* The timer is due when the history says. */
static void test_timer(void)
{
    thole_test_env *const env = loaded("open", 0, THOLE_OK);
    thole_test_hangs(env, "charge", 0);
    CU_ASSERT_EQUAL(thole_test_run(env, THOLE_STR("open")), THOLE_INSTANCE_FAILED);
    CU_ASSERT_EQUAL(thole_test_now_ms(env), 1000000060000u);
    thole_test_destroy(env);
}

static void test_ended(void)
{
    thole_test_env *const env = loaded("done", 0, THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("done")), THOLE_INSTANCE_COMPLETED);
    thole_slice const output = thole_test_output(env, THOLE_STR("done"));
    CU_ASSERT_TRUE(thole_slice_equal(output, THOLE_STR("charged in time")));
    CU_ASSERT_EQUAL(thole_test_calls(env, "charge"), 0);
    thole_test_destroy(env);
}

/* From before the charge had come back: it is asked for again. */
static void test_until(void)
{
    thole_test_env *const env = loaded("done", 5, THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, THOLE_STR("done")), THOLE_INSTANCE_COMPLETED);
    thole_slice const output = thole_test_output(env, THOLE_STR("done"));
    CU_ASSERT_TRUE(thole_slice_equal(output, THOLE_STR("charged again in time")));
    thole_test_destroy(env);
}

static void test_other_code(void)
{
    static const char *const ids[] = {"open", "done"};
    changed = true;
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        thole_test_env *const env = loaded(ids[i], 0, THOLE_OK);
        (void)thole_test_run(env, thole_slice_from(ids[i]));
        thole_slice const output = thole_test_output(env, thole_slice_from(ids[i]));
        CU_ASSERT_PTR_NOT_NULL(strstr((const char *)output.ptr, "history has ActivityScheduled 'charge'"));
        thole_test_destroy(env);
    }
    changed = false;
}

static void test_refused(void)
{
    thole_error error;
    thole_test_destroy(loaded("nobody", 0, THOLE_NOT_FOUND));
    thole_test_destroy(loaded("", 0, THOLE_INVALID)); /* two histories */
    thole_test_destroy(loaded("done", 1, THOLE_NOT_FOUND));
    thole_test_env *const env = loaded("open", 0, THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_load_history(env, path, THOLE_STR("open"), 0, &error), THOLE_CONFLICT);
    CU_ASSERT_EQUAL(thole_test_load_history(env, "/nonexistent", THOLE_STR("x"), 0, &error), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(thole_test_load_history(env, "/dev/null", THOLE_STR("x"), 0, &error), THOLE_CORRUPT);
    CU_ASSERT_EQUAL(thole_test_load_history(env, path, THOLE_STR("done"), 0, &error), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, THOLE_STR("open")), THOLE_INSTANCE_COMPLETED);
    thole_test_crash(env);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("done")), THOLE_INSTANCE_COMPLETED);
    thole_test_destroy(env);
}

static const struct thole_test tests[] = {
    {"recorded", test_recorded}, {"goes on", test_goes_on}, {"a timer", test_timer},
    {"ended", test_ended},       {"until", test_until},     {"other code", test_other_code},
    {"refused", test_refused},
};

int main(void)
{
    int const code = thole_run_suite("kit_load", tests, ARRAY_LEN(tests));
    (void)unlink(path);
    return code;
}
