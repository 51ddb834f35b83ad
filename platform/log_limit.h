/*
 * Lines of the log about what others can cause at any rate. Each kind of line, in each partition, may write
 * a few lines in an interval; what follows in it is counted, and one line at its end says how many more there
 * were, in how long, and how many since the start. While a flood lasts the interval doubles, from one second
 * to a minute. All partitions together may write LOG_LIMIT_BURST lines of one kind at once and one more each
 * LOG_LIMIT_LINE_MS. So the first line of each kind is always written, no kind hides another, and the counts
 * are true. Times are of the monotonic clock, in milliseconds. Thread-safe.
 */
#ifndef THOLE_LOG_LIMIT_H
#define THOLE_LOG_LIMIT_H
#include "log.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    LOG_LIMIT_FIRST_MS = 1000,
    LOG_LIMIT_LONGEST_MS = 60000,
    LOG_LIMIT_BURST = 32,
    LOG_LIMIT_LINE_MS = 200,
};

/* Borrowed until log_limits_destroy(). */
struct log_kind {
    enum log_level level;
    const char *area;
    const char *name; /* of its counter: [a-z_]+ */
    const char *more; /* "and 17 more MORE" */
    uint32_t lines;   /* in each interval, of each partition; at least 1 */
};

struct log_limits;
/* Without partitions: 0, and no line is of a partition. */
struct log_limits *log_limits_create(const struct log_kind *kinds, size_t kinds_len, uint32_t partitions);
void log_limits_destroy(struct log_limits *limits); /* NULL-safe */

/* Writes the line, or counts it, for the partition that @p fields say (NULL: no fields). */
void log_limits_line(struct log_limits *limits, uint64_t now_ms, size_t kind, const struct log_fields *fields,
                     const char *fmt, ...) THOLE_PRINTF(5, 6);
/* Writes what is due of "and N more"; returns when to call again, UINT64_MAX = nothing is counted. */
uint64_t log_limits_rest(struct log_limits *limits, uint64_t now_ms);
/* All that was written and counted of the kind since the start. */
uint64_t log_limits_total(struct log_limits *limits, size_t kind);
/* One line of level INFO with the counters that are not 0: "counted: NAME=N NAME=N "; none when all are 0. */
void log_limits_say_totals(struct log_limits *limits, const char *area);
#endif
