/* Waiting on a connection, plain SQL, closing it. */
#include "clock.h"
#include "memory.h"
#include "postgres_call.h"
#include <assert.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <time.h>

void session_drop(struct postgres *pg)
{
    PQfinish(pg->conn); /* NULL-safe */
    pg->conn = NULL;
    memset(pg->opened, 0, sizeof pg->opened);
    pg->incarnation[0] = '\0';
}

/* Of what is left when there is a connection and the name is a checked one. */
static char *postgres_session_quoted(char *text)
{
    if (text == NULL)
        memory_give_up(1, sizeof((struct postgres *)NULL)->schema);
    return text;
}

char *session_identifier(struct postgres *pg)
{
    assert(pg->conn != NULL);
    return postgres_session_quoted(PQescapeIdentifier(pg->conn, pg->schema, strlen(pg->schema)));
}

char *session_literal(struct postgres *pg)
{
    assert(pg->conn != NULL);
    return postgres_session_quoted(PQescapeLiteral(pg->conn, pg->schema, strlen(pg->schema)));
}

thole_status session_failed(struct postgres *pg, const char *what, const PGresult *result,
                            thole_error *reterr)
{
    bool useless = false;
    thole_status const status = error_from_result(pg, what, result, &useless, reterr);
    assert(status != THOLE_OK);
    if (useless)
        session_drop(pg);
    return status;
}

/* Waits until the deadline; returns the events that the socket is ready for. */
static short wait_ready(const struct postgres *pg, short events, uint64_t now_ms, uint64_t deadline_ms)
{
    uint64_t const left_ms = deadline_ms - now_ms;
    struct pollfd fd = {.fd = PQsocket(pg->conn), .events = events};
    if (pg->wait != NULL)
        return pg->wait(pg->wait_arg, fd.fd, events, deadline_ms);
    (void)poll(&fd, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
    return fd.revents;
}

thole_status session_wait(struct postgres *pg, uint64_t deadline_ms, thole_error *reterr)
{
    assert(pg->conn != NULL);
    for (;;) {
        int unsent = PQflush(pg->conn);
        if (unsent < 0)
            return session_failed(pg, pg->what, NULL, reterr);
        if (unsent == 0 && PQisBusy(pg->conn) == 0)
            return THOLE_OK;
        uint64_t now = clock_monotonic_ms();
        if (now >= deadline_ms) {
            session_drop(pg); /* a late answer would be taken for the next statement's */
            return thole_fail(reterr, THOLE_UNAVAILABLE, "%s failed: no answer from Postgres %s in time",
                              pg->what, pg->where);
        }
        short const events = (short)(POLLIN | (unsent == 1 ? POLLOUT : 0));
        short const ready = wait_ready(pg, events, now, deadline_ms); /* interrupted or late: again */
        if ((ready & (POLLIN | POLLERR | POLLHUP)) != 0 && PQconsumeInput(pg->conn) != 1)
            return session_failed(pg, pg->what, NULL, reterr);
    }
}

thole_status session_sql(struct postgres *pg, const char *what, const char *sql, uint64_t timeout_ms,
                         PGresult **ret_last, thole_error *reterr)
{
    uint64_t deadline_ms = clock_monotonic_ms() + timeout_ms;
    thole_status status = THOLE_OK;
    PGresult *last = NULL;
    assert(pg->conn != NULL);
    bool pipeline = PQpipelineStatus(pg->conn) != PQ_PIPELINE_OFF;
    pg->what = what;
    pg->statements++;
    if ((pipeline && PQexitPipelineMode(pg->conn) != 1) || PQsendQuery(pg->conn, sql) != 1)
        return session_failed(pg, what, NULL, reterr);
    for (;;) {
        thole_status waited = session_wait(pg, deadline_ms, status == THOLE_OK ? reterr : NULL);
        PGresult *result = waited == THOLE_OK ? PQgetResult(pg->conn) : NULL;
        if (result == NULL) {
            status = status != THOLE_OK ? status : waited;
            break;
        }
        PQclear(last);
        last = result;
        ExecStatusType kind = PQresultStatus(result);
        if (kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK && status == THOLE_OK)
            status = session_failed(pg, what, result, reterr);
        if (pg->conn == NULL)
            break;
    }
    if (pg->conn != NULL && pipeline && PQenterPipelineMode(pg->conn) != 1 && status == THOLE_OK)
        status = session_failed(pg, what, NULL, reterr);
    if (status == THOLE_OK && ret_last != NULL)
        *ret_last = last;
    else
        PQclear(last);
    return status;
}
