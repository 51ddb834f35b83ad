/* The state of a waiting call of the client, and the requests that it refuses before it asks a server. */
#include "event.h"
#include "notice.h"
#include "thole_cunit.h"
#include "watch.h"
#include "wrap_mutexes.h"
#include <stdlib.h>

static struct thole_client client;

static void begin(void)
{
    memset(&client, 0, sizeof client);
    (void)snprintf(client.topology.ns, sizeof client.topology.ns, "test");
    client.topology.partitions = 4;
    client.timeout_ms = 10;
    (void)pthread_mutex_init(&client.lock, NULL);
}

/* Thousands of calls a second: nothing of one may stay. */
static void test_nothing_of_a_watch_stays(void)
{
    struct watch first, second;
    begin();
    CU_ASSERT_EQUAL_FATAL(
        watch_open(&client, WATCH_QUIET, THOLE_STR("order"), (thole_slice){0}, &first, NULL), THOLE_OK);
    CU_ASSERT_EQUAL_FATAL(
        watch_open(&client, WATCH_QUIET, THOLE_STR("other"), (thole_slice){0}, &second, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(second.token, first.token + 2); /* one for its looks, one for its publish */
    buf_slice(&first.look_body, THOLE_STR("a record"));
    CU_ASSERT_PTR_NOT_NULL(first.api_body.ptr);
    watch_close(&first);
    CU_ASSERT_PTR_NULL(first.look_body.ptr);
    CU_ASSERT_PTR_NULL(first.api_body.ptr);
    CU_ASSERT_PTR_EQUAL(client.watches.first, &second);
    watch_close(&second);
    CU_ASSERT_PTR_NULL(client.watches.first);
    (void)pthread_mutex_destroy(&client.lock);
}

static unsigned found;

/* A notice for another call of the same instance may come in here and look for its end. */
static void all_can_look(const pthread_mutex_t *mutex)
{
    if (mutex != &client.lock)
        return;
    for (const struct watch *watch = client.watches.first; watch != NULL; watch = watch->next) {
        CU_ASSERT_PTR_EQUAL(strstr(watch->api_subject, "$JS.API.STREAM.MSG.GET.THOLE_test_HIST_"),
                            watch->api_subject);
        CU_ASSERT(watch->api_body.len > 0);
        found++;
    }
}

static void test_who_is_found_can_look(void)
{
    struct watch first, second;
    found = 0;
    begin();
    wrap_mutexes_unlocked = all_can_look;
    CU_ASSERT_EQUAL_FATAL(
        watch_open(&client, WATCH_QUIET, THOLE_STR("order"), (thole_slice){0}, &first, NULL), THOLE_OK);
    CU_ASSERT_EQUAL_FATAL(
        watch_open(&client, WATCH_QUIET, THOLE_STR("order"), (thole_slice){0}, &second, NULL), THOLE_OK);
    watch_close(&first);
    watch_close(&second);
    wrap_mutexes_unlocked = NULL;
    CU_ASSERT(found >= 3);
    (void)pthread_mutex_destroy(&client.lock);
}

/* ---- notices of an instance that several calls watch ---- */

enum { TOGETHER = 3 };
static struct {
    struct watch watches[TOGETHER];
    bool open[TOGETHER];
    uint64_t looked[2 * TOGETHER]; /* tokens */
    size_t looked_len;
} together;

thole_status __wrap_event_notice_parse(const struct delivery *delivery, struct arena *arena,
                                       struct event_notice *ret, thole_error *reterr)
{
    (void)delivery, (void)arena, (void)reterr;
    *ret = (struct event_notice){.kind = "failed", .execution = 1};
    return THOLE_OK;
}

static bool has_looked(const struct watch *watch)
{
    for (size_t i = 0; i < together.looked_len; i++)
        if (together.looked[i] == watch->token)
            return true;
    return false;
}

/* The client's lock is away: the first time, another call ends, whichever comes next in the list. */
thole_status __wrap_requests_send(struct requests *requests, const char *subject, thole_slice body,
                                  uint64_t token, thole_error *reterr)
{
    (void)requests, (void)subject, (void)body, (void)reterr;
    CU_ASSERT_FATAL(together.looked_len < ARRAY_LEN(together.looked));
    together.looked[together.looked_len++] = token;
    for (size_t i = 0; i < TOGETHER && together.looked_len == 1; i++) {
        if (together.watches[i].token != token)
            continue;
        struct watch *const next = watch_table_next_named(&together.watches[i]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(next);
        together.open[next - together.watches] = false;
        watch_close(next);
        memset(next, 0xff, sizeof *next); /* the caller's stack is used for something else */
    }
    return THOLE_OK;
}

static void test_a_call_that_ends_while_others_look(void)
{
    struct delivery const failed = {.subject = THOLE_STR("thole.test.event.charge.order.failed")};
    begin();
    memset(&together, 0, sizeof together);
    for (size_t i = 0; i < TOGETHER; i++) {
        CU_ASSERT_EQUAL_FATAL(watch_open(&client, WATCH_QUIET, THOLE_STR("order"), (thole_slice){0},
                                         &together.watches[i], NULL),
                              THOLE_OK);
        together.open[i] = true;
    }
    CU_ASSERT_TRUE(watches_on_notice(&client, &failed));
    CU_ASSERT_EQUAL(together.looked_len, TOGETHER - 1);
    for (size_t i = 0; i < TOGETHER; i++) {
        if (!together.open[i])
            continue;
        CU_ASSERT_TRUE(has_looked(&together.watches[i]));
        together.watches[i].look = LOOK_NONE; /* as if it had been answered */
        watch_close(&together.watches[i]);
    }
    CU_ASSERT_PTR_NULL(client.watches.first);
    (void)pthread_mutex_destroy(&client.lock);
}

/* There is no connection: whatever went further would not come back. */
static void test_a_reason_that_is_too_long(void)
{
    static uint8_t reason[REASON_BYTES_MAX + 1];
    thole_error err = {0};
    thole_delete_options const options = {.size = sizeof options, .reason = {reason, sizeof reason}};
    memset(reason, 'x', sizeof reason);
    begin();
    CU_ASSERT_EQUAL(thole_client_delete(&client, THOLE_STR("order"), &options, NULL, &err), THOLE_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "reason"));
    (void)pthread_mutex_destroy(&client.lock);
}

static const struct thole_test tests[] = {
    {"nothing of a watch stays", test_nothing_of_a_watch_stays},
    {"who is found can look", test_who_is_found_can_look},
    {"a call that ends while others look", test_a_call_that_ends_while_others_look},
    {"a reason that is too long", test_a_reason_that_is_too_long},
};
THOLE_TEST_MAIN("client_watch", tests)
