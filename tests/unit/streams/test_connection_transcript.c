/* A connection's whole life. connection.transcript has steps ("$ … | …"), each followed by the calls of
 * nats.c, the callbacks of the owner, and the state. nats.c, the servers, clocks and waits are played; the
 * keeper's thread is real, and runs only while the test waits for it. With THOLE_WRITE_TRANSCRIPT=1 in the
 * environment the file is written again, to be read and committed. Steps:
 *   open URL KEY=VALUE …   servers=, connects=: how each connect ends, with "," between them; later ones: ok
 *                          fails=CALL: nats.c's CALL fails; status=N: with this natsStatus; said=TEXT: with
 *                          this text
 *   wait                   time passes until the keeper wakes up by itself
 * The table `steps` has all steps. */
#include "clock.h"
#include "inbox_prefix.h"
#include "link.h"
#include "loop.h"
#include "server_info.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "wrap_mutexes.h"
#include "wrap_nats_options.h"
#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/streams/connection.transcript"
enum { WORDS_MAX = 16, NCS_MAX = 32, OWNERS = 3 };

struct played_nc {
    bool made, closed, destroyed;
    bool looped, joined; /* of the loop */
};

struct owner {
    struct attachment attachment;
    char name;
    bool attached;
};

static struct {
    FILE *to;
    char *words[WORDS_MAX];
    size_t len;
    char servers[200], connects[200], said[200], fails[60];
    const char *servers_at, *connects_at;
    natsStatus status;
    natsConnectionHandler disconnected, closed;
    natsErrHandler error;
    void *closure;
    struct played_nc ncs[NCS_MAX];
    unsigned ncs_len, options;
    bool stalled;
    bool late; /* nats.c calls the closed callback later */
    unsigned owed, late_nc;
    uint64_t now_ms;
    int64_t wall_ms;
    struct connection *connection;
    struct owner owners[OWNERS];
    struct link *held;
    int subscriptions;
    /* the keeper */
    pthread_t keeper;
    bool started, has_deadline, random;
    uint64_t deadline_ms;
    sem_t to_keeper, to_test;
} play;

static char native[8]; /* subscriptions */

static void say(const char *fmt, ...) THOLE_PRINTF(1, 2);
static void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)fputs("  ", play.to);
    (void)vfprintf(play.to, fmt, args);
    (void)fputc('\n', play.to);
    va_end(args);
}

/* ---- words ---- */

static const char *option(const char *key)
{
    size_t const len = strlen(key);
    for (size_t i = 0; i < play.len; i++)
        if (strncmp(play.words[i], key, len) == 0 && play.words[i][len] == '=')
            return play.words[i] + len + 1;
    return NULL;
}

static uint64_t number_of(const char *key, uint64_t usual)
{
    const char *const value = option(key);
    return value == NULL ? usual : strtoull(value, NULL, 10);
}

/* Takes the next word of a script off; "ok" after the last. */
static const char *next_of(const char **script)
{
    static char room[64];
    size_t const len = strcspn(*script, ",");
    if (len == 0)
        return "ok";
    (void)snprintf(room, sizeof room, "%.*s", (int)len, *script);
    *script += len + ((*script)[len] == ',');
    return room;
}

static natsStatus done(const char *call)
{
    return strcmp(play.fails, call) == 0 ? play.status : NATS_OK;
}

/* ---- clocks and the keeper's thread ---- */

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

uint64_t __wrap_clock_wall_ms(void)
{
    return (uint64_t)((int64_t)play.now_ms + 1600000000000 + play.wall_ms);
}

static bool is_keeper(void)
{
    return play.started && pthread_equal(pthread_self(), play.keeper);
}

static void let_keeper_run(void)
{
    CU_ASSERT_EQUAL(sem_post(&play.to_keeper), 0);
    CU_ASSERT_EQUAL(sem_wait(&play.to_test), 0);
}

/* The test goes on until it lets the keeper run. */
static void pause_keeper(pthread_mutex_t *mutex)
{
    (void)pthread_mutex_unlock(mutex);
    CU_ASSERT_EQUAL(sem_post(&play.to_test), 0);
    CU_ASSERT_EQUAL(sem_wait(&play.to_keeper), 0);
    (void)pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    (void)cond;
    CU_ASSERT_TRUE_FATAL(is_keeper());
    play.deadline_ms = (uint64_t)until->tv_sec * 1000 + (uint64_t)until->tv_nsec / 1000000;
    play.has_deadline = true;
    pause_keeper(mutex);
    return 0;
}

/* Without a deadline; or the end waits for callbacks that come late. */
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    (void)cond;
    if (is_keeper()) {
        play.has_deadline = false;
        pause_keeper(mutex);
        return 0;
    }
    CU_ASSERT_FATAL(play.owed > 0); /* would wait for ever */
    play.owed--;
    say("the callback of nc%u comes late", play.late_nc);
    (void)pthread_mutex_unlock(mutex);
    play.closed((natsConnection *)&play.ncs[play.late_nc], play.closure);
    (void)pthread_mutex_lock(mutex);
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    (void)cond;
    if (!is_keeper())
        say("wakes the keeper");
    return 0;
}

static void *(*keeper_main)(void *);

static void *run_keeper(void *arg)
{
    play.keeper = pthread_self();
    play.started = true;
    void *const ret = keeper_main(arg);
    play.started = false;
    CU_ASSERT_EQUAL(sem_post(&play.to_test), 0);
    return ret;
}

int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    if (strcmp(play.fails, "pthread_create") == 0) {
        errno = ENOENT; /* without a meaning there */
        return EAGAIN;
    }
    keeper_main = fn;
    int const failed = __real_pthread_create(ret, attr, run_keeper, arg);
    CU_ASSERT_EQUAL(sem_wait(&play.to_test), 0);
    return failed;
}

int __real_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_join(pthread_t thread, void **ret)
{
    let_keeper_run();
    return __real_pthread_join(thread, ret);
}

/* ---- the system ---- */

ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)to)[i] = (uint8_t)i;
    errno = EIO;
    return strcmp(play.fails, "getrandom") == 0 ? -1 : (ssize_t)len;
}

int __wrap_access(const char *path, int mode)
{
    CU_ASSERT_EQUAL(mode, R_OK);
    errno = ENOENT;
    return strstr(path, "none") != NULL ? -1 : 0;
}

thole_status __wrap_server_info_read(const char *url, uint64_t timeout_ms, struct server_info *ret,
                                     thole_error *reterr)
{
    const char *const what = next_of(&play.servers_at);
    say("asks %s, at most %" PRIu64 " ms: %s", url, timeout_ms, what);
    if (strcmp(what, "down") == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s is down", url);
    *ret = (struct server_info){.max_payload = 1000 + play.ncs_len,
                                .jetstream = strcmp(what, "plain") != 0,
                                .tls_required = strcmp(what, "tls") == 0 || strcmp(what, "verify") == 0,
                                .tls_verify = strcmp(what, "verify") == 0};
    (void)snprintf(ret->version, sizeof ret->version, "2.10.%u", play.ncs_len);
    return THOLE_OK;
}

/* ---- nats.c: options ---- */

natsStatus __real_natsOptions_Create(natsOptions **ret);
natsStatus __wrap_natsOptions_Create(natsOptions **ret)
{
    natsStatus const status = done("Create");
    if (status != NATS_OK)
        return status;
    play.options++;
    return __real_natsOptions_Create(ret);
}

void __real_natsOptions_Destroy(natsOptions *options);
void __wrap_natsOptions_Destroy(natsOptions *options)
{
    play.options -= options != NULL;
    __real_natsOptions_Destroy(options);
}

static natsStatus on_option(const char *name, const char *value)
{
    say("%s %s", name, value);
    return done(name);
}

natsStatus __wrap_natsOptions_SetDisconnectedCB(natsOptions *options, natsConnectionHandler handler,
                                                void *arg)
{
    (void)options;
    play.disconnected = handler;
    play.closure = arg;
    return done("DisconnectedCB");
}

natsStatus __wrap_natsOptions_SetClosedCB(natsOptions *options, natsConnectionHandler handler, void *arg)
{
    (void)options;
    play.closed = handler;
    CU_ASSERT_TRUE(arg == play.closure || play.fails[0] != '\0');
    return done("ClosedCB");
}

natsStatus __wrap_natsOptions_SetErrorHandler(natsOptions *options, natsErrHandler handler, void *arg)
{
    (void)options;
    play.error = handler;
    CU_ASSERT_TRUE(arg == play.closure || play.fails[0] != '\0');
    return done("ErrorHandler");
}

const char *__wrap_nats_GetLastError(natsStatus *status)
{
    CU_ASSERT_PTR_NULL(status);
    return play.said;
}

/* ---- nats.c: connections ---- */

static unsigned number_of_nc(natsConnection *nc)
{
    return (unsigned)((struct played_nc *)(void *)nc - play.ncs);
}

natsStatus __wrap_natsConnection_Connect(natsConnection **ret, natsOptions *options)
{
    static const struct {
        const char *name;
        natsStatus status;
    } ends[] = {{"ok", NATS_OK},
                {"closed", NATS_OK},
                {"auth", NATS_CONNECTION_AUTH_FAILED},
                {"ssl", NATS_SSL_ERROR},
                {"wanted", NATS_SECURE_CONNECTION_WANTED},
                {"required", NATS_SECURE_CONNECTION_REQUIRED},
                {"err", NATS_ERR},
                {"arg", NATS_INVALID_ARG},
                {"memory", NATS_NO_MEMORY},
                {"timeout", NATS_TIMEOUT},
                {"none", NATS_NO_SERVER}};
    const char *const what = next_of(&play.connects_at);
    CU_ASSERT_PTR_NOT_NULL(options);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (strcmp(ends[i].name, what) == 0) {
            say("connects: %s", what);
            if (ends[i].status != NATS_OK)
                return ends[i].status;
            CU_ASSERT_FATAL(play.ncs[++play.ncs_len].looped);
            play.ncs[play.ncs_len].made = true;
            play.ncs[play.ncs_len].closed = strcmp(what, "closed") == 0;
            *ret = (natsConnection *)(void *)&play.ncs[play.ncs_len];
            return NATS_OK;
        }
    CU_FAIL_FATAL("no such end");
    return NATS_ERR;
}

/* ---- loops: each has the place of its nc ---- */

struct loop *__wrap_loop_create(loop_deliver_fn *deliver, void *arg)
{
    CU_ASSERT_TRUE(deliver != NULL && arg != NULL);
    CU_ASSERT_FATAL(play.ncs_len + 1 < NCS_MAX);
    if (strcmp(play.fails, "loop_create") == 0)
        return NULL;
    play.ncs[play.ncs_len + 1] = (struct played_nc){.looped = true};
    return (struct loop *)(void *)&play.ncs[play.ncs_len + 1];
}

static unsigned number_of_loop(struct loop *loop)
{
    return (unsigned)((struct played_nc *)(void *)loop - play.ncs);
}

natsStatus __wrap_loop_set_options(struct loop *loop, natsOptions *options)
{
    CU_ASSERT_PTR_NOT_NULL(options);
    CU_ASSERT_EQUAL(number_of_loop(loop), play.ncs_len + 1);
    return done("SetEventLoop");
}

/* The loop's thread closes the connection, and nats.c calls. */
void __wrap_loop_shut(struct loop *loop)
{
    unsigned const n = number_of_loop(loop);
    struct played_nc *const at = &play.ncs[n];
    bool const first = at->made;
    say("shuts the loop of nc%u%s", n, first ? "" : " again");
    at->made = false;
    at->closed = true;
    if (first) {
        play.owed++;
        play.late_nc = n;
    }
}

void __wrap_loop_join(struct loop *loop)
{
    struct played_nc *const at = &play.ncs[number_of_loop(loop)];
    CU_ASSERT_FALSE(at->joined);
    at->joined = true;
    if (at->made)
        __wrap_loop_shut(loop);
    if (play.owed > 0 && !play.late) {
        play.owed--;
        play.closed((natsConnection *)(void *)&play.ncs[play.late_nc], play.closure);
    }
}

void __wrap_loop_destroy(struct loop *loop)
{
    struct played_nc *const at = &play.ncs[number_of_loop(loop)];
    CU_ASSERT_TRUE(at->looped && at->joined);
    at->looped = false;
}

bool __wrap_loop_is_stalled(struct loop *loop, unsigned silent_max, unsigned blocked_max)
{
    CU_ASSERT_TRUE(play.ncs[number_of_loop(loop)].looped);
    if (play.stalled)
        say("stalled: silent %u, blocked %u", silent_max, blocked_max);
    return play.stalled;
}

/* ---- nats.c: the rest ---- */

bool __wrap_natsConnection_IsClosed(natsConnection *nc)
{
    return play.ncs[number_of_nc(nc)].closed;
}

thole_status __wrap_link_check_inbox(struct link *link, const char *inbox, uint64_t timeout_ms,
                                     thole_error *reterr)
{
    bool const deaf = strcmp(play.fails, "inbox") == 0;
    say("may hear %s, asks nc%u at most %" PRIu64 " ms: %s", inbox, number_of_nc(link->nc), timeout_ms,
        deaf ? "no" : "yes");
    return deaf ? thole_fail(reterr, THOLE_DENIED, "it may not") : THOLE_OK;
}

void __wrap_natsConnection_Destroy(natsConnection *nc)
{
    struct played_nc *const at = &play.ncs[number_of_nc(nc)];
    say("destroys nc%u", number_of_nc(nc));
    CU_ASSERT_FALSE(at->destroyed);
    at->destroyed = true;
}

natsStatus __wrap_natsConnection_GetLastError(natsConnection *nc, const char **text)
{
    (void)nc;
    *text = strcmp(play.said, "null") == 0 ? NULL : play.said;
    return strcmp(play.fails, "GetLastError") == 0 ? NATS_OK : NATS_NOT_PERMITTED;
}

natsStatus __wrap_natsConnection_FlushTimeout(natsConnection *nc, int64_t timeout)
{
    natsStatus const status = done("FlushTimeout");
    say("flushes nc%u, at most %" PRId64 " ms: %s", number_of_nc(nc), timeout,
        status == NATS_OK ? "done" : "not");
    return status;
}

natsStatus __wrap_natsSubscription_Unsubscribe(natsSubscription *subscription)
{
    say("unsubscribes %d", (int)((char *)subscription - native));
    play.subscriptions++;
    return NATS_OK;
}

void __wrap_natsSubscription_Destroy(natsSubscription *subscription)
{
    say("destroys subscription %d", (int)((char *)subscription - native));
    play.subscriptions--;
}

/* ---- owners ---- */

static void on_state(void *arg, bool connected, uint64_t epoch)
{
    CU_ASSERT_PTR_EQUAL(arg, &play);
    say("state %s %" PRIu64, connected ? "up" : "down", epoch);
}

static void on_up(void *arg, struct link *link)
{
    say("%c up in %" PRIu64 " with nc%u", ((struct owner *)arg)->name, link->epoch, number_of_nc(link->nc));
    CU_ASSERT_PTR_EQUAL(link->connection, play.closure);
}

static void on_down(void *arg, uint64_t epoch)
{
    say("%c down, it was %" PRIu64, ((struct owner *)arg)->name, epoch);
}

static void on_fire(void *arg)
{
    say("%c fires", ((struct owner *)arg)->name);
}

/* ---- steps ---- */

static void put_state(void)
{
    char text[300] = "";
    thole_slice const version = connection_server_version(play.connection);
    uint64_t const violations = connection_violations(play.connection, text, sizeof text);
    say("epoch %" PRIu64 " server %.*s payload %zu%s violations %" PRIu64 " %s",
        connection_epoch(play.connection), THOLE_FMT(version), connection_max_payload(play.connection),
        connection_has_jetstream(play.connection) ? " JetStream" : "", violations, text);
}

static void step_open(void)
{
    thole_error err = {.status = THOLE_OK};
    struct connection_options const options = {.url =
                                                   strcmp(play.words[0], "null") == 0 ? NULL : play.words[0],
                                               .creds = option("creds"),
                                               .ca = option("ca"),
                                               .cert = option("cert"),
                                               .key = option("key"),
                                               .inbox = option("inbox"),
                                               .name = option("name"),
                                               .connect_timeout_ms = number_of("connect", 700),
                                               .request_timeout_ms = number_of("request", 800),
                                               .on_state = number_of("untold", 0) ? NULL : on_state,
                                               .arg = &play};
    static char urls[17000];
    struct connection_options long_one = options;
    if (play.words[0][0] == '@') {
        size_t const len = strtoul(play.words[0] + 1, NULL, 10);
        memset(urls, 'a', len);
        urls[len] = '\0';
        long_one.url = urls;
    }
    char before[20] = "", after[20] = "";
    (void)pthread_getname_np(pthread_self(), before, sizeof before);
    thole_status const status = connection_open(&long_one, &play.connection, &err);
    (void)pthread_getname_np(pthread_self(), after, sizeof after);
    CHECK_STR("the caller's thread", after, before);
    say("= %s %s", thole_status_name(status), err.text);
    CU_ASSERT_EQUAL(play.connection != NULL, status == THOLE_OK);
    if (status == THOLE_OK) {
        CU_ASSERT_PTR_EQUAL(play.connection, play.closure);
        say("timeout %" PRIu64 " inbox %s", connection_request_timeout_ms(play.connection),
            connection_inbox_root(play.connection));
    }
}

static natsConnection *nc_of(size_t word)
{
    return (natsConnection *)(void *)&play.ncs[strtoul(play.words[word], NULL, 10)];
}

static struct owner *owner_of(void)
{
    return &play.owners[(play.words[0][0] - 'A') % OWNERS];
}

static void step_attach(void)
{
    struct owner *const owner = owner_of();
    owner->name = play.words[0][0];
    owner->attachment =
        (struct attachment){.up = on_up, .down = on_down, .fire = on_fire, .arg = owner, .due_ms = 7};
    connection_attach(play.connection, &owner->attachment);
    owner->attached = true;
}

static void step_detach(void)
{
    connection_detach(play.connection, &owner_of()->attachment);
    CU_ASSERT_PTR_NULL(owner_of()->attachment.next);
    CU_ASSERT_PTR_NULL(owner_of()->attachment.prev);
    owner_of()->attached = false;
}

static uint64_t due_of(void)
{
    uint64_t const in_ms = number_of("in", UINT64_MAX);
    return in_ms == UINT64_MAX ? 0 : play.now_ms + in_ms;
}

static void step_alarm(void)
{
    connection_alarm(play.connection, &owner_of()->attachment, due_of());
}

static void step_alarm_by(void)
{
    connection_alarm_by(play.connection, &owner_of()->attachment, due_of());
}

static void step_wait(void)
{
    CU_ASSERT_TRUE_FATAL(play.has_deadline);
    uint64_t const ms = play.deadline_ms > play.now_ms ? play.deadline_ms - play.now_ms : 0;
    bool const connected = connection_epoch(play.connection) != 0;
    play.random = play.random || !connected; /* pauses have a random part, and so has all that follows */
    if (play.random && ms != 1000)
        say("after %s", connected ? "less than a second" : "a pause");
    else
        say("after %" PRIu64 " ms", ms);
    CU_ASSERT_TRUE(ms <= 2000);
    play.now_ms += ms;
    let_keeper_run();
}

static void step_look(void)
{
    let_keeper_run();
}

static void step_lose(void)
{
    play.disconnected(nc_of(0), play.closure);
}

static void step_error(void)
{
    play.error(nc_of(0), NULL, number_of("permitted", 0) ? NATS_SLOW_CONSUMER : NATS_NOT_PERMITTED,
               play.closure);
}

static void step_retire(void)
{
    connection_retire(play.connection, (natsSubscription *)(void *)&native[strtoul(play.words[0], NULL, 10)],
                      number_of("epoch", 1));
}

static void step_hold(void)
{
    struct link *const link = link_acquire(play.connection);
    say("holds %s", link == NULL ? "nothing" : "a link");
    if (play.held != NULL)
        link_release(link);
    else
        play.held = link;
}

static void step_drop(void)
{
    link_release(play.held);
    play.held = NULL;
}

static void step_break(void)
{
    link_break(play.held);
}

static void step_clock(void)
{
    play.wall_ms += (int64_t)strtoll(play.words[0], NULL, 10);
}

static void step_stall(void)
{
    play.stalled = true;
}

static void step_late(void)
{
    play.late = true;
}

static void step_set(void)
{
}

static void step_close(void)
{
    step_drop();
    for (size_t i = 0; i < OWNERS; i++)
        if (play.owners[i].attached)
            connection_detach(play.connection, &play.owners[i].attachment);
    connection_close(play.connection);
    play.connection = NULL;
}

static const struct {
    const char *name;
    void (*run)(void);
} steps[] = {{"open", step_open},     {"attach", step_attach},     {"detach", step_detach},
             {"alarm", step_alarm},   {"alarm_by", step_alarm_by}, {"wait", step_wait},
             {"look", step_look},     {"lose", step_lose},         {"error", step_error},
             {"retire", step_retire}, {"hold", step_hold},         {"drop", step_drop},
             {"break", step_break},   {"clock", step_clock},       {"stall", step_stall},
             {"late", step_late},     {"set", step_set},           {"close", step_close}};

static void take(const char *key, char *room, size_t cap, const char **at)
{
    const char *const value = option(key);
    if (value == NULL)
        return;
    (void)snprintf(room, cap, "%s", value);
    for (char *c = room; at == NULL && room != play.fails && *c != '\0'; c++)
        *c = *c == '_' ? ' ' : *c;
    if (at != NULL)
        *at = room;
}

static void play_step(char *words)
{
    char *save = NULL;
    const char *const name = strtok_r(words, " ", &save);
    play.len = 0;
    for (char *word = strtok_r(NULL, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        CU_ASSERT_FATAL(play.len < WORDS_MAX);
        play.words[play.len++] = word;
    }
    take("servers", play.servers, sizeof play.servers, &play.servers_at);
    take("connects", play.connects, sizeof play.connects, &play.connects_at);
    take("fail", play.fails, sizeof play.fails, NULL);
    take("said", play.said, sizeof play.said, NULL);
    play.status = (natsStatus)number_of("status", play.status);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (strcmp(steps[i].name, name) == 0) {
            (void)fprintf(play.to, " %s\n", name);
            steps[i].run();
            if (play.connection != NULL)
                put_state();
            return;
        }
    CU_FAIL_FATAL("no such step");
}

static void play_line(const char *text, FILE *to)
{
    char *const copy = strdup(text), *at = copy;
    memset(&play, 0, sizeof play);
    play.to = to;
    play.now_ms = 500000;
    play.status = NATS_NO_MEMORY;
    play.servers_at = play.connects_at = "";
    played_option = on_option;
    CU_ASSERT_EQUAL(sem_init(&play.to_keeper, 0, 0) + sem_init(&play.to_test, 0, 0), 0);
    for (char *words; (words = strsep(&at, "|")) != NULL;)
        play_step(words);
    if (play.connection != NULL)
        step_close();
    CU_ASSERT_EQUAL(play.options, 0);
    CU_ASSERT_EQUAL(play.subscriptions, 0);
    for (unsigned i = 1; i <= play.ncs_len; i++)
        CU_ASSERT_TRUE(play.ncs[i].destroyed);
    connection_close(NULL);
    link_release(NULL);
    free(copy);
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

static void test_nothing_stays(void)
{
    transcript_check_heap(TRANSCRIPT, play_line);
}

int main(void)
{
    static const struct thole_test tests[] = {{"transcript", test_transcript},
                                              {"nothing stays", test_nothing_stays}};
    if (nats_Open(-1) != NATS_OK) /* natsOptions need it */
        return 2;
    return thole_run_suite("connection_transcript", tests, ARRAY_LEN(tests));
}
