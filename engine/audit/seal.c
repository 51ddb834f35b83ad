#include "seal.h"
#include "audit_scan.h"
#include "listed.h"
#include "memory.h"
#include "sha256.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FORMAT = 1,
    HEAD_BYTES = 9 /* the format, and the first leaf's index */,
    ORIGIN_BYTES = 128,
    TEXT_BYTES = 256
};

struct seen { /* a checkpoint that a key has signed */
    uint64_t size, sequence;
    struct merkle_hash root;
};

struct list { /* a copy of a record that lists dispensable ones */
    struct record_hash hash;
    uint8_t *hashes;
    size_t len;
    bool counts; /* a leaf of it is published */
};

struct seal {
    struct seal_options options;
    char origin[ORIGIN_BYTES];
    uint8_t ns[THOLE_NAME_BYTES_MAX];
    uint8_t *leaves; /* LEAF_BYTES each */
    size_t len, cap;
    size_t published; /* of these, in messages that were taken */
    struct seen *seen;
    size_t seen_len, seen_cap;
    uint64_t is_signed, fits; /* the largest checkpoint that fits; how many */
    uint64_t foreign;
    struct list *lists;
    size_t lists_len, lists_cap;
    struct listed listed;
};

struct record_hash leaf_instance(thole_slice ns, thole_slice instance)
{
    static const char purpose[] = "thole.instance.v1"; /* with its NUL */
    static const uint8_t end = 0;
    struct record_hash hash = {{0}};
    if (instance.len > 0 && instance.len <= THOLE_ID_BYTES_MAX)
        sha256_of((const thole_slice[]){{(const uint8_t *)purpose, sizeof purpose}, ns, {&end, 1}, instance},
                  4, hash.bytes);
    return hash;
}

static bool is_unseen(const struct leaf *leaf)
{
    return !record_hash_known(&leaf->record) && !record_hash_known(&leaf->instance);
}

bool leaf_agrees(const struct leaf *a, const struct leaf *b, bool final)
{
    return (record_hash_equal(&a->record, &b->record) && record_hash_equal(&a->instance, &b->instance)) ||
           (!final && (is_unseen(a) || is_unseen(b)));
}

struct seal *seal_create(const struct seal_options *options)
{
    struct seal *seal = memory_new(sizeof *seal);
    assert(options->ns.len <= sizeof seal->ns && options->keys_len <= SEAL_KEYS_MAX);
    seal->options = *options;
    if (options->ns.len > 0)
        memcpy(seal->ns, options->ns.ptr, options->ns.len);
    seal->options.ns.ptr = seal->ns;
    (void)snprintf(seal->origin, sizeof seal->origin, "thole/%.*s/%u", THOLE_FMT(options->ns),
                   options->partition);
    return seal;
}

void seal_destroy(struct seal *seal)
{
    if (seal == NULL)
        return;
    free(seal->leaves);
    for (size_t i = 0; i < seal->lists_len; i++)
        free(seal->lists[i].hashes);
    free(seal->lists);
    listed_release(&seal->listed);
    free(seal->seen);
    free(seal);
}

static void seal_report(const struct seal *seal, uint64_t sequence, const char *format, ...)
    THOLE_PRINTF(3, 4);
static void seal_report(const struct seal *seal, uint64_t sequence, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    seal->options.found(seal->options.arg, sequence, text);
}

/* ---- leaves ---- */

uint64_t seal_leaves(const struct seal *seal)
{
    return seal->len;
}

uint64_t seal_published(const struct seal *seal)
{
    return seal->published;
}

void seal_note_published(struct seal *seal, uint64_t leaves)
{
    assert(leaves >= seal->published && leaves <= seal->len);
    seal->published = leaves;
}

static struct leaf leaf_of(const uint8_t bytes[LEAF_BYTES])
{
    struct leaf leaf;
    memcpy(leaf.record.bytes, bytes, RECORD_HASH_BYTES);
    memcpy(leaf.instance.bytes, bytes + RECORD_HASH_BYTES, RECORD_HASH_BYTES);
    return leaf;
}

void leaf_bytes(const struct leaf *leaf, uint8_t to[LEAF_BYTES])
{
    memcpy(to, leaf->record.bytes, RECORD_HASH_BYTES);
    memcpy(to + RECORD_HASH_BYTES, leaf->instance.bytes, RECORD_HASH_BYTES);
}

struct leaf seal_leaf(const struct seal *seal, uint64_t index)
{
    assert(index < seal->len);
    return leaf_of(seal->leaves + index * LEAF_BYTES);
}

static void add_bytes(struct seal *seal, const uint8_t *bytes, uint64_t n)
{
    seal->leaves = memory_reserve(seal->leaves, &seal->cap, seal->len + n, LEAF_BYTES);
    memcpy(seal->leaves + seal->len * LEAF_BYTES, bytes, n * LEAF_BYTES);
    seal->len += n;
}

void seal_add(struct seal *seal, const struct leaf *leaf)
{
    uint8_t bytes[LEAF_BYTES];
    leaf_bytes(leaf, bytes);
    add_bytes(seal, bytes, 1);
}

bool leaves_message_parse(thole_slice message, struct leaves_message *ret)
{
    if (message.len <= HEAD_BYTES || message.ptr[0] != FORMAT || (message.len - HEAD_BYTES) % LEAF_BYTES != 0)
        return false;
    *ret = (struct leaves_message){.n = (message.len - HEAD_BYTES) / LEAF_BYTES,
                                   .bytes = message.ptr + HEAD_BYTES};
    for (size_t i = 1; i < HEAD_BYTES; i++)
        ret->first = ret->first << 8 | message.ptr[i];
    return ret->first <= UINT64_MAX - ret->n;
}

struct leaf leaves_message_leaf(const struct leaves_message *message, size_t i)
{
    assert(i < message->n);
    return leaf_of(message->bytes + i * LEAF_BYTES);
}

/* Leaves that are known here and that another one has published. */
static bool seal_adopt(struct seal *seal, uint64_t index, const uint8_t *bytes)
{
    uint8_t *const own = seal->leaves + index * LEAF_BYTES;
    struct leaf const known = leaf_of(own), leaf = leaf_of(bytes);
    bool const agrees = leaf_agrees(&known, &leaf, index < seal->published);
    if (agrees)
        memcpy(own, bytes, LEAF_BYTES);
    return agrees;
}

bool audit_message_is_foreign(thole_slice message)
{
    return message.len > 0 && message.ptr[0] == '{';
}

static bool leave_out(struct seal *seal, thole_slice message)
{
    bool const foreign = audit_message_is_foreign(message);
    seal->foreign += foreign;
    return foreign;
}

/* Leaves may come twice, when who published them was not answered: then they are the same. */
void seal_take_leaves(struct seal *seal, uint64_t sequence, thole_slice message)
{
    struct leaves_message leaves;
    bool same = true;
    if (leave_out(seal, message))
        return;
    if (!leaves_message_parse(message, &leaves)) {
        seal_report(seal, sequence, "these are no leaves");
        return;
    }
    if (leaves.first > seal->published) {
        seal_report(seal, sequence, "leaves from record %llu on, but only %llu are known: some are missing",
                    (unsigned long long)leaves.first, (unsigned long long)seal->published);
        return;
    }
    uint64_t const known = seal->len - leaves.first, again = known < leaves.n ? known : leaves.n;
    for (uint64_t i = 0; i < again; i++)
        same &= seal_adopt(seal, leaves.first + i, leaves.bytes + i * LEAF_BYTES);
    if (!same)
        seal_report(seal, sequence, "leaves from record %llu on are not those that were published before",
                    (unsigned long long)leaves.first);
    if (again < leaves.n)
        add_bytes(seal, leaves.bytes + again * LEAF_BYTES, leaves.n - again);
    if (leaves.first + leaves.n > seal->published)
        seal->published = leaves.first + leaves.n;
}

static void seal_put_head(uint64_t first, struct buf *to)
{
    uint8_t head[HEAD_BYTES] = {FORMAT};
    for (int i = 1; i < HEAD_BYTES; i++)
        head[i] = (uint8_t)(first >> 8 * (HEAD_BYTES - 1 - i));
    buf_append(to, head, sizeof head);
}

void leaves_message_put(uint64_t first, const struct leaf *leaves, size_t n, struct buf *to)
{
    uint8_t bytes[LEAF_BYTES];
    assert(n > 0 && n <= LEAVES_MESSAGE_MAX);
    seal_put_head(first, to);
    for (size_t i = 0; i < n; i++) {
        leaf_bytes(&leaves[i], bytes);
        buf_append(to, bytes, sizeof bytes);
    }
}

void seal_leaves_message(const struct seal *seal, uint64_t first, uint64_t n, struct buf *to)
{
    assert(n > 0 && n <= LEAVES_MESSAGE_MAX && first + n <= seal->len);
    seal_put_head(first, to);
    buf_append(to, seal->leaves + first * LEAF_BYTES, n * LEAF_BYTES);
}

/* ---- lists ---- */

static const struct list *find_list(const struct seal *seal, const struct record_hash *hash)
{
    for (size_t i = 0; i < seal->lists_len; i++)
        if (record_hash_equal(&seal->lists[i].hash, hash))
            return &seal->lists[i];
    return NULL;
}

bool seal_has_list(const struct seal *seal, thole_slice record)
{
    struct record_hash const hash = record_hash_make(seal->options.ns, seal->options.partition, record);
    return find_list(seal, &hash) != NULL;
}

void seal_take_list(struct seal *seal, uint64_t sequence, thole_slice record)
{
    struct audit_scan scan;
    if (leave_out(seal, record))
        return;
    if (!audit_scan(record, &scan) || scan.listed.len == 0) {
        seal_report(seal, sequence, "this is no record that lists dispensable ones");
        return;
    }
    if (seal_has_list(seal, record))
        return;
    seal->lists = memory_reserve(seal->lists, &seal->lists_cap, seal->lists_len + 1, sizeof *seal->lists);
    seal->lists[seal->lists_len++] =
        (struct list){.hash = record_hash_make(seal->options.ns, seal->options.partition, record),
                      .hashes = memory_copy(scan.listed.ptr, scan.listed.len),
                      .len = scan.listed.len};
}

/* Anybody may publish lists; one counts when it is the record of a leaf. */
static void count_lists(struct seal *seal)
{
    struct listed leaves = {.len = 0};
    for (size_t i = 0; i < seal->len && seal->lists_len > 0; i++)
        listed_add(&leaves, (thole_slice){seal->leaves + i * LEAF_BYTES, FOLDED_HASH_BYTES});
    for (size_t i = 0; i < seal->lists_len; i++) {
        struct list *const list = &seal->lists[i];
        if (list->counts || !listed_has(&leaves, &list->hash))
            continue;
        list->counts = true;
        listed_add(&seal->listed, (thole_slice){list->hashes, list->len});
    }
    listed_release(&leaves);
}

bool seal_lists(struct seal *seal, const struct record_hash *record)
{
    return listed_has(&seal->listed, record);
}

/* ---- checkpoints ---- */

/* By any of the keys; a wrong signature of one of them is none. */
static thole_status seal_verify(const struct seal *seal, thole_slice message, thole_slice *ret_text,
                                thole_error *reterr)
{
    thole_status status = THOLE_NOT_FOUND;
    for (size_t i = 0; i < seal->options.keys_len && status == THOLE_NOT_FOUND; i++)
        status = note_verify(message, &seal->options.keys[i], ret_text, reterr);
    return status;
}

void seal_take_checkpoint(struct seal *seal, uint64_t sequence, thole_slice message)
{
    thole_error err = {.status = THOLE_OK};
    struct checkpoint checkpoint;
    thole_slice text;
    if (leave_out(seal, message))
        return;
    thole_status status = seal_verify(seal, message, &text, &err);
    if (status == THOLE_NOT_FOUND) /* of a key that was not given */
        return;
    if (status == THOLE_OK)
        status = checkpoint_parse(text, &checkpoint, &err);
    if (status != THOLE_OK) {
        seal_report(seal, sequence, "a checkpoint: %s", err.text);
        return;
    }
    if (!thole_slice_equal(checkpoint.origin, thole_slice_from(seal->origin))) {
        seal_report(seal, sequence, "a checkpoint of another log, %.*s",
                    checkpoint.origin.len > 100 ? 100 : (int)checkpoint.origin.len,
                    (const char *)checkpoint.origin.ptr);
        return;
    }
    seal->seen = memory_reserve(seal->seen, &seal->seen_cap, seal->seen_len + 1, sizeof *seal->seen);
    seal->seen[seal->seen_len++] = (struct seen){checkpoint.size, sequence, checkpoint.root};
}

static int by_size(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    return x->size != y->size ? (x->size > y->size) - (x->size < y->size)
                              : (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static void add_leaf(const struct seal *seal, struct merkle_tree *tree)
{
    struct merkle_hash const leaf =
        merkle_leaf((thole_slice){seal->leaves + tree->size * LEAF_BYTES, LEAF_BYTES});
    merkle_add(tree, &leaf);
}

/* Trees over the same leaves continue each other, so that two checkpoints that fit are consistent. */
void seal_end(struct seal *seal)
{
    struct merkle_tree tree = {.size = 0};
    seal->is_signed = seal->fits = 0;
    count_lists(seal);
    if (seal->seen_len > 0)
        qsort(seal->seen, seal->seen_len, sizeof *seal->seen, by_size);
    for (size_t i = 0; i < seal->seen_len; i++) {
        const struct seen *seen = &seal->seen[i];
        if (seen->size > seal->len) {
            seal_report(seal, seen->sequence, "a checkpoint of %llu records, but only %llu leaves are there",
                        (unsigned long long)seen->size, (unsigned long long)seal->len);
            continue;
        }
        while (tree.size < seen->size)
            add_leaf(seal, &tree);
        struct merkle_hash const root = merkle_root(&tree);
        if (!merkle_equal(&root, &seen->root)) {
            seal_report(seal, seen->sequence, "the checkpoint of %llu records is not that of the leaves",
                        (unsigned long long)seen->size);
            continue;
        }
        seal->is_signed = seen->size;
        seal->fits++;
    }
}

uint64_t seal_signed(const struct seal *seal)
{
    return seal->is_signed;
}

uint64_t seal_checkpoints(const struct seal *seal)
{
    return seal->fits;
}

uint64_t seal_foreign(const struct seal *seal)
{
    return seal->foreign;
}

thole_status seal_checkpoint_message(const struct seal *seal, const struct log_place *place,
                                     const struct note_key *keys, size_t keys_len, struct buf *to,
                                     thole_error *reterr)
{
    struct merkle_tree tree = {.size = 0};
    while (tree.size < seal->len)
        add_leaf(seal, &tree);
    return checkpoint_sign(thole_slice_from(seal->origin), place, &tree, keys, keys_len, to, reterr);
}
