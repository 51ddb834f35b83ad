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
