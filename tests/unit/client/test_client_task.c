/* Tasks of a client and their loop: what makes it turn, in which order they run, and what is done with an
 * answer. The requests are the test's. */
#include "client_task.h"
#include "clock.h"
#include "thole_cunit.h"
#include <poll.h>

enum { TASKS = 4 };

static struct {
    struct thole_client client;
    struct client_loop *loop;
    request_done_fn *done;
    void *arg;
    uint64_t tokens[8];
    size_t asked;
    thole_status sends; /* how a request is sent */
    char ran[1024];     /* log of the tasks */
} play;

thole_status __wrap_requests_open(struct connection *connection, size_t window, uint64_t timeout_ms,
                                  request_done_fn *done, void *arg, struct requests **ret,
                                  thole_error *reterr)
{
    (void)connection, (void)timeout_ms, (void)ret, (void)reterr;
    CU_ASSERT_EQUAL(window, 2 * TASKS);
    play.done = done;
    play.arg = arg;
    return THOLE_OK;
}

void __wrap_requests_close(struct requests *requests)
{
    (void)requests;
}

thole_status __wrap_requests_send(struct requests *requests, const char *subject, thole_slice body,
                                  uint64_t token, thole_error *reterr)
{
    (void)requests, (void)body;
    CHECK_STR("subject", subject, "where");
    if (play.sends != THOLE_OK)
        return thole_fail(reterr, play.sends, "not sent");
    play.tokens[play.asked++] = token;
    return THOLE_OK;
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    CU_ASSERT_EQUAL_FATAL(client_loop_open(&play.client, TASKS, &play.loop, NULL), THOLE_OK);
}

static void end(void)
{
    bool abandoned;
    while (client_loop_ended(play.loop) > 0)
        (void)client_loop_take_ended(play.loop, &abandoned);
    CU_ASSERT_EQUAL(client_loop_tasks(play.loop), 0);
    client_loop_close(play.loop);
    CU_ASSERT_EQUAL(atomic_load(&play.client.loops), 0);
}

static bool rings(int wait_ms)
{
    struct pollfd ready = {.fd = client_loop_fd(play.loop), .events = POLLIN};
    return poll(&ready, 1, wait_ms) == 1;
}

static void note(const char *what)
{
    size_t const len = strlen(play.ran);
    (void)snprintf(play.ran + len, sizeof play.ran - len, "%s ", what);
}

static uint64_t begin_task(void (*entry)(void *arg), const char *name)
{
    uint64_t number = 0;
    CU_ASSERT_EQUAL(client_task_begin(play.loop, entry, (void *)(uintptr_t)name, &number, NULL), THOLE_OK);
    return number;
}

/* ---- sleeping and waking ---- */

static struct client_task *sleeper;

static void sleeps(void *arg)
{
    sleeper = client_task_current();
    note("sleeps");
    client_task_sleep(sleeper, UINT64_MAX);
    note(arg);
}

static void naps(void *arg)
{
    const char *const name = arg;
    uint64_t const until_ms = clock_monotonic_ms() + (uint64_t)(name[0] - '0') * 20;
    client_task_sleep(client_task_current(), until_ms);
    CU_ASSERT_TRUE(clock_monotonic_ms() >= until_ms);
    note(arg);
}

static void ends(void *arg)
{
    note(arg);
}

static void test_one_that_sleeps(void)
{
    begin();
    CU_ASSERT_PTR_NULL(client_task_current());
    (void)begin_task(sleeps, "woken");
    CU_ASSERT_PTR_NULL(client_task_current());
    CU_ASSERT_FALSE(rings(0));
    client_loop_turn(play.loop); /* for nothing */
    CHECK_STR("asleep", play.ran, "sleeps ");
    client_task_wake(sleeper);
    client_task_wake(sleeper);
    CU_ASSERT_TRUE(rings(0));
    client_loop_turn(play.loop);
    CHECK_STR("woken", play.ran, "sleeps woken ");
    CU_ASSERT_TRUE(rings(0)); /* the end is to be reported */
    CU_ASSERT_EQUAL(client_loop_ended(play.loop), 1);
    bool abandoned = true;
    const char *const taken = client_loop_take_ended(play.loop, &abandoned);
    CHECK_STR("taken", taken, "woken");
    CU_ASSERT_FALSE(abandoned);
    client_loop_turn(play.loop);
    CU_ASSERT_FALSE(rings(0));
    end();
}

static void test_times_come(void)
{
    begin();
    (void)begin_task(naps, "3");
    (void)begin_task(naps, "1");
    (void)begin_task(naps, "2");
    CU_ASSERT_FALSE(rings(0));
    for (int turns = 0; turns < 20 && client_loop_ended(play.loop) < 3 && rings(1000); turns++)
        client_loop_turn(play.loop);
    CU_ASSERT_EQUAL(client_loop_ended(play.loop), 3); /* each has seen to it that its time had come */
    end();
}

static void test_limit(void)
{
    uint64_t number = 0;
    thole_error err = {.status = THOLE_OK};
    begin();
    for (int i = 0; i < TASKS; i++)
        (void)begin_task(ends, "x");
    CU_ASSERT_EQUAL(client_task_begin(play.loop, ends, NULL, &number, &err), THOLE_LIMIT);
    CHECK_STR("text", err.text, "4 requests are under way, which is the limit");
    bool abandoned;
    (void)client_loop_take_ended(play.loop, &abandoned);
    (void)begin_task(ends, "y");
    CHECK_STR("ran", play.ran, "x x x x y ");
    end();
}

static void forgets_its_waking(void *arg)
{
    client_task_wake(client_task_current()); /* and ends all the same */
    note(arg);
}

static void test_woken_at_its_end(void)
{
    begin();
    (void)begin_task(sleeps, "1");
    client_task_wake(sleeper);
    (void)begin_task(forgets_its_waking, "2");
    (void)begin_task(sleeps, "3");
    client_task_wake(sleeper);
    client_loop_turn(play.loop);
    CHECK_STR("ran", play.ran, "sleeps 2 sleeps 1 3 ");
    end();
}

static void test_abandon(void)
{
    begin();
    uint64_t const first = begin_task(sleeps, "first");
    CU_ASSERT_TRUE(client_task_abandon(play.loop, first));
    CU_ASSERT_TRUE(rings(0));
    client_loop_turn(play.loop);
    CHECK_STR("ran", play.ran, "sleeps first ");
    CU_ASSERT_FALSE(client_task_abandon(play.loop, first)); /* has ended */
    bool abandoned = false;
    (void)client_loop_take_ended(play.loop, &abandoned);
    CU_ASSERT_TRUE(abandoned);
    CU_ASSERT_FALSE(client_task_abandon(play.loop, first)); /* no longer exists */
    uint64_t const second = begin_task(sleeps, "second");
    CU_ASSERT_NOT_EQUAL(first, second);
    CU_ASSERT_FALSE(client_task_abandon(play.loop, first)); /* another one is in its place */
    client_task_abandon_all(play.loop);
    client_loop_turn(play.loop);
    end();
}

/* ---- requests ---- */

static void asks(void *arg)
{
    struct buf answer;
    thole_error err = {.status = THOLE_OK};
    thole_status status = THOLE_OK;
    char said[sizeof err.text + 40];
    (void)arg;
    buf_init(&answer, 8);
    CU_ASSERT_TRUE(client_task_waiting.ask("where", THOLE_STR("?"), &answer, &status, &err));
    (void)snprintf(said, sizeof said, "%s %s", thole_status_name(status),
                   status == THOLE_OK ? buf_cstr(&answer) : err.text);
    note(said);
    buf_release(&answer);
}

static void answer(size_t which, enum request_result result, const char *body)
{
    play.done(play.arg, &(struct request_done){
                            .result = result, .token = play.tokens[which], .body = thole_slice_from(body)});
}

static void test_answers(void)
{
    static const struct {
        enum request_result result;
        const char *body, *want;
    } rows[] = {
        {REQUEST_ANSWERED, "yes", "OK yes "},
        {REQUEST_ANSWERED, "much too long", "LIMIT answer from where is larger than 8 bytes "},
        {REQUEST_BUSY, "", "UNAVAILABLE request to where: nobody is there to answer "},
        {REQUEST_UNKNOWN, "", "UNAVAILABLE request to where: no answer in time "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        (void)begin_task(asks, "");
        CHECK_STR("not yet", play.ran, "");
        answer(0, rows[i].result, rows[i].body);
        CU_ASSERT_TRUE(rings(0));
        client_loop_turn(play.loop);
        CHECK_STR("answer", play.ran, rows[i].want);
        end();
    }
}

static void test_not_sent(void)
{
    begin();
    play.sends = THOLE_LIMIT; /* for a moment: not what a caller is told of its own limits */
    (void)begin_task(asks, "");
    CHECK_STR("full", play.ran, "UNAVAILABLE not sent ");
    end();
}

/* The answer to one that was abandoned does not go to the next in its place. */
static void test_late_answer(void)
{
    bool abandoned;
    begin();
    CU_ASSERT_TRUE(client_task_abandon(play.loop, begin_task(asks, "")));
    client_loop_turn(play.loop);
    CHECK_STR("abandoned", play.ran, "UNAVAILABLE request to where: it was abandoned ");
    (void)client_loop_take_ended(play.loop, &abandoned);
    play.ran[0] = '\0';
    (void)begin_task(asks, "");
    answer(0, REQUEST_ANSWERED, "late");
    client_loop_turn(play.loop);
    CHECK_STR("late", play.ran, "");
    answer(1, REQUEST_ANSWERED, "own");
    client_loop_turn(play.loop);
    CHECK_STR("own", play.ran, "OK own ");
    end();
}

static void pauses(void *arg)
{
    (void)client_task_waiting.pause(30);
    note(arg);
}

static void test_pause(void)
{
    struct buf none;
    thole_status status;
    buf_init(&none, 1);
    CU_ASSERT_FALSE(client_task_waiting.pause(30)); /* a thread waits itself */
    CU_ASSERT_FALSE(client_task_waiting.ask("where", THOLE_STR(""), &none, &status, NULL));
    begin();
    uint64_t const begun_ms = clock_monotonic_ms();
    (void)begin_task(pauses, "over");
    CU_ASSERT_FALSE(rings(0));
    while (client_loop_ended(play.loop) == 0 && rings(1000))
        client_loop_turn(play.loop);
    CU_ASSERT_TRUE(clock_monotonic_ms() - begun_ms >= 30);
    CHECK_STR("pause", play.ran, "over ");
    end();
}

static const struct thole_test tests[] = {
    {"one that sleeps", test_one_that_sleeps},
    {"times come", test_times_come},
    {"limit", test_limit},
    {"woken at its end", test_woken_at_its_end},
    {"abandon", test_abandon},
    {"answers", test_answers},
    {"not sent", test_not_sent},
    {"late answer", test_late_answer},
    {"pause", test_pause},
};
THOLE_TEST_MAIN("client_task", tests)
