/*
 * The witness of a worker: a process of its own that sees the worker die, and writes to the worker's rows in
 * Postgres what is known of it, so that the next claims know: its last word (last_word.h). It is forked
 * before the worker has threads or connections, sleeps for as long as the worker lives, and has no connection
 * of its own until then. It ends with the worker, or seconds after it.
 */
#ifndef THOLE_WITNESS_H
#define THOLE_WITNESS_H
#include "options.h"

struct witness;
/* Before any thread or connection; also installs what says the last word (dying.h). THOLE_UNSUPPORTED: there
 * is none, because the program has threads, or the system lacks something. The worker can do without. The
 * witness borrows texts of @p options for ever. */
THOLE_NODISCARD thole_status witness_start(const struct host_options *options, struct witness **ret,
                                           thole_error *reterr);
/* Whose rows they are: before the first claim. NULL-safe. */
void witness_name(struct witness *witness, const char *incarnation);
/* Its socket, for poll(2): it hangs up when the witness is gone. -1 for NULL. */
int witness_socket(const struct witness *witness);
/* It hung up, and not because it has stored the worker's last word. */
bool witness_is_lost(const struct witness *witness);
/* The worker holds nothing any more: the witness ends, and writes nothing. NULL-safe. */
void witness_stop(struct witness *witness);
#endif
