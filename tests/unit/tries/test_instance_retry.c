/* Tries of an activity: policies, delays, timeouts, wakes, results of other tries, typed failures. */
#include "play.h"
#include "thole/orchestration.h"
#include <math.h>

static thole_slice const no_retry[] = {{(const uint8_t *)"declined", 8}, {(const uint8_t *)"gone", 4}};

static thole_call_options three_tries(void)
{
    return (thole_call_options){.size = sizeof(thole_call_options),
                                .retry = {.tries_max = 3,
                                          .first_delay_ms = 100,
                                          .factor = 2,
                                          .final_types = no_retry,
                                          .final_types_len = 2}};
}

static thole_status say(thole_ctx *ctx, thole_task task, thole_slice *ret_output)
{
    thole_slice output = {0};
    thole_status const status = thole_await(ctx, task, &output);
    thole_failure const f = thole_task_failure(ctx, task);
    *ret_output =
        thole_format(ctx, "%s '%.*s' %s %.*s '%.*s' %u", thole_status_name(status), THOLE_FMT(output),
                     thole_status_name(f.status), THOLE_FMT(f.type), THOLE_FMT(f.message), f.tries);
    return THOLE_OK;
}

static thole_status retried(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = three_tries();
    return say(ctx, thole_call_with(ctx, THOLE_STR("charge"), input, &options), ret_output);
}

static thole_status total(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options options = three_tries();
    options.total_timeout_ms = 250;
    options.try_timeout_ms = 50;
    options.queue = THOLE_STR("cards");
    return say(ctx, thole_call_with(ctx, THOLE_STR("charge"), input, &options), ret_output);
}

static thole_status only_total(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options options = {.size = sizeof options, .total_timeout_ms = 250};
    return say(ctx, thole_call_with(ctx, THOLE_STR("charge"), input, &options), ret_output);
}

static thole_status only_try(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options options = {.size = sizeof options, .try_timeout_ms = 50};
    return say(ctx, thole_call_with(ctx, THOLE_STR("charge"), input, &options), ret_output);
}

static thole_status plain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return say(ctx, thole_call_with(ctx, THOLE_STR("charge"), input, NULL), ret_output);
}

static thole_status passes_on(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("charge"), input), ret_output);
}

static thole_status cancels(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = three_tries();
    thole_task task = thole_call_with(ctx, THOLE_STR("charge"), input, &options);
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("stop")), NULL));
    thole_cancel(ctx, task, THOLE_STR("why"));
    return say(ctx, task, ret_output);
}

#define CALL                                                                                                 \
    "#1 Started t(x) | #2 ActivityScheduled charge(x) [tries=3 delay=100 factor=2000 finals=declined,gone]"
#define FAILED1 CALL " / #3 ActivityTryFailed #2 try 1 APP busy (no) due 1110"
#define TRY2 FAILED1 " / #4 ActivityTryStarted #2 try 2 charge(x)"
#define FAILED2 TRY2 " / #5 ActivityTryFailed #2 try 2 APP (no) due 1410"
#define TRY3 FAILED2 " / #6 ActivityTryStarted #2 try 3 charge(x)"
static const char to_try_3[] =
    "@1000 Started t(x) / @1010 ActivityFailed #2 APP busy (no) / @1110 TimerFired #2 / "
    "@1210 ActivityFailed #2 try 2 APP (no) / @1410 TimerFired #2";

static const char *script(char to[1024], const char *more)
{
    (void)snprintf(to, 1024, "%s / %s", to_try_3, more);
    return to;
}

static void tries(void)
{
    char a[1024], b[1024], c[1024];
    struct play_row const rows[] = {
        {"succeeds at once", retried, "@1000 Started t(x) / ActivityCompleted #2 (ok)",
         CALL " / #3 ActivityCompleted #2 (ok) | #4 Completed (OK 'ok' OK  '' 1)"},
        {"waits for the second", retried, "@1000 Started t(x) / @1010 ActivityFailed #2 APP busy (no)",
         FAILED1},
        {"the second runs", retried,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP busy (no) / @1110 TimerFired #2", TRY2},
        {"and succeeds", retried,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP busy (no) / @1110 TimerFired #2 / "
         "ActivityCompleted #2 try 2 (ok)",
         TRY2 " / #5 ActivityCompleted #2 try 2 (ok) | #6 Completed (OK 'ok' OK  '' 2)"},
        {"the third", retried, to_try_3, TRY3},
        {"and is the last", retried, script(a, "ActivityFailed #2 try 3 APP busy (no)"),
         TRY3 " / #7 ActivityFailed #2 try 3 APP busy (no) | #8 Completed (APP '' APP busy 'no' 3)"},
        {"an older try is late", retried,
         script(b,
                "ActivityCompleted #2 (old) | ActivityFailed #2 try 2 APP (old) | ActivityCompleted #2 try 4 "
                "(new)"),
         TRY3 " / -"},
        {"two results of one try", retried,
         script(c, "ActivityCompleted #2 try 3 (a) | ActivityCompleted #2 try 3 (b)"),
         TRY3 " / #7 ActivityCompleted #2 try 3 (a) | #8 Completed (OK 'a' OK  '' 3)"},
        {"a final type", retried, "@1000 Started t(x) / ActivityFailed #2 APP gone (no)",
         CALL " / #3 ActivityFailed #2 APP gone (no) | #4 Completed (APP '' APP gone 'no' 1)"},
        {"said to be final", retried, "@1000 Started t(x) / ActivityFailed #2 APP busy (no) [final]",
         CALL " / #3 ActivityFailed #2 APP busy (no) | #4 Completed (APP '' APP busy 'no' 1)"},
        {"a timeout is a failure", retried, "@1000 Started t(x) / @1010 ActivityFailed #2 TIMEOUT ()",
         CALL " / #3 ActivityTryFailed #2 try 1 TIMEOUT timeout () due 1110"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

static void between_tries(void)
{
    struct play_row const rows[] = {
        {"results while it waits", retried,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP busy (no) / ActivityCompleted #2 (late) | "
         "ActivityFailed #2 APP (late) | ActivityCompleted #2 try 2 (early)",
         FAILED1 " / -"},
        {"both in one turn: the failure counts", retried,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP busy (no) | ActivityCompleted #2 (late)", FAILED1},
        {"both in one turn: the success counts", retried,
         "@1000 Started t(x) / @1010 ActivityCompleted #2 (ok) | ActivityFailed #2 APP busy (no)",
         CALL " / #3 ActivityCompleted #2 (ok) | #4 Completed (OK 'ok' OK  '' 1)"},
        {"a wake comes early", retried,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP busy (no) / @1109 TimerFired #2 / @1110 "
         "TimerFired #2 | "
         "TimerFired #2",
         FAILED1 " / - / #4 ActivityTryStarted #2 try 2 charge(x)"},
        {"a wake of a try that runs", retried, "@1000 Started t(x) / @9000 TimerFired #2", CALL " / -"},
        {"a failure and the wake in one turn", retried,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP busy (no) | TimerFired #2", FAILED1},
        {"paused: tries go on", retried,
         "@1000 Started t(x) / @1005 Paused () / @1010 ActivityFailed #2 APP busy (no) / @1110 TimerFired #2 "
         "/ "
         "ActivityCompleted #2 try 2 (ok) / Resumed ()",
         CALL " / ~#3 Paused () / ~#4 ActivityTryFailed #2 try 1 APP busy (no) due 1110 / ~#5 "
              "ActivityTryStarted #2 "
              "try 2 charge(x) / ~#6 ActivityCompleted #2 try 2 (ok) / #7 Resumed () | #8 Completed (OK 'ok' "
              "OK  '' "
              "2)"},
        {"without code: tries go on", retried,
         "@1000 Started t(x) / @1010 ~ActivityFailed #2 APP busy (no) / @1110 ~TimerFired #2 / "
         "@1200 ~ActivityCompleted #2 try 2 (ok) / -",
         CALL " / ~#3 ActivityTryFailed #2 try 1 APP busy (no) due 1110 / ~#4 ActivityTryStarted #2 try 2 "
              "charge(x) / ~#5 ActivityCompleted #2 try 2 (ok) / #6 Completed (OK 'ok' OK  '' 2)"},
        {"details go to the next try, and stay", retried,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP (no) [details=half] / @1110 TimerFired #2 / "
         "@1210 ActivityFailed #2 try 2 APP (no) / @1410 TimerFired #2",
         CALL
         " / #3 ActivityTryFailed #2 try 1 APP (no) due 1110 [details=half] / #4 ActivityTryStarted #2 try 2 "
         "charge(x) [details=half] / #5 ActivityTryFailed #2 try 2 APP (no) due 1410 / "
         "#6 ActivityTryStarted #2 try 3 charge(x) [details=half]"},
        {"cancelled while it waits", cancels,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP busy (no) / @1020 EventReceived stop()",
         CALL " | #3 EventAwaited stop / #4 ActivityTryFailed #2 try 1 APP busy (no) due 1110 / "
              "#5 EventReceived stop() | #6 ActivityCancelled #2 explicit (why) [timed] | "
              "#7 Completed (CANCELLED '' CANCELLED  'why' 1)"},
        {"cancelled while it runs", cancels, "@1000 Started t(x) / @1020 EventReceived stop()",
         CALL " | #3 EventAwaited stop / #4 EventReceived stop() | #5 ActivityCancelled #2 explicit (why) | "
              "#6 Completed (CANCELLED '' CANCELLED  'why' 1)"},
        {"after a request to cancel nothing is tried again", retried,
         "@1000 Started t(x) / CancelRequested (why) | ActivityFailed #2 APP busy (no)",
         CALL " / #3 CancelRequested (why) | #4 ActivityCancelled #2 requested (why) | #5 Cancelled (why)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

#define TOTAL                                                                                                \
    "#1 Started t(x) | #2 ActivityScheduled charge(x) [queue=cards tries=3 delay=100 factor=2000 "           \
    "finals=declined,gone try_ms=50 total_ms=250]"
#define OVER_TEXT "the total timeout of 250 ms is over"
#define OVER "TIMEOUT timeout (" OVER_TEXT ") [timed]"
#define OVER_AFTER(cause) "TIMEOUT timeout (" OVER_TEXT "; " cause ") [timed]"
static void timeouts(void)
{
    struct play_row const rows[] = {
        {"total: it is over", total, "@1000 Started t(x) / @1249 TimerFired #2 / @1250 TimerFired #2",
         TOTAL " / - / #3 ActivityFailed #2 " OVER " | #4 Completed (TIMEOUT '' TIMEOUT timeout '" OVER_TEXT
               "'...)"},
        {"total: a success belongs to a timer row", total, "@1000 Started t(x) / ActivityCompleted #2 (ok)",
         TOTAL " / #3 ActivityCompleted #2 (ok) [timed] | #4 Completed (OK 'ok' OK  '' 1)"},
        {"total: the next try has what is left", total,
         "@1000 Started t(x) / @1010 ActivityFailed #2 TIMEOUT () / @1110 TimerFired #2",
         TOTAL
         " / #3 ActivityTryFailed #2 try 1 TIMEOUT timeout () due 1110 / #4 ActivityTryStarted #2 try 2 "
         "charge(x) due 1250 [queue=cards try_ms=50]"},
        {"total: no delay reaches past it", total,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP (a) / @1110 TimerFired #2 / @1120 ActivityFailed "
         "#2 try "
         "2 APP (b)",
         TOTAL
         " / #3 ActivityTryFailed #2 try 1 APP (a) due 1110 / #4 ActivityTryStarted #2 try 2 charge(x) due "
         "1250 [queue=cards try_ms=50] / #5 ActivityFailed #2 try 2 APP (b) [timed] | "
         "#6 Completed (APP '' APP  'b' 2)"},
        {"total: nor just to it", total, "@1000 Started t(x) / @1150 ActivityFailed #2 APP (a)",
         TOTAL " / #3 ActivityFailed #2 APP (a) [timed] | #4 Completed (APP '' APP  'a' 1)"},
        {"total: just before it", total, "@1000 Started t(x) / @1149 ActivityFailed #2 APP (a)",
         TOTAL " / #3 ActivityTryFailed #2 try 1 APP (a) due 1249"},
        {"total: over when the wake is late", total,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP (a) / @2000 TimerFired #2",
         TOTAL " / #3 ActivityTryFailed #2 try 1 APP (a) due 1110 / #4 ActivityFailed #2 " OVER_AFTER(
             "try 1 had failed: a") " | #5 Completed (TIMEOUT '' TIMEOUT timeout '" OVER_TEXT ";...)"},
        {"total: the cause is the last failure that was no timeout", total,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP busy (no) / @1110 TimerFired #2 / "
         "@1160 ActivityFailed #2 try 2 TIMEOUT timeout (timeout)",
         TOTAL " / #3 ActivityTryFailed #2 try 1 APP busy (no) due 1110 / #4 ActivityTryStarted #2 try 2 "
               "charge(x) due 1250 [queue=cards try_ms=50] / #5 ActivityFailed #2 try 2 TIMEOUT timeout (the "
               "try's timeout of 50 ms is over; try 1 had failed (busy): no) [timed] | #6 Completed (TIMEOUT "
               "'' TIMEOUT timeout 'the try's timeout of 50 ms is over; ...)"},
        {"total alone", only_total, "@1000 Started t(x) / @1250 TimerFired #2",
         "#1 Started t(x) | #2 ActivityScheduled charge(x) [total_ms=250] / #3 ActivityFailed #2 " OVER
         " | #4 Completed (TIMEOUT '' TIMEOUT timeout '" OVER_TEXT "'...)"},
        {"of a try alone", only_try, "@1000 Started t(x) / ActivityFailed #2 TIMEOUT (50 ms)",
         "#1 Started t(x) | #2 ActivityScheduled charge(x) [try_ms=50] / #3 ActivityFailed #2 TIMEOUT "
         "timeout (50 "
         "ms) | #4 Completed (TIMEOUT '' TIMEOUT timeout '50 ms' 1)"},
        {"none: no wake", plain, "@1000 Started t(x) / @9000 TimerFired #2",
         "#1 Started t(x) | #2 ActivityScheduled charge(x) / -"},
        {"passed on", passes_on, "Started t(x) / ActivityFailed #2 APP declined (no money)",
         "#1 Started t(x) | #2 ActivityScheduled charge(x) / #3 ActivityFailed #2 APP declined (no money) | "
         "#4 Failed APP declined (activity 'charge' failed: no money)"},
        {"a status of the engine's", plain, "Started t(x) / ActivityFailed #2 INVALID poison (9 claims)",
         "#1 Started t(x) | #2 ActivityScheduled charge(x) / #3 ActivityFailed #2 INVALID poison (9 claims) "
         "| "
         "#4 Completed (APP '' INVALID poison '9 claims' 1)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- a clock that was years ahead ---- */

#define YEARS "@315360000000 Paused () / @1005 Resumed () / "
static void a_clock_that_was_wrong(void)
{
    struct play_row const rows[] = {
        {"the next try is due by the clock", retried,
         "@1000 Started t(x) / " YEARS "@1010 ActivityFailed #2 APP busy (no) / @1109 TimerFired #2 due 1109 "
         "/ @1110 TimerFired #2 due 1110",
         CALL " / ~#3 Paused () / #4 Resumed () / #5 ActivityTryFailed #2 try 1 APP busy (no) due 1110 / - / "
              "#6 ActivityTryStarted #2 try 2 charge(x)"},
        {"total: it is over by the clock", total,
         "@1000 Started t(x) / " YEARS
         "@1010 ActivityFailed #2 APP (a) / @1110 TimerFired #2 / @1250 TimerFired "
         "#2",
         TOTAL " / ~#3 Paused () / #4 Resumed () / #5 ActivityTryFailed #2 try 1 APP (a) due 1110 / "
               "#6 ActivityTryStarted #2 try 2 charge(x) due 1250 [queue=cards try_ms=50] / "
               "#7 ActivityFailed #2 try 2 " OVER_AFTER(
                   "try 1 had failed: a") " | #8 Completed (TIMEOUT '' TIMEOUT "
                                          "timeout '" OVER_TEXT ";...)"},
        {"a quarantine ends by the clock", retried,
         "@1000 Started t(x) / " YEARS
         "@1010 ActivityFailed #2 APP poison (no) [queue=default lost=5 worker=w final]",
         CALL
         " / ~#3 Paused () / #4 Resumed () / #5 ActivityQuarantined #2 try 1 charge(no) due 6010 [lost=5 "
         "worker=w]"},
        {"little ahead: by the execution's time", retried,
         "@1000 Started t(x) / @601000 Paused () / @1005 Resumed () / @1010 ActivityFailed #2 APP busy (no)",
         CALL " / ~#3 Paused () / #4 Resumed () / #5 ActivityTryFailed #2 try 1 APP busy (no) due 601100"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

static void asked_for(void)
{
    struct play_row const rows[] = {
        {"the next try starts", retried,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP busy (no) / @1020 TimerFired #2 due 1 | "
         "TimerFired #2 "
         "due 1 / @1110 TimerFired #2 due 1110",
         FAILED1 " / #4 ActivityTryStarted #2 try 2 charge(x) / -"},
        {"while a try runs nothing does", retried, "@1000 Started t(x) / @1020 TimerFired #2 due 1",
         CALL " / -"},
        {"nor when it is over", retried,
         "@1000 Started t(x) / ActivityCompleted #2 (ok) | TimerFired #2 due 1",
         CALL " / #3 ActivityCompleted #2 (ok) | #4 Completed (OK 'ok' OK  '' 1)"},
        {"nor when its total time is", total,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP (a) / @1250 TimerFired #2 due 1",
         TOTAL " / #3 ActivityTryFailed #2 try 1 APP (a) due 1110 / #4 ActivityFailed #2 " OVER_AFTER(
             "try 1 had failed: a") " | #5 Completed (TIMEOUT '' TIMEOUT timeout '" OVER_TEXT ";...)"},
        {"total: the cause is the last failure that was no timeout", total,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP busy (no) / @1110 TimerFired #2 / "
         "@1160 ActivityFailed #2 try 2 TIMEOUT timeout (timeout)",
         TOTAL " / #3 ActivityTryFailed #2 try 1 APP busy (no) due 1110 / #4 ActivityTryStarted #2 try 2 "
               "charge(x) due 1250 [queue=cards try_ms=50] / #5 ActivityFailed #2 try 2 TIMEOUT timeout (the "
               "try's timeout of 50 ms is over; try 1 had failed (busy): no) [timed] | #6 Completed (TIMEOUT "
               "'' TIMEOUT timeout 'the try's timeout of 50 ms is over; ...)"},
        {"in quarantine somebody decides", retried,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP poison (no) [queue=default lost=5 worker=w final] "
         "/ @1020 TimerFired "
         "#2 "
         "due 1",
         CALL " / #3 ActivityQuarantined #2 try 1 charge(no) due 6010 [lost=5 worker=w] / -"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- thrown failures ---- */

static thole_status throws_typed(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    return thole_throw_as(ctx, input, "no %d", 7);
}

static thole_status rethrows(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("a"), input), ret_output) == THOLE_OK
                  ? THOLE_OK
                  : thole_throw(ctx, "untyped"));
    return THOLE_OK;
}

static void thrown(void)
{
    struct play_row const rows[] = {
        {"with a type", throws_typed, "Started t(card.declined)",
         "#1 Started t(card.declined) | #2 Failed APP card.declined (no 7)"},
        {"with a wrong one", throws_typed, "Started t(a b)", "#1 Started t(a b) | #2 Failed APP (no 7)"},
        {"instead of the failed await's", rethrows,
         "Started t(x) / ActivityFailed #2 APP declined (no money)",
         "#1 Started t(x) | #2 ActivityScheduled a(x) / #3 ActivityFailed #2 APP declined (no money) | "
         "#4 Failed APP (untyped)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- options ---- */

struct option_row {
    const char *name;
    thole_call_options options;
    const char *expected;
};
static const thole_call_options *options_now;

static thole_status calls_with(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const task = thole_call_with(ctx, THOLE_STR("charge"), input, options_now);
    return say(ctx, task, ret_output);
}

#define WRONG                                                                                                \
    "#1 Started t(x) | #2 Completed (INVALID '' INVALID  'an activity's options are out of range' 0)"
#define RIGHT "#1 Started t(x) | #2 ActivityScheduled charge(x)"
enum { SIZE = sizeof(thole_call_options) };
static void options(void)
{
    thole_slice many[65];
    thole_slice const bad_type = THOLE_STR("a b"), no_type = THOLE_STR("");
    uint64_t const centuries = UINT64_C(36525) * 24 * 3600 * 1000 + 1;
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = THOLE_STR("x");
    struct option_row const rows[] = {
        {"zeroes", {.size = SIZE}, RIGHT},
        {"no size", {.size = 0}, WRONG},
        {"an older, shorter struct",
         {.size = offsetof(thole_call_options, try_timeout_ms), .queue = THOLE_STR("q"), .try_timeout_ms = 5},
         RIGHT " [queue=q]"},
        {"one try", {.size = SIZE, .retry = {.tries_max = 1, .first_delay_ms = 5}}, RIGHT},
        {"most tries", {.size = SIZE, .retry = {.tries_max = 10000}}, RIGHT " [tries=10000]"},
        {"too many tries", {.size = SIZE, .retry = {.tries_max = 10001}}, WRONG},
        {"factor", {.size = SIZE, .retry = {.tries_max = 2, .factor = 1.5}}, RIGHT " [tries=2 factor=1500]"},
        {"small factor",
         {.size = SIZE, .retry = {.tries_max = 2, .factor = 1e-9}},
         RIGHT " [tries=2 factor=1]"},
        {"largest factor",
         {.size = SIZE, .retry = {.tries_max = 2, .factor = 1000}},
         RIGHT " [tries=2 factor=1000000]"},
        {"larger factor", {.size = SIZE, .retry = {.tries_max = 2, .factor = 1000.1}}, WRONG},
        {"negative factor", {.size = SIZE, .retry = {.tries_max = 2, .factor = -1}}, WRONG},
        {"no factor", {.size = SIZE, .retry = {.tries_max = 2, .factor = NAN}}, WRONG},
        {"jitter", {.size = SIZE, .retry = {.tries_max = 2, .jitter = 0.25}}, RIGHT " [tries=2 jitter=250]"},
        {"too much jitter", {.size = SIZE, .retry = {.tries_max = 2, .jitter = 1.01}}, WRONG},
        {"no jitter", {.size = SIZE, .retry = {.tries_max = 2, .jitter = NAN}}, WRONG},
        {"delay", {.size = SIZE, .retry = {.first_delay_ms = centuries}}, WRONG},
        {"ceiling", {.size = SIZE, .retry = {.max_delay_ms = centuries}}, WRONG},
        {"try timeout", {.size = SIZE, .try_timeout_ms = centuries}, WRONG},
        {"total timeout", {.size = SIZE, .total_timeout_ms = centuries}, WRONG},
        {"64 types", {.size = SIZE, .retry = {.final_types = many, .final_types_len = 64}}, RIGHT},
        {"65 types", {.size = SIZE, .retry = {.final_types = many, .final_types_len = 65}}, WRONG},
        {"types of nowhere", {.size = SIZE, .retry = {.final_types_len = 1}}, WRONG},
        {"a wrong type", {.size = SIZE, .retry = {.final_types = &bad_type, .final_types_len = 1}}, WRONG},
        {"an empty type", {.size = SIZE, .retry = {.final_types = &no_type, .final_types_len = 1}}, WRONG},
        {"a wrong queue",
         {.size = SIZE, .queue = THOLE_STR("a b")},
         "#1 Started t(x) | #2 Completed (INVALID '' INVALID  'a queue's name is not [A-Za-z0-9_-]{1,64}' "
         "...)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        options_now = &rows[i].options;
        struct play_row const row = {rows[i].name, calls_with, "Started t(x)", rows[i].expected};
        play_check_live(&row, 1);
    }
}

/* ---- the recorded policy counts ---- */

static void policy_from_history(void)
{
    thole_call_options const changed = {
        .size = SIZE, .try_timeout_ms = 1, .retry = {.tries_max = 9, .first_delay_ms = 9}};
    struct play play = play_of(calls_with);
    struct play_turns turns;
    struct instance *instance = play_instance(&play);
    struct event const failed = {.kind = EVENT_ACTIVITY_FAILED, .ref = 2, .code = THOLE_APP};
    struct event const wake = {.kind = EVENT_TIMER_FIRED, .ref = 2};
    struct turn_in in = {.time_ms = 2000, .received = &failed, .received_len = 1, .run = true};
    struct turn_out out = {0};
    options_now = &changed;
    play_parse("#1 Started t(x) | #2 ActivityScheduled charge(x) [tries=2 delay=500 finals=gone]", &turns);
    CU_ASSERT_EQUAL(instance_replay(instance, &turns.turns[0], NULL), THOLE_OK);
    play_turns_release(&turns); /* nothing is borrowed */
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(out.events[0].kind, EVENT_ACTIVITY_TRY_FAILED);
    CU_ASSERT_EQUAL(out.events[0].due_ms, 2500);
    in = (struct turn_in){.time_ms = 2500, .received = &wake, .received_len = 1, .run = true};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(out.events[0].kind, EVENT_ACTIVITY_TRY_STARTED);
    CU_ASSERT_PTR_NULL(out.events[0].retry); /* no timeout of a try was recorded */
    instance_destroy(instance);
    play_release(&play);
}

/* ---- delays ---- */

struct delay_row {
    const char *name;
    struct retry retry;
    uint64_t delays[6];
};

/* Fails try after try at the times told, and looks when the next is due. */
static void check_delays(const struct delay_row *row)
{
    struct play play = play_of(NULL);
    struct instance *instance = play_instance(&play);
    struct event const begin[] = {
        {.kind = EVENT_STARTED, .id = 1, .code = 1, .name = THOLE_STR("t")},
        {.kind = EVENT_ACTIVITY_SCHEDULED, .id = 2, .name = THOLE_STR("a"), .retry = &row->retry}};
    struct turn const turn = {.instance = THOLE_STR("order-1"),
                              .execution = 1,
                              .number = 1,
                              .ran = true,
                              .events = begin,
                              .events_len = 2};
    uint64_t now = 1000;
    struct turn_out out = {0};
    CU_ASSERT_EQUAL(instance_replay(instance, &turn, NULL), THOLE_OK);
    for (uint32_t i = 0; i < 6; i++) {
        struct event event = {
            .kind = EVENT_ACTIVITY_FAILED, .ref = 2, .code = THOLE_APP, .try_number = i + 1};
        struct turn_in const in = {.time_ms = now, .received = &event, .received_len = 1};
        CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
        CU_ASSERT_EQUAL(out.events[0].kind, EVENT_ACTIVITY_TRY_FAILED);
        if (out.events[0].due_ms - now != row->delays[i])
            fprintf(stderr, "\n  [%s] delay %u is %llu\n", row->name, i,
                    (unsigned long long)(out.events[0].due_ms - now));
        CU_ASSERT_EQUAL(out.events[0].due_ms - now, row->delays[i]);
        now = out.events[0].due_ms;
        event = (struct event){.kind = EVENT_TIMER_FIRED, .ref = 2};
        struct turn_in const wake = {.time_ms = now, .received = &event, .received_len = 1};
        CU_ASSERT_EQUAL(instance_turn(instance, &wake, &out, NULL), THOLE_OK);
        CU_ASSERT_EQUAL(out.events_len, 1);
    }
    instance_destroy(instance);
    play_release(&play);
}

static void delays(void)
{
    uint64_t const ceiling = UINT64_C(36525) * 24 * 3600 * 1000;
    struct delay_row const rows[] = {
        {"none", {.tries_max = 9}, {0, 0, 0, 0, 0, 0}},
        {"the same", {.tries_max = 9, .first_delay_ms = 7}, {7, 7, 7, 7, 7, 7}},
        {"double", {.tries_max = 9, .first_delay_ms = 10, .factor_milli = 2000}, {10, 20, 40, 80, 160, 320}},
        {"a ceiling",
         {.tries_max = 9, .first_delay_ms = 10, .factor_milli = 3000, .max_delay_ms = 100},
         {10, 30, 90, 100, 100, 100}},
        {"fractions are kept between tries",
         {.tries_max = 9, .first_delay_ms = 3, .factor_milli = 1500},
         {3, 4, 6, 10, 15, 22}},
        {"shrinks", {.tries_max = 9, .first_delay_ms = 100, .factor_milli = 500}, {100, 50, 25, 12, 6, 3}},
        {"overflows",
         {.tries_max = 9, .first_delay_ms = UINT64_C(1) << 40, .factor_milli = 1000000},
         {UINT64_C(1) << 40, ceiling, ceiling, ceiling, ceiling, ceiling}},
        {"no delay times anything", {.tries_max = 9, .factor_milli = 1000000}, {0, 0, 0, 0, 0, 0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_delays(&rows[i]);
}

/* Within its bounds, and different for each activity and each try. */
static void jitter(void)
{
    enum { N = 500 };
    struct play play = play_of(NULL);
    play.memory_max = 8 << 20;
    struct instance *instance = play_instance(&play);
    struct retry const retry = {.tries_max = 3, .first_delay_ms = 1000, .jitter_milli = 400};
    struct event events[N + 1] = {{.kind = EVENT_STARTED, .id = 1, .code = 1, .name = THOLE_STR("t")}};
    for (uint64_t i = 1; i <= N; i++)
        events[i] = (struct event){
            .kind = EVENT_ACTIVITY_SCHEDULED, .id = i + 1, .name = THOLE_STR("a"), .retry = &retry};
    struct turn const turn = {.instance = THOLE_STR("order-1"),
                              .execution = 1,
                              .number = 1,
                              .ran = true,
                              .events = events,
                              .events_len = N + 1};
    CU_ASSERT_EQUAL(instance_replay(instance, &turn, NULL), THOLE_OK);
    for (uint64_t i = 0; i < N; i++)
        events[i] = (struct event){.kind = EVENT_ACTIVITY_FAILED, .ref = i + 2, .code = THOLE_APP};
    struct turn_in in = {.time_ms = 0, .received = events, .received_len = N};
    struct turn_out out = {0};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    uint64_t least = UINT64_MAX, most = 0, sum = 0, first[N];
    for (size_t i = 0; i < N; i++) {
        uint64_t const due = first[i] = out.events[i].due_ms;
        least = due < least ? due : least;
        most = due > most ? due : most;
        sum += due;
    }
    CU_ASSERT(least >= 600 && least < 620 && most <= 1000 && most > 980);
    CU_ASSERT(sum / N > 780 && sum / N < 820);
    for (uint64_t i = 0; i < N; i++)
        events[i] = (struct event){.kind = EVENT_TIMER_FIRED, .ref = i + 2};
    in.time_ms = 5000;
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    for (uint64_t i = 0; i < N; i++)
        events[i] =
            (struct event){.kind = EVENT_ACTIVITY_FAILED, .ref = i + 2, .code = THOLE_APP, .try_number = 2};
    CU_ASSERT_EQUAL_FATAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_EQUAL_FATAL(out.events_len, N);
    size_t same = 0; /* else all that failed together would come together for ever */
    for (size_t i = 0; i < N; i++)
        same += out.events[i].due_ms == 5000 + first[i];
    CU_ASSERT(same < N / 20);
    instance_destroy(instance);
    play_release(&play);
}

/* ---- wakes, as the partition asks about them ---- */

static void wakes_are_asked_about(void)
{
    struct play play = play_of(only_total);
    struct instance *instance = play_instance(&play);
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t")};
    struct turn_in const in = {.time_ms = 1000, .received = &start, .received_len = 1, .run = true};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT(instance_accepts(instance, &(struct event){.kind = EVENT_TIMER_FIRED, .ref = 2}));
    CU_ASSERT(
        instance_accepts(instance, &(struct event){.kind = EVENT_TIMER_FIRED, .ref = 2, .due_ms = 1250}));
    CU_ASSERT_FALSE(
        instance_accepts(instance, &(struct event){.kind = EVENT_TIMER_FIRED, .ref = 2, .due_ms = 1249}));
    CU_ASSERT_FALSE(instance_accepts(instance, &(struct event){.kind = EVENT_TIMER_FIRED, .ref = 1}));
    CU_ASSERT_FALSE(instance_accepts(instance, &(struct event){.kind = EVENT_TIMER_FIRED}));
    CU_ASSERT_FALSE(instance_accepts(
        instance, &(struct event){.kind = EVENT_ACTIVITY_COMPLETED, .ref = 2, .try_number = 2}));
    CU_ASSERT(instance_accepts(instance, &(struct event){.kind = EVENT_ACTIVITY_COMPLETED, .ref = 2}));
    CU_ASSERT_FALSE(instance_accepts(
        instance, &(struct event){.kind = EVENT_ACTIVITY_TRY_FAILED, .ref = 2, .try_number = 1}));
    CU_ASSERT_FALSE(instance_accepts(
        instance, &(struct event){.kind = EVENT_ACTIVITY_TRY_STARTED, .ref = 2, .try_number = 2}));
    instance_destroy(instance);
    play_release(&play);
}

static const struct thole_test tests[] = {
    {"tries", tries},
    {"between tries", between_tries},
    {"timeouts", timeouts},
    {"a clock that was wrong", a_clock_that_was_wrong},
    {"somebody asks for the next try", asked_for},
    {"thrown", thrown},
    {"options", options},
    {"policy from history", policy_from_history},
    {"delays", delays},
    {"jitter", jitter},
    {"wakes are asked about", wakes_are_asked_about},
};
THOLE_TEST_MAIN("instance_retry", tests)
