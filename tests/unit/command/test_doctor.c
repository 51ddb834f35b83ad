/* What the doctor makes of what servers say: each finding, and the exit code. Servers are played. */
#include "audit_stream.h"
#include "captured.h"
#include "clock.h"
#include "cluster.h"
#include "doctor_checks.h"
#include "migrations.h"
#include "nats_connection.h"
#include "overview.h"
#include "postgres.h"
#include "roll_call.h"
#include "thole_cunit.h"
#include "topology.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOW_MS = 1000000, TRIP_MS = 10, TTL_MS = 9000, PARTITIONS_OF_ALL = 12 };

/* An answer that is not as usual. */
enum failing {
    NOTHING,
    OPEN,
    VERSION,
    JETSTREAM,
    NAMESPACE,
    TOPOLOGY,
    SERVER,
    ACCOUNT,
    CLUSTER,
    ROLL,
    AUDIT,
    PG_OPEN,
    APPLIED,
    RIGHTS,
    PG_NOW
};

static struct play {
    enum failing fails;
    thole_status with;
    uint64_t nats_ms, postgres_ms; /* their clocks; 0: as this one */
    uint64_t replicas, offline, servers, sync_ms;
    bool clustered, sync_always, no_engine, pooled;
    struct overview_room account, server;
    uint64_t heartbeat_ms;
    uint32_t unowned;
    uint64_t checkpoints, waits_ms; /* of the histories; how long a record has waited for one */
    size_t workers, behind;         /* migrations that are not applied; SIZE_MAX: all */
    bool no_roles;                  /* of deploy/postgres */
    const char *lacking;            /* what they lack; NULL: nothing */
    /* the world */
    uint64_t now_ms;
    unsigned open;
} play;

static struct connection *const some_connection = (void *)&play;
static struct postgres *const some_postgres = (void *)&play;

static thole_status may_fail(enum failing what, thole_error *reterr)
{
    if (play.fails != what)
        return THOLE_OK;
    return thole_fail(reterr, play.with, "it says no");
}

/* Each look at it is a part of a round trip later. */
uint64_t __wrap_clock_wall_ms(void)
{
    return play.now_ms += TRIP_MS;
}

thole_status __wrap_nats_connection_open(const struct cli_options *options, struct connection **ret,
                                         thole_error *reterr)
{
    (void)options;
    THOLE_TRY(may_fail(OPEN, reterr));
    play.open++;
    *ret = some_connection;
    return THOLE_OK;
}

void __wrap_connection_close(struct connection *connection)
{
    play.open -= connection == some_connection;
}

thole_slice __wrap_connection_server_version(const struct connection *connection)
{
    (void)connection;
    return THOLE_STR("2.10.27");
}

thole_status __wrap_topology_check_version(struct connection *connection, thole_error *reterr)
{
    (void)connection;
    return may_fail(VERSION, reterr);
}

thole_status __wrap_topology_check_jetstream(struct connection *connection, thole_error *reterr)
{
    (void)connection;
    return may_fail(JETSTREAM, reterr);
}

thole_status __wrap_overview_namespace(struct connection *connection, const char *ns,
                                       struct overview_namespace *ret, thole_error *reterr)
{
    (void)connection, (void)ns;
    THOLE_TRY(may_fail(NAMESPACE, reterr));
    *ret = (struct overview_namespace){.format = 2,
                                       .replicas = play.replicas == 0 ? 1 : play.replicas,
                                       .offline = play.offline,
                                       .clustered = play.clustered,
                                       .now_ms = play.nats_ms == 0 ? play.now_ms : play.nats_ms};
    return THOLE_OK;
}

thole_status __wrap_topology_read(struct connection *connection, const char *ns, struct topology *ret,
                                  thole_error *reterr)
{
    (void)connection, (void)ns;
    THOLE_TRY(may_fail(TOPOLOGY, reterr));
    *ret = (struct topology){.partitions = PARTITIONS_OF_ALL, .nodes_ttl_ms = TTL_MS, .payload_max = 1024};
    return THOLE_OK;
}

thole_status __wrap_overview_server(struct connection *connection, struct overview_server *ret,
                                    thole_error *reterr)
{
    (void)connection;
    *ret = (struct overview_server){.sync_always = play.sync_always,
                                    .sync_ms = play.sync_ms,
                                    .servers = play.servers,
                                    .room = play.server};
    return may_fail(SERVER, reterr);
}

thole_status __wrap_overview_account(struct connection *connection, struct overview_room *ret,
                                     thole_error *reterr)
{
    (void)connection;
    *ret = play.account;
    return may_fail(ACCOUNT, reterr);
}

thole_status __wrap_cluster_read(struct cluster *ret, struct connection *connection, const char *ns,
                                 uint32_t partitions, thole_error *reterr)
{
    static struct cluster_engine engine;
    static struct cluster_partition owners[PARTITIONS_OF_ALL];
    (void)connection, (void)ns;
    *ret = (struct cluster){.engines = NULL};
    THOLE_TRY(may_fail(CLUSTER, reterr));
    engine = (struct cluster_engine){.heartbeat_ms = play.heartbeat_ms};
    for (uint32_t p = 0; p < partitions; p++)
        owners[p] = (struct cluster_partition){.owned = p >= play.unowned};
    ret->engines = play.no_engine ? NULL : &engine;
    ret->engines_len = play.no_engine ? 0 : 1;
    ret->partitions = owners;
    ret->partitions_len = partitions;
    return THOLE_OK;
}

void __wrap_cluster_release(struct cluster *cluster)
{
    *cluster = (struct cluster){.engines = NULL};
}

thole_status __wrap_roll_call(struct connection *connection, const char *ns, struct arena *arena,
                              struct roll_answer **ret, size_t *ret_len, thole_error *reterr)
{
    (void)connection, (void)ns, (void)arena, (void)ret;
    *ret_len = play.workers;
    return may_fail(ROLL, reterr);
}

thole_status __wrap_audit_stream_waiting(struct connection *connection, const char *ns, uint32_t partitions,
                                         struct audit_waiting *ret, thole_error *reterr)
{
    (void)connection, (void)ns, (void)partitions;
    ret->checkpoints = play.checkpoints;
    ret->p = 3;
    ret->stored_ms = play.waits_ms == 0 ? 0 : NOW_MS - play.waits_ms;
    return may_fail(AUDIT, reterr);
}

thole_status __wrap_postgres_open(const struct postgres_options *options, struct postgres **ret,
                                  thole_error *reterr)
{
    (void)options;
    THOLE_TRY(may_fail(PG_OPEN, reterr));
    play.open++;
    *ret = some_postgres;
    return THOLE_OK;
}

void __wrap_postgres_close(struct postgres *pg)
{
    play.open -= pg == some_postgres;
}

int __wrap_postgres_server_version(const struct postgres *pg)
{
    (void)pg;
    return 150014;
}

bool __wrap_postgres_is_pooled(const struct postgres *pg)
{
    (void)pg;
    return play.pooled;
}

thole_status __wrap_postgres_applied(struct postgres *pg, size_t *ret, thole_error *reterr)
{
    (void)pg;
    *ret = play.behind > migrations_len ? 0 : migrations_len - play.behind;
    return may_fail(APPLIED, reterr);
}

thole_status __wrap_postgres_rights(struct postgres *pg, size_t *ret_roles, struct buf *lacking,
                                    thole_error *reterr)
{
    (void)pg;
    *ret_roles = play.no_roles ? 0 : 3;
    buf_text(lacking, play.lacking == NULL ? "" : play.lacking);
    return may_fail(RIGHTS, reterr);
}

thole_status __wrap_postgres_now_ms(struct postgres *pg, uint64_t *ret_ms, thole_error *reterr)
{
    (void)pg;
    *ret_ms = play.postgres_ms == 0 ? play.now_ms : play.postgres_ms;
    return may_fail(PG_NOW, reterr);
}

/* ---- one look ---- */

struct look {
    const char *postgres;
    int code;
};

static void look(void *arg)
{
    struct look *const look = arg;
    struct cli const cli = {.options = {.ns = "shop", .postgres = look->postgres}};
    struct doctor_report report;
    report_begin(&report, &cli);
    doctor_nats(&report);
    doctor_postgres(&report);
    look->code = report_end(&report);
}

static char *looked(const struct play *as, const char *postgres, int *ret_code)
{
    struct look arg = {.postgres = postgres};
    play = *as;
    play.now_ms = NOW_MS;
    if (play.sync_ms == 0)
        play.sync_ms = 120000;
    char *const said = captured(1, look, &arg);
    CU_ASSERT_EQUAL(play.open, 0);
    *ret_code = arg.code;
    return said;
}

/* The machine's clock is at NOW_MS + 10 when NATS is asked, + 20 when it has answered; at + 30 and + 40
 * when Postgres is and has. */
static const struct {
    struct play as;
    const char *line; /* with the check's name behind the finding */
    const char *todo; /* in the line below; NULL: there is none */
    int code;
} findings[] = {
    {{.workers = 2}, "OK    nats_clock       the clock of the NATS server is 0 ms away from", NULL, 0},
    {{.workers = 2}, "OK    postgres_clock   the clock of Postgres is 0 ms away from", NULL, 0},
    {{.workers = 2}, "OK    workers          2 answer", NULL, 0},
    {{.workers = 0}, "WARN  workers          no worker answers", "start one", 0},
    {{.workers = 1}, "SKIP  audit            nobody signs checkpoints", NULL, 0},
    {{.workers = 1, .checkpoints = 8, .waits_ms = 5000},
     "OK    audit            checkpoints of 8 partitions",
     NULL,
     0},
    {{.workers = 1, .checkpoints = 8, .waits_ms = 700000},
     "WARN  audit            a record of partition 3 has waited 700 s",
     "--audit-key",
     0},
    {{.workers = 1, .fails = AUDIT, .with = THOLE_DENIED},
     "SKIP  audit            this user cannot see",
     NULL,
     0},
    {{.workers = 1, .fails = AUDIT, .with = THOLE_UNAVAILABLE},
     "FAIL  audit            it says no",
     NULL,
     12},
    {{.nats_ms = NOW_MS + 1020},
     "OK    nats_clock       the clock of the NATS server is 1000 ms ahead of",
     NULL,
     0},
    {{.nats_ms = NOW_MS + 1021},
     "WARN  nats_clock       the clock of the NATS server is 1001 ms ahead of",
     "chrony",
     0},
    {{.nats_ms = NOW_MS - 990},
     "OK    nats_clock       the clock of the NATS server is 1000 ms behind",
     NULL,
     0},
    {{.nats_ms = NOW_MS - 991},
     "WARN  nats_clock       the clock of the NATS server is 1001 ms behind",
     "chrony",
     0},
    {{.nats_ms = NOW_MS + 30020},
     "WARN  nats_clock       the clock of the NATS server is 30000 ms ahead of",
     "chrony",
     0},
    {{.nats_ms = NOW_MS + 30021},
     "FAIL  nats_clock       the clock of the NATS server is 30001 ms ahead of",
     "chrony",
     12},
    {{.nats_ms = NOW_MS - 29991},
     "FAIL  nats_clock       the clock of the NATS server is 30001 ms behind",
     "chrony",
     12},
    {{.postgres_ms = NOW_MS + 1040},
     "OK    postgres_clock   the clock of Postgres is 1000 ms ahead of",
     NULL,
     0},
    {{.postgres_ms = NOW_MS + 1041},
     "WARN  postgres_clock   the clock of Postgres is 1001 ms ahead of",
     "chrony",
     0},
    {{.postgres_ms = NOW_MS - 971},
     "WARN  postgres_clock   the clock of Postgres is 1001 ms behind",
     "chrony",
     0},
    {{.postgres_ms = NOW_MS + 30041},
     "FAIL  postgres_clock   the clock of Postgres is 30001 ms ahead of",
     "chrony",
     12},
    {{.postgres_ms = NOW_MS - 29971},
     "FAIL  postgres_clock   the clock of Postgres is 30001 ms behind",
     "chrony",
     12},
    {{.fails = OPEN, .with = THOLE_UNAVAILABLE},
     "FAIL  nats             it says no",
     "is nats-server running",
     12},
    {{.fails = OPEN, .with = THOLE_DENIED}, "FAIL  nats             it says no", "check --nats-creds", 12},
    {{.fails = VERSION, .with = THOLE_UNSUPPORTED},
     "FAIL  nats             it says no",
     "upgrade nats-server",
     12},
    {{.fails = JETSTREAM, .with = THOLE_UNSUPPORTED}, "FAIL  jetstream        it says no", NULL, 12},
    {{.fails = JETSTREAM, .with = THOLE_DENIED},
     "FAIL  jetstream        it says no",
     "--nats-permissions client",
     12},
    {{.fails = NAMESPACE, .with = THOLE_NOT_FOUND},
     "FAIL  namespace        namespace shop has not been set up",
     "start an engine",
     12},
    {{.fails = NAMESPACE, .with = THOLE_DENIED},
     "FAIL  namespace        it says no",
     "--nats-permissions client",
     12},
    {{.fails = TOPOLOGY, .with = THOLE_NOT_FOUND},
     "FAIL  namespace        namespace shop has not been set up",
     "start an engine",
     12},
    {{.fails = TOPOLOGY, .with = THOLE_UNSUPPORTED}, "FAIL  namespace        it says no", NULL, 12},
    {{.replicas = 1}, "OK    replicas         the server is alone, and the namespace has 1 replica", NULL, 0},
    {{.clustered = true, .servers = 3},
     "WARN  replicas         the namespace has 1 replica in a cluster of 3",
     "--replicas 3",
     0},
    {{.clustered = true, .replicas = 3}, "OK    replicas         3 replicas in a cluster, all", NULL, 0},
    {{.clustered = true, .replicas = 3, .offline = 1},
     "WARN  replicas         1 of 3 replicas are away",
     "start the servers",
     0},
    {{.fails = SERVER, .with = THOLE_UNAVAILABLE},
     "SKIP  sync_interval    this user cannot see it",
     "sync_interval: always",
     0},
    {{.fails = SERVER, .with = THOLE_UNAVAILABLE, .clustered = true, .replicas = 3},
     "SKIP  sync_interval    this user cannot see it",
     NULL,
     0},
    {{.sync_always = true}, "OK    sync_interval    always", NULL, 0},
    {{.sync_ms = 5000}, "WARN  sync_interval    5000 ms: a machine", "sync_interval: always", 0},
    {{.clustered = true, .replicas = 3}, "OK    sync_interval    120000 ms, with 3 replicas", NULL, 0},
    {{.heartbeat_ms = TTL_MS / 3 * 2},
     "OK    engines          1 with a heartbeat, the oldest one 6000 ms old",
     NULL,
     0},
    {{.heartbeat_ms = TTL_MS / 3 * 2 + 1},
     "WARN  engines          1 with a heartbeat, the oldest one 6001 ms old",
     "thole nodes",
     0},
    {{.server = {.file_bytes = 5}},
     "OK    storage          JetStream uses 5 bytes of files, and has no",
     NULL,
     0},
    {{.server = {.file_bytes = 5}, .fails = SERVER, .with = THOLE_UNAVAILABLE, .account = {.file_bytes = 7}},
     "SKIP  storage          the account uses 7 bytes of files",
     "nats server report jetstream",
     0},
    {{.server = {.file_bytes = 79, .file_bytes_max = 100},
      .account = {.memory_bytes = 7, .memory_bytes_max = 10}},
     "OK    storage          JetStream uses 79 of the 100 bytes of files that the server may have "
     "(max_file): 79 %",
     NULL,
     0},
    {{.server = {.memory_bytes = 79, .memory_bytes_max = 100},
      .account = {.file_bytes = 8, .file_bytes_max = 10}},
     "WARN  storage          JetStream uses 8 of the 10 bytes of files that the account may have: 80 %",
     "thole prune",
     0},
    {{.server = {.memory_bytes = 98, .memory_bytes_max = 100}},
     "FAIL  storage          JetStream uses 98 of the 100 bytes of memory that the server may have "
     "(max_mem): 98 %",
     "raise the limit",
     12},
    {{.fails = ACCOUNT, .with = THOLE_DENIED},
     "FAIL  storage          it says no",
     "--nats-permissions client",
     12},
    {{.no_engine = true}, "FAIL  engines          no engine has a heartbeat", "start one", 12},
    {{.fails = CLUSTER, .with = THOLE_DENIED},
     "FAIL  engines          it says no",
     "--nats-permissions auditor",
     12},
    {{.fails = CLUSTER, .with = THOLE_UNAVAILABLE}, "FAIL  engines          it says no", NULL, 12},
    {{.unowned = 10},
     "FAIL  partitions       10 of 12 have no owner: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9\n",
     "live engine",
     12},
    {{.unowned = 11},
     "FAIL  partitions       11 of 12 have no owner: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \xe2\x80\xa6\n",
     "live engine",
     12},
    {{.fails = ROLL, .with = THOLE_DENIED},
     "FAIL  workers          it says no",
     "--nats-permissions auditor",
     12},
    {{.fails = PG_OPEN, .with = THOLE_UNAVAILABLE},
     "FAIL  postgres         it says no",
     "is it running there",
     12},
    {{.pooled = true},
     "OK    postgres         Postgres 15.14 answers; the encoding is UTF8; a pooler stands between\n",
     NULL,
     0},
    {{.pooled = false}, "OK    postgres         Postgres 15.14 answers; the encoding is UTF8\n", NULL, 0},
    {{.behind = SIZE_MAX}, "FAIL  tables           namespace shop has no tables", "thole migrate", 12},
    {{.behind = 1}, "FAIL  tables           namespace shop is at migration ", "thole migrate", 12},
    {{.behind = 0}, "OK    tables           namespace shop is at migration ", NULL, 0},
    {{.fails = APPLIED, .with = THOLE_UNSUPPORTED},
     "FAIL  tables           it says no",
     "as new as the engines",
     12},
    {{.fails = APPLIED, .with = THOLE_DENIED},
     "FAIL  tables           it says no",
     "thole migrate --grants",
     12},
    {{.lacking = NULL}, "OK    rights           the roles of the namespace have theirs", NULL, 0},
    {{.lacking = "thole_shop_worker on worker_queue"},
     "FAIL  rights           rights are missing: thole_shop_worker on worker_queue",
     "thole migrate --grants",
     12},
    {{.no_roles = true},
     "SKIP  rights           there are no roles as deploy/postgres/roles.sql makes them",
     NULL,
     0},
    {{.fails = APPLIED, .with = THOLE_DENIED}, "OK    rights           ", NULL, 12},
    {{.fails = RIGHTS, .with = THOLE_UNAVAILABLE}, "FAIL  rights           it says no", NULL, 12},
    {{.fails = PG_NOW, .with = THOLE_UNAVAILABLE}, "FAIL  postgres_clock   it says no", NULL, 12},
};

static void test_findings(void)
{
    for (size_t i = 0; i < ARRAY_LEN(findings); i++) {
        int code;
        char *const said = looked(&findings[i].as, "somewhere", &code);
        const char *const line = strstr(said, findings[i].line);
        CHECK_STR(findings[i].line, line != NULL ? "said" : said, "said");
        const char *const next = line == NULL ? "" : strstr(line + strlen(findings[i].line) - 1, "\n") + 1;
        bool const tries = strncmp(next, "                       Try: ", 28) == 0;
        CU_ASSERT_EQUAL(tries, findings[i].todo != NULL);
        if (tries && findings[i].todo != NULL) {
            char todo[512];
            (void)snprintf(todo, sizeof todo, "%.*s", (int)strcspn(next, "\n"), next);
            CHECK_STR(findings[i].line, strstr(todo, findings[i].todo) != NULL ? "advice" : todo, "advice");
        }
        CU_ASSERT_EQUAL(code, findings[i].code);
        free(said);
    }
}

/* What cannot be looked at without something is not listed. */
static void test_left_out(void)
{
    static const struct {
        enum failing fails;
        const char *last, *postgres;
    } rows[] = {
        {OPEN, "FAIL  nats ", "somewhere"},  {JETSTREAM, "FAIL  jetstream ", "somewhere"},
        {NAMESPACE, "FAIL  namespace ", ""}, {PG_OPEN, "FAIL  postgres ", "somewhere"},
        {NOTHING, "SKIP  postgres ", ""},    {NOTHING, "SKIP  postgres ", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct play const as = {.fails = rows[i].fails, .with = THOLE_UNAVAILABLE, .workers = 1};
        int code;
        char *const said = looked(&as, rows[i].postgres, &code);
        CU_ASSERT_PTR_NOT_NULL(strstr(said, rows[i].last));
        bool const nats = rows[i].fails != PG_OPEN && rows[i].fails != NOTHING;
        CU_ASSERT_EQUAL(strstr(said, "nats_clock") == NULL, nats);
        CU_ASSERT_EQUAL(strstr(said, "workers") == NULL, nats);
        bool const postgres =
            rows[i].fails == PG_OPEN || rows[i].postgres == NULL || rows[i].postgres[0] == '\0';
        CU_ASSERT_EQUAL(strstr(said, "tables") == NULL, postgres);
        free(said);
    }
}

/* docs/cli.md shows what this program says. */
static void test_example(void)
{
    char line[128], text[256];
    bool found = false;
    FILE *const page = fopen(THOLE_SOURCE_DIR "/docs/cli.md", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(page);
    (void)snprintf(line, sizeof line,
                   "OK    tables           namespace shop is at migration %zu, as this program",
                   migrations_len);
    while (!found && fgets(text, sizeof text, page) != NULL)
        found = strncmp(text, line, strlen(line)) == 0;
    CU_ASSERT_TRUE(found);
    (void)fclose(page);
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"findings", test_findings}, {"left out", test_left_out}, {"the example of the page", test_example}};
    return thole_run_suite("doctor", tests, ARRAY_LEN(tests));
}
