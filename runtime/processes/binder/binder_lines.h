/* The lines of a binder's log that others cause, with messages or with rules: log_limit.h. */
#ifndef THOLE_BINDER_LINES_H
#define THOLE_BINDER_LINES_H
#include "log_limit.h"

enum binder_line {
    BINDER_LINE_REJECTED,
    BINDER_LINE_CHANGED,    /* a rule begins, or is gone */
    BINDER_LINE_NOT_SERVED, /* a rule, or its consumer */
    BINDER_LINES,
};
extern const struct log_kind binder_lines[BINDER_LINES];
#endif
