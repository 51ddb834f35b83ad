/* Blocking reads, removal, the endless ordered reader through kill -9 and purges, and the node registry. */
#include "nodes.h"
#include "reader.h"
#include "streams_fixture.h"
#include "subject.h"
#include "subject_list.h"
#include <unistd.h>

static struct connection *connection;

/* A namespace with its history stream's name and a subject prefix in it. */
struct place {
    struct topology t;
    char hist[TEXT_BYTES], in[TEXT_BYTES], prefix[TEXT_BYTES];
};

static struct place fresh_place(void)
{
    struct place place = {.t = fresh_topology(connection, 1)};
    put_text(place.hist, "THOLE_%s_HIST_0", place.t.ns);
    put_text(place.in, "THOLE_%s_IN_0", place.t.ns);
    put_text(place.prefix, "thole.%s.hist.0.a", place.t.ns);
    return place;
}

/* ---- bounds and single messages ---- */

static void test_bounds(void)
{
    struct place const place = fresh_place();
    struct stream_bounds b = {0};
    thole_error err = {0};
    CHECK_OK(stream_bounds(connection, place.hist, &b, &err), &err);
    CU_ASSERT(b.first == 1 && b.last == 0 && b.messages == 0);
    fill_stream(connection, place.prefix, 5, 1);
    CHECK_OK(stream_bounds(connection, place.hist, &b, &err), &err);
    CU_ASSERT(b.first == 1 && b.last == 5 && b.messages == 5);
    for (uint64_t sequence = 1; sequence <= 5; sequence++)
        CHECK_OK(stream_delete(connection, place.hist, sequence, &err), &err);
    CHECK_OK(stream_bounds(connection, place.hist, &b, &err), &err);
    CU_ASSERT(b.first == 6 && b.last == 5 && b.messages == 0);
    CU_ASSERT_EQUAL(stream_bounds(connection, "NONE", &b, &err), THOLE_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "NONE"));
}

static void test_last_by_subject(void)
{
    struct place const place = fresh_place();
    thole_error err = {0};
    uint64_t sequence = 99;
    char subject[TEXT_BYTES];
    struct buf body, small;
    buf_init(&body, 1024);
    buf_init(&small, 1);
    put_text(subject, "%s.*", place.prefix);
    CHECK_OK(stream_last_by_subject(connection, place.hist, subject, &sequence, &body, &err), &err);
    CU_ASSERT(sequence == 0 && body.len == 0);
    fill_stream(connection, place.prefix, 12, 4);
    CHECK_OK(stream_last_by_subject(connection, place.hist, subject, &sequence, &body, &err), &err);
    CU_ASSERT_EQUAL(sequence, 12);
    CHECK_STR("body", buf_cstr(&body), "12");
    put_text(subject, "%s.2", place.prefix);
    CHECK_OK(stream_last_by_subject(connection, place.hist, subject, &sequence, NULL, &err), &err);
    CU_ASSERT_EQUAL(sequence, 10);
    CU_ASSERT_EQUAL(stream_last_by_subject(connection, place.hist, subject, &sequence, &small, &err),
                    THOLE_LIMIT);
    CU_ASSERT_EQUAL(stream_last_by_subject(connection, "NONE", subject, &sequence, NULL, &err),
                    THOLE_NOT_FOUND);
    for (uint64_t gone = 12; gone > 4; gone--) { /* a literal subject whose last messages were deleted */
        CHECK_OK(stream_delete(connection, place.hist, gone, &err), &err);
        put_text(subject, "%s.%u", place.prefix, (unsigned)((gone - 4) % 4));
        CHECK_OK(stream_last_by_subject(connection, place.hist, subject, &sequence, NULL, &err), &err);
        CU_ASSERT_EQUAL(sequence, gone - 4);
    }
    buf_release(&body);
    buf_release(&small);
}

/* ---- subjects ---- */

struct heard {
    const char *prefix;
    bool *of;
    size_t len, n;
};

static void hear_subject(void *arg, thole_slice subject)
{
    struct heard *heard = arg;
    char text[TEXT_BYTES];
    put_text(text, "%.*s", THOLE_FMT(subject));
    CU_ASSERT_FATAL(strncmp(text, heard->prefix, strlen(heard->prefix)) == 0);
    size_t const i = strtoul(text + strlen(heard->prefix) + 1, NULL, 10);
    CU_ASSERT_FATAL(i < heard->len);
    heard->n += !heard->of[i];
    heard->of[i] = true;
}

/* More than the server tells at a time; as it has them in memory, and as it finds them after a kill -9. */
static void test_all_subjects(void)
{
    enum { MANY = 102000, REMOVED = 50 };
    struct place const place = fresh_place();
    struct stream_bounds b = {0};
    bool *of = calloc(MANY, sizeof *of);
    struct heard heard = {.prefix = place.prefix, .of = of, .len = MANY};
    thole_error err = {0};
    CU_ASSERT_EQUAL(stream_subjects(connection, place.hist, 1, MANY, hear_subject, &heard, &err),
                    THOLE_CORRUPT);
    fill_stream(connection, place.prefix, MANY, MANY);
    CHECK_OK(stream_bounds(connection, place.hist, &b, &err), &err);
    CHECK_OK(stream_subjects(connection, place.hist, b.last, MANY, hear_subject, &heard, &err), &err);
    CU_ASSERT_EQUAL(heard.n, MANY);
    CU_ASSERT_EQUAL(stream_subjects(connection, place.hist, b.last + 1, MANY, hear_subject, &heard, &err),
                    THOLE_UNAVAILABLE);
    CU_ASSERT_EQUAL(stream_subjects(connection, place.hist, 1, MANY - 1, hear_subject, &heard, &err),
                    THOLE_LIMIT);
    for (uint64_t sequence = 1; sequence <= REMOVED; sequence++)
        CHECK_OK(stream_delete(connection, place.hist, sequence, &err), &err);
    memset(of, 0, MANY * sizeof *of);
    heard.n = 0;
    CHECK_OK(stream_subjects(connection, place.hist, b.last, MANY, hear_subject, &heard, &err), &err);
    CU_ASSERT_EQUAL(heard.n, MANY - REMOVED);
    free(of);
}

static void test_get_answers(void)
{
    static const struct {
        const char *answer;
        thole_status want;
        uint64_t sequence;
        const char *body;
    } rows[] = {
        {"{\"type\":\"t\",\"message\":{\"subject\":\"a\",\"seq\":7,\"data\":\"Zm9v\"}}", THOLE_OK, 7, "foo"},
        {"{\"type\":\"t\",\"message\":{\"subject\":\"a\",\"seq\":7}}", THOLE_OK, 7, ""},
        {"{\"type\":\"t\",\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"no message found\"}}",
         THOLE_OK, 0, ""},
        {"{\"type\":\"t\",\"error\":{\"code\":503,\"err_code\":10008,\"description\":\"away\"}}",
         THOLE_UNAVAILABLE, 0, NULL},
        {"{\"type\":\"t\",\"error\":{\"code\":404,\"err_code\":10059,\"description\":\"x\"}}",
         THOLE_NOT_FOUND, 0, NULL},
        {"{\"type\":\"t\",\"message\":{\"seq\":0}}", THOLE_CORRUPT, 0, NULL},
        {"{\"type\":\"t\",\"message\":{\"seq\":7,\"data\":\"Zm9\"}}", THOLE_CORRUPT, 0, NULL},
        {"{\"type\":\"t\"}", THOLE_CORRUPT, 0, NULL},
        {"hello", THOLE_CORRUPT, 0, NULL},
        {"", THOLE_CORRUPT, 0, NULL},
    };
    struct buf body;
    buf_init(&body, 1024);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t sequence = 0;
        thole_error err = {0};
        CU_ASSERT_EQUAL(stream_get_answer(thole_slice_from(rows[i].answer), &sequence, &body, &err),
                        rows[i].want);
        if (rows[i].want == THOLE_OK) {
            CU_ASSERT_EQUAL(sequence, rows[i].sequence);
            CHECK_STR(rows[i].answer, buf_cstr(&body), rows[i].body);
        }
    }
    CU_ASSERT_EQUAL(stream_get_request(&body, "a\"b"), THOLE_OK);
    CHECK_STR("request", buf_cstr(&body), "{\"last_by_subj\":\"a\\\"b\"}");
    CU_ASSERT_EQUAL(stream_get_request(&body, "thole.x.ctl.0.epoch"), THOLE_OK);
    CHECK_STR("request", buf_cstr(&body), "{\"last_by_subj\":\"thole.*.ctl.0.epoch\"}");
    buf_release(&body);
}

/* ---- blocking reads ---- */

struct reading {
    uint64_t last, count, stop_at;
    bool disorder;
    uint64_t act_at;
    void (*act)(void *arg);
    void *arg;
};

static thole_status note(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct reading *reading = arg;
    (void)subject;
    (void)body;
    if (sequence <= reading->last)
        reading->disorder = true;
    reading->last = sequence;
    reading->count++;
    if (reading->act != NULL && reading->count == reading->act_at)
        reading->act(reading->arg);
    return sequence == reading->stop_at ? THOLE_CANCELLED : THOLE_OK;
}

static void test_read_ranges(void)
{
    struct place const place = fresh_place();
    char wide[TEXT_BYTES], one[TEXT_BYTES], none[TEXT_BYTES];
    put_text(wide, "%s.*", place.prefix);
    put_text(one, "%s.3", place.prefix);
    put_text(none, "thole.%s.hist.0.other.*", place.t.ns);
    struct {
        const char *filter;
        uint64_t from, to, count, last;
    } const rows[] = {
        {NULL, 0, UINT64_MAX, 3000, 3000},
        {NULL, 1, UINT64_MAX, 3000, 3000},
        {NULL, 2999, UINT64_MAX, 2, 3000},
        {NULL, 3000, 3000, 1, 3000},
        {NULL, 3001, UINT64_MAX, 0, 0},
        {NULL, 5000, UINT64_MAX, 0, 0},
        {NULL, 5, 4, 0, 0},
        {NULL, 1, 1, 1, 1},
        {NULL, 10, 1200, 1191, 1200},
        {NULL, 0, 0, 0, 0},
        {wide, 0, UINT64_MAX, 3000, 3000},
        {one, 0, UINT64_MAX, 300, 2993},
        {one, 100, 200, 10, 193},
        {one, 2994, UINT64_MAX, 0, 0},
        {none, 0, UINT64_MAX, 0, 0},
        {one, 4, 5, 0, 0},
    };
    thole_error err = {0};
    struct reading empty = {0};
    CHECK_OK(stream_read(connection, place.hist, NULL, 0, UINT64_MAX, note, &empty, &err), &err);
    CHECK_OK(stream_read(connection, place.hist, wide, 0, UINT64_MAX, note, &empty, &err), &err);
    CU_ASSERT_EQUAL(empty.count, 0);
    fill_stream(connection, place.prefix, 3000, 10);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct reading reading = {0};
        CHECK_OK(stream_read(connection, place.hist, rows[i].filter, rows[i].from, rows[i].to, note, &reading,
                             &err),
                 &err);
        CU_ASSERT_EQUAL(reading.count, rows[i].count);
        CU_ASSERT_EQUAL(reading.last, rows[i].last);
        CU_ASSERT_FALSE(reading.disorder);
    }
    struct reading stopped = {.stop_at = 7};
    CU_ASSERT_EQUAL(stream_read(connection, place.hist, NULL, 0, UINT64_MAX, note, &stopped, &err),
                    THOLE_CANCELLED);
    CU_ASSERT_EQUAL(stopped.count, 7);
    CU_ASSERT_EQUAL(stream_read(connection, "NONE", NULL, 0, UINT64_MAX, note, &stopped, &err),
                    THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(stream_read(connection, "NONE", one, 0, UINT64_MAX, note, &stopped, &err),
                    THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(stream_read(connection, place.hist, "a b", 0, UINT64_MAX, note, &stopped, &err),
                    THOLE_INVALID);
    CU_ASSERT_EQUAL(stream_read(connection, "a\r\nb", NULL, 0, UINT64_MAX, note, &stopped, &err),
                    THOLE_INVALID);
}

static void test_read_over_gaps(void)
{
    struct place const place = fresh_place();
    thole_error err = {0};
    struct reading all = {0}, one = {0}, none = {0};
    char filter[TEXT_BYTES];
    put_text(filter, "%s.0", place.prefix);
    fill_stream(connection, place.prefix, 100, 2);
    for (uint64_t sequence = 1; sequence <= 100; sequence++) { /* the first, the last, and some between */
        if (sequence <= 10 || sequence > 95 || sequence % 7 == 0)
            CHECK_OK(stream_delete(connection, place.hist, sequence, &err), &err);
    }
    CHECK_OK(stream_delete(connection, place.hist, 3, &err), &err);
    CHECK_OK(stream_delete(connection, place.hist, 5000, &err), &err);
    CHECK_OK(stream_read(connection, place.hist, NULL, 0, UINT64_MAX, note, &all, &err), &err);
    CU_ASSERT(all.count == 73 && all.last == 95);
    CHECK_OK(stream_read(connection, place.hist, filter, 0, UINT64_MAX, note, &one, &err), &err);
    CU_ASSERT(one.last == 94 && one.count == 36);
    for (uint64_t sequence = 11; sequence <= 95; sequence++)
        CHECK_OK(stream_delete(connection, place.hist, sequence, &err), &err);
    CHECK_OK(stream_read(connection, place.hist, NULL, 0, UINT64_MAX, note, &none, &err), &err);
    CU_ASSERT_EQUAL(none.count, 0);
}

static void add_more(void *arg)
{
    const struct place *place = arg;
    fill_stream(connection, place->prefix, 50, 1);
}

static void test_messages_that_come_meanwhile(void)
{
    struct place place = fresh_place();
    thole_error err = {0};
    struct reading reading = {.act_at = 100, .act = add_more, .arg = &place};
    fill_stream(connection, place.prefix, 2000, 1);
    CHECK_OK(stream_read(connection, place.hist, NULL, 0, UINT64_MAX, note, &reading, &err), &err);
    CU_ASSERT(reading.count >= 2000 && reading.count <= 2050 && !reading.disorder);
}

/* Deletes every consumer of the stream. */
static void drop_consumers(void *arg)
{
    const struct place *place = arg;
    char subject[TEXT_BYTES], list[65536];
    put_text(subject, "$JS.API.CONSUMER.NAMES.%s", place->hist);
    snprintf(list, sizeof list, "%s", api_answer(connection, subject, ""));
    for (char *at = strstr(list, "\"re"); at != NULL; at = strstr(at + 1, "\"re")) {
        put_text(subject, "$JS.API.CONSUMER.DELETE.%s.%.*s", place->hist, (int)strcspn(at + 1, "\""), at + 1);
        CU_ASSERT_PTR_NOT_NULL(strstr(api_answer(connection, subject, ""), "\"success\":true"));
    }
}

static void test_a_consumer_that_vanishes(void)
{
    struct place place = fresh_place();
    thole_error err = {0};
    struct reading reading = {.act_at = 10, .act = drop_consumers, .arg = &place};
    uint8_t *large = calloc(1, 100000);
    struct sink sink = {0};
    struct requests *requests = open_window(connection, 16, 10000, &sink);
    char subject[TEXT_BYTES];
    put_text(subject, "%s.1", place.prefix);
    for (int i = 0; i < 1500; i++) { /* 150 MB: more than flow control lets through while each() is held up */
        struct publish const publish = {.subject = subject, .body = {large, 100000}};
        while (requests_publish(requests, &publish, 0, &err) == THOLE_LIMIT)
            usleep(100);
    }
    CU_ASSERT(reaches(&sink.stored, 1500));
    CHECK_OK(stream_read(connection, place.hist, NULL, 0, UINT64_MAX, note, &reading, &err), &err);
    CU_ASSERT_EQUAL(reading.count, 1500);
    CU_ASSERT_FALSE(reading.disorder);
    requests_close(requests);
    free(large);
}

static void test_purge_below(void)
{
    struct place const place = fresh_place();
    thole_error err = {0};
    struct stream_bounds b;
    char prefix[TEXT_BYTES];
    put_text(prefix, "thole.%s.in.0.event.e", place.t.ns);
    fill_stream(connection, prefix, 100, 1);
    CHECK_OK(stream_purge_below(connection, place.in, 0, &err), &err);
    CHECK_OK(stream_purge_below(connection, place.in, 1, &err), &err);
    CHECK_OK(stream_bounds(connection, place.in, &b, &err), &err);
    CU_ASSERT(b.first == 1 && b.messages == 100);
    CHECK_OK(stream_purge_below(connection, place.in, 61, &err), &err);
    CHECK_OK(stream_bounds(connection, place.in, &b, &err), &err);
    CU_ASSERT(b.first == 61 && b.last == 100 && b.messages == 40);
    CHECK_OK(stream_purge_below(connection, place.in, 1000, &err), &err);
    CHECK_OK(stream_bounds(connection, place.in, &b, &err), &err);
    CU_ASSERT(b.first == 100 && b.last == 100 && b.messages == 1); /* the last one always stays */
    CHECK_OK(stream_purge_below(connection, place.in, 101, &err), &err);
    CHECK_OK(stream_delete(connection, place.in, 100, &err), &err);
    CHECK_OK(stream_purge_below(connection, place.in, 101, &err), &err);
    CHECK_OK(stream_bounds(connection, place.in, &b, &err), &err);
    CU_ASSERT(b.last == 100 && b.messages == 0);
    fill_stream(connection, place.prefix, 10, 1);
    CU_ASSERT_NOT_EQUAL(stream_purge_below(connection, place.hist, 5, &err), THOLE_OK); /* deny_purge */
    CHECK_OK(stream_bounds(connection, place.hist, &b, &err), &err);
    CU_ASSERT(b.first == 1 && b.messages == 10);
    CU_ASSERT_EQUAL(stream_purge_below(connection, "NONE", 5, &err), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(stream_delete(connection, "NONE", 5, &err), THOLE_NOT_FOUND);
}

/* ---- the ordered reader ---- */

enum { SEEN_MAX = 300000 };
struct following {
    atomic_ulong last, count, lost;
    _Atomic uint64_t stored_ns;
    atomic_bool disorder, closed, late, slow;
    bool keep;
    _Atomic uint8_t *seen; /* by the number in the body */
};

static void follow(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct following *f = arg;
    unsigned long number = 0;
    if (atomic_load(&f->closed))
        atomic_store(&f->late, true);
    if (sequence <= atomic_load(&f->last))
        atomic_store(&f->disorder, true);
    for (size_t i = 0; i < delivery->body.len && delivery->body.ptr[i] >= '0' && delivery->body.ptr[i] <= '9';
         i++)
        number = number * 10 + (unsigned long)(delivery->body.ptr[i] - '0');
    if (f->seen != NULL && number < SEEN_MAX && atomic_fetch_add(&f->seen[number], 1) != 0)
        atomic_store(&f->disorder, true);
    if (atomic_load(&f->slow))
        usleep(2000);
    atomic_store(&f->last, sequence);
    atomic_store(&f->stored_ns, delivery_stored_ns(delivery));
    atomic_fetch_add(&f->count, 1);
}

static struct ordered_reader *open_reader(const char *stream, const char *filter, uint64_t from,
                                          struct following *f)
{
    struct ordered_reader *reader = NULL;
    thole_error err = {0};
    struct ordered_reader_options const options = {
        .stream = stream, .filter = filter, .from = from, .each = follow, .arg = f};
    CHECK_OK(ordered_reader_open(connection, &options, &reader, &err), &err);
    return reader;
}

static void test_ordered_reader(void)
{
    struct place const place = fresh_place();
    struct following all = {0}, some = {0}, later = {0};
    char filter[TEXT_BYTES];
    thole_error err = {0};
    put_text(filter, "%s.1", place.prefix);
    fill_stream(connection, place.prefix, 1500, 3);
    struct ordered_reader *a = open_reader(place.hist, NULL, 0, &all);
    struct ordered_reader *b = open_reader(place.hist, filter, 100, &some);
    struct ordered_reader *c = open_reader(place.hist, NULL, 1600, &later); /* beyond the end */
    CU_ASSERT(reaches(&all.count, 1500) && reaches(&some.count, 467));
    fill_stream(connection, place.prefix, 300, 3);
    CU_ASSERT(reaches(&all.count, 1800) && reaches(&some.count, 567) && reaches(&later.count, 201));
    CU_ASSERT_FALSE(all.disorder || some.disorder || later.disorder);
    ordered_reader_close(a);
    ordered_reader_close(b);
    ordered_reader_close(c);
    ordered_reader_close(NULL);
    struct ordered_reader_options options = {.stream = "NONE", .each = follow, .arg = &all};
    CU_ASSERT_EQUAL(ordered_reader_open(connection, &options, &a, &err), THOLE_NOT_FOUND);
    options.filter = "a b";
    CU_ASSERT_EQUAL(ordered_reader_open(connection, &options, &a, &err), THOLE_INVALID);
}

static void test_its_consumer_is_removed(void)
{
    struct place const place = fresh_place();
    struct following f = {0};
    char subject[TEXT_BYTES];
    put_text(subject, "$JS.API.CONSUMER.NAMES.%s", place.hist);
    struct ordered_reader *reader = open_reader(place.hist, NULL, 0, &f);
    CU_ASSERT_PTR_NOT_NULL(strstr(api_answer(connection, subject, ""), "\"total\":1"));
    ordered_reader_close(reader);
    uint64_t const start = clock_ms();
    while (strstr(api_answer(connection, subject, ""), "\"total\":0") == NULL && clock_ms() - start < 3000)
        nap_ms(5);
    CU_ASSERT(clock_ms() - start < 3000); /* would expire after 30 s */
}

static void test_no_reading_after_close(void)
{
    struct place const place = fresh_place();
    thole_error err = {0};
    fill_stream(connection, place.prefix, 500, 1);
    for (int i = 0; i < 20; i++) {
        struct following f = {.slow = true};
        struct ordered_reader *reader = open_reader(place.hist, NULL, 0, &f);
        CU_ASSERT(reaches(&f.count, 2));
        ordered_reader_close(reader);
        atomic_store(&f.closed, true);
        CHECK_OK(connection_flush(connection, &err), &err);
        CU_ASSERT_FALSE(f.late);
    }
}

static void test_a_reader_whose_consumer_is_deleted(void)
{
    struct place place = fresh_place();
    struct following f = {0};
    struct ordered_reader *reader = open_reader(place.hist, NULL, 0, &f);
    for (unsigned long round = 1; round <= 3; round++) {
        fill_stream(connection, place.prefix, 100, 1);
        CU_ASSERT(reaches(&f.count, round * 100));
        drop_consumers(&place); /* the server says nothing: two heartbeats must be missing */
    }
    fill_stream(connection, place.prefix, 100, 1);
    CU_ASSERT(reaches(&f.count, 400));
    CU_ASSERT(!f.disorder && f.last == 400);
    ordered_reader_close(reader);
}

struct writer {
    struct requests *requests;
    char subject[TEXT_BYTES], stream[TEXT_BYTES];
    atomic_bool stop;
    unsigned long accepted;
    _Atomic uint8_t *stored; /* by number */
    const struct following *reader;
};

static void note_stored(void *arg, const struct request_done *done)
{
    struct writer *writer = arg;
    if (done->result == REQUEST_STORED)
        atomic_store(&writer->stored[done->token], 1);
}

/* Publishes numbers; purges what the reader has read every 100 ms. */
static void *write_on(void *arg)
{
    struct writer *writer = arg;
    thole_error err = {0};
    uint64_t purge_ms = clock_ms() + 100;
    while (!atomic_load(&writer->stop) && writer->accepted + 1 < SEEN_MAX) {
        char body[24];
        int const len = snprintf(body, sizeof body, "%lu", writer->accepted + 1);
        struct publish const publish = {.subject = writer->subject, .body = {(uint8_t *)body, (size_t)len}};
        if (requests_publish(writer->requests, &publish, writer->accepted + 1, &err) == THOLE_OK)
            writer->accepted++;
        else
            usleep(50);
        if (clock_ms() >= purge_ms) {
            thole_status const ignored =
                stream_purge_below(connection, writer->stream, atomic_load(&writer->reader->last) + 1, &err);
            (void)ignored;
            purge_ms = clock_ms() + 100;
        }
    }
    return NULL;
}

static void test_three_kill9_and_a_purge_every_100_ms(void)
{
    struct place const place = fresh_place();
    struct following f = {.seen = calloc(SEEN_MAX, 1)};
    struct writer writer = {.stored = calloc(SEEN_MAX, 1), .reader = &f};
    thole_error err = {0};
    pthread_t thread;
    unsigned long stored = 0, missing = 0;
    put_text(writer.subject, "thole.%s.in.0.event.e.a", place.t.ns);
    put_text(writer.stream, "%s", place.in);
    struct ordered_reader *reader = open_reader(place.in, NULL, 0, &f);
    CHECK_OK(requests_open(connection, 256, 5000, note_stored, &writer, &writer.requests, &err), &err);
    pthread_create(&thread, NULL, write_on, &writer);
    for (int i = 0; i < 3; i++) {
        uint64_t const epoch = connection_epoch(connection);
        nap_ms(350);
        server_kill9(&fixture_server);
        CHECK_OK(server_restart(&fixture_server, &err), &err);
        CU_ASSERT(wait_epoch_above(connection, epoch));
    }
    nap_ms(350);
    atomic_store(&writer.stop, true);
    pthread_join(thread, NULL);
    requests_close(writer.requests);
    struct stream_bounds b = {0};
    CHECK_OK(stream_bounds(connection, place.in, &b, &err), &err);
    CU_ASSERT(reaches(&f.last, b.last));
    for (unsigned long i = 1; i <= writer.accepted; i++) {
        stored += writer.stored[i];
        missing += writer.stored[i] && !atomic_load(&f.seen[i]);
    }
    CU_ASSERT(stored > 3000);
    CU_ASSERT_EQUAL(missing, 0);
    CU_ASSERT_FALSE(f.disorder);
    ordered_reader_close(reader);
    free((void *)f.seen);
    free((void *)writer.stored);
}

/* The place to go on from was purged while the server was away, and while the reader had no consumer. */
static void test_the_next_sequence_was_purged(void)
{
    struct place const place = fresh_place();
    struct following f = {0};
    thole_error err = {0};
    char prefix[TEXT_BYTES];
    put_text(prefix, "thole.%s.in.0.event.e", place.t.ns);
    struct ordered_reader *reader = open_reader(place.in, NULL, 0, &f);
    fill_stream(connection, prefix, 10, 1);
    CU_ASSERT(reaches(&f.count, 10));
    atomic_store(&f.slow, true);
    fill_stream(connection, prefix, 2000, 1);
    CHECK_OK(stream_purge_below(connection, place.in, 1501, &err), &err);
    uint64_t const epoch = connection_epoch(connection);
    server_kill9(&fixture_server);
    CHECK_OK(server_restart(&fixture_server, &err), &err);
    atomic_store(&f.slow, false);
    CU_ASSERT(reaches(&f.last, 2010));
    CU_ASSERT(wait_epoch_above(connection, epoch)); /* received messages were delivered first */
    CU_ASSERT_FALSE(f.disorder);
    CU_ASSERT(f.count >= 520);
    ordered_reader_close(reader);
}

/* ---- streams that go back ---- */

static void delete_stream(const char *stream)
{
    char subject[TEXT_BYTES];
    put_text(subject, "$JS.API.STREAM.DELETE.%s", stream);
    CU_ASSERT_PTR_NOT_NULL(strstr(api_answer(connection, subject, ""), "\"success\":true"));
}

static void make_anew(const struct place *place)
{
    struct topology t;
    thole_error err = {0};
    struct topology_options const again = {.ns = place->t.ns, .accept_loss = true};
    delete_stream(place->hist);
    CHECK_OK(topology_ensure(connection, &again, &t, &err), &err);
}

static bool holds(const char *stream, uint64_t sequence, uint64_t stored_ns, uint64_t want_last)
{
    thole_error err = {0};
    bool good = false;
    uint64_t last = 0;
    CHECK_OK(stream_still_holds(connection, stream, sequence, stored_ns, &good, &last, &err), &err);
    CU_ASSERT_EQUAL(last, want_last);
    return good;
}

static void test_still_holds(void)
{
    struct place const place = fresh_place();
    struct following f = {0};
    thole_error err = {0};
    bool good;
    uint64_t last;
    fill_stream(connection, place.prefix, 10, 1);
    struct ordered_reader *reader = open_reader(place.hist, NULL, 0, &f);
    CU_ASSERT(reaches(&f.count, 10));
    ordered_reader_close(reader);
    uint64_t const ns = f.stored_ns; /* of the tenth */
    CU_ASSERT(ns > UINT64_C(1700000000000000000));
    CU_ASSERT(holds(place.hist, 10, ns, 10) && holds(place.hist, 10, 0, 10) && holds(place.hist, 9, 0, 10));
    CU_ASSERT(!holds(place.hist, 10, ns + 1, 10) && !holds(place.hist, 10, ns - 1, 10));
    CU_ASSERT(!holds(place.hist, 9, ns, 10) && !holds(place.hist, 11, 0, 10) &&
              !holds(place.hist, 11, ns, 10));
    fill_stream(connection, place.prefix, 5, 1);
    CU_ASSERT(holds(place.hist, 10, ns, 15));
    CHECK_OK(stream_delete(connection, place.hist, 10, &err), &err);
    CU_ASSERT(holds(place.hist, 10, ns, 15)); /* removed in good order */
    make_anew(&place);
    CU_ASSERT(!holds(place.hist, 10, ns, 0) && !holds(place.hist, 1, 0, 0));
    fill_stream(connection, place.prefix, 12, 1); /* the stream has overtaken its known end */
    CU_ASSERT_FALSE(holds(place.hist, 10, ns, 12));
    CU_ASSERT_EQUAL(stream_still_holds(connection, "NONE", 1, 0, &good, &last, &err), THOLE_NOT_FOUND);
}

static void note_lost(void *arg, bool with_connection)
{
    (void)with_connection;
    struct following *f = arg;
    atomic_fetch_add(&f->lost, 1);
}

/* The reader reports the loss once, and hands over nothing more: no later message, and none in the next
 * epoch. */
static void check_lost(const struct place *place, struct following *f,
                       void (*strike)(const struct place *place))
{
    struct ordered_reader *reader = NULL;
    thole_error err = {0};
    struct ordered_reader_options const options = {
        .stream = place->hist, .each = follow, .lost = note_lost, .arg = f};
    CHECK_OK(ordered_reader_open(connection, &options, &reader, &err), &err);
    fill_stream(connection, place->prefix, 100, 1);
    CU_ASSERT(reaches(&f->count, 100));
    CU_ASSERT_EQUAL(f->lost, 0);
    strike(place);
    fill_stream(connection, place->prefix, 10, 1);
    CU_ASSERT(reaches(&f->lost, 1));
    fill_stream(connection, place->prefix, 100, 1);
    nap_ms(300);
    CU_ASSERT(f->lost == 1 && f->count == 100 && !f->disorder);
    ordered_reader_close(reader);
    CU_ASSERT_EQUAL(f->lost, 1);
}

static void strike_consumer(const struct place *place)
{
    drop_consumers((void *)(uintptr_t)place);
}

static void strike_server(const struct place *place)
{
    thole_error err = {0};
    uint64_t const epoch = connection_epoch(connection);
    (void)place;
    server_kill9(&fixture_server);
    CHECK_OK(server_restart(&fixture_server, &err), &err);
    CU_ASSERT(wait_epoch_above(connection, epoch));
}

static void test_a_reader_that_says_so(void)
{
    void (*const strikes[])(const struct place *place) = {strike_consumer, strike_server, make_anew};
    for (size_t i = 0; i < ARRAY_LEN(strikes); i++) {
        struct place const place = fresh_place();
        struct following f = {0};
        check_lost(&place, &f, strikes[i]);
    }
    struct following f = {0};
    struct ordered_reader *reader = NULL;
    thole_error err = {0};
    struct ordered_reader_options const options = {
        .stream = "NONE", .each = follow, .lost = note_lost, .arg = &f};
    CU_ASSERT_EQUAL(ordered_reader_open(connection, &options, &reader, &err), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(f.lost, 0);
}

/* A reader of the newest message of each subject goes on in a stream that begins again at 1. */
static void test_a_bucket_that_is_made_anew(void)
{
    struct place const place = fresh_place();
    struct following f = {0};
    struct ordered_reader *reader = NULL;
    thole_error err = {0};
    fill_stream(connection, place.prefix, 100, 2);
    struct ordered_reader_options const options = {
        .stream = place.hist, .last_per_subject = true, .each = follow, .arg = &f};
    CHECK_OK(ordered_reader_open(connection, &options, &reader, &err), &err);
    CU_ASSERT(reaches(&f.count, 2));
    CU_ASSERT(f.last == 100 && !f.disorder);
    make_anew(&place);
    fill_stream(connection, place.prefix, 10, 2);
    CU_ASSERT(reaches(&f.count, 4));
    CU_ASSERT_EQUAL(f.last, 10);
    fill_stream(connection, place.prefix, 10, 2);
    CU_ASSERT(reaches(&f.count, 14));
    CU_ASSERT_EQUAL(f.last, 20);
    ordered_reader_close(reader);
}

/* ---- nodes ---- */

struct watched {
    atomic_ulong count;
    char text[1024];
};

static void watch_node(void *arg, thole_slice node, thole_slice heartbeat, uint64_t stored_ns)
{
    struct watched *watched = arg;
    CU_ASSERT(stored_ns > 0);
    size_t const len = strlen(watched->text);
    snprintf(watched->text + len, sizeof watched->text - len, "%.*s=%.*s ", THOLE_FMT(node),
             THOLE_FMT(heartbeat));
    atomic_fetch_add(&watched->count, 1);
}

static void test_nodes(void)
{
    struct topology const t = fresh_topology(connection, 1);
    struct watched early = {0}, late = {0};
    struct nodes_watch *a = NULL, *b = NULL;
    thole_error err = {0};
    CHECK_OK(nodes_watch_open(connection, t.ns, watch_node, &early, &a, &err), &err);
    CHECK_OK(nodes_put(connection, t.ns, THOLE_STR("n1"), THOLE_STR("x"), &err), &err);
    CU_ASSERT(reaches(&early.count, 1)); /* a message overwritten before it was read is not seen */
    CHECK_OK(nodes_put(connection, t.ns, THOLE_STR("n2"), THOLE_STR("y"), &err), &err);
    CU_ASSERT(reaches(&early.count, 2));
    CHECK_OK(nodes_put(connection, t.ns, THOLE_STR("n1"), THOLE_STR("z"), &err), &err);
    CHECK_OK(nodes_delete(connection, t.ns, THOLE_STR("n2"), &err), &err);
    CU_ASSERT(reaches(&early.count, 4));
    CHECK_STR("all changes", early.text, "n1=x n2=y n1=z n2= ");
    CHECK_OK(nodes_watch_open(connection, t.ns, watch_node, &late, &b, &err), &err);
    CU_ASSERT(reaches(&late.count, 2));
    CHECK_STR("what is current", late.text, "n1=z n2= ");
    server_kill9(&fixture_server);
    CU_ASSERT_EQUAL(nodes_put(connection, t.ns, THOLE_STR("n1"), THOLE_STR("x"), &err), THOLE_UNAVAILABLE);
    CHECK_OK(server_restart(&fixture_server, &err), &err);
    while (nodes_put(connection, t.ns, THOLE_STR("n3"), THOLE_STR("w"), &err) != THOLE_OK)
        nap_ms(10);
    CU_ASSERT(reaches(&early.count, 7) && reaches(&late.count, 5));
    CHECK_STR("after a restart", late.text, "n1=z n2= n1=z n2= n3=w ");
    CU_ASSERT_EQUAL(nodes_put(connection, t.ns, THOLE_STR("a.b"), THOLE_STR("x"), &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(nodes_put(connection, "a b", THOLE_STR("n"), THOLE_STR("x"), &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(nodes_put(connection, "nosuch", THOLE_STR("n"), THOLE_STR("x"), &err), THOLE_UNAVAILABLE);
    CU_ASSERT_EQUAL(nodes_watch_open(connection, "nosuch", watch_node, &late, &a, &err), THOLE_NOT_FOUND);
    nodes_watch_close(a);
    nodes_watch_close(b);
    nodes_watch_close(NULL);
}

static void test_open(void)
{
    connection = connect_here();
}

static void test_close(void)
{
    connection_close(connection);
}

static const struct thole_test tests[] = {
    {"connect", test_open},
    {"bounds", test_bounds},
    {"the last message of a subject", test_last_by_subject},
    {"all subjects", test_all_subjects},
    {"answers with a message", test_get_answers},
    {"reads of ranges", test_read_ranges},
    {"reads over gaps", test_read_over_gaps},
    {"messages that come meanwhile", test_messages_that_come_meanwhile},
    {"a consumer that vanishes", test_a_consumer_that_vanishes},
    {"purges", test_purge_below},
    {"the ordered reader", test_ordered_reader},
    {"its consumer is removed", test_its_consumer_is_removed},
    {"no reading after close", test_no_reading_after_close},
    {"a reader whose consumer is deleted", test_a_reader_whose_consumer_is_deleted},
    {"three kill -9 and a purge every 100 ms", test_three_kill9_and_a_purge_every_100_ms},
    {"the next sequence was purged", test_the_next_sequence_was_purged},
    {"a stream that still holds what was seen", test_still_holds},
    {"a reader that says so", test_a_reader_that_says_so},
    {"a bucket that is made anew", test_a_bucket_that_is_made_anew},
    {"nodes", test_nodes},
    {"close", test_close},
};
FIXTURE_MAIN("readers", tests)
