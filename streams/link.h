/*
 * Inside streams/: the interface of a connection for the other files.
 *
 * Reconnecting is done here and not by nats.c: one natsConnection lives for one epoch. So a message always
 * belongs to the epoch in which it was read, and nothing that is sent in one epoch can be sent in the next.
 * (Also, nats.c 3.4.1 gives up for good when the server refuses the same credentials twice or answers -ERR,
 * and its ordered consumer falls back to the stream's first message when it is reset before its first
 * delivery.)
 *
 * Locks, outermost first: turn (state changes, alarms), an owner's own locks, connection lock (short).
 */
#ifndef THOLE_LINK_H
#define THOLE_LINK_H
#include "connection.h"
#include <nats/nats.h>
#include <pthread.h>

enum {
    NANOS_PER_MS = 1000000,
    MESSAGE_HEADERS_MAX = 16,
};

struct listener;
/* Those of a link, for its loop's thread. */
struct link_listeners {
    pthread_mutex_t lock; /* everything; not held while one is called */
    struct listener *first, *at /* the next to be looked at */;
};

/* Threads that wait for a stream's message: at most INFLOW_READS at a time. */
struct link_reads {
    pthread_mutex_t lock;
    pthread_cond_t left;
    unsigned here;
    uint64_t departed; /* so many have left with an answer */
};

/* One natsConnection: an epoch. Held by reference; closed and destroyed by the connection's own thread. */
struct link {
    natsConnection *nc;
    struct loop *loop; /* the loop's thread reads nc */
    struct link_listeners listeners;
    struct link_reads reads;
    uint64_t epoch;
    struct connection *connection;
    struct link *next; /* connection lock, like the rest */
    size_t refs;
    bool lost;
};
/* With one reference, a running loop, and no natsConnection yet; NULL: no thread is left. connection.c puts
 * it into its list. */
struct link *link_create(struct connection *connection);
void link_destroy(struct link *link);
/* Threads that nats.c starts meanwhile get the name (of at most 15 bytes), by which `top -H` and the like
 * tell them apart: between begin and end the calling thread has it. */
struct thread_name {
    char text[16];
};
struct thread_name link_name_begin(const char *name);
void link_name_end(const struct thread_name *own);

/* NULL while disconnected. */
struct link *link_acquire(struct connection *connection);
void link_retain(struct link *link);  /* one more reference, for who has one */
void link_release(struct link *link); /* NULL-safe */
/* Breaks the link after a write that may be incomplete. */
void link_break(struct link *link);

/* natsStatus → thole_status with nats.c's text; @p what begins it. On the thread of the failing call. */
thole_status link_fail(natsStatus status, const char *what, const char *name, thole_error *reterr);
/* Like link_fail(), for a failed connect, with advice on what to check. THOLE_UNAVAILABLE only for errors
 * that may be temporary. @p creds: a file of credentials is used. */
thole_status link_explain_connect(natsStatus status, const char *address, bool creds, thole_error *reterr);
/* nats.c sends what it is given: CR LF would begin a command, a space a reply subject. */
bool link_subject_is_safe(const char *subject);
/* Checks the subject and headers (no CR, LF, space, control byte) and copies everything into a message. */
THOLE_NODISCARD thole_status link_message(const char *subject, const char *reply,
                                          const struct header *headers, size_t headers_len, thole_slice body,
                                          natsMsg **ret, thole_error *reterr);
/* Replaces natsMsg_Destroy(), for received messages too; NULL-safe. The memory is freed later, at most 512
 * messages and 256 KiB of bodies in the process, or the last one, whatever its size. */
void link_message_free(natsMsg *message);
/* At a connection's end: frees what is left. */
void link_messages_free_rest(void);
/* For who reads many on one thread: as link_message_free(), but more at once. Zeroed at first, and never left
 * without link_spent_end(). */
struct link_spent {
    natsMsg **messages;
    size_t len, bytes;
};
void link_spent_add(struct link_spent *spent, natsMsg *message);
void link_spent_end(struct link_spent *spent);
/* Sends it. *ret_sent: false when nothing was sent for certain. */
THOLE_NODISCARD thole_status link_send(struct link *link, natsMsg *message, bool *ret_sent,
                                       thole_error *reterr);

/* A body without headers; copies nothing but into the socket's buffer. */
THOLE_NODISCARD thole_status link_send_bytes(struct link *link, const char *subject, const char *reply,
                                             thole_slice body, bool *ret_sent, thole_error *reterr);
/* Like link_send_bytes(), best effort. */
void link_hint(struct link *link, const char *subject, const char *reply, thole_slice body);

/*
 * An object that follows a connection through its epochs. up, down and fire are called one at a time, never
 * after connection_detach(), must not block, and must not attach or detach. up: also from connection_attach()
 * when connected. fire: the alarm is due.
 */
struct attachment {
    void (*up)(void *arg, struct link *link);
    void (*down)(void *arg, uint64_t epoch);
    void (*fire)(void *arg);
    void *arg;
    uint64_t due_ms; /* 0: no alarm */
    struct attachment *prev, *next;
};
void connection_attach(struct connection *connection, struct attachment *attachment);
void connection_detach(struct connection *connection, struct attachment *attachment);
/* Sets the alarm, or takes it off with 0. Monotonic milliseconds, see link_now_ms(). */
void connection_alarm(struct connection *connection, struct attachment *attachment, uint64_t due_ms);
/* Like connection_alarm(), unless an earlier alarm is set. */
void connection_alarm_by(struct connection *connection, struct attachment *attachment, uint64_t due_ms);
uint64_t link_now_ms(void);
uint64_t connection_request_timeout_ms(const struct connection *connection);
/* Answered with a stream's message: see inflow.h. */
bool link_is_read(const char *subject);
/* connection_request() with headers. */
THOLE_NODISCARD thole_status connection_request_with(struct connection *connection, const char *subject,
                                                     const struct header *headers, size_t headers_len,
                                                     thole_slice body, struct buf *ret, thole_error *reterr);
const struct connection_waiting *connection_waiting(const struct connection *connection); /* may be NULL */
/* Whether the server's INFO says that it has JetStream. */
bool connection_has_jetstream(const struct connection *connection);
/* A unique inbox subject of at most LINK_INBOX_BYTES with its NUL: a token below connection_inbox_root(). */
enum { LINK_INBOX_BYTES = 352 };
/* THOLE_DENIED: the user may not subscribe to what is below @p inbox, where answers would arrive. Waits for
 * the server. */
THOLE_NODISCARD thole_status link_check_inbox(struct link *link, const char *inbox, uint64_t timeout_ms,
                                              thole_error *reterr);
/* Where JetStream is asked: what api_prefix_apply() puts in place of $JS.API. */
const char *connection_api_prefix(const struct connection *connection);
const char *connection_inbox_root(const struct connection *connection);
void connection_inbox(struct connection *connection, char ret[LINK_INBOX_BYTES]);

/*
 * Unsubscribes now, destroys later. nats.c 3.4.1 looks a subscription up, releases the lock, and locks the
 * subscription afterwards: freeing it in between, while a message for it arrives, is a use after free. After
 * the PONG for a PING that was sent after the unsubscribe no message for it can arrive. Never blocks.
 */
void connection_retire(struct connection *connection, natsSubscription *native, uint64_t epoch);

/* A subscription of one link. fn runs on the thread of the link's loop, so it must not wait for an answer of
 * the server; it may take the message by clearing *message. *message is NULL when a message that was sent
 * with a reply subject of this subscription had no responders: nats.c does not say which. */
typedef void listener_fn(void *arg, natsMsg **message, uint64_t epoch);
THOLE_NODISCARD thole_status listener_open(struct link *link, const char *subject, const char *group,
                                           listener_fn *fn, void *arg, struct listener **ret,
                                           thole_error *reterr);
/* The listeners of an owner: one for the current epoch, and those whose last call may still be running. */
struct listeners {
    struct listener *newest;
};
/* Makes @p listener (may be NULL) the newest; closes older ones that are idle. Never blocks. */
void listeners_replace(struct listeners *listeners, struct listener *listener);
void listeners_close(struct listeners *listeners);
/* Unsubscribes, and waits until fn has been called for all received messages; at most @p wait_ms. Before
 * listeners_close().
 */
void listeners_drain(struct listeners *listeners, uint64_t wait_ms);

/* Borrowed view of a received message. */
struct delivery link_delivery(natsMsg *message);
/* Status header of a message without a body (100, 404, 408, 409, 503); 0: an ordinary message. *ret_text: the
 * words after the number. */
uint32_t link_status(const struct delivery *delivery, thole_slice *ret_text);
thole_slice link_native_header(natsMsg *message, const char *key);
#endif
