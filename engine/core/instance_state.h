/*
 * What the files of the replay core share: the execution's state and the steps of a turn.
 *
 *   instance.c          life, facts, live turns, delivery of received events, what happens at the end
 *   instance_replay.c   recorded turns: checks, comparison, and application without code
 *   instance_tasks.c    the table of what was scheduled; scheduling, resolving, cancelling
 *   instance_awaits.c   the thole_await functions
 *   instance_context.c  what else an orchestration may call
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
};
#define TIMER_DELAY_MS_MAX (UINT64_C(36525) * 24 * 3600 * 1000) /* 100 years */

/*
 * A task that was never scheduled because its arguments were wrong: no event, no entry in the table. Its id
 * says what was wrong, so that the await can return it.
 */
enum task_fault {
    FAULT_ACTIVITY_NAME = 1,
    FAULT_ACTIVITY_INPUT = 2,
    FAULT_TIMER_DELAY = 3,
    FAULT_MEMORY = 4,
};
#define TASK_FAULT_BIT (UINT64_C(1) << 63)

enum task_state { TASK_OUTSTANDING = 0, TASK_SUCCEEDED, TASK_FAILED, TASK_CANCELLED };

/* An activity or a timer. Its address is stable. */
struct task {
    uint64_t id;          /* of the event that scheduled it; ascending in the table */
    uint64_t resolved_at; /* of the event that resolved it: "earliest in history" is the smallest; 0 before */
    thole_slice name;     /* the activity's; empty for a timer */
    thole_slice data;     /* output, failure text, or reason of the cancellation */
    uint32_t code;        /* status of the failure, cancel_kind of the cancellation */
    uint8_t state;        /* an enum task_state */
    bool awaited;         /* counted in the execution's waits_left */
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
    uint64_t turns, time_ms, next_event;
    bool started, ended, undelivered;
    thole_slice orchestration, input;

    /* What was scheduled. */
    struct task *segments[TASK_SEGMENTS_MAX];
    size_t tasks_len;

    /* The code. */
    struct coro *coro;
    bool returned;
    thole_status returned_status;
    thole_slice output;
    thole_slice thrown;
    struct last_failure last_failure;
    size_t waits_left; /* what the await that the code is suspended in still needs; 0 = can go on */
    bool interrupted;  /* that await returns THOLE_CANCELLED when resumed */

    /* Cancellation of the whole execution, in the order in which the flags become true. */
    bool cancel_received;  /* the request is in the history */
    bool cancel_delivered; /* a turn that ran has seen it: what was outstanding is cancelled */
    bool cancel_pending;   /* no await has told the code yet */
    bool cancel_noticed;   /* an await has */
    thole_slice cancel_reason;

    /* The turn at hand. */
    bool replaying;
    const struct event *expected; /* replaying: recorded new events that the code has yet to ask for */
    size_t expected_len;
    struct event *events; /* live: in turn_arena */
    size_t events_len, events_cap;
    thole_status broken; /* sticky: the turn fails with this */
    size_t broken_awaits;
    thole_error *reterr;
    uint8_t id[];
};

/* The turn fails with this; the first caller decides. Returns the status that counts. */
thole_status instance_break(struct instance *in, thole_status status, const char *fmt, ...)
    THOLE_PRINTF(3, 4);
/* The memory ceiling was hit. */
thole_status instance_full(struct instance *in);

/* Common beginning of live and replayed turns. */
void instance_turn_begin(struct instance *in, uint64_t time_ms, thole_error *reterr);
/* Delivers one received event: assigns its id, copies it, changes what it changes. The code sees it when it
 * next runs. Resolutions of what is resolved are ignored; of what was never scheduled: THOLE_CORRUPT. */
thole_status instance_receive(struct instance *in, const struct event *event);
/* Lets the code run until it waits or ends. */
thole_status instance_run(struct instance *in);
/*
 * The code, or the end of it, asks for an event: appended to the turn, or when replaying compared to what was
 * recorded. Returns its id; 0 when the turn is broken. Slices must live until the turn's end.
 */
uint64_t instance_emit(struct instance *in, struct event *event);
/* Appends to the live turn's events. */
thole_status instance_push(struct instance *in, const struct event *event);
/* When replaying: compares what the code asks for to the recorded event. */
thole_status instance_match(struct instance *in, const struct event *asked);

/* The table. NULL: no such task, or out of memory. */
struct task *task_find(const struct instance *in, uint64_t id);
struct task *task_at(const struct instance *in, size_t i);
struct task *task_add(struct instance *in, uint64_t id, thole_slice name);
bool task_is_timer(const struct task *task);
/* What the event is a resolution or a cancellation of; NULL when nothing of that kind was scheduled. */
struct task *task_resolved_by(const struct instance *in, const struct event *event);
/* First resolution only; wakes the await that counts it. */
void task_resolve(struct instance *in, struct task *task, const struct event *by);
/* Emits the event and resolves. Nothing when resolved already. @p reason must live as long as the execution.
 */
void task_cancel(struct instance *in, struct task *task, enum cancel_kind kind, thole_slice reason);
/* Ascending by id. */
void tasks_cancel_outstanding(struct instance *in, enum cancel_kind kind, thole_slice reason);

/* THOLE_INVALID or THOLE_LIMIT, and a sentence, for a task that was never scheduled. */
thole_status fault_status(enum task_fault fault);
const char *fault_text(enum task_fault fault);
/* The failure text of an execution that returned @p status, in @p arena. */
thole_slice instance_failure_text(struct instance *in, thole_status status);
#endif
