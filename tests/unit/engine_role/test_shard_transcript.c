/* The whole of a shard's work: its calls at the streams for its machines' outputs, and its use of the
 * answers: shard.transcript. Streams and NATS are played, on this thread. */
#include "batch.h"
#include "notice.h"
#include "query_message.h"
#include "reader.h"
#include "subject.h"
#include "subject_list.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "wrap_log_fits.h"
#include "wrap_shard_world.h"
#include "wrap_submitted.h"
#include <inttypes.h>
#include <stdlib.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/engine_role/shard.transcript"
enum { P = 3, PAYLOAD_MAX = 100 };

static struct {
    FILE *said;
    const char *refused; /* the call of that name fails */
    int too_large;       /* so many of the next messages are */
    enum partition_state state;
    struct stream_bounds bounds;
    uint64_t last; /* sequence of the last record of a subject; 0: there is none */
    struct buf record;
    size_t records; /* number of records that a read gives */
    delivery_fn *each;
    void *arg;
    struct shard_mail *mail;
    int subscribed;
} play;

static char order[32]; /* an instance of partition P */

static thole_status called(const char *name, thole_error *reterr)
{
    if (play.refused != NULL && strcmp(play.refused, name) == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s fails", name);
    return THOLE_OK;
}

/* ---- streams ---- */

thole_status __wrap_stream_bounds(struct connection *connection, const char *stream,
                                  struct stream_bounds *ret, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "  bounds of %s\n", stream);
    *ret = play.bounds;
    return called("bounds", reterr);
}

thole_status __wrap_stream_last_by_subject(struct connection *connection, const char *stream,
                                           const char *subject, uint64_t *ret_sequence, struct buf *ret_body,
                                           thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "  last of %s %s\n", stream, subject);
    *ret_sequence = play.last;
    buf_slice(ret_body, buf_bytes(&play.record));
    return called("last", reterr);
}

thole_status __wrap_stream_read(struct connection *connection, const char *stream, const char *filter,
                                uint64_t from, uint64_t to, stream_read_fn *each, void *arg,
                                thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "  reads %s %s from %" PRIu64 " to %" PRId64 "\n", stream,
                  filter == NULL ? "-" : filter, from, (int64_t)to);
    for (size_t i = 0; i < play.records; i++) {
        char subject[100];
        (void)snprintf(subject, sizeof subject, "thole.shop.hist.3.order.%zu", 1 + i % 4);
        THOLE_TRY(each(arg, 11 + i, thole_slice_from(subject), THOLE_STR("bytes")));
    }
    return called("read", reterr);
}

thole_status __wrap_stream_delete_all(struct connection *connection, const char *stream,
                                      const uint64_t *sequences, size_t n, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "  deletes %zu of %s:", n, stream);
    for (size_t i = 0; i < n && i < 8; i++)
        (void)fprintf(play.said, " %" PRIu64, sequences[i]);
    (void)fprintf(play.said, "\n");
    return called("delete", reterr);
}

thole_status __wrap_stream_subjects(struct connection *connection, const char *stream, uint64_t since,
                                    size_t most, stream_subject_fn *each, void *arg, thole_error *reterr)
{
    static const char *const subjects[] = {"thole.shop.ctl.3.epoch", "thole.shop.hist.3.a.1",
                                           "thole.shop.hist.3.a.2", "thole.shop.hist.3.b.1",
                                           "thole.shop.hist.3.%4.1"};
    (void)connection;
    (void)fprintf(play.said, "  subjects of %s since %" PRIu64 ", %zu at most\n", stream, since, most);
    for (size_t i = 0; i < 4 + play.records; i++)
        each(arg, thole_slice_from(subjects[i]));
    return called("subjects", reterr);
}

thole_status __wrap_requests_publish(struct requests *requests, const struct publish *publish, uint64_t token,
                                     thole_error *reterr)
{
    (void)requests, (void)token;
    (void)fprintf(play.said, "  publishes to %s %.*s expects %d,%" PRIu64 " headers %zu\n", publish->subject,
                  THOLE_FMT(publish->body), publish->expect_last, publish->expected_last,
                  publish->headers_len);
    return called("publish", reterr);
}

thole_status __wrap_requests_send(struct requests *requests, const char *subject, thole_slice body,
                                  uint64_t token, thole_error *reterr)
{
    (void)requests, (void)token;
    (void)fprintf(play.said, "  sends to %s %.*s\n", subject, THOLE_FMT(body));
    return called("send", reterr);
}

size_t __wrap_requests_in_flight(const struct requests *requests)
{
    return requests == NULL ? 0 : 1;
}

thole_status __wrap_requests_get(struct requests *requests, const char *subject, thole_slice body,
                                 uint64_t token, thole_error *reterr)
{
    (void)requests, (void)token;
    (void)fprintf(play.said, "  gets from %s %.*s\n", subject, THOLE_FMT(body));
    return called("get", reterr);
}

thole_status __wrap_connection_publish(struct connection *connection, const char *subject,
                                       const struct header *headers, size_t headers_len, thole_slice body,
                                       thole_error *reterr)
{
    struct query_answer answer;
    struct arena arena;
    (void)connection, (void)headers, (void)headers_len;
    arena_init(&arena, 1000000);
    if (strncmp(subject, "_INBOX", 6) == 0 && query_answer_decode(body, &arena, &answer, NULL) == THOLE_OK)
        (void)fprintf(play.said, "  answers %s: %s %.*s\n", subject,
                      thole_status_name((thole_status)answer.status),
                      answer.data.len < 80 ? (int)answer.data.len : 80, (const char *)answer.data.ptr);
    else
        (void)fprintf(play.said, "  publishes to %s %.*s\n", subject, THOLE_FMT(body));
    arena_release(&arena);
    if (play.too_large > 0)
        return play.too_large--, thole_fail(reterr, THOLE_LIMIT, "the message is too large");
    return called("answer", reterr);
}

thole_status __wrap_connection_subscribe(struct connection *connection, const char *subject,
                                         delivery_fn *each, void *arg, struct subscription **ret,
                                         thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "  listens to %s\n", subject);
    THOLE_TRY(called("subscribe", reterr));
    play.each = each;
    play.arg = arg;
    play.subscribed++;
    *ret = (struct subscription *)&play;
    return THOLE_OK;
}

void __wrap_subscription_close(struct subscription *subscription)
{
    play.subscribed -= subscription != NULL;
}

/* ---- the shard's other parts ---- */

enum partition_state __wrap_partition_state(const struct partition *p)
{
    (void)p;
    return play.state;
}

uint64_t __wrap_partition_epoch(const struct partition *p)
{
    (void)p;
    return 5;
}

void __wrap_shard_send(struct shard *shard, struct shard_mail *mail)
{
    CU_ASSERT_PTR_EQUAL(shard, &world.shard);
    CU_ASSERT_EQUAL(mail->generation, WORLD_GENERATION);
    free(play.mail);
    play.mail = mail;
}

static void say_records(const struct log_record *records, size_t n)
{
    for (size_t i = 0; i < n && i < 8; i++)
        (void)fprintf(play.said, " %" PRIu64 ":%" PRIu64 "(%zu)", records[i].sequence, records[i].execution,
                      records[i].bytes.len);
}

static void say_in(const struct partition_in *in)
{
    switch (in->kind) {
    case PARTITION_IN_TAIL:
        (void)fprintf(play.said, " opened %" PRIu64 " last %" PRIu64, in->tail.epoch_sequence,
                      in->tail.last_sequence);
        say_records(in->tail.records, in->tail.records_len);
        break;
    case PARTITION_IN_LOG: say_records(in->log.records, in->log.records_len); break;
    case PARTITION_IN_HISTORY:
        (void)fprintf(play.said, " of %.*s", THOLE_FMT(in->history.instance));
        say_records(in->history.records, in->history.records_len);
        break;
    case PARTITION_IN_IDS: (void)fprintf(play.said, " %zu all=%d", in->ids.hashes_len, in->ids.all); break;
    case PARTITION_IN_APPENDED: (void)fprintf(play.said, " at %" PRIu64, in->appended.sequence); break;
    case PARTITION_IN_APPEND_FAILED: (void)fprintf(play.said, " failed: %s", in->append_failed.text); break;
    case PARTITION_IN_PUBLISHED: (void)fprintf(play.said, " at %" PRIu64, in->published.sequence); break;
    case PARTITION_IN_QUERY:
        (void)fprintf(play.said, " %.*s %.*s (%.*s)", THOLE_FMT(in->query.instance),
                      THOLE_FMT(in->query.query), THOLE_FMT(in->query.input));
        break;
    default: break;
    }
}

void __wrap_shard_input(struct owned *owned, const struct partition_in *in)
{
    CU_ASSERT_PTR_EQUAL(owned, &world.owned);
    CU_ASSERT_EQUAL(in->generation, WORLD_GENERATION);
    (void)fprintf(play.said, "  the machine is given %d for %" PRIu64 ":", (int)in->kind, in->token);
    say_in(in);
    (void)fprintf(play.said, "\n");
}

void __wrap_shard_step_down(struct owned *owned, const char *text)
{
    CU_ASSERT_PTR_EQUAL(owned, &world.owned);
    (void)fprintf(play.said, "  steps down: %s\n", text);
}

void __wrap_request_again(struct request *request, uint64_t delay_ms)
{
    (void)fprintf(play.said, "  request %d again in %" PRIu64 " ms\n", (int)request->kind, delay_ms);
}

void __wrap_request_finish(struct request *request)
{
    (void)fprintf(play.said, "  request %d is carried out\n", (int)request->kind);
}

void __wrap_request_put_aside(struct request *request)
{
    CU_ASSERT_FATAL(submitted.len < SUBMITTED_MAX);
    submitted.requests[submitted.len++] = request;
    (void)fprintf(play.said, "  put aside\n");
}

/* ---- requests ---- */

/* Carries out the last one as its executor would; the text of a failure. */
static struct request *carry_out(void)
{
    thole_error err = {0};
    CU_ASSERT_FATAL(submitted.len > 0);
    struct request *const request = submitted.requests[submitted.len - 1];
    const struct request_rule *const rule = &request_rules[request->kind];
    (void)fprintf(play.said, "  request %d of generation %" PRIu64 " for input %d\n", (int)request->kind,
                  request->mail.generation, (int)request->in.kind);
    if (rule->send != NULL) {
        request->status = rule->send(request, &err);
        *request_error(request) = err;
    } else if (rule->load != NULL) {
        request->status = rule->load(&world.engine, request);
    }
    if (request->status != THOLE_OK)
        (void)fprintf(play.said, "  = %s: %s\n", thole_status_name(request->status),
                      request_error_text(request));
    return request;
}

static void answer(struct request *request)
{
    request_rules[request->kind].answer(&world.owned, request);
}

static struct request *ask(const struct partition_out *of)
{
    struct partition_out out = *of;
    out.generation = WORLD_GENERATION;
    out.token = 42;
    shard_do(&world.shard, &world.owned, &out);
    return submitted.len == 0 ? NULL : carry_out();
}

#define ASK(...) ask(&(struct partition_out){__VA_ARGS__})

static void appends(void)
{
    static const enum request_result results[] = {REQUEST_STORED, REQUEST_REFUSED, REQUEST_UNKNOWN,
                                                  REQUEST_BUSY, REQUEST_FAILED};
    struct request *const request =
        ASK(.kind = PARTITION_OUT_APPEND, .append = {.kind = RECORD_TURN,
                                                     .instance = THOLE_STR("b/c"),
                                                     .execution = 2,
                                                     .expected_last = 9,
                                                     .bytes = THOLE_STR("bytes")});
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        request->reply = (struct request_reply){.result = results[i], .sequence = 10, .err_code = 77};
        request->in.kind = PARTITION_IN_APPENDED;
        answer(request);
    }
    (void)ASK(.kind = PARTITION_OUT_APPEND, .append = {.kind = RECORD_UNKNOWN, .bytes = THOLE_STR("bytes")});
}

/* The cause is the first one, and forgotten with the partition's opening. */
static void causes(void)
{
    static const struct request_reply replies[] = {{.result = REQUEST_BUSY, .err_code = 10023},
                                                   {.result = REQUEST_BUSY, .err_code = 10077},
                                                   {.result = REQUEST_UNKNOWN, .lost = true},
                                                   {.result = REQUEST_UNKNOWN}};
    struct request *const request =
        ASK(.kind = PARTITION_OUT_APPEND, .append = {.kind = RECORD_TURN,
                                                     .instance = THOLE_STR("b/c"),
                                                     .execution = 2,
                                                     .expected_last = 9,
                                                     .bytes = THOLE_STR("bytes")});
    for (size_t i = 0; i < ARRAY_LEN(replies); i++) {
        request->reply = replies[i];
        request->in.kind = PARTITION_IN_APPENDED;
        world.owned.cause = CLOSED_OTHER;
        answer(request);
        (void)fprintf(play.said, "  cause %d\n", (int)world.owned.cause);
    }
    for (int lost = 0; lost < 2; lost++) {
        struct shard_mail const mail = {
            .kind = SHARD_INBOX_LOST, .p = P, .generation = WORLD_GENERATION, .up = lost == 0};
        world.owned.cause = CLOSED_OTHER;
        inbox_lost(&world.shard, &mail);
        (void)fprintf(play.said, "  cause %d\n", (int)world.owned.cause);
    }
}

static void tails(void)
{
    static const struct {
        uint64_t count, opened, last;
        const char *refused;
    } rows[] = {{0, 0, 0, NULL},   {0, 5, 12, NULL},     {3, 5, 12, NULL},   {8, 5, 12, NULL},
                {7, 5, 12, NULL},  {20, 5, 12, NULL},    {0, 12, 12, NULL},  {0, 13, 12, NULL},
                {12, 0, 12, NULL}, {0, 5, 12, "bounds"}, {0, 5, 12, "last"}, {0, 5, 12, "read"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        play.bounds = (struct stream_bounds){1, rows[i].last, rows[i].last};
        play.last = rows[i].opened;
        play.refused = rows[i].refused;
        play.records = i % 3;
        answer(ASK(.kind = PARTITION_OUT_READ_TAIL, .read_tail = {.count = rows[i].count}));
        answer(carry_out());
    }
}

static void logs(void)
{
    uint64_t const sequences[] = {7, 9};
    play.records = 70;
    answer(ASK(.kind = PARTITION_OUT_READ_LOG, .read_log = {.from = 3, .to = 99}));
    answer(ASK(.kind = PARTITION_OUT_READ_LOG, .read_log = {.from = 4, .to = 3}));
    play.bounds.last = 12;
    answer(ASK(.kind = PARTITION_OUT_DELETE_RECORDS, .delete_records = {sequences, 2, 12}));
    (void)ASK(.kind = PARTITION_OUT_DELETE_RECORDS, .delete_records = {sequences, 2, 11});
    play.refused = "bounds";
    (void)ASK(.kind = PARTITION_OUT_DELETE_RECORDS, .delete_records = {sequences, 2, 12});
    play.refused = "delete";
    (void)ASK(.kind = PARTITION_OUT_DELETE_RECORDS, .delete_records = {sequences, 2, 12});
}

static struct request *load_by_look_up(const char *reply)
{
    size_t const before = submitted.len;
    struct request *const request = ASK(.kind = PARTITION_OUT_LOAD, .load = {.instance = THOLE_STR("order")});
    request->reply = (struct request_reply){.result = REQUEST_ANSWERED, .body = thole_slice_from(reply)};
    answer(request);
    return submitted.len > before + 1 ? carry_out() : NULL;
}

#define FOUND(execution)                                                                                     \
    "{\"type\":\"t\",\"message\":{\"seq\":30,\"subject\":\"thole.shop.hist.3.order." execution "\"}}"

static void histories(void)
{
    static const char *const replies[] = {
        "{\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"no message found\"}}",
        "{\"error\":{\"code\":503,\"err_code\":10008,\"description\":\"no quorum\"}}",
        FOUND("x"),
        FOUND("1"),
        FOUND("0"),
        FOUND("2"),
        FOUND("deleted"),
        "{\"type\":\"t\",\"message\":{\"seq\":30}}"};
    play.records = 2;
    for (size_t i = 0; i < ARRAY_LEN(replies); i++) {
        struct request *const loaded = load_by_look_up(replies[i]);
        if (loaded != NULL && loaded->kind == REQ_LOAD)
            answer(loaded);
        submitted_clear();
    }
    answer(ASK(.kind = PARTITION_OUT_LOAD, .load = {.instance = THOLE_STR("order"), .execution = 4}));
    struct request *const request = ASK(.kind = PARTITION_OUT_LOAD, .load = {.instance = THOLE_STR("order")});
    world.generation++;
    request->reply = (struct request_reply){.result = REQUEST_ANSWERED, .body = thole_slice_from(FOUND("1"))};
    answer(request); /* of an older generation */
}

static void deletions(void)
{
    struct record const record = {.kind = RECORD_DELETED,
                                  .epoch = 1,
                                  .n = 1,
                                  .deletion = {.instance = THOLE_STR("order"), .execution = 1}};
    play.last = 20;
    CU_ASSERT_EQUAL(record_encode(&record, &play.record), THOLE_OK);
    (void)load_by_look_up(FOUND("2"));
    (void)load_by_look_up(FOUND("3"));
    (void)load_by_look_up(FOUND("0"));
    submitted_clear();
    buf_clear(&play.record);
    buf_text(&play.record, "garbage");
    (void)load_by_look_up(FOUND("2"));
    play.refused = "last";
    (void)load_by_look_up(FOUND("2"));
    play.refused = "read";
    (void)load_by_look_up(FOUND("2"));
}

static void ids(void)
{
    static const thole_status statuses[] = {THOLE_OK, THOLE_UNAVAILABLE, THOLE_LIMIT, THOLE_CORRUPT};
    struct request *request = ASK(.kind = PARTITION_OUT_READ_IDS, .read_ids = {.since = 4, .most = 1000});
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        request->status = statuses[i];
        answer(request);
    }
    request->mail.generation--;
    answer(request);
    play.records = 1;
    (void)ASK(.kind = PARTITION_OUT_READ_IDS, .read_ids = {.since = 4, .most = 1000});
    play.records = 0;
    play.refused = "subjects";
    (void)ASK(.kind = PARTITION_OUT_READ_IDS, .read_ids = {.since = 4, .most = 1000});
}

static struct request *ask_for_removal(void)
{
    return ASK(.kind = PARTITION_OUT_REMOVE_HISTORY,
               .remove_history = {
                   .instance = THOLE_STR("order"), .executions = {1, 3}, .below = 50, .urgent = true});
}

static void removals(void)
{
    struct request *request = ask_for_removal();
    CU_ASSERT(request->removal.urgent && request->removal.below == 50);
    answer(request);
    submitted_clear();
    request = ask_for_removal();
    request->status = thole_fail(request_error(request), THOLE_UNAVAILABLE, "no answer");
    answer(request);
    submitted_clear();
    request = ask_for_removal();
    request->mail.generation--;
    answer(request);
}

static struct request *ask_for_work(bool again, uint32_t try_number)
{
    return ASK(.kind = PARTITION_OUT_PUBLISH_WORK,
               .publish_work = {.instance = THOLE_STR("order"),
                                .queue = THOLE_STR("bank"),
                                .activity = THOLE_STR("charge"),
                                .input = THOLE_STR("99"),
                                .nonce = THOLE_STR("0123456789abcdef0123456789abcdef"),
                                .execution = 2,
                                .activity_id = 7,
                                .try_number = try_number,
                                .again = again});
}

static void work(void)
{
    static const char *const bodies[] = {
        "{\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"no message found\"}}",
        "{\"type\":\"t\",\"message\":{\"seq\":30,\"data\":\"OTk=\",\"hdrs\":"
        "\"TkFUUy8xLjANClRob2xlLUFjdGl2aXR5OiBjaGFyZ2UNClRob2xlLU5vbmNlOiAwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OW"
        "FiY2RlZg0KDQo=\"}}",
        "{\"type\":\"t\",\"message\":{\"seq\":31,\"data\":\"MTAw\",\"hdrs\":"
        "\"TkFUUy8xLjANClRob2xlLUFjdGl2aXR5OiBjaGFyZ2UNClRob2xlLU5vbmNlOiAwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OW"
        "FiY2RlZg0KDQo=\"}}",
        "{\"type\":\"t\",\"message\":{\"seq\":32}}", "garbage"};
    struct request *request = ask_for_work(false, 0);
    request->reply = (struct request_reply){.result = REQUEST_STORED, .sequence = 12};
    answer(request);
    request_rules[REQ_PUBLISH_WORK].refused(request);
    request->mail.generation--;
    answer(request);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        request = ask_for_work(true, 3);
        request->reply =
            (struct request_reply){.result = REQUEST_ANSWERED, .body = thole_slice_from(bodies[i])};
        answer(request);
        (void)fprintf(play.said, "  unless there: %d\n", request->work.unless_there);
    }
    (void)ASK(.kind = PARTITION_OUT_WITHDRAW, .withdraw = {.sequence = 12});
}

static void messages(void)
{
    uint64_t const activities[] = {7, 9};
    struct request *const request =
        ASK(.kind = PARTITION_OUT_SEND, .send = {.route = THOLE_STR("event.paid"),
                                                 .instance = thole_slice_from(order),
                                                 .bytes = THOLE_STR("bytes")});
    answer(request);
    request_rules[REQ_SEND_MESSAGE].refused(request);
    submitted_clear();
    for (int i = 0; i < 2; i++) {
        (void)ASK(.kind = PARTITION_OUT_NOTICE, .notice = {.kind = "started",
                                                           .orchestration = THOLE_STR("checkout"),
                                                           .instance = THOLE_STR("order"),
                                                           .execution = 1,
                                                           .request_id = THOLE_STR("r"),
                                                           .data = THOLE_STR("data")});
        (void)ASK(.kind = PARTITION_OUT_PUSH_CANCEL, .push_cancel = {.instance = THOLE_STR("order"),
                                                                     .execution = 2,
                                                                     .activity_ids = activities,
                                                                     .activity_ids_len = 2,
                                                                     .kind = THOLE_STR("requested"),
                                                                     .reason = THOLE_STR("why")});
        play.refused = "answer";
    }
}

/* With a stream each is asked for again until it is stored; without one it is sent, and done. */
static void events(void)
{
    static const struct request_reply busy = {.result = REQUEST_BUSY, .err_code = 503};
    struct partition_out const out = {.kind = PARTITION_OUT_EMIT,
                                      .emit = {.instance = thole_slice_from(order),
                                               .orchestration = THOLE_STR("checkout"),
                                               .type = THOLE_STR("com.example.order.shipped"),
                                               .data = THOLE_STR("{}"),
                                               .execution = 2,
                                               .event = 7,
                                               .time_ms = 1700000000000}};
    for (int stored = 0; stored < 2; stored++) {
        world.engine.topology.events_stored = stored == 1;
        struct request *const request = ask(&out);
        request->status = THOLE_OK;
        answer(request);
        request->status = THOLE_UNAVAILABLE;
        request->reply = busy;
        answer(request);
        request->emission.said_ms = 0;
        answer(request);
        request->mail.generation--;
        answer(request);
        submitted_clear();
    }
    play.refused = "publish";
    (void)ask(&out);
}

/* An event that the stream will never take goes among the rejected messages; when these take nothing either
 * it is dropped after a while. */
static void refused_event(void)
{
    static const struct request_reply too_large = {.result = REQUEST_FAILED, .err_code = REQUEST_TOO_LARGE},
                                      busy = {.result = REQUEST_BUSY, .err_code = 503},
                                      unknown = {.result = REQUEST_UNKNOWN};
    struct partition_out const out = {.kind = PARTITION_OUT_EMIT,
                                      .emit = {.instance = thole_slice_from(order),
                                               .orchestration = THOLE_STR("checkout"),
                                               .type = THOLE_STR("large"),
                                               .data = THOLE_STR("{}"),
                                               .execution = 2,
                                               .event = 7,
                                               .time_ms = 1700000000000}};
    const struct request_reply *const replies[] = {&too_large, &busy, &unknown, &busy};
    world.engine.topology.events_stored = true;
    struct request *const request = ask(&out);
    request->status = THOLE_UNAVAILABLE;
    for (size_t i = 0; i < ARRAY_LEN(replies); i++) {
        request->reply = *replies[i];
        answer(request);
        if (i >= 1)
            request->emission.until_ms = 0;
    }
    submitted_clear();
}

/* Open for a moment each time, and then for a while. */
static void closed_again(void)
{
    static const uint64_t open_ms[] = {0, 9999, 9999, 9999, 9999, 9999, 9999, 10000, 0};
    world.owned.failures = 0;
    for (size_t i = 0; i < ARRAY_LEN(open_ms); i++) {
        (void)ASK(.kind = PARTITION_OUT_OPENED, .opened = {.epoch = 6});
        world.now_ms += open_ms[i];
        world.owned.cause = CLOSED_STORAGE_FULL;
        (void)ASK(.kind = PARTITION_OUT_CLOSED,
                  .closed = {
                      .text = "full", .reopen = true, .epoch = 6, .records = i + 1 == ARRAY_LEN(open_ms)});
        (void)fprintf(play.said, "  opens in %" PRIu64 ", failures %u\n",
                      world.owned.not_before_ms - world.now_ms, (unsigned)world.owned.failures);
    }
}

static void opening_and_closing(void)
{
    for (int i = 0; i < 11; i++) {
        (void)ASK(.kind = PARTITION_OUT_OPENED, .opened = {.epoch = 5});
        world.owned.close_by_ms = 99;
        world.owned.not_before_ms = i == 0 ? 999999 : 0;
        (void)ASK(.kind = PARTITION_OUT_CLOSED, .closed = {.text = "why", .reopen = i > 0, .epoch = 5});
        (void)fprintf(play.said, "  not before %" PRIu64 ", failures %u, close by %" PRIu64 ", listens %d\n",
                      world.owned.not_before_ms, (unsigned)world.owned.failures, world.owned.close_by_ms,
                      play.subscribed);
    }
    closed_again();
    play.refused = "subscribe";
    queries_open(&world.shard, &world.owned);
    (void)fprintf(play.said, "  again at %" PRIu64 "\n", world.owned.queries_ms);
    queries_retry(&world.shard, &world.owned, world.owned.queries_ms - 1);
    play.refused = NULL;
    queries_retry(&world.shard, &world.owned, world.owned.queries_ms);
    queries_retry(&world.shard, &world.owned, world.owned.queries_ms + 5000);
    queries_close(&world.shard, &world.owned);
    CU_ASSERT_EQUAL(play.subscribed, 0);
}

/* ---- queries ---- */
static void question(const char *instance, const char *name, const char *subject, const char *reply)
{
    struct query const query = {
        .instance = thole_slice_from(instance), .name = thole_slice_from(name), .input = THOLE_STR("in")};
    struct buf body;
    buf_init(&body, 10000);
    CU_ASSERT_EQUAL(query_encode(&query, &body), THOLE_OK);
    struct delivery const delivery = {
        .subject = thole_slice_from(subject), .reply = thole_slice_from(reply), .body = buf_bytes(&body)};
    play.each(play.arg, &delivery);
    buf_release(&body);
    if (play.mail != NULL)
        query_take(&world.shard, play.mail);
    free(play.mail);
    play.mail = NULL;
    (void)fprintf(play.said, "  %u questions\n", (unsigned)atomic_load(&world.shard.queries));
}

static void answer_query(uint64_t token, thole_status status, size_t len)
{
    static uint8_t data[PAYLOAD_MAX + 1];
    memset(data, 'd', sizeof data);
    shard_do(&world.shard, &world.owned,
             &(struct partition_out){.kind = PARTITION_OUT_QUERY_ANSWER,
                                     .generation = WORLD_GENERATION,
                                     .token = token,
                                     .query_answer = {.status = status, .data = {data, len}}});
    (void)fprintf(play.said, "  %u questions\n", (unsigned)atomic_load(&world.shard.queries));
}

static void queries(void)
{
    char subject[100];
    (void)snprintf(subject, sizeof subject, "thole.shop.query.3.state.%s", order);
    queries_open(&world.shard, &world.owned);
    question(order, "state", subject, "_INBOX.1");
    question(order, "state", subject, "_INBOX.22");
    question(order, "state", subject, "_INBOX.333");
    answer_query(2, THOLE_OK, 3);
    answer_query(2, THOLE_OK, 3);
    answer_query(9, THOLE_OK, 3);
    answer_query(3, THOLE_OK, PAYLOAD_MAX + 1);
    answer_query(1, THOLE_NOT_FOUND, PAYLOAD_MAX + 1);
    question(order, "state", subject, "_INBOX.4");
    answer_query(4, THOLE_OK, PAYLOAD_MAX);
    question(order, "state", subject, "_INBOX.44");
    play.too_large = 1;
    answer_query(5, THOLE_OK, PAYLOAD_MAX);
    question(order, "state", subject, "");
    question(order, "state", subject, "thole.shop.in.3.order");
    question(order, "other", subject, "_INBOX.5");
    question("another", "state", subject, "_INBOX.6");
    question("another", "state", "thole.shop.query.3.state.another", "_INBOX.6");
    question(order, "state", "thole.shop.query.3.state.%4", "_INBOX.7");
    play.state = PARTITION_CLOSED;
    question(order, "state", subject, "_INBOX.8");
    play.state = PARTITION_OPEN;
    question(order, "state", subject, "_INBOX.9");
    question(order, "state", subject, "_INBOX.10");
    play.refused = "answer";
    queries_close(&world.shard, &world.owned);
    (void)fprintf(play.said, "  %u questions, listens %d\n", (unsigned)atomic_load(&world.shard.queries),
                  play.subscribed);
}

static void too_many_queries(void)
{
    static uint8_t body[PAYLOAD_MAX + 4097];
    struct delivery delivery = {.subject = THOLE_STR("thole.shop.query.3.state.order"),
                                .reply = THOLE_STR("_INBOX.1"),
                                .body = {body, sizeof body}};
    queries_open(&world.shard, &world.owned);
    play.each(play.arg, &delivery);
    delivery.body.len--;
    play.each(play.arg, &delivery);
    query_take(&world.shard, play.mail);
    delivery.body.len = 0;
    for (int i = 0; i < 258; i++)
        play.each(play.arg, &delivery);
    (void)fprintf(play.said, "  %u questions\n", (unsigned)atomic_load(&world.shard.queries));
    queries_close(&world.shard, &world.owned);
}

/* ---- the transcript ---- */

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {{"appends", appends},
              {"causes", causes},
              {"the tail", tails},
              {"the log", logs},
              {"histories", histories},
              {"histories of an id that was deleted", deletions},
              {"which instances there are", ids},
              {"histories are removed", removals},
              {"activity messages", work},
              {"messages and notices", messages},
              {"CloudEvents", events},
              {"refused CloudEvents", refused_event},
              {"opening and closing", opening_and_closing},
              {"queries", queries},
              {"too many queries", too_many_queries}};

static void play_line(const char *line, FILE *to)
{
    bool found = false;
    memset(&play, 0, sizeof play);
    play.said = to;
    play.state = PARTITION_OPEN;
    buf_init(&play.record, 1000);
    shard_world_begin(request_rules);
    (void)snprintf(world.engine.topology.ns, sizeof world.engine.topology.ns, "shop");
    world.engine.topology.partitions = 8;
    world.engine.options.payload_max = PAYLOAD_MAX;
    world.engine.shards_len = 4;
    world.shard.index = P;
    world.owned.p = P;
    world.owned.hist_stream = (char *)"HIST";
    world.owned.in_stream = (char *)"IN";
    buf_init(&world.shard.subject, SUBJECT_BYTES_MAX);
    buf_init(&world.shard.body, RECORD_BYTES_MAX);
    for (int i = 0; order[0] == '\0' || subject_partition(thole_slice_from(order), 8) != P; i++)
        (void)snprintf(order, sizeof order, "order-%d", i);
    for (size_t i = 0; i < ARRAY_LEN(scenes); i++)
        if (strcmp(scenes[i].name, line) == 0) {
            scenes[i].run();
            found = true;
        }
    CU_ASSERT_TRUE(found);
    submitted_clear();
    free(play.mail);
    buf_release(&play.record);
    buf_release(&world.shard.subject);
    buf_release(&world.shard.body);
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

static void test_heap(void)
{
    transcript_check_heap(TRANSCRIPT, play_line);
}

static const struct thole_test tests[] = {{"transcript", test_transcript}, {"heap", test_heap}};
THOLE_TEST_MAIN("shard_transcript", tests)
