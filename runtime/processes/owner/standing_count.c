#include "standing_count.h"
#include "clock.h"
#include "memory.h"
#include "query_store.h"
#include "standstill.h"
#include <stdio.h>
#include <stdlib.h>

enum { EACH_MS = 10000, SHARE = 50, NUMBERS = METRIC_NAMES_MAX * BLOCKED_KINDS };

struct counting {
    struct metric_cells *cells;
    uint64_t *numbers;
};

bool standing_count_is_due(const struct standing_count *count, const struct metric_cells *cells,
                           uint64_t now_ms)
{
    return cells != NULL && now_ms >= count->due_ms;
}

static thole_status standing_count_add(void *arg, const thole_standing_info *info)
{
    const struct counting *const counting = arg;
    char name[METRIC_NAME_BYTES];
    size_t const reason = (size_t)blocked_kind_of(info->reason);
    (void)snprintf(name, sizeof name, "%.*s", THOLE_FMT(info->orchestration));
    counting->numbers[metrics_named(counting->cells, METRIC_ENGINE_STANDING, name, reason)] += info->count;
    return THOLE_OK;
}

void standing_count_look(struct standing_count *count, struct postgres *pg, struct metric_cells *cells)
{
    uint64_t *const numbers = memory_array(NUMBERS, sizeof *numbers);
    struct counting counting = {cells, numbers};
    uint64_t const begun_ms = clock_monotonic_ms();
    if (query_store_standing(pg, false, standing_count_add, &counting, NULL) == THOLE_OK) {
        for (size_t i = 0; i < NUMBERS; i++)
            metric_set(cells, METRIC_ENGINE_STANDING, i, numbers[i]);
        count->shown = true;
    }
    free(numbers);
    uint64_t const now_ms = clock_monotonic_ms(), pause_ms = (now_ms - begun_ms) * SHARE;
    count->due_ms = now_ms + (pause_ms > EACH_MS ? pause_ms : EACH_MS);
}

void standing_count_leave(struct standing_count *count, struct metric_cells *cells)
{
    for (size_t i = 0; count->shown && i < NUMBERS; i++)
        metric_set(cells, METRIC_ENGINE_STANDING, i, 0);
    *count = (struct standing_count){.due_ms = 0};
}
