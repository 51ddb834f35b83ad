/*
 * Code of orchestrations that crashes, in every way there is, among a thousand instances that do not: those
 * complete, the engine restarts at most so often as it may, and who did it is Stuck, with the reason.
 */
#include "sanitized.h"
#include "stack.h"
#include "subject.h"
#include "text.h"
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    STEADY = 1000,
    STEPS = 3,
    LIMIT = 2,
    PROGRESS_MS = 2000,
    TURN_LIMIT_MS = 1500,
    WAIT_MS = 60000,
    PARTITIONS = 8,
    RESTARTS_MAX = 64,
    QUIET = STEADY / 4, /* so many steady instances before the first culprit, */
    BETWEEN = 30,       /* so many between two, */
    PACE_MS = 10, /* with a pause after each: all the time there is work that an engine can progress with */
};
#define CRASHES "program_crashes"
#define STEADY_OPTIONS "--node-ttl=3s", "--turn-limit=1500ms", "--stop-limit=3s", NULL

static struct stack stack;
static thole_client *client;

/* ---- ways to crash, and their reports ---- */

static const struct way {
    const char *input, *reason;
} ways[] = {
    {"loop", "the turn did not end within 1500 ms: at loop (*program_crashes.c:*), in a turn of"},
    {"null", "SIGSEGV at address 0x0 in write_null (*program_crashes.c:*), in a turn of orchestration later, "
             "at event 3"},
    {"abort", "SIGABRT in call_abort (*program_crashes.c:*)"},
    {"exit", "exit(3) was called in call_exit (*program_crashes.c:*)"},
    {"exit_now", "the process ended with code 4: _exit() was called"},
    {"large", "stack overflow: 64 KiB, SIGSEGV in large_local (*program_crashes.c:*)"},
    {"divide", "SIGFPE at address 0x* in divide (*program_crashes.c:*)"},
    {"jump", "SIGSEGV at address 0x1234560 in jump (*program_crashes.c:*)"},
    {"unheard", "killed by "},
};
enum { WAYS = ARRAY_LEN(ways) };

/* The pieces of the pattern between its stars, in their order. */
static bool has(const char *text, const char *pattern)
{
    char piece[256];
    while (*pattern != '\0') {
        size_t const len = strcspn(pattern, "*");
        snprintf(piece, sizeof piece, "%.*s", (int)len, pattern);
        text = strstr(text, piece);
        if (text == NULL)
            return false;
        text += len;
        pattern += len + (pattern[len] == '*');
    }
    return true;
}

static void start(const char *id, const char *orchestration, const char *input)
{
    thole_status status;
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    do
        status = thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                    thole_slice_from(input), NULL, &stack.err);
    while (status == THOLE_UNAVAILABLE && clock_monotonic_ms() < end);
    CU_ASSERT_TRUE(status == THOLE_OK || status == THOLE_CONFLICT); /* said twice */
}

static const char *detail(const char *id)
{
    char statement[256];
    snprintf(statement, sizeof statement,
             "SELECT status || ' ' || detail FROM thole_default.instances WHERE instance = '%s'", id);
    return stack_sql(&stack, statement);
}

/* Status 3. */
static bool becomes_stuck(const char *id, const char *reason)
{
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    while (strncmp(detail(id), "3 ", 2) != 0 && clock_monotonic_ms() < end)
        pause_ms(50);
    bool const good = strncmp(detail(id), "3 ", 2) == 0 &&
                      has(detail(id), "its code has crashed the engine 2 times: ") && has(detail(id), reason);
    if (!good)
        fprintf(stderr, "  %s: %s\n", id, detail(id));
    return good;
}

static bool becomes(const char *id, thole_instance_status wanted, const char *output)
{
    thole_instance_status status;
    const char *const out = stack_outcome(client, id, WAIT_MS, &status);
    bool const good = status == wanted && strcmp(out, output) == 0;
    if (!good)
        fprintf(stderr, "  %s: %s '%s'\n", id, thole_instance_status_name(status), out);
    return good;
}

/* ---- progress ---- */

struct effect {     /* of an activity; the program writes it down */
    uint64_t at_ms; /* monotonic */
    uint32_t partition;
};
struct restart {
    uint64_t at_ms, first_ms; /* monotonic; first_ms: of its progress, 0: none was left to make */
};
/* The story in an engine's log; times are monotonic. */
struct engine_story {
    struct restart restarts[RESTARTS_MAX];
    uint64_t late_trials[RESTARTS_MAX]; /* when a trial of code that does not end was over */
    size_t restarts_len, late_trials_len;
};

static size_t read_effects(struct effect *ret, size_t cap)
{
    char instance[64];
    size_t n = 0;
    FILE *const file = fopen(stack.effects, "re");
    while (file != NULL && n < cap && fscanf(file, "%63s %" SCNu64, instance, &ret[n].at_ms) == 2)
        ret[n++].partition = subject_partition(thole_slice_from(instance), PARTITIONS);
    if (file != NULL)
        fclose(file);
    return n;
}

/* 0: there is none. */
static uint64_t first_effect(const struct effect *effects, size_t n, uint32_t partition, uint64_t from_ms)
{
    uint64_t first = 0;
    for (size_t i = 0; i < n; i++)
        if (effects[i].partition == partition && effects[i].at_ms >= from_ms &&
            (first == 0 || effects[i].at_ms < first))
            first = effects[i].at_ms;
    return first;
}

/* The engine has opened a partition, in which there was progress: it may be the first one of each restart. */
static void note_progress(struct engine_story *story, uint64_t first_ms)
{
    for (size_t i = 0; first_ms != 0 && i < story->restarts_len; i++)
        if (story->restarts[i].first_ms == 0 || story->restarts[i].first_ms > first_ms)
            story->restarts[i].first_ms = first_ms;
}

static void read_line(struct engine_story *story, const char *text, uint64_t at_ms,
                      const struct effect *effects, size_t n)
{
    unsigned p;
    const char *const open = strstr(text, " partition=");
    if (strstr(text, "the engine is started again") != NULL && story->restarts_len < RESTARTS_MAX)
        story->restarts[story->restarts_len++] = (struct restart){.at_ms = at_ms};
    else if (strstr(text, "in a forked copy: the turn did not end") != NULL &&
             story->late_trials_len < RESTARTS_MAX)
        story->late_trials[story->late_trials_len++] = at_ms;
    else if (open != NULL && strstr(open, "open, epoch") != NULL && sscanf(open, " partition=%u", &p) == 1)
        note_progress(story, first_effect(effects, n, p, at_ms));
}

static void read_log(const struct stack_program *engine, uint64_t since_ms, const struct effect *effects,
                     size_t n, struct engine_story *ret)
{
    char line[4096];
    uint64_t const wall_ms = clock_wall_ms() - clock_monotonic_ms();
    uint64_t wall;
    FILE *const file = fopen(engine->log, "re");
    *ret = (struct engine_story){0};
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *const text = strchr(line, ' ');
        if (text == NULL)
            continue;
        *text = '\0';
        if (text_time_parse(line + strlen("time="), clock_wall_ms(), &wall) && wall - wall_ms >= since_ms)
            read_line(ret, text + 1, wall - wall_ms, effects, n);
    }
    if (file != NULL)
        fclose(file);
}

/* How long an engine's partitions waited, between a restart and its progress, for trials of code that does
 * not end. */
static uint64_t late_ms(const struct engine_story *story, const struct restart *restart)
{
    uint64_t ms = 0;
    for (size_t i = 0; i < story->late_trials_len; i++) {
        uint64_t const end = story->late_trials[i];
        if (end > restart->at_ms && end <= restart->first_ms)
            ms += end - restart->at_ms < TURN_LIMIT_MS ? end - restart->at_ms : TURN_LIMIT_MS;
    }
    return ms;
}

/* The longest time from a restart to the first effect in a partition that the engine has opened since. */
static uint64_t slowest_restart(const struct stack_program *engine, uint64_t since_ms,
                                const struct effect *effects, size_t n)
{
    static struct engine_story story;
    uint64_t slowest = 0;
    read_log(engine, since_ms, effects, n, &story);
    for (size_t i = 0; i < story.restarts_len; i++) {
        const struct restart *const restart = &story.restarts[i];
        if (restart->first_ms == 0)
            continue;
        uint64_t const ms = restart->first_ms - restart->at_ms - late_ms(&story, restart);
        slowest = ms > slowest ? ms : slowest;
    }
    return slowest;
}

/* ---- tests ---- */

static void start_all(const char *round)
{
    char id[64];
    for (int i = 0; i < STEADY; i++) {
        snprintf(id, sizeof id, "%s-%04d", round, i);
        start(id, "steady", id);
        if (i < QUIET)
            continue;
        pause_ms(PACE_MS);
        size_t const culprit = (size_t)(i - QUIET) / BETWEEN;
        if ((i - QUIET) % BETWEEN != 0 || culprit >= WAYS)
            continue;
        snprintf(id, sizeof id, "%s-%s", round, ways[culprit].input);
        start(id, "later", ways[culprit].input);
    }
}

static void check_steady(const char *round)
{
    size_t good = 0;
    char id[64];
    for (int i = 0; i < STEADY; i++) {
        snprintf(id, sizeof id, "%s-%04d", round, i);
        good += becomes(id, THOLE_INSTANCE_COMPLETED, id);
    }
    CU_ASSERT_EQUAL(good, STEADY);
}

static void run_round(const char *round, struct stack_program *const *engines, size_t n)
{
    char id[64];
    static struct effect effects[STEADY * STEPS * 4];
    size_t restarts = 0, before = 0;
    uint64_t const since_ms = clock_monotonic_ms();
    uint64_t slowest_ms = 0;
    (void)remove(stack.effects);
    for (size_t i = 0; i < n; i++)
        before += stack_count(engines[i]->log, "the engine is started again");
    start_all(round);
    for (size_t i = 0; i < WAYS; i++) {
        snprintf(id, sizeof id, "%s-%s", round, ways[i].input);
        CU_ASSERT_TRUE(becomes_stuck(id, ways[i].reason));
    }
    check_steady(round);
    for (size_t i = 0; i < n; i++)
        restarts += stack_count(engines[i]->log, "the engine is started again");
    restarts -= before;
    size_t const effects_len = read_effects(effects, ARRAY_LEN(effects));
    CU_ASSERT_TRUE(effects_len >= (size_t)STEADY * STEPS);
    for (size_t i = 0; i < n; i++) {
        uint64_t const ms = slowest_restart(engines[i], since_ms, effects, effects_len);
        slowest_ms = ms > slowest_ms ? ms : slowest_ms;
    }
    fprintf(stderr, "  %s: %zu restarts for %d culprits; the slowest had its first progress after %llu ms\n",
            round, restarts, (int)WAYS, (unsigned long long)slowest_ms);
    CU_ASSERT_TRUE(restarts >= 1 && restarts <= WAYS * LIMIT);
    CU_ASSERT_TRUE(slowest_ms > 0 && slowest_ms <= PROGRESS_MS);
}

static struct stack_program *one, *two;

/* Once more; returns when it serves. */
static void start_one(void)
{
    char log[sizeof one->log];
    snprintf(log, sizeof log, "%s/engine.log", stack.dir);
    size_t const before = stack_count(log, "area=engine msg=serving");
    one = stack_program_with(&stack, CRASHES, "engine", "engine", STEADY_OPTIONS);
    CU_ASSERT_TRUE(stack_logged(one, "area=engine msg=serving", before + 1, WAIT_MS));
}

static void test_one_engine(void)
{
    run_round("one", &one, 1);
}

static void test_two_engines(void)
{
    two = stack_program_with(&stack, CRASHES, "second", "engine", STEADY_OPTIONS);
    CU_ASSERT_TRUE(stack_logged(two, "open, epoch", 1, WAIT_MS));
    run_round("two", (struct stack_program *[]){one, two}, 2);
    CU_ASSERT_EQUAL(stack_terminate(two, 20000), 0);
}

/* Requests of people about a Stuck instance; none of them runs its code. */
static void test_verbs(void)
{
    size_t const before = stack_count(one->log, "started again"),
                 tried = stack_count(one->log, "in a forked copy:");
    CHECK_OK(thole_client_cancel(client, THOLE_STR("one-null"), THOLE_STR("why"), &stack.err), &stack.err);
    CHECK_OK(thole_client_pause(client, THOLE_STR("one-abort"), THOLE_STR("why"), &stack.err), &stack.err);
    CHECK_OK(thole_client_terminate(client, THOLE_STR("one-jump"), THOLE_STR("why"), &stack.err), &stack.err);
    CU_ASSERT_TRUE(becomes("one-jump", THOLE_INSTANCE_TERMINATED, "why"));
    thole_delete_options const force = {.size = sizeof force, .force = true};
    bool accepted = false;
    CHECK_OK(thole_client_delete(client, THOLE_STR("one-exit"), &force, &accepted, &stack.err), &stack.err);
    CU_ASSERT_TRUE(accepted);
    CU_ASSERT_EQUAL(stack_count(one->log, "started again"), before);
    CU_ASSERT_EQUAL(stack_count(one->log, "in a forked copy:"), tried);
}

/* An unchanged build does not try again, until a user says so. Here a variable decides whether the code
 * crashes. */
static void test_retry(void)
{
    CHECK_OK(thole_client_retry(client, THOLE_STR("one-large"), THOLE_STR("why"), &stack.err), &stack.err);
    pause_ms(500);
    CU_ASSERT_TRUE(becomes_stuck("one-large", "stack overflow"));
    CU_ASSERT_EQUAL(stack_terminate(one, 20000), 0);
    setenv("CRASHES_MENDED", "1", 1);
    one = stack_program_with(&stack, CRASHES, "mended", "engine", STEADY_OPTIONS);
    CU_ASSERT_TRUE(stack_logged(one, "open, epoch", 8, WAIT_MS));
    pause_ms(500);
    CU_ASSERT_TRUE(becomes_stuck("one-large", "stack overflow"));
    CHECK_OK(thole_client_retry(client, THOLE_STR("one-large"), THOLE_STR("why"), &stack.err), &stack.err);
    CU_ASSERT_TRUE(becomes("one-large", THOLE_INSTANCE_COMPLETED, "mended"));
    unsetenv("CRASHES_MENDED");
    CU_ASSERT_EQUAL(stack_terminate(one, 20000), 0);
    start_one();
}

/* Another build is tried at once, by itself; and what is waiting for it goes on. */
static void test_other_build(void)
{
    CU_ASSERT_EQUAL(stack_terminate(one, 20000), 0);
    struct stack_program *const other =
        stack_program_with(&stack, "program_mended", "other", "engine", STEADY_OPTIONS);
    CU_ASSERT_TRUE(becomes("one-divide", THOLE_INSTANCE_COMPLETED, "mended"));
    CU_ASSERT_TRUE(becomes("one-loop", THOLE_INSTANCE_COMPLETED, "mended"));
    CU_ASSERT_TRUE(
        becomes("one-null", THOLE_INSTANCE_COMPLETED, "mended")); /* no await told it of the request */
    CHECK_OK(thole_client_resume(client, THOLE_STR("one-abort"), THOLE_STR("why"), &stack.err), &stack.err);
    CU_ASSERT_TRUE(becomes("one-abort", THOLE_INSTANCE_COMPLETED, "mended"));
    CU_ASSERT_EQUAL(stack_terminate(other, 20000), 0);
    start_one();
}

/* A query crashes: it is refused from then on, and its instance goes on. */
static void test_query(void)
{
    thole_status status;
    thole_slice answer;
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    CU_ASSERT_TRUE(stack_logged(one, "open, epoch", 8, WAIT_MS));
    start("asked", "asked", "");
    do {
        status = thole_client_query(client, THOLE_STR("asked"), THOLE_STR("how"), THOLE_STR("null"), &answer,
                                    &stack.err);
        pause_ms(50);
    } while (status != THOLE_INVALID && clock_monotonic_ms() < end);
    CU_ASSERT_TRUE(has(stack.err.text, "the query crashes: SIGSEGV at address 0x0 in write_null"));
    CHECK_OK(thole_client_signal(client, THOLE_STR("asked"), THOLE_STR("go"), THOLE_STR("on"),
                                 THOLE_STR("go-1"), NULL, &stack.err),
             &stack.err);
    CU_ASSERT_TRUE(becomes("asked", THOLE_INSTANCE_COMPLETED, "on"));
}

static void test_kill9_of_the_child(void)
{
    pid_t const before = stack_serving(one);
    size_t const restarts = stack_count(one->log, "the engine is started again");
    uint64_t const from = clock_monotonic_ms();
    kill(before, SIGKILL);
    CU_ASSERT_TRUE(stack_logged(one, "the engine is started again", restarts + 1, 1000));
    fprintf(stderr, "  started again after %llu ms\n", (unsigned long long)(clock_monotonic_ms() - from));
    start("after-kill", "steady", "x");
    CU_ASSERT_TRUE(becomes("after-kill", THOLE_INSTANCE_COMPLETED, "x"));
    CU_ASSERT_TRUE(stack_serving(one) != before && stack_serving(one) > 0);
}

/* Nobody's code is to blame: each start waits longer than the one before. */
static void test_crash_loop_that_nobody_explains(void)
{
    uint64_t const from = clock_monotonic_ms();
    size_t const pauses = stack_count(one->log, "started again after a pause");
    for (size_t i = 1; i <= 4; i++) {
        pid_t pid;
        while ((pid = stack_serving(one)) <= 0)
            pause_ms(10);
        kill(pid, SIGKILL);
        CU_ASSERT_TRUE(stack_logged(one, "started again after a pause", pauses + i, 20000));
        while (stack_serving(one) <= 0 || stack_serving(one) == pid)
            pause_ms(10);
    }
    CU_ASSERT_TRUE(clock_monotonic_ms() - from >= 500 + 1000 + 2000 + 4000 - 100);
}

static void test_kill9_of_the_supervisor(void)
{
    pid_t const serving = stack_serving(one);
    CU_ASSERT_TRUE_FATAL(serving > 0 && serving != one->pid);
    struct pollfd dead = {.fd = (int)syscall(SYS_pidfd_open, serving, 0), .events = POLLIN};
    kill(one->pid, SIGKILL); /* only this process */
    CU_ASSERT_EQUAL(poll(&dead, 1, 1000), 1);
    (void)close(dead.fd);
    stack_kill9(one);
    start_one();
    start("after-supervisor", "steady", "x");
    CU_ASSERT_TRUE(becomes("after-supervisor", THOLE_INSTANCE_COMPLETED, "x"));
}

/* A turn does not end, and nobody has said that it must. */
static void test_sigterm(void)
{
    CU_ASSERT_EQUAL(stack_terminate(one, 20000), 0);
    one = stack_program_with(&stack, CRASHES, "stops", "engine", "--node-ttl=3s", "--turn-limit=0s",
                             "--stop-limit=2s", NULL);
    CU_ASSERT_TRUE(stack_logged(one, "open, epoch", 8, WAIT_MS));
    start("endless", "at_once", "loop");
    CU_ASSERT_TRUE(stack_logged(
        one, "instance=endless execution=1 msg=\"the code of at_once has not returned for", 1, 5000));
    uint64_t const from = clock_monotonic_ms();
    CU_ASSERT_EQUAL(stack_terminate(one, 10000), 1);
    uint64_t const ms = clock_monotonic_ms() - from;
    fprintf(stderr, "  stopped %llu ms after SIGTERM\n", (unsigned long long)ms);
    CU_ASSERT_TRUE(ms >= 1900 && ms < 3500);
}

/* The instance has crashed once: it is tried alone, and that does not take for ever. */
static void test_trial_without_a_turn_limit(void)
{
    uint64_t const from = clock_monotonic_ms();
    one =
        stack_program_with(&stack, CRASHES, "unlimited", "engine", "--node-ttl=3s", "--turn-limit=0s", NULL);
    CU_ASSERT_TRUE(becomes_stuck("endless", "the turn did not end within 10000 ms: at loop"));
    CU_ASSERT_TRUE(clock_monotonic_ms() - from >= 10000);
    CU_ASSERT_EQUAL(stack_count(one->log, "the engine is started again"), 0);
    CU_ASSERT_EQUAL(stack_terminate(one, 20000), 0);
    start_one();
}

/* A larger stack holds what a small one does not; and code that runs when an instance leaves memory is the
 * instance's, too. */
static void test_stacks_and_drops(void)
{
    CU_ASSERT_EQUAL(stack_terminate(one, 20000), 0);
    one = stack_program_with(&stack, CRASHES, "evicting", "engine", "--parked-max=1", STEADY_OPTIONS);
    start("roomy", "roomy", "large");
    CU_ASSERT_TRUE(becomes("roomy", THOLE_INSTANCE_COMPLETED, "mended"));
    start("drops", "drops", "null");
    for (int i = 0; i < 100 && strncmp(detail("drops"), "3 ", 2) != 0; i++) {
        char id[32];
        snprintf(id, sizeof id, "beside-%d", i); /* some of them in its partition */
        start(id, "asked", "well");
        thole_status const said = thole_client_signal(client, THOLE_STR("drops"), THOLE_STR("go"),
                                                      THOLE_STR("well"), (thole_slice){0}, NULL, &stack.err);
        CU_ASSERT_TRUE(said == THOLE_OK || said == THOLE_UNAVAILABLE);
        pause_ms(100);
    }
    CU_ASSERT_TRUE(
        becomes_stuck("drops", "SIGSEGV at address 0x0 in write_null (*program_crashes.c:*), in a drop of"));
    CU_ASSERT_EQUAL(stack_terminate(one, 20000), 0);
    start_one();
}

/* Where a sanitizer has the signals, the first three. */
static const struct thole_test tests[] = {
    {"kill9 of the child", test_kill9_of_the_child},
    {"a crash loop that nobody explains", test_crash_loop_that_nobody_explains},
    {"kill9 of the supervisor", test_kill9_of_the_supervisor},
    {"one engine", test_one_engine},
    {"verbs", test_verbs},
    {"retry", test_retry},
    {"another build", test_other_build},
    {"a query that crashes", test_query},
    {"sigterm", test_sigterm},
    {"a trial without a turn limit", test_trial_without_a_turn_limit},
    {"stacks and drops", test_stacks_and_drops},
    {"two engines", test_two_engines},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    setenv("CRASHES_WORK_MS", "40", 1);
    one = stack_program_with(&stack, CRASHES, "engine", "engine", STEADY_OPTIONS);
    client = stack_client(&stack);
    (void)stack_program_with(&stack, CRASHES, "worker", "worker", "--lease=3s", NULL);
    int const failed = thole_run_suite("crashes", tests, SANITIZED ? 3 : ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
