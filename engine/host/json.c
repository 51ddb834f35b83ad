#include "json.h"
#include "text.h"
#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { CHUNK_BYTES = 3 * 1024, KEY_BYTES = 64 };

void json_init(struct json *json, FILE *out)
{
    memset(json, 0, sizeof *json);
    json->out = out;
}

static void put(struct json *json, const char *text)
{
    (void)fputs(text, json->out);
}

/* Before every value: a comma, unless a key or nothing stands before it. */
static void begin_value(struct json *json)
{
    bool const in_object = json->depth > 0 && json->open[json->depth - 1] == '{';
    assert(in_object == json->keyed);
    if (!json->keyed && json->filled[json->depth])
        put(json, ",");
    json->filled[json->depth] = true;
    json->keyed = false;
}

static void begin(struct json *json, char open)
{
    begin_value(json);
    assert(json->depth < JSON_DEPTH_MAX);
    (void)fputc(open, json->out);
    json->open[json->depth++] = open;
    json->filled[json->depth] = false;
}

void json_object(struct json *json)
{
    begin(json, '{');
}

void json_array(struct json *json)
{
    begin(json, '[');
}

void json_end(struct json *json)
{
    assert(json->depth > 0);
    assert(!json->keyed);
    put(json, json->open[--json->depth] == '{' ? "}" : "]");
    if (json->depth == 0) {
        put(json, "\n");
        json->filled[0] = false; /* the next document, for one object a line */
    }
}

static void escape(struct json *json, uint8_t byte)
{
    switch (byte) {
    case '"': put(json, "\\\""); return;
    case '\\': put(json, "\\\\"); return;
    case '\n': put(json, "\\n"); return;
    case '\r': put(json, "\\r"); return;
    case '\t': put(json, "\\t"); return;
    default: (void)fprintf(json->out, "\\u%04x", byte); return;
    }
}

static void quote(struct json *json, thole_slice text)
{
    (void)fputc('"', json->out);
    for (size_t at = 0; at < text.len;) {
        thole_slice const rest = {text.ptr + at, text.len - at};
        size_t const n = utf8_character(rest);
        if (n == 0)
            put(json, "\xef\xbf\xbd");
        else if (n == 1 &&
                 (rest.ptr[0] < 0x20 || rest.ptr[0] == 0x7f || rest.ptr[0] == '"' || rest.ptr[0] == '\\'))
            escape(json, rest.ptr[0]);
        else if (n == 2 && rest.ptr[0] == 0xc2 && rest.ptr[1] < 0xa0) /* C1 controls steer terminals too */
            escape(json, rest.ptr[1]);
        else
            (void)fwrite(rest.ptr, 1, n, json->out);
        at += n == 0 ? 1 : n;
    }
    (void)fputc('"', json->out);
}

void json_key(struct json *json, const char *key)
{
    assert(json->depth > 0 && json->open[json->depth - 1] == '{');
    assert(!json->keyed);
    if (json->filled[json->depth])
        put(json, ",");
    quote(json, thole_slice_from(key));
    put(json, ":");
    json->keyed = true;
}

void json_string(struct json *json, thole_slice text)
{
    begin_value(json);
    quote(json, text);
}

void json_number(struct json *json, uint64_t value)
{
    begin_value(json);
    (void)fprintf(json->out, "%" PRIu64, value);
}

void json_true(struct json *json, bool value)
{
    begin_value(json);
    put(json, value ? "true" : "false");
}

void json_null(struct json *json)
{
    begin_value(json);
    put(json, "null");
}

void json_member(struct json *json, const char *key, thole_slice text)
{
    json_key(json, key);
    json_string(json, text);
}

void json_member_number(struct json *json, const char *key, uint64_t value)
{
    json_key(json, key);
    json_number(json, value);
}

void json_member_time(struct json *json, const char *key, uint64_t time_ms)
{
    char text[TIME_TEXT_BYTES];
    json_key(json, key);
    text_time(time_ms, text);
    if (time_ms == 0)
        json_null(json);
    else
        json_string(json, thole_slice_from(text));
}

/* In pieces of whole groups, so that any size needs the same memory. */
static void put_base64(struct json *json, thole_slice data)
{
    for (size_t at = 0; at < data.len; at += CHUNK_BYTES) {
        size_t const n = data.len - at < CHUNK_BYTES ? data.len - at : CHUNK_BYTES;
        struct buf text;
        buf_init(&text, CHUNK_BYTES * 2);
        text_base64(&text, (thole_slice){data.ptr + at, n});
        (void)fwrite(buf_cstr(&text), 1, text.len, json->out);
        buf_release(&text);
    }
}

void json_member_data(struct json *json, const char *key, thole_slice data)
{
    char marked[KEY_BYTES];
    if (utf8_is_valid(data)) {
        json_member(json, key, data);
        return;
    }
    int const n = snprintf(marked, sizeof marked, "%s_base64", key);
    assert(n > 0 && (size_t)n < sizeof marked);
    json_key(json, marked);
    begin_value(json);
    (void)fputc('"', json->out);
    put_base64(json, data);
    (void)fputc('"', json->out);
}
