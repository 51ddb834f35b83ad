/*
 * A CloudEvent that an instance emits, as a NATS message: binary mode, with the attributes as headers ce-*.
 * Pure.
 */
#ifndef THOLE_EMITTED_EVENT_H
#define THOLE_EMITTED_EVENT_H
#include "arena.h"
#include "connection.h"
#include "notices.h"

enum { EMITTED_HEADERS_MAX = 11 };

struct emitted_event { /* all but the body is in the arena */
    const char *subject, *message_id;
    struct header headers[EMITTED_HEADERS_MAX];
    size_t headers_len;
    thole_slice body; /* the emission's */
};
/* THOLE_INVALID: a name or an id that is none. THOLE_LIMIT, THOLE_NOMEM of the arena. */
THOLE_NODISCARD thole_status emitted_event_make(const char *ns, const struct emission *emission,
                                                struct arena *arena, struct emitted_event *ret,
                                                thole_error *reterr);
#endif
