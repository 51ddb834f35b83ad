/*
 * Defects of a cluster of three while an engine runs: a server is removed from those that keep a stream, and
 * a server is down. Both are seen within SEEN_MS; the remedy that thole doctor prints repairs the first, the
 * server's return the second; orders go through all the time.
 */
#include "defect_stage.h"
#include <string.h>

enum { SEEN_MS = 15000, WAIT_MS = 60000, OUTPUT_BYTES = 64 * 1024 };

static struct stack stack;
static struct stage stage;
static thole_client *client;
static struct stack_program *engine;
static unsigned orders;

static bool completes(void)
{
    char id[32];
    thole_instance_status status = THOLE_INSTANCE_RUNNING;
    thole_status started = THOLE_UNAVAILABLE;
    (void)snprintf(id, sizeof id, "order-%u", ++orders);
    for (uint64_t const until = clock_monotonic_ms() + WAIT_MS;
         started != THOLE_OK && started != THOLE_CONFLICT && clock_monotonic_ms() < until;)
        started = thole_client_start(client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("x"), NULL,
                                     &stack.err);
    (void)stack_outcome(client, id, WAIT_MS, &status);
    return status == THOLE_INSTANCE_COMPLETED;
}

/* Within @p wait_ms. */
static bool doctor_says(const char *text, uint64_t wait_ms)
{
    static char said[OUTPUT_BYTES];
    uint64_t const until_ms = clock_monotonic_ms() + wait_ms;
    do
        (void)stage_command(THOLE_COMMAND " doctor 2>&1", said, sizeof said);
    while (strstr(said, text) == NULL && clock_monotonic_ms() < until_ms);
    if (strstr(said, text) == NULL)
        fprintf(stderr, "\n  no %s in %s\n", text, said);
    return strstr(said, text) != NULL;
}

static void test_a_server_is_removed_from_a_stream(void)
{
    static const char defect[] = "stream THOLE_default_HIST_0 has servers 2, but 3 is needed";
    CU_ASSERT(completes());
    CU_ASSERT(stage_break(&stage, WAY_PEER, "THOLE_default_HIST_0", NULL, NULL));
    CU_ASSERT(stack_logged(engine, defect, 1, SEEN_MS));
    CU_ASSERT(doctor_says(defect, SEEN_MS));
    CU_ASSERT(doctor_says("nats stream edit THOLE_default_HIST_0 --replicas 1 --force && ", SEEN_MS));
    CU_ASSERT(completes());
    CU_ASSERT(stage_break(&stage, WAY_EDIT, "THOLE_default_HIST_0", "num_replicas", "1"));
    CU_ASSERT(stage_break(&stage, WAY_EDIT, "THOLE_default_HIST_0", "num_replicas", "3"));
    CU_ASSERT(
        stack_logged(engine, "stream THOLE_default_HIST_0 is as it must be again: servers", 1, WAIT_MS));
    CU_ASSERT(completes());
}

static void test_a_server_is_down(void)
{
    CU_ASSERT(doctor_says("3 replicas in a cluster, all of them up to date", WAIT_MS));
    server_kill9(&stack.others[1]);
    CU_ASSERT(doctor_says("of 3 replicas are away or behind", SEEN_MS));
    CU_ASSERT(completes());
    CHECK_OK(server_restart(&stack.others[1], &stack.err), &stack.err);
    CU_ASSERT(doctor_says("3 replicas in a cluster, all of them up to date", WAIT_MS));
    CU_ASSERT(completes());
}

static const struct thole_test tests[] = {
    {"a server is removed from a stream", test_a_server_is_removed_from_a_stream},
    {"a server is down", test_a_server_is_down},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start_cluster(&stack);
    engine =
        stack_program(&stack, "engine", "engine", "--node-ttl=5s", "--partitions=2", "--replicas=3", NULL);
    (void)stack_program(&stack, "worker", "worker", "--queue=default", NULL);
    client = stack_client(&stack);
    stage = (struct stage){.stack = &stack, .connection = stack_connect(&stack)};
    int const failed = thole_run_suite("defects_cluster", tests, ARRAY_LEN(tests));
    connection_close(stage.connection);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
