/* Which subjects a stream holds. */
#ifndef THOLE_SUBJECT_LIST_H
#define THOLE_SUBJECT_LIST_H
#include "connection.h"

typedef void stream_subject_fn(void *arg, thole_slice subject);
/*
 * Calls @p each for every subject of which the stream holds a message, some of them more than once. None is
 * missing that it holds from the beginning of the call to its end, whatever is stored and removed meanwhile.
 *
 * From the stream's leader, as one that has message @p since: THOLE_UNAVAILABLE when it has not got there (a
 * leader of yesterday that does not know it yet), or when what was removed meanwhile left a gap: try again.
 * THOLE_LIMIT: there are more than @p most subjects; at most 100,000 have been handed over. THOLE_CORRUPT:
 * the server's answer does not say how many there are. The stream must hold at least one message. Blocking:
 * the server looks at its index of subjects alone, a round trip for each 100,000.
 */
THOLE_NODISCARD thole_status stream_subjects(struct connection *connection, const char *stream,
                                             uint64_t since, size_t most, stream_subject_fn *each, void *arg,
                                             thole_error *reterr);
#endif
