/* The notes of a stored event about its payloads (payload_hash.h), and the payloads themselves. Pure. */
#ifndef THOLE_EVENT_NOTES_H
#define THOLE_EVENT_NOTES_H
#include "payload_hash.h"

struct event_notes {
    struct payload_note of[PAYLOADS_MAX]; /* in the order in which they stand; no field twice */
    thole_slice payload[PAYLOADS_MAX];    /* borrowed; empty: none, or erased */
    bool there[PAYLOADS_MAX];             /* the body has the field */
    size_t len;
    uint64_t event; /* id of the event */
    uint32_t kind;  /* the number of its body, an enum event_kind; 0: none */
};
/* False: the event is malformed, or the notes are not as they must be: one for each field, and no bytes where
 * they are erased. All lengths must be as short as they can be: they are not in the outline. */
bool event_notes_read(thole_slice event, struct event_notes *ret);
/* The place of the note of that field of the body; ret->len: there is none. */
size_t event_notes_find(const struct event_notes *notes, uint32_t field);
#endif
