/* Instances that messages of streams start and signal, and that requests call. */
#include "thole/program.h"

/* Gives its input. */
static thole_status order(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx;
    *ret_output = input;
    return THOLE_OK;
}

/* The data of its events "item" in the order in which they came, until one is "end". */
static thole_status collect(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice all = input;
    for (;;) {
        thole_slice item;
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), &item));
        if (thole_slice_equal(item, THOLE_STR("end")))
            break;
        all = thole_format(ctx, "%.*s%.*s ", THOLE_FMT(all), THOLE_FMT(item));
    }
    *ret_output = all;
    return THOLE_OK;
}

static thole_status refuse(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    return thole_throw(ctx, "no %.*s", THOLE_FMT(input));
}

enum { STEPS = 12 };

/* An event for each step, a turn each, and two with the last one. */
static thole_status announce(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (int i = 0; i < STEPS; i++) {
        thole_emit(ctx, THOLE_STR("com.example.step"),
                   thole_format(ctx, "{\"of\":\"%.*s\",\"step\":%d}", THOLE_FMT(input), i));
        THOLE_TRY(thole_await(ctx, thole_timer(ctx, 40), NULL));
    }
    thole_emit(ctx, THOLE_STR("com.example.almost"), THOLE_STR("over"));
    thole_emit(ctx, THOLE_STR("over"), THOLE_STR(""));
    *ret_output = THOLE_STR("announced");
    return THOLE_OK;
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {
        {"order", order, 0}, {"collect", collect, 0}, {"refuse", refuse, 0}, {"announce", announce, 0}};
    thole_program const program = {.size = sizeof program,
                                   .name = "bindings",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = 4};
    return thole_main(argc, argv, &program);
}
