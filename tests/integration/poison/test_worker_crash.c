/*
 * The reported end of a worker that a handler has killed, each handler in its own way, and the places where
 * it is reported; with real processes. Each has a queue and a worker of its own, so that all of them die at
 * once.
 */
#include "stack.h"
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { LONG_MS = 120000 };

static struct stack stack;
static thole_client *client;

static const struct death {
    const char *queue, *activity;
    const char *says;     /* the failure's text; NULL: it survives */
    const char *variable; /* of the worker's environment */
} deaths[] = {
    {"writes", "writes", "SIGSEGV in its handler, at address 0x10", NULL},
    {"overflows", "overflows", "SIGSEGV in its handler, at address 0x", NULL},
    {"aborts", "aborts", "SIGABRT in its handler", NULL},
    {"exits", "exits", "exit(3) in its handler", NULL},
    {"elsewhere", "elsewhere", "SIGABRT on a thread that is no handler's", NULL},
    {"vanishes", "vanishes", "it ended with code 4 without being asked to stop", NULL},
    {"kills", "kills", "killed by SIGKILL, by the system (out of memory) or by somebody", NULL},
    {"owned", "writes", "it ended with code 5 without being asked to stop", "POISON_OWN_HANDLER"},
    {"first", "writes", "SIGSEGV in its handler, at address 0x10", "POISON_AS_FIRST"},
    {"alone", "alone", "its lease ran out without a report", NULL},
    {"forks", "forks", NULL, NULL},
};
static struct stack_program *workers[ARRAY_LEN(deaths)];
static bool reviving;

static struct stack_program *start_worker(const char *queue)
{
    char option[64];
    snprintf(option, sizeof option, "--queue=%s", queue);
    return stack_program_with(&stack, "program_poison", queue, "worker", option, NULL);
}

static void start(const char *id, const char *queue, const char *activity)
{
    char input[128];
    snprintf(input, sizeof input, "%s %s", queue, activity);
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("tells"), thole_slice_from(input),
                                NULL, &stack.err),
             &stack.err);
}

/* The worker is dead, and its crash reporter, if there is one, has seen the kernel's report: a supervisor
 * with patience waits for it only then. */
static bool is_over(size_t i)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)workers[i]->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
        return false;
    return strcmp(deaths[i].queue, "alone") == 0 ||
           stack_logged(workers[i], " died, with ", workers[i]->lives, 0);
}

/* A supervisor's part. */
static void revive(size_t i)
{
    if (workers[i] != NULL && (!is_over(i) || stack_ended(workers[i]) < 0))
        return;
    if (deaths[i].variable != NULL)
        setenv(deaths[i].variable, "1", 1);
    workers[i] = start_worker(deaths[i].queue);
    if (deaths[i].variable != NULL)
        unsetenv(deaths[i].variable);
}

static const char *outcome(const char *id)
{
    static char text[512];
    uint64_t const end_ms = clock_monotonic_ms() + LONG_MS;
    thole_outcome outcome = {0};
    thole_status status = THOLE_TIMEOUT;
    while (status == THOLE_TIMEOUT && clock_monotonic_ms() < end_ms) {
        for (size_t i = 0; i < ARRAY_LEN(deaths) && reviving; i++)
            revive(i);
        status = thole_client_wait(client, thole_slice_from(id), 20, &outcome, &stack.err);
    }
    snprintf(text, sizeof text, "%.*s", THOLE_FMT(outcome.output));
    thole_outcome_release(&outcome);
    return text;
}

/* Where it is certain what killed the worker, the second loss is the last; else it is more if the process
 * took its time to die. */
static bool is_told(size_t i, const char *outcome)
{
    char want[160];
    unsigned lost = 0;
    if (deaths[i].says == NULL)
        return strcmp(outcome, "survived") == 0;
    if (sscanf(outcome, "poison: %u ", &lost) != 1 || lost < 2 ||
        (lost > 2 && strstr(deaths[i].says, "in its handler") != NULL))
        return false;
    snprintf(want, sizeof want, "poison: %u workers that ran it were lost, %s-%u-", lost, deaths[i].queue,
             lost);
    const char *const says = strstr(outcome, " the last: ");
    return strncmp(outcome, want, strlen(want)) == 0 && says != NULL && strstr(says, deaths[i].says) != NULL;
}

static void test_each_death_is_told(void)
{
    reviving = true;
    for (size_t i = 0; i < ARRAY_LEN(deaths); i++)
        start(deaths[i].queue, deaths[i].queue, deaths[i].activity);
    for (size_t i = 0; i < ARRAY_LEN(deaths); i++) {
        const char *const got = outcome(deaths[i].queue);
        bool const told = is_told(i, got);
        CU_ASSERT(told);
        if (!told)
            fprintf(stderr, "\n  %s: %s\n", deaths[i].queue, got);
    }
    reviving = false;
    for (size_t i = 0; i < ARRAY_LEN(deaths); i++)
        if (workers[i]->pid > 0)
            (void)kill(workers[i]->pid, SIGTERM); /* all at once */
    for (size_t i = 0; i < ARRAY_LEN(deaths); i++) {
        (void)stack_terminate(workers[i], 20000);
        bool const alone = strcmp(deaths[i].queue, "alone") == 0;
        CU_ASSERT(alone || stack_count(workers[i]->log, "its crash reporter has died") == 0);
    }
}

static void await_end(struct stack_program *program)
{
    for (uint64_t const end_ms = clock_monotonic_ms() + LONG_MS;
         program->pid > 0 && stack_ended(program) < 0 && clock_monotonic_ms() < end_ms;)
        pause_ms(5);
    CU_ASSERT_EQUAL(program->pid, 0);
}

/* The cause of the worker's death is known, so activities that ran beside it are not lost. When the worker is
 * dead, the rows say so: it has waited for that. */
static void test_who_ran_beside_it_is_not_lost(void)
{
    struct stack_program *worker = start_worker("beside");
    start("innocent", "beside", "longer");
    while (stack_count(getenv("POISON_EFFECTS"), "longer innocent.") == 0)
        pause_ms(5);
    start("guilty", "beside", "writes");
    await_end(worker);
    CHECK_STR("innocent",
              stack_sql(&stack, "SELECT concat_ws(' ', coalesce(worker, '-'), coalesce(lost::text, '-'), "
                                "coalesce(lost_word, '-'))"
                                " FROM thole_default.worker_queue WHERE instance = 'innocent'"),
              "- - -");
    CHECK_STR(
        "guilty",
        stack_sql(&stack,
                  "SELECT concat_ws(' ', coalesce(worker, '-'), lost::text, left(lost_worker, 9), lost_word)"
                  " FROM thole_default.worker_queue WHERE instance = 'guilty'"),
        "- {1} beside-1- SIGSEGV in its handler, at address 0x10");
    CU_ASSERT_TRUE(stack_logged(worker, "died, with 2 activities: SIGSEGV in its handler", 1, 0));
    worker = start_worker("beside");
    await_end(worker); /* the second victim */
    worker = start_worker("beside");
    CHECK_STR("innocent", outcome("innocent"), "done");
    CU_ASSERT_TRUE(strstr(outcome("guilty"), "beside-2-") != NULL);
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
}

/* Standard ones, the socket, and what sees the worker end: none of the worker's. */
static void check_descriptors(pid_t pid)
{
    char path[32];
    size_t n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *const dir = opendir(path);
    CU_ASSERT_FATAL(dir != NULL);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(dir);
    CU_ASSERT_EQUAL(n, 5);
}

static bool is_gone(pid_t pid)
{
    for (uint64_t const end_ms = clock_monotonic_ms() + LONG_MS; clock_monotonic_ms() < end_ms; pause_ms(5))
        if (kill(pid, 0) != 0)
            return true;
    return false;
}

static void test_a_worker_that_stops_says_nothing(void)
{
    struct stack_program *const worker = start_worker("quiet");
    pid_t const reporter = stack_child(worker, "thole-reporter");
    CU_ASSERT_TRUE(reporter > 0);
    start("quiet", "quiet", "echo");
    CHECK_STR("quiet", outcome("quiet"), "survived");
    check_descriptors(reporter);
    (void)kill(reporter, SIGINT);
    (void)kill(reporter, SIGTERM); /* from a terminal, a supervisor: not meant for it */
    CU_ASSERT_FALSE(stack_logged(worker, "its crash reporter has died", 1, 200));
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
    CU_ASSERT_TRUE(is_gone(reporter));
    CU_ASSERT_EQUAL(stack_count(worker->log, " died, "), 0);
    CU_ASSERT_EQUAL(stack_count(worker->log, "its crash reporter has died"), 0);
}

static void test_a_worker_goes_on_without_its_crash_reporter(void)
{
    struct stack_program *const worker = start_worker("goes_on");
    pid_t const reporter = stack_child(worker, "thole-reporter");
    CU_ASSERT_TRUE(reporter > 0 && kill(reporter, SIGKILL) == 0);
    CU_ASSERT_TRUE(stack_logged(worker, "its crash reporter has died", 1, LONG_MS));
    start("goes-on", "goes_on", "echo");
    CHECK_STR("goes on", outcome("goes-on"), "survived");
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
    CU_ASSERT_EQUAL(stack_count(worker->log, "its crash reporter has died"), 1);
}

static const struct thole_test tests[] = {
    {"each death is told", test_each_death_is_told},
    {"who ran beside it is not lost", test_who_ran_beside_it_is_not_lost},
    {"a worker that stops says nothing", test_a_worker_that_stops_says_nothing},
    {"a worker goes on without its crash reporter", test_a_worker_goes_on_without_its_crash_reporter},
};

/* A sanitizer's settings stay, and the words would be its own. Leaks are looked for in /proc, which in
 * another namespace of pids shows other processes. */
static void leave_signals(const char *variable)
{
    char options[512];
    const char *const before = getenv(variable);
    snprintf(options, sizeof options,
             "%s:detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0",
             before == NULL ? "" : before);
    setenv(variable, options, 1);
}

int main(void)
{
    static char effects[160];
    struct rlimit const none = {0};
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    snprintf(effects, sizeof effects, "%s/poison", stack.dir);
    setenv("POISON_EFFECTS", effects, 1);
    setenv("THOLE_LEASE", "1s", 1);
    setenv("THOLE_SLOTS", "4", 1);
    setenv("THOLE_POISON_AFTER", "2", 1);
    leave_signals("ASAN_OPTIONS");
    leave_signals("TSAN_OPTIONS");
    (void)setrlimit(RLIMIT_CORE, &none); /* they would be many */
    (void)stack_program_of(&stack, "program_poison", "engine", "engine");
    client = stack_client(&stack);
    int const failed = thole_run_suite("worker_crash", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
