/*
 * The crash report of a worker: what is certain about its end, and as text. Pure.
 *
 * The worker writes it itself, in memory that its crash reporter shares with it, when a signal kills it or
 * exit() is called (dying.h). Otherwise the crash reporter reads the kernel's status of the dead process, if
 * it has not been waited for yet.
 */
#ifndef THOLE_WORKER_CRASH_H
#define THOLE_WORKER_CRASH_H
#include "thole/types.h"
#include <stdatomic.h>

enum {
    WORKER_CRASH_WORKER_BYTES = 96,
    WORKER_CRASH_TEXT_BYTES = 128,
};

enum worker_crash_kind {
    WORKER_CRASH_NONE = 0,   /* ended, cause not known */
    WORKER_CRASH_SIGNAL = 1, /* by the worker: number is the fatal signal */
    WORKER_CRASH_EXIT = 2,   /* by the worker: exit(number) was called, without a request to stop */
    WORKER_CRASH_KILLED = 3, /* by the kernel: number is the signal */
    WORKER_CRASH_CODE = 4,   /* by the kernel: number is the exit code */
};

/* A try of an activity, and the claim of it. */
struct worker_crash_try {
    uint64_t execution, activity_id, attempt;
    uint32_t try_number;
    uint32_t instance_len; /* 0: not known */
    uint8_t instance[THOLE_ID_BYTES_MAX];
};

struct worker_crash {
    enum worker_crash_kind kind;
    int number;
    bool fault; /* SIGNAL: raised by what the code did, at this address */
    uint64_t address;
    struct worker_crash_try in; /* SIGNAL, EXIT: whose handler's thread it was */
};

/* Memory shared by a worker and its crash reporter. */
enum worker_crash_state {
    WORKER_CRASH_UNWRITTEN = 0,
    WORKER_CRASH_BEING_WRITTEN = 1,
    WORKER_CRASH_WRITTEN = 2
};
struct worker_crash_page {
    atomic_int state; /* an enum worker_crash_state: crash is good from WRITTEN on, and is written once */
    struct worker_crash crash;
    atomic_bool named;                      /* worker is good */
    char worker[WORKER_CRASH_WORKER_BYTES]; /* incarnation of the worker */
};

/* Copies of what the worker has written, which may have crashed while it wrote, or be hostile: numbers are
 * within their bounds, the id is valid. False: the worker has no name that can be. */
bool worker_crash_take(const struct worker_crash_page *page, struct worker_crash *ret,
                       char ret_worker[WORKER_CRASH_WORKER_BYTES]);
/* The end by /proc/PID/stat: KILLED, CODE, or NONE if it is not there. */
void worker_crash_from_stat(const char *stat, struct worker_crash *ret);
/* For people, to follow "lost with worker w-7: ". @p ret is returned. */
const char *worker_crash_text(const struct worker_crash *crash, char ret[WORKER_CRASH_TEXT_BYTES]);
/* "SIGSEGV"; "signal 99" for one without a name. @p ret is returned. */
enum { SIGNAL_NAME_BYTES = 24 };
const char *signal_name(int number, char ret[SIGNAL_NAME_BYTES]);
#endif
