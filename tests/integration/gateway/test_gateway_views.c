/* A client without a database and its requests through a gateway, with engines as processes: instances that
 * do not go on, lists, starts with an event, activities that are completed later. */
#include "json_answer.h"
#include "link.h"
#include "stack.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 20000, ANSWER_BYTES = 1 << 20 };

static struct stack stack;
static struct stack_program *engine, *gateway;
static thole_client *client;
static struct connection *connection;

static void same(const char *what, const char *got, const char *want)
{
    CHECK_STR(what, got, want);
}

/* The answer, until the next call. */
static const char *ask_at(const char *subject, const char *header, const char *body)
{
    static struct buf answer;
    struct header const json = {header, THOLE_STR("application/json; charset=utf-8")};
    buf_release(&answer);
    buf_init(&answer, ANSWER_BYTES);
    CHECK_OK(connection_request_with(connection, subject, &json, header == NULL ? 0 : 1,
                                     thole_slice_from(body), &answer, &stack.err),
             &stack.err);
    return buf_cstr(&answer);
}

static const char *ask(const char *operation, const char *body)
{
    char subject[160];
    (void)snprintf(subject, sizeof subject, "thole.default.gateway.client.%s", operation);
    return ask_at(subject, "content-type", body);
}

/* By an answer's status and a part of it. */
static void says(const char *operation, const char *body, const char *status, const char *part)
{
    const char *const answer = ask(operation, body);
    same(operation, answer_at(answer, "status"), status);
    if (strstr(answer, part) == NULL)
        same(operation, answer, part);
}

/* Asks until the answer has it. */
static void becomes(const char *operation, const char *body, const char *part)
{
    uint64_t const until_ms = clock_monotonic_ms() + WAIT_MS;
    while (strstr(ask(operation, body), part) == NULL && clock_monotonic_ms() < until_ms)
        pause_ms(100);
    const char *const answer = ask(operation, body);
    if (strstr(answer, part) == NULL)
        same(operation, answer, part);
}

/* ---- instances that do not go on ---- */

static void test_no_worker(void)
{
    becomes("start.steps", "{\"instance\":\"s\",\"requireKnown\":true,\"requestId\":\"r\"}",
            "{\"instance\":\"s\"}"); /* the engine's first heartbeat */
    says("start.stepz", "{\"instance\":\"z\",\"requireKnown\":true}", "10", "did you mean steps?");
    says("wait", "{\"instance\":\"z\",\"waitMs\":50}", "10", "");
    becomes("describe", "{\"instance\":\"s\"}", "\"kind\":\"no_worker\"");
    const char *answer = ask("describe", "{\"instance\":\"s\"}");
    same("instance", answer_at(answer, "info.instance"), "s");
    same("orchestration", answer_at(answer, "info.orchestration"), "steps");
    same("state", answer_at(answer, "info.state"), "running");
    same("activities", answer_at(answer, "info.openActivities"), "1");
    answer = ask("wait", "{\"instance\":\"s\",\"waitMs\":1500,\"explain\":true}");
    same("status", answer_at(answer, "status"), "11");
    same("state", answer_at(answer, "state"), "running");
    same("reason", answer_at(answer, "reason"), "no_worker");
    CU_ASSERT_PTR_NOT_NULL(strstr(answer_at(answer, "nextStep"), "start a worker for that queue"));
    says("wait", "{\"instance\":\"s\",\"waitMs\":50}", "11", "\"state\":\"running\"");
    says("describe", "{\"instance\":\"nobody\"}", "10", "");
}

static void test_paused(void)
{
    says("start.gate", "{\"instance\":\"p\"}", "", "");
    CHECK_OK(thole_client_pause(client, THOLE_STR("p"), THOLE_STR("looked into"), &stack.err), &stack.err);
    becomes("wait", "{\"instance\":\"p\",\"waitMs\":50}", "\"state\":\"paused\"");
    const char *const answer = ask("wait", "{\"instance\":\"p\",\"waitMs\":900,\"explain\":true}");
    same("reason", answer_at(answer, "reason"), "paused");
    CU_ASSERT_PTR_NOT_NULL(strstr(answer_at(answer, "nextStep"), "thole resume"));
}

/* The answer says when a request is accepted and waits with the instance. */
static void test_notes(void)
{
    says("signal.go", "{\"instance\":\"p\",\"data\":\"\"}", "",
         "\"note\":\"the event is kept until its code runs again: instance \\\"p\\\" is paused (looked "
         "into): thole "
         "resume p lets it go on\"");
}

static void test_lists(void)
{
    const char *answer = ask("list", "{\"states\":[\"paused\"]}");
    same("paused", answer_at(answer_item(answer, "instances", 0), "instance"), "p");
    same("no other", answer_item(answer, "instances", 1), "");
    char body[256], last[64];
    unsigned n = 0;
    (void)snprintf(body, sizeof body, "{\"limit\":1}");
    for (;; n++) { /* page by page */
        const char *const one = answer_item(ask("list", body), "instances", 0);
        if (one[0] == '\0' || n > 9)
            break;
        (void)snprintf(last, sizeof last, "%s", answer_at(one, "instance"));
        (void)snprintf(body, sizeof body,
                       "{\"limit\":1,\"behindInstance\":\"%s\",\"behindCreatedMs\":\"%s\"}", last,
                       answer_at(one, "createdMs"));
    }
    CU_ASSERT_EQUAL(n, 2);
    same("the oldest", last, "s");
    says("list", "{\"states\":[\"Paused\"]}", "2", "there is no state");
}

/* ---- requests ---- */

static void test_start_with_event(void)
{
    says("start_event.gate~go", "{\"instance\":\"e\",\"input\":\"Mg==\",\"eventData\":\"b25l\"}", "", "");
    says("start_event.gate~go", "{\"instance\":\"e\",\"eventData\":\"dHdv\"}", "", "");
    says("wait", "{\"instance\":\"e\",\"waitMs\":20000}", "", "\"state\":\"completed\",\"output\":\"dHdv\"");
    says("start_event.gate~go", "{\"instance\":\"e\"}", "8", "");
}

/* A repetition under its request id is done once; another request under that id is refused. */
static void test_one_request_id(void)
{
    says("start.gate", "{\"instance\":\"r\",\"input\":\"Mg==\",\"requestId\":\"rq\"}", "", "");
    says("start.gate", "{\"instance\":\"r\",\"input\":\"Mg==\",\"requestId\":\"rq\"}", "", "");
    says("start.gate", "{\"instance\":\"r\",\"input\":\"Mw==\",\"requestId\":\"rq\"}", "8",
         "another request to instance");
    says("start.halts", "{\"instance\":\"r\",\"input\":\"Mg==\",\"requestId\":\"rq\"}", "8",
         "another request to instance");
    says("signal.go", "{\"instance\":\"r\",\"data\":\"b25l\",\"requestId\":\"s\"}", "", "");
    becomes("signal.go", "{\"instance\":\"r\",\"data\":\"dHdv\",\"requestId\":\"s\"}",
            "another request to instance"); /* when it has been taken */
    says("signal.go", "{\"instance\":\"r\",\"data\":\"b25l\",\"requestId\":\"s\"}", "", "");
    says("terminate", "{\"instance\":\"r\",\"reason\":\"enough\",\"requestId\":\"t\"}", "", "");
    becomes("wait", "{\"instance\":\"r\",\"waitMs\":500}", "\"state\":\"terminated\"");
    says("terminate", "{\"instance\":\"r\",\"reason\":\"enough\",\"requestId\":\"t\"}", "", "");
    says("terminate", "{\"instance\":\"r\",\"reason\":\"other\",\"requestId\":\"t\"}", "8",
         "another request to instance");
    says("cancel", "{\"instance\":\"r\",\"reason\":\"enough\",\"requestId\":\"t\"}", "8",
         "ended as Terminated");
    says("signal.go", "{\"instance\":\"r\",\"data\":\"b25l\",\"requestId\":\"s\"}", "", "");
    says("signal.go", "{\"instance\":\"r\",\"data\":\"dHdv\",\"requestId\":\"s\"}", "8",
         "another request to instance");
}

static void test_forms(void)
{
    says("start.gate", "{\"instanceId\":\"typo\"}", "2",
         "StartInstance has no member \\\"instanceId\\\"; did you mean \\\"instance\\\"?");
    const char *const plain =
        ask_at("thole.default.gateway.client.cancel", NULL, "{\"instance\":\"nobody\"}");
    same("without a header", answer_at(plain, "status"), "10");
}

/* A worker that hands an activity over to a program that completes it when the worker is gone. */
static void test_completed_later(void)
{
    char subject[256], claim[1024], token[1024], body[2048];
    const char *answer = ask_at("thole.default.gateway.open.default", "Content-Type",
                                "{\"worker\":\"py\",\"slots\":1,\"activities\":[\"later\"]}");
    (void)snprintf(subject, sizeof subject, "%s", answer_at(answer, "subject"));
    for (int i = 1; i <= 2; i++) {
        char operation[300];
        (void)snprintf(body, sizeof body, "{\"instance\":\"o-%d\"}", i);
        says("start.outside", body, "", "");
        (void)snprintf(operation, sizeof operation, "%s.next", subject);
        const char *const task =
            answer_item(ask_at(operation, "Content-Type", "{\"waitMs\":5000}"), "tasks", 0);
        (void)snprintf(claim, sizeof claim, "%s", answer_at(task, "claim"));
        (void)snprintf(token, sizeof token, "%s", answer_at(task, "token"));
        CU_ASSERT_STRING_NOT_EQUAL(token, "");
        (void)snprintf(operation, sizeof operation, "%s.complete", subject);
        (void)snprintf(body, sizeof body, "{\"outcomes\":[{\"claim\":\"%s\",\"later\":true}]}", claim);
        same("later", answer_at(answer_item(ask_at(operation, "Content-Type", body), "results", 0), "status"),
             "");
        (void)snprintf(body, sizeof body,
                       i == 1 ? "{\"token\":\"%s\",\"output\":\"b2s=\"}"
                              : "{\"token\":\"%s\",\"failure\":{\"text\":\"no\",\"type\":\"declined\"}}",
                       token);
        pause_ms(1500); /* has no lease, and nobody renews it */
        says("complete_activity", body, "", "");
        says("complete_activity", body, "", ""); /* changes nothing */
    }
    says("wait", "{\"instance\":\"o-1\",\"waitMs\":20000}", "", "\"output\":\"b2s=\"");
    says("wait", "{\"instance\":\"o-2\",\"waitMs\":20000}", "7", "outside said: no");
    says("complete_activity", "{\"token\":\"1.2.3\"}", "2", "token");
}

/* The engine that comes lacks its code; with the one that goes no engine is left. */
static void test_no_code(void)
{
    says("start.halts", "{\"instance\":\"h\"}", "", "");
    becomes("describe", "{\"instance\":\"h\"}", "\"state\":\"running\"");
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    becomes("describe", "{\"instance\":\"h\"}", "\"kind\":\"no_engine\"");
    setenv("VERBS_WITHOUT", "1", 1);
    engine = stack_program_of(&stack, "program_verbs", "without", "engine");
    says("signal.go", "{\"instance\":\"h\"}", "", ""); /* which its code is needed for */
    becomes("wait", "{\"instance\":\"h\",\"waitMs\":50}", "\"state\":\"waiting\"");
    says("wait", "{\"instance\":\"h\",\"waitMs\":900,\"explain\":true}", "11",
         "\"reason\":\"no_code\",\"nextStep\":\"");
    unsetenv("VERBS_WITHOUT");
}

static const struct thole_test tests[] = {
    {"no worker", test_no_worker},
    {"paused", test_paused},
    {"notes", test_notes},
    {"lists", test_lists},
    {"start with event", test_start_with_event},
    {"one request id", test_one_request_id},
    {"forms", test_forms},
    {"completed later", test_completed_later},
    {"no code", test_no_code},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    unsetenv("VERBS_CHANGED");
    engine = stack_program_of(&stack, "program_verbs", "engine", "engine");
    client = stack_client(&stack);
    connection = stack_connect(&stack);
    gateway = stack_program_of(&stack, "program_verbs", "gateway", "gateway");
    (void)stack_logged(gateway, "serves", 1, WAIT_MS);
    int const failed = thole_run_suite("gateway_views", tests, ARRAY_LEN(tests));
    connection_close(connection);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
