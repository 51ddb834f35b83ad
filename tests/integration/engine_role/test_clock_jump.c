/*
 * The clock of a program's machine jumps by an hour: while the program starts, and back while its NATS server
 * is silent or before that. It may not wait for the hour. The program reaches NATS by two ways, each of which
 * can become silent; what NATS has sent to a worker that has left a silent way comes again after the lease.
 */
#include "jumping_clock.h"
#include "stack.h"
#include "tcp_proxy.h"
#include <string.h>

enum { STARTS = 12, START_STEP_MS = 30, SERVE_MS = 15000, ENDS_MS = 40000, STOP_MS = 20000 };

static struct stack stack;
static struct jumping_clock jumping;
static struct tcp_proxy *ways[2];
static thole_client *client;
static char direct[128], proxied[128];

static struct stack_program *start_program(const char *name)
{
    setenv("THOLE_NATS_URL", proxied, 1);
    jumping_clock_use(&jumping);
    struct stack_program *program = stack_program(&stack, name, "run", "--node-ttl=3s", "--lease=10s", NULL);
    jumping_clock_use(NULL);
    setenv("THOLE_NATS_URL", direct, 1);
    return program;
}

static void check_order(const char *id)
{
    thole_instance_status status;
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("x"), NULL,
                                &stack.err),
             &stack.err);
    CHECK_STR(id, stack_outcome(client, id, ENDS_MS, &status), "x,reserve,charge,ship");
}

/* At each moment of its start, in both directions. */
static void test_while_it_starts(void)
{
    for (unsigned i = 0; i < STARTS; i++) {
        jumping_clock_set(&jumping, 0);
        struct stack_program *program = start_program("starts");
        pause_ms(i / 2 * START_STEP_MS);
        jumping_clock_set(&jumping, i % 2 == 0 ? JUMPING_CLOCK_HOUR_MS : -JUMPING_CLOCK_HOUR_MS);
        bool const serves = stack_logged(program, "msg=serving", program->lives, SERVE_MS);
        if (!serves)
            fprintf(stderr, "  jump %u, after %u ms: it does not serve\n", i, i / 2 * START_STEP_MS);
        CU_ASSERT_TRUE(serves);
        CU_ASSERT_EQUAL(stack_terminate(program, STOP_MS), 0);
    }
    jumping_clock_set(&jumping, 0);
}

static void test_it_shows(void)
{
    jumping_clock_set(&jumping, 0);
    struct stack_program *program = start_program("jumps");
    CU_ASSERT_TRUE(stack_logged(program, "msg=serving", program->lives, SERVE_MS));
    jumping_clock_set(&jumping, 10 * JUMPING_CLOCK_HOUR_MS);
    check_order("shows");
    CHECK_STR("hours later",
              stack_sql(&stack, "SELECT round((created_ms / 1000.0 - extract(epoch FROM now())) / 3600) "
                                "FROM thole_default.instances WHERE instance = 'shows'"),
              "10");
    jumping_clock_set(&jumping, 0);
    CU_ASSERT_EQUAL(stack_terminate(program, STOP_MS), 0);
}

static void silence(void)
{
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        if (tcp_proxy_connections(ways[i]) > 0)
            tcp_proxy_stall(ways[i], TCP_BOTH);
}

static void heal(void)
{
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        tcp_proxy_heal(ways[i]);
}

static void jump_back(const char *name, bool silent_before)
{
    jumping_clock_set(&jumping, 0);
    struct stack_program *program = start_program(name);
    CU_ASSERT_TRUE(stack_logged(program, "msg=serving", program->lives, SERVE_MS));
    pause_ms(1000);
    if (silent_before) {
        silence();
        pause_ms(1500); /* a heartbeat waits for its answer */
    }
    jumping_clock_set(&jumping, -JUMPING_CLOCK_HOUR_MS);
    if (!silent_before) {
        pause_ms(3000); /* what is found at the jump has been found */
        silence();
    }
    check_order(name);
    heal();
    jumping_clock_set(&jumping, 0);
    CU_ASSERT_EQUAL(stack_terminate(program, STOP_MS), 0);
}

static void test_back_while_nats_is_silent(void)
{
    jump_back("silent-before", true);
}

static void test_back_before_nats_is_silent(void)
{
    jump_back("silent-after", false);
}

static const struct thole_test tests[] = {
    {"it_shows", test_it_shows},
    {"while_it_starts", test_while_it_starts},
    {"back_while_nats_is_silent", test_back_while_nats_is_silent},
    {"back_before_nats_is_silent", test_back_before_nats_is_silent},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        ways[i] = tcp_proxy_start(stack.nats.port);
    if (ways[0] == NULL || ways[1] == NULL || !jumping_clock_open(&jumping, stack.dir, "program")) {
        fprintf(stderr, "no proxy, or no clock\n");
        return 1;
    }
    (void)snprintf(direct, sizeof direct, "%s", getenv("THOLE_NATS_URL"));
    (void)snprintf(proxied, sizeof proxied, "nats://127.0.0.1:%u,nats://127.0.0.1:%u",
                   tcp_proxy_port(ways[0]), tcp_proxy_port(ways[1]));
    struct stack_program *first = start_program("first"); /* sets the namespace up */
    client = stack_client(&stack);
    (void)stack_terminate(first, STOP_MS);
    int const failed = thole_run_suite("clock_jump", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        tcp_proxy_stop(ways[i]);
    return failed;
}
