/*
 * Postgres connections. One thread at a time uses a connection. No error text and no line of the log contains
 * a secret of the connection string.
 *
 * Every call in projections/ blocks until the server has answered, at most for the statement timeout plus two
 * seconds. A call on a coroutine lets its thread go on meanwhile: see postgres_set_wait(). A call without a
 * connection first makes one, which takes at most the connect timeout for each host.
 *
 * Statuses of every call:
 *  THOLE_OK
 *  THOLE_UNAVAILABLE  The connection was lost, the server is starting or stopping, it has too many
 *                     connections, a timeout passed, a deadlock or a serialization failure occurred, the disk
 *                     is full, the server is a read-only replica, or the tables do not exist yet or are older
 *                     than this program. The caller may try again later. Whether the change was made is
 *                     unknown; every change may be repeated.
 *  THOLE_DENIED       The password, the role or the database is wrong, or a privilege is missing.
 *  THOLE_UNSUPPORTED  The server is older than version 14, its encoding is not UTF8, or its schema is newer
 *                     than this program.
 *  THOLE_INVALID      The connection string or the namespace is malformed, an id is not UTF-8 or contains a
 *                     NUL, or a number exceeds INT64_MAX. Nothing was changed; the connection stays usable.
 *  THOLE_LIMIT        The parameters exceed 64 MiB, or the caller's arena is full.
 *  THOLE_NOMEM
 *  THOLE_CORRUPT      An answer has an unexpected shape, or the failure fits no other status.
 * The error text says what was tried, the host, the port, the database, the server's message and what to try.
 *
 * One call reports a lost connection as THOLE_UNAVAILABLE; the next call connects again. A pooler (pgbouncer)
 * between program and server may give each transaction another session of the server. Each connect detects
 * that. Then a session keeps no state, statements are not prepared, each transaction of an engine checks
 * whether the server has lost transactions since the last one (table incarnation), and notifications of
 * removed rows do not arrive.
 *
 * Commits are asynchronous by default, so a server that crashed may have lost the last ones. That is why each
 * partition must be opened again on every new connection (projector_store.h).
 */
#ifndef THOLE_POSTGRES_H
#define THOLE_POSTGRES_H
#include "thole/types.h"

struct buf;
struct postgres;

struct postgres_options {
    const char *conninfo; /* libpq connection string or URI, several hosts allowed; NULL: the environment's */
    const char
        *ns; /* namespace of at most 50 bytes: rows live in schema "thole_<ns>", as it is, case and all */
    const char *application;       /* shown in pg_stat_activity, for example "thole-engine"; NULL: "thole" */
    uint64_t connect_timeout_ms;   /* for each host; 0: 5 s */
    uint64_t statement_timeout_ms; /* 0: 30 s */
    uint64_t idle_in_transaction_ms; /* the server ends a transaction that is idle for longer; 0: 10 s */
    bool synchronous_commit;         /* false: synchronous_commit = off for its transactions */
    bool next;                       /* the schema beside it: see schema_next.h */
    bool reads; /* a server that only reads serves, too, where none of the hosts writes: a hot standby, or a
                   role whose transactions are read-only */
};

/* Whether there is a password in it; false as well when it is malformed, which postgres_open() refuses. */
bool postgres_has_secret(const char *conninfo);
/* Appends it for people, as keywords and values, with dots for secrets; dots alone when it is malformed.
 * Returns whether it has hidden something. */
bool postgres_show(const char *conninfo, struct buf *to);
/* Strings are borrowed for the call. Makes no tables: see postgres_migrate(). */
THOLE_NODISCARD thole_status postgres_open(const struct postgres_options *options, struct postgres **ret,
                                           thole_error *reterr);
void postgres_close(struct postgres *pg); /* NULL-safe */
/* Another connect and statement timeout for the calls that follow, outside of a transaction. A round trip
 * where it differs; if that fails the next call makes a new connection. */
void postgres_set_timeout(struct postgres *pg, uint64_t timeout_ms);
/* For a caller on a coroutine, whose thread must not block: called where a call would wait for the socket,
 * with events of poll(2); returns those that have happened when there are any, or when clock_monotonic_ms()
 * has reached @p deadline_ms. Meanwhile no other call uses the connection. A call never connects so: without
 * a connection it is THOLE_UNAVAILABLE. @p wait NULL: the thread waits. */
typedef short postgres_wait_fn(void *arg, int socket, short events, uint64_t deadline_ms);
void postgres_set_wait(struct postgres *pg, postgres_wait_fn *wait, void *arg);
/* The socket, for poll(2): readable while no statement runs means that the connection may be going away, see
 * postgres_check_idle(). -1 while there is no connection. Another one after a reconnect. */
int postgres_socket(const struct postgres *pg);
/* Reads what an idle socket has received (notices, a lost connection). Never blocks, never connects. */
THOLE_NODISCARD thole_status postgres_check_idle(struct postgres *pg, thole_error *reterr);
/* From now on postgres_next_removal() returns partitions of which another program has deleted rows: their
 * owners are fenced, and must project everything again. Does nothing through a pooler. */
THOLE_NODISCARD thole_status postgres_listen(struct postgres *pg, thole_error *reterr);
/* One at a time, of notifications that a statement or postgres_check_idle() has read; false: no more.
 * *ret_partition: UINT32_MAX = all. */
bool postgres_next_removal(struct postgres *pg, uint32_t *ret_partition);
/* Applies migrations/NNNN_*.sql that are not yet applied, in order, each in a transaction, under an advisory
 * lock. Any number of processes may call it at once. Needs the privilege to create a schema unless there is
 * one. Waits at most ten minutes for each migration, whatever the statement timeout is. */
THOLE_NODISCARD thole_status postgres_migrate(struct postgres *pg, thole_error *reterr);
/* The number of the newest migration that is applied; 0: there are no tables. THOLE_UNSUPPORTED: newer than
 * this program. */
THOLE_NODISCARD thole_status postgres_applied(struct postgres *pg, size_t *ret, thole_error *reterr);
/* Gives the roles thole_<ns>_engine, …_worker and …_reader what deploy/postgres/grants.sql gives them, in one
 * transaction, under the same lock. For a member of thole_<ns>_owner. THOLE_NOT_FOUND: such a role is
 * missing. */
THOLE_NODISCARD thole_status postgres_grant(struct postgres *pg, thole_error *reterr);
/* How many of these roles there are, and appends what they lack: "thole_shop_worker on worker_queue, …". Any
 * role may ask. */
THOLE_NODISCARD thole_status postgres_rights(struct postgres *pg, size_t *ret_roles, struct buf *lacking,
                                             thole_error *reterr);
/* Whether a pooler is in between, in whatever mode. */
bool postgres_is_pooled(const struct postgres *pg);
/* As libpq has it: 150004 is 15.4. 0 while there is no connection. */
int postgres_server_version(const struct postgres *pg);
/* Statements sent on this connection since it was opened; for the idle test. */
uint64_t postgres_statements(const struct postgres *pg);
/* Bytes of the database on its server's disk. */
THOLE_NODISCARD thole_status postgres_database_bytes(struct postgres *pg, uint64_t *ret, thole_error *reterr);
/* The database's clock, milliseconds since 1970 UTC. */
THOLE_NODISCARD thole_status postgres_now_ms(struct postgres *pg, uint64_t *ret_ms, thole_error *reterr);
/* Whether nobody may write on this connection: a hot standby, or a role whose transactions are read-only. One
 * round trip. */
THOLE_NODISCARD thole_status postgres_only_reads(struct postgres *pg, bool *ret, thole_error *reterr);
/* Writes a row of each table that engines write rows of, and rolls all back. */
THOLE_NODISCARD thole_status postgres_try_write(struct postgres *pg, uint32_t *ret_tables,
                                                thole_error *reterr);
#endif
