/* Activities in processes without a worker: a forkserver, a pool, and what handlers note in memory that all
 * of them share. */
#ifndef THOLE_PROCESS_STAGE_H
#define THOLE_PROCESS_STAGE_H
#include "clock.h"
#include "process_pool.h"
#include "thole_cunit.h"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { STAGE_PIDS_MAX = 64 };
struct process_notes {
    atomic_uint started, fired, terminated;
    atomic_int pids[STAGE_PIDS_MAX]; /* of processes that were started and are to be gone */
    atomic_uint pids_len;
};
extern struct process_notes *process_notes;
void process_note(pid_t pid);
/* How many of those that were noted live. */
unsigned process_alive(void);

/* First in main(): no thread has been started. */
void process_stage_open(const thole_program *program, uint32_t max);
void process_stage_close(void);
extern const char
    *process_stage_env; /* names of variables that processes may have, too; set before it is opened */
extern char process_stage_argument[]; /* of the program: an option with a secret */
extern struct process_pool *process_stage_pool;
extern struct forkserver *process_stage_forkserver;
extern atomic_uint process_stage_lost; /* times that the pool has said so */

/* A try of an activity, by name; in a process if @p pool. */
struct thole_activity *process_stage_activity(const char *name, const char *input, bool in_process);
/* Runs it, and says what a worker would report: "ok: OUTPUT", "STATUS [type] final: TEXT | DETAILS". Static.
 */
const char *process_stage_run(struct thole_activity *act);
/* Like process_stage_run(), with an activity that it makes and destroys. */
const char *process_stage_once(const char *name, const char *input);

/* Compares once: what CHECK_STR() is given is called again and again. */
void process_stage_check(const char *row, const char *got, const char *want);

/* On a thread of its own, and until the handler has said that it started. */
struct process_running {
    struct thole_activity *act;
    pthread_t thread;
};
void process_stage_begin(struct process_running *running, const char *name, const char *input);
/* Waits for its end; then the activity can be looked at. */
void process_stage_end(struct process_running *running);
void process_stage_fire(struct thole_activity *act, thole_cancel_kind kind, const char *reason,
                        uint64_t grace_ms);
#endif
