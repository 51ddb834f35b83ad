/* A history stream has messages that were never published to the history: a user who may create a consumer of
 * another stream, and subscribe to the history's subjects, lets the server deliver there. It stores
 * deliveries under the subject that they had. Here records of one partition follow those of the other one,
 * and look like those of another owner. */
#include "connection.h"
#include "jscan.h"
#include "stack.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INSTANCES = 20,
    WAIT_MS = 30000,
    DELIVERY_MS = 1000,
    FLOOD_MS = 20000,
    FLOOD_EACH_SECOND = 100,
    CUT_MS = 10000
};
#define FLOODED "thole.default.hist.0.copy.1"

static struct stack stack;
static thole_client *client;
static struct connection *connection;

static void hear(void *arg, const struct delivery *delivery)
{
    (void)arg, (void)delivery;
}

static uint64_t count_messages(uint32_t p)
{
    char subject[100];
    struct buf answer;
    thole_slice value;
    uint64_t n = 0;
    buf_init(&answer, 1 << 20);
    (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.THOLE_default_HIST_%u", p);
    CHECK_OK(connection_request(connection, subject, THOLE_STR(""), &answer, &stack.err), &stack.err);
    CU_ASSERT_TRUE(json_path(buf_bytes(&answer), "state.messages", &value) && json_uint(value, &n));
    buf_release(&answer);
    return n;
}

/* Records of @p from are stored after those of @p to: each says at which place it must be, so the first ones
 * are refused. */
static void deliver(uint32_t from, uint32_t to)
{
    char subject[100], heard[100], body[400];
    struct subscription *subscription = NULL;
    struct buf answer;
    uint64_t const before = count_messages(to);
    (void)snprintf(heard, sizeof heard, "thole.default.hist.%u.copy.1", to);
    CHECK_OK(connection_subscribe(connection, heard, hear, NULL, &subscription, &stack.err), &stack.err);
    CHECK_OK(connection_flush(connection, &stack.err), &stack.err);
    buf_init(&answer, 1 << 20);
    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.CREATE.THOLE_default_HIST_%u.copy", from);
    (void)snprintf(body, sizeof body,
                   "{\"stream_name\":\"THOLE_default_HIST_%u\",\"config\":{\"name\":\"copy\","
                   "\"deliver_subject\":\"%s\",\"ack_policy\":\"none\",\"deliver_policy\":\"all\"}}",
                   from, heard);
    CHECK_OK(connection_request(connection, subject, thole_slice_from(body), &answer, &stack.err),
             &stack.err);
    CU_ASSERT_PTR_NULL(strstr(buf_cstr(&answer), "\"error\""));
    pause_ms(DELIVERY_MS);
    CU_ASSERT(count_messages(to) > before);
    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.DELETE.THOLE_default_HIST_%u.copy", from);
    CHECK_OK(connection_request(connection, subject, THOLE_STR(""), &answer, &stack.err), &stack.err);
    buf_release(&answer);
    subscription_close(subscription);
}

static struct stack_program *start_engine(const char *name)
{
    return stack_program_with(&stack, "program_verbs", name, "run", "--partitions", "2", "--test-own-all",
                              NULL);
}

static void check_whole(void)
{
    const char *const verified = stack_shell(THOLE_COMMAND " audit verify --all");
    CU_ASSERT_EQUAL(strncmp(verified, "0: ", 3), 0);
    if (strncmp(verified, "0: ", 3) != 0)
        fprintf(stderr, "%s\n", verified);
}

static void test_records_of_another_log(void)
{
    stack_start(&stack);
    struct stack_program *engine = start_engine("before");
    client = stack_client(&stack);
    connection = stack_connect(&stack);
    stack_run_many(&stack, client, "a", INSTANCES, WAIT_MS);
    stack_kill9(engine);
    engine = start_engine("between"); /* the partitions have epochs of their own */
    stack_run_many(&stack, client, "b", INSTANCES, WAIT_MS);
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    uint32_t const longer = count_messages(1) > count_messages(0);
    deliver(longer, 1 - longer);
    check_whole(); /* nobody has removed them yet */
    engine = start_engine("after");
    CU_ASSERT(stack_logged(engine, "were not published to the history", 1, WAIT_MS));
    CU_ASSERT(stack_logged(engine, "open, epoch", 2, WAIT_MS));
    stack_run_many(&stack, client, "d", INSTANCES, WAIT_MS);
    check_whole();
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    connection_close(connection);
    thole_client_close(client);
    stack_stop(&stack);
}

/* ---- a flood ---- */

static atomic_bool flooding;
static atomic_uint flooded;

/* A hundred a second, one by one: without an end no partition could open in between. */
static void *flooder_main(void *arg)
{
    while (atomic_load(&flooding)) {
        if (connection_publish(arg, "thole.default.audit.0.junk", NULL, 0, THOLE_STR("junk"), NULL) ==
            THOLE_OK)
            atomic_fetch_add(&flooded, 1);
        pause_ms(1000 / FLOOD_EACH_SECOND);
    }
    return NULL;
}

static void create_consumer(const char *name, const char *deliver)
{
    char subject[100], body[400];
    struct buf answer;
    buf_init(&answer, 1 << 20);
    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.CREATE.THOLE_default_AUDIT.%s", name);
    (void)snprintf(
        body, sizeof body,
        "{\"stream_name\":\"THOLE_default_AUDIT\",\"config\":{\"name\":\"%s\",\"durable_name\":\"%s\","
        "\"deliver_subject\":\"%s\",\"ack_policy\":\"none\"}}",
        name, name, deliver);
    CHECK_OK(connection_request(connection, subject, thole_slice_from(body), &answer, &stack.err),
             &stack.err);
    CU_ASSERT_PTR_NULL(strstr(buf_cstr(&answer), "\"error\""));
    buf_release(&answer);
}

/* Actions of a notary: publish into AUDIT, and create a consumer of it. Records of the other history would be
 * refused, as they say at which place they must be. */
static void begin_flood(struct subscription **ret, pthread_t *ret_thread)
{
    CHECK_OK(connection_subscribe(connection, FLOODED, hear, NULL, ret, &stack.err), &stack.err);
    CHECK_OK(connection_flush(connection, &stack.err), &stack.err);
    create_consumer("flood", FLOODED);
    atomic_store(&flooding, true);
    CU_ASSERT_EQUAL_FATAL(pthread_create(ret_thread, NULL, flooder_main, connection), 0);
}

static int compare_us(const void *a, const void *b)
{
    uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Instances of both partitions, one after the other. *ret_worst_us: of the slowest. */
static uint64_t median_us(const char *round, uint64_t at_least_ms, uint64_t *ret_worst_us)
{
    enum { MOST = 4000, LEAST = 20 };
    static uint64_t took[MOST];
    size_t n = 0;
    uint64_t const end = now_us() + at_least_ms * 1000;
    while (n < LEAST || (now_us() < end && n < MOST)) {
        char id[48];
        uint64_t const begin = now_us();
        (void)snprintf(id, sizeof id, "%s-%zu-", round, n);
        stack_run_many(&stack, client, id, 1, WAIT_MS);
        took[n++] = now_us() - begin;
    }
    qsort(took, n, sizeof took[0], compare_us);
    *ret_worst_us = took[n - 1];
    fprintf(stderr, "  %s: %zu instances, one after the other: median %.1f ms, worst %.1f ms\n", round, n,
            (double)took[n / 2] / 1000, (double)took[n - 1] / 1000);
    return took[n / 2];
}

/* The engine finds the consumer and removes it: a partition is closed for a moment, not for as long as the
 * flood would last. */
static void test_a_flood(void)
{
    struct subscription *subscription = NULL;
    uint64_t worst_us = 0;
    pthread_t thread;
    stack_start(&stack);
    struct stack_program *engine = start_engine("engine");
    client = stack_client(&stack);
    connection = stack_connect(&stack);
    uint64_t const quiet_us = median_us("quiet", 3000, &worst_us);
    begin_flood(&subscription, &thread);
    uint64_t const flooded_us = median_us("flooded", FLOOD_MS, &worst_us);
    atomic_store(&flooding, false);
    (void)pthread_join(thread, NULL);
    fprintf(stderr, "  %u messages in %d s\n", atomic_load(&flooded), (int)FLOOD_MS / 1000);
    CU_ASSERT(atomic_load(&flooded) > FLOOD_EACH_SECOND * FLOOD_MS / 2000);
    CU_ASSERT(flooded_us < 3 * quiet_us);
    CU_ASSERT(worst_us < (uint64_t)CUT_MS * 1000);
    CU_ASSERT(stack_logged(engine,
                           "consumer flood of stream THOLE_default_AUDIT delivered to " FLOODED
                           ", where no consumer may: it is removed",
                           1, WAIT_MS));
    const char *const doctor = stack_shell(THOLE_COMMAND " doctor 2>&1 || true");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(doctor, "stream THOLE_default_HIST_0 has messages that were not published to it: more than "));
    CU_ASSERT_PTR_NOT_NULL(strstr(doctor, "from who has made flood, which delivered to " FLOODED));
    subscription_close(subscription);
    check_whole();
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    create_consumer("elsewhere", "thole.another.hist.0.copy.1"); /* nothing arrives in a history here */
    create_consumer("tap", "orders.copy");                       /* is the operator's */
    engine = start_engine("later");
    CU_ASSERT(
        stack_logged(engine, "consumer elsewhere of stream THOLE_default_AUDIT delivered to", 1, WAIT_MS));
    CU_ASSERT_EQUAL(stack_count(engine->log, "consumer tap of"), 0);
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
    connection_close(connection);
    thole_client_close(client);
    stack_stop(&stack);
}

static const struct thole_test tests[] = {{"records of another log", test_records_of_another_log},
                                          {"a flood", test_a_flood}};

THOLE_INTEGRATION_MAIN("foreign_records", tests)
