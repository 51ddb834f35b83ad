/* A program's metrics of itself, the messages to its service manager, and the remains when one of both does
 * not start. The HTTP server and the manager are played. */
#include "metrics.h"
#include "monitor.h"
#include "monitoring.h"
#include "said.h"
#include "thole_cunit.h"
#include <stdlib.h>

static struct {
    struct said said;
    const struct metrics *monitored, *notified;
    bool no_monitor, no_notify;
    int open;
} play;

thole_status __wrap_monitor_start(const struct sockaddr_storage *address, const struct metrics *metrics,
                                  struct monitor **ret, thole_error *reterr)
{
    (void)address;
    play.monitored = metrics;
    if (play.no_monitor)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "in use");
    play.open++;
    *ret = (struct monitor *)&play;
    return THOLE_OK;
}

const char *__wrap_monitor_address(const struct monitor *monitor)
{
    CU_ASSERT_PTR_EQUAL(monitor, (struct monitor *)&play);
    return "played:1";
}

void __wrap_monitor_stop(struct monitor *monitor)
{
    play.open -= monitor != NULL;
}

thole_status __wrap_service_notify_start(const struct service_wish *wish, const struct metrics *metrics,
                                         struct service_notify **ret, thole_error *reterr)
{
    play.notified = metrics;
    if (play.no_notify)
        return thole_fail(reterr, THOLE_INVALID, "no such socket");
    play.open++;
    said_add(&play.said, "to %s|", wish->address);
    *ret = (struct service_notify *)&play;
    return THOLE_OK;
}

void __wrap_service_notify_say(const struct service_notify *notify, const char *state)
{
    CU_ASSERT_PTR_EQUAL(notify, (struct service_notify *)&play);
    said_add(&play.said, "%s|", state);
}

void __wrap_service_notify_stop(struct service_notify *notify)
{
    play.open -= notify != NULL;
}

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    (void)level, (void)fields, (void)fmt;
    said_add(&play.said, "log of %s|", area);
}

/* ---- tests ---- */

static thole_status nothing(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_OK;
}

static const thole_activity_entry entries[] = {{.name = "pay", .run = nothing},
                                               {.name = "ship", .run = nothing}};
static thole_error err;
static struct host_command command;

static thole_status start(enum host_role role, size_t activities, const char *http, const char *manager,
                          struct monitoring **ret)
{
    thole_program const program = {
        .size = sizeof program, .name = "orders", .activities = entries, .activities_len = activities};
    struct service_wish wish = {.watchdog_ms = 0};
    (void)snprintf(wish.address, sizeof wish.address, "%s", manager);
    memset(&command, 0, sizeof command);
    memset(&err, 0, sizeof err);
    command.role = role;
    command.options.ns = "shop";
    command.options.queue = "fast";
    command.options.http = http;
    return monitoring_start(&program, &command, &wish, ret, &err);
}

static char *page(void)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    metrics_text(command.options.metrics, 1000, &text);
    char *const copy = strdup(buf_cstr(&text));
    buf_release(&text);
    return copy;
}

static void check_has(const char *row, const char *text, const char *part, bool has)
{
    CHECK_STR(row, (strstr(text, part) != NULL) == has ? part : text, part);
}

static void test_what_it_says(void)
{
    struct monitoring *monitoring;
    memset(&play, 0, sizeof play);
    CU_ASSERT_EQUAL(start(HOST_WORKER, 2, "127.0.0.1:0", "", &monitoring), THOLE_OK);
    CU_ASSERT_PTR_EQUAL(play.monitored, command.options.metrics);
    char *text = page();
    check_has("what runs", text,
              "thole_build_info{version=\"" THOLE_VERSION
              "\",program=\"orders\",namespace=\"shop\",queue=\"fast\"} 1\n",
              true);
    check_has("an activity", text, "\"pay\"", true);
    check_has("the other", text, "\"ship\"", true);
    check_has("the worker", text, "thole_worker", true);
    check_has("no engine", text, "thole_engine", false);
    free(text);
    monitoring_stop(monitoring);
    CU_ASSERT_EQUAL(start(HOST_RUN, 0, "127.0.0.1:0", "", &monitoring), THOLE_OK);
    text = page();
    check_has("no worker without activities", text, "namespace=\"shop\",queue=\"\"} 1\n", true);
    check_has("no worker", text, "thole_worker", false);
    free(text);
    monitoring_stop(monitoring);
    CU_ASSERT_EQUAL(play.open, 0);
}

static void test_who_hears_it(void)
{
    struct monitoring *monitoring;
    memset(&play, 0, sizeof play);
    CU_ASSERT_EQUAL(start(HOST_RUN, 1, NULL, "@manager", &monitoring), THOLE_OK);
    CU_ASSERT_PTR_NULL(play.monitored);
    CU_ASSERT_PTR_EQUAL(play.notified, command.options.metrics);
    said_check(&play.said, "start",
               "to @manager|STATUS=starting: waits for NATS, Postgres and its partitions|");
    monitoring_serving(monitoring, HOST_ENGINE, true);
    said_check(&play.said, "serves", "READY=1\nSTATUS=serving|");
    char *text = page();
    check_has("the engine serves", text, "thole_serving{role=\"engine\"} 1", true);
    check_has("the worker does not", text, "thole_serving{role=\"worker\"} 0", true);
    free(text);
    monitoring_serving(monitoring, HOST_RUN, true);
    monitoring_serving(monitoring, HOST_ENGINE, false);
    said_check(&play.said, "stops",
               "READY=1\nSTATUS=serving|STOPPING=1\nSTATUS=stopping: running activities may end|");
    text = page();
    check_has("the engine does not", text, "thole_serving{role=\"engine\"} 0", true);
    check_has("the worker serves", text, "thole_serving{role=\"worker\"} 1", true);
    free(text);
    monitoring_stop(monitoring);
    CU_ASSERT_EQUAL(play.open, 0);
}

static void test_nobody_asks(void)
{
    struct monitoring *monitoring = (struct monitoring *)&play;
    memset(&play, 0, sizeof play);
    CU_ASSERT_EQUAL(start(HOST_RUN, 1, NULL, "", &monitoring), THOLE_OK);
    CU_ASSERT_PTR_NULL(monitoring);
    CU_ASSERT_EQUAL(start(HOST_RUN, 1, "", "", &monitoring), THOLE_OK);
    CU_ASSERT_PTR_NULL(monitoring);
    CU_ASSERT_PTR_NULL(command.options.metrics);
    monitoring_serving(NULL, HOST_RUN, true);
    monitoring_stop(NULL);
    said_check(&play.said, "nothing", "");
}

static void test_what_does_not_start(void)
{
    struct monitoring *monitoring;
    memset(&play, 0, sizeof play);
    CU_ASSERT_EQUAL(start(HOST_RUN, 1, "nowhere", "@manager", &monitoring), THOLE_INVALID);
    play.no_monitor = true;
    CU_ASSERT_EQUAL(start(HOST_RUN, 1, "127.0.0.1:0", "@manager", &monitoring), THOLE_UNAVAILABLE);
    CHECK_STR("why", err.text, "in use");
    play.no_monitor = false;
    play.no_notify = true;
    CU_ASSERT_EQUAL(start(HOST_RUN, 1, "127.0.0.1:0", "@manager", &monitoring), THOLE_INVALID);
    CHECK_STR("why", err.text, "no such socket");
    CU_ASSERT_PTR_NULL(monitoring);
    CU_ASSERT_PTR_NULL(command.options.metrics);
    CU_ASSERT_EQUAL(play.open, 0);
}

static const struct thole_test tests[] = {{"what it says", test_what_it_says},
                                          {"who hears it", test_who_hears_it},
                                          {"nobody asks", test_nobody_asks},
                                          {"what does not start", test_what_does_not_start}};
THOLE_TEST_MAIN("monitoring", tests)
