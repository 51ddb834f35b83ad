/* Growing bytes with a maximum and a sticky failure. */
#include "buf.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUF_CAP_MIN = 64 };

void buf_init(struct buf *buf, size_t max_bytes)
{
    *buf = (struct buf){.max = max_bytes};
}

void buf_release(struct buf *buf)
{
    if (buf == NULL)
        return;
    free(buf->ptr);
    *buf = (struct buf){.max = buf->max};
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->status = THOLE_OK;
    if (buf->ptr != NULL)
        buf->ptr[0] = 0;
}

/* Makes room for len more bytes and a NUL. */
static bool buf_reserve(struct buf *buf, size_t len)
{
    assert(buf->len <= buf->max);
    if (buf->status != THOLE_OK)
        return false;
    if (len > buf->max - buf->len || buf->len + len == SIZE_MAX) {
        buf->status = THOLE_LIMIT;
        return false;
    }
    size_t const need = buf->len + len + 1;
    if (need <= buf->cap)
        return true;
    size_t cap = buf->cap < BUF_CAP_MIN ? BUF_CAP_MIN : buf->cap;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    if (cap - 1 > buf->max) /* need - 1 <= max, so max + 1 bytes are enough */
        cap = buf->max + 1;
    uint8_t *ptr = realloc(buf->ptr, cap);
    if (ptr == NULL) {
        buf->status = THOLE_NOMEM;
        return false;
    }
    buf->ptr = ptr;
    buf->cap = cap;
    return true;
}

uint8_t *buf_extend(struct buf *buf, size_t len)
{
    if (!buf_reserve(buf, len))
        return NULL;
    uint8_t *at = buf->ptr + buf->len;
    buf->len += len;
    buf->ptr[buf->len] = 0;
    assert(buf->len < buf->cap);
    return at;
}

void buf_append(struct buf *buf, const void *bytes, size_t len)
{
    uint8_t *at = buf_extend(buf, len);
    if (at != NULL && len > 0)
        memcpy(at, bytes, len);
}

void buf_slice(struct buf *buf, thole_slice slice)
{
    buf_append(buf, slice.ptr, slice.len);
}

void buf_text(struct buf *buf, const char *text)
{
    buf_append(buf, text, strlen(text));
}

void buf_printf(struct buf *buf, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int const len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0) {
        if (buf->status == THOLE_OK)
            buf->status = THOLE_INVALID;
    } else if (buf_reserve(buf, (size_t)len)) {
        (void)vsnprintf((char *)buf->ptr + buf->len, (size_t)len + 1, fmt, again);
        buf->len += (size_t)len;
    }
    va_end(again);
}

thole_slice buf_bytes(const struct buf *buf)
{
    return (thole_slice){buf->ptr, buf->len};
}

const char *buf_cstr(const struct buf *buf)
{
    return buf->ptr == NULL ? "" : (const char *)buf->ptr;
}

thole_status buf_status(const struct buf *buf)
{
    return buf->status;
}
