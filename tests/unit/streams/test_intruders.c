#include "intruders.h"
#include "thole_cunit.h"

static void test_where_it_delivers(void)
{
    static const struct {
        const char *subject;
        bool into;
    } rows[] = {
        {"thole.shop.hist.0.copy.1", true},
        {"thole.shop.ctl.0.epoch", true},
        {"thole", true},
        {"$KV.THOLE_shop_SECRET.nonces", true},
        {"$JS.API.STREAM.DELETE.X", true},
        {"_INBOX_shop_auditor.abc.1", false},
        {"_INBOX.x", false},
        {"_R_.x", false},
        {"orders.copy", false},
        {"tholes.x", false},
        {"", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(rows[i].subject, intruder_delivers(thole_slice_from(rows[i].subject)) ? "into" : "beside",
                  rows[i].into ? "into" : "beside");
}

int main(void)
{
    static const struct thole_test tests[] = {{"where_it_delivers", test_where_it_delivers}};
    return thole_run_suite("intruders", tests, ARRAY_LEN(tests));
}
