/*
 * Removes the records of deleted instances. They may be removed when
 *  - all their effects are done, and their CloudEvents stored;
 *  - a later stored record says that the deletion is committed, so that a reader of the tail continues behind
 *    the gap;
 *  - the watermark behind them is durable in the database: the record of the watermark must stay in the log.
 *
 * Until they are removed no record says that all is published (projection_done), so a new owner looks for
 * deletions from there on, and removes what is left.
 *
 * Pruning is the same for some executions of an instance that continues: not a record of its own, but an
 * event in a turn of a later execution. The first execution stays: it has the time and the request of the
 * start.
 */
#include "memory.h"
#include "projection_state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void removals_owe(struct projection *p, thole_slice instance, struct executions executions, uint64_t sequence)
{
    struct removals *removals = &p->removals;
    struct removal *removal = memory_new(sizeof *removal + instance.len);
    removal->sequence = sequence;
    removal->executions = executions;
    removal->instance_len = instance.len;
    memcpy(removal->instance, instance.ptr, instance.len);
    assert(removals->last == NULL || removals->last->sequence < removal->sequence);
    if (removals->last != NULL)
        removals->last->next = removal;
    else
        removals->first = removal;
    removals->last = removal;
    removals->len++;
}

bool projection_unconfirmed(const struct projection *p, uint64_t confirmed_seq)
{
    return p->removals.last != NULL && p->removals.last->sequence > confirmed_seq;
}

void removals_pump(struct projection *p, uint64_t confirmed_seq)
{
    struct removals *removals = &p->removals;
    for (struct removal *r = removals->first; r != NULL && removals->out < REMOVALS_OUT_MAX; r = r->next) {
        if (r->out)
            continue;
        if (r->sequence > confirmed_seq || r->sequence > p->projector.durable ||
            !emissions_done_below(p, r->sequence))
            return;
        r->out = true;
        removals->out++;
        struct partition_out *out = env_emit(p->env, PARTITION_OUT_REMOVE_HISTORY);
        out->token = r->sequence;
        out->remove_history = (struct out_remove_history){
            env_copy(p->env, (thole_slice){r->instance, r->instance_len}), r->executions, r->sequence};
    }
}

bool projection_removed(struct projection *p, uint64_t sequence)
{
    struct removals *removals = &p->removals;
    struct removal *before = NULL, *r = removals->first;
    while (r != NULL && r->sequence != sequence) {
        before = r;
        r = r->next;
    }
    if (r == NULL || !r->out)
        return false;
    *(before == NULL ? &removals->first : &before->next) = r->next;
    if (removals->last == r)
        removals->last = before;
    assert(removals->len > 0 && removals->out > 0);
    removals->len--;
    removals->out--;
    free(r);
    if (sequence > p->projector.sayable_seq)
        p->projector.sayable_seq = sequence;
    return true;
}

size_t projection_removals(const struct projection *p)
{
    return p->removals.len;
}

void removals_release(struct removals *removals)
{
    for (struct removal *next; removals->first != NULL; removals->first = next) {
        next = removals->first->next;
        free(removals->first);
    }
    *removals = (struct removals){0};
}
