/* Which workers serve which queue and know which activities, as they have answered. */
#ifndef THOLE_ROSTER_H
#define THOLE_ROSTER_H
#include "arena.h"
#include "thole/client.h"

struct roster_worker {
    struct roster_worker *next;
    thole_slice worker, queue;
    uint64_t slots;
    const thole_slice *activities;
    size_t activities_len;
};
struct roster {
    struct arena arena;
    struct roster_worker *first, **last;
    bool asked; /* false: not known, because the question failed */
};

/* Asks. It is usable in any case; THOLE_OK when it was answered. */
thole_status roster_read(struct roster *roster, thole_client *client, thole_error *reterr);
void roster_release(struct roster *roster);
size_t roster_workers(const struct roster *roster, thole_slice queue);
bool roster_knows(const struct roster *roster, thole_slice queue, thole_slice activity);
/* Of a queue in which nothing is: THOLE_NOT_FOUND when no worker serves it either, nor has. */
THOLE_NODISCARD thole_status roster_queue_known(const struct roster *roster, thole_client *client,
                                                thole_slice queue, thole_error *reterr);
/* Why no worker will run it, as far as is known now: "no worker of queue default knows helo; did the code
 * mean hello?". False: one will, or it is not known. */
bool roster_complaint(const struct roster *roster, thole_slice queue, thole_slice activity, char *to,
                      size_t cap);
#endif
