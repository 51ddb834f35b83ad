/*
 * A CloudEvent that an instance emits, as a NATS message in one of the two content modes of the NATS protocol
 * binding. Pure.
 */
#ifndef THOLE_EMITTED_EVENT_H
#define THOLE_EMITTED_EVENT_H
#include "arena.h"
#include "connection.h"
#include "notices.h"

enum events_mode {
    EVENTS_MODE_BINARY,     /* the attributes are headers ce-*, the body is the data */
    EVENTS_MODE_STRUCTURED, /* the body is the whole event in the JSON format */
};
enum { EMITTED_HEADERS_MAX = 11 };

struct emitted_event {
    const char *subject, *message_id;
    struct header headers[EMITTED_HEADERS_MAX];
    size_t headers_len;
    thole_slice body; /* binary: the emission's data; all else is in the arena */
};
/* THOLE_INVALID: a name or an id that is none. THOLE_LIMIT, THOLE_NOMEM of the arena. */
THOLE_NODISCARD thole_status emitted_event_make(const char *ns, enum events_mode mode,
                                                const struct emission *emission, struct arena *arena,
                                                struct emitted_event *ret, thole_error *reterr);
/* Bytes that the arena must have room for, so that the status is never THOLE_LIMIT. */
size_t emitted_event_room(enum events_mode mode, const struct emission *emission);
#endif
