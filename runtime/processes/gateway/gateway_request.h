/*
 * Inside the gateway role: one request of a client, and its answer, in protobuf or JSON. All answers begin
 * with the fields status and text.
 */
#ifndef THOLE_GATEWAY_REQUEST_H
#define THOLE_GATEWAY_REQUEST_H
#include "codec.h"
#include "connection.h"
#include "endpoints.h"
#include "gateway.pb-c.h"
#include "thole/client.h"

enum { GATEWAY_MESSAGE_BYTES_MAX = 8 * 1024 * 1024 };
enum { CLIENT_TOKEN_OPERATION = 4 }; /* of thole.<ns>.gateway.client.<operation>[.<name>][.by.<actor>] */

enum gateway_form { GATEWAY_PROTOBUF, GATEWAY_JSON };

struct gateway_request {
    struct connection *connection;
    struct endpoint *endpoint;
    uint64_t received_us;
    enum gateway_form form;
    char *reply;
    char *name; /* a token of the subject: of what the request is about */
    struct codec_scratch scratch;
    const ProtobufCMessage *message; /* in scratch; of the endpoint's kind */
    const char **item_errors;        /* in scratch; of endpoint->items, NULL: all could be read */
    struct connection *asks;         /* NULL, or the connection by which the answer asks whether it has a
                                        subscriber: who */
    const char *unheard;             /* subscribes this subject there is told when nobody does; borrowed */
    thole_sender sender;             /* in scratch; of a client's request: who asks */
};

/* NULL: it cannot be read, and has been refused; or nobody waits for an answer. */
struct gateway_request *gateway_request_take(struct connection *connection, struct endpoint *endpoint,
                                             const struct delivery *delivery);
/* A text of an answer, followed by a NUL; "" when there is no memory. */
char *gateway_copy_text(struct arena *arena, thole_slice text);
/* Sends the answer, whose status and text are set from @p status and @p text, and frees the request. */
void gateway_answer(struct gateway_request *request, ProtobufCMessage *answer, thole_status status,
                    const char *text);
/* Like gateway_answer(), with only a status and a text. */
void gateway_refuse(struct gateway_request *request, thole_status status, const char *fmt, ...)
    THOLE_PRINTF(3, 4);
/* Frees it without an answer; NULL-safe. */
void gateway_request_free(struct gateway_request *request);
/* A message that nobody asked for; best effort. */
void gateway_tell(struct connection *connection, const char *subject, enum gateway_form form,
                  const ProtobufCMessage *message);
#endif
