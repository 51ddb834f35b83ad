/* protobuf-c over arenas and buffers. */
#include "codec.h"
#include "message.h"
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

static thole_status list_to_pb(const struct codec_field *field, const uint8_t *plain, struct arena *arena,
                               uint8_t *pb)
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
                               uint8_t *pb)
{
    ProtobufCMessage *part;
    THOLE_TRY(codec_to_pb(field->part, plain, arena, &part));
    if (protobuf_c_message_get_packed_size(part) > 0)
        memcpy(pb + field->pb, &part, sizeof part); /* the protobuf message has its own type for it */
    return THOLE_OK;
}

static thole_status field_to_pb(const struct codec_field *field, const uint8_t *plain, struct arena *arena,
                                uint8_t *pb)
{
    const void *from = plain + field->at;
    void *to = pb + field->pb;
    switch (field->form) {
    case CODEC_U32: *(uint32_t *)to = *(const uint32_t *)from; break;
    case CODEC_U64: *(uint64_t *)to = *(const uint64_t *)from; break;
    case CODEC_BOOL: *(protobuf_c_boolean *)to = *(const bool *)from; break;
    case CODEC_TRY: *(uint32_t *)to = *(const uint32_t *)from == 1 ? 0 : *(const uint32_t *)from; break;
    case CODEC_BYTES:
    case CODEC_NAME:
    case CODEC_ID:
    case CODEC_TYPE: *(ProtobufCBinaryData *)to = codec_bytes(*(const thole_slice *)from); break;
    case CODEC_LIST: return list_to_pb(field, plain, arena, pb);
    case CODEC_PART: return part_to_pb(field, plain, arena, pb);
    case CODEC_END: assert(false); break;
    }
    return THOLE_OK;
}

thole_status codec_to_pb(const struct codec_message *table, const void *plain, struct arena *arena,
                         ProtobufCMessage **ret)
{
    ProtobufCMessage *pb = message_create(table->descriptor, arena);
    if (pb == NULL)
        return arena_status(arena);
    for (const struct codec_field *field = table->fields; field->form != CODEC_END; field++)
        THOLE_TRY(field_to_pb(field, plain, arena, (uint8_t *)pb));
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

static thole_status list_from_pb(const struct codec_field *field, const uint8_t *pb, struct arena *arena,
                                 uint8_t *plain, thole_error *reterr)
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
    case CODEC_LIST: return list_from_pb(field, pb, arena, plain, reterr);
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
