/* A start that fails releases everything: opened objects are closed, step by step. The servers are played. */
#include "engine_host.h"
#include "namespace_check.h"
#include "postgres.h"
#include "thole_cunit.h"
#include "topology.h"

static struct {
    int opened; /* connections now */
    unsigned closed;
    thole_status topology, postgres;
} play;

thole_status __wrap_connection_open(const struct connection_options *options, struct connection **ret,
                                    thole_error *reterr)
{
    (void)options, (void)reterr;
    play.opened++;
    *ret = (struct connection *)&play;
    return THOLE_OK;
}

void __wrap_connection_close(struct connection *connection)
{
    CU_ASSERT_PTR_EQUAL(connection, (struct connection *)&play);
    play.opened--;
    play.closed++;
}

thole_status __wrap_topology_ensure(struct connection *connection, const struct topology_options *options,
                                    struct topology *ret, thole_error *reterr)
{
    (void)connection, (void)options;
    *ret = (struct topology){.ns = "shop", .partitions = 2, .nodes_ttl_ms = 9000, .payload_max = 1024};
    return play.topology == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.topology, "no streams");
}

thole_status __wrap_postgres_open(const struct postgres_options *options, struct postgres **ret,
                                  thole_error *reterr)
{
    (void)options;
    *ret = (struct postgres *)&play;
    return play.postgres == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.postgres, "no rows");
}

void __wrap_postgres_close(struct postgres *pg)
{
    CU_ASSERT_PTR_EQUAL(pg, (struct postgres *)&play);
}

thole_status __wrap_postgres_applied(struct postgres *pg, size_t *ret, thole_error *reterr)
{
    (void)pg, (void)reterr;
    *ret = 0;
    return THOLE_OK;
}

thole_status __wrap_namespace_check_rows(struct namespace_check *check, struct postgres *pg,
                                         thole_error *reterr)
{
    (void)check, (void)pg, (void)reterr;
    return THOLE_OK;
}

thole_status __wrap_namespace_check_nats(struct namespace_check *check, struct connection *connection,
                                         enum namespace_depth depth, thole_error *reterr)
{
    (void)connection, (void)depth, (void)reterr;
    check->verdict = NAMESPACE_NEW;
    return THOLE_OK;
}

static bool at_once(void *arg)
{
    (void)arg;
    return true;
}
static const struct stop_check stop = {.requested = at_once};

static void test_what_was_opened_is_closed(void)
{
    static const struct {
        thole_status topology, postgres, want;
        const char *text;
    } rows[] = {{THOLE_INVALID, THOLE_OK, THOLE_INVALID, "no streams"},
                {THOLE_OK, THOLE_DENIED, THOLE_DENIED, "no rows"},
                {THOLE_OK, THOLE_UNAVAILABLE, THOLE_CANCELLED, "stopped while starting"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct host_options const options = {.ns = "shop", .node = "n", .engine_threads = 1};
        static const thole_program program = {.size = sizeof program, .name = "none"};
        struct engine_host *engine = NULL;
        thole_error error = {.status = THOLE_OK};
        memset(&play, 0, sizeof play);
        play.topology = rows[i].topology;
        play.postgres = rows[i].postgres;
        CU_ASSERT_EQUAL(engine_host_start(&options, &program, &stop, &engine, &error), rows[i].want);
        CHECK_STR("why", error.text, rows[i].text);
        CU_ASSERT_PTR_NULL(engine);
        CU_ASSERT_EQUAL(play.opened, 0);
        CU_ASSERT_EQUAL(play.closed, 2); /* the one for queries is a connection of its own */
    }
}

static const struct thole_test tests[] = {{"what was opened is closed", test_what_was_opened_is_closed}};
THOLE_TEST_MAIN("engine_start", tests)
