/* A report says in which line the code called the library last, whatever it called. */
#include "dropped.h"
#include "instance_code.h"
#include "play.h"
#include "thole/orchestration.h"

#define A THOLE_STR("a")
/* An await of it returns at once. One place for all: what calls it and notes nothing is seen there. */
__attribute__((noinline)) static thole_task nowhere(thole_ctx *ctx)
{
    thole_task const task = thole_call(ctx, THOLE_STR("not a name"), A);
    CU_ASSERT_TRUE(task.id != 0); /* no tail call: it returns to here */
    return task;
}
#define NOWHERE nowhere(ctx)
#define CALLS(name, ...)                                                                                     \
    static void calls_##name(thole_ctx *ctx)                                                                 \
    {                                                                                                        \
        __VA_ARGS__;                                                                                         \
    }
CALLS(call, drop_task(thole_call(ctx, A, A)))
CALLS(call_with, drop_task(thole_call_with(ctx, A, A, NULL)))
CALLS(timer, drop_task(thole_timer(ctx, 1)))
CALLS(event, drop_task(thole_event(ctx, A)))
CALLS(raise, thole_raise(ctx, A, A, A))
CALLS(emit, thole_emit(ctx, A, A))
CALLS(child, drop_task(thole_child(ctx, A, A, NULL)))
CALLS(start, thole_start(ctx, A, A, NULL))
CALLS(await, thole_task const task = NOWHERE; play_ignore(thole_await(ctx, task, NULL)))
CALLS(await_all, thole_task const task = NOWHERE; play_ignore(thole_await_all(ctx, &task, 1, NULL)))
CALLS(await_any, thole_task const task = NOWHERE; size_t winner;
      play_ignore(thole_await_any(ctx, &task, 1, &winner)))
CALLS(await_first, thole_task const task = NOWHERE; size_t first;
      play_ignore(thole_await_first(ctx, &task, 1, &first)))
CALLS(ready, thole_task const task = NOWHERE; (void)thole_ready(ctx, task))
CALLS(cancel, thole_task const task = NOWHERE; thole_cancel(ctx, task, A))
CALLS(task_failure, thole_task const task = NOWHERE; (void)thole_task_failure(ctx, task))
CALLS(task_error, thole_task const task = NOWHERE; (void)thole_task_error(ctx, task))
CALLS(throw, play_ignore(thole_throw(ctx, "why")))
CALLS(throw_as, play_ignore(thole_throw_as(ctx, A, "why")))
CALLS(random, (void)thole_random(ctx))
CALLS(uuid, (void)thole_uuid(ctx))
CALLS(log, thole_log(ctx, THOLE_LOG_INFO, "line"))
CALLS(set_status, thole_set_status(ctx, A))
CALLS(on_query, thole_on_query(ctx, A, NULL, NULL))
CALLS(state_set, thole_state_set(ctx, A, A))
CALLS(state_get, thole_slice value; play_ignore(thole_state_get(ctx, A, &value)))
CALLS(state_next, thole_slice key, value; play_ignore(thole_state_next(ctx, A, &key, &value)))
CALLS(state_remove, thole_state_remove(ctx, A))
CALLS(patch, (void)thole_patch(ctx, A))
CALLS(saga_add, thole_saga saga = {NULL}; thole_saga_add(ctx, &saga, A, A, NULL))
CALLS(saga_compensate, thole_saga saga = {NULL}; play_ignore(thole_saga_compensate(ctx, &saga)))
CALLS(continue_as_new, play_ignore(thole_continue_as_new(ctx, A, 0)))

static const struct {
    const char *name;
    void (*call)(thole_ctx *ctx);
} calls[] = {
#define CALLED(name)                                                                                         \
    {                                                                                                        \
#name, calls_##name                                                                                  \
    }
    CALLED(call),
    CALLED(call_with),
    CALLED(timer),
    CALLED(event),
    CALLED(raise),
    CALLED(emit),
    CALLED(child),
    CALLED(start),
    CALLED(await),
    CALLED(await_all),
    CALLED(await_any),
    CALLED(await_first),
    CALLED(ready),
    CALLED(cancel),
    CALLED(task_failure),
    CALLED(task_error),
    CALLED(throw),
    CALLED(throw_as),
    CALLED(random),
    CALLED(uuid),
    CALLED(log),
    CALLED(set_status),
    CALLED(on_query),
    CALLED(state_set),
    CALLED(state_get),
    CALLED(state_next),
    CALLED(state_remove),
    CALLED(patch),
    CALLED(saga_add),
    CALLED(saga_compensate),
    CALLED(continue_as_new),
};

/* A second call from the same place is seen there, and one before it from elsewhere is not. */
static thole_status calls_all(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        (void)nowhere(ctx);
        const void *const in_nowhere = instance_call_site(ctx->instance);
        drop_task(thole_call(ctx, A, A));
        const void *const elsewhere = instance_call_site(ctx->instance);
        calls[i].call(ctx);
        const void *const site = instance_call_site(ctx->instance);
        drop_task(thole_call(ctx, A, A));
        calls[i].call(ctx);
        if (site == elsewhere || site == in_nowhere || site != instance_call_site(ctx->instance)) {
            printf("  [%s]\n", calls[i].name);
            CU_FAIL("its call site is not noted");
        }
    }
    return THOLE_OK;
}

static void call_sites(void)
{
    struct play play = play_of(calls_all);
    struct instance *live = play_instance(&play);
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t")};
    struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_turn(live, &in, &out, NULL), THOLE_OK);
    instance_destroy(live);
    play_release(&play);
}

static const struct thole_test tests[] = {
    {"call sites", call_sites},
};
THOLE_TEST_MAIN("instance_call_sites", tests)
