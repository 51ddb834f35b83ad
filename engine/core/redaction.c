#include "redaction.h"
#include "event_notes.h"
#include "record_fields.h"
#include "record_outline.h"
#include "record_references.h"

#define NUMBER(n) ((unsigned long long)(n))

struct redacting {
    const struct redaction *what;
    uint64_t home; /* the event that has the payload of the one that is meant; 0: that itself */
    bool found;    /* the event */
    thole_error *reterr;
};

/* ---- one event ---- */

static void put_erased(struct buf *to, const struct payload_note *note, thole_slice payload)
{
    struct buf message;
    buf_init(&message, 128);
    struct record_hash const hash = payload_hash_make(note->salt, payload);
    wire_put_number(&message, 1, note->field);
    wire_put_bytes(&message, 3, record_hash_slice(&hash));
    wire_put_bytes(to, FIELD_EVENT_PAYLOADS, buf_bytes(&message));
    buf_release(&message);
}

static bool redaction_is_meant(const struct redacting *r, const struct event_notes *notes, size_t i)
{
    const struct redaction *const what = r->what;
    const char *const name = event_payload_name(notes->kind, notes->of[i].field);
    if (r->home != 0 && notes->event == r->home &&
        notes->of[i].field == event_data_field((enum event_kind)notes->kind))
        return true;
    return name != NULL && (what->event == 0 || what->event == notes->event) &&
           (what->field.len == 0 || thole_slice_equal(what->field, thole_slice_from(name)));
}

static void redaction_put_body(struct buf *to, const struct redacting *r, const struct event_notes *notes,
                               thole_slice stored)
{
    struct wire_message message = wire_message_of(stored);
    struct wire_field field;
    struct buf body;
    buf_init(&body, RECORD_BYTES_MAX);
    while (wire_take(&message, &field)) {
        size_t const i = event_notes_find(notes, field.number);
        if (i == notes->len || !redaction_is_meant(r, notes, i))
            buf_slice(&body, field.whole);
    }
    wire_put_bytes(to, notes->kind, buf_bytes(&body));
    buf_release(&body);
}

static void redaction_put_event(struct buf *to, const struct redacting *r, const struct event_notes *notes,
                                thole_slice stored)
{
    struct wire_message message = wire_message_of(stored);
    struct wire_field field;
    size_t note = 0;
    while (wire_take(&message, &field)) {
        bool const is_note = field.number == FIELD_EVENT_PAYLOADS;
        size_t const i = is_note ? note++ : 0;
        if (record_field_is_body(&field))
            redaction_put_body(to, r, notes, field.bytes);
        else if (is_note && notes->of[i].salt.len > 0 && redaction_is_meant(r, notes, i))
            put_erased(to, &notes->of[i], notes->payload[i]);
        else
            buf_slice(to, field.whole);
    }
}

static size_t redaction_erasable(const struct redacting *r, const struct event_notes *notes)
{
    size_t n = 0;
    for (size_t i = 0; i < notes->len; i++)
        n += redaction_is_meant(r, notes, i) && notes->of[i].salt.len > 0;
    return n;
}

static thole_status redaction_check(const struct redacting *r, const struct event_notes *notes)
{
    const char *const kind = event_kind_name(event_kind_of_body(notes->kind));
    unsigned long long const id = notes->event;
    size_t meant = 0;
    for (size_t i = 0; i < notes->len; i++)
        meant += redaction_is_meant(r, notes, i);
    if (redaction_erasable(r, notes) > 0)
        return THOLE_OK;
    if (meant > 0)
        return thole_fail(r->reterr, THOLE_CONFLICT, "event %llu, %s: it is erased already", id, kind);
    if (r->what->field.len > 0)
        return thole_fail(r->reterr, THOLE_INVALID, "event %llu, %s, has no payload '%.*s'", id, kind,
                          THOLE_FMT(r->what->field));
    return thole_fail(r->reterr, THOLE_INVALID, "event %llu, %s, has no payload", id, kind);
}

static thole_status redact_event(struct redacting *r, bool salted, thole_slice stored, struct buf *to)
{
    struct event_notes notes;
    struct buf event;
    if (!event_notes_read(stored, &notes))
        return thole_fail(r->reterr, THOLE_CORRUPT, "an event of the record is not as it was written");
    bool const all = r->what->event == 0;
    bool const asked = notes.event == r->what->event, home = r->home != 0 && notes.event == r->home;
    if (all ? !salted || redaction_erasable(r, &notes) == 0 : !asked && !home) {
        wire_put_bytes(to, FIELD_TURN_EVENTS, stored);
        return THOLE_OK;
    }
    r->found |= all || asked;
    if (!salted)
        return thole_fail(
            r->reterr, THOLE_UNSUPPORTED,
            "event %llu was written by a version without salts, or has no payload: its bytes are "
            "part of the record's hash",
            NUMBER(notes.event));
    if (!asked || r->home == 0) /* this event's own payload may be empty, or erased */
        THOLE_TRY(redaction_check(r, &notes));
    buf_init(&event, RECORD_BYTES_MAX);
    redaction_put_event(&event, r, &notes, stored);
    wire_put_bytes(to, FIELD_TURN_EVENTS, buf_bytes(&event));
    buf_release(&event);
    return THOLE_OK;
}

/* ---- a payload that stands in another event ---- */

/* The value that the event has, if it is the selected one; else 0. */
static uint64_t home_of_event(const struct redaction *what, thole_slice stored)
{
    struct wire_message message = wire_message_of(stored);
    struct wire_field field;
    uint64_t id = 0, home = 0;
    uint32_t body = 0;
    while (wire_take(&message, &field)) {
        if (field.number == FIELD_EVENT_ID)
            id = field.value;
        if (field.number == FIELD_EVENT_PAYLOAD_OF)
            home = field.value;
        if (record_field_is_body(&field))
            body = field.number;
    }
    const char *const name = event_payload_name(body, event_data_field(event_kind_of_body(body)));
    bool const named =
        what->field.len == 0 || (name != NULL && thole_slice_equal(what->field, thole_slice_from(name)));
    return id == what->event && named ? home : 0;
}

static uint64_t home_of_turn(const struct redaction *what, thole_slice turn)
{
    struct wire_message message = wire_message_of(turn);
    struct wire_field field;
    uint64_t home = 0;
    while (home == 0 && what->event != 0 && wire_take(&message, &field))
        if (field.number == FIELD_TURN_EVENTS && field.type == WIRE_BYTES)
            home = home_of_event(what, field.bytes);
    return home;
}

/* ---- the record ---- */

static thole_status redact_turn(struct redacting *r, bool salted, thole_slice stored, struct buf *to)
{
    struct wire_message message = wire_message_of(stored);
    struct wire_field field;
    thole_status status = THOLE_OK;
    struct buf turn;
    buf_init(&turn, RECORD_BYTES_MAX);
    r->home = home_of_turn(r->what, stored);
    while (status == THOLE_OK && wire_take(&message, &field)) {
        if (field.number == FIELD_TURN_EVENTS && field.type == WIRE_BYTES)
            status = redact_event(r, salted, field.bytes, &turn);
        else
            buf_slice(&turn, field.whole);
    }
    if (status == THOLE_OK)
        wire_put_bytes(to, FIELD_RECORD_TURN, buf_bytes(&turn));
    buf_release(&turn);
    return status;
}

thole_status record_redact(thole_slice record, const struct redaction *redaction, struct buf *to,
                           thole_error *reterr)
{
    struct wire_message message = wire_message_of(record);
    struct wire_field field;
    struct redacting r = {.what = redaction, .reterr = reterr};
    bool const salted = record_hashed(record) == RECORD_HASHED_OUTLINE;
    while (wire_take(&message, &field)) {
        if (field.number == FIELD_RECORD_TURN && field.type == WIRE_BYTES)
            THOLE_TRY(redact_turn(&r, salted, field.bytes, to));
        else
            buf_slice(to, field.whole);
    }
    if (message.bad)
        return thole_fail(reterr, THOLE_CORRUPT, "the record is not as it was written");
    if (!r.found && redaction->event == 0)
        return thole_fail(reterr, THOLE_NOT_FOUND, "the record has no payload that can be erased");
    if (!r.found)
        return thole_fail(reterr, THOLE_NOT_FOUND, "the record has no event %llu", NUMBER(redaction->event));
    return buf_status(to);
}
