/*
 * The published seal of a partition's log: a leaf for each record that counts, in order, and signed
 * checkpoints of the Merkle tree over them (docs/audit.md). The leaves stay when a deletion removes records,
 * so a reader still knows which record stood where. Pure: messages of the audit stream go in.
 */
#ifndef THOLE_SEAL_H
#define THOLE_SEAL_H
#include "log_place.h"

enum {
    LEAF_BYTES = 64,           /* the record's hash, then that of its instance's id */
    LEAVES_MESSAGE_MAX = 4096, /* leaves in one message */
    SEAL_KEYS_MAX = 16,
};
struct leaf {
    struct record_hash record;   /* none: it was removed before it was seen */
    struct record_hash instance; /* none: the record is of no instance */
};
struct record_hash leaf_instance(thole_slice ns, thole_slice instance);
void leaf_bytes(const struct leaf *leaf, uint8_t to[LEAF_BYTES]);
/* Whether two leaves may be of one record: they are the same, or one of them is of nobody who has seen the
 * record, which may have been removed. @p final: one of them is published, and so the leaf of that record. */
bool leaf_agrees(const struct leaf *a, const struct leaf *b, bool final);

struct leaves_message { /* borrowed from the message */
    uint64_t first;     /* index of its first leaf */
    size_t n;
    const uint8_t *bytes;
};
bool leaves_message_parse(thole_slice message, struct leaves_message *ret); /* false: it is none */
struct leaf leaves_message_leaf(const struct leaves_message *message, size_t i);
void leaves_message_put(uint64_t first, const struct leaf *leaves, size_t n, struct buf *to); /* appends */

struct seal_options {
    thole_slice ns;
    uint32_t partition;
    const struct note_key *keys; /* borrowed; of any of them a checkpoint may be */
    size_t keys_len;
    /* Called for each thing that is wrong; sequence: of the message in the audit stream. */
    void (*found)(void *arg, uint64_t sequence, const char *text);
    void *arg;
};
struct seal;
/*
 * Whether a message is a server's answer, JSON, which a client had stored in the audit stream by asking with
 * a reply subject (docs/operations.md, "Accounts"). Readers of the stream skip it, since it says nothing of a
 * history. No message of thole begins like it: leaves begin with their format, checkpoints with a name, lists
 * with a field of protobuf.
 */
bool audit_message_is_foreign(thole_slice message);
struct seal *seal_create(const struct seal_options *options);
void seal_destroy(struct seal *seal); /* NULL-safe */
void seal_take_leaves(struct seal *seal, uint64_t sequence, thole_slice message);
void seal_take_checkpoint(struct seal *seal, uint64_t sequence, thole_slice message);
/* A copy of a record that lists dispensable ones (Folded): such records go too, after their time. It counts
 * if a leaf of it is published. */
void seal_take_list(struct seal *seal, uint64_t sequence, thole_slice record);
bool seal_has_list(const struct seal *seal, thole_slice record); /* whether it was taken */
/* After seal_end(): whether the record was listed in one that counts. */
bool seal_lists(struct seal *seal, const struct record_hash *record);
/* Compares the checkpoints with the leaves, when no more messages exist. Messages that are published later
 * may be taken afterwards; then call this again. */
void seal_end(struct seal *seal);

uint64_t seal_leaves(const struct seal *seal);    /* number of leaves */
uint64_t seal_published(const struct seal *seal); /* of which messages were taken */
struct leaf seal_leaf(const struct seal *seal, uint64_t index);
void seal_note_published(struct seal *seal, uint64_t leaves); /* of a message that was made here */
/* Adds the leaf after the last one; no message has contained it yet. */
void seal_add(struct seal *seal, const struct leaf *leaf);
/* Records of the largest checkpoint that one of the keys has signed and that fits; 0: there is none. */
uint64_t seal_signed(const struct seal *seal);
uint64_t seal_checkpoints(const struct seal *seal); /* how many fit */
uint64_t seal_foreign(const struct seal *seal);     /* messages that were left out */

/* Appends a message of leaves first..first + n - 1. */
void seal_leaves_message(const struct seal *seal, uint64_t first, uint64_t n, struct buf *to);
/* Appends the signed checkpoint over all leaves; @p place: of the last one's record. */
THOLE_NODISCARD thole_status seal_checkpoint_message(const struct seal *seal, const struct log_place *place,
                                                     const struct note_key *keys, size_t keys_len,
                                                     struct buf *to, thole_error *reterr);
#endif
