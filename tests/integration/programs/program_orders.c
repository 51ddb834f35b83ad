/*
 * The user's program of the integration tests. What its activities did is appended to $ORDERS_EFFECTS, one
 * line for each run: "KEY NAME", to $ORDERS_RUNS "KEY NAME PID MONOTONIC_MS"; what their tokens saw to
 * $ORDERS_TOKENS: "KEY MONOTONIC_US REASON". $ORDERS_LACKS names one orchestration that this process does not
 * know.
 */
#include "remote_worker.h"
#include "thole/program.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- orchestrations ----------------------------------------------------------------------------------------
 */

static thole_status order(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice reserved, charged;
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("reserve"), input), &reserved));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("charge"), reserved), &charged));
    return thole_await(ctx, thole_call(ctx, THOLE_STR("ship"), charged), ret_output);
}

static thole_status one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), input), ret_output);
}

/* The input is how long the activity takes, in ms; the timer is 100 ms. */
static thole_status race(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint64_t const limit_ms = input.len == 1 ? 60000 : 100; /* a short activity wins, a long one loses */
    thole_task const tasks[] = {thole_call(ctx, THOLE_STR("slow"), input), thole_timer(ctx, limit_ms)};
    size_t winner;
    THOLE_TRY(thole_await_any(ctx, tasks, 2, &winner));
    *ret_output = winner == 0 ? THOLE_STR("activity") : THOLE_STR("timer");
    return THOLE_OK;
}

static thole_status hold(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("slow"), input), ret_output);
}

/* Cancelled, it makes good what it did before it ends. */
static thole_status saga(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("reserve"), input), ret_output));
    thole_status const status =
        thole_await(ctx, thole_call(ctx, THOLE_STR("slow"), THOLE_STR("60000")), NULL);
    if (status == THOLE_CANCELLED)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("release"), input), NULL));
    return status;
}

static thole_status fan(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    enum { FAN = 50 };
    thole_task tasks[FAN];
    for (size_t i = 0; i < FAN; i++)
        tasks[i] = thole_call(ctx, THOLE_STR("echo"), input);
    THOLE_TRY(thole_await_all(ctx, tasks, FAN, NULL));
    *ret_output = THOLE_STR("50");
    return THOLE_OK;
}

static thole_status nap(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    (void)ret_output;
    return thole_await(ctx, thole_timer(ctx, 300), NULL);
}

static thole_status long_nap(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    (void)ret_output;
    return thole_await(ctx, thole_timer(ctx, 6000), NULL);
}

static thole_status fail(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("decline"), input), ret_output);
}

/* Once more, after as long as a long nap. */
static thole_status insist(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options,
                                        .retry = {.tries_max = 2, .first_delay_ms = 6000}};
    return thole_await(ctx, thole_call_with(ctx, THOLE_STR("decline"), input, &options), ret_output);
}

static thole_status lost(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("nobody-knows-me"), input), ret_output);
}

/* --- activities
 * ----------------------------------------------------------------------------------------------- */

static void append_line(const char *variable, const char *line)
{
    const char *path = getenv(variable);
    int const fd = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    ssize_t const n = write(fd, line, strlen(line)); /* one write: lines of several processes do not mix */
    (void)n;
    close(fd);
}

static void effect(thole_activity *act)
{
    char line[1024];
    struct timespec now;
    snprintf(line, sizeof line, "%.*s %.*s\n", THOLE_FMT(thole_activity_key(act)),
             THOLE_FMT(thole_activity_name(act)));
    append_line("ORDERS_EFFECTS", line);
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(line, sizeof line, "%.*s %.*s %d %lld\n", THOLE_FMT(thole_activity_key(act)),
             THOLE_FMT(thole_activity_name(act)), (int)getpid(),
             (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    append_line("ORDERS_RUNS", line);
}

/* Declared quick: while servers and workers die its worker is inside of a batch. */
static thole_status step_at_once(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    effect(act);
    *ret_output =
        thole_activity_format(act, "%.*s,%.*s", THOLE_FMT(input), THOLE_FMT(thole_activity_name(act)));
    return THOLE_OK;
}

static thole_status step(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    const char *work = getenv("ORDERS_WORK_MS");
    if (work != NULL)
        THOLE_TRY(thole_activity_wait(act, strtoul(work, NULL, 10)));
    return step_at_once(act, input, ret_output);
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    effect(act);
    *ret_output = input;
    return THOLE_OK;
}

static thole_status slow(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char digits[16] = {0}, line[1024];
    memcpy(digits, input.ptr, input.len < sizeof digits - 1 ? input.len : sizeof digits - 1);
    effect(act);
    thole_status const status = thole_activity_wait(act, strtoul(digits, NULL, 10));
    if (status == THOLE_CANCELLED) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        snprintf(line, sizeof line, "%.*s %lld %.*s\n", THOLE_FMT(thole_activity_key(act)),
                 (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000,
                 THOLE_FMT(thole_activity_cancel_reason(act)));
        append_line("ORDERS_TOKENS", line);
    }
    *ret_output = THOLE_STR("done");
    return status;
}

static thole_status decline(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    effect(act);
    return thole_activity_fail(act, "card %.*s declined", THOLE_FMT(input));
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry all[] = {{"order", order},       {"one", one},      {"race", race},
                                                    {"hold", hold},         {"saga", saga},    {"fan", fan},
                                                    {"nap", nap},           {"fail", fail},    {"lost", lost},
                                                    {"long_nap", long_nap}, {"insist", insist}};
    static const thole_activity_options quick = {.size = sizeof quick, .quick = true};
    static const thole_activity_entry activities[] = {{"reserve", step_at_once, &quick},
                                                      {"charge", step},
                                                      {"ship", step},
                                                      {"release", step},
                                                      {"echo", echo},
                                                      {"slow", slow},
                                                      {"decline", decline}};
    thole_orchestration_entry known[sizeof all / sizeof all[0]];
    const char *lacks = getenv("ORDERS_LACKS");
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (lacks == NULL || strcmp(lacks, all[i].name) != 0)
            known[n++] = all[i];
    thole_program const program = {.size = sizeof program,
                                   .name = "orders",
                                   .orchestrations = known,
                                   .orchestrations_len = n,
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    return remote_or_main(argc, argv, &program);
}
