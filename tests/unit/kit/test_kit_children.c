/* Orchestrations that a test scripts: children that answer, fail, never end, take time; without their code.
 */
#include "dropped.h"
#include "thole/testing.h"
#include "thole_cunit.h"

#define ID THOLE_STR("p-1")

static void check_slice(const char *what, thole_slice got, const char *want)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(got));
    CHECK_STR(what, text, want);
}

/* ---- a program ---- */

/* "status type: message" or the output of one child. */
static thole_slice child_said(thole_ctx *ctx, thole_task child, thole_status status, thole_slice output)
{
    thole_failure const failure = thole_task_failure(ctx, child);
    if (status == THOLE_OK)
        return output;
    return thole_format(ctx, "%s %.*s: %.*s", thole_status_name(status), THOLE_FMT(failure.type),
                        THOLE_FMT(failure.message));
}

/* As many children "ship" as the input has letters, one after the other. */
static thole_status one_by_one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (size_t i = 0; i < input.len; i++) {
        thole_slice output = {NULL, 0};
        thole_task const child = thole_child(ctx, THOLE_STR("ship"), (thole_slice){&input.ptr[i], 1}, NULL);
        thole_status const status = thole_await(ctx, child, &output);
        if (status == THOLE_CANCELLED)
            return status;
        output = child_said(ctx, child, status, output);
        *ret_output = thole_format(ctx, "%.*s[%.*s]", THOLE_FMT(*ret_output), THOLE_FMT(output));
    }
    return THOLE_OK;
}

static thole_status limited(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {.size = sizeof options, .instance = THOLE_STR("parcel")};
    thole_task const child = thole_child(ctx, THOLE_STR("ship"), input, &options);
    return thole_await_for(ctx, child, 5000, ret_output);
}

/* The real one, which most tests here replace. */
static thole_status ship(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_sleep(ctx, 1000));
    *ret_output = thole_format(ctx, "really %.*s", THOLE_FMT(input));
    return THOLE_OK;
}

static const thole_program program = {
    .size = sizeof program,
    .name = "parents",
    THOLE_ORCHESTRATIONS({.name = "one_by_one", .run = one_by_one}, {.name = "limited", .run = limited})};
static const thole_program with_code = {.size = sizeof with_code,
                                        .name = "parents",
                                        THOLE_ORCHESTRATIONS({.name = "one_by_one", .run = one_by_one},
                                                             {.name = "ship", .run = ship},
                                                             {.name = "ship", .run = ship, .version = 2})};

static void begins(thole_test_env *env, const char *orchestration, const char *input)
{
    CU_ASSERT_EQUAL(thole_test_start(env, ID, thole_slice_from(orchestration), thole_slice_from(input)),
                    THOLE_OK);
}

/* ---- tests ---- */

static void scripts_in_their_order(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_child_returns(env, "ship", THOLE_STR("sent"), 2);
    thole_test_child_fails(env, "ship", THOLE_STR("lost"), THOLE_STR("100% gone"), 1);
    thole_test_child_returns(env, "ship", THOLE_STR("again"), 0);
    begins(env, "one_by_one", "abcde");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    check_slice("parent", thole_test_output(env, ID), "[sent][sent][APP lost: 100% gone][again][again]");
    CU_ASSERT_EQUAL(thole_test_child_starts(env, "ship"), 5);
    CU_ASSERT_EQUAL(thole_test_child_starts(env, "nobody"), 0);
    /* a child is an instance like any other: here the second, which event 4 of its parent has started */
    CHECK_STR("child", thole_test_history(env, THOLE_STR("p-1:1:4")),
              "#1 Started ship@1(b) of p-1:1#4\n#2 Completed (sent)\n");
    thole_test_destroy(env);
}

static void instead_of_the_code(void)
{
    thole_test_env *env = thole_test_create(&with_code);
    begins(env, "one_by_one", "a");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    check_slice("its own", thole_test_output(env, ID), "[really a]");
    thole_test_destroy(env);
    env = thole_test_create(&with_code);
    thole_test_child_returns(env, "ship", THOLE_STR("as if"), 0);
    begins(env, "one_by_one", "a");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    check_slice("scripted", thole_test_output(env, ID), "[as if]");
    thole_test_deploy(env, &program); /* scripts stay */
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR("p-2"), THOLE_STR("one_by_one"), THOLE_STR("b")),
                    THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, THOLE_STR("p-2")), THOLE_INSTANCE_COMPLETED);
    check_slice("after a deployment", thole_test_output(env, THOLE_STR("p-2")), "[as if]");
    thole_test_destroy(env);
}

static void takes_its_time(void)
{
    thole_test_env *env = thole_test_create(&program);
    thole_test_child_returns(env, "ship", THOLE_STR("in time"), 0);
    thole_test_child_takes(env, "ship", 4000);
    begins(env, "limited", "");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    check_slice("in time", thole_test_output(env, ID), "in time");
    CU_ASSERT_EQUAL(thole_test_now_ms(env), 1000000004000u);
    thole_test_destroy(env);
    env = thole_test_create(&program);
    thole_test_child_returns(env, "ship", THOLE_STR("too late"), 0);
    thole_test_child_takes(env, "ship", 6000);
    begins(env, "limited", "");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    check_slice("too late", thole_test_output(env, ID),
                "child 'ship' did not end within the 5000 ms that it was awaited for");
    thole_test_settle(env);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("parcel")), THOLE_INSTANCE_CANCELLED);
    thole_test_destroy(env);
}

static void never_ends(void)
{
    thole_test_env *const env = thole_test_create(&program);
    CU_ASSERT_EQUAL(thole_test_child_complete(env, "ship", THOLE_STR("x")), THOLE_NOT_FOUND);
    thole_test_child_hangs(env, "ship", 0);
    begins(env, "limited", "");
    thole_test_advance(env, 4999);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("parcel")), THOLE_INSTANCE_RUNNING);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED); /* at its limit */
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("parcel")), THOLE_INSTANCE_CANCELLED);
    CU_ASSERT_EQUAL(thole_test_child_complete(env, "ship", THOLE_STR("x")), THOLE_NOT_FOUND);
    thole_test_destroy(env);
}

static void is_completed_by_the_test(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_child_hangs(env, "ship", 2);
    begins(env, "one_by_one", "abc");
    CU_ASSERT_EQUAL(thole_test_child_complete(env, "ship", THOLE_STR("first")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_child_complete(env, "ship", THOLE_STR("second")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_child_complete(env, "ship", THOLE_STR("third")),
                    THOLE_OK); /* beyond the scripts */
    CU_ASSERT_EQUAL(thole_test_child_complete(env, "ship", THOLE_STR("fourth")), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    check_slice("completed", thole_test_output(env, ID), "[first][second][third]");
    thole_test_destroy(env);
}

static void ends_with_its_parent(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_child_hangs(env, "ship", 0);
    begins(env, "limited", "");
    thole_test_settle(env);
    thole_test_cancel(env, ID, THOLE_STR("no more"));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_CANCELLED);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("parcel")), THOLE_INSTANCE_CANCELLED);
    CU_ASSERT_EQUAL(thole_test_delete(env, THOLE_STR("parcel"), NULL), THOLE_OK);
    /* an id that is used again is another instance, with a script of its own */
    thole_test_child_returns(env, "ship", THOLE_STR("anew"), 0);
    thole_test_child_takes(env, "ship", 1000);
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR("parcel"), THOLE_STR("ship"), THOLE_STR("")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_child_complete(env, "ship", THOLE_STR("x")), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(thole_test_run(env, THOLE_STR("parcel")), THOLE_INSTANCE_COMPLETED);
    check_slice("again", thole_test_output(env, THOLE_STR("parcel")), "anew");
    thole_test_destroy(env);
}

/* Whatever the engine had just done when it died: each child keeps its script. */
static void survives_crashes(void)
{
    size_t crashes = 1;
    for (size_t n = 0; crashes > 0; n++) {
        thole_test_env *const env = thole_test_create(&program);
        thole_test_child_returns(env, "ship", THOLE_STR("sent"), 1);
        thole_test_child_takes(env, "ship", 10);
        thole_test_child_fails(env, "ship", THOLE_STR("lost"), THOLE_STR("gone"), 1);
        thole_test_child_returns(env, "ship", THOLE_STR("again"), 0);
        thole_test_crash_after(env, n);
        begins(env, "one_by_one", "abc");
        CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
        check_slice("parent", thole_test_output(env, ID), "[sent][APP lost: gone][again]");
        CU_ASSERT_EQUAL(thole_test_child_starts(env, "ship"), 3);
        crashes = thole_test_crashes(env);
        thole_test_destroy(env);
    }
}

static const struct thole_test tests[] = {
    {"scripts in their order", scripts_in_their_order},
    {"instead of the code", instead_of_the_code},
    {"takes its time", takes_its_time},
    {"never ends", never_ends},
    {"is completed by the test", is_completed_by_the_test},
    {"ends with its parent", ends_with_its_parent},
    {"survives crashes", survives_crashes},
};
THOLE_TEST_MAIN("kit_children", tests)
