/* Inside engine/partition/: the phases of a partition, and which may follow which. docs/architecture.md shows
 * the table. */
#ifndef THOLE_PARTITION_PHASES_H
#define THOLE_PARTITION_PHASES_H
#include <stdbool.h>

/* lint.state_tables draws these lines in docs/architecture.md: one phase a line, with what it means. */
enum phase {
    PHASE_CLOSED,     /* not owned: nothing of it is in memory */
    PHASE_LOG,        /* finds the tail of the log and opens an epoch: see log/ */
    PHASE_PROJECTION, /* brings the rows up to the epoch: see projection/ */
    PHASE_CRASHES,    /* waits for the list of instances whose code has crashed an engine */
    PHASE_LIVE,       /* waits for the names and counts of live instances from the database */
    PHASE_TIMERS,     /* waits for the timers that are due soon */
    PHASE_SERVING,    /* messages are taken, turns run */
    PHASE_CLOSING,    /* hands the partition over: finishes what is in flight */
};

bool phase_may_follow(enum phase from, enum phase to);
#endif
