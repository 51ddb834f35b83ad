/*
 * Inside engine/partition/: when an owner looks for records of the log that are dispensable (dispensable.h),
 * and when it lists them in a record. Their removal is that of deletions: projection/removals.c. One list at
 * a time: the next look comes when the records of the last one are removed.
 *
 * Lists stay as long as deletions do, for auditors, so there are few: some 170 in that time, or one for each
 * FOLDED_MAX / 2 records that go.
 */
#ifndef THOLE_FOLDING_H
#define THOLE_FOLDING_H
#include "partition_io.h"

struct folding {
    size_t deletions;         /* in the list whose records are not removed yet */
    bool by_all;              /* every engine that may be the next owner reads lists */
    bool asked;               /* FIND_DISPENSABLE is not answered */
    bool more;                /* the last answer left some: the next look follows the removal at once */
    uint64_t keep_ms;         /* 0: nothing is dispensable */
    uint64_t next_ms;         /* no look before */
    uint64_t listed_ms;       /* when this owner last made a list; 0: it made none */
    uint64_t removing;        /* the list whose records are not removed yet; 0: none */
    uint64_t deleted, looked; /* of the newest list */
};

/* The partition serves; @p deleted and @p looked: of the newest list in the log. */
void folding_open(struct folding *folding, uint64_t keep_ms, uint64_t deleted, uint64_t looked,
                  uint64_t now_ms);
/* When to look; UINT64_MAX: not before something else has happened. */
uint64_t folding_due_ms(const struct folding *folding);
void folding_ask(struct folding *folding, uint64_t now_ms, struct out_find_dispensable *ret);
/* The answer. True: they are worth a record, *ret, which borrows from @p in. Else the next look is later. */
bool folding_take(struct folding *folding, const struct in_dispensable *in, uint64_t now_ms,
                  struct folded *ret);
/* To be called when that record is appended; @p sequence: its place, if it is stored. */
void folding_listed(struct folding *folding, const struct folded *folded, uint64_t sequence, uint64_t now_ms);
/* REMOVED, of whatever record. True: those of the list; *ret: the deletions among them. */
bool folding_removed(struct folding *folding, uint64_t sequence, size_t *ret);
#endif
