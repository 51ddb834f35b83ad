/* Rows of the projection in one form for all tables, so that what is stored and what it should be are
 * compared and shown alike. Pure. */
#ifndef THOLE_STORED_ROW_H
#define THOLE_STORED_ROW_H
#include "thole/types.h"

enum row_table { ROWS_ACTIVITIES, ROWS_TIMERS, ROWS_QUARANTINE, ROWS_EXECUTIONS, ROWS_INSTANCES, ROW_TABLES };
enum { ROW_NUMBERS_MAX = 9, ROW_TEXTS_MAX = 5 };

/* Columns of each table by their place in a stored_row. The first number is the partition. */
enum { NUMBER_P };
enum { ACTIVITY_TRY = 1, ACTIVITY_TIMEOUT_MS };
enum { ACTIVITY_QUEUE, ACTIVITY_NAME, ACTIVITY_DETAILS, ACTIVITY_DIGEST, ACTIVITY_CLAIM };
enum { TIMER_DUE_MS = 1 };
enum { QUARANTINE_TRY = 1, QUARANTINE_LOST, QUARANTINE_SINCE_MS, QUARANTINE_UNTIL_MS };
enum { QUARANTINE_QUEUE, QUARANTINE_NAME, QUARANTINE_WORKER, QUARANTINE_REASON };
enum { EXECUTION_STATUS = 1, EXECUTION_STARTED_MS, EXECUTION_ENDED_MS, EXECUTION_TURNS, EXECUTION_SEQ };
enum {
    INSTANCE_EXECUTION = 1,
    INSTANCE_STATUS,
    INSTANCE_CREATED_MS,
    INSTANCE_UPDATED_MS,
    INSTANCE_TURNS,
    INSTANCE_SEQ,
    INSTANCE_VERSION,
    INSTANCE_BLOCKED,
};
enum { INSTANCE_ORCHESTRATION, INSTANCE_DETAIL, INSTANCE_CUSTOM_STATUS, INSTANCE_PARENT };

struct stored_row { /* of one instance, which is the first part of each key */
    enum row_table table;
    uint64_t execution, id; /* the rest of the key; 0 where the table has no such part */
    uint64_t numbers[ROW_NUMBERS_MAX];
    thole_slice texts[ROW_TEXTS_MAX];
    bool touched; /* an activity: workers may have written its details */
};

struct row_shape {
    const char *table, *id;                                              /* id: NULL where the key has none */
    const char *numbers[ROW_NUMBERS_MAX + 1], *texts[ROW_TEXTS_MAX + 1]; /* names; NULL ends each */
    uint32_t bytes; /* bit i: text i is bytes, shown in hexadecimal digits */
};
extern const struct row_shape row_shapes[ROW_TABLES];

/* By table, execution, id: <0, 0, >0. */
int stored_row_compare(const struct stored_row *a, const struct stored_row *b);
#endif
