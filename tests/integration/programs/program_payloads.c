/*
 * The user's program of integration.references: orchestrations that hand payloads on. An activity returns as
 * many bytes as it was given, each the next letter, so that no input is equal to its result.
 */
#include "thole/program.h"

static thole_status next(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    uint8_t *const bytes = thole_activity_alloc(act, input.len);
    for (size_t i = 0; bytes != NULL && i < input.len; i++)
        bytes[i] = input.ptr[i] == 'z' ? 'a' : (uint8_t)(input.ptr[i] + 1);
    *ret_output = (thole_slice){bytes, bytes == NULL ? 0 : input.len};
    return THOLE_OK;
}

/* Passes its input to an activity, and returns the result. */
static thole_status relay(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("next"), input), ret_output);
}

/* Each result to the next activity. */
static thole_status chain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice value = input;
    for (int i = 0; i < 4; i++)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("next"), value), &value));
    *ret_output = value;
    return THOLE_OK;
}

/* Passes its input to several activities, one after the other. */
static thole_status saga(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (int i = 0; i < 3; i++)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("next"), input), NULL));
    *ret_output = input;
    return THOLE_OK;
}

/* Passes its input to several activities at once. */
static thole_status fan(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[8];
    for (size_t i = 0; i < 8; i++)
        tasks[i] = thole_call(ctx, THOLE_STR("next"), input);
    *ret_output = THOLE_STR("done");
    return thole_await_all(ctx, tasks, 8, NULL);
}

/* A second execution with what came with an event, which goes to a child and to an activity. */
static thole_status again(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice data;
    if (input.len > 1)
        return thole_await(ctx, thole_child(ctx, THOLE_STR("relay"), input, NULL), ret_output);
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), &data));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("next"), data), &data));
    return thole_continue_as_new(ctx, data, 0);
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {
        {"relay", relay}, {"chain", chain}, {"saga", saga}, {"fan", fan}, {"again", again}};
    static const thole_activity_entry activities[] = {{"next", next}};
    thole_program const program = {
        .size = sizeof program,
        .name = "payloads",
        .orchestrations = orchestrations,
        .orchestrations_len = sizeof orchestrations / sizeof orchestrations[0],
        .activities = activities,
        .activities_len = sizeof activities / sizeof activities[0],
    };
    return thole_main(argc, argv, &program);
}
