/* Stored crashes, against a real server: an entry reads as it was put, and the count goes on. */
#include "crashes.h"
#include "streams_fixture.h"

enum { PARTITION = 3 };

struct read {
    size_t n;
    struct crash_entry last;
    char instance[64], text[64];
};

static thole_status take(void *arg, const struct crash_entry *entry)
{
    struct read *const to = arg;
    to->n++;
    to->last = *entry;
    (void)snprintf(to->instance, sizeof to->instance, "%.*s", THOLE_FMT(entry->instance));
    (void)snprintf(to->text, sizeof to->text, "%.*s", THOLE_FMT(entry->text));
    CU_ASSERT(thole_slice_equal(entry->orchestration, THOLE_STR("pay")));
    return THOLE_OK;
}

static struct read look(struct connection *connection, const char *ns)
{
    struct read read = {.n = 0};
    thole_error err = {0};
    CHECK_OK(crashes_read(connection, ns, PARTITION, take, &read, &err), &err);
    return read;
}

static void test_what_is_put_is_read(void)
{
    struct connection *connection = connect_here();
    struct topology const t = fresh_topology(connection, PARTITION + 1);
    struct crash_entry const entry = {.instance = THOLE_STR("order \"7\"/ä"),
                                      .count = 2,
                                      .execution = 41,
                                      .build = THOLE_STR("b1"),
                                      .orchestration = THOLE_STR("pay"),
                                      .version = 3,
                                      .text = THOLE_STR("SIGSEGV at \"0x0\"\n"),
                                      .time_ms = 1700000000123};
    thole_error err = {0};
    CHECK_OK(crashes_put(connection, t.ns, PARTITION, &entry, &err), &err);
    struct read const read = look(connection, t.ns);
    CU_ASSERT_EQUAL(read.n, 1);
    CU_ASSERT_STRING_EQUAL(read.instance, "order \"7\"/ä");
    CU_ASSERT_STRING_EQUAL(read.text, "SIGSEGV at \"0x0\"\n");
    CU_ASSERT_EQUAL(read.last.count, 2);
    CU_ASSERT_EQUAL(read.last.execution, 41);
    CU_ASSERT_EQUAL(read.last.version, 3);
    CU_ASSERT_EQUAL(read.last.time_ms, 1700000000123);
    CHECK_OK(crashes_remove(connection, t.ns, PARTITION, entry.instance, &err), &err);
    CU_ASSERT_EQUAL(look(connection, t.ns).n, 0);
    connection_close(connection);
}

/* certain: it was this instance. Another build starts over. */
static void test_how_the_count_goes_on(void)
{
    static const struct {
        const char *build;
        bool certain;
        uint64_t execution, want;
    } rows[] = {{"b1", true, 1, 1}, {"b1", true, 2, 2},  {"b1", false, 3, 2},
                {"b2", true, 4, 1}, {"b2", false, 5, 1}, {"b3", false, 6, 1}};
    struct connection *connection = connect_here();
    struct topology const t = fresh_topology(connection, PARTITION + 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct crash_entry const entry = {.instance = THOLE_STR("i"),
                                          .execution = rows[i].execution,
                                          .build = thole_slice_from(rows[i].build),
                                          .orchestration = THOLE_STR("pay")};
        uint64_t count = 0;
        thole_error err = {0};
        CHECK_OK(crashes_add(connection, t.ns, PARTITION, &entry, rows[i].certain, &count, &err), &err);
        struct read const read = look(connection, t.ns);
        CU_ASSERT_EQUAL(count, rows[i].want);
        CU_ASSERT_EQUAL(read.last.count, rows[i].want);
        CU_ASSERT_EQUAL(read.last.execution, rows[i].execution);
    }
    connection_close(connection);
}

static const struct thole_test tests[] = {{"what is put is read", test_what_is_put_is_read},
                                          {"how the count goes on", test_how_the_count_goes_on}};
FIXTURE_MAIN("crash entries", tests)
