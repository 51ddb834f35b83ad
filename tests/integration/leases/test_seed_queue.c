/*
 * Seeds 000, 001, 003, 004: the queue and its leases. What they call a lock is our claim of a row; `fetch` is
 * the claim, `renew` its renewal, `ack` the completion, and the states Terminal and Missing are the row being
 * gone. An engine makes and removes the rows; the test itself claims and completes where it needs single
 * steps. Activities of queue "nobody" are served by the test alone, those of "live" by a worker, whose lease
 * is so long that no redelivery makes up for a word that was not said.
 */
#include "postgres.h"
#include "seed_stage.h"
#include "subject.h"
#include "work_heard.h"
#include "worker_store.h"

#define HAND THOLE_STR("hand")
#define RIVAL THOLE_STR("rival")

enum { LEASE_MS = 30000, LIVE_LEASE_MS = 600000 };

static struct postgres *pg;
static struct actor_worker live;

/* ---- the test's own calls ---- */

static struct claim claim_of(const char *id, uint64_t execution, uint64_t activity_id)
{
    return (struct claim){.key = {.instance = thole_slice_from(id),
                                  .execution = execution,
                                  .activity_id = activity_id,
                                  .try_number = 1},
                          .partition = subject_partition(thole_slice_from(id), SEED_PARTITIONS)};
}

/* The test has the message that the engine has sent: it says what the row says. */
static enum row_state fetch_as(thole_slice worker, struct claim *claim)
{
    uint8_t digest[16];
    const char *const hex =
        seed_sql("SELECT encode(digest, 'hex') FROM thole_default.worker_queue"
                 " WHERE instance = '%.*s' AND activity_id = %llu",
                 THOLE_FMT(claim->key.instance), (unsigned long long)claim->key.activity_id);
    for (size_t i = 0; i < sizeof digest && strlen(hex) == 2 * sizeof digest; i++)
        (void)sscanf(hex + 2 * i, "%2hhx", &digest[i]);
    claim->digest = (thole_slice){digest, strlen(hex) / 2};
    CHECK_OK(worker_store_claim(pg, worker, NULL, claim, 1, NULL, &seed.err), &seed.err);
    return claim->state;
}

static enum row_state fetch(struct claim *claim)
{
    return fetch_as(HAND, claim);
}

static enum row_state renew(struct claim *claim)
{
    CHECK_OK(worker_store_renew(pg, HAND, claim, 1, &seed.err), &seed.err);
    return claim->state;
}

static enum row_state ack(struct claim *claim)
{
    CHECK_OK(worker_store_complete_begin(pg, HAND, claim, 1, &seed.err), &seed.err);
    enum row_state const state = claim->state;
    CHECK_OK(worker_store_complete_commit(pg, &seed.err), &seed.err);
    return state;
}

/* ---- ends of an instance whose activity (event 2) is open ---- */

enum end { COMPLETES, FAILS, CONTINUES, IS_CANCELLED, IS_TERMINATED };

static const struct end_case {
    const char *name, *cause; /* why its activity is cancelled */
    enum end end;
} ends[] = {
    {"completed", "ended", COMPLETES},           {"failed", "ended", FAILS},
    {"continued", "ended", CONTINUES},           {"cancelled", "requested", IS_CANCELLED},
    {"terminated", "terminated", IS_TERMINATED},
};

/* An instance with one open activity, whose row exists. */
static void begin(const char *id)
{
    seed_start(id, "leaves", "nobody");
    CU_ASSERT_TRUE(seed_wait_rows(id, 1));
    CU_ASSERT_TRUE(seed_wait_queued("nobody", id, 2, true));
}

/* Ends it. The user sees: the activity is cancelled in history, for that reason, and its row is gone. */
static void finish(const char *id, const struct end_case *end)
{
    switch (end->end) {
    case COMPLETES: seed_signal(id, "end", "complete"); break;
    case FAILS: seed_signal(id, "end", "fail"); break;
    case CONTINUES: seed_signal(id, "end", "continue"); break;
    case IS_CANCELLED: seed_cancel(id, "no"); break;
    case IS_TERMINATED: seed_terminate(id, "no"); break;
    }
    CU_ASSERT_TRUE(seed_wait_rows(id, 0));
    CU_ASSERT_EQUAL(seed_events(id, "ActivityCancelled", end->cause), 1);
    CU_ASSERT_EQUAL(seed_events(id, "ActivityCancelled", NULL), 1);
}

static void check_fetch_after(const char *test, const struct end_case *end)
{
    char id[ACTOR_ID_BYTES];
    struct claim claim;
    snprintf(id, sizeof id, "%s-%s", test, end->name);
    claim = claim_of(id, 1, 2);
    begin(id);
    finish(id, end);
    CU_ASSERT_EQUAL(fetch(&claim), ROW_MISSING);
}

static void check_renew_after(const char *test, const struct end_case *end)
{
    char id[ACTOR_ID_BYTES];
    struct claim claim;
    snprintf(id, sizeof id, "%s-%s", test, end->name);
    claim = claim_of(id, 1, 2);
    begin(id);
    CU_ASSERT_EQUAL(fetch(&claim), ROW_MINE);
    finish(id, end);
    CU_ASSERT_EQUAL(renew(&claim), ROW_MISSING);
    CU_ASSERT_EQUAL(ack(&claim), ROW_MISSING);
}

/* ---- fetch ---- */

static void fetch_running(void)
{
    struct claim claim = claim_of("fetch-running", 1, 2);
    begin("fetch-running");
    CU_ASSERT_EQUAL(fetch(&claim), ROW_MINE);
    CU_ASSERT_EQUAL(claim.attempt, 1);
}

static void fetch_completed(void)
{
    check_fetch_after("fetch", &ends[COMPLETES]);
}

static void fetch_failed(void)
{
    check_fetch_after("fetch", &ends[FAILS]);
}

static void fetch_continued(void)
{
    check_fetch_after("fetch", &ends[CONTINUES]);
    CU_ASSERT_TRUE(seed_wait_sql("2", "SELECT execution FROM thole_default.instances" /* the instance lives
                                                                                         on */
                                      " WHERE instance = 'fetch-continued'"));
}

/* Whatever the status is, if it is not running; and a paused instance has not ended. */
static void fetch_any_end(void)
{
    struct claim claim = claim_of("any-paused", 1, 2);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        check_fetch_after("any", &ends[i]);
    begin("any-paused");
    CHECK_OK(thole_client_pause(seed.client, THOLE_STR("any-paused"), THOLE_STR("lunch"), &seed.err),
             &seed.err);
    CU_ASSERT_TRUE(seed_wait_sql("Paused",
                                 "SELECT CASE status WHEN 8 THEN 'Paused' END FROM thole_default.instances"
                                 " WHERE instance = 'any-paused'"));
    CU_ASSERT_EQUAL(fetch(&claim), ROW_MINE);
}

/* The instance is deleted while its activity is open; nobody was asked to cancel. */
static void delete_instance(const char *id)
{
    thole_delete_options const options = {.size = sizeof options, .force = true};
    CHECK_OK(thole_client_delete(seed.client, thole_slice_from(id), &options, NULL, &seed.err), &seed.err);
    CU_ASSERT_TRUE(seed_wait_rows(id, 0));
}

static void fetch_deleted(void)
{
    struct claim claim = claim_of("fetch-deleted", 1, 2);
    begin("fetch-deleted");
    delete_instance("fetch-deleted");
    CU_ASSERT_EQUAL(fetch(&claim), ROW_MISSING);
}

static void renew_deleted(void)
{
    struct claim claim = claim_of("renew-deleted", 1, 2);
    begin("renew-deleted");
    CU_ASSERT_EQUAL(fetch(&claim), ROW_MINE);
    delete_instance("renew-deleted");
    CU_ASSERT_EQUAL(renew(&claim), ROW_MISSING);
}

/* The activity runs while its instance is deleted: its token fires, nothing is sent, its message is
 * acknowledged, its slot serves. */
static void orphan(void)
{
    seed_start("orphan", "polite", "live");
    CU_ASSERT_TRUE(actors_wait_runs("orphan", 1));
    uint64_t const message = seed_message("live", "orphan", 2);
    delete_instance("orphan");
    uint64_t const after = seed_inbox_last("orphan");
    CU_ASSERT_TRUE(actors_wait_returned("orphan", 0));
    work_heard_check_ack("orphan", message);
    CU_ASSERT_TRUE(seed_wait_queued("live", "orphan", 2, false));
    CU_ASSERT_EQUAL(seed_inbox_last("orphan"), after);
    seed_start("after-orphan", "echo", "live");
    seed_check_outcome("after-orphan", "attempt 1 by A");
}

/* ---- renew ---- */

/* How much of the row's lease is left, in whole seconds. */
static void check_lease_left(const char *when, const char *id, const char *want_s)
{
    CHECK_STR(when,
              seed_sql("SELECT round(extract(epoch FROM lease_until - greatest(claimed_at, renewed_at)))"
                       " FROM thole_default.worker_queue WHERE instance = '%s'",
                       id),
              want_s);
}

/* Claimed with a lease of 30 s; 20 s later renewed; and 20 s later, when the lease of the claim would be
 * over, it lasts. */
static struct claim renewed_after_20_s(const char *id)
{
    struct claim claim = claim_of(id, 1, 2), rival = claim;
    claim.lease_ms = rival.lease_ms = LEASE_MS;
    begin(id);
    CU_ASSERT_EQUAL(fetch(&claim), ROW_MINE);
    check_lease_left("claimed", id, "30");
    seed_rows_age(id, 20000);
    CU_ASSERT_EQUAL(renew(&claim), ROW_MINE);
    check_lease_left("renewed", id, "30");
    seed_rows_age(id, 20000);
    CU_ASSERT_EQUAL(fetch_as(RIVAL, &rival), ROW_HELD);
    CU_ASSERT_TRUE(rival.left_ms > 0 && rival.left_ms <= 10000);
    CHECK_STR("holder",
              seed_sql("SELECT worker || attempt FROM thole_default.worker_queue WHERE instance = '%s'", id),
              "hand1");
    return claim;
}

/* The holder is told that it goes on, as long as it renews; then another takes it over. */
static void renew_active(void)
{
    struct claim claim = renewed_after_20_s("renew-active"), rival = claim_of("renew-active", 1, 2);
    CU_ASSERT_EQUAL(renew(&claim), ROW_MINE);
    seed_rows_age("renew-active", LEASE_MS);
    CU_ASSERT_EQUAL(fetch_as(RIVAL, &rival), ROW_MINE);
    CU_ASSERT_EQUAL(renew(&claim), ROW_STOLEN);
}

/* The lease is extended, and what is held so is completed. */
static void renew_extends(void)
{
    struct claim claim = renewed_after_20_s("renew-extends");
    CU_ASSERT_EQUAL(ack(&claim), ROW_MINE);
}

static void renew_completed(void)
{
    check_renew_after("renew", &ends[COMPLETES]);
}

static void renew_failed(void)
{
    check_renew_after("renew", &ends[FAILS]);
}

static void renew_continued(void)
{
    check_renew_after("renew", &ends[CONTINUES]);
}

/* ---- ack ---- */

/* A worker's activity is cancelled: its message is acknowledged, and nothing is sent to the instance. */
static void ack_none(void)
{
    seed_start("ack-none", "polite", "live");
    CU_ASSERT_TRUE(actors_wait_runs("ack-none", 1));
    uint64_t const before = seed_inbox_last("ack-none"), message = seed_message("live", "ack-none", 2);
    seed_cancel("ack-none", "no");
    seed_check_outcome("ack-none", "no");
    CU_ASSERT_TRUE(actors_wait_returned("ack-none", 0));
    work_heard_check_ack("ack-none", message);
    CU_ASSERT_TRUE(seed_wait_queued("live", "ack-none", 2, false));
    CU_ASSERT_EQUAL(seed_inbox_last("ack-none"), before + 1); /* the request to cancel */
    CU_ASSERT_EQUAL(seed_events("ack-none", "ActivityCompleted", NULL), 0);
}

static void ack_some(void)
{
    seed_start("ack-some", "polite", "live");
    CU_ASSERT_TRUE(actors_wait_runs("ack-some", 1));
    uint64_t const before = seed_inbox_last("ack-some");
    actors_release("ack-some", UINT32_MAX);
    seed_check_outcome("ack-some", "attempt 1 by A");
    CU_ASSERT_EQUAL(seed_inbox_last("ack-some"), before + 1); /* the result */
    CU_ASSERT_TRUE(seed_wait_rows("ack-some", 0));
    CU_ASSERT_TRUE(seed_wait_queued("live", "ack-some", 2, false));
    seed_check_one_result("ack-some");
}

static void ack_cancelled_row(void)
{
    struct claim claim = claim_of("ack-cancelled", 1, 2);
    begin("ack-cancelled");
    CU_ASSERT_EQUAL(fetch(&claim), ROW_MINE);
    finish("ack-cancelled", &ends[IS_CANCELLED]);
    CU_ASSERT_EQUAL(ack(&claim), ROW_MISSING);
}

static void ack_existing_row(void)
{
    struct claim claim = claim_of("ack-existing", 1, 2);
    begin("ack-existing");
    CU_ASSERT_EQUAL(fetch(&claim), ROW_MINE);
    CU_ASSERT_EQUAL(ack(&claim), ROW_MINE);
    CU_ASSERT_TRUE(seed_wait_rows("ack-existing", 0));
    /* Once. Nothing is known of the row until a batch of the engine follows, which the test's result would
     * bring. */
    CU_ASSERT_EQUAL(ack(&claim), ROW_UNKNOWN);
}

/* ---- cancellation ---- */

static void cancelled_rows_go_others_stay(void)
{
    struct claim claims[3];
    seed_start("some", "some", "nobody");
    CU_ASSERT_TRUE(seed_wait_rows("some", 3));
    for (uint64_t i = 0; i < 3; i++) {
        claims[i] = claim_of("some", 1, 2 + i);
        CU_ASSERT_EQUAL(fetch(&claims[i]), ROW_MINE);
    }
    seed_signal("some", "cancel", "");
    CU_ASSERT_TRUE(seed_wait_rows("some", 1));
    CU_ASSERT_EQUAL(renew(&claims[0]), ROW_MISSING);
    CU_ASSERT_EQUAL(renew(&claims[1]), ROW_MISSING);
    CU_ASSERT_EQUAL(renew(&claims[2]), ROW_MINE);
    CU_ASSERT_EQUAL(seed_events("some", "ActivityCancelled", "explicit"), 2);
}

static void locked_and_cancelled(void)
{
    check_renew_after("locked", &ends[IS_CANCELLED]);
}

/* Nobody has fetched it: its message is withdrawn as well. */
static void unlocked_and_cancelled(void)
{
    begin("unlocked");
    finish("unlocked", &ends[IS_CANCELLED]);
    CU_ASSERT_TRUE(seed_wait_queued("nobody", "unlocked", 2, false));
}

static void scheduled_and_cancelled_in_one_turn(void)
{
    seed_start("never", "never", "live");
    seed_check_outcome("never", "attempt 1 by A"); /* the echo that comes after it */
    CU_ASSERT_EQUAL(actors_runs("never", NULL), 1);
    CU_ASSERT_FALSE(seed_is_queued("live", "never", 2));
    CU_ASSERT_EQUAL(seed_events("never", "ActivityScheduled", NULL), 2);
    CU_ASSERT_EQUAL(seed_events("never", "ActivityCancelled", "explicit"), 1);
    CU_ASSERT_TRUE(seed_wait_rows("never", 0));
}

static void first_reason_wins(void)
{
    struct actor_run run;
    seed_start("twice", "stays", "live");
    CU_ASSERT_TRUE(actors_wait_runs("twice", 1));
    seed_cancel("twice", "first");
    CU_ASSERT_TRUE(actors_wait_fired("twice", 0));
    seed_cancel("twice", "second");
    actors_release("twice", UINT32_MAX);
    seed_signal("twice", "go", "");
    seed_check_outcome("twice", "first");
    CU_ASSERT_TRUE(actors_run("twice", 0, &run));
    CHECK_STR("token", run.reason, "first");
    CHECK_STR("token", thole_cancel_kind_name(run.kind), "requested");
    CU_ASSERT_EQUAL(seed_events("twice", "ActivityCancelled", NULL), 1);
    CU_ASSERT_EQUAL(actors_runs("twice", NULL), 1);
}

/* A worker comes for queue "nobody": of all that was there it runs what belongs to instances that go on. */
static void only_what_lives_is_run(void)
{
    static const char *const alive[] = {"fetch-running", "any-paused", "renew-active"};
    struct actor_worker late;
    actor_options(&late, &seed.stack, "nobody", 3000);
    actor_start(&late, 'B');
    for (size_t i = 0; i < ARRAY_LEN(alive); i++)
        actors_release(alive[i], UINT32_MAX);
    actors_release("some", UINT32_MAX);
    seed_check_outcome("some", "attempt 2 by B");
    for (size_t i = 0; i < ARRAY_LEN(alive); i++)
        CU_ASSERT_TRUE(actors_wait_runs(alive[i], 1));
    CU_ASSERT_TRUE(seed_drained());
    CU_ASSERT_EQUAL(actors_runs(NULL, "nobody"), ARRAY_LEN(alive) + 1);
    actor_stop(&late);
}

static void begin_all(void)
{
    struct postgres_options const options = {.conninfo = seed.stack.postgres.url, .ns = "default"};
    CHECK_OK(postgres_open(&options, &pg, &seed.err), &seed.err);
    work_heard_open(seed.stack.nats.url);
    actor_options(&live, &seed.stack, "live", LIVE_LEASE_MS);
    actor_start(&live, 'A');
}

static void end_all(void)
{
    actor_stop(&live);
    work_heard_close();
    postgres_close(pg);
}

static const struct thole_test tests[] = {
    {"begin", begin_all},
    {"fetch_returns_running_state_for_active_orchestration", fetch_running},
    {"fetch_returns_terminal_state_when_orchestration_completed", fetch_completed},
    {"fetch_returns_terminal_state_when_orchestration_failed", fetch_failed},
    {"fetch_returns_terminal_state_when_orchestration_continued_as_new", fetch_continued},
    {"fetch_treats_any_non_running_status_as_terminal", fetch_any_end},
    {"fetch_returns_missing_state_when_instance_deleted", fetch_deleted},
    {"renew_returns_missing_when_instance_deleted", renew_deleted},
    {"orphan_activity_after_instance_delete", orphan},
    {"renew_returns_running_when_orchestration_active", renew_active},
    {"renew_succeeds_when_orchestration_running", renew_extends},
    {"renew_returns_terminal_when_orchestration_completed", renew_completed},
    {"renew_returns_terminal_when_orchestration_failed", renew_failed},
    {"renew_returns_terminal_when_orchestration_continued_as_new", renew_continued},
    {"ack_work_item_none_deletes_without_enqueue", ack_none},
    {"ack_work_item_some_deletes_and_enqueues", ack_some},
    {"ack_work_item_fails_on_cancelled_row", ack_cancelled_row},
    {"ack_work_item_succeeds_if_row_exists", ack_existing_row},
    {"ack_orchestration_item_deletes_cancelled_activities", cancelled_rows_go_others_stay},
    {"cancellation_of_locked_activity_causes_renewal_failure", locked_and_cancelled},
    {"cancellation_of_unlocked_activity_removes_from_queue", unlocked_and_cancelled},
    {"schedule_and_cancel_in_one_turn_never_runs", scheduled_and_cancelled_in_one_turn},
    {"cancel_requests_are_idempotent_first_reason_wins", first_reason_wins},
    {"only what lives is run", only_what_lives_is_run},
    {"end", end_all},
};

int main(void)
{
    return seed_run("seed_queue", tests, ARRAY_LEN(tests), NULL);
}
