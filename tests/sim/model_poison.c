/* Poisoned activities that wait for a decision, as the independent reader sees them. */
#include "checks.h"
#include "clock_fake.h"
#include "store_fake.h"

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

bool model_waits_in_quarantine(const struct world *w, const struct model_event *scheduled)
{
    return scheduled->retry.poison == POISON_QUARANTINE && w->quarantine_ms != 0;
}

bool model_is_quarantine(const struct world *w, uint64_t time_ms, const struct model_event *scheduled,
                         const struct event *e, const struct message *message)
{
    uint64_t const own_ms = w->quarantine_ms == UINT64_MAX ? 0 : time_ms + w->quarantine_ms;
    bool const known = scheduled->retry.tries_max > 1;
    bool const by_clock =
        w->quarantine_ms != UINT64_MAX && clock_counts(w, time_ms, e->due_ms, w->quarantine_ms);
    return e->kind == EVENT_ACTIVITY_QUARANTINED && e->lost == message->lost && e->lost >= w->poison_after &&
           (e->due_ms == earlier(own_ms, scheduled->deadline_ms) || by_clock) && e->code == 0 &&
           e->error_type.len == 0 && thole_slice_equal(e->worker, message->lost_worker) &&
           thole_slice_equal(e->name, scheduled->name) && thole_slice_equal(e->queue, scheduled->queue) &&
           thole_slice_equal(e->input, known ? (thole_slice){NULL, 0} : scheduled->data);
}

/* Whether the activity fails with the data known when it came there. */
bool model_is_given_up(const struct model_event *target, const struct event *e)
{
    return e->kind == EVENT_ACTIVITY_FAILED && e->quarantined && target->quarantined &&
           e->code == THOLE_APP && thole_slice_equal(e->error_type, POISON_TYPE) &&
           thole_slice_equal(e->data, target->why);
}

bool model_is_released(const struct model_event *target, const struct event *e, const struct message *message)
{
    if (e->ref != message->task)
        return false;
    return message->fail ? model_is_given_up(target, e)
                         : e->kind == EVENT_ACTIVITY_TRY_STARTED && e->quarantined && target->quarantined;
}

/* ---- rows ---- */

static const struct model_event *find(const struct world *w, const struct batch_quarantine *q)
{
    size_t const i = instance_index(w, q->instance);
    const struct model_event *e = i == SIZE_MAX ? NULL : model_find(w, i, q->execution, q->activity_id);
    return e != NULL && e->kind == EVENT_ACTIVITY_SCHEDULED && e->held.sequence != 0 ? e : NULL;
}

void checks_quarantine(struct world *w, const struct batch *b, const char *who)
{
    for (size_t i = 0; i < b->quarantine_added_len; i++) {
        const struct batch_quarantine *q = &b->quarantine_added[i];
        const struct model_event *e = find(w, q);
        if (model_damaged(w, q->instance))
            continue;
        if (e == NULL || q->try_number > e->try_number || q->lost < w->poison_after ||
            !thole_slice_equal(q->activity, e->name) || !thole_slice_equal(q->queue, e->queue))
            broken(w, "%s writes that %.*s#%" PRIu64 " is in quarantine, which is not committed", who,
                   THOLE_FMT(q->instance), q->activity_id);
    }
    for (size_t i = 0; i < b->quarantine_removed_len; i++) {
        const struct batch_quarantine *q = &b->quarantine_removed[i];
        const struct model_event *e = find(w, q);
        /* rows are also written again from the beginning of the log */
        bool const earlier = e != NULL && e->left_quarantine;
        if (!model_damaged(w, q->instance) && (e == NULL || (e->quarantined && !earlier)))
            broken(w, "%s removes %.*s#%" PRIu64 " from quarantine, where it is", who, THOLE_FMT(q->instance),
                   q->activity_id);
    }
}
