/* A user has made as many consumers of a stream as the account allows: engines get none. The running engines,
 * one that starts, and thole doctor say who did it; when the consumers are gone all goes on. */
#include "connection.h"
#include "stack.h"
#include <stdio.h>
#include <string.h>

enum { CONSUMERS = 1100, WAIT_MS = 60000, SOON_MS = 20000 };
#define WHO "stream THOLE_default_HIST_1 has consumers 1100 of at most 1100: 1100 x_* (inboxes of auditor)"

static const char config[] = "no_auth_user: hand\n"
                             "accounts { ONE: { jetstream: { max_consumers: 1100 }\n"
                             " users: [ { user: hand, password: hand } ] } }\n";

static struct stack stack;
static struct connection *connection;

/* As many as there are still; how many they were. */
static int fill(void)
{
    char subject[120], body[300];
    struct buf answer;
    int n = 0;
    buf_init(&answer, 1 << 20);
    for (; n <= CONSUMERS; n++) {
        (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.CREATE.THOLE_default_HIST_1.x_%d", n);
        (void)snprintf(
            body, sizeof body,
            "{\"stream_name\":\"THOLE_default_HIST_1\",\"config\":{\"name\":\"x_%d\",\"durable_name\":"
            "\"x_%d\",\"deliver_subject\":\"_INBOX_default_auditor.x.%d\",\"ack_policy\":\"none\","
            "\"deliver_policy\":\"new\"}}",
            n, n, n);
        CHECK_OK(connection_request(connection, subject, thole_slice_from(body), &answer, &stack.err),
                 &stack.err);
        if (strstr(buf_cstr(&answer), "\"error\"") != NULL)
            break;
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&answer), "10026"));
    buf_release(&answer);
    return n;
}

static void drop(int n)
{
    char subject[120];
    struct buf answer;
    buf_init(&answer, 1 << 20);
    for (int i = 0; i < n; i++) {
        (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.DELETE.THOLE_default_HIST_1.x_%d", i);
        CHECK_OK(connection_request(connection, subject, THOLE_STR(""), &answer, &stack.err), &stack.err);
    }
    buf_release(&answer);
}

static struct stack_program *start_engine(const char *name)
{
    return stack_program_with(&stack, "program_verbs", name, "run", "--partitions", "2", NULL);
}

static void check_doctor(void)
{
    const char *const doctor = stack_shell(THOLE_COMMAND " doctor 2>&1 || true");
    CU_ASSERT_PTR_NOT_NULL(strstr(doctor, WHO));
    if (strstr(doctor, WHO) == NULL)
        fprintf(stderr, "%s\n", doctor);
}

static void test_who_fills_the_account(void)
{
    stack_start_configured(&stack, config);
    struct stack_program *engine = start_engine("before");
    thole_client *const client = stack_client(&stack);
    connection = stack_connect(&stack);
    stack_run_many(&stack, client, "a", 5, WAIT_MS);
    int const n = fill();
    fprintf(stderr, "  %d consumers of somebody else fill the account\n", n);
    CU_ASSERT(n > 1000);
    check_doctor(); /* looks itself: the engine does so once in a minute */
    stack_kill9(engine);
    engine = start_engine("after");
    CU_ASSERT(stack_logged(engine, "maximum consumers limit reached", 1, WAIT_MS));
    CU_ASSERT(stack_logged(engine, WHO, 1, SOON_MS));
    check_doctor();
    drop(n);
    stack_run_many(&stack, client, "b", 5, WAIT_MS);
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    connection_close(connection);
    thole_client_close(client);
    stack_stop(&stack);
}

static const struct thole_test tests[] = {{"who fills the account", test_who_fills_the_account}};

THOLE_INTEGRATION_MAIN("crowded", tests)
