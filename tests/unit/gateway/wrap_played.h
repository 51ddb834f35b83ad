/* The surroundings of a role, played: threads, clock, log, random numbers, and how its calls end. Threads are
 * threads, but one at a time runs, until it waits: then another one does, or the next step of the script
 * happens, or time passes. */
#ifndef THOLE_WRAP_PLAYED_H
#define THOLE_WRAP_PLAYED_H
#include "thole/types.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { FIBERS_MAX = 1100, PLAYED_CALLS_MAX = 24 };

struct played {
    FILE *said;                         /* log of the role's calls */
    uint64_t now_ms;                    /* from 1000 */
    const char *ends[PLAYED_CALLS_MAX]; /* how such calls end, one word each; later ones: "well" */
    bool brief;                         /* says nothing of what is the same each time */
    bool no_threads;                    /* can be made */
    uint8_t random;                     /* bytes of the last random number */
};
extern struct played play;

void played_begin(FILE *said);
void played_end(void); /* all threads have ended, and were joined or are detached */
/* Plays the steps of a script, with "|" between them; a number before one: when it is so late. */
void played_line(const char *line, void (*step)(const char *text));

void played_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#define SAY_ALWAYS(...)                                                                                      \
    do {                                                                                                     \
        if (!play.brief)                                                                                     \
            played_say(__VA_ARGS__);                                                                         \
    } while (0)
/* The next word of how such calls end; the status that a word names; both. */
const char *played_word(size_t call, char room[64]);
thole_status played_status(const char *how, thole_error *reterr);
thole_status played_ends(size_t call, thole_error *reterr);

/* Runs @p main on a thread of its own. */
void played_thread(void *(*main)(void *), void *arg);
/* All that is to happen before @p ms; then it is @p ms. UINT64_MAX: until nothing is to happen. */
void played_until(uint64_t ms);
/* The calling thread sleeps. */
void played_sleep(uint64_t ms);
#endif
