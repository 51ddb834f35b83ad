/* The events that the next execution begins with after continue-as-new. */
#include "instance_events.h"
#include "instance_requests.h"
#include "instance_state_map.h"
#include <assert.h>
#include <stdlib.h>

struct carry {
    const struct instance *in;
    struct arena *arena;
    struct event *events;
    size_t len, cap;
};

static struct event *instance_carry_add(struct carry *c, enum event_kind kind)
{
    assert(c->len < c->cap);
    struct event *event = &c->events[c->len++];
    *event = (struct event){.kind = kind, .id = c->len};
    return event;
}

static thole_status instance_carry_dup(const struct carry *c, thole_slice from, thole_slice *ret)
{
    *ret = (thole_slice){NULL, 0};
    return from.len == 0 ? THOLE_OK : arena_dup(c->arena, from, ret);
}

static thole_status carry_start(struct carry *c)
{
    const struct instance *in = c->in;
    struct event *start = instance_carry_add(c, EVENT_STARTED);
    start->code = SEMANTICS_VERSION;
    start->version = in->end.next_version != 0 ? in->end.next_version : in->facts.version;
    start->parent = in->facts.parent;
    start->before = in->facts.before;
    THOLE_TRY(instance_carry_dup(c, in->facts.parent.instance, &start->parent.instance));
    THOLE_TRY(instance_carry_dup(c, in->facts.orchestration, &start->name));
    THOLE_TRY(instance_carry_dup(c, in->facts.request_id, &start->request_id));
    THOLE_TRY(instance_carry_dup(c, in->facts.trace.parent, &start->traceparent));
    THOLE_TRY(instance_carry_dup(c, in->facts.trace.list, &start->tracestate));
    return instance_carry_dup(c, in->end.next_input, &start->data);
}

static thole_status carry_state(struct carry *c)
{
    thole_slice key = {NULL, 0}, value;
    if (c->in->status.text.len > 0)
        THOLE_TRY(
            instance_carry_dup(c, c->in->status.text, &instance_carry_add(c, EVENT_STATE_CARRIED)->data));
    while (state_next(&c->in->state, key, &key, &value)) {
        struct event *event = instance_carry_add(c, EVENT_STATE_CARRIED);
        THOLE_TRY(instance_carry_dup(c, key, &event->name));
        THOLE_TRY(instance_carry_dup(c, value, &event->data));
    }
    return THOLE_OK;
}

static thole_status carry_origins(struct carry *c)
{
    uint64_t hashes[ORIGINS_CARRIED_MAX];
    size_t const n = requests_last(&c->in->requests, hashes);
    if (n == 0)
        return THOLE_OK;
    uint8_t *bytes = arena_array(c->arena, n, sizeof(uint64_t));
    if (bytes == NULL)
        return arena_status(c->arena);
    for (size_t i = 0; i < n * sizeof(uint64_t); i++)
        bytes[i] = (uint8_t)(hashes[i / sizeof(uint64_t)] >> 8 * (i % sizeof(uint64_t)));
    instance_carry_add(c, EVENT_ORIGINS_CARRIED)->data = (thole_slice){bytes, n * sizeof(uint64_t)};
    return THOLE_OK;
}

/* An execution to which an await has reported a cancellation ends as cancelled, so one that continues has an
 * unreported one or none. */
static thole_status carry_cancel(struct carry *c)
{
    if (!c->in->cancel.received)
        return THOLE_OK;
    struct event *event = instance_carry_add(c, EVENT_CANCEL_REQUESTED);
    THOLE_TRY(instance_carry_dup(c, c->in->cancel.request_id, &event->request_id));
    return instance_carry_dup(c, c->in->cancel.reason, &event->data);
}

static void visit_kept(void *arg, const struct name *name, uint64_t id, thole_slice data)
{
    struct event *event = instance_carry_add(arg, EVENT_EVENT_RECEIVED);
    event->id = id;
    event->name = name->text;
    event->data = data;
}

static int by_id(const void *a, const void *b)
{
    const struct event *left = a, *right = b;
    return left->id < right->id ? -1 : left->id > right->id;
}

/* Without request ids, which are in ORIGINS_CARRIED: with them they would be taken for repetitions. */
static thole_status carry_events(struct carry *c)
{
    size_t const first = c->len;
    size_t const n = events_kept(c->in, visit_kept, c);
    if (n > 0)
        qsort(&c->events[first], n, sizeof *c->events, by_id);
    for (size_t i = first; i < c->len; i++) {
        c->events[i].id = i + 1;
        THOLE_TRY(instance_carry_dup(c, c->events[i].name, &c->events[i].name));
        THOLE_TRY(instance_carry_dup(c, c->events[i].data, &c->events[i].data));
    }
    return THOLE_OK;
}

thole_status instance_carry(const struct instance *ended, struct arena *arena, struct event **ret_events,
                            size_t *ret_len)
{
    struct carry c = {.in = ended, .arena = arena};
    assert(ended->end.continued);
    c.cap = 4 + state_len(&ended->state) + events_kept(ended, NULL, NULL);
    c.events = arena_array(arena, c.cap, sizeof *c.events);
    if (c.events == NULL)
        return arena_status(arena);
    THOLE_TRY(carry_start(&c));
    THOLE_TRY(carry_state(&c));
    THOLE_TRY(carry_origins(&c));
    THOLE_TRY(carry_cancel(&c));
    THOLE_TRY(carry_events(&c));
    *ret_events = c.events;
    *ret_len = c.len;
    return THOLE_OK;
}
