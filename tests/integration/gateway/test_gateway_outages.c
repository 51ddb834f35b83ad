/*
 * The fate of activities when the way between them and the engine breaks: the same stories for a worker in C
 * and for a remote one, whose gateways are processes; then those that only a remote one has.
 */
#include "jscan.h"
#include "link.h"
#include "seed_stage.h"

enum { LEASE_MS = 3000, OUTAGE_MS = 300, KINDS = 2 };

static const char *const kinds[KINDS] = {"here", "elsewhere"}; /* queues, too */
static struct stack_program *gateways[2];
static struct actor_worker here;
static struct actor_worker elsewhere; /* of it only the member remote, and the proxy to NATS */

static const char *id_of(const char *what, size_t kind)
{
    static char id[4][ACTOR_ID_BYTES];
    static unsigned next;
    char *const to = id[next++ % ARRAY_LEN(id)];
    snprintf(to, ACTOR_ID_BYTES, "%s-%s", what, kinds[kind]);
    return to;
}

/* An instance of that orchestration on each kind, whose activity has begun. */
static void begin_both(const char *what, const char *orchestration)
{
    for (size_t i = 0; i < KINDS; i++)
        seed_start(id_of(what, i), orchestration, kinds[i]);
    for (size_t i = 0; i < KINDS; i++)
        CU_ASSERT_TRUE(actors_wait_runs(id_of(what, i), 1));
}

/* They have run once, by the worker that began them. */
static void check_both(const char *what)
{
    for (size_t i = 0; i < KINDS; i++) {
        actors_release(id_of(what, i), UINT32_MAX);
        seed_check_outcome(id_of(what, i), "attempt 1 by A");
        CU_ASSERT_EQUAL(actors_runs(id_of(what, i), NULL), 1);
        seed_check_one_result(id_of(what, i));
    }
}

static struct stack_program *gateway_of(struct remote_worker *worker)
{
    char subject[256], id[32] = "";
    remote_worker_subject(worker, subject);
    (void)sscanf(subject, "thole.default.gateway.session.%16[0-9a-f]", id);
    for (size_t i = 0; i < ARRAY_LEN(gateways); i++)
        if (id[0] != '\0' && gateways[i]->pid != 0 && stack_count(gateways[i]->log, id) > 0)
            return gateways[i];
    fprintf(stderr, "no gateway has the session %s\n", subject);
    exit(1);
}

static struct remote_worker *start_elsewhere(const char *nats_url, const char *queue, char letter)
{
    struct remote_worker_options const options = {.nats_url = nats_url,
                                                  .ns = "default",
                                                  .name = "elsewhere",
                                                  .queue = queue,
                                                  .slots = 2,
                                                  .stop_limit_ms = 5000};
    return remote_worker_start(&options, actors_program(letter));
}

/* ---- for each kind ---- */

static void test_nats_is_killed_during_an_activity_of_several_leases(void)
{
    begin_both("nats", "polite");
    server_kill9(&seed.stack.nats);
    pause_ms(OUTAGE_MS);
    CHECK_OK(server_restart(&seed.stack.nats, &seed.err), &seed.err);
    pause_ms(2 * LEASE_MS + LEASE_MS / 2);
    check_both("nats");
}

static void test_postgres_is_killed_during_an_activity_of_several_leases(void)
{
    begin_both("postgres", "rude");
    server_kill9(&seed.stack.postgres);
    pause_ms(OUTAGE_MS);
    CHECK_OK(server_restart(&seed.stack.postgres, &seed.err), &seed.err);
    pause_ms(2 * LEASE_MS + LEASE_MS / 2);
    check_both("postgres");
}

static void test_cancelled_while_it_runs(void)
{
    begin_both("cancelled", "polite");
    for (size_t i = 0; i < KINDS; i++) {
        struct actor_run run;
        char output[SEED_TEXT_BYTES];
        seed_cancel(id_of("cancelled", i), "not needed");
        CU_ASSERT_TRUE(actors_wait_returned(id_of("cancelled", i), 0));
        CU_ASSERT_TRUE(actors_run(id_of("cancelled", i), 0, &run));
        CU_ASSERT_TRUE(run.fired);
        CHECK_STR(run.instance, thole_cancel_kind_name(run.kind), "requested");
        CHECK_STR(run.instance, run.reason, "not needed");
        CU_ASSERT_EQUAL(seed_end(id_of("cancelled", i), output), THOLE_INSTANCE_CANCELLED);
        CU_ASSERT_TRUE(seed_wait_rows(id_of("cancelled", i), 0));
    }
}

/* Sent while nobody hears it: a renewal finds it out. */
static void test_cancelled_during_an_outage(void)
{
    begin_both("unheard", "polite");
    tcp_proxy_stall(elsewhere.nats, TCP_TO_CLIENT);
    for (size_t i = 0; i < KINDS; i++)
        seed_cancel(id_of("unheard", i), "not needed");
    pause_ms(OUTAGE_MS);
    tcp_proxy_cut(elsewhere.nats); /* the notice is lost */
    pause_ms(50);
    tcp_proxy_heal(elsewhere.nats);
    for (size_t i = 0; i < KINDS; i++) {
        struct actor_run run;
        CU_ASSERT_TRUE(actors_wait_returned(id_of("unheard", i), 0));
        CU_ASSERT_TRUE(actors_run(id_of("unheard", i), 0, &run));
        CHECK_STR(run.instance, thole_cancel_kind_name(run.kind), "requested");
    }
}

/* ---- elsewhere ---- */

/* Asks as any client may; the status of the answer, 99 when there is none. */
static unsigned ask(const char *subject, const char *operation, const char *body, char ret[1024])
{
    struct buf answer;
    char whole[300];
    uint64_t status = 0;
    thole_slice value;
    struct header const json = {"Content-Type", THOLE_STR("application/json")};
    snprintf(whole, sizeof whole, "%s.%s", subject, operation);
    buf_init(&answer, 1 << 16);
    ret[0] = '\0';
    if (connection_request_with(seed.connection, whole, &json, 1, thole_slice_from(body), &answer,
                                &seed.err) != THOLE_OK)
        status = 99;
    else if (json_find(buf_bytes(&answer), "status", &value) && !json_uint(value, &status))
        status = 98;
    snprintf(ret, 1024, "%.*s", THOLE_FMT(buf_bytes(&answer)));
    buf_release(&answer);
    return (unsigned)status;
}

/* For longer than a lease the worker hears nothing. Others have its task within two, and what it says then,
 * with the claim that it had, is refused; so is what another session says with it. */
static void test_an_outage_longer_than_the_lease(void)
{
    struct actor_worker rival;
    struct actor_run run;
    char subject[256], answer[1024];
    struct tcp_proxy *const proxy = tcp_proxy_start(seed.stack.nats.port);
    char url[64];
    snprintf(url, sizeof url, "nats://127.0.0.1:%u", tcp_proxy_port(proxy));
    struct remote_worker *const cut = start_elsewhere(url, "cut", 'A');
    seed_start("cut", "rude", "cut");
    CU_ASSERT_TRUE(actors_wait_runs("cut", 1));
    remote_worker_subject(cut, subject);
    /* others do not know its session; with its own, its claim cannot be taken for another */
    char other[256];
    remote_worker_subject(elsewhere.remote, other);
    CU_ASSERT_EQUAL(ask(other, "complete", "{\"outcomes\":[{\"claim\":\"7777\"}]}", answer), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\"status\":14"));
    char guessed[256];
    snprintf(guessed, sizeof guessed, "%s", subject);
    guessed[strlen(guessed) - 1] ^= 1;
    CU_ASSERT_EQUAL(ask(guessed, "complete", "{\"outcomes\":[{\"claim\":\"1\"}]}", answer), THOLE_NOT_FOUND);
    uint64_t const cut_ms = clock_monotonic_ms();
    tcp_proxy_stall(proxy, TCP_BOTH);
    actor_options(&rival, &seed.stack, "cut", LEASE_MS);
    actor_start(&rival, 'B');
    CU_ASSERT_TRUE(actors_wait_attempt("cut", 2));
    uint64_t const took_ms = clock_monotonic_ms() - cut_ms;
    fprintf(stderr, "\n  taken over %u ms after its worker was cut off, lease %d ms\n", (unsigned)took_ms,
            LEASE_MS);
    CU_ASSERT_TRUE(took_ms < 2 * LEASE_MS);
    pause_ms(50); /* looks every 10 ms */
    CU_ASSERT_TRUE(actors_run("cut", 0, &run));
    CU_ASSERT_TRUE(run.fired);
    CHECK_STR("why", thole_cancel_kind_name(run.kind), "lease_lost");
    CU_ASSERT_EQUAL(
        ask(subject, "complete", "{\"outcomes\":[{\"claim\":\"1\",\"output\":\"bGF0ZQ==\"}]}", answer),
        THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(ask(subject, "renew", "{\"running\":[{\"claim\":\"1\"}]}", answer), THOLE_NOT_FOUND);
    tcp_proxy_heal(proxy);
    actors_release("cut", UINT32_MAX);
    seed_check_outcome("cut", "attempt 2 by B");
    seed_check_one_result("cut");
    actor_stop(&rival);
    remote_worker_stop(cut);
    tcp_proxy_stop(proxy);
}

/* The gateway with the session; another one runs. */
static void test_a_gateway_is_killed(void)
{
    struct actor_run run;
    struct remote_worker *const worker = start_elsewhere(seed.stack.nats.url, "killed", 'A');
    struct stack_program *const gateway = gateway_of(worker);
    seed_start("old", "rude", "killed");
    CU_ASSERT_TRUE(actors_wait_runs("old", 1));
    uint64_t const killed_ms = clock_monotonic_ms();
    stack_kill9(gateway);
    seed_start("new", "echo", "killed"); /* in a second session, while the first one's task runs on */
    CU_ASSERT_TRUE(actors_wait_runs("new", 1));
    uint64_t const new_ms = clock_monotonic_ms() - killed_ms;
    CU_ASSERT_TRUE(actors_run("old", 0, &run));
    CU_ASSERT_FALSE(run.fired);
    seed_check_outcome("new", "attempt 1 by A");
    CU_ASSERT_TRUE(actors_wait_fired("old", 0));
    uint64_t const fired_ms = clock_monotonic_ms() - killed_ms;
    CU_ASSERT_TRUE(actors_run("old", 0, &run));
    CHECK_STR("why", thole_cancel_kind_name(run.kind), "lease_lost");
    CU_ASSERT_TRUE(actors_wait_attempt("old", 2));
    uint64_t const again_ms = clock_monotonic_ms() - killed_ms;
    fprintf(stderr, "\n  after the kill: a new task %u ms, the old one's token %u ms, again %u ms\n",
            (unsigned)new_ms, (unsigned)fired_ms, (unsigned)again_ms);
    CU_ASSERT_TRUE(new_ms < fired_ms && fired_ms <= again_ms);
    CU_ASSERT_TRUE(again_ms > LEASE_MS / 2 && again_ms < 2 * LEASE_MS + 2000);
    actors_release("old", UINT32_MAX);
    seed_check_outcome("old", "attempt 2 by A");
    seed_check_one_result("old");
    CU_ASSERT_TRUE(remote_worker_sessions(worker) >= 2);
    remote_worker_stop(worker);
    size_t const n = gateway == gateways[1];
    gateways[n] = seed_program(gateway->name, "gateway");
    CU_ASSERT_TRUE(stack_logged(gateways[n], "msg=serving", gateways[n]->lives, ACTOR_WAIT_MS));
}

/* As a process. */
static void test_a_worker_is_killed(void)
{
    setenv("THOLE_QUEUE", "dies", 1);
    struct stack_program *const dead = seed_program("dead", "remote");
    seed_start("orphan", "polite", "dies");
    CU_ASSERT_TRUE(stack_logged(dead, "serving by way of", 1, ACTOR_WAIT_MS));
    CU_ASSERT_TRUE(seed_wait_sql("1", "SELECT count(*) FROM thole_default.worker_queue"
                                      " WHERE instance = 'orphan' AND attempt = 1"));
    pause_ms(200);
    uint64_t const killed_ms = clock_monotonic_ms();
    stack_kill9(dead);
    struct remote_worker *const next = start_elsewhere(seed.stack.nats.url, "dies", 'B');
    CU_ASSERT_TRUE(actors_wait_attempt("orphan", 2));
    uint64_t const took_ms = clock_monotonic_ms() - killed_ms;
    fprintf(stderr, "\n  taken over %u ms after its worker was killed, lease %d ms\n", (unsigned)took_ms,
            LEASE_MS);
    CU_ASSERT_TRUE(took_ms > LEASE_MS / 2 && took_ms < LEASE_MS + 2000);
    actors_release("orphan", UINT32_MAX);
    seed_check_outcome("orphan", "attempt 2 by B");
    CU_ASSERT_TRUE(seed_wait_rows("orphan", 0));
    remote_worker_stop(next);
}

static const struct thole_test tests[] = {
    {"NATS is killed during an activity of several leases",
     test_nats_is_killed_during_an_activity_of_several_leases},
    {"Postgres is killed during an activity of several leases",
     test_postgres_is_killed_during_an_activity_of_several_leases},
    {"cancelled while it runs", test_cancelled_while_it_runs},
    {"cancelled during an outage", test_cancelled_during_an_outage},
    {"an outage longer than the lease", test_an_outage_longer_than_the_lease},
    {"a gateway is killed", test_a_gateway_is_killed},
    {"a worker is killed", test_a_worker_is_killed},
};

static void begin(void)
{
    setenv("THOLE_LEASE", "3s", 1);
    setenv("THOLE_SLOTS", "2", 1);
    setenv("THOLE_STOP_LIMIT", "2s", 1);
    gateways[0] = seed_program("gateway1", "gateway");
    gateways[1] = seed_program("gateway2", "gateway");
    actor_options(&elsewhere, &seed.stack, "elsewhere", LEASE_MS);
    actor_proxies(&elsewhere, &seed.stack);
}

static struct thole_test all[ARRAY_LEN(tests) + 2];

static void test_workers_start(void)
{
    actor_options(&here, &seed.stack, "here", LEASE_MS);
    actor_start(&here, 'A');
    elsewhere.remote = start_elsewhere(elsewhere.nats_url, "elsewhere", 'A');
}

static void test_nothing_is_left(void)
{
    CU_ASSERT_TRUE(seed_drained());
    actor_stop(&here);
    actor_stop(&elsewhere);
}

/* An argument: only tests with that in their names. */
int main(int argc, char **argv)
{
    size_t n = 0;
    all[n++] = (struct thole_test){"workers start", test_workers_start};
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        if (argc < 2 || strstr(tests[i].name, argv[1]) != NULL)
            all[n++] = tests[i];
    all[n++] = (struct thole_test){"nothing is left in the queues", test_nothing_is_left};
    return seed_run("gateway_outages", all, n, begin);
}
