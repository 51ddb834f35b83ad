/*
 * An engine and workers of several queues inside a service with a main() of its own: this one. Real servers.
 * What the service owns stays its own: signals, descriptors, the environment, the log.
 */
#include "stack.h"
#include "thole/embedding.h"
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { WAIT_MS = 30000, SIGNALS = 65 };

static struct stack stack;
static thole_client *client;
static thole_error err;

/* ---- the service's code ---- */

static atomic_uint slow_begun, slow_ended;

static thole_status both(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const video = {.size = sizeof video, .queue = THOLE_STR("video")};
    thole_slice cut;
    THOLE_TRY(thole_await(ctx, thole_call_with(ctx, THOLE_STR("cut"), input, &video), &cut));
    return thole_await(ctx, thole_call(ctx, THOLE_STR("send"), cut), ret_output);
}

static thole_status slowly(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("slow"), input), ret_output);
}

static thole_status cut(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "cut %.*s", THOLE_FMT(input));
    return THOLE_OK;
}

static thole_status send(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    *ret_output = thole_activity_format(act, "sent %.*s", THOLE_FMT(input));
    return THOLE_OK;
}

static thole_status slow(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    atomic_fetch_add(&slow_begun, 1);
    thole_status const status = thole_activity_wait(act, 1500);
    atomic_fetch_add(&slow_ended, 1);
    return status;
}

static const thole_orchestration_entry orchestrations[] = {{.name = "both", .run = both},
                                                           {.name = "slowly", .run = slowly}};
static const thole_activity_entry editors[] = {{.name = "cut", .run = cut}};
static const thole_activity_entry senders[] = {{.name = "send", .run = send}, {.name = "slow", .run = slow}};
static const thole_program decisions = {.size = sizeof decisions,
                                        .name = "decisions",
                                        .orchestrations = orchestrations,
                                        .orchestrations_len = ARRAY_LEN(orchestrations)};
static const thole_program editing = {
    .size = sizeof editing, .name = "editing", .activities = editors, .activities_len = ARRAY_LEN(editors)};
static const thole_program sending = {
    .size = sizeof sending, .name = "sending", .activities = senders, .activities_len = ARRAY_LEN(senders)};

/* ---- the service's own code ---- */

static atomic_uint lines, bad_lines;

static void count_line(void *arg, int level, const char *line, size_t len)
{
    bool const good = level >= 0 && level <= 3 && len > 0 && line[len - 1] != '\n' && line[0] == '{';
    atomic_fetch_add(good && arg == &lines ? &lines : &bad_lines, 1);
}

static void actions(struct sigaction ret[SIGNALS])
{
    memset(ret, 0, SIGNALS * sizeof *ret);
    for (int i = 1; i < SIGNALS; i++)
        (void)sigaction(i, NULL, &ret[i]);
}

static size_t entries(const char *path)
{
    size_t n = 0;
    DIR *const dir = opendir(path);
    while (dir != NULL && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        (void)closedir(dir);
    return n;
}

static bool until(size_t (*look)(void), size_t most)
{
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    while (look() > most && clock_monotonic_ms() < end)
        pause_ms(20);
    return look() <= most;
}

static size_t threads(void)
{
    return entries("/proc/self/task");
}

static size_t descriptors(void)
{
    return entries("/proc/self/fd");
}

/* ---- handles ---- */

static thole_engine *an_engine(void)
{
    static const char *const arguments[] = {"--partitions", "2", "--node-ttl=6s", NULL};
    thole_engine *engine = NULL;
    CHECK_OK(thole_engine_start(&decisions, arguments, &engine, &err), &err);
    CHECK_OK(thole_engine_wait(engine, WAIT_MS, &err), &err);
    return engine;
}

static thole_worker *a_worker(const thole_program *program, const char *queue)
{
    const char *const arguments[] = {"--queue", queue, "--slots=4", NULL};
    thole_worker *worker = NULL;
    CHECK_OK(thole_worker_start(program, arguments, &worker, &err), &err);
    CHECK_OK(thole_worker_wait(worker, WAIT_MS, &err), &err);
    return worker;
}

static void end_worker(thole_worker *worker)
{
    thole_worker_stop(worker);
    CHECK_OK(thole_worker_join(worker, &err), &err);
}

static void end_engine(thole_engine *engine)
{
    thole_engine_stop(engine);
    CHECK_OK(thole_engine_join(engine, &err), &err);
}

static void begin(const char *id, const char *orchestration)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                THOLE_STR("film"), NULL, &err),
             &err);
}

static const char *outcome(const char *id)
{
    thole_instance_status status;
    return stack_outcome(client, id, WAIT_MS, &status);
}

/* ---- tests ---- */

/* Also the first: the namespace is made here. */
static void test_several_in_one_process(void)
{
    struct sigaction before[SIGNALS], after[SIGNALS];
    actions(before);
    thole_engine *const engine = an_engine();
    thole_worker *const video = a_worker(&editing, "video"), *const mail = a_worker(&sending, "default");
    client = stack_client(&stack);
    begin("first", "both");
    CU_ASSERT_STRING_EQUAL(outcome("first"), "sent cut film");
    end_worker(video);
    begin("second", "both"); /* waits for the queue that nobody serves */
    thole_worker *const again = a_worker(&editing, "video");
    CU_ASSERT_STRING_EQUAL(outcome("second"), "sent cut film");
    end_worker(again);
    end_worker(mail);
    end_engine(engine);
    actions(after);
    for (int i = 1; i < SIGNALS; i++)
        CU_ASSERT_TRUE(before[i].sa_handler == after[i].sa_handler || i == SIGPIPE); /* nats.c ignores it */
    CU_ASSERT_TRUE(atomic_load(&lines) > 5 && atomic_load(&bad_lines) == 0);
}

/* Handles come and go: nothing stays. */
static void test_nothing_stays(void)
{
    size_t fds = 0, tasks = 0;
    for (int i = 0; i < 4; i++) {
        thole_engine *const engine = an_engine();
        thole_worker *const mail = a_worker(&sending, "default"), *const video = a_worker(&editing, "video");
        end_engine(engine);
        end_worker(video);
        end_worker(mail);
        if (i > 0) {
            CU_ASSERT_TRUE(until(descriptors, fds));
            CU_ASSERT_TRUE(until(threads, tasks));
        }
        pause_ms(i == 0 ? 500 : 0); /* threads of libraries end on their own */
        fds = i == 0 ? descriptors() : fds;
        tasks = i == 0 ? threads() : tasks;
    }
}

static thole_worker *signalled;

static void on_term(int number)
{
    (void)number;
    thole_worker_stop(signalled);
}

/* A stop from the service's own signal handler: what runs may end, and its result counts. */
static void test_stop_in_a_signal_handler(void)
{
    struct sigaction const action = {.sa_handler = on_term};
    struct sigaction old;
    thole_engine *const engine = an_engine();
    signalled = a_worker(&sending, "default");
    (void)sigaction(SIGTERM, &action, &old);
    begin("slow", "slowly");
    while (atomic_load(&slow_begun) == 0)
        pause_ms(5);
    (void)raise(SIGTERM);
    CU_ASSERT_EQUAL(thole_worker_wait(signalled, 0, &err), THOLE_CANCELLED);
    CHECK_OK(thole_worker_join(signalled, &err), &err);
    (void)sigaction(SIGTERM, &old, NULL);
    CU_ASSERT_EQUAL(atomic_load(&slow_ended), 1);
    CU_ASSERT_STRING_EQUAL(outcome("slow"), "");
    CU_ASSERT_EQUAL(atomic_load(&slow_begun), 1);
    end_engine(engine);
}

static void test_servers_are_away(void)
{
    static const char *const nowhere[] = {"--nats", "nats://127.0.0.1:1", NULL};
    thole_worker *worker = NULL;
    CHECK_OK(thole_worker_start(&sending, nowhere, &worker, &err), &err);
    CU_ASSERT_EQUAL(thole_worker_wait(worker, 300, &err), THOLE_TIMEOUT);
    CU_ASSERT_STRING_EQUAL(err.text, "it does not serve yet: its log says what it waits for");
    thole_worker_stop(worker);
    thole_worker_stop(worker);
    CU_ASSERT_EQUAL(thole_worker_join(worker, &err), THOLE_OK);
    thole_engine *engine = NULL;
    CHECK_OK(thole_engine_start(&decisions, nowhere, &engine, &err), &err);
    CU_ASSERT_EQUAL(thole_engine_wait(engine, 300, &err), THOLE_TIMEOUT);
    end_engine(engine);
}

/* A refusal by a server is no outage: the role ends, and says why. */
static void test_refused(void)
{
    static const char *const other[] = {"--partitions=3", NULL}; /* there are 2 */
    thole_engine *engine = NULL;
    CHECK_OK(thole_engine_start(&decisions, other, &engine, &err), &err);
    CU_ASSERT_EQUAL(thole_engine_wait(engine, WAIT_MS, &err), THOLE_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the number is fixed when the namespace is made"));
    err.text[0] = '\0';
    CU_ASSERT_EQUAL(thole_engine_join(engine, &err), THOLE_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the number is fixed when the namespace is made"));
}

static void test_wrong_use(void)
{
    static const thole_activity_options own = {.size = sizeof own, .isolation = THOLE_ISOLATION_PROCESS};
    static const thole_activity_entry isolated[] = {{.name = "cut", .run = cut, .options = &own}};
    static const thole_program apart = {
        .size = sizeof apart, .name = "apart", .activities = isolated, .activities_len = 1};
    static const char *const typo[] = {"--slotz=4", NULL}, *const help[] = {"--help", NULL},
                             *const role[] = {"engine", NULL};
    struct {
        const thole_program *program;
        const char *const *arguments;
        thole_status want;
        const char *text;
    } const rows[] = {
        {&sending, typo, THOLE_INVALID, "there is no option --slotz; did you mean --slots?"},
        {&sending, help, THOLE_INVALID, "--help and --version are for a command line"},
        {&sending, role, THOLE_INVALID, "\"engine\" is one word too many"},
        {&decisions, NULL, THOLE_INVALID, "role worker: decisions registers no activity"},
        {&apart, NULL, THOLE_UNSUPPORTED,
         "apart has an activity with THOLE_ISOLATION_PROCESS, which needs a program of thole_main(): serve "
         "it "
         "from there, on a queue of its own"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_worker *worker = NULL;
        CU_ASSERT_EQUAL(thole_worker_start(rows[i].program, rows[i].arguments, &worker, &err), rows[i].want);
        CU_ASSERT_STRING_EQUAL(err.text, rows[i].text);
        CU_ASSERT_PTR_NULL(worker);
    }
    thole_worker_stop(NULL);
    CU_ASSERT_EQUAL(thole_worker_join(NULL, NULL), THOLE_OK);
    thole_engine_stop(NULL);
    CU_ASSERT_EQUAL(thole_engine_join(NULL, NULL), THOLE_OK);
}

static const struct thole_test tests[] = {
    {"several in one process", test_several_in_one_process},
    {"nothing stays", test_nothing_stays},
    {"a stop in a signal handler", test_stop_in_a_signal_handler},
    {"servers are away", test_servers_are_away},
    {"refused", test_refused},
    {"wrong use", test_wrong_use},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    thole_log_to(count_line, &lines);
    int const result = thole_run_suite("embedding", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return result;
}
