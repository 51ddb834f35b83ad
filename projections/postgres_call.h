/*
 * Inside projections/: calls of statements with binary parameters and binary results. Statements are
 * prepared; through a pooler they are parsed each time, after the settings of the transaction.
 *
 * A call is a pipeline: any number of statements, one transaction, one round trip.
 *
 *     call_begin(pg, "claiming activities");
 *     call_text(pg, worker);                    parameters of the first statement, in order
 *     call_send(pg, STATEMENT_CLAIM);           queues the statement
 *     THOLE_TRY(call_run(pg, reterr));          sends, waits, checks
 *     call_rows(pg, 0) ...                      results by number of the statement, until the next call
 *
 * A failure before call_run() is kept, and call_run() reports it.
 */
#ifndef THOLE_POSTGRES_CALL_H
#define THOLE_POSTGRES_CALL_H
#include "buf.h"
#include "postgres.h"
#include "statements.h"
#include <libpq-fe.h>

enum {
    CALL_STATEMENTS_MAX = 24,
    CALL_PARAMS_MAX = 136,             /* of all statements of a call */
    CALL_BYTES_MAX = 64 * 1024 * 1024, /* likewise */
    INCARNATION_BYTES = 40,            /* a UUID's text */
    PARTITIONS_MAX = 65536,
    WHERE_BYTES = 256,
};

struct call_queued { /* parameters: params_first up to, not including, params_end */
    enum statement statement;
    size_t params_first, params_end;
};

/* A message whose result is awaited. */
struct call_pending {
    enum statement statement;
    enum { PENDING_CALL, PENDING_PREPARE, PENDING_SETTINGS, PENDING_GUARD } kind;
};

/* Why a call was refused because of its data (THOLE_INVALID). */
struct call_refusal {
    char code[6];        /* SQLSTATE; "": this program does not send that */
    char column[64];     /* "": not known */
    char constraint[64]; /* "": none is named */
    char reason[256];    /* one line */
};

struct postgres {
    PGconn *conn; /* NULL: lost, and that was reported; the next call connects again */
    char *conninfo, *application;
    char schema[64];         /* as it is stored, without quotes */
    char roles[64];          /* how names of its roles begin */
    char where[WHERE_BYTES]; /* host, port and database, for error texts */
    uint64_t connect_timeout_ms, statement_timeout_ms, idle_in_transaction_ms;
    bool synchronous_commit;
    bool reads;             /* as of postgres_options */
    bool in_transaction;    /* between complete_begin and commit or rollback */
    postgres_wait_fn *wait; /* NULL: the thread waits */
    void *wait_arg;
    /* Each transaction may run in another session of the server: settings and prepared statements last for
     * one transaction, and a server that was lost is seen by its incarnation alone. */
    bool pooled;
    char *settings;                      /* pooled: the statement that makes them */
    char incarnation[INCARNATION_BYTES]; /* pooled: when the first partition was opened; "": none is */
    uint64_t statements;
    bool prepared[STATEMENTS];
    uint64_t opened[PARTITIONS_MAX / 64]; /* partitions opened on this connection since it was made */
    uint16_t *set_aside; /* of each partition, how many of its rows are: projector_apart.c; NULL: none is */

    /* the call under way */
    const char *what;
    uint64_t timeout_ms;
    thole_status failed;        /* sticky */
    thole_error connect_failed; /* the error text, when the call could not connect */
    struct call_refusal refusal;
    size_t refused_param; /* from 1: the first one that has a value which is not sent; 0: none has */
    struct buf bytes;     /* of all parameters */
    uint32_t *order;      /* of the elements of arrays; NULL: as they are */
    size_t params, offsets[CALL_PARAMS_MAX];
    int lengths[CALL_PARAMS_MAX];
    struct call_queued queued[CALL_STATEMENTS_MAX];
    size_t queued_len;
    struct call_pending pending[2 * CALL_STATEMENTS_MAX + 2];
    size_t pending_len;
    PGresult *results[CALL_STATEMENTS_MAX];
    size_t results_len;
};

/* Connects if there is no connection. @p what completes "… failed" in error texts; static text. */
void call_begin(struct postgres *pg, const char *what);
/* For this call only; otherwise it is the connection's statement timeout. Client side. */
void call_timeout(struct postgres *pg, uint64_t timeout_ms);

/* Parameters. Arrays are read from the same field of @p n structs: the first one's, and the struct's size. */
/* From now on element i of an array is that of struct order[i], until another order or the next call_begin().
 * Takes it over; NULL: as they are. */
void call_order(struct postgres *pg, uint32_t *order);
void call_text(struct postgres *pg, thole_slice text);
void call_int8(struct postgres *pg, uint64_t value); /* above INT64_MAX: THOLE_INVALID */
void call_int4(struct postgres *pg, uint32_t value); /* above INT32_MAX: THOLE_INVALID */
void call_text_array(struct postgres *pg, const thole_slice *first, size_t stride, size_t n);
void call_int8_array(struct postgres *pg, const uint64_t *first, size_t stride, size_t n);
void call_int4_array(struct postgres *pg, const uint32_t *first, size_t stride, size_t n);
void call_bool_array(struct postgres *pg, const bool *first, size_t stride, size_t n);
void call_bytes_array(struct postgres *pg, const thole_slice *first, size_t stride, size_t n);
/* Text for people: bytes that are not UTF-8, and NULs, become question marks. */
void call_readable_array(struct postgres *pg, const thole_slice *first, size_t stride, size_t n);
/* Values above @p most become @p most. */
void call_int8_array_most(struct postgres *pg, const uint64_t *first, size_t stride, size_t n, uint64_t most);

void call_send(struct postgres *pg, enum statement statement);
size_t call_sent(const struct postgres *pg); /* since call_begin() */
THOLE_NODISCARD thole_status call_run(struct postgres *pg, thole_error *reterr);

/* Ends the transaction that a call with STATEMENT_BEGIN has left open. It is over afterwards, whatever the
 * status; THOLE_UNAVAILABLE: whether it is committed is unknown. */
THOLE_NODISCARD thole_status call_commit(struct postgres *pg, const char *what, thole_error *reterr);
/* Never fails: a connection that cannot roll back is closed, which rolls back. Does nothing if no transaction
 * is open.
 */
void call_rollback(struct postgres *pg, const char *what);

/* Results of the @p i-th statement. Cells are borrowed until the next call. NULL reads as 0 and empty. */
size_t call_rows(const struct postgres *pg, size_t i);
/* Of a text or bytes. */
thole_slice call_cell_text(const struct postgres *pg, size_t i, size_t row, size_t column);
uint64_t call_cell_int8(const struct postgres *pg, size_t i, size_t row, size_t column);
/* The server's name for what the statement did, for example "COMMIT". */
const char *call_tag(const struct postgres *pg, size_t i);

/*
 * postgres_connect.c. Makes a new connection and its settings; pg->conn is NULL before.
 */
THOLE_NODISCARD thole_status session_open(struct postgres *pg, thole_error *reterr);

/*
 * postgres_session.c. Any SQL without parameters, outside a call; may hold several statements. Text results;
 * the last one goes to *ret_last (may be NULL), which the caller clears.
 */
THOLE_NODISCARD thole_status session_sql(struct postgres *pg, const char *what, const char *sql,
                                         uint64_t timeout_ms, PGresult **ret_last, thole_error *reterr);
/* Waits until a result can be read without blocking. UNAVAILABLE after the deadline or when lost. */
THOLE_NODISCARD thole_status session_wait(struct postgres *pg, uint64_t deadline_ms, thole_error *reterr);
/* Status and text of a failure; closes the connection if it is not usable any more. @p result may be NULL:
 * the connection failed. */
THOLE_NODISCARD thole_status session_failed(struct postgres *pg, const char *what, const PGresult *result,
                                            thole_error *reterr);
/* Closes it: the next call connects again. Keeps in_transaction. */
void session_drop(struct postgres *pg);
/* The schema's name, quoted for SQL; for PQfreemem(). There is a connection. */
char *session_identifier(struct postgres *pg);
char *session_literal(struct postgres *pg);

/*
 * postgres_migrate.c. Both halves of the advisory lock of a schema's migration: "thol" and a hash, so that
 * namespaces of one database do not wait for each other.
 */
enum { MIGRATE_LOCK_CLASS = 0x74686f6c };
uint32_t migrate_lock_key(const char *schema);

#define SCHEMA_NEXT_SUFFIX "~next" /* no namespace's name has a ~ */

/*
 * postgres_error.c. Status and text, and whether the connection is not usable any more.
 */
THOLE_NODISCARD thole_status error_from_result(const struct postgres *pg, const char *what,
                                               const PGresult *result, bool *ret_useless,
                                               thole_error *reterr);
/* Takes the refused data from a result. */
void error_refusal(const PGresult *result, struct call_refusal *ret);
/* For a connection attempt: the status is found in the message, which holds SQLSTATEs (PQERRORS_VERBOSE). */
THOLE_NODISCARD thole_status error_from_connect(const struct postgres *pg, PGconn *conn, thole_error *reterr);
#endif
