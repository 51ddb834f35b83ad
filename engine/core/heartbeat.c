/* The codec of engine heartbeats. */
#include "codec.h"
#include "message.h"
#include "messages.pb-c.h"
#include <string.h>

/* ---- encoding: pointers and arrays live in one arena until it is packed ---- */

static thole_status slices_to_pb(struct arena *arena, const thole_slice *from, size_t n,
                                 ProtobufCBinaryData **ret)
{
    ProtobufCBinaryData *to = arena_array(arena, n, sizeof *to);
    if (to == NULL)
        return THOLE_NOMEM;
    for (size_t i = 0; i < n; i++)
        to[i] = codec_bytes(from[i]);
    *ret = to;
    return THOLE_OK;
}

static thole_status needs_to_pb(struct arena *arena, const struct heartbeat *from,
                                Thole__V1__NodeHeartbeat *pb)
{
    pb->needs = arena_array(arena, from->needs_len, sizeof(Thole__V1__PartitionNeeds *));
    Thole__V1__PartitionNeeds *needs = arena_array(arena, from->needs_len, sizeof *needs);
    if (pb->needs == NULL || needs == NULL)
        return THOLE_NOMEM;
    for (size_t i = 0; i < from->needs_len; i++) {
        const struct partition_needs *need = &from->needs[i];
        thole__v1__partition_needs__init(&needs[i]);
        needs[i].partition = need->partition;
        needs[i].n_orchestrations = need->orchestrations_len;
        THOLE_TRY(
            slices_to_pb(arena, need->orchestrations, need->orchestrations_len, &needs[i].orchestrations));
        pb->needs[i] = &needs[i];
    }
    pb->n_needs = from->needs_len;
    return THOLE_OK;
}

static thole_status heartbeat_pack(struct arena *arena, const struct heartbeat *from, struct buf *to)
{
    Thole__V1__NodeHeartbeat pb = THOLE__V1__NODE_HEARTBEAT__INIT;
    pb.format = MESSAGE_FORMAT;
    pb.node = codec_bytes(from->node);
    pb.started_ms = from->started_ms;
    pb.takes_results = from->takes_results;
    pb.reads_ranges = from->reads_ranges;
    pb.reads_references = from->reads_references;
    pb.reads_lists = from->reads_lists;
    pb.n_orchestrations = from->orchestrations_len;
    THOLE_TRY(slices_to_pb(arena, from->orchestrations, from->orchestrations_len, &pb.orchestrations));
    THOLE_TRY(needs_to_pb(arena, from, &pb));
    return codec_pack(&pb.base, to);
}

thole_status heartbeat_encode(const struct heartbeat *heartbeat, struct buf *to)
{
    struct arena arena;
    arena_init(&arena, CODEC_SCRATCH_MAX);
    thole_status const status = heartbeat_pack(&arena, heartbeat, to);
    arena_release(&arena);
    return status;
}

/* ---- decoding ---- */

/* "name", or "name@version" with a version of at most ten digits. */
static thole_status check_versioned(thole_slice name, thole_error *reterr)
{
    enum { DIGITS_MAX = 10 };
    const uint8_t *at = name.len == 0 ? NULL : memchr(name.ptr, '@', name.len);
    if (at == NULL)
        return name_check(name, "orchestration", reterr);
    size_t const len = (size_t)(at - name.ptr), digits = name.len - len - 1;
    bool good = digits > 0 && digits <= DIGITS_MAX && at[1] != '0';
    for (size_t i = 1; i <= digits; i++)
        good = good && at[i] >= '0' && at[i] <= '9';
    if (!good)
        return thole_fail(reterr, THOLE_INVALID, "orchestration has a version that is no number");
    return name_check((thole_slice){name.ptr, len}, "orchestration", reterr);
}

static thole_status names_decode(struct arena *arena, const ProtobufCBinaryData *from, size_t n,
                                 const thole_slice **ret, thole_error *reterr)
{
    thole_slice *names = arena_array(arena, n, sizeof *names);
    if (names == NULL)
        return codec_full(arena, reterr);
    for (size_t i = 0; i < n; i++) {
        THOLE_TRY(codec_corrupt(check_versioned(codec_slice(from[i]), reterr), reterr));
        THOLE_TRY(codec_dup(arena, from[i], &names[i], reterr));
    }
    *ret = names;
    return THOLE_OK;
}

static thole_status needs_decode(struct arena *arena, const Thole__V1__NodeHeartbeat *pb,
                                 struct heartbeat *ret, thole_error *reterr)
{
    struct partition_needs *needs = arena_array(arena, pb->n_needs, sizeof *needs);
    if (needs == NULL)
        return codec_full(arena, reterr);
    for (size_t i = 0; i < pb->n_needs; i++) {
        const Thole__V1__PartitionNeeds *from = pb->needs[i];
        needs[i].partition = from->partition;
        needs[i].orchestrations_len = from->n_orchestrations;
        THOLE_TRY(names_decode(arena, from->orchestrations, from->n_orchestrations, &needs[i].orchestrations,
                               reterr));
    }
    ret->needs = needs;
    ret->needs_len = pb->n_needs;
    return THOLE_OK;
}

static thole_status heartbeat_from_pb(struct arena *arena, const Thole__V1__NodeHeartbeat *pb,
                                      struct heartbeat *ret, thole_error *reterr)
{
    if (pb->format > MESSAGE_FORMAT)
        return thole_fail(reterr, THOLE_UNSUPPORTED, "heartbeat format %u, this engine knows %d", pb->format,
                          MESSAGE_FORMAT);
    if (pb->format == 0)
        return thole_fail(reterr, THOLE_CORRUPT, "heartbeat without a format");
    if (pb->node.len == 0 || pb->node.len > THOLE_ID_BYTES_MAX)
        return thole_fail(reterr, THOLE_CORRUPT, "node id has %zu bytes", pb->node.len);
    THOLE_TRY(codec_dup(arena, pb->node, &ret->node, reterr));
    THOLE_TRY(codec_corrupt(codec_ranges_check(&pb->base, reterr), reterr));
    ret->started_ms = pb->started_ms;
    ret->takes_results = pb->takes_results;
    ret->reads_ranges = pb->reads_ranges;
    ret->reads_references = pb->reads_references;
    ret->reads_lists = pb->reads_lists;
    ret->orchestrations_len = pb->n_orchestrations;
    THOLE_TRY(names_decode(arena, pb->orchestrations, pb->n_orchestrations, &ret->orchestrations, reterr));
    return needs_decode(arena, pb, ret, reterr);
}

thole_status heartbeat_decode(thole_slice bytes, struct arena *arena, struct heartbeat *ret,
                              thole_error *reterr)
{
    struct heartbeat heartbeat = {.started_ms = 0};
    struct codec_scratch scratch;
    ProtobufCMessage *pb = NULL;
    codec_init(&scratch);
    thole_status status = codec_unpack(&thole__v1__node_heartbeat__descriptor, bytes, MESSAGE_BYTES_MAX,
                                       &scratch, "heartbeat", &pb, reterr);
    if (status == THOLE_OK)
        status = heartbeat_from_pb(arena, (const Thole__V1__NodeHeartbeat *)pb, &heartbeat, reterr);
    codec_release(&scratch);
    if (status == THOLE_OK)
        *ret = heartbeat;
    return status;
}
