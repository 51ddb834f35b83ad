/*
 * The ids that have a record in the log. A start of any other id needs no look-up: there is nothing to load.
 *
 * A wrong "new" would begin a second history under an id, so the set is used only when it is complete: all
 * ids that had a record when the list was read, after this epoch was opened, and all ids that this owner has
 * made a record for since. If another owner writes a record that counts, this epoch's appends are refused.
 * A deletion leaves its record; when that is gone as well the id stays in the set until the list is read
 * again.
 *
 * Ids are kept by a hash of 64 bits, 11 to 21 bytes each. A collision costs a look-up.
 */
#include "instances_state.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>

enum { SLOTS_MIN = 256, GONE_MIN = 4096 };

static bool known_ids_full(const struct known_ids *known, size_t len)
{
    return len > known->cap - known->cap / 4;
}

/* The slot of the hash, or the free slot for it. */
static uint64_t *slot_of(const struct known_ids *known, uint64_t hash)
{
    size_t at = hash & (known->cap - 1);
    assert(hash != 0 && known->len < known->cap);
    while (known->slots[at] != 0 && known->slots[at] != hash)
        at = (at + 1) & (known->cap - 1);
    return &known->slots[at];
}

static void known_ids_grow(struct known_ids *known, size_t len)
{
    struct known_ids const old = *known;
    while (known->cap == 0 || known_ids_full(known, len))
        known->cap = known->cap == 0 ? SLOTS_MIN : known->cap * 2;
    if (known->cap == old.cap)
        return;
    known->slots = memory_new(known->cap * sizeof *known->slots);
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i] != 0)
            *slot_of(known, old.slots[i]) = old.slots[i];
    free(old.slots);
}

static void known_ids_insert(struct known_ids *known, uint64_t hash)
{
    known_ids_grow(known, known->len + 1);
    uint64_t *slot = slot_of(known, hash);
    known->len += *slot == 0;
    *slot = hash;
}

static void known_ids_give_up(struct known_ids *known)
{
    known_ids_release(known);
    known->given_up = true;
}

void known_ids_release(struct known_ids *known)
{
    free(known->slots);
    *known = (struct known_ids){.slots = NULL};
}

void known_ids_add(struct instances *p, thole_slice id)
{
    struct known_ids *known = &p->known;
    if (known->given_up)
        return;
    known_ids_insert(known, instance_id_hash(id));
    if (known->len > p->env->options.known_max)
        known_ids_give_up(known);
}

void instances_forget_deleted(struct instances *p, uint64_t upto)
{
    entries_forget_deleted(&p->entries, upto);
}

/* Ids stay in the set until the next list, which is read when they may be half of all. */
bool instances_wants_ids(struct instances *p, size_t n)
{
    struct known_ids *known = &p->known;
    known->gone += n;
    size_t const most = known->given_up ? p->env->options.known_max : known->len;
    if (known->gone < GONE_MIN || known->gone < most / 2 || !(known->complete || known->given_up))
        return false;
    known_ids_release(known);
    return true;
}

bool known_ids_has(const struct instances *p, thole_slice id)
{
    const struct known_ids *known = &p->known;
    return !known->complete || *slot_of(known, instance_id_hash(id)) != 0;
}

void instances_ids(struct instances *p, const struct in_ids *in)
{
    struct known_ids *known = &p->known;
    if (known->given_up)
        return;
    known_ids_grow(known, 1); /* known_ids_has() needs slots, also when there are no ids */
    for (size_t i = 0; i < in->hashes_len; i++)
        known_ids_insert(known, in->hashes[i]);
    if (!in->all || known->len > p->env->options.known_max)
        known_ids_give_up(known);
    else
        known->complete = true;
}
