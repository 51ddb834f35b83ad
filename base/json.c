/* The JSON writer. */
#include "json.h"
#include "utf8.h"
#include <assert.h>
#include <string.h>

enum { ESCAPE_BYTES = 8, NUMBER_BYTES = 24 };

void json_init(struct json *json, json_put_fn put, void *to)
{
    memset(json, 0, sizeof *json);
    json->put = put;
    json->to = to;
}

static void put_to_buf(void *to, const char *bytes, size_t len)
{
    buf_append(to, bytes, len);
}

void json_to_buf(struct json *json, struct buf *to)
{
    json_init(json, put_to_buf, to);
}

static void put_to_room(void *to, const char *bytes, size_t len)
{
    struct json_room *const room = to;
    assert(room->len <= room->cap);
    room->cut = room->cut || len > room->cap - room->len;
    if (room->cut)
        return;
    memcpy(room->bytes + room->len, bytes, len);
    room->len += len;
}

void json_to_room(struct json *json, struct json_room *to)
{
    json_init(json, put_to_room, to);
}

thole_slice json_room_bytes(const struct json_room *room)
{
    return (thole_slice){(const uint8_t *)room->bytes, room->len};
}

static void json_put(struct json *json, const char *text)
{
    json->put(json->to, text, strlen(text));
}

/* Before every value: a comma, unless a key or nothing comes before it. */
void json_value(struct json *json)
{
    bool const in_object = json->depth > 0 && json->open[json->depth - 1] == '{';
    assert(in_object == json->keyed);
    if (!json->keyed && json->filled[json->depth])
        json_put(json, ",");
    json->filled[json->depth] = true;
    json->keyed = false;
}

static void json_begin(struct json *json, const char *open)
{
    json_value(json);
    assert(json->depth < JSON_DEPTH_MAX);
    json_put(json, open);
    json->open[json->depth++] = *open;
    json->filled[json->depth] = false;
}

void json_object(struct json *json)
{
    json_begin(json, "{");
}

void json_array(struct json *json)
{
    json_begin(json, "[");
}

void json_end(struct json *json)
{
    assert(json->depth > 0);
    assert(!json->keyed);
    json_put(json, json->open[--json->depth] == '{' ? "}" : "]");
    if (json->depth > 0)
        return;
    if (json->lines)
        json_put(json, "\n");
    json->filled[0] = false; /* for the next document, when there is one a line */
}

/* The escape of a byte that must be escaped. */
static const char *json_escape(uint8_t byte, char ret[ESCAPE_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    switch (byte) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
    }
    memcpy(ret, "\\u00xx", 7);
    ret[4] = digits[byte >> 4];
    ret[5] = digits[byte & 0xf];
    return ret;
}

/* The output for the next character of a text: its bytes, or a replacement. */
struct piece {
    size_t taken; /* bytes of the text */
    const char *instead;
    size_t len; /* bytes written */
};

/* U+FFFE or U+FFFF, which readers of YAML and XML refuse where they are not escaped. */
static bool is_noncharacter(const uint8_t *character, size_t len)
{
    return len == 3 && character[0] == 0xef && character[1] == 0xbf && character[2] >= 0xbe;
}

static struct piece next_piece(thole_slice rest, char room[ESCAPE_BYTES])
{
    size_t const n = utf8_character(rest);
    struct piece piece = {.taken = n == 0 ? 1 : n, .instead = NULL, .len = n};
    if (n == 0)
        piece.instead = "\xef\xbf\xbd"; /* U+FFFD */
    else if (is_noncharacter(rest.ptr, n))
        piece.instead = rest.ptr[2] == 0xbe ? "\\ufffe" : "\\uffff";
    else if (utf8_is_control(rest.ptr, n) || rest.ptr[0] == '"' || rest.ptr[0] == '\\')
        piece.instead = json_escape(rest.ptr[n - 1], room); /* of C1 the second byte is the code point */
    if (piece.instead != NULL)
        piece.len = strlen(piece.instead);
    return piece;
}

static void json_quote(struct json *json, thole_slice text, size_t bytes_max)
{
    char room[ESCAPE_BYTES];
    size_t at = 0, from = 0; /* from..at is written unchanged */
    json_put(json, "\"");
    while (at < text.len) {
        struct piece const piece = next_piece((thole_slice){text.ptr + at, text.len - at}, room);
        if (piece.len > bytes_max)
            break;
        bytes_max -= piece.len;
        if (piece.instead != NULL) {
            json->put(json->to, (const char *)text.ptr + from, at - from);
            json_put(json, piece.instead);
            from = at + piece.taken;
        }
        at += piece.taken;
    }
    if (at > from)
        json->put(json->to, (const char *)text.ptr + from, at - from);
    json_put(json, "\"");
}

static void before_key(struct json *json)
{
    assert(json->depth > 0 && json->open[json->depth - 1] == '{');
    assert(!json->keyed);
    if (json->filled[json->depth])
        json_put(json, ",");
    json->keyed = true;
}

void json_key(struct json *json, const char *key)
{
    before_key(json);
    json_quote(json, thole_slice_from(key), SIZE_MAX);
    json_put(json, ":");
}

void json_string(struct json *json, thole_slice text)
{
    json_string_within(json, text, SIZE_MAX);
}

void json_string_within(struct json *json, thole_slice text, size_t bytes_max)
{
    json_value(json);
    json_quote(json, text, bytes_max);
}

static void json_put_number(struct json *json, const char *sign, uint64_t value)
{
    char digits[NUMBER_BYTES];
    size_t at = sizeof digits;
    json_value(json);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    json_put(json, sign);
    json->put(json->to, digits + at, sizeof digits - at);
}

void json_number(struct json *json, uint64_t value)
{
    json_put_number(json, "", value);
}

void json_integer(struct json *json, int64_t value)
{
    json_put_number(json, value < 0 ? "-" : "", value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void json_bool(struct json *json, bool value)
{
    json_value(json);
    json_put(json, value ? "true" : "false");
}

void json_null(struct json *json)
{
    json_value(json);
    json_put(json, "null");
}

void json_member(struct json *json, const char *key, thole_slice text)
{
    json_key(json, key);
    json_string(json, text);
}

void json_member_text(struct json *json, const char *key, const char *text)
{
    json_member(json, key, thole_slice_from(text));
}

void json_member_number(struct json *json, const char *key, uint64_t value)
{
    json_key(json, key);
    json_number(json, value);
}

void json_member_integer(struct json *json, const char *key, int64_t value)
{
    json_key(json, key);
    json_integer(json, value);
}

void json_member_bool(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}

void json_member_copy(struct json *json, thole_slice key, thole_slice value)
{
    before_key(json);
    json_put(json, "\"");
    json->put(json->to, (const char *)key.ptr, key.len);
    json_put(json, "\":");
    json_value(json);
    json->put(json->to, (const char *)value.ptr, value.len);
}
