/* Field numbers of history.proto for those who read a record as it is stored, without unpacking it. */
#ifndef THOLE_RECORD_FIELDS_H
#define THOLE_RECORD_FIELDS_H
#include "wire_fields.h"

enum {
    FIELD_RECORD_TURN = 7,
    FIELD_RECORD_PREVIOUS = 16,
    FIELD_RECORD_PREVIOUS_OF_INSTANCE = 17,
    FIELD_RECORD_HASHED = 18,
    FIELD_RECORD_PREVIOUS_OF_INSTANCE_AT = 19,
    FIELD_TURN_NUMBER = 3,
    FIELD_TURN_EVENTS = 8,
    FIELD_EVENT_ID = 1,
    FIELD_EVENT_BODY_FIRST = 3,
    FIELD_EVENT_BODY_LAST = 999,
    FIELD_EVENT_PAYLOADS = 1002,
    FIELD_EVENT_PAYLOAD_OF = 1003,
};

/* Whether the field of an event is its body, of whatever kind. */
static inline bool record_field_is_body(const struct wire_field *field)
{
    return field->type == WIRE_BYTES && field->number >= FIELD_EVENT_BODY_FIRST &&
           field->number <= FIELD_EVENT_BODY_LAST;
}
#endif
