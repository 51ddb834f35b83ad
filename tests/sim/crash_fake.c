#include "crash_fake.h"
#include "engine_request.h"

enum {
    CULPRITS = 6,
    EVENTS = 8,
    LIMIT = 2
}; /* one in so many instances; turns from an event up to that on */

struct crash_entry {
    bool there;
    uint64_t count, first, last; /* writes: the number of the first and the last */
    uint64_t execution;          /* the last one that crashed: a later one may be another incarnation of
                                    the id */
};

struct crash_list {
    struct crash_entry entries[WORLD_INSTANCES_MAX];
    uint64_t writes;
};

struct crash_list *crash_list_create(struct world *w)
{
    return keep(w, sizeof(struct crash_list));
}

/* Equal for each run of the same code; draws nothing, so that other worlds stay as they are. */
static uint64_t fate(const struct world *w, size_t instance)
{
    uint64_t h = (w->seed + 1) * 0x9E3779B97F4A7C15u ^ (instance + 1) * 0xC2B2AE3D27D4EB4Fu;
    h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9u;
    return h ^ h >> 32;
}

static bool crashes(const struct world *w, const struct code_run *run, size_t instance)
{
    static const enum code_kind kinds[] = {0, CODE_TURN, CODE_REPLAY};
    uint64_t const h = instance == SIZE_MAX ? 1 : fate(w, instance);
    enum code_kind const kind = kinds[h / 100 % 3];
    return w->crashes && w->faults && h % CULPRITS == 0 && (kind == 0 || kind == run->kind) &&
           (run->kind != CODE_TURN || run->event > h / 1000 % EVENTS);
}

static struct crash_entry *entry_of(const struct world *w, size_t instance)
{
    return &w->crash_list->entries[instance];
}

static void write(struct world *w, size_t instance, uint64_t count)
{
    struct crash_entry *const entry = entry_of(w, instance);
    entry->last = ++w->crash_list->writes;
    if (!entry->there)
        entry->first = entry->last;
    entry->there = true;
    entry->count = count;
}

static void begins(void *arg, const struct code_run *run)
{
    struct seat *const seat = arg;
    struct world *const w = seat->world;
    size_t const instance = instance_index(w, run->instance);
    if (seat->engine->dying || !crashes(w, run, instance))
        return;
    const struct crash_entry *const entry = entry_of(w, instance);
    if (entry->there && entry->first <= seat->crashes_read)
        broken(w, "%s runs code of %.*s, which it knows to crash", seat->engine->node.name,
               THOLE_FMT(run->instance));
    trace(w, "%s: the code of %.*s crashes at event %" PRIu64, seat->engine->node.name,
          THOLE_FMT(run->instance), run->event);
    write(w, instance, entry->there ? entry->count + 1 : 1);
    entry_of(w, instance)->execution = run->execution;
    w->stats.code_crashes++;
    engine_dies(w, seat->engine);
}

static void ended(void *arg)
{
    (void)arg;
}

static thole_status attempt(void *arg, const struct code_run *run, void (*body)(void *), void *body_arg,
                            thole_error *reterr)
{
    struct seat *const seat = arg;
    struct world *const w = seat->world;
    size_t const instance = instance_index(w, run->instance);
    (void)body, (void)body_arg;
    w->stats.code_tried++;
    if (!crashes(w, run, instance))
        return THOLE_OK;
    struct crash_entry *const entry = entry_of(w, instance);
    if (entry->there && entry->count >= LIMIT && entry->last <= seat->crashes_read &&
        run->execution <= entry->execution)
        broken(w, "%s tries code of %.*s, which has crashed %" PRIu64 " times", seat->engine->node.name,
               THOLE_FMT(run->instance), entry->count);
    return thole_fail(reterr, THOLE_APP, "SIGSEGV");
}

struct code_watch crash_watch(struct seat *seat)
{
    return (struct code_watch){.begins = begins, .ended = ended, .attempt = attempt, .arg = seat};
}

static void read_crashes(struct world *w, struct seat *seat, const struct partition_out *out)
{
    static struct partition_crash crashes[WORLD_INSTANCES_MAX];
    struct partition_in in = partition_answer(out);
    in.crashes.crashes = crashes;
    for (size_t i = 0; i < w->instances_len; i++) {
        const struct crash_entry *const entry = entry_of(w, i);
        if (!entry->there || instance_partition(w, i) != seat->partition)
            continue;
        crashes[in.crashes.crashes_len++] = (struct partition_crash){.instance = w->instances[i],
                                                                     .text = THOLE_STR("SIGSEGV"),
                                                                     .execution = entry->execution,
                                                                     .count = w->faults ? entry->count : 0};
    }
    seat->crashes_read = w->crash_list->writes;
    (void)partition_input(seat->machine, &in, node_now_ms(w, &seat->engine->node));
    partition_check(seat->machine);
}

bool crash_output(struct world *w, struct seat *seat, const struct partition_out *out)
{
    switch (out->kind) {
    case PARTITION_OUT_READ_CRASHES: read_crashes(w, seat, out); return true;
    case PARTITION_OUT_CRASHED:
        write(w, instance_index(w, out->crashed.instance), out->crashed.count);
        entry_of(w, instance_index(w, out->crashed.instance))->execution = out->crashed.execution;
        if (out->crashed.count >= LIMIT)
            w->stats.code_stuck++;
        return true;
    case PARTITION_OUT_CRASHES_OVER:
        entry_of(w, instance_index(w, out->crashes_over.instance))->there = false;
        return true;
    default: return false;
    }
}
