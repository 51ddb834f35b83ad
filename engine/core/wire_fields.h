/* The fields of a message in protocol buffers, one by one, as they are stored: nothing is unpacked or packed.
 * Pure. */
#ifndef THOLE_WIRE_FIELDS_H
#define THOLE_WIRE_FIELDS_H
#include "buf.h"

enum wire_type { WIRE_NUMBER = 0, WIRE_EIGHT = 1, WIRE_BYTES = 2, WIRE_FOUR = 5 };

struct wire_message {
    const uint8_t *at, *end;
    bool bad; /* the bytes read are no message */
};
struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;    /* of WIRE_NUMBER */
    thole_slice bytes; /* of WIRE_BYTES */
    thole_slice tag;   /* these borrow from the message: what stands before the value, */
    thole_slice whole; /* and both */
};

struct wire_message wire_message_of(thole_slice bytes);
/* False: there is no further one, or the message is bad. */
bool wire_take(struct wire_message *from, struct wire_field *ret);
/* Whether it is of WIRE_BYTES, and its tag and its length are written in as few bytes as they can be. */
bool wire_is_short(const struct wire_field *field);
size_t wire_number_bytes(uint64_t number); /* how many these are */

/* Append a field. */
void wire_put_number(struct buf *to, uint32_t field, uint64_t number);
void wire_put_bytes(struct buf *to, uint32_t field, thole_slice bytes);
#endif
