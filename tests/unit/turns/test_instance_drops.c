/* Resources released when an instance is dropped: a stack of the size that its entry says, and the memory
 * registered with thole_on_drop(). */
#include "play.h"

/* ---- a large stack ---- */

enum { LARGE_STACK = 1024 * 1024, LARGE_LOCAL = 400 * 1024 };

static thole_status large(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    volatile char local[LARGE_LOCAL];
    for (size_t i = 0; i < sizeof local; i += 1024) /* compilers leave a memset() out */
        local[i] = 1;
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("a"), input), ret_output));
    return local[LARGE_LOCAL / 2] == 1 ? THOLE_OK : THOLE_APP;
}

static void start_of(struct instance *instance)
{
    struct event const start = {.kind = EVENT_STARTED, .name = THOLE_STR("shop")};
    struct turn_in const in = {.time_ms = 5, .received = &start, .received_len = 1, .run = true};
    struct turn_out out = {0};
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
}

/* A parked instance is weighed with the memory that its stack takes, as that decides how many are parked. */
static void a_large_stack_is_weighed(void)
{
    struct play play = play_of(large);
    thole_orchestration_entry const entry = {.name = "shop", .run = large, .stack_bytes = LARGE_STACK};
    struct instance_options options = {.id = THOLE_STR("i-1"),
                                       .execution = 1,
                                       .memory_max = 1 << 20,
                                       .payload_max = 256,
                                       .stacks = play.stacks};
    instance_options_code(&options, &entry);
    CU_ASSERT(options.code == large && options.version == 1 && options.stack_bytes == LARGE_STACK);
    struct instance *const instance = instance_create(&options);
    size_t const before = instance_memory(instance);
    start_of(instance);
    CU_ASSERT(instance_memory(instance) >= before + LARGE_STACK);
    CU_ASSERT(instance_parked_memory(instance) >= before + LARGE_LOCAL);
    CU_ASSERT(instance_parked_memory(instance) < before + LARGE_LOCAL + 128 * 1024);
    instance_destroy(instance);
    CU_ASSERT_EQUAL(stack_pool_in_use(play.stacks), 0);
    play_release(&play);
}

/* ---- calls at a drop ---- */

static char drops[64];
static size_t drops_len;

static void note_drop(void *arg)
{
    drops[drops_len++] = *(const char *)arg;
    drops[drops_len] = '\0';
}

static thole_status makes(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    (void)ret_value;
    CU_ASSERT_EQUAL(thole_on_drop(ctx, note_drop, arg), THOLE_INVALID);
    return THOLE_OK;
}

static thole_status asks(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    CU_ASSERT_EQUAL(thole_on_drop(ctx, note_drop, arg), THOLE_INVALID);
    return THOLE_OK;
}

/* "a" before the first await, "b" and "c" after it; not in a side effect, and in memory that lives as long.
 */
static thole_status drops_some(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    char *const letters = thole_alloc(ctx, 3);
    thole_slice value;
    memcpy(letters, "abc", 3);
    CU_ASSERT_EQUAL(thole_on_drop(ctx, NULL, letters), THOLE_INVALID);
    CU_ASSERT_EQUAL(thole_on_drop(ctx, note_drop, &letters[0]), THOLE_OK);
    play_ignore(thole_side_effect(ctx, makes, letters, &value)); /* INVALID, as it was tried */
    thole_on_query(ctx, THOLE_STR("asks"), asks, letters);
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("a"), input), ret_output));
    CU_ASSERT_EQUAL(thole_on_drop(ctx, note_drop, &letters[1]), THOLE_OK);
    CU_ASSERT_EQUAL(thole_on_drop(ctx, note_drop, &letters[2]), THOLE_OK);
    while (input.len > 0 && thole_alloc(ctx, 1000) != NULL)
        ; /* until there is no memory */
    if (input.len > 0)
        while (thole_on_drop(ctx, note_drop, letters) == THOLE_OK)
            CU_ASSERT_FATAL(drops_len++ < 50); /* a few may fit into the last block */
    return THOLE_OK;
}

static struct instance *drops_started(const struct play *play, const char *input)
{
    struct instance *const instance = play_instance(play);
    struct event const start = {
        .kind = EVENT_STARTED, .name = THOLE_STR("shop"), .data = thole_slice_from(input)};
    struct turn_in const in = {.received = &start, .received_len = 1, .run = true};
    struct turn_out out = {0};
    drops_len = 0;
    drops[0] = '\0';
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    CU_ASSERT_STRING_EQUAL(drops, "");
    return instance;
}

static void what_is_dropped_is_told(void)
{
    struct play play = play_of(drops_some);
    struct event const done = {.kind = EVENT_ACTIVITY_COMPLETED, .ref = 3},
                       end = {.kind = EVENT_TERMINATE_REQUESTED};
    struct turn_in const ends = {.received = &done, .received_len = 1, .run = true},
                         ended = {.received = &end, .received_len = 1, .run = true};
    struct turn_out out = {0};
    thole_slice answer;
    struct instance *instance = drops_started(&play, ""); /* evicted at its await */
    CU_ASSERT_EQUAL(instance_query(instance, THOLE_STR("asks"), THOLE_STR(""), &answer, NULL), THOLE_INVALID);
    instance_destroy(instance);
    CU_ASSERT_STRING_EQUAL(drops, "a");
    instance = drops_started(&play, ""); /* after its end, in the reverse order */
    CU_ASSERT_EQUAL(instance_turn(instance, &ends, &out, NULL), THOLE_OK);
    CU_ASSERT(out.ended);
    CU_ASSERT_STRING_EQUAL(drops, "");
    instance_destroy(instance);
    CU_ASSERT_STRING_EQUAL(drops, "cba");
    instance = drops_started(&play, ""); /* terminated */
    CU_ASSERT_EQUAL(instance_turn(instance, &ended, &out, NULL), THOLE_OK);
    instance_destroy(instance);
    CU_ASSERT_STRING_EQUAL(drops, "a");
    play_release(&play);
}

/* A replay that differs is an error, after which the instance is dropped like any other. */
static void what_diverges_is_told(void)
{
    struct play play = play_of(drops_some);
    struct play_turns turns;
    struct instance *const instance = play_instance(&play);
    thole_error err;
    drops_len = 0;
    play_parse("#1 Started t(in) | #2 TimerCreated due 5000", &turns);
    CU_ASSERT_EQUAL(instance_replay(instance, &turns.turns[0], &err), THOLE_NONDETERMINISM);
    instance_destroy(instance);
    CU_ASSERT_STRING_EQUAL(drops, "a");
    play_turns_release(&turns);
    play_release(&play);
}

/* A function that could not be registered is not called. */
static void without_memory_it_is_told(void)
{
    struct play play = play_of(drops_some);
    struct event const done = {.kind = EVENT_ACTIVITY_COMPLETED, .ref = 3};
    struct turn_in const in = {.received = &done, .received_len = 1, .run = true};
    struct turn_out out = {0};
    struct instance *const instance = drops_started(&play, "x");
    CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_LIMIT);
    size_t const more = drops_len; /* functions that fitted */
    drops_len = 0;
    instance_destroy(instance);
    CU_ASSERT_EQUAL(drops_len, more + 3);
    CU_ASSERT_STRING_EQUAL(drops + more, "cba");
    play_release(&play);
}

static const struct thole_test tests[] = {
    {"a large stack is weighed", a_large_stack_is_weighed},
    {"what is dropped is told", what_is_dropped_is_told},
    {"what diverges is told", what_diverges_is_told},
    {"without memory it is told", without_memory_it_is_told},
};
THOLE_TEST_MAIN("instance_drops", tests)
