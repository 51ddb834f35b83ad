/* A history on stdout: a table, one JSON document, or a line of JSON for each event. */
#ifndef THOLE_TIMELINE_H
#define THOLE_TIMELINE_H
#include "command.h"

struct timeline {
    const struct cli *cli;
    thole_slice instance; /* borrowed */
    struct json json;
    uint64_t events;
    bool begun; /* the document of a history without events */
};

/* A thole_history_fn, whose argument is the struct timeline. THOLE_CANCELLED: the reader of stdout went away.
 */
thole_status timeline_event(void *arg, const thole_history_event *event);
/* Instead, before timeline_end(): no turn was taken yet. */
void timeline_none(struct timeline *timeline);
/* @p complete false: the reading broke off. */
void timeline_end(struct timeline *timeline, bool complete);
/* An event in a line: its kind, its name or what it is of, and its data, cut. */
void timeline_text(const thole_history_event *event, struct buf *to);
#endif
