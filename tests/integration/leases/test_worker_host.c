/* The worker role against real servers: the test does what the engine would do. */
#include "cancel_proof.h"
#include "nonces.h"
#include "worker_stage.h"
#include <inttypes.h>

static struct stage stage;

#define CHECK_LOG(log, text)                                                                                 \
    do {                                                                                                     \
        CU_ASSERT_PTR_NOT_NULL(strstr(log, text));                                                           \
        if (strstr(log, text) == NULL)                                                                       \
            fprintf(stderr, "\n  %s:%d: the log lacks \"%s\"\n", __FILE__, __LINE__, text);                  \
    } while (0)

static void test_runs_once(void)
{
    enum { N = 50 };
    stage_begin(&stage, "once");
    stage_log_begin(&stage);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    for (uint64_t i = 1; i <= N; i++)
        stage_schedule(&stage, "order 1/ä", i, "echo", "hello");
    CU_ASSERT_EQUAL(stage_results(&stage, "order 1/ä", N, 10000), N);
    CHECK_STR("echo", stage_last.data, "hello");
    CU_ASSERT_EQUAL(stage_last.attempt, 1);
    CU_ASSERT_TRUE(stage_drained(&stage, 2000));
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.started), N);
    stage_message(&stage, "order 1/ä", 1, "echo", "again"); /* no row: done before */
    CU_ASSERT_TRUE(stage_drained(&stage, 2000));
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.started), N);
    worker_host_stop(worker);
    const char *const log = stage_log_end(&stage);
    CHECK_LOG(log, "claimed=50 completed=50 cancelled_by_push=0");
    CHECK_LOG(log, "gone=1");
    stage_end(&stage);
}

static void test_failures(void)
{
    static const struct {
        const char *activity, *text;
        uint32_t status;
    } rows[] = {
        {"declined", "declined: card, key i%204.1.1", THOLE_APP},
        {"large", "the output has 262145 bytes; at most 262144 are allowed", THOLE_LIMIT},
        {"odd", "the handler returned 77, which is not a status", THOLE_APP},
        {"gives_up", "the handler returned CANCELLED, but nothing had cancelled it", THOLE_APP},
    };
    stage_begin(&stage, "failures");
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        stage_schedule(&stage, "i 4", i + 1, rows[i].activity, "card");
        CU_ASSERT_EQUAL(stage_results(&stage, "i 4", i + 1, 5000), i + 1);
        CHECK_STR(rows[i].activity, stage_last.data, rows[i].text);
        CU_ASSERT_EQUAL(stage_last.status, rows[i].status);
    }
    worker_host_stop(worker);
    stage_end(&stage);
}

/* Row away, then the push, as the projector does it. */
static void test_push(void)
{
    enum { RUNS = 50 };
    uint64_t sum_us = 0, most_us = 0;
    stage_begin(&stage, "push");
    stage_log_begin(&stage);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    for (unsigned i = 1; i <= RUNS; i++) {
        stage_schedule(&stage, "i", i, "hold", "");
        CU_ASSERT_TRUE(stage_wait(&stage_notes.started, i, 5000));
        stage_row(&stage, "i", i, "hold", false);
        uint64_t const pushed_us = stage_now_us();
        stage_push(&stage, "i", i);
        CU_ASSERT_TRUE(stage_wait(&stage_notes.fired, i, 5000));
        uint64_t const took_us = atomic_load(&stage_notes.fired_us) - pushed_us;
        sum_us += took_us;
        most_us = took_us > most_us ? took_us : most_us;
        CU_ASSERT_TRUE(stage_drained(&stage, 1000)); /* confirmed, so dropped */
    }
    CHECK_STR("reason", stage_notes.reason, "not needed");
    CU_ASSERT_TRUE(sum_us / RUNS < 100000);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 0, 0), 0);
    worker_host_stop(worker);
    const char *const log = stage_log_end(&stage);
    fprintf(stderr, "\n  push to token: %" PRIu64 " us on average, %" PRIu64 " us at most\n", sum_us / RUNS,
            most_us);
    CHECK_LOG(
        log,
        "instance=i execution=1 activity=hold activity_id=1 try=1 attempt=1 msg=\"token fired: path=push ");
    CHECK_LOG(log, "cancelled_by_push=50 cancelled_by_renewal=0 lease_lost=0 abandoned=0 stolen=0");
    stage_end(&stage);
}

static void test_push_alone_proves_nothing(void)
{
    stage_begin(&stage, "proof");
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule(&stage, "i", 1, "hold", "");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    stage_push(&stage, "i", 1); /* but the row stays */
    CU_ASSERT_TRUE(stage_wait(&stage_notes.fired, 1, 1000));
    CU_ASSERT_EQUAL(stage_queued(&stage), 1);
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 2, STAGE_LEASE_MS * 2)); /* runs again */
    stage_row(&stage, "i", 1, "hold", false);
    stage_push(&stage, "i", 1);
    CU_ASSERT_TRUE(stage_drained(&stage, 2000));
    worker_host_stop(worker);
    stage_end(&stage);
}

static void forge(const struct header *headers, size_t headers_len)
{
    CHECK_OK(connection_publish(stage.connection, "thole.forged.cancel.i.1", headers, headers_len,
                                THOLE_STR("not needed"), &stage.err),
             &stage.err);
}

/* As another NATS client can send them: without a proof, with a guessed one, and with that of another
 * activity, which its worker knows. */
static void test_forged_push(void)
{
    struct tagged_hash const about = cancel_about(0, THOLE_STR("requested"), THOLE_STR("not needed"));
    struct nonce const other = nonce_make(test_nonce_key(), THOLE_STR("i"), 1, 2);
    char proof[24];
    stage_begin(&stage, "forged");
    stage_log_begin(&stage);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule(&stage, "i", 1, "hold", "");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    struct header headers[] = {{"Thole-Activities", THOLE_STR("1")},
                               {"Thole-Kind", THOLE_STR("requested")},
                               {"Thole-Proofs", THOLE_STR("0123456789abcdef")}};
    forge(headers, 2);
    forge(headers, 3);
    snprintf(proof, sizeof proof, "%016" PRIx64, cancel_proof(thole_slice_from(other.text), &about));
    headers[2].value = thole_slice_from(proof);
    forge(headers, 3);
    stage_pause_ms(STAGE_LEASE_MS + 500); /* longer than a lease: it is kept */
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.fired), 0);
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.started), 1);
    stage_row(&stage, "i", 1, "hold", false);
    stage_push(&stage, "i", 1);
    CU_ASSERT_TRUE(stage_wait(&stage_notes.fired, 1, 1000));
    CU_ASSERT_TRUE(stage_drained(&stage, 1000));
    worker_host_stop(worker);
    const char *const log = stage_log_end(&stage);
    CHECK_LOG(log, "a cancel push was ignored: the cancel notice has no proof for each of its activities");
    CHECK_LOG(log, "instance=i execution=1 msg=\"a cancel push was ignored: it is not from an engine");
    CHECK_LOG(log, "unproven=2");
    stage_end(&stage);
}

static void test_renewal(void)
{
    stage_begin(&stage, "renewal");
    stage.options.suppress_push = true;
    stage_log_begin(&stage);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule(&stage, "i", 1, "hold", "");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    stage_pause_ms(STAGE_LEASE_MS + 500); /* kept for longer than one lease */
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.fired), 0);
    stage_row(&stage, "i", 1, "hold", false);
    uint64_t const gone_us = stage_now_us();
    stage_push(&stage, "i", 1);
    CU_ASSERT_TRUE(stage_wait(&stage_notes.fired, 1, 5000));
    uint64_t const took_ms = (atomic_load(&stage_notes.fired_us) - gone_us) / 1000;
    CU_ASSERT_TRUE(took_ms <= STAGE_LEASE_MS / 3 + 300);
    CU_ASSERT_TRUE(stage_drained(&stage, 1000));
    worker_host_stop(worker);
    const char *const log = stage_log_end(&stage);
    fprintf(stderr, "\n  row gone to token, push suppressed: %" PRIu64 " ms\n", took_ms);
    CHECK_LOG(log, "path=renewal");
    CHECK_LOG(log, "cancelled_by_push=0 cancelled_by_renewal=1");
    stage_end(&stage);
}

/* The lease is the queue's: what does not fit it is refused. */
static void test_renew_every(void)
{
    struct worker_host *worker = NULL;
    stage_begin(&stage, "renewevery");
    stage.options.renew_every_ms = STAGE_LEASE_MS / 2 + 1;
    CU_ASSERT_EQUAL(worker_host_start(&stage.options, &stage_program, NULL, &worker, &stage.err),
                    THOLE_INVALID);
    CHECK_LOG(stage.err.text, "--renew-every 1501ms is more than half of the lease of queue default, 3000ms");
    stage.options.renew_every_ms = STAGE_LEASE_MS / 2;
    worker = stage_worker(&stage, &stage_program);
    worker_host_stop(worker);
    stage_end(&stage);
}

static void test_stolen(void)
{
    struct claim claim = {.key = {THOLE_STR("i"), 1, 1, 1}};
    stage_begin(&stage, "stolen");
    stage_log_begin(&stage);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule(&stage, "i", 1, "hold", "");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    stage_end_leases(&stage);
    CHECK_OK(worker_store_claim(stage.pg, THOLE_STR("rival"), NULL, &claim, 1, NULL, &stage.err), &stage.err);
    CU_ASSERT_EQUAL(claim.state, ROW_MINE);
    CU_ASSERT_TRUE(stage_wait(&stage_notes.fired, 1, STAGE_LEASE_MS));
    CHECK_STR("reason", stage_notes.reason, "lease_lost");
    CU_ASSERT_EQUAL(stage_queued(&stage), 1); /* not acknowledged */
    stage_row(&stage, "i", 1, "hold", false);
    CU_ASSERT_TRUE(stage_drained(&stage, STAGE_LEASE_MS * 2)); /* the next delivery finds no row */
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.started), 1);
    worker_host_stop(worker);
    CHECK_LOG(stage_log_end(&stage), "stolen=1");
    stage_end(&stage);
}

static void test_abandoned(void)
{
    stage_begin(&stage, "abandoned");
    stage.options.slots = 1;
    stage.options.grace_ms = 300;
    stage.options.stop_limit_ms = 100;
    stage_log_begin(&stage);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule(&stage, "i", 1, "stubborn", "");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    stage_schedule(&stage, "i", 2, "echo", "next"); /* waits for the only slot */
    stage_row(&stage, "i", 1, "stubborn", false);
    stage_push(&stage, "i", 1);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 5000), 1);
    CHECK_STR("the slot was replaced", stage_last.data, "next");
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.returned), 1);
    CU_ASSERT_TRUE(stage_drained(&stage, 1000));
    stage_schedule(&stage, "i", 3, "stubborn", ""); /* this one outlives the worker */
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 3, 5000));
    worker_host_stop(worker);
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.returned), 1);
    atomic_store(&stage_notes.release, true);
    CU_ASSERT_TRUE(stage_wait(&stage_notes.returned, 3, 5000));
    stage_pause_ms(50); /* until the threads have released what they held */
    CHECK_LOG(stage_log_end(&stage), "abandoned=2");
    stage_end(&stage);
}

static void test_stop_lets_finish(void)
{
    stage_begin(&stage, "finish");
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule(&stage, "i", 1, "slow", "700");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    worker_host_stop(worker);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 1000), 1);
    CHECK_STR("finished", stage_last.data, "ok by attempt 1");
    CU_ASSERT_TRUE(stage_drained(&stage, 1000));
    stage_end(&stage);
}

static void test_stop_hands_back(void)
{
    stage_begin(&stage, "handback");
    stage.options.lease_ms = 30000; /* nothing here waits for it */
    stage.options.stop_limit_ms = 200;
    stage_log_begin(&stage);
    struct worker_host *const first = stage_worker(&stage, &stage_program);
    stage_schedule(&stage, "i", 1, "relay", "");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    uint64_t const from_us = stage_now_us();
    worker_host_stop(first);
    CHECK_STR("reason", stage_notes.reason, "shutdown");
    struct worker_host *const second = stage_worker(&stage, &stage_program);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 10000), 1);
    uint64_t const took_us = stage_now_us() - from_us;
    CHECK_STR("handed back", stage_last.data, "relayed");
    CU_ASSERT_EQUAL(stage_last.attempt, 2);
    CU_ASSERT_TRUE(took_us < 10000000);
    worker_host_stop(second);
    CHECK_LOG(stage_log_end(&stage), "handed_back=1");
    stage_end(&stage);
}

/* The first answer counts for that long. */
enum { BELIEVED_MS = 6200 };

static void test_unknown_activity(void)
{
    stage_begin(&stage, "unknown");
    stage_log_begin(&stage);
    struct worker_host *const first = stage_worker(&stage, &stage_program);
    stage_schedule(&stage, "shelf", 1, "elsewhere", "x");
    stage_schedule(&stage, "shelf", 2, "elsewhere", "x");
    CU_ASSERT_TRUE(stage_drained(&stage, 10000)); /* no worker knows it: only an engine queues it again */
    CU_ASSERT_EQUAL(stage_results(&stage, "shelf", 1, 200), 0);
    struct worker_host *const second = stage_worker(&stage, &stage_other_program);
    stage_pause_ms(BELIEVED_MS);
    stage_schedule(&stage, "i", 1, "elsewhere", "x");
    stage_schedule(&stage, "i", 2, "elsewhere", "x");
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 2, STAGE_LEASE_MS * 3), 2);
    worker_host_stop(first);
    worker_host_stop(second);
    const char *const log = stage_log_end(&stage);
    const char *const warned = strstr(log, "activity elsewhere is queued");
    CU_ASSERT_PTR_NOT_NULL(warned);
    CU_ASSERT_PTR_NULL(warned != NULL ? strstr(warned + 1, "activity elsewhere is queued") : NULL); /* once */
    stage_end(&stage);
}

static void test_postgres_killed(void)
{
    stage_begin(&stage, "pgkill");
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule(&stage, "i", 1, "slow", "1500");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    stage_pause_ms(300);
    server_kill9(&stage.postgres);
    stage_pause_ms(300);
    CHECK_OK(server_restart(&stage.postgres, &stage.err), &stage.err);
    CU_ASSERT_TRUE(stage_results(&stage, "i", 1, 20000) >= 1);
    CU_ASSERT_TRUE(stage_drained(&stage, 10000));
    worker_host_stop(worker);
    stage_end(&stage);
}

/* Away when the handler returns, and for longer than the lease: nothing is lost, and it does not run again.
 */
static void test_postgres_away(void)
{
    stage_begin(&stage, "pgaway");
    stage_log_begin(&stage);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule(&stage, "i", 1, "slow", "500");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    server_kill9(&stage.postgres);
    stage_pause_ms(STAGE_LEASE_MS + 1000);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 0, 0), 0);
    CHECK_OK(server_restart(&stage.postgres, &stage.err), &stage.err);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 20000), 1);
    CU_ASSERT_TRUE(stage_drained(&stage, 10000));
    worker_host_stop(worker);
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.started), 1);
    CHECK_LOG(stage_log_end(&stage), "lease_lost=0");
    stage_end(&stage);
}

static void test_nats_killed(void)
{
    stage_begin(&stage, "natskill");
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule(&stage, "i", 1, "slow", "1500");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    stage_pause_ms(300);
    server_kill9(&stage.nats);
    stage_pause_ms(300);
    CHECK_OK(server_restart(&stage.nats, &stage.err), &stage.err);
    CU_ASSERT_TRUE(stage_results(&stage, "i", 1, 20000) >= 1);
    CU_ASSERT_TRUE(
        stage_drained(&stage, 20000)); /* no ack after a reconnect: the next delivery finds no row */
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 0, 0), 1);
    stage_schedule(&stage, "i", 2, "echo", "after");
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 2, 20000), 2);
    worker_host_stop(worker);
    stage_end(&stage);
}

/* Both servers die again and again while activities come and go: each gets its result. */
static void test_storm(void)
{
    enum { N = 60, ROUNDS = 3 };
    char instance[16];
    stage_begin(&stage, "storm");
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT, "test");
    stage.options.slots = 6;
    for (unsigned i = 0; i < N; i++) {
        snprintf(instance, sizeof instance, "i%u", i);
        stage_schedule(&stage, instance, 1, "slow", "300");
    }
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    for (unsigned round = 0; round < ROUNDS; round++) {
        stage_pause_ms(333);
        server_kill9(&stage.nats);
        CHECK_OK(server_restart(&stage.nats, &stage.err), &stage.err);
        stage_pause_ms(444);
        server_kill9(&stage.postgres);
        CHECK_OK(server_restart(&stage.postgres, &stage.err), &stage.err);
        stage_open_again(&stage);
    }
    for (unsigned i = 0; i < N; i++) {
        snprintf(instance, sizeof instance, "i%u", i);
        CU_ASSERT_TRUE(stage_has_result(&stage, instance, 30000));
    }
    CU_ASSERT_TRUE(stage_drained(&stage, 20000));
    fprintf(stderr, "\n  storm: %d activities started %u times\n", N, atomic_load(&stage_notes.started));
    worker_host_stop(worker);
    stage_end(&stage);
}

static atomic_uint_least64_t result_us;
static atomic_uint results_seen;

static void on_result(void *arg, const struct delivery *delivery)
{
    (void)arg, (void)delivery;
    atomic_store(&result_us, stage_now_us());
    atomic_fetch_add(&results_seen, 1);
}

static int by_value(const void *a, const void *b)
{
    uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* From the publish of the message to the result at the inbox. */
static void test_latency(void)
{
    enum { RUNS = 200 };
    uint64_t took_us[RUNS];
    struct subscription *subscription = NULL;
    stage_begin(&stage, "latency");
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, "test");
    atomic_store(&results_seen, 0);
    CHECK_OK(connection_subscribe(stage.connection, "thole.latency.in.>", on_result, NULL, &subscription,
                                  &stage.err),
             &stage.err);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    for (unsigned i = 0; i < RUNS; i++) {
        stage_row(&stage, "i", i + 1, "echo", true);
        uint64_t const from_us = stage_now_us();
        stage_message(&stage, "i", i + 1, "echo", "hello");
        CU_ASSERT_TRUE(stage_wait(&results_seen, i + 1, 5000));
        took_us[i] = atomic_load(&result_us) - from_us;
    }
    qsort(took_us, RUNS, sizeof took_us[0], by_value);
    fprintf(stderr, "\n  message to result, one at a time: p50 %" PRIu64 " us, p99 %" PRIu64 " us\n",
            took_us[RUNS / 2], took_us[RUNS * 99 / 100]);
    worker_host_stop(worker);
    subscription_close(subscription);
    stage_end(&stage);
}

static void test_throughput(void)
{
    enum { N = 2000 };
    stage_begin(&stage, "many");
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, "test");
    stage.options.slots = 16;
    for (uint64_t i = 1; i <= N; i++)
        stage_schedule(&stage, "i", i, "echo", "hello");
    uint64_t const from_us = stage_now_us();
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, N, 60000));
    CU_ASSERT_TRUE(stage_drained(&stage, 10000));
    uint64_t const took_us = stage_now_us() - from_us;
    CU_ASSERT_EQUAL(stage_results(&stage, "i", N, 10000), N);
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.started), N);
    fprintf(stderr, "\n  %d activities on 16 slots: %" PRIu64 " a second\n", N,
            N * UINT64_C(1000000) / took_us);
    worker_host_stop(worker);
    stage_end(&stage);
}

static const struct thole_test tests[] = {
    {"runs once", test_runs_once},
    {"failures", test_failures},
    {"cancelled by push", test_push},
    {"a push alone proves nothing", test_push_alone_proves_nothing},
    {"a forged push", test_forged_push},
    {"push suppressed: cancelled by renewal", test_renewal},
    {"taken over by another", test_stolen},
    {"renewals that do not fit the lease", test_renew_every},
    {"a handler that ignores its token", test_abandoned},
    {"stop lets activities finish", test_stop_lets_finish},
    {"stop hands back", test_stop_hands_back},
    {"an activity that this program does not know", test_unknown_activity},
    {"kill -9 of Postgres", test_postgres_killed},
    {"Postgres away for longer than the lease", test_postgres_away},
    {"kill -9 of nats-server", test_nats_killed},
    {"storm", test_storm},
    {"latency", test_latency},
    {"many", test_throughput},
};

/* An argument: only tests with that in their names. */
int main(int argc, char **argv)
{
    struct thole_test chosen[ARRAY_LEN(tests)];
    size_t n = 0;
    skip_without_nats();
    skip_without_postgres();
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        if (argc < 2 || strstr(tests[i].name, argv[1]) != NULL)
            chosen[n++] = tests[i];
    stage_open(&stage);
    int const result = thole_run_suite("worker_host", chosen, n);
    stage_close(&stage);
    return result;
}
