/* State, status, side effects, randomness, log lines, versions and patches. */
#include "dropped.h"
#include "instance_state.h"
#include "play.h"
#include "thole/orchestration.h"
#include <stdlib.h>

/* ---- state ---- */

static thole_slice listed(thole_ctx *ctx)
{
    thole_slice key = {0}, value = {0}, all = THOLE_STR("");
    while (thole_state_next(ctx, key, &key, &value) == THOLE_OK)
        all = thole_format(ctx, "%.*s%.*s=%.*s ", THOLE_FMT(all), THOLE_FMT(key), THOLE_FMT(value));
    return all;
}

static thole_status sets(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice value = THOLE_STR("same");
    thole_state_set(ctx, THOLE_STR("b"), input);
    thole_state_set(ctx, THOLE_STR("ab"), THOLE_STR("2"));
    thole_state_set(ctx, THOLE_STR("a"), THOLE_STR(""));
    thole_state_set(ctx, THOLE_STR("b"), THOLE_STR("4"));
    thole_state_remove(ctx, THOLE_STR("ab"));
    thole_state_remove(ctx, THOLE_STR("none"));
    thole_status const none = thole_state_get(ctx, THOLE_STR("ab"), &value);
    thole_slice const all = listed(ctx);
    *ret_output = thole_format(ctx, "%.*s%s %.*s", THOLE_FMT(all), thole_status_name(none), THOLE_FMT(value));
    return THOLE_OK;
}

/* Values, keys that are parts of what is replaced or removed. */
static thole_status borrows(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice key, value;
    thole_state_set(ctx, THOLE_STR("a"), input);
    THOLE_TRY(thole_state_get(ctx, THOLE_STR("a"), &value));
    thole_state_set(ctx, THOLE_STR("a"), (thole_slice){value.ptr + 2, 3});
    THOLE_TRY(thole_state_get(ctx, THOLE_STR("a"), &value));
    thole_state_set(ctx, THOLE_STR("b"), value);
    THOLE_TRY(thole_state_next(ctx, (thole_slice){0}, &key, &value));
    thole_state_remove(ctx, key); /* the node may be used again, for this: */
    thole_state_set(ctx, THOLE_STR("c"), value);
    *ret_output = listed(ctx);
    return THOLE_OK;
}

static thole_status key_limits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint8_t key[65] = {0};
    thole_state_set(ctx, (thole_slice){key, 64}, input);
    thole_status const largest = thole_await_all(ctx, NULL, 0, NULL);
    thole_state_set(ctx, (thole_slice){key, 65}, input);
    thole_status const larger = thole_await_all(ctx, NULL, 0, NULL);
    thole_state_set(ctx, THOLE_STR(""), input);
    thole_status const empty = thole_await_all(ctx, NULL, 0, NULL);
    *ret_output = thole_format(ctx, "%s %s %s", thole_status_name(largest), thole_status_name(larger),
                               thole_status_name(empty));
    return THOLE_OK;
}

/* 256 bytes in all are allowed in a play. */
static thole_status size_limits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint8_t value[256] = {0};
    thole_state_set(ctx, THOLE_STR("a"), (thole_slice){value, 100});
    thole_state_set(ctx, THOLE_STR("b"), (thole_slice){value, 154}); /* with two keys: 256 */
    thole_state_set(ctx, THOLE_STR("b"), (thole_slice){value, 154});
    thole_status const full = thole_await_all(ctx, NULL, 0, NULL);
    thole_state_set(ctx, THOLE_STR("b"), (thole_slice){value, 155});
    thole_status const over = thole_await_all(ctx, NULL, 0, NULL);
    thole_state_set(ctx, THOLE_STR("c"), input);
    thole_status const another = thole_await_all(ctx, NULL, 0, NULL);
    thole_state_remove(ctx, THOLE_STR("a"));
    thole_state_set(ctx, THOLE_STR("c"), (thole_slice){value, 100});
    thole_status const again = thole_await_all(ctx, NULL, 0, NULL);
    *ret_output = thole_format(ctx, "%s %s %s %s", thole_status_name(full), thole_status_name(over),
                               thole_status_name(another), thole_status_name(again));
    return THOLE_OK;
}

static thole_status too_much_at_the_end(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint8_t value[257] = {0};
    (void)input, (void)ret_output;
    thole_state_set(ctx, THOLE_STR("a"), (thole_slice){value, sizeof value});
    return thole_continue_as_new(ctx, input, 0);
}

static void state(void)
{
    struct play play = play_of(size_limits);
    struct buf got;
    struct play_row const rows[] = {
        {"sorted, replaced, removed", sets, "Started t(1)",
         "#1 Started t(1) | #2 StateSet b(1) | #3 StateSet ab(2) | #4 StateSet a() | #5 StateSet b(4) | "
         "#6 StateSet ab() removed | #7 Completed (a= b=4 NOT_FOUND same)"},
        {"borrowed from itself", borrows, "Started t(123456)",
         "#1 Started t(123456) | #2 StateSet a(123456) | #3 StateSet a(345) | #4 StateSet b(345) | "
         "#5 StateSet a() removed | #6 StateSet c(345) | #7 Completed (b=345 c=345 )"},
        {"too much, and no await to tell it", too_much_at_the_end, "Started t()",
         "#1 Started t() | #2 Failed LIMIT (the state is larger than the payload limit)"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
    buf_init(&got, PLAY_TEXT_MAX);
    play_live(&play, "Started t(x)", &got);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&got), "Completed (OK LIMIT LIMIT OK)"));
    buf_clear(&got);
    play.code = key_limits;
    play_live(&play, "Started t(x)", &got);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&got), "Completed (OK INVALID INVALID)"));
    buf_release(&got);
    play_release(&play);
}

/* ---- the map against a plain array ---- */

enum { MODEL_KEYS = 400, MODEL_STEPS = 6000 };

static uint64_t random_step(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static thole_slice key_numbered(thole_ctx *ctx, size_t i)
{
    return thole_format(ctx, "%0*zu", (int)(i % 5) + 1, i * 7919 % 1000);
}

static int by_key(const void *a, const void *b)
{
    const thole_slice *left = a, *right = b;
    size_t const len = left->len < right->len ? left->len : right->len;
    int const order = memcmp(left->ptr, right->ptr, len);
    return order != 0 ? order : (left->len > right->len) - (left->len < right->len);
}

static thole_status model(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice *keys = thole_alloc(ctx, MODEL_KEYS * sizeof *keys), key = {0}, value = {0};
    uint64_t *values = thole_alloc(ctx, MODEL_KEYS * sizeof *values), random = 88172645463325252;
    size_t n = 0, set = 0;
    (void)input;
    for (size_t i = 0; i < MODEL_KEYS; i++)
        keys[n++] = key_numbered(ctx, i);
    qsort(keys, n, sizeof *keys, by_key);
    for (size_t i = 0; i < MODEL_STEPS; i++) {
        size_t const k = random_step(&random) % n;
        bool const twin = (k > 0 && by_key(&keys[k - 1], &keys[k]) == 0);
        if (twin)
            continue;
        values[k] = random % 3 == 0 ? 0 : random | 1; /* 0: not set */
        if (values[k] != 0)
            thole_state_set(ctx, keys[k], (thole_slice){(uint8_t *)&values[k], 1 + random % 8});
        else
            thole_state_remove(ctx, keys[k]);
    }
    for (size_t k = 0; k < n; k++) {
        if (values[k] == 0)
            continue;
        set++;
        CU_ASSERT_EQUAL(thole_state_next(ctx, key, &key, &value), THOLE_OK);
        CU_ASSERT(thole_slice_equal(key, keys[k]));
        CU_ASSERT_EQUAL(memcmp(value.ptr, &values[k], value.len), 0);
        CU_ASSERT_EQUAL(thole_state_get(ctx, keys[k], &value), THOLE_OK);
    }
    CU_ASSERT_EQUAL(thole_state_next(ctx, key, &key, &value), THOLE_NOT_FOUND);
    *ret_output = thole_format(ctx, "%s", set > MODEL_KEYS / 3 ? "many" : "few");
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL);
}

static void map_against_a_model(void)
{
    struct play play = play_of(model);
    play.memory_max = 16 << 20;
    play.payload_max = 1 << 16;
    struct buf got;
    buf_init(&got, 1 << 20);
    play_live(&play, "Started t() / EventReceived go()", &got);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&got), "Completed (many)"));
    buf_release(&got);
    play_release(&play);
}

/* Old values and dropped keys do not fill the memory. */
static thole_status overwrites(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    char value[64], key[16];
    *ret_output = input;
    for (int i = 0; i < 20000; i++) {
        int const len = snprintf(value, sizeof value, "%0*d", i % 60 + 1, i);
        thole_state_set(ctx, THOLE_STR("counter"), (thole_slice){(uint8_t *)value, (size_t)len});
        (void)snprintf(key, sizeof key, "k%d", i);
        thole_state_set(ctx, thole_slice_from(key), THOLE_STR("value"));
        thole_state_remove(ctx, thole_slice_from(key));
        thole_set_status(ctx, thole_slice_from(value));
    }
    return THOLE_OK;
}

static void memory_is_used_again(void)
{
    struct play play = play_of(overwrites);
    play.memory_max = 64 << 20;
    struct instance *instance = play_instance(&play);
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t")};
    struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT(out.ended);
    instance_trim(instance);
    CU_ASSERT(instance_memory(instance) < 64 * 1024);
    instance_destroy(instance);
    play_release(&play);
}

/* ---- custom status ---- */

static thole_status says(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_set_status(ctx, input);
    thole_set_status(ctx, thole_format(ctx, "%.*s again", THOLE_FMT(input)));
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

static thole_status says_much(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint8_t *text = thole_alloc(ctx, 2000);
    memset(text, 'x', 2000);
    memcpy(text + 1022, "\xe2\x82\xac", 3); /* begins before the end of what fits */
    thole_set_status(ctx, (thole_slice){text, 2000});
    (void)input, (void)ret_output;
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL);
}

static void custom_status(void)
{
    struct play_row const rows[] = {
        {"set twice", says, "Started t(x)",
         "#1 Started t(x) | #2 CustomStatusSet (x) | #3 CustomStatusSet (x again) | #4 EventAwaited go"},
    };
    play_check_live(rows, ARRAY_LEN(rows));
    struct play play = play_of(says_much);
    struct instance *instance = play_instance(&play);
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t")};
    struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_custom_status(instance).len, 0);
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(instance_custom_status(instance).len, 1022);
    CU_ASSERT_EQUAL(out.events[1].data.len, 1022);
    instance_destroy(instance);
    play_release(&play);
}

/* ---- side effects ---- */

struct effect {
    int calls;
    thole_status status;
    size_t len;
    enum { GIVES, SCHEDULES, AWAITS, AWAITS_FOR_EVER, NESTS, RANDOMIZES } does;
};
static struct effect effect;

static thole_status make(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    struct effect *e = arg;
    thole_slice value;
    thole_ctx *const c = ctx;
    e->calls++;
    uint8_t *bytes = thole_alloc(ctx, e->len + 1);
    memset(bytes, 'v', e->len);
    *ret_value = (thole_slice){bytes, e->len};
    switch (e->does) {
    case GIVES: break;
    case SCHEDULES: drop_task(thole_call(ctx, THOLE_STR("a"), *ret_value)); break;
    case AWAITS: play_ignore(thole_await_all(ctx, NULL, 0, NULL)); break;
    case AWAITS_FOR_EVER:
        while (thole_await_all(c, NULL, 0, NULL) != THOLE_OK)
            ;
        break;
    case NESTS: play_ignore(thole_side_effect(ctx, make, arg, &value)); break;
    case RANDOMIZES: (void)thole_random(ctx); break;
    }
    return e->status;
}

static thole_status effects(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice value = THOLE_STR("none");
    thole_status const status = thole_side_effect(ctx, make, &effect, &value);
    thole_slice const text = thole_format(ctx, "%s %zu %.*s", thole_status_name(status), value.len,
                                          (int)(value.len < 8 ? value.len : 8), (const char *)value.ptr);
    (void)input, (void)ret_output;
    return thole_await(ctx, thole_call(ctx, THOLE_STR("next"), text), NULL);
}

struct effect_row {
    const char *name;
    struct effect effect;
    const char *expected;
};
static void side_effects(void)
{
    static const char refused[] =
        "#1 Started t() | #2 SideEffectRecorded () [code=2] | #3 ActivityScheduled next(INVALID 4 none)";
    struct effect_row const rows[] = {
        {"a value",
         {.len = 3},
         "#1 Started t() | #2 SideEffectRecorded (vvv) | #3 ActivityScheduled next(OK 3 vvv)"},
        {"an empty one",
         {.len = 0},
         "#1 Started t() | #2 SideEffectRecorded () | #3 ActivityScheduled next(OK 0 )"},
        {"a failure is recorded",
         {.len = 3, .status = THOLE_NOT_FOUND},
         "#1 Started t() | #2 SideEffectRecorded () [code=10] | #3 ActivityScheduled next(NOT_FOUND 4 none)"},
        {"the largest",
         {.len = 256},
         "#1 Started t() | #2 SideEffectRecorded "
         "(vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv...)"
         " | #3 ActivityScheduled next(OK 256 vvvvvvvv)"},
        {"larger",
         {.len = 257},
         "#1 Started t() | #2 SideEffectRecorded () [code=3] | #3 ActivityScheduled next(LIMIT 4 none)"},
        {"schedules", {.does = SCHEDULES}, refused},
        {"awaits", {.does = AWAITS}, refused},
        {"has one of its own", {.does = NESTS}, refused},
        {"takes a random number", {.does = RANDOMIZES}, refused},
        {"awaits for ever", {.does = AWAITS_FOR_EVER}, "INVALID: a side effect awaits for ever"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct play_row const row = {rows[i].name, effects, "Started t()", rows[i].expected};
        effect = rows[i].effect;
        play_check_live(&row, 1);
    }
}

static void a_replay_does_not_call(void)
{
    effect = (struct effect){.len = 9};
    struct play_row const rows[] = {
        {"what is recorded counts", effects,
         "#1 Started t() | #2 SideEffectRecorded (old) | #3 ActivityScheduled next(OK 3 old)", "ok"},
        {"also that it failed", effects,
         "#1 Started t() | #2 SideEffectRecorded () [code=7] | #3 ActivityScheduled next(APP 4 none)", "ok"},
        {"there was none", effects, "#1 Started t() | #2 ActivityScheduled next(OK 3 old)",
         "NONDETERMINISM: event 2: history has ActivityScheduled 'next', the code asked for "
         "SideEffectRecorded"},
        {"the turn ended before it", effects, "#1 Started t()",
         "NONDETERMINISM: event 2: history ends the turn, the code asked for SideEffectRecorded"},
        {"there is one more", says, "#1 Started t(x) | #2 SideEffectRecorded (old)",
         "NONDETERMINISM: event 2: history has SideEffectRecorded, the code asked for CustomStatusSet"},
    };
    play_check_replay(rows, ARRAY_LEN(rows));
    CU_ASSERT_EQUAL(effect.calls, 0);
}

/* ---- randomness ---- */

static thole_status rolls(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint64_t const a = thole_random(ctx);
    thole_slice const uuid = thole_uuid(ctx);
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL));
    (void)input;
    *ret_output = thole_format(ctx, "%llx %.*s %llx", (unsigned long long)a, THOLE_FMT(uuid),
                               (unsigned long long)thole_random(ctx));
    return THOLE_OK;
}

static void rolled(const char *id, uint64_t time_ms, uint64_t execution, char to[128])
{
    struct play play = play_of(rolls);
    struct instance_options const options = {.code = rolls,
                                             .id = thole_slice_from(id),
                                             .execution = execution,
                                             .memory_max = 1 << 20,
                                             .payload_max = 256,
                                             .stacks = play.stacks};
    struct event const events[] = {{.kind = EVENT_STARTED, .name = THOLE_STR("t")},
                                   {.kind = EVENT_EVENT_RECEIVED, .name = THOLE_STR("go")}};
    struct turn_in const in = {.time_ms = time_ms, .received = events, .received_len = 2, .run = true};
    struct turn_out out;
    struct instance *const instance = instance_create(&options);
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    (void)snprintf(to, 128, "%.*s", THOLE_FMT(out.events[out.events_len - 1].data));
    instance_destroy(instance);
    play_release(&play);
}

static void randomness(void)
{
    char base[128], again[128], other[128];
    struct play_row const row = {"the same in a replay", rolls, "@5 Started t() / EventReceived go()",
                                 "#1 Started t() | #2 EventAwaited go / #3 EventReceived go() | "
                                 "#4 Completed (682152d8ad989493 5d02b640-970c-45fd-a5a7-09e5edd3302f "
                                 "dea5ac5222...)"};
    rolled("order-1", 5, 1, base);
    rolled("order-1", 5, 1, again);
    CU_ASSERT_STRING_EQUAL(base, again);
    play_check_live(&row, 1);
    rolled("order-2", 5, 1, other);
    CU_ASSERT_STRING_NOT_EQUAL(base, other);
    rolled("order-1", 6, 1, other);
    CU_ASSERT_STRING_NOT_EQUAL(base, other);
    rolled("order-1", 5, 2, other);
    CU_ASSERT_STRING_NOT_EQUAL(base, other);
    const char *uuid = strchr(base, ' ') + 1;
    CU_ASSERT_EQUAL(strcspn(uuid, " "), 36);
    CU_ASSERT(uuid[8] == '-' && uuid[13] == '-' && uuid[18] == '-' && uuid[23] == '-');
    CU_ASSERT_EQUAL(uuid[14], '4');
    CU_ASSERT_PTR_NOT_NULL(strchr("89ab", uuid[19]));
}

/* ---- the log ---- */

static thole_status logs(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_log(ctx, THOLE_LOG_WARN, "first %d", 1);
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output));
    for (int i = 0; i < 100000; i++)
        thole_log(ctx, THOLE_LOG_DEBUG, "line %d of %.*s", i, THOLE_FMT(input));
    thole_log(ctx, THOLE_LOG_INFO, "%01000d", 7);
    return THOLE_OK;
}

static void log_lines(void)
{
    struct play play = play_of(logs);
    struct instance *live = play_instance(&play), *replayed = play_instance(&play);
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t"), .data = THOLE_STR("x")};
    struct event const go = {.kind = EVENT_EVENT_RECEIVED, .name = THOLE_STR("go")};
    struct turn_in in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_turn(live, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(out.logs_len, 1);
    CU_ASSERT_EQUAL(out.logs[0].level, THOLE_LOG_WARN);
    CU_ASSERT(thole_slice_equal(out.logs[0].text, THOLE_STR("first 1")));
    struct turn const turn = {.instance = THOLE_STR("order-1"),
                              .execution = 1,
                              .number = 1,
                              .ran = true,
                              .events = out.events,
                              .events_len = out.events_len};
    CU_ASSERT_EQUAL(instance_replay(replayed, &turn, NULL), THOLE_OK); /* silent: nowhere to be seen */
    in.received = &go;
    CU_ASSERT_EQUAL(instance_turn(replayed, &in, &out, NULL), THOLE_OK);
    CU_ASSERT(out.logs_len > 1000 && out.logs_len < 10000); /* lines beyond the limit are lost, no reason
                                                               to fail */
    CU_ASSERT(thole_slice_equal(out.logs[1].text, THOLE_STR("line 1 of x")));
    CU_ASSERT(out.ended);
    instance_destroy(live);
    instance_destroy(replayed);
    play_release(&play);
}

static thole_status emits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    thole_emit(ctx, THOLE_STR("order shipped"), THOLE_STR(""));
    return THOLE_OK;
}

/* The failure's text is the same in each history; which type it was is in the log. */
static void refused_type(void)
{
    struct play play = play_of(emits);
    struct instance *live = play_instance(&play);
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t"), .data = THOLE_STR("x")};
    struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_turn(live, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_EQUAL_FATAL(out.logs_len, 1);
    CU_ASSERT_EQUAL(out.logs[0].level, THOLE_LOG_WARN);
    CU_ASSERT(thole_slice_equal(
        out.logs[0].text, THOLE_STR("thole_emit: the type 'order shipped' is refused: event type has byte "
                                    "0x20, allowed is [A-Za-z0-9_.-]")));
    CU_ASSERT(out.ended);
    instance_destroy(live);
    play_release(&play);
}

static thole_status calls_without_size(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const forgotten = {.queue = THOLE_STR("gpu")};
    thole_call_options const wrong = {.size = sizeof wrong, .retry = {.tries_max = 2, .factor = -1}};
    thole_child_options const child = {.version = 2};
    (void)ret_output;
    (void)thole_call_with(ctx, THOLE_STR("charge"), input, &wrong).id;
    (void)thole_child(ctx, THOLE_STR("ship"), input, &child).id;
    return thole_await(ctx, thole_call_with(ctx, THOLE_STR("charge"), input, &forgotten), NULL);
}

/* Which option it is, and of which call, is in the log: the failure's text is the same in each history. */
static void refused_options(void)
{
    static const char *const want[] = {
        "the options of a call of activity 'charge' are refused: retry.factor is not between 0 and 1,000",
        "the options of a child 'ship' are refused: thole_child_options.size is not set",
        "the options of a call of activity 'charge' are refused: thole_call_options.size is not set"};
    struct play play = play_of(calls_without_size);
    struct instance *live = play_instance(&play);
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t"), .data = THOLE_STR("x")};
    struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_turn(live, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_EQUAL_FATAL(out.logs_len, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        char got[512];
        (void)snprintf(got, sizeof got, "%.*s", THOLE_FMT(out.logs[i].text));
        CHECK_STR("line", got, want[i]);
    }
    CU_ASSERT(out.ended);
    instance_destroy(live);
    play_release(&play);
}

/* As long as there is room for in a line: what is longer is cut. */
static thole_status logs_long(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    for (int n = 510; n <= 513; n++)
        thole_log(ctx, THOLE_LOG_INFO, "%0*d", n, 1);
    return THOLE_OK;
}

static void long_lines(void)
{
    static const size_t want[] = {510, 511, 511, 511};
    struct play play = play_of(logs_long);
    struct instance *live = play_instance(&play);
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("t")};
    struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out;
    CU_ASSERT_EQUAL(instance_turn(live, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_EQUAL_FATAL(out.logs_len, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        CU_ASSERT_EQUAL(out.logs[i].text.len, want[i]);
        CU_ASSERT_EQUAL(out.logs[i].text.ptr[want[i] - 1], i < 2 ? '1' : '0');
    }
    instance_destroy(live);
    play_release(&play);
}

/* ---- versions ---- */

static thole_status version(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = thole_format(ctx, "%u", thole_version_id(ctx));
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL);
}

static void versions(void)
{
    struct row {
        const char *name;
        uint32_t code;
        const char *script, *expected;
    } const rows[] = {
        {"of the code", 3, "Started t() / EventReceived go()",
         "#1 Started t@3() | #2 EventAwaited go / #3 EventReceived go() | #4 Completed (3)"},
        {"asked for", 3, "Started t@3() / EventReceived go()",
         "#1 Started t@3() | #2 EventAwaited go / #3 EventReceived go() | #4 Completed (3)"},
        {"another one", 3, "Started t@2()", "INVALID: the execution runs version 2, the code has version 3"},
        {"nobody has one", 0, "Started t() / EventReceived go()",
         "#1 Started t() | #2 EventAwaited go / #3 EventReceived go() | #4 Completed (0)"},
        {"a paused one has chosen already", 3,
         "Started t() | Paused () / - / Resumed () | EventReceived go()",
         "~#1 Started t@3() | #2 Paused () / ~- / #3 Resumed () | #4 EventReceived go() | #5 EventAwaited go "
         "| "
         "#6 Completed (3)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct play play = play_of(version);
        struct buf got;
        play.version = rows[i].code;
        buf_init(&got, PLAY_TEXT_MAX);
        play_live(&play, rows[i].script, &got);
        CHECK_STR(rows[i].name, buf_cstr(&got), rows[i].expected);
        buf_release(&got);
        play_release(&play);
    }
}

/* Begins without code, goes on with it: the first turn that may run chooses. */
static void chosen(const char *name, const char *history, const char *received, const char *expected)
{
    struct play play = play_of(version);
    struct play_turns turns, in_turns;
    struct buf got;
    play.version = 7;
    struct instance *instance = play_instance(&play), *facts = play_codeless(&play);
    play_parse(history, &turns);
    play_parse(received, &in_turns);
    buf_init(&got, PLAY_TEXT_MAX);
    for (size_t i = 0; i < turns.len; i++)
        CU_ASSERT_EQUAL(instance_replay(instance, &turns.turns[i], NULL), THOLE_OK);
    struct turn_in const in = {.received = in_turns.turns[0].events,
                               .received_len = in_turns.turns[0].events_len,
                               .run = in_turns.turns[0].ran};
    struct turn_out out = {0};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    for (size_t i = 0; i < out.events_len; i++) {
        buf_text(&got, i == 0 ? "" : " | ");
        play_render(&out.events[i], &got);
    }
    CHECK_STR(name, buf_cstr(&got), expected);
    struct turn const turn = {.instance = THOLE_STR("order-1"),
                              .execution = 1,
                              .number = out.number,
                              .ran = out.ran,
                              .events = out.events,
                              .events_len = out.events_len};
    for (size_t i = 0; i < turns.len; i++)
        CU_ASSERT_EQUAL(instance_replay(facts, &turns.turns[i], NULL), THOLE_OK);
    CU_ASSERT_EQUAL(instance_replay(facts, &turn, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(instance_version(facts), instance_version(instance));
    buf_release(&got);
    play_turns_release(&turns);
    play_turns_release(&in_turns);
    instance_destroy(instance);
    instance_destroy(facts);
    play_release(&play);
}

static void version_chosen_later(void)
{
    chosen("when it runs", "~#1 Started t()", "EventReceived go()",
           "#2 VersionChosen @7 | #3 EventReceived go() | #4 EventAwaited go | #5 Completed (7)");
    chosen("not when it does not", "~#1 Started t()", "~EventReceived go()", "#2 EventReceived go()");
    chosen("not while it is paused", "~#1 Started t() | #2 Paused ()", "EventReceived go()",
           "#3 EventReceived go()");
    chosen("when it is resumed", "~#1 Started t() | #2 Paused ()", "Resumed ()",
           "#3 VersionChosen @7 | #4 Resumed () | #5 EventAwaited go");
    chosen("when a request to cancel resumes it", "~#1 Started t() | #2 Paused ()", "CancelRequested ()",
           "#3 VersionChosen @7 | #4 CancelRequested () | #5 EventAwaited go | #6 EventAwaitCancelled #5 "
           "requested "
           "() | #7 Cancelled ()");
    chosen("not to be terminated", "~#1 Started t() | #2 Paused ()", "TerminateRequested ()",
           "#3 TerminateRequested () | #4 Terminated ()");
    chosen("once", "~#1 Started t() | #2 VersionChosen @7", "EventReceived go()",
           "#3 EventReceived go() | #4 EventAwaited go | #5 Completed (7)");
}

/* ---- patches ---- */

static thole_status patched(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    bool const a = thole_patch(ctx, THOLE_STR("a"));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, a ? THOLE_STR("new") : THOLE_STR("old"), input), NULL));
    bool const b = thole_patch(ctx, THOLE_STR("b")), a_again = thole_patch(ctx, THOLE_STR("a"));
    bool const wrong = thole_patch(ctx, THOLE_STR("a b"));
    *ret_output = thole_format(ctx, "%d%d%d%d", a, b, a_again, wrong);
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL);
}

static thole_status unpatched(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("old"), input), NULL));
    (void)ret_output;
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL);
}

/* The call for a is gone: nobody is left that answers false. */
static thole_status patch_retired(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("new"), input), NULL));
    *ret_output = thole_format(ctx, "%d", thole_patch(ctx, THOLE_STR("b")));
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL);
}

#define NEW                                                                                                  \
    "#1 Started t(x) | #2 Patched a | #3 ActivityScheduled new(x) / #4 ActivityCompleted #3 () | #5 "        \
    "Patched b | "                                                                                           \
    "#6 EventAwaited go"
#define OLD "#1 Started t(x) | #2 ActivityScheduled old(x)"
static void patches(void)
{
    struct play_row const live[] = {
        {"a new execution", patched, "Started t(x) / ActivityCompleted #3 () / EventReceived go()",
         NEW " / #7 EventReceived go() | #8 Completed (1110)"},
    };
    struct play_row const replayed[] = {
        {"recorded", patched, NEW " / #7 EventReceived go() | #8 Completed (1110)", "ok, ended"},
        {"through the old code, not yet at b", patched, OLD, "ok"},
        {"through the old code, past b", patched,
         OLD
         " / #3 ActivityCompleted #2 () | #4 EventAwaited go / #5 EventReceived go() | #6 Completed (0000)",
         "ok, ended"},
        {"through the old code, then b", patched,
         OLD " / #3 ActivityCompleted #2 () | #4 Patched b | #5 EventAwaited go / #6 EventReceived go() | "
             "#7 Completed (0100)",
         "ok, ended"},
        {"the new code's history in the old code", unpatched, NEW,
         "NONDETERMINISM: event 3: history has ActivityScheduled 'new', the code asked for ActivityScheduled "
         "'old'"},
        {"the call is gone", patch_retired, NEW " / #7 EventReceived go() | #8 Completed (1)", "ok, ended"},
        {"all calls are gone, one at a turn's end", unpatched,
         OLD " / #3 ActivityCompleted #2 () | #4 EventAwaited go | #5 Patched z", "ok"},
    };
    play_check_live(live, ARRAY_LEN(live));
    play_check_replay(replayed, ARRAY_LEN(replayed));
}

/* Executions begun by the old code go on live: false for ever, true for later ones. */
static void patch_after_a_replay(void)
{
    struct play play = play_of(patched);
    struct play_turns turns;
    struct buf got;
    struct instance *instance = play_instance(&play);
    struct event const done = {.kind = EVENT_ACTIVITY_COMPLETED, .ref = 2};
    struct turn_in const in = {.received = &done, .received_len = 1, .run = true};
    struct turn_out out = {0};
    play_parse(OLD, &turns);
    buf_init(&got, PLAY_TEXT_MAX);
    CU_ASSERT_EQUAL(instance_replay(instance, &turns.turns[0], NULL), THOLE_OK);
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    play_render(&out.events[1], &got);
    CHECK_STR("b is new", buf_cstr(&got), "#4 Patched b");
    buf_release(&got);
    play_turns_release(&turns);
    instance_destroy(instance);
    play_release(&play);
}

static const struct thole_test tests[] = {
    {"state", state},
    {"map against a model", map_against_a_model},
    {"memory is used again", memory_is_used_again},
    {"custom status", custom_status},
    {"side effects", side_effects},
    {"a replay does not call", a_replay_does_not_call},
    {"randomness", randomness},
    {"log lines", log_lines},
    {"a refused type", refused_type},
    {"refused options", refused_options},
    {"versions", versions},
    {"version chosen later", version_chosen_later},
    {"patches", patches},
    {"patch after a replay", patch_after_a_replay},
    {"long lines", long_lines},
};
THOLE_TEST_MAIN("instance_values", tests)
