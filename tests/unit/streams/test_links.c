/* Status messages, what is sent, when messages are destroyed: nats.c's connection is played. */
#include "connection.h"
#include "link.h"
#include "sanitizers.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <stdlib.h>

static struct {
    struct link link;
    unsigned published;
    size_t destroyed;
} play;

const char *__wrap_connection_api_prefix(const struct connection *connection)
{
    (void)connection;
    return "$JS.API";
}

void __real_natsMsg_Destroy(natsMsg *message);
void __wrap_natsMsg_Destroy(natsMsg *message);
void __wrap_natsMsg_Destroy(natsMsg *message)
{
    play.destroyed++;
    __real_natsMsg_Destroy(message);
}

natsStatus __wrap_natsConnection_PublishRequest(natsConnection *nc, const char *subject, const char *reply,
                                                const void *data, int len)
{
    (void)nc, (void)subject, (void)reply, (void)data, (void)len;
    play.published++;
    return NATS_OK;
}

static void begin(void)
{
    CU_ASSERT_EQUAL_FATAL(nats_Open(-1), NATS_OK); /* once; its messages need it */
    memset(&play, 0, sizeof play);
    play.link.epoch = 1;
}

static void test_which_message_is_a_status(void)
{
    static const struct {
        const char *status, *body;
        uint32_t want;
    } rows[] = {{"408", "", 408}, {"100", "", 100}, {"503", "", 503}, {"408", "x", 0},
                {NULL, "", 0},    {"4x8", "", 0},   {"", "", 0},      {"4081", "", 408}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        natsMsg *message = NULL;
        thole_slice text;
        begin();
        CU_ASSERT_EQUAL_FATAL(
            natsMsg_Create(&message, "thole.test", NULL, rows[i].body, (int)strlen(rows[i].body)), NATS_OK);
        if (rows[i].status != NULL) {
            CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Status", rows[i].status), NATS_OK);
            CU_ASSERT_EQUAL(natsMsgHeader_Set(message, "Description", "Request Timeout"), NATS_OK);
        }
        struct delivery const delivery = link_delivery(message);
        CU_ASSERT_EQUAL(link_status(&delivery, &text), rows[i].want);
        if (rows[i].want != 0)
            CU_ASSERT_TRUE(thole_slice_equal(text, THOLE_STR("Request Timeout")));
        natsMsg_Destroy(message);
    }
}

/* nats.c would send a line break in a subject as the begin of a command. */
static void test_which_subjects_are_sent(void)
{
    static const struct {
        const char *subject, *reply;
        bool sent;
    } rows[] = {{"a.b", "r.1", true},   {"a b", "r", false}, {"", "r", false},     {"a", "", false},
                {"a", "r\r\nX", false}, {"a", "r s", false}, {"a\x7f", "r", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool sent = true;
        begin();
        thole_status const status =
            link_send_bytes(&play.link, rows[i].subject, rows[i].reply, THOLE_STR("x"), &sent, NULL);
        CU_ASSERT_EQUAL(status, rows[i].sent ? THOLE_OK : THOLE_INVALID);
        CU_ASSERT_EQUAL(sent, rows[i].sent);
        CU_ASSERT_EQUAL(play.published, rows[i].sent);
    }
}

static void free_messages(size_t n, size_t body_len)
{
    static const char body[256 * 1024];
    for (size_t i = 0; i < n; i++) {
        natsMsg *message = NULL;
        CU_ASSERT_EQUAL_FATAL(natsMsg_Create(&message, "thole.test", NULL, body, (int)body_len), NATS_OK);
        link_message_free(message);
    }
}

/* nats.c wakes a thread up for each that is destroyed: they go to it many at a time, and none is kept for
 * ever.
 */
static void test_when_messages_are_destroyed(void)
{
    static const struct {
        size_t n, body_len, want;
    } rows[] = {{511, 8, 0},       {512, 8, 512},     {600, 8, 512},     {0, 8, 0},
                {3, 64 * 1024, 0}, {4, 64 * 1024, 4}, {5, 64 * 1024, 4}, {1, 256 * 1024, 1}};
    link_message_free(NULL);
    for (size_t i = 0; !SANITIZED_ADDRESS && i < ARRAY_LEN(rows); i++) {
        begin();
        link_messages_free_rest();
        play.destroyed = 0;
        free_messages(rows[i].n, rows[i].body_len);
        CU_ASSERT_EQUAL(play.destroyed, rows[i].want);
        link_messages_free_rest();
        CU_ASSERT_EQUAL(play.destroyed, rows[i].n);
    }
}

static const struct thole_test tests[] = {
    {"which message is a status", test_which_message_is_a_status},
    {"which subjects are sent", test_which_subjects_are_sent},
    {"when messages are destroyed", test_when_messages_are_destroyed},
};
THOLE_TEST_MAIN("links", tests)
