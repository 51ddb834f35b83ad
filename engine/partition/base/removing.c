#include "removing.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>

enum {
    STRETCH = 64,             /* records of a walk, after which it is seen how dense they are */
    STRETCH_DENSE = 64 * 256, /* sequences */
    ASTRAY_MAX = 8,           /* records of other executions that a walk passes over */
    ANSWERED = 2,             /* so many deletions are answered each; */
    LISTED_FOR_ONE = 8,       /* subjects that the server lists for the cost of an answer */
};

enum unit_step {
    UNIT_LAST, /* asks for its last record, its first one, the one before */
    UNIT_FIRST,
    UNIT_AT,
    UNIT_ASKED,  /* waits for an answer */
    UNIT_SCAN,   /* after the walks of the others */
    UNIT_WALKED, /* all that is known of it was found, or deleted */
};

struct unit { /* an execution, or what stands in its place */
    uint64_t execution, records;
    uint64_t found;        /* by the walk */
    uint64_t next;         /* where the walk goes on */
    uint64_t stretch_from; /* sequence */
    uint32_t astray;
    enum unit_step step, asked;
};
struct found_record {
    uint64_t sequence;
    size_t unit;
};

enum phase { PHASE_LIST, PHASE_LISTING, PHASE_WALK, PHASE_SCAN, PHASE_SCANNING, PHASE_DELETE, PHASE_ENDED };

struct removing {
    struct executions executions;
    uint64_t below;
    enum phase phase;
    enum removing_state state;
    struct unit *units; /* in the order in which they go */
    size_t units_len, units_cap;
    size_t from, to; /* the chunk under way */
    size_t walking;  /* units of it whose walk has not ended */
    size_t next;     /* unit of it: those before have nothing to ask for */
    struct found_record *found;
    size_t found_len, found_cap, asked, answered; /* asked, answered: deletions of `found` */
    uint64_t listed, removed;                     /* records, in this round */
    uint64_t others;                              /* subjects of the list that stay */
    uint64_t told;                                /* of `removed`: no answer has said so */
    uint64_t before; /* `listed` of the round before, which has told; 0: it has not */
    bool whole;      /* the list was */
    bool certain;    /* deletions without an answer were not done: now each one is answered */
    bool scans;      /* the last round has removed nothing: the hints lead nowhere */
    struct removing_place known[REMOVING_KNOWN];
    size_t known_len;
    bool guesses; /* the known records go first */
};

struct removing *removing_create(struct executions executions, uint64_t below)
{
    struct removing *const r = memory_new(sizeof *r);
    assert(below > 0);
    *r = (struct removing){.executions = executions, .below = below};
    return r;
}

void removing_destroy(struct removing *r)
{
    if (r == NULL)
        return;
    free(r->units);
    free(r->found);
    free(r);
}

void removing_know(struct removing *r, struct removing_place place)
{
    assert(r->phase == PHASE_LIST && r->units_len == 0 && r->known_len < REMOVING_KNOWN);
    if (r->executions.upto == 0) /* a pruning has not loaded the records that it removes */
        r->known[r->known_len++] = place;
}

enum removing_state removing_state(const struct removing *r)
{
    return r->state;
}

/* ---- rounds: the list ---- */

static bool unit_is_shared(const struct unit *unit)
{
    return unit->execution == 0 || unit->execution == REMOVING_DELETIONS;
}

/* Of deletions the one that asks, or a later one, stays. */
static bool removing_wants(const struct removing *r, uint64_t execution, uint64_t records)
{
    const struct executions *const some = &r->executions;
    if (some->upto > 0)
        return execution > some->above && execution <= some->upto;
    return execution != REMOVING_DELETIONS || records > 1;
}

void removing_item(struct removing *r, uint64_t execution, uint64_t records)
{
    assert(r->phase == PHASE_LISTING);
    bool const goes = records > 0 && removing_wants(r, execution, records);
    r->others += !goes;
    if (!goes)
        return;
    r->units = memory_reserve(r->units, &r->units_cap, r->units_len + 1, sizeof *r->units);
    struct unit *const unit = &r->units[r->units_len++];
    *unit = (struct unit){.execution = execution, .records = records, .step = UNIT_LAST};
    if (r->scans || records > REMOVING_CHUNK)
        unit->step = UNIT_SCAN;
    else if (unit_is_shared(unit))
        unit->step = UNIT_FIRST;
    r->listed += records;
}

/* Deletions, then the executions, by way of whose records those that came early may be found; then these. */
static int unit_by_age(const void *a, const void *b)
{
    uint64_t const x = ((const struct unit *)a)->execution, y = ((const struct unit *)b)->execution;
    uint64_t const p = x == REMOVING_DELETIONS ? 0 : x == 0 ? REMOVING_DELETIONS : x;
    uint64_t const q = y == REMOVING_DELETIONS ? 0 : y == 0 ? REMOVING_DELETIONS : y;
    return (p > q) - (p < q);
}

static void removing_end_round(struct removing *r)
{
    if (r->guesses) {
        r->guesses = false;
        r->known_len = 0;
        r->phase = PHASE_LIST;
        return;
    }
    bool const none = r->removed == 0;
    bool const all = r->removed >= r->listed && r->told == 0 && (r->whole || none);
    r->phase = PHASE_LIST;
    r->before = r->told > 0 ? r->listed : 0;
    if (all || (none && r->scans)) {
        r->state = all ? REMOVING_DONE : REMOVING_STUCK;
        r->phase = PHASE_ENDED;
    }
    r->scans |= none;
}

/* The next unit that is shared, or so many others that their records are a chunk. */
static void removing_begin_chunk(struct removing *r)
{
    uint64_t records = 0;
    r->from = r->next = r->to;
    r->walking = 0;
    while (r->to < r->units_len) {
        const struct unit *const unit = &r->units[r->to];
        records += unit->records;
        bool const alone = unit_is_shared(unit) || (r->to > 0 && unit_is_shared(unit - 1));
        if (r->to > r->from && (alone || records > REMOVING_CHUNK))
            break;
        r->walking += unit->step != UNIT_SCAN;
        r->to++;
    }
}

static int found_by_sequence(const void *a, const void *b)
{
    const struct found_record *const x = a, *const y = b;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Nothing is under way: what is next? First what was found goes, the oldest first. */
static void removing_go_on(struct removing *r)
{
    bool scan = false;
    r->asked = r->answered = 0;
    if (r->found_len > 0) {
        qsort(r->found, r->found_len, sizeof *r->found, found_by_sequence);
        r->phase = PHASE_DELETE;
        return;
    }
    for (size_t i = r->from; i < r->to; i++)
        scan |= r->units[i].step == UNIT_SCAN;
    if (r->walking == 0 && !scan)
        removing_begin_chunk(r);
    if (r->from == r->to) {
        removing_end_round(r);
        return;
    }
    r->next = r->from;
    r->phase = r->walking > 0 ? PHASE_WALK : PHASE_SCAN;
}

void removing_listed(struct removing *r, bool whole)
{
    assert(r->phase == PHASE_LISTING);
    if (r->units_len > 0)
        qsort(r->units, r->units_len, sizeof *r->units, unit_by_age);
    r->from = r->to = r->walking = 0;
    r->whole = whole;
    r->certain |= r->before > 0 && r->listed >= r->before;
    removing_go_on(r);
}

/* ---- walks ---- */

static void removing_take(struct removing *r, size_t unit, uint64_t sequence)
{
    r->found = memory_reserve(r->found, &r->found_cap, r->found_len + 1, sizeof *r->found);
    r->found[r->found_len++] = (struct found_record){sequence, unit};
    r->units[unit].found++;
}

/* The unit's records are looked for in order: those that its walk has found do not go before. */
static void removing_forget_found(struct removing *r, size_t unit)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->found_len; i++)
        if (r->found[i].unit != unit)
            r->found[kept++] = r->found[i];
    r->found_len = kept;
    r->units[unit].found = 0;
}

/* The first of those that are left. Of what is shared there are some below, one after the other. */
static enum unit_step removing_take_first(struct removing *r, size_t at, const struct removing_record *record)
{
    struct unit *const unit = &r->units[at];
    uint64_t const left = unit->records - unit->found;
    if (record->execution != unit->execution || record->sequence == 0)
        return unit_is_shared(unit) ? UNIT_WALKED : UNIT_SCAN; /* if it exists it is listed again */
    if (record->sequence >= r->below) {
        r->listed -= left; /* all that are left stay */
        return UNIT_WALKED;
    }
    if (!unit_is_shared(unit))
        return UNIT_SCAN;
    removing_take(r, at, record->sequence);
    bool const keeps = unit->execution == REMOVING_DELETIONS;
    r->listed -= keeps && left == 2;
    return left <= (uint64_t)1 + keeps ? UNIT_WALKED : UNIT_FIRST;
}

static bool unit_is_dense(struct unit *unit, uint64_t sequence)
{
    if (unit->records - unit->found <= REMOVING_WALKED || unit->found % STRETCH != 1)
        return false;
    uint64_t const from = unit->stretch_from;
    unit->stretch_from = sequence;
    return from != 0 && from - sequence < STRETCH_DENSE;
}

/* The last known record is where it was: the ones before it are too, or they are gone. */
static void removing_take_known(struct removing *r, size_t at, uint64_t last)
{
    uint64_t const execution = r->units[at].execution;
    uint64_t newest = 0;
    for (size_t i = 0; i < r->known_len; i++)
        if (r->known[i].execution == execution && r->known[i].sequence > newest)
            newest = r->known[i].sequence;
    for (size_t i = 0; i < r->known_len && newest == last && last < r->below; i++)
        if (r->known[i].execution == execution)
            removing_take(r, at, r->known[i].sequence);
}

static enum unit_step removing_take_walked(struct removing *r, size_t at,
                                           const struct removing_record *record)
{
    struct unit *const unit = &r->units[at];
    bool const belongs = record->execution == unit->execution;
    if (record->sequence == 0 || !record->of_instance)
        return UNIT_SCAN;
    if (belongs && record->sequence >= r->below)
        return UNIT_FIRST;
    if (r->guesses) {
        if (belongs)
            removing_take_known(r, at, record->sequence);
        return UNIT_WALKED;
    }
    if (belongs)
        removing_take(r, at, record->sequence);
    else if (++unit->astray > ASTRAY_MAX)
        return UNIT_SCAN;
    if (unit->found == unit->records)
        return UNIT_WALKED;
    unit->next = record->before;
    bool const leads = record->before > 0 && record->before < record->sequence;
    return leads && !(belongs && unit_is_dense(unit, record->sequence)) ? UNIT_AT : UNIT_SCAN;
}

void removing_found(struct removing *r, uint64_t number, const struct removing_record *record)
{
    size_t const at = (size_t)number;
    assert(r->phase == PHASE_WALK && at >= r->from && at < r->to && r->units[at].step == UNIT_ASKED);
    struct unit *const unit = &r->units[at];
    unit->step =
        unit->asked == UNIT_FIRST ? removing_take_first(r, at, record) : removing_take_walked(r, at, record);
    if (unit->step == UNIT_SCAN)
        removing_forget_found(r, at);
    if (unit->step < UNIT_ASKED && at < r->next)
        r->next = at;
    r->walking -= unit->step > UNIT_ASKED;
    if (r->walking == 0 || unit_is_shared(unit)) /* the first record of what is shared goes before the next */
        removing_go_on(r);
}

/* ---- scans ---- */

bool removing_met(struct removing *r, uint64_t unit, uint64_t sequence)
{
    assert(r->phase == PHASE_SCANNING && unit >= r->from && unit < r->to && sequence < r->below);
    removing_take(r, (size_t)unit, sequence);
    return r->found_len < REMOVING_CHUNK;
}

void removing_scanned(struct removing *r, uint64_t unit, bool all)
{
    assert(r->phase == PHASE_SCANNING && unit >= r->from && unit < r->to && r->found_len <= REMOVING_CHUNK);
    struct unit *const scanned = &r->units[unit];
    if (all) {
        scanned->step = UNIT_WALKED;
        r->listed -=
            scanned->records > scanned->found ? scanned->records - scanned->found : 0; /* records that stay */
    }
    removing_go_on(r);
}

/* ---- deletions ---- */

void removing_deleted(struct removing *r, size_t n, bool was_there)
{
    assert(r->phase == PHASE_DELETE && n > 0 && r->answered + n <= r->asked);
    r->told += n - 1;
    r->removed += n - 1 + was_there;
    r->answered += n;
    if (r->answered < r->found_len)
        return;
    r->found_len = 0;
    removing_go_on(r);
}

/* ---- requests ---- */

static bool removing_ask_walk(struct removing *r, struct removing_ask *ret)
{
    static const enum removing_kind kinds[] = {
        [UNIT_LAST] = REMOVING_LAST, [UNIT_FIRST] = REMOVING_FIRST, [UNIT_AT] = REMOVING_AT};
    for (; r->next < r->to; r->next++) {
        struct unit *const unit = &r->units[r->next];
        if (unit->step >= UNIT_ASKED)
            continue;
        *ret = (struct removing_ask){
            .kind = kinds[unit->step], .execution = unit->execution, .sequence = unit->next, .unit = r->next};
        unit->asked = unit->step;
        unit->step = UNIT_ASKED;
        r->next++;
        return true;
    }
    return false;
}

static void removing_ask_scan(struct removing *r, struct removing_ask *ret)
{
    size_t i = r->from;
    while (r->units[i].step != UNIT_SCAN)
        i++;
    assert(i < r->to);
    *ret = (struct removing_ask){
        .kind = REMOVING_SCAN, .execution = r->units[i].execution, .sequence = r->below - 1, .unit = i};
    r->phase = PHASE_SCANNING;
}

/* ---- known places ---- */

/* Before the first list, which then says what is left. */
static void removing_guess(struct removing *r)
{
    for (size_t i = 0; i < r->known_len; i++) {
        uint64_t const execution = r->known[i].execution;
        bool const another = i == 0 || execution != r->known[i - 1].execution;
        if (!another || execution == 0)
            continue;
        r->units = memory_reserve(r->units, &r->units_cap, r->units_len + 1, sizeof *r->units);
        r->units[r->units_len++] =
            (struct unit){.execution = execution, .records = REMOVING_KNOWN, .step = UNIT_LAST};
    }
    r->guesses = true;
    removing_go_on(r);
}

static void removing_ask_list(struct removing *r, struct removing_ask *ret)
{
    r->units_len = 0;
    r->listed = r->removed = r->told = r->others = 0;
    r->phase = PHASE_LISTING;
    *ret = (struct removing_ask){.kind = REMOVING_LIST};
}

/* Each is answered where that costs the server less than to list again what is left. */
static bool removing_answers_each(const struct removing *r)
{
    return r->certain || r->found_len <= ANSWERED || r->others / LISTED_FOR_ONE > r->found_len;
}

static bool removing_ask_delete(struct removing *r, struct removing_ask *ret)
{
    size_t const under_way = r->asked - r->answered, left = r->found_len - r->asked;
    size_t const most = removing_answers_each(r) ? 1 : REMOVING_GROUP;
    if (left == 0 || under_way + REMOVING_GROUP > REMOVING_GROUPS * REMOVING_GROUP)
        return false;
    *ret = (struct removing_ask){.kind = REMOVING_DELETE, .n = left < most ? left : most};
    for (size_t i = 0; i < ret->n; i++)
        ret->sequences[i] = r->found[r->asked++].sequence;
    return true;
}

bool removing_next(struct removing *r, struct removing_ask *ret)
{
    if (r->phase == PHASE_LIST && r->known_len > 0)
        removing_guess(r);
    switch (r->phase) {
    case PHASE_LIST: removing_ask_list(r, ret); return true;
    case PHASE_WALK: return removing_ask_walk(r, ret);
    case PHASE_SCAN: removing_ask_scan(r, ret); return true;
    case PHASE_DELETE: return removing_ask_delete(r, ret);
    case PHASE_LISTING:
    case PHASE_SCANNING:
    case PHASE_ENDED: break;
    }
    return false;
}
