/* Refused starts of children, whose id is in use: the parent is told, and the start is incorporated when that
 * message is stored. */
#include "instances_state.h"
#include "memory.h"
#include <stdlib.h>

/* No record holds the refusal, so the start is incorporated only when the answer to the parent is stored. */
void refusals_add(struct instances *p, struct entry *entry, const struct pending *start)
{
    const struct message *m = &start->message;
    struct message const message = {.kind = MESSAGE_CHILD_RESULT,
                                    .instance = m->parent.instance,
                                    .execution = m->parent.execution,
                                    .task = m->parent.event,
                                    .status = THOLE_CONFLICT,
                                    .data = THOLE_STR("the instance id is in use"),
                                    .error_type = THOLE_STR("conflict"),
                                    .child = m->instance};
    struct refusal *refusal = memory_new(sizeof *refusal);
    buf_init(&refusal->bytes, MESSAGE_BYTES_MAX);
    refusal->token = INSTANCES_TOKEN | ++p->next_refusal;
    refusal->inbox_sequence = start->inbox_sequence;
    refusal->entry = entry;
    entry->refusals++;
    refusal->next = p->refusals;
    p->refusals = refusal;
    if (message_encode(&message, &refusal->bytes) != THOLE_OK)
        env_no_memory(p->env);
    else
        env_send(p->env, &message, buf_bytes(&refusal->bytes), refusal->token);
}

void instances_sent(struct instances *p, uint64_t token)
{
    struct refusal **at = &p->refusals;
    while (*at != NULL && (*at)->token != token)
        at = &(*at)->next;
    struct refusal *refusal = *at;
    if (refusal == NULL)
        return;
    *at = refusal->next;
    intake_incorporate(p, refusal->inbox_sequence, 0);
    struct entry *entry = refusal->entry;
    if (--entry->refusals == 0 && intake_waits(entry)) /* a deletion waited for the refusals */
        entries_ready(&p->entries, entry);
    buf_release(&refusal->bytes);
    free(refusal);
}

void refusals_release(struct instances *p)
{
    for (struct refusal *next; p->refusals != NULL; p->refusals = next) {
        next = p->refusals->next;
        buf_release(&p->refusals->bytes);
        free(p->refusals);
    }
}
