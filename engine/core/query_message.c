/* The codec of queries and their answers. */
#include "query_message.h"
#include "codec.h"
#include "message.h"
#include "messages.pb-c.h"

static thole_status check_format(uint32_t format, const char *what, thole_error *reterr)
{
    if (format > MESSAGE_FORMAT)
        return thole_fail(reterr, THOLE_UNSUPPORTED, "%s format %u, this program knows %d", what, format,
                          MESSAGE_FORMAT);
    return format == 0 ? thole_fail(reterr, THOLE_CORRUPT, "%s without a format", what) : THOLE_OK;
}

/* ---- the question ---- */

thole_status query_encode(const struct query *query, struct buf *to)
{
    Thole__V1__Query pb = THOLE__V1__QUERY__INIT;
    pb.format = MESSAGE_FORMAT;
    pb.instance = codec_bytes(query->instance);
    pb.name = codec_bytes(query->name);
    pb.input = codec_bytes(query->input);
    return codec_pack(&pb.base, to);
}

static thole_status query_from_pb(const Thole__V1__Query *pb, struct arena *arena, struct query *ret,
                                  thole_error *reterr)
{
    THOLE_TRY(check_format(pb->format, "query", reterr));
    THOLE_TRY(codec_corrupt(id_check(codec_slice(pb->instance), reterr), reterr));
    THOLE_TRY(codec_corrupt(name_check(codec_slice(pb->name), "query", reterr), reterr));
    THOLE_TRY(codec_dup(arena, pb->instance, &ret->instance, reterr));
    THOLE_TRY(codec_dup(arena, pb->name, &ret->name, reterr));
    return codec_dup(arena, pb->input, &ret->input, reterr);
}

thole_status query_decode(thole_slice bytes, struct arena *arena, struct query *ret, thole_error *reterr)
{
    struct query query = {.instance = {NULL, 0}};
    struct codec_scratch scratch;
    ProtobufCMessage *pb = NULL;
    codec_init(&scratch);
    thole_status status =
        codec_unpack(&thole__v1__query__descriptor, bytes, MESSAGE_BYTES_MAX, &scratch, "query", &pb, reterr);
    if (status == THOLE_OK)
        status = query_from_pb((const Thole__V1__Query *)pb, arena, &query, reterr);
    codec_release(&scratch);
    if (status == THOLE_OK)
        *ret = query;
    return status;
}

/* ---- the answer ---- */

thole_status query_answer_encode(const struct query_answer *answer, struct buf *to)
{
    Thole__V1__QueryAnswer pb = THOLE__V1__QUERY_ANSWER__INIT;
    pb.format = MESSAGE_FORMAT;
    pb.status = answer->status;
    pb.data = codec_bytes(answer->data);
    return codec_pack(&pb.base, to);
}

thole_status query_answer_decode(thole_slice bytes, struct arena *arena, struct query_answer *ret,
                                 thole_error *reterr)
{
    struct query_answer answer = {.status = THOLE_OK};
    struct codec_scratch scratch;
    ProtobufCMessage *pb = NULL;
    codec_init(&scratch);
    thole_status status = codec_unpack(&thole__v1__query_answer__descriptor, bytes, MESSAGE_BYTES_MAX,
                                       &scratch, "query answer", &pb, reterr);
    const Thole__V1__QueryAnswer *from = (const Thole__V1__QueryAnswer *)pb;
    if (status == THOLE_OK)
        status = check_format(from->format, "query answer", reterr);
    if (status == THOLE_OK)
        status = codec_corrupt(codec_ranges_check(&from->base, reterr), reterr);
    if (status == THOLE_OK) {
        answer.status = from->status;
        status = codec_dup(arena, from->data, &answer.data, reterr);
    }
    codec_release(&scratch);
    if (status == THOLE_OK)
        *ret = answer;
    return status;
}
