/*
 * Seed 002: sayiir's runtime. CheckpointingRunner is the role `run`; PooledWorker is workers of one queue,
 * its claim with TTL is the lease, its heartbeat the renewal; its durable deadline is try_timeout. What needs
 * time is begun first and looked at last.
 */
#include "seed_stage.h"
#include <libpq-fe.h>
#include <stdatomic.h>

enum { LEASE_MS = 5000, SHORT_LEASE_MS = 2000, POOL = 3, POOL_SLOTS = 4, TASKS = 60 };

/* Within a tenth of a second: the database's clock goes on between the two. */
#define COUNTS_FROM_CLAIM(id)                                                                                \
    "SELECT deadline_at - claimed_at BETWEEN interval '2.9 s' AND interval '3.1 s'"                          \
    " FROM thole_default.worker_queue WHERE instance = '" id "'"

static struct actor_worker pool[POOL], holder, waiting, queued;
static char runs[128];

static bool ran(const char *line, size_t times)
{
    for (int i = 0; i < ACTOR_WAIT_MS / 5 && stack_count(runs, line) < times; i++)
        pause_ms(5);
    return stack_count(runs, line) >= times;
}

static void check_completed(const char *id)
{
    char got[SEED_TEXT_BYTES];
    CU_ASSERT_EQUAL(seed_end(id, got), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_PTR_NOT_NULL(strstr(got, "attempt 1 by "));
    CU_ASSERT_EQUAL(actors_runs(id, NULL), 1);
}

/* ---- what takes its time ---- */

/* On a handler's thread: has its row a deadline already, that lies ahead? */
static atomic_uint deadlines_seen, begun;

static void look_for_deadline(const thole_activity *act)
{
    char sql[256];
    if (!thole_slice_equal(thole_activity_instance(act), THOLE_STR("persisted")))
        return;
    snprintf(sql, sizeof sql,
             "SELECT deadline_at > clock_timestamp() FROM thole_default.worker_queue"
             " WHERE instance = '%.*s'",
             THOLE_FMT(thole_activity_instance(act)));
    PGconn *const pg = PQconnectdb(seed.stack.postgres.url);
    PGresult *const result = PQexec(pg, sql);
    atomic_fetch_add(&deadlines_seen, PQntuples(result) == 1 && strcmp(PQgetvalue(result, 0, 0), "t") == 0);
    atomic_fetch_add(&begun, 1);
    PQclear(result);
    PQfinish(pg);
}

static void begin_all(void)
{
    actors_on_begin(look_for_deadline);
    actor_options(&holder, &seed.stack, "held", LEASE_MS);
    actor_start(&holder, 'A');
    actor_options(&waiting, &seed.stack, "held", LEASE_MS);
    seed_start("extended", "polite", "held");
    CU_ASSERT_TRUE(actors_wait_runs("extended", 1));
    actor_start(&waiting, 'B');               /* would take it if it could */
    seed_start("queued", "limited", "later"); /* nobody serves that queue yet */
    CU_ASSERT_TRUE(seed_wait_rows("queued", 1));
    seed_start("in-time", "limited", "held");
    CU_ASSERT_TRUE(actors_wait_runs("in-time", 1));
    CU_ASSERT_TRUE(seed_wait_sql("t", COUNTS_FROM_CLAIM("in-time")));
    actors_release("in-time", UINT32_MAX);
    check_completed("in-time");
}

/* ---- runners and workers ---- */

/* One process is engine and worker. It dies in the midst of the second of three steps. */
static void single_process(void)
{
    setenv("THOLE_NAMESPACE", "single", 1);
    setenv("THOLE_NODE_TTL", "1s", 1);
    setenv("THOLE_LEASE", "2s", 1);
    setenv("THOLE_QUEUE", "default", 1);
    struct stack_program *const runner = seed_program("runner", "run");
    thole_client *const default_client = seed.client;
    seed.client = stack_client(&seed.stack);
    seed_start("single", "steps", "default");
    CU_ASSERT_TRUE(ran("single attempt 1 begins", 1));
    stack_kill9(runner);
    seed_touch("single.all");
    (void)seed_program("runner", "run");
    seed_check_attempt("single", 2);
    CU_ASSERT_EQUAL(stack_count(runs, "single attempt 1 echoes"), 2); /* the first and the third step, once */
    CU_ASSERT_EQUAL(seed_events("single", "ActivityCompleted", NULL), 3);
    (void)stack_terminate(runner, 10000);
    thole_client_close(seed.client);
    seed.client = default_client;
    setenv("THOLE_NAMESPACE", "default", 1);
}

/* As many as there are slots run at the same time; each of many more is run once. */
static void pooled_workers(void)
{
    char id[ACTOR_ID_BYTES];
    for (size_t i = 0; i < POOL; i++) {
        actor_options(&pool[i], &seed.stack, "pool", LEASE_MS * 10);
        pool[i].options.slots = POOL_SLOTS;
        actor_start(&pool[i], i % 2 == 0 ? 'A' : 'B');
    }
    for (size_t i = 0; i < POOL * POOL_SLOTS + TASKS; i++) {
        snprintf(id, sizeof id, "task-%zu", i);
        seed_start(id, i < POOL * POOL_SLOTS ? "polite" : "echo", "pool");
        if (i < POOL * POOL_SLOTS)
            CU_ASSERT_TRUE(actors_wait_runs(id, 1)); /* none of them has returned */
    }
    for (size_t i = 0; i < POOL * POOL_SLOTS; i++) {
        snprintf(id, sizeof id, "task-%zu", i);
        actors_release(id, UINT32_MAX);
    }
    for (size_t i = 0; i < POOL * POOL_SLOTS + TASKS; i++) {
        snprintf(id, sizeof id, "task-%zu", i);
        check_completed(id);
    }
    for (size_t i = 0; i < POOL; i++)
        actor_stop(&pool[i]);
}

static void worker_dies(void)
{
    char lease[16];
    snprintf(lease, sizeof lease, "%dms", SHORT_LEASE_MS);
    setenv("THOLE_LEASE", lease, 1);
    setenv("THOLE_QUEUE", "dies", 1);
    struct stack_program *const first = seed_program("first", "worker");
    seed_start("inherited", "polite", "dies");
    CU_ASSERT_TRUE(ran("inherited attempt 1 begins", 1));
    struct stack_program *const heir = seed_program("heir", "worker");
    CU_ASSERT_TRUE(stack_logged(heir, "serves queue dies", 1, ACTOR_WAIT_MS));
    CU_ASSERT_EQUAL(stack_count(runs, "inherited attempt 2 begins"), 0);
    stack_kill9(first);
    CU_ASSERT_TRUE(ran("inherited attempt 2 begins", 1));
    seed_touch("inherited.all");
    seed_check_attempt("inherited", 2);
    seed_check_one_result("inherited");
    (void)stack_terminate(heir, 10000);
}

/* ---- deadlines ---- */

/* It has waited for longer than a try may take: its time begins when it is claimed, not when it was asked
 * for. */
static void refreshed(void)
{
    actor_options(&queued, &seed.stack, "later", LEASE_MS);
    queued.options.slots = 4;
    CU_ASSERT_TRUE(seed_wait_sql("t", "SELECT created_at < clock_timestamp() - interval '3 s' AND"
                                      " deadline_at IS NULL FROM thole_default.worker_queue"
                                      " WHERE instance = 'queued'"));
    actor_start(&queued, 'A');
    CU_ASSERT_TRUE(actors_wait_runs("queued", 1));
    CHECK_STR("waited",
              seed_sql("SELECT claimed_at > created_at + interval '3 s'"
                       " FROM thole_default.worker_queue WHERE instance = 'queued'"),
              "t");
    CHECK_STR("from the claim", seed_sql(COUNTS_FROM_CLAIM("queued")), "t");
    actors_release("queued", UINT32_MAX);
    seed_check_outcome("queued", "attempt 1 by A");
}

static void branches(void)
{
    struct actor_run run;
    seed_start("fork", "fork_join", "later");
    CU_ASSERT_TRUE(actors_wait_runs("fork", 3));
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_TRUE(actors_run("fork", i, &run) && !run.returned);
    actors_release("fork", UINT32_MAX);
    seed_check_outcome("fork", "attempt 1 by A, attempt 1 by A, attempt 1 by A");
    CU_ASSERT_EQUAL(seed_events("fork", "ActivityCompleted", NULL), 3);
    actor_stop(&queued);
}

static void persisted(void)
{
    seed_start("persisted", "limited", "held");
    CU_ASSERT_TRUE(actors_wait_runs("persisted", 1));
    CU_ASSERT_EQUAL(atomic_load(&begun), 1);
    CU_ASSERT_EQUAL(atomic_load(&deadlines_seen), 1);
    actors_release("persisted", UINT32_MAX);
    check_completed("persisted");
}

/* The deadline of "in-time" is over by now, and nobody has acted upon it. */
static void cleared(void)
{
    CHECK_STR("rows",
              seed_sql("SELECT count(*) FROM thole_default.worker_queue WHERE deadline_at IS NOT NULL"), "0");
    CU_ASSERT_EQUAL(stack_count(seed.engine->log, "past their deadline"), 0);
    seed_check_one_result("in-time");
    seed_check_one_result("persisted");
    CU_ASSERT_EQUAL(actors_runs("in-time", NULL), 1);
}

/* Held for longer than a lease, under the eyes of a worker that has a slot for it. */
static void extended(void)
{
    CU_ASSERT_TRUE(seed_wait_sql("t",
                                 "SELECT renewed_at > claimed_at + interval '%d ms'"
                                 " FROM thole_default.worker_queue WHERE instance = 'extended'",
                                 LEASE_MS + 500));
    actors_release("extended", UINT32_MAX);
    seed_check_outcome("extended", "attempt 1 by A");
    CU_ASSERT_EQUAL(actors_runs("extended", NULL), 1);
    CU_ASSERT_TRUE(seed_drained());
    actor_stop(&waiting);
    actor_stop(&holder);
}

static const struct thole_test tests[] = {
    {"begin", begin_all},
    {"claim_expires_when_worker_dies_and_another_takes_it", worker_dies},
    {"single_process_run_resumes_after_crash", single_process},
    {"pooled_workers_claim_each_task_once", pooled_workers},
    {"deadline_refreshed_just_before_handler_starts", refreshed},
    {"fork_branches_run_concurrently_and_join", branches},
    {"deadline_persisted_before_execution", persisted},
    {"claim_extended_by_heartbeat", extended},
    {"deadline_cleared_on_completion", cleared},
};

static void begin(void)
{
    snprintf(runs, sizeof runs, "%s/runs", seed.stack.dir);
}

int main(void)
{
    return seed_run("seed_runtime", tests, ARRAY_LEN(tests), begin);
}
