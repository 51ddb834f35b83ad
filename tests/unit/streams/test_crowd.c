#include "crowd.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <string.h>

static struct crowd crowd;

static void add(const char *begin, const char *deliver, unsigned n)
{
    char text[64];
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(text, sizeof text, "%s%u_end", begin, i);
        crowd_add(&crowd, "shop", thole_slice_from(text), thole_slice_from(deliver));
    }
}

static const char *said(void)
{
    static char text[160];
    crowd_text(&crowd, text, sizeof text);
    return text;
}

static void test_groups(void)
{
    memset(&crowd, 0, sizeof crowd);
    CHECK_STR("nobody", said(), "");
    add("x_", "_INBOX_shop_auditor.abc.1", 900);
    add("reader_ab", "_INBOX_shop_engine.abc.1", 30);
    add("q_default", "", 2);
    add("copy", "thole.shop.hist.1.copy.1", 1);
    CHECK_STR("the largest ones", said(),
              "900 x_* (inboxes of auditor), 30 reader_* (inboxes of engine), 2 q_*, 1 others");
    crowd.counted += 10; /* consumers without a visible name */
    CHECK_STR("others", strstr(said(), "q_"), "q_*, 11 others");
}

/* Of streams; of a namespace with an underscore; of a queue. */
static void test_names(void)
{
    memset(&crowd, 0, sizeof crowd);
    crowd_add(&crowd, "a_b", THOLE_STR("THOLE_x"), (thole_slice){NULL, 0});
    CHECK_STR("a stream", said(), "1 THOLE_*");
    memset(&crowd, 0, sizeof crowd);
    crowd_add(&crowd, "a_b", THOLE_STR("whole"), THOLE_STR("_INBOX_a__b_worker_gpu.x"));
    CHECK_STR("no end to cut off", said(), "1 whole (inboxes of worker_gpu)");
    memset(&crowd, 0, sizeof crowd);
    crowd_add(&crowd, "a_b", THOLE_STR(""), THOLE_STR("elsewhere.x"));
    CHECK_STR("without a name", said(), "1  (inboxes of elsewhere)");
}

/* No number of names or groups takes more memory, or more text. */
static void test_bounds(void)
{
    char name[200], text[40];
    memset(&crowd, 0, sizeof crowd);
    for (unsigned i = 0; i < 3 * CROWD_GROUPS_MAX; i++) {
        memset(name, 'a' + (int)(i % 26), sizeof name);
        (void)snprintf(name + 20 + i / 26, sizeof name - 20 - i / 26, "_%u", i);
        crowd_add(&crowd, "shop", thole_slice_from(name), (thole_slice){NULL, 0});
    }
    CU_ASSERT_EQUAL(crowd.len, CROWD_GROUPS_MAX);
    CU_ASSERT_EQUAL(crowd.counted, 3 * CROWD_GROUPS_MAX);
    CU_ASSERT_EQUAL(crowd.ungrouped, 2 * CROWD_GROUPS_MAX);
    crowd_text(&crowd, text, sizeof text);
    CU_ASSERT_EQUAL(strlen(text), sizeof text - 1);
    memset(&crowd, 0, sizeof crowd);
    memset(name, 'a', sizeof name);
    crowd_add(&crowd, "shop", (thole_slice){(const uint8_t *)name, sizeof name},
              (thole_slice){(const uint8_t *)name, sizeof name});
    CU_ASSERT_EQUAL(strlen(crowd.groups[0].begin), CROWD_TEXT_BYTES - 2);
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"groups", test_groups},
        {"names", test_names},
        {"bounds", test_bounds},
    };
    return thole_run_suite("crowd", tests, ARRAY_LEN(tests));
}
