#include "binder_host.h"
#include "binding.h"
#include "calls.h"
#include "clock.h"
#include "inbox_prefix.h"
#include "log.h"
#include "memory.h"
#include "metrics.h"
#include "nats_watch.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CONNECT_TIMEOUT_MS = 5000,
    PAUSE_MS = 500,
    SAY_EVERY_MS = 10000,
    WINDOW = 16384, /* requests in flight, of all rules together */
    TICK_MS = 1000,
    LAG_EVERY_MS = 5000,
    RETRY_MS_MAX = 15000,
    RULE_ARENA_MAX = 64 * 1024,
};

/* A rule that was there at some time. */
struct slot {
    char name[THOLE_NAME_BYTES_MAX + 1];
    char *text; /* under lock; NULL: deleted */
    uint64_t revision;
    bool changed; /* under lock */
    /* The thread's alone: */
    struct binding *binding; /* NULL: not served */
    char stream[BIND_STREAM_MAX + 1];
    uint64_t served, retry_ms, due_ms; /* due 0: nothing to try again */
};

struct binder_host {
    struct host_options options; /* texts are borrowed from the caller */
    struct connection *connection;
    struct nats_watch nats;
    struct topology topology;
    struct binding_host shared;
    struct bindings_watch *watch;
    thole_client *client; /* of the calls */
    struct calls *calls;
    struct metric_cells *cells;
    struct binding_counts told; /* to the metrics; the thread's */

    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct slot **slots; /* under lock; each lives until the end */
    size_t slots_len, slots_cap;
    bool stopping, look;
};

/* ---- entries of the bucket: on the connection's reading thread ---- */

static struct slot *find_slot(struct binder_host *binder, thole_slice name)
{
    for (size_t i = 0; i < binder->slots_len; i++)
        if (thole_slice_equal(name, thole_slice_from(binder->slots[i]->name)))
            return binder->slots[i];
    if (binder->slots_len == BINDINGS_MAX)
        return NULL;
    struct slot *const slot = memory_new(sizeof *slot);
    (void)snprintf(slot->name, sizeof slot->name, "%.*s", THOLE_FMT(name));
    binder->slots =
        memory_reserve(binder->slots, &binder->slots_cap, binder->slots_len + 1, sizeof(struct slot *));
    binder->slots[binder->slots_len++] = slot;
    return slot;
}

static void on_rule(void *arg, thole_slice name, thole_slice value, uint64_t revision)
{
    struct binder_host *const binder = arg;
    (void)pthread_mutex_lock(&binder->lock);
    struct slot *const slot = find_slot(binder, name);
    if (slot != NULL && revision > slot->revision) { /* the watch begins again after a reconnect */
        free(slot->text);
        slot->text =
            value.len == 0 || value.len > BIND_RULE_JSON_MAX ? NULL : memory_copy(value.ptr, value.len);
        slot->revision = revision;
        slot->changed = true;
        (void)pthread_cond_signal(&binder->wake);
    }
    (void)pthread_mutex_unlock(&binder->lock);
    if (slot == NULL)
        log_limits_line(binder->shared.lines, clock_monotonic_ms(), BINDER_LINE_NOT_SERVED, NULL,
                        "rule %.*s is not served: there are more than %d", THOLE_FMT(name), BINDINGS_MAX);
}

static void binder_host_on_refused(void *arg)
{
    struct binder_host *const binder = arg;
    (void)pthread_mutex_lock(&binder->lock);
    binder->look = true;
    (void)pthread_cond_signal(&binder->wake);
    (void)pthread_mutex_unlock(&binder->lock);
}

/* ---- serving a rule: the thread ---- */

static void binder_host_postpone(struct slot *slot, uint64_t now_ms)
{
    slot->retry_ms = slot->retry_ms == 0 ? PAUSE_MS : slot->retry_ms * 2;
    slot->retry_ms = slot->retry_ms < RETRY_MS_MAX ? slot->retry_ms : RETRY_MS_MAX;
    slot->due_ms = now_ms + slot->retry_ms;
}

/* The consumer on a stream that the rule has left, or of a rule that is gone. Best effort: the
 * command that changes the rule does the same. */
static void forget_consumer(struct binder_host *binder, struct slot *slot)
{
    thole_error error = {.status = THOLE_OK};
    if (slot->stream[0] != '\0' &&
        binding_consumer_delete(binder->connection, binder->topology.ns, thole_slice_from(slot->name),
                                thole_slice_from(slot->stream), &error) != THOLE_OK)
        log_limits_line(binder->shared.lines, clock_monotonic_ms(), BINDER_LINE_NOT_SERVED, NULL,
                        "rule %s: its consumer on stream %s is still there: %s", slot->name, slot->stream,
                        error.text);
    slot->stream[0] = '\0';
}

static thole_status binder_host_begin(struct binder_host *binder, struct slot *slot, const char *text,
                                      thole_error *reterr)
{
    struct arena arena;
    struct bind_rule rule;
    arena_init(&arena, RULE_ARENA_MAX);
    thole_status status = bind_rule_read(thole_slice_from(text), &arena, &rule, reterr);
    if (status == THOLE_OK) {
        if (!thole_slice_equal(rule.stream, thole_slice_from(slot->stream)))
            forget_consumer(binder, slot);
        (void)snprintf(slot->stream, sizeof slot->stream, "%.*s", THOLE_FMT(rule.stream));
        status = binding_open(&binder->shared, thole_slice_from(slot->name), &rule, &slot->binding, reterr);
    }
    if (status == THOLE_OK)
        log_limits_line(binder->shared.lines, clock_monotonic_ms(), BINDER_LINE_CHANGED, NULL,
                        "rule %s, revision %llu: %s %.*s of stream %s", slot->name,
                        (unsigned long long)slot->served, bind_action_names[rule.action],
                        THOLE_FMT(rule.subject), slot->stream);
    arena_release(&arena);
    return status;
}

/* @p text is NULL for a rule that was deleted. */
static void binder_host_serve(struct binder_host *binder, struct slot *slot, const char *text)
{
    thole_error error = {.status = THOLE_OK};
    uint64_t const now_ms = clock_monotonic_ms();
    bool const first = slot->due_ms == 0;
    binding_close(slot->binding);
    slot->binding = NULL;
    slot->due_ms = 0;
    if (text == NULL) {
        forget_consumer(binder, slot);
        log_limits_line(binder->shared.lines, clock_monotonic_ms(), BINDER_LINE_CHANGED, NULL,
                        "rule %s is gone", slot->name);
        return;
    }
    if (binder_host_begin(binder, slot, text, &error) == THOLE_OK) {
        slot->retry_ms = 0;
        return;
    }
    binder_host_postpone(slot, now_ms);
    if (first || slot->retry_ms == RETRY_MS_MAX)
        log_limits_line(binder->shared.lines, clock_monotonic_ms(), BINDER_LINE_NOT_SERVED, NULL,
                        "rule %s is not served: %s", slot->name, error.text);
}

/* Whether the rule is still the one that is served, by the leader: another process may just have removed it
 * with its consumer, which must not be made again. */
static bool still_there(struct binder_host *binder, const struct slot *slot)
{
    struct buf value;
    uint64_t revision = 0;
    buf_init(&value, 2 * BIND_RULE_JSON_MAX);
    thole_status const status = bindings_get(binder->connection, binder->topology.ns,
                                             thole_slice_from(slot->name), &value, &revision, NULL);
    buf_release(&value);
    return status == THOLE_OK && revision == slot->served;
}

static void binder_host_look_again(struct binder_host *binder, struct slot *slot)
{
    thole_error error = {.status = THOLE_OK};
    if (slot->binding == NULL || !binding_take_refused(slot->binding) || !still_there(binder, slot))
        return;
    if (binding_ensure(slot->binding, &error) != THOLE_OK)
        log_limits_line(binder->shared.lines, clock_monotonic_ms(), BINDER_LINE_NOT_SERVED, NULL,
                        "rule %s gets no messages: %s", slot->name, error.text);
}

/* The next thing to do for the slot; the text is the caller's to free. */
static bool binder_host_take_wish(struct binder_host *binder, struct slot *slot, char **ret_text)
{
    (void)pthread_mutex_lock(&binder->lock);
    bool const due = slot->due_ms != 0 && clock_monotonic_ms() >= slot->due_ms;
    bool const wish = slot->changed || due;
    slot->retry_ms = slot->changed ? 0 : slot->retry_ms;
    if (slot->changed)
        slot->due_ms = 0;
    slot->changed = false;
    slot->served = slot->revision;
    *ret_text = wish && slot->text != NULL ? memory_text(slot->text) : NULL;
    (void)pthread_mutex_unlock(&binder->lock);
    return wish;
}

static struct slot *slot_at(struct binder_host *binder, size_t i)
{
    (void)pthread_mutex_lock(&binder->lock);
    struct slot *const slot = i < binder->slots_len ? binder->slots[i] : NULL;
    (void)pthread_mutex_unlock(&binder->lock);
    return slot;
}

static void serve_all(struct binder_host *binder, bool look)
{
    struct slot *slot;
    char *text;
    for (size_t i = 0; (slot = slot_at(binder, i)) != NULL; i++) {
        if (binder_host_take_wish(binder, slot, &text))
            binder_host_serve(binder, slot, text);
        else if (look)
            binder_host_look_again(binder, slot);
        free(text);
    }
}

/* ---- metrics: the thread ---- */

static void binder_host_notify(struct binder_host *binder, enum metric metric, size_t label,
                               atomic_uint_fast64_t *count, atomic_uint_fast64_t *told)
{
    uint64_t const now = atomic_load(count), before = atomic_load(told);
    metric_add(binder->cells, metric, label, now - before);
    atomic_store(told, now);
}

static void tell_counts(struct binder_host *binder)
{
    struct binding_counts *const counts = &binder->shared.counts, *const told = &binder->told;
    for (size_t i = 0; i < BIND_ACTIONS; i++)
        binder_host_notify(binder, METRIC_BINDER_MESSAGES, i, &counts->sent[i], &told->sent[i]);
    binder_host_notify(binder, METRIC_BINDER_MESSAGES, BINDER_REJECTED, &counts->rejected, &told->rejected);
    binder_host_notify(binder, METRIC_BINDER_MESSAGES, BINDER_PUT_BACK, &counts->put_back, &told->put_back);
    metric_set(binder->cells, METRIC_BINDER_IN_FLIGHT, 0, atomic_load(&counts->in_flight));
    uint64_t const up = connection_epoch(binder->connection) != 0;
    metric_set(binder->cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_UP, up);
    metric_set(binder->cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_DOWN, 1 - up);
}

/* Of all rules together; a rule of which the server does not answer is left out. */
static void tell_lag(struct binder_host *binder)
{
    struct slot *slot;
    struct binding_state state;
    uint64_t pending = 0, ack_pending = 0, served = 0, failing = 0;
    for (size_t i = 0; (slot = slot_at(binder, i)) != NULL; i++) {
        failing += slot->due_ms != 0;
        if (slot->binding == NULL || binding_state(slot->binding, &state, NULL) != THOLE_OK)
            continue;
        served++;
        pending += state.pending;
        ack_pending += state.ack_pending;
    }
    metric_set(binder->cells, METRIC_BINDER_RULES, BINDER_RULES_SERVED, served);
    metric_set(binder->cells, METRIC_BINDER_RULES, BINDER_RULES_FAILING, failing);
    metric_set(binder->cells, METRIC_BINDER_LAG, BINDER_LAG_PENDING, pending);
    metric_set(binder->cells, METRIC_BINDER_LAG, BINDER_LAG_ACK_PENDING, ack_pending);
}

/* ---- the thread ---- */

/* False: stop. */
static bool binder_host_wait_wish(struct binder_host *binder, bool *ret_look)
{
    struct timespec const due = clock_timespec(clock_monotonic_ms() + TICK_MS);
    int late = 0;
    (void)pthread_mutex_lock(&binder->lock);
    bool changed = false;
    while (!changed && !binder->stopping && !binder->look && late == 0) {
        for (size_t i = 0; i < binder->slots_len && !changed; i++)
            changed = binder->slots[i]->changed;
        if (!changed)
            late = pthread_cond_timedwait(&binder->wake, &binder->lock, &due);
    }
    *ret_look = binder->look;
    binder->look = false;
    bool const goes_on = !binder->stopping;
    (void)pthread_mutex_unlock(&binder->lock);
    return goes_on;
}

static void *binder_host_keep(void *arg)
{
    struct binder_host *const binder = arg;
    uint64_t lag_due_ms = 0;
    bool look = false;
    while (binder_host_wait_wish(binder, &look)) {
        serve_all(binder, look);
        tell_counts(binder);
        (void)log_limits_rest(binder->shared.lines, clock_monotonic_ms());
        if (binder->cells != NULL && clock_monotonic_ms() >= lag_due_ms) {
            tell_lag(binder);
            lag_due_ms = clock_monotonic_ms() + LAG_EVERY_MS;
        }
    }
    return NULL;
}

/* ---- start and stop ---- */

static const char *binder_host_own_inbox(const struct host_options *host,
                                         char room[INBOX_PREFIX_BYTES_MAX + 1])
{
    struct inbox_owner const owner = {.ns = host->ns, .role = "binder"};
    return inbox_prefix_or_own(host->nats_inbox, &owner, room);
}

static thole_status binder_host_open_client(struct binder_host *binder, thole_error *reterr)
{
    const struct host_options *const host = &binder->options;
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    thole_client_options options;
    thole_client_options_init(&options);
    options.nats_url = host->nats_url;
    options.nats_creds = host->nats_creds;
    options.nats_ca = host->nats_ca;
    options.nats_cert = host->nats_cert;
    options.nats_key = host->nats_key;
    options.nats_server_name = host->nats_server_name;
    options.nats_inbox = binder_host_own_inbox(host, inbox);
    options.nats_api_prefix = host->nats_api_prefix;
    options.ns = host->ns;
    return thole_client_open(&options, &binder->client, reterr);
}

static void binder_host_on_state(void *arg, bool connected, uint64_t epoch)
{
    struct binder_host *const binder = arg;
    (void)epoch;
    nats_watch_state(&binder->nats, connected);
    if (!connected)
        metric_count(binder->nats.cells, METRIC_NATS_DISCONNECTS, 0, 1);
}

static void binder_host_on_trouble(void *arg, enum connection_trouble trouble, const thole_error *error)
{
    struct binder_host *const binder = arg;
    nats_watch_trouble(&binder->nats, trouble, error);
}

static thole_status set_up(struct binder_host *binder, thole_error *reterr)
{
    const struct host_options *const host = &binder->options;
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    struct connection_options const options = {.url = host->nats_url,
                                               .creds = host->nats_creds,
                                               .ca = host->nats_ca,
                                               .cert = host->nats_cert,
                                               .key = host->nats_key,
                                               .server_name = host->nats_server_name,
                                               .inbox = binder_host_own_inbox(host, inbox),
                                               .name = host->node,
                                               .on_state = binder_host_on_state,
                                               .on_trouble = binder_host_on_trouble,
                                               .arg = binder,
                                               .connect_timeout_ms = CONNECT_TIMEOUT_MS,
                                               .request_timeout_ms = CONNECT_TIMEOUT_MS};
    if (binder->connection == NULL)
        THOLE_TRY(connection_open(&options, &binder->connection, reterr));
    THOLE_TRY(topology_read(binder->connection, host->ns, &binder->topology, reterr));
    THOLE_TRY(bindings_require(binder->connection, host->ns, reterr));
    return binder->client != NULL ? THOLE_OK : binder_host_open_client(binder, reterr);
}

/* Waits for servers and the namespace, with a line in the log. */
static thole_status until_set_up(struct binder_host *binder, const struct stop_check *stop,
                                 thole_error *reterr)
{
    uint64_t said_ms = 0;
    for (;;) {
        thole_error error = {.status = THOLE_OK};
        thole_status const status = set_up(binder, &error);
        uint64_t const now_ms = clock_monotonic_ms();
        if (status == THOLE_OK)
            return THOLE_OK;
        if (status != THOLE_NOT_FOUND) /* until an engine has set the namespace up */
            nats_watch_failed(&binder->nats, status);
        bool const outage =
            status == THOLE_UNAVAILABLE || status == THOLE_TIMEOUT || status == THOLE_NOT_FOUND;
        if (!outage || stop_is_requested(stop))
            return thole_fail(reterr, outage ? THOLE_CANCELLED : status, "%s", error.text);
        if (said_ms == 0 || now_ms - said_ms >= SAY_EVERY_MS) {
            log_line(LOG_LEVEL_WARN, "binder", "waiting: %s", error.text);
            said_ms = now_ms;
        }
        struct timespec const pause = {.tv_nsec = PAUSE_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
    }
}

static thole_status binder_host_launch(struct binder_host *binder, const struct stop_check *stop,
                                       thole_error *reterr)
{
    THOLE_TRY(until_set_up(binder, stop, reterr));
    binder->shared.connection = binder->connection;
    binder->shared.topology = &binder->topology;
    binder->shared.die_at = binder->options.bind_die_at;
    binder->shared.refused = binder_host_on_refused;
    binder->shared.arg = binder;
    THOLE_TRY(requests_open(binder->connection, WINDOW, CONNECT_TIMEOUT_MS, binding_on_done, binder,
                            &binder->shared.requests, reterr));
    THOLE_TRY(refused_starts_open(binder->connection, binder->shared.requests, binder->topology.ns,
                                  binder->shared.lines, &binder->shared.counts.rejected,
                                  &binder->shared.refused_starts, reterr));
    binder->running = pthread_create(&binder->thread, NULL, binder_host_keep, binder) == 0;
    if (!binder->running)
        return thole_fail(reterr, THOLE_NOMEM, "cannot start a thread");
    THOLE_TRY(calls_open(binder->connection, binder->client, binder->options.ns, &binder->calls, reterr));
    return bindings_watch_open(binder->connection, binder->options.ns, on_rule, binder, &binder->watch,
                               reterr);
}

static void create_wake(struct binder_host *binder)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&binder->lock, NULL);
    (void)pthread_cond_init(&binder->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
}

thole_status binder_host_start(const struct host_options *options, const struct stop_check *stop,
                               struct binder_host **ret, thole_error *reterr)
{
    struct binder_host *const binder = memory_new(sizeof *binder);
    binder->options = *options;
    binder->cells = metrics_cells(options->metrics);
    nats_watch_begin(&binder->nats, "binder", LOG_LEVEL_WARN, options->metrics);
    create_wake(binder);
    binder->shared.lines = log_limits_create(binder_lines, BINDER_LINES, 0);
    thole_status const status = binder_host_launch(binder, stop, reterr);
    if (status != THOLE_OK) {
        binder_host_stop(binder);
        return status;
    }
    log_line(LOG_LEVEL_INFO, "binder", "serves the rules of namespace %s", options->ns);
    *ret = binder;
    return THOLE_OK;
}

static void stop_thread(struct binder_host *binder)
{
    if (!binder->running)
        return;
    (void)pthread_mutex_lock(&binder->lock);
    binder->stopping = true;
    (void)pthread_cond_signal(&binder->wake);
    (void)pthread_mutex_unlock(&binder->lock);
    (void)pthread_join(binder->thread, NULL);
}

void binder_host_stop(struct binder_host *binder)
{
    if (binder == NULL)
        return;
    calls_close(binder->calls); /* others get new ones */
    bindings_watch_close(binder->watch);
    stop_thread(binder);
    for (size_t i = 0; i < binder->slots_len; i++) {
        binding_close(binder->slots[i]->binding);
        free(binder->slots[i]->text);
        free(binder->slots[i]);
    }
    refused_starts_close(binder->shared.refused_starts);
    requests_close(binder->shared.requests);
    thole_client_close(binder->client);
    connection_close(binder->connection);
    nats_watch_end(&binder->nats);
    log_limits_destroy(binder->shared.lines);
    free(binder->slots);
    (void)pthread_cond_destroy(&binder->wake);
    (void)pthread_mutex_destroy(&binder->lock);
    free(binder);
}
