/* A user's program and its test in one, built against an installed thole by consumer.sh. It needs no server.
 */
#include <stdio.h>
#include <string.h>
#include <thole/activity.h>
#include <thole/client.h>
#include <thole/orchestration.h>
#include <thole/program.h>
#include <thole/testing.h>

static const thole_slice activity = THOLE_STR_INIT("hello");

static thole_status greet(thole_ctx *ctx, thole_slice name, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 3600 * 1000), NULL));
    return thole_await(ctx, thole_call(ctx, activity, name), ret_output);
}

static thole_status hello(thole_activity *act, thole_slice name, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "hello %.*s", THOLE_FMT(name));
    return THOLE_OK;
}

static int runs_in_the_kit(void)
{
    static const thole_orchestration_entry orchestrations[] = {{.name = "greet", .run = greet}};
    static const thole_activity_entry activities[] = {{.name = "hello", .run = hello}};
    static const thole_program program = {.size = sizeof program,
                                          .name = "consumer",
                                          .orchestrations = orchestrations,
                                          .orchestrations_len = 1,
                                          .activities = activities,
                                          .activities_len = 1};
    thole_slice const id = THOLE_STR("greeting-1");
    thole_test_env *env = thole_test_create(&program);
    int const ok = env != NULL &&
                   thole_test_start(env, id, THOLE_STR("greet"), THOLE_STR("world")) == THOLE_OK &&
                   thole_test_run(env, id) == THOLE_INSTANCE_COMPLETED &&
                   thole_slice_equal(thole_test_output(env, id), THOLE_STR("hello world"));
    thole_test_destroy(env);
    return ok;
}

int main(void)
{
    thole_error err = {0};
    thole_status const status = thole_fail(&err, THOLE_INVALID, "%s", "as asked");
    if (status != THOLE_INVALID || strcmp(err.text, "as asked") != 0)
        return 1;
    if (!thole_slice_equal(thole_slice_from("abc"), THOLE_STR("abc")) || !runs_in_the_kit())
        return 1;
    printf("consumer ok: %s\n", thole_status_name(status));
    return 0;
}
