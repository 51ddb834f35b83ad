/* Malformed, hostile or missing input: a clear answer or a visible waiting state; no others are disturbed. */
#include "connection.h"
#include "stack.h"
#include "subject.h"

static struct stack stack;
static thole_client *client;

static thole_status start(const char *id, size_t len, const char *orchestration, thole_slice input)
{
    stack.err = (thole_error){0};
    return thole_client_start(client, (thole_slice){(const uint8_t *)id, len},
                              thole_slice_from(orchestration), input, NULL, &stack.err);
}

static void check_runs(const char *id)
{
    thole_instance_status status;
    CU_ASSERT_EQUAL(start(id, strlen(id), "one", THOLE_STR("x")), THOLE_OK);
    CHECK_STR(id, stack_outcome(client, id, 20000, &status), "x");
}

static char utf8_200[201], utf8_201[202];

static void test_ids(void)
{
    for (int i = 0; i < 100; i++)
        memcpy(utf8_200 + 2 * i, "\xC3\xA9", 2);
    memset(utf8_201, 'a', 201);
    static const char *const good[] = {"with space", "cr\r\nlf", "a.b.c", "*", ">",
                                       "a*b>c",      "%41",      "$JS",   "-", utf8_200};
    static const struct {
        const char *name, *id;
        size_t len;
    } bad[] = {{"empty", "", 0},
               {"201 bytes", utf8_201, 201},
               {"NUL", "a\0b", 3},
               {"no UTF-8", "\xFF\xFE", 2},
               {"overlong", "\xC0\xAF", 2},
               {"surrogate", "\xED\xA0\x80", 3}};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        check_runs(good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CU_ASSERT_EQUAL(start(bad[i].id, bad[i].len, "one", THOLE_STR("x")), THOLE_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "\" is no instance id: instance id "));
        fprintf(stderr, "  %s: %s\n", bad[i].name, stack.err.text);
    }
}

static void test_names(void)
{
    static const char *const bad[] = {"", "a b", "a.b", "*", "x\r\ny", "\xC3\xA9"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(start("names", 5, bad[i], THOLE_STR("x")), THOLE_INVALID);
}

static void test_payload_over_the_limit(void)
{
    size_t const limit = THOLE_PAYLOAD_BYTES_DEFAULT;
    uint8_t *bytes = calloc(1, limit + 1);
    CU_ASSERT_EQUAL(start("large", 5, "one", (thole_slice){bytes, limit + 1}), THOLE_LIMIT);
    fprintf(stderr, "  %s\n", stack.err.text);
    CU_ASSERT_EQUAL(start("large", 5, "one", (thole_slice){bytes, limit}), THOLE_OK);
    thole_outcome outcome = {0};
    CHECK_OK(thole_client_wait(client, THOLE_STR("large"), 20000, &outcome, &stack.err), &stack.err);
    CU_ASSERT_EQUAL(outcome.output.len, limit);
    thole_outcome_release(&outcome);
    free(bytes);
}

/* --- garbage on every subject
 * ----------------------------------------------------------------------------------- */

static const char *const garbage[] = {
    "", "x", "\x08\x01\x12\xFF\xFF\xFF\xFF\x0F", "\x0A\x05hello\x12", "{\"json\":true}", "\x08\x63\x10\x01"};

/* The # of the subject is where the partition goes. */
static void throw_garbage(struct connection *connection, const char *with, uint32_t p)
{
    char subject[128];
    const char *hash = strchr(with, '#');
    snprintf(subject, sizeof subject, "%.*s%u%s", (int)(hash - with), with, p, hash + 1);
    for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
        thole_status const status =
            connection_publish(connection, subject, NULL, 0, thole_slice_from(garbage[i]), &stack.err);
        CU_ASSERT_EQUAL(status, THOLE_OK);
    }
}

static void check_all_partitions_run(const char *round)
{
    for (int i = 0; i < 40; i++) {
        char id[64];
        snprintf(id, sizeof id, "%s-%d", round, i);
        check_runs(id);
    }
}

static void test_garbage_everywhere(void)
{
    struct connection *connection = NULL;
    struct connection_options const options = {
        .url = stack.nats.url, .name = "garbage", .connect_timeout_ms = 2000, .request_timeout_ms = 2000};
    CHECK_OK(connection_open(&options, &connection, &stack.err), &stack.err);
    static const char *const subjects[] = {"thole.default.in.#.event.one.someone",
                                           "thole.default.in.#.event.one.%zz",
                                           "thole.default.in.#.start.one.warm",
                                           "thole.default.hist.#.someone.1",
                                           "thole.default.hist.#.someone.99999999999999999999",
                                           "thole.default.ctl.#.epoch",
                                           "thole.default.ctl.#.position",
                                           "thole.default.work.default.i.1.#.1",
                                           "thole.default.work.default.#",
                                           "thole.default.cancel.someone.#",
                                           "thole.default.event.one.someone.#",
                                           "$KV.THOLE_default_NODES.node.#",
                                           "thole.default.in.#.event.one.other-partition"};
    for (size_t s = 0; s < ARRAY_LEN(subjects); s++) {
        for (uint32_t p = 0; p < 8; p++)
            throw_garbage(connection, subjects[s], p);
        CHECK_OK(connection_flush(connection, &stack.err), &stack.err);
        char round[32];
        snprintf(round, sizeof round, "after-garbage-%zu", s);
        check_all_partitions_run(round);
    }
    connection_close(connection);
}

/* ---- unknown names ---- */

struct seen {
    thole_instance_status status;
    char detail[256];
};

static thole_status see(void *arg, const thole_instance_info *info)
{
    struct seen *seen = arg;
    seen->status = info->status;
    snprintf(seen->detail, sizeof seen->detail, "%.*s", THOLE_FMT(info->detail));
    return THOLE_OK;
}

static bool becomes(const char *id, thole_instance_status want, uint64_t wait_ms, struct seen *seen)
{
    uint64_t const end = clock_monotonic_ms() + wait_ms;
    do {
        *seen = (struct seen){0};
        thole_status const status = thole_client_show(client, thole_slice_from(id), see, seen, &stack.err);
        if (status == THOLE_OK && seen->status == want)
            return true;
        pause_ms(20);
    } while (clock_monotonic_ms() < end);
    return false;
}

static void test_unknown_orchestration_waits_and_goes_on(void)
{
    struct seen seen;
    thole_instance_status status;
    struct stack_program *run = &stack.programs[0];
    CU_ASSERT_EQUAL(stack_terminate(run, 10000), 0);
    setenv("ORDERS_LACKS", "nap", 1);
    (void)stack_program(&stack, "run", "run", "--node-ttl=3s", NULL);
    CU_ASSERT_EQUAL(start("waits", 5, "nap", THOLE_STR("")), THOLE_OK);
    CU_ASSERT_TRUE(becomes("waits", THOLE_INSTANCE_WAITING, 10000, &seen));
    fprintf(stderr, "  waits: %s\n", seen.detail);
    check_all_partitions_run("beside-the-waiting");
    unsetenv("ORDERS_LACKS");
    (void)stack_program(&stack, "knows", "engine", "--node-ttl=3s", NULL);
    (void)stack_outcome(client, "waits", 20000, &status);
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_COMPLETED);
}

static void test_unknown_activity_waits_for_a_worker(void)
{
    struct seen seen;
    CU_ASSERT_EQUAL(start("nobody", 6, "lost", THOLE_STR("x")), THOLE_OK);
    CU_ASSERT_TRUE(becomes("nobody", THOLE_INSTANCE_RUNNING, 10000, &seen));
    check_all_partitions_run("beside-the-unknown");
    CHECK_OK(thole_client_cancel(client, THOLE_STR("nobody"), THOLE_STR("enough"), &stack.err), &stack.err);
    CU_ASSERT_TRUE(becomes("nobody", THOLE_INSTANCE_CANCELLED, 10000, &seen));
}

/* --- servers that are away or refuse
 * ------------------------------------------------------------------------------- */

static void test_wrong_password(void)
{
    struct stack_program *p;
    char wrong[160];
    snprintf(wrong, sizeof wrong, "--postgres=postgres://thole:Wr0ngS3cret@127.0.0.1:%u/postgres",
             stack.postgres.port);
    p = stack_program(&stack, "wrong", "engine", "--node-ttl=3s", wrong, NULL);
    int status = -1;
    for (int i = 0; i < 1000 && (status = stack_ended(p)) < 0; i++)
        pause_ms(10);
    CU_ASSERT_EQUAL(status, 6);
    CU_ASSERT_EQUAL(stack_count(p->log, "Wr0ngS3cret"), 0);
    CU_ASSERT_TRUE(stack_count(p->log, "password") > 0);
}

static void test_nats_away_at_start(void)
{
    check_runs("before-nats-went");
    CU_ASSERT_EQUAL(stack_terminate(&stack.programs[0], 10000), 0);
    server_stop(&stack.nats);
    struct stack_program *p = stack_program(&stack, "run", "run", "--node-ttl=3s", NULL);
    CU_ASSERT_TRUE(stack_logged(p, "trying again", 1, 10000));
    CHECK_OK(server_restart(&stack.nats, &stack.err), &stack.err);
    check_all_partitions_run("after-nats-came");
}

static const struct thole_test tests[] = {
    {"ids", test_ids},
    {"names", test_names},
    {"payload_over_the_limit", test_payload_over_the_limit},
    {"garbage_everywhere", test_garbage_everywhere},
    {"unknown_orchestration_waits_and_goes_on", test_unknown_orchestration_waits_and_goes_on},
    {"unknown_activity_waits_for_a_worker", test_unknown_activity_waits_for_a_worker},
    {"wrong_password", test_wrong_password},
    {"nats_away_at_start", test_nats_away_at_start},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    (void)stack_program(&stack, "run", "run", "--node-ttl=3s", "--lease=3s", NULL);
    client = stack_client(&stack);
    int const failed = thole_run_suite("bad input", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
