/* Claims, renewals and completions: the fence of an activity's lease, on a real Postgres. */
#include "store_fixture.h"
#include <pthread.h>
#include <stdlib.h>

#define ME THOLE_STR("worker-1")
#define OTHER THOLE_STR("worker-2")

static void remove_activities(struct postgres *pg, uint64_t first, size_t n)
{
    struct batch *batch = store_batch(1, 2);
    store_remove_activities(batch, "i", first, n);
    CHECK_OK(fixture_apply(pg, batch));
}

/* -- the fence -- */

static void claim_grows_attempt_and_takes_over(void)
{
    struct postgres *pg = store_with_activities("claim", 1);
    struct claim mine = store_claim_of("i", 1), theirs = mine;
    CHECK_INT(store_claim_one(pg, ME, &mine), ROW_MINE);
    CHECK_INT(mine.attempt, 1);
    CHECK_INT(store_renew_one(pg, ME, &mine), ROW_MINE);
    CHECK_INT(store_claim_one(pg, OTHER, &theirs), ROW_MINE);
    CHECK_INT(theirs.attempt, 2);

    CHECK_INT(store_renew_one(pg, ME, &mine), ROW_STOLEN);
    CHECK_INT(store_complete_one(pg, ME, &mine), ROW_STOLEN);
    CHECK_INT(store_count("claim", "worker_queue"), 1);
    CHECK_INT(store_renew_one(pg, OTHER, &theirs), ROW_MINE);
    CHECK_INT(store_complete_one(pg, OTHER, &theirs), ROW_MINE);
    CHECK_INT(store_count("claim", "worker_queue"), 0);
    CHECK_INT(store_complete_one(pg, OTHER, &theirs), ROW_UNKNOWN); /* the rows are older than the claim */
    CHECK_INT(store_renew_one(pg, ME, &mine), ROW_UNKNOWN);
    CHECK_OK(fixture_apply(pg, store_batch(1, 0))); /* the result of the call */
    CHECK_INT(store_complete_one(pg, OTHER, &theirs), ROW_MISSING);
    CHECK_INT(store_renew_one(pg, ME, &mine), ROW_MISSING);
    postgres_close(pg);
}

/* The answer to the first was lost, or it was stuck on the way: the row names the worker, and that counts. */
static void second_claim_of_one_worker_is_its_own(void)
{
    struct postgres *pg = store_with_activities("second", 1);
    struct claim first = store_claim_of("i", 1), second = first;
    CHECK_INT(store_claim_one(pg, ME, &first), ROW_MINE);
    CHECK_INT(store_claim_one(pg, ME, &second), ROW_MINE);
    CHECK_OK(worker_store_release(pg, ME, &first, 1, &store_err)); /* late, and not of this claim */
    CHECK_INT(first.state, ROW_STOLEN);
    CHECK_INT(store_renew_one(pg, ME, &first), ROW_MINE);
    CHECK_INT(first.attempt, second.attempt);
    first.attempt = 1;
    CHECK_INT(store_complete_one(pg, ME, &first), ROW_MINE);
    postgres_close(pg);
}

/* The database lost the row and it was projected again: the attempt counts from 1 again, the worker differs.
 */
static void row_projected_again_is_whose_claim_comes_first(void)
{
    struct postgres *pg = store_with_activities("again", 1);
    struct claim mine = store_claim_of("i", 1), theirs = mine;
    theirs.lease_ms = 60000;
    CHECK_INT(store_claim_one(pg, ME, &mine), ROW_MINE);
    remove_activities(pg, 1, 1);
    struct batch *batch = store_batch(1, 3);
    store_add_activities(batch, "i", 1, 1);
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_INT(store_claim_one(pg, OTHER, &theirs), ROW_MINE);
    CHECK_INT(theirs.attempt, mine.attempt);
    CHECK_INT(store_renew_one(pg, ME, &mine), ROW_STOLEN);
    CHECK_INT(store_complete_one(pg, ME, &mine), ROW_STOLEN);
    CHECK_INT(store_count("again", "worker_queue"), 1);
    postgres_close(pg);
}

/* The row is made again as it was before all claims, for a message that ends with @p byte. */
static void make_again(const char *byte)
{
    (void)store_sql(
        "message",
        "UPDATE worker_queue SET attempt = 0, worker = NULL, claimed_at = NULL, renewed_at = NULL,"
        " lease_until = NULL, digest = decode('00112233445566778899aabbccddee%s', 'hex')",
        byte);
}

/* The key by which messages are signed was given up: what was claimed under the former one is over. */
static void lost_claims_are_restored_for_their_message(void)
{
    static const uint8_t bytes[] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                    0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
    struct postgres *pg = store_with_activities("message", 1);
    struct claim claim = store_claim_of("i", 1);
    claim.digest = (thole_slice){bytes, sizeof bytes};
    make_again("ff");
    CHECK_INT(store_claim_one(pg, ME, &claim), ROW_MINE);
    make_again("fe");
    CHECK_INT(store_renew_one(pg, ME, &claim), ROW_STOLEN);
    CHECK_OK(worker_store_leave(pg, ME, &claim, 1, &store_err));
    CHECK_INT(claim.state, ROW_STOLEN);
    CHECK_INT(store_complete_one(pg, ME, &claim), ROW_STOLEN);
    CHECK_OK(worker_store_complete_quick(pg, ME, &claim, 1, NULL, &store_err));
    CHECK_INT(claim.state, ROW_STOLEN);
    worker_store_complete_rollback(pg);
    make_again("ff");
    CHECK_INT(store_renew_one(pg, ME, &claim), ROW_MINE);
    make_again("ff");
    CHECK_INT(store_complete_one(pg, ME, &claim), ROW_MINE);
    postgres_close(pg);
}

static void cancellation_of_locked_activity_causes_renewal_failure(void)
{
    struct postgres *pg = store_with_activities("cancelled", 2);
    struct claim claims[] = {store_claim_of("i", 1), store_claim_of("i", 2)};
    CHECK_OK(worker_store_claim(pg, ME, NULL, claims, 2, NULL, &store_err));
    remove_activities(pg, 1, 1);
    CHECK_OK(worker_store_renew(pg, ME, claims, 2, &store_err));
    CHECK_INT(claims[0].state, ROW_MISSING);
    CHECK_INT(claims[1].state, ROW_MINE);
    postgres_close(pg);
}

static void cancellation_of_unlocked_activity_removes_from_queue(void)
{
    struct postgres *pg = store_with_activities("unlocked", 1);
    struct claim claim = store_claim_of("i", 1);
    remove_activities(pg, 1, 1);
    CHECK_INT(store_claim_one(pg, ME, &claim), ROW_MISSING);
    CHECK_INT(claim.attempt, 0);
    postgres_close(pg);
}

static void ack_work_item_fails_on_cancelled_row(void)
{
    struct postgres *pg = store_with_activities("ack", 1);
    struct claim claim = store_claim_of("i", 1);
    CHECK_INT(store_claim_one(pg, ME, &claim), ROW_MINE);
    remove_activities(pg, 1, 1);
    CHECK_INT(store_complete_one(pg, ME, &claim), ROW_MISSING);
    postgres_close(pg);
}

static void states_belong_to_their_places(void)
{
    struct postgres *pg = store_with_activities("mixed", 5);
    struct claim claims[] = {store_claim_of("i", 5), store_claim_of("none", 1), store_claim_of("i", 2),
                             store_claim_of("i", 9), store_claim_of("i", 4)};
    static const enum row_state claimed[] = {ROW_MINE, ROW_MISSING, ROW_MINE, ROW_MISSING, ROW_MINE};
    static const enum row_state completed[] = {ROW_MINE, ROW_MISSING, ROW_STOLEN, ROW_MISSING, ROW_MINE};
    struct claim thief = claims[2];
    CHECK_INT(store_claim_one(pg, OTHER, &thief), ROW_MINE);
    CHECK_OK(worker_store_claim(pg, ME, NULL, claims, ARRAY_LEN(claims), NULL, &store_err));
    for (size_t i = 0; i < ARRAY_LEN(claims); i++)
        CHECK_INT(claims[i].state, claimed[i]);
    CHECK_INT(claims[0].attempt, 1);
    CHECK_INT(claims[2].attempt, 2);
    CHECK_INT(store_claim_one(pg, OTHER, &thief), ROW_MINE);
    CHECK_OK(worker_store_complete_begin(pg, ME, claims, ARRAY_LEN(claims), &store_err));
    for (size_t i = 0; i < ARRAY_LEN(claims); i++)
        CHECK_INT(claims[i].state, completed[i]);
    CHECK_OK(worker_store_complete_commit(pg, &store_err));
    CHECK_STR("left", store_sql("mixed", "SELECT activity_id FROM worker_queue ORDER BY 1"), "1\n2\n3");
    postgres_close(pg);
}

static void same_key_twice_is_never_missing(void)
{
    struct postgres *pg = store_with_activities("double", 1);
    struct claim claims[] = {store_claim_of("i", 1), store_claim_of("i", 1)};
    CHECK_OK(worker_store_claim(pg, ME, NULL, claims, 2, NULL, &store_err));
    CHECK_INT(claims[0].state + claims[1].state, ROW_MINE + ROW_STOLEN);
    CHECK_STR("attempt", store_sql("double", "SELECT attempt FROM worker_queue"), "1");
    postgres_close(pg);
}

static void release_gives_back_and_keeps_the_count(void)
{
    struct postgres *pg = store_with_activities("release", 1);
    struct claim mine = store_claim_of("i", 1), theirs = mine;
    CHECK_INT(store_claim_one(pg, ME, &mine), ROW_MINE);
    CHECK_OK(worker_store_release(pg, ME, &mine, 1, &store_err));
    CHECK_INT(mine.state, ROW_MINE);
    CHECK_STR("row", store_sql("release", "SELECT (worker, claimed_at, attempt) FROM worker_queue"), "(,,1)");
    CHECK_INT(store_complete_one(pg, ME, &mine), ROW_STOLEN);
    CHECK_INT(store_claim_one(pg, OTHER, &theirs), ROW_MINE);
    CHECK_INT(theirs.attempt, 2);
    CHECK_OK(worker_store_release(pg, ME, &mine, 1, &store_err));
    CHECK_INT(mine.state, ROW_STOLEN);
    CHECK_INT(store_renew_one(pg, OTHER, &theirs), ROW_MINE);
    postgres_close(pg);
}

static void rollback_leaves_the_claim(void)
{
    struct postgres *pg = store_with_activities("rollback", 1);
    struct claim claim = store_claim_of("i", 1);
    CHECK_INT(store_claim_one(pg, ME, &claim), ROW_MINE);
    CHECK_OK(worker_store_complete_begin(pg, ME, &claim, 1, &store_err));
    worker_store_complete_rollback(pg);
    worker_store_complete_rollback(pg); /* nothing is open: nothing happens */
    CHECK_INT(store_renew_one(pg, ME, &claim), ROW_MINE);
    CHECK_INT(store_complete_one(pg, ME, &claim), ROW_MINE);
    postgres_close(pg);
}

static void bad_claims_do_not_spoil_the_connection(void)
{
    struct postgres *pg = store_with_activities("bad", 1);
    struct claim claim = store_claim_of("i", 1), bad = claim;
    bad.key.instance = THOLE_STR("a\0b");
    CHECK_STATUS(worker_store_claim(pg, ME, NULL, &bad, 1, NULL, &store_err), THOLE_INVALID);
    bad.key.instance = THOLE_STR("\xff\xfe");
    CHECK_STATUS(worker_store_complete_begin(pg, ME, &bad, 1, &store_err), THOLE_INVALID);
    bad = claim;
    bad.key.activity_id = UINT64_MAX;
    CHECK_STATUS(worker_store_renew(pg, ME, &bad, 1, &store_err), THOLE_INVALID);
    CHECK_STATUS(worker_store_complete_begin(pg, ME, &bad, 1, &store_err), THOLE_INVALID);
    CHECK_INT(store_claim_one(pg, ME, &claim), ROW_MINE);
    CHECK_OK(worker_store_claim(pg, ME, NULL, NULL, 0, NULL, &store_err));
    CHECK_INT(store_complete_one(pg, ME, &claim), ROW_MINE);
    postgres_close(pg);
}

static void only_the_databases_clock_is_written(void)
{
    struct postgres *pg = store_with_activities("clock", 1);
    struct claim claim = store_claim_of("i", 1);
    CHECK_INT(store_claim_one(pg, ME, &claim), ROW_MINE);
    CHECK_STR("claimed",
              store_sql("clock",
                        "SELECT clock_timestamp() - claimed_at < '5 s' AND claimed_at >= created_at AND"
                        " renewed_at IS NULL FROM worker_queue"),
              "t");
    CHECK_INT(store_renew_one(pg, ME, &claim), ROW_MINE);
    CHECK_STR("renewed", store_sql("clock", "SELECT renewed_at > claimed_at FROM worker_queue"), "t");
    postgres_close(pg);
}

/* -- races -- */

struct racer {
    pthread_t thread;
    struct postgres *pg;
    struct claim claim;
    struct batch *batch;
    thole_status status;
    thole_error err;
};

static void *run_complete_begin(void *arg)
{
    struct racer *self = arg;
    self->status = worker_store_complete_begin(self->pg, ME, &self->claim, 1, &self->err);
    return NULL;
}

static void *run_apply(void *arg)
{
    struct racer *self = arg;
    self->status = projector_store_apply(self->pg, &self->batch, 1, &self->err);
    return NULL;
}

/* Until a statement of the tests' connections waits for a lock. */
static void wait_for_waiter(void)
{
    for (int i = 0; i < 2000; i++)
        if (strcmp(store_sql("x", "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND"
                                  " application_name = 'thole-test'"),
                   "1") == 0)
            return;
    CU_FAIL("nobody waits for a lock");
}

/* Completed first: the cancellation finds nothing to delete. Cancelled first: the completion is refused. */
static void completion_races_deletion_first_committer_wins(void)
{
    struct racer racer = {.pg = store_with_activities("race", 2)};
    struct postgres *worker = fixture_open("race");
    struct claim claim = store_claim_of("i", 1);
    CHECK_INT(store_claim_one(worker, ME, &claim), ROW_MINE);
    CHECK_OK(worker_store_complete_begin(worker, ME, &claim, 1, &store_err));
    racer.batch = store_batch(1, 5);
    store_remove_activities(racer.batch, "i", 1, 1);
    fixture_follow(racer.pg, racer.batch);
    CU_ASSERT_FATAL(pthread_create(&racer.thread, NULL, run_apply, &racer) == 0);
    wait_for_waiter();
    CHECK_INT(claim.state, ROW_MINE);
    CHECK_OK(worker_store_complete_commit(worker, &store_err));
    pthread_join(racer.thread, NULL);
    CHECK_OK(racer.status);
    batch_destroy(racer.batch);

    racer.claim = store_claim_of("i", 2);
    CHECK_INT(store_claim_one(worker, ME, &racer.claim), ROW_MINE);
    (void)store_sql("race", "BEGIN; DELETE FROM worker_queue WHERE activity_id = 2");
    struct postgres *projector = racer.pg;
    racer.pg = worker;
    CU_ASSERT_FATAL(pthread_create(&racer.thread, NULL, run_complete_begin, &racer) == 0);
    wait_for_waiter();
    (void)store_sql("race", "COMMIT");
    pthread_join(racer.thread, NULL);
    CHECK_OK(racer.status);
    CHECK_INT(racer.claim.state, ROW_UNKNOWN); /* no projector */
    worker_store_complete_rollback(worker);
    postgres_close(worker);
    postgres_close(projector);
}

/*
 * Races of several workers for each row. While the lease of a claim lasts (LASTS) one of them has the row,
 * and the others have not. When it is over at once (OVER) each takes the row from the one before; all of them
 * ask to complete it, those that have lost it first, and the last one's completion is the one that counts.
 */
enum { RACERS = 6, RACES = 60, RACE_LEASE_MS = 60000 };

struct race {
    struct racer racers[RACERS];
    pthread_barrier_t all; /* of them have come so far */
    uint64_t lease_ms;
    unsigned claimed[RACES], completed[RACES], early[RACES]; /* early: by one that has lost it */
    pthread_mutex_t lock;
};

struct race_seat {
    struct race *race;
    struct racer *racer;
};

static void race_count(struct race *race, unsigned *count, bool counts)
{
    (void)pthread_mutex_lock(&race->lock);
    *count += counts;
    (void)pthread_mutex_unlock(&race->lock);
}

static bool race_completes(struct racer *self, struct claim *claim)
{
    if (self->status == THOLE_OK)
        self->status = worker_store_complete_begin(self->pg, self->claim.key.instance, claim, 1, &self->err);
    if (self->status != THOLE_OK)
        return false;
    bool const mine = claim->state == ROW_MINE;
    self->status = worker_store_complete_commit(self->pg, &self->err);
    return mine;
}

/* Whether the row names this worker; asked before anybody completes it. */
static bool race_holds(struct racer *self, struct claim *claim)
{
    if (self->status == THOLE_OK)
        self->status = worker_store_renew(self->pg, self->claim.key.instance, claim, 1, &self->err);
    return self->status == THOLE_OK && claim->state == ROW_MINE;
}

static void *race_for_all(void *arg)
{
    const struct race_seat *const seat = arg;
    struct race *const race = seat->race;
    struct racer *const self = seat->racer;
    for (size_t i = 0; i < RACES; i++) {
        struct claim claim = store_claim_of("i", i + 1);
        claim.lease_ms = race->lease_ms;
        if (self->status == THOLE_OK)
            self->status =
                worker_store_claim(self->pg, self->claim.key.instance, NULL, &claim, 1, NULL, &self->err);
        bool const claimed = self->status == THOLE_OK && claim.state == ROW_MINE;
        race_count(race, &race->claimed[i], claimed);
        (void)pthread_barrier_wait(&race->all);
        bool const holds = claimed && race_holds(self, &claim);
        (void)pthread_barrier_wait(&race->all);
        if (claimed && !holds)
            race_count(race, &race->early[i], race_completes(self, &claim));
        (void)pthread_barrier_wait(&race->all);
        if (holds)
            race_count(race, &race->completed[i], race_completes(self, &claim));
    }
    return NULL;
}

static void race_run(struct race *race, const char *ns)
{
    static const char *const names[RACERS] = {"w1", "w2", "w3", "w4", "w5", "w6"};
    struct race_seat seats[RACERS];
    postgres_close(store_with_activities(ns, RACES));
    (void)pthread_mutex_init(&race->lock, NULL);
    (void)pthread_barrier_init(&race->all, NULL, RACERS);
    for (size_t i = 0; i < RACERS; i++) {
        struct racer *const racer = &race->racers[i];
        seats[i] = (struct race_seat){race, racer};
        racer->pg = fixture_open(ns);
        racer->claim.key.instance = thole_slice_from(names[i]);
        CU_ASSERT_FATAL(pthread_create(&racer->thread, NULL, race_for_all, &seats[i]) == 0);
    }
    for (size_t i = 0; i < RACERS; i++) {
        pthread_join(race->racers[i].thread, NULL);
        store_err = race->racers[i].err;
        CHECK_OK(race->racers[i].status);
        postgres_close(race->racers[i].pg);
    }
    (void)pthread_barrier_destroy(&race->all);
    (void)pthread_mutex_destroy(&race->lock);
    CHECK_INT(store_count(ns, "worker_queue"), 0);
}

static unsigned race_sum(const unsigned counts[RACES])
{
    unsigned sum = 0;
    for (size_t i = 0; i < RACES; i++)
        sum += counts[i];
    return sum;
}

static void two_workers_race_only_one_completion_counts(void)
{
    static struct race lasts = {.lease_ms = RACE_LEASE_MS}, over;
    race_run(&lasts, "lasts_race");
    CHECK_INT(race_sum(lasts.early), 0);
    for (size_t i = 0; i < RACES; i++) {
        CHECK_INT(lasts.claimed[i], 1);
        CHECK_INT(lasts.completed[i], 1);
    }
    race_run(&over, "over_race");
    CHECK_INT(race_sum(over.early), 0);
    for (size_t i = 0; i < RACES; i++) {
        CHECK_INT(over.claimed[i], RACERS);
        CHECK_INT(over.completed[i], 1);
    }
}

/* -- quick ones: what is deleted is claimed -- */

static thole_status begin_quick(struct postgres *pg, struct claim *claims, size_t n, struct arena *arena)
{
    return worker_store_complete_quick(pg, ME, claims, n, arena, &store_err);
}

static void quick_row_is_claimed_by_its_deletion(void)
{
    struct postgres *pg = store_with_activities("quick", 2);
    struct claim quick = store_claim_of("i", 1), later = quick, mine = store_claim_of("i", 2);
    struct arena arena;
    arena_init(&arena, 4096);
    CHECK_INT(store_claim_one(pg, ME, &mine), ROW_MINE);
    CHECK_STR("told",
              store_sql("quick", "UPDATE worker_queue SET details = 'page 3', try_timeout_ms = 5000"
                                 " WHERE activity_id = 1 RETURNING try_number"),
              "1");
    quick.quick = true;
    struct claim claims[] = {mine, quick};
    CHECK_OK(begin_quick(pg, claims, 2, &arena));
    CHECK_INT(claims[0].state, ROW_MINE);
    CHECK_INT(claims[1].state, ROW_MINE);
    CHECK_INT(claims[1].attempt, 1);
    CHECK_INT(claims[1].left_ms, 5000);
    CHECK_INT(claims[0].left_ms, 0);
    CU_ASSERT_TRUE(thole_slice_equal(claims[1].details, THOLE_STR("page 3")));
    worker_store_complete_rollback(pg); /* as if it had not been */
    CHECK_STR(
        "as it was",
        store_sql("quick", "SELECT attempt || coalesce(worker, '-') FROM worker_queue WHERE activity_id = 1"),
        "0-");
    CHECK_OK(begin_quick(pg, claims, 2, &arena));
    CHECK_OK(worker_store_complete_commit(pg, &store_err));
    CHECK_INT(store_count("quick", "worker_queue"), 0);
    CHECK_INT(store_claim_one(pg, OTHER, &later), ROW_MISSING);
    arena_release(&arena);
    postgres_close(pg);
}

/* A handler that has run without a claim is completed like a claim that the database has forgotten. */
static void what_ran_quick_is_completed_like_a_forgotten_claim(void)
{
    struct postgres *pg = store_with_activities("quickkept", 3);
    struct claim kept = store_claim_of("i", 1), renewed = store_claim_of("i", 2),
                 taken = store_claim_of("i", 3);
    struct claim theirs = taken;
    kept.attempt = renewed.attempt = taken.attempt = 1;
    CHECK_INT(store_claim_one(pg, OTHER, &theirs), ROW_MINE);
    CHECK_INT(store_complete_one(pg, ME, &kept), ROW_MINE);
    CHECK_INT(store_renew_one(pg, ME, &renewed), ROW_MINE);
    CHECK_INT(store_renew_one(pg, ME, &taken), ROW_STOLEN);
    CHECK_INT(store_complete_one(pg, ME, &renewed), ROW_MINE);
    CHECK_INT(store_complete_one(pg, ME, &taken), ROW_STOLEN);
    postgres_close(pg);
}

static void quick_rows_that_somebody_has_had_are_not_taken(void)
{
    static const char *const had[] = {"attempt = 1, worker = 'worker-2'",
                                      "attempt = 1",
                                      "worker = 'worker-2'",
                                      "later = true",
                                      "try_number = 2",
                                      "digest = decode('00112233445566778899aabbccddeeff', 'hex')"};
    struct postgres *pg = store_with_activities("quickhad", ARRAY_LEN(had) + 1);
    struct claim claims[ARRAY_LEN(had) + 2];
    struct arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_LEN(claims);
         i++) { /* the last but one is free, of the last there is no row */
        claims[i] = store_claim_of("i", i + 1);
        claims[i].quick = true;
        if (i < ARRAY_LEN(had))
            (void)store_sql("quickhad", "UPDATE worker_queue SET %s WHERE activity_id = %zu RETURNING 1",
                            had[i], i + 1);
    }
    CHECK_OK(begin_quick(pg, claims, ARRAY_LEN(claims), &arena));
    for (size_t i = 0; i < ARRAY_LEN(claims); i++)
        CHECK_INT(claims[i].state, i == ARRAY_LEN(had) ? ROW_MINE : ROW_STOLEN);
    CHECK_OK(worker_store_complete_commit(pg, &store_err));
    CHECK_INT(store_count("quickhad", "worker_queue"), ARRAY_LEN(had));
    arena_release(&arena);
    postgres_close(pg);
}

enum { CROWD = 200, ROUNDS = 60 };

/* Begins batches of half of the rows, each time others and in another order, half of them quick. */
static void *complete_in_all_orders(void *arg)
{
    struct racer *self = arg;
    struct claim claims[CROWD / 2];
    for (uint64_t round = 0; round < ROUNDS && self->status == THOLE_OK; round++) {
        struct arena arena;
        arena_init(&arena, 1 << 20);
        for (uint64_t i = 0; i < CROWD / 2; i++) {
            claims[i] = store_claim_of("i", 1 + (i * 37 + round * 11) % CROWD);
            claims[i].attempt = i % 2;
            claims[i].quick = i % 2 == 0;
        }
        self->status = worker_store_complete_quick(self->pg, ME, claims, CROWD / 2, &arena, &self->err);
        if (self->status == THOLE_OK)
            worker_store_complete_rollback(self->pg);
        arena_release(&arena);
    }
    return NULL;
}

/* Claims all rows again and again, each time in another order. */
static void *claim_in_all_orders(void *arg)
{
    struct racer *self = arg;
    struct claim claims[CROWD];
    for (uint64_t round = 0; round < ROUNDS && self->status == THOLE_OK; round++) {
        for (uint64_t i = 0; i < CROWD; i++)
            claims[i] = store_claim_of("i", 1 + (i * 77 + round * 31) % CROWD);
        self->status = worker_store_claim(self->pg, ME, NULL, claims, CROWD, NULL, &self->err);
        if (self->status == THOLE_OK)
            self->status = worker_store_renew(self->pg, ME, claims, CROWD, &self->err);
    }
    return NULL;
}

static void *remove_and_add_in_all_orders(void *arg)
{
    struct racer *self = arg;
    struct rows_state rows = {{1, 1001}, 1}; /* store_with_activities() */
    for (uint64_t round = 0; round < 2 * ROUNDS && self->status == THOLE_OK; round++) {
        struct batch *batch = store_batch(1, round + 1);
        if (round % 2 == 0)
            store_remove_activities(batch, "i", 1, CROWD);
        else
            store_add_activities(batch, "i", 1, CROWD);
        for (size_t i = 0; round % 2 == 0 && i < CROWD; i++)
            batch->activities_removed[i].activity_id = 1 + (i * 59 + round * 13) % CROWD;
        batch->follows = rows;
        self->status = projector_store_apply(self->pg, &batch, 1, &self->err);
        fixture_followed(&rows, batch);
        batch_destroy(batch);
    }
    return NULL;
}

static void rows_in_any_order_never_deadlock(void)
{
    struct racer racers[5] = {{.pg = store_with_activities("crowd", CROWD)}};
    for (size_t i = 0; i < ARRAY_LEN(racers); i++) {
        if (i > 0)
            racers[i].pg = fixture_open("crowd");
        CU_ASSERT_FATAL(pthread_create(&racers[i].thread, NULL,
                                       i == 0   ? remove_and_add_in_all_orders
                                       : i == 1 ? complete_in_all_orders
                                                : claim_in_all_orders,
                                       &racers[i]) == 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(racers); i++) {
        pthread_join(racers[i].thread, NULL);
        store_err = racers[i].err;
        CHECK_OK(racers[i].status);
        postgres_close(racers[i].pg);
    }
    CHECK_STR("deadlocks",
              store_sql("x", "SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"), "0");
}

/* ---- costs ---- */

static void claims_and_renewals_are_hot(void)
{
    enum { ROWS = 500 };
    struct postgres *pg = store_with_activities("hot", ROWS);
    static struct claim claims[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        claims[i] = store_claim_of("i", i + 1);
    CHECK_OK(worker_store_claim(pg, ME, NULL, claims, ROWS, NULL, &store_err));
    CHECK_OK(worker_store_renew(pg, ME, claims, ROWS, &store_err));
    CHECK_OK(worker_store_renew(pg, ME, claims, ROWS, &store_err));
    postgres_close(pg); /* statistics are sent when it ends */
    store_check_hot("hot", 3 * ROWS);
}

/* Prints, and checks nothing: the machine decides. */
static void measure(struct postgres *projector, struct postgres *worker, size_t rows, size_t rounds)
{
    double us[4] = {0};
    struct claim *claims = calloc(rows, sizeof *claims);
    for (size_t round = 0; round < rounds; round++) {
        struct batch *batch = store_batch(1, round + 1);
        store_add_activities(batch, "speed-of-an-instance", 1 + round * rows, rows);
        for (size_t i = 0; i < rows; i++)
            claims[i] = store_claim_of("speed-of-an-instance", 1 + round * rows + i);
        fixture_follow(projector, batch);
        double start = store_now_us();
        CHECK_OK(projector_store_apply(projector, &batch, 1, &store_err));
        us[0] += store_now_us() - start;
        batch_destroy(batch);
        start = store_now_us();
        CHECK_OK(worker_store_claim(worker, ME, NULL, claims, rows, NULL, &store_err));
        us[1] += store_now_us() - start;
        start = store_now_us();
        CHECK_OK(worker_store_complete_begin(worker, ME, claims, rows, &store_err));
        us[2] += store_now_us() - start;
        start = store_now_us();
        CHECK_OK(worker_store_complete_commit(worker, &store_err));
        us[3] += store_now_us() - start;
    }
    double n = (double)(rows * rounds);
    printf(
        "\n    %5zu rows: insert %.1f, claim %.1f, delete %.1f, commit %.1f, all %.1f us for each activity",
        rows, us[0] / n, us[1] / n, us[2] / n, us[3] / n, (us[0] + us[1] + us[2] + us[3]) / n);
    free(claims);
}

static void speed(void)
{
    static const size_t rows[] = {1, 10, 100, 1000, 10000};
    struct postgres *projector = store_partition("speed"), *worker = fixture_open("speed");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        measure(projector, worker, rows[i], rows[i] == 1 ? 2000 : 20000 / rows[i]);
    postgres_close(projector);
    postgres_close(worker);
}

static const struct thole_test tests[] = {
    {"claim grows attempt and takes over", claim_grows_attempt_and_takes_over},
    {"second claim of one worker is its own", second_claim_of_one_worker_is_its_own},
    {"row projected again is whose claim comes first", row_projected_again_is_whose_claim_comes_first},
    {"lost_claims_are_restored_for_their_message", lost_claims_are_restored_for_their_message},
    {"cancellation_of_locked_activity_causes_renewal_failure",
     cancellation_of_locked_activity_causes_renewal_failure},
    {"cancellation_of_unlocked_activity_removes_from_queue",
     cancellation_of_unlocked_activity_removes_from_queue},
    {"ack_work_item_fails_on_cancelled_row", ack_work_item_fails_on_cancelled_row},
    {"states belong to their places", states_belong_to_their_places},
    {"same key twice is never missing", same_key_twice_is_never_missing},
    {"release gives back and keeps the count", release_gives_back_and_keeps_the_count},
    {"rollback leaves the claim", rollback_leaves_the_claim},
    {"bad claims do not spoil the connection", bad_claims_do_not_spoil_the_connection},
    {"only the database's clock is written", only_the_databases_clock_is_written},
    {"completion_races_deletion_first_committer_wins", completion_races_deletion_first_committer_wins},
    {"two_workers_race_only_one_completion_counts", two_workers_race_only_one_completion_counts},
    {"a quick row is claimed by its deletion", quick_row_is_claimed_by_its_deletion},
    {"what ran quick is completed like a forgotten claim",
     what_ran_quick_is_completed_like_a_forgotten_claim},
    {"quick rows that somebody has had are not taken", quick_rows_that_somebody_has_had_are_not_taken},
    {"rows in any order never deadlock", rows_in_any_order_never_deadlock},
    {"claims and renewals are HOT", claims_and_renewals_are_hot},
    {"speed", speed},
};

int main(void)
{
    return store_run("worker_store", tests, ARRAY_LEN(tests));
}
