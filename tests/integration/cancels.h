/* Common parts of the tests of cancellation: the whole system with program_cancels, and the notes of its
 * activities. */
#ifndef THOLE_CANCELS_H
#define THOLE_CANCELS_H
#include "connection.h"
#include "stack.h"

enum { CANCELS_WAIT_MS = 60000 };

extern struct stack stack;
extern thole_client *client;
extern struct connection *connection;

/* Servers, environment, an engine that owns everything. Exits when that fails. */
void cancels_open(void);
void cancels_close(void);
struct stack_program *cancels_engine(const char *name);

/* Starts an instance that calls @p activity on @p queue @p n times. */
void cancels_start(const char *id, const char *orchestration, const char *queue, const char *activity,
                   unsigned n);
void cancels_signal(const char *id, const char *event);
void cancels_cancel(const char *id, const char *reason);
void cancels_terminate(const char *id, const char *reason);
/* Waits for its end, in the projection too: status and output. */
void cancels_outcome(const char *id, thole_instance_status status, const char *output);
/* Lets the instance's activities return that wait for leave. */
void cancels_allow(const char *id);

/* Lines that activities of this instance (NULL: of all; "x*": of those that begin so) noted and that begin
 * so: "begins", "fired requested", … How many there are; waits until there are so many. */
size_t cancels_noted(const char *id, const char *what);
void cancels_until(const char *id, const char *what, size_t times);

/* Events of that kind in the instance's history with that cause (NULL: any), and in how many turns. */
size_t cancels_events(const char *id, const char *kind, const char *cause, size_t *ret_turns);
/* Waits until the history has so many. */
void cancels_until_events(const char *id, const char *kind, size_t times);
/* The first value of the answer as a number. Not for transactions. */
size_t cancels_sql(const char *fmt, ...) THOLE_PRINTF(1, 2);
/* Rows of worker_queue of the instance (NULL: of all). Has it messages in WORK? */
size_t cancels_rows(const char *id);
bool cancels_queued(const char *id);
uint64_t cancels_message(const char *id); /* the last one's sequence in WORK; 0: there is none */
void cancels_until_gone(const char *id);  /* neither rows nor messages */
/* Last sequences of all inboxes together: grows with every message. */
uint64_t cancels_inbox(void);
#endif
