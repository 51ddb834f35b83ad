/* The floor's streams: nats.c alone. */
#ifndef THOLE_BENCH_FLOOR_STREAMS_H
#define THOLE_BENCH_FLOOR_STREAMS_H
#include "bench.h"
#include <nats/nats.h>

enum { FLOOR_BATCH_MAX = 1024, FLOOR_BODY_BYTES = 128 };

struct floor_streams {
    natsConnection *connection;
    jsCtx *js;
    natsSubscription *acks, *inbox, *work, *ends;
    char acks_to[64], work_to[64];
    uint64_t history_last;              /* sequence */
    uint64_t number;                    /* of subjects */
    char replies[FLOOR_BATCH_MAX][128]; /* of the work messages that are not acknowledged */
};

/* False with a message. Many at a time: writes are gathered by nats.c, else each leaves at once. */
bool floor_streams_open(struct floor_streams *ret, bool many);
void floor_streams_close(struct floor_streams *streams);
/* Each does its step for so many messages, and returns when the last one is through. */
bool floor_inbox(struct floor_streams *streams, size_t n);
bool floor_history(struct floor_streams *streams, size_t n);
bool floor_work(struct floor_streams *streams, size_t n);
bool floor_work_done(struct floor_streams *streams, size_t n);
bool floor_end(struct floor_streams *streams, size_t n);
#endif
