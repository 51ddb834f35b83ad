#include "removal_fake.h"
#include "checks.h"
#include "record_head.h"
#include "removing.h"
#include <inttypes.h>

enum { REMOVALS_UNDER_WAY = 8 };

struct sim_removal {
    struct world *w;
    struct log_stream *log;
    size_t instance;
    uint64_t below;
    struct removing *removing;
    uint32_t random; /* of its own, so that a seed stays the same world */
};

static uint32_t removal_random(struct sim_removal *of, uint32_t below)
{
    of->random = of->random * 1664525 + 1013904223;
    return (of->random >> 16) % below;
}

static uint64_t removal_execution(const struct log_entry *entry)
{
    return entry->kind == RECORD_TURN ? entry->execution : REMOVING_DELETIONS;
}

static bool removal_is_of(const struct sim_removal *of, const struct log_entry *entry, uint64_t execution)
{
    return !entry->deleted && entry->instance == of->instance && removal_execution(entry) == execution;
}

/* Each subject where its first message stands: the machine does not rely on any order. */
static void removal_list(struct sim_removal *of)
{
    const struct log_entry *const entries = of->log->entries;
    for (size_t i = 0; i < of->log->len; i++) {
        uint64_t const execution = removal_execution(&entries[i]);
        uint64_t records = 0;
        bool first = removal_is_of(of, &entries[i], execution);
        for (size_t k = 0; k < i && first; k++)
            first = !removal_is_of(of, &entries[k], execution);
        for (size_t k = i; k < of->log->len && first; k++)
            records += removal_is_of(of, &entries[k], execution);
        removing_item(of->removing, execution, records);
    }
    removing_listed(of->removing, removal_random(of, 8) > 0);
}

/* The link to the record before: an older engine wrote none; in a restored stream it is wrong. */
static uint64_t removal_place(struct sim_removal *of, const struct log_entry *entry)
{
    struct record_head head;
    if (removal_random(of, 4) == 0)
        return removal_random(of,
                              (uint32_t)(removal_random(of, 4) == 0 ? of->log->len + 2 : entry->sequence));
    return record_head_read(entry->bytes, &head) ? head.before.sequence : 0;
}

/* A replica that lags still has removed records. */
static bool removal_sees(struct sim_removal *of, const struct log_entry *entry)
{
    return !entry->deleted || removal_random(of, 2) == 0;
}

static void removal_find(struct sim_removal *of, const struct removing_ask *ask)
{
    const struct log_entry *found = NULL;
    struct removing_record record = {.sequence = 0};
    for (size_t i = 0; i < of->log->len; i++) {
        const struct log_entry *const entry = &of->log->entries[i];
        bool const it = ask->kind == REMOVING_AT ? entry->sequence == ask->sequence && removal_sees(of, entry)
                                                 : removal_is_of(of, entry, ask->execution);
        if (it && !(found != NULL && ask->kind == REMOVING_FIRST))
            found = entry;
    }
    if (found != NULL)
        record = (struct removing_record){found->sequence, found->instance == of->instance,
                                          removal_execution(found), removal_place(of, found)};
    removing_found(of->removing, ask->unit, &record);
}

static void removal_scan(struct sim_removal *of, const struct removing_ask *ask)
{
    bool all = true;
    for (size_t i = 0; i < of->log->len && i < ask->sequence && all; i++)
        if (removal_is_of(of, &of->log->entries[i], ask->execution))
            all = removing_met(of->removing, ask->unit, i + 1);
    removing_scanned(of->removing, ask->unit, all);
}

/* Those that are not answered may fail, and then nobody is told. */
static void removal_delete(struct sim_removal *of, const struct removing_ask *ask)
{
    bool was_there = false;
    for (size_t i = 0; i < ask->n; i++) {
        was_there = !of->log->entries[ask->sequences[i] - 1].deleted;
        if (i + 1 == ask->n || removal_random(of, 16) > 0)
            log_remove(of->w, of->log, ask->sequences[i], of->below);
    }
    removing_deleted(of->removing, ask->n, was_there);
}

static void removal_answer(struct sim_removal *of, const struct removing_ask *ask)
{
    switch (ask->kind) {
    case REMOVING_LIST: removal_list(of); break;
    case REMOVING_LAST:
    case REMOVING_FIRST:
    case REMOVING_AT: removal_find(of, ask); break;
    case REMOVING_SCAN: removal_scan(of, ask); break;
    case REMOVING_DELETE: removal_delete(of, ask); break;
    }
}

/* Several are under way, and answered in any order. False: it was cut off. */
static bool removal_run(struct sim_removal *of)
{
    struct removing_ask out[REMOVALS_UNDER_WAY];
    uint32_t len = 0;
    while (removing_state(of->removing) == REMOVING_GOES) {
        while (len < REMOVALS_UNDER_WAY && removing_next(of->removing, &out[len]))
            len++;
        if (len == 0) {
            broken(of->w, "a removal asks for nothing, and has not ended");
            return false;
        }
        uint32_t const at = removal_random(of, len);
        struct removing_ask const ask = out[at];
        out[at] = out[--len];
        if (ask.kind == REMOVING_DELETE && strikes(of->w, FAULT_STATEMENT, 30))
            return false;
        removal_answer(of, &ask);
    }
    return removing_state(of->removing) == REMOVING_DONE;
}

/* As who has just loaded it: where all of its records stand, where they are of one execution. Some of these
 * may have gone since, and it may not have read all. */
static void removal_know(struct sim_removal *of)
{
    uint64_t execution = 0;
    size_t n = 0;
    for (size_t i = 0; i < of->log->len && i + 1 < of->below; i++) {
        const struct log_entry *const e = &of->log->entries[i];
        bool const counts = e->instance == of->instance && e->kind == RECORD_TURN && e->execution > 0;
        if (!counts || (e->deleted && removal_random(of, 2) == 0))
            continue;
        if (execution != 0 && e->execution != execution)
            return; /* there may be older ones */
        execution = e->execution;
        n++;
    }
    if (n > REMOVING_KNOWN || removal_random(of, 3) == 0)
        return;
    for (size_t i = 0; i < of->log->len && i + 1 < of->below && n > 0; i++) {
        const struct log_entry *const e = &of->log->entries[i];
        if (e->instance == of->instance && e->kind == RECORD_TURN && e->execution == execution &&
            removal_random(of, 16) > 0) {
            removing_know(of->removing, (struct removing_place){execution, i + 1});
            n--;
        }
    }
}

bool removal_execute(struct world *w, struct log_stream *log, size_t instance,
                     const struct out_remove_history *asked)
{
    const struct executions *const some = &asked->executions;
    struct sim_removal of = {.w = w,
                             .log = log,
                             .instance = instance,
                             .below = asked->below,
                             .removing = removing_create(*some, asked->below),
                             .random = (uint32_t)asked->below};
    removal_know(&of);
    bool const done = removal_run(&of);
    removing_destroy(of.removing);
    for (uint64_t s = 1; done && s < asked->below && s <= log->len; s++) {
        const struct log_entry *const e = &log->entries[s - 1];
        bool const meant = some->upto == 0 || (e->kind == RECORD_TURN && e->execution > some->above &&
                                               e->execution <= some->upto);
        if (e->instance == instance && !e->deleted && meant)
            broken(w, "partition %u: record %" PRIu64 " was to be removed for %" PRIu64 ", and is there",
                   log->partition, s, asked->below);
    }
    return done;
}
