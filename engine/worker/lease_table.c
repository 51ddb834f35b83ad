#include "lease_table.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void list_append(struct lease_list *list, struct lease *lease)
{
    lease->prev = list->last;
    lease->next = NULL;
    if (list->last != NULL)
        list->last->next = lease;
    else
        list->first = lease;
    list->last = lease;
    list->len++;
}

static void list_prepend(struct lease_list *list, struct lease *lease)
{
    lease->prev = NULL;
    lease->next = list->first;
    if (list->first != NULL)
        list->first->prev = lease;
    else
        list->last = lease;
    list->first = lease;
    list->len++;
}

static void lease_table_list_remove(struct lease_list *list, struct lease *lease)
{
    assert(list->len > 0);
    if (lease->prev != NULL)
        lease->prev->next = lease->next;
    else
        list->first = lease->next;
    if (lease->next != NULL)
        lease->next->prev = lease->prev;
    else
        list->last = lease->prev;
    list->len--;
}

/* ---- states ---- */

enum payload { PAYLOAD_NONE, PAYLOAD_PARKED, PAYLOAD_CANCELLING, PAYLOAD_RESULT };

static enum payload payload_of(enum lease_state state)
{
    switch (state) {
    case LEASE_PARKED: return PAYLOAD_PARKED;
    case LEASE_CANCELLING: return PAYLOAD_CANCELLING;
    case LEASE_READY:
    case LEASE_COMPLETING:
    case LEASE_TO_LEAVE:
    case LEASE_LEAVING:
    case LEASE_RETRYING: return PAYLOAD_RESULT;
    default: return PAYLOAD_NONE;
    }
}

static void lease_table_begin_payload(struct lease *lease, enum payload payload)
{
    switch (payload) {
    case PAYLOAD_NONE: break;
    case PAYLOAD_PARKED: lease->parked = (struct lease_parked){.candidate = false}; break;
    case PAYLOAD_CANCELLING: lease->cancelling = (struct lease_cancelling){.grace_ms = 0}; break;
    case PAYLOAD_RESULT: lease->result = (struct lease_result){.later = false}; break;
    }
}

void lease_enter(struct lease_table *table, struct lease *lease, enum lease_state state)
{
    enum lease_state const from = lease->state;
    assert(lease_may_follow(from, state));
    lease_table_list_remove(&table->lists[from], lease);
    if (payload_of(state) != payload_of(from))
        lease_table_begin_payload(lease, payload_of(state));
    lease->state = state;
    if (state == LEASE_FREE || (state == LEASE_QUEUED && from == LEASE_CLAIMING))
        list_prepend(&table->lists[state], lease);
    else
        list_append(&table->lists[state], lease);
}

bool lease_has_row(const struct lease *lease)
{
    return lease->state != LEASE_CANCELLING || lease->cancelling.claim == CLAIM_HELD;
}

bool lease_is_lost(const struct lease *lease)
{
    return lease->state == LEASE_CANCELLING &&
           (lease->cancelling.claim == CLAIM_EXPIRED || lease->cancelling.claim == CLAIM_STOLEN);
}

bool lease_takes_part(const struct lease *lease)
{
    switch (lease->state) {
    case LEASE_STARTING:
    case LEASE_RUNNING:
    case LEASE_CONFIRMING:
    case LEASE_READY:
    case LEASE_TO_LEAVE:
    case LEASE_RETRYING: return true;
    case LEASE_CANCELLING: return lease_has_row(lease);
    default: return false;
    }
}

/* ---- the table ---- */

void lease_table_init(struct lease_table *table, size_t cap)
{
    size_t buckets = 16;
    assert(cap > 0 && cap < SIZE_MAX / 4);
    while (buckets < cap * 2)
        buckets *= 2;
    *table = (struct lease_table){.cap = cap, .mask = buckets - 1};
    table->leases = memory_array(cap, sizeof *table->leases);
    table->by_id = memory_array(buckets, sizeof(struct lease *));
    table->by_key = memory_array(buckets, sizeof(struct lease *));
    for (size_t i = 0; i < cap; i++)
        list_append(&table->lists[LEASE_FREE], &table->leases[i]);
}

void lease_table_release(struct lease_table *table)
{
    if (table == NULL)
        return;
    free(table->leases);
    free(table->by_id);
    free(table->by_key);
    *table = (struct lease_table){.cap = 0};
}

static uint64_t lease_table_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static struct lease **id_bucket(const struct lease_table *table, uint64_t id)
{
    return &table->by_id[lease_table_mix(1, id) & table->mask];
}

static struct lease **key_bucket(const struct lease_table *table, const struct worker_key *key)
{
    uint64_t hash = lease_table_mix(lease_table_mix(key->instance.len + 1, key->execution), key->activity_id);
    for (size_t i = 0; i < key->instance.len; i++)
        hash = lease_table_mix(hash, key->instance.ptr[i]);
    return &table->by_key[hash & table->mask];
}

static bool same_key(const struct worker_key *a, const struct worker_key *b)
{
    return a->activity_id == b->activity_id && a->execution == b->execution &&
           thole_slice_equal(a->instance, b->instance);
}

struct lease *lease_table_add(struct lease_table *table, uint64_t id, const struct worker_key *key)
{
    struct lease *const lease = table->lists[LEASE_FREE].first;
    assert(id != 0 && lease_table_find(table, id) == NULL);
    assert(key->instance.len > 0 && key->instance.len <= THOLE_ID_BYTES_MAX);
    if (lease == NULL)
        return NULL;
    lease_enter(table, lease, LEASE_NEW);
    table->len++;
    lease->id = id;
    lease->key = *key;
    lease->attempt = lease->deliveries = 0;
    lease->compared = lease->unwritten = false;
    lease->claimed_us = 0;
    lease->push = PUSH_NONE;
    lease->renewed_ms = lease->deadline_ms = UINT64_MAX;
    lease->cancel_kind_len = lease->reason_len = 0;
    memcpy(lease->instance_bytes, key->instance.ptr, key->instance.len);
    lease->key.instance.ptr = lease->instance_bytes;
    struct lease **const ids = id_bucket(table, id), **const keys = key_bucket(table, key);
    lease->id_next = *ids;
    *ids = lease;
    lease->key_next = *keys;
    *keys = lease;
    return lease;
}

void lease_table_remove(struct lease_table *table, struct lease *lease)
{
    struct lease **at = id_bucket(table, lease->id);
    assert(table->len > 0);
    while (*at != lease)
        at = &(*at)->id_next;
    *at = lease->id_next;
    at = key_bucket(table, &lease->key);
    while (*at != lease)
        at = &(*at)->key_next;
    *at = lease->key_next;
    lease->id = 0;
    lease_enter(table, lease, LEASE_FREE);
    table->len--;
}

struct lease *lease_table_find(const struct lease_table *table, uint64_t id)
{
    struct lease *lease = *id_bucket(table, id);
    while (lease != NULL && lease->id != id)
        lease = lease->id_next;
    return lease;
}

struct lease *lease_table_find_key(const struct lease_table *table, const struct worker_key *key)
{
    struct lease *lease = *key_bucket(table, key);
    while (lease != NULL && !same_key(&lease->key, key))
        lease = lease->key_next;
    return lease;
}

struct lease *lease_next_same(const struct lease *lease)
{
    struct lease *next = lease->key_next;
    while (next != NULL && !same_key(&next->key, &lease->key))
        next = next->key_next;
    return next;
}
