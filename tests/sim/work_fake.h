/*
 * The WORK stream: messages with subjects (the try is part of them), handed out under an ack-wait. Acks
 * are not fences: an ack of a superseded delivery removes the message, a stale nak or progress acts on the
 * new holder's delivery.
 */
#ifndef THOLE_WORK_FAKE_H
#define THOLE_WORK_FAKE_H
#include "work_digest.h"
#include "world.h"

struct work_item_fake {
    uint64_t sequence;
    size_t instance;
    uint64_t execution, activity_id;
    uint32_t try_number;
    thole_slice queue, activity, input, nonce;
    bool forged; /* not by an engine: nobody looks at this but the checks */
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
/* Queues the row unless its message exists. True: it is queued now. */
struct row;
bool work_queue_again(struct world *w, const struct row *row);
uint64_t work_publish_fake(struct world *w, const struct work_item_fake *item);
/* The result of the engine's look-up: the sequence of its own message; 0: none. A forged one that is the
 * newest on the subject is withdrawn. */
uint64_t work_look_fake(struct world *w, const struct work_item_fake *item);
struct work_digest work_digest_fake(const struct work_item_fake *item);
void work_withdraw(struct world *w, uint64_t sequence);
/* The next message that nobody holds; it is then held for the lease. NULL: none. */
const struct work_item_fake *work_deliver(struct world *w);
/* When the next held message comes free; UINT64_MAX: none is held. */
uint64_t work_next_free_ms(const struct world *w);

enum signal { SIGNAL_ACK, SIGNAL_NAK, SIGNAL_TERM, SIGNAL_PROGRESS };
void work_forgets(struct world *w);
/* NAK: it comes back after @p delay_ms. */
void work_signal_fake(struct world *w, uint64_t sequence, enum signal signal, uint64_t delay_ms);
size_t work_left(const struct world *w);
#endif
