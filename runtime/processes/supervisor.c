#include "supervisor.h"
#include "clock.h"
#include "crash_page.h"
#include "crash_report.h"
#include "log.h"
#include "process_early.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    /* added to the time for stopping by the options: after that the engine counts as hung */
    STOP_SLACK_MS = 10000,
    STUCK_MS = 1000,       /* for a turn that takes longer it waits at most --stop-limit */
    LIVED_MS = 60 * 1000,  /* a crash after this time counts as the first in a row */
    REPORT_MS = 12 * 1000, /* for the reporter, at most */
    DELAY_FIRST_MS = 500,  /* before the second start in a row; doubled with each further one */
    DELAY_MAX_MS = 30 * 1000,
    DEATHS_MAX = 10, /* in a row without an instance that caused them */
    EXIT_GIVEN_UP = 1,
    EXIT_SIGNAL = 128,
};

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
enum { FORWARDED = sizeof forwarded / sizeof forwarded[0] };

struct supervisor {
    const struct host_options *options;
    struct crash_page *page;
    sigset_t taken, before;        /* signals that are read from the descriptor; the mask before */
    struct sigaction child_before; /* a program may ignore SIGCHLD, but this child must be waited for */
    int signals;
    pid_t child, reporter; /* 0: there is none */
    int child_status;
    bool reported, stored; /* for this child: a reporter was started; it has stored the report */
    int socket;            /* to the child; -1: closed */
    bool stopping, killed; /* SIGTERM was sent; SIGKILL was sent after it */
    unsigned interrupts;
    uint64_t stop_by_ms, born_ms, report_by_ms; /* monotonic */
    unsigned deaths;                            /* in a row */
};

/* ---- processes ---- */

static void open_signals(struct supervisor *s)
{
    struct sigaction const as_ever = {.sa_handler = SIG_DFL};
    (void)sigaction(SIGCHLD, &as_ever, &s->child_before);
    sigemptyset(&s->taken);
    sigaddset(&s->taken, SIGCHLD);
    for (size_t i = 0; i < FORWARDED; i++)
        sigaddset(&s->taken, forwarded[i]);
    (void)sigprocmask(SIG_BLOCK, &s->taken, &s->before);
    s->signals = signalfd(-1, &s->taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* In the child SIGTERM and SIGINT stay blocked until stop_signals_install(). */
static void forget_signals(const struct supervisor *s, bool child)
{
    sigset_t mask = s->before;
    if (child) {
        sigaddset(&mask, SIGTERM);
        sigaddset(&mask, SIGINT);
    }
    (void)sigaction(SIGCHLD, &s->child_before, NULL);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    if (s->signals >= 0)
        (void)close(s->signals);
}

/* True in the child. */
static bool fork_child(struct supervisor *s, int *ret_socket)
{
    pid_t const self = getpid();
    int ends[2] = {-1, -1};
    s->child = -1;
    crash_page_clear(s->page);
    s->reported = s->stored = false;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    (void)fflush(NULL); /* or buffered output would be written twice */
    s->child = fork();
    if (s->child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self) /* the supervisor died meanwhile */
            _exit(EXIT_GIVEN_UP);
        (void)close(ends[0]);
        forget_signals(s, true);
        *ret_socket = ends[1];
        return true;
    }
    (void)close(ends[1]);
    s->socket = ends[0];
    s->born_ms = clock_monotonic_ms();
    return false;
}

static void start_reporter(struct supervisor *s, int status)
{
    if (s->reported)
        return;
    s->reported = true;
    (void)fflush(NULL);
    s->reporter = fork();
    if (s->reporter != 0) {
        s->report_by_ms = clock_monotonic_ms() + REPORT_MS;
        return;
    }
    process_settle("thole-reporter", NULL, 0);
    _exit(crash_report(s->options, s->page, status));
}

static void close_socket(struct supervisor *s)
{
    if (s->socket >= 0)
        (void)close(s->socket); /* an engine that waits for its report then ends */
    s->socket = -1;
}

/* As process 1 of a container it also has to wait for orphans of other processes. */
static void supervisor_reap(struct supervisor *s)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == s->child) {
            s->child_status = status;
            s->child = 0;
        } else if (pid == s->reporter) {
            s->reporter = 0;
            s->stored = WIFEXITED(status) && WEXITSTATUS(status) == 0;
            close_socket(s);
        }
    }
}

/* ---- stopping ---- */

static void supervisor_stop(struct supervisor *s, int number)
{
    s->interrupts += number == SIGINT;
    if (!s->stopping)
        s->stop_by_ms = clock_monotonic_ms() + s->options->stop_limit_ms;
    s->stopping = true;
    if (s->child > 0)
        (void)kill(s->child, s->interrupts > 1 ? SIGKILL : SIGTERM); /* a second Ctrl-C ends it at once */
}

static void take_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int const number = (int)info.ssi_signo;
        if (number == SIGTERM || number == SIGINT)
            supervisor_stop(s, number);
        else if (number != SIGCHLD && s->child > 0)
            (void)kill(s->child, number);
    }
    supervisor_reap(s);
}

/* When the oldest of the running turns began, and in which place; 0: none runs. */
static uint64_t oldest_turn(const struct crash_page *page, int *ret_place)
{
    uint64_t oldest = 0;
    *ret_place = -1;
    for (size_t i = 0; i < page->places_len && i < CRASH_PLACES_MAX; i++) {
        uint64_t const since = atomic_load(&page->places[i].since_ms);
        if (since == 0 || (oldest != 0 && since >= oldest))
            continue;
        oldest = since;
        *ret_place = (int)i;
    }
    return oldest;
}

/* Returns when to call again; UINT64_MAX: not needed. */
static uint64_t enforce_stop(struct supervisor *s, uint64_t now_ms)
{
    if (!s->stopping || s->child == 0 || s->killed)
        return UINT64_MAX;
    int place = -1;
    uint64_t const last = s->stop_by_ms + s->options->grace_ms + STOP_SLACK_MS;
    uint64_t const turn = oldest_turn(s->page, &place);
    bool const stuck = turn != 0 && now_ms >= turn + STUCK_MS;
    if (now_ms < s->stop_by_ms)
        return s->stop_by_ms;
    if (!stuck && now_ms < last)
        return now_ms + STUCK_MS;
    log_line(LOG_LEVEL_ERROR, "supervisor", "the engine did not stop within %" PRIu64 " ms%s: it is killed",
             s->options->stop_limit_ms, stuck ? ", a turn does not end" : "");
    s->killed = true;
    if (stuck) /* so that the instance becomes a crash candidate */
        crash_say_endless(s->page, place, now_ms - turn);
    (void)kill(s->child, SIGKILL);
    return UINT64_MAX;
}

/* ---- one child ---- */

static int supervisor_wait_ms(uint64_t until_ms, uint64_t now_ms)
{
    if (until_ms == UINT64_MAX)
        return -1;
    return until_ms <= now_ms ? 0 : (int)(until_ms - now_ms < 60000 ? until_ms - now_ms : 60000);
}

static void hear_child(struct supervisor *s)
{
    char byte;
    ssize_t const n = recv(s->socket, &byte, 1, MSG_DONTWAIT);
    if (n == 1 && atomic_load(&s->page->crash.state) == CRASH_REPORTED)
        start_reporter(s, 0);
    else if (n == 0)
        close_socket(s); /* the engine is dead, or user code has closed the socket */
}

static void supervisor_step(struct supervisor *s, uint64_t until_ms)
{
    struct pollfd waits[2] = {{.fd = s->signals, .events = POLLIN}, {.fd = s->socket, .events = POLLIN}};
    (void)poll(waits, 2, supervisor_wait_ms(until_ms, clock_monotonic_ms()));
    if (s->socket >= 0 && waits[1].revents != 0)
        hear_child(s);
    take_signals(s);
}

static void supervisor_live(struct supervisor *s)
{
    while (s->child > 0)
        supervisor_step(s, enforce_stop(s, clock_monotonic_ms()));
}

/* Whether its end is reported as a crash of code; not if it was killed from outside. */
static bool is_crash(const struct supervisor *s)
{
    if (atomic_load(&s->page->returned))
        return false;
    if (atomic_load(&s->page->crash.state) != CRASH_UNREPORTED)
        return true;
    return !s->stopping || s->killed;
}

static void finish_report(struct supervisor *s)
{
    start_reporter(s, s->child_status);
    while (s->reporter > 0 && clock_monotonic_ms() < s->report_by_ms)
        supervisor_step(s, s->report_by_ms);
    if (s->reporter > 0) {
        (void)kill(s->reporter, SIGKILL);
        while (s->reporter > 0)
            supervisor_step(s, UINT64_MAX);
    }
}

/* ---- children in a row ---- */

/* Ends the supervisor like its child: with its exit code, or by its signal. */
_Noreturn static void end_like(const struct supervisor *s)
{
    int const status = s->child_status;
    if (s->killed)
        _exit(EXIT_GIVEN_UP);
    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    int const number = WTERMSIG(status);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    (void)signal(number, SIG_DFL);
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL);
    (void)raise(number);
    _exit(EXIT_SIGNAL + number); /* process 1 of a container survives the signal */
}

static bool was_asked(int status)
{
    return WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT ||
                                   WTERMSIG(status) == SIGHUP || WTERMSIG(status) == SIGQUIT);
}

/* Milliseconds to the next start: 0 after a crash that an instance has caused, since that instance first runs
 * in a forked process. */
static uint64_t next_delay(struct supervisor *s)
{
    bool const explained =
        s->stored && s->page->crash.place >= 0 && atomic_load(&s->page->crash.state) != CRASH_UNREPORTED;
    if (explained)
        return 0;
    if (clock_monotonic_ms() >= s->born_ms + LIVED_MS)
        s->deaths = 0;
    s->deaths++;
    uint64_t delay = s->deaths < 2 ? 0 : DELAY_FIRST_MS;
    for (unsigned i = 2; i < s->deaths && delay < DELAY_MAX_MS; i++)
        delay *= 2;
    return delay < DELAY_MAX_MS ? delay : DELAY_MAX_MS;
}

static void pause_before_next(struct supervisor *s)
{
    uint64_t const delay = next_delay(s), until = clock_monotonic_ms() + delay;
    if (s->deaths > DEATHS_MAX) {
        log_line(
            LOG_LEVEL_ERROR, "supervisor",
            "the engine has died %u times in a row, each time within %d s, and no orchestration's code is "
            "to blame: giving up; look at the log above",
            s->deaths, LIVED_MS / 1000);
        end_like(s);
    }
    log_line(LOG_LEVEL_WARN, "supervisor", "the engine is started again%s",
             delay == 0 ? "" : " after a pause");
    while (!s->stopping && clock_monotonic_ms() < until)
        supervisor_step(s, until);
}

/* True: start it again. */
static bool supervisor_check(struct supervisor *s)
{
    bool const crash = is_crash(s) && !was_asked(s->child_status);
    if (crash)
        finish_report(s);
    close_socket(s);
    if (!crash || s->stopping)
        return false;
    pause_before_next(s);
    if (s->stopping)
        s->child_status = 0; /* nothing runs: it has stopped as requested */
    return !s->stopping;
}

thole_status supervise(const struct host_options *options, struct supervised *ret, thole_error *reterr)
{
    struct supervisor s = {.options = options, .signals = -1, .socket = -1};
    char name[16] = "";
    int const others = process_other_threads();
    *ret = (struct supervised){.socket = -1};
    if (others > 0)
        return thole_fail(reterr, THOLE_UNSUPPORTED,
                          "this program has started %d threads before thole_main()", others);
    process_open_standard_files();
    s.page = crash_page_create();
    if (s.page == NULL)
        return thole_fail(reterr, THOLE_UNSUPPORTED, "the system gives none: %s", strerror(errno));
    ret->page = s.page;
    open_signals(&s);
    (void)prctl(PR_GET_NAME, name);
    (void)prctl(PR_SET_NAME, "thole-supervise");
    do {
        if (fork_child(&s, &ret->socket)) {
            (void)prctl(PR_SET_NAME, name);
            return THOLE_OK;
        }
        if (s.child <= 0 || s.signals < 0)
            break;
        supervisor_live(&s);
    } while (supervisor_check(&s));
    if (s.child == 0 && s.signals >= 0)
        end_like(&s);
    int const error = errno; /* of the failed start */
    if (s.child > 0)
        (void)kill(s.child, SIGKILL);
    close_socket(&s);
    forget_signals(&s, false);
    (void)prctl(PR_SET_NAME, name);
    crash_page_destroy(s.page);
    *ret = (struct supervised){.socket = -1};
    return thole_fail(reterr, THOLE_UNSUPPORTED, "the system gives none: %s", strerror(error));
}

void supervised_returns(const struct supervised *self)
{
    if (self->page == NULL)
        return;
    crash_unlisten();
    atomic_store(&self->page->returned, true);
}
