/*
 * The shape that the migrations make equals projections/schema_shape.c (`--write` writes it), and parts that
 * a user has removed are seen and made again.
 */
#include "postgres.h"
#include "schema_look.h"
#include "store_fixture.h"
#include <stdio.h>
#include <string.h>

static void write_text(FILE *to, const char *text)
{
    (void)fputc('"', to);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            (void)fputc('\\', to);
        (void)fputc(*text, to);
    }
    (void)fputc('"', to);
}

static void write_part(void *arg, const struct schema_part *part)
{
    FILE *const to = arg;
    const char *const texts[] = {part->kind, part->table, part->name, part->text};
    (void)fputs("    {", to);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        (void)fputs(i == 0 ? "" : ", ", to);
        write_text(to, texts[i]);
    }
    (void)fputs("},\n", to);
}

static void write_shape(struct postgres *pg)
{
    FILE *const to = fopen(THOLE_SOURCE_DIR "/projections/schema_shape.c", "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    (void)fputs("/* The schema that the migrations make: written by integration.schema_shape --write. */\n"
                "#include \"schema_look.h\"\n\n/* clang-format off */\n"
                "const struct schema_part schema_shape[] = {\n",
                to);
    CHECK_OK(schema_read(pg, write_part, to, &store_err));
    (void)fputs("};\n/* clang-format on */\n"
                "const size_t schema_shape_len = sizeof schema_shape / sizeof schema_shape[0];\n",
                to);
    (void)fclose(to);
}

struct told {
    size_t n;
    struct defect first;
};

static void take(void *arg, const struct defect *defect)
{
    struct told *const told = arg;
    if (told->n++ == 0)
        told->first = *defect;
}

static struct told look(struct postgres *pg)
{
    struct told told = {.n = 0};
    CHECK_OK(schema_look(pg, take, &told, &store_err));
    return told;
}

static void count(void *arg, const struct schema_part *part)
{
    size_t *const n = arg;
    (void)part;
    (*n)++;
}

static bool writes;

static void test_shape(void)
{
    struct postgres *const pg = store_migrated("shape");
    size_t parts = 0;
    if (writes)
        write_shape(pg);
    CHECK_OK(schema_read(pg, count, &parts, &store_err));
    if (!writes) {
        struct told const told = look(pg);
        CHECK_INT(told.n, 0);
        if (told.n > 0)
            fprintf(stderr, "  %s: %s, %s\n", told.first.name, told.first.found, told.first.needed);
        CHECK_INT(parts, schema_shape_len);
    }
    postgres_close(pg);
}

/* Each by itself, then looked at, then made again. */
static void test_removed(void)
{
    static const struct {
        const char *sql, *first;
    } rows[] = {
        {"DROP TABLE timers", "table timers"},
        {"DROP TABLE partitions", "table partitions"},
        {"DROP TABLE worker_queue", "table worker_queue"},
        {"DROP TABLE instances", "table instances"},
        {"DROP TABLE executions", "table executions"},
        {"DROP TABLE quarantine", "table quarantine"},
        {"DROP TABLE incarnation", "table incarnation"},
        {"DROP TABLE schema_migrations", "table schema_migrations"},
        {"ALTER TABLE timers DROP COLUMN due_ms", "column timers.due_ms"},
        {"ALTER TABLE instances RENAME COLUMN detail TO details", "column instances.detail"},
        {"DROP INDEX timers_due", "index timers.timers_due"},
        {"DROP INDEX worker_queue_age", "index worker_queue.worker_queue_age"},
        {"ALTER TABLE timers DROP CONSTRAINT timers_pkey", "constraint timers.timers_pkey"},
        {"DROP TRIGGER foreign_removal ON timers", "trigger timers.foreign_removal"},
        {"DROP FUNCTION rows_were_removed() CASCADE", "function rows_were_removed"},
        {"DROP DOMAIN instance_status CASCADE", "domain instance_status"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct postgres *const pg = store_migrated("removed");
        CHECK_INT(look(pg).n, 0);
        (void)store_sql("removed", "%s", rows[i].sql);
        struct told const told = look(pg);
        CU_ASSERT(told.n > 0);
        CHECK_HAS(told.first.name, rows[i].first);
        CHECK_HAS(told.first.remedy, "thole migrate -n removed");
        CHECK_INT(told.first.weight, DEFECT_REFUSED);
        CHECK_OK(postgres_migrate(pg, &store_err));
        CHECK_INT(look(pg).n, 0);
        postgres_close(pg);
    }
}

/* A part with another text is reported, and stays as it is. */
static void test_changed(void)
{
    struct postgres *const pg = store_migrated("changed");
    (void)store_sql("changed", "ALTER TABLE timers DISABLE TRIGGER foreign_removal");
    struct told const told = look(pg);
    CHECK_INT(told.n, 1);
    CHECK_INT(told.first.weight, DEFECT_WARNS);
    CHECK_HAS(told.first.name, "trigger timers.foreign_removal");
    CHECK_OK(postgres_migrate(pg, &store_err));
    CHECK_INT(look(pg).n, 1);
    postgres_close(pg);
}

/* Made again from Postgres's own description, as a dump does, each text is the same: a restored database is
 * not told from one that a user has changed otherwise. */
static void test_dumped(void)
{
    static const char domains[] =
        "DO $$ DECLARE k record; again text; BEGIN FOR k IN SELECT contypid::regtype AS type, "
        "pg_get_constraintdef(oid) AS said FROM pg_constraint WHERE contypid <> 0 AND connamespace = "
        "current_schema::regnamespace LOOP EXECUTE format('ALTER DOMAIN %%s ADD CONSTRAINT again %%s', "
        "k.type, "
        "k.said); SELECT pg_get_constraintdef(oid) INTO again FROM pg_constraint WHERE conname = 'again' AND "
        "contypid = k.type::oid; ASSERT again = k.said, k.type || ' is ' || again || ' after ' || k.said; "
        "EXECUTE format('ALTER DOMAIN %%s DROP CONSTRAINT again', k.type); END LOOP; END $$";
    static const char tables[] =
        "DO $$ DECLARE k record; again text; BEGIN FOR k IN SELECT conrelid::regclass AS name, "
        "pg_get_constraintdef(oid) AS said FROM pg_constraint WHERE contype = 'c' AND conrelid <> 0 AND "
        "connamespace = current_schema::regnamespace LOOP EXECUTE format('ALTER TABLE %%s ADD CONSTRAINT "
        "again "
        "%%s', k.name, k.said); SELECT pg_get_constraintdef(oid) INTO again FROM pg_constraint WHERE conname "
        "= "
        "'again' AND conrelid = k.name::oid; ASSERT again = k.said, again || ' after ' || k.said; EXECUTE "
        "format('ALTER TABLE %%s DROP CONSTRAINT again', k.name); END LOOP; END $$";
    static const char indexes[] =
        "DO $$ DECLARE k record; again text; BEGIN FOR k IN SELECT c.relname AS name, pg_get_indexdef(c.oid) "
        "AS "
        "said FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE c.relnamespace = "
        "current_schema::regnamespace LOOP EXECUTE replace(k.said, 'INDEX ' || k.name || ' ', 'INDEX again "
        "'); "
        "again := replace(pg_get_indexdef('again'::regclass), 'INDEX again ', 'INDEX ' || k.name || ' '); "
        "ASSERT "
        "again = k.said, again || ' after ' || k.said; DROP INDEX again; END LOOP; END $$";
    struct postgres *const pg = store_migrated("dumped");
    (void)store_sql("dumped", domains);
    (void)store_sql("dumped", tables);
    (void)store_sql("dumped", indexes);
    CHECK_INT(look(pg).n, 0);
    postgres_close(pg);
}

/* Objects of others are not looked at. */
static void test_more(void)
{
    struct postgres *const pg = store_migrated("more");
    (void)store_sql("more", "CREATE TABLE of_others (x int); ALTER TABLE timers ADD COLUMN note text;"
                            " CREATE INDEX of_others_too ON timers (note)");
    CHECK_INT(look(pg).n, 0);
    postgres_close(pg);
}

/* Each table that takes no row is named, and no row stays. */
static void test_try_write(void)
{
    static const char *const tables[] = {"partitions", "worker_queue", "timers",   "instances",
                                         "executions", "quarantine",   "set_aside"};
    struct postgres *const pg = store_migrated("tried");
    uint32_t tried = 0;
    CHECK_OK(postgres_try_write(pg, &tried, &store_err));
    CHECK_INT(tried, ARRAY_LEN(tables));
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        char text[80];
        (void)snprintf(text, sizeof text, "writing a row of %s", tables[i]);
        CHECK_INT(store_count("tried", tables[i]), 0);
        (void)store_sql("tried", "ALTER TABLE %s ADD CONSTRAINT refuses CHECK (p <> -1)", tables[i]);
        CU_ASSERT_NOT_EQUAL(postgres_try_write(pg, &tried, &store_err), THOLE_OK);
        CHECK_HAS(store_err.text, text);
        (void)store_sql("tried", "ALTER TABLE %s DROP CONSTRAINT refuses", tables[i]);
        CHECK_OK(postgres_try_write(pg, &tried, &store_err));
    }
    postgres_close(pg);
}

static const struct thole_test tests[] = {{"the shape is what migrations make", test_shape},
                                          {"what is removed is seen and made again", test_removed},
                                          {"what is changed is said", test_changed},
                                          {"what is dumped and restored is the same", test_dumped},
                                          {"what is more is ignored", test_more},
                                          {"a row of each table is tried", test_try_write}};

int main(int argc, char **argv)
{
    writes = argc > 1 && strcmp(argv[1], "--write") == 0;
    return store_run("schema_shape", tests, writes ? 1 : ARRAY_LEN(tests));
}
