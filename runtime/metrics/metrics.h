/*
 * The values of a process's metrics. Each thread that counts has cells of its own, which it alone writes; any
 * thread may read all of them at any time. Nothing locks and nothing waits: counting costs a load and a
 * store.
 *
 * Pure: no clock, no I/O. Times are of the monotonic clock.
 */
#ifndef THOLE_METRICS_H
#define THOLE_METRICS_H
#include "buf.h"
#include "metric_table.h"

struct metrics_pair { /* a label of thole_build_info */
    const char *label, *value;
};
struct metrics_options { /* all texts are borrowed until metrics_destroy() */
    unsigned roles;      /* METRIC_ENGINE, METRIC_WORKER, METRIC_GATEWAY: others' metrics are not shown */
    const struct metrics_pair *info;
    size_t info_len;
    const char *const *activities; /* names that the program registers: only these become labels */
    size_t activities_len;
};
struct metrics;
struct metrics *metrics_create(const struct metrics_options *options);
void metrics_destroy(struct metrics *metrics); /* when no thread counts any more; NULL-safe */

/* ---- counting: by the thread that owns the cells ---- */

struct metric_cells;
/* Any thread; belongs to @p metrics. NULL for NULL. */
struct metric_cells *metrics_cells(struct metrics *metrics);
/* The thread that owned them has ended: its gauges are 0, what it counted stays, and others may have them.
 * NULL-safe. */
void metrics_return_cells(struct metric_cells *cells);
/* For each: with NULL for cells, or of a metric that its process does not show, nothing happens. @p label:
 * index into the rule's values; 0 when it has none. */
void metric_add(struct metric_cells *cells, enum metric metric, size_t label,
                uint64_t n); /* not of a histogram */
void metric_set(struct metric_cells *cells, enum metric metric, size_t label, uint64_t value); /* likewise */
void metric_observe(struct metric_cells *cells, enum metric metric, size_t label, uint64_t value);
/* Of cells that several threads count in: all of them by this one. */
void metric_count(struct metric_cells *cells, enum metric metric, size_t label, uint64_t n);
/* Of a metric with a second label: the label of a name and a value of the first one, for the three above. A
 * name is noted when it is new, and then shown as long as the process runs; of METRIC_NAMES_MAX names all
 * others are "<other>". */
enum { METRIC_NAMES_MAX = 64, METRIC_NAME_BYTES = 65 };
size_t metrics_named(struct metric_cells *cells, enum metric metric, const char *name, size_t label);
/* The label of the class of a failed call, ERRORS_… */
size_t metric_error_class(thole_status status);

/* ---- loops ---- */

/*
 * A loop that waits for input and then does what is to be done: it begins, and it rests. One that has not
 * rested for longer than its limit is stuck.
 */
struct pulse;
/* Any thread; belongs to @p metrics. limit_ms 0: it is never taken for stuck. NULL for NULL. @p name: static
 * text. */
struct pulse *metrics_pulse(struct metrics *metrics, const char *name, uint64_t limit_ms);
/* To be called when the loop has ended: others of that name may have the pulse. NULL-safe. */
void metrics_return_pulse(struct pulse *pulse);
void pulse_begins(struct pulse *pulse, uint64_t now_ms); /* NULL-safe, as are the next */
void pulse_rests(struct pulse *pulse);

/* ---- reading: any thread ---- */

/* The value of a counter or a gauge, of all threads. */
uint64_t metrics_value(const struct metrics *metrics, enum metric metric, size_t label);
/* Appends all of them in the text format of Prometheus, version 0.0.4. */
void metrics_text(const struct metrics *metrics, uint64_t now_ms, struct buf *to);
/* Do the loops move? Appends a line for each that is stuck, or "ok". Never false because a server is away. */
bool metrics_live(const struct metrics *metrics, uint64_t now_ms, struct buf *to);
/* Does the process do its work? Appends a line for each condition of it. */
bool metrics_ready(const struct metrics *metrics, struct buf *to);
#endif
