#include "query_reply.h"
#include "log.h"
#include "message.h"
#include "messages.pb-c.h"
#include "proto_json.h"

/* The answer that is in @p body as JSON, instead. */
static thole_status answer_in_json(struct buf *body, thole_error *reterr)
{
    struct codec_scratch scratch;
    ProtobufCMessage *message = NULL;
    codec_init(&scratch);
    thole_status status = codec_unpack(&thole__v1__query_answer__descriptor, buf_bytes(body), body->len,
                                       &scratch, "answer", &message, reterr);
    buf_clear(body);
    if (status == THOLE_OK)
        status = proto_json_encode(message, body);
    codec_release(&scratch);
    return status;
}

thole_status query_reply(struct connection *connection, const char *reply, bool json,
                         const struct query_answer *said, thole_error *reterr)
{
    struct header const type = {"Content-Type", THOLE_STR("application/json")};
    struct buf body;
    buf_init(&body, 2 * MESSAGE_BYTES_MAX);
    thole_status status = query_answer_encode(said, &body);
    if (status == THOLE_OK && json)
        status = answer_in_json(&body, reterr);
    if (status == THOLE_OK)
        status = connection_publish(connection, reply, json ? &type : NULL, json, buf_bytes(&body), reterr);
    buf_release(&body);
    return status;
}

void query_reply_text(struct connection *connection, const char *reply, bool json, thole_status status,
                      const char *text)
{
    struct query_answer const said = {.status = (uint32_t)status, .data = thole_slice_from(text)};
    thole_error err = {0};
    if (query_reply(connection, reply, json, &said, &err) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "query", "an answer was not sent: %s", err.text);
}
