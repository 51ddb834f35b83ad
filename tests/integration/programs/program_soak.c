/* The program that test_soak runs, for hours if need be: threads and processes that act as their input
 * says. */
#include "thole/program.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool is(thole_slice text, const char *word)
{
    return thole_slice_equal(text, thole_slice_from(word));
}

/* ---- orchestrations ---- */

/* A failure is an answer, too. */
static thole_status on_thread(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    if (thole_await(ctx, thole_call(ctx, THOLE_STR("thread"), input), ret_output) != THOLE_OK)
        *ret_output = THOLE_STR("failed");
    return THOLE_OK;
}

static thole_status in_process(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    if (thole_await(ctx, thole_call(ctx, THOLE_STR("process"), input), ret_output) != THOLE_OK)
        *ret_output = THOLE_STR("failed");
    return THOLE_OK;
}

static thole_status races(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t winner;
    thole_task const tasks[] = {thole_call(ctx, THOLE_STR("thread"), input), thole_timer(ctx, 50)};
    THOLE_TRY(thole_await_any(ctx, tasks, 2, &winner));
    *ret_output = THOLE_STR("raced");
    return THOLE_OK;
}

static thole_status again(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    if (input.len < 4)
        return thole_continue_as_new(ctx, thole_format(ctx, "%.*sx", THOLE_FMT(input)), 0);
    *ret_output = input;
    return THOLE_OK;
}

static thole_status parent(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_child(ctx, THOLE_STR("on_thread"), input, NULL), ret_output);
}

static thole_status says(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)arg;
    *ret_output = input;
    if (is(input, "slow"))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return is(input, "fail") ? THOLE_INVALID : THOLE_OK;
}

static thole_status asked(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    thole_on_query(ctx, THOLE_STR("says"), says, NULL);
    return thole_await(ctx, thole_event(ctx, THOLE_STR("end")), ret_output);
}

/* ---- activities ---- */

static thole_status works(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    *ret_output = input;
    if (is(input, "crash"))
        abort();
    if (is(input, "exit"))
        _exit(3);
    if (is(input, "fail"))
        return thole_activity_fail(act, "as told");
    if (is(input, "rude")) /* the token fires, the grace passes, the slot is given up */
        nanosleep(&(struct timespec){.tv_nsec = 900000000}, NULL);
    while (is(input, "hold"))
        THOLE_TRY(thole_activity_wait(act, 60000));
    return THOLE_OK;
}

int main(int argc, char **argv)
{
    static const thole_activity_options apart = {.size = sizeof apart, .isolation = THOLE_ISOLATION_PROCESS};
    static const thole_orchestration_entry orchestrations[] = {
        {"on_thread", on_thread, 0}, {"in_process", in_process, 0}, {"races", races, 0},
        {"again", again, 0},         {"parent", parent, 0},         {"asked", asked, 0}};
    static const thole_activity_entry activities[] = {{"thread", works, NULL}, {"process", works, &apart}};
    thole_program const program = {.size = sizeof program,
                                   .name = "soak",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = sizeof orchestrations / sizeof orchestrations[0],
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    return thole_main(argc, argv, &program);
}
