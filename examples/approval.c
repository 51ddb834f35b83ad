/*
 * An expense that a person approves: a question, reminders, an end.
 *
 *   thole dev -- build/release/examples/approval run
 *   thole start expense --id expense-7 --input "taxi, 48.00"
 *   thole query expense-7 state
 *   thole signal expense-7 decision approved
 *
 * The instance waits for days and costs nothing but its rows meanwhile. A decision that comes before anybody
 * waits for it, or even before the instance was started, is kept.
 */
#include <thole/program.h>

enum { REMINDERS_MAX = 3 };
#define DAY_MS (24ull * 3600 * 1000)

struct expense {
    unsigned reminders;
    bool decided;
};

/* Runs on the parked instance, or when it has ended: it sees what the orchestration left, and changes
 * nothing. */
static thole_status state(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    const struct expense *expense = arg;
    (void)input;
    *ret_output = expense->decided
                      ? THOLE_STR("decided")
                      : thole_format(ctx, "waits for a decision, %u reminders", expense->reminders);
    return THOLE_OK;
}

static thole_status tell(thole_ctx *ctx, const char *what, thole_slice request)
{
    thole_slice const text = thole_format(ctx, "%s: %.*s", what, THOLE_FMT(request));
    return thole_await(ctx, thole_call(ctx, THOLE_STR("mail"), text), NULL);
}

static thole_status wait_for_decision(thole_ctx *ctx, struct expense *expense, thole_slice request,
                                      thole_slice *ret_decision)
{
    size_t first;
    thole_task const decision = thole_event(ctx, THOLE_STR("decision"));
    THOLE_TRY(tell(ctx, "please decide", request));
    for (;;) {
        thole_task const day = thole_timer(ctx, DAY_MS);
        THOLE_TRY(thole_await_first(ctx, (thole_task[]){decision, day}, 2, &first));
        if (first == 0) {
            thole_cancel(ctx, day, THOLE_STR("decided"));
            return thole_await(ctx, decision, ret_decision);
        }
        if (expense->reminders == REMINDERS_MAX)
            return thole_throw_as(ctx, THOLE_STR("no_answer"), "nobody decided within %d days",
                                  REMINDERS_MAX + 1);
        expense->reminders++;
        THOLE_TRY(tell(ctx, "reminder", request));
    }
}

static thole_status expense(thole_ctx *ctx, thole_slice request, thole_slice *ret_output)
{
    struct expense *expense =
        thole_alloc(ctx, sizeof *expense); /* so that it can be asked when it has ended */
    thole_slice decision;
    if (expense == NULL)
        return THOLE_LIMIT;
    thole_on_query(ctx, THOLE_STR("state"), state, expense);
    thole_set_status(ctx, THOLE_STR("waits for a decision"));
    THOLE_TRY(wait_for_decision(ctx, expense, request, &decision));
    expense->decided = true;
    thole_set_status(ctx, decision);
    if (!thole_slice_equal(decision, THOLE_STR("approved"))) {
        *ret_output = thole_format(ctx, "not paid: %.*s", THOLE_FMT(decision));
        return tell(ctx, "not approved", request);
    }
    return thole_await(ctx, thole_call(ctx, THOLE_STR("pay"), request), ret_output);
}

/* ---- activities ---- */

static thole_status mail(thole_activity *act, thole_slice text, thole_slice *ret_output)
{
    (void)act, (void)text, (void)ret_output; /* here a mail would go out */
    return THOLE_OK;
}

static thole_status pay(thole_activity *act, thole_slice request, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "paid: %.*s", THOLE_FMT(request));
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {{.name = "expense", .run = expense}};
static const thole_activity_entry activities[] = {{.name = "mail", .run = mail}, {.name = "pay", .run = pay}};
static const thole_program program = {.size = sizeof program,
                                      .name = "approval",
                                      THOLE_ORCHESTRATIONS_OF(orchestrations),
                                      THOLE_ACTIVITIES_OF(activities)};

int main(int argc, char **argv)
{
    return thole_main(argc, argv, &program);
}
