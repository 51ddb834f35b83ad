/* Looks whether the rows of partitions are what their owners have left. */
#include "projector_parts.h"
#include <assert.h>

void projector_send_rows(struct postgres *pg, const uint32_t *partition, const uint64_t *epoch,
                         const struct rows_state *rows, size_t stride, size_t n)
{
    call_int4_array(pg, partition, stride, n);
    call_int8_array(pg, epoch, stride, n);
    call_int8_array(pg, &rows->projected.seq, stride, n);
    call_int8_array(pg, &rows->projected.mark, stride, n);
    call_int8_array(pg, &rows->batches, stride, n);
}

static struct rows_look *find_look(struct rows_look *looks, size_t n, uint64_t partition)
{
    for (size_t i = 0; i < n; i++)
        if (looks[i].partition == partition)
            return &looks[i];
    return NULL;
}

/* Rows are (partition, epoch, sequence, mark, batches, 1 if complete) of those that differ. */
static void take_found(const struct postgres *pg, size_t row, struct rows_look *look)
{
    look->found_epoch = call_cell_int8(pg, 0, row, 1);
    look->found = (struct rows_state){{call_cell_int8(pg, 0, row, 2), call_cell_int8(pg, 0, row, 3)},
                                      call_cell_int8(pg, 0, row, 4)};
    look->found_complete = call_cell_int8(pg, 0, row, 5) == 1;
    look->status = look->found_epoch > look->epoch ? THOLE_FENCED : THOLE_CONFLICT;
}

thole_status projector_store_look(struct postgres *pg, struct rows_look *looks, size_t n, thole_error *reterr)
{
    assert(n > 0 && !pg->in_transaction);
    for (size_t i = 0; i < n; i++)
        looks[i].status = THOLE_OK;
    call_begin(pg, "looking whether the rows are those that were written");
    projector_send_rows(pg, &looks->partition, &looks->epoch, &looks->rows, sizeof *looks, n);
    call_bool_array(pg, &looks->complete, sizeof *looks, n);
    call_send(pg, STATEMENT_PARTITIONS_LOOK);
    THOLE_TRY(call_run(pg, reterr));
    for (size_t row = 0; row < call_rows(pg, 0); row++) {
        struct rows_look *const look = find_look(looks, n, call_cell_int8(pg, 0, row, 0));
        if (look == NULL)
            return thole_fail(reterr, THOLE_CORRUPT, "Postgres named a partition that was not asked for");
        take_found(pg, row, look);
    }
    return THOLE_OK;
}

static bool same_rows(const struct rows_look *look)
{
    return look->found_epoch == look->epoch && look->found.batches == look->rows.batches &&
           look->found.projected.seq == look->rows.projected.seq &&
           look->found.projected.mark == look->rows.projected.mark;
}

thole_status projector_store_found(const struct rows_look *look, thole_error *reterr)
{
    if (look->status == THOLE_OK)
        return THOLE_OK;
    if (look->status == THOLE_FENCED)
        return projector_fenced(look->partition, look->epoch, reterr);
    if (look->found_epoch == 0)
        return thole_fail(reterr, THOLE_CONFLICT,
                          "partition %u: its row is gone from the database, which may be a restored one",
                          look->partition);
    if (same_rows(look))
        return thole_fail(reterr, THOLE_CONFLICT,
                          "partition %u: the database does not know any more that its rows are complete",
                          look->partition);
    return thole_fail(reterr, THOLE_CONFLICT,
                      "partition %u: the database is of another time, as after a backup was restored: it has "
                      "epoch %llu, projected up to %llu with %llu batches, and should have epoch %llu, "
                      "projected up to %llu with %llu",
                      look->partition, (unsigned long long)look->found_epoch,
                      (unsigned long long)look->found.projected.seq, (unsigned long long)look->found.batches,
                      (unsigned long long)look->epoch, (unsigned long long)look->rows.projected.seq,
                      (unsigned long long)look->rows.batches);
}
