/*
 * One execution of one orchestration: the replay core.
 *
 * In a turn received events are delivered, then the code runs until it waits or ends; what it asks for
 * becomes the turn's new events. Replay is the same over a recorded turn, with the new events compared to the
 * recorded ones instead of being returned. Both use the same functions.
 *
 * Pure: no clock, I/O, threads, randomness, globals. Same calls, same bytes.
 * One thread at a time may use an instance and its pool of stacks; both may move between threads between
 * calls.
 */
#ifndef THOLE_INSTANCE_H
#define THOLE_INSTANCE_H
#include "event.h"
#include "thole/program.h"

struct stack_pool; /* coro.h; reused coroutine stacks, one pool for all instances of a thread */
struct instance;

struct instance_options {
    void *arg;                              /* for the code: thole_orchestration_arg() */
    const thole_call_options *call_options; /* of calls that have none; NULL: none; borrowed */
    size_t stack_bytes;           /* of the code, and of its query handlers; 0 = of the pool's size */
    thole_orchestration_fn *code; /* NULL: received events can be recorded, code cannot run; see replay */
    thole_slice id;
    uint64_t execution;
    uint32_t version;   /* of code, 0 = unknown; recorded where history has none: in STARTED, or, where that
                           came without code, as VERSION_CHOSEN at the head of the first turn that may run */
    size_t memory_max;  /* bytes of the instance's arena, and as many for the events of one turn */
    size_t payload_max; /* bytes of one input, output or text */
    /* how long an activity stays in quarantine; 0 = it fails at once; UINT64_MAX = until a user decides. For
     * live turns only: a replay takes the recorded time */
    uint64_t quarantine_ms;
    struct stack_pool *stacks;
    /* For debuggers, in a replay: called once, on the code's stack, right after this event: from the call
     * that asked for it, or before the await returns that follows its receipt. 0: never. */
    uint64_t stop_event;
    void (*stop)(void *arg, const struct instance *instance);
    void *stop_arg;
    /* Called before and after what thole_on_drop() was given, if it was given anything. NULL: never. */
    void (*drops)(void *arg, const struct instance *instance, bool begins);
    void *drops_arg;
};

/* The version that an entry of a program has, which may leave it out. */
static inline uint32_t entry_version(const thole_orchestration_entry *entry)
{
    return entry->version == 0 ? 1 : entry->version;
}
/* Sets what the entry of a program says of its code; it is borrowed. */
void instance_options_code(struct instance_options *options, const thole_orchestration_entry *entry);

/* The id is copied. */
struct instance *instance_create(const struct instance_options *options);
/* Legal at any time between calls: a parked stack is dropped, not unwound, and what the code has registered
 * with thole_on_drop() is called. NULL-safe. */
void instance_destroy(struct instance *instance);

struct turn_in {
    uint64_t time_ms;             /* logical; raised to the last turn's time if it is below it */
    const struct event *received; /* ids are assigned by the instance, the given ones are ignored */
    size_t received_len;
    bool run; /* false: only record the received events; they are delivered with the next turn that runs. A
                 paused instance does not run either; a terminated one ends without its code */
};

/* A line that the code logged in a live turn. */
struct turn_log {
    uint32_t level; /* a thole_log_level */
    thole_slice text;
};

struct turn_out {
    uint64_t number;            /* of this turn, from 1 */
    uint64_t time_ms;           /* logical time that was used */
    const struct event *events; /* received, then new; ids set; valid until the next call on the instance */
    size_t events_len;
    bool ran;   /* received events have been delivered; false: recorded only */
    bool ended; /* the last event is terminal */
    const struct turn_log *logs;
    size_t logs_len;
};

/*
 * Whether this received event would change anything. False: the task that it resolves is unknown, resolved or
 * cancelled, or it reports another try than the running one; the instance has started / been asked to cancel
 * already, is paused / not paused, or has ended; the event's request id was seen before; before Started,
 * anything but Started. Only a turn with an accepted event needs to run. A turn itself skips events that are
 * no longer accepted (the second of two completions, a cancel request before Started), so a batch may be
 * given unfiltered.
 *
 * The recorded event may differ from the received one:
 *  - ACTIVITY_FAILED of a try that may be followed by another is recorded as ACTIVITY_TRY_FAILED;
 *  - ACTIVITY_FAILED with lost > 0 was not run: by its policy it is recorded as ACTIVITY_QUARANTINED, or like
 *    any other failure. The end of a quarantine is received as ACTIVITY_TRY_STARTED, or as ACTIVITY_FAILED
 *    with quarantined set, of the quarantined try (0 = any);
 *  - TIMER_FIRED whose ref is an activity is its wake: recorded as ACTIVITY_TRY_STARTED when the next try is
 *    due, as ACTIVITY_FAILED (THOLE_TIMEOUT, "timeout") when its total time is over, or (THOLE_APP, "poison")
 *    when its quarantine is, else refused. Here due_ms is the current time; 0 = after all due times. A turn
 *    uses its own time;
 *  - a cancel request while paused resumes.
 */
bool instance_accepts(const struct instance *instance, const struct event *received);
/* Whether a request with that id and kind was taken before, also when the instance has ended. */
bool instance_has_seen(const struct instance *instance, const struct event *received);

/*
 * Runs a live turn. On any error the instance must be destroyed: nothing of the turn may be recorded.
 * THOLE_LIMIT (memory), THOLE_NOMEM (also: no stack left in the pool), THOLE_INVALID (not started, ended, or
 * no code to run).
 */
THOLE_NODISCARD thole_status instance_turn(struct instance *instance, const struct turn_in *in,
                                           struct turn_out *ret, thole_error *reterr);

/*
 * Executes a recorded turn (all its parts joined) again and compares. Turn numbers must come in order,
 * from 1. THOLE_NONDETERMINISM: text names the event id, what history has and what the code asked for.
 * THOLE_CORRUPT: gap in turn or event numbers, events before Started or after the end, a resolution of
 * something never scheduled. THOLE_UNSUPPORTED: semantics or event kinds newer than this engine.
 * THOLE_LIMIT, THOLE_NOMEM. After an error the instance may only be destroyed.
 *
 * Events received by a turn that did not run were not checked when they were recorded: there a resolution of
 * an unknown task is ignored. Duplicates are always ignored. Without code the recorded events are taken as
 * facts, unknown kinds are skipped, and instance_accepts() answers as it would with code.
 */
THOLE_NODISCARD thole_status instance_replay(struct instance *instance, const struct turn *turn,
                                             thole_error *reterr);

/*
 * Answers a query from the parked instance, or from one that has ended, whose stack is gone: THOLE_NOT_FOUND
 * (no handler of that name), THOLE_INVALID (it tried to schedule, wait or set; no code; ended, and its
 * argument was on the stack), THOLE_LIMIT (a larger answer than a payload may be), THOLE_NOMEM (no stack), or
 * what the handler returned, with the text of its thole_throw(). The output is valid until the next call on
 * the instance. Changes nothing.
 */
THOLE_NODISCARD thole_status instance_query(struct instance *instance, thole_slice name, thole_slice input,
                                            thole_slice *ret_output, thole_error *reterr);

/*
 * The events that the next execution of an instance begins with, after CONTINUED_AS_NEW: STARTED, then
 * STATE_CARRIED (the custom status under the key "", the keys in order), ORIGINS_CARRIED, CANCEL_REQUESTED if
 * no await has reported it, and EVENT_RECEIVED for events that no wait took, in order and without their
 * request ids, which are in ORIGINS_CARRIED. In memory of @p arena. Works with and without code. THOLE_LIMIT,
 * THOLE_NOMEM.
 */
THOLE_NODISCARD thole_status instance_carry(const struct instance *ended, struct arena *arena,
                                            struct event **ret_events, size_t *ret_len);

/*
 * Whether the instance keeps one more event of that name: false when so many wait, or so many bytes of their
 * data, and the code does not await this one now. A turn does not check it: what is recorded is taken.
 */
enum { EVENTS_KEPT_MAX = 10000, EVENTS_KEPT_BYTES_MAX = 8 * 1024 * 1024 };
bool instance_keeps_more(const struct instance *instance, thole_slice event_name);
size_t instance_kept(const struct instance *instance); /* number of events that wait */

enum { ORIGINS_CARRIED_MAX = 1000 }; /* newest requests of events that it knows again */

/* A task that is not resolved, by the id of its scheduling event. */
struct outstanding {
    uint64_t id;
    uint32_t try_number; /* of an activity: the try that runs, ran last, or is in quarantine; else 0 */
    bool waiting;        /* for its next try, or in quarantine */
    bool quarantined;
    uint64_t due_ms; /* waiting: when the next try is due, or when it fails; 0 = never by itself */
};
/* Begin with *cursor 0; ids ascend; false: no more. With and without code. */
bool instance_outstanding(const struct instance *instance, size_t *cursor, struct outstanding *ret);

/* Events of one name that were received and that no wait has got. */
struct kept_name {
    thole_slice name; /* borrowed from the instance */
    uint64_t first;   /* id of the oldest of them */
    size_t count;
};
/* Fills at most @p cap of them, in no order; returns how many there are. */
size_t instance_kept_names(const struct instance *instance, struct kept_name *ret, size_t cap);

/* Facts; slices are borrowed from the instance. */
const struct instance_options *instance_options_of(const struct instance *instance); /* the options it was
                                                                                        created with */
bool instance_started(const struct instance *instance);
bool instance_ended(const struct instance *instance);
bool instance_paused(const struct instance *instance);
thole_slice instance_pause_reason(const struct instance *instance); /* of one that is paused; may be empty */
/* Ended with CONTINUED_AS_NEW. */
bool instance_continued(const struct instance *instance);
uint32_t instance_version(const struct instance *instance); /* 0 = not chosen */
thole_slice instance_custom_status(const struct instance *instance);
struct origin instance_parent(const struct instance *instance);
/* Return address of the code's last call of the library, or of the one in which the turn failed, for the
 * replay tool; NULL = unknown. For an optimized tail call it is an address in the caller. */
const void *instance_call_site(const struct instance *instance);
thole_slice instance_orchestration(const struct instance *instance); /* empty before Started */
uint64_t instance_turns(const struct instance *instance);            /* number of the last turn */
uint64_t instance_events(const struct instance *instance);           /* and of the last event */
uint64_t instance_time_ms(const struct instance *instance);
size_t instance_memory(const struct instance *instance); /* bytes held, its stack counted in full */
/* Like instance_memory(), while the code waits: of its stack a few pages, of a larger stack the used part. */
size_t instance_parked_memory(const struct instance *instance);
/* Whether a received event waits for a turn that runs. */
bool instance_has_undelivered(const struct instance *instance);
/* Frees the last turn's events, which an instance otherwise keeps while it is parked. */
void instance_trim(struct instance *instance);
#endif
