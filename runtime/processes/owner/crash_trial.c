#include "crash_trial.h"
#include "core_dumps.h"
#include "log.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORD_MS = 1000,   /* for a copy to report its place, after SIGABRT */
    LIMIT_MS = 10000, /* where there is no --turn-limit */
};

uint64_t crash_trial_limit_ms(uint64_t turn_limit_ms)
{
    return turn_limit_ms == 0 || turn_limit_ms > INT32_MAX ? LIMIT_MS : turn_limit_ms;
}

_Noreturn static void run_copy(const struct crash_trial *trial, struct crash_page *page, void (*body)(void *),
                               void *body_arg)
{
    (void)core_dumps_forbid(); /* no second one: if it is wanted, the first crash has left one */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGINT, SIG_IGN); /* from a terminal: meant for the engine */
    (void)signal(SIGTERM, SIG_IGN);
    *trial->place = &page->places[0];
    crash_listen_in_copy(page);
    body(body_arg);
    atomic_store(&page->returned, true);
    _exit(0);
}

static bool crash_trial_await_end(int pidfd, uint64_t ms)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    int n;
    do
        n = poll(&end, 1, (int)ms);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

static int crash_trial_wait_for(pid_t pid, struct crash_page *page, uint64_t limit_ms)
{
    int status = 0;
    int const pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd >= 0 && !crash_trial_await_end(pidfd, limit_ms)) {
        atomic_store(&page->overdue_ms, limit_ms);
        (void)kill(pid, SIGABRT);
        if (!crash_trial_await_end(pidfd, WORD_MS))
            (void)kill(pid, SIGKILL);
    }
    if (pidfd >= 0)
        (void)close(pidfd);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* Takes the copy's report, else what the kernel reports. */
static void crash_trial_look_at(struct crash_page *page, int status, uint64_t limit_ms)
{
    struct crash *const crash = &page->crash;
    if (atomic_load(&crash->state) != CRASH_UNREPORTED)
        return;
    bool const late = atomic_load(&page->overdue_ms) != 0;
    crash->kind = late ? CRASH_ENDLESS : WIFSIGNALED(status) ? CRASH_KILLED : CRASH_CODE;
    crash->number = late ? (int)limit_ms : WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    crash->frames_len = 0;
}

static thole_status crash_trial_report(const struct crash_page *page, const struct code_run *run,
                                       thole_error *reterr)
{
    struct buf text;
    struct crash crash;
    struct crash_place place;
    buf_init(&text, CRASH_TEXT_BYTES);
    crash_take(page, &crash);
    if (crash_take_place(&page->places[0], &place))
        crash_report_text(&crash, &place, &text);
    else
        crash_text(&crash, NULL, &text);
    thole_status const status =
        thole_fail(reterr, THOLE_APP, "%s", buf_status(&text) == THOLE_OK ? buf_cstr(&text) : "a crash");
    buf_release(&text);
    log_line_of(LOG_LEVEL_WARN, "partition", LOG_INSTANCE(run->partition, run->instance, run->execution),
                "crashed when it was tried in a forked copy: %s", reterr->text);
    return status;
}

thole_status crash_trial(const struct crash_trial *trial, const struct code_run *run, void (*body)(void *),
                         void *body_arg, thole_error *reterr)
{
    assert(trial->limit_ms > 0 && trial->limit_ms <= INT32_MAX);
    struct crash_page *const page = crash_page_create();
    if (page == NULL)
        return thole_fail(reterr, THOLE_NOMEM, "no memory to try the code alone");
    page->places_len = 1;
    crash_begins(&page->places[0], run); /* in case the copy dies before it begins */
    pid_t const pid = fork();
    if (pid == 0)
        run_copy(trial, page, body, body_arg);
    int const error = errno;
    int const status = pid < 0 ? 0 : crash_trial_wait_for(pid, page, trial->limit_ms);
    bool const late = atomic_load(&page->overdue_ms) != 0;
    thole_status result = THOLE_OK;
    if (pid < 0) {
        result = thole_fail(reterr, THOLE_NOMEM, "the code could not be tried in a forked copy: fork: %s",
                            strerror(error));
    } else if (!atomic_load(&page->returned)) {
        bool const killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !late;
        crash_trial_look_at(page, status, trial->limit_ms);
        result = killed && atomic_load(&page->crash.state) == CRASH_UNREPORTED
                     ? thole_fail(reterr, THOLE_NOMEM, "the process that tried the code alone was killed")
                     : crash_trial_report(page, run, reterr);
    }
    crash_page_destroy(page);
    return result;
}
