/*
 * Seeds 000, 001, 003, 004: edges. Races are played in both orders with the engine asleep, and many times
 * with everything awake.
 */
#include "requests.h"
#include "seed_stage.h"
#include "work.h"
#include "work_heard.h"
#include "wrap_moved_clock.h"
#include <signal.h>
#include <stdatomic.h>

enum { LEASE_MS = 2000, GRACE_MS = 300, RACERS = 40 };
enum { ROBBED_LEASE_MS = 600000, ROBBED_GRACE_MS = 120000 }; /* of a moved clock */

static struct actor_worker live,
    single; /* queues "live" (many slots) and "single" (one, with a short grace) */

static void release(const char *id)
{
    actors_release(id, UINT32_MAX);
}

static void begin_all(void)
{
    work_heard_open(seed.stack.nats.url);
    actor_options(&live, &seed.stack, "live", LEASE_MS);
    live.options.slots = RACERS;
    actor_start(&live, 'A');
    actor_options(&single, &seed.stack, "single", LEASE_MS);
    single.options.slots = 1;
    single.options.grace_ms = GRACE_MS;
    actor_start(&single, 'B');
}

static void end_all(void)
{
    actor_stop(&live);
    actor_stop(&single);
    work_heard_close();
}

/* The only slot serves, whatever happened before. */
static void check_single_serves(const char *id)
{
    seed_start(id, "echo", "single");
    seed_check_outcome(id, "attempt 1 by B");
}

/* ---- completion and cancellation ---- */

/*
 * The activity takes 100 ms and is cancelled at 50 ms. The seed's worker would not have looked by then, and
 * its completion would count. Here the cancellation is recorded at once, and who comes first counts: the
 * handler ends as it likes, its slot serves on, its message goes, its result goes nowhere.
 */
static void completed_after_the_cancellation(void)
{
    struct actor_run run;
    seed_start("short", "rude", "live");
    CU_ASSERT_TRUE(actors_wait_runs("short", 1));
    uint64_t const before = seed_inbox_last("short");
    pause_ms(50);
    seed_cancel("short", "at 50 ms");
    pause_ms(50);
    release("short");
    seed_check_outcome("short", "at 50 ms");
    CU_ASSERT_TRUE(actors_wait_returned("short", 0));
    CU_ASSERT_TRUE(actors_run("short", 0, &run));
    CU_ASSERT_TRUE(run.fired); /* and did not mind */
    CU_ASSERT_TRUE(seed_wait_rows("short", 0));
    CU_ASSERT_TRUE(seed_drained());
    CU_ASSERT_EQUAL(seed_events("short", "ActivityCompleted", NULL), 0);
    CU_ASSERT_EQUAL(seed_inbox_last("short"), before + 1); /* the request, and no result */
    CU_ASSERT_EQUAL(actors_runs("short", NULL), 1);
}

/* The result comes first: it counts, and the cancellation has no effect. */
static void completed_before_the_cancellation(void)
{
    completed_after_the_cancellation();
    seed_start("result-first", "polite", "live");
    CU_ASSERT_TRUE(actors_wait_runs("result-first", 1));
    uint64_t const before = seed_inbox_last("result-first");
    CU_ASSERT_TRUE(stack_freeze(seed.engine));
    release("result-first");
    CU_ASSERT_TRUE(seed_wait_rows("result-first", 0)); /* the worker's own doing */
    CU_ASSERT_EQUAL(seed_inbox_last("result-first"), before + 1);
    seed_cancel("result-first", "too late");
    stack_thaw(seed.engine);
    seed_check_outcome("result-first", "attempt 1 by A");
    CU_ASSERT_EQUAL(seed_events("result-first", "ActivityCompleted", NULL), 1);
    CU_ASSERT_EQUAL(seed_events("result-first", "ActivityCancelled", NULL), 0);
}

/* The other way round: the result is stored after the cancellation, and changes nothing. */
static void cancelled_before_the_completion(void)
{
    seed_start("cancel-first", "polite", "live");
    CU_ASSERT_TRUE(actors_wait_runs("cancel-first", 1));
    uint64_t const before = seed_inbox_last("cancel-first");
    CU_ASSERT_TRUE(stack_freeze(seed.engine));
    seed_cancel("cancel-first", "in time");
    release("cancel-first");
    CU_ASSERT_TRUE(seed_wait_rows("cancel-first", 0));
    CU_ASSERT_EQUAL(seed_inbox_last("cancel-first"), before + 2);
    stack_thaw(seed.engine);
    seed_check_outcome("cancel-first", "in time");
    CU_ASSERT_EQUAL(seed_events("cancel-first", "ActivityCompleted", NULL), 0);
    seed_check_one_result("cancel-first");
}

/* Both at once, many times: each has one result, and it is the one that the instance ended with. */
static void completion_races_deletion(void)
{
    char id[ACTOR_ID_BYTES], got[SEED_TEXT_BYTES];
    size_t completed = 0;
    cancelled_before_the_completion();
    for (int i = 0; i < RACERS; i++) {
        snprintf(id, sizeof id, "race-%d", i);
        seed_start(id, "polite", "live");
    }
    for (int i = 0; i < RACERS; i++) {
        snprintf(id, sizeof id, "race-%d", i);
        CU_ASSERT_TRUE(actors_wait_runs(id, 1));
    }
    for (int i = 0; i < RACERS;
         i++) { /* half of them return while the first cancellations are on their way */
        snprintf(id, sizeof id, "race-%d", i);
        if (i % 2 == 0)
            release(id);
    }
    for (int i = 0; i < RACERS; i++) {
        snprintf(id, sizeof id, "race-%d", i);
        seed_cancel(id, "no");
        if (i % 2 != 0)
            release(id);
    }
    for (int i = 0; i < RACERS; i++) {
        snprintf(id, sizeof id, "race-%d", i);
        thole_instance_status const status = seed_end(id, got);
        completed += status == THOLE_INSTANCE_COMPLETED;
        CHECK_STR(id, got, status == THOLE_INSTANCE_COMPLETED ? "attempt 1 by A" : "no");
        seed_check_one_result(id);
        CU_ASSERT_EQUAL(seed_events(id, "ActivityCompleted", NULL), status == THOLE_INSTANCE_COMPLETED);
        CU_ASSERT_EQUAL(actors_runs(id, NULL), 1);
    }
    fprintf(stderr, "\n  completed in time: %zu of %d\n", completed, RACERS);
    CU_ASSERT_TRUE(seed_drained());
    CHECK_STR("rows", seed_sql("SELECT count(*) FROM thole_default.worker_queue"), "0");
}

static atomic_uint stored;

static void on_stored(void *arg, const struct request_done *done)
{
    (void)arg;
    atomic_fetch_add(&stored, done->result == REQUEST_STORED);
}

/* Messages of activities that nobody waits for any more, or that never were. */
static void terminal_or_missing(void)
{
    static const char *const ids[] = {"result-first", "cancel-first", "never-was"};
    struct requests *requests = NULL;
    size_t const before = actors_runs(NULL, NULL);
    CHECK_OK(requests_open(seed.connection, 8, 5000, on_stored, NULL, &requests, &seed.err), &seed.err);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct work_item const item = {.queue = THOLE_STR("live"),
                                       .nonce = THOLE_STR("0123456789abcdef0123456789abcdef"),
                                       .instance = thole_slice_from(ids[i]),
                                       .activity = THOLE_STR("echo"),
                                       .execution = 1,
                                       .activity_id = 2,
                                       .try_number = 1};
        CHECK_OK(work_publish(requests, "default", &item, 1, &seed.err), &seed.err);
    }
    for (int i = 0; i < ACTOR_WAIT_MS / 5 && atomic_load(&stored) < ARRAY_LEN(ids); i++)
        pause_ms(5);
    CU_ASSERT_EQUAL(atomic_load(&stored), ARRAY_LEN(ids));
    CU_ASSERT_TRUE(seed_drained());
    CU_ASSERT_EQUAL(actors_runs(NULL, NULL), before);
    requests_close(requests);
}

/* ---- renewals ---- */

/* NATS cannot be reached either: cut off, then silent, each for less than a lease. Another worker could take
 * over. */
static void retryable_errors_of_nats(void)
{
    struct actor_worker workers[2];
    struct actor_run run = {.fired = true};
    for (int i = 0; i < 2; i++) {
        actor_options(&workers[i], &seed.stack, "blips", LEASE_MS);
        actor_proxies(&workers[i], &seed.stack);
        actor_start(&workers[i], (char)('A' + i));
    }
    seed_start("blips", "polite", "blips");
    CU_ASSERT_TRUE(actors_wait_runs("blips", 1));
    CU_ASSERT_TRUE(actors_run("blips", 0, &run));
    struct tcp_proxy *const nats = workers[run.worker == 'B'].nats;
    tcp_proxy_cut(nats);
    pause_ms(LEASE_MS * 3 / 4);
    tcp_proxy_heal(nats);
    pause_ms(LEASE_MS / 4);
    tcp_proxy_stall(nats, TCP_BOTH);
    pause_ms(LEASE_MS * 3 / 4);
    tcp_proxy_heal(nats);
    pause_ms(LEASE_MS * 2); /* effects of the outages have come by now */
    CU_ASSERT_TRUE(actors_run("blips", 0, &run));
    CU_ASSERT_FALSE(run.fired);
    CU_ASSERT_FALSE(run.returned);
    CU_ASSERT_EQUAL(actors_runs("blips", NULL), 1);
    release("blips");
    seed_check_outcome("blips", run.worker == 'B' ? "attempt 1 by B" : "attempt 1 by A");
    for (int i = 0; i < 2; i++)
        actor_stop(&workers[i]);
}

/* Postgres breaks each of the worker's connections: renewals fail, and come through a moment later. */
static void retryable_errors(void)
{
    char runs[128];
    setenv("THOLE_QUEUE", "errors", 1);
    setenv("THOLE_LEASE", "3s", 1);
    struct stack_program *const worker = seed_program("errors", "worker");
    snprintf(runs, sizeof runs, "%s/runs", seed.stack.dir);
    seed_start("errors", "polite", "errors");
    for (int i = 0; i < ACTOR_WAIT_MS / 5 && stack_count(runs, "errors attempt 1 begins") == 0; i++)
        pause_ms(5);
    (void)seed_sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                   " WHERE application_name = 'thole-worker'");
    CU_ASSERT_TRUE(stack_logged(worker, "renewing activities failed", 1, ACTOR_WAIT_MS));
    CU_ASSERT_TRUE(stack_logged(worker, "claims and renewals: Postgres answers again", 1, ACTOR_WAIT_MS));
    CU_ASSERT_TRUE(seed_wait_sql("t", "SELECT renewed_at > claimed_at FROM thole_default.worker_queue"
                                      " WHERE instance = 'errors'"));
    CU_ASSERT_EQUAL(stack_count(runs, "errors attempt 1 ends"), 0);
    CU_ASSERT_EQUAL(stack_count(worker->log, "token fired"), 0);
    seed_touch("errors.1");
    seed_check_outcome("errors", "attempt 1");
    CU_ASSERT_EQUAL(stack_count(runs, "errors attempt"), 2); /* begins, ends */
    (void)stack_terminate(worker, 10000);
    retryable_errors_of_nats();
}

/* The try's message is delivered once more, and the row is free: the thief's lease is over. */
static void check_robbed_again(uint64_t message)
{
    struct actor_run run;
    struct work_heard const heard = work_heard_of(message);
    CU_ASSERT_EQUAL(heard.acks + heard.naks + heard.delayed, 0); /* belongs to the other one */
    seed_rows_age("robbed", ROBBED_LEASE_MS);
    work_heard_redeliver("robbed", message);
    CU_ASSERT_TRUE(actors_wait_attempt("robbed", 3));
    CU_ASSERT_TRUE(actors_run("robbed", 0, &run));
    CU_ASSERT_FALSE(run.returned);
    release("robbed");
    seed_check_outcome("robbed", "attempt 3 by B");
    seed_check_one_result("robbed");
    CU_ASSERT_TRUE(actors_wait_returned("robbed", 0));
}

/* The row says that another has it: the token fires with the next renewal, long before the lease would be
 * over, and a handler that does not mind loses its slot with its grace. */
static void non_retryable_error(void)
{
    struct actor_worker robbed;
    struct actor_run run;
    actor_options(&robbed, &seed.stack, "robbed", ROBBED_LEASE_MS);
    robbed.options.slots = 1;
    robbed.options.grace_ms = ROBBED_GRACE_MS;
    actor_start(&robbed, 'B');
    seed_start("robbed", "rude", "robbed");
    CU_ASSERT_TRUE(actors_wait_runs("robbed", 1));
    uint64_t const message = seed_message("robbed", "robbed", 2);
    (void)seed_sql("UPDATE thole_default.worker_queue SET attempt = attempt + 1, worker = 'thief'"
                   " WHERE instance = 'robbed'");
    moved_clock_pass(ROBBED_LEASE_MS / 3);
    CU_ASSERT_TRUE_FATAL(actors_wait_fired("robbed", 0));
    CU_ASSERT_TRUE(actors_run("robbed", 0, &run));
    CHECK_STR("kind", thole_cancel_kind_name(run.kind), "lease_lost");
    CU_ASSERT_FALSE(run.returned);
    seed_start("after-robbed", "echo", "robbed");
    moved_clock_pass(ROBBED_GRACE_MS);
    seed_check_outcome("after-robbed", "attempt 1 by B"); /* while the first one still runs */
    check_robbed_again(message);
    actor_stop(&robbed);
}

/* ---- several at once, and what handlers start ---- */

static void cancelled_together(void)
{
    struct actor_worker three;
    struct actor_run run;
    actor_options(&three, &seed.stack, "three", LEASE_MS);
    three.options.slots = 3;
    three.options.grace_ms = GRACE_MS;
    actor_start(&three, 'A');
    seed_start("together", "together", "three");
    CU_ASSERT_TRUE(actors_wait_runs("together", 3));
    seed_cancel("together", "all of you");
    for (size_t i = 0; i < 3; i++) {
        CU_ASSERT_TRUE(actors_wait_fired("together", i));
        CU_ASSERT_TRUE(actors_run("together", i, &run));
        CHECK_STR("reason", run.reason, "all of you");
    }
    seed_check_outcome("together", "all of you");
    seed_start("after-together", "fork_join", "three"); /* all slots at the same time */
    CU_ASSERT_TRUE(actors_wait_runs("after-together", 3));
    size_t returned = 0;
    for (size_t i = 0; i < 3; i++)
        returned += actors_run("together", i, &run) && run.returned;
    CU_ASSERT_EQUAL(returned, 2); /* the third minds nothing, and holds nobody up */
    release("after-together");
    seed_check_outcome("after-together", "attempt 1 by A, attempt 1 by A, attempt 1 by A");
    release("together");
    CU_ASSERT_TRUE(seed_drained());
    actor_stop(&three);
}

static void children_that_are_told(void)
{
    seed_start("spawns", "spawns", "live");
    CU_ASSERT_TRUE(actors_wait_children(3));
    seed_cancel("spawns", "enough");
    seed_check_outcome("spawns", "enough");
    CU_ASSERT_TRUE(actors_wait_children(0));
    CU_ASSERT_TRUE(actors_wait_returned("spawns", 0));
    CU_ASSERT_TRUE(seed_drained());
}

/* A thread that was not told goes on: the activity has ended, its slot serves, and nobody ends the thread. */
static void children_that_are_not_told(void)
{
    seed_start("forgets", "forgets", "single");
    CU_ASSERT_TRUE(actors_wait_children(1));
    seed_cancel("forgets", "enough");
    seed_check_outcome("forgets", "enough");
    CU_ASSERT_TRUE(actors_wait_returned("forgets", 0));
    check_single_serves("after-forgets");
    CU_ASSERT_EQUAL(actors_children(), 1);
    release("forgets");
    CU_ASSERT_TRUE(actors_wait_children(0));
}

/* ---- retries ---- */

/* Whichever try it is, and also while the next one is yet to come. */
static void retries_are_cancelled(void)
{
    struct actor_run run;
    seed_start("try-2", "retried_soon", "live");
    seed_start("between", "retried_late", "live");
    CU_ASSERT_TRUE(actors_wait_runs("try-2", 2));
    CU_ASSERT_TRUE(
        seed_wait_sql("1", "SELECT count(*) FROM thole_default.timers WHERE instance = 'between'"));
    seed_signal("try-2", "stop", "");
    seed_signal("between", "stop", "");
    seed_check_outcome("try-2", "stopped");
    seed_check_outcome("between", "stopped");
    CU_ASSERT_TRUE(actors_wait_fired("try-2", 1));
    CU_ASSERT_TRUE(actors_run("try-2", 1, &run));
    CU_ASSERT_EQUAL(run.try_number, 2);
    CHECK_STR("kind", thole_cancel_kind_name(run.kind), "select_loser");
    CU_ASSERT_TRUE(seed_drained());
    CU_ASSERT_TRUE(seed_wait_sql("0", "SELECT count(*) FROM thole_default.timers"));
    CHECK_STR("rows", seed_sql("SELECT count(*) FROM thole_default.worker_queue"), "0");
    CU_ASSERT_EQUAL(actors_runs("try-2", NULL), 2);
    CU_ASSERT_EQUAL(actors_runs("between", NULL), 1);
}

static const struct thole_test tests[] = {
    {"begin", begin_all},
    {"activity_completes_before_cancellation_check", completed_before_the_cancellation},
    {"completion_races_deletion_first_committer_wins", completion_races_deletion},
    {"terminal_or_missing_activity_is_never_started", terminal_or_missing},
    {"renew_retryable_errors_do_not_cancel", retryable_errors},
    {"renew_non_retryable_error_cancels_and_aborts", non_retryable_error},
    {"multiple_activities_cancelled_together", cancelled_together},
    {"activity_spawns_child_tasks_with_cancellation", children_that_are_told},
    {"activity_spawns_child_tasks_without_cancellation_is_user_error", children_that_are_not_told},
    {"retry_attempts_cancelled_by_activity_id", retries_are_cancelled},
    {"end", end_all},
};

int main(void)
{
    return seed_run("seed_edges", tests, ARRAY_LEN(tests), NULL);
}
