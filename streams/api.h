/* Inside streams/: blocking calls of the JetStream API, with the server's errors turned into statuses. */
#ifndef THOLE_API_H
#define THOLE_API_H
#include "connection.h"
#include "json.h"

enum { API_ANSWER_MAX = 64 * 1024 * 1024, API_SUBJECT_BYTES = 512, API_BODY_BYTES = 128 };

enum api_error {
    API_NO_LEADER = 10008, /* "JetStream system temporarily unavailable" */
    API_NOT_LEADER = 10009,
    API_STREAM_NOT_FOUND = 10059,
    API_CONSUMER_NOT_FOUND = 10014,
    API_MESSAGE_NOT_FOUND = 10037,
    API_SEQUENCE_NOT_FOUND = 10043,
    API_DELETE_FAILED = 10057,
    API_STREAM_EXISTS = 10058,
    API_CONSUMER_EXISTS = 10013,
    API_CONSUMER_EXISTS_OTHER = 10148,
    API_WRONG_LAST = 10071,
    API_WRONG_LAST_BUSY = 10164, /* another such write is under way */
    API_NOT_ENABLED = 10076,
    API_NOT_ENABLED_FOR_ACCOUNT = 10039,
    /* A server could not make its files, as when its disk is full. */
    API_CONSUMER_CREATE_FAILED = 10012,
    API_CONSUMER_STORE_FAILED = 10104,
    API_STREAM_CREATE_FAILED = 10049,
    /* These last until a user makes room. */
    API_CONSUMERS_MAX = 10026, /* "maximum consumers limit reached" */
    API_STREAMS_MAX = 10027,
    API_ACCOUNT_FULL = 10002, /* "resource limits exceeded for account" */
    API_SERVER_FULL = 10023,  /* "insufficient resources" */
    API_MEMORY_FULL = 10028,
    API_STORAGE_FULL = 10047,
    API_STORE_FAILED = 10077, /* the disk, or a limit of the stream */
};

/* A small request body of numbers and flags, which always fits: {"seq":7}. Begin it, add members to its json,
 * end it. */
struct api_body {
    char bytes[API_BODY_BYTES];
    struct json_room room;
    struct json json;
};
void api_body_begin(struct api_body *body);
thole_slice api_body_end(struct api_body *body);
/* {"seq":n}: the body that asks for a message. */
thole_slice api_body_sequence(struct api_body *body, uint64_t sequence);
/* {"seq":n,"no_erase":true}: the body that deletes a message without overwriting its bytes. */
thole_slice api_body_delete(struct api_body *body, uint64_t sequence);

/*
 * $JS.API.<verb>.<target>. *ret_error (may be NULL): the server's err_code, 0 when there was none. NOT_FOUND,
 * CONFLICT, UNSUPPORTED (JetStream off), UNAVAILABLE (503, no leader, no answer), INVALID (refused); and
 * those of connection_request(). A cluster that has no leader right now is asked again until the connection's
 * request timeout has passed. @p answer is initialised by the caller and holds the whole answer.
 */
THOLE_NODISCARD thole_status api_call(struct connection *connection, const char *verb, const char *target,
                                      thole_slice body, struct buf *answer, uint32_t *ret_error,
                                      thole_error *reterr);
/* Classifies an answer that was received otherwise, in the same way. */
THOLE_NODISCARD thole_status api_judge(thole_slice answer, const char *verb, const char *target,
                                       uint32_t *ret_error, thole_error *reterr);
/* Why a server cannot store and what to do, for the codes that say so; NULL: another code. Static text, which
 * begins with CANNOT_STORE. */
const char *api_full(uint32_t code);
/* Of the "error" of an answer: another writer was first (Nats-Expected-Last-Sequence,
 * -Last-Subject-Sequence). */
bool api_is_wrong_last(thole_slice error);
/* Calls @p each with every item of a list that the API answers in pages: @p verb "STREAM.NAMES" or
 * "CONSUMER.LIST", @p member "streams" or "consumers". The item is a JSON value, borrowed for the call.
 * THOLE_CORRUPT: a page does not say how many there are. */
typedef void api_item_fn(void *arg, thole_slice item);
THOLE_NODISCARD thole_status api_list(struct connection *connection, const char *verb, const char *target,
                                      const char *member, api_item_fn *each, void *arg, thole_error *reterr);
#endif
