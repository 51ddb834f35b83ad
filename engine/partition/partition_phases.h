/* Inside engine/partition/: the phases of a partition, and which may follow which. docs/architecture.md shows
 * the table. */
#ifndef THOLE_PARTITION_PHASES_H
#define THOLE_PARTITION_PHASES_H
#include <stdbool.h>

/* lint.state_tables draws these lines in docs/architecture.md: one phase a line, with what it means. */
enum phase {
    PHASE_CLOSED,     /* it is not this owner's, and nothing of it is in memory */
    PHASE_LOG,        /* the tail of the log is found, and an epoch opened: see log/ */
    PHASE_PROJECTION, /* the rows are brought up to that: see projection/ */
    PHASE_CRASHES,    /* waits for the list of instances whose code has crashed an engine */
    PHASE_LIVE,       /* waits for what is live, as the database has it */
    PHASE_TIMERS,     /* waits for the timers that are due soon */
    PHASE_SERVING,    /* messages are taken, turns run */
    PHASE_CLOSING,    /* is handed over: what is in flight is finished */
};

bool phase_may_follow(enum phase from, enum phase to);
#endif
