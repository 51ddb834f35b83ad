/*
 * Loading an instance from its newest record back to the first that counts: no thread, no consumer. Each
 * record says where the one of its instance before it is, and its hash, so that nothing can be missing. Asked
 * for by its sequence, nats-server has a record at once; by a subject it copies and compares the messages
 * between two records of the instance, one by one: milliseconds where others have written much meanwhile.
 *
 * What is not found so is loaded over a consumer (history_requests.c): long histories, and records of engines
 * that did not say where.
 */
#include "jscan.h"
#include "read_places.h"
#include "reader.h"
#include "record_head.h"
#include "records.h"
#include "shard_parts.h"
#include "subject.h"
#include <stdio.h>

enum {
    TOKEN_EXECUTION = 5,
    STEPS_MAX = 64,   /* more records are cheaper over a consumer */
    LOAD_RECORDS = 4, /* guessed */
    LOAD_BYTES_MIN = 16 * 1024,
};

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

/* ---- one step ---- */

enum step { STEP_ON, STEP_DONE, STEP_UNKNOWN };

static bool history_walk_execution_of(thole_slice subject, uint64_t *ret)
{
    thole_slice const execution = subject_nth(subject, TOKEN_EXECUTION);
    if (!thole_slice_equal(execution, THOLE_STR(SUBJECT_DELETED)))
        return json_uint(execution, ret) && *ret < EXECUTION_DELETED;
    *ret = EXECUTION_DELETED;
    return true;
}

/* Whether a record of that execution belongs to the history being loaded: see load_newest(). No, and the walk
 * is done: it is of an execution that was left, or of an earlier incarnation. */
static enum step history_walk_check(struct asked_history *asked, uint64_t execution, bool *ret_belongs)
{
    uint64_t const newest = asked->execution;
    bool const deleted = execution == EXECUTION_DELETED;
    bool const before = newest > 1 && execution == newest - 1;
    *ret_belongs = !asked->leaves || before;
    if (deleted)
        return STEP_DONE;
    if (execution > newest || (before && asked->early))
        return STEP_UNKNOWN;
    asked->leaves |= before;
    asked->early |= execution == 0 && !asked->leaves && newest > 1;
    if (execution == newest || before || execution == 0)
        return STEP_ON;
    *ret_belongs = false;
    return STEP_DONE;
}

/* Whether the record begins an execution that was left: the records before it may have been removed. */
static bool is_the_beginning(const struct asked_history *asked, uint64_t execution,
                             const struct record_head *head)
{
    return asked->leaves && execution == asked->execution - 1 && head->first_event == 1;
}

/* The first record that is met of an execution tells how many there are of it, or more. */
static bool is_long(struct asked_history *asked, uint64_t execution, const struct record_head *head)
{
    uint64_t const more = asked->steps == 1 || execution != asked->met ? head->turn : 0;
    asked->met = execution;
    return asked->steps >= STEPS_MAX || more > STEPS_MAX - asked->steps + 1;
}

/* Takes a record; STEP_ON: `next` is to be asked for. @p subject is borrowed for the call, @p body for as
 * long as the request. */
static enum step history_walk_take(struct asked_history *asked, uint64_t sequence, thole_slice subject,
                                   thole_slice body)
{
    uint64_t execution;
    bool belongs;
    struct record_head head;
    if (!history_walk_execution_of(subject, &execution) || !record_head_read(body, &head))
        return STEP_UNKNOWN;
    enum step const step = history_walk_check(asked, execution, &belongs);
    if (step != STEP_UNKNOWN && belongs && records_add(&asked->found, sequence, subject, body) != THOLE_OK)
        return STEP_UNKNOWN;
    if (step != STEP_ON)
        return step;
    asked->steps++;
    asked->next = head.before;
    if (head.before.sequence == 0 || is_the_beginning(asked, execution, &head))
        return STEP_DONE;
    return head.before.sequence < sequence && !is_long(asked, execution, &head) ? STEP_ON : STEP_UNKNOWN;
}

static void history_walk_reverse(struct records *records)
{
    for (size_t i = 0, k = records->len; i + 1 < k; i++) {
        struct log_record const item = records->items[i];
        records->items[i] = records->items[--k];
        records->items[k] = item;
    }
}

static void history_walk_give(struct owned *owned, struct request *request)
{
    struct asked_history *const asked = &request->history;
    history_walk_reverse(&asked->found);
    log_line_of(LOG_LEVEL_DEBUG, "partition", LOG_INSTANCE(owned->p, asked->instance, asked->execution),
                "loads from %zu records", asked->found.len);
    bool const begins = !asked->leaves && asked->next.sequence == 0; /* nothing is before it */
    read_places_note(request->shard->read_places, owned->p, request->mail.generation, asked->instance,
                     asked->found.items, begins ? asked->found.len : 0);
    request->in.history = (struct in_history){asked->instance, asked->found.items, asked->found.len};
    request_input(owned, request);
}

/* ---- the newest record ---- */

/* Most instances are new when their first message comes: that is looked up first, at the stream's leader. */
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

/* By its newest record, which came in JSON and base64: a few like it. */
static size_t guess_bytes(const struct request *found)
{
    size_t const bytes = found->reply.body.len * LOAD_RECORDS;
    return bytes > LOAD_BYTES_MIN ? bytes : LOAD_BYTES_MIN;
}

static struct request *walk_create(struct owned *owned, const struct request *found, uint64_t sequence,
                                   uint64_t execution)
{
    struct request *const request = request_create(REQ_WALK, found->shard, owned);
    request->history = (struct asked_history){.instance = request_keep(request, found->history.instance),
                                              .execution = execution,
                                              .to = sequence,
                                              .found = {.arena = &request->arena}};
    request->in = found->in;
    request->in.history.instance = request->history.instance;
    return request;
}

/* Begins with the record that a look-up has found; its subject and its body are the shard's. A walk that has
 * to wait does not keep it: thousands may, and it is asked for again. */
static void walk_from(struct owned *owned, const struct request *found, uint64_t sequence, uint64_t execution)
{
    struct shard *const shard = found->shard;
    struct request *const request = walk_create(owned, found, sequence, execution);
    size_t const bytes = guess_bytes(found);
    if (!request_load_fits(shard, bytes)) {
        request->history.next = (struct record_link){
            record_hash_make(thole_slice_from(shard->engine->topology.ns), owned->p, buf_bytes(&shard->body)),
            sequence};
        request_load(request, bytes);
        return;
    }
    enum step const step = history_walk_take(&request->history, sequence, buf_bytes(&shard->subject),
                                             request_keep(request, buf_bytes(&shard->body)));
    if (step == STEP_DONE) {
        history_walk_give(owned, request);
        request_destroy(request);
        return;
    }
    if (step == STEP_UNKNOWN)
        request->kind = REQ_LOAD;
    request_load(request, bytes);
}

void look_up_answered(struct owned *owned, struct request *request)
{
    struct shard *const shard = request->shard;
    uint64_t sequence = 0, execution = 0;
    if (!request_is_current(owned, request))
        return; /* the partition asks again after it is opened */
    thole_status status = stream_get_answer(request->reply.body, &sequence, &shard->body, NULL);
    if (status == THOLE_OK && sequence > 0)
        status = stream_get_subject(request->reply.body, &shard->subject, NULL);
    if (status == THOLE_OK && sequence > 0 &&
        !history_walk_execution_of(buf_bytes(&shard->subject), &execution))
        execution = 1; /* nobody writes such a subject: all that there is of the instance is read */
    if (status != THOLE_OK)
        shard_step_down(owned, "a history could not be looked up");
    else if (sequence > 0)
        walk_from(owned, request, sequence, execution);
    else
        request_input(owned, request);
}

/* ---- those before it ---- */

thole_status walk_send(struct request *request, thole_error *reterr)
{
    struct shard *const shard = request->shard;
    char api[STREAM_NAME_BYTES_MAX + 32];
    snprintf(api, sizeof api, "$JS.API.DIRECT.GET.%s", shard_owned(shard, request->mail.p)->hist_stream);
    THOLE_TRY(stream_sequence_request(&shard->body, request->history.next.sequence));
    return requests_get(shard->windows[WINDOW_READS].requests, api, buf_bytes(&shard->body),
                        request_token(request), reterr);
}

/* The replica that answers may lag, and the sequence may be of another stream. */
static bool is_the_one(const struct request *request)
{
    const struct request_reply *const reply = &request->reply;
    const struct record_link *const next = &request->history.next;
    if (request->status != THOLE_OK || reply->sequence != next->sequence)
        return false;
    struct record_hash const hash =
        record_hash_make(thole_slice_from(request->shard->engine->topology.ns), request->mail.p, reply->body);
    return record_hash_equal(&hash, &next->hash);
}

void walk_answered(struct owned *owned, struct request *request)
{
    const struct request_reply *const reply = &request->reply;
    if (!request_is_current(owned, request))
        return;
    enum step const step = is_the_one(request) ? history_walk_take(&request->history, reply->sequence,
                                                                   reply->subject, reply->body)
                                               : STEP_UNKNOWN;
    if (step == STEP_DONE) {
        history_walk_give(owned, request);
        return;
    }
    if (step == STEP_UNKNOWN)
        request->kind = REQ_LOAD;
    request_again(request, 0);
}
