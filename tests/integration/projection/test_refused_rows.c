/*
 * An engine, a worker and the command while Postgres refuses rows of one instance: others go on, each says
 * what is refused, the engine dies in between, and when the cause is gone thole projections verify writes the
 * rows.
 */
#include "connection.h"
#include "event.h"
#include "reader.h"
#include "stack.h"
#include "subject.h"
#include <nats/nats.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { OUTPUT_BYTES = 64 * 1024, OUTCOME_MS = 20000 };

static struct stack stack;
static thole_client *client;
static struct stack_program *engine, *worker;
static char out[OUTPUT_BYTES];

static int run_thole(const char *arguments)
{
    char command[512];
    (void)snprintf(command, sizeof command, THOLE_COMMAND " %s 2>&1", arguments);
    FILE *const from = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    out[fread(out, 1, sizeof out - 1, from)] = '\0';
    return WEXITSTATUS(pclose(from));
}

static void check_says(const char *text)
{
    CU_ASSERT_PTR_NOT_NULL(strstr(out, text));
    if (strstr(out, text) == NULL)
        fprintf(stderr, "  lacks \"%s\":\n%s\n", text, out);
}

static void start(const char *id, const char *orchestration)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration), THOLE_STR("x"),
                                NULL, &stack.err),
             &stack.err);
}

static void check_outcome(const char *id, const char *want)
{
    thole_instance_status status;
    CHECK_STR(id, stack_outcome(client, id, OUTCOME_MS, &status), want);
}

static void refuse(const char *table, const char *id)
{
    char sql[512];
    (void)stack_sql(&stack,
                    "CREATE OR REPLACE FUNCTION thole_default.refuse() RETURNS trigger LANGUAGE plpgsql AS"
                    " $$ BEGIN RAISE EXCEPTION 'not this one' USING COLUMN = 'instance'; END $$");
    (void)snprintf(sql, sizeof sql,
                   "CREATE TRIGGER fault BEFORE INSERT OR UPDATE ON thole_default.%s FOR EACH ROW"
                   " WHEN (NEW.instance = '%s') EXECUTE FUNCTION thole_default.refuse()",
                   table, id);
    (void)stack_sql(&stack, sql);
}

static void allow(const char *table)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "DROP TRIGGER fault ON thole_default.%s", table);
    (void)stack_sql(&stack, sql);
}

static void wait_set_aside(const char *want)
{
    static const char sql[] =
        "SELECT string_agg(instance || '/' || row_table || '/' || row_column, ' ' ORDER BY"
        " row_table) FROM thole_default.set_aside";
    for (int i = 0; i < 400 && strcmp(stack_sql(&stack, sql), want) != 0; i++)
        pause_ms(50);
    CHECK_STR("set aside", stack_sql(&stack, sql), want);
}

static void restart_engine(void)
{
    stack_kill9(engine);
    engine = stack_program(&stack, "engine", "engine", "--sweep=1s", NULL);
}

/* The view of people. */
static void check_said(const char *id, const char *table)
{
    char command[64], line[128];
    CU_ASSERT_EQUAL(run_thole("doctor"), 12);
    check_says("FAIL  set_aside        Postgres refuses 1 rows of 1 instances");
    (void)snprintf(line, sizeof line, "%s of %s, column instance: not this one", table, id);
    check_says(line);
    (void)snprintf(command, sizeof command, "show %s", id);
    CU_ASSERT_EQUAL(run_thole(command), 0);
    (void)snprintf(line, sizeof line, "row set aside   table %s", table);
    check_says(line);
    (void)snprintf(command, sizeof command, "show %s -o json", id);
    CU_ASSERT_EQUAL(run_thole(command), 0);
    check_says("\"set_aside\"");
    CU_ASSERT_TRUE(stack_logged(engine, "Postgres refuses 1 rows, which are set aside", 1, 1000));
}

/* Tried again while the cause lasts, then when it is gone. */
static void verify(const char *table)
{
    CU_ASSERT_EQUAL(run_thole("projections verify --rate 0"), 15);
    check_says("Postgres still refuses 1 rows");
    allow(table);
    CU_ASSERT_EQUAL(run_thole("projections verify --rate 0"), 0);
    check_says("1 were wrong, 1 are written from the history");
    wait_set_aside("");
    CU_ASSERT_EQUAL(run_thole("projections verify --rate 0"), 0);
    check_says("all are as their histories say");
    (void)run_thole("doctor");
    check_says("OK    set_aside        Postgres has taken all rows");
}

static void an_activity_never_runs(void)
{
    start("first", "one"); /* then there are tables */
    check_outcome("first", "x");
    refuse("worker_queue", "bad-activity");
    start("bad-activity", "one");
    start("good-1", "one");
    check_outcome("good-1", "x");
    wait_set_aside("bad-activity/worker_queue/instance");
    check_said("bad-activity", "worker_queue");
    restart_engine();
    start("good-2", "one");
    check_outcome("good-2", "x");
    wait_set_aside("bad-activity/worker_queue/instance");
    verify("worker_queue");
    check_outcome("bad-activity", "x");
}

/* In memory it would fire: its owner dies before. */
static void a_timer_does_not_fire(void)
{
    refuse("timers", "bad-timer");
    start("bad-timer", "long_nap");
    wait_set_aside("bad-timer/timers/instance");
    restart_engine();
    check_said("bad-timer", "timers");
    start("good-3", "one");
    check_outcome("good-3", "x");
    verify("timers");
    check_outcome("bad-timer", "");
}

/* The instance runs all the same; the rows for list and show are missing. */
static void no_list_has_it(void)
{
    refuse("instances", "bad-row");
    start("bad-row", "one");
    check_outcome("bad-row", "x");
    wait_set_aside("bad-row/instances/instance");
    check_said("bad-row", "instances");
    restart_engine();
    start("good-4", "one");
    check_outcome("good-4", "x");
    verify("instances");
    CU_ASSERT_EQUAL(run_thole("show bad-row"), 0);
    check_says("Completed");
}

/* A termination removes what could not be written; a deletion takes the rest. */
static void it_is_terminated_and_deleted(void)
{
    thole_instance_status status;
    refuse("worker_queue", "bad-end");
    start("bad-end", "one");
    wait_set_aside("bad-end/worker_queue/instance");
    CHECK_OK(thole_client_terminate(client, THOLE_STR("bad-end"), THOLE_STR("enough"), &stack.err),
             &stack.err);
    (void)stack_outcome(client, "bad-end", OUTCOME_MS, &status);
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_TERMINATED);
    wait_set_aside("");
    allow("worker_queue");
    refuse("instances", "bad-gone");
    start("bad-gone", "one");
    check_outcome("bad-gone", "x");
    wait_set_aside("bad-gone/instances/instance");
    CHECK_OK(thole_client_delete(client, THOLE_STR("bad-gone"), NULL, NULL, &stack.err), &stack.err);
    wait_set_aside("");
    allow("instances");
    CU_ASSERT_EQUAL(run_thole("projections verify --rate 0"), 0);
}

/* Nobody's row is taken either: the partition waits, and goes on by itself. */
static void a_table_that_is_broken(void)
{
    (void)stack_sql(&stack, "ALTER TABLE thole_default.worker_queue ADD COLUMN must int NOT NULL");
    start("waits", "one");
    CU_ASSERT_TRUE(stack_logged(engine, "table worker_queue takes no row", 1, OUTCOME_MS));
    wait_set_aside("");
    (void)stack_sql(&stack, "ALTER TABLE thole_default.worker_queue DROP COLUMN must");
    check_outcome("waits", "x");
}

/* ---- an old history ---- */

enum { PARTITIONS = 8 };

struct log_end {
    uint64_t sequence, epoch, n;
};

static void look_at_end(struct connection *connection, uint32_t p, const char *kind, struct log_end *ret)
{
    char stream[64], subject[64];
    struct arena arena;
    struct buf bytes;
    struct record record;
    uint64_t sequence = 0;
    (void)snprintf(stream, sizeof stream, "THOLE_default_HIST_%u", p);
    (void)snprintf(subject, sizeof subject, "thole.default.%s.%u.>", kind, p);
    arena_init(&arena, RECORD_BYTES_MAX);
    buf_init(&bytes, RECORD_BYTES_MAX);
    CHECK_OK(stream_last_by_subject(connection, stream, subject, &sequence, &bytes, &stack.err), &stack.err);
    if (sequence > ret->sequence && record_decode(buf_bytes(&bytes), &arena, &record, NULL) == THOLE_OK)
        *ret = (struct log_end){sequence, record.epoch, record.n};
    buf_release(&bytes);
    arena_release(&arena);
}

/* The next record of the epoch: the start of an instance. */
static void store_start(jsCtx *js, uint32_t p, struct log_end *end, const char *id, bool old)
{
    /* varints of INT32_MAX, and of the next number, which an older engine has taken for a version */
    static const uint8_t largest[] = {0xff, 0xff, 0xff, 0xff, 0x07},
                         beyond[] = {0x80, 0x80, 0x80, 0x80, 0x08};
    char subject[128];
    struct buf bytes;
    struct event const started = {.kind = EVENT_STARTED,
                                  .id = 1,
                                  .name = THOLE_STR("one"),
                                  .data = THOLE_STR("x"),
                                  .code = 1,
                                  .request_id = THOLE_STR("r"),
                                  .version = old ? INT32_MAX : 0};
    struct record const record = {.kind = RECORD_TURN,
                                  .epoch = end->epoch,
                                  .n = end->n + 1,
                                  .committed = end->n,
                                  .turn = {.instance = thole_slice_from(id),
                                           .execution = 1,
                                           .number = 1,
                                           .time_ms = clock_wall_ms(),
                                           .blocked = BLOCKED_NO_CODE,
                                           .blocked_text = THOLE_STR("no code"),
                                           .events = &started,
                                           .events_len = 1}};
    buf_init(&bytes, RECORD_BYTES_MAX);
    CU_ASSERT_EQUAL_FATAL(record_encode(&record, &bytes), THOLE_OK);
    uint8_t *const version = old ? memmem(bytes.ptr, bytes.len, largest, sizeof largest) : NULL;
    CU_ASSERT_EQUAL_FATAL(version != NULL, old);
    if (old)
        memcpy(version, beyond, sizeof beyond);
    (void)snprintf(subject, sizeof subject, "thole.default.hist.%u.%s.1", p, id);
    CU_ASSERT_EQUAL(js_Publish(NULL, js, subject, bytes.ptr, (int)bytes.len, NULL, NULL), NATS_OK);
    end->n++;
    buf_release(&bytes);
}

/* The next record, of another instance, says that it was stored. */
static void store_history(uint32_t p, const char *id, const char *behind)
{
    struct connection *const connection = stack_connect(&stack);
    natsConnection *nats = NULL;
    jsCtx *js = NULL;
    struct log_end end = {.n = 0};
    look_at_end(connection, p, "hist", &end);
    look_at_end(connection, p, "ctl", &end);
    CU_ASSERT_EQUAL(natsConnection_ConnectTo(&nats, stack.nats.url), NATS_OK);
    CU_ASSERT_EQUAL(natsConnection_JetStream(&js, nats, NULL), NATS_OK);
    store_start(js, p, &end, id, true);
    store_start(js, p, &end, behind, false);
    jsCtx_Destroy(js);
    natsConnection_Destroy(nats);
    connection_close(connection);
}

/* An id of the partition. */
static const char *another_id(uint32_t p, const char *name)
{
    static char ids[2][32];
    static size_t next;
    char *const id = ids[next++ % 2];
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(id, sizeof ids[0], "%s-%u", name, i);
        if (subject_partition(thole_slice_from(id), PARTITIONS) == p)
            break;
    }
    return id;
}

/* The partition serves others, and the instance is ended as any other. */
static void a_version_that_no_column_holds(void)
{
    thole_instance_status status;
    uint32_t const p = subject_partition(THOLE_STR("old-version"), PARTITIONS);
    const char *const behind = another_id(p, "behind"), *const new = another_id(p, "new");
    (void)stack_terminate(engine, 10000);
    store_history(p, "old-version", behind);
    engine = stack_program(&stack, "engine", "engine", "--sweep=1s", NULL);
    check_outcome(behind, "x");
    start(new, "one");
    check_outcome(new, "x");
    CHECK_OK(thole_client_terminate(client, THOLE_STR("old-version"), THOLE_STR("enough"), &stack.err),
             &stack.err);
    (void)stack_outcome(client, "old-version", OUTCOME_MS, &status);
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_TERMINATED);
    wait_set_aside("");
    CU_ASSERT_EQUAL(run_thole("show old-version"), 0);
    check_says("Terminated");
    restart_engine();
    start("good-5", "one");
    check_outcome("good-5", "x");
}

static const struct thole_test tests[] = {
    {"an activity never runs", an_activity_never_runs},
    {"a timer does not fire", a_timer_does_not_fire},
    {"no list has it", no_list_has_it},
    {"it is terminated and deleted", it_is_terminated_and_deleted},
    {"a table that is broken", a_table_that_is_broken},
    {"a version that no column holds", a_version_that_no_column_holds},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    engine = stack_program(&stack, "engine", "engine", "--sweep=1s", NULL);
    client = stack_client(&stack);
    worker = stack_program(&stack, "worker", "worker", NULL);
    int const failed = thole_run_suite("refused_rows", tests, ARRAY_LEN(tests));
    (void)stack_terminate(worker, 10000);
    (void)stack_terminate(engine, 10000);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
