/*
 * The last word of a worker that dies: what is certain about its end, and in words. Pure.
 *
 * The worker says it itself, in memory that its witness shares with it, when a signal kills it or somebody
 * calls exit() (dying.h). Otherwise the witness reads what the kernel says of a process that nobody has
 * waited for yet, if it is in time.
 */
#ifndef THOLE_LAST_WORD_H
#define THOLE_LAST_WORD_H
#include "thole/types.h"
#include <stdatomic.h>

enum {
    LAST_WORD_WORKER_BYTES = 96,
    LAST_WORD_TEXT_BYTES = 128,
};

enum last_word_kind {
    LAST_WORD_NONE = 0,   /* it has ended, and nobody knows how */
    LAST_WORD_SIGNAL = 1, /* said by itself: number is the signal that it is about to die of */
    LAST_WORD_EXIT = 2,   /* said by itself: exit(number) was called, before it was asked to stop */
    LAST_WORD_KILLED = 3, /* said by the kernel: number is the signal */
    LAST_WORD_CODE = 4,   /* said by the kernel: number is its exit code */
};

/* A try of an activity, and the claim of it. */
struct last_word_try {
    uint64_t execution, activity_id, attempt;
    uint32_t try_number;
    uint32_t instance_len; /* 0: nobody knows which */
    uint8_t instance[THOLE_ID_BYTES_MAX];
};

struct last_word {
    enum last_word_kind kind;
    int number;
    bool fault; /* SIGNAL: raised by what the code did, at this address */
    uint64_t address;
    struct last_word_try in; /* SIGNAL, EXIT: whose handler's thread it was */
};

/* What a worker and its witness share. */
enum last_word_state { LAST_WORD_UNSAID = 0, LAST_WORD_BEING_SAID = 1, LAST_WORD_SAID = 2 };
struct last_word_page {
    atomic_int state; /* an enum last_word_state: word is good from SAID on, and is said once */
    struct last_word word;
    atomic_bool named;                   /* worker is good */
    char worker[LAST_WORD_WORKER_BYTES]; /* its incarnation */
};

/* What /proc/PID/stat says of how it ended: KILLED, CODE, or NONE when it does not say. */
void last_word_from_stat(const char *stat, struct last_word *ret);
/* For people, to stand behind "lost with worker w-7: ". @p ret is returned. */
const char *last_word_text(const struct last_word *word, char ret[LAST_WORD_TEXT_BYTES]);
/* "SIGSEGV"; "signal 99" for one without a name. @p ret is returned. */
enum { SIGNAL_NAME_BYTES = 24 };
const char *signal_name(int number, char ret[SIGNAL_NAME_BYTES]);
#endif
