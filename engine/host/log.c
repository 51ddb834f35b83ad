#include "log.h"
#include "buf.h"
#include "clock.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 2048, TEXT_BYTES = 1536, TIME_BYTES = 40, PROGRAM_BYTES = 64 };

/* Written once, before any thread starts; only the level is read without that promise. */
static atomic_int configured_level = LOG_LEVEL_INFO;
static bool configured_json;
static char configured_program[PROGRAM_BYTES] = "thole";

void log_configure(enum log_level level, bool json, const char *program)
{
    atomic_store(&configured_level, (int)level);
    configured_json = json;
    (void)snprintf(configured_program, sizeof configured_program, "%s", program);
    for (char *c = configured_program; *c != '\0'; c++)
        if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f || *c == '"' || *c == '\\')
            *c = '_';
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

static void time_text(char ret[TIME_BYTES])
{
    uint64_t const now_ms = clock_wall_ms();
    time_t const now = (time_t)(now_ms / 1000);
    struct tm parts;
    char seconds[24];
    (void)gmtime_r(&now, &parts);
    (void)strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(ret, TIME_BYTES, "%s.%03ldZ", seconds, (long)(now_ms % 1000));
}

/* One byte of the text, so that a line stays a line and a terminal is told nothing. */
static size_t escape(unsigned char byte, bool json, char ret[8])
{
    if (json && (byte == '"' || byte == '\\'))
        return (size_t)snprintf(ret, 8, "\\%c", byte);
    if (byte >= 0x20 && byte != 0x7f) {
        ret[0] = (char)byte;
        return 1;
    }
    return (size_t)snprintf(ret, 8, json ? "\\u%04x" : "\\x%02x", byte);
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

static size_t append_escaped(char *line, size_t at, size_t cap, const char *text, bool json)
{
    char one[8];
    for (; *text != '\0'; text++) {
        size_t const n = escape((unsigned char)*text, json, one);
        if (at + n > cap)
            return whole_characters(line, at);
        memcpy(line + at, one, n);
        at += n;
    }
    return at;
}

static size_t append(char *line, size_t at, size_t cap, const char *text)
{
    size_t const len = strlen(text), room = cap - at;
    memcpy(line + at, text, len < room ? len : room);
    return at + (len < room ? len : room);
}

/* Room for what closes the line is kept back from the text. */
static size_t compose(char line[LINE_BYTES], enum log_level level, const char *area, const char *text)
{
    size_t const cap = LINE_BYTES - 4;
    char head[TIME_BYTES + PROGRAM_BYTES + 128], when[TIME_BYTES];
    time_text(when);
    if (configured_json)
        (void)snprintf(head, sizeof head,
                       "{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%s\",\"area\":\"%.32s\",\"text\":\"",
                       when, level_name(level), configured_program, area);
    else
        (void)snprintf(head, sizeof head, "%s %-5s %.32s: ", when, level_name(level), area);
    size_t at = append(line, 0, cap, head);
    at = append_escaped(line, at, cap, text, configured_json);
    return append(line, at, LINE_BYTES, configured_json ? "\"}\n" : "\n");
}

void log_line(enum log_level level, const char *area, const char *fmt, ...)
{
    char text[TEXT_BYTES], line[LINE_BYTES];
    va_list args;
    if (!log_enabled(level))
        return;
    va_start(args, fmt);
    int const n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n >= (int)sizeof text)
        text[whole_characters(text, sizeof text - 1)] = '\0';
    size_t const len = compose(line, level, area, text);
    ssize_t const written = write(STDERR_FILENO, line, len);
    (void)written; /* a log that cannot be written has nobody to tell */
}
