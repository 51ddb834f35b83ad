/* The client library against a real nats-server; a script plays the engine (engine_script.h). */
#include "engine_script.h"
#include "integration.h"
#include "thole/client.h"
#include <inttypes.h>
#include <time.h>

enum { TIMEOUT_MS = 1000, WAIT_MS = 20000, THREADS = 8, RUNS_EACH = 40 };

static struct server server;
static struct engine_script script;
static thole_client *client;
static thole_error err;

static const thole_slice nothing = {NULL, 0};

/* A function, so that what is checked is done once. */
static void check(const char *row, const char *got, const char *want)
{
    CHECK_STR(row, got, want);
}

#define CHECK_STATUS(got, want) check(#got, thole_status_name(got), thole_status_name(want))

static uint64_t elapsed_ms(const struct timespec *since)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)((now.tv_sec - since->tv_sec) * 1000 + (now.tv_nsec - since->tv_nsec) / 1000000);
}

static struct timespec begin(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now;
}

static thole_status open_client(const char *ns, thole_client **ret)
{
    thole_client_options options;
    thole_client_options_init(&options);
    options.nats_url = server.url;
    options.ns = ns;
    options.timeout_ms = TIMEOUT_MS;
    return thole_client_open(&options, ret, &err);
}

/* Status, execution and output of an outcome, which is released. Static. */
static const char *outcome_text(thole_status status, thole_outcome *outcome)
{
    static char text[256];
    if (status != THOLE_OK)
        (void)snprintf(text, sizeof text, "%s", thole_status_name(status));
    else
        (void)snprintf(text, sizeof text, "%s #%" PRIu64 " %.*s", thole_instance_status_name(outcome->status),
                       outcome->execution, THOLE_FMT(outcome->output));
    if (status == THOLE_OK)
        thole_outcome_release(outcome);
    return text;
}

static const char *run_text(const char *id, const char *input)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_status const status = thole_client_run(client, thole_slice_from(id), THOLE_STR("order"),
                                                 thole_slice_from(input), WAIT_MS, &outcome, &err);
    return outcome_text(status, &outcome);
}

static const char *wait_text(const char *id, uint64_t wait_ms)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_status const status = thole_client_wait(client, thole_slice_from(id), wait_ms, &outcome, &err);
    return outcome_text(status, &outcome);
}

/* One record with one event. */
static bool write_turn(uint64_t epoch, uint64_t n, const char *id, uint64_t number, const struct event *event)
{
    struct turn const turn = {
        .instance = thole_slice_from(id), .execution = 1, .number = number, .events = event, .events_len = 1};
    return engine_script_turn(&script, epoch, n, &turn);
}

static bool write_started(uint64_t n, const char *id, const char *request)
{
    struct event const started = {.kind = EVENT_STARTED,
                                  .id = 1,
                                  .code = SEMANTICS_VERSION,
                                  .name = THOLE_STR("order"),
                                  .request_id = thole_slice_from(request)};
    return write_turn(1, n, id, 1, &started);
}

/* ---- open ---- */

static void test_open(void)
{
    thole_client *other = NULL;
    thole_client_options options;
    CHECK_STATUS(open_client("nobody", &other), THOLE_NOT_FOUND);
    CHECK_STATUS(open_client("a b", &other), THOLE_INVALID);
    thole_client_options_init(&options);
    options.nats_url = "nats://127.0.0.1:1";
    options.timeout_ms = 300;
    CHECK_STATUS(thole_client_open(&options, &other, &err), THOLE_UNAVAILABLE);
    options.size = 0;
    CHECK_STATUS(thole_client_open(&options, &other, &err), THOLE_INVALID);
    CU_ASSERT_PTR_NULL(other);
    thole_client_close(NULL);
}

/* ---- run ---- */

static void test_run(void)
{
    engine_script_mode(&script, SCRIPT_COMPLETE);
    check("first", run_text("run-1", "hello"), "Completed #1 hello");
    check("empty", run_text("run-2", ""), "Completed #1 ");
    check("odd id", run_text("a b/é.*>", "x"), "Completed #1 x");
    check("wait afterwards", wait_text("run-1", 0), "Completed #1 hello");
}

/* Notices are at most once: the history alone must do. */
static void test_run_without_notices(void)
{
    engine_script_mode(&script, SCRIPT_NO_NOTICES);
    struct timespec const since = begin();
    check("lost", run_text("lost-1", "hello"), "Completed #1 hello");
    CU_ASSERT(elapsed_ms(&since) < 2000);
}

static void test_run_conflict(void)
{
    engine_script_mode(&script, SCRIPT_REJECT);
    CU_ASSERT(write_started(1, "taken", "somebody"));
    check("rejected", run_text("taken", "x"), "CONFLICT");
    engine_script_mode(&script, SCRIPT_SILENT);
    check("silent engine", run_text("taken", "x"), "CONFLICT");
}

static void test_run_nobody(void)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    engine_script_mode(&script, SCRIPT_SILENT);
    CHECK_STATUS(
        thole_client_run(client, THOLE_STR("lonely"), THOLE_STR("order"), nothing, 400, &outcome, &err),
        THOLE_TIMEOUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no engine has taken it"));
}

/* ---- start ---- */

static thole_status start(const char *id, bool *ret_accepted)
{
    return thole_client_start(client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("in"), ret_accepted,
                              &err);
}

static void test_start(void)
{
    bool accepted = false;
    size_t const before = engine_script_messages(&script) + 1;
    engine_script_mode(&script, SCRIPT_COMPLETE);
    CHECK_STATUS(start("start-1", &accepted), THOLE_OK);
    CU_ASSERT(accepted);
    CU_ASSERT(engine_script_seen(&script, before)); /* it is counted after its notices */
    CHECK_STATUS(start("start-1", &accepted), THOLE_CONFLICT);
    CHECK_STATUS(start("start-2", NULL), THOLE_OK);
    CU_ASSERT(engine_script_seen(&script, before + 1));
    CU_ASSERT_EQUAL(engine_script_messages(&script),
                    before + 1); /* the conflict was found without a message */
}

static void test_start_nobody(void)
{
    bool accepted = true;
    engine_script_mode(&script, SCRIPT_SILENT);
    struct timespec const since = begin();
    CHECK_STATUS(start("queued-1", &accepted), THOLE_OK);
    CU_ASSERT_FALSE(accepted);
    CU_ASSERT(elapsed_ms(&since) >= TIMEOUT_MS - 10);
    engine_script_mode(&script, SCRIPT_NO_NOTICES);
    struct timespec const again = begin();
    CHECK_STATUS(start("queued-2", &accepted), THOLE_OK);
    CU_ASSERT(accepted); /* found in the history, long before the timeout */
    CU_ASSERT(elapsed_ms(&again) < TIMEOUT_MS - 100);
    engine_script_mode(&script, SCRIPT_REJECT);
    CHECK_STATUS(start("queued-3", &accepted), THOLE_OK); /* a rejection that the history does not bear out */
    CU_ASSERT_FALSE(accepted);
}

static void test_arguments(void)
{
    static const char *const bad_ids[] = {
        "", "\xff",
        "0123456789012345678901234567890123456789012345678901234567890123456789"
        "0123456789012345678901234567890123456789012345678901234567890123456789"
        "0123456789012345678901234567890123456789012345678901234567890"};
    static uint8_t large[THOLE_PAYLOAD_BYTES_DEFAULT + 1];
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    for (size_t i = 0; i < ARRAY_LEN(bad_ids); i++) {
        thole_slice const id = thole_slice_from(bad_ids[i]);
        CHECK_STATUS(thole_client_start(client, id, THOLE_STR("order"), nothing, NULL, &err), THOLE_INVALID);
        CHECK_STATUS(thole_client_wait(client, id, 0, &outcome, &err), THOLE_INVALID);
        CHECK_STATUS(thole_client_cancel(client, id, nothing, &err), THOLE_INVALID);
        CHECK_STATUS(thole_client_history(client, id, NULL, NULL, &err), THOLE_INVALID);
    }
    CHECK_STATUS(thole_client_start(client, THOLE_STR("x"), THOLE_STR("a.b"), nothing, NULL, &err),
                 THOLE_INVALID);
    CHECK_STATUS(thole_client_start(client, THOLE_STR("x"), THOLE_STR("order"),
                                    (thole_slice){large, sizeof large}, NULL, &err),
                 THOLE_LIMIT);
    CHECK_STATUS(thole_client_cancel(client, THOLE_STR("x"), (thole_slice){large, 1025}, &err),
                 THOLE_INVALID);
    CHECK_STATUS(thole_client_show(client, THOLE_STR("x"), NULL, NULL, &err),
                 THOLE_INVALID); /* no Postgres */
    thole_outcome_release(&outcome);
}

/* ---- wait ---- */

static void test_wait(void)
{
    struct event const failed = {
        .kind = EVENT_FAILED, .id = 2, .code = THOLE_APP, .data = THOLE_STR("no card")};
    struct event const cancelled = {.kind = EVENT_CANCELLED, .id = 2, .data = THOLE_STR("why")};
    check("nobody", wait_text("never", 0), "NOT_FOUND");
    check("nobody in time", wait_text("never", 100), "NOT_FOUND");
    CU_ASSERT(write_started(1, "wait-1", "r") && write_started(2, "wait-2", "r"));
    check("runs", wait_text("wait-1", 0), "TIMEOUT");
    check("runs on", wait_text("wait-1", 100), "TIMEOUT");
    CU_ASSERT(write_turn(1, 3, "wait-1", 2, &failed) && write_turn(1, 4, "wait-2", 2, &cancelled));
    check("failed", wait_text("wait-1", WAIT_MS), "Failed #1 no card");
    check("cancelled", wait_text("wait-2", 0), "Cancelled #1 why");
}

struct waiter {
    pthread_t thread;
    const char *id;
    char text[256];
    uint64_t ms;
};

static void *wait_on_thread(void *arg)
{
    struct waiter *waiter = arg;
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    struct timespec const since = begin();
    thole_status const status =
        thole_client_wait(client, thole_slice_from(waiter->id), WAIT_MS, &outcome, NULL);
    waiter->ms = elapsed_ms(&since);
    (void)snprintf(waiter->text, sizeof waiter->text, "%s %.*s", thole_status_name(status),
                   THOLE_FMT(outcome.output));
    thole_outcome_release(&outcome);
    return NULL;
}

/* The end is written while nobody can send a notice: the new connection is a reason to look. */
static void test_wait_through_restart(void)
{
    struct event const completed = {.kind = EVENT_COMPLETED, .id = 2, .data = THOLE_STR("after")};
    struct waiter waiter = {.id = "restart-1"};
    struct timespec const pause = {.tv_nsec = 300 * 1000000L};
    CU_ASSERT(write_started(1, "restart-1", "r"));
    CU_ASSERT_EQUAL(pthread_create(&waiter.thread, NULL, wait_on_thread, &waiter), 0);
    nanosleep(&pause, NULL); /* so that it sleeps; nothing depends on it */
    server_kill9(&server);
    CHECK_OK(server_restart(&server, &err), &err);
    for (int tries = 0; tries < 100 && !write_turn(1, 2, "restart-1", 2, &completed); tries++)
        nanosleep(&pause, NULL);
    pthread_join(waiter.thread, NULL);
    check("after the restart", waiter.text, "OK after");
    CU_ASSERT(waiter.ms < WAIT_MS);
}

/* ---- records that do not count ---- */

static thole_status collect(void *arg, const thole_history_event *event)
{
    char *text = arg;
    size_t const len = strlen(text);
    (void)snprintf(text + len, 512 - len, "%" PRIu64 ".%" PRIu64 " %s %.*s|", event->turn, event->id,
                   event->kind, THOLE_FMT(event->data));
    return THOLE_OK;
}

static const char *history_text(const char *id)
{
    static char text[512];
    text[0] = '\0';
    thole_status const status = thole_client_history(client, thole_slice_from(id), collect, text, &err);
    if (status != THOLE_OK)
        (void)snprintf(text, sizeof text, "%s", thole_status_name(status));
    return text;
}

static void test_void_records(void)
{
    struct event const wrong = {.kind = EVENT_COMPLETED, .id = 2, .data = THOLE_STR("wrong")};
    struct event const right = {.kind = EVENT_COMPLETED, .id = 2, .data = THOLE_STR("right")};
    CU_ASSERT(write_started(1, "void-1", "r"));
    CU_ASSERT(engine_script_epoch(&script, 2));
    CU_ASSERT(write_turn(1, 2, "void-1", 2, &wrong)); /* by the deposed owner */
    check("void end", wait_text("void-1", 0), "TIMEOUT");
    check("void tail", history_text("void-1"), "1.1 Started |");
    CU_ASSERT(write_turn(2, 1, "void-1", 2, &right));
    check("end", wait_text("void-1", 0), "Completed #1 right");
    check("history", history_text("void-1"), "1.1 Started |2.2 Completed right|");
    CU_ASSERT(write_turn(1, 3, "void-1", 3, &wrong));
    check("late void", history_text("void-1"), "1.1 Started |2.2 Completed right|");
}

static void test_split_turn(void)
{
    struct event const scheduled = {
        .kind = EVENT_ACTIVITY_SCHEDULED, .id = 2, .name = THOLE_STR("a"), .queue = THOLE_STR("default")};
    struct event const completed = {.kind = EVENT_COMPLETED, .id = 3, .data = THOLE_STR("out")};
    struct turn turn = {.instance = THOLE_STR("split-1"),
                        .execution = 1,
                        .number = 2,
                        .more = true,
                        .events = &scheduled,
                        .events_len = 1};
    CU_ASSERT(write_started(2, "split-1", "r"));
    CU_ASSERT(engine_script_turn(&script, 2, 3, &turn));
    check("half", wait_text("split-1", 0), "TIMEOUT");
    turn.more = false;
    turn.events = &completed;
    CU_ASSERT(engine_script_turn(&script, 2, 4, &turn));
    check("whole", wait_text("split-1", 0), "Completed #1 out");
    check("nobody", history_text("never"), "NOT_FOUND");
}

/* ---- cancel ---- */

static void test_cancel(void)
{
    engine_script_mode(&script, SCRIPT_SILENT);
    CHECK_STATUS(thole_client_cancel(client, THOLE_STR("never"), nothing, &err), THOLE_NOT_FOUND);
    CU_ASSERT(write_started(5, "cancel-1", "r"));
    size_t const before = engine_script_messages(&script);
    CHECK_STATUS(thole_client_cancel(client, THOLE_STR("cancel-1"), THOLE_STR("no more"), &err), THOLE_OK);
    CU_ASSERT(engine_script_seen(&script, before + 1));
    CU_ASSERT_EQUAL(script.last.kind, MESSAGE_CANCEL);
    CU_ASSERT(thole_slice_equal(script.last.data, THOLE_STR("no more")));
    CU_ASSERT(thole_slice_equal(script.last.instance, THOLE_STR("cancel-1")));
    CU_ASSERT_EQUAL(script.last.request_id.len, 32);
}

/* ---- many at once ---- */

struct runner {
    pthread_t thread;
    size_t number, good;
};

static void *run_on_thread(void *arg)
{
    struct runner *runner = arg;
    for (size_t i = 0; i < RUNS_EACH; i++) {
        char id[64];
        thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
        (void)snprintf(id, sizeof id, "many-%zu-%zu", runner->number, i);
        if (thole_client_run(client, thole_slice_from(id), THOLE_STR("order"), thole_slice_from(id), WAIT_MS,
                             &outcome, NULL) == THOLE_OK &&
            thole_slice_equal(outcome.output, thole_slice_from(id)))
            runner->good++;
        thole_outcome_release(&outcome);
    }
    return NULL;
}

static void test_threads(void)
{
    struct runner runners[THREADS] = {{.number = 0}};
    size_t good = 0;
    engine_script_mode(&script, SCRIPT_COMPLETE);
    for (size_t i = 0; i < THREADS; i++) {
        runners[i].number = i;
        CU_ASSERT_EQUAL(pthread_create(&runners[i].thread, NULL, run_on_thread, &runners[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(runners[i].thread, NULL);
        good += runners[i].good;
    }
    CU_ASSERT_EQUAL(good, THREADS * RUNS_EACH);
}

static const struct thole_test tests[] = {
    {"open", test_open},
    {"run", test_run},
    {"run_without_notices", test_run_without_notices},
    {"run_conflict", test_run_conflict},
    {"run_nobody", test_run_nobody},
    {"start", test_start},
    {"start_nobody", test_start_nobody},
    {"arguments", test_arguments},
    {"wait", test_wait},
    {"wait_through_restart", test_wait_through_restart},
    {"threads", test_threads},
    {"void_records", test_void_records},
    {"split_turn", test_split_turn},
    {"cancel", test_cancel},
};

int main(void)
{
    char dir[SERVER_PATH_BYTES];
    int code = 1;
    skip_without_nats();
    unsetenv("THOLE_POSTGRES");
    unsetenv("THOLE_NAMESPACE");
    if (server_dir_create("thole-client", dir, &err) != THOLE_OK)
        return 1;
    if (server_nats_start(&(struct nats_server_options){.dir = dir}, &server, &err) == THOLE_OK &&
        engine_script_open(&script, server.url, "default", &err) == THOLE_OK) {
        if (open_client("default", &client) == THOLE_OK)
            code = thole_run_suite("client", tests, ARRAY_LEN(tests));
        thole_client_close(client);
        engine_script_close(&script);
    }
    if (code != 0)
        fprintf(stderr, "%s\n", err.text);
    server_stop(&server);
    server_dir_remove(dir);
    return code;
}
