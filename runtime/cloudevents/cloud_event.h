/*
 * CloudEvents 1.0 in NATS messages: binary mode (the attributes are headers ce-*, the body is the data) and
 * structured mode (Content-Type application/cloudevents+json, the body is the whole event), as the NATS
 * protocol binding and the JSON format say. Pure; every size has a limit; what is malformed is THOLE_INVALID
 * with a text for the sender.
 */
#ifndef THOLE_CLOUD_EVENT_H
#define THOLE_CLOUD_EVENT_H
#include "arena.h"
#include "buf.h"

enum {
    EVENT_HEADERS_MAX = 64,
    EVENT_ATTRIBUTES_MAX = 64,
    EVENT_ATTRIBUTE_NAME_MAX = 64,
    EVENT_ATTRIBUTE_MAX = 4096, /* bytes of a value */
};

struct event_header {
    thole_slice name, value;
};
/* A message as it came from a stream; all is borrowed. */
struct event_message {
    thole_slice subject, stream, body;
    const struct event_header *headers; /* the first of several with the same name counts */
    size_t headers_len;
    uint64_t sequence, stored_ns; /* in the stream */
};
/* The value of a header, upper and lower case alike; empty: there is none. */
thole_slice event_message_header(const struct event_message *message, const char *name);

struct cloud_attribute {
    thole_slice name, value;
};
struct cloud_event {
    bool present;                             /* else the message is no CloudEvent, and `data` its body */
    const struct cloud_attribute *attributes; /* all of them, specversion first */
    size_t attributes_len;
    thole_slice data;
    bool data_is_json; /* the data is one JSON value */
};
/* Borrows from the message, and from @p arena what had escapes. THOLE_INVALID: it says that it is a
 * CloudEvent and is none. THOLE_LIMIT, THOLE_NOMEM of the arena. */
THOLE_NODISCARD thole_status cloud_event_read(const struct event_message *message, struct arena *arena,
                                              struct cloud_event *ret, thole_error *reterr);
/* Whether there can be an attribute with that name. */
bool cloud_event_name_is_good(thole_slice name);
/* Empty: it has none. */
thole_slice cloud_event_attribute(const struct cloud_event *event, thole_slice name);
/* The event in the JSON format: data that is JSON as such, other text as a string, other bytes in base64. */
void cloud_event_write(const struct cloud_event *event, struct buf *to);
/* A value as a header of the binary mode has it: space, `"`, `%` and all but printable ASCII escaped. */
void cloud_event_header_value(thole_slice value, struct buf *to);

#endif
