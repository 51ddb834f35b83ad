/* protobuf-c over arenas and buffers. */
#include "codec.h"
#include "identity.h"
#include <assert.h>
#include <string.h>

void codec_init(struct codec_scratch *scratch)
{
    *scratch = (struct codec_scratch){.exhausted = false};
    arena_init(&scratch->arena, CODEC_SCRATCH_MAX);
}

void codec_release(struct codec_scratch *scratch)
{
    arena_release(&scratch->arena);
}

static void *scratch_alloc(void *data, size_t size)
{
    struct codec_scratch *scratch = data;
    void *p = arena_alloc(&scratch->arena, size);
    if (p == NULL)
        scratch->exhausted = true;
    return p;
}

static void scratch_free(void *data, void *pointer)
{
    (void)data; /* freed together by codec_release() */
    (void)pointer;
}

thole_status codec_pack(const ProtobufCMessage *message, struct buf *to)
{
    size_t const size = protobuf_c_message_get_packed_size(message);
    uint8_t *at = buf_extend(to, size);
    if (at == NULL)
        return buf_status(to);
    size_t const written = protobuf_c_message_pack(message, at);
    assert(written == size);
    (void)written;
    return THOLE_OK;
}

thole_status codec_unpack(const ProtobufCMessageDescriptor *descriptor, thole_slice bytes, size_t bytes_max,
                          struct codec_scratch *scratch, const char *what, ProtobufCMessage **ret,
                          thole_error *reterr)
{
    ProtobufCAllocator allocator = {scratch_alloc, scratch_free, scratch};
    if (bytes.len > bytes_max)
        return thole_fail(reterr, THOLE_LIMIT, "%s has %zu bytes, at most %zu are allowed", what, bytes.len,
                          bytes_max);
    if (bytes.len == 0)
        return thole_fail(reterr, THOLE_CORRUPT, "%s is empty", what);
    ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, &allocator, bytes.len, bytes.ptr);
    if (message == NULL && scratch->arena.nomem)
        return codec_full(&scratch->arena, reterr);
    if (message == NULL && scratch->exhausted)
        return thole_fail(reterr, THOLE_LIMIT, "%s takes too much memory to decode", what);
    if (message == NULL)
        return thole_fail(reterr, THOLE_CORRUPT, "%s does not decode", what);
    *ret = message;
    return THOLE_OK;
}

uint32_t codec_field_number(const struct codec_message *table, const struct codec_field *field)
{
    const ProtobufCMessageDescriptor *const of = table->descriptor;
    unsigned i = 0;
    while (i + 1 < of->n_fields && of->fields[i].offset != field->pb)
        i++;
    assert(of->fields[i].offset == field->pb);
    return of->fields[i].id;
}

ProtobufCBinaryData codec_bytes(thole_slice slice)
{
    return (ProtobufCBinaryData){.len = slice.len, .data = (uint8_t *)slice.ptr};
}

thole_slice codec_slice(ProtobufCBinaryData bytes)
{
    return (thole_slice){bytes.data, bytes.len};
}

thole_status codec_dup(struct arena *arena, ProtobufCBinaryData bytes, thole_slice *ret, thole_error *reterr)
{
    *ret = (thole_slice){NULL, 0};
    if (bytes.len > 0 && arena_dup(arena, codec_slice(bytes), ret) != THOLE_OK)
        return codec_full(arena, reterr);
    return THOLE_OK;
}

thole_status codec_full(const struct arena *arena, thole_error *reterr)
{
    if (arena_status(arena) == THOLE_NOMEM)
        return thole_fail(reterr, THOLE_NOMEM, "out of memory");
    return thole_fail(reterr, THOLE_LIMIT, "what is decoded takes more than %zu bytes", arena->limit);
}

thole_status codec_corrupt(thole_status status, thole_error *reterr)
{
    if (status == THOLE_OK)
        return THOLE_OK;
    if (reterr != NULL)
        reterr->status = THOLE_CORRUPT;
    return THOLE_CORRUPT;
}

/* ---- tables ---- */

static ProtobufCMessage *message_create(const ProtobufCMessageDescriptor *descriptor, struct arena *arena)
{
    ProtobufCMessage *pb = arena_alloc(arena, descriptor->sizeof_message);
    if (pb != NULL)
        protobuf_c_message_init(descriptor, pb);
    return pb;
}

static thole_status codec_list_to_pb(const struct codec_field *field, const uint8_t *plain,
                                     struct arena *arena, uint8_t *pb)
{
    const thole_slice *from = *(const thole_slice *const *)(const void *)(plain + field->at);
    size_t const n = *(const size_t *)(const void *)(plain + field->at_len);
    ProtobufCBinaryData *to = n == 0 ? NULL : arena_array(arena, n, sizeof *to);
    if (n > 0 && to == NULL)
        return arena_status(arena);
    for (size_t i = 0; i < n; i++)
        to[i] = codec_bytes(from[i]);
    *(ProtobufCBinaryData **)(void *)(pb + field->pb) = to;
    *(size_t *)(void *)(pb + field->pb_len) = n;
    return THOLE_OK;
}

static thole_status part_to_pb(const struct codec_field *field, const void *plain, struct arena *arena,
                               uint8_t *pb, thole_error *reterr)
{
    ProtobufCMessage *part;
    THOLE_TRY(codec_to_pb(field->part, plain, arena, &part, reterr));
    if (protobuf_c_message_get_packed_size(part) > 0)
        memcpy(pb + field->pb, &part, sizeof part); /* the protobuf message has its own type for it */
    return THOLE_OK;
}

static bool codec_is_number(const struct codec_field *field)
{
    return field->form == CODEC_U32 || field->form == CODEC_U64 || field->form == CODEC_TRY;
}

static uint64_t codec_number(const struct codec_field *field, const void *at)
{
    return field->form == CODEC_U64 ? *(const uint64_t *)at : *(const uint32_t *)at;
}

static thole_status field_to_pb(const struct codec_field *field, const uint8_t *plain, struct arena *arena,
                                uint8_t *pb, thole_error *reterr)
{
    const void *from = plain + field->at;
    void *to = pb + field->pb;
    if (codec_is_number(field))
        THOLE_TRY(range_check(field->range, codec_number(field, from), reterr));
    switch (field->form) {
    case CODEC_U32: *(uint32_t *)to = *(const uint32_t *)from; break;
    case CODEC_U64: *(uint64_t *)to = *(const uint64_t *)from; break;
    case CODEC_BOOL: *(protobuf_c_boolean *)to = *(const bool *)from; break;
    case CODEC_TRY: *(uint32_t *)to = *(const uint32_t *)from == 1 ? 0 : *(const uint32_t *)from; break;
    case CODEC_BYTES:
    case CODEC_NAME:
    case CODEC_ID:
    case CODEC_TYPE: *(ProtobufCBinaryData *)to = codec_bytes(*(const thole_slice *)from); break;
    case CODEC_LIST: return codec_list_to_pb(field, plain, arena, pb);
    case CODEC_PART: return part_to_pb(field, plain, arena, pb, reterr);
    case CODEC_END: assert(false); break;
    }
    return THOLE_OK;
}

thole_status codec_to_pb(const struct codec_message *table, const void *plain, struct arena *arena,
                         ProtobufCMessage **ret, thole_error *reterr)
{
    ProtobufCMessage *pb = message_create(table->descriptor, arena);
    if (pb == NULL)
        return arena_status(arena);
    for (const struct codec_field *field = table->fields; field->form != CODEC_END; field++)
        THOLE_TRY(field_to_pb(field, plain, arena, (uint8_t *)pb, reterr));
    *ret = pb;
    return THOLE_OK;
}

static thole_status bytes_check(const struct codec_field *field, thole_slice bytes, thole_error *reterr)
{
    if (field->form == CODEC_NAME)
        return codec_corrupt(name_check(bytes, field->what, reterr), reterr);
    if (field->form == CODEC_ID)
        return codec_corrupt(id_check(bytes, reterr), reterr);
    if (field->form == CODEC_TYPE)
        return codec_corrupt(error_type_check(bytes, reterr), reterr);
    if (field->most != 0 && bytes.len > field->most)
        return thole_fail(reterr, THOLE_CORRUPT, "%s has %zu bytes, at most %u are allowed", field->what,
                          bytes.len, (unsigned)field->most);
    return THOLE_OK;
}

static thole_status codec_list_from_pb(const struct codec_field *field, const uint8_t *pb,
                                       struct arena *arena, uint8_t *plain, thole_error *reterr)
{
    const ProtobufCBinaryData *from = *(ProtobufCBinaryData *const *)(const void *)(pb + field->pb);
    size_t const n = *(const size_t *)(const void *)(pb + field->pb_len);
    if (n > field->most)
        return thole_fail(reterr, THOLE_LIMIT, "there are %zu %s, at most %u are allowed", n, field->what,
                          (unsigned)field->most);
    thole_slice *to = n == 0 ? NULL : arena_array(arena, n, sizeof *to);
    if (n > 0 && to == NULL)
        return codec_full(arena, reterr);
    for (size_t i = 0; i < n; i++)
        THOLE_TRY(codec_dup(arena, from[i], &to[i], reterr));
    *(const thole_slice **)(void *)(plain + field->at) = to;
    *(size_t *)(void *)(plain + field->at_len) = n;
    return THOLE_OK;
}

static thole_status field_from_pb(const struct codec_field *field, const uint8_t *pb, struct arena *arena,
                                  uint8_t *plain, thole_error *reterr)
{
    const void *from = pb + field->pb;
    void *to = plain + field->at;
    const ProtobufCMessage *part;
    if (codec_is_number(field))
        THOLE_TRY(codec_corrupt(range_check(field->range, codec_number(field, from), reterr), reterr));
    switch (field->form) {
    case CODEC_U32: *(uint32_t *)to = *(const uint32_t *)from; break;
    case CODEC_U64: *(uint64_t *)to = *(const uint64_t *)from; break;
    case CODEC_BOOL: *(bool *)to = *(const protobuf_c_boolean *)from != 0; break;
    case CODEC_TRY: *(uint32_t *)to = *(const uint32_t *)from == 0 ? 1 : *(const uint32_t *)from; break;
    case CODEC_BYTES:
    case CODEC_NAME:
    case CODEC_ID:
    case CODEC_TYPE:
        THOLE_TRY(bytes_check(field, codec_slice(*(const ProtobufCBinaryData *)from), reterr));
        return codec_dup(arena, *(const ProtobufCBinaryData *)from, to, reterr);
    case CODEC_LIST: return codec_list_from_pb(field, pb, arena, plain, reterr);
    case CODEC_PART:
        memcpy(&part, from, sizeof part);
        return part == NULL ? THOLE_OK : codec_from_pb(field->part, part, arena, plain, reterr);
    case CODEC_END: assert(false); break;
    }
    return THOLE_OK;
}

thole_status codec_from_pb(const struct codec_message *table, const ProtobufCMessage *pb, struct arena *arena,
                           void *plain, thole_error *reterr)
{
    assert(pb->descriptor == table->descriptor);
    for (const struct codec_field *field = table->fields; field->form != CODEC_END; field++)
        THOLE_TRY(field_from_pb(field, (const uint8_t *)pb, arena, plain, reterr));
    return THOLE_OK;
}

void codec_into_range(const struct codec_message *table, void *plain)
{
    for (const struct codec_field *field = table->fields; field->form != CODEC_END; field++) {
        void *const at = (uint8_t *)plain + field->at;
        if (field->form == CODEC_PART)
            codec_into_range(field->part, plain);
        if (!codec_is_number(field))
            continue;
        uint64_t const number = range_nearest(range_field_row(field->range)->range, codec_number(field, at));
        if (field->form == CODEC_U64)
            *(uint64_t *)at = number;
        else
            *(uint32_t *)at = (uint32_t)number;
    }
}

/* ---- messages without a table ---- */

static thole_status pb_value_check(const ProtobufCMessageDescriptor *of,
                                   const ProtobufCFieldDescriptor *field, const uint8_t *value,
                                   thole_error *reterr)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessage *part;
        memcpy(&part, value, sizeof part);
        return part == NULL ? THOLE_OK : codec_ranges_check(part, reterr);
    }
    uint64_t const number = field->type == PROTOBUF_C_TYPE_UINT64 ? *(const uint64_t *)(const void *)value
                                                                  : *(const uint32_t *)(const void *)value;
    enum range_field const row = range_find(of->short_name, field->name);
    assert(row < RANGE_FIELDS); /* unit.range asks for a row of each number */
    return range_check(row, number, reterr);
}

static thole_status pb_field_check(const ProtobufCMessage *pb, const ProtobufCFieldDescriptor *field,
                                   thole_error *reterr)
{
    const uint8_t *value = (const uint8_t *)pb + field->offset;
    const void *const quantifier = (const uint8_t *)pb + field->quantifier_offset;
    size_t const size = field->type == PROTOBUF_C_TYPE_MESSAGE  ? sizeof(void *)
                        : field->type == PROTOBUF_C_TYPE_UINT64 ? sizeof(uint64_t)
                                                                : sizeof(uint32_t);
    size_t n = 1;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        n = *(const size_t *)quantifier;
        const uint8_t *items;
        memcpy(&items, value, sizeof items);
        value = items;
    } else if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        n = *(const uint32_t *)quantifier == field->id;
    }
    for (size_t i = 0; i < n; i++)
        THOLE_TRY(pb_value_check(pb->descriptor, field, value + i * size, reterr));
    return THOLE_OK;
}

thole_status codec_ranges_check(const ProtobufCMessage *pb, thole_error *reterr)
{
    for (unsigned i = 0; i < pb->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &pb->descriptor->fields[i];
        if (field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_UINT32 ||
            field->type == PROTOBUF_C_TYPE_UINT64)
            THOLE_TRY(pb_field_check(pb, field, reterr));
    }
    return THOLE_OK;
}
