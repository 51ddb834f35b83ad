/* Cancellation of a whole execution: while it waits, before it starts, with compensation, unnoticed. */
#include "play.h"
#include "thole/orchestration.h"

static thole_status one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("charge"), input), ret_output);
}

static thole_status no_await(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx;
    *ret_output = input;
    return THOLE_OK;
}

/* Charges, waits for a day; when cancelled, gives the money back. */
static thole_status compensates(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task charge = thole_call(ctx, THOLE_STR("charge"), input);
    thole_task day = thole_timer(ctx, 86400000);
    thole_status status = thole_await(ctx, charge, NULL);
    if (status == THOLE_OK)
        status = thole_await(ctx, day, NULL);
    if (status == THOLE_CANCELLED)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("refund"), input), ret_output));
    return status;
}

/* Swallows the cancellation and succeeds. */
static thole_status ignores(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    play_ignore(thole_await(ctx, thole_call(ctx, THOLE_STR("a"), input), NULL));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("b"), input), ret_output));
    return THOLE_OK;
}

static thole_status fails_on_its_own(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    if (thole_await(ctx, thole_call(ctx, THOLE_STR("a"), input), NULL) != THOLE_OK)
        return thole_throw(ctx, "gave up");
    return THOLE_OK;
}

static thole_status counts_interruptions(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    int interruptions = 0;
    for (int i = 0; i < 3; i++)
        interruptions += thole_await(ctx, thole_call(ctx, THOLE_STR("a"), input), NULL) == THOLE_CANCELLED;
    *ret_output = thole_format(ctx, "%d", interruptions);
    return thole_throw(ctx, "%d", interruptions);
}

#define ONE "#1 Started t(x) | #2 ActivityScheduled charge(x)"
#define ORDER "#1 Started t(x) | #2 ActivityScheduled charge(x) | #3 TimerCreated due 86401000"
#define WHY "requested (why)"

static void while_waiting(void)
{
    struct play_row const rows[] = {
        {"the activity is cancelled at once", one, "Started t(x) / CancelRequested (why)",
         ONE " / #3 CancelRequested (why) | #4 ActivityCancelled #2 " WHY " | #5 Cancelled (why)"},
        {"no reason", one, "Started t(x) / CancelRequested ()",
         ONE " / #3 CancelRequested () | #4 ActivityCancelled #2 requested () | #5 Cancelled ()"},
        {"all that is outstanding", compensates,
         "Started t(x) / CancelRequested (why) / ActivityCompleted #7 (ok)",
         ORDER " / #4 CancelRequested (why) | #5 ActivityCancelled #2 " WHY " | #6 TimerCancelled #3 " WHY
               " | #7 ActivityScheduled refund(x) / #8 ActivityCompleted #7 (ok) | #9 Cancelled (why)"},
        {"the second await", compensates,
         "Started t(x) / ActivityCompleted #2 () / CancelRequested (why) / ActivityCompleted #7 (ok)",
         ORDER " / #4 ActivityCompleted #2 () / #5 CancelRequested (why) | #6 TimerCancelled #3 " WHY
               " | #7 ActivityScheduled refund(x) / #8 ActivityCompleted #7 (ok) | #9 Cancelled (why)"},
        {"the first reason wins", compensates,
         "Started t(x) / CancelRequested (why) | CancelRequested (again) / CancelRequested (more)",
         ORDER " / #4 CancelRequested (why) | #5 ActivityCancelled #2 " WHY " | #6 TimerCancelled #3 " WHY
               " | #7 ActivityScheduled refund(x) / -"},
        {"a compensation that fails", compensates,
         "Started t(x) / CancelRequested (why) / ActivityFailed #7 APP (no)",
         ORDER " / #4 CancelRequested (why) | #5 ActivityCancelled #2 " WHY " | #6 TimerCancelled #3 " WHY
               " | #7 ActivityScheduled refund(x) / #8 ActivityFailed #7 APP (no) | #9 Cancelled (why)"},
        {"a completion comes too late", one,
         "Started t(x) / CancelRequested (why) | ActivityCompleted #2 (ok)",
         ONE " / #3 CancelRequested (why) | #4 ActivityCancelled #2 " WHY " | #5 Cancelled (why)"},
        {"swallowed: cancelled all the same", ignores,
         "Started t(x) / CancelRequested (why) / ActivityCompleted #5 (b)",
         "#1 Started t(x) | #2 ActivityScheduled a(x) / #3 CancelRequested (why) | #4 ActivityCancelled "
         "#2 " WHY " | #5 ActivityScheduled b(x) / #6 ActivityCompleted #5 (b) | #7 Cancelled (why)"},
        {"turned into a failure: cancelled all the same", fails_on_its_own,
         "Started t(x) / CancelRequested (why)",
         "#1 Started t(x) | #2 ActivityScheduled a(x) / #3 CancelRequested (why) | #4 ActivityCancelled "
         "#2 " WHY " | #5 Cancelled (why)"},
        {"interrupts once", counts_interruptions,
         "Started t(x) / CancelRequested (why) / ActivityCompleted #5 () / ActivityCompleted #7 ()",
         "#1 Started t(x) | #2 ActivityScheduled a(x) / #3 CancelRequested (why) | #4 ActivityCancelled "
         "#2 " WHY " | #5 ActivityScheduled a(x) / #6 ActivityCompleted #5 () | #7 ActivityScheduled a(x) / "
         "#8 ActivityCompleted #7 () | #9 Cancelled (why)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

static void before_the_start(void)
{
    struct play_row const rows[] = {
        {"in the first turn", one, "Started t(x) | CancelRequested (why)",
         "#1 Started t(x) | #2 CancelRequested (why) | #3 ActivityScheduled charge(x) | #4 ActivityCancelled "
         "#3 " WHY " | #5 Cancelled (why)"},
        {"while there was no code", one, "~Started t(x) / ~CancelRequested (why) / -",
         "~#1 Started t(x) / ~#2 CancelRequested (why) / #3 ActivityScheduled charge(x) | "
         "#4 ActivityCancelled #3 " WHY " | #5 Cancelled (why)"},
        {"interrupts once", counts_interruptions,
         "Started t(x) | CancelRequested (why) / ActivityCompleted #4 () / ActivityCompleted #6 ()",
         "#1 Started t(x) | #2 CancelRequested (why) | #3 ActivityScheduled a(x) | #4 ActivityScheduled a(x) "
         "/ "
         "#5 ActivityCompleted #4 () | #6 ActivityScheduled a(x) / #7 ActivityCompleted #6 () | "
         "#8 ActivityCancelled #3 " WHY " | #9 Cancelled (why)"},
        {"never awaits: completes", no_await, "Started t(x) | CancelRequested (why)",
         "#1 Started t(x) | #2 CancelRequested (why) | #3 Completed (x)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- the order of a completion and the request decides ---- */

static thole_status two_then(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task a = thole_call(ctx, THOLE_STR("a"), input), b = thole_call(ctx, THOLE_STR("b"), input);
    thole_status s1 = thole_await(ctx, a, NULL);
    thole_status s2 = thole_await(ctx, b, NULL);
    thole_status s3 = thole_await(ctx, thole_call(ctx, THOLE_STR("c"), input), ret_output);
    return thole_throw(ctx, "%d %d %d", s1, s2, s3);
}

static void completion_and_request_in_one_turn(void)
{
    struct play_row const rows[] = {
        {"completed first: unnoticed, completes", one,
         "Started t(x) / ActivityCompleted #2 (ok) | CancelRequested (why)",
         ONE " / #3 ActivityCompleted #2 (ok) | #4 CancelRequested (why) | #5 Completed (ok)"},
        {"failed first: no success, so cancelled", one,
         "Started t(x) / ActivityFailed #2 APP () | CancelRequested (why)",
         ONE " / #3 ActivityFailed #2 APP () | #4 CancelRequested (why) | #5 Cancelled (why)"},
        {"completed first, the next await is told", compensates,
         "Started t(x) / ActivityCompleted #2 (ok) | CancelRequested (why) / ActivityCompleted #7 (ok)",
         ORDER " / #4 ActivityCompleted #2 (ok) | #5 CancelRequested (why) | #6 TimerCancelled #3 " WHY
               " | #7 ActivityScheduled refund(x) / #8 ActivityCompleted #7 (ok) | #9 Cancelled (why)"},
        {"completed first, the next await would suspend", ignores,
         "Started t(x) / ActivityCompleted #2 () | CancelRequested (why)",
         "#1 Started t(x) | #2 ActivityScheduled a(x) / #3 ActivityCompleted #2 () | #4 CancelRequested "
         "(why) | "
         "#5 ActivityScheduled b(x) | #6 ActivityCancelled #5 " WHY " | #7 Cancelled (why)"},
        {"an await of a cancelled task tells, too", two_then,
         "Started t(x) / ActivityCompleted #2 () | CancelRequested (why) / ActivityCompleted #7 ()",
         "#1 Started t(x) | #2 ActivityScheduled a(x) | #3 ActivityScheduled b(x) / #4 ActivityCompleted #2 "
         "() | "
         "#5 CancelRequested (why) | #6 ActivityCancelled #3 " WHY " | #7 ActivityScheduled c(x) / "
         "#8 ActivityCompleted #7 () | #9 Cancelled (why)"},
        {"recorded while blocked, the same order", one,
         "Started t(x) / ~ActivityCompleted #2 (ok) / ~CancelRequested (why) / -",
         ONE " / ~#3 ActivityCompleted #2 (ok) / ~#4 CancelRequested (why) / #5 Completed (ok)"},
        {"recorded while blocked, the other order", one,
         "Started t(x) / ~CancelRequested (why) / ~ActivityCompleted #2 (ok) / -",
         ONE " / ~#3 CancelRequested (why) / ~- / #4 ActivityCancelled #2 " WHY " | #5 Cancelled (why)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- awaits of several ---- */

static thole_status all(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[] = {thole_call(ctx, THOLE_STR("a"), input), thole_call(ctx, THOLE_STR("b"), input)};
    thole_slice results[2];
    thole_status const status = thole_await_all(ctx, tasks, 2, results);
    (void)ret_output;
    thole_slice const next = status == THOLE_CANCELLED ? THOLE_STR("undo") : THOLE_STR("go");
    play_ignore(thole_await(ctx, thole_call(ctx, next, results[0]), NULL));
    return status;
}

static thole_status any(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[] = {thole_call(ctx, THOLE_STR("a"), input), thole_timer(ctx, 10)};
    size_t winner = 7;
    thole_status const status = thole_await_any(ctx, tasks, 2, &winner);
    (void)ret_output;
    thole_slice const text = thole_format(ctx, "%s %zu", thole_status_name(status), winner);
    play_ignore(thole_await(ctx, thole_call(ctx, THOLE_STR("undo"), text), NULL));
    return status;
}

/* Both races ask when everything is over: the tasks are resolved, nothing suspends. */
static thole_status any_of_cancelled(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[] = {thole_call(ctx, THOLE_STR("a"), input), thole_call(ctx, THOLE_STR("b"), input)};
    thole_task c = thole_call(ctx, THOLE_STR("c"), input);
    size_t winner = 7;
    play_ignore(thole_await(ctx, c, NULL));
    THOLE_TRY(thole_await_any(ctx, tasks, 2, &winner));
    return thole_await(ctx, tasks[winner], ret_output);
}

#define PAIR "#1 Started t(x) | #2 ActivityScheduled a(x) | #3 ActivityScheduled b(x)"
static void awaits_of_several(void)
{
    struct play_row const rows[] = {
        {"all: what is there is given", all,
         "Started t(x) / ActivityCompleted #2 (A) / CancelRequested (why) / "
         "ActivityCompleted #7 ()",
         PAIR " / #4 ActivityCompleted #2 (A) / #5 CancelRequested (why) | #6 ActivityCancelled #3 " WHY
              " | #7 ActivityScheduled undo(A) / #8 ActivityCompleted #7 () | #9 Cancelled (why)"},
        {"all: before the start", all, "Started t(x) | CancelRequested (why) / ActivityCompleted #5 ()",
         "#1 Started t(x) | #2 CancelRequested (why) | #3 ActivityScheduled a(x) | #4 ActivityScheduled b(x) "
         "| "
         "#5 ActivityScheduled undo() / #6 ActivityCompleted #5 () | #7 ActivityCancelled #3 " WHY
         " | #8 ActivityCancelled #4 " WHY " | #9 Cancelled (why)"},
        {"any: no winner", any, "Started t(x) / CancelRequested (why) / ActivityCompleted #7 ()",
         "#1 Started t(x) | #2 ActivityScheduled a(x) | #3 TimerCreated due 1010 / #4 CancelRequested (why) "
         "| "
         "#5 ActivityCancelled #2 " WHY " | #6 TimerCancelled #3 " WHY
         " | #7 ActivityScheduled undo(CANCELLED 7) / "
         "#8 ActivityCompleted #7 () | #9 Cancelled (why)"},
        {"any: before the start", any, "Started t(x) | CancelRequested (why) / ActivityCompleted #5 ()",
         "#1 Started t(x) | #2 CancelRequested (why) | #3 ActivityScheduled a(x) | #4 TimerCreated due 1010 "
         "| "
         "#5 ActivityScheduled undo(CANCELLED 7) / #6 ActivityCompleted #5 () | #7 ActivityCancelled #3 " WHY
         " | #8 TimerCancelled #4 " WHY " | #9 Cancelled (why)"},
        {"any of cancelled ones", any_of_cancelled, "Started t(x) / CancelRequested (why)",
         PAIR " | #4 ActivityScheduled c(x) / #5 CancelRequested (why) | #6 ActivityCancelled #2 " WHY
              " | #7 ActivityCancelled #3 " WHY " | #8 ActivityCancelled #4 " WHY " | #9 Cancelled (why)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

static void a_second_request_is_not_accepted(void)
{
    struct play play = play_of(one);
    struct instance *instance = play_instance(&play);
    struct event const events[] = {{.kind = EVENT_STARTED, .name = THOLE_STR("t")},
                                   {.kind = EVENT_CANCEL_REQUESTED}};
    struct event const done = {.kind = EVENT_ACTIVITY_COMPLETED, .ref = 2};
    struct turn_in in = {.received = events, .received_len = 1, .run = true};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT(instance_accepts(instance, &events[1]) && instance_accepts(instance, &done));
    in = (struct turn_in){.received = &events[1], .received_len = 1, .run = false};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_FALSE(instance_accepts(instance, &events[1]));
    CU_ASSERT_FALSE(instance_accepts(instance, &done)); /* as good as cancelled */
    instance_destroy(instance);
    CU_ASSERT_EQUAL(stack_pool_in_use(play.stacks), 0);
    play_release(&play);
}

static const struct thole_test tests[] = {
    {"while waiting", while_waiting},
    {"before the start", before_the_start},
    {"completion and request in one turn", completion_and_request_in_one_turn},
    {"awaits of several", awaits_of_several},
    {"a second request is not accepted", a_second_request_is_not_accepted},
};
THOLE_TEST_MAIN("instance_cancel", tests)
