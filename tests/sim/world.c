#include "world.h"
#include "checks.h"
#include "churn_fake.h"
#include "client_fake.h"
#include "clock_fake.h"
#include "coro.h"
#include "crash_fake.h"
#include "engine_node.h"
#include "hostile_fake.h"
#include "log_fake.h"
#include "losses.h"
#include "orchestrations.h"
#include "restores.h"
#include "store_fake.h"
#include "work_fake.h"
#include "worker_node.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    START_MS = 1700000000, /* of the virtual clock: it must not be near 0 */
    CALM_LIMIT_MS =
        900000, /* virtual time in which everything must have ended once the faults have stopped */
    SETTLE_MS = 500,
};

static const char *const FAULT_NAMES[FAULTS_LEN] = {
    "engine crash", "engine pause",     "engine nats lost",  "engine store lost", "worker crash",
    "worker pause", "worker nats lost", "worker store lost", "crash point",       "rival",
    "request lost", "request late",     "answer lost",       "store crash",       "store outage",
    "nats outage",  "publish twice",    "core loss",         "clock jump",        "slow",
    "store ahead",  "statement fails",  "tail race",         "delivered again",   "inbox back",
    "damage",
};
static const char *const MUTATION_NAMES[MUTATIONS_LEN] = {
    "none",
    "append_any",
    "store_unfenced",
    "no_redelivery",
    "claim_missing",
    "complete_any",
    "purge_all",
    "inbox_skips",
    "torn_batch",
    "position_stays",
    "load_stale",
    "ids_stale",
    "ids_cut",
    "ack_loses",
    "queue_twice",
    "prefix_skipped",
    "voids_stay",
    "tail_backwards",
    "position_ahead",
    "stolen_is_gone",
    "gone_is_mine",
    "claim_any_try",
    "claim_later",
    "claim_held",
    "lease_stays",
    "missing_believed",
    "send_once",
    "send_anew",
    "send_shuffled",
    "early_lost",
    "back_unseen",
    "back_by_last",
    "back_purged",
    "losses_uncounted",
    "not_lost_ignored",
    "company_counts",
    "death_blames_all",
    "restored_anew",
    "claim_mistaken",
    "claim_digest_ignored",
    "quick_any",
    "forged_believed",
    "rows_unfollowed",
    "older_believed",
    "newer_believed",
    "epochs_go",
    "lists_unread",
    "clock_believed",
    "list_first",
    "shelf_unmarked",
    "shelf_stays",
};

const char *fault_name(enum fault fault)
{
    return FAULT_NAMES[fault];
}

const char *mutation_name(enum mutation mutation)
{
    return MUTATION_NAMES[mutation];
}

uint64_t rnd(struct world *w, uint64_t bound)
{
    w->rng ^= w->rng << 13;
    w->rng ^= w->rng >> 7;
    w->rng ^= w->rng << 17;
    return (w->rng >> 11) % bound;
}

uint64_t between(struct world *w, uint64_t low, uint64_t high)
{
    return low + rnd(w, high - low + 1);
}

bool fault_enabled(const struct world *w, enum fault fault)
{
    return w->faults && (w->enabled >> fault & 1) != 0;
}

bool strikes(struct world *w, enum fault fault, unsigned permille)
{
    if (!fault_enabled(w, fault) || rnd(w, 1000) >= permille)
        return false;
    w->stats.faults[fault]++;
    return true;
}

void trace(struct world *w, const char *fmt, ...)
{
    char line[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    for (const char *p = line; *p != '\0'; p++)
        w->hash = (w->hash ^ (uint8_t)*p) * 1099511628211u;
    w->hash = (w->hash ^ w->now_ms) * 1099511628211u;
    if (w->verbose)
        printf("[%7" PRIu64 "] %s\n", w->now_ms - START_MS, line);
}

void broken(struct world *w, const char *fmt, ...)
{
    va_list args;
    if (w->why[0] != '\0')
        return;
    va_start(args, fmt);
    vsnprintf(w->why, sizeof w->why, fmt, args);
    va_end(args);
    trace(w, "BROKEN: %s", w->why);
}

bool is_broken(const struct world *w)
{
    return w->why[0] != '\0';
}

void *keep(struct world *w, size_t bytes)
{
    void *memory = arena_alloc(&w->memory, bytes);
    if (memory == NULL)
        abort();
    return memory;
}

thole_slice keep_slice(struct world *w, thole_slice slice)
{
    thole_slice copy;
    if (arena_dup(&w->memory, slice, &copy) != THOLE_OK)
        abort();
    return copy;
}

void *grown(struct world *w, void *items, size_t len, size_t *cap, size_t size)
{
    if (len < *cap)
        return items;
    size_t const wanted = *cap == 0 ? 16 : *cap * 2;
    void *bigger = keep(w, wanted * size);
    if (len > 0)
        memcpy(bigger, items, len * size);
    *cap = wanted;
    return bigger;
}

static bool earlier(const struct task *a, const struct task *b)
{
    return a->due_ms < b->due_ms || (a->due_ms == b->due_ms && a->sequence < b->sequence);
}

void at(struct world *w, uint64_t due_ms, task_fn *run, void *arg, uint64_t value)
{
    w->queue = grown(w, w->queue, w->queue_len, &w->queue_cap, sizeof *w->queue);
    struct task const task = {due_ms < w->now_ms ? w->now_ms : due_ms, w->sequence++, value, run, arg};
    size_t hole = w->queue_len++;
    while (hole > 0 && earlier(&task, &w->queue[(hole - 1) / 2])) {
        w->queue[hole] = w->queue[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    w->queue[hole] = task;
}

void after(struct world *w, uint64_t delay_ms, task_fn *run, void *arg, uint64_t value)
{
    at(w, w->now_ms + delay_ms, run, arg, value);
}

static struct task next_task(struct world *w)
{
    struct task const first = w->queue[0], last = w->queue[--w->queue_len];
    size_t hole = 0;
    for (;;) {
        size_t child = hole * 2 + 1;
        if (child >= w->queue_len)
            break;
        if (child + 1 < w->queue_len && earlier(&w->queue[child + 1], &w->queue[child]))
            child++;
        if (!earlier(&w->queue[child], &last))
            break;
        w->queue[hole] = w->queue[child];
        hole = child;
    }
    w->queue[hole] = last;
    return first;
}

/* The cell of the id, or the free one where it belongs. */
static size_t instance_cell(const struct world *w, thole_slice id)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < id.len; i++)
        hash = (hash ^ id.ptr[i]) * 1099511628211u;
    size_t const cells = sizeof w->instance_cells / sizeof w->instance_cells[0];
    size_t at = hash % cells;
    while (w->instance_cells[at] != 0 && !thole_slice_equal(w->instances[w->instance_cells[at] - 1], id))
        at = (at + 1) % cells;
    return at;
}

size_t instance_index(const struct world *w, thole_slice id)
{
    uint16_t const found = w->instance_cells[instance_cell(w, id)];
    return found == 0 ? SIZE_MAX : found - 1u;
}

size_t instance_add(struct world *w, thole_slice id)
{
    size_t const cell = instance_cell(w, id);
    if (w->instance_cells[cell] != 0)
        return w->instance_cells[cell] - 1u;
    if (w->instances_len == WORLD_INSTANCES_MAX) {
        broken(w, "more than %d instances: the orchestrations under test breed", WORLD_INSTANCES_MAX);
        return 0;
    }
    w->instances[w->instances_len++] = keep_slice(w, id);
    w->instance_cells[cell] = (uint16_t)w->instances_len;
    return w->instances_len - 1;
}

uint32_t instance_partition(const struct world *w, size_t instance)
{
    return (uint32_t)(instance % w->partitions);
}

/* Swarm: each seed has its own subset of kinds; one in eight has none, one in eight all. */
static uint64_t choose_faults(struct world *w)
{
    uint64_t const all = ((uint64_t)1 << FAULTS_LEN) - 1;
    uint64_t bits = 0;
    switch (rnd(w, 8)) {
    case 0: return 0;
    case 1: return all;
    default:
        for (unsigned i = 0; i < FAULTS_LEN; i++)
            if (rnd(w, 3) != 0)
                bits |= (uint64_t)1 << i;
        if (rnd(w, 4) != 0) /* later faults have little effect */
            bits &= ~((uint64_t)1 << FAULT_DAMAGE);
        return bits;
    }
}

static void choose_poison(struct world *w)
{
    w->poisons = w->seed % 4 == 1;
    w->poison_after = w->poisons && rnd(w, 2) == 0 ? (uint32_t)between(w, 2, 6) : 5;
    w->quarantine_ms = 20000;
    if (w->poisons)
        switch (rnd(w, 8)) {
        case 0: w->quarantine_ms = 0; break;
        case 1:
        case 2: w->quarantine_ms = UINT64_MAX; break;
        default: w->quarantine_ms = between(w, 1000, 60000); break;
        }
}

/* Not in the seeds that found something before there were any. */
static enum events_out choose_events(uint64_t seed)
{
    switch (seed % 18) {
    case 2:
    case 8:
    case 9: return EVENTS_OUT_ALL;
    case 4: return EVENTS_OUT_EMITTED;
    default: return EVENTS_OUT_NONE;
    }
}

/* Two seeds in nine, among which all other kinds of worlds are: not in those that found something before
 * there were any. */
static bool choose_lists(uint64_t seed)
{
    switch (seed % 27) {
    case 3:
    case 6:
    case 7:
    case 13:
    case 18:
    case 22: return true;
    default: return false;
    }
}

/* Likewise. */
static bool choose_restores(uint64_t seed)
{
    switch (seed % 25) {
    case 13:
    case 14:
    case 15:
    case 23: return true;
    default: return false;
    }
}

enum { UNSERVED_OF = 16, UNSERVED_SEED = 12 };

void world_begin(struct world *w, uint64_t seed, bool verbose, enum mutation mutation)
{
    *w = (struct world){.seed = seed,
                        .rng = seed * 0x9E3779B97F4A7C15u + 0x1234567,
                        .hash = 14695981039346656037u,
                        .now_ms = START_MS,
                        .faults = true,
                        .deletes = seed % 3 == 0,
                        .prunes = seed % 8 == 5,
                        .churns = seed % 8 == 3,
                        .crashes = seed % 10 == 6,
                        .hostile = seed % HOSTILE_OF == HOSTILE_SEED,
                        .unserved = seed % UNSERVED_OF == UNSERVED_SEED,
                        .lists = choose_lists(seed),
                        .restores = choose_restores(seed),
                        .years = seed % 31 == 9, /* none of those that found something before */
                        .events = choose_events(seed),
                        .hostile_rng = seed * 0xD1B54A32D192ED03u + 0x7654321,
                        .verbose = verbose,
                        .mutation = mutation};
    told_begin(&w->told, NULL);
    arena_init(&w->memory, WORLD_MEMORY_MAX);
    sim_outside = seed;
    sim_emits = w->events != EVENTS_OUT_NONE;
    sim_strangers = seed % 16 == 1;
    for (int i = 0; i < 8; i++)
        rnd(w, 2);
    w->years_believed = w->years && seed / 31 % 2 == 1 && !w->churns;
    w->enabled = choose_faults(w);
    w->wildness = between(w, 1, 4);
    w->latency_ms = rnd(w, 3) == 0 ? between(w, 4, 60) : 3;
    w->rivalry = rnd(w, 3) == 0 ? (unsigned)between(w, 5, 200) : 0;
    w->early_event_ms = between(w, 2000, 40000);
    w->row_age_ms = rnd(w, 3) == 0 ? between(w, 0, 1000) : 10000;
    w->partitions = (uint32_t)between(w, 1, WORLD_PARTITIONS_MAX);
    w->engines_len = (size_t)between(w, 2, WORLD_ENGINES_MAX);
    w->workers_len = (size_t)between(w, 1, WORLD_WORKERS_MAX);
    choose_poison(w);
    w->stacks = stack_pool_create(256, 4096);
    if (w->stacks == NULL)
        abort();
    for (uint32_t p = 0; p < w->partitions; p++) {
        w->logs[p] = log_stream_create(w, p);
        w->inboxes[p] = inbox_stream_create(w, p);
    }
    w->work = work_stream_create(w);
    w->store = store_create(w);
    w->losses = losses_create(w);
    w->crash_list = crash_list_create(w);
    w->model = model_create(w);
    w->client = client_fake_create(w);
    for (size_t i = 0; i < w->engines_len; i++)
        w->engines[i] = engine_create(w, (unsigned)i);
    for (size_t i = 0; i < w->workers_len; i++)
        w->workers[i] = worker_node_create(w, (unsigned)i);
    faults_begin(w);
    hostile_begin(w);
    churn_begin(w);
    restores_begin(w);
    clocks_begin(w);
}

/* Of those that send events one in three. */
static bool choose_shut(uint64_t seed)
{
    return choose_events(seed) != EVENTS_OUT_NONE && seed / 18 % 3 == 1;
}

static bool step(struct world *w)
{
    if (w->queue_len == 0 || is_broken(w))
        return false;
    struct task const task = next_task(w);
    w->now_ms = task.due_ms;
    w->stats.steps++;
    task.run(w, task.arg, task.value);
    if (w->stats.steps > WORLD_STEPS_MAX)
        broken(w, "more than %d steps: something spins", WORLD_STEPS_MAX);
    return !is_broken(w);
}

/* Everything has ended, nothing is in flight, and the projection is what the log says. */
static bool settled(struct world *w, char *why, size_t size)
{
    if (w->restoring || !checks_all_ended(w, why, size) || !engines_idle(w, why, size))
        return false;
    checks_at_the_end(w, why, size);
    return why[0] == '\0';
}

static void task_look(struct world *w, void *arg, uint64_t value)
{
    (void)w, (void)arg, (void)value;
}

/* Partitions have opened and instances have ended although no event was taken: now it is time for the events.
 */
static void reopen_events(struct world *w)
{
    char why[512];
    if (!w->events_shut || !engines_serve(w) || !checks_all_ended(w, why, sizeof why))
        return;
    trace(w, "the events are taken");
    w->events_shut = false;
}

static void run_calm(struct world *w)
{
    uint64_t const limit_ms = w->now_ms + CALM_LIMIT_MS;
    char why[512] = "";
    while (!is_broken(w) && w->now_ms < limit_ms) {
        uint64_t const look_ms = w->now_ms + SETTLE_MS;
        at(w, look_ms, task_look, NULL, 0); /* time goes on even when nobody has anything to do */
        while (w->now_ms < look_ms && step(w))
            ;
        why[0] = '\0';
        reopen_events(w);
        if (!is_broken(w) && settled(w, why, sizeof why))
            return;
    }
    broken(w, "not settled %d virtual seconds after the faults stopped: %s", CALM_LIMIT_MS / 1000, why);
}

void world_run(struct world *w)
{
    uint64_t const storm_ms = between(w, 10000, 60000);
    uint64_t const until_ms = w->now_ms + storm_ms;
    while (w->queue_len > 0 && w->queue[0].due_ms < until_ms && step(w))
        w->events_shut = choose_shut(w->seed) && w->now_ms > until_ms - storm_ms / 2;
    if (is_broken(w))
        return;
    trace(w, "the weather clears"); /* these words are in the digest of the traces */
    w->faults = false;
    faults_end(w);
    clocks_end(w);
    restores_end(w);
    run_calm(w);
}

void world_end(struct world *w)
{
    for (size_t i = 0; i < w->engines_len; i++)
        engine_destroy(w->engines[i]);
    for (size_t i = 0; i < w->workers_len; i++)
        worker_node_destroy(w->workers[i]);
    model_destroy(w->model);
    if (stack_pool_in_use(w->stacks) != 0)
        broken(w, "%zu coroutine stacks are still in use", stack_pool_in_use(w->stacks));
    stack_pool_destroy(w->stacks);
    arena_release(&w->memory);
}
