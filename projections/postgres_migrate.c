/* Numbered migrations, each once, in order; and the rights of the roles of deploy/postgres. */
#include "migrations.h"
#include "postgres_call.h"
#include "schema_look.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIGRATE_TIMEOUT_MS = 600000, /* of one migration, and of waiting for another process that migrates */
    SQL_BYTES_MAX = 16 * 1024,
    GRANTS_BYTES_MAX = 64 * 1024,
};

/* FNV-1a */
uint32_t migrate_lock_key(const char *schema)
{
    uint32_t hash = 2166136261u;
    for (const char *at = schema; *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * 16777619u;
    return hash & INT32_MAX;
}

/* A call of session_sql() with the schema's name quoted: "$I" as an identifier, "$L" as a literal; "$R": the
 * beginning of its roles' names, as a literal; "$T": the text of grants.sql, likewise. */
static thole_status run_sql(struct postgres *pg, const char *what, const char *sql, PGresult **ret,
                            thole_error *reterr)
{
    struct buf text;
    char *identifier = session_identifier(pg), *literal = session_literal(pg);
    buf_init(&text, SQL_BYTES_MAX);
    for (const char *at = sql; *at != '\0'; at++)
        if (at[0] != '$' || strspn(at + 1, "ILRT") == 0)
            buf_append(&text, at, 1);
        else if (*++at == 'T')
            buf_printf(&text, "$grants$%s$grants$", grants_sql);
        else if (*at == 'R')
            buf_printf(&text, "'%s'", pg->roles); /* a checked name */
        else
            buf_text(&text, *at == 'I' ? identifier : literal);
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

static thole_status postgres_migrate_apply(struct postgres *pg, const struct migration *migration,
                                           thole_error *reterr)
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
static thole_status postgres_migrate_step(struct postgres *pg, size_t *ret_applied, thole_error *reterr)
{
    THOLE_TRY(read_applied(pg, ret_applied, reterr));
    if (*ret_applied == migrations_len)
        return THOLE_OK;
    if (*ret_applied == 0)
        THOLE_TRY(make_schema(pg, reterr));
    assert(*ret_applied < migrations_len && migrations[*ret_applied].number == (int)*ret_applied + 1);
    THOLE_TRY(postgres_migrate_apply(pg, &migrations[*ret_applied], reterr));
    (*ret_applied)++;
    return THOLE_OK;
}

typedef thole_status (*migrate_step_fn)(struct postgres *pg, size_t *ret_applied, thole_error *reterr);

static thole_status locked_step(struct postgres *pg, migrate_step_fn run, size_t *ret_applied,
                                thole_error *reterr)
{
    struct buf sql;
    buf_init(&sql, SQL_BYTES_MAX);
    buf_printf(
        &sql,
        "BEGIN; %s%sSET LOCAL statement_timeout = %d; SET LOCAL idle_in_transaction_session_timeout = 0;"
        " SET LOCAL synchronous_commit = on; SELECT pg_advisory_xact_lock(%d, %d)",
        pg->pooled ? pg->settings : "", pg->pooled ? "; " : "", (int)MIGRATE_TIMEOUT_MS,
        (int)MIGRATE_LOCK_CLASS, (int)migrate_lock_key(pg->schema));
    thole_status status = buf_status(&sql);
    if (status == THOLE_OK)
        status = session_sql(pg, "waiting for other processes that migrate", buf_cstr(&sql),
                             MIGRATE_TIMEOUT_MS, NULL, reterr);
    buf_release(&sql);
    if (status == THOLE_OK)
        status = run(pg, ret_applied, reterr);
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

/* ---- rights ---- */

/* A line of the script, with psql's variables replaced: :"schema", and :"engine" and its like, which are
 * roles. */
static void grants_line(const struct postgres *pg, thole_slice line, struct buf *to)
{
    const char *const end = (const char *)line.ptr + line.len;
    for (const char *at = (const char *)line.ptr; at < end; at++) {
        const char *name = at + 2, *quote = NULL;
        if (at[0] == ':' && name < end && at[1] == '"')
            quote = memchr(name, '"', (size_t)(end - name));
        if (quote == NULL) {
            buf_append(to, at, 1);
            continue;
        }
        thole_slice const variable = {(const uint8_t *)name, (size_t)(quote - name)};
        if (thole_slice_equal(variable, THOLE_STR("schema")))
            buf_printf(to, "\"%s\"", pg->schema);
        else
            buf_printf(to, "\"%s_%.*s\"", pg->roles, THOLE_FMT(variable));
        at = quote;
    }
    buf_append(to, "\n", 1);
}

/* The script without psql's own commands, for the transaction that there is. */
static void grants_text(const struct postgres *pg, struct buf *to)
{
    for (const char *at = grants_sql; *at != '\0';) {
        size_t const len = strcspn(at, "\n");
        thole_slice const line = {(const uint8_t *)at, len};
        if (at[0] != '\\' && !thole_slice_equal(line, THOLE_STR("BEGIN;")) &&
            !thole_slice_equal(line, THOLE_STR("COMMIT;")))
            grants_line(pg, line, to);
        at += len + (at[len] == '\n');
    }
}

static thole_status need_roles(struct postgres *pg, thole_error *reterr)
{
    PGresult *result = NULL;
    THOLE_TRY(run_sql(pg, "looking for the roles",
                      "SELECT w.name FROM (VALUES ($R || '_owner'), ($R || '_engine'), ($R || '_worker'), "
                      "($R || '_reader'))"
                      " AS w (name) WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname ="
                      " w.name::name) ORDER BY w.name LIMIT 1",
                      &result, reterr));
    thole_status status = THOLE_OK;
    if (PQntuples(result) > 0)
        status = thole_fail(reterr, THOLE_NOT_FOUND, "Postgres %s has no role %s", pg->where,
                            PQgetvalue(result, 0, 0));
    PQclear(result);
    return status;
}

static thole_status grant_step(struct postgres *pg, size_t *ret_applied, thole_error *reterr)
{
    struct buf sql;
    (void)ret_applied;
    THOLE_TRY(need_roles(pg, reterr));
    buf_init(&sql, GRANTS_BYTES_MAX);
    grants_text(pg, &sql);
    thole_status status = buf_status(&sql);
    if (status != THOLE_OK)
        (void)thole_fail(reterr, status, "out of memory for the roles' rights");
    else
        status = session_sql(pg, "granting the roles their rights", buf_cstr(&sql), MIGRATE_TIMEOUT_MS, NULL,
                             reterr);
    buf_release(&sql);
    return status;
}

thole_status postgres_grant(struct postgres *pg, thole_error *reterr)
{
    size_t applied = 0;
    call_begin(pg, "granting the roles their rights");
    if (pg->failed != THOLE_OK)
        return call_run(pg, reterr);
    return locked_step(pg, grant_step, &applied, reterr);
}

/* ---- removed tables and columns ---- */

static thole_status make_all(struct postgres *pg, thole_error *reterr)
{
    size_t applied = 0;
    while (applied < migrations_len)
        THOLE_TRY(postgres_migrate_step(pg, &applied, reterr));
    thole_error err = {.status = THOLE_OK};
    thole_status const granted = grant_step(pg, &applied, &err);
    if (granted == THOLE_OK || granted == THOLE_NOT_FOUND) /* there are no such roles */
        return THOLE_OK;
    return thole_fail(reterr, granted, "%s", err.text);
}

static thole_status mend_step(struct postgres *pg, size_t *ret_applied, thole_error *reterr)
{
    THOLE_TRY(read_applied(pg, ret_applied, reterr));
    if (*ret_applied > 0 && *ret_applied < migrations_len)
        return THOLE_OK; /* another process is making them */
    return schema_mend(pg, make_all, reterr);
}

struct first_missing {
    size_t n;
    struct defect defect;
};

static void take_missing(void *arg, const struct defect *defect)
{
    struct first_missing *const first = arg;
    if (defect->weight == DEFECT_REFUSED && first->n++ == 0)
        first->defect = *defect;
}

/* The number of the last migration says what was made, not what still exists; and the table that has the
 * number may itself be missing. */
static thole_status mend_missing(struct postgres *pg, thole_error *reterr)
{
    struct first_missing first = {.n = 0};
    thole_error err = {.status = THOLE_OK};
    size_t applied = 0;
    thole_status status = schema_look(pg, take_missing, &first, reterr);
    if (status == THOLE_NOT_FOUND || (status == THOLE_OK && first.n == 0))
        return THOLE_OK;
    THOLE_TRY(status);
    status = locked_step(pg, mend_step, &applied, &err);
    return status == THOLE_OK ? THOLE_OK
                              : thole_fail(reterr, status,
                                           "%s of schema \"%s\" is missing, and is not made again: %s; try "
                                           "%s --grants, as the role that migrates",
                                           first.defect.name, pg->schema, err.text, first.defect.remedy);
}

thole_status postgres_migrate(struct postgres *pg, thole_error *reterr)
{
    size_t applied = 0;
    call_begin(pg, "migrating");
    if (pg->failed != THOLE_OK)
        return call_run(pg, reterr);
    THOLE_TRY(read_applied(pg, &applied, reterr));
    if (applied == 0 || applied == migrations_len)
        THOLE_TRY(mend_missing(pg, reterr));
    if (applied == 0)
        THOLE_TRY(read_applied(pg, &applied, reterr));
    while (applied < migrations_len)
        THOLE_TRY(locked_step(pg, postgres_migrate_step, &applied, reterr));
    return THOLE_OK;
}

/* The rights in grants.sql, read from its text: a right to a whole table, or to columns; those of missing
 * columns are left out. A role that lacks all rights to a table is reported with the table, else with the
 * missing rights. */
static const char rights_query[] =
    "WITH text (sql) AS (SELECT regexp_replace($T, '--[^\\n]*', '', 'g')),"
    " given (rights, tables, role) AS (SELECT m[1], m[2], m[3] FROM text,"
    " regexp_matches(sql, 'GRANT ([^;]+?) ON ([^;]+?) TO :\"(\\w+)\"', 'g') AS m),"
    " wanted AS (SELECT r.oid AS role, r.rolname, t.oid AS relation, t.relname, p.m[1] AS privilege, "
    "a.attname"
    " FROM given AS g JOIN pg_catalog.pg_roles AS r ON r.rolname = ($L || '_' || g.role)::name"
    " CROSS JOIN regexp_split_to_table(g.tables, ',') AS listed"
    " JOIN pg_catalog.pg_class AS t ON t.relname = substring(listed FROM '(\\w+)\\s*$') AND t.relkind = 'r'"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace AND n.nspname = $L"
    " CROSS JOIN LATERAL (SELECT regexp_matches(g.rights, '([A-Z]+)\\s*(?:\\(([^)]*)\\))?', 'g')) AS p (m)"
    " LEFT JOIN pg_catalog.pg_attribute AS a ON p.m[2] IS NOT NULL AND a.attrelid = t.oid AND a.attnum > 0"
    " AND a.attname::text = ANY (regexp_split_to_array(btrim(p.m[2]), '\\s*,\\s*'))"
    " WHERE p.m[2] IS NULL OR a.attname IS NOT NULL),"
    " seen AS (SELECT *, CASE WHEN attname IS NULL THEN has_table_privilege(role, relation, privilege)"
    " ELSE has_column_privilege(role, relation, attname, privilege) END AS there FROM wanted),"
    " lacking AS (SELECT rolname || ' on ' || relname || CASE WHEN bool_or(there) THEN ' (' ||"
    " string_agg(privilege || coalesce(' ' || attname, ''), ', ' ORDER BY privilege, attname)"
    " FILTER (WHERE NOT there) || ')' ELSE '' END AS what FROM seen GROUP BY rolname, relname HAVING NOT "
    "bool_and(there))"
    " SELECT (SELECT count(*) FROM pg_catalog.pg_roles WHERE rolname IN (($L || '_engine')::name,"
    " ($L || '_worker')::name, ($L || '_reader')::name)),"
    " coalesce((SELECT string_agg(what, ', ' ORDER BY what) FROM lacking), '')";

thole_status postgres_rights(struct postgres *pg, size_t *ret_roles, struct buf *lacking, thole_error *reterr)
{
    PGresult *result = NULL;
    *ret_roles = 0;
    call_begin(pg, "reading the roles' rights");
    if (pg->failed != THOLE_OK)
        return call_run(pg, reterr);
    THOLE_TRY(run_sql(pg, "reading the roles' rights", rights_query, &result, reterr));
    if (PQntuples(result) == 1) {
        *ret_roles = strtoul(PQgetvalue(result, 0, 0), NULL, 10);
        buf_text(lacking, PQgetvalue(result, 0, 1));
    }
    PQclear(result);
    return THOLE_OK;
}
