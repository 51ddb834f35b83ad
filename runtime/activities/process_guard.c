/* The guard of one process: waits for its end or ends it, with all its descendants. */
#include "process_early.h"
#include "process_parts.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LISTED_MAX = 256 };

struct guard {
    pid_t pid; /* of the process; it leads its group */
    int life, signals;
    bool ended; /* has been waited for */
    struct life_message end;
};

void process_life_send(int life, const struct life_message *message)
{
    ssize_t const n = send(life, message, sizeof *message, MSG_NOSIGNAL);
    (void)n; /* the worker has ended */
}

static void wait_for_it(struct guard *guard)
{
    struct rusage usage;
    int status;
    pid_t pid;
    while ((pid = wait4(guard->pid, &status, __WALL, &usage)) < 0 && errno == EINTR)
        ;
    if (pid != guard->pid)
        return;
    guard->ended = true;
    guard->end.status = status;
    guard->end.cpu_ms = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                        (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* Waits for ended children: the process, and orphans. The group is killed before the process is waited for:
 * until then its number cannot be reused. */
static void process_guard_reap(struct guard *guard)
{
    siginfo_t info;
    for (;;) {
        memset(&info, 0, sizeof info);
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 || info.si_pid == 0)
            return;
        if (info.si_pid != guard->pid) {
            (void)waitpid(info.si_pid, NULL, __WALL);
            guard->end.others += guard->ended;
            continue;
        }
        (void)kill(-guard->pid, SIGKILL);
        wait_for_it(guard);
    }
}

/* Kills all children until none is left: the children of each killed process become children of the guard.
 * Only processes that fork faster than this escape for a while. */
static void kill_descendants(struct guard *guard)
{
    pid_t pids[LISTED_MAX];
    for (;;) {
        int const n = process_children(getpid(), pids, LISTED_MAX);
        for (int i = 0; i < n; i++)
            (void)kill(pids[i], SIGKILL);
        pid_t const gone = waitpid(-1, NULL, (n > 0 ? 0 : WNOHANG) | __WALL);
        guard->end.others += gone > 0;
        if ((gone < 0 && errno != EINTR) || (gone == 0 && n < 0)) /* none are left, or not listed */
            return;
    }
}

static void process_guard_kill_all(struct guard *guard)
{
    if (!guard->ended) {
        (void)kill(-guard->pid, SIGKILL);
        (void)kill(guard->pid, SIGKILL); /* the process may have left its group */
        wait_for_it(guard);
    }
    kill_descendants(guard);
}

/* False: the process must be killed. */
static bool process_guard_take_wish(const struct guard *guard)
{
    char wish;
    ssize_t const n = recv(guard->life, &wish, 1, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n > 0 && wish == LIFE_TERMINATE)
        (void)kill(-guard->pid, SIGTERM);
    return n > 0;
}

static void process_guard_watch(struct guard *guard)
{
    struct pollfd waits[2] = {{.fd = guard->life, .events = POLLIN},
                              {.fd = guard->signals, .events = POLLIN}};
    bool wanted = true;
    while (wanted && !guard->ended) {
        struct signalfd_siginfo info;
        (void)poll(waits, 2, -1);
        while (read(guard->signals, &info, sizeof info) > 0)
            ;
        process_guard_reap(guard);
        if (waits[0].revents != 0)
            wanted = process_guard_take_wish(guard);
    }
}

void process_guard_main(const struct process_spawn *spawn)
{
    struct guard guard = {.life = spawn->fds[PROCESS_LIFE], .signals = spawn->signals};
    pid_t const self = getpid();
    (void)prctl(PR_SET_NAME, "thole-guard");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    guard.pid = fork();
    if (guard.pid == 0)
        process_child_main(spawn, self);
    guard.end = (struct life_message){.kind = LIFE_ENDED, .pid = guard.pid};
    if (guard.pid < 0) {
        guard.end.error = errno;
    } else {
        (void)setpgid(guard.pid, guard.pid); /* the process does the same: the first one counts */
        process_close_all_but((int[]){guard.life, guard.signals}, 2);
        process_life_send(guard.life, &(struct life_message){.kind = LIFE_STARTED, .pid = guard.pid});
        process_guard_watch(&guard);
        process_guard_kill_all(&guard);
    }
    process_life_send(guard.life, &guard.end);
    _exit(0);
}
