#include "dispensable.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct item {
    uint64_t sequence;
    uint8_t hash[FOLDED_HASH_BYTES];
};
struct epoch { /* one that was opened */
    struct item item;
    bool first;   /* of the log */
    bool counted; /* says how many records count before it */
};

struct dispensable {
    struct out_find_dispensable asked;
    thole_slice ns;
    uint32_t partition;
    struct item items[FOLDED_MAX];
    size_t len, controls;
    struct epoch *epochs;
    size_t epochs_len, epochs_cap, epochs_at;
    size_t deletions, looks;
    uint64_t deleted, looked;
    struct item list; /* an old one, which goes when a newer one follows; sequence 0: none */
    bool full;
    uint64_t sequences[FOLDED_MAX];
    uint8_t hashes[FOLDED_MAX * FOLDED_HASH_BYTES];
};

struct dispensable *dispensable_create(const struct out_find_dispensable *asked, thole_slice ns,
                                       uint32_t partition)
{
    struct dispensable *d = memory_new(sizeof *d);
    d->asked = *asked;
    d->ns = ns;
    d->partition = partition;
    d->looked = asked->looked;
    return d;
}

void dispensable_destroy(struct dispensable *d)
{
    if (d == NULL)
        return;
    free(d->epochs);
    free(d);
}

static struct item item_of(const struct dispensable *d, uint64_t sequence, thole_slice bytes)
{
    struct item item = {.sequence = sequence};
    struct record_hash const hash = record_hash_make(d->ns, d->partition, bytes);
    memcpy(item.hash, hash.bytes, sizeof item.hash);
    return item;
}

static void dispensable_add(struct dispensable *d, const struct item *item)
{
    assert(d->len < FOLDED_MAX);
    d->items[d->len++] = *item;
}

static void add_control(struct dispensable *d, const struct item *item)
{
    if (d->controls == DISPENSABLE_CONTROLS_MAX)
        return;
    d->controls++;
    dispensable_add(d, item);
}

/* ---- control records ---- */

static void dispensable_take_epoch(struct dispensable *d, const struct record *record,
                                   const struct item *item)
{
    d->epochs = memory_reserve(d->epochs, &d->epochs_cap, d->epochs_len + 1, sizeof *d->epochs);
    d->epochs[d->epochs_len++] =
        (struct epoch){.item = *item, .first = record->previous_epoch == 0, .counted = record->counted > 0};
}

/* The one before it is not the newest any more. False: this one is young, and so are all later ones. */
static bool dispensable_take_list(struct dispensable *d, const struct record *record, const struct item *item)
{
    bool const old = record->folded.time_ms < d->asked.before_ms;
    if (d->list.sequence > 0)
        add_control(d, &d->list);
    d->list = old ? *item : (struct item){.sequence = 0};
    return old;
}

bool dispensable_control(struct dispensable *d, uint64_t sequence, thole_slice bytes)
{
    struct arena arena;
    struct record record;
    bool more = true;
    if (sequence >= d->asked.below || d->controls == DISPENSABLE_CONTROLS_MAX)
        return false;
    arena_init(&arena, RECORD_BYTES_MAX * 2);
    if (record_decode(bytes, &arena, &record, NULL) == THOLE_OK) {
        struct item const item = item_of(d, sequence, bytes);
        if (record.kind == RECORD_EPOCH_OPENED)
            dispensable_take_epoch(d, &record, &item);
        else if (record.kind == RECORD_POSITION && record.folded.len > 0)
            more = dispensable_take_list(d, &record, &item);
        else if (record.kind == RECORD_POSITION)
            add_control(d, &item);
    }
    arena_release(&arena);
    return more;
}

bool dispensable_next_epoch(struct dispensable *d, uint64_t *ret_from, uint64_t *ret_until)
{
    while (d->controls < DISPENSABLE_CONTROLS_MAX && d->epochs_at + 1 < d->epochs_len) {
        const struct epoch *const epoch = &d->epochs[d->epochs_at++], *const next = epoch + 1;
        if (epoch->first || !next->counted)
            continue;
        *ret_from = epoch->item.sequence;
        *ret_until = next->item.sequence;
        return true;
    }
    return false;
}

void dispensable_epoch(struct dispensable *d)
{
    assert(d->epochs_at > 0);
    add_control(d, &d->epochs[d->epochs_at - 1].item);
}

/* ---- deletions ---- */

enum dispensable_age dispensable_age(const struct dispensable *d, thole_slice bytes)
{
    struct arena arena;
    struct record record;
    enum dispensable_age age = DISPENSABLE_AGE_UNREADABLE;
    arena_init(&arena, RECORD_BYTES_MAX * 2);
    if (record_decode(bytes, &arena, &record, NULL) == THOLE_OK && record.kind == RECORD_DELETED)
        age = record.deletion.time_ms < d->asked.before_ms ? DISPENSABLE_AGE_OLD : DISPENSABLE_AGE_YOUNG;
    arena_release(&arena);
    return age;
}

enum dispensable_verdict dispensable_deletion(struct dispensable *d, uint64_t sequence, thole_slice bytes,
                                              bool last)
{
    enum dispensable_age const age = dispensable_age(d, bytes);
    assert(sequence > d->looked);
    if (sequence >= d->asked.below || sequence > d->asked.published || age == DISPENSABLE_AGE_YOUNG)
        return DISPENSABLE_YOUNG;
    if (d->deletions == DISPENSABLE_DELETIONS_MAX || d->looks == DISPENSABLE_LOOKS_MAX) {
        d->full = true;
        return DISPENSABLE_FULL;
    }
    d->looks++;
    d->looked = sequence;
    if (age == DISPENSABLE_AGE_UNREADABLE || !last)
        return DISPENSABLE_PASSED;
    struct item const item = item_of(d, sequence, bytes);
    dispensable_add(d, &item);
    d->deletions++;
    d->deleted = sequence;
    return DISPENSABLE_LISTED;
}

/* ---- the list ---- */

static int by_sequence(const void *a, const void *b)
{
    const struct item *const x = a, *const y = b;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

struct in_dispensable dispensable_list(struct dispensable *d)
{
    if (d->len > 0)
        qsort(d->items, d->len, sizeof *d->items, by_sequence);
    for (size_t i = 0; i < d->len; i++) {
        d->sequences[i] = d->items[i].sequence;
        memcpy(d->hashes + i * FOLDED_HASH_BYTES, d->items[i].hash, FOLDED_HASH_BYTES);
    }
    return (struct in_dispensable){.sequences = d->sequences,
                                   .len = d->len,
                                   .hashes = {d->hashes, d->len * FOLDED_HASH_BYTES},
                                   .deletions = d->deletions,
                                   .deleted = d->deleted,
                                   .looked = d->looked,
                                   .more = d->full || d->controls == DISPENSABLE_CONTROLS_MAX};
}
