/*
 * Each job of an engine and a worker that can fail is made to fail: its calls are answered with an error,
 * done and not answered, not made because the connection is lost, or answered with something that does not
 * fit. The row says what must follow: the job is tried again, a line says so where people need one, and work
 * under way ends as it should. Real servers; the faults are between the roles and the code that talks to the
 * servers.
 */
#include "engine_host.h"
#include "engine_script.h"
#include "reader.h"
#include "stack.h"
#include "subject.h"
#include "thole/activity.h"
#include "worker_host.h"
#include "wrap_faults.h"
#include <pthread.h>

/* ---- the program: one engine, one worker, one partition ---- */

enum { LEASE_MS = 1500, SWEEP_MS = 1000, STORY_MS = 10000 };

static struct stack stack;
static thole_client *client;
static struct connection *hand; /* the test's own */
static struct engine_host *engine;
static struct worker_host *worker;

static thole_status plain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("does"), input), ret_output);
}

/* Some records long: more than are removed one by one. */
static thole_status steps(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (int i = 0; i < 4; i++)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("does"), input), ret_output));
    return THOLE_OK;
}

static thole_status parent(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_child(ctx, THOLE_STR("plain"), input, NULL), ret_output);
}

/* With more records than are loaded one by one. */
static thole_status again(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    for (int i = 0; i < 70 && input.len == 0; i++)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("does"), input), NULL));
    if (input.len == 0)
        return thole_continue_as_new(ctx, THOLE_STR("second"), 0);
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

/* With more than one. */
static thole_status waits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("does"), input), NULL));
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

/* Nobody has its queue. */
static thole_status strands(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {
        .size = sizeof options, .queue = THOLE_STR("nobody"), .try_timeout_ms = 300};
    thole_status const status =
        thole_await(ctx, thole_call_with(ctx, THOLE_STR("does"), input, &options), ret_output);
    *ret_output = THOLE_STR("timed out");
    return status == THOLE_TIMEOUT ? THOLE_OK : status;
}

/* "later": completed from outside. "long": longer than a third of the lease. "hang": until its token
 * fires. */
static pthread_mutex_t later_lock = PTHREAD_MUTEX_INITIALIZER;
static char later_token[256];

static thole_status does(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    thole_slice token;
    if (thole_slice_equal(input, THOLE_STR("long")))
        THOLE_TRY(thole_activity_wait(act, LEASE_MS / 2));
    while (thole_slice_equal(input, THOLE_STR("hang")))
        THOLE_TRY(thole_activity_wait(act, LEASE_MS));
    *ret_output = input;
    if (!thole_slice_equal(input, THOLE_STR("later")))
        return THOLE_OK;
    thole_status const status = thole_activity_later(act, &token);
    pthread_mutex_lock(&later_lock);
    snprintf(later_token, sizeof later_token, "%.*s", THOLE_FMT(token));
    pthread_mutex_unlock(&later_lock);
    return status;
}

static const thole_orchestration_entry orchestrations[] = {{"plain", plain, 0},   {"steps", steps, 0},
                                                           {"parent", parent, 0}, {"waits", waits, 0},
                                                           {"again", again, 0},   {"strands", strands, 0}};
static const thole_activity_entry activities[] = {{"does", does, NULL}};
static const thole_program program = {.size = sizeof program,
                                      .name = "faults",
                                      .orchestrations = orchestrations,
                                      .orchestrations_len = ARRAY_LEN(orchestrations),
                                      .activities = activities,
                                      .activities_len = ARRAY_LEN(activities)};

static void must(thole_status status, const thole_error *err)
{
    if (status == THOLE_OK)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void open_all(void)
{
    struct connection_options const options = {
        .url = stack.nats.url, .name = "hand", .connect_timeout_ms = 2000, .request_timeout_ms = 2000};
    struct host_options const host = {.nats_url = stack.nats.url,
                                      .postgres = stack.postgres.url,
                                      .ns = "default",
                                      .node = "faults",
                                      .partitions = 1,
                                      .engine_threads = 1,
                                      .crash_limit = 2,
                                      .node_ttl_ms = 6000,
                                      .heartbeat_ms = 300,
                                      .sweep_ms = SWEEP_MS,
                                      .early_event_ms = 60000,
                                      .quarantine_ms = 60000,
                                      .parked_max = 1,
                                      .instance_memory_max = 8 << 20,
                                      .queue = "default",
                                      .slots = 4,
                                      .lease_ms = LEASE_MS,
                                      .grace_ms = 500,
                                      .stop_limit_ms = 1000};
    must(connection_open(&options, &hand, &stack.err), &stack.err);
    must(engine_host_start(&host, &program, NULL, &engine, &stack.err), &stack.err);
    must(worker_host_start(&host, &program, NULL, &worker, &stack.err), &stack.err);
    client = stack_client(&stack);
}

static void close_all(void)
{
    worker_host_stop(worker);
    engine_host_stop(engine);
    thole_client_close(client);
    connection_close(hand);
}

/* ---- stories: each is one thing that users do, and true when it came out as it must ---- */

static unsigned round_number;

static const char *id_of(const char *name)
{
    static char ids[4][64];
    static unsigned next;
    char *const id = ids[next++ % 4];
    snprintf(id, sizeof ids[0], "%s-%u", name, round_number);
    return id;
}

/* A client's request may meet the fault too: it is asked again, under the same id. */
static bool starts(const char *id, const char *orchestration, const char *input)
{
    uint64_t const end = clock_monotonic_ms() + STORY_MS;
    thole_status status;
    do
        status = thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                    thole_slice_from(input), NULL, &stack.err);
    while (status == THOLE_UNAVAILABLE && clock_monotonic_ms() < end);
    return status == THOLE_OK || status == THOLE_CONFLICT;
}

static bool gives(const char *id, const char *want)
{
    thole_instance_status status;
    const char *const got = stack_outcome(client, id, STORY_MS, &status);
    if (strcmp(got, want) != 0)
        fprintf(stderr, "\n  %s gave \"%s\", not \"%s\"\n", id, got, want);
    return strcmp(got, want) == 0;
}

static bool runs(const char *name, const char *orchestration, const char *input)
{
    const char *const id = id_of(name);
    return starts(id, orchestration, input) && gives(id, input);
}

static bool story_plain(void)
{
    return runs("plain", "plain", "x");
}

static bool story_long(void)
{
    return runs("long", "plain", "long");
}

static bool story_child(void)
{
    return runs("parent", "parent", "x");
}

static char asked_id[64];

static bool eventually(bool (*is)(void))
{
    for (uint64_t const end = clock_monotonic_ms() + STORY_MS; clock_monotonic_ms() < end; pause_ms(20))
        if (is())
            return true;
    return false;
}

/* The last message of a subject: its sequence; 0: there is none; UINT64_MAX: not known. */
static uint64_t last_of(const char *stream, const char *subject)
{
    struct buf body;
    uint64_t sequence = 0;
    buf_init(&body, 1024 * 1024);
    thole_status const status = stream_last_by_subject(hand, stream, subject, &sequence, &body, &stack.err);
    buf_release(&body);
    return status == THOLE_OK ? sequence : UINT64_MAX;
}

static bool no_junk(void)
{
    return last_of("THOLE_default_HIST_0", "thole.default.hist.0.junk.1") == 0;
}

/* A rival writes into the log: the next append is refused, the partition opens again, removes records that do
 * not count, and goes on. */
static bool story_reopen(void)
{
    for (int i = 0; i < 4; i++)
        must(connection_publish(hand, "thole.default.hist.0.junk.1", NULL, 0, THOLE_STR("junk"), &stack.err),
             &stack.err);
    must(connection_flush(hand, &stack.err), &stack.err);
    return story_plain() && eventually(no_junk);
}

/* The answer that no instance has this name is an answer, too. */
static bool answers_queries(void)
{
    thole_slice answer;
    thole_status const status = thole_client_query(client, thole_slice_from(asked_id), THOLE_STR("how"),
                                                   THOLE_STR(""), &answer, &stack.err);
    return status == THOLE_NOT_FOUND;
}

/* The partition is open, and does not open again meanwhile. */
static bool story_query(void)
{
    snprintf(asked_id, sizeof asked_id, "%s", id_of("asked"));
    return story_reopen() && starts(asked_id, "waits", "") && eventually(answers_queries);
}

/* The rows are of another time: they are made again. */
static bool story_rebuild(void)
{
    (void)stack_sql(&stack, "UPDATE thole_default.partitions SET projected_seq = projected_seq + 1000000");
    return story_reopen();
}

static char waiting_id[64];
static unsigned waiting_execution;

/* The instance has no activity left, and the rows agree with the committed records. */
static bool is_waiting(void)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM thole_default.instances i WHERE instance = '%s' AND execution = %u AND "
             "NOT EXISTS "
             "(SELECT 1 FROM thole_default.worker_queue q WHERE q.instance = i.instance)",
             waiting_id, waiting_execution);
    return stack_sql(&stack, sql)[0] == '1';
}

static bool comes_to_wait(const char *id, unsigned execution)
{
    snprintf(waiting_id, sizeof waiting_id, "%s", id);
    waiting_execution = execution;
    return eventually(is_waiting);
}

/* One is kept in memory, the other has to be loaded. */
static bool go_on(const char *orchestration, unsigned execution)
{
    const char *const ids[] = {id_of("first"), id_of("second")};
    bool ok = true;
    for (size_t i = 0; i < 2 && ok; i++) {
        ok = starts(ids[i], orchestration, "") && comes_to_wait(ids[i], execution);
        pause_ms(300); /* the turn after its last activity; then the one before it may go */
    }
    for (size_t i = 0; i < 2 && ok; i++)
        ok = thole_client_signal(client, thole_slice_from(ids[i]), THOLE_STR("go"), THOLE_STR("went"),
                                 THOLE_STR(""), NULL, &stack.err) == THOLE_OK &&
             gives(ids[i], "went");
    return ok;
}

static bool story_load(void)
{
    return go_on("waits", 1);
}

static bool story_second(void)
{
    return go_on("again", 2);
}

static char deleted_id[64];

static bool history_is_gone(void)
{
    char subject[128];
    snprintf(subject, sizeof subject, "thole.default.hist.0.%s.1", deleted_id);
    return last_of("THOLE_default_HIST_0", subject) == 0;
}

static bool story_delete(void)
{
    snprintf(deleted_id, sizeof deleted_id, "%s", id_of("deleted"));
    if (!starts(deleted_id, "steps", "x") || !gives(deleted_id, "x"))
        return false;
    thole_status status;
    do
        status = thole_client_delete(client, thole_slice_from(deleted_id), NULL, NULL, &stack.err);
    while (status == THOLE_UNAVAILABLE);
    return (status == THOLE_OK || status == THOLE_NOT_FOUND) && eventually(history_is_gone) && story_plain();
}

static char stranded_id[64];

static uint64_t stranded(void)
{
    char subject[128];
    snprintf(subject, sizeof subject, "thole.default.work.nobody.%s.>", stranded_id);
    return last_of("THOLE_default_WORK", subject);
}

static bool work_is_there(void)
{
    return stranded() != 0 && stranded() != UINT64_MAX;
}

/* Messages that a fault has left there: the row is gone, and no worker comes for it. */
static void remove_stranded(void)
{
    uint64_t const sequence = stranded();
    if (sequence != 0 && sequence != UINT64_MAX)
        must(stream_delete(hand, "THOLE_default_WORK", sequence, &stack.err), &stack.err);
}

/* Schedules what no worker takes. */
static const char *strand(const char *name)
{
    const char *const id = id_of(name);
    snprintf(stranded_id, sizeof stranded_id, "%s", id);
    return starts(id, "strands", "x") && eventually(work_is_there) ? id : NULL;
}

static const char *told_one;

static bool is_told(void)
{
    return strstr(stack_history(client, told_one), "EventReceived") != NULL;
}

/* The message gets lost; the sweep puts it back. When the instance has recorded an event since, its input is
 * not in the newest record. */
static bool orphan(bool told)
{
    const char *const id = strand("orphan");
    if (id == NULL)
        return false;
    told_one = id;
    if (told)
        must(thole_client_signal(client, thole_slice_from(id), THOLE_STR("noted"), THOLE_STR("x"),
                                 (thole_slice){NULL, 0}, NULL, &stack.err),
             &stack.err);
    if (told && !eventually(is_told))
        return false;
    remove_stranded();
    bool const ok = eventually(work_is_there);
    must(thole_client_terminate(client, thole_slice_from(id), THOLE_STR("done"), &stack.err), &stack.err);
    remove_stranded();
    return ok;
}

static bool story_orphan(void)
{
    return orphan(false);
}

static bool story_old_orphan(void)
{
    return orphan(true);
}

/* Claimed by a worker that is never heard of again; the try's time passes. */
static bool story_expire(void)
{
    const char *const id = strand("strands");
    char sql[256];
    if (id == NULL)
        return false;
    snprintf(sql, sizeof sql,
             "UPDATE thole_default.worker_queue SET worker = 'gone', claimed_at = now(), attempt = 1, "
             "deadline_at = now() + interval '300 ms' WHERE instance = '%s' RETURNING 1",
             id);
    bool const ok = stack_sql(&stack, sql)[0] == '1' && gives(id, "timed out");
    remove_stranded();
    return ok;
}

static bool later_is_ready(void)
{
    pthread_mutex_lock(&later_lock);
    bool const ready = later_token[0] != '\0';
    pthread_mutex_unlock(&later_lock);
    return ready;
}

static bool story_later(void)
{
    const char *const id = id_of("later");
    later_token[0] = '\0';
    if (!starts(id, "plain", "later") || !eventually(later_is_ready))
        return false;
    pause_ms(LEASE_MS); /* no lease is needed for it */
    must(thole_client_complete(client, thole_slice_from(later_token), THOLE_STR("done"), &stack.err),
         &stack.err);
    return gives(id, "done");
}

static bool story_cancel(void)
{
    thole_instance_status status;
    const char *const id = id_of("cancel");
    if (!starts(id, "plain", "hang"))
        return false;
    pause_ms(300);
    must(thole_client_cancel(client, thole_slice_from(id), THOLE_STR("enough"), &stack.err), &stack.err);
    (void)stack_outcome(client, id, STORY_MS, &status);
    return status == THOLE_INSTANCE_CANCELLED && story_plain();
}

/* An activity that is scheduled and cancelled before a worker has it. */
static bool story_withdraw(void)
{
    const char *const id = strand("withdraw");
    if (id == NULL)
        return false;
    must(thole_client_terminate(client, thole_slice_from(id), THOLE_STR("done"), &stack.err), &stack.err);
    bool const ok = story_plain();
    remove_stranded();
    return ok;
}

/* A user removes the queue's consumer. */
static bool story_queue(void)
{
    struct buf answer;
    buf_init(&answer, 64 * 1024);
    thole_status const status = connection_request(
        hand, "$JS.API.CONSUMER.DELETE.THOLE_default_WORK.q_default", (thole_slice){0}, &answer, &stack.err);
    buf_release(&answer);
    return status == THOLE_OK && story_plain();
}

static bool story_idle(void)
{
    return story_plain();
}

/* ---- the table ---- */

static const struct row {
    const char *site;
    bool (*story)(void);
    const char *says; /* NULL: nothing */
    bool once;        /* only a hint: it need not be tried again */
    bool done;        /* a call that was done and not answered is seen to be done: it is not tried again */
} rows[] = {
    /* opening a partition */
    {"stream_bounds", story_reopen, "partition=0 closed: fault"},
    {"stream bounds moving", story_reopen,
     "partition=0 closed: a rival wrote to the history while its tail was read"},
    {"last_by_subject epoch", story_reopen, "partition=0 closed: fault"},
    {"stream_subjects", story_reopen, NULL, .once = true},
    {"stream_read log", story_reopen, "partition=0 closed: fault"},
    {"stream_delete_all", story_reopen, "partition=0 closed: fault", .done = true},
    {"send removal", story_reopen, "partition=0 closed: "},
    {"store_open", story_reopen, "partition=0 closed: "},
    {"store_sign", story_reopen, "partition=0 closed: ", .done = true},
    {"store_live", story_reopen, "partition=0 closed: "},
    {"store_timers", story_reopen, "partition=0 closed: "},
    {"store_reset", story_rebuild, "partition=0 closed: ", .done = true},
    {"ordered_reader_open", story_reopen, "partition=0 closed: fault"},
    {"stream_still_holds", story_reopen, "partition=0 closed: fault"},
    {"subscribe queries", story_query, "partition=0 answers no queries, trying again in 1000 ms: fault"},
    /* turns */
    {"publish append", story_plain, "partition=0 closed: "},
    {"publish work", story_plain, "partition=0 "},
    {"publish message", story_child, NULL},
    {"send look", story_load, "partition=0 closed: "}, /* or that the connection was lost */
    {"get record", story_load, NULL, .once = true},    /* a consumer reads it then */
    {"stream_read history", story_second, "partition=0 closed: fault"},
    {"last_by_subject deletion", story_second, "partition=0 closed: fault"},
    {"store_apply", story_plain, "partition=0 closed: "},
    {"cancel_notice_publish", story_cancel, NULL, .once = true},
    {"event_notice_publish", story_plain, NULL, .once = true},
    {"send withdrawal", story_withdraw, NULL, .once = true},
    {"stream_next", story_idle, NULL},
    {"stream_purge_below", story_idle, NULL},
    /* deletion */
    {"get record", story_delete, NULL}, /* or the subject is read instead */
    {"send removal", story_delete, "records cannot be removed yet", .done = true},
    /* the sweeper */
    {"store_orphans", story_orphan, "fault: "},
    {"stream_bounds", story_old_orphan, NULL},
    {"stream_read history", story_old_orphan, NULL},
    {"publish work", story_orphan, NULL},
    {"store_next_deadline", story_expire, "fault: "},
    {"store_expire_begin", story_expire, "fault: "},
    {"publish message", story_expire, "timeouts could not be stored, they are tried again", .done = true},
    /* the timeout is stored by then: its turn takes the row away */
    {"store_expire_commit", story_expire, "fault: ", .once = true},
    /* membership */
    {"nodes_put", story_idle, NULL},
    /* the worker */
    {"worker_claim", story_plain, "claims and renewals: fault"},
    {"worker_renew", story_long, "claims and renewals: fault"},
    {"worker_begin", story_plain, "completions: fault"},
    {"worker_commit", story_plain, "completions: fault"},
    {"publish result", story_plain, NULL},
    {"worker_leave", story_later, "fault"},
    {"topology_ensure_queue", story_queue, NULL, .done = true},
};

static const char *awaited_line;

static bool is_said(void)
{
    return fault_logged(awaited_line);
}

/* The fault counts when the call is made: what is logged of it comes when the call has returned, and by
 * another thread. */
static bool check_row(const struct row *row, enum fault fault)
{
    round_number++;
    fault_arm(row->site, fault);
    bool well = row->story();
    bool const hit = eventually(fault_was_hit);
    if (!row->once && !fault_passed_again()) { /* comes with the next one */
        round_number++;
        well = story_plain() && well;
    }
    bool const busy = fault == FAULT_UNFIT && strncmp(row->site, "publish ", 8) == 0; /* no word: again */
    bool const again = row->once || (row->done && fault == FAULT_TIMEOUT) || eventually(fault_passed_again);
    awaited_line = row->says;
    bool const said = row->says == NULL || busy || eventually(is_said);
    if (well && hit && again && said)
        return true;
    fprintf(stderr, "\n  %s, %s:%s%s%s%s; the log:\n", row->site, fault_names[fault],
            well ? "" : " the story went wrong", hit ? "" : " never called", again ? "" : " not tried again",
            said ? "" : " not said");
    fault_print_log();
    return false;
}

static const char *chosen = "";

static void test_each_job(void)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strncmp(rows[i].site, chosen, strlen(chosen)) != 0)
            continue;
        for (int fault = 0; fault < FAULTS; fault++, n++)
            CU_ASSERT_TRUE(check_row(&rows[i], (enum fault)fault));
    }
    fault_arm(NULL, FAULT_ERROR);
    CU_ASSERT_TRUE(story_plain());
    fprintf(stderr, "\n  %zu faults at %zu jobs\n", n, ARRAY_LEN(rows));
}

/* Another engine opens the partition while nothing is going on: its owner hears of it, and does not have to
 * find it out with its next append. */
static void test_a_rival_is_heard_of(void)
{
    enum { REST_MS = 700, SOON_MS = 2000, EPOCH = 1000 };
    struct engine_script rival;
    if (chosen[0] != '\0' && strcmp(chosen, "rival") != 0)
        return;
    CU_ASSERT_TRUE(story_plain());
    must(engine_script_open(&rival, stack.nats.url, "default", &stack.err), &stack.err);
    pause_ms(REST_MS);
    fault_arm(NULL, FAULT_ERROR);
    CU_ASSERT_TRUE(engine_script_epoch(&rival, EPOCH));
    bool heard = false;
    for (uint64_t const end = clock_monotonic_ms() + SOON_MS; !heard && clock_monotonic_ms() < end;
         pause_ms(10))
        heard = fault_logged("partition=0 closed: ");
    CU_ASSERT_TRUE(heard);
    engine_script_close(&rival);
    CU_ASSERT_TRUE(story_plain());
}

static const struct thole_test tests[] = {{"a rival is heard of", test_a_rival_is_heard_of},
                                          {"each job", test_each_job}};

/* An argument: only sites that begin so. */
int main(int argc, char **argv)
{
    skip_without_nats();
    skip_without_postgres();
    chosen = argc > 1 ? argv[1] : "";
    stack_start(&stack);
    fault_exempt_me();
    open_all();
    int const result = thole_run_suite("faults", tests, ARRAY_LEN(tests));
    close_all();
    stack_stop(&stack);
    return result;
}
