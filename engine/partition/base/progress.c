#include "progress.h"
#include "memory.h"
#include "tables.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void progress_release(struct progress *progress)
{
    free(progress->above);
    free(progress->gaps);
    free(progress->several);
    *progress = (struct progress){0};
}

static void reserve(struct progress *progress, size_t n)
{
    progress->above = memory_reserve(progress->above, &progress->above_cap, n, sizeof *progress->above);
}

void progress_set(struct progress *progress, const struct position *position)
{
    reserve(progress, position->above_len);
    if (position->above_len > 0)
        memcpy(progress->above, position->above, position->above_len * sizeof *progress->above);
    progress->above_len = position->above_len;
    progress->floor = position->floor;
    progress->received = position->floor;
    progress->several_len = progress->parts_left = 0;
    progress->seen = (struct seen){position->seen, position->seen_ns};
    progress->dirty = false;
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
    if (message->parts > 1 && !progress_has(progress, sequence)) {
        struct several *const several = row_add((void **)&progress->several, &progress->several_len,
                                                &progress->several_cap, sizeof *several);
        *several = (struct several){.sequence = sequence, .left = message->parts};
    }
    return true;
}

struct seen progress_seen(const struct progress *progress)
{
    uint64_t const top = progress->above_len > 0 ? progress->above[progress->above_len - 1] : progress->floor;
    return progress->seen.sequence >= top ? progress->seen : (struct seen){top, 0};
}

/* Index of the first element that is >= sequence. */
static size_t lower_bound(const struct progress *progress, uint64_t sequence)
{
    size_t low = 0, high = progress->above_len;
    while (low < high) {
        size_t const mid = low + (high - low) / 2;
        if (progress->above[mid] < sequence)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool progress_has(const struct progress *progress, uint64_t sequence)
{
    if (sequence <= progress->floor)
        return true;
    size_t const at = lower_bound(progress, sequence);
    return at < progress->above_len && progress->above[at] == sequence;
}

static void absorb_above(struct progress *progress)
{
    size_t n = 0;
    if (progress->above_len == 0)
        return;
    while (n < progress->above_len && progress->above[n] <= progress->floor + 1) {
        if (progress->above[n] == progress->floor + 1)
            progress->floor++;
        n++;
    }
    progress->above_len -= n;
    memmove(progress->above, progress->above + n, progress->above_len * sizeof *progress->above);
}

/* Raises the floor over everything that now follows it. */
static void absorb(struct progress *progress)
{
    uint64_t const before = progress->floor;
    absorb_above(progress);
    while (progress->gaps_len > 0 && progress->gaps[0].first <= progress->floor + 1) {
        if (progress->gaps[0].last > progress->floor)
            progress->floor = progress->gaps[0].last;
        progress->gaps_len--;
        memmove(progress->gaps, progress->gaps + 1, progress->gaps_len * sizeof *progress->gaps);
        absorb_above(progress);
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
static bool take_part(struct progress *progress, struct several *several, uint32_t part)
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
    if (several != NULL && !take_part(progress, several, part))
        return;
    progress->dirty = true;
    if (sequence == progress->floor + 1) {
        progress->floor = sequence;
        if (progress->above_len + progress->gaps_len > 0)
            absorb(progress);
        return;
    }
    reserve(progress, progress->above_len + 1);
    size_t const at = lower_bound(progress, sequence);
    memmove(progress->above + at + 1, progress->above + at,
            (progress->above_len - at) * sizeof *progress->above);
    progress->above[at] = sequence;
    progress->above_len++;
    assert(progress->above[0] > progress->floor && progress->above_len <= progress->above_cap);
    assert(at == 0 || progress->above[at - 1] < sequence);
}

void progress_skip(struct progress *progress, uint64_t first, uint64_t last)
{
    if (first > last || last <= progress->floor)
        return;
    assert(progress->gaps_len == 0 || progress->gaps[progress->gaps_len - 1].last < first);
    struct gap *const gap =
        row_add((void **)&progress->gaps, &progress->gaps_len, &progress->gaps_cap, sizeof *gap);
    *gap = (struct gap){first, last};
    uint64_t const floor = progress->floor;
    absorb(progress);
    progress->dirty |= progress->floor != floor;
}
