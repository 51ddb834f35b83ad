/*
 * References within a record: a payload that a turn has twice stands in one of its events alone, and the
 * others name that event. So each record can be read by itself; only its codec knows of references, and what
 * is decoded is the same with and without them.
 *
 * Which event has the payload: the last one if it ends the execution, as those who wait for an outcome read
 * no other; else the first that has it. A reference leads to an event that has none, so there are no circles,
 * and a record with its payloads in all places is no larger than a record may be, so nothing expands.
 *
 * To a reader that does not know references an event with one is of an unknown kind; and it finds a hole in
 * the history, the mark, for else its engine would drop the result of an activity that it does not know.
 * Pure.
 */
#ifndef THOLE_RECORD_REFERENCES_H
#define THOLE_RECORD_REFERENCES_H
#include "event.h"

enum {
    REFERENCE_BYTES_MIN = 256, /* of a payload: a reference takes some ten, and is unknown to older readers */
    REFERENCE_HOMES_MAX = 16,  /* payloads of a record that others are compared with */
    REFERENCE_KINDS = 500,     /* the body of an event with a reference has the number of its kind and this */
    REFERENCE_MARK = 1,        /* place of the event without any field in a record with references */
};

/* Of each event of the turn the place, from 1, of the event that has its payload; 0: it has its own. NULL:
 * all have. In memory of @p arena. */
THOLE_NODISCARD thole_status references_find(const struct turn *turn, struct arena *arena,
                                             const uint32_t **ret);
/* How many bytes these references stand for. */
size_t references_bytes(const struct turn *turn, const uint32_t *references);

/* Whether an event of this kind may have a reference. */
bool event_may_refer(enum event_kind kind);
/* The kind of an event whose body has that number, with a reference or without. */
enum event_kind event_kind_of_body(uint32_t number);
/* Whether event.data of that kind is a payload: its input, output, data, value, text or reason. */
bool event_has_payload(enum event_kind kind);

/* A decoded event whose body says that its payload is that of another one. */
struct reference {
    size_t at;      /* which event of the record */
    uint64_t event; /* the id of the other one */
};
/*
 * Gives each of these events the other one's payload, the same bytes. @p bytes: the record's. One to a kind
 * that is not known makes the event of a kind that is not known. THOLE_CORRUPT: the other event is not there,
 * or has no payload or itself a reference; THOLE_LIMIT: the record would be too large with all payloads.
 */
THOLE_NODISCARD thole_status references_resolve(struct event *events, size_t events_len,
                                                const struct reference *references, size_t references_len,
                                                size_t bytes, thole_error *reterr);
#endif
