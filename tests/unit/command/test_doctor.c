/* The doctor's findings and exit code for the answers of servers, which are played. */
#include "captured.h"
#include "doctor_checks.h"
#include "migrations.h"
#include "thole_cunit.h"
#include "wrap_doctor_world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one look ---- */

struct look {
    const char *postgres;
    int code;
};

static void look(void *arg)
{
    struct look *const look = arg;
    struct cli const cli = {.options = {.ns = "shop", .postgres = look->postgres, .fix = doctor_played.fix}};
    struct doctor_report report;
    report_begin(&report, &cli);
    doctor_nats(&report);
    doctor_postgres(&report);
    look->code = report_end(&report);
}

static char *looked(const struct doctor_play *as, const char *postgres, int *ret_code)
{
    struct look arg = {.postgres = postgres};
    doctor_played = *as;
    doctor_played.now_ms = NOW_MS;
    if (doctor_played.sync_ms == 0)
        doctor_played.sync_ms = 120000;
    char *const said = captured(1, look, &arg);
    CU_ASSERT_EQUAL(doctor_played.open, 0);
    *ret_code = arg.code;
    return said;
}

/* The machine's clock is at NOW_MS + 10 when NATS is asked, + 20 when it has answered; at + 30 and + 40
 * when Postgres is and has. */
static const struct {
    struct doctor_play as;
    const char *line; /* with the check's name after the finding */
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
     "FAIL  namespace        the bucket NODES of the namespace is not as it must be",
     "the checks named defect",
     12},
    {{.fails = TOPOLOGY, .with = THOLE_INVALID},
     "FAIL  namespace        the bucket CONFIG or NODES of the namespace is not as it must be",
     "the checks named defect",
     12},
    {{.dropped = false}, "OK    shape            tables, columns", NULL, 0},
    {{.dropped = true}, "FAIL  defect           table timers is missing\n", "thole migrate", 12},
    {{.dropped = true, .warns = true}, "WARN  defect           table timers", "thole migrate", 0},
    {{.dropped = true, .fix = true}, "OK    shape            tables, columns", NULL, 0},
    {{.dropped = true, .fix = true, .fails = MIGRATE, .with = THOLE_DENIED},
     "FAIL  fix              it says no",
     "thole migrate --grants",
     12},
    {{.fails = SHAPE, .with = THOLE_UNAVAILABLE}, "FAIL  shape            it says no", NULL, 12},
    {{.fails = NOTHING}, "OK    write            a row of each of 7 tables", NULL, 0},
    {{.fails = PG_WRITE, .with = THOLE_DENIED}, "SKIP  write            this user may not", NULL, 0},
    {{.only_reads = true}, "SKIP  write            nobody may write here: a hot standby", NULL, 0},
    {{.fails = PG_WRITE, .with = THOLE_UNAVAILABLE}, "FAIL  write            it says no", "the disk", 12},
    {{.told = false}, "SKIP  open             1 of 1 engines do not say", "earlier version", 0},
    {{.told = true}, "OK    open             the engines say that their partitions are open", NULL, 0},
    {{.told = true, .closed_lately = 3}, "OK    open             the engines say", NULL, 0},
    {{.told = true, .closed_lately = 4, .why = "a rival"},
     "WARN  open             1 of 12 partitions work now, and were closed several times: 7 is open, was "
     "closed 4 "
     "times in 5 minutes: a rival\n",
     "thole partitions",
     0},
    {{.told = true, .closed_lately = 4, .since_ms = NOW_MS - 9000, .why = "a rival"},
     "FAIL  open             1 of 12 partitions do not work: 7 is open, was closed 4 times in 5 minutes: a "
     "rival\n",
     "thole partitions",
     12},
    {{.told = true, .state = CLUSTER_CLOSED, .closed_lately = 1, .why = "sealed"},
     "FAIL  open             1 of 12 partitions do not work: 7 is closed, was closed 1 times in 5 minutes: "
     "sealed\n",
     "thole partitions",
     12},
    {{.told = true, .state = CLUSTER_OPENING},
     "FAIL  open             1 of 12 partitions do not work: 7 is opening\n",
     "thole partitions",
     12},
    {{.told = true}, "OK    engine_clock     the clock of engine e1 is 0 ms away from", NULL, 0},
    {{.told = true, .engine_ms = NOW_MS + 100000},
     "FAIL  engine_clock     the clock of engine e1 is ",
     "chrony",
     12},
    {{.told = true}, "OK    defects          9 streams and buckets are as they must be", NULL, 0},
    {{.defective = true}, "FAIL  defect           stream THOLE_shop_WORK is missing\n", "this", 12},
    {{.defective = true, .fix = true},
     "FAIL  defect           stream THOLE_shop_WORK is missing\n",
     "this",
     12},
    {{.defective = true, .fix = true, .cure = CURE_FIX},
     "OK    fix              put right: stream THOLE_shop_WORK is missing\n",
     NULL,
     0},
    {{.defective = true, .fix = true, .cure = CURE_FIX, .fails = MEND, .with = THOLE_DENIED},
     "FAIL  fix              it says no",
     "--nats-permissions engine",
     12},
    {{.told = true, .hidden = true}, "OK    defects          the engines say that the streams", NULL, 0},
    {{.hidden = true}, "SKIP  defects          this user cannot see the streams", "--nats-permissions", 0},
    {{.told = true, .hidden = true, .told_defect = "hist stream X has max_age 1s, but no limit is needed"},
     "FAIL  defect           stream X has max_age 1s, but no limit is needed\n",
     "the remedy",
     12},
    {{.told = true,
      .defective = true,
      .told_defect = "config bucket C has key partitions 9, but 8 is needed"},
     "FAIL  defect           bucket C has key partitions 9, but 8 is needed\n",
     "the remedy",
     12},
    {{.fails = LOOK, .with = THOLE_UNAVAILABLE}, "FAIL  defects          it says no", NULL, 12},
    {{.mended = true},
     "OK    mended           stream THOLE_shop_WORK was missing and was made again at",
     "who",
     0},
    {{.grown = 2},
     "OK    room             account: 3.0 GB, without a limit, 48.0 GB a day more, by",
     NULL,
     0},
    {{.grown = 2, .limit = 338}, "WARN  room             account: 3.0 GB of at most 338.0 GB, ", "raise", 0},
    {{.grown = 2, .server = {.file_bytes = 9 * GB, .file_bytes_max = 99 * GB}},
     "WARN  room             server (max_file): 9.0 GB of at most 99.0 GB, 48.0 GB a day more",
     "raise the limit, or make room",
     0},
    {{.grown = 0},
     "OK    room             hist (12 streams, 0 messages): 24.0 GB, 24.0 GB a day more, by",
     NULL,
     0},
    {{.grown = 0}, "WARN  room             THOLE_shop_IN_0: 10.0 GB of at most 30.0 GB, 10.0 GB", "raise", 0},
    {{.hidden = true}, "SKIP  room             no engine tells how much is stored", "auditor", 0},
    {{.fails = QUEUES, .with = THOLE_DENIED}, "OK    defects          9 streams", NULL, 0},
    {{.fails = STORES, .with = THOLE_DENIED}, "OK    defects          9 streams", NULL, 0},
    {{.fails = STORES, .with = THOLE_CORRUPT}, "FAIL  defects          it says no", NULL, 12},
    {{.crowded = true},
     "WARN  defect           stream THOLE_shop_HIST_0 has consumers 900 of at most 1000: 880 x_* (inboxes "
     "of auditor), but room for those of engines is needed\n",
     "remove those",
     0},
    {{.crowded = true, .told = true, .told_defect = "limits the account is full"},
     "FAIL  defect           the account is full\n",
     "the remedy",
     12},
    {{.fix = true, .told = true, .told_defect = "secret stream S has discard_new_per_subject false"},
     "OK    fix              put right: stream KV_THOLE__SECRET has discard_new_per_subject false, but",
     NULL,
     0},
    {{.fails = CROWD, .with = THOLE_DENIED}, "OK    defects          9 streams", NULL, 0},
    {{.fails = CROWD, .with = THOLE_CORRUPT}, "FAIL  defects          it says no", NULL, 12},
    {{.holds_gone = true},
     "FAIL  defect           stream KV_THOLE_shop_HOLDS is missing\n",
     "thole recover -n shop",
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
    {{.older = true},
     "WARN  engines          1 of 1 are older: e1; while they run, payloads are stored more than once and",
     "finish the upgrade",
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
    {{.set_aside = 0}, "OK    set_aside        Postgres has taken all rows", NULL, 0},
    {{.set_aside = 3},
     "FAIL  set_aside        Postgres refuses 3 rows of 1 instances, and what they are for does not happen: "
     "a row of "
     "instances of bad, column version: too large",
     "thole show ID says which; remove the cause, then thole projections verify tries them again",
     12},
    {{.fails = SET_ASIDE, .with = THOLE_UNAVAILABLE},
     "FAIL  set_aside        it says no",
     "thole migrate --grants",
     12},
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

/* Objects that could not be looked at are not listed. */
static void test_left_out(void)
{
    static const struct {
        enum doctor_failing fails;
        const char *last, *postgres;
    } rows[] = {
        {OPEN, "FAIL  nats ", "somewhere"},  {JETSTREAM, "FAIL  jetstream ", "somewhere"},
        {NAMESPACE, "FAIL  namespace ", ""}, {PG_OPEN, "FAIL  postgres ", "somewhere"},
        {NOTHING, "SKIP  postgres ", ""},    {NOTHING, "SKIP  postgres ", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct doctor_play const as = {.fails = rows[i].fails, .with = THOLE_UNAVAILABLE, .workers = 1};
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
