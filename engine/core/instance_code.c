/* The coroutine of an orchestration: when it runs, and what its code may do now. */
#include "instance_code.h"
#include "instance_memory.h"
#include "instance_turn.h"
#include "message.h"
#include <assert.h>

/* ---- the coroutine ---- */

static void code_entry(void *arg)
{
    struct instance *in = arg;
    instance_reached(in);
    in->code.returned_status = in->options.code(&in->ctx, in->facts.input, &in->code.output);
    in->code.returned = true;
}

static thole_status code_begin(struct instance *in)
{
    uint32_t const of_code = in->options.version;
    if (in->options.code == NULL)
        return instance_break(in, THOLE_INVALID, "this instance has no code to run");
    if (of_code != 0 && in->facts.version != 0 && of_code != in->facts.version)
        return instance_break(in, THOLE_INVALID, "the execution runs version %u, the code has version %u",
                              in->facts.version, of_code);
    in->code.coro = coro_create_sized(in->options.stacks, in->options.stack_bytes, code_entry, in);
    if (in->code.coro == NULL)
        return instance_break(in, THOLE_NOMEM, "no stack for an orchestration (%zu are in use)",
                              stack_pool_in_use(in->options.stacks));
    return THOLE_OK;
}

thole_status code_run(struct instance *in)
{
    bool const waits = in->code.waits_left > 0 && !in->code.interrupted;
    if (in->broken == THOLE_OK && in->code.coro == NULL)
        (void)code_begin(in);
    if (in->broken == THOLE_OK && !waits) {
        assert(!in->code.returned);
        (void)coro_resume(in->code.coro);
        assert(in->broken != THOLE_OK || in->code.guard == GUARD_NONE);
    }
    assert(in->broken != THOLE_OK || in->code.returned || in->code.waits_left > 0);
    return in->broken;
}

thole_status code_on_drop(struct instance *in, thole_drop_fn *release, void *arg)
{
    struct drop *const drop = arena_alloc(&in->arena, sizeof *drop);
    if (drop == NULL)
        return THOLE_LIMIT;
    *drop = (struct drop){in->code.drops, release, arg};
    in->code.drops = drop;
    return THOLE_OK;
}

void code_release(struct instance *in)
{
    bool const watched = in->code.drops != NULL && in->options.drops != NULL;
    if (watched)
        in->options.drops(in->options.drops_arg, in, true);
    while (in->code.drops != NULL) {
        const struct drop *const drop = in->code.drops;
        in->code.drops = drop->before;
        drop->release(drop->arg);
    }
    if (watched)
        in->options.drops(in->options.drops_arg, in, false);
}

void code_drop(struct instance *in)
{
    coro_destroy(in->code.coro);
    in->code.coro = NULL;
}

bool code_suspend(struct instance *in, size_t waits)
{
    assert(waits > 0 && in->code.waits_left == 0 && !in->code.interrupted);
    in->code.waits_left = waits;
    coro_yield(in->code.coro);
    instance_reached(in);
    bool const interrupted = in->code.interrupted;
    assert(interrupted || in->code.waits_left == 0);
    in->code.waits_left = 0;
    in->code.interrupted = false;
    return !interrupted;
}

void code_task_resolved(struct instance *in)
{
    if (in->code.waits_left > 0)
        in->code.waits_left--;
}

void code_interrupt(struct instance *in)
{
    in->code.interrupted = in->code.waits_left > 0;
}

/* ---- permitted calls ---- */

static void code_park(struct instance *in)
{
    for (;;)
        coro_yield(in->code.guard == GUARD_QUERY ? in->queries.current.coro : in->code.coro);
}

void code_guard(struct instance *in, enum guard guard)
{
    assert(in->code.guard == GUARD_NONE && guard != GUARD_NONE);
    in->code.guard = guard;
    in->code.refused = false;
    in->code.refused_awaits = 0;
}

bool code_unguard(struct instance *in)
{
    assert(in->code.guard != GUARD_NONE);
    in->code.guard = GUARD_NONE;
    return !in->code.refused;
}

bool code_refuses(struct instance *in)
{
    if (in->code.guard == GUARD_NONE) {
        if (in->broken != THOLE_OK && in->code.broken_calls++ >= BROKEN_CALLS_MAX)
            code_park(in);
        return false;
    }
    in->code.refused = true;
    return true;
}

/* The turn has failed. A few awaits may still return, so that code can see that its memory is exhausted; then
 * it is parked for good. */
thole_status code_broken_await(struct instance *in)
{
    if (in->broken != THOLE_LIMIT || in->code.broken_awaits++ >= BROKEN_AWAITS_MAX)
        code_park(in);
    return THOLE_LIMIT;
}

/* An await in a query or side effect: if the code awaits too often, it is parked, too. */
thole_status code_refused_await(struct instance *in)
{
    if (in->code.refused_awaits++ < BROKEN_AWAITS_MAX)
        return THOLE_INVALID;
    if (in->code.guard == GUARD_EFFECT)
        (void)instance_break(in, THOLE_INVALID, "a side effect awaits for ever");
    code_park(in);
    return THOLE_INVALID;
}

/* ---- faults and failure texts ---- */

void code_fault(struct instance *in, enum task_fault fault)
{
    assert(fault != 0);
    if (in->code.fault == 0)
        in->code.fault = fault;
}

enum task_fault code_take_fault(struct instance *in)
{
    enum task_fault const fault = in->code.fault;
    in->code.fault = 0;
    return fault;
}

void code_throw(struct instance *in, thole_slice type, thole_slice text)
{
    in->code.threw = true;
    in->code.thrown = text;
    in->code.thrown_type = error_type_check(type, NULL) == THOLE_OK ? type : (thole_slice){NULL, 0};
}
