/* When the engine role asks for what no worker reports on, and what it does with the answers. */
#include "reader.h"
#include "said.h"
#include "thole_cunit.h"
#include "wrap_shard_world.h"
#include "wrap_submitted.h"
#include <malloc.h>
#include <stdlib.h>

enum { SWEEP_MS = 8000, AGAIN_MS = 1000, SLACK_MS = 520, NOW_MS = WORLD_NOW_MS };

static struct {
    enum partition_state state;
    size_t open_activities;
    size_t aside;
    enum work_seen seen; /* the answer of the look for work */
    char digest[8];      /* the digest that it compares with */
} play;

/* ---- the world ---- */

enum partition_state __wrap_partition_state(const struct partition *p)
{
    (void)p;
    return play.state;
}

size_t __wrap_partition_open_activities(const struct partition *p)
{
    (void)p;
    return play.open_activities;
}

struct rows_owner __wrap_request_owner(const struct owned *owned)
{
    return (struct rows_owner){.partition = owned->p, .epoch = 7};
}

void __wrap_request_put_aside(struct request *request)
{
    play.aside++;
    request_submit(request);
}

enum work_seen __wrap_work_look_reply(struct owned *owned, const struct request *request, thole_slice digest,
                                      uint64_t *ret_sequence)
{
    (void)owned, (void)request;
    (void)snprintf(play.digest, sizeof play.digest, "%.*s", THOLE_FMT(digest));
    *ret_sequence = play.seen == WORK_THERE || play.seen == WORK_FORGED ? 17 : 0;
    return play.seen;
}

static struct said said;

void __wrap_notice_cancel(struct shard *shard, const struct cancel_notice *notice)
{
    CU_ASSERT_PTR_EQUAL(shard, &world.shard);
    said_add(&said, "%.*s#%llu try %u %.*s%.*s:", THOLE_FMT(notice->instance),
             (unsigned long long)notice->execution, notice->try_number, THOLE_FMT(notice->kind),
             THOLE_FMT(notice->reason));
    for (size_t i = 0; i < notice->activity_ids_len; i++)
        said_add(&said, " %llu", (unsigned long long)notice->activity_ids[i]);
    said_add(&said, "|");
}

static void begin(void)
{
    said_clear(&said);
    memset(&play, 0, sizeof play);
    shard_world_begin(request_rules);
    play.state = PARTITION_OPEN;
    play.open_activities = 1;
    play.seen = WORK_MISSING;
    world.engine.options.sweep_ms = SWEEP_MS;
}

static void end(void)
{
    submitted_clear();
}

static void run_at(uint64_t now_ms)
{
    world.now_ms = now_ms;
    sweeper_run(&world.shard, &world.owned, now_ms);
}

static struct request *fails(struct request *request)
{
    request->status = THOLE_UNAVAILABLE;
    (void)thole_fail(request_error(request), THOLE_UNAVAILABLE, "Postgres is away");
    return request;
}

/* ---- orphans ---- */

static void test_when_orphans_are_asked_for(void)
{
    begin();
    run_at(NOW_MS);
    CU_ASSERT_EQUAL(sweeper_deadline_ms(&world.owned), NOW_MS + SWEEP_MS);
    run_at(NOW_MS + SWEEP_MS - 1);
    CU_ASSERT_EQUAL(submitted.len, 0);
    run_at(NOW_MS + SWEEP_MS);
    struct request *const request = submitted_last(REQ_FIND_ORPHANS);
    CU_ASSERT_EQUAL(sweeper_deadline_ms(&world.owned), UINT64_MAX);
    run_at(NOW_MS + 3 * SWEEP_MS); /* one at a time */
    CU_ASSERT_EQUAL(submitted.len, 1);
    request->orphans.next_in_ms = 5000;
    orphans_answered(&world.owned, request);
    CU_ASSERT_EQUAL(sweeper_deadline_ms(&world.owned), NOW_MS + 3 * SWEEP_MS + 5020);
    play.open_activities = 0;
    run_at(NOW_MS + 9 * SWEEP_MS);
    CU_ASSERT_EQUAL(sweeper_deadline_ms(&world.owned), UINT64_MAX);
    CU_ASSERT_EQUAL(submitted.len, 1);
    end();
}

static void test_when_the_next_sweep_is(void)
{
    static const struct {
        uint64_t next_in_ms;
        bool fails;
        uint64_t pause_ms;
    } rows[] = {
        {0, false, SWEEP_MS / 4},    {1000, false, SWEEP_MS / 4},   {SWEEP_MS - 1, false, SWEEP_MS + 19},
        {SWEEP_MS, false, SWEEP_MS}, {UINT64_MAX, false, SWEEP_MS}, {UINT64_MAX, true, AGAIN_MS}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        sweeper_opened(&world.owned);
        run_at(NOW_MS);
        struct request *const request = submitted_last(REQ_FIND_ORPHANS);
        request->orphans.next_in_ms = rows[i].next_in_ms;
        request->orphans.waiting_ms = 77;
        world.owned.sweeps.waiting_ms = 5; /* as the last one said */
        orphans_answered(&world.owned, rows[i].fails ? fails(request) : request);
        CU_ASSERT_EQUAL(sweeper_deadline_ms(&world.owned), NOW_MS + rows[i].pause_ms);
        CU_ASSERT_EQUAL(world.owned.sweeps.waiting_ms, rows[i].fails ? 5 : 77);
        CU_ASSERT_FALSE(world.owned.sweeps.sweeping);
        play.open_activities = 0;
        run_at(NOW_MS + 9 * SWEEP_MS);
        CU_ASSERT_EQUAL(world.owned.sweeps.waiting_ms, 0); /* nothing is open that could wait */
        end();
    }
}

static void answer_orphan(void)
{
    static struct batch_activity row = {.instance = {(const uint8_t *)"order", 5},
                                        .queue = {(const uint8_t *)"q", 1},
                                        .activity = {(const uint8_t *)"charge", 6},
                                        .digest = {(const uint8_t *)"sha", 3},
                                        .execution = 2,
                                        .activity_id = 9,
                                        .try_number = 3};
    sweeper_opened(&world.owned);
    run_at(NOW_MS);
    struct request *const request = submitted_last(REQ_FIND_ORPHANS);
    request->orphans.rows = &row;
    request->orphans.rows_len = 1;
    orphans_answered(&world.owned, request);
}

/* Each step, up to the message. */
static void check_queued_again(enum work_seen seen)
{
    begin();
    play.seen = seen;
    answer_orphan();
    CU_ASSERT_EQUAL(play.aside, 1); /* of thousands none is in front of what is new */
    find_work_answered(&world.owned, submitted_last(REQ_FIND_WORK));
    CHECK_STR("compares with the row's", play.digest, "sha");
    struct request *const find = submitted_last(REQ_FIND_INPUT);
    find->find.found = true;
    find->find.input = THOLE_STR("12 EUR");
    find_input_answered(&world.owned, find);
    const struct work_item *const item = &submitted_last(REQ_REQUEUE)->work.item;
    CU_ASSERT_TRUE(thole_slice_equal(item->input, THOLE_STR("12 EUR")));
    CU_ASSERT_TRUE(thole_slice_equal(item->instance, THOLE_STR("order")));
    CU_ASSERT_TRUE(thole_slice_equal(item->queue, THOLE_STR("q")));
    CU_ASSERT_TRUE(thole_slice_equal(item->activity, THOLE_STR("charge")));
    CU_ASSERT_EQUAL(item->execution, 2);
    CU_ASSERT_EQUAL(item->activity_id, 9);
    CU_ASSERT_EQUAL(item->try_number, 3);
    end();
}

static void test_an_orphan_is_queued_again(void)
{
    check_queued_again(WORK_MISSING);
    check_queued_again(WORK_FORGED);
}

/* The message exists, or its state is unknown, or the history does not have it. */
static void test_an_orphan_that_is_left_alone(void)
{
    begin();
    answer_orphan();
    struct request *const look = submitted_last(REQ_FIND_WORK);
    size_t const before = submitted.len;
    play.seen = WORK_THERE;
    find_work_answered(&world.owned, look);
    play.seen = WORK_UNKNOWN;
    find_work_answered(&world.owned, look);
    CU_ASSERT_EQUAL(submitted.len, before);
    play.seen = WORK_MISSING;
    find_work_answered(&world.owned, look);
    find_input_answered(&world.owned, submitted_last(REQ_FIND_INPUT));
    CU_ASSERT_EQUAL(submitted.len, before + 1);
    end();
}

/* Whoever has the partition now may have ended the activity: it must not be queued once more. */
static void test_an_orphan_of_an_earlier_life(void)
{
    begin();
    answer_orphan();
    struct request *const look = submitted_last(REQ_FIND_WORK);
    find_work_answered(&world.owned, look);
    struct request *const find = submitted_last(REQ_FIND_INPUT);
    find->find.found = true;
    size_t const before = submitted.len;
    world.generation++;
    find_work_answered(&world.owned, look);
    find_input_answered(&world.owned, find);
    CU_ASSERT_EQUAL(submitted.len, before);
    end();

    begin();
    sweeper_opened(&world.owned);
    run_at(NOW_MS);
    struct request *const sweep = submitted_last(REQ_FIND_ORPHANS);
    struct batch_activity row = {.instance = THOLE_STR("order")};
    sweep->orphans.rows = &row;
    sweep->orphans.rows_len = 1;
    world.generation++;
    orphans_answered(&world.owned, sweep);
    CU_ASSERT_EQUAL(submitted.len, 1);
    run_at(NOW_MS + SWEEP_MS); /* and the new one asks for itself */
    (void)submitted_last(REQ_FIND_ORPHANS);
    CU_ASSERT_EQUAL(submitted.len, 2);
    end();
}

/* ---- the input of an orphan ---- */

/* Freed memory changes; small blocks are kept by their thread as they are. */
enum { PERTURB = 0x5a, INPUT_BYTES = 4000 };
static char long_input[INPUT_BYTES + 1];
static bool newest_has_it;

static struct {
    const char *fails; /* NULL: nothing */
    bool newest;       /* only in the newest record */
    char subject[64];
    thole_status status; /* of the record's callback */
    unsigned records;
} history;

thole_status __wrap_stream_bounds(struct connection *connection, const char *stream,
                                  struct stream_bounds *ret, thole_error *reterr)
{
    (void)connection;
    CHECK_STR("stream", stream, "HIST");
    if (history.fails != NULL && strcmp(history.fails, "bounds") == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no bounds");
    *ret = (struct stream_bounds){.first = 3, .last = 42};
    return THOLE_OK;
}

static struct record turn_of(uint64_t execution, const struct event *events, size_t n)
{
    return (struct record){.kind = RECORD_TURN,
                           .epoch = 1,
                           .n = 1,
                           .turn = {.instance = THOLE_STR("order"),
                                    .execution = execution,
                                    .number = 1,
                                    .ran = true,
                                    .events = events,
                                    .events_len = n}};
}

static void give_turn(stream_read_fn *each, void *arg, uint64_t execution, const struct event *events,
                      size_t n)
{
    struct record const record = turn_of(execution, events, n);
    struct buf body;
    buf_init(&body, RECORD_BYTES_MAX);
    CU_ASSERT_EQUAL_FATAL(record_encode(&record, &body), THOLE_OK);
    history.status = each(arg, ++history.records, THOLE_STR("subject"), buf_bytes(&body));
    memset((void *)(uintptr_t)buf_bytes(&body).ptr, PERTURB, body.len); /* the reader's again */
    buf_release(&body);
}

static struct event scheduled(uint64_t id, const char *input)
{
    return (struct event){.kind = EVENT_ACTIVITY_SCHEDULED,
                          .id = id,
                          .name = THOLE_STR("charge"),
                          .queue = THOLE_STR("q"),
                          .data = thole_slice_from(input)};
}

/* Of what waits for the activity it is the newest record. */
thole_status __wrap_stream_last_by_subject(struct connection *connection, const char *stream,
                                           const char *subject, uint64_t *ret_sequence, struct buf *ret_body,
                                           thole_error *reterr)
{
    (void)connection;
    CHECK_STR("stream", stream, "HIST");
    CHECK_STR("subject", subject, "thole.s.hist.0.order.2");
    if (history.fails != NULL && strcmp(history.fails, "newest") == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no newest");
    struct event const its[] = {scheduled(8, "of another activity"),
                                scheduled(history.newest ? 9 : 10, long_input)};
    struct record const record = turn_of(2, its, ARRAY_LEN(its));
    *ret_sequence = 41;
    buf_clear(ret_body);
    return record_encode(&record, ret_body);
}

/* Records other than the activity's scheduling come too: of another execution, of another id, of another
 * kind. */
thole_status __wrap_stream_read(struct connection *connection, const char *stream, const char *filter,
                                uint64_t from, uint64_t to, stream_read_fn *each, void *arg,
                                thole_error *reterr)
{
    (void)connection;
    CHECK_STR("stream", stream, "HIST");
    CU_ASSERT_EQUAL(from, 1);
    CU_ASSERT_EQUAL(to, 42);
    (void)snprintf(history.subject, sizeof history.subject, "%s", filter);
    struct event const other = scheduled(9, "of another execution");
    struct event const events[] = {scheduled(8, "of another activity"),
                                   {.kind = EVENT_TIMER_CREATED, .id = 9, .due_ms = 5000},
                                   scheduled(10, "of the next")};
    struct event const its[] = {scheduled(8, "of another activity"), scheduled(9, long_input)};
    give_turn(each, arg, 1, &other, 1);
    give_turn(each, arg, 2, events, ARRAY_LEN(events));
    CU_ASSERT_EQUAL(each(arg, 7, THOLE_STR("subject"), THOLE_STR("garbage")), THOLE_OK);
    if (history.fails != NULL && strcmp(history.fails, "unknown") != 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no records");
    if (history.fails == NULL)
        give_turn(each, arg, 2, its, ARRAY_LEN(its));
    return history.status;
}

static struct request *load_input(const char *fails, thole_status want)
{
    begin();
    world.owned.hist_stream = (char *)"HIST";
    world.engine.topology.ns[0] = 's';
    memset(&history, 0, sizeof history);
    history.fails = fails;
    history.newest = newest_has_it;
    answer_orphan();
    find_work_answered(&world.owned, submitted_last(REQ_FIND_WORK));
    struct request *const find = submitted_last(REQ_FIND_INPUT);
    (void)mallopt(M_PERTURB, PERTURB);
    CU_ASSERT_EQUAL(find_input_load(&world.engine, find), want);
    (void)mallopt(M_PERTURB, 0);
    return find;
}

/* The input is the request's own: the record read is freed. */
static void test_its_input_is_read(void)
{
    memset(long_input, 'i', INPUT_BYTES);
    struct request *const find = load_input(NULL, THOLE_OK);
    CHECK_STR("subject", history.subject, "thole.s.hist.0.order.2");
    CU_ASSERT_TRUE(find->find.found);
    CU_ASSERT_TRUE(thole_slice_equal(find->find.input, thole_slice_from(long_input)));
    end();
}

/* Then nothing else is read. */
static void test_its_input_is_in_the_newest_record(void)
{
    memset(long_input, 'i', INPUT_BYTES);
    newest_has_it = true;
    struct request *const find = load_input("bounds", THOLE_OK);
    newest_has_it = false;
    CU_ASSERT_TRUE(find->find.found);
    CU_ASSERT_TRUE(thole_slice_equal(find->find.input, thole_slice_from(long_input)));
    CHECK_STR("not asked", history.subject, "");
    end();
}

static void test_its_input_is_not_there(void)
{
    CU_ASSERT_FALSE(load_input("unknown", THOLE_OK)->find.found);
    end();
    CHECK_STR("why", request_error_text(load_input("newest", THOLE_UNAVAILABLE)), "no newest");
    end();
    CHECK_STR("why", request_error_text(load_input("bounds", THOLE_UNAVAILABLE)), "no bounds");
    CHECK_STR("not asked", history.subject, "");
    end();
    CHECK_STR("why", request_error_text(load_input("records", THOLE_UNAVAILABLE)), "no records");
    end();
}

/* ---- deadlines ---- */

static void expire_at(uint64_t in_ms)
{
    play.open_activities = 0;
    sweeper_expect(&world.owned, in_ms);
    run_at(NOW_MS + in_ms + SLACK_MS);
}

static void test_when_deadlines_are_looked_at(void)
{
    begin();
    play.open_activities = 0;
    sweeper_expect(&world.owned, UINT64_MAX);
    CU_ASSERT_EQUAL(sweeper_deadline_ms(&world.owned), UINT64_MAX);
    sweeper_expect(&world.owned, 3000);
    sweeper_expect(&world.owned, 2000);
    sweeper_expect(&world.owned, 4000);
    CU_ASSERT_EQUAL(sweeper_deadline_ms(&world.owned), NOW_MS + 2000 + SLACK_MS);
    run_at(NOW_MS + 2000 + SLACK_MS - 1);
    CU_ASSERT_EQUAL(submitted.len, 0);
    run_at(NOW_MS + 2000 + SLACK_MS);
    struct request *const request = submitted_last(REQ_EXPIRE);
    sweeper_expect(&world.owned, 0);
    run_at(NOW_MS + 20000); /* one at a time */
    CU_ASSERT_EQUAL(submitted.len, 1);
    request->expiry.deadline_in_ms = UINT64_MAX;
    expiry_answered(&world.owned, request);
    run_at(NOW_MS + 20000); /* rows expected meanwhile */
    CU_ASSERT_EQUAL(submitted.len, 2);
    end();
}

static void test_after_a_look_at_deadlines(void)
{
    begin();
    expire_at(2000);
    struct request *const request = submitted_last(REQ_EXPIRE);
    request->expiry.deadline_in_ms = 700;
    expiry_answered(&world.owned, request);
    CU_ASSERT_EQUAL(sweeper_deadline_ms(&world.owned), world.now_ms + 700 + SLACK_MS);
    end();
}

/* Their workers may still run them. */
static void test_whom_a_deadline_is_told(void)
{
    struct expired_try expired[] = {
        {.row = {.instance = THOLE_STR("a"), .execution = 2, .activity_id = 3, .try_number = 4}},
        {.row = {.instance = THOLE_STR("b"), .execution = 5, .activity_id = 6, .try_number = 7}}};
    begin();
    expire_at(2000);
    struct request *const request = submitted_last(REQ_EXPIRE);
    CU_ASSERT_EQUAL(request->expiry.slack_ms, SLACK_MS - 20);
    request->expiry.expired = expired;
    request->expiry.expired_len = ARRAY_LEN(expired);
    expiry_answered(&world.owned, request);
    said_check(&said, "pushes", "a#2 try 4 timeout: 3|b#5 try 7 timeout: 6|");
    expire_at(9000);
    submitted_last(REQ_EXPIRE)->expiry.expired_len = 0;
    expiry_answered(&world.owned, submitted_last(REQ_EXPIRE));
    said_check(&said, "none", "");
    end();
}

/* Without a worker that lives nobody else ends those tries: it must come again. */
static void test_a_look_at_deadlines_that_failed(void)
{
    begin();
    expire_at(2000);
    expiry_answered(&world.owned, fails(submitted_last(REQ_EXPIRE)));
    CU_ASSERT_EQUAL(sweeper_deadline_ms(&world.owned), world.now_ms + AGAIN_MS);
    run_at(world.now_ms + AGAIN_MS);
    CU_ASSERT_EQUAL(submitted.len, 2);
    end();

    begin(); /* of an earlier life, too: what this one expects was put off until it is answered */
    expire_at(2000);
    world.generation++;
    expiry_answered(&world.owned, fails(submitted_last(REQ_EXPIRE)));
    CU_ASSERT_EQUAL(sweeper_deadline_ms(&world.owned), world.now_ms + AGAIN_MS);
    end();
}

static void test_what_is_not_open_asks_nothing(void)
{
    begin();
    sweeper_opened(&world.owned);
    sweeper_expect(&world.owned, 0);
    play.state = PARTITION_CLOSED;
    run_at(NOW_MS + SWEEP_MS);
    CU_ASSERT_EQUAL(submitted.len, 0);
    CU_ASSERT_EQUAL(sweeper_deadline_ms(&world.owned), UINT64_MAX);
    end();
}

static const struct thole_test tests[] = {
    {"when orphans are asked for", test_when_orphans_are_asked_for},
    {"when the next sweep is", test_when_the_next_sweep_is},
    {"an orphan is queued again", test_an_orphan_is_queued_again},
    {"its input is read", test_its_input_is_read},
    {"its input is in the newest record", test_its_input_is_in_the_newest_record},
    {"its input is not there", test_its_input_is_not_there},
    {"an orphan that is left alone", test_an_orphan_that_is_left_alone},
    {"an orphan of an earlier life", test_an_orphan_of_an_earlier_life},
    {"when deadlines are looked at", test_when_deadlines_are_looked_at},
    {"after a look at deadlines", test_after_a_look_at_deadlines},
    {"whom a deadline is told", test_whom_a_deadline_is_told},
    {"a look at deadlines that failed", test_a_look_at_deadlines_that_failed},
    {"what is not open asks nothing", test_what_is_not_open_asks_nothing},
};
THOLE_TEST_MAIN("sweeper", tests)
