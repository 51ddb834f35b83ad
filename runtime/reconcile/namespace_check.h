/*
 * Compares what NATS and what Postgres have of a namespace, before anything of it is made or changed.
 * Postgres is read first: what it knows was in NATS before. Blocking; one thread at a time.
 */
#ifndef THOLE_NAMESPACE_CHECK_H
#define THOLE_NAMESPACE_CHECK_H
#include "connection.h"
#include "marked_store.h"
#include "namespace_store.h"
#include "topology.h"

enum { NAMESPACE_SAYS_BYTES = 240 };

struct namespace_log { /* one partition's */
    enum log_fit fit;
    struct log_there there;
    bool inbox; /* the inbox exists */
};
struct namespace_check {
    const char *ns; /* borrowed */
    bool tables;    /* Postgres has tables of it */
    struct namespace_rows rows;
    struct topology_found nats;
    enum namespace_verdict verdict;
    uint32_t partitions;        /* those below */
    struct log_known *known;    /* by partition; of SUBJECT's PARTITIONS_MAX */
    struct namespace_log *logs; /* by partition; NULL: NATS has no settings */
    uint32_t lost, older, cut;  /* parts of NATS, logs */
    uint32_t stores_lost;       /* those below; engines serve without them */
    struct marked_store stores[NAMESPACE_STORES];
};
struct namespace_check *namespace_check_create(const char *ns);
void namespace_check_destroy(struct namespace_check *check); /* NULL-safe */

/* THOLE_UNSUPPORTED: tables of another migration than this program's. */
THOLE_NODISCARD thole_status namespace_check_rows(struct namespace_check *check, struct postgres *pg,
                                                  thole_error *reterr);
/* To be called after the check of the rows; gives the verdict. @p depth RECORDS: records are compared, too,
 * not only how far logs reach; without an identity on one side they always are. */
enum namespace_depth { NAMESPACE_BOUNDS, NAMESPACE_RECORDS };
THOLE_NODISCARD thole_status namespace_check_nats(struct namespace_check *check,
                                                  struct connection *connection, enum namespace_depth depth,
                                                  thole_error *reterr);

/* After that: which of the stores are lost that not every namespace has. One that this user may not see
 * counts as never made. */
THOLE_NODISCARD thole_status namespace_check_stores(struct namespace_check *check,
                                                    struct connection *connection, thole_error *reterr);
/* The lost ones, as text; empty: none. */
enum { STORES_SAY_BYTES = NAMESPACE_STORES * MARKED_STORE_TEXT_BYTES };
void namespace_check_lost_stores(const struct namespace_check *check, char ret[STORES_SAY_BYTES]);

/* Former state according to Postgres; present state of NATS. Each a clause. */
void namespace_check_was(const struct namespace_check *check, char ret[NAMESPACE_SAYS_BYTES]);
void namespace_check_is(const struct namespace_check *check, char ret[NAMESPACE_SAYS_BYTES]);
/* The identity that is given up by who accepts the loss: Postgres's, else NATS's, else "none". Borrowed. */
const char *namespace_check_id(const struct namespace_check *check);
/* THOLE_CONFLICT, with both and the two ways on, unless the verdict is that it may be served and no store is
 * known to be lost. */
THOLE_NODISCARD thole_status namespace_check_refuse(const struct namespace_check *check, thole_error *reterr);
/* Gives NATS the identity that Postgres has, if it has none: before topology_ensure(), which would make one.
 */
THOLE_NODISCARD thole_status namespace_check_settle(const struct namespace_check *check,
                                                    struct connection *connection, thole_error *reterr);
/* Whether a log has any record. */
bool namespace_check_has_records(const struct namespace_check *check);
/* Whether the partition's rows are of no log that NATS has. */
bool namespace_check_unfit(const struct namespace_check *check, uint32_t p);
#endif
