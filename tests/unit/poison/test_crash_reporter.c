/* All ways in which workers die: crash_reporter.transcript has a worker's actions ("$ …"), in a process of
 * its own and with a crash reporter that is a process too, each followed by the output of both, and the
 * worker's end. Postgres is played. */
#include "activity_run.h"
#include "crash_reporter.h"
#include "dying.h"
#include "logged.h"
#include "postgres.h"
#include "process_early.h"
#include "sanitized.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "worker_store.h"
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STORING_US = 30000 };

static struct {
    char fails[32];
    struct crash_reporter *reporter;
    struct thole_activity *act;
    struct worker_crash_page *page;
    pid_t pid;
} play;

/* One write each: two processes write. */
#define said(...) (void)dprintf(STDERR_FILENO, __VA_ARGS__)

static bool fails(const char *call)
{
    return strcmp(play.fails, call) == 0;
}

/* ---- the world ---- */

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...) THOLE_PRINTF(4, 5);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    char text[1024];
    va_list args;
    va_start(args, fmt);
    logged_text(text, sizeof text, fields, fmt, args);
    va_end(args);
    char *const process = strstr(text, "process ");
    if (process != NULL) /* a number that differs each time */
        memmove(process + 8, process + 8 + strspn(process + 8, "0123456789"),
                strlen(process + 8 + strspn(process + 8, "0123456789")) + 1);
    said("log %s %s: %s\n", names[level], area, text);
}

thole_status __wrap_postgres_open(const struct postgres_options *options, struct postgres **ret,
                                  thole_error *reterr)
{
    said("postgres %s of %s as %s, within %d and %d ms; alarm in %u s\n", options->conninfo, options->ns,
         options->application, (int)options->connect_timeout_ms, (int)options->statement_timeout_ms,
         alarm(60));
    *ret = (struct postgres *)&play;
    return fails("postgres_open") ? thole_fail(reterr, THOLE_UNAVAILABLE, "no server") : THOLE_OK;
}

thole_status __wrap_worker_store_died(struct postgres *pg, const struct worker_death *death, size_t *ret_rows,
                                      thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(pg, (struct postgres *)&play);
    (void)usleep(STORING_US);
    said("died: %.*s: %.*s; in %.*s %d.%d.%d, attempt %d; candidates after %u\n", THOLE_FMT(death->worker),
         THOLE_FMT(death->report), THOLE_FMT(death->blamed.instance), (int)death->blamed.execution,
         (int)death->blamed.activity_id, (int)death->blamed.try_number, (int)death->attempt,
         death->candidate_after);
    *ret_rows = 3;
    return fails("worker_store_died") ? thole_fail(reterr, THOLE_UNAVAILABLE, "no answer") : THOLE_OK;
}

void __wrap_postgres_close(struct postgres *pg)
{
    CU_ASSERT_PTR_EQUAL(pg, (struct postgres *)&play);
    said("closes\n");
}

int __real_process_other_threads(void);
int __wrap_process_other_threads(void)
{
    return fails("threads") ? 2 : 0;
}

void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    bool const shared = (flags & MAP_SHARED) != 0;
    if (shared && fails("mmap")) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *const map = __real_mmap(at, len, prot, flags, fd, offset);
    if (shared)
        play.page = map;
    return map;
}

int __real_munmap(void *at, size_t len);
int __wrap_munmap(void *at, size_t len)
{
    if (at == play.page)
        said("unmaps the page%s\n", len == sizeof *play.page ? "" : ", not all of it");
    return __real_munmap(at, len);
}

int __real_socketpair(int domain, int type, int protocol, int ends[2]);
int __wrap_socketpair(int domain, int type, int protocol, int ends[2])
{
    if (!fails("socketpair"))
        return __real_socketpair(domain, type, protocol, ends);
    errno = EMFILE;
    return -1;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list args;
    va_start(args, number);
    long const pid = va_arg(args, int);
    va_end(args);
    CU_ASSERT_EQUAL(number, SYS_pidfd_open);
    if (!fails("pidfd_open"))
        return __real_syscall(number, pid, 0);
    errno = ENOSYS;
    return -1;
}

pid_t __real_fork(void);
pid_t __wrap_fork(void)
{
    if (!fails("fork"))
        return __real_fork();
    errno = EAGAIN;
    return -1;
}

/* ---- a worker ---- */

static int descriptors(void)
{
    int n = 0;
    DIR *const folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        n++;
    (void)closedir(folder);
    return n;
}

static void start(void)
{
    static struct host_options options = {.postgres = "pg", .ns = "shop", .poison_after = 5};
    thole_error error = {.status = THOLE_OK};
    int const before = descriptors();
    thole_status const status = crash_reporter_start(&options, &play.reporter, &error);
    said("start: %s %s, %d more descriptors\n", thole_status_name(status), error.text,
         descriptors() - before);
}

static void stop(void)
{
    int const before = descriptors();
    crash_reporter_stop(play.reporter);
    int const more = descriptors() - before;
    said("stopped: %d more descriptors, %s\n", more,
         waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? "no child" : "a child is left");
    play.reporter = NULL;
}

static void look(void)
{
    struct pollfd end = {.fd = crash_reporter_socket(play.reporter), .events = POLLRDHUP};
    said("its socket %s, dying %d, lost %d\n",
         end.fd < 0             ? "is none"
         : poll(&end, 1, 0) > 0 ? "has hung up"
                                : "is open",
         dying_is(), play.reporter != NULL && crash_reporter_is_lost(play.reporter));
}

/* The handler's own child is no worker. */
static void fork_and_abort(void)
{
    int status;
    pid_t const pid = __real_fork();
    if (pid == 0)
        abort();
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    said("its child ended by signal %d\n", WTERMSIG(status));
}

static void run_handler(size_t id_len)
{
    static char id[THOLE_ID_BYTES_MAX + 1];
    struct work_message *const message = calloc(1, sizeof *message);
    memset(id, 'i', sizeof id);
    memcpy(id, "order", 5);
    message->item = (struct work_item){.queue = THOLE_STR("bank"),
                                       .instance = {(const uint8_t *)id, id_len},
                                       .activity = THOLE_STR("charge"),
                                       .execution = 3,
                                       .activity_id = 4,
                                       .try_number = 2};
    play.act = activity_create(message, 0);
    play.act->attempt = 7;
    dying_runs(play.act);
}

static void die(const char *how)
{
    int volatile *const nowhere = (int *)(uintptr_t)8;
    if (strcmp(how, "fault") == 0)
        *nowhere = 1;
    else if (strcmp(how, "abort") == 0)
        abort();
    else if (strcmp(how, "exit") == 0)
        exit(3);
    else if (strcmp(how, "_exit") == 0)
        _exit(4);
    else if (strcmp(how, "bus") == 0)
        (void)raise(SIGBUS);
    else if (strcmp(how, "kill") == 0)
        (void)kill(getpid(), SIGKILL);
    else
        (void)kill(getpid(), SIGTERM);
}

static void goes_on(void)
{
    if (getpid() == play.pid)
        said("the worker goes on\n");
}

static void act_on(const char *word)
{
    const char *const value = strchr(word, '=') == NULL ? "" : strchr(word, '=') + 1;
    if (strncmp(word, "fails=", 6) == 0)
        (void)snprintf(play.fails, sizeof play.fails, "%s", value);
    else if (strcmp(word, "start") == 0)
        start();
    else if (strcmp(word, "stop") == 0)
        stop();
    else if (strcmp(word, "look") == 0)
        look();
    else if (strncmp(word, "name=", 5) == 0)
        crash_reporter_name(play.reporter, value);
    else if (strcmp(word, "runs") == 0)
        run_handler(5);
    else if (strcmp(word, "runs_longest") == 0)
        run_handler(THOLE_ID_BYTES_MAX);
    else if (strcmp(word, "ran") == 0)
        dying_runs(NULL);
    else if (strcmp(word, "forks") == 0)
        fork_and_abort();
    else if (strcmp(word, "scribbles") == 0)
        memset(play.page->worker, '?', sizeof play.page->worker);
    else if (strcmp(word, "closes") == 0)
        (void)close(crash_reporter_socket(play.reporter));
    else if (strcmp(word, "waits") == 0)
        (void)usleep(100000);
    else if (strncmp(word, "die=", 4) == 0)
        die(value);
    else
        said("what is %s?\n", word);
}

_Noreturn static void live(const char *text)
{
    char copy[256], *save = NULL;
    struct rlimit const none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)alarm(30);
    play.pid = getpid();
    (void)atexit(goes_on);
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (const char *word = strtok_r(copy, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
        act_on(word);
    _exit(0);
}

static void line(const char *text, FILE *to)
{
    int ends[2], status = 0;
    char bytes[4096];
    CU_ASSERT_FATAL(pipe(ends) == 0);
    (void)fflush(NULL);
    memset(&play, 0, sizeof play);
    pid_t const pid = __real_fork();
    if (pid == 0) {
        (void)close(ends[0]);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[1]);
        live(text);
    }
    (void)close(ends[1]);
    /* until both have ended; the reporter reads /proc of the dead worker, which is waited for afterwards */
    for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) > 0;)
        (void)fwrite(bytes, 1, (size_t)n, to);
    (void)close(ends[0]);
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        (void)fprintf(to, "-> signal %d\n", WTERMSIG(status));
    else
        (void)fprintf(to, "-> code %d\n", WEXITSTATUS(status));
}

static void test_transcript(void)
{
    if (!SANITIZED) /* they have handlers of their own for what kills */
        transcript_check(THOLE_SOURCE_DIR "/tests/unit/poison/crash_reporter.transcript", line);
}

static const struct thole_test tests[] = {{"transcript", test_transcript}};
THOLE_TEST_MAIN("crash_reporter", tests)
