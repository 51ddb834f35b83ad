/* The message of a handler's result to the inbox, results that go together, and the loop's view of their
 * publish, which is played. */
#include "result_list.h"
#include "said.h"
#include "subject.h"
#include "thole_cunit.h"
#include "worker_parts.h"
#include <inttypes.h>
#include <stdlib.h>

enum { PAYLOAD_MAX = 100, SERVER_MAX = 1 << 20 };

/* Of several handlers: number i of them is for the instance i. */
static struct {
    struct work_message messages[WORKER_CLAIM_MAX];
    struct thole_activity *acts[WORKER_CLAIM_MAX];
    char ids[WORKER_CLAIM_MAX][8];
    size_t len, refused_from; /* as many messages are sent before one is refused; 0: all are */
    uint64_t tokens[WORKER_CLAIM_MAX];
    size_t sent, bytes[WORKER_CLAIM_MAX], server_max;
} many;

static struct {
    struct worker_host host;
    struct work_message message;
    struct thole_activity *act;
    thole_status sends;
    unsigned sent;
    size_t details, data;
    char subject[64];
    struct said said; /* the message */
} play;

size_t __wrap_connection_max_payload(const struct connection *connection)
{
    (void)connection;
    return many.server_max == 0 ? SERVER_MAX : many.server_max;
}

void __wrap_work_message_destroy(struct work_message *message)
{
    CU_ASSERT(message == &play.message ||
              (message >= many.messages && message < many.messages + ARRAY_LEN(many.messages)));
}

/* "5+ 0 2": a list of partition 5, with the results for these instances; "5 1": one alone. */
static void say_results(const struct publish *publish)
{
    thole_slice const subject = thole_slice_from(publish->subject);
    struct result_list list;
    struct result_item item;
    struct arena arena;
    struct message message;
    size_t len = 1;
    bool const several = subject_is_results(subject);
    said_add(&play.said, "%s%.*s%s", many.sent > 0 ? ", " : "", THOLE_FMT(subject_nth(subject, 3)),
             several ? "+" : "");
    if (several) {
        CU_ASSERT_EQUAL_FATAL(result_list_read(publish->body, &list, &len, NULL), THOLE_OK);
        CU_ASSERT_TRUE(len > 1);
    }
    for (; len > 0; len--) {
        item.bytes = publish->body;
        CU_ASSERT_TRUE_FATAL(!several || result_list_next(&list, &item));
        arena_init(&arena, 1 << 20);
        CU_ASSERT_EQUAL_FATAL(message_decode(item.bytes, &arena, &message, NULL), THOLE_OK);
        CU_ASSERT_EQUAL(message.kind, MESSAGE_ACTIVITY_RESULT);
        CU_ASSERT_TRUE(several || thole_slice_equal(subject_nth(subject, 6), message.instance));
        said_add(&play.said, " %.*s", THOLE_FMT(message.instance));
        arena_release(&arena);
    }
}

static thole_status publish_of_many(const struct publish *publish, uint64_t token, thole_error *reterr)
{
    if (many.refused_from > 0 && many.sent + 1 >= many.refused_from)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "not sent");
    say_results(publish);
    many.bytes[many.sent] = publish->body.len;
    many.tokens[many.sent++] = token;
    return THOLE_OK;
}

thole_status __wrap_requests_publish(struct requests *requests, const struct publish *publish, uint64_t token,
                                     thole_error *reterr)
{
    struct arena arena;
    struct message message;
    (void)requests;
    if (many.len > 0)
        return publish_of_many(publish, token, reterr);
    if (play.sends != THOLE_OK)
        return thole_fail(reterr, play.sends, "not sent");
    CU_ASSERT_EQUAL(token, (uintptr_t)play.act);
    arena_init(&arena, 1 << 20);
    CU_ASSERT_EQUAL_FATAL(message_decode(publish->body, &arena, &message, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(message.kind, MESSAGE_ACTIVITY_RESULT);
    CU_ASSERT_EQUAL(message.task, 9);
    said_add(&play.said,
             "%.*s %" PRIu64 ".%" PRIu64 ".%u attempt %" PRIu64 " by %.*s, nonce %.*s: %s \"%.*s\" (%.*s)%s",
             THOLE_FMT(message.instance), message.execution, message.task, (unsigned)message.try_number,
             message.source.place.attempt, THOLE_FMT(message.source.place.worker), THOLE_FMT(message.nonce),
             thole_status_name((thole_status)message.status), THOLE_FMT(message.data),
             THOLE_FMT(message.error_type), message.final ? ", final" : "");
    play.sent++;
    play.details = message.details.len;
    play.data = message.data.len;
    (void)snprintf(play.subject, sizeof play.subject, "%s", publish->subject);
    arena_release(&arena);
    return THOLE_OK;
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    play.host.options.ns = "shop";
    play.host.options.payload_max = PAYLOAD_MAX;
    play.host.incarnation_slice = THOLE_STR("w-1");
    mailbox_init(&play.host.inbox);
    play.message.item = (struct work_item){.queue = THOLE_STR("q"),
                                           .instance = THOLE_STR("order"),
                                           .activity = THOLE_STR("charge"),
                                           .nonce = THOLE_STR("00112233445566778899aabbccddeeff"),
                                           .execution = 2,
                                           .activity_id = 9,
                                           .try_number = 3};
    play.act = activity_create(&play.message, 1000);
    play.act->partition = 5;
}

static void end(void)
{
    activity_destroy(play.act);
    mailbox_release(&play.host.inbox);
}

static void publish(void)
{
    uint64_t const id = (uintptr_t)play.act;
    worker_results_publish(&play.host, &id, 1);
}

/* The next try gets the details if they fit; the text of the failure has what is left. */
static void test_details(void)
{
    static const uint8_t bytes[PAYLOAD_MAX + 1];
    static const struct {
        size_t before, details;
        bool full; /* the text has no room */
    } rows[] = {
        {0, 0, false}, {10, 10, false}, {PAYLOAD_MAX, PAYLOAD_MAX, true}, {PAYLOAD_MAX + 1, 0, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        play.act->timed_out = true;
        play.act->before = (thole_slice){bytes, rows[i].before};
        publish();
        CU_ASSERT_EQUAL(play.sent, 1);
        CHECK_STR("subject", play.subject, "thole.shop.in.5.result.worker.order");
        CU_ASSERT_EQUAL(play.details, rows[i].details);
        CU_ASSERT_EQUAL(play.data == 0, rows[i].full);
        CU_ASSERT_TRUE(play.details + play.data <= PAYLOAD_MAX);
        CU_ASSERT_PTR_NULL(mailbox_take_all(&play.host.inbox)); /* the answer comes from the server */
        end();
    }
}

/* The activity, the worker that has run it, and the proof of that: the engine refuses a result that lacks any
 * of it. */
static void test_the_message(void)
{
#define OF "order 2.9.3 attempt 4 by w-1, nonce 00112233445566778899aabbccddeeff: "
    begin();
    play.act->attempt = 4;
    play.act->status = THOLE_OK;
    play.act->output = THOLE_STR("paid");
    publish();
    said_check(&play.said, "it returned", OF "OK \"paid\" ()");
    play.act->output = (thole_slice){NULL, 0};
    play.act->status = THOLE_APP;
    play.act->failure = THOLE_STR("no money");
    play.act->failure_type = THOLE_STR("card");
    publish();
    said_check(&play.said, "it failed", OF "APP \"no money\" (card)");
    play.act->final = true;
    publish();
    said_check(&play.said, "for good", OF "APP \"no money\" (card), final");
    play.act->failure = play.act->failure_type = (thole_slice){NULL, 0};
    end();
}

static void check_told(bool ok, uint32_t err_code)
{
    const struct mail *const mail = mailbox_take_all(&play.host.inbox);
    CU_ASSERT_PTR_EQUAL_FATAL(mail, &play.act->published.mail);
    CU_ASSERT_PTR_NULL(mail->next);
    CU_ASSERT_EQUAL(play.act->published_ok, ok);
    CU_ASSERT_EQUAL(play.act->publish_err_code, err_code);
}

/* A result that cannot be sent is answered as well, whatever was said of it before. */
static void test_what_the_loop_learns(void)
{
    begin();
    struct request_done done = {.result = REQUEST_STORED, .token = (uintptr_t)play.act};
    worker_result_done(&play.host, &done);
    check_told(true, 0);
    play.sends = THOLE_UNAVAILABLE;
    publish();
    check_told(false, 0);
    done = (struct request_done){.result = REQUEST_FAILED, .err_code = 10077, .token = (uintptr_t)play.act};
    worker_result_done(&play.host, &done);
    check_told(false, 10077);
    publish();
    check_told(false, 0);
    end();
}

/* Each publish that is not stored, by what was answered, or why it could not be sent. */
static void test_what_fails_is_counted(void)
{
    struct metrics_options const options = {.roles = METRIC_WORKER};
    struct metrics *const metrics = metrics_create(&options);
    begin();
    nats_watch_begin(&play.host.nats, "worker", LOG_LEVEL_WARN, metrics);
    struct request_done done = {.result = REQUEST_STORED, .token = (uintptr_t)play.act};
    worker_result_done(&play.host, &done);
    check_told(true, 0);
    done = (struct request_done){.result = REQUEST_UNKNOWN, .token = (uintptr_t)play.act};
    worker_result_done(&play.host, &done);
    check_told(false, 0);
    play.sends = THOLE_UNAVAILABLE;
    publish();
    check_told(false, 0);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_NATS_ERRORS, NATS_ERRORS_UNANSWERED), 1);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_NATS_ERRORS, ERRORS_UNAVAILABLE), 1);
    nats_watch_end(&play.host.nats);
    metrics_destroy(metrics);
    memset(&play.host.nats, 0, sizeof play.host.nats);
    end();
}

/* ---- several handlers ---- */

/* Begins an activity for each word of @p text: its partition, followed by "l" when lists are taken, "a" when
 * it was in a list that could not be stored, "-" when none are taken. */
static void begin_many(const char *text, size_t payload_max)
{
    begin();
    memset(&many, 0, sizeof many);
    play.host.options.payload_max = payload_max;
    for (const char *at = text; *at != '\0'; at += at[2] == ' ' ? 3 : 2) {
        size_t const i = many.len++;
        (void)snprintf(many.ids[i], sizeof many.ids[i], "%zu", i);
        many.messages[i].item = play.message.item;
        many.messages[i].item.instance = thole_slice_from(many.ids[i]);
        many.messages[i].item.lists = at[1] != '-';
        many.acts[i] = activity_create(&many.messages[i], 1000);
        many.acts[i]->partition = (uint32_t)(at[0] - '0');
        many.acts[i]->publish_alone = at[1] == 'a';
        many.acts[i]->status = THOLE_OK;
    }
}

static void end_many(void)
{
    for (size_t i = 0; i < many.len; i++) {
        many.acts[i]->output = (thole_slice){NULL, 0};
        activity_destroy(many.acts[i]);
    }
    memset(&many, 0, sizeof many);
    end();
}

static void publish_many(void)
{
    uint64_t ids[WORKER_CLAIM_MAX];
    for (size_t i = 0; i < many.len; i++)
        ids[i] = (uintptr_t)many.acts[i];
    many.sent = 0;
    worker_results_publish(&play.host, ids, many.len);
}

static void answer_message(size_t i, enum request_result result, uint32_t err_code)
{
    worker_result_done(
        &play.host, &(struct request_done){.result = result, .err_code = err_code, .token = many.tokens[i]});
}

/* The answers about a publish, in order: "0 1! 2!7": 1 that it failed, 2 that it did with code 7. */
static void check_all_told(const char *row, const char *want)
{
    struct said told = {""};
    for (const struct mail *mail = mailbox_take_all(&play.host.inbox); mail != NULL; mail = mail->next)
        for (size_t i = 0; i < many.len; i++)
            if (mail == &many.acts[i]->published.mail) {
                said_add(&told, "%s%zu%s", told.text[0] == '\0' ? "" : " ", i,
                         many.acts[i]->published_ok ? "" : "!");
                if (many.acts[i]->publish_err_code != 0)
                    said_add(&told, "%u", many.acts[i]->publish_err_code);
            }
    said_check(&told, row, want);
}

static void test_which_go_together(void)
{
    static const struct {
        const char *row, *acts, *want;
    } rows[] = {
        {"none", "", ""},
        {"one", "5l", "5 0"},
        {"of one partition", "5l 5l 5l", "5+ 0 1 2"},
        {"of two partitions", "5l 6l 6l 5l 5l", "5+ 0 3 4, 6+ 1 2"},
        {"one of a partition", "5l 6l 5l 7l", "5+ 0 2, 6 1, 7 3"},
        {"an engine takes no lists", "5- 5- 6-", "5 0, 5 1, 6 2"},
        {"one came from such an engine", "5l 5l 5- 5l 5l", "5+ 0 1, 5 2, 5+ 3 4"},
        {"between others", "5l 5- 5l", "5 0, 5 1, 5 2"},
        {"one was in a list that failed", "5l 5l 5a 5l 5l", "5+ 0 1, 5 2, 5+ 3 4"},
        {"all were", "5a 6a 5a", "5 0, 5 2, 6 1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin_many(rows[i].acts, PAYLOAD_MAX);
        publish_many();
        said_check(&play.said, rows[i].row, rows[i].want);
        check_all_told("the server answers", "");
        end_many();
    }
}

static void give_outputs(const size_t *lens)
{
    static const uint8_t zeros[1 << 17];
    for (size_t i = 0; i < many.len; i++) {
        CU_ASSERT_TRUE_FATAL(lens[i] <= sizeof zeros);
        many.acts[i]->output = (thole_slice){zeros, lens[i]};
    }
}

/* At most 64 KiB of them; of a server that takes less, less. What is larger is alone. */
static void test_large_results(void)
{
    static const struct {
        const char *row;
        size_t server_max, lens[6];
        const char *want;
    } rows[] = {
        {"small ones", 0, {1, 2, 3, 4, 5, 6}, "5+ 0 1 2 3 4 5"},
        {"large ones", 0, {20000, 20000, 20000, 20000, 20000, 20000}, "5+ 0 1 2, 5+ 3 4 5"},
        {"one is alone", 0, {100000, 1, 2, 3, 4, 5}, "5 0, 5+ 1 2 3 4 5"},
        {"in the middle", 0, {1, 2, 100000, 3, 4, 5}, "5+ 0 1, 5 2, 5+ 3 4 5"},
        {"all are", 0, {40000, 40000, 40000, 40000, 40000, 40000}, "5 0, 5 1, 5 2, 5 3, 5 4, 5 5"},
        {"the last one", 0, {30000, 30000, 30000, 30000, 30000, 1}, "5+ 0 1, 5+ 2 3, 5+ 4 5"},
        {"a small server", 12288, {3000, 3000, 3000, 3000, 3000, 1}, "5+ 0 1, 5+ 2 3, 5+ 4 5"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin_many("5l 5l 5l 5l 5l 5l", SERVER_MAX);
        many.server_max = rows[i].server_max;
        give_outputs(rows[i].lens);
        publish_many();
        said_check(&play.said, rows[i].row, rows[i].want);
        end_many();
    }
}

/* Byte by byte: two are together as long as the message has at most 64 KiB, but for what is kept for its own
 * fields. */
static void test_as_large_as_a_list_may_be(void)
{
    enum { LIST_MAX = 64 * 1024, FROM = 33000, TO = 33500 };
    size_t together = 0, largest = 0;
    for (size_t len = FROM; len < TO; len++) {
        begin_many("5l 5l", SERVER_MAX);
        give_outputs((const size_t[]){32000, len});
        publish_many();
        together += many.sent == 1;
        CU_ASSERT_EQUAL(many.sent == 1, together == len - FROM + 1); /* once too large, always too large */
        if (many.sent == 1)
            largest = many.bytes[0];
        end_many();
    }
    CU_ASSERT(largest > LIST_MAX - RESULT_LIST_ROOM_BYTES && largest <= LIST_MAX);
}

/* No list has more than engines read, and a batch of completions has no more. */
static void test_many_results(void)
{
    char text[3 * WORKER_CLAIM_MAX + 1] = "";
    for (size_t i = 0; i < WORKER_CLAIM_MAX; i++)
        memcpy(&text[3 * i], "5l ", 4);
    begin_many(text, PAYLOAD_MAX);
    CU_ASSERT_EQUAL(many.len, WORKER_CLAIM_MAX);
    publish_many();
    CU_ASSERT_EQUAL(many.sent, 1);
    CU_ASSERT_TRUE(many.len <= RESULT_LIST_MAX);
    answer_message(0, REQUEST_STORED, 0);
    size_t told = 0;
    for (const struct mail *mail = mailbox_take_all(&play.host.inbox); mail != NULL; mail = mail->next)
        told += mail == &many.acts[told]->published.mail && many.acts[told]->published_ok;
    CU_ASSERT_EQUAL(told, many.len);
    said_clear(&play.said);
    end_many();
}

/* The answer is each one's; what a stream has refused together it is given one by one from then on. */
static void test_a_list_is_answered(void)
{
    begin_many("5l 6l 5l 6l 5l 7l", PAYLOAD_MAX);
    publish_many();
    said_check(&play.said, "at first", "5+ 0 2 4, 6+ 1 3, 7 5");
    answer_message(1, REQUEST_STORED, 0);
    check_all_told("stored", "1 3");
    answer_message(0, REQUEST_FAILED, 10077);
    check_all_told("refused", "0!10077 2!10077 4!10077");
    answer_message(2, REQUEST_FAILED, 10077);
    check_all_told("refused alone", "5!10077");
    publish_many();
    said_check(&play.said, "again", "5 0, 5 2, 5 4, 6+ 1 3, 7 5");
    answer_message(1, REQUEST_STORED, 0);
    check_all_told("alone", "2");
    answer_message(0, REQUEST_BUSY, 0);
    check_all_told("alone", "0!");
    answer_message(3, REQUEST_BUSY, 0);
    check_all_told("together", "1! 3!");
    publish_many();
    said_check(&play.said, "once more", "5 0, 5 2, 5 4, 6+ 1 3, 7 5");
    end_many();
}

/* No callback comes of what is not sent. */
static void test_lists_that_are_not_sent(void)
{
    begin_many("5l 6l 5l 7- 7-", PAYLOAD_MAX);
    many.refused_from = 1;
    publish_many();
    said_check(&play.said, "none", "");
    check_all_told("each", "0! 2! 1! 3! 4!");
    many.refused_from = 3;
    publish_many();
    said_check(&play.said, "two", "5+ 0 2, 6 1");
    check_all_told("the others", "3! 4!");
    answer_message(0, REQUEST_STORED, 0);
    answer_message(1, REQUEST_STORED, 0);
    check_all_told("these", "0 2 1");
    end_many();
}

static const struct thole_test tests[] = {
    {"details", test_details},
    {"the message", test_the_message},
    {"what the loop learns", test_what_the_loop_learns},
    {"what fails is counted", test_what_fails_is_counted},
    {"which go together", test_which_go_together},
    {"large results", test_large_results},
    {"as large as a list may be", test_as_large_as_a_list_may_be},
    {"many results", test_many_results},
    {"a list is answered", test_a_list_is_answered},
    {"lists that are not sent", test_lists_that_are_not_sent},
};
THOLE_TEST_MAIN("worker_results", tests)
