/* The registry: what is counted is what is shown, from all threads; loops that are stuck; what makes a
 * process ready. */
#include "metrics.h"
#include "shard_request.h"
#include "thole_cunit.h"
#include "worker.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 256 * 1024 };

static const char *const activities[] = {"charge", "say \"hi\"\\"};
static const struct metrics_pair info[] = {{"version", "1.2"}, {"namespace", "de\"fault"}};

static struct metrics *registry(unsigned roles)
{
    return metrics_create(&(struct metrics_options){.roles = roles,
                                                    .info = info,
                                                    .info_len = ARRAY_LEN(info),
                                                    .activities = activities,
                                                    .activities_len = ARRAY_LEN(activities)});
}

/* The lines of the text that begin with @p name, or are about it. */
static const char *lines_of(const struct metrics *metrics, const char *name)
{
    static char found[TEXT_MAX];
    struct buf text;
    size_t len = 0;
    buf_init(&text, TEXT_MAX);
    metrics_text(metrics, 5000, &text);
    CU_ASSERT_EQUAL_FATAL(buf_status(&text), THOLE_OK);
    for (const char *line = buf_cstr(&text), *end; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        const char *const at = strncmp(line, "# ", 2) == 0 ? line + 7 : line;
        if (strncmp(at, name, strlen(name)) != 0)
            continue;
        memcpy(found + len, line, (size_t)(end - line) + 1);
        len += (size_t)(end - line) + 1;
    }
    found[len] = '\0';
    buf_release(&text);
    return found;
}

static void test_text(void)
{
    struct metrics *const metrics = registry(METRIC_WORKER);
    struct metric_cells *const cells = metrics_cells(metrics), *const others = metrics_cells(metrics);
    metric_add(cells, METRIC_WORKER_RENEWALS, ROWS_MINE, 2);
    metric_add(others, METRIC_WORKER_RENEWALS, ROWS_MINE, 40);
    metric_add(others, METRIC_WORKER_RENEWALS, ROWS_UNANSWERED, 1);
    metric_set(cells, METRIC_WORKER_HELD, 0, 7);
    metric_set(cells, METRIC_WORKER_HELD, 0, 5);
    CHECK_STR("info", lines_of(metrics, "thole_build_info"),
              "# HELP thole_build_info 1; its labels say what runs\n"
              "# TYPE thole_build_info gauge\n"
              "thole_build_info{version=\"1.2\",namespace=\"de\\\"fault\"} 1\n");
    CHECK_STR("labels", lines_of(metrics, "thole_worker_renewals_total"),
              "# HELP thole_worker_renewals_total leases that were to be renewed; gone: it was cancelled or "
              "completed\n"
              "# TYPE thole_worker_renewals_total counter\n"
              "thole_worker_renewals_total{outcome=\"gone\"} 0\n"
              "thole_worker_renewals_total{outcome=\"renewed\"} 42\n"
              "thole_worker_renewals_total{outcome=\"stolen\"} 0\n"
              "thole_worker_renewals_total{outcome=\"unknown\"} 0\n"
              "thole_worker_renewals_total{outcome=\"unanswered\"} 1\n");
    CHECK_STR("a gauge is set", strstr(lines_of(metrics, "thole_worker_held"), "gauge"),
              "gauge\nthole_worker_held 5\n");
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_WORKER_RENEWALS, ROWS_MINE), 42);
    metrics_destroy(metrics);
}

static size_t lines_in(const char *text, const char *words)
{
    size_t n = 0;
    for (const char *at = strstr(text, words); at != NULL; at = strstr(at + 1, words))
        n++;
    return n;
}

/* Two labels, of which one has names that come as they are met: few, whatever comes. */
static void test_named(void)
{
    struct metrics *const metrics = registry(METRIC_ENGINE);
    struct metric_cells *const cells = metrics_cells(metrics);
    char name[32];
    enum { REASONS = 9 };
    CHECK_STR("none yet", strstr(lines_of(metrics, "thole_engine_standing_instances"), "gauge"), "gauge\n");
    metric_set(cells, METRIC_ENGINE_STANDING, metrics_named(cells, METRIC_ENGINE_STANDING, "checkout", 2), 7);
    metric_set(cells, METRIC_ENGINE_STANDING, metrics_named(cells, METRIC_ENGINE_STANDING, "checkout", 6), 1);
    const char *text = lines_of(metrics, "thole_engine_standing_instances");
    CU_ASSERT_PTR_NOT_NULL(strstr(
        text, "thole_engine_standing_instances{orchestration=\"checkout\",reason=\"divergence\"} 7\n"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "thole_engine_standing_instances{orchestration=\"checkout\",reason=\"paused\"} 1\n"));
    CU_ASSERT_EQUAL(lines_in(text, "orchestration="), REASONS);
    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof name, "name-%d", i);
        size_t const at = metrics_named(cells, METRIC_ENGINE_STANDING, name, 1);
        CU_ASSERT_EQUAL(at, metrics_named(cells, METRIC_ENGINE_STANDING, name, 1));
        CU_ASSERT((i < METRIC_NAMES_MAX - 2) == (at < (METRIC_NAMES_MAX - 1) * REASONS));
    }
    text = lines_of(metrics, "thole_engine_standing_instances");
    CU_ASSERT_EQUAL(lines_in(text, "orchestration="), METRIC_NAMES_MAX * REASONS);
    CU_ASSERT_EQUAL(lines_in(text, "orchestration=\"<other>\""), REASONS);
    CU_ASSERT_EQUAL(metrics_named(NULL, METRIC_ENGINE_STANDING, "x", 1), 0); /* nothing is counted */
    metrics_destroy(metrics);
}

static void test_histogram(void)
{
    struct metrics *const metrics = registry(METRIC_WORKER);
    struct metric_cells *const cells = metrics_cells(metrics), *const others = metrics_cells(metrics);
    metric_observe(cells, METRIC_WORKER_CANCELLATION_GRACE, 0, 500); /* a bound belongs to its bucket */
    metric_observe(cells, METRIC_WORKER_CANCELLATION_GRACE, 0, 501);
    metric_observe(others, METRIC_WORKER_CANCELLATION_GRACE, 0, 10 * 1000 * 1000 + 1);
    CHECK_STR("buckets are cumulative",
              strstr(lines_of(metrics, "thole_worker_cancellation_grace_seconds"), "histogram"),
              "histogram\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"0.000500\"} 1\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"0.001000\"} 2\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"0.002000\"} 2\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"0.005000\"} 2\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"0.010000\"} 2\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"0.025000\"} 2\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"0.050000\"} 2\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"0.100000\"} 2\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"0.250000\"} 2\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"0.500000\"} 2\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"1.000000\"} 2\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"5.000000\"} 2\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"10.000000\"} 2\n"
              "thole_worker_cancellation_grace_seconds_bucket{le=\"+Inf\"} 3\n"
              "thole_worker_cancellation_grace_seconds_sum 10.001002\n"
              "thole_worker_cancellation_grace_seconds_count 3\n");
    metric_observe(cells, METRIC_WORKER_ACTIVITY_DURATION, 1, 2000);
    const char *const durations = lines_of(metrics, "thole_worker_activity_duration_seconds");
    CU_ASSERT_PTR_NOT_NULL(strstr(durations, "thole_worker_activity_duration_seconds_bucket{activity=\"say "
                                             "\\\"hi\\\"\\\\\",le=\"0.010000\"} 1\n"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(durations, "thole_worker_activity_duration_seconds_count{activity=\"charge\"} 0\n"));
    metrics_destroy(metrics);
}

/* A process shows what its roles count; the rest costs nothing and asks nobody to look at what runs. */
static void test_roles(void)
{
    struct metrics *const engine = registry(METRIC_ENGINE);
    struct metric_cells *const cells = metrics_cells(engine);
    metric_add(cells, METRIC_WORKER_RENEWALS, ROWS_MINE, 2);
    metric_observe(cells, METRIC_WORKER_CANCELLATION_GRACE, 0, 1);
    CHECK_STR("of another role", lines_of(engine, "thole_worker"), "");
    CU_ASSERT_EQUAL(metrics_value(engine, METRIC_WORKER_RENEWALS, ROWS_MINE), 0);
    metrics_destroy(engine);
    CU_ASSERT_PTR_NULL(metrics_cells(NULL));
    CU_ASSERT_PTR_NULL(metrics_pulse(NULL, "loop", 1));
    metric_add(NULL, METRIC_WORKER_RENEWALS, ROWS_MINE, 2);
    metric_set(NULL, METRIC_WORKER_HELD, 0, 2);
    metric_observe(NULL, METRIC_WORKER_CANCELLATION_GRACE, 0, 1);
    pulse_begins(NULL, 1);
    pulse_rests(NULL);
    metrics_destroy(NULL);
}

/* Names and helps as promtool wants them, whatever is added to the table. */
static void test_rules(void)
{
    static const char *const units[] = {"_milliseconds", "_minutes", "_hours",     "_days",
                                        "_kilobytes",    "_kib",     "_megabytes", "_percent"};
    for (int m = 0; m < METRICS; m++) {
        const struct metric_rule *const rule = &metric_rules[m];
        CU_ASSERT_PTR_NOT_NULL_FATAL(rule->name);
        size_t const len = strlen(rule->name);
        bool const total = len > 6 && strcmp(rule->name + len - 6, "_total") == 0;
        bool const seconds = strstr(rule->name, "_seconds") != NULL;
        bool const good =
            strncmp(rule->name, "thole_", 6) == 0 &&
            strspn(rule->name, "abcdefghijklmnopqrstuvwxyz_") == len &&
            total == (rule->kind == METRIC_COUNTER) &&
            seconds == (rule->unit == METRIC_MILLISECONDS || rule->unit == METRIC_MICROSECONDS) &&
            (rule->bounds != NULL) == (rule->kind == METRIC_HISTOGRAM) && rule->roles != 0 &&
            rule->help != NULL && strpbrk(rule->help, "\n|\\") == NULL &&
            (rule->join == METRIC_SUM || rule->kind == METRIC_GAUGE);
        CHECK_STR(rule->name, good ? "good" : "bad", "good");
        for (size_t i = 0; i < ARRAY_LEN(units); i++) /* those that have a base unit */
            CU_ASSERT_PTR_NULL(strstr(rule->name, units[i]));
        for (size_t i = 1; rule->bounds != NULL && rule->bounds[i] != 0; i++)
            CU_ASSERT_TRUE(rule->bounds[i - 1] < rule->bounds[i]);
        for (int k = 0; k < m; k++)
            CU_ASSERT_STRING_NOT_EQUAL(metric_rules[k].name, rule->name);
    }
}

/* Worker and engine count by the numbers of their own enums. */
static void test_values(void)
{
    const char *const *const paths = metric_rules[METRIC_WORKER_TOKENS].values;
    const char *const *const ends = metric_rules[METRIC_WORKER_ENDED].values;
    for (int i = 0; i <= WORKER_PATH_TIMEOUT; i++)
        CHECK_STR("path", paths[i], worker_path_name((enum worker_path)i));
    CU_ASSERT_PTR_NULL(paths[WORKER_PATH_TIMEOUT + 1]);
    for (int i = 0; i <= WORKER_END_UNSERVED; i++)
        CHECK_STR("end", ends[i], worker_end_name((enum worker_end)i));
    CU_ASSERT_PTR_NULL(ends[WORKER_END_UNSERVED + 1]);
    const char *const *const events = metric_rules[METRIC_ENGINE_EVENTS].values;
    for (int i = 0; i < ENGINE_LINES; i++)
        CHECK_STR("event", events[i], engine_lines[i].name);
    CU_ASSERT_PTR_NULL(events[ENGINE_LINES]);
    const char *const *const requests = metric_rules[METRIC_ENGINE_REQUESTS].values;
    CHECK_STR("first request", requests[REQ_APPEND], "append");
    CHECK_STR("a request", requests[REQ_PUBLISH_WORK], "publish_work");
    CHECK_STR("last request", requests[REQ_STORE_APPLY], "apply");
    CU_ASSERT_PTR_NULL(requests[REQ_KINDS]);
}

/* ---- threads ---- */

enum { THREADS = 4, EACH = 200000 };

static void *count(void *arg)
{
    struct metric_cells *const cells = metrics_cells(arg);
    for (int i = 0; i < EACH; i++) {
        metric_add(cells, METRIC_WORKER_DELIVERED, 0, 1);
        metric_observe(cells, METRIC_WORKER_CANCELLATION_GRACE, 0, (uint64_t)i % 2000);
    }
    return NULL;
}

/* Nothing is lost, and a reader never sees a counter fall. */
static void test_threads(void)
{
    struct metrics *const metrics = registry(METRIC_WORKER);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, count, metrics), 0);
    uint64_t fell = 0;
    for (uint64_t last = 0, now = 0; now < (uint64_t)THREADS * EACH; last = now) {
        now = metrics_value(metrics, METRIC_WORKER_DELIVERED, 0);
        fell += now < last;
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    CU_ASSERT_EQUAL(fell, 0);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_WORKER_DELIVERED, 0), (uint64_t)THREADS * EACH);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(lines_of(metrics, "thole_worker_cancellation_grace_seconds_count"), " 800000\n"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(lines_of(metrics, "thole_worker_cancellation_grace_seconds_sum"), " 799.600000\n"));
    metrics_destroy(metrics);
}

/* ---- is it live, is it ready? ---- */

static const char *live(const struct metrics *metrics, uint64_t now_ms)
{
    static char said[4096];
    struct buf text;
    buf_init(&text, sizeof said - 8);
    bool const is = metrics_live(metrics, now_ms, &text);
    (void)snprintf(said, sizeof said, "%s %s", is ? "yes" : "no", buf_cstr(&text));
    buf_release(&text);
    return said;
}

static void test_live(void)
{
    struct metrics *const metrics = registry(METRIC_ENGINE | METRIC_WORKER);
    CHECK_STR("without a loop", live(metrics, 1), "yes ok\n");
    struct pulse *const shard = metrics_pulse(metrics, "shard", 1000);
    struct pulse *const worker = metrics_pulse(metrics, "worker", 300);
    struct pulse *const endless = metrics_pulse(metrics, "endless", 0);
    CHECK_STR("they rest", live(metrics, 1000 * 1000), "yes ok\n");
    pulse_begins(shard, 100);
    pulse_begins(worker, 200);
    pulse_begins(endless, 50);
    CHECK_STR("they may", live(metrics, 500), "yes ok\n");
    CHECK_STR("busy", strstr(lines_of(metrics, "thole_loop_busy_seconds"), "gauge"),
              "gauge\nthole_loop_busy_seconds 4.950\n");
    CHECK_STR("one is stuck", live(metrics, 501),
              "no loop worker is stuck: busy for 301 ms, its limit is 300 ms\n");
    CHECK_STR("two are", live(metrics, 1101),
              "no loop worker is stuck: busy for 901 ms, its limit is 300 ms\n"
              "loop shard is stuck: busy for 1001 ms, its limit is 1000 ms\n");
    CHECK_STR("a clock that was read earlier", live(metrics, 10), "yes ok\n");
    pulse_rests(shard);
    pulse_begins(worker, 1101);
    CHECK_STR("it moves", live(metrics, 1102), "yes ok\n");
    metrics_destroy(metrics);
}

static const char *ready(const struct metrics *metrics)
{
    static char said[4096];
    struct buf text;
    buf_init(&text, sizeof said - 8);
    bool const is = metrics_ready(metrics, &text);
    (void)snprintf(said, sizeof said, "%s\n%s", is ? "yes" : "no", buf_cstr(&text));
    buf_release(&text);
    return said;
}

static void test_ready(void)
{
    struct metrics *const metrics = registry(METRIC_WORKER);
    struct metric_cells *const cells = metrics_cells(metrics), *const rows = metrics_cells(metrics);
    CHECK_STR("it starts", ready(metrics),
              "no\nworker: starting, or asked to stop\nNATS: not connected\nPostgres: not connected\n"
              "queue: gives no work; the log says why\n");
    metric_set(cells, METRIC_SERVING, SERVING_WORKER, 1);
    metric_set(cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_UP, 1);
    metric_set(cells, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_UP, 1);
    metric_set(cells, METRIC_WORKER_QUEUE_OK, 0, 1);
    CHECK_STR("it serves", ready(metrics), "yes\nworker: ok\nNATS: ok\nPostgres: ok\nqueue: ok\n");
    metric_set(rows, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_DOWN, 1);
    CHECK_STR("one of two is down", ready(metrics),
              "no\nworker: ok\nNATS: ok\nPostgres: not connected\nqueue: ok\n");
    metric_set(rows, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_DOWN, 0);
    metric_set(cells, METRIC_WORKER_QUEUE_OK, 0, 0);
    CHECK_STR("no work", ready(metrics),
              "no\nworker: ok\nNATS: ok\nPostgres: ok\nqueue: gives no work; the log says why\n");
    metric_set(cells, METRIC_WORKER_QUEUE_OK, 0, 1);
    metric_set(cells, METRIC_SERVING, SERVING_WORKER, 0);
    CHECK_STR("it stops", ready(metrics),
              "no\nworker: starting, or asked to stop\nNATS: ok\nPostgres: ok\nqueue: ok\n");
    CHECK_STR("it lives meanwhile", live(metrics, 1), "yes ok\n");
    metrics_destroy(metrics);
}

static void test_engine_ready(void)
{
    struct metrics *const metrics = registry(METRIC_ENGINE);
    struct metric_cells *const cells = metrics_cells(metrics), *const other = metrics_cells(metrics);
    metric_set(cells, METRIC_SERVING, SERVING_ENGINE, 1);
    metric_set(cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_UP, 1);
    metric_set(cells, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_UP, 2);
    metric_set(cells, METRIC_ENGINE_PARTITIONS_WANTED, 0, 4);
    metric_set(cells, METRIC_ENGINE_PARTITIONS, PARTITIONS_OPEN, 2);
    metric_set(other, METRIC_ENGINE_PARTITIONS, PARTITIONS_OPEN, 1);
    metric_set(other, METRIC_ENGINE_PARTITIONS, PARTITIONS_OPENING, 1);
    CHECK_STR(
        "it opens", ready(metrics),
        "no\nengine: ok\nNATS: ok\nPostgres: ok\nmembership: not joined, or its heartbeat is not stored\n"
        "partitions: 3 of 4 are open\n");
    metric_set(other, METRIC_ENGINE_JOINED, 0, 1);
    CHECK_STR("it has joined", ready(metrics),
              "no\nengine: ok\nNATS: ok\nPostgres: ok\nmembership: ok\npartitions: 3 of 4 are open\n");
    metric_set(other, METRIC_ENGINE_PARTITIONS, PARTITIONS_OPEN, 2);
    CHECK_STR("all are open", ready(metrics),
              "yes\nengine: ok\nNATS: ok\nPostgres: ok\nmembership: ok\npartitions: ok\n");
    metric_set(other, METRIC_ENGINE_JOINED, 0, 0);
    CU_ASSERT_EQUAL(strncmp(ready(metrics), "no\n", 3), 0);
    metric_set(cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_UP, 0);
    metric_set(cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_DOWN, 1);
    metric_set(cells, METRIC_ENGINE_PARTITIONS_WANTED, 0, 0);
    metric_set(cells, METRIC_ENGINE_PARTITIONS, PARTITIONS_OPEN, 0);
    metric_set(other, METRIC_ENGINE_PARTITIONS, PARTITIONS_OPEN, 0);
    CHECK_STR(
        "away for so long that it should own none", ready(metrics),
        "no\nengine: ok\nNATS: not connected\nPostgres: ok\nmembership: not joined, or its heartbeat is "
        "not stored\npartitions: 0 of 0 are open\n");
    metrics_destroy(metrics);
}

/* A thread's counts outlive it, its gauges do not. */
static void test_given_back(void)
{
    struct metrics *const metrics = registry(METRIC_GATEWAY);
    struct metric_cells *const first = metrics_cells(metrics), *const shared = metrics_cells(metrics);
    struct pulse *const pulse = metrics_pulse(metrics, "worker", 100);
    metric_set(first, METRIC_WORKER_SLOTS, 0, 7);
    metric_add(first, METRIC_WORKER_CLAIMS, CLAIMS_CLAIMED, 3);
    metric_count(shared, METRIC_GATEWAY_REQUESTS, 0, 2);
    metric_observe(first, METRIC_WORKER_ACTIVITY_DURATION, 99, 1); /* a gateway does not show it */
    pulse_begins(pulse, 1);
    metrics_return_cells(first);
    metrics_return_pulse(pulse);
    metrics_return_cells(NULL);
    metrics_return_pulse(NULL);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_WORKER_SLOTS, 0), 0);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_WORKER_CLAIMS, CLAIMS_CLAIMED), 3);
    struct buf text;
    buf_init(&text, 4096);
    CU_ASSERT_TRUE(metrics_live(metrics, 1000, &text));
    buf_release(&text);
    CU_ASSERT_PTR_EQUAL(metrics_cells(metrics), first);
    CU_ASSERT_PTR_NOT_EQUAL(metrics_cells(metrics), first);
    CU_ASSERT_PTR_NOT_EQUAL(metrics_pulse(metrics, "engine", 100), pulse);
    CU_ASSERT_PTR_EQUAL(metrics_pulse(metrics, "worker", 100), pulse);
    CU_ASSERT_PTR_NOT_EQUAL(metrics_pulse(metrics, "worker", 100), pulse);
    metric_add(first, METRIC_WORKER_CLAIMS, CLAIMS_CLAIMED, 1);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_WORKER_CLAIMS, CLAIMS_CLAIMED), 4);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_GATEWAY_REQUESTS, 0), 2);
    metrics_destroy(metrics);
}

/* A gateway has connections to Postgres only while it has sessions. */
static void test_gateway_ready(void)
{
    struct metrics *const metrics = registry(METRIC_GATEWAY);
    struct metric_cells *const cells = metrics_cells(metrics);
    CHECK_STR("it starts", ready(metrics),
              "no\ngateway: starting, or asked to stop\nNATS: not connected\nPostgres: ok\n");
    metric_set(cells, METRIC_SERVING, SERVING_GATEWAY, 1);
    metric_set(cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_UP, 1);
    CHECK_STR("it serves", ready(metrics), "yes\ngateway: ok\nNATS: ok\nPostgres: ok\n");
    metric_set(cells, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_DOWN, 1);
    CHECK_STR("a session has lost Postgres", ready(metrics),
              "no\ngateway: ok\nNATS: ok\nPostgres: not connected\n");
    metrics_destroy(metrics);
}

static const struct thole_test tests[] = {
    {"text", test_text},
    {"two labels", test_named},
    {"histograms", test_histogram},
    {"roles", test_roles},
    {"the table", test_rules},
    {"values of labels", test_values},
    {"threads", test_threads},
    {"live", test_live},
    {"ready", test_ready},
    {"an engine that is ready", test_engine_ready},
    {"a gateway that is ready", test_gateway_ready},
    {"cells that are given back", test_given_back},
};
THOLE_TEST_MAIN("metrics", tests)
