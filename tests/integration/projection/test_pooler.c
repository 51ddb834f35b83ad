/*
 * Postgres with pgbouncer, which gives each transaction another session of the server: sessions keep no
 * state, an engine notices that a server has lost transactions although its connection stays, and orders end
 * correctly whatever is killed. Skipped where there is no pgbouncer ($PGBOUNCER, or that of the system).
 */
#include "postgres.h"
#include "projector_store.h"
#include "stack.h"
#include <libpq-fe.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ORDERS = 60, STEPS = 3, LEASE_MS = 1000, HOLD_MS = 4000, CONNINFO_BYTES = 160 };

static struct stack stack;
static thole_client *client;
static struct pooler {
    pid_t pid;
    uint16_t port;
    char conninfo[CONNINFO_BYTES];
} pooler;

/* ---- pgbouncer ---- */

static const char *find_pgbouncer(void)
{
    static const char *const places[] = {"/usr/sbin/pgbouncer", "/usr/bin/pgbouncer",
                                         "/usr/local/bin/pgbouncer"};
    const char *const given = getenv("PGBOUNCER");
    if (given != NULL)
        return access(given, X_OK) == 0 ? given : NULL;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

/* Few sessions of the server, so that they are shared; it logs in as thole, whoever asks. */
static void write_config(const char *path, const char *mode)
{
    FILE *const file = fopen(path, "we");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fprintf(file,
            "[databases]\n"
            "* = host=127.0.0.1 port=%u user=thole password=thole\n"
            "[pgbouncer]\n"
            "listen_addr = 127.0.0.1\nlisten_port = %u\nunix_socket_dir =\n"
            "auth_type = any\npool_mode = %s\ndefault_pool_size = 4\nmax_client_conn = 100\n",
            stack.postgres.port, pooler.port, mode);
    fclose(file);
    (void)chmod(path, 0644);
}

static void pooler_start(const char *mode)
{
    struct process process = {.as_postgres = true};
    char path[128];
    if (pooler.port == 0)
        pooler.port = server_free_port();
    snprintf(path, sizeof path, "%s/pgbouncer.ini", stack.dir);
    snprintf(process.log, sizeof process.log, "%s/pgbouncer.log", stack.dir);
    snprintf(pooler.conninfo, sizeof pooler.conninfo, "host=127.0.0.1 port=%u user=any dbname=postgres",
             pooler.port);
    write_config(path, mode);
    process_arg(&process, "%s", find_pgbouncer());
    process_arg(&process, "-q");
    process_arg(&process, "%s", path);
    CHECK_OK(process_spawn(&process, &pooler.pid, &stack.err), &stack.err);
    for (int i = 0; i < 1000 && !server_port_is_open(pooler.port); i++)
        pause_ms(10);
    CU_ASSERT_TRUE_FATAL(server_port_is_open(pooler.port));
}

static void pooler_kill9(void)
{
    process_kill9(pooler.pid);
    pooler.pid = 0;
}

/* ---- calls ---- */

static thole_status open_at(const char *conninfo, struct postgres **ret)
{
    struct postgres_options const options = {.conninfo = conninfo, .ns = "calls", .application = "test"};
    *ret = NULL;
    stack.err.text[0] = '\0';
    return postgres_open(&options, ret, &stack.err);
}

/* The first cell, as any other program of the pooler sees it. */
static const char *seen_by_others(PGconn *conn, const char *sql)
{
    static char text[256];
    PGresult *const result = PQexec(conn, sql);
    snprintf(text, sizeof text, "%s",
             PQresultStatus(result) != PGRES_TUPLES_OK ? PQerrorMessage(conn)
             : PQntuples(result) == 0                  ? ""
                                                       : PQgetvalue(result, 0, 0));
    PQclear(result);
    return text;
}

/* A pool of one session would do: what a call leaves there is what the next program finds. */
static void test_nothing_is_left(void)
{
    static const struct {
        const char *sql, *want;
    } rows[] = {
        {"SHOW search_path", "\"$user\", public"},
        {"SHOW enable_seqscan", "on"},
        {"SHOW statement_timeout", "0"},
        {"SHOW synchronous_commit", "on"},
        {"SHOW plan_cache_mode", "auto"},
        {"SELECT coalesce(current_setting('thole.own', true), '')", ""},
        {"SELECT count(*) FROM pg_prepared_statements", "0"},
        {"SELECT count(*) FROM pg_listening_channels()", "0"},
    };
    struct postgres *direct, *pooled;
    struct rows_state opened;
    uint64_t now_ms;
    CHECK_OK(open_at(stack.postgres.url, &direct), &stack.err);
    CU_ASSERT_FALSE(postgres_is_pooled(direct));
    postgres_close(direct);
    CHECK_OK(open_at(pooler.conninfo, &pooled), &stack.err);
    CU_ASSERT_TRUE_FATAL(pooled != NULL && postgres_is_pooled(pooled));
    CHECK_OK(postgres_migrate(pooled, &stack.err), &stack.err);
    CHECK_OK(postgres_listen(pooled, &stack.err), &stack.err);
    CHECK_OK(postgres_now_ms(pooled, &now_ms, &stack.err), &stack.err);
    CHECK_OK(projector_store_open(pooled, 0, 1, &opened, NULL, &stack.err), &stack.err);
    CHECK_OK(projector_store_complete(pooled, &(struct rows_owner){0, 1, 0}, &stack.err), &stack.err);
    PGconn *const other = PQconnectdb(pooler.conninfo);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *const got = seen_by_others(other, rows[i].sql);
        CHECK_STR(rows[i].sql, got, rows[i].want);
    }
    PQfinish(other);
    postgres_close(pooled);
}

/* The pooler keeps a program's connection when the server is lost; the server's incarnation says so. */
static void test_lost_transactions(void)
{
    struct postgres *pg, *other;
    struct rows_state rows;
    struct batch batch = {.partition = 1, .epoch = 1, .projected = {.seq = 5}};
    struct batch *const batches[] = {&batch};
    CHECK_OK(open_at(pooler.conninfo, &pg), &stack.err);
    CHECK_OK(projector_store_open(pg, 1, 1, &rows, NULL, &stack.err), &stack.err);
    CHECK_OK(projector_store_apply(pg, batches, 1, &stack.err), &stack.err);
    (void)stack_sql(&stack, "TRUNCATE thole_calls.incarnation");
    batch.follows = (struct rows_state){batch.projected, 1};
    batch.projected.seq = 6;
    CU_ASSERT_EQUAL(projector_store_apply(pg, batches, 1, &stack.err), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "may have lost its last transactions"));
    const char *const seq = stack_sql(&stack, "SELECT projected_seq FROM thole_calls.partitions WHERE p = 1");
    CHECK_STR("nothing was applied", seq, "5");
    CU_ASSERT_EQUAL(projector_store_apply(pg, batches, 1, &stack.err), THOLE_FENCED); /* not open any more */
    CHECK_OK(projector_store_open(pg, 1, 1, &rows, NULL, &stack.err), &stack.err);
    CHECK_OK(projector_store_apply(pg, batches, 1, &stack.err), &stack.err);
    /* Another one has noticed before, and made a new incarnation. */
    (void)stack_sql(&stack, "TRUNCATE thole_calls.incarnation");
    CHECK_OK(open_at(pooler.conninfo, &other), &stack.err);
    CHECK_OK(projector_store_open(other, 2, 1, &rows, NULL, &stack.err), &stack.err);
    CU_ASSERT_EQUAL(projector_store_complete(pg, &(struct rows_owner){1, 1, 0}, &stack.err),
                    THOLE_UNAVAILABLE);
    CHECK_OK(projector_store_complete(other, &(struct rows_owner){2, 1, 0}, &stack.err), &stack.err);
    postgres_close(other);
    postgres_close(pg);
}

static void test_refused(void)
{
    struct postgres *pg;
    (void)stack_sql(&stack, "ALTER ROLE thole SET default_transaction_isolation = 'serializable'");
    pooler_kill9();
    pooler_start("transaction");
    CU_ASSERT_EQUAL(open_at(pooler.conninfo, &pg), THOLE_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "ALTER ROLE"));
    (void)stack_sql(&stack, "ALTER ROLE thole RESET default_transaction_isolation");
    pooler_kill9();
    pooler_start("statement");
    CU_ASSERT_EQUAL(open_at(pooler.conninfo, &pg), THOLE_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "pool_mode = transaction"));
    pooler_kill9();
    pooler_start("session");
    CHECK_OK(open_at(pooler.conninfo, &pg), &stack.err);
    CU_ASSERT_TRUE(pg != NULL && postgres_is_pooled(pg));
    postgres_close(pg);
    pooler_kill9();
    pooler_start("transaction");
}

/* ---- orders ---- */

static void start_some(const char *round, const char *orchestration, const char *input, int n)
{
    for (int i = 0; i < n; i++) {
        char id[64];
        thole_error err = {0};
        snprintf(id, sizeof id, "%s-%03d", round, i);
        CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                    thole_slice_from(input), NULL, &err),
                 &err);
    }
}

static void in_the_middle(const char *round)
{
    for (int i = 0; i < 2000 && stack_count(stack.effects, round) < ORDERS / 2; i++)
        pause_ms(5);
}

static void check_orders(const char *round)
{
    int good = 0;
    for (int i = 0; i < ORDERS; i++) {
        char id[64];
        thole_instance_status status;
        snprintf(id, sizeof id, "%s-%03d", round, i);
        const char *const out = stack_outcome(client, id, 60000, &status);
        if (status == THOLE_INSTANCE_COMPLETED && strcmp(out, "x,reserve,charge,ship") == 0 &&
            stack_count(stack.effects, id) >= STEPS)
            good++;
        else
            fprintf(stderr, "  %s: %s '%s'\n", id, thole_instance_status_name(status), out);
    }
    CU_ASSERT_EQUAL(good, ORDERS);
}

/* Longer than its lease, renewed by transactions in whatever session; run once. */
static void test_longer_than_the_lease(void)
{
    char hold[16];
    thole_instance_status status;
    snprintf(hold, sizeof hold, "%d", HOLD_MS);
    start_some("hold", "hold", hold, 1);
    const char *const out = stack_outcome(client, "hold-000", 60000, &status);
    CHECK_STR("held", out, "done");
    CU_ASSERT_EQUAL(stack_count(stack.effects, "hold-000"), 1);
}

static void test_pooler_dies(void)
{
    start_some("pooler", "order", "x", ORDERS);
    in_the_middle("pooler");
    pooler_kill9();
    pause_ms(300);
    pooler_start("transaction");
    check_orders("pooler");
}

/* Twice: in the middle of orders, and while nobody has anything to say to it. */
static void test_postgres_dies(void)
{
    start_some("postgres", "order", "x", ORDERS);
    in_the_middle("postgres");
    server_kill9(&stack.postgres);
    pause_ms(300);
    CHECK_OK(server_restart(&stack.postgres, &stack.err), &stack.err);
    check_orders("postgres");
    server_kill9(&stack.postgres);
    CHECK_OK(server_restart(&stack.postgres, &stack.err), &stack.err);
    start_some("after", "order", "x", ORDERS);
    check_orders("after");
}

/* A worker commits after the result is stored, by which an order may end before. */
static void check_projected(void)
{
    const char *open = "";
    for (int i = 0; i < 500 && strcmp(open, "0") != 0; i++) {
        pause_ms(i > 0 ? 10 : 0);
        open = stack_sql(&stack, "SELECT count(*) FROM thole_default.worker_queue");
    }
    CHECK_STR("all is projected", open, "0");
}

static void test_orders(void)
{
    char at[CONNINFO_BYTES + 16], lease[32];
    snprintf(at, sizeof at, "--postgres=%s", pooler.conninfo);
    snprintf(lease, sizeof lease, "--lease=%dms", LEASE_MS);
    struct stack_program *const engine = stack_program(&stack, "engine", "engine", at, NULL);
    struct stack_program *const worker = stack_program(&stack, "worker", "worker", at, lease, NULL);
    client = stack_client(&stack);
    test_longer_than_the_lease();
    test_pooler_dies();
    test_postgres_dies();
    check_projected();
    CU_ASSERT_EQUAL(stack_terminate(worker, 30000), 0);
    CU_ASSERT_EQUAL(stack_terminate(engine, 30000), 0);
}

static void test_all(void)
{
    stack_start(&stack);
    pooler_start("transaction");
    test_nothing_is_left();
    test_lost_transactions();
    test_refused();
    test_orders();
    thole_client_close(client);
    pooler_kill9();
    stack_stop(&stack);
}

static const struct thole_test tests[] = {{"a pooler of transactions", test_all}};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    if (find_pgbouncer() == NULL) {
        fprintf(stderr, "no pgbouncer: nothing was tried behind a pooler\n");
        return 77;
    }
    return thole_run_suite("pooler", tests, ARRAY_LEN(tests));
}
