/*
 * A shard's projector: one Postgres connection, requests in order. It reconnects by itself, reports to its
 * shard when the connection is up and down, and never polls the database.
 *
 * The shard's thread applies batches; it waits for the connection's socket beside its own descriptors:
 * store_socket(), store_continue(). A thread of the store connects and carries out the other requests; when
 * it has finished it sends SHARD_STORE_BACK.
 */
#ifndef THOLE_STORE_H
#define THOLE_STORE_H
#include "thole/types.h"
#include <poll.h>

struct request;
struct shard;
struct store;
THOLE_NODISCARD thole_status store_start(struct shard *shard, struct store **ret, thole_error *reterr);
/* The shard's thread. Takes the request, which waits for store_begin(). */
void store_submit(struct store *store, struct request *request);
/* The shard's thread, once it has told others what they wait for: begins what was submitted, batches of all
 * partitions in one, unless something is under way. */
void store_begin(struct store *store);
/* The shard's thread: it carries out a call. Its answer is a mail, and what is submitted meanwhile waits for
 * that. */
bool store_is_calling(const struct store *store);
/* The shard's thread: what it is to wait for, for poll(2), descriptor -1: nothing; and when to continue at
 * the latest, by clock_monotonic_ms(), UINT64_MAX: at any time. */
struct pollfd store_socket(const struct store *store, uint64_t *ret_deadline_ms);
/* To be called after each wait of the shard's thread. Answers requests that have ended; the next ones begin
 * with store_begin(), when all partitions have given out their rows. */
void store_continue(struct store *store, short revents);
/* When the shard's thread has ended. Finishes submitted requests first; NULL-safe */
void store_stop(struct store *store);
uint64_t store_statements(const struct store *store);
#endif
