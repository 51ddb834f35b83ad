/* Histories: an instance's, loaded over a consumer, and removed; which there are. */
#include "jscan.h"
#include "memory.h"
#include "reader.h"
#include "records.h"
#include "shard_parts.h"
#include "subject.h"
#include "subject_list.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    TOKEN_KIND = 2,
    TOKEN_INSTANCE = 4,
    TOKEN_EXECUTION = 5,
    LIST_RETRY_MS = 2000,
    REMOVED_MAX = 1000, /* records of one request */
    REMOVE_RETRY_MS = 500,
};

/* ---- loading: a loader's thread ---- */

static thole_status read_execution(struct engine_host *engine, struct request *request, struct records *found,
                                   uint64_t execution, uint64_t from)
{
    const char *stream = shard_owned(request->shard, request->mail.p)->hist_stream;
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = subject_history(&subject, engine->topology.ns, request->mail.p,
                                          request->history.instance, execution, request_error(request));
    if (status == THOLE_OK)
        status = records_read(found, engine->connection, stream, buf_cstr(&subject), from,
                              request->history.to, request_error(request));
    buf_release(&subject);
    return status;
}

/* Sequence of the id's last deletion (0: none), and its execution (of a record that does not decode: any). */
static thole_status read_deletion(struct engine_host *engine, struct request *request, uint64_t *ret_sequence,
                                  uint64_t *ret_execution)
{
    const char *stream = shard_owned(request->shard, request->mail.p)->hist_stream;
    struct buf subject, body;
    struct record record;
    struct arena arena;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, RECORD_BYTES_MAX);
    arena_init(&arena, RECORD_BYTES_MAX * 2);
    thole_status status =
        subject_history(&subject, engine->topology.ns, request->mail.p, request->history.instance,
                        EXECUTION_DELETED, request_error(request));
    if (status == THOLE_OK)
        status = stream_last_by_subject(engine->connection, stream, buf_cstr(&subject), ret_sequence, &body,
                                        request_error(request));
    if (status == THOLE_OK && *ret_sequence > 0) {
        thole_status const decoded = record_decode(buf_bytes(&body), &arena, &record, NULL);
        bool const good = decoded == THOLE_OK && record.kind == RECORD_DELETED;
        *ret_execution = good ? record.deletion.execution : UINT64_MAX - 1;
        if (decoded == THOLE_NOMEM)
            status = thole_fail(request_error(request), decoded, "out of memory");
    }
    arena_release(&arena);
    buf_release(&subject);
    buf_release(&body);
    return status;
}

/*
 * Loads up to the instance's newest record, which is known. Of the first execution, and of execution 0, all
 * records since the id's last deletion: early events may be recorded after an incomplete first turn. An
 * execution that continued as new gets no more records.
 */
static thole_status load_newest(struct engine_host *engine, struct request *request, struct records *found)
{
    uint64_t deleted = 0, last = 0;
    uint64_t const execution = request->history.execution;
    if (execution == EXECUTION_DELETED)
        return read_execution(engine, request, found, EXECUTION_DELETED, request->history.to);
    if (execution != 1)
        THOLE_TRY(read_deletion(engine, request, &deleted, &last));
    if (execution <= last + 1)
        return read_execution(engine, request, found, EXECUTIONS_ALL, execution == 1 ? 1 : deleted);
    THOLE_TRY(read_execution(engine, request, found, execution - 1, 1));
    return read_execution(engine, request, found, execution, 1);
}

thole_status history_load_records(struct engine_host *engine, struct request *request)
{
    const struct asked_history *const asked = &request->history;
    struct records found = {.arena = &request->arena};
    thole_status const status = asked->only ? read_execution(engine, request, &found, asked->execution, 1)
                                            : load_newest(engine, request, &found);
    if (status == THOLE_OK)
        log_line_of(LOG_LEVEL_DEBUG, "partition",
                    LOG_INSTANCE(request->mail.p, asked->instance, asked->execution),
                    "loads from %zu records", found.len);
    request->in.history = (struct in_history){asked->instance, found.items, found.len};
    return status;
}

/* ---- which there are ---- */

void ids_read(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_READ_IDS, shard, owned, out);
    request->ids = out->read_ids;
    request_submit(request);
}

struct listed {
    uint64_t *hashes;
    size_t len, cap;
    struct buf id;
    thole_status status;
};

static void note_id(void *arg, thole_slice subject)
{
    struct listed *listed = arg;
    if (!thole_slice_equal(subject_nth(subject, TOKEN_KIND), THOLE_STR("hist")) || listed->status != THOLE_OK)
        return; /* ctl: of no instance */
    buf_clear(&listed->id);
    listed->status = subject_token_decode(subject_nth(subject, TOKEN_INSTANCE), &listed->id, NULL);
    if (listed->status != THOLE_OK)
        return;
    uint64_t const hash = instance_id_hash(buf_bytes(&listed->id));
    if (listed->len > 0 && listed->hashes[listed->len - 1] == hash)
        return; /* another execution: they stand side by side */
    listed->hashes = memory_reserve(listed->hashes, &listed->cap, listed->len + 1, sizeof *listed->hashes);
    listed->hashes[listed->len++] = hash;
}

/* One that has many executions counts for more than one: the server counts subjects. */
thole_status ids_load(struct engine_host *engine, struct request *request)
{
    const char *stream = shard_owned(request->shard, request->mail.p)->hist_stream;
    struct listed listed = {.status = THOLE_OK};
    buf_init(&listed.id, SUBJECT_BYTES_MAX);
    thole_status status = stream_subjects(engine->connection, stream, request->ids.since, request->ids.most,
                                          note_id, &listed, request_error(request));
    if (status == THOLE_OK && listed.status != THOLE_OK)
        status = thole_fail(request_error(request), THOLE_CORRUPT,
                            "stream %s has a subject that names no instance", stream);
    thole_slice const hashes = {(const uint8_t *)listed.hashes, listed.len * sizeof *listed.hashes};
    if (status == THOLE_OK)
        request->in.ids = (struct in_ids){(const uint64_t *)(const void *)request_keep(request, hashes).ptr,
                                          listed.len, true};
    free(listed.hashes);
    buf_release(&listed.id);
    return status;
}

/* Until then, and without it, each start looks at the log. */
void ids_answered(struct owned *owned, struct request *request)
{
    if (!request_is_current(owned, request))
        return;
    if (request->status == THOLE_UNAVAILABLE) {
        log_line_of(LOG_LEVEL_DEBUG, "partition", LOG_PARTITION(owned->p),
                    "does not know yet which instances there are: %s", request_error_text(request));
        request_again(request, LIST_RETRY_MS);
        return;
    }
    if (request->status == THOLE_OK)
        log_line_of(LOG_LEVEL_DEBUG, "partition", LOG_PARTITION(owned->p),
                    "knows which instances there are: %zu", request->in.ids.hashes_len);
    else
        log_line_of(request->status == THOLE_LIMIT ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "partition",
                    LOG_PARTITION(owned->p), "looks up each instance that is started: %s",
                    request_error_text(request));
    request_input(owned, request);
}

/* ---- removal ---- */

void history_remove(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_REMOVE_HISTORY, shard, owned, out);
    request->removal.of = out->remove_history;
    request->removal.of.instance = request_keep(request, out->remove_history.instance);
    request_submit(request);
}

struct removed { /* what one request removes */
    struct asked_removal *asked;
    uint64_t sequences[REMOVED_MAX];
    size_t len;
};

static thole_status note_sequence(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct removed *removed = arg;
    struct executions const executions = removed->asked->of.executions;
    uint64_t execution = 0;
    (void)body;
    if (executions.upto > 0 && (!json_uint(subject_nth(subject, TOKEN_EXECUTION), &execution) ||
                                execution <= executions.above || execution > executions.upto))
        return THOLE_OK;
    removed->sequences[removed->len++] = sequence;
    removed->asked->more = removed->len == REMOVED_MAX;
    return removed->asked->more ? THOLE_CANCELLED : THOLE_OK;
}

/* Not by a purge of the subject, which the stream does not allow: that is not safe in a crash, and reads
 * every block. Records above `below` stay: they are of the id's next incarnation. */
thole_status removal_load(struct engine_host *engine, struct request *request)
{
    const char *stream = shard_owned(request->shard, request->mail.p)->hist_stream;
    struct asked_removal *const asked = &request->removal;
    struct removed removed = {.asked = asked};
    struct buf subject;
    asked->more = false;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = subject_history(&subject, engine->topology.ns, request->mail.p, asked->of.instance,
                                          EXECUTIONS_ALL, request_error(request));
    if (status == THOLE_OK)
        status = stream_read(engine->connection, stream, buf_cstr(&subject), 1, asked->of.below - 1,
                             note_sequence, &removed, request_error(request));
    buf_release(&subject);
    if (status == THOLE_OK || asked->more)
        status = stream_delete_all(engine->connection, stream, removed.sequences, removed.len,
                                   request_error(request));
    return status;
}

/* In small pieces, so that histories can be loaded in between, and without a time limit: only the watermark
 * waits for it. */
void removal_answered(struct owned *owned, struct request *request)
{
    const struct asked_removal *const asked = &request->removal;
    if (!request_is_current(owned, request))
        return;
    if (request->status != THOLE_OK) {
        log_limits_line(request->shard->engine->lines, clock_monotonic_ms(), LINE_REMOVAL_DELAYED,
                        LOG_INSTANCE(owned->p, asked->of.instance, 0),
                        "the history is deleted, but its records cannot be removed yet: %s",
                        request_error_text(request));
        request_again(request, REMOVE_RETRY_MS);
    } else if (asked->more) {
        request_again(request, 0);
    } else {
        request_input(owned, request);
    }
}
