/* Which records were listed as dispensable (Folded of history.proto), by the beginning of their hashes. Pure.
 */
#ifndef THOLE_LISTED_H
#define THOLE_LISTED_H
#include "event.h"
#include "record_hash.h"

struct listed_hash {
    uint8_t bytes[FOLDED_HASH_BYTES];
};
struct listed {
    struct listed_hash *hashes;
    size_t len, cap;
    bool sorted;
};
/* The hashes of a record's list: FOLDED_HASH_BYTES each. */
void listed_add(struct listed *listed, thole_slice hashes);
bool listed_has(struct listed *listed, const struct record_hash *hash);
void listed_release(struct listed *listed);
#endif
