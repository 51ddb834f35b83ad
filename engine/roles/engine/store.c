/* A shard's projector thread: one Postgres connection, jobs in order. */
#include "engine.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    CONNECT_TIMEOUT_MS = 5000,
    STATEMENT_TIMEOUT_MS = 30000,
    FIRST_RETRY_MS = 100,
    TIMERS_MAX = 1000000,
    ORPHANS_MAX = 1000
};

struct store {
    struct shard *shard;
    pthread_t thread;
    bool running;
    int wake; /* eventfd */
    pthread_mutex_t lock;
    struct job *first, *last;
    bool stopping;
    struct postgres *pg;
    struct deadlines *deadlines;
    atomic_uint_least64_t statements;
};

static void say_link(struct store *store, bool up)
{
    struct shard_mail *mail = shard_mail_create(SHARD_STORE_LINK, 0);
    if (mail == NULL)
        abort();
    mail->up = up;
    shard_send(store->shard, mail);
}

/* --- jobs
 * ----------------------------------------------------------------------------------------------------- */

/* What a newer epoch means there is the machine's to decide. */
static thole_status open_partition(struct store *store, struct job *job)
{
    thole_status const status =
        projector_store_open(store->pg, job->p, job->epoch, &job->in.projected, &job->in.epoch, &job->err);
    job->in.kind = PARTITION_IN_STORE_OPENED;
    return status == THOLE_FENCED ? THOLE_OK : status;
}

static thole_status read_live(struct store *store, struct job *job)
{
    struct live_summary live = {0};
    thole_status const status = projector_store_complete(store->pg, job->p, job->epoch, &job->err);
    if (status != THOLE_OK)
        return status;
    THOLE_TRY(projector_store_live(store->pg, job->p, &job->arena, &live, &job->err));
    job->in.kind = PARTITION_IN_LIVE;
    job->in.blocked = live.blocked;
    job->in.blocked_len = live.blocked_len;
    job->in.live_names = live.orchestrations;
    job->in.live_counts = live.orchestration_counts;
    job->in.live_names_len = live.orchestrations_len;
    job->in.live_activities = live.open_activities;
    job->deadline_in_ms = live.deadline_in_ms;
    return THOLE_OK;
}

static thole_status read_timers(struct store *store, struct job *job)
{
    struct batch_timer *timers = NULL;
    size_t n = 0;
    uint64_t before = job->before_ms;
    THOLE_TRY(projector_store_timers(store->pg, job->p, before, TIMERS_MAX, &job->arena, &timers, &n,
                                     &job->in.next_due_ms, &job->err));
    job->in.kind = PARTITION_IN_TIMERS;
    job->in.timers = timers;
    job->in.timers_len = n;
    return THOLE_OK;
}

static thole_status perform(struct store *store, struct job *job)
{
    switch (job->kind) {
    case JOB_STORE_OPEN: return open_partition(store, job);
    case JOB_STORE_RESET:
        job->in.kind = PARTITION_IN_STORE_RESET;
        return projector_store_reset(store->pg, job->p, job->epoch, &job->err);
    case JOB_STORE_LIVE: return read_live(store, job);
    case JOB_STORE_TIMERS: return read_timers(store, job);
    case JOB_STORE_ORPHANS:
        return projector_store_orphans(store->pg, job->p, job->before_ms, ORPHANS_MAX, &job->arena,
                                       &job->orphans, &job->orphans_len, &job->orphan_in_ms, &job->err);
    case JOB_STORE_EXPIRE: return deadlines_end(store->deadlines, store->pg, job);
    case JOB_STORE_APPLY:
        job->in.kind = PARTITION_IN_APPLIED;
        job->deadline_in_ms = deadlines_first(job->batch);
        job->in.removed = job->batch->activities_removed;
        job->in.removed_len = job->batch->activities_removed_len;
        return projector_store_apply(store->pg, job->batch, &job->err);
    case JOB_READ_TAIL:
    case JOB_READ_LOG:
    case JOB_READ_RESULTS:
    case JOB_READ_CRASHES:
    case JOB_PUT_CRASH:
    case JOB_FORGET_CRASHES:
    case JOB_LOOK_INBOX:
    case JOB_LOAD:
    case JOB_FIND:
    case JOB_REMOVE:
    case JOB_DELETE:
    case JOB_PURGE:
    case JOB_OPEN_INBOX:
    case JOB_CLOSE_INBOX: break;
    }
    assert(false && "a loader's job came to the store");
    return THOLE_INVALID;
}

static struct job *next_job(struct store *store, bool *stopping)
{
    pthread_mutex_lock(&store->lock);
    struct job *job = store->first;
    if (job != NULL) {
        store->first = job->next;
        if (store->first == NULL)
            store->last = NULL;
    }
    *stopping = store->stopping;
    pthread_mutex_unlock(&store->lock);
    return job;
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

/* Somebody else has removed rows: the partitions open again, and find that nothing counts as projected. */
static void look_for_removals(struct store *store)
{
    if (store->pg == NULL || !postgres_rows_removed(store->pg))
        return;
    log_line(LOG_LEVEL_WARN, "projector",
             "somebody has removed rows from the tables of namespace %s: they are made again",
             store->shard->engine->options.ns);
    leave(store);
}

static void do_job(struct store *store, struct job *job)
{
    if (store->pg == NULL)
        job->status = thole_fail(&job->err, THOLE_UNAVAILABLE, "Postgres is not connected");
    else
        job->status = perform(store, job);
    if (store->pg != NULL)
        atomic_store(&store->statements, postgres_statements(store->pg));
    /* The rows of the last moments may be gone with the server (synchronous_commit = off): whatever the
     * doubt, the partitions open again and project from what the database says. */
    if (job->status == THOLE_UNAVAILABLE)
        lose(store, job->err.text);
    look_for_removals(store);
    job_answer(job);
}

/* --- waiting without polling -------------------------------------------------------------------------------
 */

static void drain(int fd)
{
    uint64_t count;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
}

/* Sleeps until there is a job, or the idle connection has something to say, or @p limit_ms have passed. */
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

/* The tables too, if somebody has dropped them. */
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
    for (;;) {
        bool stopping;
        struct job *job = next_job(store, &stopping);
        if (job != NULL) {
            do_job(store, job);
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
    (void)n; /* a full counter wakes as well */
}

thole_status store_start(struct shard *shard, struct store **ret, thole_error *reterr)
{
    struct store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return thole_fail(reterr, THOLE_NOMEM, "no memory for the projector");
    store->shard = shard;
    pthread_mutex_init(&store->lock, NULL);
    store->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    store->deadlines = deadlines_create(shard->engine);
    if (store->wake >= 0 && store->deadlines != NULL)
        store->running = pthread_create(&store->thread, NULL, store_main, store) == 0;
    if (!store->running) {
        store_stop(store);
        return thole_fail(reterr, THOLE_NOMEM, "cannot start a projector thread");
    }
    *ret = store;
    return THOLE_OK;
}

void store_submit(struct store *store, struct job *job)
{
    pthread_mutex_lock(&store->lock);
    job->next = NULL;
    if (store->last != NULL)
        store->last->next = job;
    else
        store->first = job;
    store->last = job;
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
    deadlines_destroy(store->deadlines);
    pthread_mutex_destroy(&store->lock);
    free(store);
}
