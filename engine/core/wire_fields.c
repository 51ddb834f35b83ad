#include "wire_fields.h"

struct wire_message wire_message_of(thole_slice bytes)
{
    return (struct wire_message){bytes.ptr, bytes.len == 0 ? bytes.ptr : bytes.ptr + bytes.len, false};
}

static uint64_t wire_fields_take_number(struct wire_message *from)
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

static thole_slice take_bytes(struct wire_message *from, uint64_t len)
{
    if (from->bad || len > (uint64_t)(from->end - from->at)) {
        from->bad = true;
        return (thole_slice){0};
    }
    thole_slice const bytes = {from->at, (size_t)len};
    from->at += len;
    return bytes;
}

bool wire_take(struct wire_message *from, struct wire_field *ret)
{
    if (from->at == from->end || from->bad)
        return false;
    const uint8_t *const begin = from->at;
    uint64_t const tag = wire_fields_take_number(from);
    *ret = (struct wire_field){.number = (uint32_t)(tag >> 3), .type = (enum wire_type)(tag & 7)};
    ret->tag = (thole_slice){begin, (size_t)(from->at - begin)};
    from->bad |= tag >> 3 == 0 || tag >> 32 != 0;
    switch (tag & 7) {
    case WIRE_NUMBER: ret->value = wire_fields_take_number(from); break;
    case WIRE_EIGHT: (void)take_bytes(from, 8); break;
    case WIRE_FOUR: (void)take_bytes(from, 4); break;
    case WIRE_BYTES: ret->bytes = take_bytes(from, wire_fields_take_number(from)); break;
    default: from->bad = true;
    }
    ret->whole = (thole_slice){begin, (size_t)(from->at - begin)};
    return !from->bad;
}

size_t wire_number_bytes(uint64_t number)
{
    size_t bytes = 1;
    for (; number >= 0x80; number >>= 7)
        bytes++;
    return bytes;
}

bool wire_is_short(const struct wire_field *field)
{
    return field->type == WIRE_BYTES && field->tag.len == wire_number_bytes((uint64_t)field->number << 3) &&
           field->whole.len == field->tag.len + wire_number_bytes(field->bytes.len) + field->bytes.len;
}

static void wire_fields_put(struct buf *to, uint64_t number)
{
    uint8_t bytes[10], *at = bytes;
    for (; number >= 0x80; number >>= 7)
        *at++ = (uint8_t)(number | 0x80);
    *at++ = (uint8_t)number;
    buf_append(to, bytes, (size_t)(at - bytes));
}

void wire_put_number(struct buf *to, uint32_t field, uint64_t number)
{
    wire_fields_put(to, (uint64_t)field << 3 | WIRE_NUMBER);
    wire_fields_put(to, number);
}

void wire_put_bytes(struct buf *to, uint32_t field, thole_slice bytes)
{
    wire_fields_put(to, (uint64_t)field << 3 | WIRE_BYTES);
    wire_fields_put(to, bytes.len);
    buf_slice(to, bytes);
}
