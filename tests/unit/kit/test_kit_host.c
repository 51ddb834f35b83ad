/*
 * The needs of another language's host for an orchestration's entry: one function for several names, told
 * apart by name and arg; a stack of the size that its interpreter takes; and a call when its state is
 * dropped. And the kit's report of memory that nobody releases.
 */
#include "dropped.h"
#include "sanitized.h"
#include "thole/testing.h"
#include "thole_cunit.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define ID THOLE_STR("i-1")

static void check_slice(const char *what, thole_slice got, const char *want)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(got));
    CHECK_STR(what, text, want);
}

/* ---- a little language: "call NAME", "sleep MS", "deep FRAMES", "throw" ---- */

enum { VALUES = 8, FRAME_BYTES = 4096 };

/* The state of an interpreter: what a program of the other language holds. */
struct host {
    char *values[VALUES];
    size_t values_len;
};
static atomic_size_t made, released;

static void host_release(void *arg)
{
    struct host *const host = arg;
    for (size_t i = 0; i < host->values_len; i++)
        free(host->values[i]);
    free(host);
    atomic_fetch_add(&released, 1);
}

static thole_status host_keep(struct host *host, thole_slice value)
{
    char *const copy = malloc(value.len + 1);
    if (copy == NULL || host->values_len == VALUES) {
        free(copy);
        return THOLE_NOMEM;
    }
    (void)snprintf(copy, value.len + 1, "%.*s", THOLE_FMT(value));
    host->values[host->values_len++] = copy;
    return THOLE_OK;
}

/* Awaits at the bottom of so many frames. */
static __attribute__((noinline)) thole_status deep(thole_ctx *ctx, unsigned long frames, char *under)
{
    volatile char frame[FRAME_BYTES];
    frame[0] = frame[FRAME_BYTES - 1] = (char)frames;
    thole_status const status = frames == 0 ? thole_sleep(ctx, 10) : deep(ctx, frames - 1, (char *)frame);
    *under = frame[0];
    return status;
}

static thole_status host_step(thole_ctx *ctx, struct host *host, const char *word, const char *operand)
{
    char under;
    thole_slice result = {NULL, 0};
    if (strcmp(word, "sleep") == 0)
        return thole_sleep(ctx, strtoul(operand, NULL, 10));
    if (strcmp(word, "deep") == 0)
        return deep(ctx, strtoul(operand, NULL, 10), &under);
    if (strcmp(word, "throw") == 0)
        return thole_throw(ctx, "%s", operand);
    THOLE_TRY(thole_await_call(ctx, thole_slice_from(operand), thole_instance_id(ctx), NULL, &result));
    return host_keep(host, result);
}

/* An interpreter answers queries, too: from its state, on a stack of the same size. */
static thole_status host_answer(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    const struct host *const host = arg;
    volatile char local[150 * 1024];
    memset((char *)local, 1, sizeof local);
    *ret_output = thole_format(ctx, "%.*s%.*s has %zu values", THOLE_FMT(input),
                               THOLE_FMT(thole_orchestration_name(ctx)), host->values_len);
    return local[sizeof local / 2] == 1 ? THOLE_OK : THOLE_APP;
}

/* The one function of all orchestrations: arg is the program's text. */
static thole_status host_run(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    struct host *const host = calloc(1, sizeof *host);
    char word[16], operand[16];
    int read = 0;
    (void)input;
    if (host == NULL || thole_on_drop(ctx, host_release, host) != THOLE_OK) {
        free(host);
        return THOLE_NOMEM;
    }
    atomic_fetch_add(&made, 1);
    thole_on_query(ctx, THOLE_STR("values"), host_answer, host);
    for (const char *at = thole_orchestration_arg(ctx); sscanf(at, "%15s %15s%n", word, operand, &read) == 2;
         at += read)
        THOLE_TRY(host_step(ctx, host, word, operand));
    *ret_output = thole_format(ctx, "%.*s:", THOLE_FMT(thole_orchestration_name(ctx)));
    for (size_t i = 0; i < host->values_len; i++)
        *ret_output = thole_format(ctx, "%.*s %s", THOLE_FMT(*ret_output), host->values[i]);
    return THOLE_OK;
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    *ret_output =
        thole_activity_format(act, "%.*s-%.*s", THOLE_FMT(thole_activity_name(act)), THOLE_FMT(input));
    return THOLE_OK;
}

static char sells[] = "call reserve sleep 100 call charge deep 20 call ship";
static char counts[] = "sleep 5 call reserve sleep 5 call reserve deep 200 sleep 5";
static char fails[] = "call reserve throw up";
static const thole_program program = {
    .size = sizeof program,
    .name = "host",
    THOLE_ORCHESTRATIONS({.name = "sells", .run = host_run, .arg = sells, .stack_bytes = 256 * 1024},
                         {.name = "counts", .run = host_run, .arg = counts, .stack_bytes = 1500 * 1000},
                         {.name = "fails", .run = host_run, .arg = fails}),
    THOLE_ACTIVITIES({.name = "reserve", .run = echo}, {.name = "charge", .run = echo},
                     {.name = "ship", .run = echo})};

static void one_function_serves_two_names(void)
{
    thole_test_env *const env = thole_test_create(&program);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("sells"), THOLE_STR("")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR("i-2"), THOLE_STR("counts"), THOLE_STR("")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    check_slice("sells", thole_test_output(env, ID), "sells: reserve-i-1 charge-i-1 ship-i-1");
    CU_ASSERT_EQUAL(thole_test_run(env, THOLE_STR("i-2")), THOLE_INSTANCE_COMPLETED);
    check_slice("counts", thole_test_output(env, THOLE_STR("i-2")), "counts: reserve-i-2 reserve-i-2");
    thole_test_destroy(env);
    CU_ASSERT_EQUAL(atomic_load(&made), atomic_load(&released));
}

static void answers_from_its_state(void)
{
    thole_slice answer;
    thole_test_env *const env = thole_test_create(&program);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("sells"), THOLE_STR("")), THOLE_OK);
    thole_test_advance(env, 50);
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("values"), THOLE_STR("now "), &answer), THOLE_OK);
    check_slice("while it waits", answer, "now sells has 1 values");
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    CU_ASSERT_EQUAL(thole_test_query(env, ID, THOLE_STR("values"), THOLE_STR(""), &answer), THOLE_OK);
    check_slice("after its end", answer, "sells has 3 values");
    thole_test_destroy(env);
    CU_ASSERT_EQUAL(atomic_load(&made), atomic_load(&released));
}

/* ---- random evictions ---- */

static uint64_t seed;

static size_t some(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}

static void disturb(thole_test_env *env, thole_slice id)
{
    switch (some(10)) {
    case 0: thole_test_crash(env); break;
    case 1: thole_test_keep_parked(env); break; /* from now on many of them wait on their stacks */
    case 2: thole_test_cancel(env, id, THOLE_STR("not wanted")); break;
    case 3: thole_test_terminate(env, id, THOLE_STR("at once")); break;
    case 4: thole_test_crash_after(env, some(20)); break;
    case 5: thole_test_pause(env, id); break;
    case 6: thole_test_resume(env, id); break;
    default: thole_test_advance(env, some(40)); break;
    }
}

/* Each state that was made is released once: by evictions, crashes, ends, and when the kit goes. */
static void all_is_released(void)
{
    static const char *const names[] = {"sells", "counts", "fails"};
    enum { ROUNDS = 60, INSTANCES = 6, STEPS = 40 };
    for (seed = 1; seed <= ROUNDS; seed++) {
        uint64_t const round = seed;
        thole_test_env *const env = thole_test_create(&program);
        for (int i = 0; i < STEPS; i++) {
            char id[16];
            (void)snprintf(id, sizeof id, "i-%zu", some(INSTANCES));
            if (thole_test_status(env, thole_slice_from(id)) == THOLE_INSTANCE_UNKNOWN)
                CU_ASSERT_EQUAL(thole_test_start(env, thole_slice_from(id), thole_slice_from(names[some(3)]),
                                                 THOLE_STR("")),
                                THOLE_OK);
            disturb(env, thole_slice_from(id));
            CU_ASSERT_NOT_EQUAL(thole_test_status(env, thole_slice_from(id)), THOLE_INSTANCE_STUCK);
        }
        CU_ASSERT(atomic_load(&released) <= atomic_load(&made));
        thole_test_destroy(env);
        CU_ASSERT_EQUAL(atomic_load(&made), atomic_load(&released));
        seed = round;
    }
    CU_ASSERT(atomic_load(&made) > (size_t)ROUNDS * INSTANCES);
}

/* A parked instance keeps its memory, which is released when it is evicted. */
static void what_is_parked_is_held(void)
{
    thole_test_env *const env = thole_test_create(&program);
    thole_test_keep_parked(env);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, THOLE_STR("counts"), THOLE_STR("")), THOLE_OK);
    CU_ASSERT_EQUAL(atomic_load(&made), atomic_load(&released) + 1);
    thole_test_crash(env);
    CU_ASSERT_EQUAL(atomic_load(&made), atomic_load(&released));
    CU_ASSERT_EQUAL(thole_test_run(env, ID), THOLE_INSTANCE_COMPLETED);
    thole_test_destroy(env);
    CU_ASSERT_EQUAL(atomic_load(&made), atomic_load(&released));
}

/* ---- the kit's reports of memory ---- */

/* Of the leaks, so that a sanitizer of this program is content. */
static void *leaked[4096];
static size_t leaked_len;

static void *leaky_malloc(size_t bytes)
{
    size_t at = 0;
    while (at < leaked_len && leaked[at] != NULL)
        at++;
    CU_ASSERT_FATAL(at < ARRAY_LEN(leaked));
    leaked_len += at == leaked_len;
    return leaked[at] = malloc(bytes);
}

static void leaked_free(void *memory)
{
    for (size_t i = 0; i < leaked_len; i++)
        if (leaked[i] == memory)
            leaked[i] = NULL;
    free(memory);
}

static void leaked_free_all(void)
{
    while (leaked_len > 0)
        free(leaked[--leaked_len]);
}

static thole_status parks_memory(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    void *memory;
    THOLE_TRY(thole_sleep(ctx, 10));
    memory = leaky_malloc(100 + input.len);
    thole_status const status = thole_sleep(ctx, 10);
    *ret_output = thole_format(ctx, "slept");
    leaked_free(memory); /* an eviction does not come here */
    return status;
}

static thole_status forgets_memory(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx;
    void *const memory = leaky_malloc(100);
    *ret_output = input;
    return memory == NULL ? THOLE_NOMEM : THOLE_OK;
}

static thole_status uses_memory(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (size_t i = 0; i < 20; i++) {
        void *const before = leaky_malloc(20 * i), *const after = leaky_malloc(3000);
        leaked_free(before);
        leaked_free(after);
        THOLE_TRY(thole_sleep(ctx, 10));
    }
    *ret_output = input;
    return THOLE_OK;
}

static thole_status hands_memory_over(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    void *const first = malloc(100);
    THOLE_TRY(thole_on_drop(ctx, free, first));
    THOLE_TRY(thole_sleep(ctx, 10));
    *ret_output = input;
    return THOLE_OK;
}

static const thole_program memory = {.size = sizeof memory,
                                     .name = "memory",
                                     THOLE_ORCHESTRATIONS({.name = "parks", .run = parks_memory},
                                                          {.name = "forgets", .run = forgets_memory},
                                                          {.name = "uses", .run = uses_memory},
                                                          {.name = "hands_over", .run = hands_memory_over})};

static thole_instance_status ends(const char *orchestration, const char *input, char ret_output[1024])
{
    thole_test_env *const env = thole_test_create(&memory);
    CU_ASSERT_EQUAL(thole_test_start(env, ID, thole_slice_from(orchestration), thole_slice_from(input)),
                    THOLE_OK);
    thole_instance_status const status = thole_test_run(env, ID);
    (void)snprintf(ret_output, 1024, "%.*s", THOLE_FMT(thole_test_output(env, ID)));
    thole_test_destroy(env);
    return status;
}

static void loses(const char *orchestration, const char *input, const char *when, const char *where)
{
    char output[1024];
    CU_ASSERT_EQUAL(ends(orchestration, input, output), THOLE_INSTANCE_STUCK);
    bool const told = strstr(output, "bytes of malloc() are lost when it is dropped") != NULL &&
                      strstr(output, when) != NULL && strstr(output, where) != NULL;
    CU_ASSERT(told);
    if (!told)
        fprintf(stderr, "  %s: %s\n", orchestration, output);
}

static void lost_memory_is_found(void)
{
    if (SANITIZED_ADDRESS || SANITIZED_THREAD)
        return; /* they have a malloc() of their own, and AddressSanitizer a search for leaks */
    for (size_t len = 0; len < 900; len += 50) {
        char input[1000] = "";
        memset(input, 'x', len);
        loses("parks", input, "after event 4", "parks_memory");
    }
    loses("forgets", "", "after event 2", "thole_on_drop()");
    leaked_free_all();
}

static void what_is_not_lost_is_not_found(void)
{
    char output[1024];
    for (int i = 0; i < 20; i++) {
        CU_ASSERT_EQUAL(ends("uses", "used", output), THOLE_INSTANCE_COMPLETED);
        CHECK_STR("uses", output, "used");
        CU_ASSERT_EQUAL(ends("hands_over", "over", output), THOLE_INSTANCE_COMPLETED);
        CHECK_STR("hands over", output, "over");
    }
    leaked_free_all();
}

/* ---- refused entries ---- */

static void stacks_out_of_range_are_refused(void)
{
    static const struct {
        size_t bytes;
        bool right;
    } rows[] = {{0, true},        {1, false},       {65535, false},
                {65536, true},    {65537, true},    {8 * 1024 * 1024, true},
                {8388609, false}, {SIZE_MAX, false}};
    int const err = dup(STDERR_FILENO);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_program const asked = {
            .size = sizeof asked,
            .name = "asked",
            THOLE_ORCHESTRATIONS(
                {.name = "fails", .run = host_run, .arg = fails, .stack_bytes = rows[i].bytes})};
        CU_ASSERT_PTR_NOT_NULL(freopen("/dev/null", "w", stderr));
        thole_test_env *const env = thole_test_create(&asked);
        (void)fflush(stderr);
        CU_ASSERT_EQUAL(dup2(err, STDERR_FILENO), STDERR_FILENO);
        CU_ASSERT_EQUAL(env != NULL, rows[i].right);
        thole_test_destroy(env);
    }
    (void)close(err);
}

static const struct thole_test tests[] = {
    {"one function serves two names", one_function_serves_two_names},
    {"answers from its state", answers_from_its_state},
    {"all is released", all_is_released},
    {"what is parked is held", what_is_parked_is_held},
    {"lost memory is found", lost_memory_is_found},
    {"what is not lost is not found", what_is_not_lost_is_not_found},
    {"stacks out of range are refused", stacks_out_of_range_are_refused},
};
THOLE_TEST_MAIN("kit_host", tests)
