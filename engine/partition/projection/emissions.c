/*
 * CloudEvents of committed turns. Like messages to other instances they go after the rows of their batch are
 * committed, the host repeats each until it is stored, the watermark waits for them, and `published` in the
 * records keeps the next owner from repeating what is done. Those of one instance go one after the other, in
 * the order of its history.
 */
#include "projection_state.h"
#include <assert.h>

static void enter(struct projection_batch *b, const struct emission *emission)
{
    projection_batch_emission(b)->emission = *emission;
}

void emissions_add(struct projection *p, struct projection_batch *b, const struct turn *turn,
                   const struct event *event)
{
    struct emission emission;
    /* Without the name it was recorded when events of this kind were not sent. */
    if (turn->orchestration.len > 0 && emission_of(p->env->options.events, turn, event, &emission))
        enter(b, &emission);
}

void emissions_add_deletion(struct projection *p, struct projection_batch *b, const struct deletion *d)
{
    struct emission emission;
    if (emission_of_deletion(p->env->options.events, d, &emission))
        enter(b, &emission);
}

/* --- sending ------------------------------------------------------------------------------------- */

static struct emission_queue *queue_of(struct projection *p, const struct projected_emission *e)
{
    return &p->projector.emission_queues[key_hash(e->emission.instance, 0, 0) % OUTBOX_QUEUES];
}

static void go(struct projection *p, const struct projected_emission *e)
{
    struct partition_out *const out = env_emit(p->env, PARTITION_OUT_EMIT);
    out->token = e->token;
    out->emit = e->emission;
}

static void enqueue(struct projection *p, struct projected_emission *e)
{
    struct emission_queue *const queue = queue_of(p, e);
    assert(e->next == NULL && !e->answered && (queue->first == NULL) == (queue->last == NULL));
    if (queue->last != NULL) {
        queue->last->next = e;
        queue->last = e;
        return;
    }
    queue->first = queue->last = e;
    go(p, e);
}

void emissions_post(struct projection *p, struct projection_batch *b)
{
    assert(b->state == BATCH_PUBLISHING && b->emissions_len < UINT64_C(1) << BATCH_TOKEN_BITS);
    for (size_t i = 0; i < b->emissions_len; i++) {
        b->emissions[i].token = b->id << BATCH_TOKEN_BITS | i;
        b->publishes_left++;
        enqueue(p, &b->emissions[i]);
    }
}

struct projection_batch *emissions_sent(struct projection *p, uint64_t token)
{
    struct projection_batch *const b = project_find(p, token);
    size_t const i = token & ((UINT64_C(1) << BATCH_TOKEN_BITS) - 1);
    if (b == NULL || i >= b->emissions_len || b->emissions[i].answered)
        return NULL;
    struct projected_emission *const e = &b->emissions[i];
    struct emission_queue *const queue = queue_of(p, e);
    if (queue->first != e)
        return NULL; /* not sent yet */
    e->answered = true;
    queue->first = e->next;
    if (queue->first == NULL)
        queue->last = NULL;
    else
        go(p, queue->first);
    return b;
}
