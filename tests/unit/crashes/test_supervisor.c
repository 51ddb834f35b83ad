/*
 * How often a supervisor starts an engine that dies again. Its clock runs many times as fast as the
 * machine's, and what waits by it waits so much less.
 */
#include "clock.h"
#include "crash_report.h"
#include "supervisor.h"
#include "thole_cunit.h"
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIVES_MAX = 10, DIES_AFTER_MS = 65000, OUT_BYTES = 64 * 1024 };

static unsigned faster;

uint64_t __real_clock_monotonic_ms(void);
uint64_t __wrap_clock_monotonic_ms(void)
{
    return __real_clock_monotonic_ms() * faster;
}

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    return __real_poll(fds, n, timeout_ms <= 0 ? timeout_ms : (timeout_ms + (int)faster - 1) / (int)faster);
}

static bool reporter_hangs;

/* In the reporter's process. */
int __real_crash_report(const struct host_options *options, struct crash_page *page, int status);
int __wrap_crash_report(const struct host_options *options, struct crash_page *page, int status)
{
    while (reporter_hangs)
        (void)pause();
    return __real_crash_report(options, page, status);
}

struct lives {
    unsigned n;       /* how often the engine was started */
    unsigned unheard; /* of these, those whose supervisor had closed its socket */
    int status;       /* of the supervisor */
    char *out;        /* output */
    uint64_t ms;      /* by the fast clock */
};

/* In the engine's place: dies after so long, of SIGKILL. */
static void die_after(uint64_t ms, int lives, int supervisor)
{
    struct pollfd heard = {.fd = supervisor};
    ssize_t n = write(lives, "x", 1);
    (void)usleep((useconds_t)(ms * 1000 / faster));
    if (__real_poll(&heard, 1, 0) != 0)
        n = write(lives, "u", 1);
    (void)n;
    (void)raise(SIGKILL);
}

static size_t read_all(int fd, char *to, size_t cap)
{
    size_t len = 0;
    for (ssize_t n; len < cap && (n = read(fd, to + len, cap - len)) > 0;)
        len += (size_t)n;
    return len;
}

/* @p lives_max: the supervisor is killed when so many have begun. */
static struct lives supervise_engines(uint64_t each_ms, unsigned lives_max)
{
    static char out[OUT_BYTES];
    struct host_options options;
    struct supervised self;
    int lives[2], err[2];
    struct lives result = {.out = out};
    memset(&options, 0, sizeof options);
    options.node = "supervised";
    CU_ASSERT_FATAL(pipe(lives) == 0 && pipe(err) == 0);
    uint64_t const from = clock_monotonic_ms();
    (void)fflush(NULL);
    pid_t const pid = fork();
    if (pid == 0) {
        (void)close(lives[0]);
        (void)close(err[0]);
        (void)dup2(err[1], STDERR_FILENO);
        (void)close(err[1]);
        thole_error error = {0};
        if (supervise(&options, &self, &error) == THOLE_OK)
            die_after(each_ms, lives[1], self.socket);
        _exit(99);
    }
    (void)close(lives[1]);
    (void)close(err[1]);
    for (char c; result.n < lives_max && read(lives[0], &c, 1) == 1;) {
        result.n += c == 'x';
        result.unheard += c == 'u';
    }
    if (result.n == lives_max)
        (void)kill(pid, SIGKILL);
    memset(out, 0, sizeof out);
    (void)read_all(err[0], out, sizeof out - 1);
    (void)waitpid(pid, &result.status, 0);
    (void)close(lives[0]);
    (void)close(err[0]);
    result.ms = clock_monotonic_ms() - from;
    return result;
}

/* The first start, and ten more; the pauses are 0.5, 1, 2, 4, 8, 16 and three times 30 s. */
static void test_gives_up(void)
{
    faster = 20; /* a machine that is busy for three seconds is no engine that lived for a minute */
    struct lives const lives = supervise_engines(0, 100);
    CU_ASSERT_EQUAL(lives.n, 1 + LIVES_MAX);
    CU_ASSERT_TRUE(WIFSIGNALED(lives.status) && WTERMSIG(lives.status) == SIGKILL);
    CU_ASSERT_PTR_NOT_NULL(strstr(lives.out,
                                  "the engine has died 11 times in a row, each time within 60 s, and no "
                                  "orchestration's code is to blame: giving up"));
    uint64_t const pauses_ms = 500 + 1000 + 2000 + 4000 + 8000 + 16000 + 3 * 30000;
    CU_ASSERT_TRUE(lives.ms >= pauses_ms - 1000);
    fprintf(stderr, "  %u lives in %llu ms, of which %llu were to be pauses\n", lives.n,
            (unsigned long long)lives.ms, (unsigned long long)pauses_ms);
}

/* An engine that lives for a minute starts a new series of deaths. */
static void test_goes_on(void)
{
    faster = 100;
    struct lives const lives = supervise_engines(DIES_AFTER_MS, 2 + LIVES_MAX);
    CU_ASSERT_EQUAL(lives.n, 2 + LIVES_MAX);
    CU_ASSERT_PTR_NULL(strstr(lives.out, "giving up"));
    CU_ASSERT_PTR_NULL(strstr(lives.out, "after a pause"));
}

/* NATS is away: the report's process is killed, and gone before the next life begins, which it would deafen.
 */
static void test_a_report_that_hangs(void)
{
    enum { LIVES = 4, REPORT_MS = 12000 };
    faster = 100;
    reporter_hangs = true;
    struct lives const lives = supervise_engines(5000, LIVES);
    reporter_hangs = false;
    CU_ASSERT_EQUAL(lives.n, LIVES);
    CU_ASSERT_EQUAL(lives.unheard, 0);
    CU_ASSERT_TRUE(lives.ms >= (LIVES - 1) * (REPORT_MS + 5000));
}

int main(void)
{
    static const struct thole_test tests[] = {{"gives up", test_gives_up},
                                              {"goes on", test_goes_on},
                                              {"a report that hangs", test_a_report_that_hangs}};
    return thole_run_suite("supervisor", tests, ARRAY_LEN(tests));
}
