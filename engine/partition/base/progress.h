/* The inbox position: which messages are incorporated. */
#ifndef THOLE_PROGRESS_H
#define THOLE_PROGRESS_H
#include "event.h"
#include "partition_io.h"
#include "result_list.h"

struct progress {
    uint64_t floor, received; /* received: the highest read since the partition opened */
    uint64_t open;            /* of those that were read, how many are not incorporated */
    uint32_t parts_left;      /* of the highest one, how many are still to be read */
    struct seen seen;         /* the highest ever */
    /* Sequences incorporated above the floor; ascending, no range touches the floor or another one. The first
     * ones change most, so room is kept before them: see ranges_make_room(). */
    struct sequence_range *ranges; /* ranges_len of them, from ranges_at on */
    size_t ranges_at, ranges_len, ranges_cap;
    struct sequence_range *gaps; /* sequences that do not exist, above messages that are not yet incorporated;
                                    ascending */
    size_t gaps_len, gaps_cap;
    struct several {
        uint64_t sequence;
        uint32_t left;                       /* of its parts, those that are not incorporated */
        uint64_t done[RESULT_LIST_MAX / 64]; /* bit i: part i is */
    } * several;                             /* messages with several parts; ascending */
    size_t several_len, several_cap;
    bool dirty; /* differs from what the last record says */
};
void progress_release(struct progress *progress);
void progress_set(struct progress *progress, const struct position *position);
/* Borrowed until the progress changes. */
struct position progress_position(const struct progress *progress);
bool progress_has(const struct progress *progress, uint64_t sequence);
/* @p part: of a message with several, which is incorporated when all of them are; else 0. */
void progress_add(struct progress *progress, uint64_t sequence, uint32_t part);
/* Sequences first..last do not exist: the reader, which skips nothing, is beyond them. There may be many, so
 * they are kept as a range. */
void progress_skip(struct progress *progress, uint64_t first, uint64_t last);
/* A message came in, as the reader gives it; false: it came before. */
bool progress_receive(struct progress *progress, const struct in_message *message);
/* The message that the stream must still hold, or have purged, for the position to be valid. */
struct seen progress_seen(const struct progress *progress);
#endif
