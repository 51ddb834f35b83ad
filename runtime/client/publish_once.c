#include "publish_once.h"
#include "proto_json.h"
#include "repetition.h"
#include "tagged_hash.h"

enum { ID_BYTES_MAX = 8 + 2 * THOLE_ID_BYTES_MAX };

/* Of requests of one kind to one instance; ids have no NUL. */
static struct tagged_hash publish_once_id(const struct message *message)
{
    struct buf of;
    buf_init(&of, ID_BYTES_MAX);
    buf_printf(&of, "%d.", (int)message->kind);
    buf_slice(&of, message->instance);
    buf_append(&of, "", 1);
    buf_slice(&of, message->request_id);
    struct tagged_hash const id = tagged_hash_make("thole request 1", buf_bytes(&of));
    buf_release(&of);
    return id;
}

/* Compares with the message that the inbox has there, if it is of the same id. If it is gone, or may not be
 * read, the engine compares. */
static thole_status publish_once_compare(struct watch *watch, const struct letter *letter,
                                         const struct message *message, uint64_t sequence,
                                         thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct buf body, converted = {.ptr = NULL};
    struct message before;
    struct arena arena;
    bool there = false;
    buf_init(&body, MESSAGE_BYTES_MAX);
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = place_inbox(watch->client, watch->instance, letter, &place, NULL);
    if (status == THOLE_OK)
        status = place_message(watch->client, &place, sequence, &there, &body, NULL);
    if (status == THOLE_OK && there)
        status = message_decode(proto_json_inbox_body(buf_bytes(&body), &converted), &arena, &before, NULL);
    bool const other = status == THOLE_OK && there && repetition_is_of_request(message, &before) &&
                       !repetition_is_same(message, &before);
    status = other ? repetition_refuse_after(message, &before, reterr) : THOLE_OK;
    place_release(&place);
    buf_release(&converted);
    buf_release(&body);
    arena_release(&arena);
    return status;
}

/* A repetition is stored without the id: a server may remember a message that the stream has lost. */
thole_status publish_once(struct watch *watch, const struct letter *letter, const struct message *message,
                          uint64_t until_ms, thole_error *reterr)
{
    struct tagged_hash const id = publish_once_id(message);
    watch->message_id = id.text;
    thole_status status = watch_publish(watch, letter, until_ms, reterr);
    watch->message_id = NULL;
    uint64_t const twin = status == THOLE_OK ? watch_take_twin(watch) : 0;
    if (twin == 0)
        return status;
    THOLE_TRY(publish_once_compare(watch, letter, message, twin, reterr));
    return watch_publish(watch, letter, until_ms, reterr);
}
