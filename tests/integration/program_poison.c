/*
 * The user's program of test_poison.c. Each run of an activity appends a line "NAME KEY" to $POISON_EFFECTS.
 */
#include "thole/program.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The input is the name of the activity; its failure is caught. */
static thole_status caught(thole_ctx *ctx, thole_slice input, thole_poison poison, thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options, .poison = poison};
    thole_slice output = {0};
    thole_task const task = thole_call_with(ctx, input, THOLE_STR("x"), &options);
    thole_status const status = thole_await(ctx, task, &output);
    thole_failure const failure = thole_task_failure(ctx, task);
    if (status == THOLE_CANCELLED)
        return status;
    *ret_output = status == THOLE_OK ? thole_format(ctx, "%.*s in try %u", THOLE_FMT(output), failure.tries)
                                     : thole_format(ctx, "caught %.*s", THOLE_FMT(failure.type));
    return THOLE_OK;
}

static thole_status waits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return caught(ctx, input, THOLE_POISON_QUARANTINE, ret_output);
}

static thole_status fails(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return caught(ctx, input, THOLE_POISON_FAIL, ret_output);
}

static void effect(thole_activity *act)
{
    char line[1024];
    const char *path = getenv("POISON_EFFECTS");
    int const fd = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    int const len = snprintf(line, sizeof line, "%.*s %.*s\n", THOLE_FMT(thole_activity_name(act)),
                             THOLE_FMT(thole_activity_key(act)));
    if (fd < 0)
        return;
    ssize_t const n = write(fd, line, (size_t)len); /* one write: lines of several processes do not mix */
    (void)n;
    close(fd);
}

static thole_status kills(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    effect(act);
    (void)raise(SIGKILL);
    return THOLE_OK;
}

/* In its second life it does what it should. */
static thole_status mends(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    effect(act);
    if (thole_activity_try(act) == 1)
        (void)raise(SIGKILL);
    *ret_output = THOLE_STR("mended");
    return THOLE_OK;
}

static thole_status longer(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    effect(act);
    thole_status const status = thole_activity_wait(act, 1500);
    *ret_output = THOLE_STR("done");
    return status;
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    effect(act);
    *ret_output = input;
    return THOLE_OK;
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {{"waits", waits, 0}, {"fails", fails, 0}};
    static const thole_activity_entry activities[] = {
        {"kills", kills, NULL}, {"mends", mends, NULL}, {"longer", longer, NULL}, {"echo", echo, NULL}};
    thole_program const program = {.size = sizeof program,
                                   .name = "poison",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = sizeof orchestrations / sizeof orchestrations[0],
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    return thole_main(argc, argv, &program);
}
