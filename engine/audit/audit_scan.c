/* Protocol buffers as they are stored: tag, value. Unknown fields are passed over, as everywhere. */
#include "audit_scan.h"
#include "payload_hash.h"
#include "record_fields.h"

enum {
    /* field numbers of history.proto */
    FIELD_EPOCH = 2,
    FIELD_N = 3,
    FIELD_COMMITTED = 4,
    FIELD_BODY_FIRST = 6,
    FIELD_BODY_LAST = 14,
};

static void audit_scan_take_event(thole_slice event, struct audit_scan *to)
{
    struct wire_message message = wire_message_of(event);
    struct wire_field field;
    struct payload_note note;
    while (wire_take(&message, &field)) {
        to->prunes |= field.number == EVENT_HISTORY_PRUNED;
        to->erased += field.number == FIELD_EVENT_PAYLOADS && payload_note_read(field.bytes, &note) &&
                      note.erased.len > 0;
    }
}

static bool audit_scan_take_turn(thole_slice turn, struct audit_scan *to)
{
    struct wire_message message = wire_message_of(turn);
    struct wire_field field;
    while (wire_take(&message, &field))
        switch (field.number) {
        case 1: to->instance = field.bytes; break;
        case 2: to->execution = field.value; break;
        case 3: to->turn = field.value; break;
        case 4: to->time_ms = field.value; break;
        case 5: to->more = field.value != 0; break;
        case 8: audit_scan_take_event(field.bytes, to); break;
        default: break;
        }
    return !message.bad && to->instance.len > 0;
}

static bool audit_scan_take_deletion(thole_slice deletion, struct audit_scan *to)
{
    struct wire_message message = wire_message_of(deletion);
    struct wire_field field;
    while (wire_take(&message, &field))
        switch (field.number) {
        case 1: to->instance = field.bytes; break;
        case 2: to->execution = field.value; break;
        case 3: to->time_ms = field.value; break;
        default: break;
        }
    return !message.bad && to->instance.len > 0;
}

static bool take_opening(thole_slice opened, struct audit_scan *to)
{
    struct wire_message message = wire_message_of(opened);
    struct wire_field field;
    while (wire_take(&message, &field))
        switch (field.number) {
        case 2: to->time_ms = field.value; break;
        case 3: to->previous_epoch = field.value; break;
        case 4: to->previous_n = field.value; break;
        case 5: to->counted = field.value; break;
        default: break;
        }
    return !message.bad;
}

static bool audit_scan_take_list(thole_slice folded, struct audit_scan *to)
{
    struct wire_message message = wire_message_of(folded);
    struct wire_field field;
    while (wire_take(&message, &field))
        if (field.number == 2 && field.type == WIRE_BYTES)
            to->listed = field.bytes;
    return !message.bad && to->listed.len % FOLDED_HASH_BYTES == 0;
}

static bool take_position(thole_slice moved, struct audit_scan *to)
{
    struct wire_message message = wire_message_of(moved);
    struct wire_field field;
    while (wire_take(&message, &field))
        if (field.number == 1 && !audit_scan_take_list(field.bytes, to))
            return false;
    return !message.bad;
}

static bool audit_scan_take_body(enum record_kind kind, thole_slice body, struct audit_scan *to)
{
    to->kind = kind;
    switch (kind) {
    case RECORD_TURN: return audit_scan_take_turn(body, to);
    case RECORD_DELETED: return audit_scan_take_deletion(body, to);
    case RECORD_EPOCH_OPENED: return take_opening(body, to);
    case RECORD_POSITION: return take_position(body, to);
    case RECORD_UNKNOWN: break;
    }
    to->kind = RECORD_UNKNOWN;
    return true;
}

static struct record_hash audit_scan_stated_hash(thole_slice bytes)
{
    return record_hash_said(bytes.len == RECORD_HASH_BYTES ? bytes : (thole_slice){0});
}

bool audit_scan(thole_slice record, struct audit_scan *ret)
{
    struct wire_message message = wire_message_of(record);
    struct wire_field field;
    bool has_body = false;
    *ret = (struct audit_scan){.kind = RECORD_UNKNOWN};
    while (wire_take(&message, &field)) {
        switch (field.number) {
        case FIELD_EPOCH: ret->epoch = field.value; break;
        case FIELD_N: ret->n = field.value; break;
        case FIELD_COMMITTED: ret->committed = field.value; break;
        case FIELD_RECORD_PREVIOUS: ret->previous = audit_scan_stated_hash(field.bytes); break;
        case FIELD_RECORD_HASHED: ret->hashed = field.value; break;
        case FIELD_RECORD_PREVIOUS_OF_INSTANCE:
            ret->previous_of_instance = audit_scan_stated_hash(field.bytes);
            break;
        default: break;
        }
        if (field.number < FIELD_BODY_FIRST || field.number > FIELD_BODY_LAST)
            continue;
        if (has_body || !audit_scan_take_body((enum record_kind)field.number, field.bytes, ret))
            return false;
        has_body = true;
    }
    bool const opens = ret->kind == RECORD_EPOCH_OPENED;
    return !message.bad && has_body && ret->epoch > 0 && (opens ? ret->n == 0 : ret->n > 0) &&
           ret->committed <= ret->n;
}
