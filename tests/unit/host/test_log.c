/* Log lines: one write each, nothing in them that breaks a line, a terminal or a JSON parser. */
#include "json.h"
#include "log.h"
#include "thole_cunit.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { OUT_BYTES = 16384, TIME_LEN = 25 }; /* "2026-11-21T03:46:41.521Z " */

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

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
static struct log_fields const all_fields = {
    .of_partition = true,
    .partition = 0,
    .instance = {(const uint8_t *)"order 7 \"x\"", 11},
    .execution = 2,
    .activity = {(const uint8_t *)"charge", 6},
    .activity_id = 9,
    .try_number = 3,
    .attempt = 4,
    .traceparent = {(const uint8_t *)"00-" TRACE "-" SPAN "-01", 55}};

static void test_logfmt(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"serving", "serving"},
        {"hello 7", "\"hello 7\""},
        {"a=b", "\"a=b\""},
        {"say \"hi\"", "\"say \\\"hi\\\"\""},
        {"c:\\x", "\"c:\\\\x\""},
        {"", "\"\""},
        {"\xc3\xa9", "\"\xc3\xa9\""},
        {"a\nb\r\t\x1b[31m\x7f\xc2\x9b", "\"a\\nb\\r\\t\\u001b[31m\\u007f\\u009b\""},
        {"\xff\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    char want[256];
    const char *line;
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, "shop");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        catch_stderr();
        log_line(LOG_LEVEL_WARN, "engine", "%s", rows[i].text);
        log_line(LOG_LEVEL_DEBUG, "engine", "not shown");
        line = caught();
        CU_ASSERT_EQUAL(strncmp(line, "time=2", 6), 0);
        (void)snprintf(want, sizeof want, "level=warn program=shop area=engine msg=%s\n", rows[i].want);
        CHECK_STR(rows[i].want, after_time(line, strlen("time=") + TIME_LEN), want);
    }
    catch_stderr();
    log_line_of(LOG_LEVEL_INFO, "worker", &all_fields, "cancelled");
    line = caught();
    CHECK_STR("fields", after_time(line, strlen("time=") + TIME_LEN),
              "level=info program=shop area=worker partition=0 instance=\"order 7 \\\"x\\\"\" execution=2 "
              "activity=charge activity_id=9 try=3 attempt=4 trace_id=" TRACE " span_id=" SPAN
              " msg=cancelled\n");
    CU_ASSERT_FALSE(log_enabled(LOG_LEVEL_DEBUG));
    CU_ASSERT(log_enabled(LOG_LEVEL_WARN));
}

static void test_json(void)
{
    log_configure(LOG_LEVEL_DEBUG, LOG_FORMAT_JSON, "my \"shop\"");
    catch_stderr();
    log_line(LOG_LEVEL_DEBUG, "worker", "say \"hi\"\\\n\x01\x7f\xc3\xa9\xc2\x9b\xff\xed\xa0\x80.");
    const char *line = caught();
    CU_ASSERT_EQUAL(strncmp(line, "{\"time\":\"2", 10), 0);
    CHECK_STR("json", after_time(line, strlen("{\"time\":\"") + TIME_LEN - 1 + strlen("\",")),
              "\"level\":\"debug\",\"program\":\"my__shop_\",\"area\":\"worker\","
              "\"msg\":\"say \\\"hi\\\"\\\\\\n\\u0001\\u007f\xc3\xa9\\u009b"
              "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.\"}\n");
    catch_stderr();
    log_line_of(LOG_LEVEL_INFO, "worker", &all_fields, "cancelled");
    line = caught();
    CHECK_STR("fields", strstr(line, "\"area\""),
              "\"area\":\"worker\",\"partition\":0,\"instance\":\"order 7 \\\"x\\\"\",\"execution\":2,"
              "\"activity\":\"charge\",\"activity_id\":9,\"try\":3,\"attempt\":4,\"trace_id\":\"" TRACE
              "\",\"span_id\":\"" SPAN "\",\"msg\":\"cancelled\"}\n");
    catch_stderr();
    log_line(LOG_LEVEL_INFO, "an area \"with\" quotes, longer than 32 bytes", "x");
    line = caught();
    CU_ASSERT_PTR_NOT_NULL(
        strstr(line, "\"area\":\"an area \\\"with\\\" quotes, longer th\",\"msg\":\"x\"}\n"));
}

/* logfmt for who looks at a terminal, JSON for what collects. */
static void test_auto(void)
{
    int const master = posix_openpt(O_RDWR | O_NOCTTY);
    CU_ASSERT_FATAL(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int const terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    CU_ASSERT_FATAL(terminal >= 0);
    int const before = dup(STDERR_FILENO);
    (void)dup2(terminal, STDERR_FILENO);
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_AUTO, "shop");
    log_line(LOG_LEVEL_INFO, "engine", "serving");
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
    char line[512];
    ssize_t const n = read(master, line, sizeof line - 1);
    line[n > 0 ? n : 0] = '\0';
    CHECK_STR("terminal", after_time(line, strlen("time=") + TIME_LEN),
              "level=info program=shop area=engine msg=serving\r\n"); /* the terminal's own line end */
    (void)close(terminal);
    (void)close(master);
    catch_stderr();
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_AUTO, "shop");
    log_line(LOG_LEVEL_INFO, "engine", "serving");
    const char *const collected = caught();
    CHECK_STR("file", strstr(collected, "\"msg\""), "\"msg\":\"serving\"}\n");
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
        log_configure(LOG_LEVEL_INFO, LOG_FORMAT_JSON, "shop");
        catch_stderr();
        log_line(LOG_LEVEL_INFO, "engine", "%s", text);
        const char *line = caught();
        size_t const len = strlen(line);
        CU_ASSERT(len <= LOG_LINE_BYTES_MAX && len > 1000);
        CU_ASSERT_EQUAL(strcmp(line + len - 3, "\"}\n"), 0);
        CU_ASSERT((line[len - 4] & 0x80) == 0 || (unsigned char)line[len - 4] == 0xa9);
    }
    memset(text, '\x01', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    catch_stderr();
    log_line(LOG_LEVEL_INFO, "engine", "%s", text);
    const char *line = caught();
    CU_ASSERT(strlen(line) <= LOG_LINE_BYTES_MAX);
    CU_ASSERT_EQUAL(strcmp(line + strlen(line) - 9, "\\u0001\"}\n"), 0);
    CU_ASSERT(strlen(line) >
              LOG_LINE_BYTES_MAX - 12); /* nothing is left free that another escape fits into */
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, "shop");
    catch_stderr();
    log_line(LOG_LEVEL_INFO, "engine", "%s", text);
    line = caught();
    CU_ASSERT(strlen(line) <= LOG_LINE_BYTES_MAX && strlen(line) > LOG_LINE_BYTES_MAX - 12);
    CU_ASSERT_EQUAL(strcmp(line + strlen(line) - 8, "\\u0001\"\n"), 0);
}

/* Ids of the greatest length, all of control bytes; and a message in a queue may say anything. */
static void test_long_fields(void)
{
    static char id[THOLE_ID_BYTES_MAX], name[8192], text[4096];
    memset(id, 1, sizeof id);
    memset(name, 'n', sizeof name);
    memset(text, 2, sizeof text - 1);
    struct log_fields const fields = {.of_partition = true,
                                      .partition = UINT32_MAX,
                                      .instance = {(const uint8_t *)id, sizeof id},
                                      .execution = UINT64_MAX,
                                      .activity = {(const uint8_t *)name, sizeof name},
                                      .activity_id = UINT64_MAX,
                                      .try_number = UINT64_MAX,
                                      .attempt = UINT64_MAX,
                                      .traceparent = all_fields.traceparent};
    char known[LOG_FIELDS_BYTES_MAX];
    for (int json = 0; json < 2; json++) {
        log_configure(LOG_LEVEL_INFO, json != 0 ? LOG_FORMAT_JSON : LOG_FORMAT_LOGFMT, "shop");
        catch_stderr();
        log_line_of(LOG_LEVEL_INFO, "engine", &fields, "%s", text);
        const char *const line = caught();
        const char *const end = json != 0 ? "\\u0002\"}\n" : "\\u0002\"\n";
        CU_ASSERT(strlen(line) <= LOG_LINE_BYTES_MAX && strlen(line) > LOG_LINE_BYTES_MAX - 16);
        CHECK_STR("end", line + strlen(line) - strlen(end), end);
        CU_ASSERT_PTR_EQUAL(strchr(line, '\n'), line + strlen(line) - 1);
        size_t ones = 0;
        for (const char *at = line; (at = strstr(at, "\\u0001")) != NULL; at++)
            ones++;
        CU_ASSERT_EQUAL(ones, THOLE_ID_BYTES_MAX);
    }
    log_fields_text(&fields, known);
    CU_ASSERT_PTR_NOT_NULL(strstr(known, " attempt=18446744073709551615 "));
    log_fields_text(NULL, known);
    CHECK_STR("none", known, "");
}

/* Lines also come from where nothing can be allocated. */
static void test_no_allocation(void)
{
    char text[1600];
    memset(text, '"', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int json = 0; json < 2; json++) {
        log_configure(LOG_LEVEL_INFO, json != 0 ? LOG_FORMAT_JSON : LOG_FORMAT_LOGFMT, "shop");
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
    {"logfmt", test_logfmt},
    {"json", test_json},
    {"auto", test_auto},
    {"long_lines", test_long_lines},
    {"long_fields", test_long_fields},
    {"no_allocation", test_no_allocation},
};
THOLE_TEST_MAIN("log", tests)
