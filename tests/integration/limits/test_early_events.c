/*
 * Events for instances that do not exist are in the history, and only some of them in memory: a user who may
 * raise one event cannot fill an engine's memory with ids that are never started. Events put out of memory
 * come back for the start.
 */
#include "connection.h"
#include "message_route.h"
#include "sanitized.h"
#include "stack.h"
#include "subject.h"
#include <assert.h>

enum {
    PARTITIONS = 8,
    IDS = 800,
    EACH = 8,
    EVENT_BYTES = 128 * 1024,
    MIB_MAX = SANITIZED ? 2000 : 450,
    STARTED = 3
};

static struct stack stack;
static thole_client *client;
static struct connection *bare;
static struct stack_program *engine;

static unsigned long status_mib(const char *name)
{
    char path[64], line[128];
    unsigned long kib = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)stack_serving(engine));
    FILE *const file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoul(line + strlen(name), NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return kib / 1024;
}

static void raise_event(unsigned id, unsigned number)
{
    static uint8_t data[EVENT_BYTES];
    char name[32], request[48];
    struct buf subject, body;
    (void)snprintf(name, sizeof name, "nobody-%u", id);
    (void)snprintf(request, sizeof request, "r-%u-%u", id, number);
    struct message const message = {.kind = MESSAGE_EVENT,
                                    .instance = thole_slice_from(name),
                                    .request_id = thole_slice_from(request),
                                    .event_name = THOLE_STR("item"),
                                    .event_data = {data, sizeof data}};
    buf_init(&subject, 256);
    buf_init(&body, MESSAGE_BYTES_MAX);
    memset(data, 'x', sizeof data);
    CU_ASSERT_EQUAL(message_encode(&message, &body), THOLE_OK);
    buf_printf(&subject, "thole.default.in.%u.%s.%s", subject_partition(message.instance, PARTITIONS),
               message_route(&message, SENDER_CLIENT).text, name);
    CHECK_OK(connection_publish(bare, buf_cstr(&subject), NULL, 0, buf_bytes(&body), &stack.err), &stack.err);
    buf_release(&subject);
    buf_release(&body);
}

static uint64_t early_in_rows(void)
{
    return strtoull(stack_sql(&stack, "SELECT sum(substring(detail FROM '^[0-9]+')::bigint) FROM "
                                      "thole_default.instances WHERE status = 2"),
                    NULL, 10);
}

static void until_recorded(uint64_t events)
{
    uint64_t const end = clock_monotonic_ms() + 120000;
    while (early_in_rows() < events && clock_monotonic_ms() < end)
        pause_ms(100);
    CU_ASSERT_EQUAL(early_in_rows(), events);
}

static void check_starts_with_all(const char *id)
{
    struct buf want;
    thole_instance_status status;
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("x"), NULL,
                                &stack.err),
             &stack.err);
    CHECK_STR(id, stack_outcome(client, id, 30000, &status), "x,reserve,charge,ship");
    const char *const history = stack_history(client, id);
    buf_init(&want, 1024);
    buf_printf(&want, "1:Started");
    for (unsigned i = 0; i < EACH; i++)
        buf_printf(&want, " 1:EventReceived");
    CHECK_STR(id, strstr(history, buf_cstr(&want)) != NULL ? buf_cstr(&want) : history, buf_cstr(&want));
    buf_release(&want);
}

/* 800 MiB of events; an engine kept all of them. */
static void test_a_flood(void)
{
    for (unsigned id = 0; id < IDS; id++)
        for (unsigned number = 0; number < EACH; number++)
            raise_event(id, number);
    CHECK_OK(connection_flush(bare, &stack.err), &stack.err);
    until_recorded((uint64_t)IDS * EACH);
    fprintf(stderr, "  the engine with %u MiB of early events: %lu MiB, %lu MiB at most\n", IDS * EACH / 8,
            status_mib("VmRSS:"), status_mib("VmHWM:"));
    CU_ASSERT_TRUE(status_mib("VmHWM:") < MIB_MAX);
}

/* The first ones were put out of memory long ago. */
static void test_none_is_lost(void)
{
    check_starts_with_all("nobody-0");
    check_starts_with_all("nobody-1");
    check_starts_with_all("nobody-799");
    static_assert(STARTED == 3, "and they do not wait any more");
}

/* One id in turn with another: each is read again for its next event. */
static void test_in_turn(void)
{
    for (unsigned number = EACH; number < EACH + 2; number++)
        for (unsigned id = 2; id < 102; id++)
            raise_event(id, number);
    CHECK_OK(connection_flush(bare, &stack.err), &stack.err);
    until_recorded((uint64_t)(IDS - STARTED) * EACH + 200);
    fprintf(stderr, "  in turn: %lu MiB at most\n", status_mib("VmHWM:"));
    CU_ASSERT_TRUE(status_mib("VmHWM:") < MIB_MAX);
}

static const struct thole_test tests[] = {
    {"a_flood", test_a_flood},
    {"none_is_lost", test_none_is_lost},
    {"in_turn", test_in_turn},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    engine = stack_program(&stack, "run", "run", NULL);
    client = stack_client(&stack);
    bare = stack_connect(&stack);
    int const failed = thole_run_suite("early_events", tests, ARRAY_LEN(tests));
    connection_close(bare);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
