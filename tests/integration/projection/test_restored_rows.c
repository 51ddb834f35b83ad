/*
 * An older copy of the database is put back in place while engine and worker run, in the ways in which people
 * do it: every instance that was acknowledged ends, in time, and nobody does anything for it.
 */
#include "stack.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { EACH = 15, NAPS = 6, HEAL_MS = 60000 };

static struct stack stack;
static thole_client *client;
static struct stack_program *engine;

THOLE_PRINTF(1, 2)
static bool shell(const char *fmt, ...)
{
    char command[2048];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(command, sizeof command, fmt, args);
    va_end(args);
    return system(command) == 0;
}

static void start(const char *id, const char *orchestration, const char *input)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(input), NULL, &stack.err),
             &stack.err);
}

static void check_outcome(const char *id, const char *want)
{
    thole_instance_status status;
    CHECK_STR(id, stack_outcome(client, id, HEAL_MS, &status), want);
}

/* ---- the ways ---- */

struct way {
    const char *name;
    bool (*take)(void);
    bool (*put_back)(void);
};

/* The table of the incarnation is in the dump, too. */
static bool dump_text(void)
{
    return shell("'%s/pg_dump' -d '%s' -n thole_default -f '%s/dump.sql'", stack.postgres.program,
                 stack.postgres.url, stack.dir);
}

static bool restore_text(void)
{
    return shell("'%s/psql' -X -q -1 -v ON_ERROR_STOP=1 -d '%s' -c 'DROP SCHEMA thole_default CASCADE'"
                 " -f '%s/dump.sql' >/dev/null 2>'%s/psql.log'",
                 stack.postgres.program, stack.postgres.url, stack.dir, stack.dir);
}

static bool dump_archive(void)
{
    return shell("'%s/pg_dump' -d '%s' -n thole_default -Fc -f '%s/dump.fc'", stack.postgres.program,
                 stack.postgres.url, stack.dir);
}

/* Statement by statement, while everybody uses the tables: it may complain of what they did meanwhile. */
static bool restore_archive(void)
{
    return shell("'%s/pg_restore' --clean --if-exists -d '%s' '%s/dump.fc' 2>'%s/pg_restore.log' || true",
                 stack.postgres.program, stack.postgres.url, stack.dir, stack.dir);
}

static bool copy_folder(void)
{
    server_stop(&stack.postgres);
    bool const copied = shell("cp -a '%s/data' '%s/older'", stack.postgres.dir, stack.postgres.dir);
    CHECK_OK(server_restart(&stack.postgres, &stack.err), &stack.err);
    return copied;
}

static bool swap_folder(void)
{
    server_stop(&stack.postgres);
    bool const swapped = shell("rm -rf '%s/data' && mv '%s/older' '%s/data'", stack.postgres.dir,
                               stack.postgres.dir, stack.postgres.dir);
    CHECK_OK(server_restart(&stack.postgres, &stack.err), &stack.err);
    return swapped;
}

static const struct way by_psql = {"psql", dump_text, restore_text};
static const struct way by_pg_restore = {"pg_restore", dump_archive, restore_archive};
static const struct way by_folder = {"folder", copy_folder, swap_folder};

/* By a batch or a look; or by a statement that finds no table while they are being replaced. */
static size_t times_noticed(void)
{
    return stack_count(engine->log, "the database is of another time, as") +
           stack_count(engine->log, "Postgres is lost");
}

static void take(const struct way *way)
{
    CU_ASSERT_TRUE_FATAL(way->take());
}

static void put_back(const struct way *way)
{
    size_t const said = times_noticed();
    CU_ASSERT_TRUE_FATAL(way->put_back());
    for (int i = 0; i < HEAL_MS / 20 && times_noticed() == said; i++)
        pause_ms(20);
    CU_ASSERT_TRUE(times_noticed() > said);
}

/* ---- under load ---- */

static void start_some(const struct way *way, int from)
{
    for (int i = from; i < from + EACH; i++) {
        char id[64];
        snprintf(id, sizeof id, "%s-%02d", way->name, i);
        start(id, "order", "x");
    }
}

static void check_all(const struct way *way)
{
    char statement[128];
    for (int i = 0; i < 3 * EACH; i++) {
        char id[64];
        snprintf(id, sizeof id, "%s-%02d", way->name, i);
        check_outcome(id, "x,reserve,charge,ship");
    }
    snprintf(statement, sizeof statement,
             "SELECT count(*) FROM thole_default.instances WHERE status = 4 AND instance LIKE '%s-%%'",
             way->name);
    for (int i = 0; i < 1000 && strcmp(stack_sql(&stack, statement), "45") != 0; i++)
        pause_ms(20);
    CHECK_STR(way->name, stack_sql(&stack, statement), "45");
}

/* Some before the copy, some between it and its return, some after that. */
static void under_load(const struct way *way)
{
    start_some(way, 0);
    take(way);
    start_some(way, EACH);
    put_back(way);
    start_some(way, 2 * EACH);
    check_all(way);
}

static void test_psql(void)
{
    under_load(&by_psql);
}

static void test_pg_restore(void)
{
    under_load(&by_pg_restore);
}

static void test_folder(void)
{
    under_load(&by_folder);
}

/* ---- when nothing happens ---- */

/* Of what began after the dump no row is left, and nothing is written that would find it out. A worker runs
 * an activity whose row it does not find: that is no cancellation. */
static void test_idle(void)
{
    char id[32];
    size_t const tokens = stack_count(stack.tokens, "");
    start("idle-first", "one", "x");
    check_outcome("idle-first", "x"); /* the tables are there */
    take(&by_psql);
    for (int i = 0; i < NAPS; i++) {
        snprintf(id, sizeof id, "idle-%d", i);
        start(id, "long_nap", "x");
    }
    start("idle-held", "hold", "3000");
    pause_ms(1500); /* quiet: nothing is on its way to the database */
    CHECK_STR("timers", stack_sql(&stack, "SELECT count(*) FROM thole_default.timers"), "6");
    put_back(&by_psql);
    for (int i = 0; i < NAPS; i++) {
        snprintf(id, sizeof id, "idle-%d", i);
        check_outcome(id, "");
    }
    check_outcome("idle-held", "done");
    CU_ASSERT_EQUAL(stack_count(stack.tokens, ""), tokens);
    CU_ASSERT_EQUAL(stack_count(stack.effects, "idle-held"), 1);
}

/* The row of each partition is that of a batch before, and nothing else is going on. */
static void test_seen_by_a_look(void)
{
    size_t const said = stack_count(engine->log, "the database is of another time, as");
    pause_ms(1500);
    (void)stack_sql(&stack, "UPDATE thole_default.partitions SET batches = batches - 1");
    CU_ASSERT_TRUE(stack_logged(engine, "the database is of another time, as", said + 1, HEAL_MS));
    start("seen", "one", "x");
    check_outcome("seen", "x");
}

/* A dump of before the last upgrade: its tables are older than the program, and are migrated again. */
static void test_older_migration(void)
{
    take(&by_psql);
    start("older-1", "nap", "x");
    CU_ASSERT_TRUE_FATAL(
        shell("'%s/psql' -X -q -1 -v ON_ERROR_STOP=1 -d '%s' -c 'DROP SCHEMA thole_default CASCADE'"
              " -f '%s/dump.sql' -c 'ALTER TABLE thole_default.partitions DROP COLUMN batches, DROP COLUMN "
              "kept_seq,"
              " DROP COLUMN kept_mark, DROP COLUMN later_seq, DROP COLUMN later_mark, DROP COLUMN later_at,"
              " DROP COLUMN signed_mark'"
              " -c 'DROP TABLE thole_default.namespace, thole_default.losses'"
              " -c 'ALTER TABLE thole_default.worker_queue DROP COLUMN shelved_at'"
              " -c 'ALTER TABLE thole_default.instances DROP COLUMN blocked'"
              " -c 'DELETE FROM thole_default.schema_migrations WHERE number >= 15'"
              " >/dev/null 2>'%s/psql.log'",
              stack.postgres.program, stack.postgres.url, stack.dir, stack.dir));
    start("older-2", "one", "x");
    check_outcome("older-2", "x");
    check_outcome("older-1", "");
}

/* A table of partitions that is empty. */
static void test_no_partitions(void)
{
    start("none-1", "hold", "2000");
    pause_ms(500);
    (void)stack_sql(&stack, "DELETE FROM thole_default.partitions");
    start("none-2", "one", "x");
    check_outcome("none-1", "done");
    check_outcome("none-2", "x");
    for (int i = 0;
         i < 1000 && strcmp(stack_sql(&stack, "SELECT count(*) > 0 FROM thole_default.partitions"), "t") != 0;
         i++)
        pause_ms(10);
}

static const struct thole_test tests[] = {
    {"idle", test_idle},
    {"psql", test_psql},
    {"pg_restore", test_pg_restore},
    {"folder", test_folder},
    {"seen_by_a_look", test_seen_by_a_look},
    {"older_migration", test_older_migration},
    {"no_partitions", test_no_partitions},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    engine = stack_program(&stack, "engine", "engine", "--sweep=5s", NULL);
    client = stack_client(&stack);
    (void)stack_program(&stack, "worker", "worker", "--lease=5s", NULL);
    int const failed = thole_run_suite("restored_rows", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
