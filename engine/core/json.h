/*
 * The JSON writer: the one place that knows quotes, escapes and commas. It writes as it goes, allocates
 * nothing and keeps only how deep it is. Commas and nesting are its own business; misuse (a value without a
 * key in an object, an end without a beginning) asserts. What it writes is always valid JSON in UTF-8. Pure.
 *
 * Here to a buffer or to memory of a fixed size; engine/host/json_file.h: to a FILE, with times and payloads.
 */
#ifndef THOLE_JSON_H
#define THOLE_JSON_H
#include "buf.h"

enum { JSON_DEPTH_MAX = 16 };

/* Takes the next bytes of the document. Errors are its own. */
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
/* Appends to @p to, which says at the end whether all of it fitted. */
void json_to_buf(struct json *json, struct buf *to);

/* Memory of a fixed size, for small documents and for places that must not allocate. What does not fit is
 * left out, and
 * @p cut says so. Not NUL-terminated. */
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
/* Bytes that are not UTF-8 become U+FFFD: for ids and names, which are. */
void json_string(struct json *json, thole_slice text);
/* As many whole characters of it as need at most @p bytes_max bytes between the quotes. */
void json_string_within(struct json *json, thole_slice text, size_t bytes_max);
void json_number(struct json *json, uint64_t value);
void json_integer(struct json *json, int64_t value);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);

/* For a writer of values of its own: what json_string() and the others begin with. */
void json_value(struct json *json);

/* A member of an object. */
void json_member(struct json *json, const char *key, thole_slice text);
void json_member_text(struct json *json, const char *key, const char *text);
void json_member_number(struct json *json, const char *key, uint64_t value);
void json_member_integer(struct json *json, const char *key, int64_t value);
void json_member_bool(struct json *json, const char *key, bool value);
#endif
