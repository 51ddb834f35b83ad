/*
 * Orchestrations that crash, in every way: after an activity, so that there is a history, when the name ends
 * in
 * "_later", else at once. "steady" does not.
 */
#include "thole/program.h"
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int zero;
static int *volatile nowhere;

static void write_null(void)
{
    *nowhere = 1;
}

static void call_abort(void)
{
    abort();
}

static void call_exit(void)
{
    exit(3);
}

static void call_exit_now(void)
{
    _exit(4);
}

static void large_local(void)
{
    volatile char local[200 * 1024];
    memset((char *)local, 1, sizeof local);
    zero = local[zero] - 1;
}

static void divide(void)
{
    zero = (int)getpid() / zero;
}

static void jump(void)
{
    void (*volatile where)(void) = (void (*)(void))(uintptr_t)0x1234560;
    where();
    zero = 0; /* no tail call */
}

/* Of a signal that nobody listens for: the process ends without a word. */
static void raise_unheard(void)
{
    (void)raise(SIGALRM);
}

static void loop(void)
{
    while (zero == 0)
        ;
}

/* A turn of 8 s does not crash, if that is allowed. */
static void compute_long(void)
{
    struct timespec now, since;
    (void)clock_gettime(CLOCK_MONOTONIC, &since);
    do
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec - since.tv_sec < 8);
}

static const struct way {
    const char *name;
    void (*crash)(void);
} ways[] = {
    {"null", write_null},       {"abort", call_abort}, {"exit", call_exit}, {"exit_now", call_exit_now},
    {"large", large_local},     {"divide", divide},    {"jump", jump},      {"loop", loop},
    {"unheard", raise_unheard}, {"long", compute_long}};

/* The first word says how. With $CRASHES_MENDED, and in another build, it does not crash any more. */
static void crash(thole_slice input)
{
    const uint8_t *const blank = input.len == 0 ? NULL : memchr(input.ptr, ' ', input.len);
    thole_slice const how = {input.ptr, blank == NULL ? input.len : (size_t)(blank - input.ptr)};
#ifdef MENDED
    return;
#endif
    if (getenv("CRASHES_MENDED") != NULL)
        return;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strlen(ways[i].name) == how.len && memcmp(ways[i].name, how.ptr, how.len) == 0)
            ways[i].crash();
}

static thole_status at_once(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx;
    crash(input);
    *ret_output = THOLE_STR("mended");
    return THOLE_OK;
}

static thole_status later(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), NULL));
    crash(input);
    *ret_output = THOLE_STR("mended");
    return THOLE_OK;
}

static void release(void *arg)
{
    crash(thole_slice_from(arg));
}

/* Crashes when it leaves memory. */
static thole_status drops(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_on_drop(ctx, release, (void *)(uintptr_t)thole_cstr(ctx, input)));
    for (int i = 0; i < 1000; i++)
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output));
    return THOLE_OK;
}

static thole_status answer(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)arg;
    crash(input);
    *ret_output = THOLE_STR("well");
    return THOLE_OK;
}

static thole_status asked(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    thole_on_query(ctx, THOLE_STR("how"), answer, NULL);
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

static thole_status steady(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (int i = 0; i < 3; i++)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output));
    return THOLE_OK;
}

/* When it was done, for everybody to see. */
static void effect(thole_activity *act)
{
    struct timespec now;
    char line[512];
    const char *const path = getenv("ORDERS_EFFECTS");
    int const fd = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    int const n = snprintf(line, sizeof line, "%.*s %lld\n", THOLE_FMT(thole_activity_instance(act)),
                           (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    ssize_t const written = write(fd, line, (size_t)n);
    (void)written;
    (void)close(fd);
}

static thole_status work(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    const char *const ms = getenv("CRASHES_WORK_MS");
    if (ms != NULL)
        THOLE_TRY(thole_activity_wait(act, strtoul(ms, NULL, 10)));
    effect(act);
    *ret_output = input;
    return THOLE_OK;
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry all[] = {
        {"at_once", at_once}, {"later", later},   {"roomy", later, .stack_bytes = 256 * 1024},
        {"asked", asked},     {"steady", steady}, {"drops", drops}};
    static const thole_activity_entry activities[] = {{"work", work}};
    thole_program const program = {.size = sizeof program,
                                   .name = "crashes",
                                   .orchestrations = all,
                                   .orchestrations_len = sizeof all / sizeof all[0],
                                   .activities = activities,
                                   .activities_len = sizeof activities / sizeof activities[0]};
    const char *const folder = getenv("CRASHES_FOLDER"); /* for core dumps */
    if (folder != NULL && chdir(folder) != 0)
        return 1;
    return thole_main(argc, argv, &program);
}
