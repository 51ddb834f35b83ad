/* Tries with a timeout, and what heartbeats said, across the death of workers and engines. */
#include "notice.h"
#include "stack.h"
#include "subject.h"
#include <stdatomic.h>

enum { TIMEOUT_MS = 3000, LEASE_MS = 1500, SETTLED_MS = 2500, PARTITIONS = 8, WAIT_MS = 20000 };

static struct stack stack;
static thole_client *client;
static struct connection *connection;
static struct stack_program *engine, *worker;
static char effects[160];
static atomic_uint timeout_pushes; /* for try 1 of an activity of "killed" */
static atomic_uint alive_pushes;   /* for which tries of that of "alive": bits */

static void start(const char *id, const char *orchestration, const char *activity)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(activity), NULL, &stack.err),
             &stack.err);
}

static void check_outcome(const char *id, const char *want, uint64_t wait_ms)
{
    thole_instance_status status;
    CHECK_STR(id, stack_outcome(client, id, wait_ms, &status), want);
}

/* How often an activity of the instance has been run. */
static size_t runs(const char *id)
{
    char key[64];
    snprintf(key, sizeof key, "%s.", id);
    return stack_count(effects, key);
}

static void wait_runs(const char *id, size_t least)
{
    for (int i = 0; i < 2000 && runs(id) < least; i++)
        pause_ms(5);
    CU_ASSERT_TRUE(runs(id) >= least);
}

static struct stack_program *start_worker(const char *name)
{
    return stack_program_of(&stack, "program_tries", name, "worker");
}

static struct stack_program *start_engine(void)
{
    return stack_program_of(&stack, "program_tries", "engine", "engine");
}

static void on_push(void *arg, const struct delivery *delivery)
{
    struct cancel_notice notice;
    struct arena arena;
    (void)arg;
    arena_init(&arena, 64 * 1024);
    if (cancel_notice_parse(delivery, &arena, &notice, NULL) == THOLE_OK &&
        thole_slice_equal(notice.kind, THOLE_STR("timeout")) && notice.activity_ids_len == 1 &&
        notice.activity_ids[0] == 2) {
        if (thole_slice_equal(notice.instance, THOLE_STR("killed")) && notice.try_number == 1)
            atomic_fetch_add(&timeout_pushes, 1);
        if (thole_slice_equal(notice.instance, THOLE_STR("alive")))
            atomic_fetch_or(&alive_pushes, 1u << (notice.try_number % 8));
    }
    arena_release(&arena);
}

/* Two tries take too long, the third does not; each is told how far the one before has come. */
static void test_tries_are_timed_out_by_a_worker_that_lives(void)
{
    uint64_t const from_ms = clock_monotonic_ms();
    start("told", "slow", "third"); /* for the next test */
    start("alive", "brief", "third");
    check_outcome("alive", "try 3, 2", 20000);
    CU_ASSERT_TRUE(clock_monotonic_ms() - from_ms < 5000);
    CU_ASSERT_EQUAL(runs("alive"), 3);
    CU_ASSERT_EQUAL(stack_count(effects, "alive.1.2 try 2 attempt 1: 1"), 1);
    CU_ASSERT_TRUE(stack_logged(worker, "instance=alive *path=timeout", 2, 1000));
    CHECK_STR("rows",
              stack_sql(&stack, "SELECT count(*) FROM thole_default.worker_queue WHERE instance = 'alive'"),
              "0");
    for (int i = 0; i < 2000 && atomic_load(&alive_pushes) != 6; i++)
        pause_ms(5);
    CU_ASSERT_EQUAL(atomic_load(&alive_pushes), 6); /* the first and the second: never the next one's */
}

/* From now on messages of that size at most fit into the inbox of the instance; -1: any. */
static void limit_inbox(const char *id, int bytes)
{
    char subject[96], limit[32];
    struct buf answer, wanted;
    uint32_t const p = subject_partition(thole_slice_from(id), PARTITIONS);
    buf_init(&answer, 64 * 1024);
    buf_init(&wanted, 64 * 1024);
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.THOLE_default_IN_%u", p);
    CHECK_OK(connection_request(connection, subject, THOLE_STR(""), &answer, &stack.err), &stack.err);
    const char *const info = buf_cstr(&answer), *const config = strstr(info, "\"config\":");
    const char *const field = config == NULL ? NULL : strstr(config, "\"max_msg_size\":");
    CU_ASSERT_PTR_NOT_NULL_FATAL(field);
    const char *const from = strchr(config, '{'), *to = from;
    for (int depth = 0; to == from || depth > 0; to++)
        depth += *to == '{' ? 1 : *to == '}' ? -1 : 0;
    snprintf(limit, sizeof limit, "\"max_msg_size\":%d", bytes);
    buf_append(&wanted, from, (size_t)(field - from));
    buf_text(&wanted, limit);
    const char *const rest = field + strcspn(field, ",}");
    buf_append(&wanted, rest, (size_t)(to - rest));
    snprintf(subject, sizeof subject, "$JS.API.STREAM.UPDATE.THOLE_default_IN_%u", p);
    CHECK_OK(connection_request(connection, subject, buf_bytes(&wanted), &answer, &stack.err), &stack.err);
    CU_ASSERT_PTR_NULL(strstr(buf_cstr(&answer), "\"error\""));
    buf_release(&answer);
    buf_release(&wanted);
}

/* An id of another partition than that one. */
static const char *id_elsewhere(const char *than)
{
    static char id[32];
    unsigned n = 0;
    do {
        snprintf(id, sizeof id, "refused-%u", n++);
    } while (subject_partition(thole_slice_from(id), PARTITIONS) ==
             subject_partition(thole_slice_from(than), PARTITIONS));
    return id;
}

/* A timeout that cannot be stored is tried again: the row stays as long as nobody was told. */
static void check_refused(const char *id)
{
    CU_ASSERT_TRUE(stack_logged(engine, "1 timeouts could not be stored, they are tried again", 2, WAIT_MS));
    CHECK_STR(
        "row",
        stack_sql(&stack, "SELECT count(*) FROM thole_default.worker_queue WHERE try_timeout_ms = 3000"),
        "1");
    limit_inbox(id, -1);
    check_outcome(id, "timed out", WAIT_MS);
}

/* The second try runs, and its heartbeat is in its row. */
static void wait_told(void)
{
    static const char *const said = "SELECT convert_from(details, 'UTF8') FROM thole_default.worker_queue"
                                    " WHERE instance = 'told' AND try_number = 2";
    wait_runs("told", 2);
    for (int i = 0; i < 1000 && strcmp(stack_sql(&stack, said), "2") != 0; i++)
        pause_ms(5);
    CHECK_STR("told", stack_sql(&stack, said), "2");
}

static void test_a_killed_workers_try_is_ended(void)
{
    const char *const refused = id_elsewhere("killed");
    wait_told();
    start("killed", "once", "hang");
    start(refused, "once", "hang");
    wait_runs("killed", 1);
    wait_runs(refused, 1);
    uint64_t const from_ms = clock_monotonic_ms();
    stack_kill9(worker);
    limit_inbox(refused, 1);
    check_outcome("killed", "timed out", 20000); /* while no worker is alive */
    uint64_t const took_ms = clock_monotonic_ms() - from_ms;
    fprintf(stderr, "\n  timeout %d ms, no worker: ended after %llu ms\n", TIMEOUT_MS,
            (unsigned long long)took_ms);
    CU_ASSERT_TRUE(took_ms < TIMEOUT_MS + 3000);
    CU_ASSERT_TRUE(stack_logged(engine, "1 tries are past their deadline and ended", 1, 1000));
    check_refused(refused);
    worker = start_worker("worker");
    start("after-it", "unlimited", "echo"); /* the message comes again, and finds no row */
    check_outcome("after-it", "try 1, ", 20000);
    check_outcome("told", "try 3, 2", 20000); /* the engine has ended the second try, with what it had said */
    CU_ASSERT_EQUAL(runs("told"), 3);
    pause_ms(LEASE_MS + 1000);
    CU_ASSERT_EQUAL(runs("killed"), 1);
    CU_ASSERT_EQUAL(runs(refused), 1);
    CU_ASSERT_EQUAL(atomic_load(&timeout_pushes), 1);
}

/* More than the engine ends at a time. Their instance is not there: nobody hears of them. */
static void add_overdue(const char *partition_of)
{
    char statement[512];
    snprintf(statement, sizeof statement,
             "INSERT INTO thole_default.worker_queue (instance, execution, activity_id, p, queue, activity,"
             " try_number, try_timeout_ms, worker, claimed_at, deadline_at)"
             " SELECT 'nobody', 1, g, %u, 'nowhere', 'hang', 1, 1, 'dead', now(), now()"
             " FROM generate_series(1, 600) AS g",
             subject_partition(thole_slice_from(partition_of), PARTITIONS));
    (void)stack_sql(&stack, statement);
}

static void test_a_try_ends_although_no_engine_was_there(void)
{
    start("alone", "once", "hang");
    wait_runs("alone", 1);
    pause_ms(SETTLED_MS); /* the engine that comes next knows of it from the database alone */
    stack_kill9(engine);
    stack_kill9(worker);
    add_overdue("alone");
    pause_ms(TIMEOUT_MS - SETTLED_MS + 500);
    engine = start_engine();
    check_outcome("alone", "timed out", 20000);
    for (int i = 0;
         i < 2000 && strcmp(stack_sql(&stack, "SELECT count(*) FROM thole_default.worker_queue"), "0") != 0;
         i++)
        pause_ms(10);
    CHECK_STR("rows", stack_sql(&stack, "SELECT count(*) FROM thole_default.worker_queue"), "0");
    worker = start_worker("worker");
    CU_ASSERT_EQUAL(runs("alone"), 1);
}

/* A worker that finds the deadline passed says so, and does not run the handler again. */
static void test_a_claim_after_the_deadline_runs_nothing(void)
{
    start("too-late", "once", "hang");
    wait_runs("too-late", 1);
    pause_ms(SETTLED_MS); /* or the engine that comes next projects the row again, and it runs once more */
    stack_kill9(engine);
    stack_kill9(worker);
    pause_ms(TIMEOUT_MS - SETTLED_MS + 500);
    worker = start_worker("late-worker");
    CU_ASSERT_TRUE(stack_logged(worker, "instance=too-late *its deadline has passed", 1, 15000));
    for (int i = 0;
         i < 1000 && strcmp(stack_sql(&stack, "SELECT count(*) FROM thole_default.worker_queue"), "0") != 0;
         i++)
        pause_ms(10); /* has said so, and does it now */
    CHECK_STR("rows", stack_sql(&stack, "SELECT count(*) FROM thole_default.worker_queue"), "0");
    engine = start_engine();
    check_outcome("too-late", "timed out", 20000);
    CU_ASSERT_EQUAL(runs("too-late"), 1);
}

static void test_details_survive_a_killed_worker(void)
{
    start("pages", "unlimited", "pages");
    wait_runs("pages", 1);
    for (int i = 0;
         i < 1000 && strcmp(stack_sql(&stack, "SELECT convert_from(details, 'UTF8') FROM "
                                              "thole_default.worker_queue WHERE instance = 'pages'"),
                            "page 17") != 0;
         i++)
        pause_ms(10);
    stack_kill9(worker);
    worker = start_worker("worker");
    check_outcome("pages", "try 1, page 17", 20000);
    CU_ASSERT_EQUAL(stack_count(effects, "pages.1.2 try 1 attempt 2: page 17"), 1);
}

/* Nobody completes it, and no worker holds it: its deadline does. */
static void test_what_is_left_to_others_times_out(void)
{
    start("left", "once", "later");
    wait_runs("left", 1);
    for (int i = 0;
         i < 500 && strcmp(stack_sql(&stack, "SELECT later FROM thole_default.worker_queue"), "t") != 0; i++)
        pause_ms(10);
    check_outcome("left", "timed out", 20000);
    CU_ASSERT_EQUAL(runs("left"), 1);
}

/* When each connection of thole last began a query; equal before and after = no query in between. */
static void last_queries(char *to, size_t cap)
{
    snprintf(to, cap, "%s",
             stack_sql(
                 &stack,
                 "SELECT string_agg(pid || ' ' || query_start::text, ' ' ORDER BY pid) FROM pg_stat_activity "
                 "WHERE application_name LIKE 'thole%'"));
}

static void test_no_deadline_no_query(void)
{
    char before[512], after[512];
    start("quiet", "brief", "echo");
    check_outcome("quiet", "try 1, ", 20000);
    pause_ms(SETTLED_MS); /* the deadline that could have been is over; positions are saved */
    /* An engine looks at the rows of its partitions each 5 s: within one of these pauses it does not. */
    for (int i = 0; i < 4 && (i == 0 || strcmp(after, before) != 0); i++) {
        last_queries(before, sizeof before);
        pause_ms(SETTLED_MS);
        last_queries(after, sizeof after);
    }
    CU_ASSERT_TRUE(strlen(before) > 0);
    CHECK_STR("queries", after, before);
}

static const struct thole_test tests[] = {
    {"tries are timed out by a worker that lives", test_tries_are_timed_out_by_a_worker_that_lives},
    {"a killed worker's try is ended", test_a_killed_workers_try_is_ended},
    {"a try ends although no engine was there", test_a_try_ends_although_no_engine_was_there},
    {"expired_deadline_found_before_re_execution", test_a_claim_after_the_deadline_runs_nothing},
    {"details survive a killed worker", test_details_survive_a_killed_worker},
    {"what is left to others times out", test_what_is_left_to_others_times_out},
    {"no deadline, no query", test_no_deadline_no_query},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    snprintf(effects, sizeof effects, "%s/tries", stack.dir);
    setenv("TRIES_EFFECTS", effects, 1);
    setenv("THOLE_LEASE", "1500ms", 1);
    setenv("THOLE_NODE_TTL", "2s", 1); /* engines are killed, and the next one takes over */
    struct connection_options const options = {
        .url = stack.nats.url, .name = "deadlines", .connect_timeout_ms = 5000, .request_timeout_ms = 5000};
    if (connection_open(&options, &connection, &stack.err) != THOLE_OK)
        return 1;
    struct subscription *pushes = NULL;
    if (connection_subscribe(connection, "thole.default.cancel.>", on_push, NULL, &pushes, &stack.err) !=
            THOLE_OK ||
        connection_flush(connection, &stack.err) != THOLE_OK)
        return 1;
    engine = start_engine();
    client = stack_client(&stack);
    worker = start_worker("worker");
    int const failed = thole_run_suite("deadlines", tests, ARRAY_LEN(tests));
    subscription_close(pushes);
    thole_client_close(client);
    connection_close(connection);
    stack_stop(&stack);
    return failed;
}
