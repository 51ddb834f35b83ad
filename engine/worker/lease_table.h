/* Inside engine/worker/: the messages that a worker holds, found by id and by activity. Fixed size. */
#ifndef THOLE_LEASE_TABLE_H
#define THOLE_LEASE_TABLE_H
#include "worker.h"

enum lease_state {
    LEASE_PARKED,     /* unknown activity, or a suspect; waits to be handed back */
    LEASE_QUEUED,     /* waits to be claimed (list queued) */
    LEASE_APART,      /* a suspect: waits until it can be claimed apart (the lane's) */
    LEASE_CLAIMING,   /* in the CLAIM that is in flight; holds a slot */
    LEASE_RUNNING,    /* its handler runs; holds a slot */
    LEASE_CONFIRMING, /* pushed, and no handler runs: the row will say whether it is cancelled */
    LEASE_READY,    /* has a result that waits to be completed, or a row that waits to be left to others (list
                       ready, or leaving, or until retry_ms) */
    LEASE_IN_BATCH, /* in the completion batch */
    LEASE_RELEASING, /* waits for RELEASE (list releasing), or is in it */
    LEASE_LEAVING,   /* in the LEAVE that is in flight */
    LEASE_ENDED,     /* its last output waits to be taken */
};

/* How far the question "is the row really gone?" has got. */
enum lease_confirm { CONFIRM_NONE, CONFIRM_WANTED, CONFIRM_ASKED };

struct lease {
    uint64_t id;
    struct worker_key key; /* its instance lies in instance_bytes */
    uint64_t attempt;      /* the fencing token; 0 = not claimed */
    uint64_t deliveries;   /* that its message had; a hint */
    enum lease_state state;
    enum lease_confirm confirm;
    bool started;      /* its RUN was taken */
    bool pushed;       /* somebody said that it is cancelled */
    bool fired;        /* its token was fired */
    bool shut_down;    /* and that was because the worker stops */
    bool confirmed;    /* its row is missing */
    bool lost, stolen; /* the lease is over; the row is another's */
    bool timed_out;    /* its result is a timeout */
    bool suspect;      /* its row says so */
    bool poisoned;     /* its result is that */
    bool later;        /* it has none: others complete it */
    bool published;    /* its result has been stored at least once */
    bool failed;       /* its publish in this batch was not answered with ok */
    bool listed;
    uint64_t arrived_ms;  /* its delivery */
    uint64_t signal_ms;   /* that, or the last +WPI */
    uint64_t renewed_ms;  /* claim or last renewal of the row, as sent; UINT64_MAX: not claimed */
    uint64_t deadline_ms; /* of the try; UINT64_MAX: none */
    uint64_t grace_ms;    /* fired: when its slot is given up; parked: when it is handed back */
    uint64_t retry_ms;    /* ready and not listed: when it is tried again */
    uint64_t due_ms;      /* not before this has time anything to say about it */
    uint32_t retries;
    struct lease *prev, *next;        /* of its list, or of the free ones */
    struct lease *id_next, *key_next; /* hash chains */
    size_t cancel_kind_len, reason_len;
    uint8_t instance_bytes[THOLE_ID_BYTES_MAX];
    uint8_t cancel_kind[WORKER_KIND_BYTES_MAX], reason[WORKER_REASON_BYTES_MAX];
};

struct lease_list {
    struct lease *first, *last;
    size_t len;
};
void lease_list_append(struct lease_list *list, struct lease *lease);
void lease_list_prepend(struct lease_list *list, struct lease *lease);
void lease_list_remove(struct lease_list *list, struct lease *lease);

struct lease_table {
    struct lease *leases; /* all; free ones have id 0 */
    size_t cap, len;
    struct lease *free;
    struct lease **by_id, **by_key;
    size_t mask; /* of the bucket numbers */
};
THOLE_NODISCARD thole_status lease_table_init(struct lease_table *table, size_t cap);
void lease_table_release(struct lease_table *table); /* NULL-safe on a zeroed struct */
/* NULL: full. The instance is copied. */
struct lease *lease_table_add(struct lease_table *table, uint64_t id, const struct worker_key *key);
void lease_table_remove(struct lease_table *table, struct lease *lease);
struct lease *lease_table_find(const struct lease_table *table, uint64_t id); /* NULL: none */
/* First with this key, then the others with lease_next_same(); NULL: no more. */
struct lease *lease_table_find_key(const struct lease_table *table, const struct worker_key *key);
struct lease *lease_next_same(const struct lease *lease);
#endif
