#include "text.h"
#include "text_width.h"
#include "utf8.h"
#include "values.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static thole_slice slice_from(thole_slice slice, size_t at)
{
    return (thole_slice){slice.ptr + at, slice.len - at};
}

static void text_escape(struct buf *to, const uint8_t *bytes, size_t n)
{
    if (n == 1 && bytes[0] == '\n')
        buf_text(to, "\\n");
    else if (n == 1 && bytes[0] == '\t')
        buf_text(to, "\\t");
    else
        for (size_t i = 0; i < n; i++)
            buf_printf(to, "\\x%02x", bytes[i]);
}

void text_safe(struct buf *to, thole_slice text, size_t columns)
{
    size_t at = 0;
    for (size_t used = 0; at < text.len && used < columns;) {
        thole_slice const rest = slice_from(text, at);
        size_t const n = utf8_character(rest);
        unsigned const width = n == 0 ? 1 : character_width(rest.ptr, n);
        if (used + width > columns)
            break;
        used += width;
        if (n == 0 || utf8_is_control(rest.ptr, n))
            text_escape(to, rest.ptr, n == 0 ? 1 : n);
        else
            buf_append(to, rest.ptr, n);
        at += n == 0 ? 1 : n;
    }
    if (at < text.len)
        buf_text(to, "…");
}

/* An escape takes more than one character: one less of the text until it fits. */
void text_fit(struct buf *to, thole_slice text, size_t columns)
{
    text_safe(to, text, columns);
    for (size_t keep = columns; keep > 0 && text_width(buf_bytes(to)) > columns; keep--) {
        buf_clear(to);
        text_safe(to, text, keep - 1);
    }
}

void text_lines(struct buf *to, thole_slice text)
{
    for (size_t at = 0; at < text.len;) {
        thole_slice const rest = slice_from(text, at);
        size_t const n = utf8_character(rest);
        if (n == 0 || (utf8_is_control(rest.ptr, n) && rest.ptr[0] != '\n' && rest.ptr[0] != '\t'))
            text_escape(to, rest.ptr, n == 0 ? 1 : n);
        else
            buf_append(to, rest.ptr, n);
        at += n == 0 ? 1 : n;
    }
}

void text_time(uint64_t time_ms, char ret[TIME_TEXT_BYTES])
{
    time_t const seconds = (time_t)(time_ms / 1000);
    struct tm parts;
    char text[24];
    if (time_ms == 0 || gmtime_r(&seconds, &parts) == NULL || parts.tm_year > 8099) {
        (void)snprintf(ret, TIME_TEXT_BYTES, "-");
        return;
    }
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(ret, TIME_TEXT_BYTES, "%s.%03uZ", text, (unsigned)(time_ms % 1000));
}

/* Takes exactly @p digits digits at *at, and moves *at past them. */
static bool take_digits(const char **at, size_t digits, int *ret)
{
    *ret = 0;
    for (; digits > 0; digits--, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *ret = *ret * 10 + (**at - '0');
    }
    return true;
}

static bool text_take_part(const char **at, char before, size_t digits, int *ret)
{
    if (**at != before)
        return false;
    (*at)++;
    return take_digits(at, digits, ret);
}

/* Takes the time after a day: nothing, or "T09:30", "T09:30:01", "T09:30:01.250", each with or without a
 * Z. */
static bool take_time_of_day(const char **at, struct tm *ret, int *ret_millis)
{
    if (**at == '\0')
        return true;
    if (!text_take_part(at, 'T', 2, &ret->tm_hour) || !text_take_part(at, ':', 2, &ret->tm_min))
        return false;
    if (**at == ':') {
        if (!text_take_part(at, ':', 2, &ret->tm_sec) ||
            (**at == '.' && !text_take_part(at, '.', 3, ret_millis)))
            return false;
    }
    *at += **at == 'Z';
    return **at == '\0';
}

static bool same_parts(const struct tm *a, const struct tm *b)
{
    return a->tm_year == b->tm_year && a->tm_mon == b->tm_mon && a->tm_mday == b->tm_mday &&
           a->tm_hour == b->tm_hour && a->tm_min == b->tm_min && a->tm_sec == b->tm_sec;
}

bool text_time_parse(const char *text, uint64_t now_ms, uint64_t *ret_ms)
{
    struct tm parts = {.tm_year = 0};
    int millis = 0;
    uint64_t ago;
    if (duration_parse(text, &ago, NULL) == THOLE_OK) {
        *ret_ms = ago < now_ms ? now_ms - ago : 1;
        return true;
    }
    const char *at = text;
    if (!take_digits(&at, 4, &parts.tm_year) || !text_take_part(&at, '-', 2, &parts.tm_mon) ||
        !text_take_part(&at, '-', 2, &parts.tm_mday) || !take_time_of_day(&at, &parts, &millis))
        return false;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    struct tm const wish = parts;
    time_t const seconds = timegm(&parts); /* puts right what is out of range: the 31st of June */
    if (seconds < 0 || !same_parts(&parts, &wish))
        return false;
    *ret_ms = (uint64_t)seconds * 1000 + (uint64_t)millis;
    if (*ret_ms == 0)
        *ret_ms = 1; /* 0 would be no time at all */
    return true;
}

void text_base64(struct buf *to, thole_slice bytes)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t at = 0; at < bytes.len; at += 3) {
        size_t const n = bytes.len - at < 3 ? bytes.len - at : 3;
        uint32_t group = 0;
        char out[4] = {'=', '=', '=', '='};
        for (size_t i = 0; i < 3; i++)
            group = group << 8 | (i < n ? bytes.ptr[at + i] : 0u);
        for (size_t i = 0; i <= n; i++)
            out[i] = letters[group >> (18 - 6 * i) & 63];
        buf_append(to, out, sizeof out);
    }
}
