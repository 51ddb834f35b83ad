/* A worker's start: each step of it fails, and nothing stays open; what its connections to Postgres are asked
 * to be. All that it opens is played. */
#include "clock.h"
#include "crash_reporter.h"
#include "queue_keeper.h"
#include "queue_wish.h"
#include "requests.h"
#include "row_calls.h"
#include "thole_cunit.h"
#include "topology.h"
#include "work.h"
#include "worker_host.h"
#include "worker_store.h"
#include "wrap_mutexes.h"
#include <limits.h>
#include <time.h>

static struct {
    size_t step, fails_at; /* steps so far; the one that fails */
    unsigned away;         /* not 0: it fails so often, first with an outage, and then it is refused */
    int open;              /* of everything together */
    uint64_t lease_ms, idle_ms;
    connection_state_fn *on_state;
    void *arg;
    unsigned looks; /* at the queue's consumer */
    char log[256];
} play;

static const char something;
static thole_error err;

static thole_status step(const char *name, bool opens, thole_error *reterr)
{
    size_t const at = strlen(play.log);
    (void)snprintf(play.log + at, sizeof play.log - at, "%s ", name);
    if (play.step == play.fails_at && play.away > 0) {
        play.away -= play.away != UINT_MAX;
        return play.away > 0 ? thole_fail(reterr, THOLE_UNAVAILABLE, "%s fails", name)
                             : thole_fail(reterr, THOLE_INVALID, "the rest fails");
    }
    if (play.step++ == play.fails_at)
        return thole_fail(reterr, THOLE_INVALID, "%s fails", name);
    play.open += opens;
    return THOLE_OK;
}

#define OPENS(name, type)                                                                                    \
    thole_status const status = step(name, true, reterr);                                                    \
    *ret = status == THOLE_OK ? (type *)(uintptr_t)&something : NULL;                                        \
    return status

thole_status __wrap_connection_open(const struct connection_options *options, struct connection **ret,
                                    thole_error *reterr)
{
    CHECK_STR("credentials", options->creds, "file");
    CHECK_STR("authorities", options->ca, "ca");
    CHECK_STR("certificate", options->cert, "cert");
    CHECK_STR("key", options->key, "key");
    CHECK_STR("server name", options->server_name, "name");
    CHECK_STR("inbox", options->inbox, "_INBOX_w");
    CU_ASSERT_EQUAL(strncmp(options->name, "node-", 5), 0); /* the host's name, for people */
    CU_ASSERT_TRUE(options->connect_timeout_ms == 5000 && options->request_timeout_ms == 5000);
    play.on_state = options->on_state;
    play.arg = options->arg;
    OPENS("connection", struct connection);
}

void __wrap_connection_close(struct connection *connection)
{
    play.open -= connection != NULL;
}

uint64_t __wrap_connection_epoch(const struct connection *connection)
{
    (void)connection;
    return 0;
}

thole_status __wrap_topology_read(struct connection *connection, const char *ns, struct topology *ret,
                                  thole_error *reterr)
{
    (void)connection;
    CHECK_STR("namespace", ns, "shop");
    *ret = (struct topology){.partitions = 1, .payload_max = 1000};
    return step("topology", false, reterr);
}

thole_status __wrap_queue_wish(struct connection *connection, const char *ns, thole_slice queue,
                               uint64_t lease_ms, uint64_t *ret_lease_ms, bool *ret_anew, thole_error *reterr)
{
    (void)connection, (void)ns, (void)queue, (void)lease_ms, (void)ret_anew;
    *ret_lease_ms = play.lease_ms;
    return step("queue", false, reterr);
}

thole_status __wrap_postgres_open(const struct postgres_options *options, struct postgres **ret,
                                  thole_error *reterr)
{
    play.idle_ms = options->idle_in_transaction_ms;
    OPENS("postgres", struct postgres);
}

void __wrap_postgres_close(struct postgres *pg)
{
    play.open -= pg != NULL;
}

thole_status __wrap_worker_store_renew(struct postgres *pg, thole_slice worker, struct claim *claims,
                                       size_t n, thole_error *reterr)
{
    (void)pg, (void)worker, (void)claims, (void)n;
    return step("tables", false, reterr);
}

/* Takes over the connection. */
thole_status __wrap_row_calls_create(const struct row_calls_options *options, struct row_calls **ret,
                                     thole_error *reterr)
{
    (void)options;
    thole_status const status = step("calls", false, reterr);
    *ret = status == THOLE_OK ? (struct row_calls *)(uintptr_t)&something : NULL;
    return status;
}

void __wrap_row_calls_destroy(struct row_calls *calls)
{
    play.open -= calls != NULL;
}

thole_status __wrap_requests_open(struct connection *connection, size_t window, uint64_t timeout_ms,
                                  request_done_fn *done, void *arg, struct requests **ret,
                                  thole_error *reterr)
{
    (void)connection, (void)window, (void)timeout_ms, (void)done, (void)arg;
    OPENS("requests", struct requests);
}

void __wrap_requests_close(struct requests *requests)
{
    play.open -= requests != NULL;
}

thole_status __wrap_connection_subscribe(struct connection *connection, const char *subject,
                                         delivery_fn *each, void *arg, struct subscription **ret,
                                         thole_error *reterr)
{
    (void)connection, (void)each, (void)arg;
    CHECK_STR("cancellations", subject, "thole.shop.cancel.>");
    OPENS("cancels", struct subscription);
}

void __wrap_subscription_close(struct subscription *subscription)
{
    play.open -= subscription != NULL;
}

thole_status __wrap_connection_flush(struct connection *connection, thole_error *reterr)
{
    (void)connection;
    return step("flush", false, reterr);
}

thole_status __wrap_queue_keeper_start(struct queue_keeper *keeper, struct connection *connection,
                                       const char *ns, const char *queue, uint64_t lease_ms,
                                       thole_error *reterr)
{
    (void)keeper, (void)connection, (void)ns, (void)queue;
    CU_ASSERT_EQUAL(lease_ms, play.lease_ms);
    return step("keeper", false, reterr);
}

void __wrap_queue_keeper_look(struct queue_keeper *keeper)
{
    (void)keeper;
    play.looks++;
}

/* The last step here always fails: no work is pulled. Before, the connection is lost and comes back: the
 * queue's consumer may be gone meanwhile. */
thole_status __wrap_puller_open(struct connection *connection, const char *ns, thole_slice queue,
                                puller_fn *work, puller_bad_fn *bad, puller_refused_fn *refused, void *arg,
                                struct puller **ret, thole_error *reterr)
{
    (void)connection, (void)ns, (void)queue, (void)work, (void)bad, (void)refused, (void)arg, (void)ret;
    (void)step("puller", false, reterr);
    play.looks = 0;
    play.on_state(play.arg, true, 2);
    CU_ASSERT_EQUAL(play.looks, 1);
    return thole_fail(reterr, THOLE_INVALID, "puller fails");
}

void __wrap_crash_reporter_name(struct crash_reporter *reporter, const char *incarnation)
{
    (void)reporter, (void)incarnation;
}

static thole_status nothing(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_OK;
}

static const thole_activity_options apart = {.size = sizeof apart, .isolation = THOLE_ISOLATION_PROCESS};

/* Time passes only where it sleeps. */
static struct {
    uint64_t now_ms, stop_at_ms;
} time_played;

uint64_t __wrap_clock_monotonic_ms(void)
{
    return time_played.now_ms;
}

int __wrap_nanosleep(const struct timespec *pause, struct timespec *rest)
{
    (void)rest;
    time_played.now_ms += (uint64_t)pause->tv_sec * 1000 + (uint64_t)pause->tv_nsec / 1000000;
    return 0;
}

static bool stop_is_asked(void *arg)
{
    (void)arg;
    return time_played.now_ms >= time_played.stop_at_ms;
}
static const struct stop_check asked = {.requested = stop_is_asked};

static thole_status start_with(uint64_t renew_every_ms, bool process)
{
    thole_activity_entry const entries[] = {{"charge", nothing, process ? &apart : NULL}};
    thole_program const program = {
        .size = sizeof program, .name = "p", .activities = entries, .activities_len = 1};
    struct host_options const options = {.nats_url = "nats://n:1",
                                         .nats_creds = "file",
                                         .nats_ca = "ca",
                                         .nats_cert = "cert",
                                         .nats_key = "key",
                                         .nats_server_name = "name",
                                         .nats_inbox = "_INBOX_w",
                                         .ns = "shop",
                                         .queue = "q",
                                         .node = "node",
                                         .slots = 2,
                                         .renew_every_ms = renew_every_ms};
    struct worker_host *host = NULL;
    memset(&err, 0, sizeof err);
    play.step = 0;
    play.log[0] = '\0';
    thole_status const status =
        worker_host_start(&options, &program, time_played.stop_at_ms == 0 ? NULL : &asked, &host, &err);
    CU_ASSERT_PTR_NULL(host);
    CU_ASSERT_EQUAL(play.open, 0); /* nothing is left open, and nothing was closed twice */
    return status;
}

#define ALL                                                                                                  \
    "connection topology queue postgres tables calls postgres tables calls requests cancels flush keeper "   \
    "puller "

static void test_each_step_fails(void)
{
    static const char *const names[] = {"connection", "topology", "queue",  "postgres", "tables",
                                        "calls",      "postgres", "tables", "calls",    "requests",
                                        "cancels",    "flush",    "keeper", "puller"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char want[64];
        play.lease_ms = 30000;
        play.fails_at = i;
        CU_ASSERT_EQUAL(start_with(10000, false), THOLE_INVALID);
        (void)snprintf(want, sizeof want, "%s fails", names[i]);
        CHECK_STR("why", err.text, want);
        CU_ASSERT_EQUAL(play.step, i + 1);
    }
    CHECK_STR("in this order", play.log, ALL);
}

/* A lease within a second and ten: frozen in a completion, it holds its rows for no longer. */
static void test_the_lease(void)
{
    static const struct {
        uint64_t lease_ms, renew_every_ms, idle_ms; /* idle 0: it is refused */
    } rows[] = {{30000, 10000, 10000}, {30000, 15000, 10000}, {30000, 15001, 0},   {1000, 300, 1000},
                {5000, 1000, 5000},    {9999, 1000, 9999},    {10001, 1000, 10000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        play.fails_at = SIZE_MAX;
        play.lease_ms = rows[i].lease_ms;
        play.idle_ms = 0;
        CU_ASSERT_EQUAL(start_with(rows[i].renew_every_ms, false), THOLE_INVALID);
        CU_ASSERT_EQUAL(play.idle_ms, rows[i].idle_ms);
        CHECK_STR("how far", play.log, rows[i].idle_ms > 0 ? ALL : "connection topology queue ");
        CU_ASSERT_EQUAL(strstr(err.text, "is more than half of the lease of queue q") != NULL,
                        rows[i].idle_ms == 0);
    }
}

/* Away for so long: it waits, until it is told to stop. */
static void test_while_something_is_away(void)
{
    static const char *const names[] = {"connection", "topology", "queue", "postgres"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char want[64];
        play.lease_ms = 30000;
        play.fails_at = i;
        play.away = 3; /* times */
        time_played.now_ms = 1000;
        time_played.stop_at_ms = 100000;
        CU_ASSERT_EQUAL(start_with(10000, false), THOLE_INVALID); /* of the step after the last one */
        CHECK_STR("it goes on", err.text, "the rest fails");
        CU_ASSERT_TRUE(time_played.now_ms > 1000 && time_played.now_ms < 100000);
        play.fails_at = i;
        play.away = UINT_MAX;
        time_played.now_ms = 1000;
        CU_ASSERT_EQUAL(start_with(10000, false), THOLE_CANCELLED);
        (void)snprintf(want, sizeof want, "%s fails", names[i]);
        CHECK_STR("what it waited for", err.text, want);
        CU_ASSERT_TRUE(time_played.now_ms >= 100000 && time_played.now_ms < 101000);
    }
    play.away = 0;
    time_played.stop_at_ms = 0;
}

static void test_processes_without_a_forkserver(void)
{
    play.fails_at = SIZE_MAX;
    play.lease_ms = 30000;
    CU_ASSERT_EQUAL(start_with(10000, true), THOLE_INVALID);
    CHECK_STR("why", err.text, "there are activities for processes, and no forkserver");
}

static const struct thole_test tests[] = {
    {"each step fails", test_each_step_fails},
    {"the lease", test_the_lease},
    {"while something is away", test_while_something_is_away},
    {"processes without a forkserver", test_processes_without_a_forkserver},
};
THOLE_TEST_MAIN("worker_start", tests)
