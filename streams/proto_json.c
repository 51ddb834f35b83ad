#include "proto_json.h"
#include "jscan.h"
#include "json.h"
#include "memory.h"
#include "message.h"
#include "messages.pb-c.h"
#include "utf8.h"
#include <assert.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES_MAX = 64, ITEMS_MAX = 10000 };

/* ---- fields of a message ---- */

static void *proto_json_member(const ProtobufCMessage *message, unsigned offset)
{
    return (char *)(uintptr_t)message + offset;
}

static bool is_list(const ProtobufCFieldDescriptor *field)
{
    return field->label == PROTOBUF_C_LABEL_REPEATED;
}

static bool is_choice(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

/* Of a oneof: the number of the field that it is; 0: none. */
static uint32_t *proto_json_choice(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return proto_json_member(message, field->quantifier_offset);
}

static size_t value_bytes(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_UINT32: return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_UINT64: return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_STRING: return sizeof(char *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(ProtobufCMessage *);
    default: break;
    }
    assert(false && "a kind of field that no message has");
    return 0;
}

/* try_number → tryNumber */
static void camel_case(const char *name, char ret[NAME_BYTES_MAX])
{
    size_t len = 0;
    bool upper = false;
    for (; *name != '\0' && len < NAME_BYTES_MAX - 1; name++) {
        if (*name == '_') {
            upper = true;
            continue;
        }
        ret[len++] = upper && *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
        upper = false;
    }
    ret[len] = '\0';
}

/* ---- writing ---- */

static void proto_json_write_message(struct json *json, const ProtobufCMessage *message);

static void proto_json_write_base64(struct json *json, thole_slice bytes)
{
    size_t const room = (bytes.len + 2) / 3 * 4 + 1;
    assert(bytes.len < INT32_MAX / 2);
    unsigned char *const text = memory_array(room, 1);
    int const len = EVP_EncodeBlock(text, bytes.ptr, (int)bytes.len);
    json_string(json, (thole_slice){text, (size_t)len});
    free(text);
}

static void write_uint64(struct json *json, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    json_string(json, thole_slice_from(text));
}

static void proto_json_write_value(struct json *json, const ProtobufCFieldDescriptor *field,
                                   const void *value)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL: json_bool(json, *(const protobuf_c_boolean *)value != 0); break;
    case PROTOBUF_C_TYPE_UINT32: json_number(json, *(const uint32_t *)value); break;
    case PROTOBUF_C_TYPE_UINT64: write_uint64(json, *(const uint64_t *)value); break;
    case PROTOBUF_C_TYPE_STRING: json_string(json, thole_slice_from(*(char *const *)value)); break;
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *const bytes = value;
        proto_json_write_base64(json, (thole_slice){bytes->data, bytes->len});
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE: proto_json_write_message(json, *(ProtobufCMessage *const *)value); break;
    default: assert(false && "a kind of field that no message has");
    }
}

static bool is_default(const ProtobufCFieldDescriptor *field, const void *value)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL: return *(const protobuf_c_boolean *)value == 0;
    case PROTOBUF_C_TYPE_UINT32: return *(const uint32_t *)value == 0;
    case PROTOBUF_C_TYPE_UINT64: return *(const uint64_t *)value == 0;
    case PROTOBUF_C_TYPE_STRING: return *(char *const *)value == NULL || **(char *const *)value == '\0';
    case PROTOBUF_C_TYPE_BYTES: return ((const ProtobufCBinaryData *)value)->len == 0;
    default: return *(ProtobufCMessage *const *)value == NULL;
    }
}

static void write_list(struct json *json, const ProtobufCFieldDescriptor *field, const char *items, size_t n)
{
    json_array(json);
    for (size_t i = 0; i < n; i++)
        proto_json_write_value(json, field, items + i * value_bytes(field));
    json_end(json);
}

static void proto_json_write_message(struct json *json, const ProtobufCMessage *message)
{
    char name[NAME_BYTES_MAX];
    json_object(json);
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &message->descriptor->fields[i];
        const void *const value = proto_json_member(message, field->offset);
        size_t const n = is_list(field) ? *(size_t *)proto_json_member(message, field->quantifier_offset) : 0;
        bool const other = is_choice(field) && *proto_json_choice(message, field) != field->id;
        if (other || (is_list(field) ? n == 0 : is_default(field, value)))
            continue;
        camel_case(field->name, name);
        json_key(json, name);
        if (is_list(field))
            write_list(json, field, *(char *const *)value, n);
        else
            proto_json_write_value(json, field, value);
    }
    json_end(json);
}

thole_status proto_json_encode(const ProtobufCMessage *message, struct buf *to)
{
    struct json json;
    json_to_buf(&json, to);
    proto_json_write_message(&json, message);
    return buf_status(to);
}

/* ---- reading ---- */

struct reading {
    struct codec_scratch *scratch;
    const char *name; /* of the field that is read, for errors */
    thole_error *reterr;
    struct proto_json_tolerance *tolerance; /* NULL: none */
    struct proto_json_unknown *unknown;     /* NULL: members that are not known are ignored */
};

static thole_status proto_json_read_message(struct reading *reading,
                                            const ProtobufCMessageDescriptor *descriptor, thole_slice json,
                                            ProtobufCMessage **ret);

static thole_status proto_json_wrong(const struct reading *reading, const char *what)
{
    return thole_fail(reading->reterr, THOLE_CORRUPT, "%s is not %s", reading->name, what);
}

static thole_status not_json(const struct reading *reading)
{
    return thole_fail(reading->reterr, THOLE_CORRUPT, "the message is not valid JSON");
}

static thole_status new_memory(struct reading *reading, size_t bytes, void **ret)
{
    *ret = arena_alloc(&reading->scratch->arena, bytes);
    if (*ret == NULL)
        return thole_fail(reading->reterr, THOLE_LIMIT, "the message is too large");
    memset(*ret, 0, bytes);
    return THOLE_OK;
}

/* The text of a JSON string, followed by a NUL. */
static thole_status proto_json_read_text(struct reading *reading, thole_slice json, const char *what,
                                         char **ret, size_t *ret_len)
{
    struct buf text;
    void *bytes = NULL;
    buf_init(&text, json.len + 1);
    bool const read = json_text(json, &text);
    thole_slice const got = buf_bytes(&text);
    thole_status status = read ? THOLE_OK : proto_json_wrong(reading, what);
    if (status == THOLE_OK)
        status = new_memory(reading, got.len + 1, &bytes);
    if (status == THOLE_OK) {
        if (got.len > 0)
            memcpy(bytes, got.ptr, got.len);
        *ret = bytes;
        *ret_len = got.len;
    }
    buf_release(&text);
    return status;
}

static void mend_text(char *text)
{
    size_t const len = strlen(text);
    for (size_t at = 0; at < len;) {
        size_t const n = utf8_character((thole_slice){(const uint8_t *)text + at, len - at});
        if (n == 0)
            text[at] = '?';
        at += n == 0 ? 1 : n;
    }
}

/* Of the four digits of \uXXXX; above 0xffff: they are none. */
static uint32_t escaped_unit(thole_slice json, size_t at)
{
    char digits[5] = "", *end = digits;
    if (json.len - at >= 6 && json.ptr[at] == '\\' && json.ptr[at + 1] == 'u')
        memcpy(digits, json.ptr + at + 2, 4);
    unsigned long const unit = strtoul(digits, &end, 16);
    return end == digits + 4 && digits[0] != '+' && digits[0] != '-' && digits[0] != ' ' ? (uint32_t)unit
                                                                                         : UINT32_MAX;
}

/* A copy in which the escapes of NULs and of halves of surrogate pairs are those of ?. */
static thole_status mend_escapes(struct reading *reading, thole_slice json, thole_slice *ret)
{
    void *bytes = NULL;
    THOLE_TRY(new_memory(reading, json.len + 1, &bytes));
    uint8_t *const copy = memcpy(bytes, json.ptr, json.len);
    for (size_t at = 0; at < json.len;) {
        uint32_t const unit = escaped_unit(json, at);
        bool const high = unit >= 0xd800 && unit <= 0xdbff;
        uint32_t const low = high ? escaped_unit(json, at + 6) : 0;
        bool const pair = low >= 0xdc00 && low <= 0xdfff;
        if (unit == 0 || (unit >= 0xd800 && unit <= 0xdfff && !pair))
            memcpy(copy + at + 2, "003f", 4);
        at += pair ? 12 : unit != UINT32_MAX ? 6 : json.ptr[at] == '\\' && at + 1 < json.len ? 2 : 1;
    }
    *ret = (thole_slice){copy, json.len};
    return THOLE_OK;
}

static thole_status read_string(struct reading *reading, thole_slice json, char **ret)
{
    size_t len;
    if (reading->tolerance != NULL)
        THOLE_TRY(mend_escapes(reading, json, &json));
    THOLE_TRY(proto_json_read_text(reading, json, "a text", ret, &len));
    if (reading->tolerance != NULL)
        mend_text(*ret);
    if (strlen(*ret) != len || !utf8_is_valid((thole_slice){(const uint8_t *)*ret, len}))
        return proto_json_wrong(reading, "a text in UTF-8 without NUL");
    return THOLE_OK;
}

/* Both alphabets, padded or not. */
static thole_status proto_json_read_bytes(struct reading *reading, thole_slice json, ProtobufCBinaryData *ret)
{
    char *text;
    size_t len;
    struct buf bytes;
    void *copy = NULL;
    THOLE_TRY(proto_json_read_text(reading, json, "base64", &text, &len));
    while (len > 0 && text[len - 1] == '=')
        len--;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
    size_t const padded = (len + 3) / 4 * 4;
    char *whole = NULL;
    THOLE_TRY(new_memory(reading, padded + 1, (void **)&whole));
    memset(whole, '=', padded);
    memcpy(whole, text, len);
    buf_init(&bytes, padded + 1);
    bool const read = base64_decode((thole_slice){(const uint8_t *)whole, padded}, &bytes);
    thole_slice const got = buf_bytes(&bytes);
    thole_status status = read ? THOLE_OK : proto_json_wrong(reading, "base64");
    if (status == THOLE_OK)
        status = new_memory(reading, got.len + 1, &copy);
    if (status == THOLE_OK) {
        if (got.len > 0)
            memcpy(copy, got.ptr, got.len);
        *ret = (ProtobufCBinaryData){.data = copy, .len = got.len};
    }
    buf_release(&bytes);
    return status;
}

/* A number, or a string with one. */
static thole_status proto_json_read_number(const struct reading *reading, thole_slice json, uint64_t max,
                                           uint64_t *ret)
{
    if (json.len >= 2 && json.ptr[0] == '"')
        json = (thole_slice){json.ptr + 1, json.len - 2};
    if (!json_uint(json, ret) || *ret > max)
        return proto_json_wrong(reading, max == UINT32_MAX ? "a number from 0 to 4294967295"
                                                           : "a number from 0 to 18446744073709551615");
    return THOLE_OK;
}

static thole_status proto_json_read_value(struct reading *reading, const ProtobufCFieldDescriptor *field,
                                          thole_slice json, void *to)
{
    uint64_t number = 0;
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)to = json_is_true(json);
        return json_is_true(json) || thole_slice_equal(json, THOLE_STR("false"))
                   ? THOLE_OK
                   : proto_json_wrong(reading, "true or false");
    case PROTOBUF_C_TYPE_UINT32:
        THOLE_TRY(proto_json_read_number(reading, json, UINT32_MAX, &number));
        *(uint32_t *)to = (uint32_t)number;
        return THOLE_OK;
    case PROTOBUF_C_TYPE_UINT64: return proto_json_read_number(reading, json, UINT64_MAX, to);
    case PROTOBUF_C_TYPE_STRING: return read_string(reading, json, to);
    case PROTOBUF_C_TYPE_BYTES: return proto_json_read_bytes(reading, json, to);
    case PROTOBUF_C_TYPE_MESSAGE: return proto_json_read_message(reading, field->descriptor, json, to);
    default: break;
    }
    return proto_json_wrong(reading, "of a kind that can be read");
}

/* One that cannot be read has what was read of it by then. */
static thole_status refuse_item(struct reading *reading, const ProtobufCMessageDescriptor *descriptor,
                                const char *why, size_t i, size_t n, ProtobufCMessage **item)
{
    void *bytes = NULL;
    thole_slice text = {0};
    if (*item == NULL) {
        THOLE_TRY(new_memory(reading, descriptor->sizeof_message, &bytes));
        *item = bytes;
        protobuf_c_message_init(descriptor, *item);
    }
    if (reading->tolerance->errors == NULL) {
        THOLE_TRY(new_memory(reading, n * sizeof(char *), &bytes));
        reading->tolerance->errors = bytes;
    }
    if (arena_dup(&reading->scratch->arena, (thole_slice){(const uint8_t *)why, strlen(why) + 1}, &text) !=
        THOLE_OK)
        return thole_fail(reading->reterr, THOLE_LIMIT, "the message is too large");
    reading->tolerance->errors[i] = (const char *)text.ptr;
    return THOLE_OK;
}

static thole_status proto_json_read_item(struct reading *reading, const ProtobufCFieldDescriptor *field,
                                         thole_slice json, size_t i, size_t n, void *to)
{
    thole_error error = {.status = THOLE_OK};
    if (reading->tolerance == NULL || field->type != PROTOBUF_C_TYPE_MESSAGE ||
        field->descriptor != reading->tolerance->items)
        return proto_json_read_value(reading, field, json, to);
    thole_error *const reterr = reading->reterr;
    reading->reterr = &error;
    reading->name = field->name;
    thole_status const status = proto_json_read_value(reading, field, json, to);
    reading->reterr = reterr;
    if (status == THOLE_CORRUPT)
        return refuse_item(reading, reading->tolerance->items, error.text, i, n, to);
    return status == THOLE_OK ? THOLE_OK : thole_fail(reterr, status, "%s", error.text);
}

static thole_status read_list(struct reading *reading, const ProtobufCFieldDescriptor *field,
                              thole_slice json, size_t *ret_n, void *ret)
{
    size_t const bytes = value_bytes(field);
    size_t at = 0, n = 0, i = 0;
    thole_slice item;
    void *items = NULL;
    if (json.len == 0 || json.ptr[0] != '[')
        return proto_json_wrong(reading, "a list");
    while (json_item(json, &at, &item))
        n++;
    if (!json_ends(json, at))
        return not_json(reading);
    if (n > ITEMS_MAX)
        return thole_fail(reading->reterr, THOLE_LIMIT, "%s has more than %d items", reading->name,
                          ITEMS_MAX);
    THOLE_TRY(new_memory(reading, (n + 1) * bytes, &items));
    for (at = 0; i < n && json_item(json, &at, &item); i++)
        THOLE_TRY(proto_json_read_item(reading, field, item, i, n, (char *)items + i * bytes));
    *ret_n = n;
    memcpy(ret, &items, sizeof items);
    return THOLE_OK;
}

/* @p key is what is written between its quotes, which may have escapes. */
static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *descriptor,
                                                  thole_slice key)
{
    char camel[NAME_BYTES_MAX];
    thole_slice const quoted = {key.ptr - 1, key.len + 2};
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        camel_case(descriptor->fields[i].name, camel);
        if (json_text_is(quoted, camel) || json_text_is(quoted, descriptor->fields[i].name))
            return &descriptor->fields[i];
    }
    return NULL;
}

/* One of a oneof's fields at most. */
static thole_status proto_json_choose(const struct reading *reading, ProtobufCMessage *message,
                                      const ProtobufCFieldDescriptor *field)
{
    if (!is_choice(field))
        return THOLE_OK;
    if (*proto_json_choice(message, field) != 0 && *proto_json_choice(message, field) != field->id)
        return proto_json_wrong(reading, "alone: the message has another one of its kind");
    *proto_json_choice(message, field) = field->id;
    return THOLE_OK;
}

/* Readers of JSON differ in which of two members of one name counts, so neither does. */
static thole_status note_seen(struct reading *reading, size_t field, uint64_t *seen)
{
    assert(field < 64);
    if ((*seen & UINT64_C(1) << field) != 0)
        return thole_fail(reading->reterr, THOLE_CORRUPT, "%s is there twice", reading->name);
    *seen |= UINT64_C(1) << field;
    return THOLE_OK;
}

/* Whether the field to be read is known, or is to be ignored. */
static thole_status proto_json_check_known(const struct reading *reading,
                                           const ProtobufCMessageDescriptor *descriptor,
                                           const ProtobufCFieldDescriptor *field, thole_slice key)
{
    if (field != NULL || reading->unknown == NULL)
        return THOLE_OK;
    *reading->unknown = (struct proto_json_unknown){.message = descriptor, .member = key};
    return thole_fail(reading->reterr, THOLE_CORRUPT, "%s has a member that is not known",
                      descriptor->short_name);
}

static thole_status proto_json_read_message(struct reading *reading,
                                            const ProtobufCMessageDescriptor *descriptor, thole_slice json,
                                            ProtobufCMessage **ret)
{
    size_t at = 0;
    thole_slice key, value;
    void *bytes = NULL;
    uint64_t seen = 0; /* bit i: field i of the descriptor */
    if (json.len == 0 || json.ptr[0] != '{')
        return proto_json_wrong(reading, "an object");
    THOLE_TRY(new_memory(reading, descriptor->sizeof_message, &bytes));
    ProtobufCMessage *const message = bytes;
    protobuf_c_message_init(descriptor, message);
    *ret = message; /* whatever follows */
    while (json_field(json, &at, &key, &value)) {
        const ProtobufCFieldDescriptor *const field = find_field(descriptor, key);
        THOLE_TRY(proto_json_check_known(reading, descriptor, field, key));
        if (field == NULL || thole_slice_equal(value, THOLE_STR("null")))
            continue;
        reading->name = field->name;
        THOLE_TRY(note_seen(reading, (size_t)(field - descriptor->fields), &seen));
        THOLE_TRY(proto_json_choose(reading, message, field));
        if (is_list(field))
            THOLE_TRY(read_list(reading, field, value, proto_json_member(message, field->quantifier_offset),
                                proto_json_member(message, field->offset)));
        else
            THOLE_TRY(
                proto_json_read_value(reading, field, value, proto_json_member(message, field->offset)));
    }
    return json_ends(json, at) ? THOLE_OK : not_json(reading);
}

static thole_slice proto_json_trimmed(thole_slice text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[text.len - 1]) != NULL &&
           text.ptr[text.len - 1] != '\0')
        text.len--;
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[0]) != NULL && text.ptr[0] != '\0')
        text = (thole_slice){text.ptr + 1, text.len - 1};
    return text;
}

static thole_status read_whole(struct reading *reading, const ProtobufCMessageDescriptor *descriptor,
                               thole_slice json, ProtobufCMessage **ret)
{
    ProtobufCMessage *message = NULL;
    thole_slice const text = proto_json_trimmed(json);
    reading->name = "the message";
    if (text.len == 0 || text.ptr[text.len - 1] != '}')
        return proto_json_wrong(reading, "an object");
    THOLE_TRY(proto_json_read_message(reading, descriptor, text, &message));
    *ret = message;
    return THOLE_OK;
}

thole_status proto_json_decode_tolerant(const ProtobufCMessageDescriptor *descriptor, thole_slice json,
                                        struct codec_scratch *scratch, struct proto_json_tolerance *tolerance,
                                        ProtobufCMessage **ret, thole_error *reterr)
{
    struct reading reading = {.scratch = scratch, .reterr = reterr, .tolerance = tolerance};
    return read_whole(&reading, descriptor, json, ret);
}

thole_status proto_json_decode_known(const ProtobufCMessageDescriptor *descriptor, thole_slice json,
                                     struct codec_scratch *scratch, struct proto_json_unknown *ret_unknown,
                                     ProtobufCMessage **ret, thole_error *reterr)
{
    struct reading reading = {.scratch = scratch, .reterr = reterr, .unknown = ret_unknown};
    *ret_unknown = (struct proto_json_unknown){.message = NULL};
    return read_whole(&reading, descriptor, json, ret);
}

const char *proto_json_name(const ProtobufCFieldDescriptor *field, struct codec_scratch *scratch)
{
    char *const name = arena_alloc(&scratch->arena, NAME_BYTES_MAX);
    if (name == NULL)
        return "";
    camel_case(field->name, name);
    return name;
}

thole_status proto_json_decode(const ProtobufCMessageDescriptor *descriptor, thole_slice json,
                               struct codec_scratch *scratch, ProtobufCMessage **ret, thole_error *reterr)
{
    return proto_json_decode_tolerant(descriptor, json, scratch, NULL, ret, reterr);
}

bool proto_json_is(thole_slice bytes)
{
    return bytes.len > 0 && bytes.ptr[0] == '{';
}

thole_status proto_json_pack(const ProtobufCMessageDescriptor *descriptor, thole_slice json, struct buf *to,
                             thole_error *reterr)
{
    struct codec_scratch scratch;
    ProtobufCMessage *message = NULL;
    codec_init(&scratch);
    thole_status status = proto_json_decode(descriptor, json, &scratch, &message, reterr);
    if (status == THOLE_OK)
        status = codec_pack(message, to);
    codec_release(&scratch);
    return status;
}

/* ---- texts ---- */

static thole_status check_text(const ProtobufCFieldDescriptor *field, const char *text, thole_error *reterr)
{
    if (text == NULL || utf8_is_valid(thole_slice_from(text)))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_CORRUPT, "%s is not UTF-8", field->name);
}

static thole_status check_value(const ProtobufCFieldDescriptor *field, const void *value, thole_error *reterr)
{
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return check_text(field, *(char *const *)value, reterr);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE && *(ProtobufCMessage *const *)value != NULL)
        return proto_texts_check(*(ProtobufCMessage *const *)value, reterr);
    return THOLE_OK;
}

thole_status proto_texts_check(const ProtobufCMessage *message, thole_error *reterr)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &message->descriptor->fields[i];
        const void *value = proto_json_member(message, field->offset);
        size_t n = 1;
        if (is_list(field)) {
            n = *(size_t *)proto_json_member(message, field->quantifier_offset);
            value = *(char *const *)value;
        }
        for (size_t k = 0; k < n; k++)
            THOLE_TRY(check_value(field, (const char *)value + k * value_bytes(field), reterr));
    }
    return THOLE_OK;
}

static void mend_value(const ProtobufCFieldDescriptor *field, void *value)
{
    if (field->type == PROTOBUF_C_TYPE_STRING && *(char **)value != NULL && **(char **)value != '\0')
        mend_text(*(char **)value); /* an empty one may be a constant */
    else if (field->type == PROTOBUF_C_TYPE_MESSAGE && *(ProtobufCMessage **)value != NULL)
        proto_texts_mend(*(ProtobufCMessage **)value);
}

void proto_texts_mend(ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &message->descriptor->fields[i];
        char *value = proto_json_member(message, field->offset);
        size_t n = 1;
        if (is_list(field)) {
            n = *(size_t *)proto_json_member(message, field->quantifier_offset);
            value = *(char **)(void *)value;
        }
        for (size_t k = 0; k < n; k++)
            mend_value(field, value + k * value_bytes(field));
    }
}

thole_slice proto_json_inbox_body(thole_slice body, struct buf *converted)
{
    buf_init(converted, MESSAGE_BYTES_MAX);
    if (!proto_json_is(body) ||
        proto_json_pack(&thole__v1__inbox_message__descriptor, body, converted, NULL) != THOLE_OK ||
        converted->len == 0)
        return body;
    return buf_bytes(converted);
}
