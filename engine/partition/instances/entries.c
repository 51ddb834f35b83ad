/* The entries of instances that are in memory: found by id, by use, by state. */
#include "entries.h"
#include "lanes.h"
#include "memory.h"
#include "partition_env.h"
#include "tables.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    PENDING_ARENA_MAX = MESSAGE_BYTES_MAX + 4096,
    LOOKS_MIN = 16, /* an eviction looks at so many that cannot go, and one for each entry added before it */
};

/* --- lists ----------------------------------------------------------------------------------------- */

static size_t entries_bucket(thole_slice id)
{
    return key_hash(id, 0, 0) % ENTRY_BUCKETS;
}

static struct entry_list *list_of(struct entries *entries, enum entry_state state)
{
    if (entry_is_over(state))
        return &entries->over;
    return state == ENTRY_EARLY ? &entries->early : &entries->lru;
}

static void list_insert(struct entry_list *list, struct entry *entry)
{
    entry->list = list;
    entry->lru_prev = NULL;
    entry->lru_next = list->first;
    if (list->first != NULL)
        list->first->lru_prev = entry;
    else
        list->last = entry;
    list->first = entry;
    list->len++;
    list->held += entry->held;
}

static void entries_list_remove(struct entry *entry)
{
    struct entry_list *const list = entry->list;
    assert(list->len > 0 && list->held >= entry->held);
    if (entry->lru_prev != NULL)
        entry->lru_prev->lru_next = entry->lru_next;
    else
        list->first = entry->lru_next;
    if (entry->lru_next != NULL)
        entry->lru_next->lru_prev = entry->lru_prev;
    else
        list->last = entry->lru_prev;
    list->len--;
    list->held -= entry->held;
}

void entries_touch(struct entries *entries, struct entry *entry)
{
    entries_list_remove(entry);
    list_insert(list_of(entries, entry->state), entry);
}

struct entry *entries_find(const struct entries *entries, thole_slice id)
{
    struct entry *entry = entries->buckets[entries_bucket(id)];
    while (entry != NULL && !thole_slice_equal(entry->id, id))
        entry = entry->hash_next;
    return entry;
}

struct entry *entries_find_token(const struct entries *entries, uint64_t token, thole_slice id)
{
    struct entry *entry = entries_find(entries, id);
    bool const asked = entry != NULL && (entry->state == ENTRY_LOADING || entry->state == ENTRY_RECALLED);
    return asked && entry->token == token ? entry : NULL;
}

struct entry *entries_add(struct entries *entries, thole_slice id)
{
    assert(id.len > 0 && id.len < SIZE_MAX / 2);
    struct entry *entry = memory_new(sizeof *entry + id.len);
    memcpy(entry->id_bytes, id.ptr, id.len);
    entry->id = (thole_slice){entry->id_bytes, id.len};
    entry->token = ++entries->next_token;
    entry->execution = 1;
    entries->added++;
    struct entry **at = &entries->buckets[entries_bucket(entry->id)];
    entry->hash_next = *at;
    *at = entry;
    list_insert(&entries->lru, entry);
    return entry;
}

static void set_held(struct entry *entry, size_t held)
{
    entry->list->held += held - entry->held;
    entry->held = held;
}

void entries_weigh(struct entry *entry)
{
    const struct instance *const instance = entry_instance(entry);
    if (entry->state == ENTRY_EARLY)
        set_held(entry, early_memory(entry->early));
    else
        set_held(entry, instance == NULL ? 0 : instance_parked_memory(instance));
}

void entries_ready(struct entries *entries, struct entry *entry)
{
    if (entry->ready || entry->delayed_ms != 0)
        return;
    entry->ready = true;
    lanes_add(&entries->lanes, entry);
}

struct entry *entries_take_ready(struct entries *entries, const struct lane_view *view)
{
    struct entry *const entry = lanes_take(&entries->lanes, view);
    if (entry != NULL)
        entry->ready = false;
    return entry;
}

/* --- states ---------------------------------------------------------------------------------------- */

static void end_payload(struct entry *entry)
{
    switch (entry_payload_of(entry->state)) {
    case PAYLOAD_EARLY: early_destroy(entry->early); break;
    case PAYLOAD_INSTANCE: instance_destroy(entry->running.instance); break;
    case PAYLOAD_LOADING:
    case PAYLOAD_NONE: break;
    }
}

static void entries_begin_payload(struct entry *entry, enum entry_payload payload)
{
    switch (payload) {
    case PAYLOAD_LOADING: entry->loading = (struct entry_loading){.retry = false}; break;
    case PAYLOAD_EARLY: entry->early = NULL; break;
    case PAYLOAD_INSTANCE:
    case PAYLOAD_NONE: entry->running = (struct entry_running){.instance = NULL}; break;
    }
}

void entry_become(struct entries *entries, struct entry *entry, enum entry_state state)
{
    enum entry_state const from = entry->state;
    assert(entry_may_follow(from, state) && "no such transition of an entry");
    if (entry_payload_of(state) != entry_payload_of(from)) {
        end_payload(entry);
        entries_begin_payload(entry, entry_payload_of(state));
        set_held(entry, 0);
    }
    if (from == ENTRY_RECALLED)
        entries->recalled_len--;
    if (state == ENTRY_RECALLED)
        entries->recalled_len++;
    entries->live_len += (size_t)(state == ENTRY_LIVE);
    entries->live_len -= (size_t)(from == ENTRY_LIVE);
    entry->state = state;
    if (list_of(entries, state) != entry->list && state != ENTRY_RECALLED)
        entries_touch(entries, entry);
    if (entry->reason != NULL && entry->limit == ENTRY_RUNS && state != ENTRY_BLOCKED) {
        free(entry->reason);
        entry->reason = NULL;
    }
}

struct instance *entry_instance(const struct entry *entry)
{
    return entry_payload_of(entry->state) == PAYLOAD_INSTANCE ? entry->running.instance : NULL;
}

bool entry_exists(const struct entry *entry)
{
    return entry->state != ENTRY_ABSENT && entry->state != ENTRY_EARLY;
}

void entry_block(struct entry *entry, enum entry_limit limit, enum blocked_kind kind, thole_slice text)
{
    assert(kind != BLOCKED_NOT);
    size_t const len = text.len < DETAIL_BYTES_MAX ? text.len : DETAIL_BYTES_MAX;
    struct entry_reason *reason = memory_new(sizeof *reason + len);
    reason->kind = kind;
    reason->len = (uint32_t)len;
    if (len > 0)
        memcpy(reason->text, text.ptr, len);
    free(entry->reason);
    entry->reason = reason;
    if (entry->limit < limit)
        entry->limit = limit;
}

thole_slice entry_blocked_text(const struct entry *entry)
{
    return entry->reason == NULL ? (thole_slice){0} : (thole_slice){entry->reason->text, entry->reason->len};
}

void entry_unblock(struct entry *entry)
{
    entry->limit = ENTRY_RUNS;
    entry->memory_retried = false;
}

/* --- the end --------------------------------------------------------------------------------------- */

static void entry_destroy(struct entries *entries, struct entry *entry)
{
    struct pending *pending;
    while ((pending = entry_take(entries, entry)) != NULL)
        pending_destroy(pending);
    entry_drop_questions(entries, entry);
    entry_drop_answers(entry);
    end_payload(entry);
    struct entry_texts texts = {entry->orchestration, entry->request_id, entry->parent.instance,
                                entry->trace};
    entry_texts_release(&texts);
    free(entry->reason);
    free(entry->waiting);
    free(entry);
}

static void release_list(struct entries *entries, struct entry_list *list)
{
    for (struct entry *entry = list->first, *next; entry != NULL; entry = next) {
        next = entry->lru_next;
        entry_destroy(entries, entry);
    }
}

void entries_release(struct entries *entries)
{
    release_list(entries, &entries->lru);
    release_list(entries, &entries->over);
    release_list(entries, &entries->early);
    *entries = (struct entries){.next_token = entries->next_token};
}

/* Only an entry at rest may be released: all that it holds can be read back from committed history. */
static bool at_rest(const struct entry *entry)
{
    return !entry_waits_for_history(entry->state) && entry->state != ENTRY_CONTINUED &&
           entry->in_flight == 0 && entry->refusals == 0 && entry->first == NULL &&
           entry->questions == NULL && !entry->ready;
}

static void evict_one(struct entries *entries, struct entry *entry)
{
    struct entry **at = &entries->buckets[entries_bucket(entry->id)];
    while (*at != entry)
        at = &(*at)->hash_next;
    *at = entry->hash_next;
    entries_list_remove(entry);
    entries->live_len -= (size_t)(entry->state == ENTRY_LIVE);
    entry_destroy(entries, entry);
}

/* Releases the last ones of the list. One that is in use, or holds nothing while memory is wanted, becomes
 * the first. At most @p looks of those, so that an eviction takes as long as what it releases. */
static void entries_evict_entry(struct entries *entries, struct entry_list *list, size_t keep,
                                size_t keep_bytes, size_t looks)
{
    while (list->last != NULL && (list->len > keep || list->held > keep_bytes)) {
        struct entry *const entry = list->last;
        if (at_rest(entry) && (list->len > keep || entry->held > 0)) {
            evict_one(entries, entry);
        } else if (looks-- > 0) {
            entries_list_remove(entry);
            list_insert(list, entry);
        } else {
            break;
        }
    }
}

/* Those that are too large even alone: else all others would go for each. Returns what the ones hold that
 * cannot go now. */
static size_t evict_large(struct entries *entries, const struct entry_list *list, size_t keep_bytes)
{
    size_t stays = 0;
    for (struct entry *entry = list->last, *older; entry != NULL; entry = older) {
        older = entry->lru_prev;
        if (entry->held <= keep_bytes)
            continue;
        if (at_rest(entry))
            evict_one(entries, entry);
        else
            stays += entry->held;
    }
    return stays;
}

static void evict_weighed(struct entries *entries, struct entry_list *list, size_t keep, size_t keep_bytes,
                          size_t looks)
{
    size_t const stays = list->held > keep_bytes ? evict_large(entries, list, keep_bytes) : 0;
    entries_evict_entry(entries, list, keep, keep_bytes > SIZE_MAX - stays ? SIZE_MAX : keep_bytes + stays,
                        looks);
}

void entries_evict(struct entries *entries, const struct entries_kept *kept)
{
    size_t const looks = LOOKS_MIN + entries->added;
    entries->added = 0;
    evict_weighed(entries, &entries->lru, kept->keep, kept->bytes, looks);
    evict_weighed(entries, &entries->early, kept->keep, kept->early_bytes, looks);
    entries_evict_entry(entries, &entries->over, ENDED_MAX, SIZE_MAX, looks);
}

void entries_evict_half(struct entries *entries)
{
    entries_evict_entry(entries, &entries->lru, entries->lru.len / 2, SIZE_MAX, entries->lru.len);
    entries_evict_entry(entries, &entries->early, entries->early.len / 2, SIZE_MAX, entries->early.len);
}

bool entries_drop(struct entries *entries, thole_slice id)
{
    struct entry *const entry = entries_find(entries, id);
    if (entry == NULL)
        return true;
    if (!at_rest(entry))
        return false;
    evict_one(entries, entry);
    return true;
}

void entries_forget_deleted(struct entries *entries, uint64_t upto)
{
    for (struct entry *entry = entries->over.last, *older; entry != NULL; entry = older) {
        older = entry->lru_prev;
        if (entry->state == ENTRY_ABSENT && entry->newest.sequence > 0 && entry->newest.sequence <= upto &&
            at_rest(entry))
            evict_one(entries, entry);
    }
}

static void mark_counted(const struct entry_list *list)
{
    for (struct entry *entry = list->first; entry != NULL; entry = entry->lru_next) {
        entry->counted.execution = entry->execution;
        entry->counted.events = entry->events;
    }
}

void entries_mark_counted(struct entries *entries)
{
    mark_counted(&entries->lru);
    mark_counted(&entries->over);
    mark_counted(&entries->early);
}

/* ---- waiting messages ---- */

struct pending *pending_create(void)
{
    struct pending *pending = memory_new(sizeof *pending);
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

const struct event_source *pending_source(const struct pending *pending)
{
    const struct event_source *const source = &pending->message.source;
    return actor_known(&source->actor) || activity_place_known(&source->place) ? source : NULL;
}

static size_t pending_bytes(const struct pending *pending)
{
    return sizeof *pending + pending->arena.held;
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
    entries->pending_bytes += pending_bytes(pending);
}

void entry_give_back(struct entries *entries, struct entry *entry, struct pending *pending)
{
    pending->next = entry->first;
    entry->first = pending;
    if (entry->last == NULL)
        entry->last = pending;
    entries->pending_len++;
    entries->pending_bytes += pending_bytes(pending);
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
    entries->pending_bytes -= pending_bytes(pending);
    return pending;
}

void entry_ask(struct entries *entries, struct entry *entry, struct question *question)
{
    struct question **at = &entry->questions;
    while (*at != NULL)
        at = &(*at)->next;
    *at = question;
    entries->questions_len++;
}

void entry_add_answer(struct entry *entry, uint64_t execution, bool taken, thole_slice request_id)
{
    struct answer *answer = memory_new(sizeof *answer + request_id.len);
    answer->next = entry->answers;
    answer->execution = execution;
    answer->taken = taken;
    answer->request_id = (thole_slice){answer->bytes, request_id.len};
    memcpy(answer->bytes, request_id.ptr, request_id.len);
    entry->answers = answer;
}

void entry_drop_answers(struct entry *entry)
{
    for (struct answer *next; entry->answers != NULL; entry->answers = next) {
        next = entry->answers->next;
        free(entry->answers);
    }
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

/* ---- the entry's history ---- */

static void text_free(thole_slice *text)
{
    free((void *)(uintptr_t)text->ptr);
    *text = (thole_slice){0};
}

/* Never fails: an instance without its orchestration's name would look like one without code. */
void entry_remember(thole_slice *text, thole_slice from)
{
    if (thole_slice_equal(from, *text))
        return;
    uint8_t *copy = from.len == 0 ? NULL : memory_new(from.len);
    if (from.len > 0)
        memcpy(copy, from.ptr, from.len);
    text_free(text);
    *text = (thole_slice){copy, from.len};
}

void entry_texts_release(struct entry_texts *texts)
{
    text_free(&texts->orchestration);
    text_free(&texts->request_id);
    text_free(&texts->trace.parent);
    text_free(&texts->trace.list);
    text_free(&texts->parent);
}

struct entry_texts entry_renew(struct entry *entry)
{
    struct entry_texts const texts = {entry->orchestration, entry->request_id, entry->parent.instance,
                                      entry->trace};
    assert(entry->state == ENTRY_ABSENT && entry->in_flight == 0 && entry->refusals == 0 &&
           !entry->counted.name);
    entry_unblock(entry);
    free(entry->reason);
    entry->reason = NULL;
    entry->execution = entry->turns = entry->events = entry->time_ms = entry->tombstone = 0;
    entry->orchestration = entry->request_id = (thole_slice){0};
    entry->parent = (struct origin){.execution = 0};
    entry->trace = (struct trace){.parent = {NULL, 0}};
    entry->version = 0;
    entry->counted = (struct entry_counted){.name = false};
    return texts;
}

void entry_note(struct entry *entry, const struct event *event)
{
    entry->events = event->id;
    if (event->kind == EVENT_STARTED) {
        entry_remember(&entry->orchestration, event->name);
        entry_remember(&entry->request_id, event->request_id);
        entry_remember(&entry->parent.instance, event->parent.instance);
        entry_remember(&entry->trace.parent, event->traceparent);
        entry_remember(&entry->trace.list, event->tracestate);
        entry->parent.execution = event->parent.execution;
        entry->parent.event = event->parent.event;
        entry->version = event->version;
        entry->tombstone = event->before;
    } else if (event->kind == EVENT_VERSION_CHOSEN) {
        entry->version = event->version;
    }
}

void entry_note_counted(struct entry *entry)
{
    entry->counted = (struct entry_counted){.name = entry->execution > 0 && !entry_is_over(entry->state),
                                            .version = entry->version,
                                            .stopped = entry->counted.stopped,
                                            .execution = entry->execution,
                                            .events = entry->events};
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

static void start_waiting(struct entry *entry, uint64_t activity)
{
    uint64_t *place =
        row_add((void **)&entry->waiting, &entry->waiting_len, &entry->waiting_cap, sizeof *entry->waiting);
    *place = activity;
}

int entry_note_tries(struct entry *entry, const struct event *event)
{
    switch (event->kind) {
    case EVENT_STARTED: entry->waiting_len = 0; return 0;
    case EVENT_ACTIVITY_SCHEDULED: return 1;
    case EVENT_ACTIVITY_TRY_STARTED: (void)stop_waiting(entry, event->ref); return 1;
    case EVENT_ACTIVITY_QUARANTINED:
    case EVENT_ACTIVITY_TRY_FAILED: start_waiting(entry, event->ref); return -1;
    case EVENT_ACTIVITY_COMPLETED:
    case EVENT_ACTIVITY_FAILED:
    case EVENT_ACTIVITY_CANCELLED: return stop_waiting(entry, event->ref) ? 0 : -1;
    default: break;
    }
    return 0;
}
