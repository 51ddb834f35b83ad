/*
 * How a client hears of ends: one subscription for all that it waits for, one for each where most of what
 * that brings is others'; what a live event says is believed for the execution that is waited for, and for no
 * other.
 */
#include "client_fixture.h"
#include "notice.h"
#include "watch.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { WAITERS = 6, FOREIGN = 1000 };

static const thole_slice nothing = {NULL, 0};
static uint64_t records; /* of the log so far */

struct waiter {
    pthread_t thread;
    char id[32], text[64];
    atomic_bool ended;
};

static void *wait_on_thread(void *arg)
{
    struct waiter *const waiter = arg;
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_status const status =
        thole_client_wait(fixture.client, thole_slice_from(waiter->id), FIXTURE_WAIT_MS, &outcome, NULL);
    (void)snprintf(waiter->text, sizeof waiter->text, "%s %.*s", thole_status_name(status),
                   THOLE_FMT(outcome.output));
    thole_outcome_release(&outcome);
    waiter->ended = true;
    return NULL;
}

static size_t listening(bool together)
{
    pthread_mutex_lock(&fixture.client->lock);
    size_t const users = fixture.client->listening.together_users,
                 alone = fixture.client->listening.listeners - users;
    pthread_mutex_unlock(&fixture.client->lock);
    return together ? users : alone;
}

static bool until(bool together, size_t n)
{
    for (unsigned i = 0; i < 3000 && listening(together) != n; i++)
        (void)usleep(5000);
    return listening(together) == n;
}

/* One after the other, so that it is known which is the first. */
static void begin(struct waiter *waiters, const char *name)
{
    for (size_t i = 0; i < WAITERS; i++) {
        waiters[i].ended = false;
        (void)snprintf(waiters[i].id, sizeof waiters[i].id, "%s-%zu", name, i);
        CU_ASSERT(fixture_started(++records, waiters[i].id, "r"));
        CU_ASSERT_EQUAL_FATAL(pthread_create(&waiters[i].thread, NULL, wait_on_thread, &waiters[i]), 0);
        while (listening(true) + listening(false) < i + 1)
            (void)usleep(1000);
    }
    (void)usleep(300 * 1000); /* they have looked, and sleep */
}

static void end_each(struct waiter *waiters, bool notices)
{
    for (size_t i = 0; i < WAITERS; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "end of %zu", i);
        struct event const completed = {.kind = EVENT_COMPLETED, .id = 2, .data = thole_slice_from(text)};
        ++records;
        bool written = false; /* after a restart the script's connection may need a moment */
        for (unsigned tries = 0; tries < 500 && !written; tries++) {
            written = fixture_write(1, records, waiters[i].id, 2, &completed);
            if (!written)
                (void)usleep(20000);
        }
        CU_ASSERT(written);
        if (notices)
            engine_script_notice(&fixture.script, "completed", thole_slice_from(waiters[i].id), nothing,
                                 thole_slice_from(text));
    }
}

static void join_each(struct waiter *waiters)
{
    for (size_t i = 0; i < WAITERS; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "OK end of %zu", i);
        (void)pthread_join(waiters[i].thread, NULL);
        fixture_check("its end", waiters[i].text, text);
    }
    CU_ASSERT_EQUAL(listening(true) + listening(false), 0);
}

static uint64_t heard(void)
{
    pthread_mutex_lock(&fixture.client->lock);
    uint64_t const n = fixture.client->listening.heard;
    pthread_mutex_unlock(&fixture.client->lock);
    return n;
}

/* Whether a notice for others reaches the client. */
static bool hears_others(void)
{
    uint64_t const before = heard();
    engine_script_notice(&fixture.script, "completed", THOLE_STR("somebody"), nothing, nothing);
    for (unsigned i = 0; i < 60 && heard() == before; i++)
        (void)usleep(5000);
    return heard() > before;
}

/* Whether the server has no subscription that a notice for others would come to: it says so at once, or the
 * request waits for an answer that nobody gives. */
static bool is_deaf_to_others(void)
{
    struct buf answer;
    thole_error err = {.text = ""};
    buf_init(&answer, 1024);
    thole_status const status = connection_request(
        fixture.script.connection, "thole.default.event.order.somebody.completed", nothing, &answer, &err);
    buf_release(&answer);
    return status == THOLE_UNAVAILABLE && strstr(err.text, "no responders") != NULL;
}

static atomic_size_t looks;

static void count_look(void *arg, const struct delivery *delivery)
{
    (void)arg, (void)delivery;
    looks++;
}

/* The first has its own; the others share one. Nobody reads the history again to hear how it ended. */
static void test_one_for_all(void)
{
    static struct waiter waiters[WAITERS];
    struct subscription *subscription = NULL;
    begin(waiters, "share");
    CU_ASSERT_EQUAL(listening(false), 1);
    CU_ASSERT_EQUAL(listening(true), WAITERS - 1);
    CHECK_STATUS(connection_subscribe(fixture.script.connection, "$JS.API.STREAM.MSG.GET.>", count_look, NULL,
                                      &subscription, &fixture.err),
                 THOLE_OK);
    CHECK_STATUS(connection_flush(fixture.script.connection, &fixture.err), THOLE_OK);
    looks = 0;
    struct timespec const since = fixture_begin();
    end_each(waiters, true);
    join_each(waiters);
    uint64_t const took_ms = fixture_elapsed_ms(&since);
    CU_ASSERT(took_ms < 4000); /* without notices the next look comes after 5 s */
    if (took_ms < 4000)
        CU_ASSERT_EQUAL(looks, 0);
    subscription_close(subscription);
}

/* Soon after another one has ended it needs no subscription of its own. Without one that of all ends. */
static void test_one_after_the_other(void)
{
    struct subscription *first = NULL;
    (void)usleep(1200 * 1000); /* nobody has listened for a second */
    CU_ASSERT_TRUE(is_deaf_to_others());
    for (unsigned i = 0; i < 4; i++) {
        struct waiter waiter = {.ended = false};
        char text[32], want[64];
        (void)snprintf(waiter.id, sizeof waiter.id, "after-%u", i);
        (void)snprintf(text, sizeof text, "end of %u", i);
        (void)snprintf(want, sizeof want, "OK end of %u", i);
        struct event const completed = {.kind = EVENT_COMPLETED, .id = 2, .data = thole_slice_from(text)};
        if (i == 3)
            (void)usleep(1200 * 1000); /* the subscription rests, and wakes for no instance: the wait comes
                                          too late */
        CU_ASSERT(fixture_started(++records, waiter.id, "r"));
        CU_ASSERT_EQUAL_FATAL(pthread_create(&waiter.thread, NULL, wait_on_thread, &waiter), 0);
        CU_ASSERT(until(i == 1 || i == 2, 1));
        (void)usleep(200 * 1000);
        CU_ASSERT_TRUE(i == 1 || i == 2 ? hears_others() : is_deaf_to_others());
        CU_ASSERT(fixture_write(1, ++records, waiter.id, 2, &completed));
        engine_script_notice(&fixture.script, "completed", thole_slice_from(waiter.id), nothing,
                             thole_slice_from(text));
        (void)pthread_join(waiter.thread, NULL);
        fixture_check("its end", waiter.text, want);
        if (i == 1)
            first = fixture.client->listening.together;
        CU_ASSERT_TRUE(i == 0 || (first != NULL && fixture.client->listening.together == first));
    }
}

/* The server is gone for a moment; what ended meanwhile is found by looking. */
static void test_restart(void)
{
    static struct waiter waiters[WAITERS];
    begin(waiters, "restart");
    server_kill9(&fixture.server);
    CHECK_STATUS(server_restart(&fixture.server, &fixture.err), THOLE_OK);
    end_each(waiters, false);
    join_each(waiters);
}

/* A busy namespace: most of what the subscription of all brings is for others. */
static void test_apart(void)
{
    static struct waiter waiters[WAITERS];
    (void)usleep(1200 * 1000); /* so that the first has its own */
    begin(waiters, "apart");
    CU_ASSERT_EQUAL(listening(true), WAITERS - 1);
    for (size_t i = 0; i < FOREIGN; i++)
        engine_script_notice(&fixture.script, "completed", THOLE_STR("somebody"), nothing, nothing);
    CU_ASSERT(until(true, 0)); /* at their next look */
    CU_ASSERT_EQUAL(listening(false), WAITERS);
    CU_ASSERT_PTR_NULL(fixture.client->listening.together);
    end_each(waiters, true);
    join_each(waiters);
    begin(waiters, "still-apart");
    CU_ASSERT_EQUAL(listening(false), WAITERS);
    end_each(waiters, true);
    join_each(waiters);
}

/* A live event of another execution says that something has ended; what, says the history. */
static void test_another_execution(void)
{
    struct event const completed = {.kind = EVENT_COMPLETED, .id = 2, .data = THOLE_STR("the history's")};
    struct waiter waiter = {.id = "other"};
    struct event_notice notice = {.orchestration = THOLE_STR("order"),
                                  .instance = THOLE_STR("other"),
                                  .kind = "completed",
                                  .execution = 2,
                                  .data = THOLE_STR("another's")};
    CU_ASSERT(fixture_started(++records, "other", "r"));
    CU_ASSERT_EQUAL_FATAL(pthread_create(&waiter.thread, NULL, wait_on_thread, &waiter), 0);
    (void)usleep(300 * 1000);
    (void)!event_notice_publish(fixture.script.connection, "default", &notice, NULL);
    (void)usleep(100 * 1000);
    CU_ASSERT_FALSE(waiter.ended);
    CU_ASSERT(fixture_write(1, ++records, "other", 2, &completed));
    (void)!event_notice_publish(fixture.script.connection, "default", &notice, NULL);
    (void)pthread_join(waiter.thread, NULL);
    fixture_check("its end", waiter.text, "OK the history's");
}

static const struct thole_test tests[] = {
    {"one subscription for all", test_one_for_all},
    {"one after the other", test_one_after_the_other},
    {"through a restart of NATS", test_restart},
    {"one for each where most is others'", test_apart},
    {"the end of another execution", test_another_execution},
};

int main(void)
{
    return fixture_run("client_listening", tests, ARRAY_LEN(tests));
}
