/* Records of a log, collected as they are read from its stream. */
#ifndef THOLE_RECORDS_H
#define THOLE_RECORDS_H
#include "partition.h"
#include "reader.h"

struct records {
    struct arena *arena; /* memory of all members */
    struct log_record *items;
    size_t len, cap;
    const char *ns; /* of the log that is read without a filter, and its partition; NULL: a filter chooses */
    uint32_t p;
    uint64_t foreign, foreign_sequence; /* how many were not published to the log; the last one */
};
/* @p subject: the record's subject; empty: of no execution. Borrows @p body. A message that was not published
 * to the log gets no bytes: it is no record, whatever its contents. */
THOLE_NODISCARD thole_status records_add(struct records *records, uint64_t sequence, thole_slice subject,
                                         thole_slice body);
/* Adds the existing records from..to; none when from > to. Blocks. */
THOLE_NODISCARD thole_status records_read(struct records *records, struct connection *connection,
                                          const char *stream, const char *filter, uint64_t from, uint64_t to,
                                          thole_error *reterr);
#endif
