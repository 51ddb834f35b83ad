/* Queries, sagas, call sites, and what an orchestration may ask about itself. */
#include "dropped.h"
#include "play.h"
#include "thole/orchestration.h"

/* ---- queries ---- */

struct order {
    int steps;
};

static thole_status how_far(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    struct order *order = arg;
    thole_slice value = {0}, key = {0};
    play_ignore(thole_state_get(ctx, THOLE_STR("k"), &value));
    play_ignore(thole_state_next(ctx, key, &key, &value));
    thole_log(ctx, THOLE_LOG_INFO, "nobody reads this");
    *ret_output =
        thole_format(ctx, "%.*s: %d steps, %.*s=%.*s, %.*s, at %llu, %d", THOLE_FMT(input), order->steps,
                     THOLE_FMT(key), THOLE_FMT(value), THOLE_FMT(thole_instance_id(ctx)),
                     (unsigned long long)thole_now_ms(ctx), thole_is_cancelled(ctx));
    return THOLE_OK;
}

enum { FORBIDDEN = 17 };
static thole_status forbidden(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    thole_saga saga = {0};
    thole_slice value;
    size_t index;
    thole_task const one = {2};
    (void)arg;
    *ret_output = input;
    switch (input.ptr[0] - 'a') {
    case 0: drop_task(thole_call(ctx, input, input)); break;
    case 1: drop_task(thole_call_with(ctx, input, input, NULL)); break;
    case 2: drop_task(thole_timer(ctx, 1)); break;
    case 3: drop_task(thole_event(ctx, input)); break;
    case 4: thole_raise(ctx, input, input, input); break;
    case 5: drop_task(thole_child(ctx, input, input, NULL)); break;
    case 6: thole_start(ctx, input, input, NULL); break;
    case 7: play_ignore(thole_await(ctx, one, NULL)); break;
    case 8: play_ignore(thole_await_first(ctx, &one, 1, &index)); break;
    case 9: thole_cancel(ctx, one, input); break;
    case 10: (void)thole_random(ctx); break;
    case 11: play_ignore(thole_side_effect(ctx, NULL, NULL, &value)); break;
    case 12: thole_set_status(ctx, input); break;
    case 13: thole_state_set(ctx, input, input); break;
    case 14: play_ignore(thole_continue_as_new(ctx, input, 0)); break;
    case 15: (void)thole_patch(ctx, input); break;
    case 16: thole_saga_add(ctx, &saga, input, input, NULL); break;
    case FORBIDDEN: thole_on_query(ctx, input, forbidden, NULL); break;
    case FORBIDDEN + 1: thole_state_remove(ctx, THOLE_STR("k")); break;
    case FORBIDDEN + 2: (void)thole_uuid(ctx); break;
    case FORBIDDEN + 4: thole_emit(ctx, input, input); break;
    case FORBIDDEN + 3: play_ignore(thole_await_any(ctx, &one, 1, &index)); break;
    default: play_ignore(thole_saga_compensate(ctx, &saga)); break;
    }
    return THOLE_OK;
}

static thole_status stubborn(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg, (void)input, (void)ret_output;
    while (thole_await(ctx, (thole_task){2}, NULL) != THOLE_OK)
        ;
    return THOLE_OK;
}

static thole_status greedy(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg, (void)ret_output, (void)input;
    while (thole_alloc(ctx, 1000) != NULL)
        ;
    return THOLE_LIMIT;
}

static thole_status throws(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg, (void)ret_output;
    return thole_throw(ctx, "no %.*s", THOLE_FMT(input));
}

static thole_status large(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg, (void)input;
    *ret_output = (thole_slice){thole_alloc(ctx, 257), 257};
    return THOLE_OK;
}

static thole_status asked(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    struct order order = {0};
    (void)ret_output;
    thole_on_query(ctx, THOLE_STR("how-far"), forbidden, NULL);
    thole_on_query(ctx, THOLE_STR("how-far"), how_far, &order); /* the later one counts */
    thole_on_query(ctx, THOLE_STR("forbidden"), forbidden, NULL);
    thole_on_query(ctx, THOLE_STR("stubborn"), stubborn, NULL);
    thole_on_query(ctx, THOLE_STR("greedy"), greedy, NULL);
    thole_on_query(ctx, THOLE_STR("throws"), throws, NULL);
    thole_on_query(ctx, THOLE_STR("large"), large, NULL);
    thole_on_query(ctx, THOLE_STR("not a name"), how_far, &order);
    thole_state_set(ctx, THOLE_STR("k"), input);
    for (;;) {
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("step")), NULL));
        order.steps++;
    }
}

struct asking {
    struct play play;
    struct instance *instance;
};

static void feed(struct asking *a, enum event_kind kind)
{
    struct event const event = {.kind = kind,
                                .name = kind == EVENT_STARTED ? THOLE_STR("t") : THOLE_STR("step"),
                                .data = THOLE_STR("v")};
    struct turn_in const in = {.time_ms = 70, .received = &event, .received_len = 1, .run = true};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_turn(a->instance, &in, &out, NULL), THOLE_OK);
}

static struct asking asking_begin(void)
{
    struct asking a = {.play = play_of(asked)};
    a.instance = play_instance(&a.play);
    feed(&a, EVENT_STARTED);
    return a;
}

static void asking_end(struct asking *a)
{
    instance_destroy(a->instance);
    CU_ASSERT_EQUAL(stack_pool_in_use(a->play.stacks), 0);
    play_release(&a->play);
}

static void ask(struct asking *a, const char *name, const char *input, thole_status expected,
                const char *text)
{
    char got[700];
    thole_slice output = {0};
    thole_error err = {.text = ""};
    thole_status const status =
        instance_query(a->instance, thole_slice_from(name), thole_slice_from(input), &output, &err);
    CU_ASSERT_EQUAL(status, expected);
    (void)snprintf(got, sizeof got, "%.*s%s", THOLE_FMT(output), err.text);
    CHECK_STR(name, got, text);
}

static void answers(void)
{
    struct asking a = asking_begin();
    ask(&a, "how-far", "hm", THOLE_OK, "hm: 0 steps, k=v, order-1, at 70, 0");
    feed(&a, EVENT_EVENT_RECEIVED);
    feed(&a, EVENT_EVENT_RECEIVED);
    ask(&a, "how-far", "hm", THOLE_OK, "hm: 2 steps, k=v, order-1, at 70, 0");
    ask(&a, "throws", "thanks", THOLE_APP, "no thanks");
    ask(&a, "none", "", THOLE_NOT_FOUND,
        "there is no query 'none'; the instance answers: large, throws, greedy, stubborn, forbidden, "
        "how-far");
    ask(&a, "not a name", "", THOLE_NOT_FOUND,
        "there is no query 'not a name'; the instance answers: large, throws, greedy, stubborn, forbidden, "
        "how-far");
    ask(&a, "greedy", "", THOLE_LIMIT, "a configured limit was reached");
    ask(&a, "large", "", THOLE_LIMIT, "the answer has 257 bytes, at most 256 are allowed");
    ask(&a, "how-far", "hm", THOLE_OK, "hm: 2 steps, k=v, order-1, at 70, 0");
    size_t const memory = instance_memory(a.instance);
    for (int i = 0; i < 1000; i++)
        ask(&a, "how-far", "hm", THOLE_OK, "hm: 2 steps, k=v, order-1, at 70, 0");
    CU_ASSERT(instance_memory(a.instance) <= memory);
    feed(&a, EVENT_EVENT_RECEIVED);
    ask(&a, "how-far", "hm", THOLE_OK, "hm: 3 steps, k=v, order-1, at 70, 0");
    asking_end(&a);
}

#define REFUSED "the query tried to schedule, wait or set something"
static void refused(void)
{
    struct asking a = asking_begin(), untouched = asking_begin();
    size_t const memory = instance_memory(a.instance);
    for (char what[] = "a"; what[0] <= 'a' + FORBIDDEN + 5; what[0]++)
        ask(&a, "forbidden", what, THOLE_INVALID, REFUSED);
    ask(&a, "stubborn", "", THOLE_INVALID, REFUSED);
    CU_ASSERT_EQUAL(stack_pool_in_use(a.play.stacks), 1);
    ask(&a, "how-far", "hm", THOLE_OK, "hm: 0 steps, k=v, order-1, at 70, 0");
    instance_trim(a.instance);
    CU_ASSERT(instance_memory(a.instance) <= memory);
    feed(&a, EVENT_EVENT_RECEIVED); /* goes on as one that nobody asked */
    feed(&untouched, EVENT_EVENT_RECEIVED);
    CU_ASSERT(
        thole_slice_equal(instance_custom_status(a.instance), instance_custom_status(untouched.instance)));
    ask(&a, "how-far", "hm", THOLE_OK, "hm: 1 steps, k=v, order-1, at 70, 0");
    asking_end(&a);
    asking_end(&untouched);
}

static void nobody_can_answer(void)
{
    struct asking a = asking_begin();
    feed(&a, EVENT_TERMINATE_REQUESTED);
    ask(&a, "how-far", "", THOLE_INVALID,
        "the execution has ended, and what query 'how-far' is about stood on its stack: keep it in memory of "
        "thole_alloc()");
    ask(&a, "throws", "thanks", THOLE_APP, "no thanks"); /* the argument was not on the stack */
    asking_end(&a);
    a.play = play_of(asked);
    a.instance = play_codeless(&a.play);
    ask(&a, "how-far", "", THOLE_INVALID, "no code can run here to answer a query");
    asking_end(&a);
    a.play = play_of(asked);
    stack_pool_destroy(a.play.stacks);
    a.play.stacks = stack_pool_create(0, 1);
    a.instance = play_instance(&a.play);
    ask(&a, "how-far", "", THOLE_NOT_FOUND,
        "there is no query 'how-far'; the instance answers none"); /* has not run yet */
    feed(&a, EVENT_STARTED);
    ask(&a, "how-far", "", THOLE_NOMEM, "no stack for a query (1 are in use)");
    asking_end(&a);
}

static thole_status many_queries(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    char name[32];
    (void)input;
    for (int i = 0; i < 66; i++) {
        (void)snprintf(name, sizeof name, "query-%d", i);
        thole_on_query(ctx, thole_slice_from(name), throws, NULL);
    }
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

static void at_most_64(void)
{
    struct asking a = {.play = play_of(many_queries)};
    a.instance = play_instance(&a.play);
    feed(&a, EVENT_STARTED);
    ask(&a, "query-63", "x", THOLE_APP, "no x");
    ask(&a, "query-64", "x", THOLE_NOT_FOUND,
        "there is no query 'query-64'; the instance answers: query-63, query-62, query-61, query-60, "
        "query-59, "
        "query-58, query-57, query-56, query-55, query-54, query-53, query-52, query-51, query-50, query-49, "
        "query-48, query-47, query-46, query-45, query-44, query-43, query-42, query-41, query-40, query-39, "
        "query-38, query-37, query-36, query-35, query-34, query-33, query-32, query-31, query-30, query-29, "
        "…");
    asking_end(&a);
}

/* ---- sagas ---- */

static thole_status trip(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_saga saga = {0};
    static const char *const steps[] = {"flight", "hotel", "car"};
    char undo[16], queue[] = "refunds"; /* the library copies both */
    thole_call_options const options = {.size = sizeof options, .queue = thole_slice_from(queue)};
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < 3 && status == THOLE_OK; i++) {
        status = thole_await(ctx, thole_call(ctx, thole_slice_from(steps[i]), input), NULL);
        (void)snprintf(undo, sizeof undo, "no-%s", steps[i]);
        if (status == THOLE_OK)
            thole_saga_add(ctx, &saga, thole_slice_from(undo), input, i == 1 ? &options : NULL);
    }
    memset(queue, 'x', sizeof queue - 1);
    if (status == THOLE_OK)
        return THOLE_OK;
    thole_status const undone = thole_saga_compensate(ctx, &saga);
    thole_status const again = thole_saga_compensate(ctx, &saga);
    *ret_output = thole_format(ctx, "%s %s", thole_status_name(undone), thole_status_name(again));
    return thole_is_cancelled(ctx) ? status : THOLE_OK;
}

static thole_status wrong_step(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_saga saga = {0};
    thole_call_options const no_size = {.size = 0};
    thole_saga_add(ctx, &saga, THOLE_STR("last"), input, NULL);
    thole_saga_add(ctx, &saga, THOLE_STR("sized"), input, &no_size);
    thole_saga_add(ctx, &saga, THOLE_STR("a b"), input, NULL);
    *ret_output = thole_slice_from(thole_status_name(thole_saga_compensate(ctx, &saga)));
    return THOLE_OK;
}

#define BOOKED                                                                                               \
    "#1 Started t(x) | #2 ActivityScheduled flight(x) / #3 ActivityCompleted #2 () | #4 ActivityScheduled "  \
    "hotel(x) "                                                                                              \
    "/ #5 ActivityCompleted #4 () | #6 ActivityScheduled car(x)"
#define BOOK "Started t(x) / ActivityCompleted #2 () / ActivityCompleted #4 () / "
#define UNDO_HOTEL "ActivityScheduled no-hotel(x) [queue=refunds]"
#define WHY "requested (why)"
static void sagas(void)
{
    struct play_row const rows[] = {
        {"backwards, one after the other", trip,
         BOOK "ActivityFailed #6 APP (full) / ActivityCompleted #8 () / ActivityCompleted #10 ()",
         BOOKED " / #7 ActivityFailed #6 APP (full) | #8 " UNDO_HOTEL " / #9 ActivityCompleted #8 () | "
                "#10 ActivityScheduled no-flight(x) / #11 ActivityCompleted #10 () | #12 Completed (OK OK)"},
        {"goes on after one that fails", trip,
         BOOK "ActivityFailed #6 APP (full) / ActivityFailed #8 APP () / ActivityCompleted #10 ()",
         BOOKED " / #7 ActivityFailed #6 APP (full) | #8 " UNDO_HOTEL " / #9 ActivityFailed #8 APP () | "
                "#10 ActivityScheduled no-flight(x) / #11 ActivityCompleted #10 () | #12 Completed (APP OK)"},
        {"because of a cancellation", trip,
         BOOK "CancelRequested (why) / ActivityCompleted #9 () / ActivityCompleted #11 ()",
         BOOKED
         " / #7 CancelRequested (why) | #8 ActivityCancelled #6 " WHY " | #9 " UNDO_HOTEL
         " / #10 ActivityCompleted #9 () | #11 ActivityScheduled no-flight(x) / #12 ActivityCompleted #11 () "
         "| #13 Cancelled (why)"},
        {"a cancellation in the midst of it: the step is done again", trip,
         BOOK "ActivityFailed #6 APP (full) / CancelRequested (why) / ActivityCompleted #11 () / "
              "ActivityCompleted "
              "#13 ()",
         BOOKED " / #7 ActivityFailed #6 APP (full) | #8 " UNDO_HOTEL " / #9 CancelRequested (why) | "
                "#10 ActivityCancelled #8 " WHY " | #11 " UNDO_HOTEL " / #12 ActivityCompleted #11 () | "
                "#13 ActivityScheduled no-flight(x) / #14 ActivityCompleted #13 () | #15 Cancelled (why)"},
        {"a cancellation told at its first await: the step is awaited on", trip,
         BOOK
         "ActivityFailed #6 APP (full) | CancelRequested (why) / ActivityCompleted #9 () / ActivityCompleted "
         "#11 ()",
         BOOKED
         " / #7 ActivityFailed #6 APP (full) | #8 CancelRequested (why) | #9 " UNDO_HOTEL
         " / #10 ActivityCompleted #9 () | #11 ActivityScheduled no-flight(x) / #12 ActivityCompleted #11 () "
         "| #13 Cancelled (why)"},
        {"nothing to undo", trip, "Started t(x) / ActivityFailed #2 APP ()",
         "#1 Started t(x) | #2 ActivityScheduled flight(x) / #3 ActivityFailed #2 APP () | #4 Completed (OK "
         "OK)"},
        {"steps that cannot be", wrong_step, "Started t(x) / ActivityCompleted #2 ()",
         "#1 Started t(x) | #2 ActivityScheduled last(x) / #3 ActivityCompleted #2 () | #4 Completed "
         "(INVALID)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- questions of a query about its instance ---- */

static thole_status asks_itself(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const a = thole_call(ctx, THOLE_STR("a"), input),
                     fault = thole_call(ctx, THOLE_STR("a b"), input);
    bool const before = thole_is_cancelled(ctx), reason_before = thole_cancel_reason(ctx).len > 0;
    bool const ready = thole_ready(ctx, a), fault_ready = thole_ready(ctx, fault),
               no_ready = thole_ready(ctx, (thole_task){0});
    thole_failure const none = thole_task_failure(ctx, a), wrong = thole_task_failure(ctx, fault);
    play_ignore(thole_await(ctx, a, NULL));
    *ret_output = thole_format(ctx, "%d%d%d%d%d %d%u %d %d%.*s", before, reason_before, ready, fault_ready,
                               no_ready, none.status, none.tries, wrong.status, thole_is_cancelled(ctx),
                               THOLE_FMT(thole_cancel_reason(ctx)));
    drop_task(thole_call(ctx, THOLE_STR("said"), *ret_output));
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL);
}

/* Tasks beside the await's own for which it would return at once. */
static thole_status asks_when_ready(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL));
    thole_task const a = thole_call(ctx, THOLE_STR("a"), input);
    bool const at_first = thole_ready(ctx, a);
    thole_raise(ctx, THOLE_STR(""), THOLE_STR("e"), input);
    bool const with_a_fault = thole_ready(ctx, a);
    thole_status const fault = thole_await(ctx, a, NULL);
    bool const after_it = thole_ready(ctx, a);
    thole_status const cancelled = after_it ? thole_await(ctx, a, NULL) : THOLE_OK;
    bool const at_last = thole_ready(ctx, a);
    *ret_output =
        thole_format(ctx, "%d%d %d %d %d %d", at_first, with_a_fault, fault, after_it, cancelled, at_last);
    return thole_await(ctx, thole_call(ctx, THOLE_STR("said"), *ret_output), NULL);
}

static void about_itself(void)
{
    struct play_row const rows[] = {
        {"not cancelled", asks_itself, "Started t(x) / ActivityCompleted #2 ()",
         "#1 Started t(x) | #2 ActivityScheduled a(x) / #3 ActivityCompleted #2 () | #4 ActivityScheduled "
         "said(00011 "
         "01 2 0) | #5 EventAwaited go"},
        {"ready with a fault to tell", asks_when_ready, "Started t(x) / EventReceived go()",
         "#1 Started t(x) | #2 EventAwaited go / #3 EventReceived go() | #4 ActivityScheduled a(x) | "
         "#5 ActivityScheduled said(01 2 0 0 0)"},
        {"ready with a cancellation to tell", asks_when_ready,
         "Started t(x) / EventReceived go() | CancelRequested (why)",
         "#1 Started t(x) | #2 EventAwaited go / #3 EventReceived go() | #4 CancelRequested (why) | "
         "#5 ActivityScheduled a(x) | #6 ActivityScheduled said(11 2 1 6 0)"},
        {"cancelled", asks_itself, "Started t(x) / CancelRequested (why)",
         "#1 Started t(x) | #2 ActivityScheduled a(x) / #3 CancelRequested (why) | #4 ActivityCancelled #2 "
         "requested "
         "(why) | #5 ActivityScheduled said(00011 01 2 1why) | #6 EventAwaited go"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- when to continue as new ---- */

static thole_status make(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    (void)ctx;
    *ret_value = *(thole_slice *)arg;
    return THOLE_OK;
}

static thole_status until_it_should(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t events = 0, len = 0;
    for (size_t i = 0; i < input.len; i++)
        len = len * 10 + (size_t)(input.ptr[i] - '0');
    uint8_t *value = thole_alloc(ctx, len + 1);
    while (!thole_should_continue_as_new(ctx)) {
        thole_slice data = {value, len};
        if (events++ % 2 == 0)
            thole_state_set(ctx, THOLE_STR("k"), data);
        else
            THOLE_TRY(thole_side_effect(ctx, make, &data, &data));
    }
    *ret_output = thole_format(ctx, "%zu", events);
    return THOLE_OK;
}

static uint64_t events_until(const char *value_len)
{
    struct play play = play_of(until_it_should);
    play.memory_max = 64 << 20;
    play.payload_max = 1 << 20;
    struct instance *instance = play_instance(&play), *replayed = play_instance(&play);
    struct event const start = {
        .kind = EVENT_STARTED, .name = THOLE_STR("t"), .data = thole_slice_from(value_len)};
    struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out = {0};
    thole_error err = {.text = ""};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    struct turn const turn = {.instance = THOLE_STR("order-1"),
                              .execution = 1,
                              .number = 1,
                              .ran = true,
                              .events = out.events,
                              .events_len = out.events_len};
    CU_ASSERT_EQUAL(instance_replay(replayed, &turn, &err), THOLE_OK);
    CHECK_STR("replayed", err.text, "");
    uint64_t const n = out.events_len - 1;
    instance_destroy(instance);
    instance_destroy(replayed);
    play_release(&play);
    return n;
}

static void time_to_continue(void)
{
    CU_ASSERT_EQUAL(events_until("1"), 10001); /* with the start, more than 10,000 */
    uint64_t const large_ones = events_until("100000");
    CU_ASSERT(large_ones >= 83 && large_ones <= 85); /* more than 8 MiB */
}

/* ---- call sites ---- */

/* Not in tail position: an optimizer would make that a jump, and the site would be that of the caller. */
static thole_status known_sites(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const task = thole_call(ctx, THOLE_STR("a"), input);
    thole_status const status = thole_await(ctx, task, ret_output);
    return status == THOLE_OK && ret_output->len == 7 ? THOLE_APP : status;
}

static thole_status other_sites(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const task = thole_call(ctx, THOLE_STR("a"), input);
    thole_state_set(ctx, THOLE_STR("k"), input);
    thole_status const status = thole_await(ctx, task, ret_output);
    return status == THOLE_OK && ret_output->len == 7 ? THOLE_APP : status;
}

static const void *site_of(thole_orchestration_fn *code, const char *history)
{
    struct play play = play_of(code);
    struct instance *instance = play_instance(&play);
    struct play_turns turns;
    play_parse(history, &turns);
    CU_ASSERT_PTR_NULL(instance_call_site(instance));
    for (size_t i = 0; i < turns.len; i++)
        play_ignore(instance_replay(instance, &turns.turns[i], NULL));
    const void *site = instance_call_site(instance);
    play_turns_release(&turns);
    instance_destroy(instance);
    play_release(&play);
    return site;
}

static bool is_within(const void *site, thole_orchestration_fn *code)
{
    uintptr_t const at = (uintptr_t)site, from = (uintptr_t)code;
    return at > from && at < from + 1024;
}

static void call_sites(void)
{
    const void *wait = site_of(known_sites, "#1 Started t(x) | #2 ActivityScheduled a(x)");
    const void *call = site_of(known_sites, "#1 Started t(x) | #2 ActivityScheduled b(x)");
    const void *set = site_of(other_sites, "#1 Started t(x) | #2 ActivityScheduled a(x)");
    CU_ASSERT(is_within(wait, known_sites) && is_within(call, known_sites) && is_within(set, other_sites));
    CU_ASSERT((uintptr_t)call < (uintptr_t)wait); /* diverged there, before the await */
}

static const struct thole_test tests[] = {
    {"answers", answers},
    {"refused", refused},
    {"nobody can answer", nobody_can_answer},
    {"at most 64", at_most_64},
    {"sagas", sagas},
    {"about itself", about_itself},
    {"time to continue", time_to_continue},
    {"call sites", call_sites},
};
THOLE_TEST_MAIN("instance_query", tests)
