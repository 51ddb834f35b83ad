/*
 * One event of every kind and one message of every kind, each with all its fields set, and texts that show
 * every field. The tests of the codec, the golden files and the fuzz targets use them.
 */
#ifndef THOLE_SAMPLES_H
#define THOLE_SAMPLES_H
#include "message.h"

/* In the order of their kinds. Ids are 1, 2, 3, …; what they refer to is of no meaning. */
extern const struct event sample_events[];
extern const size_t sample_events_len;
extern const struct event sample_events_said[2]; /* with who asked for it, and where it ran */
extern const struct message sample_messages[];
extern const size_t sample_messages_len;

/* All fields that are not 0 or empty, one line each; slices in quotes, "\xNN" for what is not printable. */
void show_event(const struct event *event, struct buf *to);
void show_message(const struct message *message, struct buf *to);
void show_heartbeat(const struct heartbeat *heartbeat, struct buf *to);
/* Shows a record: its own fields, then those of each event. */
void show_record(const struct record *record, struct buf *to);
/* "start", "activity_result", … */
const char *message_kind_text(enum message_kind kind);
#endif
