/* Handlers in processes of their own that crash, lie, or do not want to die: the try fails, nothing of it is
 * left, and the next one runs. */
#include "captured.h"
#include "process_parts.h"
#include "process_stage.h"
#include "sanitized.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static void nap_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000}, NULL);
}

/* ---- crashes ---- */

static void dump_nothing(void)
{
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)signal(SIGSEGV, SIG_DFL); /* not the sanitizer's */
    (void)signal(SIGABRT, SIG_DFL);
}

static int own_socket(void)
{
    int type = 0;
    for (int fd = 3; fd < 200; fd++) {
        socklen_t len = sizeof type;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0)
            return fd;
    }
    return -1;
}

static thole_status crash(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char how[32];
    (void)ret_output;
    snprintf(how, sizeof how, "%.*s", THOLE_FMT(input));
    dump_nothing();
    if (strcmp(how, "segv") == 0)
        (void)raise(SIGSEGV);
    if (strcmp(how, "null") == 0) {
        volatile uintptr_t nowhere = 0; /* which no compiler knows */
        *(volatile int *)nowhere = 1;
    }
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "exit 0") == 0)
        exit(0);
    if (strcmp(how, "_exit 3") == 0)
        _exit(3);
    if (strcmp(how, "kill") == 0)
        (void)kill(getpid(), SIGKILL);
    if (strcmp(how, "signal") == 0)
        (void)kill(getpid(), SIGRTMIN + 1);
    if (strcmp(how, "pipe") == 0)
        (void)raise(SIGPIPE);
    if (strcmp(how, "close") == 0) {
        atomic_fetch_add(&process_notes->started, 1);
        (void)close_range(0, ~0U, 0);
        for (;;)
            (void)pause();
    }
    if (strcmp(how, "close and return") == 0)
        (void)close_range(3, ~0U, 0);
    if (strcmp(how, "group") == 0)
        (void)kill(0, SIGKILL);
    return thole_activity_fail(act, "still there");
}

static void check_end(struct process_running *running, const char *type, const char *text)
{
    char got[256];
    process_stage_end(running);
    snprintf(got, sizeof got, "%.*s", THOLE_FMT(running->act->failure));
    CHECK_STR("failure", got, text);
    CU_ASSERT(thole_slice_equal(running->act->failure_type, thole_slice_from(type)));
    activity_destroy(running->act);
}

static const struct crash_case {
    const char *how, *want;
} crashes[] = {
    {"segv", "APP [crash]: the process was killed by SIGSEGV | page 1"},
    {"abort", "APP [crash]: the process was killed by SIGABRT | page 1"},
    {"exit 0", "APP [crash]: the process exited with code 0 instead of returning | page 1"},
    {"_exit 3", "APP [crash]: the process exited with code 3 instead of returning | page 1"},
    {"kill",
     "APP [crash]: the process was killed by SIGKILL, by the system (out of memory) or by somebody | page 1"},
    {"signal", "APP [crash]: the process was killed by signal 35 | page 1"},
    {"pipe", "APP [crash]: the process was killed by SIGPIPE | page 1"},
    {"close and return", "APP [crash]: the process exited with code 0 instead of returning | page 1"},
    {"group",
     "APP [crash]: the process was killed by SIGKILL, by the system (out of memory) or by somebody | page 1"},
    {"nothing", "APP []: still there | page 1"},
};

static void test_crashes(void)
{
    struct process_running closing;
    process_stage_begin(&closing, "crash", "close"); /* takes longer than the others: it lives */
    for (size_t i = 0; i < ARRAY_LEN(crashes); i++)
        process_stage_check(crashes[i].how, process_stage_once("crash", crashes[i].how), crashes[i].want);
    if (!SANITIZED)
        process_stage_check("null", process_stage_once("crash", "null"), crashes[0].want);
    check_end(&closing, "crash", "the process has closed its socket to the worker");
}

/* ---- lies ---- */

static thole_status garbage(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    static const struct {
        uint32_t head[2];
        uint8_t body[8];
    } frames[] = {
        {{77, 0}, ""},                            /* a kind that is none */
        {{3, 0xffffffff}, ""},                    /* longer than any */
        {{3, 8}, "\xff\xff\xff\xff\xff\xff\xff"}, /* not protobuf */
        {{1, 0}, ""},                             /* not for the worker */
        {{3, 0}, ""},                             /* empty */
        {{2, 100000}, ""},                        /* larger than details may be */
    };
    size_t const which = (size_t)(input.ptr[0] - '0');
    (void)ret_output;
    (void)send(own_socket(), &frames[which], sizeof frames[which], MSG_NOSIGNAL);
    if (which == 5)
        for (int i = 0; i < 100000 / 8; i++)
            (void)send(own_socket(), frames[0].body, 8, MSG_NOSIGNAL);
    return thole_activity_fail(act, "it has not been noticed");
}

static thole_status half(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    uint32_t const head[2] = {3, 1000};
    (void)act, (void)input, (void)ret_output;
    (void)send(own_socket(), head, sizeof head, MSG_NOSIGNAL);
    _exit(0);
}

static void test_lies(void)
{
    static const char *const which[] = {"0", "1", "2", "3", "4", "5"};
    for (size_t i = 0; i < ARRAY_LEN(which); i++)
        process_stage_check(
            which[i], process_stage_once("garbage", which[i]),
            "APP [crash]: the process has written to its socket to the worker what is no message "
            "| page 1");
    process_stage_check("half", process_stage_once("half", ""),
                        "APP [crash]: the process exited with code 0 instead of returning | page 1");
}

/* ---- families ---- */

static void ignore_and_spin(void)
{
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    process_note(getpid());
    for (;;)
        ;
}

/* By the book. */
static void start_daemon(void)
{
    pid_t const first = fork();
    if (first == 0) {
        (void)setsid();
        if (fork() == 0) {
            (void)close_range(0, ~0U, 0);
            (void)chdir("/");
            ignore_and_spin();
        }
        _exit(0);
    }
    (void)waitpid(first, NULL, 0);
}

/* Children in the group, one in a session of its own, one whose parents are gone, and a grandchild. */
static void start_family(void)
{
    unsigned const before = atomic_load(&process_notes->pids_len);
    for (int i = 0; i < 2; i++)
        if (fork() == 0)
            ignore_and_spin();
    if (fork() == 0) {
        (void)setsid();
        if (fork() == 0)
            ignore_and_spin();
        ignore_and_spin();
    }
    start_daemon();
    while (atomic_load(&process_notes->pids_len) < before + 5)
        nap_ms(1);
}

/* The remaining process is not its child. */
static thole_status demonic(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    start_daemon();
    while (atomic_load(&process_notes->pids_len) == 0)
        nap_ms(1);
    *ret_output = input;
    return THOLE_OK;
}

static thole_status stubborn(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    (void)signal(SIGTERM, SIG_IGN);
    start_family();
    process_note(getpid());
    atomic_fetch_add(&process_notes->started, 1);
    for (;;)
        ;
    return THOLE_OK;
}

static thole_status parent(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    start_family();
    process_note(getpid());
    *ret_output = input;
    if (thole_slice_equal(input, THOLE_STR("crash"))) {
        dump_nothing();
        (void)raise(SIGSEGV);
    }
    return thole_slice_equal(input, THOLE_STR("fail")) ? thole_activity_fail(act, "failed") : THOLE_OK;
}

/* Kills the one that is to kill it. */
static thole_status regicide(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    start_family();
    process_note(getpid());
    (void)kill(getppid(), SIGKILL);
    for (;;)
        (void)pause();
    return THOLE_OK;
}

/* A child that was waited for does not remain; nor does one that has ended without a wait. */
static thole_status tidy(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    pid_t const child = fork();
    if (child == 0)
        _exit(0);
    if (thole_slice_equal(input, THOLE_STR("wait")))
        (void)waitpid(child, NULL, 0);
    else
        (void)waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT);
    *ret_output = thole_activity_format(act, "%d", (int)getpid());
    return THOLE_OK;
}

/* The child of a handler that forgets to end runs on into our code. */
static thole_status forgetful(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    pid_t const child = fork();
    (void)input;
    if (child != 0)
        (void)waitpid(child, NULL, 0);
    *ret_output = thole_activity_format(act, "%d", child != 0);
    return THOLE_OK;
}

/* A grandchild of it becomes an orphan, which ends before it does, or with it. */
static thole_status orphans(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)ret_output;
    pid_t const child = fork();
    if (child == 0) {
        if (fork() == 0 && thole_slice_equal(input, THOLE_STR("stays")))
            for (;;)
                (void)pause();
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
    nap_ms(200);
    dump_nothing();
    (void)kill(getpid(), SIGKILL);
    return THOLE_OK;
}

/* Descriptors of a program that the handler starts. */
static thole_status descriptors(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char text[256] = "";
    FILE *const list = popen("ls /proc/self/fd", "r");
    (void)input;
    if (list == NULL)
        return thole_activity_fail(act, "cannot start ls");
    (void)!fread(text, 1, sizeof text - 1, list);
    (void)pclose(list);
    for (char *at = text; *at != '\0'; at++)
        *at = *at == '\n' ? ' ' : *at;
    *ret_output = thole_activity_format(act, "%s", text);
    return THOLE_OK;
}

static void test_killed_with_family(void)
{
    struct process_running running;
    atomic_store(&process_notes->pids_len, 0);
    process_stage_begin(&running, "stubborn", "");
    CU_ASSERT_EQUAL(process_alive(), 6);
    process_stage_fire(running.act, THOLE_CANCEL_REQUESTED, "", 1);
    nap_ms(20);
    CU_ASSERT_EQUAL(process_alive(), 6); /* SIGTERM was sent, too */
    uint64_t const from_ms = clock_monotonic_ms();
    process_pool_kill(running.act);
    process_stage_end(&running);
    fprintf(stderr, "\n  six processes killed in %d ms\n", (int)(clock_monotonic_ms() - from_ms));
    CU_ASSERT_EQUAL(process_alive(), 0); /* not only told to die: gone */
    CU_ASSERT_EQUAL(running.act->status, THOLE_CANCELLED);
    activity_destroy(running.act);
}

static void test_killed_before_it_has_a_process(void)
{
    struct thole_activity *const act = process_stage_activity("stubborn", "", true);
    process_pool_kill(act);
    activity_run(act);
    CU_ASSERT_EQUAL(act->status, THOLE_CANCELLED);
    activity_destroy(act);
}

static void test_leftovers(void)
{
    static const struct {
        const char *input, *want;
    } rows[] = {{"done", "ok: done"},
                {"fail", "APP []: failed | page 1"},
                {"crash", "APP [crash]: the process was killed by SIGSEGV | page 1"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        atomic_store(&process_notes->pids_len, 0);
        process_stage_check(rows[i].input, process_stage_once("parent", rows[i].input), rows[i].want);
        CU_ASSERT_EQUAL(atomic_load(&process_notes->pids_len), 6);
        CU_ASSERT_EQUAL(process_alive(), 0);
    }
    atomic_store(&process_notes->pids_len, 0);
    process_stage_check("a daemon", process_stage_once("demonic", "done"), "ok: done");
    CU_ASSERT_EQUAL(atomic_load(&process_notes->pids_len), 1);
    CU_ASSERT_EQUAL(process_alive(), 0);
}

/* The forkserver inherits the orphans. */
static void test_guard_killed(void)
{
    atomic_store(&process_notes->pids_len, 0);
    process_stage_check("guard", process_stage_once("regicide", ""),
                        "APP [crash]: the guard of the process was killed, and the process with it | page 1");
    for (int i = 0; i < 20000 && process_alive() > 0; i++)
        nap_ms(1);
    CU_ASSERT_EQUAL(atomic_load(&process_notes->pids_len), 6);
    CU_ASSERT_EQUAL(process_alive(), 0);
}

static void test_no_leftovers(void)
{
    char first[64];
    snprintf(first, sizeof first, "%s", process_stage_once("tidy", "wait"));
    process_stage_check("waited for", process_stage_once("tidy", "wait"), first);
    process_stage_check("not asked for", process_stage_once("tidy", "no"), first);
    process_stage_check("still the same", process_stage_once("tidy", "no"), first);
    process_stage_check("a child that returns", process_stage_once("forgetful", ""), "ok: 1");
    process_stage_check("another time", process_stage_once("forgetful", ""), "ok: 1");
}

static void run_orphans(void *input)
{
    process_stage_check(input, process_stage_once("orphans", input),
                        "APP [crash]: the process was killed by SIGKILL, by the system (out of memory) or by "
                        "somebody | page 1");
}

/* Processes killed with it are reported; those that had ended before are not. */
static void test_how_many_went_with_it(void)
{
    static const struct {
        const char *input, *logged;
    } rows[] = {{"ends", "is gone, and 0 that it had started"},
                {"stays", "is gone, and 1 that it had started"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *const text = captured(STDERR_FILENO, run_orphans, (char *)rows[i].input);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, rows[i].logged));
        if (strstr(text, rows[i].logged) == NULL)
            fprintf(stderr, "%s: %s", rows[i].input, text);
        free(text);
    }
}

static void test_descriptors_of_its_programs(void)
{
    process_stage_check("its own three, and the folder", process_stage_once("descriptors", ""),
                        "ok: 0 1 2 3 ");
}

/* Each forks its successor and ends, so that there is never one to kill for long. */
static thole_status runner(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    if (fork() == 0) {
        (void)setsid();
        for (;;) {
            atomic_fetch_add(&process_notes->fired, 1);
            pid_t const next = fork();
            if (next != 0)
                _exit(0);
            (void)setsid();
        }
    }
    while (atomic_load(&process_notes->fired) < 20)
        ;
    atomic_fetch_add(&process_notes->started, 1);
    for (;;)
        (void)pause();
    return THOLE_OK;
}

static void test_runs_away(void)
{
    struct process_running running;
    atomic_store(&process_notes->fired, 0);
    process_stage_begin(&running, "runner", "");
    process_stage_fire(running.act, THOLE_CANCEL_REQUESTED, "", 1);
    uint64_t const from_ms = clock_monotonic_ms();
    process_pool_kill(running.act);
    process_stage_end(&running);
    uint64_t const took_ms = clock_monotonic_ms() - from_ms;
    unsigned const at = atomic_load(&process_notes->fired);
    nap_ms(50);
    CU_ASSERT_EQUAL(atomic_load(&process_notes->fired), at); /* runs no more */
    fprintf(stderr, "\n  caught after %d ms, in generation %u\n", (int)took_ms, at);
    activity_destroy(running.act);
}

/* ---- limits ---- */

static thole_status spins(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)ret_output;
    if (thole_slice_equal(input, THOLE_STR("ignore")))
        (void)signal(SIGXCPU, SIG_IGN);
    atomic_fetch_add(&process_notes->started, 1);
    for (;;)
        ;
    return THOLE_OK;
}

static thole_status eats(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    size_t const bytes = (size_t)1 << 30;
    (void)ret_output;
    char *volatile const memory = malloc(bytes); /* volatile: a compiler may leave out what is only freed */
    if (memory == NULL && thole_slice_equal(input, THOLE_STR("look")))
        return thole_activity_fail(act, "out of memory");
    dump_nothing();
    if (memory == NULL)
        abort();
    free(memory);
    return THOLE_OK;
}

static thole_status hangs(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    for (;;)
        (void)pause();
    return THOLE_OK;
}

static void test_starves(void)
{
    enum { BYTES = 8 * 1024 * 1024 - 1024 };
    char *const input = calloc(1, BYTES + 1);
    memset(input, 'x', BYTES);
    process_stage_check(
        "too little to begin with", process_stage_once("starves", input),
        "APP [crash]: the process exited with code 125 before the handler was called; its log "
        "says why; its address space is limited to 4096 bytes | page 1");
    free(input);
}

static void test_limits(void)
{
    struct process_running polite, deaf;
    process_stage_begin(&deaf, "spins", "ignore");
    process_stage_begin(&polite, "spins", "");
    check_end(&polite, "limit", "the process was killed by SIGXCPU: its CPU time is limited to 1 s");
    check_end(&deaf, "limit", "the process was killed by SIGKILL: its CPU time is limited to 1 s");
    process_stage_check("wall clock", process_stage_once("hangs", ""),
                        "APP [limit]: the process was killed after 100 ms, its limit | page 1");
    if (SANITIZED)
        return;
    process_stage_check("a handler that looks", process_stage_once("eats", "look"),
                        "APP []: out of memory | page 1");
    process_stage_check("one that does not", process_stage_once("eats", ""),
                        "APP [crash]: the process was killed by SIGABRT; its address space is limited to "
                        "536870912 bytes | page 1");
    test_starves();
}

/* ---- killed from outside ---- */

static thole_status holds(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    process_note(getpid());
    atomic_fetch_add(&process_notes->started, 1);
    return thole_activity_wait(act, 60000);
}

static thole_status pid(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = thole_activity_format(act, "%d", (int)getpid());
    return THOLE_OK;
}

static void until_gone(pid_t one)
{
    for (int i = 0; i < 20000 && kill(one, 0) == 0; i++)
        nap_ms(1);
    CU_ASSERT_NOT_EQUAL(kill(one, 0), 0);
}

static void test_killed_from_outside(void)
{
    struct process_running running;
    atomic_store(&process_notes->pids_len, 0);
    process_stage_begin(&running, "holds", "");
    (void)kill(atomic_load(&process_notes->pids[0]), SIGKILL);
    process_stage_end(&running);
    CU_ASSERT_EQUAL(running.act->status, THOLE_APP);
    CU_ASSERT(thole_slice_equal(running.act->failure_type, THOLE_STR("crash")));
    activity_destroy(running.act);
}

/* One that dies in its sleep is no failure of what comes next. */
static void test_killed_while_idle(void)
{
    pid_t const one = (pid_t)strtol(process_stage_once("pid", "") + 4, NULL, 10);
    (void)kill(one, SIGKILL);
    const char *const text = process_stage_once("pid", ""); /* before its guard can have said so, perhaps */
    CU_ASSERT_NSTRING_EQUAL(text, "ok: ", 4);
    CU_ASSERT_NOT_EQUAL(strtol(text + 4, NULL, 10), (long)one);
    until_gone(one);
}

static pid_t parent_of(pid_t one)
{
    char path[64], line[128];
    long parent = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)one);
    FILE *const file = fopen(path, "re");
    while (file != NULL && parent == 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "PPid:", 5) == 0)
            parent = strtol(line + 5, NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return (pid_t)parent;
}

/* No forkserver clears away after a guard: its process dies by itself. */
static void check_guard_killed(struct process_running *running, pid_t one)
{
    pid_t gone = 0;
    (void)kill(parent_of(one), SIGKILL);
    for (int i = 0; i < 20000 && gone == 0; i++) {
        gone = waitpid(one, NULL, WNOHANG);
        if (gone <= 0) { /* not ours yet, or it lives */
            gone = 0;
            nap_ms(1);
        }
    }
    CU_ASSERT_EQUAL(gone, one);
    process_stage_end(running);
    CU_ASSERT_EQUAL(running->act->status, THOLE_APP);
    activity_destroy(running->act);
}

/* Runs last: the forkserver is not replaced. What runs goes on, and its guard does its work. */
static void test_forkserver_killed(void)
{
    struct process_running running, held;
    pid_t own[8];
    atomic_store(&process_notes->pids_len, 0);
    process_stage_begin(&held, "holds", "");
    pid_t const holder = atomic_load(&process_notes->pids[0]);
    atomic_store(&process_notes->pids_len, 0);
    process_stage_begin(&running, "stubborn", "");
    CU_ASSERT_EQUAL_FATAL(process_children(getpid(), own, 8), 1);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans are ours, to be waited for */
    (void)kill(own[0], SIGKILL);
    (void)waitpid(own[0], NULL, WNOWAIT);
    CU_ASSERT_FALSE(forkserver_is_lost(process_stage_forkserver)); /* nobody has asked */
    CU_ASSERT_EQUAL(process_alive(), 6);
    check_guard_killed(&held, holder);
    struct thole_activity *const act = process_stage_activity("tidy", "", true); /* none is warm */
    pthread_t thread;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, (void *(*)(void *))process_stage_run, act), 0);
    for (int i = 0; i < 20000 && atomic_load(&process_stage_lost) == 0; i++)
        nap_ms(1);
    CU_ASSERT_EQUAL(atomic_load(&process_stage_lost), 1); /* the worker is to stop */
    CU_ASSERT_TRUE(forkserver_is_lost(process_stage_forkserver));
    process_stage_fire(act, THOLE_CANCEL_SHUTDOWN, "", 1000);
    (void)pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(act->status, THOLE_CANCELLED); /* and no failure */
    activity_destroy(act);
    process_stage_fire(running.act, THOLE_CANCEL_SHUTDOWN, "", 1);
    process_pool_kill(running.act);
    process_stage_end(&running);
    CU_ASSERT_EQUAL(process_alive(), 0);
    activity_destroy(running.act);
}

#define PROCESS .size = sizeof(thole_activity_options), .isolation = THOLE_ISOLATION_PROCESS
static const thole_activity_options plain = {PROCESS};
static const thole_activity_options terminated = {PROCESS, .terminate = true};
static const thole_activity_options one_second = {PROCESS, .cpu_max_s = 1};
static const thole_activity_options half_a_gigabyte = {PROCESS, .memory_max = 512 * 1024 * 1024};
static const thole_activity_options nothing_at_all = {PROCESS, .memory_max = 4096};
static const thole_activity_options soon_over = {PROCESS, .wall_max_ms = 100};
static const thole_activity_entry activities[] = {
    {.name = "crash", .run = crash, .options = &plain},
    {.name = "garbage", .run = garbage, .options = &plain},
    {.name = "half", .run = half, .options = &plain},
    {.name = "stubborn", .run = stubborn, .options = &terminated},
    {.name = "parent", .run = parent, .options = &plain},
    {.name = "regicide", .run = regicide, .options = &plain},
    {.name = "demonic", .run = demonic, .options = &plain},
    {.name = "tidy", .run = tidy, .options = &plain},
    {.name = "forgetful", .run = forgetful, .options = &plain},
    {.name = "runner", .run = runner, .options = &plain},
    {.name = "spins", .run = spins, .options = &one_second},
    {.name = "eats", .run = eats, .options = &half_a_gigabyte},
    {.name = "starves", .run = eats, .options = &nothing_at_all},
    {.name = "hangs", .run = hangs, .options = &soon_over},
    {.name = "holds", .run = holds, .options = &plain},
    {.name = "pid", .run = pid, .options = &plain},
    {.name = "orphans", .run = orphans, .options = &plain},
    {.name = "descriptors", .run = descriptors, .options = &plain},
};
static const thole_program program = {.size = sizeof program,
                                      .name = "stage",
                                      .activities = activities,
                                      .activities_len = ARRAY_LEN(activities)};

int main(void)
{
    static const struct thole_test tests[] = {
        {"a crash is a failed try", test_crashes},
        {"what is no message", test_lies},
        {"killed with all that it has started", test_killed_with_family},
        {"killed before it has a process", test_killed_before_it_has_a_process},
        {"nothing outlives its activity", test_leftovers},
        {"how many went with it", test_how_many_went_with_it},
        {"descriptors of its programs", test_descriptors_of_its_programs},
        {"a guard is killed", test_guard_killed},
        {"what it has cleared away is not left behind", test_no_leftovers},
        {"one that runs away is caught", test_runs_away},
        {"limits", test_limits},
        {"killed from outside", test_killed_from_outside},
        {"killed while idle", test_killed_while_idle},
        {"the forkserver is killed", test_forkserver_killed},
    };
    process_stage_open(&program, 2);
    int const failed = thole_run_suite("process_hostile", tests, ARRAY_LEN(tests));
    process_stage_close();
    return failed;
}
