/* Inside of the instances room: what its files share. Lower files know nothing of higher ones:
 *
 *   instances.c  the room as a whole
 *   turns.c      what was taken becomes turns          loading.c   histories to parked instances
 *   intake.c     what comes for an instance
 *   early_turns.c, deletion.c, queries.c, refusals.c, rejections.c, counts.c
 *   watched.c    code that is watched while it runs    loads.c     asks for histories; what is incorporated
 *   code.c       which code an instance has            crash_candidates.c  instances whose code has crashed
 *   names.c      live orchestrations                   waiting.c   what waits, and for what
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
    PENDING_MAX = 20000, /* inbox messages held in memory */
    EARLY_EVENTS_MAX = 10000,
    EARLY_BYTES_MAX = 8 * 1024 * 1024,
    QUERIES_PENDING_MAX = 1000,
    RECALLS_MAX = 16, /* ended instances that are loaded again at a time, to be asked */
};

/* --- early_turns.c: execution 0  ------------------------------------------------------------------------ */
/* From a history of execution 0: the entry is EARLY, or ABSENT when all were given up. */
void early_load(struct instances *p, struct entry *entry, const struct turn *turns, size_t n);
/* A turn of execution 0, for p->run. */
void early_record(struct instances *p, struct entry *entry, struct event *events, size_t n);
/* A timer says so; if not, there will be another one. */
bool early_is_over(struct instances *p, const struct entry *entry);
/* Gives them up. */
void early_expire(struct instances *p, struct entry *entry);

/* --- deletion.c ---------------------------------------------------------------------------------- */
struct intake;
/* The first thing that waits for the entry is a request to delete it. */
bool deletion_is_next(const struct entry *entry);
/* Takes it. True: in has what is to be done now. False: it was answered, and changes nothing. */
bool deletion_take(struct instances *p, struct entry *entry, struct intake *in);
/* What a deletion says of the id: read from its history. */
void deletion_note(struct entry *entry, const struct deletion *deletion);

/* --- refusals.c: starts that cannot be ------------------------------------------------------------ */
/* An inbox message that counts as incorporated once its answer is on its way. */
struct refusal {
    struct refusal *next;
    struct entry *entry; /* stays while there are any */
    uint64_t token, inbox_sequence;
    struct buf bytes;
};
/* The start cannot be, and its parent is told. */
void refusals_add(struct instances *p, struct entry *entry, const struct pending *start);
void refusals_release(struct instances *p);

/* --- crash_candidates.c: whose code has crashed an engine ----------------------------------------- */
struct crash_candidates {
    struct crash_candidate {
        thole_slice id, text; /* owned, in one allocation each */
        uint64_t count;
        uint64_t execution; /* that crashed last */
        uint64_t over_n;    /* the record with which it ended, until that is committed; 0 = none */
    } * list;
    size_t len, cap;
};
void crash_candidates_release(struct crash_candidates *candidates);
/* NULL: it never crashed. */
struct crash_candidate *crash_candidates_find(const struct instances *p, thole_slice instance);
/* It has crashed too often: its code is not run, and the entry says why. */
bool crash_candidates_stuck(const struct instances *p, struct entry *entry);
/* Its code has crashed where that harmed nobody; and whoever keeps the list is told of it. */
void crash_candidates_tell(struct instances *p, const struct entry *entry);
void crash_candidates_crashed(const struct instances *p, const struct entry *entry, const char *text);
/* Somebody wants it to be tried again. */
void crash_candidates_retry(struct instances *p, const struct entry *entry);
/* Its executions up to @p execution have ended, or are deleted, with record n. */
void crash_candidates_over(struct instances *p, const struct entry *entry, uint64_t execution, uint64_t n);

struct entry *intake_entry(struct instances *p, thole_slice instance); /* found, or made and LOAD asked */
void intake_load(struct instances *p, struct entry *entry); /* asks for its history: LOADING, RECALLED */
/* TO_LOAD: asks for its history once all of its records are committed. */
void intake_reload(struct instances *p, struct entry *entry);
void intake_incorporate(struct instances *p, uint64_t inbox_sequence);
/* Taken for a turn: incorporated when it is recorded, or given back. */
struct intake {
    struct event *events; /* with room for one more */
    size_t len;
    struct early *early;   /* ABSENT: what it will be EARLY with */
    bool expired;          /* EARLY: what has been kept is given up */
    bool deletes;          /* taken is a request to delete it */
    bool retries;          /* what was taken is a request to try it again */
    struct pending *taken; /* the last one first; events borrow from them */
};
struct intake intake_take(struct instances *p, struct entry *entry, struct arena *arena);
void intake_done(struct instances *p, const struct intake *in); /* it is in the record that comes next */
void intake_give_back(struct instances *p, struct entry *entry, struct intake *in);
void intake_release(struct intake *in);
/* Has the entry something that can be taken now? */
bool intake_waits(const struct entry *entry);

/* The message cannot be taken: it is given away to be kept, and counts as incorporated when it is. */
void rejections_refuse(struct instances *p, const struct in_message *in, enum reject_code code,
                       const char *text);
/* The same of one that had been decoded. */
void rejections_refuse_pending(struct instances *p, const struct pending *pending, enum reject_code code,
                               const char *text);
/* Whether a decoded message is within the limits that do not follow from its form. */
enum reject_code rejections_check(const struct instances *p, const struct message *message, thole_error *ret);

/* The entry for that version; 0 = the newest. NULL: not here. */
const thole_orchestration_entry *turns_code(const struct instances *p, thole_slice orchestration,
                                            uint32_t version);
/* An instance of the entry's execution. code NULL: without. */
struct instance *turns_instance(const struct instances *p, const struct entry *entry,
                                const thole_orchestration_entry *code);
enum blocked_kind turns_blocked_by(thole_status status);
/* "no live engine knows …": why it is blocked. */
void turns_no_code(const struct instances *p, struct entry *entry);

/* --- watched.c: calls of instance.h that run code ------------------------------------------------ */
/* Whoever watches is told before and after. What has crashed before is first done where that harms nobody;
 * THOLE_APP: it crashed again, and that is noted. */
THOLE_NODISCARD thole_status watched_turn(struct instances *p, struct entry *entry, const struct turn_in *in,
                                          struct turn_out *ret, thole_error *reterr);
/* All of them, by @p instance, which is to be the entry's; code NULL: nothing runs. */
THOLE_NODISCARD thole_status watched_replay(struct instances *p, struct entry *entry,
                                            struct instance *instance, const thole_orchestration_entry *code,
                                            const struct turn *turns, size_t n, thole_error *reterr);
/* THOLE_INVALID: or it would crash. That does not count: nobody else asks. */
THOLE_NODISCARD thole_status watched_query(struct instances *p, struct entry *entry,
                                           struct instance *instance, thole_slice name, thole_slice input,
                                           thole_slice *ret_output, thole_error *reterr);

void queries_answer(struct instances *p, struct entry *entry); /* those that wait for the entry */
void queries_answer_by(struct instances *p, struct entry *entry, struct instance *instance);
void queries_refuse(struct instances *p, struct entry *entry, thole_status status, thole_slice text);

void names_add(struct instances *p, thole_slice name, uint64_t count);
/* The entry's orchestration and version count as live from now on, in the place of what counted before. */
void names_count(struct instances *p, struct entry *entry, thole_slice orchestration, uint32_t version);
void names_uncount(struct instances *p, struct entry *entry);
void names_release(struct instances *p);
/* --- the room --- */
struct live_name {
    thole_slice name; /* owned */
    uint64_t count;
};

enum run_kind { RUN_NOTHING, RUN_TURN, RUN_UNCHECKED, RUN_EARLY, RUN_DELETION };
struct run {             /* one entry's turn, from what it takes to its record */
    struct entry *entry; /* NULL: none is under way */
    enum run_kind kind;
    struct arena arena; /* of the events that it takes */
    struct intake in;
    struct turn turn;
    struct deletion deletion;
    char text[64]; /* of the turn */
    const struct turn_log *lines;
    size_t lines_len;
    bool ends;                  /* its execution */
    bool begins;                /* an instance has come into being */
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
    size_t rejecting;          /* messages that could not be taken and are not yet kept */
    size_t event_room;         /* bytes of the largest event that a record can hold */
    uint64_t open_activities;  /* at least as many as have rows */
    uint64_t activity_changes; /* how often that changed */
    uint64_t recount_changes;  /* when it was last asked */
    bool recount, recounting;  /* it may be too many: the rows are counted when things are quiet */
    struct live_name *names;
    size_t names_len, names_cap;
    thole_slice *names_view;
    struct crash_candidates crash_candidates;
};
#endif
