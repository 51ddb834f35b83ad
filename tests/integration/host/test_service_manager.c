/* Messages of a real engine and a real worker to a service manager: that they serve, that they live, that
 * they stop; also after a crash, and while the process is frozen. */
#include "stack.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAIT_MS = 60000, WATCHDOG_MS = 400 };

static struct stack stack;
static int manager;

static void listen_as_manager(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int const n = snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", stack.dir);
    CU_ASSERT_TRUE_FATAL(n > 0 && (size_t)n < sizeof address.sun_path);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(bind(manager, (const struct sockaddr *)&address, sizeof address), 0);
    CU_ASSERT_EQUAL(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
}

/* The next datagram within wait_ms; empty when there is none. Static. */
static const char *heard(uint64_t wait_ms)
{
    static char text[300];
    struct timeval const patience = {.tv_sec = (time_t)(wait_ms / 1000),
                                     .tv_usec = (suseconds_t)(wait_ms % 1000 * 1000)};
    CU_ASSERT_EQUAL(setsockopt(manager, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ssize_t const n = recv(manager, text, sizeof text - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

/* Skips what else is said, at most for WAIT_MS. */
static bool hears(const char *begins)
{
    uint64_t const until_ms = clock_monotonic_ms() + WAIT_MS;
    while (clock_monotonic_ms() < until_ms)
        if (strncmp(heard(1000), begins, strlen(begins)) == 0)
            return true;
    return false;
}

static void forget_all(void)
{
    while (heard(1)[0] != '\0')
        continue;
}

/* The worker waits for a namespace that no engine has set up. */
static void test_stopped_while_starting(void)
{
    struct stack_program *const worker = stack_program(&stack, "early", "worker", NULL);
    CU_ASSERT_TRUE(hears("STATUS=starting"));
    CU_ASSERT_EQUAL(stack_terminate(worker, WAIT_MS), 0);
    const char *const next = heard(WAIT_MS);
    CHECK_STR("not ready", next, "STOPPING=1\nSTATUS=stopping: running activities may end");
}

static void test_engine(void)
{
    char period[24];
    (void)snprintf(period, sizeof period, "%d", WATCHDOG_MS * 1000);
    CU_ASSERT_EQUAL(setenv("WATCHDOG_USEC", period, 1), 0);
    struct stack_program *const engine = stack_program(&stack, "engine", "engine", NULL);
    CU_ASSERT_TRUE(hears("STATUS=starting"));
    CU_ASSERT_TRUE(hears("READY=1"));
    CU_ASSERT_TRUE(stack_logged(engine, "serving", 1, WAIT_MS));
    for (unsigned i = 0; i < 3; i++)
        CU_ASSERT_TRUE(hears("WATCHDOG=1"));
    CU_ASSERT_EQUAL(kill(stack_serving(engine), SIGKILL), 0); /* the supervisor starts it again */
    CU_ASSERT_TRUE(hears("STATUS=starting"));
    CU_ASSERT_TRUE(hears("READY=1"));
    CU_ASSERT_TRUE(hears("WATCHDOG=1"));
    CU_ASSERT_TRUE(stack_freeze(engine));
    forget_all();
    const char *const frozen = heard(4 * WATCHDOG_MS);
    CHECK_STR("nothing while it is frozen", frozen, "");
    stack_thaw(engine);
    CU_ASSERT_TRUE(hears("WATCHDOG=1"));
    forget_all();
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    CU_ASSERT_TRUE(hears("STOPPING=1"));
}

static void test_worker(void)
{
    CU_ASSERT_EQUAL(unsetenv("WATCHDOG_USEC"), 0);
    struct stack_program *const engine = stack_program(&stack, "second", "engine", NULL);
    CU_ASSERT_TRUE(hears("READY=1"));
    struct stack_program *const worker = stack_program(&stack, "worker", "worker", NULL);
    CU_ASSERT_TRUE(hears("STATUS=starting"));
    CU_ASSERT_TRUE(hears("READY=1"));
    forget_all();
    const char *const unwanted = heard(2 * WATCHDOG_MS);
    CHECK_STR("no watchdog is wanted", unwanted, "");
    CU_ASSERT_EQUAL(stack_terminate(worker, WAIT_MS), 0);
    CU_ASSERT_TRUE(hears("STOPPING=1"));
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
}

static void test_all(void)
{
    stack_start(&stack);
    listen_as_manager();
    test_stopped_while_starting();
    test_engine();
    test_worker();
    (void)close(manager);
    stack_stop(&stack);
}

static const struct thole_test tests[] = {{"engine and worker", test_all}};
THOLE_INTEGRATION_MAIN("service_manager", tests)
