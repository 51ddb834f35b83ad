/* Records of a log, collected as they are read from its stream. */
#ifndef THOLE_RECORDS_H
#define THOLE_RECORDS_H
#include "partition.h"
#include "reader.h"

struct records {
    struct arena *arena; /* memory of all members */
    struct log_record *items;
    size_t len, cap;
};
/* @p subject: the record's subject; empty: of no execution. Borrows @p body. */
THOLE_NODISCARD thole_status records_add(struct records *records, uint64_t sequence, thole_slice subject,
                                         thole_slice body);
/* Adds the existing records from..to; none when from > to. Blocks. */
THOLE_NODISCARD thole_status records_read(struct records *records, struct connection *connection,
                                          const char *stream, const char *filter, uint64_t from, uint64_t to,
                                          thole_error *reterr);
#endif
