/*
 * The orchestrations of the golden histories and what happens to them. What is here was run when its history
 * was written: an orchestration and its script may not be changed, only new ones be added.
 */
#include "dropped.h"
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

/* ---- tries ---- */

static thole_status charges(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice const final_types[] = {THOLE_STR("fraud")};
    thole_call_options const options = {.size = sizeof options,
                                        .queue = THOLE_STR("cards"),
                                        .try_timeout_ms = 500,
                                        .total_timeout_ms = 60000,
                                        .retry = {.tries_max = 4,
                                                  .first_delay_ms = 1000,
                                                  .factor = 2.5,
                                                  .max_delay_ms = 5000,
                                                  .jitter = 0.5,
                                                  .final_types = final_types,
                                                  .final_types_len = 1}};
    thole_task charge = thole_call_with(ctx, THOLE_STR("charge"), input, &options);
    thole_status const status = thole_await(ctx, charge, ret_output);
    thole_failure const failure = thole_task_failure(ctx, charge);
    if (status != THOLE_OK)
        *ret_output = thole_format(ctx, "%s %.*s after %u: %.*s", thole_status_name(status),
                                   THOLE_FMT(failure.type), failure.tries, THOLE_FMT(failure.message));
    return THOLE_OK;
}

#define DECLINED(activity, number, type)                                                                     \
    {                                                                                                        \
        .kind = EVENT_ACTIVITY_FAILED, .ref = (activity), .try_number = (number), .code = THOLE_APP,         \
        .error_type = S(type), .data = S("declined"), .details = S("half")                                   \
    }
#define TIMED_OUT(activity, number)                                                                          \
    {                                                                                                        \
        .kind = EVENT_ACTIVITY_FAILED, .ref = (activity), .try_number = (number), .code = THOLE_TIMEOUT      \
    }
#define PAID(activity, number)                                                                               \
    {                                                                                                        \
        .kind = EVENT_ACTIVITY_COMPLETED, .ref = (activity), .try_number = (number), .data = S("paid")       \
    }

static const struct golden_turn tries_paid[] = {AT(1000, STARTED("charges", "card")),
                                                AT(2000, DECLINED(2, 1, "busy")),
                                                AT(3000, FIRED(2)),
                                                AT(3500, PAID(2, 1), TIMED_OUT(2, 2)),
                                                AT(9000, FIRED(2)),
                                                AT(9100, PAID(2, 3))};
static const struct golden_turn tries_final[] = {AT(1000, STARTED("charges", "card")),
                                                 AT(2000, DECLINED(2, 1, "busy")), AT(3000, FIRED(2)),
                                                 AT(3500, DECLINED(2, 2, "fraud"))};
static const struct golden_turn tries_over[] = {AT(1000, STARTED("charges", "card")),
                                                AT(2000, DECLINED(2, 1, "busy")),
                                                AT(7000, FIRED(2)),
                                                HELD(8000, DECLINED(2, 2, "")),
                                                HELD(13000, FIRED(2)),
                                                AT(61000, FIRED(2))};
static const struct golden_turn tries_cancelled[] = {
    AT(1000, STARTED("charges", "card")), AT(2000, DECLINED(2, 1, "busy")), AT(2500, CANCEL("why"))};

/* ---- external events ---- */

static thole_status approval(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice first, second;
    thole_raise(ctx, input, THOLE_STR("please"), thole_instance_id(ctx));
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("approved")), &first));
    thole_task again = thole_event(ctx, THOLE_STR("approved")), limit = thole_timer(ctx, 5000);
    size_t winner;
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){again, limit}, 2, &winner));
    thole_task other = thole_event(ctx, THOLE_STR("withdrawn"));
    thole_cancel(ctx, other, THOLE_STR("enough"));
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("approved")), &second));
    *ret_output = thole_format(ctx, "%zu %.*s %.*s", winner, THOLE_FMT(first), THOLE_FMT(second));
    return THOLE_OK;
}

#define RAISED(event, value, id)                                                                             \
    {                                                                                                        \
        .kind = EVENT_EVENT_RECEIVED, .name = S(event), .data = S(value), .request_id = S(id)                \
    }

static const struct golden_turn events_kept[] = {
    AT(1000, STARTED("approval", "boss"), RAISED("approved", "a", "e-1")),
    AT(2000, RAISED("other", "x", "e-2")), AT(6000, FIRED(6)),
    AT(7000, RAISED("approved", "a", "e-1"), RAISED("approved", "b", ""))};
static const struct golden_turn events_awaited[] = {
    AT(1000, STARTED("approval", "boss")),
    AT(2000, RAISED("approved", "a", "e-1"), RAISED("withdrawn", "w", "e-2"), RAISED("approved", "b", "e-3")),
    HELD(3000, RAISED("approved", "c", "e-4"), RAISED("approved", "a", "e-1")), RUN(3500)};

/* ---- events for other services ---- */

static thole_status emits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_emit(ctx, THOLE_STR("order.taken"), input);
    thole_emit(ctx, THOLE_STR("order.taken"), input);
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 5000), NULL));
    thole_emit(ctx, THOLE_STR("com.example.order.shipped"), THOLE_STR(""));
    *ret_output = thole_format(ctx, "shipped");
    return THOLE_OK;
}

static const struct golden_turn events_emitted[] = {AT(1000, STARTED("emits", "{\"order\":17}")),
                                                    AT(6000, FIRED(4))};

/* ---- children ---- */

static thole_status parent(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options options = {.size = sizeof options,
                                   .instance = THOLE_STR("ship/1"),
                                   .version = 2,
                                   .close = THOLE_CLOSE_TERMINATE};
    thole_task ship = thole_child(ctx, THOLE_STR("ship"), input, &options);
    thole_task pack = thole_child(ctx, THOLE_STR("pack"), input, NULL);
    options = (thole_child_options){.size = sizeof options, .close = THOLE_CLOSE_ABANDON};
    thole_task mail = thole_child(ctx, THOLE_STR("mail"), input, &options);
    thole_task late = thole_child(ctx, THOLE_STR("late"), input, NULL);
    options = (thole_child_options){.size = sizeof options, .instance = THOLE_STR("audit/1"), .version = 3};
    thole_start(ctx, THOLE_STR("audit"), input, &options);
    thole_start(ctx, THOLE_STR("audit"), input, NULL);
    thole_status const packed = thole_await(ctx, pack, NULL);
    thole_failure const failure = thole_task_failure(ctx, pack);
    thole_cancel(ctx, late, THOLE_STR("too late"));
    size_t first;
    THOLE_TRY(thole_await_first(ctx, (thole_task[]){ship, mail}, 2, &first));
    if (first == 0)
        THOLE_TRY(thole_await(ctx, ship, ret_output));
    else
        *ret_output = thole_format(ctx, "%s %.*s", thole_status_name(packed), THOLE_FMT(failure.type));
    return THOLE_OK;
}

#define CHILD_DONE(child, output)                                                                            \
    {                                                                                                        \
        .kind = EVENT_CHILD_COMPLETED, .ref = (child), .data = S(output)                                     \
    }
#define CHILD_FAILED(child, status, type)                                                                    \
    {                                                                                                        \
        .kind = EVENT_CHILD_FAILED, .ref = (child), .code = (status), .error_type = S(type),                 \
        .data = S("why")                                                                                     \
    }
#define PARENT_STARTED                                                                                       \
    {                                                                                                        \
        .kind = EVENT_STARTED, .name = S("parent"), .data = S("box"), .version = 2, .parent = {              \
            S("grandparent"),                                                                                \
            3,                                                                                               \
            4                                                                                                \
        }                                                                                                    \
    }

static const struct golden_turn children_done[] = {
    AT(1000, PARENT_STARTED), AT(2000, CHILD_DONE(3, "packed")), AT(3000, CHILD_DONE(2, "shipped"))};
static const struct golden_turn children_left[] = {
    AT(1000, PARENT_STARTED), AT(2000, CHILD_FAILED(3, THOLE_CONFLICT, "conflict"), CHILD_DONE(3, "again")),
    AT(3000, CHILD_FAILED(4, THOLE_CANCELLED, ""))};
static const struct golden_turn children_cancelled[] = {AT(1000, PARENT_STARTED), AT(2000, CANCEL("why"))};

/* ---- continue-as-new, state, custom status ---- */

static thole_status counter(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice step, value = THOLE_STR("");
    thole_set_status(ctx, thole_format(ctx, "round %.*s", THOLE_FMT(input)));
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("step")), &step));
    if (thole_state_get(ctx, THOLE_STR("total"), &value) != THOLE_OK)
        value = THOLE_STR("");
    thole_state_set(ctx, THOLE_STR("total"),
                    thole_format(ctx, "%.*s%.*s", THOLE_FMT(value), THOLE_FMT(step)));
    thole_state_set(ctx, THOLE_STR("gone"), step);
    thole_state_remove(ctx, THOLE_STR("gone"));
    thole_state_set(ctx, THOLE_STR("last"), step);
    if (step.len > 0 && step.ptr[0] == '.') {
        thole_slice key = THOLE_STR("");
        while (thole_state_next(ctx, key, &key, &value) == THOLE_OK)
            *ret_output =
                thole_format(ctx, "%.*s%.*s=%.*s ", THOLE_FMT(*ret_output), THOLE_FMT(key), THOLE_FMT(value));
        return THOLE_OK;
    }
    drop_task(thole_timer(ctx, 1000));
    return thole_continue_as_new(ctx, thole_format(ctx, "%llu", (unsigned long long)thole_execution_id(ctx)),
                                 0);
}

static const struct golden_turn counter_first[] = {
    AT(1000, STARTED("counter", "0"), RAISED("other", "o", "e-1")),
    AT(2000, RAISED("step", "a", "e-2")),
};
static const struct golden_turn counter_second[] = {RUN(0), AT(3000, RAISED("step", "again", "e-2"),
                                                               RAISED("step", "b", "e-3"),
                                                               RAISED("step", ".", "e-4"), CANCEL("soon"))};
static const struct golden_turn counter_third[] = {RUN(0)};

/* ---- changes of code ---- */

static thole_status before_change(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("slow-tax"), input), ret_output);
}

static thole_status with_change(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    bool const fast = thole_patch(ctx, THOLE_STR("fast-tax"));
    thole_slice const name = fast ? THOLE_STR("fast-tax") : THOLE_STR("slow-tax");
    THOLE_TRY(thole_await(ctx, thole_call(ctx, name, input), ret_output));
    if (thole_patch(ctx, THOLE_STR("receipt")))
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("receipt"), input), NULL));
    return thole_patch(ctx, THOLE_STR("fast-tax")) == fast ? THOLE_OK : THOLE_INVALID;
}

static thole_status after_change(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("fast-tax"), input), ret_output));
    return thole_await(ctx, thole_call(ctx, THOLE_STR("receipt"), input), NULL);
}

static const struct golden_turn tax_old[] = {AT(1000, STARTED("tax", "10")), AT(2000, COMPLETED(2, "1"))};
static const struct golden_turn tax_new[] = {AT(1000, STARTED("tax", "10")), AT(2000, COMPLETED(3, "1")),
                                             AT(3000, COMPLETED(6, ""))};

/* ---- versions: chosen where the code first runs ---- */

static thole_status versioned(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 1000), NULL));
    *ret_output = thole_format(ctx, "%.*s %u", THOLE_FMT(input), thole_version_id(ctx));
    return THOLE_OK;
}

static const struct golden_turn version_filled[] = {AT(1000, STARTED("versioned", "v")), AT(2000, FIRED(2))};
static const struct golden_turn version_chosen[] = {HELD(1000, STARTED("versioned", "v")), RUN(1500),
                                                    AT(2500, FIRED(3))};

/* ---- values from outside ---- */

static thole_status make_value(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    *ret_value = thole_format(ctx, "%s", (const char *)arg);
    return THOLE_OK;
}

static thole_status make_nothing(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    (void)ctx, (void)arg, (void)ret_value;
    return THOLE_UNAVAILABLE;
}

static thole_status values(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    char value[] = "from outside";
    thole_slice made, id = thole_instance_id(ctx), uuid = thole_uuid(ctx);
    THOLE_TRY(thole_side_effect(ctx, make_value, value, &made));
    thole_status const nothing = thole_side_effect(ctx, make_nothing, NULL, &made);
    thole_log(ctx, THOLE_LOG_INFO, "made %zu bytes", made.len);
    input =
        thole_format(ctx, "%.*s %.*s %s %.*s %llu %llu %llu", THOLE_FMT(input), THOLE_FMT(made),
                     thole_status_name(nothing), THOLE_FMT(id), (unsigned long long)thole_execution_id(ctx),
                     (unsigned long long)thole_random(ctx), (unsigned long long)thole_now_ms(ctx));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("use"), input), NULL));
    *ret_output = thole_format(ctx, "%.*s %llu", THOLE_FMT(uuid), (unsigned long long)thole_random(ctx));
    return THOLE_OK;
}

static const struct golden_turn values_used[] = {AT(1700000000000, STARTED("values", "v")),
                                                 AT(1700000000500, COMPLETED(4, ""))};

/* ---- pause, resume, terminate ---- */

static thole_status patient(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {.size = sizeof options, .close = THOLE_CLOSE_ABANDON};
    thole_call_options const tries = {.size = sizeof tries, .total_timeout_ms = 9000};
    thole_task const tasks[] = {thole_call(ctx, THOLE_STR("a"), input),
                                thole_timer(ctx, 1000),
                                thole_event(ctx, THOLE_STR("e")),
                                thole_call_with(ctx, THOLE_STR("b"), input, &tries),
                                thole_child(ctx, THOLE_STR("c"), input, NULL),
                                thole_child(ctx, THOLE_STR("d"), input, &options)};
    for (size_t i = 0; i < LEN(tasks); i++)
        THOLE_TRY(thole_await(ctx, tasks[i], ret_output));
    return THOLE_OK;
}

#define ASKED(what, why, id)                                                                                 \
    {                                                                                                        \
        .kind = (what), .data = S(why), .request_id = S(id)                                                  \
    }
#define PAUSE(id) ASKED(EVENT_PAUSED, "wait", id)
#define RESUME(id) ASKED(EVENT_RESUMED, "go on", id)
#define TERMINATE ASKED(EVENT_TERMINATE_REQUESTED, "stop", "t-1")

static const struct golden_turn paused_resumed[] = {AT(1000, STARTED("patient", "p")),
                                                    AT(1500, PAUSE("p-1")),
                                                    AT(2000, COMPLETED(2, "a"), FIRED(3)),
                                                    AT(2500, RAISED("e", "e", "e-1")),
                                                    AT(3000, RESUME("p-2")),
                                                    AT(3500, PAUSE("p-1")),
                                                    AT(4000, COMPLETED(5, "b")),
                                                    AT(5000, CHILD_DONE(6, "c"), CHILD_DONE(7, "d"))};
static const struct golden_turn paused_cancelled[] = {AT(1000, STARTED("patient", "p")),
                                                      AT(1500, PAUSE("p-1")), AT(2000, COMPLETED(2, "a")),
                                                      AT(3000, CANCEL("why"))};
static const struct golden_turn paused_terminated[] = {AT(1000, STARTED("patient", "p"), PAUSE("p-1")),
                                                       AT(2000, TERMINATE)};
static const struct golden_turn terminated[] = {
    AT(1000, STARTED("patient", "p")), AT(1500, COMPLETED(2, "a")), HELD(2000, COMPLETED(5, "b"), TERMINATE)};

/* ---- undoing after a cancellation, typed failures ---- */

static thole_status journey(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_saga saga = {0};
    thole_status status = thole_await(ctx, thole_call(ctx, THOLE_STR("hotel"), input), NULL);
    if (status == THOLE_OK)
        thole_saga_add(ctx, &saga, THOLE_STR("no-hotel"), input, NULL);
    if (status == THOLE_OK)
        status = thole_await(ctx, thole_call(ctx, THOLE_STR("train"), input), NULL);
    if (status == THOLE_OK)
        thole_saga_add(ctx, &saga, THOLE_STR("no-train"), input, NULL);
    thole_task const plane = thole_call(ctx, THOLE_STR("plane"), input);
    if (status == THOLE_OK)
        status = thole_await(ctx, plane, ret_output);
    if (status == THOLE_OK)
        return THOLE_OK;
    thole_status const undone = thole_saga_compensate(ctx, &saga);
    if (thole_is_cancelled(ctx))
        return THOLE_CANCELLED;
    return thole_throw_as(ctx, THOLE_STR("no.plane"), "%s, %s", thole_status_name(status),
                          thole_status_name(undone));
}

static const struct golden_turn journey_undone[] = {
    AT(1000, STARTED("journey", "Oslo")), AT(2000, COMPLETED(2, "")),  AT(3000, COMPLETED(4, "")),
    AT(4000, FAILED(6, "full")),          AT(5000, FAILED(8, "lost")), AT(6000, COMPLETED(10, ""))};
static const struct golden_turn journey_cancelled[] = {
    AT(1000, STARTED("journey", "Oslo")), AT(2000, COMPLETED(2, "")),
    AT(3000, COMPLETED(4, "")),           AT(4000, CANCEL("ill")),
    AT(5000, COMPLETED(9, "")),           AT(6000, COMPLETED(11, ""))};

/* ---- ---- */

const struct golden_story golden_stories[] = {
    STORY("checkout_shipped", checkout, checkout_shipped, ),
    STORY("checkout_late", checkout, checkout_late, ),
    STORY("checkout_declined", checkout, checkout_declined, ),
    STORY("checkout_cancelled", checkout, checkout_cancelled, ),
    STORY("checkout_held", checkout, checkout_held, ),
    STORY("trip_undone", trip, trip_undone, .part = 3),
    STORY("tries_paid", charges, tries_paid, .version = 1),
    STORY("tries_final", charges, tries_final, .version = 1),
    STORY("tries_over", charges, tries_over, .version = 1),
    STORY("tries_cancelled", charges, tries_cancelled, .version = 1),
    STORY("events_kept", approval, events_kept, .version = 1),
    STORY("events_awaited", approval, events_awaited, .version = 1, .part = 2),
    STORY("events_emitted", emits, events_emitted, .version = 1, .part = 1),
    STORY("children_done", parent, children_done, .version = 2),
    STORY("children_left", parent, children_left, .version = 2),
    STORY("children_cancelled", parent, children_cancelled, .version = 2),
    STORY("counter_first", counter, counter_first, .version = 1),
    STORY("counter_second", counter, counter_second, .version = 1, .follows = "counter_first"),
    STORY("counter_third", counter, counter_third, .version = 1, .follows = "counter_second"),
    STORY("tax_old", with_change, tax_old, .version = 1, .written_by = before_change),
    STORY("tax_new", with_change, tax_new, .version = 1),
    STORY("tax_dropped", after_change, tax_new, .version = 1, .written_by = with_change),
    STORY("version_filled", versioned, version_filled, .version = 7),
    STORY("version_chosen", versioned, version_chosen, .version = 7),
    STORY("values_used", values, values_used, .version = 1),
    STORY("paused_resumed", patient, paused_resumed, .version = 1),
    STORY("paused_cancelled", patient, paused_cancelled, .version = 1),
    STORY("paused_terminated", patient, paused_terminated, .version = 1),
    STORY("terminated", patient, terminated, .version = 1),
    STORY("checkout_told", checkout, checkout_shipped, ), /* semantics 2: losers are told who has won */
    STORY("checkout_told_late", checkout, checkout_late, ),
    STORY("journey_undone", journey, journey_undone, .version = 1),
    STORY("journey_cancelled", journey, journey_cancelled, .version = 1),
    STORY("children_closed", parent, children_cancelled, .version = 2), /* semantics 3: terminated, too */
};
const size_t golden_stories_len = LEN(golden_stories);
