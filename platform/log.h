/*
 * Logging to stderr: one write(2) a line, logfmt for people and pipes of them, or one JSON object. Both have
 * the same members, in the same order: time (RFC 3339, UTC, milliseconds), level, program, area, the fields
 * that are known, msg. Thread-safe. Only programs log: library functions return statuses. Never give it a
 * secret or a payload.
 */
#ifndef THOLE_LOG_H
#define THOLE_LOG_H
#include "thole/types.h"
#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR = 0, LOG_LEVEL_WARN = 1, LOG_LEVEL_INFO = 2, LOG_LEVEL_DEBUG = 3 };
enum log_format {
    LOG_FORMAT_AUTO, /* logfmt when stderr is a terminal, JSON otherwise */
    LOG_FORMAT_LOGFMT,
    LOG_FORMAT_JSON
};

/* The subject of a line. A field that is 0 or empty is not known, and not written. */
struct log_fields {
    bool of_partition;
    uint32_t partition;
    thole_slice instance;
    uint64_t execution;
    thole_slice activity; /* the activity's name */
    uint64_t activity_id, try_number, attempt;
    thole_slice traceparent; /* valid: trace_id and span_id */
};

enum {
    LOG_LINE_BYTES_MAX = 4096, /* PIPE_BUF: lines of several processes in one pipe are not mixed */
    LOG_FIELDS_BYTES_MAX = 2048,
};

/* Before any thread starts. Default: INFO, logfmt. */
void log_configure(enum log_level level, enum log_format format, const char *program);
/* Like log_configure(); does nothing if the log has been configured before. */
void log_configure_once(enum log_level level, enum log_format format, const char *program);
/* Lines go there, without their ends, instead of to stderr. Before any thread starts. */
typedef void log_sink_fn(void *arg, int level, const char *line, size_t len);
void log_to(log_sink_fn *sink, void *arg);
/* @p area: "engine", "worker", "partition", … @p fields: NULL: none. Whatever the text has, it stays one
 * line, in UTF-8, of at most LOG_LINE_BYTES_MAX bytes; the text is cut, no field is. */
void log_line_of(enum log_level level, const char *area, const struct log_fields *fields, const char *fmt,
                 ...) THOLE_PRINTF(4, 5);
#define log_line(level, area, ...) log_line_of(level, area, NULL, __VA_ARGS__)
bool log_enabled(enum log_level level);
/* The fields as logfmt, each followed by a space, and a NUL. */
void log_fields_text(const struct log_fields *fields, char ret[LOG_FIELDS_BYTES_MAX]);

/* Fields for a call of log_line_of(). Execution 0: not known. */
#define LOG_PARTITION(p) (&(struct log_fields){.of_partition = true, .partition = (p)})
#define LOG_INSTANCE(p, id, number)                                                                          \
    (&(struct log_fields){.of_partition = true, .partition = (p), .instance = (id), .execution = (number)})
#endif
