/* Activities that no worker knows: which there are, and taking them off the shelf. */
#include "projector_parts.h"
#include <assert.h>

static thole_status shelf_full(thole_error *reterr)
{
    return thole_fail(reterr, THOLE_LIMIT, "no room for the activities that no worker knows");
}

thole_status projector_store_shelved(struct postgres *pg, const uint32_t *partitions, size_t n, size_t limit,
                                     struct arena *arena, struct shelved_name **ret, size_t *ret_len,
                                     thole_error *reterr)
{
    assert(n > 0 && !pg->in_transaction);
    call_begin(pg, "looking for activities that no worker knows");
    call_int4_array(pg, partitions, sizeof *partitions, n);
    call_int8(pg, limit);
    call_send(pg, STATEMENT_SHELVED);
    THOLE_TRY(call_run(pg, reterr));
    size_t const len = call_rows(pg, 0);
    struct shelved_name *const names = arena_array(arena, len, sizeof *names);
    if (names == NULL && len > 0)
        return shelf_full(reterr);
    for (size_t row = 0; row < len; row++) {
        names[row].partition = (uint32_t)call_cell_int8(pg, 0, row, 0);
        names[row].rows = call_cell_int8(pg, 0, row, 3);
        if (arena_dup(arena, call_cell_text(pg, 0, row, 1), &names[row].queue) != THOLE_OK ||
            arena_dup(arena, call_cell_text(pg, 0, row, 2), &names[row].activity) != THOLE_OK)
            return shelf_full(reterr);
    }
    *ret = names;
    *ret_len = len;
    return THOLE_OK;
}

thole_status projector_store_unshelve(struct postgres *pg, const struct rows_owner *owner,
                                      const struct shelved_name *names, size_t names_len, uint64_t least_ms,
                                      size_t limit, struct arena *arena, struct batch_activity **ret,
                                      size_t *ret_len, thole_error *reterr)
{
    assert(names_len > 0 && !pg->in_transaction);
    call_begin(pg, "taking activities off the shelf");
    call_int4(pg, owner->partition);
    call_int8(pg, least_ms);
    call_int8(pg, limit);
    call_int8(pg, owner->epoch);
    call_int8(pg, owner->batches);
    call_text_array(pg, &names->queue, sizeof *names, names_len);
    call_text_array(pg, &names->activity, sizeof *names, names_len);
    call_send(pg, STATEMENT_UNSHELVE);
    THOLE_TRY(call_run(pg, reterr));
    size_t const len = call_rows(pg, 0);
    struct batch_activity *const rows = arena_array(arena, len, sizeof *rows);
    if (rows == NULL && len > 0)
        return shelf_full(reterr);
    THOLE_TRY(projector_read_activities(pg, arena, rows, reterr));
    *ret = rows;
    *ret_len = len;
    return THOLE_OK;
}
