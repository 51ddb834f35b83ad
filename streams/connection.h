/*
 * One NATS connection. Thread-safe. It has two threads: one reads, and calls the subscribers (loop.h); the
 * other one, the keeper, connects and fires alarms. Callbacks run on either. They must not block, must not
 * wait for an answer of the server, must not open or close anything of streams/, and must not close the
 * connection.
 *
 * The connection reconnects for ever, with capped backoff and jitter (retry_pause.h), by making a new
 * natsConnection for each epoch: a message that was received in an epoch can only be answered in it, and
 * messages that were being sent when it ended are not sent later. It pings every 3 s: a frozen server is
 * noticed within about 10 s, one that does not read sent messages within the request timeout and 2 s.
 * Publishing does not wait for the server, but for the socket while more than 1 MiB is not written.
 * inbox_prefix.h describes the inboxes. User and password go into the URL, which should list all servers of a
 * cluster.
 *
 * Statuses of streams/: THOLE_OK; THOLE_UNAVAILABLE (not connected, timeout, no responders, no leader: try
 * again); THOLE_DENIED; THOLE_NOT_FOUND; THOLE_CONFLICT; THOLE_UNSUPPORTED; THOLE_LIMIT; THOLE_INVALID;
 * THOLE_NOMEM; THOLE_CORRUPT. Texts name the subject or stream, the server's words, and what to try; never
 * credentials.
 */
#ifndef THOLE_CONNECTION_H
#define THOLE_CONNECTION_H
#include "buf.h"
#include <poll.h>

struct connection;

/*
 * From the connection's own thread, one at a time: (true, 1), perhaps before connection_open() has returned;
 * then (false, n) when epoch n has ended, and (true, n + 1) when windows, readers, pullers and subscriptions
 * have followed into the next one.
 */
typedef void connection_state_fn(void *arg, bool connected, uint64_t epoch);

/*
 * From threads of the connection and of nats.c: what goes wrong and no call reports, since none is under way
 * or the server says it to the connection alone. Before connection_open() has returned only
 * CONNECTION_FORBIDS.
 */
enum connection_trouble {
    CONNECTION_NOT_MADE, /* none of the servers could be reached, or took the credentials: it is tried again
                          */
    CONNECTION_FORBIDS,  /* THOLE_DENIED: a message or a subscription; the text names the subject */
};
typedef void connection_trouble_fn(void *arg, enum connection_trouble trouble, const thole_error *error);

/*
 * For callers on coroutines, whose thread must not block: called where a request would wait for its answer,
 * or a call would pause. False: the caller is none of these, and its thread waits.
 */
struct connection_waiting {
    bool (*ask)(const char *subject, thole_slice body, struct buf *ret, thole_status *ret_status,
                thole_error *reterr);
    bool (*pause)(uint64_t ms);
};

struct connection_options {
    const char *url;   /* one or more, comma-separated */
    const char *creds; /* file of a JWT and its seed, of an NKey seed alone, or of a user and a password or a
                          token (login.h); NULL = none */
    const char *ca;    /* PEM file of the authorities trusted for TLS; NULL = the system's */
    const char *cert;  /* PEM file of the own certificate and its chain; NULL = none */
    const char *key;   /* PEM file of its key; with cert, or NULL */
    const char *server_name; /* the name that the servers' certificates must be for; NULL = the URL's host */
    const char *inbox;       /* prefix of this user's inboxes; NULL = INBOX_PREFIX_DEFAULT */
    const char *api_prefix;  /* instead of $JS.API: see api_prefix.h; NULL = $JS.API */
    const char *name;        /* shown by the server's monitoring */
    uint64_t connect_timeout_ms;
    uint64_t request_timeout_ms; /* of each API round trip */
    uint64_t lost_pause_max_ms;  /* how long it stays away when it is lost again and again; 0: it does not */
    connection_state_fn *on_state;            /* may be NULL */
    connection_trouble_fn *on_trouble;        /* may be NULL */
    const struct connection_waiting *waiting; /* borrowed while it is open; NULL: threads wait */
    void *arg;
};

/* Tries once; THOLE_UNAVAILABLE when no server answers in time (the caller decides whether to try again).
 * Once open it reconnects by itself for ever. */
THOLE_NODISCARD thole_status connection_open(const struct connection_options *options,
                                             struct connection **ret, thole_error *reterr);
/* NULL-safe; no callback runs after it returns. Subscriptions and readers of the connection must be closed
 * before. */
void connection_close(struct connection *connection);
/* Grows with every (re)connect, from 1; 0 while disconnected. A message that was received in another epoch
 * must not be acknowledged, extended or handed back. Never blocks. */
uint64_t connection_epoch(const struct connection *connection);
/* "2.10.27", as the server said when connecting. Stays readable through the next few reconnects. */
thole_slice connection_server_version(const struct connection *connection);
size_t connection_max_payload(const struct connection *connection); /* bytes, as the server said */

struct header {
    const char *key;   /* static text */
    thole_slice value; /* CR and LF are refused with THOLE_INVALID */
};

/* Core publish, at most once. Bytes are copied. */
THOLE_NODISCARD thole_status connection_publish(struct connection *connection, const char *subject,
                                                const struct header *headers, size_t headers_len,
                                                thole_slice body, thole_error *reterr);
/* Like connection_publish(), with a reply subject that this connection subscribes: it gets a delivery with
 * no_responders when @p subject has no subscriber. */
THOLE_NODISCARD thole_status connection_publish_asking(struct connection *connection, const char *subject,
                                                       const char *reply, const struct header *headers,
                                                       size_t headers_len, thole_slice body,
                                                       thole_error *reterr);

/*
 * Messages that the calling thread publishes on the connection between cork and uncork are written with the
 * uncork, in one piece where the socket takes it, or before by another thread that writes: for a thread that
 * publishes several messages in a row and does not block meanwhile. Harmless when the connection is down, or
 * when the epoch changes in between. One connection at a time.
 */
void connection_cork(struct connection *connection);
void connection_uncork(struct connection *connection);

/*
 * For a thread that waits for events anyway: it reads the connection itself, and needs not be woken up for
 * each message by the connection's own thread. Waits until the connection is readable, until one of the
 * descriptors @p also (at most 4, as for poll(2), which sets their revents) is ready, or until
 * clock_monotonic_ms() has reached @p deadline_ms (UINT64_MAX: none; in the past: does not wait). Then calls
 * @p awake, reads all received messages, and calls their receivers. Without a connection it waits for the
 * descriptors and the deadline alone.
 *
 * One thread of a connection at a time. The thread must not wait for an answer of the server, since no other
 * thread reads it meanwhile. If the thread stays away for a second or two, the connection's own thread reads.
 */
typedef void connection_awake_fn(void *arg);
void connection_read(struct connection *connection, struct pollfd *also, size_t n, uint64_t deadline_ms,
                     connection_awake_fn *awake, void *arg);
/* Ends the reading by that thread: the connection's own thread reads again. On that thread, or after it. */
void connection_leave(struct connection *connection);

/* Blocking request, for set-up and rare calls. The answer's body replaces what is in @p ret. THOLE_DENIED
 * comes after the request timeout: the server does not answer a forbidden request, it only sends an error to
 * the connection. */
THOLE_NODISCARD thole_status connection_request(struct connection *connection, const char *subject,
                                                thole_slice body, struct buf *ret, thole_error *reterr);

/* How many permission violations the server has reported, and the last one's text. */
uint64_t connection_violations(struct connection *connection, char *ret_text, size_t cap);
/* Returns the status for a message to @p subject that nothing has answered: @p status, or THOLE_DENIED with a
 * text if the server has reported since that it forbids the message. */
THOLE_NODISCARD thole_status connection_explain_silence(struct connection *connection,
                                                        uint64_t violations_before, const char *subject,
                                                        thole_status status, thole_error *reterr);

/* Waits; a coroutine lets others run meanwhile. */
void connection_pause(struct connection *connection, uint64_t ms);

/* A received message; everything is borrowed for the callback. */
struct delivery {
    thole_slice subject, reply, body;
    const void *native; /* for delivery_header() */
    bool no_responders; /* no message: one that was sent with the subscription's subject as its reply came to
                           nobody */
};
/* Value of a header, exact case; empty when absent. Borrowed like the delivery. */
thole_slice delivery_header(const struct delivery *delivery, const char *key);
/* Like delivery_header(), with a name in any case, for requests of programs in other languages: some write
 * headers as HTTP does. A header written exactly as @p key wins over others. */
thole_slice delivery_header_any_case(const struct delivery *delivery, const char *key);

typedef void delivery_fn(void *arg, const struct delivery *delivery);
struct subscription;
/* Calls @p each, one at a time, for messages that are published from now on; also after reconnects. Messages
 * that are published while disconnected are missed. */
THOLE_NODISCARD thole_status connection_subscribe(struct connection *connection, const char *subject,
                                                  delivery_fn *each, void *arg, struct subscription **ret,
                                                  thole_error *reterr);
/* Like connection_subscribe(), in a queue group (NULL: none): each message comes to one of the group's
 * subscribers. */
THOLE_NODISCARD thole_status connection_serve(struct connection *connection, const char *subject,
                                              const char *group, delivery_fn *each, void *arg,
                                              struct subscription **ret, thole_error *reterr);
/* Marks the subscription as unwanted for now: in @p after_ms, unless it is wanted again by then, the server
 * is told to send no more. Messages come until then. */
void subscription_rest(struct subscription *subscription, uint64_t after_ms);
/* Marks the subscription as wanted again. Both from one thread at a time, not from the callback. */
void subscription_wake(struct subscription *subscription);
/* NULL-safe; no callback runs after it returns. Must not be called from the callback. */
void subscription_close(struct subscription *subscription);
/* Returns when the server has processed what was sent before (PING/PONG). */
THOLE_NODISCARD thole_status connection_flush(struct connection *connection, thole_error *reterr);
#endif
