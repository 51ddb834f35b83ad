/* A scanner for the server's JSON answers. */
#include "jscan.h"
#include <assert.h>
#include <string.h>

static bool jscan_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_blank(thole_slice s, size_t at)
{
    while (at < s.len && jscan_blank(s.ptr[at]))
        at++;
    return at;
}

/* s.ptr[at] is the opening quote. Returns the index after the closing one, or 0. */
static size_t string_end(thole_slice s, size_t at)
{
    for (at++; at < s.len; at++) {
        if (s.ptr[at] == '"')
            return at + 1;
        if (s.ptr[at] == '\\')
            at++;
    }
    return 0;
}

static bool scalar_byte(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

/* s.ptr[at] is { or [. Returns the index after the matching bracket, or 0. */
static size_t nested_end(thole_slice s, size_t at)
{
    uint8_t open[JSCAN_DEPTH_MAX];
    size_t depth = 0;
    while (at < s.len) {
        uint8_t const c = s.ptr[at];
        if (c == '"') {
            at = string_end(s, at);
            if (at == 0)
                return 0;
            continue;
        }
        if (c == '{' || c == '[') {
            if (depth == JSCAN_DEPTH_MAX)
                return 0;
            open[depth++] = c == '{' ? '}' : ']';
        } else if (c == '}' || c == ']') {
            if (depth == 0 || open[--depth] != c)
                return 0;
            if (depth == 0)
                return at + 1;
        }
        at++;
    }
    return 0;
}

/* Returns the index after the value that begins at @p at, or 0. */
static size_t value_end(thole_slice s, size_t at)
{
    if (at >= s.len)
        return 0;
    if (s.ptr[at] == '"')
        return string_end(s, at);
    if (s.ptr[at] == '{' || s.ptr[at] == '[')
        return nested_end(s, at);
    size_t const start = at;
    while (at < s.len && scalar_byte(s.ptr[at]))
        at++;
    return at > start ? at : 0;
}

/* Where the next element of an object or array begins: after its bracket or a comma. 0: no more elements. */
static size_t element_at(thole_slice s, char bracket, size_t at)
{
    size_t const i = skip_blank(s, at);
    return i < s.len && s.ptr[i] == (at == 0 ? bracket : ',') ? skip_blank(s, i + 1) : 0;
}

bool json_field(thole_slice object, size_t *at, thole_slice *ret_key, thole_slice *ret)
{
    size_t const name = element_at(object, '{', *at);
    if (name == 0 || name >= object.len || object.ptr[name] != '"')
        return false;
    size_t const behind = string_end(object, name);
    size_t i = behind == 0 ? object.len : skip_blank(object, behind);
    if (i >= object.len || object.ptr[i] != ':')
        return false;
    i = skip_blank(object, i + 1);
    size_t const end = value_end(object, i);
    if (end == 0)
        return false;
    assert(name < behind && behind < i && i < end && end <= object.len);
    *ret_key = (thole_slice){object.ptr + name + 1, behind - name - 2};
    *ret = (thole_slice){object.ptr + i, end - i};
    *at = end;
    return true;
}

bool json_ends(thole_slice value, size_t at)
{
    size_t const first = skip_blank(value, 0);
    size_t const last = skip_blank(value, at == 0 ? first + 1 : at);
    if (first >= value.len || last >= value.len || (value.ptr[first] != '{' && value.ptr[first] != '['))
        return false;
    return value.ptr[last] == (value.ptr[first] == '{' ? '}' : ']') &&
           skip_blank(value, last + 1) == value.len;
}

bool json_find(thole_slice object, const char *key, thole_slice *ret)
{
    thole_slice name, value;
    for (size_t at = 0; json_field(object, &at, &name, &value);)
        if (thole_slice_equal(name, thole_slice_from(key))) {
            *ret = value;
            return true;
        }
    return false;
}

bool json_name_among(const char *names, thole_slice name, size_t *ret_place)
{
    *ret_place = 0;
    for (size_t len; *names != '\0'; names += len + strspn(names + len, " "), (*ret_place)++) {
        len = strcspn(names, " ");
        if (thole_slice_equal(name, (thole_slice){(const uint8_t *)names, len}))
            return true;
    }
    return false;
}

enum { MEMBERS_MAX = 64, SHOWN_MAX = 40 };

static thole_status json_member_twice(const char *where, thole_slice name, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_INVALID, "%s\"%.*s\" is there twice", where,
                      (int)(name.len < SHOWN_MAX ? name.len : SHOWN_MAX), (const char *)name.ptr);
}

thole_status json_members_once(thole_slice object, const char *where, thole_error *reterr)
{
    thole_slice names[MEMBERS_MAX], value;
    size_t n = 0, at = 0;
    for (; n < MEMBERS_MAX && json_field(object, &at, &names[n], &value); n++) {
        if (names[n].len > 0 && memchr(names[n].ptr, '\\', names[n].len) != NULL)
            return thole_fail(reterr, THOLE_INVALID, "%sa member's name is written with an escape", where);
        for (size_t i = 0; i < n; i++)
            if (thole_slice_equal(names[i], names[n]))
                return json_member_twice(where, names[n], reterr);
    }
    return json_ends(object, at)
               ? THOLE_OK
               : thole_fail(reterr, THOLE_INVALID, "%sa JSON object of at most %d members is expected", where,
                            MEMBERS_MAX);
}

thole_status json_members_check(thole_slice object, const char *where, const char *names, thole_error *reterr)
{
    uint64_t seen = 0;
    size_t at = 0, place;
    for (thole_slice name, value; json_field(object, &at, &name, &value);) {
        int const shown = (int)(name.len < SHOWN_MAX ? name.len : SHOWN_MAX);
        if (!json_name_among(names, name, &place))
            return thole_fail(reterr, THOLE_INVALID, "%sthere is no \"%.*s\"; there are: %s", where, shown,
                              (const char *)name.ptr, names);
        assert(place < MEMBERS_MAX);
        if ((seen & UINT64_C(1) << place) != 0)
            return json_member_twice(where, name, reterr);
        seen |= UINT64_C(1) << place;
    }
    return json_ends(object, at) ? THOLE_OK
                                 : thole_fail(reterr, THOLE_INVALID, "%sa JSON object is expected", where);
}

bool json_path(thole_slice object, const char *path, thole_slice *ret)
{
    char key[64];
    for (;;) {
        const char *dot = strchr(path, '.');
        size_t const len = dot == NULL ? strlen(path) : (size_t)(dot - path);
        if (len >= sizeof key)
            return false;
        memcpy(key, path, len);
        key[len] = 0;
        if (!json_find(object, key, &object))
            return false;
        if (dot == NULL)
            break;
        path = dot + 1;
    }
    *ret = object;
    return true;
}

bool json_item(thole_slice array, size_t *at, thole_slice *ret)
{
    size_t const i = element_at(array, '[', *at);
    size_t const end = i == 0 ? 0 : value_end(array, i);
    if (end == 0)
        return false;
    assert(*at < i && i < end && end <= array.len);
    *ret = (thole_slice){array.ptr + i, end - i};
    *at = end;
    return true;
}

bool json_uint(thole_slice value, uint64_t *ret)
{
    uint64_t n = 0;
    if (value.len == 0)
        return false;
    for (size_t i = 0; i < value.len; i++) {
        uint8_t const c = value.ptr[i];
        if (c < '0' || c > '9' || n > (UINT64_MAX - (uint64_t)(c - '0')) / 10)
            return false;
        n = n * 10 + (uint64_t)(c - '0');
    }
    *ret = n;
    return true;
}

bool json_int(thole_slice value, int64_t *ret)
{
    bool const negative = value.len > 0 && value.ptr[0] == '-';
    uint64_t n;
    if (negative)
        value = (thole_slice){value.ptr + 1, value.len - 1};
    if (!json_uint(value, &n) || n > (uint64_t)INT64_MAX)
        return false;
    *ret = negative ? -(int64_t)n : (int64_t)n;
    return true;
}

bool json_is_true(thole_slice value)
{
    return thole_slice_equal(value, THOLE_STR("true"));
}

/* Four hex digits at p, or -1. */
static int32_t jscan_hex4(const uint8_t *p, size_t left)
{
    int32_t n = 0;
    if (left < 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        uint8_t const c = p[i];
        int32_t const digit = c >= '0' && c <= '9'   ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
        if (digit < 0)
            return -1;
        n = n * 16 + digit;
    }
    return n;
}

static void append_utf8(struct buf *to, uint32_t c)
{
    uint8_t out[4];
    size_t len;
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        len = 1;
    } else if (c < 0x800) {
        out[0] = (uint8_t)(0xc0 | (c >> 6));
        out[1] = (uint8_t)(0x80 | (c & 0x3f));
        len = 2;
    } else if (c < 0x10000) {
        out[0] = (uint8_t)(0xe0 | (c >> 12));
        out[1] = (uint8_t)(0x80 | ((c >> 6) & 0x3f));
        out[2] = (uint8_t)(0x80 | (c & 0x3f));
        len = 3;
    } else {
        out[0] = (uint8_t)(0xf0 | (c >> 18));
        out[1] = (uint8_t)(0x80 | ((c >> 12) & 0x3f));
        out[2] = (uint8_t)(0x80 | ((c >> 6) & 0x3f));
        out[3] = (uint8_t)(0x80 | (c & 0x3f));
        len = 4;
    }
    buf_append(to, out, len);
}

/* p is after \u. Returns the bytes used (4 or, for a surrogate pair, 10), 0 = malformed. */
static size_t append_escaped_rune(struct buf *to, const uint8_t *p, size_t left)
{
    int32_t const first = jscan_hex4(p, left);
    if (first < 0)
        return 0;
    if (first < 0xd800 || first > 0xdfff) {
        append_utf8(to, (uint32_t)first);
        return 4;
    }
    if (first > 0xdbff || left < 10 || p[4] != '\\' || p[5] != 'u')
        return 0;
    int32_t const second = jscan_hex4(p + 6, left - 6);
    if (second < 0xdc00 || second > 0xdfff)
        return 0;
    append_utf8(to, 0x10000 + (((uint32_t)first - 0xd800) << 10) + ((uint32_t)second - 0xdc00));
    return 10;
}

static uint8_t plain_escape(uint8_t c)
{
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'b': return '\b';
    case 'f': return '\f';
    case '"':
    case '\\':
    case '/': return c;
    default: return 0;
    }
}

bool json_text(thole_slice value, struct buf *to)
{
    if (value.len < 2 || value.ptr[0] != '"' || value.ptr[value.len - 1] != '"')
        return false;
    size_t const end = value.len - 1;
    for (size_t i = 1; i < end; i++) {
        if (value.ptr[i] != '\\') {
            buf_append(to, value.ptr + i, 1);
            continue;
        }
        if (++i >= end)
            return false;
        if (value.ptr[i] == 'u') {
            size_t const used = append_escaped_rune(to, value.ptr + i + 1, end - i - 1);
            if (used == 0)
                return false;
            i += used;
            continue;
        }
        uint8_t const c = plain_escape(value.ptr[i]);
        if (c == 0)
            return false;
        buf_append(to, &c, 1);
    }
    return buf_status(to) == THOLE_OK;
}

bool json_text_is(thole_slice value, const char *text)
{
    struct buf copy;
    buf_init(&copy, value.len);
    bool const same = json_text(value, &copy) && thole_slice_equal(buf_bytes(&copy), thole_slice_from(text));
    buf_release(&copy);
    return same;
}

/* Exactly @p digits of them, at @p at. */
static bool fixed_uint(thole_slice text, size_t at, size_t digits, uint64_t *ret)
{
    *ret = 0;
    if (at + digits > text.len)
        return false;
    for (size_t i = at; i < at + digits; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        *ret = *ret * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    return true;
}

static uint64_t days_since_1970(uint64_t year, uint64_t month, uint64_t day)
{
    uint64_t const y = month <= 2 ? year - 1 : year; /* a year that begins in March ends with the odd day */
    uint64_t const months = month <= 2 ? month + 9 : month - 3;
    return y * 365 + y / 4 - y / 100 + y / 400 + (153 * months + 2) / 5 + day - 1 - 719468;
}

bool json_time_ns(thole_slice value, uint64_t *ret)
{
    enum { YEAR_MIN = 1970, YEAR_MAX = 2553, FRACTION_AT = 20, DIGITS_MAX = 9, NANOS = 1000000000 };
    static const struct {
        size_t at, digits;
        char then;
    } fields[] = {{1, 4, '-'}, {6, 2, '-'}, {9, 2, 'T'}, {12, 2, ':'}, {15, 2, ':'}, {18, 2, 0}};
    uint64_t n[6], fraction = 0;
    size_t at = FRACTION_AT, digits = 0;
    if (value.len < FRACTION_AT + 2 || value.ptr[0] != '"')
        return false;
    for (size_t i = 0; i < 6; i++)
        if (!fixed_uint(value, fields[i].at, fields[i].digits, &n[i]) ||
            (fields[i].then != 0 && value.ptr[fields[i].at + fields[i].digits] != fields[i].then))
            return false;
    if (value.ptr[at] == '.')
        for (at++; digits < DIGITS_MAX && at < value.len && value.ptr[at] >= '0' && value.ptr[at] <= '9';
             digits++)
            fraction = fraction * 10 + (uint64_t)(value.ptr[at++] - '0');
    if (value.len != at + 2 || value.ptr[at] != 'Z' || value.ptr[at + 1] != '"' || n[0] < YEAR_MIN ||
        n[0] > YEAR_MAX || n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > 31 || n[3] > 23 || n[4] > 59 ||
        n[5] > 60)
        return false;
    for (; digits < DIGITS_MAX; digits++)
        fraction *= 10;
    *ret = (((days_since_1970(n[0], n[1], n[2]) * 24 + n[3]) * 60 + n[4]) * 60 + n[5]) * NANOS + fraction;
    return true;
}

static int32_t base64_digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(thole_slice text, struct buf *to)
{
    if (text.len % 4 != 0)
        return false;
    size_t padding = 0;
    while (padding < 2 && padding < text.len && text.ptr[text.len - 1 - padding] == '=')
        padding++;
    uint8_t *out = buf_extend(to, text.len / 4 * 3 - padding);
    if (out == NULL)
        return text.len == 0 && buf_status(to) == THOLE_OK;
    for (size_t i = 0; i < text.len; i += 4) {
        uint32_t group = 0;
        size_t const digits = i + 4 == text.len ? 4 - padding : 4;
        for (size_t k = 0; k < 4; k++) {
            int32_t const digit = k < digits ? base64_digit(text.ptr[i + k]) : 0;
            if (digit < 0)
                return false;
            group = group << 6 | (uint32_t)digit;
        }
        for (size_t k = 0; k + 1 < digits; k++)
            *out++ = (uint8_t)(group >> (16 - 8 * k));
    }
    assert(out == to->ptr + to->len); /* all of what it made room for, and no more */
    return true;
}
