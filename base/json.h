/*
 * The JSON writer, which handles quotes, escapes, commas and nesting. It writes immediately, allocates
 * nothing and keeps only the nesting. Misuse (a value without a key in an object, an end without a begin)
 * asserts. The output is always valid JSON in UTF-8. Pure.
 *
 * This file writes to a buffer or to memory of a fixed size; platform/json_file.h to a FILE, with times
 * and payloads.
 */
#ifndef THOLE_JSON_H
#define THOLE_JSON_H
#include "buf.h"

enum { JSON_DEPTH_MAX = 16 };

/* Takes the next bytes of the document; handles errors itself. */
typedef void (*json_put_fn)(void *to, const char *bytes, size_t len);

struct json {
    json_put_fn put;
    void *to;
    bool lines; /* a line end follows each document */
    unsigned depth;
    char open[JSON_DEPTH_MAX]; /* '{' or '[' */
    bool filled[JSON_DEPTH_MAX + 1];
    bool keyed; /* a key waits for its value */
};

/* @p to is borrowed until the last document is written. */
void json_init(struct json *json, json_put_fn put, void *to);
/* Appends to @p to; buf_status() tells whether all of it fitted. */
void json_to_buf(struct json *json, struct buf *to);

/* Memory of a fixed size, for small documents and for places that must not allocate. `cut`: something did not
 * fit and was left out. Not NUL-terminated. */
struct json_room {
    char *bytes;
    size_t len, cap;
    bool cut;
};
void json_to_room(struct json *json, struct json_room *to);
thole_slice json_room_bytes(const struct json_room *room);

void json_object(struct json *json);
void json_array(struct json *json);
void json_end(struct json *json); /* of the innermost object or array */
void json_key(struct json *json, const char *key);
/* Bytes that are not UTF-8 become U+FFFD. */
void json_string(struct json *json, thole_slice text);
/* As many whole characters of it as need at most @p bytes_max bytes between the quotes. */
void json_string_within(struct json *json, thole_slice text, size_t bytes_max);
void json_number(struct json *json, uint64_t value);
void json_integer(struct json *json, int64_t value);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);

/* Writes the comma before a value: for callers that write the value themselves. */
void json_value(struct json *json);

/* A member of an object. */
void json_member(struct json *json, const char *key, thole_slice text);
void json_member_text(struct json *json, const char *key, const char *text);
void json_member_number(struct json *json, const char *key, uint64_t value);
void json_member_integer(struct json *json, const char *key, int64_t value);
void json_member_bool(struct json *json, const char *key, bool value);
/* Copies a member of another JSON text: the key without its quotes but with its escapes, and the text of the
 * value. Neither is checked. */
void json_member_copy(struct json *json, thole_slice key, thole_slice value);
#endif
