#include "instance_requests.h"
#include "hash.h"
#include "instance_memory.h"
#include <assert.h>
#include <string.h>

enum { CELLS_MIN = 16, RING_MIN = 16 };

/* Starts, cancellations and terminations are not hashed: there is at most one of each. An event that came
 * with a start has the start's request id. */
uint64_t request_hash(enum event_kind kind, thole_slice request_id)
{
    if (request_id.len == 0 || (kind != EVENT_EVENT_RECEIVED && kind != EVENT_PAUSED &&
                                kind != EVENT_RESUMED && kind != EVENT_HISTORY_PRUNED))
        return 0;
    uint64_t const hash = hash_bytes((uint64_t)kind, request_id);
    return hash == 0 ? 1 : hash;
}

static bool instance_requests_find(const uint64_t *cells, size_t cap, uint64_t hash, size_t *ret_at)
{
    size_t at = hash & (cap - 1);
    while (cells[at] != 0 && cells[at] != hash)
        at = (at + 1) & (cap - 1);
    *ret_at = at;
    return cells[at] == hash;
}

bool requests_seen(const struct request_set *set, uint64_t hash)
{
    size_t at;
    return hash != 0 && set->cap > 0 && instance_requests_find(set->cells, set->cap, hash, &at);
}

static thole_status cells_grow(struct instance *in)
{
    struct request_set *set = &in->requests;
    size_t at, cap = set->cap == 0 ? CELLS_MIN : set->cap * 2;
    uint64_t *cells = arena_array(&in->arena, cap, sizeof *cells);
    if (cells == NULL)
        return instance_full(in);
    for (size_t i = 0; i < set->cap; i++)
        if (set->cells[i] != 0 && !instance_requests_find(cells, cap, set->cells[i], &at))
            cells[at] = set->cells[i];
    set->cells = cells;
    set->cap = cap;
    return THOLE_OK;
}

static thole_status ring_grow(struct instance *in)
{
    struct request_set *set = &in->requests;
    size_t cap = set->ring_cap == 0 ? RING_MIN : set->ring_cap * 2;
    if (cap > ORIGINS_CARRIED_MAX)
        cap = ORIGINS_CARRIED_MAX;
    uint64_t *ring = arena_array(&in->arena, cap, sizeof *ring);
    if (ring == NULL)
        return instance_full(in);
    if (set->ring_len > 0)
        memcpy(ring, set->ring, set->ring_len * sizeof *ring);
    set->ring = ring;
    set->ring_cap = cap;
    set->ring_next = set->ring_len;
    return THOLE_OK;
}

thole_status requests_add(struct instance *in, uint64_t hash)
{
    struct request_set *set = &in->requests;
    size_t at;
    if (hash == 0 || requests_seen(set, hash))
        return THOLE_OK;
    if (set->len >= set->cap / 2)
        THOLE_TRY(cells_grow(in));
    if (set->ring_len == set->ring_cap && set->ring_cap < ORIGINS_CARRIED_MAX)
        THOLE_TRY(ring_grow(in));
    (void)instance_requests_find(set->cells, set->cap, hash, &at);
    set->cells[at] = hash;
    set->len++;
    assert(set->len < set->cap && set->ring_cap > 0 && set->ring_next <= set->ring_cap);
    set->ring_next %= set->ring_cap;
    set->ring[set->ring_next++] = hash;
    if (set->ring_len < set->ring_cap)
        set->ring_len++;
    return THOLE_OK;
}

size_t requests_last(const struct request_set *set, uint64_t ret[ORIGINS_CARRIED_MAX])
{
    size_t const first = set->ring_len < ORIGINS_CARRIED_MAX ? 0 : set->ring_next % set->ring_cap;
    for (size_t i = 0; i < set->ring_len; i++)
        ret[i] = set->ring[(first + i) % set->ring_cap];
    return set->ring_len;
}
