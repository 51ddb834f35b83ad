/* Which messages change anything, and what, as the independent reader sees it. */
#include "checks.h"
#include "clock_fake.h"

struct model_event *model_event_at(struct model_execution *x, uint64_t id)
{
    return id >= 1 && id <= x->events_len ? &x->events[id - 1] : NULL;
}

bool model_same_origin(const struct origin *a, const struct origin *b)
{
    return a->execution == b->execution && a->event == b->event &&
           thole_slice_equal(a->instance, b->instance);
}

bool model_has_seen(const struct model_instance *m, enum event_kind kind, thole_slice id)
{
    for (size_t i = 0; i < m->seen_len && id.len > 0; i++)
        if (m->seen[i].kind == kind && thole_slice_equal(m->seen[i].id, id))
            return true;
    return false;
}

void model_note_request(struct world *w, struct model_instance *m, enum event_kind kind, thole_slice id)
{
    if (id.len == 0)
        return;
    m->seen = grown(w, m->seen, m->seen_len, &m->seen_cap, sizeof *m->seen);
    m->seen[m->seen_len++] = (struct model_request){kind, keep_slice(w, id)};
}

bool model_is_kept(const struct model_instance *m, thole_slice request_id)
{
    for (size_t i = 0; i < m->kept_len; i++)
        if (thole_slice_equal(m->kept[i].request_id, request_id))
            return true;
    return false;
}

/* Between a cancel request and its delivery, what is outstanding is as good as cancelled. */
static const struct model_event *outstanding(struct model_execution *x, const struct message *message,
                                             enum event_kind kind)
{
    const struct model_event *scheduled = model_event_at(x, message->task);
    bool const open = scheduled != NULL && scheduled->kind == kind && scheduled->resolved_by == EVENT_UNKNOWN;
    return open && x->cancel_requested == x->cancel_delivered ? scheduled : NULL;
}

static bool accepts_activity_result(struct model_execution *x, const struct message *message)
{
    const struct model_event *scheduled = outstanding(x, message, EVENT_ACTIVITY_SCHEDULED);
    uint32_t const number = message->try_number == 0 ? 1 : message->try_number;
    return scheduled != NULL && !scheduled->waiting && scheduled->try_number == number;
}

static bool accepts_release(struct model_execution *x, const struct message *message)
{
    const struct model_event *scheduled = outstanding(x, message, EVENT_ACTIVITY_SCHEDULED);
    return scheduled != NULL && scheduled->quarantined &&
           (message->try_number == 0 || message->try_number == scheduled->try_number);
}

/* A message of a parent is for the child that it names, not for another instance with its id. */
static bool is_meant(const struct model_instance *m, const struct message *message)
{
    return message->parent.instance.len == 0 || model_same_origin(&message->parent, &m->parent);
}

bool model_accepts(struct world *w, size_t instance, const struct message *message)
{
    struct model_instance *m = model_of(w, instance);
    struct model_execution *x = model_current(m);
    bool const event = message->kind == MESSAGE_EVENT ||
                       (message->kind == MESSAGE_START && x != NULL && message->event_name.len > 0);
    if (message->kind == MESSAGE_DELETE)
        return model_accepts_deletion(m, message);
    if (x == NULL)
        return (message->kind == MESSAGE_START && !model_is_over(m, message)) ||
               (event && !model_is_kept(m, message->request_id));
    if ((x->ended && x->terminal != EVENT_CONTINUED_AS_NEW) || x->terminate_requested)
        return false;
    if (event) /* also between two executions: the next one must find it */
        return !model_has_seen(m, EVENT_EVENT_RECEIVED, message->request_id);
    if (x->ended)
        return false;
    switch (message->kind) {
    case MESSAGE_START:
    case MESSAGE_EVENT: return false;
    case MESSAGE_CANCEL: return !x->cancel_requested && is_meant(m, message);
    case MESSAGE_TERMINATE: return is_meant(m, message);
    case MESSAGE_PAUSE: return !x->paused && !model_has_seen(m, EVENT_PAUSED, message->request_id);
    case MESSAGE_RESUME: return x->paused && !model_has_seen(m, EVENT_RESUMED, message->request_id);
    case MESSAGE_PRUNE: {
        uint64_t const before =
            message->execution < m->executions_len ? message->execution : m->executions_len;
        return before > m->gone + 2 && before > x->pruned_before &&
               !model_has_seen(m, EVENT_HISTORY_PRUNED, message->request_id);
    }
    case MESSAGE_RELEASE:
        return message->execution == m->executions_len &&
               (message->timer ? outstanding(x, message, EVENT_TIMER_CREATED) != NULL
                               : accepts_release(x, message));
    case MESSAGE_ACTIVITY_RESULT:
        return message->execution == m->executions_len && accepts_activity_result(x, message);
    case MESSAGE_CHILD_RESULT:
        return message->execution == m->executions_len &&
               outstanding(x, message, EVENT_CHILD_SCHEDULED) != NULL;
    case MESSAGE_RETRY:
    case MESSAGE_DELETE: break;
    }
    return false;
}

/* ---- effects of accepted messages ---- */

static bool is_final(const struct retry *retry, const struct message *message)
{
    for (size_t i = 0; i < retry->final_types_len; i++)
        if (thole_slice_equal(retry->final_types[i], message->error_type))
            return true;
    return message->final;
}

static bool is_try_result(struct world *w, uint64_t time_ms, const struct model_event *scheduled,
                          const struct event *event, const struct message *message)
{
    const struct retry *retry = &scheduled->retry;
    bool const again = scheduled->try_number < retry->tries_max && !is_final(retry, message) &&
                       (message->lost == 0 || retry->poison == POISON_RETRY);
    if (event->ref != message->task || !thole_slice_equal(event->data, message->data) ||
        event->try_number != scheduled->try_number)
        return false;
    if (message->lost > 0 && model_waits_in_quarantine(w, scheduled))
        return model_is_quarantine(w, time_ms, scheduled, event, message);
    if (message->status == THOLE_OK)
        return event->kind == EVENT_ACTIVITY_COMPLETED && event->timed == scheduled->timer.there;
    if (event->code != message->status ||
        (message->lost > 0 && !thole_slice_equal(event->error_type, POISON_TYPE)))
        return false;
    if (event->kind == EVENT_ACTIVITY_TRY_FAILED)
        return again &&
               ((event->due_ms >= time_ms && event->due_ms <= time_ms + retry->max_delay_ms) ||
                clock_counts(w, time_ms, event->due_ms, retry->max_delay_ms)) &&
               (scheduled->deadline_ms == 0 || event->due_ms < scheduled->deadline_ms);
    return event->kind == EVENT_ACTIVITY_FAILED && event->timed == scheduled->timer.there &&
           (!again || scheduled->deadline_ms != 0);
}

static bool is_request(const struct event *event, const struct message *message, enum event_kind kind)
{
    return event->kind == kind && thole_slice_equal(event->request_id, message->request_id) &&
           thole_slice_equal(event->data, message->data);
}

bool model_is_raised(const struct event *event, const struct message *message)
{
    return event->kind == EVENT_EVENT_RECEIVED && thole_slice_equal(event->name, message->event_name) &&
           thole_slice_equal(event->data, message->event_data) &&
           thole_slice_equal(event->request_id, message->request_id);
}

bool model_is_effect(struct world *w, struct model_execution *x, uint64_t time_ms, const struct event *event,
                     const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_EVENT:
    case MESSAGE_START: return model_is_raised(event, message);
    case MESSAGE_CANCEL: return is_request(event, message, EVENT_CANCEL_REQUESTED);
    case MESSAGE_TERMINATE: return is_request(event, message, EVENT_TERMINATE_REQUESTED);
    case MESSAGE_PAUSE: return is_request(event, message, EVENT_PAUSED);
    case MESSAGE_RESUME: return is_request(event, message, EVENT_RESUMED);
    case MESSAGE_PRUNE:
        return is_request(event, message, EVENT_HISTORY_PRUNED) && event->before <= message->execution;
    case MESSAGE_RELEASE:
        if (message->timer)
            return event->kind == EVENT_TIMER_FIRED && event->ref == message->task;
        return model_is_released(model_event_at(x, message->task), event, message);
    case MESSAGE_ACTIVITY_RESULT:
        return is_try_result(w, time_ms, model_event_at(x, message->task), event, message);
    case MESSAGE_CHILD_RESULT:
        return event->ref == message->task && thole_slice_equal(event->data, message->data) &&
               event->code == message->status &&
               event->kind == (message->status == THOLE_OK ? EVENT_CHILD_COMPLETED : EVENT_CHILD_FAILED);
    case MESSAGE_RETRY:
    case MESSAGE_DELETE: break;
    }
    return false;
}
