/*
 * How the ownership of a partition ends, from each phase and for each reason; and what a partition makes of
 * what it may not take: too many events for nobody, decisions about what it cannot read, histories that make
 * no sense, records of a newer version.
 */
#include "history.pb-c.h"
#include "partition_stage.h"
#include "thole_cunit.h"
#include <string.h>

static thole_status takes(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (size_t i = 0; i <= 10000; i++)
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), NULL));
    *ret_output = input;
    return thole_await(ctx, thole_event(ctx, THOLE_STR("other")), NULL);
}

static const thole_orchestration_entry entries[] = {{"plain", stage_calls, 0}, {"takes", takes, 0}};

static struct stage *begin(void)
{
    struct stage *const s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "i", "plain");
    (void)stage_said(s);
    return s;
}

static void ask(struct stage *s, const struct partition_in *from)
{
    struct partition_in in = *from;
    in.generation = partition_generation(s->p);
    CU_ASSERT_EQUAL(partition_input(s->p, &in, s->now_ms), THOLE_OK);
    stage_run(s);
}

static void rival(struct stage *s, uint64_t epoch)
{
    ask(s, &(struct partition_in){.kind = PARTITION_IN_RIVAL, .rival = {epoch}});
}

static void check_closed(struct stage *s, const char *why, uint64_t epoch, uint64_t records, bool for_good)
{
    CHECK_STR("closed", s->closed, why);
    CU_ASSERT_EQUAL(s->closed_epoch, epoch);
    CU_ASSERT_EQUAL(s->closed_records, records);
    CU_ASSERT_EQUAL(s->closed_for_good, for_good);
    s->closed[0] = '\0';
}

/* ---- rivals ---- */

static void only_a_newer_rival_ends_it(void)
{
    struct stage *s = begin();
    rival(s, 1); /* the owner's own epoch */
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_OPEN);
    rival(s, 2);
    check_closed(s, "a rival opens the partition", 1, 1, false);
    rival(s, 3);
    CHECK_STR("it is closed", s->closed, "");
    stage_end(s);
}

/* A rival appears while the partition finishes its appends. Stored records are reported with the end. */
static void a_rival_while_it_closes(void)
{
    struct stage *s = begin();
    s->hold_appends = true;
    stage_complete(s, "i", 2, THOLE_STR("done"));
    ask(s, &(struct partition_in){.kind = PARTITION_IN_CLOSE});
    rival(s, 2);
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_CLOSING);
    CHECK_STR("not yet", s->closed, "");
    stage_release(s);
    check_closed(s, "a rival opens the partition", 1, 2, false);
    stage_end(s);
}

static void a_rival_while_it_opens_is_found_in_the_log(void)
{
    struct stage *s = begin();
    ask(s, &(struct partition_in){.kind = PARTITION_IN_CLOSE});
    stage_settle(s);
    s->closed[0] = '\0';
    s->hold_live = true;
    stage_open(s);
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_OPENING);
    rival(s, 99);
    CHECK_STR("it goes on", s->closed, "");
    stage_release(s);
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_OPEN);
    stage_end(s);
}

/* ---- the end of a request ---- */

static void closed_while_it_opens(void)
{
    struct stage *s = begin();
    ask(s, &(struct partition_in){.kind = PARTITION_IN_CLOSE});
    stage_settle(s);
    s->hold_live = true;
    stage_open(s);
    ask(s, &(struct partition_in){.kind = PARTITION_IN_CLOSE});
    check_closed(s, "handed over while opening", 2, 0, true);
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_CLOSED);
    ask(s, &(struct partition_in){.kind = PARTITION_IN_CLOSE});
    CHECK_STR("once", s->closed, "");
    stage_release(s); /* an answer of then */
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_CLOSED);
    stage_end(s);
}

/* The first reason counts, as much of it as there is room for. */
static void a_long_reason(void)
{
    enum { ROOM = 159 };
    char why[400];
    struct stage *s = begin();
    memset(why, 'w', sizeof why - 1);
    why[sizeof why - 1] = '\0';
    s->hold_appends = true;
    stage_complete(s, "i", 2, THOLE_STR("done"));
    ask(s, &(struct partition_in){.kind = PARTITION_IN_STEP_DOWN, .step_down = {why}});
    ask(s, &(struct partition_in){.kind = PARTITION_IN_STEP_DOWN, .step_down = {"another"}});
    stage_release(s);
    why[ROOM] = '\0';
    check_closed(s, why, 1, 2, false);
    stage_open(s);
    s->hold_appends = true;
    stage_start(s, "j", "plain");
    ask(s, &(struct partition_in){.kind = PARTITION_IN_STEP_DOWN});
    stage_release(s);
    check_closed(s, "", 2, 1, false); /* nothing is left of the last time */
    stage_end(s);
}

/* Records stored before the failed append are committed; later ones never are. */
static void an_append_fails(void)
{
    struct stage *s = begin();
    s->hold_appends = true;
    stage_start(s, "a", "plain");
    stage_start(s, "b", "plain");
    stage_start(s, "c", "plain");
    CU_ASSERT_EQUAL_FATAL(s->held_len, 3);
    s->held[1].kind = PARTITION_IN_APPEND_FAILED;
    s->held[1].append_failed.text = "the server said no";
    stage_release(s);
    check_closed(s, "the server said no", 1, 2, false);
    stage_end(s);
}

/* ---- refused messages ---- */

static void tell_the_most(struct stage *s, const char *instance)
{
    enum { MOST = 10000 };
    char text[16];
    s->hold_loads = true; /* so that not each is a turn of its own */
    for (int i = 0; i < MOST; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        stage_tell(s, instance, MESSAGE_EVENT, text);
    }
    stage_release(s);
    s->hold_loads = false;
}

static void too_many_events_for_nobody(void)
{
    struct stage *s = begin();
    tell_the_most(s, "nobody");
    stage_check_said(s, "all are kept", "");
    stage_tell(s, "nobody", MESSAGE_EVENT, "7"); /* exists */
    stage_check_said(s, "a repetition", "");
    stage_tell(s, "nobody", MESSAGE_EVENT, "more");
    stage_check_said(s, "one more",
                     "rejected too_many nobody: too many events wait for this instance, which does not "
                     "exist\n"
                     "notice rejected nobody, too_many: too many events wait for this instance, which does "
                     "not exist\n");
    stage_end(s);
}

/* The limit is that of those that come before the start. Nothing else is refused, and a repetition is none.
 */
static void too_many_events_for_code_that_does_not_take_them(void)
{
    struct stage *s = begin();
    tell_the_most(s, "deaf");
    stage_start(s, "deaf", "plain");
    (void)stage_said(s);
    stage_tell(s, "deaf", MESSAGE_EVENT, "7");
    stage_check_said(s, "a repetition", "");
    stage_tell(s, "deaf", MESSAGE_EVENT, "more");
    stage_check_said(
        s, "one more",
        "rejected too_many deaf: 10000 events wait for this instance, which does not take them; it "
        "keeps 10000, or 8 MiB of their data\n"
        "notice rejected deaf, too_many: 10000 events wait for this instance, which does not take them; it "
        "keeps 10000, or 8 MiB of their data\n");
    stage_again(s);
    (void)stage_said(s);
    stage_tell(s, "deaf", MESSAGE_EVENT, "more");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "rejected too_many deaf: 10000 events"));
    stage_tell(s, "deaf", MESSAGE_TERMINATE, "enough");
    CU_ASSERT_PTR_NULL(strstr(stage_said(s), "rejected"));
    stage_end(s);
}

static void code_that_takes_events_gets_any_number(void)
{
    struct stage *s = begin();
    tell_the_most(s, "keen");
    stage_start(s, "keen", "takes");
    (void)stage_said(s);
    for (int i = 0; i < 3; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "more-%d", i);
        stage_tell(s, "keen", MESSAGE_EVENT, text);
        CU_ASSERT_PTR_NULL(strstr(stage_said(s), "rejected"));
    }
    stage_end(s);
}

/* ---- large messages ---- */

enum { LARGE = 200000 };

static void start_large(struct stage *s, size_t n)
{
    static uint8_t input[LARGE];
    char id[32];
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(id, sizeof id, "large-%zu", i);
        struct message const message = {.kind = MESSAGE_START,
                                        .instance = thole_slice_from(id),
                                        .orchestration = THOLE_STR("takes"),
                                        .data = {input, sizeof input}};
        stage_message(s, &message);
    }
}

/* Fewer than the window has room for: they are large. What waits meanwhile is counted, too. */
static void appends_in_flight_are_counted_in_bytes(void)
{
    struct stage *s = begin();
    s->hold_appends = true;
    start_large(s, 100);
    CU_ASSERT_EQUAL(s->held_len, 16 * 1024 * 1024 / LARGE + 1);
    CU_ASSERT_EQUAL(partition_pending(s->p), 100 - s->held_len);
    CU_ASSERT_TRUE(partition_pending_bytes(s->p) >= partition_pending(s->p) * LARGE);
    s->hold_appends = false;
    stage_release(s);
    CU_ASSERT_EQUAL(partition_pending(s->p), 0);
    CU_ASSERT_EQUAL(partition_pending_bytes(s->p), 0);
    stage_end(s);
}

static void what_waits_for_the_rows_is_counted_in_bytes(void)
{
    struct stage *s = begin();
    s->hold_applied = true;
    start_large(s, 300);
    size_t const waiting = partition_pending(s->p);
    CU_ASSERT_TRUE(waiting > 300 - 32 * 1024 * 1024 / LARGE - 5 && waiting < 300 - 100);
    s->hold_applied = false;
    stage_release(s);
    CU_ASSERT_EQUAL(partition_pending(s->p), 0);
    stage_end(s);
}

/* Neither what is in quarantine nor which executions there are can be known. */
static void decisions_about_what_cannot_be_read(void)
{
    struct stage *s = begin();
    stage_again(s);
    s->log[1].bytes = THOLE_STR("\xff\xff"); /* the turn */
    stage_message(s, &(struct message){.kind = MESSAGE_PRUNE,
                                       .instance = THOLE_STR("i"),
                                       .execution = 5,
                                       .request_id = THOLE_STR("r")});
    stage_check_said(s, "prune",
                     "rejected unreadable i: the instance's history cannot be read here, so it is not "
                     "pruned\n");
    stage_end(s);
}

static void forge(struct stage *s, const struct event *events, size_t n)
{
    struct record record = {.kind = RECORD_TURN, .epoch = 1, .n = 2, .committed = 1};
    record.turn = (struct turn){.instance = THOLE_STR("i"),
                                .execution = 1,
                                .number = 2,
                                .ran = true,
                                .events = events,
                                .events_len = n};
    stage_forge(s, &record);
}

/* Not even without code: it is kept, and says why, as often as it is read. */
static void a_history_that_makes_no_sense(void)
{
    struct event const event = {
        .id = 3, .kind = EVENT_ACTIVITY_COMPLETED, .ref = 77, .try_number = 1, .data = THOLE_STR("x")};
    struct stage *s = begin();
    ask(s, &(struct partition_in){.kind = PARTITION_IN_CLOSE});
    stage_settle(s);
    forge(s, &event, 1);
    stage_again(s);
    (void)stage_said(s);
    stage_query(s, "i", "how");
    const char *const said = stage_said(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "answer INVALID: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "77"));
    stage_tell(s, "i", MESSAGE_EVENT, "more");
    stage_query(s, "i", "how");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "77"));
    stage_tell(s, "i", MESSAGE_TERMINATE, "give up");
    stage_check_said(s, "terminated", "notice terminated i\n");
    stage_end(s);
}

/* ---- records of a newer version ---- */

static void make_newer(struct stage *s, size_t at)
{
    thole_slice const old = s->log[at].bytes;
    Thole__V1__Record *pb = thole__v1__record__unpack(NULL, old.len, old.ptr);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pb);
    uint8_t *bytes = arena_alloc(&s->arena, old.len + 16);
    pb->format = 1000;
    s->log[at].bytes = (thole_slice){bytes, thole__v1__record__pack(pb, bytes)};
    thole__v1__record__free_unpacked(pb, NULL);
}

static void a_newer_version_owned_it(void)
{
    struct stage *s = begin();
    ask(s, &(struct partition_in){.kind = PARTITION_IN_CLOSE});
    stage_settle(s);
    s->closed[0] = '\0';
    make_newer(s, 0); /* the EpochOpened */
    stage_open(s);
    check_closed(s, "the history was written by a newer version of thole", 0, 0, false);
    stage_end(s);
}

/* A turn older than the tail is found when the rows are made again. Its instance alone waits for that
 * version. */
static void a_newer_version_wrote_a_turn(void)
{
    struct stage *s = begin();
    ask(s, &(struct partition_in){.kind = PARTITION_IN_CLOSE});
    stage_settle(s);
    stage_open(s); /* a second epoch: the turn lies before it */
    ask(s, &(struct partition_in){.kind = PARTITION_IN_CLOSE});
    stage_settle(s);
    s->closed[0] = '\0';
    make_newer(s, 1);
    stage_open(s);
    CHECK_STR("why", s->closed, "");
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_OPEN);
    (void)stage_said(s);
    stage_query(s, s->log[1].instance, "where");
    stage_check_said(s, "asked", "answer INVALID: the history was written by a newer version of thole\n");
    stage_end(s);
}

static const struct thole_test tests[] = {
    {"only a newer rival ends it", only_a_newer_rival_ends_it},
    {"a rival while it closes", a_rival_while_it_closes},
    {"a rival while it opens is found in the log", a_rival_while_it_opens_is_found_in_the_log},
    {"closed while it opens", closed_while_it_opens},
    {"a long reason", a_long_reason},
    {"an append fails", an_append_fails},
    {"too many events for nobody", too_many_events_for_nobody},
    {"too many events for code that does not take them", too_many_events_for_code_that_does_not_take_them},
    {"code that takes events gets any number", code_that_takes_events_gets_any_number},
    {"appends in flight are counted in bytes", appends_in_flight_are_counted_in_bytes},
    {"what waits for the rows is counted in bytes", what_waits_for_the_rows_is_counted_in_bytes},
    {"decisions about what cannot be read", decisions_about_what_cannot_be_read},
    {"a history that makes no sense", a_history_that_makes_no_sense},
    {"a newer version owned it", a_newer_version_owned_it},
    {"a newer version wrote a turn", a_newer_version_wrote_a_turn},
};
THOLE_TEST_MAIN("partition ends", tests)
