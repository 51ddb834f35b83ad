/* Deleting instances with real servers: rows, records, the id's next life; an owner that dies on the way. */
#include "holds.h"
#include "link.h"
#include "reader.h"
#include "stack.h"
#include "subject.h"
#include "thole_cunit.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { WAIT_MS = 20000, PARTITIONS = 8, MANY = 1500, TOGETHER = 40 };

static struct stack stack;
static struct stack_program *engine;
static thole_client *client;
static struct connection *connection;
static const thole_slice nothing = {NULL, 0};

static thole_slice text(const char *from)
{
    return thole_slice_from(from);
}

static void check(const char *row, const char *got, const char *want)
{
    CHECK_STR(row, got, want);
}

#define CHECK_STATUS(got, want) check(#got, thole_status_name(got), thole_status_name(want))

static void start(const char *id, const char *orchestration, const char *input)
{
    bool accepted = false;
    CHECK_OK(thole_client_start(client, text(id), text(orchestration), text(input), &accepted, &stack.err),
             &stack.err);
    CU_ASSERT_TRUE(accepted);
}

static void signal_go(const char *id)
{
    CHECK_OK(thole_client_signal(client, text(id), THOLE_STR("go"), text("on"), nothing, NULL, &stack.err),
             &stack.err);
}

static const char *row(const char *id);

/* In the projection too, which lags the history for a moment: or a row that does not exist yet is taken for
 * one that is gone. */
static void run_to_its_end(const char *id)
{
    thole_instance_status status;
    start(id, "gate", "");
    signal_go(id);
    check(id, stack_outcome(client, id, WAIT_MS, &status), "on");
    for (int i = 0; i < 2000 && strncmp(row(id), "Completed", strlen("Completed")) != 0; i++)
        pause_ms(10);
}

static thole_status delete_it(const char *id, bool force)
{
    thole_delete_options const options = {
        .size = sizeof options, .force = force, .reason = THOLE_STR("away")};
    bool accepted = false;
    thole_status const status = thole_client_delete(client, text(id), &options, &accepted, &stack.err);
    CU_ASSERT_EQUAL(accepted, status == THOLE_OK);
    return status;
}

/* ---- remains ---- */

static thole_status count(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    (void)sequence, (void)subject, (void)body;
    ++*(size_t *)arg;
    return THOLE_OK;
}

/* Records of the id in its stream. */
static size_t records_of(const char *id)
{
    struct buf stream, subject;
    size_t n = 0;
    uint32_t const p = subject_partition(text(id), PARTITIONS);
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    CHECK_OK(stream_name(&stream, "default", "HIST", p, &stack.err), &stack.err);
    CHECK_OK(subject_history(&subject, "default", p, text(id), EXECUTIONS_ALL, &stack.err), &stack.err);
    CHECK_OK(
        stream_read(connection, buf_cstr(&stream), buf_cstr(&subject), 1, UINT64_MAX, count, &n, &stack.err),
        &stack.err);
    buf_release(&stream);
    buf_release(&subject);
    return n;
}

/* Removal follows the deletion. */
static void records_become(const char *id, size_t want)
{
    for (int i = 0; i < 2000 && records_of(id) != want; i++)
        pause_ms(10);
    CU_ASSERT_EQUAL(records_of(id), want);
}

struct rendered {
    char text[1024];
};

static thole_status render_row(void *arg, const thole_instance_info *info)
{
    struct rendered *r = arg;
    (void)snprintf(r->text, sizeof r->text, "%s #%" PRIu64, thole_instance_status_name(info->status),
                   info->execution);
    return THOLE_OK;
}

static const char *row(const char *id)
{
    static struct rendered r;
    thole_status const status = thole_client_show(client, text(id), render_row, &r, &stack.err);
    return status == THOLE_OK ? r.text : thole_status_name(status);
}

static void row_becomes(const char *id, const char *want)
{
    const char *got = row(id);
    for (int i = 0; i < 2000 && strcmp(got, want) != 0; i++, got = row(id))
        pause_ms(10);
    check(id, got, want);
}

static void is_gone(const char *id)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    row_becomes(id, "NOT_FOUND");
    check(id, stack_history(client, id), "NOT_FOUND");
    CHECK_STATUS(thole_client_wait(client, text(id), 0, &outcome, &stack.err), THOLE_NOT_FOUND);
    CHECK_STATUS(thole_client_cancel(client, text(id), nothing, &stack.err), THOLE_NOT_FOUND);
    CHECK_STATUS(thole_client_delete(client, text(id), NULL, NULL, &stack.err), THOLE_NOT_FOUND);
    records_become(id, 1);
}

/* The replay role with these words ends with this code, having said this. */
static void replays(const char *words, int code, const char *want)
{
    char line[256], said[4096];
    (void)snprintf(line, sizeof line, THOLE_TEST_PROGRAMS "/program_verbs replay %s 2>&1", words);
    FILE *from = popen(line, "r");
    size_t const len = from == NULL ? 0 : fread(said, 1, sizeof said - 1, from);
    int const status = from == NULL ? -1 : pclose(from);
    said[len] = '\0';
    bool const good = WIFEXITED(status) && WEXITSTATUS(status) == code && strstr(said, want) != NULL;
    CU_ASSERT_TRUE(good);
    if (!good)
        (void)fprintf(stderr, "\n  [replay %s]\n    got  %d: %s\n    want %d: …%s\n", words,
                      WEXITSTATUS(status), said, code, want);
}

/* ---- tests ---- */

static void what_has_ended_goes(void)
{
    start("runs", "gate", "");
    CHECK_STATUS(delete_it("runs", false), THOLE_CONFLICT);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "has not ended"));
    CHECK_STATUS(delete_it("nobody", false), THOLE_NOT_FOUND);
    run_to_its_end("done");
    CHECK_STATUS(delete_it("done", false), THOLE_OK);
    is_gone("done");
    row_becomes("runs", "Running #1");
    replays("done", 3, "there is no instance");
    replays("--all", 0, "1 instances, 1 executions");
}

static void force_deletes_whatever_it_is(void)
{
    CHECK_STATUS(delete_it("runs", true), THOLE_OK);
    is_gone("runs");
    CHECK_OK(
        thole_client_signal(client, THOLE_STR("early"), THOLE_STR("go"), nothing, nothing, NULL, &stack.err),
        &stack.err);
    row_becomes("early", "Waiting #0");
    CHECK_STATUS(delete_it("early", false), THOLE_OK);
    is_gone("early");
}

static void the_id_lives_again(void)
{
    thole_instance_status status;
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    start("again", "counter", "");
    for (int i = 0; i < 3; i++)
        CHECK_OK(thole_client_signal(client, THOLE_STR("again"), THOLE_STR("add"), nothing, nothing, NULL,
                                     &stack.err),
                 &stack.err);
    check("counted", stack_outcome(client, "again", WAIT_MS, &status), "+++");
    CHECK_STATUS(delete_it("again", false), THOLE_OK);
    run_to_its_end("again");
    CHECK_OK(thole_client_wait(client, THOLE_STR("again"), 0, &outcome, &stack.err), &stack.err);
    CU_ASSERT_EQUAL(outcome.execution, 4);
    thole_outcome_release(&outcome);
    check("of this life", stack_history(client, "again"),
          "4:Started 4:CustomStatusSet 4:EventAwaited 4:EventReceived 4:Completed");
    row_becomes("again", "Completed #4");
    records_become("again", 3); /* the deletion and two turns */
    replays("again", 0, "1 instances, 1 executions");
    replays("--all", 0, "1 instances, 1 executions");
    CHECK_STATUS(delete_it("again", false), THOLE_OK);
    is_gone("again");
}

static void *wait_for_it(void *arg)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_error err = {0};
    *(thole_status *)arg = thole_client_wait(client, THOLE_STR("awaited"), WAIT_MS, &outcome, &err);
    thole_outcome_release(&outcome);
    return NULL;
}

/* A waiting client gets the end, or the deletion that followed it at once. */
static void a_waiter_does_not_hang(void)
{
    pthread_t thread;
    thole_status status = THOLE_UNAVAILABLE;
    uint64_t const began = now_us();
    start("awaited", "gate", "");
    CU_ASSERT_EQUAL(pthread_create(&thread, NULL, wait_for_it, &status), 0);
    pause_ms(50);
    CHECK_STATUS(delete_it("awaited", true), THOLE_OK);
    pthread_join(thread, NULL);
    CU_ASSERT(status == THOLE_OK || status == THOLE_NOT_FOUND);
    CU_ASSERT(now_us() - began < (uint64_t)WAIT_MS * 1000 / 2);
}

/* More records than go in one piece; the engine dies in the midst of it. */
static void an_owner_dies_on_the_way(void)
{
    char id[32];
    start("large", "gate", "9");
    for (int i = 0; i < MANY; i++)
        CHECK_OK(thole_client_signal(client, THOLE_STR("large"), THOLE_STR("other"), nothing, nothing, NULL,
                                     &stack.err),
                 &stack.err);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(id, sizeof id, "small-%d", i);
        run_to_its_end(id);
        CHECK_STATUS(delete_it(id, false), THOLE_OK);
    }
    CHECK_STATUS(delete_it("large", true), THOLE_OK);
    stack_kill9(engine);
    replays("--all", 0, "0 diverged, 0 unreadable");
    engine = stack_program_of(&stack, "program_verbs", "run", "run");
    is_gone("large");
    for (int i = 0; i < 4; i++) {
        (void)snprintf(id, sizeof id, "small-%d", i);
        is_gone(id);
    }
    run_to_its_end("large");
    CHECK_STATUS(delete_it("large", false), THOLE_OK);
}

/* The engine refuses: also what comes from a client that does not ask first. */
static void what_is_held_stays(void)
{
    struct hold hold = {.instance = text("held"),
                        .held = true,
                        .by = text("legal@example.com"),
                        .reason = text("case 4711"),
                        .time_ms = 1};
    uint64_t revision = 0;
    run_to_its_end("held");
    CHECK_STATUS(holds_require(connection, "default", &stack.err), THOLE_OK);
    CHECK_STATUS(holds_put(connection, "default", &hold, &revision, &stack.err), THOLE_OK);
    CHECK_STATUS(holds_put(connection, "default", &hold, &revision, &stack.err), THOLE_CONFLICT);
    CHECK_STATUS(delete_it("held", false), THOLE_CONFLICT);
    CHECK_STR("why", stack.err.text,
              "instance \"held\" is under legal hold since 1970-01-01T00:00:00.001Z, by legal@example.com: "
              "case 4711; nothing was changed");
    CHECK_STATUS(delete_it("held", true), THOLE_CONFLICT);
    CU_ASSERT_TRUE(stack_logged(engine, "rejected (held): the instance is under legal hold", 1, WAIT_MS));
    run_to_its_end("not-held");
    CHECK_STATUS(delete_it("not-held", false), THOLE_OK);
    stack_kill9(engine);
    engine = stack_program_of(&stack, "program_verbs", "run", "run");
    check("it is there", row("held"), "Completed #1");
    CHECK_STATUS(delete_it("held", false), THOLE_CONFLICT);
    hold.held = false;
    CHECK_STATUS(holds_put(connection, "default", &hold, &revision, &stack.err), THOLE_OK);
    CHECK_STATUS(holds_put(connection, "default", &hold, &revision, &stack.err), THOLE_CONFLICT);
    CU_ASSERT(revision > 1);
    CHECK_STATUS(delete_it("held", false), THOLE_OK);
    is_gone("held");
}

struct deleting {
    const char *prefix;
    atomic_int next;
    atomic_int refused;
};

static void *delete_next(void *arg)
{
    struct deleting *const deleting = arg;
    for (int i; (i = atomic_fetch_add(&deleting->next, 1)) < TOGETHER;) {
        char id[32];
        bool accepted = true;
        (void)snprintf(id, sizeof id, "%s-%d", deleting->prefix, i);
        thole_status const status = thole_client_delete(client, text(id), NULL, &accepted, NULL);
        CU_ASSERT(status == THOLE_OK || status == THOLE_CONFLICT);
        atomic_fetch_add(&deleting->refused, status == THOLE_CONFLICT || !accepted);
    }
    return NULL;
}

/* The engine asks once for many; that one is held is seen all the same. */
static void many_at_once_one_is_held(void)
{
    struct hold hold = {.instance = text("together-17"),
                        .held = true,
                        .by = text("legal@example.com"),
                        .reason = text("case 4711"),
                        .time_ms = 1};
    struct deleting deleting = {.prefix = "together"};
    pthread_t threads[TOGETHER];
    uint64_t revision = 0;
    char id[32];
    for (int i = 0; i < TOGETHER; i++) {
        (void)snprintf(id, sizeof id, "together-%d", i);
        run_to_its_end(id);
    }
    CHECK_STATUS(holds_put(connection, "default", &hold, &revision, &stack.err), THOLE_OK);
    stack_kill9(engine); /* so that they wait in the inboxes */
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, delete_next, &deleting), 0);
    pause_ms(300);
    engine = stack_program_of(&stack, "program_verbs", "run", "run");
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    CU_ASSERT_EQUAL(atomic_load(&deleting.refused), 1);
    for (int i = 0; i < TOGETHER; i++) {
        (void)snprintf(id, sizeof id, "together-%d", i);
        if (i != 17)
            is_gone(id);
    }
    check("it is there", row("together-17"), "Completed #1");
}

enum { DEATHS = 4, DEATH_MS = 120 };

/* Each deletion has just read where the records stand, and removes these; owners die in the midst of it. Of
 * those between them nothing goes. */
static void owners_die_while_many_go(void)
{
    struct deleting deleting = {.prefix = "fallen"};
    char *histories[TOGETHER], id[32];
    size_t records[TOGETHER];
    pthread_t threads[TOGETHER / 4];
    for (int i = 0; i < TOGETHER; i++) {
        (void)snprintf(id, sizeof id, "fallen-%d", i);
        run_to_its_end(id);
        (void)snprintf(id, sizeof id, "standing-%d", i);
        run_to_its_end(id);
        histories[i] = strdup(stack_history(client, id));
        records[i] = records_of(id);
        CU_ASSERT(records[i] > 1);
    }
    stack_kill9(engine); /* the engine's memory of them goes, too */
    engine = stack_program_of(&stack, "program_verbs", "run", "run");
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, delete_next, &deleting), 0);
    for (unsigned i = 1; i <= DEATHS; i++) {
        pause_ms(DEATH_MS * i);
        stack_kill9(engine);
        engine = stack_program_of(&stack, "program_verbs", "run", "run");
    }
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < TOGETHER; i++) {
        (void)snprintf(id, sizeof id, "fallen-%d", i);
        is_gone(id);
        (void)snprintf(id, sizeof id, "standing-%d", i);
        check(id, stack_history(client, id), histories[i]);
        CU_ASSERT_EQUAL(records_of(id), records[i]);
        free(histories[i]);
    }
    replays("--all", 0, "0 diverged, 0 unreadable");
}

/* A value that is longer than any of thole's: whether it holds the instance cannot be found out. */
static void a_hold_that_cannot_be_read(void)
{
    static uint8_t rubbish[32 * 1024];
    bool accepted = true;
    run_to_its_end("unknown");
    memset(rubbish, 'x', sizeof rubbish);
    CHECK_STATUS(connection_publish(connection, "$KV.THOLE_default_HOLDS.unknown", NULL, 0,
                                    (thole_slice){rubbish, sizeof rubbish}, &stack.err),
                 THOLE_OK);
    CHECK_STATUS(connection_flush(connection, &stack.err), THOLE_OK);
    CU_ASSERT_FALSE(thole_client_delete(client, text("unknown"), NULL, &accepted, &stack.err) == THOLE_OK &&
                    accepted);
    CU_ASSERT_TRUE(stack_logged(
        engine, "rejected (hold_unknown): whether the instance is under legal hold could", 1, WAIT_MS));
    check("it is there", row("unknown"), "Completed #1");
}

static const struct thole_test tests[] = {
    {"what has ended goes", what_has_ended_goes},
    {"force deletes whatever it is", force_deletes_whatever_it_is},
    {"what is held stays", what_is_held_stays},
    {"the id lives again", the_id_lives_again},
    {"many at once, one is held", many_at_once_one_is_held},
    {"a waiter does not hang", a_waiter_does_not_hang},
    {"an owner dies on the way", an_owner_dies_on_the_way},
    {"owners die while many go", owners_die_while_many_go},
    {"a hold that cannot be read", a_hold_that_cannot_be_read},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    setenv("THOLE_NODE_TTL", "2s", 1); /* of the one that is killed */
    engine = stack_program_of(&stack, "program_verbs", "run", "run");
    client = stack_client(&stack);
    (void)stack_logged(engine, "open, epoch", PARTITIONS, WAIT_MS); /* so that all is accepted at once */
    connection = stack_connect(&stack);
    int const failed = thole_run_suite("deletion", tests, ARRAY_LEN(tests));
    connection_close(connection);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
