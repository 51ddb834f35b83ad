/* The sender of a message, read from its headers. */
#ifndef THOLE_SENDER_HEADERS_H
#define THOLE_SENDER_HEADERS_H
#include "connection.h"
#include "event.h"

/* Borrows from the delivery. A name that is too long, or no UTF-8, is not taken, nor is a trace that is not
 * valid: @p ret_trace_ignored, which may be NULL. */
struct actor sender_headers_read(const struct delivery *delivery, bool *ret_trace_ignored);
#endif
