/*
 * The user's program of test_quick.c: activities that are declared quick, and some that are not what they
 * say. What they did is appended to $QUICK_DIR/runs, one line for each: "INSTANCE begins", "INSTANCE ends".
 */
#include "thole/program.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void path_of(const char *name, char ret[512])
{
    const char *const dir = getenv("QUICK_DIR");
    (void)snprintf(ret, 512, "%s/%s", dir == NULL ? "." : dir, name);
}

/* How many lines there are of it then, with this one. */
static unsigned note(const thole_activity *act, const char *what)
{
    char path[512], line[300], read[300];
    unsigned n = 0;
    path_of("runs", path);
    int const fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    int const len = snprintf(line, sizeof line, "%.*s %s\n", THOLE_FMT(thole_activity_instance(act)), what);
    ssize_t const written =
        write(fd, line, (size_t)len); /* one write: lines of several processes do not mix */
    (void)written;
    (void)close(fd);
    FILE *const file = fopen(path, "r");
    while (file != NULL && fgets(read, sizeof read, file) != NULL)
        n += strcmp(read, line) == 0;
    if (file != NULL)
        (void)fclose(file);
    return n;
}

/* On which thread it ran, and what it knows of itself. */
static thole_status tell(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char thread[32] = "";
    (void)pthread_getname_np(pthread_self(), thread, sizeof thread);
    *ret_output = thole_activity_format(
        act, "%s: attempt %u of try %u for %.*s@%u%s: %.*s", thread, thole_activity_attempt(act),
        thole_activity_try(act), THOLE_FMT(thole_activity_orchestration(act)), thole_activity_version(act),
        thole_activity_cancelled(act) ? ", cancelled" : "", THOLE_FMT(input));
    return THOLE_OK;
}

/* Waits for the file INSTANCE.go, which a quick activity must not do. */
static thole_status held(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char name[300], path[512];
    (void)snprintf(name, sizeof name, "%.*s.go", THOLE_FMT(thole_activity_instance(act)));
    path_of(name, path);
    (void)note(act, "begins");
    while (access(path, F_OK) != 0)
        (void)usleep(2000);
    (void)note(act, "ends");
    return tell(act, input, ret_output);
}

static thole_status crash(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    if (note(act, "begins") < 3)
        abort();
    return tell(act, input, ret_output);
}

static thole_status later(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    thole_slice token;
    (void)input, (void)ret_output;
    return thole_activity_later(act, &token);
}

/* The first try fails, with what a heartbeat has said. */
static thole_status second(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    if (thole_activity_try(act) > 1) {
        *ret_output = thole_activity_format(act, "after %.*s", THOLE_FMT(thole_activity_details(act)));
        return THOLE_OK;
    }
    (void)thole_activity_heartbeat(act, input);
    return thole_activity_fail(act, "not yet");
}

static thole_status one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options,
                                        .try_timeout_ms = 60000,
                                        .retry = {.tries_max = 2, .first_delay_ms = 10, .factor = 2}};
    return thole_await(ctx, thole_call_with(ctx, input, input, &options), ret_output);
}

int main(int argc, char **argv)
{
    static const thole_activity_options quick = {.size = sizeof quick, .quick = true};
    static const thole_orchestration_entry orchestrations[] = {{"one", one}};
    static const thole_activity_entry activities[] = {
        {"tell", tell, &quick}, {"plain", tell},          {"held", held, &quick},    {"crash", crash, &quick},
        {"waits", held},        {"later", later, &quick}, {"second", second, &quick}};
    thole_program const program = {.size = sizeof program,
                                   .name = "quick",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = 1,
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    return thole_main(argc, argv, &program);
}
