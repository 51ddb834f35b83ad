/*
 * The WORK stream: messages with subjects (the try is part of them), handed out under an ack-wait. Acks
 * are not fences: an ack of a superseded delivery removes the message, a stale nak or progress acts on the
 * new holder's delivery.
 */
#ifndef THOLE_WORK_FAKE_H
#define THOLE_WORK_FAKE_H
#include "world.h"

struct work_item_fake {
    uint64_t sequence;
    size_t instance;
    uint64_t execution, activity_id;
    uint32_t try_number;
    thole_slice queue, activity, input;
    bool gone;
    uint64_t held_until_ms; /* delivered, and nobody else's before then */
    uint64_t deliveries;
};
struct work_stream {
    struct work_item_fake *items;
    size_t len, cap;
    size_t first; /* everything before it is gone */
    bool alarm;   /* the end of a lease is awaited */
};
struct work_stream *work_stream_create(struct world *w);

/* Sequence of the stored message. */
uint64_t work_publish_fake(struct world *w, const struct work_item_fake *item);
/* Sequence of one with this subject; 0: there is none. */
uint64_t work_look_fake(const struct world *w, const struct work_item_fake *item);
void work_withdraw(struct world *w, uint64_t sequence);
/* The next message that nobody holds; it is then held for the lease. NULL: none. */
const struct work_item_fake *work_deliver(struct world *w);
/* When the next held message comes free; UINT64_MAX: none is held. */
uint64_t work_next_free_ms(const struct world *w);

enum signal { SIGNAL_ACK, SIGNAL_NAK, SIGNAL_PROGRESS };
void work_forgets(struct world *w);
/* NAK: it comes back after @p delay_ms. */
void work_signal_fake(struct world *w, uint64_t sequence, enum signal signal, uint64_t delay_ms);
size_t work_left(const struct world *w);
#endif
