/* Protocol buffers as they are stored: tag, value. Unknown fields are passed over, as everywhere. */
#include "audit_scan.h"

enum {
    WIRE_NUMBER = 0,
    WIRE_EIGHT = 1,
    WIRE_BYTES = 2,
    WIRE_FOUR = 5,
    /* field numbers of history.proto */
    FIELD_EPOCH = 2,
    FIELD_N = 3,
    FIELD_COMMITTED = 4,
    FIELD_BODY_FIRST = 6,
    FIELD_BODY_LAST = 14,
    FIELD_PREVIOUS = 16,
    FIELD_PREVIOUS_OF_INSTANCE = 17,
};

struct message {
    const uint8_t *at, *end;
    bool bad;
};

struct field {
    uint32_t number;
    uint64_t value;    /* of a number */
    thole_slice bytes; /* of WIRE_BYTES */
};

static struct message message_of(thole_slice bytes)
{
    return (struct message){bytes.ptr, bytes.len == 0 ? bytes.ptr : bytes.ptr + bytes.len, false};
}

static uint64_t take_number(struct message *from)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        uint8_t const byte = *from->at++;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return number;
    }
    from->bad = true;
    return 0;
}

static thole_slice take_bytes(struct message *from, uint64_t len)
{
    if (from->bad || len > (uint64_t)(from->end - from->at)) {
        from->bad = true;
        return (thole_slice){0};
    }
    thole_slice const bytes = {from->at, (size_t)len};
    from->at += len;
    return bytes;
}

/* False: there is no further one, or the message is bad. */
static bool take_field(struct message *from, struct field *ret)
{
    if (from->at == from->end || from->bad)
        return false;
    uint64_t const tag = take_number(from);
    *ret = (struct field){.number = (uint32_t)(tag >> 3)};
    from->bad |= tag >> 3 == 0 || tag >> 32 != 0;
    switch (tag & 7) {
    case WIRE_NUMBER: ret->value = take_number(from); break;
    case WIRE_EIGHT: (void)take_bytes(from, 8); break;
    case WIRE_FOUR: (void)take_bytes(from, 4); break;
    case WIRE_BYTES: ret->bytes = take_bytes(from, take_number(from)); break;
    default: from->bad = true;
    }
    return !from->bad;
}

static bool has_prune(thole_slice event)
{
    struct message message = message_of(event);
    struct field field;
    bool prunes = false;
    while (take_field(&message, &field))
        prunes |= field.number == EVENT_HISTORY_PRUNED;
    return prunes;
}

static bool take_turn(thole_slice turn, struct audit_scan *to)
{
    struct message message = message_of(turn);
    struct field field;
    while (take_field(&message, &field))
        switch (field.number) {
        case 1: to->instance = field.bytes; break;
        case 2: to->execution = field.value; break;
        case 3: to->turn = field.value; break;
        case 4: to->time_ms = field.value; break;
        case 5: to->more = field.value != 0; break;
        case 8: to->prunes |= has_prune(field.bytes); break;
        default: break;
        }
    return !message.bad && to->instance.len > 0;
}

static bool take_deletion(thole_slice deletion, struct audit_scan *to)
{
    struct message message = message_of(deletion);
    struct field field;
    while (take_field(&message, &field))
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
    struct message message = message_of(opened);
    struct field field;
    while (take_field(&message, &field))
        switch (field.number) {
        case 2: to->time_ms = field.value; break;
        case 3: to->previous_epoch = field.value; break;
        case 4: to->previous_n = field.value; break;
        default: break;
        }
    return !message.bad;
}

static bool take_body(enum record_kind kind, thole_slice body, struct audit_scan *to)
{
    to->kind = kind;
    switch (kind) {
    case RECORD_TURN: return take_turn(body, to);
    case RECORD_DELETED: return take_deletion(body, to);
    case RECORD_EPOCH_OPENED: return take_opening(body, to);
    case RECORD_POSITION: return true;
    case RECORD_UNKNOWN: break;
    }
    to->kind = RECORD_UNKNOWN;
    return true;
}

static struct record_hash said(thole_slice bytes)
{
    return record_hash_said(bytes.len == RECORD_HASH_BYTES ? bytes : (thole_slice){0});
}

bool audit_scan(thole_slice record, struct audit_scan *ret)
{
    struct message message = message_of(record);
    struct field field;
    bool has_body = false;
    *ret = (struct audit_scan){.kind = RECORD_UNKNOWN};
    while (take_field(&message, &field)) {
        switch (field.number) {
        case FIELD_EPOCH: ret->epoch = field.value; break;
        case FIELD_N: ret->n = field.value; break;
        case FIELD_COMMITTED: ret->committed = field.value; break;
        case FIELD_PREVIOUS: ret->previous = said(field.bytes); break;
        case FIELD_PREVIOUS_OF_INSTANCE: ret->previous_of_instance = said(field.bytes); break;
        default: break;
        }
        if (field.number < FIELD_BODY_FIRST || field.number > FIELD_BODY_LAST)
            continue;
        if (has_body || !take_body((enum record_kind)field.number, field.bytes, ret))
            return false;
        has_body = true;
    }
    bool const opens = ret->kind == RECORD_EPOCH_OPENED;
    return !message.bad && has_body && ret->epoch > 0 && (opens ? ret->n == 0 : ret->n > 0) &&
           ret->committed <= ret->n;
}
