/* Log lines: one write each, nothing in them that breaks a line, a terminal or a JSON parser. */
#include "json.h"
#include "log.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <unistd.h>

enum { OUT_BYTES = 8192, LINE_BYTES_MAX = 2048, TIME_LEN = 25 }; /* "2026-11-21T03:46:41.521Z " */

static char out[OUT_BYTES];

/* stderr goes into a file from here to caught(). */
static FILE *file;
static int real_stderr;

static void catch_stderr(void)
{
    file = tmpfile();
    real_stderr = dup(STDERR_FILENO);
    (void)dup2(fileno(file), STDERR_FILENO);
}

static const char *caught(void)
{
    (void)dup2(real_stderr, STDERR_FILENO);
    (void)close(real_stderr);
    rewind(file);
    out[fread(out, 1, sizeof out - 1, file)] = '\0';
    (void)fclose(file);
    return out;
}

/* The line without its time, which is checked for its length. */
static const char *after_time(const char *line, size_t skip)
{
    return strlen(line) > skip ? line + skip : line;
}

static size_t blocks; /* taken from the heap since the last reset */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    blocks++;
    return __real_malloc(size);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    blocks++;
    return __real_calloc(n, size);
}

void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size)
{
    blocks++;
    return __real_realloc(block, size);
}

static void test_text(void)
{
    log_configure(LOG_LEVEL_INFO, false, "shop");
    catch_stderr();
    log_line(LOG_LEVEL_INFO, "engine", "hello %d", 7);
    log_line(LOG_LEVEL_DEBUG, "engine", "not shown");
    const char *line = caught();
    CHECK_STR("text", after_time(line, TIME_LEN), "info  engine: hello 7\n");
    catch_stderr();
    log_line(LOG_LEVEL_ERROR, "engine", "a\nb\x1b[31m\x7f \xc3\xa9\xc2\x9b\xff\xe2\x82");
    line = caught();
    CHECK_STR("escapes", after_time(line, TIME_LEN),
              "error engine: a\\x0ab\\x1b[31m\\x7f \xc3\xa9\\xc2\\x9b\\xff\\xe2\\x82\n");
    CU_ASSERT_FALSE(log_enabled(LOG_LEVEL_DEBUG));
    CU_ASSERT(log_enabled(LOG_LEVEL_WARN));
}

static void test_json(void)
{
    log_configure(LOG_LEVEL_DEBUG, true, "my \"shop\"");
    catch_stderr();
    log_line(LOG_LEVEL_DEBUG, "worker", "say \"hi\"\\\n\x01\x7f\xc3\xa9\xc2\x9b\xff\xed\xa0\x80.");
    const char *line = caught();
    CHECK_STR("json", after_time(line, strlen("{\"time\":\"") + TIME_LEN - 1 + strlen("\",")),
              "\"level\":\"debug\",\"program\":\"my__shop_\",\"area\":\"worker\","
              "\"text\":\"say \\\"hi\\\"\\\\\\n\\u0001\\u007f\xc3\xa9\\u009b"
              "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.\"}\n");
    catch_stderr();
    log_line(LOG_LEVEL_INFO, "an area \"with\" quotes, longer than 32 bytes", "x");
    line = caught();
    CU_ASSERT_PTR_NOT_NULL(
        strstr(line, "\"area\":\"an area \\\"with\\\" quotes, longer th\",\"text\":\"x\"}\n"));
}

/* Neither an escape nor a character is cut in two, and the line is closed. */
static void test_long_lines(void)
{
    char text[4096];
    for (int odd = 0; odd < 2; odd++) {
        memset(text, 'x', sizeof text);
        for (size_t i = (size_t)odd; i + 2 < sizeof text; i += 2)
            memcpy(text + i, "\xc3\xa9", 2);
        text[sizeof text - 2] = text[sizeof text - 1] = '\0';
        log_configure(LOG_LEVEL_INFO, true, "shop");
        catch_stderr();
        log_line(LOG_LEVEL_INFO, "engine", "%s", text);
        const char *line = caught();
        size_t const len = strlen(line);
        CU_ASSERT(len <= LINE_BYTES_MAX && len > 1000);
        CU_ASSERT_EQUAL(strcmp(line + len - 3, "\"}\n"), 0);
        CU_ASSERT((line[len - 4] & 0x80) == 0 || (unsigned char)line[len - 4] == 0xa9);
    }
    memset(text, '\x01', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    catch_stderr();
    log_line(LOG_LEVEL_INFO, "engine", "%s", text);
    const char *line = caught();
    CU_ASSERT(strlen(line) <= LINE_BYTES_MAX);
    CU_ASSERT_EQUAL(strcmp(line + strlen(line) - 9, "\\u0001\"}\n"), 0);
    CU_ASSERT(strlen(line) > LINE_BYTES_MAX - 8); /* nothing is left free that another escape fits into */
    log_configure(LOG_LEVEL_INFO, false, "shop");
    catch_stderr();
    log_line(LOG_LEVEL_INFO, "engine", "%s", text);
    line = caught();
    CU_ASSERT(strlen(line) <= LINE_BYTES_MAX && strlen(line) > LINE_BYTES_MAX - 8);
    CU_ASSERT_EQUAL(strcmp(line + strlen(line) - 5, "\\x01\n"), 0);
}

/* Lines also come from where nothing can be allocated. */
static void test_no_allocation(void)
{
    char text[1600];
    memset(text, '"', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int json = 0; json < 2; json++) {
        log_configure(LOG_LEVEL_INFO, json != 0, "shop");
        catch_stderr();
        size_t const before = blocks;
        log_line(LOG_LEVEL_INFO, "engine", "%s\xff", text);
        size_t const after = blocks;
        CU_ASSERT(strlen(caught()) > 1000);
        CU_ASSERT_EQUAL(after, before);
    }
    struct json json;
    struct buf buf;
    buf_init(&buf, 16); /* the counter counts */
    json_to_buf(&json, &buf);
    json_null(&json);
    buf_release(&buf);
    CU_ASSERT(blocks > 0);
}

static const struct thole_test tests[] = {
    {"text", test_text},
    {"json", test_json},
    {"long_lines", test_long_lines},
    {"no_allocation", test_no_allocation},
};
THOLE_TEST_MAIN("log", tests)
