/* Engines that sign checkpoints of the logs that they write: killed, two at once, beside a notary; an engine
 * that is given a log that was changed signs nothing of it. */
#include "connection.h"
#include "reader.h"
#include "stack.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { WAIT_MS = 30000, INSTANCES = 10 };

static struct stack stack;
static thole_client *client;
static struct connection *connection;
static char key_file[256];

static bool says(const char *line, int code, const char *text)
{
    char want[32];
    (void)snprintf(want, sizeof want, "%d: ", code);
    const char *got = stack_shell(line);
    return strncmp(got, want, strlen(want)) == 0 && strstr(got, text) != NULL;
}

/* Waits until it says so. */
static void check(const char *line, int code, const char *text)
{
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    bool good = says(line, code, text);
    while (!good && clock_monotonic_ms() < end) {
        pause_ms(200);
        good = says(line, code, text);
    }
    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "\n  [%s]\n    got  %s\n    want %d: …%s\n", line, stack_shell(line), code, text);
}

static void run_instances(const char *prefix)
{
    stack_run_many(&stack, client, prefix, INSTANCES, WAIT_MS);
}

static struct stack_program *start_engine(const char *name, const char *every)
{
    return stack_program_with(&stack, "program_verbs", name, "run", "--partitions", "1", "--audit-key",
                              key_file, "--audit-every", every, "--test-own-all", NULL);
}

/* All that the log has is in a signed checkpoint. */
#define ALL_SIGNED                                                                                           \
    "$T audit verify --all --key $D/pub -o json | python3 -c 'import json,sys; d=json.load(sys.stdin); "     \
    "l=d[\"logs\"][0]; print(\"all\" if l[\"signed\"]==l[\"records\"]+l[\"removed\"] else l)'"

/* As a server does for who asks with such a reply subject. */
static void store_answers(void)
{
    static const char *const subjects[] = {"thole.default.audit.0.leaves", "thole.default.audit.0.checkpoint",
                                           "thole.default.audit.0.folded"};
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++)
        CHECK_OK(connection_publish(connection, subjects[i], NULL, 0,
                                    THOLE_STR("{\"stream\":\"THOLE_default_IN_0\",\"seq\":1}"), &stack.err),
                 &stack.err);
    CHECK_OK(connection_flush(connection, &stack.err), &stack.err);
}

static void test_signs(void)
{
    check("$T audit keygen engine.example.com --key $D/key >$D/pub", 0, "");
    struct stack_program *bad =
        stack_program_with(&stack, "program_verbs", "bad", "run", "--audit-key", "/nowhere/key", NULL);
    CU_ASSERT(stack_logged(bad, "--audit-key: cannot read /nowhere/key: No such file", 1, WAIT_MS));
    (void)stack_terminate(bad, WAIT_MS);
    check("chmod o+r $D/key", 0, "");
    struct stack_program *verbs = start_engine("verbs", "100ms");
    CU_ASSERT(
        stack_logged(verbs, "everybody on this machine may read a file with a key that signs", 1, WAIT_MS));
    check("chmod o-r $D/key", 0, "");
    client = stack_client(&stack);
    connection = stack_connect(&stack);
    run_instances("a");
    check(ALL_SIGNED, 0, "all");
    store_answers(); /* under its feet */
    run_instances("b");
    check(ALL_SIGNED, 0, "all");
    CU_ASSERT(stack_logged(verbs, "of the audit stream is a server's answer and is left out", 1, WAIT_MS));
    stack_kill9(verbs);
    store_answers(); /* the newest messages, when the next one opens */
    verbs = start_engine("verbs", "100ms");
    run_instances("d");
    check(ALL_SIGNED, 0, "all");
    /* records written during the stop are signed, too, long before they would be due */
    CU_ASSERT_EQUAL(stack_terminate(verbs, WAIT_MS), 0);
    verbs = start_engine("verbs", "1h");
    run_instances("c");
    CU_ASSERT_EQUAL(stack_terminate(verbs, WAIT_MS), 0);
    check(ALL_SIGNED, 0, "all");
    check("$T audit verify --all --key $D/pub", 0, "whole");
    check("$T audit verify --all --key $D/pub", 0, ", 6 messages left out that are answers of a server");
    check("$T audit verify c-3 --key $D/pub", 0, "whole");
}

/* Both want the one partition, and take it from each other; each signs what it has written. A notary with a
 * key of its own beside them. One of them is killed, again and again. */
static void test_two(void)
{
    struct stack_program *first = start_engine("first", "100ms");
    check("$T audit keygen notary.example.com --key $D/notary >$D/notary.pub", 0, "");
    for (int round = 0; round < 3; round++) {
        char prefix[16];
        struct stack_program *second = start_engine("second", "100ms");
        (void)snprintf(prefix, sizeof prefix, "d%d", round);
        run_instances(prefix);
        check("$T audit checkpoint --key $D/notary", 0, "");
        stack_kill9(round % 2 == 0 ? second : first);
        (void)snprintf(prefix, sizeof prefix, "e%d", round);
        run_instances(prefix);
        if (round % 2 == 0)
            continue;
        stack_kill9(second);
        first = start_engine("first", "100ms");
    }
    CHECK_OK(thole_client_delete(client, THOLE_STR("a-3"), NULL, NULL, &stack.err), &stack.err);
    run_instances("f");
    check(ALL_SIGNED, 0, "all");
    check("$T audit verify --all --key $D/notary.pub", 0, "whole");
    CU_ASSERT_EQUAL(stack_terminate(first, WAIT_MS), 0);
}

/* A record that nobody has signed yet is gone. (At the very end it would look like a crash.) */
static void test_refuses(void)
{
    static const char stream[] = "THOLE_default_HIST_0";
    struct stream_bounds bounds;
    struct stack_program *verbs = start_engine("refuses", "1h");
    run_instances("g");
    stack_kill9(verbs);
    CHECK_OK(stream_bounds(connection, stream, &bounds, &stack.err), &stack.err);
    CHECK_OK(stream_delete(connection, stream, bounds.last - 25, &stack.err), &stack.err);
    verbs = start_engine("refuses", "100ms");
    CU_ASSERT(stack_logged(
        verbs, "audit*is not what was written and gets no checkpoint*no deletion or pruning", 1, WAIT_MS));
    run_instances("h"); /* serves all the same */
    check("$T audit verify --all", 5, "missing ");
    CU_ASSERT_EQUAL(stack_terminate(verbs, WAIT_MS), 0);
}

static const struct thole_test tests[] = {
    {"an engine signs what it writes", test_signs},
    {"two at once, and a notary", test_two},
    {"a log that was changed", test_refuses},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    setenv("T", THOLE_COMMAND, 1);
    setenv("D", stack.dir, 1);
    (void)snprintf(key_file, sizeof key_file, "%s/key", stack.dir);
    int const failed = thole_run_suite("audit_engine", tests, ARRAY_LEN(tests));
    connection_close(connection);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
