/*
 * A streaming JSON writer. Commas and nesting are its own business; misuse (a value without a key in an
 * object, an end without a beginning) asserts. What it writes is always valid JSON in UTF-8.
 */
#ifndef THOLE_JSON_H
#define THOLE_JSON_H
#include "thole/types.h"
#include <stdio.h>

enum { JSON_DEPTH_MAX = 16 };
struct json {
    FILE *out; /* errors are the stream's: ferror(out) */
    unsigned depth;
    char open[JSON_DEPTH_MAX]; /* '{' or '[' */
    bool filled[JSON_DEPTH_MAX + 1];
    bool keyed; /* a key waits for its value */
};

void json_init(struct json *json, FILE *out);
void json_object(struct json *json);
void json_array(struct json *json);
void json_end(struct json *json); /* of the innermost object or array; the outermost ends with a line end */
void json_key(struct json *json, const char *key);
/* Bytes that are not UTF-8 become U+FFFD: for ids and names, which are. */
void json_string(struct json *json, thole_slice text);
void json_number(struct json *json, uint64_t value);
void json_true(struct json *json, bool value);
void json_null(struct json *json);

/* A member of an object. */
void json_member(struct json *json, const char *key, thole_slice text);
void json_member_number(struct json *json, const char *key, uint64_t value);
/* Milliseconds since 1970 as ISO 8601; 0 as null. */
void json_member_time(struct json *json, const char *key, uint64_t time_ms);
/* A payload: as text under @p key, or, when it is not UTF-8, in base64 under "<key>_base64". */
void json_member_data(struct json *json, const char *key, thole_slice data);
#endif
