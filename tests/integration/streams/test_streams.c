/* Connections, requests in flight, core subscriptions and notices, against a real server that is also killed.
 */
#include "event.h"
#include "notice.h"
#include "reader.h"
#include "server_process.h"
#include "streams_fixture.h"
#include "subject.h"
#include <arpa/inet.h>
#include <unistd.h>

/* ---- connecting ---- */

static thole_status try_open(const char *url, const char *creds, thole_error *err)
{
    struct connection *connection = NULL;
    struct connection_options const options = {
        .url = url, .creds = creds, .name = "test", .connect_timeout_ms = 1000, .request_timeout_ms = 1000};
    thole_status const status = connection_open(&options, &connection, err);
    connection_close(connection);
    return status;
}

static void test_open_and_what_the_server_says(void)
{
    char urls[256];
    struct connection *connection = connect_here();
    thole_error err = {0};
    CU_ASSERT_EQUAL(connection_epoch(connection), 1);
    CU_ASSERT_EQUAL(connection_max_payload(connection), 1024 * 1024);
    CU_ASSERT(connection_server_version(connection).len >= 5);
    CHECK_OK(connection_flush(connection, &err), &err);
    connection_close(connection);
    connection_close(NULL);
    snprintf(urls, sizeof urls, "nats://127.0.0.1:1, 127.0.0.1:%u", fixture_server.port);
    CHECK_OK(try_open(urls, NULL, &err), &err);
}

static void test_open_refusals(void)
{
    static const struct {
        const char *url, *creds;
        thole_status want;
        const char *text;
    } rows[] = {
        {"nats://127.0.0.1:1", NULL, THOLE_UNAVAILABLE, "127.0.0.1:1"},
        {"nats://user:geheim@127.0.0.1:1", NULL, THOLE_UNAVAILABLE, "127.0.0.1:1"},
        {"nats://user:geheim@127.0.0.1:port", NULL, THOLE_INVALID, "malformed"},
        {"", NULL, THOLE_INVALID, "empty"},
        {",,", NULL, THOLE_INVALID, "empty"},
        {"nats://", NULL, THOLE_INVALID, "malformed"},
        {NULL, NULL, THOLE_INVALID, "empty"},
        {"nats://127.0.0.1:1", "/nowhere/at.creds", THOLE_INVALID, "/nowhere/at.creds"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_error err = {0};
        CU_ASSERT_EQUAL(try_open(rows[i].url, rows[i].creds, &err), rows[i].want);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, rows[i].text));
        CU_ASSERT_PTR_NULL(strstr(err.text, "geheim"));
    }
}

/* Something that accepts and says nothing. */
static void test_open_at_a_silent_server(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    char url[TEXT_BYTES];
    thole_error err = {0};
    int const fd = socket(AF_INET, SOCK_STREAM, 0);
    CU_ASSERT(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 8) == 0);
    CU_ASSERT(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    put_text(url, "nats://127.0.0.1:%u", ntohs(at.sin_port));
    uint64_t const start = clock_ms();
    CU_ASSERT_EQUAL(try_open(url, NULL, &err), THOLE_UNAVAILABLE);
    CU_ASSERT(clock_ms() - start < 3000);
    close(fd);
}

/* ---- epochs ---- */

struct states {
    pthread_mutex_t lock;
    char text[512];
    atomic_ulong count;
    atomic_bool closed, late;
};

static void note_state(void *arg, bool connected, uint64_t epoch)
{
    struct states *states = arg;
    if (atomic_load(&states->closed))
        atomic_store(&states->late, true);
    pthread_mutex_lock(&states->lock);
    size_t const len = strlen(states->text);
    snprintf(states->text + len, sizeof states->text - len, "%s%d ", connected ? "up" : "down", (int)epoch);
    pthread_mutex_unlock(&states->lock);
    atomic_fetch_add(&states->count, 1);
}

static void test_epochs_over_kill9(void)
{
    struct states states = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct connection *connection = NULL;
    thole_error err = {0};
    struct buf answer;
    buf_init(&answer, 1024);
    struct connection_options const options = {.url = fixture_server.url,
                                               .name = "test",
                                               .connect_timeout_ms = 2000,
                                               .request_timeout_ms = 2000,
                                               .on_state = note_state,
                                               .arg = &states};
    CHECK_OK(connection_open(&options, &connection, &err), &err);
    for (uint64_t epoch = 1; epoch <= 3; epoch++) {
        CU_ASSERT(reaches(&states.count, 2 * epoch - 1));
        CU_ASSERT_EQUAL(connection_epoch(connection), epoch);
        server_kill9(&fixture_server);
        CU_ASSERT(reaches(&states.count, 2 * epoch));
        CU_ASSERT_EQUAL(connection_epoch(connection), 0);
        CU_ASSERT_EQUAL(connection_publish(connection, "x", NULL, 0, THOLE_STR("a"), &err),
                        THOLE_UNAVAILABLE);
        CU_ASSERT_EQUAL(connection_request(connection, "x", THOLE_STR("a"), &answer, &err),
                        THOLE_UNAVAILABLE);
        CU_ASSERT_EQUAL(connection_flush(connection, &err), THOLE_UNAVAILABLE);
        CHECK_OK(server_restart(&fixture_server, &err), &err);
    }
    CU_ASSERT(reaches(&states.count, 7));
    connection_close(connection);
    atomic_store(&states.closed, true);
    CHECK_STR("states", states.text, "up1 down1 up2 down2 up3 down3 up4 ");
    nap_ms(50);
    CU_ASSERT_FALSE(atomic_load(&states.late));
    buf_release(&answer);
}

/* Closing while the server is away, and while it is being connected to. */
static void test_close_while_disconnected(void)
{
    thole_error err = {0};
    struct connection *connection = connect_here();
    server_kill9(&fixture_server);
    connection_close(connection);
    CHECK_OK(server_restart(&fixture_server, &err), &err);
    for (int i = 0; i < 20; i++)
        connection_close(connect_here());
}

/* A server that stops answering without hanging up is noticed by the pings. */
static void test_a_frozen_server_is_noticed(void)
{
    struct connection *connection = connect_here();
    server_pause(&fixture_server);
    uint64_t const start = clock_ms();
    while (connection_epoch(connection) != 0 && clock_ms() - start < WAIT_MS)
        nap_ms(10);
    CU_ASSERT_EQUAL(connection_epoch(connection), 0);
    CU_ASSERT(clock_ms() - start < 15000);
    server_resume(&fixture_server);
    CU_ASSERT(wait_epoch_above(connection, 1));
    connection_close(connection);
}

/* ---- core subscriptions ---- */

struct heard {
    atomic_ulong count;
    atomic_bool slow, closed, late;
    char header[64], body[64];
};

static void hear(void *arg, const struct delivery *delivery)
{
    struct heard *heard = arg;
    if (atomic_load(&heard->closed))
        atomic_store(&heard->late, true);
    snprintf(heard->header, sizeof heard->header, "%.*s", THOLE_FMT(delivery_header(delivery, "Thole-X")));
    snprintf(heard->body, sizeof heard->body, "%.*s", THOLE_FMT(delivery->body));
    if (atomic_load(&heard->slow))
        nap_ms(20);
    atomic_fetch_add(&heard->count, 1);
}

static void test_subscription_survives_a_restart(void)
{
    struct heard heard = {0};
    struct subscription *subscription = NULL;
    struct connection *connection = connect_here();
    thole_error err = {0};
    struct header const header = {"Thole-X", THOLE_STR("a b")};
    CHECK_OK(connection_subscribe(connection, "here.*", hear, &heard, &subscription, &err), &err);
    CHECK_OK(connection_publish(connection, "here.a", &header, 1, THOLE_STR("one"), &err), &err);
    CU_ASSERT(reaches(&heard.count, 1));
    CHECK_STR("header", heard.header, "a b");
    CHECK_STR("body", heard.body, "one");
    server_kill9(&fixture_server);
    CHECK_OK(server_restart(&fixture_server, &err), &err);
    CU_ASSERT(wait_epoch_above(connection, 1));
    struct subscription *second = NULL; /* whatever up() does for the first is done now */
    CHECK_OK(connection_subscribe(connection, "there", hear, &heard, &second, &err), &err);
    CHECK_OK(connection_publish(connection, "here.b", NULL, 0, THOLE_STR("two"), &err), &err);
    CU_ASSERT(reaches(&heard.count, 2));
    CHECK_STR("header", heard.header, "");
    subscription_close(second);
    subscription_close(subscription);
    subscription_close(NULL);
    connection_close(connection);
}

/* Whether nothing of the burst arrived while it was corked, and then all of it did. */
static bool is_held(struct connection *from, const struct heard *heard)
{
    thole_error err = {0};
    unsigned long const before = atomic_load(&heard->count);
    connection_cork(from);
    for (int i = 0; i < 5; i++)
        CHECK_OK(connection_publish(from, "burst", NULL, 0, THOLE_STR("x"), &err), &err);
    nap_ms(60);
    unsigned long const early = atomic_load(&heard->count);
    connection_uncork(from);
    CU_ASSERT(reaches(&heard->count, before + 5));
    return early == before;
}

/* Whatever the epoch. Another thread that writes meanwhile, such as one with a PING, takes it along: not five
 * times in turn. */
static void test_a_corked_burst(void)
{
    struct heard heard = {0};
    struct subscription *subscription = NULL;
    struct connection *const to = connect_here(), *const from = connect_here();
    thole_error err = {0};
    CHECK_OK(connection_subscribe(to, "burst", hear, &heard, &subscription, &err), &err);
    CHECK_OK(connection_flush(to, &err), &err);
    for (unsigned epoch = 1; epoch <= 2; epoch++) {
        bool held = false;
        for (int i = 0; i < 5 && !held; i++)
            held = is_held(from, &heard);
        CU_ASSERT(held);
        unsigned long const before = atomic_load(&heard.count);
        connection_uncork(from); /* harmless */
        CHECK_OK(connection_publish(from, "burst", NULL, 0, THOLE_STR("x"), &err), &err);
        CU_ASSERT(reaches(&heard.count, before + 1));
        if (epoch == 1) {
            server_kill9(&fixture_server);
            connection_cork(from); /* neither do they while it is away */
            connection_uncork(from);
            CHECK_OK(server_restart(&fixture_server, &err), &err);
            CU_ASSERT(wait_epoch_above(from, 1) && wait_epoch_above(to, 1));
            CHECK_OK(connection_flush(to, &err), &err);
        }
    }
    subscription_close(subscription);
    connection_close(from);
    connection_close(to);
}

static void test_no_delivery_after_close(void)
{
    struct connection *connection = connect_here();
    thole_error err = {0};
    for (int round = 0; round < 20; round++) {
        struct heard heard = {0};
        struct subscription *subscription = NULL;
        atomic_store(&heard.slow, true);
        CHECK_OK(connection_subscribe(connection, "flood", hear, &heard, &subscription, &err), &err);
        for (int i = 0; i < 50; i++)
            CHECK_OK(connection_publish(connection, "flood", NULL, 0, THOLE_STR("x"), &err), &err);
        CU_ASSERT(reaches(&heard.count, 1));
        subscription_close(subscription);
        atomic_store(&heard.closed, true);
        CHECK_OK(connection_flush(connection, &err), &err);
        CU_ASSERT_FALSE(atomic_load(&heard.late));
    }
    connection_close(connection);
}

static void test_what_must_not_reach_the_wire(void)
{
    static const char *const subjects[] = {"", "a b", "a\r\nPUB x 0\r\n", "a\tb", "a\nb", "\x7f"};
    struct connection *connection = connect_here();
    struct heard heard = {0};
    struct subscription *subscription = NULL;
    thole_error err = {0};
    struct buf answer;
    struct sink sink = {0};
    struct requests *requests = open_window(connection, 4, 1000, &sink);
    buf_init(&answer, 1024);
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        struct publish const publish = {.subject = subjects[i]};
        CU_ASSERT_EQUAL(connection_publish(connection, subjects[i], NULL, 0, THOLE_STR("x"), &err),
                        THOLE_INVALID);
        CU_ASSERT_EQUAL(connection_request(connection, subjects[i], THOLE_STR("x"), &answer, &err),
                        THOLE_INVALID);
        CU_ASSERT_EQUAL(connection_subscribe(connection, subjects[i], hear, &heard, &subscription, &err),
                        THOLE_INVALID);
        CU_ASSERT_EQUAL(requests_publish(requests, &publish, 0, &err), THOLE_INVALID);
        CU_ASSERT_EQUAL(requests_send(requests, subjects[i], THOLE_STR(""), 0, &err), THOLE_INVALID);
    }
    struct header const bad[] = {
        {"K", THOLE_STR("a\r\nb")}, {"K", THOLE_STR("a\nb")}, {"K", THOLE_STR("a\0b")}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(connection_publish(connection, "ok", &bad[i], 1, THOLE_STR("x"), &err),
                        THOLE_INVALID);
    CU_ASSERT_EQUAL(requests_in_flight(requests), 0);
    /* A refusal by nats.c is the caller's mistake, and no reason to connect again. */
    CU_ASSERT_EQUAL(connection_subscribe(connection, "a..b", hear, &heard, &subscription, &err),
                    THOLE_INVALID);
    CU_ASSERT_EQUAL(connection_epoch(connection), 1); /* the server has found nothing to complain about */
    size_t len = 0;
    for (int i = 0; i < 2; i++) { /* an answer takes the place of the one before it */
        CHECK_OK(connection_request(connection, "$JS.API.STREAM.INFO.NONE", THOLE_STR(""), &answer, &err),
                 &err);
        CU_ASSERT_TRUE(i == 0 || answer.len == len);
        len = answer.len;
    }
    requests_close(requests);
    buf_release(&answer);
    connection_close(connection);
}

/* ---- requests ---- */

static void test_publish_answers(void)
{
    struct connection *connection = connect_here();
    struct topology const t = fresh_topology(connection, 1);
    struct sink sink = {0};
    struct requests *requests = open_window(connection, 16, 3000, &sink);
    char history[TEXT_BYTES], work[TEXT_BYTES], inbox[TEXT_BYTES];
    put_text(history, "thole.%s.hist.0.a.1", t.ns);
    put_text(work, "thole.%s.work.q.a.1.1.1", t.ns);
    put_text(inbox, "thole.%s.in.0.event.e.a", t.ns);
    struct publish publish = {.subject = history, .body = THOLE_STR("x"), .expect_last = true};
    CU_ASSERT_EQUAL(publish_one(requests, &sink, &publish), REQUEST_STORED);
    CU_ASSERT_EQUAL(sink.last_sequence, 1);
    CU_ASSERT_EQUAL(publish_one(requests, &sink, &publish),
                    REQUEST_REFUSED); /* 0 means the stream is empty */
    CU_ASSERT_EQUAL(sink.last_code, 10071);
    publish.expected_last = 1;
    CU_ASSERT_EQUAL(publish_one(requests, &sink, &publish), REQUEST_STORED);
    CU_ASSERT_EQUAL(publish_one(requests, &sink, &(struct publish){.subject = work}), REQUEST_STORED);
    CU_ASSERT_EQUAL(publish_one(requests, &sink, &(struct publish){.subject = work}), REQUEST_STORED);
    struct publish const once = {.subject = inbox, .message_id = "m1"};
    CU_ASSERT_EQUAL(publish_one(requests, &sink, &once), REQUEST_STORED);
    CU_ASSERT_FALSE(sink.duplicate);
    CU_ASSERT_EQUAL(publish_one(requests, &sink, &once), REQUEST_STORED);
    CU_ASSERT(sink.duplicate);
    CU_ASSERT_EQUAL(sink.last_sequence, 1);
    CU_ASSERT_EQUAL(publish_one(requests, &sink, &(struct publish){.subject = "nobody.listens"}),
                    REQUEST_BUSY);
    struct header const stream = {"Nats-Expected-Stream", THOLE_STR("OTHER")};
    struct publish const other = {.subject = inbox, .headers = &stream, .headers_len = 1};
    CU_ASSERT_EQUAL(publish_one(requests, &sink, &other), REQUEST_FAILED);
    CU_ASSERT_EQUAL(sink.last_code, 10060);
    CU_ASSERT_EQUAL(requests_in_flight(requests), 0);
    requests_close(requests);
    connection_close(connection);
}

struct got {
    struct sink sink;
    char subject[64], body[64];
};

static void note_got(void *arg, const struct request_done *done)
{
    struct got *got = arg;
    snprintf(got->subject, sizeof got->subject, "%.*s", THOLE_FMT(done->subject));
    snprintf(got->body, sizeof got->body, "%.*s", THOLE_FMT(done->body));
    sink_done(&got->sink, done);
}

static void get(struct requests *requests, struct got *got, const char *api, uint64_t sequence)
{
    struct buf body;
    thole_error err = {0};
    unsigned long const done = atomic_load(&got->sink.done);
    buf_init(&body, 1024);
    CHECK_OK(stream_sequence_request(&body, sequence), &err);
    CHECK_OK(requests_get(requests, api, buf_bytes(&body), 1, &err), &err);
    CU_ASSERT(reaches(&got->sink.done, done + 1));
    buf_release(&body);
}

static void test_direct_gets(void)
{
    struct connection *connection = connect_here();
    struct topology const t = fresh_topology(connection, 1);
    struct got got = {0};
    struct sink sink = {0};
    thole_error err = {0};
    struct requests *requests = NULL, *publishes = open_window(connection, 16, 3000, &sink);
    char first[TEXT_BYTES], other[TEXT_BYTES], api[TEXT_BYTES], nowhere[TEXT_BYTES];
    CHECK_OK(requests_open(connection, 4, 3000, note_got, &got, &requests, &err), &err);
    put_text(first, "thole.%s.hist.0.a.1", t.ns);
    put_text(other, "thole.%s.hist.0.b.1", t.ns);
    put_text(api, "$JS.API.DIRECT.GET.THOLE_%s_HIST_0", t.ns);
    put_text(nowhere, "$JS.API.DIRECT.GET.THOLE_%s_NONE", t.ns);
    static const char *const bodies[] = {"one", "two", "", "four"};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        CU_ASSERT_EQUAL(publish_one(publishes, &sink,
                                    &(struct publish){.subject = i == 1 ? other : first,
                                                      .body = thole_slice_from(bodies[i])}),
                        REQUEST_STORED);
    static const struct {
        uint64_t asked, sequence;
        const char *body;
    } cases[] = {{1, 1, "one"}, {2, 2, "two"}, {3, 3, ""}, {4, 4, "four"}, {5, 0, ""}, {UINT64_MAX, 0, ""}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        get(requests, &got, api, cases[i].asked);
        CU_ASSERT_EQUAL(atomic_load(&got.sink.answered), i + 1);
        CU_ASSERT_EQUAL(atomic_load(&got.sink.last_sequence), cases[i].sequence);
        CHECK_STR("body", got.body, cases[i].body);
        CHECK_STR("subject", got.subject, cases[i].sequence == 0 ? "" : i == 1 ? other : first);
    }
    get(requests, &got, nowhere, 1);
    CU_ASSERT_EQUAL(atomic_load(&got.sink.busy), 1); /* nobody answers */
    CHECK_OK(requests_get(requests, api, THOLE_STR("{}"), 1, &err), &err);
    CU_ASSERT(reaches(&got.sink.failed, 1)); /* 408: which message? */
    requests_close(requests);
    requests_close(publishes);
    connection_close(connection);
}

static void swallow(void *arg, const struct delivery *delivery)
{
    (void)arg;
    (void)delivery;
}

static void test_limits_and_timeouts(void)
{
    struct connection *connection = connect_here();
    struct sink sink = {0};
    struct subscription *nobody = NULL;
    thole_error err = {0};
    struct requests *requests = open_window(connection, 3, 300, &sink);
    uint8_t *large = calloc(1, 1024 * 1024 + 1);
    CHECK_OK(connection_subscribe(connection, "silence", swallow, NULL, &nobody, &err), &err);
    CHECK_OK(connection_flush(connection, &err), &err);
    CU_ASSERT_EQUAL(requests_send(requests, "silence", (thole_slice){large, 1024 * 1024 + 1}, 9, &err),
                    THOLE_LIMIT);
    CU_ASSERT_EQUAL(requests_publish(requests, &(struct publish){.subject = "x", .message_id = ""}, 9, &err),
                    THOLE_INVALID);
    for (int round = 1; round <= 3; round++) {
        uint64_t const start = clock_ms();
        for (uint64_t i = 0; i < 3; i++)
            CHECK_OK(requests_send(requests, "silence", THOLE_STR(""), i, &err), &err);
        CU_ASSERT_EQUAL(requests_send(requests, "silence", THOLE_STR(""), 9, &err), THOLE_LIMIT);
        CU_ASSERT_EQUAL(requests_in_flight(requests), 3);
        CU_ASSERT(reaches(&sink.unknown, 3 * (unsigned long)round));
        CU_ASSERT(clock_ms() - start >= 300 && clock_ms() - start < 1500);
        CU_ASSERT_EQUAL(sink.last_token, 2);
    }
    for (uint64_t i = 0; i < 3; i++)
        CHECK_OK(requests_send(requests, "silence", THOLE_STR(""), i, &err), &err);
    requests_close(requests);
    requests_close(NULL);
    CU_ASSERT_EQUAL(sink.unknown, 12);
    CU_ASSERT_EQUAL(sink.done, 12);
    CU_ASSERT_EQUAL(requests_open(connection, 0, 300, sink_done, &sink, &requests, &err), THOLE_INVALID);
    subscription_close(nobody);
    connection_close(connection);
    free(large);
}

/* An answer that comes after its request was given up must not answer the next one in the same slot. */
static void test_late_answers_are_dropped(void)
{
    struct connection *connection = connect_here();
    struct topology const t = fresh_topology(connection, 1);
    struct sink sink = {0};
    thole_error err = {0};
    struct requests *requests = open_window(connection, 1, 300, &sink);
    char subject[TEXT_BYTES];
    put_text(subject, "thole.%s.in.0.event.e.a", t.ns);
    struct publish const publish = {.subject = subject};
    unsigned long sent = 0;
    server_pause(&fixture_server);
    while (sink.unknown < 5 && sent < 100) { /* may still answer the first ones */
        CHECK_OK(requests_publish(requests, &publish, ++sent, &err), &err);
        CU_ASSERT(reaches(&sink.done, sent));
    }
    unsigned long const stored = sink.stored;
    CU_ASSERT_EQUAL(sink.unknown, 5);
    CHECK_OK(requests_publish(requests, &publish, ++sent, &err), &err);
    server_resume(&fixture_server); /* now six answers come */
    CU_ASSERT(reaches(&sink.done, sent));
    CU_ASSERT_EQUAL(sink.last_token, sent);
    CU_ASSERT_EQUAL(sink.stored, stored + 1);
    CU_ASSERT_EQUAL(sink.last_sequence, sent);
    CHECK_OK(connection_flush(connection, &err), &err);
    CU_ASSERT_EQUAL(sink.done, sent);
    requests_close(requests);
    connection_close(connection);
}

/* ---- windows and kill -9 ---- */

enum { RECORDS_MAX = 400000 };

struct record_book {
    atomic_ulong answers, stored;
    _Atomic uint8_t state[RECORDS_MAX]; /* 1 sent, 2 stored, 3 unknown, 4 refused */
    _Atomic uint64_t sequence[RECORDS_MAX];
    atomic_bool twice;
};
static struct record_book book;

static void note_record(void *arg, const struct request_done *done)
{
    (void)arg;
    uint8_t const now = done->result == REQUEST_STORED ? 2 : done->result == REQUEST_UNKNOWN ? 3 : 4;
    uint8_t const was = atomic_exchange(&book.state[done->token], now);
    if (was != 1)
        atomic_store(&book.twice, true);
    atomic_store(&book.sequence[done->token], done->sequence);
    if (now == 2)
        atomic_fetch_add(&book.stored, 1);
    atomic_fetch_add(&book.answers, 1);
}

static thole_status compare_record(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    unsigned long *found = arg;
    unsigned long token = 0;
    (void)subject;
    for (size_t i = 0; i < body.len; i++)
        token = token * 10 + (unsigned long)(body.ptr[i] - '0');
    uint8_t const state = token < RECORDS_MAX ? atomic_load(&book.state[token]) : 0;
    CU_ASSERT(state == 2 || state == 3);
    if (state == 2) {
        CU_ASSERT_EQUAL(atomic_load(&book.sequence[token]), sequence);
        ++*found;
    }
    return THOLE_OK;
}

/* Sends until told to stop; returns how many were accepted. */
static unsigned long stream_out(struct requests *requests, const char *subject, unsigned long from,
                                uint64_t until_ms)
{
    unsigned long token = from;
    thole_error err = {0};
    while (clock_ms() < until_ms && token < RECORDS_MAX) {
        char body[24];
        int const len = snprintf(body, sizeof body, "%lu", token);
        struct publish const publish = {.subject = subject, .body = {(uint8_t *)body, (size_t)len}};
        atomic_store(&book.state[token], 1);
        thole_status const status = requests_publish(requests, &publish, token, &err);
        if (status == THOLE_OK)
            token++;
        else {
            CU_ASSERT(status == THOLE_LIMIT || status == THOLE_UNAVAILABLE);
            if (atomic_load(&book.state[token]) != 1)
                atomic_store(&book.twice, true); /* an answer for what was not accepted */
            usleep(50);
        }
    }
    atomic_store(&book.state[token], 0);
    return token;
}

static void *kill_and_restart(void *arg)
{
    (void)arg;
    nap_ms(150);
    server_kill9(&fixture_server);
    return NULL;
}

static void test_kill9_in_the_middle_of_windows(void)
{
    struct connection *connection = connect_here();
    struct topology const t = fresh_topology(connection, 1);
    struct requests *requests = NULL;
    thole_error err = {0};
    char subject[TEXT_BYTES], stream[TEXT_BYTES];
    unsigned long sent = 0, found = 0;
    put_text(subject, "thole.%s.hist.0.a.1", t.ns);
    put_text(stream, "THOLE_%s_HIST_0", t.ns);
    CHECK_OK(requests_open(connection, 256, 5000, note_record, NULL, &requests, &err), &err);
    for (int round = 0; round < 3; round++) {
        pthread_t killer;
        uint64_t const epoch = connection_epoch(connection);
        pthread_create(&killer, NULL, kill_and_restart, NULL);
        sent = stream_out(requests, subject, sent, clock_ms() + 400);
        pthread_join(killer, NULL);
        uint64_t const start = clock_ms();
        CU_ASSERT(reaches(&book.answers, sent)); /* unknown at once, not after the timeout */
        CU_ASSERT(clock_ms() - start < 1000);
        CHECK_OK(server_restart(&fixture_server, &err), &err);
        CU_ASSERT(wait_epoch_above(connection, epoch));
    }
    sent = stream_out(requests, subject, sent, clock_ms() + 100);
    CU_ASSERT(reaches(&book.answers, sent));
    CU_ASSERT_EQUAL(book.answers, sent);
    CU_ASSERT_FALSE(atomic_load(&book.twice));
    CU_ASSERT(book.stored > 1000 && book.stored < sent);
    CHECK_OK(stream_read(connection, stream, NULL, 0, UINT64_MAX, compare_record, &found, &err), &err);
    CU_ASSERT_EQUAL(found, book.stored); /* nothing that was acknowledged is missing */
    requests_close(requests);
    connection_close(connection);
}

/* ---- many threads ---- */

struct pusher {
    struct requests *requests;
    const char *subject;
    unsigned long accepted;
};

static void *push(void *arg)
{
    struct pusher *pusher = arg;
    thole_error err = {0};
    struct publish const publish = {.subject = pusher->subject, .body = THOLE_STR("x")};
    while (pusher->accepted < 5000) {
        if (requests_publish(pusher->requests, &publish, 0, &err) == THOLE_OK)
            pusher->accepted++;
        else
            usleep(20);
    }
    return NULL;
}

static void test_many_threads_share_a_window(void)
{
    struct connection *connection = connect_here();
    struct topology const t = fresh_topology(connection, 1);
    struct sink sink = {0};
    struct requests *requests = open_window(connection, 64, 10000, &sink);
    char subject[TEXT_BYTES];
    pthread_t threads[4];
    struct pusher pushers[4];
    put_text(subject, "thole.%s.in.0.event.e.a", t.ns);
    for (int i = 0; i < 4; i++) {
        pushers[i] = (struct pusher){.requests = requests, .subject = subject};
        pthread_create(&threads[i], NULL, push, &pushers[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CU_ASSERT(reaches(&sink.done, 20000));
    CU_ASSERT_EQUAL(sink.stored, 20000);
    CU_ASSERT_EQUAL(requests_in_flight(requests), 0);
    requests_close(requests);
    connection_close(connection);
}

static const struct thole_test tests[] = {
    {"open, and what the server says", test_open_and_what_the_server_says},
    {"refusals when opening", test_open_refusals},
    {"a server that says nothing", test_open_at_a_silent_server},
    {"epochs over three kill -9", test_epochs_over_kill9},
    {"closing while disconnected", test_close_while_disconnected},
    {"a frozen server is noticed", test_a_frozen_server_is_noticed},
    {"a subscription survives a restart", test_subscription_survives_a_restart},
    {"a corked burst", test_a_corked_burst},
    {"no delivery after close", test_no_delivery_after_close},
    {"what must not reach the wire", test_what_must_not_reach_the_wire},
    {"what a publish answers", test_publish_answers},
    {"direct gets", test_direct_gets},
    {"limits and timeouts", test_limits_and_timeouts},
    {"late answers are dropped", test_late_answers_are_dropped},
    {"kill -9 in the middle of windows", test_kill9_in_the_middle_of_windows},
    {"many threads share a window", test_many_threads_share_a_window},
};
FIXTURE_MAIN("streams", tests)
