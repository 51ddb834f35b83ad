/*
 * Engines ask each other whether they are there: a question on thole.<ns>.engines.<node>, to which only that
 * engine is subscribed, with a random number of the asker's; the answer repeats the number and says which
 * heartbeat the engine stands by. A heartbeat in the bucket is no answer: anybody who may write there can
 * store one in any engine's name. Core NATS, nothing is stored; only engines should be allowed to subscribe.
 * Thread-safe.
 */
#ifndef THOLE_PRESENCE_H
#define THOLE_PRESENCE_H
#include "connection.h"

struct presence;
/* @p hash: of the heartbeat that @p node stands by; empty: nobody is subscribed under its name. On the
 * thread of the connection's loop. Both are borrowed. */
typedef void presence_fn(void *arg, thole_slice node, thole_slice hash);

/* May ask from now on; answers nobody. */
THOLE_NODISCARD thole_status presence_open(struct connection *connection, const char *ns, const char *node,
                                           presence_fn *each, void *arg, struct presence **ret,
                                           thole_error *reterr);
/* Sets the hash that answers have: at most PRESENCE_HASH_MAX printable characters without spaces. */
enum { PRESENCE_HASH_MAX = 64 };
void presence_stand_by(struct presence *presence, const char *hash);
/* Answers from now on. */
THOLE_NODISCARD thole_status presence_answer(struct presence *presence, thole_error *reterr);
/* Never blocks. By one thread, not from presence_fn. */
THOLE_NODISCARD thole_status presence_ask(struct presence *presence, thole_slice node, thole_error *reterr);
/* Answers no more. Messages that are sent afterwards find nobody. */
void presence_quiet(struct presence *presence);
void presence_close(struct presence *presence); /* NULL-safe; no call of presence_fn after it */

/* Inside: "NUMBER HASH" of an answer's body. False for anything else. */
bool presence_parse(thole_slice body, thole_slice *ret_number, thole_slice *ret_hash);
#endif
