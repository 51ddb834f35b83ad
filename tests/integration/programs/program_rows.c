/*
 * The program of the test of damaged rows: instances that have a row of every kind, and load.
 *   victim   has an activity on the queue that its input names, and a timer of an hour; after the event "end"
 *            it waits for the activity
 *   again    continues as new once; the next execution waits for "end"
 *   breaks   fails at once
 *   load     runs two activities and a timer
 * The activity `hold` ends when the file $ROWS_GO exists, or when its token fires. Each run of it appends a
 * line to $ROWS_RUNS.
 */
#include "thole/program.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HOUR_MS = 3600 * 1000, LOOK_MS = 50 };

static thole_status victim(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {
        .size = sizeof options, .queue = input, .try_timeout_ms = HOUR_MS, .total_timeout_ms = 2 * HOUR_MS};
    thole_set_status(ctx, THOLE_STR("ready"));
    thole_task const held = thole_call_with(ctx, THOLE_STR("hold"), THOLE_STR("x"), &options);
    thole_task const timer = thole_timer(ctx, HOUR_MS);
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("end")), NULL));
    THOLE_TRY(thole_await(ctx, held, ret_output));
    thole_cancel(ctx, timer, THOLE_STR("not needed"));
    return THOLE_OK;
}

static thole_status again(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    if (thole_execution_id(ctx) == 1)
        return thole_continue_as_new(ctx, THOLE_STR(""), 0);
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("end")), NULL));
    *ret_output = THOLE_STR("done");
    return THOLE_OK;
}

static thole_status breaks(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    (void)ret_output;
    return thole_throw(ctx, "as it must");
}

static thole_status load(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const tasks[] = {thole_call(ctx, THOLE_STR("quick"), input),
                                thole_call(ctx, THOLE_STR("quick"), input), thole_timer(ctx, 20)};
    THOLE_TRY(thole_await_all(ctx, tasks, 3, NULL));
    *ret_output = input;
    return THOLE_OK;
}

static void note(const char *variable, const thole_activity *act)
{
    char line[512];
    const char *const path = getenv(variable);
    int const fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int const n = snprintf(line, sizeof line, "%.*s\n", THOLE_FMT(thole_activity_instance(act)));
    if (fd >= 0 && n > 0)
        (void)!write(fd, line, (size_t)n);
    if (fd >= 0)
        (void)close(fd);
}

static thole_status hold(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    const char *const go = getenv("ROWS_GO");
    (void)input;
    note("ROWS_RUNS", act);
    while (go != NULL && access(go, F_OK) != 0)
        THOLE_TRY(thole_activity_wait(act, LOOK_MS));
    *ret_output = THOLE_STR("done");
    return THOLE_OK;
}

static thole_status quick(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    note("ROWS_RUNS", act);
    *ret_output = input;
    return THOLE_OK;
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {
        {"victim", victim}, {"again", again}, {"breaks", breaks}, {"load", load}};
    static const thole_activity_entry activities[] = {{"hold", hold}, {"quick", quick}};
    thole_program const program = {.size = sizeof program,
                                   .name = "rows",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = 4,
                                   .activities = activities,
                                   .activities_len = 2};
    return thole_main(argc, argv, &program);
}
