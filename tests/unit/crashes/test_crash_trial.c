/* Code that is first tried in a forked copy of the process: how it ends there, what is said of it, and that
 * nothing of it is left. The copy is real. */
#include "crash_trial.h"
#include "logged.h"
#include "sanitized.h"
#include "thole_cunit.h"
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 60, SHARED = 8 };

static struct {
    const char *fails;
    unsigned polls, maps, logs;
    int *shared; /* written by the copy for the test */
    struct crash_place *place, *own;
    struct crash_page *engine;
    char log[600];
} play;

/* ---- the world ---- */

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...) THOLE_PRINTF(4, 5);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    va_list args;
    size_t const at = (size_t)snprintf(play.log, sizeof play.log, "%d %s: ", (int)level, area);
    va_start(args, fmt);
    logged_text(play.log + at, sizeof play.log - at, fields, fmt, args);
    va_end(args);
    play.logs++;
}

static bool fails(const char *call)
{
    return play.fails != NULL && strcmp(play.fails, call) == 0;
}

pid_t __real_fork(void);
pid_t __wrap_fork(void)
{
    if (!fails("fork"))
        return __real_fork();
    errno = EAGAIN;
    return -1;
}

struct crash_page *__real_crash_page_create(void);
struct crash_page *__wrap_crash_page_create(void)
{
    play.maps += !fails("page");
    return fails("page") ? NULL : __real_crash_page_create();
}

void __real_crash_page_destroy(struct crash_page *page);
void __wrap_crash_page_destroy(struct crash_page *page)
{
    play.maps -= page != NULL;
    __real_crash_page_destroy(page);
}

/* Interrupted each first time. */
int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    if (play.polls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return __real_poll(fds, n, timeout_ms);
}

pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    static unsigned calls;
    if (calls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return __real_waitpid(pid, status, options);
}

/* ---- bodies of the trials ---- */

/* The properties of a copy: its own place, no signals of a terminal, no core dumps, killed with the
 * engine. */
static void look(void *arg)
{
    struct rlimit core = {2, 2};
    int signal_of_death = 0;
    struct sigaction term, interrupt;
    (void)arg;
    (void)getrlimit(RLIMIT_CORE, &core);
    (void)prctl(PR_GET_PDEATHSIG, &signal_of_death);
    (void)sigaction(SIGTERM, NULL, &term);
    (void)sigaction(SIGINT, NULL, &interrupt);
    play.shared[0] = play.place != play.own && strcmp(play.place->orchestration, "order") == 0;
    play.shared[1] = core.rlim_cur <= 1; /* to a file: none */
    play.shared[2] = signal_of_death == SIGKILL;
    play.shared[3] = term.sa_handler == SIG_IGN && interrupt.sa_handler == SIG_IGN;
    play.shared[4] = (int)getpid();
}

static void does_abort(void *arg)
{
    (void)arg;
    abort();
}

static void does_fault(void *arg)
{
    *(int volatile *)arg = 1;
}

static void does_exit(void *arg)
{
    (void)arg;
    exit(3);
}

static void does_exit_at_once(void *arg)
{
    (void)arg;
    _exit(4);
}

static void is_killed(void *arg)
{
    (void)arg;
    (void)kill(getpid(), SIGKILL);
}

static void does_not_end(void *arg)
{
    (void)arg;
    for (;;)
        (void)usleep(1000);
}

static void does_not_hear(void *arg)
{
    sigset_t all;
    sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    does_not_end(arg);
}

/* ---- tests ---- */

static int descriptors(void)
{
    int n = 0;
    DIR *const folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        n++;
    (void)closedir(folder);
    return n;
}

static thole_status order(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)input, (void)ret_output;
    return THOLE_OK;
}

/* The text of a trial; places in the source are left out. */
static thole_status trial_of(void (*body)(void *), void *arg, char *ret_text, size_t cap)
{
    struct crash_place own = {.since_ms = 0};
    struct crash_trial const trial = {.place = &play.place, .limit_ms = LIMIT_MS};
    struct code_run const run = {.kind = CODE_TURN,
                                 .partition = 6,
                                 .version = 2,
                                 .execution = 3,
                                 .event = 7,
                                 .instance = THOLE_STR("shop"),
                                 .orchestration = THOLE_STR("order"),
                                 .code = order};
    thole_error error = {.status = THOLE_OK};
    play.place = play.own = &own;
    int const before = descriptors();
    thole_status const status = crash_trial(&trial, &run, body, arg, &error);
    CU_ASSERT_EQUAL(descriptors(), before);
    CU_ASSERT_EQUAL(play.maps, 0);
    CU_ASSERT_PTR_EQUAL(play.place, &own); /* the engine's thread runs on where it was */
    CU_ASSERT_TRUE(__real_waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    const char *in = strstr(error.text, ": at ");
    in = in == NULL ? strstr(error.text, " in ") : in;
    const char *const turn = strstr(error.text, ", in a turn");
    if (in != NULL && turn != NULL && in < turn)
        (void)snprintf(ret_text, cap, "%.*s%s", (int)(in - error.text), error.text, turn);
    else
        (void)snprintf(ret_text, cap, "%s", error.text);
    return status;
}

#define TURN ", in a turn of orchestration order, at event 7"

static void test_how_it_ends(void)
{
    static const struct {
        const char *name, *fails;
        void (*body)(void *);
        thole_status status;
        const char *text;
        bool signal; /* of those that sanitizers handle */
    } rows[] = {
        {"returns", NULL, look, THOLE_OK, "", false},
        {"abort", NULL, does_abort, THOLE_APP, "SIGABRT" TURN, true},
        {"fault", NULL, does_fault, THOLE_APP, "SIGSEGV at address 0x10" TURN, true},
        {"exit", NULL, does_exit, THOLE_APP, "exit(3) was called" TURN, false},
        {"_exit", NULL, does_exit_at_once, THOLE_APP,
         "the process ended with code 4: _exit() was called" TURN, false},
        {"killed", NULL, is_killed, THOLE_NOMEM, "the process that tried the code alone was killed", false},
        {"endless", NULL, does_not_end, THOLE_APP, "the turn did not end within 60 ms" TURN, true},
        {"deaf", NULL, does_not_hear, THOLE_APP, "the turn did not end within 60 ms" TURN, true},
        {"no process", "fork", look, THOLE_NOMEM,
         "the code could not be tried in a forked copy: fork: Resource temporarily unavailable", false},
        {"no page", "page", look, THOLE_NOMEM, "no memory to try the code alone", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[600], want[700];
        if (SANITIZED && rows[i].signal)
            continue;
        memset(play.log, 0, sizeof play.log);
        play.logs = 0;
        play.fails = rows[i].fails;
        CU_ASSERT_EQUAL(trial_of(rows[i].body, (void *)(uintptr_t)16, text, sizeof text), rows[i].status);
        CHECK_STR(rows[i].name, text, rows[i].text);
        CU_ASSERT_EQUAL(play.logs, rows[i].status == THOLE_APP);
        (void)snprintf(want, sizeof want,
                       "1 partition: partition=6 instance=shop execution=3 crashed when it was tried in a "
                       "forked copy: %.7s",
                       rows[i].text);
        if (play.logs > 0)
            CU_ASSERT_EQUAL(strncmp(play.log, want, strlen(want)), 0);
    }
}

static void test_what_the_copy_is(void)
{
    char text[600];
    struct rlimit core, most;
    (void)getrlimit(RLIMIT_CORE, &core);
    most = core;
    most.rlim_cur = most.rlim_max;
    (void)setrlimit(RLIMIT_CORE, &most);
    play.fails = NULL;
    CU_ASSERT_EQUAL(trial_of(look, NULL, text, sizeof text), THOLE_OK);
    (void)setrlimit(RLIMIT_CORE, &core);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(play.shared[i], 1);
    CU_ASSERT_TRUE(play.shared[4] != 0 && play.shared[4] != (int)getpid());
}

/* Without a --turn-limit the trial has one. */
static void test_limits(void)
{
    static const struct {
        uint64_t turn_limit_ms, want_ms;
    } rows[] = {{0, 10000}, {1, 1}, {10000, 10000}, {INT32_MAX, INT32_MAX}, {(uint64_t)INT32_MAX + 1, 10000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CU_ASSERT_EQUAL(crash_trial_limit_ms(rows[i].turn_limit_ms), rows[i].want_ms);
}

static void begin_suite(void)
{
    play.shared =
        mmap(NULL, SHARED * sizeof *play.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(play.shared != MAP_FAILED);
    play.engine = __real_crash_page_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(play.engine);
    crash_listen(play.engine, -1); /* as an engine does */
}

/* Reports of the copies were not taken for the engine's. */
static void end_suite(void)
{
    CU_ASSERT_EQUAL(atomic_load(&play.engine->crash.state), CRASH_UNREPORTED);
    crash_unlisten();
    __real_crash_page_destroy(play.engine);
    (void)munmap(play.shared, SHARED * sizeof *play.shared);
}

static const struct thole_test tests[] = {{"memory for what it looks at", begin_suite},
                                          {"how it ends", test_how_it_ends},
                                          {"what the copy is", test_what_the_copy_is},
                                          {"limits", test_limits},
                                          {"nothing of the engine itself", end_suite}};
THOLE_TEST_MAIN("crash_trial", tests)
