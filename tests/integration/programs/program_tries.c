/*
 * The user's program of test_deadlines.c. What its activities did is appended to $TRIES_EFFECTS, one line for
 * each run: "KEY try N attempt M: DETAILS".
 */
#include "thole/program.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- orchestrations: the input is the name of the activity ------------------------------------------------
 */

static thole_status call(thole_ctx *ctx, thole_slice name, uint64_t timeout_ms, uint32_t tries,
                         thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options,
                                        .try_timeout_ms = timeout_ms,
                                        .retry = {.tries_max = tries, .first_delay_ms = 50, .factor = 2}};
    thole_status const status =
        thole_await(ctx, thole_call_with(ctx, name, THOLE_STR(""), &options), ret_output);
    if (status == THOLE_TIMEOUT)
        *ret_output = THOLE_STR("timed out");
    return status == THOLE_TIMEOUT ? THOLE_OK : status;
}

static thole_status brief(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return call(ctx, input, 500, 3, ret_output);
}

static thole_status slow(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return call(ctx, input, 2000, 3, ret_output);
}

static thole_status once(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return call(ctx, input, 3000, 1, ret_output);
}

static thole_status unlimited(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return call(ctx, input, 0, 3, ret_output);
}

/* --- activities -------------------------------------------------------------------------------------------
 */

static void effect(thole_activity *act)
{
    char line[1024];
    const char *path = getenv("TRIES_EFFECTS");
    int const fd = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    int const len = snprintf(line, sizeof line, "%.*s try %u attempt %u: %.*s\n",
                             THOLE_FMT(thole_activity_key(act)), thole_activity_try(act),
                             thole_activity_attempt(act), THOLE_FMT(thole_activity_details(act)));
    if (fd < 0)
        return;
    ssize_t const n = write(fd, line, (size_t)len); /* one write: lines of several processes do not mix */
    (void)n;
    close(fd);
}

static thole_status said(thole_activity *act, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "try %u, %.*s", thole_activity_try(act),
                                        THOLE_FMT(thole_activity_details(act)));
    return THOLE_OK;
}

/* Takes too long, but for the third time. */
static thole_status third(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    effect(act);
    if (thole_activity_try(act) == 3)
        return said(act, ret_output);
    char text[16];
    int const len = snprintf(text, sizeof text, "%u", thole_activity_try(act));
    (void)thole_activity_heartbeat(act, (thole_slice){(const uint8_t *)text, (size_t)len});
    return thole_activity_wait(act, 60000);
}

/* For ever, or until it is told to stop. */
static thole_status hang(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    effect(act);
    return thole_activity_wait(act, 3600000);
}

/* The first claim never ends; the next one goes on from where it was. */
static thole_status pages(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    effect(act);
    if (thole_activity_attempt(act) > 1)
        return said(act, ret_output);
    (void)thole_activity_heartbeat(act, THOLE_STR("page 17"));
    return thole_activity_wait(act, 3600000);
}

static thole_status later(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    thole_slice token;
    (void)input, (void)ret_output;
    effect(act);
    return thole_activity_later(act, &token);
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    effect(act);
    return said(act, ret_output);
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {
        {"brief", brief}, {"slow", slow}, {"once", once}, {"unlimited", unlimited}};
    static const thole_activity_entry activities[] = {
        {"third", third}, {"hang", hang}, {"pages", pages}, {"later", later}, {"echo", echo}};
    thole_program const program = {.size = sizeof program,
                                   .name = "tries",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = sizeof orchestrations / sizeof orchestrations[0],
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    return thole_main(argc, argv, &program);
}
