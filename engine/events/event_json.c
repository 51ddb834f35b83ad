/* Whether a text is JSON. jscan.h finds values quickly, in texts that are trusted or were checked here. */
#include "cloud_event.h"
#include "utf8.h"
#include <string.h>

struct checked {
    thole_slice text;
    size_t at;
};

static bool next_is(const struct checked *c, char byte)
{
    return c->at < c->text.len && c->text.ptr[c->at] == byte;
}

static bool take(struct checked *c, char byte)
{
    bool const there = next_is(c, byte);
    c->at += there;
    return there;
}

static void skip_blank(struct checked *c)
{
    while (next_is(c, ' ') || next_is(c, '\t') || next_is(c, '\n') || next_is(c, '\r'))
        c->at++;
}

static bool take_word(struct checked *c, const char *word)
{
    size_t const len = strlen(word);
    if (c->text.len - c->at < len || memcmp(c->text.ptr + c->at, word, len) != 0)
        return false;
    c->at += len;
    return true;
}

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool take_escape(struct checked *c)
{
    if (c->at >= c->text.len)
        return false;
    uint8_t const kind = c->text.ptr[c->at++];
    if (kind != 'u')
        return memchr("\"\\/bfnrt", kind, 8) != NULL;
    for (int i = 0; i < 4; i++)
        if (c->at >= c->text.len || !is_hex(c->text.ptr[c->at++]))
            return false;
    return true;
}

static bool take_string(struct checked *c)
{
    if (!take(c, '"'))
        return false;
    while (c->at < c->text.len) {
        uint8_t const byte = c->text.ptr[c->at++];
        if (byte == '"')
            return true;
        if (byte < ' ' || (byte == '\\' && !take_escape(c)))
            return false;
    }
    return false;
}

static bool take_digits(struct checked *c)
{
    size_t const from = c->at;
    while (c->at < c->text.len && c->text.ptr[c->at] >= '0' && c->text.ptr[c->at] <= '9')
        c->at++;
    return c->at > from;
}

static bool take_number(struct checked *c)
{
    (void)take(c, '-');
    if (!take(c, '0') && !take_digits(c))
        return false;
    if (take(c, '.') && !take_digits(c))
        return false;
    if (!take(c, 'e') && !take(c, 'E'))
        return true;
    if (!take(c, '+'))
        (void)take(c, '-');
    return take_digits(c);
}

static bool take_scalar(struct checked *c)
{
    if (next_is(c, '"'))
        return take_string(c);
    return take_word(c, "true") || take_word(c, "false") || take_word(c, "null") || take_number(c);
}

/* What may follow a value: ends of what is open, then a comma and, in an object, the next key. False:
 * malformed.
 * @p depth 0 behind it: the text has ended. */
static bool take_between(struct checked *c, const char *open, size_t *depth)
{
    for (skip_blank(c); *depth > 0; skip_blank(c)) {
        bool const object = open[*depth - 1] == '{';
        if (take(c, object ? '}' : ']')) {
            (*depth)--;
            continue;
        }
        if (!take(c, ','))
            return false;
        skip_blank(c);
        if (!object)
            return true;
        if (!take_string(c))
            return false;
        skip_blank(c);
        return take(c, ':');
    }
    return true;
}

/* An opening bracket, and in an object its first key. *ret_value: a value follows, not the end. */
static bool take_open(struct checked *c, char open, bool *ret_value)
{
    c->at++;
    skip_blank(c);
    *ret_value = !next_is(c, open == '{' ? '}' : ']');
    if (!*ret_value || open == '[')
        return true;
    if (!take_string(c))
        return false;
    skip_blank(c);
    return take(c, ':');
}

bool event_json_is_valid(thole_slice text)
{
    struct checked c = {.text = text};
    char open[EVENT_JSON_DEPTH_MAX];
    size_t depth = 0;
    if (!utf8_is_valid(text))
        return false;
    do {
        bool value = true;
        skip_blank(&c);
        while (value && (next_is(&c, '{') || next_is(&c, '['))) {
            if (depth == EVENT_JSON_DEPTH_MAX)
                return false;
            open[depth] = (char)text.ptr[c.at];
            if (!take_open(&c, open[depth++], &value))
                return false;
            skip_blank(&c);
        }
        if ((value && !take_scalar(&c)) || !take_between(&c, open, &depth))
            return false;
    } while (depth > 0);
    return c.at == text.len;
}
