/* Inside the hub: its state, and the thread that follows an instance (follow.c). */
#ifndef THOLE_HUB_PARTS_H
#define THOLE_HUB_PARTS_H
#include "buf.h"
#include "connection.h"
#include "hub.h"
#include <pthread.h>

enum { HUB_TICK_MS = 50, HUB_CONNECT_MS = 1000, NOTICE_ARENA_BYTES = 16 * 1024 * 1024 };

struct feed {
    struct hub *hub;
    struct feed *next;
    struct feed_owner owner;
    struct buf instance; /* followed; empty: none */
    uint64_t from;       /* the first sequence of its history that is wanted */
    /* Under the hub's lock: */
    struct buf waiting;
    size_t sent; /* bytes of it */
    bool within; /* they end inside an event */
    unsigned users;
    bool asleep, closed, gone;
    bool lost;   /* the buffer was full, and has not been empty since */
    bool resets; /* waiting events are to be replaced by "reload" */
};
struct hub {
    const thole_client_options *options;
    pthread_t thread;
    struct subscription *subscription; /* the thread's; until that has ended */
    pthread_mutex_t lock;              /* guards what follows */
    pthread_cond_t changed, ending;
    thole_client *client; /* set once */
    struct feed *streams;
    size_t streams_len;
    uint64_t allowance, allowed_ms; /* of changes that may be told now; up to when it has grown */
    uint64_t pinged_ms, looked_ms;
    bool many; /* more has changed than could be told */
    bool closing, ends;
};

/* Until the instance has ended or the stream is closed. */
void feed_follow(struct feed *stream);
/* Waits for room. False: it is closed. */
bool feed_put_patiently(struct feed *stream, thole_slice text);
bool feed_is_open(struct feed *stream);
/* NULL: not connected yet. */
thole_client *hub_client(struct hub *hub);
#endif
