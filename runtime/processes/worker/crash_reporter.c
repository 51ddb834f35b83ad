#include "crash_reporter.h"
#include "dying.h"
#include "log.h"
#include "memory.h"
#include "process_early.h"
#include "worker.h"
#include "worker_store.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CALL_TIMEOUT_MS = 3000, /* to connect; and of the statement */
    LIFE_AFTER_S = 15,      /* the reporter ends at the latest this long after the worker */
    STAT_BYTES = 2048,
};

struct crash_reporter {
    pid_t pid;
    int socket;
    struct worker_crash_page *page;
};

/* ---- the crash reporter itself ---- */

struct watch {
    const struct host_options *options;
    const struct worker_crash_page *page;
    pid_t worker;
    int pidfd, socket;
    struct worker_crash ended;            /* end of the worker according to the kernel */
    char name[WORKER_CRASH_WORKER_BYTES]; /* the worker's incarnation */
};

/* Reads /proc of the dead worker, which exists until it is waited for. */
static void look_at_worker(struct watch *watch)
{
    char path[64], text[STAT_BYTES];
    struct worker_crash ended;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)watch->worker);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t const len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    if (len <= 0)
        return;
    text[len] = '\0';
    worker_crash_from_stat(text, &ended);
    if (ended.kind != WORKER_CRASH_NONE)
        watch->ended = ended;
}

static thole_status crash_reporter_store(const struct watch *watch, const struct worker_crash *crash,
                                         const char *text, size_t *ret_rows, thole_error *reterr)
{
    struct postgres_options const options = {.conninfo = watch->options->postgres,
                                             .ns = watch->options->ns,
                                             .application = "thole-reporter",
                                             .connect_timeout_ms = CALL_TIMEOUT_MS,
                                             .statement_timeout_ms = CALL_TIMEOUT_MS};
    struct worker_death const death = {.worker = thole_slice_from(watch->name),
                                       .report = thole_slice_from(text),
                                       .blamed = {.instance = {crash->in.instance, crash->in.instance_len},
                                                  .execution = crash->in.execution,
                                                  .activity_id = crash->in.activity_id,
                                                  .try_number = crash->in.try_number},
                                       .attempt = crash->in.attempt,
                                       .candidate_after =
                                           worker_candidate_after(watch->options->poison_after)};
    struct postgres *pg = NULL;
    THOLE_TRY(postgres_open(&options, &pg, reterr));
    thole_status const status = worker_store_died(pg, &death, ret_rows, reterr);
    postgres_close(pg);
    return status;
}

static void store_and_log(const struct watch *watch, const struct worker_crash *crash)
{
    char text[WORKER_CRASH_TEXT_BYTES];
    thole_error error = {.status = THOLE_OK};
    size_t rows = 0;
    struct log_fields const fields = {.instance = {crash->in.instance, crash->in.instance_len},
                                      .activity_id = crash->in.activity_id};
    (void)alarm(LIFE_AFTER_S);
    (void)worker_crash_text(crash, text);
    if (crash_reporter_store(watch, crash, text, &rows, &error) != THOLE_OK)
        log_line(LOG_LEVEL_WARN, "reporter", "the crash report of %s could not be stored: %s; it was: %s",
                 watch->name, error.text, text);
    else if (crash->in.instance_len > 0)
        log_line_of(LOG_LEVEL_ERROR, "reporter", &fields, "%s died, with %zu activities: %s", watch->name,
                    rows, text);
    else
        log_line(LOG_LEVEL_ERROR, "reporter", "%s died, with %zu activities: %s", watch->name, rows, text);
}

/* A closed socket means that the worker is dying, or that a handler has closed a foreign descriptor. */
_Noreturn static void crash_reporter_serve(struct watch *watch)
{
    bool dead = false;
    process_settle("thole-reporter", (int[]){watch->pidfd, watch->socket}, 2);
    while (!dead && atomic_load(&watch->page->state) != WORKER_CRASH_WRITTEN) {
        struct pollfd waits[2] = {{.fd = watch->pidfd, .events = POLLIN},
                                  {.fd = watch->socket, .events = POLLIN}};
        char byte;
        (void)poll(waits, 2, -1);
        dead = waits[0].revents != 0;
        if (waits[1].revents != 0 && recv(watch->socket, &byte, 1, MSG_DONTWAIT) == 0)
            watch->socket = -1;
        if (dead || watch->socket < 0)
            look_at_worker(watch);
    }
    struct worker_crash told;
    bool const written = atomic_load(&watch->page->state) == WORKER_CRASH_WRITTEN;
    bool const named = atomic_load(&watch->page->named);
    if (worker_crash_take(watch->page, &told, watch->name) && named)
        store_and_log(watch, written ? &told : &watch->ended);
    else if (named)
        log_line(LOG_LEVEL_ERROR, "reporter", "a worker died, process %d, and has overwritten its report",
                 (int)watch->worker);
    if (watch->socket >= 0)
        (void)close(watch->socket); /* tells the worker that the report is stored */
    _exit(0);
}

/* ---- the worker's side ---- */

static int open_pidfd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Creates the socket pair, the descriptor that shows the worker's end, and the page. */
static thole_status crash_reporter_prepare(struct crash_reporter *reporter, struct watch *watch,
                                           thole_error *reterr)
{
    int ends[2] = {-1, -1};
    int const others = process_other_threads();
    if (others > 0)
        return thole_fail(reterr, THOLE_UNSUPPORTED,
                          "this program has started %d threads before thole_main()", others);
    void *const page =
        mmap(NULL, sizeof *reporter->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    watch->pidfd = open_pidfd(watch->worker);
    if (page == MAP_FAILED || watch->pidfd < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        int const error = errno;
        if (page != MAP_FAILED)
            (void)munmap(page, sizeof *reporter->page);
        if (watch->pidfd >= 0)
            (void)close(watch->pidfd);
        return thole_fail(reterr, THOLE_UNSUPPORTED, "the system gives none: %s", strerror(error));
    }
    watch->page = reporter->page = page;
    reporter->socket = ends[0];
    watch->socket = ends[1];
    return THOLE_OK;
}

thole_status crash_reporter_start(const struct host_options *options, struct crash_reporter **ret,
                                  thole_error *reterr)
{
    struct watch watch = {.options = options, .worker = getpid()};
    struct crash_reporter *const reporter = memory_new(sizeof *reporter);
    process_open_standard_files();
    thole_status const status = crash_reporter_prepare(reporter, &watch, reterr);
    if (status != THOLE_OK) {
        free(reporter);
        return status;
    }
    (void)fflush(NULL); /* or buffered output would be written twice */
    reporter->pid = fork();
    if (reporter->pid == 0)
        crash_reporter_serve(&watch);
    int const error = errno;
    (void)close(watch.pidfd);
    (void)close(watch.socket);
    if (reporter->pid < 0) {
        (void)close(reporter->socket);
        (void)munmap(reporter->page, sizeof *reporter->page);
        free(reporter);
        return thole_fail(reterr, THOLE_UNSUPPORTED, "the system gives none: %s", strerror(error));
    }
    dying_install(reporter->page, reporter->socket);
    *ret = reporter;
    return THOLE_OK;
}

void crash_reporter_name(struct crash_reporter *reporter, const char *incarnation)
{
    if (reporter == NULL)
        return;
    (void)snprintf(reporter->page->worker, sizeof reporter->page->worker, "%s", incarnation);
    atomic_store(&reporter->page->named, true);
}

int crash_reporter_socket(const struct crash_reporter *reporter)
{
    return reporter == NULL ? -1 : reporter->socket;
}

bool crash_reporter_is_lost(const struct crash_reporter *reporter)
{
    return atomic_load(&reporter->page->state) == WORKER_CRASH_UNWRITTEN;
}

void crash_reporter_stop(struct crash_reporter *reporter)
{
    if (reporter == NULL)
        return;
    dying_uninstall();
    (void)kill(reporter->pid, SIGKILL); /* not needed any more */
    while (waitpid(reporter->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    (void)close(reporter->socket);
    (void)munmap(reporter->page, sizeof *reporter->page);
    free(reporter);
}
