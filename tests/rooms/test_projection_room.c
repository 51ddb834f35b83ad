/* The projection, alone: what committed records come to outside, and in which order. */
#include "projection_stand.h"

static void test_rows_then_work_then_the_watermark(void)
{
    struct stand *s = begin_current();
    CU_ASSERT_EQUAL(commit(s, 1, start_and_work, 2), 1);
    check_said(s, "rows", "started 1, apply 2");
    CU_ASSERT_EQUAL(projection_done(s->projection), 0);
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "work", "work 2");
    CU_ASSERT_EQUAL_FATAL(s->tokens_len, 1);
    CU_ASSERT(projection_done(s->projection) == 0 && !projection_idle(s->projection));
    projection_published(s->projection, s->tokens[0], 70);
    CU_ASSERT(projection_done(s->projection) == BASE + 1 && projection_idle(s->projection));
    CU_ASSERT_TRUE(projection_unsaved(s->projection));
    projection_published(s->projection, s->tokens[0], 70);
    projection_save(s->projection);
    check_said(s, "the watermark", "apply 0");
    CU_ASSERT(s->applied == BASE + 1 && !projection_unsaved(s->projection));
    end(s);
}

/* Clients wait for the notice with their request's id. Those of starts by other instances are made up. */
static void test_a_notice_names_the_request_of_a_client(void)
{
    static const char *const ids[] = {"", "r-7", "<p:1#2"};
    static const char *const want[] = {"started 1, apply 1", "started 1, asked for in bytes 3, apply 1",
                                       "started 1, apply 1"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct stand *s = begin_current();
        struct event start = start_and_work[0];
        start.request_id = thole_slice_from(ids[i]);
        (void)commit(s, 1, &start, 1);
        check_said(s, ids[i], want[i]);
        projection_applied(s->projection, &(struct in_applied){0});
        end(s);
    }
}

static void test_what_is_cancelled_goes_first(void)
{
    struct stand *s = begin_current();
    struct event const cancelled = {
        .id = 3, .kind = EVENT_ACTIVITY_CANCELLED, .ref = 2, .code = CANCEL_REQUESTED};
    (void)commit(s, 1, start_and_work, 2);
    projection_pump(s->projection, true);
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "work", "started 1, apply 2, work 2");
    projection_published(s->projection, s->tokens[0], 70);
    (void)commit(s, 2, &cancelled, 1);
    check_said(s, "told early, its row alone", "cancel 2, apply 0, gone 1");
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "then workers hear, and its message goes", "cancel 2, withdraw 70, apply 1");
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "and that is all", "");
    CU_ASSERT_EQUAL(projection_done(s->projection), BASE + 2);
    end(s);
}

/* While the database is busy rows gather: those of all records are one batch. Early pushes do not wait. */
static void test_rows_gather(void)
{
    struct stand *s = begin_current();
    struct event const more = {
        .id = 3, .kind = EVENT_ACTIVITY_SCHEDULED, .name = THOLE_STR("a"), .queue = THOLE_STR("q")};
    struct event const cancelled = {
        .id = 4, .kind = EVENT_ACTIVITY_CANCELLED, .ref = 2, .code = CANCEL_REQUESTED};
    (void)commit(s, 1, start_and_work, 2);
    CU_ASSERT_TRUE(projection_pump(s->projection, false));
    (void)commit(s, 2, &more, 1);
    CU_ASSERT_TRUE(projection_pump(s->projection, false));
    listen(s);
    said_check(&s->said, "nothing is written", "started 1");
    check_said(s, "one batch", "apply 3");
    (void)commit(s, 3, &cancelled, 1);
    CU_ASSERT_FALSE(projection_pump(s->projection, false)); /* waits for the answer */
    listen(s);
    said_check(&s->said, "behind the batch before it", "cancel 2");
    projection_applied(s->projection, &(struct in_applied){0});
    CU_ASSERT_TRUE(projection_pump(s->projection, false));
    listen(s);
    said_check(&s->said, "its messages", "work 2, work 3");
    check_said(s, "the row of the cancelled one", "apply 0, gone 1");
    end(s);
}

/* A batch without rows does not wait for the database. */
static void test_a_position_does_not_wait(void)
{
    struct stand *s = begin_current();
    struct record const position = {.kind = RECORD_POSITION, .epoch = 3, .n = 1};
    struct projection_turns made;
    projection_record(s->projection, encode(s, &position), BASE + 1, NULL, &made);
    CU_ASSERT_FALSE(projection_idle(s->projection));
    CU_ASSERT_FALSE(projection_pump(s->projection, false));
    CU_ASSERT_TRUE(projection_idle(s->projection));
    CU_ASSERT_EQUAL(projection_done(s->projection), BASE + 1);
    end(s);
}

/* A batch of work is done when the last of its messages is stored, and an answer that comes twice stands for
 * one of them. */
static void test_each_message_of_work_is_stored(void)
{
    struct stand *s = begin_current();
    struct event const two[] = {
        start_and_work[0],
        start_and_work[1],
        {.id = 3, .kind = EVENT_ACTIVITY_SCHEDULED, .name = THOLE_STR("a"), .queue = THOLE_STR("q")}};
    (void)commit(s, 1, two, 3);
    projection_pump(s->projection, true);
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "both", "started 1, apply 3, work 2, work 3");
    CU_ASSERT_EQUAL_FATAL(s->tokens_len, 2);
    for (int again = 0; again < 2; again++) {
        projection_published(s->projection, s->tokens[0], 70);
        CU_ASSERT(projection_done(s->projection) == 0 && !projection_idle(s->projection));
    }
    projection_published(s->projection, s->tokens[1], 71);
    CU_ASSERT(projection_done(s->projection) == BASE + 1 && projection_idle(s->projection));
    end(s);
}

/* The worker that hears of a cancellation looks for the try that the message names. */
static void test_a_push_names_its_try(void)
{
    struct stand *s = begin_current();
    struct event const two[] = {
        start_and_work[0],
        start_and_work[1],
        {.id = 3, .kind = EVENT_ACTIVITY_SCHEDULED, .name = THOLE_STR("a"), .queue = THOLE_STR("q")}};
    struct event const late[] = {{.id = 4,
                                  .kind = EVENT_ACTIVITY_TRY_FAILED,
                                  .ref = 2,
                                  .code = THOLE_TIMEOUT,
                                  .try_number = 2,
                                  .due_ms = 2000},
                                 {.id = 5,
                                  .kind = EVENT_ACTIVITY_TRY_FAILED,
                                  .ref = 3,
                                  .code = THOLE_TIMEOUT,
                                  .try_number = 3,
                                  .due_ms = 2000}};
    (void)commit(s, 1, two, 3);
    projection_pump(s->projection, true);
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "their work", "started 1, apply 3, work 2, work 3");
    (void)commit(s, 2, late, 2);
    check_said(s, "their rows go", "apply 0, gone 2");
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "one message for each try", "cancel 2, of try 2, cancel 3, of try 3, apply 3");
    projection_applied(s->projection, &(struct in_applied){0});
    end(s);
}

/* While catching up, the projection looks for the parent of an instance in its history. An answer that comes
 * twice stands for one question. */
static void test_a_parent_is_looked_up_once(void)
{
    static const struct event ends[] = {
        {.id = 2,
         .kind = EVENT_EVENT_SENT,
         .target = {(const uint8_t *)"j", 1},
         .name = {(const uint8_t *)"e", 1}},
        {.id = 3, .kind = EVENT_COMPLETED},
    };
    struct log_rule const rule = {.epoch = 3};
    struct in_history const nothing = {.instance = THOLE_STR("i")};
    struct stand *s = begin();
    open_at(s, 0);
    projection_store_opened(s->projection, &(struct in_store_opened){.epoch = 3});
    check_said(s, "reads", "open 3, log from 1");
    s->records[0] = (struct log_record){.sequence = 4, .bytes = turn_of(s, 2, 2, ends, 2)};
    projection_log(s->projection, &(struct in_log){s->records, 1});
    check_said(s, "its row", "apply 1");
    projection_applied(s->projection, &(struct in_applied){0});
    projection_pump(s->projection, true);
    listen(s);
    CU_ASSERT_EQUAL_FATAL(s->tokens_len, 2);
    uint64_t const send = s->tokens[0], load = s->tokens[1];
    CU_ASSERT_FATAL((load & PROJECTION_TOKEN) != 0 && (send & PROJECTION_TOKEN) == 0);
    for (int again = 0; again < 2; again++) {
        projection_history(s->projection, load, &nothing, &rule);
        CU_ASSERT_FALSE(projection_idle(s->projection));
    }
    projection_sent(s->projection, send);
    CU_ASSERT_TRUE(projection_idle(s->projection));
    projection_history(s->projection, load, &nothing, &rule); /* the batch is gone */
    s->said.text[0] = '\0';
    check_said(s, "that is all", "");
    CU_ASSERT_EQUAL(projection_state(s->projection), PROJECTION_CURRENT);
    end(s);
}

static void test_one_receiver_one_message_at_a_time(void)
{
    struct stand *s = begin_current();
    struct event events[] = {
        start_and_work[0],
        {.id = 2, .kind = EVENT_EVENT_SENT, .target = THOLE_STR("j"), .name = THOLE_STR("e")},
        {.id = 3, .kind = EVENT_EVENT_SENT, .target = THOLE_STR("j"), .name = THOLE_STR("f")},
    };
    (void)commit(s, 1, events, 3);
    projection_pump(s->projection, true);
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "the first", "started 1, apply 1, send 1");
    projection_sent(s->projection, s->tokens[0] + 1); /* has not been sent */
    check_said(s, "no answer to what was not sent", "");
    projection_sent(s->projection, s->tokens[0]);
    check_said(s, "the next", "send 1");
    end(s);
}

static void test_parts_come_with_the_last_one(void)
{
    struct stand *s = begin_current();
    struct projection_turns made;
    struct record part = {.kind = RECORD_TURN,
                          .epoch = 3,
                          .n = 1,
                          .turn = {.instance = THOLE_STR("i"),
                                   .execution = 1,
                                   .number = 1,
                                   .ran = true,
                                   .more = true,
                                   .events = start_and_work,
                                   .events_len = 1}};
    projection_record(s->projection, encode(s, &part), BASE + 1, &facts, &made);
    CU_ASSERT_EQUAL(made.len, 0);
    check_said(s, "not yet", "");
    part.n = 2;
    part.turn.more = false;
    part.turn.events = &start_and_work[1];
    projection_record(s->projection, encode(s, &part), BASE + 2, &facts, &made);
    CU_ASSERT_EQUAL(made.len, 2);
    check_said(s, "both", "started 1, apply 2");
    end(s);
}

/* ---- opening ---- */

static void test_a_newer_epoch(void)
{
    struct stand *s = begin();
    open_at(s, 0);
    projection_store_opened(s->projection, &(struct in_store_opened){.epoch = 8});
    CU_ASSERT_EQUAL_FATAL(projection_state(s->projection), PROJECTION_FAILED);
    CHECK_STR("why", projection_why(s->projection), "the database has a newer epoch of the partition");
    projection_reset(s->projection);
    CU_ASSERT(projection_state(s->projection) == PROJECTION_CLOSED &&
              projection_epoch_known(s->projection) == 8);
    end(s);
}

static void test_rows_of_another_log(void)
{
    struct stand *s = begin();
    open_at(s, 0);
    projection_store_opened(s->projection,
                            &(struct in_store_opened){.epoch = 3, .rows.projected = {.seq = 4, .mark = 99}});
    check_said(s, "is that record there?", "open 3, log from 1");
    s->records[0] = (struct log_record){.sequence = 4, .bytes = turn_of(s, 1, 1, start_and_work, 2)};
    projection_log(s->projection, &(struct in_log){s->records, 1});
    check_said(s, "another one", "reset 0");
    projection_store_reset(s->projection, &(struct in_store_reset){.rows = {.batches = 8}});
    check_said(s, "from the beginning", "log from 1");
    end(s);
}

/* The record of the watermark was void and is gone, so the rows prove nothing; what was to be removed is
 * found again while they are made again. */
static void test_rows_of_another_log_with_a_deletion(void)
{
    struct stand *s = begin();
    struct record const deleted = {
        .kind = RECORD_DELETED, .epoch = 2, .n = 1, .deletion = {.instance = THOLE_STR("i"), .execution = 1}};
    open_at(s, 0);
    projection_store_opened(s->projection, &(struct in_store_opened){
                                               .epoch = 3, .rows.projected = {.seq = BASE - 1, .mark = 99}});
    check_said(s, "what is owed is looked for", "open 3, log from 1");
    s->records[0] = (struct log_record){.sequence = 4, .bytes = encode(s, &deleted)};
    projection_log(s->projection, &(struct in_log){s->records, 1});
    check_said(s, "nothing at the watermark", "reset 0");
    CU_ASSERT_EQUAL(projection_removals(s->projection), 0);
    projection_store_reset(s->projection, &(struct in_store_reset){.rows = {.batches = 8}});
    check_said(s, "from the beginning", "log from 1");
    projection_log(s->projection, &(struct in_log){s->records, 1});
    check_said(s, "its rows", "apply 0, deleted 4");
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "that is all", "");
    CU_ASSERT_EQUAL(projection_state(s->projection), PROJECTION_CURRENT);
    CU_ASSERT_EQUAL(projection_removals(s->projection), 1);
    end(s);
}

static void check_rows(const struct stand *s, bool exact, uint64_t seq, uint64_t batches)
{
    struct rows_state rows;
    CU_ASSERT_EQUAL(projection_rows(s->projection, &rows), exact);
    CU_ASSERT_EQUAL(rows.projected.seq, seq);
    CU_ASSERT_EQUAL(rows.batches, batches);
}

/* Each transaction is counted, also one that moves no watermark; the next one follows it. */
static void test_each_batch_says_what_it_follows(void)
{
    static const struct event gone[] = {
        {.id = 3, .kind = EVENT_ACTIVITY_CANCELLED, .ref = 2, .code = CANCEL_REQUESTED}};
    struct stand *s = begin();
    open_at(s, 0);
    projection_store_opened(s->projection, &(struct in_store_opened){.epoch = 3, .rows.batches = 5});
    projection_log(s->projection, &(struct in_log){0});
    check_said(s, "opens", "open 3, log from 1");
    check_rows(s, true, 0, 5);
    (void)commit(s, 1, start_and_work, 2);
    check_said(s, "rows", "started 1, apply 2");
    check_rows(s, false, 0, 5);
    CU_ASSERT_TRUE(s->follows.batches == 5 && s->follows.projected.seq == 0 && s->applied == 0);
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "work", "work 2");
    check_rows(s, true, 0, 6);
    projection_published(s->projection, s->tokens[0], 0);
    (void)commit(s, 2, gone, 1);
    check_said(s, "a removal", "cancel 2, apply 0, gone 1");
    CU_ASSERT_TRUE(s->follows.batches == 6 && s->applied == 0);
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "and the rest", "cancel 2, apply 1");
    CU_ASSERT_TRUE(s->follows.batches == 7 && s->follows.projected.seq == 0 && s->applied == BASE + 1);
    projection_applied(s->projection, &(struct in_applied){0});
    check_rows(s, true, BASE + 1, 8);
    end(s);
}

/* A turn whose last part was never written does not count, whatever came after it. */
static void test_parts_without_a_last_one(void)
{
    struct stand *s = begin();
    struct record const part = {.kind = RECORD_TURN,
                                .epoch = 2,
                                .n = 1,
                                .turn = {.instance = THOLE_STR("j"),
                                         .execution = 1,
                                         .number = 1,
                                         .ran = true,
                                         .more = true,
                                         .events = start_and_work,
                                         .events_len = 2}};
    open_at(s, 0);
    projection_store_opened(s->projection, &(struct in_store_opened){.epoch = 3});
    check_said(s, "reads", "open 3, log from 1");
    s->records[0] = (struct log_record){.sequence = 4, .bytes = encode(s, &part)};
    s->records[1] = (struct log_record){.sequence = 5, .bytes = turn_of(s, 1, 1, start_and_work, 1)};
    projection_log(s->projection, &(struct in_log){s->records, 2});
    check_said(s, "the other instance", "apply 1");
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "and no activity", "");
    CU_ASSERT_EQUAL(projection_state(s->projection), PROJECTION_CURRENT);
    end(s);
}

/* If an end was not read, the outstanding tasks are not known: all that the instance has goes, however much
 * was counted. */
static void test_an_unread_end_is_uncertain(void)
{
    static const struct event ends[] = {{.id = 3, .kind = EVENT_TERMINATE_REQUESTED},
                                        {.id = 4, .kind = EVENT_TERMINATED}};
    struct stand *s = begin_current();
    struct projection_turns made;
    projection_record(s->projection, turn_of(s, 1, 1, ends, 2), BASE + 1, &facts, &made);
    CU_ASSERT_TRUE(made.rows_uncertain);
    check_said(s, "rows", "terminated 1, apply 1, deleted 0");
    projection_applied(s->projection, &(struct in_applied){0});
    end(s);
}

/* Tasks that are open in the end are done again; tasks that have ended in the same log, or wait in the inbox,
 * are not. */
static void test_only_what_is_open_is_done_again(void)
{
    struct progress const inbox = {0};
    for (int answered = 0; answered < 2; answered++) {
        struct stand *s = begin();
        struct partition_result const result = {
            .instance = THOLE_STR("i"), .execution = 1, .activity_id = 2, .try_number = 1};
        open_at(s, 0);
        projection_store_opened(s->projection, &(struct in_store_opened){.epoch = 3});
        check_said(s, "reads", "open 3, log from 1");
        s->records[0] = (struct log_record){.sequence = 4, .bytes = turn_of(s, 1, 1, start_and_work, 2)};
        projection_log(s->projection, &(struct in_log){s->records, 1});
        check_said(s, "the instance", "apply 1");
        projection_applied(s->projection, &(struct in_applied){0});
        check_said(s, "is its result there?", "results from 5");
        projection_results(s->projection, &(struct in_results){&result, (size_t)answered}, &inbox);
        check_said(s, "its row, or not", answered ? "" : "apply 1");
        CU_ASSERT_EQUAL(projection_state(s->projection) == PROJECTION_CURRENT, answered == 1);
        if (!answered) {
            projection_applied(s->projection, &(struct in_applied){0});
            check_said(s, "again", "work again 2");
            projection_published(s->projection, s->tokens[0], 0);
            check_said(s, "done", "");
        }
        CU_ASSERT_EQUAL(projection_state(s->projection), PROJECTION_CURRENT);
        CU_ASSERT_EQUAL(projection_done(s->projection), 4);
        end(s);
    }
}

/* ---- deletions, timers ---- */

static void test_records_go_when_nothing_needs_them(void)
{
    struct stand *s = begin_current();
    struct projection_turns made;
    struct record const record = {
        .kind = RECORD_DELETED, .epoch = 3, .n = 1, .deletion = {.instance = THOLE_STR("i"), .execution = 1}};
    projection_record(s->projection, encode(s, &record), BASE + 1, &facts, &made);
    CU_ASSERT_TRUE(made.rows_uncertain);
    check_said(s, "rows", "deleted 1, apply 0, deleted 11");
    projection_applied(s->projection, &(struct in_applied){0});
    CU_ASSERT_EQUAL(projection_removals(s->projection), 1);
    CU_ASSERT_EQUAL(projection_done(s->projection), BASE); /* not it: its records are still there */
    CU_ASSERT_TRUE(projection_unconfirmed(s->projection, BASE));
    projection_remove(s->projection, BASE);
    check_said(s, "the database is told for good", "apply 0");
    CU_ASSERT_EQUAL(s->durable, BASE + 1);
    projection_applied(s->projection, &(struct in_applied){0});
    projection_remove(s->projection, BASE);
    check_said(s, "not before a record says that it is committed", "");
    CU_ASSERT_FALSE(projection_unconfirmed(s->projection, BASE + 1));
    projection_remove(s->projection, BASE + 1);
    check_said(s, "now", "remove before 11");
    CU_ASSERT_FALSE(projection_removed(s->projection, 12));
    CU_ASSERT_TRUE(projection_removed(s->projection, 11));
    CU_ASSERT(projection_removals(s->projection) == 0 && projection_done(s->projection) == BASE + 1);
    CU_ASSERT_TRUE(projection_unsaid(s->projection, BASE));
    end(s);
}

/* A former owner wrote that all is published up to there: what was to go up to there, that record included,
 * is gone. */
static void test_what_is_gone_is_not_owed_again(void)
{
    struct event const pruned[] = {start_and_work[0],
                                   {.id = 2, .kind = EVENT_HISTORY_PRUNED, .before = 3, .kept = 1}};
    struct record const records[] = {
        {.kind = RECORD_DELETED,
         .epoch = 2,
         .n = 1,
         .deletion = {.instance = THOLE_STR("i"), .execution = 1}},
        {.kind = RECORD_TURN,
         .epoch = 2,
         .n = 1,
         .turn = {.instance = THOLE_STR("i"),
                  .execution = 3,
                  .number = 1,
                  .ran = true,
                  .events = pruned,
                  .events_len = 2}},
    };
    for (uint64_t i = 0; i < 4; i++) {
        struct stand *s = begin();
        uint64_t const published = 3 + i / 2;
        open_at(s, published);
        projection_store_opened(s->projection, &(struct in_store_opened){.epoch = 3});
        s->records[0] = (struct log_record){.sequence = 4, .bytes = encode(s, &records[i % 2])};
        projection_log(s->projection, &(struct in_log){s->records, 1});
        projection_pump(s->projection, true);
        projection_applied(s->projection, &(struct in_applied){0});
        projection_pump(s->projection, true);
        CU_ASSERT_EQUAL(projection_state(s->projection), PROJECTION_CURRENT);
        CU_ASSERT_EQUAL(projection_removals(s->projection), published < 4);
        listen(s);
        s->said.text[0] = '\0';
        end(s);
    }
}

static void test_timers(void)
{
    struct stand *s = begin_current();
    struct projection_timer due;
    struct batch_timer const rows[] = {
        {.instance = THOLE_STR("i"), .execution = 1, .timer_id = 7, .due_ms = 1200}};
    projection_read_timers(s->projection);
    check_said(s, "the next horizon", "timers before 1500");
    projection_timers(s->projection,
                      &(struct in_timers){.timers = rows, .timers_len = 1, .next_due_ms = 9000});
    CU_ASSERT_FALSE(projection_take_due(s->projection, &due));
    CU_ASSERT_EQUAL(projection_deadline_ms(s->projection), 1200);
    s->env.now_ms = 1200;
    CU_ASSERT_TRUE_FATAL(projection_take_due(s->projection, &due));
    CU_ASSERT(due.timer_id == 7 && due.execution == 1 && due.instance.len == 1);
    CU_ASSERT_FALSE(projection_take_due(s->projection, &due));
    CU_ASSERT_EQUAL(projection_deadline_ms(s->projection), 9000 - 250);
    s->env.now_ms = 8749;
    CU_ASSERT_FALSE(projection_take_due(s->projection, &due));
    check_said(s, "not before that", "");
    s->env.now_ms = 8750;
    CU_ASSERT_FALSE(projection_take_due(s->projection, &due));
    check_said(s, "the one after it", "timers before 9250");
    end(s);
}

struct step {
    unsigned from, to;
};

static void become(void *arg)
{
    const struct step *const step = arg;
    struct projection p = {.state = step->from};
    projection_become(&p, step->to);
}

static void batch_become(void *arg)
{
    const struct step *const step = arg;
    struct projection_batch batch = {.state = step->from};
    projection_batch_become(&batch, step->to);
}

static void test_states_in_no_other_order(void)
{
    static struct step legal = {PROJECTION_CATCHING_UP, PROJECTION_CURRENT},
                       of_batch = {BATCH_SEALED, BATCH_APPLYING};
    static struct step illegal[] = {{PROJECTION_CLOSED, PROJECTION_CURRENT},
                                    {PROJECTION_REGISTERING, PROJECTION_CURRENT},
                                    {PROJECTION_RESETTING, PROJECTION_CURRENT},
                                    {PROJECTION_CURRENT, PROJECTION_CATCHING_UP},
                                    {PROJECTION_FAILED, PROJECTION_CURRENT}};
    static struct step of_batches[] = {{BATCH_SEALED, BATCH_FILLING},
                                       {BATCH_REMOVING, BATCH_PUBLISHING},
                                       {BATCH_APPLYING, BATCH_REMOVING},
                                       {BATCH_PUBLISHING, BATCH_APPLYING},
                                       {BATCH_PUBLISHING, BATCH_FILLING}};
    CU_ASSERT_FALSE(room_aborts(become, &legal));
    CU_ASSERT_FALSE(room_aborts(batch_become, &of_batch));
    for (size_t i = 0; i < ARRAY_LEN(illegal); i++)
        CU_ASSERT_TRUE(room_aborts(become, &illegal[i]));
    for (size_t i = 0; i < ARRAY_LEN(of_batches); i++)
        CU_ASSERT_TRUE(room_aborts(batch_become, &of_batches[i]));
}

/* ---- rows of instances ---- */

/* Commits turn n at that time, with those events, of an instance whose row says what @p facts have; returns
 * the row that is written, rendered. */
static const char *row_of(struct stand *s, uint64_t n, const struct turn *turn, uint64_t *running_ms)
{
    static char text[128];
    struct record record = {.kind = RECORD_TURN, .epoch = 3, .n = n, .turn = *turn};
    struct projection_facts known = facts;
    struct projection_turns made;
    struct partition_out out;
    record.turn.instance = THOLE_STR("i");
    record.turn.execution = 1;
    record.turn.number = n;
    known.running_ms = *running_ms;
    projection_record(s->projection, encode(s, &record), BASE + n, &known, &made);
    *running_ms = made.running_ms;
    projection_pump(s->projection, true);
    (void)snprintf(text, sizeof text, "nothing was applied");
    while (env_poll(&s->env, &out)) {
        if (out.kind != PARTITION_OUT_APPLY)
            continue;
        const struct batch *const batch = out.apply.batch;
        (void)snprintf(text, sizeof text, "no row");
        if (batch->instances_len > 0)
            (void)snprintf(text, sizeof text, "turn %llu, status %u",
                           (unsigned long long)batch->instances[0].turns, batch->instances[0].status);
        batch_destroy(out.apply.batch);
        projection_applied(s->projection, &(struct in_applied){0});
        projection_pump(s->projection, true);
    }
    return text;
}

static void test_the_row_of_an_instance_that_runs(void)
{
    static const struct event started = {.id = 1,
                                         .kind = EVENT_STARTED,
                                         .code = SEMANTICS_VERSION,
                                         .name = {(const uint8_t *)"o", 1}},
                              raised = {.id = 2,
                                        .kind = EVENT_EVENT_RECEIVED,
                                        .name = {(const uint8_t *)"e", 1}},
                              status = {.id = 3, .kind = EVENT_CUSTOM_STATUS_SET},
                              completed = {.id = 4, .kind = EVENT_COMPLETED};
    static const struct {
        const char *what;
        const struct event *event;
        uint64_t time_ms;
        bool ran;
        const char *want;
    } rows[] = {{"it begins", &started, 1000, true, "turn 1, status 1"},
                {"it goes on", &raised, 1500, true, "no row"},
                {"and on, almost too long", &raised, 1999, true, "no row"},
                {"too long", &raised, 2000, true, "turn 4, status 1"},
                {"from then on", &raised, 2999, true, "no row"},
                {"it says something", &status, 2999, true, "turn 6, status 1"},
                {"it waits for code", &raised, 3000, false, "turn 7, status 2"},
                {"still", &raised, 3001, false, "turn 8, status 2"},
                {"it runs", &raised, 3002, true, "turn 9, status 1"},
                {"it goes on", &raised, 3003, true, "no row"},
                {"it ends", &completed, 3004, true, "turn 11, status 4"}};
    struct stand *s = begin_current();
    uint64_t running_ms = 0;
    s->env.options.row_age_ms = 1000;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct turn const turn = {.time_ms = rows[i].time_ms,
                                  .ran = rows[i].ran,
                                  .blocked = rows[i].ran ? BLOCKED_NOT : BLOCKED_NO_CODE,
                                  .events = rows[i].event,
                                  .events_len = 1};
        const char *const row = row_of(s, i + 1, &turn, &running_ms);
        CHECK_STR(rows[i].what, row, rows[i].want);
    }
    CU_ASSERT_EQUAL(running_ms, 0);
    end(s);
}

/* Where nobody knows what its row says it is written. */
static void test_the_row_of_an_instance_of_which_nothing_is_known(void)
{
    static const struct event raised = {
        .id = 2, .kind = EVENT_EVENT_RECEIVED, .name = {(const uint8_t *)"e", 1}};
    struct turn const turn = {.time_ms = 1000, .ran = true, .events = &raised, .events_len = 1};
    struct stand *s = begin_current();
    uint64_t running_ms = 0;
    s->env.options.row_age_ms = 1000;
    const char *row = row_of(s, 1, &turn, &running_ms);
    CHECK_STR("nothing is known", row, "turn 1, status 1");
    CU_ASSERT_EQUAL(running_ms, 1000);
    row = row_of(s, 2, &turn, &running_ms);
    CHECK_STR("now it is", row, "no row");
    running_ms = 0;
    row = row_of(s, 3, &turn, &running_ms);
    CHECK_STR("it was released", row, "turn 3, status 1");
    end(s);
}

static void check_due(struct stand *s, const char *row, const char *want)
{
    struct projection_timer due;
    while (projection_take_due(s->projection, &due))
        say(s, "timer", due.timer_id);
    said_check(&s->said, row, want);
}

/* Those in batches that are not committed, and those that are created meanwhile. */
static void test_timers_that_a_query_may_miss(void)
{
    struct stand *s = begin_current();
    struct event const created[] = {
        {.id = 2, .kind = EVENT_TIMER_CREATED, .due_ms = 1300},
        {.id = 3, .kind = EVENT_TIMER_CREATED, .due_ms = 1400},
        {.id = 4, .kind = EVENT_TIMER_CREATED, .due_ms = 5000},
        {.id = 5, .kind = EVENT_TIMER_CREATED, .due_ms = 1350},
        {.id = 6, .kind = EVENT_TIMER_CANCELLED, .ref = 5, .code = CANCEL_EXPLICIT},
    };
    struct event const later[] = {{.id = 7, .kind = EVENT_TIMER_CREATED, .due_ms = 1450},
                                  {.id = 8, .kind = EVENT_TIMER_CREATED, .due_ms = 1500}};
    (void)commit(s, 1, created, ARRAY_LEN(created));
    projection_read_timers(s->projection);
    (void)commit(s, 2, later, ARRAY_LEN(later));
    projection_timers(s->projection, &(struct in_timers){0});
    listen(s);
    s->said.text[0] = '\0';
    CU_ASSERT_EQUAL(projection_deadline_ms(s->projection), 1250); /* reads again, for the one at 1500 */
    s->env.now_ms = 1499;
    check_due(s, "each once, in order", "timer 2, timer 3, timer 7");
    struct batch_timer const rows[] = {
        {.instance = THOLE_STR("i"), .execution = 1, .timer_id = 9, .due_ms = 1499},
        {.instance = THOLE_STR("i"), .execution = 1, .timer_id = 10, .due_ms = 1500}};
    projection_timers(s->projection, &(struct in_timers){.timers = rows, .timers_len = 2});
    s->env.now_ms = 1500;
    check_due(s, "from the end of the last horizon on", "timer 8, timer 10");
    CU_ASSERT_EQUAL(projection_deadline_ms(s->projection), 4750);
    end(s);
}

static thole_slice work_of(struct stand *s, const char *instance, uint64_t execution)
{
    struct record record = {.kind = RECORD_TURN, .epoch = 2, .n = 1};
    record.turn = (struct turn){.instance = thole_slice_from(instance),
                                .execution = execution,
                                .number = 1,
                                .ran = true,
                                .events = start_and_work,
                                .events_len = 2};
    return encode(s, &record);
}

/* Of the deleted instance only what its next life has scheduled is queued, and what others have. */
static void test_a_deletion_while_the_log_is_read_again(void)
{
    struct stand *s = begin();
    struct record const deleted = {
        .kind = RECORD_DELETED, .epoch = 2, .n = 4, .deletion = {.instance = THOLE_STR("i"), .execution = 1}};
    thole_slice const bytes[] = {work_of(s, "i", 1), work_of(s, "j", 1), encode(s, &deleted),
                                 work_of(s, "i", 2)};
    open_at(s, 0);
    projection_store_opened(s->projection, &(struct in_store_opened){.epoch = 3});
    check_said(s, "from the beginning", "open 3, log from 1");
    for (size_t i = 0; i < ARRAY_LEN(bytes); i++)
        s->records[i] = (struct log_record){.sequence = i + 1, .bytes = bytes[i]};
    projection_log(s->projection, &(struct in_log){s->records, ARRAY_LEN(bytes)});
    projection_check(s->projection);
    CU_ASSERT_EQUAL(s->projection->redo.open_len, 2);
    for (int i = 0; i < 10 && s->projection->redo.open != NULL; i++) {
        projection_pump(s->projection, true);
        listen(s);
        projection_applied(s->projection, &(struct in_applied){0});
        projection_results(s->projection, &(struct in_results){0}, &(struct progress){0});
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(s->said.text, "deleted 3"));
    s->said.text[0] = '\0';
    check_said(s, "two messages", "work again 2, work again 2");
    end(s);
}

/* Which instances nobody else started is known of each, however many there are. */
static void test_many_roots(void)
{
    enum { MANY = 3000 };
    struct stand *s = begin();
    char id[16];
    CU_ASSERT_FALSE(redo_is_root(s->projection, THOLE_STR("i-0")));
    redo_no_root(s->projection, THOLE_STR("i-0")); /* before any is known */
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "i-%d", i);
        redo_root(s->projection, thole_slice_from(id));
        if (i % 3 == 0)
            redo_no_root(s->projection, thole_slice_from(id)); /* a child used the id again */
        if (i % 6 == 0)
            redo_root(s->projection, thole_slice_from(id)); /* and once more */
    }
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "i-%d", i);
        CU_ASSERT_EQUAL(redo_is_root(s->projection, thole_slice_from(id)), i % 3 != 0 || i % 6 == 0);
    }
    CU_ASSERT_FALSE(redo_is_root(s->projection, THOLE_STR("another")));
    CU_ASSERT_EQUAL(s->projection->redo.roots_len, MANY);
    redo_release(&s->projection->redo); /* nothing more to ask: the projection is not catching up */
    end(s);
}

static const struct thole_test tests[] = {
    {"projection: many roots", test_many_roots},
    {"projection: a deletion while the log is read again", test_a_deletion_while_the_log_is_read_again},
    {"projection: timers that a query may miss", test_timers_that_a_query_may_miss},
    {"projection: states in no other order", test_states_in_no_other_order},
    {"projection: rows, then work, then the watermark", test_rows_then_work_then_the_watermark},
    {"projection: a notice names the request of a client", test_a_notice_names_the_request_of_a_client},
    {"projection: what is cancelled goes first", test_what_is_cancelled_goes_first},
    {"projection: rows gather", test_rows_gather},
    {"projection: a position does not wait", test_a_position_does_not_wait},
    {"projection: each message of work is stored", test_each_message_of_work_is_stored},
    {"projection: a push names its try", test_a_push_names_its_try},
    {"projection: a parent is looked up once", test_a_parent_is_looked_up_once},
    {"projection: one receiver, one message at a time", test_one_receiver_one_message_at_a_time},
    {"projection: parts come with the last one", test_parts_come_with_the_last_one},
    {"projection: a newer epoch", test_a_newer_epoch},
    {"projection: rows of another log", test_rows_of_another_log},
    {"projection: rows of another log, with a deletion", test_rows_of_another_log_with_a_deletion},
    {"projection: each batch says what it follows", test_each_batch_says_what_it_follows},
    {"projection: parts without a last one", test_parts_without_a_last_one},
    {"projection: an unread end is uncertain", test_an_unread_end_is_uncertain},
    {"projection: only what is open is done again", test_only_what_is_open_is_done_again},
    {"projection: records go when nothing needs them", test_records_go_when_nothing_needs_them},
    {"projection: what is gone is not owed again", test_what_is_gone_is_not_owed_again},
    {"projection: timers", test_timers},
    {"projection: the row of an instance that runs", test_the_row_of_an_instance_that_runs},
    {"projection: the row of an instance of which nothing is known",
     test_the_row_of_an_instance_of_which_nothing_is_known},
};
THOLE_TEST_MAIN("projection room", tests)
