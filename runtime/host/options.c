/* The one table of options: --help, the environment, the checks and docs all come from it. */
#include "api_prefix.h"
#include "environment.h"
#include "host_options.h"
#include "listen_address.h"
#include "message.h"
#include "shared_options.h"
#include "values.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define FIELD(member) OPTION_FIELD(struct host_options, member)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { SECOND = 1000, MINUTE = 60 * SECOND, DAY = 24 * 60 * MINUTE, MEBIBYTE = 1024 * 1024 };

static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
static const char *const formats[] = {"auto", "logfmt", "json", NULL};
static const char *const dumps[] = {"none", "full", NULL};
static const char *const outputs[] = {"table", "json", "jsonl", NULL};
static const char *const events_out[] = {"none", "emitted", "all", NULL}; /* enum events_out */
static const char *const events_mode[] = {"binary", "structured", NULL};  /* enum events_mode */

static const struct option_row shared_rows[] = {
    OPTION_ROW_CONFIG(OPTION_FIELD(struct host_options, config), .shown = "none"),
    OPTION_ROW_NATS(FIELD(nats_url)),
    OPTION_ROW_NATS_CREDS(FIELD(nats_creds), .shown = "none"),
    OPTION_ROW_NATS_CA(FIELD(nats_ca), .shown = "the system's"),
    OPTION_ROW_NATS_CERT(FIELD(nats_cert), .shown = "none"),
    OPTION_ROW_NATS_KEY(FIELD(nats_key), .shown = "none"),
    OPTION_ROW_NATS_SERVER_NAME(FIELD(nats_server_name), .shown = "the URL's host"),
    OPTION_ROW_NATS_INBOX(FIELD(nats_inbox)),
    OPTION_ROW_NATS_API_PREFIX(FIELD(nats_api_prefix)),
    OPTION_ROW_POSTGRES(FIELD(postgres), .readers = HOST_RUN | HOST_GATEWAY, .shown = "required",
                        .help = "libpq connection string or URI"),
    OPTION_ROW_NAMESPACE(FIELD(ns), .help = "namespace to serve"),
    {.flag = "node",
     .readers = HOST_RUN | HOST_GATEWAY | HOST_BINDER,
     .kind = OPTION_NAME,
     .env = "THOLE_NODE",
     .unit = "NAME",
     .shown = "host name and pid",
     FIELD(node),
     .help = "name of this process, unique among all that run"},
    {.flag = "log-level",
     .kind = OPTION_CHOICE,
     .env = "THOLE_LOG_LEVEL",
     .choices = levels,
     .fallback = "info",
     FIELD(log_level),
     .help = "what is logged to stderr"},
    {.flag = "log-format",
     .kind = OPTION_CHOICE,
     .env = "THOLE_LOG_FORMAT",
     .choices = formats,
     .fallback = "auto",
     FIELD(log_format),
     .help = "of these lines; auto: logfmt on a terminal, JSON otherwise"},
    {.flag = "core-dumps",
     .kind = OPTION_CHOICE,
     .env = "THOLE_CORE_DUMPS",
     .choices = dumps,
     .fallback = "none",
     FIELD(core_dumps_full),
     .help = "none, as they hold payloads and passwords; full: as the system makes them"},
    {.flag = "http",
     .readers = HOST_RUN | HOST_GATEWAY | HOST_BINDER,
     .kind = OPTION_TEXT,
     .env = "THOLE_HTTP_LISTEN",
     .unit = "[ADDRESS:]PORT",
     .shown = "none",
     FIELD(http),
     .help = "where /healthz, /readyz and /metrics are answered; a port alone: on 127.0.0.1"},
    OPTION_ROW_PAYLOAD_MAX(
        FIELD(payload_max), .readers = HOST_RUN | HOST_GATEWAY | HOST_REPLAY,
        .shown = "what is there, else 262144",
        .help = "largest input, output or failure text of a new namespace, in bytes; fixed afterwards"),
    {.flag = "stop-limit",
     .readers = HOST_RUN | HOST_GATEWAY,
     .kind = OPTION_DURATION,
     .env = "THOLE_STOP_LIMIT",
     .unit = "DURATION",
     .fallback = "30s",
     .max = DAY,
     FIELD(stop_limit_ms),
     .help = "how long running activities may continue after SIGTERM"},
};

static const struct option_row engine_rows[] = {
    {.flag = "partitions",
     .kind = OPTION_NUMBER,
     .env = "THOLE_PARTITIONS",
     .unit = "N",
     .shown = "what is there, else 8",
     .min = 1,
     .max = 4096,
     FIELD(partitions),
     .help = "partitions of a new namespace; fixed afterwards"},
    {.flag = "replicas",
     .kind = OPTION_NUMBER,
     .env = "THOLE_REPLICAS",
     .unit = "N",
     .shown = "what is there, else 1",
     .min = 1,
     .max = 5,
     FIELD(replicas),
     .help = "copies of each stream: 1, 3 or 5"},
    {.flag = "node-ttl",
     .kind = OPTION_DURATION,
     .env = "THOLE_NODE_TTL",
     .unit = "DURATION",
     .shown = "what is there, else 10s",
     .min = SECOND,
     .max = 10 * MINUTE,
     FIELD(node_ttl_ms),
     .help = "an engine without a heartbeat for that time counts as dead"},
    {.flag = "heartbeat",
     .kind = OPTION_DURATION,
     .env = "THOLE_HEARTBEAT",
     .unit = "DURATION",
     .shown = "a third of --node-ttl",
     .min = 100,
     .max = 10 * MINUTE,
     FIELD(heartbeat_ms),
     .help = "how often an engine says that it is alive"},
    {.flag = "clock-offset-max",
     .kind = OPTION_DURATION,
     .env = "THOLE_CLOCK_OFFSET_MAX",
     .unit = "DURATION",
     .fallback = "60s",
     .min = 0,
     .max = DAY,
     FIELD(clock_offset_max_ms),
     .help = "an engine whose clock differs from those of NATS and Postgres by more owns no partition; 0: it "
             "may"},
    {.flag = "sweep",
     .kind = OPTION_DURATION,
     .env = "THOLE_SWEEP",
     .unit = "DURATION",
     .fallback = "60s",
     .min = SECOND,
     .max = DAY,
     FIELD(sweep_ms),
     .help = "an activity that no worker renews for that time is queued again; at least two leases"},
    {.flag = "drift",
     .kind = OPTION_DURATION,
     .env = "THOLE_DRIFT",
     .unit = "DURATION",
     .fallback = "24h",
     .max = UINT64_C(365) * DAY,
     FIELD(drift_ms),
     .help = "how often rows in Postgres are compared with the histories, slowly; 0s: never"},
    {.flag = "audit-key",
     .env = "THOLE_AUDIT_KEY",
     .unit = "FILE,...",
     .shown = "none",
     FIELD(audit_key),
     .help = "signs checkpoints of the histories with the private keys in these files"},
    {.flag = "audit-every",
     .kind = OPTION_DURATION,
     .env = "THOLE_AUDIT_EVERY",
     .unit = "DURATION",
     .fallback = "10s",
     .min = 100,
     .max = DAY,
     FIELD(audit_ms),
     .help = "with --audit-key: a record is in a checkpoint after that time"},
    {.flag = "audit-records",
     .kind = OPTION_NUMBER,
     .env = "THOLE_AUDIT_RECORDS",
     .unit = "N",
     .fallback = "10000",
     .min = 1,
     .max = 1000000,
     FIELD(audit_records),
     .help = "with --audit-key: sooner, when a partition has so many records that no checkpoint has"},
    {.flag = "early-events",
     .kind = OPTION_DURATION,
     .env = "THOLE_EARLY_EVENTS",
     .unit = "DURATION",
     .fallback = "7d",
     .min = SECOND,
     .max = UINT64_C(3650) * DAY,
     FIELD(early_event_ms),
     .help = "how long events wait for an instance that is not started yet"},
    {.flag = "events",
     .kind = OPTION_CHOICE,
     .env = "THOLE_EVENTS",
     .unit = "WHICH",
     .fallback = "emitted",
     .choices = events_out,
     FIELD(events),
     .help = "CloudEvents: none; emitted, by code; all: also the lifecycle of instances"},
    {.flag = "events-mode",
     .kind = OPTION_CHOICE,
     .env = "THOLE_EVENTS_MODE",
     .unit = "MODE",
     .fallback = "binary",
     .choices = events_mode,
     FIELD(events_mode),
     .help = "how: binary, attributes as headers; structured, the whole event as JSON"},
    {.flag = "events-age",
     .kind = OPTION_DURATION,
     .env = "THOLE_EVENTS_AGE",
     .unit = "DURATION",
     .shown = "what is there, else they are not stored",
     .min = SECOND,
     .max = UINT64_C(3650) * DAY,
     FIELD(events_age_ms),
     .help = "makes the stream of CloudEvents, which keeps each for that time"},
    {.flag = "quarantine",
     .kind = OPTION_DURATION,
     .env = "THOLE_QUARANTINE",
     .unit = "DURATION",
     .fallback = "1h",
     .max = UINT64_C(3650) * DAY,
     FIELD(quarantine_ms),
     .help =
         "how long a poisoned activity waits for thole queue retry before it fails; 0s = it fails at once"},
    {.flag = "deletions-keep",
     .kind = OPTION_DURATION,
     .env = "THOLE_DELETIONS_KEEP",
     .unit = "DURATION",
     .fallback = "7d",
     .min = UINT64_C(3600) * SECOND,
     .max = UINT64_C(3650) * DAY,
     FIELD(deleted_keep_ms),
     .help = "how long it is remembered that an id was deleted; longer than anything repeats a request"},
    {.flag = "test-deletions-keep",
     .kind = OPTION_DURATION,
     .hidden = true,
     .unit = "DURATION",
     .fallback = "0s",
     .max = DAY,
     FIELD(test_deleted_keep_ms),
     .help = "the same, as short as a test needs it"},
    {.flag = "test-own-all",
     .kind = OPTION_SWITCH,
     .hidden = true,
     FIELD(own_all),
     .help = "own every partition, regardless of other engines"},
    {.flag = "engine-threads",
     .kind = OPTION_NUMBER,
     .env = "THOLE_ENGINE_THREADS",
     .unit = "N",
     .fallback = "0",
     .max = 256,
     FIELD(engine_threads),
     .help = "threads that run orchestrations; 0 = 2, but 1 where there are 2 cores or fewer"},
    {.flag = "parked-max",
     .kind = OPTION_NUMBER,
     .env = "THOLE_PARKED_MAX",
     .unit = "N",
     .fallback = "2000",
     .min = 1,
     .max = 30000,
     FIELD(parked_max),
     .help = "instances kept in memory for each partition"},
    {.flag = "parked-memory-max",
     .kind = OPTION_SIZE,
     .env = "THOLE_PARKED_MEMORY_MAX",
     .unit = "SIZE",
     .fallback = "384MiB",
     .min = MEBIBYTE,
     FIELD(parked_memory_max),
     .help = "memory that they take, of an engine that has all partitions"},
    {.flag = "early-memory-max",
     .kind = OPTION_SIZE,
     .env = "THOLE_EARLY_MEMORY_MAX",
     .unit = "SIZE",
     .fallback = "64MiB",
     .min = MEBIBYTE,
     FIELD(early_memory_max),
     .help = "memory of events that wait for their start, of all partitions"},
    {.flag = "burst-max",
     .kind = OPTION_NUMBER,
     .env = "THOLE_BURST_MAX",
     .unit = "N",
     .fallback = "64",
     .max = 1000,
     FIELD(burst_max),
     .help = "turns in a row of an orchestration that takes most of a partition's beside another; 0 = any"},
    {.flag = "executions-max",
     .kind = OPTION_NUMBER,
     .env = "THOLE_EXECUTIONS_MAX",
     .unit = "N",
     .fallback = "600",
     .max = 1000000,
     FIELD(executions_max),
     .help = "executions of one instance that continues as new which begin in a minute; 0 = no limit"},
    {.flag = "crash-limit",
     .kind = OPTION_NUMBER,
     .env = "THOLE_CRASH_LIMIT",
     .unit = "N",
     .fallback = "2",
     .min = 1,
     .max = 1000,
     FIELD(crash_limit),
     .help = "after so many crashes of its code an instance is Stuck"},
    {.flag = "turn-limit",
     .kind = OPTION_DURATION,
     .env = "THOLE_TURN_LIMIT",
     .unit = "DURATION",
     .fallback = "10s",
     .max = DAY,
     FIELD(turn_limit_ms),
     .help = "a turn that takes longer counts as a crash; 0s = no limit"},
    {.flag = "instance-memory-max",
     .readers = HOST_ENGINE | HOST_REPLAY,
     .kind = OPTION_SIZE,
     .env = "THOLE_INSTANCE_MEMORY_MAX",
     .unit = "SIZE",
     .fallback = "64MiB",
     .min = MEBIBYTE,
     FIELD(instance_memory_max),
     .help = "memory of one instance"},
};

static const struct option_row worker_rows[] = {
    {.flag = "queue",
     .kind = OPTION_NAME,
     .env = "THOLE_QUEUE",
     .unit = "NAME",
     .fallback = "default",
     FIELD(queue),
     .help = "queue to take activities from"},
    {.flag = "slots",
     .kind = OPTION_NUMBER,
     .env = "THOLE_SLOTS",
     .unit = "N",
     .fallback = "16",
     .min = 1,
     .max = 10000,
     FIELD(slots),
     .help = "activities that run at the same time"},
    {.flag = "lease",
     .readers = HOST_WORKER | HOST_GATEWAY,
     .kind = OPTION_DURATION,
     .env = "THOLE_LEASE",
     .unit = "DURATION",
     .shown = "what the queue has, else 30s",
     .min = 500,
     .max = DAY,
     FIELD(lease_ms),
     .help = "an activity whose worker does not renew for that time runs elsewhere"},
    {.flag = "renew-every",
     .readers = HOST_WORKER | HOST_GATEWAY,
     .kind = OPTION_DURATION,
     .env = "THOLE_RENEW_EVERY",
     .unit = "DURATION",
     .shown = "a third of the lease",
     .min = 50,
     .max = DAY,
     FIELD(renew_every_ms),
     .help = "how often a running activity's lease is renewed; at most half of the lease"},
    {.flag = "grace",
     .readers = HOST_WORKER | HOST_GATEWAY,
     .kind = OPTION_DURATION,
     .env = "THOLE_GRACE",
     .unit = "DURATION",
     .fallback = "10s",
     .max = DAY,
     FIELD(grace_ms),
     .help = "how long a cancelled activity may take to return"},
    {.flag = "poison-after",
     .readers = HOST_WORKER | HOST_GATEWAY,
     .kind = OPTION_NUMBER,
     .env = "THOLE_POISON_AFTER",
     .unit = "N",
     .fallback = "5",
     .max = 1000,
     FIELD(poison_after),
     .help = "after so many lost claims an activity is not run again; at least 2; 0 = no limit"},
    {.flag = "postgres-connections",
     .readers = HOST_GATEWAY,
     .kind = OPTION_NUMBER,
     .env = "THOLE_POSTGRES_CONNECTIONS",
     .unit = "N",
     .fallback = "16",
     .min = 2,
     .max = 1000,
     FIELD(postgres_connections),
     .help = "of a gateway: connections to Postgres that all of its sessions share"},
    {.flag = "queue-sessions",
     .readers = HOST_GATEWAY,
     .kind = OPTION_NUMBER,
     .env = "THOLE_QUEUE_SESSIONS",
     .unit = "N",
     .fallback = "250",
     .max = 1000,
     FIELD(queue_sessions),
     .help = "of a gateway: sessions that workers of one queue may have; 0 = as many as there are"},
    {.flag = "process-memory-max",
     .kind = OPTION_SIZE,
     .env = "THOLE_PROCESS_MEMORY_MAX",
     .unit = "SIZE",
     .shown = "none",
     .min = MEBIBYTE,
     FIELD(process_memory_max),
     .help = "address space of each process that runs activities, unless the activity has a lower limit"},
    {.flag = "process-env",
     .kind = OPTION_TEXT,
     .env = "THOLE_PROCESS_ENV",
     .unit = "NAME,...",
     .shown = "none",
     FIELD(process_env),
     .help = "variables that processes which run activities have beside those that all programs need; NAME* "
             "is all "
             "that begin so"},
    {.flag = "test-die-at",
     .readers = HOST_BINDER,
     .kind = OPTION_NUMBER,
     .hidden = true,
     .unit = "STEP",
     .fallback = "0",
     .max = 5,
     FIELD(bind_die_at),
     .help = "of a binder: kill -9 itself at that step of a message"},
    {.flag = "test-suppress-push",
     .readers = HOST_WORKER | HOST_GATEWAY,
     .kind = OPTION_SWITCH,
     .hidden = true,
     FIELD(suppress_push),
     .help = "ignore cancellation pushes"},
};

static const struct option_row replay_rows[] = {
    OPTION_ROW_ALL_HISTORIES(OPTION_FIELD(struct host_command, all)),
    OPTION_ROW_HISTORY_FILE(OPTION_FIELD(struct host_command, file)),
    OPTION_ROW_UNTIL(OPTION_FIELD(struct host_command, until)),
    OPTION_ROW_BREAK(OPTION_FIELD(struct host_command, stop)),
    {.flag = "threads",
     .kind = OPTION_NUMBER,
     .unit = "N",
     .shown = "one for each processor",
     .min = 1,
     .max = 64,
     OPTION_FIELD(struct host_command, threads),
     .help = "partitions that are replayed at the same time"},
    {.flag = "memory-max",
     .kind = OPTION_SIZE,
     .unit = "SIZE",
     .fallback = "1GiB",
     .min = MEBIBYTE,
     OPTION_FIELD(struct host_command, memory_max),
     .help =
         "memory of executions that are replayed; if more is needed histories are read in several passes"},
    OPTION_ROW_OUTPUT(OPTION_FIELD(struct host_command, output), .choices = outputs, .fallback = "table"),
};

struct general {
    bool help, version;
};
static const struct option_row general_rows[] = {
    {.flag = "help",
     .letter = 'h',
     .kind = OPTION_SWITCH,
     OPTION_FIELD(struct general, help),
     .help = "show this and stop"},
    {.flag = "version",
     .kind = OPTION_SWITCH,
     OPTION_FIELD(struct general, version),
     .help = "show the version of libthole and stop"},
};

/* The readers of rows, for tables whose rows do not name them. */
enum { SET_GENERAL, SET_SHARED, SET_ENGINE, SET_WORKER, SET_REPLAY, SETS };
static const struct option_set tables[SETS] = {
    [SET_GENERAL] = {general_rows, COUNT(general_rows), NULL, 0},
    [SET_SHARED] = {shared_rows, COUNT(shared_rows), NULL, 0},
    [SET_ENGINE] = {engine_rows, COUNT(engine_rows), NULL, HOST_ENGINE},
    [SET_WORKER] = {worker_rows, COUNT(worker_rows), NULL, HOST_WORKER},
    [SET_REPLAY] = {replay_rows, COUNT(replay_rows), NULL, HOST_REPLAY},
};

static const struct {
    const char *name;
    enum host_role role;
    const char *help;
} roles[] = {
    {"run", HOST_RUN, "engine and worker in one process"},
    {"engine", HOST_ENGINE, "runs orchestrations and owns partitions"},
    {"worker", HOST_WORKER, "runs activities"},
    {"gateway", HOST_GATEWAY, "lets workers and clients without a database take part"},
    {"binder", HOST_BINDER, "lets messages of streams start and signal instances; needs no database"},
    {"replay", HOST_REPLAY, "runs this code over recorded histories: ID..., --all or --file"},
};

const char *host_role_name(enum host_role role)
{
    for (size_t i = 0; i < COUNT(roles); i++)
        if (roles[i].role == role)
            return roles[i].name;
    return "unknown";
}

/* Host name, pid and a random part: no two processes share it, and people can tell where it runs. */
static thole_status make_node_name(char ret[NODE_NAME_BYTES], thole_error *reterr)
{
    char host[33] = "";
    uint32_t salt;
    (void)gethostname(host, sizeof host - 1); /* cut is fine */
    for (char *c = host; *c != '\0'; c++)
        if (strchr("-_", *c) == NULL && !(*c >= '0' && *c <= '9') && !(*c >= 'a' && *c <= 'z') &&
            !(*c >= 'A' && *c <= 'Z'))
            *c = '-';
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no random bytes: %s", strerror(errno));
    int const n =
        snprintf(ret, NODE_NAME_BYTES, "%s-%ld-%08x", host[0] == '\0' ? "node" : host, (long)getpid(), salt);
    assert(n > 0 && n < NODE_NAME_BYTES);
    return THOLE_OK;
}

static thole_status check_inbox(const struct host_options *options, thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK};
    if (options->nats_inbox == NULL || inbox_prefix_check(options->nats_inbox, &why) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "--nats-inbox: %s", why.text);
}

static thole_status check_api_prefix(const struct host_options *options, thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK};
    if (api_prefix_check(options->nats_api_prefix, &why) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "--nats-api-prefix: %s", why.text);
}

static thole_status check_http(const struct host_options *options, thole_error *reterr)
{
    struct sockaddr_storage address;
    thole_error why = {.status = THOLE_OK};
    if (options->http == NULL || options->http[0] == '\0' ||
        listen_address_parse(options->http, &address, &why) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "--http: %s", why.text);
}

static thole_status check_process_env(const struct host_options *options, thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK};
    if (environment_check(options->process_env, &why) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "--process-env: %s", why.text);
}

/* Checks options that depend on each other. */
static thole_status check_together(const struct host_command *command, thole_error *reterr)
{
    const struct host_options *options = &command->options;
    enum host_role const role = command->role;
    THOLE_TRY(check_inbox(options, reterr));
    THOLE_TRY(check_api_prefix(options, reterr));
    THOLE_TRY(check_http(options, reterr));
    THOLE_TRY(check_process_env(options, reterr));
    if (role == HOST_REPLAY && (command->stop || command->until != NULL) &&
        (command->all || command->until == NULL))
        return thole_fail(reterr, THOLE_INVALID,
                          command->all ? "--until is of one history: ID, or --file"
                                       : "--break needs --until EVENT");
    if (role == HOST_REPLAY)
        return (command->words_len > 0) + command->all + (command->file != NULL) == 1
                   ? THOLE_OK
                   : thole_fail(reterr, THOLE_INVALID, "what is to be replayed? IDs, --all or --file");
    if (role != HOST_BINDER && (options->postgres == NULL || options->postgres[0] == '\0'))
        return thole_fail(reterr, THOLE_INVALID,
                          "--postgres is missing: give it a libpq connection string such as "
                          "postgres://thole@localhost/thole, or set THOLE_POSTGRES");
    if (options->nats_url[0] == '\0')
        return thole_fail(reterr, THOLE_INVALID,
                          "--nats is empty: give it a URL such as nats://127.0.0.1:4222");
    if ((role & HOST_ENGINE) != 0 && (options->replicas == 2 || options->replicas == 4))
        return thole_fail(reterr, THOLE_INVALID, "--replicas: %u is not 1, 3 or 5", options->replicas);
    if (options->poison_after == 1)
        return thole_fail(reterr, THOLE_INVALID,
                          "--poison-after: with 1 activities that only ran beside would be poisoned; give at "
                          "least 2, or 0 for no limit");
    if (options->node_ttl_ms != 0 && options->heartbeat_ms > options->node_ttl_ms / 2)
        return thole_fail(
            reterr, THOLE_INVALID,
            "--heartbeat: must be at most half of --node-ttl, or one lost heartbeat is a death");
    return THOLE_OK;
}

/* The environment and a file may be those of several roles; a command line is one role's. */
static thole_status check_readers(const struct option_set sets[SETS], const struct option_given *given,
                                  enum host_role role, thole_error *reterr)
{
    char names[96] = "";
    unsigned readers = 0;
    const struct option_row *const row = options_unread(sets, SETS, given, role, &readers);
    if (row == NULL)
        return THOLE_OK;
    for (size_t i = 0, len = 0; i < COUNT(roles); i++)
        if ((roles[i].role & readers) != 0)
            len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", len == 0 ? "" : ", ",
                                    roles[i].name);
    return thole_fail(reterr, THOLE_INVALID, "--%s is an option of %s: %s does not read it", row->flag, names,
                      host_role_name(role));
}

static thole_status parse_role(const char *word, enum host_role *ret, thole_error *reterr)
{
    const char *names[COUNT(roles)];
    for (size_t i = 0; i < COUNT(roles); i++) {
        names[i] = roles[i].name;
        if (strcmp(word, names[i]) == 0) {
            *ret = roles[i].role;
            return THOLE_OK;
        }
    }
    const char *near = word_suggest(word, names, COUNT(roles));
    if (near != NULL)
        return thole_fail(reterr, THOLE_INVALID, "there is no role \"%.40s\"; did you mean %s?", word, near);
    return thole_fail(
        reterr, THOLE_INVALID,
        "there is no role \"%.40s\"; the roles are run, engine, worker, gateway, binder and replay", word);
}

/* Options may stand before and after the role. */
thole_status host_command_parse(int argc, char **argv, struct host_command *ret, thole_error *reterr)
{
    struct general general = {.help = false};
    struct option_set sets[SETS];
    int first;
    struct option_given given;
    memset(ret, 0, sizeof *ret);
    memcpy(sets, tables, sizeof sets);
    sets[SET_GENERAL].target = &general;
    sets[SET_SHARED].target = sets[SET_ENGINE].target = sets[SET_WORKER].target = &ret->options;
    sets[SET_REPLAY].target = ret;
    THOLE_TRY(options_defaults(sets, SETS, reterr));
    THOLE_TRY(options_read(sets, SETS, false, argc, argv, &first, &given, reterr));
    ret->help = general.help;
    ret->version = general.version;
    if (ret->help || ret->version)
        return THOLE_OK;
    ret->exposed.status = options_refuse_secrets(sets, SETS, &given, &ret->exposed);
    if (ret->options.config != NULL && ret->options.config[0] != '\0')
        THOLE_TRY(option_file_read(sets, SETS, ret->options.config, &given, &ret->config, reterr));
    if (first >= argc)
        return thole_fail(reterr, THOLE_INVALID,
                          "a role is missing: run, engine, worker, gateway, binder or replay");
    THOLE_TRY(parse_role(argv[first], &ret->role, reterr));
    THOLE_TRY(check_readers(sets, &given, ret->role, reterr));
    ret->words = argv + first + 1;
    ret->words_len = argc - first - 1;
    if (ret->role != HOST_REPLAY && ret->words_len > 0)
        return thole_fail(reterr, THOLE_INVALID, "\"%.40s\" is one word too many", ret->words[0]);
    if (ret->options.node == NULL) {
        THOLE_TRY(make_node_name(ret->node, reterr));
        ret->options.node = ret->node;
    }
    return check_together(ret, reterr);
}

void host_command_free(struct host_command *command)
{
    option_file_free(&command->config);
}

void host_role_help(enum host_role role, const char *command, struct buf *to)
{
    for (size_t i = 0; i < COUNT(roles); i++)
        if (roles[i].role == role)
            buf_printf(to, "usage: %s %s [OPTION]...\n\nThis role %s.\n", command, roles[i].name,
                       roles[i].help);
    buf_text(to, "\nOptions:\n");
    options_help(&tables[SET_GENERAL], role, to);
    options_help(&tables[SET_SHARED], role, to);
    if (role == HOST_GATEWAY) {
        buf_text(to, "\nOptions of a worker, for its sessions:\n");
        options_help(&tables[SET_WORKER], role, to);
    }
    buf_text(to, "\nDurations: 500ms, 10s, 2m, 1h. Sizes: 262144, 256KiB, 64MiB.\n");
}

void host_command_help(const thole_program *program, struct buf *to)
{
    buf_printf(to, "usage: %s ROLE [OPTION]...\n\nRoles:\n", program->name);
    for (size_t i = 0; i < COUNT(roles); i++)
        buf_printf(to, "  %-8s %s\n", roles[i].name, roles[i].help);
    buf_text(to, "\nOptions:\n");
    options_help(&tables[SET_GENERAL], 0, to);
    options_help(&tables[SET_SHARED], 0, to);
    buf_text(to, "\nEngine:\n");
    options_help(&tables[SET_ENGINE], 0, to);
    buf_text(to, "\nWorker:\n");
    options_help(&tables[SET_WORKER], 0, to);
    buf_text(to, "\nReplay:\n");
    options_help(&tables[SET_REPLAY], 0, to);
    buf_text(to, "\nDurations: 500ms, 10s, 2m, 1h. Sizes: 262144, 256KiB, 64MiB.\n\nOrchestrations:");
    for (size_t i = 0; i < program->orchestrations_len; i++)
        buf_printf(to, " %s", program->orchestrations[i].name);
    buf_text(to, "\nActivities:");
    for (size_t i = 0; i < program->activities_len; i++)
        buf_printf(to, " %s", program->activities[i].name);
    buf_printf(to, "\n\nExample: %s run --nats nats://127.0.0.1:4222 --postgres postgres://localhost/thole\n",
               program->name);
}
