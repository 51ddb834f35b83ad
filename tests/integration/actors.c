#include "actors.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 8192, RELEASES_MAX = 512, STEP_MS = 10, CHILDREN = 3 };

struct release {
    char instance[ACTOR_ID_BYTES];
    uint32_t attempts;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct actor_run runs[RUNS_MAX];
    size_t runs_len;
    struct release releases[RELEASES_MAX];
    size_t releases_len;
    size_t children;
    void (*on_begin)(const thole_activity *act);
} actors = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void lock(void)
{
    (void)pthread_mutex_lock(&actors.lock);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&actors.lock);
}

/* ---- the handlers ---- */

static void copy_text(char to[ACTOR_ID_BYTES], thole_slice text)
{
    snprintf(to, ACTOR_ID_BYTES, "%.*s", THOLE_FMT(text));
}

static size_t begin(const thole_activity *act, char worker)
{
    lock();
    void (*const on_begin)(const thole_activity *) = actors.on_begin;
    unlock();
    if (on_begin != NULL)
        on_begin(act);
    lock();
    size_t const n = actors.runs_len < RUNS_MAX ? actors.runs_len++ : RUNS_MAX - 1;
    struct actor_run *const run = &actors.runs[n];
    *run = (struct actor_run){.execution = thole_activity_execution(act),
                              .activity_id = thole_activity_id(act),
                              .try_number = thole_activity_try(act),
                              .attempt = thole_activity_attempt(act),
                              .worker = worker};
    copy_text(run->instance, thole_activity_instance(act));
    copy_text(run->queue, thole_activity_queue(act));
    (void)pthread_cond_broadcast(&actors.changed);
    unlock();
    return n;
}

static bool is_released(const char *instance, uint32_t attempt)
{
    for (size_t i = 0; i < actors.releases_len; i++)
        if (strcmp(actors.releases[i].instance, instance) == 0 && attempt <= actors.releases[i].attempts)
            return true;
    return false;
}

/* Notes the token; true when the run may return. */
static bool may_return(const thole_activity *act, size_t n)
{
    lock();
    struct actor_run *const run = &actors.runs[n];
    if (!run->fired && thole_activity_cancelled(act)) {
        run->fired = true;
        run->kind = thole_activity_cancel_kind(act);
        copy_text(run->reason, thole_activity_cancel_reason(act));
        (void)pthread_cond_broadcast(&actors.changed);
    }
    bool const released = is_released(run->instance, run->attempt);
    unlock();
    return released;
}

static thole_status end(thole_activity *act, size_t n, char worker, thole_status status,
                        thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "attempt %u by %c", thole_activity_attempt(act), worker);
    lock();
    actors.runs[n].returned = true;
    (void)pthread_cond_broadcast(&actors.changed);
    unlock();
    return status;
}

static thole_status polite(thole_activity *act, char worker, thole_slice *ret_output)
{
    size_t const n = begin(act, worker);
    thole_status status = THOLE_OK;
    while (status == THOLE_OK && !may_return(act, n))
        status = thole_activity_wait(act, STEP_MS);
    (void)may_return(act, n); /* notes why */
    return end(act, n, worker, status, ret_output);
}

static thole_status rude(thole_activity *act, char worker, thole_slice *ret_output)
{
    size_t const n = begin(act, worker);
    while (!may_return(act, n))
        pause_ms(STEP_MS);
    return end(act, n, worker, THOLE_OK, ret_output);
}

static thole_status echo(thole_activity *act, char worker, thole_slice *ret_output)
{
    return end(act, begin(act, worker), worker, THOLE_OK, ret_output);
}

static thole_status fails_once(thole_activity *act, char worker, thole_slice *ret_output)
{
    if (thole_activity_try(act) > 1)
        return polite(act, worker, ret_output);
    (void)end(act, begin(act, worker), worker, THOLE_OK, ret_output);
    return thole_activity_fail(act, "the first time");
}

static void count_child(int change)
{
    lock();
    actors.children += (size_t)change;
    (void)pthread_cond_broadcast(&actors.changed);
    unlock();
}

static void *child_that_minds(void *arg)
{
    thole_activity *const act = arg;
    while (thole_activity_wait(act, STEP_MS) == THOLE_OK)
        ;
    count_child(-1);
    return NULL;
}

static thole_status spawns(thole_activity *act, char worker, thole_slice *ret_output)
{
    pthread_t children[CHILDREN];
    size_t const n = begin(act, worker);
    for (size_t i = 0; i < CHILDREN; i++) {
        count_child(1);
        (void)pthread_create(&children[i], NULL, child_that_minds, act);
    }
    for (size_t i = 0; i < CHILDREN; i++)
        (void)pthread_join(children[i], NULL);
    (void)may_return(act, n);
    return end(act, n, worker, THOLE_CANCELLED, ret_output);
}

/* Must not touch the activity, which ends before it does. */
static void *child_that_minds_nothing(void *arg)
{
    bool released = false;
    while (!released) {
        lock();
        released = is_released(arg, UINT32_MAX);
        unlock();
        pause_ms(STEP_MS);
    }
    free(arg);
    count_child(-1);
    return NULL;
}

static thole_status forgets(thole_activity *act, char worker, thole_slice *ret_output)
{
    pthread_t child;
    thole_slice const instance = thole_activity_instance(act);
    count_child(1);
    if (pthread_create(&child, NULL, child_that_minds_nothing,
                       strndup((const char *)instance.ptr, instance.len)) == 0)
        (void)pthread_detach(child);
    return polite(act, worker, ret_output);
}

#define ACTOR_OF(W, letter, name)                                                                            \
    static thole_status name##_##W(thole_activity *act, thole_slice input, thole_slice *ret_output)          \
    {                                                                                                        \
        (void)input;                                                                                         \
        return name(act, letter, ret_output);                                                                \
    }
#define ACTORS_OF(W, letter)                                                                                 \
    ACTOR_OF(W, letter, polite)                                                                              \
    ACTOR_OF(W, letter, rude)                                                                                \
    ACTOR_OF(W, letter, echo)                                                                                \
    ACTOR_OF(W, letter, fails_once)                                                                          \
    ACTOR_OF(W, letter, spawns)                                                                              \
    ACTOR_OF(W, letter, forgets)                                                                             \
    static const thole_activity_entry activities_##W[] = {                                                   \
        {"polite", polite_##W},         {"rude", rude_##W},     {"echo", echo_##W},                          \
        {"fails_once", fails_once_##W}, {"spawns", spawns_##W}, {"forgets", forgets_##W}};                   \
    static const thole_program program_##W = {.size = sizeof program_##W,                                    \
                                              .name = "actors",                                              \
                                              .activities = activities_##W,                                  \
                                              .activities_len = ARRAY_LEN(activities_##W)};
ACTORS_OF(a, 'A')
ACTORS_OF(b, 'B')

/* ---- calls of the tests ---- */

void actors_release(const char *instance, uint32_t attempts)
{
    lock();
    if (actors.releases_len == RELEASES_MAX)
        abort();
    struct release *const release = &actors.releases[actors.releases_len++];
    snprintf(release->instance, sizeof release->instance, "%s", instance);
    release->attempts = attempts;
    unlock();
}

static bool is_of(const struct actor_run *run, const char *instance, const char *queue)
{
    return (instance == NULL || strcmp(run->instance, instance) == 0) &&
           (queue == NULL || strcmp(run->queue, queue) == 0);
}

size_t actors_runs(const char *instance, const char *queue)
{
    size_t n = 0;
    lock();
    for (size_t i = 0; i < actors.runs_len; i++)
        n += is_of(&actors.runs[i], instance, queue);
    unlock();
    return n;
}

static struct actor_run *find(const char *instance, size_t n)
{
    for (size_t i = 0; i < actors.runs_len; i++)
        if (is_of(&actors.runs[i], instance, NULL) && n-- == 0)
            return &actors.runs[i];
    return NULL;
}

bool actors_run(const char *instance, size_t n, struct actor_run *ret)
{
    lock();
    const struct actor_run *const run = find(instance, n);
    if (run != NULL)
        *ret = *run;
    unlock();
    return run != NULL;
}

/* A condition over the runs, with the lock held. */
typedef bool wanted_fn(const char *instance, uint64_t number);

static bool wait_for(wanted_fn *wanted, const char *instance, uint64_t number)
{
    struct timespec until;
    bool in_time = true;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ACTOR_WAIT_MS / 1000;
    lock();
    while (!wanted(instance, number) && in_time)
        in_time = pthread_cond_timedwait(&actors.changed, &actors.lock, &until) == 0;
    bool const found = wanted(instance, number);
    unlock();
    return found;
}

static bool has_attempt(const char *instance, uint64_t attempt)
{
    for (size_t i = 0; i < actors.runs_len; i++)
        if (is_of(&actors.runs[i], instance, NULL) && actors.runs[i].attempt >= attempt)
            return true;
    return false;
}

static bool has_runs(const char *instance, uint64_t n)
{
    return n == 0 || find(instance, n - 1) != NULL;
}

static bool has_fired(const char *instance, uint64_t n)
{
    const struct actor_run *const run = find(instance, n);
    return run != NULL && run->fired;
}

static bool has_returned(const char *instance, uint64_t n)
{
    const struct actor_run *const run = find(instance, n);
    return run != NULL && run->returned;
}

bool actors_wait_attempt(const char *instance, uint32_t attempt)
{
    return wait_for(has_attempt, instance, attempt);
}

bool actors_wait_runs(const char *instance, size_t n)
{
    return wait_for(has_runs, instance, n);
}

bool actors_wait_fired(const char *instance, size_t n)
{
    return wait_for(has_fired, instance, n);
}

bool actors_wait_returned(const char *instance, size_t n)
{
    return wait_for(has_returned, instance, n);
}

static bool has_children(const char *instance, uint64_t n)
{
    (void)instance;
    return actors.children == n;
}

bool actors_wait_children(size_t n)
{
    return wait_for(has_children, NULL, n);
}

size_t actors_children(void)
{
    lock();
    size_t const n = actors.children;
    unlock();
    return n;
}

void actors_on_begin(void (*call)(const thole_activity *act))
{
    lock();
    actors.on_begin = call;
    unlock();
}

/* ---- workers ---- */

static void give_up(const char *what, const thole_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err != NULL ? err->text : "cannot be made");
    exit(1);
}

void actor_options(struct actor_worker *worker, const struct stack *stack, const char *queue,
                   uint64_t lease_ms)
{
    *worker = (struct actor_worker){.host = NULL};
    snprintf(worker->nats_url, sizeof worker->nats_url, "%s", stack->nats.url);
    snprintf(worker->postgres_url, sizeof worker->postgres_url, "%s", stack->postgres.url);
    worker->options = (struct host_options){.ns = "default",
                                            .node = "actor",
                                            .payload_max = 256 * 1024,
                                            .stop_limit_ms = 10000,
                                            .queue = queue,
                                            .slots = 2,
                                            .lease_ms = lease_ms,
                                            .grace_ms = 120000};
}

void actor_proxies(struct actor_worker *worker, const struct stack *stack)
{
    char port[16];
    worker->nats = tcp_proxy_start(stack->nats.port);
    worker->postgres = tcp_proxy_start(stack->postgres.port);
    if (worker->nats == NULL || worker->postgres == NULL)
        give_up("a proxy", NULL);
    snprintf(worker->nats_url, sizeof worker->nats_url, "nats://127.0.0.1:%u", tcp_proxy_port(worker->nats));
    snprintf(port, sizeof port, ":%u/", stack->postgres.port);
    const char *const at = strstr(stack->postgres.url, port);
    if (at == NULL)
        give_up("the URL of Postgres has no port", NULL);
    snprintf(worker->postgres_url, sizeof worker->postgres_url, "%.*s:%u/%s", (int)(at - stack->postgres.url),
             stack->postgres.url, tcp_proxy_port(worker->postgres), at + strlen(port));
}

void actor_start(struct actor_worker *worker, char letter)
{
    thole_error err = {0};
    worker->options.nats_url = worker->nats_url;
    worker->options.postgres = worker->postgres_url;
    if (worker_host_start(&worker->options, letter == 'A' ? &program_a : &program_b, NULL, &worker->host,
                          &err) != THOLE_OK)
        give_up("a worker", &err);
}

const thole_program *actors_program(char letter)
{
    return letter == 'A' ? &program_a : &program_b;
}

static bool no_stop(void *arg)
{
    (void)arg;
    return false;
}
static const struct stop_check never = {.requested = no_stop};

void actor_start_elsewhere(struct actor_worker *worker, const struct stack *stack, char letter)
{
    thole_error err = {0};
    worker->options.nats_url = worker->nats_url;
    worker->options.postgres = worker->postgres_url;
    worker->options.postgres_connections = 4;
    if (gateway_host_start(&worker->options, &never, &worker->gateway, &err) != THOLE_OK)
        give_up("a gateway", &err);
    struct remote_worker_options const options = {.nats_url = stack->nats.url,
                                                  .ns = worker->options.ns,
                                                  .name = "elsewhere",
                                                  .queue = worker->options.queue,
                                                  .slots = worker->options.slots,
                                                  .stop_limit_ms = worker->options.stop_limit_ms};
    worker->remote = remote_worker_start(&options, actors_program(letter));
}

void actor_stop(struct actor_worker *worker)
{
    remote_worker_stop(worker->remote);
    gateway_host_stop(worker->gateway);
    worker_host_stop(worker->host);
    tcp_proxy_stop(worker->nats);
    tcp_proxy_stop(worker->postgres);
    *worker = (struct actor_worker){.host = NULL};
}
