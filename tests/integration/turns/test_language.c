/* The language over real servers: tries on another queue, timeouts, children in other partitions, many lives
 * of one instance, events before their instance; and all of it under kill -9. */
#include "stack.h"
#include <pthread.h>

enum { FAMILIES = 60, CHILDREN = 5, SUM = 1 + 2 + 3 + 4 + 5 };

static struct stack stack;
static thole_client *client;
static struct stack_program *engines[2], *worker, *other;

static struct stack_program *launch(const char *name, const char *role)
{
    return stack_program_of(&stack, "program_language", name, role);
}

static void start(const char *id, const char *orchestration, const char *input)
{
    thole_error err = {0};
    thole_status status;
    do
        status = thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                    thole_slice_from(input), NULL, &err);
    while (status == THOLE_UNAVAILABLE);
    CU_ASSERT_TRUE(status == THOLE_OK || status == THOLE_CONFLICT);
}

static void check_outcome(const char *id, const char *text)
{
    thole_instance_status status;
    const char *got = stack_outcome(client, id, 60000, &status);
    CHECK_STR(id, thole_instance_status_name(status), "Completed");
    CHECK_STR(id, got, text);
}

/* ---- contents of a history ---- */

struct tally {
    const char *kind;
    unsigned n;
};

static thole_status count_kind(void *arg, const thole_history_event *event)
{
    struct tally *tally = arg;
    tally->n += strcmp(event->kind, tally->kind) == 0;
    return THOLE_OK;
}

static unsigned events(const char *id, const char *kind)
{
    struct tally tally = {.kind = kind};
    thole_error err = {0};
    CHECK_OK(thole_client_history(client, thole_slice_from(id), count_kind, &tally, &err), &err);
    return tally.n;
}

/* ---- tries ---- */

static void test_tries_on_another_queue(void)
{
    start("stubborn-1", "stubborn", "x");
    check_outcome("stubborn-1", "try 3 on other for stubborn@1 by a worker");
    CU_ASSERT_EQUAL(events("stubborn-1", "ActivityTryFailed"), 2);
    CU_ASSERT_EQUAL(events("stubborn-1", "ActivityTryStarted"), 2);
    CU_ASSERT_EQUAL(events("stubborn-1", "ActivityCompleted"), 1);
    CU_ASSERT_EQUAL(stack_count(stack.effects, "flaky try 3 attempt 1"), 1);
    start("stubborn-2", "stubborn", "final");
    check_outcome("stubborn-2", "card.stolen after 1: never again");
    CU_ASSERT_EQUAL(events("stubborn-2", "ActivityTryFailed"), 0);
}

static void test_time_is_over(void)
{
    start("late-1", "late", "try");
    start("late-2", "late", "total");
    check_outcome("late-1", "TIMEOUT timeout tries 2");
    check_outcome("late-2", "TIMEOUT timeout tries 1");
    CU_ASSERT_EQUAL(stack_count(stack.effects, "hang try 2 attempt 1"), 1);
}

/* ---- between instances ---- */

static void test_children(void)
{
    start("family-1", "family", "");
    check_outcome("family-1", "15, then APP leaf.bad");
    CU_ASSERT_EQUAL(events("family-1", "ChildScheduled"), CHILDREN + 1);
    CU_ASSERT_EQUAL(events("family-1", "ChildCompleted"), CHILDREN);
    CU_ASSERT_EQUAL(events("family-1", "ChildFailed"), 1);
}

/* A parent that ends with close = TERMINATE ends its child, and not a stranger with the id of one. */
static void test_whom_a_parent_ends(void)
{
    thole_error err = {0};
    thole_instance_status status;
    start("stranger-1", "lives", "3");
    start("hasty-1", "hasty", "stranger-1");
    start("hasty-2", "hasty", "own-1");
    check_outcome("hasty-1", "away");
    check_outcome("hasty-2", "away");
    (void)stack_outcome(client, "own-1", 60000, &status);
    CHECK_STR("its child", thole_instance_status_name(status), "Terminated");
    pause_ms(300); /* the other one is asked to end at the same time */
    CHECK_OK(thole_client_signal(client, THOLE_STR("stranger-1"), THOLE_STR("tick"), THOLE_STR("z"),
                                 THOLE_STR(""), NULL, &err),
             &err);
    check_outcome("stranger-1", "z");
}

/* A child that is cleaning up, because it was cancelled, when its parent ends with close = TERMINATE. */
static void test_what_cleans_up_is_ended(void)
{
    thole_instance_status status;
    start("hurried-1", "hurried", "tidy-1");
    check_outcome("hurried-1", "gone");
    (void)stack_outcome(client, "tidy-1", 60000, &status);
    CHECK_STR("its child", thole_instance_status_name(status), "Terminated");
    CU_ASSERT_EQUAL(events("tidy-1", "CancelRequested"), 1);
}

static void test_events_before_their_instance(void)
{
    thole_error err = {0};
    bool accepted = false;
    CHECK_OK(thole_client_signal(client, THOLE_STR("lives-1"), THOLE_STR("tick"), THOLE_STR("1"),
                                 THOLE_STR("request-1"), NULL, &err),
             &err);
    CHECK_OK(thole_client_signal(client, THOLE_STR("lives-1"), THOLE_STR("tick"), THOLE_STR("1"),
                                 THOLE_STR("request-1"), NULL, &err),
             &err);
    start("teller-1", "teller", "2 lives-1");
    check_outcome("teller-1", "told");
    for (int i = 0; i < 1000 && events("lives-1", "EventReceived") < 3; i++)
        pause_ms(10); /* they are sent after the teller's turn is recorded */
    thole_start_options const options = {
        .size = sizeof options, .event = THOLE_STR("tick"), .event_data = THOLE_STR("z")};
    CHECK_OK(thole_client_start_with(client, THOLE_STR("lives-1"), THOLE_STR("lives"), THOLE_STR("0"),
                                     &options, &accepted, &err),
             &err);
    check_outcome("lives-1", "1abz");
    CU_ASSERT_EQUAL(events("lives-1", "ContinuedAsNew"), 3);
}

/* ---- kill -9 ---- */

static void kill_all(void)
{
    stack_kill9(engines[0]);
    stack_kill9(engines[1]);
    stack_kill9(worker);
    engines[0] = launch("engine-0", "engine");
    engines[1] = launch("engine-1", "engine");
    worker = launch("worker", "worker");
}

/* The cost of loading an instance does not grow with its age. */
static void test_old_instance_loads_its_newest_lives(void)
{
    const char *line = "instance=rounds-1 execution=300 *loads from 2 records";
    thole_error err = {0};
    bool loaded = false;
    start("rounds-1", "rounds", "300");
    for (int i = 0; i < 1000 && events("rounds-1", "ContinuedAsNew") < 299; i++)
        pause_ms(20);
    kill_all();
    CHECK_OK(thole_client_signal(client, THOLE_STR("rounds-1"), THOLE_STR("tick"), THOLE_STR("over"),
                                 THOLE_STR("request-2"), NULL, &err),
             &err);
    check_outcome("rounds-1", "over");
    for (int i = 0; i < 2; i++)
        loaded |= stack_count(engines[i]->log, line) > 0;
    CU_ASSERT_TRUE(loaded);
}

static void check_family(int i)
{
    char id[64];
    thole_instance_status status;
    snprintf(id, sizeof id, "kin-%03d", i);
    const char *got = stack_outcome(client, id, 90000, &status);
    CHECK_STR(id, got, "15, then APP leaf.bad");
    CU_ASSERT_EQUAL(events(id, "ChildScheduled"), CHILDREN + 1);
    CU_ASSERT_EQUAL(events(id, "ChildCompleted"), CHILDREN);
    snprintf(id, sizeof id, "told-%03d", i);
    got = stack_outcome(client, id, 90000, &status);
    CHECK_STR(id, got, "abcd");
}

static void *start_away(void *arg)
{
    start("kin-away", "family", "");
    return arg;
}

/* While a client goes on asking. */
static void postgres_away(void)
{
    pthread_t asks;
    server_kill9(&stack.postgres);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&asks, NULL, start_away, NULL), 0);
    pause_ms(1000);
    CHECK_OK(server_restart(&stack.postgres, &stack.err), &stack.err);
    pthread_join(asks, NULL);
    check_outcome("kin-away", "15, then APP leaf.bad");
}

/* Each family and each long life ends right whatever is killed: no child twice, no event twice or never. */
static void test_kill9(void)
{
    for (int i = 0; i < FAMILIES; i++) {
        char id[64], told[64];
        snprintf(id, sizeof id, "kin-%03d", i);
        start(id, "family", "");
        snprintf(id, sizeof id, "told-%03d", i);
        start(id, "lives", "0");
        snprintf(told, sizeof told, "4 told-%03d", i);
        snprintf(id, sizeof id, "tells-%03d", i);
        start(id, "teller", told);
        if (i == FAMILIES / 3)
            kill_all();
        if (i == FAMILIES / 2)
            postgres_away();
        if (i == 2 * FAMILIES / 3) {
            server_kill9(&stack.nats);
            CHECK_OK(server_restart(&stack.nats, &stack.err), &stack.err);
        }
        if (i == FAMILIES - 5)
            kill_all();
    }
    for (int i = 0; i < FAMILIES; i++)
        check_family(i);
}

static const struct thole_test tests[] = {
    {"tries on another queue", test_tries_on_another_queue},
    {"time is over", test_time_is_over},
    {"children", test_children},
    {"whom a parent ends", test_whom_a_parent_ends},
    {"what cleans up is ended", test_what_cleans_up_is_ended},
    {"events before their instance", test_events_before_their_instance},
    {"old instance loads its newest lives", test_old_instance_loads_its_newest_lives},
    {"kill -9 of everything", test_kill9},
};

int main(void)
{
    stack_start(&stack);
    setenv("LANGUAGE_EFFECTS", stack.effects, 1);
    setenv("THOLE_NODE_TTL", "3s", 1);
    setenv("THOLE_LEASE", "3s", 1);
    setenv("THOLE_SWEEP", "6s", 1);
    engines[0] = launch("engine-0", "engine");
    engines[1] = launch("engine-1", "engine");
    worker = launch("worker", "worker");
    setenv("THOLE_QUEUE", "other", 1);
    other = launch("other", "worker");
    unsetenv("THOLE_QUEUE");
    client = stack_client(&stack);
    int const code = thole_run_suite("language", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return code;
}
