/* From a request to what it asks for. Run by a worker, which has a client of its own. */
#ifndef THOLE_ROUTES_H
#define THOLE_ROUTES_H
#include "answer.h"
#include "request.h"
#include "thole/client.h"
#include <stdatomic.h>

struct session {
    const thole_client_options *options; /* borrowed */
    thole_client *client;                /* opened at the first request that needs it */
    atomic_bool *batch;                  /* shared: one is under way */
};
/* A problem when it cannot be opened. */
thole_client *session_client(struct session *session, struct answer *answer);
void session_end(struct session *session);

struct route {
    bool post;
    const char *pattern; /* request_is() */
    void (*run)(struct session *session, const struct request *request, struct answer *answer);
    const char *arguments; /* names of what its query may have, between blanks */
};
/* NULL: there is none; *ret_other: but with the other method. */
const struct route *route_find(const struct request *request, bool *ret_other);
void route_run(const struct route *route, struct session *session, const struct request *request,
               struct answer *answer);
#endif
