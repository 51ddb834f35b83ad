/* The text of a log line for tests that replace log_line_of(): the fields as logfmt, followed by the text. */
#ifndef THOLE_TEST_LOGGED_H
#define THOLE_TEST_LOGGED_H
#include "log.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static inline void logged_text(char *ret, size_t cap, const struct log_fields *fields, const char *fmt,
                               va_list args) THOLE_PRINTF(4, 0);
static inline void logged_text(char *ret, size_t cap, const struct log_fields *fields, const char *fmt,
                               va_list args)
{
    char known[LOG_FIELDS_BYTES_MAX];
    log_fields_text(fields, known);
    size_t const at = (size_t)snprintf(ret, cap, "%s", known);
    if (at < cap)
        (void)vsnprintf(ret + at, cap - at, fmt, args);
}
#endif
