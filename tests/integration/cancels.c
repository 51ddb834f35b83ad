#include "cancels.h"
#include "reader.h"
#include "topology.h"
#include <fcntl.h>
#include <libpq-fe.h>
#include <stdarg.h>
#include <unistd.h>

struct stack stack;
thole_client *client;
struct connection *connection;
static char notes[160];

static void must(thole_status status, const char *what)
{
    if (status == THOLE_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, thole_status_name(status), stack.err.text);
    exit(1);
}

struct stack_program *cancels_engine(const char *name)
{
    return stack_program_with(&stack, "program_cancels", name, "engine", "--test-own-all", NULL);
}

void cancels_open(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    setenv("CANCELS_DIR", stack.dir, 1);
    setenv("THOLE_PROCESS_ENV", "CANCELS_DIR", 1);
    snprintf(notes, sizeof notes, "%s/notes", stack.dir);
    struct connection_options const options = {
        .url = stack.nats.url, .name = "test", .connect_timeout_ms = 5000, .request_timeout_ms = 5000};
    must(connection_open(&options, &connection, &stack.err), "connection");
    (void)cancels_engine("engine");
    client = stack_client(&stack);
}

void cancels_close(void)
{
    thole_client_close(client);
    connection_close(connection);
    stack_stop(&stack);
}

/* ---- instances ---- */

void cancels_start(const char *id, const char *orchestration, const char *queue, const char *activity,
                   unsigned n)
{
    char input[128];
    snprintf(input, sizeof input, "%s %s %u", queue, activity, n);
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(input), NULL, &stack.err),
             &stack.err);
}

void cancels_signal(const char *id, const char *event)
{
    CHECK_OK(thole_client_signal(client, thole_slice_from(id), thole_slice_from(event), (thole_slice){0},
                                 (thole_slice){0}, NULL, &stack.err),
             &stack.err);
}

void cancels_cancel(const char *id, const char *reason)
{
    CHECK_OK(thole_client_cancel(client, thole_slice_from(id), thole_slice_from(reason), &stack.err),
             &stack.err);
}

void cancels_terminate(const char *id, const char *reason)
{
    CHECK_OK(thole_client_terminate(client, thole_slice_from(id), thole_slice_from(reason), &stack.err),
             &stack.err);
}

static thole_status note_status(void *arg, const thole_instance_info *info)
{
    *(thole_instance_status *)arg = info->status;
    return THOLE_OK;
}

/* The projection lags the history for a moment. */
static void until_projected(const char *id, thole_instance_status status)
{
    thole_instance_status shown = THOLE_INSTANCE_UNKNOWN;
    uint64_t const end_ms = clock_monotonic_ms() + CANCELS_WAIT_MS;
    while (shown != status && clock_monotonic_ms() < end_ms) {
        if (thole_client_show(client, thole_slice_from(id), note_status, &shown, &stack.err) != THOLE_OK)
            shown = THOLE_INSTANCE_UNKNOWN;
        if (shown != status)
            pause_ms(2);
    }
    CHECK_STR(id, thole_instance_status_name(shown), thole_instance_status_name(status));
}

void cancels_outcome(const char *id, thole_instance_status status, const char *output)
{
    thole_instance_status got_status;
    const char *const got = stack_outcome(client, id, CANCELS_WAIT_MS, &got_status);
    CHECK_STR(id, thole_instance_status_name(got_status), thole_instance_status_name(status));
    CHECK_STR(id, got, output);
    until_projected(id, status);
}

void cancels_allow(const char *id)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", stack.dir, id);
    int const fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    CU_ASSERT_TRUE(fd >= 0);
    if (fd >= 0)
        close(fd);
}

/* ---- notes: "INSTANCE.EXECUTION.ID WHAT" ---- */

static bool line_fits(const char *line, const char *id, const char *what)
{
    size_t const len = id == NULL ? 0 : strlen(id);
    const char *const space = strchr(line, ' ');
    if (len > 0 && id[len - 1] == '*' && strncmp(line, id, len - 1) != 0)
        return false;
    if (len > 0 && id[len - 1] != '*' && (strncmp(line, id, len) != 0 || line[len] != '.'))
        return false;
    return space != NULL && strncmp(space + 1, what, strlen(what)) == 0;
}

size_t cancels_noted(const char *id, const char *what)
{
    char line[2048];
    size_t n = 0;
    FILE *const f = fopen(notes, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        n += line_fits(line, id, what);
    if (f != NULL)
        fclose(f);
    return n;
}

static void check_least(const char *id, const char *what, size_t got, size_t times)
{
    CU_ASSERT_TRUE(got >= times);
    if (got < times)
        fprintf(stderr, "  [%s: %s] %zu of %zu\n", id == NULL ? "all" : id, what, got, times);
}

void cancels_until(const char *id, const char *what, size_t times)
{
    uint64_t const end_ms = clock_monotonic_ms() + CANCELS_WAIT_MS;
    while (cancels_noted(id, what) < times && clock_monotonic_ms() < end_ms)
        pause_ms(2);
    check_least(id, what, cancels_noted(id, what), times);
}

/* ---- counts of events ---- */

struct tally {
    const char *kind, *cause;
    size_t n, turns;
    uint64_t execution, turn; /* of the last */
};

static thole_status count(void *arg, const thole_history_event *event)
{
    struct tally *const tally = arg;
    if (strcmp(event->kind, tally->kind) != 0 ||
        (tally->cause != NULL && (event->cause == NULL || strcmp(event->cause, tally->cause) != 0)))
        return THOLE_OK;
    tally->turns += tally->n == 0 || event->turn != tally->turn || event->execution != tally->execution;
    tally->n++;
    tally->turn = event->turn;
    tally->execution = event->execution;
    return THOLE_OK;
}

size_t cancels_events(const char *id, const char *kind, const char *cause, size_t *ret_turns)
{
    struct tally tally = {.kind = kind, .cause = cause};
    CHECK_OK(thole_client_history(client, thole_slice_from(id), count, &tally, &stack.err), &stack.err);
    if (ret_turns != NULL)
        *ret_turns = tally.turns;
    return tally.n;
}

void cancels_until_events(const char *id, const char *kind, size_t times)
{
    uint64_t const end_ms = clock_monotonic_ms() + CANCELS_WAIT_MS;
    while (cancels_events(id, kind, NULL, NULL) < times && clock_monotonic_ms() < end_ms)
        pause_ms(5);
    check_least(id, kind, cancels_events(id, kind, NULL, NULL), times);
}

size_t cancels_sql(const char *fmt, ...)
{
    static PGconn *pg;
    char statement[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(statement, sizeof statement, fmt, args);
    va_end(args);
    if (pg == NULL || PQstatus(pg) != CONNECTION_OK)
        pg = PQconnectdb(stack.postgres.url);
    PGresult *const result = PQexec(pg, statement);
    CU_ASSERT_EQUAL(PQresultStatus(result), PGRES_TUPLES_OK);
    size_t const n = PQntuples(result) > 0 ? strtoul(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    return n;
}

size_t cancels_rows(const char *id)
{
    return id == NULL
               ? cancels_sql("SELECT count(*) FROM thole_default.worker_queue")
               : cancels_sql("SELECT count(*) FROM thole_default.worker_queue WHERE instance = '%s'", id);
}

uint64_t cancels_message(const char *id)
{
    char filter[256];
    uint64_t sequence = 0;
    snprintf(filter, sizeof filter, "thole.default.work.*.%s.>", id);
    CHECK_OK(stream_last_by_subject(connection, "THOLE_default_WORK", filter, &sequence, NULL, &stack.err),
             &stack.err);
    return sequence;
}

bool cancels_queued(const char *id)
{
    return cancels_message(id) != 0;
}

void cancels_until_gone(const char *id)
{
    uint64_t const end_ms = clock_monotonic_ms() + CANCELS_WAIT_MS;
    while ((cancels_rows(id) > 0 || cancels_queued(id)) && clock_monotonic_ms() < end_ms)
        pause_ms(5);
    CU_ASSERT_EQUAL(cancels_rows(id), 0);
    CU_ASSERT_FALSE(cancels_queued(id));
}

uint64_t cancels_inbox(void)
{
    uint64_t sum = 0;
    for (uint32_t p = 0; p < PARTITIONS_DEFAULT; p++) {
        char stream[64];
        struct stream_bounds bounds = {0};
        snprintf(stream, sizeof stream, "THOLE_default_IN_%u", p);
        CHECK_OK(stream_bounds(connection, stream, &bounds, &stack.err), &stack.err);
        sum += bounds.last;
    }
    return sum;
}
