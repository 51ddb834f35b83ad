#include "schema_look.h"
#include "memory.h"
#include "postgres_call.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_TIMEOUT_MS = 60 * 1000, MEND_TIMEOUT_MS = 600 * 1000, SQL_BYTES_MAX = 64 * 1024 };

/* The search path has the schema, so that nothing in it is written with its name. */
static const char shape_query[] =
    "WITH s AS (SELECT oid, nspname FROM pg_catalog.pg_namespace WHERE nspname = current_schema()),"
    " t AS (SELECT c.oid, c.relname, c.relpersistence FROM pg_catalog.pg_class AS c JOIN s ON"
    " c.relnamespace = s.oid WHERE c.relkind = 'r'),"
    " parts (rank, kind, rel, nr, name, text) AS ("
    " SELECT 1, 'domain', '', 0, d.typname::text, format_type(d.typbasetype, d.typtypmod) || coalesce((SELECT"
    " string_agg(' ' || pg_get_constraintdef(k.oid), '' ORDER BY k.conname) FROM pg_catalog.pg_constraint AS "
    "k"
    " WHERE k.contypid = d.oid AND k.contype = 'c'), '') FROM pg_catalog.pg_type AS d JOIN s ON "
    "d.typnamespace"
    " = s.oid WHERE d.typtype = 'd'"
    " UNION ALL SELECT 2, 'function', '', 0, f.proname::text, md5(f.prosrc) FROM pg_catalog.pg_proc AS f "
    "JOIN s"
    " ON f.pronamespace = s.oid"
    " UNION ALL SELECT 3, 'table', relname::text, 0, relname::text, CASE relpersistence WHEN 'p' THEN "
    "'logged'"
    " ELSE 'not logged' END FROM t"
    " UNION ALL SELECT 4, 'column', t.relname, a.attnum, a.attname::text, format_type(a.atttypid, "
    "a.atttypmod)"
    " || coalesce(' DEFAULT ' || pg_get_expr(e.adbin, e.adrelid), '') || CASE WHEN a.attnotnull THEN"
    " ' NOT NULL' ELSE '' END FROM t JOIN pg_catalog.pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0"
    " AND NOT a.attisdropped LEFT JOIN pg_catalog.pg_attrdef AS e ON e.adrelid = t.oid AND e.adnum = a.attnum"
    " UNION ALL SELECT 5, 'constraint', t.relname, 0, k.conname::text, pg_get_constraintdef(k.oid) FROM t "
    "JOIN"
    " pg_catalog.pg_constraint AS k ON k.conrelid = t.oid AND k.contype IN ('p', 'u', 'c', 'f', 'x')"
    " UNION ALL SELECT 6, 'index', t.relname, 0, x.relname::text, pg_get_indexdef(i.indexrelid, 0, true) ||"
    " CASE WHEN i.indisvalid THEN '' ELSE ' (not valid)' END FROM t JOIN pg_catalog.pg_index AS i ON "
    "i.indrelid"
    " = t.oid JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid WHERE NOT EXISTS (SELECT FROM"
    " pg_catalog.pg_constraint AS k WHERE k.conindid = i.indexrelid)"
    " UNION ALL SELECT 7, 'trigger', t.relname, 0, g.tgname::text, pg_get_triggerdef(g.oid, true) || CASE"
    " g.tgenabled WHEN 'O' THEN '' ELSE ' (off)' END FROM t JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = "
    "t.oid"
    " AND NOT g.tgisinternal)"
    " SELECT kind, rel, name, replace(replace(text, quote_ident(s.nspname) || '.', ''), s.nspname || '.', '')"
    " FROM parts, s ORDER BY rank, rel COLLATE \"C\", nr, name COLLATE \"C\"";

thole_status schema_read(struct postgres *pg, schema_part_fn *each, void *arg, thole_error *reterr)
{
    PGresult *result = NULL;
    call_begin(pg, "looking at the tables");
    if (pg->failed != THOLE_OK)
        return call_run(pg, reterr);
    THOLE_TRY(session_sql(pg, "looking at the tables", shape_query, LOOK_TIMEOUT_MS, &result, reterr));
    for (int row = 0; row < PQntuples(result); row++)
        each(arg, &(struct schema_part){PQgetvalue(result, row, 0), PQgetvalue(result, row, 1),
                                        PQgetvalue(result, row, 2), PQgetvalue(result, row, 3)});
    PQclear(result);
    return THOLE_OK;
}

/* ---- the comparison ---- */

struct schema_looking {
    const char *ns; /* of its command line */
    char *texts;    /* for each part of the shape: whether it exists, and as it must be */
    defect_fn *each;
    void *arg;
};
#define ROLES_PREFIX "thole_" /* of the roles' names, before the namespace */
enum { PART_MISSING, PART_OTHER, PART_SAME };

static bool schema_look_is_part(const struct schema_part *a, const struct schema_part *b)
{
    return strcmp(a->kind, b->kind) == 0 && strcmp(a->table, b->table) == 0 && strcmp(a->name, b->name) == 0;
}

static void part_defect(const struct schema_looking *looking, const struct schema_part *part,
                        const char *found)
{
    struct defect defect = {.object = DEFECT_TABLES, .cure = CURE_FIX};
    bool const of_table = part->table[0] != '\0' && strcmp(part->kind, "table") != 0;
    defect.weight = found == NULL ? DEFECT_REFUSED : DEFECT_WARNS;
    (void)snprintf(defect.name, sizeof defect.name, "%s %s%s%s", part->kind, of_table ? part->table : "",
                   of_table ? "." : "", part->name);
    if (found != NULL) {
        (void)snprintf(defect.field, sizeof defect.field, "the text");
        (void)snprintf(defect.found, sizeof defect.found, "\"%s\"", found);
        (void)snprintf(defect.needed, sizeof defect.needed, "\"%s\"", part->text);
        (void)snprintf(defect.remedy, sizeof defect.remedy,
                       "thole projections rebuild -n %s --second-schema, or change it back", looking->ns);
        defect.cure = CURE_NONE;
    } else {
        (void)snprintf(defect.remedy, sizeof defect.remedy, "thole migrate -n %s", looking->ns);
    }
    looking->each(looking->arg, &defect);
}

static void compare_part(void *arg, const struct schema_part *part)
{
    struct schema_looking *const looking = arg;
    for (size_t i = 0; i < schema_shape_len; i++) {
        if (!schema_look_is_part(&schema_shape[i], part))
            continue;
        bool const same = strcmp(schema_shape[i].text, part->text) == 0;
        looking->texts[i] = same ? PART_SAME : PART_OTHER;
        if (!same && looking->each != NULL)
            part_defect(looking, &schema_shape[i], part->text);
    }
}

/* @p texts: as many as the shape has parts, zeroed. */
static thole_status look_at_parts(struct postgres *pg, struct schema_looking *looking, thole_error *reterr)
{
    return schema_read(pg, compare_part, looking, reterr);
}

thole_status schema_look(struct postgres *pg, defect_fn *each, void *arg, thole_error *reterr)
{
    struct schema_looking looking = {.ns = pg->roles + sizeof ROLES_PREFIX - 1,
                                     .texts = memory_new(schema_shape_len),
                                     .each = each,
                                     .arg = arg};
    bool some = false;
    thole_status status = look_at_parts(pg, &looking, reterr);
    for (size_t i = 0; i < schema_shape_len; i++)
        some |= looking.texts[i] != PART_MISSING;
    if (status == THOLE_OK && !some)
        status = thole_fail(reterr, THOLE_NOT_FOUND,
                            "schema \"%s\" has no tables, or this role may not use it", pg->schema);
    for (size_t i = 0; i < schema_shape_len && status == THOLE_OK; i++)
        if (looking.texts[i] == PART_MISSING)
            part_defect(&looking, &schema_shape[i], NULL);
    free(looking.texts);
    return status;
}

/* ---- put right ---- */

static bool can_be_added(const struct schema_part *part)
{
    return strcmp(part->kind, "index") == 0 || strcmp(part->kind, "constraint") == 0 ||
           strcmp(part->kind, "trigger") == 0;
}

static thole_status schema_look_add_part(struct postgres *pg, const struct schema_part *part,
                                         thole_error *reterr)
{
    struct buf sql;
    buf_init(&sql, SQL_BYTES_MAX);
    if (strcmp(part->kind, "constraint") == 0)
        buf_printf(&sql, "ALTER TABLE %s ADD CONSTRAINT %s %s", part->table, part->name, part->text);
    else
        buf_text(&sql, part->text);
    thole_status const status =
        session_sql(pg, "making what is missing of a table", buf_cstr(&sql), MEND_TIMEOUT_MS, NULL, reterr);
    buf_release(&sql);
    return status;
}

/* Drops the existing parts of the shape and nothing else; a foreign object that depends on one prevents
 * that. */
static thole_status schema_look_drop_parts(struct postgres *pg, const char *texts, thole_error *reterr)
{
    struct buf sql;
    buf_init(&sql, SQL_BYTES_MAX);
    for (size_t i = schema_shape_len; i-- > 0;) {
        const struct schema_part *const part = &schema_shape[i];
        if (texts[i] == PART_MISSING)
            continue;
        if (strcmp(part->kind, "table") == 0)
            buf_printf(&sql, "DROP TABLE %s; ", part->name);
        else if (strcmp(part->kind, "function") == 0)
            buf_printf(&sql, "DROP FUNCTION %s() CASCADE; ", part->name); /* of triggers */
        else if (strcmp(part->kind, "domain") == 0)
            buf_printf(&sql, "DROP DOMAIN %s; ", part->name);
    }
    thole_status const status =
        session_sql(pg, "removing what is left of the tables", buf_cstr(&sql), MEND_TIMEOUT_MS, NULL, reterr);
    buf_release(&sql);
    return status;
}

thole_status schema_mend(struct postgres *pg, schema_make_fn *migrate, thole_error *reterr)
{
    struct schema_looking looking = {.ns = pg->roles + sizeof ROLES_PREFIX - 1,
                                     .texts = memory_new(schema_shape_len)};
    bool whole = true;
    thole_status status = look_at_parts(pg, &looking, reterr);
    for (size_t i = 0; i < schema_shape_len; i++)
        whole &= looking.texts[i] != PART_MISSING || can_be_added(&schema_shape[i]);
    if (status == THOLE_OK && !whole) {
        status = schema_look_drop_parts(pg, looking.texts, reterr);
        if (status == THOLE_OK)
            status = migrate(pg, reterr);
    }
    for (size_t i = 0; i < schema_shape_len && status == THOLE_OK && whole; i++)
        if (looking.texts[i] == PART_MISSING)
            status = schema_look_add_part(pg, &schema_shape[i], reterr);
    free(looking.texts);
    return status;
}

/* ---- a row ---- */

/* Of a partition that cannot be; NO_ID should be no instance's: if it is one, its row stays as it is. */
#define NO_ID "'a row of thole doctor, which is rolled back'"
static const struct tried_row {
    const char *what, *sql;
} tried_rows[] = {
    {"writing a row of partitions",
     "INSERT INTO partitions (p, epoch) VALUES (-1, 0) ON CONFLICT DO NOTHING"},
    {"writing a row of worker_queue",
     "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity) VALUES (" NO_ID
     ", 0, 0, -1, 'doctor', 'doctor') ON CONFLICT DO NOTHING"},
    {"writing a row of timers", "INSERT INTO timers (instance, execution, timer_id, p, due_ms) VALUES (" NO_ID
                                ", 0, 0, -1, 0) ON CONFLICT DO NOTHING"},
    {"writing a row of instances",
     "INSERT INTO instances (instance, p, orchestration, execution, status, created_ms, updated_ms,"
     " detail, turns, history_seq) VALUES (" NO_ID
     ", -1, 'doctor', 0, 1, 0, 0, '', 0, 0) ON CONFLICT DO NOTHING"},
    {"writing a row of executions",
     "INSERT INTO executions (instance, execution, p, status, started_ms, turns, history_seq) VALUES"
     " (" NO_ID ", 0, -1, 1, 0, 0, 0) ON CONFLICT DO NOTHING"},
    {"writing a row of quarantine",
     "INSERT INTO quarantine (instance, execution, activity_id, p, queue, activity, lost, reason,"
     " since_ms, try_number, until_ms, worker) VALUES (" NO_ID
     ", 0, 0, -1, 'doctor', 'doctor', 0, '', 0, 0, 0, 'doctor') ON CONFLICT DO NOTHING"},
    {"writing a row of set_aside",
     "INSERT INTO set_aside (instance, row_table, execution, id, p, removal, projected_seq, row_column,"
     " code, reason) VALUES (" NO_ID ", 'timers', 0, 0, -1, false, 0, '', '', '') ON CONFLICT DO NOTHING"},
};

thole_status postgres_only_reads(struct postgres *pg, bool *ret, thole_error *reterr)
{
    PGresult *result = NULL;
    static const char what[] = "asking whether rows may be written";
    call_begin(pg, what);
    if (pg->failed != THOLE_OK)
        return call_run(pg, reterr);
    THOLE_TRY(session_sql(pg, what, "SELECT pg_catalog.current_setting('transaction_read_only')",
                          LOOK_TIMEOUT_MS, &result, reterr));
    *ret = PQntuples(result) == 1 && strcmp(PQgetvalue(result, 0, 0), "on") == 0;
    PQclear(result);
    return THOLE_OK;
}

thole_status postgres_try_write(struct postgres *pg, uint32_t *ret_tables, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    const char *what = "writing a row";
    call_begin(pg, what);
    if (pg->failed != THOLE_OK)
        return call_run(pg, reterr);
    *ret_tables = sizeof tried_rows / sizeof tried_rows[0];
    THOLE_TRY(session_sql(pg, what, "BEGIN", LOOK_TIMEOUT_MS, NULL, reterr));
    for (size_t i = 0; i < *ret_tables && status == THOLE_OK; i++) {
        what = tried_rows[i].what;
        status = session_sql(pg, what, tried_rows[i].sql, LOOK_TIMEOUT_MS, NULL, reterr);
    }
    thole_status const rolled = session_sql(pg, what, "ROLLBACK", LOOK_TIMEOUT_MS, NULL, NULL);
    return status == THOLE_OK ? rolled : status;
}
