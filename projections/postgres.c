/* Opening, closing and listening: see postgres.h. */
#include "memory.h"
#include "message.h"
#include "postgres_call.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECT_TIMEOUT_MS = 5000, /* when the options say 0 */
    STATEMENT_TIMEOUT_MS = 30000,
    IDLE_IN_TRANSACTION_MS = 10000,
    NAMESPACE_BYTES_MAX = 50, /* Postgres cuts names at 63 bytes */
};

/* In a URI the last '@' ends user and password for a reader, and the first one, or a '/' before it, for
 * libpq: what it takes for the host would be a part of the password, and is shown in its messages. */
static bool is_ambiguous(const char *conninfo)
{
    const char *const scheme = strstr(conninfo, "://");
    const char *const user_end = strrchr(conninfo, '@');
    if (scheme == NULL || strspn(conninfo, "abcdefghijklmnopqrstuvwxyz") != (size_t)(scheme - conninfo) ||
        user_end == NULL || user_end < scheme)
        return false; /* key=value pairs, or no user */
    return scheme + 3 + strcspn(scheme + 3, "@/?") != user_end;
}

/* libpq's message quotes a malformed string with its password, so it is not shown. */
static thole_status check_conninfo(const char *conninfo, thole_error *reterr)
{
    char *message = NULL;
    PQconninfoOption *parsed = PQconninfoParse(conninfo, &message);
    bool const ok = parsed != NULL && !is_ambiguous(conninfo);
    PQconninfoFree(parsed);
    if (message != NULL)
        PQfreemem(message);
    if (!ok)
        return thole_fail(reterr, THOLE_INVALID,
                          "the Postgres connection string is malformed (it is not shown, as it may hold a "
                          "password); expected "
                          "postgres://user:password@host:port/database, with @ / ? in user, password and "
                          "options written as "
                          "%%40 %%2F %%3F, or key=value pairs");
    return THOLE_OK;
}

bool postgres_has_secret(const char *conninfo)
{
    PQconninfoOption *const parsed = PQconninfoParse(conninfo, NULL);
    bool found = false;
    for (const PQconninfoOption *at = parsed; at != NULL && at->keyword != NULL; at++)
        found = found || (at->val != NULL && at->val[0] != '\0' && at->dispchar[0] == '*');
    PQconninfoFree(parsed);
    return found;
}

bool postgres_show(const char *conninfo, struct buf *to)
{
    PQconninfoOption *const parsed = PQconninfoParse(conninfo, NULL);
    bool first = true, hides = parsed == NULL;
    if (parsed == NULL)
        buf_text(to, "…");
    for (const PQconninfoOption *at = parsed; at != NULL && at->keyword != NULL; at++) {
        if (at->val == NULL || at->val[0] == '\0')
            continue;
        bool const secret = at->dispchar[0] == '*';
        hides = hides || secret;
        buf_printf(to, "%s%s='", first ? "" : " ", at->keyword);
        for (const char *c = secret ? "…" : at->val; *c != '\0'; c++)
            buf_printf(to, "%s%c", *c == '\'' || *c == '\\' ? "\\" : "", *c);
        buf_text(to, "'");
        first = false;
    }
    PQconninfoFree(parsed);
    return hides;
}

static thole_status postgres_check_namespace(const char *ns, thole_error *reterr)
{
    thole_slice name = thole_slice_from(ns);
    THOLE_TRY(name_check(name, "namespace", reterr));
    if (name.len > NAMESPACE_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID,
                          "namespace \"%s\" has %zu bytes; at most %d fit into the name of a Postgres schema",
                          ns, name.len, (int)NAMESPACE_BYTES_MAX);
    return THOLE_OK;
}

thole_status postgres_open(const struct postgres_options *options, struct postgres **ret, thole_error *reterr)
{
    const char *conninfo = options->conninfo != NULL ? options->conninfo : "";
    THOLE_TRY(postgres_check_namespace(options->ns, reterr));
    THOLE_TRY(check_conninfo(conninfo, reterr));
    struct postgres *pg = memory_new(sizeof *pg);
    buf_init(&pg->bytes, CALL_BYTES_MAX);
    pg->conninfo = memory_text(conninfo);
    pg->application = memory_text(options->application != NULL ? options->application : "thole");
    pg->connect_timeout_ms =
        options->connect_timeout_ms > 0 ? options->connect_timeout_ms : CONNECT_TIMEOUT_MS;
    pg->statement_timeout_ms =
        options->statement_timeout_ms > 0 ? options->statement_timeout_ms : STATEMENT_TIMEOUT_MS;
    pg->idle_in_transaction_ms =
        options->idle_in_transaction_ms > 0 ? options->idle_in_transaction_ms : IDLE_IN_TRANSACTION_MS;
    pg->synchronous_commit = options->synchronous_commit;
    pg->reads = options->reads;
    (void)snprintf(pg->schema, sizeof pg->schema, "thole_%s%s", options->ns,
                   options->next ? SCHEMA_NEXT_SUFFIX : "");
    (void)snprintf(pg->roles, sizeof pg->roles, "thole_%s", options->ns);
    thole_status const status = session_open(pg, reterr);
    if (status != THOLE_OK) {
        postgres_close(pg);
        return status;
    }
    *ret = pg;
    return THOLE_OK;
}

void postgres_close(struct postgres *pg)
{
    if (pg == NULL)
        return;
    for (size_t i = 0; i < pg->results_len; i++)
        PQclear(pg->results[i]);
    session_drop(pg);
    buf_release(&pg->bytes);
    free(pg->order);
    free(pg->set_aside);
    free(pg->settings);
    free(pg->conninfo);
    free(pg->application);
    free(pg);
}

void postgres_set_wait(struct postgres *pg, postgres_wait_fn *wait, void *arg)
{
    pg->wait = wait;
    pg->wait_arg = arg;
}

int postgres_socket(const struct postgres *pg)
{
    return pg->conn != NULL ? PQsocket(pg->conn) : -1;
}

thole_status postgres_check_idle(struct postgres *pg, thole_error *reterr)
{
    if (pg->conn == NULL)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no connection to Postgres %s", pg->where);
    if (PQconsumeInput(pg->conn) != 1 || PQstatus(pg->conn) != CONNECTION_OK)
        return session_failed(pg, "waiting", NULL, reterr);
    (void)PQisBusy(pg->conn); /* parses received data; notices are dropped */
    if (PQstatus(pg->conn) != CONNECTION_OK)
        return session_failed(pg, "waiting", NULL, reterr);
    return THOLE_OK;
}

thole_status postgres_listen(struct postgres *pg, thole_error *reterr)
{
    char sql[2 * sizeof pg->schema + 16];
    call_begin(pg, "listening for removals");
    if (pg->failed != THOLE_OK)
        return call_run(pg, reterr);
    if (pg->pooled) /* notifications come to a session */
        return THOLE_OK;
    char *schema = session_identifier(pg);
    (void)snprintf(sql, sizeof sql, "LISTEN %s", schema);
    PQfreemem(schema);
    return session_sql(pg, "listening for removals", sql, pg->statement_timeout_ms, NULL, reterr);
}

/* The number of a partition, or the name of a table. */
static uint32_t postgres_partition_of(const char *payload)
{
    uint32_t p = 0;
    const char *at = payload;
    for (; *at >= '0' && *at <= '9' && p < PARTITIONS_MAX; at++)
        p = p * 10 + (uint32_t)(*at - '0');
    return at == payload || *at != '\0' || p >= PARTITIONS_MAX ? UINT32_MAX : p;
}

bool postgres_next_removal(struct postgres *pg, uint32_t *ret_partition)
{
    bool removed = false;
    while (pg->conn != NULL && !removed) {
        PGnotify *notify = PQnotifies(pg->conn);
        if (notify == NULL)
            break;
        removed = strcmp(notify->relname, pg->schema) == 0;
        *ret_partition = postgres_partition_of(notify->extra);
        PQfreemem(notify);
    }
    return removed;
}

uint64_t postgres_statements(const struct postgres *pg)
{
    return pg->statements;
}

bool postgres_is_pooled(const struct postgres *pg)
{
    return pg->pooled;
}

int postgres_server_version(const struct postgres *pg)
{
    return pg->conn == NULL ? 0 : PQserverVersion(pg->conn);
}

static thole_status postgres_read_number(struct postgres *pg, const char *what, const char *noun,
                                         enum statement statement, uint64_t *ret, thole_error *reterr)
{
    call_begin(pg, what);
    call_send(pg, statement);
    THOLE_TRY(call_run(pg, reterr));
    if (call_rows(pg, 0) != 1)
        return thole_fail(reterr, THOLE_CORRUPT, "Postgres %s told no %s", pg->where, noun);
    *ret = call_cell_int8(pg, 0, 0, 0);
    return THOLE_OK;
}

thole_status postgres_database_bytes(struct postgres *pg, uint64_t *ret, thole_error *reterr)
{
    return postgres_read_number(pg, "reading the size of the database", "size", STATEMENT_DATABASE_BYTES, ret,
                                reterr);
}

thole_status postgres_now_ms(struct postgres *pg, uint64_t *ret_ms, thole_error *reterr)
{
    return postgres_read_number(pg, "reading the clock", "time", STATEMENT_NOW, ret_ms, reterr);
}
