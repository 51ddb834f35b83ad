/* A query of an instance and its answer, and their codec to and from proto/messages.proto. Pure. */
#ifndef THOLE_QUERY_MESSAGE_H
#define THOLE_QUERY_MESSAGE_H
#include "arena.h"
#include "buf.h"

/* The query that engines answer themselves: where in the source the code waits. */
#define QUERY_SOURCE "__source"

struct query {
    thole_slice instance, name, input;
};
THOLE_NODISCARD thole_status query_encode(const struct query *query, struct buf *to);
/* Copies into @p arena. THOLE_CORRUPT, THOLE_UNSUPPORTED (newer format), THOLE_LIMIT, NOMEM. Checks id and
 * name. */
THOLE_NODISCARD thole_status query_decode(thole_slice bytes, struct arena *arena, struct query *ret,
                                          thole_error *reterr);

struct query_answer {
    uint32_t status;  /* a thole_status */
    thole_slice data; /* THOLE_OK: the output; else the error text */
};
THOLE_NODISCARD thole_status query_answer_encode(const struct query_answer *answer, struct buf *to);
/* The inverse of query_answer_encode(), with the statuses of query_decode(). */
THOLE_NODISCARD thole_status query_answer_decode(thole_slice bytes, struct arena *arena,
                                                 struct query_answer *ret, thole_error *reterr);
#endif
