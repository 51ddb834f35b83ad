/*
 * Requests for event loops (thole/async.h) against an engine in this process and real servers: what each
 * gives, when callbacks come, what is refused, and what a restart of nats-server does to a thousand of them.
 */
#include "stack.h"
#include "thole/async.h"
#include "thole/embedding.h"
#include <poll.h>
#include <pthread.h>

enum { WAIT_MS = 30000, MANY = 1000, CLIENT_TIMEOUT_MS = 5000 };

static struct stack stack;
static thole_engine *engine;
static thole_client *client;
static thole_async *async;
static thole_error err;
static const thole_slice nothing = {NULL, 0};

/* ---- the engine's program ---- */

static thole_status echo(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx;
    *ret_output = input;
    return THOLE_OK;
}

static thole_status says(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg;
    *ret_output = thole_format(ctx, "asked %.*s", THOLE_FMT(input));
    return THOLE_OK;
}

static thole_status waits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    thole_on_query(ctx, THOLE_STR("says"), says, NULL);
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

static const thole_orchestration_entry orchestrations[] = {{.name = "echo", .run = echo},
                                                           {.name = "waits", .run = waits}};
static const thole_program program = {.size = sizeof program,
                                      .name = "async",
                                      .orchestrations = orchestrations,
                                      .orchestrations_len = ARRAY_LEN(orchestrations)};

/* ---- a loop ---- */

struct told {
    char text[256]; /* STATUS, and what it gave */
    unsigned times;
};

static void tell(void *arg, const thole_completion *completion)
{
    struct told *const told = arg;
    told->times++;
    (void)snprintf(told->text, sizeof told->text, "%s%s%s%s%.*s%.*s", thole_status_name(completion->status),
                   completion->accepted ? " accepted" : "", completion->kept ? " kept" : "",
                   completion->outcome.output.len + completion->output.len > 0 ? " " : "",
                   THOLE_FMT(completion->outcome.output), THOLE_FMT(completion->output));
}

static uint64_t longest_turn_us, turns;

static void turn_once(thole_async *of, int wait_ms)
{
    struct pollfd ready = {.fd = thole_async_fd(of), .events = POLLIN};
    if (poll(&ready, 1, wait_ms) <= 0)
        return;
    uint64_t const begun = now_us();
    (void)thole_async_dispatch(of);
    uint64_t const took = now_us() - begun;
    longest_turn_us = took > longest_turn_us ? took : longest_turn_us;
    turns++;
}

static void turn_until_idle(thole_async *of)
{
    uint64_t const until = clock_monotonic_ms() + WAIT_MS;
    while (thole_async_in_flight(of) > 0 && clock_monotonic_ms() < until)
        turn_once(of, 100);
    CU_ASSERT_EQUAL(thole_async_in_flight(of), 0);
}

static void check_told(const char *row, struct told *told, const char *want)
{
    turn_until_idle(async);
    CHECK_STR(row, told->text, want);
    CU_ASSERT_EQUAL(told->times, 1);
    *told = (struct told){.times = 0};
}

static void begin(const char *id, const char *orchestration)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration), nothing, NULL,
                                &err),
             &err);
}

/* ---- tests ---- */

static void test_each_request(void)
{
    struct told told = {.times = 0};
    thole_slice const id = THOLE_STR("each");
    thole_end_options const why = {.size = sizeof why, .reason = THOLE_STR("enough")};
    CHECK_OK(thole_async_signal(async, id, THOLE_STR("early"), nothing, nothing, tell, &told, NULL, &err),
             &err);
    check_told("signal, kept", &told, "OK kept");
    CU_ASSERT_EQUAL(thole_async_wait(async, id, 50, NULL, NULL, NULL, &err), THOLE_INVALID);
    CU_ASSERT_STRING_EQUAL(err.text, "done is NULL: there must be a function to call at the end");
    CHECK_OK(thole_async_start(async, id, THOLE_STR("waits"), nothing, NULL, tell, &told, NULL, &err), &err);
    CU_ASSERT_EQUAL(told.times, 0); /* not from within */
    check_told("start", &told, "OK accepted");
    CHECK_OK(thole_async_start(async, id, THOLE_STR("waits"), nothing, NULL, tell, &told, NULL, &err), &err);
    check_told("start again", &told, "CONFLICT");
    CHECK_OK(thole_async_query(async, id, THOLE_STR("says"), THOLE_STR("this"), tell, &told, NULL, &err),
             &err);
    check_told("query", &told, "OK asked this");
    CHECK_OK(thole_async_query(async, id, THOLE_STR("what"), nothing, tell, &told, NULL, &err), &err);
    check_told("no such query", &told, "NOT_FOUND");
    CHECK_OK(thole_async_wait(async, id, 50, tell, &told, NULL, &err), &err);
    check_told("wait, too short", &told, "TIMEOUT");
    CHECK_OK(
        thole_async_signal(async, id, THOLE_STR("go"), THOLE_STR("gone"), nothing, tell, &told, NULL, &err),
        &err);
    check_told("signal", &told, "OK");
    CHECK_OK(thole_async_wait(async, id, WAIT_MS, tell, &told, NULL, &err), &err);
    check_told("wait", &told, "OK gone");
    CHECK_OK(thole_async_signal(async, id, THOLE_STR("go"), nothing, nothing, tell, &told, NULL, &err), &err);
    check_told("signal to an end", &told, "CONFLICT"); /* which reads the whole history */
    CHECK_OK(thole_async_cancel(async, id, &why, tell, &told, NULL, &err), &err);
    check_told("cancel an end", &told, "CONFLICT");
    CHECK_OK(thole_async_terminate(async, THOLE_STR("nobody"), NULL, tell, &told, NULL, &err), &err);
    check_told("terminate nobody", &told, "NOT_FOUND");
    begin("each-2", "waits");
    CHECK_OK(thole_async_cancel(async, THOLE_STR("each-2"), &why, tell, &told, NULL, &err), &err);
    check_told("cancel", &told, "OK");
    CHECK_OK(thole_async_wait(async, THOLE_STR("each-2"), WAIT_MS, tell, &told, NULL, &err), &err);
    check_told("wait for a cancelled one", &told, "OK enough");
    CHECK_OK(thole_async_run(async, THOLE_STR("each-3"), THOLE_STR("echo"), THOLE_STR("hello"), WAIT_MS, tell,
                             &told, NULL, &err),
             &err);
    check_told("run", &told, "OK hello");
}

static void test_arguments(void)
{
    struct told told = {.times = 0};
    static uint8_t huge[17 * 1024 * 1024];
    char input[] = "before", id[] = "copied";
    thole_async *none = NULL;
    thole_async_options options = {.size = 0};
    thole_start_options const unset = {.size = 0};
    CU_ASSERT_EQUAL(thole_async_open(client, &options, &none, &err), THOLE_INVALID);
    options = (thole_async_options){.size = sizeof options, .in_flight_max = 2049};
    CU_ASSERT_EQUAL(thole_async_open(client, &options, &none, &err), THOLE_INVALID);
    CU_ASSERT_PTR_NULL(none);
    CHECK_OK(thole_async_start(async, THOLE_STR("\xff"), THOLE_STR("echo"), nothing, NULL, tell, &told, NULL,
                               &err),
             &err);
    check_told("no id", &told, "INVALID");
    CHECK_OK(
        thole_async_start(async, THOLE_STR("x"), THOLE_STR("echo"), nothing, &unset, tell, &told, NULL, &err),
        &err);
    check_told("options without a size", &told, "INVALID");
    CHECK_OK(thole_async_start(async, THOLE_STR("x"), THOLE_STR("echo"), (thole_slice){huge, 1 << 20}, NULL,
                               tell, &told, NULL, &err),
             &err);
    check_told("too large", &told, "LIMIT");
    CU_ASSERT_EQUAL(thole_async_start(async, THOLE_STR("x"), THOLE_STR("echo"),
                                      (thole_slice){huge, sizeof huge}, NULL, tell, &told, NULL, &err),
                    THOLE_LIMIT);
    CU_ASSERT_EQUAL(thole_async_in_flight(async), 0);
    CHECK_OK(thole_async_run(async, thole_slice_from(id), THOLE_STR("echo"), thole_slice_from(input), WAIT_MS,
                             tell, &told, NULL, &err),
             &err);
    memset(input, 'x', sizeof input);
    memset(id, 'x', sizeof id);
    check_told("what was given may change", &told, "OK before");
    CU_ASSERT_STRING_EQUAL(stack_history(client, "copied"), "1:Started 1:Completed");
}

static void test_limit(void)
{
    thole_async_options const options = {.size = sizeof options, .in_flight_max = 3};
    struct told told[4] = {{.times = 0}};
    thole_async *few = NULL;
    CHECK_OK(thole_async_open(client, &options, &few, &err), &err);
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(thole_async_wait(few, THOLE_STR("nobody"), 100, tell, &told[i], NULL, &err), &err);
    CU_ASSERT_EQUAL(thole_async_wait(few, THOLE_STR("nobody"), 100, tell, &told[3], NULL, &err), THOLE_LIMIT);
    CHECK_STR("text", err.text, "3 requests are under way, which is the limit");
    turn_until_idle(few);
    for (size_t i = 0; i < 3; i++)
        CHECK_STR("answer", told[i].text, "NOT_FOUND");
    CU_ASSERT_EQUAL(told[3].times, 0);
    CHECK_OK(thole_async_wait(few, THOLE_STR("nobody"), 0, tell, &told[3], NULL, &err), &err);
    turn_until_idle(few);
    CU_ASSERT_EQUAL(told[3].times, 1);
    thole_async_close(few);
    thole_async_close(NULL);
}

static void test_abandon(void)
{
    struct told one = {.times = 0}, other = {.times = 0};
    uint64_t number = 0, next = 0;
    begin("abandoned", "waits");
    CHECK_OK(thole_async_wait(async, THOLE_STR("abandoned"), UINT64_MAX, tell, &one, &number, &err), &err);
    CHECK_OK(thole_async_wait(async, THOLE_STR("abandoned"), UINT64_MAX, tell, &other, NULL, &err), &err);
    CU_ASSERT_TRUE(thole_async_abandon(async, number));
    uint64_t const begun = clock_monotonic_ms();
    while (one.times == 0 && clock_monotonic_ms() - begun < WAIT_MS)
        turn_once(async, 100);
    CU_ASSERT_TRUE(clock_monotonic_ms() - begun < 1000);
    CHECK_STR("abandoned", one.text, "CANCELLED");
    CU_ASSERT_FALSE(thole_async_abandon(async, number));
    CU_ASSERT_FALSE(thole_async_abandon(async, 0));
    CU_ASSERT_EQUAL(other.times, 0);
    CHECK_OK(thole_async_signal(async, THOLE_STR("abandoned"), THOLE_STR("go"), THOLE_STR("x"), nothing, tell,
                                &one, &next, &err),
             &err);
    CU_ASSERT_NOT_EQUAL(next, number);
    check_told("the other", &other, "OK x");
    CU_ASSERT_EQUAL(one.times, 2);
}

static struct told late;
static thole_async *closing;

static void tell_and_ask(void *arg, const thole_completion *completion)
{
    tell(arg, completion);
    CU_ASSERT_EQUAL(thole_async_wait(closing, THOLE_STR("nobody"), 0, tell, &late, NULL, &err),
                    THOLE_UNAVAILABLE);
}

static void test_close(void)
{
    static struct told told[200];
    CHECK_OK(thole_async_open(client, NULL, &closing, &err), &err);
    begin("closed", "waits");
    for (size_t i = 0; i < ARRAY_LEN(told); i++)
        CHECK_OK(
            thole_async_wait(closing, THOLE_STR("closed"), UINT64_MAX, tell_and_ask, &told[i], NULL, &err),
            &err);
    for (int i = 0; i < 20; i++)
        turn_once(closing, 5);
    uint64_t const begun = clock_monotonic_ms();
    thole_async_close(closing);
    CU_ASSERT_TRUE(clock_monotonic_ms() - begun < 1000);
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        CHECK_STR("closed", told[i].text, "CANCELLED");
        CU_ASSERT_EQUAL(told[i].times, 1);
    }
    CU_ASSERT_EQUAL(late.times, 0);
}

/* Each callback makes the next request; what waits meanwhile does not make the loop turn. */
static unsigned chain_left;

static void next_of_chain(void *arg, const thole_completion *completion)
{
    char id[32];
    CU_ASSERT_EQUAL(completion->status, THOLE_OK);
    if (chain_left-- == 0)
        return;
    (void)snprintf(id, sizeof id, "chain-%u", chain_left);
    CHECK_OK(thole_async_run(async, thole_slice_from(id), THOLE_STR("echo"), nothing, WAIT_MS, next_of_chain,
                             arg, NULL, &err),
             &err);
}

static void test_chain_and_rest(void)
{
    static struct told told[100];
    begin("rests", "waits");
    for (size_t i = 0; i < ARRAY_LEN(told); i++)
        CHECK_OK(thole_async_wait(async, THOLE_STR("rests"), UINT64_MAX, tell, &told[i], NULL, &err), &err);
    chain_left = 50;
    next_of_chain(NULL, &(thole_completion){.status = THOLE_OK});
    while (thole_async_in_flight(async) > ARRAY_LEN(told))
        turn_once(async, 100);
    turns = 0;
    uint64_t const begun = clock_monotonic_ms();
    while (clock_monotonic_ms() - begun < 1500)
        turn_once(async, 100);
    CU_ASSERT_TRUE(turns <= 10); /* at most the looks of five seconds ago */
    CHECK_OK(thole_client_signal(client, THOLE_STR("rests"), THOLE_STR("go"), nothing, nothing, NULL, &err),
             &err);
    turn_until_idle(async);
    for (size_t i = 0; i < ARRAY_LEN(told); i++)
        CHECK_STR("rested", told[i].text, "OK");
}

static void *loop_of_its_own(void *arg)
{
    static const char *const names[] = {"a", "b", "c"};
    thole_async *own = NULL;
    thole_error error;
    struct told told[60] = {{.times = 0}};
    char id[32];
    CU_ASSERT_EQUAL(thole_async_open(client, NULL, &own, &error), THOLE_OK);
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        (void)snprintf(id, sizeof id, "loop-%s-%zu", names[(uintptr_t)arg], i);
        CU_ASSERT_EQUAL(thole_async_run(own, thole_slice_from(id), THOLE_STR("echo"), thole_slice_from(id),
                                        WAIT_MS, tell, &told[i], NULL, &error),
                        THOLE_OK);
    }
    struct pollfd ready = {.fd = thole_async_fd(own), .events = POLLIN};
    while (thole_async_in_flight(own) > 0 && poll(&ready, 1, WAIT_MS) > 0)
        (void)thole_async_dispatch(own);
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        char want[48];
        (void)snprintf(want, sizeof want, "OK loop-%s-%zu", names[(uintptr_t)arg], i);
        CHECK_STR("own loop", told[i].text, want);
    }
    thole_async_close(own);
    return NULL;
}

/* Three loops and a blocking caller, one client. */
static void test_several_loops(void)
{
    pthread_t threads[3];
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    for (uintptr_t i = 0; i < ARRAY_LEN(threads); i++)
        CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, loop_of_its_own, (void *)i), 0);
    CHECK_OK(thole_client_run(client, THOLE_STR("beside"), THOLE_STR("echo"), THOLE_STR("x"), WAIT_MS,
                              &outcome, &err),
             &err);
    thole_outcome_release(&outcome);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        (void)pthread_join(threads[i], NULL);
}

static struct told many[MANY];

static void run_many(size_t from, size_t to, const char *orchestration)
{
    char id[32];
    for (size_t i = from; i < to; i++) {
        (void)snprintf(id, sizeof id, "many-%zu", i);
        CHECK_OK(thole_async_run(async, thole_slice_from(id), thole_slice_from(orchestration),
                                 thole_slice_from(id), 4 * WAIT_MS, tell, &many[i], NULL, &err),
                 &err);
    }
}

static void ignore(void *arg, const thole_completion *completion)
{
    (void)arg;
    CU_ASSERT_EQUAL(completion->status, THOLE_OK);
}

static void let_go(size_t from, size_t to)
{
    char id[32];
    for (size_t i = from; i < to; i++) {
        (void)snprintf(id, sizeof id, "many-%zu", i);
        CHECK_OK(thole_async_signal(async, thole_slice_from(id), THOLE_STR("go"), thole_slice_from(id),
                                    nothing, ignore, NULL, NULL, &err),
                 &err);
    }
}

static void check_many(void)
{
    char id[32];
    unsigned ended = 0;
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "many-%zu", i);
        ended +=
            many[i].times == 1 && strncmp(many[i].text, "OK ", 3) == 0 && strcmp(many[i].text + 3, id) == 0;
        if (i % 50 == 0)
            CHECK_STR(id, strrchr(stack_history(client, id), 'S'), /* one start */
                      i < MANY / 2 ? "Started 1:EventAwaited 1:EventReceived 1:Completed"
                                   : "Started 1:Completed");
    }
    CU_ASSERT_EQUAL(ended, MANY);
}

/* A thousand runs under way: half of them wait in their instances, some are between the two when nats-server
 * is killed, the others are asked for while it is away. Each ends once, and was started once; meanwhile the
 * loop is never held up. */
static void test_restart(void)
{
    longest_turn_us = 0;
    run_many(0, MANY / 2, "waits");
    for (int i = 0; i < 20; i++)
        turn_once(async, 50);
    run_many(MANY / 2, MANY * 3 / 4, "echo");
    server_kill9(&stack.nats);
    run_many(MANY * 3 / 4, MANY, "echo");
    size_t const under_way = thole_async_in_flight(async);
    CU_ASSERT_EQUAL(under_way, MANY);
    for (int i = 0; i < 10; i++)
        turn_once(async, 30);
    size_t const left = thole_async_in_flight(async);
    CHECK_OK(server_restart(&stack.nats, &err), &err);
    while (thole_async_in_flight(async) > MANY / 2)
        turn_once(async, 100);
    let_go(0, MANY / 2);
    turn_until_idle(async);
    check_many();
    CU_ASSERT_TRUE(longest_turn_us < 2000000); /* sanitizers and neighbours: it is some milliseconds */
    fprintf(stderr, "\n  %zu under way when nats-server came back; the longest turn took %.1f ms\n", left,
            (double)longest_turn_us / 1000);
}

/* examples/event_loop.c, as it is built. */
static void test_example(void)
{
    char command[512], line[128];
    unsigned good = 0, bad = 0;
    (void)snprintf(command, sizeof command,
                   "(for i in $(seq 40); do echo \"loop-$i echo to $i\"; done; echo nothing) | "
                   "THOLE_NATS_URL=%s %s/examples/event_loop 2>&1",
                   stack.nats.url, THOLE_BUILD_DIR);
    FILE *const said = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(said);
    while (fgets(line, sizeof line, said) != NULL) {
        int order = 0, output = 0;
        bool const ended = sscanf(line, "loop-%d: Completed: to %d", &order, &output) == 2 && order == output;
        good += ended;
        bad += !ended && strcmp(line, "no order: nothing\n") != 0 &&
               strstr(line, "WARNING: ASan doesn't fully support makecontext") == NULL;
    }
    CU_ASSERT_EQUAL(pclose(said), 0);
    CU_ASSERT_EQUAL(good, 40);
    CU_ASSERT_EQUAL(bad, 0);
}

/* Nobody answers: each ends within its time, and close() does not wait for servers. */
static void test_no_server(void)
{
    struct told one = {.times = 0}, other = {.times = 0};
    server_kill9(&stack.nats);
    uint64_t const begun = clock_monotonic_ms();
    CHECK_OK(
        thole_async_start(async, THOLE_STR("late"), THOLE_STR("echo"), nothing, NULL, tell, &one, NULL, &err),
        &err);
    CHECK_OK(
        thole_async_query(async, THOLE_STR("late"), THOLE_STR("says"), nothing, tell, &other, NULL, &err),
        &err);
    turn_until_idle(async);
    CU_ASSERT_TRUE(clock_monotonic_ms() - begun < 2 * CLIENT_TIMEOUT_MS);
    CHECK_STR("start", one.text, "UNAVAILABLE");
    CHECK_STR("query", other.text, "UNAVAILABLE");
    CHECK_OK(
        thole_async_start(async, THOLE_STR("late"), THOLE_STR("echo"), nothing, NULL, tell, &one, NULL, &err),
        &err);
    uint64_t const closed = clock_monotonic_ms();
    thole_async_close(async);
    async = NULL;
    CU_ASSERT_TRUE(clock_monotonic_ms() - closed < 1000);
    CHECK_STR("closed", one.text, "CANCELLED");
    CHECK_OK(server_restart(&stack.nats, &err), &err);
}

static const struct thole_test tests[] = {
    {"each request", test_each_request},
    {"arguments", test_arguments},
    {"limit", test_limit},
    {"abandon", test_abandon},
    {"close", test_close},
    {"chain and rest", test_chain_and_rest},
    {"several loops", test_several_loops},
    {"example", test_example},
    {"restart", test_restart},
    {"no server", test_no_server},
};

int main(void)
{
    static const char *const arguments[] = {"--partitions", "2", "--node-ttl=6s", NULL};
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    int result = 1;
    if (thole_engine_start(&program, arguments, &engine, &err) == THOLE_OK)
        client = stack_client(&stack);
    if (client != NULL && thole_async_open(client, NULL, &async, &err) == THOLE_OK)
        result = thole_run_suite("async", tests, ARRAY_LEN(tests));
    thole_async_close(async);
    thole_client_close(client);
    thole_engine_stop(engine);
    (void)thole_engine_join(engine, NULL);
    stack_stop(&stack);
    return result;
}
