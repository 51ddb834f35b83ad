/*
 * W3C Trace Context: the texts of the headers traceparent (version 00) and tracestate. thole makes no spans:
 * it passes them on as they are. Pure.
 */
#ifndef THOLE_TRACE_H
#define THOLE_TRACE_H
#include "thole/types.h"
#include <stdbool.h>

enum {
    TRACEPARENT_BYTES = 55,
    TRACESTATE_BYTES_MAX = 512,
    TRACE_ID_BYTES = 32,
    SPAN_ID_BYTES = 16,
};

struct trace {
    thole_slice parent; /* empty: there is none, nor a list */
    thole_slice list;   /* of the tracestate */
};

/* "00-" 32 digits "-" 16 digits "-" 2 digits: lower-case hexadecimal, neither id all zero. */
bool trace_parent_valid(thole_slice text);
/* At most 32 members KEY=VALUE with commas, and TRACESTATE_BYTES_MAX bytes. */
bool trace_state_valid(thole_slice text);
/* The part of @p given that may be passed on: all, the parent alone, or nothing. Borrows. */
struct trace trace_valid(const struct trace *given);
/* Of a valid parent. */
thole_slice trace_id(thole_slice parent);
thole_slice trace_span_id(thole_slice parent);
#endif
