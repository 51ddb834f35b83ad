#include "folding.h"
#include <assert.h>

enum {
    LISTS_KEPT = 168, /* in the time for which deletions are kept: hourly, of a week */
    PAUSE_MIN_MS = 500,
    OPENING_PAUSE_MAX_MS = 600 * 1000, /* records that an earlier owner has sent again have arrived by then */
    CONTROLS_WORTH = 4, /* a list is followed by a record that confirms it, and one that it is done */
};

static uint64_t folding_pause_ms(const struct folding *folding)
{
    uint64_t const pause = folding->keep_ms / LISTS_KEPT;
    return pause < PAUSE_MIN_MS ? PAUSE_MIN_MS : pause;
}

void folding_open(struct folding *folding, uint64_t keep_ms, uint64_t deleted, uint64_t looked,
                  uint64_t now_ms)
{
    *folding =
        (struct folding){.by_all = folding->by_all, .keep_ms = keep_ms, .deleted = deleted, .looked = looked};
    uint64_t const pause = folding_pause_ms(folding);
    folding->next_ms = now_ms + (pause < OPENING_PAUSE_MAX_MS ? pause : OPENING_PAUSE_MAX_MS);
}

uint64_t folding_due_ms(const struct folding *folding)
{
    bool const waits = folding->asked || folding->removing > 0;
    return folding->keep_ms == 0 || !folding->by_all || waits ? UINT64_MAX : folding->next_ms;
}

void folding_ask(struct folding *folding, uint64_t now_ms, struct out_find_dispensable *ret)
{
    folding->asked = true;
    ret->looked = folding->looked;
    ret->before_ms = now_ms > folding->keep_ms ? now_ms - folding->keep_ms : 0;
}

bool folding_take(struct folding *folding, const struct in_dispensable *in, uint64_t now_ms,
                  struct folded *ret)
{
    folding->asked = false;
    folding->next_ms = now_ms + folding_pause_ms(folding);
    folding->deletions = in->deletions;
    folding->more = in->more;
    bool const due = folding->listed_ms == 0 || now_ms >= folding->listed_ms + folding_pause_ms(folding);
    bool const some = in->deletions > 0 || in->len >= CONTROLS_WORTH;
    if (in->len == 0 && in->looked > folding->looked)
        folding->looked = in->looked; /* in memory: who comes next looks again */
    if (in->len == 0 || !folding->by_all || !(in->more || (due && some)))
        return false;
    *ret = (struct folded){.sequences = in->sequences,
                           .len = in->len,
                           .hashes = in->hashes,
                           .deleted = in->deleted > folding->deleted ? in->deleted : folding->deleted,
                           .looked = in->looked > folding->looked ? in->looked : folding->looked,
                           .time_ms = now_ms};
    return true;
}

void folding_listed(struct folding *folding, const struct folded *folded, uint64_t sequence, uint64_t now_ms)
{
    assert(folding->removing == 0 && sequence > 0);
    folding->removing = sequence;
    folding->deleted = folded->deleted;
    folding->looked = folded->looked;
    folding->listed_ms = now_ms;
    if (folding->more)
        folding->next_ms = now_ms;
}

bool folding_removed(struct folding *folding, uint64_t sequence, size_t *ret)
{
    *ret = folding->deletions;
    if (folding->removing != sequence)
        return false;
    folding->removing = 0;
    return true;
}
