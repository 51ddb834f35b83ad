#include "progress.h"
#include "memory.h"
#include "tables.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void progress_release(struct progress *progress)
{
    free(progress->ranges);
    free(progress->gaps);
    free(progress->several);
    *progress = (struct progress){0};
}

/* --- ranges -------------------------------------------------------------------------------------- */

static struct sequence_range *range_at(const struct progress *progress, size_t i)
{
    return progress->ranges + progress->ranges_at + i;
}

/* Index of the first range that ends at @p sequence or above. */
static size_t progress_range_find(const struct progress *progress, uint64_t sequence)
{
    size_t low = 0, high = progress->ranges_len;
    while (low < high) {
        size_t const mid = low + (high - low) / 2;
        if (range_at(progress, mid)->last < sequence)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Makes room for one more range after the last and before the first: equally much on both sides, so that
 * insertions at either end cost little, however many ranges exist. */
static void ranges_make_room(struct progress *progress)
{
    size_t const len = progress->ranges_len;
    if (progress->ranges_at > 0 && progress->ranges_at + len < progress->ranges_cap)
        return;
    size_t const cap = 3 * len + 16, at = len + 8;
    struct sequence_range *const ranges = memory_array(cap, sizeof *ranges);
    if (len > 0)
        memcpy(ranges + at, range_at(progress, 0), len * sizeof *ranges);
    free(progress->ranges);
    progress->ranges = ranges;
    progress->ranges_at = at;
    progress->ranges_cap = cap;
}

/* Moves the ranges before place i or those after it, whichever are fewer. */
static void range_insert(struct progress *progress, size_t i, struct sequence_range range)
{
    ranges_make_room(progress);
    if (i < progress->ranges_len - i) {
        progress->ranges_at--;
        memmove(range_at(progress, 0), range_at(progress, 1), i * sizeof range);
    } else {
        memmove(range_at(progress, i + 1), range_at(progress, i), (progress->ranges_len - i) * sizeof range);
    }
    progress->ranges_len++;
    *range_at(progress, i) = range;
}

static void range_remove(struct progress *progress, size_t i)
{
    size_t const behind = --progress->ranges_len - i;
    if (i < behind) {
        memmove(range_at(progress, 1), range_at(progress, 0), i * sizeof *progress->ranges);
        progress->ranges_at++;
    } else {
        memmove(range_at(progress, i), range_at(progress, i + 1), behind * sizeof *progress->ranges);
    }
}

/* Adds a sequence that is in no range, and not at the floor. */
static void range_add(struct progress *progress, uint64_t sequence)
{
    size_t const i = progress_range_find(progress, sequence);
    bool const before = i > 0 && range_at(progress, i - 1)->last + 1 == sequence;
    bool const behind = i < progress->ranges_len && range_at(progress, i)->first - 1 == sequence;
    if (before && behind) {
        range_at(progress, i - 1)->last = range_at(progress, i)->last;
        range_remove(progress, i);
    } else if (before) {
        range_at(progress, i - 1)->last = sequence;
    } else if (behind) {
        range_at(progress, i)->first = sequence;
    } else {
        range_insert(progress, i, (struct sequence_range){sequence, sequence});
    }
}

/* --- the position -------------------------------------------------------------------------------- */

void progress_set(struct progress *progress, const struct position *position)
{
    progress->ranges_at = progress->ranges_len = 0;
    for (size_t i = 0; i < position->ranges_len; i++)
        range_insert(progress, i, position->ranges[i]);
    progress->floor = position->floor;
    progress->received = position->floor;
    progress->open = progress->several_len = progress->parts_left = 0;
    progress->seen = (struct seen){position->seen, position->seen_ns};
    progress->dirty = false;
}

struct position progress_position(const struct progress *progress)
{
    return (struct position){.floor = progress->floor,
                             .ranges = progress->ranges_len > 0 ? range_at(progress, 0) : NULL,
                             .ranges_len = progress->ranges_len,
                             .seen = progress->seen.sequence,
                             .seen_ns = progress->seen.stored_ns};
}

bool progress_receive(struct progress *progress, const struct in_message *message)
{
    uint64_t const sequence = message->sequence;
    assert(message->parts <= RESULT_LIST_MAX && (message->part == 0 || message->part < message->parts));
    if (message->part > 0) { /* they are read in order */
        bool const next =
            sequence == progress->received && progress->parts_left == message->parts - message->part;
        progress->parts_left -= next;
        return next;
    }
    if (sequence <= progress->received)
        return false;
    progress_skip(progress, progress->received + 1, sequence - 1);
    progress->received = sequence;
    progress->parts_left = message->parts > 1 ? message->parts - 1 : 0;
    if (sequence > progress->seen.sequence)
        progress->seen = (struct seen){sequence, message->stored_ns};
    bool const has = progress_has(progress, sequence);
    progress->open += !has;
    if (message->parts > 1 && !has) {
        struct several *const several = row_add((void **)&progress->several, &progress->several_len,
                                                &progress->several_cap, sizeof *several);
        *several = (struct several){.sequence = sequence, .left = message->parts};
    }
    return true;
}

struct seen progress_seen(const struct progress *progress)
{
    uint64_t const top =
        progress->ranges_len > 0 ? range_at(progress, progress->ranges_len - 1)->last : progress->floor;
    return progress->seen.sequence >= top ? progress->seen : (struct seen){top, 0};
}

bool progress_has(const struct progress *progress, uint64_t sequence)
{
    if (sequence <= progress->floor)
        return true;
    size_t const i = progress_range_find(progress, sequence);
    return i < progress->ranges_len && range_at(progress, i)->first <= sequence;
}

static void absorb_ranges(struct progress *progress)
{
    while (progress->ranges_len > 0 && range_at(progress, 0)->first <= progress->floor + 1) {
        if (range_at(progress, 0)->last > progress->floor)
            progress->floor = range_at(progress, 0)->last;
        range_remove(progress, 0);
    }
}

/* Raises the floor over everything that now follows it. */
static void progress_absorb(struct progress *progress)
{
    uint64_t const before = progress->floor;
    absorb_ranges(progress);
    while (progress->gaps_len > 0 && progress->gaps[0].first <= progress->floor + 1) {
        if (progress->gaps[0].last > progress->floor)
            progress->floor = progress->gaps[0].last;
        progress->gaps_len--;
        memmove(progress->gaps, progress->gaps + 1, progress->gaps_len * sizeof *progress->gaps);
        absorb_ranges(progress);
    }
    assert(progress->floor >= before);
}

/* NULL: it has no parts, or all of them are incorporated. */
static struct several *find_several(const struct progress *progress, uint64_t sequence)
{
    size_t low = 0, high = progress->several_len;
    while (low < high) {
        size_t const mid = low + (high - low) / 2;
        if (progress->several[mid].sequence < sequence)
            low = mid + 1;
        else
            high = mid;
    }
    bool const found = low < progress->several_len && progress->several[low].sequence == sequence;
    return found ? &progress->several[low] : NULL;
}

/* Whether the message is incorporated now. */
static bool progress_take_part(struct progress *progress, struct several *several, uint32_t part)
{
    uint64_t const bit = (uint64_t)1 << part % 64;
    uint64_t *const done = &several->done[part / 64];
    assert(part < RESULT_LIST_MAX && several->left > 0);
    several->left -= (*done & bit) == 0;
    *done |= bit;
    if (several->left > 0)
        return false;
    size_t const behind = (size_t)(progress->several + progress->several_len - several) - 1;
    memmove(several, several + 1, behind * sizeof *several);
    progress->several_len--;
    return true;
}

void progress_add(struct progress *progress, uint64_t sequence, uint32_t part)
{
    if (progress_has(progress, sequence))
        return;
    struct several *const several = find_several(progress, sequence);
    if (several != NULL && !progress_take_part(progress, several, part))
        return;
    progress->dirty = true;
    assert(sequence > progress->received || progress->open > 0);
    progress->open -= sequence <= progress->received;
    if (sequence == progress->floor + 1) {
        progress->floor = sequence;
        progress_absorb(progress);
        return;
    }
    range_add(progress, sequence);
    assert(range_at(progress, 0)->first > progress->floor + 1);
}

void progress_skip(struct progress *progress, uint64_t first, uint64_t last)
{
    if (first > last || last <= progress->floor)
        return;
    assert(progress->gaps_len == 0 || progress->gaps[progress->gaps_len - 1].last < first);
    struct sequence_range *const gap =
        row_add((void **)&progress->gaps, &progress->gaps_len, &progress->gaps_cap, sizeof *gap);
    *gap = (struct sequence_range){first, last};
    uint64_t const floor = progress->floor;
    progress_absorb(progress);
    progress->dirty |= progress->floor != floor;
}
