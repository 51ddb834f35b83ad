/*
 * A backlog in one partition: events for instances that are not in memory, each of which waits for a history,
 * and between them starts, which do not wait. The size of a record depends on its turn, not on the backlog.
 */
#include "message.h"
#include "message_route.h"
#include "partition_io.h"
#include "reader.h"
#include "stack.h"

enum {
    MANY = 2000,
    NUMBERS_BYTES = 32, /* sequences and times grow */
    RANGES_BYTES = 2 * PARTITION_WAITING_MAX,
    RECORD_BYTES_MAX_HERE = 512, /* with its subject: two of them are a small instance */
};

static struct stack stack;
static thole_client *client;
static struct stack_program *engine;

static void run_engine(void)
{
    engine = stack_program(&stack, "engine", "engine", "--partitions=1", "--parked-max=10", NULL);
}

/* Without waiting for an answer; what @p n is of. */
static void publish(struct connection *connection, enum message_kind kind, size_t n)
{
    struct buf bytes, subject;
    char id[32];
    (void)snprintf(id, sizeof id, "burst-%05zu", n);
    bool const starts = kind == MESSAGE_START;
    struct message const message = {.kind = kind,
                                    .instance = thole_slice_from(id),
                                    .orchestration = starts ? THOLE_STR("one") : (thole_slice){0},
                                    .event_name = starts ? (thole_slice){0} : THOLE_STR("item"),
                                    .data = starts ? THOLE_STR("burst") : (thole_slice){0},
                                    .event_data = starts ? (thole_slice){0} : THOLE_STR("burst"),
                                    .request_id = thole_slice_from(id)};
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    buf_init(&subject, 256);
    CU_ASSERT_EQUAL(message_encode(&message, &bytes), THOLE_OK);
    struct message_route const route = message_route(&message, SENDER_CLIENT);
    buf_printf(&subject, "thole.default.in.0.%s.%s", route.text, id);
    CHECK_OK(connection_publish(connection, buf_cstr(&subject), NULL, 0, buf_bytes(&bytes), &stack.err),
             &stack.err);
    buf_release(&subject);
    buf_release(&bytes);
}

/* ---- stored records ---- */

struct stored {
    size_t starts, events, largest_start, largest_event, bytes, ranges;
};

static void note_larger(size_t *largest, size_t bytes)
{
    *largest = bytes > *largest ? bytes : *largest;
}

static thole_status on_record(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct stored *stored = arg;
    struct arena arena;
    struct record record;
    (void)sequence;
    arena_init(&arena, 1 << 20);
    CHECK_OK(record_decode(body, &arena, &record, &stack.err), &stack.err);
    if (record.kind == RECORD_TURN) {
        bool const starts = record.turn.number == 1;
        stored->starts += starts;
        stored->events += !starts;
        note_larger(starts ? &stored->largest_start : &stored->largest_event, body.len);
        note_larger(&stored->ranges, record.position.ranges_len);
        stored->bytes += body.len + subject.len;
        CU_ASSERT_TRUE(record.position.ranges_len == 0 || !record.position.listed);
    }
    arena_release(&arena);
    return THOLE_OK;
}

static uint64_t last_record(struct connection *connection)
{
    struct stream_bounds bounds = {0};
    CHECK_OK(stream_bounds(connection, "THOLE_default_HIST_0", &bounds, &stack.err), &stack.err);
    return bounds.last;
}

/* The records after @p after, once there are @p n turns among them. */
static struct stored turns_behind(struct connection *connection, uint64_t after, size_t n)
{
    struct stored stored;
    unsigned tries = 0;
    do {
        stored = (struct stored){.starts = 0};
        pause_ms(50);
        uint64_t const last = last_record(connection);
        if (last >= after + n)
            CHECK_OK(stream_read(connection, "THOLE_default_HIST_0", NULL, after + 1, last, on_record,
                                 &stored, &stack.err),
                     &stack.err);
    } while (stored.starts + stored.events < n && ++tries < 1200);
    CU_ASSERT_EQUAL(stored.starts + stored.events, n);
    return stored;
}

/* No worker runs: each instance waits, and keeps its event. */
static void test_a_record_takes_what_its_turn_takes(void)
{
    struct connection *const connection = stack_connect(&stack);
    uint64_t const before = last_record(connection);
    for (size_t i = 0; i < MANY; i++)
        publish(connection, MESSAGE_START, i);
    publish(connection, MESSAGE_EVENT, MANY - 1);
    struct stored const alone = turns_behind(connection, before, MANY + 1);
    CU_ASSERT_EQUAL(stack_terminate(engine, 20000), 0);
    uint64_t const between = last_record(connection);
    for (size_t i = 0; i < MANY; i++) {
        publish(connection, MESSAGE_EVENT, i);
        publish(connection, MESSAGE_START, MANY + i);
    }
    CHECK_OK(connection_flush(connection, &stack.err), &stack.err);
    run_engine();
    struct stored const burst = turns_behind(connection, between, 2 * MANY - 1);
    fprintf(stderr,
            "  a start %zu bytes, %zu in the burst; an event %zu, %zu; %zu ranges; %zu bytes a record\n",
            alone.largest_start, burst.largest_start, alone.largest_event, burst.largest_event, burst.ranges,
            burst.bytes / (2 * MANY));
    CU_ASSERT(burst.starts == MANY && burst.events == MANY - 1);
    CU_ASSERT(burst.largest_start <= alone.largest_start + NUMBERS_BYTES + RANGES_BYTES);
    CU_ASSERT(burst.largest_event <= alone.largest_event + NUMBERS_BYTES + RANGES_BYTES);
    CU_ASSERT(burst.bytes <= (size_t)2 * MANY * RECORD_BYTES_MAX_HERE);
    CU_ASSERT(burst.ranges <= PARTITION_WAITING_MAX);
    connection_close(connection);
}

static void test_open(void)
{
    stack_start(&stack);
    run_engine();
    client = stack_client(&stack);
    CU_ASSERT_TRUE(stack_logged(engine, "open, epoch", 1, 30000));
}

static void test_close(void)
{
    thole_client_close(client);
    stack_stop(&stack);
}

static const struct thole_test tests[] = {
    {"the servers, an engine", test_open},
    {"a record takes what its turn takes", test_a_record_takes_what_its_turn_takes},
    {"close", test_close},
};
THOLE_TEST_MAIN("burst", tests)
