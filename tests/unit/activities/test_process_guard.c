/* The guard of a process, with every call to the system played. process_guard.transcript has scripts ("$ …")
 * of steps with "|" between them, each followed by the calls of the guard. With THOLE_WRITE_TRANSCRIPT=1 in
 * the environment the file is written again, to be read and committed. Steps:
 *   without fork|list|wait   before the guard begins: such calls fail
 *   ends CODE [PID]          the process (42) ends; it has used 1.25 s, and leaves the zombie PID
 *   dies SIGNAL [PID]        the process dies of a signal
 *   orphan PID               the guard has another child, which lives
 *   zombie PID               the guard has another child, which has ended
 *   forks PID PID2           a child whose child PID2 becomes the guard's when PID is killed
 *   hidden PID               a child that the next list of children lacks
 *   wish t|x|none|hangup     what the worker asks for
 *   interrupted              a signal interrupts the next wait
 *   crowd N                  the guard gets N more children */
#include "process_early.h"
#include "process_parts.h"
#include "thole_cunit.h"
#include "transcript.h"
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/activities/process_guard.transcript"
enum { SELF = 10, PROCESS = 42, LIFE = 500, SIGNALS = 501, CHILDREN_MAX = 700, CALLS_MAX = 3000 };

struct child {
    pid_t pid, then; /* then: becomes a child when this one is killed */
    bool ended, hidden;
    int status;
};
static struct {
    FILE *said;
    const char *next;
    bool played, no_fork, no_list, no_wait, interrupted;
    struct child children[CHILDREN_MAX];
    size_t len;
    char wish; /* 0: none; 'h': closed */
    unsigned calls;
    jmp_buf end;
} play;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)fputs("  ", play.said);
    (void)vfprintf(play.said, fmt, args);
    (void)fputc('\n', play.said);
    va_end(args);
}

_Noreturn static void leave(const char *why)
{
    say("%s", why);
    longjmp(play.end, 1);
}

static void add(pid_t pid, bool ended, bool hidden, pid_t then)
{
    play.children[play.len++] = (struct child){.pid = pid, .ended = ended, .hidden = hidden, .then = then};
}

static struct child *child_of(pid_t pid)
{
    for (size_t i = 0; i < play.len; i++)
        if (play.children[i].pid == pid)
            return &play.children[i];
    return NULL;
}

static void drop(struct child *child)
{
    memmove(child, child + 1, (size_t)(&play.children[play.len] - child - 1) * sizeof *child);
    play.len--;
}

/* ---- steps ---- */

static void happens(const char *verb, const char *rest)
{
    int first = 0, second = 0;
    (void)sscanf(rest, "%d %d", &first, &second);
    if (strcmp(verb, "without") == 0) {
        play.no_fork |= strncmp(rest, "fork", 4) == 0;
        play.no_list |= strncmp(rest, "list", 4) == 0;
        play.no_wait |= strncmp(rest, "wait", 4) == 0;
    } else if (strcmp(verb, "ends") == 0 || strcmp(verb, "dies") == 0) {
        child_of(PROCESS)->ended = true;
        child_of(PROCESS)->status = verb[0] == 'e' ? first << 8 : first;
        if (second != 0)
            add(second, true, false, 0);
    } else if (strcmp(verb, "wish") == 0) {
        play.wish = rest[0];
    } else if (strcmp(verb, "interrupted") == 0) {
        play.interrupted = true;
    } else if (strcmp(verb, "crowd") == 0) {
        for (int i = 0; i < first; i++)
            add(1000 + i, false, false, 0);
    } else {
        add(first, strcmp(verb, "zombie") == 0, strcmp(verb, "hidden") == 0, second);
    }
}

static bool next_step(void)
{
    char verb[32] = "";
    int at = 0;
    if (play.next == NULL || sscanf(play.next, "%31s%n", verb, &at) != 1)
        return false;
    const char *const rest = play.next + at + (play.next[at] == ' ');
    play.next = strstr(play.next, " | ");
    play.next = play.next == NULL ? NULL : play.next + 3;
    happens(verb, rest);
    return true;
}

/* ---- the system ---- */

pid_t __real_fork(void);
pid_t __wrap_fork(void)
{
    if (!play.played)
        return __real_fork();
    errno = EAGAIN;
    if (play.no_fork)
        return -1;
    add(PROCESS, false, false, 0);
    return PROCESS;
}

_Noreturn void __real__exit(int code);
_Noreturn void __wrap__exit(int code)
{
    if (!play.played)
        __real__exit(code);
    say("_exit(%d)", code);
    longjmp(play.end, 1);
}

pid_t __wrap_getpid(void)
{
    return SELF;
}

int __wrap_setpgid(pid_t pid, pid_t group)
{
    say("setpgid(%d, %d)", (int)pid, (int)group);
    return 0;
}

int __wrap_prctl(int option, ...)
{
    va_list args;
    va_start(args, option);
    char *const value = va_arg(args, char *);
    va_end(args);
    if (option == PR_SET_NAME)
        say("is called %s", value);
    else
        say("prctl(%s, %d)", option == PR_SET_CHILD_SUBREAPER ? "subreaper" : "?", (int)(intptr_t)value);
    return 0;
}

void __wrap_process_close_all_but(const int *kept, size_t len)
{
    say("keeps %d and %d of %zu", kept[0], kept[1], len);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
    const struct life_message *const m = bytes;
    CU_ASSERT_TRUE(fd == LIFE && len == sizeof *m && flags == MSG_NOSIGNAL);
    say("sends %s: pid %d status %d cpu %d ms, %u others, error %d",
        m->kind == LIFE_STARTED ? "started"
        : m->kind == LIFE_ENDED ? "ended"
                                : "?",
        (int)m->pid, m->status, (int)m->cpu_ms, (unsigned)m->others, m->error);
    return (ssize_t)len;
}

static void killed(struct child *child)
{
    if (child->then != 0)
        add(child->then, false, false, 0);
    child->then = 0;
    if (!child->ended)
        child->status = SIGKILL;
    child->ended = true;
}

int __real_kill(pid_t pid, int number);
int __wrap_kill(pid_t pid, int number)
{
    if (!play.played)
        return __real_kill(pid, number);
    if (pid < 1000)
        say("kills %d with %d", (int)pid, number);
    struct child *const child = child_of(pid < 0 ? -pid : pid);
    CU_ASSERT_PTR_NOT_NULL(child); /* else the number may be another's by now */
    if (child != NULL && number == SIGKILL && pid > 0)
        killed(child);
    return 0;
}

int __wrap_process_children(pid_t parent, pid_t *to, int max)
{
    int n = 0;
    CU_ASSERT_EQUAL(parent, SELF);
    if (play.calls++ > CALLS_MAX)
        leave("goes on for ever");
    if (play.no_list)
        return -1;
    for (size_t i = 0; i < play.len && n < max; i++) {
        if (!play.children[i].hidden)
            to[n++] = play.children[i].pid;
        play.children[i].hidden = false;
    }
    if (n <= 3)
        say("lists %d children", n);
    return n;
}

static pid_t wait_for(pid_t pid, int *status, int options)
{
    CU_ASSERT_TRUE((options & __WALL) != 0);
    if (play.interrupted) {
        play.interrupted = false;
        errno = EINTR;
        return -1;
    }
    for (size_t i = 0; i < play.len; i++)
        if (play.children[i].ended && (pid == -1 || play.children[i].pid == pid)) {
            pid_t const gone = play.children[i].pid;
            if (status != NULL)
                *status = play.children[i].status;
            if (gone < 1000)
                say("waits for %d", (int)gone);
            drop(&play.children[i]);
            return gone;
        }
    errno = ECHILD;
    if (play.len == 0 || (pid > 0 && child_of(pid) == NULL))
        return -1;
    if ((options & WNOHANG) == 0)
        leave("waits for ever");
    if (play.calls++ > CALLS_MAX)
        leave("goes on for ever");
    return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    return wait_for(pid, status, options);
}

pid_t __wrap_wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    usage->ru_utime = (struct timeval){1, 50000};
    usage->ru_stime = (struct timeval){0, 200000};
    if (play.no_wait) {
        errno = ECHILD;
        drop(child_of(PROCESS));
        return -1;
    }
    return wait_for(pid, status, options);
}

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    (void)id;
    CU_ASSERT_TRUE(type == P_ALL && options == (WEXITED | WNOHANG | WNOWAIT | __WALL));
    for (size_t i = 0; i < play.len; i++)
        if (play.children[i].ended) {
            info->si_pid = play.children[i].pid;
            return 0;
        }
    return play.len == 0 ? -1 : 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct pollfd *volatile waits = fds; /* volatile: the compiler does not know that it is read, too */
    CU_ASSERT_TRUE(n == 2 && waits[0].fd == LIFE && waits[1].fd == SIGNALS && timeout_ms == -1);
    CU_ASSERT_TRUE(waits[0].events == POLLIN && waits[1].events == POLLIN);
    if (!next_step())
        leave("waits for ever");
    waits[0].revents = play.wish == 0 ? 0 : play.wish == 'h' ? POLLIN | POLLHUP : POLLIN;
    return 1;
}

ssize_t __wrap_recv(int fd, void *to, size_t len, int flags)
{
    CU_ASSERT_TRUE(fd == LIFE && len == 1 && flags == MSG_DONTWAIT);
    char const wish = play.wish;
    play.wish = 0;
    *(char *)to = (char)(wish == 't' ? LIFE_TERMINATE : 'x');
    errno = wish == 'n' ? EAGAIN : wish == 'i' ? EINTR : ECONNRESET;
    return wish == 'h' ? 0 : wish == 'n' || wish == 'i' || wish == 'r' ? -1 : 1;
}

ssize_t __real_read(int fd, void *to, size_t len);
ssize_t __wrap_read(int fd, void *to, size_t len)
{
    errno = EAGAIN;
    return fd == SIGNALS ? -1 : __real_read(fd, to, len);
}

/* ---- the script ---- */

static void play_line(const char *line, FILE *to)
{
    struct process_spawn spawn = {.signals = SIGNALS};
    memset(&play, 0, sizeof play);
    play.said = to;
    play.next = line;
    spawn.fds[PROCESS_LIFE] = LIFE;
    while (play.next != NULL && strncmp(play.next, "without", 7) == 0)
        (void)next_step();
    play.played = true;
    if (setjmp(play.end) == 0)
        process_guard_main(&spawn);
    play.played = false;
    for (size_t i = 0; i < play.len; i++)
        say("left: %d", (int)play.children[i].pid);
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

static const struct thole_test tests[] = {{"transcript", test_transcript}};
THOLE_TEST_MAIN("process_guard", tests)
