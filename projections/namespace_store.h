/*
 * Postgres's records of a namespace and of the logs of its partitions: to tell a NATS that is empty, older
 * or another one from a new one (namespace_verdict.h). Statuses: see postgres.h. Each call is one round trip.
 */
#ifndef THOLE_NAMESPACE_STORE_H
#define THOLE_NAMESPACE_STORE_H
#include "namespace_verdict.h"
#include "postgres.h"

enum {
    NAMESPACE_INSTANCES_MAX = 100000, /* are counted */
    LOG_KEPT_MS = 10 * 60 * 1000,     /* a record that was in the log for so long is kept */
    LOSS_TEXT_BYTES = 256,
};

struct namespace_rows {
    struct namespace_id id;
    uint64_t owned;      /* partitions that have had an owner */
    uint64_t instances;  /* at most NAMESPACE_INSTANCES_MAX */
    uint64_t written_ms; /* when a partition was written to last; by the database's clock */
    uint64_t loss_ms;    /* of the last loss that was accepted; 0: there is none */
    char loss_actor[LOSS_TEXT_BYTES], loss_reason[LOSS_TEXT_BYTES];
};
THOLE_NODISCARD thole_status namespace_store_read(struct postgres *pg, struct namespace_rows *ret,
                                                  thole_error *reterr);
/* Postgres's records of the logs of partitions 0 to @p n - 1. */
THOLE_NODISCARD thole_status namespace_store_logs(struct postgres *pg, struct log_known *ret, size_t n,
                                                  thole_error *reterr);
/* The record of one log, and the identity of the namespace. */
THOLE_NODISCARD thole_status namespace_store_log(struct postgres *pg, uint32_t partition,
                                                 struct log_known *ret, struct namespace_id *ret_id,
                                                 thole_error *reterr);
/* Notes the identity unless there is one. @p ret (may be NULL): the one that counts. */
THOLE_NODISCARD thole_status namespace_store_adopt(struct postgres *pg, const struct namespace_id *id,
                                                   struct namespace_id *ret, thole_error *reterr);
/* For the owner of a partition that is open: what was projected @p age_ms ago and is in the log is kept from
 * now on. Does nothing when that is too soon, or the epoch is not the partition's. */
THOLE_NODISCARD thole_status namespace_store_keep(struct postgres *pg, uint32_t partition, uint64_t epoch,
                                                  uint64_t age_ms, thole_error *reterr);

struct accepted_loss {
    struct namespace_id before, after;
    thole_slice actor, reason, what;
    const uint32_t *partitions; /* whose rows are removed: their owners are fenced and project them again */
    size_t partitions_len;
};
/* In one transaction. THOLE_CONFLICT: the identity is not the one before (any more). */
THOLE_NODISCARD thole_status namespace_store_accept(struct postgres *pg, const struct accepted_loss *loss,
                                                    thole_error *reterr);
#endif
