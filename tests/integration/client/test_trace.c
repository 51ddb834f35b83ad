/* W3C Trace Context from a start through activities, a child, a second execution, live events and log lines.
 */
#include "connection.h"
#include "header_names.h"
#include "message.h"
#include "stack.h"
#include "subject.h"
#include "thole_cunit.h"
#include <stdatomic.h>
#include <stdlib.h>

enum { WAIT_MS = 30000, SPOKEN_MAX = 10, PARTITIONS = 8 };
#define ID "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define PARENT "00-" ID "-" SPAN "-01"
#define STATE "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"

static struct stack stack;
static struct stack_program *engine;
static thole_client *client;

static thole_slice text(const char *from)
{
    return thole_slice_from(from);
}

static void go(const char *id)
{
    CHECK_OK(thole_client_signal(client, text(id), THOLE_STR("go"), THOLE_STR(""), THOLE_STR(""), NULL,
                                 &stack.err),
             &stack.err);
}

/* Nine answers, of two executions, each of them @p want. */
static void check_all(const char *id, const char *want)
{
    thole_instance_status status = THOLE_INSTANCE_UNKNOWN;
    char copy[8192], *next = copy;
    size_t lines = 0;
    go(id);
    go(id);
    snprintf(copy, sizeof copy, "%s", stack_outcome(client, id, WAIT_MS, &status));
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_COMPLETED);
    for (char *line; (line = strsep(&next, "\n")) != NULL; lines += line[0] != '\0')
        if (line[0] != '\0')
            CHECK_STR(id, line, want);
    CU_ASSERT_EQUAL(lines, 8);
}

static void start_with(const char *id, const char *parent, const char *state)
{
    thole_start_options const options = {
        .size = sizeof options, .traceparent = text(parent), .tracestate = text(state)};
    bool accepted = false;
    CHECK_OK(thole_client_start_with(client, text(id), THOLE_STR("traced"), THOLE_STR(""), &options,
                                     &accepted, &stack.err),
             &stack.err);
    CU_ASSERT_TRUE(accepted);
}

/* ---- live events ---- */

static atomic_uint traced_events, all_events;

static void on_event(void *arg, const struct delivery *delivery)
{
    thole_slice const parent = delivery_header(delivery, HEADER_TRACEPARENT);
    thole_slice const state = delivery_header(delivery, HEADER_TRACESTATE);
    (void)arg;
    atomic_fetch_add(&all_events, 1);
    if (thole_slice_equal(parent, THOLE_STR(PARENT)) && thole_slice_equal(state, THOLE_STR(STATE)))
        atomic_fetch_add(&traced_events, 1);
}

static void test_by_the_library_and_kill9(void)
{
    struct connection *const connection = stack_connect(&stack);
    struct subscription *events = NULL;
    CHECK_OK(connection_subscribe(connection, "thole.default.event.traced.by-library.*", on_event, NULL,
                                  &events, &stack.err),
             &stack.err);
    CHECK_OK(connection_flush(connection, &stack.err), &stack.err);
    start_with("by-library", PARENT, STATE);
    CU_ASSERT_TRUE(stack_logged(
        engine, "instance=by-library execution=1 trace_id=" ID " span_id=" SPAN " msg=begins", 1, WAIT_MS));
    stack_kill9(engine);
    engine = stack_program_of(&stack, "program_trace", "engine", "engine");
    check_all("by-library", PARENT "|" STATE);
    for (unsigned i = 0; i < WAIT_MS / 5 && atomic_load(&traced_events) < 3; i++)
        pause_ms(5);
    CU_ASSERT_EQUAL(atomic_load(&traced_events), 3); /* started, continued_as_new, completed */
    CU_ASSERT_EQUAL(atomic_load(&all_events), atomic_load(&traced_events));
    CU_ASSERT_EQUAL(stack_count(engine->log, "instance=by-library execution=2 trace_id=" ID " *msg=begins"),
                    1);
    subscription_close(events);
    connection_close(connection);
}

/* ---- any other client ---- */

static void send_start(const char *id, const char *parent, const char *state)
{
    struct header const headers[] = {{HEADER_TRACEPARENT, text(parent)}, {HEADER_TRACESTATE, text(state)}};
    struct message const start = {
        .kind = MESSAGE_START, .instance = text(id), .orchestration = THOLE_STR("traced")};
    struct connection *const connection = stack_connect(&stack);
    struct buf subject, body;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, MESSAGE_BYTES_MAX);
    CU_ASSERT_EQUAL(message_encode(&start, &body), THOLE_OK);
    CHECK_OK(subject_inbox(&subject, "default", subject_partition(text(id), PARTITIONS),
                           THOLE_STR("start.traced"), text(id), &stack.err),
             &stack.err);
    CHECK_OK(connection_publish(connection, buf_cstr(&subject), headers, 2, buf_bytes(&body), &stack.err),
             &stack.err);
    CHECK_OK(connection_flush(connection, &stack.err), &stack.err);
    buf_release(&subject);
    buf_release(&body);
    connection_close(connection);
}

static void await_started(const char *id)
{
    for (int i = 0; i < WAIT_MS / 20 && strstr(stack_history(client, id), "Started") == NULL; i++)
        pause_ms(20);
}

static void test_by_headers(void)
{
    send_start("by-headers", PARENT, STATE);
    await_started("by-headers");
    check_all("by-headers", PARENT "|" STATE);
}

/* Never a reason to refuse a start. */
static void test_not_valid(void)
{
    send_start("bad-parent", "00-" ID "-0000000000000000-01", STATE);
    await_started("bad-parent");
    check_all("bad-parent", "|");
    CU_ASSERT_TRUE(
        stack_logged(engine, "instance=bad-parent msg=\"the message's traceparent or tracestate is not valid",
                     1, WAIT_MS));
    send_start("bad-state", PARENT, "no state");
    await_started("bad-state");
    check_all("bad-state", PARENT "|");
    start_with("bad-library", "nonsense", STATE);
    check_all("bad-library", "|");
}

static void test_none(void)
{
    start_with("none", "", "");
    check_all("none", "|");
    CU_ASSERT_EQUAL(stack_count(engine->log, "instance=none *trace_id="), 0);
}

static const struct thole_test tests[] = {
    {"by_the_library_and_kill9", test_by_the_library_and_kill9},
    {"by_headers", test_by_headers},
    {"not_valid", test_not_valid},
    {"none", test_none},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    engine = stack_program_of(&stack, "program_trace", "engine", "engine");
    client = stack_client(&stack);
    (void)stack_program_of(&stack, "program_trace", "worker", "worker");
    int const failed = thole_run_suite("trace", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
