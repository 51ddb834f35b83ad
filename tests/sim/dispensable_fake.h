/* Records that go after their time (dispensable.h), as an engine's host looks for them and removes them, and
 * when they may go. */
#ifndef THOLE_DISPENSABLE_FAKE_H
#define THOLE_DISPENSABLE_FAKE_H
#include "log_fake.h"

/* In memory of the world. */
struct in_dispensable dispensable_look(struct world *w, const struct log_stream *log,
                                       const struct out_find_dispensable *asked);
/* For the record @p by. False: it was cut off. */
bool dispensable_removal(struct world *w, struct log_stream *log, uint64_t by,
                         const struct out_remove_records *asked);
/* The last list; sequence 0: there is none. */
struct log_record dispensable_list_last(const struct log_stream *log);
#endif
