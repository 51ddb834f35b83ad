/* Log lines: one write each, nothing in them that breaks a line, a terminal or a JSON parser. */
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

static void test_text(void)
{
    log_configure(LOG_LEVEL_INFO, false, "shop");
    catch_stderr();
    log_line(LOG_LEVEL_INFO, "engine", "hello %d", 7);
    log_line(LOG_LEVEL_DEBUG, "engine", "not shown");
    const char *line = caught();
    CHECK_STR("text", after_time(line, TIME_LEN), "info  engine: hello 7\n");
    catch_stderr();
    log_line(LOG_LEVEL_ERROR, "engine", "a\nb\x1b[31m\x7f \xc3\xa9");
    line = caught();
    CHECK_STR("escapes", after_time(line, TIME_LEN), "error engine: a\\x0ab\\x1b[31m\\x7f \xc3\xa9\n");
    CU_ASSERT_FALSE(log_enabled(LOG_LEVEL_DEBUG));
    CU_ASSERT(log_enabled(LOG_LEVEL_WARN));
}

static void test_json(void)
{
    log_configure(LOG_LEVEL_DEBUG, true, "my \"shop\"");
    catch_stderr();
    log_line(LOG_LEVEL_DEBUG, "worker", "say \"hi\"\\\n\xc3\xa9");
    const char *line = caught();
    CHECK_STR("json", after_time(line, strlen("{\"time\":\"") + TIME_LEN - 1 + strlen("\",")),
              "\"level\":\"debug\",\"program\":\"my__shop_\",\"area\":\"worker\","
              "\"text\":\"say \\\"hi\\\"\\\\\\u000a\xc3\xa9\"}\n");
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
    memset(text, '\n', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    catch_stderr();
    log_line(LOG_LEVEL_INFO, "engine", "%s", text);
    const char *line = caught();
    CU_ASSERT(strlen(line) <= LINE_BYTES_MAX);
    CU_ASSERT_EQUAL(strcmp(line + strlen(line) - 9, "\\u000a\"}\n"), 0);
}

static const struct thole_test tests[] = {
    {"text", test_text},
    {"json", test_json},
    {"long_lines", test_long_lines},
};
THOLE_TEST_MAIN("log", tests)
