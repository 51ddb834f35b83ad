#include "process_pool.h"
#include "clock.h"
#include "log_work.h"
#include "memory.h"
#include "process_end.h"
#include "process_frame.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    KILL_WAIT_MS = 10000,  /* from SIGKILL to the last one's end, which takes milliseconds */
    CLOSED_WAIT_MS = 2000, /* between the end of its socket and the report of its guard */
    STARTS_MAX = 3,        /* processes that may die in a row before they have called the handler */
    PAUSE_MS_MIN = 50,     /* before another process is asked for when there was none */
    PAUSE_MS_MAX = 5000,
};

struct process_child {
    struct process_child *next; /* in the pool */
    const thole_activity_options *options;
    int talk, life, wake;
    struct process_page *page;
    struct process_reach reach; /* for other threads */
    struct frame_reader reader;
    size_t entry;
    uint32_t runs;
    bool ended;
    struct life_message end;
};

struct process_pool {
    struct forkserver *forkserver;
    const thole_program *program;
    pthread_mutex_t lock;
    struct process_child *idle; /* the last used one first; under lock, as is the rest */
    uint32_t alive, max;
};

/* ---- a process ---- */

static void child_release(struct process_child *child)
{
    if (child->talk >= 0)
        (void)close(child->talk);
    if (child->life >= 0)
        (void)close(child->life); /* the guard kills the process, if it lives */
    if (child->wake >= 0)
        (void)close(child->wake);
    if (child->page != NULL)
        (void)munmap(child->page, sizeof *child->page);
    frame_reader_release(&child->reader);
    free(child);
}

/* Sealed: if a process made it shorter, the worker would crash. */
static int make_page(struct process_child *child)
{
    int const fd = memfd_create("thole-process", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (ftruncate(fd, sizeof *child->page) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
        void *const page = mmap(NULL, sizeof *child->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page != MAP_FAILED)
            child->page = page;
    }
    return fd;
}

static thole_status child_start(struct process_child *child, struct forkserver *forkserver,
                                thole_error *reterr)
{
    int talk[2] = {-1, -1}, life[2] = {-1, -1};
    int const page = make_page(child);
    child->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    thole_status status = THOLE_NOMEM;
    if (child->page != NULL && child->wake >= 0 &&
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) == 0 &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, life) == 0)
        status =
            forkserver_spawn(forkserver, child->entry, (int[]){talk[1], life[1], child->wake, page}, reterr);
    else
        status = thole_fail(reterr, status, "no descriptors for a process: %s", strerror(errno));
    child->talk = talk[0];
    child->life = life[0];
    frame_reader_init(&child->reader, child->talk);
    for (size_t i = 0; i < 3; i++) {
        int const fd = (int[]){talk[1], life[1], page}[i];
        if (fd >= 0)
            (void)close(fd);
    }
    return status;
}

static thole_status child_create(struct process_pool *pool, size_t entry, struct process_child **ret,
                                 thole_error *reterr)
{
    struct process_child *const child = memory_new(sizeof *child);
    child->entry = entry;
    child->options = pool->program->activities[entry].options;
    child->talk = child->life = child->wake = -1;
    thole_status const status = child_start(child, pool->forkserver, reterr);
    if (status != THOLE_OK) {
        child_release(child);
        return status;
    }
    child->reach =
        (struct process_reach){&child->page->token, child->wake, child->life, child->options->terminate};
    *ret = child;
    return THOLE_OK;
}

/* Reads the guard's messages. */
static void child_hear(struct process_child *child)
{
    struct life_message message;
    ssize_t n;
    while (!child->ended && (n = recv(child->life, &message, sizeof message, MSG_DONTWAIT)) != -1) {
        if (n != (ssize_t)sizeof message)
            message =
                (struct life_message){.kind = LIFE_ENDED, .error = EPIPE}; /* the guard itself has died */
        child->end = message;
        child->ended = message.kind == LIFE_ENDED;
    }
    if (!child->ended && errno == ECONNRESET) {
        child->ended = true;
        child->end.error = EPIPE;
    }
}

/* After a kill: waits until all its processes have ended. */
static void child_wait(struct process_child *child, const struct process_pool *pool)
{
    uint64_t const end_ms = clock_monotonic_ms() + KILL_WAIT_MS;
    uint64_t now_ms;
    while (!child->ended && (now_ms = clock_monotonic_ms()) < end_ms) {
        struct pollfd wait = {.fd = child->life, .events = POLLIN};
        (void)poll(&wait, 1, (int)(end_ms - now_ms));
        child_hear(child);
    }
    if (!child->ended)
        log_line(LOG_LEVEL_ERROR, "worker",
                 "process %d of activity %s, or one that it has started, lives %d ms after SIGKILL",
                 (int)child->end.pid, pool->program->activities[child->entry].name, KILL_WAIT_MS);
}

/* ---- the pool ---- */

struct process_pool *process_pool_create(struct forkserver *forkserver, const thole_program *program,
                                         uint32_t max)
{
    struct process_pool *const pool = memory_new(sizeof *pool);
    (void)pthread_mutex_init(&pool->lock, NULL);
    pool->forkserver = forkserver;
    pool->program = program;
    pool->max = max;
    return pool;
}

void process_pool_destroy(struct process_pool *pool)
{
    if (pool == NULL)
        return;
    while (pool->idle != NULL) {
        struct process_child *const child = pool->idle;
        assert(pool->alive > 0);
        pool->alive--;
        pool->idle = child->next;
        child_release(child);
    }
    assert(pool->alive == 0); /* none runs an activity */
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* Under the lock: the most recently used one of this kind. NULL: none; then *ret_other is the least recently
 * used one, to be ended to make room. */
static struct process_child *take_idle(struct process_pool *pool, size_t entry,
                                       struct process_child **ret_other)
{
    struct process_child **at = &pool->idle;
    while (*at != NULL && (*at)->entry != entry)
        at = &(*at)->next;
    struct process_child *const child = *at;
    *ret_other = NULL;
    if (child != NULL) {
        *at = child->next;
        return child;
    }
    if (pool->alive++ < pool->max || pool->idle == NULL)
        return NULL;
    for (at = &pool->idle; (*at)->next != NULL; at = &(*at)->next)
        ;
    *ret_other = *at;
    *at = NULL;
    pool->alive--;
    return NULL;
}

static void process_pool_drop(struct process_pool *pool, struct process_child *child)
{
    child_release(child);
    (void)pthread_mutex_lock(&pool->lock);
    assert(pool->alive > 0);
    pool->alive--;
    (void)pthread_mutex_unlock(&pool->lock);
}

static void process_pool_put_back(struct process_pool *pool, struct process_child *child)
{
    (void)pthread_mutex_lock(&pool->lock);
    assert(child->entry < pool->program->activities_len && pool->alive > 0);
    child->next = pool->idle;
    pool->idle = child;
    (void)pthread_mutex_unlock(&pool->lock);
}

static struct process_child *process_pool_take(struct process_pool *pool, size_t entry)
{
    struct process_child *child, *other = NULL;
    thole_error error = {.status = THOLE_OK};
    for (;;) {
        (void)pthread_mutex_lock(&pool->lock);
        child = take_idle(pool, entry, &other);
        (void)pthread_mutex_unlock(&pool->lock);
        if (child == NULL)
            break;
        child_hear(child);
        if (!child->ended)
            return child;
        process_pool_drop(pool, child); /* died while idle */
    }
    if (other != NULL)
        child_release(other);
    thole_status const status = child_create(pool, entry, &child, &error);
    if (status == THOLE_OK)
        return child;
    (void)pthread_mutex_lock(&pool->lock);
    pool->alive--;
    (void)pthread_mutex_unlock(&pool->lock);
    log_line(LOG_LEVEL_WARN, "worker", "%s", error.text);
    return NULL;
}

/* ---- a run ---- */

/* Attaches the process, which gets the token from now on. False: the token has fired already, or the activity
 * is killed. */
static bool process_pool_attach(struct thole_activity *act, struct process_child *child)
{
    uint64_t fired;
    token_init(&child->page->token);
    atomic_store(&child->page->begun, 0);
    ssize_t const n = read(child->wake, &fired, sizeof fired); /* of the last run */
    (void)n;
    (void)pthread_mutex_lock(&act->lock);
    bool const wanted = !token_fired(act->token) && !act->killed;
    assert(act->reach == NULL && act->pool != NULL && act->entry == child->entry);
    if (wanted)
        act->reach = &child->reach;
    (void)pthread_mutex_unlock(&act->lock);
    return wanted;
}

/* True: it was killed by process_pool_kill(). */
static bool process_pool_detach(struct thole_activity *act)
{
    (void)pthread_mutex_lock(&act->lock);
    assert(act->reach != NULL);
    act->reach = NULL;
    bool const killed = act->killed;
    (void)pthread_mutex_unlock(&act->lock);
    return killed;
}

void process_pool_kill(struct thole_activity *act)
{
    (void)pthread_mutex_lock(&act->lock);
    act->killed = true;
    if (act->reach != NULL)
        process_reach_kill(act->reach);
    (void)pthread_mutex_unlock(&act->lock);
}

/* A failure does not matter: then the process has ended. */
static void process_pool_notify(const struct thole_activity *act, const struct process_child *child)
{
    const struct work_item *const item = &act->message->item;
    struct process_run const run = {.queue = item->queue,
                                    .instance = item->instance,
                                    .activity = item->activity,
                                    .input = item->input,
                                    .nonce = item->nonce,
                                    .trace = item->trace,
                                    .details = act->before,
                                    .execution = item->execution,
                                    .activity_id = item->activity_id,
                                    .try_number = item->try_number,
                                    .attempt = act->attempt,
                                    .deadline_ms = act->deadline_ms,
                                    .partition = act->partition,
                                    .orchestration = act->parties.orchestration,
                                    .version = act->parties.version,
                                    .worker = act->parties.worker};
    struct buf body;
    buf_init(&body, FRAME_BYTES_MAX);
    if (process_run_encode(&run, &body) != THOLE_OK || !frame_send(child->talk, FRAME_RUN, buf_bytes(&body)))
        process_reach_kill(&child->reach);
    buf_release(&body);
}

static enum process_end take_return(struct thole_activity *act, thole_slice body, struct process_return *ret)
{
    return process_return_decode(body, &act->memory, ret, NULL) == THOLE_OK ? PROCESS_RETURNED
                                                                            : PROCESS_BROKEN;
}

/* Reads all frames that are there. PROCESS_RUNS: there will be more. */
static enum process_end process_pool_take_frames(struct thole_activity *act, struct process_child *child,
                                                 struct process_return *ret)
{
    enum frame_kind kind;
    thole_slice body;
    for (;;) {
        switch (frame_read(&child->reader, &kind, &body)) {
        case FRAME_PART: return PROCESS_RUNS;
        case FRAME_CLOSED: return PROCESS_CLOSED;
        case FRAME_BROKEN: return PROCESS_BROKEN;
        case FRAME_WHOLE: break;
        }
        if (kind == FRAME_RETURNED)
            return take_return(act, body, ret);
        if (kind != FRAME_NOTED || body.len > DETAILS_BYTES_MAX)
            return PROCESS_BROKEN;
        (void)thole_activity_heartbeat(act, body);
    }
}

/* -1: for ever. */
static int wait_ms_until(uint64_t end_ms)
{
    uint64_t const now_ms = clock_monotonic_ms();
    if (end_ms == UINT64_MAX)
        return -1;
    return end_ms <= now_ms ? 0 : end_ms - now_ms < INT_MAX ? (int)(end_ms - now_ms) : INT_MAX;
}

/* Until it has returned or ended. A process that ends closes its socket before its guard can report it; only
 * a process that continues without a socket has closed it. */
static enum process_end process_pool_follow(struct thole_activity *act, struct process_child *child,
                                            struct process_return *ret)
{
    uint64_t const wall_ms = child->options->wall_max_ms;
    uint64_t end_ms = wall_ms > 0 ? clock_monotonic_ms() + wall_ms : UINT64_MAX;
    enum process_end late = PROCESS_WALL; /* the end to report at end_ms */
    struct pollfd waits[2] = {{.fd = child->talk, .events = POLLIN}, {.fd = child->life, .events = POLLIN}};
    for (;;) {
        int const ready = poll(waits, 2, wait_ms_until(end_ms));
        child_hear(child);
        enum process_end const end =
            late == PROCESS_CLOSED ? late : process_pool_take_frames(act, child, ret);
        if (end == PROCESS_RETURNED || end == PROCESS_BROKEN)
            return end;
        if (child->ended)
            return PROCESS_ENDED; /* all its frames have been read before */
        if (end == PROCESS_CLOSED && late != PROCESS_CLOSED) {
            late = PROCESS_CLOSED;
            end_ms = clock_monotonic_ms() + CLOSED_WAIT_MS;
            waits[0].fd = -1;
        } else if (ready == 0) {
            return late;
        }
    }
}

/* Whether it may run another activity. */
static bool is_good(const struct process_child *child, const struct process_return *returned)
{
    const thole_activity_options *const options = child->options;
    return !child->ended && !returned->leftovers && options->cpu_max_s == 0 &&
           (options->runs_max == 0 || child->runs < options->runs_max);
}

static thole_status process_pool_report(struct thole_activity *act, const struct process_return *returned,
                                        thole_slice *ret_output)
{
    thole_status const status = (thole_status)returned->status;
    thole_status failed = THOLE_OK; /* always THOLE_APP: the text is kept, the status is the child's */
    if (status == THOLE_OK)
        *ret_output = returned->data;
    else if (status == THOLE_LATER)
        act->later = true;
    else if (returned->final)
        failed = thole_activity_fail_final(act, returned->error_type, "%.*s", THOLE_FMT(returned->data));
    else
        failed = thole_activity_fail_as(act, returned->error_type, "%.*s", THOLE_FMT(returned->data));
    (void)failed;
    return status;
}

static void say_gone(const struct thole_activity *act, const struct life_message *life, const char *how)
{
    struct log_fields const fields = log_work(&act->message->item);
    log_line_of(LOG_LEVEL_WARN, "worker", &fields, "process %d is gone, and %u that it had started: %s",
                (int)life->pid, life->others, how);
}

enum run_outcome {
    RUN_DONE,    /* the handler's status is in *ret_status */
    RUN_NO_FORK, /* there was no process */
    RUN_UNBEGUN, /* ended before it called the handler */
};

static enum run_outcome process_pool_ended(struct thole_activity *act, enum process_end end,
                                           const struct life_message *life, bool begun, bool killed,
                                           thole_status *ret_status)
{
    const thole_activity_options *const declared = act->pool->program->activities[act->entry].options;
    thole_activity_options options = {.size = sizeof options}; /* of an older program it is shorter */
    memcpy(&options, declared, declared->size < sizeof options ? declared->size : sizeof options);
    options.memory_max = forkserver_memory_max(act->pool->forkserver, &options);
    char text[PROCESS_TEXT_MAX];
    if (end == PROCESS_ENDED && !begun && life->error != 0) {
        log_line(LOG_LEVEL_WARN, "worker", "a process could not be started: %s",
                 life->error == EPIPE ? "its guard is gone" : strerror(life->error));
        return RUN_NO_FORK;
    }
    const char *const type = process_end_text(end, life, begun, &options, text);
    if (thole_activity_cancelled(act) && (killed || !begun)) { /* else it died by itself */
        say_gone(act, life, "it was cancelled");
        *ret_status = THOLE_CANCELLED;
        return RUN_DONE;
    }
    say_gone(act, life, text);
    *ret_status = thole_activity_fail_as(act, thole_slice_from(type), "%s", text);
    return end == PROCESS_ENDED && !begun ? RUN_UNBEGUN : RUN_DONE;
}

static enum run_outcome run_in(struct thole_activity *act, struct process_child *child,
                               thole_status *ret_status, thole_slice *ret_output)
{
    struct process_pool *const pool = act->pool;
    struct process_return returned = {.status = THOLE_OK};
    process_pool_notify(act, child);
    child->runs++;
    enum process_end const end = process_pool_follow(act, child, &returned);
    bool const killed = process_pool_detach(act), returns = end == PROCESS_RETURNED;
    if (returns && !killed && is_good(child, &returned)) {
        process_pool_put_back(pool, child);
    } else {
        process_reach_kill(&child->reach);
        child_wait(child, pool);
        struct life_message const life = child->end;
        bool const begun = atomic_load(&child->page->begun) != 0;
        process_pool_drop(pool, child);
        if (!returns)
            return process_pool_ended(act, end, &life, begun, killed, ret_status);
        if (returned.leftovers)
            say_gone(act, &life, "it has returned, and left processes behind");
    }
    *ret_status = process_pool_report(act, &returned, ret_output);
    return RUN_DONE;
}

thole_status process_pool_run(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    struct process_pool *const pool = act->pool;
    uint64_t pause_ms = PAUSE_MS_MIN;
    thole_status status = THOLE_CANCELLED;
    uint32_t unbegun = 0;
    (void)input; /* the message's */
    for (;;) {
        struct process_child *const child = process_pool_take(pool, act->entry);
        if (child != NULL && !process_pool_attach(act, child)) {
            process_pool_put_back(pool, child);
            return THOLE_CANCELLED;
        }
        enum run_outcome const outcome =
            child == NULL ? RUN_NO_FORK : run_in(act, child, &status, ret_output);
        unbegun += outcome == RUN_UNBEGUN;
        if (outcome == RUN_DONE || unbegun == STARTS_MAX)
            return status;
        if (outcome == RUN_NO_FORK) { /* a lack of resources, no failure of the activity */
            log_line(LOG_LEVEL_WARN, "worker",
                     "no process for an activity, it is tried again in %" PRIu64 " ms", pause_ms);
            if (thole_activity_wait(act, pause_ms) == THOLE_CANCELLED)
                return THOLE_CANCELLED;
            pause_ms = pause_ms * 2 < PAUSE_MS_MAX ? pause_ms * 2 : PAUSE_MS_MAX;
        }
    }
}
