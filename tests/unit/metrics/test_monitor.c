/* The HTTP server: what it answers, and that clients that send nonsense, too much, or nothing do not keep
 * others out. */
#include "clock.h"
#include "listen_address.h"
#include "monitor.h"
#include "thole_cunit.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 10000, ANSWER_MAX = 256 * 1024 };

struct stage {
    struct metrics *metrics;
    struct metric_cells *cells;
    struct pulse *pulse;
    struct monitor *monitor;
    struct sockaddr_storage address; /* with the port */
};

static struct stage open_stage(void)
{
    struct stage stage = {.monitor = NULL};
    struct sockaddr_storage any;
    stage.metrics = metrics_create(&(struct metrics_options){.roles = METRIC_WORKER});
    stage.cells = metrics_cells(stage.metrics);
    stage.pulse = metrics_pulse(stage.metrics, "loop", 60000);
    CU_ASSERT_EQUAL_FATAL(listen_address_parse("0", &any, NULL), THOLE_OK);
    CU_ASSERT_EQUAL_FATAL(monitor_start(&any, stage.metrics, &stage.monitor, NULL), THOLE_OK);
    CU_ASSERT_EQUAL_FATAL(listen_address_parse(monitor_address(stage.monitor), &stage.address, NULL),
                          THOLE_OK);
    return stage;
}

static void close_stage(struct stage *stage)
{
    monitor_stop(stage->monitor);
    metrics_destroy(stage->metrics);
}

static int dial(const struct stage *stage)
{
    int const fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(connect(fd, (const struct sockaddr *)&stage->address, sizeof(struct sockaddr)), 0);
    return fd;
}

static void send_text(int fd, const char *text, size_t len)
{
    while (len > 0) { /* the server may have closed */
        ssize_t const n = send(fd, text, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

/* Until the server closes; NULL: it does not. */
static const char *hear(int fd)
{
    static char answer[ANSWER_MAX];
    size_t len = 0;
    for (;;) {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        if (poll(&in, 1, WAIT_MS) <= 0)
            return NULL;
        ssize_t const n = recv(fd, answer + len, sizeof answer - 1 - len, 0);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    answer[len] = '\0';
    return answer;
}

static const char *ask(const struct stage *stage, const char *request)
{
    int const fd = dial(stage);
    send_text(fd, request, strlen(request));
    const char *const answer = hear(fd);
    (void)close(fd);
    return answer == NULL ? "no end" : answer;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

/* "200 the body" */
static const char *short_answer(const char *answer)
{
    static char text[ANSWER_MAX];
    const char *const body = strstr(answer, "\r\n\r\n");
    if (strncmp(answer, "HTTP/1.", 7) != 0 || body == NULL)
        return answer;
    (void)snprintf(text, sizeof text, "%.3s %s", answer + 9, body + 4);
    return text;
}

static void test_answers(void)
{
    struct stage stage = open_stage();
    metric_set(stage.cells, METRIC_WORKER_HELD, 0, 17);
    CHECK_STR("live", short_answer(ask(&stage, GET("/healthz"))), "200 ok\n");
    CHECK_STR("not ready", short_answer(ask(&stage, GET("/readyz"))),
              "503 worker: starting, or asked to stop\nNATS: not connected\nPostgres: not connected\n"
              "queue: gives no work; the log says why\n");
    metric_set(stage.cells, METRIC_SERVING, SERVING_WORKER, 1);
    metric_set(stage.cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_UP, 1);
    metric_set(stage.cells, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_UP, 2);
    metric_set(stage.cells, METRIC_WORKER_QUEUE_OK, 0, 1);
    CHECK_STR("ready", short_answer(ask(&stage, GET("/readyz"))),
              "200 worker: ok\nNATS: ok\nPostgres: ok\nqueue: ok\n");
    const char *const metrics = ask(&stage, GET("/metrics"));
    CU_ASSERT_PTR_NOT_NULL(strstr(metrics, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(metrics, "\nthole_worker_held 17\n"));
    pulse_begins(stage.pulse, 1);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(short_answer(ask(&stage, GET("/healthz"))), "503 loop loop is stuck: busy for "));
    CHECK_STR("elsewhere", short_answer(ask(&stage, GET("/"))),
              "404 there are /healthz, /readyz and /metrics\n");
    CHECK_STR("a path above", short_answer(ask(&stage, GET("/../etc/passwd"))),
              "404 there are /healthz, /readyz and /metrics\n");
    CHECK_STR("a head has no body", short_answer(ask(&stage, "HEAD /metrics HTTP/1.0\r\n\r\n")), "200 ");
    close_stage(&stage);
}

static void test_nonsense(void)
{
    static const struct {
        const char *request, *want; /* the first characters */
    } rows[] = {
        {"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "405 only GET and HEAD\n"},
        {"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", "405 only GET and HEAD\n"},
        /* nobody waits for a body that never comes */
        {"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", "405 only GET and HEAD\n"},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
         "405 only GET and HEAD\n"},
        {"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n", "200 ok\n"},
        {"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400"},
        {"GET /healthz HTTP/9.9\r\n\r\n", "505"},
        {"\x16\x03\x01\x02\x01\x01\xfc\x03\x03\r\n\r\n", ""},
    };
    struct stage stage = open_stage();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char got[64];
        (void)snprintf(got, sizeof got, "%.*s", (int)strlen(rows[i].want),
                       short_answer(ask(&stage, rows[i].request)));
        CHECK_STR(rows[i].request, got, rows[i].want);
    }
    CHECK_STR("afterwards", short_answer(ask(&stage, GET("/healthz"))), "200 ok\n");
    close_stage(&stage);
}

/* A request line, and headers, beyond the memory of a connection. */
static void test_too_much(void)
{
    static const char *const begins[] = {"GET /", "GET / HTTP/1.1\r\nHost: x\r\nX: "};
    static char junk[MONITOR_REQUEST_BYTES * 4];
    struct stage stage = open_stage();
    memset(junk, 'a', sizeof junk);
    for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
        int const fd = dial(&stage);
        send_text(fd, begins[i], strlen(begins[i]));
        send_text(fd, junk, sizeof junk);
        const char *const answer = hear(fd);
        CU_ASSERT_PTR_NOT_NULL(answer);
        CU_ASSERT_TRUE(answer == NULL || answer[0] == '\0' || strncmp(short_answer(answer), "4", 1) == 0);
        (void)close(fd);
    }
    CHECK_STR("afterwards", short_answer(ask(&stage, GET("/healthz"))), "200 ok\n");
    close_stage(&stage);
}

/* Far more clients than there are places, which begin a request and wait: a probe is answered at once, each
 * time. */
static void test_slow_clients(void)
{
    enum { SLOW = MONITOR_CONNECTIONS_MAX * 4 };
    struct stage stage = open_stage();
    int slow[SLOW];
    for (size_t i = 0; i < SLOW; i++) {
        slow[i] = dial(&stage);
        send_text(slow[i], "GET /metr", 9);
        if (i % 8 == 0) {
            uint64_t const began = clock_monotonic_ms();
            CHECK_STR("a probe", short_answer(ask(&stage, GET("/healthz"))), "200 ok\n");
            CU_ASSERT_TRUE(clock_monotonic_ms() - began < MONITOR_IDLE_S * 1000 / 2);
        }
    }
    const char *const oldest = hear(slow[0]);
    CHECK_STR("the oldest was closed", oldest == NULL ? "open" : oldest, "");
    struct pollfd newest = {.fd = slow[SLOW - 1], .events = POLLIN};
    CU_ASSERT_EQUAL(poll(&newest, 1, 0), 0);
    for (size_t i = 0; i < SLOW; i++)
        (void)close(slow[i]);
    CHECK_STR("afterwards", short_answer(ask(&stage, GET("/healthz"))), "200 ok\n");
    close_stage(&stage);
}

static void test_in_use(void)
{
    struct stage stage = open_stage();
    struct monitor *second = NULL;
    thole_error error = {.status = THOLE_OK};
    char want[128];
    CU_ASSERT_EQUAL(monitor_start(&stage.address, stage.metrics, &second, &error), THOLE_UNAVAILABLE);
    (void)snprintf(want, sizeof want, "--http: cannot listen on %s: Address already in use",
                   monitor_address(stage.monitor));
    CHECK_STR("the error", error.text, want);
    struct sockaddr_storage elsewhere;
    CU_ASSERT_EQUAL_FATAL(listen_address_parse("192.0.2.1:0", &elsewhere, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(monitor_start(&elsewhere, stage.metrics, &second, &error), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NULL(second);
    close_stage(&stage);
}

static const struct thole_test tests[] = {
    {"answers", test_answers},           {"nonsense", test_nonsense},        {"too much", test_too_much},
    {"slow clients", test_slow_clients}, {"an address in use", test_in_use},
};
THOLE_TEST_MAIN("monitor", tests)
