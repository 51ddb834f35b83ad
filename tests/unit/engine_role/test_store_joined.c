/* Batches of several partitions in one transaction: which go together, and what becomes of each. */
#include "shard_parts.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"

enum { REQUESTS = 4 };

/* ---- Postgres ---- */

static struct {
    uint32_t wrong;      /* a batch of this partition fails, and with it those that go with it */
    thole_status status; /* so; OK: none does */
    size_t calls, batches;
} database;

thole_status __wrap_projector_store_apply(struct postgres *pg, struct batch *const *batches, size_t n,
                                          thole_error *reterr)
{
    (void)pg;
    database.calls++;
    database.batches += n;
    for (size_t i = 0; i < n; i++)
        if (database.status != THOLE_OK && batches[i]->partition == database.wrong)
            return thole_fail(reterr, database.status, "partition %u", database.wrong);
    for (size_t i = 0; i < n; i++)
        batches[i]->activities_removed[0].held = true;
    return THOLE_OK;
}

thole_status __wrap_projector_store_apply_apart(struct postgres *pg, struct batch *batch,
                                                struct projector_refused *ret, thole_error *reterr)
{
    *ret = (struct projector_refused){.rows = 0};
    return __wrap_projector_store_apply(pg, &batch, 1, reterr);
}

uint64_t __wrap_projector_store_set_aside(const struct postgres *pg, uint32_t partition)
{
    (void)pg, (void)partition;
    return 0;
}

/* ---- requests ---- */

static struct request requests[REQUESTS], *all[REQUESTS];
static struct batch batches[REQUESTS];
static struct batch_activity removed[REQUESTS];
static thole_error errors[REQUESTS];

static void begin(void)
{
    for (uint32_t i = 0; i < REQUESTS; i++) {
        removed[i] = (struct batch_activity){.activity_id = i};
        batches[i] = (struct batch){
            .partition = 10 + i, .activities_removed = &removed[i], .activities_removed_len = 1};
        errors[i] = (thole_error){.status = THOLE_OK};
        requests[i] = (struct request){.kind = REQ_STORE_APPLY,
                                       .mail = {.p = 10 + i},
                                       .store = {.batch = &batches[i]},
                                       .err = &errors[i]};
        all[i] = &requests[i];
    }
    database.status = THOLE_OK;
    database.calls = database.batches = 0;
}

/* How many of them go together, the first being taken. */
static size_t joined(void)
{
    size_t n = 1;
    while (n < REQUESTS && store_apply_joins(all, n, all[n]))
        n++;
    return n;
}

static void test_who_goes_together(void)
{
    begin();
    CU_ASSERT_EQUAL(joined(), REQUESTS);
    requests[2].kind = REQ_STORE_TIMERS; /* later requests wait for it */
    CU_ASSERT_EQUAL(joined(), 2);
    begin();
    requests[3].mail.p = requests[1].mail.p; /* which of the two would be the later one? */
    CU_ASSERT_EQUAL(joined(), 3);
    for (size_t i = 0; i < 3; i++) {
        begin();
        batches[i].durable = true;
        CU_ASSERT_EQUAL(joined(), i == 0 ? 1 : i);
        begin();
        batches[i].deletions_len = 1;
        CU_ASSERT_EQUAL(joined(), i == 0 ? 1 : i);
    }
    begin();
    batches[0].timers_added_len = 1998; /* and what is removed: 4000 with the next */
    batches[1].instances_len = 2000;
    CU_ASSERT_EQUAL(joined(), 2);
    batches[1].instances_len = 1999;
    CU_ASSERT_EQUAL(joined(), 3);
}

static void test_all_at_once(void)
{
    begin();
    store_apply_all(NULL, all, REQUESTS);
    CU_ASSERT_EQUAL(database.calls, 1);
    for (size_t i = 0; i < REQUESTS; i++) {
        CU_ASSERT_EQUAL(requests[i].status, THOLE_OK);
        CU_ASSERT_PTR_EQUAL(requests[i].in.applied.removed, &removed[i]);
        CU_ASSERT_EQUAL(requests[i].in.applied.removed_len, 1);
        CU_ASSERT_EQUAL(requests[i].store.deadline_in_ms, UINT64_MAX);
    }
}

/* One that does not fit, or is not its partition's owner's any more, harms nobody else. */
static void test_one_fails_alone(void)
{
    static const thole_status statuses[] = {THOLE_FENCED, THOLE_INVALID, THOLE_CORRUPT};
    for (size_t row = 0; row < ARRAY_LEN(statuses); row++) {
        begin();
        database.status = statuses[row];
        database.wrong = 12;
        store_apply_all(NULL, all, REQUESTS);
        CU_ASSERT_EQUAL(database.calls,
                        1 + REQUESTS + (statuses[row] == THOLE_INVALID)); /* once more, in parts */
        for (size_t i = 0; i < REQUESTS; i++)
            CU_ASSERT_EQUAL(requests[i].status, i == 2 ? statuses[row] : THOLE_OK);
        CU_ASSERT_STRING_EQUAL(errors[2].text, "partition 12");
        CU_ASSERT_STRING_EQUAL(errors[3].text, "");
        CU_ASSERT_TRUE(removed[3].held && !removed[2].held);
    }
}

static void test_a_lost_database_is_lost_for_all(void)
{
    begin();
    database.status = THOLE_UNAVAILABLE;
    database.wrong = 12;
    store_apply_all(NULL, all, REQUESTS);
    CU_ASSERT_EQUAL(database.calls, 1);
    for (size_t i = 0; i < REQUESTS; i++) {
        CU_ASSERT_EQUAL(requests[i].status, THOLE_UNAVAILABLE);
        CU_ASSERT_STRING_EQUAL(errors[i].text, "partition 12");
    }
}

static const struct thole_test tests[] = {
    {"who goes together", test_who_goes_together},
    {"all at once", test_all_at_once},
    {"one fails alone", test_one_fails_alone},
    {"a lost database is lost for all", test_a_lost_database_is_lost_for_all},
};

int main(void)
{
    return thole_run_suite("store joined", tests, ARRAY_LEN(tests));
}
