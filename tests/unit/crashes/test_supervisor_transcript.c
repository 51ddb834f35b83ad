/* A whole supervisor, with every call to the system played. supervisor.transcript has scripts ("$ …") of
 * steps with "|" between them, each followed by what the supervisor did, by its clock in milliseconds. With
 * THOLE_WRITE_TRANSCRIPT=1 in the environment the file is written again, to be read and committed. Steps:
 *   MS STEP                       the step happens at MS; else at once
 *   limits STOP_MS GRACE_MS; without threads|page|socket|signals|fork N; child [orphaned]
 *                                 before the supervisor begins
 *   exits N; dies N               the engine's process ends; the first one is process 100
 *   reporter N; reporter dies     the running crash reporter ends
 *   orphan                        another process ends
 *   byte; hangup                  on the engine's socket
 *   reports KIND NUMBER PLACE     the engine writes into its page
 *   runs PLACE SINCE; returns     likewise
 *   signal N                      the supervisor gets the signal */
#include "clock.h"
#include "crash_page.h"
#include "crash_report.h"
#include "logged.h"
#include "process_early.h"
#include "supervisor.h"
#include "thole_cunit.h"
#include "transcript.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/crashes/supervisor.transcript"
enum { SELF = 50, SIGNALS = 600, SOCKET = 500, FIRST_PID = 100, ENDED_MAX = 8, TURNS_MAX = 500 };

static struct {
    FILE *said;
    uint64_t now_ms;
    const char *next; /* of the script */
    struct host_options options;
    bool played, child, orphaned, no_threads_but_one, no_page, no_socket, no_signals;
    unsigned forks, fails_at, turns; /* fails_at: the fork that fails; 0: none */
    pid_t last, engine;
    struct {
        pid_t pid;
        int status;
    } ended[ENDED_MAX];
    size_t ended_len;
    int signal;  /* waits to be read; 0: none */
    char socket; /* 'b' a byte waits, 'h' it is closed, 0: silent */
    struct crash_page *page;
    jmp_buf end;
} play;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)fprintf(play.said, "%6" PRIu64 " ", play.now_ms);
    (void)vfprintf(play.said, fmt, args);
    (void)fputc('\n', play.said);
    va_end(args);
}

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...) THOLE_PRINTF(4, 5);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    logged_text(text, sizeof text, fields, fmt, args);
    va_end(args);
    say("logs %d %s: %s", (int)level, area, text);
}

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

/* ---- steps ---- */

static void ends(pid_t pid, int status)
{
    play.ended[play.ended_len].pid = pid;
    play.ended[play.ended_len++].status = status;
}

static bool prepares(const char *verb, const char *rest)
{
    char word[32] = "";
    unsigned long long stop_ms = 0, grace_ms = 0;
    if (strcmp(verb, "limits") == 0 && sscanf(rest, "%llu %llu", &stop_ms, &grace_ms) == 2) {
        play.options.stop_limit_ms = stop_ms;
        play.options.grace_ms = grace_ms;
    } else if (strcmp(verb, "child") == 0) {
        play.child = true;
        play.orphaned = strcmp(rest, "orphaned") == 0;
    } else if (strcmp(verb, "without") == 0) {
        (void)sscanf(rest, "%31s %u", word, &play.fails_at);
        play.no_threads_but_one = strcmp(word, "threads") == 0;
        play.no_page = strcmp(word, "page") == 0;
        play.no_socket = strcmp(word, "socket") == 0;
        play.no_signals = strcmp(word, "signals") == 0;
    } else {
        return false;
    }
    return true;
}

static void happens(const char *verb, const char *rest)
{
    int const number = (int)strtol(rest, NULL, 10);
    int kind = 0, which = 0, place = 0;
    unsigned long long since = 0;
    if (strcmp(verb, "exits") == 0) {
        ends(play.engine, number << 8);
    } else if (strcmp(verb, "dies") == 0) {
        ends(play.engine, number);
    } else if (strcmp(verb, "reporter") == 0) {
        ends(play.last, rest[0] == 'd' ? SIGKILL : number << 8);
    } else if (strcmp(verb, "orphan") == 0) {
        ends(7, 0);
    } else if (strcmp(verb, "byte") == 0 || strcmp(verb, "hangup") == 0) {
        play.socket = verb[0];
    } else if (strcmp(verb, "signal") == 0) {
        play.signal = number;
    } else if (strcmp(verb, "returns") == 0) {
        atomic_store(&play.page->returned, true);
    } else if (sscanf(rest, "%d %d %d", &kind, &which, &place) == 3) {
        play.page->crash.kind = (enum crash_kind)kind;
        play.page->crash.number = which;
        play.page->crash.place = place;
        atomic_store(&play.page->crash.state, CRASH_REPORTED);
    } else if (sscanf(rest, "%d %llu", &place, &since) == 2) {
        play.page->places_len = 3;
        atomic_store(&play.page->places[place].since_ms, since);
    } else {
        CU_FAIL("an unknown step");
    }
}

/* The next step, if it is due by @p until_ms; true: it has happened. */
static bool next_step(uint64_t until_ms)
{
    char verb[32] = "", *end = NULL;
    int at = 0;
    if (play.next == NULL)
        return false;
    uint64_t const ms = strtoull(play.next, &end, 10);
    bool const timed = end != play.next;
    if (timed && ms > until_ms)
        return false;
    if (timed && ms > play.now_ms)
        play.now_ms = ms;
    const char *const text = timed ? end + 1 : play.next;
    char rest[64] = "";
    (void)sscanf(text, "%31s%n", verb, &at);
    size_t const len = strcspn(text + at, "|");
    (void)snprintf(rest, sizeof rest, "%.*s", (int)len, text + at + (text[at] == ' '));
    rest[strcspn(rest, "|")] = '\0';
    while (rest[0] != '\0' && rest[strlen(rest) - 1] == ' ')
        rest[strlen(rest) - 1] = '\0';
    play.next = strstr(text, " | ");
    play.next = play.next == NULL ? NULL : play.next + 3;
    if (!prepares(verb, rest))
        happens(verb, rest);
    return true;
}

/* ---- the system ---- */

_Noreturn static void leave(void)
{
    longjmp(play.end, 1);
}

_Noreturn void __real__exit(int code);
_Noreturn void __wrap__exit(int code)
{
    if (!play.played)
        __real__exit(code);
    say("_exit(%d)", code);
    leave();
}

int __real_raise(int number);
int __wrap_raise(int number)
{
    if (!play.played)
        return __real_raise(number);
    say("raises %d", number);
    return 0;
}

sighandler_t __wrap_signal(int number, sighandler_t handler)
{
    say("signal(%d, %s)", number, handler == SIG_DFL ? "as ever" : "?");
    return SIG_DFL;
}

static void say_set(const char *what, const sigset_t *set)
{
    (void)fprintf(play.said, "%6" PRIu64 " %s", play.now_ms, what);
    for (int i = 1; i < 32; i++)
        if (sigismember(set, i) == 1)
            (void)fprintf(play.said, " %d", i);
    (void)fputc('\n', play.said);
}

/* Before it began SIGQUIT was blocked. */
int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    say_set(how == SIG_BLOCK ? "blocks" : how == SIG_UNBLOCK ? "unblocks" : "has blocked", set);
    if (before != NULL) {
        sigemptyset(before);
        sigaddset(before, SIGQUIT);
    }
    return 0;
}

/* Before it began SIGCHLD was ignored. */
int __wrap_sigaction(int number, const struct sigaction *to, struct sigaction *before)
{
    if (before != NULL)
        *before = (struct sigaction){.sa_handler = SIG_IGN};
    say("sigaction(%d, %s)", number, to->sa_handler == SIG_DFL ? "as ever" : "ignored");
    return 0;
}

int __wrap_signalfd(int fd, const sigset_t *set, int flags)
{
    CU_ASSERT_TRUE(fd == -1 && (flags & SFD_CLOEXEC) != 0 && (flags & SFD_NONBLOCK) != 0);
    say_set("reads signals", set);
    errno = EMFILE;
    return play.no_signals ? -1 : SIGNALS;
}

int __wrap_socketpair(int domain, int type, int protocol, int ends_of[2])
{
    CU_ASSERT_TRUE(domain == AF_UNIX && type == (SOCK_STREAM | SOCK_CLOEXEC) && protocol == 0);
    if (play.no_socket) {
        errno = EMFILE;
        return -1;
    }
    ends_of[0] = SOCKET;
    ends_of[1] = SOCKET + 1;
    play.socket = 0;
    return 0;
}

pid_t __real_fork(void);
pid_t __wrap_fork(void)
{
    if (!play.played)
        return __real_fork();
    play.forks++;
    if (play.forks == play.fails_at) {
        errno = EAGAIN;
        say("cannot fork");
        return -1;
    }
    bool const clean = atomic_load(&play.page->crash.state) == 0 && play.page->places_len == 0 &&
                       !atomic_load(&play.page->returned);
    play.last = FIRST_PID + (pid_t)play.forks - 1;
    say("forks %d%s", (int)play.last, clean ? ", the page is clean" : "");
    if (play.forks == 1 || clean)
        play.engine = play.last;
    return play.child ? 0 : play.last;
}

pid_t __wrap_getpid(void)
{
    return SELF;
}

pid_t __wrap_getppid(void)
{
    return play.orphaned ? 1 : SELF;
}

int __wrap_prctl(int option, ...)
{
    va_list args;
    va_start(args, option);
    char *const name = va_arg(args, char *);
    va_end(args);
    if (option == PR_GET_NAME)
        (void)snprintf(name, 16, "own name");
    else if (option == PR_SET_NAME)
        say("is called %s", name);
    else
        say("prctl(%s, %d)", option == PR_SET_PDEATHSIG ? "death" : "?", (int)(intptr_t)name);
    return 0;
}

int __real_close(int fd);
int __wrap_close(int fd)
{
    if (fd < SOCKET || fd > SIGNALS)
        return __real_close(fd);
    say("closes %s", fd == SIGNALS ? "its signals" : fd == SOCKET ? "its end" : "the engine's end");
    return 0;
}

int __wrap_kill(pid_t pid, int number)
{
    say("kills %d with %d", (int)pid, number);
    if (pid == play.last && number == SIGKILL)
        ends(pid, SIGKILL);
    return 0;
}

/* Time passes here: steps that are due until the call would return happen, one at a time. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct pollfd *volatile waits = fds; /* volatile: the compiler does not know that it is read, too */
    uint64_t const until_ms = timeout_ms < 0 ? UINT64_MAX : play.now_ms + (uint64_t)timeout_ms;
    CU_ASSERT_TRUE(n == 2 && waits[0].fd == SIGNALS && waits[0].events == POLLIN &&
                   waits[1].events == POLLIN);
    if (play.turns++ > TURNS_MAX) {
        say("goes on for ever");
        leave();
    }
    if (play.ended_len == 0 && !next_step(until_ms)) {
        if (timeout_ms < 0) {
            say("waits for ever");
            leave();
        }
        play.now_ms = until_ms;
        return 0;
    }
    waits[0].revents = play.signal != 0 || play.ended_len > 0 ? POLLIN : 0;
    waits[1].revents = waits[1].fd >= 0 && play.socket != 0 ? POLLIN : 0;
    return 1;
}

ssize_t __wrap_recv(int fd, void *to, size_t len, int flags)
{
    CU_ASSERT_TRUE(fd == SOCKET && len == 1 && flags == MSG_DONTWAIT);
    char const what = play.socket;
    *(char *)to = 'x';
    if (what == 'b')
        play.socket = 0;
    errno = EAGAIN;
    return what == 'b' ? 1 : what == 'h' ? 0 : -1;
}

ssize_t __real_read(int fd, void *to, size_t len);
ssize_t __wrap_read(int fd, void *to, size_t len)
{
    if (fd != SIGNALS)
        return __real_read(fd, to, len);
    errno = EAGAIN;
    if (play.signal == 0)
        return -1;
    memset(to, 0, len);
    ((struct signalfd_siginfo *)to)->ssi_signo = (uint32_t)play.signal;
    play.signal = 0;
    return (ssize_t)len;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    CU_ASSERT_TRUE(pid == -1 && options == WNOHANG);
    if (play.ended_len == 0)
        return 0;
    pid_t const ended = play.ended[0].pid;
    *status = play.ended[0].status;
    play.ended_len--;
    memmove(play.ended, play.ended + 1, play.ended_len * sizeof play.ended[0]);
    return ended;
}

int __wrap_process_other_threads(void)
{
    return play.no_threads_but_one ? 2 : 0;
}

void __wrap_process_open_standard_files(void)
{
}

struct crash_page *__real_crash_page_create(void);
struct crash_page *__wrap_crash_page_create(void)
{
    errno = ENOMEM;
    play.page = play.no_page ? NULL : __real_crash_page_create();
    return play.page;
}

void __real_crash_page_destroy(struct crash_page *page);
void __wrap_crash_page_destroy(struct crash_page *page)
{
    CU_ASSERT_PTR_EQUAL(page, play.page);
    say("frees the page");
    __real_crash_page_destroy(page);
    play.page = NULL;
}

/* ---- the script ---- */

static void begin_script(const char *line)
{
    char verb[32] = "";
    play.next = line;
    while (play.next != NULL && sscanf(play.next, "%31s", verb) == 1 &&
           (strcmp(verb, "limits") == 0 || strcmp(verb, "without") == 0 || strcmp(verb, "child") == 0))
        (void)next_step(0);
}

static void play_line(const char *line, FILE *to)
{
    struct supervised self;
    thole_error error = {.status = THOLE_OK};
    memset(&play, 0, sizeof play);
    play.said = to;
    play.now_ms = 1000;
    play.options.stop_limit_ms = 3000;
    play.options.grace_ms = 200;
    begin_script(line);
    if (setjmp(play.end) == 0) {
        play.played = true;
        thole_status const status = supervise(&play.options, &self, &error);
        play.played = false;
        say("returns %s %s: socket %d, %s", thole_status_name(status), error.text, self.socket,
            self.page == NULL ? "no page" : "a page");
        if (status == THOLE_OK) {
            CU_ASSERT_FALSE(atomic_load(&self.page->returned));
            supervised_returns(&self);
            CU_ASSERT_TRUE(atomic_load(&self.page->returned));
        } else {
            supervised_returns(&self);
        }
    }
    play.played = false;
    if (play.page != NULL)
        say("the page: state %d kind %d number %d place %d", atomic_load(&play.page->crash.state),
            (int)play.page->crash.kind, play.page->crash.number, play.page->crash.place);
    if (play.page != NULL)
        __real_crash_page_destroy(play.page);
    play.page = NULL;
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

/* Nothing stays of an earlier life in any byte of it. */
static void test_a_page_is_cleared(void)
{
    static struct crash_page clean;
    struct crash_page *const page = __real_crash_page_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(page);
    memset(page, 0xa5, sizeof *page);
    crash_page_clear(page);
    CU_ASSERT_EQUAL(memcmp(page, &clean, sizeof clean), 0);
    __real_crash_page_destroy(page);
}

static const struct thole_test tests[] = {{"transcript", test_transcript},
                                          {"a page is cleared", test_a_page_is_cleared}};
THOLE_TEST_MAIN("supervisor_transcript", tests)
