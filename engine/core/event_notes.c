#include "event_notes.h"
#include "record_fields.h"

size_t event_notes_find(const struct event_notes *notes, uint32_t field)
{
    size_t i = 0;
    while (i < notes->len && notes->of[i].field != field)
        i++;
    return i;
}

static bool take_note(struct event_notes *notes, const struct wire_field *field)
{
    struct payload_note note;
    if (notes->len == PAYLOADS_MAX || !wire_is_short(field) || !payload_note_read(field->bytes, &note) ||
        event_notes_find(notes, note.field) < notes->len)
        return false;
    notes->of[notes->len++] = note;
    return true;
}

static bool event_notes_take_payload(struct event_notes *notes, size_t i, const struct wire_field *field)
{
    if (!wire_is_short(field) || notes->there[i] || notes->of[i].erased.len > 0)
        return false;
    notes->there[i] = true;
    notes->payload[i] = field->bytes;
    return true;
}

static bool take_payloads(struct event_notes *notes, thole_slice body)
{
    struct wire_message message = wire_message_of(body);
    struct wire_field field;
    while (wire_take(&message, &field)) {
        size_t const i = event_notes_find(notes, field.number);
        if (i < notes->len && !event_notes_take_payload(notes, i, &field))
            return false;
    }
    return !message.bad;
}

bool event_notes_read(thole_slice event, struct event_notes *ret)
{
    struct wire_message message = wire_message_of(event);
    struct wire_field field;
    thole_slice body = {0};
    *ret = (struct event_notes){.len = 0};
    while (wire_take(&message, &field)) {
        bool const is_body = record_field_is_body(&field);
        if (field.number == FIELD_EVENT_PAYLOADS && !take_note(ret, &field))
            return false;
        if (field.number == FIELD_EVENT_ID)
            ret->event = field.value;
        if (is_body && (ret->kind != 0 || !wire_is_short(&field)))
            return false;
        if (is_body) {
            ret->kind = field.number;
            body = field.bytes;
        }
    }
    return !message.bad && (ret->len == 0 || ret->kind != 0) && take_payloads(ret, body);
}
