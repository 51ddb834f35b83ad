/*
 * Compares the rows of whole partitions with their histories, and mends them, while engines and workers go
 * on. Instance by instance: rows, messages that wait, history, in this order, see row_check.h. Blocking; one
 * thread at a time.
 */
#ifndef THOLE_ROW_CHECKER_H
#define THOLE_ROW_CHECKER_H
#include "connection.h"
#include "nonce.h"
#include "postgres.h"
#include "row_check.h"

/* One column that is wrong; of a row that is missing, or that should not be there, no column. */
struct row_report {
    const char *table;
    thole_slice instance;
    uint64_t execution, id;
    const char *id_name, *column; /* NULL: none */
    const char *row_says, *history_says;
};
struct row_counts {
    uint64_t instances, rows; /* compared */
    uint64_t wrong;           /* rows that are missing, should not be there, or are wrong */
    uint64_t mended;          /* rows */
    uint64_t refused;         /* of those that were to be mended, Postgres refuses them: they are set aside */
    uint64_t set_aside;       /* instances of which rows were set aside before */
    bool denied;              /* those were not tried again: the user may not write */
    uint64_t unsettled;  /* instances that changed all the time: compared with what they were meanwhile */
    uint64_t unreadable; /* instances whose history does not decode: not compared */
};
/* Return anything but THOLE_OK to stop; it is passed on. */
typedef thole_status row_report_fn(void *arg, const struct row_report *report);
/* Called between instances. False: stop, with THOLE_CANCELLED. */
typedef bool row_progress_fn(void *arg, uint32_t p, uint64_t done, uint64_t of);

struct row_checker_options { /* borrowed, as is all that they point to */
    struct connection *connection;
    const char *ns;
    uint32_t partitions;
    const struct nonce_key *key; /* NULL: digests are not compared, and nothing can be mended */
    struct postgres *pg;
    uint64_t rate;      /* most instances in a second; 0: as fast as it goes */
    uint64_t settle_ms; /* how long to wait for rows that are being made again */
    bool mend;
    bool retry; /* rows that are set aside are tried again, without mend too; with a key */
    bool alone; /* no other program writes these rows: they are made, and not compared first; with mend */
    row_report_fn *report; /* may be NULL, as may the next */
    row_progress_fn *progress;
    void *arg;
};
struct row_checker;
struct row_checker *row_checker_create(const struct row_checker_options *options);
void row_checker_destroy(struct row_checker *checker); /* NULL-safe */
/* Adds to *counts what it has seen, also when it fails. THOLE_UNAVAILABLE: a server is away, or the rows of
 * the partition are not complete. */
THOLE_NODISCARD thole_status row_checker_partition(struct row_checker *checker, uint32_t p,
                                                   struct row_counts *counts, thole_error *reterr);
/* Like row_checker_partition(), for instances that have a record after that sequence. */
THOLE_NODISCARD thole_status row_checker_behind(struct row_checker *checker, uint32_t p, uint64_t sequence,
                                                struct row_counts *counts, thole_error *reterr);
/* Rows that say they are of a partition that there is not. */
THOLE_NODISCARD thole_status row_checker_stray(struct row_checker *checker, struct row_counts *counts,
                                               thole_error *reterr);
#endif
