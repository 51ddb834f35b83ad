#include "schema_next.h"
#include "migrations.h"
#include "postgres_call.h"
#include "statement_parts.h"
#include "statements.h"
#include <stdlib.h>
#include <string.h>

enum {
    SQL_BYTES_MAX = 32 * 1024,
    DDL_TIMEOUT_MS = 600000, /* removing a schema with many rows */
    LOCK_TIMEOUT_MS = 2000,  /* programs wait for it */
    SWITCH_TIMEOUT_MS = 60000,
};

#define OLD_SUFFIX "~old"

/* Appends @p sql with names of schemas for $L (live), $N (next), $O (old); $T: the live one's as a literal;
 * $R: the same without quotes, as roles begin; $C, $P: the class of locks, a number. */
static void put_sql(const struct postgres *next, const char *sql, uint64_t number, struct buf *to)
{
    size_t const live_len = strlen(next->schema) - strlen(SCHEMA_NEXT_SUFFIX);
    for (const char *at = sql; *at != '\0'; at++) {
        if (at[0] != '$' || at[1] == '\0' || strchr("LNOTRCP", at[1]) == NULL) {
            buf_append(to, at, 1);
            continue;
        }
        switch (*++at) { /* names that are checked have no quotes */
        case 'P': buf_printf(to, "%llu", (unsigned long long)number); break;
        case 'C': buf_printf(to, "%d", (int)MIGRATE_LOCK_CLASS); break;
        case 'T': buf_printf(to, "'%.*s'", (int)live_len, next->schema); break;
        case 'R': buf_printf(to, "%.*s", (int)live_len, next->schema); break;
        case 'N': buf_printf(to, "\"%s\"", next->schema); break;
        case 'O': buf_printf(to, "\"%.*s" OLD_SUFFIX "\"", (int)live_len, next->schema); break;
        default: buf_printf(to, "\"%.*s\"", (int)live_len, next->schema); break;
        }
    }
}

static thole_status schema_next_run(struct postgres *next, const char *what, const char *sql, uint64_t number,
                                    uint64_t timeout_ms, PGresult **ret, thole_error *reterr)
{
    struct buf text;
    call_begin(next, what);
    if (next->failed != THOLE_OK)
        return call_run(next, reterr);
    buf_init(&text, SQL_BYTES_MAX);
    put_sql(next, sql, number, &text);
    thole_status const status = buf_status(&text) == THOLE_OK
                                    ? session_sql(next, what, buf_cstr(&text), timeout_ms, ret, reterr)
                                    : thole_fail(reterr, buf_status(&text), "no room for %s", what);
    buf_release(&text);
    return status;
}

/* ---- the lock of the session ---- */

/* "SELECT f(class, key)" → whether that is true. */
static thole_status schema_next_ask(struct postgres *next, const char *what, const char *sql, bool *ret,
                                    thole_error *reterr)
{
    PGresult *result = NULL;
    THOLE_TRY(
        schema_next_run(next, what, sql, migrate_lock_key(next->schema), DDL_TIMEOUT_MS, &result, reterr));
    *ret = PQntuples(result) == 1 && strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return THOLE_OK;
}

static thole_status schema_next_lock(struct postgres *next, thole_error *reterr)
{
    bool locked = false;
    THOLE_TRY(schema_next_ask(next, "looking for another rebuild",
                              "SELECT pg_catalog.pg_try_advisory_lock($C, $P)", &locked, reterr));
    return locked ? THOLE_OK
                  : thole_fail(reterr, THOLE_CONFLICT,
                               "another rebuild makes a second schema on Postgres %s: wait for its end",
                               next->where);
}

/* A connection that was lost and made again has no lock. */
static thole_status check_lock(struct postgres *next, thole_error *reterr)
{
    bool held = false;
    THOLE_TRY(schema_next_ask(
        next, "looking at the lock",
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND granted"
        " AND pid = pg_catalog.pg_backend_pid() AND classid = $C"
        " AND objid = $P AND objsubid = 2)",
        &held, reterr));
    return held ? THOLE_OK
                : thole_fail(reterr, THOLE_UNAVAILABLE,
                             "the connection to Postgres %s was lost meanwhile, and with it the lock",
                             next->where);
}

/* ---- the schema ---- */

static thole_status check_live(const struct postgres_options *options, thole_error *reterr)
{
    struct postgres_options of_live = *options;
    struct postgres *live = NULL;
    size_t applied = 0;
    of_live.next = false;
    THOLE_TRY(postgres_open(&of_live, &live, reterr));
    bool const pooled = postgres_is_pooled(live);
    thole_status const status = postgres_applied(live, &applied, reterr);
    postgres_close(live);
    THOLE_TRY(status);
    if (pooled)
        return thole_fail(
            reterr, THOLE_UNSUPPORTED,
            "a second schema needs a lock of a session, and a pooler stands between: connect to "
            "Postgres itself");
    if (applied < migrations_len)
        return thole_fail(reterr, THOLE_UNSUPPORTED,
                          "the tables are at migration %zu, this program knows %zu: first thole migrate",
                          applied, migrations_len);
    return THOLE_OK;
}

static thole_status schema_next_make(struct postgres *next, thole_error *reterr)
{
    thole_error none = {.status = THOLE_OK};
    THOLE_TRY(schema_next_lock(next, reterr));
    THOLE_TRY(schema_next_run(next, "removing what an earlier rebuild left behind",
                              "DROP SCHEMA IF EXISTS $N CASCADE; DROP SCHEMA IF EXISTS $O CASCADE", 0,
                              DDL_TIMEOUT_MS, NULL, reterr));
    THOLE_TRY(postgres_migrate(next, reterr));
    THOLE_TRY(schema_next_run(next, "making a second schema",
                              "INSERT INTO $N.incarnation DEFAULT VALUES ON CONFLICT (one) DO NOTHING", 0,
                              DDL_TIMEOUT_MS, NULL, reterr));
    thole_status const status = postgres_grant(next, &none);
    if (status == THOLE_NOT_FOUND) /* there are no such roles */
        return THOLE_OK;
    if (status != THOLE_OK)
        return thole_fail(reterr, status, "%s", none.text);
    return schema_next_run(
        next, "granting the roles the schema",
        "REVOKE ALL ON SCHEMA $N FROM PUBLIC; GRANT USAGE ON SCHEMA $N TO \"$R_engine\","
        " \"$R_worker\", \"$R_reader\"; ALTER DEFAULT PRIVILEGES FOR ROLE \"$R_owner\" IN SCHEMA $N"
        " GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO \"$R_engine\"; ALTER DEFAULT PRIVILEGES FOR"
        " ROLE \"$R_owner\" IN SCHEMA $N GRANT SELECT ON TABLES TO \"$R_reader\"",
        0, DDL_TIMEOUT_MS, NULL, reterr);
}

thole_status schema_next_open(const struct postgres_options *options, struct postgres **ret,
                              thole_error *reterr)
{
    struct postgres_options of_next = *options;
    struct postgres *next = NULL;
    of_next.next = true;
    THOLE_TRY(check_live(options, reterr));
    THOLE_TRY(postgres_open(&of_next, &next, reterr));
    thole_status const status = schema_next_make(next, reterr);
    if (status == THOLE_OK)
        *ret = next;
    else
        postgres_close(next);
    return status;
}

thole_status schema_next_begin(struct postgres *next, uint32_t p, uint64_t *ret_watermark,
                               thole_error *reterr)
{
    PGresult *result = NULL;
    THOLE_TRY(schema_next_run(
        next, "reading a partition's watermark",
        "INSERT INTO $N.partitions AS n (p, epoch, projected_seq, projected_mark, incarnation)"
        " SELECT l.p, l.epoch, l.projected_seq, l.projected_mark, i.id FROM $L.partitions AS l,"
        " $N.incarnation AS i WHERE l.p = $P ON CONFLICT (p) DO UPDATE SET"
        " projected_seq = excluded.projected_seq, projected_mark = excluded.projected_mark,"
        " incarnation = excluded.incarnation RETURNING n.projected_seq",
        p, DDL_TIMEOUT_MS, &result, reterr));
    *ret_watermark = PQntuples(result) == 1 ? strtoull(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    return THOLE_OK;
}

/* ---- the switch ---- */

/*
 * Running statements end first; later ones wait, and then find the new tables under the old names. A
 * partition that only exists here has no rows yet, and its watermark says so. No partition is complete until
 * its owner has projected the log after the watermark: till then a worker does not take a missing row for a
 * cancelled activity.
 */
static const char switch_sql[] =
    "BEGIN; SET LOCAL lock_timeout = $P; SET LOCAL synchronous_commit = on;"
    " LOCK TABLE $L.partitions, $L.instances, $L.executions, $L.timers, $L.quarantine, $L.worker_queue,"
    " $L.incarnation, $L.set_aside IN ACCESS EXCLUSIVE MODE;"
    " INSERT INTO $N.partitions (p, epoch) SELECT p, epoch FROM $L.partitions ON CONFLICT (p) DO NOTHING;"
    " INSERT INTO $N.namespace SELECT * FROM $L.namespace ON CONFLICT (one) DO NOTHING;"
    " INSERT INTO $N.losses SELECT * FROM $L.losses;"
    " UPDATE $N.partitions AS n SET epoch = greatest(n.epoch, l.epoch) + 1, incarnation = NULL,"
    " kept_seq = l.kept_seq, kept_mark = l.kept_mark, later_seq = l.later_seq, later_mark = l.later_mark,"
    " later_at = l.later_at, updated_at = clock_timestamp() FROM $L.partitions AS l WHERE n.p = l.p;";
/* Claims that a worker can have made, to the same activities of the second schema. */
static const char take_claims_sql[] =
    "UPDATE $N.worker_queue AS n SET attempt = q.attempt, worker = q.worker, claimed_at = q.claimed_at,"
    " renewed_at = q.renewed_at, lease_until = q.lease_until, deadline_at = q.deadline_at,"
    " swept_at = q.swept_at, created_at = q.created_at, later = q.later, apart = q.apart, lost = q.lost,"
    " strikes = q.strikes, lost_worker = q.lost_worker, lost_word = q.lost_word, shelved_at = q.shelved_at,"
    " details = CASE WHEN q.attempt > 0 OR q.later THEN q.details ELSE n.details END"
    " FROM $L.worker_queue AS q WHERE n.instance = q.instance AND n.execution = q.execution"
    " AND n.activity_id = q.activity_id AND n.try_number = q.try_number"
    " AND n.try_timeout_ms = q.try_timeout_ms AND " WRONG_CLAIM " = '';";
static const char rename_sql[] = "ALTER SCHEMA $L RENAME TO $O; ALTER SCHEMA $N RENAME TO $L;"
                                 " SELECT pg_catalog.pg_notify($T, p::text) FROM $L.partitions; COMMIT";

thole_status schema_next_switch(struct postgres *next, thole_error *reterr)
{
    struct buf sql;
    THOLE_TRY(check_lock(next, reterr));
    buf_init(&sql, SQL_BYTES_MAX);
    buf_text(&sql, switch_sql);
    buf_text(&sql, take_claims_sql);
    buf_text(&sql, rename_sql);
    thole_status status = buf_status(&sql);
    if (status == THOLE_OK)
        status = schema_next_run(next, "switching to the second schema", buf_cstr(&sql), LOCK_TIMEOUT_MS,
                                 SWITCH_TIMEOUT_MS, NULL, reterr);
    buf_release(&sql);
    if (status != THOLE_OK) {
        if (schema_next_run(next, "rolling back", "ROLLBACK", 0, SWITCH_TIMEOUT_MS, NULL, NULL) != THOLE_OK)
            session_drop(next);
        return status;
    }
    /* A schema that cannot be removed now is removed by the next rebuild. */
    thole_status const removed =
        schema_next_run(next, "removing the schema of before", "DROP SCHEMA IF EXISTS $O CASCADE", 0,
                        DDL_TIMEOUT_MS, NULL, NULL);
    (void)removed;
    return THOLE_OK;
}

void schema_next_drop(struct postgres *next)
{
    thole_status const removed =
        schema_next_run(next, "removing the second schema", "DROP SCHEMA IF EXISTS $N CASCADE", 0,
                        DDL_TIMEOUT_MS, NULL, NULL);
    (void)removed; /* the next rebuild removes what stays */
}
