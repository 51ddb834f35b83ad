/* The effects of SIGTERM and SIGINT on a program, one after the other. */
#include "stop_signals.h"
#include "thole_cunit.h"
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOPS = 7, CANNOT = 8 };

/* Exit code of a process that gets these signals and then looks whether it is to stop. */
static int after(const int *signals, size_t n)
{
    int status = 0;
    pid_t const child = fork();
    if (child == 0) {
        if (stop_signals_install(NULL) != THOLE_OK)
            _exit(CANNOT);
        for (size_t i = 0; i < n; i++)
            (void)raise(signals[i]);
        stop_wait();
        _exit(stop_requested() ? STOPS : 0);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
#define AFTER(...) after((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static void stops(void)
{
    CU_ASSERT_EQUAL(AFTER(SIGTERM), STOPS);
    CU_ASSERT_EQUAL(AFTER(SIGINT), STOPS);
    CU_ASSERT_EQUAL(AFTER(SIGTERM, SIGTERM), STOPS);
}

/* The terminal's and the supervisor's. */
static void one_interrupt_is_one(void)
{
    CU_ASSERT_EQUAL(AFTER(SIGINT, SIGTERM), STOPS);
    CU_ASSERT_EQUAL(AFTER(SIGTERM, SIGINT), STOPS);
}

static void second_interrupt_ends(void)
{
    CU_ASSERT_EQUAL(AFTER(SIGINT, SIGINT), 130);
    CU_ASSERT_EQUAL(AFTER(SIGTERM, SIGINT, SIGINT), 130);
}

/* Exit code of a process that waits beside a socket whose other end is closed soon, or that gets a signal. */
static int beside(bool is_closed, bool is_signalled)
{
    int ends[2], status = 0;
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t const child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        (void)alarm(20);
        if (stop_signals_install(NULL) != THOLE_OK)
            _exit(CANNOT);
        if (is_signalled)
            stop_request();
        bool const stops = stop_wait_beside(ends[1]);
        _exit(stops != stop_requested() ? CANNOT : stops ? STOPS : 0);
    }
    (void)close(ends[1]);
    if (is_closed)
        (void)close(ends[0]);
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    if (!is_closed)
        (void)close(ends[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void the_other_end(void)
{
    CU_ASSERT_EQUAL(beside(true, false), 0);
    CU_ASSERT_EQUAL(beside(false, true), STOPS);
    CU_ASSERT_EQUAL(beside(true, true), STOPS);
}

/* Nobody reads what a program writes to a pipe that is closed: that is an error, not an end. */
static void a_broken_pipe(void)
{
    CU_ASSERT_EQUAL(AFTER(SIGPIPE, SIGTERM), STOPS);
}

static const struct thole_test tests[] = {
    {"a signal stops", stops},
    {"one interrupt is one", one_interrupt_is_one},
    {"a second interrupt ends", second_interrupt_ends},
    {"the other end", the_other_end},
    {"a broken pipe", a_broken_pipe},
};
THOLE_TEST_MAIN("stop signals", tests)
