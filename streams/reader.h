/* Reading streams: blocking reads for set-up, loading and people; ordered readers for inboxes and buckets. */
#ifndef THOLE_READER_H
#define THOLE_READER_H
#include "connection.h"
#include "requests.h"

struct stream_bounds {
    uint64_t first, last; /* sequences; last 0 = never written; first = last + 1 when empty */
    uint64_t messages;
};
/* From the stream's leader. */
THOLE_NODISCARD thole_status stream_bounds(struct connection *connection, const char *stream,
                                           struct stream_bounds *ret, thole_error *reterr);
/*
 * Last message whose subject matches (wildcards allowed), from the leader. *ret_sequence = 0: there is none.
 * @p ret_body may be NULL. In all messages of the stream the second token must be the same, as it is in
 * thole's: a literal subject is asked for with a wildcard there, because nats-server 2.10.27 otherwise says
 * "not found" after the subject's last message was deleted.
 */
THOLE_NODISCARD thole_status stream_last_by_subject(struct connection *connection, const char *stream,
                                                    const char *subject, uint64_t *ret_sequence,
                                                    struct buf *ret_body, thole_error *reterr);
/* The clock of the stream's leader, milliseconds since 1970. */
THOLE_NODISCARD thole_status stream_server_ms(struct connection *connection, const char *stream,
                                              uint64_t *ret_ms, thole_error *reterr);
/* A message of a stream; zeroed: there is none. */
struct stored_message {
    uint64_t sequence, stored_ns; /* when: nanoseconds since 1970, by the clock of its server; 0: not known */
};
/* Like stream_last_by_subject(), with the time; from @p from on the first matching message, 0: the last
 * one. */
THOLE_NODISCARD thole_status stream_find(struct connection *connection, const char *stream,
                                         const char *subject, uint64_t from, struct stored_message *ret,
                                         struct buf *ret_body, thole_error *reterr);
/* The body of one message, from the leader; *ret_there false: it is not there. */
THOLE_NODISCARD thole_status stream_message(struct connection *connection, const char *stream,
                                            uint64_t sequence, bool *ret_there, struct buf *ret_body,
                                            thole_error *reterr);
/* The first message at @p from or after it, by the leader. *ret_sequence = 0: none. */
THOLE_NODISCARD thole_status stream_next(struct connection *connection, const char *stream, uint64_t from,
                                         uint64_t *ret_sequence, thole_error *reterr);
/* The answer of a raw $JS.API.STREAM.MSG.GET.<stream> request (see requests_send()). NOT_FOUND → sequence 0.
 */
THOLE_NODISCARD thole_status stream_get_request(struct buf *to, const char *subject);
/* The body of a direct get (requests_get()) of one message; of the first message of a literal subject.
 * stream_get_request() makes the body for the last one. */
THOLE_NODISCARD thole_status stream_sequence_request(struct buf *to, uint64_t sequence);
THOLE_NODISCARD thole_status stream_first_request(struct buf *to, const char *subject);
THOLE_NODISCARD thole_status stream_get_answer(thole_slice answer, uint64_t *ret_sequence,
                                               struct buf *ret_body, thole_error *reterr);
/* The headers of the message in such an answer, as they were published: "NATS/1.0\r\nName: value\r\n...".
 * Empty: it has none. */
THOLE_NODISCARD thole_status stream_get_headers(thole_slice answer, struct buf *to, thole_error *reterr);
/* The subject of the message in such an answer. */
THOLE_NODISCARD thole_status stream_get_subject(thole_slice answer, struct buf *to, thole_error *reterr);

/* Return anything but THOLE_OK to stop; it is passed on. */
typedef thole_status stream_read_fn(void *arg, uint64_t sequence, thole_slice subject, thole_slice body);
/*
 * Calls @p each for every message with from <= sequence <= to, in order, that matches @p filter (NULL = all).
 * Complete or an error: it reads up to the leader's last sequence, with up to three consumers if they are
 * lost. Messages that are stored meanwhile may or may not be included. Blocking: a round trip for an empty
 * range, about two for an instance's history; one more heartbeat (250 ms) when the stream's last messages
 * were deleted and there is no filter. Uses an ephemeral push consumer with flow control and removes it.
 * THOLE_UNAVAILABLE: try again after the last sequence that was delivered.
 */
THOLE_NODISCARD thole_status stream_read(struct connection *connection, const char *stream,
                                         const char *filter, uint64_t from, uint64_t to, stream_read_fn *each,
                                         void *arg, thole_error *reterr);

/* Like stream_read(), with headers and the time at which each message was stored, for users who may create a
 * consumer and remove none: it is left to the server, which removes it within seconds. */
typedef thole_status stream_delivery_fn(void *arg, uint64_t sequence, const struct delivery *delivery);
THOLE_NODISCARD thole_status stream_read_deliveries(struct connection *connection, const char *stream,
                                                    const char *filter, uint64_t from, uint64_t to,
                                                    stream_delivery_fn *each, void *arg, thole_error *reterr);
/* Like stream_read_deliveries(), without a consumer, for users who may create none. Asks the leader for each
 * message, with some requests under way. THOLE_DENIED: this user may not read the stream. */
THOLE_NODISCARD thole_status stream_fetch(struct connection *connection, const char *stream, uint64_t from,
                                          uint64_t to, stream_delivery_fn *each, void *arg,
                                          thole_error *reterr);
/*
 * Like stream_read(), without a consumer, for clients: their users need no right to create any. A round trip
 * for each message, from the leader; so for histories of one instance, not for whole streams. @p filter must
 * not be NULL. Complete up to the stream's last message at the call, as each answer says where the next
 * message is.
 */
THOLE_NODISCARD thole_status stream_walk(struct connection *connection, const char *stream,
                                         const char *filter, uint64_t from, uint64_t to, stream_read_fn *each,
                                         void *arg, thole_error *reterr);

/* Removes one message for good, without overwriting it. NOT_FOUND counts as done. */
THOLE_NODISCARD thole_status stream_delete(struct connection *connection, const char *stream,
                                           uint64_t sequence, thole_error *reterr);
/* Like stream_delete(), as a request of a window, which reports the result. */
THOLE_NODISCARD thole_status stream_delete_send(struct requests *requests, const char *stream,
                                                uint64_t sequence, uint64_t token, thole_error *reterr);
/* Like stream_delete(), without an answer: the caller does not learn whether it was done. One server carries
 * out a later deletion on the same connection after this one; in a cluster they may change places. */
THOLE_NODISCARD thole_status stream_delete_tell(struct connection *connection, const char *stream,
                                                uint64_t sequence, thole_error *reterr);
/* The answer to stream_delete_send(). *ret_was_there: it has removed the message; there was none otherwise,
 * or (nats-server 2.10 does not say which) it failed. */
THOLE_NODISCARD thole_status stream_delete_answer(thole_slice answer, const char *stream, bool *ret_was_there,
                                                  thole_error *reterr);
/* Like stream_delete(), for many at once. THOLE_UNAVAILABLE: some may still exist. */
THOLE_NODISCARD thole_status stream_delete_all(struct connection *connection, const char *stream,
                                               const uint64_t *sequences, size_t n, thole_error *reterr);
/* Removes every message below @p sequence, but never the stream's last one: see reader.c. */
THOLE_NODISCARD thole_status stream_purge_below(struct connection *connection, const char *stream,
                                                uint64_t sequence, thole_error *reterr);

/*
 * Whether the stream has not gone back: message @p sequence was stored at @p stored_ns (0: not known), or was
 * removed since and the stream continues after it. False: the stream lost its tail, or was created again (a
 * server that lost power or was restored, a deleted stream), and the same sequences belong, or will belong,
 * to other messages. Asks the leader. *ret_last: its last sequence.
 */
THOLE_NODISCARD thole_status stream_still_holds(struct connection *connection, const char *stream,
                                                uint64_t sequence, uint64_t stored_ns, bool *ret,
                                                uint64_t *ret_last, thole_error *reterr);

/*
 * An ordered, gap-free reader: calls @p each from the connection's reading thread, one at a time, for every
 * message from @p from on, each sequence once. Messages that are purged before they were read are skipped.
 *
 * @p each must not block, as all other messages of the connection wait for it, unless @p room is given. That
 * function is called before each message: when it returns false, this message and those after it come on a
 * thread of their own, where @p each may block for a while (flow control holds the server back).
 *
 * Without @p lost the reader is endless, through reconnects, server restarts and lost consumers. A stream
 * that goes back meanwhile (stream_still_holds()) is not detected.
 *
 * With @p lost the reader uses one consumer: when that may be lost, also with the connection, @p lost is
 * called once and @p each not again, except for a call in progress. So all messages are of a stream that did
 * not go back: a check of the stream after ordered_reader_open() holds for all of them.
 *
 * @p last_per_subject starts with the newest message of each subject instead (for buckets), and again with
 * each new consumer, whatever was delivered before.
 */
struct ordered_reader;
struct inflow;
typedef void ordered_reader_fn(void *arg, uint64_t sequence, const struct delivery *delivery);
/* Whether each() will not block now. Must not block, nor close the reader. */
typedef bool ordered_reader_room_fn(void *arg, const struct delivery *delivery);
/* Must not block, nor close the reader. @p with_connection: with the connection; otherwise its consumer
 * alone. */
typedef void ordered_reader_lost_fn(void *arg, bool with_connection);
struct ordered_reader_options {
    const char *stream, *filter; /* filter NULL = all */
    uint64_t from;
    bool last_per_subject;
    ordered_reader_fn *each;
    ordered_reader_room_fn *room; /* may be NULL */
    ordered_reader_lost_fn *lost; /* may be NULL */
    void *arg;
    struct inflow *inflow; /* shared with other readers of the connection (inflow.h); NULL: none */
};
/* When the stream stored what ordered_reader_fn is given, in nanoseconds since 1970; 0: not a delivery. */
uint64_t delivery_stored_ns(const struct delivery *delivery);
/* How many messages of the consumer follow this one. 0 also: not a delivery. */
uint64_t delivery_pending(const struct delivery *delivery);
THOLE_NODISCARD thole_status ordered_reader_open(struct connection *connection,
                                                 const struct ordered_reader_options *options,
                                                 struct ordered_reader **ret, thole_error *reterr);
/* Whether the consumer waits for its turn, and sends nothing (inflow.h). */
bool ordered_reader_waits(struct ordered_reader *reader);
/* NULL-safe; no callback runs after it returns. Not from the callback. */
void ordered_reader_close(struct ordered_reader *reader);
#endif
