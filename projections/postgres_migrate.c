/* Numbered migrations, each once, in order. */
#include "migrations.h"
#include "postgres_call.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIGRATE_TIMEOUT_MS = 600000, /* of one migration, and of waiting for another process that migrates */
    LOCK_CLASS = 0x74686f6c,     /* "thol": first half of the advisory lock's key */
    SQL_BYTES_MAX = 4096,
};

/* FNV-1a: second half of the key, so that namespaces of one database do not wait for each other. */
static int32_t lock_key(const char *schema)
{
    uint32_t hash = 2166136261u;
    for (const char *at = schema; *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * 16777619u;
    return (int32_t)(hash & INT32_MAX);
}

/* A call of session_sql() with the schema's name quoted: "$I" as an identifier, "$L" as a literal. */
static thole_status run_sql(struct postgres *pg, const char *what, const char *sql, PGresult **ret,
                            thole_error *reterr)
{
    struct buf text;
    char *identifier = session_identifier(pg), *literal = session_literal(pg);
    buf_init(&text, SQL_BYTES_MAX);
    for (const char *at = sql; *at != '\0'; at++)
        if (at[0] == '$' && (at[1] == 'I' || at[1] == 'L'))
            buf_text(&text, *++at == 'I' ? identifier : literal);
        else
            buf_append(&text, at, 1);
    thole_status status = buf_status(&text);
    if (status != THOLE_OK)
        (void)thole_fail(reterr, status, "out of memory for %s", what);
    else
        status = session_sql(pg, what, buf_cstr(&text), MIGRATE_TIMEOUT_MS, ret, reterr);
    buf_release(&text);
    PQfreemem(identifier);
    PQfreemem(literal);
    return status;
}

/* The number of the newest migration that is applied; 0 when there is none or no schema. */
static thole_status read_applied(struct postgres *pg, size_t *ret_applied, thole_error *reterr)
{
    PGresult *result = NULL;
    /* to_regclass has no rows to read when there is no table, and the second query needs one to be parsed */
    THOLE_TRY(run_sql(pg, "looking for the tables",
                      "SELECT 1 FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n"
                      " ON n.oid = c.relnamespace WHERE n.nspname = $L AND c.relname = 'schema_migrations'",
                      &result, reterr));
    bool exists = PQntuples(result) == 1;
    PQclear(result);
    *ret_applied = 0;
    if (!exists)
        return THOLE_OK;
    THOLE_TRY(run_sql(pg, "reading which migrations are applied",
                      "SELECT coalesce(max(number), 0) FROM $I.schema_migrations", &result, reterr));
    if (PQntuples(result) == 1)
        *ret_applied = strtoul(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    if (*ret_applied > migrations_len)
        return thole_fail(
            reterr, THOLE_UNSUPPORTED,
            "Postgres %s schema \"%s\" is at migration %zu, this program knows %zu; start a newer "
            "thole",
            pg->where, pg->schema, *ret_applied, migrations_len);
    return THOLE_OK;
}

static thole_status make_schema(struct postgres *pg, thole_error *reterr)
{
    PGresult *result = NULL;
    /* IF NOT EXISTS wants the privilege to create schemas even when there is nothing to create */
    THOLE_TRY(run_sql(pg, "looking for the schema",
                      "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $L", &result, reterr));
    bool exists = PQntuples(result) == 1;
    PQclear(result);
    if (!exists)
        THOLE_TRY(run_sql(pg, "creating the schema", "CREATE SCHEMA $I", NULL, reterr));
    return run_sql(
        pg, "creating the table of migrations",
        "CREATE TABLE IF NOT EXISTS $I.schema_migrations (number integer PRIMARY KEY, name text NOT"
        " NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp());"
        "COMMENT ON TABLE $I.schema_migrations IS 'Which of projections/migrations are applied';"
        "COMMENT ON COLUMN $I.schema_migrations.number IS 'Number of the file, from 1';"
        "COMMENT ON COLUMN $I.schema_migrations.name IS 'Name of the file without its suffix';"
        "COMMENT ON COLUMN $I.schema_migrations.applied_at IS 'When it was applied'",
        NULL, reterr);
}

static thole_status apply(struct postgres *pg, const struct migration *migration, thole_error *reterr)
{
    struct buf sql;
    buf_init(&sql, SQL_BYTES_MAX);
    THOLE_TRY(session_sql(pg, migration->name, migration->sql, MIGRATE_TIMEOUT_MS, NULL, reterr));
    buf_printf(&sql, "INSERT INTO schema_migrations (number, name) VALUES (%d, '%s')", migration->number,
               migration->name);
    thole_status status = buf_status(&sql);
    if (status == THOLE_OK)
        status = session_sql(pg, migration->name, buf_cstr(&sql), MIGRATE_TIMEOUT_MS, NULL, reterr);
    buf_release(&sql);
    return status;
}

/* Inside a transaction that holds the lock. Applies one migration at most. */
static thole_status step(struct postgres *pg, size_t *ret_applied, thole_error *reterr)
{
    THOLE_TRY(read_applied(pg, ret_applied, reterr));
    if (*ret_applied == migrations_len)
        return THOLE_OK;
    if (*ret_applied == 0)
        THOLE_TRY(make_schema(pg, reterr));
    assert(*ret_applied < migrations_len && migrations[*ret_applied].number == (int)*ret_applied + 1);
    THOLE_TRY(apply(pg, &migrations[*ret_applied], reterr));
    (*ret_applied)++;
    return THOLE_OK;
}

static thole_status locked_step(struct postgres *pg, size_t *ret_applied, thole_error *reterr)
{
    struct buf sql;
    buf_init(&sql, SQL_BYTES_MAX);
    buf_printf(
        &sql,
        "BEGIN; %s%sSET LOCAL statement_timeout = %d; SET LOCAL idle_in_transaction_session_timeout = 0;"
        " SET LOCAL synchronous_commit = on; SELECT pg_advisory_xact_lock(%d, %d)",
        pg->pooled ? pg->settings : "", pg->pooled ? "; " : "", (int)MIGRATE_TIMEOUT_MS, (int)LOCK_CLASS,
        (int)lock_key(pg->schema));
    thole_status status = buf_status(&sql);
    if (status == THOLE_OK)
        status = session_sql(pg, "waiting for other processes that migrate", buf_cstr(&sql),
                             MIGRATE_TIMEOUT_MS, NULL, reterr);
    buf_release(&sql);
    if (status == THOLE_OK)
        status = step(pg, ret_applied, reterr);
    if (status == THOLE_OK)
        status = session_sql(pg, "committing a migration", "COMMIT", MIGRATE_TIMEOUT_MS, NULL, reterr);
    if (status != THOLE_OK && pg->conn != NULL &&
        session_sql(pg, "rolling back a migration", "ROLLBACK", MIGRATE_TIMEOUT_MS, NULL, NULL) != THOLE_OK)
        session_drop(pg);
    return status;
}

thole_status postgres_applied(struct postgres *pg, size_t *ret, thole_error *reterr)
{
    *ret = 0;
    call_begin(pg, "looking for the tables");
    if (pg->failed != THOLE_OK)
        return call_run(pg, reterr);
    return read_applied(pg, ret, reterr);
}

thole_status postgres_migrate(struct postgres *pg, thole_error *reterr)
{
    size_t applied = 0;
    call_begin(pg, "migrating");
    if (pg->failed != THOLE_OK)
        return call_run(pg, reterr);
    THOLE_TRY(read_applied(pg, &applied, reterr));
    while (applied < migrations_len)
        THOLE_TRY(locked_step(pg, &applied, reterr));
    return THOLE_OK;
}
