#include "worker_stage.h"
#include "engine.h"
#include "memory.h"
#include "message.h"
#include "nonces.h"
#include "queue_maker.h"
#include <fcntl.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct stage_notes stage_notes;
struct stage_result stage_last;

uint64_t stage_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void stage_pause_ms(unsigned ms)
{
    struct timespec const pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}

bool stage_wait(atomic_uint *count, unsigned least, uint64_t wait_ms)
{
    uint64_t const end = clock_monotonic_ms() + wait_ms;
    while (atomic_load(count) < least && clock_monotonic_ms() < end)
        stage_pause_ms(1);
    return atomic_load(count) >= least;
}

/* ---- activities -------------------------------------------------------------------------------------------
 */

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    atomic_fetch_add(&stage_notes.started, 1);
    *ret_output = input;
    atomic_fetch_add(&stage_notes.returned, 1);
    return THOLE_OK;
}

static thole_status until_fired(thole_activity *act)
{
    if (thole_activity_wait(act, 60000) != THOLE_CANCELLED)
        return THOLE_TIMEOUT;
    atomic_store(&stage_notes.fired_us, stage_now_us());
    thole_slice const reason = thole_activity_cancel_reason(act);
    snprintf(stage_notes.reason, sizeof stage_notes.reason, "%.*s", THOLE_FMT(reason));
    atomic_fetch_add(&stage_notes.fired, 1);
    return THOLE_CANCELLED;
}

static thole_status hold(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    atomic_fetch_add(&stage_notes.started, 1);
    thole_status const status = until_fired(act);
    atomic_fetch_add(&stage_notes.returned, 1);
    return status;
}

static thole_status slow(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char text[16];
    snprintf(text, sizeof text, "%.*s", THOLE_FMT(input));
    atomic_fetch_add(&stage_notes.started, 1);
    thole_status const status = thole_activity_wait(act, strtoull(text, NULL, 10));
    *ret_output = thole_activity_format(act, "ok by attempt %u", thole_activity_attempt(act));
    atomic_fetch_add(&stage_notes.returned, 1);
    return status;
}

static thole_status stubborn(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    atomic_fetch_add(&stage_notes.started, 1);
    while (!atomic_load(&stage_notes.release))
        stage_pause_ms(5);
    (void)thole_activity_key(act); /* still valid, however late */
    atomic_fetch_add(&stage_notes.returned, 1);
    return THOLE_OK;
}

static thole_status relay(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    if (thole_activity_attempt(act) == 1)
        return hold(act, input, ret_output);
    *ret_output = THOLE_STR("relayed");
    return THOLE_OK;
}

static thole_status large(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    size_t const bytes = 256 * 1024 + 1;
    (void)input;
    *ret_output = (thole_slice){thole_activity_alloc(act, bytes), bytes};
    return THOLE_OK;
}

static thole_status odd(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return (thole_status)77;
}

static thole_status gives_up(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_CANCELLED;
}

static thole_status declined(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    return thole_activity_fail(act, "declined: %.*s, key %.*s", THOLE_FMT(input),
                               THOLE_FMT(thole_activity_key(act)));
}

static thole_status paged(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char page[32];
    int const len =
        snprintf(page, sizeof page, "page %u.%u", thole_activity_try(act), thole_activity_attempt(act));
    atomic_store(&stage_notes.left_ms, thole_activity_time_left_ms(act));
    if (thole_activity_heartbeat(act, (thole_slice){(const uint8_t *)page, (size_t)len}) != THOLE_OK)
        return THOLE_INVALID;
    if (thole_slice_equal(input, THOLE_STR("hold")))
        return hold(act, input, ret_output);
    if (thole_slice_equal(input, THOLE_STR("stubborn")))
        return stubborn(act, input, ret_output);
    atomic_fetch_add(&stage_notes.started, 1);
    if (thole_slice_equal(input, THOLE_STR("fail")))
        return thole_activity_fail_as(act, THOLE_STR("bank.away"), "no answer");
    if (thole_slice_equal(input, THOLE_STR("final")))
        return thole_activity_fail_final(act, THOLE_STR("declined"), "never");
    *ret_output = thole_activity_format(act, "%u.%u after %.*s", thole_activity_try(act),
                                        thole_activity_attempt(act), THOLE_FMT(thole_activity_details(act)));
    return THOLE_OK;
}

static thole_status later(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    thole_slice token;
    (void)input, (void)ret_output;
    thole_status const status = thole_activity_later(act, &token);
    snprintf(stage_notes.token, sizeof stage_notes.token, "%.*s", THOLE_FMT(token));
    atomic_fetch_add(&stage_notes.started, 1);
    return status;
}

static const thole_activity_entry activities[] = {
    {"echo", echo},         {"hold", hold},   {"slow", slow},   {"stubborn", stubborn},
    {"relay", relay},       {"large", large}, {"odd", odd},     {"gives_up", gives_up},
    {"declined", declined}, {"paged", paged}, {"later", later},
};
static const thole_activity_entry others[] = {{"elsewhere", echo}};
const thole_program stage_program = {.size = sizeof stage_program,
                                     .name = "stage",
                                     .activities = activities,
                                     .activities_len = ARRAY_LEN(activities)};
const thole_program stage_other_program = {
    .size = sizeof stage_program, .name = "other", .activities = others, .activities_len = ARRAY_LEN(others)};

/* ---- servers ----------------------------------------------------------------------------------------------
 */

static void must(struct stage *stage, thole_status status, const char *what)
{
    if (status == THOLE_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, thole_status_name(status), stage->err.text);
    exit(1);
}

static void on_stored(void *arg, const struct request_done *done)
{
    struct stage *const stage = arg;
    if (done->result == REQUEST_STORED)
        atomic_fetch_add(&stage->stored, 1);
}

void stage_open(struct stage *stage)
{
    char nats_dir[SERVER_PATH_BYTES + 8], postgres_dir[SERVER_PATH_BYTES + 8];
    *stage = (struct stage){.seq = 1};
    must(stage, server_dir_create("thole-w", stage->dir, &stage->err), "folder");
    chmod(stage->dir, 0755); /* Postgres runs as another user */
    snprintf(nats_dir, sizeof nats_dir, "%s/nats", stage->dir);
    snprintf(postgres_dir, sizeof postgres_dir, "%s/pg", stage->dir);
    mkdir(nats_dir, 0755);
    mkdir(postgres_dir, 0755);
    must(stage, server_nats_start(&(struct nats_server_options){.dir = nats_dir}, &stage->nats, &stage->err),
         "nats");
    must(stage,
         server_postgres_start(&(struct postgres_server_options){.dir = postgres_dir, .no_fsync = true},
                               &stage->postgres, &stage->err),
         "postgres");
}

void stage_close(struct stage *stage)
{
    server_stop(&stage->nats);
    server_stop(&stage->postgres);
    server_dir_remove(stage->dir);
}

void stage_begin(struct stage *stage, const char *ns)
{
    struct topology topology;
    snprintf(stage->ns, sizeof stage->ns, "%s", ns);
    memset(&stage_notes, 0, sizeof stage_notes);
    memset(&stage_last, 0, sizeof stage_last);
    struct connection_options const connection = {
        .url = stage->nats.url, .name = "test", .connect_timeout_ms = 5000, .request_timeout_ms = 5000};
    must(stage, connection_open(&connection, &stage->connection, &stage->err), "connection");
    must(stage,
         topology_ensure(
             stage->connection,
             &(struct topology_options){.ns = stage->ns, .partitions = 1, .replicas = stage->replicas},
             &topology, &stage->err),
         "topology");
    stage->engine = memory_new(sizeof *stage->engine); /* makes the consumers that workers ask for */
    stage->engine->connection = stage->engine->services = stage->connection;
    stage->engine->topology = topology;
    must(stage, queue_maker_start(stage->engine, &stage->engine->queues, &stage->err), "queues");
    must(stage, requests_open(stage->connection, 4096, 5000, on_stored, stage, &stage->requests, &stage->err),
         "requests");
    struct postgres_options const postgres = {.conninfo = stage->postgres.url,
                                              .ns = stage->ns,
                                              .application = "test",
                                              .connect_timeout_ms = 5000,
                                              .statement_timeout_ms = 5000,
                                              .synchronous_commit = true};
    must(stage, postgres_open(&postgres, &stage->pg, &stage->err), "postgres");
    must(stage, postgres_migrate(stage->pg, &stage->err), "migrate");
    must(stage, projector_store_open(stage->pg, 0, 1, &stage->rows, NULL, &stage->err), "partition");
    must(stage, projector_store_complete(stage->pg, &(struct rows_owner){.epoch = 1}, &stage->err), "rows");
    stage->options = (struct host_options){.nats_url = stage->nats.url,
                                           .postgres_connections = 16,
                                           .postgres = stage->postgres.url,
                                           .ns = stage->ns,
                                           .node = "node-1",
                                           .payload_max = 256 * 1024,
                                           .stop_limit_ms = 10000,
                                           .queue = "default",
                                           .slots = 4,
                                           .lease_ms = STAGE_LEASE_MS,
                                           .grace_ms = 1000};
    log_configure(LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT, "test");
}

void stage_end(struct stage *stage)
{
    requests_close(stage->requests);
    queue_maker_stop(stage->engine->queues);
    free(stage->engine);
    connection_close(stage->connection);
    postgres_close(stage->pg);
}

void stage_open_again(struct stage *stage)
{
    thole_status status = projector_store_open(stage->pg, 0, 1, &stage->rows, NULL, &stage->err);
    if (status == THOLE_UNAVAILABLE) /* the old connection */
        status = projector_store_open(stage->pg, 0, 1, &stage->rows, NULL, &stage->err);
    must(stage, status, "partition");
    must(stage, projector_store_complete(stage->pg, &(struct rows_owner){.epoch = 1}, &stage->err), "rows");
}

void stage_end_leases(struct stage *stage)
{
    char sql[160];
    PGconn *const conn = PQconnectdb(stage->postgres.url);
    snprintf(sql, sizeof sql, "UPDATE \"thole_%s\".worker_queue SET lease_until = clock_timestamp()",
             stage->ns);
    PGresult *const result = PQexec(conn, sql);
    CU_ASSERT_EQUAL(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    PQfinish(conn);
}

struct worker_host *stage_worker(struct stage *stage, const thole_program *program)
{
    struct worker_host *worker = NULL;
    must(stage, worker_host_start(&stage->options, program, NULL, &worker, &stage->err), "worker");
    return worker;
}

/* ---- the engine's part ------------------------------------------------------------------------------------
 */

static void apply_row(struct stage *stage, struct batch_activity row, bool add)
{
    struct batch *batch = batch_create(0, 1);
    thole_status status = THOLE_UNAVAILABLE;
    batch->follows = stage->rows;
    batch->projected.seq = ++stage->seq;
    if (add)
        batch->activities_added = &row, batch->activities_added_len = 1;
    else
        batch->activities_removed = &row, batch->activities_removed_len = 1;
    for (int i = 0; i < 3 && status == THOLE_UNAVAILABLE; i++) /* the servers are killed in between */
        status = projector_store_apply(stage->pg, &batch, 1, &stage->err);
    must(stage, status, "row");
    stage->rows = (struct rows_state){batch->projected, stage->rows.batches + 1};
    batch_destroy(batch);
}

void stage_row_try(struct stage *stage, const char *instance, uint64_t id, struct stage_try try,
                   const char *activity)
{
    apply_row(stage,
              (struct batch_activity){.instance = thole_slice_from(instance),
                                      .execution = 1,
                                      .activity_id = id,
                                      .queue = THOLE_STR("default"),
                                      .activity = thole_slice_from(activity),
                                      .try_number = try.number,
                                      .try_timeout_ms = try.timeout_ms,
                                      .details = thole_slice_from(try.details)},
              true);
}

void stage_row(struct stage *stage, const char *instance, uint64_t id, const char *activity, bool add)
{
    apply_row(stage,
              (struct batch_activity){.instance = thole_slice_from(instance),
                                      .execution = 1,
                                      .activity_id = id,
                                      .queue = THOLE_STR("default"),
                                      .activity = thole_slice_from(activity)},
              add);
}

void stage_message_try(struct stage *stage, const char *instance, uint64_t id, uint32_t try,
                       const char *activity, const char *input)
{
    unsigned const before = atomic_load(&stage->stored);
    struct nonce const nonce = nonce_make(test_nonce_key(), thole_slice_from(instance), 1, id);
    struct work_item const item = {.queue = THOLE_STR("default"),
                                   .nonce = thole_slice_from(nonce.text),
                                   .instance = thole_slice_from(instance),
                                   .activity = thole_slice_from(activity),
                                   .input = thole_slice_from(input),
                                   .execution = 1,
                                   .activity_id = id,
                                   .try_number = try};
    must(stage, work_publish(stage->requests, stage->ns, &item, 1, &stage->err), "message");
    CU_ASSERT_TRUE(stage_wait(&stage->stored, before + 1, 5000));
}

void stage_message(struct stage *stage, const char *instance, uint64_t id, const char *activity,
                   const char *input)
{
    stage_message_try(stage, instance, id, 1, activity, input);
}

void stage_schedule_try(struct stage *stage, const char *instance, uint64_t id, struct stage_try try,
                        const char *activity, const char *input)
{
    stage_row_try(stage, instance, id, try, activity);
    stage_message_try(stage, instance, id, try.number, activity, input);
}

void stage_schedule(struct stage *stage, const char *instance, uint64_t id, const char *activity,
                    const char *input)
{
    stage_row(stage, instance, id, activity, true);
    stage_message(stage, instance, id, activity, input);
}

void stage_push(struct stage *stage, const char *instance, uint64_t id)
{
    stage_push_try(stage, instance, id, 0);
}

void stage_push_try(struct stage *stage, const char *instance, uint64_t id, uint32_t try)
{
    struct cancel_notice const notice = {.instance = thole_slice_from(instance),
                                         .execution = 1,
                                         .activity_ids = &id,
                                         .activity_ids_len = 1,
                                         .try_number = try,
                                         .kind = THOLE_STR("requested"),
                                         .reason = THOLE_STR("not needed")};
    must(stage, cancel_notice_publish(stage->connection, stage->ns, test_nonce_key(), &notice, &stage->err),
         "push");
}

/* ---- results ---- */

/* The newest message of the instance's inbox, into stage_last. */
static bool read_last(struct stage *stage, const char *stream, const char *instance)
{
    struct buf subject, body;
    struct message message;
    struct arena arena;
    uint64_t sequence = 0;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, MESSAGE_BYTES_MAX);
    arena_init(&arena, 16 << 20);
    bool good = subject_inbox(&subject, stage->ns, 0, THOLE_STR("result.worker"), thole_slice_from(instance),
                              &stage->err) == THOLE_OK &&
                stream_last_by_subject(stage->connection, stream, buf_cstr(&subject), &sequence, &body,
                                       &stage->err) == THOLE_OK &&
                sequence > 0 && message_decode(buf_bytes(&body), &arena, &message, &stage->err) == THOLE_OK;
    good = good && message.kind == MESSAGE_ACTIVITY_RESULT &&
           thole_slice_equal(message.instance, thole_slice_from(instance));
    if (good) {
        stage_last = (struct stage_result){.status = message.status,
                                           .activity_id = message.task,
                                           .try_number = message.try_number,
                                           .final = message.final,
                                           .attempt = message.source.place.attempt};
        snprintf(stage_last.error_type, sizeof stage_last.error_type, "%.*s", THOLE_FMT(message.error_type));
        snprintf(stage_last.details, sizeof stage_last.details, "%.*s", THOLE_FMT(message.details));
        snprintf(stage_last.data, sizeof stage_last.data, "%.*s", THOLE_FMT(message.data));
    }
    buf_release(&subject);
    buf_release(&body);
    arena_release(&arena);
    return good;
}

/* A namespace of these tests has one instance, and nothing else in its inbox stream. */
static size_t count_results(struct stage *stage, const char *instance)
{
    struct stream_bounds bounds = {0};
    char stream[64];
    snprintf(stream, sizeof stream, "THOLE_%s_IN_0", stage->ns);
    if (stream_bounds(stage->connection, stream, &bounds, &stage->err) != THOLE_OK || bounds.messages == 0)
        return 0;
    return read_last(stage, stream, instance) ? bounds.messages : 0;
}

size_t stage_results(struct stage *stage, const char *instance, size_t least, uint64_t wait_ms)
{
    uint64_t const end = clock_monotonic_ms() + wait_ms;
    size_t n = count_results(stage, instance);
    while (n < least && clock_monotonic_ms() < end) {
        stage_pause_ms(10);
        n = count_results(stage, instance);
    }
    return n;
}

bool stage_has_result(struct stage *stage, const char *instance, uint64_t wait_ms)
{
    uint64_t const end = clock_monotonic_ms() + wait_ms;
    char stream[64];
    snprintf(stream, sizeof stream, "THOLE_%s_IN_0", stage->ns);
    while (!read_last(stage, stream, instance)) {
        if (clock_monotonic_ms() >= end)
            return false;
        stage_pause_ms(20);
    }
    return true;
}

uint64_t stage_queued(struct stage *stage)
{
    struct stream_bounds bounds = {.messages = UINT64_MAX};
    char stream[64];
    snprintf(stream, sizeof stream, "THOLE_%s_WORK", stage->ns);
    if (stream_bounds(stage->connection, stream, &bounds, &stage->err) != THOLE_OK)
        return UINT64_MAX;
    return bounds.messages;
}

bool stage_drained(struct stage *stage, uint64_t wait_ms)
{
    uint64_t const end = clock_monotonic_ms() + wait_ms;
    while (stage_queued(stage) != 0) {
        if (clock_monotonic_ms() >= end)
            return false;
        stage_pause_ms(2);
    }
    return true;
}

/* ---- logs -------------------------------------------------------------------------------------------------
 */

static int saved_stderr = -1;
static char log_text[STAGE_LOG_BYTES];

static void log_path(const struct stage *stage, char path[128])
{
    snprintf(path, 128, "%s/log", stage->dir);
}

void stage_log_begin(struct stage *stage)
{
    char path[128];
    log_path(stage, path);
    int const file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0644);
    fflush(stderr);
    saved_stderr = dup(STDERR_FILENO);
    dup2(file, STDERR_FILENO);
    close(file);
}

const char *stage_log_end(struct stage *stage)
{
    char path[128];
    log_path(stage, path);
    fflush(stderr);
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    FILE *const file = fopen(path, "r");
    size_t const n = file != NULL ? fread(log_text, 1, sizeof log_text - 1, file) : 0;
    log_text[n] = '\0';
    if (file != NULL)
        fclose(file);
    fputs(log_text, stderr);
    return log_text;
}
