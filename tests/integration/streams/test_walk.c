/* Reads without a consumer: they find what reads with a consumer find. */
#include "reader.h"
#include "streams_fixture.h"

enum { MESSAGES = 300, SUBJECTS = 10 };

struct reading {
    uint64_t last, count, stop_at, bytes;
    bool disorder;
};

static thole_status note(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct reading *reading = arg;
    if (sequence <= reading->last || subject.len == 0)
        reading->disorder = true;
    reading->last = sequence;
    reading->count++;
    for (size_t i = 0; i < body.len; i++)
        reading->bytes = reading->bytes * 31 + body.ptr[i];
    return sequence == reading->stop_at ? THOLE_CANCELLED : THOLE_OK;
}

static void compare(struct connection *connection, const char *stream, const char *filter, uint64_t from,
                    uint64_t to)
{
    thole_error err = {0};
    struct reading read = {0}, walked = {0};
    CHECK_OK(stream_read(connection, stream, filter, from, to, note, &read, &err), &err);
    CHECK_OK(stream_walk(connection, stream, filter, from, to, note, &walked, &err), &err);
    CU_ASSERT(walked.count == read.count && walked.last == read.last && walked.bytes == read.bytes);
    CU_ASSERT_FALSE(walked.disorder);
}

static void compare_ranges(struct connection *connection, const char *stream, const char *ns)
{
    static const uint64_t ranges[][2] = {{0, UINT64_MAX}, {1, 1}, {2, 150}, {299, 300}, {301, 400}, {7, 6}};
    static const char *const ends[] = {"a.*", "a.3", "a.0", "b.*", "*.7"};
    char filter[TEXT_BYTES];
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        put_text(filter, "thole.%s.hist.0.%s", ns, ends[i]);
        for (size_t k = 0; k < ARRAY_LEN(ranges); k++)
            compare(connection, stream, filter, ranges[k][0], ranges[k][1]);
    }
}

static void test_walk(void)
{
    struct connection *const connection = connect_here();
    struct topology const t = fresh_topology(connection, 1);
    char stream[TEXT_BYTES], subject[TEXT_BYTES];
    thole_error err = {0};
    struct reading stopped = {.stop_at = 13};
    put_text(stream, "THOLE_%s_HIST_0", t.ns);
    put_text(subject, "thole.%s.hist.0.a", t.ns);
    compare_ranges(connection, stream, t.ns);
    fill_stream(connection, subject, MESSAGES, SUBJECTS);
    compare_ranges(connection, stream, t.ns);
    put_text(subject, "thole.%s.hist.0.a.3", t.ns);
    CU_ASSERT_EQUAL(stream_walk(connection, stream, subject, 0, UINT64_MAX, note, &stopped, &err),
                    THOLE_CANCELLED);
    CU_ASSERT_EQUAL(stopped.count, 2);
    for (uint64_t sequence = 1; sequence <= MESSAGES; sequence++) /* the first, the last, and some between */
        if (sequence <= 14 || sequence > 280 || sequence % 7 == 0)
            CHECK_OK(stream_delete(connection, stream, sequence, &err), &err);
    compare_ranges(connection, stream, t.ns);
    CU_ASSERT_EQUAL(stream_walk(connection, "NONE", subject, 0, UINT64_MAX, note, &stopped, &err),
                    THOLE_NOT_FOUND);
    connection_close(connection);
}

static const struct thole_test tests[] = {{"as with a consumer", test_walk}};

FIXTURE_MAIN("walk", tests)
