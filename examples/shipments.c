/*
 * An order with shipments: each is a child orchestration, with a history and a life of its own.
 *
 *   thole dev -- build/release/examples/shipments run
 *   thole run order --id order-5 --input book,lamp,chair
 *   thole list --parent order-5
 *
 * When one shipment fails the order fails: the children that still run are asked to cancel, and each of them
 * puts back what it has picked. Those that are through are called back.
 */
#include <string.h>
#include <thole/program.h>

enum { SHIPMENTS_MAX = 20 };

/* ---- the child: one item ---- */

static thole_status ship(thole_ctx *ctx, thole_slice item, thole_saga *undo, thole_slice *ret_parcel)
{
    static const thole_call_options options = {
        .size = sizeof options,
        .total_timeout_ms = 24ull * 3600 * 1000,
        .retry = {.tries_max = 100, .first_delay_ms = 60 * 1000, .factor = 2, .max_delay_ms = 3600 * 1000}};
    thole_saga_add(ctx, undo, THOLE_STR("put_back"), item, NULL);
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("pick"), item), NULL));
    return thole_await(ctx, thole_call_with(ctx, THOLE_STR("collect"), item, &options), ret_parcel);
}

static thole_status shipment(thole_ctx *ctx, thole_slice item, thole_slice *ret_output)
{
    thole_saga undo = {0};
    thole_status const status = ship(ctx, item, &undo, ret_output);
    if (status != THOLE_OK)
        THOLE_TRY(thole_saga_compensate(ctx, &undo));
    return status;
}

/* ---- the parent ---- */

static size_t start_shipments(thole_ctx *ctx, thole_slice items, thole_task *tasks)
{
    size_t n = 0;
    while (items.len > 0 && n < SHIPMENTS_MAX) {
        const uint8_t *comma = memchr(items.ptr, ',', items.len);
        size_t const len = comma == NULL ? items.len : (size_t)(comma - items.ptr);
        thole_slice const id = thole_format(ctx, "%.*s/%zu", THOLE_FMT(thole_instance_id(ctx)), n + 1);
        thole_child_options const options = {.size = sizeof options, .instance = id};
        tasks[n++] = thole_child(ctx, THOLE_STR("shipment"), (thole_slice){items.ptr, len}, &options);
        size_t const taken = comma == NULL ? len : len + 1;
        items = (thole_slice){items.ptr + taken, items.len - taken};
    }
    return n;
}

/* The children's ends in the order in which they come. */
static thole_status collect_parcels(thole_ctx *ctx, thole_task *tasks, size_t n, thole_saga *undo,
                                    thole_slice *ret_output)
{
    size_t first;
    while (n > 0) {
        thole_slice parcel;
        THOLE_TRY(thole_await_first(ctx, tasks, n, &first));
        thole_task const ended = tasks[first];
        memmove(&tasks[first], &tasks[first + 1], (--n - first) * sizeof *tasks);
        thole_status const status = thole_await(ctx, ended, &parcel);
        if (status != THOLE_OK && !thole_is_cancelled(ctx)) {
            thole_failure const failure = thole_task_failure(ctx, ended);
            return thole_throw_as(ctx, failure.type, "a shipment failed: %.*s", THOLE_FMT(failure.message));
        }
        THOLE_TRY(status);
        thole_saga_add(ctx, undo, THOLE_STR("call_back"), parcel, NULL);
        *ret_output = thole_format(ctx, "%.*s%s%.*s", THOLE_FMT(*ret_output), ret_output->len > 0 ? ", " : "",
                                   THOLE_FMT(parcel));
    }
    return THOLE_OK;
}

static thole_status order(thole_ctx *ctx, thole_slice items, thole_slice *ret_output)
{
    thole_task tasks[SHIPMENTS_MAX];
    thole_saga undo = {0};
    size_t const n = start_shipments(ctx, items, tasks);
    thole_status const status = collect_parcels(ctx, tasks, n, &undo, ret_output);
    if (status != THOLE_OK)
        THOLE_TRY(thole_saga_compensate(ctx, &undo));
    return status;
}

/* ---- activities ---- */

static thole_status pick(thole_activity *act, thole_slice item, thole_slice *ret_output)
{
    (void)ret_output;
    if (thole_slice_equal(item, THOLE_STR("unicorn")))
        return thole_activity_fail_final(act, THOLE_STR("out_of_stock"), "there is no %.*s", THOLE_FMT(item));
    return THOLE_OK;
}

static thole_status collect(thole_activity *act, thole_slice item, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "parcel with %.*s", THOLE_FMT(item));
    return THOLE_OK;
}

static thole_status undo_step(thole_activity *act, thole_slice what, thole_slice *ret_output)
{
    (void)act, (void)what, (void)ret_output;
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {{.name = "order", .run = order},
                                                           {.name = "shipment", .run = shipment}};
static const thole_activity_entry activities[] = {{.name = "pick", .run = pick},
                                                  {.name = "collect", .run = collect},
                                                  {.name = "put_back", .run = undo_step},
                                                  {.name = "call_back", .run = undo_step}};
static const thole_program program = {.size = sizeof program,
                                      .name = "shipments",
                                      THOLE_ORCHESTRATIONS_OF(orchestrations),
                                      THOLE_ACTIVITIES_OF(activities)};

int main(int argc, char **argv)
{
    return thole_main(argc, argv, &program);
}
