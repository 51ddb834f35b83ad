/*
 * THOLE_<ns>_RESTORED: histories of deleted instances that were put back from archives, for reading alone.
 * An instance has its records as they were, on thole.<ns>.restored.<p>.<instance>.<sequence>, with the
 * sequence that each had in the log, and, written last, a receipt on ….receipt: without it there is nothing.
 * The logs and their owners know nothing of it. docs/audit.md has the receipt.
 */
#ifndef THOLE_RESTORED_H
#define THOLE_RESTORED_H
#include "connection.h"

enum { RESTORED_RECEIPT_BYTES_MAX = 64 * 1024 };

struct restored_place { /* of an instance; borrowed */
    const char *ns;
    uint32_t partition;
    thole_slice instance;
};

/* Checks that the stream exists. THOLE_NOT_FOUND: no engine has made it yet. THOLE_CONFLICT, here and where
 * receipts are read: it existed and is lost (marked_store.h). */
THOLE_NODISCARD thole_status restored_require(struct connection *connection, const char *ns,
                                              thole_error *reterr);

/* Whether there is a receipt, which replaces what is in @p to (may be NULL). No stream, and none was ever
 * made: there is none. */
THOLE_NODISCARD thole_status restored_receipt(struct connection *connection,
                                              const struct restored_place *place, bool *ret, struct buf *to,
                                              thole_error *reterr);
/* Borrowed for the call. Anything but THOLE_OK stops the reading and is returned. */
typedef thole_status restored_record_fn(void *arg, uint64_t sequence, thole_slice bytes);
/* The records, receipt or not, in the order in which they were put. A round trip for each. */
THOLE_NODISCARD thole_status restored_read(struct connection *connection, const struct restored_place *place,
                                           restored_record_fn *each, void *arg, thole_error *reterr);
/* Where the first record is in the stream; 0: none. Records that are removed and put again are at another
 * place. */
THOLE_NODISCARD thole_status restored_first(struct connection *connection, const struct restored_place *place,
                                            uint64_t *ret_sequence, thole_error *reterr);
/* All receipts of the namespace. None: there is no stream. A round trip for each. */
typedef thole_status restored_receipt_fn(void *arg, thole_slice instance, thole_slice receipt);
THOLE_NODISCARD thole_status restored_list(struct connection *connection, const char *ns,
                                           restored_receipt_fn *each, void *arg, thole_error *reterr);

/* THOLE_CONFLICT: there is one of that sequence, or a receipt. */
THOLE_NODISCARD thole_status restored_put(struct connection *connection, const struct restored_place *place,
                                          uint64_t sequence, thole_slice bytes, thole_error *reterr);
THOLE_NODISCARD thole_status restored_put_receipt(struct connection *connection,
                                                  const struct restored_place *place, thole_slice receipt,
                                                  thole_error *reterr);
/* Removes the receipt, then the records. */
THOLE_NODISCARD thole_status restored_remove(struct connection *connection,
                                             const struct restored_place *place, thole_error *reterr);
#endif
