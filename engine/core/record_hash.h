/*
 * The hash of a record of a partition's log, by which later records name it: SHA-256 over its bytes as they
 * are stored, or over its outline (record_outline.h), preceded by the namespace and the partition, so that a
 * record of another stream has another hash. The record says which of the two. docs/audit.md has the bytes
 * and examples. The hash is stored, so the function must never change. Pure.
 */
#ifndef THOLE_RECORD_HASH_H
#define THOLE_RECORD_HASH_H
#include "thole/types.h"

enum { RECORD_HASH_BYTES = 32 };
struct record_hash {
    uint8_t bytes[RECORD_HASH_BYTES]; /* all zero: none */
};
struct record_hash record_hash_make(thole_slice ns, uint32_t partition, thole_slice record);

/* A record of a stream, as another one names it. */
struct record_link {
    struct record_hash hash; /* none: there is none, or it is not known */
    uint64_t sequence;       /* 0: likewise */
};

/* From what a record says: empty, or RECORD_HASH_BYTES. */
struct record_hash record_hash_said(thole_slice bytes);
bool record_hash_known(const struct record_hash *hash); /* not none */
bool record_hash_equal(const struct record_hash *a, const struct record_hash *b);
/* The bytes of @p hash, borrowed; empty: none. */
thole_slice record_hash_slice(const struct record_hash *hash);
#endif
