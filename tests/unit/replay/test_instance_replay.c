/* Recorded histories against code: what is the same, what has diverged and how that is said, what is damaged.
 */
#include "play.h"
#include "thole/orchestration.h"

/* Charges within 30 seconds, then ships. */
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

static thole_status gives_up(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task a = thole_call(ctx, THOLE_STR("a"), input);
    (void)ret_output;
    thole_cancel(ctx, a, THOLE_STR("why"));
    return thole_await(ctx, a, NULL);
}

static thole_status asks_for_nothing(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)input;
    *ret_output = THOLE_STR("done");
    return THOLE_OK;
}

#define START "#1 Started t(card) | #2 ActivityScheduled charge(card) | #3 TimerCreated due 31000"
#define PAID                                                                                                 \
    START                                                                                                    \
    " / #4 ActivityCompleted #2 (paid) | #5 TimerCancelled #3 select_loser (activity 2 'charge' won) | "     \
    "#6 ActivityScheduled ship(paid)"
#define SHIPPED PAID " / #7 ActivityCompleted #6 () | #8 Completed (shipped)"

static void same(void)
{
    struct play_row const rows[] = {
        {"fresh", checkout, "", "ok"},
        {"started", checkout, START, "ok"},
        {"partial", checkout, PAID, "ok"},
        {"from before losers were told who has won", checkout,
         "#1 Started t(card) [code=1] | #2 ActivityScheduled charge(card) | #3 TimerCreated due 31000 / "
         "#4 ActivityCompleted #2 (paid) | #5 TimerCancelled #3 select_loser (select_loser) | "
         "#6 ActivityScheduled ship(paid)",
         "ok"},
        {"completed", checkout, SHIPPED, "ok, ended"},
        {"failed", checkout,
         START " / #4 TimerFired #3 | #5 ActivityCancelled #2 select_loser (timer 3 won) | #6 Failed APP "
               "(too late)",
         "ok, ended"},
        {"cancelled", checkout,
         PAID " / #7 CancelRequested (why) | #8 ActivityCancelled #6 requested (why) | #9 Cancelled (why)",
         "ok, ended"},
        {"blocked, then delivered", checkout,
         START " / ~#4 ActivityCompleted #2 (paid) / #5 TimerCancelled #3 "
               "select_loser (activity 2 'charge' won) | #6 ActivityScheduled ship(paid)",
         "ok"},
        {"time never goes back", checkout,
         "@1000 ~#1 Started t(card) / @500 #2 ActivityScheduled charge(card) | #3 TimerCreated due 31000",
         "ok"},
    };
    play_check_replay(rows, ARRAY_LEN(rows));
}

static void diverged(void)
{
    struct play_row const rows[] = {
        {"renamed", checkout,
         "#1 Started t(card) | #2 ActivityScheduled refund(card) | #3 TimerCreated due 31000",
         "NONDETERMINISM: event 2: history has ActivityScheduled 'refund', the code asked for "
         "ActivityScheduled 'charge'"},
        {"input changed", checkout,
         "#1 Started t(card) | #2 ActivityScheduled charge(cash) | #3 TimerCreated due 31000",
         "NONDETERMINISM: event 2: history has ActivityScheduled 'charge', the code asked for the same, but "
         "the input "
         "differs"},
        {"reordered", checkout,
         "#1 Started t(card) | #2 TimerCreated due 31000 | #3 ActivityScheduled charge(card)",
         "NONDETERMINISM: event 2: history has TimerCreated due 31000, the code asked for ActivityScheduled "
         "'charge'"},
        {"another delay", checkout,
         "#1 Started t(card) | #2 ActivityScheduled charge(card) | #3 TimerCreated due 9000",
         "NONDETERMINISM: event 3: history has TimerCreated due 9000, the code asked for TimerCreated due "
         "31000"},
        {"timer for activity", checkout,
         "#1 Started t(card) | #2 ActivityScheduled charge(card) | #3 ActivityScheduled x()",
         "NONDETERMINISM: event 3: history has ActivityScheduled 'x', the code asked for TimerCreated due "
         "31000"},
        {"the code has one more", checkout, "#1 Started t(card) | #2 ActivityScheduled charge(card)",
         "NONDETERMINISM: event 3: history ends the turn, the code asked for TimerCreated due 31000"},
        {"the code has one less", checkout, START " | #4 ActivityScheduled audit(card)",
         "NONDETERMINISM: event 4: history has ActivityScheduled 'audit', the code asked for nothing more"},
        {"the code has none", checkout,
         START " / #4 ActivityCompleted #2 (paid) | #5 TimerCancelled #3 select_loser "
               "(activity 2 'charge' won) | #6 Completed (shipped)",
         "NONDETERMINISM: event 6: history has Completed, the code asked for ActivityScheduled 'ship'"},
        {"removed from the end", checkout, PAID " / #7 ActivityCompleted #6 () | #8 ActivityScheduled bill()",
         "NONDETERMINISM: event 8: history has ActivityScheduled 'bill', the code asked for Completed"},
        {"the output changed", checkout, PAID " / #7 ActivityCompleted #6 () | #8 Completed (delivered)",
         "NONDETERMINISM: event 8: history has Completed, the code asked for the same, but the output "
         "differs"},
        {"the end has changed", checkout, PAID " / #7 ActivityCompleted #6 () | #8 Failed APP (x)",
         "NONDETERMINISM: event 8: history has Failed APP, the code asked for Completed"},
        {"the code ends sooner", asks_for_nothing, START,
         "NONDETERMINISM: event 2: history has ActivityScheduled 'charge', the code asked for Completed"},
        {"the code no longer ends", checkout, START " | #4 Completed (x)",
         "NONDETERMINISM: event 4: history has Completed, the code asked for nothing more"},
        {"the loser was not cancelled", checkout,
         START " / #4 ActivityCompleted #2 (paid) | #5 ActivityScheduled ship(paid)",
         "NONDETERMINISM: event 5: history has ActivityScheduled 'ship', the code asked for TimerCancelled "
         "of event 3 "
         "(select_loser)"},
        {"cancelled for another reason", gives_up,
         "#1 Started t() | #2 ActivityScheduled a() | #3 ActivityCancelled #2 explicit (else) | #4 Failed "
         "CANCELLED (x)",
         "NONDETERMINISM: event 3: history has ActivityCancelled of event 2 (explicit), the code asked for "
         "the same, but "
         "the reason differs"},
        {"another failure text", gives_up,
         "#1 Started t() | #2 ActivityScheduled a() | #3 ActivityCancelled #2 explicit (why) | #4 Failed "
         "CANCELLED (x)",
         "NONDETERMINISM: event 4: history has Failed CANCELLED, the code asked for the same, but the "
         "failure text differs"},
        {"another status", gives_up,
         "#1 Started t() | #2 ActivityScheduled a() | #3 ActivityCancelled #2 explicit (why) | #4 Failed APP "
         "(x)",
         "NONDETERMINISM: event 4: history has Failed APP, the code asked for Failed CANCELLED"},
    };
    play_check_replay(rows, ARRAY_LEN(rows));
}

/* The winner of a race is part of the reason, but not in older executions. */
static void another_winner(void)
{
    struct play_row const rows[] = {
        {"another winner", checkout,
         START " / #4 ActivityCompleted #2 (paid) | #5 TimerCancelled #3 select_loser (select_loser)",
         "NONDETERMINISM: event 5: history has TimerCancelled of event 3 (select_loser), the code asked for "
         "the "
         "same, but the reason differs"},
        {"an old execution does not say who has won", checkout,
         "#1 Started t(card) [code=1] | #2 ActivityScheduled charge(card) | #3 TimerCreated due 31000 / "
         "#4 ActivityCompleted #2 (paid) | #5 TimerCancelled #3 select_loser (activity 2 'charge' won)",
         "NONDETERMINISM: event 5: history has TimerCancelled of event 3 (select_loser), the code asked for "
         "the "
         "same, but the reason differs"},
    };
    play_check_replay(rows, ARRAY_LEN(rows));
}

static void damaged(void)
{
    struct play_row const rows[] = {
        {"no start", checkout, "#1 ActivityScheduled charge(card)",
         "CORRUPT: turn 1 does not begin with Started"},
        {"an empty first turn", checkout, "-", "CORRUPT: turn 1 does not begin with Started"},
        {"a start that comes second", checkout, "#1 CancelRequested () | #2 Started t()",
         "CORRUPT: turn 1 does not begin with Started"},
        {"two starts", checkout, "#1 Started t(card) | #2 Started t(card)",
         "CORRUPT: event 2: Started a second time"},
        {"two starts, two turns", checkout, START " / #4 Started t(card)",
         "CORRUPT: event 4: Started a second time"},
        {"event numbers have a gap", checkout, "#1 Started t(card) | #3 ActivityScheduled charge(card)",
         "CORRUPT: event 3 is where event 2 should be"},
        {"event numbers repeat", checkout, "#1 Started t(card) | #1 ActivityScheduled charge(card)",
         "CORRUPT: event 1 is where event 2 should be"},
        {"event numbers have a gap between turns", checkout, START " / #5 ActivityCompleted #2 (paid)",
         "CORRUPT: event 5 is where event 4 should be"},
        {"event numbers do not begin with 1", checkout, "#2 Started t(card)",
         "CORRUPT: event 2 is where event 1 should be"},
        {"a completion of nothing", checkout, START " / #4 ActivityCompleted #9 (x)",
         "CORRUPT: event 4: ActivityCompleted for event 9, which scheduled no such thing"},
        {"a completion of itself", checkout, START " / #4 ActivityCompleted #4 (x)",
         "CORRUPT: event 4: ActivityCompleted for event 4, which scheduled no such thing"},
        {"a completion of the start", checkout, START " / #4 ActivityFailed #1 APP (x)",
         "CORRUPT: event 4: ActivityFailed for event 1, which scheduled no such thing"},
        {"a timer that is an activity", checkout, START " / #4 TimerFired #2",
         "CORRUPT: event 4: TimerFired for event 2, which scheduled no such thing"},
        {"an activity that is a timer", checkout, START " / #4 ActivityCompleted #3 ()",
         "CORRUPT: event 4: ActivityCompleted for event 3, which scheduled no such thing"},
        {"received after asked for", checkout,
         START " / #4 ActivityCompleted #2 (paid) | #5 TimerCancelled #3 "
               "select_loser (activity 2 'charge' won) | #6 TimerFired #3",
         "CORRUPT: event 6: TimerFired after what the code asked for"},
        {"asked for in a turn that did not run", checkout, START " / ~#4 ActivityScheduled ship(paid)",
         "CORRUPT: event 4: ActivityScheduled in a turn in which no code ran"},
        {"ended in a turn that did not run", checkout, START " / ~#4 Completed ()",
         "CORRUPT: event 4: Completed in a turn in which no code ran"},
        {"events after the end", checkout, "#1 Started t(card) | #2 Completed () | #3 ActivityScheduled a()",
         "CORRUPT: event 3 follows the end of the execution"},
        {"two ends", checkout, "#1 Started t(card) | #2 Completed () | #3 Completed ()",
         "CORRUPT: event 3 follows the end of the execution"},
        {"a turn after the end", checkout, SHIPPED " / #9 CancelRequested ()",
         "CORRUPT: turn 4 follows the end of the execution"},
        {"an empty turn after the end", checkout, SHIPPED " / -",
         "CORRUPT: turn 4 follows the end of the execution"},
        {"an unknown kind", checkout, START " / #4 SignalReceived (x)",
         "UNSUPPORTED: event 4 is of a kind that this engine does not know"},
        {"an unknown kind asked for", checkout, "#1 Started t(card) | #2 ChildStarted",
         "UNSUPPORTED: event 2 is of a kind that this engine does not know"},
    };
    play_check_replay(rows, ARRAY_LEN(rows));
}

static void duplicates_change_nothing(void)
{
    struct play_row const rows[] = {
        {"while blocked", checkout,
         START " / ~#4 ActivityCompleted #2 (paid) | #5 ActivityCompleted #2 (else) / "
               "~#6 ActivityFailed #2 APP (no) / #7 TimerCancelled #3 select_loser "
               "(activity 2 'charge' won) | #8 ActivityScheduled ship(paid)",
         "ok"},
        {"of a cancelled one", checkout, PAID " / #7 TimerFired #3", "ok"},
        {"a second request", checkout,
         START " / ~#4 CancelRequested (why) / ~#5 CancelRequested (else) | #6 ActivityCompleted #2 () / "
               "#7 ActivityCancelled #2 requested (why) | #8 TimerCancelled #3 requested (why) | #9 "
               "Cancelled (why)",
         "ok, ended"},
        {"recorded unchecked while blocked", checkout,
         START " / ~#4 ActivityCompleted #99 () | #5 TimerFired #2", "ok"},
        {"a result of another try, recorded while blocked", checkout,
         START
         " / ~#4 ActivityCompleted #2 try 2 (old) / #5 ActivityCompleted #2 (paid) | #6 TimerCancelled #3 "
         "select_loser (activity 2 'charge' won) | #7 ActivityScheduled ship(paid)",
         "ok"},
    };
    play_check_replay(rows, ARRAY_LEN(rows));
}

/* ---- cases that text cannot express ---- */

static void check_turn(const char *row, struct turn turn, const char *expected)
{
    struct play play = play_of(checkout);
    struct instance *instance = play_instance(&play);
    thole_error err = {.text = "ok"};
    thole_status const status = instance_replay(instance, &turn, &err);
    CHECK_STR(row, err.text, expected);
    CU_ASSERT_EQUAL(instance_replay(instance, &turn, &err), status); /* an error is for good */
    instance_destroy(instance);
    play_release(&play);
}

static void damaged_turns(void)
{
    struct event const start = {.kind = EVENT_STARTED, .id = 1, .name = THOLE_STR("t"), .code = 4};
    struct turn const turn = {.instance = THOLE_STR("order-1"),
                              .execution = 1,
                              .number = 1,
                              .ran = true,
                              .events = &start,
                              .events_len = 1};
    struct turn wrong = turn;
    check_turn("newer semantics", turn, "execution of semantics 4, this engine knows 3");
    wrong.number = 2;
    check_turn("turn 1 is missing", wrong, "turn 2 follows turn 0");
    wrong = turn, wrong.number = 0;
    check_turn("turn 0", wrong, "turn 0 follows turn 0");
    wrong = turn, wrong.instance = THOLE_STR("order-2");
    check_turn("another instance", wrong, "turn 1 belongs to another instance or execution");
    wrong = turn, wrong.execution = 2;
    check_turn("another execution", wrong, "turn 1 belongs to another instance or execution");
}

/* An error text of the longest parts fits its buffer. */
static void longest_names(void)
{
    static const char name[] = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";
    struct event const events[] = {
        {.kind = EVENT_STARTED, .id = 1, .name = THOLE_STR("t"), .code = 1},
        {.kind = EVENT_ACTIVITY_SCHEDULED, .id = 2, .name = thole_slice_from(name)}};
    struct turn const turn = {.instance = THOLE_STR("order-1"),
                              .execution = 1,
                              .number = 1,
                              .ran = true,
                              .events = events,
                              .events_len = 2};
    check_turn("name", turn,
               "event 2: history has ActivityScheduled "
               "'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn', the code asked for "
               "ActivityScheduled 'charge'");
}

/* ---- without code ---- */

static void facts_without_code(void)
{
    struct play_row const rows[] = {
        {"the same histories", NULL, SHIPPED, "ok, ended"},
        {"no code, no divergence", NULL, "#1 Started t() | #2 ActivityScheduled anything()", "ok"},
        {"unknown kinds are left alone", NULL,
         "#1 Started t() | #2 ChildStarted / #3 SignalReceived (x) | #4 ActivityScheduled a() / "
         "#5 ActivityCompleted #4 () | #6 ChildParked #2 | #7 Completed ()",
         "ok, ended"},
        {"whether they were received or asked for", NULL,
         "#1 Started t() | #2 SignalReceived (x) | #3 EventReceived go(1) | #4 ChildStarted | #5 "
         "EventAwaited go / "
         "~#6 SignalReceived (x) / ~#7 EventReceived go(1) | #8 SignalReceived (y) / #9 ActivityScheduled "
         "a()",
         "ok"},
        {"still damaged", NULL, START " / #4 ActivityCompleted #9 (x)",
         "CORRUPT: event 4: ActivityCompleted for event 9, which scheduled no such thing"},
        {"cancelled twice", NULL, START " | #4 TimerCancelled #3 explicit () | #5 TimerCancelled #3 ended ()",
         "CORRUPT: event 5: TimerCancelled of event 3, which is not outstanding"},
        {"cancelled as the wrong kind", NULL, START " | #4 TimerCancelled #2 explicit ()",
         "CORRUPT: event 4: TimerCancelled of event 2, which is not outstanding"},
        {"an activity without a name", NULL, "#1 Started t() | #2 ActivityScheduled ()",
         "CORRUPT: event 2: an activity without a name"},
        {"a gap", NULL, START " / #9 TimerFired #3", "CORRUPT: event 9 is where event 4 should be"},
    };
    play_check_replay(rows, ARRAY_LEN(rows));
}

static void messages_without_code(void)
{
    struct play play = play_of(NULL);
    struct play_turns turns;
    struct instance *instance = play_instance(&play);
    play_parse(PAID, &turns);
    for (size_t i = 0; i < turns.len; i++)
        CU_ASSERT_EQUAL(instance_replay(instance, &turns.turns[i], NULL), THOLE_OK);
    CU_ASSERT_FALSE(instance_accepts(instance, &(struct event){.kind = EVENT_ACTIVITY_COMPLETED, .ref = 2}));
    CU_ASSERT_FALSE(instance_accepts(instance, &(struct event){.kind = EVENT_TIMER_FIRED, .ref = 3}));
    CU_ASSERT_FALSE(instance_accepts(instance, &(struct event){.kind = EVENT_TIMER_FIRED, .ref = 6}));
    struct event const done = {.kind = EVENT_ACTIVITY_COMPLETED, .ref = 6};
    CU_ASSERT(instance_accepts(instance, &done));
    struct turn_in in = {.received = &done, .received_len = 1, .run = false};
    struct turn_out out = {0};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(out.events_len, 1);
    CU_ASSERT_EQUAL(out.number, 3);
    CU_ASSERT_FALSE(instance_accepts(instance, &done));
    in = (struct turn_in){.run = true};
    thole_error err;
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, &err), THOLE_INVALID);
    CHECK_STR("run without code", err.text, "this instance has no code to run");
    instance_destroy(instance);
    play_turns_release(&turns);
    play_release(&play);
}

static const struct thole_test tests[] = {
    {"same", same},
    {"diverged", diverged},
    {"another winner", another_winner},
    {"damaged", damaged},
    {"duplicates change nothing", duplicates_change_nothing},
    {"damaged turns", damaged_turns},
    {"longest names", longest_names},
    {"facts without code", facts_without_code},
    {"messages without code", messages_without_code},
};
THOLE_TEST_MAIN("instance_replay", tests)
