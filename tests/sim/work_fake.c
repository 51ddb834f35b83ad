#include "work_fake.h"
#include "checks.h"
#include "nonce.h"
#include "nonces.h"
#include "store_fake.h"
#include "worker_node.h"

struct work_stream *work_stream_create(struct world *w)
{
    return keep(w, sizeof(struct work_stream));
}

struct work_digest work_digest_fake(const struct work_item_fake *item)
{
    return work_digest_make(item->queue, item->activity, item->nonce, item->input);
}

static bool same_subject(const struct work_item_fake *a, const struct work_item_fake *b)
{
    return a->instance == b->instance && a->execution == b->execution && a->activity_id == b->activity_id &&
           a->try_number == b->try_number && thole_slice_equal(a->queue, b->queue);
}

/* The newest on its subject if a hostile client forges messages, else the oldest. */
uint64_t work_look_fake(struct world *w, const struct work_item_fake *item)
{
    const struct work_stream *work = w->work;
    struct work_digest const own = work_digest_fake(item);
    const struct work_item_fake *found = NULL;
    for (size_t i = work->first; i < work->len && (found == NULL || w->hostile); i++)
        if (!work->items[i].gone && same_subject(&work->items[i], item))
            found = &work->items[i];
    if (found == NULL)
        return 0;
    struct work_digest const digest = work_digest_fake(found);
    if (work_digest_equal(&digest, &own) || w->mutation == MUTATION_FORGED_BELIEVED)
        return found->sequence;
    if (!found->forged)
        broken(w, "an engine takes its own work message for another's");
    w->stats.forged_removed++;
    work_withdraw(w, found->sequence);
    return 0;
}

uint64_t work_publish_fake(struct world *w, const struct work_item_fake *item)
{
    struct work_stream *work = w->work;
    work->items = grown(w, work->items, work->len, &work->cap, sizeof *work->items);
    work->items[work->len++] = *item;
    work->items[work->len - 1].sequence = work->len;
    trace(w, "work #%zu: %.*s#%" PRIu64 " %.*s", work->len, THOLE_FMT(w->instances[item->instance]),
          item->activity_id, THOLE_FMT(item->activity));
    workers_stir(w);
    return work->len;
}

/* Queues a row again for an engine that looks first whether the message exists. */
bool work_queue_again(struct world *w, const struct row *row)
{
    const struct model_event *scheduled = model_find(w, row->instance, row->execution, row->id);
    if (scheduled == NULL) /* of a damaged history */
        return false;
    thole_slice const id = w->instances[row->instance];
    struct nonce const nonce = nonce_make(test_nonce_key(), id, row->execution, row->id);
    struct work_item_fake const item = {.instance = row->instance,
                                        .nonce = keep_slice(w, thole_slice_from(nonce.text)),
                                        .execution = row->execution,
                                        .activity_id = row->id,
                                        .try_number = row->try_number,
                                        .queue = row->queue,
                                        .activity = row->activity,
                                        .input = scheduled->data};
    if (work_look_fake(w, &item) != 0)
        return false;
    (void)work_publish_fake(w, &item);
    return true;
}

static struct work_item_fake *item_at(struct world *w, uint64_t sequence)
{
    if (sequence == 0 || sequence > w->work->len || w->work->items[sequence - 1].gone)
        return NULL;
    return &w->work->items[sequence - 1];
}

static void remove_item(struct world *w, struct work_item_fake *item)
{
    struct work_stream *work = w->work;
    item->gone = true;
    while (work->first < work->len && work->items[work->first].gone)
        work->first++;
}

void work_withdraw(struct world *w, uint64_t sequence)
{
    struct work_item_fake *item = item_at(w, sequence);
    if (item != NULL)
        remove_item(w, item);
}

/* Wakes the workers whenever a lease ends. */
static void task_lease_ends(struct world *w, void *arg, uint64_t value)
{
    uint64_t const next_ms = work_next_free_ms(w);
    (void)arg, (void)value;
    w->work->alarm = next_ms != UINT64_MAX;
    if (w->work->alarm)
        at(w, next_ms > w->now_ms ? next_ms : w->now_ms + 200, task_lease_ends, NULL, 0);
    workers_stir(w);
}

static void task_again(struct world *w, void *arg, uint64_t sequence)
{
    struct work_item_fake *item = item_at(w, sequence);
    (void)arg;
    if (item == NULL)
        return;
    item->held_until_ms = 0;
    workers_stir(w);
}

static void task_stir(struct world *w, void *arg, uint64_t value)
{
    (void)arg, (void)value;
    workers_stir(w);
}

/* A server that is killed forgets whom it gave its last deliveries; perhaps more. */
void work_forgets(struct world *w)
{
    for (size_t i = w->work->first; i < w->work->len; i++)
        if (!w->work->items[i].gone && rnd(w, 3) == 0)
            w->work->items[i].held_until_ms = 0;
}

const struct work_item_fake *work_deliver(struct world *w)
{
    for (size_t i = w->work->first; i < w->work->len; i++) {
        struct work_item_fake *item = &w->work->items[i];
        if (item->gone || item->held_until_ms > w->now_ms)
            continue;
        if (item->deliveries > 0 && w->mutation == MUTATION_NO_REDELIVERY)
            continue;
        item->held_until_ms = w->now_ms + LEASE_MS;
        item->deliveries++;
        if (!w->work->alarm)
            at(w, item->held_until_ms, task_lease_ends, NULL, 0);
        w->work->alarm = true;
        if (strikes(w, FAULT_REDELIVERED, 30))
            after(w, between(w, 1, LEASE_MS / 2), task_again, NULL, item->sequence);
        return item;
    }
    return NULL;
}

uint64_t work_next_free_ms(const struct world *w)
{
    uint64_t next_ms = UINT64_MAX;
    for (size_t i = w->work->first; i < w->work->len; i++) {
        const struct work_item_fake *item = &w->work->items[i];
        if (!item->gone && item->held_until_ms < next_ms)
            next_ms = item->held_until_ms;
    }
    return next_ms;
}

void work_signal_fake(struct world *w, uint64_t sequence, enum signal signal, uint64_t delay_ms)
{
    struct work_item_fake *item = item_at(w, sequence);
    if (item == NULL)
        return;
    switch (signal) {
    case SIGNAL_TERM:
    case SIGNAL_ACK:
        if (w->mutation != MUTATION_QUEUE_TWICE)
            remove_item(w, item);
        break;
    case SIGNAL_NAK:
        item->held_until_ms = w->now_ms + delay_ms;
        at(w, item->held_until_ms, task_stir, NULL, 0);
        break;
    case SIGNAL_PROGRESS:
        if (item->held_until_ms > w->now_ms) /* one that waits for its redelivery is nobody's */
            item->held_until_ms = w->now_ms + LEASE_MS;
        break;
    }
}

size_t work_left(const struct world *w)
{
    size_t left = 0;
    for (size_t i = w->work->first; i < w->work->len; i++)
        left += !w->work->items[i].gone;
    return left;
}
