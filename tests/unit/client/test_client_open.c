/* Opening a client: each step of it fails, and nothing stays open; who answers a roll call. All that it opens
 * is played. */
#include "client_internal.h"
#include "roll_call.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"

static struct {
    size_t step, fails_at; /* steps so far; the one that fails */
    int open;              /* of everything together */
    char told[32];
    char stops_at; /* the worker at which the caller has enough; 0: none */
} play;

static const char something;

static thole_status step(const char *name, bool opens, thole_error *reterr)
{
    if (play.step++ == play.fails_at)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s fails", name);
    play.open += opens;
    return THOLE_OK;
}

thole_status __wrap_connection_open(const struct connection_options *options, struct connection **ret,
                                    thole_error *reterr)
{
    thole_status const status = step("connection", true, reterr);
    CHECK_STR("url", options->url, "nats://n:1");
    CHECK_STR("credentials", options->creds, "file");
    CHECK_STR("authorities", options->ca, "ca");
    CHECK_STR("certificate", options->cert, "cert");
    CHECK_STR("key", options->key, "key");
    CHECK_STR("server name", options->server_name, "name");
    CHECK_STR("inbox", options->inbox, "_INBOX_shop");
    CHECK_STR("name", options->name, "thole-client");
    CU_ASSERT_EQUAL(options->connect_timeout_ms, 1234);
    CU_ASSERT_EQUAL(options->request_timeout_ms, 1234);
    *ret = status == THOLE_OK ? (struct connection *)(uintptr_t)&something : NULL;
    return status;
}

void __wrap_connection_close(struct connection *connection)
{
    play.open -= connection != NULL;
}

thole_status __wrap_topology_read(struct connection *connection, const char *ns, struct topology *ret,
                                  thole_error *reterr)
{
    (void)connection;
    CHECK_STR("namespace", ns, "shop");
    *ret = (struct topology){.ns = "shop", .partitions = 1, .payload_max = 1000};
    return step("topology", false, reterr);
}

thole_status __wrap_requests_open(struct connection *connection, size_t window, uint64_t timeout_ms,
                                  request_done_fn *done, void *arg, struct requests **ret,
                                  thole_error *reterr)
{
    (void)connection, (void)window, (void)timeout_ms, (void)done, (void)arg;
    thole_status const status = step("requests", true, reterr);
    *ret = status == THOLE_OK ? (struct requests *)(uintptr_t)&something : NULL;
    return status;
}

void __wrap_requests_close(struct requests *requests)
{
    play.open -= requests != NULL;
}

thole_status __wrap_roll_call(struct connection *connection, const char *ns, struct arena *arena,
                              struct roll_answer **ret, size_t *ret_len, thole_error *reterr)
{
    static struct roll_answer answers[] = {{.worker = {(const uint8_t *)"a", 1}, .slots = 1},
                                           {.worker = {(const uint8_t *)"b", 1}, .slots = 2},
                                           {.worker = {(const uint8_t *)"c", 1}, .slots = 3}};
    (void)connection, (void)arena, (void)reterr;
    CHECK_STR("namespace", ns, "shop");
    *ret = answers;
    *ret_len = ARRAY_LEN(answers);
    return THOLE_OK;
}

static thole_status open_client(thole_client **ret, thole_error *reterr)
{
    thole_client_options options;
    thole_client_options_init(&options);
    options.nats_url = "nats://n:1";
    options.timeout_ms = 1234;
    options.nats_creds = "file";
    options.nats_ca = "ca";
    options.nats_cert = "cert";
    options.nats_key = "key";
    options.nats_server_name = "name";
    options.nats_inbox = "_INBOX_shop";
    options.postgres = "password=secret";
    options.ns = "shop";
    return thole_client_open(&options, ret, reterr);
}

/* Whoever waits for its servers calls it again and again. */
static void test_each_step_fails(void)
{
    static const char *const names[] = {"connection", "topology", "requests"};
    for (size_t i = 0; i <= ARRAY_LEN(names); i++) {
        thole_client *client = NULL;
        thole_error err = {0};
        char want[64];
        bool const opens = i == ARRAY_LEN(names);
        memset(&play, 0, sizeof play);
        play.fails_at = i;
        CU_ASSERT_EQUAL(open_client(&client, &err), opens ? THOLE_OK : THOLE_UNAVAILABLE);
        (void)snprintf(want, sizeof want, "%s fails", opens ? "none" : names[i]);
        CHECK_STR("why", opens ? want : err.text, want);
        CU_ASSERT_EQUAL(client != NULL, opens);
        CU_ASSERT_EQUAL(play.open, opens ? 2 : 0);
        if (opens)
            thole_client_close(client);
        CU_ASSERT_EQUAL(play.open, 0);
    }
}

static thole_status tell(void *arg, const thole_worker_info *info)
{
    size_t const at = strlen(play.told);
    (void)arg;
    (void)snprintf(play.told + at, sizeof play.told - at, "%.*s%u ", THOLE_FMT(info->worker),
                   (unsigned)info->slots);
    return info->worker.ptr[0] == play.stops_at ? THOLE_CANCELLED : THOLE_OK;
}

static void test_workers(void)
{
    static const struct {
        char stops_at;
        thole_status status;
        const char *told;
    } rows[] = {
        {0, THOLE_OK, "a1 b2 c3 "}, {'a', THOLE_CANCELLED, "a1 "}, {'c', THOLE_CANCELLED, "a1 b2 c3 "}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_client *client = NULL;
        memset(&play, 0, sizeof play);
        play.fails_at = SIZE_MAX;
        play.stops_at = rows[i].stops_at;
        CU_ASSERT_EQUAL_FATAL(open_client(&client, NULL), THOLE_OK);
        CU_ASSERT_EQUAL(thole_client_workers(client, tell, NULL, NULL), rows[i].status);
        CHECK_STR("told", play.told, rows[i].told);
        thole_client_close(client);
    }
}

static const struct thole_test tests[] = {
    {"each step fails", test_each_step_fails},
    {"workers", test_workers},
};
THOLE_TEST_MAIN("client open", tests)
