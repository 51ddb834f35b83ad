/*
 * The activities that the workers of a namespace know, by their last answers: roll_call.h. One thread asks,
 * any thread looks. An answer counts for a few seconds; the more workers answer, the longer, so that the
 * questions do not keep thousands of workers busy. A worker that did not answer in time is missing: so a
 * conclusion from "no worker" must correct itself with the next answer.
 */
#ifndef THOLE_SERVED_NAMES_H
#define THOLE_SERVED_NAMES_H
#include "roll_call.h"

enum served {
    SERVED_UNKNOWN, /* nobody has been asked, or too long ago, or it was not answered */
    SERVED_BY_NONE, /* no worker of the queue knows it */
    SERVED_BY_SOME,
};

struct served_names;
struct served_names *served_names_create(void);
void served_names_destroy(struct served_names *served); /* NULL-safe */
/*
 * Asks, and keeps the answer; one thread at a time, which blocks as roll_call() does. @p queue: only what its
 * workers say is kept; empty: all. @p self: a worker without whose own answer the others' are not believed;
 * empty: none. THOLE_DENIED: this user may not ask; then it is not asked again soon.
 */
THOLE_NODISCARD thole_status served_names_ask(struct served_names *served, struct connection *connection,
                                              const char *ns, thole_slice queue, thole_slice self,
                                              thole_error *reterr);
/* Any thread. @p ret_asks: it is time to ask (again). */
enum served served_names_look(struct served_names *served, thole_slice queue, thole_slice activity,
                              uint64_t now_ms, bool *ret_asks);
/* Whether it is time to ask, independent of a name. */
bool served_names_asks(struct served_names *served, uint64_t now_ms);
/* Whether the question gets no answer: this user may not ask, or no worker answers at all, for example
 * because workers are in another account, to which the question does not pass. */
bool served_names_silent(struct served_names *served);
#endif
