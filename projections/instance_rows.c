#include "instance_rows.h"
#include "thole/client.h"

/* ---- instances ---- */

static uint64_t earlier_ms(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* @p row is of a later execution, or record, of the same instance. When events waited for it (execution 0) it
 * is created when it begins. */
static void instance_rows_follow(struct batch_instance *row, const struct batch_instance *earlier)
{
    if (row->execution > 0 && earlier->execution > 0)
        row->created_ms = earlier_ms(earlier->created_ms, row->created_ms);
    if (!row->custom_status_set) {
        row->custom_status_set = earlier->custom_status_set;
        row->custom_status = earlier->custom_status;
    }
}

size_t instance_rows_merge(const struct batch_instance *rows, const uint32_t *partitions,
                           const uint32_t *order, size_t n, struct instance_row *ret)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        struct instance_row merged = {rows[order[i]], partitions[order[i]]};
        if (merged.row.removed)
            continue;
        if (len > 0 && thole_slice_equal(ret[len - 1].row.instance, merged.row.instance))
            instance_rows_follow(&merged.row, &ret[--len].row);
        ret[len++] = merged;
    }
    for (size_t i = 0; i < len; i++)
        if (ret[i].row.created_ms == 0)
            ret[i].row.created_ms = ret[i].row.updated_ms;
    return len;
}

/* ---- executions ---- */

static bool instance_rows_is_end(uint32_t status)
{
    return status == THOLE_INSTANCE_COMPLETED || status == THOLE_INSTANCE_FAILED ||
           status == THOLE_INSTANCE_CANCELLED || status == THOLE_INSTANCE_TERMINATED ||
           status == THOLE_INSTANCE_CONTINUED_AS_NEW;
}

bool instance_row_says_execution(const struct batch_instance *row)
{
    if (row->removed || row->execution == 0)
        return false;
    if (row->execution == 1)
        return row->status == THOLE_INSTANCE_CONTINUED_AS_NEW;
    return row->orchestration.len > 0 || instance_rows_is_end(row->status);
}

/* The start of this execution; 0: that of the instance. The row of a later execution exists since it began,
 * and then keeps the time: the last one stands in only when that row was lost. */
static uint64_t started_ms(const struct batch_instance *row)
{
    if (row->created_ms > 0 || row->execution == 1)
        return row->created_ms;
    return row->began_ms > 0 ? row->began_ms : row->updated_ms;
}

size_t execution_rows_merge(const struct batch_instance *rows, const uint32_t *partitions,
                            const uint32_t *order, size_t n, struct execution_row *ret)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        const struct batch_instance *const from = &rows[order[i]];
        uint64_t started = started_ms(from);
        if (!instance_row_says_execution(from))
            continue;
        if (len > 0 && ret[len - 1].execution == from->execution &&
            thole_slice_equal(ret[len - 1].instance, from->instance)) {
            started = ret[--len].started_ms; /* of the rest the later record counts */
        }
        ret[len++] =
            (struct execution_row){.partition = partitions[order[i]],
                                   .status = from->status,
                                   .instance = from->instance,
                                   .execution = from->execution,
                                   .started_ms = started,
                                   .ended_ms = instance_rows_is_end(from->status) ? from->updated_ms : 0,
                                   .turns = from->turns,
                                   .history_seq = from->history_seq};
    }
    return len;
}
