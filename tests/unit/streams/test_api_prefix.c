/* Which prefixes of JetStream's subjects are taken, and what is made of a subject. */
#include "api_prefix.h"
#include "thole_cunit.h"

static void test_prefixes(void)
{
    static const struct {
        const char *prefix, *why; /* NULL: it is taken */
    } rows[] = {
        {NULL, NULL},
        {"$JS.API", NULL},
        {"JS.thole.API", NULL},
        {"$JS.hub.API", NULL},
        {"x", NULL},
        {"1234567890123456789012345678901234567890123456789012345678901234", NULL},
        {"12345678901234567890123456789012345678901234567890123456789012345", "1 to 64 bytes"},
        {"", "1 to 64 bytes"},
        {".x", "is no subject"},
        {"x..y", "is no subject"},
        {"x.*", "is no subject"},
        {"x.>", "is no subject"},
        {"x y", "is no subject"},
        {"x\r\nPUB a 0", "is no subject"},
        {"\xc3\xa4", "is no subject"},
        {"JS.thole.API.", "ends with a dot"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_error err = {.status = THOLE_OK};
        CU_ASSERT_EQUAL(api_prefix_check(rows[i].prefix, &err),
                        rows[i].why == NULL ? THOLE_OK : THOLE_INVALID);
        if (rows[i].why != NULL)
            CHECK_STR(rows[i].prefix, strstr(err.text, rows[i].why) == NULL ? err.text : rows[i].why,
                      rows[i].why);
    }
}

static void test_subjects(void)
{
    static const struct {
        const char *prefix, *subject, *made;
    } rows[] = {
        {"$JS.API", "$JS.API.INFO", "$JS.API.INFO"},
        {"JS.thole.API", "$JS.API.INFO", "JS.thole.API.INFO"},
        {"JS.thole.API", "$JS.API.STREAM.MSG.GET.A", "JS.thole.API.STREAM.MSG.GET.A"},
        {"JS.thole.API", "$JS.ACK.A.b.1", "$JS.ACK.A.b.1"},
        {"JS.thole.API", "$JS.APIS.A", "$JS.APIS.A"},
        {"JS.thole.API", "$JS.API", "$JS.API"},
        {"JS.thole.API", "thole.default.in.0.start.a.b", "thole.default.in.0.start.a.b"},
    };
    char room[API_SUBJECT_BYTES], copy[API_PREFIX_BYTES_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(rows[i].subject, api_prefix_apply(rows[i].prefix, rows[i].subject, room), rows[i].made);
    api_prefix_copy(NULL, copy);
    CHECK_STR("default", copy, "$JS.API");
    api_prefix_copy("JS.x", copy);
    CHECK_STR("own", copy, "JS.x");
}

/* A name that does not fit is sent as it is: no stream has such a name. */
static void test_too_long(void)
{
    char subject[API_SUBJECT_BYTES + 8] = "$JS.API.", room[API_SUBJECT_BYTES];
    memset(subject + 8, 'a', sizeof subject - 9);
    subject[sizeof subject - 1] = '\0';
    CU_ASSERT_PTR_EQUAL(api_prefix_apply("JS.thole.API", subject, room), subject);
}

static const struct thole_test tests[] = {
    {"prefixes", test_prefixes},
    {"subjects", test_subjects},
    {"too long", test_too_long},
};
THOLE_TEST_MAIN("api prefix", tests)
