/* Which partitions are whose, and what becomes of one that nobody opens: in a time that the test makes up. */
#include "ownership.h"
#include "shares.h"
#include "thole_cunit.h"
#include <stdlib.h>

enum { PARTITIONS = 32, TTL_MS = 9000, ASK_MS = 3000 };

static struct {
    struct live_nodes *live;
    struct shares *shares;
    uint64_t now_ms;
    bool mine[PARTITIONS], waited[PARTITIONS];
    unsigned told, not_opened;
} play;

static bool on_ask(void *arg, thole_slice node)
{
    (void)arg, (void)node;
    return true;
}

static void on_say(void *arg, enum live_line line, thole_slice node, const char *why)
{
    (void)arg, (void)line, (void)node, (void)why;
}

static void on_own(void *arg, uint32_t p, bool own, bool wait)
{
    (void)arg;
    CU_ASSERT_NOT_EQUAL(play.mine[p], own);
    play.mine[p] = own;
    play.waited[p] = wait;
    play.told++;
}

static void on_not_opened(void *arg, uint32_t p, const char *node)
{
    (void)arg, (void)p, (void)node;
    play.not_opened++;
}

/* A heartbeat of each, and the answer of all but ours. */
static void beat(const char *node)
{
    struct buf body;
    struct heartbeat const heartbeat = {.node = thole_slice_from(node), .started_ms = 7};
    buf_init(&body, 4096);
    CU_ASSERT_EQUAL(heartbeat_encode(&heartbeat, &body), THOLE_OK);
    struct tagged_hash const hash = live_hash(buf_bytes(&body));
    if (node[0] == 'a')
        live_stand_by(play.live, &hash);
    (void)live_heard(play.live, &(struct live_entry){heartbeat.node, buf_bytes(&body), play.now_ms * 1000000,
                                                     play.now_ms});
    live_answered(play.live, heartbeat.node, thole_slice_from(hash.text), play.now_ms);
    buf_release(&body);
}

static void step(void)
{
    live_step(play.live, play.now_ms);
    shares_step(play.shares, play.live, true, play.now_ms);
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    play.now_ms = 100000;
    play.live =
        live_create(THOLE_STR("a"), PARTITIONS, TTL_MS, ASK_MS, &(struct live_calls){on_ask, on_say, NULL});
    play.shares = shares_create(THOLE_STR("a"), PARTITIONS, TTL_MS,
                                &(struct shares_calls){on_own, on_not_opened, NULL});
    beat("a");
}

static void end(void)
{
    shares_destroy(play.shares);
    live_destroy(play.live);
}

static unsigned mine(void)
{
    unsigned n = 0;
    for (uint32_t p = 0; p < PARTITIONS; p++)
        n += play.mine[p];
    return n;
}

/* Whose it is by the hash: 0 is a. */
static size_t rightful(uint32_t p, size_t nodes)
{
    const struct node_view views[] = {
        {THOLE_STR("a"), NULL, 0}, {THOLE_STR("b"), NULL, 0}, {THOLE_STR("c"), NULL, 0}};
    return ownership_of(p, views, nodes, NULL, 0);
}

static void all_as_the_hash_says(size_t nodes)
{
    for (uint32_t p = 0; p < PARTITIONS; p++)
        CU_ASSERT_EQUAL(play.mine[p], rightful(p, nodes) == 0);
}

static void opened_by_b(void)
{
    for (uint32_t p = 0; p < PARTITIONS; p++)
        if (rightful(p, 2) == 1)
            shares_opened(play.shares, play.live, p, THOLE_STR("b"));
}

static void later(uint64_t ms)
{
    play.now_ms += ms;
    beat("a");
    beat("b");
    step();
}

/* ---- tests ---- */

static void opened_by_us(void)
{
    for (uint32_t p = 0; p < PARTITIONS; p++)
        shares_opened(play.shares, play.live, p, THOLE_STR("a"));
}

static void begin_with_b(void)
{
    begin();
    step();
    opened_by_us();
    CU_ASSERT_EQUAL(mine(), PARTITIONS);
    CU_ASSERT_FALSE(play.waited[0]);
    beat("b");
    step();
    all_as_the_hash_says(2);
}

static void test_what_is_opened_stays(void)
{
    begin_with_b();
    CU_ASSERT_EQUAL(shares_deadline(play.shares), play.now_ms + TTL_MS);
    later(TTL_MS - 1);
    opened_by_b();
    CU_ASSERT_EQUAL(shares_deadline(play.shares), UINT64_MAX);
    play.told = 0;
    for (int i = 0; i < 10; i++)
        later(TTL_MS / 2);
    CU_ASSERT_EQUAL(play.told, 0);
    CU_ASSERT_EQUAL(play.not_opened, 0);
    end();
}

/* b saw sooner than we that it was its turn. */
static void test_opened_before_it_was_handed_over(void)
{
    begin();
    step();
    opened_by_us();
    opened_by_b();
    beat("b");
    step();
    CU_ASSERT_EQUAL(shares_deadline(play.shares), UINT64_MAX);
    later(TTL_MS);
    all_as_the_hash_says(2);
    CU_ASSERT_EQUAL(play.not_opened, 0);
    end();
}

static void test_what_nobody_opens_is_taken_back(void)
{
    begin_with_b();
    later(TTL_MS - 1);
    all_as_the_hash_says(2);
    later(1);
    CU_ASSERT_EQUAL(mine(), PARTITIONS);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        if (rightful(p, 2) == 1)
            CU_ASSERT_TRUE(play.waited[p]); /* may be about to open it */
    CU_ASSERT_TRUE(play.not_opened > 0);
    for (int i = 0; i < 10; i++)
        later(TTL_MS / 2);
    CU_ASSERT_EQUAL(mine(), PARTITIONS);
    opened_by_b(); /* at last */
    later(1);
    all_as_the_hash_says(2);
    CU_ASSERT_EQUAL(shares_deadline(play.shares), UINT64_MAX);
    end();
}

/* Owners from before we came are not known: nothing is expected of them. */
static void test_opened_before_we_came(void)
{
    begin();
    step();
    beat("b");
    step();
    CU_ASSERT_EQUAL(shares_deadline(play.shares), UINT64_MAX);
    later(2 * TTL_MS);
    all_as_the_hash_says(2);
    end();
}

/* Two that open nothing: what one does not take goes to the other, and then comes back. */
static void test_each_is_tried_once(void)
{
    begin_with_b();
    beat("c");
    step();
    all_as_the_hash_says(3);
    for (int i = 0; i < 4; i++) {
        play.now_ms += TTL_MS / 2;
        beat("c");
        beat("b");
        beat("a");
        step();
    }
    CU_ASSERT_EQUAL(mine(), PARTITIONS);
    play.told = 0;
    for (int i = 0; i < 10; i++) {
        play.now_ms += TTL_MS / 2;
        beat("c");
        beat("b");
        beat("a");
        step();
    }
    CU_ASSERT_EQUAL(play.told, 0);
    end();
}

static void test_without_a_confirmed_heartbeat(void)
{
    begin_with_b();
    shares_step(play.shares, play.live, false, play.now_ms);
    CU_ASSERT_EQUAL(mine(), 0);
    CU_ASSERT_EQUAL(shares_deadline(play.shares), UINT64_MAX);
    later(1);
    all_as_the_hash_says(2);
    shares_own_all(play.shares);
    later(1);
    CU_ASSERT_EQUAL(mine(), PARTITIONS);
    end();
}

static void test_what_is_no_name(void)
{
    static const uint8_t longer[2 * THOLE_NAME_BYTES_MAX];
    begin_with_b();
    shares_opened(play.shares, play.live, 0, (thole_slice){longer, sizeof longer});
    shares_opened(play.shares, play.live, 0, THOLE_STR(""));
    shares_opened(play.shares, play.live, 0, THOLE_STR("nobody"));
    step();
    all_as_the_hash_says(2);
    end();
}

static const struct thole_test tests[] = {
    {"what is opened stays", test_what_is_opened_stays},
    {"opened before it was handed over", test_opened_before_it_was_handed_over},
    {"what nobody opens is taken back", test_what_nobody_opens_is_taken_back},
    {"opened before we came", test_opened_before_we_came},
    {"each is tried once", test_each_is_tried_once},
    {"without a confirmed heartbeat", test_without_a_confirmed_heartbeat},
    {"what is no name", test_what_is_no_name},
};
THOLE_TEST_MAIN("shares", tests)
