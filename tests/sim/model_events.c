/* CloudEvents: each arrives, in the order of its instance's history, and none that is not committed. */
#include "checks.h"
#include <stdio.h>

static bool is_life(const struct turn *turn, const struct event *e)
{
    switch (e->kind) {
    case EVENT_STARTED: return turn->execution == e->before + 1;
    case EVENT_COMPLETED:
    case EVENT_FAILED:
    case EVENT_CANCELLED:
    case EVENT_TERMINATED:
    case EVENT_CONTINUED_AS_NEW:
    case EVENT_PAUSED:
    case EVENT_RESUMED: return true;
    default: return false;
    }
}

static void expect(struct world *w, size_t instance, uint64_t execution, uint64_t event, uint64_t sequence)
{
    struct model *model = w->model;
    model->emitted =
        grown(w, model->emitted, model->emitted_len, &model->emitted_cap, sizeof *model->emitted);
    model->emitted[model->emitted_len++] = (struct model_emitted){
        .instance = instance, .execution = execution, .event = event, .sequence = sequence};
}

void model_expect_events(struct world *w, size_t instance, const struct turn *turn, uint64_t sequence)
{
    if (turn->execution == 0 || model_of(w, instance)->damaged)
        return;
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *e = &turn->events[i];
        if (w->events != EVENTS_OUT_NONE &&
            (e->kind == EVENT_EVENT_EMITTED || (w->events == EVENTS_OUT_ALL && is_life(turn, e))))
            expect(w, instance, turn->execution, e->id, sequence);
    }
}

void model_expect_deleted(struct world *w, size_t instance, const struct deletion *deletion,
                          uint64_t sequence)
{
    if (w->events == EVENTS_OUT_ALL && deletion->orchestration.len > 0)
        expect(w, instance, deletion->execution, 0, sequence);
}

static struct model_emitted *find(struct world *w, const struct emission *emission)
{
    size_t const instance = instance_index(w, emission->instance);
    for (size_t i = 0; i < w->model->emitted_len; i++) {
        struct model_emitted *x = &w->model->emitted[i];
        if (x->instance == instance && x->execution == emission->execution && x->event == emission->event)
            return x;
    }
    return NULL;
}

/* Says something else than the event does. */
static bool is_another(struct world *w, const struct model_emitted *x, const struct emission *emission)
{
    const struct model_instance *m = model_of(w, x->instance);
    const struct model_event *e = x->event == 0 ? NULL : model_find(w, x->instance, x->execution, x->event);
    if (e == NULL || e->kind == EVENT_STARTED)
        return false;
    bool const silent = e->kind == EVENT_CONTINUED_AS_NEW;
    return !thole_slice_equal(emission->data, silent ? (thole_slice){0} : e->data) ||
           (e->kind == EVENT_EVENT_EMITTED && !thole_slice_equal(emission->type, e->name)) ||
           (m->deletions == 0 && !thole_slice_equal(emission->orchestration, m->orchestration));
}

void checks_emit(struct world *w, uint32_t partition, uint64_t epoch, const struct emission *out,
                 const char *who)
{
    const struct model_partition *part = &w->model->partitions[partition];
    uint64_t const published = epoch < part->epochs_len ? part->epochs[epoch].published : 0;
    const struct model_emitted *x = find(w, out);
    w->stats.emitted++;
    if (model_damaged(w, out->instance))
        return;
    if (x == NULL)
        broken(w, "%s sends an event of %.*s/%" PRIu64 "#%" PRIu64 ", which is not committed", who,
               THOLE_FMT(out->instance), out->execution, out->event);
    else if (x->sequence <= published)
        broken(w, "%s sends again the event %.*s/%" PRIu64 "#%" PRIu64 ", which the log says is stored", who,
               THOLE_FMT(out->instance), out->execution, out->event);
    else if (is_another(w, x, out))
        broken(w, "%s sends of %.*s/%" PRIu64 "#%" PRIu64 " what it does not say", who,
               THOLE_FMT(out->instance), out->execution, out->event);
}

void checks_event_stored(struct world *w, const struct emission *out)
{
    struct model_emitted *const x = find(w, out);
    if (x == NULL || model_damaged(w, out->instance))
        return;
    for (struct model_emitted *before = w->model->emitted; before < x; before++)
        if (before->instance == x->instance && !before->stored)
            broken(w, "%.*s/%" PRIu64 "#%" PRIu64 " arrives before its event #%" PRIu64,
                   THOLE_FMT(out->instance), x->execution, x->event, before->event);
    x->stored = true;
}

/* ---- events reported as stored ---- */

void model_check_emitted(struct world *w, size_t instance, uint64_t below)
{
    for (size_t i = 0; i < w->model->emitted_len; i++) {
        const struct model_emitted *x = &w->model->emitted[i];
        if (x->instance == instance && x->sequence < below && !x->stored && !model_of(w, instance)->damaged)
            broken(w, "%.*s loses records, and not all of its events are stored",
                   THOLE_FMT(w->instances[instance]));
    }
}

void model_published_events(struct world *w, uint32_t partition, uint64_t published)
{
    for (size_t i = 0; i < w->model->emitted_len; i++) {
        const struct model_emitted *x = &w->model->emitted[i];
        if (x->sequence <= published && instance_partition(w, x->instance) == partition && !x->stored &&
            !model_of(w, x->instance)->damaged)
            broken(w, "partition %u: a record says that an event of %.*s is stored, which is not", partition,
                   THOLE_FMT(w->instances[x->instance]));
    }
}

bool checks_events(struct world *w, char *why, size_t size)
{
    for (size_t i = 0; i < w->model->emitted_len; i++) {
        const struct model_emitted *x = &w->model->emitted[i];
        if (x->stored || model_of(w, x->instance)->damaged)
            continue;
        (void)snprintf(why, size, "event %.*s/%" PRIu64 "#%" PRIu64 " never arrived",
                       THOLE_FMT(w->instances[x->instance]), x->execution, x->event);
        return false;
    }
    return true;
}
