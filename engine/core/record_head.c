#include "record_head.h"
#include "wire_fields.h"

enum {
    FIELD_TURN = 7, /* of a record */
    FIELD_PREVIOUS = 16,
    FIELD_PREVIOUS_OF_INSTANCE = 17,
    FIELD_PREVIOUS_OF_INSTANCE_AT = 19,
    FIELD_NUMBER = 3, /* of a turn */
    FIELD_EVENT = 8,
    FIELD_ID = 1, /* of an event */
};

static uint64_t number_in(thole_slice bytes, uint32_t number)
{
    struct wire_message message = wire_message_of(bytes);
    struct wire_field field;
    while (wire_take(&message, &field))
        if (field.number == number && field.type == WIRE_NUMBER)
            return field.value;
    return 0;
}

static void read_turn(thole_slice turn, struct record_head *to)
{
    struct wire_message message = wire_message_of(turn);
    struct wire_field field;
    while (to->first_event == 0 && wire_take(&message, &field)) {
        if (field.number == FIELD_NUMBER && field.type == WIRE_NUMBER)
            to->turn = field.value;
        else if (field.number == FIELD_EVENT && field.type == WIRE_BYTES)
            to->first_event = number_in(field.bytes, FIELD_ID);
    }
}

/* A record of an instance also names the one of its partition: at least the opening of its epoch is there. */
bool record_head_read(thole_slice record, struct record_head *ret)
{
    struct wire_message message = wire_message_of(record);
    struct wire_field field;
    bool links = false;
    *ret = (struct record_head){.turn = 0};
    while (wire_take(&message, &field)) {
        bool const hash = field.type == WIRE_BYTES && field.bytes.len == RECORD_HASH_BYTES;
        links |= hash && field.number == FIELD_PREVIOUS;
        if (hash && field.number == FIELD_PREVIOUS_OF_INSTANCE)
            ret->before.hash = record_hash_said(field.bytes);
        else if (field.type == WIRE_NUMBER && field.number == FIELD_PREVIOUS_OF_INSTANCE_AT)
            ret->before.sequence = field.value;
        else if (field.type == WIRE_BYTES && field.number == FIELD_TURN)
            read_turn(field.bytes, ret);
    }
    return links && !message.bad && record_hash_known(&ret->before.hash) == (ret->before.sequence > 0);
}
