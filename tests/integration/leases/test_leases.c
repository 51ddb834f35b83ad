/*
 * Leases over broken networks: a proxy that stalls, delays or cuts is between a worker and NATS, between it
 * and Postgres, or both. All cases go on at once, each with a queue and workers of its own. A lease is lost
 * only when Postgres is not reached for its time. integration.gateway_leases does the same with workers of
 * gateways: those lose it also when NATS is not reached for a lease.
 */
#include "seed_stage.h"

enum {
    CASES_MAX = 16,
    QUEUE_BYTES = 40,
    SHORT_LEASE_MS = 6000,
    LONG_LEASE_MS = 2000,
    FAULT_MS = 1000, /* less than a lease */
    DELAY_MS = 50,
    SETTLE_MS = 300,
};

enum fault { STALL_BOTH, STALL_UP, STALL_DOWN, CUT, DELAY };
enum sides { TO_NATS = 1, TO_POSTGRES = 2, TO_ALL = 3 };

static const struct lease_case {
    const char *name;
    enum sides sides;
    enum fault fault;
    bool stays; /* for longer than a lease, the lease is kept all the same */
} cases[] = {
    {"nats_stalled", TO_NATS, STALL_BOTH, true},
    {"nats_cut", TO_NATS, CUT, true},
    {"postgres_stalled", TO_POSTGRES, STALL_BOTH},
    {"postgres_cut", TO_POSTGRES, CUT},
    {"all_stalled", TO_ALL, STALL_BOTH},
    {"all_cut", TO_ALL, CUT},
    {"all_delayed", TO_ALL, DELAY, true},
#ifndef BY_GATEWAY /* each has connections of its own to Postgres */
    {"nats_stalled_up", TO_NATS, STALL_UP, true},
    {"nats_stalled_down", TO_NATS, STALL_DOWN, true},
    {"postgres_stalled_up", TO_POSTGRES, STALL_UP},
    {"postgres_stalled_down", TO_POSTGRES, STALL_DOWN},
    {"all_stalled_up", TO_ALL, STALL_UP},
    {"all_stalled_down", TO_ALL, STALL_DOWN},
#endif
};

static bool stays(size_t i)
{
#ifdef BY_GATEWAY
    return cases[i].fault == DELAY;
#else
    return cases[i].stays;
#endif
}

/* All cases once. The queues are named after the round and the case, the instances after both and what they
 * are for. */
struct round {
    const char *name;
    uint64_t lease_ms;
    char queues[CASES_MAX][QUEUE_BYTES];
    struct actor_worker first[CASES_MAX],
        second[CASES_MAX]; /* the connections of the first are those with faults */
};
static struct round brief = {.name = "brief", .lease_ms = SHORT_LEASE_MS};
static struct round lasting = {.name = "long", .lease_ms = LONG_LEASE_MS};

/* ---- faults ---- */

static void strike(struct tcp_proxy *proxy, enum fault fault)
{
    switch (fault) {
    case STALL_BOTH: tcp_proxy_stall(proxy, TCP_BOTH); break;
    case STALL_UP: tcp_proxy_stall(proxy, TCP_TO_SERVER); break;
    case STALL_DOWN: tcp_proxy_stall(proxy, TCP_TO_CLIENT); break;
    case CUT: tcp_proxy_cut(proxy); break;
    case DELAY: tcp_proxy_delay(proxy, TCP_BOTH, DELAY_MS); break;
    }
}

static void strike_all(struct round *round)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if ((cases[i].sides & TO_NATS) != 0)
            strike(round->first[i].nats, cases[i].fault);
        if ((cases[i].sides & TO_POSTGRES) != 0)
            strike(round->first[i].postgres, cases[i].fault);
    }
}

static void heal_all(struct round *round)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        tcp_proxy_heal(round->first[i].nats);
        tcp_proxy_heal(round->first[i].postgres);
    }
}

/* ---- instances ---- */

static const char *id_of(const struct round *round, size_t i, const char *what)
{
    static char id[4][ACTOR_ID_BYTES];
    static unsigned next;
    char *const to = id[next++ % ARRAY_LEN(id)];
    snprintf(to, ACTOR_ID_BYTES, "%s-%s", round->queues[i], what);
    return to;
}

static void start(const struct round *round, size_t i, const char *what, const char *orchestration)
{
    seed_start(id_of(round, i, what), orchestration, round->queues[i]);
}

static void check_first_attempt(const char *id)
{
    seed_check_outcome(id, "attempt 1 by A");
    CU_ASSERT_EQUAL(actors_runs(id, NULL), 1);
}

static const char *const slots[] = {"slot1", "slot2"};

/* All slots of the first workers serve at the same time. */
static void check_slots(const struct round *round)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < ARRAY_LEN(slots); k++)
            start(round, i, slots[k], "polite");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < ARRAY_LEN(slots); k++) {
            bool const begun = actors_wait_runs(id_of(round, i, slots[k]), 1);
            CU_ASSERT_TRUE(begun);
            if (!begun)
                fprintf(stderr, "\n  [%s] has not begun\n", id_of(round, i, slots[k]));
        }
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < ARRAY_LEN(slots); k++) {
            char got[SEED_TEXT_BYTES];
            actors_release(id_of(round, i, slots[k]), UINT32_MAX);
            (void)seed_end(id_of(round, i, slots[k]), got);
            CU_ASSERT_PTR_NOT_NULL(strstr(got, " by A"));
        }
}

static void start_first(struct round *round)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(round->queues[i], sizeof round->queues[i], "%s-%s", round->name, cases[i].name);
        actor_options(&round->first[i], &seed.stack, round->queues[i], round->lease_ms);
        actor_proxies(&round->first[i], &seed.stack);
#ifdef BY_GATEWAY
        actor_start_elsewhere(&round->first[i], &seed.stack, 'A');
#else
        actor_start(&round->first[i], 'A');
#endif
    }
}

static void start_second(struct round *round)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        actor_options(&round->second[i], &seed.stack, round->queues[i], round->lease_ms);
        actor_start(&round->second[i], 'B');
    }
}

static void stop_first(struct round *round)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        actor_stop(&round->first[i]);
}

static void stop_second(struct round *round)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        actor_stop(&round->second[i]);
}

/* ---- more than the lease ---- */

static const char *const manners[] = {"polite", "rude"};

/* The token of the first run fires, and its worker sends nothing for the message, which another has now. */
static void check_taken_over(const struct round *round, size_t i, const char *manner)
{
    struct actor_run run;
    const char *const id = id_of(round, i, manner);
    CU_ASSERT_TRUE(actors_wait_attempt(id, 2));
    CU_ASSERT_TRUE(actors_wait_fired(id, 0));
    CU_ASSERT_TRUE(actors_run(id, 0, &run));
    CHECK_STR(id, thole_cancel_kind_name(run.kind), "lease_lost");
    CU_ASSERT_EQUAL(run.attempt, 1);
    CU_ASSERT_EQUAL(run.worker, 'A');
}

static void check_result_refused(const struct round *round, size_t i, const char *manner)
{
    const char *const id = id_of(round, i, manner);
    CU_ASSERT_TRUE(actors_wait_returned(id, 0));
    CU_ASSERT_TRUE(seed_is_queued(round->queues[i], id, 2));
}

static void each_lost(const struct round *round,
                      void (*check)(const struct round *round, size_t i, const char *manner))
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < 2 && !stays(i); k++)
            check(round, i, manners[k]);
}

static void release_first(const struct round *round, size_t i, const char *manner)
{
    actors_release(id_of(round, i, manner), 1);
}

static void release_later(const struct round *round, size_t i, const char *manner)
{
    actors_release(id_of(round, i, manner), UINT32_MAX);
}

/* Any worker's. */
static void check_later_attempt(const struct round *round, size_t i, const char *manner)
{
    seed_check_attempt(id_of(round, i, manner), 2);
}

/* ---- tests: both rounds go on at the same time ---- */

static const char *const brief_whats[] = {"during", "after"};

static void begin(struct round *round, const char *const whats[2], const char *const orchestrations[2])
{
    start_first(round);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < 2; k++)
            start(round, i, whats[k], orchestrations[k]);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < 2; k++)
            CU_ASSERT_TRUE(actors_wait_runs(id_of(round, i, whats[k]), 1));
}

static void release(const struct round *round, const char *what)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        actors_release(id_of(round, i, what), UINT32_MAX);
}

static void test_faults_begin(void)
{
    static const char *const polite[] = {"polite", "polite"};
    begin(&brief, brief_whats, polite);
    begin(&lasting, manners, manners);
    strike_all(&lasting);
    strike_all(&brief);
    release(&brief, "during");
    pause_ms(FAULT_MS);
    heal_all(&brief);
    release(&brief, "after");
    start_second(&lasting);
}

/* Renewed although the network is bad: another worker gets the message, and finds the row held. */
static void test_a_lease_that_is_renewed_through_faults(void)
{
    struct round *const round = &lasting;
    pause_ms(LONG_LEASE_MS * 5 / 2 - FAULT_MS);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (cases[i].sides == TO_NATS)
            tcp_proxy_heal(round->first[i].nats); /* for the result */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < 2 && stays(i); k++)
            actors_release(id_of(round, i, manners[k]), UINT32_MAX);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < 2 && stays(i); k++)
            check_first_attempt(id_of(round, i, manners[k]));
}

/* One activity has ended during the fault, one after it, both as if nothing had been. */
static void test_faults_for_less_than_the_lease(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < 2; k++) {
            check_first_attempt(id_of(&brief, i, brief_whats[k]));
            seed_check_one_result(id_of(&brief, i, brief_whats[k]));
        }
    check_slots(&brief);
}

static void test_faults_for_more_than_the_lease(void)
{
    struct round *const round = &lasting;
    each_lost(round, check_taken_over);
    heal_all(round);
    each_lost(round, release_first); /* those that did not mind their token: success, and too late */
    each_lost(round, check_result_refused);
    pause_ms(SETTLE_MS); /* time to do wrong */
    each_lost(round, check_result_refused);
    each_lost(round, release_later);
    each_lost(round, check_later_attempt);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < 2; k++)
            seed_check_one_result(id_of(round, i, manners[k]));
    stop_second(round);
    check_slots(round);
}

/* Messages that could not be acknowledged have come again and found no row. */
static void test_nothing_is_left(void)
{
    CU_ASSERT_TRUE(seed_drained());
    stop_first(&brief);
    stop_first(&lasting);
}

static const struct thole_test tests[] = {
    {"faults begin", test_faults_begin},
    {"a lease that is renewed through faults", test_a_lease_that_is_renewed_through_faults},
    {"faults for less than the lease", test_faults_for_less_than_the_lease},
    {"faults for more than the lease", test_faults_for_more_than_the_lease},
    {"nothing is left in the queues", test_nothing_is_left},
};

int main(void)
{
    return seed_run("leases", tests, ARRAY_LEN(tests), NULL);
}
