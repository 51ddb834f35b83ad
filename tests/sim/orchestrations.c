#include "orchestrations.h"
#include <stdlib.h>
#include <string.h>

enum { FAN_MAX = 40 };

/* So that a turn which schedules many does not fit into one record. */
#define LINE                                                                                                 \
    "an order that goes on and on, with a line for each thing, and a line for each price, and a line for "   \
    "whoever has to sign, and another one for whoever has to be told that it was signed, and when; "
#define LONG LINE LINE LINE LINE LINE LINE

/* ---- inputs ---- */

static thole_slice part(thole_slice input, int n)
{
    for (; n >= 0; n--) {
        const uint8_t *bar = input.len == 0 ? NULL : memchr(input.ptr, '|', input.len);
        size_t const len = bar == NULL ? input.len : (size_t)(bar - input.ptr);
        if (n == 0)
            return (thole_slice){input.ptr, len};
        input = bar == NULL ? (thole_slice){0} : (thole_slice){bar + 1, input.len - len - 1};
    }
    return input;
}

static size_t letters(thole_slice input)
{
    return part(input, 0).len;
}

static thole_slice friend_of(thole_slice input)
{
    return part(input, 1);
}

static bool is_text(thole_slice slice, const char *text)
{
    return thole_slice_equal(slice, thole_slice_from(text));
}

bool sim_emits;
bool sim_strangers;

static void emit(thole_ctx *ctx, const char *type, size_t n)
{
    if (sim_emits)
        thole_emit(ctx, thole_slice_from(type), thole_format(ctx, "%zu", n));
}

/* ---- activities and timers ---- */

/* One after the other; each takes what the last one gave. */
static thole_status sequence(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice value = input;
    for (int i = 0; i < 4; i++) {
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), value), &value));
        emit(ctx, "work.done", (size_t)i);
    }
    *ret_output = value;
    return THOLE_OK;
}

/* As many at once as the input has letters; all of them are awaited. */
static thole_status fan(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task tasks[FAN_MAX] = {{0}};
    size_t const n = letters(input) < FAN_MAX ? letters(input) : FAN_MAX;
    for (size_t i = 0; i < n; i++)
        tasks[i] = thole_call(ctx, THOLE_STR("work"),
                              thole_format(ctx, "part %zu of %s", i, n > 12 ? LONG : "an order"));
    THOLE_TRY(thole_await_all(ctx, tasks, n, NULL));
    for (size_t i = 0; i < n; i++)
        emit(ctx, "part", i);
    *ret_output = thole_format(ctx, "%zu parts", n);
    return THOLE_OK;
}

/* An activity against a timer; the loser is cancelled. Twice, then a timer alone. */
static thole_status race(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t winner, won = 0;
    for (int i = 0; i < 2; i++) {
        thole_task const charge = thole_call(ctx, THOLE_STR("slow"), input);
        thole_task const limit = thole_timer(ctx, 800);
        THOLE_TRY(thole_await_any(ctx, (thole_task[]){charge, limit}, 2, &winner));
        won += winner == 0;
    }
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 50), NULL));
    *ret_output = thole_format(ctx, "%zu", won);
    return THOLE_OK;
}

/* Cancellable: what was done is undone, in a handler that is not cancelled itself. */
static thole_status saga(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    thole_status status = thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), NULL);
    if (status == THOLE_OK)
        status = thole_await(ctx, thole_timer(ctx, 1500), NULL);
    if (status == THOLE_OK)
        status = thole_await(ctx, thole_call(ctx, THOLE_STR("stubborn"), input), NULL);
    if (status == THOLE_CANCELLED &&
        thole_await(ctx, thole_call(ctx, THOLE_STR("undo"), input), NULL) != THOLE_OK)
        return thole_throw(ctx, "could not be undone");
    return status;
}

/* An activity fails often; the orchestration then fails in its own words. */
static thole_status fails(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const task = thole_call(ctx, THOLE_STR("flaky"), input);
    thole_task const other = thole_call(ctx, THOLE_STR("slow"), input); /* often outstanding at the end */
    thole_status const status = thole_await(ctx, task, ret_output);
    if (status == THOLE_APP)
        return thole_throw(ctx, "the activity said: %.*s", THOLE_FMT(thole_task_error(ctx, task)));
    if (status == THOLE_OK && thole_now_ms(ctx) % 2 == 0)
        thole_cancel(ctx, other, THOLE_STR("not needed"));
    return status;
}

/* The first of three counts, the others go on; more timers than anything else. */
static thole_status mixed(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t first;
    thole_task tasks[6];
    tasks[0] = thole_timer(ctx, 20);
    tasks[1] = thole_call(ctx, THOLE_STR("work"), input);
    tasks[2] = thole_call(ctx, THOLE_STR("slow"), input);
    tasks[3] = thole_timer(ctx, 3000);
    THOLE_TRY(thole_await_first(ctx, tasks, 4, &first));
    tasks[4] = thole_timer(ctx, 0);
    tasks[5] = thole_call(ctx, THOLE_STR("flaky"), input);
    thole_status const status = thole_await_all(ctx, tasks, 6, NULL);
    *ret_output = thole_format(ctx, "%zu %s", first, thole_status_name(status));
    return status == THOLE_APP ? THOLE_OK : status;
}

/* Timers and nothing else, near and far, some of them cancelled. */
static thole_status ticks(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint64_t const began_ms = thole_now_ms(ctx);
    for (size_t i = 0; i < 8; i++) {
        size_t winner;
        uint64_t const step_ms = 7 + (letters(input) * 131 + i * 97) % 400;
        thole_task const tasks[] = {thole_timer(ctx, step_ms), thole_timer(ctx, step_ms * (1 + i % 3)),
                                    thole_timer(ctx, 5 * step_ms)};
        THOLE_TRY(thole_await_any(ctx, tasks, 3, &winner));
        if (winner == 2)
            return thole_throw(ctx, TIMERS_WRONG);
    }
    *ret_output = thole_format(ctx, "%s", thole_now_ms(ctx) > began_ms ? "later" : "at once");
    return THOLE_OK;
}

/* Three activities with policies: one fails often, one takes too long, one is not worth a second try. */
static thole_status tries(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    static const char *const names[] = {"flaky", "slow", "fatal"};
    thole_slice const final_type = THOLE_STR("fatal");
    thole_task tasks[3];
    thole_status status[3] = {THOLE_OK, THOLE_OK, THOLE_OK};
    for (size_t i = 0; i < 3; i++) {
        thole_call_options const options = {
            .size = sizeof options,
            .try_timeout_ms = i == 1                    ? 700
                              : letters(input) % 3 == 0 ? 300
                                                        : 0,
            .total_timeout_ms = (letters(input) + i) % 2 == 0 ? 1500 + 400 * letters(input) : 0,
            .retry = {.tries_max = 3,
                      .first_delay_ms = 10 * letters(input),
                      .factor = 2,
                      .max_delay_ms = 200,
                      .jitter = 0.5,
                      .final_types = &final_type,
                      .final_types_len = 1}};
        tasks[i] = thole_call_with(ctx, thole_slice_from(names[i]), input, &options);
    }
    for (size_t i = 0; i < 3; i++) {
        status[i] = thole_await(ctx, tasks[i], NULL);
        thole_failure const failure = thole_task_failure(ctx, tasks[i]);
        if (thole_is_cancelled(ctx))
            return THOLE_CANCELLED;
        bool const once = i == 2 && letters(input) % 3 != 0 && status[i] == THOLE_APP;
        if (failure.tries > 3 || (once && failure.tries != 1))
            return thole_throw(ctx, TRIES_WRONG "%u of %s", failure.tries, names[i]);
    }
    *ret_output = thole_format(ctx, "%s %s %s", thole_status_name(status[0]), thole_status_name(status[1]),
                               thole_status_name(status[2]));
    return THOLE_OK;
}

static thole_task page(thole_ctx *ctx, uint64_t try_timeout_ms, uint64_t total_timeout_ms)
{
    thole_call_options const options = {
        .size = sizeof options,
        .try_timeout_ms = try_timeout_ms,
        .total_timeout_ms = total_timeout_ms,
        .retry = {.tries_max = 2, .first_delay_ms = 40, .factor = 2, .max_delay_ms = 100}};
    return thole_call_with(ctx, THOLE_STR("outside"), THOLE_STR("somebody has to look at it"), &options);
}

/* Two that are completed from outside, or time out; sometimes one of them is not waited for long. */
static thole_status paged(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice said = {0};
    thole_task const tasks[] = {page(ctx, 500 + 300 * letters(input), 0), page(ctx, 0, 2500)};
    if (letters(input) % 3 == 0) {
        size_t winner;
        thole_task const limit = thole_timer(ctx, 400);
        THOLE_TRY(thole_await_any(ctx, (thole_task[]){tasks[0], limit}, 2, &winner));
        *ret_output = thole_format(ctx, "%s", winner == 0 ? "in time" : "too slow");
        return THOLE_OK;
    }
    thole_status const first = thole_await(ctx, tasks[0], &said);
    if (thole_is_cancelled(ctx))
        return THOLE_CANCELLED;
    if (first == THOLE_OK && !thole_slice_equal(said, THOLE_STR(DONE_OUTSIDE)))
        return thole_throw(ctx, WRONG "nobody outside says %.*s", THOLE_FMT(said));
    thole_status const second = thole_await(ctx, tasks[1], NULL);
    if (thole_is_cancelled(ctx))
        return THOLE_CANCELLED;
    *ret_output = thole_format(ctx, "%s %s", thole_status_name(first), thole_status_name(second));
    return THOLE_OK;
}

/* Two activities kill their workers, each time or the first few times; others run beside them. */
static thole_status risky(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t const n = letters(input);
    thole_call_options const options = {
        .size = sizeof options,
        .poison = (thole_poison)(n % 3),
        .try_timeout_ms = n % 7 == 3 ? 20000 : 0,
        .total_timeout_ms = n % 5 == 4 ? 40000 : 0,
        .retry = {.tries_max = 1 + n % 2, .first_delay_ms = 100, .factor = 2, .max_delay_ms = 500}};
    thole_task const tasks[] = {thole_call_with(ctx, THOLE_STR("killer"), input, &options),
                                thole_call_with(ctx, THOLE_STR("clumsy"), input, &options),
                                thole_call(ctx, THOLE_STR("work"), input),
                                thole_call(ctx, THOLE_STR("slow"), input)};
    if (n % 4 == 0) {
        size_t winner;
        thole_task const limit = thole_timer(ctx, 45000);
        THOLE_TRY(thole_await_any(ctx, (thole_task[]){tasks[0], limit}, 2, &winner));
    }
    thole_status status[4];
    for (size_t i = n % 4 == 0; i < 4; i++) {
        status[i] = thole_await(ctx, tasks[i], NULL);
        if (thole_is_cancelled(ctx))
            return THOLE_CANCELLED;
        thole_failure const failure = thole_task_failure(ctx, tasks[i]);
        bool const poison = status[i] == THOLE_APP && is_text(failure.type, "poison");
        if (i == 0 ? !poison && status[i] != THOLE_TIMEOUT : i > 1 && status[i] != THOLE_OK && !poison)
            return thole_throw(ctx, WRONG "#%zu ends %s: %.*s", i, thole_status_name(status[i]),
                               THOLE_FMT(failure.type));
    }
    *ret_output = thole_format(ctx, "%s", thole_status_name(status[1]));
    return THOLE_OK;
}

/* ---- events ---- */

static thole_status where(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg, (void)input;
    *ret_output = thole_format(ctx, "execution %llu", (unsigned long long)thole_execution_id(ctx));
    return THOLE_OK;
}

/* Takes items until it has enough, or none comes for a while; every second one in an execution of its own. */
static thole_status collector(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    size_t const enough = 1 + letters(input) % 6;
    thole_slice taken = {0}, count = {0};
    thole_on_query(ctx, THOLE_STR("where"), where, NULL);
    if (thole_state_get(ctx, THOLE_STR("count"), &count) == THOLE_OK &&
        thole_state_get(ctx, THOLE_STR("taken"), &taken) != THOLE_OK)
        return thole_throw(ctx, WRONG "it has forgotten what it took");
    size_t n = count.len;
    for (int i = 0; i < 2 && n < enough; i++, n++) {
        size_t winner;
        thole_slice item;
        thole_task const tasks[] = {thole_event(ctx, THOLE_STR("item")), thole_timer(ctx, 4000)};
        THOLE_TRY(thole_await_any(ctx, tasks, 2, &winner));
        if (winner == 1)
            break;
        THOLE_TRY(thole_await(ctx, tasks[0], &item));
        taken = thole_format(ctx, "%.*s%.*s" ITEM_END, THOLE_FMT(taken), THOLE_FMT(item));
        thole_state_set(ctx, THOLE_STR("taken"), taken);
        thole_state_set(ctx, THOLE_STR("count"), thole_format(ctx, "%.*s", (int)n + 1, "******"));
        thole_set_status(ctx, thole_format(ctx, "%zu taken", n + 1));
        if (i == 1 && n + 1 < enough)
            return thole_continue_as_new(ctx, input, 0);
    }
    *ret_output = taken;
    return THOLE_OK;
}

static void raise_item(thole_ctx *ctx, thole_slice to, int n)
{
    thole_raise(ctx, to, THOLE_STR("item"),
                thole_format(ctx, "%.*s/%llu/%d", THOLE_FMT(thole_instance_id(ctx)),
                             (unsigned long long)thole_execution_id(ctx), n));
}

/* Sends items to another instance and to itself, starts an instance that nobody waits for, and waits for its
 * own item. */
static thole_status sender(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice const self = thole_instance_id(ctx);
    thole_child_options const extra = {.size = sizeof extra,
                                       .instance = thole_format(ctx, "%.*s+", THOLE_FMT(self))};
    raise_item(ctx, friend_of(input), 0);
    raise_item(ctx, friend_of(input), 1);
    emit(ctx, "sent", 2);
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 100 * letters(input)), NULL));
    if (letters(input) % 2 == 0)
        thole_start(ctx, THOLE_STR("ticks"), THOLE_STR("ab|"), &extra);
    raise_item(ctx, self, 2);
    raise_item(ctx, friend_of(input), 3);
    return thole_await(ctx, thole_event(ctx, THOLE_STR("item")), ret_output);
}

/* ---- continuing as new, children ---- */

/* One execution for each letter; the last one says which it is. */
static thole_status chain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_log(ctx, THOLE_LOG_INFO, "begins with %zu", letters(input));
    emit(ctx, "chain.begins", letters(input));
    if (letters(input) % 2 == 0)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), NULL));
    if (letters(input) > 1)
        return thole_continue_as_new(ctx, (thole_slice){input.ptr + 1, input.len - 1}, 0);
    thole_log(ctx, THOLE_LOG_INFO, "ends");
    *ret_output = thole_format(ctx, "ends in execution %llu", (unsigned long long)thole_execution_id(ctx));
    return THOLE_OK;
}

static thole_task child(thole_ctx *ctx, const char *what, const char *input, thole_slice id,
                        thole_close close)
{
    thole_child_options const options = {.size = sizeof options, .instance = id, .close = close};
    return thole_child(ctx, thole_slice_from(what), thole_slice_from(input), &options);
}

/* Three children: one that continues as new, one under an id that others want too, one that may be too slow.
 */
static thole_status parent(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice ends = {0}, shared = {0};
    size_t winner;
    thole_task const tasks[] = {
        child(ctx, "chain", "abc|", (thole_slice){0}, THOLE_CLOSE_CANCEL),
        child(ctx, letters(input) % 2 == 0 ? "sequence" : "fails", "x|",
              letters(input) % 3 == 0 ? friend_of(input) : THOLE_STR("shared"), THOLE_CLOSE_ABANDON),
        child(ctx, "race", "abcd|", (thole_slice){0}, (thole_close)(letters(input) % 3))};
    thole_status const first = thole_await(ctx, tasks[0], &ends);
    if (thole_is_cancelled(ctx))
        return THOLE_CANCELLED;
    if (first == THOLE_OK && !is_text(ends, "ends in execution 3"))
        return thole_throw(ctx, WRONG "the first child %.*s", THOLE_FMT(ends));
    thole_status const second = thole_await(ctx, tasks[1], &shared);
    thole_failure const failure = thole_task_failure(ctx, tasks[1]);
    if (thole_is_cancelled(ctx))
        return THOLE_CANCELLED;
    if (is_text(failure.type, "conflict") && second != THOLE_APP)
        return thole_throw(ctx, WRONG "a conflict is %s", thole_status_name(second));
    thole_task const limit = thole_timer(ctx, 1200);
    THOLE_TRY(thole_await_any(ctx, (thole_task[]){tasks[2], limit}, 2, &winner));
    *ret_output = thole_format(ctx, "%s, %s, %s", thole_status_name(first),
                               is_text(failure.type, "conflict") ? "conflict" : thole_status_name(second),
                               winner == 0 ? "in time" : "too slow");
    return letters(input) % 4 == 3 ? thole_throw_as(ctx, THOLE_STR("moody"), "as always") : THOLE_OK;
}

/* Each generation has a child of its own and leaves another one, sometimes under the id of another instance;
 * results reach the generation that asked. */
static thole_status generations(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    uint64_t const generation = thole_execution_id(ctx);
    thole_slice ends = {0};
    thole_task const mine = child(ctx, "chain", generation == 1 ? "a|" : "ab|", (thole_slice){0}, 0);
    (void)child(ctx, generation == 2 ? "race" : "ticks", "abcde|",
                sim_strangers ? friend_of(input) : (thole_slice){0},
                (thole_close)((letters(input) + generation) % 3));
    thole_status const status = thole_await(ctx, mine, &ends);
    if (thole_is_cancelled(ctx))
        return THOLE_CANCELLED;
    if (status == THOLE_OK && !is_text(ends, generation == 1 ? "ends in execution 1" : "ends in execution 2"))
        return thole_throw(ctx, WRONG "the child of generation %llu %.*s", (unsigned long long)generation,
                           THOLE_FMT(ends));
    if (generation < 3)
        return thole_continue_as_new(ctx, input, 0);
    *ret_output = THOLE_STR("three generations");
    return THOLE_OK;
}

/* ---- values, state, versions ---- */

uint64_t sim_outside;

static thole_status a_number(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    (void)arg;
    *ret_value = thole_format(ctx, "%" PRIu64, ++sim_outside);
    return THOLE_OK;
}

/* Values made of random numbers and of the outside stay the same through everything. */
static thole_status stateful(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice value = {0}, kept = {0};
    thole_on_query(ctx, THOLE_STR("where"), where, NULL);
    THOLE_TRY(thole_side_effect(ctx, a_number, NULL, &value));
    uint64_t const dice = thole_random(ctx);
    thole_state_set(ctx, THOLE_STR("value"), value);
    thole_log(ctx, THOLE_LOG_INFO, "the dice say %llu", (unsigned long long)(dice % 6));
    bool const patched = thole_patch(ctx, THOLE_STR("longer"));
    thole_set_status(ctx, thole_format(ctx, "rolled %llu", (unsigned long long)(dice % 6)));
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, patched ? 30 * letters(input) : 1), NULL));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), thole_uuid(ctx)), NULL));
    if (thole_state_get(ctx, THOLE_STR("value"), &kept) != THOLE_OK || !thole_slice_equal(kept, value))
        return thole_throw(ctx, WRONG "the state is another");
    *ret_output = thole_format(ctx, "%.*s %llu", THOLE_FMT(value), (unsigned long long)dice);
    return THOLE_OK;
}

static thole_status grown_1(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    if (thole_version_id(ctx) != 1)
        return thole_throw(ctx, WRONG "this is not version %u", thole_version_id(ctx));
    THOLE_TRY(thole_await(ctx, thole_timer(ctx, 200), NULL));
    *ret_output = THOLE_STR("small");
    return letters(input) % 2 == 0 ? thole_continue_as_new(ctx, THOLE_STR("a"), 2) : THOLE_OK;
}

static thole_status grown_2(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    if (thole_version_id(ctx) != 2)
        return thole_throw(ctx, WRONG "this is not version %u", thole_version_id(ctx));
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), NULL));
    *ret_output = THOLE_STR("tall");
    return THOLE_OK;
}

const thole_orchestration_entry ORCHESTRATIONS[ORCHESTRATIONS_LEN] = {
    {"risky", risky, 0},       {"sequence", sequence, 0},   {"fan", fan, 0},
    {"race", race, 0},         {"saga", saga, 0},           {"fails", fails, 0},
    {"mixed", mixed, 0},       {"ticks", ticks, 0},         {"tries", tries, 0},
    {"paged", paged, 0},       {"collector", collector, 0}, {"sender", sender, 0},
    {"chain", chain, 0},       {"parent", parent, 0},       {"generations", generations, 0},
    {"stateful", stateful, 0}, {"grown", grown_1, 1},       {"late", sequence, 0},
    {"grown", grown_2, 2},
};

const thole_orchestration_entry *orchestration_entry(thole_slice name, uint32_t version)
{
    const thole_orchestration_entry *newest = NULL;
    for (size_t i = 0; i < ORCHESTRATIONS_LEN; i++) {
        const thole_orchestration_entry *entry = &ORCHESTRATIONS[i];
        uint32_t const has = entry->version == 0 ? 1 : entry->version;
        if (!thole_slice_equal(name, thole_slice_from(entry->name)))
            continue;
        if (has == version)
            return entry;
        if (newest == NULL || has > newest->version)
            newest = entry;
    }
    return version == 0 ? newest : NULL;
}

struct activity_run activity_run(struct world *w, thole_slice name)
{
    struct activity_run run = {.duration_ms = between(w, 0, 60)};
    run.returns_after_ms = between(w, 0, 200);
    if (thole_slice_equal(name, THOLE_STR("slow"))) {
        run.duration_ms = between(w, 300, 2500);
    } else if (thole_slice_equal(name, THOLE_STR("stubborn"))) {
        run.duration_ms = rnd(w, 3) == 0 ? between(w, LEASE_MS, 3 * LEASE_MS) : between(w, 100, 2500);
        run.returns_after_ms = rnd(w, 2) == 0 ? UINT64_MAX : between(w, 0, 4000);
    } else if (thole_slice_equal(name, THOLE_STR("flaky"))) {
        run.status = rnd(w, 2) == 0 ? THOLE_APP : THOLE_OK;
        run.final = rnd(w, 12) == 0;
    } else if (thole_slice_equal(name, THOLE_STR("outside"))) {
        run.status = THOLE_LATER;
        run.outside_status = rnd(w, 5) == 0 ? THOLE_APP : THOLE_OK;
        run.outside_ms = w->faults && rnd(w, 6) == 0 ? UINT64_MAX : between(w, 0, 2000);
    } else if (thole_slice_equal(name, THOLE_STR("killer")) || thole_slice_equal(name, THOLE_STR("clumsy"))) {
        run.duration_ms = rnd(w, 8) == 0 ? between(w, LEASE_MS / 3, 4000) : between(w, 0, 200);
        run.returns_after_ms = rnd(w, 3) == 0 ? UINT64_MAX : run.returns_after_ms;
    } else if (thole_slice_equal(name, THOLE_STR("fatal"))) {
        run.status = rnd(w, 2) == 0 ? THOLE_APP : THOLE_OK;
        run.error_type = "fatal";
    }
    if (w->faults && rnd(w, 12) == 0)
        run.duration_ms += between(w, 500, 3 * LEASE_MS);
    return run;
}
