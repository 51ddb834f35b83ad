/* A worker role in this process, with real servers, and functions that do what the engine would do. */
#ifndef THOLE_WORKER_STAGE_H
#define THOLE_WORKER_STAGE_H
#include "clock.h"
#include "integration.h"
#include "notice.h"
#include "postgres.h"
#include "projector_store.h"
#include "reader.h"
#include "subject.h"
#include "topology.h"
#include "work.h"
#include "worker_host.h"
#include "worker_store.h"
#include <stdatomic.h>

enum { STAGE_LEASE_MS = 3000, STAGE_LOG_BYTES = 1 << 20 };

/* Counters of the handlers of the test program; set to zero by stage_begin(). */
struct stage_notes {
    atomic_uint started, returned, fired;
    atomic_uint_least64_t fired_us; /* when the last token fired, as its handler saw it */
    atomic_uint_least64_t left_ms;  /* time left when the last handler of these began */
    atomic_bool release;            /* ends stubborn handlers */
    char reason[64];
    char token[64]; /* of the last that is completed later */
};
extern struct stage_notes stage_notes;
/*
 * Activities: echo; hold (until its token fires, then CANCELLED); slow (as many ms as its input says, then
 * "ok"); stubborn (ignores its token until released); relay (first attempt: hold; later: "relayed"); large
 * (more than the payload limit); odd (returns what is not a status); gives_up (CANCELLED by itself).
 * paged (says "page <try>.<attempt>" by a heartbeat and then does what its input says: "hold", "fail",
 * "final", "stubborn"; else gives "<try>.<attempt> after <details>"); later (leaves it to others).
 */
extern const thole_program stage_program, stage_other_program; /* the other knows only "elsewhere" */

struct stage {
    char dir[SERVER_PATH_BYTES];
    struct server nats, postgres;
    thole_error err;
    char ns[32];
    struct connection *connection;
    struct engine_host *engine; /* of it there is what makes the consumers of queues, and no more */
    struct requests *requests;
    atomic_uint stored;
    struct postgres *pg;
    uint64_t seq;           /* of batches */
    struct rows_state rows; /* state after the last one */
    struct host_options options;
    uint32_t replicas; /* of streams; 0: 1 */
};

void stage_open(struct stage *stage); /* starts the servers, exits when it cannot */
void stage_close(struct stage *stage);
/* A fresh namespace with one partition; sets options to the test's usual ones. */
void stage_begin(struct stage *stage, const char *ns);
void stage_end(struct stage *stage);
struct worker_host *stage_worker(struct stage *stage, const thole_program *program);

/* The engine's part: the row, then the message. */
void stage_schedule(struct stage *stage, const char *instance, uint64_t id, const char *activity,
                    const char *input);
void stage_row(struct stage *stage, const char *instance, uint64_t id, const char *activity, bool add);
void stage_message(struct stage *stage, const char *instance, uint64_t id, const char *activity,
                   const char *input);
void stage_push(struct stage *stage, const char *instance, uint64_t id);
/* The partition is opened again, as an engine does when Postgres was lost: rows that are missing are gone. */
void stage_open_again(struct stage *stage);
/* All leases end now: whoever claims next may have the rows. */
void stage_end_leases(struct stage *stage);
/* The parameters of one try of an activity. */
struct stage_try {
    uint32_t number;
    uint64_t timeout_ms;
    const char *details; /* of the try before */
};
void stage_schedule_try(struct stage *stage, const char *instance, uint64_t id, struct stage_try try,
                        const char *activity, const char *input);
void stage_row_try(struct stage *stage, const char *instance, uint64_t id, struct stage_try try,
                   const char *activity);
void stage_message_try(struct stage *stage, const char *instance, uint64_t id, uint32_t try,
                       const char *activity, const char *input);
void stage_push_try(struct stage *stage, const char *instance, uint64_t id, uint32_t try);

/* Number of results for that instance's inbox; the last one's status and data. Waits until there are @p
 * least. */
size_t stage_results(struct stage *stage, const char *instance, size_t least, uint64_t wait_ms);
extern struct stage_result {
    uint32_t status;
    uint32_t try_number;
    bool final;
    uint64_t activity_id, attempt;
    char data[256], error_type[80], details[80];
} stage_last;
/* Waits until there is a result in that instance's inbox, whatever there is in others. */
bool stage_has_result(struct stage *stage, const char *instance, uint64_t wait_ms);
uint64_t stage_queued(struct stage *stage); /* messages in WORK */
/* Waits until WORK is empty. */
bool stage_drained(struct stage *stage, uint64_t wait_ms);
bool stage_wait(atomic_uint *count, unsigned least, uint64_t wait_ms);
uint64_t stage_now_us(void);
void stage_pause_ms(unsigned ms);

/* Lines logged between the two calls go to a buffer, and then to stderr as well. */
void stage_log_begin(struct stage *stage);
const char *stage_log_end(struct stage *stage);
#endif
