/* The fields that every record has, read before its body. Pure. */
#ifndef THOLE_RECORD_HEADER_H
#define THOLE_RECORD_HEADER_H
#include "event.h"
#include "history.pb-c.h"

enum {
    RECORD_FORMAT_FIRST = 1,
    RECORD_FORMAT_DELETED = 2, /* a DELETED has at least this one */
};
/* THOLE_UNSUPPORTED: a record of a newer format. THOLE_CORRUPT: it is no record. */
THOLE_NODISCARD thole_status record_header_check(const Thole__V1__Record *pb, thole_error *reterr);
#endif
