/*
 * The user's program of test_processes.c: activities in processes of their own. Each process that is to be
 * gone in the end adds a line "PID" to $PROCESS_PIDS, each run a line "INSTANCE try N" to $PROCESS_RUNS.
 */
#include "thole/program.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 200, FAMILY = 5 };

/* ---- orchestrations: the input names the activity ---- */

static thole_status told(thole_ctx *ctx, thole_task task, thole_status status, thole_slice *ret_output)
{
    thole_failure const failure = thole_task_failure(ctx, task);
    if (status != THOLE_OK && status != THOLE_CANCELLED)
        *ret_output = thole_format(ctx, "%s [%.*s] %.*s, tries %u", thole_status_name(status),
                                   THOLE_FMT(failure.type), THOLE_FMT(failure.message), failure.tries);
    return status == THOLE_CANCELLED ? status : THOLE_OK;
}

static thole_status call(thole_ctx *ctx, thole_slice name, const thole_call_options *options,
                         thole_slice *ret_output)
{
    thole_task const task = thole_call_with(ctx, name, THOLE_STR(""), options);
    return told(ctx, task, thole_await(ctx, task, ret_output), ret_output);
}

static thole_status once(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return call(ctx, input, NULL, ret_output);
}

static thole_status thrice(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options,
                                        .retry = {.tries_max = 3, .first_delay_ms = 10}};
    return call(ctx, input, &options, ret_output);
}

static thole_status never_a_crash(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    static const thole_slice types[] = {{(const uint8_t *)"crash", 5}};
    thole_call_options const options = {
        .size = sizeof options,
        .retry = {.tries_max = 3, .first_delay_ms = 10, .final_types = types, .final_types_len = 1}};
    return call(ctx, input, &options, ret_output);
}

static thole_status brief(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options, .try_timeout_ms = 1000};
    return call(ctx, input, &options, ret_output);
}

/* How many of so many succeeded. */
static thole_status many(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[MANY];
    unsigned good = 0;
    for (size_t i = 0; i < MANY; i++)
        tasks[i] = thole_call(ctx, input, THOLE_STR(""));
    for (size_t i = 0; i < MANY; i++)
        good += thole_await(ctx, tasks[i], NULL) == THOLE_OK;
    *ret_output = thole_format(ctx, "%u", good);
    return THOLE_OK;
}

/* ---- activities ---- */

static void add_line(const char *file, const char *text)
{
    const char *path = getenv(file);
    int const fd = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    ssize_t const n = write(fd, text, strlen(text)); /* one write: lines do not mix */
    (void)n;
    (void)close(fd);
}

static void note_pid(void)
{
    char line[32];
    (void)snprintf(line, sizeof line, "%d\n", (int)getpid());
    add_line("PROCESS_PIDS", line);
}

static void note_run(thole_activity *act)
{
    char line[300];
    (void)snprintf(line, sizeof line, "%.*s try %u\n", THOLE_FMT(thole_activity_instance(act)),
                   thole_activity_try(act));
    add_line("PROCESS_RUNS", line);
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = thole_activity_format(act, "%s", getenv("THOLE_POSTGRES") == NULL ? "safe" : "secret");
    return THOLE_OK;
}

/* A line for each process that has run one; it lives on, idle. */
static thole_status quick(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    static bool noted;
    (void)act, (void)input, (void)ret_output;
    if (!noted)
        note_pid();
    noted = true;
    return THOLE_OK;
}

/* Crashes but for the third time, each time a page further. */
static thole_status segv(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    note_run(act);
    if (thole_activity_try(act) < 3) {
        (void)thole_activity_heartbeat(act, thole_activity_format(act, "page %u", thole_activity_try(act)));
        (void)prctl(PR_SET_DUMPABLE, 0); /* no core */
        (void)signal(SIGSEGV, SIG_DFL);  /* no sanitizer's report */
        (void)raise(SIGSEGV);
    }
    *ret_output = thole_activity_format(act, "third time after %.*s", THOLE_FMT(thole_activity_details(act)));
    return THOLE_OK;
}

static thole_status leaves(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    note_run(act);
    exit(0);
}

static thole_status hold(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    note_run(act);
    note_pid();
    thole_status const status = thole_activity_wait(act, 60000);
    *ret_output = THOLE_STR("held");
    if (status == THOLE_CANCELLED)
        fprintf(stderr, "heard of it: %s, %.*s\n", thole_cancel_kind_name(thole_activity_cancel_kind(act)),
                THOLE_FMT(thole_activity_cancel_reason(act)));
    return status;
}

static void spin(void)
{
    (void)signal(SIGTERM, SIG_IGN);
    note_pid();
    for (;;)
        ;
}

/* Ignores its token and SIGTERM, as do its children, wherever they hide. */
static thole_status stubborn(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    (void)signal(SIGTERM, SIG_IGN);
    for (int i = 0; i < FAMILY - 2; i++)
        if (fork() == 0)
            spin();
    pid_t const first = fork();
    if (first == 0) { /* a daemon's way to lose its parents */
        (void)setsid();
        if (fork() == 0)
            spin();
        _exit(0);
    }
    (void)waitpid(first, NULL, 0);
    note_run(act);
    spin();
    return THOLE_OK;
}

/* More than any pipe holds, and the last line without an end. */
static thole_status noisy(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    for (int i = 0; i < 4000; i++)
        printf("line %d of a handler that talks and talks and talks\n", i);
    printf("its last words");
    *ret_output = thole_activity_format(act, "said");
    return THOLE_OK;
}

static thole_status endless(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    for (;;)
        ;
    return THOLE_OK;
}

static thole_status calm(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input;
    *ret_output = THOLE_STR("calm");
    return THOLE_OK;
}

#define PROCESS .size = sizeof(thole_activity_options), .isolation = THOLE_ISOLATION_PROCESS
static const thole_activity_options plain = {PROCESS};
static const thole_activity_options gentle = {PROCESS, .terminate = true};
static const thole_activity_options fast = {PROCESS, .wall_max_ms = 200};
static const thole_orchestration_entry orchestrations[] = {{.name = "once", .run = once},
                                                           {.name = "thrice", .run = thrice},
                                                           {.name = "never_a_crash", .run = never_a_crash},
                                                           {.name = "brief", .run = brief},
                                                           {.name = "many", .run = many}};
static const thole_activity_entry activities[] = {{.name = "echo", .run = echo, .options = &plain},
                                                  {.name = "quick", .run = quick, .options = &plain},
                                                  {.name = "segv", .run = segv, .options = &plain},
                                                  {.name = "leaves", .run = leaves, .options = &plain},
                                                  {.name = "hold", .run = hold, .options = &plain},
                                                  {.name = "stubborn", .run = stubborn, .options = &gentle},
                                                  {.name = "noisy", .run = noisy, .options = &plain},
                                                  {.name = "endless", .run = endless, .options = &fast},
                                                  {.name = "calm", .run = calm}};

int main(int argc, char **argv)
{
    thole_program const program = {.size = sizeof program,
                                   .name = "processes",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = sizeof orchestrations / sizeof orchestrations[0],
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    return thole_main(argc, argv, &program);
}
