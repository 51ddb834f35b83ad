/* Pruning histories of old executions, with real servers: records, rows, the command; engines that die on the
 * way. */
#include "link.h"
#include "reader.h"
#include "stack.h"
#include "subject.h"
#include "thole_cunit.h"
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { WAIT_MS = 20000, PARTITIONS = 8, CYCLES = 12, TEXT_BYTES = 4096 };

static struct stack stack;
static struct stack_program *engine;
static thole_client *client;
static struct connection *connection;
static PGconn *pg;

/* ---- records and rows ---- */

static thole_status add_execution(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    char *const to = arg;
    thole_slice const execution = subject_nth(subject, 5);
    const char *const space = strrchr(to, ' ');
    (void)sequence, (void)body;
    if (!thole_slice_equal(thole_slice_from(space == NULL ? to : space + 1), execution)) { /* each once */
        size_t const had = strlen(to);
        (void)snprintf(to + had, TEXT_BYTES - had, "%s%.*s", had == 0 ? "" : " ", THOLE_FMT(execution));
    }
    return THOLE_OK;
}

/* The executions of which there are records, "1 10 11". */
static const char *recorded(const char *id)
{
    static char text[TEXT_BYTES];
    struct buf stream, subject;
    uint32_t const p = subject_partition(thole_slice_from(id), PARTITIONS);
    text[0] = '\0';
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    CHECK_OK(stream_name(&stream, "default", "HIST", p, &stack.err), &stack.err);
    CHECK_OK(subject_history(&subject, "default", p, thole_slice_from(id), EXECUTIONS_ALL, &stack.err),
             &stack.err);
    CHECK_OK(stream_read(connection, buf_cstr(&stream), buf_cstr(&subject), 1, UINT64_MAX, add_execution,
                         text, &stack.err),
             &stack.err);
    buf_release(&stream);
    buf_release(&subject);
    return text;
}

static thole_status add_row(void *arg, const thole_execution_info *info)
{
    char *const to = arg;
    size_t const had = strlen(to);
    (void)snprintf(to + had, TEXT_BYTES - had, "%s%" PRIu64, had == 0 ? "" : " ", info->execution);
    return THOLE_OK;
}

/* Likewise of rows. */
static const char *rows(const char *id)
{
    static char text[TEXT_BYTES];
    text[0] = '\0';
    if (thole_client_executions(client, thole_slice_from(id), add_row, text, &stack.err) != THOLE_OK)
        return stack.err.text;
    return text;
}

static void become(const char *what, const char *(*get)(const char *id), const char *id, const char *want)
{
    for (int i = 0; i < WAIT_MS / 10 && strcmp(get(id), want) != 0; i++)
        pause_ms(10);
    CHECK_STR(what, get(id), want);
}

struct tally {
    size_t prunes;
    uint64_t before;
};

static thole_status count_prunes(void *arg, const thole_history_event *event)
{
    struct tally *const tally = arg;
    tally->prunes += strcmp(event->kind, "HistoryPruned") == 0;
    if (event->pruned_before > 0)
        tally->before = event->pruned_before;
    return THOLE_OK;
}

static struct tally prunes_of(const char *id)
{
    struct tally tally = {0};
    CHECK_OK(thole_client_history(client, thole_slice_from(id), count_prunes, &tally, &stack.err),
             &stack.err);
    return tally;
}

static const char *created(const char *id)
{
    static char value[64];
    char statement[256];
    (void)snprintf(statement, sizeof statement,
                   "SELECT created_ms FROM thole_default.instances WHERE instance = '%s'", id);
    PGresult *const result = PQexec(pg, statement);
    (void)snprintf(value, sizeof value, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "none");
    PQclear(result);
    return value;
}

static void command(const char *statement)
{
    PGresult *const result = PQexec(pg, statement);
    CU_ASSERT_EQUAL(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
}

/* ---- steps ---- */

static void next(const char *id, const char *how)
{
    CHECK_OK(thole_client_signal(client, thole_slice_from(id), THOLE_STR("next"), thole_slice_from(how),
                                 (thole_slice){0}, NULL, &stack.err),
             &stack.err);
}

static void begin(const char *id)
{
    char want[TEXT_BYTES] = "1";
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("cycles"), THOLE_STR("x"), NULL,
                                &stack.err),
             &stack.err);
    for (int i = 1; i < CYCLES; i++) {
        next(id, "on");
        size_t const len = strlen(want);
        (void)snprintf(want + len, sizeof want - len, " %d", i + 1);
    }
    become("cycles", rows, id, want);
}

static thole_status prune(const char *id, uint64_t before)
{
    return thole_client_prune(client, thole_slice_from(id), before, THOLE_STR("too long"), &stack.err);
}

/* The output of a command line, after its exit code. */
static const char *run(const char *program, const char *words)
{
    static char said[TEXT_BYTES];
    char line[512];
    (void)snprintf(line, sizeof line, "%s %s 2>&1", program, words);
    FILE *const from = popen(line, "r");
    said[0] = '\0';
    size_t const len = from == NULL ? 0 : fread(said + 2, 1, sizeof said - 3, from);
    int const status = from == NULL ? -1 : pclose(from);
    said[0] = WIFEXITED(status) ? (char)('0' + WEXITSTATUS(status) % 10) : '?';
    said[1] = ' ';
    said[2 + len] = '\0';
    return said;
}

static void replays(const char *id)
{
    const char *const said = run(THOLE_TEST_PROGRAMS "/program_verbs replay", id);
    CU_ASSERT_EQUAL(said[0], '0');
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "0 diverged, 0 unreadable"));
    if (said[0] != '0')
        (void)fprintf(stderr, "\n  %s\n", said);
}

/* ---- tests ---- */

static void old_executions_go(void)
{
    begin("old");
    char created_ms[64];
    (void)snprintf(created_ms, sizeof created_ms, "%s", created("old"));
    CHECK_OK(prune("old", 10), &stack.err);
    become("records", recorded, "old", "1 10 11 12");
    become("rows", rows, "old", "1 10 11 12");
    CU_ASSERT_EQUAL(prunes_of("old").prunes, 1);
    CU_ASSERT_EQUAL(prunes_of("old").before, 10);
    CHECK_OK(prune("old", 10), &stack.err); /* again, and less */
    CHECK_OK(prune("old", 4), &stack.err);
    next("old", "on");
    become("it goes on", rows, "old", "1 10 11 12 13");
    CU_ASSERT_EQUAL(prunes_of("old").prunes, 1);
    CHECK_STR("created", created("old"), created_ms);
    replays("old");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(run(THOLE_COMMAND, "history old"), "executions before 10, but the first too long"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(run(THOLE_COMMAND, "history old -o jsonl | grep HistoryPruned"), "\"pruned_before\":10"));
}

/* Neither the first execution nor the one that goes on, whatever is asked for. */
static void what_stays(void)
{
    CHECK_OK(prune("old", 999), &stack.err);
    become("records", recorded, "old", "1 13");
    become("rows", rows, "old", "1 13");
    next("old", "end");
    thole_instance_status status;
    CHECK_STR("outcome", stack_outcome(client, "old", WAIT_MS, &status), "in execution 13");
    CU_ASSERT_EQUAL(prune("old", 999), THOLE_CONFLICT);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "nothing was pruned"));
    CU_ASSERT_EQUAL(prune("nobody", 2), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(prune("old", 0), THOLE_INVALID);
    replays("old");
}

/* Engines die while requests, records and rows are on their way; then the database is emptied. */
static void engines_die_on_the_way(void)
{
    static const char *const ids[] = {"die-0", "die-1", "die-2", "die-3"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        begin(ids[i]);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        CHECK_OK(prune(ids[i], 6), &stack.err);
        pause_ms((unsigned)i * 3);
        stack_kill9(engine);
        engine = stack_program_of(&stack, "program_verbs", "run", "run");
    }
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        become("records", recorded, ids[i], "1 6 7 8 9 10 11 12");
        become("rows", rows, ids[i], "1 6 7 8 9 10 11 12");
        CU_ASSERT_EQUAL(prunes_of(ids[i]).prunes, 1);
    }
    char created_ms[64];
    (void)snprintf(created_ms, sizeof created_ms, "%s", created("die-0"));
    stack_kill9(engine);
    command("DROP SCHEMA thole_default CASCADE");
    engine = stack_program_of(&stack, "program_verbs", "run", "run");
    CU_ASSERT_TRUE(stack_logged(engine, "open, epoch", PARTITIONS, WAIT_MS));
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        become("made again", rows, ids[i], "1 6 7 8 9 10 11 12");
        next(ids[i], "on");
        become("goes on", rows, ids[i], "1 6 7 8 9 10 11 12 13");
        replays(ids[i]);
    }
    CHECK_STR("created", created("die-0"), created_ms);
}

static void the_command(void)
{
    const char *said = run(THOLE_COMMAND, "prune die-1 --executions-before 8 --dry-run");
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "2 histories would be removed, nothing was changed"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "        6  "));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "        7  "));
    CU_ASSERT_PTR_NULL(strstr(said, "        8  "));
    CU_ASSERT_PTR_NULL(strstr(said, "        1  "));
    CHECK_STR("dry", rows("die-1"), "1 6 7 8 9 10 11 12 13");
    said = run(THOLE_COMMAND, "prune die-1 --executions-before 8 -o json");
    CU_ASSERT_EQUAL(said[0], '0');
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "\"execution\":6"));
    become("by number", rows, "die-1", "1 8 9 10 11 12 13");
    (void)run(THOLE_COMMAND, "prune die-1 --executions-before 1h");
    CHECK_STR("younger than that", rows("die-1"), "1 8 9 10 11 12 13");
    CU_ASSERT_EQUAL(run(THOLE_COMMAND, "prune die-1 --executions-before 2199-01-01")[0], '0');
    become("by time", rows, "die-1", "1 13");
    become("records", recorded, "die-1", "1 13");
    CU_ASSERT_EQUAL(run(THOLE_COMMAND, "prune die-1 --executions-before x")[0], '2');
    CU_ASSERT_EQUAL(run(THOLE_COMMAND, "prune die-1")[0], '2');
    CU_ASSERT_EQUAL(run(THOLE_COMMAND, "prune nobody --executions-before 3")[0], '3');
}

static const struct thole_test tests[] = {
    {"old executions go", old_executions_go},
    {"what stays", what_stays},
    {"engines die on the way", engines_die_on_the_way},
    {"the command", the_command},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    setenv("THOLE_NODE_TTL", "2s", 1); /* of those that are killed */
    engine = stack_program_of(&stack, "program_verbs", "run", "run");
    client = stack_client(&stack);
    pg = PQconnectdb(stack.postgres.url);
    (void)stack_logged(engine, "open, epoch", PARTITIONS, WAIT_MS);
    connection = stack_connect(&stack);
    int const failed = thole_run_suite("prune", tests, ARRAY_LEN(tests));
    PQfinish(pg);
    connection_close(connection);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
