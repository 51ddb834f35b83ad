/* Between the acknowledgement of a start and its first turn: no engine runs, each verb finds the instance,
 * and the engine that comes does all that was asked for. */
#include "link.h"
#include "stack.h"
#include "thole_cunit.h"
#include <inttypes.h>
#include <string.h>

enum { WAIT_MS = 20000, PARTITIONS = 8, ANSWER_BYTES = 64 * 1024 };

static struct stack stack;
static struct stack_program *engine;
static thole_client *client;
static struct connection *connection;
static const thole_slice nothing = {NULL, 0};

static void check(const char *row, const char *got, const char *want)
{
    CHECK_STR(row, got, want);
}

#define CHECK_STATUS(got, want) check(#got, thole_status_name(got), thole_status_name(want))

static const char *const ids[] = {"waits",     "cancelled", "terminated", "paused",
                                  "signalled", "forced",    "by-gateway", "retried"};

struct source {
    size_t next;
};

static thole_status give_start(void *arg, thole_start_item *ret, thole_error *reterr)
{
    struct source *const source = arg;
    (void)reterr;
    if (source->next == ARRAY_LEN(ids))
        return THOLE_NOT_FOUND;
    ret->instance = thole_slice_from(ids[source->next++]);
    ret->orchestration = THOLE_STR("gate");
    return THOLE_OK;
}

static thole_status take_answer(void *arg, uint64_t token, thole_slice instance, const thole_error *error)
{
    (void)arg, (void)token, (void)instance;
    CHECK_STATUS(error->status, THOLE_OK);
    return THOLE_OK;
}

static const char *shell(const char *arguments, int *ret_code)
{
    static char text[ANSWER_BYTES];
    char command[512];
    (void)snprintf(command, sizeof command, THOLE_COMMAND " %s 2>&1", arguments);
    FILE *from = popen(command, "r");
    size_t const n = from == NULL ? 0 : fread(text, 1, sizeof text - 1, from);
    text[n] = '\0';
    int const code = from == NULL ? -1 : pclose(from);
    if (ret_code != NULL)
        *ret_code = code < 0 ? code : code / 256;
    return text;
}

static void says(const char *arguments, int code, const char *part)
{
    int ended = 0;
    const char *const text = shell(arguments, &ended);
    CU_ASSERT_EQUAL(ended, code);
    if (ended != code || strstr(text, part) == NULL)
        check(arguments, text, part);
}

static thole_slice id(const char *from)
{
    return thole_slice_from(from);
}

/* Of a deleted instance, and of one that never was. */
static void nobody(const char *name)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    CHECK_STATUS(thole_client_wait(client, id(name), 0, &outcome, &stack.err), THOLE_NOT_FOUND);
    CHECK_STATUS(thole_client_cancel(client, id(name), nothing, &stack.err), THOLE_NOT_FOUND);
    CHECK_STATUS(thole_client_pause(client, id(name), nothing, &stack.err), THOLE_NOT_FOUND);
    CHECK_STATUS(thole_client_delete(client, id(name), NULL, NULL, &stack.err), THOLE_NOT_FOUND);
    check(name, stack_history(client, name), "NOT_FOUND");
}

static void test_nobody(void)
{
    nobody("old");
    nobody("nobody");
}

static void test_verbs(void)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_delete_options const force = {.size = sizeof force, .force = true};
    bool kept = true, accepted = true;
    CHECK_STATUS(thole_client_wait(client, id("waits"), 100, &outcome, &stack.err), THOLE_TIMEOUT);
    check("history", stack_history(client, "waits"), "");
    CHECK_STATUS(thole_client_cancel(client, id("cancelled"), THOLE_STR("too late"), &stack.err), THOLE_OK);
    CHECK_STATUS(thole_client_terminate(client, id("terminated"), nothing, &stack.err), THOLE_OK);
    CHECK_STATUS(thole_client_pause(client, id("paused"), nothing, &stack.err), THOLE_OK);
    CHECK_STATUS(thole_client_signal(client, id("signalled"), THOLE_STR("go"), THOLE_STR("on"), nothing,
                                     &kept, &stack.err),
                 THOLE_OK);
    CU_ASSERT_FALSE(kept);
    CHECK_STATUS(thole_client_retry(client, id("retried"), nothing, &stack.err), THOLE_OK);
    CHECK_STATUS(thole_client_prune(client, id("retried"), 1, nothing, &stack.err), THOLE_OK);
    CHECK_STATUS(thole_client_resume(client, id("retried"), nothing, &stack.err), THOLE_OK);
    CHECK_STATUS(thole_client_delete(client, id("forced"), NULL, NULL, &stack.err), THOLE_CONFLICT);
    CHECK_STATUS(thole_client_delete(client, id("forced"), &force, &accepted, &stack.err), THOLE_OK);
    CU_ASSERT_FALSE(accepted);
}

static void test_command(void)
{
    says("show waits", 0, "Pending");
    says("show waits", 0, "no engine runs");
    says("show waits -o json", 0, "\"status\":\"Pending\"");
    says("history waits", 0, "no engine has taken it yet");
    says("history waits -o json", 0, "\"events\":[]");
    says("wait waits --timeout 100ms", 8, "no engine has taken it yet");
    says("pause waits", 0, "");
    says("resume waits", 0, "");
    says("prune waits --executions-before 2", 0, "");
    says("show nobody", 3, "no instance");
}

static void ask_gateway(const char *operation, const char *body, const char *want)
{
    char subject[128];
    struct header const json = {"Content-Type", THOLE_STR("application/json")};
    struct buf answer;
    buf_init(&answer, ANSWER_BYTES);
    (void)snprintf(subject, sizeof subject, "thole.default.gateway.client.%s", operation);
    CHECK_OK(
        connection_request_with(connection, subject, &json, 1, thole_slice_from(body), &answer, &stack.err),
        &stack.err);
    if (strstr(buf_cstr(&answer), want) == NULL)
        check(operation, buf_cstr(&answer), want);
    buf_release(&answer);
}

/* As each client's language asks it. */
static void test_gateway(void)
{
    struct stack_program *const gateway = stack_program_of(&stack, "program_verbs", "gateway", "gateway");
    CU_ASSERT_TRUE(stack_logged(gateway, "serves", 1, WAIT_MS));
    ask_gateway("wait", "{\"instance\":\"by-gateway\",\"waitMs\":\"50\"}", "no engine has taken it yet");
    ask_gateway("wait", "{\"instance\":\"nobody\",\"waitMs\":\"50\"}", "there is no instance");
    ask_gateway("cancel", "{\"instance\":\"nobody\"}", "there is no instance");
    ask_gateway("cancel", "{\"instance\":\"by-gateway\",\"reason\":\"over\"}", "{}");
    CU_ASSERT_EQUAL(stack_terminate(gateway, WAIT_MS), 0);
}

static const char *end_of(const char *name)
{
    static char text[256];
    thole_instance_status status = THOLE_INSTANCE_UNKNOWN;
    const char *const outcome = stack_outcome(client, name, WAIT_MS, &status);
    (void)snprintf(text, sizeof text, "%s <%s>", thole_instance_status_name(status), outcome);
    return text;
}

static void show_becomes(const char *name, const char *want)
{
    char command[64];
    (void)snprintf(command, sizeof command, "show %s", name);
    for (int i = 0; i < 200 && strstr(shell(command, NULL), want) == NULL; i++)
        pause_ms(50);
    says(command, 0, want);
}

static void test_engine_comes(void)
{
    engine = stack_program_of(&stack, "program_verbs", "verbs", "run");
    check("cancelled", end_of("cancelled"), "Cancelled <too late>");
    check("terminated", end_of("terminated"), "Terminated <>");
    check("signalled", end_of("signalled"), "Completed <on>");
    check("by the gateway", end_of("by-gateway"), "Cancelled <over>");
    show_becomes("paused", "Paused");
    show_becomes("waits", "Running");
    show_becomes("retried", "Running");
    for (int i = 0; i < 1000 && strcmp(stack_history(client, "forced"), "NOT_FOUND") != 0; i++)
        pause_ms(20);
    nobody("forced");
    nobody("old");
}

/* An instance that was deleted: its messages may still stand in the inbox. */
static void delete_old(void)
{
    thole_delete_options const force = {.size = sizeof force, .force = true};
    thole_start_options const request = {.size = sizeof request, .request_id = THOLE_STR("r-old")};
    bool done = false;
    CHECK_STATUS(
        thole_client_start_with(client, id("old"), THOLE_STR("gate"), nothing, &request, NULL, &stack.err),
        THOLE_OK);
    CHECK_STATUS(thole_client_delete(client, id("old"), &force, &done, &stack.err), THOLE_OK);
    CU_ASSERT_TRUE(done);
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
}

static void test_begin(void)
{
    struct source source = {0};
    delete_old();
    CHECK_STATUS(thole_client_start_many(client, give_start, take_answer, &source, &stack.err), THOLE_OK);
}

static const struct thole_test tests[] = {
    {"begin", test_begin},     {"nobody", test_nobody},   {"verbs", test_verbs},
    {"command", test_command}, {"gateway", test_gateway}, {"an engine comes", test_engine_comes},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    unsetenv("VERBS_CHANGED");
    engine = stack_program_of(&stack, "program_verbs", "first", "run");
    client = stack_client(&stack);
    connection = stack_connect(&stack);
    (void)stack_logged(engine, "open, epoch", PARTITIONS, WAIT_MS);
    int const failed = thole_run_suite("before_first_turn", tests, ARRAY_LEN(tests));
    connection_close(connection);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
