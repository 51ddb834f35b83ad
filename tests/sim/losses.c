#include "losses.h"
#include "worker_request.h"

enum { BESIDE_MS = LEASE_MS / 3 }; /* a run of this length is not suspected of later deaths */

enum fate { FATE_ALIVE, FATE_DIED, FATE_KILLED };

struct fact { /* one claim */
    size_t instance;
    uint64_t execution, activity_id, attempt, claimed, claimed_ms, settled_ms, reported_ms; /* 0: it is not */
    uint32_t try_number;
    thole_slice worker;
    bool isolated, heard, settled, told, blamed; /* heard: its worker knows of it; settled, told that it was
                                                 not lost, or is gone: whatever the database forgets; blamed:
                                                 it is known that its worker died of it */
    bool cancelled;                              /* before its worker died of another: so its history says */
    bool restored;                               /* by a renewal; when its worker began is not known here */
    bool poisoned;                               /* does not run: that is decided, whatever else is lost */
    enum fate fate;                              /* of its worker, while the claim was not reported */
    uint64_t killer_began_ms;                    /* FATE_KILLED, by another activity */
};

struct killer { /* one activity that kills its workers */
    size_t instance;
    uint64_t execution, activity_id, kills_left;
};

struct losses {
    struct fact *facts;
    size_t facts_len, facts_cap;
    struct killer *killers;
    size_t killers_len, killers_cap;
    const struct held *culprit; /* while its worker dies */
};

struct losses *losses_create(struct world *w)
{
    return keep(w, sizeof(struct losses));
}

/* ---- claims ---- */

void losses_claimed(struct world *w, const struct sim_claim *claim, thole_slice worker)
{
    struct losses *l = w->losses;
    l->facts = grown(w, l->facts, l->facts_len, &l->facts_cap, sizeof *l->facts);
    l->facts[l->facts_len++] = (struct fact){.instance = claim->instance,
                                             .execution = claim->execution,
                                             .activity_id = claim->activity_id,
                                             .attempt = claim->attempt,
                                             .claimed = claim->claimed,
                                             .try_number = claim->try_number,
                                             .claimed_ms = w->now_ms,
                                             .worker = worker,
                                             .isolated = claim->isolated};
    trace(w, "store: %.*s claims %.*s#%" PRIu64 " attempt %" PRIu64 "%s, %u lost", THOLE_FMT(worker),
          THOLE_FMT(w->instances[claim->instance]), claim->activity_id, claim->attempt,
          claim->isolated ? " apart" : "", claim->lost);
}

/* The newest; none that was made after it, if it says which it is. */
static struct fact *find(struct losses *l, const struct sim_claim *claim, thole_slice worker)
{
    for (size_t i = l->facts_len; i > 0; i--) {
        struct fact *f = &l->facts[i - 1];
        if (f->instance == claim->instance && f->execution == claim->execution &&
            f->activity_id == claim->activity_id && f->try_number == claim->try_number &&
            f->attempt == claim->attempt && thole_slice_equal(f->worker, worker) &&
            (claim->claimed == 0 || f->claimed <= claim->claimed))
            return f;
    }
    return NULL;
}

void losses_restored(struct world *w, const struct sim_claim *claim, thole_slice worker)
{
    if (find(w->losses, claim, worker) != NULL)
        return;
    losses_claimed(w, claim, worker);
    w->losses->facts[w->losses->facts_len - 1].heard = true;
    w->losses->facts[w->losses->facts_len - 1].restored = true;
}

void losses_heard(struct world *w, const struct sim_claim *claim, thole_slice worker)
{
    struct fact *f = find(w->losses, claim, worker);
    if (f != NULL)
        f->heard = true;
}

/* When the worker began with it: a claim that the database made late, when its worker had another one's
 * answer and was running it, is the same worker's same run. */
static uint64_t began_ms(const struct losses *l, const struct fact *f)
{
    for (size_t i = (size_t)(f - l->facts) + 1; i > 0; i--) {
        const struct fact *known = &l->facts[i - 1];
        if (known->heard && known->instance == f->instance && known->execution == f->execution &&
            known->activity_id == f->activity_id && known->try_number == f->try_number &&
            thole_slice_equal(known->worker, f->worker))
            return known->claimed_ms;
    }
    return f->claimed_ms;
}

void losses_settled(struct world *w, const struct sim_claim *claim, thole_slice worker)
{
    struct fact *f = find(w->losses, claim, worker);
    if (f == NULL)
        return;
    uint64_t const ran_ms = w->now_ms - began_ms(w->losses, f);
    if (ran_ms < BESIDE_MS && !f->restored)
        broken(w, "%.*s#%" PRIu64 " has settled after %" PRIu64 " ms",
               THOLE_FMT(w->instances[claim->instance]), claim->activity_id, ran_ms);
    f->settled_ms = w->now_ms;
    f->settled = true;
}

void losses_reported(struct world *w, const struct sim_claim *claim, thole_slice worker)
{
    struct fact *f = find(w->losses, claim, worker);
    if (f == NULL)
        return;
    f->reported_ms = w->now_ms;
    f->told = true;
    trace(w, "store: %.*s reports %.*s#%" PRIu64 " attempt %" PRIu64, THOLE_FMT(worker),
          THOLE_FMT(w->instances[claim->instance]), claim->activity_id, claim->attempt);
}

void losses_blamed(struct world *w, const struct sim_claim *claim, thole_slice worker)
{
    struct fact *f = find(w->losses, claim, worker);
    if (f != NULL)
        f->blamed = true;
}

void losses_completed(struct world *w, const struct row *row)
{
    struct sim_claim const claim = {.instance = row->instance,
                                    .execution = row->execution,
                                    .activity_id = row->id,
                                    .try_number = row->try_number,
                                    .attempt = row->attempt};
    losses_reported(w, &claim, row->worker);
}

void losses_gone(struct world *w, const struct sim_claim *claim, thole_slice worker)
{
    struct fact *f = find(w->losses, claim, worker);
    if (f != NULL)
        f->told = true;
}

void losses_forget(struct world *w)
{
    struct losses *l = w->losses;
    bool const all = (w->enabled >> FAULT_STORE_AHEAD & 1) != 0 || w->restores;
    for (size_t i = 0; i < l->facts_len; i++) {
        struct fact *f = &l->facts[i];
        if (all || f->settled_ms + STORE_LOST_WINDOW_MS >= w->now_ms)
            f->settled_ms = 0;
        if (all || f->reported_ms + STORE_LOST_WINDOW_MS >= w->now_ms)
            f->reported_ms = 0;
    }
}

/* ---- killers ---- */

/* Each time, or the first few times. */
static struct killer *killer_of(struct world *w, const struct held *h)
{
    struct losses *l = w->losses;
    bool const always = thole_slice_equal(h->activity, THOLE_STR("killer"));
    if (!always && !thole_slice_equal(h->activity, THOLE_STR("clumsy")))
        return NULL;
    for (size_t i = 0; i < l->killers_len; i++)
        if (l->killers[i].instance == h->instance && l->killers[i].execution == h->execution &&
            l->killers[i].activity_id == h->activity_id)
            return &l->killers[i];
    l->killers = grown(w, l->killers, l->killers_len, &l->killers_cap, sizeof *l->killers);
    l->killers[l->killers_len] = (struct killer){.instance = h->instance,
                                                 .execution = h->execution,
                                                 .activity_id = h->activity_id,
                                                 .kills_left = always ? UINT64_MAX : between(w, 1, 8)};
    return &l->killers[l->killers_len++];
}

bool losses_kills(struct world *w, const struct held *h)
{
    const struct killer *killer = killer_of(w, h);
    return killer != NULL && killer->kills_left > 0;
}

/* Would the next claim count this one against it, whose worker knows that it made it isolated? Not by a row
 * that was gone and was put back: what its worker has done since is in the log, and the row goes again. */
static bool will_count(struct world *w, const struct fact *f)
{
    const struct row *row = store_find(w->store, ROW_ACTIVITY, instance_partition(w, f->instance),
                                       f->instance, f->execution, f->activity_id);
    return f->isolated && f->heard && !f->settled && !f->told && !f->poisoned && row != NULL &&
           row->isolated && !row->later && !row->back && row->try_number == f->try_number &&
           row->attempt == f->attempt && thole_slice_equal(row->worker, f->worker);
}

/* A cancelled activity leaves the isolation slot at once: its row is going, too. */
static bool is_cancelled(const struct worker *worker, const struct fact *f)
{
    for (const struct held *h = worker->held; h != NULL; h = h->next)
        if (h->instance == f->instance && h->execution == f->execution && h->activity_id == f->activity_id &&
            h->attempt == f->attempt && h->cancelled)
            return true;
    return false;
}

/* Nothing else is started for a while before what runs isolated, nor beside it until it has settled, its
 * result is stored, or its row has heard that it was not lost. */
static void check_company(struct world *w, const struct held *h, const struct fact *f)
{
    bool const own =
        f->instance == h->instance && f->execution == h->execution && f->activity_id == h->activity_id;
    if (own || h->ran_ms + BESIDE_MS <= f->claimed_ms || !thole_slice_equal(f->worker, h->worker->identity) ||
        !will_count(w, f) || is_cancelled(h->worker, f))
        return;
    broken(w,
           "%s: %.*s#%" PRIu64 " was claimed isolated, and is lost with %.*s#%" PRIu64 " that ran beside it",
           h->worker->node.name, THOLE_FMT(w->instances[f->instance]), f->activity_id,
           THOLE_FMT(w->instances[h->instance]), h->activity_id);
}

void losses_killed(struct world *w, const struct held *h)
{
    struct killer *killer = killer_of(w, h);
    killer->kills_left -= killer->kills_left != UINT64_MAX;
    w->stats.kills++;
    w->losses->culprit = h;
    for (size_t i = 0; i < w->losses->facts_len; i++) {
        struct fact *const f = &w->losses->facts[i];
        check_company(w, h, f);
        f->cancelled = f->cancelled || is_cancelled(h->worker, f);
    }
}

void losses_died(struct world *w, thole_slice worker)
{
    struct losses *l = w->losses;
    const struct held *culprit = l->culprit;
    l->culprit = NULL;
    for (size_t i = 0; i < l->facts_len; i++) {
        struct fact *f = &l->facts[i];
        if (f->reported_ms != 0 || !thole_slice_equal(f->worker, worker))
            continue;
        bool const own = culprit != NULL && culprit->instance == f->instance &&
                         culprit->execution == f->execution && culprit->activity_id == f->activity_id;
        f->fate = culprit == NULL || own ? FATE_DIED : FATE_KILLED;
        f->killer_began_ms = culprit == NULL ? 0 : culprit->ran_ms;
    }
}

/* ---- poisoned activities ---- */

/* A reason to blame it: it ran isolated, and nothing that was started beside it killed its worker. Of a claim
 * whose answer was lost its worker knows nothing, nor that a crash of the database undid what it was told.
 * What was cancelled before is blamed for nothing: its history takes no outcome any more. */
static bool is_reason(const struct world *w, const struct fact *f)
{
    if (f->told || f->cancelled) /* told: and the database has forgotten it */
        return true;
    switch (f->fate) {
    case FATE_ALIVE: return w->enabled != 0 || !f->heard; /* nobody has heard of it, or it has not */
    case FATE_DIED: return true;
    case FATE_KILLED: return !f->heard || f->settled || f->killer_began_ms + BESIDE_MS <= f->claimed_ms;
    }
    return false;
}

void losses_poisoned(struct world *w, const struct held *h)
{
    struct losses *l = w->losses;
    struct sim_claim const claim = {.instance = h->instance,
                                    .execution = h->execution,
                                    .activity_id = h->activity_id,
                                    .try_number = h->try_number,
                                    .attempt = h->attempt};
    struct fact *const own = find(l, &claim, h->worker->identity);
    uint32_t lost = 0, isolated = 0, reasons = 0;
    if (own != NULL)
        own->poisoned = true;
    for (size_t i = 0; i < l->facts_len; i++) {
        const struct fact *f = &l->facts[i];
        if (f->instance != h->instance || f->execution != h->execution || f->activity_id != h->activity_id ||
            f->try_number != h->try_number || f == own ||
            (f->reported_ms != 0 && (own == NULL || f->reported_ms < own->claimed_ms)))
            continue; /* a report after the claim that uses it comes too late */
        bool const counts = f->isolated && (f->settled_ms == 0 || f->blamed);
        lost++;
        isolated += counts;
        reasons += counts && is_reason(w, f);
    }
    uint32_t const strikes = worker_strikes_max(w->poison_after);
    w->stats.poisoned++;
    w->stats.innocents += killer_of(w, h) == NULL;
    if (lost < w->poison_after || h->lost < w->poison_after || isolated < strikes)
        broken(w, "%.*s#%" PRIu64 " is poisoned, of %u claims %u are lost, %u of them isolated (it says %u)",
               THOLE_FMT(w->instances[h->instance]), h->activity_id, w->poison_after, lost, isolated,
               h->lost);
    else if (reasons < strikes)
        broken(w, "%.*s#%" PRIu64 " is poisoned: only %u of %u claims were lost for a reason of its own",
               THOLE_FMT(w->instances[h->instance]), h->activity_id, reasons, strikes);
}
