/* The window of requests: what is sent, which answer belongs to which request, and that each is answered
 * once. The connection is played. */
#include "inflow.h"
#include "requests.h"
#include "thole_cunit.h"
#include "wrap_link.h"
#include "wrap_mutexes.h"
#include <stdlib.h>

enum { WINDOW = 4, DONE_MAX = 32, TIMEOUT_MS = 1000 };

struct answered {
    enum request_result result;
    uint64_t token, sequence;
    bool duplicate;
    uint32_t err_code;
    char subject[64], body[64];
};

static struct {
    struct requests *requests;
    struct attachment *attachment;
    listener_fn *fn;
    void *arg;
    uint64_t alarm_ms;
    bool no_listener, unsent, cut; /* unsent: a send fails; cut: after a part of it */
    unsigned listening, inboxes, opened;
    char pattern[64], subject[64], reply[64], body[64], headers[200]; /* of what was sent last */
    size_t sent;
    struct answered done[DONE_MAX];
    size_t done_len;
    const char *send_in_done; /* the body of a read that the next callback sends */
} play;

static thole_error err;

const char *__wrap_connection_api_prefix(const struct connection *connection)
{
    (void)connection;
    return "$JS.API";
}

/* ---- the connection ---- */

void __wrap_connection_attach(struct connection *connection, struct attachment *attachment)
{
    (void)connection;
    play.attachment = attachment;
    if (!nats.down)
        attachment->up(attachment->arg, &nats.link);
}

void __wrap_connection_detach(struct connection *connection, struct attachment *attachment)
{
    (void)connection;
    CU_ASSERT_PTR_EQUAL(attachment, play.attachment);
    play.attachment = NULL;
}

void __wrap_connection_alarm_by(struct connection *connection, struct attachment *attachment, uint64_t due_ms)
{
    (void)connection;
    CU_ASSERT_PTR_EQUAL(attachment, play.attachment);
    if (play.alarm_ms == 0 || due_ms < play.alarm_ms)
        play.alarm_ms = due_ms;
}

void __wrap_connection_inbox(struct connection *connection, char ret[LINK_INBOX_BYTES])
{
    (void)connection;
    (void)snprintf(ret, LINK_INBOX_BYTES, "_INBOX.%u", ++play.inboxes);
}

thole_status __wrap_listener_open(struct link *link, const char *subject, const char *group, listener_fn *fn,
                                  void *arg, struct listener **ret, thole_error *reterr)
{
    (void)group;
    CU_ASSERT_PTR_EQUAL(link, &nats.link);
    if (play.no_listener)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no");
    (void)snprintf(play.pattern, sizeof play.pattern, "%s", subject);
    play.fn = fn;
    play.arg = arg;
    play.opened++;
    *ret = (struct listener *)&play;
    return THOLE_OK;
}

void __wrap_listeners_replace(struct listeners *listeners, struct listener *listener)
{
    (void)listeners;
    play.listening = listener != NULL;
}

void __wrap_listeners_close(struct listeners *listeners)
{
    (void)listeners;
    CU_ASSERT_PTR_NULL(play.attachment); /* else it could get another listener */
    play.listening = 0;
}

static thole_status note_sent(const struct link *link, const char *subject, const char *reply,
                              thole_slice body, bool *ret_sent, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(link, &nats.link);
    *ret_sent = !play.unsent;
    if (play.unsent || play.cut)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "the pipe is broken");
    play.sent++;
    (void)snprintf(play.subject, sizeof play.subject, "%s", subject);
    (void)snprintf(play.reply, sizeof play.reply, "%s", reply);
    (void)snprintf(play.body, sizeof play.body, "%.*s", THOLE_FMT(body));
    play.headers[0] = '\0';
    return THOLE_OK;
}

thole_status __wrap_link_send_bytes(struct link *link, const char *subject, const char *reply,
                                    thole_slice body, bool *ret_sent, thole_error *reterr)
{
    *ret_sent = false;
    if (!link_subject_is_safe(subject))
        return thole_fail(reterr, THOLE_INVALID, "subject");
    return note_sent(link, subject, reply, body, ret_sent, reterr);
}

thole_status __wrap_link_send(struct link *link, natsMsg *message, bool *ret_sent, thole_error *reterr)
{
    const char *value;
    THOLE_TRY(note_sent(link, natsMsg_GetSubject(message), natsMsg_GetReply(message),
                        link_delivery(message).body, ret_sent, reterr));
    for (size_t i = 0; i < 4; i++) {
        static const char *const known[] = {"Nats-Msg-Id", "Nats-Expected-Last-Sequence", "A", "B"};
        size_t const at = strlen(play.headers);
        if (natsMsgHeader_Get(message, known[i], &value) == NATS_OK)
            (void)snprintf(play.headers + at, sizeof play.headers - at, "%s=%s ", known[i], value);
    }
    return THOLE_OK;
}

/* ---- the window's owner ---- */

static void done(void *arg, const struct request_done *answer)
{
    CU_ASSERT_PTR_EQUAL(arg, &play);
    CU_ASSERT_TRUE_FATAL(play.done_len < DONE_MAX);
    struct answered *const to = &play.done[play.done_len++];
    *to = (struct answered){.result = answer->result,
                            .token = answer->token,
                            .sequence = answer->sequence,
                            .duplicate = answer->duplicate,
                            .err_code = answer->err_code};
    (void)snprintf(to->subject, sizeof to->subject, "%.*s", THOLE_FMT(answer->subject));
    (void)snprintf(to->body, sizeof to->body, "%.*s", THOLE_FMT(answer->body));
    const char *const body = play.send_in_done;
    play.send_in_done = NULL;
    if (body != NULL)
        CU_ASSERT_EQUAL(
            requests_send(play.requests, "$JS.API.STREAM.MSG.GET.S", thole_slice_from(body), 99, &err),
            THOLE_OK);
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    memset(&err, 0, sizeof err);
    played_nats_begin();
    nats.link.epoch = 1;
    nats.now_ms = 5000;
    CU_ASSERT_EQUAL_FATAL(requests_open(NULL, WINDOW, TIMEOUT_MS, done, &play, &play.requests, &err),
                          THOLE_OK);
}

/* With room for more reads than may be with the server: those are tokens 1 to INFLOW_READS then. */
static void begin_with_reads(size_t more)
{
    begin();
    requests_close(play.requests);
    CU_ASSERT_EQUAL_FATAL(
        requests_open(NULL, INFLOW_READS + more, TIMEOUT_MS, done, &play, &play.requests, &err), THOLE_OK);
    for (uint64_t i = 1; i <= INFLOW_READS; i++)
        CU_ASSERT_EQUAL(requests_send(play.requests, "$JS.API.STREAM.MSG.GET.S", THOLE_STR("g"), i, &err),
                        THOLE_OK);
    CU_ASSERT_EQUAL(play.sent, INFLOW_READS);
}

/* Nothing stays in flight or acquired. */
static void end(void)
{
    requests_close(play.requests);
    CU_ASSERT_EQUAL(nats.acquired, 0);
    CU_ASSERT_EQUAL(play.listening, 0);
}

static thole_status publish(uint64_t token)
{
    struct publish const publish = {.subject = "thole.x", .body = THOLE_STR("b")};
    return requests_publish(play.requests, &publish, token, &err);
}

static void answer_with(const char *subject, const char *status, const char *body)
{
    natsMsg *message = NULL;
    CU_ASSERT_EQUAL_FATAL(natsMsg_Create(&message, subject, NULL, body, (int)strlen(body)), NATS_OK);
    if (status != NULL)
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Status", status), NATS_OK);
    play.fn(play.arg, &message, 1);
    natsMsg_Destroy(message);
}

static void answer(const char *subject)
{
    answer_with(subject, NULL, "{\"stream\":\"S\",\"seq\":7}");
}

static void lose(void)
{
    nats.down = true;
    play.attachment->down(play.attachment->arg, nats.link.epoch);
}

static void connect_again(void)
{
    nats.down = false;
    nats.link.epoch++;
    play.attachment->up(play.attachment->arg, &nats.link);
}

static void fire_at(uint64_t now_ms)
{
    nats.now_ms = now_ms;
    play.alarm_ms = 0;
    play.attachment->fire(play.attachment->arg);
}

/* The tokens that were answered since, in order, with how. */
static void check_done(const char *row, const char *want)
{
    static const char *const results[] = {"answered", "stored", "refused", "busy", "failed", "unknown"};
    char got[400] = "";
    for (size_t i = 0; i < play.done_len; i++)
        (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%llu %s ",
                       (unsigned long long)play.done[i].token, results[play.done[i].result]);
    CHECK_STR(row, got, want);
    play.done_len = 0;
}

/* ---- tests ---- */

static void test_what_is_sent(void)
{
    struct header const more[] = {{"A", THOLE_STR("1")}, {"B", THOLE_STR("2")}};
    struct publish const all = {.subject = "thole.shop",
                                .body = THOLE_STR("body"),
                                .message_id = "id",
                                .expect_last = true,
                                .expected_last = 18446744073709551615U,
                                .headers = more,
                                .headers_len = 2};
    struct publish const first = {.subject = "thole.shop", .expect_last = true};
    struct publish const no_id = {.subject = "thole.shop", .message_id = ""};
    struct publish many = all;
    struct header most[MESSAGE_HEADERS_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(most); i++)
        most[i] = more[0];
    begin();
    CHECK_STR("listens to", play.pattern, "_INBOX.1.*.*");
    CU_ASSERT_EQUAL(requests_publish(play.requests, &all, 1, &err), THOLE_OK);
    CHECK_STR("subject", play.subject, "thole.shop");
    CHECK_STR("reply", play.reply, "_INBOX.1.0.0");
    CHECK_STR("body", play.body, "body");
    CHECK_STR("headers", play.headers,
              "Nats-Msg-Id=id Nats-Expected-Last-Sequence=18446744073709551615 A=1 B=2 ");
    CU_ASSERT_EQUAL(requests_publish(play.requests, &first, 2, &err), THOLE_OK);
    CHECK_STR("headers", play.headers, "Nats-Expected-Last-Sequence=0 ");
    CHECK_STR("reply", play.reply, "_INBOX.1.1.0");
    CU_ASSERT_EQUAL(requests_send(play.requests, "$JS.API.X", THOLE_STR("{}"), 3, &err), THOLE_OK);
    CHECK_STR("a request's headers", play.headers, "");
    CHECK_STR("a request's subject", play.subject, "$JS.API.X");
    CU_ASSERT_EQUAL(requests_publish(play.requests, &no_id, 4, &err), THOLE_INVALID);
    many.headers_len = MESSAGE_HEADERS_MAX;
    many.headers = most;
    CU_ASSERT_EQUAL(requests_publish(play.requests, &many, 4, &err), THOLE_OK);
    answer(play.reply);
    check_done("as many as there may be", "4 stored ");
    many.headers_len = MESSAGE_HEADERS_MAX + 1;
    CU_ASSERT_EQUAL(requests_publish(play.requests, &many, 5, &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(requests_send(play.requests, "a b", THOLE_STR(""), 6, &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(requests_in_flight(play.requests), 3);
    CU_ASSERT_EQUAL(nats.acquired, 0);
    end();
    check_done("at the end", "1 unknown 2 unknown 3 unknown ");
}

static void test_what_an_answer_means(void)
{
    static const struct {
        const char *status, *body;
        enum request_result result;
        uint64_t sequence;
        bool duplicate;
        uint32_t code;
    } rows[] = {
        {NULL, "{\"stream\":\"S\",\"seq\":7}", REQUEST_STORED, 7, false, 0},
        {NULL, "{\"stream\":\"S\",\"seq\":7,\"duplicate\":true}", REQUEST_STORED, 7, true, 0},
        {NULL, "{\"stream\":\"S\",\"seq\":7,\"duplicate\":false}", REQUEST_STORED, 7, false, 0},
        {NULL, "{\"stream\":\"S\",\"seq\":0}", REQUEST_FAILED, 0, false, 0},
        {NULL, "{\"stream\":\"S\"}", REQUEST_FAILED, 0, false, 0},
        {NULL, "hello", REQUEST_FAILED, 0, false, 0},
        {NULL, "{\"error\":{\"code\":400,\"err_code\":10071}}", REQUEST_REFUSED, 0, false, 10071},
        {NULL, "{\"error\":{\"code\":400,\"err_code\":10164}}", REQUEST_REFUSED, 0, false, 10164},
        {NULL, "{\"error\":{\"code\":400,\"err_code\":10167}}", REQUEST_BUSY, 0, false, 10167},
        {NULL, "{\"error\":{\"code\":503,\"err_code\":10077}}", REQUEST_BUSY, 0, false, 10077},
        {NULL, "{\"error\":{\"code\":503,\"err_code\":10023}}", REQUEST_BUSY, 0, false, 10023},
        {NULL, "{\"error\":{\"code\":500,\"err_code\":10047}}", REQUEST_BUSY, 0, false, 10047},
        {NULL, "{\"error\":{\"code\":500,\"err_code\":10028}}", REQUEST_BUSY, 0, false, 10028},
        {NULL, "{\"error\":{\"code\":400,\"err_code\":10002}}", REQUEST_BUSY, 0, false, 10002},
        {NULL, "{\"error\":{\"code\":400,\"err_code\":10060}}", REQUEST_FAILED, 0, false, 10060},
        {NULL, "{\"error\":{\"code\":400,\"err_code\":4294967296}}", REQUEST_FAILED, 0, false, 0},
        {NULL, "{\"error\":{},\"seq\":7}", REQUEST_FAILED, 0, false, 0},
        {"404", "", REQUEST_FAILED, 0, false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        CU_ASSERT_EQUAL(publish(9), THOLE_OK);
        answer_with(play.reply, rows[i].status, rows[i].body);
        CU_ASSERT_EQUAL_FATAL(play.done_len, 1);
        const struct answered *const got = &play.done[0];
        bool const same = got->result == rows[i].result && got->sequence == rows[i].sequence &&
                          got->duplicate == rows[i].duplicate && got->err_code == rows[i].code &&
                          got->token == 9;
        CHECK_STR(rows[i].body, same ? "same" : "another", "same");
        CHECK_STR("the body is handed on", got->body, rows[i].body);
        CU_ASSERT_EQUAL(requests_in_flight(play.requests), 0);
        end();
        CU_ASSERT_EQUAL(play.done_len, 1);
    }
    begin(); /* bytes that are no publish are not read */
    CU_ASSERT_EQUAL(requests_send(play.requests, "x", THOLE_STR(""), 1, &err), THOLE_OK);
    answer_with(play.reply, NULL, "{\"error\":{}}");
    CU_ASSERT_EQUAL(requests_send(play.requests, "x", THOLE_STR(""), 2, &err), THOLE_OK);
    answer_with(play.reply, NULL, "");
    check_done("requests", "1 answered 2 answered ");
    end();
}

/* nats.c does not say which request it is that has no responders. */
static void no_responders(uint64_t epoch)
{
    natsMsg *none = NULL;
    play.fn(play.arg, &none, epoch);
}

static void test_an_only_one_without_responders(void)
{
    begin();
    CU_ASSERT_EQUAL(publish(1), THOLE_OK);
    no_responders(1);
    check_done("it is certain", "1 busy ");
    CU_ASSERT_EQUAL(publish(2), THOLE_OK);
    answer(play.reply);
    check_done("the next", "2 stored ");
    no_responders(1); /* there is none */
    CU_ASSERT_EQUAL(publish(3), THOLE_OK);
    end();
}

static void test_some_without_responders(void)
{
    char replies[4][64];
    begin();
    for (uint64_t i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(publish(i + 1), THOLE_OK);
        (void)snprintf(replies[i], sizeof replies[i], "%s", play.reply);
    }
    no_responders(1);
    answer(replies[1]);
    no_responders(1);
    check_done("two of three", "2 stored ");
    answer(replies[3]);
    check_done("all that are left", "4 stored 1 busy 3 busy ");
    CU_ASSERT_EQUAL(requests_in_flight(play.requests), 0);
    end();
}

/* A request sent after a refusal is not the refused one. */
static void test_sent_after_a_refusal(void)
{
    char first[64];
    begin();
    CU_ASSERT_EQUAL(publish(1), THOLE_OK);
    (void)snprintf(first, sizeof first, "%s", play.reply);
    CU_ASSERT_EQUAL(publish(2), THOLE_OK);
    no_responders(1);
    CU_ASSERT_EQUAL(publish(3), THOLE_OK);
    answer(first);
    check_done("the one that was sent before", "1 stored 2 busy ");
    CU_ASSERT_EQUAL(requests_in_flight(play.requests), 1);
    end();
}

/* A request that was given up may be the one that was refused: nothing is certain. */
static void test_refusals_and_time(void)
{
    begin();
    CU_ASSERT_EQUAL(publish(1), THOLE_OK);
    nats.now_ms += 1;
    CU_ASSERT_EQUAL(publish(2), THOLE_OK);
    nats.now_ms += 1;
    CU_ASSERT_EQUAL(publish(3), THOLE_OK);
    no_responders(1);
    fire_at(5000 + TIMEOUT_MS); /* the first is given up, and is no suspect any more */
    check_done("given up", "1 unknown ");
    fire_at(5001 + TIMEOUT_MS);
    check_done("the others stay", "2 unknown ");
    no_responders(1); /* of one that was given up */
    check_done("late", "");
    fire_at(5002 + TIMEOUT_MS);
    check_done("the last", "3 unknown ");
    end();
}

/* Nor is one of an earlier epoch. */
static void test_a_refusal_of_an_earlier_epoch(void)
{
    begin();
    CU_ASSERT_EQUAL(publish(1), THOLE_OK);
    lose();
    check_done("lost", "1 unknown ");
    no_responders(1);
    connect_again();
    CU_ASSERT_EQUAL(publish(2), THOLE_OK);
    no_responders(1);
    check_done("of the first epoch", "");
    no_responders(2);
    check_done("of the second", "2 busy ");
    end();
}

static void test_what_a_direct_get_answers(void)
{
    static const struct {
        const char *status, *sequence, *body;
        enum request_result result;
        uint64_t got;
    } rows[] = {
        {NULL, "7", "body", REQUEST_ANSWERED, 7},
        {NULL, "18446744073709551615", "503", REQUEST_ANSWERED, UINT64_MAX},
        {NULL, "7", "", REQUEST_ANSWERED, 7}, /* an empty message */
        {"404", NULL, "", REQUEST_ANSWERED, 0},
        {"404", "7", "", REQUEST_ANSWERED, 0},
        {"408", NULL, "", REQUEST_FAILED, 0},
        {NULL, NULL, "body", REQUEST_FAILED, 0},
        {NULL, "0", "body", REQUEST_FAILED, 0},
        {NULL, "x", "body", REQUEST_FAILED, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        natsMsg *message = NULL;
        begin();
        CU_ASSERT_EQUAL(requests_get(play.requests, "$JS.API.DIRECT.GET.X", THOLE_STR("{}"), 9, &err),
                        THOLE_OK);
        CHECK_STR("subject", play.subject, "$JS.API.DIRECT.GET.X");
        CHECK_STR("body", play.body, "{}");
        CU_ASSERT_EQUAL_FATAL(
            natsMsg_Create(&message, play.reply, NULL, rows[i].body, (int)strlen(rows[i].body)), NATS_OK);
        if (rows[i].status != NULL)
            CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Status", rows[i].status), NATS_OK);
        if (rows[i].sequence != NULL)
            CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Nats-Sequence", rows[i].sequence), NATS_OK);
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Nats-Subject", "thole.x"), NATS_OK);
        play.fn(play.arg, &message, 1);
        natsMsg_Destroy(message);
        CU_ASSERT_EQUAL_FATAL(play.done_len, 1);
        CU_ASSERT_EQUAL(play.done[0].result, rows[i].result);
        CU_ASSERT_EQUAL(play.done[0].sequence, rows[i].got);
        CHECK_STR("body", play.done[0].body, rows[i].body);
        CHECK_STR("subject", play.done[0].subject, rows[i].got > 0 ? "thole.x" : "");
        end();
    }
}

static void test_whose_answer_it_is(void)
{
    static const char *const nobody[] = {"x",
                                         "_INBOX.1",
                                         "_INBOX.1.0",
                                         "_INBOX.1.0.1",
                                         "_INBOX.1.4.0",
                                         "_INBOX.1.1.0",
                                         "_INBOX.1.x.0",
                                         "_INBOX.1.0.0x",
                                         "_INBOX.1.0x.0",
                                         "_INBOX.1.0.4294967296",
                                         "_INBOX.1.0.-1"};
    char first[64];
    begin();
    CU_ASSERT_EQUAL(publish(1), THOLE_OK);
    (void)snprintf(first, sizeof first, "%s", play.reply);
    for (size_t i = 0; i < ARRAY_LEN(nobody); i++) {
        answer(nobody[i]);
        check_done(nobody[i], "");
    }
    answer(first);
    check_done("its own", "1 stored ");
    answer(first);
    check_done("a second time", "");
    CU_ASSERT_EQUAL(publish(2), THOLE_OK);
    CHECK_STR("the slot is used again", play.reply, "_INBOX.1.0.1");
    answer(first);
    check_done("of the one before", "");
    answer(play.reply);
    check_done("its own", "2 stored ");
    end();
    check_done("nothing is left", "");
}

static void test_a_full_window(void)
{
    char replies[WINDOW][64];
    begin();
    for (size_t i = 0; i < WINDOW; i++) {
        CU_ASSERT_EQUAL(publish(i + 1), THOLE_OK);
        memcpy(replies[i], play.reply, sizeof replies[i]);
    }
    CU_ASSERT_EQUAL(publish(5), THOLE_LIMIT);
    CHECK_STR("why", err.text, "all 4 requests of the window are in flight");
    answer(replies[2]);
    answer(replies[0]);
    check_done("in the order of their answers", "3 stored 1 stored ");
    CU_ASSERT_EQUAL(publish(6), THOLE_OK);
    CU_ASSERT_EQUAL(requests_in_flight(play.requests), 3);
    answer(replies[3]);
    check_done("the youngest but one", "4 stored ");
    end();
    check_done("the oldest first", "2 unknown 6 unknown ");
    CU_ASSERT_EQUAL(requests_open(NULL, 0, 1, done, &play, &play.requests, &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(requests_open(NULL, 1, 0, done, &play, &play.requests, &err), THOLE_INVALID);
    requests_close(NULL);
}

static void test_no_answer_in_time(void)
{
    begin();
    CU_ASSERT_EQUAL(play.alarm_ms, 0); /* an idle window wakes nobody */
    CU_ASSERT_EQUAL(publish(1), THOLE_OK);
    CU_ASSERT_EQUAL(play.alarm_ms, 6000);
    nats.now_ms = 5400;
    CU_ASSERT_EQUAL(publish(2), THOLE_OK);
    CU_ASSERT_EQUAL(play.alarm_ms, 6000);
    fire_at(5999);
    check_done("too early", "");
    CU_ASSERT_EQUAL(play.alarm_ms, 6000);
    fire_at(6000);
    check_done("due", "1 unknown ");
    CU_ASSERT_EQUAL(play.alarm_ms, 6400);
    fire_at(9000);
    check_done("late", "2 unknown ");
    CU_ASSERT_EQUAL(play.alarm_ms, 0);
    CU_ASSERT_EQUAL(publish(3), THOLE_OK);
    CU_ASSERT_EQUAL(play.alarm_ms, 10000);
    end();
}

static void test_a_lost_connection(void)
{
    char old[64];
    begin();
    CU_ASSERT_EQUAL(publish(1), THOLE_OK);
    (void)snprintf(old, sizeof old, "%s", play.reply);
    CU_ASSERT_EQUAL(publish(2), THOLE_OK);
    lose();
    check_done("lost", "1 unknown 2 unknown ");
    CU_ASSERT_EQUAL(publish(3), THOLE_UNAVAILABLE);
    CHECK_STR("why", err.text, "publish to thole.x: not connected to NATS");
    nats.down = false; /* connected, and the window does not listen yet */
    CU_ASSERT_EQUAL(publish(4), THOLE_UNAVAILABLE);
    connect_again();
    CHECK_STR("listens anew", play.pattern, "_INBOX.2.*.*");
    CU_ASSERT_EQUAL(publish(5), THOLE_OK);
    CU_ASSERT_EQUAL(strncmp(play.reply, "_INBOX.2.", 9), 0);
    answer(old);
    check_done("of the last connection", "");
    answer(play.reply);
    check_done("of this one", "5 stored ");
    lose();
    play.no_listener = true;
    connect_again();
    CU_ASSERT_EQUAL(nats.broken, 1); /* a connection on which it is deaf is of no use */
    CU_ASSERT_EQUAL(publish(6), THOLE_UNAVAILABLE);
    CU_ASSERT_EQUAL(requests_in_flight(play.requests), 0);
    end();
}

static void test_what_cannot_be_sent(void)
{
    begin();
    play.unsent = true;
    for (uint64_t i = 1; i <= 2 * WINDOW; i++)
        CU_ASSERT_EQUAL(publish(i), THOLE_UNAVAILABLE); /* no slot is lost */
    CHECK_STR("why", err.text, "the pipe is broken");
    CU_ASSERT_EQUAL(requests_in_flight(play.requests), 0);
    check_done("told by the status", "");
    play.unsent = false;
    play.cut = true; /* may have arrived: only the lost connection can answer it */
    CU_ASSERT_EQUAL(publish(9), THOLE_OK);
    lose();
    check_done("in part", "9 unknown ");
    end();
}

/* ---- reads ---- */

static void test_few_reads_are_with_the_server(void)
{
    char first[64];
    begin_with_reads(4);
    (void)snprintf(first, sizeof first, "%s", play.reply);
    CU_ASSERT_EQUAL(requests_send(play.requests, "$JS.API.STREAM.MSG.GET.S", THOLE_STR("h"), 31, &err),
                    THOLE_OK);
    CU_ASSERT_EQUAL(requests_get(play.requests, "$JS.API.DIRECT.GET.S", THOLE_STR("d"), 32, &err), THOLE_OK);
    CU_ASSERT_EQUAL(play.sent, INFLOW_READS); /* they wait, others do not */
    CU_ASSERT_EQUAL(publish(33), THOLE_OK);
    CU_ASSERT_EQUAL(requests_send(play.requests, "$JS.API.STREAM.INFO.S", THOLE_STR("i"), 34, &err),
                    THOLE_OK);
    CU_ASSERT_EQUAL(play.sent, INFLOW_READS + 2);
    CU_ASSERT_EQUAL(publish(35), THOLE_LIMIT); /* those that wait count */
    nats.now_ms = 5900;
    answer(first);
    check_done("one is answered", "16 answered ");
    CHECK_STR("the next one's subject", play.subject, "$JS.API.STREAM.MSG.GET.S");
    CHECK_STR("the next one's body", play.body, "h");
    answer(play.reply);
    check_done("it", "31 answered ");
    CHECK_STR("a direct get", play.subject, "$JS.API.DIRECT.GET.S");
    answer_with(play.reply, "404", "");
    check_done("answered as such", "32 answered ");
    CU_ASSERT_EQUAL(requests_send(play.requests, "$JS.API.STREAM.MSG.GET.S", THOLE_STR("j"), 36, &err),
                    THOLE_OK);
    CHECK_STR("at once", play.body, "j");
    end();
    play.done_len = 0;
}

/* A read's time begins when it is sent. */
static void test_reads_that_wait_and_time(void)
{
    begin_with_reads(2);
    nats.now_ms = 5999;
    CU_ASSERT_EQUAL(requests_send(play.requests, "$JS.API.STREAM.MSG.GET.S", THOLE_STR("h"), 31, &err),
                    THOLE_OK);
    fire_at(6000);
    CU_ASSERT_EQUAL(play.done_len, INFLOW_READS);
    play.done_len = 0;
    CHECK_STR("its turn", play.body, "h");
    CU_ASSERT_EQUAL(play.alarm_ms, 7000);
    fire_at(7000);
    check_done("no answer", "31 unknown ");
    end();
}

/* Others are always before it: who asked may have gone long ago. */
static void test_reads_that_wait_for_ever(void)
{
    uint64_t token = 100;
    begin_with_reads(INFLOW_READS + 2);
    CU_ASSERT_EQUAL(requests_in_flight(play.requests), INFLOW_READS);
    for (size_t i = 0; i <= INFLOW_READS; i++)
        CU_ASSERT_EQUAL(
            requests_send(play.requests, "$JS.API.STREAM.MSG.GET.S", THOLE_STR("h"), token++, &err),
            THOLE_OK);
    CU_ASSERT_EQUAL(requests_in_flight(play.requests), 2 * INFLOW_READS + 1);
    nats.now_ms = 5000 + 4 * TIMEOUT_MS - 1;
    fire_at(nats.now_ms);
    CU_ASSERT_EQUAL(play.done_len, INFLOW_READS); /* the first ones; the next are sent */
    CU_ASSERT_EQUAL(requests_in_flight(play.requests), INFLOW_READS + 1);
    play.done_len = 0;
    fire_at(5000 + 4 * TIMEOUT_MS);
    check_done("the last one has waited for four timeouts", "116 unknown ");
    end();
    play.done_len = 0;
}

/* Also one that a callback sends, and one while the place of one that was answered is free. */
static void test_reads_that_come_later_wait_behind(void)
{
    begin_with_reads(4);
    for (uint64_t token = 31; token < 33; token++)
        CU_ASSERT_EQUAL(requests_send(play.requests, "$JS.API.STREAM.MSG.GET.S",
                                      token == 31 ? THOLE_STR("held") : THOLE_STR("held behind"), token,
                                      &err),
                        THOLE_OK);
    play.send_in_done = "from the callback";
    answer(play.reply);
    check_done("one is answered", "16 answered ");
    CHECK_STR("the first that waits", play.body, "held");
    answer(play.reply);
    CHECK_STR("the next", play.body, "held behind");
    answer(play.reply);
    CHECK_STR("the one that came later", play.body, "from the callback");
    end();
    play.done_len = 0;
}

static void test_reads_that_wait_and_a_lost_connection(void)
{
    begin_with_reads(2);
    CU_ASSERT_EQUAL(requests_send(play.requests, "$JS.API.STREAM.MSG.GET.S", THOLE_STR("h"), 31, &err),
                    THOLE_OK);
    lose();
    CU_ASSERT_EQUAL(play.done_len, INFLOW_READS + 1);
    CU_ASSERT_EQUAL(play.done[INFLOW_READS].token, 31);
    CU_ASSERT_EQUAL(play.done[INFLOW_READS].result, REQUEST_UNKNOWN);
    CU_ASSERT_EQUAL(play.sent, INFLOW_READS);
    play.done_len = 0;
    end();
    begin_with_reads(2);
    char last[64];
    (void)snprintf(last, sizeof last, "%s", play.reply);
    CU_ASSERT_EQUAL(requests_send(play.requests, "$JS.API.STREAM.MSG.GET.S", THOLE_STR("h"), 31, &err),
                    THOLE_OK);
    play.unsent = true; /* the turn comes, and sending fails */
    answer(last);
    check_done("answered all the same", "16 answered 31 unknown ");
    end();
    CU_ASSERT_EQUAL(play.done_len, INFLOW_READS - 1);
    begin_with_reads(2);
    CU_ASSERT_EQUAL(requests_send(play.requests, "$JS.API.STREAM.MSG.GET.S", THOLE_STR("h"), 31, &err),
                    THOLE_OK);
    end(); /* closed meanwhile */
    CU_ASSERT_EQUAL(play.done_len, INFLOW_READS + 1);
}

static const struct thole_test tests[] = {
    {"what is sent", test_what_is_sent},
    {"what an answer means", test_what_an_answer_means},
    {"an only one without responders", test_an_only_one_without_responders},
    {"some without responders", test_some_without_responders},
    {"sent after a refusal", test_sent_after_a_refusal},
    {"refusals and time", test_refusals_and_time},
    {"a refusal of an earlier epoch", test_a_refusal_of_an_earlier_epoch},
    {"what a direct get answers", test_what_a_direct_get_answers},
    {"whose answer it is", test_whose_answer_it_is},
    {"a full window", test_a_full_window},
    {"no answer in time", test_no_answer_in_time},
    {"a lost connection", test_a_lost_connection},
    {"what cannot be sent", test_what_cannot_be_sent},
    {"few reads are with the server", test_few_reads_are_with_the_server},
    {"reads that wait, and time", test_reads_that_wait_and_time},
    {"reads that wait for ever", test_reads_that_wait_for_ever},
    {"reads that come later wait behind", test_reads_that_come_later_wait_behind},
    {"reads that wait, and a lost connection", test_reads_that_wait_and_a_lost_connection},
};
THOLE_TEST_MAIN("requests", tests)
