/*
 * The orchestrations of the tests with actors.h: each calls activities on the queue that its input names. As
 * a worker of its own, for tests that freeze and kill processes, it runs the same activities; they end when a
 * file $SEEDS_DIR/INSTANCE.ATTEMPT is there, and append what they do to $SEEDS_DIR/runs: "INSTANCE attempt N
 * begins", "INSTANCE attempt N ends, token KIND".
 */
#include "thole/program.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- orchestrations ---- */

static thole_task call(thole_ctx *ctx, thole_slice activity, thole_slice queue)
{
    thole_call_options const options = {.size = sizeof options, .queue = queue};
    return thole_call_with(ctx, activity, THOLE_STR(""), &options);
}

static thole_status polite(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, call(ctx, THOLE_STR("polite"), input), ret_output);
}

static thole_status rude(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, call(ctx, THOLE_STR("rude"), input), ret_output);
}

static thole_status echo(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, call(ctx, THOLE_STR("echo"), input), ret_output);
}

/* ---- activities of a worker process ---- */

static void note(const thole_activity *act, const char *what)
{
    char path[256], line[512];
    const char *dir = getenv("SEEDS_DIR");
    snprintf(path, sizeof path, "%s/runs", dir == NULL ? "." : dir);
    int const len = snprintf(line, sizeof line, "%.*s attempt %u %s\n",
                             THOLE_FMT(thole_activity_instance(act)), thole_activity_attempt(act), what);
    int const fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    ssize_t const n = write(fd, line, (size_t)len); /* one write: lines of several processes do not mix */
    (void)n;
    close(fd);
}

static bool is_released(const thole_activity *act)
{
    char path[256];
    const char *dir = getenv("SEEDS_DIR");
    snprintf(path, sizeof path, "%s/%.*s.%u", dir == NULL ? "." : dir,
             THOLE_FMT(thole_activity_instance(act)), thole_activity_attempt(act));
    return access(path, F_OK) == 0;
}

static thole_status run(thole_activity *act, bool minds, thole_slice *ret_output)
{
    char what[64];
    note(act, "begins");
    while (!is_released(act) && !(minds && thole_activity_cancelled(act)))
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    snprintf(what, sizeof what, "ends, token %s",
             thole_activity_cancelled(act) ? thole_cancel_kind_name(thole_activity_cancel_kind(act))
                                           : "none");
    note(act, what);
    *ret_output = thole_activity_format(act, "attempt %u", thole_activity_attempt(act));
    return minds && thole_activity_cancelled(act) ? THOLE_CANCELLED : THOLE_OK;
}

static thole_status run_polite(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    return run(act, true, ret_output);
}

static thole_status run_rude(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    return run(act, false, ret_output);
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {
        {"polite", polite, 0}, {"rude", rude, 0}, {"echo", echo, 0}};
    static const thole_activity_entry activities[] = {{"polite", run_polite}, {"rude", run_rude}};
    thole_program const program = {.size = sizeof program,
                                   .name = "seeds",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = sizeof orchestrations / sizeof orchestrations[0],
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    return thole_main(argc, argv, &program);
}
