/*
 * History events and records as plain structs, and their codec to and from proto/history.proto.
 *
 * Everything that is decoded borrows from, or is copied into, the arena given: see each function.
 * Pure: no I/O, clock, threads or globals.
 */
#ifndef THOLE_EVENT_H
#define THOLE_EVENT_H
#include "arena.h"
#include "buf.h"
#include "record_hash.h"
#include "thole/activity.h"
#include "trace.h"

enum {
    RECORD_FORMAT = 2,
    RECORD_BYTES_MAX = 8 * 1024 * 1024, /* refused before unpacking */
    RECORD_EVENTS_MAX = 100000,         /* in one record */
    POSITION_ABOVE_MAX = 65536,         /* sequences that a position lists, and its ranges */
    RETRY_FINAL_TYPES_MAX = 64,
    SEMANTICS_VERSION = 3,          /* the semantics of new executions; older ones keep theirs */
    SEMANTICS_LOSERS_TOLD = 2,      /* since this version the losers of a race are told who won */
    SEMANTICS_CANCELLED_CLOSED = 3, /* since this one an end closes children that were cancelled, too */
    TIMER_ASKED_MS = 1,             /* due_ms of a TimerFired that is asked for: at once, a next try, too */
};

/* Values are those of the oneof's field numbers in history.proto; append only. */
enum event_kind {
    EVENT_UNKNOWN = 0, /* written by a newer thole; kept, never interpreted */
    EVENT_STARTED = 3,
    EVENT_ACTIVITY_SCHEDULED = 4,
    EVENT_ACTIVITY_COMPLETED = 5,
    EVENT_ACTIVITY_FAILED = 6,
    EVENT_ACTIVITY_CANCELLED = 7,
    EVENT_TIMER_CREATED = 8,
    EVENT_TIMER_FIRED = 9,
    EVENT_TIMER_CANCELLED = 10,
    EVENT_CANCEL_REQUESTED = 11,
    EVENT_COMPLETED = 12,
    EVENT_FAILED = 13,
    EVENT_CANCELLED = 14,
    EVENT_ACTIVITY_TRY_FAILED = 15,
    EVENT_ACTIVITY_TRY_STARTED = 16,
    EVENT_EVENT_RECEIVED = 17,
    EVENT_EVENT_AWAITED = 18,
    EVENT_EVENT_AWAIT_CANCELLED = 19,
    EVENT_CHILD_SCHEDULED = 20,
    EVENT_CHILD_COMPLETED = 21,
    EVENT_CHILD_FAILED = 22,
    EVENT_CHILD_CANCELLED = 23,
    EVENT_DETACHED_STARTED = 24,
    EVENT_EVENT_SENT = 25,
    EVENT_SIDE_EFFECT_RECORDED = 26,
    EVENT_CUSTOM_STATUS_SET = 27,
    EVENT_STATE_SET = 28,
    EVENT_PATCHED = 29,
    EVENT_CONTINUED_AS_NEW = 30,
    EVENT_TERMINATE_REQUESTED = 31,
    EVENT_TERMINATED = 32,
    EVENT_PAUSED = 33,
    EVENT_RESUMED = 34,
    EVENT_STATE_CARRIED = 35,
    EVENT_ORIGINS_CARRIED = 36,
    EVENT_VERSION_CHOSEN = 37,
    EVENT_DISCARDED = 38,
    EVENT_ACTIVITY_QUARANTINED = 39,
    EVENT_HISTORY_PRUNED = 40,
    EVENT_EVENT_EMITTED = 41,
};
#define EVENT_LAST EVENT_EVENT_EMITTED

/* Why something was cancelled: the stored part of the public list. */
enum cancel_kind {
    CANCEL_REQUESTED = THOLE_CANCEL_REQUESTED,
    CANCEL_SELECT_LOSER = THOLE_CANCEL_SELECT_LOSER,
    CANCEL_EXPLICIT = THOLE_CANCEL_EXPLICIT,
    CANCEL_ENDED = THOLE_CANCEL_ENDED,
    CANCEL_TIMEOUT = THOLE_CANCEL_TIMEOUT,
    CANCEL_TERMINATED = THOLE_CANCEL_TERMINATED,
};

/* Treatment of a child whose parent ends first. Stored; append only. */
enum close_policy { CLOSE_CANCEL = 0, CLOSE_ABANDON = 1, CLOSE_TERMINATE = 2 };

/* Treatment of an activity whose claims were lost too often. Stored; append only. */
enum poison_policy { POISON_QUARANTINE = 0, POISON_FAIL = 1, POISON_RETRY = 2 };
#define POISON_TYPE THOLE_STR("poison") /* the error type */

/* An event of another execution. instance empty: none. */
struct origin {
    thole_slice instance;
    uint64_t execution, event;
};

/* When and how often an activity is tried. All zero: one try, no limit of time. */
struct retry {
    uint64_t try_timeout_ms, total_timeout_ms; /* 0 = none */
    uint32_t tries_max;                        /* 0 and 1 = one */
    uint64_t first_delay_ms, max_delay_ms;     /* max 0 = no ceiling */
    uint32_t factor_milli, jitter_milli;
    const thole_slice *final_types; /* error types that are never tried again */
    size_t final_types_len;
    uint32_t poison; /* an enum poison_policy */
};

enum { ACTOR_NAME_BYTES_MAX = 200, ACTOR_CLIENT_BYTES_MAX = 64, RUN_HOST_BYTES_MAX = 255 };

/* The user or service that asked for something. Zeroed: not known. No orchestration sees it. */
struct actor {
    thole_slice name;
    thole_slice client;
    struct trace trace; /* of the request; valid */
    bool authenticated;
};

/* The run of an activity, as its worker says. Zeroed: it is not known. */
struct activity_place {
    thole_slice worker, host;
    uint64_t attempt; /* the number of its claim */
    uint64_t started_ms, ended_ms;
};

/* The recorded origin of an event. No decision depends on it. */
struct event_source {
    struct actor actor;          /* of what a client asked for */
    struct activity_place place; /* of a result */
};

/* One flat struct for all kinds: which fields each kind uses is said in record.c's table. */
struct event {
    enum event_kind kind;
    uint32_t code; /* status of FAILED kinds and of a side effect, cancel_kind of CANCELLED kinds, semantics
                      of STARTED, close_policy of CHILD_SCHEDULED */
    uint64_t id;   /* position in the execution's history, from 1 */
    uint64_t ref;  /* the event that this one resolves or cancels; 0 = none */
    union {
        uint64_t due_ms; /* TIMER_CREATED; ACTIVITY_TRY_FAILED: of the next try; ACTIVITY_TRY_STARTED: when
                            the total timeout ends it, ACTIVITY_QUARANTINED: when it fails, 0 = never */
        uint64_t before; /* STARTED: executions up to this one were deleted. HISTORY_PRUNED: those before this
                            one, and after `kept`, are removed */
    };
    uint32_t try_number; /* ACTIVITY_COMPLETED, _FAILED, _TRY_FAILED, _TRY_STARTED; from 1 */
    uint32_t version;    /* of the orchestration's code; 0 = not chosen */
    bool timed;          /* ACTIVITY_COMPLETED, _FAILED, _CANCELLED: a timer row belongs to the activity */
    bool flag;           /* STATE_SET: removed; CHILD_CANCELLED: terminate */
    bool final : 1;      /* ACTIVITY_FAILED as received: no further try. Not stored */
    bool data_erased : 1, details_erased : 1, input_erased : 1; /* there was one: a redaction erased it */
    bool quarantined;  /* ACTIVITY_FAILED, _CANCELLED, _TRY_STARTED: it ends the activity's quarantine */
    uint32_t lost;     /* ACTIVITY_QUARANTINED, ACTIVITY_FAILED as received: number of lost claims */
    thole_slice name;  /* orchestration, activity, event, type of an emitted event, state key, change id */
    thole_slice queue; /* ACTIVITY_SCHEDULED, _TRY_STARTED, _QUARANTINED */
    union {
        thole_slice input;       /* ACTIVITY_QUARANTINED */
        thole_slice traceparent; /* STARTED */
    };
    union {
        thole_slice worker;     /* ACTIVITY_QUARANTINED: of the last claim that was lost */
        thole_slice tracestate; /* STARTED */
    };
    thole_slice data;       /* input, output, failure text, reason, value */
    thole_slice request_id; /* STARTED, CANCEL_REQUESTED, EVENT_RECEIVED, … */
    thole_slice error_type; /* ACTIVITY_FAILED, _TRY_FAILED, CHILD_FAILED, FAILED */
    thole_slice
        details; /* ACTIVITY_TRY_FAILED, _TRY_STARTED, _QUARANTINED: last heartbeat of the try before */
    thole_slice target; /* instance: CHILD_SCHEDULED, CHILD_CANCELLED, DETACHED_STARTED, EVENT_SENT */
    union {
        struct origin parent; /* STARTED */
        uint64_t kept;        /* HISTORY_PRUNED */
    };
    const struct event_source *source; /* NULL: not known. Of what is received: borrowed from its message */
    const struct retry *retry; /* ACTIVITY_SCHEDULED; NULL = all zero. ACTIVITY_TRY_STARTED: try_timeout_ms */
};

/* "Started", "ActivityScheduled", …; "Unknown". */
const char *event_kind_name(enum event_kind kind);
/* "requested", "select_loser", "explicit", "ended", "timeout", "terminated"; "unknown". */
/* The kind with that name; CANCELLED for a name that this version does not know. */
thole_cancel_kind cancel_kind_find(thole_slice name);
/* Received from outside (completions, timers fired, requests, start, what was carried over); all other kinds
 * are asked for by code. */
bool event_is_received(enum event_kind kind);
/* COMPLETED, FAILED, CANCELLED, TERMINATED, CONTINUED_AS_NEW. */
bool event_is_terminal(enum event_kind kind);
/* Whether all that code decides is the same. Ids are compared by the caller. Not compared: an activity's
 * retry policy (the recorded one counts, so that it can be changed under running instances), and what comes
 * from outside (request id, parent, try, details). Never called for side effects: a replay takes their values
 * from the history. */
bool event_equal(const struct event *a, const struct event *b);

struct sequence_range {
    uint64_t first, last;
};
/* Which inbox sequences are incorporated: all <= floor and those in ranges (ascending, none touches the floor
 * or another one). The highest that was read (0: not known), and when the stream stored it: that shows
 * whether the stream went back. */
struct position {
    uint64_t floor;
    const struct sequence_range *ranges;
    size_t ranges_len;
    uint64_t seen, seen_ns;
    bool listed; /* where it is written: the ranges as a list of all their sequences, which engines read that
                    do not read ranges; at most POSITION_ABOVE_MAX */
};
bool position_has(const struct position *position, uint64_t sequence);
/* How many sequences up to @p last it does not have. */
uint64_t position_open(const struct position *position, uint64_t last);
/* How many sequences its ranges have. */
uint64_t position_sequences(const struct position *position);
/* Largest size in a record of what is incorporated above the floor. */
size_t position_bytes_max(const struct position *position);

enum blocked_kind {
    BLOCKED_NOT = 0,
    BLOCKED_NO_CODE = 1,
    BLOCKED_NONDETERMINISM = 2,
    BLOCKED_DAMAGED = 3,
    BLOCKED_TOO_NEW = 4,
    BLOCKED_LIMIT = 5,
    BLOCKED_PAUSED = 6,
    BLOCKED_NOT_STARTED = 7, /* execution 0 */
    BLOCKED_CRASHED = 8,     /* the code crashes the engine */
};
enum { BLOCKED_KINDS = BLOCKED_CRASHED + 1 };
/* "no_code", "divergence", …: a label of metrics and a word of documents. NULL: BLOCKED_NOT, or none of them.
 */
const char *blocked_kind_name(enum blocked_kind kind);

struct turn {
    thole_slice instance;
    uint64_t execution, number; /* from 1; execution 0 holds events that came before the instance did */
    uint64_t time_ms;
    bool more; /* the next record of the same number continues this one */
    bool ran;  /* received events have been delivered; requested events follow */
    enum blocked_kind blocked;
    thole_slice blocked_text;
    const struct event *events;
    size_t events_len;
    struct trace
        trace; /* of the execution, where the turn starts activities or instances, or has CloudEvents */
    thole_slice orchestration; /* where the turn has events that are sent as CloudEvents; else empty */
};

/* An instance was deleted. The next incarnation of the id begins with execution + 1. */
struct deletion {
    thole_slice instance;
    uint64_t execution; /* the last execution; 0: only events waited for the instance */
    uint64_t time_ms;
    thole_slice orchestration, reason, request_id;
    thole_slice started_by; /* request id of its STARTED */
    struct origin parent;   /* the parent's event; instance empty: a root instance */
    struct actor actor;     /* the actor that asked for the start */
};

enum record_kind {
    RECORD_UNKNOWN = 0,
    RECORD_EPOCH_OPENED = 6,
    RECORD_TURN = 7,
    RECORD_POSITION = 8,
    RECORD_DELETED = 9,
};

/* Records of the log that are dispensable: those that later ones supersede, and old deletions. */
enum { FOLDED_MAX = 1024, FOLDED_HASH_BYTES = 16 };
struct folded {
    const uint64_t *sequences; /* ascending */
    size_t len;
    thole_slice hashes; /* of each the first FOLDED_HASH_BYTES of its hash */
    uint64_t deleted;   /* the newest deletion that was ever listed; 0: none */
    uint64_t looked;    /* deletions up to here were looked at */
    uint64_t time_ms;
};

struct salt_source;
struct record {
    enum record_kind kind;
    uint64_t epoch, n, committed;
    uint64_t published; /* all effects of the records up to this sequence are done; 0: not known */
    struct position position;
    struct record_hash previous;             /* of the record that counts before it; none: not known */
    struct record_link previous_of_instance; /* TURN, DELETED; none: not known, or it is the first */
    const struct salt_source *salts;         /* TURN, where it is written; NULL: its payloads have no salts */
    bool refers; /* TURN, where it is written: a payload that it has twice is written once
                    (record_references.h) */
    /* EPOCH_OPENED; counted: records of the log before it that count, 0: none, or not known */
    thole_slice node;
    uint64_t time_ms, previous_epoch, previous_n, counted;
    /* POSITION: which records are dispensable; none: it only moves the position */
    struct folded folded;
    /* TURN */
    struct turn turn;
    /* DELETED */
    struct deletion deletion;
};

/* Appends the encoded record to @p to. THOLE_LIMIT when it is over the buffer's maximum; NOMEM. */
THOLE_NODISCARD thole_status record_encode(const struct record *record, struct buf *to);
/*
 * Decodes into memory of @p arena; slices are copied, @p bytes may go away. A record format newer than
 * RECORD_FORMAT (with an epoch and a body, which every format has) is THOLE_UNSUPPORTED, anything malformed
 * THOLE_CORRUPT, too large (or too much for the arena) THOLE_LIMIT, no memory THOLE_NOMEM. Unknown bodies
 * become RECORD_UNKNOWN, unknown event kinds EVENT_UNKNOWN, unknown reasons for being blocked
 * BLOCKED_TOO_NEW; unknown fields are ignored. What a ref points to is checked by the instance, not here.
 * Never asserts on input.
 */
THOLE_NODISCARD thole_status record_decode(thole_slice bytes, struct arena *arena, struct record *ret,
                                           thole_error *reterr);
/* Whether the numbers of the record are such as rows can have, and as an instance can count on from. No
 * engine writes others: such a record is as one that does not decode. */
bool record_has_rows(const struct record *record);
/* Largest size of the event in a record, in bytes, without who asked for it and where it ran: what
 * orchestrations are told of their history's size. */
size_t event_bytes_max(const struct event *event);
/* With both: for splitting a turn. */
size_t event_room_bytes(const struct event *event);
/* Whether anything of it is known. */
bool actor_known(const struct actor *actor);
bool activity_place_known(const struct activity_place *place);
/* Renders "#3 ActivityScheduled charge(input)" into @p to for tests and error texts; cuts long data. */
void event_render(const struct event *event, struct buf *to);
#endif
