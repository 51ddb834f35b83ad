/*
 * Removes the records of deleted instances. They may be removed when
 *  - all their effects are done, and their CloudEvents stored;
 *  - a later stored record says that the deletion is committed, so that a reader of the tail continues after
 *    the gap;
 *  - a watermark after them is durable in the database: the record of the watermark must stay in the log.
 *
 * Until they are removed no record says that all is published (projection_done), so a new owner looks for
 * deletions from there on, and removes the rest.
 *
 * Records that a record lists as dispensable (Folded) are removed under the same conditions.
 *
 * Pruning removes some executions of an instance that continues, under these conditions too. It is no record
 * of its own, but an event in a turn of a later execution. The first execution stays: it has the time and the
 * request of the start.
 */
#include "memory.h"
#include "projection_state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void removal_queue_enter(struct removal_queue *queue, struct removal *removal)
{
    assert(queue->last == NULL || queue->last->sequence < removal->sequence);
    *(queue->last == NULL ? &queue->first : &queue->last->next) = removal;
    queue->last = removal;
    queue->len++;
}

void removals_owe(struct projection *p, thole_slice instance, struct executions executions, uint64_t sequence)
{
    struct removal *removal = memory_new(sizeof *removal + instance.len);
    removal->sequence = sequence;
    removal->executions = executions;
    removal->instance_len = instance.len;
    memcpy(removal->instance, instance.ptr, instance.len);
    removal_queue_enter(&p->removals.histories, removal);
}

void removals_owe_listed(struct projection *p, const struct folded *folded, uint64_t sequence)
{
    struct removal *removal = memory_new(sizeof *removal);
    assert(folded->len > 0);
    removal->sequence = sequence;
    removal->sequences = memory_array(folded->len, sizeof *removal->sequences);
    removal->sequences_len = folded->len;
    memcpy(removal->sequences, folded->sequences, folded->len * sizeof *removal->sequences);
    removal_queue_enter(&p->removals.lists, removal);
}

static void removal_destroy(struct removal *removal)
{
    free(removal->sequences);
    free(removal);
}

/* Valid until the answer, as the removal is. */
static void removal_emit(struct projection *p, const struct removal *r)
{
    bool const listed = r->sequences != NULL;
    struct partition_out *out =
        env_emit(p->env, listed ? PARTITION_OUT_REMOVE_RECORDS : PARTITION_OUT_REMOVE_HISTORY);
    out->token = r->sequence;
    if (listed)
        out->remove_records = (struct out_remove_records){r->sequences, r->sequences_len};
    else
        out->remove_history = (struct out_remove_history){
            env_copy(p->env, (thole_slice){r->instance, r->instance_len}), r->executions, r->sequence,
            p->removals.histories.len >= REMOVALS_URGENT};
}

uint64_t removals_first(const struct removals *removals)
{
    const struct removal *const history = removals->histories.first, *const list = removals->lists.first;
    if (history == NULL || list == NULL)
        return history != NULL ? history->sequence : list != NULL ? list->sequence : 0;
    return history->sequence < list->sequence ? history->sequence : list->sequence;
}

uint64_t removals_last(const struct removals *removals)
{
    const struct removal *const history = removals->histories.last, *const list = removals->lists.last;
    if (history == NULL || list == NULL)
        return history != NULL ? history->sequence : list != NULL ? list->sequence : 0;
    return history->sequence > list->sequence ? history->sequence : list->sequence;
}

bool projection_unconfirmed(const struct projection *p, uint64_t confirmed_seq)
{
    return removals_last(&p->removals) > confirmed_seq;
}

static void removal_queue_pump(struct projection *p, struct removal_queue *queue, size_t out_max,
                               uint64_t confirmed_seq)
{
    for (struct removal *r = queue->first; r != NULL && queue->out < out_max; r = r->next) {
        if (r->out)
            continue;
        if (r->sequence > confirmed_seq || r->sequence > p->projector.durable ||
            !emissions_done_below(p, r->sequence))
            return;
        r->out = true;
        queue->out++;
        removal_emit(p, r);
    }
}

void removals_pump(struct projection *p, uint64_t confirmed_seq)
{
    removal_queue_pump(p, &p->removals.lists, REMOVALS_LISTS_OUT_MAX, confirmed_seq);
    removal_queue_pump(p, &p->removals.histories, REMOVALS_OUT_MAX, confirmed_seq);
}

/* Takes the removal out. False: there is none under way with this sequence. */
static bool removal_queue_take(struct removal_queue *queue, uint64_t sequence)
{
    struct removal *before = NULL, *r = queue->first;
    while (r != NULL && r->sequence != sequence) {
        before = r;
        r = r->next;
    }
    if (r == NULL || !r->out)
        return false;
    *(before == NULL ? &queue->first : &before->next) = r->next;
    if (queue->last == r)
        queue->last = before;
    assert(queue->len > 0 && queue->out > 0);
    queue->len--;
    queue->out--;
    removal_destroy(r);
    return true;
}

bool projection_removed(struct projection *p, uint64_t sequence)
{
    if (!removal_queue_take(&p->removals.histories, sequence) &&
        !removal_queue_take(&p->removals.lists, sequence))
        return false;
    if (sequence > p->projector.sayable_seq)
        p->projector.sayable_seq = sequence;
    return true;
}

size_t projection_removals(const struct projection *p)
{
    return p->removals.histories.len + p->removals.lists.len;
}

static void removal_queue_check(const struct removal_queue *queue, size_t out_max)
{
    size_t len = 0, out = 0;
    uint64_t sequence = 0;
    for (const struct removal *r = queue->first; r != NULL; r = r->next) {
        assert(r->sequence > sequence && (r->next != NULL || r == queue->last));
        sequence = r->sequence;
        len++;
        out += r->out;
    }
    assert(len == queue->len && out == queue->out && out <= out_max);
}

void removals_check(const struct removals *removals)
{
    removal_queue_check(&removals->lists, REMOVALS_LISTS_OUT_MAX);
    removal_queue_check(&removals->histories, REMOVALS_OUT_MAX);
}

static void removal_queue_release(struct removal_queue *queue)
{
    for (struct removal *next; queue->first != NULL; queue->first = next) {
        next = queue->first->next;
        removal_destroy(queue->first);
    }
}

void removals_release(struct removals *removals)
{
    removal_queue_release(&removals->lists);
    removal_queue_release(&removals->histories);
    *removals = (struct removals){0};
}
