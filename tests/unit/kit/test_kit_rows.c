/* The test kit's substitute for Postgres: rows of timers and instances, as a batch writes them. */
#include "batch.h"
#include "kit.h"
#include "thole_cunit.h"

static thole_status nothing(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)input, (void)ret_output;
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {{.name = "nothing", .run = nothing}};
static const thole_program program = {.size = sizeof program,
                                      .name = "rows",
                                      .orchestrations = orchestrations,
                                      .orchestrations_len = ARRAY_LEN(orchestrations)};

#define INSTANCE                                                                                             \
    {                                                                                                        \
        (const uint8_t *)"order", 5                                                                          \
    }

/* "due 2000 3000, next 4000" */
static void check_timers(thole_test_env *env, uint64_t before_ms, const char *want)
{
    char got[128];
    struct in_timers timers;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    kit_rows_timers(env, before_ms, &arena, &timers);
    size_t len = (size_t)snprintf(got, sizeof got, "due");
    for (size_t i = 0; i < timers.timers_len; i++)
        len += (size_t)snprintf(got + len, sizeof got - len, " %llu",
                                (unsigned long long)timers.timers[i].due_ms);
    (void)snprintf(got + len, sizeof got - len, ", next %llu", (unsigned long long)timers.next_due_ms);
    CHECK_STR("timers", got, want);
    arena_release(&arena);
}

/* Those before the time that is asked for: one of that very time is the next. */
static void test_timers_before(void)
{
    thole_test_env *const env = thole_test_create(&program);
    struct batch_timer timers[] = {{.instance = INSTANCE, .execution = 1, .timer_id = 1, .due_ms = 4000},
                                   {.instance = INSTANCE, .execution = 1, .timer_id = 2, .due_ms = 2000},
                                   {.instance = INSTANCE, .execution = 1, .timer_id = 3, .due_ms = 3000}};
    struct batch const batch = {.timers_added = timers, .timers_added_len = ARRAY_LEN(timers)};
    kit_rows_apply(env, &batch);
    check_timers(env, 1999, "due, next 2000");
    check_timers(env, 2000, "due, next 2000");
    check_timers(env, 2001, "due 2000, next 3000");
    check_timers(env, 4000, "due 2000 3000, next 4000");
    check_timers(env, 4001, "due 4000 2000 3000, next 0");
    thole_test_destroy(env);
}

static void apply(thole_test_env *env, struct batch_instance row)
{
    struct batch const batch = {.follows = env->rows, .instances = &row, .instances_len = 1};
    row.instance = (thole_slice)INSTANCE;
    kit_rows_apply(env, &batch);
}

/* "name 1 of 2, [name@2 3 detail]": what is live, and the one that is blocked with its execution. */
static void check_live(thole_test_env *env, const char *want)
{
    char got[128] = "";
    size_t len = 0;
    struct in_live live;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    kit_rows_live(env, &arena, &live);
    for (size_t i = 0; i < live.names_len; i++)
        len += (size_t)snprintf(got + len, sizeof got - len, "%.*s x%llu ", THOLE_FMT(live.names[i]),
                                (unsigned long long)live.counts[i]);
    for (size_t i = 0; i < live.blocked_len; i++)
        len += (size_t)snprintf(got + len, sizeof got - len, "[%.*s %u %llu %.*s]",
                                THOLE_FMT(live.blocked[i].orchestration), live.blocked[i].version,
                                (unsigned long long)live.blocked[i].execution,
                                THOLE_FMT(live.blocked[i].detail));
    CHECK_STR("live", got, want);
    arena_release(&arena);
}

/* A row whose values are not given keeps them; one that was removed has none. */
static void test_a_row_that_is_removed_keeps_nothing(void)
{
    thole_test_env *const env = thole_test_create(&program);
    apply(env, (struct batch_instance){.orchestration = THOLE_STR("sells"),
                                       .version = 2,
                                       .execution = 3,
                                       .status = THOLE_INSTANCE_STUCK,
                                       .detail = THOLE_STR("why")});
    check_live(env, "sells@2 x1 [sells 2 3 why]");
    apply(env, (struct batch_instance){.execution = 4, .status = THOLE_INSTANCE_STUCK});
    check_live(env, "sells@2 x1 [sells 2 4 ]");
    apply(env, (struct batch_instance){.removed = true});
    check_live(env, "");
    apply(env, (struct batch_instance){.execution = 5, .status = THOLE_INSTANCE_STUCK});
    check_live(env, " x1 [ 0 5 ]");
    thole_test_destroy(env);
}

static const struct thole_test tests[] = {
    {"timers before", test_timers_before},
    {"a row that is removed keeps nothing", test_a_row_that_is_removed_keeps_nothing},
};
THOLE_TEST_MAIN("kit_rows", tests)
