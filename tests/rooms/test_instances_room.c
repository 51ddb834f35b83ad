/* The instances in memory, alone: what comes for them, what they give to be recorded, what they say and when.
 */
#include "instances_stand.h"

/* ---- inputs and records ---- */

static void test_a_start(void)
{
    struct stand *s = begin();
    struct instances_record made;
    start(s, "i", "plain");
    CU_ASSERT_EQUAL(instances_pending(s->instances), 1);
    CU_ASSERT_FALSE(instances_run(s->instances, 0, &made)); /* the instance's history is not known yet */
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
    struct message unknown = {
        .kind = MESSAGE_ACTIVITY_RESULT, .execution = 1, .task = 9, .source.place.attempt = 1};
    give(s, &unknown, "i");
    CU_ASSERT_PTR_NULL(record(s, "of an activity that is not there", ""));
    CU_ASSERT_EQUAL(instances_inbox(s->instances)->floor, 2); /* and incorporated */
    struct message result = {
        .kind = MESSAGE_ACTIVITY_RESULT, .execution = 1, .task = 2, .source.place.attempt = 1};
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

/* Only the answer to the last LOAD of an entry is taken. */
static void test_a_history_that_was_not_asked_for(void)
{
    struct stand *s = begin();
    struct in_history const nothing = {.instance = THOLE_STR("i")};
    start(s, "i", "plain");
    struct entry *const entry = entries_find(&s->instances->entries, nothing.instance);
    CU_ASSERT_PTR_NOT_NULL_FATAL(entry);
    CU_ASSERT_TRUE(instances_history(s->instances, entry->token + 1, &nothing, &s->log));
    CU_ASSERT_EQUAL(entry->state, ENTRY_LOADING);
    check_said(s, "its own", "load i");
    CU_ASSERT_EQUAL(entry->state, ENTRY_ABSENT);
    CU_ASSERT_TRUE(instances_history(s->instances, entry->token, &nothing, &s->log));
    (void)record(s, "once", "1.1 ran; #1 Started plain@1(); #2 ActivityScheduled work()");
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

static void list_ids(struct stand *s, const char *id, bool all)
{
    uint64_t const hash = instance_id_hash(thole_slice_from(id));
    instances_ids(s->instances, &(struct in_ids){&hash, 1, all});
}

static struct stand *begin_with_ids(size_t most)
{
    struct stand *s = begin();
    s->env.options.known_max = most;
    return s;
}

static const char *const STARTS = "1.1 ran; #1 Started plain@1(); #2 ActivityScheduled work()";

static void test_who_is_new_is_not_looked_up(void)
{
    struct stand *s = begin_with_ids(1000);
    start(s, "before", "plain");
    check_said(s, "nobody knows which there are", "load before");
    (void)record(s, "before", STARTS);
    list_ids(s, "old", true);
    start(s, "new", "plain");
    check_said(s, "it is none of them", "");
    struct entry *entry = record(s, "new", STARTS);
    start(s, "old", "plain");
    check_said(s, "it is", "load old");
    (void)record(s, "old", STARTS);
    give(s, &(struct message){.kind = MESSAGE_EVENT, .event_name = THOLE_STR("e")}, "other");
    check_said(s, "nor is it asked to start", "load other");
    (void)record(s, "other", "0.1 waits; #1 EventReceived e()");
    CU_ASSERT_EQUAL(instances_records_in_flight(s->instances), 4);
    CU_ASSERT_FALSE(entry->counted.name);
    end(s);
}

/* Ids that this owner records are known from then on, also when the list that comes later lacks them. */
static void test_what_was_recorded_since_is_known(void)
{
    struct stand *s = begin_with_ids(1000);
    s->env.options.parked_max = 0;
    start(s, "early", "plain");
    check_said(s, "not known yet", "load early");
    struct entry *const early = record(s, "early", STARTS);
    list_ids(s, "old", true);
    start(s, "late", "plain");
    check_said(s, "it is new", "");
    struct entry *const late = record(s, "late", STARTS);
    commit(s, early);
    commit(s, late);
    instances_evict(s->instances);
    CU_ASSERT_EQUAL(s->instances->entries.lru.len, 0);
    start(s, "early", "plain");
    start(s, "late", "plain");
    check_said(s, "both are loaded", "load early, load late");
    end(s);
}

static void test_too_many_to_know(void)
{
    struct stand *s = begin_with_ids(1);
    list_ids(s, "old", false);
    start(s, "new", "plain");
    check_said(s, "not all were listed", "load new");
    end(s);
    s = begin_with_ids(1);
    instances_ids(s->instances, &(struct in_ids){.all = true});
    start(s, "new", "plain");
    check_said(s, "all were: none", "");
    (void)record(s, "new", STARTS);
    CU_ASSERT_FALSE(s->instances->known.given_up);
    start(s, "second", "plain");
    check_said(s, "nor this one", "");
    (void)record(s, "second", STARTS);
    CU_ASSERT(s->instances->known.given_up && s->instances->known.cap == 0);
    start(s, "newer", "plain");
    check_said(s, "now there are more than are kept", "load newer");
    list_ids(s, "old", true);
    start(s, "newest", "plain");
    check_said(s, "for good", "load newest");
    end(s);
}

/* None is lost while the set grows. */
static void test_many_are_known(void)
{
    enum { MANY = 20000 };
    struct stand *s = begin_with_ids(MANY);
    uint64_t *hashes = malloc(MANY * sizeof *hashes);
    char id[16];
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "i-%d", i);
        hashes[i] = instance_id_hash(thole_slice_from(id));
        if (i % 2 == 0)
            known_ids_add(s->instances, thole_slice_from(id));
    }
    CU_ASSERT_TRUE(known_ids_has(s->instances, THOLE_STR("other"))); /* as far as is known */
    instances_ids(s->instances, &(struct in_ids){hashes, MANY, true});
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "i-%d", i);
        CU_ASSERT_TRUE(known_ids_has(s->instances, thole_slice_from(id)));
    }
    CU_ASSERT_FALSE(known_ids_has(s->instances, THOLE_STR("other")));
    CU_ASSERT(s->instances->known.len == MANY && s->instances->known.cap * sizeof *hashes <= MANY * 22);
    instances_reset(s->instances);
    CU_ASSERT_TRUE(known_ids_has(s->instances, THOLE_STR("other"))); /* another epoch, another list */
    free(hashes);
    end(s);
}

static void test_what_cannot_be_taken(void)
{
    struct stand *s = begin();
    struct in_message const in = {.sequence = 1, .instance = THOLE_STR("i"), .bytes = THOLE_STR("\xff")};
    CU_ASSERT_TRUE(instances_message(s->instances, &in));
    check_said(s, "is given out", "malformed i");
    CU_ASSERT(instances_inbox(s->instances)->floor == 0 && !instances_quiet(s->instances));
    instances_rejected(s->instances, s->rejection);
    CU_ASSERT(instances_inbox(s->instances)->floor == 1 && instances_quiet(s->instances));
    end(s);
}

/* A start that says that `bob` asks, of a sender of whom the reader knows what @p sender says. */
static void start_by(struct stand *s, const char *id, const char *route, struct actor sender)
{
    struct buf bytes;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    struct message const start = {.kind = MESSAGE_START,
                                  .instance = thole_slice_from(id),
                                  .orchestration = THOLE_STR("plain"),
                                  .source.actor = {.name = THOLE_STR("bob"),
                                                   .client = THOLE_STR("desk 7"),
                                                   .authenticated = true}}; /* which no message says */
    CU_ASSERT_EQUAL(message_encode(&start, &bytes), THOLE_OK);
    struct in_message const in = {.sequence = ++s->inbox,
                                  .instance = start.instance,
                                  .route = thole_slice_from(route),
                                  .bytes = buf_bytes(&bytes),
                                  .sender = sender};
    CU_ASSERT_TRUE(instances_message(s->instances, &in));
    buf_release(&bytes);
}

/* A name in the subject wins, and only that one is vouched for. */
static void test_who_asks(void)
{
    struct {
        const char *row;
        struct actor sender;
        const char *name;
        bool vouched;
    } const rows[] = {
        {"stated", {.name = THOLE_STR("carol")}, "bob", false},
        {"nothing else", {.name = {NULL, 0}}, "bob", false},
        {"vouched for", {.name = THOLE_STR("alice"), .authenticated = true}, "alice", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct stand *s = begin();
        struct instances_record made;
        char name[32];
        start_by(s, "i", "start.plain", rows[i].sender);
        check_said(s, "its history", "load i");
        (void)run(s, &made);
        const struct event_source *const source = made.turn->events[0].source;
        CU_ASSERT_PTR_NOT_NULL_FATAL(source);
        (void)snprintf(name, sizeof name, "%.*s", THOLE_FMT(source->actor.name));
        CHECK_STR(rows[i].row, name, rows[i].name);
        CU_ASSERT_EQUAL(source->actor.authenticated, rows[i].vouched);
        CU_ASSERT_TRUE(thole_slice_equal(source->actor.client, THOLE_STR("desk 7")));
        append(s, &made);
        end(s);
    }
}

static void test_who_asks_for_what_cannot_be_taken(void)
{
    struct stand *s = begin();
    start_by(s, "i", "start.other", (struct actor){.name = THOLE_STR("alice"), .authenticated = true});
    check_said(s, "with its subject", "route i, of alice");
    start_by(s, "i", "start.other", (struct actor){.name = THOLE_STR("alice")});
    check_said(s, "with its subject", "route i");
    end(s);
}

/* ---- several results in one message ---- */

/* As a worker sends it: a part of the last message, whose first part has a sequence of its own. Whether it is
 * taken. */
static bool give_part(struct stand *s, uint32_t part, uint32_t parts, const struct message *result)
{
    struct buf bytes;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    CU_ASSERT_EQUAL(message_encode(result, &bytes), THOLE_OK);
    struct in_message const in = {.sequence = s->inbox,
                                  .stored_ns = 77,
                                  .part = part,
                                  .parts = parts,
                                  .instance = result->instance,
                                  .route = THOLE_STR("result.worker"),
                                  .bytes = buf_bytes(&bytes)};
    bool const taken = instances_message(s->instances, &in);
    buf_release(&bytes);
    return taken;
}

static struct message result_of(const char *id, struct nonce *room)
{
    struct message const result = {.kind = MESSAGE_ACTIVITY_RESULT,
                                   .instance = thole_slice_from(id),
                                   .execution = 1,
                                   .task = 2,
                                   .try_number = 1,
                                   .source.place.attempt = 1};
    return test_with_nonce(&result, room);
}

/* Each has begun, and waits for its activity. */
static void begin_instances(struct stand *s, const char *const *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        start(s, ids[i], "plain");
        listen(s);
        commit(s, record(s, ids[i], STARTS));
    }
    listen(s);
    said_clear(&s->said);
}

static const char *const two[] = {"i", "j"};
static const char *const ENDS = "1.2 ran; #3 ActivityCompleted #2 (); #4 Completed ()";

/* Until the last of them is recorded the position says that the message is to be read again. */
static void test_parts_for_two_instances(void)
{
    struct stand *s = begin();
    struct nonce rooms[2];
    struct message const i = result_of("i", &rooms[0]), j = result_of("j", &rooms[1]);
    begin_instances(s, two, ARRAY_LEN(two));
    s->inbox++;
    CU_ASSERT_TRUE(give_part(s, 0, 2, &i));
    CU_ASSERT_TRUE(give_part(s, 1, 2, &j));
    CU_ASSERT_EQUAL(instances_pending(s->instances), 2);
    struct instances_record made;
    const char *turn = run(s, &made);
    CHECK_STR("the first", turn, ENDS);
    CU_ASSERT(made.turn != NULL && thole_slice_equal(made.turn->instance, i.instance));
    CU_ASSERT(instances_inbox(s->instances)->floor == 2 && !instances_inbox(s->instances)->dirty);
    append(s, &made);
    turn = run(s, &made);
    CHECK_STR("the second", turn, ENDS);
    CU_ASSERT(made.turn != NULL && thole_slice_equal(made.turn->instance, j.instance));
    CU_ASSERT(instances_inbox(s->instances)->floor == 3 && instances_inbox(s->instances)->dirty);
    append(s, &made);
    end(s);
}

/* The next message is incorporated before it, and stands above the floor. */
static void test_a_part_that_waits(void)
{
    struct stand *s = begin();
    struct nonce rooms[3];
    struct message const i = result_of("i", &rooms[0]), j = result_of("j", &rooms[1]),
                         unknown = result_of("unknown", &rooms[2]);
    begin_instances(s, two, ARRAY_LEN(two));
    s->inbox++;
    CU_ASSERT_TRUE(give_part(s, 0, 3, &i) && give_part(s, 1, 3, &i)); /* comes twice: changes nothing */
    CU_ASSERT_TRUE(give_part(s, 2, 3, &unknown));                     /* whose history is not there yet */
    s->inbox++;
    CU_ASSERT_TRUE(give_part(s, 0, 0, &j));
    (void)record(s, "i", ENDS);
    (void)record(s, "j", ENDS);
    const struct progress *const inbox = instances_inbox(s->instances);
    CU_ASSERT(inbox->floor == 2 && progress_has(inbox, 4) && !progress_has(inbox, 3));
    check_said(s, "looked up", "load unknown");
    (void)record(s, "it is not there", "");
    CU_ASSERT(inbox->floor == 4 && inbox->ranges_len == 0);
    end(s);
}

/* A flaw in one part does not affect the others; the message counts when it is kept. */
static void test_a_part_that_cannot_be_taken(void)
{
    struct stand *s = begin();
    struct nonce rooms[2];
    struct message const i = result_of("i", &rooms[0]);
    struct message j = result_of("j", &rooms[1]);
    begin_instances(s, two, ARRAY_LEN(two));
    j.nonce = i.nonce; /* nonce of another */
    s->inbox++;
    CU_ASSERT_TRUE(give_part(s, 0, 2, &i) && give_part(s, 1, 2, &j));
    check_said(s, "is given out", "nonce j, part 1");
    commit(s, record(s, "i", ENDS));
    CU_ASSERT_EQUAL(instances_inbox(s->instances)->floor, 2);
    CU_ASSERT_FALSE(instances_quiet(s->instances));
    instances_rejected(s->instances, s->rejection);
    CU_ASSERT_EQUAL(instances_inbox(s->instances)->floor, 3);
    CU_ASSERT_TRUE(instances_quiet(s->instances));
    end(s);
}

/* The parts of what is incorporated, or was given before, are not taken again. */
static void test_parts_that_came_before(void)
{
    struct stand *s = begin();
    struct nonce rooms[2];
    struct message const i = result_of("i", &rooms[0]), j = result_of("j", &rooms[1]);
    begin_instances(s, two, ARRAY_LEN(two));
    s->inbox = 1; /* a start's */
    CU_ASSERT_FALSE(give_part(s, 0, 2, &i) || give_part(s, 1, 2, &j));
    s->inbox = 3;
    CU_ASSERT_FALSE(give_part(s, 1, 2, &j)); /* the first part has not come */
    CU_ASSERT_EQUAL(instances_pending(s->instances), 0);
    CU_ASSERT_TRUE(give_part(s, 0, 2, &i) && give_part(s, 1, 2, &j));
    CU_ASSERT_FALSE(give_part(s, 0, 2, &i));
    s->inbox = 2;
    CU_ASSERT_FALSE(give_part(s, 1, 2, &j));
    CU_ASSERT_EQUAL(instances_pending(s->instances), 2);
    (void)record(s, "i", ENDS);
    (void)record(s, "j", ENDS);
    CU_ASSERT_EQUAL(instances_inbox(s->instances)->floor, 3);
    end(s);
}

/* A message whose parts all come twice is taken once. */
static void test_parts_that_come_twice(void)
{
    struct stand *s = begin();
    struct nonce rooms[2];
    struct message const i = result_of("i", &rooms[0]), j = result_of("j", &rooms[1]);
    begin_instances(s, two, ARRAY_LEN(two));
    s->inbox++;
    CU_ASSERT_TRUE(give_part(s, 0, 2, &i) && give_part(s, 1, 2, &j));
    CU_ASSERT_FALSE(give_part(s, 0, 2, &i));
    CU_ASSERT_FALSE(give_part(s, 1, 2, &j));
    CU_ASSERT_EQUAL(instances_pending(s->instances), 2);
    end(s);
}

/* An inbox is read from a position, above which a message is incorporated already. */
static void test_parts_above_the_position(void)
{
    struct stand *s = begin();
    struct sequence_range const above[] = {{2, 2}};
    struct nonce rooms[2];
    struct message const i = result_of("i", &rooms[0]), j = result_of("j", &rooms[1]);
    struct position const position = {.ranges = above, .ranges_len = 1};
    instances_set_inbox(s->instances, &position);
    s->inbox = 2;
    CU_ASSERT_TRUE(give_part(s, 0, 2, &i) && give_part(s, 1, 2, &j));
    CU_ASSERT_EQUAL(instances_pending(s->instances), 0);
    check_said(s, "nothing", "");
    CU_ASSERT_EQUAL(instances_inbox(s->instances)->floor, 2); /* there is no first one */
    end(s);
}

static const struct thole_test tests[] = {
    {"instances: a start", test_a_start},
    {"instances: what changes nothing is not recorded", test_what_changes_nothing_is_not_recorded},
    {"instances: without code", test_without_code},
    {"instances: what comes before its instance", test_what_comes_before_its_instance},
    {"instances: a history that was not asked for", test_a_history_that_was_not_asked_for},
    {"instances: questions", test_questions},
    {"instances: what cannot be taken", test_what_cannot_be_taken},
    {"instances: who asks", test_who_asks},
    {"instances: who asks for what cannot be taken", test_who_asks_for_what_cannot_be_taken},
    {"instances: who is new is not looked up", test_who_is_new_is_not_looked_up},
    {"instances: what was recorded since is known", test_what_was_recorded_since_is_known},
    {"instances: too many to know", test_too_many_to_know},
    {"instances: many are known", test_many_are_known},
    {"instances: parts for two instances", test_parts_for_two_instances},
    {"instances: a part that waits", test_a_part_that_waits},
    {"instances: a part that cannot be taken", test_a_part_that_cannot_be_taken},
    {"instances: parts that came before", test_parts_that_came_before},
    {"instances: parts that come twice", test_parts_that_come_twice},
    {"instances: parts above the position", test_parts_above_the_position},
};
THOLE_TEST_MAIN("instances room", tests)
