/* Requests to instances: what the client library sends, and what it makes of what comes back. */
#include "client_fixture.h"
#include "query_message.h"
#include "subject.h"
#include <stdlib.h>
#include <string.h>

static const thole_slice nothing = {NULL, 0};

/* The last inbox message, once there are more than @p before. */
static const struct message *next_message(size_t before)
{
    CU_ASSERT(engine_script_seen(&fixture.script, before + 1));
    return &fixture.script.last;
}

/* ---- requests with a reason ---- */

typedef thole_status request_fn(thole_client *client, thole_slice instance, thole_slice reason,
                                thole_error *reterr);

static void test_reasons(void)
{
    static const struct {
        request_fn *call;
        enum message_kind kind;
    } rows[] = {
        {thole_client_cancel, MESSAGE_CANCEL},
        {thole_client_terminate, MESSAGE_TERMINATE},
        {thole_client_pause, MESSAGE_PAUSE}, /* taken by nobody: so the next one is sent, too */
        {thole_client_resume, MESSAGE_RESUME},
    };
    static uint8_t long_reason[REASON_BYTES_MAX + 1];
    thole_slice const id = THOLE_STR("reasons-1");
    engine_script_mode(&fixture.script, SCRIPT_SILENT);
    CU_ASSERT(fixture_started(1, "reasons-1", "r"));
    memset(long_reason, 'x', sizeof long_reason);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t const before = engine_script_messages(&fixture.script);
        CHECK_STATUS(rows[i].call(fixture.client, THOLE_STR("never"), nothing, &fixture.err),
                     THOLE_NOT_FOUND);
        CHECK_STATUS(rows[i].call(fixture.client, THOLE_STR(""), nothing, &fixture.err), THOLE_INVALID);
        thole_slice reason = {long_reason, sizeof long_reason};
        CHECK_STATUS(rows[i].call(fixture.client, id, reason, &fixture.err), THOLE_INVALID);
        reason.len--;
        CHECK_STATUS(rows[i].call(fixture.client, id, reason, &fixture.err), THOLE_OK);
        const struct message *got = next_message(before);
        CU_ASSERT_EQUAL(got->kind, rows[i].kind);
        CU_ASSERT(thole_slice_equal(got->instance, id) && thole_slice_equal(got->data, reason));
        CU_ASSERT_EQUAL(got->request_id.len, 32);
        CU_ASSERT_EQUAL(engine_script_messages(&fixture.script), before + 1);
    }
}

/* ---- events ---- */

static thole_status signal_with(thole_slice name, thole_slice data, thole_slice request_id)
{
    return thole_client_signal(fixture.client, THOLE_STR("signal-1"), name, data, request_id, NULL,
                               &fixture.err);
}

static void test_signal(void)
{
    static uint8_t large[THOLE_PAYLOAD_BYTES_DEFAULT + 1];
    static uint8_t long_id[THOLE_ID_BYTES_MAX + 1];
    thole_slice const longest = {long_id, THOLE_ID_BYTES_MAX};
    size_t const before = engine_script_messages(&fixture.script);
    memset(long_id, 'r', sizeof long_id);
    CHECK_STATUS(signal_with(THOLE_STR("paid"), THOLE_STR("da\0ta"), nothing),
                 THOLE_OK); /* no instance yet */
    const struct message *got = next_message(before);
    CU_ASSERT_EQUAL(got->kind, MESSAGE_EVENT);
    CU_ASSERT(thole_slice_equal(got->event_name, THOLE_STR("paid")));
    CU_ASSERT(thole_slice_equal(got->event_data, THOLE_STR("da\0ta")));
    CU_ASSERT_EQUAL(got->request_id.len, 32);
    CHECK_STATUS(signal_with(THOLE_STR("paid"), nothing, longest), THOLE_OK);
    got = next_message(before + 1);
    CU_ASSERT(thole_slice_equal(got->request_id, longest) && got->event_data.len == 0);
    CHECK_STATUS(signal_with(THOLE_STR("paid"), nothing, THOLE_STR("a\r\nb: c")), THOLE_OK); /* no header */
    CU_ASSERT(thole_slice_equal(next_message(before + 2)->request_id, THOLE_STR("a\r\nb: c")));
    CHECK_STATUS(signal_with(THOLE_STR("paid"), nothing, THOLE_STR("<1.2.x")), THOLE_INVALID);
    CHECK_STATUS(signal_with(THOLE_STR("paid"), nothing, (thole_slice){long_id, sizeof long_id}),
                 THOLE_INVALID);
    CHECK_STATUS(signal_with(THOLE_STR("paid"), nothing, THOLE_STR("\xff")), THOLE_INVALID);
    CHECK_STATUS(signal_with(THOLE_STR("not.a.name"), nothing, nothing), THOLE_INVALID);
    CHECK_STATUS(signal_with(nothing, nothing, nothing), THOLE_INVALID);
    CHECK_STATUS(signal_with(THOLE_STR("paid"), (thole_slice){large, sizeof large}, nothing), THOLE_LIMIT);
    CU_ASSERT_EQUAL(engine_script_messages(&fixture.script), before + 3);
}

/* ---- tokens ---- */

#define NONCE "0123456789abcdef0123456789abcdef"
static thole_slice token_for(const char *id, char text[256])
{
    uint32_t const p = subject_partition(thole_slice_from(id), fixture.script.topology.partitions);
    (void)snprintf(text, 256, "%u.3.17.2." NONCE ".%s", p, id);
    return thole_slice_from(text);
}

static void test_tokens(void)
{
    static const char *const bad[] = {"",
                                      "0",
                                      "0.3.17.2",
                                      "0.3.17.2." NONCE ".",
                                      "0.0.17.2." NONCE ".x",
                                      "0.3.0.2." NONCE ".x",
                                      "0.3.17.0." NONCE ".x",
                                      "0.3.17.2." NONCE ".x.y",
                                      "0.03.17.2." NONCE ".x",
                                      "0.3.17.2." NONCE ".%78",
                                      "0.3.17.2." NONCE ".a b",
                                      "0.3.17.2." NONCE ".%zz",
                                      "1.3.17.2." NONCE ".x",
                                      "-1.3.17.2." NONCE ".x",
                                      "0.99999999999999999999.17.2." NONCE ".x",
                                      "0.3.17.4294967296." NONCE ".x",
                                      "0.3.17.2." NONCE ".*",
                                      "0.3.17.2." NONCE ".%FF",
                                      "0.3.17.2.x",
                                      "0.3.17.2..x",
                                      "0.3.17.2.0123456789abcdef0123456789abcde.x",
                                      "0.3.17.2.0123456789ABCDEF0123456789abcdef.x"};
    char text[256];
    size_t const before = engine_script_messages(&fixture.script);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        thole_slice const token = thole_slice_from(bad[i]);
        fixture_check(bad[i],
                      thole_status_name(thole_client_complete(fixture.client, token, nothing, &fixture.err)),
                      "INVALID");
        CHECK_STATUS(thole_client_fail(fixture.client, token, nothing, nothing, &fixture.err), THOLE_INVALID);
    }
    thole_slice const token = token_for("a%2Eb", text);
    CHECK_STATUS(thole_client_complete(fixture.client, token, THOLE_STR("out"), &fixture.err), THOLE_OK);
    const struct message *got = next_message(before);
    CU_ASSERT(got->kind == MESSAGE_ACTIVITY_RESULT && thole_slice_equal(got->instance, THOLE_STR("a.b")));
    CU_ASSERT(got->execution == 3 && got->task == 17 && got->try_number == 2 && got->status == THOLE_OK);
    CU_ASSERT(thole_slice_equal(got->nonce, THOLE_STR(NONCE)));
    CU_ASSERT(thole_slice_equal(got->data, THOLE_STR("out")) && !got->final);
    CHECK_STATUS(
        thole_client_fail(fixture.client, token, THOLE_STR("card_declined"), THOLE_STR("no"), &fixture.err),
        THOLE_OK);
    got = next_message(before + 1);
    CU_ASSERT(got->status == THOLE_APP && thole_slice_equal(got->error_type, THOLE_STR("card_declined")));
    CU_ASSERT(thole_slice_equal(got->data, THOLE_STR("no")) && got->try_number == 2);
    CHECK_STATUS(thole_client_fail(fixture.client, token, THOLE_STR("a b"), nothing, &fixture.err),
                 THOLE_INVALID);
    CU_ASSERT_EQUAL(engine_script_messages(&fixture.script), before + 2);
}

/* ---- start with options ---- */

static thole_status start_with(const char *id, const char *event, bool *ret_accepted)
{
    thole_start_options const options = {.size = sizeof options,
                                         .version = 3,
                                         .event = thole_slice_from(event),
                                         .event_data = event == NULL ? nothing : THOLE_STR("data")};
    return thole_client_start_with(fixture.client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("in"),
                                   &options, ret_accepted, &fixture.err);
}

static const char *run_with(const char *id, thole_start_options with)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    with.size = sizeof with;
    thole_status const status =
        thole_client_run_with(fixture.client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("in"),
                              &with, FIXTURE_WAIT_MS, &outcome, &fixture.err);
    return fixture_outcome(status, &outcome);
}

/* A repetition under its request id is no conflict: it waits for what the first one has started. */
static void test_run_with(void)
{
    engine_script_mode(&fixture.script, SCRIPT_COMPLETE);
    fixture_check("version", run_with("rw-1", (thole_start_options){.version = 2}), "Completed #1 in");
    thole_start_options const own = {.request_id = THOLE_STR("mine")};
    fixture_check("own id", run_with("rw-2", own), "Completed #1 in");
    fixture_check("repeated", run_with("rw-2", own), "Completed #1 in");
    thole_start_options const event = {.event = THOLE_STR("paid"), .event_data = THOLE_STR("x")};
    fixture_check("event", run_with("rw-3", event), "Completed #1 in");
    fixture_check("bad event", run_with("rw-4", (thole_start_options){.event = THOLE_STR("pa.id")}),
                  "INVALID");
    thole_outcome outcome;
    thole_start_options const unset = {.size = 0};
    CHECK_STATUS(thole_client_run_with(fixture.client, THOLE_STR("rw-5"), THOLE_STR("order"), nothing, &unset,
                                       FIXTURE_WAIT_MS, &outcome, &fixture.err),
                 THOLE_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(fixture.err.text, "thole_start_options.size"));
}

static void test_start_with(void)
{
    bool accepted = false;
    size_t const before = engine_script_messages(&fixture.script);
    engine_script_mode(&fixture.script, SCRIPT_COMPLETE);
    CHECK_STATUS(start_with("with-1", NULL, &accepted), THOLE_OK);
    const struct message *got = next_message(before);
    CU_ASSERT(accepted && got->version == 3 && got->event_name.len == 0);
    CHECK_STATUS(start_with("with-1", NULL, &accepted), THOLE_CONFLICT);
    CHECK_STATUS(start_with("with-2", "paid", &accepted), THOLE_OK);
    got = next_message(before + 1);
    CU_ASSERT(accepted && thole_slice_equal(got->event_name, THOLE_STR("paid")));
    CU_ASSERT(thole_slice_equal(got->event_data, THOLE_STR("data")));
    CHECK_STATUS(start_with("with-3", "pa.id", &accepted), THOLE_INVALID);
    thole_start_options options = {.size = 0};
    CHECK_STATUS(thole_client_start_with(fixture.client, THOLE_STR("with-3"), THOLE_STR("order"), nothing,
                                         &options, NULL, &fixture.err),
                 THOLE_INVALID);
    options = (thole_start_options){.size = sizeof options, .event_data = THOLE_STR("x")};
    CHECK_STATUS(thole_client_start_with(fixture.client, THOLE_STR("with-3"), THOLE_STR("order"), nothing,
                                         &options, NULL, &fixture.err),
                 THOLE_INVALID);
}

/* The instance exists already: the engine takes the event, says so, and the notice may be lost. */
static void test_start_with_event_again(void)
{
    bool accepted = false;
    CU_ASSERT(fixture_started(1, "again-1", "somebody"));
    CU_ASSERT(fixture_started(1, "again-2", "somebody"));
    engine_script_mode(&fixture.script, SCRIPT_TAKE_EVENT);
    CHECK_STATUS(start_with("again-1", "paid", &accepted), THOLE_OK);
    CU_ASSERT(accepted);
    accepted = false;
    engine_script_mode(&fixture.script, SCRIPT_TAKE_EVENT_QUIETLY);
    CHECK_STATUS(start_with("again-2", "paid", &accepted), THOLE_OK);
    CU_ASSERT(accepted);
    accepted = true;
    engine_script_mode(&fixture.script, SCRIPT_SILENT);
    CHECK_STATUS(start_with("again-1", "paid", &accepted), THOLE_OK); /* stored, nobody has taken it */
    CU_ASSERT_FALSE(accepted);
    engine_script_mode(&fixture.script, SCRIPT_REJECT);
    CHECK_STATUS(start_with("again-1", "paid", &accepted), THOLE_CONFLICT);
    CU_ASSERT_PTR_NOT_NULL(strstr(fixture.err.text, "has ended"));
    engine_script_mode(&fixture.script, SCRIPT_REJECT_FULL);
    CHECK_STATUS(start_with("again-1", "paid", &accepted), THOLE_LIMIT);
    CHECK_STR("full", fixture.err.text, "the engine has rejected it: 10000 events wait (too_many)");
    CU_ASSERT_FALSE(accepted);
}

/* ---- the ends ---- */

static bool write_in(const char *id, uint64_t n, uint64_t execution, uint64_t number,
                     const struct event *event)
{
    struct turn const turn = {.instance = thole_slice_from(id),
                              .execution = execution,
                              .number = number,
                              .events = event,
                              .events_len = 1};
    return engine_script_turn(&fixture.script, 1, n, &turn);
}

static void test_ends(void)
{
    struct event const terminated = {.kind = EVENT_TERMINATED, .id = 2, .data = THOLE_STR("now")};
    struct event const failed = {.kind = EVENT_FAILED,
                                 .id = 2,
                                 .code = THOLE_APP,
                                 .data = THOLE_STR("no card"),
                                 .error_type = THOLE_STR("card_declined")};
    CU_ASSERT(fixture_started(1, "ends-1", "r") && fixture_started(1, "ends-2", "r"));
    CU_ASSERT(fixture_write(1, 2, "ends-1", 2, &terminated) && fixture_write(1, 2, "ends-2", 2, &failed));
    fixture_check("terminated", fixture_wait("ends-1", 0), "Terminated #1 now");
    fixture_check("failed", fixture_wait("ends-2", 0), "Failed #1 no card type card_declined");
}

static void test_continued(void)
{
    struct event const started = {.kind = EVENT_STARTED,
                                  .id = 1,
                                  .code = SEMANTICS_VERSION,
                                  .name = THOLE_STR("order"),
                                  .data = THOLE_STR("two"),
                                  .request_id = THOLE_STR("r")};
    struct event const continued = {.kind = EVENT_CONTINUED_AS_NEW, .id = 2, .data = THOLE_STR("two")};
    struct event const completed = {.kind = EVENT_COMPLETED, .id = 2, .data = THOLE_STR("out")};
    CU_ASSERT(fixture_started(1, "continued-1", "r"));
    CU_ASSERT(fixture_write(1, 2, "continued-1", 2, &continued));
    fixture_check("in between", fixture_wait("continued-1", 0), "TIMEOUT");
    CU_ASSERT(write_in("continued-1", 3, 2, 1, &started));
    fixture_check("goes on", fixture_wait("continued-1", 0), "TIMEOUT");
    CU_ASSERT(write_in("continued-1", 4, 2, 2, &completed));
    fixture_check("end", fixture_wait("continued-1", FIXTURE_WAIT_MS), "Completed #2 out");
    fixture_check("history", fixture_history("continued-1"),
                  "1.1 Started |2.2 ContinuedAsNew two|2/1.1 Started two|2/2.2 Completed out|");
}

/* Events that wait for an instance are no instance, and no obstacle to one. */
static void test_execution_0(void)
{
    struct event const early = {.kind = EVENT_EVENT_RECEIVED,
                                .id = 1,
                                .name = THOLE_STR("paid"),
                                .data = THOLE_STR("10"),
                                .request_id = THOLE_STR("e")};
    bool accepted = false;
    CU_ASSERT(write_in("early-1", 1, 0, 1, &early));
    fixture_check("wait", fixture_wait("early-1", 0), "NOT_FOUND");
    CHECK_STATUS(thole_client_cancel(fixture.client, THOLE_STR("early-1"), nothing, &fixture.err),
                 THOLE_NOT_FOUND);
    fixture_check("history", fixture_history("early-1"), "0/1.1 EventReceived 10|");
    engine_script_mode(&fixture.script, SCRIPT_NO_NOTICES);
    CHECK_STATUS(start_with("early-1", NULL, &accepted), THOLE_OK);
    CU_ASSERT(accepted);
    engine_script_mode(&fixture.script, SCRIPT_SILENT);
    CHECK_STATUS(start_with("early-1", NULL, &accepted), THOLE_CONFLICT);
}

/* ---- queries ---- */

struct answerer {     /* plays the owner of the only partition */
    thole_slice body; /* the answer; empty: the input, from name "echo" */
    size_t asked;
};

static void on_query(void *arg, const struct delivery *delivery)
{
    struct answerer *answerer = arg;
    struct query query;
    struct arena arena;
    struct buf body;
    arena_init(&arena, MESSAGE_BYTES_MAX);
    buf_init(&body, MESSAGE_BYTES_MAX);
    answerer->asked++;
    if (query_decode(delivery->body, &arena, &query, NULL) == THOLE_OK) {
        bool const echo = thole_slice_equal(query.name, THOLE_STR("echo"));
        struct query_answer const answer = {.status = echo ? THOLE_OK : THOLE_NOT_FOUND,
                                            .data = echo ? query.input : THOLE_STR("no such query")};
        (void)!query_answer_encode(&answer, &body);
    }
    char reply[SUBJECT_BYTES_MAX];
    (void)snprintf(reply, sizeof reply, "%.*s", THOLE_FMT(delivery->reply));
    CU_ASSERT(subject_is_reply(delivery->reply));
    (void)!connection_publish(fixture.script.connection, reply, NULL, 0,
                              answerer->body.len > 0 ? answerer->body : buf_bytes(&body), NULL);
    buf_release(&body);
    arena_release(&arena);
}

static const char *query_text(const char *id, const char *name, thole_slice input)
{
    static char text[256];
    thole_slice output = nothing;
    thole_status const status = thole_client_query(fixture.client, thole_slice_from(id),
                                                   thole_slice_from(name), input, &output, &fixture.err);
    (void)snprintf(text, sizeof text, "%s %.*s", thole_status_name(status), THOLE_FMT(output));
    if (status == THOLE_OK)
        thole_client_release(output);
    return text;
}

static void test_query_nobody(void)
{
    struct timespec const since = fixture_begin();
    fixture_check("no owner", query_text("query-1", "echo", nothing), "UNAVAILABLE ");
    CU_ASSERT(fixture_elapsed_ms(&since) < 900); /* NATS says so, no timeout does */
    CU_ASSERT_PTR_NOT_NULL(strstr(fixture.err.text, "no engine answers"));
    CU_ASSERT_PTR_NOT_NULL(strstr(fixture.err.text, "no responders"));
}

static void test_query(void)
{
    static uint8_t large[THOLE_PAYLOAD_BYTES_DEFAULT + 1];
    struct answerer answerer = {.asked = 0};
    struct subscription *subscription = NULL;
    CHECK_STATUS(connection_subscribe(fixture.script.connection, "thole.default.query.0.*.*", on_query,
                                      &answerer, &subscription, &fixture.err),
                 THOLE_OK);
    CHECK_STATUS(connection_flush(fixture.script.connection, &fixture.err), THOLE_OK);
    fixture_check("echo", query_text("a b/\xc3\xa9.*>", "echo", THOLE_STR("hello")), "OK hello");
    fixture_check("empty", query_text("query-1", "echo", nothing), "OK ");
    fixture_check("no such query", query_text("query-1", "other", nothing), "NOT_FOUND ");
    fixture_check("text", fixture.err.text, "no such query");
    fixture_check("name", query_text("query-1", "a.b", nothing), "INVALID ");
    fixture_check("id", query_text("", "echo", nothing), "INVALID ");
    fixture_check("size", query_text("query-1", "echo", (thole_slice){large, sizeof large}), "LIMIT ");
    CU_ASSERT_EQUAL(answerer.asked, 3);
    answerer.body = THOLE_STR("{\"not\":\"protobuf\"}");
    fixture_check("garbage", query_text("query-1", "echo", nothing), "CORRUPT ");
    subscription_close(subscription);
}

static const struct thole_test tests[] = {
    {"reasons", test_reasons},
    {"signal", test_signal},
    {"tokens", test_tokens},
    {"start_with", test_start_with},
    {"run with options", test_run_with},
    {"start_with_event_again", test_start_with_event_again},
    {"ends", test_ends},
    {"continued", test_continued},
    {"execution_0", test_execution_0},
    {"query_nobody", test_query_nobody},
    {"query", test_query},
};

int main(void)
{
    return fixture_run("client_requests", tests, ARRAY_LEN(tests));
}
