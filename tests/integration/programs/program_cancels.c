/*
 * The user's program of the tests of cancellation. Orchestrations take "QUEUE ACTIVITY N": they call it so
 * often, on that queue, and then do what they are named after, most of them when an event "go" comes.
 * Activities append what they see to $CANCELS_DIR/notes: "INSTANCE.EXECUTION.ID begins", "… fired KIND
 * (REASON)", "… returns". Those that wait for leave look for a file $CANCELS_DIR/INSTANCE.
 */
#include "remote_worker.h"
#include "thole/program.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CALLS_MAX = 3000, TRY_MS = 400, LIMIT_MS = 300 };

/* ---- orchestrations ---- */

struct calls {
    thole_task tasks[CALLS_MAX];
    size_t n;
};

static struct calls *call_with(thole_ctx *ctx, thole_slice input, const thole_call_options *given)
{
    char text[256], queue[64], activity[64];
    unsigned n = 0;
    struct calls *const calls = thole_alloc(ctx, sizeof *calls);
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(input));
    if (calls == NULL || sscanf(text, "%63s %63s %u", queue, activity, &n) != 3 || n > CALLS_MAX)
        return NULL;
    thole_call_options options = *given;
    options.queue = thole_slice_from(queue);
    while (calls->n < n)
        calls->tasks[calls->n++] =
            thole_call_with(ctx, thole_slice_from(activity), (thole_slice){0}, &options);
    return calls;
}

static struct calls *call(thole_ctx *ctx, thole_slice input)
{
    return call_with(ctx, input, &(thole_call_options){.size = sizeof(thole_call_options)});
}

static thole_status wait_for(thole_ctx *ctx, const char *event)
{
    return thole_await(ctx, thole_event(ctx, thole_slice_from(event)), NULL);
}

/* All results are wanted. */
static thole_status all(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    struct calls *const calls = call(ctx, input);
    if (calls == NULL)
        return THOLE_INVALID;
    THOLE_TRY(thole_await_all(ctx, calls->tasks, calls->n, NULL));
    *ret_output = THOLE_STR("all");
    return THOLE_OK;
}

/* Cancelled, it has something to do yet. */
static thole_status tidies(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_status const status = all(ctx, input, ret_output);
    if (status == THOLE_CANCELLED)
        THOLE_TRY(wait_for(ctx, "end"));
    return status;
}

static thole_status completes(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    if (call(ctx, input) == NULL)
        return THOLE_INVALID;
    *ret_output = THOLE_STR("completed");
    return wait_for(ctx, "go");
}

static thole_status fails(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    if (call(ctx, input) == NULL)
        return THOLE_INVALID;
    THOLE_TRY(wait_for(ctx, "go"));
    return thole_throw(ctx, "broken");
}

/* The second execution's activity has the number that the first one's had. */
static thole_status goes_on(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    struct calls *const calls = call(ctx, input);
    if (calls == NULL)
        return THOLE_INVALID;
    THOLE_TRY(wait_for(ctx, thole_execution_id(ctx) == 1 ? "go" : "end"));
    *ret_output = THOLE_STR("second");
    return thole_execution_id(ctx) == 1 ? thole_continue_as_new(ctx, THOLE_STR("default hold 1"), 0)
                                        : THOLE_OK;
}

static thole_status race(thole_ctx *ctx, thole_slice input, thole_task rival, thole_slice *ret_output)
{
    size_t winner;
    struct calls *const calls = call(ctx, input);
    if (calls == NULL || calls->n == CALLS_MAX)
        return THOLE_INVALID;
    calls->tasks[calls->n] = rival;
    THOLE_TRY(thole_await_any(ctx, calls->tasks, calls->n + 1, &winner));
    *ret_output = winner == calls->n ? THOLE_STR("it was too slow") : THOLE_STR("it won");
    return THOLE_OK;
}

/* The loser's instance goes on. */
static thole_status races(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(race(ctx, input, thole_event(ctx, THOLE_STR("go")), ret_output));
    return wait_for(ctx, "end");
}

static thole_status limits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return race(ctx, input, thole_timer(ctx, LIMIT_MS), ret_output);
}

static thole_status drops(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    struct calls *const calls = call(ctx, input);
    if (calls == NULL)
        return THOLE_INVALID;
    THOLE_TRY(wait_for(ctx, "go"));
    for (size_t i = 0; i < calls->n; i++)
        thole_cancel(ctx, calls->tasks[i], THOLE_STR("too dear"));
    *ret_output = THOLE_STR("without it");
    return wait_for(ctx, "end");
}

/* Tries that take too long. */
static thole_status tries(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {
        .size = sizeof options, .try_timeout_ms = TRY_MS, .retry = {.tries_max = 2, .first_delay_ms = 20}};
    struct calls *const calls = call_with(ctx, input, &options);
    if (calls == NULL)
        return THOLE_INVALID;
    thole_status const status = thole_await(ctx, calls->tasks[0], NULL);
    thole_failure const failure = thole_task_failure(ctx, calls->tasks[0]);
    *ret_output = thole_format(ctx, "%s %.*s after %u tries", thole_status_name(status),
                               THOLE_FMT(failure.type), failure.tries);
    return THOLE_OK;
}

/* All tries together. */
static thole_status total(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options, .total_timeout_ms = TRY_MS};
    struct calls *const calls = call_with(ctx, input, &options);
    if (calls == NULL)
        return THOLE_INVALID;
    thole_status const status = thole_await(ctx, calls->tasks[0], NULL);
    *ret_output = thole_slice_from(thole_status_name(status));
    return wait_for(ctx, "end");
}

/* The child is "INSTANCE-kid" and waits for all. */
static thole_status mother(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {
        .size = sizeof options, .instance = thole_format(ctx, "%.*s-kid", THOLE_FMT(thole_instance_id(ctx)))};
    return thole_await(ctx, thole_child(ctx, THOLE_STR("all"), input, &options), ret_output);
}

/* ---- activities ---- */

static void note(const thole_activity *act, const char *what)
{
    char path[256], line[1536];
    const char *const dir = getenv("CANCELS_DIR");
    (void)snprintf(path, sizeof path, "%s/notes", dir == NULL ? "." : dir);
    int const fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    int const len = snprintf(line, sizeof line, "%.*s %s\n", THOLE_FMT(thole_activity_key(act)), what);
    if (fd < 0)
        return;
    ssize_t const n = write(fd, line, (size_t)len); /* one write: lines of several processes do not mix */
    (void)n;
    close(fd);
}

static void note_token(const thole_activity *act)
{
    char text[1280];
    uint64_t const left_ms = thole_activity_grace_left_ms(act);
    (void)snprintf(text, sizeof text, "fired %s (%.*s)%s",
                   thole_cancel_kind_name(thole_activity_cancel_kind(act)),
                   THOLE_FMT(thole_activity_cancel_reason(act)), left_ms == UINT64_MAX ? " without end" : "");
    note(act, text);
}

static bool may_return(const thole_activity *act)
{
    char path[512];
    const char *const dir = getenv("CANCELS_DIR");
    (void)snprintf(path, sizeof path, "%s/%.*s", dir == NULL ? "." : dir,
                   THOLE_FMT(thole_activity_instance(act)));
    return access(path, F_OK) == 0;
}

/* Until the token fires. */
static void wait_for_token(thole_activity *act)
{
    note(act, thole_activity_cancelled(act) || thole_activity_cancel_kind(act) != THOLE_CANCEL_NONE
                  ? "begins cancelled"
                  : "begins");
    while (thole_activity_wait(act, 3600000) == THOLE_OK)
        continue;
    note_token(act);
}

static thole_status hold(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    wait_for_token(act);
    note(act, "returns");
    return THOLE_CANCELLED;
}

/* Minds nothing but its leave; then it succeeds. */
static thole_status rude(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    note(act, "begins");
    while (!may_return(act))
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    note(act, "returns");
    *ret_output = THOLE_STR("rude");
    return THOLE_OK;
}

/* Asks in a loop. */
static thole_status polls(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    note(act, "begins");
    while (!thole_activity_cancelled(act))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    note_token(act);
    return THOLE_CANCELLED;
}

static thole_status succeeds_late(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    wait_for_token(act);
    *ret_output = THOLE_STR("all the same");
    note(act, "returns");
    return THOLE_OK;
}

static thole_status fails_late(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    wait_for_token(act);
    note(act, "returns");
    return thole_activity_fail(act, "not like this");
}

static thole_status crashes_late(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    wait_for_token(act);
    note(act, "returns");
    abort();
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    note(act, "begins");
    *ret_output = input;
    return THOLE_OK;
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {
        {"all", all, 0},     {"completes", completes, 0}, {"fails", fails, 0},  {"goes_on", goes_on, 0},
        {"races", races, 0}, {"limits", limits, 0},       {"drops", drops, 0},  {"tries", tries, 0},
        {"total", total, 0}, {"mother", mother, 0},       {"tidies", tidies, 0}};
    static const thole_activity_options process = {.size = sizeof process,
                                                   .isolation = THOLE_ISOLATION_PROCESS};
    static const thole_activity_entry activities[] = {{"hold", hold},
                                                      {"rude", rude},
                                                      {"polls", polls},
                                                      {"succeeds_late", succeeds_late},
                                                      {"fails_late", fails_late},
                                                      {"crashes_late", crashes_late, &process},
                                                      {"echo", echo}};
    thole_program const program = {.size = sizeof program,
                                   .name = "cancels",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = sizeof orchestrations / sizeof orchestrations[0],
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    return remote_or_main(argc, argv, &program);
}
