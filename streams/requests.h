/*
 * Asynchronous requests and acknowledged publishes over one wildcard inbox: a window of slots, the slot's
 * number and generation in the reply subject. The base of the append pipeline. Thread-safe.
 *
 * Each accepted request is answered exactly once by the callback: with an answer, or with REQUEST_UNKNOWN
 * after the timeout or as soon as the connection is lost. Callbacks run on the connection's reading thread or
 * on the connection's, one at a time, in the order in which answers arrive (requests that time out: oldest
 * first), must not block, and may send new requests. No lock that sending takes is held meanwhile. Idle
 * windows cause no wake-ups. Requests that are answered with a stream's message ($JS.API.STREAM.MSG.GET.,
 * $JS.API.DIRECT.GET.) wait in the window while INFLOW_READS of them are under way (inflow.h); their time
 * begins when they are sent; one that has waited for four timeouts is answered like one that has none.
 */
#ifndef THOLE_REQUESTS_H
#define THOLE_REQUESTS_H
#include "connection.h"

/* With this begins what request_reason() says when storage is full. */
#define CANNOT_STORE "nats-server cannot store it"
/* The code of a REQUEST_FAILED that lasts: the message is larger than the stream's max_msg_size. */
enum { REQUEST_TOO_LARGE = 10054 };
/* Of one that does not: another message with this message id is under way. */
enum { REQUEST_UNDER_WAY = 10158 };

enum request_result {
    REQUEST_ANSWERED = 0, /* raw requests: the body is the answer. Direct gets: there is a message or none */
    REQUEST_STORED,       /* publish: stored at sequence (duplicate: it was there already) */
    REQUEST_REFUSED,      /* 10071, 10164: another writer was first */
    REQUEST_BUSY,         /* 10167, 503, request_is_full(): try again later */
    REQUEST_FAILED,       /* any other error of the server: code and text say which */
    REQUEST_UNKNOWN,      /* no answer: it may or may not have happened */
};

struct request_done {
    enum request_result result;
    uint64_t token;    /* the caller's */
    uint64_t sequence; /* REQUEST_STORED; direct get: of the message, 0: there is none */
    bool duplicate;
    bool lost;           /* REQUEST_UNKNOWN: since the connection was */
    uint32_t err_code;   /* the server's err_code, 0 = none */
    thole_slice subject; /* direct get: of the message; borrowed for the callback */
    thole_slice body;    /* of the answer or the message; borrowed for the callback */
};
/* The code of a REQUEST_BUSY that lasts: storage is full, of the server, the account or the stream. */
bool request_is_full(uint32_t err_code);
/* Why a publish was not stored, for people: what the code means where it is known, and what to do. Static
 * text, without the code of a REQUEST_FAILED that is not known. */
const char *request_reason(enum request_result result, uint32_t err_code);
typedef void request_done_fn(void *arg, const struct request_done *done);

struct requests;
/* @p window: largest number of requests in flight. */
THOLE_NODISCARD thole_status requests_open(struct connection *connection, size_t window, uint64_t timeout_ms,
                                           request_done_fn *done, void *arg, struct requests **ret,
                                           thole_error *reterr);
/* Answers what is in flight with REQUEST_UNKNOWN, then frees. NULL-safe. Not from a callback; no other thread
 * may be sending. */
void requests_close(struct requests *requests);
/* With those that wait in the window. */
size_t requests_in_flight(const struct requests *requests);

struct publish {
    const char *subject;
    thole_slice body;
    const char *message_id;       /* Nats-Msg-Id; NULL = none */
    bool expect_last;             /* send Nats-Expected-Last-Sequence */
    uint64_t expected_last;       /* of the stream; 0 = empty stream */
    const struct header *headers; /* more of them */
    size_t headers_len;
};
/* JetStream publish. THOLE_OK: the callback will come. THOLE_UNAVAILABLE (not connected), THOLE_LIMIT (window
 * full, or larger than the server's max_payload), THOLE_INVALID (subject, header or message id with bytes
 * that do not belong there): nothing was sent and no callback comes. Publishes of one thread reach the server
 * in order. */
THOLE_NODISCARD thole_status requests_publish(struct requests *requests, const struct publish *publish,
                                              uint64_t token, thole_error *reterr);
/* Raw request, for example to $JS.API.STREAM.MSG.GET.<stream>. */
THOLE_NODISCARD thole_status requests_send(struct requests *requests, const char *subject, thole_slice body,
                                           uint64_t token, thole_error *reterr);
/*
 * A direct get: @p subject is $JS.API.DIRECT.GET.<stream>, @p body says which message
 * (stream_sequence_request()). The message comes as it was stored, without JSON and base64. With replicas any
 * of them may answer: one that lags lacks the newest messages, and may still have removed ones.
 */
THOLE_NODISCARD thole_status requests_get(struct requests *requests, const char *subject, thole_slice body,
                                          uint64_t token, thole_error *reterr);
#endif
