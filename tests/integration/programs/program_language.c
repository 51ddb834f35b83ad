/*
 * The program of test_language.c: the parts of the language that need an engine between instances, a worker
 * between tries, or both. $LANGUAGE_EFFECTS is a file that gets "key activity try attempt" for each time an
 * activity runs.
 */
#include "dropped.h"
#include "thole/program.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHILDREN = 5, GENERATIONS = 4, TRIES = 4 };

static unsigned number_of(thole_slice text)
{
    char digits[16] = {0};
    memcpy(digits, text.ptr, text.len < sizeof digits - 1 ? text.len : sizeof digits - 1);
    return (unsigned)strtoul(digits, NULL, 10);
}

/* ---- orchestrations ---- */

/* Fails twice, then succeeds, on a queue of its own. */
static thole_status stubborn(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options,
                                        .queue = THOLE_STR("other"),
                                        .retry = {.tries_max = TRIES, .first_delay_ms = 20, .factor = 2}};
    thole_task const task = thole_call_with(ctx, THOLE_STR("flaky"), input, &options);
    thole_status const status = thole_await(ctx, task, ret_output);
    thole_failure const failure = thole_task_failure(ctx, task);
    if (status != THOLE_OK)
        *ret_output = thole_format(ctx, "%.*s after %u: %.*s", THOLE_FMT(failure.type), failure.tries,
                                   THOLE_FMT(failure.message));
    return THOLE_OK;
}

/* Each try hangs: the timeout of the try ends it, the total timeout the whole. Input: what ends it. */
static thole_status late(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    bool const total = thole_slice_equal(input, THOLE_STR("total"));
    thole_call_options const options = {.size = sizeof options,
                                        .try_timeout_ms = total ? 0 : 300,
                                        .total_timeout_ms = total ? 400 : 0,
                                        .retry = {.tries_max = 2, .first_delay_ms = 10}};
    thole_task const task = thole_call_with(ctx, THOLE_STR("hang"), input, &options);
    thole_status const status = thole_await(ctx, task, NULL);
    thole_failure const failure = thole_task_failure(ctx, task);
    *ret_output = thole_format(ctx, "%s %.*s tries %u", thole_status_name(status), THOLE_FMT(failure.type),
                               failure.tries);
    return THOLE_OK;
}

static thole_status leaf(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    if (thole_slice_equal(input, THOLE_STR("bad")))
        return thole_throw_as(ctx, THOLE_STR("leaf.bad"), "this leaf is bad");
    thole_call_options const options = {.size = sizeof options,
                                        .retry = {.tries_max = TRIES, .first_delay_ms = 10}};
    return thole_await(ctx, thole_call_with(ctx, THOLE_STR("count"), input, &options), ret_output);
}

/* Children in other partitions; the sum of what they give. */
static thole_status family(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[CHILDREN];
    thole_slice results[CHILDREN];
    unsigned sum = 0;
    (void)input;
    for (unsigned i = 0; i < CHILDREN; i++)
        tasks[i] = thole_child(ctx, THOLE_STR("leaf"), thole_format(ctx, "%u", i + 1), NULL);
    THOLE_TRY(thole_await_all(ctx, tasks, CHILDREN, results));
    for (unsigned i = 0; i < CHILDREN; i++)
        sum += number_of(results[i]);
    thole_task const bad = thole_child(ctx, THOLE_STR("leaf"), THOLE_STR("bad"), NULL);
    thole_status const status = thole_await(ctx, bad, NULL);
    *ret_output = thole_format(ctx, "%u, then %s %.*s", sum, thole_status_name(status),
                               THOLE_FMT(thole_task_failure(ctx, bad).type));
    return THOLE_OK;
}

/* One event for each execution; what it has seen is state. */
static thole_status lives(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    unsigned const generation = number_of(input) + 1;
    thole_slice seen = {NULL, 0}, data;
    if (thole_state_get(ctx, THOLE_STR("seen"), &seen) != THOLE_OK)
        seen = THOLE_STR("");
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("tick")), &data));
    seen = thole_format(ctx, "%.*s%.*s", THOLE_FMT(seen), THOLE_FMT(data));
    thole_state_set(ctx, THOLE_STR("seen"), seen);
    if (generation < GENERATIONS)
        return thole_continue_as_new(ctx, thole_format(ctx, "%u", generation), 0);
    *ret_output = seen;
    return THOLE_OK;
}

/* As many lives as its input says, each a turn; the last one waits. */
static thole_status rounds(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    unsigned const left = number_of(input);
    if (left > 1)
        return thole_continue_as_new(ctx, thole_format(ctx, "%u", left - 1), 0);
    return thole_await(ctx, thole_event(ctx, THOLE_STR("tick")), ret_output);
}

/* Tells n ticks to the instance that its input names ("n id"). */
static thole_status teller(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    unsigned const n = number_of(input);
    thole_slice const to = {input.ptr + 2, input.len - 2};
    for (unsigned i = 0; i < n; i++)
        thole_raise(ctx, to, THOLE_STR("tick"), thole_format(ctx, "%c", 'a' + (int)i));
    *ret_output = THOLE_STR("told");
    return THOLE_OK;
}

/* A child under an id that its input names, which another instance may have; it does not wait for the
 * answer. */
static thole_status hasty(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {
        .size = sizeof options, .instance = input, .close = THOLE_CLOSE_TERMINATE};
    drop_task(thole_child(ctx, THOLE_STR("lives"), THOLE_STR("3"), &options));
    *ret_output = THOLE_STR("away");
    return THOLE_OK;
}

/* Does not end when it is asked to: its cleaning up takes for ever. */
static thole_status tidy(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    thole_status const status = thole_await(ctx, thole_event(ctx, THOLE_STR("tick")), ret_output);
    thole_status const cleaned = thole_await(ctx, thole_timer(ctx, 3600 * 1000), NULL);
    return status == THOLE_OK ? cleaned : status;
}

/* The child loses a race, and is cleaning up when the parent ends. */
static thole_status hurried(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t winner;
    thole_child_options const options = {
        .size = sizeof options, .instance = input, .close = THOLE_CLOSE_TERMINATE};
    thole_task const tasks[] = {thole_child(ctx, THOLE_STR("tidy"), THOLE_STR(""), &options),
                                thole_timer(ctx, 200)};
    THOLE_TRY(thole_await_any(ctx, tasks, 2, &winner));
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 500), NULL));
    *ret_output = THOLE_STR("gone");
    return THOLE_OK;
}

/* ---- activities ---- */

static void effect(thole_activity *act)
{
    const char *path = getenv("LANGUAGE_EFFECTS");
    int const fd = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    thole_slice const line = thole_activity_format(
        act, "%.*s %.*s try %u attempt %u\n", THOLE_FMT(thole_activity_key(act)),
        THOLE_FMT(thole_activity_name(act)), thole_activity_try(act), thole_activity_attempt(act));
    if (fd < 0)
        return;
    ssize_t const n = write(fd, line.ptr, line.len);
    (void)n;
    close(fd);
}

static thole_status flaky(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    effect(act);
    if (thole_slice_equal(input, THOLE_STR("final")))
        return thole_activity_fail_final(act, THOLE_STR("card.stolen"), "never again");
    if (thole_activity_try(act) < 3)
        return thole_activity_fail_as(act, THOLE_STR("bank.away"), "try %u", thole_activity_try(act));
    thole_slice const worker = thole_activity_worker(act);
    bool const incarnation =
        worker.len > 17 && worker.ptr[worker.len - 17] == '-'; /* NODE-0123456789abcdef */
    *ret_output = thole_activity_format(act, "try %u on %.*s for %.*s@%u%s", thole_activity_try(act),
                                        THOLE_FMT(thole_activity_queue(act)),
                                        THOLE_FMT(thole_activity_orchestration(act)),
                                        thole_activity_version(act), incarnation ? " by a worker" : "");
    return THOLE_OK;
}

static thole_status hang(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    (void)ret_output;
    effect(act);
    return thole_activity_wait(act, 60 * 1000);
}

/* Every third of its first tries fails. */
static thole_status count(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    effect(act);
    if (thole_activity_try(act) == 1 && number_of(input) % 3 == 0)
        return thole_activity_fail(act, "the first try of three");
    *ret_output = input;
    return THOLE_OK;
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {
        {.name = "stubborn", .run = stubborn}, {.name = "late", .run = late},
        {.name = "leaf", .run = leaf},         {.name = "family", .run = family},
        {.name = "lives", .run = lives},       {.name = "teller", .run = teller},
        {.name = "rounds", .run = rounds},     {.name = "hasty", .run = hasty},
        {.name = "tidy", .run = tidy},         {.name = "hurried", .run = hurried}};
    static const thole_activity_entry activities[] = {{"flaky", flaky}, {"hang", hang}, {"count", count}};
    thole_program const program = {.size = sizeof program,
                                   .name = "language",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = sizeof orchestrations / sizeof orchestrations[0],
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    return thole_main(argc, argv, &program);
}
