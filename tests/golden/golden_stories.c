/*
 * The orchestrations of the golden histories and what happens to them. What is here was run when its history
 * was written: an orchestration and its script may not be changed, only new ones be added.
 */
#include "golden.h"
#include "thole/orchestration.h"

#define S(literal)                                                                                           \
    {                                                                                                        \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                                   \
    }
#define LEN(array) (sizeof(array) / sizeof((array)[0]))

/* Rows of scripts. */
#define STARTED(orchestration, input)                                                                        \
    {                                                                                                        \
        .kind = EVENT_STARTED, .name = S(orchestration), .data = S(input), .code = SEMANTICS_VERSION,        \
        .request_id = S("r-1")                                                                               \
    }
#define COMPLETED(activity, output)                                                                          \
    {                                                                                                        \
        .kind = EVENT_ACTIVITY_COMPLETED, .ref = (activity), .data = S(output)                               \
    }
#define FAILED(activity, text)                                                                               \
    {                                                                                                        \
        .kind = EVENT_ACTIVITY_FAILED, .ref = (activity), .code = THOLE_APP, .data = S(text)                 \
    }
#define FIRED(timer)                                                                                         \
    {                                                                                                        \
        .kind = EVENT_TIMER_FIRED, .ref = (timer)                                                            \
    }
#define CANCEL(why)                                                                                          \
    {                                                                                                        \
        .kind = EVENT_CANCEL_REQUESTED, .data = S(why), .request_id = S("r-2")                               \
    }
#define AT(time, ...)                                                                                        \
    {                                                                                                        \
        .time_ms = (time), .received = (const struct event[]){__VA_ARGS__},                                  \
        .received_len = LEN(((const struct event[]){__VA_ARGS__}))                                           \
    }
#define RUN(time)                                                                                            \
    {                                                                                                        \
        .time_ms = (time)                                                                                    \
    }
#define HELD(time, ...)                                                                                      \
    {                                                                                                        \
        .time_ms = (time), .held = true, .received = (const struct event[]){__VA_ARGS__},                    \
        .received_len = LEN(((const struct event[]){__VA_ARGS__}))                                           \
    }
#define STORY(title, orchestration, script, ...)                                                             \
    {                                                                                                        \
        .name = (title), .code = (orchestration), .turns = (script), .turns_len = LEN(script), __VA_ARGS__   \
    }

/* ---- a race, an await, a failure of its own ---- */

static thole_status checkout(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task charge = thole_call(ctx, THOLE_STR("charge"), input);
    thole_task limit = thole_timer(ctx, 30000);
    size_t winner;
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){charge, limit}, 2, &winner));
    THOLE_TRY(winner == 0 ? thole_await(ctx, charge, &input) : thole_throw(ctx, "too late"));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("ship"), input), NULL));
    *ret_output = THOLE_STR("shipped");
    return THOLE_OK;
}

static const struct golden_turn checkout_shipped[] = {
    AT(1000, STARTED("checkout", "card")), AT(2000, COMPLETED(2, "paid")), AT(3000, COMPLETED(6, ""))};
static const struct golden_turn checkout_late[] = {AT(1000, STARTED("checkout", "card")),
                                                   AT(31000, FIRED(3))};
static const struct golden_turn checkout_declined[] = {AT(1000, STARTED("checkout", "card")),
                                                       AT(2000, FAILED(2, "declined"))};
static const struct golden_turn checkout_cancelled[] = {
    AT(1000, STARTED("checkout", "card")), AT(2000, COMPLETED(2, "paid")), AT(3000, CANCEL("why"))};
/* No code for a while: what came is delivered later, in order; a result that came twice counts once. */
static const struct golden_turn checkout_held[] = {
    HELD(1000, STARTED("checkout", "card")),      RUN(1500),  HELD(2000, COMPLETED(2, "paid")),
    HELD(32000, FIRED(3), COMPLETED(2, "again")), RUN(33000), AT(34000, COMPLETED(6, ""))};

/* ---- many at once, cancelling by hand, going on after a cancellation ---- */

static thole_status trip(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task bookings[6];
    thole_slice results[6];
    for (size_t i = 0; i < 6; i++)
        bookings[i] = thole_call(ctx, THOLE_STR("book"), thole_format(ctx, "%.*s %zu", THOLE_FMT(input), i));
    thole_task slow = thole_call(ctx, THOLE_STR("weather"), THOLE_STR(""));
    thole_status const status = thole_await_all(ctx, bookings, 6, results);
    thole_cancel(ctx, slow, THOLE_STR("not needed"));
    for (size_t i = 0; status != THOLE_OK && i < 6; i++)
        if (results[i].len > 0)
            THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("undo"), results[i]), NULL));
    *ret_output =
        thole_format(ctx, "%s at %llu", thole_status_name(status), (unsigned long long)thole_now_ms(ctx));
    return status == THOLE_CANCELLED ? status : THOLE_OK;
}

static const struct golden_turn trip_undone[] = {
    AT(1000, STARTED("trip", "Oslo")),
    AT(2000, COMPLETED(4, "c"), FAILED(5, "full"), COMPLETED(2, "a")),
    AT(3000, COMPLETED(7, "f"), COMPLETED(3, "b"), COMPLETED(6, "")),
    AT(4000, COMPLETED(16, "")),
    AT(4000, COMPLETED(18, "")),
    AT(3900, COMPLETED(20, "")),
    AT(5000, FAILED(22, "whatever"))};

/* ---- ---- */

const struct golden_story golden_stories[] = {
    STORY("checkout_shipped", checkout, checkout_shipped, ),
    STORY("checkout_late", checkout, checkout_late, ),
    STORY("checkout_declined", checkout, checkout_declined, ),
    STORY("checkout_cancelled", checkout, checkout_cancelled, ),
    STORY("checkout_held", checkout, checkout_held, ),
    STORY("trip_undone", trip, trip_undone, .part = 3),
};
const size_t golden_stories_len = LEN(golden_stories);
