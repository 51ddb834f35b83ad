/*
 * A shopping cart that lives on events: add, remove, pay. Left alone for half an hour it is given up.
 *
 *   thole dev -- build/release/examples/cart run
 *   thole start cart --id cart-3 --event add --event-data book     (the first event starts it)
 *   thole signal cart-3 add lamp
 *   thole query cart-3 items
 *   thole signal cart-3 pay visa
 *
 * Anybody who may publish can raise events, with any NATS client: docs/tutorial.md shows the message. The
 * cart is in the state, so that it survives continue-as-new, which keeps the history of a very busy customer
 * short.
 */
#include <inttypes.h>
#include <thole/program.h>

#define IDLE_MS (30ull * 60 * 1000)

enum wish { ADD, REMOVE, PAY, IDLE, WISHES };

static uint64_t pieces_of(thole_ctx *ctx, thole_slice item)
{
    thole_slice value;
    uint64_t n = 0;
    return thole_state_get(ctx, item, &value) == THOLE_OK && thole_slice_u64(value, &n) == THOLE_OK ? n : 0;
}

static void put(thole_ctx *ctx, thole_slice item, uint64_t pieces)
{
    if (item.len == 0 || item.len > 64)
        return; /* no valid key of the state: ignored */
    if (pieces > 0)
        thole_state_set(ctx, item, thole_format(ctx, "%" PRIu64, pieces));
    else
        thole_state_remove(ctx, item);
}

static thole_slice list(thole_ctx *ctx)
{
    thole_slice item = {0}, pieces, text = {0};
    while (thole_state_next(ctx, item, &item, &pieces) == THOLE_OK)
        text = thole_format(ctx, "%.*s%s%.*s %.*s", THOLE_FMT(text), text.len > 0 ? ", " : "",
                            THOLE_FMT(pieces), THOLE_FMT(item));
    return text;
}

static thole_status items(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg, (void)input;
    *ret_output = list(ctx);
    return THOLE_OK;
}

static void listen_for(thole_ctx *ctx, thole_task waits[WISHES], enum wish wish)
{
    static const char *const names[] = {"add", "remove", "pay"};
    waits[wish] = thole_event(ctx, thole_slice_from(names[wish]));
}

static void restart_clock(thole_ctx *ctx, thole_task waits[WISHES])
{
    if (waits[IDLE].id != 0)
        thole_cancel(ctx, waits[IDLE], THOLE_STR("busy"));
    waits[IDLE] = thole_timer(ctx, IDLE_MS);
}

static thole_status cart(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task waits[WISHES] = {{0}};
    thole_slice what, content;
    size_t wish;
    thole_on_query(ctx, THOLE_STR("items"), items, NULL);
    for (enum wish w = ADD; w < IDLE; w++)
        listen_for(ctx, waits, w);
    while (!thole_should_continue_as_new(ctx)) {
        restart_clock(ctx, waits);
        THOLE_TRY(thole_await_first(ctx, waits, WISHES, &wish));
        THOLE_TRY(thole_await(ctx, waits[wish], &what));
        switch ((enum wish)wish) {
        case ADD: put(ctx, what, pieces_of(ctx, what) + 1); break;
        case REMOVE: put(ctx, what, 0); break;
        case PAY:
            content = list(ctx);
            what = thole_format(ctx, "%.*s by %.*s", THOLE_FMT(content), THOLE_FMT(what));
            return thole_await(ctx, thole_call(ctx, THOLE_STR("sell"), what), ret_output);
        case IDLE:
        case WISHES: return thole_throw_as(ctx, THOLE_STR("given_up"), "left alone");
        }
        listen_for(ctx, waits, (enum wish)wish); /* the other waits stand */
        thole_set_status(ctx, list(ctx));
    }
    return thole_continue_as_new(ctx, input, THOLE_VERSION_SAME);
}

static thole_status sell(thole_activity *act, thole_slice what, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "sold: %.*s", THOLE_FMT(what));
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {{.name = "cart", .run = cart}};
static const thole_activity_entry activities[] = {{.name = "sell", .run = sell}};
static const thole_program program = {.size = sizeof program,
                                      .name = "cart",
                                      THOLE_ORCHESTRATIONS_OF(orchestrations),
                                      THOLE_ACTIVITIES_OF(activities)};

int main(int argc, char **argv)
{
    return thole_main(argc, argv, &program);
}
