/* Invariants that hold between two calls of the room. Tests check them after every step. */
#include "instances_state.h"
#include <assert.h>

/* --- one entry ------------------------------------------------------------------------------------- */

enum {
    RUNS = 1u << ENTRY_RUNS,
    RECORDS = 1u << ENTRY_RECORDS,
    KEEPS = 1u << ENTRY_KEEPS,
    ANY = RUNS | RECORDS | KEEPS,
};

static const struct rule {
    unsigned limits;   /* set of enum entry_limit that it may have */
    bool waits;        /* received messages wait for the history */
    bool committed;    /* none of its records are in flight */
    bool begun;        /* has an execution, which does not end in this state */
    bool may_be_asked; /* questions may wait; its next state answers them */
} rules[] = {
    [ENTRY_LOADING] = {.limits = ANY, .waits = true, .committed = true, .may_be_asked = true},
    [ENTRY_TO_LOAD] = {.limits = ANY, .waits = true, .may_be_asked = true},
    [ENTRY_RECALLED] = {.limits = ANY, .waits = true, .committed = true, .may_be_asked = true},
    [ENTRY_ABSENT] = {.limits = ANY},
    [ENTRY_EARLY] = {.limits = ANY},
    [ENTRY_LIVE] = {.limits = RUNS, .begun = true},
    [ENTRY_BLOCKED] = {.limits = RUNS | RECORDS, .begun = true},
    [ENTRY_UNREADABLE] = {.limits = KEEPS},
    [ENTRY_CONTINUED] = {.limits = RUNS | RECORDS, .may_be_asked = true},
    [ENTRY_ENDED] = {.limits = ANY},
};

/* The payload of the state. */
static void instances_check_check_payload(const struct entry *entry)
{
    const struct entry_running *running = &entry->running;
    switch (entry_payload_of(entry->state)) {
    case PAYLOAD_LOADING: break;
    case PAYLOAD_EARLY: assert(entry->early != NULL && entry->early->due_ms > 0); break;
    case PAYLOAD_INSTANCE:
        assert(running->instance != NULL);
        assert(instance_ended(running->instance) == (entry->state == ENTRY_CONTINUED));
        assert(!running->retry || (entry->state == ENTRY_LIVE && entry->ready));
        break;
    case PAYLOAD_NONE: assert(running->instance == NULL && !running->retry); break;
    }
}

/* Invariants of single states. */
static void check_state(const struct entry *entry)
{
    switch (entry->state) {
    case ENTRY_TO_LOAD: assert(entry->in_flight > 0); break;
    case ENTRY_RECALLED: assert(entry->questions != NULL); break;
    case ENTRY_EARLY: assert(entry->execution == 0); break;
    case ENTRY_CONTINUED:
        assert((entry->ready || entry->delayed_ms != 0) && instance_continued(entry->running.instance));
        break;
    case ENTRY_ENDED: /* with questions it would be RECALLED */
        assert(entry->questions == NULL || entry->in_flight > 0 || entry->ready);
        break;
    case ENTRY_LOADING:
    case ENTRY_ABSENT:
    case ENTRY_LIVE:
    case ENTRY_BLOCKED:
    case ENTRY_UNREADABLE: break;
    }
}

/* When all of its records are committed, it is counted with its current facts. */
static void instances_check_check_counted(const struct instances *p, const struct entry *entry)
{
    const struct entry_counted *counted = &entry->counted;
    bool const live = entry->execution > 0 && entry->list != &p->entries.over;
    assert(entry->in_flight > 0 || rules[entry->state].waits || counted->name == live);
    assert(!counted->name || entry->orchestration.len > 0 || entry->limit == ENTRY_KEEPS);
}

/* An id that is being recorded is not treated as new. */
static void instances_check_check_known(const struct instances *p, const struct entry *entry)
{
    assert(entry->in_flight == 0 || known_ids_has(p, entry->id));
}

static void check_entry(const struct instances *p, const struct entry *entry)
{
    const struct rule *rule = &rules[entry->state];
    const struct entry_reason *reason = entry->reason;
    assert(entry->id.len > 0 && entry->id.ptr == entry->id_bytes && entry->token > 0);
    assert((rule->limits >> entry->limit & 1u) != 0);
    assert((reason != NULL) == (entry->state == ENTRY_BLOCKED || entry->limit != ENTRY_RUNS));
    assert(reason == NULL || (reason->kind != BLOCKED_NOT && reason->len <= DETAIL_BYTES_MAX));
    assert(!rule->committed || entry->in_flight == 0);
    assert(!rule->begun || entry->execution > entry->tombstone);
    assert(entry->waiting_len <= entry->waiting_cap);
    assert(entry->questions == NULL || rule->may_be_asked || entry->state == ENTRY_ENDED);
    assert(!entry->ready || !rule->waits);
    /* an entry with something to take is ready */
    assert(entry->ready || entry->delayed_ms != 0 || entry->first == NULL || !intake_waits(entry));
    assert(entry->delayed_ms == 0 || (entry->state == ENTRY_CONTINUED && !entry->ready));
    instances_check_check_payload(entry);
    check_state(entry);
    instances_check_check_counted(p, entry);
}

/* --- all of them ----------------------------------------------------------------------------------- */

struct sums {
    size_t pending, pending_bytes, questions, recalled, live, refusals, ready, delayed;
};

static void count_pending(const struct entry *entry, struct sums *sums)
{
    assert((entry->first == NULL) == (entry->last == NULL));
    for (const struct pending *pending = entry->first; pending != NULL; pending = pending->next) {
        assert(pending->next != NULL || pending == entry->last);
        sums->pending++;
        sums->pending_bytes += sizeof *pending + pending->arena.held;
    }
}

static size_t count_questions(const struct entry *entry)
{
    size_t n = 0;
    for (const struct question *question = entry->questions; question != NULL; question = question->next)
        n++;
    return n;
}

static void instances_check_check_list(const struct instances *p, const struct entry_list *list,
                                       struct sums *sums)
{
    const struct entry *previous = NULL;
    size_t n = 0, held = 0;
    bool const over = list == &p->entries.over, early = list == &p->entries.early;
    for (const struct entry *entry = list->first; entry != NULL; previous = entry, entry = entry->lru_next) {
        assert(entry->lru_prev == previous && entry->list == list);
        assert(entry_is_over(entry->state) == over || entry->state == ENTRY_RECALLED);
        assert((entry->state == ENTRY_EARLY) == early);
        check_entry(p, entry);
        instances_check_check_known(p, entry);
        count_pending(entry, sums);
        sums->questions += count_questions(entry);
        held += entry->held;
        assert(entry->held == 0 || entry_instance(entry) != NULL || early);
        sums->recalled += entry->state == ENTRY_RECALLED;
        sums->live += entry->state == ENTRY_LIVE;
        sums->refusals += entry->refusals;
        sums->ready += entry->ready;
        sums->delayed += entry->delayed_ms != 0;
        assert(entries_find(&p->entries, entry->id) == entry);
        n++;
    }
    assert(list->last == previous && n == list->len && held == list->held);
}

static size_t check_lane(const struct lane *lane)
{
    size_t n = 0;
    for (const struct entry *entry = lane->first; entry != NULL; entry = entry->ready_next) {
        assert(entry->ready && (entry->ready_next != NULL || entry == lane->last));
        n++;
    }
    assert(n > 0 && n == lane->len);
    return n;
}

static void check_entries(const struct instances *p, struct sums *sums)
{
    const struct entries *const entries = &p->entries;
    size_t ready = 0, delayed = 0;
    instances_check_check_list(p, &entries->lru, sums);
    instances_check_check_list(p, &entries->over, sums);
    instances_check_check_list(p, &entries->early, sums);
    for (const struct lane *lane = entries->lanes.first; lane != NULL; lane = lane->next) {
        ready += check_lane(lane);
        assert(lane->next != NULL || lane == entries->lanes.last);
    }
    for (const struct entry *entry = entries->delayed; entry != NULL; entry = entry->delayed_next)
        delayed += entry->delayed_ms != 0;
    assert(sums->ready == ready && sums->delayed == delayed && sums->pending == entries->pending_len &&
           sums->pending_bytes == entries->pending_bytes);
    assert(sums->questions == entries->questions_len);
    assert(sums->recalled == entries->recalled_len && sums->recalled <= RECALLS_MAX);
    assert(sums->live == entries->live_len);
}

static void check_progress(const struct progress *progress)
{
    struct position const position = progress_position(progress);
    uint64_t last = position.floor;
    for (size_t i = 0; i < position.ranges_len; i++) {
        struct sequence_range const range = position.ranges[i];
        assert(range.first > last + 1 && range.last >= range.first);
        last = range.last;
    }
    assert(progress->received >= progress->floor || progress->open == 0);
    assert(progress->open == 0 || progress->open <= progress->received - progress->floor);
}

static void check_known_ids(const struct known_ids *known, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < known->cap; i++)
        n += known->slots[i] != 0;
    assert(n == known->len);
    assert(!known->complete || (known->slots != NULL && !known->given_up));
    assert(!known->given_up || known->cap == 0);
    assert(known->len <= known->cap - known->cap / 4 && known->len <= most);
}

static void instances_check_check_names(const struct instances *p)
{
    for (size_t i = 0; i < p->names_len; i++)
        assert(p->names[i].name.len > 0 && p->names[i].count > 0);
}

void instances_check(const struct instances *p)
{
    struct sums sums = {0};
    size_t refusals = 0;
    assert(p->run.entry == NULL);
    check_entries(p, &sums);
    for (const struct refusal *refusal = p->refusals; refusal != NULL; refusal = refusal->next) {
        assert(refusal->entry->refusals > 0);
        refusals++;
    }
    assert(sums.refusals == refusals);
    check_progress(&p->progress);
    check_known_ids(&p->known, p->env->options.known_max);
    instances_check_check_names(p);
}
