#include "record_outline.h"
#include "event_notes.h"
#include "record_fields.h"
#include "wire_fields.h"

struct outline {
    struct sha256 *to;
    thole_slice run; /* bytes of the record that are next to each other, and not added yet */
};

static void record_outline_flush(struct outline *outline)
{
    sha256_add(outline->to, outline->run.ptr, outline->run.len);
    outline->run = (thole_slice){0};
}

static void record_outline_put(struct outline *outline, thole_slice stored)
{
    if (outline->run.len > 0 && outline->run.ptr + outline->run.len == stored.ptr) {
        outline->run.len += stored.len;
        return;
    }
    record_outline_flush(outline);
    outline->run = stored;
}

/* In place of the length before a message its end is marked: no field begins with this byte. */
static void put_end(struct outline *outline)
{
    static const uint8_t end = 0;
    record_outline_flush(outline);
    sha256_add(outline->to, &end, sizeof end);
}

static void put_note(struct outline *outline, const struct event_notes *notes, size_t i)
{
    const struct payload_note *const note = &notes->of[i];
    uint8_t const number[] = {(uint8_t)(note->field >> 24), (uint8_t)(note->field >> 16),
                              (uint8_t)(note->field >> 8), (uint8_t)note->field};
    struct record_hash salted;
    thole_slice hash = note->erased;
    record_outline_flush(outline);
    if (hash.len == 0) {
        salted = payload_hash_make(note->salt, notes->payload[i]);
        hash = (thole_slice){salted.bytes, sizeof salted.bytes};
    }
    sha256_add(outline->to, number, sizeof number);
    sha256_add(outline->to, hash.ptr, hash.len);
}

static bool record_outline_put_body(struct outline *outline, const struct event_notes *notes,
                                    thole_slice body)
{
    struct wire_message message = wire_message_of(body);
    struct wire_field field;
    while (wire_take(&message, &field))
        if (event_notes_find(notes, field.number) == notes->len)
            record_outline_put(outline, field.whole);
    put_end(outline);
    return !message.bad;
}

static bool record_outline_put_event(struct outline *outline, thole_slice event)
{
    struct wire_message message = wire_message_of(event);
    struct wire_field field;
    struct event_notes notes;
    size_t note = 0;
    if (!event_notes_read(event, &notes))
        return false;
    while (wire_take(&message, &field)) {
        bool const opens = record_field_is_body(&field);
        bool const notes_one = field.number == FIELD_EVENT_PAYLOADS;
        record_outline_put(outline, opens || notes_one ? field.tag : field.whole);
        if (notes_one)
            put_note(outline, &notes, note++);
        if (opens && !record_outline_put_body(outline, &notes, field.bytes))
            return false;
    }
    put_end(outline);
    return true;
}

static bool put_turn(struct outline *outline, thole_slice turn)
{
    struct wire_message message = wire_message_of(turn);
    struct wire_field field;
    while (wire_take(&message, &field)) {
        bool const opens = field.number == FIELD_TURN_EVENTS && field.type == WIRE_BYTES;
        record_outline_put(outline, opens ? field.tag : field.whole);
        if (opens && !(wire_is_short(&field) && record_outline_put_event(outline, field.bytes)))
            return false;
    }
    put_end(outline);
    return !message.bad;
}

uint64_t record_hashed(thole_slice record)
{
    struct wire_message message = wire_message_of(record);
    struct wire_field field;
    uint64_t hashed = 0;
    while (wire_take(&message, &field))
        if (field.number == FIELD_RECORD_HASHED)
            hashed = field.value;
    return message.bad ? 0 : hashed;
}

bool record_outline_add(thole_slice record, struct sha256 *to)
{
    struct wire_message message = wire_message_of(record);
    struct wire_field field;
    struct outline outline = {.to = to};
    while (wire_take(&message, &field)) {
        bool const opens = field.number == FIELD_RECORD_TURN && field.type == WIRE_BYTES;
        record_outline_put(&outline, opens ? field.tag : field.whole);
        if (opens && !(wire_is_short(&field) && put_turn(&outline, field.bytes)))
            return false;
    }
    record_outline_flush(&outline);
    return !message.bad;
}
