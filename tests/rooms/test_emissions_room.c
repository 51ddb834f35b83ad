/* CloudEvents in the projection room: when they are sent, in which order, and what waits for them. */
#include "projection_stand.h"

static const struct event emitting[] = {
    {.id = 1, .kind = EVENT_STARTED, .code = 1, .name = {(const uint8_t *)"o", 1}},
    {.id = 2, .kind = EVENT_EVENT_EMITTED, .name = {(const uint8_t *)"a.b", 3}},
    {.id = 3, .kind = EVENT_EVENT_EMITTED, .name = {(const uint8_t *)"c", 1}},
    {.id = 4, .kind = EVENT_COMPLETED}};

static void test_events_of_an_instance_one_at_a_time(void)
{
    struct stand *s = begin_current();
    s->env.options.events = EVENTS_OUT_ALL;
    s->orchestration = THOLE_STR("o");
    (void)commit(s, 1, emitting, 4);
    check_said(s, "nothing before the rows", "started 1, completed 1, apply 1");
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "the first", "emit o/thole.instance.started, of event 1");
    uint64_t const first = s->tokens[0];
    CU_ASSERT_FALSE(projection_emitted(s->projection, first + OUTBOX_QUEUES)); /* has not been sent */
    check_said(s, "no answer to what was not sent", "");
    CU_ASSERT_TRUE(projection_emitted(s->projection, first));
    check_said(s, "the next", "emit o/a.b, of event 2");
    uint64_t const second = s->tokens[0];
    CU_ASSERT_FALSE(projection_emitted(s->projection, first));
    check_said(s, "it was answered before", "");
    CU_ASSERT_EQUAL(projection_projected(s->projection), BASE + 1);
    CU_ASSERT_EQUAL(projection_done(s->projection), BASE);
    CU_ASSERT(projection_emitted(s->projection, second));
    check_said(s, "the third", "emit o/c, of event 3");
    CU_ASSERT(projection_emitted(s->projection, s->tokens[0]));
    check_said(s, "the last", "emit o/thole.instance.completed, of event 4");
    CU_ASSERT(projection_emitted(s->projection, s->tokens[0]));
    CU_ASSERT_EQUAL(projection_emissions(s->projection), 0);
    CU_ASSERT_EQUAL(projection_done(s->projection), BASE + 1);
    CU_ASSERT(projection_unsaid(s->projection, BASE));
    end(s);
}

static void test_which_events_are_sent(void)
{
    static const struct {
        const char *row;
        enum events_out events;
        const char *orchestration, *want;
    } rows[] = {
        {"none", EVENTS_OUT_NONE, "o", ""},
        {"what code emits", EVENTS_OUT_EMITTED, "o", "emit o/a.b, of event 2"},
        {"the turn was recorded when none were", EVENTS_OUT_ALL, "", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct stand *s = begin_current();
        s->env.options.events = rows[i].events;
        s->orchestration = thole_slice_from(rows[i].orchestration);
        (void)commit(s, 1, emitting, 4);
        check_said(s, rows[i].row, "started 1, completed 1, apply 1");
        projection_applied(s->projection, &(struct in_applied){0});
        check_said(s, rows[i].row, rows[i].want);
        end(s);
    }
}

/* Events that the log lists as stored are not sent again, all others are; also a deletion's. */
static void test_events_again(void)
{
    struct stand *s = begin();
    struct record const deleted = {
        .kind = RECORD_DELETED,
        .epoch = 2,
        .n = 3,
        .deletion = {.instance = THOLE_STR("k"), .execution = 1, .orchestration = THOLE_STR("o")}};
    s->env.options.events = EVENTS_OUT_ALL;
    s->orchestration = THOLE_STR("o");
    open_at(s, 4);
    projection_store_opened(s->projection, &(struct in_store_opened){.epoch = 3});
    check_said(s, "reads", "open 3, log from 1");
    s->records[0] = (struct log_record){.sequence = 4, .bytes = turn_of(s, 1, 1, emitting, 2)};
    s->records[1] = (struct log_record){.sequence = 5, .bytes = turn_of(s, 2, 2, emitting + 2, 1)};
    s->records[2] = (struct log_record){.sequence = 6, .bytes = encode(s, &deleted)};
    projection_log(s->projection, &(struct in_log){s->records, 3});
    check_said(s, "rows", "apply 1, deleted 6");
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "the second turn's, and the deletion's",
               "emit o/c, of event 3, emit o/thole.instance.deleted, of event 0");
    CU_ASSERT_EQUAL(projection_state(s->projection), PROJECTION_CURRENT); /* does not wait for them */
    CU_ASSERT(projection_emitted(s->projection, s->tokens[0]));
    CU_ASSERT(projection_emitted(s->projection, s->tokens[1]));
    check_said(s, "that is all", "");
    end(s);
}

/* Records up to the watermark have their rows; what they emit is sent when the partition is open, but for a
 * turn whose last part was never written. */
static void test_events_of_rows_that_are_there(void)
{
    struct stand *s = begin();
    s->orchestration = THOLE_STR("o");
    s->env.options.events = EVENTS_OUT_EMITTED;
    open_at(s, 3);
    struct record part = {.kind = RECORD_TURN,
                          .epoch = 2,
                          .n = 1,
                          .turn = {.instance = THOLE_STR("i"),
                                   .execution = 1,
                                   .number = 1,
                                   .ran = true,
                                   .more = true,
                                   .events = emitting,
                                   .events_len = 2,
                                   .orchestration = THOLE_STR("o")}};
    s->records[0] = (struct log_record){.sequence = 4, .bytes = encode(s, &part)};
    part.n = 2;
    part.turn.more = false;
    part.turn.events = emitting + 2;
    part.turn.events_len = 1;
    s->records[1] = (struct log_record){.sequence = 5, .bytes = encode(s, &part)};
    part.turn.more = true;
    part.turn.number = 2;
    part.n = 3;
    s->records[2] = (struct log_record){.sequence = 6, .bytes = encode(s, &part)};
    struct projected const watermark = {.seq = 6, .mark = projected_mark(s->records[2].bytes)};
    projection_store_opened(s->projection,
                            &(struct in_store_opened){.epoch = 3, .rows.projected = watermark});
    check_said(s, "from the first that is owed", "open 3, log from 4");
    projection_log(s->projection, &(struct in_log){s->records, 3});
    check_said(s, "no rows", "emit o/a.b, of event 2");
    CU_ASSERT_EQUAL(projection_state(s->projection), PROJECTION_CURRENT);
    CU_ASSERT_EQUAL(projection_done(s->projection), 3);
    CU_ASSERT(projection_emitted(s->projection, s->tokens[0]));
    check_said(s, "the other part", "emit o/c, of event 3");
    CU_ASSERT_EQUAL(projection_done(s->projection), 3); /* both have to be stored */
    CU_ASSERT(projection_emitted(s->projection, s->tokens[0]));
    check_said(s, "that is all", "");
    CU_ASSERT_EQUAL(projection_done(s->projection), 6);
    end(s);
}

/* The records of a deleted instance stay until its events are stored. */
static void test_events_hold_back_removals(void)
{
    struct stand *s = begin_current();
    struct projection_turns made;
    struct record const deleted = {
        .kind = RECORD_DELETED, .epoch = 3, .n = 2, .deletion = {.instance = THOLE_STR("i"), .execution = 1}};
    s->env.options.events = EVENTS_OUT_EMITTED;
    s->orchestration = THOLE_STR("o");
    (void)commit(s, 1, emitting, 4);
    check_said(s, "rows", "started 1, completed 1, apply 1");
    projection_applied(s->projection, &(struct in_applied){0});
    check_said(s, "the first", "emit o/a.b, of event 2");
    uint64_t const first = s->tokens[0];
    projection_record(s->projection, encode(s, &deleted), BASE + 2, NULL, &made);
    check_said(s, "the deletion", "deleted 1, apply 0, deleted 12");
    projection_applied(s->projection, &(struct in_applied){0});
    projection_remove(s->projection, BASE + 3);
    check_said(s, "is made durable", "apply 0");
    projection_applied(s->projection, &(struct in_applied){0});
    projection_remove(s->projection, BASE + 3);
    check_said(s, "not yet", "");
    CU_ASSERT(projection_emitted(s->projection, first));
    check_said(s, "the second", "emit o/c, of event 3");
    projection_remove(s->projection, BASE + 3);
    check_said(s, "not yet either", "");
    CU_ASSERT(projection_emitted(s->projection, s->tokens[0]));
    projection_remove(s->projection, BASE + 3);
    check_said(s, "now", "remove before 12");
    end(s);
}

static const struct thole_test tests[] = {
    {"events of an instance, one at a time", test_events_of_an_instance_one_at_a_time},
    {"which events are sent", test_which_events_are_sent},
    {"events again", test_events_again},
    {"events of rows that are there", test_events_of_rows_that_are_there},
    {"events hold back removals", test_events_hold_back_removals},
};

THOLE_TEST_MAIN("emissions room", tests)
