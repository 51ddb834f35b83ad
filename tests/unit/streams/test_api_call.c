/* Calls of JetStream's API while the cluster has no leader: they are made again until the time is over. */
#include "api.h"
#include "clock.h"
#include "link.h"
#include "thole_cunit.h"
#include <time.h>

#define FINE "{\"type\":\"io.nats.jetstream.api.v1.stream_info_response\"}"
#define ERROR(code)                                                                                          \
    "{\"type\":\"x\",\"error\":{\"code\":503,\"err_code\":" #code ",\"description\":\"not now\"}}"

static struct {
    const char *answers[8];
    thole_status fails; /* the request after the last answer */
    unsigned asked;
    uint64_t now_ms, each_ms;
} play;

uint64_t __wrap_connection_request_timeout_ms(const struct connection *connection)
{
    (void)connection;
    return 300;
}

const struct connection_waiting *__wrap_connection_waiting(const struct connection *connection)
{
    (void)connection;
    return NULL;
}

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

int __wrap_nanosleep(const struct timespec *span, struct timespec *left)
{
    (void)left;
    CU_ASSERT_TRUE(span->tv_sec == 0 && span->tv_nsec > 0);
    play.now_ms += (uint64_t)span->tv_nsec / 1000000;
    return 0;
}

thole_status __wrap_connection_request(struct connection *connection, const char *subject, thole_slice body,
                                       struct buf *ret, thole_error *reterr)
{
    (void)connection;
    CHECK_STR("subject", subject, "$JS.API.STREAM.INFO.S");
    CU_ASSERT_TRUE(thole_slice_equal(body, THOLE_STR("{}")));
    const char *const answer = play.answers[play.asked++];
    play.now_ms += play.each_ms;
    if (answer == NULL)
        return thole_fail(reterr, play.fails, "no answer");
    buf_clear(ret);
    buf_slice(ret, thole_slice_from(answer));
    return THOLE_OK;
}

static void test_no_leader(void)
{
    static const struct {
        const char *name, *answers[8];
        uint64_t each_ms;
        thole_status status;
        unsigned asked, code;
    } rows[] = {
        {"at once", {FINE}, 0, THOLE_OK, 1, 0},
        {"an election", {ERROR(10008), ERROR(10009), FINE}, 0, THOLE_OK, 3, 0},
        {"until the time is over",
         {ERROR(10008), ERROR(10008), ERROR(10008), ERROR(10008)},
         0,
         THOLE_UNAVAILABLE,
         4,
         10008},
        {"answers take time", {ERROR(10008), ERROR(10008)}, 101, THOLE_UNAVAILABLE, 2, 10008},
        {"another refusal", {ERROR(10059)}, 0, THOLE_NOT_FOUND, 1, 10059},
        {"another one behind it", {ERROR(10008), ERROR(10059)}, 0, THOLE_NOT_FOUND, 2, 10059},
        {"cut off", {ERROR(10008), NULL}, 0, THOLE_DENIED, 2, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf answer;
        uint32_t code = 77;
        thole_error err = {.status = THOLE_OK};
        memset(&play, 0, sizeof play);
        memcpy(play.answers, rows[i].answers, sizeof play.answers);
        play.fails = THOLE_DENIED;
        play.each_ms = rows[i].each_ms;
        buf_init(&answer, 1000);
        thole_status const status =
            api_call(NULL, "STREAM.INFO", "S", THOLE_STR("{}"), &answer, i % 2 == 0 ? &code : NULL, &err);
        CHECK_STR(rows[i].name, thole_status_name(status), thole_status_name(rows[i].status));
        CU_ASSERT_EQUAL(play.asked, rows[i].asked);
        CU_ASSERT_EQUAL(code, i % 2 == 0 ? rows[i].code : 77);
        CU_ASSERT_EQUAL(strstr(err.text, "STREAM.INFO S: the server says: not now (10008)") != NULL,
                        status == THOLE_UNAVAILABLE);
        buf_release(&answer);
    }
}

static const struct thole_test tests[] = {{"no leader", test_no_leader}};
THOLE_TEST_MAIN("api_call", tests)
