/*
 * The answers to what makes no record: starts under an id in use, those that are rejected, and events that
 * are refused. None is given before it is decided for good. A start is taken only when all records of the
 * instance are committed (waiting.c), and whether an event that came with it was taken is said when the
 * record of its turn is committed. An event that came alone and is taken gets none: clients read the history.
 */
#include "instances_state.h"
#include <assert.h>

/* Executions wait for no answer. */
static bool answers_wanted(thole_slice request_id)
{
    return request_id.len > 0 && request_id.ptr[0] != '<';
}

static struct event_notice *answers_say(struct instances *p, const struct entry *entry, const char *kind,
                                        thole_slice orchestration, thole_slice request_id)
{
    struct event_notice *out = &env_emit(p->env, PARTITION_OUT_NOTICE)->notice;
    out->kind = kind;
    out->orchestration = env_copy(p->env, orchestration.len > 0 ? orchestration : THOLE_STR("-"));
    out->instance = env_copy(p->env, entry->id);
    out->execution = entry->execution;
    out->request_id = env_copy(p->env, request_id);
    return out;
}

/* A repeated request gets the answer of the first one. An event that is new is answered by answers_note(). */
void answers_collide(struct instances *p, const struct entry *entry, struct pending *start,
                     const struct event *raised)
{
    const struct instance *instance = entry_instance(entry);
    const struct message *m = &start->message;
    bool const signals = m->event_name.len > 0, same = thole_slice_equal(m->request_id, entry->request_id);
    assert(entry->in_flight == 0);
    bool const continued = entry->state == ENTRY_CONTINUED; /* accepts nothing: the next execution does */
    bool const again =
        same || (signals && instance != NULL &&
                 (continued ? instance_has_seen(instance, raised) : !instance_accepts(instance, raised)));
    if (!answers_wanted(m->request_id) || (!again && signals && entry->state != ENTRY_ENDED))
        return;
    (void)answers_say(p, entry, again ? "started" : "rejected",
                      again ? entry->orchestration : m->orchestration, m->request_id);
    start->answered = true;
}

void answers_drop(struct instances *p, struct entry *entry, const struct message *event)
{
    if (!answers_wanted(event->request_id))
        return;
    if (entry->in_flight > 0) /* nothing uncommitted is told */
        entry_add_answer(entry, entry->execution, false, event->request_id);
    else
        (void)answers_say(p, entry, "rejected", entry->orchestration, event->request_id);
}

void answers_refuse(struct instances *p, const struct message *m, enum reject_code code, const char *text)
{
    const struct entry *entry = entries_find(&p->entries, m->instance);
    bool const event = m->kind == MESSAGE_EVENT;
    if ((m->kind != MESSAGE_START && !event) || entry == NULL || !answers_wanted(m->request_id))
        return; /* nobody waits for an answer to the others */
    struct event_notice *out =
        answers_say(p, entry, "rejected", event ? entry->orchestration : m->orchestration, m->request_id);
    out->code = env_copy(p->env, thole_slice_from(reject_code_name(code)));
    out->data = env_copy(p->env, thole_slice_from(text));
}

static bool answers_is_taken(const struct turn *turn, thole_slice request_id)
{
    for (size_t i = 0; i < turn->events_len; i++)
        if (turn->events[i].kind == EVENT_EVENT_RECEIVED &&
            thole_slice_equal(turn->events[i].request_id, request_id))
            return true;
    return false;
}

/* Whether an event without a start is answered: it came with the end of the instance, after it. */
static bool answers_owed(const struct turn *turn, const struct message *message)
{
    enum event_kind const last =
        turn->events_len > 0 ? turn->events[turn->events_len - 1].kind : EVENT_UNKNOWN;
    if (message->kind == MESSAGE_START)
        return true;
    return message->kind == MESSAGE_EVENT && event_is_terminal(last) && last != EVENT_CONTINUED_AS_NEW &&
           !answers_is_taken(turn, message->request_id);
}

void answers_note(struct instances *p, struct entry *entry)
{
    const struct run *run = &p->run;
    bool const created = run->begins && run->continued == NULL;
    for (const struct pending *pending = run->in.taken; pending != NULL && !created;
         pending = pending->next) {
        thole_slice const request_id = pending->message.request_id;
        if (pending->inbox_sequence == 0 || !answers_owed(&run->turn, &pending->message) ||
            !answers_wanted(request_id) || pending->answered)
            continue;
        entry_add_answer(entry, run->turn.execution, answers_is_taken(&run->turn, request_id), request_id);
    }
}

void answers_tell(struct instances *p, struct entry *entry)
{
    for (const struct answer *answer = entry->answers; answer != NULL; answer = answer->next)
        answers_say(p, entry, answer->taken ? "started" : "rejected", entry->orchestration,
                    answer->request_id)
            ->execution = answer->execution;
    entry_drop_answers(entry);
}
