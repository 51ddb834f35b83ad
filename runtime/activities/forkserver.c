/* The forkserver, and the worker's functions to start, use and stop it. */
#include "forkserver.h"
#include "environment.h"
#include "log.h"
#include "memory.h"
#include "process_early.h"
#include "process_end.h"
#include "process_parts.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
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

enum { STOP_WAIT_MS = 15000, STRAYS_MAX = 256 };

/* One request; the descriptors come beside it. */
struct request {
    uint64_t entry;
};
union request_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(PROCESS_FDS * sizeof(int))];
};

struct forkserver {
    int control;
    pid_t pid;
    void (*on_lost)(void);
    uint64_t memory_max;
    atomic_bool lost;
};

bool forkserver_is_needed(const thole_program *program)
{
    for (size_t i = 0; i < program->activities_len; i++) {
        const thole_activity_options *const options = program->activities[i].options;
        if (options != NULL && options->isolation == THOLE_ISOLATION_PROCESS)
            return true;
    }
    return false;
}

uint64_t forkserver_memory_max(const struct forkserver *forkserver, const thole_activity_options *options)
{
    return process_memory_max(options, forkserver->memory_max);
}

/* ---- the forkserver itself ---- */

struct server {
    const struct forkserver_options *options;
    int control, signals;
    pid_t *guards;
    size_t len, cap;
};

static void add_guard(struct server *server, pid_t pid)
{
    assert(pid > 0 && server->len <= server->cap);
    server->guards = memory_reserve(server->guards, &server->cap, server->len + 1, sizeof *server->guards);
    server->guards[server->len++] = pid;
}

static bool is_guard(const struct server *server, pid_t pid, size_t *ret_at)
{
    for (size_t i = 0; i < server->len; i++)
        if (server->guards[i] == pid) {
            *ret_at = i;
            return true;
        }
    return false;
}

/* Kills the processes of a guard that was killed, which are this process's children now. */
static void kill_strays(const struct server *server)
{
    pid_t pids[STRAYS_MAX];
    size_t at;
    int const n = process_children(getpid(), pids, STRAYS_MAX);
    for (int i = 0; i < n; i++)
        if (!is_guard(server, pids[i], &at))
            (void)kill(pids[i], SIGKILL);
}

/* False: there are no children any more. */
static bool forkserver_reap(struct server *server)
{
    pid_t pid;
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        size_t at;
        if (!is_guard(server, pid, &at))
            continue;
        server->guards[at] = server->guards[--server->len];
        if (WIFSIGNALED(status))
            log_line(LOG_LEVEL_WARN, "forkserver", "the guard of a process was killed by signal %d",
                     WTERMSIG(status));
    }
    kill_strays(server);
    return pid == 0 || errno != ECHILD;
}

static void fork_guard(struct server *server, size_t entry, const int fds[PROCESS_FDS])
{
    struct process_spawn spawn = {.options = server->options,
                                  .entry = &server->options->program->activities[entry],
                                  .signals = server->signals};
    memcpy(spawn.fds, fds, sizeof spawn.fds);
    pid_t const pid = fork();
    if (pid == 0)
        process_guard_main(&spawn);
    if (pid < 0)
        process_life_send(fds[PROCESS_LIFE], &(struct life_message){.kind = LIFE_ENDED, .error = errno});
    else
        add_guard(server, pid);
}

/* False: the worker has ended, or has closed the socket. */
static bool take_request(struct server *server)
{
    union request_control control;
    struct request request;
    int fds[PROCESS_FDS];
    struct iovec part = {&request, sizeof request};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t const n = recvmsg(server->control, &message, MSG_CMSG_CLOEXEC);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    const struct cmsghdr *const header = CMSG_FIRSTHDR(&message);
    size_t const len = header == NULL ? 0 : header->cmsg_len - CMSG_LEN(0);
    assert(len <= sizeof fds);
    if (len > 0)
        memcpy(fds, CMSG_DATA(header), len);
    if (n == (ssize_t)sizeof request && len == sizeof fds &&
        request.entry < server->options->program->activities_len)
        fork_guard(server, (size_t)request.entry, fds);
    for (size_t i = 0; i < len / sizeof fds[0]; i++) /* too few descriptors: closing tells the worker */
        (void)close(fds[i]);
    return true;
}

static void watch_children(struct server *server)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &child, NULL);
    server->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void wipe_in_argv(const struct forkserver_options *options)
{
    for (size_t i = 0; i < sizeof options->secrets / sizeof options->secrets[0]; i++)
        for (char **arg = options->argv; options->secrets[i] != NULL && *arg != NULL; arg++) {
            uintptr_t const from = (uintptr_t)*arg, at = (uintptr_t)options->secrets[i];
            size_t const len = strlen(*arg);
            if (at >= from && at - from < len)
                explicit_bzero(*arg + (at - from), len - (size_t)(at - from));
        }
}

/* They may be from a file of options. One in the environment that may stay is emptied, too. */
static void wipe_texts(const struct forkserver_options *options)
{
    for (size_t i = 0; i < sizeof options->secrets / sizeof options->secrets[0]; i++)
        if (options->secrets[i] != NULL)
            environment_erase((char *)(uintptr_t)options->secrets[i], strlen(options->secrets[i]));
}

static bool any_keeps_env(const thole_program *program)
{
    for (size_t i = 0; i < program->activities_len; i++)
        if (program->activities[i].options != NULL && program->activities[i].options->keep_env)
            return true;
    return false;
}

_Noreturn static void forkserver_serve_parent(const struct forkserver_options *options, int control)
{
    struct server server = {.options = options, .control = control};
    struct pollfd waits[2];
    bool wanted = true, children = true;
    process_settle("thole-forks", &control, 1);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    watch_children(&server);
    wipe_in_argv(options);
    if (!any_keeps_env(options->program)) {
        environment_keep(options->env);
        wipe_texts(options);
    }
    while (wanted || children) {
        struct signalfd_siginfo info;
        waits[0] = (struct pollfd){.fd = wanted ? control : -1, .events = POLLIN};
        waits[1] = (struct pollfd){.fd = server.signals, .events = POLLIN};
        (void)poll(waits, 2, -1);
        while (read(server.signals, &info, sizeof info) > 0)
            ;
        if (waits[0].revents != 0)
            wanted = take_request(&server);
        children = forkserver_reap(&server);
    }
    _exit(0);
}

/* ---- the worker's side ---- */

/* A fork copies locks that other threads hold. */
static void warn_of_threads(void)
{
    int const others = process_other_threads();
    if (others > 0)
        log_line(LOG_LEVEL_WARN, "forkserver",
                 "this program has started %d threads before thole_main(): activities in processes of their "
                 "own may hang on what these had locked",
                 others);
}

thole_status forkserver_start(const struct forkserver_options *options, struct forkserver **ret,
                              thole_error *reterr)
{
    int ends[2];
    process_open_standard_files();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return thole_fail(reterr, THOLE_NOMEM, "no socket for the forkserver: %s", strerror(errno));
    struct forkserver *const forkserver = memory_new(sizeof *forkserver);
    forkserver->on_lost = options->lost;
    forkserver->memory_max = options->memory_max;
    warn_of_threads();
    (void)fflush(NULL); /* or buffered output would be written twice */
    forkserver->pid = fork();
    if (forkserver->pid == 0) {
        (void)close(ends[0]);
        forkserver_serve_parent(options, ends[1]);
    }
    int const error = errno;
    (void)close(ends[1]);
    forkserver->control = ends[0];
    if (forkserver->pid < 0) {
        (void)close(ends[0]);
        free(forkserver);
        return thole_fail(reterr, THOLE_NOMEM, "no process for the forkserver: %s", strerror(error));
    }
    *ret = forkserver;
    return THOLE_OK;
}

void forkserver_stop(struct forkserver *forkserver)
{
    if (forkserver == NULL)
        return;
    struct pollfd gone = {.fd = forkserver->control, .events = POLLIN};
    (void)shutdown(forkserver->control, SHUT_WR);
    if (poll(&gone, 1, STOP_WAIT_MS) == 0) {
        log_line(LOG_LEVEL_ERROR, "forkserver", "some processes did not end within %d ms of SIGKILL",
                 STOP_WAIT_MS);
        (void)kill(forkserver->pid, SIGKILL);
    }
    while (waitpid(forkserver->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    (void)close(forkserver->control);
    free(forkserver);
}

bool forkserver_is_lost(const struct forkserver *forkserver)
{
    return atomic_load(&forkserver->lost);
}

thole_status forkserver_spawn(struct forkserver *forkserver, size_t entry, const int fds[PROCESS_FDS],
                              thole_error *reterr)
{
    struct request request = {.entry = entry};
    union request_control control;
    struct iovec part = {&request, sizeof request};
    for (size_t i = 0; i < PROCESS_FDS; i++)
        assert(fds[i] >= 0);
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    memset(&control, 0, sizeof control);
    struct cmsghdr *const header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(PROCESS_FDS * sizeof(int))};
    memcpy(CMSG_DATA(header), fds, PROCESS_FDS * sizeof(int));
    ssize_t n;
    while ((n = sendmsg(forkserver->control, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    if (n >= 0)
        return THOLE_OK;
    bool const lost = errno == EPIPE || errno == ECONNRESET;
    if (lost && !atomic_exchange(&forkserver->lost, true))
        forkserver->on_lost();
    return lost ? thole_fail(reterr, THOLE_UNAVAILABLE, "the forkserver has died")
                : thole_fail(reterr, THOLE_NOMEM, "asking the forkserver: %s", strerror(errno));
}
