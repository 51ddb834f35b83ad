/* The log lines and counters of a role about its connections to NATS. */
#include "clock.h"
#include "nats_watch.h"
#include "said.h"

enum { SAY_EVERY_MS = 10000 };

static struct {
    struct said said;
    uint64_t now_ms;
    struct metrics *metrics;
    struct nats_watch watch;
} play;

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...) THOLE_PRINTF(4, 5);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    char text[sizeof((thole_error *)NULL)->text + 64];
    va_list args;
    (void)fields;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    said_add(&play.said, "%s %s: %s|", names[level], area, text);
}

static void begin(enum log_level level)
{
    struct metrics_options const options = {.roles = METRIC_WORKER};
    said_clear(&play.said);
    play.now_ms = 1000;
    play.metrics = metrics_create(&options);
    nats_watch_begin(&play.watch, "worker", level, play.metrics);
}

static void end(void)
{
    nats_watch_end(&play.watch);
    metrics_destroy(play.metrics);
}

static uint64_t counted(size_t label)
{
    return metrics_value(play.metrics, METRIC_NATS_ERRORS, label);
}

static void tell(enum connection_trouble trouble, thole_status status, const char *text)
{
    thole_error error = {.status = THOLE_OK};
    (void)thole_fail(&error, status, "%s", text);
    nats_watch_trouble(&play.watch, trouble, &error);
}

/* The reason at once, then every 10 s while it lasts; each attempt counts. */
static void test_an_outage(void)
{
    begin(LOG_LEVEL_WARN);
    nats_watch_state(&play.watch, true);
    nats_watch_state(&play.watch, false);
    for (int i = 0; i <= 10; i++, play.now_ms += 1000)
        tell(CONNECTION_NOT_MADE, THOLE_UNAVAILABLE, "no server");
    said_check(&play.said, "an outage of 10 s",
               "info worker: NATS connected|warn worker: NATS connection lost; reconnecting|"
               "warn worker: waiting: no server|warn worker: waiting: no server|");
    CU_ASSERT_EQUAL(counted(ERRORS_UNAVAILABLE), 11);
    nats_watch_state(&play.watch, true);
    nats_watch_state(&play.watch, false);
    said_clear(&play.said);
    tell(CONNECTION_NOT_MADE, THOLE_DENIED, "refuses the credentials");
    said_check(&play.said, "the next one says why at once", "warn worker: waiting: refuses the credentials|");
    CU_ASSERT_EQUAL(counted(ERRORS_DENIED), 1);
    tell(CONNECTION_NOT_MADE, THOLE_DENIED, "refuses the credentials");
    said_check(&play.said, "not again", "");
    tell(CONNECTION_NOT_MADE, THOLE_UNAVAILABLE, "no server");
    tell(CONNECTION_NOT_MADE, THOLE_DENIED, "refuses the credentials");
    said_check(&play.said, "another reason", "warn worker: waiting: no server|");
    end();
}

/* Another connection of the process says the same. */
static void test_quiet(void)
{
    begin(LOG_LEVEL_DEBUG);
    nats_watch_state(&play.watch, false);
    tell(CONNECTION_NOT_MADE, THOLE_UNAVAILABLE, "no server");
    nats_watch_state(&play.watch, true);
    said_check(&play.said, "quiet",
               "debug worker: NATS connection lost; reconnecting|debug worker: waiting: no server|"
               "debug worker: NATS connected|");
    CU_ASSERT_EQUAL(counted(ERRORS_UNAVAILABLE), 1);
    end();
}

static void test_what_is_forbidden(void)
{
    thole_error found = {.status = THOLE_OK};
    begin(LOG_LEVEL_WARN);
    CU_ASSERT_FALSE(nats_watch_forbidden(&play.watch, SAY_EVERY_MS, &found));
    for (int i = 0; i < 5; i++)
        tell(CONNECTION_FORBIDS, THOLE_DENIED, i < 4 ? "forbids a" : "forbids b");
    said_check(&play.said, "a few at a time",
               "warn worker: forbids a|warn worker: forbids a|warn worker: forbids a|");
    CU_ASSERT_EQUAL(counted(ERRORS_DENIED), 5);
    CU_ASSERT_TRUE(nats_watch_forbidden(&play.watch, SAY_EVERY_MS, &found));
    CHECK_STR("the last one", found.text, "forbids b");
    play.now_ms += SAY_EVERY_MS;
    CU_ASSERT_FALSE(nats_watch_forbidden(&play.watch, SAY_EVERY_MS - 1, &found));
    tell(CONNECTION_FORBIDS, THOLE_DENIED, "forbids c");
    said_check(&play.said, "and how many more", "warn worker: forbids c; and 2 more such before|");
    end();
}

static void test_what_requests_are_answered(void)
{
    begin(LOG_LEVEL_WARN);
    nats_watch_answered(&play.watch, REQUEST_STORED, 0);
    nats_watch_answered(&play.watch, REQUEST_ANSWERED, 0);
    nats_watch_answered(&play.watch, REQUEST_REFUSED, 0);
    nats_watch_answered(&play.watch, REQUEST_BUSY, 0);
    nats_watch_answered(&play.watch, REQUEST_FAILED, 0);
    nats_watch_answered(&play.watch, REQUEST_UNKNOWN, 0);
    nats_watch_answered(&play.watch, REQUEST_BUSY, 10023);
    nats_watch_answered(&play.watch, REQUEST_BUSY, 10077);
    nats_watch_failed(&play.watch, THOLE_UNAVAILABLE);
    nats_watch_failed(&play.watch, THOLE_DENIED);
    CU_ASSERT_EQUAL(counted(NATS_ERRORS_REFUSED), 1);
    CU_ASSERT_EQUAL(counted(NATS_ERRORS_BUSY), 1);
    CU_ASSERT_EQUAL(counted(NATS_ERRORS_FAILED), 1);
    CU_ASSERT_EQUAL(counted(NATS_ERRORS_FULL), 2);
    CU_ASSERT_EQUAL(counted(NATS_ERRORS_UNANSWERED), 1);
    CU_ASSERT_EQUAL(counted(ERRORS_UNAVAILABLE), 1);
    CU_ASSERT_EQUAL(counted(ERRORS_DENIED), 1);
    said_check(&play.said, "nothing is said", "");
    end();
}

static const struct thole_test tests[] = {
    {"an outage", test_an_outage},
    {"quiet", test_quiet},
    {"what is forbidden", test_what_is_forbidden},
    {"what requests are answered", test_what_requests_are_answered},
};
THOLE_TEST_MAIN("nats_watch", tests)
