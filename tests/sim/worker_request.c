/* Requests of a worker to the database and the streams, their execution there, and the answers. */
#include "worker_request.h"
#include "checks.h"
#include "log_fake.h"
#include "losses.h"
#include "nonces.h"
#include "result_list.h"
#include <stdlib.h>

enum { STATEMENT_TIMEOUT_MS = 3000, IDLE_IN_TRANSACTION_MS = 1000 };

struct worker_request {
    struct request request;
    struct worker *worker;
    uint64_t machine_life;
    enum worker_out_kind kind;
    struct sim_claim *claims;
    struct worker_row *rows;
    bool *gone; /* of each row: it truly was, whatever the store then says */
    uint64_t delay_ms;
    size_t rows_len;
    struct store_tx *tx;
    thole_slice identity;
    struct claim_policy policy;
    struct held **held; /* results to publish */
    size_t held_len;
    uint32_t partition;
    bool list;              /* of results, though it may be of one */
    uint64_t work_sequence; /* of the delivery that is signalled */
    enum signal signal;
    bool failed;
    thole_slice bytes;
};

struct held *worker_find_held(const struct worker *worker, uint64_t id)
{
    for (struct held *h = worker->held; h != NULL; h = h->next)
        if (h->id == id)
            return h;
    return NULL;
}

bool worker_same_try(const struct held *a, const struct held *b)
{
    return a->instance == b->instance && a->execution == b->execution && a->activity_id == b->activity_id &&
           a->try_number == b->try_number;
}

bool worker_is_at_it(const struct held *h)
{
    return h->running && !h->finished && !h->fired && !h->abandoned && !h->forgotten;
}

static bool for_this_machine(const struct worker_request *r)
{
    return r->worker->machine != NULL && r->worker->machine_life == r->machine_life;
}

static enum executed run_statement(struct world *w, struct worker_request *r)
{
    switch (r->kind) {
    case WORKER_OUT_CLAIM: return store_claim(w, r->identity, &r->policy, r->claims, r->rows_len);
    case WORKER_OUT_RENEW: return store_renew(w, r->identity, r->claims, r->rows_len);
    case WORKER_OUT_RELEASE: return store_release(w, r->identity, r->claims, r->rows_len);
    case WORKER_OUT_NOT_LOST: return store_not_lost(w, r->identity, r->claims, r->rows_len);
    case WORKER_OUT_LEAVE: return store_leave(w, r->identity, r->claims, r->rows_len);
    case WORKER_OUT_SHELVE: return store_shelve(w, r->identity, r->claims, r->rows_len);
    case WORKER_OUT_COMPLETE_BEGIN:
        r->failed = r->tx->dead; /* the connection is gone */
        return store_complete_begin(w, r->tx, r->identity, r->claims, r->rows_len);
    case WORKER_OUT_COMPLETE_COMMIT: r->failed = !store_complete_commit(w, r->tx); return EXECUTED;
    case WORKER_OUT_COMPLETE_ROLLBACK: store_complete_rollback(w, r->tx); return EXECUTED;
    default: abort();
    }
}

/* Notes the true state of the rows at this moment, whatever the store then answers. A statement that arrives
 * late, on a connection that is gone, does nothing: it does not count for the worker's present batch. */
static void look_at_rows(struct world *w, const struct worker_request *r)
{
    if (r->kind == WORKER_OUT_COMPLETE_BEGIN && r->tx->dead)
        return;
    for (size_t i = 0; i < r->rows_len; i++) {
        struct held *h = worker_find_held(r->worker, r->rows[i].id);
        if (h == NULL || !for_this_machine(r))
            continue;
        const struct row *row = store_find(w->store, ROW_ACTIVITY, instance_partition(w, h->instance),
                                           h->instance, h->execution, h->activity_id);
        r->gone[i] = row == NULL || row->try_number != h->try_number ||
                     (row->later && (r->kind == WORKER_OUT_CLAIM || r->kind == WORKER_OUT_SHELVE ||
                                     /* as good as missing */
                                     !thole_slice_equal(row->worker, r->identity)));
        if (r->kind == WORKER_OUT_COMPLETE_BEGIN && r->claims[i].quick)
            h->was_mine = !r->gone[i] && row->worker.len == 0 && row->attempt == 0;
        else if (r->kind == WORKER_OUT_COMPLETE_BEGIN)
            h->was_mine =
                !r->gone[i] &&
                (thole_slice_equal(row->worker, r->identity) ||
                 (row->attempt < r->rows[i].attempt && row->lease_until_ms <= w->now_ms && !row->later));
    }
}

/* A handler whose row nobody has renewed for a lease may not be the only one any more: it must have been
 * told. */
static void task_fenced(struct world *w, void *arg, uint64_t life)
{
    struct held *h = arg;
    struct node *node = &h->worker->node;
    if (!node_runs(w, node, life, task_fenced, arg) || h->node_life != h->worker->machine_life)
        return;
    if (w->now_ms < node->paused_until_ms + 20) { /* has only just woken up */
        after(w, 20, task_fenced, arg, life);
        return;
    }
    if (worker_is_at_it(h) && h->mine_ms + LEASE_MS <= w->now_ms)
        broken(w, "%s lets %.*s#%" PRIu64 " run, whose lease is over", node->name,
               THOLE_FMT(w->instances[h->instance]), h->activity_id);
}

static uint64_t row_made(const struct world *w, const struct held *h)
{
    const struct row *row = store_find(w->store, ROW_ACTIVITY, instance_partition(w, h->instance),
                                       h->instance, h->execution, h->activity_id);
    return row == NULL ? 0 : row->made;
}

/* A worker with a lease has it alone, as long as the database forgets nothing and its rows are not made
 * again. */
static void check_alone(struct world *w, const struct held *h)
{
    for (size_t i = 0; i < w->workers_len; i++) {
        const struct worker *other = w->workers[i];
        for (const struct held *o = other->held; o != NULL && other != h->worker; o = o->next)
            if (worker_same_try(o, h) && worker_is_at_it(o) && other->node.alive && !o->stolen &&
                o->mine_life == store_life(w->store) && o->mine_made == row_made(w, h) &&
                o->mine_ms + LEASE_MS > w->now_ms)
                broken(w, "%s claims %.*s#%" PRIu64 " while the lease of %s lasts", h->worker->node.name,
                       THOLE_FMT(w->instances[h->instance]), h->activity_id, other->node.name);
    }
}

static void note_leases(struct world *w, const struct worker_request *r)
{
    for (size_t i = 0; i < r->rows_len; i++) {
        struct held *h = worker_find_held(r->worker, r->rows[i].id);
        if (h == NULL || !for_this_machine(r) || r->claims[i].state != ROW_MINE)
            continue;
        if (r->kind == WORKER_OUT_COMPLETE_BEGIN && !r->claims[i].quick)
            continue;
        if (r->kind != WORKER_OUT_RENEW)
            check_alone(w, h);
        if (r->kind == WORKER_OUT_COMPLETE_BEGIN) /* no lease */
            continue;
        h->mine_ms = w->now_ms;
        h->mine_life = store_life(w->store);
        h->mine_made = row_made(w, h);
        after(w, LEASE_MS, task_fenced, h, r->worker->node.life);
    }
}

static enum executed execute_statement(struct world *w, struct request *request)
{
    struct worker_request *r = (struct worker_request *)request;
    look_at_rows(w, r);
    r->failed = strikes(w, FAULT_STATEMENT, 10) || w->now_ms > request->arrived_ms + STATEMENT_TIMEOUT_MS;
    enum executed const executed = r->failed ? EXECUTED : run_statement(w, r);
    if (!r->failed && executed == EXECUTED &&
        (r->kind == WORKER_OUT_CLAIM || r->kind == WORKER_OUT_RENEW || r->kind == WORKER_OUT_COMPLETE_BEGIN))
        note_leases(w, r);
    return executed;
}

static void task_tx_idles(struct world *w, void *arg, uint64_t value)
{
    (void)value;
    store_tx_idles(w, arg);
}

void worker_idles(struct world *w, struct worker *worker, uint64_t ms)
{
    if (ms >= IDLE_IN_TRANSACTION_MS)
        after(w, IDLE_IN_TRANSACTION_MS, task_tx_idles, worker->tx, 0);
}

static void task_tx_dies(struct world *w, void *arg, uint64_t value)
{
    (void)value;
    store_tx_dies(w, arg);
}

/* An open transaction on a connection that its client gave up is rolled back when the server notices. */
void worker_new_tx(struct world *w, struct worker *worker)
{
    if (worker->tx != NULL)
        after(w, rnd(w, 3) == 0 ? between(w, 0, 3000) : rnd(w, 5), task_tx_dies, worker->tx, 0);
    worker->tx = keep(w, sizeof *worker->tx);
}

/* A handler whose row is gone is told with the renewal that found it so. */
static void task_told(struct world *w, void *arg, uint64_t life)
{
    const struct held *h = arg;
    if (!node_runs(w, &h->worker->node, life, task_told, arg) || h->node_life != h->worker->machine_life)
        return;
    if (worker_is_at_it(h))
        broken(w, "%s lets %.*s#%" PRIu64 " run, whose row is gone", h->worker->node.name,
               THOLE_FMT(w->instances[h->instance]), h->activity_id);
}

static void note_states(struct world *w, struct worker_request *r)
{
    for (size_t i = 0; i < r->rows_len; i++) {
        struct held *h = worker_find_held(r->worker, r->rows[i].id);
        r->rows[i].state = (enum worker_row_state)r->claims[i].state;
        r->rows[i].attempt = r->claims[i].attempt;
        r->rows[i].claimed_us = r->claims[i].claimed;
        r->rows[i].left_ms = r->claims[i].left_ms;
        r->rows[i].lost = r->claims[i].lost;
        r->rows[i].poisoned = r->claims[i].poisoned;
        r->rows[i].compared = true;
        if (h == NULL)
            continue;
        bool const gone = r->gone[i] && r->claims[i].state != ROW_UNKNOWN;
        h->missing = h->missing || gone;
        h->replaced = h->replaced || (gone && r->claims[i].replaced);
        bool const quick = r->claims[i].quick; /* the claim is not asked for, but whether the row is free */
        bool const had = r->kind != WORKER_OUT_CLAIM && r->kind != WORKER_OUT_SHELVE;
        h->stolen = h->stolen || (had && !quick && r->claims[i].state == ROW_STOLEN);
        if (had && r->claims[i].state == ROW_MISSING)
            losses_gone(w, &r->claims[i], r->identity);
        if (r->kind == WORKER_OUT_RENEW && gone && h->running && !h->finished)
            after(w, 20, task_told, h, r->worker->node.life);
        if ((r->kind == WORKER_OUT_CLAIM || r->kind == WORKER_OUT_RENEW) && r->claims[i].state == ROW_MINE)
            h->kept_ms = r->request.sent_ms;
        if (quick && r->claims[i].state == ROW_MINE) {
            h->claimed = true;
            h->row_was_there = !r->gone[i];
            h->attempt = 1;
        }
        if (r->kind == WORKER_OUT_CLAIM && r->claims[i].state == ROW_MINE) {
            h->claimed = true;
            h->quick = false;
            h->row_was_there = !r->gone[i];
            losses_heard(w, &r->claims[i], r->identity);
            h->attempt = r->claims[i].attempt;
            h->isolated = r->claims[i].isolated;
            h->lost = r->claims[i].lost;
            h->lost_worker = r->claims[i].lost_worker;
        }
        h->left = h->left || (r->kind == WORKER_OUT_LEAVE && r->claims[i].state == ROW_MINE);
        h->shelved = h->shelved || (r->kind == WORKER_OUT_SHELVE && r->claims[i].state == ROW_MINE);
        if (r->kind == WORKER_OUT_COMPLETE_BEGIN)
            h->may_publish = r->claims[i].state == ROW_MINE;
    }
}

static void statement_answered(struct world *w, struct request *request, bool known)
{
    struct worker_request *r = (struct worker_request *)request;
    struct worker *worker = r->worker;
    bool const unknown = !known || r->failed;
    if (!for_this_machine(r))
        return;
    if (unknown && r->tx != NULL && r->tx == worker->tx)
        worker_new_tx(w, worker); /* nothing may stay open: the connection is given up */
    struct worker_in in = {.unknown = unknown, .rows = r->rows, .rows_len = unknown ? 0 : r->rows_len};
    if (!unknown)
        note_states(w, r);
    switch (r->kind) {
    case WORKER_OUT_CLAIM: in.kind = WORKER_IN_CLAIMED; break;
    case WORKER_OUT_RENEW: in.kind = WORKER_IN_RENEWED; break;
    case WORKER_OUT_RELEASE: in.kind = WORKER_IN_RELEASED; break;
    case WORKER_OUT_NOT_LOST: in.kind = WORKER_IN_NOT_LOST; break;
    case WORKER_OUT_LEAVE: in.kind = WORKER_IN_LEFT; break;
    case WORKER_OUT_SHELVE: in.kind = WORKER_IN_SHELVED; break;
    case WORKER_OUT_COMPLETE_BEGIN: in.kind = WORKER_IN_BEGUN; break;
    case WORKER_OUT_COMPLETE_COMMIT: in.kind = WORKER_IN_COMMITTED; break;
    default: return;
    }
    worker_hears(w, worker, &in);
}

static struct worker_request *new_request(struct world *w, struct worker *worker, enum worker_out_kind kind)
{
    struct worker_request *r = keep(w, sizeof *r);
    r->worker = worker;
    r->machine_life = worker->machine_life;
    r->kind = kind;
    r->identity = worker->identity;
    r->policy =
        (struct claim_policy){worker_candidate_after(w->poison_after), worker_strikes_max(w->poison_after)};
    return r;
}

void worker_asks(struct world *w, struct worker *worker, const struct worker_out *out)
{
    struct worker_request *r = new_request(w, worker, out->kind);
    if (out->kind == WORKER_OUT_COMPLETE_BEGIN || out->kind == WORKER_OUT_COMPLETE_COMMIT ||
        out->kind == WORKER_OUT_COMPLETE_ROLLBACK)
        r->tx = worker->tx;
    r->rows_len = out->rows_len;
    r->rows = keep(w, (out->rows_len + 1) * sizeof *r->rows);
    r->claims = keep(w, (out->rows_len + 1) * sizeof *r->claims);
    r->gone = keep(w, (out->rows_len + 1) * sizeof *r->gone);
    for (size_t i = 0; i < out->rows_len && out->kind == WORKER_OUT_NOT_LOST; i++) {
        const struct worker_key *key = &out->rows[i].key; /* the message may be forgotten */
        r->rows[i] = out->rows[i];
        r->claims[i] = (struct sim_claim){.instance = instance_index(w, key->instance),
                                          .execution = key->execution,
                                          .activity_id = key->activity_id,
                                          .try_number = key->try_number,
                                          .attempt = out->rows[i].attempt,
                                          .claimed = out->rows[i].claimed_us};
    }
    for (size_t i = 0; i < out->rows_len && out->kind != WORKER_OUT_NOT_LOST; i++) {
        const struct held *h = worker_find_held(worker, out->rows[i].id);
        if (h == NULL || h->forgotten) {
            broken(w, "%s: a statement for message %" PRIu64 ", which is not held", worker->node.name,
                   out->rows[i].id);
            return;
        }
        r->rows[i] = out->rows[i];
        r->rows[i].key.instance = w->instances[h->instance];
        r->claims[i] = (struct sim_claim){.instance = h->instance,
                                          .execution = h->execution,
                                          .activity_id = h->activity_id,
                                          .try_number = h->try_number,
                                          .attempt = out->rows[i].attempt,
                                          .claimed = out->rows[i].claimed_us,
                                          .digest = out->rows[i].digest,
                                          .quick = out->rows[i].quick,
                                          .isolated = out->rows[i].isolated,
                                          .settled = out->rows[i].settled};
    }
    r->request.execute = execute_statement;
    r->request.answered = statement_answered;
    net_send(w, &worker->node, SERVER_STORE, &r->request);
}

static enum executed execute_signal(struct world *w, struct request *request)
{
    struct worker_request *r = (struct worker_request *)request;
    work_signal_fake(w, r->work_sequence, r->signal, r->delay_ms);
    return EXECUTED;
}

static void signal_answered(struct world *w, struct request *request, bool known)
{
    (void)w, (void)request, (void)known;
}

void worker_signals(struct world *w, struct worker *worker, struct held *h, enum signal signal,
                    uint64_t delay_ms)
{
    if (!worker->node.links[SERVER_NATS].up)
        return;
    struct worker_request *r = new_request(w, worker, WORKER_OUT_ACK);
    r->work_sequence = h->work_sequence;
    r->signal = signal;
    r->delay_ms = delay_ms;
    r->request.execute = execute_signal;
    r->request.answered = signal_answered;
    net_send(w, &worker->node, SERVER_NATS, &r->request);
}

/* ---- results ---------------------------------------------------------------------------------------------
 */

static enum executed execute_publish(struct world *w, struct request *request)
{
    struct worker_request *r = (struct worker_request *)request;
    if (r->list)
        inbox_publish_list(w, r->partition, r->bytes);
    else
        inbox_publish(w, r->held[0]->instance, r->bytes, SENDER_WORKER);
    return EXECUTED;
}

static void publish_answered(struct world *w, struct request *request, bool known)
{
    struct worker_request *r = (struct worker_request *)request;
    for (size_t i = 0; i < r->held_len; i++) {
        struct held *h = r->held[i];
        h->published = h->published || known;
        h->publish_alone = r->held_len > 1 && !known;
        if (for_this_machine(r))
            worker_hears(w, r->worker,
                         &(struct worker_in){.kind = WORKER_IN_PUBLISHED, .id = h->id, .ok = known});
    }
}

static void poison_result(const struct held *h, struct message *message)
{
    message->error_type = POISON_TYPE;
    message->lost = h->lost;
    message->lost_worker = h->lost_worker;
    message->queue = h->queue;
    message->input = h->input;
}

static thole_slice encoded(struct world *w, const struct message *message)
{
    struct buf bytes;
    struct nonce room;
    struct message const with_nonce = test_with_nonce(message, &room);
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    if (message_encode(&with_nonce, &bytes) != THOLE_OK)
        broken(w, "a completion cannot be encoded");
    thole_slice const kept = keep_slice(w, buf_bytes(&bytes));
    buf_release(&bytes);
    return kept;
}

static thole_slice result_of(struct world *w, const struct worker *worker, const struct held *h)
{
    struct message message = {.kind = MESSAGE_ACTIVITY_RESULT,
                              .instance = w->instances[h->instance],
                              .execution = h->execution,
                              .task = h->activity_id,
                              .try_number = h->try_number == 1 && rnd(w, 2) == 0 ? 0 : h->try_number,
                              .status = (uint32_t)h->run.status,
                              .data = h->output,
                              .error_type = thole_slice_from(h->run.error_type),
                              .final = h->run.final && h->run.status == THOLE_APP,
                              .source.place.attempt = h->attempt,
                              .source.place.worker = worker->identity};
    if (h->poisoned)
        poison_result(h, &message);
    if (h->quick && worker->tx->idle)
        broken(w, "%s publishes a completion of %.*s#%" PRIu64 ", whose transaction is lost",
               worker->node.name, THOLE_FMT(w->instances[h->instance]), h->activity_id);
    if (!h->may_publish || !h->was_mine || !h->finished || h->run.status == THOLE_LATER)
        broken(w, "%s publishes a completion of %.*s#%" PRIu64 " that is not its own", worker->node.name,
               THOLE_FMT(w->instances[h->instance]), h->activity_id);
    return encoded(w, &message);
}

/* A message that no engine can take, or that nobody waits for, from a sender whose messages look like a
 * worker's. It is for any instance: the list's partition may be another one's. */
static thole_slice stray(struct world *w)
{
    struct message m = {.kind = MESSAGE_ACTIVITY_RESULT,
                        .instance = w->instances[rnd(w, w->client_instances_len)],
                        .execution = 1,
                        .task = 99999,
                        .data = THOLE_STR("nobody asked"),
                        .source.place.attempt = 1};
    struct buf bytes;
    switch (rnd(w, 6)) {
    case 0: m.nonce = THOLE_STR("0123456789abcdef0123456789abcdef"); break;
    case 1:
        m = (struct message){
            .kind = MESSAGE_EVENT, .instance = m.instance, .event_name = THOLE_STR("item"), .data = m.data};
        break;
    case 2: /* nothing but whom it is for */
        buf_init(&bytes, MESSAGE_BYTES_MAX);
        buf_printf(&bytes, "\x08%c\x12%c%.*s", rnd(w, 2) == 0 ? 1 : 2, (int)m.instance.len,
                   THOLE_FMT(m.instance));
        m.data = keep_slice(w, buf_bytes(&bytes));
        buf_release(&bytes);
        return m.data;
    default: break;
    }
    return encoded(w, &m);
}

/* Most of them alone; some with a part that is none of theirs, or twice. */
static thole_slice list_of(struct world *w, const thole_slice *results, size_t len)
{
    struct buf items, bytes;
    size_t const odd = rnd(w, 4) == 0 ? (size_t)rnd(w, len) : SIZE_MAX;
    buf_init(&items, MESSAGE_BYTES_MAX);
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    for (size_t i = 0; i < len; i++) {
        if (i == odd)
            result_list_add(&items, rnd(w, 4) == 0 ? results[i] : stray(w));
        result_list_add(&items, results[i]);
    }
    if (odd != SIZE_MAX && rnd(w, 2) == 0)
        result_list_add(&items, stray(w));
    result_list_write(buf_bytes(&items), &bytes);
    thole_slice const kept = keep_slice(w, buf_bytes(&bytes));
    buf_release(&items);
    buf_release(&bytes);
    return kept;
}

void worker_publishes(struct world *w, struct worker *worker, struct held *const *held, size_t len)
{
    struct worker_request *r = new_request(w, worker, WORKER_OUT_COMPLETE_PUBLISH);
    thole_slice *results = keep(w, len * sizeof *results);
    r->held = keep(w, len * sizeof(struct held *));
    r->held_len = len;
    for (size_t i = 0; i < len; i++) {
        r->held[i] = held[i];
        results[i] = result_of(w, worker, held[i]);
    }
    r->partition = instance_partition(w, held[0]->instance);
    r->list = len > 1 || (w->lists && rnd(w, 4) == 0);
    r->bytes = r->list ? list_of(w, results, len) : results[0];
    r->request.execute = execute_publish;
    r->request.answered = publish_answered;
    net_send(w, &worker->node, SERVER_NATS, &r->request);
}
