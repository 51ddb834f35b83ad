/* Activities that no worker of the queue knows: the row is marked, and the message removed. */
#include "worker_machine.h"
#include <assert.h>

bool worker_may_shelve(const struct worker_machine *w)
{
    return !w->stopping && w->now_ms >= w->shelve_gate_ms && worker_shelf_len(w) < WORKER_SHELVED_MAX;
}

/* One statement must not name a row twice: messages that say different things may be about one activity. */
static bool is_in_shelve(const struct worker_machine *w, const struct lease *lease)
{
    const struct lease *same = lease_table_find_key(&w->table, &lease->key);
    while (same != NULL && same->state != LEASE_SHELVING)
        same = lease_next_same(same);
    return same != NULL;
}

bool worker_poll_shelve(struct worker_machine *w, struct worker_out *ret)
{
    size_t n = 0;
    struct lease *next;
    if (leases_in(w, LEASE_SHELVING)->len > 0)
        return false;
    for (struct lease *l = leases_in(w, LEASE_UNSERVED)->first; l != NULL; l = next) {
        next = l->next;
        if (is_in_shelve(w, l))
            continue;
        lease_enter(&w->table, l, LEASE_SHELVING);
        w->rows[n++] = (struct worker_row){.id = l->id, .key = l->key, .digest = l->digest};
    }
    if (n == 0)
        return false;
    assert(n <= WORKER_SHELVED_MAX);
    *ret = (struct worker_out){.kind = WORKER_OUT_SHELVE, .rows = w->rows, .rows_len = n};
    return true;
}

/* The message comes again, and then is asked again. */
static void worker_shelf_unshelved(struct worker_machine *w, struct lease *lease)
{
    lease_put_back(w, lease, worker_ask_again_ms(w), WORKER_END_UNKNOWN);
}

static void shelve_answered(struct worker_machine *w, struct lease *lease, const struct worker_row *row)
{
    switch (row->state) {
    case WORKER_ROW_MINE: lease_end(w, lease, WORKER_OUT_ACK, WORKER_END_UNSERVED); break;
    case WORKER_ROW_MISSING: lease_end(w, lease, WORKER_OUT_ACK, WORKER_END_GONE); break;
    case WORKER_ROW_HELD: lease_put_back(w, lease, row->left_ms, WORKER_END_HELD); break;
    case WORKER_ROW_FORGED: lease_end(w, lease, WORKER_OUT_TERM, WORKER_END_FORGED); break;
    case WORKER_ROW_UNKNOWN: /* the rows are being written again */
    case WORKER_ROW_CANDIDATE:
    case WORKER_ROW_STOLEN: worker_shelf_unshelved(w, lease); break; /* appeared, or became free, just now */
    }
}

/* A row that is marked has no message from here on: if the database forgets the mark, the sweeper finds it.
 */
void worker_shelved(struct worker_machine *w, const struct worker_in *in)
{
    const struct lease_list *const shelving = leases_in(w, LEASE_SHELVING);
    struct lease *next;
    size_t i = 0;
    assert(shelving->len > 0 && (in->unknown || in->rows_len == shelving->len));
    w->shelve_failures = in->unknown ? w->shelve_failures + 1 : 0;
    w->shelve_gate_ms = in->unknown ? w->now_ms + worker_backoff_ms(w, w->shelve_failures) : 0;
    for (struct lease *l = shelving->first; l != NULL; l = next, i++) {
        next = l->next;
        assert(in->unknown || in->rows[i].id == l->id);
        if (in->unknown)
            worker_shelf_unshelved(w, l);
        else
            shelve_answered(w, l, &in->rows[i]);
    }
}
