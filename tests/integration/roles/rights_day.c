/* Actions of programs and people in a namespace in a day, each with the rights of its role. */
#include "connection.h"
#include "jscan.h"
#include "link.h"
#include "rights_stage.h"
#include <stdio.h>
#include <string.h>

#define VERBS "program_verbs"
enum { WAIT_MS = 30000 };

/* The token of the activity that waits outside. */
static char audit_key[SERVER_PATH_BYTES + 16];

static void read_token(char *ret, size_t cap)
{
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    ret[0] = '\0';
    while (ret[0] == '\0' && clock_monotonic_ms() < end) {
        FILE *file = fopen(getenv("VERBS_TOKENS"), "r");
        if (file != NULL && fgets(ret, (int)cap, file) != NULL)
            ret[strcspn(ret, "\n")] = '\0';
        if (file != NULL)
            fclose(file);
        pause_ms(50);
    }
    CU_ASSERT_NOT_EQUAL(ret[0], '\0');
}

static void orders(void)
{
    char token[512];
    rights_expect(USER_SERVICE, 0, "hello", "run steps --id s-1 --input hello --timeout 60s");
    rights_expect(USER_SERVICE, 0, "two", "run versioned --id v-1 --timeout 60s"); /* a timer */
    rights_expect(USER_SERVICE, 0, "p-1", "start parent --id p-1");
    rights_expect(USER_SERVICE, 0, "k-1", "start counter --id k-1 --event add");
    rights_expect(USER_SERVICE, 9, "card_declined", "run failing --id f-1 --timeout 60s");
    rights_expect(USER_CLIENT, 0, "o-1", "start outside --id o-1 --require-known");
    read_token(token, sizeof token);
    rights_expect(USER_SERVICE, 0, "", "complete %s done", token);
    rights_expect(USER_CLIENT, 0, "done", "wait o-1 --timeout 60s");
    rights_expect(USER_CLIENT, 0, "g-1", "start gate --id g-1 --input 2");
    rights_expect(USER_CLIENT, 0, "g-4", "start gate --id g-4 --event go");
    rights_expect(USER_CLIENT, 0, "", "signal g-1 go one");
    rights_expect(USER_CLIENT, 0, "passed", "query g-1 passed");
    rights_expect(USER_CLIENT, 0, "g-2", "start gate --id g-2");
    rights_expect(USER_CLIENT, 0, "", "cancel g-2 --reason enough");
    rights_expect(USER_CLIENT, 9, "enough", "wait g-2 --timeout 60s");
    rights_expect(USER_CLIENT, 4, "exists already", "start gate --id g-2");
    rights_expect(USER_SERVICE, 0, "2 stored",
                  "start-many <<'END'\n"
                  "{\"id\":\"m-1\",\"orchestration\":\"steps\",\"input\":\"m\"}\n"
                  "{\"id\":\"m-2\",\"orchestration\":\"steps\",\"input\":\"m\"}\n"
                  "END\n");
    rights_expect(USER_SERVICE, 0, "m", "wait m-2 --timeout 60s");
}

static void console(void)
{
    rights_expect(USER_CLIENT, 0, "g-3", "start gate --id g-3");
    rights_expect(USER_CONSOLE, 0, "", "pause g-3");
    rights_expect(USER_CONSOLE, 0, "", "resume g-3");
    rights_expect(USER_CONSOLE, 0, "g-3", "show g-3");
    rights_expect(USER_CONSOLE, 0, "Started", "history g-3");
    rights_expect(USER_CONSOLE, 0, "g-3", "list");
    rights_expect(USER_CONSOLE, 0, "", "terminate g-3 --reason why");
    rights_expect(USER_CLIENT, 9, "why", "wait g-3 --timeout 60s");
    rights_expect(USER_CONSOLE, 0, "", "delete g-3");
    rights_expect(USER_CONSOLE, 10, "", "cancel s-1");
    rights_expect(USER_CONSOLE, 0, "", "queue list");
    rights_expect(USER_CONSOLE, 0, "", "queue limit default 5");
    rights_expect(USER_CONSOLE, 0, "5", "queue limit default");
    rights_expect(USER_CONSOLE, 0, "", "queue limit default none");
    rights_expect(USER_CONSOLE, 0, "", "queue poisoned");
    rights_expect(USER_CONSOLE, 0, "", "prune k-1 --executions-before 2");
    rights_expect(USER_AUDITOR, 0, "ActivityCompleted", "history s-1");
    rights_expect(USER_AUDITOR, 0, "", "replay --all -- " THOLE_TEST_PROGRAMS "/program_verbs");
}

static void archivist(void)
{
    rights_expect(USER_SERVICE, 0, "x", "run steps --id arch-1 --input x --timeout 60s");
    rights_expect(USER_SERVICE, 0, "x", "run steps --id arch-2 --input x --timeout 60s");
    pause_ms(500); /* until the rows are there */
    rights_expect(USER_ARCHIVIST, 0, "held", "hold set arch-2 --reason why");
    rights_expect(USER_ARCHIVIST, 0, "arch-2", "hold list");
    rights_expect(USER_CONSOLE, 4, "is under legal hold", "delete arch-2");
    rights_expect(USER_ARCHIVIST, 0, "stay: they are under legal hold",
                  "archive run --older-than 0s --unsealed --prefix arch- --dir %s/arch", rights_stack.dir);
    rights_expect(USER_ARCHIVIST, 0, "arch-1", "archive list %s/arch -o name", rights_stack.dir);
    rights_expect(USER_ARCHIVIST, 0, "restored", "archive restore %s/arch arch-1", rights_stack.dir);
    rights_expect(USER_ARCHIVIST, 0, "arch-1", "archive list");
    rights_expect(USER_AUDITOR, 0, "Completed", "history arch-1");
    rights_expect(USER_AUDITOR, 0, "whole", "audit verify arch-1");
    rights_expect(USER_ARCHIVIST, 0, "accepted", "delete arch-1");
    rights_expect(USER_ARCHIVIST, 0, "released", "hold release arch-2 --reason why");
}

/* A message that nobody can take: who reads the list sees it. */
static void rejected(void)
{
    struct connection *const hand = stack_connect(&rights_stack);
    CHECK_OK(connection_publish(hand, "thole.default.in.0.start.gate.x", NULL, 0, THOLE_STR("rubbish"),
                                &rights_stack.err),
             &rights_stack.err);
    CHECK_OK(connection_flush(hand, &rights_stack.err), &rights_stack.err);
    connection_close(hand);
    pause_ms(500);
    rights_expect(USER_CONSOLE, 0, "partition", "rejected");
    rights_expect(USER_AUDITOR, 0, "partition", "rejected");
}

/* The status of an answer of the gateway. */
static unsigned ask(struct connection *client, const char *subject, const char *message)
{
    struct header const headers[] = {{"Content-Type", THOLE_STR("application/json")},
                                     {"Thole-Actor", THOLE_STR("anna")},
                                     {"Thole-Client", THOLE_STR("desk 7")}};
    struct buf answer;
    thole_slice value;
    uint64_t status = 0;
    buf_init(&answer, 64 * 1024);
    CHECK_OK(connection_request_with(client, subject, headers, 3, thole_slice_from(message), &answer,
                                     &rights_stack.err),
             &rights_stack.err);
    if (json_find(buf_bytes(&answer), "status", &value))
        CU_ASSERT_TRUE(json_uint(value, &status));
    buf_release(&answer);
    return (unsigned)status;
}

/* A worker and a client that have NATS alone, by way of a gateway. */
static void elsewhere(void)
{
    char url[RIGHTS_URL_BYTES];
    struct connection *client = NULL;
    struct stack_program *const gateway = rights_program(VERBS, USER_GATEWAY, "gw-1", NULL);
    struct stack_program *const worker = rights_program(VERBS, USER_REMOTE_WORKER, "rw-1", NULL);
    rights_expect(USER_SERVICE, 0, "far", "run steps --id far-1 --input far --timeout 60s");
    rights_nats_url(USER_REMOTE_CLIENT, url);
    struct connection_options const options = {.url = url,
                                               .inbox = rights_inbox(USER_REMOTE_CLIENT),
                                               .name = "remote client",
                                               .connect_timeout_ms = 5000,
                                               .request_timeout_ms = 30000};
    CU_ASSERT_EQUAL_FATAL(connection_open(&options, &client, &rights_stack.err), THOLE_OK);
#define CLIENT "thole.default.gateway.client."
    CU_ASSERT_EQUAL(ask(client, CLIENT "start.gate", "{\"instance\":\"far-2\"}"), THOLE_OK);
    CU_ASSERT_EQUAL(ask(client, CLIENT "query.passed", "{\"instance\":\"far-2\"}"), THOLE_OK);
    CU_ASSERT_EQUAL(ask(client, CLIENT "signal.go", "{\"instance\":\"far-2\"}"), THOLE_OK);
    CU_ASSERT_EQUAL(ask(client, CLIENT "wait", "{\"instance\":\"far-2\",\"waitMs\":20000}"), THOLE_OK);
    CU_ASSERT_EQUAL(ask(client, CLIENT "start.gate", "{\"instance\":\"far-3\"}"), THOLE_OK);
    CU_ASSERT_EQUAL(ask(client, CLIENT "cancel", "{\"instance\":\"far-3\"}"), THOLE_OK);
    CU_ASSERT_EQUAL(ask(client, CLIENT "wait", "{\"instance\":\"far-3\",\"waitMs\":20000}"), THOLE_CANCELLED);
    CU_ASSERT_EQUAL(ask(client, CLIENT "describe", "{\"instance\":\"far-3\"}"), THOLE_OK);
    CU_ASSERT_EQUAL(
        ask(client, CLIENT "start_event.gate~go", "{\"instance\":\"far-4\",\"requireKnown\":true}"),
        THOLE_OK);
    CU_ASSERT_EQUAL(ask(client, CLIENT "wait", "{\"instance\":\"far-4\",\"waitMs\":20000}"), THOLE_OK);
    CU_ASSERT_EQUAL(ask(client, CLIENT "start.gate", "{\"instance\":\"far-5\"}"), THOLE_OK);
    CU_ASSERT_EQUAL(ask(client, CLIENT "wait", "{\"instance\":\"far-5\",\"waitMs\":900,\"explain\":true}"),
                    THOLE_TIMEOUT);
    CU_ASSERT_EQUAL(ask(client, CLIENT "complete_activity", "{\"token\":\"x\"}"), THOLE_INVALID);
    connection_close(client);
    rights_expect(USER_AUDITOR, 0, "\"actor\":\"anna\",\"actor_authenticated\":false,\"client\":\"desk 7\"",
                  "history far-3 -o jsonl");
    CU_ASSERT_EQUAL(stack_count(worker->log, "serving by way of"), 1);
    CU_ASSERT_EQUAL(stack_terminate(worker, WAIT_MS), 0);
    CU_ASSERT_EQUAL(stack_terminate(gateway, WAIT_MS), 0);
}

/* An activity whose worker dies: another one gets it, from the server or from the sweeper. */
static void a_worker_dies(struct stack_program *worker)
{
    stack_kill9(worker);
    rights_expect(USER_SERVICE, 0, "s-2", "start steps --id s-2 --input late");
    (void)rights_program(VERBS, USER_WORKER, "w-2", NULL);
    rights_expect(USER_SERVICE, 0, "late", "wait s-2 --timeout 60s");
}

/* Code that crashes its engine: noted in a bucket, run apart, then Stuck. */
static void an_engine_crashes(struct stack_program *engine)
{
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    bool stuck = false;
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    (void)rights_program("program_crashes", USER_ENGINE, "c-1", "--node-ttl=2s");
    rights_expect(USER_SERVICE, 0, "c-1", "start at_once --id c-1 --input abort");
    while (!stuck && clock_monotonic_ms() < end) {
        stuck = strcmp(stack_sql(&rights_stack, "SELECT status FROM thole_default.instances WHERE instance = "
                                                "'c-1'"),
                       "3") == 0;
        pause_ms(100);
    }
    CU_ASSERT(stuck);
    rights_expect(USER_CONSOLE, 0, "SIGABRT", "show c-1");
    rights_expect(USER_CONSOLE, 0, "", "retry c-1");
    rights_expect(USER_CONSOLE, 0, "", "terminate c-1");
    rights_expect(USER_SERVICE, 9, "", "wait c-1 --timeout 60s");
}

/* Engines sign with a key of theirs from the first one on; see signs(). */
static void give_key(void)
{
    int code;
    (void)rights_shell(&code, "%s audit keygen engines --key %s/audit.key >%s/audit.pub", THOLE_COMMAND,
                       rights_stack.dir, rights_stack.dir);
    CU_ASSERT_EQUAL(code, 0);
    (void)snprintf(audit_key, sizeof audit_key, "%s/audit.key", rights_stack.dir);
    setenv("THOLE_AUDIT_KEY", audit_key, 1);
    setenv("THOLE_AUDIT_EVERY", "100ms", 1);
}

/* Signatures are seen by those who may look; and a notary signs, too. */
static void signs(void)
{
    int code;
    rights_expect(USER_AUDITOR, 0, "", "audit verify --all --key %s/audit.pub", rights_stack.dir);
    (void)rights_shell(&code, "%s audit keygen notary --key %s/notary.key >%s/notary.pub", THOLE_COMMAND,
                       rights_stack.dir, rights_stack.dir);
    CU_ASSERT_EQUAL(code, 0);
    rights_expect(USER_NOTARY, 0, "new", "audit checkpoint --key %s/notary.key", rights_stack.dir);
    rights_expect(USER_AUDITOR, 0, "", "audit verify --all --key %s/notary.pub", rights_stack.dir);
}

void rights_day(void)
{
    give_key();
    struct stack_program *const first = rights_program(VERBS, USER_ENGINE, "e-1", "--node-ttl=2s");
    thole_client_close(stack_client(&rights_stack)); /* the namespace is set up */
    elsewhere();
    struct stack_program *const worker = rights_program(VERBS, USER_WORKER, "w-1", NULL);
    orders();
    struct stack_program *const second = rights_program(VERBS, USER_ENGINE, "e-2", "--node-ttl=2s");
    CU_ASSERT_EQUAL(stack_terminate(first, WAIT_MS), 0); /* hand-over */
    rights_expect(USER_CLIENT, 0, "", "signal g-1 go two");
    rights_expect(USER_CLIENT, 0, "two", "wait g-1 --timeout 60s");
    console();
    archivist();
    rejected();
    signs();
    a_worker_dies(worker);
    struct stack_program *const third = rights_program(VERBS, USER_ENGINE, "e-3", "--node-ttl=2s");
    stack_kill9(second); /* take-over */
    rights_expect(USER_SERVICE, 0, "again", "run steps --id s-3 --input again --timeout 60s");
    an_engine_crashes(third);
    if (rights_violations() != 0)
        fprintf(stderr, "a server denied something: see nats.log (THOLE_TEST_KEEP=1 keeps it)\n");
    CU_ASSERT_EQUAL(rights_violations(), 0);
}
