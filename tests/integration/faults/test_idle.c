/* An idle engine and worker ask Postgres nothing but whether its rows are still theirs, and use next to no
 * CPU. */
#include "stack.h"
#include <libpq-fe.h>
#include <unistd.h>

enum { IDLE_MS = 20000, SETTLE_MS = 12000 };

static struct stack stack;
static thole_client *client;

/* CPU time of a process in clock ticks. */
static uint64_t cpu_ticks(pid_t pid)
{
    char path[64], line[1024];
    unsigned long long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *after = strrchr(line, ')');
        if (after != NULL)
            (void)sscanf(after + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system);
    }
    if (f != NULL)
        fclose(f);
    return user + system;
}

/* When each connection of thole last began a query; equal before and after = no query in between. Not of
 * looks at the rows, of those one in 5 s, and at the tables, one in 10 s. */
static void last_queries(char *to, size_t cap)
{
    PGconn *pg = PQconnectdb(stack.postgres.url);
    PGresult *result =
        PQexec(pg, "SELECT pid || ' ' || CASE WHEN query LIKE 'SELECT k.p::int8, coalesce(q.epoch%'"
                   " OR application_name = 'thole-lookout' THEN 'looks' ELSE coalesce(query_start::text, "
                   "'-') END FROM pg_stat_activity"
                   " WHERE application_name LIKE 'thole%' ORDER BY pid");
    size_t len = 0;
    for (int i = 0; i < PQntuples(result) && len < cap; i++)
        len += (size_t)snprintf(to + len, cap - len, "%s\n", PQgetvalue(result, i, 0));
    PQclear(result);
    PQfinish(pg);
}

static void test_idle(void)
{
    char before[4096] = "", after[4096] = "";
    thole_outcome outcome = {0};
    CHECK_OK(thole_client_run(client, THOLE_STR("warm"), THOLE_STR("order"), THOLE_STR("x"), 20000, &outcome,
                              &stack.err),
             &stack.err);
    thole_outcome_release(&outcome);
    pause_ms(SETTLE_MS); /* has looked once: SETTLE_MS is more than the time between two looks */
    pid_t const engine = stack_serving(&stack.programs[0]), worker = stack.programs[1].pid;
    last_queries(before, sizeof before);
    uint64_t const engine_ticks = cpu_ticks(engine), worker_ticks = cpu_ticks(worker);
    pause_ms(IDLE_MS);
    last_queries(after, sizeof after);
    double const seconds = (double)IDLE_MS / 1000, hz = (double)sysconf(_SC_CLK_TCK);
    double const e = (double)(cpu_ticks(engine) - engine_ticks) / hz / seconds * 100;
    double const w = (double)(cpu_ticks(worker) - worker_ticks) / hz / seconds * 100;
    fprintf(stderr, "  idle for %d s: engine %.2f %% CPU, worker %.2f %% CPU\n", IDLE_MS / 1000, e, w);
    CU_ASSERT_TRUE(strlen(before) > 0);
    CHECK_STR("queries", after, before);
    CU_ASSERT_TRUE(e < 1.0);
    CU_ASSERT_TRUE(w < 1.0);
}

static const struct thole_test tests[] = {{"idle", test_idle}};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    (void)stack_program(&stack, "engine", "engine", NULL);
    client = stack_client(&stack);
    (void)stack_program(&stack, "worker", "worker", NULL);
    int const failed = thole_run_suite("idle", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
