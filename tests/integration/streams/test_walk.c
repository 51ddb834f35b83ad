/* Reads without a consumer: they find what reads with a consumer find. */
#include "finder.h"
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

/* Questions of one round find what one after the other finds. */
static void compare_round(struct connection *connection, struct finder *finder, const char *stream,
                          const char *subject, uint64_t from)
{
    struct finder_question questions[FINDER_QUESTIONS_MAX];
    struct finder_answer answers[FINDER_QUESTIONS_MAX];
    thole_error err = {0};
    for (size_t i = 0; i < FINDER_QUESTIONS_MAX; i++)
        questions[i] = (struct finder_question){thole_slice_from(subject), i == 0 ? 0 : from + i};
    CHECK_OK(finder_ask(finder, questions, FINDER_QUESTIONS_MAX, answers, &err), &err);
    for (size_t i = 0; i < FINDER_QUESTIONS_MAX; i++) {
        struct stored_message one;
        struct buf body;
        buf_init(&body, MESSAGE_BYTES_MAX);
        CHECK_OK(stream_find(connection, stream, subject, questions[i].from, &one, &body, &err), &err);
        CU_ASSERT_EQUAL(answers[i].sequence, one.sequence);
        CU_ASSERT(one.sequence == 0 ||
                  (thole_slice_equal(answers[i].body, buf_bytes(&body)) && answers[i].subject.len > 0));
        buf_release(&body);
    }
}

static void test_finder(void)
{
    struct connection *const connection = connect_here();
    struct topology const t = fresh_topology(connection, 1);
    char stream[TEXT_BYTES], subject[TEXT_BYTES], all[TEXT_BYTES];
    thole_error err = {0};
    struct finder *finder = NULL;
    put_text(stream, "THOLE_%s_HIST_0", t.ns);
    put_text(subject, "thole.%s.hist.0.a", t.ns);
    put_text(all, "thole.%s.hist.0.a.*", t.ns);
    CHECK_OK(finder_open(connection, stream, &finder, &err), &err);
    compare_round(connection, finder, stream, all, 1);
    fill_stream(connection, subject, MESSAGES, SUBJECTS);
    compare_round(connection, finder, stream, all, 1);
    compare_round(connection, finder, stream, all, MESSAGES - 4);
    for (uint64_t sequence = 10; sequence <= 20; sequence++)
        CHECK_OK(stream_delete(connection, stream, sequence, &err), &err);
    compare_round(connection, finder, stream, all, 8);
    finder_close(finder);
    CHECK_OK(finder_open(connection, "NONE", &finder, &err), &err);
    struct finder_question const question = {thole_slice_from(all), 0};
    struct finder_answer answer;
    CU_ASSERT_EQUAL(finder_ask(finder, &question, 1, &answer, &err), THOLE_NOT_FOUND);
    finder_close(finder);
    connection_close(connection);
}

static const struct thole_test tests[] = {
    {"as with a consumer", test_walk},
    {"many at a time", test_finder},
};

FIXTURE_MAIN("walk", tests)
