#include "instances_state.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_ARENA_MAX = 16 * 1024, PENDING_ARENA_MAX = MESSAGE_BYTES_MAX + 4096 };

static struct entry **bucket(struct entries *entries, thole_slice id)
{
    return &entries->buckets[key_hash(id, 0, 0) % ENTRY_BUCKETS];
}

void entries_init(struct entries *entries)
{
    *entries = (struct entries){.next_token = entries->next_token};
    entries->lru.lru_next = entries->lru.lru_prev = &entries->lru;
    entries->ended.lru_next = entries->ended.lru_prev = &entries->ended;
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

void entry_drop_questions(struct entries *entries, struct entry *entry)
{
    for (struct question *next; entry->questions != NULL; entry->questions = next) {
        next = entry->questions->next;
        arena_release(&entry->questions->arena);
        free(entry->questions);
        assert(entries->questions_len > 0);
        entries->questions_len--;
    }
}

static void entry_destroy(struct entries *entries, struct entry *entry)
{
    struct pending *pending;
    while ((pending = entry_take(entries, entry)) != NULL)
        pending_destroy(pending);
    entry_drop_questions(entries, entry);
    instance_destroy(entry->instance);
    early_destroy(entry->early);
    free(entry->waiting);
    arena_release(&entry->arena);
    free((void *)(uintptr_t)entry->id.ptr);
    free(entry);
}

/* Ended instances are cheap and many; they have a list of their own so that they do not push out live ones.
 */
static void lru_insert(struct entries *entries, struct entry *entry)
{
    bool const ended = entry->state == ENTRY_ENDED || entry->state == ENTRY_ABSENT;
    struct entry *sentinel = ended ? &entries->ended : &entries->lru;
    entry->lru_next = sentinel->lru_next;
    entry->lru_prev = sentinel;
    entry->lru_next->lru_prev = entry;
    sentinel->lru_next = entry;
    entry->in_ended = ended;
    *(ended ? &entries->ended_len : &entries->len) += 1;
}

static void lru_remove(struct entries *entries, struct entry *entry)
{
    entry->lru_prev->lru_next = entry->lru_next;
    entry->lru_next->lru_prev = entry->lru_prev;
    *(entry->in_ended ? &entries->ended_len : &entries->len) -= 1;
}

static void unlink_entry(struct entries *entries, struct entry *entry)
{
    struct entry **at = bucket(entries, entry->id);
    while (*at != entry)
        at = &(*at)->hash_next;
    *at = entry->hash_next;
    lru_remove(entries, entry);
}

static void release_list(struct entries *entries, struct entry *sentinel)
{
    for (struct entry *entry = sentinel->lru_next, *next; entry != NULL && entry != sentinel; entry = next) {
        next = entry->lru_next;
        entry_destroy(entries, entry);
    }
}

void entries_release(struct entries *entries)
{
    release_list(entries, &entries->lru);
    release_list(entries, &entries->ended);
    entries_init(entries);
}

struct entry *entries_find(struct entries *entries, thole_slice id)
{
    struct entry *entry = *bucket(entries, id);
    while (entry != NULL && !thole_slice_equal(entry->id, id))
        entry = entry->hash_next;
    return entry;
}

struct entry *entries_find_token(struct entries *entries, uint64_t token, thole_slice id)
{
    struct entry *entry = entries_find(entries, id);
    return entry != NULL && entry->token == token && entry->state == ENTRY_LOADING ? entry : NULL;
}

struct entry *entries_add(struct entries *entries, thole_slice id)
{
    assert(id.len > 0);
    struct entry *entry = calloc(1, sizeof *entry);
    uint8_t *copy = malloc(id.len);
    if (entry == NULL || copy == NULL) {
        free(entry);
        free(copy);
        return NULL;
    }
    memcpy(copy, id.ptr, id.len);
    entry->id = (thole_slice){copy, id.len};
    entry->token = ++entries->next_token;
    entry->execution = 1;
    arena_init(&entry->arena, ENTRY_ARENA_MAX);
    struct entry **at = bucket(entries, entry->id);
    entry->hash_next = *at;
    *at = entry;
    lru_insert(entries, entry);
    return entry;
}

void entries_touch(struct entries *entries, struct entry *entry)
{
    lru_remove(entries, entry);
    lru_insert(entries, entry);
}

void entries_ready(struct entries *entries, struct entry *entry)
{
    if (entry->ready)
        return;
    entry->ready = true;
    entry->ready_next = NULL;
    if (entries->ready_last != NULL)
        entries->ready_last->ready_next = entry;
    else
        entries->ready_first = entry;
    entries->ready_last = entry;
}

struct entry *entries_take_ready(struct entries *entries)
{
    struct entry *entry = entries->ready_first;
    if (entry == NULL)
        return NULL;
    entries->ready_first = entry->ready_next;
    if (entries->ready_first == NULL)
        entries->ready_last = NULL;
    entry->ready = false;
    return entry;
}

/* Only what is at rest may go: what it holds can be read back from committed history. */
static bool at_rest(const struct entry *entry)
{
    return entry->state != ENTRY_LOADING && entry->state != ENTRY_CONTINUED && entry->in_flight == 0 &&
           entry->refusals == 0 && entry->first == NULL && entry->questions == NULL && !entry->ready;
}

static void evict(struct entries *entries, struct entry *sentinel, const size_t *len, size_t keep)
{
    for (struct entry *entry = sentinel->lru_prev; *len > keep && entry != sentinel;) {
        struct entry *older = entry->lru_prev;
        if (at_rest(entry)) {
            unlink_entry(entries, entry);
            entry_destroy(entries, entry);
        }
        entry = older;
    }
}

void entries_evict(struct entries *entries, size_t keep)
{
    evict(entries, &entries->lru, &entries->len, keep);
    evict(entries, &entries->ended, &entries->ended_len, ENDED_MAX);
}

static void mark_counted(struct entry *sentinel)
{
    for (struct entry *entry = sentinel->lru_next; entry != sentinel; entry = entry->lru_next) {
        entry->counted_execution = entry->execution;
        entry->counted_events = entry->events;
    }
}

void entries_mark_counted(struct entries *entries)
{
    mark_counted(&entries->lru);
    mark_counted(&entries->ended);
}

void entry_push(struct entries *entries, struct entry *entry, struct pending *pending)
{
    pending->next = NULL;
    if (entry->last != NULL)
        entry->last->next = pending;
    else
        entry->first = pending;
    entry->last = pending;
    entries->pending_len++;
}

void entry_give_back(struct entries *entries, struct entry *entry, struct pending *pending)
{
    pending->next = entry->first;
    entry->first = pending;
    if (entry->last == NULL)
        entry->last = pending;
    entries->pending_len++;
}

struct pending *entry_take(struct entries *entries, struct entry *entry)
{
    struct pending *pending = entry->first;
    if (pending == NULL)
        return NULL;
    entry->first = pending->next;
    if (entry->first == NULL)
        entry->last = NULL;
    entries->pending_len--;
    return pending;
}

void entry_remember(struct entry *entry, thole_slice from, thole_slice *to)
{
    if (thole_slice_equal(from, *to))
        return;
    thole_status const status = arena_dup(&entry->arena, from, to);
    /* An instance that has lost its orchestration's name would seem to have no code. */
    if (status == THOLE_NOMEM)
        memory_give_up(1, from.len);
    if (status != THOLE_OK)
        *to = (thole_slice){0};
}

void entry_renew(struct entry *entry)
{
    struct entry const old = *entry;
    assert(old.in_flight == 0 && old.refusals == 0 && !old.counted);
    *entry = (struct entry){.hash_next = old.hash_next,
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
    arena_init(&entry->arena, ENTRY_ARENA_MAX);
}

void entry_block(struct entry *entry, enum blocked_kind kind, thole_slice text)
{
    text.len = text.len < DETAIL_BYTES_MAX ? text.len : DETAIL_BYTES_MAX;
    entry->blocked = kind;
    entry_remember(entry, text, &entry->blocked_text);
}

void entry_note(struct entry *entry, const struct event *event)
{
    entry->events = event->id;
    if (event->kind == EVENT_STARTED) {
        entry_remember(entry, event->name, &entry->orchestration);
        entry_remember(entry, event->request_id, &entry->request_id);
        entry_remember(entry, event->parent.instance, &entry->parent.instance);
        entry->parent.execution = event->parent.execution;
        entry->parent.event = event->parent.event;
        entry->version = event->version;
        entry->tombstone = event->before;
    } else if (event->kind == EVENT_VERSION_CHOSEN) {
        entry->version = event->version;
    }
}

static bool stop_waiting(struct entry *entry, uint64_t activity)
{
    for (size_t i = 0; i < entry->waiting_len; i++)
        if (entry->waiting[i] == activity) {
            entry->waiting[i] = entry->waiting[--entry->waiting_len];
            return true;
        }
    return false;
}

static bool start_waiting(struct entry *entry, uint64_t activity)
{
    uint64_t *place =
        row_add((void **)&entry->waiting, &entry->waiting_len, &entry->waiting_cap, sizeof *entry->waiting);
    if (place != NULL)
        *place = activity;
    return place != NULL;
}

int entry_note_tries(struct entry *entry, const struct event *event, bool *ret_nomem)
{
    switch (event->kind) {
    case EVENT_STARTED: entry->waiting_len = 0; return 0;
    case EVENT_ACTIVITY_SCHEDULED: return 1;
    case EVENT_ACTIVITY_TRY_STARTED: (void)stop_waiting(entry, event->ref); return 1;
    case EVENT_ACTIVITY_QUARANTINED:
    case EVENT_ACTIVITY_TRY_FAILED: *ret_nomem |= !start_waiting(entry, event->ref); return -1;
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_ACTIVITY_FAILED:
    case EVENT_ACTIVITY_CANCELLED: return stop_waiting(entry, event->ref) ? 0 : -1;
    default: break;
    }
    return 0;
}
