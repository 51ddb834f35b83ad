/* The requests of a loader's thread to the streams for each kind of load, and the result of each call that
 * fails: loads.transcript has a line for each load ("$ …"), which is run once with all calls answered, and
 * then once for each of its calls, which fails. With THOLE_WRITE_TRANSCRIPT=1 in the environment the file is
 * written again, to be read and committed. */
#include "event.h"
#include "reader.h"
#include "subject_list.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "wrap_log_fits.h"
#include "wrap_mutexes.h"
#include "wrap_shard_world.h"
#include <inttypes.h>
#include <stdlib.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/engine_role/loads.transcript"
enum { P = 3, LARGE = 900 * 1000 };

static struct {
    FILE *said;
    size_t calls, refused; /* the n-th call fails; 0: none */
    bool gone_back;
    const struct buf *deleted; /* the last record of a deletion; NULL: there is none */
    uint64_t last;             /* of the log */
} play;

/* ---- the streams ---- */

static thole_status called(thole_error *reterr)
{
    if (++play.calls == play.refused)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "call %zu fails", play.calls);
    return THOLE_OK;
}

thole_status __wrap_stream_bounds(struct connection *connection, const char *stream,
                                  struct stream_bounds *ret, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "    bounds of %s\n", stream);
    *ret = (struct stream_bounds){.first = 5, .last = play.last, .messages = 8};
    return called(reterr);
}

thole_status __wrap_stream_last_by_subject(struct connection *connection, const char *stream,
                                           const char *subject, uint64_t *ret_sequence, struct buf *ret_body,
                                           thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "    last of %s %s\n", stream, subject);
    *ret_sequence = play.deleted == NULL ? 0 : 6;
    if (play.deleted != NULL)
        buf_slice(ret_body, buf_bytes(play.deleted));
    return called(reterr);
}

thole_status __wrap_stream_read(struct connection *connection, const char *stream, const char *filter,
                                uint64_t from, uint64_t to, stream_read_fn *each, void *arg,
                                thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "    reads %s %s from %" PRIu64 " to %" PRIu64 "\n", stream,
                  filter == NULL ? "-" : filter, from, to);
    for (uint64_t i = 0; i < 3; i++) {
        char subject[100];
        (void)snprintf(subject, sizeof subject, "thole.shop.hist.3.order.%" PRIu64, 1 + i);
        THOLE_TRY(each(arg, 10 + i, thole_slice_from(subject), THOLE_STR("bytes")));
    }
    return called(reterr);
}

thole_status __wrap_stream_delete_all(struct connection *connection, const char *stream,
                                      const uint64_t *sequences, size_t n, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "    deletes of %s:", stream);
    for (size_t i = 0; i < n; i++)
        (void)fprintf(play.said, " %" PRIu64, sequences[i]);
    (void)fprintf(play.said, "\n");
    return called(reterr);
}

thole_status __wrap_stream_subjects(struct connection *connection, const char *stream, uint64_t since,
                                    size_t most, stream_subject_fn *each, void *arg, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "    subjects of %s since %" PRIu64 ", %zu at most\n", stream, since, most);
    each(arg, THOLE_STR("thole.shop.hist.3.order.1"));
    return called(reterr);
}

thole_status __wrap_stream_next(struct connection *connection, const char *stream, uint64_t from,
                                uint64_t *ret_sequence, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "    next of %s at %" PRIu64 "\n", stream, from);
    *ret_sequence = from + 2;
    return called(reterr);
}

thole_status __wrap_stream_purge_below(struct connection *connection, const char *stream, uint64_t sequence,
                                       thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "    purges %s below %" PRIu64 "\n", stream, sequence);
    return called(reterr);
}

thole_status __wrap_stream_still_holds(struct connection *connection, const char *stream, uint64_t sequence,
                                       uint64_t stored_ns, bool *ret, uint64_t *ret_last, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "    does %s hold %" PRIu64 " of %" PRIu64 "\n", stream, sequence, stored_ns);
    *ret = !play.gone_back;
    *ret_last = 4;
    return called(reterr);
}

thole_status __wrap_ordered_reader_open(struct connection *connection,
                                        const struct ordered_reader_options *options,
                                        struct ordered_reader **ret, thole_error *reterr)
{
    (void)connection;
    CU_ASSERT_PTR_NOT_NULL(options->lost);
    (void)fprintf(play.said, "    opens a reader of %s %s from %" PRIu64 "\n", options->stream,
                  options->filter == NULL ? "-" : options->filter, options->from);
    *ret = NULL;
    return called(reterr);
}

void __wrap_ordered_reader_close(struct ordered_reader *reader)
{
    (void)reader;
    (void)fprintf(play.said, "    closes a reader\n");
}

thole_status __wrap_crashes_read(struct connection *connection, const char *ns, uint32_t p, crashes_fn *each,
                                 void *arg, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "    reads the crashes of %s %u\n", ns, p);
    struct crash_entry const entry = {
        .instance = THOLE_STR("order"), .count = 3, .execution = 2, .text = THOLE_STR("signal 11")};
    THOLE_TRY(each(arg, &entry));
    return called(reterr);
}

thole_status __wrap_crashes_put(struct connection *connection, const char *ns, uint32_t p,
                                const struct crash_entry *entry, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "    puts a crash of %s %u %.*s\n", ns, p, THOLE_FMT(entry->instance));
    return called(reterr);
}

thole_status __wrap_crashes_remove(struct connection *connection, const char *ns, uint32_t p,
                                   thole_slice instance, thole_error *reterr)
{
    (void)connection;
    (void)fprintf(play.said, "    removes the crashes of %s %u %.*s\n", ns, p, THOLE_FMT(instance));
    return called(reterr);
}

/* ---- the requests ---- */

static void of_history(struct request *request)
{
    request->history = (struct asked_history){.instance = THOLE_STR("order"), .execution = 4, .to = 30};
}

static void of_first_execution(struct request *request)
{
    request->history = (struct asked_history){.instance = THOLE_STR("order"), .execution = 1, .to = 30};
}

static void of_one_execution(struct request *request)
{
    request->history =
        (struct asked_history){.instance = THOLE_STR("order"), .execution = 2, .to = 30, .only = true};
}

static void of_log(struct request *request)
{
    request->log = (struct out_read_log){.from = 7, .to = 99};
}

static void of_tail(struct request *request)
{
    request->tail.of = (struct out_read_tail){.count = 2};
}

static void of_deletion(struct request *request)
{
    static const uint64_t sequences[] = {7, 9};
    request->deletion =
        (struct out_delete_records){.expected_last = 12, .sequences = sequences, .sequences_len = 2};
}

static void of_ids(struct request *request)
{
    request->ids = (struct out_read_ids){.since = 3, .most = 40};
}

static void of_inbox(struct request *request)
{
    request->inbox = (struct asked_inbox){.from = 6, .count = 5, .seen = {.sequence = 2, .stored_ns = 77}};
}

static void of_inbox_unseen(struct request *request)
{
    request->inbox = (struct asked_inbox){.from = 6, .count = 5};
}

static void of_input(struct request *request)
{
    request->find.activity =
        (struct batch_activity){.instance = THOLE_STR("order"), .execution = 2, .activity_id = 3};
}

static void of_crash(struct request *request)
{
    request->crash = (struct crash_entry){.instance = THOLE_STR("order")};
}

static const struct {
    const char *name;
    enum request_kind kind;
    void (*asks)(struct request *request);
} loads[] = {{"the tail", REQ_READ_TAIL, of_tail},
             {"the log", REQ_READ_LOG, of_log},
             {"void records", REQ_DELETE_RECORDS, of_deletion},
             {"a history", REQ_LOAD, of_history},
             {"a first execution", REQ_LOAD, of_first_execution},
             {"one execution", REQ_LOAD, of_one_execution},
             {"ids", REQ_READ_IDS, of_ids},
             {"an input", REQ_FIND_INPUT, of_input},
             {"the inbox is opened", REQ_OPEN_INBOX, of_inbox},
             {"an unread inbox is opened", REQ_OPEN_INBOX, of_inbox_unseen},
             {"a look at the inbox", REQ_LOOK_INBOX, of_inbox},
             {"the inbox is purged", REQ_PURGE_INBOX, of_inbox},
             {"results", REQ_READ_RESULTS, of_inbox},
             {"crashes", REQ_READ_CRASHES, of_crash},
             {"a crash is put", REQ_PUT_CRASH, of_crash},
             {"crashes are forgotten", REQ_FORGET_CRASHES, of_crash}};

/* ---- the lines ---- */

static void say_answer(const struct request *request)
{
    if (request->kind == REQ_OPEN_INBOX || request->kind == REQ_PURGE_INBOX)
        (void)fprintf(play.said, ", reader %d, gone back %d", request->inbox.reader != NULL,
                      request->inbox.gone_back);
    if (request->kind == REQ_LOOK_INBOX)
        (void)fprintf(play.said, ", found %" PRIu64, request->inbox.found);
    if (request->kind == REQ_READ_IDS)
        (void)fprintf(play.said, ", %zu ids", request->in.ids.hashes_len);
    if (request->kind == REQ_LOAD)
        (void)fprintf(play.said, ", %zu records", request->in.history.records_len);
    if (request->kind == REQ_READ_CRASHES && request->in.crashes.crashes_len == 1)
        (void)fprintf(play.said, ", a crash of %.*s: %.*s, %" PRIu64 " times, execution %" PRIu64,
                      THOLE_FMT(request->in.crashes.crashes[0].instance),
                      THOLE_FMT(request->in.crashes.crashes[0].text), request->in.crashes.crashes[0].count,
                      request->in.crashes.crashes[0].execution);
}

/* The number of its calls. */
static size_t load(size_t which, size_t refused)
{
    struct request *const request = request_create(loads[which].kind, &world.shard, &world.owned);
    play.calls = 0;
    play.refused = refused;
    loads[which].asks(request);
    thole_status const status = request_rules[request->kind].load(&world.engine, request);
    (void)fprintf(play.said, "    = %s", thole_status_name(status));
    if (status == THOLE_OK)
        say_answer(request);
    else
        (void)fprintf(play.said, ": %s", request_error_text(request));
    (void)fprintf(play.said, "\n");
    if (request->kind == REQ_OPEN_INBOX)
        inbox_reader_close(request->inbox.reader);
    request_destroy(request);
    return play.calls;
}

static void begin(FILE *to)
{
    static const thole_program program;
    memset(&play, 0, sizeof play);
    play.said = to;
    play.last = 12;
    shard_world_begin(request_rules);
    (void)snprintf(world.engine.topology.ns, sizeof world.engine.topology.ns, "shop");
    world.engine.program = &program;
    world.engine.topology.partitions = 8;
    world.engine.shards_len = 4;
    world.shard.index = P;
    world.owned.p = P;
    world.owned.hist_stream = (char *)"HIST";
    world.owned.in_stream = (char *)"IN";
    pthread_mutex_init(&world.shard.backlog.lock, NULL);
    pthread_cond_init(&world.shard.backlog.room, NULL);
}

static void play_line(const char *line, FILE *to)
{
    begin(to);
    const char *const suffix = strstr(line, ", ");
    size_t const len = suffix == NULL ? strlen(line) : (size_t)(suffix - line);
    play.gone_back = suffix != NULL && strcmp(suffix, ", which went back") == 0;
    if (suffix != NULL && strcmp(suffix, ", which a rival wrote to") == 0)
        play.last++;
    for (size_t i = 0; i < ARRAY_LEN(loads); i++)
        if (strlen(loads[i].name) == len && strncmp(loads[i].name, line, len) == 0) {
            (void)fprintf(to, "  all is answered\n");
            size_t const calls = load(i, 0);
            for (size_t n = 1; n <= calls; n++) {
                (void)fprintf(to, "  call %zu fails\n", n);
                (void)load(i, n);
            }
            return;
        }
    CU_FAIL("no such load");
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

static void test_heap(void)
{
    transcript_check_heap(TRANSCRIPT, play_line);
}

/* The record of a deletion may be as large as any, and need not be one that this release understands. */
static void test_a_large_deletion(void)
{
    static uint8_t data[LARGE];
    FILE *const nowhere = fopen("/dev/null", "we");
    struct buf body;
    struct event event = {.kind = EVENT_COMPLETED, .id = 1, .data = {data, sizeof data}};
    struct record const record = {
        .kind = RECORD_TURN,
        .epoch = 1,
        .n = 1,
        .turn = {
            .instance = THOLE_STR("order"), .execution = 1, .number = 1, .events = &event, .events_len = 1}};
    begin(nowhere);
    buf_init(&body, RECORD_BYTES_MAX);
    CU_ASSERT_EQUAL_FATAL(record_encode(&record, &body), THOLE_OK);
    play.deleted = &body;
    CU_ASSERT_EQUAL(load(3, 0), 2);
    struct request *const request = request_create(REQ_LOAD, &world.shard, &world.owned);
    of_history(request);
    CU_ASSERT_EQUAL(history_load_records(&world.engine, request), THOLE_OK);
    request_destroy(request);
    buf_release(&body);
    (void)fclose(nowhere);
}

static const struct thole_test tests[] = {
    {"transcript", test_transcript}, {"heap", test_heap}, {"a large deletion", test_a_large_deletion}};
THOLE_TEST_MAIN("loads", tests)
