/*
 * The turn at hand. What the code asks for is an event: in a live turn it is appended to the turn, in a
 * recorded one it is compared to what was recorded, so there is one path for both.
 */
#ifndef THOLE_INSTANCE_TURN_H
#define THOLE_INSTANCE_TURN_H
#include "instance_state.h"

/* Of a new instance, whose options are there. */
void instance_turn_init(struct instance *in);
/* Open, begin, close: open says which way the turn goes and where the text of a failure goes; begin counts
 * it. */
void instance_turn_open(struct instance *in, bool replaying, thole_error *reterr);
void instance_turn_begin(struct instance *in, uint64_t time_ms);
/* The recorded events that the code has to ask for; borrowed until the turn is closed. */
void instance_turn_expects(struct instance *in, const struct event *recorded, size_t len);
void instance_turn_close(struct instance *in);
/* Frees the last turn's events and log lines. */
void instance_turn_release(struct instance *in);

/* The id that the next event will have. */
uint64_t instance_next_id(struct instance *in);
/* The same, and the event has it now. */
uint64_t instance_take_id(struct instance *in);
/*
 * The code, or the end of it, asks for an event: appended to the turn, or when replaying compared to what was
 * recorded. Returns its id; 0 when the turn is broken. Slices must live until the turn's end.
 */
uint64_t instance_emit(struct instance *in, struct event *event);
/* The retry policy of the event that a live turn has just emitted, in memory that lives as long as the
 * execution. */
void instance_emitted_retry(struct instance *in, const struct retry *retry);
/* Appends to the live turn's events. */
thole_status instance_push(struct instance *in, const struct event *event);
void instance_count_event(struct instance *in, const struct event *event);

/* Replaying: the recorded event of that kind that must come next; NULL: it does not, the turn is broken. */
const struct event *instance_expect(struct instance *in, enum event_kind kind);
/* The code waits or has ended: nothing recorded may be left. */
thole_status instance_nothing_left(struct instance *in);
/* Markers that come next in history are taken note of, whether or not the code asks for them. */
void instance_absorb_patches(struct instance *in);

/* A line for the log of a live turn. What does not fit is lost: a log line is no reason to fail. */
void instance_log(struct instance *in, uint32_t level, thole_slice text);
#endif
