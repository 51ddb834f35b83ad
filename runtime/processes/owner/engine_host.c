/* The engine role: connect, verify, migrate, start the threads; and the reverse. */
#include "audit_job.h"
#include "drift_job.h"
#include "engine.h"
#include "engine_clock.h"
#include "engine_state.h"
#include "inbox_prefix.h"
#include "loader.h"
#include "lookout.h"
#include "membership.h"
#include "memory.h"
#include "namespace_check.h"
#include "postgres.h"
#include "queue_maker.h"
#include "remover.h"
#include "served_job.h"
#include "source_lines.h"
#include "store.h"
#include "subject.h"
#include "watchdog.h"
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
    CONNECT_TIMEOUT_MS = 5000,
    REQUEST_TIMEOUT_MS = 5000,
    FIRST_RETRY_MS = 100,
    NAP_MS = 50,
    LOADER_THREADS = 2,
    CLEANER_THREADS = 8, /* a look is up to a second of round trips: partitions are looked at side by side */
    /* Of the connection for queries. Each loss costs what was being received of one message, which nats.c
     * forgets: at most 8 a minute. */
    QUERIES_PAUSE_MAX_MS = 15000,
};

static void engine_host_on_state(void *arg, bool connected, uint64_t epoch)
{
    struct engine_host *engine = arg;
    nats_watch_state(&engine->nats, connected);
    (void)epoch;
    if (!atomic_load(&engine->ready))
        return;
    for (size_t i = 0; i < engine->shards_len; i++)
        shard_tell_link(&engine->shards[i], connected, true);
}

/* NATS closes a connection whose messages it cannot write as fast as they come. */
static void on_services_state(void *arg, bool connected, uint64_t epoch)
{
    struct engine_host *const engine = arg;
    uint64_t const other = connection_epoch(engine->connection);
    log_line(LOG_LEVEL_DEBUG, "query", "NATS connection for queries %s", connected ? "connected" : "lost");
    (void)epoch;
    if (!connected)
        engine->services_lost = other;
    else if (atomic_load(&engine->ready) && engine->services_lost != 0 && engine->services_lost == other)
        log_limits_line(
            engine->lines, clock_monotonic_ms(), LINE_QUERIES_CUT, NULL,
            "the connection for queries was lost, and no other: NATS closes it when more is asked of "
            "this engine than it reads. It is made again, after up to %d s when that happens again and "
            "again; what is "
            "asked meanwhile has no answer, turns go on",
            QUERIES_PAUSE_MAX_MS / 1000);
}

/* Outages of a shard's connection are mostly the server's, and the engine's connection logs them. */
static void on_shard_state(void *arg, bool connected, uint64_t epoch)
{
    struct shard *const shard = arg;
    log_line(LOG_LEVEL_DEBUG, "engine", "NATS connection of shard %u %s", shard->index,
             connected ? "connected" : "lost");
    (void)epoch;
    if (atomic_load(&shard->engine->ready))
        shard_tell_link(shard, connected, false);
}

static void engine_host_on_trouble(void *arg, enum connection_trouble trouble, const thole_error *error)
{
    struct engine_host *const engine = arg;
    nats_watch_trouble(&engine->nats, trouble, error);
}

static void on_shard_trouble(void *arg, enum connection_trouble trouble, const thole_error *error)
{
    const struct shard *const shard = arg;
    nats_watch_trouble(&shard->engine->nats, trouble, error);
}

/* Only while starting, when a server is not reachable. */
static bool engine_host_sleep(uint64_t ms, const struct stop_check *stop)
{
    for (uint64_t slept = 0; slept < ms; slept += NAP_MS) {
        if (stop_is_requested(stop))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
    }
    return true;
}

typedef thole_status start_fn(struct engine_host *engine, thole_error *reterr);

static thole_status look_at_rows(struct engine_host *engine, thole_error *reterr);
static thole_status engine_host_migrate(struct engine_host *engine, thole_error *reterr);

static void engine_host_count_failed_step(struct engine_host *engine, start_fn *step, thole_status status)
{
    if (step == engine_host_migrate || step == look_at_rows)
        metric_count(engine->nats.cells, METRIC_POSTGRES_ERRORS, metric_error_class(status), 1);
    else
        nats_watch_failed(&engine->nats, status);
}

/* Repeats the step until it succeeds, is refused, or the program must stop. An outage is not a failure. */
static thole_status engine_host_insist(struct engine_host *engine, start_fn *step,
                                       const struct stop_check *stop, thole_error *reterr)
{
    uint64_t retry_ms = FIRST_RETRY_MS;
    for (;;) {
        thole_error err = {0};
        thole_status const status = step(engine, &err);
        if (status != THOLE_OK)
            engine_host_count_failed_step(engine, step, status);
        if (status != THOLE_UNAVAILABLE) {
            if (status != THOLE_OK && reterr != NULL)
                *reterr = err;
            return status;
        }
        log_line(LOG_LEVEL_WARN, "engine", "%s; trying again in %llu ms", err.text,
                 (unsigned long long)retry_ms);
        if (!engine_host_sleep(retry_ms, stop))
            return thole_fail(reterr, THOLE_CANCELLED, "stopped while starting");
        retry_ms = retry_ms * 2 < RETRY_MS_MAX ? retry_ms * 2 : RETRY_MS_MAX;
    }
}

struct own_connection {
    const char *name;
    connection_state_fn *changed;
    connection_trouble_fn *trouble;
    void *arg;
    uint64_t lost_pause_max_ms;
};

static thole_status engine_host_connect(const struct engine_host *engine, const struct own_connection *own,
                                        struct connection **ret, thole_error *reterr)
{
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    struct inbox_owner const owner = {.ns = engine->options.ns, .role = "engine"};
    struct connection_options const options = {
        .url = engine->options.nats_url,
        .creds = engine->options.nats_creds,
        .ca = engine->options.nats_ca,
        .cert = engine->options.nats_cert,
        .key = engine->options.nats_key,
        .server_name = engine->options.nats_server_name,
        .inbox = inbox_prefix_or_own(engine->options.nats_inbox, &owner, inbox),
        .api_prefix = engine->options.nats_api_prefix,
        .name = own->name,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .request_timeout_ms = REQUEST_TIMEOUT_MS,
        .lost_pause_max_ms = own->lost_pause_max_ms,
        .on_state = own->changed,
        .on_trouble = own->trouble,
        .arg = own->arg};
    return connection_open(&options, ret, reterr);
}

static thole_status connect_nats(struct engine_host *engine, thole_error *reterr)
{
    struct own_connection const own = {.name = "thole-engine",
                                       .changed = engine_host_on_state,
                                       .trouble = engine_host_on_trouble,
                                       .arg = engine};
    return engine_host_connect(engine, &own, &engine->connection, reterr);
}

static thole_status connect_services(struct engine_host *engine, thole_error *reterr)
{
    struct own_connection const own = {.name = "thole-engine-queries",
                                       .changed = on_services_state,
                                       .trouble = engine_host_on_trouble,
                                       .arg = engine,
                                       .lost_pause_max_ms = QUERIES_PAUSE_MAX_MS};
    return engine_host_connect(engine, &own, &engine->services, reterr);
}

/* Those that are not connected yet. */
static thole_status connect_shards(struct engine_host *engine, thole_error *reterr)
{
    for (uint32_t i = 0; i < engine->shards_len; i++) {
        struct shard *const shard = &engine->shards[i];
        struct own_connection const own = {.name = "thole-engine-shard",
                                           .changed = on_shard_state,
                                           .trouble = on_shard_trouble,
                                           .arg = shard};
        if (shard->connection == NULL)
            THOLE_TRY(engine_host_connect(engine, &own, &shard->connection, reterr));
    }
    return THOLE_OK;
}

/* A record with one event of the largest payload, the position and the envelope must fit into one message. */
static thole_status check_sizes(const struct engine_host *engine, thole_error *reterr)
{
    struct partition_options options;
    partition_options_init(&options);
    options.payload_max = engine->options.payload_max;
    size_t const room = connection_max_payload(engine->connection);
    size_t const needed = partition_record_min(&options) + RECORD_HEADROOM;
    if (room >= needed)
        return THOLE_OK;
    return thole_fail(
        reterr, THOLE_UNSUPPORTED,
        "the NATS server takes messages of %zu bytes, but with payloads of %llu they may have %zu: set "
        "max_payload to that or more, or lower --payload-max",
        room, (unsigned long long)engine->options.payload_max, needed);
}

static thole_status set_up_streams(struct engine_host *engine, thole_error *reterr)
{
    struct topology_options const options = {.ns = engine->options.ns,
                                             .partitions = engine->options.partitions,
                                             .replicas = engine->options.replicas,
                                             .nodes_ttl_ms = engine->options.node_ttl_ms,
                                             .payload_max = engine->options.payload_max,
                                             .events_age_ms = engine->options.events_age_ms};
    if (options.payload_max != 0) /* before the namespace is created */
        THOLE_TRY(check_sizes(engine, reterr));
    THOLE_TRY(topology_ensure(engine->connection, &options, &engine->topology, reterr));
    engine->options.payload_max = engine->topology.payload_max;
    if (engine->topology.events_again)
        log_line(
            LOG_LEVEL_WARN, "engine",
            "stream THOLE_%s_EVENTS was gone and is made again: the CloudEvents in it that nobody had read "
            "are lost",
            engine->options.ns);
    if (engine->options.heartbeat_ms == 0)
        engine->options.heartbeat_ms = engine->topology.nodes_ttl_ms / 3;
    if (engine->options.heartbeat_ms > engine->topology.nodes_ttl_ms / 2)
        return thole_fail(
            reterr, THOLE_INVALID,
            "--heartbeat: must be at most half of the node TTL of %llu ms, or one lost heartbeat is a "
            "death",
            (unsigned long long)engine->topology.nodes_ttl_ms);
    return THOLE_OK;
}

static thole_status engine_host_open_postgres(const struct engine_host *engine, struct postgres **ret,
                                              thole_error *reterr)
{
    struct postgres_options const options = {.conninfo = engine->options.postgres,
                                             .ns = engine->options.ns,
                                             .application = "thole-engine",
                                             .connect_timeout_ms = CONNECT_TIMEOUT_MS,
                                             .statement_timeout_ms = 60 * 1000,
                                             .synchronous_commit = true};
    return postgres_open(&options, ret, reterr);
}

/* Tables that are there are brought up to date; where there are none, none are made before it is known that
 * NATS is the right one. */
static thole_status engine_host_read_rows(struct engine_host *engine, struct postgres *pg,
                                          thole_error *reterr)
{
    size_t applied = 0;
    THOLE_TRY(postgres_applied(pg, &applied, reterr));
    if (applied > 0)
        THOLE_TRY(postgres_migrate(pg, reterr));
    return namespace_check_rows(engine->check, pg, reterr);
}

static thole_status look_at_rows(struct engine_host *engine, thole_error *reterr)
{
    struct postgres *pg = NULL;
    THOLE_TRY(engine_host_open_postgres(engine, &pg, reterr));
    thole_status const status = engine_host_read_rows(engine, pg, reterr);
    postgres_close(pg);
    return status;
}

/* Before anything is made: is this the namespace that was there? */
static thole_status compare_sides(struct engine_host *engine, thole_error *reterr)
{
    const struct namespace_check *const check = engine->check;
    THOLE_TRY(namespace_check_nats(engine->check, engine->connection, NAMESPACE_BOUNDS, reterr));
    THOLE_TRY(namespace_check_refuse(check, reterr));
    if (check->verdict == NAMESPACE_EMPTIED && namespace_check_has_records(check))
        log_line(LOG_LEVEL_WARN, "engine",
                 "Postgres has no rows of namespace %s, identity %s: they are made from the histories of %u "
                 "partitions",
                 check->ns, check->nats.id.text[0] != '\0' ? check->nats.id.text : "none", check->partitions);
    return namespace_check_settle(check, engine->connection, reterr);
}

/* Another engine may have been first, with this NATS or with another one. */
static thole_status engine_host_adopt(const struct engine_host *engine, struct postgres *pg,
                                      thole_error *reterr)
{
    struct namespace_id const *const id = &engine->topology.id;
    struct namespace_id noted;
    THOLE_TRY(namespace_store_adopt(pg, id, &noted, reterr));
    if (!namespace_id_is(id, &noted))
        return thole_fail(
            reterr, THOLE_CONFLICT,
            "namespace %s: NATS has identity %s, Postgres has the rows of %s. Connect to the right "
            "servers; or give up those rows: thole recover --accept-loss %s --reason WHY",
            engine->options.ns, id->text, noted.text, noted.text);
    return THOLE_OK;
}

static thole_status engine_host_migrate(struct engine_host *engine, thole_error *reterr)
{
    struct postgres *pg = NULL;
    THOLE_TRY(engine_host_open_postgres(engine, &pg, reterr));
    thole_status status = postgres_migrate(pg, reterr);
    if (status == THOLE_OK)
        status = engine_host_adopt(engine, pg, reterr);
    postgres_close(pg);
    return status;
}

/* Prepares streams and tables, when the present ones are those of before. */
static thole_status engine_host_prepare(struct engine_host *engine, const struct stop_check *stop,
                                        thole_error *reterr)
{
    engine->check = namespace_check_create(engine->options.ns);
    thole_status status = engine_host_insist(engine, look_at_rows, stop, reterr);
    if (status == THOLE_OK)
        status = engine_host_insist(engine, compare_sides, stop, reterr);
    if (status == THOLE_OK)
        status = engine_host_insist(engine, set_up_streams, stop, reterr);
    if (status == THOLE_OK)
        status = engine_host_insist(engine, engine_host_migrate, stop, reterr);
    namespace_check_destroy(engine->check);
    engine->check = NULL;
    return status;
}

/* Each thread has transactions of its own: with two on two cores, which servers and workers share, there are
 * more of them, and they have fewer rows (docs/benchmarks.md). */
static size_t threads_by_cores(void)
{
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) <= 2 ? 1 : 2;
}

static void create_shards(struct engine_host *engine)
{
    size_t shards = engine->options.engine_threads > 0 ? engine->options.engine_threads : threads_by_cores();
    if (shards > engine->topology.partitions)
        shards = engine->topology.partitions;
    engine->shards = memory_array(shards, sizeof *engine->shards);
    engine->shards_len = shards;
    engine->options.crash_page->places_len = shards;
    for (size_t i = 0; i < shards; i++)
        shard_init(engine, (uint32_t)i, &engine->shards[i]);
}

static void on_clock(struct engine_host *engine)
{
    membership_clock_changed(engine->membership);
}

static thole_status start_threads(struct engine_host *engine, thole_error *reterr)
{
    THOLE_TRY(check_sizes(engine, reterr));
    if (getrandom(engine->salt_key.bytes, SALT_KEY_BYTES, 0) != SALT_KEY_BYTES)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no random bytes: %s", strerror(errno));
    engine->lines = log_limits_create(engine_lines, ENGINE_LINES, engine->topology.partitions);
    engine->needs = memory_array(engine->topology.partitions, sizeof *engine->needs);
    engine->committed = memory_array(engine->topology.partitions, sizeof *engine->committed);
    engine->lookout = lookout_create(engine);
    engine->states = partition_states_create(engine->topology.partitions);
    engine->membership = membership_create(engine);
    engine->clock = engine_clock_create(engine, on_clock);
    THOLE_TRY(engine_clock_start(engine->clock, reterr));
    THOLE_TRY(loader_start(engine, "thole-loader", LOADER_THREADS, &engine->loader, reterr));
    THOLE_TRY(loader_start(engine, "thole-cleaner", CLEANER_THREADS, &engine->cleaner, reterr));
    THOLE_TRY(remover_start(engine, &engine->remover, reterr));
    THOLE_TRY(source_lines_start(engine->services, &engine->source_lines, reterr));
    THOLE_TRY(served_job_start(engine, &engine->served, reterr));
    for (size_t i = 0; i < engine->shards_len; i++)
        THOLE_TRY(shard_start(&engine->shards[i], reterr));
    THOLE_TRY(watchdog_start(engine, &engine->watchdog, reterr));
    atomic_store(&engine->ready, true);
    /* changes of the connection while starting */
    engine_host_on_state(engine, connection_epoch(engine->connection) != 0, 0);
    for (size_t i = 0; i < engine->shards_len; i++)
        on_shard_state(&engine->shards[i], connection_epoch(engine->shards[i].connection) != 0, 0);
    return THOLE_OK;
}

/* thole.<ns>.ctl.<p>.epoch, as published: also records that the stream then refuses. */
static void engine_host_on_epoch(void *arg, const struct delivery *delivery)
{
    enum { TOKEN_PARTITION = 3, EPOCH_ARENA_MAX = 4 * 1024 * 1024 };
    struct engine_host *engine = arg;
    struct record record;
    struct arena arena;
    uint64_t p = 0;
    thole_slice const token = subject_nth(delivery->subject, TOKEN_PARTITION);
    for (size_t i = 0; i < token.len && i < 5; i++)
        p = p * 10 + (uint64_t)(token.ptr[i] - '0');
    arena_init(&arena, EPOCH_ARENA_MAX);
    if (p < engine->topology.partitions && record_decode(delivery->body, &arena, &record, NULL) == THOLE_OK &&
        record.kind == RECORD_EPOCH_OPENED) {
        struct shard_mail *mail = shard_mail_create(SHARD_EPOCH, (uint32_t)p, sizeof *mail);
        mail->epoch = record.epoch;
        shard_send(&engine->shards[p % engine->shards_len], mail);
        membership_opened(engine->membership, (uint32_t)p, record.node);
    }
    arena_release(&arena);
}

static thole_status watch_epochs(struct engine_host *engine, thole_error *reterr)
{
    char subject[THOLE_NAME_BYTES_MAX + 32];
    snprintf(subject, sizeof subject, "thole.%s.ctl.*.epoch", engine->topology.ns);
    return connection_subscribe(engine->connection, subject, engine_host_on_epoch, engine, &engine->epochs,
                                reterr);
}

static thole_status join_nodes(struct engine_host *engine, thole_error *reterr)
{
    return membership_run(engine->membership, reterr);
}

static thole_status engine_host_tell_state(struct engine_host *engine, thole_error *reterr)
{
    return engine_state_tell(engine, &engine->asks, reterr);
}

/* Before its first heartbeat: queue_wish.c relies on it. */
static thole_status make_queues(struct engine_host *engine, thole_error *reterr)
{
    return queue_maker_start(engine, &engine->queues, reterr);
}

static void warn_of_small_share(const struct engine_host *engine)
{
    enum { SHARE_MIN = 1024 * 1024 };
    uint64_t const all = engine->options.parked_memory_max, share = all / engine->topology.partitions;
    if (all > 0 && share < SHARE_MIN)
        log_line(
            LOG_LEVEL_WARN, "engine",
            "--parked-memory-max %" PRIu64 " is %" PRIu64
            " bytes for each of %u partitions: an instance that holds more is loaded again for each turn",
            all, share, engine->topology.partitions);
}

thole_status engine_host_start(const struct host_options *options, const thole_program *program,
                               const struct stop_check *stop, struct engine_host **ret, thole_error *reterr)
{
    assert(options->engine_threads <= CRASH_PLACES_MAX);
    struct engine_host *engine = memory_new(sizeof *engine);
    engine->options = *options;
    if (options->crash_page == NULL)
        engine->options.crash_page = engine->own_page = crash_page_create();
    if (engine->options.crash_page == NULL) {
        free(engine);
        return thole_fail(reterr, THOLE_NOMEM, "no memory for the engine");
    }
    engine->program = program;
    pthread_mutex_init(&engine->needs_lock, NULL);
    nats_watch_begin(&engine->nats, "engine", LOG_LEVEL_WARN, options->metrics);
    thole_status status = audit_job_create(engine, &engine->audit, reterr);
    if (status == THOLE_OK)
        status = engine_host_insist(engine, connect_nats, stop, reterr);
    if (status == THOLE_OK)
        status = engine_host_insist(engine, connect_services, stop, reterr);
    if (status == THOLE_OK)
        status = engine_host_prepare(engine, stop, reterr);
    if (status == THOLE_OK)
        create_shards(engine);
    if (status == THOLE_OK)
        status = engine_host_insist(engine, connect_shards, stop, reterr);
    if (status == THOLE_OK)
        status = start_threads(engine, reterr);
    if (status == THOLE_OK)
        status = engine_host_insist(engine, watch_epochs, stop, reterr);
    if (status == THOLE_OK)
        status = engine_host_insist(engine, make_queues, stop, reterr);
    if (status == THOLE_OK)
        status = engine_host_insist(engine, join_nodes, stop, reterr);
    if (status == THOLE_OK)
        status = engine_host_insist(engine, engine_host_tell_state, stop, reterr);
    if (status == THOLE_OK)
        status = lookout_start(engine->lookout, reterr);
    if (status == THOLE_OK)
        status = drift_job_start(engine, &engine->drift, reterr);
    if (status == THOLE_OK)
        status = audit_job_start(engine->audit, reterr);
    if (status != THOLE_OK) {
        engine_host_stop(engine);
        return status;
    }
    warn_of_small_share(engine);
    log_line(LOG_LEVEL_INFO, "engine", "node %s serves namespace %s: %u partitions, %zu orchestrations",
             options->node, engine->topology.ns, engine->topology.partitions, program->orchestrations_len);
    *ret = engine;
    return THOLE_OK;
}

void engine_host_stop(struct engine_host *engine)
{
    if (engine == NULL)
        return;
    uint64_t statements = 0;
    drift_job_stop(engine->drift);
    engine_clock_stop(engine->clock);
    membership_quiet(engine->membership);
    for (size_t i = 0; i < engine->shards_len; i++)
        if (engine->shards[i].store != NULL)
            statements += store_statements(engine->shards[i].store);
    atomic_store(&engine->ready, false);
    for (size_t i = 0; i < engine->shards_len; i++)
        shard_stop(&engine->shards[i]);
    lookout_end(engine->lookout);
    served_job_end(engine->served);
    watchdog_stop(engine->watchdog);
    subscription_close(engine->epochs);
    subscription_close(engine->asks);
    queue_maker_stop(engine->queues);
    membership_stop(engine->membership);
    audit_job_stop(engine->audit); /* covers the shards' last records; nobody waits for it */
    loader_stop(engine->loader);
    loader_stop(engine->cleaner);
    remover_stop(engine->remover);
    source_lines_stop(engine->source_lines);
    for (size_t i = 0; i < engine->shards_len; i++)
        shard_release(&engine->shards[i]);
    engine_clock_destroy(engine->clock);
    connection_close(engine->services);
    connection_close(engine->connection);
    nats_watch_end(&engine->nats);
    for (uint32_t p = 0; engine->needs != NULL && p < engine->topology.partitions; p++)
        free(engine->needs[p].names);
    free(engine->needs);
    free(engine->committed);
    lookout_release(engine->lookout);
    served_job_release(engine->served);
    partition_states_destroy(engine->states);
    free(engine->shards);
    pthread_mutex_destroy(&engine->needs_lock);
    if (engine->lines != NULL)
        log_limits_say_totals(engine->lines, "engine");
    log_limits_destroy(engine->lines);
    crash_page_destroy(engine->own_page);
    log_line(LOG_LEVEL_INFO, "engine", "stopped: postgres_statements=%llu", (unsigned long long)statements);
    free(engine);
}
