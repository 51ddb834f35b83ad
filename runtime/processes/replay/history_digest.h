/* The digest of an export: SHA-256 over the binary form of its histories, in the order of the file. */
#ifndef THOLE_HISTORY_DIGEST_H
#define THOLE_HISTORY_DIGEST_H
#include "buf.h"

enum { HISTORY_DIGEST_TEXT_LEN = 64 };

struct history_digest {
    void *context; /* of libcrypto */
};
void history_digest_init(struct history_digest *digest);
void history_digest_release(struct history_digest *digest); /* also when zeroed */
/* Starts over. */
void history_digest_clear(struct history_digest *digest);
/* @p to continues where @p from is. Both are initialized. */
void history_digest_copy(struct history_digest *to, const struct history_digest *from);
void history_digest_add(struct history_digest *digest, thole_slice bytes);
/* As lower-case hexadecimal digits; more may be added afterwards. */
void history_digest_text(const struct history_digest *digest, char ret[HISTORY_DIGEST_TEXT_LEN + 1]);

/* The lines of the binary form, which are digested in the other one, too. */
void history_line_head(struct buf *to, const char *ns, uint32_t partition, thole_slice instance);
void history_line_record(struct buf *to, uint64_t sequence, size_t len);
void history_line_end(struct buf *to, uint64_t records);
#endif
