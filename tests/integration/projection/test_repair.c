/* Repairs that should never be needed: work messages that are gone, rivals that came and went, rows that are
 * gone. */
#include "connection.h"
#include "event.h"
#include "reader.h"
#include "stack.h"
#include "subject.h"
#include <libpq-fe.h>
#include <nats/nats.h>

static struct stack stack;
static thole_client *client;
static struct stack_program *engine, *worker;
static struct connection *connection;

static void start(const char *id, const char *orchestration)
{
    thole_slice const input = strcmp(orchestration, "hold") == 0 ? THOLE_STR("60000") : THOLE_STR("x");
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration), input, NULL,
                                &stack.err),
             &stack.err);
}

static void check_outcome(const char *id, const char *want)
{
    thole_instance_status status;
    CHECK_STR(id, stack_outcome(client, id, 20000, &status), want);
}

static uint64_t messages(const char *stream)
{
    struct stream_bounds bounds = {0};
    CHECK_OK(stream_bounds(connection, stream, &bounds, &stack.err), &stack.err);
    return bounds.messages;
}

static void wait_messages(const char *stream, uint64_t want)
{
    for (int i = 0; i < 500 && messages(stream) != want; i++)
        pause_ms(10);
    CU_ASSERT_EQUAL(messages(stream), want);
}

/* The oldest message. */
static void lose_work(void)
{
    struct stream_bounds bounds = {0};
    CHECK_OK(stream_bounds(connection, "THOLE_default_WORK", &bounds, &stack.err), &stack.err);
    CHECK_OK(stream_delete(connection, "THOLE_default_WORK", bounds.first, &stack.err), &stack.err);
}

static void test_lost_work_is_queued_again(void)
{
    (void)stack_terminate(worker, 10000);
    start("lost-work", "one");
    wait_messages("THOLE_default_WORK", 1);
    lose_work();
    worker = stack_program(&stack, "worker", "worker", NULL);
    check_outcome("lost-work", "x");
    CU_ASSERT_TRUE(stack_logged(engine, "was lost and is queued again", 1, 1000));
}

/* Without a worker: cancelled activities leave the queue without one. */
/* How many messages it may hold; -1: any number. */
static void limit_work(int64_t most)
{
    natsConnection *nats = NULL;
    jsCtx *js = NULL;
    jsStreamInfo *info = NULL;
    CU_ASSERT_EQUAL(natsConnection_ConnectTo(&nats, stack.nats.url), NATS_OK);
    CU_ASSERT_EQUAL(natsConnection_JetStream(&js, nats, NULL), NATS_OK);
    CU_ASSERT_EQUAL_FATAL(js_GetStreamInfo(&info, js, "THOLE_default_WORK", NULL, NULL), NATS_OK);
    info->Config->MaxMsgs = most;
    CU_ASSERT_EQUAL(js_UpdateStream(NULL, js, info->Config, NULL, NULL), NATS_OK);
    jsStreamInfo_Destroy(info);
    jsCtx_Destroy(js);
    natsConnection_Destroy(nats);
}

/* The operator has given the stream a limit. Refused messages, with error 10077, are reported and tried
 * again. */
static void test_full_stream_is_told_and_waited_for(void)
{
    (void)stack_terminate(worker, 10000);
    start("fills", "one");
    wait_messages("THOLE_default_WORK", 1);
    limit_work(1);
    start("refused", "one");
    CU_ASSERT_TRUE(
        stack_logged(engine, "instance=refused *is refused with error 10077; it is tried again", 1, 5000));
    CU_ASSERT_EQUAL(messages("THOLE_default_WORK"), 1);
    worker = stack_program(&stack, "worker", "worker", NULL); /* takes the one, so that there is room */
    check_outcome("fills", "x");
    check_outcome("refused", "x");
    limit_work(-1);
}

static void test_cancelled_work_is_withdrawn(void)
{
    (void)stack_terminate(worker, 10000);
    start("withdrawn", "hold");
    wait_messages("THOLE_default_WORK", 1);
    CHECK_OK(thole_client_cancel(client, THOLE_STR("withdrawn"), THOLE_STR("no"), &stack.err), &stack.err);
    check_outcome("withdrawn", "no");
    wait_messages("THOLE_default_WORK", 0);
    worker = stack_program(&stack, "worker", "worker", NULL);
    CU_ASSERT_EQUAL(stack_count(stack.effects, "withdrawn"), 0);
}

static void wait_settled(const char *id)
{
    start(id, "one");
    check_outcome(id, "x");
    pause_ms(2500); /* positions and watermarks are saved */
}

/* The inbox's consumer from now on reports messages that never come, as if it were on a replica that keeps
 * lagging. */
static void blind_reader(const char *stream)
{
    char api[256], config[4096], request[4200];
    const char *const nothing = "thole.default.in.0.event.e.bm8";
    struct buf answer;
    buf_init(&answer, 1 << 16);
    snprintf(api, sizeof api, "$JS.API.CONSUMER.LIST.%s", stream);
    CHECK_OK(connection_request(connection, api, (thole_slice){0}, &answer, &stack.err), &stack.err);
    const char *const from = strstr(buf_cstr(&answer), "\"config\":{");
    const char *const name = from == NULL ? NULL : strstr(from, "\"name\":\"");
    CU_ASSERT_PTR_NOT_NULL_FATAL(name);
    snprintf(config, sizeof config, "%.*s", (int)strcspn(from + 10, "}"),
             from + 10); /* nothing nested but metadata */
    int const name_len = (int)strcspn(name + 8, "\"");
    snprintf(request, sizeof request, "{\"stream_name\":\"%s\",\"config\":{\"filter_subject\":\"%s\",%s}}",
             stream, nothing, config);
    snprintf(api, sizeof api, "$JS.API.CONSUMER.CREATE.%s.%.*s.%s", stream, name_len, name + 8, nothing);
    CHECK_OK(connection_request(connection, api, thole_slice_from(request), &answer, &stack.err), &stack.err);
    CU_ASSERT_PTR_NULL(strstr(buf_cstr(&answer), "\"error\""));
    if (strstr(buf_cstr(&answer), "\"error\"") != NULL)
        fprintf(stderr, "  %s\n  %s\n", request, buf_cstr(&answer));
    buf_release(&answer);
}

static void test_reader_that_stays_behind_is_replaced(void)
{
    wait_settled("before-the-blind");
    blind_reader("THOLE_default_IN_0");
    for (int i = 0; i < 20; i++) {
        char id[32];
        snprintf(id, sizeof id, "behind-the-blind-%d", i);
        start(id, "one");
        check_outcome(id, "x");
    }
    CU_ASSERT_TRUE(stack_logged(engine, "partition=0 msg=\"stream THOLE_default_IN_0 has message ", 1, 1000));
}

/* Opens the partition and is never heard of again. */
static void rival(uint32_t p, uint64_t epoch)
{
    char stream[64], subject[64], expected[24];
    struct stream_bounds bounds = {0};
    struct buf body;
    struct record const record = {.kind = RECORD_EPOCH_OPENED, .epoch = epoch, .node = THOLE_STR("rival")};
    snprintf(stream, sizeof stream, "THOLE_default_HIST_%u", p);
    snprintf(subject, sizeof subject, "thole.default.ctl.%u.epoch", p);
    CHECK_OK(stream_bounds(connection, stream, &bounds, &stack.err), &stack.err);
    snprintf(expected, sizeof expected, "%llu", (unsigned long long)bounds.last);
    buf_init(&body, 4096);
    CHECK_OK(record_encode(&record, &body), &stack.err);
    struct header const header = {"Nats-Expected-Last-Sequence", thole_slice_from(expected)};
    CHECK_OK(connection_publish(connection, subject, &header, 1, buf_bytes(&body), &stack.err), &stack.err);
    buf_release(&body);
}

/* A rival opens each partition once; the owners are idle. */
static void test_rival_that_dies_is_noticed(void)
{
    wait_settled("before-the-rival");
    size_t const before = stack_count(engine->log, "a rival opens the partition");
    for (uint32_t p = 0; p < 8; p++)
        rival(p, 1000);
    CU_ASSERT_TRUE(stack_logged(engine, "a rival opens the partition", before + 8, 5000));
    CU_ASSERT_TRUE(stack_logged(engine, "open, epoch 1001", 8, 5000));
    for (int i = 0; i < 20; i++) {
        char id[32];
        snprintf(id, sizeof id, "after-the-rival-%d", i);
        start(id, "order");
        check_outcome(id, "x,reserve,charge,ship");
    }
}

/* Messages that the next owner repeats are in the queue already. */
static void test_redone_work_is_queued_once(void)
{
    uint32_t const p = subject_partition(THOLE_STR("redone"), 8);
    (void)stack_terminate(worker, 10000);
    start("redone", "one");
    wait_messages("THOLE_default_WORK", 1);
    for (uint64_t epoch = 1500; epoch < 1540; epoch += 10) {
        char text[64];
        snprintf(text, sizeof text, "partition=%u msg=\"open, epoch %llu\"", p,
                 (unsigned long long)epoch + 1);
        rival(p, epoch);
        CU_ASSERT_TRUE(stack_logged(engine, text, 1, 5000));
    }
    CU_ASSERT_EQUAL(messages("THOLE_default_WORK"), 1);
    worker = stack_program(&stack, "worker", "worker", NULL);
    check_outcome("redone", "x");
}

/* The partition opens again all the time; the age of its row says when its activity is queued again. A
 * rival that comes just when its message is looked up delays that by one more sweep: so none comes after 3
 * seconds. */
static void test_sweep_of_a_partition_that_opens_often(void)
{
    enum { SWEEP_MS = 3000, SLACK_MS = 1500, RIVAL_MS = 900 };
    uint32_t const p = subject_partition(THOLE_STR("lost-often"), 8);
    char after[32];
    for (int i = 0; i == 0 || subject_partition(thole_slice_from(after), 8) != p; i++)
        snprintf(after, sizeof after, "after-the-lost-%d", i);
    (void)stack_terminate(worker, 10000);
    (void)stack_terminate(engine, 10000);
    engine = stack_program(&stack, "engine", "engine", "--sweep=3s", NULL);
    start("lost-often", "one");
    wait_messages("THOLE_default_WORK", 1);
    start(after, "one"); /* the partition's rows say that the messages before them are queued: no engine
                            repeats that */
    wait_messages("THOLE_default_WORK", 2);
    lose_work();
    size_t const before = stack_count(engine->log, "was lost and is queued again");
    uint64_t const began_ms = clock_monotonic_ms();
    uint64_t took_ms = 0;
    for (uint64_t epoch = 2000; took_ms < 20000; epoch += 10) {
        rival(p, epoch);
        bool const found = stack_logged(engine, "was lost and is queued again", before + 1, RIVAL_MS);
        took_ms = clock_monotonic_ms() - began_ms;
        if (found)
            break;
    }
    fprintf(stderr, "  queued again after %llu ms\n", (unsigned long long)took_ms);
    CU_ASSERT_TRUE(took_ms > SWEEP_MS / 2 && took_ms < SWEEP_MS + SLACK_MS);
    worker = stack_program(&stack, "worker", "worker", NULL);
    check_outcome("lost-often", "x");
}

/* One that fails says so, and the next one comes all the same. */
static void test_sweep_that_fails_is_tried_again(void)
{
    (void)stack_terminate(worker, 10000);
    (void)stack_sql(&stack,
                    "CREATE FUNCTION thole_default.refuse() RETURNS trigger LANGUAGE plpgsql AS "
                    "$$BEGIN IF NEW.swept_at IS DISTINCT FROM OLD.swept_at THEN RAISE EXCEPTION "
                    "'no sweep today'; END IF; RETURN NEW; END$$; CREATE TRIGGER refuse BEFORE UPDATE "
                    "ON thole_default.worker_queue FOR EACH ROW EXECUTE FUNCTION "
                    "thole_default.refuse()");
    start("lost-while-it-fails", "one");
    wait_messages("THOLE_default_WORK", 1);
    lose_work();
    size_t const opened = stack_count(engine->log, "open, epoch ");
    CU_ASSERT_TRUE(stack_logged(engine, "no sweep today", 2, 10000));
    CU_ASSERT_EQUAL(stack_count(engine->log, "open, epoch "), opened);
    CU_ASSERT_TRUE(stack_count(engine->log, "no sweep today") < 10); /* waits in between */
    (void)stack_sql(&stack, "DROP TRIGGER refuse ON thole_default.worker_queue; DROP FUNCTION "
                            "thole_default.refuse()");
    worker = stack_program(&stack, "worker", "worker", NULL);
    check_outcome("lost-while-it-fails", "x");
}

/* Postgres loses everything: the partitions notice the restart and project again what is still open. */
static void test_emptied_database_is_projected_again(void)
{
    start("outlives-the-rows", "hold");
    start("sleeps-through", "nap");
    for (int i = 0; i < 500 && stack_count(stack.effects, "outlives-the-rows") == 0; i++)
        pause_ms(10);
    PGconn *pg = PQconnectdb(stack.postgres.url);
    PGresult *result =
        PQexec(pg, "SET search_path = thole_default; BEGIN; DELETE FROM worker_queue; DELETE FROM timers; "
                   "DELETE FROM instances; DELETE FROM executions; UPDATE partitions SET projected_seq = 0; "
                   "COMMIT");
    CU_ASSERT_EQUAL(PQresultStatus(result), PGRES_COMMAND_OK);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        fprintf(stderr, "  %s\n", PQerrorMessage(pg));
    PQclear(result);
    PQfinish(pg);
    server_kill9(&stack.postgres);
    CHECK_OK(server_restart(&stack.postgres, &stack.err), &stack.err);
    check_outcome("sleeps-through", "");
    start("after-the-loss", "order");
    check_outcome("after-the-loss", "x,reserve,charge,ship");
    CHECK_OK(thole_client_cancel(client, THOLE_STR("outlives-the-rows"), THOLE_STR("enough"), &stack.err),
             &stack.err);
    check_outcome("outlives-the-rows", "enough");
    pg = PQconnectdb(stack.postgres.url);
    result =
        PQexec(pg, "SELECT (SELECT count(*) FROM thole_default.instances WHERE instance IN ('lost-work', "
                   "'before-the-rival', 'outlives-the-rows', 'after-the-loss'))");
    CHECK_STR("rows are back", PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "", "4");
    PQclear(result);
    PQfinish(pg);
}

/* Of an owner of the database, who has removed the checks: others' rows are still listed and still run. */
static void test_hostile_rows_are_skipped_and_named(void)
{
    static char out[8192];
    (void)stack_terminate(worker, 10000);
    start("beside-hostile-rows", "one");
    wait_messages("THOLE_default_WORK", 1);
    (void)stack_sql(
        &stack,
        "SET search_path = thole_default; ALTER DOMAIN code_name DROP CONSTRAINT code_name_check;"
        "ALTER DOMAIN instance_id DROP CONSTRAINT instance_id_check;"
        "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity, created_at)"
        " SELECT 'hostile-' || i, 1, 1, i % 8, 'q.' || chr(27) || '[2J>', 'a b', now() - interval '1 d'"
        " FROM generate_series(1, 3000) AS i UNION ALL"
        " SELECT repeat('x', 2000), 1, 1, 3, repeat('y', 2000), '', now() - interval '1 d';"
        "INSERT INTO instances (instance, p, orchestration, execution, status, created_ms, updated_ms, "
        "detail, turns,"
        " history_seq) SELECT i || repeat('z', 400), i, 'one', 1, 3, 9000000000000, 1, chr(27), 1, 1"
        " FROM generate_series(0, 7) AS i;"
        "INSERT INTO timers (instance, execution, timer_id, p, due_ms)"
        " SELECT i || repeat('z', 400), 1, 1, i, 1 FROM generate_series(0, 7) AS i");
    FILE *from = popen(THOLE_COMMAND " queue list 2>&1", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    out[fread(out, 1, sizeof out - 1, from)] = '\0';
    CU_ASSERT_EQUAL(pclose(from), 0);
    fprintf(stderr, "%s", out);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "\ndefault "));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(out, "3000 rows of the table worker_queue are skipped: no queue can be called \"q."));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(out, "1 rows of the table worker_queue are skipped: no queue can be called \"yyyy"));
    CU_ASSERT_PTR_NULL(strchr(out, 27));
    CU_ASSERT_TRUE(stack_logged(engine, "cannot send: queue name has byte 0x2e", 1, 5000));
    from = popen(THOLE_COMMAND " list 2>&1", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    out[fread(out, 1, sizeof out - 1, from)] = '\0';
    CU_ASSERT_EQUAL(pclose(from), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "\nbeside-hostile-rows "));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(out, "8 rows of the table instances are skipped: no instance can be called \"0zzz"));
    CU_ASSERT_PTR_NULL(strchr(out, 27));
    stack_kill9(engine);
    engine = stack_program(&stack, "engine", "engine", "--sweep=3s",
                           NULL); /* reads what waits and which timers are due */
    worker = stack_program(&stack, "worker", "worker", NULL);
    check_outcome("beside-hostile-rows", "x");
    pause_ms(3000);
    fprintf(stderr, "  %zu lines of the sweeper\n", stack_count(engine->log, "cannot send: "));
    CU_ASSERT_TRUE(stack_count(engine->log, "cannot send: ") < 60);
    (void)stack_sql(&stack, "SET search_path = thole_default; SET thole.own = 'on';"
                            "DELETE FROM worker_queue WHERE instance ~ '^(hostile|xxx)'");
}

static const struct thole_test tests[] = {
    {"lost_work_is_queued_again", test_lost_work_is_queued_again},
    {"full_stream_is_told_and_waited_for", test_full_stream_is_told_and_waited_for},
    {"cancelled_work_is_withdrawn", test_cancelled_work_is_withdrawn},
    {"reader_that_stays_behind_is_replaced", test_reader_that_stays_behind_is_replaced},
    {"rival_that_dies_is_noticed", test_rival_that_dies_is_noticed},
    {"redone_work_is_queued_once", test_redone_work_is_queued_once},
    {"sweep_of_a_partition_that_opens_often", test_sweep_of_a_partition_that_opens_often},
    {"sweep_that_fails_is_tried_again", test_sweep_that_fails_is_tried_again},
    {"hostile_rows_are_skipped_and_named", test_hostile_rows_are_skipped_and_named},
    {"emptied_database_is_projected_again", test_emptied_database_is_projected_again},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    struct connection_options const options = {
        .url = stack.nats.url, .name = "repair", .connect_timeout_ms = 2000, .request_timeout_ms = 2000};
    if (connection_open(&options, &connection, &stack.err) != THOLE_OK)
        return 1;
    engine = stack_program(&stack, "engine", "engine", "--sweep=1s", NULL);
    client = stack_client(&stack);
    worker = stack_program(&stack, "worker", "worker", NULL);
    int const failed = thole_run_suite("repair", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    connection_close(connection);
    stack_stop(&stack);
    return failed;
}
