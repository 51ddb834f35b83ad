/*
 * Inside of the test kit (include/thole/testing.h): the real partition machine and the real activity context
 * over servers that are plain memory. Shared by the files of this folder; outside it only the kit's tests
 * include it.
 *
 * A file uses only those above it:
 *
 *   kit_base.c       memory, steps of the engine
 *   kit_instances.c  instances by id           kit_names.c    activities by name
 *   kit_replay.c     turns, and their replay
 *   kit_streams.c    history and inbox           kit_events.c   CloudEvents
 *   kit_work.c       activities that run
 *   kit_rows.c       what Postgres would hold
 *   kit_drive.c      outputs of the machine, time, crashes
 *   kit_client.c     what clients do           kit_scripts.c  activities that are scripted
 *   kit_children.c   orchestrations that are scripted
 *   kit_activity.c   one activity alone
 *   kit_history.c    what came of it           kit_env.c      create, destroy
 *   kit_load.c       histories from a file
 *
 * Memory lives in one arena until the environment goes. A test has no use for a status that says "out of
 * memory": the kit ends the process then.
 */
#ifndef THOLE_KIT_H
#define THOLE_KIT_H
#include "activity_run.h"
#include "coro.h"
#include "kit_crash.h"
#include "message.h"
#include "partition.h"
#include "thole/testing.h"

enum {
    KIT_INSTANCE_BUCKETS = 1024,
    KIT_STEPS_MAX = 1000000, /* of one call: a longer one is taken for endless */
};

/* ---- streams ---- */

struct kit_record { /* record i has sequence i + 1 */
    enum record_kind kind;
    thole_slice instance, bytes;
    uint64_t execution;
    bool deleted;
};
struct kit_message {
    thole_slice route, instance, bytes;
    bool purged;
};

struct kit_event {
    thole_slice instance, type, data;
    uint64_t execution, event;
};

/* ---- rows ---- */

struct kit_instance { /* an instances row, and which records are its history */
    struct kit_instance *hash_next, *next;
    thole_slice id, orchestration, detail, custom_status, parent;
    uint64_t execution;
    uint32_t version;
    thole_instance_status status; /* UNKNOWN: no row */
    size_t *records;              /* indices */
    size_t records_len, records_cap;
    uint64_t newest;                 /* execution of which there is a record */
    size_t from_newest, from_before; /* place of its first record; of the first record of the execution
                                        before */
    bool due;                        /* to be dropped from memory, and listed in env->due */
    struct kit_instance *due_next;
    const char *diverged; /* a replay of what is recorded did not do the same, or lost memory; NULL = else */
};

/* ---- work ---- */

/* One of thole_test_activity(): nothing but that call waits for what it returns. */
struct kit_alone {
    thole_test_activity_result result;
    thole_cancel_kind cancel_kind;
    thole_slice cancel_reason;
    uint64_t cancel_at_ms;       /* UINT64_MAX = never, or no more */
    uint64_t begun_ms, fired_ms; /* of the token; 0: it has not fired */
    bool reported;               /* the status is known */
};

enum kit_work_state {
    KIT_WORK_ROW,     /* the message is not queued yet */
    KIT_WORK_QUEUED,  /* no worker has taken it, perhaps because none has code for it */
    KIT_WORK_DELAYED, /* thole_test_takes(): until wake_ms */
    KIT_WORK_WAITING, /* in thole_activity_wait(), until wake_ms */
    KIT_WORK_RUNNING, /* on the stack now */
    KIT_WORK_HANGING, /* until the test ends it */
    KIT_WORK_LATER,   /* HANGING, and no worker has it */
};
struct kit_work { /* a worker_queue row with its message, and the worker that has it */
    struct kit_work *next;
    thole_test_env *env;
    enum kit_work_state state;
    bool gone; /* the row is: what it returns does not count */
    struct batch_activity row;
    thole_slice input;
    struct trace trace;
    uint32_t attempt;
    uint64_t deadline_ms; /* of this try, from its first claim on; UINT64_MAX = none */
    uint64_t wake_ms;
    struct kit_script *script;  /* NULL: the program's own */
    struct thole_activity *act; /* these while the program's own runs */
    struct coro *co;
    bool told;               /* the token has fired */
    size_t waits_in_vain;    /* since its token fired */
    bool abandoned;          /* too many of them: it is not run on */
    bool dropped;            /* the worker dies: the handler's return is lost */
    struct kit_alone *alone; /* NULL: it has a row */
};

enum kit_script_kind { KIT_RETURNS, KIT_FAILS, KIT_HANGS };
struct kit_script {
    struct kit_script *next;
    enum kit_script_kind kind;
    thole_slice data, type;
    size_t times; /* 0 = always */
};
struct kit_name { /* of an activity */
    struct kit_name *next;
    thole_slice name;
    thole_activity_fn *run;
    void *arg;  /* NULL: the program does not register it */
    bool quick; /* declared so */
    struct kit_script *scripts;
    uint64_t takes_ms;
    size_t calls, cancels;
    bool said; /* on stderr: the program does not register it */
};

/* An orchestration that is scripted, and its instances. */
struct kit_child_run {
    struct kit_child_run *next;
    thole_slice instance;
    uint64_t execution, takes_ms;
    const struct kit_script *script; /* NULL: there was none left */
    bool completed;                  /* by the test */
};
struct kit_child {
    struct kit_child *next;
    thole_test_env *env;
    const char *name;
    struct kit_script *scripts;
    uint64_t takes_ms;
    struct kit_child_run *runs, **runs_last;
    size_t runs_len;
};

struct kit_timer {
    struct batch_timer row; /* due_ms 0 = free */
};

struct thole_test_env {
    struct kit_instance *due; /* to be dropped from memory */
    bool keeps_parked;        /* they are not */
    const thole_program *program;
    struct arena memory;
    struct partition_options options;
    struct stack_pool *stacks, *activity_stacks;
    struct kit_crash crash;
    struct partition *machine;
    uint64_t now_ms;

    struct kit_record *records;
    size_t records_len, records_cap;
    struct kit_message *inbox;
    size_t inbox_len, inbox_cap;
    struct kit_event *events;
    size_t events_len, events_cap;
    bool reading;
    uint64_t read_next, read_generation;

    struct kit_instance *buckets[KIT_INSTANCE_BUCKETS], *instances;
    struct kit_timer *timers;
    size_t timers_len, timers_cap;
    struct rows_state rows;

    struct kit_work *work, **work_last;
    struct kit_name *names;
    struct kit_child *children;
    struct kit_work *running;
    uint64_t serial;

    uint64_t crash_in; /* steps; UINT64_MAX = never */
    bool dying, pumping;
    size_t crashes, mishaps, steps_left;

    /* the request that a client waits for */
    thole_slice asked_request;
    const char *asked_event;
    uint64_t asked_query;
    bool query_answered;
    thole_status query_status;
    struct buf query_output;
    struct buf answer; /* borrowed by the caller until the next call */
};

/* ---- kit_base.c ---- */
/* Ends the process with a sentence if not. */
void kit_must(bool worked);
void *kit_alloc(thole_test_env *env, size_t bytes);
thole_slice kit_dup(thole_test_env *env, thole_slice from);
/* Room for one more in a growing array of the arena. */
void *kit_grow(thole_test_env *env, void *items, size_t len, size_t *cap, size_t size);
/* A step is done: false when the engine is to die here. */
bool kit_step(thole_test_env *env);

/* ---- kit_instances.c ---- */
struct kit_instance *kit_instance_find(const thole_test_env *env, thole_slice id); /* NULL: none */
struct kit_instance *kit_instance_at(thole_test_env *env, thole_slice id);         /* found or made */

/* ---- kit_names.c ---- */
struct kit_name *kit_name_at(thole_test_env *env, thole_slice name);
void kit_names_look_up(thole_test_env *env); /* again, in another program */
/* Uses up one call of the scripts; NULL: there is none. */
struct kit_script *kit_script_take(struct kit_script **scripts);

/* ---- kit_replay.c ---- */
struct kit_turns { /* of the newest execution */
    struct arena arena;
    struct turn *items;
    size_t len;
};

/* Release with arena_release(&turns->arena). */
void kit_turns_read(const thole_test_env *env, const struct kit_instance *instance, struct kit_turns *turns);
const struct event *kit_turns_end(const struct kit_turns *turns); /* NULL: it has not ended */
/* Replays the execution whose last turn has just been recorded, on a thread of its own, and drops it: it must
 * do the same, and lose no memory. */
/* A turn of it is recorded: checks a replay of all turns, and sees to it that the next one begins with a
 * replay, if it is one of those where that is done. */
void kit_history_check(thole_test_env *env, struct kit_instance *instance);
/* Drops from memory what is due. */
void kit_replay_drop(thole_test_env *env);

/* ---- kit_streams.c ---- */
uint64_t kit_log_append(thole_test_env *env, const struct out_append *append);
void kit_log_tail(const thole_test_env *env, uint64_t count, struct arena *arena, struct in_tail *ret);
void kit_log_read(const thole_test_env *env, const struct out_read_log *asked, struct arena *arena,
                  struct in_log *ret);
void kit_log_load(thole_test_env *env, const struct out_load *load, struct arena *arena,
                  struct in_history *ret);
void kit_log_remove(thole_test_env *env, const struct out_remove_history *remove);
void kit_inbox_add(thole_test_env *env, thole_slice route, thole_slice instance, thole_slice bytes);
const struct nonce_key *kit_nonce_key(void);
void kit_inbox_send(thole_test_env *env, const struct message *message, enum message_sender sender);
/* The next message to read; NULL = none. */
const struct kit_message *kit_inbox_next(thole_test_env *env, uint64_t *ret_sequence);
void kit_inbox_results(const thole_test_env *env, uint64_t from, struct arena *arena, struct in_results *ret);

/* ---- kit_events.c ---- */
void kit_event_add(thole_test_env *env, const struct emission *emission);

/* ---- kit_rows.c ---- */
void kit_rows_apply(thole_test_env *env, const struct batch *batch);
void kit_rows_reset(thole_test_env *env);
void kit_rows_live(thole_test_env *env, struct arena *arena, struct in_live *ret);
void kit_rows_timers(thole_test_env *env, uint64_t before_ms, struct arena *arena, struct in_timers *ret);

/* ---- kit_work.c ---- */
void kit_work_added(thole_test_env *env, const struct batch_activity *row);
void kit_work_removed(thole_test_env *env, const struct batch_activity *key);
/* All rows of the instance's executions up to that one. */
void kit_work_deleted(thole_test_env *env, thole_slice instance, uint64_t execution);
void kit_work_published(thole_test_env *env, const struct out_publish_work *work);
void kit_work_cancelled(thole_test_env *env, const struct cancel_notice *push);
size_t kit_work_rows(const thole_test_env *env);
/* Does one thing that is due; false: nothing is. */
bool kit_work_step(thole_test_env *env);
uint64_t kit_work_next_ms(const thole_test_env *env); /* UINT64_MAX = never */
/* Workers die: what ran is queued again. @p for_ever: it is not. */
void kit_work_crash(thole_test_env *env, bool for_ever);
/* Ends the oldest that runs under the name; false: none does. */
bool kit_work_complete(thole_test_env *env, thole_slice name, thole_slice output);
/* The name of an activity that the instance (empty: any) waits for and no worker has code for; empty = none.
 */
thole_slice kit_work_unknown(thole_test_env *env, thole_slice instance);
/* A sentence about such an activity. */
void kit_work_unknown_text(const thole_test_env *env, thole_slice activity, struct buf *to);
/* Says it on stderr, once for each name. False: there is none. */
bool kit_work_say_unknown(thole_test_env *env, thole_slice instance);
/* One that has no row, for thole_test_activity(). */
struct kit_work *kit_work_alone(thole_test_env *env, const struct kit_work *filled);

/* ---- kit_drive.c ---- */
/* A new machine over what is stored; the old one's memory is lost. */
void kit_open(thole_test_env *env);
/* Lets the machine do all that it can do now: messages, due timers, nothing of the workers. */
void kit_pump(thole_test_env *env);
/* Runs, skipping from one time to the next, until @p over says true or nothing more will happen. */
void kit_run_until(thole_test_env *env, bool (*over)(void *arg), void *arg);

/* ---- kit_scripts.c ---- */
void kit_script_add(thole_test_env *env, struct kit_script **scripts, const struct kit_script *script);

/* ---- kit_children.c ---- */
/* Gives the machine the program's orchestrations, and the scripted ones. */
void kit_children_set(thole_test_env *env);
#endif
