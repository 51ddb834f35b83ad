#include "blockers.h"
#include "postgres_call.h"

thole_status blockers_end(struct postgres *pg, blocker_fn *each, void *arg, thole_error *reterr)
{
    call_begin(pg, "looking for sessions that block");
    call_int8(pg, BLOCKER_HELD_MS);
    call_int8(pg, BLOCKER_WAITED_MS);
    call_int8(pg, BLOCKERS_MAX);
    call_send(pg, STATEMENT_BLOCKERS_END);
    THOLE_TRY(call_run(pg, reterr));
    for (size_t row = 0; row < call_rows(pg, 0); row++) {
        struct blocker const blocker = {.role = call_cell_text(pg, 0, row, 0),
                                        .address = call_cell_text(pg, 0, row, 1),
                                        .application = call_cell_text(pg, 0, row, 2),
                                        .pid = call_cell_int8(pg, 0, row, 3),
                                        .held_ms = call_cell_int8(pg, 0, row, 4)};
        each(arg, &blocker);
    }
    return THOLE_OK;
}
