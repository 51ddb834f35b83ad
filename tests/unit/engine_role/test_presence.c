/* Engines that ask each other: what an answer may look like, what is asked and answered, and which answers
 * count. NATS is played. */
#include "presence.h"
#include "thole_cunit.h"
#include "wrap_link.h"
#include "wrap_mutexes.h"
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define NUMBER "0123456789abcdef0123456789abcdef"
#define HASH "fedcba9876543210fedcba9876543210"

static bool parses(const char *text)
{
    thole_slice number = {NULL, 0}, hash = {NULL, 0};
    bool const good = presence_parse(thole_slice_from(text), &number, &hash);
    if (good)
        CU_ASSERT_EQUAL(number.len + 1 + hash.len, strlen(text));
    return good;
}

static void test_answers(void)
{
    thole_slice number, hash;
    CU_ASSERT_TRUE_FATAL(presence_parse(THOLE_STR(NUMBER " " HASH), &number, &hash));
    CU_ASSERT_TRUE(thole_slice_equal(number, THOLE_STR(NUMBER)));
    CU_ASSERT_TRUE(thole_slice_equal(hash, THOLE_STR(HASH)));
    CU_ASSERT_TRUE(parses(NUMBER " 1"));
    CU_ASSERT_TRUE(parses(NUMBER " " HASH HASH));
}

static void test_what_is_no_answer(void)
{
    static const char *const others[] = {
        "",
        " ",
        NUMBER,
        NUMBER " ",
        NUMBER "  ",
        NUMBER "1 " HASH,
        NUMBER " " HASH " ",
        NUMBER " " HASH HASH "1",
        NUMBER "\n" HASH,
        NUMBER " a\x01",
        NUMBER " \x80",
        "0123 " NUMBER NUMBER,
        HASH "-" NUMBER,
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        CU_ASSERT_FALSE(parses(others[i]));
}

/* ---- asking and answering ---- */

static struct {
    struct presence *presence;
    struct {
        char subject[200];
        delivery_fn *fn;
        void *arg;
    } subscribed[8];
    size_t subscribed_len, closed, refused;
    char published[400], sent[400]; /* SUBJECT REPLY: BODY */
    char heard[200];                /* NODE:HASH, each followed by a space */
    size_t messages;                /* made and not freed */
    bool no_random;
    uint8_t random; /* all bytes that the system gives */
} play;

static void say(char *to, size_t cap, const char *subject, const char *reply, thole_slice body)
{
    (void)snprintf(to, cap, "%s %s: %.*s", subject, reply == NULL ? "-" : reply, THOLE_FMT(body));
}

void __wrap_connection_inbox(struct connection *connection, char ret[LINK_INBOX_BYTES])
{
    (void)connection;
    (void)snprintf(ret, LINK_INBOX_BYTES, "_INBOX.me");
}

thole_status __wrap_connection_subscribe(struct connection *connection, const char *subject, delivery_fn *fn,
                                         void *arg, struct subscription **ret, thole_error *reterr)
{
    size_t const n = play.subscribed_len++;
    (void)connection;
    if (play.subscribed_len == play.refused)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no subscription");
    (void)snprintf(play.subscribed[n].subject, sizeof play.subscribed[n].subject, "%s", subject);
    play.subscribed[n].fn = fn;
    play.subscribed[n].arg = arg;
    *ret = (struct subscription *)&play.subscribed[n];
    return THOLE_OK;
}

void __wrap_subscription_close(struct subscription *subscription)
{
    play.closed += subscription != NULL;
}

thole_status __wrap_connection_publish(struct connection *connection, const char *subject,
                                       const struct header *headers, size_t headers_len, thole_slice body,
                                       thole_error *reterr)
{
    (void)connection, (void)headers, (void)reterr;
    CU_ASSERT_EQUAL(headers_len, 0);
    say(play.published, sizeof play.published, subject, NULL, body);
    return THOLE_UNAVAILABLE; /* nobody is told */
}

thole_status __wrap_link_message(const char *subject, const char *reply, const struct header *headers,
                                 size_t headers_len, thole_slice body, natsMsg **ret, thole_error *reterr)
{
    (void)headers, (void)reterr;
    CU_ASSERT_EQUAL(headers_len, 0);
    say(play.sent, sizeof play.sent, subject, reply, body);
    play.messages++;
    *ret = (natsMsg *)&play;
    return THOLE_OK;
}

void __wrap_link_message_free(natsMsg *message)
{
    CU_ASSERT_PTR_EQUAL(message, (natsMsg *)&play);
    play.messages--;
}

thole_status __wrap_link_send(struct link *link, natsMsg *message, bool *ret_sent, thole_error *reterr)
{
    (void)message, (void)reterr;
    CU_ASSERT_PTR_EQUAL(link, &nats.link);
    *ret_sent = true;
    return THOLE_OK;
}

ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags)
{
    (void)flags;
    memset(to, play.random, len);
    return play.no_random ? -1 : (ssize_t)len;
}

static void on_presence(void *arg, thole_slice node, thole_slice hash)
{
    size_t const len = strlen(play.heard);
    CU_ASSERT_PTR_EQUAL(arg, &play);
    (void)snprintf(play.heard + len, sizeof play.heard - len, "%.*s:%.*s ", THOLE_FMT(node), THOLE_FMT(hash));
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    played_nats_begin();
    nats.now_ms = 5000;
    play.random = 0xa1;
    CU_ASSERT_EQUAL_FATAL(presence_open(NULL, "shop", "me", on_presence, &play, &play.presence, NULL),
                          THOLE_OK);
}

static void end(size_t subscriptions)
{
    presence_close(play.presence);
    CU_ASSERT_EQUAL(play.closed, subscriptions);
    CU_ASSERT_EQUAL(play.messages, 0);
    CU_ASSERT_EQUAL(nats.acquired, 0);
}

static void deliver(size_t to, const char *subject, const char *reply, const char *body)
{
    struct delivery const delivery = {.subject = thole_slice_from(subject),
                                      .reply = thole_slice_from(reply),
                                      .body = thole_slice_from(body)};
    play.subscribed[to].fn(play.subscribed[to].arg, &delivery);
}

static void test_questions_are_answered(void)
{
    static const struct {
        const char *reply, *body, *published;
    } rows[] = {{"_INBOX.x", NUMBER, "_INBOX.x -: " NUMBER " " HASH},
                {"_INBOX.x", "123", ""},
                {"_INBOX.x", NUMBER "1", ""},
                {"", NUMBER, ""},
                {"$JS.API.STREAM.DELETE.x", NUMBER, ""}};
    begin();
    CU_ASSERT_EQUAL(play.subscribed_len, 0);
    CU_ASSERT_EQUAL(presence_answer(play.presence, NULL), THOLE_OK);
    CHECK_STR("questions come to", play.subscribed[0].subject, "thole.shop.engines.me");
    presence_stand_by(play.presence, HASH);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        play.published[0] = '\0';
        deliver(0, "thole.shop.engines.me", rows[i].reply, rows[i].body);
        CHECK_STR(rows[i].reply, play.published, rows[i].published);
    }
    presence_stand_by(play.presence, HASH HASH); /* the longest */
    deliver(0, "thole.shop.engines.me", "_INBOX.x", NUMBER);
    CHECK_STR("long", play.published, "_INBOX.x -: " NUMBER " " HASH HASH);
    presence_quiet(play.presence);
    CU_ASSERT_EQUAL(play.closed, 1);
    presence_quiet(play.presence);
    end(1);
}

#define A1 "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"
#define A2 "a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2"
#define A3 "a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3a3"

static void ask(const char *node, uint64_t now_ms)
{
    nats.now_ms = now_ms;
    CU_ASSERT_EQUAL(presence_ask(play.presence, thole_slice_from(node), NULL), THOLE_OK);
}

static void ask_at(uint64_t now_ms, uint8_t random, const char *number)
{
    char want[200];
    play.random = random;
    ask("b", now_ms);
    (void)snprintf(want, sizeof want, "thole.shop.engines.b _INBOX.me.b: %s", number);
    CHECK_STR("asked", play.sent, want);
}

static void check_heard(size_t from, const char *body, const char *want)
{
    play.heard[0] = '\0';
    deliver(from, "_INBOX.me.x", "", body);
    CHECK_STR(body, play.heard, want);
}

/* A number is good for a second, and its answers until the next but one is made. */
static void test_numbers(void)
{
    begin();
    ask_at(5000, 0xa1, A1);
    check_heard(0, A1 " h", "b:h ");
    check_heard(0, A2 " h", "");
    ask_at(5999, 0xa2, A1);
    ask_at(6000, 0xa2, A2);
    check_heard(0, A1 " h", "b:h ");
    check_heard(0, A2 " h", "b:h ");
    ask_at(7000, 0xa3, A3);
    check_heard(0, A1 " h", "");
    check_heard(0, A2 " h", "b:h ");
    check_heard(0, A3 " h", "b:h ");
    end(1);
}

/* Each node's answers have a subscription of their own, which shows whose subject has no subscriber. */
static void test_whose_answers(void)
{
    struct delivery const nobody = {.no_responders = true};
    begin();
    ask("b", 5000);
    ask("c", 5000);
    CHECK_STR("answers of b", play.subscribed[0].subject, "_INBOX.me.b");
    CHECK_STR("answers of c", play.subscribed[1].subject, "_INBOX.me.c");
    check_heard(0, A1 " h", "b:h ");
    check_heard(1, A1 " h", "c:h ");
    check_heard(0, A1, "");
    check_heard(0, "", "");
    play.heard[0] = '\0';
    play.subscribed[1].fn(play.subscribed[1].arg, &nobody);
    CHECK_STR("nobody", play.heard, "c: ");
    end(2);
}

/* Nodes come and go, and each has another name. */
static void test_who_is_not_asked_any_more(void)
{
    begin();
    ask("b", 5000);
    ask("c", 5000);
    ask("c", 64999);
    CU_ASSERT_EQUAL(play.closed, 0);
    ask("c", 65000);
    CU_ASSERT_EQUAL(play.closed, 1);
    ask("b", 65000);
    CU_ASSERT_EQUAL(play.subscribed_len, 3);
    CHECK_STR("again", play.subscribed[2].subject, "_INBOX.me.b");
    end(3);
}

static void test_what_fails(void)
{
    thole_error err = {0};
    begin();
    CU_ASSERT_EQUAL(presence_ask(play.presence, THOLE_STR("a b"), &err), THOLE_INVALID);
    play.no_random = true;
    CU_ASSERT_EQUAL(presence_ask(play.presence, THOLE_STR("b"), &err), THOLE_UNSUPPORTED);
    CHECK_STR("no number", err.text, "the system gives no random numbers");
    CHECK_STR("sent", play.sent, "");
    play.no_random = false;
    nats.down = true;
    CU_ASSERT_EQUAL(presence_ask(play.presence, THOLE_STR("b"), &err), THOLE_UNAVAILABLE);
    CHECK_STR("no connection", err.text, "asking the engines: not connected to NATS");
    play.refused = 2;
    CU_ASSERT_EQUAL(presence_answer(play.presence, &err), THOLE_UNAVAILABLE);
    play.refused = 3;
    CU_ASSERT_EQUAL(presence_ask(play.presence, THOLE_STR("c"), &err), THOLE_UNAVAILABLE);
    CHECK_STR("no subscription", err.text, "no subscription");
    end(1);
    memset(&play, 0, sizeof play);
    CU_ASSERT_EQUAL(presence_open(NULL, "a b", "me", on_presence, &play, &play.presence, &err),
                    THOLE_INVALID);
    CU_ASSERT_EQUAL(presence_open(NULL, "shop", "a.b", on_presence, &play, &play.presence, &err),
                    THOLE_INVALID);
    CU_ASSERT_EQUAL(play.subscribed_len, 0);
    presence_close(NULL);
}

static const struct thole_test tests[] = {{"answers", test_answers},
                                          {"what is no answer", test_what_is_no_answer},
                                          {"questions are answered", test_questions_are_answered},
                                          {"numbers", test_numbers},
                                          {"whose answers", test_whose_answers},
                                          {"who is not asked any more", test_who_is_not_asked_any_more},
                                          {"what fails", test_what_fails}};
THOLE_TEST_MAIN("presence", tests)
