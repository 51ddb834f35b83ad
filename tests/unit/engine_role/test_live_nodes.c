/* Which engines are there, from heartbeats, answers and a clock that the test makes up. */
#include "live_nodes.h"
#include "thole_cunit.h"
#include <stdlib.h>

enum { PARTITIONS = 16, TTL_MS = 9000, ASK_MS = 3000, NS_PER_MS = 1000000 };

static struct {
    struct live_nodes *live;
    uint64_t now_ms;
    unsigned asked, said[LIVE_FULL + 1];
    char last[THOLE_NAME_BYTES_MAX + 1]; /* the node asked last */
    bool cut_off, takes_results;         /* the latter of those whose heartbeats are made now */
    bool reads_ranges, reads_references; /* likewise */
} play;

static bool on_ask(void *arg, thole_slice node)
{
    (void)arg;
    play.asked++;
    (void)snprintf(play.last, sizeof play.last, "%.*s", THOLE_FMT(node));
    return !play.cut_off;
}

static void on_say(void *arg, enum live_line line, thole_slice node, const char *why)
{
    (void)arg, (void)node, (void)why;
    play.said[line]++;
}

static const thole_slice names[] = {{(const uint8_t *)"order", 5}, {(const uint8_t *)"ship", 4}};

/* A heartbeat of the process that began at @p started_ms, with the first names. */
static struct buf beat(const char *node, uint64_t started_ms, size_t names_len)
{
    struct buf body;
    struct heartbeat const heartbeat = {.node = thole_slice_from(node),
                                        .started_ms = started_ms,
                                        .orchestrations = names,
                                        .orchestrations_len = names_len,
                                        .takes_results = play.takes_results,
                                        .reads_ranges = play.reads_ranges,
                                        .reads_references = play.reads_references};
    buf_init(&body, 4096);
    CU_ASSERT_EQUAL(heartbeat_encode(&heartbeat, &body), THOLE_OK);
    return body;
}

static bool hear_bytes(const char *node, thole_slice bytes)
{
    return live_heard(
        play.live, &(struct live_entry){thole_slice_from(node), bytes, play.now_ms * NS_PER_MS, play.now_ms});
}

static void hear(const char *node, uint64_t started_ms, size_t names_len)
{
    struct buf body = beat(node, started_ms, names_len);
    (void)hear_bytes(node, buf_bytes(&body));
    buf_release(&body);
}

static void answer(const char *node, uint64_t started_ms, size_t names_len)
{
    struct buf body = beat(node, started_ms, names_len);
    struct tagged_hash const hash = live_hash(buf_bytes(&body));
    live_answered(play.live, thole_slice_from(node), thole_slice_from(hash.text), play.now_ms);
    buf_release(&body);
}

static void nobody(const char *node)
{
    live_answered(play.live, thole_slice_from(node), (thole_slice){NULL, 0}, play.now_ms);
}

static bool removed(const char *node)
{
    return hear_bytes(node, (thole_slice){NULL, 0});
}

static const struct member *is_there(const char *node)
{
    return live_find(play.live, thole_slice_from(node));
}

/* Time passes in small steps; b and the own heartbeat are heard all the while, b answers or not. */
static void pass(uint64_t ms, bool b_answers)
{
    for (uint64_t const until = play.now_ms + ms; play.now_ms < until;) {
        unsigned const asked = play.asked;
        play.now_ms += 500;
        hear("a", 1, 2);
        hear("b", 7, 2);
        live_step(play.live, play.now_ms);
        if (b_answers && play.asked > asked)
            answer("b", 7, 2);
    }
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    play.now_ms = 100000;
    play.live =
        live_create(THOLE_STR("a"), PARTITIONS, TTL_MS, ASK_MS, &(struct live_calls){on_ask, on_say, NULL});
    struct buf own = beat("a", 1, 2);
    struct tagged_hash const hash = live_hash(buf_bytes(&own));
    buf_release(&own);
    live_stand_by(play.live, &hash);
    hear("a", 1, 2);
    CU_ASSERT_PTR_NOT_NULL(is_there("a"));
    CU_ASSERT_EQUAL(play.asked, 0);
}

static void begin_with_b(void)
{
    begin();
    hear("b", 7, 2);
    CU_ASSERT_EQUAL(play.asked, 1);
    CHECK_STR("who", play.last, "b");
    CU_ASSERT_PTR_NULL(is_there("b"));
    answer("b", 7, 2);
    CU_ASSERT_PTR_NOT_NULL(is_there("b"));
}

static void end(void)
{
    live_destroy(play.live);
}

/* ---- tests ---- */

static void test_who_answers_is_there(void)
{
    begin_with_b();
    pass(5 * TTL_MS, true);
    CU_ASSERT_PTR_NOT_NULL(is_there("b"));
    CU_ASSERT_TRUE(play.asked >= 5 * TTL_MS / ASK_MS - 2 && play.asked <= 5 * TTL_MS / ASK_MS + 2);
    CU_ASSERT_EQUAL(play.said[LIVE_JOINED], 2);
    CU_ASSERT_EQUAL(play.said[LIVE_ABSENT] + play.said[LIVE_SILENT] + play.said[LIVE_GONE], 0);
    end();
}

static void test_who_does_not_answer_is_not_there(void)
{
    begin();
    hear("b", 7, 2);
    CU_ASSERT_FALSE(live_settled(play.live));
    nobody("b");
    CU_ASSERT_TRUE(live_settled(play.live));
    CU_ASSERT_FALSE(live_alone(play.live));
    pass(5 * TTL_MS, false);
    CU_ASSERT_PTR_NULL(is_there("b"));
    CU_ASSERT_EQUAL(play.said[LIVE_ABSENT], 1);
    answer("b", 8, 2); /* another process, whose heartbeat has not come */
    CU_ASSERT_PTR_NULL(is_there("b"));
    answer("b", 7, 2);
    CU_ASSERT_PTR_NOT_NULL(is_there("b"));
    end();
}

static void test_silence(void)
{
    begin_with_b();
    pass(ASK_MS - 500, false);
    CU_ASSERT_EQUAL(play.asked, 1);
    pass(TTL_MS, false); /* the first question is answered by nobody */
    CU_ASSERT_PTR_NOT_NULL(is_there("b"));
    pass(500, false);
    CU_ASSERT_PTR_NULL(is_there("b"));
    CU_ASSERT_EQUAL(play.said[LIVE_SILENT], 1);
    pass(2 * TTL_MS, false);
    CU_ASSERT_EQUAL(play.said[LIVE_SILENT], 1);
    pass(ASK_MS + 500, true);
    CU_ASSERT_PTR_NOT_NULL(is_there("b"));
    end();
}

/* An engine that could not ask takes no other for silent. */
static void test_a_question_that_was_not_sent(void)
{
    begin_with_b();
    play.cut_off = true;
    pass(3 * TTL_MS, false);
    CU_ASSERT_PTR_NOT_NULL(is_there("b"));
    end();
}

static void test_no_heartbeat(void)
{
    begin_with_b();
    for (int i = 0; i < 17; i++) {
        play.now_ms += 500;
        hear("a", 1, 2);
        answer("b", 7, 2);
        live_step(play.live, play.now_ms);
    }
    CU_ASSERT_PTR_NOT_NULL(is_there("b"));
    play.now_ms += 500;
    CU_ASSERT_EQUAL(live_deadline(play.live), play.now_ms);
    live_step(play.live, play.now_ms);
    CU_ASSERT_PTR_NULL(is_there("b"));
    CU_ASSERT_EQUAL(play.said[LIVE_GONE], 1);
    end();
}

/* Under the name of a live engine: neither the contents nor a removal counts. */
static void test_forged_in_ones_name(void)
{
    begin_with_b();
    for (int i = 0; i < 20; i++) {
        play.now_ms += 100;
        hear("b", 7, 0);
        hear("b", 99, 1);
        CU_ASSERT_FALSE(removed("b"));
        answer("b", 7, 2);
        CU_ASSERT_PTR_NOT_NULL_FATAL(is_there("b"));
        CU_ASSERT_EQUAL(is_there("b")->heartbeat.orchestrations_len, 2);
    }
    CU_ASSERT_EQUAL(play.said[LIVE_LEFT], 0);
    end();
}

static void test_forged_in_our_name(void)
{
    begin();
    play.now_ms += 100;
    struct buf forged = beat("a", 99, 0);
    CU_ASSERT_TRUE(hear_bytes("a", buf_bytes(&forged)));
    buf_release(&forged);
    CU_ASSERT_EQUAL(play.said[LIVE_IGNORED], 1);
    CU_ASSERT_TRUE(removed("a"));
    nobody("a");
    answer("a", 99, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(is_there("a"));
    CU_ASSERT_EQUAL(is_there("a")->heartbeat.orchestrations_len, 2);
    end();
}

/* Two of ours are on their way when the first comes back. */
static void test_our_heartbeat_changes(void)
{
    struct buf next = beat("a", 1, 1);
    struct tagged_hash const hash = live_hash(buf_bytes(&next));
    begin();
    live_stand_by(play.live, &hash);
    play.now_ms += 100;
    hear("a", 1, 2);
    CU_ASSERT_EQUAL(play.said[LIVE_IGNORED], 0);
    CU_ASSERT_EQUAL(is_there("a")->heartbeat.orchestrations_len, 2);
    CU_ASSERT_FALSE(hear_bytes("a", buf_bytes(&next)));
    CU_ASSERT_EQUAL(is_there("a")->heartbeat.orchestrations_len, 1);
    CU_ASSERT_EQUAL(play.said[LIVE_JOINED], 1);
    buf_release(&next);
    end();
}

static void test_leaving(void)
{
    begin_with_b();
    play.now_ms += 100;
    (void)removed("b");
    CU_ASSERT_EQUAL(play.asked, 2); /* at once */
    CU_ASSERT_PTR_NOT_NULL(is_there("b"));
    answer("b", 7, 2); /* to an earlier question */
    nobody("b");
    CU_ASSERT_PTR_NULL(is_there("b"));
    CU_ASSERT_EQUAL(play.said[LIVE_LEFT], 1);
    CU_ASSERT_TRUE(live_alone(play.live));
    end();
}

/* The connection of a live engine was lost for a moment. */
static void test_nobody_for_a_moment(void)
{
    begin_with_b();
    pass(ASK_MS, false);
    CU_ASSERT_EQUAL(play.asked, 2);
    nobody("b");
    CU_ASSERT_PTR_NOT_NULL(is_there("b"));
    CU_ASSERT_TRUE(live_deadline(play.live) <= play.now_ms + 100);
    pass(500, true);
    CU_ASSERT_EQUAL(play.asked, 3);
    pass(2 * TTL_MS, true);
    CU_ASSERT_PTR_NOT_NULL(is_there("b"));
    end();
}

static void test_a_new_heartbeat_of_the_same_process(void)
{
    begin_with_b();
    live_leave_out(play.live, THOLE_STR("b"), 3);
    play.now_ms += 100;
    answer("b", 7, 1); /* before it is heard */
    CU_ASSERT_EQUAL(is_there("b")->heartbeat.orchestrations_len, 2);
    hear("b", 7, 1);
    CU_ASSERT_EQUAL(is_there("b")->heartbeat.orchestrations_len, 2);
    answer("b", 7, 1);
    CU_ASSERT_EQUAL(is_there("b")->heartbeat.orchestrations_len, 1);
    CU_ASSERT_TRUE(member_is_left_out(is_there("b"), 3));
    CU_ASSERT_FALSE(member_is_left_out(is_there("b"), 4));
    hear("b", 8, 1); /* restarted */
    answer("b", 8, 1);
    CU_ASSERT_FALSE(member_is_left_out(is_there("b"), 3));
    CU_ASSERT_EQUAL(play.said[LIVE_JOINED], 2);
    live_leave_out(play.live, THOLE_STR("b"), 3);
    live_take_in(play.live, THOLE_STR("b"), 3);
    CU_ASSERT_FALSE(member_is_left_out(is_there("b"), 3));
    live_leave_out(play.live, THOLE_STR("a"), 3); /* never oneself */
    CU_ASSERT_FALSE(member_is_left_out(is_there("a"), 3));
    end();
}

/* A heartbeat of an absent engine is a reason to ask, each time; of a live one it is none. */
static void test_who_is_heard_again_is_asked_again(void)
{
    begin();
    hear("b", 7, 2);
    nobody("b");
    for (unsigned n = 1; n <= 3; n++) {
        CU_ASSERT_EQUAL(play.asked, n);
        hear("b", 7, 2);
    }
    answer("b", 7, 2);
    CU_ASSERT_PTR_NOT_NULL(is_there("b"));
    hear("b", 7, 2);
    CU_ASSERT_EQUAL(play.asked, 4);
    end();
}

/* More engines than allowed: live ones stay, new ones find room. */
static void test_a_flood(void)
{
    const struct member *there[LIVE_MAX];
    begin_with_b();
    for (int i = 0; i < 2 * LIVE_MAX; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "ghost-%d", i);
        hear(name, 7, 1);
    }
    hear("c", 7, 2);
    answer("c", 7, 2);
    CU_ASSERT_EQUAL(live_there(play.live, there), 3);
    CU_ASSERT_EQUAL(play.said[LIVE_FULL], 0);
    hear_bytes("d", THOLE_STR("\xff nonsense"));
    hear_bytes("d", THOLE_STR(""));
    CU_ASSERT_EQUAL(play.said[LIVE_IGNORED], 1);
    end();
}

static void test_dead_before_we_came(void)
{
    memset(&play, 0, sizeof play);
    play.now_ms = 100000;
    play.live =
        live_create(THOLE_STR("a"), PARTITIONS, TTL_MS, ASK_MS, &(struct live_calls){on_ask, on_say, NULL});
    struct buf own = beat("a", 1, 2), other = beat("b", 7, 2);
    struct tagged_hash const hash = live_hash(buf_bytes(&own));
    live_stand_by(play.live, &hash);
    struct live_entry const old = {THOLE_STR("b"), buf_bytes(&other), (play.now_ms - TTL_MS + 1) * NS_PER_MS,
                                   play.now_ms};
    (void)live_heard(play.live, &old);
    (void)hear_bytes("a", buf_bytes(&own));
    CU_ASSERT_FALSE(live_settled(play.live));
    CU_ASSERT_EQUAL(live_deadline(play.live), play.now_ms + 1);
    live_step(play.live, play.now_ms + 1);
    CU_ASSERT_TRUE(live_alone(play.live));
    buf_release(&own);
    buf_release(&other);
    end();
}

/* ---- several results in one message ---- */

static void check_takes(const char *row, bool want)
{
    CU_ASSERT_FALSE(live_read_ranges(play.live)); /* which they do not say */
    CHECK_STR(row, live_take_results(play.live) ? "take them" : "do not", want ? "take them" : "do not");
}

static void comes(const char *node, uint64_t started_ms, bool takes_results)
{
    play.takes_results = takes_results;
    hear(node, started_ms, 1);
    answer(node, started_ms, 1);
    CU_ASSERT_PTR_NOT_NULL(is_there(node));
}

static void goes(const char *node)
{
    (void)removed(node);
    nobody(node);
    CU_ASSERT_PTR_NULL(is_there(node));
}

/* All but those without a subscriber, by the server's word. */
static void test_who_takes_results(void)
{
    memset(&play, 0, sizeof play);
    play.now_ms = 100000;
    play.live =
        live_create(THOLE_STR("a"), PARTITIONS, TTL_MS, ASK_MS, &(struct live_calls){on_ask, on_say, NULL});
    check_takes("nobody is known", false);
    play.takes_results = true;
    struct buf own = beat("a", 1, 1);
    struct tagged_hash const hash = live_hash(buf_bytes(&own));
    buf_release(&own);
    live_stand_by(play.live, &hash);
    hear("b", 7, 1);
    check_takes("nobody is there", false);
    hear("a", 1, 1);
    check_takes("alone", true);
    comes("b", 7, false);
    check_takes("one does not", false);
    comes("c", 8, true);
    check_takes("nor with another one", false);
    goes("b");
    check_takes("it is gone", true);
    play.takes_results = false;
    hear("d", 9, 1);
    check_takes("it does not answer yet", false);
    nobody("d");
    check_takes("it is not there", true);
    answer("d", 9, 1);
    check_takes("it is", false);
    comes("d", 10, true); /* of a newer release */
    check_takes("it does now", true);
    goes("c");
    goes("d");
    check_takes("alone again", true);
    end();
}

/* Which says nothing of results, and nothing of the other. */
static void check_who_reads(bool *said, bool (*read)(const struct live_nodes *live),
                            bool (*other)(const struct live_nodes *live))
{
    memset(&play, 0, sizeof play);
    play.now_ms = 100000;
    play.live =
        live_create(THOLE_STR("a"), PARTITIONS, TTL_MS, ASK_MS, &(struct live_calls){on_ask, on_say, NULL});
    CU_ASSERT_FALSE(read(play.live));
    *said = true;
    struct buf own = beat("a", 1, 1);
    struct tagged_hash const hash = live_hash(buf_bytes(&own));
    buf_release(&own);
    live_stand_by(play.live, &hash);
    hear("a", 1, 1);
    CU_ASSERT(read(play.live) && !other(play.live) && !live_take_results(play.live));
    *said = false;
    comes("b", 7, true);
    CU_ASSERT_FALSE(read(play.live));
    goes("b");
    CU_ASSERT_TRUE(read(play.live));
    end();
}

static void test_who_reads_ranges(void)
{
    check_who_reads(&play.reads_ranges, live_read_ranges, live_read_references);
}

static void test_who_reads_references(void)
{
    check_who_reads(&play.reads_references, live_read_references, live_read_ranges);
}

static const struct thole_test tests[] = {
    {"who answers is there", test_who_answers_is_there},
    {"who does not answer is not there", test_who_does_not_answer_is_not_there},
    {"silence", test_silence},
    {"a question that was not sent", test_a_question_that_was_not_sent},
    {"no heartbeat", test_no_heartbeat},
    {"forged in one's name", test_forged_in_ones_name},
    {"forged in our name", test_forged_in_our_name},
    {"our heartbeat changes", test_our_heartbeat_changes},
    {"leaving", test_leaving},
    {"nobody for a moment", test_nobody_for_a_moment},
    {"a new heartbeat of the same process", test_a_new_heartbeat_of_the_same_process},
    {"who is heard again is asked again", test_who_is_heard_again_is_asked_again},
    {"a flood", test_a_flood},
    {"dead before we came", test_dead_before_we_came},
    {"who takes results", test_who_takes_results},
    {"who reads ranges", test_who_reads_ranges},
    {"who reads references", test_who_reads_references},
};
THOLE_TEST_MAIN("live_nodes", tests)
