/* How long a start may take to be stored, and how long its end is waited for: the connection is the test's.
 */
#include "client_internal.h"
#include "thole_cunit.h"
#include "watch.h"
#include "wrap_mutexes.h"

enum { TIMEOUT_MS = 5000 };

static struct {
    uint64_t until_ms;
    int open;
} play;

size_t __wrap_connection_max_payload(const struct connection *connection)
{
    (void)connection;
    return 1 << 20;
}

thole_status __wrap_watch_open(struct thole_client *client, enum watch_kind kind, thole_slice instance,
                               thole_slice request, struct watch *ret, thole_error *reterr)
{
    (void)kind, (void)reterr;
    memset(ret, 0, sizeof *ret);
    ret->client = client;
    ret->instance = instance;
    ret->request = request;
    play.open++;
    return THOLE_OK;
}

void __wrap_watch_close(struct watch *watch)
{
    (void)watch;
    play.open--;
}

thole_status __wrap_watch_publish_and_wait(struct watch *watch, const struct letter *letter,
                                           uint64_t until_ms, uint64_t pause_ms, thole_error *reterr)
{
    (void)watch, (void)pause_ms;
    CU_ASSERT_TRUE(letter->body.len > 0);
    CHECK_STR("route", letter->route.text, "start.checkout");
    play.until_ms = until_ms;
    return thole_fail(reterr, THOLE_UNAVAILABLE, "not stored");
}

/* For how long the end is waited for says nothing of how long a server may need to store the start. */
static void test_how_long_a_start_may_take(void)
{
    static uint64_t const waits_ms[] = {0, 60000, UINT64_MAX};
    static struct thole_client client;
    (void)snprintf(client.topology.ns, sizeof client.topology.ns, "test");
    client.topology.partitions = 4;
    client.timeout_ms = TIMEOUT_MS;
    client.payload_max = 1024;
    for (size_t i = 0; i < ARRAY_LEN(waits_ms); i++) {
        thole_outcome outcome;
        thole_error err = {0};
        uint64_t const now = client_now_ms();
        CU_ASSERT_EQUAL(thole_client_run(&client, THOLE_STR("order"), THOLE_STR("checkout"), THOLE_STR("in"),
                                         waits_ms[i], &outcome, &err),
                        THOLE_UNAVAILABLE);
        CU_ASSERT_TRUE(play.until_ms >= now + TIMEOUT_MS && play.until_ms < now + 2 * TIMEOUT_MS);
        CU_ASSERT_EQUAL(play.open, 0);
    }
}

static const struct thole_test tests[] = {{"how long a start may take", test_how_long_a_start_may_take}};
THOLE_TEST_MAIN("client_run", tests)
