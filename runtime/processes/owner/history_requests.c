/* Histories: an instance's, loaded over a consumer, and removed; which there are. */
#include "memory.h"
#include "read_places.h"
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
    LIST_RETRY_MS = 2000,
    REMOVE_RETRY_MS = 500,
};

/* ---- loading: a loader's thread ---- */

static thole_status history_requests_read_execution(struct engine_host *engine, struct request *request,
                                                    struct records *found, uint64_t execution, uint64_t from)
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
static thole_status history_requests_load_newest(struct engine_host *engine, struct request *request,
                                                 struct records *found)
{
    uint64_t deleted = 0, last = 0;
    uint64_t const execution = request->history.execution;
    if (execution == EXECUTION_DELETED)
        return history_requests_read_execution(engine, request, found, EXECUTION_DELETED,
                                               request->history.to);
    if (execution != 1)
        THOLE_TRY(read_deletion(engine, request, &deleted, &last));
    if (execution <= last + 1)
        return history_requests_read_execution(engine, request, found, EXECUTIONS_ALL,
                                               execution == 1 ? 1 : deleted);
    THOLE_TRY(history_requests_read_execution(engine, request, found, execution - 1, 1));
    return history_requests_read_execution(engine, request, found, execution, 1);
}

thole_status history_load_records(struct engine_host *engine, struct request *request)
{
    const struct asked_history *const asked = &request->history;
    struct records found = {.arena = &request->arena};
    thole_status const status =
        asked->only ? history_requests_read_execution(engine, request, &found, asked->execution, 1)
                    : history_requests_load_newest(engine, request, &found);
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

static void history_requests_note_id(void *arg, thole_slice subject)
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
                                          history_requests_note_id, &listed, request_error(request));
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
    const struct out_remove_history *const asked = &out->remove_history;
    struct request *request = request_of(REQ_REMOVE_HISTORY, shard, owned, out);
    struct removing_place *const places = arena_array(&request->arena, REMOVING_KNOWN, sizeof *places);
    size_t const n = places == NULL ? 0
                                    : read_places_take(shard->read_places, owned->p, request->mail.generation,
                                                       asked->instance, places);
    request->removal = (struct asked_removal){.instance = request_keep(request, asked->instance),
                                              .executions = asked->executions,
                                              .below = asked->below,
                                              .urgent = asked->urgent,
                                              .places = places,
                                              .places_len = n};
    request_submit(request);
}

/* Without a time limit: only the watermark waits for it. What was removed by then stays so. */
void removal_answered(struct owned *owned, struct request *request)
{
    if (!request_is_current(owned, request))
        return;
    if (request->status != THOLE_OK) {
        log_limits_line(request->shard->engine->lines, clock_monotonic_ms(), LINE_REMOVAL_DELAYED,
                        LOG_INSTANCE(owned->p, request->removal.instance, 0),
                        "the history is deleted, but its records cannot be removed yet: %s",
                        request_error_text(request));
        request_again(request, REMOVE_RETRY_MS);
    } else {
        request_input(owned, request);
    }
}
