/* Options of the roles engine, worker and run. Each has a flag, an environment variable and a default. */
#ifndef THOLE_OPTIONS_H
#define THOLE_OPTIONS_H
#include "log.h"
#include "thole/program.h"

struct forkserver;
struct metrics;
struct remote_handlers;

/* Asked while a role starts: whether it is to stop instead of waiting for its servers. NULL: never. */
struct stop_check {
    bool (*requested)(void *arg);
    void *arg;
};
static inline bool stop_is_requested(const struct stop_check *stop)
{
    return stop != NULL && stop->requested(stop->arg);
}

struct host_options {
    /* both roles */
    const char *config;           /* --config      THOLE_CONFIG      none; YAML file with any of these */
    const char *nats_url;         /* --nats        THOLE_NATS_URL    nats://127.0.0.1:4222 */
    const char *nats_creds;       /* --nats-creds  THOLE_NATS_CREDS  none */
    const char *nats_ca;          /* --nats-ca     THOLE_NATS_CA     the system's authorities */
    const char *nats_cert;        /* --nats-cert   THOLE_NATS_CERT   none */
    const char *nats_key;         /* --nats-key    THOLE_NATS_KEY    none */
    const char *nats_server_name; /* --nats-server-name  THOLE_NATS_SERVER_NAME  the URL's host */
    const char *nats_api_prefix;  /* --nats-api-prefix  THOLE_NATS_API_PREFIX  NULL: $JS.API */
    const char *nats_inbox;       /* --nats-inbox  THOLE_NATS_INBOX  NULL: that of the role */
    const char *inbox_role;       /* no option: whose own inbox a worker has; NULL: worker */
    const char *postgres;         /* --postgres    THOLE_POSTGRES    required */
    const char *ns;               /* --namespace   THOLE_NAMESPACE   default */
    const char
        *node; /* --node        THOLE_NODE        host name, pid and a random part; [A-Za-z0-9_-]{1,64} */
    enum log_level log_level;   /* --log-level THOLE_LOG_LEVEL  info */
    enum log_format log_format; /* --log-format  THOLE_LOG_FORMAT  auto */
    bool core_dumps_full;       /* --core-dumps  THOLE_CORE_DUMPS  none | full */
    const char *http;           /* --http        THOLE_HTTP_LISTEN  none; [ADDRESS:]PORT */
    uint64_t payload_max;       /* --payload-max THOLE_PAYLOAD_MAX the present value, else 262144; bytes */
    uint64_t
        stop_limit_ms; /* --stop-limit  THOLE_STOP_LIMIT  30s: running activities may finish for so long */
    /* engine */
    uint32_t partitions;          /* --partitions THOLE_PARTITIONS the present value, else 8 */
    uint32_t replicas;            /* --replicas THOLE_REPLICAS the present value, else 1 */
    uint64_t node_ttl_ms;         /* --node-ttl THOLE_NODE_TTL the present value, else 10s */
    uint64_t clock_offset_max_ms; /* --clock-offset-max THOLE_CLOCK_OFFSET_MAX 60s; 0: any */
    uint64_t heartbeat_ms;        /* --heartbeat       THOLE_HEARTBEAT       a third of the node ttl */
    uint32_t engine_threads;      /* --engine-threads  THOLE_ENGINE_THREADS  0: by the cores */
    uint64_t sweep_ms; /* --sweep THOLE_SWEEP 60s: activities that no worker reports on are queued again */
    uint64_t drift_ms; /* --drift THOLE_DRIFT 24h: how often rows are compared with histories; 0 = never */
    const char *audit_key;    /* --audit-key THOLE_AUDIT_KEY none; files of private keys, with commas */
    uint64_t audit_ms;        /* --audit-every THOLE_AUDIT_EVERY 10s: a record has a checkpoint by then */
    uint64_t audit_records;   /* --audit-records THOLE_AUDIT_RECORDS 10000: or when there are so many */
    uint64_t early_event_ms;  /* --early-events THOLE_EARLY_EVENTS 7d */
    uint64_t deleted_keep_ms; /* --deletions-keep THOLE_DELETIONS_KEEP 7d: how long deletions are kept */
    uint64_t test_deleted_keep_ms; /* --test-deletions-keep: in its place; 0: not given */
    int events;                    /* --events THOLE_EVENTS emitted; an enum events_out: none, emitted, all */
    int events_mode;        /* --events-mode THOLE_EVENTS_MODE binary; or structured: an enum events_mode */
    uint64_t events_age_ms; /* --events-age THOLE_EVENTS_AGE the present value, else events are not stored */
    uint64_t quarantine_ms; /* --quarantine THOLE_QUARANTINE 1h: then what is poisoned fails; 0 = at once */
    uint64_t
        parked_max; /* --parked-max      THOLE_PARKED_MAX      2000 parked instances for each partition */
    uint64_t
        parked_memory_max; /* --parked-memory-max THOLE_PARKED_MEMORY_MAX 384 MiB for all partitions, bytes */
    uint64_t burst_max; /* --burst-max THOLE_BURST_MAX 64 turns of a busy orchestration before it rests; 0: it
                           does not */
    uint64_t
        early_memory_max; /* --early-memory-max THOLE_EARLY_MEMORY_MAX 64 MiB for all partitions, bytes */
    uint64_t
        executions_max; /* --executions-max THOLE_EXECUTIONS_MAX 600 a minute of one instance; 0: no limit */
    uint64_t
        crash_limit; /* --crash-limit THOLE_CRASH_LIMIT 2: an instance whose code crashes so often is Stuck */
    uint64_t turn_limit_ms; /* --turn-limit  THOLE_TURN_LIMIT  10s: a turn that takes longer is a crash; 0 =
                               none */
    uint64_t instance_memory_max; /* --instance-memory-max THOLE_INSTANCE_MEMORY_MAX  64 MiB, bytes */
    /* worker */
    const char *queue;             /* --queue       THOLE_QUEUE       default */
    uint32_t slots;                /* --slots       THOLE_SLOTS       16 */
    uint64_t lease_ms;             /* --lease       THOLE_LEASE       what the queue has, else 30s */
    uint64_t renew_every_ms;       /* --renew-every THOLE_RENEW_EVERY  0: a third of the lease */
    uint64_t grace_ms;             /* --grace       THOLE_GRACE       10s */
    uint32_t postgres_connections; /* --postgres-connections THOLE_POSTGRES_CONNECTIONS 16; of a gateway */
    uint32_t
        queue_sessions;    /* --queue-sessions THOLE_QUEUE_SESSIONS 250; of a gateway; 0: as many as it has */
    uint32_t poison_after; /* --poison-after THOLE_POISON_AFTER 5 lost claims; at least 2; 0 = never */
    uint64_t
        process_memory_max;  /* --process-memory-max THOLE_PROCESS_MEMORY_MAX  none; bytes of address space */
    const char *process_env; /* --process-env THOLE_PROCESS_ENV none; names of variables, with commas */
    bool own_all; /* --test-own-all: own every partition, regardless of other engines; for tests, not in
                     --help */
    struct forkserver
        *forkserver;           /* no option: for activities that run in processes; NULL = there are none */
    struct row_pool *row_pool; /* no option: connections to Postgres that workers share; NULL = own ones */
    struct crash_reporter *crash_reporter; /* no option: of this worker; NULL = there is none */
    struct crash_page
        *crash_page;         /* no option: where this engine notes what it runs; NULL = in one of its own */
    struct metrics *metrics; /* no option: what this process counts; NULL = nothing */
    const struct remote_handlers
        *remote; /* no option: who runs this worker's activities; NULL = its threads */
    uint32_t
        bind_die_at; /* --test-die-at: kill -9 itself at that step of a message; for tests, not in --help */
    bool suppress_push; /* --test-suppress-push: ignore cancellation pushes; for tests, not in --help */
};
#endif
