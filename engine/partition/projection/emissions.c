/*
 * CloudEvents of committed turns. Like messages to other instances they go after the rows of their batch are
 * committed, and the host repeats each until it is stored; those of one instance go one after the other, in
 * the order of its history. Unlike those they outlive their batch: neither the watermark nor a partition that
 * opens waits for them. Until they are stored no record says that all is published (projection_done), so a
 * new owner looks for events from there on, also in records whose rows are there, and sends what is left.
 *
 * An event that is stored stays in the list until those before it are: so the list is what a new owner would
 * find, and its limit is that of a new owner, too.
 */
#include "memory.h"
#include "projection_state.h"
#include <assert.h>
#include <stdlib.h>

/* --- lists --------------------------------------------------------------------------------------- */

static void emissions_list_add(struct emission_list *list, struct owed_emission *e)
{
    assert(e->next == NULL && (list->first == NULL) == (list->last == NULL));
    assert(list->last == NULL || list->last->sequence <= e->sequence);
    if (list->last != NULL)
        list->last->next = e;
    else
        list->first = e;
    list->last = e;
    list->len++;
    list->bytes += e->arena.held;
}

static struct owed_emission *list_take(struct emission_list *list)
{
    struct owed_emission *const e = list->first;
    assert(list->len > 0 && list->bytes >= e->arena.held);
    list->first = e->next;
    if (list->first == NULL)
        list->last = NULL;
    e->next = NULL;
    list->len--;
    list->bytes -= e->arena.held;
    return e;
}

static void emissions_destroy(struct owed_emission *e)
{
    arena_release(&e->arena);
    free(e);
}

static void list_release(struct emission_list *list)
{
    while (list->first != NULL)
        emissions_destroy(list_take(list));
}

static void emissions_copy(struct projection *p, struct arena *arena, thole_slice *text)
{
    if (text->len > 0 && arena_dup(arena, *text, text) != THOLE_OK)
        env_no_memory(p->env);
}

static struct owed_emission *copy_of(struct projection *p, const struct emission *emission, uint64_t sequence)
{
    struct owed_emission *const e = memory_new(sizeof *e);
    arena_init(&e->arena, RECORD_BYTES_MAX);
    e->emission = *emission;
    e->sequence = sequence;
    emissions_copy(p, &e->arena, &e->emission.instance);
    emissions_copy(p, &e->arena, &e->emission.orchestration);
    emissions_copy(p, &e->arena, &e->emission.type);
    emissions_copy(p, &e->arena, &e->emission.data);
    emissions_copy(p, &e->arena, &e->emission.error_type);
    emissions_copy(p, &e->arena, &e->emission.trace.parent);
    emissions_copy(p, &e->arena, &e->emission.trace.list);
    return e;
}

/* --- committed turns ----------------------------------------------------------------------------- */

static void emissions_enter(struct projection_batch *b, const struct emission *emission, uint64_t sequence)
{
    *projection_batch_emission(b) = (struct projected_emission){*emission, sequence};
}

/* Without the name it was recorded when events of this kind were not sent. */
static bool is_sent(const struct projection *p, const struct turn *turn, const struct event *event,
                    struct emission *ret)
{
    return turn->orchestration.len > 0 && emission_of(p->env->options.events, turn, event, ret);
}

void emissions_add(struct projection *p, struct projection_batch *b, const struct turn *turn,
                   const struct event *event, uint64_t sequence)
{
    struct emission emission;
    if (is_sent(p, turn, event, &emission))
        emissions_enter(b, &emission, sequence);
}

void emissions_add_deletion(struct projection *p, struct projection_batch *b, const struct deletion *d,
                            uint64_t sequence)
{
    struct emission emission;
    if (emission_of_deletion(p->env->options.events, d, &emission))
        emissions_enter(b, &emission, sequence);
}

/* --- sending ------------------------------------------------------------------------------------- */

static size_t queue_index(const struct owed_emission *e)
{
    return (size_t)(key_hash(e->emission.instance, 0, 0) % OUTBOX_QUEUES);
}

static void emissions_go(struct projection *p, const struct owed_emission *e)
{
    if (p->state != PROJECTION_CURRENT)
        return; /* until then the rows, and with them what is owed, may be made again: emissions_begin() */
    struct partition_out *const out = env_emit(p->env, PARTITION_OUT_EMIT);
    out->token = e->token;
    out->emit = e->emission;
}

static void emissions_owe(struct projection *p, struct owed_emission *e)
{
    size_t const at = queue_index(e);
    struct emission_queue *const queue = &p->emissions.queues[at];
    assert((queue->first == NULL) == (queue->last == NULL));
    e->token = ++p->emissions.next_id * OUTBOX_QUEUES + at;
    emissions_list_add(&p->emissions.owed, e);
    if (queue->last != NULL) {
        queue->last->next_queued = e;
        queue->last = e;
        return;
    }
    queue->first = queue->last = e;
    emissions_go(p, e);
}

void emissions_post(struct projection *p, const struct projection_batch *b)
{
    assert(b->state == BATCH_PUBLISHING);
    for (size_t i = 0; i < b->emissions_len; i++)
        emissions_owe(p, copy_of(p, &b->emissions[i].emission, b->emissions[i].sequence));
}

void emissions_begin(struct projection *p)
{
    assert(p->state == PROJECTION_CURRENT);
    list_release(&p->emissions.part); /* the last part was never written: the turn does not count */
    for (size_t i = 0; i < OUTBOX_QUEUES; i++)
        if (p->emissions.queues[i].first != NULL)
            emissions_go(p, p->emissions.queues[i].first);
}

bool projection_emitted(struct projection *p, uint64_t token)
{
    struct emissions *const emissions = &p->emissions;
    struct emission_queue *const queue = &emissions->queues[token % OUTBOX_QUEUES];
    struct owed_emission *const e = queue->first;
    if (e == NULL || e->token != token || p->state != PROJECTION_CURRENT)
        return false; /* not sent, or answered before */
    e->answered = true;
    queue->first = e->next_queued;
    if (queue->first == NULL)
        queue->last = NULL;
    else
        emissions_go(p, queue->first);
    while (emissions->owed.first != NULL && emissions->owed.first->answered) {
        struct owed_emission *const done = list_take(&emissions->owed);
        if (done->sequence > p->projector.sayable_seq)
            p->projector.sayable_seq = done->sequence;
        emissions_destroy(done);
    }
    return true;
}

/* ---- events left by an earlier owner ---- */

/* The parts of a turn are appended together, so the next record of the epoch is the next part. */
static bool emissions_continues(const struct emissions *emissions, const struct record *record)
{
    return emissions->part.first != NULL && record->kind == RECORD_TURN &&
           record->epoch == emissions->part_end.epoch && record->n == emissions->part_end.n + 1;
}

static void find_deletion(struct projection *p, const struct deletion *deletion, uint64_t sequence)
{
    struct emission emission;
    if (emission_of_deletion(p->env->options.events, deletion, &emission))
        emissions_owe(p, copy_of(p, &emission, sequence));
}

void emissions_find(struct projection *p, const struct record *record, uint64_t sequence)
{
    struct emissions *const emissions = &p->emissions;
    const struct turn *const turn = &record->turn;
    struct emission emission;
    assert(p->state == PROJECTION_CATCHING_UP);
    if (!emissions_continues(emissions, record))
        list_release(&emissions->part);
    if (record->kind == RECORD_DELETED)
        find_deletion(p, &record->deletion, sequence);
    if (record->kind != RECORD_TURN || turn->execution == 0)
        return;
    uint64_t const first = emissions->part.first == NULL ? sequence : emissions->part.first->sequence;
    for (size_t i = 0; i < turn->events_len; i++)
        if (is_sent(p, turn, &turn->events[i], &emission))
            emissions_list_add(&emissions->part, copy_of(p, &emission, first));
    emissions->part_end = (struct record_place){record->epoch, record->n};
    while (!turn->more && emissions->part.first != NULL)
        emissions_owe(p, list_take(&emissions->part));
}

/* --- facts --------------------------------------------------------------------------------------- */

bool emissions_done_below(const struct projection *p, uint64_t sequence)
{
    const struct owed_emission *const first = p->emissions.owed.first;
    return first == NULL || first->sequence >= sequence;
}

size_t projection_emissions(const struct projection *p)
{
    return p->emissions.owed.len;
}

void emissions_release(struct emissions *emissions)
{
    list_release(&emissions->owed);
    list_release(&emissions->part);
    *emissions = (struct emissions){.next_id = emissions->next_id};
}

static void emissions_check_list(const struct emission_list *list)
{
    size_t len = 0, bytes = 0;
    uint64_t sequence = 0;
    for (const struct owed_emission *e = list->first; e != NULL; e = e->next) {
        assert(e->sequence >= sequence && (e->next != NULL || e == list->last));
        sequence = e->sequence;
        bytes += e->arena.held;
        len++;
    }
    assert(len == list->len && bytes == list->bytes);
}

void emissions_check(const struct projection *p)
{
    const struct emissions *const emissions = &p->emissions;
    size_t queued = 0, waiting = 0;
    emissions_check_list(&emissions->owed);
    emissions_check_list(&emissions->part);
    for (const struct owed_emission *e = emissions->owed.first; e != NULL; e = e->next)
        waiting += !e->answered;
    for (size_t i = 0; i < OUTBOX_QUEUES; i++)
        for (const struct owed_emission *e = emissions->queues[i].first; e != NULL; e = e->next_queued)
            queued += queue_index(e) == i && !e->answered;
    assert(queued == waiting && (emissions->owed.first == NULL || !emissions->owed.first->answered));
    assert(emissions->part.first == NULL || p->state == PROJECTION_CATCHING_UP);
}
