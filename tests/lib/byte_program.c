#include "byte_program.h"

enum { TASKS_MAX = 24, STEPS_MAX = 400 };

struct machine {
    thole_ctx *ctx;
    thole_slice program;
    size_t at;
    thole_task tasks[TASKS_MAX]; /* the last ones */
    size_t tasks_len;
    uint64_t sum; /* of all that it was told: what it does next depends on it */
    thole_saga saga;
    thole_slice *output;
    bool done;
    thole_status status;
};

static uint8_t next(struct machine *m)
{
    return m->at < m->program.len ? m->program.ptr[m->at++] : 0;
}

static void learn(struct machine *m, thole_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        m->sum = m->sum * 31 + bytes.ptr[i];
    m->sum += bytes.len;
}

static void learn_status(struct machine *m, thole_status status)
{
    m->sum = m->sum * 7 + (uint64_t)status;
}

static void remember(struct machine *m, thole_task task)
{
    m->tasks[m->tasks_len++ % TASKS_MAX] = task;
}

static thole_task some_task(struct machine *m)
{
    size_t const len = m->tasks_len < TASKS_MAX ? m->tasks_len : TASKS_MAX;
    uint8_t const which = next(m);
    return which == 255 || len == 0 ? (thole_task){which} : m->tasks[which % len];
}

/* Good names, and one that is none. */
static thole_slice some_name(struct machine *m)
{
    static const char *const names[] = {"e0", "e1", "a", "b", "not a name"};
    return thole_slice_from(names[next(m) % 5]);
}

static thole_slice some_bytes(struct machine *m)
{
    uint8_t const len = next(m);
    if (len == 255) /* over the payload limit */
        return (thole_slice){thole_alloc(m->ctx, 5000), 5000};
    size_t const left = m->program.len - m->at;
    return (thole_slice){m->program.ptr + m->at, len % 8 < left ? len % 8 : left};
}

/* ---- steps ---- */

static void call(struct machine *m)
{
    remember(m, thole_call(m->ctx, some_name(m), some_bytes(m)));
}

static void call_with(struct machine *m)
{
    thole_slice const final_types[] = {THOLE_STR("final"), THOLE_STR("f0")};
    uint8_t const how = next(m);
    thole_call_options const options = {.size = sizeof options,
                                        .queue = how & 1 ? THOLE_STR("q") : THOLE_STR(""),
                                        .try_timeout_ms = how & 2 ? 70 : 0,
                                        .total_timeout_ms = how & 4 ? 2000 : 0,
                                        .retry = {.tries_max = how >> 3 & 3,
                                                  .first_delay_ms = how & 32 ? 100 : 0,
                                                  .factor = how & 64 ? 2.5 : 0,
                                                  .max_delay_ms = how & 128 ? 500 : 0,
                                                  .jitter = how & 16 ? 0.3 : 0,
                                                  .final_types = final_types,
                                                  .final_types_len = how & 8 ? 2 : 0}};
    remember(m, thole_call_with(m->ctx, some_name(m), some_bytes(m), &options));
}

static void timer(struct machine *m)
{
    uint8_t const ticks = next(m);
    remember(m, thole_timer(m->ctx, ticks == 255 ? UINT64_MAX : ticks * UINT64_C(100)));
}

static void event(struct machine *m)
{
    remember(m, thole_event(m->ctx, some_name(m)));
}

static thole_child_options child_options(struct machine *m)
{
    uint8_t const how = next(m);
    thole_slice const ids[] = {THOLE_STR(""), THOLE_STR("c/1"), THOLE_STR("\xff"), THOLE_STR("c2")};
    return (thole_child_options){.size = sizeof(thole_child_options),
                                 .instance = ids[how & 3],
                                 .version = how >> 2 & 3,
                                 .close = (thole_close)(how >> 4 & 3)};
}

static void child(struct machine *m)
{
    thole_child_options const options = child_options(m);
    remember(m, thole_child(m->ctx, some_name(m), some_bytes(m), options.version == 3 ? NULL : &options));
}

static void start(struct machine *m)
{
    thole_child_options const options = child_options(m);
    thole_start(m->ctx, some_name(m), some_bytes(m), &options);
}

static void raise_event(struct machine *m)
{
    thole_slice const ids[] = {THOLE_STR("other"), THOLE_STR(""), thole_instance_id(m->ctx)};
    thole_raise(m->ctx, ids[next(m) % 3], some_name(m), some_bytes(m));
}

static void await_one(struct machine *m)
{
    thole_task const task = some_task(m);
    thole_slice result = {NULL, 0};
    learn_status(m, thole_await(m->ctx, task, &result));
    learn(m, result);
    thole_failure const failure = thole_task_failure(m->ctx, task);
    learn_status(m, failure.status);
    learn(m, failure.type);
    learn(m, failure.message);
    learn(m, thole_task_error(m->ctx, task));
    m->sum += failure.tries;
}

static size_t some_tasks(struct machine *m, thole_task to[4])
{
    size_t const n = next(m) % 5;
    for (size_t i = 0; i < n && i < 4; i++)
        to[i] = some_task(m);
    return n < 4 ? n : 4;
}

static void await_any(struct machine *m)
{
    thole_task tasks[4];
    size_t const n = some_tasks(m, tasks);
    size_t winner = 0;
    learn_status(m, thole_await_any(m->ctx, tasks, n, &winner));
    m->sum += winner;
}

static void await_first(struct machine *m)
{
    thole_task tasks[4];
    size_t const n = some_tasks(m, tasks);
    size_t first = 0;
    learn_status(m, thole_await_first(m->ctx, tasks, n, &first));
    m->sum += first;
}

static void await_all(struct machine *m)
{
    thole_task tasks[4];
    thole_slice results[4] = {{NULL, 0}};
    size_t const n = some_tasks(m, tasks);
    learn_status(m, thole_await_all(m->ctx, tasks, n, results));
    for (size_t i = 0; i < n; i++)
        learn(m, results[i]);
}

static void cancel(struct machine *m)
{
    thole_cancel(m->ctx, some_task(m), some_bytes(m));
}

static void branch(struct machine *m)
{
    bool const ways[] = {m->sum % 2 == 0, thole_ready(m->ctx, some_task(m)), thole_is_cancelled(m->ctx),
                         thole_random(m->ctx) % 2 == 0, thole_should_continue_as_new(m->ctx)};
    if (ways[next(m) % 5])
        m->at += next(m) % 16;
    if (m->at > m->program.len)
        m->at = m->program.len;
}

static thole_status make_value(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    static uint64_t calls; /* a replay that calls it gets another value */
    *ret_value = thole_format(ctx, "%llu", (unsigned long long)calls++);
    return *(const uint8_t *)arg == 0 ? THOLE_APP : THOLE_OK;
}

static void side_effect(struct machine *m)
{
    uint8_t how = next(m) % 4;
    thole_slice value = {NULL, 0};
    learn_status(m, thole_side_effect(m->ctx, make_value, &how, &value));
    learn(m, value);
}

static void state(struct machine *m)
{
    thole_slice const keys[] = {THOLE_STR("k"), THOLE_STR("key"), THOLE_STR(""), THOLE_STR("a")};
    uint8_t const how = next(m);
    thole_slice const key = keys[how & 3];
    thole_slice found = {NULL, 0}, value = {NULL, 0};
    switch (how >> 2 & 3) {
    case 0: thole_state_set(m->ctx, key, some_bytes(m)); break;
    case 1: thole_state_remove(m->ctx, key); break;
    case 2: learn_status(m, thole_state_get(m->ctx, key, &value)); break;
    default: learn_status(m, thole_state_next(m->ctx, key, &found, &value)); break;
    }
    learn(m, found);
    learn(m, value);
}

static void patch(struct machine *m)
{
    m->sum = m->sum * 2 + thole_patch(m->ctx, some_name(m));
}

static void facts(struct machine *m)
{
    learn(m, thole_instance_id(m->ctx));
    learn(m, thole_uuid(m->ctx));
    learn(m, thole_cancel_reason(m->ctx));
    m->sum += thole_now_ms(m->ctx) + thole_execution_id(m->ctx) + thole_version_id(m->ctx);
    thole_log(m->ctx, THOLE_LOG_INFO, "%llu", (unsigned long long)m->sum);
}

static thole_status answer(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    const struct machine *m = arg;
    thole_slice value;
    if (input.len > 0 && input.ptr[0] == 'x') /* calls that a query may not make */
        remember(arg, thole_call(ctx, THOLE_STR("a"), input));
    if (input.len > 0 && input.ptr[0] == 's')
        thole_state_set(ctx, THOLE_STR("k"), input);
    if (thole_state_get(ctx, THOLE_STR("k"), &value) != THOLE_OK)
        value = THOLE_STR("none");
    *ret_output = thole_format(ctx, "%llu %.*s", (unsigned long long)m->sum, THOLE_FMT(value));
    return THOLE_OK;
}

static void saga(struct machine *m)
{
    if (next(m) % 3 == 0)
        learn_status(m, thole_saga_compensate(m->ctx, &m->saga));
    else
        thole_saga_add(m->ctx, &m->saga, some_name(m), some_bytes(m), NULL);
}

static void set_status(struct machine *m)
{
    thole_set_status(m->ctx, some_bytes(m));
}

static void finish(struct machine *m)
{
    uint8_t const how = next(m) % 5;
    m->done = true;
    switch (how) {
    case 0: m->status = thole_throw(m->ctx, "%llu", (unsigned long long)m->sum); break;
    case 1: m->status = thole_throw_as(m->ctx, some_bytes(m), "typed"); break;
    case 2: m->status = thole_continue_as_new(m->ctx, some_bytes(m), next(m) % 3); break;
    case 3: m->status = thole_is_cancelled(m->ctx) ? THOLE_CANCELLED : THOLE_UNAVAILABLE; break;
    default: *m->output = some_bytes(m); break;
    }
}

static void query(struct machine *m)
{
    thole_on_query(m->ctx, some_name(m), answer, m);
}

thole_status byte_program(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    static void (*const steps[])(struct machine * m) = {
        call,        call_with, timer,  event,  child,       start, raise_event, await_one, await_any,
        await_first, await_all, cancel, branch, side_effect, state, patch,       facts,     saga,
        set_status,  query,     finish, call,   event,       timer, await_one};
    struct machine m = {.ctx = ctx, .program = input, .output = ret_output};
    for (size_t i = 0; i < STEPS_MAX && m.at < input.len && !m.done; i++)
        steps[next(&m) % (sizeof steps / sizeof steps[0])](&m);
    if (!m.done)
        *ret_output = thole_format(ctx, "%llu", (unsigned long long)m.sum);
    return m.status;
}
