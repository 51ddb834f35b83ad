/* Histories: which there are; an instance's, found, loaded, removed. */
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
    WALK_RECORDS_MAX = 4, /* more of them are cheaper over a consumer */
    LOAD_RECORDS = 4,     /* guessed */
    LOAD_BYTES_MIN = 16 * 1024,
};

/* ---- the newest record ---- */

/* Most instances are new when their first message comes: look that up first, without a thread and a
 * consumer. */
void history_load(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    bool const known = out->load.execution != 0;
    struct request *request = request_of(known ? REQ_LOAD : REQ_LOOK_UP, shard, owned, out);
    request->history = (struct asked_history){.instance = request_keep(request, out->load.instance),
                                              .execution = out->load.execution,
                                              .to = UINT64_MAX,
                                              .only = true};
    request->in.history.instance = request->history.instance;
    if (known)
        request_load(request, LOAD_BYTES_MIN);
    else
        request_submit(request);
}

/* By its newest record, which came in JSON and base64: a few like it. */
static size_t guess_bytes(const struct request *found)
{
    size_t const bytes = found->reply.body.len * LOAD_RECORDS;
    return bytes > LOAD_BYTES_MIN ? bytes : LOAD_BYTES_MIN;
}

/* Loads the history up to the record that a look-up has found. Of a first execution one record after the
 * other: see load_newest() for the others. */
static void load_newest_of(const struct owned *owned, const struct request *found, uint64_t execution,
                           uint64_t to)
{
    struct request *request = request_create(execution == 1 ? REQ_WALK : REQ_LOAD, found->shard, owned);
    request->history = (struct asked_history){.instance = request_keep(request, found->history.instance),
                                              .execution = execution,
                                              .to = to,
                                              .from = 1,
                                              .found = {.arena = &request->arena}};
    request->in = found->in;
    request->in.history.instance = request->history.instance;
    request_load(request, guess_bytes(found));
}

thole_status look_up_send(struct request *request, thole_error *reterr)
{
    struct shard *const shard = request->shard;
    char api[STREAM_NAME_BYTES_MAX + 32];
    snprintf(api, sizeof api, "$JS.API.STREAM.MSG.GET.%s", shard_owned(shard, request->mail.p)->hist_stream);
    THOLE_TRY(subject_history(&shard->subject, shard->engine->topology.ns, request->mail.p,
                              request->history.instance, EXECUTIONS_ALL, reterr));
    buf_clear(&shard->body);
    THOLE_TRY(stream_get_request(&shard->body, buf_cstr(&shard->subject)));
    return requests_send(shard->windows[WINDOW_READS].requests, api, buf_bytes(&shard->body),
                         request_token(request), reterr);
}

/* Sequence (0: none) and execution of the newest record, or EXECUTION_DELETED. */
static thole_status newest_record(thole_slice answer, uint64_t *ret_sequence, uint64_t *ret_execution,
                                  thole_error *reterr)
{
    struct buf subject;
    THOLE_TRY(stream_get_answer(answer, ret_sequence, NULL, reterr));
    if (*ret_sequence == 0)
        return THOLE_OK;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = stream_get_subject(answer, &subject, reterr);
    thole_slice const execution = subject_nth(buf_bytes(&subject), TOKEN_EXECUTION);
    if (thole_slice_equal(execution, THOLE_STR(SUBJECT_DELETED)))
        *ret_execution = EXECUTION_DELETED;
    else if (status == THOLE_OK && !json_uint(execution, ret_execution))
        status = thole_fail(reterr, THOLE_CORRUPT, "a history's subject names no execution");
    buf_release(&subject);
    return status;
}

void look_up_answered(struct owned *owned, struct request *request)
{
    uint64_t sequence = 0, execution = 0;
    if (!request_is_current(owned, request))
        return; /* the partition asks again after it is opened */
    if (newest_record(request->reply.body, &sequence, &execution, NULL) != THOLE_OK)
        shard_step_down(owned, "a history could not be looked up");
    else if (sequence > 0)
        load_newest_of(owned, request, execution, sequence);
    else
        request_input(owned, request);
}

/* ---- record by record: no thread, no consumer ---- */

thole_status walk_send(struct request *request, thole_error *reterr)
{
    struct shard *const shard = request->shard;
    char api[STREAM_NAME_BYTES_MAX + 32];
    snprintf(api, sizeof api, "$JS.API.DIRECT.GET.%s", shard_owned(shard, request->mail.p)->hist_stream);
    THOLE_TRY(subject_history(&shard->subject, shard->engine->topology.ns, request->mail.p,
                              request->history.instance, EXECUTIONS_ALL, reterr));
    THOLE_TRY(stream_next_request(&shard->body, buf_cstr(&shard->subject), request->history.from));
    return requests_get(shard->windows[WINDOW_READS].requests, api, buf_bytes(&shard->body),
                        request_token(request), reterr);
}

/* Whether the answer is the next record, which is in the request's memory. The replica that answered may have
 * fallen behind. */
static bool take_record(struct asked_history *asked, const struct request *request)
{
    const struct request_reply *const reply = &request->reply;
    if (request->status != THOLE_OK || reply->sequence < asked->from || reply->sequence > asked->to ||
        records_add(&asked->found, reply->sequence, reply->subject, reply->body) != THOLE_OK)
        return false;
    asked->from = reply->sequence + 1;
    return true;
}

void walk_answered(struct owned *owned, struct request *request)
{
    struct asked_history *const asked = &request->history;
    if (!request_is_current(owned, request))
        return;
    bool const taken = take_record(asked, request);
    if (taken && asked->from > asked->to) {
        request->in.history = (struct in_history){asked->instance, asked->found.items, asked->found.len};
        request_input(owned, request);
        return;
    }
    if (!taken || asked->found.len >= WALK_RECORDS_MAX)
        request->kind = REQ_LOAD; /* the rest */
    request_again(request, 0);
}

/* ---- loading: a loader's thread ---- */

static thole_status read_execution(struct engine_host *engine, struct request *request, struct records *found,
                                   uint64_t execution, uint64_t from)
{
    const char *stream = shard_owned(request->shard, request->mail.p)->hist_stream;
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = subject_history(&subject, engine->topology.ns, request->mail.p,
                                          request->history.instance, execution, &request->err);
    if (status == THOLE_OK)
        status = records_read(found, engine->connection, stream, buf_cstr(&subject), from,
                              request->history.to, &request->err);
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
    thole_status status = subject_history(&subject, engine->topology.ns, request->mail.p,
                                          request->history.instance, EXECUTION_DELETED, &request->err);
    if (status == THOLE_OK)
        status = stream_last_by_subject(engine->connection, stream, buf_cstr(&subject), ret_sequence, &body,
                                        &request->err);
    if (status == THOLE_OK && *ret_sequence > 0) {
        thole_status const decoded = record_decode(buf_bytes(&body), &arena, &record, NULL);
        bool const good = decoded == THOLE_OK && record.kind == RECORD_DELETED;
        *ret_execution = good ? record.deletion.execution : UINT64_MAX - 1;
        if (decoded == THOLE_NOMEM)
            status = thole_fail(&request->err, decoded, "out of memory");
    }
    arena_release(&arena);
    buf_release(&subject);
    buf_release(&body);
    return status;
}

/*
 * Loads up to the instance's newest record, which is known. Of the first execution, and of execution 0, all
 * records since the id's last deletion: early events may be recorded after an incomplete first turn. An
 * execution that continued as new gets no more records. Of the first execution a walk may have found some.
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
        return read_execution(engine, request, found, EXECUTIONS_ALL,
                              execution == 1 ? request->history.from : deleted);
    THOLE_TRY(read_execution(engine, request, found, execution - 1, 1));
    return read_execution(engine, request, found, execution, 1);
}

thole_status history_load_records(struct engine_host *engine, struct request *request)
{
    const struct asked_history *const asked = &request->history;
    struct records found = asked->found;
    found.arena = &request->arena;
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
                                          note_id, &listed, &request->err);
    if (status == THOLE_OK && listed.status != THOLE_OK)
        status = thole_fail(&request->err, THOLE_CORRUPT, "stream %s has a subject that names no instance",
                            stream);
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
                    "does not know yet which instances there are: %s", request->err.text);
        request_again(request, LIST_RETRY_MS);
        return;
    }
    if (request->status == THOLE_OK)
        log_line_of(LOG_LEVEL_DEBUG, "partition", LOG_PARTITION(owned->p),
                    "knows which instances there are: %zu", request->in.ids.hashes_len);
    else
        log_line_of(request->status == THOLE_LIMIT ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "partition",
                    LOG_PARTITION(owned->p), "looks up each instance that is started: %s", request->err.text);
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
                                          EXECUTIONS_ALL, &request->err);
    if (status == THOLE_OK)
        status = stream_read(engine->connection, stream, buf_cstr(&subject), 1, asked->of.below - 1,
                             note_sequence, &removed, &request->err);
    buf_release(&subject);
    if (status == THOLE_OK || asked->more)
        status = stream_delete_all(engine->connection, stream, removed.sequences, removed.len, &request->err);
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
                        request->err.text);
        request_again(request, REMOVE_RETRY_MS);
    } else if (asked->more) {
        request_again(request, 0);
    } else {
        request_input(owned, request);
    }
}
