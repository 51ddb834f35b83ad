#include "restores.h"
#include "checks.h"
#include "engine_request.h"
#include "losses.h"
#include "store_rows.h"
#include <string.h>

enum { DUMPS_MAX = 4, EARLIEST_MS = 30, LATEST_MS = 15000, BUSY_MS = 20 };

struct dump {
    struct row *rows;
    size_t len;
    uint64_t incarnation;
};
struct restores {
    struct dump dumps[DUMPS_MAX];
    size_t len;
};

static void task_restore(struct world *w, void *arg, uint64_t last);

static void take_dump(struct world *w)
{
    const struct store *store = w->store;
    struct restores *r = w->kept;
    struct dump *dump = &r->dumps[r->len < DUMPS_MAX ? r->len++ : rnd(w, DUMPS_MAX)];
    *dump = (struct dump){keep(w, (store->rows_len + 1) * sizeof *dump->rows), store->rows_len,
                          store->incarnation};
    if (dump->len > 0)
        memcpy(dump->rows, store->rows, dump->len * sizeof *dump->rows);
    trace(w, "the rows are dumped");
}

/* Nobody may count on a lease any more that the older row does not have. */
static void put_row_back(struct store *store, struct row *row, const struct row *older)
{
    uint64_t const made = row->made;
    bool const same = row->present && older->present && row->try_number == older->try_number &&
                      row->lease_until_ms == older->lease_until_ms &&
                      thole_slice_equal(row->worker, older->worker);
    bool const back = older->present && (!row->present || row->back);
    *row = *older;
    row->locked_by = NULL;
    row->back = back;
    row->made = same ? made : ++store->made;
}

/* Rows that are newer than the dump are gone. The table of the incarnation is not in each dump. */
static void put_back(struct world *w, const struct dump *dump)
{
    struct store *store = w->store;
    for (size_t i = 0; i < store->rows_len; i++) {
        if (i < dump->len) {
            put_row_back(store, &store->rows[i], &dump->rows[i]);
        } else {
            store->rows[i].present = store->rows[i].foreign = false;
            store->rows[i].state = (struct rows_state){.batches = 0};
            store->rows[i].incarnation = 0;
        }
    }
    store->incarnation = rnd(w, 2) == 0 ? 0 : dump->incarnation;
    store->commits_len = store->undo_len = 0;
    losses_forget(w);
    checks_on_store_crash(w);
    w->stats.restored++;
    trace(w, "older rows are put back");
}

/* Engines of another installation have opened the partitions of this copy meanwhile, with another log. */
static void open_elsewhere(struct world *w)
{
    for (size_t i = 0; i < w->store->rows_len; i++)
        if (w->store->rows[i].kind == ROW_PARTITION && w->store->rows[i].present)
            w->store->rows[i].epoch += 1 + w->seed % 199;
    checks_on_store_crash(w);
    trace(w, "they have newer epochs");
}

static void again(struct world *w)
{
    after(w, between(w, EARLIEST_MS, rnd(w, 2) == 0 ? 500 : LATEST_MS), task_restore, NULL, 0);
}

/* Whoever drops the tables waits for the transactions that use them. */
static void task_restore(struct world *w, void *arg, uint64_t last)
{
    const struct restores *r = w->kept;
    (void)arg;
    if (!w->faults && last == 0)
        return;
    if (w->store->open_len > 0) {
        after(w, BUSY_MS, task_restore, NULL, last);
        return;
    }
    if (r->len == 0 || (last == 0 && rnd(w, 2) == 0)) {
        take_dump(w);
    } else {
        put_back(w, &r->dumps[rnd(w, r->len)]);
        if (last != 0 && w->seed % 3 == 1)
            open_elsewhere(w);
    }
    w->restoring = false;
    if (last == 0)
        again(w);
}

void restores_begin(struct world *w)
{
    w->kept = keep(w, sizeof *w->kept);
    if (w->restores)
        again(w);
}

void restores_end(struct world *w)
{
    w->restoring = w->restores;
    if (w->restores)
        after(w, between(w, 0, 20000), task_restore, NULL, 1);
}

/* ---- detection ---- */

/* A newer owner may have written there, and that is looked for elsewhere; but not with an epoch that no
 * record has opened. */
static bool rows_of_rival(const struct world *w, const struct seat *seat)
{
    const struct row *row = store_find(w->store, ROW_PARTITION, seat->partition, 0, 0, 0);
    const struct log_stream *log = w->logs[seat->partition];
    uint64_t const opened = log_last_epoch_opened(log);
    uint64_t const newest = opened > 0 ? log->entries[opened - 1].epoch : 0;
    return row != NULL && row->epoch > partition_epoch(seat->machine) &&
           (row->epoch <= newest || w->mutation == MUTATION_NEWER_BELIEVED);
}

bool rows_as_left(const struct world *w, const struct seat *seat)
{
    struct rows_state rows;
    uint64_t const epoch = partition_epoch(seat->machine);
    return !partition_rows(seat->machine, &rows) || rows_of_rival(w, seat) ||
           store_is_as_left(w, seat->partition, epoch, &rows);
}

bool rows_as_answered(const struct world *w, const struct seat *seat)
{
    struct rows_state rows;
    (void)partition_rows(seat->machine, &rows);
    return store_is_as_left(w, seat->partition, partition_epoch(seat->machine), &rows);
}

bool rows_not_older(const struct world *w, const struct seat *seat)
{
    struct rows_state rows;
    (void)partition_rows(seat->machine, &rows);
    return store_is_not_older(w, seat->partition, partition_epoch(seat->machine), rows.batches);
}

/* On another connection, of which the owner has not been told yet (it may have paused meanwhile), its server
 * may have lost what was committed, as in apply(). On the one on which it opened, it has not. */
static bool nothing_is_lost(const struct world *w, const struct seat *seat)
{
    return !w->restores && seat->opened_life == seat->engine->node.links[SERVER_STORE].life;
}

bool rows_look(struct world *w, struct seat *seat)
{
    struct partition_in const in = {.kind = PARTITION_IN_STEP_DOWN,
                                    .generation = partition_generation(seat->machine),
                                    .step_down = {"the rows are of another time"}};
    if (rows_as_left(w, seat))
        return true;
    if (nothing_is_lost(w, seat))
        broken(w, "partition %u: its rows are not as %s has left them", seat->partition,
               seat->engine->node.name);
    w->stats.looked++;
    seat_input(w, seat, &in);
    return false;
}
