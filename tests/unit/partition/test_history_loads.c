/* The engine role's reading of a history, from a stream that the test plays. */
#include "reader.h"
#include "subject.h"
#include "thole_cunit.h"
#include "wrap_shard_world.h"
#include "wrap_submitted.h"

enum { BELOW = 20, RECORDS_MAX = 8 };

static struct {
    const char *stored[RECORDS_MAX]; /* the last tokens of the subjects, from sequence 1 */
    char filter[64];
    uint64_t read_to;
    int bufs; /* begun and not released */
} play;

/* ---- the world ---- */

void __real_buf_init(struct buf *buf, size_t max_bytes);
void __wrap_buf_init(struct buf *buf, size_t max_bytes)
{
    play.bufs++;
    __real_buf_init(buf, max_bytes);
}

void __real_buf_release(struct buf *buf);
void __wrap_buf_release(struct buf *buf)
{
    play.bufs--;
    __real_buf_release(buf);
}

thole_status __wrap_stream_read(struct connection *connection, const char *stream, const char *filter,
                                uint64_t from, uint64_t to, stream_read_fn *each, void *arg,
                                thole_error *reterr)
{
    (void)connection, (void)reterr;
    CHECK_STR("stream", stream, "HIST");
    (void)snprintf(play.filter, sizeof play.filter, "%s", filter);
    CU_ASSERT_EQUAL(from, 1);
    play.read_to = to;
    for (size_t i = 0; i < RECORDS_MAX && play.stored[i] != NULL; i++) {
        char subject[64];
        (void)snprintf(subject, sizeof subject, "thole.shop.hist.0.order.%s", play.stored[i]);
        THOLE_TRY(each(arg, i + 1, thole_slice_from(subject), THOLE_STR("")));
    }
    return THOLE_OK;
}

/* The newest record, which is not the one that is looked for. */
thole_status __wrap_stream_last_by_subject(struct connection *connection, const char *stream,
                                           const char *subject, uint64_t *ret_sequence, struct buf *ret_body,
                                           thole_error *reterr)
{
    (void)connection, (void)reterr;
    CHECK_STR("stream", stream, "HIST");
    CHECK_STR("newest of", subject, "thole.shop.hist.0.order.2");
    buf_clear(ret_body);
    *ret_sequence = 0;
    return THOLE_OK;
}

thole_status __wrap_stream_bounds(struct connection *connection, const char *stream,
                                  struct stream_bounds *ret, thole_error *reterr)
{
    (void)connection, (void)reterr;
    CHECK_STR("stream", stream, "HIST");
    *ret = (struct stream_bounds){.first = 1, .last = BELOW, .messages = BELOW};
    return THOLE_OK;
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    shard_world_begin(request_rules);
    (void)snprintf(world.engine.topology.ns, sizeof world.engine.topology.ns, "shop");
    world.owned.hist_stream = (char *)"HIST";
}

/* ---- the input of an activity ---- */

static void test_an_input_that_is_not_there(void)
{
    begin();
    struct request *const request = request_create(REQ_FIND_INPUT, &world.shard, &world.owned);
    request->find.activity =
        (struct batch_activity){.instance = THOLE_STR("order"), .execution = 2, .activity_id = 9};
    int const bufs = play.bufs;
    CU_ASSERT_EQUAL(find_input_load(&world.engine, request), THOLE_OK);
    CU_ASSERT_EQUAL(play.bufs, bufs);
    CHECK_STR("filter", play.filter, "thole.shop.hist.0.order.2");
    CU_ASSERT_EQUAL(play.read_to, BELOW);
    CU_ASSERT_FALSE(request->find.found);
    request_destroy(request);
}

static const struct thole_test tests[] = {
    {"an input that is not there", test_an_input_that_is_not_there},
};
THOLE_TEST_MAIN("history_loads", tests)
