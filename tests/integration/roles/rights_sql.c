/* Attempts on Postgres. */
#include "buf.h"
#include "rights_stage.h"
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

enum { SQL_ATTEMPTS_LEAST = 80, CONNECTIONS_MOST = 120, LOCKED_MS_MAX = 90000 };

#define M 1u
#define E 2u
#define W 4u
#define R 8u
#define ALL (M | E | W | R)

static const char *const roles[] = {"migrate", "engine", "worker", "reader"};

static const struct {
    unsigned roles;
    const char *sql;
} attempts[] = {
    /* reading */
    {W, "SELECT detail FROM instances"},
    {W, "SELECT custom_status FROM instances"},
    {W, "SELECT * FROM instances"},
    {W, "SELECT * FROM executions"},
    {W, "SELECT * FROM timers"},
    {W, "SELECT * FROM quarantine"},
    {W, "SELECT epoch FROM partitions"},
    {W, "SELECT * FROM schema_migrations"},
    {R, "SELECT * FROM incarnation"},
    {ALL, "SELECT rolpassword FROM pg_catalog.pg_authid"},
    {ALL, "SELECT pg_catalog.pg_read_file('/etc/passwd')"},
    {ALL, "COPY (SELECT 1) TO PROGRAM 'true'"},
    {ALL, "COPY (SELECT 1) TO '/tmp/thole_rights'"},
    /* writing rows */
    {R,
     "INSERT INTO instances (instance, p, orchestration, execution, status, created_ms, updated_ms, detail,"
     " turns, history_seq) VALUES ('x', 0, 'x', 1, 1, 0, 0, '', 1, 1)"},
    {W | R, "UPDATE instances SET status = 4"},
    {W | R, "DELETE FROM instances"},
    {W | R, "UPDATE executions SET status = 4"},
    {W | R, "DELETE FROM executions"},
    {W | R, "INSERT INTO timers (instance, execution, timer_id, p, due_ms) VALUES ('x', 1, 1, 0, 0)"},
    {W | R, "DELETE FROM timers"},
    {W | R, "UPDATE quarantine SET until_ms = 0"},
    {W | R, "DELETE FROM quarantine"},
    {W | R, "UPDATE partitions SET epoch = epoch + 1"},
    {W | R, "DELETE FROM partitions"},
    {W | R, "INSERT INTO incarnation DEFAULT VALUES"},
    {W | R, "DELETE FROM incarnation"},
    {W | R, "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity)"
            " VALUES ('x', 1, 1, 0, 'default', 'echo')"},
    {W | R, "UPDATE worker_queue SET queue = 'mine'"},
    {W | R, "UPDATE worker_queue SET activity = 'mine'"},
    {W | R, "UPDATE worker_queue SET instance = 'mine'"},
    {W | R, "UPDATE worker_queue SET p = 1"},
    {W | R, "UPDATE worker_queue SET digest = NULL"},
    {W | R, "UPDATE worker_queue SET try_number = 9"},
    {W | R, "UPDATE worker_queue SET created_at = now()"},
    {R, "UPDATE worker_queue SET worker = 'mine'"},
    {R, "DELETE FROM worker_queue"},
    {W, "SET thole.own = 'off'; DELETE FROM worker_queue"}, /* the trigger fences partitions: it may not */
    {E | W | R, "INSERT INTO schema_migrations (number, name) VALUES (99, 'x')"},
    {E | W | R, "UPDATE schema_migrations SET name = 'x'"},
    {E | W | R, "DELETE FROM schema_migrations"},
    {E | W | R, "TRUNCATE worker_queue"},
    {E | W | R, "TRUNCATE instances"},
    {E | W | R, "TRUNCATE partitions"},
    {W | R, "DO $$ BEGIN LOCK TABLE instances IN ACCESS EXCLUSIVE MODE; END $$"},
    /* the schema */
    {E | W | R, "DROP TABLE worker_queue"},
    {E | W | R, "DROP TABLE schema_migrations"},
    {E | W | R, "DROP SCHEMA thole_default CASCADE"},
    {E | W | R, "CREATE TABLE mine (x int)"},
    {ALL, "CREATE TABLE public.mine (x int)"},
    {ALL, "CREATE TEMP TABLE mine (x int)"},
    {ALL, "CREATE SCHEMA mine"},
    {E | W | R, "ALTER TABLE worker_queue ADD COLUMN mine int"},
    {E | W | R, "ALTER TABLE worker_queue DISABLE TRIGGER ALL"},
    {E | W | R, "ALTER TABLE worker_queue OWNER TO CURRENT_USER"},
    {E | W | R, "ALTER DOMAIN instance_id DROP CONSTRAINT instance_id_check"},
    {E | W | R, "CREATE INDEX mine ON worker_queue (worker)"},
    {E | W | R, "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'"},
    {E | W | R, "CREATE OR REPLACE FUNCTION rows_were_removed() RETURNS trigger LANGUAGE plpgsql AS"
                " 'BEGIN RETURN NULL; END'"},
    {E | W | R, "CREATE TRIGGER mine AFTER DELETE ON worker_queue FOR EACH STATEMENT EXECUTE FUNCTION"
                " rows_were_removed()"},
    {E | W | R, "CREATE VIEW mine AS SELECT 1"},
    /* roles */
    {E | W | R, "SET ROLE thole_default_owner"},
    {ALL, "SET ROLE thole"},
    {W | R, "SET ROLE thole_default_engine"},
    {ALL, "SET SESSION AUTHORIZATION thole"},
    {ALL, "SET session_replication_role = replica"},
    {ALL, "CREATE ROLE mine"},
    {ALL, "ALTER ROLE thole_default_owner SUPERUSER"},
    {E | W | R, "ALTER ROLE thole_default_engine CREATEDB"},
    {ALL, "GRANT thole_default_owner TO thole_default_reader"},
    {ALL, "ALTER SYSTEM SET fsync = off"},
    {ALL, "CREATE DATABASE mine"},
    {ALL, "DROP DATABASE template1"},
};

static const char *const tables[] = {"partitions", "worker_queue", "timers",      "instances",
                                     "executions", "quarantine",   "incarnation", "schema_migrations"};

/* Rows of all tables, by their whole text, and the objects of the schema. */
static void fingerprint(struct buf *to)
{
    char sql[400];
    buf_clear(to);
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*) || ' ' || coalesce(sum(hashtext(t::text)::bigint), 0)"
                       " FROM thole_default.%s AS t",
                       tables[i]);
        buf_printf(to, "%s %s\n", tables[i], stack_sql(&rights_stack, sql));
    }
    buf_printf(to, "objects %s\n",
               stack_sql(&rights_stack,
                         "SELECT count(*) || ' ' || coalesce(sum(hashtext(c::text)::bigint), 0) FROM (SELECT"
                         " relname, relowner, relkind, relacl::text, relhastriggers FROM pg_class WHERE"
                         " relnamespace = 'thole_default'::regnamespace) AS c"));
    buf_printf(to, "roles %s\n",
               stack_sql(&rights_stack, "SELECT sum(hashtext(r::text)::bigint) FROM pg_roles AS r"));
    CU_ASSERT_EQUAL_FATAL(buf_status(to), THOLE_OK);
}

/* 42501 is insufficient_privilege; must be owner of …, too. */
static bool denied(PGconn *conn, const char *sql)
{
    PGresult *const result = PQexec(conn, sql);
    const char *const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    bool const yes = state != NULL && strcmp(state, "42501") == 0;
    if (!yes)
        fprintf(stderr, "%s: %s: %s", sql, state == NULL ? "it worked" : state, PQerrorMessage(conn));
    PQclear(result);
    return yes;
}

static size_t attempts_of(size_t role)
{
    char url[RIGHTS_URL_BYTES];
    size_t tried = 0;
    rights_postgres_url(roles[role], url);
    PGconn *const conn = PQconnectdb(url);
    CU_ASSERT_EQUAL_FATAL(PQstatus(conn), CONNECTION_OK);
    for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
        if ((attempts[i].roles & 1u << role) == 0)
            continue;
        PQclear(PQexec(conn, "SET thole.own = 'on'"));
        bool const good = denied(conn, attempts[i].sql);
        CU_ASSERT(good);
        if (!good)
            fprintf(stderr, "%s may %s\n", roles[role], attempts[i].sql);
        tried++;
    }
    PQfinish(conn);
    return tried;
}

/* Opens all the connections that the role can, and says how many there were. Meanwhile an engine has room. */
static size_t hold_connections(const char *role)
{
    char url[RIGHTS_URL_BYTES], engine[RIGHTS_URL_BYTES];
    PGconn *held[CONNECTIONS_MOST];
    size_t n = 0;
    rights_postgres_url(role, url);
    rights_postgres_url("engine", engine);
    while (n < CONNECTIONS_MOST) {
        held[n] = PQconnectdb(url);
        bool const open = PQstatus(held[n]) == CONNECTION_OK;
        n++;
        if (!open)
            break;
    }
    const char *const why = PQerrorMessage(held[n - 1]);
    bool const limited = strstr(why, "too many connections for role") != NULL;
    CU_ASSERT(limited);
    if (!limited)
        fprintf(stderr, "%s after %zu connections: %s\n", role, n, why);
    PGconn *const other = PQconnectdb(engine);
    CU_ASSERT_EQUAL(PQstatus(other), CONNECTION_OK);
    PQfinish(other);
    for (size_t i = 0; i < n; i++)
        PQfinish(held[i]);
    return n - 1;
}

/* Shares of the server's 100: nobody but an engine can have all of them. */
static void check_connections(void)
{
    CU_ASSERT_EQUAL(hold_connections("reader"), 20);
    CU_ASSERT_EQUAL(hold_connections("worker"), 60);
    CU_ASSERT_EQUAL(hold_connections("migrate"), 5);
}

/* The rights of a session without settings. */
static void check_settings(void)
{
    static const char *const settings[][2] = {{"lock_timeout", "10s"},
                                              {"statement_timeout", "1min"},
                                              {"idle_in_transaction_session_timeout", "30s"}};
    for (size_t role = 2; role < ARRAY_LEN(roles); role++) {
        char url[RIGHTS_URL_BYTES], sql[80];
        rights_postgres_url(roles[role], url);
        PGconn *const conn = PQconnectdb(url);
        CU_ASSERT_EQUAL_FATAL(PQstatus(conn), CONNECTION_OK);
        for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
            (void)snprintf(sql, sizeof sql, "SHOW %s", settings[i][0]);
            PGresult *const result = PQexec(conn, sql);
            CHECK_STR(settings[i][0], PQgetvalue(result, 0, 0), settings[i][1]);
            PQclear(result);
        }
        PQfinish(conn);
    }
}

/* A session of the role runs the statements, and leaves its transaction open: an engine ends it. */
static void hold_locks(const char *role, const char *sql)
{
    char url[RIGHTS_URL_BYTES];
    uint64_t const began = clock_monotonic_ms();
    rights_postgres_url(role, url);
    PGconn *const conn = PQconnectdb(url);
    CU_ASSERT_EQUAL_FATAL(PQstatus(conn), CONNECTION_OK);
    PQclear(PQexec(conn, "SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0; BEGIN"));
    PGresult *const locked = PQexec(conn, sql);
    CU_ASSERT(PQresultStatus(locked) == PGRES_COMMAND_OK || PQresultStatus(locked) == PGRES_TUPLES_OK);
    PQclear(locked);
    rights_expect(USER_SERVICE, 0, "l-2", "start steps --id l-2 --input locked");
    while (PQstatus(conn) == CONNECTION_OK && clock_monotonic_ms() - began < LOCKED_MS_MAX) {
        pause_ms(500);
        PQclear(PQexec(conn, "SELECT 1"));
    }
    bool const ended = PQstatus(conn) != CONNECTION_OK;
    CU_ASSERT(ended);
    printf("%s: %s: ended after %llu ms\n", role, sql, (unsigned long long)(clock_monotonic_ms() - began));
    PQfinish(conn);
}

void rights_postgres_locks(void)
{
    struct stack_program *const before = &rights_stack.programs[rights_stack.programs_len - 1];
    (void)rights_program("program_verbs", USER_ENGINE, "e-9", "--node-ttl=2s");
    CU_ASSERT_EQUAL(stack_terminate(before, 30000), 0); /* knows other orchestrations */
    rights_expect(USER_SERVICE, 0, "before", "run steps --id l-1 --input before --timeout 60s");
    hold_locks("worker", "LOCK TABLE worker_queue IN ACCESS EXCLUSIVE MODE");
    rights_expect(USER_SERVICE, 0, "locked", "wait l-2 --timeout 60s");
}

void rights_postgres_attempts(void)
{
    struct buf before, after;
    size_t tried = 0;
    check_connections();
    check_settings();
    buf_init(&before, 16 * 1024);
    buf_init(&after, 16 * 1024);
    fingerprint(&before);
    for (size_t role = 0; role < ARRAY_LEN(roles); role++)
        tried += attempts_of(role);
    fingerprint(&after);
    CHECK_STR("rows", buf_cstr(&after), buf_cstr(&before));
    CU_ASSERT(tried >= SQL_ATTEMPTS_LEAST);
    printf("%zu attempts on Postgres\n", tried);
    buf_release(&before);
    buf_release(&after);
}
