/*
 * At most one log line a second of one kind, with the number of suppressed ones: for events that others can
 * cause at any rate. Times are of the monotonic clock, in milliseconds. Thread-safe.
 */
#ifndef THOLE_LOG_LIMIT_H
#define THOLE_LOG_LIMIT_H
#include "log.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { LOG_LIMIT_EVERY_MS = 1000 };

struct log_limit {
    pthread_mutex_t lock;
    uint64_t last_ms; /* when a line was written; 0 = never */
    uint64_t more;    /* since then */
};
void log_limit_init(struct log_limit *limit);
void log_limit_release(struct log_limit *limit);

/* True: write the line, and that there were *ret_more before it. False: it is counted. */
bool log_limit_pass(struct log_limit *limit, uint64_t now_ms, uint64_t *ret_more);
/* How many are to be counted in one line, now; 0 = none, or not yet. */
uint64_t log_limit_rest(struct log_limit *limit, uint64_t now_ms);
/* When to call that; UINT64_MAX = there is nothing to tell of. */
uint64_t log_limit_due_ms(struct log_limit *limit);

/* The two of them as lines of the log, WARN. Of what has no line of its own: "and N more WHAT". */
void log_limit_warn(struct log_limit *limit, uint64_t now_ms, const char *area, const char *what,
                    const char *fmt, ...) THOLE_PRINTF(5, 6);
void log_limit_warn_rest(struct log_limit *limit, uint64_t now_ms, const char *area, const char *what);
#endif
