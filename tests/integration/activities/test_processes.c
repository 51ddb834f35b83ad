/* Activities in processes of their own, in the whole system: crashes, cancellation, the worker's end. */
#include "process_parts.h"
#include "stack.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 60000, FAMILY = 5, SLOTS = 4, PIDS_MAX = 256 };

static struct stack stack;
static thole_client *client;
static struct stack_program *worker;
static char pids_file[160], runs_file[160];

static void start(const char *id, const char *orchestration, const char *activity)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(activity), NULL, &stack.err),
             &stack.err);
}

static void check_outcome(const char *id, const char *want)
{
    thole_instance_status status;
    const char *const got = stack_outcome(client, id, LONG_MS, &status);
    CHECK_STR(id, got, want);
}

static void run(const char *id, const char *orchestration, const char *activity, const char *want)
{
    start(id, orchestration, activity);
    check_outcome(id, want);
}

static void cancel(const char *id)
{
    thole_instance_status status;
    CHECK_OK(thole_client_cancel(client, thole_slice_from(id), THOLE_STR("enough"), &stack.err), &stack.err);
    (void)stack_outcome(client, id, LONG_MS, &status);
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_CANCELLED);
}

static void until_runs(const char *id, unsigned try, size_t times)
{
    char line[64];
    snprintf(line, sizeof line, "%s try %u\n", id, try);
    for (int i = 0; i < LONG_MS / 5 && stack_count(runs_file, line) < times; i++)
        pause_ms(5);
    CU_ASSERT_TRUE(stack_count(runs_file, line) >= times);
}

/* ---- the processes that were noted ---- */

static void forget_pids(void)
{
    (void)unlink(pids_file);
}

static size_t read_pids(pid_t *ret)
{
    size_t n = 0;
    int pid;
    FILE *const file = fopen(pids_file, "r");
    while (file != NULL && n < PIDS_MAX && fscanf(file, "%d", &pid) == 1)
        ret[n++] = (pid_t)pid;
    if (file != NULL)
        (void)fclose(file);
    return n;
}

static size_t alive(void)
{
    pid_t pids[PIDS_MAX];
    size_t const n = read_pids(pids);
    size_t living = 0;
    for (size_t i = 0; i < n; i++)
        living += kill(pids[i], 0) == 0;
    return living;
}

static void until_alive(size_t n)
{
    for (int i = 0; i < LONG_MS / 5 && alive() != n; i++)
        pause_ms(5);
    CU_ASSERT_EQUAL(alive(), n);
}

/* ---- tests ---- */

static void test_crash(void)
{
    run("crash-1", "once", "leaves",
        "APP [crash] the process exited with code 0 instead of returning, tries 1");
    run("crash-2", "thrice", "segv", "third time after page 2");
    run("crash-3", "thrice", "leaves",
        "APP [crash] the process exited with code 0 instead of returning, tries 3");
    run("crash-4", "never_a_crash", "leaves",
        "APP [crash] the process exited with code 0 instead of returning, tries 1");
    run("crash-5", "once", "endless", "APP [limit] the process was killed after 200 ms, its limit, tries 1");
    CU_ASSERT_EQUAL(stack_ended(worker), -1);
    CU_ASSERT_TRUE(
        stack_logged(worker, "activity=segv activity_id=2 *: the process was killed by SIGSEGV", 2, 1000));
    run("crash-6", "once", "echo", "safe");
    run("crash-7", "once", "calm", "calm");
}

static void test_stubborn(void)
{
    forget_pids();
    start("stubborn", "once", "stubborn");
    until_runs("stubborn", 1, 1);
    until_alive(FAMILY);
    cancel("stubborn");
    until_alive(0);
    CU_ASSERT_TRUE(stack_logged(worker,
                                "instance=stubborn *the handler did not return in time, its process is "
                                "killed",
                                1, LONG_MS));
    CU_ASSERT_TRUE(stack_logged(worker, "instance=stubborn *and 4 that it had started", 1, LONG_MS));
    run("after-stubborn", "many", "echo", "200"); /* all slots serve again */
}

static void test_polite(void)
{
    forget_pids();
    start("polite", "once", "hold");
    until_runs("polite", 1, 1);
    cancel("polite");
    CU_ASSERT_TRUE(stack_logged(worker, "heard of it: requested, enough", 1, LONG_MS));
    CU_ASSERT_TRUE(stack_logged(worker, "instance=polite *ended in its grace", 1, LONG_MS));
    start("polite-again", "once", "hold");
    until_runs("polite-again", 1, 1);
    pid_t pids[PIDS_MAX];
    CU_ASSERT_EQUAL_FATAL(read_pids(pids), 2);
    CU_ASSERT_EQUAL(pids[0], pids[1]); /* a process that returns in time is kept */
    cancel("polite-again");
}

static void test_timeout(void)
{
    forget_pids();
    start("late", "brief", "stubborn");
    until_runs("late", 1, 1);
    until_alive(FAMILY);
    check_outcome("late", "TIMEOUT [timeout] the try's timeout of 1000 ms is over, tries 1");
    until_alive(0);
}

static void test_two_hundred(void)
{
    pid_t pids[PIDS_MAX];
    forget_pids();
    run("many", "many", "quick", "200");
    size_t const n = read_pids(pids);
    CU_ASSERT_TRUE(n >= 1 && n <= SLOTS);
}

static void test_noisy(void)
{
    run("noisy", "once", "noisy", "said");
    CU_ASSERT_EQUAL(stack_count(worker->log, " of a handler that talks and talks and talks\n"), 4000);
    CU_ASSERT_TRUE(stack_logged(worker, "its last words", 1, LONG_MS));
}

static void test_stop_hands_back(void)
{
    forget_pids();
    start("stop", "once", "stubborn");
    start("stop-polite", "once", "hold");
    until_runs("stop", 1, 1);
    until_runs("stop-polite", 1, 1);
    until_alive(FAMILY + 1);
    CU_ASSERT_EQUAL(stack_terminate(worker, LONG_MS), 0);
    CU_ASSERT_EQUAL(alive(), 0); /* the worker has waited for them */
    worker = stack_program_of(&stack, "program_processes", "second", "worker");
    until_runs("stop", 1, 2); /* at once: they were handed back */
    until_runs("stop-polite", 1, 2);
    cancel("stop");
    cancel("stop-polite");
    until_alive(0 + 1); /* the one that is kept */
}

/* Only the worker is killed: what it has started sees that it is gone. */
static void test_kill9_worker(void)
{
    forget_pids();
    start("kill9", "once", "stubborn");
    until_runs("kill9", 1, 1);
    until_alive(FAMILY);
    (void)kill(worker->pid, SIGKILL);
    uint64_t const from_us = now_us();
    until_alive(0);
    fprintf(stderr, "\n  none is left %d ms after kill -9 of the worker\n",
            (int)((now_us() - from_us) / 1000));
    (void)waitpid(worker->pid, NULL, 0);
    worker->pid = 0;
    worker = stack_program_of(&stack, "program_processes", "third", "worker");
    until_runs("kill9", 1, 2);
    cancel("kill9");
    until_alive(0);
}

/* The worker cannot make another one: it ends, and says so; nothing fails. */
static void test_kill9_forkserver(void)
{
    pid_t const forkserver = stack_child(worker, "thole-forks");
    CU_ASSERT_FATAL(forkserver > 0);
    (void)kill(forkserver, SIGKILL);
    start("forkless", "once", "echo");
    int code = -1;
    for (int i = 0; i < LONG_MS / 5 && (code = stack_ended(worker)) < 0; i++)
        pause_ms(5);
    CU_ASSERT_EQUAL(code, 1);
    CU_ASSERT_TRUE(stack_logged(worker, "the forkserver has died: start it again", 1, 1000));
    worker = stack_program_of(&stack, "program_processes", "fourth", "worker");
    check_outcome("forkless", "safe");
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"process_crash_is_a_failed_try", test_crash},
        {"activity_spawns_child_tasks_without_cancellation_is_user_error", test_stubborn},
        {"process_that_returns_in_time_is_kept", test_polite},
        {"process_is_killed_after_its_timeout", test_timeout},
        {"process_is_reused", test_two_hundred},
        {"process_output_is_the_workers", test_noisy},
        {"process_stop_hands_back", test_stop_hands_back},
        {"process_kill9_worker_leaves_none", test_kill9_worker},
        {"process_kill9_forkserver_stops_the_worker", test_kill9_forkserver},
    };
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    snprintf(pids_file, sizeof pids_file, "%s/pids", stack.dir);
    snprintf(runs_file, sizeof runs_file, "%s/runs", stack.dir);
    setenv("PROCESS_PIDS", pids_file, 1);
    setenv("PROCESS_RUNS", runs_file, 1);
    setenv("THOLE_PROCESS_ENV", "PROCESS_*", 1);
    setenv("THOLE_SLOTS", "4", 1);
    setenv("THOLE_GRACE", "300ms", 1);
    setenv("THOLE_LEASE", "3s", 1);
    setenv("THOLE_STOP_LIMIT", "300ms", 1);
    (void)stack_program_of(&stack, "program_processes", "engine", "engine");
    client = stack_client(&stack);
    worker = stack_program_of(&stack, "program_processes", "worker", "worker");
    int const failed = thole_run_suite("processes", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
