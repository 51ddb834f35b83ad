/* The room as a whole: made, forgotten, told of commits. What it does: instances.h. */
#include "instances_state.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>

struct instances *instances_create(struct env *env)
{
    struct instances *p = memory_new(sizeof *p);
    p->env = env;
    p->event_room = env->options.record_max - env_record_beside(&env->options);
    entries_init(&p->entries);
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

size_t instances_pending(const struct instances *p)
{
    return p->entries.pending_len;
}

size_t instances_pending_max(void)
{
    return PENDING_MAX;
}

size_t instances_records_in_flight(const struct instances *p)
{
    size_t n = 0;
    for (const struct entry *entry = p->entries.lru.lru_next; entry != &p->entries.lru;
         entry = entry->lru_next)
        n += entry->in_flight;
    for (const struct entry *entry = p->entries.ended.lru_next; entry != &p->entries.ended;
         entry = entry->lru_next)
        n += entry->in_flight;
    return n;
}

bool instances_quiet(const struct instances *p)
{
    return p->entries.ready_first == NULL && p->refusals == NULL && p->rejecting == 0;
}

void instances_retry(struct instances *p, thole_slice instance)
{
    struct entry *entry = intake_entry(p, instance);
    if (entry != NULL)
        entry->retry = true;
}

/* --- commits ------------------------------------------------------------------------------------- */

static void say_lines(struct instances *p, const struct entry *entry, uint64_t execution,
                      const struct turn_log *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct out_line *out = &env_emit(p->env, PARTITION_OUT_LINE)->line;
        *out = (struct out_line){lines[i].level, env_copy(p->env, entry->id), env_copy(p->env, lines[i].text),
                                 execution};
    }
}

/* What waited for the last of its records. */
static void settled(struct instances *p, struct entry *entry)
{
    if (entry->reload)
        intake_load(p, entry);
    else if (entry->first != NULL && entry->state != ENTRY_LOADING)
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
        settled(p, entry);
}

/* --- invariants ---------------------------------------------------------------------------------- */

static size_t count_pending(const struct entry *entry)
{
    size_t n = 0;
    for (const struct pending *pending = entry->first; pending != NULL; pending = pending->next) {
        assert(pending->next != NULL || pending == entry->last);
        n++;
    }
    return n;
}

static size_t count_questions(const struct entry *entry)
{
    size_t n = 0;
    for (const struct question *question = entry->questions; question != NULL; question = question->next)
        n++;
    return n;
}

static void check_entry(const struct entry *entry)
{
    bool const code = entry->state == ENTRY_LIVE || entry->state == ENTRY_CONTINUED;
    assert(entry->id.len > 0 && entry->token > 0);
    assert(!code || entry->instance != NULL);
    assert(code || entry->state == ENTRY_BLOCKED || entry->instance == NULL);
    assert((entry->state == ENTRY_EARLY) == (entry->early != NULL));
    assert(entry->state != ENTRY_EARLY || entry->execution == 0);
    assert(entry->state == ENTRY_LOADING || (!entry->reload && !entry->recalled));
    assert(!entry->reload || entry->in_flight > 0);
    assert(entry->state != ENTRY_BLOCKED || entry->blocked != BLOCKED_NOT);
    assert(!entry->ready || entry->state != ENTRY_LOADING);
    assert(entry->state == ENTRY_LOADING || entry->state == ENTRY_CONTINUED || entry->questions == NULL ||
           (entry->state == ENTRY_ENDED && (entry->in_flight > 0 || entry->ready)));
    assert(entry->waiting_len <= entry->waiting_cap);
}

struct sums {
    size_t pending, questions, recalled, refusals, ready;
};

static void check_list(const struct entry *sentinel, size_t len, bool ended, struct sums *sums)
{
    size_t n = 0;
    for (const struct entry *entry = sentinel->lru_next; entry != sentinel; entry = entry->lru_next) {
        assert(entry->lru_next->lru_prev == entry && entry->in_ended == ended);
        check_entry(entry);
        sums->pending += count_pending(entry);
        sums->questions += count_questions(entry);
        sums->recalled += entry->recalled;
        sums->refusals += entry->refusals;
        sums->ready += entry->ready;
        n++;
    }
    assert(n == len);
}

void instances_check(const struct instances *p)
{
    struct sums sums = {0};
    size_t refusals = 0, ready = 0;
    assert(p->run.entry == NULL);
    check_list(&p->entries.lru, p->entries.len, false, &sums);
    check_list(&p->entries.ended, p->entries.ended_len, true, &sums);
    for (const struct refusal *refusal = p->refusals; refusal != NULL; refusal = refusal->next)
        refusals++;
    for (const struct entry *entry = p->entries.ready_first; entry != NULL; entry = entry->ready_next) {
        assert(entry->ready && (entry->ready_next != NULL || entry == p->entries.ready_last));
        ready++;
    }
    assert(sums.pending == p->entries.pending_len && sums.questions == p->entries.questions_len);
    assert(sums.recalled == p->entries.recalled_len && sums.recalled <= RECALLS_MAX);
    assert(sums.refusals == refusals && sums.ready == ready);
    for (size_t i = 1; i < p->progress.above_len; i++)
        assert(p->progress.above[i - 1] < p->progress.above[i]);
    assert(p->progress.above_len == 0 || p->progress.above[0] > p->progress.floor + 1);
}
