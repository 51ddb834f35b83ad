/*
 * The limit for bytes under way to one connection from all its push consumers together.
 *
 * nats-server lets a consumer with flow control send 2 MiB before it waits for the answer to a flow control
 * message, twice as much with each answer, and in the end 32 MiB (consumer.go: setMaxPendingBytes(),
 * processFlowControl(), since 2.2). It also closes a connection for which more than max_pending waits to be
 * written, 64 MiB unless configured (client.go: queueOutbound()). So a few consumers with a long backlog and
 * a reader slower than the server would end the connection, and, as all of them start over on the next one,
 * end that as well.
 *
 * Consumers that share an inflow ask before they are created, and before a flow control message is answered;
 * while more than INFLOW_BYTES could be under way, and not from one consumer alone, they wait for their turn.
 * The bytes that a consumer may still send are computed from its window and from the bytes received. A
 * consumer at the end of its stream counts as none, whatever its window: later messages come as fast as they
 * are published.
 *
 * Thread-safe; a lock of its own, inside those of the callers.
 */
#ifndef THOLE_INFLOW_H
#define THOLE_INFLOW_H
#include "thole/types.h"

enum {
    INFLOW_WINDOW_FIRST = 2 * 1024 * 1024, /* nats-server's */
    INFLOW_WINDOW_MAX = 32 * 1024 * 1024,
    /* The server counts what it writes until the whole write has ended, and the next messages beside it: up
     * to twice as much. */
    INFLOW_BYTES = 20 * 1024 * 1024,
    /* Answers with a stream's message that a window of requests, or the threads that wait for one, may have
     * under way. Of 1 MiB each, the largest unless nats-server is configured, and in JSON and base64, they
     * are 22 MiB. */
    INFLOW_READS = 16,
};

struct inflow;
struct inflow *inflow_create(void);
/* NULL-safe. All have left it. */
void inflow_destroy(struct inflow *inflow);

/* One consumer's part, in its owner. */
typedef void inflow_turn_fn(void *arg); /* the part's turn has come: ask again. With the inflow's lock held */
struct inflow_part {
    struct inflow *inflow; /* NULL: it is not limited, and all calls do nothing */
    inflow_turn_fn *turn;
    void *arg;
    size_t window, due; /* bytes that the server may send between two answers; that may still come */
    size_t behind;      /* bytes received after the flow control message to be answered */
    bool at_end;        /* of its stream: nothing is under way */
    bool stopped;       /* a flow control message has come, and is not to be answered yet */
    bool waits, granted;
    struct inflow_part *prev, *next; /* the waiting ones */
};
/* True: its consumer may be created, or its flow control message answered, now. False: after @p turn. */
THOLE_NODISCARD bool inflow_ask(struct inflow_part *part);
/* A message has come; the consumer has more, or is at the end of the stream. Before it is looked at: what
 * counts is that the server has no longer to keep it. */
void inflow_came(struct inflow_part *part, size_t bytes, bool more);
/* A flow control message has come: all that was sent before it has. */
void inflow_stops(struct inflow_part *part);
/* A heartbeat has come, or the answer to its creation, which says that there is nothing. The server sends a
 * heartbeat when it has nothing to send, or, @p stalled, must not: nothing is under way (bytes are not
 * counted exactly: those of headers are not). A stalled one may be older than the answer to its flow control
 * message: it counts only before that. */
void inflow_rests(struct inflow_part *part, bool stalled);
/* The consumer is gone; the part waits no more. */
void inflow_end(struct inflow_part *part);
#endif
