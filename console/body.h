/* The contents of an action's JSON body. */
#ifndef THOLE_BODY_H
#define THOLE_BODY_H
#include "request.h"

/* @p names: what it may have, between blanks. THOLE_INVALID: it is no JSON object, or has something else:
 * what is mistyped would be missing. */
THOLE_NODISCARD thole_status body_check(const struct request *request, const char *names,
                                        thole_error *reterr);
/* Appends a text; nothing when it is not there, unless it is @p required. THOLE_INVALID: not a text. */
enum body_need { BODY_OPTIONAL, BODY_REQUIRED };
THOLE_NODISCARD thole_status body_text(thole_slice object, const char *key, enum body_need need,
                                       struct buf *to, thole_error *reterr);
/* Appends a payload: the text of a string, the JSON of any other value, or the bytes of KEY_base64. */
THOLE_NODISCARD thole_status body_data(thole_slice object, const char *key, struct buf *to,
                                       thole_error *reterr);
/* A number; @p normally when it is not there. */
THOLE_NODISCARD thole_status body_number(thole_slice object, const char *key, uint64_t normally,
                                         uint64_t *ret, thole_error *reterr);
bool body_is_true(thole_slice object, const char *key);
#endif
