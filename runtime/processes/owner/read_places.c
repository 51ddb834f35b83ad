#include "read_places.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1024 };

struct read_history {
    uint32_t p;
    uint64_t generation;
    size_t n, id_len;
    struct removing_place places[]; /* followed by the id */
};
struct read_places {
    struct read_history *slots[SLOTS];
};

static uint8_t *history_id(struct read_history *history)
{
    return (uint8_t *)(history->places + history->n);
}

static struct read_history **places_slot(struct read_places *places, thole_slice instance)
{
    return &places->slots[instance_id_hash(instance) % SLOTS];
}

struct read_places *read_places_create(void)
{
    return memory_new(sizeof(struct read_places));
}

void read_places_destroy(struct read_places *places)
{
    for (size_t i = 0; places != NULL && i < SLOTS; i++)
        free(places->slots[i]);
    free(places);
}

void read_places_note(struct read_places *places, uint32_t p, uint64_t generation, thole_slice instance,
                      const struct log_record *records, size_t n)
{
    struct read_history **const slot = places_slot(places, instance);
    free(*slot);
    *slot = NULL;
    if (n == 0 || n > REMOVING_KNOWN)
        return;
    struct read_history *const history =
        memory_new(sizeof *history + n * sizeof history->places[0] + instance.len);
    *history = (struct read_history){.p = p, .generation = generation, .n = n, .id_len = instance.len};
    for (size_t i = 0; i < n; i++)
        history->places[i] = (struct removing_place){records[i].execution, records[i].sequence};
    memcpy(history_id(history), instance.ptr, instance.len);
    *slot = history;
}

size_t read_places_take(struct read_places *places, uint32_t p, uint64_t generation, thole_slice instance,
                        struct removing_place ret[REMOVING_KNOWN])
{
    struct read_history **const slot = places_slot(places, instance);
    struct read_history *const history = *slot;
    if (history == NULL || history->p != p || history->generation != generation ||
        !thole_slice_equal((thole_slice){history_id(history), history->id_len}, instance))
        return 0;
    size_t const n = history->n;
    assert(n <= REMOVING_KNOWN);
    memcpy(ret, history->places, n * sizeof *ret);
    free(history);
    *slot = NULL;
    return n;
}
