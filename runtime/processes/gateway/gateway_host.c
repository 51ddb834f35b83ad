#include "gateway_host.h"
#include "clock.h"
#include "inbox_prefix.h"
#include "instance_calls.h"
#include "memory.h"
#include "nats_watch.h"
#include "row_pool.h"
#include "session.h"
#include "subject.h"
#include "topology.h"
#include "worker_host.h"
#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
    CONNECT_TIMEOUT_MS = 5000,
    IDLE_IN_TRANSACTION_MS = 10000,
    PAUSE_MS = 500,
    SAY_EVERY_MS = 10000,
    ID_BYTES = 17,
    SUBJECT_BYTES = 256,
};

struct gateway_host {
    struct host_options options; /* texts are borrowed from the caller */
    char id[ID_BYTES];
    struct connection *connection;
    struct nats_watch nats;
    struct thole_client *client;
    struct instance_calls *instance_calls;
    struct services *services;
    struct subscription *opens, *operations, *clients;
    struct metric_cells *cells; /* several threads count in them */

    pthread_mutex_t lock;
    pthread_cond_t fewer;
    struct session **sessions; /* under lock */
    size_t sessions_len, sessions_cap;
    bool stopping;
};

/* ---- sessions ---- */

/* With a reference for the caller; NULL: there is none. */
static struct session *find_session(struct gateway_host *gateway, thole_slice id)
{
    struct session *found = NULL;
    (void)pthread_mutex_lock(&gateway->lock);
    for (size_t i = 0; i < gateway->sessions_len && found == NULL; i++)
        if (thole_slice_equal(id, thole_slice_from(session_id(gateway->sessions[i]))))
            found = gateway->sessions[i];
    if (found != NULL)
        session_hold(found);
    (void)pthread_mutex_unlock(&gateway->lock);
    return found;
}

static void gateway_host_on_ended(void *arg, struct session *session)
{
    struct gateway_host *const gateway = arg;
    (void)pthread_mutex_lock(&gateway->lock);
    size_t i = 0;
    while (gateway->sessions[i] != session)
        i++;
    gateway->sessions[i] = gateway->sessions[--gateway->sessions_len];
    metric_set(gateway->cells, METRIC_GATEWAY_SESSIONS, 0, gateway->sessions_len);
    (void)pthread_cond_broadcast(&gateway->fewer);
    (void)pthread_mutex_unlock(&gateway->lock);
    session_release(session);
}

/* Under the lock. No queue has so many that no room is left for others; those that go on with tasks after
 * another gateway has died may be twice as many. */
static bool gateway_host_has_room(struct gateway_host *gateway, struct gateway_request *request)
{
    uint32_t const max = gateway->options.queue_sessions;
    uint32_t const most = session_resumes(request) ? 2 * max : max;
    size_t of_queue = 0, slots = 0;
    if (gateway->sessions_len == GATEWAY_SESSIONS_MAX) {
        metric_count(gateway->cells, METRIC_GATEWAY_SESSIONS_REFUSED, SESSIONS_OF_GATEWAY, 1);
        gateway_refuse(request, THOLE_UNAVAILABLE, "this gateway has %d sessions: start another gateway",
                       GATEWAY_SESSIONS_MAX);
        return false;
    }
    for (size_t i = 0; i < gateway->sessions_len; i++) {
        of_queue += strcmp(session_queue(gateway->sessions[i]), request->name) == 0;
        slots += session_slots(gateway->sessions[i]);
    }
    if (session_slots_asked(request) <= SESSION_SLOTS_MAX &&
        slots + session_slots_asked(request) > GATEWAY_SLOTS_MAX) {
        metric_count(gateway->cells, METRIC_GATEWAY_SESSIONS_REFUSED, SESSIONS_OF_GATEWAY, 1);
        gateway_refuse(request, THOLE_UNAVAILABLE,
                       "the sessions of this gateway have %zu slots, of at most %d: ask for fewer, or start "
                       "another gateway",
                       slots, GATEWAY_SLOTS_MAX);
        return false;
    }
    if (max == 0 || of_queue < most)
        return true;
    metric_count(gateway->cells, METRIC_GATEWAY_SESSIONS_REFUSED, SESSIONS_OF_QUEUE, 1);
    gateway_refuse(request, THOLE_UNAVAILABLE,
                   "this gateway has %zu sessions of queue %s, as many as --queue-sessions allows: use fewer "
                   "workers with more slots, or start another gateway",
                   of_queue, request->name);
    return false;
}

/* The table is locked, since a session may end before it is in it. */
static void open_session(struct gateway_host *gateway, struct gateway_request *request)
{
    struct session_options const options = {.host = &gateway->options,
                                            .connection = gateway->connection,
                                            .gateway = gateway->id,
                                            .cells = gateway->cells,
                                            .ended = gateway_host_on_ended,
                                            .arg = gateway};
    (void)pthread_mutex_lock(&gateway->lock);
    if (gateway->stopping) {
        gateway_refuse(request, THOLE_UNAVAILABLE, "this gateway is stopping: ask again");
    } else if (gateway_host_has_room(gateway, request)) {
        struct session *const session = session_begin(&options, request);
        if (session != NULL) {
            gateway->sessions = memory_reserve(gateway->sessions, &gateway->sessions_cap,
                                               gateway->sessions_len + 1, sizeof(struct session *));
            gateway->sessions[gateway->sessions_len++] = session;
            metric_set(gateway->cells, METRIC_GATEWAY_SESSIONS, 0, gateway->sessions_len);
        }
    }
    (void)pthread_mutex_unlock(&gateway->lock);
}

/* ---- messages ---- */

static void on_open(void *arg, const struct delivery *delivery)
{
    struct gateway_host *const gateway = arg;
    struct gateway_request *const request =
        gateway_request_take(gateway->connection, services_open_endpoint(gateway->services), delivery);
    if (request != NULL)
        open_session(gateway, request);
}

/* The @p back-th token from the end. */
static thole_slice token_from_end(thole_slice subject, int back)
{
    for (;; back--) {
        size_t begin = subject.len;
        while (begin > 0 && subject.ptr[begin - 1] != '.')
            begin--;
        if (back == 0 || begin == 0)
            return (thole_slice){subject.ptr + begin, subject.len - begin};
        subject.len = begin - 1;
    }
}

/* thole.<ns>.gateway.session.<gateway>.<session>.<operation> */
static void on_operation(void *arg, const struct delivery *delivery)
{
    struct gateway_host *const gateway = arg;
    struct endpoint *const endpoint =
        services_session_endpoint(gateway->services, token_from_end(delivery->subject, 0));
    if (endpoint == NULL)
        return;
    struct gateway_request *const request = gateway_request_take(gateway->connection, endpoint, delivery);
    if (request == NULL)
        return;
    struct session *const session = find_session(gateway, token_from_end(delivery->subject, 1));
    if (session == NULL) {
        gateway_refuse(request, THOLE_NOT_FOUND, "there is no such session: open another one");
        return;
    }
    session_request(session, request);
    session_release(session);
}

/* thole.<ns>.gateway.client.<operation>[.<name>][.by.<actor>] */
static void on_client(void *arg, const struct delivery *delivery)
{
    struct gateway_host *const gateway = arg;
    thole_slice const operation = subject_nth(delivery->subject, CLIENT_TOKEN_OPERATION);
    struct endpoint *const endpoint = services_client_endpoint(gateway->services, operation);
    if (endpoint == NULL ||
        (endpoint->named && subject_nth(delivery->subject, CLIENT_TOKEN_OPERATION + 1).len == 0))
        return;
    struct gateway_request *const request = gateway_request_take(gateway->connection, endpoint, delivery);
    if (request != NULL)
        instance_calls_take(gateway->instance_calls, request);
}

/* ---- start and stop ---- */

static void gateway_host_on_state(void *arg, bool connected, uint64_t epoch)
{
    struct gateway_host *const gateway = arg;
    (void)epoch;
    nats_watch_state(&gateway->nats, connected);
    metric_set(gateway->cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_UP, connected);
    metric_set(gateway->cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_DOWN, !connected);
    if (!connected)
        metric_count(gateway->cells, METRIC_NATS_DISCONNECTS, 0, 1);
}

static void gateway_host_on_trouble(void *arg, enum connection_trouble trouble, const thole_error *error)
{
    struct gateway_host *const gateway = arg;
    nats_watch_trouble(&gateway->nats, trouble, error);
}

static const char *gateway_host_own_inbox(const struct gateway_host *gateway,
                                          char room[INBOX_PREFIX_BYTES_MAX + 1])
{
    const struct host_options *const options = &gateway->options;
    struct inbox_owner const owner = {.ns = options->ns, .role = GATEWAY_INBOX_ROLE};
    return inbox_prefix_or_own(options->nats_inbox, &owner, room);
}

static thole_status gateway_host_open_connection(struct gateway_host *gateway, thole_error *reterr)
{
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    struct connection_options const options = {.url = gateway->options.nats_url,
                                               .creds = gateway->options.nats_creds,
                                               .ca = gateway->options.nats_ca,
                                               .cert = gateway->options.nats_cert,
                                               .key = gateway->options.nats_key,
                                               .server_name = gateway->options.nats_server_name,
                                               .inbox = gateway_host_own_inbox(gateway, inbox),
                                               .api_prefix = gateway->options.nats_api_prefix,
                                               .name = gateway->options.node,
                                               .on_state = gateway_host_on_state,
                                               .on_trouble = gateway_host_on_trouble,
                                               .arg = gateway,
                                               .connect_timeout_ms = CONNECT_TIMEOUT_MS,
                                               .request_timeout_ms = CONNECT_TIMEOUT_MS};
    if (gateway->connection != NULL)
        return THOLE_OK;
    return connection_open(&options, &gateway->connection, reterr);
}

/* Fails until an engine has set the namespace up. */
static thole_status gateway_host_open_client(struct gateway_host *gateway, thole_error *reterr)
{
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    thole_client_options options;
    thole_client_options_init(&options);
    options.nats_url = gateway->options.nats_url;
    options.nats_creds = gateway->options.nats_creds;
    options.nats_ca = gateway->options.nats_ca;
    options.nats_cert = gateway->options.nats_cert;
    options.nats_key = gateway->options.nats_key;
    options.nats_server_name = gateway->options.nats_server_name;
    options.nats_inbox = gateway_host_own_inbox(gateway, inbox);
    options.nats_api_prefix = gateway->options.nats_api_prefix;
    options.postgres = gateway->options.postgres;
    options.ns = gateway->options.ns;
    return thole_client_open(&options, &gateway->client, reterr);
}

typedef thole_status step_fn(struct gateway_host *gateway, thole_error *reterr);

/* Waits for servers and the namespace, with a line in the log. */
static thole_status gateway_host_until_done(struct gateway_host *gateway, step_fn *step,
                                            const struct stop_check *stop, thole_error *reterr)
{
    uint64_t said_ms = 0;
    for (;;) {
        thole_error error = {.status = THOLE_OK};
        thole_status const status = step(gateway, &error);
        uint64_t const now_ms = clock_monotonic_ms();
        if (status == THOLE_OK)
            return THOLE_OK;
        if (step != gateway_host_open_client) /* which needs the namespace, too */
            nats_watch_failed(&gateway->nats, status);
        bool const outage =
            status == THOLE_UNAVAILABLE || status == THOLE_TIMEOUT || status == THOLE_NOT_FOUND;
        if (!outage || stop_is_requested(stop))
            return thole_fail(reterr, outage ? THOLE_CANCELLED : status, "%s", error.text);
        if (said_ms == 0 || now_ms - said_ms >= SAY_EVERY_MS) {
            log_line(LOG_LEVEL_WARN, "gateway", "waiting: %s", error.text);
            said_ms = now_ms;
        }
        struct timespec const pause = {.tv_nsec = PAUSE_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
    }
}

/* An existing subscription stays: this is called again after an outage. */
static thole_status gateway_host_serve(struct gateway_host *gateway, const char *subject, delivery_fn *each,
                                       struct subscription **to, thole_error *reterr)
{
    if (*to != NULL)
        return THOLE_OK;
    return connection_serve(gateway->connection, subject, GATEWAY_GROUP, each, gateway, to, reterr);
}

static thole_status listen_to(struct gateway_host *gateway, thole_error *reterr)
{
    char subject[SUBJECT_BYTES];
    const char *const ns = gateway->options.ns;
    (void)snprintf(subject, sizeof subject, "thole.%s.gateway.session.%s.*.*", ns, gateway->id);
    if (gateway->operations == NULL)
        THOLE_TRY(connection_subscribe(gateway->connection, subject, on_operation, gateway,
                                       &gateway->operations, reterr));
    (void)snprintf(subject, sizeof subject, "thole.%s.gateway.client.>", ns);
    THOLE_TRY(gateway_host_serve(gateway, subject, on_client, &gateway->clients, reterr));
    (void)snprintf(subject, sizeof subject, "thole.%s.gateway.open.*", ns);
    THOLE_TRY(gateway_host_serve(gateway, subject, on_open, &gateway->opens, reterr));
    return connection_flush(gateway->connection, reterr);
}

static void make_pool(struct gateway_host *gateway)
{
    struct row_pool_options const options = {.postgres = {.conninfo = gateway->options.postgres,
                                                          .ns = gateway->options.ns,
                                                          .application = "thole-gateway",
                                                          .idle_in_transaction_ms = IDLE_IN_TRANSACTION_MS},
                                             .connections = gateway->options.postgres_connections,
                                             .metrics = gateway->options.metrics};
    gateway->options.row_pool = row_pool_create(&options);
}

static thole_status gateway_host_launch(struct gateway_host *gateway, const struct stop_check *stop,
                                        thole_error *reterr)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return thole_fail(reterr, THOLE_UNSUPPORTED, "the system gives no random numbers");
    (void)snprintf(gateway->id, sizeof gateway->id, "%016" PRIx64, random);
    make_pool(gateway);
    THOLE_TRY(gateway_host_until_done(gateway, gateway_host_open_connection, stop, reterr));
    THOLE_TRY(gateway_host_until_done(gateway, gateway_host_open_client, stop, reterr));
    gateway->instance_calls = instance_calls_create(gateway->client);
    THOLE_TRY(services_start(gateway->connection, gateway->options.ns, gateway->id, gateway->cells,
                             &gateway->services, reterr));
    return gateway_host_until_done(gateway, listen_to, stop, reterr);
}

thole_status gateway_host_start(const struct host_options *options, const struct stop_check *stop,
                                struct gateway_host **ret, thole_error *reterr)
{
    struct gateway_host *const gateway = memory_new(sizeof *gateway);
    gateway->options = *options;
    gateway->cells = metrics_cells(options->metrics);
    nats_watch_begin(&gateway->nats, "gateway", LOG_LEVEL_WARN, options->metrics);
    (void)pthread_mutex_init(&gateway->lock, NULL);
    (void)pthread_cond_init(&gateway->fewer, NULL);
    thole_status const status = gateway_host_launch(gateway, stop, reterr);
    if (status != THOLE_OK) {
        gateway_host_stop(gateway);
        return status;
    }
    log_line(LOG_LEVEL_INFO, "gateway", "serves namespace %s as gateway %s", options->ns, gateway->id);
    *ret = gateway;
    return THOLE_OK;
}

static void end_sessions(struct gateway_host *gateway)
{
    (void)pthread_mutex_lock(&gateway->lock);
    gateway->stopping = true;
    for (size_t i = 0; i < gateway->sessions_len; i++)
        session_stop(gateway->sessions[i], gateway->options.stop_limit_ms);
    while (gateway->sessions_len > 0)
        (void)pthread_cond_wait(&gateway->fewer, &gateway->lock);
    (void)pthread_mutex_unlock(&gateway->lock);
}

void gateway_host_stop(struct gateway_host *gateway)
{
    if (gateway == NULL)
        return;
    subscription_close(gateway->opens); /* other gateways get new sessions */
    subscription_close(gateway->clients);
    end_sessions(gateway);
    instance_calls_destroy(gateway->instance_calls);
    subscription_close(gateway->operations);
    services_stop(gateway->services);
    thole_client_close(gateway->client);
    connection_close(gateway->connection);
    nats_watch_end(&gateway->nats);
    row_pool_destroy(gateway->options.row_pool);
    metrics_return_cells(gateway->cells);
    free(gateway->sessions);
    (void)pthread_cond_destroy(&gateway->fewer);
    (void)pthread_mutex_destroy(&gateway->lock);
    free(gateway);
}
