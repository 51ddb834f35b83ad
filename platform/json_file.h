/*
 * JSON documents in a file, one a line, as the command prints them: base/json.h, and values that need
 * more than it may: times and payloads.
 */
#ifndef THOLE_JSON_FILE_H
#define THOLE_JSON_FILE_H
#include "json.h"
#include <stdio.h>

/* Errors are the stream's: ferror(out). */
void json_to_file(struct json *json, FILE *out);
/* Like json_to_file(); begins a document that names its schema: {"schema":"thole.start.v1", ... */
void json_document(struct json *json, FILE *out, const char *schema);
/* Milliseconds since 1970 as ISO 8601; 0 as null. */
void json_member_time(struct json *json, const char *key, uint64_t time_ms);
/* A payload: as text under @p key, or, when it is not UTF-8, in base64 under "<key>_base64". */
void json_member_data(struct json *json, const char *key, thole_slice data);
/* Bytes of any kind, in base64. */
void json_member_base64(struct json *json, const char *key, thole_slice data);
#endif
