/*
 * Logging to stderr: one write(2) a line, text for people or one JSON object a line. Thread-safe. Only
 * programs log: library functions return statuses. Never give it a secret or a payload.
 */
#ifndef THOLE_LOG_H
#define THOLE_LOG_H
#include "thole/types.h"

enum log_level { LOG_LEVEL_ERROR = 0, LOG_LEVEL_WARN = 1, LOG_LEVEL_INFO = 2, LOG_LEVEL_DEBUG = 3 };

/* Before any thread starts. Default: INFO, text. */
void log_configure(enum log_level level, bool json, const char *program);
/* @p area: "engine", "worker", "partition", … Control bytes in the text are escaped. Cut at 2 KiB. */
void log_line(enum log_level level, const char *area, const char *fmt, ...) THOLE_PRINTF(3, 4);
bool log_enabled(enum log_level level);
#endif
