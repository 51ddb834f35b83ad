/* One private Postgres for a test program of projections/, and ways to look at it past the code under test.
 */
#ifndef THOLE_STORE_FIXTURE_H
#define THOLE_STORE_FIXTURE_H
#include "postgres.h"
#include "projector_store.h"
#include "query_store.h"
#include "thole_cunit.h"
#include "worker_store.h"

#define CHECK_STATUS(expr, want) store_check(#expr, (expr), (want), __FILE__, __LINE__)
#define CHECK_OK(expr) CHECK_STATUS(expr, THOLE_OK)
#define CHECK_INT(got, want) store_check_int(#got, (uint64_t)(got), (uint64_t)(want), __FILE__, __LINE__)
#define CHECK_HAS(text, part) store_check_has((text), (part), __FILE__, __LINE__)

extern thole_error store_err; /* where tests let errors go */
void store_check(const char *what, thole_status got, thole_status want, const char *file, int line);
void store_check_int(const char *what, uint64_t got, uint64_t want, const char *file, int line);
void store_check_has(const char *text, const char *part, const char *file, int line);

/* Starts the server and runs the tests; 77 when there is no Postgres to start. */
int store_run(const char *name, const struct thole_test *tests, size_t n);

/* The server's connection string; with another user, password or database where they are not NULL. */
const char *store_conninfo(const char *user, const char *password, const char *database);
uint16_t store_port(void);
void store_kill9(void);
void fixture_stop(void); /* a clean one */
void store_restart(void);
void store_pause(void);
void store_resume(void);

/* Connections of the code under test. They end the program when they cannot be made. */
struct postgres *fixture_open(const char *ns);   /* no tables made */
struct postgres *store_migrated(const char *ns); /* tables made */
/* A fresh namespace's connection with partition 1 open at epoch 1. */
struct postgres *store_partition(const char *ns);
/* Like store_partition(), with activities 1..n of instance "i". */
struct postgres *store_with_activities(const char *ns, size_t n);

/* SQL past the code under test, in a namespace's schema; the first cell of the result, "" when none. The text
 * is valid until the next call. A failing statement is a failing check. */
const char *store_sql(const char *ns, const char *fmt, ...) THOLE_PRINTF(2, 3);
void store_database(const char *name, const char *options); /* CREATE DATABASE */
/* SQL on the connection of the code under test, with its settings and prepared statements; lines of text. */
const char *store_own_sql(struct postgres *pg, const char *fmt, ...) THOLE_PRINTF(2, 3);
uint64_t store_count(const char *ns, const char *table);

/* Batches of one instance's activities 1..n, as the machine would build them. */
struct batch *store_batch(uint64_t epoch, uint64_t projected_seq);
void store_add_activities(struct batch *batch, const char *instance, uint64_t first, size_t n);
void store_remove_activities(struct batch *batch, const char *instance, uint64_t first, size_t n);
/* Applies and destroys. */
/* Owner of the rows that store_partition() has opened. */
extern const struct rows_owner store_owner;
/* The batch follows what the database has; projected 0: the watermark stays. */
void fixture_follow(const struct postgres *pg, struct batch *batch);
/* The state of the database after the batch was applied. */
void fixture_followed(struct rows_state *rows, const struct batch *batch);
/* Whatever the database has: the batch follows it. */
thole_status fixture_apply(struct postgres *pg, struct batch *batch);
struct claim store_claim_of(const char *instance, uint64_t activity_id);
/* One claim at a time; what has become of it. */
enum row_state store_claim_one(struct postgres *pg, thole_slice worker, struct claim *claim);
enum row_state store_renew_one(struct postgres *pg, thole_slice worker, struct claim *claim);
enum row_state store_complete_one(struct postgres *pg, thole_slice worker, struct claim *claim); /* commits */

/* So many rows of worker_queue were updated, nine of ten without touching an index; waits until it is known.
 */
void store_check_hot(const char *ns, int updates);

double store_now_us(void);
#endif
