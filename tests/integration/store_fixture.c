#include "store_fixture.h"
#include "postgres_call.h"
#include "servers.h"
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "servers.h"

thole_error store_err;
const struct rows_owner store_owner = {.partition = 1, .epoch = 1};
static struct server server;
static PGconn *watcher; /* for store_sql() */

void store_check(const char *what, thole_status got, thole_status want, const char *file, int line)
{
    CU_ASSERT_EQUAL(got, want);
    if (got != want)
        fprintf(stderr, "\n  %s:%d: %s\n    got  %s (%s)\n    want %s\n", file, line, what,
                thole_status_name(got), got != THOLE_OK ? store_err.text : "", thole_status_name(want));
}

void store_check_int(const char *what, uint64_t got, uint64_t want, const char *file, int line)
{
    CU_ASSERT_EQUAL(got, want);
    if (got != want)
        fprintf(stderr, "\n  %s:%d: %s\n    got  %llu\n    want %llu\n", file, line, what,
                (unsigned long long)got, (unsigned long long)want);
}

void store_check_has(const char *text, const char *part, const char *file, int line)
{
    CU_ASSERT(strstr(text, part) != NULL);
    if (strstr(text, part) == NULL)
        fprintf(stderr, "\n  %s:%d: \"%s\"\n    lacks \"%s\"\n", file, line, text, part);
}

static void give_up(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    server_kill9(&server);
    server_dir_remove(server.dir);
    exit(2);
}

int store_run(const char *name, const struct thole_test *tests, size_t n)
{
    char dir[SERVER_PATH_BYTES];
    if (server_dir_create("thole-store", dir, &store_err) != THOLE_OK)
        give_up("folder", store_err.text);
    struct postgres_server_options options = {.dir = dir, .no_fsync = true};
    thole_status status = server_postgres_start(&options, &server, &store_err);
    if (status != THOLE_OK) {
        fprintf(stderr, "%s\n", store_err.text);
        server_dir_remove(dir);
        return status == THOLE_NOT_FOUND ? 77 : 2;
    }
    int result = thole_run_suite(name, tests, n);
    PQfinish(watcher);
    server_stop(&server);
    server_dir_remove(dir);
    return result;
}

uint16_t store_port(void)
{
    return server.port;
}

const char *store_conninfo(const char *user, const char *password, const char *database)
{
    static char text[256];
    (void)snprintf(text, sizeof text, "host=127.0.0.1 port=%u user=%s password=%s dbname=%s", server.port,
                   user != NULL ? user : "thole", password != NULL ? password : "thole",
                   database != NULL ? database : "postgres");
    return text;
}

void store_kill9(void)
{
    PQfinish(watcher);
    watcher = NULL;
    server_kill9(&server);
}

void fixture_stop(void)
{
    PQfinish(watcher);
    watcher = NULL;
    server_stop(&server);
}

void store_restart(void)
{
    if (server_restart(&server, &store_err) != THOLE_OK)
        give_up("restart", store_err.text);
}

void store_pause(void)
{
    server_pause(&server);
}

void store_resume(void)
{
    server_resume(&server);
}

struct postgres *fixture_open(const char *ns)
{
    struct postgres *pg = NULL;
    struct postgres_options options = {.conninfo = store_conninfo(NULL, NULL, NULL),
                                       .ns = ns,
                                       .application = "thole-test",
                                       .connect_timeout_ms = 5000,
                                       .statement_timeout_ms = 10000};
    if (postgres_open(&options, &pg, &store_err) != THOLE_OK)
        give_up("connection", store_err.text);
    return pg;
}

struct postgres *store_migrated(const char *ns)
{
    struct postgres *pg = fixture_open(ns);
    if (postgres_migrate(pg, &store_err) != THOLE_OK)
        give_up("migration", store_err.text);
    return pg;
}

struct postgres *store_partition(const char *ns)
{
    struct rows_state rows;
    struct postgres *pg = store_migrated(ns);
    if (projector_store_open(pg, 1, 1, &rows, NULL, &store_err) != THOLE_OK ||
        projector_store_complete(pg, &store_owner, &store_err) != THOLE_OK)
        give_up("partition", store_err.text);
    return pg;
}

const char *store_sql(const char *ns, const char *fmt, ...)
{
    static char value[65536];
    char sql[4096];
    va_list args;
    int used = snprintf(sql, sizeof sql, "SET search_path = \"thole_%s\"; ", ns);
    va_start(args, fmt);
    (void)vsnprintf(sql + used, sizeof sql - (size_t)used, fmt, args);
    va_end(args);
    if (watcher == NULL || PQstatus(watcher) != CONNECTION_OK) {
        PQfinish(watcher);
        watcher = PQconnectdb(store_conninfo(NULL, NULL, NULL));
    }
    PGresult *result = PQexec(watcher, sql);
    bool ok = PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK;
    CU_ASSERT(ok);
    if (!ok)
        fprintf(stderr, "\n  %s\n    %s\n", sql, PQerrorMessage(watcher));
    value[0] = '\0';
    for (int row = 0, len = 0; ok && row < PQntuples(result) && len < (int)sizeof value; row++)
        len += snprintf(value + len, sizeof value - (size_t)len, "%s%s", row > 0 ? "\n" : "",
                        PQgetvalue(result, row, 0));
    PQclear(result);
    return value;
}

void store_database(const char *name, const char *options)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE %s %s", name, options);
    PGconn *conn = PQconnectdb(store_conninfo(NULL, NULL, NULL));
    PGresult *result = PQexec(conn, sql);
    CU_ASSERT_EQUAL(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    PQfinish(conn);
}

const char *store_own_sql(struct postgres *pg, const char *fmt, ...)
{
    static char text[16384];
    char sql[4096];
    va_list args;
    PGresult *result = NULL;
    va_start(args, fmt);
    (void)vsnprintf(sql, sizeof sql, fmt, args);
    va_end(args);
    text[0] = '\0';
    CHECK_OK(session_sql(pg, sql, sql, 60000, &result, &store_err));
    for (int row = 0, len = 0; PQnfields(result) > 0 && row < PQntuples(result) && len < (int)sizeof text;
         row++)
        len += snprintf(text + len, sizeof text - (size_t)len, "%s\n", PQgetvalue(result, row, 0));
    PQclear(result);
    return text;
}

uint64_t store_count(const char *ns, const char *table)
{
    return strtoull(store_sql(ns, "SELECT count(*) FROM %s", table), NULL, 10);
}

struct batch *store_batch(uint64_t epoch, uint64_t projected_seq)
{
    struct batch *batch = batch_create(1, epoch);
    if (batch == NULL)
        give_up("batch", "out of memory");
    batch->projected = (struct projected){projected_seq, 1000 + projected_seq};
    return batch;
}

static struct batch_activity *make_activities(struct batch *batch, const char *instance, uint64_t first,
                                              size_t n)
{
    struct batch_activity *rows = arena_array(&batch->arena, n, sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = (struct batch_activity){.instance = thole_slice_from(instance),
                                          .execution = 1,
                                          .activity_id = first + i,
                                          .queue = THOLE_STR("default"),
                                          .activity = THOLE_STR("charge"),
                                          .try_number = 1};
    return rows;
}

void store_add_activities(struct batch *batch, const char *instance, uint64_t first, size_t n)
{
    batch->activities_added = make_activities(batch, instance, first, n);
    batch->activities_added_len = n;
}

void store_remove_activities(struct batch *batch, const char *instance, uint64_t first, size_t n)
{
    batch->activities_removed = make_activities(batch, instance, first, n);
    batch->activities_removed_len = n;
}

void fixture_follow(const struct postgres *pg, struct batch *batch)
{
    unsigned long long seq = 0, mark = 0, batches = 0;
    const char *const text = store_sql(pg->schema + strlen("thole_"),
                                       "SELECT projected_seq || ' ' || projected_mark || ' ' || batches"
                                       " FROM partitions WHERE p = %u",
                                       batch->partition);
    (void)sscanf(text, "%llu %llu %llu", &seq, &mark, &batches);
    batch->follows = (struct rows_state){{seq, mark}, batches};
    if (batch->projected.seq == 0)
        batch->projected = batch->follows.projected;
}

void fixture_followed(struct rows_state *rows, const struct batch *batch)
{
    *rows = (struct rows_state){batch->projected, batch->follows.batches + 1};
}

thole_status fixture_apply(struct postgres *pg, struct batch *batch)
{
    fixture_follow(pg, batch);
    thole_status status = projector_store_apply(pg, &batch, 1, &store_err);
    batch_destroy(batch);
    return status;
}

struct claim store_claim_of(const char *instance, uint64_t activity_id)
{
    return (struct claim){.key = {.instance = thole_slice_from(instance),
                                  .execution = 1,
                                  .activity_id = activity_id,
                                  .try_number = 1},
                          .partition = 1};
}

enum row_state store_claim_one(struct postgres *pg, thole_slice worker, struct claim *claim)
{
    CHECK_OK(worker_store_claim(pg, worker, NULL, claim, 1, NULL, &store_err));
    return claim->state;
}

enum row_state store_renew_one(struct postgres *pg, thole_slice worker, struct claim *claim)
{
    CHECK_OK(worker_store_renew(pg, worker, claim, 1, &store_err));
    return claim->state;
}

enum row_state store_complete_one(struct postgres *pg, thole_slice worker, struct claim *claim)
{
    CHECK_OK(worker_store_complete_begin(pg, worker, claim, 1, &store_err));
    enum row_state const state = claim->state;
    CHECK_OK(worker_store_complete_commit(pg, &store_err));
    return state;
}

double store_now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

struct postgres *store_with_activities(const char *ns, size_t n)
{
    struct postgres *pg = store_partition(ns);
    struct batch *batch = store_batch(1, 1);
    store_add_activities(batch, "i", 1, n);
    CHECK_OK(fixture_apply(pg, batch));
    return pg;
}

void store_check_hot(const char *ns, int updates)
{
    const char *hot = "0";
    for (int i = 0; i < 2000 && strcmp(hot, "t") != 0; i++)
        hot = store_sql(ns,
                        "SELECT n_tup_upd = %d AND n_tup_hot_upd >= %d FROM pg_stat_all_tables"
                        " WHERE schemaname = 'thole_%s' AND relname = 'worker_queue'",
                        updates, updates * 9 / 10, ns);
    CHECK_STR("hot", hot, "t");
}
