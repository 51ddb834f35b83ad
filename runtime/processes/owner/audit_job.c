#include "audit_job.h"
#include "audit_key_file.h"
#include "audit_stream.h"
#include "clock.h"
#include "job_thread.h"
#include "log_work.h"
#include "memory.h"
#include "metrics.h"
#include "reader.h"
#include "sealer.h"
#include "subject.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_EVERY_MS = 250,
    RETRY_MS = 5000,        /* after an outage */
    REFUSED_MS = 60 * 1000, /* a log that is not whole is read again */
    MESSAGE_BYTES = 512 * 1024,
    CONFLICTS_MAX = 8,    /* consecutive ones: others publish as well */
    PARTS_MAX = 16,       /* of LEAVES_MESSAGE_MAX records of a partition, in one round */
    LAST_ROUND_MS = 5000, /* an engine that stops waits for it; the next owners cover what is left */
};

struct sealed_log { /* of one partition */
    struct audit_job *job;
    uint32_t p;
    struct sealer *sealer;  /* NULL: it must be opened */
    uint64_t last_leaves;   /* their sequence in the audit stream */
    uint64_t covered;       /* sequence up to which a checkpoint has the records */
    uint64_t behind_ms;     /* since when there are more; 0: there are none; monotonic */
    uint64_t not_before_ms; /* monotonic */
    bool refused;
    bool noted_foreign;
    uint64_t *lists; /* records that were taken and list dispensable ones: copies are not published yet */
    size_t lists_len, lists_cap;
    thole_error err; /* of a record or of a message that was read */
};

struct audit_job {
    struct engine_host *engine;
    struct metric_cells *cells;
    struct audit_key_list keys;
    bool runs;
    struct sealed_log *logs; /* by partition */
    struct buf message, name;
    struct job_thread thread;
    uint64_t until_ms; /* monotonic: the last round ends then; 0: the engine does not stop */
    bool has_stream;   /* the stream was seen */
};

static bool audit_job_goes_on(struct audit_job *job)
{
    return job->until_ms > 0 ? clock_monotonic_ms() < job->until_ms : !job_thread_is_stopping(&job->thread);
}

/* ---- published messages ---- */

static struct connection *audit_job_nats(const struct sealed_log *log)
{
    return log->job->engine->connection;
}

static const char *ns_of(const struct sealed_log *log)
{
    return log->job->engine->topology.ns;
}

static void audit_job_drop(struct sealed_log *log)
{
    sealer_destroy(log->sealer);
    log->sealer = NULL;
    log->last_leaves = 0;
    log->lists_len = 0; /* the sealer takes the records again */
}

static void audit_job_begin(struct sealed_log *log)
{
    audit_job_drop(log);
    log->sealer = sealer_create(&(struct sealer_options){.ns = thole_slice_from(ns_of(log)),
                                                         .partition = log->p,
                                                         .keys = log->job->keys.keys,
                                                         .keys_len = log->job->keys.len});
}

static thole_status audit_job_take_checkpoint(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct sealed_log *log = arg;
    (void)sequence;
    if (audit_stream_is(delivery->subject, AUDIT_CHECKPOINT_SUBJECT))
        sealer_take_checkpoint(log->sealer, delivery->body);
    return THOLE_OK;
}

static thole_status audit_job_take_leaves(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct sealed_log *log = arg;
    if (!audit_stream_is(delivery->subject, AUDIT_LEAVES))
        return THOLE_OK;
    log->last_leaves = sequence;
    if (audit_message_is_foreign(delivery->body) && !log->noted_foreign)
        log_line_of(LOG_LEVEL_WARN, "audit", LOG_PARTITION(log->p),
                    "message #%" PRIu64
                    " of the audit stream is a server's answer and is left out: who may publish with "
                    "a reply subject shares an account with the streams; see docs/operations.md, Accounts",
                    sequence);
    log->noted_foreign = log->noted_foreign || audit_message_is_foreign(delivery->body);
    return sealer_take_leaves(log->sealer, delivery->body, &log->err);
}

static thole_status audit_job_read_published(struct sealed_log *log, uint64_t from, stream_delivery_fn *each,
                                             thole_error *reterr)
{
    log->err.status = THOLE_OK;
    thole_status const status =
        audit_stream_read(audit_job_nats(log), ns_of(log), log->p, from, each, log, reterr);
    if (status == THOLE_CORRUPT && reterr != NULL)
        *reterr = log->err;
    return status;
}

/* The last checkpoint is enough when it has our key, and only the last message's leaves follow it. */
static thole_status open_from_last(struct sealed_log *log, bool *ret_enough, thole_error *reterr)
{
    struct buf *message = &log->job->message;
    struct leaves_message leaves;
    uint64_t sequence;
    THOLE_TRY(audit_stream_last(audit_job_nats(log), ns_of(log), log->p, AUDIT_CHECKPOINT_SUBJECT, &sequence,
                                message, reterr));
    if (sequence > 0)
        sealer_take_checkpoint(log->sealer, buf_bytes(message));
    THOLE_TRY(audit_stream_last(audit_job_nats(log), ns_of(log), log->p, AUDIT_LEAVES, &log->last_leaves,
                                message, reterr));
    *ret_enough = log->last_leaves == 0 || (leaves_message_parse(buf_bytes(message), &leaves) &&
                                            leaves.first <= sealer_size(log->sealer));
    return log->last_leaves > 0 && *ret_enough ? sealer_take_leaves(log->sealer, buf_bytes(message), reterr)
                                               : THOLE_OK;
}

/* A log that lost its end may have grown again: then the records tell. */
static thole_status check_end(struct sealed_log *log, const char *stream, thole_error *reterr)
{
    struct stream_bounds bounds;
    uint64_t const last = sealer_place(log->sealer)->sequence;
    THOLE_TRY(stream_bounds(audit_job_nats(log), stream, &bounds, reterr));
    if (bounds.last >= last)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_CORRUPT,
                      "the log ends with record #%llu, but a signed checkpoint has record #%llu",
                      (unsigned long long)bounds.last, (unsigned long long)last);
}

static thole_status audit_job_open_log(struct sealed_log *log, const char *stream, thole_error *reterr)
{
    bool enough = false;
    audit_job_begin(log);
    THOLE_TRY(open_from_last(log, &enough, reterr));
    if (!enough) {
        audit_job_begin(log);
        THOLE_TRY(audit_job_read_published(log, 1, audit_job_take_checkpoint, reterr));
        THOLE_TRY(audit_job_read_published(log, 1, audit_job_take_leaves, reterr));
    }
    log->covered = sealer_place(log->sealer)->sequence;
    return check_end(log, stream, reterr);
}

static thole_status audit_job_publish_leaves(struct sealed_log *log, thole_error *reterr)
{
    struct buf *message = &log->job->message;
    for (unsigned conflicts = 0;;) {
        buf_clear(message);
        if (!sealer_leaves_message(log->sealer, message))
            return THOLE_OK;
        THOLE_TRY(buf_status(message));
        thole_status status = audit_stream_publish_leaves(audit_job_nats(log), ns_of(log), log->p,
                                                          buf_bytes(message), &log->last_leaves, reterr);
        if (status == THOLE_OK)
            sealer_published(log->sealer);
        else if (status == THOLE_CONFLICT && conflicts++ < CONFLICTS_MAX)
            THOLE_TRY(audit_job_read_published(log, log->last_leaves + 1, audit_job_take_leaves, reterr));
        else
            return status;
    }
}

/* Before their leaves: they go after their time. */
static thole_status audit_job_publish_lists(struct sealed_log *log, thole_error *reterr)
{
    for (size_t i = 0; i < log->lists_len; i++)
        THOLE_TRY(audit_stream_publish_list(audit_job_nats(log), ns_of(log), log->p, log->lists[i], reterr));
    log->lists_len = 0;
    return THOLE_OK;
}

static thole_status audit_job_publish(struct sealed_log *log, thole_error *reterr)
{
    struct audit_job *job = log->job;
    uint64_t const before = sealer_size(log->sealer);
    bool any = false;
    THOLE_TRY(audit_job_publish_lists(log, reterr));
    THOLE_TRY(audit_job_publish_leaves(log, reterr));
    buf_clear(&job->message);
    THOLE_TRY(sealer_checkpoint_message(log->sealer, &job->message, &any, reterr));
    if (!any)
        return THOLE_OK;
    THOLE_TRY(audit_stream_publish(audit_job_nats(log), ns_of(log), log->p, AUDIT_CHECKPOINT_SUBJECT,
                                   buf_bytes(&job->message), reterr));
    sealer_signed(log->sealer);
    metric_add(job->cells, METRIC_ENGINE_AUDIT_CHECKPOINTS, 0, 1);
    metric_add(job->cells, METRIC_ENGINE_AUDIT_RECORDS, 0, sealer_size(log->sealer) - before);
    return THOLE_OK;
}

/* ---- records ---- */

static thole_status audit_job_take_record(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct sealed_log *log = arg;
    (void)subject;
    THOLE_TRY(sealer_take(log->sealer, sequence, body, &log->err));
    if (!sealer_is_list(body))
        return THOLE_OK;
    log->lists = memory_reserve(log->lists, &log->lists_cap, log->lists_len + 1, sizeof *log->lists);
    log->lists[log->lists_len++] = sequence;
    return THOLE_OK;
}

static thole_status audit_job_read_records(struct sealed_log *log, const char *stream, uint64_t from,
                                           uint64_t to, thole_error *reterr)
{
    log->err.status = THOLE_OK;
    thole_status const status =
        stream_read(audit_job_nats(log), stream, NULL, from, to, audit_job_take_record, log, reterr);
    if (status == THOLE_CORRUPT && reterr != NULL)
        *reterr = log->err;
    return status;
}

/* Stops at the first one. */
static thole_status look_for_removal(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    const struct sealed_log *const log = arg;
    (void)sequence;
    return subject_is_of_log(subject, ns_of(log), log->p) && sealer_accounts(body) ? THOLE_CONFLICT
                                                                                   : THOLE_OK;
}

/* Records are missing: before they are removed a deletion or a pruning is stored, perhaps meanwhile. */
static thole_status check_removed(struct sealed_log *log, const char *stream, thole_error *reterr)
{
    struct stream_bounds bounds;
    thole_status status = THOLE_OK;
    uint64_t const from = sealer_place(log->sealer)->sequence + 1;
    if (!sealer_lacks(log->sealer))
        return THOLE_OK;
    THOLE_TRY(stream_bounds(audit_job_nats(log), stream, &bounds, reterr));
    if (bounds.last >= from)
        status =
            stream_read(audit_job_nats(log), stream, NULL, from, bounds.last, look_for_removal, log, reterr);
    if (status == THOLE_OK)
        status = thole_fail(reterr, THOLE_CORRUPT,
                            "records before #%llu are not there, and no deletion or pruning follows",
                            (unsigned long long)from);
    return status == THOLE_CONFLICT ? THOLE_OK : status;
}

/* Up to a record that is committed: all before it counts, also when another engine owns the log by now. */
static thole_status audit_job_cover(struct sealed_log *log, const char *stream, uint64_t to,
                                    thole_error *reterr)
{
    if (log->sealer == NULL)
        THOLE_TRY(audit_job_open_log(log, stream, reterr));
    for (unsigned part = 0; log->covered < to && part < PARTS_MAX && audit_job_goes_on(log->job); part++) {
        uint64_t next = 0;
        THOLE_TRY(
            stream_next(audit_job_nats(log), stream, sealer_place(log->sealer)->sequence + 1, &next, reterr));
        if (next == 0 || next > to) { /* the others were removed: the next existing one tells how many */
            log->covered = to;
            return THOLE_OK;
        }
        uint64_t const last = to - next < LEAVES_MESSAGE_MAX ? to : next + LEAVES_MESSAGE_MAX - 1;
        THOLE_TRY(audit_job_read_records(log, stream, next, last, reterr));
        THOLE_TRY(check_removed(log, stream, reterr));
        THOLE_TRY(audit_job_publish(log, reterr));
        log->covered = last;
    }
    return THOLE_OK;
}

/* ---- rounds ---- */

static void audit_job_refuse(struct sealed_log *log, const thole_error *err, uint64_t now_ms)
{
    log->refused = true;
    log->not_before_ms = now_ms + REFUSED_MS;
    log_line_of(LOG_LEVEL_ERROR, "audit", LOG_PARTITION(log->p),
                "the history is not what was written and gets no checkpoint: %s; thole audit verify --all",
                err->text);
}

static bool audit_job_round_of(struct sealed_log *log, uint64_t committed, uint64_t now_ms)
{
    struct audit_job *job = log->job;
    thole_error err = {.status = THOLE_OK};
    buf_clear(&job->name);
    thole_status status = stream_name(&job->name, ns_of(log), "HIST", (int64_t)log->p, &err);
    if (status == THOLE_OK)
        status = audit_job_cover(log, buf_cstr(&job->name), committed, &err);
    if (status == THOLE_OK) {
        log->not_before_ms = 0;
        if (log->covered >= committed)
            log->behind_ms = 0;
        log->refused = false;
        return true;
    }
    audit_job_drop(log);
    log->not_before_ms = now_ms + RETRY_MS;
    if (status == THOLE_CORRUPT)
        audit_job_refuse(log, &err, now_ms);
    else
        log_line_of(LOG_LEVEL_WARN, "audit", LOG_PARTITION(log->p), "cannot publish a checkpoint now: %s",
                    err.text);
    return status == THOLE_CORRUPT;
}

static bool audit_job_is_due(struct sealed_log *log, uint64_t committed, uint64_t now_ms)
{
    const struct host_options *options = &log->job->engine->options;
    if (committed <= log->covered)
        return false;
    if (log->behind_ms == 0)
        log->behind_ms = now_ms;
    return log->job->until_ms > 0 ||
           (now_ms >= log->not_before_ms && (now_ms - log->behind_ms >= options->audit_ms ||
                                             committed - log->covered >= options->audit_records));
}

static bool has_stream(struct audit_job *job)
{
    const struct engine_host *engine = job->engine;
    thole_error err = {.status = THOLE_OK};
    if (!job->has_stream && audit_stream_require(engine->connection, engine->topology.ns, &err) != THOLE_OK)
        log_line(LOG_LEVEL_WARN, "audit", "cannot publish checkpoints now: %s", err.text);
    else
        job->has_stream = true;
    return job->has_stream;
}

static void audit_job_run_once(struct audit_job *job)
{
    struct engine_host *engine = job->engine;
    uint64_t const now_ms = clock_monotonic_ms();
    uint64_t oldest_ms = now_ms, refused = 0;
    for (uint32_t p = 0; p < engine->topology.partitions && audit_job_goes_on(job); p++) {
        struct sealed_log *log = &job->logs[p];
        uint64_t const committed = atomic_load_explicit(&engine->committed[p], memory_order_relaxed);
        if (audit_job_is_due(log, committed, now_ms) && !audit_job_round_of(log, committed, now_ms) &&
            job->until_ms > 0)
            return; /* a server does not answer */
        if (log->behind_ms > 0 && log->behind_ms < oldest_ms)
            oldest_ms = log->behind_ms;
        refused += log->refused;
    }
    metric_set(job->cells, METRIC_ENGINE_AUDIT_AGE, 0, now_ms - oldest_ms);
    metric_set(job->cells, METRIC_ENGINE_AUDIT_REFUSED, 0, refused);
}

static void *audit_main(void *arg)
{
    struct audit_job *const job = arg;
    do {
        if (has_stream(job))
            audit_job_run_once(job);
    } while (job_thread_sleep(&job->thread, job->has_stream ? LOOK_EVERY_MS : RETRY_MS));
    job->until_ms = clock_monotonic_ms() + LAST_ROUND_MS;
    if (job->has_stream)
        audit_job_run_once(job);
    return NULL;
}

/* ---- start and stop ---- */

static void audit_job_release(struct audit_job *job)
{
    for (uint32_t p = 0; job->logs != NULL && p < job->engine->topology.partitions; p++) {
        sealer_destroy(job->logs[p].sealer);
        free(job->logs[p].lists);
    }
    free(job->logs);
    buf_release(&job->message);
    buf_release(&job->name);
    metrics_return_cells(job->cells);
    audit_key_list_forget(&job->keys);
    free(job);
}

thole_status audit_job_create(struct engine_host *engine, struct audit_job **ret, thole_error *reterr)
{
    *ret = NULL;
    if (engine->options.audit_key == NULL)
        return THOLE_OK;
    struct audit_job *const job = memory_new(sizeof *job);
    job->engine = engine;
    job->cells = metrics_cells(engine->options.metrics);
    buf_init(&job->message, MESSAGE_BYTES);
    buf_init(&job->name, STREAM_NAME_BYTES_MAX);
    thole_status const status = audit_key_list_read(engine->options.audit_key, &job->keys, reterr);
    if (status != THOLE_OK) {
        audit_job_release(job);
        return status;
    }
    if (job->keys.open_to_all)
        log_line(LOG_LEVEL_WARN, "audit",
                 "--audit-key: everybody on this machine may read a file with a key that signs: chmod o-r");
    *ret = job;
    return THOLE_OK;
}

thole_status audit_job_start(struct audit_job *job, thole_error *reterr)
{
    if (job == NULL)
        return THOLE_OK;
    uint32_t const partitions = job->engine->topology.partitions;
    job->logs = memory_array(partitions, sizeof *job->logs);
    for (uint32_t p = 0; p < partitions; p++)
        job->logs[p] = (struct sealed_log){.job = job, .p = p};
    thole_status const status =
        job_thread_start(&job->thread, audit_main, job, "that signs checkpoints", reterr);
    job->runs = status == THOLE_OK;
    return status;
}

void audit_job_stop(struct audit_job *job)
{
    if (job == NULL)
        return;
    if (job->runs)
        job_thread_stop(&job->thread);
    audit_job_release(job);
}
