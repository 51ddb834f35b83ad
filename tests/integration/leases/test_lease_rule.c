/* Which worker may run a try: the rule of the claim's statement, and the treatment of missing rows. */
#include "store_fixture.h"
#include <stdlib.h>
#include <unistd.h>

#define ME THOLE_STR("worker-1")
#define OTHER THOLE_STR("worker-2")

enum { LONG_MS = 60000, HOUR_MS = 3600000 };

static struct claim for_ms(uint64_t activity_id, uint64_t lease_ms)
{
    struct claim claim = store_claim_of("i", activity_id);
    claim.lease_ms = lease_ms;
    return claim;
}

static enum row_state leave_one(struct postgres *pg, thole_slice worker, struct claim *claim)
{
    CHECK_OK(worker_store_leave(pg, worker, claim, 1, &store_err));
    return claim->state;
}

static bool says(const char *ns, const char *condition, uint64_t id)
{
    return strcmp(store_sql(ns, "SELECT %s FROM worker_queue WHERE activity_id = %llu", condition,
                            (unsigned long long)id),
                  "t") == 0;
}

/* ---- the rule ---- */

static void a_lease_that_lasts_is_respected(void)
{
    struct postgres *pg = store_with_activities("lasts", 1);
    struct claim mine = for_ms(1, LONG_MS), theirs = for_ms(1, LONG_MS);
    CHECK_INT(store_claim_one(pg, ME, &mine), ROW_MINE);
    CHECK_INT(store_claim_one(pg, OTHER, &theirs), ROW_HELD);
    CU_ASSERT(theirs.left_ms > LONG_MS / 2 && theirs.left_ms <= LONG_MS);
    CU_ASSERT(says("lasts", "attempt = 1 AND worker = 'worker-1' AND lost IS NULL", 1));
    mine.lease_ms = HOUR_MS;
    CHECK_INT(store_renew_one(pg, ME, &mine), ROW_MINE);
    CHECK_INT(store_claim_one(pg, OTHER, &theirs), ROW_HELD);
    CU_ASSERT(theirs.left_ms > LONG_MS);
    CHECK_INT(store_claim_one(pg, ME, &mine), ROW_MINE); /* claimed before */
    CHECK_INT(mine.attempt, 2);
    CHECK_INT(store_claim_one(pg, OTHER, &theirs), ROW_HELD);
    postgres_close(pg);
}

static struct claim that_says(uint64_t activity_id, thole_slice digest)
{
    struct claim claim = for_ms(activity_id, LONG_MS);
    claim.digest = digest;
    return claim;
}

/* Row 1 is of an older engine. Nothing of a row changes by a message that says something else. */
static void a_message_that_says_something_else(void)
{
    static const char untouched[] = "attempt = 1 AND worker = 'worker-1' AND lost IS NULL";
    thole_slice const own = THOLE_STR("0123456789abcdef"), other = THOLE_STR("0123456789abcdeF");
    struct postgres *pg = store_with_activities("says", 1);
    struct batch *batch = store_batch(1, 20);
    store_add_activities(batch, "i", 2, 2);
    batch->activities_added[0].digest = batch->activities_added[1].digest = own;
    CHECK_OK(fixture_apply(pg, batch));

    struct claim claims[] = {that_says(1, other), that_says(2, other), that_says(3, own)};
    CHECK_OK(worker_store_claim(pg, ME, NULL, claims, 3, NULL, &store_err));
    CHECK_INT(claims[0].state, ROW_MINE);
    CU_ASSERT_FALSE(claims[0].compared);
    CHECK_INT(claims[1].state, ROW_FORGED);
    CU_ASSERT(says("says", "attempt = 0 AND worker IS NULL AND claimed_at IS NULL", 2));
    CHECK_INT(claims[2].state, ROW_MINE);
    CU_ASSERT_TRUE(claims[2].compared);

    struct claim of_another = that_says(3, other), of_its_own = that_says(3, other),
                 right = that_says(3, own);
    CHECK_INT(store_claim_one(pg, OTHER, &of_another), ROW_FORGED); /* and not held */
    CHECK_INT(store_claim_one(pg, ME, &of_its_own), ROW_FORGED);
    CHECK_INT(store_claim_one(pg, OTHER, &right), ROW_HELD);
    CU_ASSERT(says("says", untouched, 3));
    struct claim none = that_says(3, (thole_slice){NULL, 0}), first = that_says(2, own);
    CHECK_INT(store_claim_one(pg, ME, &none), ROW_FORGED);
    CHECK_INT(store_claim_one(pg, OTHER, &first), ROW_MINE);
    postgres_close(pg);
}

/* ---- a claim that goes on with another worker ---- */

static enum row_state resume_one(struct postgres *pg, thole_slice worker, thole_slice from, thole_slice queue,
                                 struct claim *claim)
{
    struct resumption const how = {.worker = worker, .from = from, .queue = queue};
    struct arena arena;
    arena_init(&arena, 1 << 16);
    CHECK_OK(worker_store_resume(pg, &how, claim, 1, &arena, &store_err));
    arena_release(&arena);
    return claim->state;
}

/* The very claim, with its attempt and its time; that of before has lost it. */
static void a_claim_goes_on(void)
{
    static const char moved[] =
        "attempt = 1 AND worker = 'x-2' AND lost IS NULL AND renewed_at IS NULL AND NOT apart"
        " AND lease_until > clock_timestamp() + interval '30 s'";
    thole_slice const own = THOLE_STR("0123456789abcdef"), queue = THOLE_STR("default");
    struct postgres *pg = store_with_activities("goes_on", 1);
    struct batch *batch = store_batch(1, 20);
    store_add_activities(batch, "i", 2, 1);
    batch->activities_added[0].digest = own;
    CHECK_OK(fixture_apply(pg, batch));
    struct claim mine = that_says(2, own);
    CHECK_INT(store_claim_one(pg, THOLE_STR("x-1"), &mine), ROW_MINE);
    CHECK_INT(store_renew_one(pg, THOLE_STR("x-1"), &mine), ROW_MINE);

    struct claim const right = mine;
    struct claim wrong[] = {right, right, right, right, right};
    wrong[0].digest = THOLE_STR("0123456789abcdee");
    wrong[1].attempt = 2;
    wrong[2].claimed_us++;
    wrong[3].attempt = 0;
    for (size_t i = 0; i < 4; i++)
        CHECK_INT(resume_one(pg, THOLE_STR("x-2"), THOLE_STR("1"), queue, &wrong[i]), ROW_STOLEN);
    CHECK_INT(resume_one(pg, THOLE_STR("x-2"), THOLE_STR("1"), THOLE_STR("p"), &wrong[4]), ROW_STOLEN);
    CHECK_INT(resume_one(pg, THOLE_STR("x-2"), THOLE_STR("9"), queue, &wrong[4]), ROW_STOLEN);

    struct claim theirs = right, again = right, stale = right;
    CHECK_INT(resume_one(pg, THOLE_STR("x-2"), THOLE_STR("1"), queue, &theirs), ROW_MINE);
    CU_ASSERT(says("goes_on", moved, 2));
    CHECK_INT(store_renew_one(pg, THOLE_STR("x-1"), &mine), ROW_STOLEN);
    mine = right;
    CHECK_OK(worker_store_release(pg, THOLE_STR("x-1"), &mine, 1, &store_err));
    mine = right;
    CHECK_OK(worker_store_not_lost(pg, THOLE_STR("x-1"), &mine, 1, &store_err));
    CU_ASSERT(says("goes_on", moved, 2));

    theirs.unheard = true; /* so its opening may have been lost */
    CHECK_INT(store_renew_one(pg, THOLE_STR("x-2"), &theirs), ROW_MINE);
    CHECK_INT(resume_one(pg, THOLE_STR("x-3"), THOLE_STR("1"), queue, &again), ROW_MINE);
    CHECK_INT(store_renew_one(pg, THOLE_STR("x-2"), &theirs), ROW_STOLEN);
    CHECK_INT(store_renew_one(pg, THOLE_STR("x-3"), &again), ROW_MINE);
    CHECK_INT(resume_one(pg, THOLE_STR("x-4"), THOLE_STR("1"), queue, &stale), ROW_STOLEN);
    stale = right;
    CHECK_INT(resume_one(pg, THOLE_STR("x-4"), THOLE_STR("3"), queue, &stale), ROW_MINE);
    postgres_close(pg);
}

/* Also of a poison candidate; and the sweeper is told what the message must say. */
static void whose_message_is_looked_for(void)
{
    static const struct claim_policy policy = {.candidate_after = 0, .strikes_max = 3};
    thole_slice const own = THOLE_STR("0123456789abcdef");
    struct postgres *pg = store_with_activities("swept", 1);
    struct batch *batch = store_batch(1, 20);
    store_add_activities(batch, "i", 2, 1);
    batch->activities_added[0].digest = own;
    CHECK_OK(fixture_apply(pg, batch));
    struct claim forged = that_says(2, THOLE_STR("0123456789abcdee")), right = that_says(2, own);
    CHECK_OK(worker_store_claim(pg, ME, &policy, &forged, 1, NULL, &store_err));
    CHECK_INT(forged.state, ROW_FORGED);
    CHECK_OK(worker_store_claim(pg, ME, &policy, &right, 1, NULL, &store_err));
    CHECK_INT(right.state, ROW_CANDIDATE);

    struct arena arena;
    struct batch_activity *orphans = NULL;
    size_t n = 0;
    uint64_t next_in_ms = 0;
    arena_init(&arena, 1 << 20);
    usleep(20000);
    CHECK_OK(projector_store_orphans(pg, &store_owner, 1, 10, &arena, &orphans, &n, &next_in_ms, &store_err));
    CHECK_INT(n, 2);
    for (size_t i = 0; i < n; i++)
        CU_ASSERT_TRUE(
            thole_slice_equal(orphans[i].digest, orphans[i].activity_id == 2 ? own : (thole_slice){NULL, 0}));
    arena_release(&arena);
    postgres_close(pg);
}

static void what_is_free_is_taken(void)
{
    enum { RELEASED = 1, NOT_LOST, OVER, DIED, RENEWED_AND_OVER, ROWS };
    struct postgres *pg = store_with_activities("free", ROWS);
    struct worker_death const death = {
        .worker = THOLE_STR("worker-3"), .report = THOLE_STR("killed"), .candidate_after = 2};
    size_t rows = 0;
    for (uint64_t id = 1; id < ROWS; id++) {
        struct claim claim = for_ms(id, id == OVER ? 1 : LONG_MS);
        CHECK_INT(store_claim_one(pg, id == DIED ? death.worker : ME, &claim), ROW_MINE);
        if (id == RELEASED)
            CHECK_OK(worker_store_release(pg, ME, &claim, 1, &store_err));
        if (id == NOT_LOST)
            CHECK_OK(worker_store_not_lost(pg, ME, &claim, 1, &store_err));
        claim.lease_ms = 1;
        if (id == RENEWED_AND_OVER)
            CHECK_INT(store_renew_one(pg, ME, &claim), ROW_MINE);
    }
    CHECK_OK(worker_store_died(pg, &death, &rows, &store_err));
    usleep(20000);
    for (uint64_t id = 1; id <= ROWS; id++) {
        struct claim claim = for_ms(id, LONG_MS);
        CHECK_INT(store_claim_one(pg, OTHER, &claim), ROW_MINE);
        CHECK_INT(claim.lost, id == OVER || id == DIED || id == RENEWED_AND_OVER);
        CHECK_INT(store_claim_one(pg, ME, &claim), ROW_HELD);
    }
    postgres_close(pg);
}

/* Rows from before leases were in them: whoever gets the message. */
static void rows_without_a_lease_are_free(void)
{
    struct postgres *pg = store_with_activities("older", 1);
    struct claim claim = for_ms(1, LONG_MS);
    CHECK_INT(store_claim_one(pg, ME, &claim), ROW_MINE);
    (void)store_sql("older", "UPDATE worker_queue SET lease_until = NULL");
    CHECK_INT(store_claim_one(pg, OTHER, &claim), ROW_MINE);
    postgres_close(pg);
}

static void the_clock_goes_back(void)
{
    struct postgres *pg = store_with_activities("back", 3);
    struct claim mine = for_ms(1, 5000), theirs = for_ms(1, LONG_MS);
    CHECK_INT(store_claim_one(pg, ME, &mine), ROW_MINE);
    mine = for_ms(2, 5000);
    CHECK_INT(store_claim_one(pg, ME, &mine), ROW_MINE);
    CHECK_INT(store_renew_one(pg, ME, &mine), ROW_MINE);
    mine = for_ms(3, HOUR_MS); /* a long lease is no clock that went back */
    CHECK_INT(store_claim_one(pg, ME, &mine), ROW_MINE);
    (void)store_sql("back", "UPDATE worker_queue SET lease_until = lease_until + interval '1 hour',"
                            " claimed_at = claimed_at + interval '1 hour',"
                            " renewed_at = renewed_at + interval '1 hour' WHERE activity_id < 3");
    for (uint64_t id = 1; id <= 2; id++)
        for (int again = 0; again < 2; again++) {
            theirs = for_ms(id, LONG_MS);
            CHECK_INT(store_claim_one(pg, OTHER, &theirs), ROW_HELD);
            CU_ASSERT(theirs.left_ms > 1000 && theirs.left_ms <= 5001);
            CU_ASSERT(says("back", "lease_until < clock_timestamp() + interval '5 s'", id));
        }
    theirs = for_ms(3, LONG_MS);
    CHECK_INT(store_claim_one(pg, OTHER, &theirs), ROW_HELD);
    CU_ASSERT(theirs.left_ms > HOUR_MS / 2);
    postgres_close(pg);
}

/* ---- claims that the database has forgotten ---- */

static void forget_claim(const char *ns, uint64_t id)
{
    (void)store_sql(
        ns,
        "UPDATE worker_queue SET attempt = 0, worker = NULL, lease_until = NULL, claimed_at = NULL,"
        " renewed_at = NULL, deadline_at = NULL WHERE activity_id = %llu",
        (unsigned long long)id);
}

static void a_claim_that_is_lost_is_taken_back(void)
{
    struct postgres *pg = store_with_activities("lost", 6);
    struct claim mine[7];
    for (uint64_t id = 1; id <= 6; id++) {
        mine[id] = for_ms(id, LONG_MS);
        CHECK_INT(store_claim_one(pg, ME, &mine[id]), ROW_MINE);
        forget_claim("lost", id);
    }
    (void)store_sql("lost", "UPDATE worker_queue SET try_timeout_ms = 60000 WHERE activity_id IN (1, 3)");
    CHECK_INT(store_renew_one(pg, ME, &mine[1]), ROW_MINE);
    CHECK_INT(mine[1].attempt, 1);
    CU_ASSERT(says("lost",
                   "attempt = 1 AND worker = 'worker-1' AND claimed_at IS NOT NULL"
                   " AND lease_until > clock_timestamp() + interval '50 s' AND deadline_at IS NOT NULL",
                   1));
    CHECK_INT(store_complete_one(pg, ME, &mine[2]), ROW_MINE);
    CHECK_INT(leave_one(pg, ME, &mine[3]), ROW_MINE);
    CU_ASSERT(says("lost", "later AND lease_until IS NULL AND deadline_at IS NOT NULL", 3));
    CHECK_OK(worker_store_release(pg, ME, &mine[4], 1, &store_err)); /* there is nothing to give back */
    CHECK_INT(mine[4].state, ROW_STOLEN);

    struct claim theirs = for_ms(5, LONG_MS);
    mine[5].attempt = 7;
    CHECK_INT(store_claim_one(pg, OTHER, &theirs), ROW_MINE); /* was faster */
    CHECK_INT(store_renew_one(pg, ME, &mine[5]), ROW_STOLEN);
    CHECK_INT(store_complete_one(pg, ME, &mine[5]), ROW_STOLEN);
    theirs.lease_ms = 1;
    CHECK_INT(store_renew_one(pg, OTHER, &theirs), ROW_MINE);
    usleep(20000);
    CHECK_INT(store_renew_one(pg, ME, &mine[5]),
              ROW_MINE); /* whose claim came later, and the other's lease is over */
    CHECK_INT(store_renew_one(pg, OTHER, &theirs), ROW_STOLEN);

    theirs = for_ms(6, LONG_MS);
    mine[6].attempt = 7;
    CHECK_INT(store_claim_one(pg, OTHER, &theirs), ROW_MINE);
    CHECK_INT(leave_one(pg, OTHER, &theirs), ROW_MINE);
    CHECK_INT(store_renew_one(pg, ME, &mine[6]), ROW_MISSING); /* belongs to no worker any more */
    postgres_close(pg);
}

/* An attempt that was given up, or handed back, is not lost by the database. */
static void what_was_given_up_is_not_taken_back(void)
{
    struct postgres *pg = store_with_activities("given", 2);
    struct claim mine[] = {for_ms(1, LONG_MS), for_ms(2, LONG_MS)};
    CHECK_OK(worker_store_claim(pg, ME, NULL, mine, 2, NULL, &store_err));
    CHECK_OK(worker_store_release(pg, ME, &mine[0], 1, &store_err));
    CHECK_OK(worker_store_not_lost(pg, ME, &mine[1], 1, &store_err));
    for (int i = 0; i < 2; i++) {
        CHECK_INT(store_renew_one(pg, ME, &mine[i]), ROW_STOLEN);
        CHECK_INT(store_complete_one(pg, ME, &mine[i]), ROW_STOLEN);
    }
    postgres_close(pg);
}

/* ---- rows that are missing ---- */

/* The answer of each call for an activity without a row. */
static void check_missing(struct postgres *pg, enum row_state want)
{
    struct claim claim = for_ms(9, LONG_MS);
    CHECK_INT(store_claim_one(pg, ME, &claim), want);
    claim.attempt = 1;
    CHECK_INT(store_renew_one(pg, ME, &claim), want);
    CHECK_INT(store_complete_one(pg, ME, &claim), want);
    CHECK_INT(leave_one(pg, ME, &claim), want);
}

static void open_again(struct postgres *pg, uint64_t epoch)
{
    struct rows_state rows;
    CHECK_OK(projector_store_open(pg, 1, epoch, &rows, NULL, &store_err));
}

static void missing_is_believed_where_rows_are_complete(void)
{
    struct rows_owner const second = {.partition = 1, .epoch = 2};
    struct rows_state rows;
    struct postgres *pg = store_with_activities("missing", 1);
    struct claim other = for_ms(9, LONG_MS);
    check_missing(pg, ROW_MISSING);
    other.partition = 2; /* which nobody has opened yet */
    CHECK_INT(store_claim_one(pg, ME, &other), ROW_UNKNOWN);
    (void)store_sql("missing", "TRUNCATE incarnation"); /* as a crash does */
    check_missing(pg, ROW_UNKNOWN);
    open_again(pg, 2);
    check_missing(pg, ROW_UNKNOWN);
    CHECK_OK(projector_store_complete(pg, &store_owner, &store_err)); /* of an owner that is none any more */
    check_missing(pg, ROW_UNKNOWN);
    CHECK_OK(projector_store_complete(pg, &second, &store_err));
    check_missing(pg, ROW_MISSING);
    CHECK_OK(projector_store_reset(pg, 1, 2, &rows, &store_err));
    check_missing(pg, ROW_UNKNOWN);
    CHECK_OK(projector_store_complete(pg, &second, &store_err));
    check_missing(pg, ROW_MISSING);
    postgres_close(pg);
}

/* Of a backup from before the claim: nobody can have cancelled what is not there. */
static void rows_that_are_older_than_a_claim(void)
{
    struct postgres *pg = store_with_activities("older", 4);
    struct claim claims[] = {for_ms(1, LONG_MS), for_ms(2, LONG_MS), for_ms(3, LONG_MS), for_ms(4, LONG_MS)};
    for (size_t i = 0; i < ARRAY_LEN(claims); i++)
        CHECK_INT(store_claim_one(pg, ME, &claims[i]), ROW_MINE);
    (void)store_sql("older", "CREATE TABLE before AS SELECT * FROM worker_queue;"
                             " DELETE FROM worker_queue WHERE activity_id <> 4;"
                             " UPDATE worker_queue SET try_number = 2;"
                             " UPDATE partitions SET epoch = 1, projected_seq = 1, projected_mark = 1001");
    CHECK_INT(store_renew_one(pg, ME, &claims[0]), ROW_UNKNOWN);
    CHECK_INT(store_complete_one(pg, ME, &claims[1]), ROW_UNKNOWN);
    CHECK_INT(leave_one(pg, ME, &claims[2]), ROW_UNKNOWN);
    CHECK_INT(store_renew_one(pg, ME, &claims[3]), ROW_MISSING); /* a later try is no older row */
    (void)store_sql("older", "INSERT INTO worker_queue SELECT * FROM before WHERE activity_id = 3");
    CHECK_INT(store_renew_one(pg, ME, &claims[2]), ROW_MINE);
    CHECK_OK(fixture_apply(pg, store_batch(1, 0)));
    CHECK_INT(store_renew_one(pg, ME, &claims[0]), ROW_MISSING);
    postgres_close(pg);
}

/* A quick one is claimed as well, by its deletion, also where that was rolled back. */
static void rows_that_are_older_than_what_ran_quick(void)
{
    struct postgres *pg = store_with_activities("older_quick", 1);
    struct claim claim = for_ms(1, LONG_MS);
    struct arena arena;
    arena_init(&arena, 4096);
    claim.quick = true;
    CHECK_OK(worker_store_complete_quick(pg, ME, &claim, 1, &arena, &store_err));
    CHECK_INT(claim.state, ROW_MINE);
    worker_store_complete_rollback(pg);
    claim.quick = false;
    (void)store_sql("older_quick",
                    "DELETE FROM worker_queue;"
                    " UPDATE partitions SET epoch = 1, projected_seq = 1, projected_mark = 1001");
    CHECK_INT(store_renew_one(pg, ME, &claim), ROW_UNKNOWN);
    CHECK_INT(store_complete_one(pg, ME, &claim), ROW_UNKNOWN);
    CHECK_INT(leave_one(pg, ME, &claim), ROW_UNKNOWN);
    CHECK_OK(fixture_apply(pg, store_batch(1, 0)));
    CHECK_INT(store_renew_one(pg, ME, &claim), ROW_MISSING);
    arena_release(&arena);
    postgres_close(pg);
}

static void a_crash_is_noticed_and_a_restart_is_none(void)
{
    struct postgres *pg = store_with_activities("crash", 1);
    struct claim nobody = for_ms(9, LONG_MS);
    check_missing(pg, ROW_MISSING);
    fixture_stop();
    store_restart();
    CHECK_STATUS(worker_store_renew(pg, ME, &nobody, 1, &store_err), THOLE_UNAVAILABLE); /* the connection
                                                                                            is lost */
    check_missing(pg, ROW_MISSING);
    store_kill9();
    store_restart();
    CHECK_STATUS(worker_store_renew(pg, ME, &nobody, 1, &store_err), THOLE_UNAVAILABLE);
    check_missing(pg, ROW_UNKNOWN);
    CHECK_STATUS(projector_store_complete(pg, &store_owner, &store_err),
                 THOLE_FENCED); /* may have forgotten transactions */
    check_missing(pg, ROW_UNKNOWN);
    open_again(pg, 1);
    CHECK_OK(projector_store_complete(pg, &store_owner, &store_err));
    check_missing(pg, ROW_MISSING);
    postgres_close(pg);
}

static const struct thole_test tests[] = {
    {"a lease that lasts is respected", a_lease_that_lasts_is_respected},
    {"rows that are older than a claim", rows_that_are_older_than_a_claim},
    {"rows that are older than what ran quick", rows_that_are_older_than_what_ran_quick},
    {"a message that says something else", a_message_that_says_something_else},
    {"whose message is looked for", whose_message_is_looked_for},
    {"a claim goes on", a_claim_goes_on},
    {"what is free is taken", what_is_free_is_taken},
    {"rows without a lease are free", rows_without_a_lease_are_free},
    {"the clock goes back", the_clock_goes_back},
    {"a claim that the database lost is taken back", a_claim_that_is_lost_is_taken_back},
    {"what was given up is not taken back", what_was_given_up_is_not_taken_back},
    {"missing is believed where rows are complete", missing_is_believed_where_rows_are_complete},
    {"a crash is noticed, and a restart is none", a_crash_is_noticed_and_a_restart_is_none},
};

int main(void)
{
    return store_run("lease_rule", tests, ARRAY_LEN(tests));
}
