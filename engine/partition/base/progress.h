/* The inbox position: which messages are incorporated. */
#ifndef THOLE_PROGRESS_H
#define THOLE_PROGRESS_H
#include "event.h"
#include "partition_io.h"

struct progress {
    uint64_t floor, received; /* received: the highest read since the partition opened */
    struct seen seen;         /* the highest ever */
    uint64_t *above;
    size_t above_len, above_cap;
    struct gap {
        uint64_t first, last;
    } * gaps; /* sequences that do not exist, above messages that are not yet incorporated; ascending */
    size_t gaps_len, gaps_cap;
    bool dirty; /* differs from what the last record says */
};
void progress_release(struct progress *progress);
void progress_set(struct progress *progress, const struct position *position);
bool progress_has(const struct progress *progress, uint64_t sequence);
void progress_add(struct progress *progress, uint64_t sequence);
/* Sequences first..last do not exist: the reader, which skips nothing, is beyond them. There may be many, so
 * they are kept as a range. */
void progress_skip(struct progress *progress, uint64_t first, uint64_t last);
/* A message came in. */
void progress_receive(struct progress *progress, uint64_t sequence, uint64_t stored_ns);
/* The message that the stream must still hold, or have purged, for the position to be valid. */
struct seen progress_seen(const struct progress *progress);
#endif
