/* The owners of partitions, from heartbeats, a clock and shards that the test plays: the thread's waits are
 * its steps. */
#include "engine.h"
#include "heap.h"
#include "live_nodes.h"
#include "membership.h"
#include "message.h"
#include "nodes.h"
#include "ownership.h"
#include "presence.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <sched.h>
#include <stdlib.h>

enum {
    PARTITIONS = 32,
    TTL_MS = 10000,
    HEARTBEAT_MS = 4000,
    HANDOVER_MS = 250,
    STEPS_MAX = 8,
    HEAP_NOISE = 4096
};

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
    presence_fn *answer;
    void *answer_arg;
    bool ghosts;    /* nobody answers: the server says so */
    bool mute;      /* nobody answers, and nothing says so */
    bool answering; /* we do */
    bool present;   /* our answers are open */
    unsigned goodbyes;
    bool answered; /* there is an answer to take */
    unsigned puts, asked;
    struct tagged_hash b_hash; /* of its last heartbeat */
    bool b_takes_results;
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
    (void)reterr;
    CU_ASSERT_TRUE(thole_slice_equal(node, THOLE_STR("a")));
    CU_ASSERT_FALSE(play.present); /* an engine that asks because of it must get no answer */
    play.goodbyes++;
    return THOLE_OK;
}

/* ---- answers ---- */

thole_status __wrap_presence_open(struct connection *connection, const char *ns, const char *node,
                                  presence_fn *each, void *arg, struct presence **ret, thole_error *reterr)
{
    (void)connection, (void)ns, (void)node, (void)reterr;
    play.answer = each;
    play.answer_arg = arg;
    play.present = true;
    *ret = NULL;
    return THOLE_OK;
}

void __wrap_presence_stand_by(struct presence *presence, const char *hash)
{
    (void)presence;
    CU_ASSERT_EQUAL(strlen(hash), TAGGED_HASH_TEXT_LEN);
}

thole_status __wrap_presence_answer(struct presence *presence, thole_error *reterr)
{
    (void)presence, (void)reterr;
    CU_ASSERT_FALSE(play.answering);
    play.answering = true;
    return THOLE_OK;
}

/* b answers, unless it is a ghost; nobody else does. */
thole_status __wrap_presence_ask(struct presence *presence, thole_slice node, thole_error *reterr)
{
    (void)presence, (void)reterr;
    play.asked++;
    bool const is_b = thole_slice_equal(node, THOLE_STR("b"));
    play.answered = !play.mute;
    if (!play.mute)
        play.answer(play.answer_arg, node,
                    is_b && !play.ghosts ? thole_slice_from(play.b_hash.text) : (thole_slice){NULL, 0});
    return THOLE_OK;
}

void __wrap_presence_close(struct presence *presence)
{
    CU_ASSERT_PTR_NULL(presence);
    CU_ASSERT_TRUE(play.present);
    play.answering = play.present = false;
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
    play.puts++;
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
    if (play.answered) {
        play.answered = false;
        return true;
    }
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
                                        .orchestrations_len = names_len,
                                        .takes_results = play.b_takes_results};
    buf_init(&body, 4096);
    CU_ASSERT_EQUAL(heartbeat_encode(&heartbeat, &body), THOLE_OK);
    if (strcmp(node, "b") == 0)
        play.b_hash = live_hash(buf_bytes(&body));
    hear_bytes(node, buf_bytes(&body));
    buf_release(&body);
}

/* Runs all steps. */
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
    unsigned const puts = play.puts;
    for (uint32_t p = 0; p < PARTITIONS; p++) /* nobody takes it any more */
        membership_opened(play.membership, p, THOLE_STR("b"));
    membership_stop(play.membership);
    CU_ASSERT_FALSE(play.present);
    CU_ASSERT_EQUAL(play.goodbyes, puts > 0 ? 1 : 0);
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

/* The needs change with each orchestration that is new to a partition. */
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
    for (uint32_t p = 0; p < PARTITIONS; p++)
        membership_opened(play.membership, p, THOLE_STR("b"));
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
    play.ghosts = true; /* does not answer any more */
    hear_bytes("b", (thole_slice){NULL, 0});
}

static void at_once(void)
{
    CU_ASSERT_EQUAL(count_mine(), PARTITIONS);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        if (is_others(p))
            CU_ASSERT_EQUAL(play.owners[p].since_ms, play.now_ms);
}

/* Bytes that are no heartbeat say nothing: b is live, and stays. */
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

/* b is restarted with a program that does not know all orchestrations that its partitions need. */
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

/* An engine that joins does not know the former owners: it waits. */
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

/* ---- an engine that cannot store its heartbeat ---- */

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

/* ---- engines that do not answer ---- */

static void ghosts_come(void)
{
    alone_owns_all();
    forget_told();
    CU_ASSERT_TRUE(play.answering);
    play.ghosts = true;
    play.now_ms += 10;
    for (int i = 0; i < 1100; i++) { /* more than there may be nodes */
        char name[24];
        (void)snprintf(name, sizeof name, "ghost-%d", i);
        hear(name, 2);
    }
    hear("b", 2);
}

static void nothing_is_handed_over(void)
{
    CU_ASSERT_EQUAL(count_mine(), PARTITIONS);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        CU_ASSERT_EQUAL(play.owners[p].told, 0);
    play.ghosts = false;
    play.now_ms += HEARTBEAT_MS;
    hear("b", 2);
}

static void test_ghosts_get_nothing(void)
{
    run((void (*const[])(void)){alone_owns_all, ghosts_come, nothing_is_handed_over, each_owns_some}, 4);
}

/* b's heartbeat exists when we come, but b neither answers nor is reported as absent: we wait for it, not for
 * long, and meanwhile do not answer ourselves. */
static void b_is_mute(void)
{
    play.mute = true;
    hear("b", 2);
}

static void waits_for_b(void)
{
    CU_ASSERT_EQUAL(count_mine(), 0);
    CU_ASSERT_FALSE(play.answering);
    CU_ASSERT_EQUAL(play.puts, 1);
    play.now_ms += 999;
}

static void waits_still(void)
{
    waits_for_b();
    play.now_ms -= 998; /* 1,000 ms since it came */
}

static void waits_no_longer(void)
{
    CU_ASSERT_EQUAL(count_mine(), PARTITIONS);
    CU_ASSERT_TRUE(play.answering);
    CU_ASSERT_EQUAL(play.puts, 2); /* so that who has asked before asks again */
}

static void test_who_joins_asks_first(void)
{
    run_with(b_is_mute, (void (*const[])(void)){waits_for_b, waits_still, waits_no_longer}, 3);
}

static void a_opens_all(void)
{
    alone_owns_all();
    for (uint32_t p = 0; p < PARTITIONS; p++)
        membership_opened(play.membership, p, THOLE_STR("a"));
    b_comes();
}

static void b_opens_nothing(void)
{
    each_owns_some();
    play.now_ms += TTL_MS / 2;
    hear("b", 2);
}

static void taken_back(void)
{
    CU_ASSERT_EQUAL(count_mine(), PARTITIONS);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        if (is_others(p))
            membership_opened(play.membership, p, THOLE_STR("b")); /* at last */
}

static void test_what_nobody_opens_is_taken_back(void)
{
    run((void (*const[])(void)){a_opens_all, b_opens_nothing, b_opens_nothing, taken_back, each_owns_some},
        5);
}

/* A user removes our heartbeat: it is stored again, soon, and nothing is given away. */
static void ours_is_removed(void)
{
    alone_owns_all();
    forget_told();
    play.now_ms += 10;
    for (int i = 0; i < 100; i++)
        hear_bytes("a", (thole_slice){NULL, 0});
}

static void not_yet(void)
{
    CU_ASSERT_EQUAL(play.puts, 1);
    play.now_ms += 200;
}

static void stored_again(void)
{
    CU_ASSERT_EQUAL(play.puts, 2);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        CU_ASSERT_EQUAL(play.owners[p].told, 0);
}

static void test_our_heartbeat_is_removed(void)
{
    run((void (*const[])(void)){ours_is_removed, not_yet, stored_again}, 3);
}

/* ---- several results in one message ---- */

static void lists_are_taken(void)
{
    CU_ASSERT_TRUE(atomic_load(&play.engine.lists));
}

static void lists_are_not_taken(void)
{
    CU_ASSERT_FALSE(atomic_load(&play.engine.lists));
}

static void newer_b_comes(void)
{
    play.b_takes_results = true;
    b_comes();
}

/* We take them; b, of an older release, does not. */
static void test_who_takes_results(void)
{
    run((void (*const[])(void)){lists_are_taken, b_comes, lists_are_not_taken, newer_b_comes,
                                lists_are_taken},
        5);
    run((void (*const[])(void)){lists_are_taken, b_comes, lists_are_not_taken, b_says_goodbye,
                                lists_are_taken},
        5);
}

/* Again and again, with mail that nobody takes at the end: nothing is left. */
static void test_nothing_is_left(void)
{
    size_t used = 0;
    for (int round = 0; round < 40; round++) {
        run((void (*const[])(void)){alone_owns_all, b_comes, each_owns_some}, 3);
        if (round == 20)
            used = heap_used();
    }
    CU_ASSERT(heap_used() < used + HEAP_NOISE);
}

static const struct thole_test tests[] = {
    {"nothing is left", test_nothing_is_left},
    {"ghosts get nothing", test_ghosts_get_nothing},
    {"who joins asks first", test_who_joins_asks_first},
    {"what nobody opens is taken back", test_what_nobody_opens_is_taken_back},
    {"our heartbeat is removed", test_our_heartbeat_is_removed},
    {"needs that change", test_needs_that_change},
    {"a slow server makes nobody silent", test_a_slow_server_makes_nobody_silent},
    {"what is no heartbeat", test_what_is_no_heartbeat},
    {"who has left is not waited for", test_who_has_left_is_not_waited_for},
    {"who is dead is not waited for", test_who_is_dead_is_not_waited_for},
    {"who lives gets time to hand over", test_who_lives_gets_time_to_hand_over},
    {"who joins waits", test_who_joins_waits},
    {"who was dead before is not counted", test_who_was_dead_before_is_not_counted},
    {"who is not heard owns nothing", test_who_is_not_heard_owns_nothing},
    {"who takes results", test_who_takes_results},
};
THOLE_TEST_MAIN("membership", tests)
