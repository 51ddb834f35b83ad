/*
 * Reads what is needed from the server's JSON answers, decodes base64; json.h writes. Pure; every index
 * is checked against the slice; malformed text is "not found", never a crash; recursion is not used.
 *
 * A value is the slice of its raw text: {"a":1} [1,2] "x" 12 true null.
 */
#ifndef THOLE_JSCAN_H
#define THOLE_JSCAN_H
#include "buf.h"

enum { JSCAN_DEPTH_MAX = 64 };

/* The value of @p key in @p object (both borrowed). False: not an object, malformed before it, or absent.
 * Keys are compared as written: an escaped key is never found. */
bool json_find(thole_slice object, const char *key, thole_slice *ret);
/* Whether @p name is one of @p names, which blanks separate, and at which place, from 0. */
bool json_name_among(const char *names, thole_slice name, size_t *ret_place);
/* Whether each member of @p object is one of @p names (64 at most), and none occurs twice. THOLE_INVALID: the
 * error begins with @p where and names the member. @p object has passed json_check(). A name that is written
 * with an escape is unknown. */
THOLE_NODISCARD thole_status json_members_check(thole_slice object, const char *where, const char *names,
                                                thole_error *reterr);
/* Whether no member of @p object occurs twice, whatever the names are: other readers take another one of the
 * two. THOLE_INVALID: one occurs twice, or is written with an escape, or @p object has more than 64, or is no
 * object; the error begins with @p where. */
THOLE_NODISCARD thole_status json_members_once(thole_slice object, const char *where, thole_error *reterr);
/* json_find() through nested objects: "config.subjects". */
bool json_path(thole_slice object, const char *path, thole_slice *ret);
/* Iterate over an object, an array: *at starts at 0; false at the end or when malformed. A key is what is
 * written between its quotes. */
bool json_field(thole_slice object, size_t *at, thole_slice *ret_key, thole_slice *ret);
bool json_item(thole_slice array, size_t *at, thole_slice *ret);
/* After json_field() or json_item() returned false: whether the value ends there as it must, with nothing but
 * blanks after its bracket. 0: the value has no element. */
bool json_ends(thole_slice value, size_t at);

/* A non-negative integer that fits; false for anything else. */
bool json_uint(thole_slice value, uint64_t *ret);
bool json_int(thole_slice value, int64_t *ret);
bool json_is_true(thole_slice value);
/* Appends the text of a string value, escapes resolved. False: not a string, malformed, or it does not fit.
 */
bool json_text(thole_slice value, struct buf *to);
/* True when @p value is a string with exactly this text. */
bool json_text_is(thole_slice value, const char *text);

/* A string like "2026-11-21T04:24:23.5Z", from 1970 to 2554, as nanoseconds since 1970. UTC only. */
bool json_time_ns(thole_slice value, uint64_t *ret);

/* Appends the decoded bytes (standard alphabet, padded). False when malformed or when they do not fit. */
bool base64_decode(thole_slice text, struct buf *to);
#endif
