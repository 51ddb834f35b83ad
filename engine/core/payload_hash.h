/*
 * The salted hashes that stand for payloads in the hash of a record (docs/audit.md): a payload can be erased,
 * and the record keeps its hash. A salt is 16 bytes that cannot be guessed, beside
 * the payload and erased with it: so what was in a short payload cannot be found by trying. The hash is
 * stored, so the function must never change. Pure.
 */
#ifndef THOLE_PAYLOAD_HASH_H
#define THOLE_PAYLOAD_HASH_H
#include "record_hash.h"
#include "sha256.h"

enum {
    SALT_BYTES = 16,
    SALT_KEY_BYTES = 32,
    PAYLOADS_MAX = 8, /* of an event */
};

/* SHA-256 of the salt and the payload. */
struct record_hash payload_hash_make(thole_slice salt, thole_slice payload);

/* An event's note about one of its payloads: the message Payload. */
struct payload_note {
    uint32_t field;     /* number in the event's body */
    thole_slice salt;   /* SALT_BYTES, or */
    thole_slice erased; /* RECORD_HASH_BYTES: the payload's hash, of which salt and bytes are gone */
};
/* False: it is none of these, or has anything else that its hash would not cover. Borrows. */
bool payload_note_read(thole_slice message, struct payload_note *ret);

/*
 * The salts of what a partition writes: from a random key that is never stored, and the record's place. The
 * key is made where an engine starts, so that writing the same records with the same key gives the same
 * bytes.
 */
struct salt_key {
    uint8_t bytes[SALT_KEY_BYTES];
};
struct salt_source {
    const struct salt_key *key; /* NULL: no salts */
    uint32_t partition;
};
struct record_salts {
    const struct salt_source *source;
    uint64_t epoch, n;
    uint32_t used;
    uint8_t made[SHA256_BYTES]; /* two of them */
};
/* Those of one record: borrowed until the next call. */
thole_slice record_salts_next(struct record_salts *salts, uint8_t to[SALT_BYTES]);
#endif
