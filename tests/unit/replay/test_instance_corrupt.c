/* Damaged histories, one way each: CORRUPT or NONDETERMINISM with a text, with and without code; never a
 * crash. test_instance_random.c damages histories at random. */
#include "dropped.h"
#include "play.h"
#include "thole/orchestration.h"

/* Something outstanding of each kind. */
static thole_status busy(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options, .retry = {.tries_max = 3}};
    drop_task(thole_call_with(ctx, THOLE_STR("a"), input, &options));
    drop_task(thole_timer(ctx, 10));
    drop_task(thole_event(ctx, THOLE_STR("go")));
    drop_task(thole_child(ctx, THOLE_STR("c"), input, NULL));
    drop_task(thole_call(ctx, THOLE_STR("plain"), input));
    return thole_await(ctx, thole_event(ctx, THOLE_STR("never")), ret_output);
}

#define BUSY                                                                                                 \
    "#1 Started t() | #2 ActivityScheduled a() [tries=3] | #3 TimerCreated due 1010 | #4 EventAwaited go | " \
    "#5 ChildScheduled c() -> order-1:1:5 | #6 ActivityScheduled plain() | #7 EventAwaited never"
#define FAILED1 BUSY " / #8 ActivityTryFailed #2 try 1 APP () due 5"

/* Each history with code and without. */
static void check(const struct play_row *rows, size_t n)
{
    play_check_replay(rows, n);
    for (size_t i = 0; i < n; i++) {
        struct play_row row = rows[i];
        row.code = NULL;
        play_check_replay(&row, 1);
    }
}

static void tries_and_results(void)
{
    struct play_row const rows[] = {
        {"whole", busy, BUSY, "ok"},
        {"tries in order", busy,
         FAILED1 " / #9 ActivityTryStarted #2 try 2 a() / #10 ActivityTryFailed #2 try 2 APP () due 5 / "
                 "#11 ActivityTryStarted #2 try 3 a() / #12 ActivityFailed #2 try 3 APP ()",
         "ok"},
        {"try 3 after try 1", busy, FAILED1 " / #9 ActivityTryStarted #2 try 3 a()",
         "CORRUPT: event 9: ActivityTryStarted of try 3, the activity's try is 1"},
        {"the same try again", busy, FAILED1 " / #9 ActivityTryStarted #2 try 1 a()",
         "CORRUPT: event 9: ActivityTryStarted of try 1, the activity's try is 1"},
        {"a try that did not fail is followed", busy, BUSY " / #8 ActivityTryStarted #2 try 2 a()",
         "CORRUPT: event 8: ActivityTryStarted of try 2, the activity's try is 1"},
        {"a try fails twice", busy, FAILED1 " | #9 ActivityTryFailed #2 try 1 APP () due 5",
         "CORRUPT: event 9: ActivityTryFailed of try 1, the activity's try is 1"},
        {"a try fails that has not begun", busy, BUSY " / #8 ActivityTryFailed #2 try 2 APP () due 5",
         "CORRUPT: event 8: ActivityTryFailed of try 2, the activity's try is 1"},
        {"the last try is to be followed", busy,
         FAILED1 " / #9 ActivityTryStarted #2 try 2 a() | #10 ActivityTryFailed #2 try 2 APP () due 5 | "
                 "#11 ActivityTryStarted #2 try 3 a() | #12 ActivityTryFailed #2 try 3 APP () due 5",
         "CORRUPT: event 12: ActivityTryFailed of try 3, the activity's try is 3"},
        {"a try without a policy", busy, BUSY " / #8 ActivityTryFailed #6 try 1 APP () due 5",
         "CORRUPT: event 8: ActivityTryFailed of try 1, the activity's try is 1"},
        {"tries while blocked are checked too", busy, BUSY " / ~#8 ActivityTryStarted #2 try 2 a()",
         "CORRUPT: event 8: ActivityTryStarted of try 2, the activity's try is 1"},
        {"a result of a later try", busy, BUSY " / #8 ActivityCompleted #2 try 2 ()",
         "CORRUPT: event 8: ActivityCompleted of try 2, the activity's try is 1"},
        {"a result of a try that has failed", busy, FAILED1 " / #9 ActivityCompleted #2 try 1 ()",
         "CORRUPT: event 9: ActivityCompleted of try 1, the activity's try is 1, and failed"},
        {"the same as a failure", busy, FAILED1 " / #9 ActivityFailed #2 try 1 APP ()",
         "CORRUPT: event 9: ActivityFailed of try 1, the activity's try is 1, and failed"},
        {"but its time may be over", busy, FAILED1 " / #9 ActivityFailed #2 try 1 TIMEOUT ()", "ok"},
        {"its time, of another try", busy, FAILED1 " / #9 ActivityFailed #2 try 2 TIMEOUT ()",
         "CORRUPT: event 9: ActivityFailed of try 2, the activity's try is 1, and failed"},
        {"a second try of an activity that has one", busy, BUSY " / #8 ActivityFailed #6 try 2 APP ()",
         "CORRUPT: event 8: ActivityFailed of try 2, the activity's try is 1"},
    };
    check(rows, ARRAY_LEN(rows));
}

static void what_comes_for_another(void)
{
    struct play_row const rows[] = {
        {"a child's result for an activity", busy, BUSY " / #8 ChildCompleted #2 ()",
         "CORRUPT: event 8: ChildCompleted for event 2, which scheduled no such thing"},
        {"a child's failure for a timer", busy, BUSY " / #8 ChildFailed #3 APP ()",
         "CORRUPT: event 8: ChildFailed for event 3, which scheduled no such thing"},
        {"an activity's result for a child", busy, BUSY " / #8 ActivityCompleted #5 ()",
         "CORRUPT: event 8: ActivityCompleted for event 5, which scheduled no such thing"},
        {"an activity's result for a wait", busy, BUSY " / #8 ActivityFailed #4 APP ()",
         "CORRUPT: event 8: ActivityFailed for event 4, which scheduled no such thing"},
        {"a timer's for a wait", busy, BUSY " / #8 TimerFired #4",
         "CORRUPT: event 8: TimerFired for event 4, which scheduled no such thing"},
        {"a timer's for an activity", busy, BUSY " / #8 TimerFired #2",
         "CORRUPT: event 8: TimerFired for event 2, which scheduled no such thing"},
        {"a try for a timer", busy, BUSY " / #8 ActivityTryStarted #3 try 2 a()",
         "CORRUPT: event 8: ActivityTryStarted for event 3, which scheduled no such thing"},
        {"completed before it is scheduled", busy, "#1 Started t() | #2 ActivityCompleted #3 ()",
         "CORRUPT: event 2: ActivityCompleted for event 3, which scheduled no such thing"},
        {"resolved twice changes nothing", busy,
         BUSY " / #8 ActivityCompleted #6 () | #9 ActivityFailed #6 APP () | #10 ChildFailed #5 APP () | "
              "#11 ChildCompleted #5 ()",
         "ok"},
        {"carried after the first turn", busy, BUSY " / #8 StateCarried k(v)",
         "CORRUPT: event 8: StateCarried after the first turn"},
        {"origins after the first turn", busy, BUSY " / #8 OriginsCarried 2",
         "CORRUPT: event 8: OriginsCarried after the first turn"},
        {"a version when one is chosen", busy, "#1 Started t@2() | #2 VersionChosen @2",
         "CORRUPT: event 2: VersionChosen when it was chosen"},
        {"a version twice", busy, "~#1 Started t() | #2 VersionChosen @2 | #3 VersionChosen @2",
         "CORRUPT: event 3: VersionChosen when it was chosen"},
        {"a version when the code has run", busy, BUSY " / #8 VersionChosen @2",
         "CORRUPT: event 8: VersionChosen when it was chosen"},
        {"given up", busy, BUSY " / #8 Discarded ()",
         "CORRUPT: event 8: Discarded in an execution that has started"},
        {"ran while paused", busy, BUSY " / ~#8 Paused () / #9 ActivityCompleted #6 ()",
         "CORRUPT: turn 3 ran while the execution was paused"},
        {"paused, and ran", busy, BUSY " / #8 Paused ()",
         "CORRUPT: turn 2 ran while the execution was paused"},
        {"paused twice, resumed twice changes nothing", busy,
         BUSY " / ~#8 Paused () | #9 Paused () / #10 Resumed () | #11 Resumed ()", "ok"},
        {"an event before the start", busy, "~#1 EventReceived go() | #2 Started t()",
         "CORRUPT: turn 1 does not begin with Started"},
        {"a turn is missing", busy, BUSY " / #9 EventReceived x()",
         "CORRUPT: event 9 is where event 8 should be"},
        {"received after asked for", busy, "#1 Started t() | #2 Patched p | #3 EventReceived go()",
         "CORRUPT: event 3: EventReceived after what the code asked for"},
        {"asked for when no code ran", busy, "~#1 Started t() | #2 EventAwaited go",
         "CORRUPT: event 2: EventAwaited in a turn in which no code ran"},
        {"goes on after it has continued as new", busy,
         "#1 Started t() | #2 ContinuedAsNew () | #3 EventAwaited go",
         "CORRUPT: event 3 follows the end of the execution"},
        {"goes on after it was terminated", busy, "#1 Started t() | #2 Terminated () | #3 Terminated ()",
         "CORRUPT: event 3 follows the end of the execution"},
    };
    check(rows, ARRAY_LEN(rows));
}

/* The code asks for something else; without code, an inconsistent history is damage. */
struct both_row {
    const char *name, *history, *with, *without;
};
static void check_both(const struct both_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct play_row const with = {rows[i].name, busy, rows[i].history, rows[i].with};
        struct play_row const without = {rows[i].name, NULL, rows[i].history, rows[i].without};
        play_check_replay(&with, 1);
        play_check_replay(&without, 1);
    }
}

#define NOTHING_MORE(id, had)                                                                                \
    "NONDETERMINISM: event " #id ": history has " had ", the code asked for nothing more"
static void what_was_asked_for(void)
{
    struct both_row const rows[] = {
        {"a wait cancelled twice",
         BUSY " / #8 EventReceived x() | #9 EventAwaitCancelled #4 explicit () | #10 EventAwaitCancelled #4 "
              "explicit ()",
         NOTHING_MORE(9, "EventAwaitCancelled of event 4 (explicit)"),
         "CORRUPT: event 10: EventAwaitCancelled of event 4, which is not outstanding"},
        {"a wait's cancellation for an activity", BUSY " | #8 EventAwaitCancelled #2 explicit ()",
         NOTHING_MORE(8, "EventAwaitCancelled of event 2 (explicit)"),
         "CORRUPT: event 8: EventAwaitCancelled of event 2, which is not outstanding"},
        {"a child's for a timer", BUSY " | #8 ChildCancelled #3 explicit () -> x",
         NOTHING_MORE(8, "ChildCancelled of event 3 (explicit)"),
         "CORRUPT: event 8: ChildCancelled of event 3, which is not outstanding"},
        {"an activity's that is completed",
         BUSY " / #8 ActivityCompleted #6 () | #9 ActivityCancelled #6 explicit ()",
         NOTHING_MORE(9, "ActivityCancelled of event 6 (explicit)"),
         "CORRUPT: event 9: ActivityCancelled of event 6, which is not outstanding"},
        {"of nothing", BUSY " | #8 TimerCancelled #77 explicit ()",
         NOTHING_MORE(8, "TimerCancelled of event 77 (explicit)"),
         "CORRUPT: event 8: TimerCancelled of event 77, which is not outstanding"},
        {"cancelled without a request", BUSY " | #8 Cancelled ()", NOTHING_MORE(8, "Cancelled"),
         "CORRUPT: event 8: Cancelled without a request"},
        {"terminated without a request", BUSY " | #8 Terminated ()", NOTHING_MORE(8, "Terminated"),
         "CORRUPT: event 8: Terminated without a request"},
        {"a request to terminate ends nothing", BUSY " / #8 TerminateRequested ()",
         "NONDETERMINISM: event 9: history ends the turn, the code asked for ActivityCancelled of event 2 "
         "(terminated)",
         "CORRUPT: turn 2: a request to terminate did not end it"},
        {"another end after a request to terminate", BUSY " / #8 TerminateRequested () | #9 Completed ()",
         "NONDETERMINISM: event 9: history has Completed, the code asked for ActivityCancelled of event 2 "
         "(terminated)",
         "CORRUPT: event 9: an end after a request to terminate"},
        {"a child of nowhere", "#1 Started t() | #2 ChildScheduled c()",
         "NONDETERMINISM: event 2: history has ChildScheduled 'c' as '', the code asked for "
         "ActivityScheduled 'a'",
         "CORRUPT: event 2: a child without an id"},
        {"a key of nothing", "#1 Started t() | #2 StateSet (v)",
         "NONDETERMINISM: event 2: history has StateSet '', the code asked for ActivityScheduled 'a'",
         "CORRUPT: event 2: a key of the wrong length"},
    };
    check_both(rows, ARRAY_LEN(rows));
}

/* ---- one mismatch of each kind of event ---- */

static thole_status everything(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {.size = sizeof options, .instance = THOLE_STR("kid")};
    thole_task const wait = thole_event(ctx, THOLE_STR("go"));
    thole_task const child = thole_child(ctx, THOLE_STR("c"), input, &options);
    thole_start(ctx, THOLE_STR("d"), input, &options);
    thole_raise(ctx, THOLE_STR("other"), THOLE_STR("e"), input);
    thole_set_status(ctx, input);
    thole_state_set(ctx, THOLE_STR("k"), input);
    thole_state_remove(ctx, THOLE_STR("k"));
    thole_cancel(ctx, wait, input);
    thole_cancel(ctx, child, input);
    (void)ret_output;
    return thole_continue_as_new(ctx, input, 2);
}

#define E2 "#1 Started t(x) | #2 EventAwaited go"
#define E3 E2 " | #3 ChildScheduled c(x) -> kid"
#define E4 E3 " | #4 DetachedStarted d(x) -> kid"
#define E5 E4 " | #5 EventSent e(x) -> other"
#define E6 E5 " | #6 CustomStatusSet (x)"
#define E7 E6 " | #7 StateSet k(x)"
#define E8 E7 " | #8 StateSet k() removed"
#define E9 E8 " | #9 EventAwaitCancelled #2 explicit (x)"
#define E10 E9 " | #10 ChildCancelled #3 explicit (x) -> kid"
#define E11 E10 " | #11 ContinuedAsNew @2(x)"
#define HAS(id, a, b) "NONDETERMINISM: event " #id ": history has " a ", the code asked for " b
#define SAME(id, a, what) HAS(id, a, "the same, but the " what " differs")
static void mismatches(void)
{
    struct play_row const rows[] = {
        {"the same", everything, E11, "ok, ended"},
        {"another event", everything, "#1 Started t(x) | #2 EventAwaited stop",
         HAS(2, "EventAwaited 'stop'", "EventAwaited 'go'")},
        {"another child", everything, E2 " | #3 ChildScheduled cc(x) -> kid",
         HAS(3, "ChildScheduled 'cc' as 'kid'", "ChildScheduled 'c' as 'kid'")},
        {"under another id", everything, E2 " | #3 ChildScheduled c(x) -> kids",
         HAS(3, "ChildScheduled 'c' as 'kids'", "ChildScheduled 'c' as 'kid'")},
        {"with another input", everything, E2 " | #3 ChildScheduled c(y) -> kid",
         SAME(3, "ChildScheduled 'c' as 'kid'", "input")},
        {"of another version", everything, E2 " | #3 ChildScheduled c@2(x) -> kid",
         SAME(3, "ChildScheduled 'c' as 'kid'", "version")},
        {"closed otherwise", everything, E2 " | #3 ChildScheduled c(x) -> kid [close=2]",
         SAME(3, "ChildScheduled 'c' as 'kid'", "close policy")},
        {"another start", everything, E3 " | #4 DetachedStarted dd(x) -> kid",
         HAS(4, "DetachedStarted 'dd' as 'kid'", "DetachedStarted 'd' as 'kid'")},
        {"raised elsewhere", everything, E4 " | #5 EventSent e(x) -> others",
         HAS(5, "EventSent 'e' to 'others'", "EventSent 'e' to 'other'")},
        {"raised otherwise", everything, E4 " | #5 EventSent e(y) -> other",
         SAME(5, "EventSent 'e' to 'other'", "content")},
        {"another status", everything, E5 " | #6 CustomStatusSet (y)", SAME(6, "CustomStatusSet", "status")},
        {"another key", everything, E6 " | #7 StateSet l(x)", HAS(7, "StateSet 'l'", "StateSet 'k'")},
        {"another value", everything, E6 " | #7 StateSet k(y)", SAME(7, "StateSet 'k'", "value")},
        {"set, not removed", everything, E7 " | #8 StateSet k()",
         HAS(8, "StateSet 'k'", "StateSet 'k', removed")},
        {"another reason", everything, E8 " | #9 EventAwaitCancelled #2 explicit (y)",
         SAME(9, "EventAwaitCancelled of event 2 (explicit)", "reason")},
        {"cancelled for good", everything, E9 " | #10 ChildCancelled #3 explicit (x) -> kid terminate",
         SAME(10, "ChildCancelled of event 3 (explicit)", "content")},
        {"continued otherwise", everything, E10 " | #11 ContinuedAsNew @2(y)",
         SAME(11, "ContinuedAsNew", "input")},
        {"to another version", everything, E10 " | #11 ContinuedAsNew @3(x)",
         SAME(11, "ContinuedAsNew", "version")},
        {"not continued", everything, E10 " | #11 Completed (x)", HAS(11, "Completed", "ContinuedAsNew")},
    };
    play_check_replay(rows, ARRAY_LEN(rows));
}

/* ---- cases that text cannot express ---- */

static void raw(const char *name, struct event second, const char *expected)
{
    struct event const events[] = {{.kind = EVENT_STARTED, .id = 1, .code = 1, .name = THOLE_STR("t")},
                                   second};
    struct turn const turn = {.instance = THOLE_STR("order-1"),
                              .execution = 1,
                              .number = 1,
                              .ran = !event_is_received(second.kind),
                              .events = events,
                              .events_len = 2};
    struct play play = play_of(NULL);
    struct instance *instance = play_instance(&play);
    thole_error err = {.text = "ok"};
    play_ignore(instance_replay(instance, &turn, &err));
    CHECK_STR(name, err.text, expected);
    instance_destroy(instance);
    play_release(&play);
}

static void raw_events(void)
{
    static const uint8_t long_key[65] = {'k'};
    struct retry const odd = {.tries_max = UINT32_MAX,
                              .total_timeout_ms = UINT64_MAX,
                              .first_delay_ms = UINT64_MAX,
                              .factor_milli = UINT32_MAX,
                              .jitter_milli = UINT32_MAX};
    raw("half a hash",
        (struct event){.kind = EVENT_ORIGINS_CARRIED, .id = 2, .data = THOLE_STR("12345678901")},
        "event 2: OriginsCarried with half a hash");
    raw("a long key", (struct event){.kind = EVENT_STATE_CARRIED, .id = 2, .name = {long_key, 65}},
        "event 2: StateCarried with a key that is too long");
    raw("a long key, set", (struct event){.kind = EVENT_STATE_SET, .id = 2, .name = {long_key, 65}},
        "event 2: a key of the wrong length");
    raw("a kind of the future", (struct event){.kind = (enum event_kind)99, .id = 2}, "ok");
    raw("a policy of the future",
        (struct event){.kind = EVENT_ACTIVITY_SCHEDULED, .id = 2, .name = THOLE_STR("a"), .retry = &odd},
        "ok");
    raw("a close policy of the future",
        (struct event){.kind = EVENT_CHILD_SCHEDULED,
                       .id = 2,
                       .name = THOLE_STR("a"),
                       .target = THOLE_STR("x"),
                       .code = 9},
        "ok");
}

/* Numbers as large as they get neither overflow nor stop the tries. */
static void odd_policies(void)
{
    struct retry const odd = {.tries_max = UINT32_MAX,
                              .total_timeout_ms = UINT64_MAX,
                              .first_delay_ms = UINT64_MAX,
                              .factor_milli = UINT32_MAX,
                              .jitter_milli = UINT32_MAX};
    struct event const events[] = {
        {.kind = EVENT_STARTED, .id = 1, .code = 1, .name = THOLE_STR("t")},
        {.kind = EVENT_ACTIVITY_SCHEDULED, .id = 2, .name = THOLE_STR("a"), .retry = &odd}};
    struct turn const turn = {.instance = THOLE_STR("order-1"),
                              .execution = 1,
                              .number = 1,
                              .ran = true,
                              .time_ms = UINT64_MAX - 5,
                              .events = events,
                              .events_len = 2};
    struct play play = play_of(NULL);
    struct instance *instance = play_instance(&play);
    struct event const failed = {.kind = EVENT_ACTIVITY_FAILED, .ref = 2, .code = THOLE_APP};
    struct turn_in const in = {.received = &failed, .received_len = 1};
    struct turn_out out = {0};
    CU_ASSERT_EQUAL(instance_replay(instance, &turn, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(out.events_len, 1);
    CU_ASSERT(out.events[0].due_ms - turn.time_ms <= UINT64_C(36525) * 24 * 3600 * 1000);
    instance_destroy(instance);
    play_release(&play);
}

static const struct thole_test tests[] = {
    {"tries and results", tries_and_results},
    {"what comes for another", what_comes_for_another},
    {"what was asked for", what_was_asked_for},
    {"mismatches", mismatches},
    {"raw events", raw_events},
    {"odd policies", odd_policies},
};
THOLE_TEST_MAIN("instance_corrupt", tests)
