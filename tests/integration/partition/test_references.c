/*
 * Payloads that records have twice and store once, with real servers: how many bytes that saves; whether
 * histories, rows made again, replays, audits, redactions and archives equal those without; the state from
 * which the next engine continues after a kill; and that no engine writes references while one runs that does
 * not read them.
 */
#include "connection.h"
#include "nodes.h"
#include "old_engine.h"
#include "reader.h"
#include "stack.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { WAIT_MS = 30000, LARGE = 256 * 1024, OUTPUT_BYTES = 64 * 1024 };
#define PROGRAM "program_payloads"

static struct stack stack;
static thole_client *client;
static struct connection *bare;
static struct stack_program *engine, *worker;

/* ---- the command ---- */

static void check(const char *line, int code, const char *text)
{
    static char output[OUTPUT_BYTES];
    FILE *const from = popen(line, "r");
    size_t const len = from == NULL ? 0 : fread(output, 1, sizeof output - 1, from);
    int const status = from == NULL ? -1 : pclose(from);
    output[len] = '\0';
    bool const good = WIFEXITED(status) && WEXITSTATUS(status) == code && strstr(output, text) != NULL;
    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "\n  [%s]\n    got  %d: %.2000s\n    want %d: …%s\n", line, WEXITSTATUS(status),
                output, code, text);
}

/* ---- instances ---- */

static thole_slice letters(char letter)
{
    static char bytes[26][LARGE];
    memset(bytes[letter - 'a'], letter, LARGE);
    return (thole_slice){(const uint8_t *)bytes[letter - 'a'], LARGE};
}

static void start(const char *id, const char *orchestration)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration), letters('a'),
                                NULL, &stack.err),
             &stack.err);
}

static void check_output(const char *id, char letter)
{
    thole_outcome outcome = {0};
    CHECK_OK(thole_client_wait(client, thole_slice_from(id), WAIT_MS, &outcome, &stack.err), &stack.err);
    CU_ASSERT_EQUAL(outcome.status, THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_TRUE(thole_slice_equal(outcome.output, letters(letter)));
    thole_outcome_release(&outcome);
}

struct stored {
    const char *id;
    size_t bytes;
};

static thole_status on_record(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct stored *const stored = arg;
    (void)sequence;
    stored->bytes += memmem(subject.ptr, subject.len, stored->id, strlen(stored->id)) != NULL ? body.len : 0;
    return THOLE_OK;
}

/* How many payloads its records have room for. */
static void check_payloads(const char *id, size_t want)
{
    struct stream_bounds bounds = {0};
    struct stored stored = {.id = id};
    CHECK_OK(stream_bounds(bare, "THOLE_default_HIST_0", &bounds, &stack.err), &stack.err);
    CHECK_OK(stream_read(bare, "THOLE_default_HIST_0", NULL, bounds.first, bounds.last, on_record, &stored,
                         &stack.err),
             &stack.err);
    if (stored.bytes / LARGE != want)
        fprintf(stderr, "\n  [%s] has %zu bytes in the stream\n", id, stored.bytes);
    CU_ASSERT_EQUAL(stored.bytes / LARGE, want);
    CU_ASSERT_TRUE(stored.bytes % LARGE < 16 * 1024);
}

/* Runs all orchestrations with ids that begin so. */
static void run_all(const char *prefix)
{
    static const struct {
        const char *orchestration;
        char letter; /* of its output */
    } rows[] = {{"relay", 'b'}, {"chain", 'e'}, {"saga", 'a'}};
    char id[64];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        (void)snprintf(id, sizeof id, "%s-%s", prefix, rows[i].orchestration);
        start(id, rows[i].orchestration);
        check_output(id, rows[i].letter);
    }
}

/* ---- tests ---- */

/* Started and ActivityScheduled, ActivityCompleted and Completed; a result that goes to the next activity.
 * What the records of one instance alone have is stored again: the second and the third activity of a saga.
 */
static void test_bytes(void)
{
    run_all("new");
    check_payloads("new-relay", 2);
    check_payloads("new-chain", 5);
    check_payloads("new-saga", 7);
}

static void test_old_engine(void)
{
    struct presence *const old =
        old_engine_join(bare, (struct heartbeat){.takes_results = true, .reads_ranges = true});
    CU_ASSERT_TRUE(stack_logged(engine, "node old joined", 1, 10000));
    run_all("old");
    check_payloads("old-relay", 4);
    check_payloads("old-chain", 10);
    check_payloads("old-saga", 8);
    CHECK_OK(nodes_delete(bare, "default", THOLE_STR("old"), &stack.err), &stack.err);
    presence_close(old);
    CU_ASSERT_TRUE(stack_logged(engine, "node old left", 1, 10000));
    run_all("then");
    check_payloads("then-relay", 2);
}

/* Equal histories, but for ids and times. */
static void test_histories(void)
{
    static const char *const names[] = {"relay", "chain", "saga"};
    char line[1024];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(line, sizeof line,
                       "for i in new old; do $T history $i-%s -o jsonl | "
                       "grep -oE '\"(id|ref|kind|name|data|queue)\":[^,]*' >$D/$i; done; "
                       "cmp $D/new $D/old && grep -c ActivityScheduled $D/new",
                       names[i]);
        check(line, 0, "");
    }
    check("$T show new-relay -o json | tr -cd b | wc -c | sed 's/^/bytes /'", 0, "bytes 26");
    check("$T replay --all -- $P", 0, "9 instances, 9 executions, ");
    check("$T export new-saga --to $D/replay.thole && $T replay --file $D/replay.thole -- $P", 0,
          "1 executions");
}

/* Rows have the payloads, and made again from references they are the same. */
static void test_rows(void)
{
    CU_ASSERT_EQUAL(stack_terminate(worker, WAIT_MS), 0);
    start("open-relay", "relay");
    for (int i = 0;
         i < 600 && strcmp(stack_sql(&stack, "SELECT 1 FROM thole_default.worker_queue"), "1") != 0; i++)
        pause_ms(50);
    check("$T projections verify", 0, "as their histories say");
    check("$T projections rebuild --second-schema", 0, "");
    check("$T projections verify", 0, "as their histories say");
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    (void)stack_sql(&stack, "DROP SCHEMA thole_default CASCADE");
    engine = stack_program_with(&stack, PROGRAM, "engine", "engine", "--partitions=1", "--node-ttl=3s", NULL);
    CU_ASSERT_TRUE(stack_logged(engine, "open, epoch", 2, WAIT_MS));
    check("sleep 2; $T projections verify", 0, "as their histories say");
    worker = stack_program_with(&stack, PROGRAM, "worker", "worker", NULL);
    check_output("open-relay", 'b');
    check_payloads("open-relay", 2);
}

/* An engine goes on from references that another one wrote. */
static void test_killed(void)
{
    CU_ASSERT_EQUAL(stack_terminate(worker, WAIT_MS), 0);
    start("killed-chain", "chain");
    start("killed-saga", "saga");
    for (int i = 0;
         i < 600 && strcmp(stack_sql(&stack, "SELECT count(*) FROM thole_default.worker_queue"), "2") != 0;
         i++)
        pause_ms(50);
    stack_kill9(engine);
    engine = stack_program_with(&stack, PROGRAM, "engine", "engine", "--partitions=1", "--node-ttl=3s", NULL);
    worker = stack_program_with(&stack, PROGRAM, "worker", "worker", NULL);
    check_output("killed-chain", 'e');
    check_output("killed-saga", 'a');
    check("$T replay killed-chain -- $P", 0, "1 executions");
}

static void test_audit(void)
{
    check("$T audit verify --all", 0, "whole");
    check("$T export --all --to $D/all.thole && $T audit verify --file $D/all.thole", 0, "whole");
    check("$T export --all --form jsonl --to $D/all.jsonl && $T audit verify --file $D/all.jsonl", 0,
          "whole");
    check("python3 --version >/dev/null 2>&1 || exit 0; python3 $S/proto/golden/records/record_hash.py "
          "$D/all.jsonl",
          0, "");
    check("python3 --version >/dev/null 2>&1 || exit 0; python3 $S/proto/golden/exports/read_export.py "
          "$D/all.thole "
          ">/dev/null",
          0, "");
}

/* ActivityScheduled has the payload of Started: whichever is named, both are erased, and nothing else is. */
static void test_redaction(void)
{
    check(
        "cp $D/all.thole $D/red.thole; $T audit redact new-relay --file $D/red.thole --event 2 --field input "
        "--reason 'request 4711' --actor dpo 2>&1",
        0, "redacted: event 2 of new-relay/1");
    check("$T audit redact new-relay --file $D/red.thole --event 1 --field input --reason x 2>&1", 4,
          "erased already");
    check("$T history --file $D/red.thole new-relay | grep -c redacted", 0, "2\n");
    check("$T history --file $D/red.thole new-relay | grep redacted", 0, "ActivityScheduled");
    check("$T show --file $D/red.thole new-relay -o json | cut -c-400", 0, "\"input_redacted\":true");
    check("$T audit verify --file $D/red.thole", 0, "event 2, input");
    check("$T audit redact new-chain --file $D/red.thole --all --reason x 2>&1", 0, "redacted");
    check("$T history --file $D/red.thole new-chain | grep -c redacted", 0, "10\n");
    check("$T audit verify --file $D/red.thole", 0, "whole");
}

static void test_archive(void)
{
    check("$T history new-chain -o json >$D/before.json; $T archive run --older-than 0s --unsealed --prefix "
          "new- "
          "--dir $D/arch 2>&1",
          0, "");
    check("$T show new-chain 2>&1", 3, "no instance");
    check("$T archive verify $D/arch", 0, "whole");
    check("$T archive restore $D/arch new-chain --reason 'case 4711' 2>&1", 0, "");
    check("$T history new-chain -o json >$D/after.json; cmp $D/before.json $D/after.json", 0, "");
    check("$T audit verify new-chain", 0, "whole");
    check("$T audit verify --all", 0, "whole");
    check("$T projections verify", 0, "as their histories say");
}

static const struct thole_test tests[] = {
    {"bytes", test_bytes},         {"an engine that does not read them", test_old_engine},
    {"histories", test_histories}, {"rows", test_rows},
    {"killed", test_killed},       {"audit", test_audit},
    {"redaction", test_redaction}, {"archive", test_archive},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    setenv("T", THOLE_COMMAND, 1);
    setenv("P", THOLE_TEST_PROGRAMS "/" PROGRAM, 1);
    setenv("S", THOLE_SOURCE_DIR, 1);
    setenv("D", stack.dir, 1);
    engine = stack_program_with(&stack, PROGRAM, "engine", "engine", "--partitions=1", "--node-ttl=3s", NULL);
    worker = stack_program_with(&stack, PROGRAM, "worker", "worker", NULL);
    client = stack_client(&stack);
    bare = stack_connect(&stack);
    int const failed = thole_run_suite("references", tests, ARRAY_LEN(tests));
    connection_close(bare);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
