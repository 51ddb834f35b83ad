/*
 * Checkout, a saga: reserve the goods, charge the card before a time limit, ship. What was done is undone
 * when the order does not come to its end, for whatever reason.
 *
 *   thole dev -- build/release/examples/checkout run
 *   thole run checkout --input 'order=17;pay_ms=50;limit_ms=1000'
 *
 * The orchestration is code that survives: kill the program at any point, start it again, and every order
 * goes on where it was. When the card takes longer than limit_ms, the timer wins the race and the charge is
 * cancelled: its activity is told at once, wherever it runs.
 *
 * Input: order (a number), pay_ms (how long the card takes; default 50), limit_ms (default 30000), declined
 * (1 = the bank says no), busy (so many times the bank does not answer).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <thole/program.h>
#include <time.h>

enum { PAY_MS = 50, LIMIT_MS = 30000 };

/* The number after "key=" in "order=17;pay_ms=50"; fallback when the key is missing. */
static uint64_t field(thole_slice text, const char *key, uint64_t fallback)
{
    size_t const key_len = strlen(key);
    for (size_t at = 0; at < text.len;) {
        const char *part = (const char *)text.ptr + at;
        const char *end = memchr(part, ';', text.len - at);
        size_t const len = end == NULL ? text.len - at : (size_t)(end - part);
        if (len > key_len && memcmp(part, key, key_len) == 0 && part[key_len] == '=') {
            uint64_t value = fallback;
            thole_status const status =
                thole_slice_u64(thole_slice_of(part + key_len + 1, len - key_len - 1), &value);
            return status == THOLE_OK ? value : fallback;
        }
        at += len + 1;
    }
    return fallback;
}

/* ---- the orchestration: deterministic, owns nothing, suspends only in thole_await...() ---- */

/* The compensation of each step is added before the step: an interrupted step may have had effects. */
static thole_status sell(thole_ctx *ctx, thole_slice order, thole_saga *undo, thole_slice *ret_output)
{
    static const thole_call_options patiently = {
        .size = sizeof patiently,
        .retry = {.tries_max = 5, .first_delay_ms = 100, .factor = 2, .max_delay_ms = 5000, .jitter = 0.2}};
    thole_slice reserved, tracking;
    size_t winner;

    thole_saga_add(ctx, undo, THOLE_STR("release"), order, NULL);
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("reserve"), order), &reserved));

    thole_saga_add(ctx, undo, THOLE_STR("refund"), order, &patiently);
    thole_task const charge = thole_call_with(ctx, THOLE_STR("charge"), order, &patiently);
    thole_task const limit = thole_timer(ctx, field(order, "limit_ms", LIMIT_MS));
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){charge, limit}, 2, &winner)); /* the loser is cancelled */
    if (winner == 1)
        return thole_throw_as(ctx, THOLE_STR("too_slow"), "the payment took too long");
    THOLE_TRY(thole_await(ctx, charge, NULL)); /* has ended: this only looks how */

    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("ship"), reserved), &tracking));
    *ret_output =
        thole_format(ctx, "order %" PRIu64 " shipped: %.*s", field(order, "order", 0), THOLE_FMT(tracking));
    return THOLE_OK;
}

static thole_status checkout(thole_ctx *ctx, thole_slice order, thole_slice *ret_output)
{
    thole_saga undo = {0};
    thole_status const status = sell(ctx, order, &undo, ret_output);
    if (status == THOLE_OK)
        return THOLE_OK;
    if (thole_saga_compensate(ctx, &undo) != THOLE_OK) /* the last step first; also after a cancellation */
        return thole_throw_as(ctx, THOLE_STR("stuck"), "the order could not be undone: look at it");
    return status;
}

/* ---- the activities: ordinary functions that may block ---- */

static thole_status reserve(thole_activity *act, thole_slice order, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "goods-%" PRIu64, field(order, "order", 0));
    return THOLE_OK;
}

/* The wall clock, so that it can be compared with what other programs on this machine print. */
static void say(const thole_activity *act, const char *what, thole_slice why)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(stderr, "charge of %.*s %s at_us=%" PRIu64 " %.*s\n", THOLE_FMT(thole_activity_instance(act)),
            what, (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000, THOLE_FMT(why));
}

/* A card that takes its time. A real one would send thole_activity_key() along, so that a second run after a
 * crash does not charge twice. */
static thole_status charge(thole_activity *act, thole_slice order, thole_slice *ret_output)
{
    say(act, "begins", order);
    if (thole_activity_try(act) <= field(order, "busy", 0))
        return thole_activity_fail(act, "the bank does not answer");
    if (thole_activity_wait(act, field(order, "pay_ms", PAY_MS)) == THOLE_CANCELLED) { /* at once */
        say(act, "cancelled", thole_activity_cancel_reason(act));
        return THOLE_CANCELLED;
    }
    if (field(order, "declined", 0) != 0)
        return thole_activity_fail_final(act, THOLE_STR("declined"), "the card was declined");
    *ret_output = THOLE_STR("charged");
    return THOLE_OK;
}

static thole_status ship(thole_activity *act, thole_slice goods, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "parcel with %.*s", THOLE_FMT(goods));
    return THOLE_OK;
}

/* Undoing what was never done must do nothing. These two only say that they were here. */
static thole_status undo_step(thole_activity *act, thole_slice order, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "%.*s of order %" PRIu64, THOLE_FMT(thole_activity_name(act)),
                                        field(order, "order", 0));
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {{.name = "checkout", .run = checkout}};
static const thole_activity_entry activities[] = {{.name = "reserve", .run = reserve},
                                                  {.name = "charge", .run = charge},
                                                  {.name = "ship", .run = ship},
                                                  {.name = "release", .run = undo_step},
                                                  {.name = "refund", .run = undo_step}};
static const thole_program program = {.size = sizeof program,
                                      .name = "checkout",
                                      THOLE_ORCHESTRATIONS_OF(orchestrations),
                                      THOLE_ACTIVITIES_OF(activities)};

int main(int argc, char **argv)
{
    return thole_main(argc, argv, &program);
}
