/* Inside of the instances room: what its files share. Lower files know nothing of higher ones:
 *
 *   instances.c  the room as a whole
 *   turns.c      what was taken becomes turns          loading.c   histories to parked instances
 *   intake.c     what comes for an instance
 *   executions.c when the next execution of an instance begins
 *   early_turns.c, deletion.c, queries.c, refusals.c, rejections.c, counts.c
 *   origins.c    whose child it is                     answers.c   to starts
 *   watched.c    code that is watched while it runs    loads.c     asks for histories; what is incorporated
 *   code.c       which code an instance has            crash_candidates.c  instances whose code has crashed
 *   known_ids.c  which ids the log has records of
 *   names.c      live orchestrations                   waiting.c   what waits, and for what
 *   lanes.c      which of those that may run is next
 *   entries.c    instances in memory: see entries.h    early.c     events before their instance
 *   entry_states.c  which of their states may follow which
 */
#ifndef THOLE_INSTANCES_STATE_H
#define THOLE_INSTANCES_STATE_H
#include "entries.h"
#include "instances.h"
#include "tables.h"

enum {
    TURN_RECEIVED_MAX = 1000,
    TURN_RECEIVED_BYTES_MAX = 4 * 1024 * 1024,
    REJECTING_BYTES =
        4096, /* memory of a message that is being rejected, roughly, with what NATS's client has of it */
    QUERIES_PENDING_MAX = 1000,
    RECALLS_MAX = 16, /* ended instances that are loaded at a time to answer queries */
};

/* --- early_turns.c: execution 0  ------------------------------------------------------------------------ */
/* Loads a history of execution 0: the entry becomes EARLY, or ABSENT when all its events have expired. */
void early_load(struct instances *p, struct entry *entry, const struct turn *turns, size_t n);
/* Puts a turn of execution 0 into p->run. */
void early_record(struct instances *p, struct entry *entry, struct event *events, size_t n);
/* Whether the events have expired, asked when their timer fires; if not, another timer is set. */
bool early_is_over(struct instances *p, const struct entry *entry);
/* Records that the events have expired. */
void early_expire(struct instances *p, struct entry *entry);

/* --- deletion.c ---------------------------------------------------------------------------------- */
struct intake;
/* Whether the first thing that waits for the entry is a request to delete it. */
bool deletion_is_next(const struct entry *entry);
/* Takes the request. True: @p in says what to do now. False: it was answered and changes nothing. */
bool deletion_take(struct instances *p, struct entry *entry, struct intake *in);
/* Takes over what a deletion in the history says of the id. */
void deletion_note(struct entry *entry, const struct deletion *deletion);

/* --- answers.c: answers to starts, and to events for what has ended ------------------------------------- */
/* A client's start under an id in use is taken: says what is decided already. */
void answers_collide(struct instances *p, const struct entry *entry, struct pending *start,
                     const struct event *raised);
/* An event is dropped because the instance has ended; it may be the repetition of one that was taken. */
void answers_drop(struct instances *p, struct entry *entry, const struct message *event);
/* The message is rejected, for good: says so if it is a start. */
void answers_refuse(struct instances *p, const struct message *message, enum reject_code code,
                    const char *text);
/* The turn of p->run is recorded: _note: what is to be said of the starts that it took; _tell: it is
 * committed. */
void answers_note(struct instances *p, struct entry *entry);
void answers_tell(struct instances *p, struct entry *entry);

/* --- executions.c: when the next execution begins ------------------------------------------------------- */
/* CONTINUED: true: its next execution begins later, and until then it is not ready. */
bool executions_delay(struct instances *p, struct entry *entry);
/* Something waits for the entry: if it is delayed, that may end now. */
void executions_hear(struct instances *p, struct entry *entry);

/* --- origins.c: whose child an instance is -------------------------------------------------------------- */
bool origins_same(const struct origin *a, const struct origin *b);
/* Whether the message means this incarnation of its id. False: it comes from an engine on behalf of an
 * instance that is not the parent, so it means another incarnation. */
bool origins_mean(const struct entry *entry, const struct pending *pending);

/* --- refusals.c: refused starts of children ------------------------------------------------------------ */
/* A refused start: an inbox message that is incorporated once its answer is stored. */
struct refusal {
    struct refusal *next;
    struct entry *entry; /* not released while it has refusals */
    uint64_t token, inbox_sequence;
    struct buf bytes;
};
/* Refuses the start and tells its parent. */
void refusals_add(struct instances *p, struct entry *entry, const struct pending *start);
void refusals_release(struct instances *p);

/* --- crash_candidates.c: instances whose code has crashed an engine
 * ----------------------------------------- */
struct crash_candidates {
    struct crash_candidate {
        thole_slice id, text; /* owned, in one allocation each */
        uint64_t count;
        uint64_t execution; /* the execution that crashed last */
        uint64_t over_n;    /* the record with which it ended, until that is committed; 0 = none */
    } * list;
    size_t len, cap;
};
void crash_candidates_release(struct crash_candidates *candidates);
/* NULL: the instance is no candidate. */
struct crash_candidate *crash_candidates_find(const struct instances *p, thole_slice instance);
/* True: it has crashed too often, its code is not run, and the entry has the reason. */
bool crash_candidates_stuck(const struct instances *p, struct entry *entry);
/* _crashed: its code has crashed in a forked process; _tell: emits CRASHED with the count. */
void crash_candidates_tell(struct instances *p, const struct entry *entry);
void crash_candidates_crashed(const struct instances *p, const struct entry *entry, const char *text);
/* A user asks for a retry. */
void crash_candidates_retry(struct instances *p, const struct entry *entry);
/* Record n ends or deletes its executions up to @p execution. */
void crash_candidates_over(struct instances *p, const struct entry *entry, uint64_t execution, uint64_t n);

/* --- known_ids.c ----------------------------------------------------------------------------------- */
struct known_ids {
    uint64_t *slots; /* hashes; 0: none */
    size_t len, cap; /* cap: a power of two, or 0 */
    bool complete;   /* an id that is not in it has no record */
    bool given_up;   /* there are too many: it stays empty */
    size_t gone;     /* deletions that are not in the log any more, since the list was read */
};
void known_ids_release(struct known_ids *known);
/* The log may have a record of it from now on. */
void known_ids_add(struct instances *p, thole_slice id);
/* False: the log has no record of it, for certain. */
bool known_ids_has(const struct instances *p, thole_slice id);

struct entry *intake_entry(struct instances *p, thole_slice instance); /* found, or made and LOAD asked */
/* Like intake_entry(), for a start: does not ask for LOAD if the log has no record of the id. */
struct entry *intake_entry_to_start(struct instances *p, thole_slice instance);
void intake_load(struct instances *p, struct entry *entry); /* asks for its history: LOADING, RECALLED */
/* TO_LOAD: asks for its history once all of its records are committed. */
void intake_reload(struct instances *p, struct entry *entry);
void intake_incorporate(struct instances *p, uint64_t inbox_sequence, uint32_t part);
/* Messages taken for a turn: incorporated when the turn is recorded, or put back. */
struct intake {
    struct event *events; /* with room for one more */
    size_t len;
    struct early *early;   /* ABSENT: the events with which it becomes EARLY */
    bool expired;          /* EARLY: its events have expired */
    bool deletes;          /* `taken` is a request to delete the instance */
    bool retries;          /* `taken` is a request to retry the instance */
    struct pending *taken; /* the last one first; `events` borrow from them */
};
struct intake intake_take(struct instances *p, struct entry *entry, struct arena *arena);
void intake_done(struct instances *p, const struct intake *in); /* to be called when they are in the next
                                                                   record */
void intake_give_back(struct instances *p, struct entry *entry, struct intake *in);
void intake_release(struct intake *in);
/* Whether the entry has something that can be taken now. */
bool intake_waits(const struct entry *entry);

/* Rejects the message: emits REJECT; it is incorporated when that is answered. */
void rejections_refuse(struct instances *p, const struct in_message *in, enum reject_code code,
                       const char *text);
/* Like rejections_refuse(), for a decoded message. */
void rejections_refuse_pending(struct instances *p, const struct pending *pending, enum reject_code code,
                               const char *text);
/* Checks a decoded message against the limits that decoding does not check. */
enum reject_code rejections_check(const struct instances *p, const struct message *message, thole_error *ret);

/* The registered code of that version; 0 = the newest. NULL: not registered here. */
const thole_orchestration_entry *turns_code(const struct instances *p, thole_slice orchestration,
                                            uint32_t version);
/* Creates an instance for the entry's execution. code NULL: an instance without code. */
struct instance *turns_instance(const struct instances *p, const struct entry *entry,
                                const thole_orchestration_entry *code);
enum blocked_kind turns_blocked_by(thole_status status);
/* Blocks the entry: "engine A, the owner of partition 3, does not have …". */
void turns_no_code(const struct instances *p, struct entry *entry);
/* Blocks the entry, whose code is not run here any more. @p site: where it was; NULL: not known. */
void turns_code_failed(const struct instances *p, struct entry *entry, thole_status status, const char *text,
                       const void *site);

/* --- drops.c --- */
/* Calls the watcher before and after what the code has registered with thole_on_drop(). @p arg: the struct
 * instances. */
void watched_drops(void *arg, const struct instance *instance, bool begins);

/* --- watched.c: calls of instance.h that run code ------------------------------------------------ */
/* Calls the watcher before and after. The code of a crash candidate first runs in a forked process;
 * THOLE_APP: it crashed again, which is counted. */
THOLE_NODISCARD thole_status watched_turn(struct instances *p, struct entry *entry, const struct turn_in *in,
                                          struct turn_out *ret, thole_error *reterr);
/* Replays all turns in @p instance, which will be the entry's; code NULL: no code runs. */
THOLE_NODISCARD thole_status watched_replay(struct instances *p, struct entry *entry,
                                            struct instance *instance, const thole_orchestration_entry *code,
                                            const struct turn *turns, size_t n, thole_error *reterr);
/* THOLE_INVALID: also when the query's code crashes in the forked process. Such a crash is not counted. */
THOLE_NODISCARD thole_status watched_query(struct instances *p, struct entry *entry,
                                           struct instance *instance, thole_slice name, thole_slice input,
                                           thole_slice *ret_output, thole_error *reterr);

void queries_answer(struct instances *p, struct entry *entry); /* the queries that wait for the entry */
void queries_answer_by(struct instances *p, struct entry *entry, struct instance *instance);
void queries_refuse(struct instances *p, struct entry *entry, thole_status status, thole_slice text);

void names_add(struct instances *p, thole_slice name, uint64_t count);
/* Counts the entry's orchestration and version as live, instead of what it was counted with before. */
void names_count(struct instances *p, struct entry *entry, thole_slice orchestration, uint32_t version);
void names_uncount(struct instances *p, struct entry *entry);
void names_release(struct instances *p);
/* --- the room --- */
struct live_name {
    thole_slice name; /* owned */
    uint64_t count;
};

enum run_kind { RUN_NOTHING, RUN_TURN, RUN_UNCHECKED, RUN_EARLY, RUN_DELETION };
struct run {             /* one entry's turn, from taking messages to its record */
    struct entry *entry; /* NULL: none is under way */
    enum run_kind kind;
    struct arena arena; /* of the events that the turn takes */
    struct intake in;
    struct turn turn;
    struct deletion deletion;
    char text[64]; /* of the turn */
    const struct turn_log *lines;
    size_t lines_len;
    bool ends;                  /* the execution ends */
    bool begins;                /* the turn creates the instance */
    struct batch_timer wake;    /* see struct instances_record */
    struct early *early;        /* TURN: what the turn's events borrow from */
    struct instance *continued; /* TURN: likewise */
    struct entry_texts life;    /* DELETION: likewise */
};

struct instances {
    struct env *env;
    struct progress progress;
    struct entries entries;
    struct run run;
    struct refusal *refusals;
    uint64_t next_refusal;
    size_t rejecting;          /* rejected messages that are not yet stored */
    size_t event_room;         /* bytes of the largest event that a record can hold */
    uint64_t open_activities;  /* at least the number of activities with rows */
    uint64_t activity_changes; /* number of changes of open_activities */
    uint64_t recount_changes;  /* value of activity_changes when rows were last requested */
    /* open_activities may be too high: the rows are counted when the partition is quiet */
    bool recount, recounting;
    struct live_name *names;
    size_t names_len, names_cap;
    thole_slice *names_view;
    struct crash_candidates crash_candidates;
    struct known_ids known;
};
#endif
