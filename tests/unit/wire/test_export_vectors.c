/*
 * proto/golden/exports: the vectors of an export's two forms say the same to this reader and to
 * read_export.py, which shares no code with it; and the writer writes the first one of each form.
 */
#include "buf.h"
#include "history_file.h"
#include "jscan.h"
#include "thole_cunit.h"
#include <inttypes.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_BYTES = 1024 * 1024, VECTORS_MIN = 32, SHELL_CANNOT = 127 };
#define FOLDER THOLE_SOURCE_DIR "/proto/golden/exports/"

struct vector {
    char name[128];
    bool good;
    struct buf bytes, said; /* said: "[instance 7:0801 12:]..." */
};

/* ---- contents of a vector ---- */

static void add_hex(struct buf *to, thole_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(to, "%02x", bytes.ptr[i]);
}

static void render_record(thole_slice record, struct buf *to)
{
    size_t at = 0;
    thole_slice sequence = {NULL, 0}, hex = {NULL, 0};
    uint64_t number = 0;
    CU_ASSERT_TRUE(json_item(record, &at, &sequence) && json_uint(sequence, &number) &&
                   json_item(record, &at, &hex) && hex.len >= 2);
    buf_printf(to, " %" PRIu64 ":%.*s", number, (int)hex.len - 2, (const char *)hex.ptr + 1);
}

static void render(thole_slice history, struct buf *to)
{
    thole_slice value, record;
    size_t at = 0;
    buf_text(to, "[");
    CU_ASSERT_TRUE(json_find(history, "instance", &value) && json_text(value, to));
    CU_ASSERT_TRUE(json_find(history, "records", &value));
    while (json_item(value, &at, &record))
        render_record(record, to);
    buf_text(to, "]");
}

static void take_hex(thole_slice hex, struct buf *to)
{
    for (size_t i = 1; i + 2 < hex.len; i += 2) {
        char const digits[] = {(char)hex.ptr[i], (char)hex.ptr[i + 1], '\0'};
        uint8_t const byte = (uint8_t)strtoul(digits, NULL, 16);
        buf_append(to, &byte, 1);
    }
}

static void take_vector(thole_slice item, struct vector *ret)
{
    struct buf name;
    thole_slice value, history;
    size_t at = 0;
    buf_init(&name, sizeof ret->name - 1);
    buf_init(&ret->bytes, TEXT_BYTES);
    buf_init(&ret->said, TEXT_BYTES);
    CU_ASSERT_TRUE(json_find(item, "name", &value) && json_text(value, &name));
    (void)snprintf(ret->name, sizeof ret->name, "%s", buf_cstr(&name));
    CU_ASSERT_TRUE(json_find(item, "good", &value));
    ret->good = json_is_true(value);
    CU_ASSERT_TRUE(json_find(item, "hex", &value));
    take_hex(value, &ret->bytes);
    CU_ASSERT_TRUE(json_find(item, "histories", &value));
    while (json_item(value, &at, &history))
        render(history, &ret->said);
    buf_release(&name);
}

/* ---- this reader ---- */

static thole_status on_begin(void *arg, thole_slice instance)
{
    buf_text(arg, "[");
    buf_slice(arg, instance);
    return THOLE_OK;
}

static thole_status on_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    buf_printf(arg, " %" PRIu64 ":", sequence);
    add_hex(arg, bytes);
    return THOLE_OK;
}

static thole_status on_end(void *arg)
{
    buf_text(arg, "]");
    return THOLE_OK;
}

static void check_here(const struct vector *vector)
{
    struct buf said;
    thole_error error = {.text = ""};
    buf_init(&said, TEXT_BYTES);
    struct history_file_reader const reader = {
        .begin = on_begin, .record = on_record, .end = on_end, .arg = &said};
    FILE *from = vector->bytes.len == 0 ? fopen("/dev/null", "r")
                                        : fmemopen(vector->bytes.ptr, vector->bytes.len, "r");
    thole_status const status = history_file_read(from, &reader, &error);
    (void)fclose(from);
    if ((status == THOLE_OK) != vector->good)
        fprintf(stderr, "\n  [%s] %s: %s\n", vector->name, thole_status_name(status), error.text);
    CU_ASSERT_EQUAL(status == THOLE_OK, vector->good);
    if (vector->good)
        CHECK_STR(vector->name, buf_cstr(&said), buf_cstr(&vector->said));
    buf_release(&said);
}

/* ---- the other one ---- */

static bool has_python;
static char folder[] = "/tmp/thole-vectors-XXXXXX";
static struct buf files; /* their paths */
static FILE *told;       /* output of read_export.py, for one file after the other */

static void write_file(const struct vector *vector)
{
    static unsigned n;
    char path[sizeof folder + 16];
    (void)snprintf(path, sizeof path, "%s/%03u", folder, n++);
    FILE *to = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    if (vector->bytes.len > 0)
        CU_ASSERT_EQUAL(fwrite(vector->bytes.ptr, 1, vector->bytes.len, to), vector->bytes.len);
    (void)fclose(to);
    buf_printf(&files, " %s", path);
}

/* A line for each history, an empty one for none; for what is wrong the path and why. */
static void check_there(const struct vector *vector)
{
    static char line[TEXT_BYTES];
    struct buf said;
    size_t histories = 0;
    buf_init(&said, TEXT_BYTES);
    for (const char *at = buf_cstr(&vector->said); (at = strchr(at, '[')) != NULL; at++)
        histories++;
    do {
        CU_ASSERT_PTR_NOT_NULL_FATAL(fgets(line, sizeof line, told));
        if (line[0] == '{')
            render(thole_slice_from(line), &said);
        if ((strstr(line, ": wrong: ") != NULL) == vector->good)
            fprintf(stderr, "\n  [%s] read_export.py: %s", vector->name, line);
        CU_ASSERT_EQUAL(strstr(line, ": wrong: ") == NULL, vector->good);
    } while (vector->good && histories-- > 1);
    if (vector->good)
        CHECK_STR(vector->name, buf_cstr(&said), buf_cstr(&vector->said));
    buf_release(&said);
}

/* ---- the writer ---- */

/* The sections are copied from the vector: their texts have times. */
static void check_written(const struct vector *vector, enum history_form form)
{
    static const uint8_t first[] = {8, 1};
    uint8_t all[256];
    char *bytes = NULL;
    size_t len = 0;
    struct history_writer writer;
    FILE *to = open_memstream(&bytes, &len);
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (uint8_t)i;
    history_writer_init(&writer, to, form, "shop");
    history_writer_begin(&writer, 4, THOLE_STR("order-17"));
    history_writer_record(&writer, 7, (thole_slice){first, sizeof first});
    history_writer_record(&writer, 12, THOLE_STR("\nend 1\n"));
    history_writer_record(&writer, 9007199254740993u, (thole_slice){NULL, 0});
    history_writer_end(&writer);
    history_writer_begin(&writer, 3, THOLE_STR("a.b/c:\xc3\xa4 \n"));
    history_writer_record(&writer, 1, (thole_slice){all, sizeof all});
    history_writer_end(&writer);
    CU_ASSERT_EQUAL(writer.totals.instances, 2);
    CU_ASSERT_EQUAL(writer.totals.records, 4);
    history_writer_release(&writer);
    (void)fclose(to);
    CU_ASSERT_PTR_NOT_NULL(memmem(vector->bytes.ptr, vector->bytes.len, bytes, len));
    free(bytes);
}

static void each_vector(void (*check)(const struct vector *vector))
{
    static char text[TEXT_BYTES];
    struct vector vector;
    thole_slice item;
    size_t at = 0, n = 0;
    FILE *file = fopen(FOLDER "vectors.json", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    size_t const len = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    for (; json_item((thole_slice){(const uint8_t *)text, len}, &at, &item); n++) {
        take_vector(item, &vector);
        check(&vector);
        buf_release(&vector.bytes);
        buf_release(&vector.said);
    }
    CU_ASSERT(n >= VECTORS_MIN);
}

static void test_here(void)
{
    each_vector(check_here);
}

static void test_there(void)
{
    struct buf command;
    if (!has_python) {
        fprintf(stderr, "\n  no python3: read_export.py is not run\n");
        return;
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    buf_init(&files, TEXT_BYTES);
    buf_init(&command, TEXT_BYTES);
    each_vector(write_file);
    buf_printf(&command, "python3 " FOLDER "read_export.py%s; code=$?; rm -r %s; exit $code",
               buf_cstr(&files), folder);
    told = popen(buf_cstr(&command), "r");
    each_vector(check_there);
    CU_ASSERT_EQUAL(WEXITSTATUS(pclose(told)), 1);
    buf_release(&command);
    buf_release(&files);
}

static void written(const struct vector *vector)
{
    if (strcmp(vector->name, "two histories, binary") == 0)
        check_written(vector, HISTORY_BINARY);
    else if (strcmp(vector->name, "two histories, jsonl") == 0)
        check_written(vector, HISTORY_JSONL);
}

static void test_written(void)
{
    each_vector(written);
}

static const struct thole_test tests[] = {
    {"this reader", test_here},
    {"read_export.py", test_there},
    {"the writer", test_written},
};

int main(void)
{
    has_python = WEXITSTATUS(system("python3 -c ''")) != SHELL_CANNOT;
    return thole_run_suite("export_vectors", tests, ARRAY_LEN(tests));
}
