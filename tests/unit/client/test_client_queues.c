/* The result of thole_client_queues() from the rows of Postgres and the consumers; both are played. */
#include "client_internal.h"
#include "heap.h"
#include "thole_cunit.h"

static struct {
    size_t rows_len;
    uint64_t lease_ms;
    thole_status read_status, limit_status, lease_status, each_status;
    bool foreign; /* the server refuses names that no queue can have */
    char log[512];
} play;

/* The array ends with a row of the last queue that does not exist. */
#define TEXT(literal)                                                                                        \
    {                                                                                                        \
        (const uint8_t *)literal, sizeof(literal) - 1                                                        \
    }
static struct queue_row rows[] = {
    {.queue = TEXT("mail"), .worker = TEXT("a"), .activities = 2, .silent_ms = 10},
    {.queue = TEXT("mail"), .worker = TEXT("b"), .activities = 3, .silent_ms = 2000, .oldest_ms = 70},
    {.queue = TEXT("mail"), .activities = 4, .outside = 1, .poisoned = 2, .oldest_ms = 60},
    {.queue = TEXT("pay"), .worker = TEXT("a"), .activities = 1, .silent_ms = 1999, .outside = 5},
    {.queue = TEXT("pay"), .worker = TEXT("z"), .activities = 100}};
static struct queue_activity activities[] = {
    {.queue = TEXT("gone"), .activity = TEXT("old"), .activities = 9},
    {.queue = TEXT("mail"), .activity = TEXT("send"), .activities = 5},
    {.queue = TEXT("mail"), .activity = TEXT("sort"), .activities = 4},
    {.queue = TEXT("pay"), .activity = TEXT("charge"), .activities = 1}};

thole_status __wrap_client_read_queues(struct thole_client *client, struct client_queues *queues,
                                       thole_error *reterr)
{
    (void)client;
    queues->rows = rows;
    queues->rows_len = play.rows_len;
    queues->activities = activities;
    queues->activities_len = ARRAY_LEN(activities);
    return play.read_status == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.read_status, "no rows");
}

thole_status __wrap_topology_queue_limit(struct connection *connection, const char *ns, thole_slice queue,
                                         uint64_t *ret, thole_error *reterr)
{
    (void)connection;
    CHECK_STR("namespace", ns, "shop");
    if (play.foreign && memchr(queue.ptr, '.', queue.len) != NULL)
        return thole_fail(reterr, THOLE_INVALID, "queue name \"%.*s\"", THOLE_FMT(queue));
    *ret = queue.len; /* each has another */
    return play.limit_status == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.limit_status, "no limit");
}

thole_status __wrap_topology_queue_lease(struct connection *connection, const char *ns, thole_slice queue,
                                         uint64_t *ret_lease_ms, uint64_t *ret_delivered, thole_error *reterr)
{
    (void)connection, (void)ns;
    *ret_lease_ms = play.lease_ms;
    *ret_delivered = 100 + queue.len;
    return play.lease_status == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.lease_status, "no lease");
}

static thole_status each(void *arg, const thole_queue_info *info)
{
    size_t at = strlen(play.log);
    CU_ASSERT_PTR_EQUAL(arg, &play);
    if (info->foreign)
        at += (size_t)snprintf(play.log + at, sizeof play.log - at, "foreign ");
    at += (size_t)snprintf(play.log + at, sizeof play.log - at,
                           "%.*s limit=%d lease=%d run=%d wait=%d out=%d poison=%d", THOLE_FMT(info->queue),
                           (int)info->limit, (int)info->lease_ms, (int)info->running, (int)info->waiting,
                           (int)info->outside, (int)info->poisoned);
    if (info->oldest_ms != 0)
        at += (size_t)snprintf(play.log + at, sizeof play.log - at, " oldest=%d", (int)info->oldest_ms);
    if (!info->foreign)
        at += (size_t)snprintf(play.log + at, sizeof play.log - at, " delivered=%d", (int)info->delivered);
    for (size_t i = 0; i < info->workers_len; i++)
        at += (size_t)snprintf(play.log + at, sizeof play.log - at, " %.*s:%d/%d",
                               THOLE_FMT(info->workers[i].worker), (int)info->workers[i].activities,
                               (int)info->workers[i].silent_ms);
    for (size_t i = 0; i < info->activities_len; i++)
        at += (size_t)snprintf(play.log + at, sizeof play.log - at, " %.*s=%d",
                               THOLE_FMT(info->activities[i].activity), (int)info->activities[i].count);
    (void)snprintf(play.log + at, sizeof play.log - at, "|");
    return play.each_status;
}

static thole_status read_all(void)
{
    struct thole_client client = {.topology = {.ns = "shop"}};
    thole_error error = {.status = THOLE_OK};
    play.log[0] = '\0';
    thole_status const status = thole_client_queues(&client, (thole_slice){NULL, 0}, each, &play, &error);
    CU_ASSERT_EQUAL(status == THOLE_OK || status == play.each_status, error.text[0] == '\0');
    return status;
}

#define PAY "pay limit=3 lease=2000 run=1 wait=0 out=5 poison=0 delivered=103 a:1/1999 charge=1|"

static void test_queues(void)
{
    memset(&play, 0, sizeof play);
    play.rows_len = ARRAY_LEN(rows) - 1;
    play.lease_ms = 2000;
    CU_ASSERT_EQUAL(read_all(), THOLE_OK);
    CHECK_STR("two queues", play.log,
              "mail limit=4 lease=2000 run=2 wait=7 out=1 poison=2 oldest=70 delivered=104 a:2/10 b:3/2000 "
              "send=5 sort=4|" PAY);
    play.lease_ms = 0; /* no worker has served it: then nobody is silent for too long */
    CU_ASSERT_EQUAL(read_all(), THOLE_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(play.log, "mail limit=4 lease=0 run=5 wait=4 "));
    play.rows_len = 0;
    CU_ASSERT_EQUAL(read_all(), THOLE_OK);
    CHECK_STR("none", play.log, "");
}

/* The server is not asked about a queue that cannot be; the others are told. */
static void test_foreign_rows(void)
{
    static struct queue_row foreign[] = {{.queue = TEXT("a.b>"), .activities = 7},
                                         {.queue = TEXT("pay"), .worker = TEXT("a"), .activities = 1}};
    struct queue_row saved[2];
    memset(&play, 0, sizeof play);
    memcpy(saved, rows, sizeof saved);
    memcpy(rows, foreign, sizeof foreign);
    play.rows_len = 2;
    play.foreign = true;
    CU_ASSERT_EQUAL(read_all(), THOLE_OK);
    CHECK_STR("foreign", play.log,
              "foreign a.b> limit=0 lease=0 run=0 wait=7 out=0 poison=0|"
              "pay limit=3 lease=0 run=1 wait=0 out=0 poison=0 delivered=103 a:1/0 charge=1|");
    memcpy(rows, saved, sizeof saved);
}

static void test_what_fails(void)
{
    memset(&play, 0, sizeof play);
    play.rows_len = ARRAY_LEN(rows) - 1;
    play.read_status = THOLE_UNAVAILABLE;
    CU_ASSERT_EQUAL(read_all(), THOLE_UNAVAILABLE);
    play.read_status = THOLE_OK;
    play.limit_status = THOLE_DENIED;
    CU_ASSERT_EQUAL(read_all(), THOLE_DENIED);
    play.limit_status = THOLE_OK;
    play.lease_status = THOLE_CORRUPT;
    CU_ASSERT_EQUAL(read_all(), THOLE_CORRUPT);
    CHECK_STR("nothing half known is told", play.log, "");
    play.lease_status = THOLE_OK;
    play.each_status = THOLE_CANCELLED;
    CU_ASSERT_EQUAL(read_all(), THOLE_CANCELLED);
    CU_ASSERT_PTR_NULL(strchr(strchr(play.log, '|') + 1, '|')); /* the first one ended it */
}

/* However it ends. */
static void test_nothing_is_left(void)
{
    enum { ROUNDS = 100, HEAP_NOISE = 1024 };
    size_t used = 0;
    for (int round = 0; round < ROUNDS; round++) {
        test_queues();
        test_what_fails();
        if (round == ROUNDS / 2)
            used = heap_used();
    }
    CU_ASSERT(heap_used() < used + HEAP_NOISE);
}

static const struct thole_test tests[] = {{"nothing is left", test_nothing_is_left},
                                          {"queues", test_queues},
                                          {"foreign rows", test_foreign_rows},
                                          {"what fails", test_what_fails}};
THOLE_TEST_MAIN("client_queues", tests)
