/* Creation, reset and commits of the instances room. Its contract: instances.h. */
#include "instances_state.h"
#include "lanes.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>

struct instances *instances_create(struct env *env)
{
    struct instances *p = memory_new(sizeof *p);
    p->env = env;
    p->event_room = env->options.record_max - env_record_beside(&env->options);
    return p;
}

void instances_reset(struct instances *p)
{
    assert(p->run.entry == NULL);
    entries_release(&p->entries);
    progress_release(&p->progress);
    names_release(p);
    refusals_release(p);
    crash_candidates_release(&p->crash_candidates);
    known_ids_release(&p->known);
    p->open_activities = 0;
    p->recount = p->recounting = false;
    p->rejecting = 0;
}

void instances_destroy(struct instances *p)
{
    if (p == NULL)
        return;
    instances_reset(p);
    free(p);
}

/* --- the inbox ----------------------------------------------------------------------------------- */

void instances_set_inbox(struct instances *p, const struct position *position)
{
    progress_set(&p->progress, position);
}

void instances_forget_inbox(struct instances *p)
{
    progress_release(&p->progress);
}

const struct progress *instances_inbox(const struct instances *p)
{
    return &p->progress;
}

void instances_position_saved(struct instances *p)
{
    p->progress.dirty = false;
}

/* --- facts --------------------------------------------------------------------------------------- */

thole_slice instances_orchestration(const struct entry *entry)
{
    return entry->orchestration;
}

const struct origin *instances_parent(const struct entry *entry)
{
    return &entry->parent;
}

const struct trace *instances_trace(const struct entry *entry)
{
    return &entry->trace;
}

uint64_t instances_running_ms(const struct entry *entry)
{
    return entry->running_ms;
}

void instances_set_running_ms(struct entry *entry, uint64_t running_ms)
{
    entry->running_ms = running_ms;
}

size_t instances_in_memory(const struct instances *p)
{
    return p->entries.lru.len + p->entries.over.len + p->entries.early.len;
}

size_t instances_parked(const struct instances *p)
{
    return p->entries.live_len;
}

size_t instances_early(const struct instances *p)
{
    return p->entries.early.len;
}

size_t instances_early_bytes(const struct instances *p)
{
    return p->entries.early.held;
}

size_t instances_resting(const struct instances *p)
{
    return lanes_resting(&p->entries.lanes) + p->rejecting;
}

size_t instances_pending(const struct instances *p)
{
    return p->entries.pending_len;
}

size_t instances_pending_bytes(const struct instances *p)
{
    return p->entries.pending_bytes + p->rejecting * REJECTING_BYTES;
}

static size_t list_in_flight(const struct entry_list *list)
{
    size_t n = 0;
    for (const struct entry *entry = list->first; entry != NULL; entry = entry->lru_next)
        n += entry->in_flight;
    return n;
}

size_t instances_records_in_flight(const struct instances *p)
{
    return list_in_flight(&p->entries.lru) + list_in_flight(&p->entries.over) +
           list_in_flight(&p->entries.early);
}

bool instances_drop(struct instances *p, thole_slice instance)
{
    return entries_drop(&p->entries, instance);
}

bool instances_quiet(const struct instances *p)
{
    return lanes_empty(&p->entries.lanes) && p->refusals == NULL && p->rejecting == 0;
}

void instances_retry(struct instances *p, thole_slice instance)
{
    struct entry *entry = intake_entry(p, instance);
    assert(entry->state == ENTRY_LOADING); /* the partition is opening: nothing was received for it yet */
    entry->loading.retry = true;
}

/* --- commits ------------------------------------------------------------------------------------- */

static void say_lines(struct instances *p, const struct entry *entry, uint64_t execution,
                      const struct turn_log *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct out_line *out = &env_emit(p->env, PARTITION_OUT_LINE)->line;
        *out = (struct out_line){lines[i].level, env_copy(p->env, entry->id), env_copy(p->env, lines[i].text),
                                 execution, env_copy(p->env, entry->trace.parent)};
    }
}

/* All of the entry's records are committed: does what waited for that. */
static void instances_settled(struct instances *p, struct entry *entry)
{
    answers_tell(p, entry);
    if (entry->state == ENTRY_TO_LOAD)
        intake_reload(p, entry);
    else if (entry->delayed_ms != 0)
        executions_hear(p, entry);
    else if (entry->first != NULL)
        entries_ready(&p->entries, entry);
    else if (entry->questions != NULL && entry->state == ENTRY_ENDED)
        queries_answer(p, entry);
}

void instances_committed(struct instances *p, struct entry *entry, uint64_t execution,
                         const struct turn_log *lines, size_t lines_len)
{
    assert(entry->in_flight > 0);
    say_lines(p, entry, execution, lines, lines_len);
    if (--entry->in_flight == 0)
        instances_settled(p, entry);
}
