/*
 * Where a log stood when a checkpoint of it was made: a line after the checkpoint's root, which is signed
 * with it. A program that has the key can continue from there without what was published before. Pure.
 */
#ifndef THOLE_LOG_PLACE_H
#define THOLE_LOG_PLACE_H
#include "merkle.h"
#include "note.h"
#include "record_hash.h"

struct log_place { /* of the last record in the checkpoint */
    uint64_t sequence, epoch, n;
    struct record_hash last; /* hash of that record */
};
enum { LOG_PLACE_BYTES_MAX = 4096 };
/* Appends the line: "thole.place.v1 SEQUENCE EPOCH N HASH PEAK…", those of the tree from the largest on. */
void log_place_text(const struct log_place *place, const struct merkle_tree *tree, struct buf *to);
/* Of a checkpoint; false: it has no such line, or one that is not of its size and root. */
bool log_place_parse(const struct checkpoint *checkpoint, struct log_place *ret,
                     struct merkle_tree *ret_tree);
/* Appends the checkpoint of that tree, with the line, signed with each key. */
THOLE_NODISCARD thole_status checkpoint_sign(thole_slice origin, const struct log_place *place,
                                             const struct merkle_tree *tree, const struct note_key *keys,
                                             size_t keys_len, struct buf *to, thole_error *reterr);
#endif
