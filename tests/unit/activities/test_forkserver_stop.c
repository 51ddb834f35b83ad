/* Messages to a forkserver, and its end: one that does not end is killed, and not waited for without end. */
#include "forkserver.h"
#include "logged.h"
#include "process_early.h"
#include "said.h"
#include "thole_cunit.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    pid_t self, waited, killed;
    bool silent; /* nothing is heard of it in time */
    int signal;
    int threads; /* threads of the program */
    struct said said;
} play;

int __wrap_process_other_threads(void)
{
    return play.threads;
}

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...) THOLE_PRINTF(4, 5);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    logged_text(text, sizeof text, fields, fmt, args);
    va_end(args);
    said_add(&play.said, "%s %s: %s\n", level == LOG_LEVEL_WARN ? "warn" : "error", area, text);
}

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    if (getpid() != play.self)
        return __real_poll(fds, n, timeout_ms);
    CU_ASSERT_TRUE(timeout_ms > 0);
    return play.silent ? 0 : __real_poll(fds, n, timeout_ms);
}

int __real_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal)
{
    if (getpid() == play.self) {
        play.killed = pid;
        play.signal = signal;
    }
    return __real_kill(pid, signal);
}

pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    if (getpid() == play.self)
        play.waited = pid;
    return __real_waitpid(pid, status, options);
}

static thole_status nothing(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_OK;
}

static const thole_activity_entry entries[] = {{.name = "charge", .run = nothing}};
static const thole_program program = {.name = "none", .activities = entries, .activities_len = 1};

static void stop_with(bool silent, int threads)
{
    static char *argv[] = {"test", NULL};
    struct forkserver_options const options = {
        .program = &program, .argv = argv, .payload_max = 1000, .memory_max = 1 << 20};
    thole_activity_options const none = {.size = sizeof none}, less = {.memory_max = 1 << 19},
                                 more = {.memory_max = 1 << 21};
    struct forkserver *forkserver = NULL;
    memset(&play, 0, sizeof play);
    play.self = getpid();
    play.silent = silent;
    play.threads = threads;
    CU_ASSERT_EQUAL_FATAL(forkserver_start(&options, &forkserver, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(forkserver_memory_max(forkserver, &none), 1 << 20);
    CU_ASSERT_EQUAL(forkserver_memory_max(forkserver, &less), 1 << 19);
    CU_ASSERT_EQUAL(forkserver_memory_max(forkserver, &more), 1 << 20);
    forkserver_stop(forkserver);
    CU_ASSERT_TRUE(play.waited > 0);
    CU_ASSERT_EQUAL(__real_kill(play.waited, 0), -1); /* nor is it a zombie */
    CU_ASSERT_EQUAL(errno, ESRCH);
}

static void stop(bool silent)
{
    stop_with(silent, 0);
    said_check(&play.said, "its end",
               silent ? "error forkserver: some processes did not end within 15000 ms of SIGKILL\n" : "");
}

/* One is enough to hold a lock. */
static void test_threads_before_it(void)
{
    for (int threads = 1; threads < 3; threads++) {
        char want[200];
        stop_with(false, threads);
        (void)snprintf(
            want, sizeof want,
            "warn forkserver: this program has started %d threads before thole_main(): activities in "
            "processes of their own may hang on what these had locked\n",
            threads);
        said_check(&play.said, "threads", want);
    }
}

static void test_one_that_ends(void)
{
    stop(false);
    CU_ASSERT_EQUAL(play.killed, 0);
}

static void test_one_that_does_not_end(void)
{
    stop(true);
    CU_ASSERT_EQUAL(play.killed, play.waited);
    CU_ASSERT_EQUAL(play.signal, SIGKILL);
}

static const struct thole_test tests[] = {
    {"threads before it", test_threads_before_it},
    {"one that ends", test_one_that_ends},
    {"one that does not end", test_one_that_does_not_end},
};
THOLE_TEST_MAIN("forkserver stop", tests)
