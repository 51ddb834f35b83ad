/* The requests of orchestrations, their order, and the resulting turns. Each row is also replayed at every
 * prefix and continued from there, with the same bytes: see play.h. */
#include "dropped.h"
#include "play.h"
#include "thole/orchestration.h"

static thole_status echo(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx;
    *ret_output = input;
    return THOLE_OK;
}

static thole_status one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("charge"), input), ret_output);
}

static thole_status two_in_a_row(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("charge"), input), &input));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("ship"), input), ret_output));
    return THOLE_OK;
}

static thole_status sleeps(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task timer = thole_timer(ctx, 5000);
    THOLE_TRY(thole_await(ctx, timer, &input));
    *ret_output = thole_format(ctx, "%zu bytes at %llu", input.len, (unsigned long long)thole_now_ms(ctx));
    return THOLE_OK;
}

static thole_status forgets(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    drop_task(thole_call(ctx, THOLE_STR("a"), input));
    drop_task(thole_timer(ctx, 60000));
    drop_task(thole_call(ctx, THOLE_STR("b"), input));
    return thole_await(ctx, thole_call(ctx, THOLE_STR("c"), input), ret_output);
}

static thole_status throws(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    return thole_throw(ctx, "no %.*s today", THOLE_FMT(input));
}

static thole_status plain_status(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)input, (void)ret_output;
    return THOLE_TIMEOUT;
}

static thole_status error_of(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task charge = thole_call(ctx, THOLE_STR("charge"), input);
    thole_status status = thole_await(ctx, charge, NULL);
    thole_slice error = thole_task_error(ctx, charge);
    *ret_output = thole_format(ctx, "%s '%.*s'", thole_status_name(status), THOLE_FMT(error));
    return THOLE_OK;
}

static thole_status identity(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    thole_slice id = thole_instance_id(ctx);
    *ret_output = thole_format(ctx, "%.*s %llu", THOLE_FMT(id), (unsigned long long)thole_execution_id(ctx));
    return THOLE_OK;
}

static thole_status cancels_itself(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)ret_output, (void)input;
    return THOLE_CANCELLED;
}

static void turns_and_ends(void)
{
    struct play_row const rows[] = {
        {"ends in the first turn", echo, "Started t(in)", "#1 Started t(in) | #2 Completed (in)"},
        {"waits", one, "Started t(card)", "#1 Started t(card) | #2 ActivityScheduled charge(card)"},
        {"empty input", one, "Started t()", "#1 Started t() | #2 ActivityScheduled charge()"},
        {"completes", one, "Started t(card) / ActivityCompleted #2 (ok)",
         "#1 Started t(card) | #2 ActivityScheduled charge(card) / #3 ActivityCompleted #2 (ok) | #4 "
         "Completed (ok)"},
        {"the result is the next input", two_in_a_row,
         "Started t(x) / ActivityCompleted #2 (y) / ActivityCompleted #4 (z)",
         "#1 Started t(x) | #2 ActivityScheduled charge(x) / #3 ActivityCompleted #2 (y) | "
         "#4 ActivityScheduled ship(y) / #5 ActivityCompleted #4 (z) | #6 Completed (z)"},
        {"timer", sleeps, "@7000 Started t(x) / @12034 TimerFired #2",
         "#1 Started t(x) | #2 TimerCreated due 12000 / #3 TimerFired #2 | #4 Completed (0 bytes at 12034)"},
        {"time never goes back", sleeps, "@7000 Started t(x) / @1 TimerFired #2",
         "#1 Started t(x) | #2 TimerCreated due 12000 / #3 TimerFired #2 | #4 Completed (0 bytes at 7000)"},
        {"what is outstanding at the end is cancelled", forgets, "Started t(x) / ActivityCompleted #5 (y)",
         "#1 Started t(x) | #2 ActivityScheduled a(x) | #3 TimerCreated due 61000 | #4 ActivityScheduled "
         "b(x) | "
         "#5 ActivityScheduled c(x) / #6 ActivityCompleted #5 (y) | #7 ActivityCancelled #2 ended (ended) | "
         "#8 TimerCancelled #3 ended (ended) | #9 ActivityCancelled #4 ended (ended) | #10 Completed (y)"},
        {"the same when it fails", forgets,
         "Started t(x) / ActivityCompleted #2 () | ActivityFailed #5 APP (no)",
         "#1 Started t(x) | #2 ActivityScheduled a(x) | #3 TimerCreated due 61000 | #4 ActivityScheduled "
         "b(x) | "
         "#5 ActivityScheduled c(x) / #6 ActivityCompleted #2 () | #7 ActivityFailed #5 APP (no) | "
         "#8 TimerCancelled #3 ended (ended) | #9 ActivityCancelled #4 ended (ended) | "
         "#10 Failed APP (activity 'c' failed: no)"},
        {"id and execution", identity, "Started t()", "#1 Started t() | #2 Completed (order-1 1)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

static void failures(void)
{
    struct play_row const rows[] = {
        {"thrown text", throws, "Started t(luck)", "#1 Started t(luck) | #2 Failed APP (no luck today)"},
        {"a status has its own text", plain_status, "Started t()",
         "#1 Started t() | #2 Failed TIMEOUT (timed out)"},
        {"the last failed await", one, "Started t(card) / ActivityFailed #2 APP (card declined)",
         "#1 Started t(card) | #2 ActivityScheduled charge(card) / #3 ActivityFailed #2 APP (card declined) "
         "| "
         "#4 Failed APP (activity 'charge' failed: card declined)"},
        {"a failure without text", one, "Started t(card) / ActivityFailed #2 APP ()",
         "#1 Started t(card) | #2 ActivityScheduled charge(card) / #3 ActivityFailed #2 APP () | "
         "#4 Failed APP (activity 'charge' failed)"},
        {"a failure by status", one, "Started t(card) / ActivityFailed #2 TIMEOUT ()",
         "#1 Started t(card) | #2 ActivityScheduled charge(card) / #3 ActivityFailed #2 TIMEOUT timeout () | "
         "#4 Failed TIMEOUT timeout (activity 'charge' failed: timed out)"},
        {"task error", error_of, "Started t(card) / ActivityFailed #2 APP (card declined)",
         "#1 Started t(card) | #2 ActivityScheduled charge(card) / #3 ActivityFailed #2 APP (card declined) "
         "| "
         "#4 Completed (APP 'card declined')"},
        {"no task error", error_of, "Started t(card) / ActivityCompleted #2 (fine)",
         "#1 Started t(card) | #2 ActivityScheduled charge(card) / #3 ActivityCompleted #2 (fine) | "
         "#4 Completed (OK '')"},
        {"cancelled without a request", cancels_itself, "Started t()",
         "#1 Started t() | #2 Failed CANCELLED (cancelled)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- races ---- */

static thole_status race(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task charge = thole_call(ctx, THOLE_STR("charge"), input);
    thole_task limit = thole_timer(ctx, 30000);
    size_t winner = 99;
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){charge, limit}, 2, &winner));
    if (winner == 0)
        return thole_await(ctx, charge, ret_output);
    *ret_output = THOLE_STR("late");
    return thole_await(ctx, limit, NULL);
}

static thole_status race_then_both(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[] = {thole_call(ctx, THOLE_STR("a"), input), thole_call(ctx, THOLE_STR("b"), input)};
    size_t first, second;
    THOLE_TRY(thole_await_first(ctx, tasks, 2, &first));
    THOLE_TRY(thole_await_first(ctx, &tasks[1 - first], 1, &second));
    thole_slice a, b;
    THOLE_TRY(thole_await(ctx, tasks[0], &a));
    THOLE_TRY(thole_await(ctx, tasks[1], &b));
    *ret_output = thole_format(ctx, "%zu %zu %.*s%.*s", first, second, THOLE_FMT(a), THOLE_FMT(b));
    return THOLE_OK;
}

static thole_status race_of_resolved(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task a = thole_call(ctx, THOLE_STR("a"), input), b = thole_call(ctx, THOLE_STR("b"), input);
    thole_task c = thole_call(ctx, THOLE_STR("c"), input);
    size_t winner;
    THOLE_TRY(thole_await(ctx, a, NULL));
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){c, a, b, b}, 4, &winner));
    *ret_output = thole_format(ctx, "%zu", winner);
    return THOLE_OK;
}

static thole_status race_with_a_twin(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task a = thole_call(ctx, THOLE_STR("a"), input);
    size_t winner;
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){a, a, a}, 3, &winner));
    *ret_output = thole_format(ctx, "%zu", winner);
    return THOLE_OK;
}

static thole_status loser_awaited(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task a = thole_call(ctx, THOLE_STR("a"), input), b = thole_call(ctx, THOLE_STR("b"), input);
    size_t winner;
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){a, b}, 2, &winner));
    (void)ret_output;
    return thole_await(ctx, winner == 0 ? b : a, NULL);
}

#define RACE "#1 Started t(x) | #2 ActivityScheduled charge(x) | #3 TimerCreated due 31000"
#define PAIR "#1 Started t(x) | #2 ActivityScheduled a(x) | #3 ActivityScheduled b(x)"
static void races(void)
{
    struct play_row const rows[] = {
        {"activity wins", race, "Started t(x) / ActivityCompleted #2 (ok)",
         RACE
         " / #4 ActivityCompleted #2 (ok) | #5 TimerCancelled #3 select_loser (activity 2 'charge' won) | #6 "
         "Completed (ok)"},
        {"timer wins", race, "Started t(x) / TimerFired #3",
         RACE
         " / #4 TimerFired #3 | #5 ActivityCancelled #2 select_loser (timer 3 won) | #6 Completed (late)"},
        {"a failure wins too", race, "Started t(x) / ActivityFailed #2 APP (no)",
         RACE
         " / #4 ActivityFailed #2 APP (no) | #5 TimerCancelled #3 select_loser (activity 2 'charge' won) | "
         "#6 Failed APP (activity 'charge' failed: no)"},
        {"both in one turn: the earlier in history", race,
         "Started t(x) / TimerFired #3 | ActivityCompleted #2 (ok)",
         RACE " / #4 TimerFired #3 | #5 ActivityCompleted #2 (ok) | #6 Completed (late)"},
        {"both in one turn: the other way round", race,
         "Started t(x) / ActivityCompleted #2 (ok) | TimerFired #3",
         RACE " / #4 ActivityCompleted #2 (ok) | #5 TimerFired #3 | #6 Completed (ok)"},
        {"the loser's completion comes too late", loser_awaited, "Started t(x) / ActivityCompleted #3 (b)",
         PAIR " / #4 ActivityCompleted #3 (b) | #5 ActivityCancelled #2 select_loser (activity 3 'b' won) | "
              "#6 Failed CANCELLED (activity 'a' was cancelled: activity 3 'b' won)"},
        {"first does not cancel", race_then_both,
         "Started t(x) / ActivityCompleted #3 (b) / ActivityCompleted #2 (a)",
         PAIR " / #4 ActivityCompleted #3 (b) / #5 ActivityCompleted #2 (a) | #6 Completed (1 0 ab)"},
        {"resolved before the race", race_of_resolved,
         "Started t(x) / ActivityCompleted #3 () | ActivityCompleted #2 ()",
         PAIR " | #4 ActivityScheduled c(x) / #5 ActivityCompleted #3 () | #6 ActivityCompleted #2 () | "
              "#7 ActivityCancelled #4 select_loser (activity 3 'b' won) | #8 Completed (2)"},
        {"one task three times", race_with_a_twin, "Started t(x) / ActivityCompleted #2 ()",
         "#1 Started t(x) | #2 ActivityScheduled a(x) / #3 ActivityCompleted #2 () | #4 Completed (0)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- all ---- */

static thole_status all(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[] = {thole_call(ctx, THOLE_STR("a"), input), thole_timer(ctx, 10),
                          thole_call(ctx, THOLE_STR("b"), input)};
    thole_slice results[3];
    thole_status status = thole_await_all(ctx, tasks, 3, results);
    *ret_output = thole_format(ctx, "%s %.*s,%.*s,%.*s", thole_status_name(status), THOLE_FMT(results[0]),
                               THOLE_FMT(results[1]), THOLE_FMT(results[2]));
    return THOLE_OK;
}

static thole_status all_twice(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task a = thole_call(ctx, THOLE_STR("a"), input), b = thole_call(ctx, THOLE_STR("b"), input);
    thole_slice r[4];
    THOLE_TRY(thole_await_all(ctx, (thole_task[]){a, b, a, a}, 4, r));
    *ret_output = thole_format(ctx, "%.*s%.*s%.*s", THOLE_FMT(r[0]), THOLE_FMT(r[1]), THOLE_FMT(r[3]));
    THOLE_TRY(thole_await_all(ctx, NULL, 0, NULL));
    return thole_await_all(ctx, (thole_task[]){b, a}, 2, NULL);
}

static thole_status all_failing(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[] = {thole_call(ctx, THOLE_STR("a"), input), thole_call(ctx, THOLE_STR("b"), input)};
    return thole_await_all(ctx, tasks, 2, ret_output);
}

#define ALL                                                                                                  \
    "#1 Started t(x) | #2 ActivityScheduled a(x) | #3 TimerCreated due 1010 | #4 ActivityScheduled b(x)"
static void all_of_them(void)
{
    struct play_row const rows[] = {
        {"one turn for each", all,
         "Started t(x) / ActivityCompleted #4 (B) / TimerFired #3 / ActivityCompleted #2 (A)",
         ALL " / #5 ActivityCompleted #4 (B) / #6 TimerFired #3 / #7 ActivityCompleted #2 (A) | #8 Completed "
             "(OK A,,B)"},
        {"all in one turn", all,
         "Started t(x) / TimerFired #3 | ActivityCompleted #2 (A) | ActivityCompleted #4 (B)",
         ALL " / #5 TimerFired #3 | #6 ActivityCompleted #2 (A) | #7 ActivityCompleted #4 (B) | #8 Completed "
             "(OK A,,B)"},
        {"one failed: the others are waited for", all,
         "Started t(x) / ActivityFailed #2 APP (no) / TimerFired #3 / ActivityCompleted #4 (B)",
         ALL " / #5 ActivityFailed #2 APP (no) / #6 TimerFired #3 / #7 ActivityCompleted #4 (B) | "
             "#8 Completed (APP ,,B)"},
        {"listed more than once", all_twice,
         "Started t(x) / ActivityCompleted #2 (A) / ActivityCompleted #3 (B)",
         PAIR " / #4 ActivityCompleted #2 (A) / #5 ActivityCompleted #3 (B) | #6 Completed (ABA)"},
        {"the first in the list that failed names the reason", all_failing,
         "Started t(x) / ActivityFailed #3 APP (b broke) / ActivityFailed #2 APP (a broke)",
         PAIR " / #4 ActivityFailed #3 APP (b broke) / #5 ActivityFailed #2 APP (a broke) | "
              "#6 Failed APP (activity 'a' failed: a broke)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- explicit cancellation ---- */

static thole_status gives_up(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task a = thole_call(ctx, THOLE_STR("a"), input), t = thole_timer(ctx, 10);
    thole_cancel(ctx, a, THOLE_STR("not needed"));
    thole_cancel(ctx, a, THOLE_STR("again"));
    thole_cancel(ctx, t, (thole_slice){NULL, 0});
    thole_cancel(ctx, (thole_task){77}, THOLE_STR("nothing"));
    thole_status const one_status = thole_await(ctx, a, NULL);
    thole_status const two_status = thole_await(ctx, t, NULL);
    thole_slice const error = thole_task_error(ctx, a);
    *ret_output = thole_format(ctx, "%s %s '%.*s'", thole_status_name(one_status),
                               thole_status_name(two_status), THOLE_FMT(error));
    return THOLE_OK;
}

static thole_status race_of_cancelled(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task a = thole_call(ctx, THOLE_STR("a"), input), b = thole_call(ctx, THOLE_STR("b"), input);
    thole_cancel(ctx, b, THOLE_STR("why"));
    size_t winner;
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){a, b}, 2, &winner));
    (void)ret_output;
    return thole_await(ctx, b, NULL);
}

static thole_status cancel_of_a_finished_one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task a = thole_call(ctx, THOLE_STR("a"), input);
    THOLE_TRY(thole_await(ctx, a, NULL));
    thole_cancel(ctx, a, THOLE_STR("too late"));
    return thole_await(ctx, a, ret_output);
}

static void explicit_cancellation(void)
{
    struct play_row const rows[] = {
        {"cancelled, never run", gives_up, "Started t(x)",
         "#1 Started t(x) | #2 ActivityScheduled a(x) | #3 TimerCreated due 1010 | "
         "#4 ActivityCancelled #2 explicit (not needed) | #5 TimerCancelled #3 explicit () | "
         "#6 Completed (CANCELLED CANCELLED 'not needed')"},
        {"a cancelled one can win a race", race_of_cancelled, "Started t(x)",
         PAIR " | #4 ActivityCancelled #3 explicit (why) | #5 ActivityCancelled #2 select_loser (activity 3 "
              "'b' won) | "
              "#6 Failed CANCELLED (activity 'b' was cancelled: why)"},
        {"a finished one stays finished", cancel_of_a_finished_one, "Started t(x) / ActivityCompleted #2 (A)",
         "#1 Started t(x) | #2 ActivityScheduled a(x) / #3 ActivityCompleted #2 (A) | #4 Completed (A)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- turns that do not run, duplicates ---- */

static void undelivered_turns(void)
{
    struct play_row const rows[] = {
        {"started, run later", one, "~Started t(x) / -", "~#1 Started t(x) / #2 ActivityScheduled charge(x)"},
        {"nothing lost while blocked", all,
         "Started t(x) / ~ActivityCompleted #4 (B) / ~TimerFired #3 / ActivityCompleted #2 (A)",
         ALL " / ~#5 ActivityCompleted #4 (B) / ~#6 TimerFired #3 / #7 ActivityCompleted #2 (A) | "
             "#8 Completed (OK A,,B)"},
        {"delivered by a turn of nothing", one, "Started t(x) / ~ActivityCompleted #2 (ok) / -",
         "#1 Started t(x) | #2 ActivityScheduled charge(x) / ~#3 ActivityCompleted #2 (ok) / #4 Completed "
         "(ok)"},
        {"recorded order decides a race", race, "Started t(x) / ~TimerFired #3 / ActivityCompleted #2 (ok)",
         RACE " / ~#4 TimerFired #3 / #5 ActivityCompleted #2 (ok) | #6 Completed (late)"},
        {"an empty turn changes nothing", one, "Started t(x) / - / ActivityCompleted #2 (ok)",
         "#1 Started t(x) | #2 ActivityScheduled charge(x) / - / #3 ActivityCompleted #2 (ok) | #4 Completed "
         "(ok)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

static void duplicates_are_left_out(void)
{
    struct play_row const rows[] = {
        {"twice in one turn", all_failing,
         "Started t(x) / ActivityCompleted #2 (1) | ActivityCompleted #2 (2)",
         PAIR " / #4 ActivityCompleted #2 (1)"},
        {"a failure after a completion", all_failing,
         "Started t(x) / ActivityCompleted #2 (1) / ActivityFailed #2 APP (2)",
         PAIR " / #4 ActivityCompleted #2 (1) / -"},
        {"twice while blocked", all_failing,
         "Started t(x) / ~ActivityCompleted #2 (1) / ~ActivityFailed #2 APP (2) / -",
         PAIR " / ~#4 ActivityCompleted #2 (1) / ~- / -"},
        {"of the wrong kind, of nothing, of an event", all_failing,
         "Started t(x) / TimerFired #2 | ActivityCompleted #9 () | ActivityCompleted #1 () | "
         "ActivityCompleted #3 (b)",
         PAIR " / #4 ActivityCompleted #3 (b)"},
        {"started twice", all_failing, "Started t(x) | Started u(y) / Started v(z)", PAIR " / -"},
        {"nothing before the start", all_failing, "CancelRequested (no) | Started t(x)", PAIR},
        {"nothing but a start starts", all_failing, "CancelRequested (no)",
         "INVALID: the execution has not started"},
        {"nothing after the end", echo, "Started t(in) / CancelRequested (late)",
         "#1 Started t(in) | #2 Completed (in) / INVALID: the execution has ended"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- wrong arguments ---- */

static thole_status wrong_arguments(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint8_t large[257] = {0};
    thole_task tasks[] = {thole_call(ctx, THOLE_STR("no good"), input),
                          thole_call(ctx, THOLE_STR(""), input),
                          thole_call(ctx, THOLE_STR("a"), (thole_slice){large, sizeof large}),
                          thole_timer(ctx, UINT64_C(3155760000001)),
                          thole_timer(ctx, UINT64_MAX),
                          {0},
                          {1},
                          {3},
                          {UINT64_MAX}};
    thole_slice text = {NULL, 0};
    for (size_t i = 0; i < ARRAY_LEN(tasks); i++) {
        thole_status const status = thole_await(ctx, tasks[i], NULL);
        text = thole_format(ctx, "%.*s %d", THOLE_FMT(text), (int)status);
        thole_cancel(ctx, tasks[i], THOLE_STR("x"));
    }
    *ret_output = text;
    return THOLE_OK;
}

static thole_status wrong_lists(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task a = thole_call(ctx, THOLE_STR("a"), input);
    size_t i = 77;
    thole_status s1 = thole_await_any(ctx, &a, 0, &i), s2 = thole_await_any(ctx, &a, 1000001, &i);
    thole_status s3 = thole_await_first(ctx, (thole_task[]){a, {9}}, 2, &i);
    thole_status s4 = thole_await_all(ctx, (thole_task[]){a, {0}}, 2, NULL);
    thole_task bad = thole_call(ctx, THOLE_STR("?"), input);
    thole_status s5 = thole_await_all(ctx, (thole_task[]){bad}, 1, NULL);
    thole_status s6 = thole_await_first(ctx, (thole_task[]){a, bad}, 2, &i);
    *ret_output = thole_format(ctx, "%d %d %d %d %d %d %zu", s1, s2, s3, s4, s5, s6, i);
    return THOLE_OK;
}

static thole_status bad_name(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("a.b"), input), ret_output);
}

static thole_status bad_task(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    return thole_await(ctx, (thole_task){12}, ret_output);
}

static thole_status too_large_an_output(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    drop_task(thole_timer(ctx, 1));
    uint8_t *p = thole_alloc(ctx, 257);
    (void)input;
    *ret_output = (thole_slice){p, 257};
    return THOLE_OK;
}

static thole_status largest_output(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = thole_format(ctx, "%0256d", 0);
    return THOLE_OK;
}

static thole_status long_text(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    thole_slice filler = thole_format(ctx, "%0255d", 0);
    return thole_throw(ctx, "%.*s\u00e9", THOLE_FMT(filler)); /* the cut is not in the middle of a letter */
}

static void wrong_arguments_surface_at_the_await(void)
{
    struct play_row const rows[] = {
        {"tasks", wrong_arguments, "Started t(x)", "#1 Started t(x) | #2 Completed ( 2 2 3 2 2 2 2 2 2)"},
        {"lists", wrong_lists, "Started t(x)",
         "#1 Started t(x) | #2 ActivityScheduled a(x) | #3 ActivityCancelled #2 ended (ended) | "
         "#4 Completed (2 2 2 2 2 0 1)"},
        {"text of a fault", bad_name, "Started t(x)",
         "#1 Started t(x) | #2 Failed INVALID (an activity's name is not [A-Za-z0-9_-]{1,64})"},
        {"text of no task", bad_task, "Started t(x)",
         "#1 Started t(x) | #2 Failed INVALID (a task that does not exist was awaited)"},
        {"output too large", too_large_an_output, "Started t(x)",
         "#1 Started t(x) | #2 TimerCreated due 1001 | #3 TimerCancelled #2 ended (ended) | "
         "#4 Failed LIMIT (the output has 257 bytes, at most 256 are allowed)"},
        {"largest output", largest_output, "Started t(x)",
         "#1 Started t(x) | #2 Completed "
         "(0000000000000000000000000000000000000000000000000000000000000000...)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

static void failure_text_is_cut_between_letters(void)
{
    struct play play = play_of(long_text);
    struct instance *instance = play_instance(&play);
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t")};
    struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out = {0};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(out.events_len, 2);
    CU_ASSERT_EQUAL(out.events[1].data.len, 255);
    instance_destroy(instance);
    play_release(&play);
}

static void facts(void)
{
    struct play play = play_of(one);
    struct instance *instance = play_instance(&play);
    struct event const start = {
        .kind = EVENT_STARTED, .name = THOLE_STR("shop"), .request_id = THOLE_STR("r1")};
    struct event done = {.kind = EVENT_ACTIVITY_COMPLETED, .ref = 2};
    struct turn_in in = {.time_ms = 5, .received = &start, .received_len = 1};
    struct turn_out out = {0};
    CU_ASSERT_FALSE(instance_started(instance));
    CU_ASSERT_EQUAL(instance_orchestration(instance).len, 0);
    CU_ASSERT(instance_accepts(instance, &start));
    CU_ASSERT_FALSE(instance_accepts(instance, &done));
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT(instance_started(instance) && instance_has_undelivered(instance) && !instance_ended(instance));
    CU_ASSERT(thole_slice_equal(instance_orchestration(instance), THOLE_STR("shop")));
    CU_ASSERT(thole_slice_equal(out.events[0].request_id, THOLE_STR("r1")));
    CU_ASSERT_EQUAL(out.events[0].code, SEMANTICS_VERSION);
    size_t const before = instance_memory(instance);
    in = (struct turn_in){.time_ms = 3, .run = true};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT(!instance_has_undelivered(instance) && instance_accepts(instance, &done));
    CU_ASSERT(instance_memory(instance) >= before + CORO_STACK_BYTES);
    CU_ASSERT_EQUAL(instance_time_ms(instance), 5);
    CU_ASSERT_EQUAL(instance_turns(instance), 2);
    CU_ASSERT_EQUAL(stack_pool_in_use(play.stacks), 1);
    in = (struct turn_in){.received = &done, .received_len = 1, .run = true};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT(out.ended && instance_ended(instance) && !instance_accepts(instance, &done));
    CU_ASSERT_EQUAL(stack_pool_in_use(play.stacks), 0); /* an ended instance holds no stack */
    instance_destroy(instance);
    instance_destroy(NULL);
    play_release(&play);
}

/* Memory of a parked instance when its last turn is no longer needed. */
static void trimmed(void)
{
    struct play play = play_of(one);
    struct instance *instance = play_instance(&play);
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t"), .data = THOLE_STR("input")};
    struct event const done = {.kind = EVENT_ACTIVITY_COMPLETED, .ref = 2, .data = THOLE_STR("ok")};
    struct turn_in in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out = {0};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    size_t const before = instance_memory(instance);
    instance_trim(instance);
    instance_trim(instance);
    CU_ASSERT(instance_memory(instance) < before);
    in.received = &done;
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT(out.ended && thole_slice_equal(out.events[1].data, THOLE_STR("ok")));
    instance_destroy(instance);
    play_release(&play);
}

/* An activity's text fits into a payload; with the words before it it does not, and is cut between
 * characters. */
static void long_failures_are_cut(void)
{
    enum { PAYLOAD_MAX = 256, CHARACTERS = 120 };
    static const char words[] = "activity 'charge' failed: ";
    for (size_t more = 0; more < 2; more++) { /* the limit is after a character, and within one */
        struct play play = play_of(one);
        play.payload_max = PAYLOAD_MAX;
        struct instance *instance = play_instance(&play);
        char why[1 + 2 * CHARACTERS + 1] = "x", expected[sizeof words + sizeof why];
        for (size_t i = 0; i < CHARACTERS; i++)
            memcpy(&why[more + 2 * i], "\xc3\xa9", 3);
        struct event const received[] = {
            {.kind = EVENT_STARTED, .name = THOLE_STR("t")},
            {.kind = EVENT_ACTIVITY_FAILED, .ref = 2, .code = THOLE_APP, .data = thole_slice_from(why)}};
        struct turn_out out = {.ended = false};
        for (size_t i = 0; i < ARRAY_LEN(received); i++) {
            struct turn_in const in = {.received = &received[i], .received_len = 1, .run = true};
            CU_ASSERT_EQUAL_FATAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
        }
        (void)snprintf(expected, sizeof expected, "%s%s", words, why);
        expected[PAYLOAD_MAX - more] = '\0';
        const struct event *const end = &out.events[out.events_len - 1];
        CU_ASSERT_EQUAL(end->kind, EVENT_FAILED);
        CU_ASSERT_TRUE(thole_slice_equal(end->data, thole_slice_from(expected)));
        instance_destroy(instance);
        play_release(&play);
    }
}

static const struct thole_test tests[] = {
    {"turns and ends", turns_and_ends},
    {"failures", failures},
    {"long failures are cut", long_failures_are_cut},
    {"races", races},
    {"all of them", all_of_them},
    {"explicit cancellation", explicit_cancellation},
    {"undelivered turns", undelivered_turns},
    {"duplicates are left out", duplicates_are_left_out},
    {"wrong arguments surface at the await", wrong_arguments_surface_at_the_await},
    {"failure text is cut between letters", failure_text_is_cut_between_letters},
    {"facts", facts},
    {"trimmed", trimmed},
};
THOLE_TEST_MAIN("instance_turns", tests)
