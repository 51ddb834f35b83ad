/* Every function of the client library against a live engine and worker. */
#include "link.h"
#include "message.h"
#include "query_message.h"
#include "reader.h"
#include "stack.h"
#include "subject.h"
#include "thole_cunit.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 20000, PARTITIONS = 8, ASKERS = 8, ASKS_EACH = 50 };

static struct stack stack;
static struct stack_program *verbs;
static thole_client *client;
static const thole_slice nothing = {NULL, 0};

static thole_slice text(const char *from)
{
    return thole_slice_from(from);
}

static void check(const char *row, const char *got, const char *want)
{
    CHECK_STR(row, got, want);
}

#define CHECK_STATUS(got, want) check(#got, thole_status_name(got), thole_status_name(want))

static void start_with(const char *id, const char *orchestration, const char *input,
                       const thole_start_options *options)
{
    bool accepted = false;
    CHECK_OK(thole_client_start_with(client, text(id), text(orchestration), text(input), options, &accepted,
                                     &stack.err),
             &stack.err);
    CU_ASSERT_TRUE(accepted);
}

static void start(const char *id, const char *orchestration, const char *input)
{
    start_with(id, orchestration, input, NULL);
}

static void signal_go(const char *id, const char *data)
{
    CHECK_OK(thole_client_signal(client, text(id), THOLE_STR("go"), text(data), nothing, NULL, &stack.err),
             &stack.err);
}

/* "Completed #1 output", "Failed #1 text (type)". Static. */
static const char *end_of(const char *id)
{
    static char said[512];
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_status const status = thole_client_wait(client, text(id), WAIT_MS, &outcome, &stack.err);
    if (status != THOLE_OK)
        (void)snprintf(said, sizeof said, "%s: %s", thole_status_name(status), stack.err.text);
    else
        (void)snprintf(said, sizeof said, "%s #%" PRIu64 " %.*s%s%.*s%s",
                       thole_instance_status_name(outcome.status), outcome.execution,
                       THOLE_FMT(outcome.output), outcome.error_type.len > 0 ? " (" : "",
                       THOLE_FMT(outcome.error_type), outcome.error_type.len > 0 ? ")" : "");
    thole_outcome_release(&outcome);
    return said;
}

/* ---- rows ---- */

struct rendered {
    char text[2048];
};

static thole_status render_row(void *arg, const thole_instance_info *info)
{
    struct rendered *r = arg;
    size_t const len = strlen(r->text);
    (void)snprintf(r->text + len, sizeof r->text - len, "%s%.*s %s v%" PRIu32 " [%.*s] <%.*s>",
                   len > 0 ? " | " : "", THOLE_FMT(info->instance), thole_instance_status_name(info->status),
                   info->version, THOLE_FMT(info->custom_status), THOLE_FMT(info->parent));
    return THOLE_OK;
}

static const char *row_of(const char *id)
{
    static struct rendered r;
    r.text[0] = '\0';
    thole_status const status = thole_client_show(client, text(id), render_row, &r, &stack.err);
    return status == THOLE_OK ? r.text : thole_status_name(status);
}

/* The projection follows. */
static void row_becomes(const char *id, const char *want)
{
    const char *row = row_of(id);
    for (int i = 0; i < 1000 && strcmp(row, want) != 0; i++, row = row_of(id))
        pause_ms(10);
    check(id, row, want); /* not read once more: it goes on following */
}

static const char *list_of(const thole_list_filter *filter)
{
    static struct rendered r;
    r.text[0] = '\0';
    CHECK_OK(thole_client_list(client, filter, render_row, &r, &stack.err), &stack.err);
    return r.text;
}

/* ---- queries ---- */

static const char *ask(const char *id, const char *name, const char *input)
{
    static char said[512];
    thole_slice output = nothing;
    thole_status const status =
        thole_client_query(client, text(id), text(name), text(input), &output, &stack.err);
    if (status == THOLE_OK)
        (void)snprintf(said, sizeof said, "%.*s", THOLE_FMT(output));
    else
        (void)snprintf(said, sizeof said, "%s", thole_status_name(status));
    thole_client_release(output);
    return said;
}

static void answer_becomes(const char *id, const char *want)
{
    for (int i = 0; i < 1000 && strcmp(ask(id, "passed", ""), want) != 0; i++)
        pause_ms(10);
    check(id, ask(id, "passed", ""), want);
}

static void test_query(void)
{
    start("query", "gate", "2");
    answer_becomes("query", "passed 0");
    signal_go("query", "a");
    answer_becomes("query", "passed 1");
    check("input", ask("query", "passed", "so far"), "passed 1 so far");
    check("no such query", ask("query", "other", ""), "NOT_FOUND");
    check("no such instance", ask("nobody", "passed", ""), "NOT_FOUND");
    check("handler says no", ask("query", "no", ""), "APP");
    check("not allowed", ask("query", "badly", ""), "INVALID");
    check("still as before", ask("query", "passed", ""), "passed 1");
    signal_go("query", "b");
    check("query", end_of("query"), "Completed #1 b");
    check("ended", ask("query", "passed", ""), "passed 2");
    check("ended, with input", ask("query", "passed", "in all"), "passed 2 in all");
    check("ended, no such query", ask("query", "other", ""), "NOT_FOUND");
    check("ended, not allowed", ask("query", "badly", ""), "INVALID");
    check("ended, about its stack", ask("query", "no", ""), "INVALID");
    check("changed nothing", stack_history(client, "query"),
          "1:Started 1:CustomStatusSet 1:EventAwaited 1:EventReceived 1:CustomStatusSet 1:EventAwaited "
          "1:EventReceived 1:Completed");
}

struct asker {
    pthread_t thread;
    size_t good;
};

static void *ask_often(void *arg)
{
    struct asker *asker = arg;
    for (int i = 0; i < ASKS_EACH; i++) {
        thole_slice output = nothing;
        if (thole_client_query(client, THOLE_STR("asked"), THOLE_STR("passed"), THOLE_STR("x"), &output,
                               NULL) == THOLE_OK &&
            thole_slice_equal(output, THOLE_STR("passed 0 x")))
            asker->good++;
        thole_client_release(output);
    }
    return NULL;
}

static void test_many_queries(void)
{
    struct asker askers[ASKERS] = {{.good = 0}};
    size_t good = 0;
    start("asked", "gate", "");
    for (size_t i = 0; i < ASKERS; i++)
        CU_ASSERT_EQUAL(pthread_create(&askers[i].thread, NULL, ask_often, &askers[i]), 0);
    for (size_t i = 0; i < ASKERS; i++) {
        pthread_join(askers[i].thread, NULL);
        good += askers[i].good;
    }
    CU_ASSERT_EQUAL(good, ASKERS * ASKS_EACH);
}

/* ---- queries that nobody with good intentions sends ---- */

struct heard {
    pthread_mutex_t lock;
    char text[1024];
};

static void on_answer(void *arg, const struct delivery *delivery)
{
    struct heard *heard = arg;
    struct query_answer answer;
    struct arena arena;
    arena_init(&arena, MESSAGE_BYTES_MAX);
    pthread_mutex_lock(&heard->lock);
    size_t const len = strlen(heard->text);
    if (query_answer_decode(delivery->body, &arena, &answer, NULL) == THOLE_OK)
        (void)snprintf(heard->text + len, sizeof heard->text - len, "%s|",
                       thole_status_name((thole_status)answer.status));
    pthread_mutex_unlock(&heard->lock);
    arena_release(&arena);
}

static void send_raw(struct connection *connection, const char *instance, const char *reply, thole_slice body)
{
    struct link *link = link_acquire(connection);
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    uint32_t const p = subject_partition(THOLE_STR("asked"), PARTITIONS);
    CU_ASSERT_EQUAL(subject_query(&subject, "default", p, THOLE_STR("passed"), text(instance), NULL),
                    THOLE_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(link);
    link_hint(link, buf_cstr(&subject), reply, body);
    link_release(link);
    buf_release(&subject);
}

static uint64_t inbox_last(struct connection *connection)
{
    struct stream_bounds bounds = {.messages = 0};
    CHECK_OK(stream_bounds(connection, "THOLE_default_IN_0", &bounds, &stack.err), &stack.err);
    return bounds.last;
}

static void heard_becomes(struct heard *heard, const char *want)
{
    bool same = false;
    for (int i = 0; i < 500 && !same; i++) {
        pause_ms(10);
        pthread_mutex_lock(&heard->lock);
        same = strcmp(heard->text, want) == 0;
        pthread_mutex_unlock(&heard->lock);
    }
    pthread_mutex_lock(&heard->lock);
    check("answers", heard->text, want);
    pthread_mutex_unlock(&heard->lock);
}

static void test_hostile_queries(void)
{
    static struct heard heard = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct connection_options const options = {
        .url = stack.nats.url, .name = "hostile", .connect_timeout_ms = 5000, .request_timeout_ms = 5000};
    struct query const query = {.instance = THOLE_STR("asked"), .name = THOLE_STR("passed")};
    struct connection *connection = NULL;
    struct subscription *subscription = NULL;
    struct buf body;
    buf_init(&body, MESSAGE_BYTES_MAX);
    CU_ASSERT_EQUAL(query_encode(&query, &body), THOLE_OK);
    CHECK_OK(connection_open(&options, &connection, &stack.err), &stack.err);
    CHECK_OK(connection_subscribe(connection, "_INBOX.hostile", on_answer, &heard, &subscription, &stack.err),
             &stack.err);
    uint64_t const before = inbox_last(connection);
    send_raw(connection, "asked", "_INBOX.hostile", THOLE_STR(""));
    send_raw(connection, "asked", "_INBOX.hostile", THOLE_STR("garbage"));
    send_raw(connection, "other", "_INBOX.hostile", buf_bytes(&body)); /* another's subject */
    send_raw(connection, "asked", "thole.default.in.0.event.item.x",
             buf_bytes(&body)); /* the engine may write there */
    send_raw(connection, "asked", NULL, buf_bytes(&body));
    send_raw(connection, "asked", "_INBOX.hostile", buf_bytes(&body));
    heard_becomes(&heard, "CORRUPT|CORRUPT|CORRUPT|OK|");
    CU_ASSERT_EQUAL(inbox_last(connection), before);
    subscription_close(subscription);
    connection_close(connection);
    buf_release(&body);
}

/* ---- events ---- */

static void test_signal(void)
{
    start("signal", "gate", "");
    signal_go("signal", "data");
    check("signal", end_of("signal"), "Completed #1 data");
    signal_go("early", "first"); /* nobody has started it */
    thole_start_options const options = {
        .size = sizeof options, .event = THOLE_STR("go"), .event_data = THOLE_STR("second")};
    start("early", "gate", "2");
    start_with("early", "gate", "2", &options); /* exists: the event alone */
    check("early", end_of("early"), "Completed #1 second");
    start_with("with", "gate", "", &options);
    check("with", end_of("with"), "Completed #1 second");
}

static thole_status start_gate(const char *id, const char *event, thole_slice data, const char *request)
{
    bool accepted = true;
    thole_start_options const options = {
        .size = sizeof options, .event = text(event), .event_data = data, .request_id = text(request)};
    thole_status const status =
        thole_client_start_with(client, text(id), text("gate"), nothing, &options, &accepted, &stack.err);
    CU_ASSERT_TRUE(status != THOLE_OK || accepted);
    return status;
}

/* The answer about the event is true: it was taken, or it was not. */
static void test_signal_with_start_is_decided(void)
{
    enum { DATA = 262144, FULL = 8 * 1024 * 1024 / DATA };
    static uint8_t const data[DATA];
    CHECK_STATUS(start_gate("decided", "go", text("in"), "one"), THOLE_OK);
    check("decided", end_of("decided"), "Completed #1 in");
    CHECK_STATUS(start_gate("decided", "go", text("late"), "two"), THOLE_CONFLICT);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "has ended; the event was dropped"));
    CHECK_STATUS(start_gate("decided", "go", text("in"), "one"), THOLE_OK); /* was taken */
    start("crowded", "gate", "2");
    CHECK_STATUS(start_gate("crowded", "go", text("first"), "of two"), THOLE_OK);
    for (int i = 0; i < FULL; i++)
        CHECK_STATUS(start_gate("crowded", "other", (thole_slice){data, DATA}, ""), THOLE_OK);
    CHECK_STATUS(start_gate("crowded", "other", text("x"), ""), THOLE_LIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "(too_many)"));
    CHECK_STATUS(start_gate("crowded", "go", text("second"), "of them"),
                 THOLE_OK); /* the instance waits for this one */
    CHECK_STATUS(start_gate("crowded", "go", text("third"), ""), THOLE_CONFLICT);
    CHECK_STATUS(start_gate("crowded", "go", text("first"), "of two"), THOLE_OK);
}

static void test_signal_once(void)
{
    start("once", "gate", "2");
    for (int i = 0; i < 3; i++)
        CHECK_OK(thole_client_signal(client, THOLE_STR("once"), THOLE_STR("go"), THOLE_STR("same"),
                                     THOLE_STR("request 1"), NULL, &stack.err),
                 &stack.err);
    answer_becomes("once", "passed 1");
    signal_go("once", "other");
    check("once", end_of("once"), "Completed #1 other");
}

static void test_raise(void)
{
    start("raised", "gate", "");
    start("raiser", "raiser", "raised");
    check("raiser", end_of("raiser"), "Completed #1 ");
    check("raised", end_of("raised"), "Completed #1 raised");
    CU_ASSERT_TRUE(stack_logged(verbs, "instance=raiser execution=1 msg=\"raises go in raised", 1, 2000));
}

/* ---- pause, terminate, cancel ---- */

static void test_pause(void)
{
    start("paused", "gate", "");
    CHECK_OK(thole_client_pause(client, THOLE_STR("paused"), THOLE_STR("look"), &stack.err), &stack.err);
    row_becomes("paused", "paused Paused v1 [waits for go 1] <>");
    signal_go("paused", "meanwhile");
    thole_outcome outcome;
    CHECK_STATUS(thole_client_wait(client, THOLE_STR("paused"), 300, &outcome, &stack.err), THOLE_TIMEOUT);
    CHECK_OK(thole_client_resume(client, THOLE_STR("paused"), nothing, &stack.err), &stack.err);
    check("resumed", end_of("paused"), "Completed #1 meanwhile");
    CHECK_STATUS(thole_client_pause(client, THOLE_STR("nobody"), nothing, &stack.err), THOLE_NOT_FOUND);
    CHECK_STATUS(thole_client_resume(client, THOLE_STR("nobody"), nothing, &stack.err), THOLE_NOT_FOUND);
}

typedef thole_status asks_fn(thole_client *asker, thole_slice instance, thole_slice reason,
                             thole_error *reterr);

static void conflicts(asks_fn *call, const char *id, const char *with)
{
    CHECK_STATUS(call(client, text(id), nothing, &stack.err), THOLE_CONFLICT);
    if (strstr(stack.err.text, with) == NULL)
        printf("  got %s\n", stack.err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, with));
}

/* A request that would change nothing is no success; a request right after another one is not checked against
 * the state before that. */
static void test_what_changes_nothing(void)
{
    start("nothing", "gate", "");
    row_becomes("nothing", "nothing Running v1 [waits for go 1] <>");
    conflicts(thole_client_retry, "nothing", "is not Stuck, so there is nothing to try again; it runs");
    conflicts(thole_client_resume, "nothing", "is not paused, so there is nothing to resume; it runs");
    for (int i = 0; i < 5; i++) {
        CHECK_OK(thole_client_pause(client, text("nothing"), text("look"), &stack.err), &stack.err);
        CHECK_OK(thole_client_resume(client, text("nothing"), nothing, &stack.err), &stack.err);
    }
    CHECK_OK(thole_client_pause(client, text("nothing"), text("look"), &stack.err), &stack.err);
    for (int i = 0; i < 1000 && strstr(stack_history(client, "nothing"), "14:Paused") == NULL; i++)
        pause_ms(10); /* the sixth: the row was Paused before */
    conflicts(thole_client_pause, "nothing",
              "is paused already: nothing was changed. It is paused (look): thole resume");
    conflicts(thole_client_retry, "nothing", "is not Stuck");
    CHECK_OK(thole_client_resume(client, text("nothing"), nothing, &stack.err), &stack.err);
    signal_go("nothing", "end");
    check("nothing", end_of("nothing"), "Completed #1 end");
    conflicts(thole_client_resume, "nothing", "ended as Completed");
    start("no-code", "nobody-has-it", "");
    row_becomes("no-code", "no-code Waiting v0 [] <>");
    conflicts(thole_client_resume, "no-code", "it waits for code (engine verbs-1, which owned partition");
    conflicts(thole_client_retry, "no-code",
              "is not Stuck, so there is nothing to try again; it waits for code");
    CHECK_OK(thole_client_terminate(client, text("no-code"), nothing, &stack.err), &stack.err);
}

static void test_terminate(void)
{
    start("terminated", "gate", "");
    CHECK_OK(thole_client_terminate(client, THOLE_STR("terminated"), THOLE_STR("at once"), &stack.err),
             &stack.err);
    check("terminated", end_of("terminated"), "Terminated #1 at once");
    CHECK_STATUS(thole_client_terminate(client, THOLE_STR("terminated"), THOLE_STR("again"), &stack.err),
                 THOLE_CONFLICT);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "ended as Terminated at "));
    check("the first counts", end_of("terminated"), "Terminated #1 at once");
    CHECK_STATUS(thole_client_terminate(client, THOLE_STR("nobody"), nothing, &stack.err), THOLE_NOT_FOUND);
    row_becomes("terminated", "terminated Terminated v1 [waits for go 1] <>");
}

static void test_cancel(void)
{
    start("cancelled", "gate", "");
    CHECK_OK(thole_client_cancel(client, THOLE_STR("cancelled"), THOLE_STR("no more"), &stack.err),
             &stack.err);
    check("cancelled", end_of("cancelled"), "Cancelled #1 no more");
}

/* The answer to the first was lost: who repeats it under its id learns that it was done, not that it cannot
 * be. */
static void test_repeated_end(void)
{
    thole_end_options const cancel = {
        .size = sizeof cancel, .reason = THOLE_STR("no more"), .request_id = THOLE_STR("c-1")};
    thole_end_options const terminate = {
        .size = sizeof terminate, .reason = THOLE_STR("at once"), .request_id = THOLE_STR("t-1")};
    thole_end_options const unset = {.size = 0};
    thole_slice const cancelled = THOLE_STR("cancelled-by-1"), terminated = THOLE_STR("terminated-by-1");
    start("cancelled-by-1", "gate", "");
    start("terminated-by-1", "gate", "");
    CHECK_OK(thole_client_cancel_with(client, cancelled, &cancel, &stack.err), &stack.err);
    CHECK_OK(thole_client_terminate_with(client, terminated, &terminate, &stack.err), &stack.err);
    check("cancelled", end_of("cancelled-by-1"), "Cancelled #1 no more");
    check("terminated", end_of("terminated-by-1"), "Terminated #1 at once");
    CHECK_OK(thole_client_cancel_with(client, cancelled, &cancel, &stack.err), &stack.err);
    CHECK_OK(thole_client_terminate_with(client, terminated, &terminate, &stack.err), &stack.err);
    CHECK_STATUS(thole_client_cancel_with(client, terminated, &cancel, &stack.err), THOLE_CONFLICT);
    CHECK_STATUS(thole_client_terminate_with(client, cancelled, NULL, &stack.err), THOLE_CONFLICT);
    CHECK_STATUS(thole_client_cancel_with(client, cancelled, &unset, &stack.err), THOLE_INVALID);
    check("cancelled once", end_of("cancelled-by-1"), "Cancelled #1 no more");
}

static thole_status note_sender(void *arg, const thole_history_event *event)
{
    struct buf *const to = arg;
    if (event->actor.len + event->client.len + event->traceparent.len > 0)
        buf_printf(to, "%s: %.*s, %.*s, %.*s; ", event->kind, THOLE_FMT(event->actor),
                   THOLE_FMT(event->client), THOLE_FMT(event->traceparent));
    return THOLE_OK;
}

/* A service that acts for its users says for each request who asks. */
static void test_senders(void)
{
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    static uint8_t large[201];
    memset(large, 'x', sizeof large);
    thole_slice const id = THOLE_STR("acted-for");
    thole_sender const anna = {.actor = THOLE_STR("anna"), .client_name = THOLE_STR("desk 7")};
    thole_start_options const begin = {.size = sizeof begin, .sender = anna, .traceparent = THOLE_STR(TRACE)};
    thole_signal_options const say = {
        .size = sizeof say, .sender = {.client_name = THOLE_STR("desk 8"), .traceparent = THOLE_STR(TRACE)}};
    thole_signal_options const unset = {.size = 0};
    thole_end_options end = {.size = sizeof end, .sender = anna};
    struct buf said;
    buf_init(&said, 4096);
    CHECK_OK(thole_client_start_with(client, id, THOLE_STR("gate"), THOLE_STR("2"), &begin, NULL, &stack.err),
             &stack.err);
    CHECK_OK(thole_client_signal_with(client, id, THOLE_STR("go"), nothing, &say, NULL, &stack.err),
             &stack.err);
    CHECK_OK(thole_client_cancel_with(client, id, &end, &stack.err), &stack.err);
    check("cancelled", end_of("acted-for"), "Cancelled #1 ");
    CHECK_OK(thole_client_history(client, id, note_sender, &said, &stack.err), &stack.err);
    check("senders", buf_cstr(&said),
          "Started: anna, desk 7, " TRACE "; EventReceived: , desk 8, " TRACE
          "; CancelRequested: anna, desk 7, ; ");
    CHECK_STATUS(thole_client_signal_with(client, id, THOLE_STR("go"), nothing, &unset, NULL, &stack.err),
                 THOLE_INVALID);
    end.sender.actor = (thole_slice){large, sizeof large};
    CHECK_STATUS(thole_client_cancel_with(client, id, &end, &stack.err), THOLE_INVALID);
    end.sender.actor = THOLE_STR("\xff");
    CHECK_STATUS(thole_client_cancel_with(client, id, &end, &stack.err), THOLE_INVALID);
    buf_release(&said);
}

/* A request to an instance that has ended is told so, and the history stays as it was. An event that it has
 * taken is no error: the first answer may have been lost. */
static void test_ended(void)
{
    thole_slice const id = THOLE_STR("over"), go = THOLE_STR("go");
    bool kept = true;
    start("over", "gate", "2");
    CHECK_OK(thole_client_signal(client, id, go, nothing, THOLE_STR("first"), &kept, &stack.err), &stack.err);
    CU_ASSERT_FALSE(kept);
    CHECK_OK(thole_client_signal(client, id, go, THOLE_STR("done"), THOLE_STR("second"), NULL, &stack.err),
             &stack.err);
    check("ended", end_of("over"), "Completed #1 done");
    CHECK_STATUS(thole_client_cancel(client, id, nothing, &stack.err), THOLE_CONFLICT);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "instance \"over\" ended as Completed at 20"));
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "nothing was cancelled"));
    CHECK_STATUS(thole_client_terminate(client, id, nothing, &stack.err), THOLE_CONFLICT);
    CHECK_STATUS(thole_client_pause(client, id, nothing, &stack.err), THOLE_CONFLICT);
    CHECK_STATUS(thole_client_resume(client, id, nothing, &stack.err), THOLE_CONFLICT);
    CHECK_STATUS(thole_client_signal(client, id, go, nothing, nothing, NULL, &stack.err), THOLE_CONFLICT);
    CHECK_STATUS(thole_client_signal(client, id, go, nothing, THOLE_STR("third"), NULL, &stack.err),
                 THOLE_CONFLICT);
    CHECK_OK(thole_client_signal(client, id, go, nothing, THOLE_STR("first"), &kept, &stack.err), &stack.err);
    CU_ASSERT_FALSE(kept);
    check("still", end_of("over"), "Completed #1 done");
    CHECK_OK(thole_client_signal(client, THOLE_STR("not-yet"), go, nothing, nothing, &kept, &stack.err),
             &stack.err);
    CU_ASSERT_TRUE(kept);
}

/* ---- children, long lives, versions ---- */

static void test_child(void)
{
    start("parent", "parent", "");
    row_becomes("parent-child", "parent-child Running v1 [waits for go 1] <parent>");
    thole_list_filter const children = {.size = sizeof children, .parent = THOLE_STR("parent")};
    check("children", list_of(&children), "parent-child Running v1 [waits for go 1] <parent>");
    signal_go("parent-child", "from below");
    check("parent", end_of("parent"), "Completed #1 from below");
}

static void test_continue_as_new(void)
{
    start("counter", "counter", "");
    for (int i = 0; i < 3; i++)
        CHECK_OK(thole_client_signal(client, THOLE_STR("counter"), THOLE_STR("add"), nothing, nothing, NULL,
                                     &stack.err),
                 &stack.err);
    check("the last execution", end_of("counter"), "Completed #3 +++");
    CU_ASSERT_PTR_NOT_NULL(strstr(stack_history(client, "counter"), "1:ContinuedAsNew 2:Started"));
    CU_ASSERT_PTR_NOT_NULL(strstr(stack_history(client, "counter"), "3:Completed"));
}

static void test_versions(void)
{
    thole_start_options const old = {.size = sizeof old, .version = 1};
    thole_start_options const unknown = {.size = sizeof unknown, .version = 7};
    start_with("version-1", "versioned", "", &old);
    start("version-newest", "versioned", "");
    start_with("version-7", "versioned", "", &unknown);
    signal_go("version-1", "");
    check("one", end_of("version-1"), "Completed #1 one");
    check("newest", end_of("version-newest"), "Completed #1 two");
    row_becomes("version-newest", "version-newest Completed v2 [] <>");
    row_becomes("version-7", "version-7 Waiting v7 [] <>");
    CHECK_OK(thole_client_terminate(client, THOLE_STR("version-7"), nothing, &stack.err), &stack.err);
    check("terminated without code", end_of("version-7"), "Terminated #1 ");
}

/* ---- the ends of activities ---- */

/* The last token that was given out. Static. */
static thole_slice token(size_t number)
{
    static char line[512];
    FILE *from = NULL;
    for (int i = 0; i < 1000; i++) {
        size_t n = 0;
        from = fopen(getenv("VERBS_TOKENS"), "r");
        while (from != NULL && n < number && fgets(line, sizeof line, from) != NULL)
            n++;
        if (from != NULL)
            (void)fclose(from);
        if (n == number)
            break;
        pause_ms(10);
    }
    line[strcspn(line, "\n")] = '\0';
    return text(line);
}

static void test_complete(void)
{
    start("outside-1", "outside", "");
    thole_slice const first = token(1);
    CHECK_OK(thole_client_complete(client, first, THOLE_STR("approved"), &stack.err), &stack.err);
    check("completed", end_of("outside-1"), "Completed #1 approved");
    CHECK_OK(thole_client_complete(client, first, THOLE_STR("too late"), &stack.err), &stack.err);
    start("outside-2", "outside", "");
    CHECK_OK(
        thole_client_fail(client, token(2), THOLE_STR("refused"), THOLE_STR("not this time"), &stack.err),
        &stack.err);
    check("failed", end_of("outside-2"), "Failed #1 outside said: not this time (refused)");
    CHECK_STATUS(thole_client_complete(client, THOLE_STR("no token"), nothing, &stack.err), THOLE_INVALID);
}

/* A name that no engine knows is refused where that is asked for, and starts nothing. */
static void test_require_known(void)
{
    thole_start_options options = {.size = sizeof options, .require_known = true};
    thole_outcome outcome;
    CHECK_STATUS(thole_client_start_with(client, THOLE_STR("known-1"), THOLE_STR("faling"), nothing, &options,
                                         NULL, &stack.err),
                 THOLE_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "did you mean failing?"));
    CHECK_STATUS(thole_client_run_with(client, THOLE_STR("known-1"), THOLE_STR("faling"), nothing, &options,
                                       WAIT_MS, &outcome, &stack.err),
                 THOLE_NOT_FOUND);
    CHECK_STATUS(thole_client_wait(client, THOLE_STR("known-1"), 0, &outcome, &stack.err), THOLE_NOT_FOUND);
    options.version = 9;
    CHECK_STATUS(thole_client_start_with(client, THOLE_STR("known-1"), THOLE_STR("failing"), nothing,
                                         &options, NULL, &stack.err),
                 THOLE_NOT_FOUND);
    options.version = 0;
    CHECK_OK(thole_client_run_with(client, THOLE_STR("known-1"), THOLE_STR("failing"), THOLE_STR("x"),
                                   &options, WAIT_MS, &outcome, &stack.err),
             &stack.err);
    CU_ASSERT_EQUAL(outcome.status, THOLE_INSTANCE_FAILED);
    thole_outcome_release(&outcome);
}

static void test_failure(void)
{
    thole_outcome outcome;
    CHECK_OK(thole_client_run(client, THOLE_STR("failing"), THOLE_STR("failing"), THOLE_STR("4711"), WAIT_MS,
                              &outcome, &stack.err),
             &stack.err);
    CU_ASSERT_EQUAL(outcome.status, THOLE_INSTANCE_FAILED);
    CU_ASSERT(thole_slice_equal(outcome.output, THOLE_STR("no card for 4711")));
    CU_ASSERT(thole_slice_equal(outcome.error_type, THOLE_STR("card_declined")));
    thole_outcome_release(&outcome);
}

/* ---- lists ---- */

static void test_list(void)
{
    start("list-a", "gate", "");
    row_becomes("list-a", "list-a Running v1 [waits for go 1] <>");
    pause_ms(2); /* of two in the same millisecond none is newer */
    start("list-b", "gate", "");
    row_becomes("list-b", "list-b Running v1 [waits for go 1] <>");
    thole_list_filter filter = {.size = sizeof filter, .id_prefix = THOLE_STR("list-")};
    check("newest first", list_of(&filter),
          "list-b Running v1 [waits for go 1] <> | list-a Running v1 [waits for go 1] <>");
    filter.limit = 1;
    check("limit", list_of(&filter), "list-b Running v1 [waits for go 1] <>");
    filter.limit = 0;
    filter.orchestration = THOLE_STR("counter");
    check("orchestration", list_of(&filter), "");
    filter.orchestration = THOLE_STR("gate");
    filter.status = THOLE_INSTANCE_PAUSED;
    check("status", list_of(&filter), "");
    filter.status = THOLE_INSTANCE_RUNNING;
    filter.created_before_ms = 1000;
    check("before", list_of(&filter), "");
    filter.created_before_ms = 0;
    filter.created_after_ms = UINT64_C(4000000000000);
    check("after", list_of(&filter), "");
}

/* ---- without an owner: last ---- */

static void test_nobody_owns_it(void)
{
    start("alone", "gate", "");
    answer_becomes("alone", "passed 0");
    CU_ASSERT_EQUAL(stack_terminate(verbs, 20000), 0);
    uint64_t const since = now_us();
    check("no owner", ask("alone", "passed", ""), "UNAVAILABLE");
    CU_ASSERT(now_us() - since < 1500000); /* NATS says it, nothing has to time out */
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "no responders"));
    signal_go("alone", "later"); /* stored, and taken when an engine comes */
    verbs = stack_program_of(&stack, "program_verbs", "verbs", "run");
    check("a new owner", end_of("alone"), "Completed #1 later");
}

/* An engine that knows only the first version, then one that knows both: what needs the second moves there.
 */
static void test_versions_move(void)
{
    thole_start_options const second = {.size = sizeof second, .version = 2};
    CU_ASSERT_EQUAL(stack_terminate(verbs, WAIT_MS), 0);
    setenv("VERBS_OLD", "1", 1);
    struct stack_program *old = stack_program_of(&stack, "program_verbs", "old", "engine");
    CU_ASSERT_TRUE(stack_logged(old, "open, epoch", PARTITIONS, WAIT_MS));
    start_with("moves", "versioned", "", &second);
    row_becomes("moves", "moves Waiting v2 [] <>");
    unsetenv("VERBS_OLD");
    verbs = stack_program_of(&stack, "program_verbs", "verbs", "run");
    check("moved", end_of("moves"), "Completed #1 two");
    CU_ASSERT_EQUAL(stack_terminate(old, WAIT_MS), 0);
}

static struct stack_program *engine_with(const char *name, const char *setting)
{
    CU_ASSERT_EQUAL(stack_terminate(verbs, WAIT_MS), 0);
    if (setting != NULL)
        setenv(setting, "1", 1);
    verbs = stack_program_of(&stack, "program_verbs", name, "run");
    if (setting != NULL)
        unsetenv(setting);
    CU_ASSERT_TRUE(stack_logged(verbs, "open, epoch", PARTITIONS, WAIT_MS));
    return verbs;
}

static bool has_events(const char *id, const char *want)
{
    for (int i = 0; i < 1000 && strcmp(stack_history(client, id), want) != 0; i++)
        pause_ms(10);
    check(id, stack_history(client, id), want);
    return strcmp(stack_history(client, id), want) == 0;
}

/* An engine whose code differs stops that instance, says where, changes nothing of it, and serves the others;
 * one that lacks the code waits. With the right code it goes on, with the messages that came meanwhile. */
static void test_right_code(void)
{
    static const char before[] = "1:Started 1:ActivityScheduled 1:ActivityCompleted 1:EventAwaited";
    static const char kept[] =
        "1:Started 1:ActivityScheduled 1:ActivityCompleted 1:EventAwaited 1:EventReceived";
    const char *const ids[] = {"halts-differs", "halts-without"}, *const rows[] = {"Stuck", "Waiting"};
    const char *const settings[] = {"VERBS_CHANGED", "VERBS_WITHOUT"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        char row[64], other[64];
        start(ids[i], "halts", "in");
        CU_ASSERT_TRUE(has_events(ids[i], before));
        (void)engine_with(settings[i], settings[i]);
        signal_go(ids[i], "meanwhile");
        (void)snprintf(row, sizeof row, "%s %s v1 [] <>", ids[i], rows[i]);
        row_becomes(ids[i], row);
        (void)snprintf(other, sizeof other, "beside-%zu", i);
        start(other, "counter", "");
        for (int k = 0; k < 3; k++)
            CHECK_OK(thole_client_signal(client, text(other), THOLE_STR("add"), nothing, nothing, NULL,
                                         &stack.err),
                     &stack.err);
        check("beside", end_of(other), "Completed #3 +++");
        CU_ASSERT_TRUE(has_events(ids[i], kept));
        (void)engine_with("right", NULL);
        check("goes on", end_of(ids[i]), "Completed #1 meanwhile");
        CU_ASSERT_TRUE(has_events(ids[i],
                                  "1:Started 1:ActivityScheduled 1:ActivityCompleted 1:EventAwaited "
                                  "1:EventReceived 1:ActivityScheduled 1:ActivityCompleted 1:Completed"));
    }
}

static const struct thole_test tests[] = {
    {"query", test_query},
    {"many_queries", test_many_queries},
    {"hostile_queries", test_hostile_queries},
    {"signal", test_signal},
    {"signal_with_start_is_decided", test_signal_with_start_is_decided},
    {"signal_once", test_signal_once},
    {"raise", test_raise},
    {"pause", test_pause},
    {"what_changes_nothing", test_what_changes_nothing},
    {"terminate", test_terminate},
    {"ended", test_ended},
    {"cancel", test_cancel},
    {"repeated_end", test_repeated_end},
    {"senders", test_senders},
    {"child", test_child},
    {"continue_as_new", test_continue_as_new},
    {"versions", test_versions},
    {"complete", test_complete},
    {"failure", test_failure},
    {"require known", test_require_known},
    {"list", test_list},
    {"nobody_owns_it", test_nobody_owns_it},
    {"right_code", test_right_code},
    {"versions_move", test_versions_move},
};

int main(void)
{
    char tokens[256];
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    (void)snprintf(tokens, sizeof tokens, "%s/verbs", stack.dir);
    setenv("VERBS_TOKENS", tokens, 1);
    unsetenv("VERBS_CHANGED");
    unsetenv("VERBS_OLD");
    unsetenv("VERBS_WITHOUT");
    verbs = stack_program_of(&stack, "program_verbs", "verbs", "run");
    client = stack_client(&stack);
    (void)stack_logged(verbs, "open, epoch", PARTITIONS, WAIT_MS); /* so that starts are accepted at once */
    int const failed = thole_run_suite("verbs", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
