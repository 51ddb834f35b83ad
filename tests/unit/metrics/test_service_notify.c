/* Messages to a service manager, over a real socket: readiness, the watchdog while the loops move, and
 * nothing else. */
#include "clock.h"
#include "service_notify.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_S = 20, PERIOD_MS = 40 };

static char path[64];

/* The manager's end. */
static int listen_at(bool abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int const fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct timeval const patience = {.tv_sec = PATIENCE_S};
    (void)snprintf(path, sizeof path, "%s/thole-test-notify.%ld", abstract ? "@" : "/tmp", (long)getpid());
    memcpy(address.sun_path, path, strlen(path));
    if (abstract)
        address.sun_path[0] = '\0';
    socklen_t const len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + !abstract);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (const struct sockaddr *)&address, len), 0);
    CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    return fd;
}

/* The next datagram. Static. */
static const char *heard(int fd)
{
    static char text[200];
    ssize_t const n = recv(fd, text, sizeof text - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

static void check_heard(int fd, const char *want)
{
    const char *const text = heard(fd);
    CHECK_STR("heard", text, want);
}

static bool silent(int fd)
{
    char text[200];
    return recv(fd, text, sizeof text, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void test_wishes(void)
{
    char own[24], long_address[200];
    (void)snprintf(own, sizeof own, "%ld", (long)getpid());
    memset(long_address, 'x', sizeof long_address);
    long_address[0] = '/';
    long_address[sizeof long_address - 1] = '\0';
    const struct {
        const char *address, *us, *pid, *want;
        uint64_t watchdog_ms;
    } rows[] = {{NULL, NULL, NULL, "", 0},
                {"/run/x", NULL, NULL, "/run/x", 0},
                {"@x", "30000000", NULL, "@x", 30000},
                {"@x", "30000000", own, "@x", 30000},
                {"@x", "30000000", "1", "@x", 0}, /* another process's */
                {long_address, NULL, NULL, "", 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};
        const char *const values[] = {rows[i].address, rows[i].us, rows[i].pid};
        for (size_t k = 0; k < ARRAY_LEN(names); k++)
            if (values[k] != NULL)
                CU_ASSERT_EQUAL(setenv(names[k], values[k], 1), 0);
        struct service_wish const wish = service_wish_take();
        CHECK_STR("address", wish.address, rows[i].want);
        CU_ASSERT_EQUAL(wish.watchdog_ms, rows[i].watchdog_ms);
        for (size_t k = 0; k < ARRAY_LEN(names); k++)
            CU_ASSERT_PTR_NULL(getenv(names[k])); /* no child is the service */
    }
}

static void test_says(void)
{
    for (int abstract = 0; abstract < 2; abstract++) {
        struct service_wish wish = {.watchdog_ms = 0};
        struct service_notify *notify = NULL;
        int const fd = listen_at(abstract != 0);
        (void)snprintf(wish.address, sizeof wish.address, "%s", path);
        CU_ASSERT_EQUAL_FATAL(service_notify_start(&wish, NULL, &notify, NULL), THOLE_OK);
        CU_ASSERT_TRUE(silent(fd));
        service_notify_say(notify, "READY=1\nSTATUS=serving");
        check_heard(fd, "READY=1\nSTATUS=serving");
        CU_ASSERT_TRUE(silent(fd)); /* without a watchdog */
        (void)close(fd);
        service_notify_say(notify, "STOPPING=1"); /* the manager has gone */
        service_notify_stop(notify);
        (void)unlink(path);
    }
}

enum { MANY = 3000 };

static void *read_late(void *fd)
{
    (void)usleep(200 * 1000);
    unsigned n = 0;
    while (n < MANY && strcmp(heard(*(const int *)fd), "READY=1") == 0)
        n++;
    CU_ASSERT_EQUAL(n, MANY);
    return NULL;
}

/* A manager that is busy while its queue is full hears all the same. */
static void test_busy_manager(void)
{
    struct service_wish wish = {.watchdog_ms = 0};
    struct service_notify *notify = NULL;
    int fd = listen_at(false);
    pthread_t reader;
    (void)snprintf(wish.address, sizeof wish.address, "%s", path);
    CU_ASSERT_EQUAL_FATAL(service_notify_start(&wish, NULL, &notify, NULL), THOLE_OK);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&reader, NULL, read_late, &fd), 0);
    for (unsigned i = 0; i < MANY; i++)
        service_notify_say(notify, "READY=1");
    (void)pthread_join(reader, NULL);
    CU_ASSERT_TRUE(silent(fd));
    service_notify_stop(notify);
    (void)close(fd);
    (void)unlink(path);
}

static void test_watchdog(void)
{
    struct metrics *const metrics = metrics_create(&(struct metrics_options){.roles = METRIC_WORKER});
    struct pulse *const pulse = metrics_pulse(metrics, "loop", 100);
    struct service_wish wish = {.watchdog_ms = PERIOD_MS};
    struct service_notify *notify = NULL;
    int const fd = listen_at(false);
    (void)snprintf(wish.address, sizeof wish.address, "%s", path);
    pulse_rests(pulse); /* a loop that waits is well */
    CU_ASSERT_EQUAL_FATAL(service_notify_start(&wish, metrics, &notify, NULL), THOLE_OK);
    uint64_t const began_ms = clock_monotonic_ms();
    for (unsigned i = 0; i < 5; i++)
        check_heard(fd, "WATCHDOG=1");
    CU_ASSERT_TRUE(clock_monotonic_ms() - began_ms >= 4 * PERIOD_MS / 2 - 5); /* no busy loop */
    uint64_t const stuck_ms = clock_monotonic_ms();
    uint64_t last_ms = stuck_ms;
    pulse_begins(pulse, stuck_ms);
    struct timeval const soon = {.tv_usec = 500 * 1000};
    CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
    while (strcmp(heard(fd), "WATCHDOG=1") == 0 && clock_monotonic_ms() - stuck_ms < PATIENCE_S * 1000)
        last_ms = clock_monotonic_ms();
    CU_ASSERT_TRUE(last_ms - stuck_ms < 5000); /* silence, so that the manager acts */
    pulse_rests(pulse);
    struct timeval const patience = {.tv_sec = PATIENCE_S};
    CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    check_heard(fd, "WATCHDOG=1");
    service_notify_stop(notify);
    metrics_destroy(metrics);
    (void)close(fd);
    (void)unlink(path);
}

static void test_refusals(void)
{
    static const char *const wrong[] = {"relative", "@", "/", "vsock:2:1"};
    struct service_wish wish = {.watchdog_ms = 1000};
    struct service_notify *notify = NULL;
    CU_ASSERT_EQUAL(service_notify_start(&wish, NULL, &notify, NULL), THOLE_OK);
    CU_ASSERT_PTR_NULL(notify);
    service_notify_say(notify, "READY=1");
    service_notify_stop(notify);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        thole_error err = {.status = THOLE_OK};
        (void)snprintf(wish.address, sizeof wish.address, "%s", wrong[i]);
        CU_ASSERT_EQUAL(service_notify_start(&wish, NULL, &notify, &err), THOLE_INVALID);
        CU_ASSERT_PTR_NULL(notify);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[i]));
    }
}

static size_t descriptors(void)
{
    size_t n = 0;
    DIR *const dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        (void)closedir(dir);
    return n;
}

static void test_nothing_stays(void)
{
    size_t const before = descriptors();
    for (int i = 0; i < 3; i++) {
        test_says();
        test_refusals();
    }
    test_watchdog();
    CU_ASSERT_EQUAL(descriptors(), before);
}

static const struct thole_test tests[] = {
    {"wishes", test_wishes},     {"says", test_says},         {"busy manager", test_busy_manager},
    {"watchdog", test_watchdog}, {"refusals", test_refusals}, {"nothing stays", test_nothing_stays}};
THOLE_TEST_MAIN("service_notify", tests)
