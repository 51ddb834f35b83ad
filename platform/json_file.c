/* JSON documents in a file. */
#include "json_file.h"
#include "text.h"
#include "utf8.h"
#include <assert.h>

enum { CHUNK_BYTES = 3 * 1024, KEY_BYTES = 64 };

static void put_to_file(void *to, const char *bytes, size_t len)
{
    (void)fwrite(bytes, 1, len, to);
}

void json_to_file(struct json *json, FILE *out)
{
    json_init(json, put_to_file, out);
    json->lines = true;
}

void json_document(struct json *json, FILE *out, const char *schema)
{
    json_to_file(json, out);
    json_object(json);
    json_member_text(json, "schema", schema);
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

/* In pieces of whole groups, so that any size needs the same memory. Nothing in it needs an escape. */
static void put_base64(struct json *json, thole_slice data)
{
    json_value(json);
    json->put(json->to, "\"", 1);
    for (size_t at = 0; at < data.len; at += CHUNK_BYTES) {
        size_t const n = data.len - at < CHUNK_BYTES ? data.len - at : CHUNK_BYTES;
        struct buf text;
        buf_init(&text, CHUNK_BYTES * 2);
        text_base64(&text, (thole_slice){data.ptr + at, n});
        json->put(json->to, buf_cstr(&text), text.len);
        buf_release(&text);
    }
    json->put(json->to, "\"", 1);
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
    json_member_base64(json, marked, data);
}

void json_member_base64(struct json *json, const char *key, thole_slice data)
{
    json_key(json, key);
    put_base64(json, data);
}
