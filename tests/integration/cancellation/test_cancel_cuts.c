/*
 * The engine is killed after each step of a cancellation: the event is in the stream; the row is gone;
 * workers were told; the message is withdrawn. Every trigger at once, and each time the activity ends and its
 * instance goes on. What holds the engine at a step is real: a lock on the table, SIGSTOP, and what others
 * can see of it.
 */
#include "cancels.h"
#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CUTS_MAX = 5, WINDOW_TOLD_MS = 10000 };

static struct stack_program *engine;
static PGconn *locker;
static const char *round_name;
static struct {
    pthread_t thread;
    char id[64];
    thole_status status;
    thole_error err;
} deletion; /* of the round */

/* ---- triggers ---- */

static void pull_cancel(const char *id)
{
    cancels_cancel(id, "not needed");
}

static void pull_terminate(const char *id)
{
    cancels_terminate(id, "at once");
}

static void pull_go(const char *id)
{
    cancels_signal(id, "go");
}

static void pause_then_cancel(const char *id)
{
    CHECK_OK(thole_client_pause(client, thole_slice_from(id), THOLE_STR("wait"), &stack.err), &stack.err);
    cancels_cancel(id, "not needed");
}

static void *delete_it(void *arg)
{
    thole_delete_options const options = {
        .size = sizeof options, .force = true, .reason = THOLE_STR("erased")};
    (void)arg;
    deletion.status =
        thole_client_delete(client, thole_slice_from(deletion.id), &options, NULL, &deletion.err);
    return NULL;
}

/* The deletion waits for an engine, and the engine dies. */
static void pull_delete(const char *id)
{
    snprintf(deletion.id, sizeof deletion.id, "%s", id);
    CU_ASSERT_EQUAL(pthread_create(&deletion.thread, NULL, delete_it, NULL), 0);
}

static const struct trigger {
    const char *name, *orchestration;
    void (*pull)(const char *id);
    const char *kid; /* whose activity it is: "-kid" of the instance's child */
    const char *cause, *kind;
    bool goes_on;                 /* until an event "end" comes */
    thole_instance_status status; /* UNKNOWN: it is deleted */
    const char *output;
    bool runs; /* reaches running ones only */
} triggers[] = {
    {"cancel", "completes", pull_cancel, "", "requested", "ActivityCancelled", false,
     THOLE_INSTANCE_CANCELLED, "not needed"},
    {"complete", "completes", pull_go, "", "ended", "ActivityCancelled", false, THOLE_INSTANCE_COMPLETED,
     "completed"},
    {"fail", "fails", pull_go, "", "ended", "ActivityCancelled", false, THOLE_INSTANCE_FAILED, "broken"},
    {"continue", "goes_on", pull_go, "", "ended", "ActivityCancelled", true, THOLE_INSTANCE_COMPLETED,
     "second"},
    {"terminate", "completes", pull_terminate, "", "terminated", "ActivityCancelled", false,
     THOLE_INSTANCE_TERMINATED, "at once"},
    {"loser", "races", pull_go, "", "select_loser", "ActivityCancelled", true, THOLE_INSTANCE_COMPLETED,
     "it was too slow"},
    {"handle", "drops", pull_go, "", "explicit", "ActivityCancelled", true, THOLE_INSTANCE_COMPLETED,
     "without it"},
    {"total", "total", NULL, "", NULL, "ActivityFailed", true, THOLE_INSTANCE_COMPLETED, "TIMEOUT"},
    {"parent", "mother", pull_cancel, "-kid", "requested", "ActivityCancelled", false,
     THOLE_INSTANCE_CANCELLED, "not needed"},
    {"paused", "completes", pause_then_cancel, "", "requested", "ActivityCancelled", false,
     THOLE_INSTANCE_CANCELLED, "not needed"},
    {"try", "tries", NULL, "", NULL, "ActivityTryFailed", false, THOLE_INSTANCE_COMPLETED,
     "TIMEOUT timeout after 2 tries", .runs = true},
    {"delete", "completes", pull_delete, "", "terminated", NULL, false, THOLE_INSTANCE_UNKNOWN, ""},
};

static const char *id_of(const struct trigger *t)
{
    static char id[64];
    snprintf(id, sizeof id, "%s-%s", round_name, t->name);
    return id;
}

static const char *activity_of(const struct trigger *t)
{
    static char id[80];
    snprintf(id, sizeof id, "%s%s", id_of(t), t->kid);
    return id;
}

/* ---- steps ---- */

static void command(const char *statement)
{
    PGresult *const result = PQexec(locker, statement);
    CU_ASSERT_EQUAL(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
}

static void lock_rows(void)
{
    command("BEGIN");
    command("LOCK TABLE thole_default.worker_queue IN SHARE ROW EXCLUSIVE MODE"); /* readers see the present
                                                                                 rows */
}

static void unlock_rows(void)
{
    command("COMMIT");
}

static void next_engine(void)
{
    stack_kill9(engine);
    engine = cancels_engine("engine");
}

static thole_status skip_event(void *arg, const thole_history_event *event)
{
    (void)arg, (void)event;
    return THOLE_OK;
}

static bool is_deleted(const char *id)
{
    return thole_client_history(client, thole_slice_from(id), skip_event, NULL, &stack.err) ==
           THOLE_NOT_FOUND;
}

static bool is_recorded(const struct trigger *t)
{
    return t->kind == NULL ? is_deleted(id_of(t)) : cancels_events(activity_of(t), t->kind, NULL, NULL) > 0;
}

/* On a busy machine all its time is over before a worker has it. */
static bool never_began(const struct trigger *t)
{
    return t->pull == NULL && cancels_noted(activity_of(t), "begins") == 0 && is_recorded(t);
}

static void until_begun(const struct trigger *t)
{
    uint64_t const end_ms = clock_monotonic_ms() + CANCELS_WAIT_MS;
    while (!never_began(t) && cancels_noted(activity_of(t), "begins") == 0 && clock_monotonic_ms() < end_ms)
        pause_ms(5);
    CU_ASSERT_TRUE(clock_monotonic_ms() < end_ms);
}

static void start_all(const char *name, const char *queue, bool run)
{
    round_name = name;
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++)
        if (run || !triggers[i].runs)
            cancels_start(id_of(&triggers[i]), triggers[i].orchestration, queue, "hold", 1);
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++)
        if (run)
            until_begun(&triggers[i]);
}

static void pull_all(void)
{
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++)
        if (triggers[i].pull != NULL)
            triggers[i].pull(id_of(&triggers[i]));
}

/* The test says when. Not so a timer; and a child is asked when the rows of its parent's turn are changed. */
static bool is_direct(const struct trigger *t)
{
    return t->pull != NULL && t->kid[0] == '\0';
}

static void until_recorded(const struct trigger *t)
{
    uint64_t const end_ms = clock_monotonic_ms() + CANCELS_WAIT_MS;
    while (!is_recorded(t) && clock_monotonic_ms() < end_ms)
        pause_ms(5);
    CU_ASSERT_TRUE(is_recorded(t));
}

/* While rows are held a partition that closes on a busy machine does not open again: its triggers are cut
 * earlier then. One at least is not. */
static void until_direct_recorded(void)
{
    enum { WAIT_MS = 3000, DIRECT = 9 };
    size_t recorded = 0;
    uint64_t const end_ms = clock_monotonic_ms() + WAIT_MS;
    while (recorded < DIRECT && (recorded == 0 || clock_monotonic_ms() < end_ms)) {
        recorded = 0;
        for (size_t i = 0; i < ARRAY_LEN(triggers); i++)
            recorded += is_direct(&triggers[i]) && is_recorded(&triggers[i]);
        pause_ms(5);
    }
}

static size_t direct_told(void)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++)
        n += is_direct(&triggers[i]) && cancels_noted(activity_of(&triggers[i]), "fired") > 0;
    return n;
}

/* Tokens do not wait for Postgres. */
static void until_some_are_told(void)
{
    uint64_t const end_ms = clock_monotonic_ms() + CANCELS_WAIT_MS;
    while (direct_told() == 0 && clock_monotonic_ms() < end_ms)
        pause_ms(5);
    CU_ASSERT_TRUE(direct_told() > 0);
}

static void end_one(const struct trigger *t)
{
    if (t->goes_on)
        cancels_signal(id_of(t), "end");
    cancels_outcome(id_of(t), t->status, t->output);
    cancels_until_gone(activity_of(t));
    CU_ASSERT_TRUE(cancels_events(activity_of(t), t->kind, t->cause, NULL) > 0);
}

static thole_status skip_row(void *arg, const thole_instance_info *info)
{
    (void)arg, (void)info;
    return THOLE_OK;
}

/* Nothing of it is left, and its id has another life. */
static void end_deleted(const struct trigger *t, bool ran)
{
    const char *const id = id_of(t);
    uint64_t const end_ms = clock_monotonic_ms() + CANCELS_WAIT_MS;
    (void)pthread_join(deletion.thread, NULL);
    CHECK_OK(deletion.status, &deletion.err);
    CU_ASSERT_EQUAL(cancels_noted(id, "fired terminated (erased)"), ran);
    until_recorded(t);
    cancels_until_gone(id);
    while (thole_client_show(client, thole_slice_from(id), skip_row, NULL, &stack.err) != THOLE_NOT_FOUND &&
           clock_monotonic_ms() < end_ms)
        pause_ms(5);
    CU_ASSERT_TRUE(clock_monotonic_ms() < end_ms);
    cancels_start(id, "completes", "default", "hold", 0);
    cancels_signal(id, "go");
    cancels_outcome(id, THOLE_INSTANCE_COMPLETED, "completed");
}

static void end_all(bool ran)
{
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++)
        if (triggers[i].status == THOLE_INSTANCE_UNKNOWN)
            end_deleted(&triggers[i], ran);
        else if (ran || !triggers[i].runs)
            end_one(&triggers[i]);
}

/* Each token fired once, and the workflow went on. */
static void check_all_ended(void)
{
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++) {
        if (never_began(&triggers[i]))
            continue;
        cancels_until(activity_of(&triggers[i]), "fired", 1);
        cancels_until(activity_of(&triggers[i]), "returns", 1);
    }
    end_all(true);
}

/* The rows are held: the event is in the stream, and workers are told early. */
static void test_cut_when_the_event_is_in_the_stream(void)
{
    start_all("event", "default", true);
    lock_rows();
    pull_all();
    until_direct_recorded();
    until_some_are_told();
    stack_kill9(engine);
    unlock_rows();
    engine = cancels_engine("engine");
    check_all_ended();
}

static size_t direct_rows(void)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++)
        if (is_direct(&triggers[i]))
            n += cancels_rows(id_of(&triggers[i]));
    return n;
}

/* The engine stands still while statements of its are on their way; Postgres carries them out, with their
 * COMMIT. */
static void test_cut_when_the_rows_are_gone(void)
{
    start_all("row", "default", true);
    lock_rows();
    pull_all();
    until_direct_recorded();
    size_t const rows = direct_rows();
    uint64_t const end_ms = clock_monotonic_ms() + CANCELS_WAIT_MS;
    while (cancels_sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                       " AND application_name LIKE 'thole-engine%%'") == 0 &&
           clock_monotonic_ms() < end_ms)
        pause_ms(2);
    CU_ASSERT_TRUE(stack_freeze(engine));
    unlock_rows();
    while (direct_rows() == rows && clock_monotonic_ms() < end_ms)
        pause_ms(2);
    CU_ASSERT_TRUE(direct_rows() < rows);
    next_engine();
    check_all_ended();
}

/* ---- pushes ---- */

static atomic_uint pushes;

static void on_push(void *arg, const struct delivery *delivery)
{
    (void)arg, (void)delivery;
    if (atomic_fetch_add(&pushes, 1) == 0)
        kill(engine->pid, SIGKILL); /* at the first of them: nobody knows what else was done */
}

static void test_cut_when_a_push_is_seen(void)
{
    struct subscription *subscription = NULL;
    atomic_store(&pushes, 0);
    start_all("push", "default", true);
    CHECK_OK(
        connection_subscribe(connection, "thole.default.cancel.>", on_push, NULL, &subscription, &stack.err),
        &stack.err);
    pull_all();
    for (int i = 0; i < CANCELS_WAIT_MS && atomic_load(&pushes) == 0; i++)
        pause_ms(1);
    CU_ASSERT_TRUE(atomic_load(&pushes) > 0);
    subscription_close(subscription);
    next_engine();
    check_all_ended();
}

/* Nobody has taken them: they leave the queue, wherever the engine was killed, and a worker that comes later
 * runs none of them. */
static void test_cut_while_messages_are_withdrawn(void)
{
    struct subscription *subscription = NULL;
    atomic_store(&pushes, 0);
    start_all("queued", "later", false);
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++) {
        for (int k = 0; k < 2000 && !triggers[i].runs && !cancels_queued(activity_of(&triggers[i])); k++)
            pause_ms(5);
    }
    CHECK_OK(
        connection_subscribe(connection, "thole.default.cancel.>", on_push, NULL, &subscription, &stack.err),
        &stack.err);
    pull_all();
    for (int i = 0; i < CANCELS_WAIT_MS && atomic_load(&pushes) == 0; i++)
        pause_ms(1);
    subscription_close(subscription);
    next_engine();
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++)
        if (!triggers[i].runs)
            until_recorded(&triggers[i]);
    while (cancels_sql("SELECT count(*) FROM thole_default.worker_queue WHERE queue = 'later'") > 0)
        pause_ms(5);
    (void)stack_program_with(&stack, "program_cancels", "later", "worker", "--queue=later", "--lease=1h",
                             NULL);
    end_all(false);
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++) {
        char first[96]; /* execution: a next one's activity is on another queue */
        snprintf(first, sizeof first, "%s.1", activity_of(&triggers[i]));
        CU_ASSERT_EQUAL(cancels_noted(first, "begins"), 0);
    }
}

/* Statements sent to Postgres die with the engine: the rows stay. */
static void kill_with_its_statements(void)
{
    stack_kill9(engine);
    (void)cancels_sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                      " WHERE application_name LIKE 'thole-engine%%'");
    while (cancels_sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'thole-engine%%'") >
           0)
        pause_ms(2);
}

static bool begins_cancelled(const struct trigger *t)
{
    return is_direct(t) && t->kind != NULL && cancels_events(id_of(t), t->kind, NULL, NULL) > 0;
}

/*
 * Between the commit of the turn that cancels and the end of the row the engine dies, and a worker comes. The
 * row exists, so the worker begins an activity that is cancelled already. The next owner of the partition
 * tells it, and results until then change nothing.
 */
static void test_a_claim_between_the_commit_and_the_row(void)
{
    size_t begun = 0;
    /* engines make the consumer, so its queue has one before the engine goes */
    struct stack_program *const worker = stack_program_with(&stack, "program_cancels", "window", "worker",
                                                            "--queue=window", "--lease=1h", NULL);
    CU_ASSERT_TRUE(stack_logged(worker, "serves queue", worker->lives, 30000));
    stack_kill9(worker);
    start_all("window", "window", false);
    cancels_start("window-quick", "completes", "window", "echo", 1);
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++)
        for (int k = 0; k < 2000 && is_direct(&triggers[i]) && !cancels_queued(id_of(&triggers[i])); k++)
            pause_ms(5);
    lock_rows();
    pull_all();
    cancels_cancel("window-quick", "not needed");
    until_direct_recorded();
    cancels_until_events("window-quick", "ActivityCancelled", 1);
    kill_with_its_statements();
    unlock_rows();
    CU_ASSERT_EQUAL(cancels_rows("window-quick"), 1);
    (void)stack_program_with(&stack, "program_cancels", "window", "worker", "--queue=window", "--lease=1h",
                             NULL);
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++) {
        if (!begins_cancelled(&triggers[i]))
            continue;
        cancels_until(id_of(&triggers[i]), "begins", 1);
        begun++;
    }
    CU_ASSERT_TRUE(begun > 0);
    cancels_until("window-quick", "begins", 1);
    CU_ASSERT_EQUAL(direct_told(), 0);
    while (cancels_rows("window-quick") > 0) /* ends with a result, and that is stored */
        pause_ms(2);
    uint64_t const start_ms = clock_monotonic_ms();
    engine = cancels_engine("engine");
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++)
        if (begins_cancelled(&triggers[i]))
            cancels_until(id_of(&triggers[i]), "fired", 1);
    uint64_t const told_ms = clock_monotonic_ms() - start_ms;
    fprintf(stderr, "\n  %zu begun after their cancellation, told %llu ms after an engine was started\n",
            begun, (unsigned long long)told_ms);
    CU_ASSERT_TRUE(told_ms < WINDOW_TOLD_MS); /* the lease is an hour */
    cancels_outcome("window-quick", THOLE_INSTANCE_CANCELLED, "not needed");
    CU_ASSERT_EQUAL(cancels_events("window-quick", "ActivityCompleted", NULL, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++) {
        const struct trigger *const t = &triggers[i];
        if (t->status == THOLE_INSTANCE_UNKNOWN)
            end_deleted(t, cancels_noted(id_of(t), "begins") > 0);
        else if (!t->runs)
            end_one(t);
    }
}

static const struct thole_test tests[CUTS_MAX] = {
    {"cut when the event is in the stream", test_cut_when_the_event_is_in_the_stream},
    {"cut when the rows are gone", test_cut_when_the_rows_are_gone},
    {"cut when a push is seen", test_cut_when_a_push_is_seen},
    {"cut while messages are withdrawn", test_cut_while_messages_are_withdrawn},
    {"a claim between the commit and the row", test_a_claim_between_the_commit_and_the_row},
};

int main(void)
{
    cancels_open();
    engine = &stack.programs[0];
    locker = PQconnectdb(stack.postgres.url);
    (void)stack_program_with(&stack, "program_cancels", "worker", "worker", "--queue=default", "--lease=1h",
                             "--slots=32", NULL); /* pushes tell, not renewals */
    int const failed = thole_run_suite("cancel_cuts", tests, CUTS_MAX);
    PQfinish(locker);
    cancels_close();
    return failed;
}
