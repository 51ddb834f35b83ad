/*
 * The digest of a work message: 16 bytes, which the engine writes into the activity's row and the worker's
 * claim compares with those of the message that it was given. So a user who may publish to a queue cannot
 * have another activity run, or with another input, under the claim of a row. The nonce (nonce.h) is part of
 * the digest: only engines and the workers that were given the activity have it, so only they can make a
 * message with the row's digest. Instance, execution, activity id and try are no part of it: they are the
 * row's key. Pure.
 */
#ifndef THOLE_WORK_DIGEST_H
#define THOLE_WORK_DIGEST_H
#include "thole/types.h"

enum { WORK_DIGEST_BYTES = 16 };
struct work_digest {
    uint8_t bytes[WORK_DIGEST_BYTES];
};
/* The digest is stored, so the function must never change. @p queue and @p activity are names, @p nonce is
 * NONCE_TEXT_LEN digits. */
struct work_digest work_digest_make(thole_slice queue, thole_slice activity, thole_slice nonce,
                                    thole_slice input);
bool work_digest_equal(const struct work_digest *a, const struct work_digest *b);
/* The bytes of @p digest, borrowed. */
thole_slice work_digest_slice(const struct work_digest *digest);
#endif
