/*
 * The connections of a console. A client that opens many of them, and sends requests slowly or never, takes
 * no place from the others: a connection whose request has not come after VISITOR_REQUEST_MS ends when
 * another one comes, and where all places are taken the oldest one without its request ends. One thread.
 */
#ifndef THOLE_VISITORS_H
#define THOLE_VISITORS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    VISITOR_REQUEST_MS = 30000
}; /* from the connection, or from the answer before, to all of the request */

struct visitor {
    struct visitor *next; /* one whose request is awaited for less long */
    int fd;               /* the server's */
    uint64_t since_ms;    /* begin of the wait for its request; or of the answering, if `answered` */
    bool answered;
    bool ended; /* the socket was shut down: the server closes it at its next look */
};
struct visitors {
    struct visitor *first;
    size_t max;
};

/* A connection: it stays, and others may have to end for it. */
struct visitor *visitors_come(struct visitors *visitors, int fd, uint64_t now_ms);
/* To be called when the request has come. */
void visitor_asks(struct visitor *visitor);
/* To be called when the answer has been sent. */
void visitors_answered(struct visitors *visitors, struct visitor *visitor, uint64_t now_ms);
/* To be called when the connection is closed. NULL-safe. */
void visitors_go(struct visitors *visitors, struct visitor *visitor);
#endif
