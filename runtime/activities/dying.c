#include "dying.h"
#include "activity_run.h"
#include "fatal_signals.h"
#include "thread_pointer.h"
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One for the process, since signal handlers are process-wide. The page is NULL when nothing is reported. */
static struct {
    _Atomic(struct worker_crash_page *) page;
    pid_t pid; /* a process that a handler has forked is not this worker */
    int reporter;
    struct stat socket; /* which file that is */
    atomic_int held;    /* a connection; -1: none */
    struct stat held_socket;
    pid_t holder; /* the thread with the transaction */
} dying = {.held = -1};

static struct thread_pointer running; /* to the struct thole_activity whose handler the thread runs */

static void take_try(struct worker_crash_try *ret)
{
    const struct thole_activity *const act = thread_pointer_get(&running);
    if (act == NULL)
        return;
    const struct work_item *const item = &act->message->item;
    if (item->instance.len > sizeof ret->instance)
        return;
    ret->execution = item->execution;
    ret->activity_id = item->activity_id;
    ret->try_number = (uint32_t)item->try_number;
    ret->attempt = act->attempt;
    ret->instance_len = (uint32_t)item->instance.len;
    memcpy(ret->instance, item->instance.ptr, item->instance.len);
}

/* A handler may have closed the socket, and its number may be reused. */
static bool is_still(int fd, const struct stat *socket)
{
    struct stat now;
    return fstat(fd, &now) == 0 && now.st_dev == socket->st_dev && now.st_ino == socket->st_ino;
}

/* A crash of another thread does not take the transaction from the one that goes on with it. */
static void shut_down_held(void)
{
    int const held = atomic_load(&dying.held);
    if (held >= 0 && dying.holder == (pid_t)syscall(SYS_gettid) && is_still(held, &dying.held_socket))
        (void)shutdown(held, SHUT_RDWR);
}

/* Async-signal-safe. Only the first crash counts: later ones may be its consequence. */
static void write_report(const struct worker_crash *crash)
{
    struct worker_crash_page *const page = atomic_load(&dying.page);
    int unwritten = WORKER_CRASH_UNWRITTEN;
    if (page == NULL || getpid() != dying.pid)
        return;
    if (atomic_compare_exchange_strong(&page->state, &unwritten, WORKER_CRASH_BEING_WRITTEN)) {
        page->crash = *crash;
        take_try(&page->crash.in);
        atomic_store(&page->state, WORKER_CRASH_WRITTEN);
    }
    shut_down_held();
    struct pollfd stored = {.fd = dying.reporter, .events = POLLRDHUP};
    if (is_still(dying.reporter, &dying.socket) &&
        send(dying.reporter, "w", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
        (void)poll(&stored, 1, DYING_WAIT_MS);
}

static void dying_on_fatal(const struct fatal *fatal)
{
    write_report(&(struct worker_crash){.kind = fatal->number == 0 ? WORKER_CRASH_EXIT : WORKER_CRASH_SIGNAL,
                                        .number = fatal->number == 0 ? fatal->exit_code : fatal->number,
                                        .fault = fatal->fault,
                                        .address = fatal->address});
}

void dying_install(struct worker_crash_page *page, int reporter)
{
    dying.pid = getpid();
    dying.reporter = reporter;
    (void)fstat(reporter, &dying.socket);
    atomic_store(&dying.page, page);
    fatal_listen(dying_on_fatal);
}

void dying_uninstall(void)
{
    atomic_store(&dying.page, NULL);
    fatal_unlisten(dying_on_fatal);
}

bool dying_is(void)
{
    const struct worker_crash_page *const page = atomic_load(&dying.page);
    return page != NULL && atomic_load(&page->state) != WORKER_CRASH_UNWRITTEN;
}

void dying_holds(int socket)
{
    atomic_store(&dying.held, -1);
    dying.holder = (pid_t)syscall(SYS_gettid);
    if (socket >= 0 && fstat(socket, &dying.held_socket) == 0)
        atomic_store(&dying.held, socket);
}

void dying_runs(const struct thole_activity *act)
{
    thread_pointer_set(&running, act);
}
