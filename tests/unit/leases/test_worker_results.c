/* What of a handler's result goes to the inbox, and what the loop learns of its publish, which is played. */
#include "said.h"
#include "thole_cunit.h"
#include "worker_parts.h"
#include <inttypes.h>
#include <stdlib.h>

enum { PAYLOAD_MAX = 100, SERVER_MAX = 1 << 20 };

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
    return SERVER_MAX;
}

void __wrap_work_message_destroy(struct work_message *message)
{
    CU_ASSERT_PTR_EQUAL(message, &play.message);
}

thole_status __wrap_requests_publish(struct requests *requests, const struct publish *publish, uint64_t token,
                                     thole_error *reterr)
{
    struct arena arena;
    struct message message;
    (void)requests;
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
        worker_result_publish(&play.host, play.act);
        CU_ASSERT_EQUAL(play.sent, 1);
        CHECK_STR("subject", play.subject, "thole.shop.in.5.result.worker.order");
        CU_ASSERT_EQUAL(play.details, rows[i].details);
        CU_ASSERT_EQUAL(play.data == 0, rows[i].full);
        CU_ASSERT_TRUE(play.details + play.data <= PAYLOAD_MAX);
        CU_ASSERT_PTR_NULL(mailbox_take_all(&play.host.inbox)); /* the answer comes from the server */
        end();
    }
}

/* Who it is of, who has run it, and what shows that: the engine refuses a result that lacks any of it. */
static void test_the_message(void)
{
#define OF "order 2.9.3 attempt 4 by w-1, nonce 00112233445566778899aabbccddeeff: "
    begin();
    play.act->attempt = 4;
    play.act->status = THOLE_OK;
    play.act->output = THOLE_STR("paid");
    worker_result_publish(&play.host, play.act);
    said_check(&play.said, "it returned", OF "OK \"paid\" ()");
    play.act->output = (thole_slice){NULL, 0};
    play.act->status = THOLE_APP;
    play.act->failure = THOLE_STR("no money");
    play.act->failure_type = THOLE_STR("card");
    worker_result_publish(&play.host, play.act);
    said_check(&play.said, "it failed", OF "APP \"no money\" (card)");
    play.act->final = true;
    worker_result_publish(&play.host, play.act);
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

/* What cannot be sent is answered as well, whatever was said of it before. */
static void test_what_the_loop_learns(void)
{
    begin();
    struct request_done done = {.result = REQUEST_STORED, .token = (uintptr_t)play.act};
    worker_result_done(&play.host, &done);
    check_told(true, 0);
    play.sends = THOLE_UNAVAILABLE;
    worker_result_publish(&play.host, play.act);
    check_told(false, 0);
    done = (struct request_done){.result = REQUEST_FAILED, .err_code = 10077, .token = (uintptr_t)play.act};
    worker_result_done(&play.host, &done);
    check_told(false, 10077);
    worker_result_publish(&play.host, play.act);
    check_told(false, 0);
    end();
}

static const struct thole_test tests[] = {
    {"details", test_details},
    {"the message", test_the_message},
    {"what the loop learns", test_what_the_loop_learns},
};
THOLE_TEST_MAIN("worker_results", tests)
