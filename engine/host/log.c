#include "log.h"
#include "clock.h"
#include "json.h"
#include "utf8.h"
#include <assert.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_BYTES = 2048,
    TEXT_BYTES = 1536,
    TIME_BYTES = 40,
    PROGRAM_BYTES = 64,
    AREA_BYTES = 32,
    PIECE_BYTES = 20, /* a character of four bytes as \xNN, and a NUL */
};

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

/* One character of the text, or one byte that is none, so that a line stays a line and steers no terminal. */
static size_t plain_character(thole_slice rest, char ret[PIECE_BYTES], size_t *ret_taken)
{
    size_t const n = utf8_character(rest);
    *ret_taken = n == 0 ? 1 : n;
    if (n > 0 && !utf8_is_control(rest.ptr, n)) {
        memcpy(ret, rest.ptr, n);
        return n;
    }
    size_t len = 0;
    for (size_t i = 0; i < *ret_taken; i++)
        len += (size_t)snprintf(ret + len, PIECE_BYTES - len, "\\x%02x", rest.ptr[i]);
    return len;
}

/* @return the length of the line, which always has its line end. */
static size_t compose_plain(char line[LINE_BYTES], const char *when, enum log_level level, const char *area,
                            thole_slice text)
{
    char piece[PIECE_BYTES];
    size_t const cap = LINE_BYTES - 2;
    size_t at = (size_t)snprintf(line, cap, "%s %-5s %.*s: ", when, level_name(level), AREA_BYTES, area);
    for (size_t i = 0, taken; i < text.len; i += taken) {
        size_t const n = plain_character((thole_slice){text.ptr + i, text.len - i}, piece, &taken);
        if (n > cap - at)
            break;
        memcpy(line + at, piece, n);
        at += n;
    }
    line[at++] = '\n';
    return at;
}

/* In memory of its own, as a line may come from where nothing can be allocated. */
static size_t compose_json(char line[LINE_BYTES], const char *when, enum log_level level, const char *area,
                           thole_slice text)
{
    struct json json;
    struct json_room room = {.bytes = line, .cap = LINE_BYTES};
    json_to_room(&json, &room);
    json.lines = true;
    json_object(&json);
    json_member_text(&json, "time", when);
    json_member_text(&json, "level", level_name(level));
    json_member_text(&json, "program", configured_program);
    json_member(&json, "area", (thole_slice){(const uint8_t *)area, strnlen(area, AREA_BYTES)});
    json_key(&json, "text");
    json_string_within(&json, text, room.cap - room.len - strlen("\"\"}\n"));
    json_end(&json);
    assert(!room.cut);
    return room.len;
}

void log_line(enum log_level level, const char *area, const char *fmt, ...)
{
    char text[TEXT_BYTES], line[LINE_BYTES], when[TIME_BYTES];
    va_list args;
    if (!log_enabled(level))
        return;
    va_start(args, fmt);
    int const n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n >= (int)sizeof text)
        text[whole_characters(text, sizeof text - 1)] = '\0';
    time_text(when);
    size_t const len =
        (configured_json ? compose_json : compose_plain)(line, when, level, area, thole_slice_from(text));
    ssize_t const written = write(STDERR_FILENO, line, len);
    (void)written; /* there is no other place to report that the log cannot be written */
}
