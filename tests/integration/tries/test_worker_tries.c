/* Tries, deadlines, heartbeats and completion from outside, as the worker role does them: the test does
 * what the engine would do. */
#include "nonces.h"
#include "worker_stage.h"

static struct stage stage;

/* The row's details and whether it is left to others, as another worker's claim finds them, which takes it.
 */
static const char *row_details(uint64_t id, uint32_t try)
{
    static char text[80];
    struct claim claim = {.key = {THOLE_STR("i"), 1, id, try}};
    struct arena arena;
    arena_init(&arena, 1 << 20);
    stage_end_leases(&stage);
    CHECK_OK(worker_store_claim(stage.pg, THOLE_STR("rival"), NULL, &claim, 1, &arena, &stage.err),
             &stage.err);
    snprintf(text, sizeof text, claim.state == ROW_MINE ? "%.*s" : "missing", THOLE_FMT(claim.details));
    arena_release(&arena);
    return text;
}

static void check_result(size_t least, thole_status status, uint32_t try, const char *data, const char *type,
                         const char *details)
{
    CU_ASSERT_EQUAL(stage_results(&stage, "i", least, 10000), least);
    CU_ASSERT_EQUAL(stage_last.status, status);
    CU_ASSERT_EQUAL(stage_last.try_number, try);
    CHECK_STR("data", stage_last.data, data);
    CHECK_STR("type", stage_last.error_type, type);
    CHECK_STR("details", stage_last.details, details);
}

static void test_two_tries(void)
{
    stage_begin(&stage, "tries");
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule_try(&stage, "i", 1, (struct stage_try){1, 0, ""}, "paged", "fail");
    check_result(1, THOLE_APP, 1, "no answer", "bank.away", "page 1.1");
    CU_ASSERT_FALSE(stage_last.final);
    /* an equal attempt of the same worker: only the try tells the two results apart */
    stage_schedule_try(&stage, "i", 1, (struct stage_try){2, 0, stage_last.details}, "paged", "");
    check_result(2, THOLE_OK, 2, "2.1 after page 1.1", "", "");
    stage_schedule_try(&stage, "i", 2, (struct stage_try){7, 0, ""}, "paged", "final");
    check_result(3, THOLE_APP, 7, "never", "declined", "page 7.1");
    CU_ASSERT_TRUE(stage_last.final);
    stage_schedule_try(&stage, "i", 3, (struct stage_try){1, 0, "from before"}, "declined", "x");
    check_result(4, THOLE_APP, 1, "declined: x, key i.1.3", "", "from before"); /* nothing newer was said */
    CU_ASSERT_TRUE(stage_drained(&stage, 2000));
    worker_host_stop(worker);
    stage_end(&stage);
}

/* The engine has given a try up and queued the next, while the first one still runs. */
static void test_the_old_tries_result_is_refused(void)
{
    stage_begin(&stage, "refused");
    stage.options.suppress_push = true;
    stage_log_begin(&stage);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule_try(&stage, "i", 1, (struct stage_try){1, 0, ""}, "paged", "stubborn");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    stage_schedule_try(&stage, "i", 1, (struct stage_try){2, 0, ""}, "paged", "");
    check_result(1, THOLE_OK, 2, "2.1 after ", "", "");
    atomic_store(&stage_notes.release, true);
    CU_ASSERT_TRUE(stage_wait(&stage_notes.returned, 1, 5000));
    CU_ASSERT_TRUE(stage_drained(&stage, 5000)); /* both messages are done with */
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 0, 0), 1);
    worker_host_stop(worker);
    (void)stage_log_end(&stage);
    stage_end(&stage);
}

static void test_messages_of_other_tries_run_nothing(void)
{
    stage_begin(&stage, "others");
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_row_try(&stage, "i", 1, (struct stage_try){2, 0, ""}, "paged");
    stage_message_try(&stage, "i", 1, 1, "paged", ""); /* of an old try */
    stage_message_try(&stage, "i", 1, 3, "paged", ""); /* of one that is not projected */
    CU_ASSERT_TRUE(stage_drained(&stage, 5000));
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.started), 0);
    stage_message_try(&stage, "i", 1, 2, "paged", "");
    check_result(1, THOLE_OK, 2, "2.1 after ", "", "");
    worker_host_stop(worker);
    stage_end(&stage);
}

static void test_a_push_for_another_try_is_not_meant(void)
{
    stage_begin(&stage, "pushes");
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule_try(&stage, "i", 1, (struct stage_try){2, 0, ""}, "paged", "hold");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    stage_push_try(&stage, "i", 1, 1);
    stage_schedule(&stage, "i", 2, "echo", "behind the push");
    check_result(1, THOLE_OK, 1, "behind the push", "", "");
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.fired), 0);
    stage_push_try(&stage, "i", 1, 2);
    CU_ASSERT_TRUE(stage_wait(&stage_notes.fired, 1, 1000));
    stage_row(&stage, "i", 1, "paged", false);
    worker_host_stop(worker);
    stage_end(&stage);
}

static void test_a_try_takes_too_long(void)
{
    stage_begin(&stage, "timeout");
    stage_log_begin(&stage);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    uint64_t const from_us = stage_now_us();
    stage_schedule_try(&stage, "i", 1, (struct stage_try){1, 700, ""}, "paged", "hold");
    check_result(1, THOLE_TIMEOUT, 1, "timeout", "timeout", "page 1.1");
    uint64_t const took_ms = (stage_now_us() - from_us) / 1000;
    CU_ASSERT_TRUE(took_ms >= 700 && took_ms < 2000);
    CHECK_STR("reason", stage_notes.reason, "timeout");
    CU_ASSERT_TRUE(atomic_load(&stage_notes.left_ms) <= 700 && atomic_load(&stage_notes.left_ms) > 300);
    CU_ASSERT_TRUE(stage_drained(&stage, 2000));
    stage_schedule_try(&stage, "i", 2, (struct stage_try){1, 60000, ""}, "paged", ""); /* in time */
    check_result(2, THOLE_OK, 1, "1.1 after ", "", "");
    worker_host_stop(worker);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_log_end(&stage), "timed_out=1"));
    stage_end(&stage);
}

/* The try does not even listen: its slot is given up, and a late return does not count. */
static void test_a_try_that_does_not_listen_times_out(void)
{
    stage_begin(&stage, "deaf");
    stage.options.slots = 1;
    stage.options.grace_ms = 400;
    stage_log_begin(&stage);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule_try(&stage, "i", 1, (struct stage_try){1, 500, ""}, "paged", "stubborn");
    check_result(1, THOLE_TIMEOUT, 1, "timeout", "timeout", "page 1.1");
    stage_schedule(&stage, "i", 2, "echo", "the slot is replaced");
    check_result(2, THOLE_OK, 1, "the slot is replaced", "", "");
    atomic_store(&stage_notes.release, true);
    CU_ASSERT_TRUE(stage_wait(&stage_notes.returned, 2, 5000));
    CU_ASSERT_TRUE(stage_drained(&stage, 2000));
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 0, 0), 2);
    worker_host_stop(worker);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_log_end(&stage), "abandoned=1"));
    stage_end(&stage);
}

/* The worker was lost, and no other has seen the deadline pass. */
static void test_a_claim_after_the_deadline_runs_nothing(void)
{
    struct claim claim = {.key = {THOLE_STR("i"), 1, 1, 1}};
    stage_begin(&stage, "late");
    stage_log_begin(&stage);
    stage_row_try(&stage, "i", 1, (struct stage_try){1, 300, "half"}, "paged");
    CHECK_OK(worker_store_claim(stage.pg, THOLE_STR("lost"), NULL, &claim, 1, NULL, &stage.err), &stage.err);
    CU_ASSERT_TRUE(claim.left_ms > 0);
    stage_pause_ms(400);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_message(&stage, "i", 1, "paged", "hold");
    check_result(1, THOLE_TIMEOUT, 1, "timeout", "timeout", "half");
    CU_ASSERT_EQUAL(stage_last.attempt, 2);
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.started), 0);
    CU_ASSERT_TRUE(stage_drained(&stage, 2000));
    worker_host_stop(worker);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_log_end(&stage), "its deadline has passed"));
    stage_end(&stage);
}

/* The engine ends the try (row away, push) while the handler runs. */
static void test_a_try_that_the_engine_ended(void)
{
    stage_begin(&stage, "ended");
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule_try(&stage, "i", 1, (struct stage_try){1, 60000, ""}, "paged", "hold");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    stage_row(&stage, "i", 1, "paged", false);
    stage_push_try(&stage, "i", 1, 1);
    CU_ASSERT_TRUE(stage_wait(&stage_notes.fired, 1, 1000));
    CU_ASSERT_TRUE(stage_drained(&stage, 2000));
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 0, 0), 0);
    worker_host_stop(worker);
    stage_end(&stage);
}

static void test_heartbeats_go_with_renewals(void)
{
    stage_begin(&stage, "beats");
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule_try(&stage, "i", 1, (struct stage_try){1, 0, "before"}, "paged", "hold");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    stage_pause_ms(STAGE_LEASE_MS / 3 + 500);
    CHECK_STR("stored by a renewal", row_details(1, 1), "page 1.1"); /* which takes the row away */
    CU_ASSERT_TRUE(stage_wait(&stage_notes.fired, 1, STAGE_LEASE_MS));
    CHECK_STR("reason", stage_notes.reason, "lease_lost");
    stage_row(&stage, "i", 1, "paged", false);
    worker_host_stop(worker);
    stage_end(&stage);
}

/* Postgres is away at the first renewal: what was said is sent again. */
static void test_heartbeats_survive_an_outage(void)
{
    stage_begin(&stage, "outage");
    stage.options.lease_ms = 9000;
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule_try(&stage, "i", 1, (struct stage_try){1, 0, ""}, "paged", "hold");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    stage_pause_ms(2500);
    server_kill9(&stage.postgres);
    stage_pause_ms(1500); /* a renewal is due after 3 s */
    CHECK_OK(server_restart(&stage.postgres, &stage.err), &stage.err);
    stage_pause_ms(2500);
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.fired), 0);
    struct rows_state rows;
    CU_ASSERT_EQUAL(projector_store_open(stage.pg, 0, 1, &rows, NULL, &stage.err), THOLE_UNAVAILABLE);
    CHECK_OK(projector_store_open(stage.pg, 0, 1, &rows, NULL, &stage.err), &stage.err);
    CHECK_STR("stored after all", row_details(1, 1), "page 1.1");
    stage_row(&stage, "i", 1, "paged", false);
    stage_push(&stage, "i", 1);
    CU_ASSERT_TRUE(stage_wait(&stage_notes.returned, 1, 5000));
    worker_host_stop(worker);
    stage_end(&stage);
}

static void test_a_stop_hands_details_on(void)
{
    stage_begin(&stage, "handover");
    stage.options.stop_limit_ms = 100;
    stage.options.lease_ms = 30000;
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule_try(&stage, "i", 1, (struct stage_try){1, 0, ""}, "paged", "hold");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    worker_host_stop(worker);
    CHECK_STR("given back with", row_details(1, 1), "page 1.1");
    stage_row(&stage, "i", 1, "paged", false);
    stage_end(&stage);
}

static void test_later(void)
{
    struct claim claim = {.key = {THOLE_STR("i"), 1, 1, 3}};
    stage_begin(&stage, "later");
    stage_log_begin(&stage);
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_schedule_try(&stage, "i", 1, (struct stage_try){3, 0, ""}, "later", "");
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 5000));
    struct nonce const nonce = nonce_make(test_nonce_key(), claim.key.instance, 1, 1);
    char token[64];
    (void)snprintf(token, sizeof token, "0.1.1.3.%s.i", nonce.text);
    CHECK_STR("token", stage_notes.token, token);
    CU_ASSERT_TRUE(stage_drained(&stage, 2000)); /* the message is done with, */
    CHECK_STR("nobody needs to run it", row_details(1, 3), "missing");
    CHECK_OK(worker_store_renew(stage.pg, THOLE_STR("rival"), &claim, 1, &stage.err), &stage.err);
    stage_message_try(&stage, "i", 1, 3, "later", ""); /* and should it come again, nothing is run */
    CU_ASSERT_TRUE(stage_drained(&stage, 2000));
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.started), 1);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 0, 0), 0);
    stage_schedule_try(&stage, "i", 1, (struct stage_try){4, 0, ""}, "paged", ""); /* failed: the next try */
    check_result(1, THOLE_OK, 4, "4.1 after ", "", "");
    worker_host_stop(worker);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_log_end(&stage), "left=1"));
    stage_end(&stage);
}

/* A message with numbers that no row can have goes, and costs the others nothing. */
static void test_numbers_that_no_row_has(void)
{
    stage_begin(&stage, "numbers");
    struct worker_host *const worker = stage_worker(&stage, &stage_program);
    stage_message_try(&stage, "i", UINT64_MAX, 1, "echo", "");
    stage_message_try(&stage, "i", 1, UINT32_MAX, "echo", "");
    stage_message_try(&stage, "i", 1, 0, "echo", "");
    stage_schedule(&stage, "i", 2, "echo", "fine");
    check_result(1, THOLE_OK, 1, "fine", "", "");
    CU_ASSERT_TRUE(stage_drained(&stage, 5000));
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.started), 1);
    worker_host_stop(worker);
    stage_end(&stage);
}

static const struct thole_test tests[] = {
    {"two tries", test_two_tries},
    {"the old try's result is refused", test_the_old_tries_result_is_refused},
    {"messages of other tries run nothing", test_messages_of_other_tries_run_nothing},
    {"a push for another try is not meant", test_a_push_for_another_try_is_not_meant},
    {"a try takes too long", test_a_try_takes_too_long},
    {"a try that does not listen times out", test_a_try_that_does_not_listen_times_out},
    {"a claim after the deadline runs nothing", test_a_claim_after_the_deadline_runs_nothing},
    {"a try that the engine ended", test_a_try_that_the_engine_ended},
    {"heartbeats go with renewals", test_heartbeats_go_with_renewals},
    {"heartbeats survive an outage", test_heartbeats_survive_an_outage},
    {"a stop hands details on", test_a_stop_hands_details_on},
    {"later", test_later},
    {"numbers that no row has", test_numbers_that_no_row_has},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stage_open(&stage);
    int const failed = thole_run_suite("worker_tries", tests, ARRAY_LEN(tests));
    stage_close(&stage);
    return failed;
}
