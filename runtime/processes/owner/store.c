/*
 * A call of Postgres is carried out by the thread that can: batches on the shard's own, on a fiber, so that
 * nobody is woken for them; what may take long, or waits for NATS as well, on the store's, which also
 * connects. One of the two has the connection, and requests keep their order.
 */
#include "store.h"
#include "call_fiber.h"
#include "memory.h"
#include "postgres.h"
#include "shard_request.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECT_TIMEOUT_MS = 5000, STATEMENT_TIMEOUT_MS = 30000, FIRST_RETRY_MS = 100 };

struct store {
    struct shard *shard;
    pthread_t thread;
    bool running;
    struct metric_cells *cells; /* the store's thread's: the shard counts its requests itself */
    atomic_uint_least64_t statements;
    struct postgres *pg; /* NULL: not connected */
    /* The thread has the connection. Set by the shard's thread, cleared by the store's, under the lock. */
    atomic_bool away;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* `away` and the two below: for the store's thread */
    struct request_list waiting;
    bool stopping;
    /* of the shard's thread */
    struct call_fiber *fiber;
    struct request *taken[STORE_JOINED_MAX]; /* which the fiber carries out */
    size_t taken_len;
};

static void say_link(struct store *store, bool up, bool restored)
{
    struct shard_mail *mail = shard_mail_create(SHARD_STORE_LINK, 0, sizeof *mail);
    mail->up = up;
    mail->restored = restored;
    shard_send(store->shard, mail);
}

/* ---- requests ---- */

/* Whether the shard's thread carries it out, and need not wait. */
static bool is_for_shard(const struct store *store, const struct request *request)
{
    return store->pg != NULL && postgres_socket(store->pg) >= 0 && request_rule(request)->joins != NULL;
}

/* Under the lock. Takes the first request, if there is one, and those right after it that join it. */
static size_t store_take_first(struct store *store, struct request *taken[STORE_JOINED_MAX])
{
    size_t n = 0;
    if (store->waiting.first != NULL)
        taken[n++] = request_list_take(&store->waiting);
    request_joins_fn *const joins = n == 0 ? NULL : request_rule(taken[0])->joins;
    while (joins != NULL && n < STORE_JOINED_MAX && store->waiting.first != NULL &&
           joins(taken, n, store->waiting.first))
        taken[n++] = request_list_take(&store->waiting);
    return n;
}

static void store_drop_connection(struct store *store, bool restored)
{
    postgres_close(store->pg);
    store->pg = NULL;
    say_link(store, false, restored);
}

static void store_lose(struct store *store, const char *text)
{
    if (store->pg == NULL)
        return;
    log_line(LOG_LEVEL_WARN, "projector", "Postgres is lost: %s", text);
    store_drop_connection(store, false);
}

/* Drops the known state of the database: its tables may be other ones, and of an older version, so they are
 * looked at on a new connection. */
static void lose_rows(struct store *store, const char *text)
{
    if (store->pg == NULL)
        return;
    log_line(LOG_LEVEL_WARN, "projector",
             "%s; all partitions of this thread open again, and make their rows right from the histories",
             text);
    store_drop_connection(store, true);
}

/* Another program has removed rows: their partitions open again, with an empty watermark. */
static void look_for_removals(struct store *store)
{
    const struct engine_host *engine = store->shard->engine;
    uint32_t p;
    while (store->pg != NULL && postgres_next_removal(store->pg, &p)) {
        if (p == UINT32_MAX) {
            log_line(LOG_LEVEL_WARN, "projector",
                     "somebody has removed rows from the tables of namespace %s: they are made again",
                     engine->options.ns);
            store_drop_connection(store, false);
        } else if (p < engine->topology.partitions && p % engine->shards_len == store->shard->index) {
            shard_send(store->shard, shard_mail_create(SHARD_ROWS_REMOVED, p, sizeof(struct shard_mail)));
        }
    }
}

static void store_call(struct store *store, struct request *const *requests, size_t n)
{
    const struct request_rule *const rule = request_rule(requests[0]);
    if (n > 1)
        rule->store_all(store->pg, requests, n);
    else
        requests[0]->status = rule->store(store->pg, requests[0]);
    atomic_store(&store->statements, postgres_statements(store->pg));
}

/* They have their statuses. The server may have lost its last commits (synchronous_commit = off): after any
 * failure the partitions open again and project from the database's watermark. */
static void store_finish(struct store *store, struct request *const *requests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (requests[i]->status == THOLE_UNAVAILABLE)
            store_lose(store, request_error_text(requests[i]));
        else if (requests[i]->status == THOLE_CONFLICT)
            lose_rows(store, request_error_text(requests[i]));
    look_for_removals(store);
    for (size_t i = 0; i < n; i++)
        request_finish(requests[i]);
}

/* ---- on the shard's thread ---- */

static void call_taken(void *arg)
{
    struct store *const store = arg;
    store_call(store, store->taken, store->taken_len);
}

/* Takes what can be carried out here. 0: there is nothing, or the store's thread has the connection now. */
static size_t take_here(struct store *store)
{
    size_t n = 0;
    pthread_mutex_lock(&store->lock);
    const struct request *const first = store->waiting.first;
    if (store->pg == NULL || (first != NULL && !is_for_shard(store, first))) {
        atomic_store(&store->away, true);
        pthread_cond_signal(&store->changed);
    } else {
        n = store_take_first(store, store->taken);
    }
    pthread_mutex_unlock(&store->lock);
    return n;
}

static void finish_taken(struct store *store)
{
    size_t const ended = store->taken_len;
    if (ended == 0 || call_fiber_runs(store->fiber))
        return;
    postgres_set_wait(store->pg, NULL, NULL);
    store->taken_len = 0;
    store_finish(store, store->taken, ended);
}

/* Finishes ended requests and begins the next ones. */
static void store_go_on(struct store *store)
{
    while (!call_fiber_runs(store->fiber)) {
        finish_taken(store);
        if (atomic_load(&store->away))
            return;
        store->taken_len = take_here(store);
        if (store->taken_len == 0)
            return;
        postgres_set_wait(store->pg, call_fiber_wait, store->fiber);
        call_fiber_begin(store->fiber, call_taken, store);
    }
}

void store_submit(struct store *store, struct request *request)
{
    assert(request_rule(request)->executor == EXECUTOR_STORE && request->shard == store->shard);
    pthread_mutex_lock(&store->lock);
    request_list_append(&store->waiting, request);
    if (atomic_load(&store->away))
        pthread_cond_signal(&store->changed);
    pthread_mutex_unlock(&store->lock);
}

void store_begin(struct store *store)
{
    store_go_on(store);
}

bool store_is_calling(const struct store *store)
{
    return call_fiber_runs(store->fiber);
}

struct pollfd store_socket(const struct store *store, uint64_t *ret_deadline_ms)
{
    *ret_deadline_ms = call_fiber_deadline_ms(store->fiber);
    if (call_fiber_runs(store->fiber))
        return call_fiber_socket(store->fiber);
    bool const here = !atomic_load(&store->away) && store->pg != NULL;
    return (struct pollfd){.fd = here ? postgres_socket(store->pg) : -1, .events = POLLIN};
}

/* Nothing runs: the server says something by itself, or has gone. */
static void look_at_socket(struct store *store)
{
    thole_error err = {0};
    if (postgres_check_idle(store->pg, &err) != THOLE_OK)
        store_lose(store, err.text);
    look_for_removals(store);
}

void store_continue(struct store *store, short revents)
{
    if (call_fiber_runs(store->fiber))
        call_fiber_continue(store->fiber, revents);
    else if (revents != 0 && !atomic_load(&store->away) && store->pg != NULL)
        look_at_socket(store);
    finish_taken(store);
}

/* ---- on the store's thread ---- */

static void store_carry_out(struct store *store, struct request *const *requests, size_t n)
{
    if (store->pg != NULL)
        store_call(store, requests, n);
    else
        for (size_t i = 0; i < n; i++)
            requests[i]->status =
                thole_fail(request_error(requests[i]), THOLE_UNAVAILABLE, "Postgres is not connected");
    store_finish(store, requests, n);
}

/* Creates the tables, too, if they were dropped. */
static thole_status open_store(const struct postgres_options *options, struct postgres **ret,
                               thole_error *err)
{
    THOLE_TRY(postgres_open(options, ret, err));
    thole_status status = postgres_migrate(*ret, err);
    if (status == THOLE_OK)
        status = postgres_listen(*ret, err);
    if (status != THOLE_OK)
        postgres_close(*ret);
    return status;
}

static bool connect_store(struct store *store, uint64_t *retry_ms)
{
    const struct host_options *options = &store->shard->engine->options;
    thole_error err = {0};
    struct postgres_options const pg = {.conninfo = options->postgres,
                                        .ns = options->ns,
                                        .application = "thole-engine",
                                        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
                                        .statement_timeout_ms = STATEMENT_TIMEOUT_MS};
    if (open_store(&pg, &store->pg, &err) == THOLE_OK) {
        *retry_ms = FIRST_RETRY_MS;
        say_link(store, true, false);
        return true;
    }
    store->pg = NULL;
    metric_add(store->cells, METRIC_POSTGRES_ERRORS, metric_error_class(err.status), 1);
    log_line(LOG_LEVEL_WARN, "projector", "Postgres: %s; trying again in %llu ms", err.text,
             (unsigned long long)*retry_ms);
    return false;
}

/* Waits until there is a request, or @p limit_ms have passed. */
static void store_rest(struct store *store, uint64_t limit_ms)
{
    struct timespec const until = clock_timespec(clock_monotonic_ms() + limit_ms);
    int waited = 0;
    pthread_mutex_lock(&store->lock);
    while (waited == 0 && store->waiting.first == NULL && !store->stopping)
        waited = pthread_cond_timedwait(&store->changed, &store->lock, &until);
    pthread_mutex_unlock(&store->lock);
}

/* The shard's thread has the connection, and is told so, until it is away again. */
static void give_back(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    atomic_store(&store->away, store->stopping);
    if (!store->stopping)
        shard_send(store->shard, shard_mail_create(SHARD_STORE_BACK, 0, sizeof(struct shard_mail)));
    while (!atomic_load(&store->away))
        pthread_cond_wait(&store->changed, &store->lock);
    pthread_mutex_unlock(&store->lock);
}

/* Takes what is to be carried out here; 0: nothing is. */
static size_t take_away(struct store *store, struct request *taken[STORE_JOINED_MAX], bool *ret_stopping)
{
    size_t n = 0;
    pthread_mutex_lock(&store->lock);
    const struct request *const first = store->waiting.first;
    if (first != NULL && (store->stopping || !is_for_shard(store, first)))
        n = store_take_first(store, taken);
    *ret_stopping = store->stopping;
    pthread_mutex_unlock(&store->lock);
    return n;
}

static void *store_main(void *arg)
{
    struct store *store = arg;
    uint64_t retry_ms = FIRST_RETRY_MS;
    (void)pthread_setname_np(pthread_self(), "thole-store");
    for (;;) {
        struct request *taken[STORE_JOINED_MAX];
        bool stopping;
        size_t const n = take_away(store, taken, &stopping);
        if (n > 0) {
            store_carry_out(store, taken, n);
        } else if (stopping) {
            break;
        } else if (store->pg != NULL) {
            give_back(store);
        } else if (!connect_store(store, &retry_ms)) {
            store_rest(store, retry_ms);
            retry_ms = retry_ms * 2 < RETRY_MS_MAX ? retry_ms * 2 : RETRY_MS_MAX;
        }
    }
    return NULL;
}

/* ---- start, stop ---- */

thole_status store_start(struct shard *shard, struct store **ret, thole_error *reterr)
{
    struct store *store = memory_new(sizeof *store);
    store->shard = shard;
    store->fiber = call_fiber_create();
    store->cells = metrics_cells(shard->engine->options.metrics);
    atomic_store(&store->away, true);
    pthread_mutex_init(&store->lock, NULL);
    clock_condition_init(&store->changed);
    store->running = pthread_create(&store->thread, NULL, store_main, store) == 0;
    if (!store->running) {
        store_stop(store);
        return thole_fail(reterr, THOLE_NOMEM, "cannot start a projector thread");
    }
    *ret = store;
    return THOLE_OK;
}

uint64_t store_statements(const struct store *store)
{
    return atomic_load(&store->statements);
}

static void end_thread(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    store->stopping = true;
    atomic_store(&store->away, true);
    pthread_cond_signal(&store->changed);
    pthread_mutex_unlock(&store->lock);
    pthread_join(store->thread, NULL);
}

void store_stop(struct store *store)
{
    if (store == NULL)
        return;
    while (call_fiber_runs(store->fiber)) {
        call_fiber_finish(store->fiber);
        store_go_on(store);
    }
    if (store->running)
        end_thread(store);
    postgres_close(store->pg);
    metrics_return_cells(store->cells);
    call_fiber_destroy(store->fiber);
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->lock);
    free(store);
}
