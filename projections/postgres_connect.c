/* Making a connection. */
#include "clock.h"
#include "memory.h"
#include "postgres_call.h"
#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVER_VERSION_MIN = 140000, SETTINGS_BYTES_MAX = 4096 };

/* Nothing may be printed to stderr by a library. */
static void ignore_notice(void *arg, const char *message)
{
    (void)arg;
    (void)message;
}

static void postgres_connect_name_place(struct postgres *pg, PGconn *conn)
{
    const char *host = PQhost(conn), *port = PQport(conn), *db = PQdb(conn);
    (void)snprintf(pg->where, sizeof pg->where, "%.120s:%.8s database \"%.64s\"", host != NULL ? host : "",
                   port != NULL ? port : "", db != NULL ? db : "");
}

/*
 * One of the hosts of a connection string: "host=a,b port=5432". libpq would try them in turn by itself, but
 * from the outside one cannot make it give up a host that does not answer.
 */
struct place {
    bool chosen; /* false: the connection string names one host at most */
    char host[256], hostaddr[64], port[16];
};

/* The @p i-th of a list with commas; the only one, if it has but one. False when there is none or it is cut.
 */
static bool postgres_connect_pick(const char *list, size_t i, char *ret, size_t cap)
{
    ret[0] = '\0';
    if (list == NULL)
        return true;
    const char *at = list;
    for (const char *comma = strchr(at, ','); i > 0 && comma != NULL; i--, comma = strchr(at, ','))
        at = comma + 1;
    size_t len = strcspn(at, ",");
    if ((i > 0 && at != list) || len >= cap)
        return false;
    memcpy(ret, at, len);
    ret[len] = '\0';
    return true;
}

static const char *find_option(const PQconninfoOption *options, const char *name)
{
    while (options->keyword != NULL && strcmp(options->keyword, name) != 0)
        options++;
    return options->val;
}

/* False when there is no @p i-th place. */
static bool find_place(const char *conninfo, size_t i, struct place *ret)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    if (options == NULL)
        return false;
    const char *host = find_option(options, "host"), *addr = find_option(options, "hostaddr");
    const char *list = addr != NULL ? addr : host;
    ret->chosen = list != NULL && strchr(list, ',') != NULL;
    bool found = !ret->chosen ? i == 0
                              : postgres_connect_pick(host, i, ret->host, sizeof ret->host) &&
                                    postgres_connect_pick(addr, i, ret->hostaddr, sizeof ret->hostaddr) &&
                                    postgres_connect_pick(find_option(options, "port"), i, ret->port,
                                                          sizeof ret->port);
    PQconninfoFree(options);
    return found;
}

/* Options before "dbname" can be overridden by the connection string; those after it cannot. */
static PGconn *postgres_connect_start(const struct postgres *pg, const struct place *place,
                                      const char *attributes)
{
    char user_timeout[24];
    const char *const names[] = {"keepalives_idle",
                                 "keepalives_interval",
                                 "keepalives_count",
                                 "tcp_user_timeout",
                                 "target_session_attrs",
                                 "dbname",
                                 "fallback_application_name",
                                 "client_encoding",
                                 place->chosen ? "host" : NULL,
                                 "hostaddr",
                                 "port",
                                 NULL};
    const char *const values[] = {"10",
                                  "5",
                                  "3",
                                  user_timeout,
                                  attributes,
                                  pg->conninfo,
                                  pg->application,
                                  "UTF8",
                                  place->host,
                                  place->hostaddr,
                                  place->port,
                                  NULL};
    (void)snprintf(user_timeout, sizeof user_timeout, "%llu",
                   (unsigned long long)(pg->statement_timeout_ms + pg->idle_in_transaction_ms) % 1000000000);
    PGconn *conn = PQconnectStartParams(names, values, 1);
    if (conn == NULL) /* libpq's sign of no memory; other failures return a connection */
        memory_give_up(1, sizeof *pg);
    return conn;
}

/* Drives the handshake. False: failed, or time is over and *ret_late says so. */
static bool shake_hands(PGconn *conn, uint64_t deadline_ms, bool *ret_late)
{
    PostgresPollingStatusType wanted = PGRES_POLLING_WRITING;
    *ret_late = false;
    while (PQstatus(conn) != CONNECTION_BAD) {
        uint64_t now = clock_monotonic_ms();
        if (now >= deadline_ms) {
            *ret_late = true;
            return false;
        }
        struct pollfd fd = {.fd = PQsocket(conn),
                            .events = wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        if (poll(&fd, 1, (int)(deadline_ms - now)) <= 0)
            continue; /* interrupted, or late: the loop looks */
        wanted = PQconnectPoll(conn);
        if (wanted == PGRES_POLLING_OK)
            return true;
        if (wanted == PGRES_POLLING_FAILED)
            return false;
    }
    return false;
}

static thole_status postgres_connect_check_server(const struct postgres *pg, PGconn *conn,
                                                  thole_error *reterr)
{
    const char *encoding = PQparameterStatus(conn, "server_encoding");
    if (PQserverVersion(conn) < SERVER_VERSION_MIN)
        return thole_fail(reterr, THOLE_UNSUPPORTED, "Postgres %s is version %d; 14 or newer is needed",
                          pg->where, PQserverVersion(conn) / 10000);
    if (encoding == NULL || strcmp(encoding, "UTF8") != 0)
        return thole_fail(reterr, THOLE_UNSUPPORTED,
                          "Postgres %s has encoding %s; create the database with encoding UTF8", pg->where,
                          encoding != NULL ? encoding : "?");
    return THOLE_OK;
}

/* ---- settings ---- */

struct setting {
    const char *name, *value;
    bool of_session; /* means nothing within a transaction */
};

/*
 * "SELECT set_config(…), …" for the session, or for the transaction that it runs in. All statements use
 * indexes: plans with sequential scans or joins over whole tables suit the small table of the moment, and are
 * wrong a minute later.
 */
static void put_settings(struct postgres *pg, struct buf *sql, bool local)
{
    char path[2 * sizeof pg->schema + 16], statement_ms[24], idle_ms[24];
    const struct setting settings[] = {
        {"search_path", path, false},
        {"statement_timeout", statement_ms, false},
        {"idle_in_transaction_session_timeout", idle_ms, false},
        {"synchronous_commit", pg->synchronous_commit ? "on" : "off", false},
        {"default_transaction_isolation", "read committed", true},
        {"idle_session_timeout", "0", true}, /* a session that rests is not one that was forgotten */
        {"jit", "off", false},
        {"plan_cache_mode", "force_generic_plan", false},
        {"enable_seqscan", "off", false},
        {"enable_bitmapscan", "off", false},
        {"enable_hashjoin", "off", false},
        {"enable_mergejoin", "off", false},
        {"thole.own", "on", false}, /* see migrations/0007 */
    };
    char *schema = session_identifier(pg);
    (void)snprintf(path, sizeof path, "%s, pg_temp", schema); /* without a quote: a checked name */
    PQfreemem(schema);
    (void)snprintf(statement_ms, sizeof statement_ms, "%llu", (unsigned long long)pg->statement_timeout_ms);
    (void)snprintf(idle_ms, sizeof idle_ms, "%llu", (unsigned long long)pg->idle_in_transaction_ms);
    buf_text(sql, "SELECT ");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (!local || !settings[i].of_session)
            buf_printf(sql, "%spg_catalog.set_config('%s', '%s', %s)", i > 0 ? ", " : "", settings[i].name,
                       settings[i].value, local ? "true" : "false");
}

/* Poolers of statements refuse transactions; a session of the server cannot be made what it is not. */
static thole_status check_pooler(struct postgres *pg, thole_error *reterr)
{
    static const char what[] = "looking at a pooler";
    thole_error err = {.status = THOLE_OK};
    PGresult *result = NULL;
    thole_status status = session_sql(pg, what, "BEGIN", pg->connect_timeout_ms, NULL, &err);
    if (status == THOLE_OK)
        status = session_sql(pg, what, "SELECT pg_catalog.current_setting('default_transaction_isolation')",
                             pg->connect_timeout_ms, &result, &err);
    if (status == THOLE_OK)
        status = session_sql(pg, what, "COMMIT", pg->connect_timeout_ms, NULL, &err);
    if (status != THOLE_OK && strstr(err.text, "statement pooling") != NULL)
        (void)thole_fail(&err, status = THOLE_UNSUPPORTED,
                         "the pooler before Postgres %s pools statements; pool_mode = transaction is needed",
                         pg->where);
    else if (status == THOLE_OK &&
             (PQntuples(result) != 1 || strcmp(PQgetvalue(result, 0, 0), "read committed") != 0))
        (void)thole_fail(
            &err, status = THOLE_UNSUPPORTED,
            "transactions of Postgres %s are not \"read committed\", and behind a pooler that cannot "
            "be chosen: ALTER ROLE … SET default_transaction_isolation = 'read committed'",
            pg->where);
    PQclear(result);
    if (status != THOLE_OK && reterr != NULL)
        *reterr = err;
    return status;
}

static thole_status keep_settings(struct postgres *pg, thole_error *reterr)
{
    struct buf sql;
    buf_init(&sql, SETTINGS_BYTES_MAX);
    put_settings(pg, &sql, true);
    thole_status const status = buf_status(&sql);
    if (status == THOLE_OK) {
        free(pg->settings);
        pg->settings = memory_text(buf_cstr(&sql));
    }
    buf_release(&sql);
    return status == THOLE_OK ? THOLE_OK
                              : thole_fail(reterr, status, "out of memory for a connection's settings");
}

static thole_status settle_pooled(struct postgres *pg, thole_error *reterr)
{
    THOLE_TRY(keep_settings(pg, reterr));
    return check_pooler(pg, reterr);
}

/*
 * One round trip. The server's process is not the one of the handshake: a pooler stands between, whose
 * sessions other programs use, too. Then nothing is set.
 */
static thole_status postgres_connect_settle(struct postgres *pg, thole_error *reterr)
{
    struct buf sql;
    PGresult *result = NULL;
    int const pid = PQbackendPID(pg->conn);
    buf_init(&sql, SETTINGS_BYTES_MAX);
    put_settings(pg, &sql, false);
    buf_printf(
        &sql,
        " WHERE pg_catalog.pg_backend_pid() = %d; SELECT 'pooled' WHERE pg_catalog.pg_backend_pid() <> %d",
        pid, pid);
    thole_status status = buf_status(&sql);
    if (status != THOLE_OK)
        (void)thole_fail(reterr, status, "out of memory for a connection's settings");
    else
        status = session_sql(pg, "setting up a connection", buf_cstr(&sql), pg->connect_timeout_ms, &result,
                             reterr);
    buf_release(&sql);
    pg->pooled =
        status == THOLE_OK && PQntuples(result) == 1 && strcmp(PQgetvalue(result, 0, 0), "pooled") == 0;
    PQclear(result);
    return pg->pooled ? settle_pooled(pg, reterr) : status;
}

/* Connects to one place and checks the server. */
static thole_status connect_place(struct postgres *pg, const struct place *place, const char *attributes,
                                  PGconn **ret, thole_error *reterr)
{
    bool late;
    uint64_t deadline_ms = clock_monotonic_ms() + pg->connect_timeout_ms;
    PGconn *conn = postgres_connect_start(pg, place, attributes);
    (void)PQsetErrorVerbosity(conn, PQERRORS_VERBOSE); /* for the SQLSTATE of a refusal */
    (void)PQsetNoticeProcessor(conn, ignore_notice, NULL);
    bool made = shake_hands(conn, deadline_ms, &late);
    postgres_connect_name_place(pg, conn);
    thole_status status = THOLE_OK;
    if (late)
        status = thole_fail(reterr, THOLE_UNAVAILABLE, "no answer from Postgres %s within %llu ms", pg->where,
                            (unsigned long long)pg->connect_timeout_ms);
    else if (!made)
        status = error_from_connect(pg, conn, reterr);
    else
        status = postgres_connect_check_server(pg, conn, reterr);
    if (status == THOLE_OK)
        *ret = conn;
    else
        PQfinish(conn);
    return status;
}

/* One place after the other, until one is as wanted. *ret_tried: how many. */
static thole_status postgres_connect_connect_any(struct postgres *pg, const char *attributes,
                                                 size_t *ret_tried, thole_error *reterr)
{
    struct place place = {0};
    thole_status status = THOLE_UNAVAILABLE;
    for (*ret_tried = 0; status == THOLE_UNAVAILABLE && find_place(pg->conninfo, *ret_tried, &place);
         ++*ret_tried)
        status = connect_place(pg, &place, attributes, &pg->conn, reterr);
    return status;
}

thole_status session_open(struct postgres *pg, thole_error *reterr)
{
    struct place second;
    size_t tried = 0;
    assert(pg->conn == NULL);
    /* With several hosts the one that writes: it never lags. */
    bool const only_one = pg->reads && !find_place(pg->conninfo, 1, &second);
    thole_status status = postgres_connect_connect_any(pg, only_one ? "any" : "read-write", &tried, reterr);
    if (status == THOLE_UNAVAILABLE && pg->reads && !only_one)
        status = postgres_connect_connect_any(pg, "any", &tried, reterr);
    if (tried == 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "the Postgres connection string names a host of over 255 bytes");
    THOLE_TRY(status);
    memset(pg->prepared, 0, sizeof pg->prepared);
    memset(pg->opened, 0, sizeof pg->opened);
    status = postgres_connect_settle(pg, reterr);
    if (status == THOLE_OK && (PQsetnonblocking(pg->conn, 1) != 0 || PQenterPipelineMode(pg->conn) != 1))
        status = session_failed(pg, "setting up a connection", NULL, reterr);
    if (status != THOLE_OK)
        session_drop(pg);
    assert((pg->conn != NULL) == (status == THOLE_OK));
    return status;
}

static thole_status tell_timeout(struct postgres *pg, thole_error *reterr)
{
    char sql[64];
    (void)snprintf(sql, sizeof sql, "SET statement_timeout = %llu",
                   (unsigned long long)pg->statement_timeout_ms);
    return session_sql(pg, "setting a timeout", sql, pg->connect_timeout_ms, NULL, reterr);
}

void postgres_set_timeout(struct postgres *pg, uint64_t timeout_ms)
{
    assert(!pg->in_transaction && timeout_ms > 0);
    if (pg->statement_timeout_ms == timeout_ms && pg->connect_timeout_ms == timeout_ms)
        return;
    pg->statement_timeout_ms = pg->connect_timeout_ms = timeout_ms;
    if (pg->conn != NULL && (pg->pooled ? keep_settings(pg, NULL) : tell_timeout(pg, NULL)) != THOLE_OK)
        session_drop(pg);
}
