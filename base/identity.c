/* Validity of instance ids, names and error types. */
#include "identity.h"
#include "utf8.h"
#include <string.h>

thole_status id_check(thole_slice id, thole_error *reterr)
{
    if (id.len == 0)
        return thole_fail(reterr, THOLE_INVALID, "instance id is empty");
    if (id.len > THOLE_ID_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "instance id has %zu bytes, at most %d are allowed", id.len,
                          THOLE_ID_BYTES_MAX);
    if (memchr(id.ptr, 0, id.len) != NULL)
        return thole_fail(reterr, THOLE_INVALID, "instance id contains a NUL byte");
    for (size_t i = 0, n; i < id.len; i += n) {
        n = utf8_character((thole_slice){id.ptr + i, id.len - i});
        if (n == 0)
            return thole_fail(reterr, THOLE_INVALID, "instance id is not valid UTF-8 at byte %zu", i);
    }
    return THOLE_OK;
}

static bool name_byte(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

thole_status name_check(thole_slice name, const char *what, thole_error *reterr)
{
    if (name.len == 0)
        return thole_fail(reterr, THOLE_INVALID, "%s name is empty", what);
    if (name.len > THOLE_NAME_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "%s name has %zu bytes, at most %d are allowed", what,
                          name.len, THOLE_NAME_BYTES_MAX);
    for (size_t i = 0; i < name.len; i++) {
        if (!name_byte(name.ptr[i]))
            return thole_fail(reterr, THOLE_INVALID, "%s name has byte 0x%02x, allowed is [A-Za-z0-9_-]",
                              what, name.ptr[i]);
    }
    return THOLE_OK;
}

thole_status error_type_check(thole_slice type, thole_error *reterr)
{
    if (type.len > ERROR_TYPE_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "error type has %zu bytes, at most %d are allowed", type.len,
                          ERROR_TYPE_BYTES_MAX);
    for (size_t i = 0; i < type.len; i++) {
        if (!name_byte(type.ptr[i]) && type.ptr[i] != '.')
            return thole_fail(reterr, THOLE_INVALID, "error type has byte 0x%02x, allowed is [A-Za-z0-9_.-]",
                              type.ptr[i]);
    }
    return THOLE_OK;
}

thole_status dotted_check(thole_slice type, thole_error *reterr)
{
    if (type.len == 0 || type.len > EVENT_TYPE_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "event type has %zu bytes, allowed are 1 to %d", type.len,
                          EVENT_TYPE_BYTES_MAX);
    for (size_t i = 0; i < type.len; i++) {
        bool const dot = type.ptr[i] == '.';
        if (dot && (i == 0 || i + 1 == type.len || type.ptr[i - 1] == '.'))
            return thole_fail(reterr, THOLE_INVALID, "event type has nothing before or behind a dot");
        if (!dot && !name_byte(type.ptr[i]))
            return thole_fail(reterr, THOLE_INVALID, "event type has byte 0x%02x, allowed is [A-Za-z0-9_.-]",
                              type.ptr[i]);
    }
    return THOLE_OK;
}

thole_status event_type_check(thole_slice type, thole_error *reterr)
{
    static const char reserved[] = "thole.";
    THOLE_TRY(dotted_check(type, reterr));
    if (type.len >= sizeof reserved - 1 && memcmp(type.ptr, reserved, sizeof reserved - 1) == 0)
        return thole_fail(reterr, THOLE_INVALID, "event type begins with thole., which is reserved");
    return THOLE_OK;
}

thole_slice text_cut(thole_slice text, size_t bytes_max)
{
    if (text.len <= bytes_max)
        return text;
    size_t len = bytes_max;
    while (len > 0 && bytes_max - len < 3 && (text.ptr[len] & 0xc0) == 0x80)
        len--;
    return (thole_slice){text.ptr, len};
}
