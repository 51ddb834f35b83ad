/*
 * Whatever cancels an activity, it goes one way: recorded with its kind and reason; then workers are told
 * early (a "hint"), unless they know by themselves, as of a timeout; then its row goes; then workers are
 * told; then its message is withdrawn. Each waits for the answer to the one before, and a new owner goes on
 * wherever the old one was cut off.
 */
#include "dropped.h"
#include "partition_stage.h"
#include "thole_cunit.h"
#include <stdlib.h>

/* ---- orchestrations: each has activity 2 and, but for limited ones, 3 running when it waits ---- */

static thole_task call(thole_ctx *ctx)
{
    return thole_call(ctx, THOLE_STR("work"), (thole_slice){0});
}

static thole_task event(thole_ctx *ctx)
{
    return thole_event(ctx, THOLE_STR("item"));
}

static thole_status waits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    (void)call(ctx), (void)call(ctx);
    return thole_await(ctx, event(ctx), NULL);
}

static thole_status fails(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(waits(ctx, input, ret_output));
    return thole_throw(ctx, "broken");
}

static thole_status goes_on(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    if (thole_execution_id(ctx) > 1)
        return thole_await(ctx, event(ctx), ret_output);
    THOLE_TRY(waits(ctx, input, ret_output));
    return thole_continue_as_new(ctx, (thole_slice){0}, 0);
}

static thole_status races(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t winner;
    (void)input;
    thole_task const tasks[] = {call(ctx), call(ctx), event(ctx)};
    THOLE_TRY(thole_await_any(ctx, tasks, 3, &winner));
    return thole_await(ctx, event(ctx), ret_output);
}

static thole_status drops(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    thole_task const first = call(ctx), second = call(ctx);
    THOLE_TRY(thole_await(ctx, event(ctx), NULL));
    thole_cancel(ctx, first, THOLE_STR("too dear"));
    thole_cancel(ctx, second, THOLE_STR("too late"));
    return thole_await(ctx, event(ctx), ret_output);
}

static thole_status limited(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options,
                                        .try_timeout_ms = 500,
                                        .total_timeout_ms = 1000,
                                        .retry = {.tries_max = 3, .first_delay_ms = 100}};
    (void)input, (void)ret_output;
    thole_task const task = thole_call_with(ctx, THOLE_STR("work"), (thole_slice){0}, &options);
    thole_status const ignored = thole_await(ctx, task, NULL);
    (void)ignored;
    return thole_await(ctx, event(ctx), NULL);
}

static thole_status mother(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {.size = sizeof options, .instance = THOLE_STR("kid")};
    drop_task(thole_child(ctx, THOLE_STR("waits"), input, &options));
    return thole_await(ctx, event(ctx), ret_output);
}

static const thole_orchestration_entry entries[] = {
    {"waits", waits, 0}, {"fails", fails, 0},     {"goes_on", goes_on, 0}, {"races", races, 0},
    {"drops", drops, 0}, {"limited", limited, 0}, {"mother", mother, 0}};

/* ---- triggers ---- */

static void cancel(struct stage *s)
{
    stage_tell(s, "i", MESSAGE_CANCEL, "no more");
}

static void terminate(struct stage *s)
{
    stage_tell(s, "i", MESSAGE_TERMINATE, "at once");
}

static void raise_item(struct stage *s)
{
    stage_tell(s, "i", MESSAGE_EVENT, "go");
}

static void pause(struct stage *s)
{
    stage_tell(s, "i", MESSAGE_PAUSE, "wait");
}

/* A timeout from a worker, or from the sweep over deadlines: the try's row is gone already. */
static void time_out(struct stage *s)
{
    struct message const message = {.kind = MESSAGE_ACTIVITY_RESULT,
                                    .instance = THOLE_STR("i"),
                                    .execution = 1,
                                    .task = 2,
                                    .try_number = 1,
                                    .status = THOLE_TIMEOUT,
                                    .data = THOLE_STR("timeout"),
                                    .error_type = THOLE_STR("timeout"),
                                    .source.place.attempt = 1};
    stage_message(s, &message);
}

static void much_later(struct stage *s)
{
    stage_timer(s, s->now_ms + 1000);
}

static void start_kid(struct stage *s)
{
    struct message const message = {.kind = MESSAGE_START,
                                    .instance = THOLE_STR("kid"),
                                    .orchestration = THOLE_STR("waits"),
                                    .parent = {THOLE_STR("i"), 1, 2}};
    stage_message(s, &message);
}

static void kid_is_asked(struct stage *s)
{
    struct message const message = {.kind = MESSAGE_CANCEL,
                                    .instance = THOLE_STR("kid"),
                                    .data = THOLE_STR("ended"),
                                    .request_id = THOLE_STR("<1.5.i"),
                                    .parent = {THOLE_STR("i"), 1, 2}};
    stage_message(s, &message);
}

struct row {
    const char *name, *orchestration;
    void (*before)(struct stage *s), (*trigger)(struct stage *s);
    const char *recorded; /* one of the events */
    const char *gone, *push, *withdrawn;
};

#define BOTH "rows gone: i.1.2,i.1.3\n"
#define MESSAGES "withdraw 1\nwithdraw 2\n"
static const struct row rows[] = {
    {"cancelled by a client", "waits", NULL, cancel, "ActivityCancelled #2 requested (no more)", BOTH,
     "push i.1 requested 'no more' 2,3\n", MESSAGES},
    {"completed", "waits", NULL, raise_item, "ActivityCancelled #2 ended", BOTH,
     "push i.1 ended 'ended' 2,3\n", MESSAGES},
    {"failed", "fails", NULL, raise_item, "ActivityCancelled #2 ended", BOTH, "push i.1 ended 'ended' 2,3\n",
     MESSAGES},
    {"continued as new", "goes_on", NULL, raise_item, "ActivityCancelled #3 ended", BOTH,
     "push i.1 ended 'ended' 2,3\n", MESSAGES},
    {"terminated", "waits", NULL, terminate, "ActivityCancelled #3 terminated (at once)", BOTH,
     "push i.1 terminated 'at once' 2,3\n", MESSAGES},
    {"losers of a race", "races", NULL, raise_item, "ActivityCancelled #2 select_loser", BOTH,
     "push i.1 select_loser 'event 4 'item' won' 2,3\n", MESSAGES},
    {"cancelled by its handle", "drops", NULL, raise_item, "ActivityCancelled #3 explicit (too late)", BOTH,
     "push i.1 explicit 'too dear' 2\npush i.1 explicit 'too late' 3\n", MESSAGES},
    {"a try is over", "limited", NULL, time_out, "ActivityTryFailed #2 try 1 TIMEOUT", "rows gone: i.1.2\n",
     "push i.1 timeout 'the try's timeout of 500 ms is over' 2 try 1\n", "withdraw 1\n"},
    {"all tries are over", "limited", NULL, much_later, "ActivityFailed #2 TIMEOUT", "rows gone: i.1.2\n",
     "push i.1 timeout 'the total timeout of 1000 ms is over' 2\n", "withdraw 1\n"},
    {"its parent is cancelled", "mother", NULL, kid_is_asked, "ActivityCancelled #2 requested (ended)",
     "rows gone: kid.1.2,kid.1.3\n", "push kid.1 requested 'ended' 2,3\n", MESSAGES},
    {"paused, then cancelled", "waits", pause, cancel, "ActivityCancelled #2 requested (no more)", BOTH,
     "push i.1 requested 'no more' 2,3\n", MESSAGES},
    {"paused, then terminated", "waits", pause, terminate, "ActivityCancelled #2 terminated (at once)", BOTH,
     "push i.1 terminated 'at once' 2,3\n", MESSAGES},
};

static struct stage *begun(const struct row *row)
{
    struct stage *const s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "i", row->orchestration);
    if (strcmp(row->orchestration, "mother") == 0)
        start_kid(s); /* as the message says that is sent to it */
    if (row->before != NULL)
        row->before(s);
    (void)stage_said(s);
    s->tells_work = true;
    return s;
}

static void check(const struct row *row, const char *what, const char *got, const char *want, bool there)
{
    if ((strstr(got, want) != NULL) == there)
        return;
    fprintf(stderr, "  [%s: %s] %s: %s  in: %s\n", row->name, what, there ? "missing" : "too early", want,
            got);
    CU_FAIL("order");
}

/* The early push says the same as the later one, and that a repetition follows. */
static void check_hint(const struct row *row, const char *said)
{
    char want[256] = "";
    (void)snprintf(want, sizeof want, "%s", row->push);
    for (char *at = want; (at = strstr(at, "push ")) != NULL;)
        memcpy(at, "hint", 4);
    bool const timeout = strstr(row->push, " timeout ") != NULL;
    check(row, "a hint before the rows", said, timeout ? "hint" : want, !timeout);
    if (!timeout)
        CU_ASSERT(strstr(said, "hint") < strstr(said, "rows gone"));
}

static void test_one_way(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *const row = &rows[i];
        struct stage *const s = begun(row);
        s->hold_appends = s->hold_applied = true;
        row->trigger(s);
        const char *said = stage_said(s);
        check(row, "not committed", said, "rows gone", false);
        check(row, "not committed", said, "push", false);
        check(row, "not committed", said, "hint", false);
        s->hold_appends = false;
        size_t const n = s->held_len;
        for (size_t k = 0; k < n; k++)
            (void)partition_input(s->p, &s->held[k], s->now_ms);
        s->held_len = 0;
        stage_run(s);
        said = stage_said(s);
        check(row, "committed", stage_history(s, strstr(row->gone, "kid") != NULL ? "kid" : "i"),
              row->recorded, true);
        check(row, "committed", said, row->gone, true);
        check_hint(row, said);
        check(row, "rows not gone", said, "push", false);
        check(row, "rows not gone", said, "withdraw", false);
        stage_release(s);
        said = stage_said(s);
        check(row, "rows gone", said, row->push, true);
        check(row, "rows gone", said, "hint", false);
        check(row, "rows gone", said, row->withdrawn, true);
        CU_ASSERT(strstr(said, "push") < strstr(said, "withdraw"));
        stage_end(s);
    }
}

/* The owner dies when so much is done; what the next one does by itself is all that was not. */
enum cut { CUT_COMMITTED, CUT_ROWS_GONE, CUT_PUSHED };

static void test_cut(enum cut cut)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *const row = &rows[i];
        struct stage *const s = begun(row);
        s->hold_appends = cut == CUT_COMMITTED; /* stored, and nobody knows */
        s->hold_applied = cut == CUT_ROWS_GONE;
        row->trigger(s);
        check(row, "cut", stage_said(s), "push", cut == CUT_PUSHED);
        s->hold_appends = s->hold_applied = false;
        stage_again(s);
        const char *const said = stage_said(s);
        check(row, "next owner", said, row->gone, true);
        check(row, "next owner", said, row->push, true);
        stage_end(s);
    }
}

static void test_cut_when_it_is_committed(void)
{
    test_cut(CUT_COMMITTED);
}

static void test_cut_when_the_rows_are_gone(void)
{
    test_cut(CUT_ROWS_GONE);
}

static void test_cut_when_all_is_done(void)
{
    test_cut(CUT_PUSHED);
}

/* Cancelled before it is known where its message is queued: withdrawn when that is known. */
static void test_cancelled_while_its_message_is_on_its_way(void)
{
    struct stage *const s = stage_begin(entries, ARRAY_LEN(entries));
    s->tells_work = s->hold_works = true;
    stage_start(s, "i", "waits");
    cancel(s);
    const char *said = stage_said(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "push i.1 requested"));
    CU_ASSERT_PTR_NULL(strstr(said, "withdraw"));
    stage_release(s);
    said = stage_said(s);
    CHECK_STR("when it is known", said, MESSAGES);
    stage_end(s);
}

/* Nothing but the rows of what is cancelled comes before the push. */
static void test_the_push_does_not_wait_for_other_rows(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *const row = &rows[i];
        struct stage *const s = begun(row);
        s->tells_rows = true;
        row->trigger(s);
        const char *const said = stage_said(s), *const push = strstr(said, row->push);
        const char *const instances = strstr(said, "instances");
        check(row, "order", said, row->gone, true);
        check(row, "order", said, "instances", true);
        CU_ASSERT_PTR_NOT_NULL_FATAL(push);
        CU_ASSERT(push < instances);
        check(row, "the rows are removed once", strstr(said, row->gone) + 1, "rows gone", false);
        stage_end(s);
    }
}

/* The next try begins at once, in the same transaction: its row takes the place of the old one, and only then
 * that one is told. */
static thole_status hastens(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {
        .size = sizeof options, .try_timeout_ms = 500, .retry = {.tries_max = 3}};
    (void)input;
    return thole_await(ctx, thole_call_with(ctx, THOLE_STR("work"), (thole_slice){0}, &options), ret_output);
}

static void test_a_row_that_is_replaced(void)
{
    static const thole_orchestration_entry own[] = {{"hastens", hastens, 0}};
    struct stage *const s = stage_begin(own, ARRAY_LEN(own));
    stage_start(s, "i", "hastens");
    s->tells_work = s->tells_rows = true;
    (void)stage_said(s);
    s->hold_applied = true; /* rows of another instance take their time, and what comes is gathered */
    stage_start(s, "j", "hastens");
    time_out(s);
    stage_timer(s, s->now_ms + 1);
    CU_ASSERT_PTR_NULL(strstr(stage_said(s), "push"));
    stage_release(s);
    const char *const said = stage_said(s),
                      *const push =
                          strstr(said, "push i.1 timeout 'the try's timeout of 500 ms is over' 2 try 1\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(push);
    CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(said, "instances"));
    CU_ASSERT(push > strstr(said, "instances"));
    CU_ASSERT_PTR_NOT_NULL(strstr(push, "withdraw 1"));
    stage_end(s);
}

/* A worker acknowledges what it has; only what is still queued has to be taken back. */
static void test_only_what_is_queued_is_withdrawn(void)
{
    struct stage *const s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "i", "waits");
    s->tells_work = true;
    s->at_work = 2;
    (void)stage_said(s);
    cancel(s);
    const char *const said = stage_said(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "push i.1 requested 'no more' 2,3\n"));
    CU_ASSERT_PTR_NULL(strstr(said, "withdraw 1\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "withdraw 2\n"));
    stage_end(s);
}

/* More rows than one transaction removes: all of them are gone before anybody is told. */
static thole_status fans(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    for (size_t i = 0; i < 2 * BATCH_ROWS_MAX + 5; i++)
        (void)call(ctx);
    return thole_await(ctx, event(ctx), ret_output);
}

static void test_many(void)
{
    static const thole_orchestration_entry own[] = {{"fans", fans, 0}};
    struct stage *const s = stage_begin(own, ARRAY_LEN(own));
    stage_start(s, "i", "fans");
    s->tells_work = s->tells_rows = true;
    (void)stage_said(s);
    cancel(s);
    const char *const said = stage_said(s), *const push = strstr(said, "push"), *at = said;
    CU_ASSERT_PTR_NOT_NULL_FATAL(push);
    size_t gone = 0;
    for (; (at = strstr(at, "rows gone")) != NULL && at < push; at++)
        gone++;
    CU_ASSERT_EQUAL(gone, 3);
    CU_ASSERT_PTR_NULL(at);
    CU_ASSERT(push < strstr(said, "instances"));
    stage_end(s);
}

/* A task that is scheduled and cancelled in one turn has neither row nor message, and nobody is told. */
static thole_status regrets(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    thole_cancel(ctx, call(ctx), THOLE_STR("never mind"));
    return thole_await(ctx, event(ctx), ret_output);
}

static void test_schedule_and_cancel_in_one_turn_tells_nobody(void)
{
    static const thole_orchestration_entry own[] = {{"regrets", regrets, 0}};
    struct stage *const s = stage_begin(own, ARRAY_LEN(own));
    s->tells_work = true;
    stage_start(s, "i", "regrets");
    const char *const said = stage_said(s);
    CHECK_STR("said", said, "notice started i\n");
    CU_ASSERT_EQUAL(s->works, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "i"), "ActivityCancelled #2 explicit (never mind)"));
    stage_end(s);
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"one way", test_one_way},
        {"cut when it is committed", test_cut_when_it_is_committed},
        {"cut when the rows are gone", test_cut_when_the_rows_are_gone},
        {"cut when all is done", test_cut_when_all_is_done},
        {"cancelled while its message is on its way", test_cancelled_while_its_message_is_on_its_way},
        {"the push does not wait for other rows", test_the_push_does_not_wait_for_other_rows},
        {"a row that is replaced", test_a_row_that_is_replaced},
        {"only what is queued is withdrawn", test_only_what_is_queued_is_withdrawn},
        {"more than one transaction removes", test_many},
        {"schedule and cancel in one turn tells nobody", test_schedule_and_cancel_in_one_turn_tells_nobody},
    };
    return thole_run_suite("cancel_way", tests, ARRAY_LEN(tests));
}
