#include "payload_hash.h"
#include "wire_fields.h"
#include <string.h>

enum { FIELD_FIELD = 1, FIELD_SALT = 2, FIELD_HASH = 3, PLACE_BYTES = 4 + 8 + 8 + 4 };

/* No other use of SHA-256 begins so. With its NUL. */
static const char purpose[] = "thole.payload.v1";

struct record_hash payload_hash_make(thole_slice salt, thole_slice payload)
{
    struct record_hash hash;
    thole_slice const tag = {(const uint8_t *)purpose, sizeof purpose};
    sha256_of((const thole_slice[]){tag, salt, payload}, 3, hash.bytes);
    return hash;
}

bool payload_note_read(thole_slice message, struct payload_note *ret)
{
    struct wire_message from = wire_message_of(message);
    struct wire_field field;
    *ret = (struct payload_note){0};
    while (wire_take(&from, &field)) {
        if (field.number == FIELD_FIELD && field.type == WIRE_NUMBER && ret->field == 0)
            ret->field = field.value <= UINT32_MAX ? (uint32_t)field.value : 0;
        else if (field.number == FIELD_SALT && field.bytes.len == SALT_BYTES && ret->salt.len == 0)
            ret->salt = field.bytes;
        else if (field.number == FIELD_HASH && field.bytes.len == RECORD_HASH_BYTES && ret->erased.len == 0)
            ret->erased = field.bytes;
        else
            return false;
    }
    size_t const value = ret->salt.len + ret->erased.len;
    return !from.bad && ret->field > 0 && (ret->salt.len > 0) != (ret->erased.len > 0) &&
           message.len == 1 + wire_number_bytes(ret->field) + 2 + value; /* nothing is written longer */
}

static uint8_t *payload_hash_put_number(uint8_t *to, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(number >> (8 * i));
    return to + bytes;
}

/* All messages have one length and begin with the key, so no hash tells another one. */
static void make_two(struct record_salts *salts)
{
    uint8_t place[PLACE_BYTES], *to = place;
    to = payload_hash_put_number(to, salts->source->partition, 4);
    to = payload_hash_put_number(to, salts->epoch, 8);
    to = payload_hash_put_number(to, salts->n, 8);
    (void)payload_hash_put_number(to, salts->used / 2, 4);
    thole_slice const key = {salts->source->key->bytes, SALT_KEY_BYTES};
    sha256_of((const thole_slice[]){key, {place, sizeof place}}, 2, salts->made);
}

thole_slice record_salts_next(struct record_salts *salts, uint8_t to[SALT_BYTES])
{
    if (salts->used % 2 == 0)
        make_two(salts);
    memcpy(to, salts->made + salts->used++ % 2 * SALT_BYTES, SALT_BYTES);
    return (thole_slice){to, SALT_BYTES};
}
