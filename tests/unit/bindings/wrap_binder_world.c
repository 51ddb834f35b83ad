#include "wrap_binder_world.h"
#include "bindings.h"
#include "header_names.h"
#include "link.h"
#include "memory.h"
#include "message.h"
#include "subject.h"
#include "thole/client.h"
#include "thole_cunit.h"
#include "topology.h"
#include "utf8.h"
#include "wrap_played.h"
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

enum { PULLERS_MAX = 8, SENT_MAX = 64, RULES_MAX = 8, HEADERS_MAX = 80, TEXT_MAX = 64 * 1024 };

struct played_puller {
    char rule[THOLE_NAME_BYTES_MAX + 1]; /* empty: closed */
    puller_fn *each;
    puller_refused_fn *refused;
    void *arg;
};
/* A message that was delivered. */
struct played_bound {
    struct work_message message; /* first */
    struct bound_view view;
    char *text; /* all that the view borrows */
};
struct sent {
    uint64_t sequence, token;
};

struct played_binder binder_world;
static struct played_puller pullers[PULLERS_MAX];
static struct sent sent[SENT_MAX];
static size_t sent_len;
static uint64_t sending; /* the message that is being delivered */
static struct {
    char name[THOLE_NAME_BYTES_MAX + 1];
    uint64_t revision;
} rules[RULES_MAX];
static delivery_fn *serves;
static void *serves_arg;
static bindings_watch_fn *watches;
static void *watches_arg;
static request_done_fn *answers;
static const char some_connection, some_client, some_subscription, some_watch, some_requests;
static int opened; /* connections, clients, subscriptions, watches, requests, pullers, messages */

static const void *is_ours(const void *connection)
{
    CU_ASSERT_PTR_EQUAL(connection, &some_connection);
    return connection;
}

/* ---- connection and client ---- */

thole_status __wrap_connection_open(const struct connection_options *o, struct connection **ret,
                                    thole_error *reterr)
{
    SAY_ALWAYS("connects to %s as %s: creds %s, ca %s, cert %s, key %s, server %s, inbox %s, %d+%d ms",
               o->url, o->name, o->creds, o->ca, o->cert, o->key, o->server_name, o->inbox,
               (int)o->connect_timeout_ms, (int)o->request_timeout_ms);
    THOLE_TRY(played_ends(CALL_CONNECT, reterr));
    opened++;
    *ret = (struct connection *)(uintptr_t)&some_connection;
    return THOLE_OK;
}

void __wrap_connection_close(struct connection *connection)
{
    if (connection == NULL)
        return;
    opened--;
    CU_ASSERT_EQUAL(opened, 0); /* closed last */
    SAY_ALWAYS("disconnects");
}

uint64_t __wrap_connection_epoch(const struct connection *connection)
{
    is_ours(connection);
    return binder_world.down ? 0 : 1;
}

size_t __wrap_connection_max_payload(const struct connection *connection)
{
    is_ours(connection);
    return binder_world.max_payload;
}

thole_status __wrap_connection_serve(struct connection *connection, const char *subject, const char *group,
                                     delivery_fn *each, void *arg, struct subscription **ret,
                                     thole_error *reterr)
{
    is_ours(connection);
    SAY_ALWAYS("listens to %s in the group %s", subject, group == NULL ? "of none" : group);
    THOLE_TRY(played_ends(CALL_LISTEN, reterr));
    opened++;
    serves = each;
    serves_arg = arg;
    *ret = (struct subscription *)(uintptr_t)&some_subscription;
    return THOLE_OK;
}

void __wrap_subscription_close(struct subscription *subscription)
{
    if (subscription == NULL)
        return;
    opened--;
    serves = NULL;
    SAY_ALWAYS("no longer listens");
}

static void say_bytes(thole_slice bytes)
{
    if (bytes.len > 200) {
        (void)fprintf(play.said, "%zu bytes", bytes.len);
        return;
    }
    for (size_t i = 0; i < bytes.len; i++)
        (void)fprintf(play.said, bytes.ptr[i] >= ' ' && bytes.ptr[i] != 0x7f ? "%c" : "<%02x>", bytes.ptr[i]);
}

static void say_to(const char *subject, const struct header *headers, size_t len)
{
    (void)fprintf(play.said, "%6" PRIu64 " to %s:", play.now_ms, subject);
    for (size_t i = 0; i < len; i++)
        (void)fprintf(play.said, " [%s: %.*s]", headers[i].key, THOLE_FMT(headers[i].value));
    (void)fputc(' ', play.said);
}

thole_status __wrap_connection_publish(struct connection *connection, const char *subject,
                                       const struct header *headers, size_t headers_len, thole_slice body,
                                       thole_error *reterr)
{
    is_ours(connection);
    say_to(subject, headers, headers_len);
    say_bytes(body);
    (void)fputc('\n', play.said);
    return played_ends(CALL_PUBLISH, reterr);
}

/* "NAME: VALUE\n…" into @p names and @p values, which borrow. */
static size_t headers_of(const char *text, thole_slice *names, thole_slice *values)
{
    size_t n = 0;
    while (*text != '\0' && n < HEADERS_MAX) {
        size_t const name = strcspn(text, ":"), end = strcspn(text, "\n");
        names[n] = (thole_slice){(const uint8_t *)text, name};
        values[n++] = (thole_slice){(const uint8_t *)text + name + 2, end - name - 2};
        text += end + (text[end] == '\n');
    }
    return n;
}

void played_call(const char *orchestration, const char *reply, const char *text, thole_slice body)
{
    char subject[300], keys[HEADERS_MAX][64];
    thole_slice names[HEADERS_MAX], values[HEADERS_MAX];
    struct header headers[HEADERS_MAX];
    size_t const n = headers_of(text, names, values);
    natsMsg *message = NULL;
    if (serves == NULL) {
        played_say("nobody serves calls");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "%.*s", THOLE_FMT(names[i]));
        headers[i] = (struct header){keys[i], values[i]};
    }
    (void)snprintf(subject, sizeof subject, "thole.shop.call.%s", orchestration);
    if (link_message(subject, reply, headers, n, body, &message, NULL) != THOLE_OK)
        abort();
    struct delivery delivery = link_delivery(message);
    char *const exact = memory_new(strlen(subject)); /* without a NUL at the end */
    memcpy(exact, subject, strlen(subject));
    delivery.subject.ptr = (const uint8_t *)exact;
    serves(serves_arg, &delivery);
    natsMsg_Destroy(message);
    free(exact);
}

thole_status __wrap_thole_client_open(const thole_client_options *o, thole_client **ret, thole_error *reterr)
{
    SAY_ALWAYS("a client at %s of %s: creds %s, ca %s, cert %s, key %s, server %s, inbox %s", o->nats_url,
               o->ns, o->nats_creds, o->nats_ca, o->nats_cert, o->nats_key, o->nats_server_name,
               o->nats_inbox);
    CU_ASSERT_TRUE(o->size == sizeof *o && o->postgres == NULL);
    THOLE_TRY(played_ends(CALL_CLIENT, reterr));
    opened++;
    *ret = (thole_client *)(uintptr_t)&some_client;
    return THOLE_OK;
}

void __wrap_thole_client_close(thole_client *client)
{
    opened -= client != NULL;
}

thole_status __wrap_thole_client_start_with(thole_client *client, thole_slice instance,
                                            thole_slice orchestration, thole_slice input,
                                            const thole_start_options *o, bool *ret_accepted,
                                            thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    CU_ASSERT_TRUE(o->size == sizeof *o && ret_accepted == NULL);
    bool const said = o->sender.actor.len + o->sender.client_name.len > 0;
    played_say("starts %.*s of %.*s: input=%.*s version=%u request=%.*s trace=%.*s,%.*s%s%.*s%s%.*s",
               THOLE_FMT(instance), THOLE_FMT(orchestration), THOLE_FMT(input), o->version,
               THOLE_FMT(o->request_id), THOLE_FMT(o->traceparent), THOLE_FMT(o->tracestate),
               o->sender.vouched ? " BY "
               : said            ? " by "
                                 : "",
               THOLE_FMT(o->sender.actor), said ? " with " : "", THOLE_FMT(o->sender.client_name));
    return played_ends(CALL_ASKED, reterr);
}

/* "timeout" and "not_found" take all of the time; "completed:…", "failed:…", "cancelled:…", "terminated:…"
 * are outcomes. */
thole_status __wrap_thole_client_wait(thole_client *client, thole_slice instance, uint64_t wait_ms,
                                      thole_outcome *ret, thole_error *reterr)
{
    static const struct {
        const char *word;
        thole_instance_status status;
    } ends[] = {{"completed", THOLE_INSTANCE_COMPLETED},
                {"failed", THOLE_INSTANCE_FAILED},
                {"cancelled", THOLE_INSTANCE_CANCELLED},
                {"terminated", THOLE_INSTANCE_TERMINATED}};
    char room[64];
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    played_say("waits for %.*s, %" PRIu64 " ms", THOLE_FMT(instance), wait_ms);
    const char *const how = played_word(CALL_ASKED, room);
    if (strcmp(how, "timeout") == 0 || strcmp(how, "not_found") == 0)
        played_sleep(wait_ms);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        size_t const len = strlen(ends[i].word);
        if (strncmp(how, ends[i].word, len) != 0 || how[len] != ':')
            continue;
        const char *const text = how + len + 1;
        *ret = (thole_outcome){.status = ends[i].status,
                               .output = {memory_copy(text, strlen(text)), strlen(text)},
                               .error_type = thole_slice_from(how[0] == 'f' ? "card" : "")};
        return THOLE_OK;
    }
    return played_status(how, reterr);
}

int __wrap_kill(pid_t pid, int number)
{
    CU_ASSERT_EQUAL(pid, getpid());
    played_say("is killed by %d", number);
    return 0;
}

/* ---- the namespace and the bucket ---- */

thole_status __wrap_topology_read(struct connection *connection, const char *ns, struct topology *ret,
                                  thole_error *reterr)
{
    is_ours(connection);
    THOLE_TRY(played_ends(CALL_TOPOLOGY, reterr));
    *ret = (struct topology){.partitions = 4, .replicas = 3, .payload_max = binder_world.payload_max};
    (void)snprintf(ret->ns, sizeof ret->ns, "%s", ns);
    return THOLE_OK;
}

thole_status __wrap_bindings_require(struct connection *connection, const char *ns, thole_error *reterr)
{
    is_ours(connection);
    SAY_ALWAYS("needs the bucket of %s", ns);
    return played_ends(CALL_BUCKET, reterr);
}

thole_status __wrap_bindings_get(struct connection *connection, const char *ns, thole_slice name,
                                 struct buf *ret, uint64_t *ret_revision, thole_error *reterr)
{
    is_ours(connection);
    played_say("reads rule %.*s of %s", THOLE_FMT(name), ns);
    THOLE_TRY(played_ends(CALL_GET, reterr));
    buf_text(ret, "what it says");
    for (size_t i = 0; i < RULES_MAX; i++)
        if (thole_slice_equal(name, thole_slice_from(rules[i].name)))
            *ret_revision = rules[i].revision;
    return buf_status(ret);
}

thole_status __wrap_bindings_watch_open(struct connection *connection, const char *ns,
                                        bindings_watch_fn *each, void *arg, struct bindings_watch **ret,
                                        thole_error *reterr)
{
    is_ours(connection);
    SAY_ALWAYS("watches the rules of %s", ns);
    THOLE_TRY(played_ends(CALL_WATCH, reterr));
    opened++;
    watches = each;
    watches_arg = arg;
    *ret = (struct bindings_watch *)(uintptr_t)&some_watch;
    return THOLE_OK;
}

void __wrap_bindings_watch_close(struct bindings_watch *watch)
{
    opened -= watch != NULL;
    watches = NULL;
}

void played_rule(const char *name, uint64_t revision, thole_slice value)
{
    char *const copy = memory_new(value.len + 1); /* gone when it returns */
    size_t i = 0;
    memcpy(copy, value.ptr, value.len);
    while (i < RULES_MAX - 1 && rules[i].name[0] != '\0' && strcmp(rules[i].name, name) != 0)
        i++;
    (void)snprintf(rules[i].name, sizeof rules[i].name, "%s", name);
    rules[i].revision = revision;
    if (watches != NULL)
        watches(watches_arg, thole_slice_from(name), (thole_slice){(const uint8_t *)copy, value.len},
                revision);
    memset(copy, 'x', value.len);
    free(copy);
}

/* ---- consumers and pullers ---- */

thole_status __wrap_binding_consumer_ensure(struct connection *connection, const char *ns, thole_slice rule,
                                            const struct binding_consumer *consumer, thole_error *reterr)
{
    is_ours(connection);
    played_say("makes the consumer of %.*s in %s: %.*s of stream %.*s, %" PRIu64 " in flight%s",
               THOLE_FMT(rule), ns, THOLE_FMT(consumer->subject), THOLE_FMT(consumer->stream),
               consumer->in_flight, consumer->only_new ? ", only new" : "");
    return played_ends(CALL_CONSUMER, reterr);
}

thole_status __wrap_binding_consumer_delete(struct connection *connection, const char *ns, thole_slice rule,
                                            thole_slice stream, thole_error *reterr)
{
    is_ours(connection);
    played_say("deletes the consumer of %.*s in %s from stream %.*s", THOLE_FMT(rule), ns, THOLE_FMT(stream));
    return played_ends(CALL_FORGET, reterr);
}

thole_status __wrap_binding_consumer_state(struct connection *connection, const char *ns, thole_slice rule,
                                           thole_slice stream, struct binding_state *ret, thole_error *reterr)
{
    is_ours(connection);
    SAY_ALWAYS("asks for the consumer of %.*s in %s on stream %.*s", THOLE_FMT(rule), ns, THOLE_FMT(stream));
    THOLE_TRY(played_ends(CALL_STATE, reterr));
    *ret = (struct binding_state){.pending = 100, .ack_pending = 10, .redelivered = 1, .acked = 5};
    return THOLE_OK;
}

thole_status __wrap_binding_puller_open(struct connection *connection, const char *ns, thole_slice rule,
                                        thole_slice stream, puller_fn *each, puller_refused_fn *refused,
                                        void *arg, struct puller **ret, thole_error *reterr)
{
    size_t i = 0;
    is_ours(connection);
    played_say("pulls for %.*s in %s from stream %.*s", THOLE_FMT(rule), ns, THOLE_FMT(stream));
    THOLE_TRY(played_ends(CALL_PULL, reterr));
    while (i < PULLERS_MAX - 1 && pullers[i].rule[0] != '\0')
        i++;
    pullers[i] = (struct played_puller){.each = each, .refused = refused, .arg = arg};
    (void)snprintf(pullers[i].rule, sizeof pullers[i].rule, "%.*s", THOLE_FMT(rule));
    opened++;
    *ret = (struct puller *)&pullers[i];
    return THOLE_OK;
}

void __wrap_puller_want(struct puller *puller, uint32_t free_slots)
{
    played_say("wants %u more for %s", free_slots, ((const struct played_puller *)puller)->rule);
}

void __wrap_puller_close(struct puller *puller)
{
    if (puller == NULL)
        return;
    played_say("no longer pulls for %s", ((const struct played_puller *)puller)->rule);
    ((struct played_puller *)puller)->rule[0] = '\0';
    opened--;
}

static struct played_puller *puller_of(const char *rule)
{
    for (size_t i = 0; i < PULLERS_MAX; i++)
        if (strcmp(pullers[i].rule, rule) == 0)
            return &pullers[i];
    played_say("nobody pulls for %s", rule);
    return NULL;
}

void played_refused(const char *rule)
{
    const struct played_puller *const puller = puller_of(rule);
    if (puller != NULL)
        puller->refused(puller->arg);
}

/* ---- messages ---- */

void played_message(const char *rule, uint64_t sequence, const char *subject, const char *headers,
                    thole_slice body)
{
    const struct played_puller *const puller = puller_of(rule);
    thole_slice names[HEADERS_MAX], values[HEADERS_MAX];
    if (puller == NULL)
        return;
    struct played_bound *const bound = memory_new(sizeof *bound);
    size_t const h = strlen(headers) + 1, s = strlen(subject);
    bound->text = memory_new(h + s + body.len);
    memcpy(bound->text, headers, h);
    memcpy(bound->text + h, subject, s);
    memcpy(bound->text + h + s, body.ptr, body.len);
    size_t const n = headers_of(bound->text, names, values);
    bound->view = (struct bound_view){.subject = {(const uint8_t *)bound->text + h, s},
                                      .stream = THOLE_STR("ORDERS"),
                                      .body = {(const uint8_t *)bound->text + h + s, body.len},
                                      .sequence = sequence,
                                      .stored_ns = 1700000000000000000 + sequence};
    for (size_t i = 0; i < n && i < BOUND_HEADERS_MAX; i++)
        bound->view.headers[bound->view.headers_len++] = (struct bound_header){names[i], values[i]};
    bound->view.more_headers = n > BOUND_HEADERS_MAX;
    bound->message.sequence = sequence;
    bound->message.deliveries = sequence % 100; /* of 100 the server says nothing */
    opened++;
    sending = sequence;
    puller->each(puller->arg, &bound->message);
    sending = 0;
}

void __wrap_bound_view(const struct work_message *message, struct bound_view *ret)
{
    *ret = ((const struct played_bound *)message)->view;
}

void __wrap_work_message_destroy(struct work_message *message)
{
    struct played_bound *const bound = (struct played_bound *)message;
    opened--;
    free(bound->text);
    free(bound);
}

thole_status __wrap_work_message_signal(struct connection *connection, const struct work_message *message,
                                        enum work_signal signal, thole_error *reterr)
{
    is_ours(connection);
    CU_ASSERT_EQUAL(signal, WORK_ACK);
    played_say("acknowledges %" PRIu64, message->sequence);
    return played_ends(CALL_SIGNAL, reterr);
}

thole_status __wrap_work_message_put_back(struct connection *connection, const struct work_message *message,
                                          uint64_t delay_ms, thole_error *reterr)
{
    is_ours(connection);
    played_say("puts %" PRIu64 " back for %" PRIu64 " ms", message->sequence, delay_ms);
    return played_ends(CALL_SIGNAL, reterr);
}

/* ---- requests ---- */

thole_status __wrap_requests_open(struct connection *connection, size_t window, uint64_t timeout_ms,
                                  request_done_fn *done, void *arg, struct requests **ret,
                                  thole_error *reterr)
{
    is_ours(connection);
    (void)arg;
    SAY_ALWAYS("%zu requests at a time, of %" PRIu64 " ms", window, timeout_ms);
    THOLE_TRY(played_ends(CALL_REQUESTS, reterr));
    opened++;
    answers = done;
    *ret = (struct requests *)(uintptr_t)&some_requests;
    return THOLE_OK;
}

void __wrap_requests_close(struct requests *requests)
{
    CU_ASSERT_EQUAL(sent_len, 0);
    opened -= requests != NULL;
}

/* An inbox message, decoded; else the body. */
static void say_message(thole_slice body)
{
    static const char *const kinds[MESSAGE_LAST + 1] = {[MESSAGE_START] = "start", [MESSAGE_EVENT] = "event"};
    struct arena arena;
    struct message m;
    arena_init(&arena, MESSAGE_BYTES_MAX * 2);
    if (message_decode(body, &arena, &m, NULL) == THOLE_OK) {
        CU_ASSERT_PTR_NOT_NULL_FATAL(kinds[m.kind]);
        CU_ASSERT(m.source.actor.name.len > 0 &&
                  thole_slice_equal(m.source.actor.client, THOLE_STR("thole bind")));
        (void)fprintf(play.said,
                      "%s instance=%.*s orchestration=%.*s version=%u request=%.*s data=", kinds[m.kind],
                      THOLE_FMT(m.instance), THOLE_FMT(m.orchestration), m.version, THOLE_FMT(m.request_id));
        say_bytes(m.data);
        (void)fprintf(play.said, " event=%.*s,", THOLE_FMT(m.event_name));
        say_bytes(m.event_data);
        (void)fprintf(play.said, " trace=%.*s,%.*s", THOLE_FMT(m.trace.parent), THOLE_FMT(m.trace.list));
    } else {
        say_bytes(body);
    }
    (void)fputc('\n', play.said);
    arena_release(&arena);
}

thole_status __wrap_requests_publish(struct requests *requests, const struct publish *publish, uint64_t token,
                                     thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(requests, &some_requests);
    CU_ASSERT_FALSE(publish->expect_last);
    say_to(publish->subject, publish->headers, publish->headers_len);
    if (publish->message_id != NULL)
        (void)fprintf(play.said, "[Nats-Msg-Id: %s] ", publish->message_id);
    say_message(publish->body);
    THOLE_TRY(played_ends(CALL_SEND, reterr));
    CU_ASSERT_FATAL(sent_len < SENT_MAX && sending != 0);
    sent[sent_len++] = (struct sent){sending, token};
    return THOLE_OK;
}

void played_done(uint64_t sequence, enum request_result result)
{
    size_t i = 0;
    while (i < sent_len && sent[i].sequence != sequence)
        i++;
    if (i == sent_len) {
        played_say("nothing was sent for %" PRIu64, sequence);
        return;
    }
    uint64_t const token = sent[i].token;
    sent[i] = sent[--sent_len];
    answers(NULL, &(struct request_done){.result = result, .token = token, .sequence = 1});
}

/* ---- begin, end ---- */

void binder_world_begin(FILE *said)
{
    played_begin(said);
    binder_world = (struct played_binder){.max_payload = 1 << 20, .payload_max = 1 << 20};
    CU_ASSERT_EQUAL_FATAL(nats_Open(-1), NATS_OK); /* once; its messages need it */
    opened = 0;
    sent_len = 0;
    memset(pullers, 0, sizeof pullers);
    memset(rules, 0, sizeof rules);
    serves = NULL;
    watches = NULL;
}

void binder_world_end(void)
{
    played_end();
    CU_ASSERT_EQUAL(opened, 0);
    CU_ASSERT_EQUAL(sent_len, 0);
}
