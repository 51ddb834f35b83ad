/* protobuf-c over arenas and buffers. */
#include "codec.h"
#include <assert.h>

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
    (void)data; /* all at once, by codec_release() */
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
