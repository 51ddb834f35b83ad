/* Deleting instances: what is recorded, when the records go, who goes on after a crash, and the id's next
 * life. */
#include "dropped.h"
#include "partition_stage.h"
#include "thole_cunit.h"
#include <stdlib.h>

/* ---- orchestrations ---- */

static thole_status where(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg, (void)input;
    *ret_output = thole_format(ctx, "execution %llu", (unsigned long long)thole_execution_id(ctx));
    return THOLE_OK;
}

static thole_status plain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_on_query(ctx, THOLE_STR("where"), where, NULL);
    return thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output);
}

static thole_status twice(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_on_query(ctx, THOLE_STR("where"), where, NULL);
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output));
    return input.len > 0 ? THOLE_OK : thole_continue_as_new(ctx, THOLE_STR("last"), 0);
}

/* Each execution waits for an activity, with a timer beside it. */
static thole_status rounds(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const work = thole_call(ctx, THOLE_STR("work"), input);
    drop_task(thole_timer(ctx, 3600 * 1000));
    THOLE_TRY(thole_await(ctx, work, ret_output));
    return thole_continue_as_new(ctx, input, 0);
}

static const thole_orchestration_entry entries[] = {
    {"plain", plain, 0}, {"twice", twice, 0}, {"rounds", rounds, 0}};

static void delete_it(struct stage *s, const char *instance, uint64_t execution, bool force)
{
    struct message const message = {.kind = MESSAGE_DELETE,
                                    .instance = thole_slice_from(instance),
                                    .data = THOLE_STR("away"),
                                    .request_id = THOLE_STR("delete"),
                                    .execution = execution,
                                    .force = force};
    stage_message(s, &message);
}

static void start(struct stage *s, const char *instance, const char *orchestration, const char *request)
{
    struct message const message = {.kind = MESSAGE_START,
                                    .instance = thole_slice_from(instance),
                                    .orchestration = thole_slice_from(orchestration),
                                    .request_id = thole_slice_from(request)};
    stage_message(s, &message);
}

static void complete(struct stage *s, const char *instance, uint64_t execution)
{
    struct message const message = {.kind = MESSAGE_ACTIVITY_RESULT,
                                    .instance = thole_slice_from(instance),
                                    .execution = execution,
                                    .task = 2,
                                    .data = THOLE_STR("done"),
                                    .source.place.attempt = 1};
    stage_message(s, &message);
}

static void begin_and_end(struct stage *s, const char *instance)
{
    start(s, instance, "plain", "first");
    complete(s, instance, 1);
    (void)stage_said(s);
}

/* ---- the deletion ---- */

static void test_what_has_ended_goes(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    begin_and_end(s, "i");
    begin_and_end(s, "j");
    delete_it(s, "i", 1, false);
    stage_check_said(s, "notice", "notice deleted i\n");
    CU_ASSERT_EQUAL(s->deletions, 1);
    CU_ASSERT_EQUAL(s->removals, 1); /* at once: a record was written that says the deletion is committed */
    CHECK_STR("i", stage_history(s, "i"), "deleted up to 1: away\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "j"), "Completed (done)"));
    stage_query(s, "i", "where");
    stage_check_said(s, "query", "answer NOT_FOUND: there is no such instance\n");
    stage_settle(s);
    CU_ASSERT_TRUE(partition_idle(s->p));
    for (int again = 0; again < 2; again++) { /* the tail is read over the gaps */
        stage_again(s);
        stage_query(s, "i", "where");
        stage_check_said(s, "query", "answer NOT_FOUND: there is no such instance\n");
        CU_ASSERT_EQUAL(s->removals, 1); /* the log says that it is done */
    }
    stage_end(s);
}

static void test_what_runs_stays(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    start(s, "i", "plain", "first");
    (void)stage_said(s);
    delete_it(s, "i", 1, false);
    stage_check_said(s, "refused", "notice rejected i\n");
    stage_tell(s, "i", MESSAGE_PAUSE, "hold");
    (void)stage_said(s);
    delete_it(s, "i", 1, false);
    stage_check_said(s, "paused", "notice rejected i\n");
    CU_ASSERT_EQUAL(s->deletions, 0);
    stage_end(s);
}

static void test_force_terminates_first(void)
{
    static const char *const states[] = {"running", "paused", "no code", "damaged"};
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
        start(s, "i", i == 2 ? "unknown" : "plain", "first");
        if (i == 1)
            stage_tell(s, "i", MESSAGE_PAUSE, "hold");
        if (i == 3) {
            stage_again(s);
            s->log[1].bytes = THOLE_STR("\xff\xff");
        }
        (void)stage_said(s);
        delete_it(s, "i", 1, true);
        stage_check_said(s, states[i], "notice terminated i\nnotice deleted i\n");
        CHECK_STR(states[i], stage_history(s, "i"), "deleted up to 1: away\n");
        stage_settle(s);
        CU_ASSERT_TRUE(partition_idle(s->p));
        CU_ASSERT_EQUAL(partition_open_activities(s->p), 0);
        stage_end(s);
    }
}

static void test_events_that_wait_for_nobody(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_tell(s, "i", MESSAGE_EVENT, "early");
    delete_it(s, "i", 0, false);
    stage_check_said(s, "deleted", "notice deleted i\n");
    stage_tell(s, "i", MESSAGE_EVENT, "again");
    stage_again(s);
    start(s, "i", "plain", "first");
    CHECK_STR("what came later waits for it", stage_history(s, "i"),
              "deleted up to 0: away\n0.1 waits 7: #1 EventReceived item(again)\n"
              "1.1 ran: #1 Started plain@1(); #2 EventReceived item(again); #3 ActivityScheduled work()\n");
    delete_it(s, "nobody", 0, true);
    CHECK_STR("nothing to delete", stage_history(s, "nobody"), "");
    stage_end(s);
}

/* Messages after the request find another incarnation, or none. */
static void test_what_waits_behind_it(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    struct buf bytes;
    start(s, "i", "plain", "first");
    complete(s, "i", 1);
    s->hold_appends = true; /* all of it waits at the same slot */
    start(s, "other", "plain", "first");
    struct message const messages[] = {
        {.kind = MESSAGE_DELETE, .instance = THOLE_STR("i"), .request_id = THOLE_STR("delete")},
        {.kind = MESSAGE_EVENT,
         .instance = THOLE_STR("i"),
         .event_name = THOLE_STR("item"),
         .event_data = THOLE_STR("a"),
         .request_id = THOLE_STR("a")},
        {.kind = MESSAGE_START,
         .instance = THOLE_STR("i"),
         .orchestration = THOLE_STR("plain"),
         .request_id = THOLE_STR("second")},
    };
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        buf_init(&bytes, MESSAGE_BYTES_MAX);
        CU_ASSERT_EQUAL(message_encode(&messages[i], &bytes), THOLE_OK);
        struct message_route const route = message_route(&messages[i], SENDER_CLIENT);
        struct partition_in const in = {.kind = PARTITION_IN_MESSAGE,
                                        .generation = partition_generation(s->p),
                                        .message = {.sequence = ++s->inbox,
                                                    .instance = messages[i].instance,
                                                    .route = thole_slice_from(route.text),
                                                    .bytes = buf_bytes(&bytes)}};
        (void)partition_input(s->p, &in, s->now_ms); /* none of them is taken before all are there */
        buf_release(&bytes);
    }
    stage_run(s);
    stage_release(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(
        stage_history(s, "i"), "2.1 ran: #1 Started plain@1() after 1 deleted; #2 EventReceived item(a);"));
    stage_settle(s);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_end(s);
}

/* ---- the next life ---- */

static void test_the_id_lives_again(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    start(s, "i", "twice", "first");
    complete(s, "i", 1);
    complete(s, "i", 2);
    delete_it(s, "i", 2, false);
    (void)stage_said(s);
    start(s, "i", "twice", "first");
    stage_check_said(s, "the old start again", "");
    stage_again(s);
    start(s, "i", "twice", "first");
    stage_check_said(s, "the same, cold", "");
    start(s, "i", "twice", "second");
    stage_check_said(s, "a new one", "notice started i\n");
    complete(s, "i", 1);
    complete(s, "i", 2);
    stage_check_said(s, "results of the old life", "");
    for (int again = 0; again < 2; again++) {
        stage_query(s, "i", "where");
        stage_check_said(s, "warm, cold", "answer OK: execution 3\n");
        stage_again(s);
        (void)stage_said(s);
    }
    complete(s, "i", 3);
    stage_check_said(s, "goes on", "notice continued_as_new i\n");
    stage_again(s);
    delete_it(s, "i", 2, true);
    stage_check_said(s, "an old request", "notice deleted i\n");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(stage_history(s, "i"), "4.1 ran: #1 Started twice@1(last) after 2 deleted;"));
    complete(s, "i", 4);
    delete_it(s, "i", 4, false);
    CHECK_STR("one for both", stage_history(s, "i"), "deleted up to 4: away\n");
    start(s, "i", "plain", "third");
    stage_query(s, "i", "where");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "answer OK: execution 5\n"));
    stage_end(s);
}

static void test_events_between_two_lives(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    begin_and_end(s, "i");
    s->hold_removed = true; /* earlier records still exist, and hide nothing */
    delete_it(s, "i", 0, false);
    stage_tell(s, "i", MESSAGE_EVENT, "a");
    stage_again(s);
    stage_tell(s, "i", MESSAGE_EVENT, "b");
    stage_again(s);
    s->hold_removed = false;
    start(s, "i", "plain", "second");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "i"),
                                  "2.1 ran: #1 Started plain@1() after 1 deleted; #2 EventReceived item(a); "
                                  "#3 EventReceived item(b); #4 ActivityScheduled work()\n"));
    stage_end(s);
}

/* ---- crashes ---- */

/* The deletion is committed; its records are owed. */
static void test_the_next_owner_removes(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    begin_and_end(s, "i");
    s->hold_removed = true;
    delete_it(s, "i", 1, false);
    CU_ASSERT_EQUAL(s->removals, 1);
    stage_settle(s);
    CU_ASSERT_FALSE(partition_idle(s->p));
    size_t const records = s->log_len;
    stage_settle(s);
    CU_ASSERT_EQUAL(s->log_len, records); /* waits, without a record */
    s->log[1].deleted = true;             /* some are gone */
    stage_again(s);
    CU_ASSERT_EQUAL(s->removals, 2);
    stage_query(s, "i", "where");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "NOT_FOUND"));
    stage_again(s);
    s->hold_removed = false;
    stage_again(s);
    CHECK_STR("gone", stage_history(s, "i"), "deleted up to 1: away\n");
    stage_settle(s);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_end(s);
}

/* The rows were brought up beyond it before, so that there is nothing to be done again. */
static void test_the_log_knows_what_is_owed(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    begin_and_end(s, "i");
    begin_and_end(s, "j");
    s->hold_removed = true;
    delete_it(s, "i", 1, false);
    start(s, "k", "plain", "first");
    stage_settle(s);
    s->projected = s->applied;
    CU_ASSERT_TRUE(s->projected.seq + 2 > s->log_len);
    s->batches = 0;
    stage_again(s);
    CU_ASSERT_EQUAL(s->resets + s->deletions, 1);
    CU_ASSERT_EQUAL(s->removals, 2);
    s->hold_removed = false;
    s->projected = s->applied;
    stage_again(s);
    CHECK_STR("gone", stage_history(s, "i"), "deleted up to 1: away\n");
    stage_settle(s);
    s->projected = s->applied;
    stage_again(s);
    stage_settle(s);
    CU_ASSERT_EQUAL(s->removals, 3);
    s->hold_removed = true;
    delete_it(s, "j", 1, false);
    stage_settle(s);
    s->projected = s->applied;
    s->projected.mark ^= 1; /* rows of another log are found out here too, and nothing is owed twice */
    stage_again(s);
    CU_ASSERT_EQUAL(s->resets, 1);
    stage_end(s);
}

/* The owner dies before a record says that the deletion is committed. */
static void test_nothing_goes_before_it_is_certain(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    begin_and_end(s, "i");
    s->hold_appends = true;
    delete_it(s, "i", 1, false);
    CU_ASSERT_EQUAL(s->removals, 0);
    s->hold_appends = false;
    stage_again(s); /* the record was stored after all */
    CU_ASSERT_EQUAL(s->removals, 1);
    CHECK_STR("gone", stage_history(s, "i"), "deleted up to 1: away\n");
    stage_end(s);
}

/* Records follow only when all that follows from them is done. */
static void test_rows_and_messages_first(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    begin_and_end(s, "i");
    s->hold_applied = true;
    delete_it(s, "i", 1, false);
    stage_settle(s);
    CU_ASSERT_EQUAL(s->removals, 0);
    stage_release(s);
    CU_ASSERT_EQUAL(s->removals, 1);
    begin_and_end(s, "j");
    s->hold_durable = true;
    delete_it(s, "j", 1, false);
    stage_settle(s);
    CU_ASSERT_EQUAL(s->removals, 1); /* the database could forget how far it was */
    stage_end(s);
}

/* A terminated parent's kin: the result of a child that is deleted reaches its parent, also in a redo. */
static void test_the_parent_hears_of_it(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    struct message const kid = {.kind = MESSAGE_START,
                                .instance = THOLE_STR("kid"),
                                .orchestration = THOLE_STR("plain"),
                                .parent = {THOLE_STR("other"), 1, 2}};
    stage_message(s, &kid);
    stage_settle(s);
    s->projected = s->applied; /* a redo does not see it begin */
    s->hold_sent = true;
    (void)stage_said(s);
    delete_it(s, "kid", 1, true);
    stage_check_said(
        s, "told",
        "notice terminated kid\nnotice deleted kid\nsend kind 7 to other.1.2: CANCELLED  'away' of kid\n");
    CU_ASSERT_EQUAL(s->removals, 0); /* a reader that asks for the parent must find it */
    start(s, "kid", "twice", "mine");
    complete(s, "kid", 2); /* the newest executions say nothing of the first life */
    stage_again(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "send kind 7 to other.1.2: CANCELLED"));
    CU_ASSERT_EQUAL(s->removals, 0);
    stage_release(s);
    CU_ASSERT_EQUAL(s->removals, 1);
    stage_message(s, &kid);
    CU_ASSERT_PTR_NOT_NULL(strstr(
        stage_said(s), "send kind 7 to other.1.2: CONFLICT conflict 'the instance id is in use' of kid"));
    stage_end(s);
}

/* A child that is started again by the same event, after all is over, is not started again. */
static void test_a_deleted_child_stays_deleted(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    struct message kid = {.kind = MESSAGE_START,
                          .instance = THOLE_STR("kid"),
                          .orchestration = THOLE_STR("plain"),
                          .parent = {THOLE_STR("other"), 1, 2}};
    stage_message(s, &kid);
    delete_it(s, "kid", 1, true);
    stage_message(s, &kid);
    CHECK_STR("repeated", stage_history(s, "kid"), "deleted up to 1: away\n");
    kid.parent.event = 3;
    stage_message(s, &kid);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "kid"), "2.1 ran: #1 Started plain@1() of other:1#3"));
    stage_end(s);
}

/* A root instance at first, a child in the next incarnation. */
static void test_whose_child_it_is_now(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    struct message const kid = {.kind = MESSAGE_START,
                                .instance = THOLE_STR("kid"),
                                .orchestration = THOLE_STR("plain"),
                                .parent = {THOLE_STR("other"), 1, 2}};
    begin_and_end(s, "kid");
    s->hold_removed = s->hold_sent = true;
    delete_it(s, "kid", 1, false);
    stage_message(s, &kid);
    complete(s, "kid", 2);
    (void)stage_said(s);
    s->options.log_chunk = 1;
    stage_again(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "send kind 7 to other.1.2: OK"));
    stage_end(s);
}

/* The remains of its log, and its rows, make no work. */
static void test_a_redo_brings_nothing_back(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    start(s, "i", "plain", "first");
    start(s, "j", "plain", "first");
    stage_again(s);
    s->log[1].bytes = THOLE_STR("\xff\xff"); /* i's turn: nobody knows what it waits for */
    s->hold_removed = true;
    delete_it(s, "i", 1, true);
    s->works = s->activities = 0;
    stage_again(s);
    CU_ASSERT_EQUAL(s->works, 1); /* j's */
    CU_ASSERT_EQUAL(s->activities, 1);
    (void)stage_said(s);
    stage_query(s, "i", "where"); /* nor does what does not decode */
    stage_check_said(s, "it is not there", "answer NOT_FOUND: there is no such instance\n");
    stage_tell(s, "i", MESSAGE_EVENT, "early");
    stage_again(s);
    start(s, "i", "plain", "second");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(stage_history(s, "i"), "2.1 ran: #1 Started plain@1() after 1 deleted; #2"));
    stage_end(s);
}

/* Likewise where the history is consistent, and only its end is gone. */
static void test_a_redo_of_what_is_left(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    begin_and_end(s, "i");
    s->hold_removed = true;
    delete_it(s, "i", 1, false);
    for (size_t i = s->log_len; i > 0; i--)
        if (s->log[i - 1].kind == RECORD_TURN && !s->log[i - 1].deleted) {
            s->log[i - 1].deleted = true; /* of its end */
            break;
        }
    s->works = s->activities = 0;
    stage_again(s);
    CU_ASSERT_EQUAL(s->works, 0);
    CU_ASSERT_EQUAL(s->activities, 0);
    stage_end(s);
}

/* A removal takes no order, and may be cut off after any record. */
static void remove_some(struct stage *s, uint64_t execution, bool begin)
{
    for (size_t i = s->log_len; i > 0; i--) {
        struct stage_record *const record = &s->log[i - 1];
        if (record->kind != RECORD_TURN || strcmp(record->instance, "i") != 0 ||
            record->execution != execution || record->deleted)
            continue;
        record->deleted = true; /* removes its end; then its begin */
        if (!begin)
            return;
    }
}

/* The rows are lost before the removal goes on: those of the executions that are left go with the deletion,
 * also beside more rows of others than it has executions. */
static void test_a_redo_of_executions_that_are_left(void)
{
    for (int others = 0; others <= 3; others += 3) {
        struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
        for (int i = 0; i < others; i++)
            start(s, (const char *const[]){"a", "b", "c"}[i], "plain", "first");
        start(s, "i", "twice", "first");
        complete(s, "i", 1);
        complete(s, "i", 2);
        s->hold_removed = true;
        delete_it(s, "i", 2, false);
        CU_ASSERT_EQUAL(s->removals, 1);
        remove_some(s, 2, true);
        s->works = s->activities = s->deletions = 0;
        stage_again(s); /* the stage looks for rows from before a deletion in its batch */
        CU_ASSERT_EQUAL(s->deletions, 1);
        CU_ASSERT_EQUAL(s->works, (size_t)others);
        stage_end(s);
    }
}

static size_t pruned_rows;

static void see_pruned_rows(struct stage *s, const struct batch *batch)
{
    (void)s;
    for (size_t i = 0; i < batch->instances_len; i++)
        pruned_rows += batch->instances[i].execution == 2 || batch->instances[i].execution == 3;
}

/* Likewise for pruned executions: no work is done again, no timer is left. */
static void test_a_redo_of_what_a_prune_has_left(void)
{
    struct message const prune = {
        .kind = MESSAGE_PRUNE, .instance = THOLE_STR("i"), .request_id = THOLE_STR("prune"), .execution = 4};
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    start(s, "i", "rounds", "first");
    for (uint64_t execution = 1; execution <= 3; execution++)
        complete(s, "i", execution);
    s->hold_removed = true;
    stage_message(s, &prune);
    CU_ASSERT_EQUAL(s->removals, 1);
    remove_some(s, 3, true);
    remove_some(s, 2, false);
    s->see = see_pruned_rows;
    s->works = s->activities = s->timers = pruned_rows = 0;
    stage_again(s);
    CU_ASSERT_EQUAL(pruned_rows, 0);
    CU_ASSERT_EQUAL(s->works, 1); /* of the execution that runs */
    CU_ASSERT_EQUAL(s->activities, 1);
    CU_ASSERT_EQUAL(s->timers, 1);
    stage_end(s);
}

/* A start that was refused because of the instance has been answered, and counts as incorporated with the
 * deletion: the next owner, to which the start would come again, must not begin it. */
static void test_whoever_it_was_in_the_way_of(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    struct message const child = {.kind = MESSAGE_START,
                                  .instance = THOLE_STR("i"),
                                  .orchestration = THOLE_STR("plain"),
                                  .parent = {THOLE_STR("other"), 1, 2}};
    begin_and_end(s, "i");
    s->hold_sent = true;
    stage_message(s, &child);
    stage_message(s, &child);
    delete_it(s, "i", 1, false);
    stage_check_said(s, "not yet",
                     "send kind 7 to other.1.2: CONFLICT conflict 'the instance id is in use' of i\n"
                     "send kind 7 to other.1.2: CONFLICT conflict 'the instance id is in use' of i\n");
    CU_ASSERT_EQUAL(s->deletions, 0);
    stage_release(s);
    stage_settle(s);
    stage_check_said(s, "then", "notice deleted i\n");
    CU_ASSERT_EQUAL(s->deletions, 1);
    stage_again(s);
    s->inbox -= 3; /* all of it comes again */
    stage_message(s, &child);
    stage_message(s, &child);
    stage_check_said(s, "never again", "");
    stage_query(s, "i", "where");
    stage_check_said(s, "gone", "answer NOT_FOUND: there is no such instance\n");
    stage_end(s);
}

/* Removals of an owner that is still alive, while a rival reads the tail, look like the gap before a void
 * record when the record that confirms the deletion came after that tail. */
static void test_a_tail_that_is_read_while_records_go(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    s->hold_appends = true; /* no record says of another that it is stored */
    begin_and_end(s, "i");
    begin_and_end(s, "j");
    stage_release(s);
    uint64_t const before = s->log_len;
    delete_it(s, "i", 1, false);
    CU_ASSERT_EQUAL(s->removals, 1);
    CU_ASSERT_TRUE(s->log_len > before);
    s->tail_read_to = before;
    stage_again(s);
    CHECK_STR("nothing is believed", s->closed, "the log went on");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "j"), "Completed (done)"));
    stage_open(s);
    stage_query(s, "j", "where");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "answer OK: execution 1\n"));
    stage_end(s);
}

static const struct thole_test tests[] = {
    {"deletion: what has ended goes", test_what_has_ended_goes},
    {"deletion: what runs stays", test_what_runs_stays},
    {"deletion: force terminates first", test_force_terminates_first},
    {"deletion: events that wait for nobody", test_events_that_wait_for_nobody},
    {"deletion: what waits behind it", test_what_waits_behind_it},
    {"deletion: the id lives again", test_the_id_lives_again},
    {"deletion: events between two lives", test_events_between_two_lives},
    {"deletion: the next owner removes", test_the_next_owner_removes},
    {"deletion: the log knows what is owed", test_the_log_knows_what_is_owed},
    {"deletion: nothing goes before it is certain", test_nothing_goes_before_it_is_certain},
    {"deletion: rows and messages first", test_rows_and_messages_first},
    {"deletion: the parent hears of it", test_the_parent_hears_of_it},
    {"deletion: a deleted child stays deleted", test_a_deleted_child_stays_deleted},
    {"deletion: whose child it is now", test_whose_child_it_is_now},
    {"deletion: whoever it was in the way of", test_whoever_it_was_in_the_way_of},
    {"deletion: a redo brings nothing back", test_a_redo_brings_nothing_back},
    {"deletion: a redo of what is left", test_a_redo_of_what_is_left},
    {"deletion: a redo of executions that are left", test_a_redo_of_executions_that_are_left},
    {"deletion: a redo of what a prune has left", test_a_redo_of_what_a_prune_has_left},
    {"deletion: a tail that is read while records go", test_a_tail_that_is_read_while_records_go},
};
THOLE_TEST_MAIN("partition deletion", tests)
