/* Which versions of nats-server are taken. */
#include "api.h"
#include "thole_cunit.h"
#include "topology.h"

static struct {
    const char *version;
    size_t calls;
} play;

thole_slice __wrap_connection_server_version(const struct connection *connection)
{
    (void)connection;
    return thole_slice_from(play.version);
}

/* The version was accepted: JetStream is asked. */
thole_status __wrap_api_call(struct connection *connection, const char *verb, const char *target,
                             thole_slice body, struct buf *answer, uint32_t *ret_error, thole_error *reterr)
{
    (void)connection, (void)target, (void)body, (void)answer, (void)ret_error;
    CHECK_STR("verb", verb, "INFO");
    play.calls++;
    return thole_fail(reterr, THOLE_DENIED, "not today");
}

static void test_versions(void)
{
    static const struct {
        const char *version;
        bool taken;
    } rows[] = {{"2.10.23", true},          {"2.10.24", true}, {"2.10.100", true}, {"2.11.0", true},
                {"2.11.0-preview.2", true}, {"3.0.0", true},   {"3.9.1", true},    {"10.0.0", true},
                {"2.10.22", false},         {"2.9.99", false}, {"1.99.99", false}, {"2.10", false},
                {"2.10.", false},           {"2", false},      {"", false},        {"v2.10.23", false},
                {"2.x.23", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct topology topology;
        thole_error err = {0};
        play.version = rows[i].version;
        play.calls = 0;
        thole_status const status = topology_read(NULL, "shop", &topology, &err);
        CHECK_STR(rows[i].version, thole_status_name(status),
                  thole_status_name(rows[i].taken ? THOLE_DENIED : THOLE_UNSUPPORTED));
        CU_ASSERT_EQUAL(play.calls, rows[i].taken);
        CU_ASSERT_EQUAL(strstr(err.text, "2.10.23 or newer is needed") != NULL, !rows[i].taken);
    }
}

static const struct thole_test tests[] = {{"versions", test_versions}};
THOLE_TEST_MAIN("server_version", tests)
