/* Children with their close policies, detached starts, continue-as-new and what it carries. */
#include "dropped.h"
#include "play.h"
#include "thole/orchestration.h"

static thole_status one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const child = thole_child(ctx, THOLE_STR("ship"), input, NULL);
    thole_slice output = {0};
    thole_status const status = thole_await(ctx, child, &output);
    thole_failure const f = thole_task_failure(ctx, child);
    *ret_output = thole_format(ctx, "%s '%.*s' %s %.*s '%.*s'", thole_status_name(status), THOLE_FMT(output),
                               thole_status_name(f.status), THOLE_FMT(f.type), THOLE_FMT(f.message));
    return THOLE_OK;
}

static thole_status passes_on(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_child(ctx, THOLE_STR("ship"), input, NULL), ret_output);
}

static thole_status named(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {.size = sizeof options,
                                         .instance = THOLE_STR("ship-1"),
                                         .version = 3,
                                         .close = THOLE_CLOSE_TERMINATE};
    return thole_await(ctx, thole_child(ctx, THOLE_STR("ship"), input, &options), ret_output);
}

static thole_status raced(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {.size = sizeof options, .close = THOLE_CLOSE_ABANDON};
    thole_task tasks[] = {thole_child(ctx, THOLE_STR("ship"), input, &options), thole_timer(ctx, 10)};
    size_t winner;
    THOLE_TRY(thole_await_any(ctx, tasks, 2, &winner));
    return thole_await(ctx, tasks[winner], ret_output);
}

#define CHILD "#1 Started t(x) | #2 ChildScheduled ship(x) -> order-1:1:2"
static void results(void)
{
    struct play_row const rows[] = {
        {"scheduled", one, "Started t(x)", CHILD},
        {"completes", one, "Started t(x) / ChildCompleted #2 (y)",
         CHILD " / #3 ChildCompleted #2 (y) | #4 Completed (OK 'y' OK  '')"},
        {"fails", one, "Started t(x) / ChildFailed #2 APP broken (no)",
         CHILD " / #3 ChildFailed #2 APP broken (no) | #4 Completed (APP '' APP broken 'no')"},
        {"its id is in use", one, "Started t(x) / ChildFailed #2 CONFLICT conflict (in use)",
         CHILD " / #3 ChildFailed #2 CONFLICT conflict (in use) | #4 Completed (APP '' CONFLICT conflict 'in "
               "use')"},
        {"was cancelled", one, "Started t(x) / ChildFailed #2 CANCELLED (by hand)",
         CHILD " / #3 ChildFailed #2 CANCELLED (by hand) | #4 Completed (CANCELLED '' CANCELLED  'by hand')"},
        {"ran out of time", one, "Started t(x) / ChildFailed #2 TIMEOUT timeout ()",
         CHILD " / #3 ChildFailed #2 TIMEOUT timeout () | #4 Completed (APP '' TIMEOUT timeout '')"},
        {"a status that is also the number of a kind of cancellation", one,
         "Started t(x) / ChildFailed #2 NOMEM ()",
         CHILD " / #3 ChildFailed #2 NOMEM () | #4 Completed (APP '' NOMEM  '')"},
        {"type and text travel", passes_on, "Started t(x) / ChildFailed #2 APP broken (no)",
         CHILD " / #3 ChildFailed #2 APP broken (no) | #4 Failed APP broken (child 'ship' failed: no)"},
        {"a cancelled child does not cancel the parent", passes_on,
         "Started t(x) / ChildFailed #2 CANCELLED (by hand)",
         CHILD
         " / #3 ChildFailed #2 CANCELLED (by hand) | #4 Failed CANCELLED (child 'ship' was cancelled: by "
         "hand)"},
        {"options", named, "Started t(x) / ChildCompleted #2 (y)",
         "#1 Started t(x) | #2 ChildScheduled ship@3(x) -> ship-1 [close=2] / #3 ChildCompleted #2 (y) | "
         "#4 Completed (y)"},
        {"twice, ok and fail", one, "Started t(x) / ChildCompleted #2 (y) | ChildFailed #2 APP (no)",
         CHILD " / #3 ChildCompleted #2 (y) | #4 Completed (OK 'y' OK  '')"},
        {"what is for an activity", one, "Started t(x) / ActivityCompleted #2 (y) | TimerFired #2",
         CHILD " / -"},
        {"loses a race", raced, "Started t(x) / TimerFired #3",
         "#1 Started t(x) | #2 ChildScheduled ship(x) -> order-1:1:2 [close=1] | #3 TimerCreated due 1010 / "
         "#4 TimerFired #3 | #5 ChildCancelled #2 select_loser (timer 3 won) -> order-1:1:2 | #6 Completed "
         "()"},
        {"wins it", raced, "Started t(x) / ChildCompleted #2 (y)",
         "#1 Started t(x) | #2 ChildScheduled ship(x) -> order-1:1:2 [close=1] | #3 TimerCreated due 1010 / "
         "#4 ChildCompleted #2 (y) | #5 TimerCancelled #3 select_loser (child 2 'ship' won) | #6 Completed "
         "(y)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- close policies ---- */

static void three_children(thole_ctx *ctx, thole_slice input)
{
    thole_child_options options = {.size = sizeof options};
    for (int close = THOLE_CLOSE_CANCEL; close <= THOLE_CLOSE_TERMINATE; close++) {
        options.close = (thole_close)close;
        drop_task(thole_child(ctx, THOLE_STR("c"), input, &options));
    }
}

static thole_status ends(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    three_children(ctx, input);
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output));
    if (thole_slice_equal(*ret_output, THOLE_STR("fail")))
        return thole_throw(ctx, "failed");
    if (thole_slice_equal(*ret_output, THOLE_STR("again")))
        return thole_continue_as_new(ctx, THOLE_STR("new"), 0);
    return THOLE_OK;
}

static thole_status compensates_with_children(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_status const status = thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
    three_children(ctx, input);
    return status;
}

#define KIDS(a, b, c)                                                                                        \
    "#" #a " ChildScheduled c() -> order-1:1:" #a " | #" #b " ChildScheduled c() -> order-1:1:" #b           \
    " [close=1] | #" #c " ChildScheduled c() -> order-1:1:" #c " [close=2]"
#define PARENT "#1 Started t() | " KIDS(2, 3, 4) " | #5 EventAwaited go"
#define CLOSED(a, b, why)                                                                                    \
    "#" #a " ChildCancelled #2 " why " -> order-1:1:2 | #" #b " ChildCancelled #4 " why                      \
    " -> order-1:1:4 terminate"
static void closing(void)
{
    struct play_row const rows[] = {
        {"completed", ends, "Started t() / EventReceived go(x)",
         PARENT " / #6 EventReceived go(x) | " CLOSED(7, 8, "ended (ended)") " | #9 Completed (x)"},
        {"failed", ends, "Started t() / EventReceived go(fail)",
         PARENT " / #6 EventReceived go(fail) | " CLOSED(7, 8, "ended (ended)") " | #9 Failed APP (failed)"},
        {"continued as new", ends, "Started t() / EventReceived go(again)",
         PARENT " / #6 EventReceived go(again) | " CLOSED(
             7, 8, "ended (ended)") " | #9 ContinuedAsNew (new) => #1 Started t(new)"},
        {"terminated", ends, "Started t() / TerminateRequested (stop)",
         PARENT " / #6 TerminateRequested (stop) | " CLOSED(
             7, 8,
             "terminated (stop)") " | #9 EventAwaitCancelled #5 terminated (stop) | #10 Terminated (stop)"},
        {"requested: all are asked to cancel", ends, "Started t() / CancelRequested (why)",
         PARENT
         " / #6 CancelRequested (why) | #7 ChildCancelled #2 requested (why) -> order-1:1:2 | "
         "#8 ChildCancelled #3 requested (why) -> order-1:1:3 | #9 ChildCancelled #4 requested (why) -> "
         "order-1:1:4 | #10 EventAwaitCancelled #5 requested (why) | #11 ChildCancelled #4 requested (why) "
         "-> "
         "order-1:1:4 terminate | #12 Cancelled (why)"},
        {"scheduled after a request, left at the end", compensates_with_children,
         "Started t() / CancelRequested (why)",
         "#1 Started t() | #2 EventAwaited go / #3 CancelRequested (why) | #4 EventAwaitCancelled #2 "
         "requested "
         "(why) | " KIDS(
             5, 6, 7) " | #8 ChildCancelled #5 requested (why) -> order-1:1:5 | "
                      "#9 ChildCancelled #7 requested (why) -> order-1:1:7 terminate | #10 Cancelled (why)"},
        {"a result comes too late", ends, "Started t() / CancelRequested (why) | ChildCompleted #2 (y)",
         PARENT
         " / #6 CancelRequested (why) | #7 ChildCancelled #2 requested (why) -> order-1:1:2 | "
         "#8 ChildCancelled #3 requested (why) -> order-1:1:3 | #9 ChildCancelled #4 requested (why) -> "
         "order-1:1:4 | #10 EventAwaitCancelled #5 requested (why) | #11 ChildCancelled #4 requested (why) "
         "-> "
         "order-1:1:4 terminate | #12 Cancelled (why)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* Cancels all, in one way or another, goes on, and ends. */
static thole_status cancels_first(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options options = {.size = sizeof options};
    thole_task tasks[4] = {thole_timer(ctx, 10)};
    size_t winner;
    for (int close = THOLE_CLOSE_CANCEL; close <= THOLE_CLOSE_TERMINATE; close++) {
        options.close = (thole_close)close;
        tasks[1 + close] = thole_child(ctx, THOLE_STR("c"), input, &options);
    }
    if (thole_slice_equal(input, THOLE_STR("race")))
        THOLE_TRY(thole_await_any(ctx, tasks, 4, &winner));
    else
        for (int i = 1; i < 4; i++)
            thole_cancel(ctx, tasks[i], THOLE_STR("no"));
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

#define RACED(a, b, c)                                                                                       \
    "ChildScheduled c(race) -> order-1:1:" #a " | #" #b " ChildScheduled c(race) -> order-1:1:" #b           \
    " [close=1] | #" #c " ChildScheduled c(race) -> order-1:1:" #c " [close=2]"
#define LOST "select_loser (timer 2 won) -> order-1:1:"
#define RACE                                                                                                 \
    "#1 Started t(race) | #2 TimerCreated due 1010 | #3 " RACED(3, 4, 5) " / #6 TimerFired #2 | "            \
                                                                         "#7 ChildCancelled #3 " LOST        \
                                                                         "3 | #8 ChildCancelled #4 " LOST    \
                                                                         "4 | #9 ChildCancelled #5 " LOST    \
                                                                         "5 | #10 EventAwaited go"

/* A child that was asked to cancel may still run when its parent ends: it is terminated if that was asked
 * for. */
static void closing_what_was_cancelled(void)
{
    struct play_row const rows[] = {
        {"losers", cancels_first, "Started t(race) / TimerFired #2 / EventReceived go(x)",
         RACE " / #11 EventReceived go(x) | #12 ChildCancelled #5 ended (ended) -> order-1:1:5 terminate | "
              "#13 Completed (x)"},
        {"losers, and what ended comes too late", cancels_first,
         "Started t(race) / TimerFired #2 / ChildFailed #5 CANCELLED (no) | EventReceived go(x)",
         RACE " / #11 EventReceived go(x) | #12 ChildCancelled #5 ended (ended) -> order-1:1:5 terminate | "
              "#13 Completed (x)"},
        {"cancelled one by one, then terminated", cancels_first, "Started t() / TerminateRequested (stop)",
         "#1 Started t() | #2 TimerCreated due 1010 | " KIDS(
             3, 4, 5) " | #6 ChildCancelled #3 explicit (no) -> "
                      "order-1:1:3 | #7 ChildCancelled #4 explicit (no) -> order-1:1:4 | #8 ChildCancelled "
                      "#5 explicit (no) -> "
                      "order-1:1:5 | #9 EventAwaited go / #10 TerminateRequested (stop) | #11 TimerCancelled "
                      "#2 terminated "
                      "(stop) | #12 ChildCancelled #5 terminated (stop) -> order-1:1:5 terminate | #13 "
                      "EventAwaitCancelled #9 "
                      "terminated (stop) | #14 Terminated (stop)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

#define OLD_RACE                                                                                             \
    "#1 Started t(race) [code=2] | #2 TimerCreated due 1010 | #3 " RACED(                                    \
        3, 4, 5) " / #6 TimerFired #2 | "                                                                    \
                 "#7 ChildCancelled #3 " LOST "3 | #8 ChildCancelled #4 " LOST                               \
                 "4 | #9 ChildCancelled #5 " LOST "5 | #10 EventAwaited go / #11 EventReceived go(x)"

/* Executions that began before go on as they were: in replay, and live. */
static void closing_in_older_executions(void)
{
    struct play_row const rows[] = {
        {"an older one", cancels_first, OLD_RACE " | #12 Completed (x)", "ok, ended"},
        {"a newer one", cancels_first,
         RACE " / #11 EventReceived go(x) | #12 ChildCancelled #5 ended (ended) -> order-1:1:5 terminate | "
              "#13 Completed (x)",
         "ok, ended"},
    };
    play_check_replay(rows, ARRAY_LEN(rows));
}

/* ---- wrong arguments ---- */

struct wrong_row {
    const char *name, *orchestration;
    size_t input_len;
    thole_child_options options;
    const char *expected;
};
static const struct wrong_row *wrong_now;
static uint8_t const bytes[512] = {0xff};

static thole_status wrong_child(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice const name = thole_slice_from(wrong_now->orchestration);
    thole_slice const data = {bytes, wrong_now->input_len};
    thole_task const child = thole_child(ctx, name, data, &wrong_now->options);
    thole_status const a = thole_await(ctx, child, NULL);
    thole_start(ctx, name, data, &wrong_now->options);
    thole_status const b = thole_await_all(ctx, NULL, 0, NULL), c = thole_await_all(ctx, NULL, 0, NULL);
    (void)input;
    *ret_output =
        thole_format(ctx, "%s %s %s", thole_status_name(a), thole_status_name(b), thole_status_name(c));
    return THOLE_OK;
}

enum { SIZE = sizeof(thole_child_options) };
static void wrong_arguments(void)
{
    struct wrong_row const rows[] = {
        {"name", "a b", 1, {.size = SIZE}, "INVALID INVALID OK"},
        {"no name", "", 1, {.size = SIZE}, "INVALID INVALID OK"},
        {"size", "a", 257, {.size = SIZE}, "LIMIT LIMIT OK"},
        {"no size of options", "a", 1, {.size = 0}, "INVALID INVALID OK"},
        {"close", "a", 1, {.size = SIZE, .close = (thole_close)3}, "INVALID INVALID OK"},
        {"id", "a", 1, {.size = SIZE, .instance = {bytes, 1}}, "INVALID INVALID OK"},
        {"long id", "a", 1, {.size = SIZE, .instance = {bytes + 1, 201}}, "INVALID INVALID OK"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char expected[128];
        (void)snprintf(expected, sizeof expected, "#1 Started t() | #2 Completed (%s)", rows[i].expected);
        struct play_row const row = {rows[i].name, wrong_child, "Started t()", expected};
        wrong_now = &rows[i];
        play_check_live(&row, 1);
    }
}

static void the_id_that_is_made(void)
{
    char id[202];
    memset(id, 'x', sizeof id);
    for (size_t len = 195; len <= 197; len++) { /* and ":1:2" */
        struct play play = play_of(passes_on);
        struct buf got;
        id[len] = '\0';
        play.id = id;
        struct instance *instance = play_instance(&play);
        struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t")};
        struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
        struct turn_out out = {0};
        CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
        buf_init(&got, PLAY_TEXT_MAX);
        play_render(&out.events[out.events_len - 1], &got);
        if (len <= 196) {
            CU_ASSERT_EQUAL(out.events[1].target.len, len + 4);
        } else {
            CHECK_STR("too long", buf_cstr(&got),
                      "#2 Failed LIMIT (the instance id made for a child is longer than 200 bytes)");
        }
        buf_release(&got);
        instance_destroy(instance);
        id[len] = 'x';
        play_release(&play);
    }
}

/* An older engine took a version that is refused now: what it has recorded replays. */
static thole_status asks_far(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {
        .size = sizeof options, .instance = THOLE_STR("far"), .version = UINT32_C(2147483648)};
    (void)ret_output;
    thole_start(ctx, THOLE_STR("ship"), input, &options);
    THOLE_TRY(thole_await(ctx, thole_child(ctx, THOLE_STR("ship"), input, &options), NULL));
    return thole_continue_as_new(ctx, input, options.version);
}

static void versions_of_older_engines(void)
{
    struct play_row const rows[] = {
        {"recorded", asks_far,
         "#1 Started t(x) | #2 DetachedStarted ship@2147483648(x) -> far | #3 ChildScheduled "
         "ship@2147483648(x) -> far / #4 ChildCompleted #3 (y) | #5 ContinuedAsNew @2147483648(x)",
         "ok, ended"},
    };
    struct play_row const live[] = {
        {"asked for now", asks_far, "Started t(x)",
         "#1 Started t(x) | #2 Failed INVALID (a child's options are out of range)"},
    };
    play_check_replay(rows, ARRAY_LEN(rows));
    play_check_live(live, ARRAY_LEN(live));
}

/* ---- detached ---- */

static thole_status starts(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {.size = sizeof options,
                                         .instance = THOLE_STR("mail-1"),
                                         .version = 2,
                                         .close = THOLE_CLOSE_TERMINATE};
    thole_start(ctx, THOLE_STR("mail"), input, &options);
    thole_start(ctx, THOLE_STR("mail"), input, NULL);
    *ret_output = input;
    return THOLE_OK;
}

static void detached(void)
{
    struct play_row const rows[] = {
        {"nobody's child", starts, "Started t(x)",
         "#1 Started t(x) | #2 DetachedStarted mail@2(x) -> mail-1 | #3 DetachedStarted mail(x) -> "
         "order-1:1:3 | "
         "#4 Completed (x)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- continue as new ---- */

static thole_status again(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice data;
    (void)ret_output;
    drop_task(thole_call(ctx, THOLE_STR("left"), input));
    thole_state_set(ctx, THOLE_STR("b"), THOLE_STR("2"));
    thole_state_set(ctx, THOLE_STR("a"), THOLE_STR("1"));
    thole_state_set(ctx, THOLE_STR("c"), THOLE_STR("3"));
    thole_state_remove(ctx, THOLE_STR("b"));
    thole_set_status(ctx, THOLE_STR("half way"));
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), &data));
    return thole_continue_as_new(ctx, data, 0);
}

#define AGAIN(start)                                                                                         \
    start " | #2 ActivityScheduled left(x) | #3 StateSet b(2) | #4 StateSet a(1) | #5 StateSet c(3) | "      \
          "#6 StateSet b() removed | #7 CustomStatusSet (half way) | #8 EventAwaited go"
#define STATE "#2 StateCarried (half way) | #3 StateCarried a(1) | #4 StateCarried c(3)"
static void carried(void)
{
    struct play_row const rows[] = {
        {"state and status", again, "Started t(x) / EventReceived go(y)",
         AGAIN("#1 Started t(x)") " / #9 EventReceived go(y) | #10 ActivityCancelled #2 ended (ended) | "
                                  "#11 ContinuedAsNew (y) => #1 Started t(y) | " STATE},
        {"parent, request, version", again, "Started t@4(x) of p:2#7 [id=r] / EventReceived go(y)",
         AGAIN("#1 Started t@4(x) of p:2#7 [id=r]") " / #9 EventReceived go(y) | #10 ActivityCancelled #2 "
                                                    "ended (ended) | #11 ContinuedAsNew (y) => "
                                                    "#1 Started t@4(y) of p:2#7 [id=r] | " STATE},
        {"events that nobody took, in order, and what was seen", again,
         "Started t(x) | EventReceived z(1) [id=r1] | EventReceived a(2) / EventReceived z(3) [id=r3] | "
         "EventReceived go(y) [id=r4] | EventReceived go(5)",
         "#1 Started t(x) | #2 EventReceived z(1) [id=r1] | #3 EventReceived a(2) | #4 ActivityScheduled "
         "left(x) | "
         "#5 StateSet b(2) | #6 StateSet a(1) | #7 StateSet c(3) | #8 StateSet b() removed | #9 "
         "CustomStatusSet "
         "(half way) | #10 EventAwaited go / #11 EventReceived z(3) [id=r3] | #12 EventReceived go(y) "
         "[id=r4] | "
         "#13 EventReceived go(5) | #14 ActivityCancelled #4 ended (ended) | #15 ContinuedAsNew (y) => "
         "#1 Started t(y) | " STATE
         " | #5 OriginsCarried 3 | #6 EventReceived z(1) | #7 EventReceived a(2) | "
         "#8 EventReceived z(3) | #9 EventReceived go(5)"},
        {"a request to cancel that no await has told of", again,
         "Started t(x) / EventReceived go(y) | CancelRequested (why) [id=c]",
         AGAIN("#1 Started t(x)") " / #9 EventReceived go(y) | #10 CancelRequested (why) [id=c] | "
                                  "#11 ActivityCancelled #2 requested (why) | #12 ContinuedAsNew (y) => "
                                  "#1 Started t(y) | " STATE " | #5 CancelRequested (why) [id=c]"},
        {"all that there may be", again,
         "Started t(x) [id=r] / EventReceived z(1) [id=r1] | EventReceived z(2) [id=r2] | "
         "EventReceived go(y) [id=r3] | CancelRequested (why) [id=c]",
         AGAIN(
             "#1 Started t(x) [id=r]") " / #9 EventReceived z(1) [id=r1] | #10 EventReceived z(2) [id=r2] | "
                                       "#11 EventReceived go(y) [id=r3] | #12 CancelRequested (why) [id=c] | "
                                       "#13 ActivityCancelled #2 requested (why) | #14 ContinuedAsNew (y) => "
                                       "#1 Started t(y) [id=r] | " STATE " | #5 OriginsCarried 3 | "
                                       "#6 CancelRequested (why) [id=c] | #7 EventReceived z(1) | "
                                       "#8 EventReceived z(2)"},
        {"one that was told of ends it", again, "Started t(x) / CancelRequested (why)",
         AGAIN("#1 Started t(x)") " / #9 CancelRequested (why) | #10 ActivityCancelled #2 requested (why) | "
                                  "#11 EventAwaitCancelled #8 requested (why) | #12 Cancelled (why)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

static thole_status to_version(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint8_t large[257] = {0};
    if (thole_continue_as_new(ctx, (thole_slice){large, sizeof large}, 0) != THOLE_LIMIT)
        return THOLE_APP;
    *ret_output = input;
    return thole_continue_as_new(ctx, input, 9);
}

static thole_status thinks_again(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    return thole_continue_as_new(ctx, input, 0) == THOLE_OK ? thole_throw(ctx, "no") : THOLE_LIMIT;
}

/* A wait that has its event, of which nobody was told. */
static thole_status looks_away(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const a = thole_event(ctx, THOLE_STR("a"));
    drop_task(thole_event(ctx, THOLE_STR("a")));
    (void)ret_output;
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL));
    if (thole_slice_equal(input, THOLE_STR("look")))
        THOLE_TRY(thole_await(ctx, a, NULL));
    return thole_continue_as_new(ctx, THOLE_STR("y"), 0);
}

static thole_status keeps_little(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    thole_set_status(ctx, THOLE_STR("s"));
    thole_state_set(ctx, THOLE_STR("k"), THOLE_STR("v"));
    thole_state_set(ctx, THOLE_STR("l"), THOLE_STR(""));
    return thole_continue_as_new(ctx, THOLE_STR(""), 0);
}

static void continues(void)
{
    struct play_row const rows[] = {
        {"with texts of one byte, or none", keeps_little, "Started t(x) | EventReceived e(1)",
         "#1 Started t(x) | #2 EventReceived e(1) | #3 CustomStatusSet (s) | #4 StateSet k(v) | "
         "#5 StateSet l() | #6 ContinuedAsNew () => #1 Started t() | #2 StateCarried (s) | "
         "#3 StateCarried k(v) | #4 StateCarried l() | #5 EventReceived e(1)"},
        {"to another version", to_version, "Started t@4(x)",
         "#1 Started t@4(x) | #2 ContinuedAsNew @9(x) => #1 Started t@9(x)"},
        {"but fails after all", thinks_again, "Started t(x)", "#1 Started t(x) | #2 Failed APP (no)"},
        {"events in waits that nobody looked at", looks_away,
         "Started t(x) / EventReceived a(1) / EventReceived a(2) | EventReceived a(3) | EventReceived go()",
         "#1 Started t(x) | #2 EventAwaited a | #3 EventAwaited a | #4 EventAwaited go / #5 EventReceived "
         "a(1) / "
         "#6 EventReceived a(2) | #7 EventReceived a(3) | #8 EventReceived go() | #9 EventAwaitCancelled #2 "
         "ended "
         "(ended) | #10 EventAwaitCancelled #3 ended (ended) | #11 ContinuedAsNew (y) => #1 Started t(y) | "
         "#2 EventReceived a(1) | #3 EventReceived a(2) | #4 EventReceived a(3)"},
        {"one was looked at", looks_away,
         "Started t(look) / EventReceived a(1) / EventReceived a(2) | EventReceived a(3) | EventReceived "
         "go()",
         "#1 Started t(look) | #2 EventAwaited a | #3 EventAwaited a | #4 EventAwaited go / #5 EventReceived "
         "a(1) "
         "/ #6 EventReceived a(2) | #7 EventReceived a(3) | #8 EventReceived go() | #9 EventAwaitCancelled "
         "#3 ended "
         "(ended) | #10 ContinuedAsNew (y) => #1 Started t(y) | #2 EventReceived a(2) | #3 EventReceived "
         "a(3)"},
        {"given to a later wait on the way", looks_away,
         "Started t(x) / EventReceived a(1) | EventReceived go()",
         "#1 Started t(x) | #2 EventAwaited a | #3 EventAwaited a | #4 EventAwaited go / #5 EventReceived "
         "a(1) | "
         "#6 EventReceived go() | #7 EventAwaitCancelled #2 ended (ended) | #8 EventAwaitCancelled #3 ended "
         "(ended) "
         "| #9 ContinuedAsNew (y) => #1 Started t(y) | #2 EventReceived a(1)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* ---- the execution that begins so ---- */

static thole_status reads(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice key = {0}, value = {0}, all = input;
    while (thole_state_next(ctx, key, &key, &value) == THOLE_OK)
        all = thole_format(ctx, "%.*s %.*s=%.*s", THOLE_FMT(all), THOLE_FMT(key), THOLE_FMT(value));
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), &value));
    *ret_output = thole_format(ctx, "%.*s %.*s", THOLE_FMT(all), THOLE_FMT(value));
    return THOLE_OK;
}

static void the_next_execution(void)
{
    struct play_row const rows[] = {
        {"state and kept events", reads,
         "Started t(y) | StateCarried (half way) | StateCarried a(1) | StateCarried c(3) | EventReceived "
         "go(5) | "
         "EventReceived go(6)",
         "#1 Started t(y) | #2 StateCarried (half way) | #3 StateCarried a(1) | #4 StateCarried c(3) | "
         "#5 EventReceived go(5) | #6 EventReceived go(6) | #7 EventAwaited go | #8 Completed (y a=1 c=3 5)"},
        {"a request to cancel", reads, "Started t(y) | CancelRequested (why) | EventReceived x(1)",
         "#1 Started t(y) | #2 CancelRequested (why) | #3 EventReceived x(1) | #4 EventAwaited go | "
         "#5 EventAwaitCancelled #4 requested (why) | #6 Cancelled (why)"},
        {"carried too late", reads, "Started t(y) / StateCarried a(1) | OriginsCarried 2",
         "#1 Started t(y) | #2 EventAwaited go / -"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
}

/* Through executions: what was seen once is not taken again, up to the last 1,000. */
enum { FIRST = 1500, SECOND = 300, IDS = FIRST + SECOND };

static void seen(const struct instance *instance, const struct event *events, size_t last)
{
    for (size_t i = 0; i < last; i++)
        CU_ASSERT_EQUAL(instance_accepts(instance, &events[i]), i + 1000 < last);
}

/* Begins with these, takes in some more, and continues as new: gives what the next one begins with. */
static void continue_with(struct instance *instance, struct event *begin, size_t n, const struct event *more,
                          size_t more_len, struct arena *arena, struct event **ret, size_t *ret_len)
{
    struct turn_out out;
    struct event *all = arena_array(arena, n + more_len + 1, sizeof *all);
    struct event const go = {.kind = EVENT_EVENT_RECEIVED, .name = THOLE_STR("go")};
    memcpy(all, begin, n * sizeof *all);
    memcpy(all + n, more, more_len * sizeof *all);
    all[n + more_len] = go;
    struct turn_in const in = {.received = all, .received_len = n + more_len + 1, .run = true};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT(instance_continued(instance) && out.events_len > n + more_len);
    CU_ASSERT_EQUAL(instance_carry(instance, arena, ret, ret_len), THOLE_OK);
}

static void origins_through_executions(void)
{
    struct play play = play_of(again);
    play.memory_max = 8 << 20;
    struct instance *instances[] = {play_instance(&play), play_instance(&play), play_codeless(&play)};
    static struct event events[IDS];
    static char ids[IDS][16];
    struct event start = {.kind = EVENT_STARTED, .name = THOLE_STR("t")}, *begin = &start;
    struct arena arena;
    size_t n = 1;
    arena_init(&arena, 16 << 20);
    for (size_t i = 0; i < IDS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "r%zu", i);
        events[i] = (struct event){
            .kind = EVENT_EVENT_RECEIVED, .name = THOLE_STR("x"), .request_id = thole_slice_from(ids[i])};
    }
    continue_with(instances[0], begin, n, events, FIRST, &arena, &begin, &n);
    CU_ASSERT_EQUAL(n, 1 + 1 + 2 + 1 + FIRST); /* start, status, state, origins, events */
    continue_with(instances[1], begin, n, events + FIRST, SECOND, &arena, &begin, &n);
    CU_ASSERT_EQUAL(n, 1 + 1 + 2 + 1 + IDS);
    struct turn_in const in = {.received = begin, .received_len = n};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_turn(instances[2], &in, &out, NULL), THOLE_OK);
    seen(instances[2], events, IDS);
    for (size_t i = 0; i < ARRAY_LEN(instances); i++)
        instance_destroy(instances[i]);
    arena_release(&arena);
    play_release(&play);
}

/* Every smaller arena is a limit, none is a crash. */
static void little_memory_for_what_is_carried(void)
{
    struct play play = play_of(again);
    struct play_turns turns;
    struct instance *instance = play_codeless(&play);
    size_t failures = 0;
    play_parse(
        AGAIN(
            "#1 Started t(x) of p:2#7 [id=r]") " / #9 EventReceived z(3) [id=r3] | #10 EventReceived go(y) | "
                                               "#11 CancelRequested (why) [id=c] | #12 ActivityCancelled "
                                               "#2 requested (why) | #13 ContinuedAsNew (y)",
        &turns);
    for (size_t i = 0; i < turns.len; i++)
        CU_ASSERT_EQUAL(instance_replay(instance, &turns.turns[i], NULL), THOLE_OK);
    CU_ASSERT(instance_continued(instance));
    for (size_t limit = 0;; limit += 16) {
        struct arena arena;
        struct event *events;
        size_t n;
        arena_init(&arena, limit);
        thole_status const status = instance_carry(instance, &arena, &events, &n);
        arena_release(&arena);
        if (status == THOLE_OK)
            break;
        CU_ASSERT_EQUAL(status, THOLE_LIMIT);
        failures++;
    }
    CU_ASSERT(failures > 20);
    play_turns_release(&turns);
    instance_destroy(instance);
    play_release(&play);
}

static const struct thole_test tests[] = {
    {"results", results},
    {"closing", closing},
    {"closing what was cancelled", closing_what_was_cancelled},
    {"closing in older executions", closing_in_older_executions},
    {"wrong arguments", wrong_arguments},
    {"the id that is made", the_id_that_is_made},
    {"versions of older engines", versions_of_older_engines},
    {"detached", detached},
    {"carried", carried},
    {"continues", continues},
    {"the next execution", the_next_execution},
    {"origins through executions", origins_through_executions},
    {"little memory for what is carried", little_memory_for_what_is_carried},
};
THOLE_TEST_MAIN("instance_children", tests)
