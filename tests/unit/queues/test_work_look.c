/* How the stream is asked whether an activity is queued; nothing is sent. */
#include "requests.h"
#include "thole_cunit.h"
#include "work.h"

static char asked[512];

thole_status __wrap_requests_send(struct requests *requests, const char *subject, thole_slice body,
                                  uint64_t token, thole_error *reterr)
{
    (void)requests, (void)reterr;
    CU_ASSERT_EQUAL(token, 77);
    (void)snprintf(asked, sizeof asked, "%s %.*s", subject, THOLE_FMT(body));
    return THOLE_OK;
}

static void test_work_look(void)
{
    struct work_item item = {.queue = THOLE_STR("q"),
                             .instance = THOLE_STR("an order"),
                             .execution = 2,
                             .activity_id = 9,
                             .try_number = 3};
    CU_ASSERT_EQUAL(work_look(NULL, "shop", &item, 77, NULL), THOLE_OK);
    CHECK_STR("asked", asked,
              "$JS.API.STREAM.MSG.GET.THOLE_shop_WORK "
              "{\"last_by_subj\":\"thole.shop.work.q.an%20order.2.9.3\"}");
    asked[0] = '\0';
    item.instance = THOLE_STR("");
    CU_ASSERT_EQUAL(work_look(NULL, "shop", &item, 77, NULL), THOLE_INVALID);
    CHECK_STR("asked", asked, "");
}

static const struct thole_test tests[] = {{"work look", test_work_look}};
THOLE_TEST_MAIN("work look", tests)
