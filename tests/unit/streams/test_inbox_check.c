/* A user that may not subscribe to where its answers arrive is told so; nats.c is played. */
#include "inbox_prefix.h"
#include "link.h"
#include "loop.h"
#include "thole_cunit.h"

static struct {
    natsStatus subscribes, flushes, last;
    char subject[LINK_INBOX_BYTES];
    unsigned held, flushed; /* subscriptions; what was corked */
    int64_t timeout_ms;
} play;

void __wrap_loop_begin(struct loop *loop)
{
    (void)loop;
}

void __wrap_loop_end(struct loop *loop)
{
    (void)loop;
}

void __wrap_loop_flush(struct loop *loop)
{
    (void)loop;
    play.flushed++;
}

natsStatus __wrap_natsConnection_SubscribeSync(natsSubscription **ret, natsConnection *nc,
                                               const char *subject)
{
    (void)nc;
    (void)snprintf(play.subject, sizeof play.subject, "%s", subject);
    play.held += play.subscribes == NATS_OK;
    *ret = play.subscribes == NATS_OK ? (natsSubscription *)&play : NULL;
    return play.subscribes;
}

natsStatus __wrap_natsConnection_FlushTimeout(natsConnection *nc, int64_t timeout)
{
    (void)nc;
    CU_ASSERT_EQUAL(play.flushed, 1);
    play.timeout_ms = timeout;
    return play.flushes;
}

natsStatus __wrap_natsConnection_GetLastError(natsConnection *nc, const char **text)
{
    (void)nc;
    *text = "Permissions Violation";
    return play.last;
}

void __wrap_natsSubscription_Destroy(natsSubscription *subscription)
{
    play.held -= subscription != NULL;
}

static void test_rows(void)
{
    static const struct {
        natsStatus subscribes, flushes, last;
        thole_status want;
        const char *says;
    } rows[] = {
        {NATS_OK, NATS_OK, NATS_OK, THOLE_OK, NULL},
        {NATS_OK, NATS_OK, NATS_NOT_PERMITTED, THOLE_DENIED,
         "the NATS user may not subscribe to _INBOX_shop_worker_mail.>, where"},
        {NATS_OK, NATS_TIMEOUT, NATS_OK, THOLE_UNAVAILABLE, "no answer in time"},
        {NATS_CONNECTION_CLOSED, NATS_OK, NATS_OK, THOLE_UNAVAILABLE, "_INBOX_shop_worker_mail.ABC.check"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct link link = {.epoch = 1};
        thole_error err = {.text = ""};
        memset(&play, 0, sizeof play);
        play.subscribes = rows[i].subscribes;
        play.flushes = rows[i].flushes;
        play.last = rows[i].last;
        CU_ASSERT_EQUAL(link_check_inbox(&link, "_INBOX_shop_worker_mail.ABC", 700, &err), rows[i].want);
        CHECK_STR("subject", play.subject, "_INBOX_shop_worker_mail.ABC.check");
        CU_ASSERT_EQUAL(play.timeout_ms, rows[i].subscribes == NATS_OK ? 700 : 0);
        CU_ASSERT_EQUAL(play.held, 0);
        if (rows[i].says != NULL && strstr(err.text, rows[i].says) == NULL)
            CHECK_STR("text", err.text, rows[i].says);
    }
}

/* The longest prefix that there is. */
static void test_longest(void)
{
    char names[THOLE_NAME_BYTES_MAX + 1], prefix[INBOX_PREFIX_BYTES_MAX + 1],
        inbox[INBOX_OF_CONNECTION_BYTES];
    struct link link = {.epoch = 1};
    memset(&play, 0, sizeof play);
    memset(names, '_', sizeof names - 1);
    names[sizeof names - 1] = '\0';
    inbox_prefix_of(&(struct inbox_owner){names, "remote-worker", names}, prefix);
    CU_ASSERT_EQUAL(inbox_of_connection(prefix, inbox, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(link_check_inbox(&link, inbox, 1, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(strlen(play.subject), strlen(inbox) + sizeof ".check" - 1);
}

static const struct thole_test tests[] = {
    {"what is said", test_rows},
    {"the longest", test_longest},
};

THOLE_TEST_MAIN("inbox_check", tests)
