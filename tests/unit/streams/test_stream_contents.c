/* All messages to streams and subjects, and the reading of them: stream_contents.transcript has the requests
 * and the server's answers. The server is played. */
#include "api.h"
#include "crashes.h"
#include "header_names.h"
#include "reader.h"
#include "rejected.h"
#include "roll_call.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "work_message.h"
#include "wrap_link.h"
#include "wrap_mutexes.h"
#include "wrap_one_attempt.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/streams/stream_contents.transcript"
enum { ANSWERS_MAX = 8, KEPT_MAX = 8 };

static struct {
    FILE *said;
    const char *answers[ANSWERS_MAX]; /* of requests, in order; further ones: stored */
    size_t answered;
    struct stream_bounds bounds;
    natsMsg *kept[KEPT_MAX]; /* published messages */
    size_t kept_len;
    bool nobody;                  /* no responders */
    const char *bodies[KEPT_MAX]; /* of what a bucket has */
    size_t bodies_len;
    delivery_fn *each;
    void *arg;
    const char *refused; /* the call of that name fails */
    size_t given, each_at;
    int subscribed;
    bool forbids; /* the question to the workers */
    uint64_t violations;
} play;

static thole_error err;

static thole_status called(const char *name, thole_error *reterr)
{
    if (play.refused != NULL && strcmp(play.refused, name) == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s fails", name);
    return THOLE_OK;
}

static void say_headers(const struct header *headers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)fprintf(play.said, " %s=%.*s", headers[i].key, THOLE_FMT(headers[i].value));
}

/* ---- the server ---- */

static void answer_with(struct buf *to)
{
    const char *const answer = play.answered < ANSWERS_MAX ? play.answers[play.answered] : NULL;
    play.answered++;
    buf_clear(to);
    buf_text(to, answer == NULL ? "{\"type\":\"t\",\"seq\":9}" : answer);
    (void)fprintf(play.said, "    %s\n", buf_cstr(to));
}

thole_status __wrap_connection_request_with(struct connection *connection, const char *subject,
                                            const struct header *headers, size_t headers_len,
                                            thole_slice body, struct buf *ret, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "  asks %s %.*s", subject, THOLE_FMT(body));
    say_headers(headers, headers_len);
    (void)fprintf(play.said, "\n");
    THOLE_TRY(called("request", reterr));
    answer_with(ret);
    return THOLE_OK;
}

thole_status __wrap_connection_request(struct connection *connection, const char *subject, thole_slice body,
                                       struct buf *ret, thole_error *reterr)
{
    return __wrap_connection_request_with(connection, subject, NULL, 0, body, ret, reterr);
}

thole_status __wrap_stream_bounds(struct connection *connection, const char *stream,
                                  struct stream_bounds *ret, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "  bounds of %s: %" PRIu64 " to %" PRIu64 "\n", stream, play.bounds.first,
                  play.bounds.last);
    *ret = play.bounds;
    return called("bounds", reterr);
}

thole_status __wrap_stream_last_by_subject(struct connection *connection, const char *stream,
                                           const char *subject, uint64_t *ret_sequence, struct buf *ret_body,
                                           thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "  last of %s %s\n", stream, subject);
    *ret_sequence = play.bodies_len > 0 ? 40 + play.each_at : 0;
    if (play.bodies_len > 0)
        buf_text(ret_body, play.bodies[play.each_at++ % play.bodies_len]);
    return called("last", reterr);
}

thole_status __wrap_stream_read(struct connection *connection, const char *stream, const char *filter,
                                uint64_t from, uint64_t to, stream_read_fn *each, void *arg,
                                thole_error *reterr)
{
    static const char *const subjects[] = {"$KV.THOLE_shop_CRASHES.3.order", "$KV.THOLE_shop_CRASHES.3.b%2Fc",
                                           "$KV.THOLE_shop_CRASHES.3.%4"};
    (void)connection;
    (void)fprintf(play.said, "  reads %s %s %" PRIu64 " to %" PRIu64 "\n", stream, filter, from, to);
    for (size_t i = 0; i < play.bodies_len; i++)
        THOLE_TRY(
            each(arg, i + 1, thole_slice_from(subjects[i < 3 ? i : 0]), thole_slice_from(play.bodies[i])));
    return called("read", reterr);
}

thole_status __wrap_stream_fetch(struct connection *connection, const char *stream, uint64_t from,
                                 uint64_t to, stream_delivery_fn *each, void *arg, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "  reads %s %" PRIu64 " to %" PRIu64 "\n", stream, from, to);
    for (size_t i = 0; i < play.kept_len; i++) {
        struct delivery const delivery = link_delivery(play.kept[i]);
        THOLE_TRY(each(arg, i + 1, &delivery));
    }
    return called("read", reterr);
}

static void keep(const char *subject, const char *reply, const struct header *headers, size_t n,
                 thole_slice body)
{
    CU_ASSERT_FATAL(play.kept_len < KEPT_MAX);
    CU_ASSERT_EQUAL_FATAL(link_message(subject, reply, headers, n, body, &play.kept[play.kept_len], &err),
                          THOLE_OK);
    play.kept_len++;
}

thole_status __wrap_requests_publish(struct requests *requests, const struct publish *publish, uint64_t token,
                                     thole_error *reterr)
{
    (void)requests;
    (void)fprintf(play.said, "  publishes %" PRIu64 " to %s %.*s id=%s expect=%d", token, publish->subject,
                  THOLE_FMT(publish->body), publish->message_id == NULL ? "" : publish->message_id,
                  publish->expect_last);
    say_headers(publish->headers, publish->headers_len);
    (void)fprintf(play.said, "\n");
    keep(publish->subject, "$JS.ACK.THOLE_shop_WORK.q_mail.2.77.5.1700000000000000000.0", publish->headers,
         publish->headers_len, publish->body);
    return called("publish", reterr);
}

thole_status __wrap_requests_send(struct requests *requests, const char *subject, thole_slice body,
                                  uint64_t token, thole_error *reterr)
{
    (void)requests;
    (void)fprintf(play.said, "  sends %" PRIu64 " to %s %.*s\n", token, subject, THOLE_FMT(body));
    return called("send", reterr);
}

thole_status __wrap_connection_publish(struct connection *connection, const char *subject,
                                       const struct header *headers, size_t headers_len, thole_slice body,
                                       thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "  publishes to %s %.*s", subject, THOLE_FMT(body));
    say_headers(headers, headers_len);
    (void)fprintf(play.said, "\n");
    keep(subject, NULL, headers, headers_len, body);
    return called("publish", reterr);
}

thole_status __wrap_connection_subscribe(struct connection *connection, const char *subject,
                                         delivery_fn *each, void *arg, struct subscription **ret,
                                         thole_error *reterr)
{
    (void)connection;
    CU_ASSERT_PTR_NOT_NULL(strstr(subject, "_INBOX.thole."));
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

void __wrap_connection_inbox(struct connection *connection, char ret[LINK_INBOX_BYTES])
{
    (void)connection;
    (void)snprintf(ret, LINK_INBOX_BYTES, "_INBOX.thole.1");
}

uint64_t __wrap_connection_violations(struct connection *connection, char *ret_text, size_t cap)
{
    (void)connection;
    (void)snprintf(ret_text, cap, "Permissions Violation for Publish to \"thole.shop.workers\"");
    return play.violations;
}

thole_status __wrap_link_send(struct link *link, natsMsg *message, bool *ret_sent, thole_error *reterr)
{
    (void)link;
    *ret_sent = true;
    (void)fprintf(play.said, "  asks %s, answers to an inbox: %d\n", natsMsg_GetSubject(message),
                  strncmp(natsMsg_GetReply(message), "_INBOX.thole.", 13) == 0);
    play.violations += play.forbids;
    return called("link_send", reterr);
}

thole_status __wrap_link_send_bytes(struct link *link, const char *subject, const char *reply,
                                    thole_slice body, bool *ret_sent, thole_error *reterr)
{
    (void)link;
    *ret_sent = true;
    (void)fprintf(play.said, "  sends to %s (%s): %.*s\n", subject, reply == NULL ? "-" : reply,
                  THOLE_FMT(body));
    return called("send_bytes", reterr);
}

/* Gives the next kept message to whoever waits, or the time is over. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *lock,
                                  const struct timespec *until)
{
    uint64_t const until_ms = (uint64_t)until->tv_sec * 1000 + (uint64_t)until->tv_nsec / 1000000;
    (void)changed;
    (void)fprintf(play.said, "  waits %" PRIu64 " ms\n", until_ms - nats.now_ms);
    struct delivery const nobody = {.no_responders = true};
    if (play.given == play.kept_len && !play.nobody) {
        nats.now_ms = until_ms;
        return ETIMEDOUT;
    }
    struct delivery const delivery = play.nobody ? nobody : link_delivery(play.kept[play.given++]);
    nats.now_ms += 30;
    (void)pthread_mutex_unlock(lock);
    play.each(play.arg, &delivery);
    (void)pthread_mutex_lock(lock);
    return 0;
}

static void result(thole_status status)
{
    (void)fprintf(play.said, "  = %s%s%s\n", thole_status_name(status), status == THOLE_OK ? "" : ": ",
                  status == THOLE_OK ? "" : err.text);
    err.text[0] = '\0';
}

/* ---- crashes ---- */

#define OLD(count, build)                                                                                    \
    "{\"count\":" #count ",\"execution\":2,\"build\":\"" build                                               \
    "\",\"orchestration\":\"checkout\",\"version\":3,\"text\":\"signal 11\",\"time_ms\":1000}"
#define WRONG_LAST(code)                                                                                     \
    "{\"error\":{\"code\":400,\"err_code\":" #code ",\"description\":\"wrong last sequence\"}}"

static struct crash_entry entry_of(const char *instance)
{
    return (struct crash_entry){.instance = thole_slice_from(instance),
                                .count = 5,
                                .execution = 4,
                                .build = THOLE_STR("b1"),
                                .orchestration = THOLE_STR("checkout"),
                                .version = 6,
                                .text = THOLE_STR("signal \"8\""),
                                .time_ms = 2000};
}

static void add_crash(const char *instance, bool certain)
{
    struct crash_entry const entry = entry_of(instance);
    uint64_t count = 0;
    thole_status const status = crashes_add(NULL, "shop", 3, &entry, certain, &count, &err);
    if (status == THOLE_OK)
        (void)fprintf(play.said, "  count %" PRIu64 "\n", count);
    result(status);
}

static void crash_new(void)
{
    add_crash("order", true);
    add_crash("b/c", false);
}

static void add_to(const char *old, bool certain)
{
    play.bodies[0] = old;
    play.bodies_len = 1;
    add_crash("order", certain);
}

static void crash_again(void)
{
    add_to(OLD(1, "b1"), true);
    add_to(OLD(7, "b1"), true);
    add_to(OLD(7, "b1"), false);
    add_to(OLD(0, "b1"), false);
    add_to(OLD(7, "b0"), true);
    add_to("nonsense", true);
    add_to("", false);
}

static void crash_conflict(void)
{
    play.answers[0] = WRONG_LAST(10071);
    play.answers[1] = WRONG_LAST(10164);
    add_to(OLD(1, "b1"), true);
    for (size_t i = 0; i < ANSWERS_MAX; i++)
        play.answers[i] = WRONG_LAST(10071);
    play.answered = 0;
    add_crash("order", true);
    play.answered = 0;
    play.answers[0] = WRONG_LAST(10077);
    add_crash("order", true);
    play.answered = 0;
    play.answers[0] = "{\"stream\":\"S\"}";
    add_crash("order", true);
}

static void crash_fails(void)
{
    play.refused = "last";
    add_crash("order", true);
    play.refused = "request";
    add_crash("order", true);
    uint64_t count;
    struct crash_entry entry = entry_of("order");
    static uint8_t text[17000];
    memset(text, 'x', sizeof text);
    entry.text = (thole_slice){text, sizeof text};
    result(crashes_add(NULL, "shop", 3, &entry, true, &count, &err));
    result(crashes_put(NULL, "shop", 3, &entry, &err));
    result(crashes_put(NULL, "no namespace", 3, &entry, &err));
    result(crashes_remove(NULL, "no namespace", 3, THOLE_STR("order"), &err));
    result(crashes_add(NULL, "no namespace", 3, &entry, true, &count, &err));
}

static void crash_put(void)
{
    struct crash_entry const entry = entry_of("b/c");
    result(crashes_put(NULL, "shop", 7, &entry, &err));
    result(crashes_remove(NULL, "shop", 7, THOLE_STR("b/c"), &err));
    play.refused = "request";
    result(crashes_remove(NULL, "shop", 7, THOLE_STR("order"), &err));
}

static thole_status on_crash(void *arg, const struct crash_entry *e)
{
    (void)arg;
    (void)fprintf(play.said,
                  "  %.*s: count=%" PRIu64 " execution=%" PRIu64 " build=%.*s %.*s@%" PRIu64
                  " %.*s at %" PRIu64 "\n",
                  THOLE_FMT(e->instance), e->count, e->execution, THOLE_FMT(e->build),
                  THOLE_FMT(e->orchestration), e->version, THOLE_FMT(e->text), e->time_ms);
    return e->count == 99 ? THOLE_CANCELLED : THOLE_OK;
}

static void crash_read(void)
{
    static const char *const bodies[] = {
        OLD(1, "b1"),
        OLD(2, "b2"),
        OLD(3, "of a key that is none"),
        "",
        "{\"count\":1,\"build\":\"b\",\"orchestration\":\"o\",\"version\":3,\"text\":\"t\",\"time_ms\":1}",
        "{\"build\":\"b\",\"orchestration\":\"o\",\"version\":3,\"text\":\"t\",\"time_ms\":1}",
        "{\"count\":1,\"build\":1,\"orchestration\":\"o\",\"version\":3,\"text\":\"t\",\"time_ms\":1}",
        OLD(99, "b4")};
    result(crashes_read(NULL, "shop", 3, on_crash, NULL, &err)); /* nothing was ever written */
    play.bounds = (struct stream_bounds){.first = 1, .last = 12, .messages = 3};
    memcpy(play.bodies, bodies, sizeof bodies);
    play.bodies_len = 7;
    result(crashes_read(NULL, "shop", 3, on_crash, NULL, &err));
    play.bodies_len = 8;
    result(crashes_read(NULL, "shop", 3, on_crash, NULL, &err));
    play.refused = "read";
    play.bodies_len = 1;
    result(crashes_read(NULL, "shop", 3, on_crash, NULL, &err));
    play.refused = "bounds";
    result(crashes_read(NULL, "shop", 3, on_crash, NULL, &err));
    result(crashes_read(NULL, "no namespace", 3, on_crash, NULL, &err));
}

/* ---- activity messages ---- */

#define NONCE "0123456789abcdef0123456789abcdef"

static struct work_item item_of(uint64_t execution, uint64_t id, uint64_t try_number)
{
    return (struct work_item){.queue = THOLE_STR("mail"),
                              .instance = THOLE_STR("b/c"),
                              .activity = THOLE_STR("send"),
                              .input = THOLE_STR("to whom"),
                              .nonce = THOLE_STR(NONCE),
                              .execution = execution,
                              .activity_id = id,
                              .try_number = try_number};
}

static void say_work(natsMsg *native)
{
    struct work_names names;
    const char *bad = NULL;
    CU_ASSERT_EQUAL_FATAL(work_names_make("shop", THOLE_STR("mail"), &names, &err), THOLE_OK);
    struct work_message *const message = work_message_create(native, &names, &bad);
    const struct work_item *const item = &message->item;
    (void)fprintf(play.said, "  %s: %.*s %.*s %.*s %" PRIu64 ".%" PRIu64 ".%" PRIu64 " (%.*s) %.*s",
                  bad == NULL ? "good" : bad, THOLE_FMT(item->queue), THOLE_FMT(item->instance),
                  THOLE_FMT(item->activity), item->execution, item->activity_id, item->try_number,
                  THOLE_FMT(item->input), THOLE_FMT(item->nonce));
    if (item->lists)
        (void)fprintf(play.said, ", may be in a list");
    if (item->trace.parent.len > 0)
        (void)fprintf(play.said, ", %.*s (%.*s)", THOLE_FMT(item->trace.parent), THOLE_FMT(item->trace.list));
    (void)fprintf(play.said, " delivery %" PRIu64 " of %" PRIu64 " %s\n", message->deliveries,
                  message->sequence, message->reply);
    work_message_destroy(message);
}

static void work_there_and_back(void)
{
    struct work_names names;
    struct work_item item = item_of(2, 7, 3);
    result(work_publish(NULL, "shop", &item, 11, &err));
    say_work(play.kept[0]);
    result(work_look(NULL, "shop", &item, 12, &err));
    item = item_of(INT64_MAX, INT64_MAX, INT32_MAX);
    result(work_publish(NULL, "shop", &item, 11, &err));
    say_work(play.kept[1]);
    play.kept_len = 0;
    item.activity = THOLE_STR("no name");
    result(work_publish(NULL, "shop", &item, 11, &err));
    item = item_of(1, 1, 1);
    item.queue = THOLE_STR("no name");
    result(work_publish(NULL, "shop", &item, 11, &err));
    result(work_look(NULL, "shop", &item, 11, &err));
    result(work_names_make("no namespace", THOLE_STR("mail"), &names, &err));
    result(work_names_make("shop", THOLE_STR("no name"), &names, &err));
}

/* Headers beside the digest: whether its result may come with others, and the trace. */
static void work_headers(void)
{
    static const char *const values[] = {"", "list", "List", "list ", "lists", "one"};
    struct trace const traces[] = {
        {.parent = {NULL, 0}},
        {.parent = THOLE_STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
        {THOLE_STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), THOLE_STR("rojo=1")}};
    for (size_t i = 0; i < 2 * ARRAY_LEN(traces); i++) {
        struct work_item item = item_of(2, 7, 3);
        item.lists = i % 2 == 1;
        item.trace = traces[i / 2];
        result(work_publish(NULL, "shop", &item, 11, &err));
        say_work(play.kept[--play.kept_len]);
    }
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct header const headers[] = {{HEADER_ACTIVITY, THOLE_STR("send")},
                                         {HEADER_NONCE, THOLE_STR(NONCE)},
                                         {HEADER_RESULTS, thole_slice_from(values[i])}};
        keep("thole.shop.work.mail.b%2Fc.2.7.3", "$JS.ACK.S.C.1.2.3.4.5", headers, 3, (thole_slice){NULL, 0});
        say_work(play.kept[--play.kept_len]);
    }
}

static void work_malformed(void)
{
    static const char *const changed[][2] = {/* the activity, NULL: not there; the subject */
                                             {NULL, "thole.shop.work.mail.b%2Fc.2.7.3"},
                                             {"no name", "thole.shop.work.mail.b%2Fc.2.7.3"},
                                             {"send", "thole.shop.work.mail.b%2Fc.0.7.3"},
                                             {"send", "thole.shop.work.mail.b%2Fc.x.7.3"},
                                             {"send", "thole.shop.work.mail.b%2Fc.9223372036854775808.7.3"},
                                             {"send", "thole.shop.work.mail.b%2Fc.2.0.3"},
                                             {"send", "thole.shop.work.mail.b%2Fc.2.9223372036854775808.3"},
                                             {"send", "thole.shop.work.mail.b%2Fc.2.7.0"},
                                             {"send", "thole.shop.work.mail.b%2Fc.2.7"},
                                             {"send", "thole.shop.work.mail.b%2Fc.2.7.2147483648"},
                                             {"send", "thole.shop.work.mail.%4.2.7.3"},
                                             {"send", "thole.other.work.mail.b%2Fc.2.7.3"},
                                             {"send", "thole.shop.work.bank.b%2Fc.2.7.3"},
                                             {"send", "thole.shop.work.mail.b%2Fc.2.7.3.4"},
                                             {"send", "thole.shop.work.mail.b%2Fc.2.7.3"}};
    for (size_t i = 0; i < ARRAY_LEN(changed); i++) {
        struct header const headers[] = {
            {HEADER_NONCE, THOLE_STR(NONCE)},
            {HEADER_ACTIVITY, thole_slice_from(changed[i][0] == NULL ? "" : changed[i][0])}};
        bool const whole = i + 1 < ARRAY_LEN(changed);
        keep(changed[i][1], whole ? "$JS.ACK.S.C.1.2.3.4.5" : NULL, headers, changed[i][0] == NULL ? 1 : 2,
             (thole_slice){NULL, 0});
        say_work(play.kept[--play.kept_len]);
    }
    static const char *const nonces[] = {"", NONCE "0", "x"};
    for (size_t i = 0; i < ARRAY_LEN(nonces); i++) {
        struct header const headers[] = {{HEADER_ACTIVITY, THOLE_STR("send")},
                                         {HEADER_NONCE, thole_slice_from(nonces[i])}};
        keep("thole.shop.work.mail.b%2Fc.2.7.3", "$JS.ACK.S.C.1.2.3.4.5", headers,
             nonces[i][0] == '\0' ? 1 : 2, (thole_slice){NULL, 0});
        say_work(play.kept[--play.kept_len]);
    }
}

static void work_signals(void)
{
    struct work_names names;
    const char *bad;
    struct work_item const item = item_of(2, 7, 3);
    CU_ASSERT_EQUAL_FATAL(work_names_make("shop", THOLE_STR("mail"), &names, &err), THOLE_OK);
    result(work_publish(NULL, "shop", &item, 11, &err));
    result(work_publish(NULL, "shop", &item, 11, &err));
    struct work_message *const message = work_message_create(play.kept[0], &names, &bad);
    for (enum work_signal signal = WORK_ACK; signal <= WORK_TERM; signal++)
        result(work_message_signal(NULL, message, signal, &err));
    result(work_message_put_back(NULL, message, 1500, &err));
    play.refused = "send_bytes";
    result(work_message_put_back(NULL, message, 0, &err));
    nats.down = true;
    result(work_message_signal(NULL, message, WORK_ACK, &err));
    nats.down = false;
    play.refused = NULL;
    struct work_message *const again = work_message_create(play.kept[1], &names, &bad);
    free(again->reply);
    again->reply = strdup("$JS.ACK.later");
    again->sequence = 88;
    again->deliveries = 9;
    work_message_adopt(message, again);
    (void)fprintf(play.said, "  %s %" PRIu64 " %" PRIu64 "\n", message->reply, message->sequence,
                  message->deliveries);
    message->reply[0] = '\0';
    result(work_message_signal(NULL, message, WORK_ACK, &err));
    work_message_destroy(message);
    work_message_destroy(NULL);
    play.kept_len = 0;
}

/* ---- the roll call ---- */

static void answer_as(const char *worker, const char *queue, const char *reply, size_t activities)
{
    static const thole_slice names[] = {{(const uint8_t *)"send", 4}, {(const uint8_t *)"print", 5}};
    struct delivery const question = {.reply = thole_slice_from(reply)};
    struct roll_answer const answer = {.worker = thole_slice_from(worker),
                                       .queue = thole_slice_from(queue),
                                       .slots = 10 + activities,
                                       .activities = names,
                                       .activities_len = activities};
    result(roll_call_answer(NULL, &question, &answer, &err));
}

static void call_the_roll(const char *ns)
{
    struct arena arena;
    struct roll_answer *answers = NULL;
    size_t n = 0;
    arena_init(&arena, 10000);
    thole_status const status = roll_call(NULL, ns, &arena, &answers, &n, &err);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(play.said, "  %.*s serves %.*s with %" PRIu64 ":", THOLE_FMT(answers[i].worker),
                      THOLE_FMT(answers[i].queue), answers[i].slots);
        for (size_t k = 0; k < answers[i].activities_len; k++)
            (void)fprintf(play.said, " %.*s", THOLE_FMT(answers[i].activities[k]));
        (void)fprintf(play.said, "\n");
    }
    result(status);
    arena_release(&arena);
    CU_ASSERT_EQUAL(play.subscribed, 0);
    CU_ASSERT_EQUAL(nats.acquired, 0);
}

static void roll_answers(void)
{
    answer_as("w2", "mail", "_INBOX.x", 2);
    answer_as("w1", "mail", "_INBOX.x", 1);
    answer_as("w3", "bank", "_INBOX.x", 0);
    answer_as("w10", "mail", "_INBOX.x", 0);
    answer_as("w", "mails", "_INBOX.x", 0);
    answer_as("w", "mail", "", 0);
    answer_as("w", "mail", "thole.shop.in.0.order", 0);
    call_the_roll("shop");
}

static void roll_malformed(void)
{
    static const struct {
        const char *worker, *queue, *slots, *names;
    } rows[] = {{"", "mail", "1", "a"},          {"w w", "mail", "1", "a"},   {"w\x7f", "mail", "1", "a"},
                {"w", "no name", "1", "a"},      {"w", "mail", "x", "a"},     {"w", "mail", "1", "a,"},
                {"w", "mail", "1", "a,no name"}, {"good", "mail", "1", "a,b"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct header const headers[] = {{HEADER_WORKER, thole_slice_from(rows[i].worker)},
                                         {HEADER_QUEUE, thole_slice_from(rows[i].queue)},
                                         {HEADER_SLOTS, thole_slice_from(rows[i].slots)}};
        keep("_INBOX.x", NULL, headers + (i == 0), i == 0 ? 2 : 3, thole_slice_from(rows[i].names));
    }
    call_the_roll("shop");
}

static void roll_nobody(void)
{
    call_the_roll("shop"); /* none answers in time */
    play.forbids = true;
    call_the_roll("shop");
    play.forbids = false;
    play.nobody = true;
    call_the_roll("shop");
    play.nobody = false;
    play.refused = "subscribe";
    call_the_roll("shop");
    play.refused = "link_send";
    call_the_roll("shop");
    nats.down = true;
    call_the_roll("shop");
    call_the_roll("no namespace");
}

/* ---- rejected messages ---- */

static void reject(uint64_t sequence, const char *subject, const char *reason)
{
    struct rejected_item const item = {.partition = 3,
                                       .sequence = sequence,
                                       .stored_ns = 1700000000123456789,
                                       .code = THOLE_STR("malformed"),
                                       .reason = thole_slice_from(reason),
                                       .subject = thole_slice_from(subject),
                                       .payload = THOLE_STR("bytes"),
                                       .bytes = 5000};
    result(rejected_publish(NULL, "shop", &item, 21, &err));
}

/* Of several results in one message each has an id of its own. */
static void reject_part(uint32_t part)
{
    struct rejected_item const item = {.partition = 3,
                                       .sequence = 53,
                                       .part = part,
                                       .stored_ns = 1700000000123456789,
                                       .code = THOLE_STR("nonce"),
                                       .subject = THOLE_STR("thole.shop.in.3.result.worker.order")};
    result(rejected_publish(NULL, "shop", &item, 21, &err));
    natsMsg_Destroy(play.kept[--play.kept_len]);
}

static void read_rejected(uint64_t behind, uint64_t most)
{
    struct rejected_list list = {.behind = behind, .most = most};
    arena_init(&list.arena, 100000);
    thole_status const status = rejected_read(NULL, "shop", &list, &err);
    for (size_t i = 0; i < list.len; i++) {
        const struct rejected_item *const item = &list.items[i];
        (void)fprintf(play.said, "  %" PRIu64 ": p=%u %" PRIu64 " at %" PRIu64 " %.*s", item->number,
                      item->partition, item->sequence, item->stored_ns, THOLE_FMT(item->code));
        (void)fprintf(play.said, " (%.*s) %.*s %.*s of %" PRIu64 "\n", THOLE_FMT(item->reason),
                      THOLE_FMT(item->subject), THOLE_FMT(item->payload), item->bytes);
    }
    result(status);
    arena_release(&list.arena);
}

static void rejected(void)
{
    struct rejected_list list = {.most = 1};
    reject(50, "thole.shop.in.3.b\x7f\xff c!~", "it is\nno message~ \x7f");
    reject(51, "thole.shop.in.3.order", "");
    play.refused = "publish";
    reject(52, "thole.shop.in.3.order", "");
    play.refused = NULL;
    reject_part(0);
    reject_part(1);
    reject_part(255);
    result(rejected_publish(NULL, "no namespace", &(struct rejected_item){.partition = 3}, 1, &err));
    read_rejected(0, 10); /* empty */
    play.bounds = (struct stream_bounds){.first = 1, .last = 3, .messages = 3};
    read_rejected(0, 10);
    read_rejected(0, 2);
    read_rejected(3, 10);
    read_rejected(2, 10);
    read_rejected(1, 10);
    read_rejected(9, 1);
    play.refused = "bounds";
    read_rejected(0, 10);
    result(rejected_read(NULL, "no namespace", &list, &err));
}

static void rejected_times(void)
{
    static const char *const times[] = {"2023-11-14T22:13:20.5Z",
                                        "1969-12-31T23:59:59.000000000Z",
                                        "2023-11-14T22:13:20",
                                        "x",
                                        "",
                                        "2023-11-14T22:13:20.000000000000000000000000000Z"};
    play.bounds = (struct stream_bounds){.first = 1, .last = 6, .messages = 6};
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        struct header const headers[] = {{HEADER_TIME, thole_slice_from(times[i])},
                                         {HEADER_SEQUENCE, THOLE_STR("x")}};
        keep("thole.shop.rejected.7", NULL, headers, 2, (thole_slice){NULL, 0});
    }
    read_rejected(0, 10);
}

/* ---- single messages of streams ---- */

static void next_message(void)
{
    static const char *const answers[] = {
        "{\"type\":\"t\",\"message\":{\"seq\":14}}", "{\"type\":\"t\",\"message\":{}}",
        "{\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"no message found\"}}",
        "{\"error\":{\"code\":503,\"err_code\":10008,\"description\":\"no quorum\"}}"};
    memcpy(play.answers, answers, sizeof answers);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        uint64_t sequence = 5;
        thole_status const status = stream_next(NULL, "S", 7, &sequence, &err);
        (void)fprintf(play.said, "  sequence %" PRIu64 "\n", sequence);
        result(status);
    }
    play.refused = "request";
    uint64_t sequence;
    result(stream_next(NULL, "S", 7, &sequence, &err));
}

static void deleted(void)
{
    static const char *const answers[] = {
        "{\"type\":\"t\",\"success\":true}",
        "{\"error\":{\"code\":400,\"err_code\":10043,\"description\":\"none\"}}",
        "{\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"none\"}}",
        "{\"error\":{\"code\":500,\"err_code\":10057,\"description\":\"failed\"}}",
        "{\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"none\"}}",
        "{\"error\":{\"code\":500,\"err_code\":10057,\"description\":\"failed\"}}",
        "{\"type\":\"t\",\"message\":{\"seq\":7}}",
        "{\"error\":{\"code\":503,\"err_code\":10008,\"description\":\"no quorum\"}}"};
    memcpy(play.answers, answers, sizeof answers);
    for (size_t i = 0; i < 6; i++)
        result(stream_delete(NULL, "S", 7, &err));
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {{"a crash that is the first", crash_new},
              {"crashes that are counted", crash_again},
              {"another writer was first", crash_conflict},
              {"a crash that cannot be written", crash_fails},
              {"an entry that is put and removed", crash_put},
              {"all crashes of a partition", crash_read},
              {"an activity's message, there and back", work_there_and_back},
              {"what is beside an activity's digest", work_headers},
              {"malformed activity messages", work_malformed},
              {"signals", work_signals},
              {"workers answer", roll_answers},
              {"malformed answers of workers", roll_malformed},
              {"no worker answers", roll_nobody},
              {"rejected messages", rejected},
              {"times of rejected messages", rejected_times},
              {"the next message", next_message},
              {"a message is deleted", deleted}};

static void play_line(const char *line, FILE *to)
{
    bool found = false;
    memset(&play, 0, sizeof play);
    memset(&err, 0, sizeof err);
    play.said = to;
    played_nats_begin();
    nats.now_ms = 1000;
    for (size_t i = 0; i < ARRAY_LEN(scenes); i++)
        if (strcmp(scenes[i].name, line) == 0) {
            scenes[i].run();
            found = true;
        }
    CU_ASSERT_TRUE(found);
    for (size_t i = 0; i < play.kept_len; i++)
        natsMsg_Destroy(play.kept[i]);
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

static void test_nothing_stays(void)
{
    transcript_check_heap(TRANSCRIPT, play_line);
}

/* The heap is not compared: nats.c frees messages on a thread of its own. The leak sanitizer looks. */
static const struct thole_test tests[] = {{"transcript", test_transcript},
                                          {"nothing stays", test_nothing_stays}};
THOLE_TEST_MAIN("stream_contents", tests)
