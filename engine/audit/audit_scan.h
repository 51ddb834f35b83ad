/* Inside of the audit room: what a check needs of a record, read from its bytes without unpacking the events.
 */
#ifndef THOLE_AUDIT_SCAN_H
#define THOLE_AUDIT_SCAN_H
#include "event.h"

struct audit_scan {
    enum record_kind kind; /* UNKNOWN: a body of a newer version */
    uint64_t epoch, n, committed;
    struct record_hash previous, previous_of_instance; /* none: it does not say */
    thole_slice instance;                              /* TURN, DELETED; borrowed from the record */
    uint64_t execution;                                /* likewise */
    uint64_t turn;                                     /* TURN */
    bool more;                                         /* TURN: the next record is of the same one */
    bool prunes;                                       /* a turn with a HistoryPruned */
    uint64_t hashed;                                   /* the form of its hash, see record_outline.h */
    uint64_t erased;                                   /* payloads that a redaction has erased */
    uint64_t time_ms;                                  /* 0: a position */
    uint64_t previous_epoch, previous_n, counted;      /* EPOCH_OPENED */
    thole_slice listed; /* POSITION: hashes of records that are dispensable; empty: it lists none */
};
/* False: the bytes are no record. */
bool audit_scan(thole_slice record, struct audit_scan *ret);
#endif
