/*
 * Messages of a stream start and signal instances: `thole bind`, `thole binder`, engines and servers as
 * processes. The binder is killed at each step of a message, and again and again while messages flow: each
 * message starts or signals once.
 */
#include "api.h"
#include "bindings.h"
#include "connection.h"
#include "jscan.h"
#include "link.h"
#include "rejected.h"
#include "stack.h"
#include "thole_cunit.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { WAIT_MS = 60000, SEEN_MAX = 2000, TEXT_MAX = 64 * 1024 };

static struct stack stack;
static struct stack_program *engine;
static struct connection *connection;
static thole_client *client;

static thole_slice text(const char *from)
{
    return thole_slice_from(from);
}

/* ---- a user's commands ---- */

/* Of a user with a role of its own: docs/events.md. */
static const char *url_of(const char *user)
{
    static char url[256];
    (void)snprintf(url, sizeof url, "nats://%.60s:%.60s@%.100s", user, user,
                   stack.nats.url + strlen("nats://"));
    return url;
}

/* The command's exit code; its output, both kinds, is in thole_said. */
static char thole_said[TEXT_MAX];
static int thole(const char *arguments)
{
    char line[2048];
    (void)snprintf(line, sizeof line, "THOLE_NATS_URL=%s " THOLE_COMMAND " %s 2>&1", url_of("ruler"),
                   arguments);
    FILE *const pipe = popen(line, "re");
    if (pipe == NULL)
        return -1;
    size_t const len = fread(thole_said, 1, sizeof thole_said - 1, pipe);
    thole_said[len] = '\0';
    int const code = pclose(pipe);
    return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

static void must(const char *arguments)
{
    int const code = thole(arguments);
    CU_ASSERT_EQUAL(code, 0);
    if (code != 0)
        fprintf(stderr, "\n  thole %s\n    %d %s\n", arguments, code, thole_said);
}

static void make_stream(const char *name, const char *subjects)
{
    char body[512];
    struct buf answer;
    (void)snprintf(body, sizeof body, "{\"name\":\"%s\",\"subjects\":[\"%s\"],\"storage\":\"file\"}", name,
                   subjects);
    buf_init(&answer, API_ANSWER_MAX);
    CHECK_OK(api_call(connection, "STREAM.CREATE", name, text(body), &answer, NULL, &stack.err), &stack.err);
    buf_release(&answer);
}

/* Headers: "Name: value" pairs; stored when it returns. */
static void publish(const char *subject, const struct header *headers, size_t headers_len, const char *body)
{
    struct buf answer;
    buf_init(&answer, API_ANSWER_MAX);
    CHECK_OK(
        connection_request_with(connection, subject, headers, headers_len, text(body), &answer, &stack.err),
        &stack.err);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&answer), "\"seq\""));
    buf_release(&answer);
}

static struct stack_program *binder_named(const char *name, const char *die_at)
{
    char url[300];
    (void)snprintf(url, sizeof url, "--nats=%s", url_of("binder"));
    return stack_program_with(&stack, "program_bindings", name, "binder", "--test-die-at", die_at, "--http",
                              "127.0.0.1:0", url, NULL);
}

static struct stack_program *binder(const char *die_at)
{
    return binder_named("binder", die_at);
}

/* ---- results ---- */

static const char *outcome(const char *id)
{
    thole_instance_status status = THOLE_INSTANCE_UNKNOWN;
    const char *const output = stack_outcome(client, id, WAIT_MS, &status);
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_COMPLETED);
    return output;
}

static void same(const char *what, const char *got, const char *want)
{
    CHECK_STR(what, got, want);
}

/* Whether each of 1 to n is in the list once, and nothing else. */
static void check_once(const char *list, unsigned n)
{
    static unsigned seen[SEEN_MAX + 1];
    unsigned count = 0;
    char *end;
    memset(seen, 0, sizeof seen);
    for (const char *at = list; *at != '\0'; at = *end == ' ' ? end + 1 : end) {
        unsigned long const item = strtoul(at, &end, 10);
        if (end == at || item == 0 || item > n) {
            CHECK_STR("an item", at, "a number");
            return;
        }
        CU_ASSERT_EQUAL(++seen[item], 1);
        count++;
    }
    CU_ASSERT_EQUAL(count, n);
}

/* The newest rejected message: "REASON of SUBJECT: BODY". */
static const char *last_rejected(size_t least)
{
    static char last[2048];
    struct rejected_list list;
    uint64_t const until_ms = clock_monotonic_ms() + WAIT_MS;
    (void)snprintf(last, sizeof last, "none");
    do {
        list = (struct rejected_list){.most = 100};
        arena_init(&list.arena, 1 << 20);
        if (rejected_read(connection, "default", &list, &stack.err) == THOLE_OK && list.len >= least)
            (void)snprintf(
                last, sizeof last, "%.*s: %.*s of %.*s: %.*s", THOLE_FMT(list.items[list.len - 1].code),
                THOLE_FMT(list.items[list.len - 1].reason), THOLE_FMT(list.items[list.len - 1].subject),
                THOLE_FMT(list.items[list.len - 1].payload));
        size_t const len = list.len;
        arena_release(&list.arena);
        if (len >= least)
            break;
        pause_ms(20);
    } while (clock_monotonic_ms() < until_ms);
    return last;
}

/* Waits until the rule's consumer has nothing left. */
static bool drained(const char *rule, const char *stream)
{
    struct binding_state state;
    uint64_t const until_ms = clock_monotonic_ms() + WAIT_MS;
    while (clock_monotonic_ms() < until_ms) {
        if (binding_consumer_state(connection, "default", text(rule), text(stream), &state, NULL) ==
                THOLE_OK &&
            state.pending == 0 && state.ack_pending == 0)
            return true;
        pause_ms(20);
    }
    return false;
}

/* ---- tests ---- */

static void test_starts_and_signals(void)
{
    struct header const event[] = {
        {"ce-specversion", THOLE_STR("1.0")}, {"ce-id", THOLE_STR("e%20v")},
        {"ce-source", THOLE_STR("/shop")},    {"ce-type", THOLE_STR("com.example.paid")},
        {"ce-subject", THOLE_STR("cart-9")},  {"Content-Type", THOLE_STR("application/json")}};
    struct header const structured[] = {{"Content-Type", THOLE_STR("application/cloudevents+json")}};
    make_stream("ORDERS", "orders.>");
    must("bind set new-orders --subject 'orders.*.created' --action start --orchestration order --to "
         "'order-{json.id}'");
    must("bind set carts --subject 'orders.*.item' --action signal-with-start --orchestration collect --to "
         "'{ce.subject}' --event-name item");
    must("bind set whole --subject 'orders.whole' --action start --orchestration order --to 'w-{ce.id}' "
         "--data event");
    struct stack_program *const b = binder("0");
    publish("orders.eu.created", NULL, 0, "{\"id\":\"a/b\"}");
    same("start", outcome("order-a/b"), "{\"id\":\"a/b\"}");
    publish("orders.eu.item", event, 6, "1");
    publish("orders.eu.item", structured, 1,
            "{\"specversion\":\"1.0\",\"id\":\"2\",\"source\":\"/"
            "shop\",\"type\":\"t\",\"subject\":\"cart-9\",\"data\":2}");
    publish("orders.eu.item", event, 6, "3"); /* equal id and source: the same event */
    publish(
        "orders.eu.item", structured, 1,
        "{\"specversion\":\"1.0\",\"id\":\"3\",\"source\":\"/shop\",\"type\":\"t\",\"subject\":\"cart-9\","
        "\"datacontenttype\":\"text/plain\",\"data\":\"end\"}");
    same("signals", outcome("cart-9"), "1 2 ");
    publish("orders.whole", event, 6, "{\"a\":1}");
    same("whole", outcome("w-e v"),
         "{\"id\":\"e "
         "v\",\"source\":\"/"
         "shop\",\"specversion\":\"1.0\",\"subject\":\"cart-9\",\"type\":\"com.example.paid\","
         "\"datacontenttype\":\"application/json\",\"data\":{\"a\":1}}");
    publish("orders.us.created", NULL, 0, "{}");
    same("rejected", last_rejected(1),
         "binding: instance: {json.id}: the data has no such member of orders.us.created: {}");
    publish("orders.us.created", NULL, 0, "{\"id\":7}"); /* a bad message does not stop later ones */
    same("behind", outcome("order-7"), "{\"id\":7}");
    publish("orders.us.created", NULL, 0, "{\"id\":7,\"n\":2}"); /* another message used the id */
    same(
        "in use", last_rejected(2),
        "binding: instance \"order-7\" exists already, of another message or request: nothing was started of "
        "orders.us.created: {\"id\":7,\"n\":2}");
    must("bind set late --subject 'orders.late' --action signal --to order-7 --event-name item");
    publish("orders.late", NULL, 0, "1");
    same("ended", last_rejected(3),
         "binding: instance \"order-7\" has ended: the event was dropped, unless it was taken before of "
         "orders.late: 1");
    must("bind delete late");
    CU_ASSERT_TRUE(drained("new-orders", "ORDERS"));
    must("bind list");
    CU_ASSERT_PTR_NOT_NULL(strstr(thole_said, "new-orders"));
    CU_ASSERT_EQUAL(thole("bind set typo --subject 'orders.>' --stream LOST --orchestration order --to x"),
                    3); /* does not exist yet */
    CU_ASSERT_EQUAL(thole("bind set typo --subject 'bills.>' --stream ORDERS --orchestration order --to x"),
                    2);
    CU_ASSERT_EQUAL(thole("bind test new-orders --subject orders.eu.item --input '{}'"), 1);
    must("bind show new-orders -o json");
    CU_ASSERT_PTR_NOT_NULL(strstr(thole_said, "\"pending\":0,\"ack_pending\":0"));
    CU_ASSERT_EQUAL(stack_terminate(b, WAIT_MS), 0);
}

/* A rule is changed, moved to another stream and deleted while the binder runs. */
static void test_changes(void)
{
    struct binding_state state;
    make_stream("MOVED", "moved.>");
    struct stack_program *const b = binder("0");
    must("bind set changing --subject 'orders.change.*' --action start --orchestration order --to "
         "'one-{subject.3}'");
    publish("orders.change.a", NULL, 0, "x");
    same("before", outcome("one-a"), "x");
    must("bind set changing --subject 'orders.change.*' --action start --orchestration order --to "
         "'two-{subject.3}'");
    CU_ASSERT_TRUE(stack_logged(b, "rule changing, revision", 2, WAIT_MS));
    publish("orders.change.b", NULL, 0, "y");
    same("after", outcome("two-b"), "y");
    must("bind set changing --subject 'moved.*' --action start --orchestration order --to "
         "'three-{subject.2}'");
    publish("moved.c", NULL, 0, "z");
    same("moved", outcome("three-c"), "z");
    CU_ASSERT_EQUAL(binding_consumer_state(connection, "default", THOLE_STR("changing"), THOLE_STR("ORDERS"),
                                           &state, NULL),
                    THOLE_NOT_FOUND);
    must("bind delete changing");
    CU_ASSERT_TRUE(stack_logged(b, "rule changing is gone", 1, WAIT_MS));
    CU_ASSERT_EQUAL(binding_consumer_state(connection, "default", THOLE_STR("changing"), THOLE_STR("MOVED"),
                                           &state, NULL),
                    THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(thole("bind show changing"), 3);
    must("bind set changing --subject 'moved.*' --action start --orchestration order --to "
         "'three-{subject.2}'");
    CU_ASSERT_TRUE(drained("changing", "MOVED")); /* from the beginning; three-c is the same start again */
    CU_ASSERT_EQUAL(thole("bind set changing --subject 'moved.*' --orchestration order --to x --revision 1"),
                    4);
    must("bind delete changing");
    CU_ASSERT_EQUAL(stack_terminate(b, WAIT_MS), 0);
}

/* A user removes the consumer: it is made again, and messages taken before are not taken twice. */
static void test_the_consumer_is_lost(void)
{
    make_stream("LOST", "lost.>");
    must("bind set lost --subject 'lost.>' --action signal-with-start --orchestration collect --to lost "
         "--event-name item");
    struct stack_program *const b = binder("0");
    publish("lost.a", NULL, 0, "1");
    CU_ASSERT_TRUE(drained("lost", "LOST"));
    /* nats-server 2.10 may say that its folder was not empty; it is gone then, and perhaps here again */
    thole_status const status =
        binding_consumer_delete(connection, "default", THOLE_STR("lost"), THOLE_STR("LOST"), &stack.err);
    CU_ASSERT_TRUE(status == THOLE_OK || strstr(stack.err.text, "directory not empty") != NULL);
    publish("lost.a", NULL, 0, "2");
    publish("lost.a", NULL, 0, "end");
    same("once", outcome("lost"), "1 2 ");
    must("bind delete lost");
    CU_ASSERT_EQUAL(stack_terminate(b, WAIT_MS), 0);
}

/* The binder kills itself: one that goes on would not show the effects of a death. */
static void dies(struct stack_program *program)
{
    int code = stack_ended(program);
    for (unsigned i = 0; i < WAIT_MS / 10 && code == -1; i++) {
        pause_ms(10);
        code = stack_ended(program);
    }
    CU_ASSERT_NOT_EQUAL(code, -1);
}

/* Dies at that step of its first message; the next one finishes. */
static void die_at(const char *step)
{
    char id[64], command[512], body[16];
    enum { MESSAGES = 20 };
    (void)snprintf(id, sizeof id, "deaths-%s", step);
    (void)snprintf(
        command, sizeof command,
        "bind set deaths --subject 'deaths.%s.*' --action signal-with-start --orchestration collect "
        "--to '%s' --event-name item",
        step, id);
    must(command);
    struct stack_program *b = binder(step);
    for (unsigned i = 1; i <= MESSAGES; i++) {
        char subject[64];
        (void)snprintf(subject, sizeof subject, "deaths.%s.%u", step, i);
        (void)snprintf(body, sizeof body, "%u", i);
        publish(subject, NULL, 0, body);
    }
    dies(b);
    b = binder("0");
    CU_ASSERT_TRUE(drained("deaths", "DEATHS"));
    CHECK_OK(thole_client_signal(client, text(id), THOLE_STR("item"), THOLE_STR("end"), THOLE_STR(""), NULL,
                                 &stack.err),
             &stack.err);
    check_once(outcome(id), MESSAGES);
    CU_ASSERT_EQUAL(stack_terminate(b, WAIT_MS), 0);
}

static void test_death_at_each_step(void)
{
    make_stream("DEATHS", "deaths.>");
    die_at("1");
    die_at("2");
    die_at("3");
    die_at("4");
    must("bind delete deaths");
}

/* Rejected once, although the binder dies when the rejection is stored and not acknowledged. */
static void test_death_at_a_rejection(void)
{
    make_stream("BAD", "bad.>");
    must("bind set bad --subject 'bad.>' --action start --orchestration order --to '{json.id}'");
    struct stack_program *b = binder("5");
    publish("bad.one", NULL, 0, "no json");
    dies(b);
    b = binder("0");
    CU_ASSERT_TRUE(drained("bad", "BAD"));
    same("rejected", last_rejected(3),
         "binding: instance: {json.id}: the data is no JSON of bad.one: no json");
    same("once", last_rejected(3), last_rejected(3));
    must("bind delete bad");
    CU_ASSERT_EQUAL(stack_terminate(b, WAIT_MS), 0);
}

/* Killed again and again while messages flow, and the engine once. */
static void test_kill9_while_messages_flow(void)
{
    enum { MESSAGES = 400, KILLS = 5 };
    char body[16];
    unsigned sent = 0;
    make_stream("FLOW", "flow.>");
    must("bind set flow --subject 'flow.*' --action signal-with-start --orchestration collect --to flow "
         "--event-name item");
    must(
        "bind set flow-starts --subject 'flow.*' --action start --orchestration order --to 'flow-{sequence}' "
        "--in-flight 16");
    struct stack_program *b = binder("0");
    for (unsigned kill = 0; kill < KILLS; kill++) {
        for (; sent < (kill + 1) * MESSAGES / KILLS; sent++) {
            (void)snprintf(body, sizeof body, "%u", sent + 1);
            publish("flow.a", NULL, 0, body);
        }
        stack_kill9(b);
        if (kill == 2) {
            stack_kill9(engine);
            engine = stack_program_of(&stack, "program_bindings", "engine", "engine");
        }
        b = binder("0");
    }
    CU_ASSERT_TRUE(drained("flow", "FLOW"));
    CU_ASSERT_TRUE(drained("flow-starts", "FLOW"));
    CHECK_OK(thole_client_signal(client, THOLE_STR("flow"), THOLE_STR("item"), THOLE_STR("end"),
                                 THOLE_STR(""), NULL, &stack.err),
             &stack.err);
    check_once(outcome("flow"), MESSAGES);
    for (unsigned i = 1; i <= MESSAGES; i += 37) {
        char id[32];
        (void)snprintf(id, sizeof id, "flow-%u", i);
        (void)snprintf(body, sizeof body, "%u", i);
        same(id, outcome(id), body);
    }
    must("bind delete flow");
    must("bind delete flow-starts");
    CU_ASSERT_EQUAL(stack_terminate(b, WAIT_MS), 0);
}

/* With one message at a time the stream's order is kept, by two binders and over a kill, too. */
static void test_order(void)
{
    enum { MESSAGES = 60 };
    char body[16], want[512] = "";
    make_stream("SORTED", "sorted.>");
    must(
        "bind set sorted --subject 'sorted.*' --action signal-with-start --orchestration collect --to sorted "
        "--event-name item --in-flight 1");
    struct stack_program *const a = binder("0");
    struct stack_program *const b = binder_named("binder-2", "0");
    for (unsigned i = 1; i <= MESSAGES; i++) {
        (void)snprintf(body, sizeof body, "%u", i);
        (void)snprintf(want + strlen(want), sizeof want - strlen(want), "%u ", i);
        publish("sorted.a", NULL, 0, body);
    }
    stack_kill9(a);
    publish("sorted.a", NULL, 0, "end");
    same("order", outcome("sorted"), want);
    must("bind delete sorted");
    CU_ASSERT_EQUAL(stack_terminate(b, WAIT_MS), 0);
}

/* ---- calls ---- */

enum { ANSWERS_MAX = 128 };
static struct {
    char body[256], instance[128], code[16], type[32];
} answers[ANSWERS_MAX];
static atomic_uint answers_len;

static void copy_text(char *to, size_t cap, thole_slice from)
{
    (void)snprintf(to, cap, "%.*s", THOLE_FMT(from));
}

static void on_answer(void *arg, const struct delivery *delivery)
{
    unsigned const n = atomic_load(&answers_len);
    (void)arg;
    if (n == ANSWERS_MAX)
        return;
    copy_text(answers[n].body, sizeof answers[n].body, delivery->body);
    copy_text(answers[n].instance, sizeof answers[n].instance, delivery_header(delivery, "Thole-Instance"));
    copy_text(answers[n].code, sizeof answers[n].code, delivery_header(delivery, "Nats-Service-Error-Code"));
    copy_text(answers[n].type, sizeof answers[n].type, delivery_header(delivery, "Thole-Error-Type"));
    atomic_store(&answers_len, n + 1);
}

static void call_to(const char *reply, const char *orchestration, const struct header *headers,
                    size_t headers_len, thole_slice body)
{
    char subject[128];
    natsMsg *message = NULL;
    bool sent = false;
    struct link *const link = link_acquire(connection);
    (void)snprintf(subject, sizeof subject, "thole.default.call.%s", orchestration);
    CHECK_OK(link_message(subject, reply, headers, headers_len, body, &message, &stack.err), &stack.err);
    CHECK_OK(link_send(link, message, &sent, &stack.err), &stack.err);
    natsMsg_Destroy(message);
    link_release(link);
}

static void await_answers(unsigned n)
{
    for (unsigned i = 0; i < WAIT_MS / 5 && atomic_load(&answers_len) < n; i++)
        pause_ms(5);
    CU_ASSERT_EQUAL(atomic_load(&answers_len), n);
}

/* "CODE BODY" of the answer; its instance is in answers[0]. */
static const char *call(const char *orchestration, const struct header *headers, size_t headers_len,
                        const char *body)
{
    static char said[400];
    atomic_store(&answers_len, 0);
    call_to("_INBOX.calls.1", orchestration, headers, headers_len, text(body));
    await_answers(1);
    (void)snprintf(said, sizeof said, "%s %s", answers[0].code, answers[0].body);
    return said;
}

static void check_refusals(void)
{
    static char large[300 * 1024];
    struct header const named[] = {{"Thole-Instance", THOLE_STR("a%2Eb")}};
    struct header const bad_id[] = {{"Thole-Instance", THOLE_STR("a.b")}};
    struct header const blank[] = {{"Thole-Instance", THOLE_STR("a b")}};
    struct header const needless[] = {{"Thole-Instance", THOLE_STR("order%2D17")}};
    struct header const bad_wait[] = {{"Thole-Wait-Ms", THOLE_STR("soon")}};
    memset(large, 'x', sizeof large);
    same("named", call("order", named, 1, "1"), " 1");
    same("named", answers[0].instance, "a%2Eb");
    CU_ASSERT_EQUAL(strncmp(call("order", named, 1, "2"), "8 ", 2), 0); /* another start has the id */
    CU_ASSERT_EQUAL(strncmp(call("order", bad_id, 1, "3"), "2 ", 2), 0);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(call("order", blank, 1, "3"), "2 header Thole-Instance has byte 0x20 at 1: the id must be "));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(call("order", needless, 1, "3"), "2 header Thole-Instance escapes 0x2d without need: "));
    CU_ASSERT_EQUAL(strncmp(call("order", bad_wait, 1, "3"), "2 ", 2), 0);
    CU_ASSERT_EQUAL(strncmp(call("a,b", NULL, 0, "3"), "2 ", 2), 0);
    atomic_store(&answers_len, 0);
    call_to("_INBOX.calls.1", "order", NULL, 0, (thole_slice){(const uint8_t *)large, sizeof large});
    await_answers(1);
    same("large", answers[0].code, "3");
}

/* Nothing is published with the binder's rights to what is no inbox. */
static void check_no_inbox(void)
{
    struct subscription *other = NULL;
    CHECK_OK(connection_subscribe(connection, "elsewhere.*", on_answer, NULL, &other, &stack.err),
             &stack.err);
    atomic_store(&answers_len, 0);
    call_to("elsewhere.x", "order", NULL, 0, THOLE_STR("x"));
    call_to("_INBOX.calls.1", "order", NULL, 0, THOLE_STR("y"));
    await_answers(1);
    pause_ms(200);
    CU_ASSERT_EQUAL(atomic_load(&answers_len), 1);
    same("the other", answers[0].body, "y");
    subscription_close(other);
}

static void test_calls(void)
{
    struct subscription *inbox = NULL;
    struct header const repeated[] = {{"Nats-Msg-Id", THOLE_STR("m 1")}, {"Thole-Wait-Ms", THOLE_STR("300")}};
    char instance[128], reply[64];
    CHECK_OK(connection_subscribe(connection, "_INBOX.calls.*", on_answer, NULL, &inbox, &stack.err),
             &stack.err);
    struct stack_program *b = binder_named("caller", "0");
    CU_ASSERT_TRUE(stack_logged(b, "msg=serving", 1, WAIT_MS));
    same("result", call("order", NULL, 0, "hello"), " hello");
    CU_ASSERT_EQUAL(strncmp(answers[0].instance, "call-", 5), 0);
    same("failure", call("refuse", NULL, 0, "way"), "7 no way");
    check_refusals();
    check_no_inbox();
    CU_ASSERT_EQUAL(strncmp(call("collect", repeated, 2, ""), "11 ", 3), 0); /* still running */
    (void)snprintf(instance, sizeof instance, "%s", answers[0].instance);
    atomic_store(&answers_len, 0);
    call_to("_INBOX.calls.1", "collect", repeated, 1, THOLE_STR(""));
    pause_ms(500);
    stack_kill9(b); /* while the call waits: it is not answered */
    b = binder_named("caller", "0");
    CU_ASSERT_TRUE(stack_logged(b, "msg=serving", 2, WAIT_MS));
    CHECK_OK(thole_client_signal(client, text(instance), THOLE_STR("item"), THOLE_STR("1"), THOLE_STR(""),
                                 NULL, &stack.err),
             &stack.err);
    CHECK_OK(thole_client_signal(client, text(instance), THOLE_STR("item"), THOLE_STR("end"), THOLE_STR(""),
                                 NULL, &stack.err),
             &stack.err);
    same("repeated", call("collect", repeated, 2, ""), " 1 ");
    same("the same instance", answers[0].instance, instance);
    same("repeated, ended", call("collect", repeated, 2, ""), " 1 ");
    (void)snprintf(reply, sizeof reply, "%s", call("collect", repeated, 2, "another body"));
    CU_ASSERT_EQUAL(strncmp(reply, "8 instance", 10),
                    0); /* another request, and not answered with that result */
    atomic_store(&answers_len, 0);
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(reply, sizeof reply, "_INBOX.calls.%u", i);
        call_to(reply, "order", NULL, 0, text(reply));
    }
    await_answers(100);
    subscription_close(inbox);
    CU_ASSERT_EQUAL(stack_terminate(b, WAIT_MS), 0);
}

/* The binder and who stores the rules have their role's rights and no others; all else may do anything. */
static const char *users(void)
{
    static char config[TEXT_MAX];
    static const char streams[] = "ORDERS,MOVED,LOST,DEATHS,BAD,FLOW,SORTED";
    static const char *const roles[][2] = {{"binder", "binder"}, {"ruler", "client --verb bind"}};
    size_t len =
        (size_t)snprintf(config, sizeof config,
                         "no_auth_user: all\nauthorization { users: [\n  { user: all, password: all }\n");
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        char line[512];
        (void)snprintf(line, sizeof line, THOLE_COMMAND " doctor --nats-permissions %s --stream %s",
                       roles[i][1], streams);
        FILE *const pipe = popen(line, "re");
        len += (size_t)snprintf(config + len, sizeof config - len, "  { user: %s, password: %s\n",
                                roles[i][0], roles[i][0]);
        len += fread(config + len, 1, sizeof config - len - 100, pipe);
        if (pclose(pipe) != 0)
            exit(1);
        len += (size_t)snprintf(config + len, sizeof config - len, "  }\n");
    }
    (void)snprintf(config + len, sizeof config - len, "] }\n");
    return config;
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"starts and signals", test_starts_and_signals},
        {"changes", test_changes},
        {"the consumer is lost", test_the_consumer_is_lost},
        {"death at each step", test_death_at_each_step},
        {"death at a rejection", test_death_at_a_rejection},
        {"kill -9 while messages flow", test_kill9_while_messages_flow},
        {"order", test_order},
        {"calls", test_calls},
    };
    skip_without_nats();
    skip_without_postgres();
    stack_start_configured(&stack, users());
    engine = stack_program_of(&stack, "program_bindings", "engine", "engine");
    client = stack_client(&stack);
    connection = stack_connect(&stack);
    int const failed = thole_run_suite("bindings", tests, ARRAY_LEN(tests));
    connection_close(connection);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
