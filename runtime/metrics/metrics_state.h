/* The state that metrics.c fills and the others read. */
#ifndef THOLE_METRICS_STATE_H
#define THOLE_METRICS_STATE_H
#include "metrics.h"
#include <stdatomic.h>

struct metric_cells {
    struct metric_cells *next; /* the one made before */
    struct metrics *owner;
    atomic_bool taken; /* by a thread that counts */
    _Atomic uint64_t
        values[]; /* each metric's at its offset, label by label; a histogram's: see histogram_len() */
};

struct pulse {
    struct pulse *next;
    const char *name;
    uint64_t limit_ms;
    atomic_bool taken;         /* by a loop that lives */
    _Atomic uint64_t since_ms; /* when it began; 0: it rests */
};

struct metrics {
    struct metrics_options options;
    size_t offsets[METRICS]; /* METRIC_HIDDEN: not shown */
    size_t cells_len;
    _Atomic(struct metric_cells *) cells;
    _Atomic(struct pulse *) pulses;
    atomic_flag noting;      /* a thread notes a name */
    atomic_size_t names_len; /* those before it do not change any more */
    char names[METRIC_NAMES_MAX][METRIC_NAME_BYTES];
};
#define METRIC_HIDDEN SIZE_MAX

size_t metric_labels(const struct metrics *metrics, enum metric metric); /* 1 when it has no label */
/* Of the first label alone; with a second one each name has as many. */
size_t metric_values(const struct metrics *metrics, enum metric metric);
/* How many names are shown, and one of them. */
size_t metric_names_shown(const struct metrics *metrics);
const char *metric_name_shown(const struct metrics *metrics, size_t i);
size_t metric_buckets(enum metric metric); /* without +Inf; of a histogram */
/* Values of one label: 1; of a histogram one for each bucket, one above the last bound, and their sum. */
size_t metric_width(enum metric metric);
/* Of all threads. @p at: which of the label's values. */
uint64_t metrics_read(const struct metrics *metrics, enum metric metric, size_t label, size_t at);
/* The longest time that a loop has been busy. */
uint64_t metrics_busy_ms(const struct metrics *metrics, uint64_t now_ms);
#endif
