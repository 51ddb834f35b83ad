/* The test kit, function by function: activities, scripts, time, accidents, what is told. */
#include "sanitized.h"
#include "thole/testing.h"
#include "thole_cunit.h"
#include <stdlib.h>

/* ---- a program ---- */

static thole_status pay(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t winner;
    thole_task const charge = thole_call(ctx, THOLE_STR("charge"), input);
    thole_task const limit = thole_timer(ctx, 30000);
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){charge, limit}, 2, &winner));
    if (winner == 1)
        return thole_throw(ctx, "too slow");
    if (thole_await(ctx, charge, ret_output) != THOLE_OK)
        return thole_throw(ctx, "no money: %.*s", THOLE_FMT(thole_task_error(ctx, charge)));
    return THOLE_OK;
}

static thole_status three(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice a, b, c;
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), input), &a));
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 1000), NULL));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), a), &b));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("slow"), b), &c));
    *ret_output = thole_format(ctx, "%.*s/%.*s", THOLE_FMT(a), THOLE_FMT(c));
    return THOLE_OK;
}

static unsigned whim; /* no orchestration may look at it */

static size_t steps; /* steps of code, in all replays together */

/* So many turns; the one in the midst asks for something else whenever it runs. */
static thole_status marathon(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    unsigned turns = 0, fickle_at = 0;
    (void)ret_output;
    if (sscanf((const char *)input.ptr, "%u %u", &turns, &fickle_at) != 2)
        return thole_throw(ctx, "no numbers");
    for (unsigned i = 1; i <= turns; i++) {
        steps++;
        THOLE_TRY(thole_sleep(ctx, i == fickle_at ? (uint64_t)++whim : 1000));
    }
    return THOLE_OK;
}

static thole_status fickle(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, ++whim), NULL));
    return thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), input), NULL);
}

static thole_status fickle_at_the_end(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = thole_format(ctx, "%u", ++whim);
    return THOLE_OK;
}

static thole_status lonely(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("nobody"), input), ret_output);
}

/* A typo that a time limit would hide. */
static thole_status mistyped(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const race[] = {thole_call(ctx, THOLE_STR("chagre"), input), thole_timer(ctx, 1000)};
    size_t winner;
    (void)ret_output;
    return thole_await_any(ctx, race, 2, &winner);
}

static thole_status charge(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    if (thole_activity_wait(act, 50) == THOLE_CANCELLED)
        return THOLE_CANCELLED;
    *ret_output = thole_activity_format(act, "charged %.*s", THOLE_FMT(input));
    return THOLE_OK;
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    *ret_output = input;
    return THOLE_OK;
}

static size_t slow_begun, slow_ended, slow_told;
static thole_cancel_kind slow_kind;
static uint64_t slow_grace_ms;

/* Holds memory while it waits: a crash must not leak it. */
static thole_status slow(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char *held = malloc(100);
    slow_begun++;
    (void)snprintf(held, 100, "attempt %u", thole_activity_attempt(act));
    thole_status const status = thole_activity_wait(act, 60000);
    if (status == THOLE_OK) {
        slow_ended++;
        *ret_output = thole_activity_format(act, "%.*s %s", THOLE_FMT(input), held);
    } else {
        slow_told++;
        slow_kind = thole_activity_cancel_kind(act);
        slow_grace_ms = thole_activity_grace_left_ms(act);
    }
    free(held);
    return status;
}

static thole_status deaf(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    for (uint64_t waits = 1; waits > 0; waits++) {
        thole_status const ignored = thole_activity_wait(act, 1000);
        (void)ignored;
    }
    return THOLE_OK;
}

static thole_status too_much(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    size_t const len = THOLE_PAYLOAD_BYTES_DEFAULT + 1;
    *ret_output = (thole_slice){thole_activity_alloc(act, len), len};
    return THOLE_OK;
}

static thole_status leaves(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    thole_slice token;
    (void)input, (void)ret_output;
    return thole_activity_later(act, &token);
}

static thole_status calls(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const task = thole_call(ctx, input, THOLE_STR("in"));
    thole_status const status = thole_await(ctx, task, ret_output);
    if (status == THOLE_OK)
        return THOLE_OK;
    *ret_output =
        thole_format(ctx, "%s: %.*s", thole_status_name(status), THOLE_FMT(thole_task_error(ctx, task)));
    return THOLE_OK;
}

static const thole_orchestration_entry ORCHESTRATIONS[] = {
    {.name = "pay", .run = pay},           {.name = "three", .run = three},
    {.name = "fickle", .run = fickle},     {.name = "lonely", .run = lonely},
    {.name = "mistyped", .run = mistyped}, {.name = "whim", .run = fickle_at_the_end},
    {.name = "calls", .run = calls},       {.name = "marathon", .run = marathon}};
static const thole_activity_options APART = {.size = sizeof APART, .isolation = THOLE_ISOLATION_PROCESS};
static const thole_activity_options QUICK = {.size = sizeof QUICK, .quick = true};
static const thole_activity_entry ACTIVITIES[] = {
    {"charge", charge, &APART}, {"echo", echo}, {"slow", slow}, {"deaf", deaf}, {"too_much", too_much},
    {"leaves", leaves, &QUICK}};
static const thole_program PROGRAM = {.size = sizeof PROGRAM,
                                      .name = "kit",
                                      .orchestrations = ORCHESTRATIONS,
                                      .orchestrations_len = ARRAY_LEN(ORCHESTRATIONS),
                                      .activities = ACTIVITIES,
                                      .activities_len = ARRAY_LEN(ACTIVITIES)};

#define ID THOLE_STR("i-1")
enum { BEGINNING_S = 1000000000 };

static void check_slice(const char *what, thole_slice got, const char *want)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(got));
    CHECK_STR(what, text, want);
}

static thole_test_env *begun(const char *orchestration, const char *input)
{
    thole_test_env *const env = thole_test_create(&PROGRAM);
    CU_ASSERT_PTR_NOT_NULL_FATAL(env);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, thole_slice_from(orchestration), thole_slice_from(input)),
                    THOLE_OK);
    return env;
}

static void ends(thole_test_env *env, thole_instance_status status, const char *output)
{
    CU_ASSERT_EQUAL(thole_test_run(env, ID), status);
    CU_ASSERT_EQUAL(thole_test_status(env, ID), status);
    check_slice("output", thole_test_output(env, ID), output);
    thole_test_destroy(env);
}

/* ---- starts ---- */

static void test_start(void)
{
    thole_test_env *const env = begun("pay", "card");
    CU_ASSERT_EQUAL(thole_test_status(env, ID), THOLE_INSTANCE_RUNNING);
    CU_ASSERT_EQUAL(thole_test_calls(env, "charge"), 0); /* nothing has been let run */
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("pay"), THOLE_STR("")), THOLE_CONFLICT);
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR(""), THOLE_STR("pay"), THOLE_STR("")), THOLE_INVALID);
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR("x"), THOLE_STR("p y"), THOLE_STR("")), THOLE_INVALID);
    thole_slice const large = {(const uint8_t *)calloc(1, THOLE_PAYLOAD_BYTES_DEFAULT + 1),
                               THOLE_PAYLOAD_BYTES_DEFAULT + 1};
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR("x"), THOLE_STR("pay"), large), THOLE_LIMIT);
    free((void *)(uintptr_t)large.ptr);
    CU_ASSERT_EQUAL(thole_test_status(env, THOLE_STR("x")), THOLE_INSTANCE_UNKNOWN);
    check_slice("unknown", thole_test_output(env, THOLE_STR("x")), "");
    CHECK_STR("unknown", thole_test_history(env, THOLE_STR("x")), "");
    ends(env, THOLE_INSTANCE_COMPLETED, "charged card");
}

static void test_history(void)
{
    thole_test_env *const env = begun("pay", "card");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CHECK_STR("history", thole_test_history(env, ID),
              "#1 Started pay@1(card)\n"
              "#2 ActivityScheduled charge(card)\n"
              "#3 TimerCreated due 1000000030000\n"
              "#4 ActivityCompleted #2 (charged card)\n"
              "#5 TimerCancelled #3 select_loser (activity 2 'charge' won)\n"
              "#6 Completed (charged card)\n");
    CU_ASSERT_EQUAL(thole_test_now_ms(env), BEGINNING_S * 1000ull + 50);
    CU_ASSERT_EQUAL(thole_test_calls(env, "charge"), 1);
    CU_ASSERT_EQUAL(thole_test_calls(env, "never heard of"), 0);
    thole_test_destroy(env);
}

static void test_unknown_orchestration(void)
{
    ends(begun("new", ""), THOLE_INSTANCE_WAITING,
         "engine test, which owned partition 0 then, does not have orchestration 'new': all engines of a "
         "namespace must "
         "have the same orchestrations");
}

static void test_unknown_activity(void)
{
    thole_test_env *const env = begun("lonely", "");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_RUNNING);
    check_slice(
        "why", thole_test_output(env, ID),
        "activity 'nobody' is not registered in this program; if another program has it, give it a script: "
        "thole_test_returns()");
    thole_test_returns(env, "nobody", THOLE_STR("me"), 0);
    ends(env, THOLE_INSTANCE_COMPLETED, "me");
}

static void test_mistyped_activity(void)
{
    thole_test_env *const env = begun("mistyped", "");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_RUNNING);
    CU_ASSERT_EQUAL(thole_test_now_ms(env), BEGINNING_S * 1000ull);
    check_slice("why", thole_test_output(env, ID),
                "activity 'chagre' is not registered in this program; did you mean 'charge'?");
    thole_test_hangs(env, "chagre", 0); /* meant so: the time limit comes */
    ends(env, THOLE_INSTANCE_COMPLETED, "");
}

/* ---- scripts ---- */

static void test_scripts_in_order(void)
{
    thole_test_env *const env = begun("three", "a");
    thole_test_returns(env, "slow", THOLE_STR("quick"), 0);
    thole_test_returns(env, "echo", THOLE_STR("first"), 1);
    ends(env, THOLE_INSTANCE_COMPLETED, "first/quick");
}

static void test_script_without_end_ends(void)
{
    thole_test_env *const env = begun("three", "a");
    thole_test_returns(env, "echo", THOLE_STR("x"), 0);
    thole_test_returns(env, "slow", THOLE_STR("x"), 0);
    thole_test_fails(env, "slow", THOLE_STR("tired"), THOLE_STR("asleep"), 0);
    ends(env, THOLE_INSTANCE_FAILED, "activity 'slow' failed: asleep");
}

static void test_fails(void)
{
    thole_test_env *const env = begun("pay", "card");
    thole_test_fails(env, "charge", THOLE_STR("declined"), THOLE_STR("empty"), 1);
    ends(env, THOLE_INSTANCE_FAILED, "no money: empty");
}

static void test_hangs_until_the_timer(void)
{
    thole_test_env *const env = begun("pay", "card");
    thole_test_hangs(env, "charge", 1);
    thole_test_settle(env);
    CU_ASSERT_EQUAL(thole_test_cancels(env, "charge"), 0);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_FAILED);
    CU_ASSERT_EQUAL(thole_test_cancels(env, "charge"), 1);
    CU_ASSERT_EQUAL(thole_test_now_ms(env), BEGINNING_S * 1000ull + 30000);
    ends(env, THOLE_INSTANCE_FAILED, "too slow");
}

static void test_takes(void)
{
    thole_test_env *env = begun("pay", "card");
    thole_test_takes(env, "charge", 29900);
    ends(env, THOLE_INSTANCE_COMPLETED, "charged card");
    env = begun("pay", "card");
    thole_test_takes(env, "charge", 29951); /* and 50 of its own */
    ends(env, THOLE_INSTANCE_FAILED, "too slow");
}

static void test_complete(void)
{
    thole_test_env *const env = begun("pay", "card");
    CU_ASSERT_EQUAL(thole_test_complete(env, "echo", THOLE_STR("")), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(thole_test_complete(env, "charge", THOLE_STR("by hand")), THOLE_OK); /* waits for this */
    CU_ASSERT_EQUAL(thole_test_complete(env, "charge", THOLE_STR("again")), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(thole_test_cancels(env, "charge"), 0);
    ends(env, THOLE_INSTANCE_COMPLETED, "by hand");
}

/* ---- the program's own activities ---- */

static void test_wait_is_virtual_and_told(void)
{
    slow_begun = slow_ended = slow_told = 0;
    thole_test_env *env = begun("calls", "slow");
    ends(env, THOLE_INSTANCE_COMPLETED, "in attempt 1");
    CU_ASSERT_EQUAL(slow_ended, 1);
    env = begun("calls", "slow");
    thole_test_advance(env, 59999);
    CU_ASSERT_EQUAL(thole_test_status(env, ID), THOLE_INSTANCE_RUNNING);
    thole_test_cancel(env, ID, THOLE_STR("enough"));
    thole_test_settle(env);
    CU_ASSERT_EQUAL(slow_told, 1);
    CU_ASSERT_EQUAL(slow_kind, THOLE_CANCEL_REQUESTED);
    CU_ASSERT_EQUAL(slow_grace_ms, 10000);
    CU_ASSERT_EQUAL(thole_test_cancels(env, "slow"), 1);
    ends(env, THOLE_INSTANCE_CANCELLED, "enough");
    CU_ASSERT_EQUAL(slow_begun, 2);
}

static void test_deaf_activity_is_given_up(void)
{
    thole_test_env *const env = begun("calls", "deaf");
    thole_test_advance(env, 5000);
    thole_test_cancel(env, ID, THOLE_STR("enough"));
    ends(env, THOLE_INSTANCE_CANCELLED, "enough");
}

static void test_too_large_an_output(void)
{
    ends(begun("calls", "too_much"), THOLE_INSTANCE_COMPLETED,
         "APP: the output has 262145 bytes; at most 262144 are allowed");
}

static void test_quick_is_not_later(void)
{
    ends(begun("calls", "leaves"), THOLE_INSTANCE_COMPLETED,
         "APP: an activity that is declared quick cannot be completed later");
}

/* ---- time ---- */

static void test_advance(void)
{
    thole_test_env *const env = begun("three", "a");
    thole_test_settle(env);
    CU_ASSERT_EQUAL(thole_test_calls(env, "echo"), 1);
    thole_test_advance(env, 999);
    CU_ASSERT_EQUAL(thole_test_calls(env, "echo"), 1);
    CU_ASSERT_EQUAL(thole_test_now_ms(env), BEGINNING_S * 1000ull + 999);
    thole_test_advance(env, 1);
    CU_ASSERT_EQUAL(thole_test_calls(env, "echo"), 2);
    CU_ASSERT_EQUAL(thole_test_calls(env, "slow"), 1);
    thole_test_advance(env, 24ull * 3600 * 1000);
    CU_ASSERT_EQUAL(thole_test_now_ms(env), BEGINNING_S * 1000ull + 1000 + 24ull * 3600 * 1000);
    ends(env, THOLE_INSTANCE_COMPLETED, "a/a attempt 1");
}

static void test_many_at_once(void)
{
    thole_test_env *const env = thole_test_create(&PROGRAM);
    char id[16];
    for (int i = 0; i < 200; i++) {
        (void)snprintf(id, sizeof id, "i-%d", i);
        CU_ASSERT_EQUAL(thole_test_start(env, thole_slice_from(id), THOLE_STR("three"), ID), THOLE_OK);
    }
    thole_test_advance(env, 61000);
    for (int i = 0; i < 200; i++) {
        (void)snprintf(id, sizeof id, "i-%d", i);
        CU_ASSERT_EQUAL(thole_test_status(env, thole_slice_from(id)), THOLE_INSTANCE_COMPLETED);
    }
    thole_test_destroy(env);
}

/* ---- determinism ---- */

static void test_divergence(void)
{
    char text[256];
    whim = SANITIZED ? 1 : 0; /* else a replay for its memory has counted, too */
    (void)snprintf(text, sizeof text,
                   "event 2: history has TimerCreated due %llu, the code asked for TimerCreated due "
                   "1000000000003",
                   SANITIZED ? 1000000000002ull : 1000000000001ull);
    ends(begun("fickle", ""), THOLE_INSTANCE_STUCK, text);
}

static void test_divergence_at_the_end(void)
{
    whim = 0;
    ends(begun("whim", ""), THOLE_INSTANCE_STUCK,
         "event 2: history has Completed, the code asked for the same, but the output differs");
}

static void test_keep_parked(void)
{
    whim = 0;
    thole_test_env *env = thole_test_create(&PROGRAM);
    thole_test_keep_parked(env);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("fickle"), THOLE_STR("")), THOLE_OK);
    ends(env, THOLE_INSTANCE_COMPLETED, "");
    env = begun("pay", "card"); /* and in the midst of it */
    thole_test_settle(env);
    thole_test_keep_parked(env);
    ends(env, THOLE_INSTANCE_COMPLETED, "charged card");
}

/* Between the turns with a replay, and after the last of them. */
static void test_divergence_of_the_long(void)
{
    static const char *const runs[] = {"200 100", "120 100"};
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        whim = 0;
        thole_test_env *const env = begun("marathon", runs[i]);
        CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_STUCK);
        CU_ASSERT_PTR_NOT_NULL(
            strstr((const char *)thole_test_output(env, ID).ptr, "history has TimerCreated due"));
        thole_test_destroy(env);
    }
}

static void test_long_is_linear(void)
{
    enum { TURNS = 10000, FIRST_ONES = 64 * 64, REPLAYS_MAX = 10 };
    steps = 0;
    thole_test_env *const env = begun("marathon", "10000 0");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT(steps > TURNS && steps < (size_t)REPLAYS_MAX * (TURNS + FIRST_ONES));
    thole_test_destroy(env);
}

/* ---- accidents ---- */

static void test_crash_runs_again(void)
{
    slow_begun = slow_ended = slow_told = 0;
    thole_test_env *const env = begun("calls", "slow");
    thole_test_advance(env, 30000);
    thole_test_crash(env);
    thole_test_advance(env, 59999);
    CU_ASSERT_EQUAL(thole_test_status(env, ID), THOLE_INSTANCE_RUNNING);
    CU_ASSERT_EQUAL(slow_begun, 2);
    CU_ASSERT_EQUAL(slow_told, 1);
    CU_ASSERT_EQUAL(thole_test_calls(env, "slow"), 2);
    CU_ASSERT_EQUAL(thole_test_cancels(env, "slow"), 0);
    ends(env, THOLE_INSTANCE_COMPLETED, "in attempt 2");
    CU_ASSERT_EQUAL(slow_ended, 1);
}

static void test_crash_at_each_point(void)
{
    char expected[2048] = "";
    size_t crashes = 1, n = 0;
    for (; crashes > 0; n++) {
        thole_test_env *const env = thole_test_create(&PROGRAM);
        thole_test_crash_after(env, n);
        CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("three"), THOLE_STR("a")), THOLE_OK);
        thole_test_returns(env, "slow", THOLE_STR("z"), 0);
        CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
        if (n == 0)
            (void)snprintf(expected, sizeof expected, "%s", thole_test_history(env, ID));
        CHECK_STR("history", thole_test_history(env, ID), expected);
        crashes = thole_test_crashes(env);
        CU_ASSERT(thole_test_calls(env, "echo") + thole_test_calls(env, "slow") <= 3 + crashes);
        thole_test_destroy(env);
    }
    CU_ASSERT(n > 30);
}

/* Whatever happens on the way, it is gone, and another one can have its id. */
static void delete_and_start_again(thole_test_env *env)
{
    thole_delete_options const force = {.size = sizeof force, .force = true, .reason = THOLE_STR("away")};
    thole_test_hangs(env, "slow", 1);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("three"), THOLE_STR("a")), THOLE_OK);
    thole_test_advance(env, 1000);
    CU_ASSERT_EQUAL(thole_test_delete(env, ID, &force), THOLE_OK);
    thole_test_settle(env);
    CU_ASSERT_EQUAL(thole_test_status(env, ID), THOLE_INSTANCE_UNKNOWN);
    CHECK_STR("history", thole_test_history(env, ID), "");
    thole_test_returns(env, "slow", THOLE_STR("z"), 0);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("three"), THOLE_STR("b")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_PTR_NOT_NULL(strstr(thole_test_history(env, ID), "#1 Started three@1(b) after 1 deleted\n"));
}

static void test_deletion(void)
{
    size_t crashes = 1, n = 0;
    for (; crashes > 0; n++) {
        thole_test_env *const env = thole_test_create(&PROGRAM);
        thole_test_crash_after(env, n);
        delete_and_start_again(env);
        crashes = thole_test_crashes(env);
        thole_test_destroy(env);
    }
    CU_ASSERT(n > 50);
}

static void test_deletion_of_what_runs(void)
{
    thole_test_env *const env = thole_test_create(&PROGRAM);
    CU_ASSERT_EQUAL(thole_test_delete(env, ID, NULL), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("three"), THOLE_STR("a")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_delete(env, ID, NULL), THOLE_CONFLICT);
    thole_test_terminate(env, ID, THOLE_STR("enough"));
    CU_ASSERT_EQUAL(thole_test_status(env, ID), THOLE_INSTANCE_TERMINATED);
    CU_ASSERT_EQUAL(thole_test_delete(env, ID, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_delete(env, ID, NULL), THOLE_NOT_FOUND);
    thole_test_advance(env, 100000);
    CU_ASSERT_EQUAL(thole_test_status(env, ID), THOLE_INSTANCE_UNKNOWN);
    thole_test_destroy(env);
}

/* An activity asks for the crash itself: it has had its effect, and its result is lost. */
static thole_test_env *suicidal;
static thole_status die_once(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    if (thole_activity_attempt(act) == 1)
        thole_test_crash(suicidal);
    *ret_output = thole_activity_format(act, "attempt %u", thole_activity_attempt(act));
    return THOLE_OK;
}

static void test_crash_from_an_activity(void)
{
    static const thole_activity_entry activities[] = {{"die", die_once}};
    static const thole_program program = {.size = sizeof program,
                                          .orchestrations = ORCHESTRATIONS,
                                          .orchestrations_len = ARRAY_LEN(ORCHESTRATIONS),
                                          .activities = activities,
                                          .activities_len = 1};
    suicidal = thole_test_create(&program);
    CU_ASSERT_EQUAL(thole_test_start(suicidal, ID, THOLE_STR("calls"), THOLE_STR("die")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(suicidal, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_crashes(suicidal), 1);
    CU_ASSERT_EQUAL(thole_test_calls(suicidal, "die"), 2);
    ends(suicidal, THOLE_INSTANCE_COMPLETED, "attempt 2");
}

/* ---- another program ---- */

static thole_status pay_more(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    return thole_await(ctx, thole_call(ctx, THOLE_STR("charge"), THOLE_STR("more")), ret_output);
}

static thole_status recharge(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = thole_activity_format(act, "again, attempt %u", thole_activity_attempt(act));
    return THOLE_OK;
}

static const thole_activity_entry NEW_ACTIVITIES[] = {{"charge", recharge}};

static void test_deploy(void)
{
    static const thole_program same = {.size = sizeof same,
                                       .orchestrations = ORCHESTRATIONS,
                                       .orchestrations_len = ARRAY_LEN(ORCHESTRATIONS),
                                       .activities = NEW_ACTIVITIES,
                                       .activities_len = 1};
    thole_test_env *const env = begun("pay", "card");
    thole_test_settle(env);
    thole_test_deploy(env, &same);
    ends(env, THOLE_INSTANCE_COMPLETED, "again, attempt 2");
}

static void test_deploy_what_diverges(void)
{
    static const thole_orchestration_entry orchestrations[] = {{.name = "pay", .run = pay_more}};
    static const thole_program other = {.size = sizeof other,
                                        .orchestrations = orchestrations,
                                        .orchestrations_len = 1,
                                        .activities = NEW_ACTIVITIES,
                                        .activities_len = 1};
    thole_test_env *const env = begun("pay", "card");
    thole_test_deploy(env, &other);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_STUCK);
    thole_test_deploy(env, &PROGRAM); /* with the right code it goes on */
    ends(env, THOLE_INSTANCE_COMPLETED, "again, attempt 1");
}

static void test_destroy_in_the_midst(void)
{
    slow_begun = slow_told = 0;
    thole_test_env *const env = begun("calls", "slow");
    thole_test_settle(env);
    thole_test_destroy(env);
    CU_ASSERT_EQUAL(slow_told, 1);
    thole_test_destroy(NULL);
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"starts", test_start},
        {"a history as text", test_history},
        {"an orchestration that is not registered", test_unknown_orchestration},
        {"an activity that is not registered", test_unknown_activity},
        {"an activity whose name is mistyped", test_mistyped_activity},
        {"scripts in order", test_scripts_in_order},
        {"a script without end ends at the next", test_script_without_end_ends},
        {"fails", test_fails},
        {"hangs", test_hangs_until_the_timer},
        {"takes", test_takes},
        {"completed by hand", test_complete},
        {"waiting is virtual, and told", test_wait_is_virtual_and_told},
        {"an activity that ignores its token", test_deaf_activity_is_given_up},
        {"an output that is too large", test_too_large_an_output},
        {"quick is not later", test_quick_is_not_later},
        {"time goes by in steps", test_advance},
        {"many instances", test_many_at_once},
        {"a divergence is Stuck", test_divergence},
        {"a divergence in the last turn is Stuck", test_divergence_at_the_end},
        {"a divergence in the midst of many turns", test_divergence_of_the_long},
        {"10,000 turns take as long as 100 times 100", test_long_is_linear},
        {"parked instances are not replayed", test_keep_parked},
        {"a crash runs activities again", test_crash_runs_again},
        {"a crash at each point ends the same", test_crash_at_each_point},
        {"a deletion, with a crash at each point", test_deletion},
        {"what runs is not deleted", test_deletion_of_what_runs},
        {"a crash after the effect", test_crash_from_an_activity},
        {"another program", test_deploy},
        {"another program that diverges", test_deploy_what_diverges},
        {"destroyed while an activity runs", test_destroy_in_the_midst},
    };
    return thole_run_suite("kit", tests, ARRAY_LEN(tests));
}
