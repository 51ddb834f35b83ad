/* How many messages a worker asks a queue for: the connection, the clock and the server are the test's. */
#include "thole_cunit.h"
#include "work_message.h"
#include "wrap_link.h"
#include "wrap_mutexes.h"
#include <stdlib.h>

enum { EXPIRES_MS = 30000, SILENCE_MS = 11000, PULLS_MAX = 32, START_MS = 100000 };

static struct {
    struct puller *puller;
    struct attachment *attachment;
    listener_fn *fn;
    void *arg;
    uint64_t due_ms; /* the alarm; 0: none */
    unsigned pulls[PULLS_MAX];
    size_t pulls_len;
    unsigned given, bad, handed_back, destroyed, refused;
    const char *malformed; /* the flaw of the next message */
    size_t max_payload;
    unsigned long max_bytes; /* of the last pull */
    char log[64];
} play;

static void note(const char *text)
{
    (void)snprintf(play.log + strlen(play.log), sizeof play.log - strlen(play.log), "%s ", text);
}

/* ---- the connection ---- */

void __wrap_connection_attach(struct connection *connection, struct attachment *attachment)
{
    (void)connection;
    play.attachment = attachment;
}

void __wrap_connection_detach(struct connection *connection, struct attachment *attachment)
{
    (void)connection, (void)attachment;
    note("detach");
}

void __wrap_connection_alarm(struct connection *connection, struct attachment *attachment, uint64_t due_ms)
{
    (void)connection, (void)attachment;
    play.due_ms = due_ms;
}

void __wrap_connection_alarm_by(struct connection *connection, struct attachment *attachment, uint64_t due_ms)
{
    (void)connection, (void)attachment;
    if (play.due_ms == 0 || due_ms < play.due_ms)
        play.due_ms = due_ms;
}

void __wrap_connection_inbox(struct connection *connection, char ret[LINK_INBOX_BYTES])
{
    (void)connection;
    (void)snprintf(ret, LINK_INBOX_BYTES, "_INBOX.x");
}

thole_status __wrap_listener_open(struct link *link, const char *subject, const char *group, listener_fn *fn,
                                  void *arg, struct listener **ret, thole_error *reterr)
{
    (void)group;
    (void)link, (void)reterr;
    CHECK_STR("subject", subject, "_INBOX.x.*");
    play.fn = fn;
    play.arg = arg;
    *ret = NULL;
    return THOLE_OK;
}

void __wrap_listeners_replace(struct listeners *listeners, struct listener *listener)
{
    (void)listeners, (void)listener;
}

static void message_comes(uint64_t epoch);

void __wrap_listeners_drain(struct listeners *listeners, uint64_t wait_ms)
{
    (void)listeners, (void)wait_ms;
    note("drain");
    message_comes(nats.link.epoch); /* a message on its way */
}

void __wrap_listeners_close(struct listeners *listeners)
{
    (void)listeners;
    note("close");
}

size_t __wrap_connection_max_payload(const struct connection *connection)
{
    (void)connection;
    return play.max_payload;
}

void __wrap_link_hint(struct link *link, const char *subject, const char *reply, thole_slice body)
{
    unsigned batch = 0;
    const char *const bytes = strstr((const char *)body.ptr, "\"max_bytes\":");
    CU_ASSERT_PTR_EQUAL(link, &nats.link);
    CU_ASSERT_PTR_NOT_NULL(strstr(subject, "$JS.API.CONSUMER.MSG.NEXT."));
    CU_ASSERT_EQUAL(sscanf(reply, "_INBOX.x.%u", &batch), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr((const char *)body.ptr, "\"expires\":30000000000"));
    play.max_bytes = bytes == NULL ? 0 : strtoul(bytes + strlen("\"max_bytes\":"), NULL, 10);
    CU_ASSERT_FATAL(play.pulls_len < PULLS_MAX);
    play.pulls[play.pulls_len++] = batch;
}

/* ---- messages ---- */

struct work_message *__wrap_work_message_create(natsMsg *native, const struct work_names *names,
                                                const char **ret_bad)
{
    (void)names;
    struct work_message *const message = calloc(1, sizeof *message);
    message->native = native;
    *ret_bad = play.malformed;
    return message;
}

thole_status __wrap_work_message_signal(struct connection *connection, const struct work_message *message,
                                        enum work_signal signal, thole_error *reterr)
{
    (void)connection, (void)message, (void)reterr;
    CU_ASSERT_EQUAL(signal, WORK_NAK);
    play.handed_back++;
    return THOLE_OK;
}

static void not_lost(struct work_message *message)
{
    natsMsg_Destroy(message->native);
    free(message);
}

void __wrap_work_message_destroy(struct work_message *message)
{
    play.destroyed++;
    not_lost(message);
}

static void on_work(void *arg, struct work_message *message)
{
    (void)arg;
    play.given++;
    not_lost(message);
}

static void on_bad(void *arg, struct work_message *message, const char *text)
{
    (void)arg;
    CHECK_STR("text", text, "it is malformed");
    play.bad++;
    not_lost(message);
}

static void on_refused(void *arg)
{
    (void)arg;
    play.refused++;
}

static void comes(natsMsg *message, uint64_t epoch)
{
    play.fn(play.arg, &message, epoch);
    natsMsg_Destroy(message);
}

static void message_comes(uint64_t epoch)
{
    natsMsg *message = NULL;
    CU_ASSERT_EQUAL_FATAL(natsMsg_Create(&message, "thole.w", "$JS.ACK.1", "x", 1), NATS_OK);
    comes(message, epoch);
}

/* @p left: the rest of the request; NULL: no header. @p subject: after the inbox. */
static void status_comes(const char *status, const char *left, const char *subject)
{
    natsMsg *message = NULL;
    const char *const text = strchr(status, ' '); /* the meaning, if there is one */
    char full[64];
    (void)snprintf(full, sizeof full, "_INBOX.x.%s", subject);
    CU_ASSERT_EQUAL_FATAL(natsMsg_Create(&message, full, NULL, NULL, 0), NATS_OK);
    CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Status", status), NATS_OK);
    if (text != NULL)
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Description", text + 1), NATS_OK);
    if (left != NULL)
        CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Nats-Pending-Messages", left), NATS_OK);
    comes(message, nats.link.epoch);
}

static void link_comes_up(void)
{
    nats.down = false;
    nats.link.epoch++;
    play.attachment->up(play.attachment->arg, &nats.link);
}

static void begin(uint32_t wanted)
{
    memset(&play, 0, sizeof play);
    played_nats_begin();
    nats.down = true;
    nats.now_ms = START_MS;
    CU_ASSERT_EQUAL_FATAL(
        puller_open(NULL, "test", THOLE_STR("q"), on_work, on_bad, on_refused, NULL, &play.puller, NULL),
        THOLE_OK);
    link_comes_up();
    puller_want(play.puller, wanted);
}

static void end(void)
{
    puller_close(play.puller);
    CU_ASSERT_EQUAL(nats.acquired, 0);
}

/* The pulls so far, the last one's size. */
static void check_pulls(const char *name, size_t n, unsigned last)
{
    char got[64], want[64];
    (void)snprintf(got, sizeof got, "%zu pulls, the last of %u", play.pulls_len,
                   play.pulls_len == 0 ? 0 : play.pulls[play.pulls_len - 1]);
    (void)snprintf(want, sizeof want, "%zu pulls, the last of %u", n, last);
    CHECK_STR(name, got, want);
}

static void fire_at(uint64_t now_ms)
{
    nats.now_ms = now_ms;
    play.due_ms = 0;
    play.attachment->fire(play.attachment->arg);
}

/* ---- tests ---- */

static void test_how_many_are_asked_for(void)
{
    begin(0);
    check_pulls("nothing is wanted", 0, 0);
    puller_want(play.puller, 10);
    check_pulls("all", 1, 10);
    puller_want(play.puller, 13);
    check_pulls("less than half is missing", 1, 10);
    puller_want(play.puller, 20);
    check_pulls("half is missing", 2, 10);
    puller_want(play.puller, 5000);
    check_pulls("no more than the server takes", 3, 1000);
    end();
}

static void test_the_end_of_a_request(void)
{
    static const struct {
        const char *name, *left, *subject;
        unsigned given; /* messages before */
        size_t pulls;
        unsigned last;
    } rows[] = {{"nothing came", "10", "10", 0, 2, 10},
                {"some came", "4", "10", 6, 2, 4},
                {"an old server: its subject says how many there were", NULL, "10", 0, 2, 10},
                {"of another request, which was of less", "2", "2", 0, 1, 10},
                {"nobody says", NULL, "x", 0, 1, 10},
                {"no number", "-1", "x", 0, 1, 10},
                {"more than was asked for", "99", "10", 0, 2, 10}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin(10);
        for (unsigned k = 0; k < rows[i].given; k++)
            message_comes(nats.link.epoch);
        CU_ASSERT_EQUAL(play.given, rows[i].given);
        check_pulls("before", 1, 10);
        status_comes("408", rows[i].left, rows[i].subject);
        check_pulls(rows[i].name, rows[i].pulls, rows[i].last);
        CU_ASSERT_EQUAL(play.refused, 0);
        end();
    }
}

/* As many messages as were asked for may be more than the server can keep for one connection. */
static void test_bytes(void)
{
    enum { MIB = 1024 * 1024 };
    begin(0);
    play.max_payload = MIB;
    puller_want(play.puller, 4);
    CU_ASSERT_EQUAL(play.max_bytes, 0); /* they fit, whatever they are */
    puller_want(play.puller, 100);
    check_pulls("the rest of 100", 2, 96);
    CU_ASSERT_EQUAL(play.max_bytes, 8 * MIB);
    for (unsigned k = 0; k < 40; k++)
        message_comes(nats.link.epoch);
    status_comes("409 Message Size Exceeds MaxBytes", "60", "96");
    check_pulls("what is left, at once", 3, 60);
    for (unsigned k = 0; k < 60; k++)
        message_comes(nats.link.epoch);
    status_comes("409 Batch Completed", "0", "60"); /* with bytes to spare, the server says so */
    puller_want(play.puller, 100);
    check_pulls("at once, too", 4, 100);
    CU_ASSERT_EQUAL(play.refused, 0);
    status_comes("409 Consumer Deleted", "100", "100");
    CU_ASSERT_EQUAL(play.refused, 1);
    end();
    begin(0);
    play.max_payload = 64 * MIB;
    puller_want(play.puller, 2);
    CU_ASSERT_EQUAL(play.max_bytes, 128 * MIB); /* each message fits */
    end();
}

/* One that was published while the server allowed more: alone, it comes. */
static void test_one_that_is_too_large(void)
{
    enum { MIB = 1024 * 1024 };
    begin(0);
    play.max_payload = MIB;
    puller_want(play.puller, 100);
    CU_ASSERT_EQUAL(play.max_bytes, 8 * MIB);
    status_comes("409 Message Size Exceeds MaxBytes", "100", "100");
    check_pulls("one alone", 2, 1);
    CU_ASSERT_EQUAL(play.max_bytes, 0);
    message_comes(nats.link.epoch);
    check_pulls("the others", 3, 99);
    CU_ASSERT_EQUAL(play.max_bytes, 8 * MIB);
    message_comes(nats.link.epoch);
    status_comes("409 Message Size Exceeds MaxBytes", "98", "99");
    check_pulls("its bytes are sent", 4, 98);
    CU_ASSERT_EQUAL(play.refused, 0);
    end();
}

static void test_a_heartbeat(void)
{
    begin(10);
    status_comes("100", "10", "10");
    check_pulls("it is no end", 1, 10);
    CU_ASSERT_EQUAL(play.refused, 0);
    end();
}

static void test_a_request_that_is_refused(void)
{
    static const uint64_t pauses[] = {100, 200, 400, 800, 1600, 2000, 2000};
    begin(10);
    for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
        play.due_ms = 0;
        status_comes("409", "10", "10");
        CU_ASSERT_EQUAL(play.refused, i + 1);
        CU_ASSERT_EQUAL(play.due_ms, nats.now_ms + pauses[i]);
        check_pulls("not at once", i + 1, 10);
        fire_at(nats.now_ms + pauses[i] - 1);
        check_pulls("too early", i + 1, 10);
        fire_at(nats.now_ms + 1);
        check_pulls("after the pause", i + 2, 10);
    }
    message_comes(nats.link.epoch); /* goes on */
    play.due_ms = 0;
    status_comes("409", "9", "10");
    CU_ASSERT_EQUAL(play.due_ms, nats.now_ms + pauses[0]);
    fire_at(nats.now_ms + pauses[0]);
    status_comes("408", "10", "10"); /* the time was over: the queue exists, and is empty */
    play.due_ms = 0;
    status_comes("409", "10", "10");
    CU_ASSERT_EQUAL(play.due_ms, nats.now_ms + pauses[0]);
    end();
}

static void no_responders(uint64_t epoch)
{
    natsMsg *none = NULL;
    play.fn(play.arg, &none, epoch);
}

/* The request is not known: all missing messages are asked for again. */
static void test_a_request_without_responders(void)
{
    begin(10);
    puller_want(play.puller, 20);
    check_pulls("two requests", 2, 10);
    no_responders(nats.link.epoch - 1);
    CU_ASSERT_EQUAL(play.refused, 0); /* of an earlier epoch */
    play.due_ms = 0;
    no_responders(nats.link.epoch);
    CU_ASSERT_EQUAL(play.refused, 1);
    CU_ASSERT_EQUAL(play.due_ms, nats.now_ms + 100);
    check_pulls("not at once", 2, 10);
    fire_at(nats.now_ms + 100);
    check_pulls("all of it", 3, 20);
    end();
}

static void test_a_server_that_is_silent(void)
{
    begin(10);
    CU_ASSERT_EQUAL(play.due_ms, START_MS + SILENCE_MS);
    fire_at(START_MS + SILENCE_MS - 1);
    check_pulls("it may still answer", 1, 10);
    CU_ASSERT_EQUAL(play.due_ms, START_MS + SILENCE_MS);
    fire_at(START_MS + SILENCE_MS);
    check_pulls("asked anew", 2, 10);
    end();
    begin(10); /* whatever it says, it is not silent */
    nats.now_ms = START_MS + SILENCE_MS - 1;
    status_comes("100", NULL, "10");
    fire_at(START_MS + SILENCE_MS);
    check_pulls("it has said something", 1, 10);
    CU_ASSERT_EQUAL(play.due_ms, START_MS + 2 * SILENCE_MS - 1);
    end();
}

/* The message that says so was lost: what it asked for is not awaited for ever. */
static void test_a_request_whose_end_was_lost(void)
{
    begin(10);
    for (uint64_t ms = 5000; ms <= EXPIRES_MS; ms += 5000) {
        nats.now_ms = START_MS + ms;
        status_comes("100", NULL, "10");
    }
    check_pulls("it lasts", 1, 10);
    nats.now_ms = START_MS + EXPIRES_MS + 4000;
    status_comes("100", NULL, "10");
    check_pulls("its time is over", 2, 10);
    end();
}

static void test_what_is_not_wanted_any_more(void)
{
    begin(2);
    message_comes(nats.link.epoch);
    message_comes(nats.link.epoch);
    CU_ASSERT_EQUAL(play.given, 2);
    message_comes(nats.link.epoch);
    CU_ASSERT_EQUAL(play.given, 2);
    CU_ASSERT_EQUAL(play.handed_back, 1); /* another worker has it at once */
    CU_ASSERT_EQUAL(play.destroyed, 1);
    play.malformed = "it is malformed"; /* takes no slot, and must be reported */
    message_comes(nats.link.epoch);
    CU_ASSERT_EQUAL(play.bad, 1);
    play.malformed = NULL;
    puller_want(play.puller, 5);
    end();
    CU_ASSERT_EQUAL(play.given, 2);
    CU_ASSERT_EQUAL(play.handed_back, 2); /* one that came while it was closed */
    CHECK_STR("order", play.log, "detach drain close ");
}

static void test_another_connection(void)
{
    begin(10);
    nats.down = true;
    play.attachment->down(play.attachment->arg, nats.link.epoch);
    CU_ASSERT_EQUAL(play.due_ms, 0);
    puller_want(play.puller, 10);
    check_pulls("not connected", 1, 10);
    link_comes_up();
    check_pulls("all of it anew", 2, 10);
    message_comes(nats.link.epoch - 1); /* the server hands it to another worker */
    CU_ASSERT_EQUAL(play.given, 0);
    message_comes(nats.link.epoch);
    CU_ASSERT_EQUAL(play.given, 1);
    end();
}

static const struct thole_test tests[] = {
    {"how many are asked for", test_how_many_are_asked_for},
    {"the end of a request", test_the_end_of_a_request},
    {"bytes", test_bytes},
    {"one that is too large", test_one_that_is_too_large},
    {"a heartbeat", test_a_heartbeat},
    {"a request that is refused", test_a_request_that_is_refused},
    {"a request without responders", test_a_request_without_responders},
    {"a server that is silent", test_a_server_that_is_silent},
    {"a request whose end was lost", test_a_request_whose_end_was_lost},
    {"what is not wanted any more", test_what_is_not_wanted_any_more},
    {"another connection", test_another_connection},
};
THOLE_TEST_MAIN("puller", tests)
