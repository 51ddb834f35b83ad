/* Streams to browsers: waiting events, the rate of changes, the losses of a slow reader, the end; and the
 * workers that answer requests. No server runs. */
#include "clock.h"
#include "hub.h"
#include "hub_parts.h"
#include "jobs.h"
#include "thole_cunit.h"
#include <stdatomic.h>
#include <stdlib.h>

static struct hub *hub;
static struct reader {
    struct feed *feed;
    atomic_uint slept, woken;
    atomic_bool left;
} readers[HUB_STREAMS_MAX + 1];

static void slept(void *arg)
{
    ((struct reader *)arg)->slept++;
}

static void woken(void *arg)
{
    ((struct reader *)arg)->woken++;
}

static bool gone(void *arg)
{
    return ((struct reader *)arg)->left;
}

static void begin(void)
{
    static thole_client_options nowhere;
    thole_client_options_init(&nowhere);
    nowhere.nats_url = "nats://127.0.0.1:1";
    nowhere.timeout_ms = 100;
    memset(readers, 0, sizeof readers);
    CU_ASSERT_EQUAL(hub_start(&nowhere, &hub, NULL), THOLE_OK);
}

static thole_status join(struct reader *reader)
{
    struct feed_owner const owner = {slept, woken, gone, reader};
    return feed_open(hub, (thole_slice){NULL, 0}, 0, owner, &reader->feed, NULL);
}

/* All that waits; then it sleeps. */
static const char *read_all(struct reader *reader)
{
    static char text[2 * HUB_STREAM_BYTES_MAX];
    size_t len = 0, n;
    while ((n = feed_read(reader->feed, text + len, 1000)) > 0 && n != SIZE_MAX)
        len += n;
    text[len] = '\0';
    return text;
}

/* The text is read once. */
static void check_read(const char *row, struct reader *reader, const char *want)
{
    const char *const got = read_all(reader);
    CHECK_STR(row, got, want);
}

static void end(void)
{
    hub_close(hub);
    for (size_t i = 0; i < HUB_STREAMS_MAX; i++)
        if (readers[i].feed != NULL)
            feed_close(readers[i].feed);
    hub_stop(hub);
}

static void test_changes(void)
{
    begin();
    CU_ASSERT_EQUAL(join(&readers[0]), THOLE_OK);
    CU_ASSERT_EQUAL(join(&readers[1]), THOLE_OK);
    check_read("begin", &readers[0], "retry: 1000\n\n");
    CU_ASSERT_EQUAL(readers[0].slept, 1);
    hub_changed(hub, THOLE_STR("a\"\n"));
    CU_ASSERT_EQUAL(readers[0].woken, 1);
    CU_ASSERT_EQUAL(readers[1].woken, 0); /* does not sleep */
    check_read("one", &readers[0], "event: changed\ndata: {\"instance\":\"a\\\"\\n\"}\n\n");
    check_read("other", &readers[1], "retry: 1000\n\nevent: changed\ndata: {\"instance\":\"a\\\"\\n\"}\n\n");
    end();
}

/* Of 100 at once ten are told, the last as "many", before long. */
static void test_many(void)
{
    begin();
    CU_ASSERT_EQUAL(join(&readers[0]), THOLE_OK);
    for (int i = 0; i < 100; i++)
        hub_changed(hub, THOLE_STR("x"));
    char told[8192] = "";
    uint64_t const until = clock_monotonic_ms() + 10000;
    while (strstr(told, "{\"many\":true}") == NULL && clock_monotonic_ms() < until)
        (void)snprintf(told + strlen(told), sizeof told - strlen(told), "%s", read_all(&readers[0]));
    CU_ASSERT_PTR_NOT_NULL(strstr(told, "{\"many\":true}"));
    unsigned named = 0;
    for (const char *at = told; (at = strstr(at, "\"instance\"")) != NULL; at++)
        named++;
    CU_ASSERT_TRUE(named >= 1 && named <= HUB_CHANGES_PER_S);
    end();
}

/* Events of a history fill the buffer only so far that changes still have room. */
static void fill(char *big, size_t less)
{
    size_t const len = HUB_STREAM_BYTES_MAX - HUB_RESERVED_BYTES - less;
    memset(big, 'x', len);
    memcpy(big, "data: ", 6);
    memcpy(big + len - 2, "\n\n", 2);
    CU_ASSERT_TRUE(feed_put_patiently(readers[0].feed, (thole_slice){(const uint8_t *)big, len}));
}

/* As many as may be told at once, of the longest ids, twice: more than is reserved. */
static void change_much(void)
{
    char id[THOLE_ID_BYTES_MAX];
    struct timespec const pause = clock_timespec(1100);
    memset(id, 1, sizeof id); /* six characters each */
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < HUB_CHANGES_PER_S - 1; i++)
            hub_changed(hub, (thole_slice){(const uint8_t *)id, sizeof id});
        if (round == 0)
            (void)nanosleep(&pause, NULL);
    }
}

static void *put_more(void *done)
{
    static char text[200] = "data: more";
    memset(text + 10, 'e', sizeof text - 12);
    memcpy(text + sizeof text - 2, "\n\n", 2);
    CU_ASSERT_TRUE(feed_put_patiently(readers[0].feed, (thole_slice){(const uint8_t *)text, sizeof text}));
    atomic_store((atomic_bool *)done, true);
    return NULL;
}

static void test_room_for_changes(void)
{
    struct timespec const pause = clock_timespec(100);
    atomic_bool done = false;
    pthread_t thread;
    char *const big = malloc(HUB_STREAM_BYTES_MAX);
    begin();
    CU_ASSERT_EQUAL(join(&readers[0]), THOLE_OK);
    fill(big, 100);
    for (int i = 0; i < HUB_CHANGES_PER_S - 1; i++)
        hub_changed(hub, THOLE_STR("some instance"));
    const char *const got = read_all(&readers[0]);
    CU_ASSERT_PTR_NULL(strstr(got, "event: reload"));
    CU_ASSERT_PTR_NOT_NULL(strstr(got, "xx\n\nevent: changed\ndata: {\"instance\":\"some instance\"}\n\n"));
    fill(big, 100);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, put_more, &done), 0);
    (void)nanosleep(&pause, NULL);
    CU_ASSERT_FALSE(atomic_load(&done)); /* waits for the reader, and leaves the rest free */
    bool const at_once = strstr(read_all(&readers[0]), "data: more") != NULL;
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    CU_ASSERT_TRUE(at_once || strstr(read_all(&readers[0]), "data: more") != NULL);
    end();
    free(big);
}

/* A buffer that is full loses all that waits; the event that is half sent is sent to its end. */
static void test_slow_reader(void)
{
    char *const big = malloc(HUB_STREAM_BYTES_MAX), first[8];
    begin();
    CU_ASSERT_EQUAL(join(&readers[0]), THOLE_OK);
    CU_ASSERT_EQUAL(feed_read(readers[0].feed, first, 5), 5);
    fill(big, 100);
    change_much();
    check_read("reload", &readers[0], ": 1000\n\nevent: reload\ndata: {}\n\n");
    struct timespec const pause = clock_timespec(2000 / HUB_CHANGES_PER_S);
    (void)nanosleep(&pause, NULL); /* another change may be told */
    hub_changed(hub, THOLE_STR("later"));
    CU_ASSERT_PTR_NOT_NULL(strstr(read_all(&readers[0]), "event: changed"));
    end();
    free(big);
}

/* Likewise when so much of the event is sent that its bytes were moved. */
static void test_half_sent(void)
{
    enum { READ = 600 * 1024 };
    char *const big = malloc(HUB_STREAM_BYTES_MAX);
    static char first[READ];
    begin();
    CU_ASSERT_EQUAL(join(&readers[0]), THOLE_OK);
    (void)read_all(&readers[0]);
    fill(big, 100);
    CU_ASSERT_EQUAL(feed_read(readers[0].feed, first, READ), READ);
    memcpy(big + READ - 2, "\n\n", 2);
    CU_ASSERT_TRUE(feed_put_patiently(readers[0].feed, (thole_slice){(const uint8_t *)big, READ}));
    change_much();
    const char *const got = read_all(&readers[0]);
    CU_ASSERT_EQUAL(strspn(got, "x"), HUB_STREAM_BYTES_MAX - HUB_RESERVED_BYTES - 102 - READ);
    CHECK_STR("reload", got + strspn(got, "x"), "\n\nevent: reload\ndata: {}\n\n");
    end();
    free(big);
}

/* One that sleeps and whose reader has gone away is woken, to its end. */
static void test_reader_leaves(void)
{
    char byte;
    begin();
    CU_ASSERT_EQUAL(join(&readers[0]), THOLE_OK);
    (void)read_all(&readers[0]);
    readers[0].left = true;
    uint64_t const until = clock_monotonic_ms() + 10000;
    while (atomic_load(&readers[0].woken) == 0 && clock_monotonic_ms() < until)
        ;
    CU_ASSERT_EQUAL(readers[0].woken, 1);
    CU_ASSERT_EQUAL(feed_read(readers[0].feed, &byte, 1), SIZE_MAX);
    end();
}

static void test_bounds_and_end(void)
{
    char byte;
    begin();
    for (size_t i = 0; i < HUB_STREAMS_MAX; i++)
        CU_ASSERT_EQUAL(join(&readers[i]), THOLE_OK);
    CU_ASSERT_EQUAL(join(&readers[HUB_STREAMS_MAX]), THOLE_UNAVAILABLE);
    feed_close(readers[7].feed);
    CU_ASSERT_EQUAL(join(&readers[7]), THOLE_OK);
    (void)read_all(&readers[0]);
    hub_close(hub);
    CU_ASSERT_EQUAL(readers[0].woken, 1);
    CU_ASSERT_EQUAL(feed_read(readers[0].feed, &byte, 1), SIZE_MAX);
    CU_ASSERT_EQUAL(join(&readers[HUB_STREAMS_MAX]), THOLE_UNAVAILABLE);
    end();
}

/* ---- workers ---- */

static atomic_uint begun, ended;
static atomic_bool held;

static void run(void *arg, size_t worker, void *job)
{
    (void)arg;
    (void)job;
    CU_ASSERT_TRUE(worker < 2);
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&held))
        ;
    atomic_fetch_add(&ended, 1);
}

static void test_jobs(void)
{
    struct jobs *jobs = NULL;
    int job = 0;
    unsigned taken = 0;
    atomic_store(&held, true);
    CU_ASSERT_EQUAL(jobs_start(2, 3, run, NULL, &jobs, NULL), THOLE_OK);
    CU_ASSERT_TRUE(jobs_put(jobs, &job) && jobs_put(jobs, &job));
    while (atomic_load(&begun) < 2)
        ;
    for (int i = 0; i < 10; i++)
        taken += jobs_put(jobs, &job);
    CU_ASSERT_EQUAL(taken, 3);
    atomic_store(&held, false);
    jobs_stop(jobs);
    CU_ASSERT_EQUAL(atomic_load(&ended), 5);
    CU_ASSERT_FALSE(jobs_put(jobs, &job)); /* also when it comes too late */
    jobs_free(jobs);
    jobs_stop(NULL);
    jobs_free(NULL);
}

static const struct thole_test tests[] = {
    {"changes", test_changes},         {"many", test_many},
    {"slow reader", test_slow_reader}, {"reader leaves", test_reader_leaves},
    {"bounds", test_bounds_and_end},   {"jobs", test_jobs},
    {"half sent", test_half_sent},     {"room for changes", test_room_for_changes},
};
THOLE_TEST_MAIN("console_hub", tests)
