/*
 * Erases payloads from a record as it is stored: what is left of them is their salted hash, so the record's
 * hash, and with it the chain and all checkpoints, stay (docs/audit.md). Pure.
 */
#ifndef THOLE_REDACTION_H
#define THOLE_REDACTION_H
#include "event.h"

struct redaction {
    uint64_t event;    /* id of the event; 0: all events, except those without such a payload */
    thole_slice field; /* name in history.proto, such as "output"; empty: all payloads of the event */
};
/*
 * Appends the record without these payloads, all other bytes as they were. A payload that several events of
 * the record have stands in it once, and is erased for all of them. THOLE_NOT_FOUND: the event is not
 * in it; THOLE_CONFLICT: they are erased already; THOLE_UNSUPPORTED: they have no salts, as in records of
 * versions before salts; THOLE_INVALID: the event has no such payload; THOLE_CORRUPT, THOLE_LIMIT.
 */
THOLE_NODISCARD thole_status record_redact(thole_slice record, const struct redaction *redaction,
                                           struct buf *to, thole_error *reterr);

/* The name of a payload's field: "input", "output", "text", …; NULL: that field is no payload. @p body: the
 * number of the event's body. In record.c. */
const char *event_payload_name(uint32_t body, uint32_t field);
/* The field of the payload that is event.data: input, output, data, value, text or reason; 0: there is none.
 * In record.c. */
uint32_t event_data_field(enum event_kind kind);
#endif
