/*
 * Starts and events that a binder has sent, and that change nothing: the id is in use, of another message, or
 * the instance has ended. The engine says so in a live event, which may be lost. Each is logged, and kept
 * among the rejected messages of its rule.
 */
#ifndef THOLE_REFUSED_STARTS_H
#define THOLE_REFUSED_STARTS_H
#include "binder_lines.h"
#include "bindings.h"
#include "connection.h"
#include "message.h"
#include "requests.h"
#include <stdatomic.h>

struct refused_starts;
THOLE_NODISCARD thole_status refused_starts_open(struct connection *connection, struct requests *requests,
                                                 const char *ns, struct log_limits *lines,
                                                 atomic_uint_fast64_t *count, struct refused_starts **ret,
                                                 thole_error *reterr);
void refused_starts_close(struct refused_starts *refused); /* NULL-safe */
/* To be called before the start is sent; remembered while fewer than some thousands follow. */
void refused_starts_note(struct refused_starts *refused, const char *rule, const struct message *message,
                         const struct bound_view *view);
#endif
