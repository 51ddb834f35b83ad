/* The statements of the worker: claims, renewals, completions, and what is lost with a worker. */
#include "checks.h"
#include "losses.h"
#include "store_rows.h"
#include <stdlib.h>
#include <string.h>

static bool claims_locked(struct world *w, const struct store_tx *mine, const struct sim_claim *claims,
                          size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct row *row = store_find(w->store, ROW_ACTIVITY, instance_partition(w, claims[i].instance),
                                           claims[i].instance, claims[i].execution, claims[i].activity_id);
        if (row != NULL && row->locked_by != NULL && row->locked_by != mine)
            return true;
    }
    return false;
}

static struct row *claimed_row(struct world *w, const struct sim_claim *claim)
{
    return store_row_at(w, ROW_ACTIVITY, instance_partition(w, claim->instance), claim->instance,
                        claim->execution, claim->activity_id);
}

/* In rows that were put back, an owner that others have replaced may have registered: it knows no better. */
static bool rows_of_replaced_owner(const struct world *w, uint32_t p)
{
    const struct row *of = store_find(w->store, ROW_PARTITION, p, 0, 0, 0);
    uint64_t const opened = log_last_epoch_opened(w->logs[p]);
    return of != NULL && opened > 0 && of->epoch < w->logs[p]->entries[opened - 1].epoch;
}

/* Gone, if the rows are complete; else the database may have lost it. */
static enum row_state missing(struct world *w, struct sim_claim *claim)
{
    claim->replaced = rows_of_replaced_owner(w, instance_partition(w, claim->instance));
    return store_is_complete(w, instance_partition(w, claim->instance)) ||
                   w->mutation == MUTATION_MISSING_BELIEVED
               ? ROW_MISSING
               : ROW_UNKNOWN;
}

/* Of a claim that was made before: not in rows that are older. Tries only grow, so one that has an earlier
 * try is. */
static enum row_state gone(struct world *w, const struct row *row, struct sim_claim *claim)
{
    const struct row *of =
        store_find(w->store, ROW_PARTITION, instance_partition(w, claim->instance), 0, 0, 0);
    bool const older = of == NULL || of->written < claim->claimed;
    bool const replaced = row->present && row->try_number >= claim->try_number;
    bool const earlier = row->present && row->try_number < claim->try_number;
    if (((older && !replaced) || earlier) && w->mutation != MUTATION_OLDER_BELIEVED)
        return ROW_UNKNOWN;
    return missing(w, claim);
}

static bool is_free(const struct world *w, const struct row *row)
{
    return row->lease_until_ms <= w->now_ms;
}

/* Also a claim that the database has forgotten, unless another worker has a lease. */
static enum row_state holds(struct world *w, const struct row *row, thole_slice worker,
                            struct sim_claim *claim)
{
    if (!row->present || row->try_number != claim->try_number)
        return gone(w, row, claim);
    if (thole_slice_equal(row->worker, worker))
        return ROW_MINE;
    if (row->later)
        return gone(w, row, claim);
    return row->attempt < claim->attempt && is_free(w, row) && work_digest_equal(&row->digest, &claim->digest)
               ? ROW_MINE
               : ROW_STOLEN;
}

/* Of a quick one, which nobody has ever claimed; not what another message says. */
static enum row_state holds_quick(struct world *w, const struct row *row, struct sim_claim *claim)
{
    bool const mine = row->present && row->try_number == claim->try_number && row->attempt == 0 &&
                      row->worker.len == 0 && !row->later && work_digest_equal(&row->digest, &claim->digest);
    if (!mine && w->mutation != MUTATION_QUICK_ANY)
        return ROW_STOLEN;
    claim->attempt = 1;
    claim->claimed = ++w->store->claimed;
    return row->present ? ROW_MINE : ROW_STOLEN;
}

/* ---- losses ---- */

static struct attempts with(struct world *w, struct attempts set, uint64_t attempt)
{
    uint64_t *items = keep(w, (set.len + 1) * sizeof *items);
    if (set.len > 0)
        memcpy(items, set.items, set.len * sizeof *items);
    items[set.len] = attempt;
    return (struct attempts){items, set.len + 1};
}

static bool has(struct attempts set, uint64_t attempt)
{
    for (size_t i = 0; i < set.len; i++)
        if (set.items[i] == attempt)
            return true;
    return false;
}

static struct attempts without(struct world *w, struct attempts set, uint64_t attempt)
{
    struct attempts left = {NULL, 0};
    for (size_t i = 0; i < set.len; i++)
        if (set.items[i] != attempt)
            left = with(w, left, set.items[i]);
    return left;
}

/* The claim of @p worker finds one whose worker never reported. Not if that is this worker itself. */
static bool lost_now(const struct world *w, const struct row *row, thole_slice worker)
{
    return row->worker.len > 0 && !thole_slice_equal(row->worker, worker) &&
           w->mutation != MUTATION_LOSSES_UNCOUNTED;
}

static bool strikes_now(const struct world *w, const struct row *row, thole_slice worker)
{
    return (row->isolated || w->mutation == MUTATION_COMPANY_COUNTS) && lost_now(w, row, worker);
}

static void take_over(struct world *w, struct row *row, thole_slice worker)
{
    bool const lost = lost_now(w, row, worker), strike = strikes_now(w, row, worker);
    if (lost) {
        row->lost = with(w, row->lost, row->attempt);
        row->lost_worker = row->worker;
    }
    if (strike)
        row->strikes = with(w, row->strikes, row->attempt);
}

/* May it be claimed in company, or at all? */
static bool is_candidate(const struct world *w, const struct row *row, thole_slice worker,
                         const struct claim_policy *policy)
{
    return row->lost.len + lost_now(w, row, worker) >= policy->candidate_after;
}

static bool is_poisoned(const struct world *w, const struct row *row, thole_slice worker,
                        const struct claim_policy *policy)
{
    uint64_t const lost_max = (uint64_t)policy->candidate_after + policy->strikes_max;
    return row->strikes.len + strikes_now(w, row, worker) >= policy->strikes_max &&
           row->lost.len + lost_now(w, row, worker) >= lost_max;
}

/* ---- the statements ---- */

/* The first claim does, or who takes a claim back that is lost. */
static void set_deadline(const struct world *w, struct row *row)
{
    if (row->try_timeout_ms > 0 && row->deadline_ms == 0)
        row->deadline_ms = w->now_ms + row->try_timeout_ms;
}

enum executed store_claim(struct world *w, thole_slice worker, const struct claim_policy *policy,
                          struct sim_claim *claims, size_t n)
{
    if (claims_locked(w, NULL, claims, n))
        return EXECUTE_LATER;
    store_commit_begin(w);
    for (size_t i = 0; i < n; i++) {
        struct row *row = claimed_row(w, &claims[i]);
        bool const another =
            (row->try_number != claims[i].try_number && w->mutation != MUTATION_CLAIM_ANY_TRY) ||
            (row->later && w->mutation != MUTATION_CLAIM_LATER);
        claims[i].state = ROW_MINE;
        if (!row->present || another) {
            claims[i].state = missing(w, &claims[i]);
            if (w->mutation == MUTATION_CLAIM_MISSING) {
                claims[i].state = ROW_MINE;
                claims[i].attempt = 1;
            }
            continue;
        }
        if (!work_digest_equal(&row->digest, &claims[i].digest) &&
            w->mutation != MUTATION_CLAIM_DIGEST_IGNORED) {
            claims[i].state = ROW_FORGED;
            continue;
        }
        if (!is_free(w, row) && !thole_slice_equal(row->worker, worker) &&
            w->mutation != MUTATION_CLAIM_HELD) {
            claims[i].state = ROW_HELD;
            claims[i].left_ms = row->lease_until_ms - w->now_ms;
            continue;
        }
        if (!claims[i].isolated && is_candidate(w, row, worker, policy) &&
            !is_poisoned(w, row, worker, policy)) {
            claims[i].state = ROW_CANDIDATE;
            continue;
        }
        store_remember(w, row);
        claims[i].poisoned = is_poisoned(w, row, worker, policy);
        take_over(w, row, worker);
        row->attempt++;
        row->worker = worker;
        row->shelved = false;
        row->isolated = claims[i].isolated;
        row->touched_ms = w->now_ms;
        row->claimed = ++w->store->claimed;
        row->lease_until_ms = w->mutation == MUTATION_LEASE_STAYS ? UINT64_MAX : w->now_ms + LEASE_MS;
        set_deadline(w, row);
        claims[i].attempt = row->attempt;
        claims[i].claimed = row->claimed;
        claims[i].lost = (uint32_t)row->lost.len;
        claims[i].lost_worker = row->lost_worker;
        claims[i].state = ROW_MINE;
        losses_claimed(w, &claims[i], worker);
    }
    return EXECUTED;
}

enum executed store_renew(struct world *w, thole_slice worker, struct sim_claim *claims, size_t n)
{
    if (claims_locked(w, NULL, claims, n))
        return EXECUTE_LATER;
    store_commit_begin(w);
    for (size_t i = 0; i < n; i++) {
        struct row *row = claimed_row(w, &claims[i]);
        claims[i].state = holds(w, row, worker, &claims[i]);
        if (claims[i].state == ROW_STOLEN && w->mutation == MUTATION_STOLEN_IS_GONE)
            claims[i].state = ROW_MISSING;
        else if (claims[i].state == ROW_MISSING && w->mutation == MUTATION_GONE_IS_MINE)
            claims[i].state = ROW_MINE;
        else if (claims[i].state == ROW_MINE) {
            store_remember(w, row);
            row->touched_ms = w->now_ms;
            bool const restored = !thole_slice_equal(row->worker, worker) || row->attempt < claims[i].attempt;
            if (restored)
                row->claimed =
                    w->mutation == MUTATION_RESTORED_ANEW ? ++w->store->claimed : claims[i].claimed;
            bool const settled = claims[i].settled && row->attempt <= claims[i].attempt;
            row->worker = worker;
            row->attempt = row->attempt > claims[i].attempt ? row->attempt : claims[i].attempt;
            claims[i].attempt = row->attempt;
            claims[i].claimed = row->claimed;
            row->lease_until_ms = w->mutation == MUTATION_LEASE_STAYS ? UINT64_MAX : w->now_ms + LEASE_MS;
            set_deadline(w, row);
            row->isolated = row->isolated && !restored && !settled; /* of another claim */
            if (restored)
                losses_restored(w, &claims[i], worker);
            if (settled)
                losses_settled(w, &claims[i], worker);
        }
    }
    return EXECUTED;
}

enum executed store_complete_begin(struct world *w, struct store_tx *tx, thole_slice worker,
                                   struct sim_claim *claims, size_t n)
{
    if (tx->dead)
        return EXECUTED;
    if (claims_locked(w, tx, claims, n))
        return EXECUTE_LATER;
    if (!tx->open) {
        if (w->store->open_len == STORE_OPEN_TX_MAX)
            abort();
        w->store->open[w->store->open_len++] = tx;
        tx->open = true;
        tx->rows_len = 0;
    }
    for (size_t i = 0; i < n; i++) {
        struct row *row = claimed_row(w, &claims[i]);
        claims[i].state =
            claims[i].quick ? holds_quick(w, row, &claims[i]) : holds(w, row, worker, &claims[i]);
        if (claims[i].state == ROW_STOLEN && !claims[i].quick && w->mutation == MUTATION_COMPLETE_ANY)
            claims[i].state = ROW_MINE;
        if (claims[i].state != ROW_MINE || row->locked_by == tx)
            continue;
        if (tx->rows_len == STORE_TX_ROWS_MAX)
            abort();
        row->locked_by = tx;
        tx->rows[tx->rows_len++] = (size_t)(row - w->store->rows);
    }
    return EXECUTED;
}

bool store_complete_commit(struct world *w, struct store_tx *tx)
{
    if (!tx->open)
        return false;
    store_commit_begin(w);
    for (size_t i = 0; i < tx->rows_len; i++) {
        struct row *row = &w->store->rows[tx->rows[i]];
        row->locked_by = NULL;
        losses_completed(w, row);
        store_remember(w, row);
        row->present = false;
    }
    store_unlock_rows(w, tx);
    return true;
}

void store_complete_rollback(struct world *w, struct store_tx *tx)
{
    if (tx->open)
        store_unlock_rows(w, tx);
}

void store_tx_dies(struct world *w, struct store_tx *tx)
{
    store_complete_rollback(w, tx);
    tx->dead = true;
}

void store_tx_idles(struct world *w, struct store_tx *tx)
{
    tx->idle = tx->open;
    if (tx->open)
        store_tx_dies(w, tx);
}

enum executed store_release(struct world *w, thole_slice worker, struct sim_claim *claims, size_t n)
{
    if (claims_locked(w, NULL, claims, n))
        return EXECUTE_LATER;
    store_commit_begin(w);
    for (size_t i = 0; i < n; i++) {
        struct row *row = claimed_row(w, &claims[i]);
        claims[i].state = holds(w, row, worker, &claims[i]);
        if (claims[i].state != ROW_MINE || row->attempt != claims[i].attempt)
            continue;
        store_remember(w, row);
        row->worker = (thole_slice){NULL, 0};
        row->lease_until_ms = row->claimed = 0;
        losses_reported(w, &claims[i], worker);
    }
    return EXECUTED;
}

/* The worker lives: whether or not another one has the row by now, the claim was not lost. */
enum executed store_not_lost(struct world *w, thole_slice worker, struct sim_claim *claims, size_t n)
{
    if (claims_locked(w, NULL, claims, n))
        return EXECUTE_LATER;
    store_commit_begin(w);
    for (size_t i = 0; i < n; i++) {
        struct row *row = claimed_row(w, &claims[i]);
        bool const mine = row->attempt == claims[i].attempt && thole_slice_equal(row->worker, worker) &&
                          (row->claimed == claims[i].claimed || w->mutation == MUTATION_CLAIM_MISTAKEN);
        losses_reported(w, &claims[i], worker);
        claims[i].state = ROW_MISSING;
        if (!row->present || row->try_number != claims[i].try_number ||
            (!mine && !has(row->lost, claims[i].attempt)) || w->mutation == MUTATION_NOT_LOST_IGNORED)
            continue;
        store_remember(w, row);
        row->lost = without(w, row->lost, claims[i].attempt);
        row->strikes = without(w, row->strikes, claims[i].attempt);
        if (mine) {
            row->worker = (thole_slice){NULL, 0};
            row->lease_until_ms = 0;
        }
        claims[i].state = ROW_MINE;
    }
    return EXECUTED;
}

/* A blamed claim is lost at once, and claims that ran beside it are not lost at all. */
static void on_death(struct world *w, struct row *row, bool is_blamed, uint32_t candidate_after)
{
    struct sim_claim const claim = {.instance = row->instance,
                                    .execution = row->execution,
                                    .activity_id = row->id,
                                    .try_number = row->try_number,
                                    .attempt = row->attempt};
    bool const strike = row->isolated || row->lost.len >= candidate_after;
    store_remember(w, row);
    if (is_blamed && w->mutation != MUTATION_LOSSES_UNCOUNTED) {
        losses_blamed(w, &claim, row->worker);
        row->lost_worker = row->worker;
        row->lost = with(w, row->lost, row->attempt);
        row->strikes = strike ? with(w, row->strikes, row->attempt) : row->strikes;
    } else {
        losses_reported(w, &claim, row->worker);
        if (w->mutation == MUTATION_DEATH_BLAMES_ALL)
            row->lost = with(w, row->lost, row->attempt);
    }
    row->worker = (thole_slice){NULL, 0};
    row->lease_until_ms = row->claimed = 0;
    row->touched_ms = w->now_ms;
}

enum executed store_died(struct world *w, thole_slice worker, const struct sim_claim *blamed,
                         uint32_t candidate_after)
{
    struct store *store = w->store;
    for (int look = 0; look < 2; look++) {
        if (look > 0)
            store_commit_begin(w);
        for (size_t i = 0; i < store->rows_len; i++) {
            struct row *row = &store->rows[i];
            if (row->kind != ROW_ACTIVITY || !row->present || row->later ||
                !thole_slice_equal(row->worker, worker))
                continue;
            if (row->locked_by != NULL)
                return EXECUTE_LATER;
            bool const same = row->instance == blamed->instance && row->execution == blamed->execution &&
                              row->id == blamed->activity_id && row->try_number == blamed->try_number &&
                              row->attempt == blamed->attempt;
            if (look > 0)
                on_death(w, row, same, candidate_after);
        }
    }
    return EXECUTED;
}

enum executed store_leave(struct world *w, thole_slice worker, struct sim_claim *claims, size_t n)
{
    if (claims_locked(w, NULL, claims, n))
        return EXECUTE_LATER;
    store_commit_begin(w);
    for (size_t i = 0; i < n; i++) {
        struct row *row = claimed_row(w, &claims[i]);
        claims[i].state = holds(w, row, worker, &claims[i]);
        if (claims[i].state != ROW_MINE)
            continue;
        store_remember(w, row);
        row->later = true;
        losses_gone(w, &claims[i], worker); /* runs no more, also when the database loses this */
        checks_on_left(w, row);
        row->lease_until_ms = 0;
        set_deadline(w, row);
    }
    return EXECUTED;
}

/* Not what a worker has, nor for a message that says something else. */
enum executed store_shelve(struct world *w, thole_slice worker, struct sim_claim *claims, size_t n)
{
    if (claims_locked(w, NULL, claims, n))
        return EXECUTE_LATER;
    store_commit_begin(w);
    for (size_t i = 0; i < n; i++) {
        struct row *row = claimed_row(w, &claims[i]);
        if (!row->present || row->try_number != claims[i].try_number || row->later) {
            claims[i].state = missing(w, &claims[i]);
        } else if (!work_digest_equal(&row->digest, &claims[i].digest)) {
            claims[i].state = ROW_FORGED;
        } else if (!is_free(w, row)) {
            claims[i].state = thole_slice_equal(row->worker, worker) ? ROW_STOLEN : ROW_HELD;
            claims[i].left_ms = row->lease_until_ms - w->now_ms;
        } else {
            store_remember(w, row);
            row->shelved = w->mutation != MUTATION_SHELF_UNMARKED;
            claims[i].state = ROW_MINE;
            w->stats.shelved++;
        }
    }
    return EXECUTED;
}
