/* Tries of one activity: the fence of a try, deadlines, heartbeats, completion from outside. */
#include "store_fixture.h"
#include <stdlib.h>
#include <time.h>

#define ME THOLE_STR("worker-1")
#define OTHER THOLE_STR("worker-2")

struct
try {
    uint64_t id;
    uint32_t number;
    uint64_t timeout_ms;
    const char *details;
};

static struct batch_activity *try_rows(struct batch *batch, const struct try *tries, size_t n)
{
    struct batch_activity *rows = arena_array(&batch->arena, n, sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = (struct batch_activity){.instance = THOLE_STR("i"),
                                          .execution = 1,
                                          .activity_id = tries[i].id,
                                          .queue = THOLE_STR("default"),
                                          .activity = THOLE_STR("charge"),
                                          .try_number = tries[i].number,
                                          .try_timeout_ms = tries[i].timeout_ms,
                                          .details = thole_slice_from(tries[i].details)};
    return rows;
}

/* One batch; removed first in the arguments as in a turn: what is resolved, then what comes next. */
static void apply(struct postgres *pg, const struct try *removed, size_t removed_len, const struct try *added,
                  size_t added_len)
{
    struct batch *batch = store_batch(1, 0);
    batch->activities_removed = removed_len > 0 ? try_rows(batch, removed, removed_len) : NULL;
    batch->activities_removed_len = removed_len;
    batch->activities_added = added_len > 0 ? try_rows(batch, added, added_len) : NULL;
    batch->activities_added_len = added_len;
    CHECK_OK(fixture_apply(pg, batch));
}

static void add(struct postgres *pg, struct try try)
{
    apply(pg, NULL, 0, &try, 1);
}

static struct claim claim_of(uint64_t id, uint32_t try)
{
    struct claim claim = store_claim_of("i", id);
    claim.key.try_number = try;
    return claim;
}

static const char *rows_of(const char *ns)
{
    return store_sql(ns, "SELECT (activity_id, try_number, attempt, worker) FROM worker_queue"
                         " ORDER BY activity_id");
}

/* -- the fence of a try -- */

static void old_try_is_refused(void)
{
    struct postgres *pg = store_partition("fence");
    struct claim first = claim_of(1, 1), second = claim_of(1, 2);
    add(pg, (struct try){1, 1, 0, ""});
    CHECK_INT(store_claim_one(pg, ME, &second), ROW_MISSING); /* no such try (yet) */
    CHECK_INT(store_claim_one(pg, ME, &first), ROW_MINE);
    add(pg, (struct try){1, 2, 0, ""}); /* the row of try 1 remained */
    CHECK_STR("replaced", rows_of("fence"), "(1,2,0,)");
    CHECK_INT(store_claim_one(pg, ME, &second), ROW_MINE);
    CHECK_INT(second.attempt, first.attempt); /* of one worker, too: only the try tells them apart */
    CHECK_OK(worker_store_renew(pg, ME, &first, 1, &store_err));
    CHECK_INT(first.state, ROW_MISSING);
    CHECK_OK(worker_store_release(pg, ME, &first, 1, &store_err));
    CHECK_INT(first.state, ROW_MISSING);
    CHECK_OK(worker_store_leave(pg, ME, &first, 1, &store_err));
    CHECK_INT(first.state, ROW_MISSING);
    CHECK_INT(store_complete_one(pg, ME, &first), ROW_MISSING);
    CHECK_INT(store_claim_one(pg, ME, &first), ROW_MISSING);
    CHECK_STR("unharmed", rows_of("fence"), "(1,2,1,worker-1)");
    CHECK_INT(store_complete_one(pg, ME, &second), ROW_MINE);
    postgres_close(pg);
}

static void batches_replace_tries(void)
{
    static const struct replace_case {
        const char *name;
        struct try before, removed, added; /* id 0: none */
        const char *want;
    } cases[] = {
        {"a later try takes the place", {1, 1, 0, ""}, {0}, {1, 2, 0, ""}, "(1,2,0,)"},
        {"an earlier one does not", {1, 3, 0, ""}, {0}, {1, 2, 0, ""}, "(1,3,5,)"},
        {"a redo takes no claim away", {1, 2, 0, ""}, {0}, {1, 2, 0, ""}, "(1,2,5,)"},
        {"no number is the first", {0}, {0}, {1, 0, 0, ""}, "(1,1,0,)"},
        {"removed by its number", {1, 2, 0, ""}, {1, 2, 0, ""}, {0}, ""},
        {"an older one goes too", {1, 1, 0, ""}, {1, 2, 0, ""}, {0}, ""},
        {"a newer one stays", {1, 2, 0, ""}, {1, 1, 0, ""}, {0}, "(1,2,5,)"},
        {"any try", {1, 7, 0, ""}, {1, 0, 0, ""}, {0}, ""},
        {"one ends and the next begins", {1, 1, 0, ""}, {1, 1, 0, ""}, {1, 2, 0, ""}, "(1,2,0,)"},
        {"whatever ends, the next begins", {1, 1, 0, ""}, {1, 0, 0, ""}, {1, 2, 0, ""}, "(1,2,0,)"},
        {"nothing was left of the first", {0}, {1, 1, 0, ""}, {1, 2, 0, ""}, "(1,2,0,)"},
        {"others are others", {1, 1, 0, ""}, {0}, {2, 2, 0, ""}, "(1,1,5,)\n(2,2,0,)"},
    };
    struct postgres *pg = store_partition("replace");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        (void)store_sql("replace", "SET thole.own = 'on'; DELETE FROM worker_queue");
        apply(pg, NULL, 0, &cases[i].before, cases[i].before.id != 0);
        (void)store_sql("replace", "UPDATE worker_queue SET attempt = 5");
        apply(pg, &cases[i].removed, cases[i].removed.id != 0, &cases[i].added, cases[i].added.id != 0);
        CHECK_STR(cases[i].name, rows_of("replace"), cases[i].want);
    }
    postgres_close(pg);
}

/* All that one batch can have at once: statements and parameters are counted. */
static void everything_in_one_batch(void)
{
    struct postgres *pg = store_partition("all");
    apply(pg, NULL, 0, (struct try[]){{1, 1, 0, ""}, {2, 1, 0, ""}}, 2);
    struct batch *batch = store_batch(1, 1);
    batch->activities_removed = try_rows(batch, (struct try[]){{1, 1, 0, ""}, {2, 1, 0, ""}}, 2);
    batch->activities_removed_len = 2;
    batch->activities_added = try_rows(batch, (struct try[]){{2, 2, 0, ""}, {3, 1, 0, ""}}, 2);
    batch->activities_added_len = 2;
    struct batch_timer removed = {THOLE_STR("i"), 1, 9, 0}, added = {THOLE_STR("i"), 1, 10, 500};
    batch->timers_removed = &removed;
    batch->timers_removed_len = 1;
    batch->timers_added = &added;
    batch->timers_added_len = 1;
    struct batch_instance instances[] = {
        {.instance = THOLE_STR("gone"), .removed = true, .history_seq = 5},
        {.instance = THOLE_STR("i"), .orchestration = THOLE_STR("o"), .execution = 1, .status = 1}};
    batch->instances = instances;
    batch->instances_len = 2;
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_STR("activities", rows_of("all"), "(2,2,0,)\n(3,1,0,)");
    CHECK_INT(store_count("all", "timers"), 1);
    CHECK_STR("instances", store_sql("all", "SELECT instance FROM instances"), "i");
    postgres_close(pg);
}

static void timers_are_replaced(void)
{
    struct postgres *pg = store_partition("timers");
    struct batch_timer rows[] = {{THOLE_STR("i"), 1, 2, 700}, {THOLE_STR("i"), 1, 1, 500}};
    struct batch *batch = store_batch(1, 1);
    batch->timers_added = rows;
    batch->timers_added_len = 2;
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_STR("added", store_sql("timers", "SELECT (timer_id, due_ms) FROM timers ORDER BY 1"),
              "(1,500)\n(2,700)");
    batch = store_batch(1, 2);
    struct batch_timer removed[] = {{THOLE_STR("i"), 1, 1, 0}, {THOLE_STR("i"), 1, 2, 0}};
    struct batch_timer again = {THOLE_STR("i"), 1, 2, 300};
    batch->timers_removed = removed;
    batch->timers_removed_len = 2;
    batch->timers_added = &again;
    batch->timers_added_len = 1;
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_STR("replaced", store_sql("timers", "SELECT (timer_id, due_ms) FROM timers"), "(2,300)");
    batch = store_batch(1, 3);
    again.due_ms = UINT64_MAX; /* never */
    batch->timers_added = &again;
    batch->timers_added_len = 1;
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_STR("never", store_sql("timers", "SELECT due_ms FROM timers"), "9223372036854775807");
    postgres_close(pg);
}

/* -- deadlines -- */

static uint64_t next_deadline(struct postgres *pg)
{
    uint64_t in_ms = 77;
    CHECK_OK(projector_store_next_deadline(pg, 1, &in_ms, &store_err));
    return in_ms;
}

static size_t expire(struct postgres *pg, uint64_t since_ms, size_t limit, struct arena *arena,
                     struct expired_try **ret)
{
    size_t len = 99;
    CHECK_OK(projector_store_expire_begin(pg, &store_owner, since_ms, limit, arena, ret, &len, &store_err));
    return len;
}

static void claims_write_deadlines_once(void)
{
    struct postgres *pg = store_partition("deadline");
    struct claim claim = claim_of(1, 1), none = claim_of(2, 1), forever = claim_of(3, 1);
    CHECK_INT(next_deadline(pg), UINT64_MAX);
    add(pg, (struct try){1, 1, 60000, ""});
    add(pg, (struct try){2, 1, 0, ""});
    CHECK_INT(next_deadline(pg), 60000); /* as soon as it is claimed */
    CHECK_INT(store_claim_one(pg, ME, &claim), ROW_MINE);
    CU_ASSERT(!claim.expired && claim.left_ms > 50000 && claim.left_ms <= 60000);
    CU_ASSERT(next_deadline(pg) > 50000 && next_deadline(pg) <= 60000);
    CHECK_STR("the database's clock",
              store_sql("deadline", "SELECT deadline_at - claimed_at BETWEEN '59.9 s' AND '60.1 s'"
                                    " FROM worker_queue WHERE activity_id = 1"),
              "t");
    CHECK_INT(store_claim_one(pg, ME, &none), ROW_MINE);
    CU_ASSERT(!none.expired && none.left_ms == 0);
    (void)store_sql("deadline", "UPDATE worker_queue SET deadline_at = deadline_at - interval '50 s'");
    CHECK_INT(store_claim_one(pg, OTHER, &claim), ROW_MINE); /* another claim of the same try */
    CU_ASSERT(!claim.expired && claim.left_ms > 1000 && claim.left_ms <= 10000);
    (void)store_sql("deadline", "UPDATE worker_queue SET deadline_at = deadline_at - interval '50 s'");
    CHECK_INT(next_deadline(pg), 0);
    CHECK_INT(store_claim_one(pg, OTHER, &claim), ROW_MINE);
    CU_ASSERT(claim.expired);
    CHECK_INT(claim.attempt, 3);
    CHECK_OK(worker_store_release(pg, OTHER, &claim, 1, &store_err)); /* a claim given back is not
                                                                         restarted */
    CHECK_INT(store_claim_one(pg, OTHER, &claim), ROW_MINE);
    CU_ASSERT(claim.expired);
    add(pg, (struct try){1, 2, 60000, ""}); /* the next try is */
    claim.key.try_number = 2;
    CHECK_INT(store_claim_one(pg, OTHER, &claim), ROW_MINE);
    CU_ASSERT(!claim.expired && claim.left_ms > 50000);
    add(pg, (struct try){3, 1, UINT64_MAX, ""});
    CHECK_INT(store_claim_one(pg, ME, &forever), ROW_MINE);
    CU_ASSERT(!forever.expired && forever.left_ms > UINT64_C(3000000000000));
    postgres_close(pg);
}

static void expired_tries_are_ended_together_with_what_is_said(void)
{
    struct postgres *pg = store_partition("expire");
    struct claim claims[] = {claim_of(1, 3), claim_of(2, 1), claim_of(3, 1)};
    struct expired_try *rows = NULL;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    apply(pg, NULL, 0,
          (struct try[]){{1, 3, 5000, "at 7"}, {2, 1, 5000, ""}, {3, 1, 5000, ""}, {4, 1, 5000, ""}}, 4);
    CHECK_OK(worker_store_claim(pg, ME, NULL, claims, 3, NULL, &store_err)); /* 4 waits for a worker */
    CHECK_INT(expire(pg, 0, 10, &arena, &rows), 0);
    projector_store_expire_rollback(pg);
    (void)store_sql("expire", "UPDATE worker_queue SET deadline_at = clock_timestamp() - interval '1 s'"
                              " WHERE activity_id <= 2");
    CHECK_INT(expire(pg, 30000, 10, &arena, &rows), 0); /* the worker may still report it itself */
    projector_store_expire_rollback(pg);
    CHECK_OK(worker_store_release(pg, ME, &claims[1], 1, &store_err)); /* nobody has it now: it ends too */
    CHECK_INT(expire(pg, 500, 1, &arena, &rows), 1);
    projector_store_expire_rollback(pg); /* nothing could be said: nothing has happened */
    CHECK_INT(store_count("expire", "worker_queue"), 4);
    CHECK_INT(expire(pg, 500, 10, &arena, &rows), 2);
    size_t const one = rows[0].row.activity_id == 1 ? 0 : 1;
    CHECK_STR("instance", (const char *)rows[one].row.instance.ptr, "i");
    CHECK_INT(rows[one].row.execution, 1);
    CHECK_INT(rows[one].row.try_number, 3);
    CHECK_INT(rows[one].row.try_timeout_ms, 5000);
    CHECK_INT(rows[one].attempt, 1);
    CHECK_STR("details", (const char *)rows[one].row.details.ptr, "at 7");
    CHECK_OK(projector_store_expire_commit(pg, &store_err));
    CHECK_STR("left", store_sql("expire", "SELECT activity_id FROM worker_queue ORDER BY 1"), "3\n4");
    CHECK_INT(store_complete_one(pg, ME, &claims[0]), ROW_UNKNOWN); /* too late, once a batch has come */
    CHECK_OK(fixture_apply(pg, store_batch(1, 0)));
    CHECK_INT(store_complete_one(pg, ME, &claims[0]), ROW_MISSING);
    CHECK_INT(store_complete_one(pg, ME, &claims[2]), ROW_MINE);
    projector_store_expire_rollback(pg); /* nothing is open: nothing happens */
    arena_release(&arena);
    postgres_close(pg);
}

/* The row belongs to whoever deletes it first. */
static void completion_and_deadline_do_not_both_count(void)
{
    struct postgres *pg = store_partition("both"), *worker = fixture_open("both");
    struct claim claim = claim_of(1, 1);
    struct expired_try *rows = NULL;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    add(pg, (struct try){1, 1, 5000, ""});
    CHECK_INT(store_claim_one(worker, ME, &claim), ROW_MINE);
    (void)store_sql("both", "UPDATE worker_queue SET deadline_at = clock_timestamp() - interval '1 s'");
    CHECK_OK(worker_store_complete_begin(worker, ME, &claim, 1, &store_err));
    CHECK_INT(claim.state, ROW_MINE);
    CHECK_INT(expire(pg, 0, 10, &arena, &rows), 0); /* passed over, without waiting */
    projector_store_expire_rollback(pg);
    worker_store_complete_rollback(worker);
    CHECK_INT(expire(pg, 0, 10, &arena, &rows), 1);
    CHECK_OK(projector_store_expire_commit(pg, &store_err));
    CHECK_OK(fixture_apply(pg, store_batch(1, 0)));
    CHECK_INT(store_complete_one(worker, ME, &claim), ROW_MISSING);
    arena_release(&arena);
    postgres_close(pg);
    postgres_close(worker);
}

static void deadlines_are_found_by_index(void)
{
    struct postgres *pg = store_partition("byindex");
    struct expired_try *rows = NULL;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    CHECK_INT(next_deadline(pg), UINT64_MAX); /* planned while the table is empty */
    CHECK_INT(expire(pg, 0, 10, &arena, &rows), 0);
    projector_store_expire_rollback(pg);
    (void)store_sql("byindex",
                    "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity,"
                    " try_timeout_ms, deadline_at) SELECT 'i', 1, g, 1, 'q', 'a', CASE WHEN g %% 100 = 0"
                    " THEN g ELSE 0 END, CASE WHEN g %% 200 = 0 THEN now() + g * interval '1 s' END"
                    " FROM generate_series(1, 20000) g; ANALYZE worker_queue");
    CU_ASSERT(next_deadline(pg) == 100);
    const char *plan = store_own_sql(pg, "EXPLAIN (ANALYZE, TIMING OFF) EXECUTE next_deadline(1)");
    CHECK_HAS(plan, "using worker_queue_deadline");
    CHECK_HAS(plan, "using worker_queue_timed");
    CHECK_HAS(plan, "rows=1 loops=1");
    CU_ASSERT(strstr(plan, "Seq Scan") == NULL && strstr(plan, "Sort") == NULL);
    plan = store_own_sql(pg, "EXPLAIN EXECUTE expire(1, 0, 10, 1, 0, 0)");
    CHECK_HAS(plan, "using worker_queue_deadline");
    CHECK_HAS(plan, "Tid Scan");
    CU_ASSERT(strstr(plan, "Seq Scan") == NULL);
    arena_release(&arena);
    postgres_close(pg);
}

/* -- heartbeats -- */

static void details_travel_with_the_lease(void)
{
    static uint8_t large[16 * 1024];
    struct postgres *pg = store_partition("details");
    struct claim claim = claim_of(1, 1);
    struct arena arena;
    arena_init(&arena, 1 << 20);
    add(pg, (struct try){1, 1, 0, "from try 0"});
    CHECK_OK(worker_store_claim(pg, ME, NULL, &claim, 1, &arena, &store_err));
    CHECK_STR("of the try before", (const char *)claim.details.ptr, "from try 0");
    CHECK_INT(claim.orchestration.len, 0); /* the instance has no row */
    CHECK_INT(claim.version, 0);
    (void)store_sql("details",
                    "INSERT INTO instances (instance, p, orchestration, execution, status, created_ms,"
                    " updated_ms, detail, turns, history_seq, version) VALUES ('i', 1, 'checkout', 1, 1, 1, "
                    "1, '', 1, 1, 7)");
    CHECK_OK(worker_store_renew(pg, ME, &claim, 1, &store_err)); /* nothing noted: nothing changes */
    memset(large, 0xff, sizeof large);
    claim.details = (thole_slice){large, sizeof large};
    claim.noted = true;
    CHECK_OK(worker_store_renew(pg, ME, &claim, 1, &store_err));
    CHECK_STR("all of it", store_sql("details", "SELECT length(details) FROM worker_queue"), "16384");
    claim.noted = false;
    CHECK_OK(worker_store_renew(pg, ME, &claim, 1, &store_err));
    CHECK_INT(claim.state, ROW_MINE);
    CHECK_OK(worker_store_claim(pg, OTHER, NULL, &claim, 1, &arena, &store_err));
    CHECK_INT(claim.details.len, sizeof large);
    CU_ASSERT_TRUE(thole_slice_equal(claim.orchestration, THOLE_STR("checkout")));
    CHECK_INT(claim.version, 7);
    CHECK_INT(memcmp(claim.details.ptr, large, sizeof large), 0);
    claim.details = THOLE_STR("last words");
    claim.noted = true;
    CHECK_OK(worker_store_release(pg, OTHER, &claim, 1, &store_err));
    CHECK_OK(worker_store_claim(pg, ME, NULL, &claim, 1, &arena, &store_err));
    CHECK_STR("given back", (const char *)claim.details.ptr, "last words");
    arena_release(&arena);
    arena_init(&arena, 1);
    CHECK_STATUS(worker_store_claim(pg, ME, NULL, &claim, 1, &arena, &store_err), THOLE_LIMIT);
    arena_release(&arena);
    postgres_close(pg);
}

/* -- completion from outside -- */

static size_t orphans(struct postgres *pg, uint32_t *ret_try, uint64_t *ret_timeout_ms)
{
    struct arena arena;
    struct batch_activity *rows = NULL;
    size_t len = 0;
    arena_init(&arena, 1 << 20);
    uint64_t next_in_ms = 0;
    CHECK_OK(
        projector_store_orphans(pg, &store_owner, 60000, 10, &arena, &rows, &len, &next_in_ms, &store_err));
    if (len > 0) {
        *ret_try = rows[0].try_number;
        *ret_timeout_ms = rows[0].try_timeout_ms;
    }
    arena_release(&arena);
    return len;
}

static void left_rows_need_no_worker(void)
{
    uint32_t try = 0;
    uint64_t timeout_ms = 0;
    struct postgres *pg = store_partition("left");
    struct claim mine = claim_of(1, 2), other = mine;
    struct expired_try *rows = NULL;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    add(pg, (struct try){1, 2, 5000, ""});
    CHECK_INT(store_claim_one(pg, ME, &mine), ROW_MINE);
    (void)store_sql("left", "UPDATE worker_queue SET created_at = now() - interval '1 hour',"
                            " claimed_at = now() - interval '1 hour'");
    CHECK_INT(orphans(pg, &try, &timeout_ms), 1);
    CHECK_INT(try, 2);
    CHECK_INT(timeout_ms, 5000);
    CHECK_OK(worker_store_leave(pg, ME, &mine, 1, &store_err));
    CHECK_INT(mine.state, ROW_MINE);
    CHECK_OK(worker_store_leave(pg, ME, &mine, 1, &store_err)); /* the answer was lost */
    CHECK_INT(mine.state, ROW_MINE);
    (void)store_sql("left", "UPDATE worker_queue SET swept_at = NULL, renewed_at = NULL");
    CHECK_INT(orphans(pg, &try, &timeout_ms), 0);
    CHECK_INT(store_claim_one(pg, OTHER, &other), ROW_MISSING); /* the message came again: nothing to run */
    CHECK_STR("untouched", store_sql("left", "SELECT (attempt, worker, later) FROM worker_queue"),
              "(1,worker-1,t)");
    (void)store_sql("left", "UPDATE worker_queue SET deadline_at = clock_timestamp() - interval '1 s'");
    CHECK_INT(next_deadline(pg), 0);
    CHECK_INT(expire(pg, 500, 10, &arena, &rows), 1); /* does end */
    CHECK_OK(projector_store_expire_commit(pg, &store_err));
    CHECK_OK(fixture_apply(pg, store_batch(1, 0)));
    CHECK_OK(worker_store_leave(pg, ME, &mine, 1, &store_err));
    CHECK_INT(mine.state, ROW_MISSING);
    arena_release(&arena);
    postgres_close(pg);
}

/* Claims of tries without a timeout touch no index. */
static void tries_without_a_timeout_stay_hot(void)
{
    enum { ROWS = 300 };
    static struct claim claims[ROWS];
    struct postgres *pg = store_with_activities("hot", ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        claims[i] = claim_of(i + 1, 1);
        claims[i].details = THOLE_STR("half way");
        claims[i].noted = true;
    }
    CHECK_OK(worker_store_claim(pg, ME, NULL, claims, ROWS, NULL, &store_err));
    CHECK_OK(worker_store_renew(pg, ME, claims, ROWS, &store_err));
    postgres_close(pg); /* statistics are sent when it ends */
    store_check_hot("hot", 2 * ROWS);
}

static const struct thole_test tests[] = {
    {"old try is refused", old_try_is_refused},
    {"batches replace tries", batches_replace_tries},
    {"everything in one batch", everything_in_one_batch},
    {"timers are replaced", timers_are_replaced},
    {"claims write deadlines once", claims_write_deadlines_once},
    {"expired tries are ended together with what is said",
     expired_tries_are_ended_together_with_what_is_said},
    {"completion and deadline do not both count", completion_and_deadline_do_not_both_count},
    {"deadlines are found by index", deadlines_are_found_by_index},
    {"details travel with the lease", details_travel_with_the_lease},
    {"left rows need no worker", left_rows_need_no_worker},
    {"tries without a timeout stay HOT", tries_without_a_timeout_stay_hot},
};

int main(void)
{
    return store_run("tries_store", tests, ARRAY_LEN(tests));
}
