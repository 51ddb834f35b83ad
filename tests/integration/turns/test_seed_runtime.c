/*
 * Seed 002: sayiir's runtime. CheckpointingRunner is the role `run`; PooledWorker is workers of one queue,
 * its claim with TTL is the lease, its heartbeat the renewal; its durable deadline is try_timeout. What needs
 * time is begun first and looked at last.
 */
#include "seed_stage.h"
#include "work_heard.h"
#include "wrap_moved_clock.h"
#include <libpq-fe.h>
#include <stdatomic.h>

enum { LEASE_MS = 5000, SHORT_LEASE_MS = 2000, POOL = 3, POOL_SLOTS = 4, TASKS = 60 };
enum { POOL_RUNS = POOL * POOL_SLOTS, CONTENDED = POOL_RUNS / 2, LONG_LEASE_MS = 600000 };

/* Within a tenth of a second: the database's clock goes on between the two. */
#define COUNTS_FROM_CLAIM(id)                                                                                \
    "SELECT deadline_at - claimed_at BETWEEN interval '2.9 s' AND interval '3.1 s'"                          \
    " FROM thole_default.worker_queue WHERE instance = '" id "'"

static struct actor_worker pool[POOL], holder, queued;
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

/* ---- steps that take their time ---- */

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
    work_heard_open(seed.stack.nats.url);
    actors_on_begin(look_for_deadline);
    actor_options(&holder, &seed.stack, "held", LEASE_MS);
    actor_start(&holder, 'A');
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

/* Another worker that has a slot gets the message of an activity that runs, as often as it takes until one
 * says that it waits for the lease (its holder may get it, and has it already). Until then it has run once.
 */
static void contend_for_run(const char *queue, const char *id)
{
    enum { STEP_MS = 20 };
    uint64_t const message = seed_message(queue, id, 2);
    for (int i = 0; i < ACTOR_WAIT_MS / STEP_MS && actors_runs(id, NULL) == 1; i++) {
        if (work_heard_of(message).delayed > 0)
            break;
        work_heard_redeliver(queue, message);
        pause_ms(STEP_MS);
    }
    CU_ASSERT_TRUE(work_heard_of(message).delayed > 0);
    CU_ASSERT_EQUAL(actors_runs(id, NULL), 1);
}

static const char *task_id(size_t i)
{
    static char id[ACTOR_ID_BYTES];
    snprintf(id, sizeof id, "task-%zu", i);
    return id;
}

static void start_tasks(size_t first, size_t n, const char *orchestration)
{
    for (size_t i = first; i < first + n; i++)
        seed_start(task_id(i), orchestration, "pool");
}

/* Half of the slots are taken, and all that runs there is contended for. Then as many as there are slots run
 * at the same time; and each of many more is run once. */
static void pooled_workers(void)
{
    for (size_t i = 0; i < POOL; i++) {
        actor_options(&pool[i], &seed.stack, "pool", LONG_LEASE_MS);
        pool[i].options.slots = POOL_SLOTS;
        actor_start(&pool[i], i % 2 == 0 ? 'A' : 'B');
    }
    start_tasks(0, CONTENDED, "polite");
    for (size_t i = 0; i < CONTENDED; i++)
        CU_ASSERT_TRUE(actors_wait_runs(task_id(i), 1));
    for (size_t i = 0; i < CONTENDED; i++)
        contend_for_run("pool", task_id(i));
    start_tasks(CONTENDED, POOL_RUNS - CONTENDED, "polite");
    for (size_t i = CONTENDED; i < POOL_RUNS; i++)
        CU_ASSERT_TRUE(actors_wait_runs(task_id(i), 1)); /* none of them has returned */
    start_tasks(POOL_RUNS, TASKS, "echo");
    for (size_t i = 0; i < POOL_RUNS; i++)
        actors_release(task_id(i), UINT32_MAX);
    for (size_t i = 0; i < POOL_RUNS + TASKS; i++)
        check_completed(task_id(i));
    for (size_t i = 0; i < POOL; i++)
        actor_stop(&pool[i]);
}

/* The lease, in the row and at the broker, is as long as the option says. */
static void check_lease(const char *queue, const char *id)
{
    char want[32];
    snprintf(want, sizeof want, "%u", (unsigned)SHORT_LEASE_MS / 1000);
    CHECK_STR("lease in seconds",
              seed_sql("SELECT round(extract(epoch FROM lease_until - greatest(claimed_at, renewed_at)))"
                       " FROM thole_default.worker_queue WHERE instance = '%s'",
                       id),
              want);
    CU_ASSERT_EQUAL(work_heard_ack_wait_ms(queue), SHORT_LEASE_MS);
}

/* The worker is killed: another one has the activity when the lease in the row is over, and not before. Two
 * leases are left to a busy machine; by the database's clock. */
static void worker_dies(void)
{
    char lease[16], until[64];
    snprintf(lease, sizeof lease, "%dms", SHORT_LEASE_MS);
    setenv("THOLE_LEASE", lease, 1);
    setenv("THOLE_QUEUE", "dies", 1);
    struct stack_program *const first = seed_program("first", "worker");
    seed_start("inherited", "polite", "dies");
    CU_ASSERT_TRUE(ran("inherited attempt 1 begins", 1));
    check_lease("dies", "inherited");
    struct stack_program *const heir = seed_program("heir", "worker");
    CU_ASSERT_TRUE(stack_logged(heir, "serves queue dies", 1, ACTOR_WAIT_MS));
    CU_ASSERT_TRUE(seed_wait_sql("t", "SELECT renewed_at IS NOT NULL FROM thole_default.worker_queue"
                                      " WHERE instance = 'inherited'"));
    check_lease("dies", "inherited");
    CU_ASSERT_EQUAL(stack_count(runs, "inherited attempt 2 begins"), 0);
    stack_kill9(first);
    snprintf(until, sizeof until, "%s",
             seed_sql("SELECT lease_until FROM thole_default.worker_queue WHERE instance = 'inherited'"));
    CU_ASSERT_TRUE(ran("inherited attempt 2 begins", 1));
    CHECK_STR("taken over in time",
              seed_sql("SELECT claimed_at BETWEEN '%s' AND timestamptz '%s' + interval '%d ms'"
                       " FROM thole_default.worker_queue WHERE instance = 'inherited'",
                       until, until, 2 * SHORT_LEASE_MS),
              "t");
    seed_touch("inherited.all");
    seed_check_attempt("inherited", 2);
    seed_check_one_result("inherited");
    (void)stack_terminate(heir, 10000);
}

/* ---- deadlines ---- */

/* The activity has waited for longer than a try may take: its time begins when it is claimed, not when it was
 * scheduled. */
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
    CU_ASSERT_TRUE(seed_drained()); /* results come before their rows go, messages after that */
    CHECK_STR("rows",
              seed_sql("SELECT count(*) FROM thole_default.worker_queue WHERE deadline_at IS NOT NULL"), "0");
    CU_ASSERT_EQUAL(stack_count(seed.engine->log, "past their deadline"), 0);
    seed_check_one_result("in-time");
    seed_check_one_result("persisted");
    CU_ASSERT_EQUAL(actors_runs("in-time", NULL), 1);
}

/* A third of the lease passes, for its worker and its row; the worker renews it. */
static void pass_third(const char *id)
{
    seed_rows_age(id, LONG_LEASE_MS / 3);
    moved_clock_pass(LONG_LEASE_MS / 3);
    CU_ASSERT_TRUE(seed_wait_sql("t",
                                 "SELECT renewed_at > clock_timestamp() - interval '%d ms'"
                                 " FROM thole_default.worker_queue WHERE instance = '%s'",
                                 LONG_LEASE_MS / 6, id));
}

/* Held for longer than a lease. Then another worker gets its message, claims it, and is refused: the holder
 * has no second slot that it could come to. */
static void extended(void)
{
    struct actor_worker keeper, rival;
    actor_options(&keeper, &seed.stack, "kept", LONG_LEASE_MS);
    keeper.options.slots = 1;
    actor_start(&keeper, 'A');
    seed_start("extended", "polite", "kept");
    CU_ASSERT_TRUE(actors_wait_runs("extended", 1));
    actor_options(&rival, &seed.stack, "kept", LONG_LEASE_MS);
    actor_start(&rival, 'B');
    for (int i = 0; i < 4; i++)
        pass_third("extended");
    contend_for_run("kept", "extended");
    actors_release("extended", UINT32_MAX);
    seed_check_outcome("extended", "attempt 1 by A");
    CU_ASSERT_EQUAL(actors_runs("extended", NULL), 1);
    CU_ASSERT_TRUE(seed_wait_queued("kept", "extended", 2, false));
    actor_stop(&rival);
    actor_stop(&keeper);
}

static void end_all(void)
{
    actor_stop(&holder);
    work_heard_close();
}

static const struct thole_test tests[] = {
    {"begin", begin_all},
    {"claim_expires_when_worker_dies_and_another_takes_it", worker_dies},
    {"single_process_run_resumes_after_crash", single_process},
    {"pooled_workers_claim_each_task_once", pooled_workers},
    {"deadline_refreshed_just_before_handler_starts", refreshed},
    {"fork_branches_run_concurrently_and_join", branches},
    {"deadline_persisted_before_execution", persisted},
    {"deadline_cleared_on_completion", cleared},
    {"claim_extended_by_heartbeat", extended},
    {"end", end_all},
};

static void begin(void)
{
    snprintf(runs, sizeof runs, "%s/runs", seed.stack.dir);
}

int main(void)
{
    return seed_run("seed_runtime", tests, ARRAY_LEN(tests), begin);
}
