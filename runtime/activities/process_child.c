/* A process that runs activities, one after the other, all of one kind. */
#include "activity_run.h"
#include "clock.h"
#include "environment.h"
#include "log.h"
#include "memory.h"
#include "process_early.h"
#include "process_end.h"
#include "process_frame.h"
#include "process_parts.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    EXIT_CANNOT = 125, /* before a handler was called */
    /* so that the system kills this process before the worker when memory is exhausted */
    OOM_SCORE_MORE = 100,
    OOM_SCORE_MAX = 1000,
};

struct runner {
    const struct process_spawn *spawn;
    pid_t pid, guard;
    int talk, wake;
    struct process_page *page;
};

/* ---- set-up ---- */

static void process_child_set_signals(void)
{
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Every process may raise its own score. */
static void raise_oom_score(void)
{
    char text[16];
    int const fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    ssize_t const len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (len > 0) {
        text[len] = '\0';
        long const score = strtol(text, NULL, 10) + OOM_SCORE_MORE;
        int const n = snprintf(text, sizeof text, "%ld", score < OOM_SCORE_MAX ? score : OOM_SCORE_MAX);
        ssize_t const written = write(fd, text, (size_t)n);
        (void)written; /* best effort */
    }
    if (fd >= 0)
        (void)close(fd);
}

/* A stricter present limit stays. */
static bool set_limit(__rlimit_resource_t resource, uint64_t soft, uint64_t hard)
{
    struct rlimit limit;
    if (soft == 0)
        return true;
    if (getrlimit(resource, &limit) != 0)
        return false;
    if (hard < limit.rlim_max)
        limit.rlim_max = (rlim_t)hard;
    limit.rlim_cur = soft < limit.rlim_max ? (rlim_t)soft : limit.rlim_max;
    return setrlimit(resource, &limit) == 0;
}

static bool set_limits(const thole_activity_options *options, uint64_t memory_max)
{
    return set_limit(RLIMIT_CPU, options->cpu_max_s, (uint64_t)options->cpu_max_s + 1) &&
           set_limit(RLIMIT_AS, memory_max, memory_max);
}

_Noreturn static void process_child_give_up(const struct runner *runner, const char *what)
{
    log_line(LOG_LEVEL_ERROR, "process", "activity %s: %s: %s", runner->spawn->entry->name, what,
             strerror(errno));
    _exit(EXIT_CANNOT);
}

static void process_child_become(struct runner *runner)
{
    const struct process_spawn *const spawn = runner->spawn;
    const int *const fds = spawn->fds;
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_NAME, spawn->entry->name);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != runner->guard)
        process_child_give_up(runner, "its guard has died");
    process_close_all_but((int[]){fds[PROCESS_TALK], fds[PROCESS_WAKE], fds[PROCESS_PAGE]}, 3);
    runner->talk = fds[PROCESS_TALK];
    runner->wake = fds[PROCESS_WAKE];
    runner->page = mmap(NULL, sizeof *runner->page, PROT_READ | PROT_WRITE, MAP_SHARED, fds[PROCESS_PAGE], 0);
    if (runner->page == MAP_FAILED)
        process_child_give_up(runner, "no shared memory");
    (void)close(fds[PROCESS_PAGE]);
    if (!spawn->entry->options->keep_env)
        environment_keep(spawn->options->env);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        process_child_give_up(runner, "it cannot give up new privileges");
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* so that output before a crash is not lost */
    raise_oom_score();
    if (!set_limits(spawn->entry->options,
                    process_memory_max(spawn->entry->options, spawn->options->memory_max)))
        process_child_give_up(runner, "its limits cannot be set");
    process_child_set_signals();
}

/* ---- a run ---- */

static struct thole_activity *process_child_make_activity(const struct runner *runner,
                                                          const struct process_run *run)
{
    struct work_message *const message = memory_new(sizeof *message);
    message->item = (struct work_item){.queue = run->queue,
                                       .instance = run->instance,
                                       .activity = run->activity,
                                       .input = run->input,
                                       .nonce = run->nonce,
                                       .trace = run->trace,
                                       .execution = run->execution,
                                       .activity_id = run->activity_id,
                                       .try_number = run->try_number};
    struct thole_activity *const act = activity_create(message, clock_monotonic_ms());
    act->run = runner->spawn->entry->run;
    act->arg = runner->spawn->entry->arg;
    act->partition = run->partition;
    act->token = &runner->page->token;
    act->fd = runner->wake;
    act->talk = runner->talk;
    struct activity_parties const parties = {run->orchestration, run->version, run->worker};
    if (activity_begin(act, run->attempt, run->deadline_ms, run->details, &parties) == THOLE_OK)
        return act;
    act->fd = -1;
    activity_destroy(act);
    return NULL;
}

/* Processes that the handler has started and not seen end. */
static bool has_leftovers(const struct runner *runner)
{
    pid_t pids[2], gone;
    while ((gone = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
        ; /* collects zombies that the handler did not wait for */
    /* orphans become children of the guard */
    return gone == 0 || process_children(runner->guard, pids, 2) > 1;
}

static bool process_child_report(const struct runner *runner, const struct thole_activity *act)
{
    uint64_t const payload_max = runner->spawn->options->payload_max;
    struct process_return returned = {.status = (uint32_t)act->status,
                                      .error_type = act->failure_type,
                                      .data = act->failure,
                                      .final = act->final,
                                      .pid = (uint32_t)runner->pid,
                                      .leftovers = has_leftovers(runner)};
    char text[ACTIVITY_RESULT_TEXT_BYTES];
    struct message too_large = {0};
    struct buf body;
    if (act->status == THOLE_OK) {
        returned.data = act->output.ptr != NULL ? act->output : (thole_slice){0};
        returned.error_type = (thole_slice){0};
        if (returned.data.len > payload_max) {
            activity_result(act, payload_max, text, &too_large);
            returned.status = too_large.status;
            returned.data = too_large.data;
        }
    }
    buf_init(&body, FRAME_BYTES_MAX);
    if (process_return_encode(&returned, &body) != THOLE_OK)
        process_child_give_up(runner, "no memory for its result");
    bool const sent = frame_send(runner->talk, FRAME_RETURNED, buf_bytes(&body));
    buf_release(&body);
    return sent;
}

static bool run_one(const struct runner *runner, thole_slice body)
{
    struct process_run run;
    struct arena arena;
    arena_init(&arena, ACTIVITY_MEMORY_MAX);
    errno = ENOMEM;
    if (process_run_decode(body, &arena, &run, NULL) != THOLE_OK)
        process_child_give_up(runner, "what to run cannot be read");
    struct thole_activity *const act = process_child_make_activity(runner, &run);
    if (act == NULL)
        process_child_give_up(runner, "it cannot begin");
    atomic_store(&runner->page->begun, 1);
    activity_run(act);
    (void)fflush(stdout);
    if (getpid() != runner->pid) /* a process that the handler forked and that returned from it */
        _exit(0);
    bool const sent = process_child_report(runner, act);
    act->fd = -1; /* the descriptor lives as long as this process */
    activity_destroy(act);
    arena_release(&arena);
    return sent;
}

void process_child_main(const struct process_spawn *spawn, pid_t guard)
{
    struct runner runner = {.spawn = spawn, .pid = getpid(), .guard = guard};
    struct frame_reader reader;
    enum frame_kind kind;
    thole_slice body;
    enum frame_got got;
    process_child_become(&runner);
    frame_reader_init(&reader, runner.talk);
    do {
        struct pollfd wait = {.fd = runner.talk, .events = POLLIN};
        (void)poll(&wait, 1, -1);
        got = frame_read(&reader, &kind, &body);
        if (got == FRAME_WHOLE && (kind != FRAME_RUN || !run_one(&runner, body)))
            got = FRAME_CLOSED;
    } while (got == FRAME_PART || got == FRAME_WHOLE);
    errno = ENOMEM;
    if (got == FRAME_BROKEN)
        process_child_give_up(&runner, "what to run cannot be read");
    _exit(0);
}
