/* A program whose activities say which trace they belong to: "TRACEPARENT|TRACESTATE". */
#include "thole/program.h"

static thole_status inner(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("tell"), input), ret_output);
}

/* An activity, one in a process, a child's one; "go"; an activity; and all again in a second execution. */
static thole_status traced(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice here, apart, child, late;
    thole_log(ctx, THOLE_LOG_INFO, "begins");
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("tell"), input), &here));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("tell_apart"), input), &apart));
    THOLE_TRY(thole_await(ctx, thole_child(ctx, THOLE_STR("inner"), input, NULL), &child));
    thole_set_status(ctx, THOLE_STR("waits"));
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("tell"), input), &late));
    thole_slice const all =
        thole_format(ctx, "%.*s\n%.*s\n%.*s\n%.*s\n%.*s", THOLE_FMT(input), THOLE_FMT(here), THOLE_FMT(apart),
                     THOLE_FMT(child), THOLE_FMT(late));
    if (input.len == 0)
        return thole_continue_as_new(ctx, all, 0);
    *ret_output = all;
    return THOLE_OK;
}

static thole_status tell(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    thole_slice const parent = thole_activity_traceparent(act), state = thole_activity_tracestate(act);
    (void)input;
    *ret_output = thole_activity_format(act, "%.*s|%.*s", THOLE_FMT(parent), THOLE_FMT(state));
    return THOLE_OK;
}

int main(int argc, char **argv)
{
    static const thole_activity_options apart = {.size = sizeof(thole_activity_options),
                                                 .isolation = THOLE_ISOLATION_PROCESS};
    static const thole_orchestration_entry orchestrations[] = {{"traced", traced, 0}, {"inner", inner, 0}};
    static const thole_activity_entry activities[] = {{"tell", tell}, {"tell_apart", tell, &apart}};
    thole_program const program = {.size = sizeof program,
                                   .name = "trace",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = 2,
                                   .activities = activities,
                                   .activities_len = 2};
    return thole_main(argc, argv, &program);
}
