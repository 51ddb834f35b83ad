/* The whole way once: from a start message to a finished, failed or cancelled orchestration. */
#include "stack.h"

static struct stack stack;
static thole_client *client;

static void start(const char *id, const char *orchestration, const char *input)
{
    bool accepted = false;
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(input), &accepted, &stack.err),
             &stack.err);
    CU_ASSERT_TRUE(accepted);
}

static void check_outcome(const char *id, thole_instance_status want, const char *text)
{
    thole_instance_status status;
    const char *got = stack_outcome(client, id, 20000, &status);
    CHECK_STR(id, thole_instance_status_name(status), thole_instance_status_name(want));
    CHECK_STR(id, got, text);
}

struct rendered {
    char text[4096];
    size_t len;
};

static thole_status render(void *arg, const thole_history_event *event)
{
    struct rendered *r = arg;
    r->len += (size_t)snprintf(r->text + r->len, sizeof r->text - r->len, "%s%llu:%s", r->len > 0 ? " " : "",
                               (unsigned long long)event->id, event->kind);
    if (event->ref > 0)
        r->len += (size_t)snprintf(r->text + r->len, sizeof r->text - r->len, "(%llu)",
                                   (unsigned long long)event->ref);
    return r->len < sizeof r->text ? THOLE_OK : THOLE_LIMIT;
}

static const char *history(const char *id)
{
    static struct rendered r;
    r = (struct rendered){0};
    CHECK_OK(thole_client_history(client, thole_slice_from(id), render, &r, &stack.err), &stack.err);
    return r.text;
}

static void test_order_completes(void)
{
    start("order-1", "order", "book");
    check_outcome("order-1", THOLE_INSTANCE_COMPLETED, "book,reserve,charge,ship");
    CHECK_STR(
        "order-1", history("order-1"),
        "1:Started 2:ActivityScheduled 3:ActivityCompleted(2) 4:ActivityScheduled 5:ActivityCompleted(4) "
        "6:ActivityScheduled 7:ActivityCompleted(6) 8:Completed");
    CU_ASSERT_EQUAL(stack_count(stack.effects, "order-1"), 3);
}

static void test_duplicate_start_is_a_conflict(void)
{
    thole_error err = {0};
    start("twice", "one", "a");
    CU_ASSERT_EQUAL(
        thole_client_start(client, THOLE_STR("twice"), THOLE_STR("one"), THOLE_STR("b"), NULL, &err),
        THOLE_CONFLICT);
    check_outcome("twice", THOLE_INSTANCE_COMPLETED, "a");
    CU_ASSERT_EQUAL(
        thole_client_start(client, THOLE_STR("twice"), THOLE_STR("one"), THOLE_STR("b"), NULL, &err),
        THOLE_CONFLICT);
    check_outcome("twice", THOLE_INSTANCE_COMPLETED, "a");
}

static void test_timer_wins_the_race(void)
{
    size_t ran = 0;
    for (int round = 0; round < 20 && ran == 0;
         round++) { /* on a busy machine the timer may be before the worker */
        char id[32];
        snprintf(id, sizeof id, "race-timer-%d", round);
        start(id, "race", "60000");
        check_outcome(id, THOLE_INSTANCE_COMPLETED, "timer");
        CHECK_STR(id, history(id),
                  "1:Started 2:ActivityScheduled 3:TimerCreated 4:TimerFired(3) 5:ActivityCancelled(2) "
                  "6:Completed");
        ran = stack_count(stack.effects, "race-timer");
    }
    CU_ASSERT_TRUE(ran > 0);
    for (int i = 0; i < 2000 && stack_count(stack.tokens, "race-timer") < ran; i++)
        pause_ms(10);
    CU_ASSERT_TRUE(stack_count(stack.tokens, "timer 3 won") >= ran);
}

static void test_activity_wins_the_race(void)
{
    start("race-activity", "race", "1");
    check_outcome("race-activity", THOLE_INSTANCE_COMPLETED, "activity");
}

static void test_timer_alone(void)
{
    start("nap", "nap", "");
    check_outcome("nap", THOLE_INSTANCE_COMPLETED, "");
}

static void test_failure_reaches_the_client(void)
{
    start("fail", "fail", "4711");
    check_outcome("fail", THOLE_INSTANCE_FAILED, "activity 'decline' failed: card 4711 declined");
}

static void test_cancel_while_an_activity_runs(void)
{
    start("hold", "hold", "60000");
    for (int i = 0; i < 2000 && stack_count(stack.effects, "hold.1.2 slow") == 0; i++)
        pause_ms(10);
    CHECK_OK(thole_client_cancel(client, THOLE_STR("hold"), THOLE_STR("changed my mind"), &stack.err),
             &stack.err);
    check_outcome("hold", THOLE_INSTANCE_CANCELLED, "changed my mind");
    for (int i = 0; i < 2000 && stack_count(stack.tokens, "changed my mind") == 0; i++)
        pause_ms(10);
    CU_ASSERT_EQUAL(stack_count(stack.tokens, "changed my mind"), 1);
}

static void test_cancelled_saga_compensates(void)
{
    start("saga", "saga", "book");
    for (int i = 0; i < 2000 && stack_count(stack.effects, "saga.1.4 slow") == 0; i++) /* the fourth event
                                                                                          of the saga */
        pause_ms(10);
    CU_ASSERT_EQUAL(stack_count(stack.effects, "saga.1.4 slow"), 1);
    CHECK_OK(thole_client_cancel(client, THOLE_STR("saga"), THOLE_STR("no"), &stack.err), &stack.err);
    check_outcome("saga", THOLE_INSTANCE_CANCELLED, "no");
    CU_ASSERT_EQUAL(stack_count(stack.effects, " release"), 1);
}

static void test_fan_out_and_in(void)
{
    start("fan", "fan", "x");
    check_outcome("fan", THOLE_INSTANCE_COMPLETED, "50");
}

static const struct thole_test tests[] = {
    {"order_completes", test_order_completes},
    {"duplicate_start_is_a_conflict", test_duplicate_start_is_a_conflict},
    {"timer_wins_the_race", test_timer_wins_the_race},
    {"activity_wins_the_race", test_activity_wins_the_race},
    {"timer_alone", test_timer_alone},
    {"failure_reaches_the_client", test_failure_reaches_the_client},
    {"cancel_while_an_activity_runs", test_cancel_while_an_activity_runs},
    {"cancelled_saga_compensates", test_cancelled_saga_compensates},
    {"fan_out_and_in", test_fan_out_and_in},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    (void)stack_program(&stack, "run", "run", NULL);
    client = stack_client(&stack);
    int const failed = thole_run_suite("whole", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
