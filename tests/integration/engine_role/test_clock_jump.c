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

static struct stack_program *start_limited(const char *name, const char *limit)
{
    setenv("THOLE_NATS_URL", proxied, 1);
    jumping_clock_use(&jumping);
    struct stack_program *program =
        stack_program(&stack, name, "run", "--node-ttl=3s", "--lease=10s", limit, NULL);
    jumping_clock_use(NULL);
    setenv("THOLE_NATS_URL", direct, 1);
    return program;
}

/* The program uses its own clock, whatever that says. */
static struct stack_program *start_program(const char *name)
{
    return start_limited(name, "--clock-offset-max=0s");
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

/* Hours by which the instance was created later than now. */
static void created_now(const char *id)
{
    char statement[256];
    (void)snprintf(statement, sizeof statement,
                   "SELECT round((created_ms / 1000.0 - extract(epoch FROM now())) / 3600) FROM "
                   "thole_default.instances WHERE instance = '%s'",
                   id);
    CHECK_STR(id, stack_sql(&stack, statement), "0");
}

static void test_it_is_wrong_from_the_start(void)
{
    jumping_clock_set(&jumping, INT64_C(10) * 365 * 24 * JUMPING_CLOCK_HOUR_MS);
    struct stack_program *program = start_limited("wrong", "--clock-offset-max=60s");
    CU_ASSERT_TRUE(stack_logged(program, "owns no partition until it is right", 1, SERVE_MS));
    CU_ASSERT_TRUE(
        stack_logged(program, "ms ahead; keep both with NTP", 2, SERVE_MS)); /* of NATS and of Postgres */
    CU_ASSERT_FALSE(stack_logged(program, "open, epoch", 1, 1500));
    jumping_clock_set(&jumping, 0);
    CU_ASSERT_TRUE(stack_logged(program, "clock is right again", 1, SERVE_MS));
    check_order("right-again");
    created_now("right-again");
    CU_ASSERT_EQUAL(stack_terminate(program, STOP_MS), 0);
}

static void test_it_becomes_wrong(void)
{
    jumping_clock_set(&jumping, 0);
    struct stack_program *program = start_limited("becomes-wrong", "--clock-offset-max=60s");
    check_order("before");
    jumping_clock_set(&jumping, INT64_C(10) * 365 * 24 * JUMPING_CLOCK_HOUR_MS);
    CU_ASSERT_TRUE(stack_logged(program, "clock has jumped by 3153", 1, SERVE_MS));
    CU_ASSERT_TRUE(stack_logged(program, "owns no partition until it is right", 1, SERVE_MS));
    struct stack_program *other = stack_program(&stack, "other", "run", "--node-ttl=3s", "--lease=10s", NULL);
    check_order("by-the-other");
    created_now("by-the-other");
    CU_ASSERT_EQUAL(stack_terminate(other, STOP_MS), 0);
    jumping_clock_set(&jumping, -JUMPING_CLOCK_HOUR_MS); /* wrong in another way */
    pause_ms(1000);
    jumping_clock_set(&jumping, 0);
    CU_ASSERT_TRUE(stack_logged(program, "clock is right again", 1, SERVE_MS));
    check_order("after");
    created_now("after");
    CU_ASSERT_EQUAL(stack_terminate(program, STOP_MS), 0);
}

/* The output of a user's command. */
static void command_says(const char *arguments, const char *part)
{
    static char text[64 * 1024];
    char command[256];
    (void)snprintf(command, sizeof command, THOLE_COMMAND " %s 2>&1", arguments);
    FILE *from = popen(command, "r");
    size_t const n = from == NULL ? 0 : fread(text, 1, sizeof text - 1, from);
    text[n] = '\0';
    CU_ASSERT(from != NULL && pclose(from) == 0);
    if (strstr(text, part) == NULL)
        CHECK_STR(arguments, text, part);
}

/* Set while the clock was ten years ahead: one command, when it is right again. */
static void test_timers_of_a_wrong_clock(void)
{
    static const char *const ids[] = {"nap-1", "nap-2", "nap-3"};
    thole_instance_status status = THOLE_INSTANCE_UNKNOWN;
    jumping_clock_set(&jumping, 0);
    struct stack_program *program = start_program("naps");
    check_order("naps-serve");
    jumping_clock_set(&jumping, INT64_C(10) * 365 * 24 * JUMPING_CLOCK_HOUR_MS);
    pause_ms(1500); /* connections find it */
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        CHECK_OK(thole_client_start(client, thole_slice_from(ids[i]), THOLE_STR("long_nap"), THOLE_STR(""),
                                    NULL, &stack.err),
                 &stack.err);
    CHECK_OK(thole_client_start(client, THOLE_STR("insist"), THOLE_STR("insist"), THOLE_STR("7"), NULL,
                                &stack.err),
             &stack.err);
    for (int i = 0;
         i < 500 && strcmp(stack_sql(&stack, "SELECT count(*) FROM thole_default.timers"), "4") != 0; i++)
        pause_ms(20);
    jumping_clock_set(&jumping, 0);
    command_says("timer list --due-after 365d", "nap-3");
    command_says("timer list insist", "try 2");
    command_says("timer fire --all --due-after 365d --dry-run", "4 timers would fire, nothing was changed");
    command_says("timer fire nap-2 --due-after 365d --actor ops", "1 timers fire now");
    CHECK_STR("nap-2", stack_outcome(client, "nap-2", ENDS_MS, &status), "");
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_COMPLETED);
    command_says("history nap-2 -o wide", "stated:ops");
    command_says("timer fire --all --due-after 365d", "3 timers fire now");
    CHECK_STR("insist", stack_outcome(client, "insist", ENDS_MS, &status),
              "activity 'decline' failed: card 7 declined");
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_FAILED);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        status = THOLE_INSTANCE_UNKNOWN;
        (void)stack_outcome(client, ids[i], ENDS_MS, &status);
        CU_ASSERT_EQUAL(status, THOLE_INSTANCE_COMPLETED);
    }
    command_says("timer list --due-after 365d", "no timer is due then");
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
        pause_ms(3000); /* findings of the jump have been made */
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
    {"it_is_wrong_from_the_start", test_it_is_wrong_from_the_start},
    {"it_becomes_wrong", test_it_becomes_wrong},
    {"timers_of_a_wrong_clock", test_timers_of_a_wrong_clock},
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
