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

/*
 * How many messages each subject that matches @p filter has, as requests of a window to
 * $JS.API.STREAM.INFO.<stream>: at most 100,000 subjects from @p offset on in an answer. The server looks at
 * its index of subjects alone: the cost depends on the matching subjects, however large the stream is.
 */
THOLE_NODISCARD thole_status stream_counts_request(struct buf *to, const char *filter, uint64_t offset);
typedef void stream_count_fn(void *arg, thole_slice subject, uint64_t messages);
/* Calls @p each for each subject of the answer. *ret_here: how many; *ret_total: how many match. As
 * stream_subjects(): @p since, THOLE_UNAVAILABLE and THOLE_CORRUPT. */
THOLE_NODISCARD thole_status stream_counts_answer(thole_slice answer, uint64_t since, stream_count_fn *each,
                                                  void *arg, uint64_t *ret_here, uint64_t *ret_total,
                                                  thole_error *reterr);
#endif
