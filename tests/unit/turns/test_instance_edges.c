/* Every limit of what orchestration code may ask for: the largest that is allowed, and one more. */
#include "play.h"
#include "thole/orchestration.h"
#include <string.h>

enum { PAYLOAD = 256, FINALS = 64, EDGE_BYTES_MAX = 1024 };
#define HUNDRED_YEARS_MS (UINT64_C(36525) * 24 * 3600 * 1000)

/* A request with @p n bytes, milliseconds or other units that have a limit. */
struct edge {
    const char *name;
    thole_status (*ask)(thole_ctx *ctx, uint64_t n);
    uint64_t most;
    const char *over; /* how the execution ends with one more */
};
static const struct edge *edge_now;
static uint64_t edge_n;
static uint8_t letters[EDGE_BYTES_MAX];

static thole_slice bytes(uint64_t n)
{
    memset(letters, 'a', sizeof letters);
    return (thole_slice){letters, (size_t)n};
}

/* A mistake in what cannot fail is told by the next await. */
static thole_status told(thole_ctx *ctx)
{
    return thole_await_all(ctx, NULL, 0, NULL);
}

#define A_NAME THOLE_STR("a")

/* ---- activities ---- */

static thole_status activity_name(thole_ctx *ctx, uint64_t n)
{
    return thole_await(ctx, thole_call(ctx, bytes(n), A_NAME), NULL);
}

static thole_status activity_input(thole_ctx *ctx, uint64_t n)
{
    return thole_await(ctx, thole_call(ctx, A_NAME, bytes(n)), NULL);
}

static thole_status call(thole_ctx *ctx, thole_call_options options)
{
    options.size = sizeof options;
    return thole_await(ctx, thole_call_with(ctx, A_NAME, A_NAME, &options), NULL);
}

static thole_status queue(thole_ctx *ctx, uint64_t n)
{
    return call(ctx, (thole_call_options){.queue = bytes(n)});
}

static thole_status try_timeout(thole_ctx *ctx, uint64_t n)
{
    return call(ctx, (thole_call_options){.try_timeout_ms = n});
}

static thole_status total_timeout(thole_ctx *ctx, uint64_t n)
{
    return call(ctx, (thole_call_options){.total_timeout_ms = n});
}

static thole_status tries(thole_ctx *ctx, uint64_t n)
{
    return call(ctx, (thole_call_options){.retry = {.tries_max = (uint32_t)n}});
}

static thole_status first_delay(thole_ctx *ctx, uint64_t n)
{
    return call(ctx, (thole_call_options){.retry = {.tries_max = 2, .first_delay_ms = n}});
}

static thole_status max_delay(thole_ctx *ctx, uint64_t n)
{
    return call(ctx, (thole_call_options){.retry = {.tries_max = 2, .max_delay_ms = n}});
}

static thole_status factor(thole_ctx *ctx, uint64_t n)
{
    return call(ctx, (thole_call_options){.retry = {.tries_max = 2, .factor = (double)n}});
}

static thole_status jitter(thole_ctx *ctx, uint64_t n)
{
    return call(ctx, (thole_call_options){.retry = {.tries_max = 2, .jitter = (double)n}});
}

static thole_status finals(thole_ctx *ctx, uint64_t n)
{
    thole_slice types[FINALS + 1];
    for (size_t i = 0; i < FINALS + 1; i++)
        types[i] = A_NAME;
    return call(ctx, (thole_call_options){
                         .retry = {.tries_max = 2, .final_types = types, .final_types_len = (size_t)n}});
}

static thole_status final_name(thole_ctx *ctx, uint64_t n)
{
    thole_slice const type = bytes(n);
    return call(ctx,
                (thole_call_options){.retry = {.tries_max = 2, .final_types = &type, .final_types_len = 1}});
}

static thole_status poison(thole_ctx *ctx, uint64_t n)
{
    return call(ctx, (thole_call_options){.poison = (thole_poison)n});
}

/* ---- timers, events, children ---- */

static thole_status timer(thole_ctx *ctx, uint64_t n)
{
    return thole_await(ctx, thole_timer(ctx, n), NULL);
}

static thole_status event_name(thole_ctx *ctx, uint64_t n)
{
    return thole_await(ctx, thole_event(ctx, bytes(n)), NULL);
}

static thole_status raised_id(thole_ctx *ctx, uint64_t n)
{
    thole_raise(ctx, bytes(n), A_NAME, A_NAME);
    return told(ctx);
}

static thole_status raised_name(thole_ctx *ctx, uint64_t n)
{
    thole_raise(ctx, A_NAME, bytes(n), A_NAME);
    return told(ctx);
}

static thole_status raised_data(thole_ctx *ctx, uint64_t n)
{
    thole_raise(ctx, A_NAME, A_NAME, bytes(n));
    return told(ctx);
}

static thole_status emitted_type(thole_ctx *ctx, uint64_t n)
{
    thole_emit(ctx, bytes(n), A_NAME);
    return told(ctx);
}

static thole_status emitted_data(thole_ctx *ctx, uint64_t n)
{
    thole_emit(ctx, A_NAME, bytes(n));
    return told(ctx);
}

static thole_status child_name(thole_ctx *ctx, uint64_t n)
{
    return thole_await(ctx, thole_child(ctx, bytes(n), A_NAME, NULL), NULL);
}

static thole_status child_input(thole_ctx *ctx, uint64_t n)
{
    return thole_await(ctx, thole_child(ctx, A_NAME, bytes(n), NULL), NULL);
}

static thole_status child_id(thole_ctx *ctx, uint64_t n)
{
    thole_child_options const options = {.size = sizeof options, .instance = bytes(n)};
    return thole_await(ctx, thole_child(ctx, A_NAME, A_NAME, &options), NULL);
}

static thole_status child_close(thole_ctx *ctx, uint64_t n)
{
    thole_child_options const options = {.size = sizeof options, .close = (thole_close)n};
    return thole_await(ctx, thole_child(ctx, A_NAME, A_NAME, &options), NULL);
}

static thole_status child_version(thole_ctx *ctx, uint64_t n)
{
    thole_child_options const options = {.size = sizeof options, .version = (uint32_t)n};
    return thole_await(ctx, thole_child(ctx, A_NAME, A_NAME, &options), NULL);
}

static thole_status started_version(thole_ctx *ctx, uint64_t n)
{
    thole_child_options const options = {.size = sizeof options, .version = (uint32_t)n};
    thole_start(ctx, A_NAME, A_NAME, &options);
    return told(ctx);
}

static thole_status next_version(thole_ctx *ctx, uint64_t n)
{
    return thole_continue_as_new(ctx, A_NAME, (uint32_t)n);
}

static thole_status started_input(thole_ctx *ctx, uint64_t n)
{
    thole_start(ctx, A_NAME, bytes(n), NULL);
    return told(ctx);
}

/* An older caller's struct may have nothing but its size; less is not even that. */
static thole_status call_size(thole_ctx *ctx, uint64_t less)
{
    thole_call_options const options = {.size = sizeof(size_t) - less};
    return thole_await(ctx, thole_call_with(ctx, A_NAME, A_NAME, &options), NULL);
}

static thole_status child_size(thole_ctx *ctx, uint64_t less)
{
    thole_child_options const options = {.size = sizeof(size_t) - less};
    return thole_await(ctx, thole_child(ctx, A_NAME, A_NAME, &options), NULL);
}

/* ---- values ---- */

static thole_status state_key(thole_ctx *ctx, uint64_t n)
{
    thole_state_set(ctx, bytes(n), A_NAME);
    return told(ctx);
}

static thole_status state_value(thole_ctx *ctx, uint64_t n)
{
    thole_state_set(ctx, A_NAME, bytes(n));
    return told(ctx);
}

static thole_status make(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    (void)ctx;
    *ret_value = bytes(*(const uint64_t *)arg);
    return THOLE_OK;
}

static thole_status side_effect(thole_ctx *ctx, uint64_t n)
{
    thole_slice value;
    return thole_side_effect(ctx, make, &n, &value);
}

static thole_status next_input(thole_ctx *ctx, uint64_t n)
{
    return thole_continue_as_new(ctx, bytes(n), 0);
}

static thole_status patch_name(thole_ctx *ctx, uint64_t n)
{
    return thole_patch(ctx, bytes(n)) ? THOLE_OK : THOLE_INVALID;
}

static thole_status asks(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    return edge_now->ask(ctx, edge_n);
}

static void check(const struct edge *edge, uint64_t n, bool over)
{
    struct play play = play_of(asks);
    struct buf got;
    buf_init(&got, PLAY_TEXT_MAX);
    edge_now = edge;
    edge_n = n;
    play_live(&play, "Started t(x)", &got);
    bool const failed = strstr(buf_cstr(&got), "Failed") != NULL;
    if (failed != over || (over && strstr(buf_cstr(&got), edge->over) == NULL)) {
        printf("  [%s, %llu]\n    got  %s\n", edge->name, (unsigned long long)n, buf_cstr(&got));
        CU_FAIL("the edge is elsewhere");
    }
    buf_release(&got);
    play_release(&play);
}

#define OPTIONS "Failed INVALID (an activity's options are out of range)"
static const struct edge edges[] = {
    {"activity name", activity_name, 64, "Failed INVALID (an activity's name"},
    {"activity input", activity_input, PAYLOAD, "Failed LIMIT (an activity's input"},
    {"queue", queue, 64, "Failed INVALID (a queue's name"},
    {"try timeout", try_timeout, HUNDRED_YEARS_MS, OPTIONS},
    {"total timeout", total_timeout, HUNDRED_YEARS_MS, OPTIONS},
    {"tries", tries, 10000, OPTIONS},
    {"first delay", first_delay, HUNDRED_YEARS_MS, OPTIONS},
    {"max delay", max_delay, HUNDRED_YEARS_MS, OPTIONS},
    {"factor", factor, 1000, OPTIONS},
    {"jitter", jitter, 1, OPTIONS},
    {"final types", finals, FINALS, OPTIONS},
    {"name of a final type", final_name, 64, OPTIONS},
    {"poison", poison, THOLE_POISON_RETRY, OPTIONS},
    {"timer", timer, HUNDRED_YEARS_MS, "Failed INVALID (a timer is longer than 100 years)"},
    {"event name", event_name, 64, "Failed INVALID (an event's name"},
    {"id of a raised event", raised_id, 200, "Failed INVALID (the instance id of a raised event"},
    {"name of a raised event", raised_name, 64, "Failed INVALID (a raised event's name"},
    {"type of an emitted event", emitted_type, 128, "Failed INVALID (an emitted event's type"},
    {"data of an emitted event", emitted_data, PAYLOAD, "Failed LIMIT (an emitted event's data"},
    {"data of a raised event", raised_data, PAYLOAD, "Failed LIMIT (a raised event's data"},
    {"child name", child_name, 64, "Failed INVALID (a child orchestration's name"},
    {"child input", child_input, PAYLOAD, "Failed LIMIT (a child's input"},
    {"child id", child_id, 200, "Failed INVALID (a child's instance id"},
    {"child close", child_close, THOLE_CLOSE_TERMINATE, "Failed INVALID (a child's options"},
    {"child version", child_version, INT32_MAX, "Failed INVALID (a child's options"},
    {"version of a start", started_version, INT32_MAX, "Failed INVALID (a child's options"},
    {"version of the next execution", next_version, INT32_MAX, "Failed INVALID"},
    {"input of a start", started_input, PAYLOAD, "Failed LIMIT (a child's input"},
    {"state key", state_key, 64, "Failed INVALID (a key of the state"},
    {"state value", state_value, PAYLOAD - 1, "Failed LIMIT (the state is larger"},
    {"side effect", side_effect, PAYLOAD, "Failed LIMIT"},
    {"next input", next_input, PAYLOAD, "Failed LIMIT"},
    {"patch name", patch_name, 64, "Failed INVALID"},
    {"size of a call's options", call_size, 0, OPTIONS},
    {"size of a child's options", child_size, 0, "Failed INVALID (a child's options"},
};

static void one_more_is_refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        check(&edges[i], edges[i].most, false);
        check(&edges[i], edges[i].most + 1, true);
    }
}

/* ---- results, and state taken along ---- */

static thole_status gives(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)input;
    *ret_output = bytes(edge_n);
    return THOLE_OK;
}

static void output(void)
{
    struct play play = play_of(gives);
    for (edge_n = PAYLOAD; edge_n <= PAYLOAD + 1; edge_n++) {
        struct buf got;
        buf_init(&got, PLAY_TEXT_MAX);
        play_live(&play, "Started t(x)", &got);
        CU_ASSERT_EQUAL(strstr(buf_cstr(&got), "Failed LIMIT (the output has 257") != NULL, edge_n > PAYLOAD);
        buf_release(&got);
    }
    play_release(&play);
}

/* The successor reads what the predecessor could write. */
static void carried_key(void)
{
    struct play play = play_of(gives);
    edge_n = 1;
    for (int n = 64; n <= 65; n++) {
        char history[256];
        struct buf got;
        (void)snprintf(history, sizeof history,
                       "#1 Started t(x) | #2 StateCarried %0*d(v) | #3 Completed (a)", n, 0);
        buf_init(&got, PLAY_TEXT_MAX);
        play_replay(&play, history, &got);
        CU_ASSERT_STRING_EQUAL(buf_cstr(&got),
                               n == 64 ? "ok, ended"
                                       : "CORRUPT: event 2: StateCarried with a key that is too long");
        buf_release(&got);
    }
    play_release(&play);
}

static const struct thole_test tests[] = {
    {"one more is refused", one_more_is_refused},
    {"output", output},
    {"carried key", carried_key},
};
THOLE_TEST_MAIN("instance_edges", tests)
