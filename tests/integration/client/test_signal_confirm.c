/* A signal that waits until the history has its event, against a live engine. */
#include "stack.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 20000, PARTITIONS = 8 };

static struct stack stack;
static struct stack_program *verbs;
static thole_client *client;

static thole_slice text(const char *from)
{
    return thole_slice_from(from);
}

static void check(const char *row, const char *got, const char *want)
{
    CHECK_STR(row, got, want);
}

#define CHECK_STATUS(got, want) check(#got, thole_status_name(got), thole_status_name(want))

static thole_status confirmed(const char *id, const char *event, thole_slice bytes, const char *request)
{
    thole_signal_options const options = {
        .size = sizeof options, .request_id = thole_slice_from(request), .confirm = true};
    return thole_client_signal_with(client, thole_slice_from(id), thole_slice_from(event), bytes, &options,
                                    NULL, &stack.err);
}

/* The sender gets the fate of the event, and not only that it is stored. */
static void test_signal_is_confirmed(void)
{
    enum { DATA = 262144, FULL = 8 * 1024 * 1024 / DATA };
    static uint8_t const data[DATA];
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    CHECK_STATUS(confirmed("told", "go", text("early"), ""), THOLE_OK); /* waits for the start */
    CHECK_STATUS(
        thole_client_start(client, THOLE_STR("told"), THOLE_STR("gate"), text("3"), NULL, &stack.err),
        THOLE_OK);
    CHECK_STATUS(confirmed("told", "go", text("second"), "two"), THOLE_OK);
    CHECK_STATUS(confirmed("told", "go", text("second"), "two"), THOLE_OK); /* was taken */
    CHECK_STATUS(confirmed("told", "go", text("other"), "two"), THOLE_CONFLICT);
    for (int i = 0; i < FULL; i++)
        CHECK_STATUS(confirmed("told", "other", (thole_slice){data, DATA}, ""), THOLE_OK);
    CHECK_STATUS(confirmed("told", "other", text("x"), ""), THOLE_LIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "the engine has rejected it: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "(too_many)"));
    CHECK_STATUS(confirmed("told", "go", text("third"), ""), THOLE_OK);
    CHECK_STATUS(thole_client_wait(client, THOLE_STR("told"), WAIT_MS, &outcome, &stack.err), THOLE_OK);
    CU_ASSERT_TRUE(thole_slice_equal(outcome.output, text("third")));
    thole_outcome_release(&outcome);
    CHECK_STATUS(confirmed("told", "go", text("late"), ""), THOLE_CONFLICT);
}

/* Nobody takes it: what is stored is not accepted. */
static void test_no_engine(void)
{
    stack_kill9(verbs);
    CHECK_STATUS(confirmed("nobody-takes", "go", text("x"), ""), THOLE_TIMEOUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "is stored, and no engine has taken it within"));
}

static const struct thole_test tests[] = {
    {"signal is confirmed", test_signal_is_confirmed},
    {"no engine", test_no_engine},
};

int main(void)
{
    char tokens[256];
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    (void)snprintf(tokens, sizeof tokens, "%s/verbs", stack.dir);
    setenv("VERBS_TOKENS", tokens, 1);
    verbs = stack_program_of(&stack, "program_verbs", "verbs", "run");
    client = stack_client(&stack);
    (void)stack_logged(verbs, "open, epoch", PARTITIONS, WAIT_MS);
    int const failed = thole_run_suite("signal_confirm", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
