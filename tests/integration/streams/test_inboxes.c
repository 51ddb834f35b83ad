/*
 * Users of one account whose permissions are separate: who may subscribe below its own inbox prefix alone
 * hears nothing of what is sent to others; with one prefix for all it reads the inputs of the workers.
 */
#include "link.h"
#include "stack.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { CONFIG_BYTES = 3072, URL_BYTES = 96, NAME_BYTES = 48, WAIT_MS = 30000, HEARD_MAX = 16 };

static const char secret[] = "card=SECRET";

/* The prefix of each user: its own, or one for all. */
static struct {
    const char *engine, *worker, *client;
} prefix;

static struct stack stack;

/* ---- the server's users ---- */

/* The hand of the test is who connects without a name, and may do everything. */
static const char *permissions(void)
{
    static char text[CONFIG_BYTES];
    int const n = snprintf(
        text, sizeof text,
        "no_auth_user: hand\n"
        "authorization { users: [\n"
        "  { user: hand, password: hand },\n"
        "  { user: engine, password: geheim, permissions: { allow_responses: true,\n"
        "    publish: [\"thole.default.>\", \"$KV.>\", \"$JS.API.>\", \"$JS.FC.>\"],\n"
        "    subscribe: [\"%s.>\", \"thole.default.query.>\", \"thole.default.engines.*\",\n"
        "      \"thole.default.queues.*\"] } },\n"
        "  { user: worker, password: geheim, permissions: { allow_responses: true,\n"
        "    publish: [\"thole.default.in.>\", \"thole.default.queues.default\", \"$JS.FC.>\",\n"
        "      \"$JS.ACK.THOLE_default_WORK.>\",\n"
        "      \"$JS.API.INFO\", \"$JS.API.STREAM.INFO.*\", \"$JS.API.STREAM.MSG.GET.*\",\n"
        "      \"$JS.API.CONSUMER.*.THOLE_default_WORK.>\",\n"
        "      \"$JS.API.CONSUMER.MSG.NEXT.THOLE_default_WORK.>\"],\n"
        "    subscribe: [\"%s.>\", \"thole.default.cancel.>\", \"thole.default.workers\"] } },\n"
        "  { user: client, password: geheim, permissions: {\n"
        "    publish: [\"thole.default.in.>\", \"thole.default.query.>\", \"thole.default.workers\",\n"
        "      \"$JS.FC.>\", \"$JS.API.INFO\", \"$JS.API.STREAM.INFO.*\", "
        "\"$JS.API.STREAM.MSG.GET.THOLE_default_HIST_0\",\n"
        "      \"$JS.API.STREAM.MSG.GET.KV_THOLE_default_CONFIG\",\n"
        "      \"$JS.API.CONSUMER.*.THOLE_default_HIST_0.>\"],\n"
        "    subscribe: [\"%s.>\", \"thole.default.event.>\"] } } ] }\n",
        prefix.engine, prefix.worker, prefix.client);
    CU_ASSERT_FATAL(n > 0 && (size_t)n < sizeof text);
    return text;
}

static const char *url_of(const char *user)
{
    static char text[URL_BYTES];
    (void)snprintf(text, sizeof text, "nats://%s:geheim@127.0.0.1:%u", user, stack.nats.port);
    return text;
}

/* ---- the listener ---- */

struct listening {
    pthread_mutex_t lock;
    struct connection *connection;
    struct subscription *subscriptions[HEARD_MAX];
    size_t len;
    unsigned secrets, to_worker; /* messages with the input; of those, deliveries to the worker */
    unsigned pushes;             /* push consumers that were asked for */
    char foreign[128];           /* an inbox that is below no user's prefix */
};

static bool holds(thole_slice body, const char *text)
{
    return body.len > 0 && memmem(body.ptr, body.len, text, strlen(text)) != NULL;
}

static bool begins_with(thole_slice text, const char *with)
{
    return text.len > strlen(with) && memcmp(text.ptr, with, strlen(with)) == 0;
}

static bool is_below(thole_slice subject, const char *user)
{
    return begins_with(subject, user) && subject.ptr[strlen(user)] == '.';
}

static bool is_foreign(thole_slice subject)
{
    return begins_with(subject, "_INBOX") && !is_below(subject, prefix.engine) &&
           !is_below(subject, prefix.worker) && !is_below(subject, prefix.client) &&
           !is_below(subject, "_INBOX_hand");
}

/* Where a push consumer that is asked for delivers to. */
static thole_slice deliver_subject(thole_slice body)
{
    static const char key[] = "\"deliver_subject\":\"";
    const uint8_t *const at = body.len == 0 ? NULL : memmem(body.ptr, body.len, key, sizeof key - 1);
    if (at == NULL)
        return (thole_slice){NULL, 0};
    const uint8_t *const begin = at + sizeof key - 1;
    size_t const left = (size_t)(body.ptr + body.len - begin);
    const uint8_t *const end = memchr(begin, '"', left);
    return (thole_slice){begin, end == NULL ? left : (size_t)(end - begin)};
}

static void on_heard(void *arg, const struct delivery *delivery)
{
    struct listening *const self = arg;
    thole_slice const seen[] = {delivery->subject, delivery->reply, deliver_subject(delivery->body)};
    pthread_mutex_lock(&self->lock);
    if (holds(delivery->body, secret)) {
        self->secrets++;
        self->to_worker += begins_with(delivery->reply, "$JS.ACK.THOLE_default_WORK.");
    }
    self->pushes += seen[2].len > 0;
    for (size_t i = 0; i < ARRAY_LEN(seen); i++)
        if (is_foreign(seen[i]))
            (void)snprintf(self->foreign, sizeof self->foreign, "%.*s", THOLE_FMT(seen[i]));
    pthread_mutex_unlock(&self->lock);
}

static void listen_as(struct listening *self, const char *url, const char *inbox, const char *const *subjects,
                      size_t n)
{
    struct connection_options const options = {.url = url,
                                               .inbox = inbox,
                                               .name = "listener",
                                               .connect_timeout_ms = 5000,
                                               .request_timeout_ms = 5000};
    *self = (struct listening){.len = n};
    pthread_mutex_init(&self->lock, NULL);
    CU_ASSERT_EQUAL_FATAL(connection_open(&options, &self->connection, &stack.err), THOLE_OK);
    for (size_t i = 0; i < n; i++)
        CHECK_OK(connection_subscribe(self->connection, subjects[i], on_heard, self, &self->subscriptions[i],
                                      &stack.err),
                 &stack.err);
    CHECK_OK(connection_flush(self->connection, &stack.err), &stack.err);
}

/* How many of its subscriptions the server has refused. */
static uint64_t listening_end(struct listening *self)
{
    char last[256];
    CHECK_OK(connection_flush(self->connection, &stack.err), &stack.err);
    uint64_t const refused = connection_violations(self->connection, last, sizeof last);
    for (size_t i = 0; i < self->len; i++)
        subscription_close(self->subscriptions[i]);
    connection_close(self->connection);
    pthread_mutex_destroy(&self->lock);
    return refused;
}

/* ---- the programs ---- */

static void start_role(const char *role, const char *inbox)
{
    char url[URL_BYTES + 8], option[NAME_BYTES];
    (void)snprintf(url, sizeof url, "--nats=%s", url_of(role));
    (void)snprintf(option, sizeof option, "--nats-inbox=%s", inbox);
    (void)stack_program(&stack, role, role, url, option,
                        strcmp(role, "engine") == 0 ? "--partitions=1" : NULL, NULL);
}

static thole_client *open_client(void)
{
    thole_client *client = NULL;
    thole_client_options options;
    thole_client_options_init(&options);
    options.nats_url = url_of("client");
    options.nats_inbox = prefix.client;
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    thole_status status;
    while ((status = thole_client_open(&options, &client, &stack.err)) != THOLE_OK &&
           clock_monotonic_ms() < end)
        pause_ms(50);
    if (status != THOLE_OK)
        fprintf(stderr, "%s\n", stack.err.text);
    CU_ASSERT_EQUAL_FATAL(status, THOLE_OK);
    return client;
}

static thole_status count_worker(void *arg, const thole_worker_info *info)
{
    (void)info;
    ++*(size_t *)arg;
    return THOLE_OK;
}

/* One of each kind of answer that a client waits for. */
static void use_everything(thole_client *client)
{
    thole_slice const id = THOLE_STR("order-1");
    thole_instance_status status;
    size_t workers = 0;
    thole_slice answer = {NULL, 0};
    CHECK_OK(
        thole_client_start(client, id, THOLE_STR("one"), THOLE_STR("order=1;card=SECRET"), NULL, &stack.err),
        &stack.err);
    CHECK_STR("output", stack_outcome(client, "order-1", WAIT_MS, &status), "order=1;card=SECRET");
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_COMPLETED);
    CHECK_STR("history", stack_history(client, "order-1"),
              "1:Started 1:ActivityScheduled 1:ActivityCompleted 1:Completed");
    CHECK_OK(thole_client_workers(client, count_worker, &workers, &stack.err), &stack.err);
    CU_ASSERT_EQUAL(workers, 1);
    CU_ASSERT_EQUAL(
        thole_client_query(client, id, THOLE_STR("none"), (thole_slice){NULL, 0}, &answer, &stack.err),
        THOLE_NOT_FOUND);
}

static void run_programs(void)
{
    start_role("engine", prefix.engine);
    thole_client *const client = open_client();
    start_role("worker", prefix.worker);
    use_everything(client);
    thole_client_close(client);
}

/* ---- tests ---- */

static void test_one_prefix_for_all(void)
{
    static const char *const subjects[] = {"_INBOX.>"};
    static struct listening client;
    prefix.engine = prefix.worker = prefix.client = "_INBOX";
    stack_start_configured(&stack, permissions());
    listen_as(&client, url_of("client"), prefix.client, subjects, ARRAY_LEN(subjects));
    run_programs();
    CU_ASSERT_EQUAL(listening_end(&client), 0);
    CU_ASSERT(client.secrets > 0);
    CU_ASSERT(client.to_worker > 0);
    stack_stop(&stack);
}

static void test_a_prefix_for_each(void)
{
    static const char *const tried[] = {
        "_INBOX.>", "_INBOX_worker.>",   "_INBOX_engine.>",     "_INBOX.thole.>", ">",
        "*.>",      "_INBOX_worker.*.*", "thole.default.work.>"};
    static const char *const all[] = {">"};
    static struct listening client, hand;
    prefix.engine = "_INBOX_engine", prefix.worker = "_INBOX_worker", prefix.client = "_INBOX_client";
    stack_start_configured(&stack, permissions());
    listen_as(&hand, getenv("THOLE_NATS_URL"), "_INBOX_hand", all, ARRAY_LEN(all));
    listen_as(&client, url_of("client"), prefix.client, tried, ARRAY_LEN(tried));
    run_programs();
    CU_ASSERT_EQUAL(listening_end(&client), ARRAY_LEN(tried));
    CU_ASSERT_EQUAL(client.secrets, 0);
    CU_ASSERT_EQUAL(listening_end(&hand), 0);
    CU_ASSERT(hand.to_worker > 0); /* there were messages to be heard */
    CU_ASSERT(hand.pushes > 0);
    CHECK_STR("an inbox of nobody", hand.foreign, "");
    stack_stop(&stack);
}

static const struct thole_test tests[] = {
    {"with one prefix for all a client reads the workers' inputs", test_one_prefix_for_all},
    {"with a prefix for each it hears nothing", test_a_prefix_for_each},
};

THOLE_INTEGRATION_MAIN("inboxes", tests)
