/*
 * Instances whose code has crashed an engine. Nothing crashes here: a watch says what would, and keeps count
 * of what is run, and what is tried first.
 */
#include "instances_state.h"
#include "partition_stage.h"
#include "thole_cunit.h"
#include <stdlib.h>

/* ---- orchestrations ---- */

static thole_status newer(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return stage_calls(ctx, input, ret_output);
}

static const thole_orchestration_entry entries[] = {
    {"calls", stage_calls, 0}, {"two", stage_calls, 1}, {"two", newer, 2}};

/* ---- runs that would crash ---- */

enum { NEVER = 99 };
static struct plan {
    const char *instance; /* whose code; NULL: nobody's */
    int kind;             /* of the code that crashes; 0: any, NEVER: none does */
    uint64_t event;       /* TURN: from this one on */
    size_t spared;        /* tries from the one on that does not crash any more; 0: all crash */
    size_t runs, tries;   /* of that instance: for real, alone */
    size_t others;        /* runs of other instances */
    bool died;            /* ran in this process */
    struct code_run last; /* the newest of all; its slices are not kept */
} plan;

static bool is_his(const struct code_run *run)
{
    return plan.instance != NULL && thole_slice_equal(run->instance, thole_slice_from(plan.instance));
}

static bool crashes(const struct code_run *run)
{
    return is_his(run) && plan.kind != NEVER && (plan.kind == 0 || plan.kind == (int)run->kind) &&
           (run->kind != CODE_TURN || run->event >= plan.event);
}

static void begins(void *arg, const struct code_run *run)
{
    (void)arg;
    *(is_his(run) ? &plan.runs : &plan.others) += 1;
    plan.died |= crashes(run);
    plan.last = *run;
}

static void ended(void *arg)
{
    (void)arg;
}

static thole_status attempt(void *arg, const struct code_run *run, void (*body)(void *), void *body_arg,
                            thole_error *reterr)
{
    (void)arg, (void)body, (void)body_arg; /* the run's effects are thrown away */
    plan.tries++;
    CU_ASSERT_TRUE(is_his(run));
    if (plan.spared > 0 && plan.tries >= plan.spared)
        plan.kind = NEVER;
    return crashes(run) ? thole_fail(reterr, THOLE_APP, "SIGSEGV in calls") : THOLE_OK;
}

static const struct code_watch watch = {.begins = begins, .ended = ended, .attempt = attempt};

static struct stage *begin(uint64_t crash_limit, const char *instance, uint64_t count)
{
    struct partition_options options;
    stage_options(&options, entries, ARRAY_LEN(entries));
    options.watch = &watch;
    options.crash_limit = crash_limit;
    plan = (struct plan){.instance = "bad", .kind = NEVER};
    struct stage *const s = stage_begin_with(&options, 100);
    if (instance != NULL)
        stage_crashed(s, instance, 0, count, "SIGSEGV of before");
    stage_again(s);
    return s;
}

/* Another owner opens it; the code may be another build. */
static void take_over(struct stage *s)
{
    stage_options(&s->options, entries, ARRAY_LEN(entries));
    s->options.watch = &watch;
    stage_again(s);
    plan.runs = plan.tries = plan.others = 0;
}

static void end(struct stage *s)
{
    CU_ASSERT_FALSE(plan.died);
    stage_end(s);
}

static void check_history(struct stage *s, const char *row, const char *want)
{
    const char *got = stage_history(s, "bad");
    CHECK_STR(row, got, want);
}

static const struct partition_crash *noted(const struct stage *s)
{
    return s->crashes_len == 0 ? NULL : &s->crashes[0];
}

/* ---- tests ---- */

static void who_never_crashed_is_not_tried(void)
{
    struct stage *s = begin(2, NULL, 0);
    stage_start(s, "bad", "calls");
    stage_complete(s, "bad", 2, THOLE_STR("done"));
    CU_ASSERT_EQUAL(plan.runs, 2);
    CU_ASSERT_EQUAL(plan.tries, 0);
    end(s);
}

/* A report names the code by its address: that of the version that the instance runs. */
static void it_is_known_which_code_runs(void)
{
    struct stage *s = begin(2, NULL, 0);
    for (uint32_t version = 1; version <= 2; version++) {
        struct message const start = {.kind = MESSAGE_START,
                                      .instance = version == 1 ? THOLE_STR("old") : THOLE_STR("new"),
                                      .orchestration = THOLE_STR("two"),
                                      .request_id = THOLE_STR("start"),
                                      .version = version};
        stage_message(s, &start);
        CU_ASSERT_EQUAL(plan.last.kind, CODE_TURN);
        CU_ASSERT_EQUAL(plan.last.version, version);
        CU_ASSERT_EQUAL(plan.last.execution, 1);
        CU_ASSERT_EQUAL(plan.last.event, 1);
        CU_ASSERT_TRUE(plan.last.code == (version == 1 ? stage_calls : newer));
    }
    end(s);
}

static void after_one_crash_every_run_is_tried_first(void)
{
    struct stage *s = begin(2, "bad", 1);
    stage_start(s, "bad", "calls");
    CU_ASSERT_EQUAL(plan.runs, 1);
    CU_ASSERT_EQUAL(plan.tries, 1);
    stage_query(s, "bad", "how");
    CU_ASSERT_EQUAL(plan.tries, 2);
    take_over(s);
    CU_ASSERT_PTR_NOT_NULL(noted(s));
    stage_complete(s, "bad", 2, THOLE_STR("done"));
    CU_ASSERT_EQUAL(plan.runs, 2); /* of its history, and of the turn */
    CU_ASSERT_EQUAL(plan.tries, 2);
    CU_ASSERT_PTR_NULL(noted(s)); /* has ended */
    stage_start(s, "good", "calls");
    CU_ASSERT_EQUAL(plan.others, 1);
    CU_ASSERT_EQUAL(plan.tries, 2);
    end(s);
}

static void who_crashes_too_often_is_stuck(void)
{
    static const struct {
        uint64_t limit, count, tries;
    } rows[] = {{1, 1, 0}, {2, 1, 1}, {2, 2, 0}, {3, 1, 2}, {3, 0, 3}, {2, 7, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct stage *s = begin(rows[i].limit, "bad", rows[i].count);
        plan.kind = 0;
        stage_start(s, "bad", "calls");
        stage_start(s, "good", "calls");
        CU_ASSERT_EQUAL(plan.runs, 0);
        CU_ASSERT_EQUAL(plan.tries, rows[i].tries);
        CU_ASSERT_EQUAL(plan.others, 1);
        CU_ASSERT_EQUAL(noted(s)->count, rows[i].count + rows[i].tries);
        check_history(s, "its start is kept", "1.1 waits 8: #1 Started calls()\n");
        end(s);
    }
}

static void who_is_stuck_can_be_asked_and_ended(void)
{
    struct stage *s = begin(2, "bad", 2);
    plan.kind = 0;
    stage_start(s, "bad", "calls");
    (void)stage_said(s);
    stage_query(s, "bad", "how");
    const char *said = stage_said(s);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(said, "answer INVALID: its code has crashed the engine 2 times: SIGSEGV of before"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "thole retry"));
    stage_tell(s, "bad", MESSAGE_PAUSE, "p");
    stage_tell(s, "bad", MESSAGE_RESUME, "r");
    stage_tell(s, "bad", MESSAGE_CANCEL, "c");
    stage_tell(s, "bad", MESSAGE_TERMINATE, "t");
    CU_ASSERT_EQUAL(plan.runs + plan.tries, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "bad"), "Terminated"));
    CU_ASSERT_PTR_NULL(noted(s));
    end(s);
}

static void the_next_owner_does_not_run_it(void)
{
    struct stage *s = begin(2, "bad", 0);
    stage_start(s, "bad", "calls");
    plan.kind = 0;
    stage_complete(s, "bad", 2, THOLE_STR("done"));
    CU_ASSERT_EQUAL(noted(s)->count, 2);
    take_over(s);
    stage_tell(s, "bad", MESSAGE_EVENT, "go");
    CU_ASSERT_EQUAL(plan.runs + plan.tries, 0);
    check_history(s, "all is kept",
                  "1.1 ran: #1 Started calls@1(); #2 ActivityScheduled work()\n"
                  "1.2 waits 8: #3 ActivityCompleted #2 (done)\n"
                  "1.3 waits 8: #4 EventReceived item(go)\n");
    end(s);
}

static void other_code_is_tried_and_goes_on(void)
{
    struct stage *s = begin(2, "bad", 2);
    plan.kind = 0;
    stage_start(s, "bad", "calls");
    plan.kind = NEVER;
    stage_crashed(s, "bad", 1, 0, "SIGSEGV of before"); /* as of another build */
    take_over(s);
    stage_tell(s, "bad", MESSAGE_EVENT, "go");
    CU_ASSERT_EQUAL(plan.tries, plan.runs);
    check_history(s, "it begins",
                  "1.1 waits 8: #1 Started calls()\n"
                  "1.2 ran: #2 VersionChosen @1; #3 EventReceived item(go); #4 ActivityScheduled work()\n");
    end(s);
}

static void a_retry_tries_it_again(void)
{
    struct stage *s = begin(2, "bad", 2);
    plan.kind = 0;
    stage_start(s, "bad", "calls");
    stage_tell(s, "bad", MESSAGE_RETRY, "mended?");
    CU_ASSERT_EQUAL(plan.tries, 2); /* as often as the limit, and not once for real */
    CU_ASSERT_EQUAL(noted(s)->count, 2);
    check_history(s, "it was not", "1.1 waits 8: #1 Started calls()\n");
    plan.kind = NEVER;
    stage_tell(s, "bad", MESSAGE_RETRY, "mended!");
    check_history(s, "it was",
                  "1.1 waits 8: #1 Started calls()\n"
                  "1.2 ran: #2 VersionChosen @1; #3 ActivityScheduled work()\n");
    CU_ASSERT_EQUAL(noted(s)->count, 0);
    stage_tell(s, "bad", MESSAGE_RETRY, "it runs");
    stage_tell(s, "nobody", MESSAGE_RETRY, "there is none");
    stage_complete(s, "bad", 3, THOLE_STR("done"));
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "bad"), "Completed"));
    CU_ASSERT_PTR_NULL(noted(s));
    end(s);
}

static void a_replay_that_crashes_counts(void)
{
    struct stage *s = begin(2, "bad", 0);
    stage_start(s, "bad", "calls");
    take_over(s);
    plan.kind = CODE_REPLAY;
    stage_complete(s, "bad", 2, THOLE_STR("done"));
    CU_ASSERT_EQUAL(plan.tries, 2);
    CU_ASSERT_EQUAL(plan.runs, 0);
    CU_ASSERT_EQUAL(noted(s)->count, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "bad"), "1.2 waits 8: #3 ActivityCompleted"));
    end(s);
}

/* The cause may have been the memory, or another thread: the counted crash is stored all the same. */
static void a_replay_that_crashes_once_is_counted(void)
{
    struct stage *s = begin(3, "bad", 0);
    stage_start(s, "bad", "calls");
    take_over(s);
    plan.kind = CODE_REPLAY;
    plan.spared = 2;
    stage_tell(s, "bad", MESSAGE_EVENT, "go");
    CU_ASSERT_EQUAL(plan.tries, 3); /* of its history twice, of the turn once */
    CU_ASSERT_EQUAL(noted(s)->count, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "bad"), "1.2 ran: #3 EventReceived item(go)"));
    end(s);
}

static void a_query_that_crashes_is_refused_and_does_not_count(void)
{
    struct stage *s = begin(2, "bad", 1);
    stage_start(s, "bad", "calls");
    plan.kind = CODE_QUERY;
    (void)stage_said(s);
    for (int i = 0; i < 5; i++)
        stage_query(s, "bad", "how");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "answer INVALID: the query crashes: SIGSEGV in calls"));
    CU_ASSERT_EQUAL(noted(s)->count, 1);
    stage_complete(s, "bad", 2, THOLE_STR("done"));
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "bad"), "Completed"));
    end(s);
}

static void who_has_ended_is_asked_with_care(void)
{
    struct stage *s = begin(2, NULL, 0);
    stage_start(s, "bad", "calls");
    stage_complete(s, "bad", 2, THOLE_STR("done"));
    stage_crashed(s, "bad", 1, 1, "SIGSEGV of before");
    take_over(s);
    plan.kind = CODE_REPLAY;
    (void)stage_said(s);
    stage_query(s, "bad", "how");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "answer INVALID"));
    CU_ASSERT_EQUAL(noted(s)->count, 2);
    stage_query(s, "bad", "how");
    CU_ASSERT_EQUAL(plan.tries, 1); /* not once more */
    stage_tell(s, "bad", MESSAGE_DELETE, "gone");
    CU_ASSERT_PTR_NULL(noted(s));
    end(s);
}

/* Owners before this one have deleted it, begun the next one of its id, and died of that before the deletion
 * was stored: it is deleted once more. */
static void a_deletion_forgets_what_it_deletes_and_no_more(void)
{
    static const struct {
        uint64_t crashed, tries;
    } rows[] = {{1, 2}, {2, 0}};
    struct message const again = {.kind = MESSAGE_START,
                                  .instance = THOLE_STR("bad"),
                                  .orchestration = THOLE_STR("calls"),
                                  .request_id = THOLE_STR("another start")};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct stage *s = begin(2, NULL, 0);
        stage_start(s, "bad", "calls");
        stage_complete(s, "bad", 2, THOLE_STR("done"));
        stage_crashed(s, "bad", rows[i].crashed, 2, "SIGSEGV of before");
        take_over(s);
        plan.kind = 0;
        stage_tell(s, "bad", MESSAGE_DELETE, "gone");
        stage_message(s, &again);
        CU_ASSERT_EQUAL(plan.tries, rows[i].tries);
        CU_ASSERT_EQUAL(plan.runs, 0);
        CU_ASSERT_PTR_NOT_NULL_FATAL(noted(s));
        CU_ASSERT_EQUAL(noted(s)->count, 2);
        CU_ASSERT_EQUAL(noted(s)->execution, 2);
        check_history(s, "its start is kept",
                      "deleted up to 1: gone\n2.1 waits 8: #1 Started calls() after 1 deleted\n");
        end(s);
    }
}

static const struct thole_test tests[] = {
    {"who never crashed is not tried", who_never_crashed_is_not_tried},
    {"it is known which code runs", it_is_known_which_code_runs},
    {"after one crash every run is tried first", after_one_crash_every_run_is_tried_first},
    {"who crashes too often is stuck", who_crashes_too_often_is_stuck},
    {"who is stuck can be asked and ended", who_is_stuck_can_be_asked_and_ended},
    {"the next owner does not run it", the_next_owner_does_not_run_it},
    {"other code is tried and goes on", other_code_is_tried_and_goes_on},
    {"a retry tries it again", a_retry_tries_it_again},
    {"a replay that crashes counts", a_replay_that_crashes_counts},
    {"a replay that crashes once is counted", a_replay_that_crashes_once_is_counted},
    {"a query that crashes is refused and does not count",
     a_query_that_crashes_is_refused_and_does_not_count},
    {"who has ended is asked with care", who_has_ended_is_asked_with_care},
    {"a deletion forgets what it deletes, and no more", a_deletion_forgets_what_it_deletes_and_no_more},
};

int main(void)
{
    return thole_run_suite("partition crash candidates", tests, ARRAY_LEN(tests));
}
