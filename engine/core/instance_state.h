/*
 * The state of one execution, and who writes which part of it: each struct below is written by the file that
 * its comment names, and by no other; the others read it. What each file offers is in the header of its name.
 *
 * From the bottom up; a file uses only files above it in this list:
 *
 *   instance_memory.c     the execution's memory, and the failure of a turn
 *   instance_names.c      names
 *   instance_requests.c   request ids that were seen
 *   instance_state_map.c  keys and values, and the custom status
 *   instance_turn.c       the turn at hand: its events, asked for live or compared to the recorded ones
 *   instance_code.c       the orchestration's coroutine, and what it may do now
 *   instance_tasks.c      the table of what was scheduled
 *   instance_retry.c      tries of an activity: policy, delays, wakes
 *   instance_events.c     events that came, and the waits for them
 *   instance_cancel.c     cancelling tasks, and the whole execution
 *   instance_failure.c    why an execution failed, in words
 *   instance_end.c        how the execution ends
 *   instance_receive.c    what comes from outside: is it accepted, what does it change
 *   instance_apply.c      recorded turns without code
 *   instance_awaits.c     what an orchestration calls: the thole_await functions
 *   instance_schedule.c   ... activities, timers, events, children
 *   instance_query.c      ... queries; and questions to a parked instance
 *   instance_context.c    ... facts, memory, texts
 *   instance_values.c     ... randomness, values, status, state, versions
 *   instance_saga.c       ... steps to undo
 *   instance_shorthand.c  ... what is made of others: a limit, a pause, a call with its await
 *   instance_run.c        the second half of a turn: the code runs, until it waits or the execution ends
 *   instance_carry.c      what continue-as-new takes along
 *   instance_outstanding.c  what was asked for and has not come
 *   instance.c            life, facts, and live turns
 *   instance_replay.c     recorded turns: checks, execution again
 */
#ifndef THOLE_INSTANCE_STATE_H
#define THOLE_INSTANCE_STATE_H
#include "coro.h"
#include "instance.h"

enum {
    TASK_SEGMENT_FIRST = 8, /* tasks; each segment holds twice as many as the one before */
    TASK_SEGMENTS_MAX = 28,
    TASKS_AWAITED_MAX = 1000000,
    BROKEN_AWAITS_MAX =
        64, /* awaits that return after the turn has failed; then the code is parked for good */
    BROKEN_CALLS_MAX = 100000, /* likewise for calls that do not wait: the code may never reach an await */
    TRIES_MAX = 10000,
    FINAL_TYPES_MAX = 64,
    FACTOR_MAX = 1000,
    STATUS_BYTES_MAX = 1024,
    STATE_KEY_BYTES_MAX = 64,
    QUERIES_MAX = 64,
    LOG_BYTES_MAX = 64 * 1024, /* of one turn; further lines are dropped */
    CONTINUE_EVENTS = 10000,   /* see thole_should_continue_as_new() */
    CONTINUE_BYTES = 8 * 1024 * 1024,
};
/* Largest id of a scheduling event: the ordinals' segments hold so many. */
#define TASK_EVENTS_MAX ((UINT64_C(1) << TASK_SEGMENTS_MAX) * TASK_SEGMENT_FIRST - TASK_SEGMENT_FIRST)
#define TIMER_DELAY_MS_MAX (UINT64_C(36525) * 24 * 3600 * 1000) /* 100 years */

/*
 * A task that was never scheduled because its arguments were wrong: no event, no entry in the table. Its id
 * is the fault, so that the await can return it. Calls without a task (raising an event) leave the fault to
 * the next await.
 */
enum task_fault {
    FAULT_ACTIVITY_NAME = 1,
    FAULT_ACTIVITY_INPUT = 2,
    FAULT_TIMER_DELAY = 3,
    FAULT_MEMORY = 4,
    FAULT_CALL_OPTIONS = 5,
    FAULT_QUEUE_NAME = 6,
    FAULT_EVENT_NAME = 7,
    FAULT_CHILD_NAME = 8,
    FAULT_CHILD_INPUT = 9,
    FAULT_CHILD_ID = 10,
    FAULT_CHILD_ID_DERIVED = 11,
    FAULT_CHILD_OPTIONS = 12,
    FAULT_RAISE_ID = 13,
    FAULT_RAISE_NAME = 14,
    FAULT_RAISE_DATA = 15,
    FAULT_STATE_KEY = 16,
    FAULT_STATE_SIZE = 17,
    FAULT_FORBIDDEN = 18, /* in a query or a side effect */
    FAULT_EMIT_TYPE = 19,
    FAULT_EMIT_DATA = 20,
};
#define TASK_FAULT_BIT (UINT64_C(1) << 63)

enum task_kind { TASK_ACTIVITY = 0, TASK_TIMER, TASK_EVENT, TASK_CHILD };
enum task_state { TASK_OUTSTANDING = 0, TASK_SUCCEEDED, TASK_FAILED, TASK_CANCELLED };

/* The part of a task for an activity that has timeouts or a retry policy. Written by instance_retry.c. */
struct task_call {
    struct retry retry;
    struct retry per_try; /* as ACTIVITY_TRY_STARTED has it */
    thole_slice queue;    /* queue, input and details only where there may be a second try */
    thole_slice input;
    thole_slice details;  /* of the last heartbeat of any failed try */
    uint64_t deadline_ms; /* of all tries together; 0 = none */
    uint64_t next_due_ms; /* of the next try, while it waits */
    uint32_t try_number;  /* the try that runs, or ran last; from 1 */
    bool waiting;         /* for the next try */
    bool quarantined;     /* for a user's decision; next_due_ms: when it fails */
    thole_slice why;      /* reason of the quarantine */
    thole_slice last_type,
        last_text;     /* of the last failed try that was not a timeout: the head of its text */
    uint32_t last_try; /* which one; 0: none */
};

struct task_child {
    thole_slice target;
    enum close_policy close;
};

/* Something scheduled. Its address is stable. Written by instance_tasks.c, but for what a comment says. */
struct task {
    uint64_t id;          /* of the event that scheduled it; ascending in the table */
    uint64_t resolved_at; /* of the event that resolved it: "earliest in history" is the smallest; 0 before */
    struct name *name;    /* of the activity, event, or child's orchestration; NULL for a timer */
    thole_slice data;     /* output, failure text, or reason of the cancellation */
    union {
        struct task_call *call;   /* an activity's; NULL = one try, no limit of time. By instance_retry.c */
        struct task_child *child; /* a child's */
        struct task *next_wait;   /* an event's: the next wait for the same name. By instance_events.c */
    };
    const thole_slice *error_type; /* of the failure; NULL = none */
    uint32_t code;                 /* status of the failure, cancel_kind of the cancellation */
    uint8_t kind;                  /* an enum task_kind */
    uint8_t state;                 /* an enum task_state */
    bool awaited;                  /* counted in code.waits_left; set by instance_awaits.c */
    bool reported;                 /* an await has given its outcome to the code; by instance_awaits.c */
};

/* An event that no wait has taken. */
struct kept_event {
    uint64_t id;
    thole_slice data;
    struct kept_event *next;
};

/* Of all names. Written by instance_events.c. */
struct kept_events {
    size_t len, bytes; /* bytes: of their data */
};

enum patch_answer { PATCH_UNKNOWN = 0, PATCH_TRUE, PATCH_FALSE };

/* A name and what belongs to it. Its address is stable. */
struct name {
    /* Written by instance_names.c. */
    struct name *next; /* in its bucket */
    uint64_t hash;
    thole_slice text;
    uint8_t patch; /* an enum patch_answer */
    /* Written by instance_events.c. */
    struct task *waits_first; /* in order; may hold waits that are no longer outstanding */
    struct task *waits_last;
    struct kept_event *kept_first, *kept_last; /* ascending ids */
    struct kept_event *returned;               /* a heap, smallest id first: from waits that were */
    size_t returned_len, returned_cap;         /* cancelled before an await reported it */
};

/* Written by instance_names.c. */
struct name_table {
    struct name **buckets;
    size_t len, cap; /* cap: a power of two */
};

/* Hashes of request ids: a set, and the last ones in order. 0 stands for none. Written by
 * instance_requests.c. */
struct request_set {
    uint64_t *cells;
    size_t len, cap;
    uint64_t *ring; /* the last ones; ring_next is where the next goes */
    size_t ring_len, ring_cap, ring_next;
};

/* Written by instance_state_map.c. */
struct state_node;
struct state_map {
    struct state_node *head, *spare;
    size_t bytes; /* of all keys and values */
};

/* Set by thole_set_status(). Written by instance_state_map.c. */
struct custom_status {
    thole_slice text;
    uint8_t *room;
};

/* Why an await last did not succeed; made into a text only if the execution fails. Written by
 * instance_awaits.c. */
struct last_failure {
    thole_status status; /* THOLE_OK: none yet */
    const struct task *task;
    enum task_fault fault;
    uint64_t id;
    const struct task *awaited; /* with THOLE_TIMEOUT, of thole_await_for(): it did not end within limit_ms */
    uint64_t limit_ms;
};

/* Facts from the received events of the history. Written by instance_receive.c. */
struct facts {
    bool started, paused;
    bool undelivered; /* an event was received that no turn has delivered yet */
    bool has_run;     /* a turn has delivered what it received */
    bool receiving;   /* live: received events are being taken */
    bool unchecked;   /* replaying the received events of a turn that did not run: see instance_replay() */
    bool terminate_received;
    thole_slice orchestration, input, request_id, terminate_reason, pause_reason;
    uint32_t version, semantics;
    uint64_t random_seed;
    struct origin parent;
    struct trace trace;
    uint64_t before;        /* executions of earlier incarnations of the id */
    uint64_t pruned_before; /* the last prune in this execution */
};

/* The tasks. Written by instance_tasks.c. */
struct task_table {
    struct task *segments[TASK_SEGMENTS_MAX];
    size_t len;
    uint32_t *ordinals[TASK_SEGMENTS_MAX]; /* by event id: which task it scheduled, from 1; 0 = none */
};

/* Cancellation of the whole execution, in the order in which the flags become true. Written by
 * instance_cancel.c. */
struct cancellation {
    bool received;  /* the request is in the history */
    bool delivered; /* a turn that ran has seen it: what was outstanding is cancelled */
    bool pending;   /* no await has reported it yet */
    bool noticed;   /* an await has */
    thole_slice reason, request_id;
};

/* How the execution ends. Written by instance_end.c. */
struct ending {
    bool continuing; /* the code has asked to continue as new */
    bool continued;  /* has ended with continue-as-new */
    bool ended;
    uint32_t next_version;
    thole_slice next_input;
};

/* Code other than the orchestration itself that runs now and may change nothing. */
enum guard { GUARD_NONE = 0, GUARD_QUERY, GUARD_EFFECT };

/* Of thole_on_drop(). */
struct drop {
    const struct drop *before;
    thole_drop_fn *release;
    void *arg;
};

/* The code's coroutine, and what it may do now. Written by instance_code.c; call_site by NOTE_CALL_SITE(). */
struct code {
    struct coro *coro;
    const struct drop *drops; /* the last one first */
    size_t waits_left; /* resolutions that the suspended await still needs; 0 = the code can continue */
    bool interrupted;  /* the suspended await returns THOLE_CANCELLED when resumed */
    bool returned;
    thole_status returned_status;
    thole_slice output;
    bool threw;
    thole_slice thrown, thrown_type;
    enum task_fault fault; /* for the next await to return; 0 = none */
    const void *call_site;
    enum guard guard;
    bool refused; /* something that the guard forbids was tried */
    size_t refused_awaits, broken_awaits, broken_calls;
};

struct query_handler {
    struct query_handler *next;
    thole_slice name;
    thole_query_fn *answer;
    void *arg;
    bool on_stack; /* arg points into the orchestration's own stack, which does not exist after its return */
};

/* The current query. */
struct query {
    struct arena arena; /* scratch, and the answer, until the next call */
    struct coro *coro;
    const struct query_handler *handler;
    thole_slice input, output, thrown;
    thole_status status;
    bool done;
};

/* Written by instance_query.c. */
struct queries {
    struct query_handler *first;
    size_t len;
    struct query current;
};

/* The current turn, and the state of the execution. Written by instance_turn.c. */
struct turn_at_hand {
    uint64_t number, time_ms, next_event, event_bytes;
    uint64_t clock_ms; /* reading of the engine's clock: time_ms does not go back with it */
    bool replaying;
    const struct event *expected; /* replaying: recorded new events that the code has yet to ask for */
    size_t expected_len;
    const struct event *matched; /* replaying: the recorded event that instance_emit() was given last */
    bool stopped;                /* options.stop was called */
    struct event *events;        /* live */
    size_t events_len, events_cap;
    struct turn_log *logs; /* live; in the arena */
    size_t logs_len, logs_cap, logs_bytes;
    struct arena arena; /* the last turn's events, until the next call */
};

struct thole_ctx {
    struct instance *instance;
};

struct instance {
    struct instance_options options; /* as given to instance_create() */
    struct thole_ctx ctx;
    struct arena arena;  /* memory that lives as long as the execution */
    thole_status broken; /* sticky: the turn fails with this. By instance_memory.c */
    thole_error *reterr; /* for the text. By instance_turn.c, while a turn is open */
    struct facts facts;
    struct request_set requests;
    struct state_map state;
    struct custom_status status;
    struct task_table tasks;
    struct name_table names;
    struct kept_events kept;
    struct cancellation cancel;
    struct ending end;
    struct code code;
    struct last_failure last_failure;
    uint64_t random_count; /* number of random numbers used. By instance_values.c */
    struct queries queries;
    struct turn_at_hand turn;
    uint8_t id[];
};

/* Between the request and the turn that delivers it, outstanding tasks count as cancelled. */
static inline bool cancel_undelivered(const struct instance *in)
{
    return in->cancel.received && !in->cancel.delivered;
}
#endif
