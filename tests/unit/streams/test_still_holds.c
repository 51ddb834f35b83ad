/* Whether a stream still holds what was read from it: what the server says of it, or does not say. */
#include "api.h"
#include "reader.h"
#include "thole_cunit.h"

enum { SEQUENCE = 7, OTHER_NS = 1 };
#define STORED "2026-01-02T03:04:05.000000006Z"
#define STORED_NS 1767323045000000006u

static struct {
    thole_status info_status, get_status;
    unsigned last;
    const char *got;
    uint32_t code;
} play;

thole_status __wrap_api_call(struct connection *connection, const char *verb, const char *stream,
                             thole_slice body, struct buf *answer, uint32_t *ret_error, thole_error *reterr)
{
    bool const info = strcmp(verb, "STREAM.INFO") == 0;
    thole_status const status = info ? play.info_status : play.get_status;
    char text[128];
    (void)connection, (void)body;
    CHECK_STR("stream", stream, "IN");
    if (status != THOLE_OK) {
        if (ret_error != NULL)
            *ret_error = play.code;
        return thole_fail(reterr, status, "no %s", verb);
    }
    (void)snprintf(text, sizeof text, "{\"state\":{\"first_seq\":1,\"last_seq\":%u,\"messages\":%u}}",
                   play.last, play.last);
    buf_text(answer, info ? text : play.got);
    return THOLE_OK;
}

/* To say that it is gone makes the partition forget what it knew of its inbox: never for want of an answer.
 */
static void test_still_holds(void)
{
    static const struct {
        const char *name;
        thole_status info_status, get_status;
        unsigned last;
        uint64_t stored_ns;
        const char *got;
        uint32_t code;
        thole_status status;
        bool holds;
    } rows[] = {
        {"as read", 0, 0, SEQUENCE, STORED_NS, "{\"message\":{\"time\":\"" STORED "\"}}", 0, THOLE_OK, true},
        {"another", 0, 0, SEQUENCE, OTHER_NS, "{\"message\":{\"time\":\"" STORED "\"}}", 0, THOLE_OK, false},
        {"shorter", 0, 0, SEQUENCE - 1, STORED_NS, "", 0, THOLE_OK, false},
        {"empty", 0, 0, 0, STORED_NS, "", 0, THOLE_OK, false},
        {"of unknown time", 0, 0, SEQUENCE, 0, "", 0, THOLE_OK, true},
        {"removed", 0, THOLE_NOT_FOUND, SEQUENCE, STORED_NS, "", API_MESSAGE_NOT_FOUND, THOLE_OK, true},
        {"no bounds", THOLE_UNAVAILABLE, 0, SEQUENCE, STORED_NS, "", 0, THOLE_UNAVAILABLE, false},
        {"no message", 0, THOLE_UNAVAILABLE, SEQUENCE, STORED_NS, "", 0, THOLE_UNAVAILABLE, false},
        {"no time", 0, 0, SEQUENCE, STORED_NS, "{\"message\":{}}", 0, THOLE_CORRUPT, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool holds = !rows[i].holds;
        uint64_t last = 0;
        thole_error err = {0};
        play.info_status = rows[i].info_status;
        play.get_status = rows[i].get_status;
        play.last = rows[i].last;
        play.got = rows[i].got;
        play.code = rows[i].code;
        thole_status const status =
            stream_still_holds(NULL, "IN", SEQUENCE, rows[i].stored_ns, &holds, &last, &err);
        CHECK_STR(rows[i].name, thole_status_name(status), thole_status_name(rows[i].status));
        if (rows[i].status != THOLE_OK)
            continue;
        CU_ASSERT_EQUAL(holds, rows[i].holds);
        CU_ASSERT_EQUAL(last, rows[i].last);
    }
}

static const struct thole_test tests[] = {{"still holds", test_still_holds}};
THOLE_TEST_MAIN("still holds", tests)
