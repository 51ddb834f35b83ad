#include "stored_row.h"

const struct row_shape row_shapes[ROW_TABLES] = {
    [ROWS_ACTIVITIES] = {.table = "worker_queue",
                         .id = "activity_id",
                         .numbers = {"p", "try_number", "try_timeout_ms"},
                         .texts = {"queue", "activity", "details", "digest", "claim"},
                         .bytes = 1 << ACTIVITY_DETAILS | 1 << ACTIVITY_DIGEST},
    [ROWS_TIMERS] = {.table = "timers", .id = "timer_id", .numbers = {"p", "due_ms"}},
    [ROWS_QUARANTINE] = {.table = "quarantine",
                         .id = "activity_id",
                         .numbers = {"p", "try_number", "lost", "since_ms", "until_ms"},
                         .texts = {"queue", "activity", "worker", "reason"}},
    [ROWS_EXECUTIONS] = {.table = "executions",
                         .numbers = {"p", "status", "started_ms", "ended_ms", "turns", "history_seq"}},
    [ROWS_INSTANCES] = {.table = "instances",
                        .numbers = {"p", "execution", "status", "created_ms", "updated_ms", "turns",
                                    "history_seq", "version", "blocked"},
                        .texts = {"orchestration", "detail", "custom_status", "parent"},
                        .bytes = 1 << INSTANCE_CUSTOM_STATUS},
};

static int stored_row_compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int stored_row_compare(const struct stored_row *a, const struct stored_row *b)
{
    int by = stored_row_compare_numbers(a->table, b->table);
    by = by != 0 ? by : stored_row_compare_numbers(a->execution, b->execution);
    return by != 0 ? by : stored_row_compare_numbers(a->id, b->id);
}
