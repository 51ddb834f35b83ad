/* The forms of instance ids, of names and of types. Pure. */
#ifndef THOLE_IDENTITY_H
#define THOLE_IDENTITY_H
#include "thole/types.h"

enum {
    ERROR_TYPE_BYTES_MAX = 64,  /* [A-Za-z0-9_.-]{0,64} */
    EVENT_TYPE_BYTES_MAX = 128, /* of an emitted event: see event_type_check() */
};

/* 1..THOLE_ID_BYTES_MAX bytes of valid UTF-8 without NUL. The text says what is wrong. */
THOLE_NODISCARD thole_status id_check(thole_slice id, thole_error *reterr);
/* [A-Za-z0-9_-]{1,64}; @p what names the thing in the error text, for example "queue". */
THOLE_NODISCARD thole_status name_check(thole_slice name, const char *what, thole_error *reterr);
/* [A-Za-z0-9_.-]{0,64} */
THOLE_NODISCARD thole_status error_type_check(thole_slice type, thole_error *reterr);
/* The type of a CloudEvent: names with dots between them, 1 to 128 bytes. */
THOLE_NODISCARD thole_status dotted_check(thole_slice type, thole_error *reterr);
/* The type of a CloudEvent that code emits: as dotted_check(), and what begins with "thole." is reserved. */
THOLE_NODISCARD thole_status event_type_check(thole_slice type, thole_error *reterr);
/* At most @p bytes_max bytes, without cutting a UTF-8 sequence. */
thole_slice text_cut(thole_slice text, size_t bytes_max);
#endif
