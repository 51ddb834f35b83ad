/*
 * A web shop whose parts speak four languages. The shop (Python) publishes CloudEvents to a stream; a rule of
 * `thole bind` starts this orchestration for each order; a worker in Go charges the card, one in Node ships.
 * What the customer says meanwhile comes as an event, too, and stops a charge that runs. Each step is emitted
 * as a CloudEvent: the shop listens. webshop.sh runs all of it.
 */
#include "thole/orchestration.h"
#include "thole/program.h"

static thole_call_options in_queue(const char *queue)
{
    return (thole_call_options){.size = sizeof(thole_call_options),
                                .queue = thole_slice_from(queue),
                                .retry = {.tries_max = 5, .first_delay_ms = 100}};
}

static void tell(thole_ctx *ctx, const char *type, thole_slice order)
{
    thole_emit(ctx, thole_slice_from(type), order);
}

static thole_status order(thole_ctx *ctx, thole_slice order, thole_slice *ret_output)
{
    thole_call_options const payments = in_queue("payments"), parcels = in_queue("parcels");
    size_t first;
    thole_task const charge = thole_call_with(ctx, THOLE_STR("charge"), order, &payments);
    thole_task const withdrawn = thole_event(ctx, THOLE_STR("withdrawn"));
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){charge, withdrawn}, 2,
                              &first)); /* the charge that lost is cancelled */
    if (first == 1) {
        tell(ctx, "com.example.order.cancelled", order);
        *ret_output = THOLE_STR("cancelled");
        return THOLE_OK;
    }
    tell(ctx, "com.example.order.paid", order);
    THOLE_TRY(thole_await(ctx, thole_call_with(ctx, THOLE_STR("ship"), order, &parcels), ret_output));
    tell(ctx, "com.example.order.shipped", *ret_output);
    return THOLE_OK;
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {{.name = "order", .run = order}};
    static const thole_program program = {
        .size = sizeof program, .name = "webshop", THOLE_ORCHESTRATIONS_OF(orchestrations)};
    return thole_main(argc, argv, &program);
}
