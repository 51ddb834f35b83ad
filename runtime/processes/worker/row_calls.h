/*
 * Statements on the worker's rows in Postgres, one after the other, with a connection of its own, or with one
 * of a pool for each call, from a BEGIN to its end. While Postgres cannot be reached, calls are answered
 * "unknown" at once and a new connection is tried with capped backoff and jitter. Nothing is sent without a
 * call.
 *
 * The thread that sends the calls carries them out as well, and waits for the connection's socket beside its
 * own descriptors: row_calls_socket(), row_calls_continue(). Another thread makes new connections, which may
 * take long, and carries out the calls that need one. With a pool, for whose connections it must wait, that
 * thread carries out all calls.
 */
#ifndef THOLE_ROW_CALLS_H
#define THOLE_ROW_CALLS_H
#include "row_pool.h"
#include "worker.h"
#include "worker_mail.h"
#include "worker_store.h"
#include <poll.h>

enum row_call_kind {
    ROW_CALL_CLAIM,
    ROW_CALL_RENEW,
    ROW_CALL_RELEASE,
    ROW_CALL_LEAVE,
    ROW_CALL_NOT_LOST,
    ROW_CALL_SHELVE,
    ROW_CALL_BEGIN,
    ROW_CALL_COMMIT,
    ROW_CALL_ROLLBACK, /* is not answered */
    ROW_CALL_KINDS
};

/* One call of a kind at a time. The caller owns it until it is sent, and again when it is answered. */
struct row_call {
    struct worker_mail mail;
    enum row_call_kind kind;
    struct claim *claims;
    struct worker_row *rows; /* the machine's rows; keys borrow from instances */
    uint8_t (*instances)[THOLE_ID_BYTES_MAX];
    struct arena details; /* details of heartbeats, from claims */
    size_t len, cap;
    bool unknown; /* out */
    bool away;    /* being carried out, until it is in the mailbox of answers; never for ROLLBACK */
};
void row_call_init(struct row_call *call, enum row_call_kind kind, size_t cap);
void row_call_release(struct row_call *call); /* does nothing for a zeroed one */
/* Copies the rows of an output; the caller sets partitions. */
void row_call_fill(struct row_call *call, const struct worker_row *rows, size_t n, uint64_t lease_ms);

struct row_calls;
struct row_calls_options {
    const char *name;    /* static text, for logs: "claims" */
    struct postgres *pg; /* taken; NULL: each call takes one of the pool */
    struct row_pool *pool;
    uint64_t wait_ms;   /* with a pool: how long a call waits for a connection, and a statement may take */
    thole_slice worker; /* incarnation; borrowed for the thread's life */
    struct claim_policy policy;
    struct mailbox *answers; /* where answered calls are sent */
    struct metrics *metrics; /* NULL: nothing is counted */
};
THOLE_NODISCARD thole_status row_calls_create(const struct row_calls_options *options, struct row_calls **ret,
                                              thole_error *reterr);
/* These four by one thread. */
void row_calls_send(struct row_calls *calls, struct row_call *call);
/* The descriptor and events that this thread's running call waits for, for poll(2); descriptor -1: none.
 * *ret_deadline_ms: when to continue it at the latest, by clock_monotonic_ms(); UINT64_MAX: none. */
struct pollfd row_calls_socket(const struct row_calls *calls, uint64_t *ret_deadline_ms);
void row_calls_continue(struct row_calls *calls, short revents);
/* The socket of its connection to Postgres while no other thread has that; -1: none. */
int row_calls_connection(const struct row_calls *calls);
/* When nobody sends any more. Waits until all that were sent are answered, and closes the connection.
 * NULL-safe. */
void row_calls_destroy(struct row_calls *calls);
#endif
