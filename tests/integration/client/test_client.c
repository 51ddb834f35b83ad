/* The client library against a real nats-server; a script plays the engine (engine_script.h). */
#include "client_fixture.h"
#include "tcp_proxy.h"
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, RUNS_EACH = 40 };

static const thole_slice nothing = {NULL, 0};

static const char *run_text(const char *id, const char *input)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_status const status =
        thole_client_run(fixture.client, thole_slice_from(id), THOLE_STR("order"), thole_slice_from(input),
                         FIXTURE_WAIT_MS, &outcome, &fixture.err);
    return fixture_outcome(status, &outcome);
}

/* ---- open ---- */

static void test_open(void)
{
    thole_client *other = NULL;
    thole_client_options options;
    CHECK_STATUS(fixture_client("nobody", &other), THOLE_NOT_FOUND);
    CHECK_STATUS(fixture_client("a b", &other), THOLE_INVALID);
    thole_client_options_init(&options);
    options.nats_url = "nats://127.0.0.1:1";
    options.timeout_ms = 300;
    CHECK_STATUS(thole_client_open(&options, &other, &fixture.err), THOLE_UNAVAILABLE);
    options.size = 0;
    CHECK_STATUS(thole_client_open(&options, &other, &fixture.err), THOLE_INVALID);
    CU_ASSERT_PTR_NULL(other);
    thole_client_close(NULL);
}

/* ---- run ---- */

static void test_run(void)
{
    engine_script_mode(&fixture.script, SCRIPT_COMPLETE);
    fixture_check("first", run_text("run-1", "hello"), "Completed #1 hello");
    fixture_check("empty", run_text("run-2", ""), "Completed #1 ");
    fixture_check("odd id", run_text("a b/é.*>", "x"), "Completed #1 x");
    fixture_check("wait afterwards", fixture_wait("run-1", 0), "Completed #1 hello");
}

/* Notices are at most once: the history alone must do. */
static void test_run_without_notices(void)
{
    engine_script_mode(&fixture.script, SCRIPT_NO_NOTICES);
    struct timespec const since = fixture_begin();
    fixture_check("lost", run_text("lost-1", "hello"), "Completed #1 hello");
    CU_ASSERT(fixture_elapsed_ms(&since) < 2000);
}

static void test_run_conflict(void)
{
    engine_script_mode(&fixture.script, SCRIPT_REJECT);
    CU_ASSERT(fixture_started(1, "taken", "somebody"));
    fixture_check("rejected", run_text("taken", "x"), "CONFLICT");
    engine_script_mode(&fixture.script, SCRIPT_SILENT);
    fixture_check("silent engine", run_text("taken", "x"), "CONFLICT");
}

static void test_run_nobody(void)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    engine_script_mode(&fixture.script, SCRIPT_SILENT);
    CHECK_STATUS(thole_client_run(fixture.client, THOLE_STR("lonely"), THOLE_STR("order"), nothing, 400,
                                  &outcome, &fixture.err),
                 THOLE_TIMEOUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(fixture.err.text, "no engine has taken it"));
}

/* ---- start ---- */

static thole_status start(const char *id, bool *ret_accepted)
{
    return thole_client_start(fixture.client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("in"),
                              ret_accepted, &fixture.err);
}

static void test_start(void)
{
    bool accepted = false;
    size_t const before = engine_script_messages(&fixture.script) + 1;
    engine_script_mode(&fixture.script, SCRIPT_COMPLETE);
    CHECK_STATUS(start("start-1", &accepted), THOLE_OK);
    CU_ASSERT(accepted);
    CU_ASSERT(engine_script_seen(&fixture.script, before)); /* counted after the notices */
    CHECK_STATUS(start("start-1", &accepted), THOLE_CONFLICT);
    CHECK_STATUS(start("start-2", NULL), THOLE_OK);
    CU_ASSERT(engine_script_seen(&fixture.script, before + 1));
    CU_ASSERT_EQUAL(engine_script_messages(&fixture.script),
                    before + 1); /* the conflict was found without a message */
}

static void test_start_nobody(void)
{
    bool accepted = true;
    engine_script_mode(&fixture.script, SCRIPT_SILENT);
    struct timespec const since = fixture_begin();
    CHECK_STATUS(start("queued-1", &accepted), THOLE_OK);
    CU_ASSERT_FALSE(accepted);
    CU_ASSERT(fixture_elapsed_ms(&since) >= FIXTURE_TIMEOUT_MS - 10);
    engine_script_mode(&fixture.script, SCRIPT_NO_NOTICES);
    struct timespec const again = fixture_begin();
    CHECK_STATUS(start("queued-2", &accepted), THOLE_OK);
    CU_ASSERT(accepted); /* found in the history, long before the timeout */
    CU_ASSERT(fixture_elapsed_ms(&again) < FIXTURE_TIMEOUT_MS - 100);
    engine_script_mode(&fixture.script, SCRIPT_REJECT);
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
        CHECK_STATUS(thole_client_start(fixture.client, id, THOLE_STR("order"), nothing, NULL, &fixture.err),
                     THOLE_INVALID);
        CHECK_STATUS(thole_client_wait(fixture.client, id, 0, &outcome, &fixture.err), THOLE_INVALID);
        CHECK_STATUS(thole_client_cancel(fixture.client, id, nothing, &fixture.err), THOLE_INVALID);
        CHECK_STATUS(thole_client_history(fixture.client, id, NULL, NULL, &fixture.err), THOLE_INVALID);
    }
    CHECK_STATUS(
        thole_client_start(fixture.client, THOLE_STR("x"), THOLE_STR("a.b"), nothing, NULL, &fixture.err),
        THOLE_INVALID);
    CHECK_STATUS(thole_client_start(fixture.client, THOLE_STR("x"), THOLE_STR("order"),
                                    (thole_slice){large, sizeof large}, NULL, &fixture.err),
                 THOLE_LIMIT);
    CHECK_STATUS(
        thole_client_cancel(fixture.client, THOLE_STR("x"), (thole_slice){large, 1025}, &fixture.err),
        THOLE_INVALID);
    CHECK_STATUS(thole_client_show(fixture.client, THOLE_STR("x"), NULL, NULL, &fixture.err),
                 THOLE_INVALID); /* no Postgres */
    thole_outcome_release(&outcome);
}

/* ---- wait ---- */

static void test_wait(void)
{
    struct event const failed = {
        .kind = EVENT_FAILED, .id = 2, .code = THOLE_APP, .data = THOLE_STR("no card")};
    struct event const cancelled = {.kind = EVENT_CANCELLED, .id = 2, .data = THOLE_STR("why")};
    fixture_check("nobody", fixture_wait("never", 0), "NOT_FOUND");
    fixture_check("nobody in time", fixture_wait("never", 100), "NOT_FOUND");
    CU_ASSERT(fixture_started(1, "wait-1", "r") && fixture_started(2, "wait-2", "r"));
    fixture_check("runs", fixture_wait("wait-1", 0), "TIMEOUT");
    fixture_check("runs on", fixture_wait("wait-1", 100), "TIMEOUT");
    CU_ASSERT(fixture_write(1, 3, "wait-1", 2, &failed) && fixture_write(1, 4, "wait-2", 2, &cancelled));
    fixture_check("failed", fixture_wait("wait-1", FIXTURE_WAIT_MS), "Failed #1 no card");
    fixture_check("cancelled", fixture_wait("wait-2", 0), "Cancelled #1 why");
}

struct waiter {
    pthread_t thread;
    thole_client *client; /* NULL: the fixture's */
    const char *id;
    char text[256];
    uint64_t ms;
};

static void *wait_on_thread(void *arg)
{
    struct waiter *waiter = arg;
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    struct timespec const since = fixture_begin();
    thole_status const status =
        thole_client_wait(waiter->client != NULL ? waiter->client : fixture.client,
                          thole_slice_from(waiter->id), FIXTURE_WAIT_MS, &outcome, NULL);
    waiter->ms = fixture_elapsed_ms(&since);
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
    CU_ASSERT(fixture_started(1, "restart-1", "r"));
    CU_ASSERT_EQUAL(pthread_create(&waiter.thread, NULL, wait_on_thread, &waiter), 0);
    nanosleep(&pause, NULL); /* so that it sleeps; nothing depends on it */
    server_kill9(&fixture.server);
    CHECK_OK(server_restart(&fixture.server, &fixture.err), &fixture.err);
    for (int tries = 0; tries < 100 && !fixture_write(1, 2, "restart-1", 2, &completed); tries++)
        nanosleep(&pause, NULL);
    pthread_join(waiter.thread, NULL);
    fixture_check("after the restart", waiter.text, "OK after");
    CU_ASSERT(waiter.ms < FIXTURE_WAIT_MS);
}

/* The end is recorded, and announced, while this client alone is cut off. */
static void test_wait_through_cut(void)
{
    struct event const completed = {.kind = EVENT_COMPLETED, .id = 2, .data = THOLE_STR("unheard")};
    struct waiter waiter = {.id = "cut-1"};
    struct timespec const pause = {.tv_nsec = 300 * 1000000L};
    struct tcp_proxy *const proxy = tcp_proxy_start(fixture.server.port);
    thole_client_options options;
    char url[64];
    CU_ASSERT_PTR_NOT_NULL_FATAL(proxy);
    (void)snprintf(url, sizeof url, "nats://127.0.0.1:%u", tcp_proxy_port(proxy));
    thole_client_options_init(&options);
    options.nats_url = url;
    options.timeout_ms = FIXTURE_TIMEOUT_MS;
    CHECK_OK(thole_client_open(&options, &waiter.client, &fixture.err), &fixture.err);
    CU_ASSERT(fixture_started(1, "cut-1", "r"));
    CU_ASSERT_EQUAL(pthread_create(&waiter.thread, NULL, wait_on_thread, &waiter), 0);
    nanosleep(&pause, NULL); /* so that it sleeps */
    tcp_proxy_cut(proxy);
    CU_ASSERT(fixture_write(1, 2, "cut-1", 2, &completed));
    engine_script_notice(&fixture.script, "completed", THOLE_STR("cut-1"), THOLE_STR(""), nothing);
    nanosleep(&pause, NULL);
    tcp_proxy_heal(proxy);
    pthread_join(waiter.thread, NULL);
    fixture_check("after the cut", waiter.text, "OK unheard");
    CU_ASSERT(waiter.ms < FIXTURE_WAIT_MS / 2);
    thole_client_close(waiter.client);
    tcp_proxy_stop(proxy);
}

/* ---- records that do not count ---- */

static void test_void_records(void)
{
    struct event const wrong = {.kind = EVENT_COMPLETED, .id = 2, .data = THOLE_STR("wrong")};
    struct event const right = {.kind = EVENT_COMPLETED, .id = 2, .data = THOLE_STR("right")};
    CU_ASSERT(fixture_started(1, "void-1", "r"));
    CU_ASSERT(engine_script_epoch(&fixture.script, 2));
    CU_ASSERT(fixture_write(1, 2, "void-1", 2, &wrong)); /* by the deposed owner */
    fixture_check("void end", fixture_wait("void-1", 0), "TIMEOUT");
    fixture_check("void tail", fixture_history("void-1"), "1.1 Started |");
    CU_ASSERT(fixture_write(2, 1, "void-1", 2, &right));
    fixture_check("end", fixture_wait("void-1", 0), "Completed #1 right");
    fixture_check("history", fixture_history("void-1"), "1.1 Started |2.2 Completed right|");
    CU_ASSERT(fixture_write(1, 3, "void-1", 3, &wrong));
    fixture_check("late void", fixture_history("void-1"), "1.1 Started |2.2 Completed right|");
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
    CU_ASSERT(fixture_started(2, "split-1", "r"));
    CU_ASSERT(engine_script_turn(&fixture.script, 2, 3, &turn));
    fixture_check("half", fixture_wait("split-1", 0), "TIMEOUT");
    fixture_check("half a turn is none", fixture_history("split-1"), "1.1 Started |");
    turn.more = false;
    turn.events = &completed;
    CU_ASSERT(engine_script_turn(&fixture.script, 2, 4, &turn));
    fixture_check("whole", fixture_wait("split-1", 0), "Completed #1 out");
    fixture_check("history", fixture_history("split-1"),
                  "1.1 Started |2.2 ActivityScheduled |2.3 Completed out|");
    fixture_check("nobody", fixture_history("never"), "NOT_FOUND");
}

/* ---- cancel ---- */

static void test_cancel(void)
{
    engine_script_mode(&fixture.script, SCRIPT_SILENT);
    CHECK_STATUS(thole_client_cancel(fixture.client, THOLE_STR("never"), nothing, &fixture.err),
                 THOLE_NOT_FOUND);
    CU_ASSERT(fixture_started(5, "cancel-1", "r"));
    size_t const before = engine_script_messages(&fixture.script);
    CHECK_STATUS(
        thole_client_cancel(fixture.client, THOLE_STR("cancel-1"), THOLE_STR("no more"), &fixture.err),
        THOLE_OK);
    CU_ASSERT(engine_script_seen(&fixture.script, before + 1));
    CU_ASSERT_EQUAL(fixture.script.last.kind, MESSAGE_CANCEL);
    CU_ASSERT(thole_slice_equal(fixture.script.last.data, THOLE_STR("no more")));
    CU_ASSERT(thole_slice_equal(fixture.script.last.instance, THOLE_STR("cancel-1")));
    CU_ASSERT_EQUAL(fixture.script.last.request_id.len, 32);
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
        if (thole_client_run(fixture.client, thole_slice_from(id), THOLE_STR("order"), thole_slice_from(id),
                             FIXTURE_WAIT_MS, &outcome, NULL) == THOLE_OK &&
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
    engine_script_mode(&fixture.script, SCRIPT_COMPLETE);
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
    {"wait through a cut of its own", test_wait_through_cut},
    {"threads", test_threads},
    {"void_records", test_void_records},
    {"split_turn", test_split_turn},
    {"cancel", test_cancel},
};

int main(void)
{
    return fixture_run("client", tests, ARRAY_LEN(tests));
}
