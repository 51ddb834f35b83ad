/* Messages between a worker and its processes: in pieces, too large ones, and bytes that are no message. */
#include "process_end.h"
#include "process_frame.h"
#include "thole_cunit.h"
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int ends[2];
static struct frame_reader reader;

static void open_pair(void)
{
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    frame_reader_init(&reader, ends[1]);
}

static void close_pair(void)
{
    (void)close(ends[0]);
    (void)close(ends[1]);
    frame_reader_release(&reader);
}

static void check_frame(enum frame_kind kind, const char *text)
{
    enum frame_kind got_kind;
    thole_slice body;
    CU_ASSERT_EQUAL_FATAL(frame_read(&reader, &got_kind, &body), FRAME_WHOLE);
    CU_ASSERT_EQUAL(got_kind, kind);
    CU_ASSERT_TRUE(thole_slice_equal(body, thole_slice_from(text)));
}

static enum frame_got read_one(void)
{
    enum frame_kind kind;
    thole_slice body;
    return frame_read(&reader, &kind, &body);
}

static void test_frames(void)
{
    open_pair();
    CU_ASSERT_EQUAL(read_one(), FRAME_PART);
    CU_ASSERT_TRUE(frame_send(ends[0], FRAME_NOTED, THOLE_STR("page 1")));
    CU_ASSERT_TRUE(frame_send(ends[0], FRAME_NOTED, (thole_slice){NULL, 0}));
    CU_ASSERT_TRUE(frame_send(ends[0], FRAME_RETURNED, THOLE_STR("x")));
    check_frame(FRAME_NOTED, "page 1");
    check_frame(FRAME_NOTED, "");
    check_frame(FRAME_RETURNED, "x");
    CU_ASSERT_EQUAL(read_one(), FRAME_PART);
    (void)shutdown(ends[0], SHUT_WR);
    CU_ASSERT_EQUAL(read_one(), FRAME_CLOSED);
    close_pair();
}

static void test_piece_by_piece(void)
{
    uint8_t bytes[FRAME_HEAD_BYTES + 5];
    uint32_t const head[2] = {FRAME_RUN, 5};
    memcpy(bytes, head, sizeof head);
    memcpy(bytes + sizeof head, "hello", 5);
    open_pair();
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i + 1 < sizeof bytes; i++) {
            CU_ASSERT_EQUAL(write(ends[0], bytes + i, 1), 1);
            CU_ASSERT_EQUAL(read_one(), FRAME_PART);
        }
        CU_ASSERT_EQUAL(write(ends[0], bytes + sizeof bytes - 1, 1), 1);
        check_frame(FRAME_RUN, "hello");
    }
    CU_ASSERT_EQUAL(write(ends[0], bytes, sizeof bytes - 1), (ssize_t)sizeof bytes - 1);
    CU_ASSERT_EQUAL(read_one(), FRAME_PART);
    (void)shutdown(ends[0], SHUT_WR);
    CU_ASSERT_EQUAL(read_one(), FRAME_CLOSED); /* half a frame is none */
    close_pair();
}

static void test_broken(void)
{
    static const uint32_t heads[][2] = {{0, 0}, {4, 0}, {UINT32_MAX, 0}, {FRAME_NOTED, FRAME_BYTES_MAX + 1}};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        open_pair();
        CU_ASSERT_EQUAL(write(ends[0], heads[i], sizeof heads[i]), (ssize_t)sizeof heads[i]);
        CU_ASSERT_EQUAL(read_one(), FRAME_BROKEN);
        close_pair();
    }
    open_pair();
    static const uint8_t byte;
    CU_ASSERT_FALSE(frame_send(ends[0], FRAME_NOTED, (thole_slice){&byte, FRAME_BYTES_MAX + 1}));
    (void)close(ends[1]);
    CU_ASSERT_FALSE(frame_send(ends[0], FRAME_NOTED, THOLE_STR("x"))); /* and no SIGPIPE */
    (void)close(ends[0]);
    frame_reader_release(&reader);
}

/* ---- bodies ---- */

static const struct process_run sample_run = {.queue = {(const uint8_t *)"q", 1},
                                              .instance = {(const uint8_t *)"order 7", 7},
                                              .activity = {(const uint8_t *)"charge", 6},
                                              .input = {(const uint8_t *)"a\0b", 3},
                                              .details = {(const uint8_t *)"page", 4},
                                              .execution = 1,
                                              .activity_id = UINT64_MAX,
                                              .try_number = 3,
                                              .attempt = 4,
                                              .deadline_ms = UINT64_MAX,
                                              .partition = 5,
                                              .orchestration = {(const uint8_t *)"order", 5},
                                              .version = 9,
                                              .worker = {(const uint8_t *)"node-1", 6}};

static void test_run(void)
{
    struct process_run got;
    struct arena arena;
    struct buf bytes;
    arena_init(&arena, 10000);
    buf_init(&bytes, 10000);
    CU_ASSERT_EQUAL(process_run_encode(&sample_run, &bytes), THOLE_OK);
    CU_ASSERT_EQUAL(process_run_decode(buf_bytes(&bytes), &arena, &got, NULL), THOLE_OK);
    CU_ASSERT_TRUE(thole_slice_equal(got.queue, sample_run.queue) &&
                   thole_slice_equal(got.instance, sample_run.instance) &&
                   thole_slice_equal(got.activity, sample_run.activity) &&
                   thole_slice_equal(got.input, sample_run.input) &&
                   thole_slice_equal(got.details, sample_run.details) &&
                   thole_slice_equal(got.orchestration, sample_run.orchestration) &&
                   thole_slice_equal(got.worker, sample_run.worker));
    CU_ASSERT_TRUE(got.execution == 1 && got.activity_id == UINT64_MAX && got.try_number == 3 &&
                   got.attempt == 4 && got.deadline_ms == UINT64_MAX && got.partition == 5 &&
                   got.version == 9);
    bytes.ptr[0] ^= 0xff;
    CU_ASSERT_EQUAL(process_run_decode(buf_bytes(&bytes), &arena, &got, NULL), THOLE_CORRUPT);
    struct process_run bad = sample_run;
    bad.activity = THOLE_STR("no name");
    buf_clear(&bytes);
    CU_ASSERT_EQUAL(process_run_encode(&bad, &bytes), THOLE_OK);
    CU_ASSERT_EQUAL(process_run_decode(buf_bytes(&bytes), &arena, &got, NULL), THOLE_CORRUPT);
    buf_release(&bytes);
    arena_release(&arena);
}

static void test_return(void)
{
    struct process_return const returned = {.status = THOLE_APP,
                                            .data = THOLE_STR("no money"),
                                            .error_type = THOLE_STR("bank.away"),
                                            .final = true,
                                            .leftovers = true,
                                            .pid = 77};
    struct process_return bad = returned, got;
    struct arena arena;
    struct buf bytes;
    arena_init(&arena, 10000);
    buf_init(&bytes, 10000);
    CU_ASSERT_EQUAL(process_return_encode(&returned, &bytes), THOLE_OK);
    CU_ASSERT_EQUAL(process_return_decode(buf_bytes(&bytes), &arena, &got, NULL), THOLE_OK);
    CU_ASSERT_TRUE(got.status == THOLE_APP && got.final && got.leftovers && got.pid == 77 &&
                   thole_slice_equal(got.data, returned.data) &&
                   thole_slice_equal(got.error_type, returned.error_type));
    bad.error_type = THOLE_STR("no type");
    buf_clear(&bytes);
    CU_ASSERT_EQUAL(process_return_encode(&bad, &bytes), THOLE_OK);
    CU_ASSERT_EQUAL(process_return_decode(buf_bytes(&bytes), &arena, &got, NULL), THOLE_CORRUPT);
    CU_ASSERT_EQUAL(process_return_decode((thole_slice){NULL, 0}, &arena, &got, NULL), THOLE_CORRUPT);
    buf_release(&bytes);
    arena_release(&arena);
}

/* ---- words ---- */

static const struct end_case {
    enum process_end end;
    struct life_message life;
    bool begun;
    thole_activity_options options;
    const char *type, *text;
} end_cases[] = {
    {PROCESS_ENDED, {.status = SIGSEGV}, true, {0}, "crash", "the process was killed by SIGSEGV"},
    {PROCESS_ENDED, {.status = SIGSEGV | 0x80}, true, {0}, "crash", "the process was killed by SIGSEGV"},
    {PROCESS_ENDED, {.status = 63}, true, {0}, "crash", "the process was killed by signal 63"},
    {PROCESS_ENDED,
     {.status = SIGKILL},
     true,
     {0},
     "crash",
     "the process was killed by SIGKILL, by the system (out of memory) or by somebody"},
    {PROCESS_ENDED,
     {.status = SIGKILL, .cpu_ms = 999},
     true,
     {.cpu_max_s = 1},
     "crash",
     "the process was killed by SIGKILL, by the system (out of memory) or by somebody"},
    {PROCESS_ENDED,
     {.status = SIGKILL, .cpu_ms = 1000},
     true,
     {.cpu_max_s = 1},
     "limit",
     "the process was killed by SIGKILL: its CPU time is limited to 1 s"},
    {PROCESS_ENDED, {.status = SIGXCPU}, true, {0}, "crash", "the process was killed by SIGXCPU"},
    {PROCESS_ENDED,
     {.status = 7 << 8},
     true,
     {0},
     "crash",
     "the process exited with code 7 instead of returning"},
    {PROCESS_ENDED,
     {.status = 125 << 8},
     false,
     {.memory_max = 10},
     "crash",
     "the process exited with code 125 before the handler was called; its log says why; its address "
     "space is "
     "limited to 10 bytes"},
    {PROCESS_ENDED,
     {.error = 32},
     true,
     {0},
     "crash",
     "the guard of the process was killed, and the process with it"},
    {PROCESS_CLOSED, {0}, true, {0}, "crash", "the process has closed its socket to the worker"},
    {PROCESS_BROKEN,
     {0},
     true,
     {0},
     "crash",
     "the process has written to its socket to the worker what is no message"},
    {PROCESS_WALL, {0}, true, {.wall_max_ms = 5}, "limit", "the process was killed after 5 ms, its limit"},
};

static void test_texts(void)
{
    for (size_t i = 0; i < ARRAY_LEN(end_cases); i++) {
        char text[PROCESS_TEXT_MAX];
        const char *const type = process_end_text(end_cases[i].end, &end_cases[i].life, end_cases[i].begun,
                                                  &end_cases[i].options, text);
        CHECK_STR("type", type, end_cases[i].type);
        CHECK_STR("text", text, end_cases[i].text);
    }
}

static void test_the_lower_limit_of_memory(void)
{
    static const struct {
        uint64_t of_activity, of_all, want;
    } rows[] = {{0, 0, 0}, {5, 0, 5}, {0, 5, 5}, {5, 6, 5}, {6, 5, 5}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_activity_options const options = {.memory_max = rows[i].of_activity};
        CU_ASSERT_EQUAL(process_memory_max(&options, rows[i].of_all), rows[i].want);
    }
}

/* ---- registrations of a program ---- */

static thole_status nothing(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_OK;
}

/* The exit code of `PROGRAM worker --help`, which looks at the program first. */
static int exit_code_with(const thole_activity_options *options)
{
    static char *argv[] = {"program", "worker", "--help", NULL};
    thole_activity_entry const entry = {.name = "a", .run = nothing, .options = options};
    thole_program const program = {
        .size = sizeof program, .name = "program", .activities = &entry, .activities_len = 1};
    int const out = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);
    (void)fflush(stdout);
    (void)dup2(null, STDOUT_FILENO);
    int const code = thole_main(3, argv, &program);
    (void)fflush(stdout);
    (void)dup2(out, STDOUT_FILENO);
    (void)close(out);
    (void)close(null);
    return code;
}

static void test_options(void)
{
    thole_activity_options options = {.size = sizeof options};
    enum { GOOD = 0, USAGE = 2 };
    CU_ASSERT_EQUAL(exit_code_with(NULL), GOOD);
    CU_ASSERT_EQUAL(exit_code_with(&options), GOOD);
    options.cpu_max_s = 1; /* of a thread? */
    CU_ASSERT_EQUAL(exit_code_with(&options), USAGE);
    options.isolation = THOLE_ISOLATION_PROCESS;
    CU_ASSERT_EQUAL(exit_code_with(&options), GOOD);
    options.isolation = (thole_isolation)7;
    CU_ASSERT_EQUAL(exit_code_with(&options), USAGE);
    options = (thole_activity_options){.isolation = THOLE_ISOLATION_PROCESS};
    CU_ASSERT_EQUAL(exit_code_with(&options), USAGE); /* no size */
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"frames", test_frames},
        {"piece by piece", test_piece_by_piece},
        {"what is no frame", test_broken},
        {"what to run", test_run},
        {"what it returned", test_return},
        {"how it ended, in words", test_texts},
        {"the lower limit of memory", test_the_lower_limit_of_memory},
        {"options of activities", test_options},
    };
    return thole_run_suite("process_frame", tests, ARRAY_LEN(tests));
}
