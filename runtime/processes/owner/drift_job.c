#include "drift_job.h"
#include "job_thread.h"
#include "log_work.h"
#include "memory.h"
#include "metrics.h"
#include "postgres.h"
#include "reader.h"
#include "row_checker.h"
#include "subject.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    RATE = 500, /* instances a second: a small part of what the servers can do */
    CONNECT_TIMEOUT_MS = 5000,
    STATEMENT_TIMEOUT_MS = 10 * 1000, /* an engine that stops waits for it */
    SETTLE_MS = 30 * 1000,
    LINES_MAX = 20, /* differences in the log, of each round */
    TEXT_BYTES_MAX = 200,
};

struct drift_job {
    struct engine_host *engine;
    struct metric_cells *cells;
    struct job_thread thread;
    uint32_t p;   /* the partition being checked */
    size_t lines; /* of this round */
};

static bool drift_job_is_stopping(struct drift_job *job)
{
    return job_thread_is_stopping(&job->thread);
}

static bool on_progress(void *arg, uint32_t p, uint64_t done, uint64_t of)
{
    (void)p;
    (void)done;
    (void)of;
    return !drift_job_is_stopping(arg);
}

static thole_status drift_job_on_report(void *arg, const struct row_report *report)
{
    struct drift_job *const job = arg;
    if (job->lines++ >= LINES_MAX)
        return THOLE_OK;
    struct log_fields const fields = {.of_partition = true,
                                      .partition = job->p,
                                      .instance = report->instance,
                                      .execution = report->execution};
    log_line_of(LOG_LEVEL_WARN, "drift", &fields,
                "table %s, %s %" PRIu64 ", column %s: the row says %.*s, the history %.*s", report->table,
                report->id_name == NULL ? "id" : report->id_name, report->id,
                report->column == NULL ? "-" : report->column, TEXT_BYTES_MAX, report->row_says,
                TEXT_BYTES_MAX, report->history_says);
    return THOLE_OK;
}

/* Whether this engine opened the partition last. */
static thole_status drift_job_is_own(const struct drift_job *job, uint32_t p, bool *ret, thole_error *reterr)
{
    const struct engine_host *const engine = job->engine;
    struct buf subject, stream, body;
    struct arena arena;
    struct record record;
    uint64_t sequence = 0;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    buf_init(&body, RECORD_BYTES_MAX);
    arena_init(&arena, RECORD_BYTES_MAX);
    *ret = false;
    thole_status status = subject_control(&subject, engine->topology.ns, p, "epoch", reterr);
    if (status == THOLE_OK)
        status = stream_name(&stream, engine->topology.ns, "HIST", p, reterr);
    if (status == THOLE_OK)
        status = stream_last_by_subject(engine->connection, buf_cstr(&stream), buf_cstr(&subject), &sequence,
                                        &body, reterr);
    if (status == THOLE_OK && sequence > 0 &&
        record_decode(buf_bytes(&body), &arena, &record, NULL) == THOLE_OK)
        *ret = thole_slice_equal(record.node, thole_slice_from(engine->options.node));
    arena_release(&arena);
    buf_release(&body);
    buf_release(&stream);
    buf_release(&subject);
    return status;
}

static thole_status drift_job_check_partition(struct drift_job *job, struct row_checker *checker,
                                              struct row_counts *counts, thole_error *reterr)
{
    bool own = false;
    THOLE_TRY(drift_job_is_own(job, job->p, &own, reterr));
    return own ? row_checker_partition(checker, job->p, counts, reterr) : THOLE_OK;
}

/* Partitions that could not be compared may be the ones whose rows were wrong: what was said stays then. */
static void drift_job_report(const struct drift_job *job, const struct row_counts *counts, bool whole)
{
    bool const wrong = counts->wrong > 0;
    if (wrong || whole)
        metric_set(job->cells, METRIC_ENGINE_DRIFT_ROWS, 0, counts->wrong);
    metric_add(job->cells, METRIC_ENGINE_DRIFT_CHECKED, 0, counts->rows);
    log_line(wrong ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "drift",
             "%" PRIu64 " rows of %" PRIu64 " instances were compared with their histories: %" PRIu64
             " are wrong%s",
             counts->rows, counts->instances, counts->wrong,
             wrong ? "; thole projections verify names them, thole projections rebuild mends them" : "");
}

/* Checks all partitions. One that cannot be checked now is checked in the next round. */
static void drift_job_check_all(struct drift_job *job, struct postgres *pg)
{
    const struct engine_host *const engine = job->engine;
    struct row_counts counts = {.rows = 0};
    struct row_checker_options const options = {.connection = engine->connection,
                                                .ns = engine->topology.ns,
                                                .partitions = engine->topology.partitions,
                                                .key = &engine->topology.nonce_key,
                                                .pg = pg,
                                                .rate = RATE,
                                                .settle_ms = SETTLE_MS,
                                                .report = drift_job_on_report,
                                                .progress = on_progress,
                                                .arg = job};
    struct row_checker *const checker = row_checker_create(&options);
    bool whole = true;
    job->lines = 0;
    for (job->p = 0; job->p < engine->topology.partitions && !drift_job_is_stopping(job); job->p++) {
        thole_error err = {.status = THOLE_OK};
        if (drift_job_check_partition(job, checker, &counts, &err) == THOLE_OK || drift_job_is_stopping(job))
            continue;
        whole = false;
        log_line_of(LOG_LEVEL_WARN, "drift", LOG_PARTITION(job->p), "cannot compare the rows now: %s",
                    err.text);
    }
    row_checker_destroy(checker);
    if (!drift_job_is_stopping(job))
        drift_job_report(job, &counts, whole);
}

static void drift_job_run_once(struct drift_job *job)
{
    struct postgres_options const options = {.conninfo = job->engine->options.postgres,
                                             .ns = job->engine->options.ns,
                                             .application = "thole-drift",
                                             .connect_timeout_ms = CONNECT_TIMEOUT_MS,
                                             .statement_timeout_ms = STATEMENT_TIMEOUT_MS};
    struct postgres *pg = NULL;
    thole_error err = {.status = THOLE_OK};
    if (postgres_open(&options, &pg, &err) != THOLE_OK) {
        log_line(LOG_LEVEL_WARN, "drift", "cannot compare the rows now: %s", err.text);
        return;
    }
    drift_job_check_all(job, pg);
    postgres_close(pg);
}

static void *drift_main(void *arg)
{
    struct drift_job *const job = arg;
    while (job_thread_sleep(&job->thread, job->engine->options.drift_ms))
        drift_job_run_once(job);
    return NULL;
}

static void drift_job_release(struct drift_job *job)
{
    metrics_return_cells(job->cells);
    free(job);
}

thole_status drift_job_start(struct engine_host *engine, struct drift_job **ret, thole_error *reterr)
{
    *ret = NULL;
    if (engine->options.drift_ms == 0)
        return THOLE_OK;
    struct drift_job *const job = memory_new(sizeof *job);
    job->engine = engine;
    job->cells = metrics_cells(engine->options.metrics);
    thole_status const status = job_thread_start(&job->thread, drift_main, job, "that compares rows", reterr);
    if (status == THOLE_OK)
        *ret = job;
    else
        drift_job_release(job);
    return status;
}

void drift_job_stop(struct drift_job *job)
{
    if (job == NULL)
        return;
    job_thread_stop(&job->thread);
    drift_job_release(job);
}
