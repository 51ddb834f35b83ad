#include "clock_fake.h"
#include "engine_request.h"

static const uint64_t YEARS_MS = UINT64_C(10) * 365 * 24 * 3600 * 1000;

bool clock_keeps_closed(const struct world *w, const struct engine *engine)
{
    return engine->clock_wrong && !w->years_believed && w->mutation != MUTATION_CLOCK_BELIEVED;
}

bool clock_is_wrong_time(const struct world *w, uint64_t due_ms)
{
    return w->years_believed && due_ms > w->now_ms + YEARS_MS / 2;
}

bool clock_counts(const struct world *w, uint64_t time_ms, uint64_t due_ms, uint64_t most_ms)
{
    return clock_is_wrong_time(w, time_ms) && due_ms + CLOCK_MAY_ERR_MS >= w->now_ms &&
           due_ms <= w->now_ms + CLOCK_MAY_ERR_MS + most_ms;
}

uint64_t seat_now_ms(struct world *w, const struct seat *seat)
{
    uint64_t const now_ms = node_now_ms(w, &seat->engine->node);
    bool const closed = partition_state(seat->machine) == PARTITION_CLOSED;
    bool const believed = seat->engine->clock_wrong && !clock_keeps_closed(w, seat->engine);
    return believed || (seat->engine->clock_wrong && closed) ? now_ms + YEARS_MS : now_ms;
}

static void task_closed_steps(struct world *w, void *arg, uint64_t life);

/* The engine's shard goes on with the partitions that it has closed. */
static void step_soon(struct world *w, struct engine *engine)
{
    after(w, between(w, 1, 1000), task_closed_steps, engine, engine->node.life);
}

static void task_closed_steps(struct world *w, void *arg, uint64_t life)
{
    struct engine *const engine = arg;
    if (!node_runs(w, &engine->node, life, task_closed_steps, arg) || !engine->clock_wrong)
        return;
    for (uint32_t p = 0; p < w->partitions; p++)
        if (engine->seats[p].machine != NULL)
            seat_drive_soon(w, &engine->seats[p]);
    step_soon(w, engine);
}

/* The engine's host finds that the clock has jumped. */
static void close_all(struct world *w, struct engine *engine)
{
    for (uint32_t p = 0; p < w->partitions; p++) {
        struct seat *const seat = &engine->seats[p];
        if (seat->machine == NULL || partition_state(seat->machine) == PARTITION_CLOSED)
            continue;
        seat_input(w, seat,
                   &(struct partition_in){.kind = PARTITION_IN_STEP_DOWN,
                                          .generation = partition_generation(seat->machine),
                                          .step_down.text = "the clock is wrong"});
    }
}

static void set_right(struct world *w, struct engine *engine)
{
    if (!engine->clock_wrong)
        return;
    trace(w, "%s: its clock is right again", engine->node.name);
    engine->clock_wrong = false;
    if (w->years_believed)
        close_all(w, engine);
    for (uint32_t p = 0; p < w->partitions; p++)
        seat_open_soon(w, &engine->seats[p], between(w, 1, 800));
}

static void set_wrong(struct world *w, struct engine *engine)
{
    if (engine->clock_wrong)
        return;
    trace(w, "%s: its clock is ten years ahead", engine->node.name);
    engine->clock_wrong = true;
    if (clock_keeps_closed(w, engine))
        close_all(w, engine);
    step_soon(w, engine);
}

static void task_clock(struct world *w, void *arg, uint64_t value)
{
    (void)arg, (void)value;
    if (!w->faults)
        return;
    struct engine *const engine = w->engines[rnd(w, w->engines_len)];
    if (engine->clock_wrong)
        set_right(w, engine);
    else if (engine->node.alive)
        set_wrong(w, engine);
    uint64_t const next_ms = between(w, 500, 12000);
    after(w, next_ms, task_clock, NULL, 0);
}

void clocks_begin(struct world *w)
{
    if (w->years)
        after(w, between(w, 500, 8000), task_clock, NULL, 0);
}

void clocks_end(struct world *w)
{
    for (size_t i = 0; w->years && i < w->engines_len; i++)
        set_right(w, w->engines[i]);
}
