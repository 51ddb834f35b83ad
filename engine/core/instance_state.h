/*
 * What the files of the replay core share: the execution's state and the steps of a turn.
 *
 *   instance.c            life, facts, live turns
 *   instance_receive.c    what comes from outside: is it accepted, what does it change
 *   instance_run.c        the code runs, until it waits or the execution ends
 *   instance_replay.c     recorded turns: checks, execution again
 *   instance_apply.c      recorded turns without code
 *   instance_mismatch.c   history against code, and the words for a difference
 *   instance_carry.c      what continue-as-new takes along
 *   instance_tasks.c      the table of what was scheduled; resolving, cancelling
 *   instance_names.c      names, and the events and waits of each
 *   instance_retry.c      tries of an activity: policy, delays, wakes
 *   instance_requests.c   request ids that were seen
 *   instance_state_map.c  keys and values
 *   instance_schedule.c   what an orchestration calls: activities, timers, events, children
 *   instance_awaits.c     ... the thole_await functions
 *   instance_values.c     ... time, ids, randomness, values, status, state, versions
 *   instance_context.c    ... facts, memory, texts
 *   instance_saga.c       ... steps to undo
 *   instance_query.c      questions to a parked instance
 *   instance_failure.c    why an execution failed, in words
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
    BROKEN_CALLS_MAX = 100000, /* the same of calls that do not wait: it may never get to an await */
    TRIES_MAX = 10000,
    FINAL_TYPES_MAX = 64,
    FACTOR_MAX = 1000,
    STATUS_BYTES_MAX = 1024,
    STATE_KEY_BYTES_MAX = 64,
    QUERIES_MAX = 64,
    ORIGINS_CARRIED_MAX = 1000,
    LOG_BYTES_MAX = 64 * 1024, /* of one turn; what is beyond is lost */
    CONTINUE_EVENTS = 10000,   /* see thole_should_continue_as_new() */
    CONTINUE_BYTES = 8 * 1024 * 1024,
};
/* Ids of events that schedule something; so many segments of ordinals hold them. */
#define TASK_EVENTS_MAX ((UINT64_C(1) << TASK_SEGMENTS_MAX) * TASK_SEGMENT_FIRST - TASK_SEGMENT_FIRST)
#define TIMER_DELAY_MS_MAX (UINT64_C(36525) * 24 * 3600 * 1000) /* 100 years */

/*
 * A task that was never scheduled because its arguments were wrong: no event, no entry in the table. Its id
 * says what was wrong, so that the await can return it. What is no task (an event to raise) leaves its fault
 * to the next await.
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
};
#define TASK_FAULT_BIT (UINT64_C(1) << 63)

enum task_kind { TASK_ACTIVITY = 0, TASK_TIMER, TASK_EVENT, TASK_CHILD };
enum task_state { TASK_OUTSTANDING = 0, TASK_SUCCEEDED, TASK_FAILED, TASK_CANCELLED };

/* Beside the task of an activity that has timeouts or a retry policy. */
struct task_call {
    struct retry retry;
    struct retry per_try; /* as ACTIVITY_TRY_STARTED has it */
    thole_slice queue;    /* queue, input and details only where there may be a second try */
    thole_slice input;
    thole_slice details;  /* of the last heartbeat that any failed try had */
    uint64_t deadline_ms; /* of all tries together; 0 = none */
    uint64_t next_due_ms; /* of the next try, while it waits */
    uint32_t try_number;  /* that runs, or ran last; from 1 */
    bool waiting;         /* for the next try */
    bool quarantined;     /* the same, but it comes only when somebody says so; next_due_ms: when it fails */
    thole_slice why;      /* in quarantine */
};

struct task_child {
    thole_slice target;
    enum close_policy close;
};

/* Something scheduled. Its address is stable. */
struct task {
    uint64_t id;          /* of the event that scheduled it; ascending in the table */
    uint64_t resolved_at; /* of the event that resolved it: "earliest in history" is the smallest; 0 before */
    struct name *name;    /* of the activity, event, or child's orchestration; NULL for a timer */
    thole_slice data;     /* output, failure text, or reason of the cancellation */
    union {
        struct task_call *call;   /* an activity's; NULL = one try, no limit of time */
        struct task_child *child; /* a child's */
        struct task *next_wait;   /* an event's: the next wait for the same name */
    };
    const thole_slice *error_type; /* of the failure; NULL = none */
    uint32_t code;                 /* status of the failure, cancel_kind of the cancellation */
    uint8_t kind;                  /* an enum task_kind */
    uint8_t state;                 /* an enum task_state */
    bool awaited;                  /* counted in the execution's waits_left */
    bool told;                     /* an await has given its outcome to the code */
};

/* An event that nobody has taken. */
struct kept_event {
    uint64_t id;
    thole_slice data;
    struct kept_event *next;
};

enum patch_answer { PATCH_UNKNOWN = 0, PATCH_TRUE, PATCH_FALSE };

/* Whatever goes by this name. Its address is stable. */
struct name {
    struct name *next; /* in its bucket */
    uint64_t hash;
    thole_slice text;
    uint8_t patch;            /* an enum patch_answer */
    struct task *waits_first; /* in order; those that are not outstanding any more are passed over */
    struct task *waits_last;
    struct kept_event *kept_first, *kept_last; /* ascending ids */
    struct kept_event *returned;               /* a heap, smallest id first: taken by waits that were then */
    size_t returned_len, returned_cap;         /* cancelled before anybody was told */
};

struct name_table {
    struct name **buckets;
    size_t len, cap; /* cap: a power of two */
};

/* Hashes of request ids: a set, and the last ones in order. 0 stands for none. */
struct request_set {
    uint64_t *cells;
    size_t len, cap;
    uint64_t *ring; /* the last ones; ring_next is where the next goes */
    size_t ring_len, ring_cap, ring_next;
};

struct state_node;
struct state_map {
    struct state_node *head, *spare;
    size_t bytes; /* of all keys and values */
    size_t len;
};

struct query_handler {
    struct query_handler *next;
    thole_slice name;
    thole_query_fn *answer;
    void *arg;
    bool on_stack; /* arg lies on the orchestration's own stack, which is gone when it has returned */
};

/* What runs on the instance's behalf without being the orchestration itself, and may change nothing. */
enum guard { GUARD_NONE = 0, GUARD_QUERY, GUARD_EFFECT };

/* The query at hand. */
struct query {
    struct arena arena; /* scratch, and the answer, until the next call */
    struct coro *coro;
    const struct query_handler *handler;
    thole_slice input, output, thrown;
    thole_status status;
    bool done;
};

/* Why an await last did not succeed, kept as facts and made into words only if the execution fails. */
struct last_failure {
    thole_status status; /* THOLE_OK: none yet */
    const struct task *task;
    enum task_fault fault;
    uint64_t id;
};

struct thole_ctx {
    struct instance *instance;
};

struct instance {
    struct instance_options options;
    struct thole_ctx ctx;
    struct arena arena;      /* what lives as long as the execution */
    struct arena turn_arena; /* the last turn's events, until the next call */

    /* Where it stands. */
    uint64_t turns, time_ms, next_event, event_bytes;
    bool started, ended, undelivered, paused;
    bool has_run; /* a turn has delivered what it received */
    thole_slice orchestration, input, request_id;
    uint32_t version, semantics;
    uint64_t random_seed, random_count;
    struct origin parent;
    uint64_t before;        /* executions of earlier lives */
    uint64_t pruned_before; /* the last prune in this execution */
    thole_slice custom_status;
    uint8_t *custom_status_room;
    struct request_set requests;
    struct state_map state;

    /* What was scheduled. */
    struct task *segments[TASK_SEGMENTS_MAX];
    size_t tasks_len;
    uint32_t *ordinals[TASK_SEGMENTS_MAX]; /* by event id: which task it scheduled, from 1; 0 = none */
    struct name_table names;

    /* The code. */
    struct coro *coro;
    bool returned;
    thole_status returned_status;
    thole_slice output;
    bool threw;
    thole_slice thrown, thrown_type;
    struct last_failure last_failure;
    enum task_fault fault; /* for the next await to tell; 0 = none */
    size_t waits_left;     /* what the await that the code is suspended in still needs; 0 = can go on */
    bool interrupted;      /* that await returns THOLE_CANCELLED when resumed */
    const void *call_site;
    struct query_handler *queries;
    size_t queries_len;
    enum guard guard;
    bool refused; /* what the guard forbids was tried */
    size_t refused_awaits;
    struct query query;

    /* Continuing as new: the code has asked for it; then, how the execution ended. */
    bool continuing, continued;
    thole_slice next_input;
    uint32_t next_version;

    /* Termination. */
    bool terminate_received;
    thole_slice terminate_reason;

    /* Cancellation of the whole execution, in the order in which the flags become true. */
    bool cancel_received;  /* the request is in the history */
    bool cancel_delivered; /* a turn that ran has seen it: what was outstanding is cancelled */
    bool cancel_pending;   /* no await has told the code yet */
    bool cancel_noticed;   /* an await has */
    thole_slice cancel_reason, cancel_request_id;

    /* The turn at hand. */
    bool replaying;
    bool receiving;               /* live: what the turn was given is being taken in */
    bool unchecked;               /* replaying a turn that did not run: see instance_replay() */
    const struct event *expected; /* replaying: recorded new events that the code has yet to ask for */
    size_t expected_len;
    const struct event *matched; /* replaying: the recorded event that instance_emit() was given last */
    struct event *events;        /* live */
    size_t events_len, events_cap;
    struct turn_log *logs; /* live; in turn_arena */
    size_t logs_len, logs_cap, logs_bytes;
    thole_status broken; /* sticky: the turn fails with this */
    size_t broken_awaits, broken_calls;
    thole_error *reterr;
    uint8_t id[];
};

/* ---- a turn ---- */

/* The turn fails with this; the first caller decides. Returns the status that counts. */
thole_status instance_break(struct instance *in, thole_status status, const char *fmt, ...)
    THOLE_PRINTF(3, 4);
/* The memory ceiling was hit. */
thole_status instance_full(struct instance *in);
/* Copies into the execution's arena; empty stays empty. */
THOLE_NODISCARD thole_status instance_keep(struct instance *in, thole_slice from, thole_slice *ret);
/* The same for what the turn's events borrow; a replayed turn only compares it, at once. */
THOLE_NODISCARD thole_status instance_keep_for_turn(struct instance *in, thole_slice from, thole_slice *ret);

/* Common beginning of live and replayed turns. */
void instance_turn_begin(struct instance *in, uint64_t time_ms, thole_error *reterr);
/* What is recorded for an event that came and was accepted; changes *event. False: nothing, after all. */
bool instance_convert(struct instance *in, struct event *event);
/* Delivers one received event: assigns its id, copies it, changes what it changes. The code sees it when it
 * next runs. Resolutions of what is resolved are ignored; of what was never scheduled: THOLE_CORRUPT. */
thole_status instance_receive(struct instance *in, const struct event *event);
/* Lets the code run until it waits or ends; after a termination request, ends without it. */
thole_status instance_run(struct instance *in);
/* The id that the next event will have. */
uint64_t instance_next_id(struct instance *in);
/*
 * The code, or the end of it, asks for an event: appended to the turn, or when replaying compared to what was
 * recorded. Returns its id; 0 when the turn is broken. Slices must live until the turn's end.
 */
uint64_t instance_emit(struct instance *in, struct event *event);
/* Appends to the live turn's events. */
thole_status instance_push(struct instance *in, const struct event *event);
/* Between the request and the turn that delivers it, what is outstanding is as good as cancelled. */
bool instance_cancel_undelivered(const struct instance *in);
void instance_count_event(struct instance *in, const struct event *event);

/* ---- replay ---- */

/* Compares what the code asks for to the recorded event. */
thole_status instance_match(struct instance *in, const struct event *asked);
/* The recorded event of that kind that must come next; NULL: it does not, the turn is broken. */
const struct event *instance_expect(struct instance *in, enum event_kind kind);
/* The code waits or has ended: nothing recorded may be left. */
thole_status instance_nothing_left(struct instance *in);
/* Markers that come next in history are taken note of, whether or not the code asks for them. */
void instance_absorb_patches(struct instance *in);
/* Takes what a turn asked for as facts. */
thole_status instance_apply(struct instance *in);

/* ---- tasks ---- */

/* NULL: no such task, or out of memory. */
struct task *task_find(const struct instance *in, uint64_t id);
struct task *task_at(const struct instance *in, size_t i);
struct task *task_add(struct instance *in, uint64_t id, enum task_kind kind, thole_slice name);
/* "activity", "timer", "event", "child" */
const char *task_kind_text(const struct task *task);
/* What the event is a resolution or a cancellation of; NULL when nothing of that kind was scheduled. */
struct task *task_resolved_by(const struct instance *in, const struct event *event);
/* First resolution only; wakes the await that counts it. @p at: the event that it is resolved by. */
void task_resolve(struct task *task, enum task_state state, uint64_t at, struct instance *in);
/* Emits the event and resolves. Nothing when resolved already, but what a wait for an event has taken is
 * given back if nobody was told. @p reason must live as long as the execution. */
void task_cancel(struct instance *in, struct task *task, enum cancel_kind kind, thole_slice reason);
/* Outstanding, or a wait whose event nobody was told of. */
bool task_may_be_cancelled(const struct task *task);
/* What a recorded cancellation does. */
thole_status task_apply_cancelled(struct instance *in, struct task *task, const struct event *event);
/* Ascending by id. */
void tasks_cancel_outstanding(struct instance *in, enum cancel_kind kind, thole_slice reason);
/* The same at the end of the execution: children as their close policy says. */
void tasks_close(struct instance *in, enum cancel_kind kind, thole_slice reason);
/* Facts that come with a scheduling event. The event is in history. */
thole_status task_describe_call(struct instance *in, struct task *task, const struct event *scheduled);
thole_status task_describe_child(struct instance *in, struct task *task, const struct event *scheduled);

/* ---- names and events ---- */

struct name *names_find(const struct instance *in, thole_slice text);
/* Finds or adds; NULL: out of memory, the turn is broken. */
struct name *names_intern(struct instance *in, thole_slice text);
/* A received event: the first wait takes it, else it is kept. data lives as long as the execution. */
thole_status event_arrived(struct instance *in, thole_slice name, uint64_t id, thole_slice data);
/* A wait that was just scheduled takes the oldest event that was kept. */
void event_await(struct instance *in, struct task *wait);
/* A wait that has taken an event is cancelled: the next wait gets it. */
thole_status event_give_back(struct instance *in, struct task *wait);
/* Calls @p visit for each event that nobody has taken, in no order. */
size_t events_kept(const struct instance *in,
                   void (*visit)(void *arg, const struct name *name, uint64_t id, thole_slice data),
                   void *arg);

/* ---- tries ---- */

/* The try that runs, or ran last; 1 for what has no policy. */
uint32_t task_try(const struct task *task);
/* Does a timer row belong to the activity now? */
bool task_timed(const struct task *task);
/* Does a result of this try count? */
bool retry_takes_result(const struct task *task, uint32_t try_number);
/* Is this try (0: any) in quarantine? */
bool retry_is_quarantined(const struct task *task, uint32_t try_number);
/* What a wake of this activity means at this time: an event kind, or EVENT_UNKNOWN = nothing yet. */
enum event_kind retry_wake(const struct task *task, uint64_t now_ms);
/* Makes a wake into what is recorded for it. */
void retry_convert_wake(const struct instance *in, const struct task *task, struct event *event);
/* Makes a failure that another try may follow into ACTIVITY_TRY_FAILED, or ACTIVITY_QUARANTINED. */
void retry_convert_failure(const struct instance *in, const struct task *task, struct event *event);
/* Makes what somebody decided on an activity in quarantine into what is recorded for it. */
void retry_convert_release(const struct task *task, struct event *event);
/* The recorded steps between tries. */
thole_status retry_try_failed(struct instance *in, struct task *task, const struct event *event);
thole_status retry_quarantined(struct instance *in, struct task *task, struct event *event);
thole_status retry_try_started(struct instance *in, struct task *task, const struct event *event);
/* Checks options and turns them into @p ret; 0 = they are right. */
enum task_fault retry_from_options(const thole_call_options *options, struct retry *ret,
                                   thole_slice types[FINAL_TYPES_MAX]);
bool retry_is_none(const struct retry *retry);

/* ---- hashes, request ids ---- */

uint64_t hash_bytes(uint64_t seed, thole_slice bytes);
uint64_t hash_number(uint64_t seed, uint64_t number);

uint64_t request_hash(enum event_kind kind, thole_slice request_id); /* 0 for an empty one */
bool requests_seen(const struct request_set *set, uint64_t hash);
thole_status requests_add(struct instance *in, uint64_t hash);
/* The last ones, oldest first; returns how many. */
size_t requests_last(const struct request_set *set, uint64_t ret[ORIGINS_CARRIED_MAX]);

/* ---- state ---- */

bool state_find(const struct state_map *map, thole_slice key, thole_slice *ret_value);
/* The first key after @p key; an empty key comes before all. */
bool state_next(const struct state_map *map, thole_slice key, thole_slice *ret_key, thole_slice *ret_value);
thole_status state_put(struct instance *in, thole_slice key, thole_slice value);
void state_drop(struct state_map *map, thole_slice key);
thole_status instance_set_custom_status(struct instance *in, thole_slice status);

/* ---- what the code calls ---- */

/* Notes where the code is; when the turn has failed, where it was then. Only in functions that an
 * orchestration calls. */
#define NOTE_CALL_SITE(in)                                                                                   \
    ((in)->guard == GUARD_NONE && (in)->broken == THOLE_OK                                                   \
         ? (void)((in)->call_site = __builtin_return_address(0))                                             \
         : (void)0)
/* A query or a side effect tries what only the orchestration may do: noted, and refused. */
bool instance_refuses(struct instance *in);
/* The code that calls this is run no more: the instance, or the query, is dropped with the stack. */
void instance_park(struct instance *in);
/* Remembers the fault for the next await; the first one counts. */
void instance_fault(struct instance *in, enum task_fault fault);
/* At most so many bytes, not ending in the middle of a UTF-8 sequence. */
thole_slice text_cut(thole_slice text, size_t bytes_max);

/* The awaits and calls, for the library's own use: no call site is noted. */
thole_task schedule_call(struct instance *in, thole_slice name, thole_slice input,
                         const thole_call_options *options);
THOLE_NODISCARD thole_status await_one(struct instance *in, thole_task task, thole_slice *ret_result);

/* ---- why it failed ---- */

/* THOLE_INVALID or THOLE_LIMIT, and a sentence, for a task that was never scheduled. */
thole_status fault_status(enum task_fault fault);
const char *fault_text(enum task_fault fault);
enum task_fault task_fault_of(thole_task task);
/* How an await of a task that did not succeed returns. */
thole_status task_outcome(const struct task *task);
/* The failure text of an execution that returned @p status, in turn memory, and its error type. */
thole_slice instance_failure_text(struct instance *in, thole_status status);
thole_slice instance_failure_type(const struct instance *in);
#endif
