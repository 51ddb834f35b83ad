/*
 * Inside engine/worker/: the messages that a worker holds, found by id, by activity and by state. Fixed size.
 * A lease is always in exactly one list, that of its state; lease_enter() moves it, and nothing else changes
 * a state.
 */
#ifndef THOLE_LEASE_TABLE_H
#define THOLE_LEASE_TABLE_H
#include "lease_states.h"
#include "nonce.h"
#include "worker.h"

/* A cancellation push, and whether the row confirmed it. */
enum lease_push {
    PUSH_NONE,
    PUSH_HEARD,  /* received before it was claimed */
    PUSH_EARLY,  /* the row is still being deleted: asked at the next push, or renewal */
    PUSH_WANTED, /* the row must be asked */
    PUSH_ASKED,  /* in the RENEW that is in flight */
    PUSH_DENIED, /* the row was still there */
};

/* While a cancelled handler has grace: who holds the row. */
enum lease_claim {
    CLAIM_HELD,    /* this worker's */
    CLAIM_GONE,    /* nobody: the row is missing, the activity is cancelled */
    CLAIM_EXPIRED, /* nobody: the lease has expired */
    CLAIM_STOLEN,  /* another worker */
};

/* Of LEASE_PARKED. */
struct lease_parked {
    uint64_t until_ms; /* when it is handed back */
    bool candidate;    /* a poison candidate by its row; else this program does not know the activity */
};

/* Of LEASE_CANCELLING. */
struct lease_cancelling {
    enum worker_path path; /* why its token has fired */
    enum lease_claim claim;
    uint64_t grace_ms; /* end of its grace: its slot is given up */
};

/* Of LEASE_READY, COMPLETING, TO_LEAVE, LEAVING and RETRYING. */
struct lease_result {
    bool unrun;        /* a quick one, whose handler has still to be run in this batch: no result */
    uint64_t left_ms;  /* unrun: until its deadline; 0 = it has none */
    bool later;        /* no result: it is completed from outside */
    bool published;    /* has been stored at least once */
    bool failed;       /* the publish in this batch failed or was not answered */
    uint32_t retries;  /* of its batch or of its LEAVE */
    uint64_t again_ms; /* RETRYING: when it is tried again */
};

struct lease {
    uint64_t id;
    struct worker_key key;     /* the key's instance points to instance_bytes */
    uint64_t attempt;          /* the fencing token; 0 = not claimed, or by a batch that has not begun */
    uint64_t claimed_us;       /* when the claim was made, by the database's clock */
    bool unwritten;            /* the claim of a quick one: its row does not say so */
    struct work_digest digest; /* of what its message says */
    bool compared;             /* with that of the row, by the claim */
    uint64_t deliveries;       /* of its message; a hint */
    enum lease_state state;
    enum lease_push push;
    union { /* selected by the state */
        struct lease_parked parked;
        struct lease_cancelling cancelling;
        struct lease_result result;
    };
    uint64_t arrived_ms; /* when its message was delivered */
    uint64_t signal_ms;  /* the delivery or the last +WPI */
    /* when its claim or last kept renewal was sent; UINT64_MAX: not claimed */
    uint64_t renewed_ms;
    uint64_t deadline_ms;             /* of the try; UINT64_MAX: none */
    struct lease *prev, *next;        /* of the list of its state */
    struct lease *id_next, *key_next; /* hash chains */
    uint64_t since_ms;                /* of its cancellation, once its token has fired: see worker_out */
    size_t cancel_kind_len, reason_len;
    char nonce[NONCE_TEXT_LEN + 1]; /* of the activity */
    uint8_t instance_bytes[THOLE_ID_BYTES_MAX];
    uint8_t cancel_kind[WORKER_KIND_BYTES_MAX], reason[WORKER_REASON_BYTES_MAX];
};

struct lease_list {
    struct lease *first, *last;
    size_t len;
};

struct lease_table {
    struct lease *leases; /* all; free ones have id 0 */
    size_t cap, len;
    struct lease_list lists[LEASE_STATES];
    struct lease **by_id, **by_key;
    size_t mask; /* number of buckets - 1 */
};
void lease_table_init(struct lease_table *table, size_t cap);
void lease_table_release(struct lease_table *table); /* NULL-safe on a zeroed struct */
/* In state NEW, not claimed. NULL: full. The instance is copied. */
struct lease *lease_table_add(struct lease_table *table, uint64_t id, const struct worker_key *key);
/* In state ENDED; its memory is reused. */
void lease_table_remove(struct lease_table *table, struct lease *lease);
struct lease *lease_table_find(const struct lease_table *table, uint64_t id); /* NULL: none */
/* First with this key, then the others with lease_next_same(); NULL: no more. */
struct lease *lease_table_find_key(const struct lease_table *table, const struct worker_key *key);
struct lease *lease_next_same(const struct lease *lease);

/* The only way to change a state; asserts that the new one may follow. The lease goes to the end of the list
 * of that state; when its claim failed, to the front of those that wait for one. Its payload is kept among
 * states that share one, and otherwise begins at zero. */
void lease_enter(struct lease_table *table, struct lease *lease, enum lease_state state);
/* Whether this worker holds the row, as far as it knows. For a claimed lease. */
bool lease_has_row(const struct lease *lease);
/* Whether its lease is lost while its handler has grace. */
bool lease_is_lost(const struct lease *lease);
/* Whether it takes part in renewals: it is claimed and not in a completion batch (the batch holds the row's
 * lock, and its answer says what the row is). */
bool lease_takes_part(const struct lease *lease);
#endif
