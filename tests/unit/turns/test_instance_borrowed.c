/* Arguments of an orchestration are borrowed for the call: one that has a single buffer for all of them,
 * overwritten after each call, has the same history as one that passes constants. */
#include "dropped.h"
#include "play.h"
#include "thole/orchestration.h"

enum { BUFFERS = 6, BUFFER_BYTES = 64 };

struct lender {
    bool overwrites;
    size_t next;
    char bytes[BUFFERS][BUFFER_BYTES];
};

static thole_slice lend(struct lender *l, const char *text)
{
    char *to = l->bytes[l->next++];
    (void)snprintf(to, BUFFER_BYTES, "%s", text);
    return thole_slice_from(to);
}

/* Called after each call. */
static void take_back(struct lender *l)
{
    if (l->overwrites)
        memset(l->bytes, 'X', sizeof l->bytes);
    l->next = 0;
}

static thole_status make(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    (void)ctx;
    *ret_value = lend(arg, "made");
    return THOLE_OK;
}

static thole_status answer(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)arg, (void)input;
    *ret_output = THOLE_STR("answer");
    return THOLE_OK;
}

static void schedule(thole_ctx *ctx, struct lender *l, thole_task ret[3])
{
    thole_slice const types[] = {lend(l, "odd"), lend(l, "strange")};
    thole_call_options const options = {
        .size = sizeof options,
        .queue = lend(l, "gpu"),
        .retry = {.tries_max = 2, .first_delay_ms = 100, .final_types = types, .final_types_len = 2}};
    ret[0] = thole_call_with(ctx, lend(l, "charge"), lend(l, "card"), &options);
    take_back(l);
    thole_child_options const child = {.size = sizeof child, .instance = lend(l, "kid")};
    ret[1] = thole_child(ctx, lend(l, "pack"), lend(l, "goods"), &child);
    take_back(l);
    ret[2] = thole_event(ctx, lend(l, "item"));
    take_back(l);
    thole_child_options const apart = {.size = sizeof apart, .instance = lend(l, "apart")};
    thole_start(ctx, lend(l, "audit"), lend(l, "all"), &apart);
    take_back(l);
}

static void say(thole_ctx *ctx, struct lender *l)
{
    thole_slice value = {0};
    thole_raise(ctx, lend(l, "other"), lend(l, "news"), lend(l, "good"));
    take_back(l);
    thole_emit(ctx, lend(l, "news"), lend(l, "better"));
    take_back(l);
    thole_state_set(ctx, lend(l, "key"), lend(l, "value"));
    take_back(l);
    thole_state_set(ctx, lend(l, "gone"), lend(l, "soon"));
    take_back(l);
    thole_state_remove(ctx, lend(l, "gone"));
    take_back(l);
    thole_set_status(ctx, lend(l, "busy"));
    take_back(l);
    thole_on_query(ctx, lend(l, "a"), answer, NULL);
    take_back(l);
    (void)thole_patch(ctx, lend(l, "change"));
    take_back(l);
    if (thole_side_effect(ctx, make, l, &value) == THOLE_OK) {
        take_back(l);
        drop_task(thole_call(ctx, THOLE_STR("audit"), value));
    }
}

static thole_status all(thole_ctx *ctx, struct lender *l, thole_slice *ret_output)
{
    thole_task tasks[3];
    thole_saga saga = {0};
    schedule(ctx, l, tasks);
    say(ctx, l);
    thole_saga_add(ctx, &saga, lend(l, "refund"), lend(l, "card"), NULL);
    take_back(l);
    thole_status const status = thole_await(ctx, tasks[0], ret_output);
    thole_cancel(ctx, tasks[1], lend(l, "not needed"));
    take_back(l);
    if (status != THOLE_OK) {
        play_ignore(thole_saga_compensate(ctx, &saga));
        return thole_throw_as(ctx, THOLE_STR("odd"), "%s", "it failed");
    }
    thole_status const again = thole_continue_as_new(ctx, lend(l, "next"), 0);
    take_back(l);
    return again;
}

static thole_status keeps(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    struct lender l = {.overwrites = false};
    (void)input;
    return all(ctx, &l, ret_output);
}

static thole_status overwrites(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    struct lender l = {.overwrites = true};
    (void)input;
    return all(ctx, &l, ret_output);
}

static void check(const char *script, const char *ends_with)
{
    struct play play = play_of(keeps), other = play_of(overwrites);
    struct buf want, got;
    buf_init(&want, PLAY_TEXT_MAX);
    buf_init(&got, PLAY_TEXT_MAX);
    play_live(&play, script, &want);
    play_live(&other, script, &got);
    CHECK_STR(script, buf_cstr(&got), buf_cstr(&want));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&want), ends_with));
    buf_release(&want);
    buf_release(&got);
    play_release(&play);
    play_release(&other);
}

static void borrowed(void)
{
    check("Started t(x) / ActivityCompleted #2 (paid)", "ContinuedAsNew (next)");
    check("Started t(x) / ActivityFailed #2 APP odd (no) / ActivityCompleted #17 (back)",
          "Failed APP odd (it failed)");
}

static const struct thole_test tests[] = {{"what code passes is borrowed", borrowed}};
THOLE_TEST_MAIN("instance_borrowed", tests)
