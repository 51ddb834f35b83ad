#include "wrap_gateway_world.h"
#include "activity_run.h"
#include "clock.h"
#include "jscan.h"
#include "link.h"
#include "logged.h"
#include "memory.h"
#include "remote_handlers.h"
#include "thole/client.h"
#include "thole_cunit.h"
#include "utf8.h"
#include "worker_host.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

struct fiber {
    pthread_t thread;
    sem_t go;
    void *(*main)(void *);
    void *arg;
    bool ends, detached, waits, timed_out;
    const pthread_cond_t *cond;
    uint64_t until_ms;
};
struct listened {
    char subject[160];
    delivery_fn *each;
    void *arg;
};

struct played_gateway play;
static struct fiber fibers[FIBERS_MAX];
static size_t fibers_len;
static struct fiber *runs; /* NULL: the script */
static sem_t back;
static struct listened listened[LISTENED_MAX];
static const char some_subscription[LISTENED_MAX], some_host, some_connection, some_client;
static int opened; /* connections and clients */

void played_say(const char *fmt, ...)
{
    char text[1200];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (char *at = text; *at != '\0'; at++)
        if (*at == '\n')
            *at = '~';
    (void)fprintf(play.said, "%6" PRIu64 " %s\n", play.now_ms, text);
}

/* What is the same each time. */
#define SAY_ALWAYS(...)                                                                                      \
    do {                                                                                                     \
        if (!play.brief)                                                                                     \
            played_say(__VA_ARGS__);                                                                         \
    } while (0)

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...) THOLE_PRINTF(4, 5);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    logged_text(text, sizeof text, fields, fmt, args);
    va_end(args);
    if (level != LOG_LEVEL_INFO || !play.brief)
        played_say("logs %d %s: %s", (int)level, area, text);
}

/* The next word of how such calls end. */
static const char *word(enum played_call call, char room[64])
{
    const char **const words = &play.ends[call];
    size_t const len = *words == NULL ? 0 : strcspn(*words, " ");
    (void)snprintf(room, 64, "%.*s", len == 0 ? 4 : (int)len, len == 0 ? "well" : *words);
    if (len > 0)
        *words += len + ((*words)[len] == ' ');
    return room;
}

static thole_status ends(enum played_call call, thole_error *reterr)
{
    char room[64];
    const char *const how = word(call, room);
    for (int i = 1; i < 64; i++)
        if (strcasecmp(thole_status_name((thole_status)i), how) == 0)
            return thole_fail(reterr, (thole_status)i, "played %s\n\xc3\xa4", how);
    CU_ASSERT_STRING_EQUAL(how, "well");
    return THOLE_OK;
}

/* ---- threads and time ---- */

static void give_back(void)
{
    struct fiber *const own = runs;
    (void)sem_post(&back);
    while (sem_wait(&own->go) != 0)
        continue;
}

static void *fiber_main(void *arg)
{
    struct fiber *const fiber = arg;
    while (sem_wait(&fiber->go) != 0)
        continue;
    (void)fiber->main(fiber->arg);
    fiber->ends = true;
    (void)sem_post(&back);
    return NULL;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);
static struct fiber *new_fiber(void *(*main)(void *), void *arg)
{
    if (fibers_len == FIBERS_MAX)
        abort();
    struct fiber *const fiber = &fibers[fibers_len++];
    *fiber = (struct fiber){.main = main, .arg = arg};
    (void)sem_init(&fiber->go, 0, 0);
    if (__real_pthread_create(&fiber->thread, NULL, fiber_main, fiber) != 0)
        abort();
    return fiber;
}

void played_thread(void *(*main)(void *), void *arg)
{
    new_fiber(main, arg)->detached = true;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
    int detached = PTHREAD_CREATE_JOINABLE;
    size_t stack = 0;
    if (play.no_threads)
        return EAGAIN;
    if (attr != NULL) {
        (void)pthread_attr_getdetachstate(attr, &detached);
        (void)pthread_attr_getstacksize(attr, &stack);
        SAY_ALWAYS("a thread with %zu bytes of stack", stack);
    }
    struct fiber *const fiber = new_fiber(main, arg);
    fiber->detached = detached == PTHREAD_CREATE_DETACHED;
    *thread = fiber->thread;
    return 0;
}

int __wrap_pthread_detach(pthread_t thread)
{
    for (size_t i = 0; i < fibers_len; i++)
        if (pthread_equal(fibers[i].thread, thread))
            fibers[i].detached = true;
    return 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    (void)thread;
    if (strlen(name) > 15)
        abort();
    return 0;
}

static void wait_for(const pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ms)
{
    if (runs == NULL)
        abort(); /* the script must not wait */
    runs->waits = true;
    runs->timed_out = false;
    runs->cond = cond;
    runs->until_ms = until_ms;
    if (lock != NULL)
        (void)pthread_mutex_unlock(lock);
    give_back();
    if (lock != NULL)
        (void)pthread_mutex_lock(lock);
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    wait_for(cond, lock, UINT64_MAX);
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
    struct fiber *const own = runs;
    wait_for(cond, lock, (uint64_t)until->tv_sec * 1000 + (uint64_t)until->tv_nsec / 1000000);
    return own->timed_out ? ETIMEDOUT : 0;
}

static int wake(const pthread_cond_t *cond)
{
    for (size_t i = 0; i < fibers_len; i++)
        if (fibers[i].waits && fibers[i].cond == cond)
            fibers[i].waits = false;
    return 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    return wake(cond);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    return wake(cond);
}

void played_sleep(uint64_t ms)
{
    wait_for(NULL, NULL, play.now_ms + ms);
}

int __wrap_nanosleep(const struct timespec *pause, struct timespec *rest)
{
    (void)rest;
    played_sleep((uint64_t)pause->tv_sec * 1000 + (uint64_t)pause->tv_nsec / 1000000);
    return 0;
}

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

uint64_t __wrap_clock_monotonic_us(void)
{
    return play.now_ms * 1000;
}

uint64_t __wrap_clock_wall_ms(void)
{
    return 1700000000000 + play.now_ms;
}

struct timespec __wrap_clock_timespec(uint64_t ms)
{
    return (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
}

static void run_all(void)
{
    for (size_t i = 0; i < fibers_len; i++)
        if (!fibers[i].waits && !fibers[i].ends) {
            runs = &fibers[i];
            (void)sem_post(&runs->go);
            while (sem_wait(&back) != 0)
                continue;
            runs = NULL;
            i = (size_t)-1; /* it may have woken any */
        }
}

void played_until(uint64_t ms)
{
    for (int turns = 0;; turns++) {
        uint64_t next_ms = UINT64_MAX;
        if (turns > 5000) {
            (void)fprintf(stderr, "played_until: for ever\n");
            abort();
        }
        run_all();
        for (size_t i = 0; i < fibers_len; i++)
            if (fibers[i].waits && fibers[i].until_ms < next_ms)
                next_ms = fibers[i].until_ms;
        if (next_ms == UINT64_MAX || next_ms >= ms)
            break;
        play.now_ms = next_ms > play.now_ms ? next_ms : play.now_ms;
        for (size_t i = 0; i < fibers_len; i++)
            if (fibers[i].waits && fibers[i].until_ms <= play.now_ms) {
                fibers[i].waits = false;
                fibers[i].timed_out = true;
            }
    }
    if (ms != UINT64_MAX)
        play.now_ms = ms;
}

ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags)
{
    (void)flags;
    memset(to, ++play.random, len);
    return (ssize_t)len;
}

/* ---- the connection ---- */

thole_status __wrap_connection_open(const struct connection_options *o, struct connection **ret,
                                    thole_error *reterr)
{
    SAY_ALWAYS("connects to %s as %s: creds %s, ca %s, cert %s, key %s, server %s, inbox %s, %d+%d ms",
               o->url, o->name, o->creds, o->ca, o->cert, o->key, o->server_name, o->inbox,
               (int)o->connect_timeout_ms, (int)o->request_timeout_ms);
    THOLE_TRY(ends(CALL_CONNECT, reterr));
    opened++;
    *ret = (struct connection *)(uintptr_t)&some_connection;
    return THOLE_OK;
}

void __wrap_connection_close(struct connection *connection)
{
    if (connection != NULL) {
        for (size_t i = 0; i < LISTENED_MAX; i++)
            CU_ASSERT_PTR_NULL(listened[i].each);
        opened--;
        SAY_ALWAYS("disconnects");
    }
}

size_t __wrap_connection_max_payload(const struct connection *connection)
{
    CU_ASSERT_PTR_EQUAL(connection, &some_connection);
    return play.max_payload;
}

thole_status __wrap_connection_serve(struct connection *connection, const char *subject, const char *group,
                                     delivery_fn *each, void *arg, struct subscription **ret,
                                     thole_error *reterr)
{
    size_t i = 0;
    CU_ASSERT_PTR_EQUAL(connection, &some_connection);
    SAY_ALWAYS("listens to %s%s%s", subject, group == NULL ? "" : " in the group ",
               group == NULL ? "" : group);
    THOLE_TRY(ends(CALL_LISTEN, reterr));
    while (listened[i].each != NULL)
        i++;
    (void)snprintf(listened[i].subject, sizeof listened[i].subject, "%s", subject);
    listened[i].each = each;
    listened[i].arg = arg;
    *ret = (struct subscription *)(uintptr_t)&some_subscription[i];
    return THOLE_OK;
}

thole_status __wrap_connection_subscribe(struct connection *connection, const char *subject,
                                         delivery_fn *each, void *arg, struct subscription **ret,
                                         thole_error *reterr)
{
    return __wrap_connection_serve(connection, subject, NULL, each, arg, ret, reterr);
}

void __wrap_subscription_close(struct subscription *subscription)
{
    if (subscription == NULL)
        return;
    struct listened *const to = &listened[(const char *)subscription - some_subscription];
    SAY_ALWAYS("no longer listens to %s", to->subject);
    to->each = NULL;
}

thole_status __wrap_connection_flush(struct connection *connection, thole_error *reterr)
{
    (void)connection;
    return ends(CALL_LISTEN, reterr);
}

static void say_body(thole_slice body)
{
    if (utf8_is_valid(body) && body.len > 0 && body.ptr[0] == '{') {
        (void)fprintf(play.said, "%.*s\n", THOLE_FMT(body));
        return;
    }
    for (size_t i = 0; i < body.len; i++)
        (void)fprintf(play.said, body.ptr[i] > ' ' && body.ptr[i] < 127 ? "%c" : "<%02x>", body.ptr[i]);
    (void)fputc('\n', play.said);
}

thole_status __wrap_connection_publish(struct connection *connection, const char *subject,
                                       const struct header *headers, size_t headers_len, thole_slice body,
                                       thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(connection, &some_connection);
    (void)fprintf(play.said, "%6" PRIu64 " to %s:", play.now_ms, subject);
    for (size_t i = 0; i < headers_len; i++)
        (void)fprintf(play.said, " [%s: %.*s]", headers[i].key, THOLE_FMT(headers[i].value));
    (void)fputs(" ", play.said);
    say_body(body);
    return ends(CALL_PUBLISH, reterr);
}

static bool matches(const char *pattern, const char *subject)
{
    while (*pattern != '\0' && *subject != '\0' && *pattern != '>') {
        size_t const p = strcspn(pattern, "."), s = strcspn(subject, ".");
        if (!(p == 1 && *pattern == '*') && (p != s || strncmp(pattern, subject, p) != 0))
            return false;
        pattern += p + (pattern[p] == '.');
        subject += s + (subject[s] == '.');
    }
    return *pattern == *subject || *pattern == '>';
}

void played_deliver(const char *subject, const char *reply, const char *type, const void *body, size_t len)
{
    natsMsg *message = NULL;
    bool heard = false;
    struct header const header = {"Content-Type", thole_slice_from(type)};
    if (link_message(subject, reply, &header, type != NULL, (thole_slice){body, len}, &message, NULL) !=
        THOLE_OK)
        abort();
    struct delivery delivery = link_delivery(message);
    /* neither has a NUL behind it */
    char *const exact = memory_new(strlen(subject));
    memcpy(exact, subject, strlen(subject));
    delivery.subject.ptr = (const uint8_t *)exact;
    for (size_t i = 0; i < LISTENED_MAX; i++)
        if (listened[i].each != NULL && matches(listened[i].subject, subject)) {
            heard = true;
            listened[i].each(listened[i].arg, &delivery);
        }
    if (!heard)
        played_say("nobody listens to %s", subject);
    natsMsg_Destroy(message);
    free(exact);
}

/* ---- the worker role ---- */

thole_status __wrap_worker_host_start(const struct host_options *o, const thole_program *program,
                                      const struct stop_check *stop, struct worker_host **ret,
                                      thole_error *reterr)
{
    char room[64];
    const char *const how = play.ends[CALL_HOST];
    played_say("a worker role starts: %s of queue %s in %s at %s, %u slots, %zu activities from %s", o->node,
               o->queue, o->ns, o->nats_url, o->slots, program->activities_len, program->activities[0].name);
    CU_ASSERT_PTR_EQUAL(program->activities[program->activities_len - 1].run, remote_handler);
    CU_ASSERT_STRING_EQUAL(program->name, o->node);
    CU_ASSERT_EQUAL(program->size, sizeof *program);
    CU_ASSERT_TRUE(o->crash_reporter == NULL && o->forkserver == NULL && o->metrics == NULL);
    CU_ASSERT_TRUE(stop_is_requested(stop));
    play.handlers = o->remote;
    if (how != NULL && strncmp(how, "slow:", 5) == 0)
        played_sleep(strtoull(word(CALL_HOST, room) + 5, NULL, 10));
    thole_status const status = ends(CALL_HOST, reterr);
    if (status != THOLE_OK)
        play.handlers = NULL;
    THOLE_TRY(status);
    *ret = (struct worker_host *)(uintptr_t)&some_host;
    return THOLE_OK;
}

static void drop(struct thole_activity *act)
{
    for (size_t i = 0; i < ACTS_MAX; i++)
        if (play.acts[i] == act)
            play.acts[i] = NULL;
}

/* Of those that it has got back. */
static void free_returned(void)
{
    for (size_t i = 0; i < ACTS_MAX; i++) {
        if (play.acts[i] != NULL && play.acts[i]->given_up)
            activity_destroy(play.acts[i]);
        play.acts[i] = NULL; /* the others are the session's */
    }
    play.handlers = NULL;
}

struct worker_host *played_host(void)
{
    return (struct worker_host *)(uintptr_t)&some_host;
}

void __wrap_worker_host_stop_within(struct worker_host *worker, uint64_t limit_ms)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    played_say("the worker role is to stop within %" PRIu64 " ms", limit_ms);
}

void __wrap_worker_host_stop(struct worker_host *worker)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    free_returned();
    played_say("the worker role stops");
}

void __wrap_worker_host_died(struct worker_host *worker, const char *report)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    played_say("the worker role dies: %s", report);
    played_sleep(1); /* its loop may still call */
    free_returned();
}

uint64_t __wrap_worker_host_lease_ms(const struct worker_host *worker)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    return 3000;
}

uint64_t __wrap_worker_host_payload_max(const struct worker_host *worker)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    return 262144;
}

static void say_returned(struct thole_activity *act, char letter)
{
    thole_slice output = {0};
    act->failure = act->failure_type = (thole_slice){0};
    thole_status const status = remote_handler(act, act->message->item.input, &output);
    played_say("%c has returned: %s output=%.*s failure=%.*s type=%.*s final=%d", letter,
               thole_status_name(status), THOLE_FMT(output), THOLE_FMT(act->failure),
               THOLE_FMT(act->failure_type), act->final);
    CU_ASSERT_TRUE(output.len == 0 || output.ptr != act->returned->output.ptr); /* that is borrowed */
}

/* given_up: it has returned; forgotten: its part is over. */
void __wrap_worker_host_returned(struct worker_host *worker, struct thole_activity *act,
                                 const struct remote_return *returned)
{
    char letter = '?';
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    for (size_t i = 0; i < ACTS_MAX; i++)
        if (play.acts[i] == act)
            letter = (char)('a' + i);
    CU_ASSERT_FALSE(act->given_up); /* once */
    act->returned = returned;
    say_returned(act, letter);
    act->given_up = true;
    if (act->forgotten) {
        drop(act);
        activity_destroy(act);
    }
}

void played_ended(struct thole_activity *act, bool stored)
{
    act->forgotten = true;
    play.handlers->ended(play.handlers->arg, (struct worker_host *)(uintptr_t)&some_host, act, stored);
    CU_ASSERT_PTR_NULL(act->remote);
    if (act->given_up) {
        drop(act);
        activity_destroy(act);
    }
}

/* ---- the client library ---- */

thole_status __wrap_thole_client_open(const thole_client_options *o, thole_client **ret, thole_error *reterr)
{
    SAY_ALWAYS("a client at %s and %s of %s: creds %s, ca %s, cert %s, key %s, server %s, inbox %s",
               o->nats_url, o->postgres, o->ns, o->nats_creds, o->nats_ca, o->nats_cert, o->nats_key,
               o->nats_server_name, o->nats_inbox);
    CU_ASSERT_EQUAL(o->size, sizeof *o);
    THOLE_TRY(ends(CALL_CLIENT, reterr));
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
    CU_ASSERT_EQUAL(o->size, sizeof *o);
    (void)ret_accepted;
    played_say("starts %.*s of %.*s: input=%.*s version=%u request=%.*s trace=%.*s,%.*s", THOLE_FMT(instance),
               THOLE_FMT(orchestration), THOLE_FMT(input), o->version, THOLE_FMT(o->request_id),
               THOLE_FMT(o->traceparent), THOLE_FMT(o->tracestate));
    return ends(CALL_ASKED, reterr);
}

thole_status __wrap_thole_client_signal(thole_client *client, thole_slice instance, thole_slice name,
                                        thole_slice data, thole_slice request_id, bool *ret_kept,
                                        thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    (void)ret_kept;
    played_say("signals %.*s: event=%.*s data=%.*s request=%.*s", THOLE_FMT(instance), THOLE_FMT(name),
               THOLE_FMT(data), THOLE_FMT(request_id));
    return ends(CALL_ASKED, reterr);
}

thole_status __wrap_thole_client_cancel_with(thole_client *client, thole_slice instance,
                                             const thole_end_options *options, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    CU_ASSERT_EQUAL(options->size, sizeof *options);
    played_say("cancels %.*s: %.*s request=%.*s", THOLE_FMT(instance), THOLE_FMT(options->reason),
               THOLE_FMT(options->request_id));
    return ends(CALL_ASKED, reterr);
}

thole_status __wrap_thole_client_terminate_with(thole_client *client, thole_slice instance,
                                                const thole_end_options *options, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    CU_ASSERT_EQUAL(options->size, sizeof *options);
    played_say("terminates %.*s: %.*s request=%.*s", THOLE_FMT(instance), THOLE_FMT(options->reason),
               THOLE_FMT(options->request_id));
    return ends(CALL_ASKED, reterr);
}

static thole_slice owned(const char *text)
{
    return (thole_slice){memory_copy(text, strlen(text)), strlen(text)};
}

thole_status __wrap_thole_client_query(thole_client *client, thole_slice instance, thole_slice name,
                                       thole_slice input, thole_slice *ret_output, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    played_say("queries %.*s: %.*s of %.*s", THOLE_FMT(instance), THOLE_FMT(name), THOLE_FMT(input));
    THOLE_TRY(ends(CALL_ASKED, reterr));
    *ret_output = owned("half way");
    return THOLE_OK;
}

/* "timeout" takes all of the time; "completed:…", "failed:…", "cancelled:…", "terminated:…" are outcomes. */
thole_status __wrap_thole_client_wait(thole_client *client, thole_slice instance, uint64_t wait_ms,
                                      thole_outcome *ret, thole_error *reterr)
{
    static const struct {
        const char *word;
        thole_instance_status status;
    } rows[] = {{"completed:", THOLE_INSTANCE_COMPLETED},
                {"failed:", THOLE_INSTANCE_FAILED},
                {"cancelled:", THOLE_INSTANCE_CANCELLED},
                {"terminated:", THOLE_INSTANCE_TERMINATED}};
    char room[64];
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    played_say("waits for %.*s, %" PRIu64 " ms", THOLE_FMT(instance), wait_ms);
    const char *const how = play.ends[CALL_ASKED] == NULL ? "" : play.ends[CALL_ASKED];
    if (strncmp(how, "timeout", 7) == 0)
        played_sleep(wait_ms);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strncmp(how, rows[i].word, strlen(rows[i].word)) == 0) {
            const char *const text = word(CALL_ASKED, room) + strlen(rows[i].word);
            *ret = (thole_outcome){
                .status = rows[i].status,
                .output = owned(text),
                .error_type = thole_slice_from(rows[i].status == THOLE_INSTANCE_FAILED ? "card" : "")};
            return THOLE_OK;
        }
    return ends(CALL_ASKED, reterr);
}

/* ---- begin, end ---- */

void played_begin(FILE *said)
{
    play = (struct played_gateway){.said = said, .now_ms = 1000, .max_payload = 1 << 20};
    CU_ASSERT_EQUAL_FATAL(nats_Open(-1), NATS_OK); /* once; its messages need it */
    fibers_len = 0;
    opened = 0;
    memset(listened, 0, sizeof listened);
    (void)sem_init(&back, 0, 0);
}

void played_end(void)
{
    for (size_t i = 0; i < fibers_len; i++) {
        if (!fibers[i].ends) {
            (void)fprintf(stderr, "a thread waits for ever\n");
            abort();
        }
        CU_ASSERT_TRUE(fibers[i].detached);
        (void)pthread_join(fibers[i].thread, NULL);
        (void)sem_destroy(&fibers[i].go);
    }
    (void)sem_destroy(&back);
    CU_ASSERT_EQUAL(opened, 0);
}
