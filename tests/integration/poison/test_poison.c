/*
 * Handlers that kill their worker each time, with real processes: they end in quarantine, their
 * orchestrations handle that or go on after another run, and no activity that ran beside them is blamed.
 * integration.gateway_poison does the same with a worker of a gateway, which nobody can tell how it died.
 */
#include "stack.h"
#include <stdlib.h>

#ifdef BY_GATEWAY
#define WORKER "remote"
#else
#define WORKER "worker"
#endif

static struct stack stack;
static thole_client *client;
static struct stack_program *worker;
static char effects[160];

static void start(const char *id, const char *orchestration, const char *activity)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(activity), NULL, &stack.err),
             &stack.err);
}

/* A supervisor's part: the worker is started again as soon as it is dead. */
static unsigned revive(void)
{
    if (stack_ended(worker) < 0)
        return 0;
    worker = stack_program_of(&stack, "program_poison", "worker", WORKER);
    return 1;
}

static void check_outcome(const char *id, const char *want, uint64_t wait_ms)
{
    uint64_t const end_ms = clock_monotonic_ms() + wait_ms;
    thole_outcome outcome = {0};
    thole_status status = THOLE_TIMEOUT;
    while (status == THOLE_TIMEOUT && clock_monotonic_ms() < end_ms) {
        (void)revive();
        status = thole_client_wait(client, thole_slice_from(id), 50, &outcome, &stack.err);
    }
    char got[256] = "";
    if (status == THOLE_OK)
        snprintf(got, sizeof got, "%.*s", THOLE_FMT(outcome.output));
    CHECK_STR(id, got, want);
    thole_outcome_release(&outcome);
}

static size_t runs(const char *activity, const char *id)
{
    char text[128];
    snprintf(text, sizeof text, "%s %s.", activity, id);
    return stack_count(effects, text);
}

struct found {
    const char *instance;
    uint64_t execution, activity_id, claims;
    char worker[128];
};

static thole_status find(void *arg, const thole_poisoned_info *info)
{
    struct found *found = arg;
    if (!thole_slice_equal(info->instance, thole_slice_from(found->instance)))
        return THOLE_OK;
    found->execution = info->execution;
    found->activity_id = info->activity_id;
    found->claims = info->claims;
    snprintf(found->worker, sizeof found->worker, "%.*s", THOLE_FMT(info->worker));
    CU_ASSERT_TRUE(info->until_ms > info->since_ms && info->since_ms > 0);
    CU_ASSERT_TRUE(info->reason.len > 0);
    return THOLE_OK;
}

static struct found in_quarantine(const char *id, bool wanted)
{
    struct found found = {.instance = id};
    uint64_t const end_ms = clock_monotonic_ms() + 60000;
    do {
        (void)revive();
        found.claims = 0;
        CHECK_OK(thole_client_poisoned(client, NULL, find, &found, &stack.err), &stack.err);
        pause_ms(20);
    } while ((found.claims > 0) != wanted && clock_monotonic_ms() < end_ms);
    CU_ASSERT_EQUAL(found.claims > 0, wanted);
    return found;
}

/* Beside it two run that take longer than the time between two deaths, and others come and go. */
static void test_it_is_caught_and_nobody_else_is_blamed(void)
{
    start("innocent-1", "fails", "longer");
    start("innocent-2", "fails", "longer");
    start("killer", "fails", "kills");
    check_outcome("killer", "caught poison", 120000);
    CU_ASSERT_EQUAL(runs("kills", "killer"), 4); /* --poison-after 4 */
    start("other", "fails", "echo");
    check_outcome("other", "x in try 1", 60000);
    check_outcome("innocent-1", "done in try 1", 60000);
    check_outcome("innocent-2", "done in try 1", 60000);
}

static void test_quarantine_and_another_life(void)
{
    start("broken", "waits", "mends");
    struct found const found = in_quarantine("broken", true);
    CU_ASSERT_EQUAL(found.claims, 4);
    CU_ASSERT_TRUE(strncmp(found.worker, "worker-", 7) == 0);
    CHECK_OK(thole_client_poisoned_retry(client, THOLE_STR("broken"), found.execution, found.activity_id, 0,
                                         &stack.err),
             &stack.err);
    check_outcome("broken", "mended in try 2", 60000);
    (void)in_quarantine("broken", false);
}

/* The command's output and exit code. */
static int command(const char *words, char *ret, size_t size)
{
    char line[256];
    snprintf(line, sizeof line, "%s %s", THOLE_COMMAND, words);
    FILE *const from = popen(line, "r");
    size_t const n = fread(ret, 1, size - 1, from);
    ret[n] = '\0';
    return WEXITSTATUS(pclose(from));
}

#define CHECK_HAS(text, part)                                                                                \
    do {                                                                                                     \
        CU_ASSERT_PTR_NOT_NULL(strstr(text, part));                                                          \
        if (strstr(text, part) == NULL)                                                                      \
            fprintf(stderr, "\n  no %s\n  in %s\n", part, text);                                             \
    } while (0)

static void test_the_command(void)
{
    char text[4096];
    start("typed", "waits", "mends");
    (void)in_quarantine("typed", true);
    CU_ASSERT_EQUAL(command("queue poisoned --queue default --instance typed -o json", text, sizeof text), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"instance\":\"typed\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"claims\":4"));
    CU_ASSERT_EQUAL(command("queue poisoned", text, sizeof text), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "INSTANCE"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "workers that ran it were lost"));
#ifdef BY_GATEWAY
    CHECK_HAS(text, "has not been heard of for 1000 ms");
#else
    CU_ASSERT_TRUE(strstr(text, "the last: killed by SIGKILL") != NULL ||
                   strstr(text, "the last: it ended without a report: SIGKILL") != NULL);
#endif
    CU_ASSERT_EQUAL(command("queue poisoned --queue other -o jsonl", text, sizeof text), 3);
    CHECK_STR("no such queue", text, "");
    CU_ASSERT_EQUAL(command("queue list", text, sizeof text), 0);
    CHECK_HAS(text, "QUEUE                   WAITING     OLDEST    RUNNING    OUTSIDE   POISONED      LIMIT  "
                    "SERVED BY  WORKERS\n"
                    "default                       0          -          0          0          1          -  "
                    "        1  -\n");
    CU_ASSERT_EQUAL(command("queue list --queue default -o json", text, sizeof text), 0);
    CHECK_HAS(text, "{\"schema\":\"thole.queue_list.v1\",\"queues\":[{\"queue\":\"default\",\"waiting\":0,"
                    "\"running\":0,\"outside\":0,\"poisoned\":1,\"limit\":null,\"lease_ms\":");
    CHECK_HAS(text, "\"workers\":[],\"serving\":[{\"worker\":\"");
    CU_ASSERT_EQUAL(command("queue list --queue other -o jsonl 2>/dev/null", text, sizeof text), 3);
    CU_ASSERT_EQUAL(command("queue list default 2>/dev/null", text, sizeof text), 2);
    CU_ASSERT_EQUAL(command("queue retry typed 999 2>/dev/null", text, sizeof text), 3);
    CU_ASSERT_EQUAL(command("queue retry typed two 2>/dev/null", text, sizeof text), 2);
    CU_ASSERT_EQUAL(command("queue retry typed 2>/dev/null", text, sizeof text), 2);
    CU_ASSERT_EQUAL(command("queue retry --all --instance typed", text, sizeof text), 0);
    CHECK_STR("accepted", text, "retry of typed activity 2 accepted\n");
    check_outcome("typed", "mended in try 2", 60000);
    CU_ASSERT_EQUAL(command("queue limit default 7", text, sizeof text), 0);
    CHECK_STR("limited", text, "default: at most 7 at once\n");
    CU_ASSERT_EQUAL(command("queue limit default", text, sizeof text), 0);
    CHECK_STR("read", text, "default: at most 7 at once\n");
    CU_ASSERT_EQUAL(command("queue limit default none", text, sizeof text), 0);
    CHECK_STR("free", text, "default: no limit\n");
    CU_ASSERT_EQUAL(command("queue limit default 0 2>/dev/null", text, sizeof text), 2);
}

static void test_somebody_lets_it_fail(void)
{
    start("given-up", "waits", "kills");
    struct found const found = in_quarantine("given-up", true);
    CHECK_OK(thole_client_poisoned_fail(client, THOLE_STR("given-up"), found.execution, found.activity_id, 1,
                                        &stack.err),
             &stack.err);
    check_outcome("given-up", "caught poison", 60000);
    (void)in_quarantine("given-up", false);
}

static const struct thole_test tests[] = {
    {"it is caught, and nobody else is blamed", test_it_is_caught_and_nobody_else_is_blamed},
    {"quarantine, and another life", test_quarantine_and_another_life},
    {"somebody lets it fail", test_somebody_lets_it_fail},
    {"the command", test_the_command},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    snprintf(effects, sizeof effects, "%s/poison", stack.dir);
    setenv("POISON_EFFECTS", effects, 1);
    setenv("THOLE_LEASE", "1s", 1);
    setenv("THOLE_SLOTS", "4", 1);
    setenv("THOLE_POISON_AFTER", "4", 1);
    (void)stack_program_of(&stack, "program_poison", "engine", "engine");
#ifdef BY_GATEWAY
    (void)stack_program_of(&stack, "program_poison", "gateway", "gateway");
#endif
    worker = stack_program_of(&stack, "program_poison", "worker", WORKER);
    client = stack_client(&stack);
    int const failed = thole_run_suite("poison", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
