/* Status names and texts, error texts, and the two slice helpers of the public header. */
#include "thole/types.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *thole_status_name(thole_status status)
{
    switch (status) {
#define X(name, value, text)                                                                                 \
    case THOLE_##name: return #name;
        THOLE_STATUS_MAP(X)
#undef X
    }
    return "UNKNOWN";
}

const char *thole_status_text(thole_status status)
{
    switch (status) {
#define X(name, value, text)                                                                                 \
    case THOLE_##name: return text;
        THOLE_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

thole_status thole_fail(thole_error *err, thole_status status, const char *fmt, ...)
{
    if (err != NULL) {
        va_list args;
        err->status = status;
        va_start(args, fmt);
        (void)vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
    }
    return status;
}

thole_slice thole_slice_from(const char *text)
{
    if (text == NULL)
        return (thole_slice){NULL, 0};
    return (thole_slice){(const uint8_t *)text, strlen(text)};
}

bool thole_slice_equal(thole_slice a, thole_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* ---- numbers ---- */

thole_status thole_slice_u64(thole_slice text, uint64_t *ret)
{
    uint64_t n = 0;
    if (text.len == 0)
        return THOLE_INVALID;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return THOLE_INVALID;
        uint64_t const digit = (uint64_t)(text.ptr[i] - '0');
        if (n > (UINT64_MAX - digit) / 10)
            return THOLE_INVALID;
        n = n * 10 + digit;
    }
    *ret = n;
    return THOLE_OK;
}

thole_status thole_slice_i64(thole_slice text, int64_t *ret)
{
    bool const minus = text.len > 0 && text.ptr[0] == '-';
    bool const sign = minus || (text.len > 0 && text.ptr[0] == '+');
    uint64_t n = 0;
    THOLE_TRY(thole_slice_u64((thole_slice){sign ? text.ptr + 1 : text.ptr, text.len - sign}, &n));
    if (n > (uint64_t)INT64_MAX + minus)
        return THOLE_INVALID;
    *ret = !minus ? (int64_t)n : n == 0 ? 0 : -(int64_t)(n - 1) - 1;
    return THOLE_OK;
}
