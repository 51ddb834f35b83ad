/* Binary parameters, pipelines, results. */
#include "postgres_call.h"
#include "clock.h"
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Object ids of the types that are sent and received: src/include/catalog/pg_type.dat, fixed for ever. */
enum { TYPE_BOOL = 16, TYPE_BYTEA = 17, TYPE_INT8 = 20, TYPE_INT4 = 23, TYPE_TEXT = 25 };
enum { CLIENT_GRACE_MS = 2000 }; /* so that the server's own statement timeout comes first */

static void clear_results(struct postgres *pg)
{
    for (size_t i = 0; i < pg->results_len; i++) {
        PQclear(pg->results[i]);
        pg->results[i] = NULL;
    }
    pg->results_len = 0;
}

void call_begin(struct postgres *pg, const char *what)
{
    clear_results(pg);
    pg->what = what;
    pg->timeout_ms = pg->statement_timeout_ms + CLIENT_GRACE_MS;
    pg->failed = THOLE_OK;
    pg->queued_len = 0;
    pg->pending_len = 0;
    pg->params = 0;
    call_order(pg, NULL);
    buf_clear(&pg->bytes);
    pg->connect_failed.status = THOLE_OK;
    pg->refused_param = 0;
    if (pg->conn != NULL)
        return;
    if (pg->in_transaction)
        pg->failed = thole_fail(&pg->connect_failed, THOLE_UNAVAILABLE,
                                "%s failed on Postgres %s: the transaction was lost with its connection",
                                what, pg->where);
    else if (pg->wait != NULL)
        pg->failed = thole_fail(&pg->connect_failed, THOLE_UNAVAILABLE,
                                "%s failed on Postgres %s: the connection was lost", what, pg->where);
    else
        pg->failed = session_open(pg, &pg->connect_failed);
}

void call_timeout(struct postgres *pg, uint64_t timeout_ms)
{
    pg->timeout_ms = timeout_ms;
}

/* -- parameters -- */

static void put_int4(struct buf *to, uint32_t value)
{
    uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                        (uint8_t)value};
    buf_append(to, bytes, sizeof bytes);
}

static void put_int8(struct buf *to, uint64_t value)
{
    put_int4(to, (uint32_t)(value >> 32));
    put_int4(to, (uint32_t)value);
}

static void start_param(struct postgres *pg)
{
    assert(pg->params < CALL_PARAMS_MAX);
    pg->offsets[pg->params] = pg->bytes.len;
}

static void end_param(struct postgres *pg)
{
    assert(pg->bytes.len >= pg->offsets[pg->params]);
    size_t bytes = pg->bytes.len - pg->offsets[pg->params];
    assert(bytes <= CALL_BYTES_MAX);
    pg->lengths[pg->params++] = (int)bytes;
}

/* The parameter at hand has a value that is not sent. */
static void call_refuse_param(struct postgres *pg)
{
    if (pg->failed != THOLE_OK)
        return;
    pg->failed = THOLE_INVALID;
    pg->refused_param = pg->params + 1;
}

void call_text(struct postgres *pg, thole_slice text)
{
    start_param(pg);
    buf_slice(&pg->bytes, text);
    end_param(pg);
}

void call_int8(struct postgres *pg, uint64_t value)
{
    if (value > INT64_MAX)
        call_refuse_param(pg);
    start_param(pg);
    put_int8(&pg->bytes, value);
    end_param(pg);
}

void call_int4(struct postgres *pg, uint32_t value)
{
    if (value > INT32_MAX)
        call_refuse_param(pg);
    start_param(pg);
    put_int4(&pg->bytes, value);
    end_param(pg);
}

/* One dimension, from 1, no NULLs. */
static void start_array(struct postgres *pg, uint32_t type, size_t n)
{
    start_param(pg);
    if (n > INT32_MAX)
        call_refuse_param(pg);
    put_int4(&pg->bytes, n > 0 ? 1 : 0);
    put_int4(&pg->bytes, 0);
    put_int4(&pg->bytes, type);
    if (n > 0) {
        put_int4(&pg->bytes, (uint32_t)n);
        put_int4(&pg->bytes, 1);
    }
}

void call_order(struct postgres *pg, uint32_t *order)
{
    free(pg->order);
    pg->order = order;
}

static const void *postgres_call_element(const struct postgres *pg, const void *first, size_t stride,
                                         size_t i)
{
    return (const uint8_t *)first + (pg->order == NULL ? i : pg->order[i]) * stride;
}

static void put_slices(struct postgres *pg, uint32_t type, const thole_slice *first, size_t stride, size_t n)
{
    start_array(pg, type, n);
    for (size_t i = 0; i < n; i++) {
        const thole_slice *slice = postgres_call_element(pg, first, stride, i);
        if (slice->len > INT32_MAX) {
            call_refuse_param(pg);
            break;
        }
        put_int4(&pg->bytes, (uint32_t)slice->len);
        buf_slice(&pg->bytes, *slice);
    }
    end_param(pg);
}

void call_text_array(struct postgres *pg, const thole_slice *first, size_t stride, size_t n)
{
    put_slices(pg, TYPE_TEXT, first, stride, n);
}

void call_bytes_array(struct postgres *pg, const thole_slice *first, size_t stride, size_t n)
{
    put_slices(pg, TYPE_BYTEA, first, stride, n);
}

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Bytes of the character at @p p that Postgres would take as text; 0: none. */
static size_t character_bytes(const uint8_t *p, size_t len)
{
    size_t const bytes = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (p[0] == 0 || p[0] > 0xF4 || bytes == 0 || bytes > len)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if (!is_continuation(p[i]))
            return 0;
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF0 && p[1] < 0x90) ||
        (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return bytes;
}

static void put_readable(struct buf *to, thole_slice text)
{
    for (size_t at = 0; at < text.len;) {
        size_t const bytes = character_bytes(text.ptr + at, text.len - at);
        buf_append(to, bytes > 0 ? text.ptr + at : (const uint8_t *)"?", bytes > 0 ? bytes : 1);
        at += bytes > 0 ? bytes : 1;
    }
}

void call_readable_array(struct postgres *pg, const thole_slice *first, size_t stride, size_t n)
{
    start_array(pg, TYPE_TEXT, n);
    for (size_t i = 0; i < n; i++) {
        const thole_slice *text = postgres_call_element(pg, first, stride, i);
        if (text->len > INT32_MAX) {
            call_refuse_param(pg);
            break;
        }
        put_int4(&pg->bytes, (uint32_t)text->len); /* one byte for each that is replaced */
        put_readable(&pg->bytes, *text);
    }
    end_param(pg);
}

void call_int8_array_most(struct postgres *pg, const uint64_t *first, size_t stride, size_t n, uint64_t most)
{
    start_array(pg, TYPE_INT8, n);
    for (size_t i = 0; i < n; i++) {
        const uint64_t *value = postgres_call_element(pg, first, stride, i);
        if (*value > INT64_MAX && most > INT64_MAX)
            call_refuse_param(pg);
        put_int4(&pg->bytes, 8);
        put_int8(&pg->bytes, *value < most ? *value : most);
    }
    end_param(pg);
}

void call_int8_array(struct postgres *pg, const uint64_t *first, size_t stride, size_t n)
{
    call_int8_array_most(pg, first, stride, n, UINT64_MAX);
}

void call_bool_array(struct postgres *pg, const bool *first, size_t stride, size_t n)
{
    start_array(pg, TYPE_BOOL, n);
    for (size_t i = 0; i < n; i++) {
        const bool *value = postgres_call_element(pg, first, stride, i);
        uint8_t const byte = *value;
        put_int4(&pg->bytes, 1);
        buf_append(&pg->bytes, &byte, 1);
    }
    end_param(pg);
}

void call_int4_array(struct postgres *pg, const uint32_t *first, size_t stride, size_t n)
{
    start_array(pg, TYPE_INT4, n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *value = postgres_call_element(pg, first, stride, i);
        if (*value > INT32_MAX)
            call_refuse_param(pg);
        put_int4(&pg->bytes, 4);
        put_int4(&pg->bytes, *value);
    }
    end_param(pg);
}

/* -- sending -- */

/* The name that follows "unnest($n::type[]) AS " in the statement: that of the column which is written with
 * it. */
static void call_name_param(const char *sql, size_t n, char *ret, size_t cap)
{
    char param[32];
    (void)snprintf(param, sizeof param, "$%zu::", n);
    const char *const at = strstr(sql, param), *as = at == NULL ? NULL : strstr(at, ") AS ");
    size_t len = 0;
    ret[0] = '\0';
    if (as == NULL)
        return;
    as += strlen(") AS ");
    while (len + 1 < cap && (isalnum((unsigned char)as[len]) || as[len] == '_'))
        len++;
    (void)snprintf(ret, cap, "%.*s", (int)len, as);
}

void call_send(struct postgres *pg, enum statement statement)
{
    assert(pg->queued_len < CALL_STATEMENTS_MAX);
    size_t first = pg->queued_len > 0 ? pg->queued[pg->queued_len - 1].params_end : 0;
    assert(first <= pg->params);
    pg->queued[pg->queued_len++] = (struct call_queued){statement, first, pg->params};
    if (pg->refused_param <= first || pg->refused_param > pg->params)
        return;
    pg->refusal = (struct call_refusal){.reason = "a number does not fit into the tables"};
    call_name_param(statement_texts[statement].sql, pg->refused_param - first, pg->refusal.column,
                    sizeof pg->refusal.column);
}

size_t call_sent(const struct postgres *pg)
{
    return pg->queued_len;
}

static bool is_pending(const struct postgres *pg, enum statement statement)
{
    for (size_t i = 0; i < pg->pending_len; i++)
        if (pg->pending[i].statement == statement)
            return true;
    return false;
}

/* The highest of $1, $2, … */
static size_t parameters_of(const char *sql)
{
    size_t most = 0;
    for (const char *at = strchr(sql, '$'); at != NULL; at = strchr(at + 1, '$')) {
        size_t const number = strtoul(at + 1, NULL, 10);
        most = number > most ? number : most;
    }
    return most;
}

static void postgres_call_await(struct postgres *pg, struct call_pending pending)
{
    assert(pg->pending_len < sizeof pg->pending / sizeof pg->pending[0]);
    pg->pending[pg->pending_len++] = pending;
}

static bool send_text(struct postgres *pg, const char *sql, size_t n, const char *const *values,
                      const int *lengths, const int *formats)
{
    return PQsendQueryParams(pg->conn, sql, (int)n, NULL, values, lengths, formats, 1) == 1;
}

/* Sends the settings at the beginning of a transaction through a pooler. The guard fails when the server
 * has lost transactions since the partitions were opened: their rows are then not those that the engine
 * expects. */
static bool send_settings(struct postgres *pg)
{
    static const char guard[] = "SELECT 1 / count(*) FROM incarnation WHERE id::text = $1::text";
    const char *const values[] = {pg->incarnation};
    postgres_call_await(pg, (struct call_pending){.kind = PENDING_SETTINGS});
    if (!send_text(pg, pg->settings, 0, NULL, NULL, NULL))
        return false;
    if (pg->incarnation[0] == '\0')
        return true;
    postgres_call_await(pg, (struct call_pending){.kind = PENDING_GUARD});
    return send_text(pg, guard, 1, values, NULL, NULL);
}

static bool send_prepare(struct postgres *pg, enum statement statement)
{
    const struct statement_text *text = &statement_texts[statement];
    if (pg->prepared[statement] || is_pending(pg, statement))
        return true;
    postgres_call_await(pg, (struct call_pending){statement, PENDING_PREPARE});
    return PQsendPrepare(pg->conn, text->name, text->sql, 0, NULL) == 1;
}

static bool send_queued(struct postgres *pg, const struct call_queued *queued)
{
    enum statement statement = queued->statement;
    const struct statement_text *text = &statement_texts[statement];
    size_t n = queued->params_end - queued->params_first;
    const char *values[CALL_PARAMS_MAX];
    int formats[CALL_PARAMS_MAX];
    for (size_t i = 0; i < n; i++) {
        values[i] = buf_cstr(&pg->bytes) + pg->offsets[queued->params_first + i];
        formats[i] = 1;
    }
    assert(pg->prepared[statement] || n == parameters_of(text->sql));
    if (!pg->pooled && !send_prepare(pg, statement))
        return false;
    postgres_call_await(pg, (struct call_pending){statement, PENDING_CALL});
    pg->statements++;
    if (pg->pooled)
        return send_text(pg, text->sql, n, values, pg->lengths + queued->params_first, formats);
    return PQsendQueryPrepared(pg->conn, text->name, (int)n, values, pg->lengths + queued->params_first,
                               formats, 1) == 1;
}

/* Nothing is sent before all parameters are valid. */
static bool postgres_call_send_all(struct postgres *pg)
{
    bool settled = !pg->pooled || pg->in_transaction;
    for (size_t i = 0; i < pg->queued_len; i++) {
        if (!settled && pg->queued[i].statement != STATEMENT_BEGIN) {
            settled = true;
            if (!send_settings(pg))
                return false;
        }
        if (!send_queued(pg, &pg->queued[i]))
            return false;
    }
    assert(settled); /* nobody sends BEGIN alone */
    return PQpipelineSync(pg->conn) == 1;
}

/* -- results -- */

static Oid type_of_column(char letter)
{
    return letter == 't' ? TYPE_TEXT : letter == 'b' ? TYPE_BYTEA : TYPE_INT8;
}

static thole_status postgres_call_check_shape(struct postgres *pg, const struct statement_text *text,
                                              const PGresult *result, thole_error *reterr)
{
    size_t columns = strlen(text->columns);
    bool ok = PQnfields(result) == (int)columns;
    for (size_t i = 0; ok && i < columns; i++)
        ok = PQftype(result, (int)i) == type_of_column(text->columns[i]) && PQfformat(result, (int)i) == 1;
    if (ok)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_CORRUPT, "%s failed: statement %s answers with columns of another shape",
                      pg->what, text->name);
}

static thole_status guard_failed(struct postgres *pg, const PGresult *result, thole_error *reterr)
{
    const char *const code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (code == NULL || strcmp(code, "22012") != 0) /* division by zero */
        return session_failed(pg, pg->what, result, reterr);
    session_drop(pg);
    return thole_fail(
        reterr, THOLE_UNAVAILABLE,
        "%s failed on Postgres %s: the server was lost, and may have lost its last transactions", pg->what,
        pg->where);
}

static bool call_is_fenced(const struct call_pending *pending, const PGresult *result)
{
    const char *const code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return pending->kind == PENDING_CALL && code != NULL && strcmp(code, "22012") == 0 && /* by zero */
           (pending->statement == STATEMENT_PARTITIONS_MOVE ||
            pending->statement == STATEMENT_PARTITION_RESET);
}

static thole_status call_failure(struct postgres *pg, const struct call_pending *pending,
                                 const PGresult *result, thole_error *reterr)
{
    if (pending->kind == PENDING_GUARD)
        return guard_failed(pg, result, reterr);
    if (call_is_fenced(pending, result))
        return THOLE_FENCED; /* the caller says of what */
    thole_status const status = session_failed(pg, pg->what, result, reterr);
    if (status == THOLE_INVALID)
        error_refusal(result, &pg->refusal);
    return status;
}

/* Takes over the result of one pending message. Only the first failure of a pipeline is reported. */
static thole_status postgres_call_take_result(struct postgres *pg, const struct call_pending *pending,
                                              PGresult *result, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    ExecStatusType kind = PQresultStatus(result);
    if (kind == PGRES_PIPELINE_ABORTED)
        status = THOLE_OK; /* skipped after an earlier failure */
    else if (kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK)
        status = call_failure(pg, pending, result, reterr);
    else if (pending->kind == PENDING_PREPARE)
        pg->prepared[pending->statement] = true;
    else if (pending->kind == PENDING_CALL)
        status = postgres_call_check_shape(pg, &statement_texts[pending->statement], result, reterr);
    if (pending->kind != PENDING_CALL || status != THOLE_OK)
        PQclear(result);
    else
        pg->results[pg->results_len++] = result;
    assert(pg->results_len <= pg->queued_len);
    return status;
}

/* Reads until the end of the pipeline, so that the connection is ready for the next call in any case.
 */
static thole_status read_results(struct postgres *pg, uint64_t deadline_ms, thole_error *reterr)
{
    thole_status first = THOLE_OK;
    for (size_t taken = 0;;) {
        thole_status status = session_wait(pg, deadline_ms, first == THOLE_OK ? reterr : NULL);
        if (status != THOLE_OK)
            return first != THOLE_OK ? first : status;
        PGresult *result = PQgetResult(pg->conn);
        if (result == NULL && PQstatus(pg->conn) == CONNECTION_OK)
            continue; /* between two statements */
        if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            PQclear(result);
            return first;
        }
        if (result == NULL || taken == pg->pending_len) {
            status = session_failed(pg, pg->what, result, first == THOLE_OK ? reterr : NULL);
            PQclear(result);
            session_drop(pg);
            return first != THOLE_OK ? first : status;
        }
        status =
            postgres_call_take_result(pg, &pg->pending[taken++], result, first == THOLE_OK ? reterr : NULL);
        if (first == THOLE_OK)
            first = status;
        if (pg->conn == NULL)
            return first;
    }
}

/* Reports a failure before anything was sent. */
static thole_status report_failed(struct postgres *pg, thole_error *reterr)
{
    thole_status status = pg->failed;
    if (pg->connect_failed.status != THOLE_OK) {
        if (reterr != NULL)
            *reterr = pg->connect_failed;
        return status;
    }
    if (status == THOLE_INVALID)
        return thole_fail(reterr, status, "%s failed: a number does not fit into the tables", pg->what);
    return thole_fail(reterr, status, "%s failed: more than %d bytes at once, or out of memory", pg->what,
                      (int)CALL_BYTES_MAX);
}

thole_status call_run(struct postgres *pg, thole_error *reterr)
{
    uint64_t deadline_ms = clock_monotonic_ms() + pg->timeout_ms;
    assert(pg->results_len == 0 && pg->pending_len == 0); /* a call is run once */
    if (pg->failed == THOLE_OK)
        pg->failed = buf_status(&pg->bytes);
    if (pg->failed != THOLE_OK)
        return report_failed(pg, reterr);
    if (!postgres_call_send_all(pg)) {
        thole_status status = session_failed(pg, pg->what, NULL, reterr);
        assert(pg->conn == NULL); /* a part may have been sent, which the next call must not complete */
        return status;
    }
    return read_results(pg, deadline_ms, reterr);
}

/* -- transactions over several calls -- */

thole_status call_commit(struct postgres *pg, const char *what, thole_error *reterr)
{
    assert(pg->in_transaction);
    call_begin(pg, what);
    call_send(pg, STATEMENT_COMMIT);
    thole_status status = call_run(pg, reterr);
    pg->in_transaction = false;
    THOLE_TRY(status);
    if (strcmp(call_tag(pg, 0), "COMMIT") != 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s failed on Postgres %s: it answered %s", what,
                          pg->where, call_tag(pg, 0));
    return THOLE_OK;
}

void call_rollback(struct postgres *pg, const char *what)
{
    if (pg->in_transaction && pg->conn != NULL) {
        call_begin(pg, what);
        call_send(pg, STATEMENT_ROLLBACK);
        if (call_run(pg, NULL) != THOLE_OK)
            session_drop(pg); /* the server then rolls back */
    }
    pg->in_transaction = false;
}

/* -- results -- */

size_t call_rows(const struct postgres *pg, size_t i)
{
    assert(i < pg->results_len);
    return (size_t)PQntuples(pg->results[i]);
}

thole_slice call_cell_text(const struct postgres *pg, size_t i, size_t row, size_t column)
{
    assert(row < call_rows(pg, i));
    int len = PQgetlength(pg->results[i], (int)row, (int)column);
    return (thole_slice){(const uint8_t *)PQgetvalue(pg->results[i], (int)row, (int)column), (size_t)len};
}

uint64_t call_cell_int8(const struct postgres *pg, size_t i, size_t row, size_t column)
{
    thole_slice cell = call_cell_text(pg, i, row, column);
    uint64_t value = 0;
    assert(cell.len == 0 || cell.len == sizeof value); /* postgres_call_check_shape() has checked the type */
    for (size_t byte = 0; byte < cell.len; byte++)
        value = value << 8 | cell.ptr[byte];
    return value;
}

const char *call_tag(const struct postgres *pg, size_t i)
{
    assert(i < pg->results_len);
    return PQcmdStatus(pg->results[i]);
}
