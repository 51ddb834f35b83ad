/*
 * The current turn. Each call of the code that schedules something is an event: in a live turn it is
 * appended, in a recorded one it is compared to the recorded event.
 */
#ifndef THOLE_INSTANCE_TURN_H
#define THOLE_INSTANCE_TURN_H
#include "instance_state.h"

/* For a new instance; its options are set. */
void instance_turn_init(struct instance *in);
/* Open, begin, close: open sets live or replay and where the error text goes; begin counts the turn. */
void instance_turn_open(struct instance *in, bool replaying, thole_error *reterr);
void instance_turn_begin(struct instance *in, uint64_t time_ms);
/* Sets the recorded new events to compare with; borrowed until the turn is closed. */
void instance_turn_expects(struct instance *in, const struct event *recorded, size_t len);
void instance_turn_close(struct instance *in);
/* Frees the last turn's events and log lines. */
void instance_turn_release(struct instance *in);

/* On the code's stack: calls options.stop if its event has been reached. */
void instance_reached(struct instance *in);

/* The id that the next event will have. */
uint64_t instance_next_id(struct instance *in);
/* Like instance_next_id(), and assigns the id. */
uint64_t instance_take_id(struct instance *in);
/*
 * A new event, by the code or its end: appended to the turn, or when replaying compared to the recorded one.
 * Returns its id; 0 when the turn is broken. Slices must live until the turn's end.
 */
uint64_t instance_emit(struct instance *in, struct event *event);
/* The retry policy of the event that a live turn has just emitted, in memory that lives as long as the
 * execution. */
void instance_emitted_retry(struct instance *in, const struct retry *retry);
/* Appends to the live turn's events. */
thole_status instance_push(struct instance *in, const struct event *event);
void instance_count_event(struct instance *in, const struct event *event);

/* Replaying: the next recorded event, which must be of that kind; NULL: it is not, the turn is broken. */
const struct event *instance_expect(struct instance *in, enum event_kind kind);
/* Whether code may ask for that version of code: one beyond the range only where an older engine took it, as
 * the recorded event that the code is about to ask for (NULL: there is none) says. */
bool instance_turn_takes(const struct event *recorded, uint32_t version);
/* The code waits or has ended: checks that no recorded event is left. */
thole_status instance_nothing_left(struct instance *in);
/* Takes over the patch markers that come next in history, whether or not the code asks for them. */
void instance_absorb_patches(struct instance *in);

/* Adds a log line to a live turn. Lines that do not fit are dropped without an error. */
void instance_log(struct instance *in, uint32_t level, thole_slice text);
#endif
