#include "machine.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_ARENA_MAX = 16 * 1024, PENDING_ARENA_MAX = MESSAGE_BYTES_MAX + 4096 };

static struct slot **bucket(struct slots *slots, thole_slice id)
{
    return &slots->buckets[key_hash(id, 0, 0) % SLOT_BUCKETS];
}

void slots_init(struct slots *slots)
{
    *slots = (struct slots){.next_token = slots->next_token};
    slots->lru.lru_next = slots->lru.lru_prev = &slots->lru;
    slots->ended.lru_next = slots->ended.lru_prev = &slots->ended;
}

struct pending *pending_create(void)
{
    struct pending *pending = calloc(1, sizeof *pending);
    if (pending != NULL)
        arena_init(&pending->arena, PENDING_ARENA_MAX);
    return pending;
}

void pending_destroy(struct pending *pending)
{
    if (pending == NULL)
        return;
    arena_release(&pending->arena);
    free(pending);
}

static void slot_destroy(struct slots *slots, struct slot *slot)
{
    struct pending *pending;
    while ((pending = slot_take(slots, slot)) != NULL)
        pending_destroy(pending);
    queries_release(slots, slot);
    instance_destroy(slot->instance);
    early_destroy(slot->early);
    free(slot->waiting);
    arena_release(&slot->arena);
    free((void *)(uintptr_t)slot->id.ptr);
    free(slot);
}

/* Ended instances are cheap and many; they have a list of their own so that they do not push out live ones.
 */
static void lru_insert(struct slots *slots, struct slot *slot)
{
    bool const ended = slot->state == SLOT_ENDED || slot->state == SLOT_ABSENT;
    struct slot *sentinel = ended ? &slots->ended : &slots->lru;
    slot->lru_next = sentinel->lru_next;
    slot->lru_prev = sentinel;
    slot->lru_next->lru_prev = slot;
    sentinel->lru_next = slot;
    slot->in_ended = ended;
    *(ended ? &slots->ended_len : &slots->len) += 1;
}

static void lru_remove(struct slots *slots, struct slot *slot)
{
    slot->lru_prev->lru_next = slot->lru_next;
    slot->lru_next->lru_prev = slot->lru_prev;
    *(slot->in_ended ? &slots->ended_len : &slots->len) -= 1;
}

static void unlink_slot(struct slots *slots, struct slot *slot)
{
    struct slot **at = bucket(slots, slot->id);
    while (*at != slot)
        at = &(*at)->hash_next;
    *at = slot->hash_next;
    lru_remove(slots, slot);
}

static void release_list(struct slots *slots, struct slot *sentinel)
{
    for (struct slot *slot = sentinel->lru_next, *next; slot != NULL && slot != sentinel; slot = next) {
        next = slot->lru_next;
        slot_destroy(slots, slot);
    }
}

void slots_release(struct slots *slots)
{
    release_list(slots, &slots->lru);
    release_list(slots, &slots->ended);
    slots_init(slots);
}

struct slot *slots_find(struct slots *slots, thole_slice id)
{
    struct slot *slot = *bucket(slots, id);
    while (slot != NULL && !thole_slice_equal(slot->id, id))
        slot = slot->hash_next;
    return slot;
}

struct slot *slots_find_token(struct slots *slots, uint64_t token, thole_slice id)
{
    struct slot *slot = slots_find(slots, id);
    return slot != NULL && slot->token == token && slot->state == SLOT_LOADING ? slot : NULL;
}

struct slot *slots_add(struct slots *slots, thole_slice id)
{
    assert(id.len > 0);
    struct slot *slot = calloc(1, sizeof *slot);
    uint8_t *copy = malloc(id.len);
    if (slot == NULL || copy == NULL) {
        free(slot);
        free(copy);
        return NULL;
    }
    memcpy(copy, id.ptr, id.len);
    slot->id = (thole_slice){copy, id.len};
    slot->token = ++slots->next_token;
    slot->execution = 1;
    arena_init(&slot->arena, SLOT_ARENA_MAX);
    struct slot **at = bucket(slots, slot->id);
    slot->hash_next = *at;
    *at = slot;
    lru_insert(slots, slot);
    return slot;
}

void slots_touch(struct slots *slots, struct slot *slot)
{
    lru_remove(slots, slot);
    lru_insert(slots, slot);
}

void slots_ready(struct slots *slots, struct slot *slot)
{
    if (slot->ready)
        return;
    slot->ready = true;
    slot->ready_next = NULL;
    if (slots->ready_last != NULL)
        slots->ready_last->ready_next = slot;
    else
        slots->ready_first = slot;
    slots->ready_last = slot;
}

struct slot *slots_take_ready(struct slots *slots)
{
    struct slot *slot = slots->ready_first;
    if (slot == NULL)
        return NULL;
    slots->ready_first = slot->ready_next;
    if (slots->ready_first == NULL)
        slots->ready_last = NULL;
    slot->ready = false;
    return slot;
}

/* Only what is at rest may go: what it holds can be read back from committed history. */
static bool at_rest(const struct slot *slot)
{
    return slot->state != SLOT_LOADING && slot->state != SLOT_CONTINUED && slot->in_flight == 0 &&
           slot->refusals == 0 && slot->first == NULL && slot->questions == NULL && !slot->ready;
}

static void evict(struct slots *slots, struct slot *sentinel, const size_t *len, size_t keep)
{
    for (struct slot *slot = sentinel->lru_prev; *len > keep && slot != sentinel;) {
        struct slot *older = slot->lru_prev;
        if (at_rest(slot)) {
            unlink_slot(slots, slot);
            slot_destroy(slots, slot);
        }
        slot = older;
    }
}

void slots_evict(struct slots *slots, size_t keep)
{
    evict(slots, &slots->lru, &slots->len, keep);
    evict(slots, &slots->ended, &slots->ended_len, ENDED_MAX);
}

static void grow_old(struct slot *sentinel)
{
    for (struct slot *slot = sentinel->lru_next; slot != sentinel; slot = slot->lru_next) {
        slot->old_execution = slot->execution;
        slot->old_events = slot->events;
    }
}

void slots_grow_old(struct slots *slots)
{
    grow_old(&slots->lru);
    grow_old(&slots->ended);
}

void slot_push(struct slots *slots, struct slot *slot, struct pending *pending)
{
    pending->next = NULL;
    if (slot->last != NULL)
        slot->last->next = pending;
    else
        slot->first = pending;
    slot->last = pending;
    slots->pending_len++;
}

void slot_give_back(struct slots *slots, struct slot *slot, struct pending *pending)
{
    pending->next = slot->first;
    slot->first = pending;
    if (slot->last == NULL)
        slot->last = pending;
    slots->pending_len++;
}

struct pending *slot_take(struct slots *slots, struct slot *slot)
{
    struct pending *pending = slot->first;
    if (pending == NULL)
        return NULL;
    slot->first = pending->next;
    if (slot->first == NULL)
        slot->last = NULL;
    slots->pending_len--;
    return pending;
}

void slot_remember(struct slot *slot, thole_slice from, thole_slice *to)
{
    if (thole_slice_equal(from, *to))
        return;
    if (arena_dup(&slot->arena, from, to) != THOLE_OK)
        *to = (thole_slice){0};
}

void slot_renew(struct slot *slot)
{
    struct slot const old = *slot;
    assert(old.in_flight == 0 && old.refusals == 0 && !old.counted);
    *slot = (struct slot){.hash_next = old.hash_next,
                          .ready_next = old.ready_next,
                          .lru_prev = old.lru_prev,
                          .lru_next = old.lru_next,
                          .id = old.id,
                          .token = old.token,
                          .ready = old.ready,
                          .in_ended = old.in_ended,
                          .waiting = old.waiting,
                          .waiting_cap = old.waiting_cap,
                          .first = old.first,
                          .last = old.last,
                          .questions = old.questions};
    arena_init(&slot->arena, SLOT_ARENA_MAX);
}

void slot_block(struct slot *slot, enum blocked_kind kind, thole_slice text)
{
    text.len = text.len < DETAIL_BYTES_MAX ? text.len : DETAIL_BYTES_MAX;
    slot->blocked = kind;
    slot_remember(slot, text, &slot->blocked_text);
}

void slot_note(struct slot *slot, const struct event *event)
{
    slot->events = event->id;
    if (event->kind == EVENT_STARTED) {
        slot_remember(slot, event->name, &slot->orchestration);
        slot_remember(slot, event->request_id, &slot->request_id);
        slot_remember(slot, event->parent.instance, &slot->parent.instance);
        slot->parent.execution = event->parent.execution;
        slot->parent.event = event->parent.event;
        slot->version = event->version;
        slot->gone = event->before;
    } else if (event->kind == EVENT_VERSION_CHOSEN) {
        slot->version = event->version;
    }
}

static bool stop_waiting(struct slot *slot, uint64_t activity)
{
    for (size_t i = 0; i < slot->waiting_len; i++)
        if (slot->waiting[i] == activity) {
            slot->waiting[i] = slot->waiting[--slot->waiting_len];
            return true;
        }
    return false;
}

static bool start_waiting(struct slot *slot, uint64_t activity)
{
    uint64_t *place =
        row_add((void **)&slot->waiting, &slot->waiting_len, &slot->waiting_cap, sizeof *slot->waiting);
    if (place != NULL)
        *place = activity;
    return place != NULL;
}

int slot_note_tries(struct slot *slot, const struct event *event, bool *ret_nomem)
{
    switch (event->kind) {
    case EVENT_STARTED: slot->waiting_len = 0; return 0;
    case EVENT_ACTIVITY_SCHEDULED: return 1;
    case EVENT_ACTIVITY_TRY_STARTED: (void)stop_waiting(slot, event->ref); return 1;
    case EVENT_ACTIVITY_QUARANTINED:
    case EVENT_ACTIVITY_TRY_FAILED: *ret_nomem |= !start_waiting(slot, event->ref); return -1;
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_ACTIVITY_FAILED:
    case EVENT_ACTIVITY_CANCELLED: return stop_waiting(slot, event->ref) ? 0 : -1;
    default: break;
    }
    return 0;
}
