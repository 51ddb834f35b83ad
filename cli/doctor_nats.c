/* doctor: the NATS server, the namespace, engines and workers. */
#include "audit_stream.h"
#include "clock.h"
#include "cluster.h"
#include "doctor_checks.h"
#include "nats_connection.h"
#include "overview.h"
#include "roll_call.h"
#include "subject.h"
#include "topology.h"
#include <inttypes.h>
#include <string.h>

enum {
    ARENA_BYTES_MAX = 64 * 1024 * 1024,
    LIST_BYTES_MAX = 400,
    REPLICAS_SAFE = 3,
    STORAGE_WARN_PERCENT = 80,
    STORAGE_FAIL_PERCENT = 98,
    CHECKPOINT_LATE_MS = 10 * 60 * 1000,
};

struct looking {
    struct doctor_report *report;
    const char *ns;
    struct connection *connection;
    struct overview_namespace found;
    struct topology topology;
    thole_status asked; /* status of the question to the server */
    struct overview_server server;
};

/* ---- the server ---- */

/* False: nothing else of NATS can be looked at. */
static bool doctor_nats_check_server(struct looking *looking)
{
    struct doctor_report *const report = looking->report;
    thole_error error = {.status = THOLE_OK};
    error.status = nats_connection_open(&report->cli->options, &looking->connection, &error);
    report->file_lacks = cli_lacks_file(report->cli, &error);
    if (error.status != THOLE_OK) {
        report_error(report, "nats", NULL,
                     report->file_lacks ? "the path of a file"
                     : error.status == THOLE_DENIED
                         ? "check --nats-creds, or the user and password in $THOLE_NATS_URL"
                         : "is nats-server running there? Check --nats",
                     &error);
        return false;
    }
    error.status = topology_check_version(looking->connection, &error);
    if (error.status != THOLE_OK)
        report_error(report, "nats", NULL, "upgrade nats-server", &error);
    else
        report_add(report, "nats", FINDING_OK, NULL, "nats-server %.*s answers",
                   THOLE_FMT(connection_server_version(looking->connection)));
    error.status = topology_check_jetstream(looking->connection, &error);
    if (error.status != THOLE_OK)
        report_error(report, "jetstream", "client", NULL, &error);
    else
        report_add(report, "jetstream", FINDING_OK, NULL, "JetStream is on for this account");
    return error.status == THOLE_OK;
}

/* ---- the namespace ---- */

/* A bucket of it is missing, or otherwise than it must be: the other checks say which. */
static bool guess_namespace(struct looking *looking, const thole_error *error)
{
    const struct overview_namespace *const found = &looking->found;
    report_add(looking->report, "namespace", FINDING_FAIL, "what the checks named defect say",
               "the bucket %s of the namespace is not as it must be: no program can start",
               error->status == THOLE_INVALID ? "CONFIG or NODES" : "NODES");
    looking->topology = (struct topology){.partitions = (uint32_t)found->partitions,
                                          .replicas = (uint32_t)found->replicas,
                                          .payload_max = found->payload_max};
    (void)snprintf(looking->topology.ns, sizeof looking->topology.ns, "%s", looking->ns);
    return found->partitions > 0 && found->partitions <= PARTITIONS_MAX;
}

static bool doctor_nats_check_namespace(struct looking *looking)
{
    struct doctor_report *const report = looking->report;
    thole_error error = {.status = THOLE_OK};
    uint64_t const begun_ms = clock_wall_ms();
    error.status = overview_namespace(looking->connection, looking->ns, &looking->found, &error);
    bool const set_up = error.status == THOLE_OK && looking->found.format != 0;
    if (error.status == THOLE_OK)
        error.status = topology_read(looking->connection, looking->ns, &looking->topology, &error);
    looking->topology.replicas = (uint32_t)looking->found.replicas; /* not read with the settings */
    if (set_up && (error.status == THOLE_NOT_FOUND || error.status == THOLE_INVALID))
        return guess_namespace(looking, &error);
    if (error.status == THOLE_NOT_FOUND) {
        report_add(report, "namespace", FINDING_FAIL,
                   "start an engine for it (PROGRAM run), or name another with -n: thole namespaces",
                   "namespace %s has not been set up", looking->ns);
        return false;
    }
    if (error.status != THOLE_OK) {
        report_error(report, "namespace", "client", NULL, &error);
        return false;
    }
    report_add(report, "namespace", FINDING_OK, NULL,
               "%s has %" PRIu32 " partitions, format %" PRIu64 ", payloads of at most %" PRIu64 " bytes",
               looking->ns, looking->topology.partitions, looking->found.format,
               looking->topology.payload_max);
    /* The answer with the time came first: the round trip that counts is within these. */
    report_clock(report, "nats_clock", "the NATS server", looking->found.now_ms, begun_ms, clock_wall_ms());
    return true;
}

static void check_replicas(const struct looking *looking, uint64_t servers)
{
    struct doctor_report *const report = looking->report;
    const struct overview_namespace *const found = &looking->found;
    char cluster[64] = "a cluster";
    if (servers > 0)
        (void)snprintf(cluster, sizeof cluster, "a cluster of %" PRIu64, servers);
    if (!found->clustered)
        report_add(report, "replicas", FINDING_OK, NULL,
                   "the server is alone, and the namespace has %" PRIu64 " replica", found->replicas);
    else if (found->offline > 0)
        report_add(report, "replicas", FINDING_WARN, "start the servers that are missing",
                   "%" PRIu64 " of %" PRIu64 " replicas are away or behind, in %s", found->offline,
                   found->replicas, cluster);
    else if (found->replicas < REPLICAS_SAFE)
        report_add(report, "replicas", FINDING_WARN,
                   "start the first engine of a new namespace with --replicas 3",
                   "the namespace has 1 replica in %s: without the server that has it nothing runs", cluster);
    else
        report_add(report, "replicas", FINDING_OK, NULL, "%" PRIu64 " replicas in %s, all of them up to date",
                   found->replicas, cluster);
}

static void check_sync(const struct looking *looking, thole_status asked,
                       const struct overview_server *server)
{
    static const char todo[] = "sync_interval: always in the block jetstream, or three replicas";
    struct doctor_report *const report = looking->report;
    bool const safe = looking->found.replicas >= REPLICAS_SAFE;
    if (asked != THOLE_OK)
        report_add(report, "sync_interval", FINDING_SKIP, safe ? NULL : todo,
                   "this user cannot see it: look into nats-server's configuration");
    else if (server->sync_always)
        report_add(report, "sync_interval", FINDING_OK, NULL, "always: what is acknowledged is on the disk");
    else if (safe)
        report_add(report, "sync_interval", FINDING_OK, NULL,
                   "%" PRIu64 " ms, with %" PRIu64
                   " replicas: none of them should lose power while another one is down or behind",
                   server->sync_ms, looking->found.replicas);
    else
        report_add(report, "sync_interval", FINDING_WARN, todo,
                   "%" PRIu64 " ms: a machine that loses its power loses what was acknowledged since",
                   server->sync_ms);
}

/* One of up to four amounts that have a limit. */
struct amount {
    const char *whose;
    uint64_t bytes, bytes_max;
};

static unsigned percent_of(const struct amount *amount)
{
    double const share = (double)amount->bytes / (double)amount->bytes_max * 100;
    return share < UINT8_MAX ? (unsigned)share : UINT8_MAX;
}

/* The one that is nearest to its limit; NULL: none has one. */
static const struct amount *doctor_nats_fullest(const struct amount *all, size_t n)
{
    const struct amount *most = NULL;
    for (size_t i = 0; i < n; i++)
        if (all[i].bytes_max > 0 && (most == NULL || percent_of(&all[i]) > percent_of(most)))
            most = &all[i];
    return most;
}

static void report_storage(struct doctor_report *report, const struct amount *most)
{
    unsigned const percent = percent_of(most);
    enum finding const finding = percent >= STORAGE_FAIL_PERCENT   ? FINDING_FAIL
                                 : percent >= STORAGE_WARN_PERCENT ? FINDING_WARN
                                                                   : FINDING_OK;
    report_add(report, "storage", finding,
               finding == FINDING_OK
                   ? NULL
                   : "raise the limit, or make room: thole prune, thole delete; nats stream report",
               "JetStream uses %" PRIu64 " of the %" PRIu64 " bytes of %s: %u %%", most->bytes,
               most->bytes_max, most->whose, percent);
}

/* Full storage looks like many other troubles: no heartbeat, no start and no append is stored. */
static void check_storage(const struct looking *looking)
{
    struct overview_room account;
    thole_error error = {.status = THOLE_OK};
    error.status = overview_account(looking->connection, looking->found.replicas, &account, &error);
    if (error.status != THOLE_OK) {
        report_error(looking->report, "storage", "client", NULL, &error);
        return;
    }
    struct overview_room const room =
        looking->asked == THOLE_OK ? looking->server.room : (struct overview_room){0};
    struct amount const amounts[] = {
        {"files that the account may have", account.file_bytes, account.file_bytes_max},
        {"memory that the account may have", account.memory_bytes, account.memory_bytes_max},
        {"files that the server may have (max_file)", room.file_bytes, room.file_bytes_max},
        {"memory that the server may have (max_mem)", room.memory_bytes, room.memory_bytes_max}};
    const struct amount *const most = doctor_nats_fullest(amounts, sizeof amounts / sizeof amounts[0]);
    if (most != NULL)
        report_storage(looking->report, most);
    else if (looking->asked == THOLE_OK)
        report_add(looking->report, "storage", FINDING_OK, NULL,
                   "JetStream uses %" PRIu64 " bytes of files, and has no limit", room.file_bytes);
    else
        report_add(looking->report, "storage", FINDING_SKIP,
                   "nats server report jetstream, with a user of the system account; the log of nats-server",
                   "the account uses %" PRIu64 " bytes of files; this user cannot see the server's limits",
                   account.file_bytes);
}

static void check_durability(struct looking *looking)
{
    looking->asked = overview_server(looking->connection, &looking->server, NULL);
    check_replicas(looking, looking->server.servers);
    check_sync(looking, looking->asked, &looking->server);
}

/* ---- engines and workers ---- */

static void check_engines(const struct looking *looking, const struct cluster *cluster)
{
    struct doctor_report *const report = looking->report;
    uint64_t oldest_ms = 0;
    for (const struct cluster_engine *e = cluster->engines; e != NULL; e = e->next)
        oldest_ms = e->heartbeat_ms > oldest_ms ? e->heartbeat_ms : oldest_ms;
    uint64_t const ttl_ms = looking->topology.nodes_ttl_ms; /* 0: not known */
    bool const late = ttl_ms != 0 && oldest_ms > ttl_ms / 3 * 2;
    if (cluster->engines_len == 0)
        report_add(
            report, "engines", FINDING_FAIL,
            "start one: PROGRAM engine, or PROGRAM run; if one runs, its log says why its heartbeat is "
            "not stored, as when NATS has no storage left",
            "no engine has a heartbeat: no instance moves");
    else
        report_add(report, "engines", late ? FINDING_WARN : FINDING_OK,
                   late ? "thole nodes; the engines' logs" : NULL,
                   "%zu with a heartbeat, the oldest one %" PRIu64 " ms old", cluster->engines_len,
                   oldest_ms);
}

/* Engines of an older version hold up what is written only when every engine reads it. */
static void check_versions(const struct looking *looking, const struct cluster *cluster)
{
    struct buf list;
    size_t older = 0;
    buf_init(&list, LIST_BYTES_MAX);
    for (const struct cluster_engine *e = cluster->engines; e != NULL; e = e->next)
        if (!e->reads_all && older++ < 10)
            buf_printf(&list, older == 1 ? "%.*s" : ", %.*s", THOLE_FMT(e->node));
    if (older > 0)
        report_add(looking->report, "engines", FINDING_WARN,
                   "finish the upgrade: end the older engines, or start them with this version",
                   "%zu of %zu are older: %s%s; while they run, payloads are stored more than once and "
                   "deletions stay",
                   older, cluster->engines_len, buf_cstr(&list), older > 10 ? ", …" : "");
    buf_release(&list);
}

static void check_partitions(const struct looking *looking, const struct cluster *cluster)
{
    struct buf list;
    uint32_t without = 0;
    buf_init(&list, LIST_BYTES_MAX);
    for (uint32_t p = 0; p < cluster->partitions_len; p++)
        if (!cluster->partitions[p].owned && without++ < 10)
            buf_printf(&list, without == 1 ? "%" PRIu32 : ", %" PRIu32, p);
    if (without > 0)
        report_add(looking->report, "partitions", FINDING_FAIL,
                   "they move to a live engine within the node TTL; after that, the engines' logs",
                   "%" PRIu32 " of %" PRIu32 " have no owner: %s%s", without, cluster->partitions_len,
                   buf_cstr(&list), without > 10 ? ", …" : "");
    else
        report_add(looking->report, "partitions", FINDING_OK, NULL, "each of %" PRIu32 " has an owner",
                   cluster->partitions_len);
    buf_release(&list);
}

static void check_cluster(const struct looking *looking)
{
    struct cluster cluster;
    thole_error error = {.status = THOLE_OK};
    error.status =
        cluster_read(&cluster, looking->connection, looking->ns, looking->topology.partitions, &error);
    if (error.status == THOLE_OK) {
        check_engines(looking, &cluster);
        check_versions(looking, &cluster);
        check_partitions(looking, &cluster);
        doctor_state(looking->report, looking->connection, &looking->topology, &cluster);
        doctor_room(looking->report, looking->connection, &looking->topology, &cluster,
                    &looking->server.room);
    } else {
        report_error(looking->report, "engines", "auditor", NULL, &error);
    }
    cluster_release(&cluster);
}

static void check_workers(const struct looking *looking)
{
    struct roll_answer *answers = NULL;
    struct arena arena;
    size_t len = 0;
    thole_error error = {.status = THOLE_OK};
    arena_init(&arena, ARENA_BYTES_MAX);
    error.status = roll_call(looking->connection, looking->ns, &arena, &answers, &len, &error);
    if (error.status != THOLE_OK)
        report_error(looking->report, "workers", "auditor", NULL, &error);
    else if (len == 0)
        report_add(looking->report, "workers", FINDING_WARN, "start one: PROGRAM worker, or PROGRAM run",
                   "no worker answers: activities wait");
    else
        report_add(looking->report, "workers", FINDING_OK, NULL, "%zu answer", len);
    arena_release(&arena);
}

static void check_checkpoints(const struct looking *looking)
{
    struct doctor_report *const report = looking->report;
    uint64_t const now_ms = looking->found.now_ms;
    struct audit_waiting waiting = {.checkpoints = 0};
    thole_error error = {.status = THOLE_OK};
    error.status = audit_stream_waiting(looking->connection, looking->ns, looking->topology.partitions,
                                        &waiting, &error);
    uint64_t const waits_ms =
        waiting.stored_ms > 0 && waiting.stored_ms < now_ms ? now_ms - waiting.stored_ms : 0;
    if (error.status == THOLE_DENIED)
        report_add(report, "audit", FINDING_SKIP, NULL, "this user cannot see checkpoints: an auditor can");
    else if (error.status != THOLE_OK)
        report_error(report, "audit", "auditor", NULL, &error);
    else if (waiting.checkpoints == 0)
        report_add(report, "audit", FINDING_SKIP, NULL, "nobody signs checkpoints of the histories");
    else if (waits_ms > CHECKPOINT_LATE_MS)
        report_add(report, "audit", FINDING_WARN,
                   "is there an engine with --audit-key? Its log, area audit; thole audit verify --all",
                   "a record of partition %" PRIu32 " has waited %" PRIu64 " s for a signed checkpoint",
                   waiting.p, waits_ms / 1000);
    else
        report_add(report, "audit", FINDING_OK, NULL,
                   "checkpoints of %" PRIu64 " partitions; no record has waited for one longer than %" PRIu64
                   " s",
                   waiting.checkpoints, waits_ms / 1000);
}

void doctor_nats(struct doctor_report *report)
{
    struct looking looking = {.report = report, .ns = report->cli->options.ns};
    if (doctor_nats_check_server(&looking) && doctor_nats_check_namespace(&looking)) {
        check_durability(&looking);
        check_cluster(&looking);
        check_workers(&looking);
        check_checkpoints(&looking);
        check_storage(&looking);
    }
    connection_close(looking.connection);
}
