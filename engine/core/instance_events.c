/*
 * Received external events, and the waits for them.
 *
 * Per name there is a queue of waits or a queue of kept events, never both. A cancelled wait stays in its
 * queue and is skipped later, so that each entry is added and removed once. An event that a cancelled wait
 * gives back is older than those that came since: such events are in a heap beside the queue.
 */
#include "instance_events.h"
#include "instance_memory.h"
#include "instance_names.h"
#include "instance_tasks.h"
#include <assert.h>
#include <string.h>

enum { RETURNED_CAP_MIN = 4 };

/* ---- events that were given back: a heap by id ---- */

static thole_status returned_grow(struct instance *in, struct name *name)
{
    size_t const cap = name->returned_cap == 0 ? RETURNED_CAP_MIN : name->returned_cap * 2;
    struct kept_event *larger = arena_array(&in->arena, cap, sizeof *larger);
    if (larger == NULL)
        return instance_full(in);
    if (name->returned_len > 0)
        memcpy(larger, name->returned, name->returned_len * sizeof *larger);
    name->returned = larger;
    name->returned_cap = cap;
    return THOLE_OK;
}

static void count_kept(struct instance *in, const struct kept_event *event)
{
    in->kept.len++;
    in->kept.bytes += event->data.len;
}

static thole_status returned_push(struct instance *in, struct name *name, struct kept_event event)
{
    if (name->returned_len == name->returned_cap)
        THOLE_TRY(returned_grow(in, name));
    count_kept(in, &event);
    struct kept_event *heap = name->returned;
    size_t at = name->returned_len++;
    for (; at > 0 && heap[(at - 1) / 2].id > event.id; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = event;
    return THOLE_OK;
}

static struct kept_event returned_pop(struct name *name)
{
    struct kept_event *heap = name->returned;
    struct kept_event const first = heap[0], last = heap[--name->returned_len];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < name->returned_len) {
        if (child + 1 < name->returned_len && heap[child + 1].id < heap[child].id)
            child++;
        if (heap[child].id >= last.id)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

/* ---- events and waits ---- */

static bool instance_events_take_first(struct name *name, struct kept_event *ret)
{
    struct kept_event *first = name->kept_first;
    if (name->returned_len > 0 && (first == NULL || name->returned[0].id < first->id)) {
        *ret = returned_pop(name);
        return true;
    }
    if (first == NULL)
        return false;
    *ret = *first;
    name->kept_first = first->next;
    if (name->kept_first == NULL)
        name->kept_last = NULL;
    return true;
}

static bool instance_events_take_kept(struct instance *in, struct name *name, struct kept_event *ret)
{
    if (!instance_events_take_first(name, ret))
        return false;
    assert(in->kept.len > 0 && in->kept.bytes >= ret->data.len);
    in->kept.len--;
    in->kept.bytes -= ret->data.len;
    return true;
}

/* Removes the first wait that is outstanding from the queue. */
static struct task *take_wait(struct name *name)
{
    struct task *wait = name->waits_first;
    while (wait != NULL && wait->state != TASK_OUTSTANDING)
        wait = wait->next_wait;
    name->waits_first = wait == NULL ? NULL : wait->next_wait;
    if (name->waits_first == NULL)
        name->waits_last = NULL;
    return wait;
}

static void instance_events_give(struct instance *in, struct task *wait, uint64_t id, thole_slice data)
{
    task_resolve(in, wait, &(struct task_result){.state = TASK_SUCCEEDED, .at = id, .data = data});
}

thole_status event_arrived(struct instance *in, thole_slice text, uint64_t id, thole_slice data)
{
    struct name *name = names_intern(in, text);
    if (name == NULL)
        return in->broken;
    struct task *wait = cancel_undelivered(in) ? NULL : take_wait(name);
    if (wait != NULL) {
        instance_events_give(in, wait, id, data);
        return THOLE_OK;
    }
    struct kept_event *event = arena_alloc(&in->arena, sizeof *event);
    if (event == NULL)
        return instance_full(in);
    *event = (struct kept_event){.id = id, .data = data};
    count_kept(in, event);
    if (name->kept_last == NULL)
        name->kept_first = event;
    else
        name->kept_last->next = event;
    name->kept_last = event;
    return THOLE_OK;
}

void event_await(struct instance *in, struct task *wait)
{
    struct name *name = wait->name;
    struct kept_event event;
    assert(wait->kind == TASK_EVENT && wait->next_wait == NULL);
    if (instance_events_take_kept(in, name, &event)) {
        instance_events_give(in, wait, event.id, event.data);
        return;
    }
    if (name->waits_last == NULL)
        name->waits_first = wait;
    else
        name->waits_last->next_wait = wait;
    name->waits_last = wait;
}

thole_status event_give_back(struct instance *in, struct task *wait)
{
    assert(wait->kind == TASK_EVENT && wait->state == TASK_SUCCEEDED);
    struct kept_event const event = {.id = wait->resolved_at, .data = wait->data};
    task_unresolve(wait); /* so that it can be resolved as cancelled */
    struct task *next = take_wait(wait->name);
    if (next == NULL)
        return returned_push(in, wait->name, event);
    instance_events_give(in, next, event.id, event.data);
    return THOLE_OK;
}

bool instance_keeps_more(const struct instance *in, thole_slice text)
{
    if (in->kept.len < EVENTS_KEPT_MAX && in->kept.bytes < EVENTS_KEPT_BYTES_MAX)
        return true;
    const struct name *name = cancel_undelivered(in) ? NULL : names_find(in, text);
    const struct task *wait = name == NULL ? NULL : name->waits_first;
    while (wait != NULL && wait->state != TASK_OUTSTANDING)
        wait = wait->next_wait;
    return wait != NULL;
}

size_t instance_kept(const struct instance *in)
{
    return in->kept.len;
}

size_t events_kept(const struct instance *in,
                   void (*visit)(void *arg, const struct name *name, uint64_t id, thole_slice data),
                   void *arg)
{
    size_t n = 0;
    for (size_t i = 0; i < in->names.cap; i++) {
        for (const struct name *name = in->names.buckets[i]; name != NULL; name = name->next) {
            for (const struct kept_event *e = name->kept_first; e != NULL; e = e->next, n++)
                if (visit != NULL)
                    visit(arg, name, e->id, e->data);
            for (size_t k = 0; k < name->returned_len; k++, n++)
                if (visit != NULL)
                    visit(arg, name, name->returned[k].id, name->returned[k].data);
        }
    }
    return n;
}

static struct kept_name kept_of(const struct name *name)
{
    struct kept_name kept = {.name = name->text, .first = UINT64_MAX, .count = name->returned_len};
    for (const struct kept_event *event = name->kept_first; event != NULL; event = event->next)
        kept.count++;
    if (name->kept_first != NULL)
        kept.first = name->kept_first->id;
    if (name->returned_len > 0 && name->returned[0].id < kept.first)
        kept.first = name->returned[0].id;
    return kept;
}

size_t instance_kept_names(const struct instance *in, struct kept_name *ret, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < in->names.cap; i++)
        for (const struct name *name = in->names.buckets[i]; name != NULL; name = name->next) {
            struct kept_name const kept = kept_of(name);
            if (kept.count > 0 && n++ < cap)
                ret[n - 1] = kept;
        }
    return n;
}
