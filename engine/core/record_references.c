#include "record_references.h"
#include <string.h>

#define NUMBER(n) ((unsigned long long)(n))

enum { FRAME_BYTES_MAX = 16 }; /* around a payload, more than a reference takes */

/* Not those that readers of other programs look for: Started, what was received from clients, ends. Nor those
 * from which messages to others follow: an engine that does not know references would not send them, and say
 * that it had. */
bool event_may_refer(enum event_kind kind)
{
    switch (kind) {
    case EVENT_ACTIVITY_SCHEDULED:
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_ACTIVITY_TRY_STARTED:
    case EVENT_CHILD_COMPLETED:
    case EVENT_SIDE_EFFECT_RECORDED:
    case EVENT_CUSTOM_STATUS_SET:
    case EVENT_STATE_SET:
    case EVENT_STATE_CARRIED: return true;
    default: return false;
    }
}

bool event_has_payload(enum event_kind kind)
{
    switch (kind) {
    case EVENT_UNKNOWN:
    case EVENT_TIMER_CREATED:
    case EVENT_TIMER_FIRED:
    case EVENT_EVENT_AWAITED:
    case EVENT_PATCHED:
    case EVENT_ORIGINS_CARRIED:
    case EVENT_VERSION_CHOSEN: return false;
    default: return true;
    }
}

enum event_kind event_kind_of_body(uint32_t number)
{
    uint32_t const kind = number > REFERENCE_KINDS ? number - REFERENCE_KINDS : 0;
    return (enum event_kind)(event_may_refer((enum event_kind)kind) ? kind : number);
}

/* ---- writing ---- */

struct homes {
    uint32_t at[REFERENCE_HOMES_MAX]; /* events, from 0 */
    size_t len;
};

static bool is_large(const struct event *event)
{
    return event->data.len >= REFERENCE_BYTES_MIN && event_has_payload(event->kind);
}

/* The end is compared first: what differs mostly differs there or at the beginning. */
static bool record_references_is_same(thole_slice a, thole_slice b)
{
    enum { TAIL = 16 };
    _Static_assert((int)TAIL < (int)REFERENCE_BYTES_MIN, "no payload is shorter");
    return a.len == b.len &&
           (a.ptr == b.ptr || (memcmp(a.ptr + a.len - TAIL, b.ptr + b.len - TAIL, TAIL) == 0 &&
                               memcmp(a.ptr, b.ptr, a.len) == 0));
}

static void home_add(struct homes *homes, const struct turn *turn, size_t i)
{
    bool const named = turn->events[i].id > 0 && turn->events[i].id == turn->events[0].id + i;
    if (named && homes->len < REFERENCE_HOMES_MAX)
        homes->at[homes->len++] = (uint32_t)i;
}

/* The place from 1 of the event with the payload of event @p i; 0: none. */
static uint32_t home_find(const struct homes *homes, const struct turn *turn, size_t i)
{
    for (size_t h = 0; h < homes->len; h++)
        if (record_references_is_same(turn->events[homes->at[h]].data, turn->events[i].data))
            return homes->at[h] + 1;
    return 0;
}

/* Fills @p to. False: there is no reference. */
static bool homes_fill(const struct turn *turn, uint32_t *to)
{
    size_t const last = turn->events_len - 1;
    struct homes homes = {.len = 0};
    bool any = false;
    if (event_is_terminal(turn->events[last].kind) && is_large(&turn->events[last]))
        home_add(&homes, turn, last);
    for (size_t i = 0; i < turn->events_len; i++) {
        bool const large = is_large(&turn->events[i]);
        to[i] = large && event_may_refer(turn->events[i].kind) ? home_find(&homes, turn, i) : 0;
        any |= to[i] != 0;
        if (large && to[i] == 0 && !(i == last && homes.len > 0 && homes.at[0] == last))
            home_add(&homes, turn, i);
    }
    return any;
}

thole_status references_find(const struct turn *turn, struct arena *arena, const uint32_t **ret)
{
    size_t large = 0;
    *ret = NULL;
    for (size_t i = 0; i < turn->events_len; i++)
        large += turn->events[i].data.len >= REFERENCE_BYTES_MIN;
    if (large < 2)
        return THOLE_OK;
    uint32_t *const to = arena_array(arena, turn->events_len, sizeof *to);
    if (to == NULL)
        return arena_status(arena);
    *ret = homes_fill(turn, to) ? to : NULL;
    return THOLE_OK;
}

size_t references_bytes(const struct turn *turn, const uint32_t *references)
{
    size_t bytes = 0;
    for (size_t i = 0; references != NULL && i < turn->events_len; i++)
        bytes += references[i] == 0 ? 0 : FRAME_BYTES_MAX + turn->events[i].data.len;
    return bytes;
}

/* ---- reading ---- */

static const struct event *home_of(const struct event *events, size_t len, const struct reference *reference)
{
    uint64_t const id = reference->event, at = len == 0 || id < events[0].id ? len : id - events[0].id;
    return at < len && events[at].id == id ? &events[at] : NULL;
}

/* An event with a reference has no payload of its own, so none is resolved before all are checked. */
static bool has_payload(const struct event *home)
{
    return home != NULL && (home->kind == EVENT_UNKNOWN ||
                            (event_has_payload(home->kind) && (home->data.len > 0 || home->data_erased)));
}

static void record_references_take_payload(struct event *event, const struct event *home)
{
    if (home->kind == EVENT_UNKNOWN)
        *event = (struct event){.kind = EVENT_UNKNOWN, .id = event->id, .ref = event->ref};
    event->data = home->data;
    event->data_erased = home->data_erased;
}

thole_status references_resolve(struct event *events, size_t events_len, const struct reference *references,
                                size_t references_len, size_t bytes, thole_error *reterr)
{
    uint64_t whole = bytes;
    for (size_t i = 0; i < references_len; i++) {
        const struct event *const event = &events[references[i].at];
        const struct event *const home = home_of(events, events_len, &references[i]);
        if (!has_payload(home))
            return thole_fail(reterr, THOLE_CORRUPT,
                              "event %llu, %s, has the payload of event %llu, which has none",
                              NUMBER(event->id), event_kind_name(event->kind), NUMBER(references[i].event));
        whole += FRAME_BYTES_MAX + home->data.len; /* at most RECORD_EVENTS_MAX times RECORD_BYTES_MAX */
    }
    if (whole > RECORD_BYTES_MAX)
        return thole_fail(reterr, THOLE_LIMIT, "record has more than %d bytes with all of its payloads",
                          RECORD_BYTES_MAX);
    for (size_t i = 0; i < references_len; i++)
        record_references_take_payload(&events[references[i].at],
                                       home_of(events, events_len, &references[i]));
    return THOLE_OK;
}
