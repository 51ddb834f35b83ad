/* Inside engine/drift: what the streams hold of one instance, given to a check. */
#ifndef THOLE_ROW_HISTORY_H
#define THOLE_ROW_HISTORY_H
#include "id_set.h"
#include "log_rule.h"
#include "row_checker.h"

struct row_history { /* of a partition */
    struct connection *connection;
    const char *ns;
    uint32_t p;
    struct buf history, inbox; /* names of its streams */
    struct log_rule owner;     /* the last EpochOpened, when it was opened */
};
/* Released in any case. */
THOLE_NODISCARD thole_status row_history_open(struct row_history *of, struct connection *connection,
                                              const char *ns, uint32_t p, thole_error *reterr);
/* Reads again who owns the partition: records of the owner before count only up to where the newer one
 * begins. */
THOLE_NODISCARD thole_status row_history_owner(struct row_history *of, thole_error *reterr);
void row_history_release(struct row_history *of);
/* Adds the ids of all instances that have a record. */
THOLE_NODISCARD thole_status row_history_ids(const struct row_history *of, struct id_set *to,
                                             thole_error *reterr);
/* Like row_history_ids(), for all that have a record after that sequence, or are deleted there. Uses a
 * consumer. */
THOLE_NODISCARD thole_status row_history_ids_behind(const struct row_history *of, uint64_t sequence,
                                                    struct id_set *to, thole_error *reterr);
/* THOLE_CORRUPT: a record does not decode. */
THOLE_NODISCARD thole_status row_history_read(const struct row_history *of, thole_slice instance,
                                              struct row_check *check, thole_error *reterr);
/* Keys of activities whose results wait in the inbox. */
struct waiting_result {
    uint64_t execution, activity_id;
    uint32_t try_number;
};
/* The array is freed by the caller. */
THOLE_NODISCARD thole_status row_history_results(const struct row_history *of, thole_slice instance,
                                                 struct waiting_result **ret, size_t *ret_len,
                                                 thole_error *reterr);
#endif
