#include "namespace_store.h"
#include "buf.h"
#include "postgres_call.h"
#include <stdio.h>
#include <string.h>

enum { ACCEPT_TIMEOUT_MS = 600000 };

static void namespace_id_of(thole_slice text, struct namespace_id *ret)
{
    if (!namespace_id_read(text, ret))
        *ret = (struct namespace_id){.text = ""};
}

static struct log_known log_known_of(const struct postgres *pg, size_t row, size_t column)
{
    return (struct log_known){.projected = call_cell_int8(pg, 0, row, column),
                              .projected_mark = call_cell_int8(pg, 0, row, column + 1),
                              .kept = call_cell_int8(pg, 0, row, column + 2),
                              .kept_mark = call_cell_int8(pg, 0, row, column + 3),
                              .written_ms = call_cell_int8(pg, 0, row, column + 4)};
}

thole_status namespace_store_read(struct postgres *pg, struct namespace_rows *ret, thole_error *reterr)
{
    *ret = (struct namespace_rows){.owned = 0};
    call_begin(pg, "reading whose rows these are");
    call_int8(pg, NAMESPACE_INSTANCES_MAX);
    call_send(pg, STATEMENT_NAMESPACE);
    THOLE_TRY(call_run(pg, reterr));
    if (call_rows(pg, 0) != 1)
        return THOLE_OK;
    namespace_id_of(call_cell_text(pg, 0, 0, 0), &ret->id);
    ret->owned = call_cell_int8(pg, 0, 0, 1);
    ret->instances = call_cell_int8(pg, 0, 0, 2);
    ret->written_ms = call_cell_int8(pg, 0, 0, 3);
    ret->loss_ms = call_cell_int8(pg, 0, 0, 4);
    (void)snprintf(ret->loss_actor, sizeof ret->loss_actor, "%.*s", THOLE_FMT(call_cell_text(pg, 0, 0, 5)));
    (void)snprintf(ret->loss_reason, sizeof ret->loss_reason, "%.*s", THOLE_FMT(call_cell_text(pg, 0, 0, 6)));
    return THOLE_OK;
}

thole_status namespace_store_logs(struct postgres *pg, struct log_known *ret, size_t n, thole_error *reterr)
{
    memset(ret, 0, n * sizeof *ret);
    call_begin(pg, "reading what is known of the logs");
    call_send(pg, STATEMENT_LOGS_KNOWN);
    THOLE_TRY(call_run(pg, reterr));
    for (size_t row = 0; row < call_rows(pg, 0); row++) {
        uint64_t const p = call_cell_int8(pg, 0, row, 0);
        if (p < n)
            ret[p] = log_known_of(pg, row, 1);
    }
    return THOLE_OK;
}

thole_status namespace_store_log(struct postgres *pg, uint32_t partition, struct log_known *ret,
                                 struct namespace_id *ret_id, thole_error *reterr)
{
    call_begin(pg, "reading what is known of a log");
    call_int4(pg, partition);
    call_send(pg, STATEMENT_LOG_KNOWN);
    THOLE_TRY(call_run(pg, reterr));
    *ret = (struct log_known){.projected = 0};
    *ret_id = (struct namespace_id){.text = ""};
    if (call_rows(pg, 0) != 1)
        return THOLE_OK;
    namespace_id_of(call_cell_text(pg, 0, 0, 0), ret_id);
    *ret = log_known_of(pg, 0, 1);
    return THOLE_OK;
}

thole_status namespace_store_adopt(struct postgres *pg, const struct namespace_id *id,
                                   struct namespace_id *ret, thole_error *reterr)
{
    call_begin(pg, "noting whose rows these are");
    call_text(pg, thole_slice_from(id->text));
    call_send(pg, STATEMENT_NAMESPACE_ADOPT);
    call_send(pg, STATEMENT_NAMESPACE_ID);
    THOLE_TRY(call_run(pg, reterr));
    if (ret != NULL)
        namespace_id_of(call_rows(pg, 1) == 1 ? call_cell_text(pg, 1, 0, 0) : (thole_slice){0}, ret);
    return THOLE_OK;
}

thole_status namespace_store_keep(struct postgres *pg, uint32_t partition, uint64_t epoch, uint64_t age_ms,
                                  thole_error *reterr)
{
    call_begin(pg, "noting which record a log keeps");
    call_int4(pg, partition);
    call_int8(pg, epoch);
    call_int8(pg, age_ms);
    call_send(pg, STATEMENT_LOG_KEEP);
    return call_run(pg, reterr);
}

/* ---- an accepted loss ---- */

thole_status namespace_store_accept(struct postgres *pg, const struct accepted_loss *loss,
                                    thole_error *reterr)
{
    static const enum statement deletes[] = {STATEMENT_ACTIVITIES_FORGET, STATEMENT_TIMERS_FORGET,
                                             STATEMENT_QUARANTINE_FORGET, STATEMENT_INSTANCES_FORGET,
                                             STATEMENT_EXECUTIONS_FORGET};
    call_begin(pg, "accepting a loss");
    call_timeout(pg, ACCEPT_TIMEOUT_MS);
    call_text(pg, THOLE_STR("statement_timeout"));
    call_text(pg, THOLE_STR("600000"));
    call_send(pg, STATEMENT_SET);
    call_text(pg, thole_slice_from(loss->before.text));
    call_text(pg, thole_slice_from(loss->after.text));
    call_send(pg, STATEMENT_NAMESPACE_SUCCEED);
    call_text(pg, thole_slice_from(loss->before.text));
    call_text(pg, thole_slice_from(loss->after.text));
    call_text(pg, loss->actor);
    call_text(pg, loss->reason);
    call_text(pg, loss->what);
    call_send(pg, STATEMENT_LOSS_ADD);
    call_int4_array(pg, loss->partitions, sizeof *loss->partitions, loss->partitions_len);
    call_send(pg, STATEMENT_LOGS_FORGET);
    for (size_t i = 0; i < sizeof deletes / sizeof deletes[0]; i++) {
        call_int4_array(pg, loss->partitions, sizeof *loss->partitions, loss->partitions_len);
        call_send(pg, deletes[i]);
    }
    thole_status const status = call_run(pg, reterr);
    if (status != THOLE_FENCED)
        return status;
    return thole_fail(reterr, THOLE_CONFLICT, "the rows in Postgres %s are not of namespace %s (any more)",
                      pg->where, loss->before.text[0] != '\0' ? loss->before.text : "without identity");
}
