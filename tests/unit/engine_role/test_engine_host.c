/* The whole start and end of an engine. engine_host.transcript has starts ("$ …") with what the servers have
 * and which step fails, each followed by all that the engine called and logged, in order:
 *   fails=CALL:STATUS[:N]                the next N such calls fail (default 1)
 *   verdict= applied= rows= noted=       the comparison's result (enum namespace_verdict), migrations, and
 *                                        identities in Postgres
 *   threads= cores= partitions= payload= room= heartbeat= ttl= page connected
 *                                        options, and what the servers say
 *   patience=N                           a stop is requested after N pauses
 *   up down epoch=P:KIND queriesup queriesdown shardup=N sharddown=N      events while the engine runs */
#include "connection.h"
#include "engine.h"
#include "loader.h"
#include "logged.h"
#include "lookout.h"
#include "membership.h"
#include "message.h"
#include "namespace_check.h"
#include "postgres.h"
#include "queue_maker.h"
#include "read_places.h"
#include "remover.h"
#include "store.h"
#include "thole_cunit.h"
#include "topology.h"
#include "transcript.h"
#include "watchdog.h"
#include "wrap_mutexes.h"
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

static struct {
    FILE *said;
    char fails[32];
    thole_status status;
    unsigned times, patience, naps, asked;
    unsigned verdict; /* an enum namespace_verdict */
    size_t applied;   /* migrations */
    char rows_id[64], noted_id[64];
    struct host_options options;
    struct topology topology;
    size_t room;
    uint64_t cores; /* cores for the process; 0: not known */
    bool is_up, has_page;
    connection_state_fn *on_state, *on_shard_state, *on_queries_state;
    delivery_fn *on_epoch;
    void *arg, *epoch_arg;
} play;

#define said(...) (void)fprintf(play.said, __VA_ARGS__)

/* ---- the world ---- */

static thole_status step(const char *call, thole_error *reterr)
{
    if (strcmp(call, play.fails) != 0 || play.times == 0)
        return THOLE_OK;
    play.times--;
    return thole_fail(reterr, play.status, "%s fails", call);
}

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...) THOLE_PRINTF(4, 5);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    char text[1024];
    va_list args;
    va_start(args, fmt);
    logged_text(text, sizeof text, fields, fmt, args);
    va_end(args);
    said("log %s %s: %s\n", names[level], area, text);
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
    (void)rest;
    CU_ASSERT_EQUAL(time->tv_sec, 0);
    CU_ASSERT_EQUAL(time->tv_nsec, 50 * 1000000L);
    play.naps++;
    return 0;
}

static bool stop_requested(void *arg)
{
    (void)arg;
    return play.asked++ >= play.patience;
}
static const struct stop_check stop = {.requested = stop_requested};

thole_status __wrap_connection_open(const struct connection_options *options, struct connection **ret,
                                    thole_error *reterr)
{
    said("connects to %s as %s, with %s, %s, %s, %s, %s and %s, within %" PRIu64 " and %" PRIu64 " ms\n",
         options->url, options->name, options->creds, options->ca, options->cert, options->key,
         options->server_name, options->inbox, (uint64_t)options->connect_timeout_ms,
         (uint64_t)options->request_timeout_ms);
    bool const queries = strcmp(options->name, "thole-engine-queries") == 0;
    THOLE_TRY(step(queries                 ? "connection_open_queries"
                   : play.on_state == NULL ? "connection_open"
                                           : "connection_open_shard",
                   reterr));
    options->on_state(options->arg, false, 0); /* nothing runs that could be told */
    if (queries) {
        play.on_queries_state = options->on_state;
    } else if (play.on_state == NULL) { /* the first one is the engine's */
        play.on_state = options->on_state;
        play.arg = options->arg;
    } else {
        play.on_shard_state = options->on_state;
    }
    *ret = (struct connection *)&play;
    return THOLE_OK;
}

void __wrap_connection_close(struct connection *connection)
{
    said("connection_close%s\n", connection == NULL ? " of none" : "");
}

uint64_t __wrap_connection_epoch(const struct connection *connection)
{
    CU_ASSERT_PTR_EQUAL(connection, (struct connection *)&play);
    return play.is_up ? 3 : 0;
}

size_t __wrap_connection_max_payload(const struct connection *connection)
{
    CU_ASSERT_PTR_EQUAL(connection, (struct connection *)&play);
    return play.room;
}

thole_status __wrap_topology_ensure(struct connection *connection, const struct topology_options *options,
                                    struct topology *ret, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(connection, (struct connection *)&play);
    said("streams of %s: %u partitions, %u replicas, nodes for %" PRIu64 " ms, payload %" PRIu64 "\n",
         options->ns, options->partitions, options->replicas, options->nodes_ttl_ms, options->payload_max);
    *ret = play.topology;
    return step("topology_ensure", reterr);
}

thole_status __wrap_postgres_open(const struct postgres_options *options, struct postgres **ret,
                                  thole_error *reterr)
{
    said("postgres %s of %s as %s, within %" PRIu64 " and %" PRIu64 " ms, synchronous %d\n",
         options->conninfo, options->ns, options->application, (uint64_t)options->connect_timeout_ms,
         (uint64_t)options->statement_timeout_ms, options->synchronous_commit);
    THOLE_TRY(step("postgres_open", reterr));
    *ret = (struct postgres *)&play;
    return THOLE_OK;
}

thole_status __wrap_postgres_migrate(struct postgres *pg, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(pg, (struct postgres *)&play);
    said("postgres_migrate\n");
    return step("postgres_migrate", reterr);
}

thole_status __wrap_postgres_applied(struct postgres *pg, size_t *ret, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(pg, (struct postgres *)&play);
    *ret = play.applied;
    return step("postgres_applied", reterr);
}

thole_status __wrap_namespace_check_rows(struct namespace_check *check, struct postgres *pg,
                                         thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(pg, (struct postgres *)&play);
    said("rows of %s are looked at\n", check->ns);
    check->tables = play.applied > 0;
    return step("namespace_check_rows", reterr);
}

thole_status __wrap_namespace_check_nats(struct namespace_check *check, struct connection *connection,
                                         enum namespace_depth depth, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(connection, (struct connection *)&play);
    CU_ASSERT_EQUAL(depth, NAMESPACE_BOUNDS);
    said("streams of %s are looked at\n", check->ns);
    check->verdict = (enum namespace_verdict)play.verdict;
    check->nats.made = play.verdict != NAMESPACE_NEW;
    (void)namespace_id_read(thole_slice_from(play.rows_id), &check->rows.id);
    check->partitions = 1;
    free(check->logs);
    check->logs = calloc(1, sizeof *check->logs);
    CU_ASSERT_PTR_NOT_NULL_FATAL(check->logs);
    check->logs[0].fit = check->verdict == NAMESPACE_LOST ? LOG_FIT_GONE : LOG_FIT_OLDER;
    check->logs[0].there.last = check->verdict == NAMESPACE_EMPTIED ? 9 : 0;
    check->nats.secret = check->logs[0].inbox = true;
    check->known[0].kept = 5;
    return step("namespace_check_nats", reterr);
}

thole_status __wrap_topology_write_id(struct connection *connection, const char *ns,
                                      const struct namespace_id *id, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(connection, (struct connection *)&play);
    said("identity of %s: %s\n", ns, id->text);
    return step("topology_write_id", reterr);
}

thole_status __wrap_namespace_store_adopt(struct postgres *pg, const struct namespace_id *id,
                                          struct namespace_id *ret, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(pg, (struct postgres *)&play);
    said("adopts\n");
    *ret = *id;
    (void)namespace_id_read(thole_slice_from(play.noted_id), ret);
    return step("namespace_store_adopt", reterr);
}

void __wrap_postgres_close(struct postgres *pg)
{
    said("postgres_close%s\n", pg == NULL ? " of none" : "");
}

struct membership *__wrap_membership_create(struct engine_host *engine)
{
    said("membership_create: %zu shards\n", engine->shards_len);
    return (struct membership *)&play;
}

thole_status __wrap_membership_run(struct membership *membership, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(membership, (struct membership *)&play);
    said("membership_run\n");
    return step("membership_run", reterr);
}

void __wrap_membership_quiet(struct membership *membership)
{
    said("membership_quiet%s\n", membership == NULL ? " of none" : "");
}

void __wrap_membership_stop(struct membership *membership)
{
    said("membership_stop%s\n", membership == NULL ? " of none" : "");
}

void __wrap_membership_opened(struct membership *membership, uint32_t p, thole_slice node)
{
    CU_ASSERT_PTR_EQUAL(membership, (struct membership *)&play);
    said("%.*s opens %u\n", THOLE_FMT(node), p);
}

thole_status __wrap_loader_start(struct engine_host *engine, const char *thread_name, size_t threads,
                                 struct loader **ret, thole_error *reterr)
{
    (void)engine;
    said("loader_start %s, %zu\n", thread_name, threads);
    THOLE_TRY(step(thread_name, reterr));
    *ret = (struct loader *)&play;
    return THOLE_OK;
}

void __wrap_loader_stop(struct loader *loader)
{
    said("loader_stop%s\n", loader == NULL ? " of none" : "");
}

thole_status __wrap_remover_start(struct engine_host *engine, struct remover **ret, thole_error *reterr)
{
    (void)engine;
    said("remover_start\n");
    THOLE_TRY(step("remover_start", reterr));
    *ret = (struct remover *)&play;
    return THOLE_OK;
}

void __wrap_remover_stop(struct remover *remover)
{
    said("remover_stop%s\n", remover == NULL ? " of none" : "");
}

thole_status __wrap_shard_start(struct shard *shard, thole_error *reterr)
{
    struct engine_host *const engine = shard->engine;
    uint32_t const index = shard->index;
    CU_ASSERT_PTR_EQUAL(shard, &engine->shards[index]);
    CU_ASSERT_PTR_NOT_NULL(shard->connection);
    said("shard_start %u, places %zu, ready %d\n", index, engine->options.crash_page->places_len,
         atomic_load(&engine->ready));
    THOLE_TRY(step("shard_start", reterr));
    if (play.fails[0] == '\0' || index == 0)
        shard->store = (struct store *)&play;
    engine->needs[index].names = calloc(1, sizeof *engine->needs[index].names);
    return THOLE_OK;
}

uint64_t __wrap_store_statements(const struct store *store)
{
    CU_ASSERT_PTR_EQUAL(store, (struct store *)&play);
    return 21;
}

void __wrap_shard_stop(struct shard *shard)
{
    said("shard_stop\n");
    (void)shard;
}

void __wrap_shard_release(struct shard *shard)
{
    said("shard_release\n");
    read_places_destroy(shard->read_places);
}

void __wrap_shard_send(struct shard *shard, struct shard_mail *mail)
{
    const struct engine_host *const engine = play.arg;
    said("to shard %d: kind %d%s, p=%u, %" PRIu64 "\n", (int)(shard - engine->shards), (int)mail->kind,
         mail->kind == SHARD_LINK && !mail->shared ? " of its own" : "", mail->p,
         mail->kind == SHARD_LINK ? (uint64_t)mail->up : mail->epoch);
    free(mail);
}

thole_status __wrap_watchdog_start(struct engine_host *engine, struct watchdog **ret, thole_error *reterr)
{
    (void)engine;
    said("watchdog_start\n");
    THOLE_TRY(step("watchdog_start", reterr));
    *ret = (struct watchdog *)&play;
    return THOLE_OK;
}

void __wrap_watchdog_stop(struct watchdog *watchdog)
{
    said("watchdog_stop%s\n", watchdog == NULL ? " of none" : "");
}

thole_status __wrap_lookout_start(struct lookout *lookout, thole_error *reterr)
{
    (void)lookout;
    said("lookout_start\n");
    return step("lookout_start", reterr);
}

void __wrap_lookout_end(struct lookout *lookout)
{
    said("lookout_end%s\n", lookout == NULL ? " of none" : "");
}

thole_status __wrap_queue_maker_start(struct engine_host *engine, struct queue_maker **ret,
                                      thole_error *reterr)
{
    (void)engine, (void)ret;
    return step("queue_maker_start", reterr);
}

void __wrap_queue_maker_stop(struct queue_maker *maker)
{
    CU_ASSERT_PTR_NULL(maker);
}

thole_status __wrap_connection_subscribe(struct connection *connection, const char *subject,
                                         delivery_fn *each, void *arg, struct subscription **ret,
                                         thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(connection, (struct connection *)&play);
    said("listens to %s\n", subject);
    THOLE_TRY(step("connection_subscribe", reterr));
    play.on_epoch = each;
    play.epoch_arg = arg;
    *ret = (struct subscription *)&play;
    return THOLE_OK;
}

void __wrap_subscription_close(struct subscription *subscription)
{
    said("subscription_close%s\n", subscription == NULL ? " of none" : "");
}

/* ---- plays ---- */

/* P:KIND; P is text of the subject. */
static void publish_epoch(const char *value)
{
    char subject[64];
    struct buf body;
    const char *const kind = strchr(value, ':') + 1;
    struct record record = {.kind = RECORD_EPOCH_OPENED, .epoch = 9, .node = THOLE_STR("b")};
    (void)snprintf(subject, sizeof subject, "thole.shop.ctl.%.*s.epoch", (int)(kind - 1 - value), value);
    buf_init(&body, 4096);
    if (strcmp(kind, "deleted") == 0) {
        record.kind = RECORD_DELETED;
        record.n = 1;
        record.deletion = (struct deletion){.instance = THOLE_STR("order"), .execution = 1};
    }
    if (strcmp(kind, "garbage") == 0)
        buf_text(&body, "garbage");
    else
        CU_ASSERT_EQUAL(record_encode(&record, &body), THOLE_OK);
    play.on_epoch(play.epoch_arg,
                  &(struct delivery){.subject = thole_slice_from(subject), .body = buf_bytes(&body)});
    buf_release(&body);
}

int __wrap_sched_getaffinity(pid_t pid, size_t len, cpu_set_t *ret)
{
    CU_ASSERT_EQUAL(pid, 0);
    CU_ASSERT_EQUAL_FATAL(len, sizeof *ret);
    CPU_ZERO(ret);
    for (uint64_t i = 0; i < play.cores; i++)
        CPU_SET(2 * i, ret);
    return play.cores > 0 ? 0 : -1;
}

static void set(const char *key, const char *value)
{
    uint64_t const n = strtoull(value, NULL, 10);
    if (strcmp(key, "fails") == 0) {
        char status[32] = "";
        play.times = 1;
        CU_ASSERT_FATAL(sscanf(value, "%31[^:]:%31[^:]:%u", play.fails, status, &play.times) >= 2);
        for (int i = 0; i < 64; i++)
            if (strcmp(thole_status_name((thole_status)i), status) == 0)
                play.status = (thole_status)i;
        CU_ASSERT_NOT_EQUAL_FATAL(play.status, THOLE_OK);
    } else if (strcmp(key, "verdict") == 0) {
        play.verdict = (unsigned)n;
    } else if (strcmp(key, "applied") == 0) {
        play.applied = n;
    } else if (strcmp(key, "rows") == 0) {
        (void)snprintf(play.rows_id, sizeof play.rows_id, "%s", value);
    } else if (strcmp(key, "noted") == 0) {
        (void)snprintf(play.noted_id, sizeof play.noted_id, "%s", value);
    } else if (strcmp(key, "threads") == 0) {
        play.options.engine_threads = (uint32_t)n;
    } else if (strcmp(key, "partitions") == 0) {
        play.topology.partitions = (uint32_t)n;
    } else if (strcmp(key, "payload") == 0) {
        play.options.payload_max = n;
    } else if (strcmp(key, "cores") == 0) {
        play.cores = n;
    } else if (strcmp(key, "room") == 0) {
        play.room = n;
    } else if (strcmp(key, "heartbeat") == 0) {
        play.options.heartbeat_ms = n;
    } else if (strcmp(key, "ttl") == 0) {
        play.topology.nodes_ttl_ms = n;
    } else if (strcmp(key, "patience") == 0) {
        play.patience = (unsigned)n;
    } else if (strcmp(key, "page") == 0) {
        play.options.crash_page = crash_page_create();
        play.has_page = true;
    } else if (strcmp(key, "connected") == 0) {
        play.is_up = true;
    } else {
        CU_FAIL_FATAL("a word that there is not");
    }
}

static void happens(const char *key, const char *value)
{
    const struct engine_host *const engine = play.arg;
    if (strcmp(key, "epoch") == 0)
        publish_epoch(value);
    else if (strncmp(key, "queries", 7) == 0)
        play.on_queries_state(play.arg, strcmp(key, "queriesup") == 0, 2);
    else if (strncmp(key, "shard", 5) == 0)
        play.on_shard_state(&engine->shards[strtoull(value, NULL, 10)], strcmp(key, "shardup") == 0, 1);
    else
        play.on_state(play.arg, strcmp(key, "up") == 0, 1);
}

/* Applies the words of @p text: the present state, or events. */
static void each_word(const char *text, bool now)
{
    char copy[256], *save = NULL;
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');
        if (value != NULL)
            *value++ = '\0';
        bool const event = strcmp(word, "up") == 0 || strcmp(word, "down") == 0 ||
                           strcmp(word, "epoch") == 0 || strncmp(word, "shard", 5) == 0 ||
                           strncmp(word, "queries", 7) == 0;
        if (event && now)
            happens(word, value == NULL ? "" : value);
        else if (!event && !now)
            set(word, value == NULL ? "" : value);
    }
}

static void line(const char *text, FILE *to)
{
    static const thole_program program = {.size = sizeof program, .name = "none", .orchestrations_len = 6};
    struct engine_host *engine = NULL;
    thole_error error = {.status = THOLE_OK};
    memset(&play, 0, sizeof play);
    play.said = to;
    play.room = 1024 * 1024;
    play.topology = (struct topology){
        .ns = "shop", .partitions = 3, .nodes_ttl_ms = 9000, .replicas = 1, .payload_max = 1024};
    play.options = (struct host_options){.nats_url = "nats://n:1",
                                         .nats_creds = "creds",
                                         .nats_ca = "ca",
                                         .nats_cert = "cert",
                                         .nats_key = "key",
                                         .nats_server_name = "name",
                                         .nats_inbox = "inbox",
                                         .postgres = "pg",
                                         .ns = "shop",
                                         .node = "node",
                                         .partitions = 3,
                                         .replicas = 1,
                                         .node_ttl_ms = 8000,
                                         .engine_threads = 2};
    each_word(text, false);
    thole_status const status =
        engine_host_start(&play.options, &program, play.patience == 0 ? NULL : &stop, &engine, &error);
    said("-> %s %s, after %u pauses\n", thole_status_name(status), error.text, play.naps);
    CU_ASSERT_EQUAL(engine == NULL, status != THOLE_OK);
    if (engine != NULL) {
        said("payload %" PRIu64 ", heartbeat %" PRIu64 "\n", engine->options.payload_max,
             engine->options.heartbeat_ms);
        CU_ASSERT_EQUAL(engine->own_page == NULL, play.has_page);
        each_word(text, true);
    }
    engine_host_stop(engine);
    crash_page_destroy(play.options.crash_page);
}

static void test_transcript(void)
{
    transcript_check(THOLE_SOURCE_DIR "/tests/unit/engine_role/engine_host.transcript", line);
    transcript_check_heap(THOLE_SOURCE_DIR "/tests/unit/engine_role/engine_host.transcript", line);
}

static const struct thole_test tests[] = {{"transcript", test_transcript}};
THOLE_TEST_MAIN("engine_host", tests)
