/* The functions that a handler may call, without a worker: facts, token, heartbeats, failures, reports. */
#include "activity_run.h"
#include "clock.h"
#include "dropped.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static const struct activity_parties nobody = {.version = 0};

static struct thole_activity *made(thole_activity_fn *run)
{
    struct work_message *const message = calloc(1, sizeof *message);
    message->item = (struct work_item){.queue = THOLE_STR("slow"),
                                       .instance = THOLE_STR("order 7"),
                                       .activity = THOLE_STR("charge"),
                                       .input = THOLE_STR("in"),
                                       .nonce = THOLE_STR("0123456789abcdef0123456789abcdef"),
                                       .execution = 3,
                                       .activity_id = 4,
                                       .try_number = 2};
    struct thole_activity *const act = activity_create(message, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(act);
    act->run = run;
    act->partition = 5;
    return act;
}

static void fire(struct thole_activity *act, thole_cancel_kind kind, thole_slice reason)
{
    activity_fire(act, &(struct activity_cancel){
                           .kind = kind, .reason = reason, .grace_end_ms = clock_monotonic_ms() + 60000});
}

static void check_slice(const char *what, thole_slice got, const char *want)
{
    char text[256];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(got));
    CHECK_STR(what, text, want);
}

static void check_result(struct thole_activity *act, thole_status status, const char *data, const char *type,
                         bool final, const char *details)
{
    char text[ACTIVITY_RESULT_TEXT_BYTES];
    struct message message = {0};
    activity_run(act);
    activity_result(act, 100, text, &message);
    CU_ASSERT_EQUAL(message.status, status);
    check_slice("data", message.data, data);
    check_slice("type", message.error_type, type);
    CU_ASSERT_EQUAL(message.final, final);
    check_slice("details", message.details, details);
    activity_destroy(act);
}

static void test_facts(void)
{
    struct thole_activity *const act = made(NULL);
    thole_slice token = {0};
    CU_ASSERT_EQUAL(thole_activity_try(act), 2);
    check_slice("queue", thole_activity_queue(act), "slow");
    check_slice("key", thole_activity_key(act), "order%207.3.4");
    CU_ASSERT_EQUAL(thole_activity_later(act, &token), THOLE_LATER);
    check_slice("token", token, "5.3.4.2.0123456789abcdef0123456789abcdef.order%207");
    act->message->item.try_number = 0;
    CU_ASSERT_EQUAL(thole_activity_try(act), 1);
    activity_destroy(act);
}

static void test_time_left(void)
{
    struct thole_activity *const act = made(NULL);
    CU_ASSERT_EQUAL(thole_activity_time_left_ms(act), UINT64_MAX);
    CU_ASSERT_EQUAL(activity_begin(act, 1, clock_monotonic_ms() + 60000, THOLE_STR(""), &nobody), THOLE_OK);
    CU_ASSERT(thole_activity_time_left_ms(act) > 50000 && thole_activity_time_left_ms(act) <= 60000);
    CU_ASSERT_EQUAL(activity_begin(act, 1, 1, THOLE_STR(""), &nobody), THOLE_OK);
    CU_ASSERT_EQUAL(thole_activity_time_left_ms(act), 0);
    activity_destroy(act);
}

static void test_why_and_how_long(void)
{
    struct thole_activity *act = made(NULL);
    CU_ASSERT_EQUAL(thole_activity_cancel_kind(act), THOLE_CANCEL_NONE);
    CU_ASSERT_EQUAL(thole_activity_grace_left_ms(act), UINT64_MAX);
    check_slice("no reason", thole_activity_cancel_reason(act), "");
    fire(act, THOLE_CANCEL_EXPLICIT, THOLE_STR("too dear"));
    fire(act, THOLE_CANCEL_SHUTDOWN, (thole_slice){0}); /* the first reason stays */
    CU_ASSERT_EQUAL(thole_activity_cancel_kind(act), THOLE_CANCEL_EXPLICIT);
    check_slice("reason", thole_activity_cancel_reason(act), "too dear");
    CU_ASSERT(thole_activity_grace_left_ms(act) > 50000 && thole_activity_grace_left_ms(act) <= 60000);
    activity_hurry(act, clock_monotonic_ms() + 1000);
    CU_ASSERT(thole_activity_grace_left_ms(act) <= 1000);
    activity_hurry(act, 1);
    CU_ASSERT_EQUAL(thole_activity_grace_left_ms(act), 0);
    activity_destroy(act);
    act = made(NULL);
    fire(act, THOLE_CANCEL_LEASE_LOST, (thole_slice){0});
    check_slice("no text", thole_activity_cancel_reason(act), "lease_lost");
    activity_destroy(act);
}

enum { WAITERS = 4, WAIT_MS = 20000 };

static struct thole_activity *waited_for;

static void *waits(void *arg)
{
    uint64_t *const took_ms = arg;
    uint64_t const from_ms = clock_monotonic_ms();
    bool const told = thole_activity_wait(waited_for, WAIT_MS) == THOLE_CANCELLED;
    *took_ms = told ? clock_monotonic_ms() - from_ms : WAIT_MS;
    return NULL;
}

/* The handler's own threads may wait for it, too. */
static void test_wakes_all_who_wait(void)
{
    struct timespec const pause = {.tv_nsec = 100000000};
    pthread_t threads[WAITERS];
    uint64_t took_ms[WAITERS];
    waited_for = made(NULL);
    for (size_t i = 0; i < WAITERS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, waits, &took_ms[i]), 0);
    nanosleep(&pause, NULL); /* until they wait */
    fire(waited_for, THOLE_CANCEL_REQUESTED, THOLE_STR(""));
    for (size_t i = 0; i < WAITERS; i++) {
        pthread_join(threads[i], NULL);
        CU_ASSERT_TRUE(took_ms[i] < WAIT_MS / 2);
    }
    activity_destroy(waited_for);
}

static bool readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 1;
}

static void test_cancel_fd(void)
{
    struct thole_activity *act = made(NULL);
    int const fd = thole_activity_cancel_fd(act);
    CU_ASSERT(fd >= 0 && !readable(fd));
    CU_ASSERT_EQUAL(thole_activity_cancel_fd(act), fd);
    fire(act, THOLE_CANCEL_REQUESTED, THOLE_STR("enough"));
    fire(act, THOLE_CANCEL_REQUESTED, THOLE_STR("again"));
    CU_ASSERT(readable(fd));
    check_slice("reason", thole_activity_cancel_reason(act), "enough");
    activity_destroy(act);
    act = made(NULL);
    fire(act, THOLE_CANCEL_REQUESTED, THOLE_STR(""));
    CU_ASSERT(readable(thole_activity_cancel_fd(act))); /* made after it fired */
    activity_destroy(act);
}

static void *fire_soon(void *act)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    fire(act, THOLE_CANCEL_REQUESTED, THOLE_STR("soon"));
    return NULL;
}

static void test_fd_wakes_a_poll(void)
{
    struct thole_activity *const act = made(NULL);
    struct pollfd poll_fd = {.fd = thole_activity_cancel_fd(act), .events = POLLIN};
    pthread_t thread;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, fire_soon, act), 0);
    CU_ASSERT_EQUAL(poll(&poll_fd, 1, 10000), 1);
    CU_ASSERT(thole_activity_cancelled(act));
    (void)pthread_join(thread, NULL);
    activity_destroy(act);
}

static void test_heartbeats(void)
{
    struct thole_activity *const act = made(NULL);
    static uint8_t large[DETAILS_BYTES_MAX + 1];
    struct buf to;
    uint64_t seen = 0;
    buf_init(&to, DETAILS_BYTES_MAX);
    CU_ASSERT(!activity_details_since(act, &seen, &to));
    CU_ASSERT_EQUAL(activity_begin(act, 1, UINT64_MAX, THOLE_STR("before"), &nobody), THOLE_OK);
    CU_ASSERT_EQUAL(thole_activity_heartbeat(act, THOLE_STR("one")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_activity_heartbeat(act, THOLE_STR("two")), THOLE_OK);
    CU_ASSERT_EQUAL(thole_activity_heartbeat(act, (thole_slice){large, sizeof large}), THOLE_LIMIT);
    check_slice("those of the claim", thole_activity_details(act), "before");
    CU_ASSERT(activity_details_since(act, &seen, &to));
    check_slice("the last one counts", buf_bytes(&to), "two");
    CU_ASSERT(!activity_details_since(act, &seen, &to));
    CU_ASSERT_EQUAL(thole_activity_heartbeat(act, (thole_slice){large, sizeof large - 1}), THOLE_OK);
    buf_clear(&to);
    CU_ASSERT(activity_details_since(act, &seen, &to));
    CU_ASSERT_EQUAL(to.len, DETAILS_BYTES_MAX);
    fire(act, THOLE_CANCEL_REQUESTED, THOLE_STR(""));
    CU_ASSERT_EQUAL(thole_activity_heartbeat(act, THOLE_STR("")), THOLE_CANCELLED);
    buf_release(&to);
    activity_destroy(act);
}

static thole_status fails(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    return thole_activity_fail(act, "no %s", "money");
}

static thole_status fails_as(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char type[] = "declined";
    (void)input, (void)ret_output;
    (void)thole_activity_heartbeat(act, THOLE_STR("half"));
    thole_status const status = thole_activity_fail_as(act, thole_slice_from(type), "no");
    type[0] = 'X'; /* the type was copied */
    return status;
}

static thole_status fails_for_good(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    drop_status(thole_activity_fail_final(act, THOLE_STR("declined"), "first"));
    return thole_activity_fail_final(act, THOLE_STR("not a type"), "no");
}

static thole_status changes_its_mind(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    drop_status(thole_activity_fail_final(act, THOLE_STR("declined"), "no"));
    *ret_output = input;
    return THOLE_OK;
}

static thole_status cancels_itself(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_CANCELLED;
}

static thole_status odd(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return (thole_status)12345;
}

static thole_status large_output(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = (thole_slice){thole_activity_alloc(act, 101), 101};
    return THOLE_OK;
}

static thole_status pretends(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_LATER;
}

static thole_status leaves(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    thole_slice token;
    (void)input, (void)ret_output;
    return thole_activity_later(act, &token);
}

static void test_later(void)
{
    struct thole_activity *const act = made(leaves);
    activity_run(act);
    CU_ASSERT_EQUAL(act->status, THOLE_LATER);
    activity_destroy(act);
    check_result(made(pretends), THOLE_APP, "the handler returned LATER without thole_activity_later()", "",
                 false, "");
}

static void test_results(void)
{
    struct thole_activity *act = made(fails);
    CU_ASSERT_EQUAL(activity_begin(act, 1, UINT64_MAX, THOLE_STR("before"), &nobody), THOLE_OK);
    check_result(act, THOLE_APP, "no money", "", false, "before");
    check_result(made(fails_as), THOLE_APP, "no", "declined", false, "half");
    check_result(made(fails_for_good), THOLE_APP, "no", "", true, "");
    check_result(made(changes_its_mind), THOLE_OK, "in", "", false, "");
    check_result(made(cancels_itself), THOLE_APP,
                 "the handler returned CANCELLED, but nothing had cancelled it", "", false, "");
    check_result(made(odd), THOLE_APP, "the handler returned 12345, which is not a status", "", false, "");
    act = made(changes_its_mind);
    act->timed_out = true; /* too late */
    check_result(act, THOLE_TIMEOUT, "timeout", "timeout", false, "");
    act = made(changes_its_mind);
    act->poisoned = true;
    act->lost = 3;
    (void)snprintf(act->lost_worker, sizeof act->lost_worker, "w-7");
    check_result(act, THOLE_APP,
                 "3 workers that ran it were lost, w-7 the last: its lease ran out without a report",
                 "poison", false, "");
    act = made(changes_its_mind);
    act->poisoned = true;
    act->lost = 3;
    (void)snprintf(act->lost_worker, sizeof act->lost_worker, "w-7");
    (void)snprintf(act->lost_report, sizeof act->lost_report, "SIGSEGV in its handler");
    CU_ASSERT_EQUAL(activity_begin(act, 1, UINT64_MAX, THOLE_STR("so far"), &nobody), THOLE_OK);
    check_result(act, THOLE_APP, "3 workers that ran it were lost, w-7 the last: SIGSEGV in its handler",
                 "poison", false, "so far");
    check_result(made(large_output), THOLE_LIMIT, "the output has 101 bytes; at most 100 are allowed", "",
                 false, "");
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"facts", test_facts},
        {"time left", test_time_left},
        {"why it is cancelled, and how long it may go on", test_why_and_how_long},
        {"all who wait are woken", test_wakes_all_who_wait},
        {"the descriptor of the token", test_cancel_fd},
        {"a poll is woken", test_fd_wakes_a_poll},
        {"heartbeats", test_heartbeats},
        {"later", test_later},
        {"what is reported", test_results}};
    return thole_run_suite("activity", tests, ARRAY_LEN(tests));
}
