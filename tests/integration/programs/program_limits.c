/*
 * The user's program of integration.limits: orchestrations and activities that want more than they may have.
 * Inputs are numbers.
 */
#include "thole/program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t number(thole_slice input)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(input));
    return strtoull(text, NULL, 10);
}

/* Takes no event but this one. */
static thole_status waits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

static thole_status takes(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (size_t left = number(input); left > 0; left--)
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), NULL));
    *ret_output = input;
    return THOLE_OK;
}

static thole_status schedules(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task last = thole_timer(ctx, 1);
    for (size_t left = number(input); left > 0; left--)
        last = thole_call(ctx, THOLE_STR("echo"), THOLE_STR("x"));
    THOLE_TRY(thole_await(ctx, last, NULL));
    *ret_output = input;
    return THOLE_OK;
}

static thole_status child(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx;
    *ret_output = input;
    return THOLE_OK;
}

static thole_status all_of(thole_ctx *ctx, size_t n, thole_task (*make)(thole_ctx *ctx))
{
    thole_task *const tasks = thole_alloc(ctx, n * sizeof *tasks);
    for (size_t i = 0; tasks != NULL && i < n; i++)
        tasks[i] = make(ctx);
    return thole_await_all(ctx, tasks, tasks == NULL ? 0 : n, NULL);
}

static thole_task one_child(thole_ctx *ctx)
{
    return thole_child(ctx, THOLE_STR("child"), THOLE_STR("x"), NULL);
}

static thole_status family(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    *ret_output = input;
    return all_of(ctx, number(input), one_child);
}

static thole_task one_output(thole_ctx *ctx)
{
    return thole_call(ctx, THOLE_STR("output_of"), THOLE_STR("262144"));
}

static thole_status outputs(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    *ret_output = input;
    return all_of(ctx, number(input), one_output);
}

static thole_status calls(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, input, THOLE_STR("x")), ret_output);
}

static thole_status one_output_of(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_status const status = thole_await(ctx, thole_call(ctx, THOLE_STR("output_of"), input), ret_output);
    if (status != THOLE_OK)
        return status;
    *ret_output = THOLE_STR("fits");
    return THOLE_OK;
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    *ret_output = input;
    return THOLE_OK;
}

static thole_status output_of(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    size_t const len = number(input);
    uint8_t *const bytes = thole_activity_alloc(act, len);
    if (bytes == NULL)
        return THOLE_NOMEM;
    memset(bytes, 'o', len);
    *ret_output = (thole_slice){bytes, len};
    return THOLE_OK;
}

static char *volatile eaten; /* so that no compiler leaves it out */

/* Until there is no more. */
static thole_status eats(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    enum { PIECE = 1 << 20 };
    size_t pieces = 0;
    (void)input, (void)ret_output;
    for (char *piece; (piece = malloc(PIECE)) != NULL; pieces++) {
        memset(piece, 1, PIECE);
        eaten = piece;
    }
    return thole_activity_fail_final(act, THOLE_STR("hunger"), "%s",
                                     pieces > 10 ? "there was some memory" : "there was no memory");
}

/* As a library does that does not look. */
static thole_status eats_blindly(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    enum { PIECE = 1 << 20 };
    (void)act, (void)input, (void)ret_output;
    for (size_t i = 0; i < SIZE_MAX; i++) {
        eaten = malloc(PIECE);
        memset(eaten, 1, PIECE);
    }
    return THOLE_OK;
}

/* Memory from thole itself is limited, on a thread too. */
static thole_status eats_of_thole(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    enum { PIECE = 1 << 20, PIECES_MAX = 10000 };
    size_t pieces = 0;
    (void)input, (void)ret_output;
    while (pieces < PIECES_MAX && thole_activity_alloc(act, PIECE) != NULL)
        pieces++;
    return thole_activity_fail_final(act, THOLE_STR("hunger"), "%zu MiB", pieces);
}

static const thole_activity_options apart = {.size = sizeof apart, .isolation = THOLE_ISOLATION_PROCESS};
static const thole_orchestration_entry orchestrations[] = {
    {.name = "waits", .run = waits},         {.name = "takes", .run = takes},
    {.name = "schedules", .run = schedules}, {.name = "child", .run = child},
    {.name = "family", .run = family},       {.name = "outputs", .run = outputs},
    {.name = "calls", .run = calls},         {.name = "one_output_of", .run = one_output_of}};
static const thole_activity_entry activities[] = {
    {.name = "echo", .run = echo},
    {.name = "output_of", .run = output_of},
    {.name = "eats", .run = eats, .options = &apart},
    {.name = "eats_blindly", .run = eats_blindly, .options = &apart},
    {.name = "eats_of_thole", .run = eats_of_thole},
};

int main(int argc, char **argv)
{
    static const thole_program program = {.size = sizeof program,
                                          .name = "limits",
                                          .orchestrations = orchestrations,
                                          .orchestrations_len =
                                              sizeof orchestrations / sizeof orchestrations[0],
                                          .activities = activities,
                                          .activities_len = sizeof activities / sizeof activities[0]};
    return thole_main(argc, argv, &program);
}
