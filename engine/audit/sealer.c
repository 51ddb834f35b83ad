#include "sealer.h"
#include "audit_scan.h"
#include "memory.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER(n) ((unsigned long long)(n))

enum { ORIGIN_BYTES = 128 };

/* Which hashes the records of an epoch have: its writer writes them into all, or into none. */
enum chained { CHAINED_UNKNOWN, CHAINED_YES, CHAINED_NO };

struct sealer {
    struct sealer_options options;
    char origin[ORIGIN_BYTES];
    uint8_t ns[THOLE_NAME_BYTES_MAX];
    struct log_place place;  /* of the last record that was taken */
    struct merkle_tree tree; /* of the last checkpoint */
    struct leaf *leaves;     /* from index tree.size on */
    size_t len, cap;
    size_t published; /* so many of them are stored */
    size_t taken;     /* the records of so many of them were given, or are removed */
    enum chained chained;
    bool lacks;
};

struct sealer *sealer_create(const struct sealer_options *options)
{
    struct sealer *sealer = memory_new(sizeof *sealer);
    assert(options->ns.len <= sizeof sealer->ns && options->keys_len > 0 &&
           options->keys_len <= SEAL_KEYS_MAX);
    sealer->options = *options;
    memcpy(sealer->ns, options->ns.ptr, options->ns.len);
    sealer->options.ns.ptr = sealer->ns;
    (void)snprintf(sealer->origin, sizeof sealer->origin, "thole/%.*s/%u", THOLE_FMT(options->ns),
                   options->partition);
    return sealer;
}

void sealer_destroy(struct sealer *sealer)
{
    if (sealer == NULL)
        return;
    free(sealer->leaves);
    free(sealer);
}

const struct log_place *sealer_place(const struct sealer *sealer)
{
    return &sealer->place;
}

uint64_t sealer_size(const struct sealer *sealer)
{
    return sealer->tree.size;
}

size_t sealer_held(const struct sealer *sealer)
{
    return sealer->len;
}

/* ---- published messages ---- */

void sealer_take_checkpoint(struct sealer *sealer, thole_slice message)
{
    struct checkpoint checkpoint;
    struct log_place place;
    struct merkle_tree tree;
    thole_slice text;
    thole_status status = THOLE_NOT_FOUND;
    assert(sealer->len == 0);
    for (size_t i = 0; i < sealer->options.keys_len && status != THOLE_OK; i++)
        status = note_verify(message, &sealer->options.keys[i], &text, NULL);
    if (status != THOLE_OK || checkpoint_parse(text, &checkpoint, NULL) != THOLE_OK ||
        !thole_slice_equal(checkpoint.origin, thole_slice_from(sealer->origin)) ||
        checkpoint.size <= sealer->tree.size || !log_place_parse(&checkpoint, &place, &tree))
        return;
    sealer->place = place;
    sealer->tree = tree;
}

static void sealer_add(struct sealer *sealer, const struct leaf *leaf)
{
    sealer->leaves = memory_reserve(sealer->leaves, &sealer->cap, sealer->len + 1, sizeof *sealer->leaves);
    sealer->leaves[sealer->len++] = *leaf;
}

/* A leaf that is stored. */
static bool sealer_take_leaf(struct sealer *sealer, uint64_t index, const struct leaf *leaf)
{
    size_t const at = (size_t)(index - sealer->tree.size);
    if (at == sealer->len)
        sealer_add(sealer, leaf);
    struct leaf *const own = &sealer->leaves[at];
    bool const fits = leaf_agrees(own, leaf, at < sealer->published);
    *own = *leaf;
    return fits;
}

thole_status sealer_take_leaves(struct sealer *sealer, thole_slice message, thole_error *reterr)
{
    struct leaves_message leaves;
    if (audit_message_is_foreign(message))
        return THOLE_OK;
    if (!leaves_message_parse(message, &leaves))
        return thole_fail(reterr, THOLE_CORRUPT, "a message of the audit stream is no leaves");
    if (leaves.first > sealer->tree.size + sealer->published)
        return thole_fail(reterr, THOLE_CORRUPT,
                          "leaves from record %llu on are published, but not those before them",
                          NUMBER(leaves.first));
    for (size_t i = 0; i < leaves.n; i++) {
        struct leaf const leaf = leaves_message_leaf(&leaves, i);
        uint64_t const index = leaves.first + i;
        if (index < sealer->tree.size) /* a checkpoint of the key has it */
            continue;
        if (!sealer_take_leaf(sealer, index, &leaf))
            return thole_fail(reterr, THOLE_CORRUPT, "leaf %llu that is published is not that of the record",
                              NUMBER(index));
        size_t const behind = (size_t)(index - sealer->tree.size) + 1;
        if (sealer->published < behind)
            sealer->published = behind;
    }
    return THOLE_OK;
}

/* ---- records ---- */

/* How many records that count are not there before this one. */
static thole_status count_removed(const struct sealer *sealer, uint64_t sequence,
                                  const struct audit_scan *scan, uint64_t *ret, thole_error *reterr)
{
    const struct log_place *last = &sealer->place;
    bool const opens = scan->kind == RECORD_EPOCH_OPENED;
    uint64_t const index = sealer->tree.size + sealer->taken; /* of the next record */
    bool const skips = opens && scan->previous_epoch > last->epoch && scan->counted >= index;
    bool fits;
    if (last->sequence == 0)
        fits = opens && scan->previous_epoch == 0 && !record_hash_known(&scan->previous);
    else if (opens)
        fits = scan->epoch > last->epoch && (skips || scan->previous_epoch == last->epoch) &&
               (skips || scan->previous_n >= last->n);
    else
        fits =
            scan->epoch == last->epoch && scan->n > last->n && sequence - scan->n == last->sequence - last->n;
    if (!fits || last->sequence == 0)
        *ret = 0;
    else if (skips) /* nothing is left of whole epochs */
        *ret = scan->counted - index;
    else
        *ret = opens ? scan->previous_n - last->n : scan->n - last->n - 1;
    if (fits && *ret < sequence - last->sequence)
        return THOLE_OK;
    if (fits && last->sequence == 0)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_CORRUPT,
                      "record #%llu, number %llu of epoch %llu, does not follow number %llu of epoch %llu, "
                      "record #%llu",
                      NUMBER(sequence), NUMBER(scan->n), NUMBER(scan->epoch), NUMBER(last->n),
                      NUMBER(last->epoch), NUMBER(last->sequence));
}

static thole_status check_link(struct sealer *sealer, uint64_t sequence, const struct audit_scan *scan,
                               bool adjacent, thole_error *reterr)
{
    const struct log_place *last = &sealer->place;
    bool const names = record_hash_known(&scan->previous);
    enum chained const is = names ? CHAINED_YES : CHAINED_NO;
    bool const first = last->sequence == 0 || scan->kind == RECORD_EPOCH_OPENED;
    enum chained const before = sealer->chained;
    sealer->chained = last->sequence == 0 ? CHAINED_UNKNOWN : is;
    if (!first && before != CHAINED_UNKNOWN && before != is)
        return thole_fail(reterr, THOLE_CORRUPT, "record #%llu %s, unlike others of its epoch",
                          NUMBER(sequence),
                          names ? "names the one before it" : "does not name the one before it");
    if (names && adjacent && last->sequence > 0 && !record_hash_equal(&scan->previous, &last->last))
        return thole_fail(reterr, THOLE_CORRUPT, "record #%llu names another record before it than #%llu",
                          NUMBER(sequence), NUMBER(last->sequence));
    return THOLE_OK;
}

/* A leaf of the next record: one that is published already, or a new one. */
static bool sealer_take_next(struct sealer *sealer, const struct leaf *leaf)
{
    if (sealer->taken == sealer->len)
        sealer_add(sealer, leaf);
    return leaf_agrees(&sealer->leaves[sealer->taken++], leaf, false);
}

static bool sealer_removes(const struct audit_scan *scan)
{
    return scan->kind == RECORD_DELETED || scan->prunes || scan->listed.len > 0;
}

thole_status sealer_take(struct sealer *sealer, uint64_t sequence, thole_slice record, thole_error *reterr)
{
    struct audit_scan scan;
    uint64_t removed;
    assert(sequence > sealer->place.sequence);
    if (!audit_scan(record, &scan))
        return thole_fail(reterr, THOLE_CORRUPT, "record #%llu is no record", NUMBER(sequence));
    THOLE_TRY(count_removed(sealer, sequence, &scan, &removed, reterr));
    THOLE_TRY(check_link(sealer, sequence, &scan, removed == 0, reterr));
    for (uint64_t i = 0; i < removed; i++)
        (void)sealer_take_next(sealer, &(struct leaf){{{0}}, {{0}}});
    struct leaf const leaf = {record_hash_make(sealer->options.ns, sealer->options.partition, record),
                              leaf_instance(sealer->options.ns, scan.instance)};
    if (!sealer_take_next(sealer, &leaf))
        return thole_fail(reterr, THOLE_CORRUPT,
                          "record #%llu is not the one of which leaf %llu was published", NUMBER(sequence),
                          NUMBER(sealer->tree.size + sealer->taken - 1));
    sealer->lacks = (sealer->lacks || removed > 0) && !sealer_removes(&scan);
    sealer->place = (struct log_place){sequence, scan.epoch, scan.n, leaf.record};
    return THOLE_OK;
}

bool sealer_lacks(const struct sealer *sealer)
{
    return sealer->lacks;
}

bool sealer_accounts(thole_slice record)
{
    struct audit_scan scan;
    return audit_scan(record, &scan) && sealer_removes(&scan);
}

bool sealer_is_list(thole_slice record)
{
    struct audit_scan scan;
    return audit_scan(record, &scan) && scan.listed.len > 0;
}

/* ---- the next message ---- */

static size_t sealer_next_message(const struct sealer *sealer)
{
    size_t const left = sealer->len - sealer->published;
    return left < LEAVES_MESSAGE_MAX ? left : LEAVES_MESSAGE_MAX;
}

bool sealer_leaves_message(const struct sealer *sealer, struct buf *to)
{
    size_t const n = sealer_next_message(sealer);
    if (n > 0)
        leaves_message_put(sealer->tree.size + sealer->published, sealer->leaves + sealer->published, n, to);
    return n > 0;
}

void sealer_published(struct sealer *sealer)
{
    sealer->published += sealer_next_message(sealer);
}

static void sealer_grow(struct merkle_tree *tree, const struct leaf *leaves, size_t n)
{
    uint8_t bytes[LEAF_BYTES];
    for (size_t i = 0; i < n; i++) {
        leaf_bytes(&leaves[i], bytes);
        struct merkle_hash const hash = merkle_leaf((thole_slice){bytes, sizeof bytes});
        merkle_add(tree, &hash);
    }
}

thole_status sealer_checkpoint_message(const struct sealer *sealer, struct buf *to, bool *ret_any,
                                       thole_error *reterr)
{
    struct merkle_tree tree = sealer->tree;
    assert(sealer->taken <= sealer->published);
    *ret_any = sealer->taken > 0;
    if (!*ret_any)
        return THOLE_OK;
    sealer_grow(&tree, sealer->leaves, sealer->taken);
    return checkpoint_sign(thole_slice_from(sealer->origin), &sealer->place, &tree, sealer->options.keys,
                           sealer->options.keys_len, to, reterr);
}

void sealer_signed(struct sealer *sealer)
{
    sealer_grow(&sealer->tree, sealer->leaves, sealer->taken);
    sealer->len -= sealer->taken;
    sealer->published -= sealer->taken;
    memmove(sealer->leaves, sealer->leaves + sealer->taken, sealer->len * sizeof *sealer->leaves);
    sealer->taken = 0;
}
