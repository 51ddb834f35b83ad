/* Defects made while engines run, and the ways to make them: for the test of defects. */
#ifndef THOLE_DEFECT_STAGE_H
#define THOLE_DEFECT_STAGE_H
#include "connection.h"
#include "stack.h"

enum defect_way {
    WAY_REMOVE,   /* the stream of that name */
    WAY_EDIT,     /* the field becomes the value, by STREAM.UPDATE */
    WAY_PUT,      /* the value is published on the subject */
    WAY_QUEUE,    /* the consumer of the queue: its field becomes the value */
    WAY_NO_QUEUE, /* the consumer is removed */
    WAY_PAUSE,    /* the consumer is paused until the value */
    WAY_SQL,      /* the value is executed */
    WAY_PEER,     /* a server that is not its leader is removed from those that keep the stream */
    WAY_MAKE,     /* a store that not every namespace has is made, and then removed */
};

struct stage {
    struct stack *stack;
    struct connection *connection;
};

/* Does it. False: the server refuses. */
bool stage_break(struct stage *stage, enum defect_way way, const char *name, const char *field,
                 const char *value);
/* Runs a remedy as it is written: thole …, nats kv put …, nats stream rm …, nats stream edit … --replicas N.
 * False: it is not of these, or has failed; what a command prints is in @p ret. */
bool stage_remedy(struct stage *stage, const char *remedy, char *ret, size_t cap);
/* The output of a command, and its exit code. */
int stage_command(const char *command, char *ret, size_t cap);
/* All that is answered to a GET at this port of 127.0.0.1. */
bool stage_get(uint16_t port, const char *path, char *ret, size_t cap);
/* Starts thole console at a free port, until the test ends; 0: it does not run. */
uint16_t stage_console(const struct stack *stack);
/* A sample of the metrics that are answered at this port of 127.0.0.1; UINT64_MAX: it was not read. */
uint64_t stage_metric(uint16_t port, const char *series);
#endif
