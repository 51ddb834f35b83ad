#include "seed_stage.h"
#include "reader.h"
#include "subject.h"
#include <fcntl.h>
#include <libpq-fe.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEP_MS = 5 };

struct seed_stage seed;
static PGconn *eyes;

int seed_run(const char *suite, const struct thole_test *tests, size_t n, void (*begin)(void))
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&seed.stack);
    log_configure(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT, "test");
    struct connection_options const options = {
        .url = seed.stack.nats.url, .name = "seeds", .connect_timeout_ms = 5000, .request_timeout_ms = 5000};
    if (connection_open(&options, &seed.connection, &seed.err) != THOLE_OK)
        return 1;
    eyes = PQconnectdb(seed.stack.postgres.url);
    setenv("SEEDS_DIR", seed.stack.dir, 1);
    if (begin != NULL)
        begin();
    seed.engine = seed_program("engine", "engine");
    seed.client = stack_client(&seed.stack);
    int const failed = thole_run_suite(suite, tests, n);
    thole_client_close(seed.client);
    connection_close(seed.connection);
    PQfinish(eyes);
    stack_stop(&seed.stack);
    return failed;
}

struct stack_program *seed_program(const char *name, const char *role)
{
    return stack_program_of(&seed.stack, "program_seeds", name, role);
}

void seed_touch(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", seed.stack.dir, name);
    int const fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    CU_ASSERT_TRUE(fd >= 0);
    close(fd);
}

/* ---- requests of clients ---- */

void seed_start(const char *id, const char *orchestration, const char *queue)
{
    CHECK_OK(thole_client_start(seed.client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(queue), NULL, &seed.err),
             &seed.err);
}

void seed_signal(const char *id, const char *event, const char *data)
{
    CHECK_OK(thole_client_signal(seed.client, thole_slice_from(id), thole_slice_from(event),
                                 thole_slice_from(data), THOLE_STR(""), NULL, &seed.err),
             &seed.err);
}

void seed_cancel(const char *id, const char *reason)
{
    thole_status const status =
        thole_client_cancel(seed.client, thole_slice_from(id), thole_slice_from(reason), &seed.err);
    CU_ASSERT_TRUE(status == THOLE_OK || status == THOLE_CONFLICT); /* has ended: a race of the test's */
}

void seed_terminate(const char *id, const char *reason)
{
    CHECK_OK(thole_client_terminate(seed.client, thole_slice_from(id), thole_slice_from(reason), &seed.err),
             &seed.err);
}

thole_instance_status seed_end(const char *id, char output[SEED_TEXT_BYTES])
{
    thole_instance_status status;
    snprintf(output, SEED_TEXT_BYTES, "%s", stack_outcome(seed.client, id, ACTOR_WAIT_MS, &status));
    return status;
}

void seed_check_outcome(const char *id, const char *want)
{
    char got[SEED_TEXT_BYTES];
    (void)seed_end(id, got);
    CHECK_STR(id, got, want);
}

void seed_check_attempt(const char *id, unsigned least)
{
    char got[SEED_TEXT_BYTES];
    (void)seed_end(id, got);
    bool const good = strncmp(got, "attempt ", 8) == 0 && strtoul(got + 8, NULL, 10) >= least;
    CU_ASSERT_TRUE(good);
    if (!good)
        fprintf(stderr, "\n  [%s]\n    got  %s\n    want attempt %u or later\n", id, got, least);
}

/* ---- histories ---- */

struct wanted_event {
    const char *kind, *cause;
    size_t found;
};

static thole_status count_event(void *arg, const thole_history_event *event)
{
    struct wanted_event *const wanted = arg;
    wanted->found +=
        strcmp(event->kind, wanted->kind) == 0 &&
        (wanted->cause == NULL || (event->cause != NULL && strcmp(event->cause, wanted->cause) == 0));
    return THOLE_OK;
}

size_t seed_events(const char *id, const char *kind, const char *cause)
{
    struct wanted_event wanted = {.kind = kind, .cause = cause};
    CHECK_OK(thole_client_history(seed.client, thole_slice_from(id), count_event, &wanted, &seed.err),
             &seed.err);
    return wanted.found;
}

static thole_status count_result(void *arg, const thole_history_event *event)
{
    *(size_t *)arg += strncmp(event->kind, "Activity", 8) == 0 && event->ref != 0;
    return THOLE_OK;
}

void seed_check_one_result(const char *id)
{
    size_t results = 0;
    CHECK_OK(thole_client_history(seed.client, thole_slice_from(id), count_result, &results, &seed.err),
             &seed.err);
    CU_ASSERT_EQUAL(results, 1);
    if (results != 1)
        fprintf(stderr, "\n  [%s] %zu results\n", id, results);
}

/* ---- queues and rows ---- */

uint64_t seed_message(const char *queue, const char *id, uint64_t activity_id)
{
    char subject[256];
    uint64_t sequence = 0;
    snprintf(subject, sizeof subject, "thole.default.work.%s.%s.1.%llu.1", queue, id,
             (unsigned long long)activity_id);
    CHECK_OK(
        stream_last_by_subject(seed.connection, "THOLE_default_WORK", subject, &sequence, NULL, &seed.err),
        &seed.err);
    return sequence;
}

bool seed_is_queued(const char *queue, const char *id, uint64_t activity_id)
{
    return seed_message(queue, id, activity_id) != 0;
}

bool seed_wait_queued(const char *queue, const char *id, uint64_t activity_id, bool there)
{
    for (int i = 0; i < ACTOR_WAIT_MS / STEP_MS; i++) {
        if (seed_is_queued(queue, id, activity_id) == there)
            return true;
        pause_ms(STEP_MS);
    }
    return false;
}

bool seed_drained(void)
{
    struct stream_bounds bounds = {.messages = 1};
    for (int i = 0; i < ACTOR_WAIT_MS / STEP_MS && bounds.messages > 0; i++) {
        CHECK_OK(stream_bounds(seed.connection, "THOLE_default_WORK", &bounds, &seed.err), &seed.err);
        if (bounds.messages > 0)
            pause_ms(STEP_MS);
    }
    return bounds.messages == 0;
}

uint64_t seed_inbox_last(const char *id)
{
    char stream[64];
    struct stream_bounds bounds = {0};
    snprintf(stream, sizeof stream, "THOLE_default_IN_%u",
             subject_partition(thole_slice_from(id), SEED_PARTITIONS));
    CHECK_OK(stream_bounds(seed.connection, stream, &bounds, &seed.err), &seed.err);
    return bounds.last;
}

static const char *query(const char *statement)
{
    static char value[SEED_TEXT_BYTES];
    PGresult *result = PQexec(eyes, statement);
    if (PQstatus(eyes) != CONNECTION_OK) { /* the server was restarted since */
        PQclear(result);
        PQreset(eyes);
        result = PQexec(eyes, statement);
    }
    bool const good = PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK;
    CU_ASSERT_TRUE(good);
    if (!good)
        fprintf(stderr, "\n  %s\n  %s\n", statement, PQerrorMessage(eyes));
    snprintf(value, sizeof value, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    return value;
}

const char *seed_sql(const char *fmt, ...)
{
    char statement[2048];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(statement, sizeof statement, fmt, args);
    va_end(args);
    return query(statement);
}

bool seed_wait_sql(const char *want, const char *fmt, ...)
{
    char statement[2048];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(statement, sizeof statement, fmt, args);
    va_end(args);
    for (int i = 0; i < ACTOR_WAIT_MS / STEP_MS; i++) {
        if (strcmp(query(statement), want) == 0)
            return true;
        pause_ms(STEP_MS);
    }
    fprintf(stderr, "\n  %s\n    got  %s\n    want %s\n", statement, query(statement), want);
    return false;
}

bool seed_wait_rows(const char *id, unsigned n)
{
    char want[16];
    snprintf(want, sizeof want, "%u", n);
    return seed_wait_sql(want, "SELECT count(*) FROM thole_default.worker_queue WHERE instance = '%s'", id);
}

void seed_rows_age(const char *id, uint64_t ms)
{
    (void)seed_sql(
        "UPDATE thole_default.worker_queue SET created_at = created_at - b.y, claimed_at = claimed_at - b.y,"
        " renewed_at = renewed_at - b.y, deadline_at = deadline_at - b.y, lease_until = lease_until - b.y"
        " FROM (SELECT interval '%llu ms' AS y) AS b WHERE instance = '%s'",
        (unsigned long long)ms, id);
}
