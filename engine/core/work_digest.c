#include "work_digest.h"
#include "nonce.h"
#include "sha256.h"
#include <assert.h>
#include <string.h>

enum { LENGTH_BYTES = 8, PARTS = 4 };

/* The part's length in 8 bytes, the lowest first, so that no two messages have the same bytes in all. */
static uint8_t *put_length(uint8_t *to, size_t len)
{
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        *to++ = (uint8_t)((uint64_t)len >> (8 * i));
    return to;
}

static uint8_t *put_part(uint8_t *to, thole_slice part)
{
    to = put_length(to, part.len);
    if (part.len > 0)
        memcpy(to, part.ptr, part.len);
    return to + part.len;
}

/* The first half of SHA-256 of the four parts, each preceded by its length. */
struct work_digest work_digest_make(thole_slice queue, thole_slice activity, thole_slice nonce,
                                    thole_slice input)
{
    uint8_t head[PARTS * LENGTH_BYTES + 2 * THOLE_NAME_BYTES_MAX + NONCE_TEXT_LEN], code[SHA256_BYTES];
    struct work_digest digest;
    assert(queue.len <= THOLE_NAME_BYTES_MAX && activity.len <= THOLE_NAME_BYTES_MAX);
    assert(nonce.len <= NONCE_TEXT_LEN);
    uint8_t *const end = put_length(put_part(put_part(put_part(head, queue), activity), nonce), input.len);
    sha256_of((const thole_slice[]){{head, (size_t)(end - head)}, input}, 2, code);
    memcpy(digest.bytes, code, sizeof digest.bytes);
    return digest;
}

bool work_digest_equal(const struct work_digest *a, const struct work_digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

thole_slice work_digest_slice(const struct work_digest *digest)
{
    return (thole_slice){digest->bytes, sizeof digest->bytes};
}
