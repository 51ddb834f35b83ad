/* W3C Trace Context: what is valid, and that it stays in records, messages, replays and the next execution.
 */
#include "coro.h"
#include "instance.h"
#include "message.h"
#include "thole_cunit.h"
#include "trace.h"
#include <stdlib.h>
#include <string.h>

#define ID "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define PARENT "00-" ID "-" SPAN "-01"
#define STATE "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"

static void test_parents(void)
{
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {
        {PARENT, true},
        {"00-" ID "-" SPAN "-00", true},
        {"00-" ID "-" SPAN "-ff", true},
        {"", false},
        {"00-" ID "-" SPAN "-1", false},
        {"00-" ID "-" SPAN "-01-x", false},
        {"00-" ID "-" SPAN "-0x", false},
        {"01-" ID "-" SPAN "-01", false},
        {"ff-" ID "-" SPAN "-01", false},
        {"00_" ID "-" SPAN "-01", false},
        {"00-" ID "_" SPAN "-01", false},
        {"00-" ID "-" SPAN "_01", false},
        {"00-0af7651916cd43dd8448eb211c803190-" SPAN "-01", true}, /* one digit that is not 0 is enough */
        {"00-10000000000000000000000000000000-" SPAN "-01", true},
        {"00-00000000000000000000000000000001-" SPAN "-01", true},
        {"00-" ID "-1000000000000000-01", true},
        {"00-" ID "-0000000000000001-01", true},
        {"00-00000000000000000000000000000000-" SPAN "-01", false},
        {"00-" ID "-0000000000000000-01", false},
        {"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", false},
        {"00-" ID "-B7AD6B7169203331-01", false},
        {"00-" ID "-" SPAN "-FF", false},
        {"00-0af7651916cd43dd8448eb211c80319g-" SPAN "-01", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool const valid = trace_parent_valid(thole_slice_from(rows[i].text));
        CHECK_STR(rows[i].text, valid ? "valid" : "not", rows[i].valid ? "valid" : "not");
    }
    CU_ASSERT_TRUE(thole_slice_equal(trace_id(THOLE_STR(PARENT)), THOLE_STR(ID)));
    CU_ASSERT_TRUE(thole_slice_equal(trace_span_id(THOLE_STR(PARENT)), THOLE_STR(SPAN)));
}

/* "k=v" @p n times, with commas. */
static thole_slice members(size_t n)
{
    static char text[1024];
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, i == 0 ? "k%zu=v" : ",k%zu=v", i);
    return (thole_slice){(const uint8_t *)text, len};
}

static void test_states(void)
{
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {
        {"", true},         {STATE, true},         {"a=b", true},    {"a=b, c=d ,, e=f", true},
        {"0@x=!~ y", true}, {"a_-*/@z9=1", true},  {"a", false},     {"a=", false},
        {"=b", false},      {"A=b", false},        {"_a=b", false},  {"a=b=c", false},
        {"a=\x01", false},  {"a=\xc3\xa4", false}, {"a b=c", false}, {"a=b\n", false},
    };
    char longest[TRACESTATE_BYTES_MAX + 2];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool const valid = trace_state_valid(thole_slice_from(rows[i].text));
        CHECK_STR(rows[i].text, valid ? "valid" : "not", rows[i].valid ? "valid" : "not");
    }
    CU_ASSERT_TRUE(trace_state_valid(members(32)));
    CU_ASSERT_FALSE(trace_state_valid(members(33)));
    memset(longest, 'v', sizeof longest);
    memcpy(longest, "k=", 2);
    memcpy(longest + 256, ",l=", 3);
    CU_ASSERT_TRUE(trace_state_valid((thole_slice){(const uint8_t *)longest, TRACESTATE_BYTES_MAX}));
    CU_ASSERT_FALSE(trace_state_valid((thole_slice){(const uint8_t *)longest, TRACESTATE_BYTES_MAX + 1}));
    CU_ASSERT_FALSE(trace_state_valid((thole_slice){(const uint8_t *)longest, 2 + 257}));
}

static void test_what_is_passed_on(void)
{
    struct trace const both = {THOLE_STR(PARENT), THOLE_STR(STATE)},
                       no_state = {THOLE_STR(PARENT), THOLE_STR("a")},
                       no_parent = {THOLE_STR("00-"), THOLE_STR(STATE)};
    CU_ASSERT_EQUAL(trace_valid(&both).parent.len, TRACEPARENT_BYTES);
    CU_ASSERT_EQUAL(trace_valid(&both).list.len, strlen(STATE));
    CU_ASSERT_EQUAL(trace_valid(&no_state).parent.len, TRACEPARENT_BYTES);
    CU_ASSERT_EQUAL(trace_valid(&no_state).list.len, 0);
    CU_ASSERT_EQUAL(trace_valid(&no_parent).parent.len + trace_valid(&no_parent).list.len, 0);
}

/* ---- where it is kept ---- */

static void check_trace(const char *what, thole_slice parent, thole_slice state)
{
    CHECK_STR(what, thole_slice_equal(parent, THOLE_STR(PARENT)) ? "kept" : "lost", "kept");
    CHECK_STR(what, thole_slice_equal(state, THOLE_STR(STATE)) ? "kept" : "lost", "kept");
}

static void test_messages(void)
{
    static const char *const parents[] = {PARENT, "00-nonsense"};
    for (size_t i = 0; i < ARRAY_LEN(parents); i++) {
        struct message const from = {.kind = MESSAGE_START,
                                     .instance = THOLE_STR("order"),
                                     .orchestration = THOLE_STR("checkout"),
                                     .trace = {thole_slice_from(parents[i]), THOLE_STR(STATE)}};
        struct message to;
        struct arena arena;
        struct buf bytes;
        arena_init(&arena, 100000);
        buf_init(&bytes, 100000);
        CU_ASSERT_EQUAL(message_encode(&from, &bytes), THOLE_OK);
        CU_ASSERT_EQUAL(message_decode(buf_bytes(&bytes), &arena, &to, NULL), THOLE_OK);
        if (i == 0)
            check_trace("message", to.trace.parent, to.trace.list);
        else
            CU_ASSERT_EQUAL(to.trace.parent.len + to.trace.list.len, 0);
        buf_release(&bytes);
        arena_release(&arena);
    }
}

static size_t record_bytes_of(const struct event *event, const struct trace *trace, struct arena *arena,
                              struct record *ret)
{
    struct record const from = {.kind = RECORD_TURN,
                                .epoch = 1,
                                .n = 1,
                                .turn = {.instance = THOLE_STR("order"),
                                         .execution = 1,
                                         .number = 1,
                                         .ran = true,
                                         .events = event,
                                         .events_len = 1,
                                         .trace = *trace}};
    struct buf bytes;
    buf_init(&bytes, 100000);
    CU_ASSERT_EQUAL(record_encode(&from, &bytes), THOLE_OK);
    CU_ASSERT_EQUAL(record_decode(buf_bytes(&bytes), arena, ret, NULL), THOLE_OK);
    size_t const len = buf_bytes(&bytes).len;
    buf_release(&bytes);
    return len;
}

static thole_status again(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    return thole_continue_as_new(ctx, input, 0);
}

/* A record, the instance that replays it, and what its next execution begins with. */
static void test_records_and_executions(void)
{
    struct trace const trace = {THOLE_STR(PARENT), THOLE_STR(STATE)}, none = {.parent = {NULL, 0}};
    struct event started = {
        .kind = EVENT_STARTED, .id = 1, .name = THOLE_STR("again"), .code = SEMANTICS_VERSION};
    struct record record;
    struct arena arena;
    arena_init(&arena, 1000000);
    size_t const bare = record_bytes_of(&started, &none, &arena, &record);
    started.traceparent = trace.parent;
    started.tracestate = trace.list;
    size_t const full = record_bytes_of(&started, &trace, &arena, &record);
    CU_ASSERT_EQUAL(full - bare, 2 * (2 + 2 + TRACEPARENT_BYTES + strlen(STATE)) + 1); /* a longer length */
    check_trace("Started", record.turn.events[0].traceparent, record.turn.events[0].tracestate);
    check_trace("turn", record.turn.trace.parent, record.turn.trace.list);

    struct stack_pool *const stacks = stack_pool_create(1, 2);
    struct instance_options const options = {.code = again,
                                             .id = THOLE_STR("order"),
                                             .execution = 1,
                                             .memory_max = 1 << 20,
                                             .payload_max = 1 << 16,
                                             .stacks = stacks};
    struct turn_in const in = {.time_ms = 1, .received = &started, .received_len = 1, .run = true};
    struct instance *const live = instance_create(&options), *const replayed = instance_create(&options);
    struct turn_out out;
    struct event *next = NULL;
    size_t n = 0;
    CU_ASSERT_EQUAL_FATAL(instance_turn(live, &in, &out, NULL), THOLE_OK);
    check_trace("recorded", out.events[0].traceparent, out.events[0].tracestate);
    struct turn const turn = {.instance = options.id,
                              .execution = 1,
                              .number = 1,
                              .time_ms = out.time_ms,
                              .ran = true,
                              .events = out.events,
                              .events_len = out.events_len};
    CU_ASSERT_EQUAL(instance_replay(replayed, &turn, NULL), THOLE_OK);
    CU_ASSERT_EQUAL_FATAL(instance_carry(replayed, &arena, &next, &n), THOLE_OK);
    check_trace("next execution", next[0].traceparent, next[0].tracestate);
    instance_destroy(live);
    instance_destroy(replayed);
    stack_pool_destroy(stacks);
    arena_release(&arena);
}

static const struct thole_test tests[] = {
    {"parents", test_parents},
    {"states", test_states},
    {"what_is_passed_on", test_what_is_passed_on},
    {"messages", test_messages},
    {"records_and_executions", test_records_and_executions},
};
THOLE_TEST_MAIN("trace_context", tests)
