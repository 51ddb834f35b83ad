/*
 * Many sessions of a gateway share few connections to Postgres: all get their tasks, keep their leases and
 * store their results, and there are never more connections than allowed.
 */
#include "gateway_host.h"
#include "jscan.h"
#include "link.h"
#include "row_pool.h"
#include "worker_stage.h"
#include "worker_store.h"
#include <libpq-fe.h>
#include <stdarg.h>

enum { SESSIONS = 50, CONNECTIONS = 4, ANSWER_BYTES = 1 << 16 };

static struct stage stage;
static struct gateway_host *gateway;
static struct connection *worker;
static char subjects[SESSIONS][256]; /* of the sessions */
static char claims[SESSIONS][768];

static bool no_stop(void *arg)
{
    (void)arg;
    return false;
}

/* The answer, until the next call. */
static const char *ask(const char *subject, const char *operation, const char *fmt, ...) THOLE_PRINTF(3, 4);
static const char *ask(const char *subject, const char *operation, const char *fmt, ...)
{
    static struct buf answer;
    struct header const header = {"Content-Type", THOLE_STR("application/json")};
    char body[1024], to[300];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(body, sizeof body, fmt, args);
    va_end(args);
    (void)snprintf(to, sizeof to, "%s%s", subject, operation);
    buf_release(&answer);
    buf_init(&answer, ANSWER_BYTES);
    CHECK_OK(connection_request_with(worker, to, &header, 1, thole_slice_from(body), &answer, &stage.err),
             &stage.err);
    return buf_cstr(&answer);
}

/* The text at the path; "": there is none. */
static const char *at(const char *json, const char *path, char *ret, size_t size)
{
    thole_slice value = {0};
    ret[0] = '\0';
    if (!json_path(thole_slice_from(json), path, &value))
        return ret;
    if (value.len >= 2 && value.ptr[0] == '"')
        value = (thole_slice){value.ptr + 1, value.len - 2};
    (void)snprintf(ret, size, "%.*s", THOLE_FMT(value));
    return ret;
}

static void begin(void)
{
    struct stop_check const never = {.requested = no_stop};
    stage_begin(&stage, "pool");
    stage.options.postgres_connections = CONNECTIONS;
    CHECK_OK(gateway_host_start(&stage.options, &never, &gateway, &stage.err), &stage.err);
    struct connection_options const options = {
        .url = stage.nats.url, .name = "worker", .connect_timeout_ms = 5000, .request_timeout_ms = 15000};
    CHECK_OK(connection_open(&options, &worker, &stage.err), &stage.err);
}

static unsigned count(PGconn *conn, const char *sql)
{
    PGresult *const result = PQexec(conn, sql);
    CU_ASSERT_EQUAL_FATAL(PQresultStatus(result), PGRES_TUPLES_OK);
    unsigned const n = (unsigned)strtoul(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return n;
}

static unsigned connections(PGconn *conn)
{
    unsigned const own =
        count(conn, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'thole-worker'");
    CU_ASSERT_EQUAL(own, 0);
    return count(conn, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'thole-gateway'");
}

/* A session that is not heard of for a lease is dead: each is, three times in one, however long the test
 * takes. */
static void keep_sessions(void)
{
    static uint64_t last_ms;
    char running[800];
    if (clock_monotonic_ms() < last_ms + STAGE_LEASE_MS / 3)
        return;
    last_ms = clock_monotonic_ms();
    for (size_t i = 0; i < SESSIONS && subjects[i][0] != '\0'; i++) {
        running[0] = '\0';
        if (claims[i][0] != '\0')
            (void)snprintf(running, sizeof running, "{\"claim\":\"%.780s\"}", claims[i]);
        (void)ask(subjects[i], ".renew", "{\"running\":[%s]}", running);
    }
}

static void open_session(size_t i)
{
    char status[16];
    const char *const answer = ask("thole.pool.gateway.open.default", "",
                                   "{\"worker\":\"w-%zu\",\"slots\":1,\"activities\":[\"pay\"],"
                                   "\"inbox\":\"_INBOX.thole.w-%zu\"}",
                                   i, i);
    CHECK_STR("opened", at(answer, "status", status, sizeof status), "");
    (void)at(answer, "subject", subjects[i], sizeof subjects[i]);
}

static void take_task(size_t i)
{
    thole_slice tasks, first;
    size_t place = 0;
    char text[4096] = "";
    const char *const answer = ask(subjects[i], ".next", "{\"max\":1,\"waitMs\":10000}");
    CU_ASSERT_FATAL(json_path(thole_slice_from(answer), "tasks", &tasks) && json_item(tasks, &place, &first));
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(first));
    CU_ASSERT_STRING_NOT_EQUAL(at(text, "claim", claims[i], sizeof claims[i]), "");
}

static void complete(size_t i)
{
    char status[16];
    thole_slice results, first;
    size_t place = 0;
    const char *const answer =
        ask(subjects[i], ".complete", "{\"outcomes\":[{\"claim\":\"%s\",\"output\":\"b2s=\"}]}", claims[i]);
    CU_ASSERT_FATAL(json_path(thole_slice_from(answer), "results", &results) &&
                    json_item(results, &place, &first));
    (void)snprintf(claims[i], sizeof claims[i], "%.*s", THOLE_FMT(first));
    CHECK_STR("result", at(claims[i], "status", status, sizeof status), "");
}

/* While others lock the table a statement ends after the time of who has taken the connection. */
static void check_timeouts(PGconn *conn)
{
    static const uint64_t timeouts_ms[] = {1500, 500, 1500};
    struct row_pool *const pool = row_pool_create(&(struct row_pool_options){
        .postgres = {.conninfo = stage.postgres.url, .ns = "pool", .application = "pool"},
        .connections = ROW_POOL_MIN});
    PQclear(PQexec(conn, "BEGIN; LOCK TABLE thole_pool.worker_queue"));
    for (size_t i = 0; i < ARRAY_LEN(timeouts_ms); i++) {
        struct claim nobody = {.key = {.instance = THOLE_STR("-"), .try_number = 1}};
        struct postgres *pg = NULL;
        CHECK_OK(row_pool_take(pool, ROW_POOL_RENEWAL, timeouts_ms[i], &pg, &stage.err), &stage.err);
        uint64_t const from_ms = clock_monotonic_ms();
        CU_ASSERT_EQUAL(worker_store_renew(pg, THOLE_STR("nobody"), &nobody, 1, &stage.err),
                        THOLE_UNAVAILABLE);
        uint64_t const took_ms = clock_monotonic_ms() - from_ms;
        CU_ASSERT(took_ms >= timeouts_ms[i] && took_ms < timeouts_ms[i] + 900);
        row_pool_give(pool, ROW_POOL_RENEWAL, pg);
    }
    PQclear(PQexec(conn, "ROLLBACK"));
    CU_ASSERT_EQUAL(count(conn, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pool'"), 1);
    row_pool_destroy(pool);
}

static void test_many_sessions_share_few_connections(void)
{
    unsigned most = 0, n;
    char id[16];
    begin();
    PGconn *const conn = PQconnectdb(stage.postgres.url);
    for (size_t i = 0; i < SESSIONS; i++) {
        open_session(i);
        (void)snprintf(id, sizeof id, "i-%zu", i);
        stage_schedule(&stage, id, 1, "pay", "");
        keep_sessions();
    }
    for (size_t i = 0; i < SESSIONS; i++) {
        take_task(i);
        keep_sessions();
    }
    CU_ASSERT_EQUAL(count(conn, "SELECT count(DISTINCT worker) FROM thole_pool.worker_queue"), SESSIONS);
    uint64_t const until_ms = clock_monotonic_ms() + 2 * STAGE_LEASE_MS;
    while (clock_monotonic_ms() < until_ms) {
        keep_sessions();
        n = connections(conn);
        most = n > most ? n : most;
        stage_pause_ms(100);
    }
    for (size_t i = 0; i < SESSIONS; i++)
        complete(i);
    n = connections(conn);
    most = n > most ? n : most;
    for (size_t i = 0; i < SESSIONS; i++) {
        (void)snprintf(id, sizeof id, "i-%zu", i);
        CU_ASSERT_EQUAL(stage_results(&stage, id, SESSIONS, 5000), SESSIONS);
        CU_ASSERT_EQUAL(stage_last.attempt, 1); /* nobody lost a lease */
    }
    check_timeouts(conn);
    fprintf(stderr, "\n  %d sessions, at most %u connections\n", SESSIONS, most);
    CU_ASSERT(most > 0 && most <= CONNECTIONS);
    PQfinish(conn);
    gateway_host_stop(gateway);
    connection_close(worker);
    stage_end(&stage);
}

static const struct thole_test tests[] = {
    {"many sessions share few connections", test_many_sessions_share_few_connections},
};

int main(void)
{
    stage_open(&stage);
    int const failed = thole_run_suite("gateway pool", tests, ARRAY_LEN(tests));
    stage_close(&stage);
    return failed;
}
