/* External events: queues of waits and of kept events, what a lost race gives back, repetitions. */
#include "dropped.h"
#include "message.h"
#include "play.h"
#include "thole/orchestration.h"
#include <assert.h>
#include <string.h>

static thole_status one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

static thole_status three(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (int i = 0; i < 3; i++) {
        thole_slice data;
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), &data));
        input = thole_format(ctx, "%.*s%.*s", THOLE_FMT(input), THOLE_FMT(data));
    }
    *ret_output = input;
    return THOLE_OK;
}

/* Does something else first: what comes meanwhile is kept. */
static thole_status late(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice a, b;
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 10), NULL));
    thole_task first = thole_event(ctx, THOLE_STR("go")), second = thole_event(ctx, THOLE_STR("go"));
    bool const ready = thole_ready(ctx, first), not_ready = thole_ready(ctx, second);
    THOLE_TRY(thole_await(ctx, second, &b));
    THOLE_TRY(thole_await(ctx, first, &a));
    *ret_output = thole_format(ctx, "%.*s%.*s%.*s %d%d", THOLE_FMT(input), THOLE_FMT(a), THOLE_FMT(b), ready,
                               not_ready);
    return THOLE_OK;
}

/* Waits for a timer and then for an event, again and again: what is kept comes and goes each time. */
static thole_status late_each_time(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (int i = 0; i < 3; i++) {
        thole_slice data;
        THOLE_TRY(thole_await(ctx, thole_timer(ctx, 10), NULL));
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), &data));
        input = thole_format(ctx, "%.*s%.*s", THOLE_FMT(input), THOLE_FMT(data));
    }
    *ret_output = input;
    return THOLE_OK;
}

static thole_status two_names(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[] = {thole_event(ctx, THOLE_STR("a")), thole_event(ctx, THOLE_STR("b"))};
    thole_slice data[2];
    (void)input;
    THOLE_TRY(thole_await_all(ctx, tasks, 2, data));
    *ret_output = thole_format(ctx, "%.*s%.*s", THOLE_FMT(data[0]), THOLE_FMT(data[1]));
    return THOLE_OK;
}

#define GO "#1 Started t(x) | #2 EventAwaited go"
static void taken_and_kept(void)
{
    struct play_row const rows[] = {
        {"waits", one, "Started t(x)", GO},
        {"comes", one, "Started t(x) / EventReceived go(now)",
         GO " / #3 EventReceived go(now) | #4 Completed (now)"},
        {"another one is not it", one, "Started t(x) / EventReceived stop(now)",
         GO " / #3 EventReceived stop(now)"},
        {"names are not prefixes", one, "Started t(x) / EventReceived g(1) | EventReceived goo(2)",
         GO " / #3 EventReceived g(1) | #4 EventReceived goo(2)"},
        {"came with the start", one, "Started t(x) | EventReceived go(now)",
         "#1 Started t(x) | #2 EventReceived go(now) | #3 EventAwaited go | #4 Completed (now)"},
        {"no data", one, "Started t(x) / EventReceived go()",
         GO " / #3 EventReceived go() | #4 Completed ()"},
        {"one at a time", three,
         "Started t() / EventReceived go(1) / EventReceived go(2) / EventReceived go(3)",
         "#1 Started t() | #2 EventAwaited go / #3 EventReceived go(1) | #4 EventAwaited go / "
         "#5 EventReceived go(2) | #6 EventAwaited go / #7 EventReceived go(3) | #8 Completed (123)"},
        {"all at once: in order", three,
         "Started t() / EventReceived go(1) | EventReceived go(2) | EventReceived go(3) | EventReceived "
         "go(4)",
         "#1 Started t() | #2 EventAwaited go / #3 EventReceived go(1) | #4 EventReceived go(2) | "
         "#5 EventReceived go(3) | #6 EventReceived go(4) | #7 EventAwaited go | #8 EventAwaited go | "
         "#9 Completed (123)"},
        {"kept while something else is awaited", late,
         "Started t() / EventReceived go(1) / TimerFired #2 / EventReceived go(2)",
         "#1 Started t() | #2 TimerCreated due 1010 / #3 EventReceived go(1) / #4 TimerFired #2 | "
         "#5 EventAwaited go | #6 EventAwaited go / #7 EventReceived go(2) | #8 Completed (12 10)"},
        {"kept, all taken, kept again", late_each_time,
         "Started t() / EventReceived go(1) / TimerFired #2 / EventReceived go(2) | EventReceived go(3) / "
         "TimerFired #6 / TimerFired #11",
         "#1 Started t() | #2 TimerCreated due 1010 / #3 EventReceived go(1) / #4 TimerFired #2 | "
         "#5 EventAwaited go | #6 TimerCreated due 3010 / #7 EventReceived go(2) | #8 EventReceived go(3) / "
         "#9 TimerFired #6 | #10 EventAwaited go | #11 TimerCreated due 5010 / #12 TimerFired #11 | "
         "#13 EventAwaited go | #14 Completed (123)"},
        {"each name has its queue", two_names, "Started t() / EventReceived b(2) / EventReceived a(1)",
         "#1 Started t() | #2 EventAwaited a | #3 EventAwaited b / #4 EventReceived b(2) / "
         "#5 EventReceived a(1) | #6 Completed (12)"},
        {"recorded while there was no code", one, "~Started t(x) / ~EventReceived go(1) / -",
         "~#1 Started t(x) / ~#2 EventReceived go(1) / #3 EventAwaited go | #4 Completed (1)"},
        {"recorded while there was no code, to a wait", one, "Started t(x) / ~EventReceived go(1) / -",
         GO " / ~#3 EventReceived go(1) / #4 Completed (1)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- waits that are cancelled take nothing ---- */

/* Waits a while; then again; says what it got. */
static thole_status patient(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (int i = 0; i < 2; i++) {
        thole_task tasks[] = {thole_event(ctx, THOLE_STR("go")), thole_timer(ctx, 10)};
        size_t winner;
        thole_slice data;
        THOLE_TRY(thole_await_any(ctx, tasks, 2, &winner));
        THOLE_TRY(thole_await(ctx, tasks[winner], &data));
        input = thole_format(ctx, "%.*s%zu%.*s", THOLE_FMT(input), winner, THOLE_FMT(data));
    }
    *ret_output = input;
    return THOLE_OK;
}

/* Races two names; the loser's event must be there for the next race. */
static thole_status either(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (int i = 0; i < 2; i++) {
        thole_task tasks[] = {thole_event(ctx, THOLE_STR("a")), thole_event(ctx, THOLE_STR("b"))};
        size_t winner;
        thole_slice data;
        THOLE_TRY(thole_await_any(ctx, tasks, 2, &winner));
        THOLE_TRY(thole_await(ctx, tasks[winner], &data));
        input = thole_format(ctx, "%.*s%.*s", THOLE_FMT(input), THOLE_FMT(data));
    }
    *ret_output = input;
    return THOLE_OK;
}

/* Three waits for one name, of which the first two are cancelled when all may have been resolved. */
static thole_status fickle(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task waits[3], timer = thole_timer(ctx, 10);
    thole_slice a, b;
    for (int i = 0; i < 3; i++)
        waits[i] = thole_event(ctx, THOLE_STR("go"));
    THOLE_TRY(thole_await(ctx, timer, NULL));
    thole_cancel(ctx, waits[1], THOLE_STR("no"));
    thole_cancel(ctx, waits[0], THOLE_STR("no"));
    thole_cancel(ctx, waits[0], THOLE_STR("twice"));
    THOLE_TRY(thole_await(ctx, waits[2], &a));
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), &b));
    thole_cancel(ctx, waits[2], THOLE_STR("told already"));
    (void)input;
    *ret_output = thole_format(ctx, "%.*s%.*s", THOLE_FMT(a), THOLE_FMT(b));
    return THOLE_OK;
}

static thole_status cancelled_wait(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task wait = thole_event(ctx, THOLE_STR("go"));
    (void)input, (void)ret_output;
    thole_cancel(ctx, wait, THOLE_STR("why"));
    return thole_await(ctx, wait, NULL);
}

#define LOST(to) "select_loser (" to " won)"
static void given_back(void)
{
    struct play_row const rows[] = {
        {"a wait that lost takes nothing", patient,
         "@1000 Started t() / @1010 TimerFired #3 / EventReceived go(e)",
         "#1 Started t() | #2 EventAwaited go | #3 TimerCreated due 1010 / #4 TimerFired #3 | "
         "#5 EventAwaitCancelled #2 " LOST("timer 3") " | #6 EventAwaited go | #7 TimerCreated due 1020 / "
                                                      "#8 EventReceived go(e) | #9 TimerCancelled #7 " LOST(
                                                          "event 6 'go'") " | #10 Completed (10e)"},
        {"resolved in the turn in which it lost", patient,
         "@1000 Started t() / @1010 TimerFired #3 | EventReceived go(e)",
         "#1 Started t() | #2 EventAwaited go | #3 TimerCreated due 1010 / #4 TimerFired #3 | "
         "#5 EventReceived go(e) | #6 EventAwaitCancelled #2 " LOST(
             "timer 3") " | #7 EventAwaited go | "
                        "#8 TimerCreated due 1020 | #9 TimerCancelled #8 " LOST(
                            "event 7 'go'") " | #10 Completed (10e)"},
        {"what is given back comes before what came later", patient,
         "@1000 Started t() / @1010 TimerFired #3 | EventReceived go(1) | EventReceived go(2)",
         "#1 Started t() | #2 EventAwaited go | #3 TimerCreated due 1010 / #4 TimerFired #3 | "
         "#5 EventReceived go(1) | #6 EventReceived go(2) | #7 EventAwaitCancelled #2 " LOST(
             "timer 3") " | "
                        "#8 EventAwaited go | #9 TimerCreated due 1020 | #10 TimerCancelled #9 " LOST(
                            "event 8 'go'") " | #11 Completed (101)"},
        {"the earlier in history wins", patient,
         "@1000 Started t() / @1010 EventReceived go(e) | TimerFired #3 / TimerFired #6",
         "#1 Started t() | #2 EventAwaited go | #3 TimerCreated due 1010 / #4 EventReceived go(e) | "
         "#5 TimerFired #3 | #6 EventAwaited go | #7 TimerCreated due 1020 / -"},
        {"two names, one turn: none is lost", either, "Started t() / EventReceived b(B) | EventReceived a(A)",
         "#1 Started t() | #2 EventAwaited a | #3 EventAwaited b / #4 EventReceived b(B) | "
         "#5 EventReceived a(A) | #6 EventAwaitCancelled #2 " LOST(
             "event 3 'b'") " | #7 EventAwaited a | "
                            "#8 EventAwaited b | #9 EventAwaitCancelled #8 " LOST(
                                "event 7 'a'") " | #10 Completed (BA)"},
        {"kept ones: the earlier in history wins", either,
         "Started t() | EventReceived b(B) | EventReceived a(A)",
         "#1 Started t() | #2 EventReceived b(B) | #3 EventReceived a(A) | #4 EventAwaited a | "
         "#5 EventAwaited b | #6 EventAwaitCancelled #4 " LOST(
             "event 5 'b'") " | #7 EventAwaited a | #8 EventAwaited b | "
                            "#9 EventAwaitCancelled #8 " LOST("event 7 'a'") " | #10 Completed (BA)"},
        {"the next wait gets it", fickle,
         "@1000 Started t() / EventReceived go(1) | TimerFired #2 / EventReceived "
         "go(2)",
         "#1 Started t() | #2 TimerCreated due 1010 | #3 EventAwaited go | #4 EventAwaited go | "
         "#5 EventAwaited go / #6 EventReceived go(1) | #7 TimerFired #2 | #8 EventAwaitCancelled #4 "
         "explicit "
         "(no) | #9 EventAwaitCancelled #3 explicit (no) | #10 EventAwaited go / #11 EventReceived go(2) | "
         "#12 Completed (12)"},
        {"given back in another order", fickle,
         "@1000 Started t() / EventReceived go(1) | EventReceived go(2) | EventReceived go(3) | TimerFired "
         "#2",
         "#1 Started t() | #2 TimerCreated due 1010 | #3 EventAwaited go | #4 EventAwaited go | "
         "#5 EventAwaited go / #6 EventReceived go(1) | #7 EventReceived go(2) | #8 EventReceived go(3) | "
         "#9 TimerFired #2 | #10 EventAwaitCancelled #4 explicit (no) | #11 EventAwaitCancelled #3 explicit "
         "(no) | #12 EventAwaited go | #13 Completed (31)"},
        {"cancelled", cancelled_wait, "Started t()",
         "#1 Started t() | #2 EventAwaited go | #3 EventAwaitCancelled #2 explicit (why) | "
         "#4 Failed CANCELLED (event 'go' was cancelled: why)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- cancellation of the execution ---- */

static thole_status told_then_waits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    if (thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL) != THOLE_CANCELLED)
        return thole_throw(ctx, "not cancelled");
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("undo"), *ret_output), NULL));
    return THOLE_OK;
}

#define WHY "requested (why)"
static void while_cancelled(void)
{
    struct play_row const rows[] = {
        {"an event after the request is kept", told_then_waits,
         "Started t() / CancelRequested (why) | EventReceived go(1) / ActivityCompleted #7 ()",
         "#1 Started t() | #2 EventAwaited go / #3 CancelRequested (why) | #4 EventReceived go(1) | "
         "#5 EventAwaitCancelled #2 " WHY " | #6 EventAwaited go | #7 ActivityScheduled undo(1) / "
         "#8 ActivityCompleted #7 () | #9 Cancelled (why)"},
        {"recorded without code", told_then_waits,
         "Started t() / ~CancelRequested (why) / ~EventReceived go(1) / - / ActivityCompleted #7 ()",
         "#1 Started t() | #2 EventAwaited go / ~#3 CancelRequested (why) / ~#4 EventReceived go(1) / "
         "#5 EventAwaitCancelled #2 " WHY " | #6 EventAwaited go | #7 ActivityScheduled undo(1) / "
         "#8 ActivityCompleted #7 () | #9 Cancelled (why)"},
        {"one before the request is given", told_then_waits,
         "Started t() / EventReceived go(1) | CancelRequested (why)",
         "#1 Started t() | #2 EventAwaited go / #3 EventReceived go(1) | #4 CancelRequested (why) | "
         "#5 Cancelled (why)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- repetitions ---- */

static void repetitions(void)
{
    struct play_row const rows[] = {
        {"the same request in one turn", three,
         "Started t() / EventReceived go(1) [id=r1] | EventReceived go(1) [id=r1] | EventReceived go(2) "
         "[id=r2]",
         "#1 Started t() | #2 EventAwaited go / #3 EventReceived go(1) [id=r1] | #4 EventReceived go(2) "
         "[id=r2] "
         "| #5 EventAwaited go | #6 EventAwaited go"},
        {"much later", three,
         "Started t() / EventReceived go(1) [id=r1] / EventReceived go(2) [id=r2] / EventReceived go(1) "
         "[id=r1]",
         "#1 Started t() | #2 EventAwaited go / #3 EventReceived go(1) [id=r1] | #4 EventAwaited go / "
         "#5 EventReceived go(2) [id=r2] | #6 EventAwaited go / -"},
        {"under another name", three,
         "Started t() / EventReceived x(1) [id=r1] / EventReceived go(1) [id=r1]",
         "#1 Started t() | #2 EventAwaited go / #3 EventReceived x(1) [id=r1] / -"},
        {"none", three, "Started t() / EventReceived go(1) | EventReceived go(1) | EventReceived go(1)",
         "#1 Started t() | #2 EventAwaited go / #3 EventReceived go(1) | #4 EventReceived go(1) | "
         "#5 EventReceived go(1) | #6 EventAwaited go | #7 EventAwaited go | #8 Completed (111)"},
        {"that of the start is another matter", one, "Started t(x) [id=r1] | EventReceived go(1) [id=r1]",
         "#1 Started t(x) [id=r1] | #2 EventReceived go(1) [id=r1] | #3 EventAwaited go | #4 Completed (1)"},
        {"that of a cancellation, too", one,
         "Started t(x) / CancelRequested (y) [id=r1] | EventReceived go(1) "
         "[id=r1]",
         GO " / #3 CancelRequested (y) [id=r1] | #4 EventReceived go(1) [id=r1] | #5 EventAwaitCancelled #2 "
            "requested (y) | #6 Cancelled (y)"},
        {"that of a pause and of a resume, too", one,
         "Started t(x) / Paused () [id=r1] / Resumed () [id=r1] | EventReceived go(1) [id=r1]",
         GO " / ~#3 Paused () [id=r1] / #4 Resumed () [id=r1] | #5 EventReceived go(1) [id=r1] | #6 "
            "Completed (1)"},
    };
    struct play_row const unchecked[] = {
        {"recorded by an engine that could not look", three,
         "#1 Started t() | #2 EventAwaited go / ~#3 EventReceived go(1) [id=r1] | #4 EventReceived go(1) "
         "[id=r1] / "
         "#5 EventReceived go(2) | #6 EventAwaited go | #7 EventAwaited go",
         "ok"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
    play_check_replay(unchecked, ARRAY_LEN(unchecked));
}

static void wrong_names(void)
{
    struct play play = play_of(NULL);
    struct instance *instance = play_instance(&play);
    struct event event = {.kind = EVENT_EVENT_RECEIVED, .name = THOLE_STR("go")};
    CU_ASSERT_FALSE(instance_accepts(instance, &event)); /* not started */
    event = (struct event){.kind = EVENT_EVENT_AWAIT_CANCELLED, .ref = 1};
    CU_ASSERT_FALSE(instance_accepts(instance, &event)); /* nothing that is received */
    instance_destroy(instance);
    play_release(&play);
}

/* ---- how many are kept ---- */

/* Received live, @p n in each turn. */
static void receive(struct instance *instance, const char *name, thole_slice data, size_t n)
{
    struct event events[1000];
    struct turn_out out;
    assert(n <= ARRAY_LEN(events));
    for (size_t i = 0; i < n; i++)
        events[i] = (struct event){
            .kind = EVENT_EVENT_RECEIVED, .name = thole_slice_from(name), .data = data, .request_id = {0}};
    struct turn_in const in = {.received = events, .received_len = n, .run = true};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
}

static struct instance *begin_kept(struct play *play)
{
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t")};
    struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out;
    play->memory_max = 64 << 20;
    struct instance *const instance = play_instance(play);
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    return instance;
}

/* An event that the code awaits now is taken in any case. */
static void kept_up_to_a_number(void)
{
    struct play play = play_of(three);
    struct instance *const instance = begin_kept(&play);
    for (size_t i = 0; i < 9; i++)
        receive(instance, "other", THOLE_STR("1"), 1000);
    receive(instance, "other", THOLE_STR("1"), 999);
    CU_ASSERT_EQUAL(instance_kept(instance), EVENTS_KEPT_MAX - 1);
    CU_ASSERT_TRUE(instance_keeps_more(instance, THOLE_STR("other")));
    receive(instance, "other", THOLE_STR("1"), 1);
    CU_ASSERT_FALSE(instance_keeps_more(instance, THOLE_STR("other")));
    CU_ASSERT_FALSE(instance_keeps_more(instance, THOLE_STR("never heard of")));
    CU_ASSERT_TRUE(instance_keeps_more(instance, THOLE_STR("go")));
    receive(instance, "go", THOLE_STR("1"), 1);
    CU_ASSERT_EQUAL(instance_kept(instance), EVENTS_KEPT_MAX);
    CU_ASSERT_TRUE(instance_keeps_more(instance, THOLE_STR("go")));
    struct event const cancel = {.kind = EVENT_CANCEL_REQUESTED};
    struct turn_in const in = {.received = &cancel, .received_len = 1};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_FALSE(
        instance_keeps_more(instance, THOLE_STR("go"))); /* asked to cancel: the await takes none */
    instance_destroy(instance);
    play_release(&play);
}

static void kept_up_to_a_size(void)
{
    static uint8_t large[1 << 18];
    struct play play = play_of(late);
    struct instance *const instance = begin_kept(&play);
    for (size_t i = 0; i < EVENTS_KEPT_BYTES_MAX / sizeof large; i++) {
        CU_ASSERT_TRUE(instance_keeps_more(instance, THOLE_STR("go")));
        receive(instance, "go", (thole_slice){large, sizeof large}, 1);
    }
    CU_ASSERT_FALSE(instance_keeps_more(instance, THOLE_STR("go")));
    struct event const fired = {.kind = EVENT_TIMER_FIRED, .ref = 2};
    struct turn_in const in = {.received = &fired, .received_len = 1, .run = true};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK); /* two are taken */
    CU_ASSERT_EQUAL(instance_kept(instance), EVENTS_KEPT_BYTES_MAX / sizeof large - 2);
    instance_destroy(instance);
    play_release(&play);
}

/* ---- raised in others ---- */

static thole_status raises(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_raise(ctx, THOLE_STR("order-2"), THOLE_STR("go"), input);
    thole_raise(ctx, thole_instance_id(ctx), THOLE_STR("self"), thole_format(ctx, "%d", 7));
    return thole_await(ctx, thole_event(ctx, THOLE_STR("self")), ret_output);
}

static thole_status raises_wrongly(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint8_t large[300] = {0};
    thole_slice const wrong =
        thole_slice_equal(input, THOLE_STR("id")) ? THOLE_STR("") : THOLE_STR("order-2");
    thole_slice const name = thole_slice_equal(input, THOLE_STR("name")) ? THOLE_STR("a b") : THOLE_STR("go");
    size_t const len = thole_slice_equal(input, THOLE_STR("size")) ? sizeof large : 3;
    thole_raise(ctx, wrong, name, (thole_slice){large, len});
    thole_status const first = thole_await_all(ctx, NULL, 0, NULL);
    thole_status const second = thole_await(ctx, thole_call(ctx, THOLE_STR("a"), input), NULL);
    *ret_output = thole_format(ctx, "%s %s", thole_status_name(first), thole_status_name(second));
    return THOLE_OK;
}

static thole_status raises_wrongly_at_the_end(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    thole_raise(ctx, input, THOLE_STR("go"), input);
    return THOLE_OK;
}

static void raised(void)
{
    struct play_row const rows[] = {
        {"in another and in itself", raises, "Started t(x) / EventReceived self(7)",
         "#1 Started t(x) | #2 EventSent go(x) -> order-2 | #3 EventSent self(7) -> order-1 | "
         "#4 EventAwaited self / #5 EventReceived self(7) | #6 Completed (7)"},
        {"wrong id", raises_wrongly, "Started t(id) / ActivityCompleted #2 ()",
         "#1 Started t(id) | #2 ActivityScheduled a(id) / #3 ActivityCompleted #2 () | #4 Completed (INVALID "
         "OK)"},
        {"wrong name", raises_wrongly, "Started t(name) / ActivityCompleted #2 ()",
         "#1 Started t(name) | #2 ActivityScheduled a(name) / #3 ActivityCompleted #2 () | "
         "#4 Completed (INVALID OK)"},
        {"too large", raises_wrongly, "Started t(size) / ActivityCompleted #2 ()",
         "#1 Started t(size) | #2 ActivityScheduled a(size) / #3 ActivityCompleted #2 () | "
         "#4 Completed (LIMIT OK)"},
        {"no await to tell it", raises_wrongly_at_the_end, "Started t()",
         "#1 Started t() | #2 Failed INVALID (the instance id of a raised event is not 1 to 200 bytes of "
         "UTF-8)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- emitted ---- */

static thole_status emits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_emit(ctx, THOLE_STR("com.example.order.taken"), input);
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output));
    thole_emit(ctx, THOLE_STR("done"), *ret_output);
    return THOLE_OK;
}

/* The type is the input. */
static thole_status emits_wrongly(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_emit(ctx, input, THOLE_STR("x"));
    *ret_output = thole_slice_from(thole_status_name(thole_await_all(ctx, NULL, 0, NULL)));
    return THOLE_OK;
}

static void emitted(void)
{
    static const char *const wrong[] = {
        "", "a b", ".a", "a.", "a..b", "a/b", "thole.", "thole.instance.started", "a*", "\xc3\xa4"};
    struct play_row const rows[] = {
        {"in its turn", emits, "Started t(x) / EventReceived go(7)",
         "#1 Started t(x) | #2 EventEmitted com.example.order.taken(x) | #3 EventAwaited go / "
         "#4 EventReceived go(7) | #5 EventEmitted done(7) | #6 Completed (7)"},
        {"almost reserved", emits_wrongly, "Started t(thole)",
         "#1 Started t(thole) | #2 EventEmitted thole(x) | #3 Completed (OK)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        CU_ASSERT_EQUAL(event_type_check(thole_slice_from(wrong[i]), NULL), THOLE_INVALID);
    struct play_row const refused = {"a wrong type", emits_wrongly, "Started t(thole.x)",
                                     "#1 Started t(thole.x) | #2 Completed (INVALID)"};
    play_check_live(&refused, 1);
}

/* ---- pause, resume, terminate ---- */

static thole_status charges(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("charge"), input), ret_output);
}

static thole_status many_kinds(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    drop_task(thole_call(ctx, THOLE_STR("charge"), input));
    drop_task(thole_timer(ctx, 10));
    drop_task(thole_event(ctx, THOLE_STR("go")));
    return thole_await(ctx, thole_call(ctx, THOLE_STR("wait"), input), ret_output);
}

#define CHARGE "#1 Started t(x) | #2 ActivityScheduled charge(x)"
static void paused(void)
{
    struct play_row const rows[] = {
        {"records only", charges, "Started t(x) / Paused (break) / ActivityCompleted #2 (ok) / Resumed (on)",
         CHARGE
         " / ~#3 Paused (break) / ~#4 ActivityCompleted #2 (ok) / #5 Resumed (on) | #6 Completed (ok)"},
        {"pause and result in one turn", charges,
         "Started t(x) / ActivityCompleted #2 (ok) | Paused () / Resumed ()",
         CHARGE " / ~#3 ActivityCompleted #2 (ok) | #4 Paused () / #5 Resumed () | #6 Completed (ok)"},
        {"pause and resume in one turn", charges,
         "Started t(x) / Paused () | Resumed () | ActivityCompleted #2 (ok)",
         CHARGE " / #3 Paused () | #4 Resumed () | #5 ActivityCompleted #2 (ok) | #6 Completed (ok)"},
        {"in the first turn", charges, "Started t(x) | Paused () / Resumed ()",
         "~#1 Started t(x) | #2 Paused () / #3 Resumed () | #4 ActivityScheduled charge(x)"},
        {"twice", charges, "Started t(x) / Paused (a) / Paused (b) / Resumed (c) | Resumed (d)",
         CHARGE " / ~#3 Paused (a) / ~- / #4 Resumed (c)"},
        {"not paused", charges, "Started t(x) / Resumed ()", CHARGE " / -"},
        {"cancelling resumes", charges, "Started t(x) / Paused () / CancelRequested (why)",
         CHARGE " / ~#3 Paused () / #4 CancelRequested (why) | #5 ActivityCancelled #2 " WHY
                " | #6 Cancelled (why)"},
        {"a repetition after the resume", charges,
         "Started t(x) / Paused () [id=p] / Resumed () [id=r] / Paused () [id=p] / Paused () [id=q]",
         CHARGE " / ~#3 Paused () [id=p] / #4 Resumed () [id=r] / - / ~#5 Paused () [id=q]"},
        {"no turn runs", charges, "Started t(x) / Paused () / - / TimerFired #2 / -",
         CHARGE " / ~#3 Paused () / ~- / ~- / ~-"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

#define MANY                                                                                                 \
    "#1 Started t(x) | #2 ActivityScheduled charge(x) | #3 TimerCreated due 1010 | #4 EventAwaited go | "    \
    "#5 ActivityScheduled wait(x)"
static void terminated(void)
{
    struct play_row const rows[] = {
        {"all is cancelled, no code runs", many_kinds, "Started t(x) / TerminateRequested (stop) [id=r]",
         MANY " / #6 TerminateRequested (stop) [id=r] | #7 ActivityCancelled #2 terminated (stop) | "
              "#8 TimerCancelled #3 terminated (stop) | #9 EventAwaitCancelled #4 terminated (stop) | "
              "#10 ActivityCancelled #5 terminated (stop) | #11 Terminated (stop)"},
        {"what comes with it", charges,
         "Started t(x) / ActivityCompleted #2 (ok) | TerminateRequested (stop) | EventReceived go(1)",
         CHARGE " / #3 ActivityCompleted #2 (ok) | #4 TerminateRequested (stop) | #5 Terminated (stop)"},
        {"twice", charges, "Started t(x) / TerminateRequested (a) | TerminateRequested (b)",
         CHARGE " / #3 TerminateRequested (a) | #4 ActivityCancelled #2 terminated (a) | #5 Terminated (a)"},
        {"in the first turn", charges, "Started t(x) | TerminateRequested ()",
         "#1 Started t(x) | #2 TerminateRequested () | #3 Terminated ()"},
        {"while paused", charges, "Started t(x) / Paused () / TerminateRequested (stop)",
         CHARGE
         " / ~#3 Paused () / #4 TerminateRequested (stop) | #5 ActivityCancelled #2 terminated (stop) | "
         "#6 Terminated (stop)"},
        {"in a turn that was not to run", charges, "~Started t(x) / ~TerminateRequested (stop)",
         "~#1 Started t(x) / #2 TerminateRequested (stop) | #3 Terminated (stop)"},
        {"a request to cancel is overtaken", charges,
         "Started t(x) / CancelRequested (why) | TerminateRequested (stop)",
         CHARGE " / #3 CancelRequested (why) | #4 TerminateRequested (stop) | #5 ActivityCancelled #2 "
                "terminated (stop) | #6 Terminated (stop)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- against a model ---- */

enum { MODEL_STEPS = 38, MODEL_COMES_MAX = 5, MODEL_WAITS = 1200, MODEL_DOES = 24 };
enum model_state { MODEL_OPEN, MODEL_HAS, MODEL_OVER };
struct model_wait {
    thole_task task;
    enum model_state state;
    unsigned event;
};
struct model {
    struct model_wait waits[MODEL_WAITS];
    bool kept[MODEL_STEPS * MODEL_COMES_MAX + 1]; /* by number: the lowest is the oldest */
    unsigned came;
    size_t waits_len;
    uint32_t random;
};

static unsigned draw(struct model *m, unsigned n)
{
    m->random = m->random * 1664525u + 1013904223u;
    return (m->random >> 16) % n;
}

/* To the wait that is open longest; else it is kept. */
static void model_give(struct model *m, unsigned event)
{
    for (size_t i = 0; i < m->waits_len; i++)
        if (m->waits[i].state == MODEL_OPEN) {
            m->waits[i].state = MODEL_HAS;
            m->waits[i].event = event;
            return;
        }
    m->kept[event] = true;
}

static void model_await(thole_ctx *ctx, struct model *m)
{
    struct model_wait *wait = &m->waits[m->waits_len++];
    *wait = (struct model_wait){.task = thole_event(ctx, THOLE_STR("go"))};
    for (unsigned e = 1; e <= m->came && wait->state == MODEL_OPEN; e++)
        if (m->kept[e]) {
            m->kept[e] = false;
            wait->state = MODEL_HAS;
            wait->event = e;
        }
}

static void model_cancel(thole_ctx *ctx, struct model *m, struct model_wait *wait)
{
    bool const has = wait->state == MODEL_HAS;
    wait->state = MODEL_OVER;
    thole_cancel(ctx, wait->task, THOLE_STR("no"));
    if (has)
        model_give(m, wait->event);
}

static thole_status model_take(thole_ctx *ctx, struct model_wait *wait)
{
    thole_slice data;
    wait->state = MODEL_OVER;
    THOLE_TRY(thole_await(ctx, wait->task, &data));
    thole_slice const want = thole_format(ctx, "%u", wait->event);
    return thole_slice_equal(data, want)
               ? THOLE_OK
               : thole_throw(ctx, "event %.*s, not %u", THOLE_FMT(data), wait->event);
}

static thole_status model_do(thole_ctx *ctx, struct model *m)
{
    unsigned const what = draw(m, 8);
    if (what < 3 && m->waits_len < MODEL_WAITS)
        model_await(ctx, m);
    if (what < 3 || m->waits_len == 0)
        return THOLE_OK;
    struct model_wait *wait =
        &m->waits[m->waits_len - 1 - draw(m, m->waits_len < 16 ? (unsigned)m->waits_len : 16)];
    if (wait->state == MODEL_HAS && what == 7)
        return model_take(ctx, wait);
    if (wait->state != MODEL_OVER)
        model_cancel(ctx, m, wait);
    return THOLE_OK;
}

/* "step" comes after the events of a turn and says how many they are. */
static thole_status modelled(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    struct model *m = thole_alloc(ctx, sizeof *m);
    if (m == NULL)
        return THOLE_LIMIT;
    memset(m, 0, sizeof *m);
    m->random = input.ptr[0];
    for (int step = 0; step < MODEL_STEPS; step++) {
        thole_slice n;
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("step")), &n));
        for (int i = n.ptr[0] - '0'; i > 0; i--)
            model_give(m, ++m->came);
        for (int i = 0; i < MODEL_DOES; i++)
            THOLE_TRY(model_do(ctx, m));
        for (size_t i = 0; i < m->waits_len; i++)
            if (m->waits[i].state != MODEL_OVER &&
                thole_ready(ctx, m->waits[i].task) != (m->waits[i].state == MODEL_HAS))
                return thole_throw(ctx, "step %d: wait %zu of event %u", step, i, m->waits[i].event);
    }
    *ret_output = THOLE_STR("as the model");
    return THOLE_OK;
}

static void as_a_model(void)
{
    for (unsigned seed = 1; seed <= 6; seed++) {
        struct play play = play_of(modelled);
        struct buf script, got;
        struct model random = {.random = seed};
        unsigned came = 0;
        play.memory_max = 4 << 20;
        buf_init(&script, PLAY_TEXT_MAX);
        buf_init(&got, 1 << 20);
        buf_printf(&script, "Started t(%c)", (char)('0' + seed));
        for (int step = 0; step < MODEL_STEPS; step++) {
            unsigned const n = draw(&random, MODEL_COMES_MAX + 1);
            buf_text(&script, " / ");
            for (unsigned i = 0; i < n; i++)
                buf_printf(&script, "EventReceived go(%u) | ", ++came);
            buf_printf(&script, "EventReceived step(%u)", n);
        }
        play_live(&play, buf_cstr(&script), &got);
        const char *const last = strrchr(buf_cstr(&got), '#');
        CU_ASSERT_PTR_NOT_NULL_FATAL(last);
        if (strstr(last, "Completed (as the model)") == NULL) {
            printf("  [seed %u]: %s\n", seed, last);
            CU_FAIL("not as the model");
        }
        buf_release(&script);
        buf_release(&got);
        play_release(&play);
    }
}

static const struct thole_test tests[] = {
    {"taken and kept", taken_and_kept},
    {"given back", given_back},
    {"as a model", as_a_model},
    {"while cancelled", while_cancelled},
    {"repetitions", repetitions},
    {"wrong names", wrong_names},
    {"kept up to a number", kept_up_to_a_number},
    {"kept up to a size", kept_up_to_a_size},
    {"raised", raised},
    {"emitted", emitted},
    {"paused", paused},
    {"terminated", terminated},
};
THOLE_TEST_MAIN("instance_events", tests)
