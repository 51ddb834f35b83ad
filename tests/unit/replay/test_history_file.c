/* Histories in a file: there and back, joined, cut off anywhere. */
#include "history_file.h"
#include "thole_cunit.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct rendered {
    char text[4096];
    thole_status stop; /* status returned for a record */
};

static void add(struct rendered *r, const char *fmt, ...) THOLE_PRINTF(2, 3);
static void add(struct rendered *r, const char *fmt, ...)
{
    size_t const len = strlen(r->text);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(r->text + len, sizeof r->text - len, fmt, args);
    va_end(args);
}

static thole_status on_begin(void *arg, thole_slice instance)
{
    add(arg, "[%.*s", THOLE_FMT(instance));
    return THOLE_OK;
}

static thole_status on_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct rendered *r = arg;
    add(r, " %llu:%zu:%02x", (unsigned long long)sequence, bytes.len, bytes.len > 0 ? bytes.ptr[0] : 0);
    return r->stop;
}

static thole_status on_end(void *arg)
{
    add(arg, "]");
    return THOLE_OK;
}

static thole_status read_bytes(const char *bytes, size_t len, struct rendered *r, thole_error *reterr)
{
    struct history_file_reader const reader = {
        .begin = on_begin, .record = on_record, .end = on_end, .arg = r};
    FILE *from = len == 0 ? fopen("/dev/null", "r") : fmemopen((void *)(uintptr_t)bytes, len, "r");
    thole_status const status = history_file_read(from, &reader, reterr);
    (void)fclose(from);
    return status;
}

static char *written;
static size_t written_len;

static void write_two(void)
{
    FILE *to = open_memstream(&written, &written_len);
    struct history_writer writer;
    history_writer_init(&writer, to, HISTORY_BINARY, "shop");
    history_writer_begin(&writer, 3, THOLE_STR("a b/\xc3\xa9\n"));
    history_writer_record(&writer, 1, THOLE_STR("\n\0end 1\n"));
    history_writer_record(&writer, 9007199254740993u, (thole_slice){NULL, 0});
    history_writer_end(&writer);
    history_writer_begin(&writer, 3, THOLE_STR("x"));
    history_writer_end(&writer);
    history_writer_release(&writer);
    (void)fclose(to);
}

static void test_round_trip(void)
{
    struct rendered r = {.text = ""};
    CU_ASSERT_EQUAL(read_bytes(written, written_len, &r, NULL), THOLE_OK);
    CHECK_STR("both", r.text, "[a b/\xc3\xa9\n 1:8:0a 9007199254740993:0:00][x]");
}

static void test_cut_anywhere(void)
{
    for (size_t len = 0; len < written_len; len++) {
        struct rendered r = {.text = ""};
        thole_error err = {.text = ""};
        thole_status const status = read_bytes(written, len, &r, &err);
        bool const between = strcmp(r.text, "[a b/\xc3\xa9\n 1:8:0a 9007199254740993:0:00]") == 0 &&
                             written[len - 1] == '\n' && strncmp(written + len, "thole", 5) == 0;
        CU_ASSERT_EQUAL(status, between ? THOLE_OK : THOLE_CORRUPT);
    }
}

static void test_refused(void)
{
    static const struct {
        const char *bytes;
        thole_status status;
        const char *text;
    } rows[] = {
        {"", THOLE_CORRUPT, "the file is empty, at byte 0"},
        {"\n", THOLE_CORRUPT, "this is not what thole export or history --raw writes, at byte 0"},
        {"thole history\n", THOLE_CORRUPT, "a history without a format, at byte 0"},
        {"thole history x n 1 i\n", THOLE_CORRUPT, "a history without a format, at byte 0"},
        {"thole history 2 n 1 i\n", THOLE_UNSUPPORTED, "a history in form 2, this program knows 1"},
        {"thole history 1 n 1 a%zz\n", THOLE_CORRUPT, "a history without an instance, at byte 0"},
        {"thole history 1 n 1\n", THOLE_CORRUPT, "a history without an instance, at byte 0"},
        {"thole history 1 n 1 i\nend 1\n", THOLE_CORRUPT, "a history that lacks records, at byte 22"},
        {"thole history 1 n 1 i\nend x\n", THOLE_CORRUPT, "a history that lacks records, at byte 22"},
        {"thole history 1 n 1 i\n1 2 3\nab\n", THOLE_CORRUPT, "neither a record nor an end, at byte 22"},
        {"thole history 1 n 1 i\n1 -2\nab\n", THOLE_CORRUPT, "neither a record nor an end, at byte 22"},
        {"thole history 1 n 1 i\n1 8388609\n", THOLE_CORRUPT,
         "a record that is larger than one can be, at byte 22"},
        {"thole history 1 n 1 i\n1 2\nabc\n", THOLE_CORRUPT, "a record that is cut off, at byte 22"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rendered r = {.text = ""};
        thole_error err = {.text = ""};
        CU_ASSERT_EQUAL(read_bytes(rows[i].bytes, strlen(rows[i].bytes), &r, &err), rows[i].status);
        CHECK_STR(rows[i].bytes, err.text, rows[i].text);
    }
    struct rendered r = {.stop = THOLE_CANCELLED};
    CU_ASSERT_EQUAL(read_bytes(written, written_len, &r, NULL), THOLE_CANCELLED);
}

static void test_garbage(void)
{
    uint64_t state = 42;
    for (int round = 0; round < 20000; round++) {
        struct rendered r = {.text = ""};
        char bytes[512];
        size_t const len = written_len < sizeof bytes ? written_len : sizeof bytes;
        memcpy(bytes, written, len);
        for (int i = 0; i < 3; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            bytes[(state >> 33) % len] = (char)(state >> 24);
        }
        (void)!read_bytes(bytes, len, &r, NULL);
    }
}

static const struct thole_test tests[] = {
    {"there and back", test_round_trip},
    {"cut anywhere", test_cut_anywhere},
    {"refused", test_refused},
    {"garbage", test_garbage},
};

int main(void)
{
    write_two();
    int const code = thole_run_suite("history_file", tests, ARRAY_LEN(tests));
    free(written);
    return code;
}
