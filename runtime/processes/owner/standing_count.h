/* Counts instances that do not go on, by orchestration and reason, for the metrics: from the rows, so that
 * those of all engines and of before this process are in it. */
#ifndef THOLE_STANDING_COUNT_H
#define THOLE_STANDING_COUNT_H
#include "metrics.h"
#include "postgres.h"
#include <stdbool.h>

struct standing_count {
    uint64_t due_ms; /* monotonic */
    bool shown;
};
bool standing_count_is_due(const struct standing_count *count, const struct metric_cells *cells,
                           uint64_t now_ms);
/* Without an answer the numbers of before stay. */
void standing_count_look(struct standing_count *count, struct postgres *pg, struct metric_cells *cells);
/* Another engine counts. */
void standing_count_leave(struct standing_count *count, struct metric_cells *cells);
#endif
