/*
 * Streams of server-sent events to browsers. Events wait in a buffer of stated size for each stream, so that
 * a slow reader blocks no other: when its buffer is full it loses the waiting events, and is told to read
 * everything again.
 *
 * All streams are told which instances have changed, at most HUB_CHANGES_PER_S times a second. A stream that
 * follows an instance has a thread, which reads its history and waits while the buffer is full.
 */
#ifndef THOLE_HUB_H
#define THOLE_HUB_H
#include "thole/client.h"
#include <stdbool.h>

enum {
    HUB_STREAMS_MAX = 64,
    HUB_STREAM_BYTES_MAX = 1024 * 1024, /* waiting bytes of one stream */
    HUB_RESERVED_BYTES = 16 * 1024, /* of these, for changes: a history that is followed leaves them free */
    HUB_CHANGES_PER_S = 10,
    HUB_PING_MS = 15000,
    HUB_LOOK_MS = 500,      /* for readers that have gone away */
    HUB_STALLED_MS = 30000, /* a buffer that is full for so long: what follows is lost */
    HUB_EVENT_DATA_MAX = 64 * 1024,
};

struct hub;
struct feed;

/* Called while the hub is locked: must not call it. Each sleep is followed by one wake. */
struct feed_owner {
    void (*sleep)(void *arg);
    void (*wake)(void *arg);
    bool (*gone)(void *arg); /* the reader of one that sleeps has gone away */
    void *arg;
};

/* @p options: for the hub's own client; borrowed. */
THOLE_NODISCARD thole_status hub_start(const thole_client_options *options, struct hub **ret,
                                       thole_error *reterr);
/* All streams end: feed_read() says so. */
void hub_close(struct hub *hub);
/* All streams must have been closed. NULL-safe. */
void hub_stop(struct hub *hub);

/* @p instance: to be followed from @p sequence of its history on; empty: none. THOLE_LIMIT: too many. */
THOLE_NODISCARD thole_status feed_open(struct hub *hub, thole_slice instance, uint64_t sequence,
                                       struct feed_owner owner, struct feed **ret, thole_error *reterr);
/* At most @p max bytes. 0: nothing now, and the owner's sleep() was called. SIZE_MAX: the end. */
size_t feed_read(struct feed *stream, char *to, size_t max);
void feed_close(struct feed *stream);

/* For tests, and for the hub's own subscription: an instance has changed. */
void hub_changed(struct hub *hub, thole_slice instance);
#endif
