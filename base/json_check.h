/*
 * Whether a text is JSON. Scanners that look a member up stop at the place that they want, and do not see
 * errors after it: text that users write passes this check first. Pure, linear, without recursion.
 */
#ifndef THOLE_JSON_CHECK_H
#define THOLE_JSON_CHECK_H
#include "thole/types.h"

/* Less than JSCAN_DEPTH_MAX: a value that was checked is still found when it stands in an envelope. */
enum { JSON_CHECK_DEPTH_MAX = 60 };

/* THOLE_OK: @p text is exactly one value of RFC 8259 in valid UTF-8, with nothing but blanks around it. Else
 * THOLE_INVALID, and the error names the byte, counted from 1, and what is wrong there. A member that occurs
 * twice is no error here: json_members_check() finds it. */
THOLE_NODISCARD thole_status json_check(thole_slice text, thole_error *reterr);
bool json_is_valid(thole_slice text); /* json_check() without the reason */
#endif
