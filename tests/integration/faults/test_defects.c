/*
 * Objects missing or changed while engines run: each row is done to real servers, seen within SEEN_MS in the
 * log, in the metrics, by thole doctor and in the console, healed by the engines or by the remedy that doctor
 * names, and then an order goes through. `test_defects --all` does all rows, without it a share of them,
 * another one each day; `--write` all, and the table in docs/operations.md.
 */
#include "defect_stage.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SEEN_MS = 15000, /* from the damage until each of them shows it */
    HEALED_MS = 60000,
    OUTPUT_BYTES = 64 * 1024,
    REMEDY_BYTES = 1024,
    PAGE_BYTES = 1024 * 1024,
    SHARES = 8
};

enum defect_end {
    END_HEALS,  /* an engine or a worker makes it again */
    END_REMEDY, /* the remedy that doctor prints is executed */
};

static const struct defect_row {
    const char *what; /* for people */
    enum defect_way way;
    const char *name, *field, *value;
    const char *object; /* the label of thole_engine_defects */
    const char *logged; /* in the engine's log, or the worker's */
    enum defect_end end;
} rows[] = {
    {"stream WORK removed", WAY_REMOVE, "THOLE_default_WORK", NULL, NULL, "work",
     "stream THOLE_default_WORK was missing and is made again", END_HEALS},
    {"bucket NODES removed", WAY_REMOVE, "KV_THOLE_default_NODES", NULL, NULL, "nodes",
     "stream KV_THOLE_default_NODES was missing and is made again", END_HEALS},
    {"bucket CRASHES removed", WAY_REMOVE, "KV_THOLE_default_CRASHES", NULL, NULL, "crashes",
     "stream KV_THOLE_default_CRASHES was missing and is made again", END_HEALS},
    {"stream REJECTED removed", WAY_REMOVE, "THOLE_default_REJECTED", NULL, NULL, "rejected",
     "stream THOLE_default_REJECTED was missing and is made again", END_HEALS},
    {"consumer of a queue removed", WAY_NO_QUEUE, "default", NULL, NULL, "queue",
     "queue default: its consumer was gone", END_HEALS},
    {"a table dropped", WAY_SQL, NULL, NULL, "DROP TABLE thole_default.timers", "tables",
     "table timers was missing and is made again", END_HEALS},
    {"the table of the queues dropped", WAY_SQL, NULL, NULL, "DROP TABLE thole_default.worker_queue",
     "tables", "worker_queue", END_HEALS},
    {"a column dropped", WAY_SQL, NULL, NULL, "ALTER TABLE thole_default.executions DROP COLUMN turns",
     "tables", "was missing and is made again", END_HEALS},
    {"an index dropped", WAY_SQL, NULL, NULL, "DROP INDEX thole_default.timers_due", "tables",
     "index timers.timers_due was missing and is made again", END_HEALS},
    {"a trigger dropped", WAY_SQL, NULL, NULL, "DROP TRIGGER foreign_removal ON thole_default.instances",
     "tables", "trigger instances.foreign_removal was missing and is made again", END_HEALS},
    {"bucket HOLDS removed", WAY_MAKE, "KV_THOLE_default_HOLDS", NULL, NULL, "holds",
     "stream KV_THOLE_default_HOLDS is missing", END_REMEDY},
    {"bucket BINDINGS removed", WAY_MAKE, "KV_THOLE_default_BINDINGS", NULL, NULL, "bindings",
     "stream KV_THOLE_default_BINDINGS is missing", END_REMEDY},
    {"stream AUDIT removed", WAY_MAKE, "THOLE_default_AUDIT", NULL, NULL, "audit",
     "stream THOLE_default_AUDIT is missing", END_REMEDY},
    {"stream RESTORED removed", WAY_MAKE, "THOLE_default_RESTORED", NULL, NULL, "restored",
     "stream THOLE_default_RESTORED is missing", END_REMEDY},
    {"stream IN removed", WAY_REMOVE, "THOLE_default_IN_0", NULL, NULL, "in",
     "stream THOLE_default_IN_0 is missing", END_REMEDY},
    {"stream HIST removed", WAY_REMOVE, "THOLE_default_HIST_1", NULL, NULL, "hist",
     "stream THOLE_default_HIST_1 is missing", END_REMEDY},
    {"HIST: max_bytes set", WAY_EDIT, "THOLE_default_HIST_0", "max_bytes", "100000000", "hist",
     "stream THOLE_default_HIST_0 has max_bytes", END_REMEDY},
    {"HIST: max_msgs set", WAY_EDIT, "THOLE_default_HIST_1", "max_msgs", "100000", "hist",
     "stream THOLE_default_HIST_1 has max_msgs", END_REMEDY},
    {"HIST: max_age set", WAY_EDIT, "THOLE_default_HIST_0", "max_age", "86400000000000", "hist",
     "stream THOLE_default_HIST_0 has max_age", END_REMEDY},
    {"HIST: discard old", WAY_EDIT, "THOLE_default_HIST_0", "discard", "\"old\"", "hist",
     "stream THOLE_default_HIST_0 has discard", END_REMEDY},
    {"HIST: max_msg_size set", WAY_EDIT, "THOLE_default_HIST_0", "max_msg_size", "100", "hist",
     "stream THOLE_default_HIST_0 has max_msg_size", END_REMEDY},
    {"HIST: max_msgs_per_subject set", WAY_EDIT, "THOLE_default_HIST_0", "max_msgs_per_subject", "1000",
     "hist", "stream THOLE_default_HIST_0 has max_msgs_per_subject", END_REMEDY},
    {"HIST: a subject missing", WAY_EDIT, "THOLE_default_HIST_0", "subjects",
     "[\"thole.default.hist.0.*.*\"]", "hist", "stream THOLE_default_HIST_0 has subjects", END_REMEDY},
    {"HIST: allow_direct off", WAY_EDIT, "THOLE_default_HIST_0", "allow_direct", "false", "hist",
     "stream THOLE_default_HIST_0 has allow_direct", END_REMEDY},
    {"HIST: no_ack", WAY_EDIT, "THOLE_default_HIST_0", "no_ack", "true", "hist",
     "stream THOLE_default_HIST_0 has no_ack", END_REMEDY},
    {"HIST: republish", WAY_EDIT, "THOLE_default_HIST_0", "republish",
     "{\"src\":\"thole.default.hist.>\",\"dest\":\"copy.>\"}", "hist",
     "stream THOLE_default_HIST_0 has republish", END_REMEDY},
    {"HIST: subject_transform", WAY_EDIT, "THOLE_default_HIST_0", "subject_transform",
     "{\"src\":\"thole.default.hist.0.*.*\",\"dest\":\"other.{{wildcard(1)}}.{{wildcard(2)}}\"}", "hist",
     "stream THOLE_default_HIST_0 has subject_transform", END_REMEDY},
    {"HIST: sealed", WAY_EDIT, "THOLE_default_HIST_0", "sealed", "true", "hist",
     "stream THOLE_default_HIST_0 has sealed", END_REMEDY},
    {"IN: discard old", WAY_EDIT, "THOLE_default_IN_0", "discard", "\"old\"", "in",
     "stream THOLE_default_IN_0 has discard", END_REMEDY},
    {"IN: max_age set", WAY_EDIT, "THOLE_default_IN_1", "max_age", "3600000000000", "in",
     "stream THOLE_default_IN_1 has max_age", END_REMEDY},
    {"IN: a shorter duplicate_window", WAY_EDIT, "THOLE_default_IN_0", "duplicate_window", "1000000000", "in",
     "stream THOLE_default_IN_0 has duplicate_window", END_REMEDY},
    {"IN: max_msg_size set", WAY_EDIT, "THOLE_default_IN_0", "max_msg_size", "10", "in",
     "stream THOLE_default_IN_0 has max_msg_size", END_REMEDY},
    {"IN: a subject missing", WAY_EDIT, "THOLE_default_IN_0", "subjects", "[\"thole.default.in.0.*.*.*\"]",
     "in", "stream THOLE_default_IN_0 has subjects", END_REMEDY},
    {"WORK: discard old", WAY_EDIT, "THOLE_default_WORK", "discard", "\"old\"", "work",
     "stream THOLE_default_WORK has discard", END_REMEDY},
    {"WORK: max_age set", WAY_EDIT, "THOLE_default_WORK", "max_age", "3600000000000", "work",
     "stream THOLE_default_WORK has max_age", END_REMEDY},
    {"WORK: max_msgs_per_subject set", WAY_EDIT, "THOLE_default_WORK", "max_msgs_per_subject", "1", "work",
     "stream THOLE_default_WORK has max_msgs_per_subject", END_REMEDY},
    {"WORK: deny_delete", WAY_EDIT, "THOLE_default_WORK", "deny_delete", "true", "work",
     "stream THOLE_default_WORK has deny_delete", END_REMEDY},
    {"WORK: sealed", WAY_EDIT, "THOLE_default_WORK", "sealed", "true", "work",
     "stream THOLE_default_WORK has sealed", END_REMEDY},
    {"REJECTED: max_age lifted", WAY_EDIT, "THOLE_default_REJECTED", "max_age", "0", "rejected",
     "stream THOLE_default_REJECTED has max_age", END_REMEDY},
    {"NODES: another max_age", WAY_EDIT, "KV_THOLE_default_NODES", "max_age", "60000000000", "nodes",
     "stream KV_THOLE_default_NODES has max_age", END_REMEDY},
    {"CONFIG: rollup not allowed", WAY_EDIT, "KV_THOLE_default_CONFIG", "allow_rollup_hdrs", "false",
     "config", "stream KV_THOLE_default_CONFIG has allow_rollup_hdrs", END_REMEDY},
    {"CONFIG: another number of partitions", WAY_PUT, "$KV.THOLE_default_CONFIG.partitions", NULL, "9",
     "config", "bucket THOLE_default_CONFIG has key partitions 9", END_REMEDY},
    {"CONFIG: another payload_max", WAY_PUT, "$KV.THOLE_default_CONFIG.payload_max", NULL, "5", "config",
     "bucket THOLE_default_CONFIG has key payload_max 5", END_REMEDY},
    {"queue: another filter", WAY_QUEUE, "default", "filter_subject", "\"thole.default.work.x.>\"", "queue",
     "queue default has filter_subject", END_REMEDY},
    {"queue: max_deliver set", WAY_QUEUE, "default", "max_deliver", "1", "queue",
     "queue default has max_deliver", END_REMEDY},
    {"queue: backoff set", WAY_QUEUE, "default", "backoff", "[1000000000]", "queue",
     "queue default has backoff", END_REMEDY},
    {"queue: paused", WAY_PAUSE, "default", NULL, "\"2037-01-01T00:00:00Z\"", "queue",
     "queue default has paused", END_REMEDY},
};

static struct stack stack;
static struct stage stage;
static thole_client *client;
static struct stack_program *engine, *worker;
static uint16_t http_port, console_port;
static unsigned orders;
static bool all_rows, writes;
static char remedies[ARRAY_LEN(rows)][REMEDY_BYTES]; /* as doctor has printed them */
static bool passed[ARRAY_LEN(rows)];

/* ---- steps of a row ---- */

static void start_programs(void)
{
    char http[32];
    http_port = server_free_port();
    (void)snprintf(http, sizeof http, "--http=%u", http_port);
    engine = stack_program(&stack, "engine", "engine", "--node-ttl=3s", "--partitions=2", http, NULL);
    worker = stack_program(&stack, "worker", "worker", "--queue=default", "--lease=3s", NULL);
}

static bool start_order(const char *orchestration, const char *input, char id[32])
{
    (void)snprintf(id, 32, "%s-%u", orchestration, ++orders);
    thole_status const status =
        thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                           thole_slice_from(input), NULL, &stack.err);
    return status == THOLE_OK;
}

static bool completes_within(const char *id, uint64_t wait_ms)
{
    thole_instance_status status = THOLE_INSTANCE_RUNNING;
    (void)stack_outcome(client, id, wait_ms, &status);
    return status == THOLE_INSTANCE_COMPLETED;
}

static bool completes(const char *id)
{
    return completes_within(id, HEALED_MS);
}

/* One for each partition, or more. */
static bool all_goes(void)
{
    bool good = true;
    for (int i = 0; i < 4; i++) {
        char id[32];
        good = start_order("order", "x", id) && completes(id) && good;
    }
    return good;
}

static uint64_t metric_of(const char *metric, const char *object)
{
    char series[100];
    (void)snprintf(series, sizeof series, "%s{object=\"%s\"}", metric, object);
    return stage_metric(http_port, series);
}

static bool console_has(const char *path, const char *text)
{
    static char page[OUTPUT_BYTES];
    return stage_get(console_port, path, page, sizeof page) && strstr(page, text) != NULL;
}

static bool metric_is(const char *object, bool some, uint64_t wait_ms)
{
    uint64_t const until_ms = clock_monotonic_ms() + wait_ms;
    do {
        uint64_t const n = metric_of("thole_engine_defects", object);
        if (n != UINT64_MAX && (n > 0) == some)
            return true;
        pause_ms(100);
    } while (clock_monotonic_ms() < until_ms);
    return false;
}

static void check_row(const struct defect_row *row, const char *what, bool holds)
{
    CU_ASSERT(holds);
    passed[row - rows] &= holds;
    if (!holds)
        fprintf(stderr, "\n  %s: not %s\n", row->what, what);
}

/* ---- rows ---- */

static size_t logged_before(const struct defect_row *row, const struct stack_program *program)
{
    return stack_count(program->log, row->logged);
}

static uint64_t left_ms(uint64_t until_ms)
{
    uint64_t const now_ms = clock_monotonic_ms();
    return now_ms < until_ms ? until_ms - now_ms : 0;
}

/* An object that is made again at once is counted and reported, too: its remover should be found. */
static void check_mended(const struct defect_row *row, uint64_t before, uint64_t until_ms)
{
    static char output[OUTPUT_BYTES];
    const char *const end = strstr(row->logged, " was missing and is made again");
    char text[160];
    bool counted, told, shown;
    if (end == NULL)
        return; /* by those who use it */
    (void)snprintf(text, sizeof text, "%.*s", (int)(end - row->logged), row->logged);
    do {
        counted = metric_of("thole_engine_mended_total", row->object) > before;
        shown = console_has("/api/v1/mended", text);
    } while (!(counted && shown) && left_ms(until_ms) > 0);
    (void)stage_command(THOLE_COMMAND " doctor 2>&1", output, sizeof output);
    const char *const line = strstr(output, "mended");
    told = line != NULL && strstr(line, text) != NULL && left_ms(until_ms) > 0;
    check_row(row, "counted", counted);
    check_row(row, "shown in the console", shown);
    check_row(row, "told by doctor", told);
}

static void check_heals(const struct defect_row *row)
{
    const struct stack_program *const who = row->way == WAY_NO_QUEUE ? worker : engine;
    size_t const before = logged_before(row, who);
    uint64_t const mended = metric_of("thole_engine_mended_total", row->object);
    bool const queued = row->way == WAY_REMOVE && strcmp(row->object, "work") == 0;
    char held[32], waits[32] = "";
    check_row(
        row, "started",
        start_order("hold", row->way == WAY_SQL ? "9000" : "2000", held)); /* under way while it is broken */
    pause_ms(300);
    if (queued) /* and one whose activity nobody has taken: its message is lost with the stream */
        check_row(row, "waiting", stack_freeze(worker) && start_order("order", "x", waits));
    uint64_t const until_ms = clock_monotonic_ms() + SEEN_MS;
    check_row(row, "done", stage_break(&stage, row->way, row->name, row->field, row->value));
    check_row(row, "logged", stack_logged(who, row->logged, before + 1, left_ms(until_ms)));
    check_mended(row, mended, until_ms);
    if (queued) {
        stack_thaw(worker);
        check_row(row, "queued again", completes_within(waits, SEEN_MS));
    }
    check_row(row, "goes on", completes(held));
}

static bool remedy_of(const char *output, const char *object, char ret[REMEDY_BYTES])
{
    const char *line = strstr(output, object);
    const char *const todo = line == NULL ? NULL : strstr(line, "Try: ");
    if (todo == NULL)
        return false;
    (void)snprintf(ret, REMEDY_BYTES, "%.*s", (int)strcspn(todo + 5, "\n"), todo + 5);
    return true;
}

/* A sealed stream refuses deletions, too, and keeps that. */
static bool restore_again(const char *remedy, char *output)
{
    static char said[OUTPUT_BYTES];
    char next[REMEDY_BYTES];
    if (strncmp(remedy, "nats stream backup", 18) != 0)
        return true;
    for (int i = 0; i < 3; i++) {
        (void)stage_command(THOLE_COMMAND " doctor 2>&1", said, sizeof said);
        const char *const at = strstr(said, "Try: nats stream backup");
        if (at == NULL)
            return true;
        (void)snprintf(next, sizeof next, "%.*s", (int)strcspn(at + 5, "\n"), at + 5);
        if (!stage_remedy(&stage, next, output, OUTPUT_BYTES))
            return false;
        pause_ms(5000); /* an engine says for a while what it has seen */
    }
    return false;
}

static bool has_python(void)
{
    char said[64];
    return stage_command("python3 -c 'print(1)' 2>&1", said, sizeof said) == 0;
}

static void check_remedy(const struct defect_row *row)
{
    static char output[OUTPUT_BYTES];
    char *const remedy = remedies[row - rows];
    size_t const before = logged_before(row, engine);
    bool const done = stage_break(&stage, row->way, row->name, row->field, row->value);
    uint64_t const until_ms = clock_monotonic_ms() + SEEN_MS;
    if (!done && row->way == WAY_PAUSE)
        return; /* only newer servers pause consumers */
    check_row(row, "done", done);
    check_row(row, "logged", stack_logged(engine, row->logged, before + 1, left_ms(until_ms)));
    check_row(row, "counted", metric_is(row->object, true, left_ms(until_ms)));
    check_row(row, "shown in the console", console_has("/api/v1/defects", row->logged));
    (void)stage_command(THOLE_COMMAND " doctor 2>&1", output, sizeof output);
    bool const told = remedy_of(output, row->logged, remedy);
    check_row(row, "told by doctor", told && left_ms(until_ms) > 0);
    if (!told)
        fprintf(stderr, "%s\n", output);
    bool const mended =
        told && stage_remedy(&stage, remedy, output, sizeof output) && restore_again(remedy, output);
    check_row(row, "mended", mended);
    if (told && !mended)
        fprintf(stderr, "%s\n%s\n", remedy, output);
}

static void test_row(const struct defect_row *row)
{
    passed[row - rows] = true;
    uint64_t const begun_ms = clock_monotonic_ms();
    if (row->end == END_HEALS)
        check_heals(row);
    else
        check_remedy(row);
    check_row(row, "well again in the metrics", metric_is(row->object, false, SEEN_MS));
    check_row(row, "going on", all_goes());
    fprintf(stderr, "  %-40s %llu ms\n", row->what, (unsigned long long)(clock_monotonic_ms() - begun_ms));
}

static void write_table(void);

static void test_rows(void)
{
    unsigned const share = (unsigned)(time(NULL) / 86400) % SHARES;
    const char *const only = getenv("DEFECT");
    CU_ASSERT_FATAL(all_goes()); /* the worker serves its queue */
    CU_ASSERT_FATAL(console_port != 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strstr(rows[i].what, "sealed") != NULL && !has_python())
            fprintf(stderr, "  %s: left out, there is no python3\n", rows[i].what);
        else if (only != NULL ? strstr(rows[i].what, only) != NULL : all_rows || i % SHARES == share)
            test_row(&rows[i]);
    if (writes)
        write_table();
}

/* ---- the table ---- */

#define TABLE_BEGIN "<!-- table: defects, written by test_defects --write -->\n"
#define TABLE_END "<!-- end of the table -->"

static void put_table(FILE *to)
{
    (void)fputs(
        TABLE_BEGIN "| what is done while engines run | what is seen | what mends it |\n|---|---|---|\n", to);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (passed[i] && (rows[i].end == END_HEALS || remedies[i][0] != '\0'))
            (void)fprintf(to, "| %s | `%s%s` | %s%s%s |\n", rows[i].what, rows[i].logged,
                          rows[i].end == END_HEALS ? "" : " …",
                          rows[i].end == END_HEALS ? "nobody has to" : "`", remedies[i],
                          rows[i].end == END_HEALS ? "" : "`");
    (void)fputs(TABLE_END, to);
}

static void write_table(void)
{
    static const char path[] = THOLE_SOURCE_DIR "/docs/operations.md";
    static char page[PAGE_BYTES];
    FILE *file = fopen(path, "r");
    size_t const len = file == NULL ? 0 : fread(page, 1, sizeof page - 1, file);
    CU_ASSERT_FATAL(file != NULL && len > 0 && len < sizeof page - 1);
    (void)fclose(file);
    const char *const begin = strstr(page, TABLE_BEGIN), *const end =
                                                             begin == NULL ? NULL : strstr(begin, TABLE_END);
    CU_ASSERT_FATAL(end != NULL);
    file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    (void)fwrite(page, 1, (size_t)(begin - page), file);
    put_table(file);
    (void)fputs(end + strlen(TABLE_END), file);
    (void)fclose(file);
}

static const struct thole_test tests[] = {{"rows", test_rows}};

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        all_rows |= strcmp(argv[i], "--all") == 0 || strcmp(argv[i], "--write") == 0;
        writes |= strcmp(argv[i], "--write") == 0;
    }
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    start_programs();
    client = stack_client(&stack);
    console_port = stage_console(&stack);
    stage = (struct stage){.stack = &stack, .connection = stack_connect(&stack)};
    int const failed = thole_run_suite("defects", tests, ARRAY_LEN(tests));
    connection_close(stage.connection);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
