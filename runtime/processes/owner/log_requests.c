/* Requests for the partition's log: appends, many in flight at a time, and reads and removals when it
 * opens. */
#include "jscan.h"
#include "lookout.h"
#include "reader.h"
#include "records.h"
#include "shard_parts.h"
#include "subject.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- appends ---- */

void log_append(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_APPEND, shard, owned, out);
    request->append = out->append;
    request_submit(request);
}

static thole_status append_subject(struct shard *shard, uint32_t p, const struct out_append *append,
                                   thole_error *reterr)
{
    const char *ns = shard->engine->topology.ns;
    switch (append->kind) {
    case RECORD_TURN:
        return subject_history(&shard->subject, ns, p, append->instance, append->execution, reterr);
    case RECORD_DELETED:
        return subject_history(&shard->subject, ns, p, append->instance, EXECUTION_DELETED, reterr);
    case RECORD_EPOCH_OPENED: return subject_control(&shard->subject, ns, p, "epoch", reterr);
    case RECORD_POSITION:
        return subject_control(&shard->subject, ns, p, append->lists ? "folded" : "position", reterr);
    case RECORD_UNKNOWN: break;
    }
    return thole_fail(reterr, THOLE_INVALID, "a record of kind %d has no subject", (int)append->kind);
}

thole_status append_send(struct request *request, thole_error *reterr)
{
    struct shard *const shard = request->shard;
    const struct out_append *const append = &request->append;
    THOLE_TRY(append_subject(shard, request->mail.p, append, reterr));
    struct publish const publish = {.subject = buf_cstr(&shard->subject),
                                    .body = append->bytes,
                                    .expect_last = true,
                                    .expected_last = append->expected_last};
    return requests_publish(shard->windows[WINDOW_APPENDS].requests, &publish, request_token(request),
                            reterr);
}

static const char *why_not_stored(const struct request_reply *reply)
{
    if (reply->lost)
        return NATS_LOST_TEXT;
    switch (reply->result) {
    case REQUEST_REFUSED: return "an append was refused: another owner wrote first";
    case REQUEST_UNKNOWN: return "an append was not answered";
    case REQUEST_BUSY: return request_reason(reply->result, reply->err_code);
    case REQUEST_ANSWERED:
    case REQUEST_STORED:
    case REQUEST_FAILED: break;
    }
    return "the server refused an append";
}

static enum closed_cause log_requests_cause_of(const struct request_reply *reply)
{
    if (request_is_full(reply->err_code))
        return CLOSED_STORAGE_FULL;
    if (reply->lost)
        return CLOSED_NATS_LOST;
    return reply->result == REQUEST_REFUSED ? CLOSED_APPEND_REFUSED : CLOSED_APPEND_UNANSWERED;
}

void append_answered(struct owned *owned, struct request *request)
{
    const struct request_reply *const reply = &request->reply;
    if (reply->result == REQUEST_STORED) {
        request->in.appended.sequence = reply->sequence;
    } else {
        request->in.kind = PARTITION_IN_APPEND_FAILED;
        request->in.append_failed.text = why_not_stored(reply);
        shard_cause(owned, log_requests_cause_of(reply));
    }
    if (reply->result == REQUEST_FAILED)
        log_line_of(LOG_LEVEL_ERROR, "partition", LOG_PARTITION(owned->p),
                    "the server refused an append, error %u", reply->err_code);
    request_input(owned, request);
}

/* ---- the tail ---- */

void log_read_tail(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_KNOW_LOG, shard, owned, out);
    request->tail = (struct asked_tail){.of = out->read_tail};
    request_submit(request);
}

/* The lookout looks who lets the server deliver them. */
static void log_note_foreign(struct engine_host *engine, uint32_t p, const char *stream,
                             const struct records *found)
{
    if (found->foreign == 0)
        return;
    log_limits_line(engine->lines, clock_monotonic_ms(), LINE_FOREIGN, LOG_PARTITION(p),
                    "%" PRIu64 " messages of %s, the last one #%" PRIu64
                    ", were not published to the history: "
                    "they are no records, and are removed. Somebody lets the server deliver there: "
                    "docs/operations.md, Accounts",
                    found->foreign, stream, found->foreign_sequence);
    atomic_store(&engine->intruded_p, p);
    (void)atomic_fetch_add(&engine->intruded, found->foreign);
    lookout_hurry(engine->lookout);
}

thole_status tail_load(struct engine_host *engine, struct request *request)
{
    const char *stream = shard_owned(request->shard, request->mail.p)->hist_stream;
    uint64_t const count = request->tail.of.count;
    struct records found = {.arena = &request->arena, .ns = engine->topology.ns, .p = request->mail.p};
    struct buf subject, body;
    THOLE_TRY(log_fit_check(engine, request));
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, RECORD_BYTES_MAX);
    uint64_t opened = 0;
    struct stream_bounds bounds = {0};
    thole_status status =
        subject_control(&subject, engine->topology.ns, request->mail.p, "epoch", request_error(request));
    /* In this order, so that the look-up of the last EpochOpened includes all up to the bound. */
    if (status == THOLE_OK)
        status = stream_bounds(engine->connection, stream, &bounds, request_error(request));
    if (status == THOLE_OK)
        status = stream_last_by_subject(engine->connection, stream, buf_cstr(&subject), &opened, &body,
                                        request_error(request));
    if (status == THOLE_OK && opened > bounds.last)
        status = thole_fail(request_error(request), THOLE_CONFLICT, "a rival opened the partition meanwhile");
    if (status == THOLE_OK && opened > 0)
        status = records_add(&found, opened, (thole_slice){0}, request_keep(request, buf_bytes(&body)));
    if (status == THOLE_OK) {
        uint64_t from = opened + 1;
        if (count > 0 && bounds.last >= count && bounds.last - count + 1 > from)
            from = bounds.last - count + 1;
        status =
            records_read(&found, engine->connection, stream, NULL, from, bounds.last, request_error(request));
    }
    buf_release(&subject);
    buf_release(&body);
    log_note_foreign(engine, request->mail.p, stream, &found);
    request->in.tail = (struct in_tail){.epoch_sequence = opened,
                                        .last_sequence = bounds.last,
                                        .records = found.items,
                                        .records_len = found.len};
    return status == THOLE_OK ? tail_dispensable(engine, request) : status;
}

/* ---- redo ---- */

void log_read(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_READ_LOG, shard, owned, out);
    request->log = out->read_log;
    request_submit(request);
}

thole_status log_load(struct engine_host *engine, struct request *request)
{
    struct records found = {.arena = &request->arena, .ns = engine->topology.ns, .p = request->mail.p};
    thole_status const status =
        records_read(&found, engine->connection, shard_owned(request->shard, request->mail.p)->hist_stream,
                     NULL, request->log.from, request->log.to, request_error(request));
    request->in.log = (struct in_log){found.items, found.len};
    return status;
}

/* ---- void records ---- */

void log_delete(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_DELETE_RECORDS, shard, owned, out);
    struct out_delete_records *const deletion = &request->deletion;
    *deletion = out->delete_records;
    thole_slice const sequences = {(const uint8_t *)deletion->sequences,
                                   deletion->sequences_len * sizeof *deletion->sequences};
    deletion->sequences = (const uint64_t *)(const void *)request_keep(request, sequences).ptr;
    log_line_of(LOG_LEVEL_INFO, "partition", LOG_PARTITION(owned->p),
                "removes void records: %zu of a former owner", deletion->sequences_len);
    request_submit(request);
}

thole_status deletion_load(struct engine_host *engine, struct request *request)
{
    const char *stream = shard_owned(request->shard, request->mail.p)->hist_stream;
    const struct out_delete_records *const deletion = &request->deletion;
    struct stream_bounds bounds = {0};
    THOLE_TRY(stream_bounds(engine->connection, stream, &bounds, request_error(request)));
    if (bounds.last != deletion->expected_last)
        return thole_fail(request_error(request), THOLE_CONFLICT,
                          "a rival wrote to the history while its tail was read");
    return stream_delete_all(engine->connection, stream, deletion->sequences, deletion->sequences_len,
                             request_error(request));
}
