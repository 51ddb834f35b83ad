/* Records of a log that may go (dispensable.h): what a new owner must know of those that went, the look for
 * more, and their removal. */
#include "deletion_lanes.h"
#include "dispensable.h"
#include "finder.h"
#include "reader.h"
#include "records.h"
#include "shard_parts.h"
#include "subject.h"
#include <assert.h>
#include <string.h>

enum { FIND_RETRY_MS = 1000 };

static const char *hist_stream(const struct request *request)
{
    return shard_owned(request->shard, request->mail.p)->hist_stream;
}

/* ---- with the tail ---- */

/* How many records count before each EpochOpened: it says so, or the one before it does. */
struct counting {
    uint64_t counted, epoch; /* of the last one that was met; counted 0: not known, unless it is the first */
    bool known;
    uint64_t until;
};

static thole_status count_epoch(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct counting *const counting = arg;
    struct arena arena;
    struct record record;
    (void)subject;
    (void)sequence;
    arena_init(&arena, 2 * RECORD_BYTES_MAX);
    bool const read =
        record_decode(body, &arena, &record, NULL) == THOLE_OK && record.kind == RECORD_EPOCH_OPENED;
    arena_release(&arena);
    bool const follows = counting->known && read && record.previous_epoch == counting->epoch;
    counting->known = read && (record.counted > 0 || record.previous_epoch == 0 || follows);
    if (counting->known)
        counting->counted = record.counted > 0 || record.previous_epoch == 0
                                ? record.counted
                                : counting->counted + record.previous_n + 1;
    counting->epoch = read ? record.epoch : 0;
    return THOLE_OK;
}

/* Only after an owner of a version that did not count. */
static thole_status count_epochs(struct engine_host *engine, struct request *request)
{
    const struct in_tail *const tail = &request->in.tail;
    struct counting counting = {.known = false};
    struct arena arena;
    struct record opened;
    if (tail->records_len == 0 || tail->records[0].sequence != tail->epoch_sequence)
        return THOLE_OK;
    arena_init(&arena, 2 * RECORD_BYTES_MAX);
    bool const says = record_decode(tail->records[0].bytes, &arena, &opened, NULL) != THOLE_OK ||
                      opened.kind != RECORD_EPOCH_OPENED || opened.counted > 0 || opened.previous_epoch == 0;
    arena_release(&arena);
    if (says)
        return THOLE_OK;
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status =
        subject_control(&subject, engine->topology.ns, request->mail.p, "epoch", request_error(request));
    if (status == THOLE_OK)
        status = stream_read(engine->connection, hist_stream(request), buf_cstr(&subject), 1,
                             tail->epoch_sequence, count_epoch, &counting, request_error(request));
    buf_release(&subject);
    if (status == THOLE_OK && counting.known)
        request->in.tail.counted = counting.counted;
    return status;
}

/* After the look at the log's end: a list that a rival adds later has the EpochOpened refused. */
thole_status tail_dispensable(struct engine_host *engine, struct request *request)
{
    struct log_record *const folded = &request->in.tail.folded;
    struct buf subject, body;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, RECORD_BYTES_MAX);
    thole_status status =
        subject_control(&subject, engine->topology.ns, request->mail.p, "folded", request_error(request));
    if (status == THOLE_OK)
        status = stream_last_by_subject(engine->connection, hist_stream(request), buf_cstr(&subject),
                                        &folded->sequence, &body, request_error(request));
    if (status == THOLE_OK && folded->sequence > 0)
        folded->bytes = request_keep(request, buf_bytes(&body));
    buf_release(&subject);
    buf_release(&body);
    return status == THOLE_OK ? count_epochs(engine, request) : status;
}

/* ---- the look ---- */

void dispensable_find(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *const request = request_of(REQ_FIND_DISPENSABLE, shard, owned, out);
    request->dispensable = out->find_dispensable;
    request_submit(request);
}

struct look {
    struct engine_host *engine;
    struct request *request;
    struct dispensable *found;
    struct finder *finder; /* while deletions are looked for */
};

static thole_status on_control(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    const struct look *const look = arg;
    (void)subject;
    return dispensable_control(look->found, sequence, body) ? THOLE_OK : THOLE_CANCELLED;
}

static thole_status look_at_controls(struct look *look, struct buf *subject, const char *what)
{
    struct request *const request = look->request;
    THOLE_TRY(
        subject_control(subject, look->engine->topology.ns, request->mail.p, what, request_error(request)));
    thole_status const status =
        stream_walk(look->engine->connection, hist_stream(request), buf_cstr(subject), 1,
                    request->dispensable.below - 1, on_control, look, request_error(request));
    return status == THOLE_CANCELLED ? THOLE_OK : status;
}

/* Whether a record of @p subject stands after @p from and before @p until. */
static thole_status look_between(struct look *look, const char *subject, uint64_t from, uint64_t until,
                                 bool *ret)
{
    struct stored_message next = {.sequence = 0};
    thole_status const status = stream_find(look->engine->connection, hist_stream(look->request), subject,
                                            from + 1, &next, NULL, request_error(look->request));
    *ret = next.sequence > 0 && next.sequence < until;
    return status;
}

/* @p subject is that of any record of an instance; it becomes that of lists where there is none. */
static thole_status look_at_epoch(struct look *look, struct buf *subject, uint64_t from, uint64_t until)
{
    struct request *const request = look->request;
    bool holds;
    buf_clear(subject);
    buf_printf(subject, "thole.%s.hist.%u.*.*", look->engine->topology.ns, request->mail.p);
    THOLE_TRY(look_between(look, buf_cstr(subject), from, until, &holds));
    if (holds)
        return THOLE_OK;
    THOLE_TRY(subject_control(subject, look->engine->topology.ns, request->mail.p, "folded",
                              request_error(request)));
    THOLE_TRY(look_between(look, buf_cstr(subject), from, until, &holds));
    if (!holds)
        dispensable_epoch(look->found);
    return THOLE_OK;
}

static thole_status look_at_epochs(struct look *look, struct buf *subject)
{
    uint64_t from, until;
    while (dispensable_next_epoch(look->found, &from, &until))
        THOLE_TRY(look_at_epoch(look, subject, from, until));
    return THOLE_OK;
}

/* A record of any execution of the instance, or a deletion of it: @p all, for the subject of one of them. */
static void subject_of_all(struct buf *all, thole_slice subject)
{
    size_t len = subject.len;
    while (len > 0 && subject.ptr[len - 1] != '.')
        len--;
    buf_clear(all);
    buf_append(all, subject.ptr, len);
    buf_text(all, "*");
}

/* One round of questions about deletions: @p filter is their subject. */
static thole_status lanes_ask_round(struct look *look, struct deletion_lanes *lanes, thole_slice filter,
                                    const struct deletion_question *asked, size_t n)
{
    struct finder_question questions[DELETION_QUESTIONS_MAX];
    struct finder_answer answers[DELETION_QUESTIONS_MAX];
    struct buf subjects[DELETION_QUESTIONS_MAX];
    static_assert((int)DELETION_QUESTIONS_MAX <= (int)FINDER_QUESTIONS_MAX, "a round is asked at once");
    for (size_t i = 0; i < n; i++) {
        buf_init(&subjects[i], SUBJECT_BYTES_MAX);
        if (asked[i].last)
            subject_of_all(&subjects[i], asked[i].subject);
        questions[i] = (struct finder_question){.subject = asked[i].last ? buf_bytes(&subjects[i]) : filter,
                                                .from = asked[i].from};
    }
    thole_status status = finder_ask(look->finder, questions, n, answers, request_error(look->request));
    for (size_t i = 0; i < n; i++) {
        const struct finder_answer *const answer = &answers[i];
        if (status == THOLE_OK)
            status = deletion_lanes_answer(lanes, &asked[i], answer->sequence,
                                           asked[i].last ? DISPENSABLE_AGE_OLD
                                                         : dispensable_age(look->found, answer->body),
                                           answer->subject, answer->body);
        buf_release(&subjects[i]);
    }
    return status;
}

/* Hands over what the lanes have found. *ret_goes: there may be more that goes. */
static void lanes_hand_over(struct look *look, const struct deletion_lanes *lanes, bool *ret_goes)
{
    const struct deletion_item *item;
    *ret_goes = true;
    for (size_t i = 0; *ret_goes && (item = deletion_lanes_item(lanes, i)) != NULL; i++) {
        enum dispensable_verdict const verdict =
            dispensable_deletion(look->found, item->sequence, item->bytes, item->last);
        *ret_goes = verdict != DISPENSABLE_YOUNG && verdict != DISPENSABLE_FULL;
    }
}

static thole_status lanes_look(struct look *look, struct deletion_lanes *lanes, thole_slice filter)
{
    bool goes;
    do {
        struct deletion_question asked[DELETION_QUESTIONS_MAX];
        for (size_t n; (n = deletion_lanes_ask(lanes, asked)) > 0;)
            THOLE_TRY(lanes_ask_round(look, lanes, filter, asked, n));
        lanes_hand_over(look, lanes, &goes);
    } while (goes && deletion_lanes_advance(lanes));
    return THOLE_OK;
}

/* Looks from the end of the last look up to the last deletion: to find that nothing follows it, the server
 * would look through all stored records. */
static thole_status look_at_deletions(struct look *look, struct buf *subject)
{
    struct request *const request = look->request;
    const struct out_find_dispensable *const asked = &request->dispensable;
    uint64_t to = asked->published < asked->below ? asked->published : asked->below - 1, last = 0;
    struct deletion_lanes lanes;
    buf_clear(subject);
    buf_printf(subject, "thole.%s.hist.%u.*." SUBJECT_DELETED, look->engine->topology.ns, request->mail.p);
    THOLE_TRY(stream_last_by_subject(look->engine->connection, hist_stream(request), buf_cstr(subject), &last,
                                     NULL, request_error(request)));
    to = to < last ? to : last;
    if (asked->looked >= to)
        return THOLE_OK;
    THOLE_TRY(
        finder_open(look->engine->connection, hist_stream(request), &look->finder, request_error(request)));
    deletion_lanes_init(&lanes, asked->looked + 1, to);
    thole_status const status = lanes_look(look, &lanes, buf_bytes(subject));
    deletion_lanes_release(&lanes);
    finder_close(look->finder);
    return status;
}

thole_status dispensable_load(struct engine_host *engine, struct request *request)
{
    struct look look = {.engine = engine,
                        .request = request,
                        .found = dispensable_create(&request->dispensable,
                                                    thole_slice_from(engine->topology.ns), request->mail.p)};
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = look_at_controls(&look, &subject, "folded");
    if (status == THOLE_OK)
        status = look_at_controls(&look, &subject, "position");
    if (status == THOLE_OK)
        status = look_at_controls(&look, &subject, "epoch");
    if (status == THOLE_OK)
        status = look_at_epochs(&look, &subject);
    if (status == THOLE_OK)
        status = look_at_deletions(&look, &subject);
    buf_release(&subject);
    if (status == THOLE_OK) {
        struct in_dispensable *const in = &request->in.dispensable;
        *in = dispensable_list(look.found);
        thole_slice const sequences = {(const uint8_t *)in->sequences, in->len * sizeof *in->sequences};
        in->sequences = (const uint64_t *)(const void *)request_keep(request, sequences).ptr;
        in->hashes = request_keep(request, in->hashes);
    }
    dispensable_destroy(look.found);
    return status;
}

/* Without it the log is longer than it need be. */
void dispensable_answered(struct owned *owned, struct request *request)
{
    if (!request_is_current(owned, request))
        return;
    if (request->status == THOLE_OK) {
        request_input(owned, request);
        return;
    }
    log_limits_line(request->shard->engine->lines, clock_monotonic_ms(), LINE_REMOVAL_DELAYED,
                    LOG_PARTITION(owned->p), "records that are not needed any more were not looked for: %s",
                    request_error_text(request));
    request_again(request, FIND_RETRY_MS);
}

/* ---- the removal ---- */

void dispensable_remove(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *const request = request_of(REQ_REMOVE_RECORDS, shard, owned, out);
    const struct out_remove_records *const asked = &out->remove_records;
    thole_slice const sequences = {(const uint8_t *)asked->sequences, asked->len * sizeof *asked->sequences};
    request->records = (struct out_remove_records){
        (const uint64_t *)(const void *)request_keep(request, sequences).ptr, asked->len};
    log_line_of(LOG_LEVEL_DEBUG, "partition", LOG_PARTITION(owned->p),
                "removes records that are not needed any more: %zu", asked->len);
    request_submit(request);
}

/* A stream that went back may have other records in their places. */
static thole_status dispensable_requests_check_list(struct engine_host *engine, struct request *request)
{
    const struct out_remove_records *const asked = &request->records;
    struct arena arena;
    struct buf body;
    struct record list = {.kind = RECORD_UNKNOWN};
    bool there = false;
    buf_init(&body, RECORD_BYTES_MAX);
    arena_init(&arena, 2 * RECORD_BYTES_MAX);
    thole_status status = stream_message(engine->connection, hist_stream(request), request->in.token, &there,
                                         &body, request_error(request));
    if (status == THOLE_OK && there)
        status = record_decode(buf_bytes(&body), &arena, &list, request_error(request));
    bool const same =
        status == THOLE_OK && list.folded.len == asked->len &&
        memcmp(list.folded.sequences, asked->sequences, asked->len * sizeof *asked->sequences) == 0;
    arena_release(&arena);
    buf_release(&body);
    if (status == THOLE_OK && !same)
        status = thole_fail(request_error(request), THOLE_CONFLICT,
                            "the record that lists dispensable ones is not there any more");
    return status;
}

thole_status removal_load(struct engine_host *engine, struct request *request)
{
    THOLE_TRY(dispensable_requests_check_list(engine, request));
    return stream_delete_all(engine->connection, hist_stream(request), request->records.sequences,
                             request->records.len, request_error(request));
}

/* Without a time limit, as that of a history. */
void records_removed(struct owned *owned, struct request *request)
{
    if (!request_is_current(owned, request))
        return;
    if (request->status == THOLE_OK) {
        request_input(owned, request);
        return;
    }
    if (request->status == THOLE_CONFLICT) {
        shard_step_down(owned, request_error_text(request));
        return;
    }
    log_limits_line(request->shard->engine->lines, clock_monotonic_ms(), LINE_REMOVAL_DELAYED,
                    LOG_PARTITION(owned->p), "records that are not needed any more cannot be removed yet: %s",
                    request_error_text(request));
    request_again(request, FIND_RETRY_MS);
}
