/* A handler in a process of its own sees, can do and returns the same as one on a thread. */
#include "dropped.h"
#include "process_stage.h"
#include "wrap_mutexes.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum {
    LARGE_BYTES = 9 * 1024 * 1024, /* more than any frame */
    CPU_MAX_S = 7200,              /* limit in the environment of this program */
};

/* ---- handlers ---- */

static const struct activity_parties nobody = {.version = 0};

static thole_status facts(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(
        act, "%.*s|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s@%u by %.*s|%u %u %u %u %d %d %d %d", THOLE_FMT(input),
        THOLE_FMT(thole_activity_instance(act)), THOLE_FMT(thole_activity_name(act)),
        THOLE_FMT(thole_activity_key(act)), THOLE_FMT(thole_activity_queue(act)),
        THOLE_FMT(thole_activity_details(act)), THOLE_FMT(thole_activity_orchestration(act)),
        thole_activity_version(act), THOLE_FMT(thole_activity_worker(act)),
        (unsigned)thole_activity_execution(act), (unsigned)thole_activity_id(act), thole_activity_try(act),
        thole_activity_attempt(act), thole_activity_time_left_ms(act) == UINT64_MAX,
        thole_activity_cancelled(act), thole_activity_cancel_kind(act),
        thole_activity_grace_left_ms(act) == UINT64_MAX);
    return THOLE_OK;
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    *ret_output = input;
    return THOLE_OK;
}

static thole_status nothing(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_OK;
}

static thole_status fails(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    (void)thole_activity_heartbeat(act, THOLE_STR("page 2"));
    (void)thole_activity_heartbeat(act, THOLE_STR("page 3"));
    return thole_activity_fail(act, "no %.*s", THOLE_FMT(input));
}

static thole_status fails_as(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    return thole_activity_fail_as(act, THOLE_STR("bank.away"), "no answer");
}

static thole_status fails_for_good(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    return thole_activity_fail_final(act, THOLE_STR("declined"), "never");
}

static thole_status gives_up(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_CANCELLED;
}

static thole_status odd(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return (thole_status)77;
}

static thole_status bare(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_DENIED;
}

static thole_status large(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = (thole_slice){thole_activity_alloc(act, LARGE_BYTES), LARGE_BYTES};
    return THOLE_OK;
}

static thole_status later(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    thole_slice token;
    (void)input, (void)ret_output;
    thole_status const status = thole_activity_later(act, &token);
    return thole_slice_equal(token, THOLE_STR("5.3.4.2.order%207")) ? status : THOLE_INVALID;
}

static thole_status pretends(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_LATER;
}

static thole_status limits(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    static uint8_t details[16 * 1024 + 1];
    (void)input;
    *ret_output = thole_activity_format(act, "%d %d %d",
                                        thole_activity_heartbeat(act, (thole_slice){details, sizeof details}),
                                        thole_activity_heartbeat(act, (thole_slice){details, 16 * 1024}),
                                        thole_activity_alloc(act, SIZE_MAX) == NULL);
    return THOLE_OK;
}

static thole_status time_left(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    uint64_t const left_ms = thole_activity_time_left_ms(act);
    (void)input;
    *ret_output = left_ms > 30000 && left_ms <= 60000 ? THOLE_STR("less than a minute") : THOLE_STR("?");
    return THOLE_OK;
}

static thole_status pid(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = thole_activity_format(act, "%d", (int)getpid());
    return THOLE_OK;
}

static thole_status waits(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    atomic_fetch_add(&process_notes->started, 1);
    thole_status const status = thole_activity_wait(act, 60000);
    uint64_t const left_ms = thole_activity_grace_left_ms(act);
    drop_status(thole_activity_fail(
        act, "%d %s %.*s %d %d", status, thole_cancel_kind_name(thole_activity_cancel_kind(act)),
        THOLE_FMT(thole_activity_cancel_reason(act)), left_ms > 20000 && left_ms <= 30000,
        thole_activity_heartbeat(act, THOLE_STR("late"))));
    return status;
}

static thole_status polls(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    struct pollfd wait = {.fd = thole_activity_cancel_fd(act), .events = POLLIN};
    (void)input;
    int const before = poll(&wait, 1, 0);
    atomic_fetch_add(&process_notes->started, 1);
    int const after = poll(&wait, 1, 60000);
    *ret_output = thole_activity_format(act, "%d %d %d", before, after, thole_activity_cancelled(act));
    return THOLE_OK;
}

static thole_status spins(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    atomic_fetch_add(&process_notes->started, 1);
    while (!thole_activity_cancelled(act))
        ;
    *ret_output = THOLE_STR("seen");
    return THOLE_OK;
}

static thole_status hurries(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    atomic_fetch_add(&process_notes->started, 1);
    (void)!thole_activity_wait(act, 60000);
    atomic_fetch_add(&process_notes->fired, 1);
    uint64_t const end_ms = clock_monotonic_ms() + 20000;
    while (thole_activity_grace_left_ms(act) > 1000 && clock_monotonic_ms() < end_ms)
        ;
    *ret_output =
        thole_activity_grace_left_ms(act) > 1000 ? THOLE_STR("at leisure") : THOLE_STR("in a hurry");
    return THOLE_OK;
}

/* The token is for what it forks, too. The descriptor is readable a moment after the token has fired. */
static thole_status family(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    int status = -1;
    struct pollfd wait = {.fd = thole_activity_cancel_fd(act), .events = POLLIN};
    (void)input;
    pid_t const child = fork();
    if (child == 0) {
        atomic_fetch_add(&process_notes->started, 1);
        bool const told = thole_activity_wait(act, 60000) == THOLE_CANCELLED;
        _exit(told && thole_activity_cancelled(act) && poll(&wait, 1, 60000) == 1 ? 21 : 1);
    }
    (void)waitpid(child, &status, 0);
    *ret_output = thole_activity_format(act, "%d", WEXITSTATUS(status));
    return THOLE_OK;
}

static void on_term(int number)
{
    (void)number;
    atomic_fetch_add(&process_notes->terminated, 1);
}

static thole_status is_terminated(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    struct sigaction const action = {.sa_handler = on_term};
    int status = 0;
    (void)input;
    pid_t const child = fork();
    if (child == 0) {
        (void)alarm(20); /* when SIGTERM is for its parent only */
        for (;;)
            (void)pause();
    }
    sigaction(SIGTERM, &action, NULL);
    atomic_fetch_add(&process_notes->started, 1);
    while (atomic_load(&process_notes->terminated) == 0)
        (void)!thole_activity_wait(act, 10);
    (void)waitpid(child, &status, 0);
    *ret_output = thole_activity_format(act, "gently, its child by signal %d",
                                        WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return THOLE_OK;
}

static long oom_score(pid_t of)
{
    char path[64], text[16] = "";
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)of);
    int const fd = open(path, O_RDONLY);
    (void)!read(fd, text, sizeof text - 1);
    (void)close(fd);
    return strtol(text, NULL, 10);
}

/* Facts about its surroundings. */
static thole_status looks_around(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    int opened = 0, caught = 0;
    char byte, folder[256];
    struct sigaction action;
    sigset_t mask;
    long const score = oom_score(getpid());
    (void)input;
    for (int fd = 3; fd < 200; fd++)
        opened += fcntl(fd, F_GETFD) >= 0;
    for (int number = 1; number < 32; number++)
        caught += sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number < 32; number++)
        caught += sigismember(&mask, number) == 1;
    *ret_output = thole_activity_format(
        act, "%d %d %d %d %d %d %s %s %s", opened, caught, (int)read(0, &byte, 1), getpgrp() == getpid(),
        score > oom_score(getppid()) || score == 1000, getcwd(folder, sizeof folder) != NULL,
        getenv("THOLE_POSTGRES") == NULL ? "none" : "secret",
        getenv("STAGE") == NULL ? "none" : getenv("STAGE"), process_stage_argument);
    return THOLE_OK;
}

static thole_status cpu_limits(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    struct rlimit cpu;
    (void)input;
    if (getrlimit(RLIMIT_CPU, &cpu) != 0)
        return thole_activity_fail(act, "no limits");
    *ret_output = thole_activity_format(act, "%llu %llu", (unsigned long long)cpu.rlim_cur,
                                        (unsigned long long)cpu.rlim_max);
    return THOLE_OK;
}

/* Makes the page that it shares with the worker shorter, which then dies of a look at it. */
static thole_status shrinks(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    unsigned long from = 0, to = 0;
    char line[512], path[128];
    FILE *const maps = fopen("/proc/self/maps", "re");
    (void)act, (void)input;
    while (maps != NULL && to == 0 && fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "memfd:thole-process") != NULL)
            (void)sscanf(line, "%lx-%lx", &from, &to);
    snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", from, to);
    int const fd = open(path, O_RDWR | O_CLOEXEC); /* not everybody may */
    *ret_output = fd >= 0 && ftruncate(fd, 0) == 0 ? THOLE_STR("shrunk") : THOLE_STR("refused");
    if (maps != NULL)
        (void)fclose(maps);
    if (fd >= 0)
        (void)close(fd);
    return to == 0 ? THOLE_NOT_FOUND : THOLE_OK;
}

static const thole_activity_options plain = {.size = sizeof plain, .isolation = THOLE_ISOLATION_PROCESS};
static const thole_activity_options twice = {
    .size = sizeof twice, .isolation = THOLE_ISOLATION_PROCESS, .runs_max = 2};
static const thole_activity_options gentle = {
    .size = sizeof gentle, .isolation = THOLE_ISOLATION_PROCESS, .terminate = true};
static const thole_activity_options trusted = {
    .size = sizeof trusted, .isolation = THOLE_ISOLATION_PROCESS, .keep_env = true};
static const thole_activity_options minute = {
    .size = sizeof minute, .isolation = THOLE_ISOLATION_PROCESS, .cpu_max_s = 60};
static const thole_activity_options generous = {
    .size = sizeof generous, .isolation = THOLE_ISOLATION_PROCESS, .cpu_max_s = CPU_MAX_S + 1};
#define ACTIVITY(fn)                                                                                         \
    {                                                                                                        \
        .name = #fn, .run = fn, .options = &plain                                                            \
    }
static const thole_activity_entry activities[] = {
    ACTIVITY(facts),
    ACTIVITY(echo),
    ACTIVITY(nothing),
    ACTIVITY(fails),
    ACTIVITY(fails_as),
    ACTIVITY(fails_for_good),
    ACTIVITY(gives_up),
    ACTIVITY(odd),
    ACTIVITY(bare),
    ACTIVITY(large),
    ACTIVITY(later),
    ACTIVITY(pretends),
    ACTIVITY(limits),
    ACTIVITY(time_left),
    ACTIVITY(pid),
    ACTIVITY(waits),
    ACTIVITY(polls),
    ACTIVITY(spins),
    ACTIVITY(hurries),
    ACTIVITY(family),
    ACTIVITY(looks_around),
    {.name = "pid_twice", .run = pid, .options = &twice},
    {.name = "terminated", .run = is_terminated, .options = &gentle},
    {.name = "minute", .run = cpu_limits, .options = &minute},
    {.name = "generous", .run = cpu_limits, .options = &generous},
    {.name = "pid_minute", .run = pid, .options = &minute},
    ACTIVITY(shrinks),
    {.name = "trusted", .run = looks_around, .options = &trusted},
};
static const thole_program program = {.size = sizeof program,
                                      .name = "stage",
                                      .activities = activities,
                                      .activities_len = ARRAY_LEN(activities)};

/* ---- tests ---- */

static void test_same_results(void)
{
    static const char *const names[] = {"facts",          "echo",     "nothing", "fails", "fails_as",
                                        "fails_for_good", "gives_up", "odd",     "bare",  "large",
                                        "later",          "pretends", "limits"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char on_thread[4096];
        struct thole_activity *act = process_stage_activity(names[i], "money", false);
        snprintf(on_thread, sizeof on_thread, "%s", process_stage_run(act));
        activity_destroy(act);
        process_stage_check(names[i], process_stage_once(names[i], "money"), on_thread);
    }
    process_stage_check("of a process", process_stage_once("fails", "money"), "APP []: no money | page 3");
}

/* Of a try that has returned: its process is another one's by now. */
static void test_a_kill_that_comes_late(void)
{
    char first[64];
    struct thole_activity *const act = process_stage_activity("pid", "", true);
    snprintf(first, sizeof first, "%s", process_stage_run(act));
    process_pool_kill(act);
    process_stage_check("it lives", process_stage_once("pid", ""), first);
    activity_destroy(act);
}

static void test_time_left(void)
{
    struct thole_activity *const act = process_stage_activity("time_left", "", true);
    CU_ASSERT_EQUAL(activity_begin(act, 1, clock_monotonic_ms() + 60000, THOLE_STR(""), &nobody), THOLE_OK);
    process_stage_check("deadline", process_stage_run(act), "ok: less than a minute");
    activity_destroy(act);
}

/* More than a socket holds. */
static void test_large_input(void)
{
    enum { BYTES = 3 * 1024 * 1024 };
    char *const input = calloc(1, BYTES + 1);
    memset(input, 'x', BYTES);
    struct thole_activity *act = process_stage_activity("nothing", input, true);
    process_stage_check("large input", process_stage_run(act), "ok: ");
    activity_destroy(act);
    input[90000] = '\0';
    act = process_stage_activity("echo", input, true);
    activity_run(act);
    CU_ASSERT_EQUAL(act->output.len, 90000);
    CU_ASSERT_TRUE(thole_slice_equal(act->output, thole_slice_from(input)));
    activity_destroy(act);
    free(input);
}

static void test_warm(void)
{
    char first[32];
    snprintf(first, sizeof first, "%s", process_stage_once("pid", ""));
    for (int i = 0; i < 3; i++)
        process_stage_check("the same process", process_stage_once("pid", ""), first);
    snprintf(first, sizeof first, "%s", process_stage_once("pid_twice", ""));
    process_stage_check("the second time", process_stage_once("pid_twice", ""), first);
    CU_ASSERT_STRING_NOT_EQUAL(process_stage_once("pid_twice", ""), first);
    snprintf(first, sizeof first, "%s", process_stage_once("pid_minute", "")); /* each process has its own
                                                                                  CPU time */
    CU_ASSERT_STRING_NOT_EQUAL(process_stage_once("pid_minute", ""), first);
}

/* The system's word for them, and never more than what the surroundings allow. */
static void test_limits_that_are_set(void)
{
    char most[64];
    snprintf(most, sizeof most, "ok: %d %d", CPU_MAX_S, CPU_MAX_S);
    process_stage_check("a minute", process_stage_once("minute", ""), "ok: 60 61");
    process_stage_check("more than there is", process_stage_once("generous", ""), most);
}

static void test_shared_page(void)
{
    process_stage_check("sealed", process_stage_once("shrinks", ""), "ok: refused");
}

static void test_token(void)
{
    struct process_running running;
    process_stage_begin(&running, "waits", "");
    process_stage_fire(running.act, THOLE_CANCEL_REQUESTED, "too dear", 30000);
    process_stage_fire(running.act, THOLE_CANCEL_SHUTDOWN, "too late", 1); /* the first one counts */
    process_stage_end(&running);
    CU_ASSERT_EQUAL(running.act->status, THOLE_CANCELLED);
    char text[256];
    snprintf(text, sizeof text, "%.*s", THOLE_FMT(running.act->failure));
    char want[64];
    snprintf(want, sizeof want, "%d requested too dear 1 %d", THOLE_CANCELLED, THOLE_CANCELLED);
    CHECK_STR("what it saw", text, want);
    activity_destroy(running.act);
    process_stage_begin(&running, "waits", ""); /* in the same process, with a fresh token */
    CU_ASSERT_FALSE(thole_activity_cancelled(running.act));
    process_stage_fire(running.act, THOLE_CANCEL_LEASE_LOST, "", 30000);
    process_stage_end(&running);
    snprintf(text, sizeof text, "%.*s", THOLE_FMT(running.act->failure));
    snprintf(want, sizeof want, "%d lease_lost lease_lost 1 %d", THOLE_CANCELLED, THOLE_CANCELLED);
    CHECK_STR("what it saw then", text, want);
    activity_destroy(running.act);
}

static void fire_and_check(const char *name, const char *want)
{
    struct process_running running;
    char text[64];
    process_stage_begin(&running, name, "");
    process_stage_fire(running.act, THOLE_CANCEL_EXPLICIT, "", 30000);
    process_stage_end(&running);
    snprintf(text, sizeof text, "%.*s", THOLE_FMT(running.act->output));
    CHECK_STR(name, text, want);
    activity_destroy(running.act);
}

static void test_ways_to_hear(void)
{
    for (int i = 0; i < 2; i++) { /* again: the descriptor is not readable any more before it fires */
        fire_and_check("polls", "0 1 1");
        fire_and_check("spins", "seen");
        fire_and_check("family", "21");
    }
    fire_and_check("terminated", "gently, its child by signal 15"); /* SIGTERM is for the group */
}

static void test_hurry(void)
{
    struct timespec const pause = {.tv_nsec = 1000000};
    struct process_running running;
    process_stage_begin(&running, "hurries", "");
    process_stage_fire(running.act, THOLE_CANCEL_REQUESTED, "", 3600000);
    for (int i = 0; i < 20000 && atomic_load(&process_notes->fired) == 0; i++)
        nanosleep(&pause, NULL);
    activity_hurry(running.act, clock_monotonic_ms() + 500);
    process_stage_end(&running);
    CU_ASSERT_EQUAL(running.act->status, THOLE_OK);
    CU_ASSERT_TRUE(thole_slice_equal(running.act->output, THOLE_STR("in a hurry")));
    activity_destroy(running.act);
}

static void test_fired_before(void)
{
    struct thole_activity *act = process_stage_activity("spins", "", true);
    unsigned const before = atomic_load(&process_notes->started);
    process_stage_fire(act, THOLE_CANCEL_REQUESTED, "", 1000);
    activity_run(act);
    CU_ASSERT_EQUAL(act->status, THOLE_CANCELLED);
    CU_ASSERT_EQUAL(atomic_load(&process_notes->started), before);
    activity_destroy(act);
}

static void test_surroundings(void)
{
    process_stage_check("plain", process_stage_once("looks_around", ""),
                        "ok: 2 0 0 1 1 1 none here --postgres=");
    CHECK_STR("here", process_stage_argument, "--postgres=secret");
    process_stage_check("trusted", process_stage_once("trusted", ""),
                        "ok: 2 0 0 1 1 1 secret here --postgres=");
}

static void *run_fifty(void *arg)
{
    size_t *const good = arg;
    for (int i = 0; i < 50; i++) {
        struct thole_activity *const act = process_stage_activity("echo", "x", true);
        activity_run(act);
        *good += act->status == THOLE_OK && act->output.len == 1;
        activity_destroy(act);
    }
    return NULL;
}

static void test_two_hundred(void)
{
    pthread_t threads[4];
    size_t good[4] = {0}, sum = 0;
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, run_fifty, &good[i]), 0);
    for (int i = 0; i < 4; i++) {
        (void)pthread_join(threads[i], NULL);
        sum += good[i];
    }
    CU_ASSERT_EQUAL(sum, 200);
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Not a check: the figures of docs/process_isolation.md. */
static void test_cost(void)
{
    enum { RUNS = 500, STARTS = 20 };
    uint64_t us[3];
    size_t good = 0;
    for (int k = 0; k < 2; k++) {
        uint64_t const from = now_us();
        for (int i = 0; i < RUNS; i++) {
            struct thole_activity *const act = process_stage_activity("nothing", "", k == 1);
            activity_run(act);
            good += act->status == THOLE_OK;
            activity_destroy(act);
        }
        us[k] = (now_us() - from) / RUNS;
    }
    uint64_t const from = now_us();
    for (int i = 0; i < STARTS; i++)
        (void)process_stage_once("pid_twice", "");
    us[2] = (now_us() - from) / (STARTS / 2);
    CU_ASSERT_EQUAL(good, 2 * RUNS);
    fprintf(stderr,
            "\n  one activity: %llu us on a thread, %llu us in a warm process; a new process and two "
            "activities: %llu us\n",
            (unsigned long long)us[0], (unsigned long long)us[1], (unsigned long long)us[2]);
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"the same results as on a thread", test_same_results},
        {"a kill that comes late", test_a_kill_that_comes_late},
        {"time left", test_time_left},
        {"what is larger than a socket", test_large_input},
        {"a process is kept warm, as often as it may", test_warm},
        {"limits that are set", test_limits_that_are_set},
        {"the page that it shares", test_shared_page},
        {"the token", test_token},
        {"ways to hear of it", test_ways_to_hear},
        {"less grace", test_hurry},
        {"fired before it began", test_fired_before},
        {"what surrounds it", test_surroundings},
        {"200 activities through 4 processes", test_two_hundred},
        {"what it costs", test_cost},
    };
    setenv("THOLE_POSTGRES", "postgres://secret", 1);
    setenv("STAGE", "here", 1);
    int const noise = open("/dev/null", O_RDONLY); /* a descriptor of main() */
    (void)signal(SIGUSR1, SIG_IGN);
    (void)setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_MAX_S, CPU_MAX_S});
    process_stage_open(&program, 4);
    int const failed = thole_run_suite("process_api", tests, ARRAY_LEN(tests));
    process_stage_close();
    (void)close(noise);
    return failed;
}
