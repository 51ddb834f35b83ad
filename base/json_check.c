#include "json_check.h"
#include "utf8.h"
#include <assert.h>
#include <string.h>

enum json_expected {
    JSON_EXPECT_VALUE,
    JSON_EXPECT_VALUE_OR_END, /* right after [ */
    JSON_EXPECT_NAME,
    JSON_EXPECT_NAME_OR_END, /* right after { */
    JSON_EXPECT_MORE,        /* after a value: a comma, a bracket, or the end of the text */
};

struct json_checker {
    thole_slice text;
    size_t at, depth;
    enum json_expected expected;
    const char *flaw; /* NULL: none was found */
    char open[JSON_CHECK_DEPTH_MAX];
};

static bool json_check_fail(struct json_checker *c, const char *flaw)
{
    c->flaw = flaw;
    return false;
}

/* The byte at the place, 0 at the end of the text: a NUL in the text is nowhere expected either. */
static uint8_t json_check_byte(const struct json_checker *c)
{
    return c->at < c->text.len ? c->text.ptr[c->at] : 0;
}

static void json_check_skip_blanks(struct json_checker *c)
{
    while (c->at < c->text.len && memchr(" \t\r\n", c->text.ptr[c->at], 4) != NULL)
        c->at++;
}

static bool json_check_digits(struct json_checker *c)
{
    size_t const first = c->at;
    while (json_check_byte(c) >= '0' && json_check_byte(c) <= '9')
        c->at++;
    return c->at > first ? true : json_check_fail(c, "a digit is missing in a number");
}

static bool json_check_number(struct json_checker *c)
{
    c->at += json_check_byte(c) == '-';
    bool const zero = json_check_byte(c) == '0';
    size_t const first = c->at;
    if (!json_check_digits(c))
        return false;
    if (zero && c->at > first + 1)
        return json_check_fail(c, "a number begins with 0");
    if (json_check_byte(c) == '.') {
        c->at++;
        if (!json_check_digits(c))
            return false;
    }
    if (json_check_byte(c) == 'e' || json_check_byte(c) == 'E') {
        c->at++;
        c->at += json_check_byte(c) == '+' || json_check_byte(c) == '-';
        return json_check_digits(c);
    }
    return true;
}

static bool json_check_escape(struct json_checker *c)
{
    c->at++;
    uint8_t const kind = json_check_byte(c);
    if (kind == 0 || strchr("\"\\/bfnrtu", kind) == NULL)
        return json_check_fail(c, "an unknown escape in a string");
    c->at++;
    for (int i = 0; kind == 'u' && i < 4; i++, c->at++)
        if (json_check_byte(c) == 0 || strchr("0123456789abcdefABCDEF", json_check_byte(c)) == NULL)
            return json_check_fail(c, "\\u without four hexadecimal digits");
    return true;
}

static bool json_check_string(struct json_checker *c)
{
    for (c->at++; c->at < c->text.len;) {
        uint8_t const byte = c->text.ptr[c->at];
        if (byte == '"') {
            c->at++;
            return true;
        }
        if (byte < 0x20)
            return json_check_fail(c, "a control character in a string: write it as \\u00XX");
        if (byte == '\\') {
            if (!json_check_escape(c))
                return false;
            continue;
        }
        size_t const n = utf8_character((thole_slice){c->text.ptr + c->at, c->text.len - c->at});
        if (n == 0)
            return json_check_fail(c, "bytes that are not UTF-8");
        c->at += n;
    }
    return json_check_fail(c, "the text ends inside a string");
}

static bool json_check_literal(struct json_checker *c)
{
    static const char *const literals[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof literals / sizeof literals[0]; i++) {
        size_t const len = strlen(literals[i]);
        if (c->text.len - c->at >= len && memcmp(c->text.ptr + c->at, literals[i], len) == 0) {
            c->at += len;
            return true;
        }
    }
    return json_check_fail(c, c->at == c->text.len ? "the text ends where a value is expected"
                                                   : "no JSON value begins here");
}

static bool json_check_open(struct json_checker *c, char bracket)
{
    if (c->depth == JSON_CHECK_DEPTH_MAX)
        return json_check_fail(c, "more than 60 objects and arrays inside one another");
    c->open[c->depth++] = bracket;
    c->at++;
    c->expected = bracket == '{' ? JSON_EXPECT_NAME_OR_END : JSON_EXPECT_VALUE_OR_END;
    return true;
}

static bool json_check_close(struct json_checker *c)
{
    assert(c->depth > 0);
    c->depth--;
    c->at++;
    c->expected = JSON_EXPECT_MORE;
    return true;
}

static bool json_check_value(struct json_checker *c)
{
    uint8_t const byte = json_check_byte(c);
    if (byte == '{' || byte == '[')
        return json_check_open(c, (char)byte);
    bool const number = byte == '-' || (byte >= '0' && byte <= '9');
    c->expected = JSON_EXPECT_MORE;
    return byte == '"' ? json_check_string(c) : number ? json_check_number(c) : json_check_literal(c);
}

static bool json_check_name(struct json_checker *c)
{
    if (json_check_byte(c) != '"')
        return json_check_fail(c, "the name of a member is expected, in quotes");
    if (!json_check_string(c))
        return false;
    json_check_skip_blanks(c);
    if (json_check_byte(c) != ':')
        return json_check_fail(c, "a colon is expected behind the name of a member");
    c->at++;
    c->expected = JSON_EXPECT_VALUE;
    return true;
}

static bool json_check_more(struct json_checker *c)
{
    bool const object = c->depth > 0 && c->open[c->depth - 1] == '{';
    uint8_t const byte = json_check_byte(c);
    if (c->depth == 0)
        return json_check_fail(c, "more text behind the value");
    if (byte == (object ? '}' : ']'))
        return json_check_close(c);
    if (byte != ',')
        return json_check_fail(c, object ? "a comma or } is expected" : "a comma or ] is expected");
    c->at++;
    c->expected = object ? JSON_EXPECT_NAME : JSON_EXPECT_VALUE;
    return true;
}

static bool json_check_step(struct json_checker *c)
{
    switch (c->expected) {
    case JSON_EXPECT_VALUE_OR_END:
        return json_check_byte(c) == ']' ? json_check_close(c) : json_check_value(c);
    case JSON_EXPECT_VALUE: return json_check_value(c);
    case JSON_EXPECT_NAME_OR_END: return json_check_byte(c) == '}' ? json_check_close(c) : json_check_name(c);
    case JSON_EXPECT_NAME: return json_check_name(c);
    case JSON_EXPECT_MORE: break;
    }
    return json_check_more(c);
}

thole_status json_check(thole_slice text, thole_error *reterr)
{
    struct json_checker c = {.text = text, .expected = JSON_EXPECT_VALUE};
    for (;;) {
        json_check_skip_blanks(&c);
        if (c.at == text.len && c.depth == 0 && c.expected == JSON_EXPECT_MORE)
            return THOLE_OK;
        if (!json_check_step(&c))
            return thole_fail(reterr, THOLE_INVALID, "not JSON: byte %zu: %s", c.at + 1, c.flaw);
    }
}

bool json_is_valid(thole_slice text)
{
    return json_check(text, NULL) == THOLE_OK;
}
