#include "log.h"
#include "clock.h"
#include "json.h"
#include "trace.h"
#include <assert.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TEXT_BYTES = 2048,
    TIME_BYTES = 40,
    PROGRAM_BYTES = 64,
    AREA_BYTES = 32,
    AROUND_MSG_BYTES = 11, /* the key, the quotes and the end of the line */
    ESCAPE_BYTES = 6,      /* the longest escape of one byte */
    ID_BYTES = ESCAPE_BYTES * THOLE_ID_BYTES_MAX,
    NAME_BYTES = ESCAPE_BYTES * THOLE_NAME_BYTES_MAX,
};

/* Written once, before any thread starts; only the level is read without that promise. */
static atomic_int configured_level = LOG_LEVEL_INFO;
static enum log_format configured_format = LOG_FORMAT_LOGFMT;
static char configured_program[PROGRAM_BYTES] = "thole";
static atomic_bool is_configured;
static log_sink_fn *configured_sink; /* NULL: stderr */
static void *sink_arg;

void log_configure(enum log_level level, enum log_format format, const char *program)
{
    atomic_store(&is_configured, true);
    atomic_store(&configured_level, (int)level);
    if (format == LOG_FORMAT_AUTO)
        format = isatty(STDERR_FILENO) ? LOG_FORMAT_LOGFMT : LOG_FORMAT_JSON;
    configured_format = format;
    (void)snprintf(configured_program, sizeof configured_program, "%s", program);
    for (char *c = configured_program; *c != '\0'; c++)
        if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f || *c == '"' || *c == '\\')
            *c = '_';
}

void log_configure_once(enum log_level level, enum log_format format, const char *program)
{
    if (!atomic_load(&is_configured))
        log_configure(level, format, program);
}

void log_to(log_sink_fn *sink, void *arg)
{
    configured_sink = sink;
    sink_arg = arg;
}

bool log_enabled(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&configured_level, memory_order_relaxed);
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR: return "error";
    case LOG_LEVEL_WARN: return "warn";
    case LOG_LEVEL_INFO: return "info";
    case LOG_LEVEL_DEBUG: return "debug";
    }
    return "unknown";
}

static void log_time_text(char ret[TIME_BYTES])
{
    uint64_t const now_ms = clock_wall_ms();
    time_t const now = (time_t)(now_ms / 1000);
    struct tm parts;
    char seconds[24];
    (void)gmtime_r(&now, &parts);
    (void)strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(ret, TIME_BYTES, "%s.%03ldZ", seconds, (long)(now_ms % 1000));
}

/* The length of a text that was cut at @p len bytes, less the UTF-8 character that was cut in two, if one
 * was. */
static size_t whole_characters(const char *text, size_t len)
{
    size_t tail = 0;
    while (tail < 3 && tail + 1 < len && ((unsigned char)text[len - 1 - tail] & 0xc0) == 0x80)
        tail++;
    unsigned const head = len > 0 ? (unsigned char)text[len - 1 - tail] : 0;
    size_t const wanted = head >= 0xf0 ? 3 : head >= 0xe0 ? 2 : head >= 0xc0 ? 1 : tail;
    return wanted == tail ? len : len - 1 - tail;
}

/* A line in one of the formats, in memory of its own: a line may come from where nothing can be allocated. */
struct line {
    bool logfmt;
    struct json json;
    struct json_room room;
};

static void log_put(struct line *line, const void *bytes, size_t len)
{
    line->json.put(line->json.to, bytes, len);
}

static void log_key(struct line *line, const char *name)
{
    if (!line->logfmt) {
        json_key(&line->json, name);
        return;
    }
    if (line->room.len > 0)
        log_put(line, " ", 1);
    json_to_room(&line->json, &line->room); /* each value is a document of its own */
    log_put(line, name, strlen(name));
    log_put(line, "=", 1);
}

/* Go's slog, kr/logfmt and their like read such a value without quotes. */
static bool is_bare(thole_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= 0x20 || text.ptr[i] >= 0x7f || memchr("=\"\\", text.ptr[i], 3) != NULL)
            return false;
    return text.len > 0;
}

/* At most @p bytes_max of it, with its escapes: those of JSON, which all readers of logfmt know. */
static void log_member(struct line *line, const char *name, thole_slice text, size_t bytes_max)
{
    log_key(line, name);
    if (line->logfmt && text.len <= bytes_max && is_bare(text))
        log_put(line, text.ptr, text.len);
    else
        json_string_within(&line->json, text, bytes_max);
}

static void log_member_text(struct line *line, const char *name, const char *text)
{
    log_member(line, name, thole_slice_from(text), NAME_BYTES);
}

static void log_member_number(struct line *line, const char *name, uint64_t value)
{
    log_key(line, name);
    json_number(&line->json, value);
}

static void log_field_text(struct line *line, const char *name, thole_slice text, size_t bytes_max)
{
    if (text.len > 0)
        log_member(line, name, text, bytes_max);
}

static void field_number(struct line *line, const char *name, uint64_t value)
{
    if (value > 0)
        log_member_number(line, name, value);
}

static void compose_fields(struct line *line, const struct log_fields *fields)
{
    if (fields->of_partition)
        log_member_number(line, "partition", fields->partition);
    log_field_text(line, "instance", fields->instance, ID_BYTES);
    field_number(line, "execution", fields->execution);
    log_field_text(line, "activity", fields->activity, NAME_BYTES);
    field_number(line, "activity_id", fields->activity_id);
    field_number(line, "try", fields->try_number);
    field_number(line, "attempt", fields->attempt);
    if (fields->traceparent.len == 0)
        return;
    log_field_text(line, "trace_id", trace_id(fields->traceparent), NAME_BYTES);
    log_field_text(line, "span_id", trace_span_id(fields->traceparent), NAME_BYTES);
}

static void begin_line(struct line *line, bool logfmt, char *bytes, size_t cap)
{
    line->logfmt = logfmt;
    line->room = (struct json_room){.bytes = bytes, .cap = cap};
    json_to_room(&line->json, &line->room);
    line->json.lines = !logfmt;
}

/* @return its length; it always has its line end. */
static size_t log_compose(char bytes[LOG_LINE_BYTES_MAX], enum log_level level, const char *area,
                          const struct log_fields *fields, thole_slice text)
{
    struct line line;
    char when[TIME_BYTES];
    log_time_text(when);
    begin_line(&line, configured_format == LOG_FORMAT_LOGFMT, bytes, LOG_LINE_BYTES_MAX);
    if (!line.logfmt)
        json_object(&line.json);
    log_member_text(&line, "time", when);
    log_member_text(&line, "level", level_name(level));
    log_member_text(&line, "program", configured_program);
    log_member(&line, "area", (thole_slice){(const uint8_t *)area, strnlen(area, AREA_BYTES)}, NAME_BYTES);
    if (fields != NULL)
        compose_fields(&line, fields);
    log_member(&line, "msg", text, line.room.cap - line.room.len - AROUND_MSG_BYTES);
    if (line.logfmt)
        log_put(&line, "\n", 1);
    else
        json_end(&line.json);
    assert(!line.room.cut);
    return line.room.len;
}

void log_fields_text(const struct log_fields *fields, char ret[LOG_FIELDS_BYTES_MAX])
{
    struct line line;
    begin_line(&line, true, ret, LOG_FIELDS_BYTES_MAX - 2);
    if (fields != NULL)
        compose_fields(&line, fields);
    memcpy(ret + line.room.len, " ", 2);
    if (line.room.len == 0)
        ret[0] = '\0';
}

void log_line_of(enum log_level level, const char *area, const struct log_fields *fields, const char *fmt,
                 ...)
{
    char text[TEXT_BYTES], line[LOG_LINE_BYTES_MAX];
    va_list args;
    if (!log_enabled(level))
        return;
    va_start(args, fmt);
    int const n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0)
        text[0] = '\0';
    if (n >= (int)sizeof text)
        text[whole_characters(text, sizeof text - 1)] = '\0';
    size_t const len = log_compose(line, level, area, fields, thole_slice_from(text));
    if (configured_sink != NULL) {
        configured_sink(sink_arg, (int)level, line, len - 1);
        return;
    }
    ssize_t const written = write(STDERR_FILENO, line, len);
    (void)written; /* there is no other place to report that the log cannot be written */
}
