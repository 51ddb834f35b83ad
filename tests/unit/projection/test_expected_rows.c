/*
 * The rows that a history must have (engine/rows), beside those that the projection has written: over random
 * programs, with crashes, and with events of every kind. The two are derived apart; where they differ one of
 * them is wrong. And when a row is wrong, while history and rows change (row_check.h).
 */
#include "dropped.h"
#include "kit.h"
#include "row_check.h"
#include "thole_cunit.h"
#include <stdlib.h>

enum { SEEDS = 150, STEPS = 40, INPUT_BYTES = 12, IDS = 5, ID_BYTES = 16, WAIT_MS = 300 };

/* ---- an orchestration: its input says what it does, a byte for each step ---- */

static thole_status with_retries(thole_ctx *ctx)
{
    thole_call_options const options = {.size = sizeof options,
                                        .try_timeout_ms = 400,
                                        .total_timeout_ms = 1000,
                                        .retry = {.tries_max = 3, .first_delay_ms = 50}};
    return thole_await(ctx, thole_call_with(ctx, THOLE_STR("flaky"), THOLE_STR("x"), &options), NULL);
}

static thole_status race(thole_ctx *ctx, thole_task task, uint64_t limit_ms)
{
    size_t winner;
    thole_task const tasks[] = {task, thole_timer(ctx, limit_ms)};
    return thole_await_any(ctx, tasks, 2, &winner);
}

static thole_status step(thole_ctx *ctx, uint8_t what, thole_slice rest)
{
    switch (what % 9) {
    case 0: return thole_await(ctx, thole_call(ctx, THOLE_STR("quick"), rest), NULL);
    case 1: return with_retries(ctx);
    case 2: return race(ctx, thole_call(ctx, THOLE_STR("slow"), rest), 100);
    case 3: return thole_await(ctx, thole_timer(ctx, 200), NULL);
    case 4: thole_set_status(ctx, rest); return THOLE_OK;
    case 5: return race(ctx, thole_child(ctx, THOLE_STR("wild"), rest, NULL), 150);
    case 6: return race(ctx, thole_event(ctx, THOLE_STR("go")), WAIT_MS);
    case 7: drop_task(thole_call(ctx, THOLE_STR("hangs"), rest)); return THOLE_OK;
    default: return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL);
    }
}

static thole_status wild(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (size_t i = 0; i < input.len; i++) {
        thole_slice const rest = {input.ptr + i + 1, input.len - i - 1};
        if (input.ptr[i] > 240)
            return thole_throw(ctx, "as its input says");
        if (input.ptr[i] > 215)
            return thole_continue_as_new(ctx, rest, 0);
        thole_status const status = step(ctx, input.ptr[i], rest);
        if (status == THOLE_CANCELLED || status == THOLE_LIMIT)
            return status;
    }
    *ret_output = THOLE_STR("done");
    return THOLE_OK;
}

static thole_status quick(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    *ret_output = input;
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {{.name = "wild", .run = wild}};
static const thole_activity_entry activities[] = {
    {"quick", quick}, {"flaky", quick}, {"slow", quick}, {"hangs", quick}};
static const thole_program program = {.size = sizeof program,
                                      .name = "expected",
                                      .orchestrations = orchestrations,
                                      .orchestrations_len = ARRAY_LEN(orchestrations),
                                      .activities = activities,
                                      .activities_len = ARRAY_LEN(activities)};

/* ---- both derivations, side by side ---- */

static unsigned differences;

static void differ(uint64_t seed, thole_slice instance, const char *what)
{
    if (differences++ < 10)
        fprintf(stderr, "  seed %llu, %.*s: %s\n", (unsigned long long)seed, THOLE_FMT(instance), what);
}

static struct expected_rows *expect(const thole_test_env *env, thole_slice instance)
{
    struct expected_rows *const rows = expected_rows_create(instance, 0, kit_nonce_key(), 10000);
    for (size_t i = 0; i < env->records_len; i++) {
        const struct kit_record *const record = &env->records[i];
        if (!record->deleted && thole_slice_equal(record->instance, instance))
            CU_ASSERT_EQUAL(expected_rows_take(rows, i + 1, record->bytes, NULL), THOLE_OK);
    }
    return rows;
}

static const struct stored_row *of(const struct expected_rows *rows, enum row_table table, uint64_t execution,
                                   uint64_t id)
{
    struct stored_row const key = {.table = table, .execution = execution, .id = id};
    const struct expected_row *const row = expected_rows_find(rows, &key);
    return row == NULL ? NULL : &row->row;
}

static bool same_instance(const struct kit_instance *row, const struct stored_row *expected)
{
    if (expected == NULL || row->status == THOLE_INSTANCE_UNKNOWN)
        return expected == NULL && row->status == THOLE_INSTANCE_UNKNOWN;
    return expected->numbers[INSTANCE_STATUS] == (uint64_t)row->status &&
           expected->numbers[INSTANCE_EXECUTION] == row->execution &&
           expected->numbers[INSTANCE_VERSION] == row->version &&
           thole_slice_equal(expected->texts[INSTANCE_ORCHESTRATION], row->orchestration) &&
           thole_slice_equal(expected->texts[INSTANCE_DETAIL], row->detail) &&
           thole_slice_equal(expected->texts[INSTANCE_CUSTOM_STATUS], row->custom_status) &&
           thole_slice_equal(expected->texts[INSTANCE_PARENT], row->parent);
}

static size_t compare_timers(const thole_test_env *env, const struct expected_rows *rows, thole_slice id,
                             uint64_t seed)
{
    size_t n = 0;
    for (size_t i = 0; i < env->timers_len; i++) {
        const struct batch_timer *const row = &env->timers[i].row;
        if (row->due_ms == 0 || !thole_slice_equal(row->instance, id))
            continue;
        const struct stored_row *const expected = of(rows, ROWS_TIMERS, row->execution, row->timer_id);
        bool const early = row->execution == 0;
        n++;
        if (expected == NULL || (!early && expected->numbers[TIMER_DUE_MS] != row->due_ms))
            differ(seed, id, "a timer");
    }
    return n;
}

static size_t compare_activities(const thole_test_env *env, const struct expected_rows *rows, thole_slice id,
                                 uint64_t seed)
{
    size_t n = 0;
    for (const struct kit_work *work = env->work; work != NULL; work = work->next) {
        const struct batch_activity *const row = &work->row;
        if (work->gone || !thole_slice_equal(row->instance, id))
            continue;
        const struct stored_row *const expected = of(rows, ROWS_ACTIVITIES, row->execution, row->activity_id);
        n++;
        if (expected == NULL || expected->numbers[ACTIVITY_TRY] != row->try_number ||
            expected->numbers[ACTIVITY_TIMEOUT_MS] != row->try_timeout_ms ||
            !thole_slice_equal(expected->texts[ACTIVITY_QUEUE], row->queue) ||
            !thole_slice_equal(expected->texts[ACTIVITY_NAME], row->activity))
            differ(seed, id, "an activity");
    }
    return n;
}

static size_t count(const struct expected_rows *rows, enum row_table table)
{
    size_t n = 0;
    for (size_t i = 0; i < expected_rows_len(rows); i++)
        n += expected_rows_at(rows, i)->row.table == table && !expected_rows_at(rows, i)->gone;
    return n;
}

static void compare(const thole_test_env *env, uint64_t seed)
{
    for (const struct kit_instance *row = env->instances; row != NULL; row = row->next) {
        struct expected_rows *const rows = expect(env, row->id);
        if (!same_instance(row, of(rows, ROWS_INSTANCES, 0, 0)))
            differ(seed, row->id, "the instance");
        if (compare_timers(env, rows, row->id, seed) != count(rows, ROWS_TIMERS))
            differ(seed, row->id, "the number of timers");
        if (compare_activities(env, rows, row->id, seed) != count(rows, ROWS_ACTIVITIES))
            differ(seed, row->id, "the number of activities");
        expected_rows_destroy(rows);
    }
}

/* ---- random inputs ---- */

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void act(thole_test_env *env, uint64_t *random)
{
    static const thole_delete_options force = {.size = sizeof force, .force = true};
    char id_text[ID_BYTES];
    uint8_t input[INPUT_BYTES];
    (void)snprintf(id_text, sizeof id_text, "i-%llu", (unsigned long long)(next(random) % IDS));
    thole_slice const id = thole_slice_from(id_text), why = THOLE_STR("why");
    for (size_t i = 0; i < sizeof input; i++)
        input[i] = (uint8_t)next(random);
    switch (next(random) % 12) {
    case 0:
    case 1:
    case 2:
    case 3: (void)!thole_test_start(env, id, THOLE_STR("wild"), (thole_slice){input, sizeof input}); break;
    case 4:
    case 5: thole_test_signal(env, id, THOLE_STR("go"), why); break;
    case 6: thole_test_cancel(env, id, why); break;
    case 7: thole_test_terminate(env, id, why); break;
    case 8: thole_test_pause(env, id); break;
    case 9: thole_test_resume(env, id); break;
    case 10: (void)!thole_test_delete(env, id, &force); break;
    default: thole_test_crash_after(env, next(random) % 20); break;
    }
}

static void test_random_programs(void)
{
    size_t crashes = 0, records = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        thole_test_env *const env = thole_test_create(&program);
        uint64_t random = seed;
        thole_test_keep_parked(env);
        thole_test_fails(env, "flaky", THOLE_STR("t"), THOLE_STR("no"), 3 + seed % 5);
        thole_test_takes(env, "slow", 50 + seed % 100);
        thole_test_hangs(env, "hangs", 0);
        for (int i = 0; i < STEPS; i++) {
            act(env, &random);
            thole_test_advance(env, next(&random) % 4 == 0 ? 0 : next(&random) % WAIT_MS);
            thole_test_settle(env);
            compare(env, seed);
        }
        crashes += thole_test_crashes(env);
        records += env->records_len;
        thole_test_destroy(env);
    }
    fprintf(stderr, "  %zu records, %zu crashes, %u differences\n", records, crashes, differences);
    CU_ASSERT_EQUAL(differences, 0);
    CU_ASSERT_TRUE(crashes > SEEDS && records > SEEDS * STEPS);
}

/* ---- wrong or not, while both change ---- */

enum { ROWS_MAX = 64, NOW = 1 << 20 /* more than there are records */ };

struct snapshot { /* the rows after some record */
    struct stored_row rows[ROWS_MAX];
    size_t len;
    struct expected_rows *owner; /* of their texts */
};

static int by_key(const void *a, const void *b)
{
    return stored_row_compare(a, b);
}

static struct snapshot rows_after(const thole_test_env *env, size_t records)
{
    struct snapshot ret = {.owner = expected_rows_create(THOLE_STR("i"), 0, kit_nonce_key(), 0)};
    for (size_t i = 0; i < records; i++)
        if (env->records[i].instance.len > 0)
            CU_ASSERT_EQUAL(expected_rows_take(ret.owner, i + 1, env->records[i].bytes, NULL), THOLE_OK);
    for (size_t i = 0; i < expected_rows_len(ret.owner) && ret.len < ROWS_MAX; i++)
        if (!expected_rows_at(ret.owner, i)->gone)
            ret.rows[ret.len++] = expected_rows_at(ret.owner, i)->row;
    qsort(ret.rows, ret.len, sizeof ret.rows[0], by_key);
    return ret;
}

static size_t wrong(const thole_test_env *env, struct snapshot *stored, uint64_t watermark)
{
    struct row_check_options const options = {.instance = THOLE_STR("i"),
                                              .key = kit_nonce_key(),
                                              .watermark = watermark,
                                              .rows = stored->rows,
                                              .rows_len = stored->len};
    const struct row_difference *found;
    size_t n = 0;
    struct row_check *const check = row_check_create(&options);
    for (size_t i = 0; i < env->records_len; i++)
        if (env->records[i].instance.len > 0)
            CU_ASSERT_EQUAL(row_check_take(check, i + 1, env->records[i].bytes, NULL), THOLE_OK);
    row_check_end(check, &found, &n);
    row_check_destroy(check);
    return n;
}

/* Activities that run, a timer, a failed try, a second execution. */
static thole_test_env *a_life(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_fails(env, "flaky", THOLE_STR("t"), THOLE_STR("no"), 1);
    thole_test_hangs(env, "hangs", 0);
    thole_test_takes(env, "slow", 1000);
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR("i"), THOLE_STR("wild"),
                                     THOLE_STR("\x09\x0a\x0d\x0b\xd8\x07\x01\x06\x06\x06\x06\x06\x06")),
                    THOLE_OK);
    thole_test_advance(env, 1000);
    return env;
}

static void test_rows_after_any_record(void)
{
    thole_test_env *const env = a_life();
    size_t pairs = 0;
    for (size_t k = 1; k <= env->records_len; k++) {
        struct snapshot stored = rows_after(env, k);
        for (size_t w = 0; w <= env->records_len; w++) {
            bool const changed = w > k && env->records[w - 1].instance.len > 0;
            if (w <= k)
                CU_ASSERT_EQUAL(wrong(env, &stored, w), 0);
            if (changed)
                CU_ASSERT_TRUE(wrong(env, &stored, w) > 0);
            pairs += w <= k || changed;
        }
        expected_rows_destroy(stored.owner);
    }
    fprintf(stderr, "  %zu records, %zu pairs\n", env->records_len, pairs);
    CU_ASSERT_TRUE(pairs > 100);
    thole_test_destroy(env);
}

/* Of each row each column that is wrong, a row that is missing, and one too many. */
static void test_each_column(void)
{
    thole_test_env *const env = a_life();
    struct snapshot stored = rows_after(env, env->records_len);
    size_t columns = 0;
    CU_ASSERT_EQUAL(wrong(env, &stored, NOW), 0);
    for (size_t r = 0; r < stored.len; r++) {
        struct stored_row const right = stored.rows[r];
        const struct row_shape *const shape = &row_shapes[right.table];
        for (size_t i = 0; shape->numbers[i] != NULL; i++, columns++) {
            stored.rows[r].numbers[i] += 1000000;
            CU_ASSERT_EQUAL(wrong(env, &stored, NOW), 1);
            stored.rows[r] = right;
        }
        for (size_t i = 0; shape->texts[i] != NULL; i++, columns++) {
            stored.rows[r].texts[i] = THOLE_STR("other");
            CU_ASSERT_EQUAL(wrong(env, &stored, NOW), 1);
            stored.rows[r] = right;
        }
        stored.rows[r].execution += 1000;
        qsort(stored.rows, stored.len, sizeof stored.rows[0], by_key);
        CU_ASSERT_EQUAL(wrong(env, &stored, NOW), 2); /* one is missing, one is too many */
        expected_rows_destroy(stored.owner);
        stored = rows_after(env, env->records_len);
    }
    fprintf(stderr, "  %zu rows, %zu columns\n", stored.len, columns);
    CU_ASSERT_TRUE(stored.len >= 5 && columns > 25);
    expected_rows_destroy(stored.owner);
    thole_test_destroy(env);
}

/* If a record is missing that others of its execution follow, the rows are not known. */
static thole_status without(const thole_test_env *env, size_t left_out, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    struct expected_rows *const rows = expected_rows_create(THOLE_STR("i"), 0, kit_nonce_key(), 0);
    for (size_t i = 0; i < env->records_len && status == THOLE_OK; i++)
        if (env->records[i].instance.len > 0 && i != left_out)
            status = expected_rows_take(rows, i + 1, env->records[i].bytes, reterr);
    expected_rows_destroy(rows);
    return status;
}

static void test_missing_record(void)
{
    thole_test_env *const env = a_life();
    thole_error err = {.status = THOLE_OK};
    size_t holes = 0, newest = 0, first = 0;
    for (size_t i = 0; i < env->records_len; i++)
        if (env->records[i].instance.len > 0)
            newest = i, first = first == 0 ? i : first;
    for (size_t i = 0; i < newest; i++)
        if (env->records[i].instance.len > 0 && without(env, i, &err) == THOLE_CORRUPT)
            holes++;
    CU_ASSERT_EQUAL(without(env, newest, &err), THOLE_OK);
    CU_ASSERT_EQUAL(without(env, first, &err), THOLE_CORRUPT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "turn 2 of execution 1 follows turn 0"));
    CU_ASSERT_TRUE(holes > 4);
    thole_test_destroy(env);
}

static const struct thole_test tests[] = {
    {"random programs", test_random_programs},
    {"rows after any record", test_rows_after_any_record},
    {"each column", test_each_column},
    {"a missing record", test_missing_record},
};

THOLE_TEST_MAIN("expected_rows", tests)
