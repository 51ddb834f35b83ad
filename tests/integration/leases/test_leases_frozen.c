/*
 * Workers that stop for longer than their lease in the midst of it all, and go on as if nothing had been:
 * frozen while a handler runs, frozen while a result is on its way; and a row that another has claimed.
 * Processes of their own, with short leases; all three stories go on at the same time.
 */
#include "seed_stage.h"
#include <signal.h>

enum { SETTLE_MS = 300 };

static struct tcp_proxy *proxy;
static char runs[128];
static struct stack_program *sleeper, *sleeper_rival, *sender, *sender_rival, *robbed;

/* ---- events and states ---- */

static void release(const char *id, unsigned attempt)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%u", id, attempt);
    seed_touch(name);
}

static bool ran(const char *id, unsigned attempt, const char *what)
{
    char line[128];
    snprintf(line, sizeof line, "%s attempt %u %s", id, attempt, what);
    for (int i = 0; i < ACTOR_WAIT_MS / 5 && stack_count(runs, line) == 0; i++)
        pause_ms(5);
    return stack_count(runs, line) > 0;
}

static struct stack_program *start_worker(const char *name, const char *queue, const char *nats_url)
{
    setenv("THOLE_QUEUE", queue, 1);
    setenv("THOLE_NATS_URL", nats_url, 1);
    return seed_program(name, "worker");
}

static bool logged_one(const struct stack_program *worker, const char *const *texts, size_t n)
{
    for (int i = 0; i < ACTOR_WAIT_MS / 5; i++) {
        for (size_t k = 0; k < n; k++)
            if (stack_count(worker->log, texts[k]) > 0)
                return true;
        pause_ms(5);
    }
    return false;
}

/* The result was refused, for whichever of the two reasons the worker noticed first. */
static bool logged_refusal(const struct stack_program *worker, const char *id)
{
    char lost[128], stolen[128];
    snprintf(lost, sizeof lost, "instance=%s *lease lost, it will run again", id);
    snprintf(stolen, sizeof stolen, "instance=%s *another worker has taken it over", id);
    return logged_one(worker, (const char *const[]){lost, stolen}, 2);
}

/* ---- stories ---- */

static void test_they_stop(void)
{
    char url[64];
    snprintf(url, sizeof url, "nats://127.0.0.1:%u", tcp_proxy_port(proxy));
    sleeper = start_worker("sleeper", "sleeps", seed.stack.nats.url);
    sender = start_worker("sender", "sends", url);
    robbed = start_worker("robbed", "robs", seed.stack.nats.url);
    seed_start("asleep", "rude", "sleeps");
    seed_start("sent", "rude", "sends");
    seed_start("stolen", "rude", "robs");
    CU_ASSERT_TRUE(ran("asleep", 1, "begins"));
    CU_ASSERT_TRUE(ran("sent", 1, "begins"));
    CU_ASSERT_TRUE(ran("stolen", 1, "begins"));

    CU_ASSERT_TRUE(stack_freeze(sleeper));
    release("asleep", 1); /* ends as soon as it wakes */

    tcp_proxy_stall(proxy, TCP_TO_SERVER);
    release("sent", 1); /* the row is deleted, the result is on its way, nothing is committed */
    CU_ASSERT_TRUE(
        seed_wait_sql("1", "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND "
                           "application_name = 'thole-worker'"));
    CU_ASSERT_TRUE(stack_freeze(sender));

    (void)seed_sql("UPDATE thole_default.worker_queue SET attempt = attempt + 1, worker = 'thief' "
                   "WHERE instance = 'stolen'");
    release("stolen", 1);

    sleeper_rival = start_worker("sleeper_rival", "sleeps", seed.stack.nats.url);
    sender_rival = start_worker("sender_rival", "sends", seed.stack.nats.url);
}

/* The row counts, and the worker's acknowledgement does not: the message comes again. */
static void test_a_stolen_row_refuses_the_result(void)
{
    CU_ASSERT_TRUE(ran("stolen", 1, "ends"));
    CU_ASSERT_TRUE(
        stack_logged(robbed, "instance=stolen *another worker has taken it over", 1, ACTOR_WAIT_MS));
    CU_ASSERT_TRUE(seed_is_queued("robs", "stolen", 2));
    CU_ASSERT_TRUE(ran("stolen", 3, "begins")); /* the thief does nothing with it */
    seed_touch("stolen.all");
    seed_check_attempt("stolen", 3);
    seed_check_one_result("stolen");
}

/* Another has it. The first wakes and has a result at once; then the other dies: the message is still there.
 */
static void test_a_worker_that_sleeps_through_its_lease(void)
{
    CU_ASSERT_TRUE(ran("asleep", 2, "begins"));
    stack_thaw(sleeper);
    CU_ASSERT_TRUE(ran("asleep", 1, "ends"));
    CU_ASSERT_TRUE(logged_refusal(sleeper, "asleep"));
    pause_ms(SETTLE_MS); /* time to do wrong */
    CU_ASSERT_TRUE(seed_is_queued("sleeps", "asleep", 2));
    CHECK_STR("row", seed_sql("SELECT attempt FROM thole_default.worker_queue WHERE instance = 'asleep'"),
              "2");
    stack_kill9(sleeper_rival);
    CU_ASSERT_TRUE(ran("asleep", 3, "begins")); /* on the first one's only slot */
    seed_touch("asleep.all");
    seed_check_attempt("asleep", 3);
    seed_check_one_result("asleep");
}

/* The worker's transaction holds the row for a lease and no longer. Its statements come when all is over. */
static void test_a_worker_that_sleeps_in_the_midst_of_a_completion(void)
{
    CU_ASSERT_TRUE(stack_logged(sender_rival, "serves queue", 1, ACTOR_WAIT_MS));
    uint64_t const from_ms = clock_monotonic_ms();
    CU_ASSERT_TRUE(ran("sent", 2, "begins"));
    CU_ASSERT_TRUE(clock_monotonic_ms() - from_ms < 7000);
    seed_touch("sent.all");
    seed_check_attempt("sent", 2);
    tcp_proxy_heal(proxy);
    stack_thaw(sender);
    /* when it wakes it sees first that NATS has not answered in time, or the answer, which came meanwhile:
     * then it commits, and Postgres has ended the transaction. What it tries again finds no row, or that of
     * the rival that is not done yet. */
    static const char *const refused[] = {"instance=sent *another worker was first",
                                          "instance=sent *another worker has taken it over",
                                          "committing completions failed on Postgres"};
    CU_ASSERT_TRUE(logged_one(sender, refused, ARRAY_LEN(refused)));
    (void)stack_terminate(sender_rival, 10000);
    seed_start("sent-2", "rude", "sends"); /* the slot is free again */
    seed_touch("sent-2.all");
    seed_check_attempt("sent-2", 1);
    seed_check_one_result("sent");
}

static void test_nothing_is_left(void)
{
    CU_ASSERT_TRUE(seed_drained());
    CHECK_STR("rows", seed_sql("SELECT count(*) FROM thole_default.worker_queue"), "0");
}

static const struct thole_test tests[] = {
    {"workers stop in the midst of it all", test_they_stop},
    {"a worker that sleeps in the midst of a completion",
     test_a_worker_that_sleeps_in_the_midst_of_a_completion},
    {"a stolen row refuses the result", test_a_stolen_row_refuses_the_result},
    {"a worker that sleeps through its lease", test_a_worker_that_sleeps_through_its_lease},
    {"nothing is left", test_nothing_is_left},
};

static void begin(void)
{
    proxy = tcp_proxy_start(seed.stack.nats.port);
    snprintf(runs, sizeof runs, "%s/runs", seed.stack.dir);
    setenv("THOLE_LEASE", "2s", 1);
    setenv("THOLE_SLOTS", "1", 1);
    setenv("THOLE_STOP_LIMIT", "2s", 1);
}

int main(void)
{
    int const failed = seed_run("leases_frozen", tests, ARRAY_LEN(tests), begin);
    tcp_proxy_stop(proxy);
    return failed;
}
