/*
 * The client library at its edges: payloads of exactly as much as is allowed, who is listed as an engine, a
 * wait over a lost connection, and how often it asks while it waits.
 */
#include "client_fixture.h"
#include "nodes.h"
#include "query_message.h"
#include "subject.h"
#include "tcp_proxy.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { PAYLOAD = THOLE_PAYLOAD_BYTES_DEFAULT };

static const thole_slice nothing = {NULL, 0};

static void nap_ms(unsigned ms)
{
    (void)usleep(ms * 1000);
}

/* ---- counting sent messages ---- */

struct listener {
    struct subscription *subscription;
    atomic_size_t seen;
    const struct query_answer *answer; /* NULL: none */
};

static void on_message(void *arg, const struct delivery *delivery)
{
    struct listener *listener = arg;
    char reply[SUBJECT_BYTES_MAX];
    struct buf body;
    listener->seen++;
    if (listener->answer == NULL)
        return;
    buf_init(&body, MESSAGE_BYTES_MAX);
    (void)snprintf(reply, sizeof reply, "%.*s", THOLE_FMT(delivery->reply));
    (void)!query_answer_encode(listener->answer, &body);
    (void)!connection_publish(fixture.script.connection, reply, NULL, 0, buf_bytes(&body), NULL);
    buf_release(&body);
}

static void listen_to(struct listener *listener, const char *subject)
{
    CHECK_STATUS(connection_subscribe(fixture.script.connection, subject, on_message, listener,
                                      &listener->subscription, &fixture.err),
                 THOLE_OK);
    CHECK_STATUS(connection_flush(fixture.script.connection, &fixture.err), THOLE_OK);
}

/* ---- payloads ---- */

static thole_status send_payload(unsigned way, thole_slice payload)
{
    static unsigned number;
    char id[32], token[96];
    (void)snprintf(id, sizeof id, "full-%u", ++number);
    (void)snprintf(token, sizeof token, "0.1.2.1.0123456789abcdef0123456789abcdef.%s", id);
    thole_slice const instance = thole_slice_from(id);
    thole_start_options const with = {.size = sizeof with, .event = THOLE_STR("paid"), .event_data = payload};
    switch (way) {
    case 0:
        return thole_client_start(fixture.client, instance, THOLE_STR("order"), payload, NULL, &fixture.err);
    case 1:
        return thole_client_start_with(fixture.client, instance, THOLE_STR("order"), nothing, &with, NULL,
                                       &fixture.err);
    case 2:
        return thole_client_signal(fixture.client, instance, THOLE_STR("paid"), payload, nothing, NULL,
                                   &fixture.err);
    case 3: return thole_client_complete(fixture.client, thole_slice_from(token), payload, &fixture.err);
    default:
        return thole_client_fail(fixture.client, thole_slice_from(token), nothing, payload, &fixture.err);
    }
}

static void test_payloads(void)
{
    static const char *const ways[] = {"start", "event of a start", "signal", "complete", "fail"};
    static uint8_t bytes[PAYLOAD + 1];
    memset(bytes, 'x', sizeof bytes);
    engine_script_mode(&fixture.script, SCRIPT_COMPLETE);
    for (unsigned way = 0; way < ARRAY_LEN(ways); way++) {
        size_t const before = engine_script_messages(&fixture.script);
        fixture_check(ways[way], thole_status_name(send_payload(way, (thole_slice){bytes, PAYLOAD + 1})),
                      "LIMIT");
        CU_ASSERT_EQUAL(engine_script_messages(&fixture.script), before);
        fixture_check(ways[way], thole_status_name(send_payload(way, (thole_slice){bytes, PAYLOAD})), "OK");
        CU_ASSERT(engine_script_seen(&fixture.script, before + 1));
    }
    engine_script_mode(&fixture.script, SCRIPT_SILENT);
}

/* ---- engines ---- */

static void put_node(const char *name, uint64_t started_ms, const thole_slice *orchestrations, size_t n)
{
    struct heartbeat const heartbeat = {.node = thole_slice_from(name),
                                        .started_ms = started_ms,
                                        .orchestrations = orchestrations,
                                        .orchestrations_len = n};
    struct buf body;
    buf_init(&body, MESSAGE_BYTES_MAX);
    CHECK_STATUS(heartbeat_encode(&heartbeat, &body), THOLE_OK);
    CHECK_STATUS(nodes_put(fixture.script.connection, "default", thole_slice_from(name), buf_bytes(&body),
                           &fixture.err),
                 THOLE_OK);
    buf_release(&body);
}

struct listed {
    char text[512];
    unsigned left; /* rows until the callback refuses; 0: never */
};

static thole_status list_engine(void *arg, const thole_engine_info *engine)
{
    struct listed *listed = arg;
    size_t len = strlen(listed->text);
    len += (size_t)snprintf(listed->text + len, sizeof listed->text - len, "%.*s %" PRIu64,
                            THOLE_FMT(engine->node), engine->started_ms);
    for (size_t i = 0; i < engine->orchestrations_len; i++)
        len += (size_t)snprintf(listed->text + len, sizeof listed->text - len, " %.*s",
                                THOLE_FMT(engine->orchestrations[i]));
    (void)snprintf(listed->text + len, sizeof listed->text - len, "|");
    return listed->left > 0 && --listed->left == 0 ? THOLE_APP : THOLE_OK;
}

/* The live engines, by the last message of each; without those that have left, and without unreadable
 * ones. */
static void test_engines(void)
{
    static const thole_slice names[] = {{(const uint8_t *)"order", 5}, {(const uint8_t *)"order@2", 7}};
    struct listed listed = {.left = 0};
    CHECK_STATUS(thole_client_engines(fixture.client, list_engine, &listed, &fixture.err), THOLE_OK);
    fixture_check("none", listed.text, "");
    put_node("first", 1, names, 1);
    put_node("second", 2, names, 2);
    put_node("first", 3, names, 1);
    put_node("leaves", 4, names, 1);
    CHECK_STATUS(nodes_delete(fixture.script.connection, "default", THOLE_STR("leaves"), &fixture.err),
                 THOLE_OK);
    CHECK_STATUS(nodes_put(fixture.script.connection, "default", THOLE_STR("newer"), THOLE_STR("\xff\xff"),
                           &fixture.err),
                 THOLE_OK);
    put_node("last", 5, NULL, 0);
    CHECK_STATUS(thole_client_engines(fixture.client, list_engine, &listed, &fixture.err), THOLE_OK);
    fixture_check("three", listed.text, "second 2 order order@2|first 3 order|last 5|");
    listed = (struct listed){.left = 2};
    CHECK_STATUS(thole_client_engines(fixture.client, list_engine, &listed, &fixture.err), THOLE_APP);
    fixture_check("refused", listed.text, "second 2 order order@2|first 3 order|");
}

/* ---- how often it asks ---- */

/* A partition that is being handed over: the query is asked again now and then, not all the time. */
static void test_query_again(void)
{
    struct query_answer const answer = {.status = THOLE_UNAVAILABLE, .data = THOLE_STR("handed over")};
    struct listener listener = {.answer = &answer};
    thole_slice output = nothing;
    struct timespec const since = fixture_begin();
    listen_to(&listener, "thole.default.query.0.*.*");
    CHECK_STATUS(thole_client_query(fixture.client, THOLE_STR("moves"), THOLE_STR("echo"), nothing, &output,
                                    &fixture.err),
                 THOLE_UNAVAILABLE);
    uint64_t const took_ms = fixture_elapsed_ms(&since);
    CU_ASSERT(listener.seen >= 2 && listener.seen <= 2 + took_ms / 10);
    CU_ASSERT(took_ms < FIXTURE_TIMEOUT_MS + 1000);
    if (listener.seen > 2 + took_ms / 10)
        fprintf(stderr, "\n  asked %zu times in %" PRIu64 " ms\n", (size_t)listener.seen, took_ms);
    subscription_close(listener.subscription);
}

struct runner {
    thole_status status;
    thole_outcome outcome;
};

static void *run_one(void *arg)
{
    struct runner *runner = arg;
    runner->status = thole_client_run(fixture.client, THOLE_STR("own"), THOLE_STR("order"), nothing,
                                      FIXTURE_WAIT_MS, &runner->outcome, NULL);
    return NULL;
}

/* The start was refused because it came twice: the instance is this start's own. That is looked at once, and
 * its end is waited for, without one look after the other. */
static void test_refused_as_a_repetition(void)
{
    struct event const completed = {.kind = EVENT_COMPLETED, .id = 2, .data = THOLE_STR("done")};
    struct listener looks = {.answer = NULL};
    struct runner runner = {.status = THOLE_APP};
    pthread_t thread;
    char request[128];
    engine_script_mode(&fixture.script, SCRIPT_SILENT);
    size_t const before = engine_script_messages(&fixture.script);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, run_one, &runner), 0);
    CU_ASSERT(engine_script_seen(&fixture.script, before + 1));
    pthread_mutex_lock(&fixture.script.lock);
    (void)snprintf(request, sizeof request, "%.*s", THOLE_FMT(fixture.script.last.request_id));
    pthread_mutex_unlock(&fixture.script.lock);
    CU_ASSERT(fixture_started(1, "own", request));
    engine_script_notice(&fixture.script, "rejected", THOLE_STR("own"), thole_slice_from(request), nothing);
    nap_ms(400);
    listen_to(&looks, "$JS.API.STREAM.MSG.GET.THOLE_default_HIST_0");
    nap_ms(600);
    if (looks.seen > 3)
        fprintf(stderr, "\n  %zu looks\n", (size_t)looks.seen);
    CU_ASSERT(looks.seen <= 3);
    subscription_close(looks.subscription);
    CU_ASSERT(fixture_write(1, 2, "own", 2, &completed));
    engine_script_notice(&fixture.script, "completed", THOLE_STR("own"), thole_slice_from(request),
                         THOLE_STR("done"));
    (void)pthread_join(thread, NULL);
    fixture_check("its end", fixture_outcome(runner.status, &runner.outcome), "Completed #1 done");
}

/* ---- a connection that is lost ---- */

struct waiter {
    thole_client *client;
    atomic_bool ended;
    char outcome[64];
};

static void *wait_for_end(void *arg)
{
    struct waiter *waiter = arg;
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_status const status =
        thole_client_wait(waiter->client, THOLE_STR("cut-off"), FIXTURE_WAIT_MS, &outcome, NULL);
    (void)snprintf(waiter->outcome, sizeof waiter->outcome, "%s %.*s", thole_status_name(status),
                   THOLE_FMT(outcome.output));
    if (status == THOLE_OK)
        thole_outcome_release(&outcome);
    waiter->ended = true;
    return NULL;
}

/* The instance ends while no notice can reach the client: the client looks when it is connected again, and
 * does not wait for its next look, which comes every five seconds. */
static void test_wait_over_a_cut(void)
{
    enum { SOON_MS = 3000 };
    struct event const completed = {.kind = EVENT_COMPLETED, .id = 2, .data = THOLE_STR("done")};
    struct waiter waiter = {.ended = false};
    thole_client_options options;
    char url[64];
    pthread_t thread;
    struct tcp_proxy *const proxy = tcp_proxy_start(fixture.server.port);
    CU_ASSERT_PTR_NOT_NULL_FATAL(proxy);
    (void)snprintf(url, sizeof url, "nats://127.0.0.1:%u", tcp_proxy_port(proxy));
    thole_client_options_init(&options);
    options.nats_url = url;
    options.timeout_ms = FIXTURE_TIMEOUT_MS;
    CHECK_STATUS(thole_client_open(&options, &waiter.client, &fixture.err), THOLE_OK);
    CU_ASSERT(fixture_started(1, "cut-off", "r"));
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_for_end, &waiter), 0);
    nap_ms(1200); /* the first looks are over */
    tcp_proxy_cut(proxy);
    CU_ASSERT(fixture_write(1, 2, "cut-off", 2, &completed));
    engine_script_notice(&fixture.script, "completed", THOLE_STR("cut-off"), THOLE_STR("r"), nothing);
    nap_ms(200);
    struct timespec const since = fixture_begin();
    tcp_proxy_heal(proxy);
    while (!waiter.ended && fixture_elapsed_ms(&since) < SOON_MS)
        nap_ms(10);
    CU_ASSERT(waiter.ended);
    (void)pthread_join(thread, NULL);
    fixture_check("its end", waiter.outcome, "OK done");
    thole_client_close(waiter.client);
    tcp_proxy_stop(proxy);
}

static const struct thole_test tests[] = {{"engines", test_engines},
                                          {"payloads", test_payloads},
                                          {"query again", test_query_again},
                                          {"refused as a repetition", test_refused_as_a_repetition},
                                          {"wait over a cut", test_wait_over_a_cut}};

int main(void)
{
    return fixture_run("client_edges", tests, ARRAY_LEN(tests));
}
