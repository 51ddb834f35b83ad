#include "bench_program.h"
#include "load.h"
#include "thole/program.h"
#include "tokens.h"
#include <stdlib.h>
#include <string.h>

static thole_status at_once(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx;
    *ret_output = input;
    return THOLE_OK;
}

static thole_status calls(thole_ctx *ctx, unsigned n, thole_slice input, thole_slice *ret_output)
{
    thole_slice value = input;
    for (unsigned i = 0; i < n; i++)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), value), &value));
    *ret_output = value;
    return THOLE_OK;
}

static thole_status one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return calls(ctx, 1, input, ret_output);
}

static thole_status chain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return calls(ctx, PROGRAM_CHAIN, input, ret_output);
}

/* So many at once; each must return what it was given. */
static thole_status fan_out(thole_ctx *ctx, thole_slice activity, size_t n)
{
    thole_task *const tasks = thole_alloc(ctx, n * sizeof *tasks);
    thole_slice *const inputs = thole_alloc(ctx, n * sizeof *inputs);
    thole_slice *const results = thole_alloc(ctx, n * sizeof *results);
    if (tasks == NULL || inputs == NULL || results == NULL)
        return THOLE_NOMEM;
    for (size_t i = 0; i < n; i++) {
        inputs[i] = thole_format(ctx, "%zu", i);
        tasks[i] = thole_call(ctx, activity, inputs[i]);
    }
    THOLE_TRY(thole_await_all(ctx, tasks, n, results));
    for (size_t i = 0; i < n; i++)
        if (!thole_slice_equal(results[i], inputs[i]))
            return thole_throw(ctx, "activity %zu returned \"%.*s\"", i, THOLE_FMT(results[i]));
    return THOLE_OK;
}

static thole_status fan(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    *ret_output = input;
    return fan_out(ctx, THOLE_STR("echo"), PROGRAM_FAN);
}

static thole_status stress(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    *ret_output = input;
    return fan_out(ctx, THOLE_STR("nap"), PROGRAM_STRESS);
}

static thole_status timer(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(input));
    *ret_output = input;
    uint64_t const ms = strchr(text, ':') == NULL ? PROGRAM_TIMER_MS : strtoul(text, NULL, 10);
    return thole_await(ctx, thole_timer(ctx, ms), NULL);
}

static thole_status event(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

/* As many activities as the input says, then an event. */
static thole_status sleeper(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(input));
    THOLE_TRY(calls(ctx, (unsigned)strtoul(text, NULL, 10), input, ret_output));
    return event(ctx, input, ret_output);
}

/* So many executions; then it waits for an event, which says how many are next. */
static thole_status bench_program_loop(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(input));
    unsigned long const left = strtoul(text, NULL, 10);
    if (left > 0)
        return thole_continue_as_new(ctx, thole_format(ctx, "%lu", left - 1), 0);
    THOLE_TRY(event(ctx, input, ret_output));
    return thole_continue_as_new(ctx, *ret_output, 0);
}

/* Two of itself, which do the same: a fork bomb. */
static thole_status forks(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const children[] = {thole_child(ctx, THOLE_STR("forks"), input, NULL),
                                   thole_child(ctx, THOLE_STR("forks"), input, NULL)};
    *ret_output = input;
    return thole_await_all(ctx, children, 2, NULL);
}

/* As many activities at once as the input says. */
static thole_status bench_program_nap_all(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(input));
    *ret_output = input;
    return fan_out(ctx, THOLE_STR("nap"), strtoul(text, NULL, 10));
}

static thole_status hold(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    *ret_output = input;
    return thole_await(ctx, thole_call(ctx, THOLE_STR("hold"), thole_instance_id(ctx)), NULL);
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    *ret_output = input;
    return THOLE_OK;
}

static thole_status nap(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    *ret_output = input;
    bench_nap_us(PROGRAM_STRESS_MS * 1000);
    return THOLE_OK;
}

static struct tokens *tokens;

/* Runs until its token fires; the number at the end of its input says where that is noted. */
static thole_status hold_activity(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char text[128];
    (void)ret_output;
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(input));
    const char *const dash = strrchr(text, '-');
    size_t const i = dash == NULL ? TOKENS_MAX : strtoul(dash + 1, NULL, 10);
    if (tokens == NULL || i >= TOKENS_MAX)
        return THOLE_INVALID;
    atomic_fetch_add(&tokens->started, 1);
    while (thole_activity_wait(act, 3600 * 1000) != THOLE_CANCELLED)
        continue;
    atomic_store(&tokens->at_ns[i], bench_wall_ns());
    atomic_fetch_add(&tokens->fired, 1);
    return THOLE_CANCELLED;
}

#define LENGTH(list) (sizeof list / sizeof list[0])

#define THREADS_VARIABLE "THOLE_BENCH_THREADS"

void program_on_threads(void)
{
    (void)setenv(THREADS_VARIABLE, "1", 1);
}

int program_main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {
        {.name = "start", .run = at_once},   {.name = "one", .run = one},
        {.name = "chain", .run = chain},     {.name = "fan", .run = fan},
        {.name = "stress", .run = stress},   {.name = "timer", .run = timer},
        {.name = "event", .run = event},     {.name = "hold", .run = hold},
        {.name = "sleeper", .run = sleeper}, {.name = "loop", .run = bench_program_loop},
        {.name = "forks", .run = forks},     {.name = "naps", .run = bench_program_nap_all}};
    static const thole_activity_options quick = {.size = sizeof quick, .quick = true};
    const thole_activity_entry activities[] = {
        {.name = "echo", .run = echo, .options = getenv(THREADS_VARIABLE) == NULL ? &quick : NULL},
        {.name = "nap", .run = nap},
        {.name = "hold", .run = hold_activity}};
    const thole_program program = {.size = sizeof program,
                                   .name = "bench",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = LENGTH(orchestrations),
                                   .activities = activities,
                                   .activities_len = LENGTH(activities)};
    tokens = tokens_find();
    return thole_main(argc, argv, &program);
}

bool program_role(int argc, char **argv, int *ret_code)
{
    const char *const role = argc > 1 ? argv[1] : "";
    if (strcmp(role, "client") == 0)
        *ret_code = load_main(argc, argv);
    else if (strcmp(role, "engine") == 0 || strcmp(role, "worker") == 0 || strcmp(role, "replay") == 0 ||
             strcmp(role, "gateway") == 0)
        *ret_code = program_main(argc, argv);
    else
        return false;
    return true;
}
