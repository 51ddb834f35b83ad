/* Names, comparison and rendering of events. */
#include "event.h"
#include "samples.h"
#include "thole_cunit.h"

static void kinds(void)
{
    struct {
        enum event_kind kind;
        const char *name;
        bool received, terminal;
    } const rows[] = {
        {EVENT_UNKNOWN, "Unknown", false, false},
        {EVENT_STARTED, "Started", true, false},
        {EVENT_ACTIVITY_SCHEDULED, "ActivityScheduled", false, false},
        {EVENT_ACTIVITY_COMPLETED, "ActivityCompleted", true, false},
        {EVENT_ACTIVITY_FAILED, "ActivityFailed", true, false},
        {EVENT_ACTIVITY_CANCELLED, "ActivityCancelled", false, false},
        {EVENT_TIMER_CREATED, "TimerCreated", false, false},
        {EVENT_TIMER_FIRED, "TimerFired", true, false},
        {EVENT_TIMER_CANCELLED, "TimerCancelled", false, false},
        {EVENT_CANCEL_REQUESTED, "CancelRequested", true, false},
        {EVENT_COMPLETED, "Completed", false, true},
        {EVENT_FAILED, "Failed", false, true},
        {EVENT_CANCELLED, "Cancelled", false, true},
        {EVENT_ACTIVITY_TRY_FAILED, "ActivityTryFailed", true, false},
        {EVENT_ACTIVITY_TRY_STARTED, "ActivityTryStarted", true, false},
        {EVENT_EVENT_RECEIVED, "EventReceived", true, false},
        {EVENT_EVENT_AWAITED, "EventAwaited", false, false},
        {EVENT_EVENT_AWAIT_CANCELLED, "EventAwaitCancelled", false, false},
        {EVENT_CHILD_SCHEDULED, "ChildScheduled", false, false},
        {EVENT_CHILD_COMPLETED, "ChildCompleted", true, false},
        {EVENT_CHILD_FAILED, "ChildFailed", true, false},
        {EVENT_CHILD_CANCELLED, "ChildCancelled", false, false},
        {EVENT_DETACHED_STARTED, "DetachedStarted", false, false},
        {EVENT_EVENT_SENT, "EventSent", false, false},
        {EVENT_SIDE_EFFECT_RECORDED, "SideEffectRecorded", false, false},
        {EVENT_CUSTOM_STATUS_SET, "CustomStatusSet", false, false},
        {EVENT_STATE_SET, "StateSet", false, false},
        {EVENT_PATCHED, "Patched", false, false},
        {EVENT_CONTINUED_AS_NEW, "ContinuedAsNew", false, true},
        {EVENT_TERMINATE_REQUESTED, "TerminateRequested", true, false},
        {EVENT_TERMINATED, "Terminated", false, true},
        {EVENT_PAUSED, "Paused", true, false},
        {EVENT_RESUMED, "Resumed", true, false},
        {EVENT_STATE_CARRIED, "StateCarried", true, false},
        {EVENT_ORIGINS_CARRIED, "OriginsCarried", true, false},
        {EVENT_VERSION_CHOSEN, "VersionChosen", true, false},
        {EVENT_DISCARDED, "Discarded", true, false},
        {EVENT_ACTIVITY_QUARANTINED, "ActivityQuarantined", true, false},
        {EVENT_HISTORY_PRUNED, "HistoryPruned", true, false},
        {EVENT_EVENT_EMITTED, "EventEmitted", false, false},
        {(enum event_kind)42, "Unknown", false, false},
        {(enum event_kind)2, "Unknown", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_STR(rows[i].name, event_kind_name(rows[i].kind), rows[i].name);
        CU_ASSERT_EQUAL(event_is_received(rows[i].kind), rows[i].received);
        CU_ASSERT_EQUAL(event_is_terminal(rows[i].kind), rows[i].terminal);
    }
    CHECK_STR("1", thole_cancel_kind_name(THOLE_CANCEL_REQUESTED), "requested");
    CHECK_STR("2", thole_cancel_kind_name(THOLE_CANCEL_SELECT_LOSER), "select_loser");
    CHECK_STR("3", thole_cancel_kind_name(THOLE_CANCEL_EXPLICIT), "explicit");
    CHECK_STR("4", thole_cancel_kind_name(THOLE_CANCEL_ENDED), "ended");
    CHECK_STR("5", thole_cancel_kind_name(THOLE_CANCEL_TIMEOUT), "timeout");
    CHECK_STR("6", thole_cancel_kind_name(THOLE_CANCEL_TERMINATED), "terminated");
    CHECK_STR("7", thole_cancel_kind_name((thole_cancel_kind)7), "unknown");
    CU_ASSERT_EQUAL(cancel_kind_find(THOLE_STR("select_loser")), THOLE_CANCEL_SELECT_LOSER);
    CU_ASSERT_EQUAL(cancel_kind_find(THOLE_STR("shutdown")), THOLE_CANCEL_SHUTDOWN);
    CU_ASSERT_EQUAL(cancel_kind_find(THOLE_STR("none")), THOLE_CANCEL_CANCELLED);
    CU_ASSERT_EQUAL(cancel_kind_find(THOLE_STR("of a later version")), THOLE_CANCEL_CANCELLED);
    CHECK_STR("0", thole_cancel_kind_name(THOLE_CANCEL_NONE), "none");
}

/* Fields left out: a first try, 0 and empty ones. Fields cut. */
static void check_rendering(struct buf *buf)
{
    struct {
        struct event event;
        const char *text;
    } const rows[] = {
        {{.kind = EVENT_UNKNOWN, .id = 9}, "#9 Unknown"},
        {{.kind = (enum event_kind)99, .id = 9, .ref = 3}, "#9 Unknown #3"},
        {{.kind = EVENT_STARTED, .id = 1, .name = THOLE_STR("shop"), .data = THOLE_STR("in")},
         "#1 Started shop(in)"},
        {{.kind = EVENT_ACTIVITY_COMPLETED, .id = 3, .ref = 2, .try_number = 1},
         "#3 ActivityCompleted #2 ()"},
        {{.kind = EVENT_ACTIVITY_FAILED, .id = 3, .ref = 2, .try_number = 1, .code = 77},
         "#3 ActivityFailed #2 UNKNOWN ()"},
        {{.kind = EVENT_ACTIVITY_TRY_STARTED, .id = 3, .ref = 2, .try_number = 2, .name = THOLE_STR("a")},
         "#3 ActivityTryStarted #2 try 2 a()"},
        {{.kind = EVENT_TIMER_CREATED, .id = 3}, "#3 TimerCreated due 0"},
        {{.kind = EVENT_CONTINUED_AS_NEW, .id = 3, .data = THOLE_STR("in")}, "#3 ContinuedAsNew (in)"},
        {{.kind = EVENT_CHILD_CANCELLED, .id = 3, .ref = 2, .code = 9, .target = THOLE_STR("c")},
         "#3 ChildCancelled #2 unknown () -> c"},
        {{.kind = EVENT_COMPLETED, .id = 1, .data = THOLE_STR("a\0\n\xc3\xa9~")}, "#1 Completed (a....~)"},
        {{.kind = EVENT_COMPLETED,
          .id = 1,
          .data = THOLE_STR("0123456789012345678901234567890123456789012345678901234567890123x")},
         "#1 Completed (0123456789012345678901234567890123456789012345678901234567890123...)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        event_render(&rows[i].event, buf);
        CHECK_STR(rows[i].text, buf_cstr(buf), rows[i].text);
        buf_clear(buf);
    }
}

static void rendered(void)
{
    static const char *const texts[] = {
        "#1 Started checkout@3(in.put) of shop/...:4#5",
        "#2 ActivityScheduled charge(card)",
        "#3 ActivityCompleted #2 try 2 (ok)",
        "#4 ActivityFailed #2 try 3 APP card_declined (declined)",
        "#5 ActivityCancelled #2 select_loser (select_loser)",
        "#6 TimerCreated due 18446744073709551615",
        "#7 TimerFired #6",
        "#8 TimerCancelled #6 ended (ended)",
        "#9 CancelRequested (why)",
        "#10 Completed (out)",
        "#11 Failed TIMEOUT timeout (text)",
        "#12 Cancelled (why)",
        "#13 ActivityTryFailed #2 try 1 APP a.b_c-D9 (text) due 5000",
        "#14 ActivityTryStarted #2 try 2 charge(card) due 9000",
        "#15 EventReceived approved(yes)",
        "#16 EventAwaited approved",
        "#17 EventAwaitCancelled #16 explicit (late)",
        "#18 ChildScheduled ship@2(in) -> shop:1:18",
        "#19 ChildCompleted #18 (out)",
        "#20 ChildFailed #18 CONFLICT conflict (in use)",
        "#21 ChildCancelled #18 terminated (why) -> shop:1:18 terminate",
        "#22 DetachedStarted audit@7(in) -> audit/7",
        "#23 EventSent ready(now) -> shop",
        "#24 SideEffectRecorded (..)",
        "#25 CustomStatusSet (packing)",
        "#26 StateSet key .(value) removed",
        "#27 Patched faster-tax",
        "#28 ContinuedAsNew @4(next)",
        "#29 TerminateRequested (why)",
        "#30 Terminated (why)",
        "#31 Paused (why)",
        "#32 Resumed (why)",
        "#33 StateCarried key(value)",
        "#34 OriginsCarried 2",
        "#35 VersionChosen @4294967295",
        "#36 Discarded (too old)",
        "#37 ActivityQuarantined #2 try 2 charge(5 workers that ran it were lost) due 9000",
        "#38 HistoryPruned (why) after 1 before 18446744073709551615",
        "#39 EventEmitted com.example.order.shipped(parcel)",
    };
    struct buf buf;
    buf_init(&buf, 1000);
    CU_ASSERT_EQUAL(sample_events_len, ARRAY_LEN(texts));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        event_render(&sample_events[i], &buf);
        CHECK_STR(texts[i], buf_cstr(&buf), texts[i]);
        buf_clear(&buf);
    }
    check_rendering(&buf);
    buf_release(&buf);
}

/* Decisions of code make a difference, the rest does not. */
static void equal(void)
{
    static const struct retry retry = {.tries_max = 3};
    struct event const base = {.kind = EVENT_ACTIVITY_SCHEDULED, .id = 2, .data = THOLE_STR("d")};
    struct {
        const char *name;
        struct event event;
        bool equal;
    } rows[] = {
        {"id", base, true},       {"retry", base, true},  {"try", base, true},
        {"timed", base, true},    {"final", base, true},  {"request id", base, true},
        {"details", base, true},  {"parent", base, true}, {"kind", base, false},
        {"ref", base, false},     {"due", base, false},   {"code", base, false},
        {"version", base, false}, {"flag", base, false},  {"name", base, false},
        {"queue", base, false},   {"data", base, false},  {"error type", base, false},
        {"target", base, false},
    };
    size_t i = 0;
    rows[i++].event.id = 99;
    rows[i++].event.retry = &retry;
    rows[i++].event.try_number = 1;
    rows[i++].event.timed = true;
    rows[i++].event.final = true;
    rows[i++].event.request_id = THOLE_STR("x");
    rows[i++].event.details = THOLE_STR("x");
    rows[i++].event.parent.execution = 1;
    rows[i++].event.kind = EVENT_COMPLETED;
    rows[i++].event.ref = 1;
    rows[i++].event.due_ms = 1;
    rows[i++].event.code = 1;
    rows[i++].event.version = 1;
    rows[i++].event.flag = true;
    rows[i++].event.name = THOLE_STR("x");
    rows[i++].event.queue = THOLE_STR("x");
    rows[i++].event.data = THOLE_STR("x");
    rows[i++].event.error_type = THOLE_STR("x");
    rows[i++].event.target = THOLE_STR("x");
    CU_ASSERT_EQUAL(i, ARRAY_LEN(rows));
    for (i = 0; i < ARRAY_LEN(rows); i++) {
        bool const got = event_equal(&base, &rows[i].event);
        CHECK_STR(rows[i].name, got ? "equal" : "different", rows[i].equal ? "equal" : "different");
        CU_ASSERT_EQUAL(event_equal(&rows[i].event, &base), got);
    }
}

static const struct thole_test tests[] = {
    {"kinds", kinds},
    {"rendered", rendered},
    {"equal", equal},
};
THOLE_TEST_MAIN("event", tests)
