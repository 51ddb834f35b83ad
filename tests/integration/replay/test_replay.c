/* The replay role over histories that real engines wrote: the same code, changed code, missing code, files.
 */
#include "connection.h"
#include "event.h"
#include "stack.h"
#include "subject.h"
#include "thole_cunit.h"
#include "topology.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { WAIT_MS = 20000, INSTANCES = 40 };

static struct stack stack;
static thole_client *client;
static const thole_slice nothing = {NULL, 0};

static void start(const char *id, const char *orchestration, const char *input)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(input), NULL, &stack.err),
             &stack.err);
}

static void send(const char *id, const char *event)
{
    CHECK_OK(thole_client_signal(client, thole_slice_from(id), thole_slice_from(event), THOLE_STR("x"),
                                 nothing, NULL, &stack.err),
             &stack.err);
}

static void ends(const char *id)
{
    thole_outcome outcome;
    CHECK_OK(thole_client_wait(client, thole_slice_from(id), WAIT_MS, &outcome, &stack.err), &stack.err);
    thole_outcome_release(&outcome);
}

static void test_histories(void)
{
    char id[32];
    struct stack_program *verbs = stack_program_of(&stack, "program_verbs", "verbs", "run");
    client = stack_client(&stack);
    for (int i = 0; i < INSTANCES; i++) {
        (void)snprintf(id, sizeof id, "steps-%d", i);
        start(id, "steps", "in");
    }
    start("open", "gate", "");
    start("parent", "parent", "");
    start("counter", "counter", "");
    start("versioned", "versioned", "");
    start("failing", "failing", "x");
    send("early", "go");
    send("parent-child", "go");
    for (int i = 0; i < 3; i++)
        send("counter", "add");
    for (int i = 0; i < INSTANCES; i++) {
        (void)snprintf(id, sizeof id, "steps-%d", i);
        ends(id);
    }
    ends("parent");
    ends("counter");
    ends("versioned");
    ends("failing");
    CHECK_OK(thole_client_pause(client, THOLE_STR("open"), nothing, &stack.err), &stack.err);
    CU_ASSERT_EQUAL(stack_terminate(verbs, WAIT_MS), 0); /* replay needs no engine */
}

/* The row passes when the outcome begins with the code and holds the words, in order. */
static void check(const char *line, int code, const char *first, const char *second)
{
    char want[32];
    const char *got = stack_shell(line), *at;
    (void)snprintf(want, sizeof want, "%d: ", code);
    at = strstr(got, first);
    bool const good = strncmp(got, want, strlen(want)) == 0 && at != NULL && strstr(at, second) != NULL;
    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "\n  [%s]\n    got  %s\n    want %s…%s…%s\n", line, got, want, first, second);
}

static void test_same_code(void)
{
    /* 40 steps, open, parent and its child, counter (3 executions), versioned, failing */
    check("$V replay --all", 0, "46 instances, 48 executions, ",
          "; 0 diverged, 0 unreadable, 0 without code here\n");
    check("$V replay --all --threads 1 --memory-max 1MiB", 0, "46 instances, 48 executions, ", "0 diverged");
    check("$V replay open counter", 0, "2 instances, 4 executions", "0 diverged");
    check("$V replay open nobody 2>&1", 3, "there is no instance \"nobody\"", "1 instances, 1 executions");
    check("$T replay --all -- $V", 0, "46 instances, 48 executions", "0 diverged");
    check("$T -n nowhere replay --all -- $V 2>&1", 3, "namespace nowhere", "");
}

static void test_changed_code(void)
{
    check("VERBS_CHANGED=1 $V replay steps-3", 5,
          "DIVERGED steps-3 execution 1 turn 2: event 4: history has ActivityScheduled 'echo', the code "
          "asked for "
          "ActivityScheduled 'weigh'\n  asked for at steps (",
          "1 instances, 1 executions");
    check("VERBS_CHANGED=1 $V replay steps-3", 5, "program_verbs.c:", "1 diverged");
    check("VERBS_CHANGED=1 $V replay --all", 5, "DIVERGED steps-", "; 40 diverged, 0 unreadable");
    check("VERBS_CHANGED=1 $T replay --all -- $V", 5, "DIVERGED steps-", "; 40 diverged, 0 unreadable");
    check("VERBS_CHANGED=1 $V replay open counter parent", 0, "3 instances, 5 executions", "0 diverged");
    check("PATH=/nowhere VERBS_CHANGED=1 $V replay steps-3", 5, "asked for at program_verbs+0x",
          "1 diverged");
}

static void test_missing_code(void)
{
    check("VERBS_OLD=1 $V replay --all", 0, "45 instances, 47 executions, ",
          "1 without code here (versioned)");
}

/* A program that can compare nothing must not look as if all were well. */
static void test_no_code(void)
{
    check("$T replay --all -- $C 2>&1", 11, "0 instances, 0 executions, ", "");
    check("$T replay --all -- $C 2>&1", 11, "checkout has code for none of these", "");
    check("$C replay steps-1 2>&1", 11, "1 without code here (steps)", "nothing was compared");
    check("$C replay nobody 2>&1", 3, "there is no instance \"nobody\"", "0 without code");
    check("$T replay --all -o json -- $C", 11,
          "{\"schema\":\"thole.replay.v1\",\"reports\":[{\"kind\":\"NO_CODE\",\"instance\":\"open\",",
          "\"without_code\":48,\"running_without_code\":1,\"unknown\":[\"");
    check("$T replay open -- $C 2>&1", 11,
          "NO_CODE open execution 1 turn 1: it runs, and checkout has no version 1 of orchestration gate",
          "");
    check("$T replay open -- true 2>&1", 126, "true has not said what it has replayed", "");
}

static void test_json(void)
{
    check("$V replay --all -o json 2>&1", 0,
          "{\"schema\":\"thole.replay.v1\",\"reports\":[],\"instances\":46,",
          "\"diverged\":0,\"unreadable\":0,\"without_code\":0,\"running_without_code\":0,\"unknown\":[],"
          "\"missing\":0,\"complete\":true}"
          "\n");
    check("VERBS_CHANGED=1 $T replay steps-3 nobody -o json -- $V 2>&1", 5,
          "\"reports\":[{\"kind\":\"DIVERGED\",\"instance\":\"steps-3\",\"execution\":1,\"turn\":2,\"text\":"
          "\"event 4: ",
          "{\"kind\":\"MISSING\",\"instance\":\"nobody\",\"text\":\"there is no instance");
    check("VERBS_CHANGED=1 $V replay steps-3 -o jsonl 2>&1", 5,
          "{\"schema\":\"thole.replay_report.v1\",\"kind\":\"DIVERGED\",\"instance\":\"steps-3\"",
          "\"}\n{\"schema\":\"thole.replay.v1\",\"instances\":1,");
    check("$T -n nowhere replay --all -o json -- $V 2>&1", 3,
          "{\"schema\":\"thole.error.v1\",\"error\":{\"status\":\"NOT_FOUND\",\"exit_code\":3,\"verb\":"
          "\"replay\"",
          "namespace nowhere");
    check("$V replay --file /nowhere/at/all -o json 2>&1", 3, "{\"schema\":\"thole.error.v1\"",
          "cannot read");
}

static void test_files(void)
{
    check("$T history counter --raw $D/counter && $V replay --nats nats://127.0.0.1:1 --file $D/counter", 0,
          "1 instances, 3 executions", "0 diverged");
    check("$T history steps-1 --raw - | VERBS_CHANGED=1 $V replay --file -", 5,
          "DIVERGED steps-1 execution 1 turn 2", "1 diverged");
    check("$T history steps-1 --raw $D/steps && cat $D/counter $D/steps >$D/both && $T replay --file $D/both "
          "-- $V",
          0, "2 instances, 4 executions", "0 diverged");
    check("head -c 300 $D/steps >$D/cut && $V replay --file $D/cut 2>&1", 1, "cut: a record that is cut off",
          "");
    check("grep -av '^end' $D/steps >$D/cut; $V replay --file $D/cut 2>&1", 1, "neither a record nor an end",
          "");
    check("$V replay --file /dev/null 2>&1", 1, "the file is empty", "");
    check("echo hello >$D/cut && $V replay --file $D/cut 2>&1", 1,
          "this is not what thole export or history --raw writes", "");
    check("sed 's/history 1/history 2/' $D/steps >$D/cut && $V replay --file $D/cut 2>&1", 6,
          "a history in form 2, this program knows 1", "");
    check("$V replay --file /nowhere/at/all 2>&1", 3, "cannot read /nowhere/at/all", "");
    check("$T history nobody --raw $D/nobody 2>&1; ls $D/nobody 2>&1", 2, "there is no instance", "/nobody");
}

static void test_audit(void)
{
    check("$T audit verify --all", 0, "partition 0: ", " records, whole; the last is #");
    check("$T audit verify --all -o json", 0,
          "{\"schema\":\"thole.audit.v1\",\"namespace\":\"default\",\"findings\":[],", "\"last_hash\":\"");
    check("$T audit verify counter open", 0, " counter: ", " records, whole; the last is #");
    check(
        "$T history counter --raw $D/audited && $T --nats nats://127.0.0.1:1 audit verify --file $D/audited",
        0, " counter: ", " records, whole; the last is #");
    check("sed 's/counter/kounter/g' $D/audited >$D/forged; $T audit "
          "verify --file $D/forged",
          5, "replayed    partition ", "or all were changed");
    check("$T audit verify --file /nowhere/at/all 2>&1", 3, "cannot read /nowhere/at/all", "");
    check("head -c 400 $D/audited | $T audit verify --file - 2>&1", 5, "at byte", "");
    check("$T audit verify nobody 2>&1", 3, "there is no instance \"nobody\"", "");
    check("$T audit verify 2>&1", 2, "what is to be verified? IDs, --all or --file", "");
    check("$T audit verify --all open 2>&1", 2, "what is to be verified? IDs, --all or --file", "");
    check("$T audit seal 2>&1", 2, "unknown word: seal", "verify");
}

static bool publish(struct connection *connection, const char *subject, thole_slice body)
{
    return connection_publish(connection, subject, NULL, 0, body, NULL) == THOLE_OK &&
           connection_flush(connection, NULL) == THOLE_OK;
}

static bool publish_record(struct connection *connection, const char *subject, const struct record *record)
{
    struct buf body;
    buf_init(&body, RECORD_BYTES_MAX);
    bool const done =
        record_encode(record, &body) == THOLE_OK && publish(connection, subject, buf_bytes(&body));
    buf_release(&body);
    return done;
}

static const char *subject_of(const char *id, uint64_t execution)
{
    static char text[SUBJECT_BYTES_MAX];
    struct buf subject;
    uint32_t const p = subject_partition(thole_slice_from(id), PARTITIONS_DEFAULT);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    CU_ASSERT_EQUAL(subject_history(&subject, "default", p, thole_slice_from(id), execution, NULL), THOLE_OK);
    (void)snprintf(text, sizeof text, "%s", buf_cstr(&subject));
    buf_release(&subject);
    return text;
}

/* Records that a deposed owner wrote after the newer one's EpochOpened do not count. */
static void write_void(struct connection *connection)
{
    char subject[128];
    struct event const wrong = {.kind = EVENT_COMPLETED, .id = 4, .data = THOLE_STR("wrong")};
    struct record const opened = {.kind = RECORD_EPOCH_OPENED, .epoch = 99, .node = THOLE_STR("newer")};
    struct record deposed = {.kind = RECORD_TURN, .epoch = 1, .n = 1000};
    deposed.turn = (struct turn){.instance = THOLE_STR("open"),
                                 .execution = 1,
                                 .number = 3,
                                 .ran = true,
                                 .events = &wrong,
                                 .events_len = 1};
    (void)snprintf(subject, sizeof subject, "thole.default.ctl.%u.epoch",
                   subject_partition(THOLE_STR("open"), PARTITIONS_DEFAULT));
    CU_ASSERT_TRUE(publish_record(connection, subject, &opened));
    CU_ASSERT_TRUE(publish_record(connection, subject_of("open", 1), &deposed));
}

/* A message that is no history does not stop the rest. */
static void test_damage(void)
{
    struct connection_options const options = {
        .url = stack.nats.url, .name = "damage", .connect_timeout_ms = 5000, .request_timeout_ms = 5000};
    struct connection *connection = NULL;
    CHECK_OK(connection_open(&options, &connection, &stack.err), &stack.err);
    write_void(connection);
    check("$V replay --all", 0, "46 instances, 48 executions", "0 unreadable");
    check("$V replay open", 0, "1 instances, 1 executions", "0 unreadable");
    CU_ASSERT_TRUE(publish(connection, subject_of("damaged", 1), THOLE_STR("no protobuf")));
    CU_ASSERT_TRUE(publish(connection, subject_of("a\tb", 3), THOLE_STR("")));
    check("$V replay --all", 1, "47 instances, 50 executions", "; 0 diverged, 2 unreadable");
    check("$V replay --all", 1, "UNREADABLE damaged execution 1 turn 1: record does not decode\n", "");
    check("$V replay --all", 1, "UNREADABLE a\\x09b execution 3 turn 1: record is empty\n", "");
    check("$V replay damaged", 1, "UNREADABLE damaged execution 1", "1 unreadable");
    check("$T audit verify --all", 5, "unreadable  partition ", ": it is no record");
    check("$T audit verify --all -o jsonl", 5, "{\"schema\":\"thole.audit_finding.v1\",\"fault\":\"",
          "thole.audit_log.v1");
    check("$T audit verify damaged", 5, "unreadable  partition ", "1 findings");
    connection_close(connection);
}

static const struct thole_test tests[] = {
    {"histories", test_histories},
    {"same_code", test_same_code},
    {"changed_code", test_changed_code},
    {"missing_code", test_missing_code},
    {"no_code", test_no_code},
    {"json", test_json},
    {"files", test_files},
    {"audit", test_audit},
    {"damage", test_damage},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    unsetenv("VERBS_CHANGED");
    unsetenv("VERBS_OLD");
    setenv("V", THOLE_TEST_PROGRAMS "/program_verbs", 1);
    setenv("T", THOLE_COMMAND, 1);
    setenv("C", THOLE_BUILD_DIR "/examples/checkout", 1);
    setenv("D", stack.dir, 1);
    int const failed = thole_run_suite("replay", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
