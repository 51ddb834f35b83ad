#include "server_process.h"
#include "clock.h"
#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 5, FAMILY_MAX = 256 };

void process_pause_ms(unsigned ms)
{
    struct timespec const span = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&span, NULL);
}

void process_arg(struct process *process, const char *fmt, ...)
{
    va_list args;
    assert(process->len < PROCESS_ARGS_MAX);
    va_start(args, fmt);
    int const n = vsnprintf(process->text[process->len], PROCESS_TEXT_BYTES, fmt, args);
    va_end(args);
    assert(n >= 0 && n < PROCESS_TEXT_BYTES);
    process->len++;
}

bool process_postgres_user(uid_t *ret_uid, gid_t *ret_gid)
{
    struct passwd entry, *found = NULL;
    char room[4096];
    *ret_uid = geteuid();
    *ret_gid = getegid();
    if (*ret_uid != 0)
        return true;
    if (getpwnam_r("postgres", &entry, room, sizeof room, &found) != 0 || found == NULL)
        return false;
    *ret_uid = found->pw_uid;
    *ret_gid = found->pw_gid;
    return true;
}

void process_last_line(const char *path, char *ret, size_t cap)
{
    char line[512];
    FILE *file = fopen(path, "re");
    assert(cap > 0);
    ret[0] = '\0';
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        size_t const len = strcspn(line, "\r\n");
        if (len > 0)
            (void)snprintf(ret, cap, "%.*s", (int)len, line);
    }
    if (file != NULL)
        (void)fclose(file);
}

/* The identity of the child; computed before the fork, after which only a few functions are safe. */
struct identity {
    bool change;
    uid_t uid;
    gid_t gid;
    pid_t parent;
};

static void server_process_become(const struct identity *who)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < 32; number++)
        (void)signal(number, SIG_DFL);
    setpgid(0, 0);
    if (who->change && (setgroups(0, NULL) != 0 || setgid(who->gid) != 0 || setuid(who->uid) != 0))
        _exit(126);
    /* After the change of user, which clears it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != who->parent)
        _exit(126);
    if (chdir("/") != 0) /* the caller's folder may be closed to user postgres */
        _exit(126);
}

static void server_process_child(const struct identity *who, int in, int out, char **argv)
{
    server_process_become(who);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(126);
    (void)close_range(3, ~0U, 0);
    execv(argv[0], argv);
    _exit(127);
}

thole_status process_spawn(const struct process *process, pid_t *ret_pid, thole_error *reterr)
{
    struct identity who = {.parent = getpid()};
    char *argv[PROCESS_ARGS_MAX + 1] = {NULL};
    assert(process->len > 0);
    for (size_t i = 0; i < process->len; i++)
        argv[i] = (char *)process->text[i];
    who.change = process->as_postgres && geteuid() == 0;
    if (process->as_postgres && !process_postgres_user(&who.uid, &who.gid))
        return thole_fail(reterr, THOLE_INVALID,
                          "Postgres does not run as root, and there is no user postgres to run it as");
    int const in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int const out = open(process->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    pid_t const pid = in >= 0 && out >= 0 ? fork() : -1;
    if (pid == 0)
        server_process_child(&who, in, out, argv);
    int const error = errno;
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    if (pid < 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "cannot start %s with log %s: %s", argv[0], process->log,
                          strerror(error));
    setpgid(pid, pid); /* the child does it too; whichever is first */
    *ret_pid = pid;
    return THOLE_OK;
}

thole_status process_run(const struct process *process, thole_error *reterr)
{
    pid_t pid;
    int status = 0;
    char line[256];
    THOLE_TRY(process_spawn(process, &pid, reterr));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return THOLE_OK;
    process_last_line(process->log, line, sizeof line);
    return thole_fail(reterr, THOLE_UNAVAILABLE, "%s failed: %s", process->text[0], line);
}

bool process_ended(pid_t pid)
{
    assert(pid > 0);
    pid_t const got = waitpid(pid, NULL, WNOHANG);
    return got == pid || (got < 0 && errno == ECHILD);
}

bool process_wait(pid_t pid, uint64_t wait_ms)
{
    uint64_t const end = clock_monotonic_ms() + wait_ms;
    while (!process_ended(pid)) {
        if (clock_monotonic_ms() >= end)
            return false;
        process_pause_ms(POLL_MS);
    }
    return true;
}

/* Parent of a process, or 0. The name, in parentheses, may hold anything. */
static pid_t parent_of(pid_t pid, char *ret_state)
{
    char path[64], line[512], state = 'X';
    int parent = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    bool const read = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL)
        (void)fclose(file);
    const char *after = read ? strrchr(line, ')') : NULL;
    if (after == NULL || sscanf(after + 1, " %c %d", &state, &parent) != 2)
        parent = 0;
    if (ret_state != NULL)
        *ret_state = state;
    return (pid_t)parent;
}

/* A signal that stops is on its way for a moment, longer on a busy machine. */
static void wait_stopped(pid_t pid)
{
    uint64_t const end = clock_monotonic_ms() + SERVER_WAIT_MS;
    char state = 'X';
    while (parent_of(pid, &state) != 0 && strchr("TtZX", state) == NULL && clock_monotonic_ms() < end)
        process_pause_ms(1);
}

static size_t server_process_children_of(pid_t pid, pid_t *ret, size_t cap)
{
    size_t n = 0;
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    while (dir != NULL && n < cap && (entry = readdir(dir)) != NULL) {
        pid_t const one =
            isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        if (one > 0 && parent_of(one, NULL) == pid)
            ret[n++] = one;
    }
    if (dir != NULL)
        closedir(dir);
    return n;
}

/* Of a zombie there is no such link any more. */
static bool works_in(pid_t pid, const char *dir)
{
    char path[64], cwd[PROCESS_TEXT_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%d/cwd", (int)pid);
    ssize_t const n = readlink(path, cwd, sizeof cwd);
    return n > 0 && (size_t)n == strlen(dir) && memcmp(cwd, dir, (size_t)n) == 0;
}

size_t process_within(const char *dir, pid_t *ret, size_t cap)
{
    size_t n = 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc != NULL && n < cap && (entry = readdir(proc)) != NULL) {
        pid_t const one =
            isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        if (one > 0 && works_in(one, dir))
            ret[n++] = one;
    }
    if (proc != NULL)
        closedir(proc);
    return n;
}

void process_signal(pid_t pid, int number)
{
    pid_t family[FAMILY_MAX];
    assert(pid > 0);
    size_t const n = server_process_children_of(pid, family, FAMILY_MAX);
    kill(-pid, number);
    for (size_t i = 0; i < n; i++)
        kill(family[i], number);
}

/* The children of what is killed become ours for this moment, so that they are reaped here and nothing stays.
 */
void process_kill9(pid_t pid)
{
    pid_t family[FAMILY_MAX];
    int adopting = 0;
    assert(pid > 0);
    (void)prctl(PR_GET_CHILD_SUBREAPER, &adopting);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    kill(pid, SIGSTOP); /* so that it makes no more of them */
    wait_stopped(pid);
    size_t const n = server_process_children_of(pid, family, FAMILY_MAX);
    kill(-pid, SIGKILL);
    for (size_t i = 0; i < n; i++)
        kill(family[i], SIGKILL);
    (void)process_wait(pid, SERVER_WAIT_MS);
    for (size_t i = 0; i < n; i++)
        (void)process_wait(family[i], SERVER_WAIT_MS);
    (void)prctl(PR_SET_CHILD_SUBREAPER, (unsigned long)adopting);
}
