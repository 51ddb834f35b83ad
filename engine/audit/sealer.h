/*
 * Checkpoints of a log while it grows. The sealer takes the records that count, in order, and the messages
 * that are published about the log, and makes the next leaves and signed checkpoints (docs/audit.md). It
 * continues from the last checkpoint of its keys; it holds the tree's peaks and the leaves after that
 * checkpoint, and nothing older. Others may publish leaves too: the stream takes one message for each place,
 * and the sealer adopts the one that was taken. Pure.
 *
 *   sealer_take_checkpoint(), sealer_take_leaves()  take published messages: when the sealer is opened, and
 *                                                   when a message was refused since another one came first
 *   sealer_take()                takes the records after sealer_place()
 *   sealer_leaves_message()      gives the next message of leaves; sealer_published() when it is stored
 *   sealer_checkpoint_message()  gives the next checkpoint; sealer_signed() when it is stored
 *
 * The sealer checks less than `thole audit verify`, and nothing twice: the order of the records, that each
 * one names the one before it, and that published leaves are those of the records.
 */
#ifndef THOLE_SEALER_H
#define THOLE_SEALER_H
#include "log_place.h"
#include "seal.h"

struct sealer_options {
    thole_slice ns;
    uint32_t partition;
    const struct note_key *keys; /* borrowed; they sign */
    size_t keys_len;
};
struct sealer;
struct sealer *sealer_create(const struct sealer_options *options);
void sealer_destroy(struct sealer *sealer); /* NULL-safe */

/* Goes on from it, when it is of one of the keys, says its place, and has more records than the last one that
 * was taken. Only before records and leaves are given. */
void sealer_take_checkpoint(struct sealer *sealer, thole_slice message);
/* In order. THOLE_CORRUPT: they are not those that were published before, or not of the records that were
 * taken; some before them are missing. */
THOLE_NODISCARD thole_status sealer_take_leaves(struct sealer *sealer, thole_slice message,
                                                thole_error *reterr);

/* The last record that was taken; sequence 0: none. */
const struct log_place *sealer_place(const struct sealer *sealer);
uint64_t sealer_size(const struct sealer *sealer); /* records of the last checkpoint that is stored */
/* A record that counts. THOLE_CORRUPT: it does not follow; the text says why. */
THOLE_NODISCARD thole_status sealer_take(struct sealer *sealer, uint64_t sequence, thole_slice record,
                                         thole_error *reterr);
/* Records were missing before some that were taken, and no deletion or pruning was taken since. One must be
 * in the log: it is stored before the records are removed. */
bool sealer_lacks(const struct sealer *sealer);
bool sealer_accounts(thole_slice record); /* Whether a record after the last one is such a record. */
/* Whether a copy of the record is to be published before its leaf: it lists dispensable ones, and goes
 * itself. */
bool sealer_is_list(thole_slice record);
size_t sealer_held(const struct sealer *sealer); /* leaves after the last checkpoint */

/* Appends the next message of leaves. False: all that are known are published. */
bool sealer_leaves_message(const struct sealer *sealer, struct buf *to);
void sealer_published(struct sealer *sealer); /* to be called when that message is stored */
/* Appends a checkpoint over all records that were taken: their leaves are published. *ret_any: there is one,
 * since the last that is stored has less. */
THOLE_NODISCARD thole_status sealer_checkpoint_message(const struct sealer *sealer, struct buf *to,
                                                       bool *ret_any, thole_error *reterr);
void sealer_signed(struct sealer *sealer); /* to be called when it is stored */
#endif
