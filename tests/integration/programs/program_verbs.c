/*
 * The program of the tests of verbs: an orchestration for each kind of client request. $VERBS_TOKENS is a
 * file that gets the token of each activity that is completed from outside, one line each. With
 * $VERBS_CHANGED set `steps` and `halts` decide differently than before, as a careless change of code would;
 * with $VERBS_OLD `versioned` has only its first version; with $VERBS_WITHOUT there is no `halts`.
 */
#include "dropped.h"
#include "remote_worker.h"
#include "thole/program.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- events, queries, pauses ---- */

struct gate {
    unsigned passed;
};

static thole_status answer_passed(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    const struct gate *gate = arg;
    *ret_output =
        thole_format(ctx, "passed %u%s%.*s", gate->passed, input.len > 0 ? " " : "", THOLE_FMT(input));
    return THOLE_OK;
}

/* Queries may not do this. */
static thole_status answer_badly(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg;
    (void)ret_output;
    drop_task(thole_call(ctx, THOLE_STR("echo"), input));
    return THOLE_OK;
}

static thole_status answer_no(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)ctx;
    (void)arg;
    (void)input;
    (void)ret_output;
    return THOLE_APP;
}

/* Passes when "go" comes; ends with its data. Input: how many are needed, 1 if empty. */
static thole_status gate(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    unsigned needed = input.len == 1 ? (unsigned)(input.ptr[0] - '0') : 1;
    struct gate *state = thole_alloc(ctx, sizeof *state); /* is still there when it has ended */
    if (state == NULL)
        return THOLE_LIMIT;
    thole_on_query(ctx, THOLE_STR("passed"), answer_passed, state);
    thole_on_query(ctx, THOLE_STR("badly"), answer_badly, state);
    thole_on_query(ctx, THOLE_STR("no"), answer_no, &needed);
    for (; state->passed < needed; state->passed++) {
        thole_set_status(ctx, thole_format(ctx, "waits for go %u", state->passed + 1));
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output));
    }
    return THOLE_OK;
}

/* Raises "go" in the instance that its input names. */
static thole_status raiser(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    thole_log(ctx, THOLE_LOG_INFO, "raises go in %.*s", THOLE_FMT(input));
    thole_raise(ctx, input, THOLE_STR("go"), THOLE_STR("raised"));
    return THOLE_OK;
}

/* ---- children, long lives, versions ---- */

/* The child is a gate. */
static thole_status parent(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {
        .size = sizeof options,
        .instance = thole_format(ctx, "%.*s-child", THOLE_FMT(thole_instance_id(ctx)))};
    thole_set_status(ctx, THOLE_STR("waits for its child"));
    return thole_await(ctx, thole_child(ctx, THOLE_STR("gate"), input, &options), ret_output);
}

/* Adds up to its input in executions of their own; each takes an event "add". */
static thole_status counter(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice sum = THOLE_STR("");
    (void)!thole_state_get(ctx, THOLE_STR("sum"), &sum);
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("add")), NULL));
    sum = thole_format(ctx, "%.*s+", THOLE_FMT(sum));
    thole_state_set(ctx, THOLE_STR("sum"), sum);
    thole_set_status(ctx, sum);
    if (sum.len < 3)
        return thole_continue_as_new(ctx, input, 0);
    *ret_output = sum;
    return THOLE_OK;
}

/* Goes on in an execution of its own after each event "next", until one says "end". */
static thole_status cycles(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice how;
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), input), NULL));
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("next")), &how));
    if (!thole_slice_equal(how, THOLE_STR("end")))
        return thole_continue_as_new(ctx, input, 0);
    *ret_output = thole_format(ctx, "in execution %llu", (unsigned long long)thole_execution_id(ctx));
    return THOLE_OK;
}

static thole_status versioned_1(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = THOLE_STR("one");
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL);
}

static thole_status versioned_2(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = THOLE_STR("two");
    return thole_await(ctx, thole_timer(ctx, 1), NULL);
}

/* ---- activities ---- */

static thole_status steps(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    bool const changed = getenv("VERBS_CHANGED") != NULL; /* never read the environment in an orchestration */
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), input), ret_output));
    if (changed)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("weigh"), input), ret_output));
    return thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), *ret_output), ret_output);
}

/* Stands at an event between two activities. */
static thole_status halts(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice const next = getenv("VERBS_CHANGED") != NULL ? THOLE_STR("halt") : THOLE_STR("go");
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), input), NULL));
    THOLE_TRY(thole_await(ctx, thole_event(ctx, next), ret_output));
    return thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), *ret_output), ret_output);
}

/* An activity that is completed from outside. */
static thole_status outside(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const task = thole_call(ctx, THOLE_STR("later"), input);
    thole_status const status = thole_await(ctx, task, ret_output);
    thole_failure const failure = thole_task_failure(ctx, task);
    if (status == THOLE_APP)
        return thole_throw_as(ctx, failure.type, "outside said: %.*s", THOLE_FMT(failure.message));
    return status;
}

/* Waits for one thing of each kind; its activities: one that nobody knows, one of a queue that nobody serves,
 * one that fails and is tried again in a minute. */
static thole_status waiting(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const gpu = {.size = sizeof gpu, .queue = THOLE_STR("gpu")};
    thole_call_options const again = {.size = sizeof again,
                                      .retry = {.tries_max = 3, .first_delay_ms = 60000}};
    thole_child_options const child = {.size = sizeof child, .instance = THOLE_STR("w-child")};
    thole_task const all[] = {thole_call(ctx, THOLE_STR("ecoh"), input),
                              thole_call_with(ctx, THOLE_STR("echo"), input, &gpu),
                              thole_call_with(ctx, THOLE_STR("flaky"), input, &again),
                              thole_timer(ctx, 3600 * 1000),
                              thole_event(ctx, THOLE_STR("go")),
                              thole_event(ctx, THOLE_STR("other")),
                              thole_child(ctx, THOLE_STR("gate"), input, &child)};
    size_t winner;
    (void)ret_output;
    thole_task const lost[] = {thole_timer(ctx, 7200 * 1000), thole_call(ctx, THOLE_STR("weigh"), input)};
    THOLE_TRY(thole_await_any(ctx, lost, 2, &winner)); /* not waited for any more */
    return thole_await_all(ctx, all, sizeof all / sizeof all[0], NULL);
}

/* Waits for more than anybody wants to read: as many timers as its input says. */
static thole_status eager(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task all[100];
    size_t n = 0;
    (void)ret_output;
    for (unsigned long const wanted = strtoul((const char *)input.ptr, NULL, 10); n < wanted && n < 100; n++)
        all[n] = thole_timer(ctx, 3600 * 1000);
    return thole_await_all(ctx, all, n, NULL);
}

static thole_status flaky(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    (void)input;
    (void)ret_output;
    return THOLE_APP;
}

static thole_status failing(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    return thole_throw_as(ctx, THOLE_STR("card_declined"), "no card for %.*s", THOLE_FMT(input));
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    *ret_output = input;
    return THOLE_OK;
}

static thole_status later(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    thole_slice token;
    const char *path = getenv("VERBS_TOKENS");
    int const fd = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    thole_status const status = thole_activity_later(act, &token);
    (void)input;
    (void)ret_output;
    if (status == THOLE_LATER && fd >= 0) {
        thole_slice const line = thole_activity_format(act, "%.*s\n", THOLE_FMT(token));
        ssize_t const n = write(fd, line.ptr, line.len);
        (void)n;
    }
    if (fd >= 0)
        close(fd);
    return status;
}

int main(int argc, char **argv)
{
    bool const without = getenv("VERBS_WITHOUT") != NULL;
    static const thole_orchestration_entry all[] = {
        {"halts", halts, 0},          {"versioned", versioned_1, 1}, {"gate", gate, 0},
        {"raiser", raiser, 0},        {"parent", parent, 0},         {"counter", counter, 0},
        {"steps", steps, 0},          {"outside", outside, 0},       {"failing", failing, 0},
        {"waiting", waiting, 0},      {"cycles", cycles, 0},         {"eager", eager, 0},
        {"versioned", versioned_2, 2}};
    static const thole_activity_entry activities[] = {
        {"echo", echo}, {"weigh", echo}, {"later", later}, {"flaky", flaky}};
    size_t const n = sizeof all / sizeof all[0];
    thole_program const program = {.size = sizeof program,
                                   .name = "verbs",
                                   .orchestrations = all + without,
                                   .orchestrations_len = n - without - (getenv("VERBS_OLD") != NULL),
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    return remote_or_main(argc, argv, &program);
}
