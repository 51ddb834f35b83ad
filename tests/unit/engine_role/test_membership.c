/* Who owns what, from heartbeats, a clock and shards that the test plays: the thread's waits are its steps.
 */
#include "engine.h"
#include "membership.h"
#include "message.h"
#include "nodes.h"
#include "ownership.h"
#include "thole_cunit.h"
#include <sched.h>
#include <stdlib.h>

enum { PARTITIONS = 32, TTL_MS = 10000, HEARTBEAT_MS = 4000, HANDOVER_MS = 250, STEPS_MAX = 8 };

struct owner {
    bool mine;
    uint64_t since_ms;
    unsigned told; /* times */
};

static struct {
    struct engine_host engine;
    struct shard shard;
    struct membership *membership;
    nodes_fn *each;
    void *arg;
    uint64_t now_ms, ago_ms;  /* ago: what is heard was stored so long before */
    void (*first)(void);      /* before the watch has been opened */
    void (*during_put)(void); /* NULL: it takes no time */
    thole_status put_status;
    void (*steps[STEPS_MAX])(void);
    atomic_size_t step;
    struct owner owners[PARTITIONS];
    atomic_int arenas; /* begun and not released */
} play;

/* ---- the world ---- */

void __real_arena_init(struct arena *arena, size_t limit_bytes);
void __wrap_arena_init(struct arena *arena, size_t limit_bytes)
{
    atomic_fetch_add(&play.arenas, 1);
    __real_arena_init(arena, limit_bytes);
}

void __real_arena_release(struct arena *arena);
void __wrap_arena_release(struct arena *arena)
{
    atomic_fetch_sub(&play.arenas, 1);
    __real_arena_release(arena);
}

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

thole_status __wrap_nodes_watch_open(struct connection *connection, const char *ns, nodes_fn *each, void *arg,
                                     struct nodes_watch **ret, thole_error *reterr)
{
    (void)connection;
    (void)ns;
    (void)reterr;
    play.each = each;
    play.arg = arg;
    *ret = NULL;
    if (play.first != NULL)
        play.first();
    return THOLE_OK;
}

void __wrap_nodes_watch_close(struct nodes_watch *watch)
{
    CU_ASSERT_PTR_NULL(watch);
}

thole_status __wrap_nodes_delete(struct connection *connection, const char *ns, thole_slice node,
                                 thole_error *reterr)
{
    (void)connection;
    (void)ns;
    (void)node;
    (void)reterr;
    return THOLE_OK;
}

static void hear_bytes(const char *node, thole_slice bytes)
{
    play.each(play.arg, thole_slice_from(node), bytes, (play.now_ms - play.ago_ms) * 1000000);
}

thole_status __wrap_nodes_put(struct connection *connection, const char *ns, thole_slice node,
                              thole_slice heartbeat, thole_error *reterr)
{
    (void)connection;
    (void)ns;
    (void)node;
    if (play.during_put != NULL)
        play.during_put();
    play.during_put = NULL;
    if (play.put_status != THOLE_OK)
        return thole_fail(reterr, play.put_status, "NATS is away");
    hear_bytes("a", heartbeat);
    return THOLE_OK;
}

void __wrap_shard_send(struct shard *shard, struct shard_mail *mail)
{
    CU_ASSERT_PTR_EQUAL(shard, &play.shard);
    play.owners[mail->p].mine = mail->kind == SHARD_OWN;
    play.owners[mail->p].since_ms = mail->since_ms;
    play.owners[mail->p].told++;
    free(mail);
}

/* The next step of the test; at the last one's end the membership ends. */
bool __wrap_mailbox_wait(struct mailbox *mb, uint64_t deadline_ms)
{
    CU_ASSERT_TRUE(deadline_ms > play.now_ms);
    size_t const step = atomic_load(&play.step);
    if (step < STEPS_MAX && play.steps[step] != NULL) {
        play.steps[step]();
        atomic_store(&play.step, step + 1);
    } else {
        mailbox_close(mb);
    }
    return true;
}

static const thole_slice names[] = {{(const uint8_t *)"order", 5}, {(const uint8_t *)"ship", 4}};

/* A heartbeat of a node with the first names_len names. */
static void hear(const char *node, size_t names_len)
{
    struct buf body;
    struct heartbeat const heartbeat = {.node = thole_slice_from(node),
                                        .started_ms = 77,
                                        .orchestrations = names,
                                        .orchestrations_len = names_len};
    buf_init(&body, 4096);
    CU_ASSERT_EQUAL(heartbeat_encode(&heartbeat, &body), THOLE_OK);
    hear_bytes(node, buf_bytes(&body));
    buf_release(&body);
}

/* Its steps run until there is none. */
static void run_with(void (*first)(void), void (*const *steps)(void), size_t steps_len)
{
    static const thole_orchestration_entry orchestrations[] = {{.name = "order", .version = 1},
                                                               {.name = "ship", .version = 1}};
    static const thole_program program = {.orchestrations = orchestrations, .orchestrations_len = 2};
    static struct needs needs[PARTITIONS];
    memset(&play, 0, sizeof play);
    play.first = first;
    memset(needs, 0, sizeof needs);
    memcpy(play.steps, steps, steps_len * sizeof *steps);
    play.now_ms = 1000;
    play.engine.program = &program;
    play.engine.options.node = "a";
    play.engine.options.heartbeat_ms = HEARTBEAT_MS;
    play.engine.topology.partitions = PARTITIONS;
    play.engine.topology.nodes_ttl_ms = TTL_MS;
    play.engine.shards = &play.shard;
    play.engine.shards_len = 1;
    play.engine.needs = needs;
    (void)pthread_mutex_init(&play.engine.needs_lock, NULL);
    play.shard.engine = &play.engine;
    play.engine.lines = log_limits_create(engine_lines, ENGINE_LINES, PARTITIONS);
    play.membership = membership_create(&play.engine);
    CU_ASSERT_EQUAL_FATAL(membership_run(play.membership, NULL), THOLE_OK);
    while (atomic_load(&play.step) < steps_len) /* quiet() would end it earlier */
        (void)sched_yield();
    membership_quiet(play.membership);
    membership_stop(play.membership);
    log_limits_destroy(play.engine.lines);
    CU_ASSERT_EQUAL(atomic_load(&play.arenas), 0);
    (void)pthread_mutex_destroy(&play.engine.needs_lock);
}

static void run(void (*const *steps)(void), size_t steps_len)
{
    run_with(NULL, steps, steps_len);
}

/* ---- tests ---- */

static size_t count_mine(void)
{
    size_t mine = 0;
    for (uint32_t p = 0; p < PARTITIONS; p++)
        mine += play.owners[p].mine;
    return mine;
}

/* Whether b owns it while both live. */
static bool is_others(uint32_t p)
{
    const struct node_view views[] = {{THOLE_STR("a"), names, 2}, {THOLE_STR("b"), names, 2}};
    return ownership_of(p, views, 2, NULL, 0) == 1;
}

static void alone_owns_all(void)
{
    CU_ASSERT_EQUAL(count_mine(), PARTITIONS);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        CU_ASSERT_EQUAL(play.owners[p].since_ms, play.now_ms); /* there is nobody to wait for */
}

static void b_comes(void)
{
    play.now_ms += 10;
    hear("b", 2);
}

static void each_owns_some(void)
{
    for (uint32_t p = 0; p < PARTITIONS; p++)
        CU_ASSERT_EQUAL(play.owners[p].mine, !is_others(p));
    CU_ASSERT_TRUE(count_mine() > 0 && count_mine() < PARTITIONS);
}

static void forget_told(void)
{
    for (uint32_t p = 0; p < PARTITIONS; p++)
        play.owners[p].told = 0;
}

static void needs_change(void)
{
    alone_owns_all();
    membership_needs_changed(play.membership);
}

/* That happens with each orchestration that is new to a partition. */
static void test_needs_that_change(void)
{
    run((void (*const[])(void)){needs_change, needs_change, alone_owns_all}, 3);
}

/* ---- a server that is slow to store our heartbeat ---- */

static void takes_long(void)
{
    play.now_ms += TTL_MS - 4000;
    hear("b", 2);
    play.now_ms += 2000; /* the last one before was longer ago than a node may be silent */
}

static void put_is_slow(void)
{
    each_owns_some();
    forget_told();
    play.now_ms += HEARTBEAT_MS;
    play.during_put = takes_long;
}

static void b_still_has_its_own(void)
{
    CU_ASSERT_PTR_NULL(play.during_put);
    each_owns_some();
    for (uint32_t p = 0; p < PARTITIONS; p++)
        CU_ASSERT_EQUAL(play.owners[p].told, 0);
}

static void test_a_slow_server_makes_nobody_silent(void)
{
    run((void (*const[])(void)){alone_owns_all, b_comes, put_is_slow, b_still_has_its_own}, 4);
}

/* ---- from when on a partition is ours ---- */

static void b_says_goodbye(void)
{
    play.now_ms += 10;
    hear_bytes("b", (thole_slice){NULL, 0});
}

static void at_once(void)
{
    CU_ASSERT_EQUAL(count_mine(), PARTITIONS);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        if (is_others(p))
            CU_ASSERT_EQUAL(play.owners[p].since_ms, play.now_ms);
}

/* What is no heartbeat says nothing: b is there, and stays. */
static void b_says_nonsense(void)
{
    each_owns_some();
    forget_told();
    play.now_ms += 10;
    hear_bytes("b", THOLE_STR("\xff\xff nonsense"));
    hear_bytes("c", THOLE_STR("x"));
}

static void test_what_is_no_heartbeat(void)
{
    run((void (*const[])(void)){alone_owns_all, b_comes, b_says_nonsense, each_owns_some}, 4);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        CU_ASSERT_EQUAL(play.owners[p].told, 0);
}

static void test_who_has_left_is_not_waited_for(void)
{
    run((void (*const[])(void)){alone_owns_all, b_comes, b_says_goodbye, at_once}, 4);
}

static void b_is_silent(void)
{
    each_owns_some();
    play.now_ms += HEARTBEAT_MS; /* ours is stored, and heard */
}

static void test_who_is_dead_is_not_waited_for(void)
{
    run((void (*const[])(void)){alone_owns_all, b_comes, b_is_silent, b_is_silent, b_is_silent, at_once}, 6);
}

/* b is started anew with a program that does not know all that its partitions need. */
static void b_forgets_a_name(void)
{
    each_owns_some();
    for (uint32_t p = 0; p < PARTITIONS; p++)
        if (is_others(p))
            play.engine.needs[p] = (struct needs){(thole_slice *)(uintptr_t)&names[1], 1};
    play.now_ms += HEARTBEAT_MS;
    hear("b", 1);
}

static void after_a_pause(void)
{
    CU_ASSERT_EQUAL(count_mine(), PARTITIONS);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        if (is_others(p))
            CU_ASSERT_EQUAL(play.owners[p].since_ms, play.now_ms + HANDOVER_MS);
}

static void test_who_lives_gets_time_to_hand_over(void)
{
    run((void (*const[])(void)){alone_owns_all, b_comes, b_forgets_a_name, after_a_pause}, 4);
}

/* Who joins has no idea who had them: it waits. */
static void b_was_there(void)
{
    play.each(play.arg, THOLE_STR("b"), (thole_slice){NULL, 0}, 0);
}

static void b_is_there_already(void)
{
    hear("b", 2);
}

static void some_after_a_pause(void)
{
    each_owns_some();
    for (uint32_t p = 0; p < PARTITIONS; p++)
        if (play.owners[p].mine)
            CU_ASSERT_EQUAL(play.owners[p].since_ms, play.now_ms + HANDOVER_MS);
}

static void test_who_joins_waits(void)
{
    run_with(b_is_there_already, (void (*const[])(void)){some_after_a_pause}, 1);
    run_with(b_was_there, (void (*const[])(void)){alone_owns_all}, 1);
}

static void owns_all(void)
{
    CU_ASSERT_EQUAL(count_mine(), PARTITIONS);
}

/* An entry that was there before the watch was opened is as old as the server's times say. */
static void b_was_heard_a_while_ago(void)
{
    play.now_ms += 10 * TTL_MS;
    play.ago_ms = TTL_MS - HEARTBEAT_MS;
    hear("b", 2);
    play.ago_ms = 0;
}

static void b_was_heard_long_ago(void)
{
    play.now_ms += 10 * TTL_MS;
    play.ago_ms = TTL_MS;
    hear("b", 2);
    play.ago_ms = 0;
}

static void almost_dead(void)
{
    some_after_a_pause();
    play.now_ms += HEARTBEAT_MS - 1;
}

static void just_dead(void)
{
    each_owns_some();
    play.now_ms += 1;
}

static void test_who_was_dead_before_is_not_counted(void)
{
    run_with(b_was_heard_long_ago, (void (*const[])(void)){alone_owns_all}, 1);
    run_with(b_was_heard_a_while_ago, (void (*const[])(void)){almost_dead, just_dead, owns_all}, 3);
}

/* ---- who cannot store its heartbeat ---- */

static void put_takes_too_long(void)
{
    play.now_ms += HEARTBEAT_MS;
    play.during_put = NULL;
    play.put_status = THOLE_UNAVAILABLE;
}

static void still_owns(void)
{
    CU_ASSERT_EQUAL(count_mine(), PARTITIONS);
    play.now_ms = 1000 + TTL_MS - TTL_MS / 10;
}

static void owns_nothing(void)
{
    CU_ASSERT_EQUAL(count_mine(), 0);
    play.put_status = THOLE_OK;
    play.now_ms += 200;
}

static void test_who_is_not_heard_owns_nothing(void)
{
    run((void (*const[])(void)){put_takes_too_long, still_owns, owns_nothing, owns_all}, 4);
}

static const struct thole_test tests[] = {
    {"needs that change", test_needs_that_change},
    {"a slow server makes nobody silent", test_a_slow_server_makes_nobody_silent},
    {"what is no heartbeat", test_what_is_no_heartbeat},
    {"who has left is not waited for", test_who_has_left_is_not_waited_for},
    {"who is dead is not waited for", test_who_is_dead_is_not_waited_for},
    {"who lives gets time to hand over", test_who_lives_gets_time_to_hand_over},
    {"who joins waits", test_who_joins_waits},
    {"who was dead before is not counted", test_who_was_dead_before_is_not_counted},
    {"who is not heard owns nothing", test_who_is_not_heard_owns_nothing},
};
THOLE_TEST_MAIN("membership", tests)
