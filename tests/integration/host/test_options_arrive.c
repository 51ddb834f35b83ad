/*
 * Each option of the programs, at the place where it acts: what its value comes to in the machine, the
 * thread, the statement or the stream that it is for. A row for each; an option of --help without a row
 * fails. The programs run as a user's do, against real servers; what is handed over is noted on the way.
 */
#include "audit_job.h"
#include "core_dumps.h"
#include "drift_job.h"
#include "engine.h"
#include "engine_clock.h"
#include "forkserver.h"
#include "handlers.h"
#include "history_file.h"
#include "host_options.h"
#include "monitor.h"
#include "nodes.h"
#include "note.h"
#include "notice.h"
#include "process_parts.h"
#include "projector_store.h"
#include "queue_wish.h"
#include "reader.h"
#include "replayer.h"
#include "row_calls.h"
#include "stack.h"
#include "thole/program.h"
#include "worker.h"
#include "worker_store.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- arrived values: "place value" lines, shared with the programs ---- */

enum { ARRIVED_MAX = 512, ARRIVED_BYTES = 192, WAIT_MS = 20000 };

static struct arrivals {
    pthread_mutex_t lock;
    size_t len;
    char lines[ARRIVED_MAX][ARRIVED_BYTES];
} * arrivals;

/* In a file that the programs find by $ARRIVALS: they are executed, since threads of nats.c do not live
 * through a fork. */
static void arrivals_open(const char *path, bool anew)
{
    pthread_mutexattr_t attr;
    int const fd = open(path, O_RDWR | O_CLOEXEC | (anew ? O_CREAT : 0), 0600);
    if (fd < 0 || ftruncate(fd, sizeof *arrivals) != 0)
        exit(1);
    arrivals = mmap(NULL, sizeof *arrivals, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (arrivals == MAP_FAILED)
        exit(1);
    close(fd);
    if (!anew)
        return;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&arrivals->lock, &attr);
}

/* The caller holds the lock. */
static bool is_there(const char *line)
{
    for (size_t i = 0; i < arrivals->len; i++)
        if (strcmp(arrivals->lines[i], line) == 0)
            return true;
    return false;
}

static void arrived(const char *format, ...) THOLE_PRINTF(1, 2);
static void arrived(const char *format, ...)
{
    char line[ARRIVED_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    pthread_mutex_lock(&arrivals->lock);
    if (!is_there(line) && arrivals->len < ARRIVED_MAX)
        memcpy(arrivals->lines[arrivals->len++], line, sizeof line);
    pthread_mutex_unlock(&arrivals->lock);
}

static bool has_arrived(const char *line, uint64_t wait_ms)
{
    uint64_t const end = clock_monotonic_ms() + wait_ms;
    for (;;) {
        pthread_mutex_lock(&arrivals->lock);
        bool const found = is_there(line);
        pthread_mutex_unlock(&arrivals->lock);
        if (found || clock_monotonic_ms() >= end)
            return found;
        pause_ms(20);
    }
}

static size_t count_arrived(const char *prefix)
{
    size_t n = 0;
    pthread_mutex_lock(&arrivals->lock);
    for (size_t i = 0; i < arrivals->len; i++)
        n += strncmp(arrivals->lines[i], prefix, strlen(prefix)) == 0;
    pthread_mutex_unlock(&arrivals->lock);
    return n;
}

static void show_arrived(const char *place)
{
    pthread_mutex_lock(&arrivals->lock);
    for (size_t i = 0; i < arrivals->len; i++)
        if (strncmp(arrivals->lines[i], place, strcspn(place, " ")) == 0)
            fprintf(stderr, "    %s\n", arrivals->lines[i]);
    pthread_mutex_unlock(&arrivals->lock);
}

/* ---- the places: each notes what it is given, and goes on as ever ---- */

/* clang-format off */
thole_status __real_connection_open(const struct connection_options *, struct connection **, thole_error *);
thole_status __real_postgres_open(const struct postgres_options *, struct postgres **, thole_error *);
thole_status __real_topology_ensure(struct connection *, const struct topology_options *, struct topology *, thole_error *);
thole_status __real_queue_wish(struct connection *, const char *, thole_slice, uint64_t, uint64_t *, bool *, thole_error *);
struct partition *__real_partition_create(const struct partition_options *);
thole_status __real_forkserver_start(const struct forkserver_options *, struct forkserver **, thole_error *);
struct worker_machine *__real_worker_create(const struct worker_options *);
thole_status __real_worker_input(struct worker_machine *, const struct worker_in *, uint64_t);
thole_status __real_row_calls_create(const struct row_calls_options *, struct row_calls **, thole_error *);
thole_status __real_handlers_create(uint32_t, uint32_t, struct mailbox *, struct handlers **, thole_error *);
thole_status __real_shard_start(struct shard *, thole_error *);
struct engine_clock *__real_engine_clock_create(struct engine_host *engine, engine_clock_fn *changed);
thole_status __real_drift_job_start(struct engine_host *, struct drift_job **, thole_error *);
thole_status __real_audit_job_create(struct engine_host *, struct audit_job **, thole_error *);
void __real_shard_send(struct shard *, struct shard_mail *);
thole_status __real_nodes_put(struct connection *, const char *, thole_slice, thole_slice, thole_error *);
void __real_log_configure(enum log_level, enum log_format, const char *);
void __real_core_dumps_choose(bool);
thole_status __real_projector_store_orphans(struct postgres *, const struct rows_owner *, uint64_t, size_t, struct arena *, struct batch_activity **, size_t *, uint64_t *, thole_error *);
thole_status __real_cancel_notice_parse(const struct delivery *, struct arena *, struct cancel_notice *, thole_error *);
thole_status __real_monitor_start(const struct sockaddr_storage *, const struct metrics *, struct monitor **, thole_error *);
struct replayer *__real_replayer_create(const struct replay_options *);
thole_status __real_history_file_read(FILE *, const struct history_file_reader *, thole_error *);
thole_status __real_stream_read_deliveries(struct connection *, const char *, const char *, uint64_t, uint64_t, stream_delivery_fn *, void *, thole_error *);
/* clang-format on */

thole_status __wrap_connection_open(const struct connection_options *options, struct connection **ret,
                                    thole_error *reterr)
{
    arrived("connection_open.url %s", options->url);
    arrived("connection_open.creds %s", options->creds == NULL ? "none" : options->creds);
    arrived("connection_open.ca %s", options->ca == NULL ? "none" : options->ca);
    arrived("connection_open.cert %s", options->cert == NULL ? "none" : options->cert);
    arrived("connection_open.key %s", options->key == NULL ? "none" : options->key);
    arrived("connection_open.server_name %s", options->server_name == NULL ? "none" : options->server_name);
    arrived("connection_open.inbox %s %s", options->name, options->inbox);
    arrived("connection_open.api_prefix %s %s", options->name,
            options->api_prefix == NULL ? "none" : options->api_prefix);
    return __real_connection_open(options, ret, reterr);
}

thole_status __wrap_postgres_open(const struct postgres_options *options, struct postgres **ret,
                                  thole_error *reterr)
{
    arrived("postgres_open.conninfo %s %s", options->application, options->conninfo);
    arrived("postgres_open.ns %s", options->ns);
    return __real_postgres_open(options, ret, reterr);
}

thole_status __wrap_topology_ensure(struct connection *connection, const struct topology_options *options,
                                    struct topology *ret, thole_error *reterr)
{
    arrived("topology_ensure.ns %s", options->ns);
    arrived("topology_ensure.partitions %u", options->partitions);
    arrived("topology_ensure.replicas %u", options->replicas);
    arrived("topology_ensure.nodes_ttl_ms %" PRIu64, options->nodes_ttl_ms);
    arrived("topology_ensure.events_age_ms %" PRIu64, options->events_age_ms);
    arrived("topology_ensure.payload_max %" PRIu64, options->payload_max);
    return __real_topology_ensure(connection, options, ret, reterr);
}

thole_status __wrap_queue_wish(struct connection *connection, const char *ns, thole_slice queue,
                               uint64_t lease_ms, uint64_t *ret_lease_ms, bool *ret_anew, thole_error *reterr)
{
    arrived("queue_wish.queue %.*s", THOLE_FMT(queue));
    arrived("queue_wish.lease_ms %" PRIu64, lease_ms);
    return __real_queue_wish(connection, ns, queue, lease_ms, ret_lease_ms, ret_anew, reterr);
}

struct partition *__wrap_partition_create(const struct partition_options *options)
{
    arrived("partition_create.node %.*s", THOLE_FMT(options->node));
    arrived("partition_create.payload_max %zu", options->payload_max);
    arrived("partition_create.instance_memory_max %zu", options->instance_memory_max);
    arrived("partition_create.parked_max %zu", options->parked_max);
    arrived("partition_create.parked_memory_max %zu", options->parked_memory_max);
    arrived("partition_create.early_memory_max %zu", options->early_memory_max);
    arrived("partition_create.burst_max %zu", options->burst_max);
    arrived("partition_create.executions_max %" PRIu64, options->executions_max);
    arrived("partition_create.early_event_ms %" PRIu64, options->early_event_ms);
    arrived("partition_create.deleted_keep_ms %" PRIu64, options->deleted_keep_ms);
    arrived("partition_create.events %d", (int)options->events);
    arrived("partition_create.quarantine_ms %" PRIu64, options->quarantine_ms);
    arrived("partition_create.crash_limit %" PRIu64, options->crash_limit);
    return __real_partition_create(options);
}

struct worker_machine *__wrap_worker_create(const struct worker_options *options)
{
    arrived("worker_create.slots %u", options->slots);
    arrived("worker_create.renew_ms %" PRIu64, options->renew_ms);
    arrived("worker_create.lease_ms %" PRIu64, options->lease_ms);
    arrived("worker_create.grace_ms %" PRIu64, options->grace_ms);
    arrived("worker_create.poison_after %u", options->poison_after);
    return __real_worker_create(options);
}

thole_status __wrap_worker_input(struct worker_machine *w, const struct worker_in *in, uint64_t now_ms)
{
    if (in->kind == WORKER_IN_STOP)
        arrived("worker_input.stop_limit_ms %" PRIu64, in->limit_ms);
    return __real_worker_input(w, in, now_ms);
}

thole_status __wrap_row_calls_create(const struct row_calls_options *options, struct row_calls **ret,
                                     thole_error *reterr)
{
    arrived("row_calls_create.candidate_after+strikes_max %u",
            options->policy.candidate_after + options->policy.strikes_max);
    return __real_row_calls_create(options, ret, reterr);
}

thole_status __wrap_handlers_create(uint32_t slots, uint32_t abandoned_max, struct mailbox *inbox,
                                    struct handlers **ret, thole_error *reterr)
{
    arrived("handlers_create.slots %u", slots);
    return __real_handlers_create(slots, abandoned_max, inbox, ret, reterr);
}

thole_status __wrap_forkserver_start(const struct forkserver_options *options, struct forkserver **ret,
                                     thole_error *reterr)
{
    arrived("forkserver_start.memory_max %" PRIu64, options->memory_max);
    arrived("forkserver_start.env %s", options->env);
    return __real_forkserver_start(options, ret, reterr);
}

thole_status __wrap_shard_start(struct shard *shard, thole_error *reterr)
{
    const struct engine_host *const engine = shard->engine;
    arrived("shard_start.turn_limit_ms %" PRIu64, engine->options.turn_limit_ms);
    arrived("shard_start.events_mode %d", engine->options.events_mode);
    arrived("shard_start.index %u of %zu", shard->index, engine->shards_len);
    return __real_shard_start(shard, reterr);
}

struct engine_clock *__wrap_engine_clock_create(struct engine_host *engine, engine_clock_fn *changed)
{
    arrived("engine_clock_create.limit_ms %" PRIu64, engine->options.clock_offset_max_ms);
    return __real_engine_clock_create(engine, changed);
}

thole_status __wrap_drift_job_start(struct engine_host *engine, struct drift_job **ret, thole_error *reterr)
{
    arrived("drift_job_start.drift_ms %" PRIu64, engine->options.drift_ms);
    return __real_drift_job_start(engine, ret, reterr);
}

thole_status __wrap_audit_job_create(struct engine_host *engine, struct audit_job **ret, thole_error *reterr)
{
    arrived("audit_job_create.key %s",
            engine->options.audit_key == NULL ? "none" : engine->options.audit_key);
    arrived("audit_job_create.every_ms %" PRIu64, engine->options.audit_ms);
    arrived("audit_job_create.records %" PRIu64, engine->options.audit_records);
    return __real_audit_job_create(engine, ret, reterr);
}

void __wrap_shard_send(struct shard *shard, struct shard_mail *mail)
{
    if (mail->kind == SHARD_OWN)
        arrived("shard_send.own %s %u", shard->engine->options.node, mail->p);
    __real_shard_send(shard, mail);
}

/* The time from the second to the third heartbeat, rounded to 100 ms: the first may be followed by another
 * that tells what has changed. */
thole_status __wrap_nodes_put(struct connection *connection, const char *ns, thole_slice node,
                              thole_slice heartbeat, thole_error *reterr)
{
    static uint64_t last_ms; /* of the membership's thread */
    uint64_t const now_ms = clock_monotonic_ms();
    arrived("nodes_put.node %.*s", THOLE_FMT(node));
    if (last_ms != 0)
        arrived("nodes_put.pause_ms %" PRIu64, (now_ms - last_ms + 50) / 100 * 100);
    last_ms = now_ms;
    return __real_nodes_put(connection, ns, node, heartbeat, reterr);
}

void __wrap_core_dumps_choose(bool full)
{
    arrived("core_dumps_choose.full %d", full);
    __real_core_dumps_choose(full);
}

thole_status __wrap_monitor_start(const struct sockaddr_storage *address, const struct metrics *metrics,
                                  struct monitor **ret, thole_error *reterr)
{
    const struct sockaddr_in *const in = (const struct sockaddr_in *)address;
    char text[INET_ADDRSTRLEN];
    arrived("monitor_start.address %s:%u", inet_ntop(in->sin_family, &in->sin_addr, text, sizeof text),
            ntohs(in->sin_port));
    return __real_monitor_start(address, metrics, ret, reterr);
}

void __wrap_log_configure(enum log_level level, enum log_format format, const char *program)
{
    arrived("log_configure.level %d", (int)level);
    arrived("log_configure.format %d", (int)format);
    __real_log_configure(level, format, program);
}

thole_status __wrap_projector_store_orphans(struct postgres *pg, const struct rows_owner *owner,
                                            uint64_t older_than_ms, size_t limit, struct arena *arena,
                                            struct batch_activity **ret, size_t *ret_len,
                                            uint64_t *ret_next_in_ms, thole_error *reterr)
{
    arrived("projector_store_orphans.older_than_ms %" PRIu64, older_than_ms);
    return __real_projector_store_orphans(pg, owner, older_than_ms, limit, arena, ret, ret_len,
                                          ret_next_in_ms, reterr);
}

thole_status __wrap_cancel_notice_parse(const struct delivery *delivery, struct arena *arena,
                                        struct cancel_notice *ret, thole_error *reterr)
{
    arrived("cancel_notice_parse.pid %d", (int)getpid());
    return __real_cancel_notice_parse(delivery, arena, ret, reterr);
}

struct replayer *__wrap_replayer_create(const struct replay_options *options)
{
    arrived("replayer_create.memory_max %zu", options->memory_max);
    arrived("replayer_create.stacks_max %zu", options->stacks_max);
    return __real_replayer_create(options);
}

thole_status __wrap_history_file_read(FILE *from, const struct history_file_reader *reader,
                                      thole_error *reterr)
{
    char link[64], path[ARRIVED_BYTES - 32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fileno(from));
    ssize_t const n = readlink(link, path, sizeof path - 1);
    path[n < 0 ? 0 : n] = '\0';
    arrived("history_file_read.path %s", path);
    return __real_history_file_read(from, reader, reterr);
}

thole_status __wrap_stream_read_deliveries(struct connection *connection, const char *stream,
                                           const char *filter, uint64_t from, uint64_t to,
                                           stream_delivery_fn *each, void *arg, thole_error *reterr)
{
    arrived("stream_read_deliveries.stream %s", stream);
    return __real_stream_read_deliveries(connection, stream, filter, from, to, each, arg, reterr);
}

/* ---- the table ---- */

enum {
    GIVEN = 64,     /* bytes of a value */
    PARTITIONS = 5, /* as the table says */
};
enum run { RUN_FIRST, RUN_SECOND, RUN_CREDS, RUN_REPLICAS, RUN_REPLAY, RUN_FILE, RUN_NOT };

/* value, place: %s is the servers' own: the URL of NATS or Postgres, the test's folder. */
static const struct option_arrival {
    const char *flag, *value;
    enum run run;
    const char *place; /* where its value must arrive, and as what */
} table[] = {
    {"nats", "%s", RUN_FIRST, "connection_open.url %s"},
    {"nats-creds", "/nowhere/x.creds", RUN_CREDS, "connection_open.creds /nowhere/x.creds"},
    {"nats-ca", "/nowhere/ca", RUN_CREDS, "connection_open.ca /nowhere/ca"},
    {"nats-cert", "/nowhere/cert", RUN_CREDS, "connection_open.cert /nowhere/cert"},
    {"nats-key", "/nowhere/key", RUN_CREDS, "connection_open.key /nowhere/key"},
    {"nats-server-name", "n.example", RUN_CREDS, "connection_open.server_name n.example"},
    {"nats-inbox", "_INBOX_own", RUN_FIRST, "connection_open.inbox thole-engine _INBOX_own"},
    {"nats-api-prefix", "$JS.API", RUN_FIRST, "connection_open.api_prefix thole-engine $JS.API"},
    {"postgres", "%s", RUN_FIRST, "postgres_open.conninfo thole-engine %s"},
    {"postgres", "%s", RUN_FIRST, "postgres_open.conninfo thole-worker %s"},
    {"namespace", "arrives", RUN_FIRST, "topology_ensure.ns arrives"},
    {"namespace", "arrives", RUN_FIRST, "postgres_open.ns arrives"},
    {"node", "first", RUN_FIRST, "partition_create.node first"},
    {"node", "first", RUN_FIRST, "nodes_put.node first"},
    {"log-level", "warn", RUN_FIRST, "log_configure.level 1"},
    {"log-format", "json", RUN_FIRST, "log_configure.format 2"},
    {"core-dumps", "full", RUN_FIRST, "core_dumps_choose.full 1"},
    {"payload-max", "12345", RUN_FIRST, "topology_ensure.payload_max 12345"},
    {"payload-max", "12345", RUN_FIRST, "partition_create.payload_max 12345"},
    {"stop-limit", "1234ms", RUN_FIRST, "worker_input.stop_limit_ms 1234"},
    {"partitions", "5", RUN_FIRST, "topology_ensure.partitions 5"},
    {"replicas", "3", RUN_REPLICAS, "topology_ensure.replicas 3"},
    {"http", "127.0.0.2:0", RUN_FIRST, "monitor_start.address 127.0.0.2:0"},
    {"node-ttl", "9s", RUN_FIRST, "topology_ensure.nodes_ttl_ms 9000"},
    {"heartbeat", "700ms", RUN_FIRST, "nodes_put.pause_ms 700"},
    {"sweep", "1100ms", RUN_FIRST, "projector_store_orphans.older_than_ms 1100"},
    {"clock-offset-max", "90s", RUN_FIRST, "engine_clock_create.limit_ms 90000"},
    {"drift", "12h", RUN_FIRST, "drift_job_start.drift_ms 43200000"},
    {"audit-key", "%s/audit.key", RUN_FIRST, "audit_job_create.key %s/audit.key"},
    {"audit-every", "1300ms", RUN_FIRST, "audit_job_create.every_ms 1300"},
    {"audit-records", "777", RUN_FIRST, "audit_job_create.records 777"},
    {"deletions-keep", "49h", RUN_FIRST, "partition_create.deleted_keep_ms 176400000"},
    {"early-events", "36h", RUN_FIRST, "partition_create.early_event_ms 129600000"},
    {"events", "all", RUN_FIRST, "partition_create.events 2"},
    {"events-mode", "structured", RUN_FIRST, "shard_start.events_mode 1"},
    {"events-age", "5h", RUN_FIRST, "topology_ensure.events_age_ms 18000000"},
    {"quarantine", "77s", RUN_FIRST, "partition_create.quarantine_ms 77000"},
    {"engine-threads", "3", RUN_FIRST, "shard_start.index 2 of 3"},
    {"crash-limit", "4", RUN_FIRST, "partition_create.crash_limit 4"},
    {"turn-limit", "12s", RUN_FIRST, "shard_start.turn_limit_ms 12000"},
    {"parked-max", "77", RUN_FIRST, "partition_create.parked_max 77"},
    {"parked-memory-max", "5MiB", RUN_FIRST, "partition_create.parked_memory_max 1048576"},
    {"early-memory-max", "10MiB", RUN_FIRST, "partition_create.early_memory_max 2097152"},
    {"burst-max", "77", RUN_FIRST, "partition_create.burst_max 77"},
    {"executions-max", "77", RUN_FIRST, "partition_create.executions_max 77"},
    {"instance-memory-max", "3MiB", RUN_FIRST, "partition_create.instance_memory_max 3145728"},
    {"queue", "own", RUN_FIRST, "queue_wish.queue own"},
    {"slots", "7", RUN_FIRST, "worker_create.slots 7"},
    {"slots", "7", RUN_FIRST, "handlers_create.slots 7"},
    {"lease", "2500ms", RUN_FIRST, "queue_wish.lease_ms 2500"},
    {"lease", "2500ms", RUN_FIRST, "worker_create.lease_ms 2500"},
    {"renew-every", "700ms", RUN_FIRST, "worker_create.renew_ms 700"},
    {"grace", "1500ms", RUN_FIRST, "worker_create.grace_ms 1500"},
    {"poison-after", "9", RUN_FIRST, "worker_create.poison_after 9"},
    {"poison-after", "9", RUN_FIRST, "row_calls_create.candidate_after+strikes_max 9"},
    {"postgres-connections", NULL, RUN_NOT, NULL}, /* integration.gateway_pool */
    {"queue-sessions", NULL, RUN_NOT, NULL},       /* unit.gateway_transcript */
    {"process-memory-max", "3GiB", RUN_FIRST, "forkserver_start.memory_max 3221225472"},
    {"process-env", "APP_*,MODE", RUN_FIRST, "forkserver_start.env APP_*,MODE"},
    {"test-own-all", NULL, RUN_SECOND, "shard_send.own second 4"},
    {"test-suppress-push", NULL, RUN_SECOND, NULL}, /* test_switches() */
    {"nats-inbox", "_INBOX_own", RUN_REPLAY, "connection_open.inbox thole-replay _INBOX_own"},
    {"nats-api-prefix", "$JS.API", RUN_REPLAY, "connection_open.api_prefix thole-replay $JS.API"},
    {"all", NULL, RUN_REPLAY, "stream_read_deliveries.stream THOLE_arrives_HIST_4"},
    {"threads", "3", RUN_REPLAY, "replayer_create.stacks_max 10000"},
    {"memory-max", "9MiB", RUN_REPLAY, "replayer_create.memory_max 3145728"},
    {"output", "json", RUN_REPLAY, "stdout {"},
    {"file", "%s/history", RUN_FILE, "history_file_read.path %s/history"},
    {"config", NULL, RUN_NOT, NULL}, /* unit.option_file */
    {"until", NULL, RUN_NOT, NULL},  /* cli_live.sh, as the next: of one history alone */
    {"break", NULL, RUN_NOT, NULL},
    {"help", NULL, RUN_NOT, NULL}, /* unit.exit_codes */
    {"version", NULL, RUN_NOT, NULL},
};

static struct stack stack;

/* Postgres's URL without its password, which no flag may have: PGPASSWORD has it. */
static const char *open_url(void)
{
    static char url[SERVER_PATH_BYTES];
    const char *const user = strstr(stack.postgres.url, "://") + 3;
    const char *const password = strchr(user, ':'), *const host = strchr(user, '@');
    if (getenv("PGPASSWORD") == NULL) {
        snprintf(url, sizeof url, "%.*s", (int)(host - password - 1), password + 1);
        setenv("PGPASSWORD", url, 1);
    }
    snprintf(url, sizeof url, "%.*s%s", (int)(password - stack.postgres.url), stack.postgres.url, host);
    return url;
}

/* The text for %s in a row. */
static const char *own_text(const struct option_arrival *row)
{
    if (strcmp(row->flag, "nats") == 0)
        return stack.nats.url;
    return strcmp(row->flag, "postgres") == 0 ? open_url() : stack.dir;
}

static void fill(char *to, size_t cap, const char *text, const struct option_arrival *row)
{
    const char *const at = strstr(text, "%s");
    if (at == NULL)
        snprintf(to, cap, "%s", text);
    else
        snprintf(to, cap, "%.*s%s%s", (int)(at - text), text, own_text(row), at + 2);
}

/* ---- the program ---- */

static void write_audit_key(void)
{
    static const uint8_t seed[NOTE_KEY_BYTES] = {1};
    char path[SERVER_PATH_BYTES + 16];
    struct note_key key;
    struct buf text;
    buf_init(&text, 1024);
    snprintf(path, sizeof path, "%s/audit.key", stack.dir);
    FILE *const file = fopen(path, "w");
    if (file == NULL || note_key_make(THOLE_STR("arrives"), seed, &key, NULL) != THOLE_OK)
        exit(1);
    note_key_text(&key, true, &text);
    fputs(buf_cstr(&text), file);
    fclose(file);
    buf_release(&text);
}

static thole_status holds(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options, .queue = THOLE_STR("nobody")};
    return thole_await(ctx, thole_call_with(ctx, THOLE_STR("hold"), input, &options), ret_output);
}

static thole_status hold(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    *ret_output = input;
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {{"holds", holds, 0}};
static const thole_activity_options in_a_process = {.size = sizeof in_a_process,
                                                    .isolation = THOLE_ISOLATION_PROCESS};
static const thole_activity_entry activities[] = {{"hold", hold, NULL}, {"apart", hold, &in_a_process}};
static const thole_program program = {.size = sizeof program,
                                      .name = "arrives",
                                      .orchestrations = orchestrations,
                                      .orchestrations_len = 1,
                                      .activities = activities,
                                      .activities_len = ARRAY_LEN(activities)};

/* The line of --help that a flag has; NULL: there is none. */
static const char *help_of(const char *help, const char *flag)
{
    char want[GIVEN];
    snprintf(want, sizeof want, "--%s ", flag);
    const char *const at = strstr(help, want);
    return at;
}

/* The option's environment variable, by --help; false: it has none. */
static bool environment_of(const char *help, const char *flag, char ret[GIVEN])
{
    const char *const line = help_of(help, flag);
    const char *const end = line == NULL ? NULL : strchr(line, '\n');
    const char *const at = line == NULL ? NULL : strchr(line, '$');
    if (at == NULL || end == NULL || at > end)
        return false;
    snprintf(ret, GIVEN, "%.*s", (int)strspn(at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), at + 1);
    return true;
}

static const char *help_text(void)
{
    static struct buf text;
    if (text.len == 0) {
        buf_init(&text, 64 * 1024);
        host_command_help(&program, &text);
    }
    return buf_cstr(&text);
}

/* Where the standard output of a replay goes. */
static const char *output_path(void)
{
    static char path[SERVER_PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/output", stack.dir);
    return path;
}

/* Starts the program with the options of a run: as flags, or where there are such as variables. */
static pid_t start(const char *role, enum run run, bool by_environment, const char *const *more)
{
    static char words[ARRAY_LEN(table) + 8][ARRIVED_BYTES];
    char *argv[ARRAY_LEN(words) + 1];
    char value[ARRIVED_BYTES], name[GIVEN];
    int argc = 0;
    snprintf(words[argc++], sizeof words[0], "arrives");
    snprintf(words[argc++], sizeof words[0], "%s", role);
    fflush(NULL);
    pid_t const pid = fork();
    if (pid != 0)
        return pid;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct option_arrival *row = &table[i];
        if (row->run != run || (i > 0 && strcmp(row->flag, table[i - 1].flag) == 0))
            continue;
        fill(value, sizeof value, row->value == NULL ? "" : row->value, row);
        if (by_environment && row->value != NULL && environment_of(help_text(), row->flag, name))
            setenv(name, value, 1);
        else
            snprintf(words[argc++], sizeof words[0], "--%s%s%.150s", row->flag, row->value == NULL ? "" : "=",
                     value);
    }
    for (; *more != NULL; more++)
        snprintf(words[argc++], sizeof words[0], "%s", *more);
    for (int i = 0; i < argc; i++)
        argv[i] = words[i];
    argv[argc] = NULL;
    if (run == RUN_REPLAY && freopen(output_path(), "w", stdout) == NULL)
        _exit(126);
    execv("/proc/self/exe", argv);
    _exit(126);
}

static int end(pid_t pid)
{
    int status = 0;
    (void)kill(pid, SIGTERM);
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void check_rows(enum run run, const char *how)
{
    char place[ARRIVED_BYTES];
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (table[i].run != run || table[i].place == NULL)
            continue;
        fill(place, sizeof place, table[i].place, &table[i]);
        if (has_arrived(place, WAIT_MS))
            continue;
        fprintf(stderr, "\n  --%s, %s: \"%s\" has not arrived; what has:\n", table[i].flag, how, place);
        show_arrived(place);
        CU_FAIL("an option does not arrive");
    }
}

static void forget(void)
{
    arrivals->len = 0;
}

/* ---- tests ---- */

static const char *const nothing[] = {NULL};

static void test_each_has_a_row(void)
{
    const char *at = help_text();
    size_t options = 0;
    while ((at = strstr(at, "--")) != NULL && at < strstr(help_text(), "Durations:")) {
        const char *const line = at;
        size_t const len = strcspn(at += 2, " \n");
        bool found = line[-1] != ' '; /* a word of a sentence: "a third of --node-ttl" */
        const char *begin = line;
        while (begin > help_text() && begin[-1] != '\n')
            begin--;
        found = found || line - begin > 6;
        for (size_t i = 0; i < ARRAY_LEN(table) && !found; i++)
            found = strlen(table[i].flag) == len && strncmp(table[i].flag, at, len) == 0;
        if (!found)
            fprintf(stderr, "\n  --%.*s has no row here\n", (int)len, at);
        CU_ASSERT_TRUE(found);
        options += line - begin <= 6;
    }
    CU_ASSERT_TRUE(options >= 30);
}

static void check_first(bool by_environment)
{
    thole_client_options options;
    thole_client *client = NULL;
    const char *const how = by_environment ? "by its variable" : "by its flag";
    forget();
    pid_t const pid = start("run", RUN_FIRST, by_environment, nothing);
    CU_ASSERT_TRUE(has_arrived("worker_create.slots 7", WAIT_MS));
    thole_client_options_init(&options);
    options.ns = "arrives";
    CHECK_OK(thole_client_open(&options, &client, &stack.err), &stack.err);
    thole_status const started =
        thole_client_start(client, THOLE_STR("i"), THOLE_STR("holds"), THOLE_STR("x"), NULL, &stack.err);
    CU_ASSERT_TRUE(started == THOLE_OK || (by_environment && started == THOLE_CONFLICT));
    CU_ASSERT_TRUE(has_arrived("projector_store_orphans.older_than_ms 1100", WAIT_MS)); /* waits */
    CU_ASSERT_TRUE(has_arrived("nodes_put.pause_ms 700", WAIT_MS));
    thole_client_close(client);
    CU_ASSERT_EQUAL(end(pid), 0);
    check_rows(RUN_FIRST, how);
}

static void test_by_flags(void)
{
    check_first(false);
}

static void test_by_environment(void)
{
    check_first(true);
}

static void push(const char *subject)
{
    struct connection *connection = NULL;
    struct connection_options const options = {
        .url = stack.nats.url, .name = "push", .connect_timeout_ms = 2000, .request_timeout_ms = 2000};
    CHECK_OK(__real_connection_open(&options, &connection, &stack.err), &stack.err);
    CHECK_OK(connection_publish(connection, subject, NULL, 0, THOLE_STR("x"), &stack.err), &stack.err);
    CHECK_OK(connection_flush(connection, &stack.err), &stack.err);
    connection_close(connection);
}

/* The child of its supervisor. */
static pid_t serving(pid_t started)
{
    pid_t pids[4];
    return process_children(started, pids, ARRAY_LEN(pids)) > 0 ? pids[0] : 0;
}

/* Beside an engine that owns its share, one that owns all; beside a worker that hears pushes, one that does
 * not. */
static void test_switches(void)
{
    char first_hears[64], second_hears[64];
    static const char *const second[] = {"--namespace=arrives", "--node=second", "--slots=1", "--grace=1s",
                                         NULL};
    forget();
    pid_t const first_pid = start("run", RUN_FIRST, false, nothing);
    CU_ASSERT_TRUE(has_arrived("handlers_create.slots 7", WAIT_MS));
    pid_t const second_pid = start("run", RUN_SECOND, false, second);
    CU_ASSERT_TRUE(has_arrived("handlers_create.slots 1", WAIT_MS));
    check_rows(RUN_SECOND, "by its flag");
    CU_ASSERT_EQUAL(count_arrived("shard_send.own second "), PARTITIONS);
    snprintf(first_hears, sizeof first_hears, "cancel_notice_parse.pid %d", (int)serving(first_pid));
    snprintf(second_hears, sizeof second_hears, "cancel_notice_parse.pid %d", (int)serving(second_pid));
    push("thole.arrives.cancel.i.1");
    CU_ASSERT_TRUE(has_arrived(first_hears, WAIT_MS));
    CU_ASSERT_FALSE(has_arrived(second_hears, 300));
    CU_ASSERT_EQUAL(end(second_pid), 0);
    CU_ASSERT_EQUAL(end(first_pid), 0);
}

/* The first letter that a program writes which ends by itself. */
static void note_output(pid_t pid)
{
    siginfo_t info;
    (void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    FILE *const file = fopen(output_path(), "r");
    int const letter = file == NULL ? EOF : fgetc(file);
    if (file != NULL)
        fclose(file);
    arrived("stdout %c", letter == EOF ? '-' : letter);
}

/* These end by themselves, or are refused; what they were given has arrived all the same. */
static void test_short_ones(void)
{
    char path[SERVER_PATH_BYTES + 16];
    static const char *const fresh[] = {"--namespace=fresh", NULL};
    static const char *const same[] = {"--namespace=arrives", NULL};
    snprintf(path, sizeof path, "%s/history", stack.dir);
    int const fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CU_ASSERT_TRUE(fd >= 0);
    close(fd);
    static const struct {
        const char *role;
        enum run run;
        const char *const *more;
    } runs[] = {{"engine", RUN_CREDS, fresh},
                {"engine", RUN_REPLICAS, fresh},
                {"replay", RUN_REPLAY, same},
                {"replay", RUN_FILE, same}};
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        forget();
        pid_t const pid = start(runs[i].role, runs[i].run, false, runs[i].more);
        if (runs[i].run == RUN_REPLAY)
            note_output(pid);
        check_rows(runs[i].run, "by its flag");
        (void)end(pid);
    }
}

static const struct thole_test tests[] = {
    {"each has a row", test_each_has_a_row}, {"by flags", test_by_flags},
    {"by environment", test_by_environment}, {"switches", test_switches},
    {"short ones", test_short_ones},
};

int main(int argc, char **argv)
{
    char path[SERVER_PATH_BYTES + 16];
    if (getenv("ARRIVALS") != NULL) { /* a program of the table */
        arrivals_open(getenv("ARRIVALS"), false);
        return thole_main(argc, argv, &program);
    }
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    write_audit_key();
    snprintf(path, sizeof path, "%s/arrivals", stack.dir);
    arrivals_open(path, true);
    setenv("ARRIVALS", path, 1);
    unsetenv("THOLE_NAMESPACE");
    int const result = thole_run_suite("options_arrive", tests, ARRAY_LEN(tests));
    stack_stop(&stack);
    return result;
}
