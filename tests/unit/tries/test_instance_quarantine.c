/* Activities that were lost with their workers too often: quarantine, what ends it, and the other policies.
 */
#include "play.h"
#include "thole/orchestration.h"

static thole_status say(thole_ctx *ctx, thole_task task, thole_slice *ret_output)
{
    thole_slice output = {0};
    thole_status const status = thole_await(ctx, task, &output);
    thole_failure const f = thole_task_failure(ctx, task);
    *ret_output = thole_format(ctx, "%s '%.*s' %.*s '%.*s' %u", thole_status_name(status), THOLE_FMT(output),
                               THOLE_FMT(f.type), THOLE_FMT(f.message), f.tries);
    return THOLE_OK;
}

static thole_status plain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return say(ctx, thole_call(ctx, THOLE_STR("resize"), input), ret_output);
}

static thole_status with(thole_ctx *ctx, thole_slice input, const thole_call_options *options,
                         thole_slice *ret_output)
{
    thole_call_options own = *options;
    own.size = sizeof own;
    return say(ctx, thole_call_with(ctx, THOLE_STR("resize"), input, &own), ret_output);
}

static thole_status tried(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.queue = THOLE_STR("gpu"),
                                        .retry = {.tries_max = 2, .first_delay_ms = 100}};
    return with(ctx, input, &options, ret_output);
}

static thole_status timed(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.try_timeout_ms = 50, .total_timeout_ms = 2000};
    return with(ctx, input, &options, ret_output);
}

static thole_status fails(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.poison = THOLE_POISON_FAIL, .retry = {.tries_max = 3}};
    return with(ctx, input, &options, ret_output);
}

static thole_status again(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.poison = THOLE_POISON_RETRY,
                                        .retry = {.tries_max = 2, .first_delay_ms = 100}};
    return with(ctx, input, &options, ret_output);
}

static thole_status not_again(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    static thole_slice const types[] = {{(const uint8_t *)"poison", 6}};
    thole_call_options const options = {
        .poison = THOLE_POISON_RETRY,
        .retry = {.tries_max = 2, .first_delay_ms = 100, .final_types = types, .final_types_len = 1}};
    return with(ctx, input, &options, ret_output);
}

static thole_status races(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const tasks[] = {thole_call(ctx, THOLE_STR("resize"), input), thole_timer(ctx, 1000)};
    size_t winner = 0;
    thole_status const status = thole_await_any(ctx, tasks, 2, &winner);
    *ret_output = thole_format(ctx, "%zu", winner);
    return status;
}

/* A worker's report; the rest is the report's text. */
#define LOST "ActivityFailed #2 APP poison (5 lost) [queue=default lost=5 worker=w input=x final]"
#define BEGIN "@1000 Started t(x) / @1010 " LOST
#define PLAIN "#1 Started t(x) | #2 ActivityScheduled resize(x)"
#define HELD PLAIN " / #3 ActivityQuarantined #2 try 1 resize(5 lost) due 6010 [lost=5 worker=w input=x]"
#define POISONED "(APP '' poison '5 lost' 1)"

static void quarantine(void)
{
    struct play_row const rows[] = {
        {"it waits", plain, BEGIN, HELD},
        {"it fails when its time is over", plain, BEGIN " / @6010 TimerFired #2",
         HELD " / #4 ActivityFailed #2 APP poison (5 lost) from quarantine [timed] | #5 Completed " POISONED},
        {"not before", plain, BEGIN " / @6009 TimerFired #2", HELD " / -"},
        {"a second report is late", plain, BEGIN " / " LOST, HELD " / -"},
        {"so is a result", plain, BEGIN " / ActivityCompleted #2 (ok)", HELD " / -"},
        {"somebody says: again", plain,
         BEGIN " / ActivityTryStarted #2 (-) / ActivityCompleted #2 try 2 (ok)",
         HELD " / #4 ActivityTryStarted #2 try 2 resize(x) from quarantine / "
              "#5 ActivityCompleted #2 try 2 (ok) | #6 Completed (OK 'ok'  '' 2)"},
        {"again, by the number of its try", plain, BEGIN " / ActivityTryStarted #2 try 1 (-)",
         HELD " / #4 ActivityTryStarted #2 try 2 resize(x) from quarantine"},
        {"said twice", plain, BEGIN " / ActivityTryStarted #2 (-) | ActivityTryStarted #2 (-)",
         HELD " / #4 ActivityTryStarted #2 try 2 resize(x) from quarantine"},
        {"said of another try", plain, BEGIN " / ActivityTryStarted #2 try 2 (-)", HELD " / -"},
        {"said when nobody asked", plain, "@1000 Started t(x) / ActivityTryStarted #2 (-)", PLAIN " / -"},
        {"another life fails", plain,
         BEGIN " / ActivityTryStarted #2 (-) / ActivityFailed #2 try 2 APP busy (no)",
         HELD " / #4 ActivityTryStarted #2 try 2 resize(x) from quarantine / "
              "#5 ActivityFailed #2 try 2 APP busy (no) | #6 Completed (APP '' busy 'no' 2)"},
        {"another life kills, too", plain,
         BEGIN " / @1500 ActivityTryStarted #2 (-) / @2000 ActivityFailed #2 try 2 APP poison (more) "
               "[queue=default lost=6 worker=v input=x]",
         HELD " / #4 ActivityTryStarted #2 try 2 resize(x) from quarantine / "
              "#5 ActivityQuarantined #2 try 2 resize(more) due 7000 [lost=6 worker=v input=x]"},
        {"the end of the first quarantine is not the second's", plain,
         BEGIN " / @1500 ActivityTryStarted #2 (-) / @2000 ActivityFailed #2 try 2 APP poison (more) "
               "[queue=default lost=6 worker=v input=x] / @6010 TimerFired #2",
         HELD " / #4 ActivityTryStarted #2 try 2 resize(x) from quarantine / "
              "#5 ActivityQuarantined #2 try 2 resize(more) due 7000 [lost=6 worker=v input=x] / -"},
        {"what its last try told is there for the next", plain,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP poison (5 lost) [queue=default details=half "
         "lost=5 worker=w "
         "input=x final] / ActivityTryStarted #2 (-)",
         PLAIN
         " / #3 ActivityQuarantined #2 try 1 resize(5 lost) due 6010 [details=half lost=5 worker=w input=x]"
         " / #4 ActivityTryStarted #2 try 2 resize(x) from quarantine [details=half]"},
        {"somebody says: no", plain, BEGIN " / ActivityFailed #2 APP (-) from quarantine",
         HELD " / #4 ActivityFailed #2 APP poison (5 lost) from quarantine [timed] | #5 Completed " POISONED},
        {"no, when nobody asked", plain, "@1000 Started t(x) / ActivityFailed #2 APP (-) from quarantine",
         PLAIN " / -"},
        {"cancelled", races, BEGIN " / @2000 TimerFired #3",
         "#1 Started t(x) | #2 ActivityScheduled resize(x) | #3 TimerCreated due 2000 / "
         "#4 ActivityQuarantined #2 try 1 resize(5 lost) due 6010 [lost=5 worker=w input=x] / "
         "#5 TimerFired #3 | #6 ActivityCancelled #2 select_loser (timer 3 won) from quarantine [timed] | "
         "#7 Completed (1)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

#define TIMED "#1 Started t(x) | #2 ActivityScheduled resize(x) [try_ms=50 total_ms=2000]"
#define TRIED "#1 Started t(x) | #2 ActivityScheduled resize(x) [queue=gpu tries=2 delay=100]"
#define FAILS "#1 Started t(x) | #2 ActivityScheduled resize(x) [tries=3 poison=1]"
#define AGAIN "#1 Started t(x) | #2 ActivityScheduled resize(x) [tries=2 delay=100 poison=2]"
static void policies(void)
{
    struct play_row const rows[] = {
        {"the total timeout ends it", timed, BEGIN " / @3000 TimerFired #2",
         TIMED " / #3 ActivityQuarantined #2 try 1 resize(5 lost) due 3000 [lost=5 worker=w input=x] / "
               "#4 ActivityFailed #2 TIMEOUT timeout (the total timeout of 2000 ms is over; it was in "
               "quarantine: 5 lo...) from quarantine [timed] | "
               "#5 Completed (TIMEOUT '' timeout 'the total timeout of 2000 ms is over; it was...)"},
        {"another life has the same timeouts", timed, BEGIN " / ActivityTryStarted #2 (-)",
         TIMED " / #3 ActivityQuarantined #2 try 1 resize(5 lost) due 3000 [lost=5 worker=w input=x] / "
               "#4 ActivityTryStarted #2 try 2 resize(x) due 3000 from quarantine [try_ms=50]"},
        {"what is known is not recorded again", tried, BEGIN " / ActivityTryStarted #2 (-)",
         TRIED " / #3 ActivityQuarantined #2 try 1 resize(5 lost) due 6010 [lost=5 worker=w] / "
               "#4 ActivityTryStarted #2 try 2 resize(x) from quarantine [queue=gpu]"},
        {"the retry policy does not see it", tried,
         BEGIN " / ActivityTryStarted #2 (-) / @4000 ActivityFailed #2 try 2 APP poison (more) "
               "[queue=gpu lost=6 worker=v input=x] / ActivityTryStarted #2 (-)",
         TRIED " / #3 ActivityQuarantined #2 try 1 resize(5 lost) due 6010 [lost=5 worker=w] / "
               "#4 ActivityTryStarted #2 try 2 resize(x) from quarantine [queue=gpu] / "
               "#5 ActivityQuarantined #2 try 2 resize(more) due 9000 [queue=gpu lost=6 worker=v] / "
               "#6 ActivityTryStarted #2 try 3 resize(x) from quarantine [queue=gpu]"},
        {"it fails at once", fails, BEGIN,
         FAILS " / #3 ActivityFailed #2 APP poison (5 lost) | #4 Completed " POISONED},
        {"it is tried again as any other", again, BEGIN " / @1110 TimerFired #2",
         AGAIN " / #3 ActivityTryFailed #2 try 1 APP poison (5 lost) due 1110 / "
               "#4 ActivityTryStarted #2 try 2 resize(x)"},
        {"unless that type is final", not_again, BEGIN,
         "#1 Started t(x) | #2 ActivityScheduled resize(x) [tries=2 delay=100 finals=poison poison=2] / "
         "#3 ActivityFailed #2 APP poison (5 lost) | #4 Completed " POISONED},
        {"a failure of that type is none", tried,
         "@1000 Started t(x) / @1010 ActivityFailed #2 APP poison (says who)",
         TRIED " / #3 ActivityTryFailed #2 try 1 APP poison (says who) due 1110"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

static void check_with(uint64_t quarantine_ms, const char *name, const char *script, const char *expected)
{
    struct play play = play_of(plain);
    struct buf text;
    play.quarantine_ms = quarantine_ms;
    buf_init(&text, PLAY_TEXT_MAX);
    play_live(&play, script, &text);
    CHECK_STR(name, buf_cstr(&text), expected);
    buf_release(&text);
    play_release(&play);
}

static void how_long(void)
{
    check_with(0, "not at all", BEGIN,
               PLAIN " / #3 ActivityFailed #2 APP poison (5 lost) | #4 Completed " POISONED);
    check_with(UINT64_MAX, "for ever", BEGIN " / @99999999999 TimerFired #2",
               PLAIN " / #3 ActivityQuarantined #2 try 1 resize(5 lost) [lost=5 worker=w input=x] / -");
    check_with(UINT64_MAX, "for ever, until somebody says: no",
               BEGIN " / ActivityFailed #2 APP (-) from quarantine",
               PLAIN " / #3 ActivityQuarantined #2 try 1 resize(5 lost) [lost=5 worker=w input=x] / "
                     "#4 ActivityFailed #2 APP poison (5 lost) from quarantine | #5 Completed " POISONED);
}

#define AT3(text) PLAIN " / " text
static void histories(void)
{
    struct play_row const rows[] = {
        {"in quarantine", plain, HELD, "ok"},
        {"of a try that does not run", plain,
         AT3("#3 ActivityQuarantined #2 try 2 resize(5 lost) due 6010 [lost=5 worker=w input=x]"),
         "CORRUPT: event 3: ActivityQuarantined of try 2, the activity's try is 1"},
        {"twice", plain,
         HELD " / #4 ActivityQuarantined #2 try 1 resize(5 lost) due 6010 [lost=5 worker=w input=x]",
         "CORRUPT: event 4: ActivityQuarantined of try 1, the activity's try is 1"},
    };
    play_check_replay(rows, ARRAY_LEN(rows));
}

/* ---- open tasks, for people ---- */

static void check_outstanding(const char *name, const char *history, const char *want)
{
    struct play play = play_of(plain);
    struct instance *instance = play_codeless(&play);
    struct play_turns turns;
    struct outstanding state;
    struct buf got;
    size_t cursor = 0;
    buf_init(&got, 1000);
    play_parse(history, &turns);
    for (size_t i = 0; i < turns.len; i++)
        CU_ASSERT_EQUAL(instance_replay(instance, &turns.turns[i], NULL), THOLE_OK);
    while (instance_outstanding(instance, &cursor, &state)) {
        buf_printf(&got, "#%llu", (unsigned long long)state.id);
        if (state.try_number > 0)
            buf_printf(&got, " try %u", state.try_number);
        if (state.waiting)
            buf_printf(&got, " %s %llu", state.quarantined ? "quarantined" : "waits",
                       (unsigned long long)state.due_ms);
        buf_text(&got, " ");
        CU_ASSERT_TRUE(state.waiting || (!state.quarantined && state.due_ms == 0));
    }
    CHECK_STR(name, buf_cstr(&got), want);
    buf_release(&got);
    play_turns_release(&turns);
    instance_destroy(instance);
    play_release(&play);
}

#define MANY                                                                                                 \
    "#1 Started t(x) | #2 ActivityScheduled resize(x) [tries=3 delay=100] | #3 TimerCreated due 5000 | "     \
    "#4 EventAwaited go | #5 ChildScheduled c() -> order-1:1:5 | #6 ActivityScheduled plain()"
static void outstanding(void)
{
    check_outstanding("nothing yet", "~#1 Started t(x)", "");
    check_outstanding("all", MANY, "#2 try 1 #3 #4 #5 #6 try 1 ");
    check_outstanding("a try has failed", MANY " / #7 ActivityTryFailed #2 try 1 APP () due 1110",
                      "#2 try 1 waits 1110 #3 #4 #5 #6 try 1 ");
    check_outstanding("the next runs",
                      MANY " / #7 ActivityTryFailed #2 try 1 APP () due 1110 / "
                           "#8 ActivityTryStarted #2 try 2 resize(x)",
                      "#2 try 2 #3 #4 #5 #6 try 1 ");
    check_outstanding("quarantine",
                      MANY " / #7 ActivityQuarantined #6 try 1 plain(5 lost) due 6010 [lost=5 worker=w]",
                      "#2 try 1 #3 #4 #5 #6 try 1 quarantined 6010 ");
    check_outstanding("some are over",
                      MANY " / #7 TimerFired #3 | #8 ActivityCompleted #2 () | #9 ChildFailed #5 APP ()",
                      "#4 #6 try 1 ");
}

static const struct thole_test tests[] = {
    {"quarantine", quarantine}, {"policies", policies},       {"how long", how_long},
    {"histories", histories},   {"outstanding", outstanding},
};
THOLE_TEST_MAIN("instance_quarantine", tests)
