/* The instances in memory, alone: what comes for them, what they give to be recorded, what they say and when.
 */
#include "instances_stand.h"

/* ---- what is taken, what is recorded ---- */

static void test_a_start(void)
{
    struct stand *s = begin();
    struct instances_record made;
    start(s, "i", "plain");
    CU_ASSERT_EQUAL(instances_pending(s->instances), 1);
    CU_ASSERT_FALSE(instances_run(s->instances, &made)); /* it is not known yet what there is of it */
    check_said(s, "its history", "load i");
    CU_ASSERT_FALSE(instances_quiet(s->instances));
    CU_ASSERT_EQUAL(instances_inbox(s->instances)->floor, 0);
    const char *const turn = run(s, &made);
    CHECK_STR("its first turn", turn, "1.1 ran; #1 Started plain@1(); #2 ActivityScheduled work()");
    CU_ASSERT_TRUE_FATAL(made.entry != NULL && made.lines_len == 1);
    CU_ASSERT(instances_inbox(s->instances)->floor == 1 && instances_inbox(s->instances)->dirty);
    append(s, &made);
    CU_ASSERT_FALSE(instances_inbox(s->instances)->dirty);
    check_said(s, "nobody hears of it yet", "");
    struct turn_log const line = {.text = THOLE_STR("it begins")};
    commit_with(s, made.entry, &line, 1);
    check_said(s, "now", "line it begins");
    CU_ASSERT_TRUE(instances_quiet(s->instances));
    end(s);
}

static void test_what_changes_nothing_is_not_recorded(void)
{
    struct stand *s = begin();
    start(s, "i", "plain");
    listen(s);
    struct entry *entry = record(s, "starts", "1.1 ran; #1 Started plain@1(); #2 ActivityScheduled work()");
    commit(s, entry);
    struct message unknown = {.kind = MESSAGE_ACTIVITY_RESULT, .execution = 1, .task = 9, .attempt = 1};
    give(s, &unknown, "i");
    CU_ASSERT_PTR_NULL(record(s, "of an activity that is not there", ""));
    CU_ASSERT_EQUAL(instances_inbox(s->instances)->floor, 2); /* and incorporated */
    struct message result = {.kind = MESSAGE_ACTIVITY_RESULT, .execution = 1, .task = 2, .attempt = 1};
    give(s, &result, "i");
    entry = record(s, "ends", "1.2 ran; #3 ActivityCompleted #2 (); #4 Completed ()");
    (void)entry;
    end(s);
}

static void test_without_code(void)
{
    struct stand *s = begin();
    start(s, "i", "unknown");
    listen(s);
    (void)record(s, "it waits", "1.1 waits; #1 Started unknown()");
    end(s);
}

static void test_what_comes_before_its_instance(void)
{
    struct stand *s = begin();
    give(s, &(struct message){.kind = MESSAGE_EVENT, .event_name = THOLE_STR("e")}, "i");
    listen(s);
    struct entry *entry = record(s, "is kept", "0.1 waits; #1 EventReceived e()");
    commit(s, entry);
    instances_timer(s->instances, THOLE_STR("i"), 0, EARLY_TIMER);
    struct instances_record made;
    const char *const turn = run(s, &made);
    CHECK_STR("not given up too early", turn, "");
    CU_ASSERT(made.entry == NULL && made.wake.due_ms == 6000 && made.wake.timer_id == EARLY_TIMER);
    instances_ran(s->instances, 0, 0);
    start(s, "i", "plain");
    (void)record(s, "and is there when it starts",
                 "1.1 ran; #1 Started plain@1(); #2 EventReceived e(); #3 ActivityScheduled work()");
    end(s);
}

static void test_questions(void)
{
    struct stand *s = begin();
    struct in_query const ask = {.instance = THOLE_STR("i"), .query = THOLE_STR("q")};
    instances_query(s->instances, 7, &ask, false);
    check_said(s, "not open", "answer the partition is not open");
    instances_query(s->instances, 7, &ask, true);
    check_said(s, "when it is known", "load i, answer there is no such instance");
    end(s);
}

static void test_what_cannot_be_taken(void)
{
    struct stand *s = begin();
    struct in_message const in = {.sequence = 1, .instance = THOLE_STR("i"), .bytes = THOLE_STR("\xff")};
    CU_ASSERT_TRUE(instances_message(s->instances, &in));
    check_said(s, "is given out", "malformed i");
    CU_ASSERT(instances_inbox(s->instances)->floor == 0 && !instances_quiet(s->instances));
    instances_rejected(s->instances, 1);
    CU_ASSERT(instances_inbox(s->instances)->floor == 1 && instances_quiet(s->instances));
    end(s);
}

static const struct thole_test tests[] = {
    {"instances: a start", test_a_start},
    {"instances: what changes nothing is not recorded", test_what_changes_nothing_is_not_recorded},
    {"instances: without code", test_without_code},
    {"instances: what comes before its instance", test_what_comes_before_its_instance},
    {"instances: questions", test_questions},
    {"instances: what cannot be taken", test_what_cannot_be_taken},
};
THOLE_TEST_MAIN("instances room", tests)
