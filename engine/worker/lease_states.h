/* Inside engine/worker/: the states of a lease, and which may follow which. docs/architecture.md shows the
 * table. */
#ifndef THOLE_LEASE_STATES_H
#define THOLE_LEASE_STATES_H
#include <stdbool.h>

/* lint.state_tables draws these lines in docs/architecture.md: one state a line, with what it means. */
enum lease_state {
    LEASE_FREE,       /* not in use */
    LEASE_NEW,        /* the message was just taken */
    LEASE_PARKED,     /* not known to this program, or a poison candidate: waits to be handed back */
    LEASE_UNSERVED,   /* no worker of the queue knows it: waits for SHELVE */
    LEASE_SHELVING,   /* in the SHELVE that is in flight */
    LEASE_QUEUED,     /* waits to be claimed */
    LEASE_QUICK,      /* waits for a batch of completions, which claims and runs it as well */
    LEASE_ISOLATED,   /* a poison candidate: waits until it can be claimed isolated */
    LEASE_CLAIMING,   /* in the CLAIM that is in flight; has a slot */
    LEASE_STARTING,   /* claimed: its RUN output waits to be taken; has a slot */
    LEASE_RUNNING,    /* the handler runs; has a slot */
    LEASE_CANCELLING, /* the token has fired, and the handler has grace; has a slot */
    LEASE_CONFIRMING, /* pushed, and no handler runs: waits for the row to confirm the cancellation */
    LEASE_READY,      /* has a result: waits for a batch */
    LEASE_COMPLETING, /* in the batch of completions; a quick one is run there */
    LEASE_TO_LEAVE,   /* completed from outside: waits for LEAVE */
    LEASE_LEAVING,    /* in the LEAVE that is in flight */
    LEASE_RETRYING,   /* the batch or LEAVE failed: waits to be tried again */
    LEASE_TO_RELEASE, /* the claim is given back: waits for RELEASE */
    LEASE_RELEASING,  /* in the RELEASE that is in flight */
    LEASE_ENDED,      /* the ACK, NAK or DROP output waits to be taken */
    LEASE_STATES,
};

bool lease_may_follow(enum lease_state from, enum lease_state to);
#endif
