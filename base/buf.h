/*
 * Owned, growing bytes with a stated maximum. Sticky failure: after an append that does not fit, the buffer
 * is "full", later appends do nothing, and buf_status() says THOLE_LIMIT (or THOLE_NOMEM) once at the end.
 */
#ifndef THOLE_BUF_H
#define THOLE_BUF_H
#include "thole/types.h"

struct buf {
    uint8_t *ptr; /* always NUL-terminated when not NULL; the NUL is not counted in len */
    size_t len, cap, max;
    thole_status status;
};

void buf_init(struct buf *buf, size_t max_bytes);
void buf_release(struct buf *buf);
/* Forgets the content and the failure, keeps the memory. */
void buf_clear(struct buf *buf);
void buf_append(struct buf *buf, const void *bytes, size_t len);
void buf_slice(struct buf *buf, thole_slice slice);
void buf_text(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *fmt, ...) THOLE_PRINTF(2, 3);
/* Room for @p len more bytes at the end, counted in len at once; NULL when it does not fit. */
uint8_t *buf_extend(struct buf *buf, size_t len);
thole_slice buf_bytes(const struct buf *buf);
/* "" when empty or failed before the first byte. */
const char *buf_cstr(const struct buf *buf);
THOLE_NODISCARD thole_status buf_status(const struct buf *buf);
#endif
