#include "cancel_proof.h"
#include "nonce.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TRY_BYTES = 12, PROOF_DIGITS = 16 };

struct tagged_hash cancel_about(uint32_t try_number, thole_slice kind, thole_slice reason)
{
    char text[TRY_BYTES + THOLE_NAME_BYTES_MAX + TAGGED_HASH_TEXT_LEN + 3];
    struct tagged_hash const why = tagged_hash_make("thole cancel reason 1", reason);
    assert(kind.len <= THOLE_NAME_BYTES_MAX);
    (void)snprintf(text, sizeof text, "%" PRIu32 " %.*s %s", try_number, THOLE_FMT(kind), why.text);
    return tagged_hash_make("thole cancel about 1", thole_slice_from(text));
}

/* The first 16 digits of the hash of the nonce and what is the same for all. */
uint64_t cancel_proof(thole_slice nonce, const struct tagged_hash *about)
{
    char text[NONCE_TEXT_LEN + TAGGED_HASH_TEXT_LEN + 1];
    uint64_t proof = 0;
    assert(nonce.len <= NONCE_TEXT_LEN);
    (void)snprintf(text, sizeof text, "%.*s%s", THOLE_FMT(nonce), about->text);
    struct tagged_hash const hash = tagged_hash_make("thole cancel proof 1", thole_slice_from(text));
    for (size_t i = 0; i < PROOF_DIGITS; i++) {
        char const c = hash.text[i];
        proof = proof << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return proof;
}
