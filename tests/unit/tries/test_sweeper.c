/* When the engine role asks for what no worker reports on, and what it does with the answers. */
#include "thole_cunit.h"
#include "wrap_shard_world.h"
#include "wrap_submitted.h"
#include <stdlib.h>

enum { SWEEP_MS = 8000, AGAIN_MS = 1000, SLACK_MS = 520, NOW_MS = WORLD_NOW_MS };

static struct {
    enum partition_state state;
    size_t open_activities;
    size_t aside;
    bool known; /* what the look for work answers */
    uint64_t found;
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

void __wrap_request_put_aside(struct request *request)
{
    play.aside++;
    request_submit(request);
}

bool __wrap_work_found(const struct request *request, uint64_t *ret_sequence)
{
    (void)request;
    *ret_sequence = play.found;
    return play.known;
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    shard_world_begin(request_rules);
    play.state = PARTITION_OPEN;
    play.open_activities = 1;
    play.known = true;
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
    (void)snprintf(request->err.text, sizeof request->err.text, "Postgres is away");
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
        orphans_answered(&world.owned, rows[i].fails ? fails(request) : request);
        CU_ASSERT_EQUAL(sweeper_deadline_ms(&world.owned), NOW_MS + rows[i].pause_ms);
        end();
    }
}

static void answer_orphan(void)
{
    static struct batch_activity row = {.instance = {(const uint8_t *)"order", 5},
                                        .queue = {(const uint8_t *)"q", 1},
                                        .activity = {(const uint8_t *)"charge", 6},
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
static void test_an_orphan_is_queued_again(void)
{
    begin();
    answer_orphan();
    CU_ASSERT_EQUAL(play.aside, 1); /* of thousands none is in front of what is new */
    find_work_answered(&world.owned, submitted_last(REQ_FIND_WORK));
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

/* Its message is there, or nobody knows, or the history does not know it. */
static void test_an_orphan_that_is_left_alone(void)
{
    begin();
    answer_orphan();
    struct request *const look = submitted_last(REQ_FIND_WORK);
    size_t const before = submitted.len;
    play.found = 17;
    find_work_answered(&world.owned, look);
    play.found = 0;
    play.known = false;
    find_work_answered(&world.owned, look);
    CU_ASSERT_EQUAL(submitted.len, before);
    play.known = true;
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
    run_at(NOW_MS + 20000); /* what was expected meanwhile */
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
    {"an orphan that is left alone", test_an_orphan_that_is_left_alone},
    {"an orphan of an earlier life", test_an_orphan_of_an_earlier_life},
    {"when deadlines are looked at", test_when_deadlines_are_looked_at},
    {"after a look at deadlines", test_after_a_look_at_deadlines},
    {"a look at deadlines that failed", test_a_look_at_deadlines_that_failed},
    {"what is not open asks nothing", test_what_is_not_open_asks_nothing},
};
THOLE_TEST_MAIN("sweeper", tests)
