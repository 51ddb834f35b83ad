/*
 * Workers that stop for longer than their lease in the midst of it all, and go on as if nothing had been:
 * frozen while a handler runs, frozen while a result is on its way; and a row that another has claimed.
 * Processes of their own, with short leases; all three stories go on at the same time.
 */
#include "reader.h"
#include "stack.h"
#include "tcp_proxy.h"
#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <unistd.h>

enum { WAIT_MS = 60000, SETTLE_MS = 300 };

static struct stack stack;
static thole_client *client;
static struct connection *connection;
static struct tcp_proxy *proxy;
static char runs[128];
static struct stack_program *sleeper, *sleeper_rival, *sender, *sender_rival, *robbed;

/* ---- what happens and what is there ---- */

static void release(const char *id, unsigned attempt)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s.%u", stack.dir, id, attempt);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
}

static bool ran(const char *id, unsigned attempt, const char *what)
{
    char line[128];
    snprintf(line, sizeof line, "%s attempt %u %s", id, attempt, what);
    for (int i = 0; i < WAIT_MS / 5 && stack_count(runs, line) == 0; i++)
        pause_ms(5);
    return stack_count(runs, line) > 0;
}

static struct stack_program *start_worker(const char *name, const char *queue, const char *nats_url)
{
    setenv("THOLE_QUEUE", queue, 1);
    setenv("THOLE_NATS_URL", nats_url, 1);
    return stack_program_of(&stack, "program_seeds", name, "worker");
}

static void start(const char *id, const char *queue)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("rude"), thole_slice_from(queue),
                                NULL, &stack.err),
             &stack.err);
}

static void check_outcome(const char *id, const char *want)
{
    thole_instance_status status;
    char got[64];
    snprintf(got, sizeof got, "%s", stack_outcome(client, id, WAIT_MS, &status));
    CHECK_STR(id, got, want);
}

static thole_status count_result(void *arg, const thole_history_event *event)
{
    *(size_t *)arg += strncmp(event->kind, "Activity", 8) == 0 && event->ref != 0;
    return THOLE_OK;
}

static void check_one_result(const char *id)
{
    size_t results = 0;
    CHECK_OK(thole_client_history(client, thole_slice_from(id), count_result, &results, &stack.err),
             &stack.err);
    CU_ASSERT_EQUAL(results, 1);
}

static bool is_queued(const char *queue, const char *id)
{
    char subject[256];
    uint64_t sequence = 0;
    snprintf(subject, sizeof subject, "thole.default.work.%s.%s.1.2.1", queue, id);
    CHECK_OK(stream_last_by_subject(connection, "THOLE_default_WORK", subject, &sequence, NULL, &stack.err),
             &stack.err);
    return sequence != 0;
}

static const char *sql(const char *statement)
{
    static char value[128];
    PGconn *pg = PQconnectdb(stack.postgres.url);
    PGresult *result = PQexec(pg, statement);
    CU_ASSERT_TRUE(PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK);
    snprintf(value, sizeof value, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(pg);
    return value;
}

static bool wait_sql(const char *statement, const char *want)
{
    for (int i = 0; i < WAIT_MS / 10 && strcmp(sql(statement), want) != 0; i++)
        pause_ms(10);
    return strcmp(sql(statement), want) == 0;
}

/* Its result was refused, for whichever of the two reasons it noticed first. */
static bool logged_refusal(const struct stack_program *worker, const char *id)
{
    char lost[128], stolen[128];
    snprintf(lost, sizeof lost, "lease lost, it will run again: instance=%s", id);
    snprintf(stolen, sizeof stolen, "another worker has taken it over: instance=%s", id);
    for (int i = 0; i < WAIT_MS / 5; i++) {
        if (stack_count(worker->log, lost) + stack_count(worker->log, stolen) > 0)
            return true;
        pause_ms(5);
    }
    return false;
}

/* ---- stories ---- */

static void test_they_stop(void)
{
    char url[64];
    snprintf(url, sizeof url, "nats://127.0.0.1:%u", tcp_proxy_port(proxy));
    sleeper = start_worker("sleeper", "sleeps", stack.nats.url);
    sender = start_worker("sender", "sends", url);
    robbed = start_worker("robbed", "robs", stack.nats.url);
    start("asleep", "sleeps");
    start("sent", "sends");
    start("stolen", "robs");
    CU_ASSERT_TRUE(ran("asleep", 1, "begins"));
    CU_ASSERT_TRUE(ran("sent", 1, "begins"));
    CU_ASSERT_TRUE(ran("stolen", 1, "begins"));

    process_signal(sleeper->pid, SIGSTOP);
    release("asleep", 1); /* it ends as soon as it wakes */

    tcp_proxy_stall(proxy, TCP_TO_SERVER);
    release("sent", 1); /* its row is deleted, the result is on its way, nothing is committed */
    CU_ASSERT_TRUE(wait_sql("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND "
                            "application_name = 'thole-worker'",
                            "1"));
    process_signal(sender->pid, SIGSTOP);

    (void)sql("UPDATE thole_default.worker_queue SET attempt = attempt + 1, worker = 'thief' "
              "WHERE instance = 'stolen'");
    release("stolen", 1);

    sleeper_rival = start_worker("sleeper_rival", "sleeps", stack.nats.url);
    sender_rival = start_worker("sender_rival", "sends", stack.nats.url);
}

/* What the row says counts, and what the worker acknowledges is nothing: the message comes again. */
static void test_a_stolen_row_refuses_the_result(void)
{
    CU_ASSERT_TRUE(ran("stolen", 1, "ends"));
    CU_ASSERT_TRUE(stack_logged(robbed, "another worker has taken it over: instance=stolen", 1, WAIT_MS));
    CU_ASSERT_TRUE(is_queued("robs", "stolen"));
    CU_ASSERT_TRUE(ran("stolen", 3, "begins")); /* the thief does nothing with it */
    release("stolen", 3);
    check_outcome("stolen", "attempt 3");
    check_one_result("stolen");
}

/* Another has it. The first wakes and has a result at once; then the other dies: the message is still there.
 */
static void test_a_worker_that_sleeps_through_its_lease(void)
{
    CU_ASSERT_TRUE(ran("asleep", 2, "begins"));
    process_signal(sleeper->pid, SIGCONT);
    CU_ASSERT_TRUE(ran("asleep", 1, "ends"));
    CU_ASSERT_TRUE(logged_refusal(sleeper, "asleep"));
    pause_ms(SETTLE_MS); /* time to do wrong */
    CU_ASSERT_TRUE(is_queued("sleeps", "asleep"));
    CHECK_STR("row", sql("SELECT attempt FROM thole_default.worker_queue WHERE instance = 'asleep'"), "2");
    stack_kill9(sleeper_rival);
    CU_ASSERT_TRUE(ran("asleep", 3, "begins")); /* on the first one's only slot */
    release("asleep", 3);
    check_outcome("asleep", "attempt 3");
    check_one_result("asleep");
}

/* Its transaction holds the row for a lease and no longer. What it has sent comes when all is over. */
static void test_a_worker_that_sleeps_in_the_midst_of_a_completion(void)
{
    size_t const from = stack_count(sender->log, "Postgres");
    CU_ASSERT_TRUE(stack_logged(sender_rival, "serves queue", 1, WAIT_MS));
    uint64_t const from_ms = clock_monotonic_ms();
    CU_ASSERT_TRUE(ran("sent", 2, "begins"));
    CU_ASSERT_TRUE(clock_monotonic_ms() - from_ms < 7000);
    release("sent", 2);
    check_outcome("sent", "attempt 2");
    tcp_proxy_heal(proxy);
    process_signal(sender->pid, SIGCONT);
    for (int i = 0; i < WAIT_MS / 10 && stack_count(sender->log, "Postgres") == from; i++)
        pause_ms(10); /* its transaction is gone */
    (void)stack_terminate(sender_rival, 10000);
    start("sent-2", "sends"); /* its slot is free again */
    release("sent-2", 1);
    check_outcome("sent-2", "attempt 1");
    check_one_result("sent");
}

static void test_nothing_is_left(void)
{
    struct stream_bounds bounds = {.messages = 1};
    for (int i = 0; i < WAIT_MS / 10 && bounds.messages > 0; i++) {
        CHECK_OK(stream_bounds(connection, "THOLE_default_WORK", &bounds, &stack.err), &stack.err);
        pause_ms(10);
    }
    CU_ASSERT_EQUAL(bounds.messages, 0);
    CHECK_STR("rows", sql("SELECT count(*) FROM thole_default.worker_queue"), "0");
}

static const struct thole_test tests[] = {
    {"workers stop in the midst of it all", test_they_stop},
    {"a worker that sleeps in the midst of a completion",
     test_a_worker_that_sleeps_in_the_midst_of_a_completion},
    {"a stolen row refuses the result", test_a_stolen_row_refuses_the_result},
    {"a worker that sleeps through its lease", test_a_worker_that_sleeps_through_its_lease},
    {"nothing is left", test_nothing_is_left},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    struct connection_options const options = {
        .url = stack.nats.url, .name = "frozen", .connect_timeout_ms = 5000, .request_timeout_ms = 5000};
    proxy = tcp_proxy_start(stack.nats.port);
    if (proxy == NULL || connection_open(&options, &connection, &stack.err) != THOLE_OK)
        return 1;
    snprintf(runs, sizeof runs, "%s/runs", stack.dir);
    setenv("SEEDS_DIR", stack.dir, 1);
    setenv("THOLE_LEASE", "2s", 1);
    setenv("THOLE_SLOTS", "1", 1);
    setenv("THOLE_STOP_LIMIT", "2s", 1);
    (void)stack_program_of(&stack, "program_seeds", "engine", "engine");
    client = stack_client(&stack);
    int const failed = thole_run_suite("leases_frozen", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    connection_close(connection);
    stack_stop(&stack);
    tcp_proxy_stop(proxy);
    return failed;
}
