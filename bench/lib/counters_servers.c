/* Counters of the two servers. */
#include "buf.h"
#include "counters.h"
#include "jscan.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 16 * 1024 * 1024 };

/* ---- nats-server's monitoring ---- */

static bool get(uint16_t port, const char *path, struct buf *ret)
{
    char request[128];
    struct sockaddr_in const to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int const fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int const n = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", path);
    bool ok = fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 &&
              write(fd, request, (size_t)n) == (ssize_t)n;
    char part[16384];
    ssize_t got = 0;
    while (ok && (got = read(fd, part, sizeof part)) > 0)
        buf_append(ret, part, (size_t)got);
    if (fd >= 0)
        close(fd);
    const char *const head = buf_cstr(ret), *const body = strstr(head, "\r\n\r\n");
    ok = ok && got == 0 && buf_status(ret) == THOLE_OK && strncmp(head, "HTTP/1.0 200", 12) == 0 &&
         body != NULL;
    if (!ok)
        return bench_fail_at("nats-server", "it does not answer %s on its monitoring port", path);
    size_t const skip = (size_t)(body + 4 - head);
    memmove(ret->ptr, ret->ptr + skip, ret->len - skip + 1);
    ret->len -= skip;
    return true;
}

struct wanted {
    const char *path;
    uint64_t *to;
};

static bool get_numbers(uint16_t port, const char *path, const struct wanted *wanted, size_t len)
{
    struct buf answer;
    thole_slice value;
    buf_init(&answer, ANSWER_MAX);
    bool ok = get(port, path, &answer);
    for (size_t i = 0; ok && i < len; i++)
        if (!json_path(buf_bytes(&answer), wanted[i].path, &value) || !json_uint(value, wanted[i].to)) {
            ok = bench_fail_at("nats-server", "its %s has no number %s", path, wanted[i].path);
        }
    buf_release(&answer);
    return ok;
}

bool nats_version(const struct stand *stand, char *ret, size_t cap)
{
    struct buf answer;
    thole_slice value;
    buf_init(&answer, ANSWER_MAX);
    bool const ok = get(stand->monitor_port, "/varz", &answer) &&
                    json_find(buf_bytes(&answer), "version", &value) && value.len >= 2;
    if (ok) /* without its quotes */
        (void)snprintf(ret, cap, "%.*s", (int)(value.len - 2), (const char *)value.ptr + 1);
    buf_release(&answer);
    return ok;
}

static enum bench_role role_of_connection(thole_slice connection)
{
    thole_slice name;
    if (!json_find(connection, "name", &name))
        return ROLES;
    if (json_text_is(name, "thole-client"))
        return ROLE_CLIENT;
    if (json_text_is(name, "thole-engine") || json_text_is(name, "thole-engine-shard"))
        return ROLE_ENGINE;
    return name.len > 8 && memcmp(name.ptr, "\"worker-", 8) == 0 ? ROLE_WORKER : ROLES;
}

static bool get_connections(uint16_t port, struct sample *ret)
{
    struct buf answer;
    thole_slice list, one, value;
    size_t at = 0;
    uint64_t n;
    buf_init(&answer, ANSWER_MAX);
    bool const ok =
        get(port, "/connz?limit=1024", &answer) && json_find(buf_bytes(&answer), "connections", &list);
    while (ok && json_item(list, &at, &one)) {
        enum bench_role const role = role_of_connection(one);
        if (role == ROLES)
            continue;
        if (json_find(one, "in_msgs", &value) && json_uint(value, &n))
            ret->roles[role].nats_out += n;
        if (json_find(one, "out_msgs", &value) && json_uint(value, &n))
            ret->roles[role].nats_in += n;
    }
    buf_release(&answer);
    return ok;
}

bool nats_read(const struct stand *stand, struct sample *ret)
{
    struct nats_counts *const nats = &ret->nats;
    struct wanted const varz[] = {{"in_msgs", &nats->in_messages},
                                  {"in_bytes", &nats->in_bytes},
                                  {"out_msgs", &nats->out_messages},
                                  {"out_bytes", &nats->out_bytes}};
    struct wanted const subsz[] = {{"num_inserts", &nats->subscribed}, {"num_removes", &nats->unsubscribed}};
    struct wanted const jsz[] = {{"api.total", &nats->api_requests}};
    return get_numbers(stand->monitor_port, "/varz", varz, 4) &&
           get_numbers(stand->monitor_port, "/subsz", subsz, 2) &&
           get_numbers(stand->monitor_port, "/jsz", jsz, 1) && get_connections(stand->monitor_port, ret);
}

/* ---- Postgres ---- */

static uint64_t cell(const PGresult *result, int row, int column)
{
    return strtoull(PQgetvalue(result, row, column), NULL, 10);
}

bool postgres_read(struct stand *stand, struct sample *ret)
{
    PGresult *const result = stand_ask(stand, "SELECT pg_snapshot_xmax(pg_current_snapshot()),"
                                              " pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')");
    if (result == NULL)
        return false;
    ret->postgres.writing = cell(result, 0, 0);
    ret->postgres.wal_bytes = cell(result, 0, 1);
    PQclear(result);
    return true;
}

bool postgres_read_tables(struct stand *stand, struct sample *ret)
{
    struct postgres_counts *const counts = &ret->postgres;
    PGresult *result = stand_ask(stand, "SELECT pg_stat_clear_snapshot(), xact_commit FROM pg_stat_database"
                                        " WHERE datname = current_database()");
    if (result == NULL)
        return false;
    counts->committed = cell(result, 0, 1);
    PQclear(result);
    result = stand_ask(stand, "SELECT relname, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del,"
                              " coalesce(seq_scan, 0) + coalesce(idx_scan, 0) FROM pg_stat_user_tables"
                              " ORDER BY schemaname, relname");
    if (result == NULL)
        return false;
    counts->tables_len = 0;
    for (int row = 0; row < PQntuples(result) && counts->tables_len < TABLES_MAX; row++) {
        struct table_counts *const table = &counts->tables[counts->tables_len++];
        (void)snprintf(table->name, sizeof table->name, "%s", PQgetvalue(result, row, 0));
        table->inserted = cell(result, row, 1);
        table->updated = cell(result, row, 2);
        table->updated_hot = cell(result, row, 3);
        table->deleted = cell(result, row, 4);
        table->scanned = cell(result, row, 5);
    }
    PQclear(result);
    return true;
}

/* ROLES stands for the ledger's own connection. */
bool postgres_backends(struct stand *stand, enum bench_role *roles, pid_t *pids, size_t cap, size_t *ret_len)
{
    PGresult *const result = stand_ask(stand, "SELECT pid, application_name, pid = pg_backend_pid()"
                                              " FROM pg_stat_activity WHERE backend_type = 'client backend'");
    *ret_len = 0;
    if (result == NULL)
        return false;
    for (int row = 0; row < PQntuples(result) && *ret_len < cap; row++) {
        const char *const name = PQgetvalue(result, row, 1);
        pids[*ret_len] = (pid_t)cell(result, row, 0);
        roles[(*ret_len)++] = PQgetvalue(result, row, 2)[0] == 't'     ? ROLES
                              : strncmp(name, "thole-engine", 12) == 0 ? ROLE_PG_ENGINE
                              : strncmp(name, "thole-worker", 12) == 0 || strcmp(name, "thole-gateway") == 0
                                  ? ROLE_PG_WORKER
                                  : ROLE_PG_REST;
    }
    PQclear(result);
    return true;
}

bool statements_begin(struct stand *stand)
{
    static const char *const steps[] = {"SET client_min_messages = warning",
                                        "CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public",
                                        "ALTER SYSTEM SET pg_stat_statements.track = 'top'",
                                        "SELECT pg_reload_conf()",
                                        "SELECT public.pg_stat_statements_reset()"};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        PGresult *const result = stand_ask(stand, steps[i]);
        if (result == NULL)
            return false;
        PQclear(result);
    }
    return true;
}

bool statements_read(struct stand *stand, struct statement_counts *ret, size_t *ret_len)
{
    PGresult *const result = stand_ask(
        stand,
        "SELECT regexp_replace(query, '\\s+', ' ', 'g'), calls, rows, total_exec_time * 1000"
        " FROM public.pg_stat_statements WHERE query NOT LIKE '%pg_stat%' AND query NOT LIKE '%pg_snap%'"
        " ORDER BY total_exec_time DESC");
    *ret_len = 0;
    if (result == NULL)
        return false;
    for (int row = 0; row < PQntuples(result) && *ret_len < STATEMENTS_MAX; row++) {
        struct statement_counts *const one = &ret[(*ret_len)++];
        (void)snprintf(one->text, sizeof one->text, "%s", PQgetvalue(result, row, 0));
        one->calls = cell(result, row, 1);
        one->rows = cell(result, row, 2);
        one->execution_us = strtod(PQgetvalue(result, row, 3), NULL);
    }
    PQclear(result);
    return true;
}
