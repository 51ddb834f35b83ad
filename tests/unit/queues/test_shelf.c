/* The engine role's treatment of activities that no worker of their queue knows. */
#include "served_job.h"
#include "thole_cunit.h"
#include "wrap_shard_world.h"
#include "wrap_submitted.h"

enum { NOW_MS = WORLD_NOW_MS, ROWS_MAX = 256, OUT_MAX = 128 };

static struct {
    enum partition_state state;
    size_t open_activities;
    const char *known; /* the name that a worker knows; NULL: it is not known who knows what */
    bool asks, denied;
    unsigned asked, requeued;
} play;

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

struct served_names *__wrap_served_job_names(struct served_job *job)
{
    (void)job;
    return NULL;
}

void __wrap_served_job_ask(struct served_job *job)
{
    (void)job;
    play.asked++;
}

bool __wrap_served_names_silent(struct served_names *served)
{
    (void)served;
    return play.denied;
}

enum served __wrap_served_names_look(struct served_names *served, thole_slice queue, thole_slice activity,
                                     uint64_t now_ms, bool *ret_asks)
{
    (void)served;
    CU_ASSERT_EQUAL(now_ms, world.now_ms);
    CU_ASSERT_TRUE(thole_slice_equal(queue, THOLE_STR("q")));
    *ret_asks = play.asks;
    if (play.known == NULL)
        return SERVED_UNKNOWN;
    return thole_slice_equal(activity, thole_slice_from(play.known)) ? SERVED_BY_SOME : SERVED_BY_NONE;
}

void __wrap_sweeper_requeue(struct shard *shard, struct owned *owned, const struct batch_activity *row)
{
    CU_ASSERT_PTR_EQUAL(shard, &world.shard);
    CU_ASSERT_PTR_EQUAL(owned, &world.owned);
    CU_ASSERT_EQUAL(row->activity_id, 9);
    play.requeued++;
}

static unsigned lines;
__attribute__((format(printf, 5, 6))) void __wrap_log_limits_line(struct log_limits *limits, uint64_t now_ms,
                                                                  size_t kind,
                                                                  const struct log_fields *fields,
                                                                  const char *fmt, ...)
{
    (void)limits, (void)now_ms, (void)fields, (void)fmt;
    CU_ASSERT_EQUAL(kind, LINE_SHELVED);
    lines++;
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    lines = 0;
    shard_world_begin(request_rules);
    play.state = PARTITION_OPEN;
    play.open_activities = 1;
}

static void shelf_at(uint64_t now_ms)
{
    world.now_ms = now_ms;
    shelf_run(&world.shard, &world.owned, now_ms);
}

static uint64_t due_ms(void)
{
    return shelf_deadline_ms(&world.shard, &world.owned);
}

/* The look that is under way has found so many of both names. */
static void found(uint64_t rows)
{
    static struct shelved_name names[2];
    struct request *const request = submitted_last(REQ_FIND_SHELVED);
    names[0] = (struct shelved_name){.queue = THOLE_STR("q"), .activity = THOLE_STR("new"), .rows = rows};
    names[1] = (struct shelved_name){.queue = THOLE_STR("q"), .activity = THOLE_STR("old"), .rows = rows};
    request->shelf.names = names;
    request->shelf.names_len = rows == 0 ? 0 : 2;
    shelf_found(&world.owned, request);
}

static void taken(size_t n)
{
    static struct batch_activity rows[ROWS_MAX];
    struct request *const request = submitted_last(REQ_UNSHELVE);
    for (size_t i = 0; i < n; i++)
        rows[i].activity_id = 9;
    request->shelf.rows = rows;
    request->shelf.rows_len = n;
    shelf_taken(&world.owned, request);
}

static void test_when_it_is_looked_at(void)
{
    begin();
    play.open_activities = 0;
    shelf_at(NOW_MS);
    CU_ASSERT_EQUAL(due_ms(), UINT64_MAX); /* nothing can be on it */
    play.open_activities = 1;
    shelf_at(NOW_MS);
    CU_ASSERT_EQUAL(submitted.len, 1); /* activities shelved before it was opened */
    CU_ASSERT_EQUAL(due_ms(), UINT64_MAX);
    shelf_at(NOW_MS + 9000); /* one at a time */
    CU_ASSERT_EQUAL(submitted.len, 1);
    found(0);
    CU_ASSERT_EQUAL(due_ms(), 5000); /* of all partitions at the same time */
    shelf_at(4999);
    CU_ASSERT_EQUAL(submitted.len, 1);
    shelf_at(5000);
    CU_ASSERT_EQUAL(submitted.len, 2);
    found(3);
    CU_ASSERT_EQUAL(world.owned.shelf.rows, 6);
    CU_ASSERT_EQUAL(due_ms(), 10000);
    shelf_at(10000);
    found(3);
    CU_ASSERT_EQUAL(due_ms(), 12000); /* while something is on it */
    CU_ASSERT_EQUAL(lines, 1);
    play.state = PARTITION_CLOSING;
    shelf_at(12000);
    CU_ASSERT_EQUAL(due_ms(), UINT64_MAX);
    CU_ASSERT_EQUAL(world.owned.shelf.rows, 0);
    submitted_clear();
}

static void test_who_is_asked(void)
{
    begin();
    shelf_at(NOW_MS);
    play.asks = true;
    found(3);
    CU_ASSERT_EQUAL(play.asked, 1);
    CU_ASSERT_EQUAL(submitted.len, 1);       /* nothing is taken off it */
    CU_ASSERT_EQUAL(due_ms(), NOW_MS + 600); /* when they have answered */
    play.asks = false;
    play.known = "other";
    shelf_at(NOW_MS + 600);
    found(3);
    CU_ASSERT_EQUAL(play.asked, 1);
    CU_ASSERT_EQUAL(submitted.len, 2);
    submitted_clear();
}

static void test_what_is_known_is_taken(void)
{
    begin();
    play.known = "new";
    shelf_at(NOW_MS);
    found(3);
    struct request *const take = submitted_last(REQ_UNSHELVE);
    CU_ASSERT_EQUAL(take->shelf.names_len, 1);
    CU_ASSERT_TRUE(thole_slice_equal(take->shelf.names[0].activity, THOLE_STR("new")));
    CU_ASSERT_EQUAL(take->shelf.least_ms, 0);
    CU_ASSERT_EQUAL(take->shelf.owner.epoch, 7);
    CU_ASSERT_EQUAL(due_ms(), UINT64_MAX);
    taken(3);
    CU_ASSERT_EQUAL(play.requeued, 3);
    CU_ASSERT_EQUAL(due_ms(), 5000);
    submitted_clear();
}

/* Some at a time: the next ones when few are on their way. */
static void test_its_pace(void)
{
    begin();
    play.known = "new";
    shelf_at(NOW_MS);
    found(1000);
    taken(ROWS_MAX);
    CU_ASSERT_EQUAL(due_ms(), NOW_MS + 20);
    world.shard.unshelved = OUT_MAX;
    CU_ASSERT_EQUAL(due_ms(), UINT64_MAX); /* an answer wakes it */
    shelf_at(NOW_MS + 5000);
    CU_ASSERT_EQUAL(submitted.len, 2);
    world.shard.unshelved = OUT_MAX - 1;
    shelf_at(NOW_MS + 5000);
    CU_ASSERT_EQUAL(submitted.len, 3);
    world.shard.unshelved = 0;
    submitted_clear();
}

static void test_nobody_may_ask(void)
{
    begin();
    play.denied = true;
    shelf_at(NOW_MS);
    found(3);
    struct request *const take = submitted_last(REQ_UNSHELVE);
    CU_ASSERT_EQUAL(take->shelf.names_len, 2);
    CU_ASSERT_EQUAL(take->shelf.least_ms, 60000);
    submitted_clear();
}

/* Of an owner before, or when Postgres is away. */
static void test_answers_that_say_nothing(void)
{
    begin();
    play.known = "new";
    shelf_at(NOW_MS);
    submitted_last(REQ_FIND_SHELVED)->status = THOLE_UNAVAILABLE;
    found(3);
    CU_ASSERT_EQUAL(submitted.len, 1);
    shelf_at(5000);
    found(3);
    submitted_last(REQ_UNSHELVE)->status = THOLE_UNAVAILABLE;
    taken(3);
    CU_ASSERT_EQUAL(play.requeued, 0);
    shelf_at(10000);
    world.generation++;
    found(3);
    CU_ASSERT_EQUAL(submitted.len, 4);
    CU_ASSERT_FALSE(world.owned.shelf.busy);
    submitted_clear();
}

static const struct thole_test tests[] = {
    {"when it is looked at", test_when_it_is_looked_at},
    {"who is asked", test_who_is_asked},
    {"what is known is taken", test_what_is_known_is_taken},
    {"its pace", test_its_pace},
    {"nobody may ask", test_nobody_may_ask},
    {"answers that say nothing", test_answers_that_say_nothing},
};
THOLE_TEST_MAIN("shelf", tests)
