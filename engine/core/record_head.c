#include "record_head.h"
#include "record_fields.h"

static uint64_t event_id(thole_slice event)
{
    struct wire_message message = wire_message_of(event);
    struct wire_field field;
    while (wire_take(&message, &field))
        if (field.number == FIELD_EVENT_ID && field.type == WIRE_NUMBER)
            return field.value;
    return 0;
}

static void read_turn(thole_slice turn, struct record_head *to)
{
    struct wire_message message = wire_message_of(turn);
    struct wire_field field;
    while (to->first_event == 0 && wire_take(&message, &field)) {
        if (field.number == FIELD_TURN_NUMBER && field.type == WIRE_NUMBER)
            to->turn = field.value;
        else if (field.number == FIELD_TURN_EVENTS && field.type == WIRE_BYTES)
            to->first_event = event_id(field.bytes);
    }
}

/* A record of an instance also names the record before it in its partition: the opening of its epoch at
 * least. */
bool record_head_read(thole_slice record, struct record_head *ret)
{
    struct wire_message message = wire_message_of(record);
    struct wire_field field;
    bool links = false;
    *ret = (struct record_head){.turn = 0};
    while (wire_take(&message, &field)) {
        bool const hash = field.type == WIRE_BYTES && field.bytes.len == RECORD_HASH_BYTES;
        links |= hash && field.number == FIELD_RECORD_PREVIOUS;
        if (hash && field.number == FIELD_RECORD_PREVIOUS_OF_INSTANCE)
            ret->before.hash = record_hash_said(field.bytes);
        else if (field.type == WIRE_NUMBER && field.number == FIELD_RECORD_PREVIOUS_OF_INSTANCE_AT)
            ret->before.sequence = field.value;
        else if (field.type == WIRE_BYTES && field.number == FIELD_RECORD_TURN)
            read_turn(field.bytes, ret);
    }
    return links && !message.bad && record_hash_known(&ret->before.hash) == (ret->before.sequence > 0);
}
