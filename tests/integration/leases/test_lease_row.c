/*
 * The row carries the lease: one activity, much longer than a lease, that two workers could run, through
 * restarts of NATS, cuts, restarts of Postgres and both. It runs once wherever Postgres is reached again
 * within the lease, however long NATS is away. Another one is taken over, within a lease, where Postgres is
 * not, or where its worker is killed.
 */
#include "clock.h"
#include "seed_stage.h"
#include <signal.h>

enum {
    LEASE_MS = 5000,
    RENEW_MS = 400, /* an outage may begin right before one */
    MARGIN_MS = LEASE_MS / 5,
    BLIP_MS = 300,
    RESTARTS = 10,
    LATE_MS = 3000, /* the server's redelivery, and a busy machine */
};

static struct actor_worker workers[2];
static struct actor_worker *holder;
static uint64_t begun_ms, outage_ms; /* outage: the longest of Postgres */

static struct actor_worker *worker_of(const char *id, size_t n)
{
    struct actor_run run = {.worker = '?'};
    CU_ASSERT_TRUE(actors_wait_runs(id, n + 1));
    CU_ASSERT_TRUE(actors_run(id, n, &run));
    return &workers[run.worker == 'B'];
}

/* The activity has begun once, and was not told to stop. */
static void check_undisturbed(const char *when)
{
    struct actor_run run = {.fired = true};
    bool const longer =
        outage_ms + RENEW_MS >= LEASE_MS - MARGIN_MS; /* than the lease: nothing is promised */
    CU_ASSERT_TRUE(actors_run("long", 0, &run));
    if (longer)
        fprintf(stderr, "\n  %s: Postgres was away for %u ms\n", when, (unsigned)outage_ms);
    CU_ASSERT_TRUE(longer || (!run.fired && actors_runs("long", NULL) == 1));
    if (run.fired || actors_runs("long", NULL) != 1)
        fprintf(stderr, "\n  %s: %zu runs, token %s\n", when, actors_runs("long", NULL), run.reason);
}

static void note_outage(uint64_t from_ms)
{
    uint64_t const took_ms = clock_monotonic_ms() - from_ms;
    outage_ms = took_ms > outage_ms ? took_ms : outage_ms;
}

static void begin_two(void)
{
    for (int i = 0; i < 2; i++) {
        actor_options(&workers[i], &seed.stack, "row", LEASE_MS);
        workers[i].options.renew_every_ms = RENEW_MS;
        actor_proxies(&workers[i], &seed.stack);
        actor_start(&workers[i], (char)('A' + i));
    }
    seed_start("long", "polite", "row");
    holder = worker_of("long", 0);
    begun_ms = clock_monotonic_ms();
}

/* As often as --renew-every says, and not as often as without it. */
static void check_renewals(void)
{
    enum { LOOKS = 10, THIRD_MS = LEASE_MS / 3 };
    unsigned fresh = 0;
    pause_ms(THIRD_MS);
    for (int i = 0; i < LOOKS; i++, pause_ms(THIRD_MS / 5))
        fresh += strcmp(seed_sql("SELECT clock_timestamp() - renewed_at < interval '1 s'"
                                 " FROM thole_default.worker_queue WHERE instance = 'long'"),
                        "t") == 0;
    CU_ASSERT_TRUE(fresh >= LOOKS - 1);
}

static void test_nats_is_killed_again_and_again(void)
{
    begin_two();
    check_renewals();
    for (int i = 0; i < RESTARTS; i++) {
        server_kill9(&seed.stack.nats);
        pause_ms(BLIP_MS);
        CHECK_OK(server_restart(&seed.stack.nats, &seed.err), &seed.err);
        pause_ms(BLIP_MS);
    }
    pause_ms(LEASE_MS);
    check_undisturbed("NATS killed ten times");
}

static void test_nats_is_cut(void)
{
    tcp_proxy_cut(holder->nats);
    pause_ms(LEASE_MS / 2);
    tcp_proxy_heal(holder->nats);
    pause_ms(BLIP_MS);
    check_undisturbed("NATS cut for half a lease");
    tcp_proxy_cut(holder->nats); /* the other one gets the message, and finds the row held */
    pause_ms(LEASE_MS * 2 + LATE_MS);
    check_undisturbed("NATS cut for two leases and more");
    tcp_proxy_heal(holder->nats);
    pause_ms(BLIP_MS);
    check_undisturbed("NATS is back");
}

static void test_postgres_is_restarted(void)
{
    uint64_t from_ms = clock_monotonic_ms();
    server_stop(&seed.stack.postgres);
    CHECK_OK(server_restart(&seed.stack.postgres, &seed.err), &seed.err);
    note_outage(from_ms);
    pause_ms(LEASE_MS);
    check_undisturbed("Postgres restarted");
    from_ms = clock_monotonic_ms();
    server_kill9(&seed.stack.postgres);
    CHECK_OK(server_restart(&seed.stack.postgres, &seed.err), &seed.err);
    note_outage(from_ms);
    pause_ms(LEASE_MS);
    check_undisturbed("Postgres killed");
}

static void test_both_are_killed(void)
{
    uint64_t const from_ms = clock_monotonic_ms();
    server_kill9(&seed.stack.nats);
    server_kill9(&seed.stack.postgres);
    CHECK_OK(server_restart(&seed.stack.postgres, &seed.err), &seed.err);
    note_outage(from_ms);
    CHECK_OK(server_restart(&seed.stack.nats, &seed.err), &seed.err);
    pause_ms(LEASE_MS);
    check_undisturbed("both killed");
}

/* As a crash of Postgres leaves it that cost the row: nobody takes that for a cancellation, and when the
 * engine has projected it again its worker takes it back. */
static void test_the_database_has_lost_the_row(void)
{
    process_signal(seed.engine->pid, SIGSTOP);
    (void)seed_sql("TRUNCATE thole_default.incarnation");
    (void)seed_sql("DELETE FROM thole_default.worker_queue WHERE instance = 'long'");
    (void)seed_sql("UPDATE thole_default.partitions SET projected_seq = 0, projected_mark = 0");
    uint64_t const from_ms = clock_monotonic_ms();
    pause_ms(3 * RENEW_MS);
    check_undisturbed("its row is missing");
    process_signal(seed.engine->pid, SIGCONT);
    (void)seed_sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = "
                   "'thole-engine'");
    CU_ASSERT_TRUE(
        seed_wait_sql("1", "SELECT count(*) FROM thole_default.worker_queue WHERE instance = 'long' AND "
                           "attempt = 1 AND worker IS NOT NULL"));
    note_outage(from_ms);
    pause_ms(LEASE_MS);
    check_undisturbed("its row is there again");
}

static void test_it_ends_once(void)
{
    CU_ASSERT_TRUE(clock_monotonic_ms() - begun_ms > 5 * LEASE_MS);
    actors_release("long", UINT32_MAX);
    if (outage_ms + RENEW_MS < LEASE_MS - MARGIN_MS)
        seed_check_outcome("long", holder == &workers[0] ? "attempt 1 by A" : "attempt 1 by B");
    seed_check_one_result("long");
    CU_ASSERT_TRUE(seed_drained());
}

/* Longer than a lease without Postgres: its token fires before the lease is over, and another has it soon. */
static void test_postgres_is_cut_for_longer(void)
{
    seed_start("taken", "polite", "row");
    struct actor_worker *const first = worker_of("taken", 0);
    tcp_proxy_stall(first->postgres, TCP_BOTH);
    uint64_t const from_ms = clock_monotonic_ms();
    CU_ASSERT_TRUE(actors_wait_fired("taken", 0));
    uint64_t const fired_ms = clock_monotonic_ms() - from_ms;
    CU_ASSERT_TRUE(actors_wait_runs("taken", 2));
    uint64_t const took_ms = clock_monotonic_ms() - from_ms;
    fprintf(stderr, "\n  cut from Postgres: told after %u ms, taken over after %u ms\n", (unsigned)fired_ms,
            (unsigned)took_ms);
    CU_ASSERT_TRUE(fired_ms < LEASE_MS);
    CU_ASSERT_TRUE(took_ms + RENEW_MS + 100 >= fired_ms); /* never before */
    CU_ASSERT_TRUE(took_ms < LEASE_MS + RENEW_MS + LATE_MS);
    CU_ASSERT_TRUE(worker_of("taken", 1) != first);
    tcp_proxy_heal(first->postgres);
    actors_release("taken", UINT32_MAX);
    seed_check_attempt("taken", 2);
    seed_check_one_result("taken");
}

static bool logged(const char *path, const char *line)
{
    for (int i = 0; i < ACTOR_WAIT_MS / 5 && stack_count(path, line) == 0; i++)
        pause_ms(5);
    return stack_count(path, line) > 0;
}

static void test_its_worker_is_killed(void)
{
    char runs[128];
    snprintf(runs, sizeof runs, "%s/runs", seed.stack.dir);
    setenv("THOLE_QUEUE", "killed", 1);
    setenv("THOLE_LEASE", "5s", 1);
    setenv("THOLE_RENEW_EVERY", "400ms", 1);
    struct stack_program *const victim = seed_program("victim", "worker");
    seed_start("orphan", "rude", "killed");
    CU_ASSERT_TRUE(logged(runs, "orphan attempt 1 begins"));
    (void)seed_program("heir", "worker");
    pause_ms(BLIP_MS);
    stack_kill9(victim);
    uint64_t const from_ms = clock_monotonic_ms();
    CU_ASSERT_TRUE(logged(runs, "orphan attempt 2 begins"));
    uint64_t const took_ms = clock_monotonic_ms() - from_ms;
    fprintf(stderr, "\n  worker killed: taken over after %u ms\n", (unsigned)took_ms);
    CU_ASSERT_TRUE(took_ms < LEASE_MS + LATE_MS);
    seed_touch("orphan.all");
    seed_check_attempt("orphan", 2);
    seed_check_one_result("orphan");
}

static void test_nothing_is_left(void)
{
    CU_ASSERT_TRUE(seed_drained());
    CHECK_STR("rows", seed_sql("SELECT count(*) FROM thole_default.worker_queue"), "0");
    for (size_t i = 0; i < ARRAY_LEN(workers); i++)
        actor_stop(&workers[i]);
}

static const struct thole_test tests[] = {
    {"NATS is killed again and again", test_nats_is_killed_again_and_again},
    {"NATS is cut", test_nats_is_cut},
    {"Postgres is restarted", test_postgres_is_restarted},
    {"both are killed", test_both_are_killed},
    {"the database has lost the row", test_the_database_has_lost_the_row},
    {"it ends once", test_it_ends_once},
    {"Postgres is cut for longer than a lease", test_postgres_is_cut_for_longer},
    {"its worker is killed", test_its_worker_is_killed},
    {"nothing is left", test_nothing_is_left},
};

int main(void)
{
    return seed_run("lease_row", tests, ARRAY_LEN(tests), NULL);
}
