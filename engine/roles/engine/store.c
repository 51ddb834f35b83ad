#include "store.h"
#include "memory.h"
#include "postgres.h"
#include "shard_request.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CONNECT_TIMEOUT_MS = 5000, STATEMENT_TIMEOUT_MS = 30000, FIRST_RETRY_MS = 100 };

struct store {
    struct shard *shard;
    pthread_t thread;
    bool running;
    int wake; /* eventfd */
    pthread_mutex_t lock;
    struct request_list waiting;
    bool stopping;
    struct postgres *pg;
    atomic_uint_least64_t statements;
};

static void say_link(struct store *store, bool up)
{
    struct shard_mail *mail = shard_mail_create(SHARD_STORE_LINK, 0, sizeof *mail);
    mail->up = up;
    shard_send(store->shard, mail);
}

/* ---- requests ---- */

/* Takes the next request and those right behind it that join it. Returns their number. */
static size_t next_requests(struct store *store, struct request *taken[STORE_JOINED_MAX], bool *stopping)
{
    size_t n = 0;
    pthread_mutex_lock(&store->lock);
    if (store->waiting.first != NULL)
        taken[n++] = request_list_take(&store->waiting);
    request_joins_fn *const joins = n == 0 ? NULL : request_rule(taken[0])->joins;
    while (joins != NULL && n < STORE_JOINED_MAX && store->waiting.first != NULL &&
           joins(taken, n, store->waiting.first))
        taken[n++] = request_list_take(&store->waiting);
    *stopping = store->stopping;
    pthread_mutex_unlock(&store->lock);
    return n;
}

static void leave(struct store *store)
{
    postgres_close(store->pg);
    store->pg = NULL;
    say_link(store, false);
}

static void lose(struct store *store, const char *text)
{
    if (store->pg == NULL)
        return;
    log_line(LOG_LEVEL_WARN, "projector", "Postgres is lost: %s", text);
    leave(store);
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
            leave(store);
        } else if (p < engine->topology.partitions && p % engine->shards_len == store->shard->index) {
            shard_send(store->shard, shard_mail_create(SHARD_ROWS_REMOVED, p, sizeof(struct shard_mail)));
        }
    }
}

static void call(struct store *store, struct request *const *requests, size_t n)
{
    const struct request_rule *const rule = request_rule(requests[0]);
    if (n > 1)
        rule->store_all(store->pg, requests, n);
    else
        requests[0]->status = rule->store(store->pg, requests[0]);
    atomic_store(&store->statements, postgres_statements(store->pg));
}

static void carry_out(struct store *store, struct request *const *requests, size_t n)
{
    if (store->pg != NULL)
        call(store, requests, n);
    else
        for (size_t i = 0; i < n; i++)
            requests[i]->status =
                thole_fail(&requests[i]->err, THOLE_UNAVAILABLE, "Postgres is not connected");
    /* The server may have lost its last commits (synchronous_commit = off): after any failure the partitions
     * open again and project from the database's watermark. */
    for (size_t i = 0; i < n; i++)
        if (requests[i]->status == THOLE_UNAVAILABLE)
            lose(store, requests[i]->err.text);
    look_for_removals(store);
    for (size_t i = 0; i < n; i++)
        request_finish(requests[i]);
}

/* ---- waiting without polling ---- */

static void drain(int fd)
{
    uint64_t count;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
}

/* Sleeps until there is a request, or the idle connection becomes readable, or @p limit_ms have passed.
 */
static void wait_for_work(struct store *store, int limit_ms)
{
    struct pollfd fds[2] = {{.fd = store->wake, .events = POLLIN}};
    nfds_t n = 1;
    if (store->pg != NULL)
        fds[n++] = (struct pollfd){.fd = postgres_socket(store->pg), .events = POLLIN};
    if (poll(fds, n, limit_ms) <= 0)
        return;
    if (fds[0].revents != 0)
        drain(store->wake);
    thole_error err = {0};
    if (n == 2 && fds[1].revents != 0 && postgres_check_idle(store->pg, &err) != THOLE_OK)
        lose(store, err.text);
    look_for_removals(store);
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
        say_link(store, true);
        return true;
    }
    store->pg = NULL;
    log_line(LOG_LEVEL_WARN, "projector", "Postgres: %s; trying again in %llu ms", err.text,
             (unsigned long long)*retry_ms);
    return false;
}

static void *store_main(void *arg)
{
    struct store *store = arg;
    uint64_t retry_ms = FIRST_RETRY_MS;
    (void)pthread_setname_np(pthread_self(), "thole-store");
    for (;;) {
        struct request *taken[STORE_JOINED_MAX];
        bool stopping;
        size_t const n = next_requests(store, taken, &stopping);
        if (n > 0) {
            carry_out(store, taken, n);
            continue;
        }
        if (stopping)
            break;
        if (store->pg == NULL && !connect_store(store, &retry_ms)) {
            wait_for_work(store, (int)retry_ms);
            retry_ms = retry_ms * 2 < RETRY_MS_MAX ? retry_ms * 2 : RETRY_MS_MAX;
            continue;
        }
        wait_for_work(store, -1);
    }
    postgres_close(store->pg);
    return NULL;
}

static void wake(struct store *store)
{
    uint64_t const one = 1;
    ssize_t const n = write(store->wake, &one, sizeof one);
    (void)n; /* a full counter wakes the thread as well */
}

thole_status store_start(struct shard *shard, struct store **ret, thole_error *reterr)
{
    struct store *store = memory_new(sizeof *store);
    store->shard = shard;
    pthread_mutex_init(&store->lock, NULL);
    store->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (store->wake >= 0)
        store->running = pthread_create(&store->thread, NULL, store_main, store) == 0;
    if (!store->running) {
        store_stop(store);
        return thole_fail(reterr, THOLE_NOMEM, "cannot start a projector thread");
    }
    *ret = store;
    return THOLE_OK;
}

void store_submit(struct store *store, struct request *request)
{
    assert(request_rule(request)->executor == EXECUTOR_STORE && request->shard == store->shard);
    pthread_mutex_lock(&store->lock);
    request_list_append(&store->waiting, request);
    pthread_mutex_unlock(&store->lock);
    wake(store);
}

uint64_t store_statements(const struct store *store)
{
    return atomic_load(&store->statements);
}

void store_stop(struct store *store)
{
    if (store == NULL)
        return;
    if (store->running) {
        pthread_mutex_lock(&store->lock);
        store->stopping = true;
        pthread_mutex_unlock(&store->lock);
        wake(store);
        pthread_join(store->thread, NULL);
    }
    if (store->wake >= 0)
        close(store->wake);
    pthread_mutex_destroy(&store->lock);
    free(store);
}
