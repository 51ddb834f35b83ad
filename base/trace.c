/* The grammar of https://www.w3.org/TR/trace-context/, as far as it decides what is passed on. */
#include "trace.h"
#include <string.h>

enum {
    ID_AT = 3,
    SPAN_AT = ID_AT + TRACE_ID_BYTES + 1,
    FLAGS_AT = SPAN_AT + SPAN_ID_BYTES + 1,
    MEMBERS_MAX = 32
};
enum { KEY_BYTES_MAX = 256, VALUE_BYTES_MAX = 256 };

/* Lower-case hexadecimal digits, not all of them 0 if @p some. */
static bool trace_digits(const uint8_t *at, size_t n, bool some)
{
    bool zero = true;
    for (size_t i = 0; i < n; i++) {
        if (!((at[i] >= '0' && at[i] <= '9') || (at[i] >= 'a' && at[i] <= 'f')))
            return false;
        zero = zero && at[i] == '0';
    }
    return !(some && zero);
}

bool trace_parent_valid(thole_slice text)
{
    const uint8_t *const t = text.ptr;
    return text.len == TRACEPARENT_BYTES && memcmp(t, "00-", ID_AT) == 0 && t[SPAN_AT - 1] == '-' &&
           t[FLAGS_AT - 1] == '-' && trace_digits(t + ID_AT, TRACE_ID_BYTES, true) &&
           trace_digits(t + SPAN_AT, SPAN_ID_BYTES, true) && trace_digits(t + FLAGS_AT, 2, false);
}

static bool key_valid(thole_slice key)
{
    for (size_t i = 0; i < key.len; i++) {
        uint8_t const c = key.ptr[i];
        bool const first = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!first && (i == 0 || memchr("_-*/@", c, 5) == NULL))
            return false;
    }
    return key.len > 0 && key.len <= KEY_BYTES_MAX;
}

static bool value_valid(thole_slice value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] < 0x20 || value.ptr[i] > 0x7e || value.ptr[i] == ',' || value.ptr[i] == '=')
            return false;
    return value.len > 0 && value.len <= VALUE_BYTES_MAX;
}

static thole_slice trace_trimmed(thole_slice text)
{
    while (text.len > 0 && (text.ptr[0] == ' ' || text.ptr[0] == '\t'))
        text.ptr++, text.len--;
    while (text.len > 0 && (text.ptr[text.len - 1] == ' ' || text.ptr[text.len - 1] == '\t'))
        text.len--;
    return text;
}

/* An empty one is allowed. */
static bool member_valid(thole_slice member)
{
    member = trace_trimmed(member);
    const uint8_t *const equals = member.len == 0 ? NULL : memchr(member.ptr, '=', member.len);
    if (equals == NULL)
        return member.len == 0;
    size_t const key = (size_t)(equals - member.ptr);
    return key_valid((thole_slice){member.ptr, key}) &&
           value_valid((thole_slice){equals + 1, member.len - key - 1});
}

bool trace_state_valid(thole_slice text)
{
    size_t members = 0;
    if (text.len > TRACESTATE_BYTES_MAX)
        return false;
    for (size_t at = 0; at < text.len;) {
        const uint8_t *const comma = memchr(text.ptr + at, ',', text.len - at);
        size_t const end = comma == NULL ? text.len : (size_t)(comma - text.ptr);
        if (++members > MEMBERS_MAX || !member_valid((thole_slice){text.ptr + at, end - at}))
            return false;
        at = end + 1;
    }
    return true;
}

struct trace trace_valid(const struct trace *given)
{
    struct trace trace = {.parent = {NULL, 0}};
    if (!trace_parent_valid(given->parent))
        return trace;
    trace.parent = given->parent;
    if (trace_state_valid(given->list))
        trace.list = given->list;
    return trace;
}

thole_slice trace_id(thole_slice parent)
{
    return (thole_slice){parent.ptr + ID_AT, TRACE_ID_BYTES};
}

thole_slice trace_span_id(thole_slice parent)
{
    return (thole_slice){parent.ptr + SPAN_AT, SPAN_ID_BYTES};
}
