/* Workers' messages to NATS about the messages of the queues, heard on the wire. */
#ifndef THOLE_WORK_HEARD_H
#define THOLE_WORK_HEARD_H
#include <stdbool.h>
#include <stdint.h>

struct work_heard {
    unsigned acks, naks, delayed; /* delayed: a -NAK that lets it wait */
    uint64_t deliveries;          /* the most that a word was about; 0: nothing was said */
};

/* From now on, until it is closed. Exits the test program when there is no connection. */
void work_heard_open(const char *nats_url);
void work_heard_close(void);
/* The messages about the one with this sequence in WORK, those of work_heard_redeliver() too. */
struct work_heard work_heard_of(uint64_t sequence);
/* Waits until something is said about it: that must be one +ACK, of its first delivery. Ends the test if not.
 */
void work_heard_check_ack(const char *id, uint64_t sequence);
/* As if its holder had let the ack-wait pass: it is delivered once more, to whichever worker of the queue has
 * asked first. */
void work_heard_redeliver(const char *queue, uint64_t sequence);
/* How long the server waits for a word about a message of the queue; 0: it does not say. */
uint64_t work_heard_ack_wait_ms(const char *queue);
#endif
