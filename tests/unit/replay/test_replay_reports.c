/* The output of the replay role: its largest size, and in words that a terminal can show. */
#include "captured.h"
#include "history_file.h"
#include "play.h"
#include "replay_host.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <unistd.h>

enum { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_JSONL }; /* of host_command.output */

static thole_status order(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("ship"), input), ret_output);
}

static const thole_orchestration_entry entries[] = {{"order", order, 1}};
static const thole_program program = {
    .size = sizeof program, .name = "shop", .orchestrations = entries, .orchestrations_len = 1};

static struct {
    char path[64];
    struct host_command command;
    int code;
    thole_status status;
} play;

/* A history that the code does not repeat. */
static void add_history(FILE *to, thole_slice instance)
{
    struct play_turns turns;
    struct buf bytes;
    play_parse("#1 Started order@1(in) | #2 ActivityScheduled charge(in)", &turns);
    struct record record = {.kind = RECORD_TURN, .epoch = 1, .n = 1, .turn = turns.turns[0]};
    record.turn.instance = instance;
    record.turn.execution = 4;
    buf_init(&bytes, 4096);
    CU_ASSERT_EQUAL_FATAL(record_encode(&record, &bytes), THOLE_OK);
    struct history_writer writer;
    history_writer_init(&writer, to, HISTORY_BINARY, "shop");
    history_writer_begin(&writer, 0, instance);
    history_writer_record(&writer, 1, buf_bytes(&bytes));
    history_writer_end(&writer);
    history_writer_release(&writer);
    buf_release(&bytes);
    play_turns_release(&turns);
}

static void run_replay(void *arg)
{
    (void)arg;
    play.status = replay_host_run(&play.command, &program, &play.code, NULL);
}

/* The role's stdout for @p n histories that diverge; malloc. */
static char *replay_of(size_t n, int output)
{
    (void)snprintf(play.path, sizeof play.path, "/tmp/thole-replay.XXXXXX");
    int const fd = mkstemp(play.path);
    FILE *const to = fdopen(fd, "w");
    CU_ASSERT_FATAL(to != NULL);
    for (size_t i = 0; i < n; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "a\x7f\x1b%zu", i);
        add_history(to, thole_slice_from(id));
    }
    (void)fclose(to);
    memset(&play.command, 0, sizeof play.command);
    play.command.role = HOST_REPLAY;
    play.command.file = play.path;
    play.command.output = output;
    play.command.memory_max = 64 * 1024 * 1024;
    play.command.options.payload_max = 1024;
    play.command.options.instance_memory_max = 1024 * 1024;
    char *const text = captured(STDOUT_FILENO, run_replay, NULL);
    (void)unlink(play.path);
    CU_ASSERT_EQUAL(play.status, THOLE_OK);
    CU_ASSERT_EQUAL(play.code, EXIT_REPLAY_DIVERGED);
    return text;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        n++;
    return n;
}

static void test_how_many(void)
{
    enum { REPORTS_MAX = 100 };
    static const struct {
        size_t histories, reports;
        bool complete;
    } rows[] = {
        {1, 1, true}, {REPORTS_MAX - 1, REPORTS_MAX - 1, true}, {REPORTS_MAX + 5, REPORTS_MAX, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *text = replay_of(rows[i].histories, OUTPUT_TABLE);
        CU_ASSERT_EQUAL(count(text, "DIVERGED a"), rows[i].reports);
        CU_ASSERT_EQUAL(count(text, "stopped after many reports: "), !rows[i].complete);
        free(text);
        text = replay_of(rows[i].histories, OUTPUT_JSON);
        CU_ASSERT_EQUAL(count(text, "\"kind\":\"DIVERGED\""), rows[i].reports);
        CU_ASSERT_EQUAL(count(text, rows[i].complete ? "\"complete\":true" : "\"complete\":false"), 1);
        free(text);
    }
}

static void test_control_bytes(void)
{
    char *const text = replay_of(1, OUTPUT_TABLE);
    CU_ASSERT_EQUAL(count(text, "DIVERGED a\\x7f\\x1b0 execution 4 turn 1: "), 1);
    CU_ASSERT_EQUAL(count(text, "\x7f") + count(text, "\x1b"), 0);
    free(text);
}

static void test_what_a_report_says(void)
{
    char *const text = replay_of(1, OUTPUT_JSON);
    CU_ASSERT_EQUAL(count(text, "\"execution\":4,\"turn\":1,\"text\":\""), 1);
    CU_ASSERT_EQUAL(count(text, "\"text\":\"\""), 0);
    free(text);
}

static const struct thole_test tests[] = {
    {"how many", test_how_many},
    {"control bytes", test_control_bytes},
    {"what a report says", test_what_a_report_says},
};
THOLE_TEST_MAIN("replay_reports", tests)
