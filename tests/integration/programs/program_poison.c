/*
 * The user's program of test_poison.c and test_worker_crash.c. Each run of an activity appends a line "NAME
 * KEY" to $POISON_EFFECTS.
 */
#include "remote_worker.h"
#include "thole/program.h"
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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

/* ---- other ways to die ---- */

/* A field of a structure that is not there. */
static thole_status writes(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    int volatile *volatile const nowhere = (int *)16; /* volatile: or the compiler knows better */
    (void)act, (void)input, (void)ret_output;
    *nowhere = 1;
    return THOLE_OK;
}

static unsigned deeper(unsigned depth)
{
    char volatile room[1024];
    room[0] = (char)depth;
    return depth == UINT_MAX ? 0 : deeper(depth + 1) + (unsigned)room[0];
}

static thole_status overflows(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return deeper(0) == 0 ? THOLE_OK : THOLE_APP;
}

static thole_status aborts(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    abort();
}

static thole_status exits(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    exit(3);
}

static thole_status vanishes(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    _exit(4);
}

/* Without the crash reporter, which is this process's only child. */
static thole_status alone(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char path[64];
    int pid = 0;
    (void)act, (void)input, (void)ret_output;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *const file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%d", &pid) != 1 || kill(pid, SIGKILL) != 0)
        return thole_activity_fail(act, "there is no crash reporter");
    (void)fclose(file);
    (void)waitpid(pid, NULL, 0);
    abort();
}

static void *abort_here(void *arg)
{
    (void)arg;
    abort();
}

static thole_status elsewhere(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    pthread_t thread;
    (void)input, (void)ret_output;
    if (pthread_create(&thread, NULL, abort_here, NULL) == 0)
        (void)pthread_join(thread, NULL);
    return thole_activity_fail(act, "it did not die");
}

/* A forked process dies, not the worker. */
static thole_status forks(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    int status = 0;
    pid_t const pid = fork();
    if (pid == 0)
        abort();
    (void)waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        return thole_activity_fail(act, "the child ended with status %d", status);
    *ret_output = input;
    return THOLE_OK;
}

static void our_handler(int number)
{
    (void)number;
    _exit(5);
}

/* As the first process of a container, which takes all others with it; where this is allowed. */
static void become_first(void)
{
    int status = 0;
    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
        return;
    pid_t const pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        return;
    }
    (void)waitpid(pid, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
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

/* "QUEUE ACTIVITY": what came of it, in words. */
static thole_status tells(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    const uint8_t *const space = memchr(input.ptr, ' ', input.len);
    size_t const len = space == NULL ? 0 : (size_t)(space - input.ptr);
    thole_call_options const options = {
        .size = sizeof options, .queue = {input.ptr, len}, .poison = THOLE_POISON_FAIL};
    thole_slice output = {0};
    thole_task const task = thole_call_with(ctx, (thole_slice){input.ptr + len + 1, input.len - len - 1},
                                            THOLE_STR("survived"), &options);
    thole_status const status = thole_await(ctx, task, &output);
    thole_failure const failure = thole_task_failure(ctx, task);
    if (status == THOLE_CANCELLED)
        return status;
    *ret_output = status == THOLE_OK
                      ? output
                      : thole_format(ctx, "%.*s: %.*s", THOLE_FMT(failure.type), THOLE_FMT(failure.message));
    return THOLE_OK;
}

int main(int argc, char **argv)
{
    if (getenv("POISON_OWN_HANDLER") != NULL)
        (void)signal(SIGSEGV, our_handler);
    if (getenv("POISON_AS_FIRST") != NULL)
        become_first();
    static const thole_orchestration_entry orchestrations[] = {
        {"waits", waits, 0}, {"fails", fails, 0}, {"tells", tells, 0}};
    static const thole_activity_entry activities[] = {
        {"kills", kills, NULL},         {"mends", mends, NULL},   {"longer", longer, NULL},
        {"echo", echo, NULL},           {"writes", writes, NULL}, {"overflows", overflows, NULL},
        {"aborts", aborts, NULL},       {"exits", exits, NULL},   {"vanishes", vanishes, NULL},
        {"elsewhere", elsewhere, NULL}, {"forks", forks, NULL},   {"alone", alone, NULL}};
    thole_program const program = {.size = sizeof program,
                                   .name = "poison",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = sizeof orchestrations / sizeof orchestrations[0],
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    return remote_or_main(argc, argv, &program);
}
