/*
 * One order after the other, each with one activity: the time from thole_client_run() to its return.
 *
 *   thole dev -- latency [N [threads]]   N orders, 2000 by default; a child of this process runs an engine
 *                                        and a worker. The activity is declared quick; `threads`: it is not.
 *
 * Prints p50, p90, p99 and the largest, in milliseconds.
 */
#include "thole/client.h"
#include "thole/program.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ORDERS = 2000, WARM_UP = 200, ORDERS_MAX = 1000000, WAIT_MS = 30000, SET_UP_MS = 30000 };

/* ---- the program under test ---- */

static thole_status order(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), input), ret_output);
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    *ret_output = input;
    return THOLE_OK;
}

static int serve(char *name, bool threads)
{
    static const thole_orchestration_entry orchestrations[] = {{.name = "order", .run = order}};
    static const thole_activity_options quick = {.size = sizeof quick, .quick = true};
    thole_activity_entry const activities[] = {
        {.name = "echo", .run = echo, .options = threads ? NULL : &quick}};
    thole_program const program = {.size = sizeof program,
                                   .name = "latency",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = 1,
                                   .activities = activities,
                                   .activities_len = 1};
    char run[] = "run", level[] = "--log-level=warn";
    char *argv[] = {name, run, level, NULL};
    return thole_main(3, argv, &program);
}

/* ---- measuring ---- */

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* The namespace exists once the engine has set it up. */
static thole_status open_client(thole_client **ret, thole_error *reterr)
{
    struct timespec const pause = {.tv_nsec = 20 * 1000000L};
    uint64_t const end = now_us() + SET_UP_MS * UINT64_C(1000);
    thole_status status;
    while ((status = thole_client_open(NULL, ret, reterr)) != THOLE_OK && now_us() < end)
        nanosleep(&pause, NULL);
    return status;
}

static thole_status run_one(thole_client *client, size_t number, uint64_t *ret_us, thole_error *reterr)
{
    char id[64];
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    (void)snprintf(id, sizeof id, "latency-%ld-%zu", (long)getpid(), number);
    uint64_t const begin = now_us();
    THOLE_TRY(thole_client_run(client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("x"), WAIT_MS,
                               &outcome, reterr));
    *ret_us = now_us() - begin;
    bool const good = outcome.status == THOLE_INSTANCE_COMPLETED && outcome.output.len == 1;
    thole_outcome_release(&outcome);
    return good ? THOLE_OK : thole_fail(reterr, THOLE_APP, "order %s did not complete", id);
}

static int by_value(const void *a, const void *b)
{
    uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void report(uint64_t *us, size_t n)
{
    qsort(us, n, sizeof *us, by_value);
    printf("orders %zu  p50 %.3f ms  p90 %.3f ms  p99 %.3f ms  max %.3f ms\n", n, (double)us[n / 2] / 1000,
           (double)us[n * 9 / 10] / 1000, (double)us[n * 99 / 100] / 1000, (double)us[n - 1] / 1000);
}

static thole_status measure(size_t n, thole_error *reterr)
{
    thole_client *client = NULL;
    uint64_t *us = calloc(n, sizeof *us), ignored;
    thole_status status = us == NULL ? THOLE_NOMEM : open_client(&client, reterr);
    for (size_t i = 0; status == THOLE_OK && i < WARM_UP + n; i++)
        status = run_one(client, i, i < WARM_UP ? &ignored : &us[i - WARM_UP], reterr);
    if (status == THOLE_OK)
        report(us, n);
    thole_client_close(client);
    free(us);
    return status;
}

int main(int argc, char **argv)
{
    thole_error error = {.status = THOLE_OK};
    unsigned long const n = argc > 1 ? strtoul(argv[1], NULL, 10) : ORDERS;
    bool const threads = argc > 2 && strcmp(argv[2], "threads") == 0;
    if (n == 0 || n > ORDERS_MAX || argc > 2 + threads)
        return fprintf(stderr, "usage: %s [ORDERS [threads]]\n", argv[0]), 2;
    pid_t const server = fork();
    if (server == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        return serve(argv[0], threads);
    }
    thole_status const status = server < 0 ? THOLE_UNAVAILABLE : measure(n, &error);
    if (status != THOLE_OK)
        fprintf(stderr, "%s: %s\n", thole_status_name(status), error.text);
    if (server > 0) {
        kill(server, SIGTERM);
        waitpid(server, NULL, 0);
    }
    return status == THOLE_OK ? 0 : 1;
}
