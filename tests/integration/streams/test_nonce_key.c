/* The key by which results of activities are recognised: written once, whoever writes; stored again by
 * engines that know it, when it is removed while they run, also with kill -9 in between. */
#include "connection.h"
#include "jscan.h"
#include "link.h"
#include "stack.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "$KV.THOLE_default_SECRET.nonces"
#define BUCKET "KV_THOLE_default_SECRET"
enum {
    WAIT_MS = 30000,
    WORK_MS = 4000,
    STORED_MS = 500,
    SAVED_MS = 2500 /* then the rows are saved, and not made from the log again */,
    KEY_BYTES = 400
};

static struct stack stack;
static thole_client *client;
static struct connection *connection;
static struct stack_program *engine;
static char key[KEY_BYTES]; /* as the server answers it, in base64; empty: none */

static void ask(const char *subject, const struct header *header, const char *body, struct buf *ret)
{
    CHECK_OK(connection_request_with(connection, subject, header, header == NULL ? 0 : 1,
                                     thole_slice_from(body), ret, &stack.err),
             &stack.err);
}

static void read_key(char ret[KEY_BYTES])
{
    struct buf answer;
    thole_slice data;
    buf_init(&answer, 1 << 20);
    ask("$JS.API.STREAM.MSG.GET." BUCKET, NULL, "{\"last_by_subj\":\"" KEY "\"}", &answer);
    bool const there = json_path(buf_bytes(&answer), "message.data", &data);
    (void)snprintf(ret, KEY_BYTES, "%.*s", there ? (int)data.len : 0, there ? (const char *)data.ptr : "");
    buf_release(&answer);
}

static void check_key(const char *when)
{
    char now[KEY_BYTES];
    read_key(now);
    CHECK_STR(when, now, key);
}

static void until_key(void)
{
    char now[KEY_BYTES] = "";
    uint64_t const end = now_us() + (uint64_t)WAIT_MS * 1000;
    while (now[0] == '\0' && now_us() < end) {
        pause_ms(50);
        read_key(now);
    }
    CHECK_STR("stored again", now, key);
}

static void run_order(const char *id)
{
    thole_instance_status status;
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("x"), NULL,
                                &stack.err),
             &stack.err);
    CHECK_STR(id, stack_outcome(client, id, WAIT_MS, &status), "x,reserve,charge,ship");
}

static void test_written_once(void)
{
    static const struct header rollup = {"Nats-Rollup", THOLE_STR_INIT("sub")},
                               removed = {"KV-Operation", THOLE_STR_INIT("DEL")};
    const struct header *const headers[] = {NULL, &rollup, &removed};
    struct buf answer;
    stack_start(&stack);
    engine = stack_program_with(&stack, "program_orders", "first", "run", "--partitions", "2", NULL);
    client = stack_client(&stack);
    connection = stack_connect(&stack);
    run_order("a");
    read_key(key);
    CU_ASSERT(key[0] != '\0');
    buf_init(&answer, 1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        ask(KEY, headers[i], "junk", &answer);
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&answer), "\"error\""));
        check_key("as it was");
    }
    /* Of the account of the streams: the server's own answer. */
    CHECK_OK(connection_publish_asking(connection, "$JS.API.INFO", KEY, NULL, 0, THOLE_STR(""), &stack.err),
             &stack.err);
    pause_ms(STORED_MS);
    check_key("not an answer");
    buf_release(&answer);
}

/* Activities are under way, of which the results come after all of it. */
static void test_removed_with_kill9(void)
{
    static const char *const ways[] = {"$JS.API.STREAM.PURGE." BUCKET, "$JS.API.STREAM.DELETE." BUCKET};
    struct buf answer;
    buf_init(&answer, 1 << 20);
    setenv("ORDERS_WORK_MS", "4000", 1);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        char name[32], id[32];
        thole_instance_status status;
        (void)snprintf(name, sizeof name, "second-%zu", i);
        struct stack_program *const second =
            stack_program_with(&stack, "program_orders", name, "run", "--partitions", "2", NULL);
        CU_ASSERT(stack_logged(second, "joined", 1, WAIT_MS));
        (void)snprintf(id, sizeof id, "open-%zu", i);
        CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("x"), NULL,
                                    &stack.err),
                 &stack.err);
        pause_ms(WORK_MS / 4);
        ask(ways[i], NULL, "", &answer);
        CU_ASSERT_PTR_NULL(strstr(buf_cstr(&answer), "\"error\""));
        stack_kill9(engine);
        until_key();
        engine = second;
        CU_ASSERT(stack_logged(engine, "the key of nonces was gone and is stored again", 1, WAIT_MS));
        CHECK_STR(id, stack_outcome(client, id, 4 * WAIT_MS, &status), "x,reserve,charge,ship");
        CU_ASSERT_EQUAL(stack_count(engine->log, "its nonce is another one"), 0);
    }
    buf_release(&answer);
    unsetenv("ORDERS_WORK_MS");
}

/* The identity that recover names, or an empty text. */
static void read_identity(char ret[64])
{
    const char *const said = stack_shell(THOLE_COMMAND " recover 2>&1 || true");
    const char *const at = strstr(said, "--accept-loss ");
    ret[0] = '\0';
    if (at != NULL)
        (void)sscanf(at, "--accept-loss %63[0-9a-f-]", ret);
}

/* Engines refuse, and name the way. */
static void lose_key(void)
{
    char identity[64], line[300], before[KEY_BYTES];
    struct buf answer;
    buf_init(&answer, 1 << 20);
    stack_kill9(engine);
    ask("$JS.API.STREAM.PURGE." BUCKET, NULL, "", &answer);
    engine = stack_program_with(&stack, "program_orders", "refused", "engine", "--partitions", "2", NULL);
    CU_ASSERT(stack_logged(engine, "NATS lacks the key in bucket THOLE_default_SECRET", 1, WAIT_MS));
    CU_ASSERT(stack_logged(engine, "thole recover", 1, WAIT_MS));
    stack_kill9(engine);
    read_identity(identity);
    (void)snprintf(line, sizeof line,
                   THOLE_COMMAND " recover --accept-loss %s --reason 'the key is lost' 2>&1", identity);
    const char *const said = stack_shell(line);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "engines may be started"));
    (void)snprintf(before, sizeof before, "%s", key);
    read_key(key);
    CU_ASSERT(key[0] != '\0');
    CU_ASSERT(strcmp(key, before) != 0);
    buf_release(&answer);
}

/* With the engine its worker has died, so the activity that it had is run again, under the new key. */
static void test_lost_with_all_engines_down(void)
{
    thole_instance_status status;
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    setenv("ORDERS_WORK_MS", "4000", 1);
    engine = stack_program_with(&stack, "program_orders", "fourth", "run", "--partitions", "2", NULL);
    unsetenv("ORDERS_WORK_MS");
    CU_ASSERT(stack_logged(engine, "joined", 1, WAIT_MS));
    CHECK_OK(
        thole_client_start(client, THOLE_STR("lost"), THOLE_STR("order"), THOLE_STR("x"), NULL, &stack.err),
        &stack.err);
    pause_ms(WORK_MS / 4);
    lose_key();
    engine = stack_program_with(&stack, "program_orders", "fifth", "run", "--partitions", "2", NULL);
    CU_ASSERT(stack_logged(engine, "joined", 1, WAIT_MS));
    CHECK_STR("lost", stack_outcome(client, "lost", 4 * WAIT_MS, &status), "x,reserve,charge,ship");
}

/* The worker has stored its result and removed its row. */
static void until_no_row(const char *id)
{
    uint64_t const end = now_us() + (uint64_t)WAIT_MS * 1000;
    char sql[120];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM thole_default.worker_queue WHERE instance = '%s'",
                   id);
    while (strcmp(stack_sql(&stack, sql), "0") != 0 && now_us() < end)
        pause_ms(50);
    CHECK_STR("rows", stack_sql(&stack, sql), "0");
}

/* With no engine running somebody stores another key, from a backup of another time for instance. */
static void replace_key(void)
{
    struct buf answer;
    buf_init(&answer, 1 << 20);
    ask("$JS.API.STREAM.PURGE." BUCKET, NULL, "", &answer);
    ask(KEY, NULL, "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", &answer);
    CU_ASSERT_PTR_NULL(strstr(buf_cstr(&answer), "\"error\""));
    read_key(key);
    buf_release(&answer);
}

/* The activity's worker goes on, and no engine takes its result: its result is stored before the key is
 * another one; or it ends after the next engine has opened the partition; or its renewal comes first. The
 * activity is run again, by another worker. */
static void test_worker_outlives(void)
{
    static const struct {
        const char *id, *work_ms;
        const char *says; /* the worker; NULL: it has ended before */
    } rows[] = {{"ends-before", "4000", NULL},
                {"ends-after", "7000", "result refused, another worker has taken it over"},
                {"is-renewed", "20000", "path=lease_lost"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char name[32];
        thole_instance_status status;
        CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
        (void)snprintf(name, sizeof name, "engine-%zu", i);
        engine = stack_program_with(&stack, "program_orders", name, "engine", "--partitions", "2", NULL);
        setenv("ORDERS_WORK_MS", rows[i].work_ms, 1);
        (void)snprintf(name, sizeof name, "slow-%zu", i);
        struct stack_program *const slow = stack_program_of(&stack, "program_orders", name, "worker");
        unsetenv("ORDERS_WORK_MS");
        CU_ASSERT(stack_logged(slow, "msg=serving", 1, WAIT_MS));
        CU_ASSERT(stack_logged(engine, "joined", 1, WAIT_MS));
        CHECK_OK(thole_client_start(client, thole_slice_from(rows[i].id), THOLE_STR("order"), THOLE_STR("x"),
                                    NULL, &stack.err),
                 &stack.err);
        pause_ms(SAVED_MS);
        if (rows[i].says == NULL) {
            stack_kill9(engine);
            until_no_row(rows[i].id);
            replace_key();
        } else {
            lose_key();
        }
        (void)snprintf(name, sizeof name, "next-%zu", i);
        engine = stack_program_with(&stack, "program_orders", name, "engine", "--partitions", "2", "--sweep",
                                    "5s", NULL);
        if (rows[i].says == NULL) {
            CU_ASSERT(stack_logged(engine, "signed with another key of nonces", 2, WAIT_MS));
            CU_ASSERT(stack_logged(engine, "its nonce is another one", 1, WAIT_MS));
        } else {
            CU_ASSERT(stack_logged(slow, rows[i].says, 1, WAIT_MS));
            CU_ASSERT_EQUAL(stack_count(engine->log, "signed with another key"),
                            0); /* recover removed them */
        }
        CU_ASSERT_EQUAL(stack_terminate(slow, WAIT_MS), 0);
        (void)snprintf(name, sizeof name, "fast-%zu", i);
        struct stack_program *const fast = stack_program_of(&stack, "program_orders", name, "worker");
        CHECK_STR(rows[i].id, stack_outcome(client, rows[i].id, 2 * WAIT_MS, &status),
                  "x,reserve,charge,ship");
        CU_ASSERT_EQUAL(stack_terminate(fast, WAIT_MS), 0);
    }
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    engine = stack_program_with(&stack, "program_orders", "sixth", "run", "--partitions", "2", NULL);
    CU_ASSERT(stack_logged(engine, "joined", 1, WAIT_MS));
}

/* As an earlier version has made it: it works, and doctor puts it right. */
static void test_of_an_earlier_version(void)
{
    const char *const update =
        "{\"name\":\"" BUCKET
        "\",\"subjects\":[\"$KV.THOLE_default_SECRET.>\"],\"retention\":\"limits\",\"storage\":"
        "\"file\",\"discard\":\"new\",\"num_replicas\":1,\"max_msgs_per_subject\":1,\"duplicate_window\":"
        "120000000000,\"allow_direct\":true,\"allow_rollup_hdrs\":true,\"deny_delete\":true}";
    struct buf answer;
    buf_init(&answer, 1 << 20);
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    ask("$JS.API.STREAM.UPDATE." BUCKET, NULL, update, &answer);
    CU_ASSERT_PTR_NULL(strstr(buf_cstr(&answer), "\"error\""));
    engine = stack_program_with(&stack, "program_orders", "third", "run", "--partitions", "2", NULL);
    run_order("b");
    const char *said = stack_shell(THOLE_COMMAND " doctor 2>&1 || true");
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "WARN  defect           stream " BUCKET
                                        " has discard_new_per_subject false, but true is needed"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "--fix, when all engines are of this version"));
    (void)stack_shell(THOLE_COMMAND " doctor --fix 2>&1 || true");
    ask("$JS.API.STREAM.INFO." BUCKET, NULL, "", &answer);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&answer), "\"discard_new_per_subject\":true"));
    check_key("put right");
    run_order("c");
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    buf_release(&answer);
    connection_close(connection);
    thole_client_close(client);
    stack_stop(&stack);
}

static const struct thole_test tests[] = {{"written once", test_written_once},
                                          {"removed with kill -9", test_removed_with_kill9},
                                          {"lost with all engines down", test_lost_with_all_engines_down},
                                          {"its worker outlives the engines", test_worker_outlives},
                                          {"of an earlier version", test_of_an_earlier_version}};

THOLE_INTEGRATION_MAIN("nonce_key", tests)
