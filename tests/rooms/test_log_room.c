/* The partition's log, alone: its states, the prefix rule, what is found in a tail. */
#include "log_state.h"
#include "room.h"
#include <stdlib.h>

struct stand { /* a log, and the stream that it asks for */
    struct env env;
    struct partition_log *log;
    struct arena arena;
    struct log_record records[64]; /* bytes empty: deleted */
    size_t len;
    struct said said;
};

static void say(struct stand *s, const char *text, uint64_t n)
{
    said_add(&s->said, "%s%s %llu", said_comma(&s->said), text, (unsigned long long)n);
}

static void listen(struct stand *s)
{
    struct partition_out out;
    while (env_poll(&s->env, &out)) {
        if (out.kind == PARTITION_OUT_READ_TAIL)
            say(s, "read", out.read_tail.count);
        else if (out.kind == PARTITION_OUT_DELETE_RECORDS)
            for (size_t i = 0; i < out.delete_records.sequences_len; i++)
                say(s, "delete", out.delete_records.sequences[i]);
        else if (out.kind == PARTITION_OUT_APPEND)
            say(s, "append", out.append.expected_last + 1);
    }
}

static void check_said(struct stand *s, const char *row, const char *want)
{
    listen(s);
    said_check(&s->said, row, want);
}

static struct stand *begin(void)
{
    struct stand *s = calloc(1, sizeof *s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    arena_init(&s->arena, SIZE_MAX / 2);
    s->env.now_ms = 1000;
    s->env.options = (struct partition_options){.record_max = 4096, .node = THOLE_STR("n")};
    s->log = log_create(&s->env);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->log);
    log_check(s->log);
    return s;
}

static void end(struct stand *s)
{
    log_check(s->log);
    CU_ASSERT_FALSE(s->env.nomem);
    log_destroy(s->log);
    env_release(&s->env);
    arena_release(&s->arena);
    free(s);
}

/* Another owner's record in the stream. */
static void store(struct stand *s, enum record_kind kind, uint64_t epoch, uint64_t n, uint64_t committed)
{
    struct record const record = {.kind = kind,
                                  .epoch = epoch,
                                  .n = n,
                                  .committed = committed,
                                  .published = n,
                                  .position = {.floor = 100 * epoch + n}};
    s->records[s->len] =
        (struct log_record){.sequence = s->len + 1, .bytes = record_bytes(&s->arena, &record)};
    s->len++;
}

static void give_tail(struct stand *s, uint64_t epoch_sequence)
{
    size_t const from = epoch_sequence == 0 ? 0 : (size_t)epoch_sequence - 1;
    log_tail(s->log, &(struct in_tail){epoch_sequence, s->len, s->records + from, s->len - from});
    log_check(s->log);
}

/* A log that is open: epoch 1 at sequence 1. */
static struct stand *begin_open(void)
{
    struct stand *s = begin();
    struct log_committed opened;
    struct log_saying const saying = {.position = {.floor = 7}};
    log_open(s->log);
    give_tail(s, 0);
    log_begin(s->log, 0, &saying);
    log_appended(s->log, 0, 1);
    CU_ASSERT_TRUE(log_take_committed(s->log, &opened));
    CU_ASSERT_FALSE(log_take_committed(s->log, &opened));
    CU_ASSERT_EQUAL_FATAL(log_state(s->log), LOG_OPEN);
    listen(s);
    s->said.text[0] = '\0';
    log_check(s->log);
    return s;
}

static int tags[3];

static void append(struct stand *s, size_t which)
{
    static const char *const ids[] = {"a", "b", "c"};
    struct event event = {.id = 1, .kind = EVENT_STARTED, .name = THOLE_STR("o")};
    struct turn const turn = {.instance = thole_slice_from(ids[which]),
                              .execution = 1,
                              .number = 1,
                              .ran = true,
                              .events = &event,
                              .events_len = 1};
    struct log_saying const saying = {.position = {.floor = 10 + which}, .published = which};
    CU_ASSERT_EQUAL(log_append_turn(s->log, &turn, NULL, 0, &saying, &tags[which]), 1);
    log_check(s->log);
}

static void acknowledge(struct stand *s, uint64_t n)
{
    log_appended(s->log, n, log_facts(s->log)->base + n);
}

static void take(struct stand *s)
{
    struct log_committed record;
    while (log_take_committed(s->log, &record)) {
        CU_ASSERT_EQUAL(record.sequence, log_facts(s->log)->base + record.n);
        CU_ASSERT_TRUE(record.tag == &tags[record.n - 1] && record.instance.len == 1 && record.bytes.len > 0);
        say(s, "committed", record.n);
    }
    log_check(s->log);
}

/* ---- opening ---- */

static void test_an_empty_log(void)
{
    struct stand *s = begin();
    struct log_committed record;
    log_open(s->log);
    check_said(s, "reads", "read 1024");
    give_tail(s, 0);
    CU_ASSERT_EQUAL(log_state(s->log), LOG_FOUND);
    CU_ASSERT_EQUAL(log_found(s->log)->position.floor, 0);
    log_begin(s->log, 5, &(struct log_saying){.position = {.floor = 7}});
    CU_ASSERT_EQUAL(log_facts(s->log)->epoch, 6);
    check_said(s, "appends", "append 1");
    CU_ASSERT_FALSE(log_take_committed(s->log, &record));
    log_check(s->log);
    log_appended(s->log, 0, 1);
    CU_ASSERT_TRUE(log_take_committed(s->log, &record));
    CU_ASSERT(record.n == 0 && record.sequence == 1 && record.tag == NULL);
    CU_ASSERT_EQUAL(log_facts(s->log)->floor, 7);
    CU_ASSERT_TRUE(log_is_open(s->log));
    end(s);
}

static void test_what_does_not_count_goes_first(void)
{
    struct stand *s = begin();
    store(s, RECORD_EPOCH_OPENED, 3, 0, 0);
    store(s, RECORD_POSITION, 3, 1, 0);
    store(s, RECORD_POSITION, 2, 9, 0); /* of an owner that is no more */
    store(s, RECORD_POSITION, 3, 3, 0); /* after a gap */
    log_open(s->log);
    listen(s);
    s->said.text[0] = '\0';
    give_tail(s, 1);
    check_said(s, "voids", "delete 3, delete 4");
    CU_ASSERT_EQUAL(log_state(s->log), LOG_REMOVING);
    log_deleted(s->log);
    CU_ASSERT_EQUAL_FATAL(log_state(s->log), LOG_FOUND);
    CU_ASSERT(log_found(s->log)->position.floor == 301 && log_found(s->log)->published == 1);
    log_begin(s->log, 1, &(struct log_saying){0});
    CU_ASSERT_EQUAL(log_facts(s->log)->epoch, 4);
    check_said(s, "behind them", "append 5");
    end(s);
}

static void test_tails_that_are_not_believed(void)
{
    struct stand *s = begin();
    store(s, RECORD_EPOCH_OPENED, 3, 0, 0);
    store(s, RECORD_POSITION, 4, 1, 0);
    log_open(s->log);
    give_tail(s, 1);
    CU_ASSERT_EQUAL_FATAL(log_state(s->log), LOG_LOST);
    CHECK_STR("a rival", log_why(s->log), "a rival opened the partition while its tail was read");
    log_reset(s->log);
    s->len = 1;
    store(s, RECORD_POSITION, 3, 6, 4); /* says that four were stored */
    log_open(s->log);
    give_tail(s, 1);
    CU_ASSERT_EQUAL_FATAL(log_state(s->log), LOG_LOST);
    CU_ASSERT_PTR_NOT_NULL(strstr(log_why(s->log), "lacks records that were acknowledged"));
    log_reset(s->log);
    listen(s);
    s->said.text[0] = '\0';
    s->len = 0;
    store(s, RECORD_POSITION, 3, 1, 0); /* in the place of an EpochOpened */
    log_open(s->log);
    give_tail(s, 1);
    check_said(s, "no EpochOpened", "read 1024, delete 1");
    log_deleted(s->log);
    check_said(s, "and again", "read 1024");
    CU_ASSERT_EQUAL(log_state(s->log), LOG_READING);
    end(s);
}

/* ---- appending ---- */

static void test_the_prefix_rule(void)
{
    struct stand *s = begin_open();
    for (size_t i = 0; i < 3; i++)
        append(s, i);
    check_said(s, "one behind the other", "append 2, append 3, append 4");
    acknowledge(s, 2);
    take(s);
    check_said(s, "not before the first", "");
    acknowledge(s, 1);
    take(s);
    check_said(s, "both", "committed 1, committed 2");
    CU_ASSERT(log_facts(s->log)->committed_n == 2 && log_facts(s->log)->floor == 11);
    acknowledge(s, 3);
    acknowledge(s, 3);
    take(s);
    take(s);
    check_said(s, "once", "committed 3");
    end(s);
}

static void test_behind_a_refused_one_nothing_is_committed(void)
{
    struct stand *s = begin_open();
    for (size_t i = 0; i < 3; i++)
        append(s, i);
    listen(s);
    s->said.text[0] = '\0';
    log_append_failed(s->log, 2, "refused");
    CU_ASSERT_EQUAL(log_state(s->log), LOG_FAILING);
    CU_ASSERT_FALSE(log_is_open(s->log));
    acknowledge(s, 3);
    take(s);
    check_said(s, "void", "");
    acknowledge(s, 1);
    take(s);
    check_said(s, "before it", "committed 1");
    CU_ASSERT_EQUAL_FATAL(log_state(s->log), LOG_LOST);
    CHECK_STR("why", log_why(s->log), "refused");
    acknowledge(s, 2);
    take(s);
    check_said(s, "nothing more", "");
    end(s);
}

static void test_a_record_elsewhere(void)
{
    struct stand *s = begin_open();
    append(s, 0);
    log_appended(s->log, 1, 9);
    take(s);
    CU_ASSERT_EQUAL_FATAL(log_state(s->log), LOG_LOST);
    CHECK_STR("why", log_why(s->log), "a record was stored at an unexpected sequence");
    log_reset(s->log);
    CU_ASSERT(log_state(s->log) == LOG_CLOSED && log_facts(s->log)->epoch == 0);
    end(s);
}

static void test_answers_to_nothing(void)
{
    struct stand *s = begin();
    log_tail(s->log, &(struct in_tail){0});
    log_deleted(s->log);
    log_appended(s->log, 0, 1);
    log_append_failed(s->log, 0, NULL);
    CU_ASSERT_EQUAL(log_state(s->log), LOG_CLOSED);
    check_said(s, "nothing", "");
    end(s);
    s = begin_open();
    append(s, 0);
    acknowledge(s, 0);
    acknowledge(s, 2);
    log_append_failed(s->log, 0, NULL);
    take(s);
    CU_ASSERT_TRUE(log_is_open(s->log));
    check_said(s, "only its own", "append 2");
    end(s);
}

/* A turn that does not fit into one record: the position and the lines are those of the last one. */
static void test_a_turn_in_parts(void)
{
    struct stand *s = begin_open();
    static uint8_t data[1024];
    struct event events[5];
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        events[i] = (struct event){.id = i + 1, .kind = EVENT_CUSTOM_STATUS_SET, .data = {data, sizeof data}};
    struct turn const turn = {.instance = THOLE_STR("a"),
                              .execution = 1,
                              .number = 1,
                              .ran = true,
                              .events = events,
                              .events_len = 5};
    struct turn_log const line = {.text = THOLE_STR("hello")};
    struct log_saying const saying = {.position = {.floor = 20}};
    size_t const n = log_append_turn(s->log, &turn, &line, 1, &saying, &tags[0]);
    CU_ASSERT_FATAL(n > 1 && n == log_facts(s->log)->in_flight);
    size_t events_seen = 0;
    for (size_t i = 1; i <= n; i++) {
        struct log_committed part;
        struct record record;
        acknowledge(s, i);
        CU_ASSERT_TRUE_FATAL(log_take_committed(s->log, &part));
        CU_ASSERT_EQUAL(record_decode(part.bytes, &s->arena, &record, NULL), THOLE_OK);
        CU_ASSERT_EQUAL(record.turn.more, i < n);
        CU_ASSERT_EQUAL(part.lines_len, i == n);
        CU_ASSERT_EQUAL(log_facts(s->log)->floor, i < n ? 7 : 20);
        CU_ASSERT_EQUAL(record.position.floor, i < n ? 0 : 20);
        events_seen += record.turn.events_len;
    }
    CU_ASSERT_EQUAL(events_seen, 5);
    end(s);
}

/* Whatever a turn has beside its events: none of its records is larger than one may be. */
static void test_each_text_of_a_turn_is_counted(void)
{
    static uint8_t text[1500], data[400];
    thole_slice const long_text = {memset(text, 'a', sizeof text), sizeof text};
    struct event events[20];
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        events[i] = (struct event){.id = i + 1, .kind = EVENT_CUSTOM_STATUS_SET, .data = {data, sizeof data}};
    struct turn turns[] = {{.blocked = BLOCKED_NO_CODE, .blocked_text = long_text},
                           {.orchestration = long_text},
                           {.trace.parent = long_text},
                           {.trace.list = long_text}};
    for (size_t row = 0; row < ARRAY_LEN(turns); row++) {
        struct stand *s = begin_open();
        struct partition_out out;
        struct log_saying const saying = {.position = {.floor = 20}};
        struct turn *const turn = &turns[row];
        turn->instance = THOLE_STR("a");
        turn->execution = turn->number = 1;
        turn->events = events;
        s->env.options.record_max = 4000;
        for (turn->events_len = 1; turn->events_len <= ARRAY_LEN(events); turn->events_len++)
            (void)log_append_turn(s->log, turn, NULL, 0, &saying, &tags[0]);
        while (env_poll(&s->env, &out))
            if (out.kind == PARTITION_OUT_APPEND)
                CU_ASSERT(out.append.bytes.len <= s->env.options.record_max);
        end(s);
    }
}

/* A reader of the tail counts on over removed records once a stored record says that the removal was
 * committed. */
static void test_what_is_confirmed(void)
{
    struct stand *s = begin_open();
    append(s, 0);
    acknowledge(s, 1);
    take(s);
    CU_ASSERT_EQUAL(log_facts(s->log)->confirmed_seq, 1); /* the record itself does not say so */
    append(s, 1);
    acknowledge(s, 2);
    take(s);
    CU_ASSERT_EQUAL(log_facts(s->log)->confirmed_seq, 2);
    end(s);
}

static void test_a_long_reason_is_cut(void)
{
    for (size_t more = 0; more <= 100; more++) {
        char text[400];
        struct stand *s = begin_open();
        size_t const most = sizeof s->log->why - 1;
        memset(text, 'w', most + more);
        text[most + more] = '\0';
        append(s, 0);
        log_append_failed(s->log, 1, text);
        CU_ASSERT_EQUAL_FATAL(log_state(s->log), LOG_LOST);
        CU_ASSERT_EQUAL(strlen(log_why(s->log)), most);
        text[most] = '\0';
        CHECK_STR("as much as there is room for", log_why(s->log), text);
        end(s);
    }
}

struct step {
    enum log_state from, to;
};

static void become(void *arg)
{
    const struct step *const step = arg;
    struct partition_log log = {.state = step->from};
    log_become(&log, step->to);
}

static void test_states_in_no_other_order(void)
{
    static struct step legal[] = {
        {LOG_CLOSED, LOG_READING}, {LOG_READING, LOG_READING}, {LOG_OPEN, LOG_FAILING}};
    static struct step illegal[] = {{LOG_CLOSED, LOG_OPEN},      {LOG_READING, LOG_OPENING},
                                    {LOG_REMOVING, LOG_OPENING}, {LOG_FOUND, LOG_OPEN},
                                    {LOG_OPENING, LOG_READING},  {LOG_OPEN, LOG_OPENING},
                                    {LOG_FAILING, LOG_OPEN},     {LOG_LOST, LOG_OPEN},
                                    {LOG_LOST, LOG_READING},     {LOG_FOUND, LOG_READING}};
    for (size_t i = 0; i < ARRAY_LEN(legal); i++)
        CU_ASSERT_FALSE(room_aborts(become, &legal[i]));
    for (size_t i = 0; i < ARRAY_LEN(illegal); i++)
        CU_ASSERT_TRUE(room_aborts(become, &illegal[i]));
}

static const struct thole_test tests[] = {
    {"log: states in no other order", test_states_in_no_other_order},
    {"log: a long reason is cut", test_a_long_reason_is_cut},
    {"log: an empty log", test_an_empty_log},
    {"log: what does not count goes first", test_what_does_not_count_goes_first},
    {"log: tails that are not believed", test_tails_that_are_not_believed},
    {"log: the prefix rule", test_the_prefix_rule},
    {"log: behind a refused one nothing is committed", test_behind_a_refused_one_nothing_is_committed},
    {"log: a record elsewhere", test_a_record_elsewhere},
    {"log: answers to nothing", test_answers_to_nothing},
    {"log: a turn in parts", test_a_turn_in_parts},
    {"log: each text of a turn is counted", test_each_text_of_a_turn_is_counted},
    {"log: what is confirmed", test_what_is_confirmed},
};
THOLE_TEST_MAIN("log room", tests)
