/* The program of the tests of fairness: a tenant, and neighbours that want more than their share. */
#include "dropped.h"
#include "thole/program.h"
#include <unistd.h>

/* One activity. */
static thole_status tenant(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), input), ret_output);
}

/* For ever, without awaiting anything. */
static thole_status spins(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    return thole_continue_as_new(ctx, input, 0);
}

/* Two of itself, which do the same. */
static thole_status forks(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const children[] = {thole_child(ctx, THOLE_STR("forks"), input, NULL),
                                   thole_child(ctx, THOLE_STR("forks"), input, NULL)};
    return thole_await_all(ctx, children, 2, ret_output);
}

/* Ends at once. */
static thole_status ends(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx;
    *ret_output = input;
    return THOLE_OK;
}

/* Takes events for ever. */
static thole_status takes(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    while (!thole_should_continue_as_new(ctx))
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), ret_output));
    return thole_continue_as_new(ctx, input, 0);
}

/* So many activities at once as the input says, each of which takes a while. */
static thole_status schedules(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t n = 0;
    for (size_t i = 0; i < input.len; i++)
        n = n * 10 + (size_t)(input.ptr[i] - '0');
    thole_task *const tasks = thole_alloc(ctx, n * sizeof *tasks);
    if (tasks == NULL)
        return THOLE_LIMIT;
    for (size_t i = 0; i < n; i++)
        tasks[i] = thole_call(ctx, THOLE_STR("naps"), input);
    return thole_await_all(ctx, tasks, n, ret_output);
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    *ret_output = input;
    return THOLE_OK;
}

static thole_status naps(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    (void)usleep(20 * 1000);
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {
    {.name = "tenant", .run = tenant}, {.name = "spins", .run = spins},
    {.name = "forks", .run = forks},   {.name = "ends", .run = ends},
    {.name = "takes", .run = takes},   {.name = "schedules", .run = schedules}};
static const thole_activity_entry activities[] = {{.name = "echo", .run = echo},
                                                  {.name = "naps", .run = naps}};

int main(int argc, char **argv)
{
    static const thole_program program = {.size = sizeof program,
                                          .name = "fairness",
                                          .orchestrations = orchestrations,
                                          .orchestrations_len =
                                              sizeof orchestrations / sizeof orchestrations[0],
                                          .activities = activities,
                                          .activities_len = sizeof activities / sizeof activities[0]};
    return thole_main(argc, argv, &program);
}
